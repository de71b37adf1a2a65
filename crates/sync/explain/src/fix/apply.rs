//! Applies a change to a copy of a program, and maps locations to the changed program.

use lavascope_sync_ir::{
    Barrier, Command, CommandBufferId, Dependency, DependencyTarget, HostStep, Program, ProgramLocation, SemaphoreId,
    SemaphorePoint, SemaphoreSignal, SemaphoreWait, SetEvent, SubmitBatch, SyncScope, WaitEvents,
};

use super::change::{BatchLocation, HostWait, ProgramChange};
use super::sync_version::SyncVersion;
use crate::{BatchSemaphoreLocation, OperationLocation};

/// The program with the change. None if the change does not fit the program.
pub(crate) fn apply(program: &Program, change: &ProgramChange) -> Option<Program> {
    let mut changed = program.clone();
    let item = &mut changed;
    match change {
        ProgramChange::AddBits { location, bits, .. } => {
            edit(item, *location, &mut |scope| *scope = join(*scope, *bits))?
        }
        ProgramChange::ExtendRange { location, region, .. } => match dependency_target_at(item, *location)? {
            DependencyTarget::Resource { region: own, .. } | DependencyTarget::Transition { region: own, .. } => {
                *own = region.clone()
            }
            DependencyTarget::Global | DependencyTarget::QueueFamilyTransfer { .. } => return None,
        },
        ProgramChange::InsertBarrier { buffer, before, dependency, version, .. } => {
            let commands = &mut item.command_buffers.get_mut(buffer.0 as usize)?.commands;
            let dependencies = vec![dependency.clone()];
            let SyncScope { src_stages, dst_stages, .. } = dependency.scope;
            let barrier = match version {
                SyncVersion::One => Barrier::Sync1 { src_stages, dst_stages, dependencies },
                SyncVersion::Two => Barrier::Sync2 { dependencies },
            };
            commands.insert((*before as usize).min(commands.len()), Command::Barrier(barrier));
        }
        ProgramChange::AddSubpassDependency { pass, dependency, .. } => {
            item.render_passes.get_mut(pass.0 as usize)?.dependencies.push(*dependency);
        }
        ProgramChange::AddSemaphore { signal, signal_stages: after, wait, wait_stages: at } => {
            let point = new_semaphore(item);
            batch(item, *signal)?.signals.push(SemaphoreSignal { point, stages: *after });
            batch(item, *wait)?.waits.push(SemaphoreWait { point, stages: *at });
        }
        ProgramChange::AddPresentWait { signal, signal_stages: after, present } => {
            let point = new_semaphore(item);
            batch(item, *signal)?.signals.push(SemaphoreSignal { point, stages: *after });
            let Some(HostStep::Present { waits, .. }) = item.steps.get_mut(*present as usize) else { return None };
            waits.push(point.semaphore);
        }
        ProgramChange::AddWait { semaphore, wait, wait_stages: at } => {
            let point = SemaphorePoint { semaphore: *semaphore, value: None };
            batch(item, *wait)?.waits.push(SemaphoreWait { point, stages: *at });
        }
        ProgramChange::InsertHostWait { before, wait } => {
            let step = match wait {
                HostWait::Fence(fence) => HostStep::WaitFences(vec![*fence]),
                HostWait::Queue(queue) => HostStep::QueueIdle(*queue),
            };
            item.steps.insert((*before as usize).min(item.steps.len()), step);
        }
    }
    Some(changed)
}

/// The location of a command or a step after a change.
pub(crate) fn location_after_change(
    program: &Program,
    change: &ProgramChange,
    place: &ProgramLocation,
) -> ProgramLocation {
    match (change, place) {
        (ProgramChange::InsertHostWait { before, .. }, ProgramLocation::Step(step)) => {
            ProgramLocation::Step(index_after_insert(*step, *before))
        }
        (ProgramChange::InsertHostWait { before, .. }, ProgramLocation::Command(at)) => {
            let mut at = at.clone();
            at.step = index_after_insert(at.step, *before);
            ProgramLocation::Command(at)
        }
        (ProgramChange::InsertBarrier { buffer, before, .. }, ProgramLocation::Command(at)) => {
            let mut at = at.clone();
            let path = at.path.clone();
            for (level, own) in buffers_of(program, place).into_iter().enumerate() {
                if own == *buffer {
                    at.path[level * 2] = index_after_insert(path[level * 2], *before);
                }
            }
            ProgramLocation::Command(at)
        }
        _ => place.clone(),
    }
}

