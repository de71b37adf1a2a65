//! Leaves out of random programs what the peer judges otherwise by design: the table in `docs/differences.md` has it,
//! and a run in which every other program needs it shows nothing.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use lavascope_scenario_live::{resolved_images, wants_one_sample};
use lavascope_sim::programs::clear_unused_buffers;
use lavascope_sync_ir::{
    Access, Area, Barrier, Command, CommandBuffer, CommandBufferId, Dependency, DependencyTarget, HostStep, Program,
    RasterOrder, RenderPass, Rendering, ResourceKind, SetEvent, StoreOp, SubpassDependency, SyncScope, WaitEvents,
};

use crate::command_buffer_events::separate_events;
use crate::queue_families::with_buffers_of_one_family;

/// What is left out, by the names that the document has.
#[cfg(test)]
pub(crate) const LIMITS: &[&str] = &[
    "order-across-instances",
    "transition-beside-a-barrier",
    "elements-of-version-1",
    "signals-of-some-stages",
    "events-of-one-command-buffer",
    "subpasses-without-dependency",
    "depth-resolve",
    "store-none",
    "part-of-an-attachment",
    "shader-writes-in-a-pass",
    "attachments-of-secondaries",
    "vertices-of-other-draws",
    "memory-not-followed",
];

/// The program without what the peer does not follow.
pub(crate) fn within_peer_limits(program: &Program) -> Program {
    let mut made = separate_events(&with_commands_of_secondaries(&with_buffers_of_one_family(program)));
    leave_out_copies_of_resolved(&mut made);
    // All attachments of random programs are of one size, but for what is resolved to.
    let extents = program.resources.iter().filter_map(|resource| match &resource.kind {
        ResourceKind::Image(image) if image.extent[1] > 1 => Some(image.extent),
        _ => None,
    });
    let attachment_extent = extents.min().unwrap_or([1; 3]);
    for command in made.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        match command {
            Command::BeginRendering(rendering) => fit_rendering(rendering, attachment_extent),
            Command::Action(accesses) => {
                let others = [A::INDEX_READ.0, A::INDIRECT_COMMAND_READ.0];
                let is_other = accesses.iter().any(|it| others.contains(&it.access));
                let is_vertex = |it: &Access| it.access == A::VERTEX_ATTRIBUTE_READ.0;
                accesses.retain(|it| !(is_lone_attachment(it) || is_other && is_vertex(it)));
            }
            Command::Barrier(Barrier::Sync1 { dependencies, .. })
            | Command::WaitEvents(WaitEvents::Sync1 { dependencies, .. }) => share_scopes(dependencies, SharedBy::All),
            Command::Barrier(Barrier::Sync2 { dependencies })
            | Command::SetEvent(SetEvent::Sync2 { dependencies, .. }) => {
                share_scopes(dependencies, SharedBy::Transitions)
            }
            Command::WaitEvents(WaitEvents::Sync2 { events }) => {
                events.iter_mut().for_each(|it| share_scopes(&mut it.1, SharedBy::Transitions))
            }
            _ => {}
        }
    }
    for step in &mut made.steps {
        let HostStep::Submit { batches, .. } = step else { continue };
        for batch in batches {
            batch.waits.iter_mut().for_each(|it| fill_stages(&mut it.stages));
            batch.signals.iter_mut().for_each(|it| it.stages = S::ALL_COMMANDS.0);
        }
    }
    for pass in &mut made.render_passes {
        fit_pass(pass);
    }
    let Program { command_buffers, render_passes, .. } = &mut made;
    for buffer in command_buffers {
        for command in &mut buffer.commands {
            if let Command::BeginRenderPass { pass, views, .. } = command {
                views.truncate(render_passes[pass.0 as usize].attachments.len());
            }
        }
        leave_out_writes_in_passes(buffer);
        separate_instances(&mut buffer.commands);
        buffer.commands.retain(|it| !matches!(it, Command::Action(accesses) if accesses.is_empty()));
    }
    made
}

