//! What dependencies on single resources did for the last write to a range.
//!
//! Such dependencies do not enter the clocks, where they would count for every resource. Instead, the write stores the
//! usages to which it is visible, and *points*: the tags at which it became available to some stages. A query asks the
//! clocks whether a later stage is reached from a point. Later barriers of any kind therefore reach points without
//! changing them.

use std::ops::Range;

use crate::access::access_context::{AccessContext, Addressing};
use crate::access::usages::{StageIndex, StageSet, UsageIndex, UsageSet};
use crate::dependency::clocks::{FirstScope, KeySet, Tag};
use crate::dependency::expanded::ResourceFirstScope;
use crate::dependency::scopes::{COMMON_SETS, ExpandedScope};
use crate::dependency::subpass_intervals::ClockQuery;
use crate::memory::addresses::ResourceIdentity;

/// A program may have one for each range, so its lists are allocated without spare capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overlay {
    visible: Vec<ResourceVisibility>,
    points: Vec<AvailabilityPoint>,
    /// State that few overlays have.
    rare: Option<Box<RareVisibility>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HostVisibility {
    identity: ResourceIdentity,
    queue: u8,
    tag: Tag,
    usages: UsageSet,
}

/// Usages to which a write is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ResourceVisibility {
    queue: u8,
    /// The beginning of the subpass in which this holds. Zero outside of render passes, where it holds from then on.
    subpass_begin: Tag,
    /// The resource through which the access must go.
    identity: ResourceIdentity,
    usages: UsageSet,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RareVisibility {
    /// Visibility to the host. It holds once the host knows of this tag of the queue.
    to_host: Vec<HostVisibility>,
    aliases: Vec<AliasVisibility>,
}

/// Visibility through other resources, or at other addresses than those of the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AliasVisibility {
    visible: ResourceVisibility,
    /// The addresses where the write is visible, if they are not those of the write.
    addresses: Option<(u64, u64)>,
    /// Whether the write is visible through every resource.
    is_any_resource: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AvailabilityPoint {
    queue: u8,
    /// As in [`ResourceVisibility`], for direct dependencies. A dependency chain may lead out of the subpass.
    subpass_begin: Tag,
    tag: Tag,
    stages: StageSet,
    /// Whether the point is that of a single operation, not of all later commands in its stages.
    is_one_operation: bool,
}

impl AvailabilityPoint {
    /// Whether the point is ordered before every later command in its stages.
    fn is_unbounded(&self) -> bool {
        self.subpass_begin == 0 && !self.is_one_operation
    }

    /// Whether a first scope has what comes after it.
    fn is_in_scope(&self, scope: &FirstScope) -> bool {
        self.stages.iter().any(|stage| match self.is_unbounded() {
            true => scope.has_point(self.queue, stage, self.tag),
            false => scope.has_access(self.queue, stage, self.tag),
        })
    }
}

impl Overlay {
    /// Adds the second scope of a dependency: the write is available and visible to it.
    pub(crate) fn add(&mut self, context: &AccessContext<'_>, scope: &ExpandedScope) {
        let AccessContext { queue, subpass_begin: from, .. } = *context;
        // The second scope of a layout transition before a subpass begins with that subpass.
        let tag = context.tag.max(from + 1);
        let ExpandedScope { dst: stages, dst_usages, dst_global_usages: dst_everywhere, .. } = *scope;
        let (usages, everywhere) = (dst_usages.union(dst_everywhere), dst_everywhere);
        let at = match context.addressing {
            Addressing::Own => None,
            Addressing::Alias { start, end } => Some((start, end)),
        };
        let new = ResourceVisibility { queue, subpass_begin: from, identity: context.identity, usages };
        // Usages to which the write is visible through every resource need no entry for one resource.
        let has_name = usages != everywhere;
        if has_name && at.is_none() {
            self.add_visible(new);
        } else if has_name {
            self.rare.get_or_insert_default().add_elsewhere(AliasVisibility {
                visible: new,
                addresses: at,
                is_any_resource: false,
            });
        }
        if !everywhere.is_empty() {
            let visible = ResourceVisibility { usages: everywhere, ..new };
            self.rare.get_or_insert_default().add_elsewhere(AliasVisibility {
                visible,
                addresses: at,
                is_any_resource: true,
            });
        }
        let to_host = usages.and(COMMON_SETS.host_usages);
        if at.is_none() && !to_host.is_empty() {
            let new = HostVisibility { identity: context.identity, queue, tag, usages: to_host };
            self.rare.get_or_insert_default().add_to_host(new);
        }
        // A stage keeps its earliest point. What is ordered after a later point is also ordered after the earliest one.
        let is_same = |it: &&AvailabilityPoint| it.queue == queue && it.subpass_begin == from && !it.is_one_operation;
        let available = self.points.iter().filter(is_same).fold(0, |all, it| all | it.stages.0);
        let stages = StageSet(stages.0 & !available);
        if !stages.is_empty() {
            push(
                &mut self.points,
                AvailabilityPoint { queue, subpass_begin: from, tag, stages, is_one_operation: false },
            );
        }
    }

