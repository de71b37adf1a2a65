//! Splits barriers and event waits into single dependencies. Each has the location where a fix can
//! change it.

use lavascope_sync_ir::{
    Barrier, CommandBufferId, Dependency, DependencyTarget, EventId, ProgramLocation, QueueFamilyTransfer, Region,
    ResourceId, SetEvent, SyncScope, WaitEvents,
};

use super::timeline::{TimelineAction, TimelineBuilder};
use crate::{OperationLocation, SyncOperationKind, SyncVersion};
use lavascope_engine::access::usages::{StageSet, UsageSet};
use lavascope_engine::dependency::scopes::ExpandedScope;

/// One executed dependency.
#[derive(Clone)]
pub(crate) struct ExecutedDependency {
    pub(crate) kind: SyncOperationKind,
    pub(crate) location: OperationLocation,
    /// The masks that the application passed.
    pub(crate) given_scope: SyncScope,
    pub(crate) scope: ExpandedScope,
    pub(crate) resource_region: Option<ResourceRegion>,
    /// Whether it accesses the resource itself: a layout transition, or one half of a queue family
    /// ownership transfer.
    pub(crate) is_transition: bool,
    /// The half of a queue family ownership transfer that this dependency is, if any.
    pub(crate) ownership_half: Option<OwnershipHalf>,
    /// Whether it is from a version 1 command, where the whole command is one dependency.
    pub(crate) is_version_1: bool,
    pub(crate) first_scope_origin: FirstScopeOrigin,
    /// The destination subpass. None for barriers and event waits, and for dependencies to the
    /// outside of a render pass.
    pub(crate) second_subpass: Option<u32>,
}

impl ExecutedDependency {
    pub(crate) fn version(&self) -> SyncVersion {
        if self.is_version_1 { SyncVersion::One } else { SyncVersion::Two }
    }

    /// The subpasses that a subpass dependency connects.
    pub(crate) fn subpasses(&self) -> Option<(Option<u32>, Option<u32>)> {
        let src = match self.first_scope_origin {
            FirstScopeOrigin::Subpass(subpass) => Some(subpass),
            _ => None,
        };
        (self.kind == SyncOperationKind::SubpassDependency).then_some((src, self.second_subpass))
    }
}

/// The half of a queue family ownership transfer on one queue. The release has a first scope, and
/// the acquire has a second scope (`synchronization-queue-transfers`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnershipHalf {
    Release,
    Acquire,
}

/// The resource and the region that a dependency covers.
#[derive(Clone)]
pub(crate) struct ResourceRegion {
    pub(crate) resource: ResourceId,
    pub(crate) region: Region,
}

/// The part of a queue's work that the first scope of a dependency can include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstScopeOrigin {
    /// All earlier work of the queue. Inside a subpass, only the work in that subpass.
    Preceding,
    /// The work before an event was set, by the index of that moment.
    Event(usize),
    /// Nothing, because the event was not set.
    UnsetEvent,
    /// The work in a subpass that has ended.
    Subpass(u32),
    /// The work before the render pass instance.
    BeforeRenderPass,
}

/// The dependencies of a barrier command.
pub(crate) fn barrier_dependencies(
    builder: &TimelineBuilder<'_>,
    barrier: &Barrier,
    buffer: CommandBufferId,
    command: u32,
) -> Vec<ExecutedDependency> {
    let location = |element| OperationLocation::Barrier { buffer, command, dependency: element };
    let maker =
        DependencyBuilder { kind: SyncOperationKind::Barrier, flags: builder.flags(), family: builder.family() };
    match barrier {
        Barrier::Sync1 { src_stages, dst_stages, dependencies } => {
            maker.version_1(dependencies, (*src_stages, *dst_stages), location)
        }
        Barrier::Sync2 { dependencies } => maker.version_2(dependencies, location),
    }
}