/// What secondary command buffers do with attachments becomes part of the render pass itself: the peer does not follow
/// that. What their shaders access besides stays where it is.
fn with_commands_of_secondaries(program: &Program) -> Program {
    let mut made = program.clone();
    for buffer in made.command_buffers.iter_mut().filter(|it| !it.is_secondary) {
        let (mut is_inside, mut is_rendering) = (false, false);
        let mut commands = Vec::new();
        for command in buffer.commands.drain(..) {
            match &command {
                Command::BeginRenderPass { .. } => is_inside = true,
                Command::BeginRendering(_) => (is_inside, is_rendering) = (true, true),
                Command::EndRenderPass | Command::EndRendering => (is_inside, is_rendering) = (false, false),
                Command::Execute(all) if is_inside => {
                    let executed = all.iter().flat_map(|it| &program.command_buffers[it.0 as usize].commands);
                    // Rendering has no barriers inside.
                    let kept = executed.filter(|it| !(is_rendering && matches!(it, Command::Barrier(_))));
                    commands.extend(kept.filter_map(in_primary));
                }
                _ => {}
            }
            commands.push(command);
        }
        buffer.commands = commands;
    }
    for at in buffers_in_passes(program) {
        let commands = &mut made.command_buffers[at.0 as usize].commands;
        *commands = commands.drain(..).filter_map(|it| in_secondary(&it)).collect();
    }
    let empty: Vec<bool> = made.command_buffers.iter().map(|it| it.commands.is_empty()).collect();
    for buffer in &mut made.command_buffers {
        let is_empty = |it: &CommandBufferId| empty[it.0 as usize];
        buffer.commands.retain_mut(|command| match command {
            Command::Execute(all) => {
                all.retain(|it| !is_empty(it));
                !all.is_empty()
            }
            _ => true,
        });
    }
    clear_unused_buffers(made)
}

/// The secondary command buffers that continue a render pass.
fn buffers_in_passes(program: &Program) -> Vec<CommandBufferId> {
    let mut found = Vec::new();
    for buffer in program.command_buffers.iter().filter(|it| !it.is_secondary) {
        let mut is_inside = false;
        for command in &buffer.commands {
            match command {
                Command::BeginRenderPass { .. } | Command::BeginRendering(_) => is_inside = true,
                Command::EndRenderPass | Command::EndRendering => is_inside = false,
                Command::Execute(all) if is_inside => found.extend_from_slice(all),
                _ => {}
            }
        }
    }
    found
}

/// What of a command in a secondary command buffer stays there.
fn in_secondary(command: &Command) -> Option<Command> {
    let Command::Action(accesses) = command else { return None };
    let kept: Vec<Access> = accesses.iter().filter(|it| !is_of_attachment(it)).cloned().collect();
    (!kept.is_empty()).then_some(Command::Action(kept))
}

/// What of it becomes part of the primary one.
fn in_primary(command: &Command) -> Option<Command> {
    let Command::Action(accesses) = command else { return Some(command.clone()) };
    let kept: Vec<Access> = accesses.iter().filter(|it| is_of_attachment(it)).cloned().collect();
    (!kept.is_empty()).then_some(Command::Action(kept))
}

/// Color, depth and input attachments.
fn is_of_attachment(access: &Access) -> bool {
    let stages = S::COLOR_ATTACHMENT_OUTPUT.0 | S::EARLY_FRAGMENT_TESTS.0 | S::LATE_FRAGMENT_TESTS.0;
    access.stage & stages != 0 || access.access == A::INPUT_ATTACHMENT_READ.0
}

/// What is resolved has several samples, and is not copied.
fn leave_out_copies_of_resolved(program: &mut Program) {
    let resolved = resolved_images(program);
    for command in program.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        if let Command::Action(accesses) = command {
            accesses.retain(|it| !(resolved.contains(&it.resource) && wants_one_sample(it)));
        }
    }
}

/// What comes after a signal that waits for nothing depends on other signals and fences, which the peer keeps apart.
fn fill_stages(stages: &mut u64) {
    if *stages == 0 {
        *stages = S::ALL_COMMANDS.0;
    }
}

/// What attachments are used for.
const ATTACHMENTS: SyncScope = SyncScope {
    src_stages: ATTACHMENT_STAGES,
    src_access: A::COLOR_ATTACHMENT_WRITE.0 | A::DEPTH_STENCIL_ATTACHMENT_WRITE.0,
    dst_stages: ATTACHMENT_STAGES,
    dst_access: A::COLOR_ATTACHMENT_READ.0
        | A::COLOR_ATTACHMENT_WRITE.0
        | A::DEPTH_STENCIL_ATTACHMENT_READ.0
        | A::DEPTH_STENCIL_ATTACHMENT_WRITE.0,
};
const ATTACHMENT_STAGES: u64 =
    S::COLOR_ATTACHMENT_OUTPUT.0 | S::EARLY_FRAGMENT_TESTS.0 | S::LATE_FRAGMENT_TESTS.0 | S::FRAGMENT_SHADER.0;

/// The peer forgets what shaders write in a render pass where something was read before.
fn leave_out_writes_in_passes(buffer: &mut CommandBuffer) {
    let mut is_inside = buffer.is_secondary;
    for command in &mut buffer.commands {
        match command {
            Command::BeginRenderPass { .. } | Command::BeginRendering(_) => is_inside = true,
            Command::EndRenderPass | Command::EndRendering => is_inside = buffer.is_secondary,
            Command::Action(accesses) if is_inside => {
                let is_write = |it: &Access| it.access == A::SHADER_STORAGE_WRITE.0 && it.stage == S::FRAGMENT_SHADER.0;
                accesses.retain(|it| !is_write(it));
            }
            _ => {}
        }
    }
}

