//! Checks accesses to memory that resources share although their addresses cannot be compared.
//!
//! An access is added to the states at the addresses of its own resource, and checked against the states at the
//! addresses of the aliases. If an access through this resource lies between, that one was checked against the earlier
//! access already. A barrier on one resource
//! concerns accesses through that resource, and does nothing for another resource in the same memory. A write therefore
//! stores the resource through which it went. Subpass dependencies concern all memory: they make the writes of an
//! attachment's layout transition visible through every resource.
//!
//! Spec: "Memory Aliasing".

use std::ops::Range;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::ResourceId;

use crate::access::access_context::{AccessContext, Addressing};
use crate::access::access_order::AccessOrder;
use crate::access::range_state::{Accessor, Conflict, RangeState};
use crate::access::usages::{SYNC_TABLES, UsageIndex};
use crate::dependency::clocks::Tag;
use crate::queue::device::EngineDevice;

impl EngineDevice {
    /// The conflicts of an access with accesses through aliases.
    pub(crate) fn alias_conflicts(
        &self,
        context: &AccessContext<'_>,
        resource: ResourceId,
        ranges: &[Range<u64>],
        (usage, order): (UsageIndex, AccessOrder),
    ) -> Vec<(Range<u64>, Vec<Conflict>)> {
        let mut conflicts = Vec::new();
        for (own, theirs) in self.addresses.aliased_ranges(resource, ranges) {
            for (_, state) in self.states.overlapping(theirs) {
                for own in split_range(&own, state.alias_boundaries()) {
                    let context =
                        AccessContext { addressing: Addressing::Alias { start: own.start, end: own.end }, ..*context };
                    let found = state.find_conflicts(&context, usage, order);
                    conflicts.extend(self.without_newer_access(&context, (usage, order), &own, &found));
                }
            }
        }
        conflicts
    }

    /// Of some conflicts with an alias: those without a later access through this resource between.
    pub(crate) fn without_newer_access(
        &self,
        context: &AccessContext<'_>,
        by: (UsageIndex, AccessOrder),
        own: &Range<u64>,
        found: &[Conflict],
    ) -> Vec<(Range<u64>, Vec<Conflict>)> {
        let mut left = Vec::new();
        if found.is_empty() {
            return left;
        }
        let mut at = own.start;
        for (part, state) in self.states.overlapping(own.clone()) {
            if at < part.start {
                left.push((at..part.start, found.to_vec()));
            }
            let stays = |it: &&Conflict| !state.has_access_between(context, by, it);
            left.push((part.clone(), found.iter().filter(stays).copied().collect()));
            at = part.end;
        }
        if at < own.end {
            left.push((at..own.end, found.to_vec()));
        }
        left
    }

    /// The writes through aliases to memory that is about to be read: the own addresses, and the tags.
    pub(crate) fn alias_writes(
        &self,
        resource: ResourceId,
        own: &[Range<u64>],
        by: Accessor,
    ) -> Vec<(Range<u64>, Tag)> {
        let mut found = Vec::new();
        if SYNC_TABLES.write_column(by.usage).is_none() && self.addresses.has_aliases(resource) {
            for (own, theirs) in self.addresses.aliased_ranges(resource, own) {
                let states = self.states.overlapping(theirs);
                found.extend(states.flat_map(|it| it.1.write_tags()).map(|tag| (own.clone(), tag)));
            }
        }
        found
    }
}

/// Adds an access to addresses, some of which were written through aliases.
pub(crate) fn add_access(
    states: &mut IntervalMap<RangeState>,
    range: Range<u64>,
    elsewhere: &[(Range<u64>, Tag)],
    by: Accessor,
    context: &AccessContext<'_>,
) {
    states.update(range, |part, state| {
        let state = state.get_or_insert_default();
        if !elsewhere.is_empty() {
            let is_here = |it: &&(Range<u64>, Tag)| it.0.start < part.end && part.start < it.0.end;
            let writes: Vec<Tag> = elsewhere.iter().filter(is_here).map(|it| it.1).collect();
            state.separate_reads(by, context, &writes);
        }
        state.add_access(by, context);
    });
}

/// Splits a range at some addresses.
pub(crate) fn split_range(range: &Range<u64>, cuts: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut all: Vec<u64> = cuts.filter(|it| range.contains(it)).collect();
    all.extend([range.start, range.end]);
    all.sort_unstable();
    all.dedup();
    all.windows(2).map(|it| it[0]..it[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dependency::clocks::QueueClock;
    use crate::memory::addresses::ResourceIdentity;
    use crate::rules::Rules;
    use lavascope_abi::{AccessFlags2, PipelineStageFlags2};

    #[test]
    fn a_range_is_cut_inside() {
        let cut = |cuts: &[u64]| split_range(&(10..20), cuts.iter().copied());
        assert_eq!(cut(&[5, 10, 20, 25]), vec![10..20; 1]);
        assert_eq!(cut(&[15, 12, 15]), [10..12, 12..15, 15..20]);
    }

    /// A write through an alias splits only the reads of the memory that it wrote.
    #[test]
    fn writes_beside_part_nothing() {
        let (clock, apart) = (QueueClock::default(), []);
        let usage = SYNC_TABLES.usage(PipelineStageFlags2::COPY.0, AccessFlags2::TRANSFER_READ.0).expect("a usage");
        let by = Accessor { usage, queue: 0, order: AccessOrder::None };
        let kept = |elsewhere: &[(Range<u64>, Tag)]| {
            let mut states = IntervalMap::default();
            for (tag, elsewhere) in [(10, &[][..]), (30, elsewhere)] {
                let (rules, identity, name) = (Rules::CONTRACT, ResourceIdentity::default(), Addressing::Own);
                let (instance, from) = (None, 0);
                let context = AccessContext {
                    rules,
                    clock: &clock,
                    queue: 0,
                    tag,
                    instance_begin: instance,
                    pass_begin: Tag::MAX,
                    subpass_begin: from,
                    unordered_subpasses: &apart,
                    rare_order: None,
                    identity,
                    addressing: name,
                };
                add_access(&mut states, 8..16, elsewhere, by, &context);
            }
            states.iter().map(|it| it.1.clone()).collect::<Vec<RangeState>>()
        };
        let plain = kept(&[]);
        assert_eq!((kept(&[(0..8, 20)]), kept(&[(16..24, 20)])), (plain.clone(), plain.clone()));
        assert_ne!(kept(&[(0..9, 20)]), plain);
        assert_ne!(kept(&[(15..24, 20)]), plain);
        // The write is older than the first read.
        assert_eq!(kept(&[(8..16, 5)]), plain);
    }
}
