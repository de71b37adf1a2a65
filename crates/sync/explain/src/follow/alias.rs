//! Finds out through which resource an access goes, and which resource a dependency covers.
//!
//! The scopes of a dependency on a resource include accesses through that resource only. They do
//! not include accesses through other resources in the same memory.
//! Spec: `resources-memory-aliasing`, `synchronization-buffer-memory-barriers`,
//! `synchronization-image-memory-barriers`.

use lavascope_sync_ir::ResourceId;

use super::dependency::{ExecutedDependency, ResourceRegion};
use super::follower::{FirstScopeMatch, Follower};
use crate::{CoverageGap, SyncOperation};
use lavascope_engine::access::usages::UsageSet;

impl Follower<'_> {
    /// Removes from the scopes of each dependency the accesses through other resources. In version
    /// 1, the dependencies of one command on the followed memory apply together, so their access
    /// scopes are merged.
    pub(crate) fn with_merged_scopes(&self, elements: &[ExecutedDependency]) -> Vec<ExecutedDependency> {
        let is_part =
            |it: &&ExecutedDependency| it.is_version_1 && it.resource_region.is_some() && self.covers_memory(it);
        let parts: Vec<&ExecutedDependency> = elements.iter().filter(is_part).collect();
        let merge = |executed_dependency: &ExecutedDependency| {
            let mut dependency = executed_dependency.clone();
            if !self.includes_prior_resource(&dependency) {
                dependency.scope.src_usages = dependency.scope.src_global_usages;
            }
            if !self.includes_later_resource(&dependency) {
                dependency.scope.dst_usages = dependency.scope.dst_global_usages;
            }
            if is_part(&&dependency) {
                for other in parts.iter().filter(|other| other.first_scope_origin == dependency.first_scope_origin) {
                    if self.includes_prior_resource(other) {
                        dependency.scope.src_usages = dependency.scope.src_usages.union(other.scope.src_usages);
                        dependency.given_scope.src_access |= other.given_scope.src_access;
                    }
                    if self.includes_later_resource(other) {
                        dependency.scope.dst_usages = dependency.scope.dst_usages.union(other.scope.dst_usages);
                        dependency.given_scope.dst_access |= other.given_scope.dst_access;
                    }
                }
            } else if dependency.is_version_1
                && dependency.resource_region.as_ref().is_some_and(|about| self.covers_aliased_memory(about))
            {
                // Another dependency of the command makes the write available, through the resource
                // of the earlier access.
                for other in parts.iter().filter(|other| {
                    other.first_scope_origin == dependency.first_scope_origin && self.includes_prior_resource(other)
                }) {
                    dependency.scope.src_global_usages =
                        dependency.scope.src_global_usages.union(other.scope.src_usages);
                }
            }
            dependency
        };
        elements.iter().map(merge).collect()
    }

    /// Whether the scopes of a dependency include accesses through the resource of the earlier
    /// access.
    pub(crate) fn includes_prior_resource(&self, element: &ExecutedDependency) -> bool {
        self.includes_resource(element, self.prior.resource)
    }

    /// Whether the scopes of a dependency include accesses through the resource of the later
    /// access.
    pub(crate) fn includes_later_resource(&self, element: &ExecutedDependency) -> bool {
        self.includes_resource(element, self.later.resource)
    }

    fn includes_resource(&self, element: &ExecutedDependency, resource: ResourceId) -> bool {
        let addresses = self.timeline.addresses(self.moment_index);
        let identity = addresses.identity(resource);
        element.resource_region.as_ref().is_none_or(|it| addresses.identity(it.resource) == identity)
    }

    /// Whether a dependency covers all of the followed memory, by the addresses of its own
    /// resource.
    pub(crate) fn covers_memory(&self, element: &ExecutedDependency) -> bool {
        let addresses = self.timeline.addresses(self.moment_index);
        let piece = &self.pair.memory_range;
        element.resource_region.as_ref().is_none_or(|about| {
            let ranges = addresses.ranges(about.resource, &about.region);
            ranges.iter().any(|it| it.start <= piece.start && piece.end <= it.end)
        })
    }

    /// Whether a dependency on another resource covers all of the followed memory, by the addresses
    /// that the two share.
    fn covers_aliased_memory(&self, about: &ResourceRegion) -> bool {
        let addresses = self.timeline.addresses(self.moment_index);
        let aliased = addresses.aliased_ranges(about.resource, &addresses.ranges(about.resource, &about.region));
        let piece = &self.pair.memory_range;
        aliased.iter().any(|(_, it)| it.start <= piece.start && piece.end <= it.end)
    }

    /// Whether a dependency covers the memory through the resource of the later access, if the
    /// earlier access used an alias.
    fn covers_memory_of_later(&self, element: &ExecutedDependency) -> bool {
        let Some(about) = element.resource_region.as_ref().filter(|_| self.pair.is_aliased) else { return false };
        let addresses = self.timeline.addresses(self.moment_index);
        let ranges = addresses.ranges(about.resource, &about.region);
        let is_in = |it: &std::ops::Range<u64>| ranges.iter().any(|own| own.start <= it.start && it.end <= own.end);
        let later =
            addresses.aliased_ranges(self.later.resource, &addresses.ranges(self.later.resource, &self.pair.region));
        let piece = &self.pair.memory_range;
        let mut later = later.iter().filter(|(_, it)| it.start < piece.end && piece.start < it.end);
        self.includes_later_resource(element) && later.all(|(own, _)| is_in(own)) && self.covers_aliased_memory(about)
    }

    /// Whether a dependency makes an available write through an alias visible to the resource of
    /// the later access.
    pub(crate) fn makes_visible_to_later_alias(&self, element: &ExecutedDependency, held: FirstScopeMatch) -> bool {
        held.is_through_alias && !element.is_transition && self.covers_memory_of_later(element)
    }

    /// The usages to which a dependency makes the followed layout transition of the same command
    /// visible. None if the dependency does not cover it. In version 1, the whole command is one
    /// dependency, and covers every resource that it names.
    pub(crate) fn visible_after_transition(&self, element: &ExecutedDependency) -> Option<UsageSet> {
        if self.covers_memory(element) {
            return Some(element.scope.dst_usages);
        }
        (element.is_version_1 && self.covers_memory_of_later(element)).then_some(element.scope.dst_usages)
    }

    /// The gap of a dependency that covers the followed memory, but not through the resource of the
    /// earlier access.
    pub(crate) fn prior_alias_gap(&self, element: &ExecutedDependency) -> Option<CoverageGap> {
        let about = element.resource_region.as_ref()?;
        let is_other = self.prior.is_write() && !self.includes_prior_resource(element);
        let is_same_memory = is_other && (self.covers_memory(element) || self.covers_aliased_memory(about));
        is_same_memory.then_some(CoverageGap::PriorThroughAlias(self.prior.resource))
    }

    /// The gap of a dependency that covers the followed memory, but not through the resource of the
    /// later access.
    pub(crate) fn later_alias_gap(&self, element: &ExecutedDependency) -> Option<CoverageGap> {
        element.resource_region.as_ref()?;
        let is_other = self.prior.is_write() && !self.includes_later_resource(element);
        (is_other && self.covers_memory(element)).then_some(CoverageGap::LaterThroughAlias(self.later.resource))
    }
}

impl SyncOperation {
    /// Whether the operation does not affect the later access, because that access uses another
    /// resource in the same memory.
    pub(crate) fn has_later_alias_gap(&self) -> bool {
        self.gaps.iter().any(|it| matches!(it, CoverageGap::LaterThroughAlias(_)))
    }
}
