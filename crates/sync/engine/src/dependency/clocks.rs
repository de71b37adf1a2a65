//! Clocks: what is ordered before a point in a queue's timeline, whatever the number of resources.
//!
//! A clock has four tables. Their columns are lanes (queue, stage) or writes (queue, usage that writes), of every
//! queue; their cells are tags.
//!
//! - `happened[d]`: every access of a lane up to this tag happens before stage `d`.
//! - `available[d]`: every such write is available, and its chain of dependencies reaches stage `d`.
//! - `visible[v]`: every such write is visible to usage `v`.
//! - `reached[v]`: like `visible`, but of lanes: for dependencies on single resources (`overlays`).
//!
//! Most stages share their row with many others, so a table is a few classes of stages with a row each, and a barrier
//! costs what the classes cost. A barrier changes rows; no range is touched. Dependencies of subpasses cover an
//! interval of a queue's work and do not fit into the tables; they are kept apart until the tables cover them
//! (`subpass_intervals.rs`).

use std::fmt::Debug;

use crate::access::usages::{SYNC_TABLES, StageIndex, StageSet, USAGE_WORDS, UsageIndex, UsageSet};
use crate::dependency::batch_clock::BatchClock;
use crate::dependency::subpass_intervals::{ClockQueries, SubpassInterval, SubpassIntervals};
use crate::dependency::tag_rows::{Column, TagRow, lane, write};

/// Names an access or a synchronization operation; later ones are greater.
pub(crate) type Tag = u64;

/// A set of keys of a table: stages or usages.
pub trait KeySet: Copy + PartialEq {
    /// One byte for each key: its class. It is an inline array because clocks are copied often.
    type Classes: Clone + Debug + AsRef<[u8]> + AsMut<[u8]>;
    /// The value for a table without rows.
    const NONE: Self::Classes;

    fn and(self, other: Self) -> Self;
    fn and_not(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn is_none(self) -> bool;
    fn each(self, each: impl FnMut(usize));
}

impl KeySet for StageSet {
    type Classes = [u8; 64];
    const NONE: [u8; 64] = [NO_CLASS; 64];

    fn and(self, other: Self) -> Self {
        StageSet(self.0 & other.0)
    }

    fn and_not(self, other: Self) -> Self {
        StageSet(self.0 & !other.0)
    }

    fn or(self, other: Self) -> Self {
        self.union(other)
    }

    fn is_none(self) -> bool {
        self.is_empty()
    }

    fn each(self, mut each: impl FnMut(usize)) {
        self.iter().for_each(|it| each(usize::from(it.0)));
    }
}

impl KeySet for UsageSet {
    type Classes = [u8; USAGE_WORDS * 64];
    const NONE: [u8; USAGE_WORDS * 64] = [NO_CLASS; USAGE_WORDS * 64];

    fn and(self, other: Self) -> Self {
        UsageSet(std::array::from_fn(|it| self.0[it] & other.0[it]))
    }

    fn and_not(self, other: Self) -> Self {
        UsageSet(std::array::from_fn(|it| self.0[it] & !other.0[it]))
    }

    fn or(self, other: Self) -> Self {
        self.union(other)
    }

    fn is_none(self) -> bool {
        self.is_empty()
    }

