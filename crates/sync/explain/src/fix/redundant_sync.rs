//! Finds synchronization that is not needed. A part is not needed if the check reports the same
//! hazards without it.

use lavascope_sync_ir::{
    Barrier, Command, CommandBufferId, DependencyTarget, HostStep, Program, RenderPassId, SyncScope, WaitEvents,
};

use super::apply::edit;
use crate::follow::timeline::{ExecutionTimeline, TimelineAction};
use crate::{BatchSemaphoreLocation, OperationLocation};
use lavascope_engine::access::usages::SYNC_TABLES;
use lavascope_engine::check;
use lavascope_engine::dependency::scopes::ExpandedScope;

/// The maximum number of checks of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckBudget {
    pub checks_max: usize,
}

/// The findings, and the number of changes that were not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct OverSynchronization {
    /// The operation that orders the most accesses comes first.
    pub redundant: Vec<RedundantSync>,
    /// The number of checks.
    pub checks: usize,
    /// The number of changes that were not checked, because the budget was spent.
    pub untried: usize,
}

/// An operation, or bits of its masks, that can be removed alone. If two barriers do the same, both
/// are reported, although one of them is needed.
#[derive(Clone, Debug, PartialEq)]
pub struct RedundantSync {
    pub location: OperationLocation,
    pub removal: Removal,
    /// The number of accesses that it orders without need.
    pub accesses: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    Whole,
    /// Only these bits of its masks.
    Bits(SyncScope),
}

/// Tries to remove parts of the synchronization: whole dependencies first, then single bits of the
/// dependencies that are needed.
pub fn find_over_synchronization(program: &Program, budget: CheckBudget) -> OverSynchronization {
    let verdicts = check(program);
    let timeline = ExecutionTimeline::new(program);
    let mut found = OverSynchronization { redundant: Vec::new(), checks: 0, untried: 0 };
    let is_needless = |found: &mut OverSynchronization, location: OperationLocation, what: Removal| {
        let Some(changed) = without_sync(program, location, what) else { return false };
        if found.checks >= budget.checks_max {
            found.untried += 1;
            return false;
        }
        found.checks += 1;
        check(&changed) == verdicts
    };
    for RemovableSync { location, scope, removability: whole } in sync_locations(program) {
        if whole == Removability::Removable && is_needless(&mut found, location, Removal::Whole) {
            let accesses = ordered_access_count(&timeline, location, scope);
            found.redundant.push(RedundantSync { location, removal: Removal::Whole, accesses });
            continue;
        }
        for bit in single_bits(scope) {
            let what = Removal::Bits(bit);
            if is_needless(&mut found, location, what) {
                let less = ordered_access_count(&timeline, location, minus(scope, bit));
                let accesses = ordered_access_count(&timeline, location, scope).saturating_sub(less);
                found.redundant.push(RedundantSync { location, removal: what, accesses });
            }
        }
    }
    // The sort is stable, so equal findings stay in the order of the program.
    found.redundant.sort_by_key(|it| std::cmp::Reverse(it.accesses));
    found
}

/// Whether a whole dependency may be removed. A layout transition must stay, because it does more
/// than order accesses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removability {
    Removable,
    Needed,
}

/// A synchronization operation that can be weakened, with its masks.
pub(crate) struct RemovableSync {
    pub(crate) location: OperationLocation,
    pub(crate) scope: SyncScope,
    pub(crate) removability: Removability,
}

