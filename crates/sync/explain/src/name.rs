//! By which name memory is accessed, and about which name of it a dependency is.
//!
//! A dependency on a resource has accesses through that resource in its scopes, and no others to the same memory.
//! Spec: "Memory Aliasing", "Memory Barriers".

use lavascope_sync_ir::ResourceId;

use super::element::{About, Element};
use super::follow::{Follower, Held};
use super::{Gap, Operation};
use lavascope_engine::usage::UsageSet;

impl Follower<'_> {
    /// A dependency on a resource has accesses through that resource only. In version 1, those about the followed memory
    /// have each other's.
    pub(super) fn merged(&self, elements: &[Element]) -> Vec<Element> {
        let is_part = |it: &&Element| it.is_united && it.about.is_some() && self.is_about(it);
        let parts: Vec<&Element> = elements.iter().filter(is_part).collect();
        let merge = |it: &Element| {
            let mut it = it.clone();
            if !self.is_through_earlier(&it) {
                it.scope.src_usages = it.scope.src_global_usages;
            }
            if !self.is_through_later(&it) {
                it.scope.dst_usages = it.scope.dst_global_usages;
            }
            if is_part(&&it) {
                for other in parts.iter().filter(|other| other.from == it.from) {
                    if self.is_through_earlier(other) {
                        it.scope.src_usages = it.scope.src_usages.union(other.scope.src_usages);
                        it.given.src_access |= other.given.src_access;
                    }
                    if self.is_through_later(other) {
                        it.scope.dst_usages = it.scope.dst_usages.union(other.scope.dst_usages);
                        it.given.dst_access |= other.given.dst_access;
                    }
                }
            } else if it.is_united && it.about.as_ref().is_some_and(|about| self.is_about_alias(about)) {
                // Made available as the earlier access named it.
                for other in parts.iter().filter(|other| other.from == it.from && self.is_through_earlier(other)) {
                    it.scope.src_global_usages = it.scope.src_global_usages.union(other.scope.src_usages);
                }
            }
            it
        };
        elements.iter().map(merge).collect()
    }

    /// Whether a dependency has accesses through the resource of the earlier one.
    pub(super) fn is_through_earlier(&self, element: &Element) -> bool {
        self.is_through(element, self.prior.resource)
    }

    /// The same of the later one.
    pub(super) fn is_through_later(&self, element: &Element) -> bool {
        self.is_through(element, self.at.resource)
    }

    fn is_through(&self, element: &Element, resource: ResourceId) -> bool {
        let addresses = self.timeline.addresses(self.now);
        let identity = addresses.identity(resource);
        element.about.as_ref().is_none_or(|it| addresses.identity(it.resource) == identity)
    }

    /// Whether a dependency is about all of the memory that is followed, by its own addresses.
    pub(super) fn is_about(&self, element: &Element) -> bool {
        let addresses = self.timeline.addresses(self.now);
        let piece = &self.pair.piece;
        element.about.as_ref().is_none_or(|about| {
            let ranges = addresses.ranges(about.resource, &about.region);
            ranges.iter().any(|it| it.start <= piece.start && piece.end <= it.end)
        })
    }

    /// Whether a dependency on another resource is about memory that is followed.
    fn is_about_alias(&self, about: &About) -> bool {
        let addresses = self.timeline.addresses(self.now);
        let aliased = addresses.aliased_ranges(about.resource, &addresses.ranges(about.resource, &about.region));
        let piece = &self.pair.piece;
        aliased.iter().any(|(_, it)| it.start <= piece.start && piece.end <= it.end)
    }

    /// Whether a dependency is about the memory as the later access names it, which is not how the earlier one did.
    fn is_about_later_name(&self, element: &Element) -> bool {
        let Some(about) = element.about.as_ref().filter(|_| self.pair.is_alias) else { return false };
        let addresses = self.timeline.addresses(self.now);
        let ranges = addresses.ranges(about.resource, &about.region);
        let is_in = |it: &std::ops::Range<u64>| ranges.iter().any(|own| own.start <= it.start && it.end <= own.end);
        let later = addresses.aliased_ranges(self.at.resource, &addresses.ranges(self.at.resource, &self.pair.region));
        let piece = &self.pair.piece;
        let mut later = later.iter().filter(|(_, it)| it.start < piece.end && piece.start < it.end);
        self.is_through_later(element) && later.all(|(own, _)| is_in(own)) && self.is_about_alias(about)
    }

    /// Whether a dependency makes what was written by another name, and is available, visible to accesses by the name
    /// of the later one.
    pub(super) fn is_for_later_name(&self, element: &Element, held: Held) -> bool {
        held.is_by_alias && !element.is_transition && self.is_about_later_name(element)
    }

    /// To what a dependency makes the followed layout transition visible, which is part of the same command; none if it
    /// does nothing for it. In version 1 the command is one dependency, on every name of the memory that it has.
    pub(super) fn seen_behind_transition(&self, element: &Element) -> Option<UsageSet> {
        if self.is_about(element) {
            return Some(element.scope.dst_usages);
        }
        (element.is_united && self.is_about_later_name(element)).then_some(element.scope.dst_usages)
    }

    /// Why a dependency that is about the followed memory does not have the earlier access: it went by another name.
    pub(super) fn earlier_name_gap(&self, element: &Element) -> Option<Gap> {
        let about = element.about.as_ref()?;
        let is_other = self.prior.is_write() && !self.is_through_earlier(element);
        let is_same_memory = is_other && (self.is_about(element) || self.is_about_alias(about));
        is_same_memory.then_some(Gap::EarlierName(self.prior.resource))
    }

    /// The same of the later access.
    pub(super) fn later_name_gap(&self, element: &Element) -> Option<Gap> {
        element.about.as_ref()?;
        let is_other = self.prior.is_write() && !self.is_through_later(element);
        (is_other && self.is_about(element)).then_some(Gap::LaterName(self.at.resource))
    }
}

impl Operation {
    /// Whether it does nothing for the later access because that goes by another name of the memory.
    pub(super) fn is_by_other_name(&self) -> bool {
        self.gaps.iter().any(|it| matches!(it, Gap::LaterName(_)))
    }
}
