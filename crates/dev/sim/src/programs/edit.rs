//! All the small ways to make a program smaller or weaker, by number.
//!
//! The shrinker tries them one after the other; the generator spoils good programs with a few of them.

use lavascope_sync_ir::{
    Barrier, Command, Dependency, DependencyTarget, EventId, HostStep, LoadOp, Program, Region, SetEvent, StoreOp,
    SubmitBatch, SyncScope, WaitEvents,
};

/// How many edits a program allows.
pub(crate) fn count_edits(program: &Program, which: EditSet) -> usize {
    let mut edit = EditCursor { which, target: usize::MAX, visited: 0 };
    walk(&mut program.clone(), &mut edit);
    edit.visited
}

/// A program with one edit applied; `number` is below what [`count_edits`] gave.
pub(crate) fn apply_edit(program: &Program, which: EditSet, number: usize) -> Program {
    let mut program = program.clone();
    walk(&mut program, &mut EditCursor { which, target: number, visited: 0 });
    repair_events(&mut program);
    program
}

/// Which edits count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditSet {
    /// Only those that take something away from synchronization.
    Weaken,
    All,
}

/// Walks over a program and does one thing where its time has come.
struct EditCursor {
    which: EditSet,
    target: usize,
    visited: usize,
}

impl EditCursor {
    fn advance_to_edit(&mut self, kind: EditSet) -> bool {
        if self.which == EditSet::Weaken && kind == EditSet::All {
            return false;
        }
        self.visited += 1;
        self.visited == self.target.saturating_add(1)
    }

    fn is_past_target(&self) -> bool {
        self.visited > self.target
    }

    /// Takes one element out of a list.
    fn remove<T>(&mut self, list: &mut Vec<T>, kind: EditSet) {
        let found = (0..list.len()).find(|_| self.advance_to_edit(kind));
        if let Some(at) = found {
            list.remove(at);
        }
    }

    /// Clears one bit of a mask.
    fn clear_bit(&mut self, mask: &mut u64) {
        let found = (0..64).filter(|it| *mask & (1 << it) != 0).find(|_| self.advance_to_edit(EditSet::Weaken));
        if let Some(bit) = found {
            *mask &= !(1 << bit);
        }
    }

    fn clear_bit_of_scope(&mut self, scope: &mut SyncScope) {
        self.clear_bit(&mut scope.src_stages);
        self.clear_bit(&mut scope.src_access);
        self.clear_bit(&mut scope.dst_stages);
        self.clear_bit(&mut scope.dst_access);
    }

    fn shrink_region(&mut self, region: &mut Region, kind: EditSet) {
        match region {
            Region::Buffer(bytes) if bytes.end - bytes.start > 1 => {
                if self.advance_to_edit(kind) {
                    bytes.start += 1;
                } else if self.advance_to_edit(kind) {
                    bytes.end -= 1;
                }
            }
            Region::Image(image) => {
                if let Some(area) = image.area.as_mut().filter(|it| it.extent[0] > 1) {
                    if self.advance_to_edit(kind) {
                        area.offset[0] += 1;
                        area.extent[0] -= 1;
                    } else if self.advance_to_edit(kind) {
                        area.extent[0] -= 1;
                    }
                }
                let bits: Vec<u32> = (0..32).map(|it| 1 << it).filter(|it| image.aspects & it != 0).collect();
                if bits.len() > 1 && self.advance_to_edit(kind) {
                    image.aspects = bits[0];
                }
            }
            Region::Buffer(_) => {}
        }
    }
}