/// All operations that can be weakened, with their masks.
pub(crate) fn sync_locations(program: &Program) -> Vec<RemovableSync> {
    let mut found = Vec::new();
    for (index, buffer) in program.command_buffers.iter().enumerate() {
        for (command, item) in buffer.commands.iter().enumerate() {
            command_sites(item, CommandBufferId(index as u32), command as u32, &mut found);
        }
    }
    for (index, pass) in program.render_passes.iter().enumerate() {
        for (dependency, subpass_dependency) in pass.dependencies.iter().enumerate() {
            let pass = RenderPassId(index as u32);
            let location = OperationLocation::Subpass { pass, dependency: Some(dependency as u32) };
            found.push(RemovableSync {
                location,
                scope: subpass_dependency.scope,
                removability: Removability::Removable,
            });
        }
    }
    for (step, host_step) in program.steps.iter().enumerate() {
        let HostStep::Submit { batches, .. } = host_step else { continue };
        for (batch, submit_batch) in batches.iter().enumerate() {
            let part =
                |index: usize| BatchSemaphoreLocation { step: step as u32, batch: batch as u32, index: index as u32 };
            for (index, semaphore_signal) in submit_batch.signals.iter().enumerate() {
                let location = OperationLocation::Semaphore { signal: Some(part(index)), wait: None };
                found.push(RemovableSync {
                    location,
                    scope: SyncScope { src_stages: semaphore_signal.stages, ..SyncScope::default() },
                    removability: Removability::Needed,
                });
            }
            for (index, semaphore_wait) in submit_batch.waits.iter().enumerate() {
                let location = OperationLocation::Semaphore { signal: None, wait: Some(part(index)) };
                found.push(RemovableSync {
                    location,
                    scope: SyncScope { dst_stages: semaphore_wait.stages, ..SyncScope::default() },
                    removability: Removability::Needed,
                });
            }
        }
    }
    found
}

fn command_sites(command: &Command, buffer: CommandBufferId, index: u32, found: &mut Vec<RemovableSync>) {
    let whole = |dependency_target: &DependencyTarget| match dependency_target {
        DependencyTarget::Global | DependencyTarget::Resource { .. } => Removability::Removable,
        DependencyTarget::Transition { .. } | DependencyTarget::QueueFamilyTransfer { .. } => Removability::Needed,
    };
    match command {
        Command::Barrier(Barrier::Sync2 { dependencies }) => {
            for (element, item) in dependencies.iter().enumerate() {
                let location = OperationLocation::Barrier { buffer, command: index, dependency: Some(element as u32) };
                found.push(RemovableSync { location, scope: item.scope, removability: whole(&item.target) });
            }
        }
        Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies }) => {
            let all = dependencies.iter().all(|it| whole(&it.target) == Removability::Removable);
            let memory = dependencies
                .iter()
                .find(|it| it.target == DependencyTarget::Global)
                .map_or(SyncScope::default(), |it| it.scope);
            let scope = SyncScope { src_stages: *src_stages, dst_stages: *dst_stages, ..memory };
            let location = OperationLocation::Barrier { buffer, command: index, dependency: None };
            let removability = if all { Removability::Removable } else { Removability::Needed };
            found.push(RemovableSync { location, scope, removability });
        }
        Command::WaitEvents(WaitEvents::Sync2 { events }) => {
            for (event, (_, dependencies)) in events.iter().enumerate() {
                for (element, item) in dependencies.iter().enumerate() {
                    let (event, element) = (event as u32, Some(element as u32));
                    let location =
                        OperationLocation::Event { set: None, buffer, command: index, event, dependency: element };
                    found.push(RemovableSync { location, scope: item.scope, removability: whole(&item.target) });
                }
            }
        }
        Command::WaitEvents(WaitEvents::Sync1 { src_stages, dst_stages, dependencies, .. }) => {
            let memory = dependencies
                .iter()
                .find(|it| it.target == DependencyTarget::Global)
                .map_or(SyncScope::default(), |it| it.scope);
            let scope = SyncScope { src_stages: *src_stages, dst_stages: *dst_stages, ..memory };
            let location = OperationLocation::Event { set: None, buffer, command: index, event: 0, dependency: None };
            found.push(RemovableSync { location, scope, removability: Removability::Needed });
        }
        _ => {}
    }
}

/// The program without an operation or without some of its bits. The locations of all commands stay
/// the same.
pub(crate) fn without_sync(program: &Program, location: OperationLocation, what: Removal) -> Option<Program> {
    let mut changed = program.clone();
    match what {
        Removal::Bits(bits) => edit(&mut changed, location, &mut |scope| *scope = minus(*scope, bits))?,
        Removal::Whole => remove(&mut changed, location)?,
    }
    Some(changed)
}