/// The dependencies of an event wait. For each event, the first scope includes the work before the
/// event was set (`synchronization-events`).
pub(crate) fn event_wait_dependencies(
    builder: &TimelineBuilder<'_>,
    wait: &WaitEvents,
    buffer: CommandBufferId,
    command: u32,
) -> Vec<ExecutedDependency> {
    let mut found = Vec::new();
    let maker = DependencyBuilder { kind: SyncOperationKind::Event, flags: builder.flags(), family: builder.family() };
    let mut add = |index: usize, event: EventId, dependencies: &[Dependency], stages: Option<(u64, u64)>| {
        let set = builder.events.get(event.0 as usize).copied().flatten();
        let what = set.and_then(|it| builder.moments.get(it)).map(|it| &it.action);
        let (set_stages, given, recorded) = match what {
            Some(TimelineAction::SetsEvent { stages, given, recorded_at: recorded }) => (*stages, *given, *recorded),
            _ => (StageSet::default(), 0, None),
        };
        let location = |element| OperationLocation::Event {
            set: recorded,
            buffer,
            command,
            event: index as u32,
            dependency: element,
        };
        let elements = match stages {
            Some(stages) => maker.version_1(dependencies, stages, location),
            None => maker.version_2(dependencies, location),
        };
        found.extend(elements.into_iter().map(|mut executed_dependency| {
            executed_dependency.scope.src.0 &= set_stages.0;
            executed_dependency.given_scope.src_stages =
                if stages.is_some() { given } else { executed_dependency.given_scope.src_stages };
            executed_dependency.first_scope_origin = set.map_or(FirstScopeOrigin::UnsetEvent, FirstScopeOrigin::Event);
            executed_dependency
        }));
    };
    match wait {
        WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies } => {
            for (index, event) in events.iter().enumerate() {
                add(index, *event, dependencies, Some((*src_stages, *dst_stages)));
            }
        }
        WaitEvents::Sync2 { events } => {
            for (index, (event, dependencies)) in events.iter().enumerate() {
                add(index, *event, dependencies, None);
            }
        }
    }
    found
}

/// The event that a command sets, and the stages that come before the set.
pub(crate) fn set_stages(set: &SetEvent) -> (EventId, u64) {
    match set {
        SetEvent::Sync1 { event, stages } => (*event, *stages),
        SetEvent::Sync2 { event, dependencies } => {
            (*event, dependencies.iter().fold(0, |all, it| all | it.scope.src_stages))
        }
    }
}

/// Creates the dependencies of commands on one queue.
struct DependencyBuilder {
    kind: SyncOperationKind,
    flags: u32,
    family: u32,
}

impl DependencyBuilder {
    /// In version 2, each dependency is independent.
    fn version_2(
        &self,
        dependencies: &[Dependency],
        location: impl Fn(Option<u32>) -> OperationLocation,
    ) -> Vec<ExecutedDependency> {
        let element =
            |(index, it): (usize, &Dependency)| self.dependency(it, location(Some(index as u32)), it.scope, false);
        dependencies.iter().enumerate().map(element).collect()
    }

    /// In version 1, the command is one global dependency. Each resource dependency has the global
    /// accesses in addition to its own.
    fn version_1(
        &self,
        dependencies: &[Dependency],
        (src_stages, dst_stages): (u64, u64),
        location: impl Fn(Option<u32>) -> OperationLocation,
    ) -> Vec<ExecutedDependency> {
        let is_global = |it: &Dependency| matches!(it.target, DependencyTarget::Global);
        let mut global = SyncScope { src_stages, dst_stages, ..SyncScope::default() };
        for item in dependencies.iter().filter(|it| is_global(it)) {
            global.src_access |= item.scope.src_access;
            global.dst_access |= item.scope.dst_access;
        }
        let whole = Dependency { scope: global, target: DependencyTarget::Global };
        let mut found = vec![self.dependency(&whole, location(None), global, true)];
        let everywhere = found[0].scope;
        for (index, item) in dependencies.iter().enumerate().filter(|it| !is_global(it.1)) {
            let given = SyncScope {
                src_access: item.scope.src_access | global.src_access,
                dst_access: item.scope.dst_access | global.dst_access,
                ..global
            };
            let mut element = self.dependency(item, location(Some(index as u32)), given, true);
            let scope = &mut element.scope;
            scope.src_usages = scope.src_usages.union(everywhere.src_usages);
            scope.dst_usages = scope.dst_usages.union(everywhere.dst_usages);
            found.push(element);
        }
        for executed_dependency in &mut found {
            (executed_dependency.scope.src_global_usages, executed_dependency.scope.dst_global_usages) =
                (everywhere.src_usages, everywhere.dst_usages);
        }
        found
    }