    /// Adds the point of a single operation: the write is available to everything that is ordered after that operation.
    /// A layout transition makes its own write available, a buffer marker those of earlier markers.
    pub(crate) fn add_operation_point(&mut self, context: &AccessContext<'_>, stage: StageIndex) {
        let mut stages = StageSet::default();
        stages.add(stage);
        let AccessContext { queue, subpass_begin: from, tag, .. } = *context;
        push(&mut self.points, AvailabilityPoint { queue, subpass_begin: from, tag, stages, is_one_operation: true });
    }

    fn add_visible(&mut self, new: ResourceVisibility) {
        let key = |it: &ResourceVisibility| (it.queue, it.subpass_begin, it.identity);
        match self.visible.iter_mut().find(|it| key(it) == key(&new)) {
            Some(own) => own.usages = own.usages.union(new.usages),
            None if new.usages.is_empty() => {}
            None => push(&mut self.visible, new),
        }
    }

    fn aliases(&self) -> &[AliasVisibility] {
        self.rare.as_ref().map_or(&[][..], |it| &it.aliases)
    }

    /// Another resource has moved: replaces its old addresses with the new ones, once for each plane.
    pub(crate) fn move_alias_addresses(&mut self, old: &Range<u64>, planes: &[u64]) {
        let Some(rare) = &mut self.rare else { return };
        let is_moved = |it: &AliasVisibility| it.addresses.is_some_and(|at| old.start <= at.0 && at.1 <= old.end);
        let moved: Vec<AliasVisibility> = rare.aliases.extract_if(.., |it| is_moved(it)).collect();
        for alias_visibility in moved {
            for plane in planes {
                let at = alias_visibility.addresses.map(|at| (plane + at.0 - old.start, plane + at.1 - old.start));
                rare.aliases.push(AliasVisibility { addresses: at, ..alias_visibility });
            }
        }
    }

    /// The addresses at which visibility through other resources begins or ends.
    pub(crate) fn alias_boundaries(&self) -> impl Iterator<Item = u64> {
        self.aliases().iter().filter_map(|it| it.addresses).flat_map(|it| [it.0, it.1])
    }

    /// All queries to a clock that intervals may answer (`subpass_intervals`, rule 5).
    pub(crate) fn clock_queries(&self) -> impl Iterator<Item = ClockQuery> {
        let closed = self.points.iter().filter(|it| !it.is_unbounded());
        closed.map(|it| ClockQuery { tag: it.tag, queue: it.queue, stages: it.stages, write: None })
    }

