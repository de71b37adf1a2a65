//! What a census counts that takes more than a look at one command.

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{
    Attachment, AttachmentKind, Barrier, Command, Components, Dependency, DependencyTarget, EventId, HostStep, LoadOp,
    Program, RasterOrder, Region, RenderPass, ResourceKind, SetEvent, StoreOp, Subpass, Tiling, WaitEvents,
};

use lavascope_oracle::is_write;

pub(crate) fn pattern_features(program: &Program, things: &mut Vec<&'static str>) {
    alias_features(program, things);
    presentation_features(program, things);
    program.render_passes.iter().for_each(|it| render_pass_features(it, things));
    program.render_passes.iter().for_each(|it| layout_features(it, things));
    for buffer in &program.command_buffers {
        pass_content_features(program, &buffer.commands, things);
        command_sequence_features(&buffer.commands, things);
        marker_features(&buffer.commands, things);
        event_features(&buffer.commands, things);
    }
    let waits = program.command_buffers.iter().flat_map(|it| &it.commands).flat_map(waited_events);
    let is_set = |it: EventId| program.steps.contains(&HostStep::SetEvent(it));
    things.extend(waits.filter(|it| is_set(*it)).map(|_| "host event waited for"));
    let mut places: Vec<(u32, u32)> = Vec::new();
    for step in &program.steps {
        let HostStep::Submit { queue, batches, .. } = step else { continue };
        places.extend(batches.iter().flat_map(|it| &it.command_buffers).map(|it| (it.0, queue.0)));
    }
    places.sort_unstable();
    places.dedup();
    if places.windows(2).any(|it| it[0].0 == it[1].0) {
        things.push("resubmission elsewhere");
    }
}

fn alias_features(program: &Program, things: &mut Vec<&'static str>) {
    let bound = || program.resources.iter().filter(|it| it.binding.is_some()).map(|it| &it.kind);
    let buffers = bound().filter(|it| matches!(it, ResourceKind::Buffer { .. })).count();
    let images: Vec<_> =
        bound().filter_map(|it| if let ResourceKind::Image(image) = it { Some(image) } else { None }).collect();
    let has = |tiling: Tiling| images.iter().any(|it| it.tiling == tiling);
    let all = [
        ("aliased buffers", buffers > 1),
        ("aliased images", images.len() > 1),
        ("compatible aliases", images.iter().any(|it| it.alias)),
        ("linear alias", has(Tiling::Linear)),
        ("optimal alias", has(Tiling::Optimal)),
    ];
    things.extend(all.into_iter().filter(|it| it.1).map(|it| it.0));
}

fn render_pass_features(pass: &RenderPass, things: &mut Vec<&'static str>) {
    for attachment in &pass.attachments {
        let has_stencil = attachment.kind == AttachmentKind::DepthStencil;
        load_store_features(attachment.load, attachment.store, things);
        if has_stencil {
            load_store_features(attachment.stencil_load, attachment.stencil_store, things);
        }
    }
    let all = [
        ("depth resolve", pass.subpasses.iter().any(|it| it.depth_stencil_resolve.is_some())),
        ("multiview", pass.subpasses.iter().any(|it| it.view_mask != 0)),
        ("three subpasses", pass.subpasses.len() > 2),
    ];
    things.extend(all.into_iter().filter(|it| it.1).map(|it| it.0));
}

