//! Fits random programs to what Vulkan commands can do, and to what is valid on the queues that execute them.
//!
//! The generator thinks in single bytes and texels. Commands want words, whole views and pairs of accesses; queues
//! want stages that they support.

use lavascope_abi::{AccessFlags2 as A, Format, ImageAspectFlags, PipelineStageFlags2 as S, QueueFlags};
use lavascope_abi::{SYNC_ACCESSES, SYNC_STAGES};
use lavascope_oracle::is_write;
use lavascope_sync_ir::{
    Access, Attachment, AttachmentView, Barrier, Command, CommandBufferId, Components, Dependency, DependencyTarget,
    HostStep, ImageDesc, ImageRegion, LoadOp, Program, RasterOrder, Region, RenderPass, Resource, ResourceKind,
    SetEvent, SubpassDependency, SyncScope, WaitEvents,
};

use super::edit::repair_events;
use super::shrink::clear_unused_buffers;

/// Bytes of a performed buffer for each byte of a generated one.
const BYTES_PER_BYTE: u64 = 16;
/// Bytes of the parameters of a dispatch, and of a draw.
const DISPATCH_BYTES: u64 = 12;
const DRAW_BYTES: u64 = 16;

/// The image that color attachments are resolved to.
const RESOLVE_TARGET: usize = 1;

/// The program with accesses that commands can make, and masks that its queues support.
pub fn make_performable(program: &Program) -> Program {
    let mut made = program.clone();
    fit_resources(&mut made.resources);
    fit_resolve_views(&mut made);
    let resources = made.resources.clone();
    for at in 0..made.command_buffers.len() {
        let flags = common_queue_flags(program, at);
        fit_commands(&mut made.command_buffers[at].commands, &resources, flags);
    }
    for step in &mut made.steps {
        if let HostStep::HostAccess { region, .. } = step {
            fit_bytes(region);
        }
    }
    make_valid(&made)
}

/// The program with masks that its queues support, and accesses in them that their stages make. Command buffers that
/// nothing executes are empty: performing a program records all.
pub fn make_valid(program: &Program) -> Program {
    let mut made = clear_unused_buffers(program.clone());
    for at in 0..made.command_buffers.len() {
        let flags = common_queue_flags(program, at);
        made.command_buffers[at].commands.iter_mut().for_each(|it| fit_masks(it, flags));
    }
    for step in &mut made.steps {
        let HostStep::Submit { queue, batches, .. } = step else { continue };
        let flags = program.queues[queue.0 as usize].flags;
        for batch in batches {
            batch.waits.iter_mut().for_each(|it| it.stages = supported(it.stages, flags));
            batch.signals.iter_mut().for_each(|it| it.stages = supported(it.stages, flags));
        }
    }
    for pass in &mut made.render_passes {
        pass.dependencies.iter_mut().for_each(|it| fit_scope(&mut it.scope, u32::MAX));
        pass.attachments.iter_mut().for_each(fit_loads);
    }
    allow_barriers_in_passes(&mut made);
    repair_events(&mut made);
    made
}

/// Buffers have words, and what attachments are resolved to is like them.
fn fit_resources(resources: &mut [Resource]) {
    let attachment_layers = resources.iter().find_map(|resource| match &resource.kind {
        ResourceKind::Image(image) if image.extent == [2, 2, 1] => Some(image.layers),
        _ => None,
    });
    for (at, resource) in resources.iter_mut().enumerate() {
        match &mut resource.kind {
            ResourceKind::Buffer { size } => {
                *size *= BYTES_PER_BYTE;
                if let Some(binding) = &mut resource.binding {
                    binding.offset *= BYTES_PER_BYTE;
                    binding.size *= BYTES_PER_BYTE;
                }
            }
            ResourceKind::Image(image) => {
                if let Some(layers) = attachment_layers.filter(|_| at == RESOLVE_TARGET) {
                    (image.format, image.extent, image.layers) = (Format::R8G8_UNORM, [3, 2, 1], layers);
                }
            }
        }
    }
}

/// Views of what is resolved to have its layers.
fn fit_resolve_views(program: &mut Program) {
    let ResourceKind::Image(ImageDesc { layers, .. }) = program.resources[RESOLVE_TARGET].kind else { return };
    let fit = |view: &mut AttachmentView| {
        if view.resource.0 as usize == RESOLVE_TARGET {
            view.region.layers = 0..layers;
        }
    };
    for command in program.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        match command {
            Command::BeginRenderPass { views, .. } => views.iter_mut().for_each(fit),
            Command::BeginRendering(rendering) => {
                rendering.attachments.iter_mut().filter_map(|it| it.resolve.as_mut()).for_each(|it| fit(&mut it.view));
            }
            _ => {}
        }
    }
}

/// What all queues can do that execute a command buffer.
fn common_queue_flags(program: &Program, buffer: usize) -> u32 {
    let mut flags = u32::MAX;
    for step in &program.steps {
        let HostStep::Submit { queue, batches, .. } = step else { continue };
        let mut executed = batches.iter().flat_map(|it| &it.command_buffers);
        if executed.any(|it| executes(program, *it, buffer)) {
            flags &= program.queues[queue.0 as usize].flags;
        }
    }
    flags
}