    /// Whether the write is visible to a usage.
    pub(crate) fn is_visible(&self, context: &AccessContext<'_>, usage: UsageIndex) -> bool {
        let clock = context.clock;
        let is_at = |at: (u64, u64)| match context.addressing {
            Addressing::Own => false,
            Addressing::Alias { start, end } => at.0 <= start && end <= at.1,
        };
        let is_there =
            |it: &ResourceVisibility| context.is_in_subpass(it.queue, it.subpass_begin) && it.usages.has(usage);
        let here = self.visible.iter().any(|it| it.identity == context.identity && is_there(it))
            || self.aliases().iter().any(|alias| {
                let is_through = alias.is_any_resource || alias.visible.identity == context.identity;
                is_through && alias.addresses.is_none_or(is_at) && is_there(&alias.visible)
            });
        let knows = |queue: u8, tag| clock.batches.get(queue) >= tag;
        let is_through = |it: &&HostVisibility| it.identity == context.identity && it.usages.has(usage);
        let to_host = self.rare.as_ref().map_or(&[][..], |it| &it.to_host);
        let to_host = to_host.iter().filter(is_through).any(|it| knows(it.queue, it.tag));
        here || to_host
            || self.points.iter().any(|point| {
                point.stages.iter().any(|c| match point.is_unbounded() {
                    true => clock.is_reached(usage, point.queue, c, point.tag),
                    false => clock.is_reached_from_subpass(usage, point.queue, c, point.tag),
                })
            })
    }

    /// Whether the write, a layout transition, is before a subpass that is, or is ordered before, that of an access.
    pub(crate) fn is_before_ordered_subpass(&self, context: &AccessContext<'_>) -> bool {
        let is_ordered = |begin: Tag| begin != 0 && !context.is_in_unordered_subpass(context.queue, begin);
        let mut points = self.points.iter().filter(|it| !it.is_one_operation && it.queue == context.queue);
        points.any(|it| is_ordered(it.subpass_begin))
    }

    /// Whether a chain of dependencies from the write reaches a stage.
    pub(crate) fn is_available(&self, context: &AccessContext<'_>, stage: StageIndex) -> bool {
        self.points.iter().any(|point| {
            let is_direct = !point.is_one_operation
                && context.is_in_subpass(point.queue, point.subpass_begin)
                && point.stages.has(stage);
            is_direct
                || point.stages.iter().any(|c| match point.is_unbounded() {
                    true => context.clock.has_point(stage, point.queue, c, point.tag),
                    false => context.clock.has_happened(stage, point.queue, c, point.tag),
                })
        })
    }

    /// Whether a dependency chain from the write reaches a first scope.
    pub(crate) fn reaches(&self, context: &AccessContext<'_>, first: &ResourceFirstScope) -> bool {
        self.points.iter().any(|point| {
            let is_in = |part: &(StageSet, Tag)| point.tag <= part.1 && point.stages.0 & part.0.0 != 0;
            let is_direct = !point.is_one_operation
                && context.is_in_subpass(point.queue, point.subpass_begin)
                && first.stage_limits.iter().any(is_in);
            let is_before = first.stage_limits.iter().any(|part| point.tag <= part.1);
            is_direct || is_before && point.is_in_scope(&first.global)
        })
    }

    /// Whether a chain of dependencies from the write reaches a first scope, as far as that scope says it all.
    pub(crate) fn is_in_scope(&self, scope: &FirstScope) -> bool {
        self.points.iter().any(|it| it.is_in_scope(scope))
    }
}

impl RareVisibility {
    fn add_elsewhere(&mut self, new: AliasVisibility) {
        let key = |alias_visibility: &AliasVisibility| {
            (
                alias_visibility.visible.queue,
                alias_visibility.visible.subpass_begin,
                alias_visibility.visible.identity,
                alias_visibility.addresses,
                alias_visibility.is_any_resource,
            )
        };
        match self.aliases.iter_mut().find(|it| key(it) == key(&new)) {
            Some(own) => own.visible.usages = own.visible.usages.union(new.visible.usages),
            None => self.aliases.push(new),
        }
    }

    /// Keeps only the earliest tag: a host that knows of a later one knows of the earlier one.
    fn add_to_host(&mut self, new: HostVisibility) {
        let is_known = |it: &&HostVisibility| (it.identity, it.queue) == (new.identity, new.queue) && it.tag <= new.tag;
        let visible = self.to_host.iter().filter(is_known).fold(UsageSet::default(), |all, it| all.union(it.usages));
        let usages = new.usages.and_not(visible);
        if !usages.is_empty() {
            self.to_host.push(HostVisibility { usages, ..new });
        }
    }
}

/// Adds to a list without reserving capacity for more, because such lists rarely grow.
fn push<T>(all: &mut Vec<T>, new: T) {
    all.reserve_exact(1);
    all.push(new);
}

#[cfg(test)]
mod tests;