/// What subpasses do with the layouts of attachments.
fn layout_features(pass: &RenderPass, things: &mut Vec<&'static str>) {
    let layout = |subpass: &Subpass, attachment: u32| {
        let plain = subpass.inputs.iter().chain(&subpass.colors).chain(&subpass.depth_stencil);
        let resolves = subpass.resolves.iter().map(|it| (it.target, it.layout));
        let mut all = plain.chain(&subpass.depth_stencil_resolve).copied().chain(resolves);
        all.find(|it| it.0 == attachment).map(|it| it.1)
    };
    for (index, attachment) in pass.attachments.iter().enumerate() {
        let used: Vec<i32> = pass.subpasses.iter().filter_map(|it| layout(it, index as u32)).collect();
        let inputs = pass.subpasses.iter().flat_map(|it| &it.inputs).filter(|it| it.0 == index as u32);
        let mut inputs: Vec<i32> = inputs.map(|it| it.1).collect();
        let count = inputs.len();
        inputs.sort_unstable();
        inputs.dedup();
        let all = [
            ("several readers in one layout", inputs.len() < count),
            ("several read-only layouts", inputs.len() > 1 && inputs.iter().all(|it| *it > 1)),
            (
                "unused attachment changes its layout",
                used.is_empty() && attachment.initial_layout != attachment.final_layout,
            ),
        ];
        things.extend(all.into_iter().filter(|it| it.1).map(|it| it.0));
    }
}

/// What stands between the beginning and the end of a render pass.
fn pass_content_features(program: &Program, commands: &[Command], things: &mut Vec<&'static str>) {
    let (mut is_loading, mut subpass) = (false, 0);
    for command in commands {
        match command {
            Command::BeginRenderPass { pass, area, .. } => {
                let pass = &program.render_passes[pass.0 as usize];
                (is_loading, subpass) = (pass.attachments.iter().any(|it| it.load != LoadOp::None), 0);
                let is_none = |it: &Attachment| it.store == StoreOp::None || it.stencil_store == StoreOp::None;
                if area.extent[0] == 1 && pass.attachments.iter().any(is_none) {
                    things.push("store none in a part");
                }
            }
            Command::NextSubpass => subpass += 1,
            Command::EndRenderPass => is_loading = false,
            Command::Action(_) if is_loading && subpass == 0 => is_loading = false,
            Command::Action(_) if is_loading => things.push("load before another subpass draws"),
            _ => {}
        }
    }
}

