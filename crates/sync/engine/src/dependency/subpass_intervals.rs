//! Dependencies of stretches: those whose first scope is a part of a queue's work, a subpass, and not all of it so far.
//!
//! They do not fit into the tables of a clock, so they are kept one by one, and every look at a clock looks at them.
//! There must be few, however long a program runs. What the tables say by now goes (see `clock`), and so does what
//! another one says too. Where nothing wider ever comes, what is left is held against what ranges remember
//! ([`ClockQueries`]): nobody asks for a stretch without such an access, and two with none between them are one. All of this
//! is exact: the answers stay the same.

use crate::access::usages::{SYNC_TABLES, StageIndex, StageSet, UsageIndex, UsageSet};
use crate::dependency::clocks::{KeySet, Tag};
use crate::dependency::tag_rows::TagRow;

/// A dependency of a stretch, with what later dependencies chained to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubpassInterval {
    pub(crate) queue: u8,
    /// The tags it covers: after `begin`, up to and with `end`.
    pub(crate) begin: Tag,
    pub(crate) end: Tag,
    /// The stages and the writes that it covers.
    pub(crate) src: StageSet,
    pub(crate) src_usages: UsageSet,
    /// What they happen before, and to what they are visible.
    pub(crate) dst: StageSet,
    pub(crate) dst_usages: UsageSet,
}

impl SubpassInterval {
    pub(crate) fn contains(&self, queue: u8, tag: Tag) -> bool {
        self.begin < tag && tag <= self.end && self.queue == queue
    }

    /// What a table must have for it to say nothing new: its lanes, and its writes.
    pub(crate) fn covering_rows(&self) -> (TagRow, TagRow) {
        let (mut lanes, mut writes) = (TagRow::default(), TagRow::default());
        lanes.raise(self.queue, self.src.0, self.end);
        writes.raise(self.queue, SYNC_TABLES.write_columns(self.src_usages), self.end);
        (lanes, writes)
    }

    /// Whether it says all that another says.
    pub(crate) fn covers(&self, other: &SubpassInterval) -> bool {
        self.begin <= other.begin
            && other.end <= self.end
            && self.queue == other.queue
            && other.src.and_not(self.src).is_none()
            && other.dst.and_not(self.dst).is_none()
            && other.src_usages.and_not(self.src_usages).is_none()
            && other.dst_usages.and_not(self.dst_usages).is_none()
    }

    pub(crate) fn is_same_source(&self, other: &SubpassInterval) -> bool {
        let key = |it: &SubpassInterval| (it.begin, it.end, it.queue, it.src, it.src_usages);
        key(self) == key(other)
    }

    /// Whether they differ in nothing but their tags.
    fn differs_only_in_tags(&self, other: &SubpassInterval) -> bool {
        *self == SubpassInterval { begin: self.begin, end: self.end, ..*other }
    }

    /// Whether somebody may ask whether it has an access.
    fn is_queried_by(&self, clock_query: &ClockQuery) -> bool {
        let is_write = || clock_query.write.is_some_and(|write| self.src_usages.has(write));
        clock_query.queue == self.queue && (!clock_query.stages.and(self.src).is_none() || is_write())
    }
}

/// Stretches, none of which says all that another says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SubpassIntervals(Vec<SubpassInterval>);

impl SubpassIntervals {
    #[cfg(test)]
    pub(crate) fn of(all: &[SubpassInterval]) -> SubpassIntervals {
        SubpassIntervals(all.to_vec())
    }