    fn each(self, mut each: impl FnMut(usize)) {
        self.iter().for_each(|it| each(usize::from(it.0)));
    }
}

/// A table of rows by key. Keys with equal rows share one row.
#[derive(Clone, Debug)]
pub(crate) struct ClockTable<K: KeySet> {
    classes: Vec<RowClass<K>>,
    /// The class of each key; `NO_CLASS` for keys whose row is zero.
    class_of_key: K::Classes,
}

#[derive(Clone, Debug)]
struct RowClass<K> {
    keys: K,
    row: TagRow,
}

const NO_CLASS: u8 = u8::MAX;

impl<K: KeySet> Default for ClockTable<K> {
    fn default() -> ClockTable<K> {
        ClockTable { classes: Vec::new(), class_of_key: K::NONE }
    }
}

impl<K: KeySet> ClockTable<K> {
    fn clear(&mut self) {
        if !self.classes.is_empty() {
            self.classes.clear();
            self.class_of_key = K::NONE;
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: usize, column: Column) -> Tag {
        match self.class_of_key.as_ref()[key] {
            NO_CLASS => 0,
            class => self.classes[usize::from(class)].row.get(column),
        }
    }

    /// The maximum, cell by cell, of the rows of some keys.
    fn joined_row(&self, keys: K) -> TagRow {
        let mut row = TagRow::default();
        for class in self.classes.iter().filter(|it| !it.keys.and(keys).is_none()) {
            row.merge(&class.row);
        }
        row
    }

    /// The keys among `keys` whose rows do not cover `row`.
    fn keys_not_covering(&self, keys: K, row: &TagRow) -> K {
        if row.is_zero() {
            return keys.and_not(keys);
        }
        let covering = self.classes.iter().filter(|it| !it.keys.and(keys).is_none() && it.row.covers(row));
        covering.fold(keys, |left, it| left.and_not(it.keys))
    }

    /// Removes rows that the rows of another table cover.
    fn forget_covered(&mut self, other: &ClockTable<K>) {
        for index in (0..self.classes.len()).rev() {
            let RowClass { keys, row } = &self.classes[index];
            let own = other.classes.iter().filter(|it| it.row.covers(row));
            if own.fold(*keys, |left, it| left.and_not(it.keys)).is_none() {
                keys.each(|key| self.class_of_key.as_mut()[key] = NO_CLASS);
                self.classes.swap_remove(index);
                if let Some(moved) = self.classes.get(index) {
                    moved.keys.each(|key| self.class_of_key.as_mut()[key] = index as u8);
                }
            }
        }
    }

    /// Whether two keys have different rows.
    fn differs(&self, one: usize, other: usize) -> bool {
        self.class_of_key.as_ref()[one] != self.class_of_key.as_ref()[other]
    }

    /// Gives a key the row of another key. The set has just the first key.
    fn copy_row(&mut self, (key, only): (usize, K), other: usize) {
        for class in &mut self.classes {
            class.keys = class.keys.and_not(only);
        }
        let class = self.class_of_key.as_ref()[other];
        self.class_of_key.as_mut()[key] = class;
        if let Some(own) = self.classes.get_mut(usize::from(class)) {
            own.keys = own.keys.or(only);
        }
    }

    /// Raises the rows of some keys to at least `by`.
    fn raise(&mut self, keys: K, by: &TagRow) {
        if by.is_zero() {
            return;
        }
        let mut left = keys;
        let mut is_changed = false;
        for index in 0..self.classes.len() {
            let part = self.classes[index].keys.and(keys);
            if part.is_none() {
                continue;
            }
            left = left.and_not(part);
            if self.classes[index].row.covers(by) {
                continue;
            }
            is_changed = true;
            if part == self.classes[index].keys {
                self.classes[index].row.merge(by);
            } else {
                let mut row = self.classes[index].row.clone();
                row.merge(by);
                self.classes[index].keys = self.classes[index].keys.and_not(part);
                self.add(part, row);
            }
        }
        if !left.is_none() {
            self.add(left, by.clone());
            is_changed = true;
        }
        if is_changed {
            self.merge_equal_rows();
        }
    }

    fn raise_each(&mut self, other: &ClockTable<K>) {
        for class in &other.classes {
            self.raise(class.keys, &class.row);
        }
    }

    fn add(&mut self, keys: K, row: TagRow) {
        let class = self.classes.len() as u8;
        keys.each(|key| self.class_of_key.as_mut()[key] = class);
        self.classes.push(RowClass { keys, row });
    }

    /// Joins classes that have equal rows.
    fn merge_equal_rows(&mut self) {
        let mut index = 1;
        while index < self.classes.len() {
            let same = self.classes[..index].iter().position(|it| it.row == self.classes[index].row);
            match same {
                Some(first) => {
                    let gone = self.classes.swap_remove(index);
                    self.classes[first].keys = self.classes[first].keys.or(gone.keys);
                    gone.keys.each(|key| self.class_of_key.as_mut()[key] = first as u8);
                    if let Some(moved) = self.classes.get(index) {
                        moved.keys.each(|key| self.class_of_key.as_mut()[key] = index as u8);
                    }
                }
                None => index += 1,
            }
        }
    }
}

/// What is in the first scope of a dependency: the lanes that happened before, and the writes that are available.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstScope {
    happened: TagRow,
    available: TagRow,
    /// Lanes whose points are in the scope, where that is more than `happened`.
    points: TagRow,
    intervals: SubpassIntervals,
}

impl FirstScope {
    /// A scope with the accesses of a queue up to a tag, in some stages and with some usages. It has no dependency
    /// chains.
    pub(crate) fn from_queue(queue: u8, tag: Tag, src: StageSet, usages: UsageSet) -> FirstScope {
        let mut first_scope = FirstScope::default();
        first_scope.raise(queue, tag, src, usages);
        first_scope
    }