fn load_store_features(load: LoadOp, store: StoreOp, things: &mut Vec<&'static str>) {
    let all = [("load none", load == LoadOp::None), ("store none", store == StoreOp::None)];
    things.extend(all.into_iter().filter(|it| it.1).map(|it| it.0));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EnclosingPass {
    Nothing,
    Pass,
    Rendering,
}

fn command_sequence_features(commands: &[Command], things: &mut Vec<&'static str>) {
    let (mut inside, mut is_suspended) = (EnclosingPass::Nothing, false);
    for command in commands {
        match command {
            Command::BeginRenderPass { .. } => inside = EnclosingPass::Pass,
            Command::BeginRendering(begin_rendering) => {
                inside = EnclosingPass::Rendering;
                if begin_rendering.is_resuming && !is_suspended {
                    things.push("rendering resumed elsewhere");
                }
                is_suspended = begin_rendering.is_suspending;
                begin_rendering.attachments.iter().for_each(|it| load_store_features(it.load, it.store, things));
                if begin_rendering.view_mask != 0 {
                    things.push("multiview");
                }
            }
            Command::EndRenderPass | Command::EndRendering => inside = EnclosingPass::Nothing,
            Command::Execute(_) if inside == EnclosingPass::Pass => things.push("execute in a pass"),
            Command::Execute(_) if inside == EnclosingPass::Rendering => things.push("execute in rendering"),
            Command::Action(accesses) => {
                let is_masked = |it: &Region| matches!(it, Region::Image(it) if it.components != Components::ALL);
                if accesses.iter().any(|it| it.order == RasterOrder::Color && is_masked(&it.region)) {
                    things.push("color write mask");
                }
                let is_input = |access: u64| access == AccessFlags2::INPUT_ATTACHMENT_READ.0;
                if accesses.iter().any(|it| it.order != RasterOrder::None && is_input(it.access)) {
                    things.push("ordered input");
                }
                let is_plain_write = |order, access| order == RasterOrder::None && is_write(access);
                if inside != EnclosingPass::Nothing && accesses.iter().any(|it| is_plain_write(it.order, it.access)) {
                    things.push("storage write in a pass");
                }
            }
            Command::Barrier(Barrier::Sync1 { dependencies, .. }) => {
                ownership_features(dependencies, things);
                if dependencies.iter().any(|it| matches!(it.target, DependencyTarget::QueueFamilyTransfer { .. })) {
                    things.push("ownership transfer 1");
                }
            }
            Command::Barrier(Barrier::Sync2 { dependencies }) => ownership_features(dependencies, things),
            _ => {}
        }
    }
}

/// An event that is set, and set or reset again with nothing but actions between.
fn event_features(commands: &[Command], things: &mut Vec<&'static str>) {
    for (index, command) in commands.iter().enumerate() {
        let Command::SetEvent(SetEvent::Sync1 { event, .. } | SetEvent::Sync2 { event, .. }) = command else {
            continue;
        };
        let next = commands[index + 1..].iter().find(|it| !matches!(it, Command::Action(_)));
        let is_again = match next {
            Some(Command::SetEvent(SetEvent::Sync1 { event: again, .. } | SetEvent::Sync2 { event: again, .. })) => {
                again == event
            }
            Some(Command::ResetEvent { event: again, stages }) => {
                again == event && *stages != PipelineStageFlags2::ALL_COMMANDS.0
            }
            _ => false,
        };
        things.extend(is_again.then_some("event race"));
    }
}

/// What happens around images that are presented.
fn presentation_features(program: &Program, things: &mut Vec<&'static str>) {
    let is_narrow = |stages: u64| stages & PipelineStageFlags2::ALL_COMMANDS.0 == 0;
    let (mut narrow, mut acquired) = (Vec::new(), Vec::new());
    for step in &program.steps {
        match step {
            HostStep::Submit { batches, .. } => {
                let signals = batches.iter().flat_map(|it| &it.signals).filter(|it| is_narrow(it.stages));
                narrow.extend(signals.map(|it| it.point.semaphore));
            }
            HostStep::Present { waits, .. } if waits.iter().any(|it| narrow.contains(it)) => {
                things.push("present after narrow signal");
            }
            HostStep::Acquire { image, .. } => {
                things.extend(acquired.contains(image).then_some("acquire again"));
                acquired.push(*image);
            }
            _ => {}
        }
    }
}

/// Markers at one place with nothing between them, and markers with a barrier behind them that has only the copy stage in
/// its first scope.
fn marker_features(commands: &[Command], things: &mut Vec<&'static str>) {
    let marker = |command: &Command| match command {
        Command::Action(accesses) => {
            accesses.first().filter(|it| it.order.marker_stage().is_some()).map(|it| (it.resource, it.region.clone()))
        }
        _ => None,
    };
    if commands.windows(2).any(|it| marker(&it[0]).is_some_and(|one| marker(&it[1]) == Some(one))) {
        things.push("markers of one place");
    }
    let is_after_copies = |command: &Command| match command {
        Command::Barrier(Barrier::Sync2 { dependencies }) => {
            dependencies.iter().any(|it| it.scope.src_stages == PipelineStageFlags2::COPY.0)
        }
        _ => false,
    };
    if commands.windows(2).any(|it| marker(&it[0]).is_some() && is_after_copies(&it[1])) {
        things.push("chain through a marker");
    }
}

fn ownership_features(dependencies: &[Dependency], things: &mut Vec<&'static str>) {
    let is_back = |it: &Dependency| matches!(&it.target, DependencyTarget::QueueFamilyTransfer { transfer, .. } if transfer.src_family > transfer.dst_family);
    if dependencies.iter().any(is_back) {
        things.push("ownership transfer back");
    }
}

fn waited_events(command: &Command) -> Vec<EventId> {
    match command {
        Command::WaitEvents(WaitEvents::Sync1 { events, .. }) => events.clone(),
        Command::WaitEvents(WaitEvents::Sync2 { events }) => events.iter().map(|it| it.0).collect(),
        _ => Vec::new(),
    }
}
