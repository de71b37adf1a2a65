//! By which name memory is accessed, and about which name of it a dependency is.
//!
//! A dependency on a resource has accesses through that resource in its scopes, and no others to the same memory.
//! Spec: "Memory Aliasing", "Memory Barriers".

use lavascope_sync_ir::ResourceId;

use super::dependency::{ExecutedDependency, ResourceRegion};
use super::follower::{FirstScopeMatch, Follower};
use crate::{CoverageGap, SyncOperation};
use lavascope_engine::access::usages::UsageSet;

impl Follower<'_> {
    /// A dependency on a resource has accesses through that resource only. In version 1, those about the followed memory
    /// have each other's.
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
                // Made available as the earlier access named it.
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

    /// Whether a dependency has accesses through the resource of the earlier one.
    pub(crate) fn includes_prior_resource(&self, element: &ExecutedDependency) -> bool {
        self.includes_resource(element, self.prior.resource)
    }

    /// The same of the later one.
    pub(crate) fn includes_later_resource(&self, element: &ExecutedDependency) -> bool {
        self.includes_resource(element, self.later.resource)
    }

    fn includes_resource(&self, element: &ExecutedDependency, resource: ResourceId) -> bool {
        let addresses = self.timeline.addresses(self.moment_index);
        let identity = addresses.identity(resource);
        element.resource_region.as_ref().is_none_or(|it| addresses.identity(it.resource) == identity)
    }

    /// Whether a dependency is about all of the memory that is followed, by its own addresses.
    pub(crate) fn covers_memory(&self, element: &ExecutedDependency) -> bool {
        let addresses = self.timeline.addresses(self.moment_index);
        let piece = &self.pair.memory_range;
        element.resource_region.as_ref().is_none_or(|about| {
            let ranges = addresses.ranges(about.resource, &about.region);
            ranges.iter().any(|it| it.start <= piece.start && piece.end <= it.end)
        })
    }

    /// Whether a dependency on another resource is about memory that is followed.
    fn covers_aliased_memory(&self, about: &ResourceRegion) -> bool {
        let addresses = self.timeline.addresses(self.moment_index);
        let aliased = addresses.aliased_ranges(about.resource, &addresses.ranges(about.resource, &about.region));
        let piece = &self.pair.memory_range;
        aliased.iter().any(|(_, it)| it.start <= piece.start && piece.end <= it.end)
    }

    /// Whether a dependency is about the memory as the later access names it, which is not how the earlier one did.
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

    /// Whether a dependency makes what was written by another name, and is available, visible to accesses by the name
    /// of the later one.
    pub(crate) fn makes_visible_to_later_alias(&self, element: &ExecutedDependency, held: FirstScopeMatch) -> bool {
        held.is_through_alias && !element.is_transition && self.covers_memory_of_later(element)
    }

    /// To what a dependency makes the followed layout transition visible, which is part of the same command; none if it
    /// does nothing for it. In version 1 the command is one dependency, on every name of the memory that it has.
    pub(crate) fn visible_after_transition(&self, element: &ExecutedDependency) -> Option<UsageSet> {
        if self.covers_memory(element) {
            return Some(element.scope.dst_usages);
        }
        (element.is_version_1 && self.covers_memory_of_later(element)).then_some(element.scope.dst_usages)
    }

    /// Why a dependency that is about the followed memory does not have the earlier access: it went by another name.
    pub(crate) fn prior_alias_gap(&self, element: &ExecutedDependency) -> Option<CoverageGap> {
        let about = element.resource_region.as_ref()?;
        let is_other = self.prior.is_write() && !self.includes_prior_resource(element);
        let is_same_memory = is_other && (self.covers_memory(element) || self.covers_aliased_memory(about));
        is_same_memory.then_some(CoverageGap::PriorThroughAlias(self.prior.resource))
    }

    /// The same of the later access.
    pub(crate) fn later_alias_gap(&self, element: &ExecutedDependency) -> Option<CoverageGap> {
        element.resource_region.as_ref()?;
        let is_other = self.prior.is_write() && !self.includes_later_resource(element);
        (is_other && self.covers_memory(element)).then_some(CoverageGap::LaterThroughAlias(self.later.resource))
    }
}

impl SyncOperation {
    /// Whether it does nothing for the later access because that goes by another name of the memory.
    pub(crate) fn has_later_alias_gap(&self) -> bool {
        self.gaps.iter().any(|it| matches!(it, CoverageGap::LaterThroughAlias(_)))
    }
}