    fn raise(&mut self, queue: u8, tag: Tag, src: StageSet, usages: UsageSet) {
        self.happened.raise(queue, src.0, tag);
        self.available.raise(queue, SYNC_TABLES.write_columns(usages), tag);
    }

    /// Whether the scope has the point at which writes became available to a stage of a queue, for all later commands.
    pub(crate) fn has_point(&self, queue: u8, stage: StageIndex, tag: Tag) -> bool {
        self.happened.get(lane(queue, stage)) >= tag || self.points.get(lane(queue, stage)) >= tag
    }

    /// Whether an access is in the scope.
    pub(crate) fn has_access(&self, queue: u8, stage: StageIndex, tag: Tag) -> bool {
        self.happened.get(lane(queue, stage)) >= tag
            || self.intervals.any(|it| it.contains(queue, tag) && it.src.has(stage))
    }

    /// Whether a write is available in the scope.
    pub(crate) fn has_available(&self, queue: u8, usage: UsageIndex, tag: Tag) -> bool {
        let column = SYNC_TABLES.write_column(usage).unwrap_or(0);
        self.available.get(write(queue, column)) >= tag
            || self.intervals.any(|it| it.contains(queue, tag) && it.src_usages.has(usage))
    }

    /// Whether this scope has everything that `other` has.
    pub(crate) fn covers(&self, other: &FirstScope) -> bool {
        self.happened.covers(&other.happened)
            && self.available.covers(&other.available)
            && (other.points.is_zero() || self.all_points().covers(&other.points))
            && other.intervals.iter().all(|it| self.covers_interval(it) || self.intervals.any(|own| own.covers(it)))
    }

    /// Whether the rows alone have everything that an interval has.
    fn covers_interval(&self, subpass_interval: &SubpassInterval) -> bool {
        let (lanes, writes) = subpass_interval.covering_rows();
        self.happened.covers(&lanes) && self.available.covers(&writes)
    }

    fn all_points(&self) -> TagRow {
        let mut all = self.happened.clone();
        all.merge(&self.points);
        all
    }

    pub(crate) fn merge(&mut self, other: &FirstScope) {
        self.happened.merge(&other.happened);
        self.available.merge(&other.available);
        self.points.merge(&other.points);
        other.intervals.iter().for_each(|it| self.intervals.add(*it));
        if !self.intervals.is_empty() {
            self.forget_covered();
        }
    }

    /// Drops intervals that no remembered access can query.
    pub(crate) fn retain_queried(&mut self, queries: &ClockQueries) {
        self.intervals.retain_queried(queries);
    }