fn walk(program: &mut Program, edit: &mut EditCursor) {
    edit.remove(&mut program.steps, EditSet::All);
    for step in &mut program.steps {
        walk_step(step, edit);
    }
    for buffer in &mut program.command_buffers {
        walk_commands(&mut buffer.commands, edit);
    }
    for pass in &mut program.render_passes {
        edit.remove(&mut pass.dependencies, EditSet::Weaken);
        for dependency in &mut pass.dependencies {
            edit.clear_bit_of_scope(&mut dependency.scope);
        }
        for attachment in &mut pass.attachments {
            walk_ops(&mut attachment.load, &mut attachment.store, edit);
            walk_ops(&mut attachment.stencil_load, &mut attachment.stencil_store, edit);
        }
    }
}

fn walk_step(step: &mut HostStep, edit: &mut EditCursor) {
    match step {
        HostStep::Submit { batches, .. } => {
            edit.remove(batches, EditSet::All);
            batches.iter_mut().for_each(|it| walk_batch(it, edit));
        }
        HostStep::Present { waits, .. } => edit.remove(waits, EditSet::Weaken),
        HostStep::BindSparse { waits, binds, .. } => {
            edit.remove(waits, EditSet::Weaken);
            edit.remove(binds, EditSet::All);
        }
        HostStep::HostAccess { region, .. } => edit.shrink_region(region, EditSet::All),
        _ => {}
    }
}

fn walk_batch(batch: &mut SubmitBatch, edit: &mut EditCursor) {
    edit.remove(&mut batch.waits, EditSet::Weaken);
    edit.remove(&mut batch.signals, EditSet::All);
    edit.remove(&mut batch.command_buffers, EditSet::All);
    batch.waits.iter_mut().for_each(|it| edit.clear_bit(&mut it.stages));
    batch.signals.iter_mut().for_each(|it| edit.clear_bit(&mut it.stages));
}

fn walk_commands(commands: &mut Vec<Command>, edit: &mut EditCursor) {
    for at in 0..commands.len() {
        let kind = match &commands[at] {
            Command::Barrier(_) | Command::SetEvent(_) | Command::WaitEvents(_) => EditSet::Weaken,
            // They go with their beginning.
            Command::NextSubpass | Command::EndRenderPass | Command::EndRendering => continue,
            _ => EditSet::All,
        };
        if edit.advance_to_edit(kind) {
            commands.drain(at..=render_pass_end(commands, at));
        }
        if edit.is_past_target() {
            return;
        }
    }
    for command in commands {
        walk_command(command, edit);
    }
}

/// Where the render pass ends that a command begins; the command itself if it begins none.
fn render_pass_end(commands: &[Command], begin: usize) -> usize {
    let is_end: fn(&Command) -> bool = match commands[begin] {
        Command::BeginRenderPass { .. } => |it| matches!(it, Command::EndRenderPass),
        Command::BeginRendering(_) => |it| matches!(it, Command::EndRendering),
        _ => return begin,
    };
    commands.iter().skip(begin).position(is_end).map_or(begin, |it| begin + it)
}

fn walk_command(command: &mut Command, edit: &mut EditCursor) {
    match command {
        Command::Action(accesses) => {
            if accesses.len() > 1 {
                edit.remove(accesses, EditSet::All);
            }
            accesses.iter_mut().for_each(|it| edit.shrink_region(&mut it.region, EditSet::All));
        }
        Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies }) => {
            edit.clear_bit(src_stages);
            edit.clear_bit(dst_stages);
            walk_dependencies(dependencies, edit);
        }
        Command::Barrier(Barrier::Sync2 { dependencies }) => walk_dependencies(dependencies, edit),
        Command::SetEvent(SetEvent::Sync1 { stages, .. }) => edit.clear_bit(stages),
        // These follow the waits.
        Command::SetEvent(SetEvent::Sync2 { .. }) => {}
        Command::WaitEvents(WaitEvents::Sync1 { dst_stages, dependencies, .. }) => {
            edit.clear_bit(dst_stages);
            walk_dependencies(dependencies, edit);
        }
        Command::WaitEvents(WaitEvents::Sync2 { events }) => {
            edit.remove(events, EditSet::Weaken);
            events.iter_mut().for_each(|(_, dependencies)| walk_dependencies(dependencies, edit));
        }
        Command::Execute(buffers) => edit.remove(buffers, EditSet::All),
        Command::BeginRendering(rendering) => {
            edit.remove(&mut rendering.attachments, EditSet::All);
            for attachment in &mut rendering.attachments {
                walk_ops(&mut attachment.load, &mut attachment.store, edit);
                if attachment.resolve.is_some() && edit.advance_to_edit(EditSet::All) {
                    attachment.resolve = None;
                }
            }
        }
        Command::ResetEvent { .. }
        | Command::BeginRenderPass { .. }
        | Command::NextSubpass
        | Command::EndRenderPass
        | Command::EndRendering => {}
    }
}