fn executes(program: &Program, own: CommandBufferId, wanted: usize) -> bool {
    own.0 as usize == wanted
        || program.command_buffers[own.0 as usize].commands.iter().any(|command| match command {
            Command::Execute(all) => all.iter().any(|it| executes(program, *it, wanted)),
            _ => false,
        })
}

fn fit_commands(commands: &mut Vec<Command>, resources: &[Resource], flags: u32) {
    for command in commands.iter_mut() {
        match command {
            Command::Action(accesses) => fit_action(accesses, resources, flags),
            _ => dependencies_of(command).into_iter().for_each(fit_target),
        }
    }
    commands.retain(|it| !matches!(it, Command::Action(accesses) if accesses.is_empty()));
}

fn dependencies_of(command: &mut Command) -> Vec<&mut Dependency> {
    match command {
        Command::Barrier(Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies })
        | Command::WaitEvents(WaitEvents::Sync1 { dependencies, .. })
        | Command::SetEvent(SetEvent::Sync2 { dependencies, .. }) => dependencies.iter_mut().collect(),
        Command::WaitEvents(WaitEvents::Sync2 { events }) => events.iter_mut().flat_map(|it| &mut it.1).collect(),
        _ => Vec::new(),
    }
}

fn fit_masks(command: &mut Command, flags: u32) {
    match command {
        Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
        | Command::WaitEvents(WaitEvents::Sync1 { src_stages, dst_stages, dependencies, .. }) => {
            (*src_stages, *dst_stages) = (supported(*src_stages, flags), supported(*dst_stages, flags));
            for Dependency { scope, .. } in dependencies {
                (scope.src_stages, scope.dst_stages) = (*src_stages, *dst_stages);
                fit_scope(scope, flags);
            }
        }
        Command::SetEvent(SetEvent::Sync1 { stages, .. }) | Command::ResetEvent { stages, .. } => {
            *stages = supported(*stages, flags);
        }
        _ => dependencies_of(command).into_iter().for_each(|it| fit_scope(&mut it.scope, flags)),
    }
}

fn fit_action(accesses: &mut Vec<Access>, resources: &[Resource], flags: u32) {
    let is_drawn = |it: &Access| it.stage & !(S::COPY.0 | S::CLEAR.0 | S::COMPUTE_SHADER.0 | S::DRAW_INDIRECT.0) != 0;
    let (is_draw, has_indices) =
        (accesses.iter().any(is_drawn), accesses.iter().any(|it| it.stage == S::INDEX_INPUT.0));
    accesses.retain(|it| is_possible(it, resources, flags) && !(has_indices && it.stage == S::DRAW_INDIRECT.0));
    for access in accesses.iter_mut() {
        fit_access(access, is_draw);
    }
    let mut kept: Vec<Access> = Vec::new();
    for access in accesses.drain(..) {
        if kept.iter().any(|own| conflicts(own, &access)) {
            continue;
        }
        // Blending reads what it writes.
        if access.access == A::COLOR_ATTACHMENT_READ.0 {
            kept.push(Access { access: A::COLOR_ATTACHMENT_WRITE.0, ..access.clone() });
        }
        kept.push(access);
    }
    *accesses = kept;
}

fn fit_access(access: &mut Access, is_draw: bool) {
    let is_attachment = access.order != RasterOrder::None;
    let is_copy = access.stage == S::COPY.0;
    match &mut access.region {
        Region::Buffer(bytes) => {
            (bytes.start, bytes.end) = (bytes.start * BYTES_PER_BYTE, bytes.end * BYTES_PER_BYTE);
            if access.stage == S::DRAW_INDIRECT.0 {
                bytes.end = bytes.start + if is_draw { DRAW_BYTES } else { DISPATCH_BYTES };
            }
        }
        Region::Image(region) => {
            if !is_attachment && !is_copy {
                region.area = None;
            }
            let is_write_mask = access.access == A::COLOR_ATTACHMENT_WRITE.0;
            if !is_write_mask {
                region.components = Components::ALL;
            }
        }
    }
}

/// Whether something on these queues makes such an access.
fn is_possible(access: &Access, resources: &[Resource], flags: u32) -> bool {
    let is_graphics = flags & QueueFlags::GRAPHICS.0 != 0;
    let depth_stages = S::EARLY_FRAGMENT_TESTS.0 | S::LATE_FRAGMENT_TESTS.0;
    let stages = supported(access.stage, flags) != 0;
    let ResourceKind::Image(image) = &resources[access.resource.0 as usize].kind else { return stages };
    let is_depth = image.format == Format::D24_UNORM_S8_UINT;
    let is_storage = access.access & (A::SHADER_STORAGE_READ.0 | A::SHADER_STORAGE_WRITE.0) != 0;
    let fits = match is_depth {
        true => is_graphics && !is_storage && access.stage != S::COLOR_ATTACHMENT_OUTPUT.0,
        false => access.stage & depth_stages == 0,
    };
    stages && fits
}