fn remove(program: &mut Program, location: OperationLocation) -> Option<()> {
    match location {
        OperationLocation::Barrier { buffer, command, dependency: element } => {
            let commands = &mut program.command_buffers.get_mut(buffer.0 as usize)?.commands;
            match (commands.get_mut(command as usize)?, element) {
                (Command::Barrier(Barrier::Sync2 { dependencies }), Some(element)) => {
                    dependencies.remove(element as usize);
                }
                (item @ Command::Barrier(Barrier::Sync1 { .. }), None) => {
                    *item = Command::Barrier(Barrier::Sync2 { dependencies: Vec::new() });
                }
                _ => return None,
            }
        }
        OperationLocation::Event { buffer, command, event, dependency: Some(element), .. } => {
            let commands = &mut program.command_buffers.get_mut(buffer.0 as usize)?.commands;
            let Command::WaitEvents(WaitEvents::Sync2 { events }) = commands.get_mut(command as usize)? else {
                return None;
            };
            events.get_mut(event as usize)?.1.remove(element as usize);
        }
        OperationLocation::Subpass { pass, dependency: Some(index) } => {
            program.render_passes.get_mut(pass.0 as usize)?.dependencies.remove(index as usize);
        }
        _ => return None,
    }
    Some(())
}

fn minus(left: SyncScope, right: SyncScope) -> SyncScope {
    SyncScope {
        src_stages: left.src_stages & !right.src_stages,
        src_access: left.src_access & !right.src_access,
        dst_stages: left.dst_stages & !right.dst_stages,
        dst_access: left.dst_access & !right.dst_access,
    }
}

/// Each bit of the masks alone.
pub(crate) fn single_bits(scope: SyncScope) -> Vec<SyncScope> {
    let bits = |mask: u64| (0..64).map(|it| 1_u64 << it).filter(move |it| mask & it != 0);
    let none = SyncScope::default;
    let all = bits(scope.src_stages).map(|it| SyncScope { src_stages: it, ..none() });
    let all = all.chain(bits(scope.src_access).map(|it| SyncScope { src_access: it, ..none() }));
    let all = all.chain(bits(scope.dst_stages).map(|it| SyncScope { dst_stages: it, ..none() }));
    all.chain(bits(scope.dst_access).map(|it| SyncScope { dst_access: it, ..none() })).collect()
}

/// The number of accesses in the scopes of an operation, over all its executions: earlier accesses
/// in the first scope and later accesses in the second scope. Zero if one of the two is empty.
fn ordered_access_count(timeline: &ExecutionTimeline<'_>, location: OperationLocation, scope: SyncScope) -> usize {
    let mut total = 0;
    for (index, moment) in timeline.moments.iter().enumerate() {
        if !is_execution_of(&moment.action, location) {
            continue;
        }
        let flags = timeline.program.queues.get(usize::from(moment.queue)).map_or(0, |it| it.flags);
        let expanded = ExpandedScope::new(scope, flags);
        let on_queue = timeline.accesses().filter(|it| timeline.moments[it.0].queue == moment.queue);
        let (mut before, mut after) = (0, 0);
        for (at, used) in on_queue {
            let stage = SYNC_TABLES.stage(used.usage);
            before += usize::from(at < index && expanded.src.has(stage));
            after += usize::from(at > index && expanded.dst.has(stage));
        }
        total += match location {
            // The other scope of a semaphore is on another queue.
            OperationLocation::Semaphore { .. } => before + after,
            _ if before == 0 || after == 0 => 0,
            _ => before + after,
        };
    }
    total
}

fn is_execution_of(what: &TimelineAction, location: OperationLocation) -> bool {
    let same_site = |executed_dependency: &crate::follow::dependency::ExecutedDependency| match (
        executed_dependency.location,
        location,
    ) {
        (
            OperationLocation::Event { buffer, command, event, dependency: element, .. },
            OperationLocation::Event { buffer: b, command: c, event: e, dependency: l, .. },
        ) => (buffer, command, event, element) == (b, c, e, l),
        (left, right) => left == right,
    };
    match (what, location) {
        (TimelineAction::Depends(all) | TimelineAction::SubpassBegins(all) | TimelineAction::PassEnds(all), _) => {
            all.iter().any(same_site)
        }
        (TimelineAction::Signals { location: part, .. }, OperationLocation::Semaphore { signal: Some(own), .. }) => {
            *part == own
        }
        (TimelineAction::Waits { location: part, .. }, OperationLocation::Semaphore { wait: Some(own), .. }) => {
            *part == own
        }
        _ => false,
    }
}