/// For the peer the order of fragments goes from one instance of a render pass to the next.
fn separate_instances(commands: &mut Vec<Command>) {
    let barrier = || {
        let dependency = Dependency { scope: ATTACHMENTS, target: DependencyTarget::Global };
        Command::Barrier(Barrier::Sync2 { dependencies: vec![dependency] })
    };
    let is_own = |it: Option<&Command>| it.is_some_and(|it| *it == barrier());
    let mut made = Vec::new();
    for command in commands.drain(..) {
        let begins = match &command {
            Command::BeginRenderPass { .. } => true,
            Command::BeginRendering(rendering) => !rendering.is_resuming,
            _ => false,
        };
        if begins && !is_own(made.last()) {
            made.push(barrier());
        }
        made.push(command);
    }
    *commands = made;
}

/// Between subpasses that use the same attachments there must be a dependency. The peer resolves depth without a
/// transition before, and stores depth where it shall not.
fn fit_pass(pass: &mut RenderPass) {
    for dst in 1..pass.subpasses.len() as u32 {
        let (src, dst) = (Some(dst - 1), Some(dst));
        match pass.dependencies.iter_mut().find(|it| (it.src, it.dst) == (src, dst)) {
            Some(own) => own.scope = union(own.scope, ATTACHMENTS),
            None => pass.dependencies.push(SubpassDependency { src, dst, scope: ATTACHMENTS, view_offset: None }),
        }
    }
    if pass.subpasses.iter_mut().any(|it| it.depth_stencil_resolve.take().is_some()) {
        pass.attachments.pop();
    }
    for attachment in &mut pass.attachments {
        store(&mut attachment.store);
        store(&mut attachment.stencil_store);
    }
}

/// Everything is stored. For the peer dynamic rendering stores all of its
/// attachments, resolves all of their layers, and writes nothing beside the render area.
fn fit_rendering(rendering: &mut Rendering, extent: [u32; 3]) {
    rendering.area = Area { offset: [0; 3], extent };
    for attachment in &mut rendering.attachments {
        store(&mut attachment.store);
        attachment.resolve = None;
    }
}

fn store(op: &mut StoreOp) {
    if *op == StoreOp::None {
        *op = StoreOp::Store;
    }
}

/// Whether every acquire of an image is waited for: the peer knows of no acquire before the first presentation.
pub(crate) fn waits_for_acquires(program: &Program) -> bool {
    let batches = program.steps.iter().filter_map(|step| match step {
        HostStep::Submit { batches, .. } => Some(batches),
        _ => None,
    });
    let waited: Vec<_> = batches.flatten().flat_map(|it| &it.waits).map(|it| it.point.semaphore).collect();
    program.steps.iter().all(|step| match step {
        HostStep::Acquire { semaphore: Some(semaphore), .. } => waited.contains(semaphore),
        _ => true,
    })
}

/// A draw with a render pass instance of its own: the peer has the order of fragments across instances, too.
fn is_lone_attachment(access: &Access) -> bool {
    let stages = S::COLOR_ATTACHMENT_OUTPUT.0 | S::EARLY_FRAGMENT_TESTS.0 | S::LATE_FRAGMENT_TESTS.0;
    let is_input = access.access == A::INPUT_ATTACHMENT_READ.0;
    access.order == RasterOrder::None && access.stage & stages != 0 && !is_input
}

/// Which dependencies of a command get the masks of all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SharedBy {
    /// The peer lets each barrier of a command cover what the transitions of that command write.
    Transitions,
    /// In version 1 the access scopes are those of all elements together, and the peer keeps the elements apart.
    All,
}

fn share_scopes(dependencies: &mut [Dependency], shared_by: SharedBy) {
    let all = dependencies.iter().fold(SyncScope::default(), |all, it| union(all, it.scope));
    let is_transition = |it: &Dependency| matches!(it.target, DependencyTarget::Transition { .. });
    let shares = |it: &&mut Dependency| shared_by == SharedBy::All || is_transition(it);
    dependencies.iter_mut().filter(shares).for_each(|it| it.scope = all);
}

fn union(one: SyncScope, other: SyncScope) -> SyncScope {
    SyncScope {
        src_stages: one.src_stages | other.src_stages,
        src_access: one.src_access | other.src_access,
        dst_stages: one.dst_stages | other.dst_stages,
        dst_access: one.dst_access | other.dst_access,
    }
}