/// Whether two accesses of one command are to the same place, and not both reads.
fn conflicts(one: &Access, other: &Access) -> bool {
    let overlap = match (&one.region, &other.region) {
        (Region::Buffer(one), Region::Buffer(other)) => one.start < other.end && other.start < one.end,
        (Region::Image(one), Region::Image(other)) => one.aspects & other.aspects != 0,
        _ => false,
    };
    one.resource == other.resource && overlap && (is_write(one.access) || is_write(other.access))
}

fn fit_target(dependency: &mut Dependency) {
    match &mut dependency.target {
        DependencyTarget::Global => {}
        DependencyTarget::Resource { region, .. }
        | DependencyTarget::Transition { region, .. }
        | DependencyTarget::QueueFamilyTransfer { region, .. } => {
            fit_bytes(region);
            if let Region::Image(region) = region {
                fit_barrier_region(region);
            }
        }
    }
}

fn fit_bytes(region: &mut Region) {
    if let Region::Buffer(bytes) = region {
        (bytes.start, bytes.end) = (bytes.start * BYTES_PER_BYTE, bytes.end * BYTES_PER_BYTE);
    }
}

/// A barrier is about whole levels, and both aspects of an image that has two.
fn fit_barrier_region(region: &mut ImageRegion) {
    (region.area, region.components) = (None, Components::ALL);
    let both = ImageAspectFlags::DEPTH.0 | ImageAspectFlags::STENCIL.0;
    if region.aspects & both != 0 {
        region.aspects = both;
    }
}

fn fit_scope(scope: &mut SyncScope, flags: u32) {
    scope.src_stages = supported(scope.src_stages, flags);
    scope.dst_stages = supported(scope.dst_stages, flags);
    scope.src_access = accesses_of_stages(scope.src_access, scope.src_stages);
    scope.dst_access = accesses_of_stages(scope.dst_access, scope.dst_stages);
}

/// The stages that a queue knows.
fn supported(stages: u64, flags: u32) -> u64 {
    let unknown = SYNC_STAGES.iter().filter(|it| it.queues != 0 && it.queues & flags == 0);
    unknown.fold(stages, |left, it| left & !it.stage)
}

/// The accesses that some of the stages make.
fn accesses_of_stages(access: u64, stages: u64) -> u64 {
    let own = single_stages(stages);
    let is_fit = |bit: u64| {
        let entry = SYNC_ACCESSES.iter().find(|it| it.access == bit);
        entry.is_some_and(|it| it.stages == 0 || it.stages & own != 0)
    };
    let bits = (0..64).map(|it| 1 << it).filter(|it| access & it != 0);
    if stages == 0 { 0 } else { bits.filter(|it| is_fit(*it)).fold(0, |all, it| all | it) }
}

/// Groups with their members.
fn single_stages(stages: u64) -> u64 {
    if stages & S::ALL_COMMANDS.0 != 0 {
        return !S::HOST.0;
    }
    let groups = SYNC_STAGES.iter().filter(|it| it.stage != 0 && stages & it.stage != 0 && it.equivalent != 0);
    groups.fold(stages, |all, it| all | single_stages(it.equivalent))
}

/// Undefined contents are not loaded.
fn fit_loads(attachment: &mut Attachment) {
    const UNDEFINED: i32 = 0;
    for load in [&mut attachment.load, &mut attachment.stencil_load] {
        if attachment.initial_layout == UNDEFINED && *load == LoadOp::Load {
            *load = LoadOp::Clear;
        }
    }
}

/// A barrier in a subpass is part of a dependency of the subpass on itself; one in dynamic rendering is not made.
fn allow_barriers_in_passes(program: &mut Program) {
    let Program { command_buffers, render_passes, .. } = program;
    for buffer in command_buffers {
        let mut open: Option<Option<(u32, u32)>> = None;
        buffer.commands.retain(|command| {
            match (command, &mut open) {
                (Command::BeginRenderPass { pass, .. }, _) => open = Some(Some((pass.0, 0))),
                (Command::BeginRendering(_), _) => open = Some(None),
                (Command::NextSubpass, Some(Some((_, subpass)))) => *subpass += 1,
                (Command::EndRenderPass | Command::EndRendering, _) => open = None,
                (Command::Barrier(_), Some(None)) => return false,
                (Command::Barrier(Barrier::Sync2 { dependencies }), Some(Some((pass, subpass)))) => {
                    allow_dependencies(&mut render_passes[*pass as usize], *subpass, dependencies);
                }
                _ => {}
            }
            true
        });
    }
}

fn allow_dependencies(pass: &mut RenderPass, subpass: u32, dependencies: &[Dependency]) {
    for Dependency { scope, .. } in dependencies {
        let own = Some(subpass);
        let has = pass.dependencies.iter_mut().find(|it| (it.src, it.dst) == (own, own));
        match has {
            Some(has) => {
                has.scope.src_stages |= scope.src_stages;
                has.scope.src_access |= scope.src_access;
                has.scope.dst_stages |= scope.dst_stages;
                has.scope.dst_access |= scope.dst_access;
            }
            None => pass.dependencies.push(SubpassDependency { src: own, dst: own, scope: *scope, view_offset: None }),
        }
    }
}