    #[inline]
    pub(crate) fn any(&self, is_it: impl Fn(&SubpassInterval) -> bool) -> bool {
        self.0.iter().any(is_it)
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

    pub(crate) fn add(&mut self, mut new: SubpassInterval) {
        for subpass_interval in &self.0 {
            if subpass_interval.covers(&new) {
                return;
            }
            if subpass_interval.is_same_source(&new) {
                new.dst = new.dst.union(subpass_interval.dst);
                new.dst_usages = new.dst_usages.union(subpass_interval.dst_usages);
            }
        }
        self.0.retain(|it| !new.covers(it));
        self.0.push(new);
    }

    /// The sources of those that some stages come after.
    pub(crate) fn add_before(&mut self, other: &SubpassIntervals, stages: StageSet) {
        for subpass_interval in other.iter().filter(|it| !it.dst.and(stages).is_none()) {
            self.add(SubpassInterval {
                dst: StageSet::default(),
                dst_usages: UsageSet::default(),
                ..*subpass_interval
            });
        }
    }

    /// Forgets what nobody asks for, and joins those between which nobody asks for anything.
    pub(crate) fn retain_queried(&mut self, asked: &ClockQueries) {
        let mut old = std::mem::take(&mut self.0);
        old.sort_by_key(|it| (it.begin, it.end));
        for subpass_interval in old.into_iter().filter(|it| asked.has_any(it, it.begin, it.end)) {
            // The last one like it: one before that has something between.
            match self.0.iter_mut().rfind(|own| own.differs_only_in_tags(&subpass_interval)) {
                Some(own) if !asked.has_any(&subpass_interval, own.end, subpass_interval.begin) => {
                    own.end = own.end.max(subpass_interval.end)
                }
                _ => self.0.push(subpass_interval),
            }
        }
    }
}

/// An access, or a dependency on a single resource, that ranges remember.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockQuery {
    pub(crate) tag: Tag,
    pub(crate) queue: u8,
    /// The lanes by which it is asked for.
    pub(crate) stages: StageSet,
    pub(crate) write: Option<UsageIndex>,
}

impl ClockQuery {
    pub(crate) fn of_stage(queue: u8, stage: StageIndex, tag: Tag) -> ClockQuery {
        let mut stages = StageSet::default();
        stages.add(stage);
        ClockQuery { tag, queue, stages, write: None }
    }
}

/// All that anybody can ask a clock for from now on, but for what is done later.
pub(crate) struct ClockQueries(Vec<ClockQuery>);

impl ClockQueries {
    pub(crate) fn new(mut all: Vec<ClockQuery>) -> ClockQueries {
        all.sort_unstable_by_key(|it| it.tag);
        ClockQueries(all)
    }

    /// Whether there is something for a stretch after one tag, up to and with another.
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
    fn what_another_says_too_is_not_kept() {
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
    fn nobody_asks_for_what_no_range_remembers() {
        let mut all = SubpassIntervals::default();
        for begin in [10, 20, 30, 40] {
            all.add(interval(begin, begin + 5, 0b1));
        }
        let asked = |tags: &[Tag]| ClockQueries::new(tags.iter().map(|it| ClockQuery::of_stage(0, SRC, *it)).collect());
        let kept = |asks: &[Tag]| {
            let mut all = all.clone();
            all.retain_queried(&asked(asks));
            tags(&all)
        };
        assert_eq!(kept(&[]), []);
        assert_eq!(kept(&[10, 16, 46]), []);
        // Nothing between the first and the last; then something that only lies between.
        assert_eq!(kept(&[11, 45]), [(10, 45)]);
        assert_eq!(kept(&[11, 18, 25, 32]), [(10, 15), (20, 35)]);
    }

    #[test]
    fn what_leads_elsewhere_is_not_joined() {
        let mut all = SubpassIntervals::default();
        all.add(interval(10, 15, 0b1));
        all.add(interval(20, 25, 0b10));
        all.retain_queried(&ClockQueries::new([12, 22].map(|it| ClockQuery::of_stage(0, SRC, it)).to_vec()));
        assert_eq!(tags(&all), [(10, 15), (20, 25)]);
    }

    #[test]
    fn other_queues_and_stages_are_not_between() {
        let mut all = SubpassIntervals::default();
        all.add(interval(10, 15, 0b1));
        all.add(interval(20, 25, 0b1));
        let ask = |queue, stage, tag| ClockQuery::of_stage(queue, StageIndex(stage), tag);
        let asks = vec![ask(0, SRC.0, 12), ask(0, SRC.0, 22), ask(1, SRC.0, 18), ask(0, SRC.0 + 1, 18)];
        all.retain_queried(&ClockQueries::new(asks));
        assert_eq!(tags(&all), [(10, 25)]);
    }
}