    /// Removes intervals that the rows cover (`subpass_intervals`, rule 4).
    pub(crate) fn forget_covered(&mut self) {
        if self.happened.covers(&self.points) {
            self.points = TagRow::default();
        }
        let mut intervals = std::mem::take(&mut self.intervals);
        intervals.retain(|it| !self.covers_interval(it));
        self.intervals = intervals;
    }
}

/// The writes that are visible to some usages, and the lanes that have reached them.
#[derive(Clone, Debug, Default)]
pub(crate) struct VisibleWrites {
    rows: Vec<UsageVisibility>,
    /// Intervals whose second scope has these usages.
    intervals: SubpassIntervals,
}

/// The rows of one usage.
#[derive(Clone, Debug)]
struct UsageVisibility {
    usage: UsageIndex,
    visible: TagRow,
    reached: TagRow,
    points: TagRow,
}

impl UsageVisibility {
    fn covers(&self, other: &UsageVisibility) -> bool {
        self.visible.covers(&other.visible) && self.reached.covers(&other.reached) && self.points.covers(&other.points)
    }

    fn is_zero(&self) -> bool {
        self.visible.is_zero() && self.reached.is_zero() && self.points.is_zero()
    }
}

impl VisibleWrites {
    /// Whether this has everything that `other` has.
    pub(crate) fn covers(&self, other: &VisibleWrites) -> bool {
        let has = |it: &UsageVisibility| it.is_zero() || self.row(it.usage).is_some_and(|own| own.covers(it));
        let has_interval = |it: &SubpassInterval| self.covers_interval(it) || self.intervals.any(|own| own.covers(it));
        other.rows.iter().all(has) && other.intervals.iter().all(has_interval)
    }

    fn row(&self, usage: UsageIndex) -> Option<&UsageVisibility> {
        self.rows.iter().find(|it| it.usage == usage)
    }

    /// Whether the rows alone have everything that an interval has.
    fn covers_interval(&self, subpass_interval: &SubpassInterval) -> bool {
        let (lanes, writes) = subpass_interval.covering_rows();
        let has = |own: &UsageVisibility| own.reached.covers(&lanes) && own.visible.covers(&writes);
        subpass_interval.dst_usages.iter().all(|usage| self.row(usage).is_some_and(has))
    }

    pub(crate) fn merge(&mut self, other: &VisibleWrites) {
        for row in &other.rows {
            match self.rows.iter_mut().find(|own| own.usage == row.usage) {
                Some(own) => {
                    own.visible.merge(&row.visible);
                    own.reached.merge(&row.reached);
                    own.points.merge(&row.points);
                }
                None => self.rows.push(row.clone()),
            }
        }
        other.intervals.iter().for_each(|it| self.intervals.add(*it));
        if !self.intervals.is_empty() {
            let mut intervals = std::mem::take(&mut self.intervals);
            intervals.retain(|it| !self.covers_interval(it));
            self.intervals = intervals;
        }
    }

    /// Drops intervals that no remembered access can query.
    pub(crate) fn retain_queried(&mut self, queries: &ClockQueries) {
        self.intervals.retain_queried(queries);
    }
}

/// What is ordered before one point in a queue's timeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueClock {
    happened: ClockTable<StageSet>,
    available: ClockTable<StageSet>,
    /// Like `happened`, but for points, which are ordered before every later command of the queue. A dependency from an
    /// interval therefore has all of them. Stored only where it is more than `happened`.
    points: ClockTable<StageSet>,
    visible: ClockTable<UsageSet>,
    reached: ClockTable<UsageSet>,
    /// Like `reached`, but from `points`. Stored only where it is more than `reached`.
    reached_points: ClockTable<UsageSet>,
    intervals: SubpassIntervals,
    ended_subpasses: Option<Box<EndedSubpasses>>,
    /// For each queue, the last batch that is known here by any path of semaphores or waits.
    pub(crate) batches: BatchClock,
}

/// What was ordered before the stages of subpasses that have ended. It is not ordered before later commands, but a
/// dependency with those subpasses in its first scope continues the chain.
#[derive(Clone, Debug)]
struct EndedSubpasses {
    happened: ClockTable<StageSet>,
    available: ClockTable<StageSet>,
    points: ClockTable<StageSet>,
    intervals: SubpassIntervals,
}

