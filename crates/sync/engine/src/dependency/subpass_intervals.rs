//! Subpass intervals: dependencies whose first synchronization scope is one subpass, not all earlier work of a queue.
//!
//! Two rules of the specification limit a first scope (`synchronization-dependencies-scopes`) in this way:
//!
//! - `VkSubpassDependency`: if `srcSubpass` is not `VK_SUBPASS_EXTERNAL`, the first scope has only the commands of that
//!   subpass instance and the load, store and resolve operations of its attachments.
//! - `vkCmdPipelineBarrier`: inside a render pass instance, the first scope has only earlier commands of the same
//!   subpass.
//!
//! A clock stores, for each queue and stage, one tag up to which all work is ordered (`clocks`). An interval has a
//! beginning as well, so it does not fit into these tables. A clock keeps its intervals in a list, and each query of the
//! clock searches the list. The list must stay short, however long a program runs. The rules:
//!
//! 1. **An interval has the scopes of its dependency.** It orders an access before a stage if the tag lies in the
//!    interval, `src` has the stage of the access, and `dst` has the later stage. For writes, `src_usages` is the first
//!    access scope and `dst_usages` the second (`synchronization-dependencies-access-scopes`).
//! 2. **A later dependency continues an interval if its first scope has a stage of `dst`.** This is an execution
//!    dependency chain (`synchronization-dependencies-chains`): the source stays, the second scope is that of the
//!    later dependency.
//! 3. **No interval of a list covers another.** The covered one answers no query that the other does not answer.
//! 4. **A clock drops an interval that its tables cover** (`QueueClock::forget_covered`), for the same reason.
//! 5. **An interval without an access that some range remembers is dropped, and two intervals with equal scopes and no
//!    such access between them are merged** ([`SubpassIntervals::retain_queried`]). Only those accesses are ever queried;
//!    accesses of the future have tags after the end of every interval.
//!
//! Rules 3 to 5 change no answer of a clock.

use crate::access::usages::{SYNC_TABLES, StageIndex, StageSet, UsageIndex, UsageSet};
use crate::dependency::clocks::{KeySet, Tag};
use crate::dependency::tag_rows::TagRow;

/// A dependency from one subpass, or from the part of a subpass before a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubpassInterval {
    pub(crate) queue: u8,
    /// The interval has the tags after `begin`, up to and including `end`.
    pub(crate) begin: Tag,
    pub(crate) end: Tag,
    /// First synchronization scope.
    pub(crate) src: StageSet,
    /// First access scope: the writes that become available.
    pub(crate) src_usages: UsageSet,
    /// Second synchronization scope.
    pub(crate) dst: StageSet,
    /// Second access scope: the accesses to which the writes become visible.
    pub(crate) dst_usages: UsageSet,
}

impl SubpassInterval {
    pub(crate) fn contains(&self, queue: u8, tag: Tag) -> bool {
        self.begin < tag && tag <= self.end && self.queue == queue
    }

    /// The rows with which a table answers all that the interval answers: stages first, writes second. A row has no
    /// beginning, so it covers at least the interval.
    pub(crate) fn covering_rows(&self) -> (TagRow, TagRow) {
        let (mut stages, mut writes) = (TagRow::default(), TagRow::default());
        stages.raise(self.queue, self.src.0, self.end);
        writes.raise(self.queue, SYNC_TABLES.write_columns(self.src_usages), self.end);
        (stages, writes)
    }

    /// Whether this interval orders everything that another orders. Rule 3.
    pub(crate) fn covers(&self, other: &SubpassInterval) -> bool {
        self.begin <= other.begin
            && other.end <= self.end
            && self.queue == other.queue
            && other.src.and_not(self.src).is_none()
            && other.dst.and_not(self.dst).is_none()
            && other.src_usages.and_not(self.src_usages).is_none()
            && other.dst_usages.and_not(self.dst_usages).is_none()
    }

