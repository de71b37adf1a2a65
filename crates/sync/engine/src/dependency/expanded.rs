//! The dependencies of barriers and event waits, with their scopes expanded for a queue.
//!
//! - A `vkCmdPipelineBarrier` (version 1) is one dependency: its stages are those of the command, and what one of its
//!   elements makes available is visible to the second scope of every element in the same memory.
//! - In a `vkCmdPipelineBarrier2` (version 2) each element is a dependency of its own.
//! - Of a queue family ownership transfer (`synchronization-queue-transfers`) a queue executes one half.

use std::ops::Range;

use lavascope_sync_ir::{Dependency, DependencyTarget, QueueFamilyTransfer, Region, ResourceId, SyncScope};
use smallvec::SmallVec;

use crate::access::access_order::AccessOrder;
use crate::access::usages::{StageSet, UsageSet};
use crate::dependency::clocks::{FirstScope, Tag};
use crate::dependency::scopes::ExpandedScope;
use crate::memory::addresses::ResourceIdentity;
use crate::queue::submissions::QueueTimeline;

/// A dependency with expanded scopes.
pub(crate) struct ExpandedDependency {
    pub(crate) scope: ExpandedScope,
    /// The memory that the dependency concerns; none for all memory.
    pub(crate) range: Option<DependencyRange>,
    /// What the dependency writes to the range, if it does.
    pub(crate) transition: Option<TransitionKind>,
}

/// What writes to the range of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TransitionKind {
    /// A half of an ownership transfer that changes no layout.
    OwnershipTransfer,
    /// A layout transition of a render pass.
    RenderPass,
    /// A layout transition of a barrier or an event wait.
    Barrier,
}

impl TransitionKind {
    /// With which other transitions of its queue it is in order.
    pub(crate) fn order(self) -> AccessOrder {
        match self {
            TransitionKind::OwnershipTransfer => AccessOrder::None,
            TransitionKind::RenderPass => AccessOrder::PassTransition,
            TransitionKind::Barrier => AccessOrder::BarrierTransition,
        }
    }
}

/// The memory that a dependency concerns.
pub(crate) enum DependencyRange {
    Region(ResourceId, Region),
    Addresses(MergedAddresses),
}

/// Addresses that several elements of one version 1 command concern. There the elements are one dependency.
pub(crate) struct MergedAddresses {
    pub(crate) resource: ResourceId,
    pub(crate) range: Range<u64>,
    pub(crate) sources: Vec<AvailableSource>,
    /// What the command makes available of the same memory at the addresses of other resources.
    pub(crate) alias_sources: Vec<(Range<u64>, AvailableSource)>,
}

/// The first access scope for accesses through one resource.
#[derive(Clone, Copy)]
pub(crate) struct AvailableSource {
    pub(crate) identity: ResourceIdentity,
    pub(crate) usages: UsageSet,
}

/// The elements of one command that concern the same memory through the same resource.
#[derive(Clone, Copy)]
pub(crate) struct MergedDependency {
    pub(crate) resource: ResourceId,
    pub(crate) identity: ResourceIdentity,
    pub(crate) scope: ExpandedScope,
    pub(crate) transition: Option<TransitionKind>,
}

impl MergedDependency {
    pub(crate) fn source(&self) -> AvailableSource {
        AvailableSource { identity: self.identity, usages: self.scope.src_usages }
    }

    pub(crate) fn merge(self, other: MergedDependency) -> MergedDependency {
        let scope = ExpandedScope {
            src: self.scope.src.union(other.scope.src),
            src_usages: self.scope.src_usages.union(other.scope.src_usages),
            src_global_usages: self.scope.src_global_usages.union(other.scope.src_global_usages),
            dst: self.scope.dst.union(other.scope.dst),
            dst_usages: self.scope.dst_usages.union(other.scope.dst_usages),
            dst_global_usages: self.scope.dst_global_usages.union(other.scope.dst_global_usages),
        };
        // Hazards name the resource whose layout changes.
        let resource = if self.transition.is_some() { self.resource } else { other.resource };
        MergedDependency { resource, scope, transition: self.transition.max(other.transition), ..self }
    }
}

/// A dependency and all that happened before it: what its first scope hands on.
pub(crate) struct ResolvedDependency {
    pub(crate) first_scope: ResourceFirstScope,
    pub(crate) dependency: ExpandedDependency,
}

impl ResolvedDependency {
    /// Addresses of aliases at which the first scope changes.
    pub(crate) fn alias_boundaries(&self) -> impl Iterator<Item = u64> {
        self.first_scope.through_aliases.iter().flat_map(|it| [it.addresses.start, it.addresses.end])
    }
}

impl ExpandedDependency {
    pub(crate) fn alias_sources(&self) -> &[(Range<u64>, AvailableSource)] {
        match &self.range {
            Some(DependencyRange::Addresses(merged)) => &merged.alias_sources,
            Some(DependencyRange::Region(..)) | None => &[],
        }
    }

    /// The first access scope for all memory.
    pub(crate) fn global_usages(&self) -> UsageSet {
        if self.range.is_some() { self.scope.src_global_usages } else { self.scope.src_usages }
    }
}

/// The half of a queue family ownership transfer that a queue executes (`synchronization-queue-transfers`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum TransferHalf {
    Release,
    Acquire,
}

impl TransferHalf {
    fn of(ownership: &QueueFamilyTransfer, family: u32) -> Option<TransferHalf> {
        if ownership.src_family == ownership.dst_family {
            return None;
        }
        let is_release = ownership.src_family == family;
        let half = if is_release { TransferHalf::Release } else { TransferHalf::Acquire };
        (is_release || ownership.dst_family == family).then_some(half)
    }
}

