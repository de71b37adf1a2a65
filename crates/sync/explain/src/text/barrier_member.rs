//! Which barrier of a call a dependency is: `pImageMemoryBarriers[1]`.

use lavascope_sync_ir::{Command, Dependency, DependencyTarget, Program, ResourceKind, WaitEvents};

use super::message::{CommandDependencies, dependencies};
use crate::OperationLocation;

/// The barrier as a member of the call's parameters, if the call has several barriers. For a location without an index,
/// that is the first barrier for all memory.
pub(crate) fn barrier_member(program: &Program, location: OperationLocation) -> Option<String> {
    let CommandDependencies { all, element, .. } = dependencies(program, with_index(program, location)?)?;
    let index = array_index(program, all, element)?;
    let array = array_of(program, &all[element]);
    let member = format!("{array}[{index}]");
    match wait_index(program, location) {
        Some(event) => Some(format!("pDependencyInfos[{event}].{member}")),
        None => (all.len() > 1).then_some(member),
    }
}

/// The index of a dependency among the barriers of its type.
pub(crate) fn array_index(program: &Program, all: &[Dependency], element: usize) -> Option<usize> {
    let array = array_of(program, all.get(element)?);
    Some(all[..element].iter().filter(|it| array_of(program, it) == array).count())
}

/// The member that has barriers of this type.
pub(crate) fn array_of(program: &Program, dependency: &Dependency) -> &'static str {
    match &dependency.target {
        DependencyTarget::Global => "pMemoryBarriers",
        DependencyTarget::Resource { resource, .. }
        | DependencyTarget::Transition { resource, .. }
        | DependencyTarget::QueueFamilyTransfer { resource, .. } => {
            let kind = program.resources.get(resource.0 as usize).map(|it| &it.kind);
            if matches!(kind, Some(ResourceKind::Image(_))) { "pImageMemoryBarriers" } else { "pBufferMemoryBarriers" }
        }
    }
}

/// The location of a dependency. Edits of the masks of a whole command change its first barrier for all memory.
fn with_index(program: &Program, location: OperationLocation) -> Option<OperationLocation> {
    let first = |at: OperationLocation| {
        let all = dependencies(program, at)?.all;
        all.iter().position(|it| it.target == DependencyTarget::Global).map(|it| it as u32)
    };
    match location {
        OperationLocation::Barrier { buffer, command, dependency: None } => {
            let at = |index| OperationLocation::Barrier { buffer, command, dependency: Some(index) };
            first(at(0)).map(at)
        }
        OperationLocation::Event { set, buffer, command, event, dependency: None } => {
            let at = |index| OperationLocation::Event { set, buffer, command, event, dependency: Some(index) };
            first(at(0)).map(at)
        }
        _ => Some(location),
    }
}

/// The index of an event in `vkCmdWaitEvents2`, which has barriers for each event, if it waits for several.
fn wait_index(program: &Program, location: OperationLocation) -> Option<u32> {
    let OperationLocation::Event { buffer, command, event, .. } = location else { return None };
    let command = program.command_buffers.get(buffer.0 as usize)?.commands.get(command as usize)?;
    let Command::WaitEvents(WaitEvents::Sync2 { events }) = command else { return None };
    (events.len() > 1).then_some(event)
}