impl EndedSubpasses {
    /// Removes what these tables and the tables of the clock cover together. A first scope has both.
    fn forget_covered(&mut self, own_happened: &ClockTable<StageSet>, own_available: &ClockTable<StageSet>) {
        let EndedSubpasses { happened, available, intervals, .. } = self;
        intervals.retain(|interval| {
            let (lanes, writes) = interval.covering_rows();
            let left = own_happened.keys_not_covering(happened.keys_not_covering(interval.dst, &lanes), &lanes);
            !(left.is_none()
                && own_available
                    .keys_not_covering(available.keys_not_covering(interval.dst, &writes), &writes)
                    .is_none())
        });
    }
}

impl QueueClock {
    /// Resets the clock to the beginning of the timeline.
    pub(crate) fn clear(&mut self) {
        let QueueClock { happened, available, points, visible, reached, reached_points, .. } = self;
        [happened, available, points].into_iter().for_each(ClockTable::clear);
        [visible, reached, reached_points].into_iter().for_each(ClockTable::clear);
        self.intervals.clear();
        self.ended_subpasses = None;
        self.batches.clear();
    }

    /// Whether an access happened before stage `here`.
    #[inline]
    pub(crate) fn has_happened(&self, here: StageIndex, queue: u8, stage: StageIndex, tag: Tag) -> bool {
        self.happened.get(usize::from(here.0), lane(queue, stage)) >= tag
            || self.intervals.any(|it| it.contains(queue, tag) && it.src.has(stage) && it.dst.has(here))
    }

    /// Whether a write is available, by a dependency chain that reaches stage `here`.
    pub(crate) fn is_available(&self, here: StageIndex, queue: u8, usage: UsageIndex, tag: Tag) -> bool {
        let column = SYNC_TABLES.write_column(usage).unwrap_or(0);
        self.available.get(usize::from(here.0), write(queue, column)) >= tag
            || self.intervals.any(|it| it.contains(queue, tag) && it.src_usages.has(usage) && it.dst.has(here))
    }

    /// Whether a write is visible to usage `here`.
    #[inline]
    pub(crate) fn is_visible(&self, here: UsageIndex, queue: u8, usage: UsageIndex, tag: Tag) -> bool {
        let column = SYNC_TABLES.write_column(usage).unwrap_or(0);
        self.visible.get(usize::from(here.0), write(queue, column)) >= tag
            || self.intervals.any(|it| it.contains(queue, tag) && it.src_usages.has(usage) && it.dst_usages.has(here))
    }

    /// Whether the point at which writes became available to a stage, for all later commands, has reached stage `here`.
    pub(crate) fn has_point(&self, here: StageIndex, queue: u8, stage: StageIndex, tag: Tag) -> bool {
        self.happened.get(usize::from(here.0), lane(queue, stage)) >= tag
            || self.points.get(usize::from(here.0), lane(queue, stage)) >= tag
    }

    /// Whether the writes that became available to a stage, for all later commands, are visible to usage `here`.
    pub(crate) fn is_reached(&self, here: UsageIndex, queue: u8, stage: StageIndex, tag: Tag) -> bool {
        self.reached.get(usize::from(here.0), lane(queue, stage)) >= tag
            || self.reached_points.get(usize::from(here.0), lane(queue, stage)) >= tag
    }

    /// Like `is_reached`, but for writes that became available only inside a subpass.
    pub(crate) fn is_reached_from_subpass(&self, here: UsageIndex, queue: u8, stage: StageIndex, tag: Tag) -> bool {
        self.reached.get(usize::from(here.0), lane(queue, stage)) >= tag
            || self.intervals.any(|it| it.contains(queue, tag) && it.src.has(stage) && it.dst_usages.has(here))
    }