/// What a first scope has through another resource, at these addresses.
pub(crate) struct AliasFirstScope {
    pub(crate) addresses: Range<u64>,
    pub(crate) resource: ResourceIdentity,
    pub(crate) scope: FirstScope,
}

/// The first scopes of a dependency: what they have directly, and by dependency chains.
#[derive(Default)]
pub(crate) struct ResourceFirstScope {
    /// What the scopes have of all memory.
    pub(crate) global: FirstScope,
    /// What they have in addition through the resource of the dependency; in version 1, through each resource of the
    /// command that lies in the same memory.
    pub(crate) through_resource: Vec<(ResourceIdentity, FirstScope)>,
    /// Version 1 only: what they have through resources of the command that lie in the same memory at other addresses.
    pub(crate) through_aliases: Vec<AliasFirstScope>,
    /// The stages of the scopes, each with the tag up to which it counts: one entry for a barrier, one for each event.
    pub(crate) stage_limits: SmallVec<[(StageSet, Tag); 1]>,
    /// Layout transitions of render passes only: pairs of subpasses that no dependency orders.
    pub(crate) unordered_pairs: Vec<[(Tag, Tag); 2]>,
}

/// Limits the scopes of an ownership transfer to one half: a release makes nothing visible, an acquire makes nothing
/// available (`synchronization-queue-transfers`).
fn limit_to_half(dependency: &Dependency, scope: &mut ExpandedScope, family: u32) -> Option<TransferHalf> {
    let DependencyTarget::QueueFamilyTransfer { transfer: ownership, .. } = &dependency.target else { return None };
    let half = TransferHalf::of(ownership, family)?;
    match half {
        TransferHalf::Release => scope.dst_usages = UsageSet::default(),
        TransferHalf::Acquire => scope.src_usages = UsageSet::default(),
    }
    Some(half)
}

/// A dependency with scopes that are expanded already. Both halves of an ownership transfer write to the range.
fn expanded_dependency(dependency: &Dependency, scope: ExpandedScope, family: u32) -> ExpandedDependency {
    let (range, transition) = match &dependency.target {
        DependencyTarget::Global => (None, None),
        DependencyTarget::Resource { resource, region } => {
            (Some(DependencyRange::Region(*resource, region.clone())), None)
        }
        DependencyTarget::Transition { resource, region } => {
            (Some(DependencyRange::Region(*resource, region.clone())), Some(TransitionKind::Barrier))
        }
        DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership } => {
            let transfer = TransferHalf::of(ownership, family).map(|_| TransitionKind::OwnershipTransfer);
            let transition = ownership.is_transition.then_some(TransitionKind::Barrier);
            (Some(DependencyRange::Region(*resource, region.clone())), transition.max(transfer))
        }
    };
    ExpandedDependency { scope, range, transition }
}

/// Version 2: each element is a dependency of its own. A half of an ownership transfer has only one of the two
/// synchronization scopes.
#[inline]
pub(crate) fn expand_sync2(dependency: &Dependency, queue: &mut QueueTimeline) -> ExpandedDependency {
    let mut scope = queue.expand(dependency.scope);
    match limit_to_half(dependency, &mut scope, queue.family) {
        Some(TransferHalf::Release) => scope.dst = StageSet::default(),
        Some(TransferHalf::Acquire) => scope.src = StageSet::default(),
        None => {}
    }
    expanded_dependency(dependency, scope, queue.family)
}

/// Version 1 with a single element: the same as [`expand_sync1`], but one dependency does it all. A dependency on a
/// resource also orders execution of everything else, and makes nothing else available or visible.
#[inline]
pub(crate) fn expand_single_sync1(
    dependency: &Dependency,
    src_stages: u64,
    dst_stages: u64,
    queue: &mut QueueTimeline,
) -> ExpandedDependency {
    let family = queue.family;
    let mut scope = queue.expand(SyncScope { src_stages, dst_stages, ..dependency.scope });
    limit_to_half(dependency, &mut scope, family);
    (scope.src_global_usages, scope.dst_global_usages) = (UsageSet::default(), UsageSet::default());
    expanded_dependency(dependency, scope, family)
}

/// Version 1: the command is one dependency, with the stages of the command. The first element is the one on all memory.
pub(crate) fn expand_sync1(
    dependencies: &[Dependency],
    src_stages: u64,
    dst_stages: u64,
    queue: &mut QueueTimeline,
) -> Vec<ExpandedDependency> {
    let family = queue.family;
    let mut of = |access: SyncScope| queue.expand(SyncScope { src_stages, dst_stages, ..access });
    let mut global = of(SyncScope::default());
    for dependency in dependencies.iter().filter(|it| it.target == DependencyTarget::Global) {
        let scope = of(dependency.scope);
        global.src_usages = global.src_usages.union(scope.src_usages);
        global.dst_usages = global.dst_usages.union(scope.dst_usages);
    }
    let mut elements = vec![ExpandedDependency { scope: global, range: None, transition: None }];
    for dependency in dependencies.iter().filter(|it| it.target != DependencyTarget::Global) {
        let mut scope = of(dependency.scope);
        limit_to_half(dependency, &mut scope, family);
        scope.src_usages = scope.src_usages.union(global.src_usages);
        scope.dst_usages = scope.dst_usages.union(global.dst_usages);
        (scope.src_global_usages, scope.dst_global_usages) = (global.src_usages, global.dst_usages);
        elements.push(expanded_dependency(dependency, scope, family));
    }
    elements
}