fn walk_dependencies(dependencies: &mut Vec<Dependency>, edit: &mut EditCursor) {
    edit.remove(dependencies, EditSet::Weaken);
    for dependency in dependencies {
        edit.clear_bit_of_scope(&mut dependency.scope);
        match &mut dependency.target {
            DependencyTarget::Global => {}
            DependencyTarget::Resource { region, .. } | DependencyTarget::Transition { region, .. } => {
                edit.shrink_region(region, EditSet::Weaken);
            }
            // The two halves must stay equal.
            DependencyTarget::QueueFamilyTransfer { .. } => {}
        }
    }
}

fn walk_ops(load: &mut LoadOp, store: &mut StoreOp, edit: &mut EditCursor) {
    if *load != LoadOp::None && edit.advance_to_edit(EditSet::All) {
        *load = LoadOp::None;
    }
    if *store != StoreOp::None && edit.advance_to_edit(EditSet::All) {
        *store = StoreOp::None;
    }
}

/// Keeps what must agree in agreement: the two ends of an event have equal dependencies, or equal stages.
pub(crate) fn repair_events(program: &mut Program) {
    let uses: Vec<_> = (0..program.event_count).map(|it| event_use(program, EventId(it))).collect();
    for command in program.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        match command {
            Command::SetEvent(SetEvent::Sync1 { event, stages }) => *stages = uses[event.0 as usize].stages,
            Command::SetEvent(SetEvent::Sync2 { event, dependencies }) => {
                dependencies.clone_from(&uses[event.0 as usize].dependencies);
            }
            Command::WaitEvents(WaitEvents::Sync1 { events, src_stages, .. }) => {
                let use_of = |it: &EventId| &uses[it.0 as usize];
                *src_stages = events.iter().map(use_of).fold(0, |all, it| all | it.stages | it.host);
            }
            Command::WaitEvents(WaitEvents::Sync2 { events }) => {
                events.iter_mut().for_each(|(event, it)| it.clone_from(&uses[event.0 as usize].dependencies));
            }
            _ => {}
        }
    }
}

/// What all uses of an event agree on.
struct EventUse {
    /// Of its first set, in version 1.
    stages: u64,
    /// The stage of the host, if it sets the event.
    host: u64,
    /// Of its first wait, in version 2.
    dependencies: Vec<Dependency>,
}

fn event_use(program: &Program, event: EventId) -> EventUse {
    let commands = || program.command_buffers.iter().flat_map(|it| &it.commands);
    let stages = commands().find_map(|command| match command {
        Command::SetEvent(SetEvent::Sync1 { event: event_id, stages }) if *event_id == event => Some(*stages),
        _ => None,
    });
    let dependencies = commands().find_map(|command| match command {
        Command::WaitEvents(WaitEvents::Sync2 { events }) => events.iter().find(|it| it.0 == event),
        _ => None,
    });
    let is_set_by_host = program.steps.contains(&HostStep::SetEvent(event));
    EventUse {
        stages: stages.unwrap_or(0),
        host: if is_set_by_host { lavascope_abi::PipelineStageFlags2::HOST.0 } else { 0 },
        dependencies: dependencies.map(|it| it.1.clone()).unwrap_or_default(),
    }
}