    /// The first scope of an operation on `queue` at `tag`: the queue's own accesses in those stages and with those
    /// usages, and, by chains, what was ordered before those stages.
    pub(crate) fn first_scope(&self, queue: u8, tag: Tag, src: StageSet, usages: UsageSet) -> FirstScope {
        let mut first_scope = self.chained_scope(src);
        if let Some(passed) = &self.ended_subpasses {
            first_scope.happened.merge(&passed.happened.joined_row(src));
            first_scope.available.merge(&passed.available.joined_row(src));
            first_scope.points.merge(&passed.points.joined_row(src));
            first_scope.intervals.add_chained(&passed.intervals, src);
        }
        first_scope.raise(queue, tag, src, usages);
        first_scope
    }

    /// Like `first_scope`, but limited to an interval of the queue's work.
    pub(crate) fn first_scope_of_interval(&self, interval: SubpassInterval) -> FirstScope {
        let mut first_scope = self.chained_scope(interval.src);
        first_scope.points.raise(interval.queue, interval.src.0, interval.end);
        first_scope.intervals.add(interval);
        first_scope
    }

    /// What was ordered before some stages.
    fn chained_scope(&self, src: StageSet) -> FirstScope {
        let mut intervals = SubpassIntervals::default();
        intervals.add_chained(&self.intervals, src);
        FirstScope {
            happened: self.happened.joined_row(src),
            available: self.available.joined_row(src),
            points: self.points.joined_row(src),
            intervals,
        }
    }

    /// Applies the second scope of a memory dependency on all memory.
    pub(crate) fn apply_second_scope(&mut self, first_scope: &FirstScope, dst: StageSet, usages: UsageSet) {
        self.order(first_scope, dst);
        self.visible.raise(usages, &first_scope.available);
        self.reached.raise(usages, &first_scope.happened);
        self.reached_points.raise(usages, &first_scope.points);
        self.reached_points.forget_covered(&self.reached);
        self.add_intervals(first_scope, dst, usages);
    }

    /// Applies a dependency on a single resource to all other memory: it orders execution, and continues chains of
    /// writes that are available already.
    pub(crate) fn apply_execution_dependency(&mut self, first_scope: &FirstScope, dst: StageSet) {
        self.order(first_scope, dst);
        self.add_intervals(first_scope, dst, UsageSet::default());
    }

    /// Applies the execution dependency from the first scope of a buffer marker to the marker (`markers`).
    pub(crate) fn apply_marker(&mut self, first_scope: &FirstScope) {
        let mut dst = StageSet::default();
        dst.add(SYNC_TABLES.marker);
        self.apply_execution_dependency(first_scope, dst);
    }

    /// Whether chains lead through markers.
    pub(crate) fn has_marker_chains(&self) -> bool {
        let [marker, copy] = [SYNC_TABLES.marker, SYNC_TABLES.copy].map(|it| usize::from(it.0));
        [&self.happened, &self.available, &self.points].into_iter().any(|it| it.differs(marker, copy))
            || self.intervals.any(|it| it.dst.has(SYNC_TABLES.marker) != it.dst.has(SYNC_TABLES.copy))
    }

    /// Forgets chains through markers so far. First scopes from here on do not have these markers.
    pub(crate) fn forget_marker_chains(&mut self) {
        let mut only = StageSet::default();
        only.add(SYNC_TABLES.marker);
        let [marker, copy] = [SYNC_TABLES.marker, SYNC_TABLES.copy].map(|it| usize::from(it.0));
        let QueueClock { happened, available, points, intervals, .. } = self;
        [happened, available, points].into_iter().for_each(|it| it.copy_row((marker, only), copy));
        intervals.retain_dst(|it| if it.has(SYNC_TABLES.copy) { it } else { it.and_not(only) });
    }

    fn order(&mut self, first_scope: &FirstScope, dst: StageSet) {
        self.happened.raise(dst, &first_scope.happened);
        self.available.raise(dst, &first_scope.available);
        self.points.raise(dst, &first_scope.points);
        self.points.forget_covered(&self.happened);
    }