    pub(crate) fn has_same_source(&self, other: &SubpassInterval) -> bool {
        let source = |it: &SubpassInterval| (it.begin, it.end, it.queue, it.src, it.src_usages);
        source(self) == source(other)
    }

    fn differs_only_in_tags(&self, other: &SubpassInterval) -> bool {
        *self == SubpassInterval { begin: self.begin, end: self.end, ..*other }
    }

    /// Whether the first scopes have an access, wherever its tag lies.
    fn is_queried_by(&self, query: &ClockQuery) -> bool {
        let has_write = || query.write.is_some_and(|write| self.src_usages.has(write));
        query.queue == self.queue && (!query.stages.and(self.src).is_none() || has_write())
    }
}

/// The intervals of a clock or of a first scope. Rule 3 holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SubpassIntervals(Vec<SubpassInterval>);

impl SubpassIntervals {
    #[cfg(test)]
    pub(crate) fn of(all: &[SubpassInterval]) -> SubpassIntervals {
        SubpassIntervals(all.to_vec())
    }

    #[inline]
    pub(crate) fn any(&self, is_wanted: impl Fn(&SubpassInterval) -> bool) -> bool {
        self.0.iter().any(is_wanted)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &SubpassInterval> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn retain(&mut self, is_kept: impl FnMut(&SubpassInterval) -> bool) {
        self.0.retain(is_kept);
    }

    /// Limits second synchronization scopes, and removes intervals with empty second scopes.
    pub(crate) fn retain_dst(&mut self, kept: impl Fn(StageSet) -> StageSet) {
        self.0.iter_mut().for_each(|it| it.dst = kept(it.dst));
        self.0.retain(|it| !(it.dst.is_empty() && it.dst_usages.is_empty()));
    }

    /// Adds an interval, joined with those that have the same source, and removes what it covers. Rule 3.
    pub(crate) fn add(&mut self, mut new: SubpassInterval) {
        for interval in &self.0 {
            if interval.covers(&new) {
                return;
            }
            if interval.has_same_source(&new) {
                new.dst = new.dst.union(interval.dst);
                new.dst_usages = new.dst_usages.union(interval.dst_usages);
            }
        }
        self.0.retain(|it| !new.covers(it));
        self.0.push(new);
    }

    /// Adds the sources of the intervals that a first scope with these stages continues. Rule 2. The caller sets the
    /// second scopes.
    pub(crate) fn add_chained(&mut self, other: &SubpassIntervals, src: StageSet) {
        for interval in other.iter().filter(|it| !it.dst.and(src).is_none()) {
            self.add(SubpassInterval { dst: StageSet::default(), dst_usages: UsageSet::default(), ..*interval });
        }
    }

    /// Drops and merges intervals by the accesses that ranges remember. Rule 5.
    pub(crate) fn retain_queried(&mut self, queries: &ClockQueries) {
        let mut old = std::mem::take(&mut self.0);
        old.sort_by_key(|it| (it.begin, it.end));
        for interval in old.into_iter().filter(|it| queries.has_any(it, it.begin, it.end)) {
            // Only the last similar interval can be merged: an access lies between the earlier ones and that one.
            match self.0.iter_mut().rfind(|own| own.differs_only_in_tags(&interval)) {
                Some(own) if !queries.has_any(&interval, own.end, interval.begin) => {
                    own.end = own.end.max(interval.end)
                }
                _ => self.0.push(interval),
            }
        }
    }
}

/// An access that a range remembers, or the point at which a write became available by a dependency on a single
/// resource (`overlays`). Clocks are queried for these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockQuery {
    pub(crate) tag: Tag,
    pub(crate) queue: u8,
    /// The stages by which the clock is queried.
    pub(crate) stages: StageSet,
    /// The usage of a write, for queries about availability and visibility.
    pub(crate) write: Option<UsageIndex>,
}

impl ClockQuery {
    pub(crate) fn of_stage(queue: u8, stage: StageIndex, tag: Tag) -> ClockQuery {
        let mut stages = StageSet::default();
        stages.add(stage);
        ClockQuery { tag, queue, stages, write: None }
    }
}

