//! The dependencies of barriers and event waits, one by one, each with the place where it can be changed.

use lavascope_sync_ir::{
    Barrier, CommandBufferId, Dependency, DependencyTarget, EventId, ProgramLocation, QueueFamilyTransfer, Region,
    ResourceId, SetEvent, SyncScope, WaitEvents,
};

use super::timeline::{TimelineAction, TimelineBuilder};
use crate::{OperationLocation, SyncOperationKind};
use lavascope_engine::access::usages::{StageSet, UsageSet};
use lavascope_engine::dependency::scopes::ExpandedScope;

/// One dependency, as it is executed.
#[derive(Clone)]
pub(crate) struct ExecutedDependency {
    pub(crate) kind: SyncOperationKind,
    pub(crate) location: OperationLocation,
    /// As the application gave it.
    pub(crate) given_scope: SyncScope,
    pub(crate) scope: ExpandedScope,
    pub(crate) resource_region: Option<ResourceRegion>,
    /// Whether it accesses the resource itself: layout transitions, and halves of ownership transfers.
    pub(crate) is_transition: bool,
    /// Whether it is one half of a transfer between queue families.
    pub(crate) ownership_half: Option<OwnershipHalf>,
    /// Whether it is of version 1, where the whole command is one dependency.
    pub(crate) is_version_1: bool,
    pub(crate) first_scope_origin: FirstScopeOrigin,
    /// The subpass that it leads to; none for everything else, and to the outside of a render pass.
    pub(crate) second_subpass: Option<u32>,
}

/// Of a transfer between queue families each queue sees one half: the release comes after something, the acquire
/// before something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnershipHalf {
    Release,
    Acquire,
}

/// The part of a resource that a dependency is about.
#[derive(Clone)]
pub(crate) struct ResourceRegion {
    pub(crate) resource: ResourceId,
    pub(crate) region: Region,
}

/// Where the first scope of a dependency lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstScopeOrigin {
    /// In all that the queue did so far; inside a subpass, in that subpass.
    Preceding,
    /// At the moment when an event was set.
    Event(usize),
    /// Nowhere: the event was not set.
    UnsetEvent,
    /// In a subpass that ended.
    Subpass(u32),
    /// Before the render pass instance.
    BeforeRenderPass,
}

/// The dependencies of a barrier command.
pub(crate) fn barrier_dependencies(
    builder: &TimelineBuilder<'_>,
    barrier: &Barrier,
    buffer: CommandBufferId,
    command: u32,
) -> Vec<ExecutedDependency> {
    let site = |element| OperationLocation::Barrier { buffer, command, dependency: element };
    let maker =
        DependencyBuilder { kind: SyncOperationKind::Barrier, flags: builder.flags(), family: builder.family() };
    match barrier {
        Barrier::Sync1 { src_stages, dst_stages, dependencies } => {
            maker.version_1(dependencies, (*src_stages, *dst_stages), site)
        }
        Barrier::Sync2 { dependencies } => maker.version_2(dependencies, site),
    }
}

/// The dependencies of an event wait: of each event that is set, after what was before it was set.
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
        let site = |element| OperationLocation::Event {
            set: recorded,
            buffer,
            command,
            event: index as u32,
            dependency: element,
        };
        let elements = match stages {
            Some(stages) => maker.version_1(dependencies, stages, site),
            None => maker.version_2(dependencies, site),
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

/// What a command that sets an event sets, and after which stages.
pub(crate) fn set_stages(set: &SetEvent) -> (EventId, u64) {
    match set {
        SetEvent::Sync1 { event, stages } => (*event, *stages),
        SetEvent::Sync2 { event, dependencies } => {
            (*event, dependencies.iter().fold(0, |all, it| all | it.scope.src_stages))
        }
    }
}

/// Makes elements for a queue.
struct DependencyBuilder {
    kind: SyncOperationKind,
    flags: u32,
    family: u32,
}

impl DependencyBuilder {
    /// Version 2: each dependency stands for itself.
    fn version_2(
        &self,
        dependencies: &[Dependency],
        site: impl Fn(Option<u32>) -> OperationLocation,
    ) -> Vec<ExecutedDependency> {
        let element =
            |(index, it): (usize, &Dependency)| self.dependency(it, site(Some(index as u32)), it.scope, false);
        dependencies.iter().enumerate().map(element).collect()
    }

    /// Version 1: the command is one dependency on everything, and on each resource with the accesses of both.
    fn version_1(
        &self,
        dependencies: &[Dependency],
        (src_stages, dst_stages): (u64, u64),
        site: impl Fn(Option<u32>) -> OperationLocation,
    ) -> Vec<ExecutedDependency> {
        let is_global = |it: &Dependency| matches!(it.target, DependencyTarget::Global);
        let mut global = SyncScope { src_stages, dst_stages, ..SyncScope::default() };
        for item in dependencies.iter().filter(|it| is_global(it)) {
            global.src_access |= item.scope.src_access;
            global.dst_access |= item.scope.dst_access;
        }
        let whole = Dependency { scope: global, target: DependencyTarget::Global };
        let mut found = vec![self.dependency(&whole, site(None), global, true)];
        let everywhere = found[0].scope;
        for (index, item) in dependencies.iter().enumerate().filter(|it| !is_global(it.1)) {
            let given = SyncScope {
                src_access: item.scope.src_access | global.src_access,
                dst_access: item.scope.dst_access | global.dst_access,
                ..global
            };
            let mut element = self.dependency(item, site(Some(index as u32)), given, true);
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
        site: OperationLocation,
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
            location: site,
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

/// The other half is another queue's. In version 1 that is so of memory only.
fn limit_to_half(half: Option<OwnershipHalf>, scope: &mut ExpandedScope, is_united: bool) {
    let stages = if is_united { u64::MAX } else { 0 };
    match half {
        Some(OwnershipHalf::Release) => (scope.dst_usages, scope.dst.0) = (UsageSet::default(), scope.dst.0 & stages),
        Some(OwnershipHalf::Acquire) => (scope.src_usages, scope.src.0) = (UsageSet::default(), scope.src.0 & stages),
        None => {}
    }
}

/// Where in the recorded program a place is: the command buffer and the command in it.
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