    fn dependency(
        &self,
        item: &Dependency,
        location: OperationLocation,
        given: SyncScope,
        is_united: bool,
    ) -> ExecutedDependency {
        let about = |resource: &ResourceId, region: &Region| {
            Some(ResourceRegion { resource: *resource, region: region.clone() })
        };
        let mut scope = ExpandedScope::new(given, self.flags);
        let (about, is_transition, half) = match &item.target {
            DependencyTarget::Global => (None, false, None),
            DependencyTarget::Resource { resource, region } => (about(resource, region), false, None),
            DependencyTarget::Transition { resource, region } => (about(resource, region), true, None),
            DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership } => {
                let half = self.ownership_half(*ownership);
                limit_to_half(half, &mut scope, is_united);
                (about(resource, region), half.is_some() || ownership.is_transition, half)
            }
        };
        ExecutedDependency {
            kind: self.kind,
            location,
            given_scope: given,
            scope,
            resource_region: about,
            is_transition,
            ownership_half: half,
            is_version_1: is_united,
            first_scope_origin: FirstScopeOrigin::Preceding,
            second_subpass: None,
        }
    }

    fn ownership_half(&self, ownership: QueueFamilyTransfer) -> Option<OwnershipHalf> {
        match ownership {
            family_transfer if family_transfer.src_family == family_transfer.dst_family => None,
            family_transfer if family_transfer.src_family == self.family => Some(OwnershipHalf::Release),
            family_transfer if family_transfer.dst_family == self.family => Some(OwnershipHalf::Acquire),
            _ => None,
        }
    }
}

/// Removes the scope of the other half, which is on another queue. In version 1, the stages belong
/// to the whole command, so only the access scope is removed.
fn limit_to_half(half: Option<OwnershipHalf>, scope: &mut ExpandedScope, is_united: bool) {
    let stages = if is_united { u64::MAX } else { 0 };
    match half {
        Some(OwnershipHalf::Release) => (scope.dst_usages, scope.dst.0) = (UsageSet::default(), scope.dst.0 & stages),
        Some(OwnershipHalf::Acquire) => (scope.src_usages, scope.src.0) = (UsageSet::default(), scope.src.0 & stages),
        None => {}
    }
}

/// The command buffer and the command index of an executed location.
pub(crate) fn recorded_location(
    program: &lavascope_sync_ir::Program,
    place: &ProgramLocation,
) -> Option<(CommandBufferId, u32)> {
    use lavascope_sync_ir::{Command, HostStep};
    let ProgramLocation::Command(at) = place else { return None };
    let HostStep::Submit { batches, .. } = program.steps.get(at.step as usize)? else { return None };
    let mut buffer = *batches.get(at.batch as usize)?.command_buffers.get(at.primary as usize)?;
    let (last, way) = at.path.split_last()?;
    for step in way.chunks_exact(2) {
        let command = program.command_buffers.get(buffer.0 as usize)?.commands.get(step[0] as usize)?;
        let Command::Execute(buffers) = command else { return None };
        buffer = *buffers.get(step[1] as usize)?;
    }
    Some((buffer, *last))
}