    fn add_intervals(&mut self, first_scope: &FirstScope, dst: StageSet, dst_usages: UsageSet) {
        if !(dst.is_empty() && dst_usages.is_empty()) {
            first_scope.intervals.iter().for_each(|it| self.intervals.add(SubpassInterval { dst, dst_usages, ..*it }));
        }
        if !self.intervals.is_empty() {
            self.forget_covered();
        }
    }

    /// Removes intervals that the tables cover (`subpass_intervals`, rule 4).
    fn forget_covered(&mut self) {
        let QueueClock { happened, available, visible, reached, intervals, .. } = self;
        intervals.retain(|interval| {
            let (lanes, writes) = interval.covering_rows();
            let is_ordered = happened.keys_not_covering(interval.dst, &lanes).is_none()
                && available.keys_not_covering(interval.dst, &writes).is_none();
            let (seen, usages) = (reached.keys_not_covering(interval.dst_usages, &lanes), interval.dst_usages);
            !(is_ordered && seen.is_none() && visible.keys_not_covering(usages, &writes).is_none())
        });
    }

    /// Number of intervals.
    pub(crate) fn interval_count(&self) -> usize {
        self.intervals.len() + self.ended_subpasses.as_ref().map_or(0, |it| it.intervals.len())
    }

    /// Drops intervals that no remembered access can query.
    pub(crate) fn retain_queried(&mut self, queries: &ClockQueries) {
        self.intervals.retain_queried(queries);
        if let Some(passed) = &mut self.ended_subpasses {
            passed.intervals.retain_queried(queries);
        }
    }

    /// What is visible here to some usages.
    pub(crate) fn visible_to(&self, usages: UsageSet) -> VisibleWrites {
        let row = |usage: UsageIndex| {
            let mut keys = UsageSet::default();
            keys.add(usage);
            let (visible, reached) = (self.visible.joined_row(keys), self.reached.joined_row(keys));
            UsageVisibility { usage, visible, reached, points: self.reached_points.joined_row(keys) }
        };
        let mut intervals = SubpassIntervals::default();
        for interval in self.intervals.iter().filter(|it| !it.dst_usages.and(usages).is_none()) {
            intervals.add(SubpassInterval {
                dst: StageSet::default(),
                dst_usages: interval.dst_usages.and(usages),
                ..*interval
            });
        }
        VisibleWrites { rows: usages.iter().map(row).collect(), intervals }
    }

    /// Makes visible here what was visible to the same usages elsewhere.
    pub(crate) fn merge_visible(&mut self, seen: &VisibleWrites) {
        for row in &seen.rows {
            let mut keys = UsageSet::default();
            keys.add(row.usage);
            self.visible.raise(keys, &row.visible);
            self.reached.raise(keys, &row.reached);
            self.reached_points.raise(keys, &row.points);
        }
        self.reached_points.forget_covered(&self.reached);
        seen.intervals.iter().for_each(|it| self.intervals.add(*it));
        if !self.intervals.is_empty() {
            self.forget_covered();
        }
    }

    /// Ends a subpass. `subpass` is its clock at the end.
    pub(crate) fn end_subpass(&mut self, subpass: &QueueClock) {
        let new = || {
            let table = || ClockTable::default();
            Box::new(EndedSubpasses {
                happened: table(),
                available: table(),
                points: table(),
                intervals: SubpassIntervals::default(),
            })
        };
        let passed = self.ended_subpasses.get_or_insert_with(new);
        passed.happened.raise_each(&subpass.happened);
        passed.available.raise_each(&subpass.available);
        passed.points.raise_each(&subpass.points);
        for interval in subpass.intervals.iter().filter(|it| !it.dst.is_empty()) {
            passed.intervals.add(SubpassInterval { dst_usages: UsageSet::default(), ..*interval });
        }
        passed.forget_covered(&self.happened, &self.available);
    }
}

#[cfg(test)]
mod tests;
