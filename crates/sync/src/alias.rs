//! Accesses to memory by names whose addresses cannot be compared.
//!
//! Each is kept at the addresses of its own resource, and held against those of the others. What stands between, by
//! the name of the later one, has been held against the earlier one in its stead. Spec: "Memory Aliasing".

use std::ops::Range;

use lavascope_program::ResourceId;

use crate::device::Device;
use crate::order::Order;
use crate::state::{Conflict, Name, Now};
use crate::usage::Usage;

impl Device {
    /// Conflicts of an access with what was done by other names.
    pub(crate) fn alias_conflicts(
        &self,
        now: Now<'_>,
        resource: ResourceId,
        ranges: &[Range<u64>],
        (usage, order): (Usage, Order),
    ) -> Vec<(Range<u64>, Vec<Conflict>)> {
        let mut conflicts = Vec::new();
        for (own, theirs) in self.addresses.aliased(resource, ranges) {
            for (_, state) in self.states.overlapping(theirs) {
                for own in pieces(&own, state.cuts()) {
                    let now = Now { name: Name::Alias { start: own.start, end: own.end }, ..now };
                    let found = state.check(now, usage, order);
                    conflicts.extend(self.by_another_name(now, usage, &own, &found));
                }
            }
        }
        conflicts
    }

    /// Of conflicts with accesses by another name, those where nothing by this name stands between.
    pub(crate) fn by_another_name(
        &self,
        now: Now<'_>,
        usage: Usage,
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
            let stays = |it: &&Conflict| !state.stands_between(now, usage, it);
            left.push((part.clone(), found.iter().filter(stays).copied().collect()));
            at = part.end;
        }
        if at < own.end {
            left.push((at..own.end, found.to_vec()));
        }
        left
    }
}

/// A range, cut at some places.
fn pieces(range: &Range<u64>, cuts: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut all: Vec<u64> = cuts.filter(|it| range.start < *it && *it < range.end).collect();
    all.extend([range.start, range.end]);
    all.sort_unstable();
    all.dedup();
    all.windows(2).map(|it| it[0]..it[1]).collect()
}
