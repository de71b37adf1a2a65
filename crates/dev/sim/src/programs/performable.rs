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

const UNDEFINED: i32 = 0;
const GENERAL: i32 = 1;
const DEPTH_READ_ONLY: i32 = 4;

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
    allow_barriers_in_passes(&mut made);
    made.render_passes.iter_mut().for_each(fit_pass);
    keep_read_only_depth(&mut made);
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
        fit_access(access, resources, is_draw);
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
    // Parameters without a shader make a draw, which only queues with graphics have.
    let has_dispatch = kept.iter().any(|it| it.stage == S::COMPUTE_SHADER.0);
    let has_draw = flags & QueueFlags::GRAPHICS.0 != 0;
    kept.retain(|it| has_dispatch || has_draw || it.stage != S::DRAW_INDIRECT.0);
    *accesses = kept;
}

fn fit_access(access: &mut Access, resources: &[Resource], is_draw: bool) {
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
            if !is_attachment && (!is_copy || is_beside_a_level(region, &resources[access.resource.0 as usize])) {
                region.area = None;
            }
            let is_write_mask = access.access == A::COLOR_ATTACHMENT_WRITE.0;
            if !is_write_mask {
                region.components = Components::ALL;
            }
        }
    }
}

/// Whether nothing of an area is in one of the levels.
fn is_beside_a_level(region: &ImageRegion, resource: &Resource) -> bool {
    let (Some(area), ResourceKind::Image(image)) = (region.area, &resource.kind) else { return false };
    region.mips.clone().any(|mip| (0..3).any(|it| area.offset[it] >= image.extent_of_mip(mip)[it]))
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
    scope.src_access = accesses_of_stages(scope.src_access, scope.src_stages, flags);
    scope.dst_access = accesses_of_stages(scope.dst_access, scope.dst_stages, flags);
}

/// The stages that a queue knows.
fn supported(stages: u64, flags: u32) -> u64 {
    let unknown = SYNC_STAGES.iter().filter(|it| it.queues != 0 && it.queues & flags == 0);
    unknown.fold(stages, |left, it| left & !it.stage)
}

/// The accesses that some of the stages make on a queue.
fn accesses_of_stages(access: u64, stages: u64, flags: u32) -> u64 {
    let own = supported(single_stages(stages), flags);
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

fn fit_pass(pass: &mut RenderPass) {
    pass.dependencies.iter_mut().for_each(|it| fit_scope(&mut it.scope, u32::MAX));
    pass.attachments.iter_mut().for_each(fit_loads);
    let views: Vec<u32> = pass.subpasses.iter().map(|it| it.view_mask).collect();
    // With multiview a dependency of a subpass on itself is local to each view.
    for dependency in pass.dependencies.iter_mut().filter(|it| it.src == it.dst) {
        let has_views = dependency.src.and_then(|it| views.get(it as usize)).is_some_and(|it| *it != 0);
        dependency.view_offset = has_views.then_some(0);
    }
    // Where views differ, a subpass may be the first one that uses an attachment in some view, and reads it only.
    if views.iter().any(|it| Some(it) != views.first()) {
        let inputs: Vec<u32> = pass.subpasses.iter().flat_map(|it| &it.inputs).map(|it| it.0).collect();
        for (at, attachment) in pass.attachments.iter_mut().enumerate() {
            if attachment.load == LoadOp::Clear && inputs.contains(&(at as u32)) {
                attachment.load = LoadOp::DontCare;
            }
        }
    }
}

/// Undefined contents are not loaded, and no final layout is undefined.
fn fit_loads(attachment: &mut Attachment) {
    for load in [&mut attachment.load, &mut attachment.stencil_load] {
        if attachment.initial_layout == UNDEFINED && *load == LoadOp::Load {
            *load = LoadOp::Clear;
        }
    }
    if attachment.final_layout == UNDEFINED {
        (attachment.initial_layout, attachment.final_layout) = (GENERAL, GENERAL);
    }
}

/// Where a subpass has depth in a layout for reading, its draws do not write it.
fn keep_read_only_depth(program: &mut Program) {
    let mut secondaries: Vec<CommandBufferId> = Vec::new();
    let Program { command_buffers, render_passes, .. } = program;
    for buffer in command_buffers.iter_mut() {
        let mut open: Option<(u32, u32)> = None;
        for command in &mut buffer.commands {
            match command {
                Command::BeginRenderPass { pass, .. } => open = Some((pass.0, 0)),
                Command::NextSubpass => open = open.map(|it| (it.0, it.1 + 1)),
                Command::EndRenderPass => open = None,
                Command::Action(_) | Command::Execute(_) => {
                    let subpass = open.and_then(|it| render_passes[it.0 as usize].subpasses.get(it.1 as usize));
                    let is_read_only =
                        subpass.and_then(|it| it.depth_stencil).is_some_and(|it| it.1 == DEPTH_READ_ONLY);
                    match command {
                        Command::Action(accesses) if is_read_only => accesses.retain(|it| !is_depth_write(it)),
                        Command::Execute(all) if is_read_only => secondaries.extend_from_slice(all),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }
    for CommandBufferId(at) in secondaries {
        for command in &mut command_buffers[at as usize].commands {
            if let Command::Action(accesses) = command {
                accesses.retain(|it| !is_depth_write(it));
            }
        }
    }
    for buffer in command_buffers {
        buffer.commands.retain(|it| !matches!(it, Command::Action(accesses) if accesses.is_empty()));
    }
}

fn is_depth_write(access: &Access) -> bool {
    access.access == A::DEPTH_STENCIL_ATTACHMENT_WRITE.0
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
                // A barrier without dependencies needs one of the subpass, too, and does nothing.
                (Command::Barrier(Barrier::Sync2 { dependencies }), Some(Some(_))) if dependencies.is_empty() => {
                    return false;
                }
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