fn index_after_insert(index: u32, before: u32) -> u32 {
    if index >= before { index + 1 } else { index }
}

/// The command buffers that contain a location, outermost first.
pub(crate) fn buffers_of(program: &Program, place: &ProgramLocation) -> Vec<CommandBufferId> {
    let ProgramLocation::Command(at) = place else { return Vec::new() };
    let Some(HostStep::Submit { batches, .. }) = program.steps.get(at.step as usize) else { return Vec::new() };
    let batch = batches.get(at.batch as usize);
    let Some(first) = batch.and_then(|it| it.command_buffers.get(at.primary as usize)) else { return Vec::new() };
    let mut found = vec![*first];
    for step in at.path.chunks_exact(2) {
        let buffer = found.last().and_then(|it| program.command_buffers.get(it.0 as usize));
        let command = buffer.and_then(|it| it.commands.get(step[0] as usize));
        let Some(Command::Execute(buffers)) = command else { break };
        found.extend(buffers.get(step[1] as usize));
    }
    found
}

fn join(left: SyncScope, right: SyncScope) -> SyncScope {
    SyncScope {
        src_stages: left.src_stages | right.src_stages,
        src_access: left.src_access | right.src_access,
        dst_stages: left.dst_stages | right.dst_stages,
        dst_access: left.dst_access | right.dst_access,
    }
}

pub(crate) fn union(left: SyncScope, right: SyncScope) -> SyncScope {
    join(left, right)
}

/// Changes the masks of an operation in the program.
pub(crate) fn edit(
    program: &mut Program,
    location: OperationLocation,
    change: &mut dyn FnMut(&mut SyncScope),
) -> Option<()> {
    match location {
        OperationLocation::Barrier { buffer, command, dependency: element } => {
            let Command::Barrier(barrier) = command_at(program, buffer, command)? else { return None };
            match barrier {
                Barrier::Sync1 { src_stages, dst_stages, dependencies } => {
                    edit_version_1(src_stages, dst_stages, dependencies, element, change)?;
                }
                Barrier::Sync2 { dependencies } => change(&mut dependencies.get_mut(element? as usize)?.scope),
            }
        }
        OperationLocation::Event { set, buffer, command, event, dependency: element } => {
            edit_wait(command_at(program, buffer, command)?, event, element, change)?;
            if let Some((buffer, command)) = set {
                edit_set(command_at(program, buffer, command)?, element, change)?;
            }
        }
        OperationLocation::Subpass { pass, dependency } => {
            let pass = program.render_passes.get_mut(pass.0 as usize)?;
            change(&mut pass.dependencies.get_mut(dependency? as usize)?.scope);
        }
        OperationLocation::Semaphore { signal, wait } => {
            if let Some(part) = signal {
                let signal = batch_part(program, part)?.signals.get_mut(part.index as usize)?;
                let mut scope = SyncScope { src_stages: signal.stages, ..SyncScope::default() };
                change(&mut scope);
                signal.stages = scope.src_stages;
            }
            if let Some(part) = wait {
                let wait = batch_part(program, part)?.waits.get_mut(part.index as usize)?;
                let mut scope = SyncScope { dst_stages: wait.stages, ..SyncScope::default() };
                change(&mut scope);
                wait.stages = scope.dst_stages;
            }
        }
        OperationLocation::SetEvent { buffer, command } => {
            edit_set(command_at(program, buffer, command)?, None, change)?
        }
        OperationLocation::Step(_) => return None,
    }
    Some(())
}