/// Everything that a clock can be queried for, apart from accesses of the future; sorted by tag.
pub(crate) struct ClockQueries(Vec<ClockQuery>);

impl ClockQueries {
    pub(crate) fn new(mut all: Vec<ClockQuery>) -> ClockQueries {
        all.sort_unstable_by_key(|it| it.tag);
        ClockQueries(all)
    }

    /// Whether a query after `after`, up to and including `until`, is in the first scopes of an interval.
    fn has_any(&self, interval: &SubpassInterval, after: Tag, until: Tag) -> bool {
        let first = self.0.partition_point(|it| it.tag <= after);
        self.0[first..].iter().take_while(|it| it.tag <= until).any(|it| interval.is_queried_by(it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRC: StageIndex = StageIndex(3);

    fn interval(begin: Tag, end: Tag, dst: u64) -> SubpassInterval {
        let (src_usages, dst_usages) = (UsageSet::default(), UsageSet::default());
        SubpassInterval { queue: 0, begin, end, src: StageSet(1 << SRC.0), src_usages, dst: StageSet(dst), dst_usages }
    }

    fn tags(intervals: &SubpassIntervals) -> Vec<(Tag, Tag)> {
        intervals.iter().map(|it| (it.begin, it.end)).collect()
    }

    #[test]
    fn an_interval_that_another_covers_is_not_kept() {
        let mut all = SubpassIntervals::default();
        all.add(interval(4, 8, 0b1));
        all.add(interval(4, 9, 0b11));
        all.add(interval(5, 9, 0b10));
        assert_eq!(tags(&all), [(4, 9)]);
        all.add(interval(4, 8, 0b100));
        all.add(interval(4, 8, 0b1000));
        assert_eq!(tags(&all), [(4, 9), (4, 8)]);
        assert!(all.any(|it| it.end == 8 && it.dst == StageSet(0b1100)));
    }

    #[test]
    fn intervals_without_remembered_accesses_are_dropped() {
        let mut all = SubpassIntervals::default();
        for begin in [10, 20, 30, 40] {
            all.add(interval(begin, begin + 5, 0b1));
        }
        let queries =
            |tags: &[Tag]| ClockQueries::new(tags.iter().map(|it| ClockQuery::of_stage(0, SRC, *it)).collect());
        let kept = |tags_of_accesses: &[Tag]| {
            let mut all = all.clone();
            all.retain_queried(&queries(tags_of_accesses));
            tags(&all)
        };
        assert_eq!(kept(&[]), []);
        assert_eq!(kept(&[10, 16, 46]), []);
        // First no access lies between the intervals, then accesses lie between them.
        assert_eq!(kept(&[11, 45]), [(10, 45)]);
        assert_eq!(kept(&[11, 18, 25, 32]), [(10, 15), (20, 35)]);
    }

    #[test]
    fn intervals_with_other_second_scopes_are_not_merged() {
        let mut all = SubpassIntervals::default();
        all.add(interval(10, 15, 0b1));
        all.add(interval(20, 25, 0b10));
        all.retain_queried(&ClockQueries::new([12, 22].map(|it| ClockQuery::of_stage(0, SRC, it)).to_vec()));
        assert_eq!(tags(&all), [(10, 15), (20, 25)]);
    }

    #[test]
    fn accesses_of_other_queues_and_stages_do_not_separate() {
        let mut all = SubpassIntervals::default();
        all.add(interval(10, 15, 0b1));
        all.add(interval(20, 25, 0b1));
        let query = |queue, stage, tag| ClockQuery::of_stage(queue, StageIndex(stage), tag);
        let queries = vec![query(0, SRC.0, 12), query(0, SRC.0, 22), query(1, SRC.0, 18), query(0, SRC.0 + 1, 18)];
        all.retain_queried(&ClockQueries::new(queries));
        assert_eq!(tags(&all), [(10, 25)]);
    }
}