/// In version 1, the command has the stage masks, and its dependencies have the access masks.
fn edit_version_1(
    src_stages: &mut u64,
    dst_stages: &mut u64,
    dependencies: &mut Vec<Dependency>,
    element: Option<u32>,
    change: &mut dyn FnMut(&mut SyncScope),
) -> Option<()> {
    let place = match element {
        // The fix of another hazard may be tried on a command with fewer elements.
        Some(index) => Some(index as usize).filter(|it| *it < dependencies.len())?,
        None => dependencies.iter().position(|it| it.target == DependencyTarget::Global).unwrap_or(dependencies.len()),
    };
    let is_new = place == dependencies.len();
    let access = dependencies.get(place).map_or(SyncScope::default(), |it| it.scope);
    let mut scope = SyncScope { src_stages: *src_stages, dst_stages: *dst_stages, ..access };
    change(&mut scope);
    (*src_stages, *dst_stages) = (scope.src_stages, scope.dst_stages);
    if is_new {
        if scope.src_access | scope.dst_access != 0 {
            dependencies.push(Dependency { scope, target: DependencyTarget::Global });
        }
    } else {
        dependencies[place].scope = scope;
    }
    Some(())
}

fn edit_wait(
    command: &mut Command,
    event: u32,
    element: Option<u32>,
    change: &mut dyn FnMut(&mut SyncScope),
) -> Option<()> {
    match command {
        Command::WaitEvents(WaitEvents::Sync1 { src_stages, dst_stages, dependencies, .. }) => {
            edit_version_1(src_stages, dst_stages, dependencies, element, change)
        }
        Command::WaitEvents(WaitEvents::Sync2 { events }) => {
            let dependencies = &mut events.get_mut(event as usize)?.1;
            change(&mut dependencies.get_mut(element? as usize)?.scope);
            Some(())
        }
        _ => None,
    }
}

fn edit_set(command: &mut Command, element: Option<u32>, change: &mut dyn FnMut(&mut SyncScope)) -> Option<()> {
    match command {
        Command::SetEvent(SetEvent::Sync1 { stages, .. }) => {
            let mut scope = SyncScope { src_stages: *stages, ..SyncScope::default() };
            change(&mut scope);
            *stages = scope.src_stages;
        }
        Command::SetEvent(SetEvent::Sync2 { dependencies, .. }) => {
            change(&mut dependencies.get_mut(element? as usize)?.scope);
        }
        _ => return None,
    }
    Some(())
}

fn command_at(program: &mut Program, buffer: CommandBufferId, command: u32) -> Option<&mut Command> {
    program.command_buffers.get_mut(buffer.0 as usize)?.commands.get_mut(command as usize)
}

/// The target of a dependency: global memory, a resource, or a transition.
fn dependency_target_at(program: &mut Program, location: OperationLocation) -> Option<&mut DependencyTarget> {
    let (OperationLocation::Barrier { buffer, command, dependency: element }
    | OperationLocation::Event { buffer, command, dependency: element, .. }) = location
    else {
        return None;
    };
    let dependencies = match command_at(program, buffer, command)? {
        Command::Barrier(Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies }) => dependencies,
        Command::WaitEvents(WaitEvents::Sync1 { dependencies, .. }) => dependencies,
        Command::WaitEvents(WaitEvents::Sync2 { events }) => {
            let OperationLocation::Event { event, .. } = location else { return None };
            &mut events.get_mut(event as usize)?.1
        }
        _ => return None,
    };
    Some(&mut dependencies.get_mut(element? as usize)?.target)
}

fn new_semaphore(program: &mut Program) -> SemaphorePoint {
    program.semaphore_count += 1;
    SemaphorePoint { semaphore: SemaphoreId(program.semaphore_count - 1), value: None }
}

fn batch(program: &mut Program, location: BatchLocation) -> Option<&mut SubmitBatch> {
    let HostStep::Submit { batches, .. } = program.steps.get_mut(location.step as usize)? else { return None };
    batches.get_mut(location.batch as usize)
}

fn batch_part(program: &mut Program, part: BatchSemaphoreLocation) -> Option<&mut SubmitBatch> {
    batch(program, BatchLocation::new(part.step, part.batch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_that_a_barrier_lacks_cannot_be_edited() {
        let scope = SyncScope { src_access: 1, ..SyncScope::default() };
        let mut dependencies = vec![Dependency { scope, target: DependencyTarget::Global }];
        let mut edit_element = |element| edit_version_1(&mut 1, &mut 1, &mut dependencies, element, &mut |_| ());
        assert_eq!(edit_element(Some(0)), Some(()));
        assert_eq!(edit_element(None), Some(()));
        assert_eq!([1, 2].map(|it| edit_element(Some(it))), [None, None]);
    }
}
