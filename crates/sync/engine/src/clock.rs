//! Clocks: what is ordered before a point in a queue's timeline, whatever the number of resources.
//!
//! A clock has four tables. Their columns are lanes (queue, stage) or writes (queue, usage that writes), of every
//! queue; their cells are tags.
//!
//! - `happened[d]`: every access of a lane up to this tag happens before stage `d`.
//! - `available[d]`: every such write is available, and its chain of dependencies reaches stage `d`.
//! - `visible[v]`: every such write is visible to usage `v`.
//! - `reached[v]`: like `visible`, but of lanes: for dependencies on single resources (see `overlay`).
//!
//! Most stages share their row with many others, so a table is a few classes of stages with a row each, and a
//! barrier costs what the classes cost.

use std::fmt::Debug;

use crate::batches::Batches;
use crate::row::{Column, Row, lane, write};
use crate::stretch::{Asked, Stretch, Stretches};
use crate::usage::{Stage, Stages, TABLES, USAGE_WORDS, Usage, Usages};

/// Names an access or a synchronization operation; later ones are greater.
pub(crate) type Tag = u64;

/// A set of keys of a table: stages or usages.
pub trait Keys: Copy + PartialEq {
    /// A class for each key, in place: clocks are copied all the time.
    type Classes: Clone + Debug + AsRef<[u8]> + AsMut<[u8]>;
    /// That of none of them.
    const NONE: Self::Classes;

    fn and(self, other: Self) -> Self;
    fn and_not(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn is_none(self) -> bool;
    fn each(self, each: impl FnMut(usize));
}

impl Keys for Stages {
    type Classes = [u8; 64];
    const NONE: [u8; 64] = [NO_CLASS; 64];

    fn and(self, other: Self) -> Self {
        Stages(self.0 & other.0)
    }

    fn and_not(self, other: Self) -> Self {
        Stages(self.0 & !other.0)
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

impl Keys for Usages {
    type Classes = [u8; USAGE_WORDS * 64];
    const NONE: [u8; USAGE_WORDS * 64] = [NO_CLASS; USAGE_WORDS * 64];

    fn and(self, other: Self) -> Self {
        Usages(std::array::from_fn(|it| self.0[it] & other.0[it]))
    }

    fn and_not(self, other: Self) -> Self {
        Usages(std::array::from_fn(|it| self.0[it] & !other.0[it]))
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

/// Rows by key, many keys sharing one.
#[derive(Clone, Debug)]
pub(crate) struct Table<K: Keys> {
    classes: Vec<Class<K>>,
    /// The class of each key; none for keys whose row is all zero.
    of: K::Classes,
}

#[derive(Clone, Debug)]
struct Class<K> {
    keys: K,
    row: Row,
}

const NO_CLASS: u8 = u8::MAX;

impl<K: Keys> Default for Table<K> {
    fn default() -> Table<K> {
        Table { classes: Vec::new(), of: K::NONE }
    }
}

impl<K: Keys> Table<K> {
    fn clear(&mut self) {
        if !self.classes.is_empty() {
            self.classes.clear();
            self.of = K::NONE;
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: usize, column: Column) -> Tag {
        match self.of.as_ref()[key] {
            NO_CLASS => 0,
            class => self.classes[usize::from(class)].row.get(column),
        }
    }

    /// The greatest of the rows of some keys.
    fn join(&self, keys: K) -> Row {
        let mut row = Row::default();
        for class in self.classes.iter().filter(|it| !it.keys.and(keys).is_none()) {
            row.raise_all(&class.row);
        }
        row
    }

    /// Keys of some whose rows do not cover another.
    fn without(&self, keys: K, row: &Row) -> K {
        if row.is_zero() {
            return keys.and_not(keys);
        }
        let covering = self.classes.iter().filter(|it| !it.keys.and(keys).is_none() && it.row.covers(row));
        covering.fold(keys, |left, it| left.and_not(it.keys))
    }

    /// Forgets rows that say nothing which those of another table do not say.
    fn forget_covered(&mut self, other: &Table<K>) {
        for index in (0..self.classes.len()).rev() {
            let Class { keys, row } = &self.classes[index];
            let own = other.classes.iter().filter(|it| it.row.covers(row));
            if own.fold(*keys, |left, it| left.and_not(it.keys)).is_none() {
                keys.each(|key| self.of.as_mut()[key] = NO_CLASS);
                self.classes.swap_remove(index);
                if let Some(moved) = self.classes.get(index) {
                    moved.keys.each(|key| self.of.as_mut()[key] = index as u8);
                }
            }
        }
    }

    /// Raises the rows of some keys.
    fn raise(&mut self, keys: K, by: &Row) {
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
                self.classes[index].row.raise_all(by);
            } else {
                let mut row = self.classes[index].row.clone();
                row.raise_all(by);
                self.classes[index].keys = self.classes[index].keys.and_not(part);
                self.add(part, row);
            }
        }
        if !left.is_none() {
            self.add(left, by.clone());
            is_changed = true;
        }
        if is_changed {
            self.merge();
        }
    }

    fn raise_each(&mut self, other: &Table<K>) {
        for class in &other.classes {
            self.raise(class.keys, &class.row);
        }
    }

    fn add(&mut self, keys: K, row: Row) {
        let class = self.classes.len() as u8;
        keys.each(|key| self.of.as_mut()[key] = class);
        self.classes.push(Class { keys, row });
    }

    /// Classes with equal rows become one.
    fn merge(&mut self) {
        let mut index = 1;
        while index < self.classes.len() {
            let same = self.classes[..index].iter().position(|it| it.row == self.classes[index].row);
            match same {
                Some(first) => {
                    let gone = self.classes.swap_remove(index);
                    self.classes[first].keys = self.classes[first].keys.or(gone.keys);
                    gone.keys.each(|key| self.of.as_mut()[key] = first as u8);
                    if let Some(moved) = self.classes.get(index) {
                        moved.keys.each(|key| self.of.as_mut()[key] = index as u8);
                    }
                }
                None => index += 1,
            }
        }
    }
}

/// What a first scope hands on: which lanes happened before, which writes are available.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carry {
    happened: Row,
    available: Row,
    /// Lanes whose points are in the scope, where that is more than what happened.
    points: Row,
    stretches: Stretches,
}

impl Carry {
    /// What a queue did up to now in some stages and with some usages, and nothing else.
    pub(crate) fn of(queue: u8, now: Tag, src: Stages, usages: Usages) -> Carry {
        let mut carry = Carry::default();
        carry.raise(queue, now, src, usages);
        carry
    }

    fn raise(&mut self, queue: u8, now: Tag, src: Stages, usages: Usages) {
        self.happened.raise(queue, src.0, now);
        self.available.raise(queue, TABLES.write_columns(usages), now);
    }

    /// Whether what became available to a stage of a queue, for all that came after, is in the scope.
    pub(crate) fn has_point(&self, queue: u8, stage: Stage, tag: Tag) -> bool {
        self.happened.get(lane(queue, stage)) >= tag || self.points.get(lane(queue, stage)) >= tag
    }

    /// Whether an access is in the scope.
    pub(crate) fn has(&self, queue: u8, stage: Stage, tag: Tag) -> bool {
        self.happened.get(lane(queue, stage)) >= tag || self.stretches.any(|it| it.has(queue, tag) && it.src.has(stage))
    }

    /// Whether a write is available in the scope.
    pub(crate) fn has_available(&self, queue: u8, usage: Usage, tag: Tag) -> bool {
        let column = TABLES.write_column(usage).unwrap_or(0);
        self.available.get(write(queue, column)) >= tag
            || self.stretches.any(|it| it.has(queue, tag) && it.src_usages.has(usage))
    }

    /// Whether it has all that another has.
    pub(crate) fn covers(&self, other: &Carry) -> bool {
        self.happened.covers(&other.happened)
            && self.available.covers(&other.available)
            && (other.points.is_zero() || self.all_points().covers(&other.points))
            && other.stretches.iter().all(|it| self.has_stretch(it) || self.stretches.any(|own| own.covers(it)))
    }

    /// Whether the rows say all that a stretch says.
    fn has_stretch(&self, it: &Stretch) -> bool {
        let (lanes, writes) = it.rows();
        self.happened.covers(&lanes) && self.available.covers(&writes)
    }

    fn all_points(&self) -> Row {
        let mut all = self.happened.clone();
        all.raise_all(&self.points);
        all
    }

    pub(crate) fn raise_all(&mut self, other: &Carry) {
        self.happened.raise_all(&other.happened);
        self.available.raise_all(&other.available);
        self.points.raise_all(&other.points);
        other.stretches.iter().for_each(|it| self.stretches.add(*it));
        if !self.stretches.is_empty() {
            self.forget_covered();
        }
    }

    /// Forgets stretches that nobody asks for.
    pub(crate) fn keep_only(&mut self, asked: &Asked) {
        self.stretches.keep_only(asked);
    }

    /// Forgets stretches that say nothing which the rows do not say by now.
    pub(crate) fn forget_covered(&mut self) {
        if self.happened.covers(&self.points) {
            self.points = Row::default();
        }
        let mut stretches = std::mem::take(&mut self.stretches);
        stretches.retain(|it| !self.has_stretch(it));
        self.stretches = stretches;
    }
}

/// What is visible to some usages, and what has reached them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    rows: Vec<Sight>,
    /// Those that lead to these usages.
    stretches: Stretches,
}

/// What a clock knows of one usage.
#[derive(Clone, Debug)]
struct Sight {
    usage: Usage,
    visible: Row,
    reached: Row,
    points: Row,
}

impl Sight {
    fn covers(&self, other: &Sight) -> bool {
        self.visible.covers(&other.visible) && self.reached.covers(&other.reached) && self.points.covers(&other.points)
    }

    fn is_zero(&self) -> bool {
        self.visible.is_zero() && self.reached.is_zero() && self.points.is_zero()
    }
}

impl Seen {
    /// Whether it has all that another has.
    pub(crate) fn covers(&self, other: &Seen) -> bool {
        let has = |it: &Sight| it.is_zero() || self.row(it.usage).is_some_and(|own| own.covers(it));
        let has_stretch = |it: &Stretch| self.has_stretch(it) || self.stretches.any(|own| own.covers(it));
        other.rows.iter().all(has) && other.stretches.iter().all(has_stretch)
    }

    fn row(&self, usage: Usage) -> Option<&Sight> {
        self.rows.iter().find(|it| it.usage == usage)
    }

    /// Whether the rows say all that a stretch says.
    fn has_stretch(&self, it: &Stretch) -> bool {
        let (lanes, writes) = it.rows();
        let has = |own: &Sight| own.reached.covers(&lanes) && own.visible.covers(&writes);
        it.dst_usages.iter().all(|usage| self.row(usage).is_some_and(has))
    }

    pub(crate) fn raise_all(&mut self, other: &Seen) {
        for it in &other.rows {
            match self.rows.iter_mut().find(|own| own.usage == it.usage) {
                Some(own) => {
                    own.visible.raise_all(&it.visible);
                    own.reached.raise_all(&it.reached);
                    own.points.raise_all(&it.points);
                }
                None => self.rows.push(it.clone()),
            }
        }
        other.stretches.iter().for_each(|it| self.stretches.add(*it));
        if !self.stretches.is_empty() {
            let mut stretches = std::mem::take(&mut self.stretches);
            stretches.retain(|it| !self.has_stretch(it));
            self.stretches = stretches;
        }
    }

    /// Forgets stretches that nobody asks for.
    pub(crate) fn keep_only(&mut self, asked: &Asked) {
        self.stretches.keep_only(asked);
    }
}

/// A point in a timeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    happened: Table<Stages>,
    available: Table<Stages>,
    /// Like `happened`, of points: those of a lane are before every later command, so that a dependency of a stretch
    /// has them all. Only what is more than in `happened`.
    points: Table<Stages>,
    visible: Table<Usages>,
    reached: Table<Usages>,
    /// Like `reached`, from `points`, and only what is more.
    reached_points: Table<Usages>,
    stretches: Stretches,
    passed: Option<Box<Passed>>,
    /// By queue: up to where its batches are known here, by any path of semaphores or waits at all.
    pub(crate) batches: Batches,
}

/// What was ordered before the stages of subpasses that ended. It is not before what comes now, but a dependency whose
/// first scope has those subpasses hands it on.
#[derive(Clone, Debug)]
struct Passed {
    happened: Table<Stages>,
    available: Table<Stages>,
    points: Table<Stages>,
    stretches: Stretches,
}

impl Passed {
    /// Forgets what it and the clock itself, with these tables, say by now: a first scope has both.
    fn forget_covered(&mut self, own_happened: &Table<Stages>, own_available: &Table<Stages>) {
        let Passed { happened, available, stretches, .. } = self;
        stretches.retain(|it| {
            let (lanes, writes) = it.rows();
            let left = own_happened.without(happened.without(it.dst, &lanes), &lanes);
            !(left.is_none() && own_available.without(available.without(it.dst, &writes), &writes).is_none())
        });
    }
}

impl Clock {
    /// Nothing happened yet.
    pub(crate) fn clear(&mut self) {
        let Clock { happened, available, points, visible, reached, reached_points, .. } = self;
        [happened, available, points].into_iter().for_each(Table::clear);
        [visible, reached, reached_points].into_iter().for_each(Table::clear);
        self.stretches.clear();
        self.passed = None;
        self.batches.clear();
    }

    /// Whether an access happened before a stage here.
    #[inline]
    pub(crate) fn has_happened(&self, here: Stage, queue: u8, stage: Stage, tag: Tag) -> bool {
        self.happened.get(usize::from(here.0), lane(queue, stage)) >= tag
            || self.stretches.any(|it| it.has(queue, tag) && it.src.has(stage) && it.dst.has(here))
    }

    /// Whether a write is available, by a chain that reaches a stage here.
    pub(crate) fn is_available(&self, here: Stage, queue: u8, usage: Usage, tag: Tag) -> bool {
        let column = TABLES.write_column(usage).unwrap_or(0);
        self.available.get(usize::from(here.0), write(queue, column)) >= tag
            || self.stretches.any(|it| it.has(queue, tag) && it.src_usages.has(usage) && it.dst.has(here))
    }

    /// Whether a write is visible to a usage here.
    #[inline]
    pub(crate) fn is_visible(&self, here: Usage, queue: u8, usage: Usage, tag: Tag) -> bool {
        let column = TABLES.write_column(usage).unwrap_or(0);
        self.visible.get(usize::from(here.0), write(queue, column)) >= tag
            || self.stretches.any(|it| it.has(queue, tag) && it.src_usages.has(usage) && it.dst_usages.has(here))
    }

    /// Whether what became available to a stage, for all that came after, has reached a stage here.
    pub(crate) fn has_point(&self, here: Stage, queue: u8, stage: Stage, tag: Tag) -> bool {
        self.happened.get(usize::from(here.0), lane(queue, stage)) >= tag
            || self.points.get(usize::from(here.0), lane(queue, stage)) >= tag
    }

    /// Whether what became available to a stage, for all that came after, is visible to a usage here.
    pub(crate) fn is_reached(&self, here: Usage, queue: u8, stage: Stage, tag: Tag) -> bool {
        self.reached.get(usize::from(here.0), lane(queue, stage)) >= tag
            || self.reached_points.get(usize::from(here.0), lane(queue, stage)) >= tag
    }

    /// The same of what became available inside of a subpass only.
    pub(crate) fn is_reached_from_subpass(&self, here: Usage, queue: u8, stage: Stage, tag: Tag) -> bool {
        self.reached.get(usize::from(here.0), lane(queue, stage)) >= tag
            || self.stretches.any(|it| it.has(queue, tag) && it.src.has(stage) && it.dst_usages.has(here))
    }

    /// What the first scope of an operation on `queue` at `now` hands on: directly what the queue did in those stages
    /// and with those usages, and by chains what was ordered before those stages.
    pub(crate) fn first_scope(&self, queue: u8, now: Tag, src: Stages, usages: Usages) -> Carry {
        let mut carry = self.chains(src);
        if let Some(passed) = &self.passed {
            carry.happened.raise_all(&passed.happened.join(src));
            carry.available.raise_all(&passed.available.join(src));
            carry.points.raise_all(&passed.points.join(src));
            carry.stretches.add_before(&passed.stretches, src);
        }
        carry.raise(queue, now, src, usages);
        carry
    }

    /// The same for a stretch of the queue's work only.
    pub(crate) fn first_scope_of(&self, stretch: Stretch) -> Carry {
        let mut carry = self.chains(stretch.src);
        carry.points.raise(stretch.queue, stretch.src.0, stretch.end);
        carry.stretches.add(stretch);
        carry
    }

    /// What was ordered before some stages.
    fn chains(&self, src: Stages) -> Carry {
        let mut stretches = Stretches::default();
        stretches.add_before(&self.stretches, src);
        Carry {
            happened: self.happened.join(src),
            available: self.available.join(src),
            points: self.points.join(src),
            stretches,
        }
    }

    /// A memory dependency on everything reaches its second scope.
    pub(crate) fn second_scope(&mut self, carry: &Carry, dst: Stages, usages: Usages) {
        self.order(carry, dst);
        self.visible.raise(usages, &carry.available);
        self.reached.raise(usages, &carry.happened);
        self.reached_points.raise(usages, &carry.points);
        self.reached_points.forget_covered(&self.reached);
        self.add_stretches(carry, dst, usages);
    }

    /// What a dependency on a single resource does for everything else: it orders execution, and hands on what is
    /// available already.
    pub(crate) fn execution_only(&mut self, carry: &Carry, dst: Stages) {
        self.order(carry, dst);
        self.add_stretches(carry, dst, Usages::default());
    }

    fn order(&mut self, carry: &Carry, dst: Stages) {
        self.happened.raise(dst, &carry.happened);
        self.available.raise(dst, &carry.available);
        self.points.raise(dst, &carry.points);
        self.points.forget_covered(&self.happened);
    }

    fn add_stretches(&mut self, carry: &Carry, dst: Stages, dst_usages: Usages) {
        if !(dst.is_empty() && dst_usages.is_empty()) {
            carry.stretches.iter().for_each(|it| self.stretches.add(Stretch { dst, dst_usages, ..*it }));
        }
        if !self.stretches.is_empty() {
            self.forget_covered();
        }
    }

    /// Forgets stretches that say nothing which the tables do not say by now.
    fn forget_covered(&mut self) {
        let Clock { happened, available, visible, reached, stretches, .. } = self;
        stretches.retain(|it| {
            let (lanes, writes) = it.rows();
            let is_ordered = happened.without(it.dst, &lanes).is_none() && available.without(it.dst, &writes).is_none();
            let (seen, usages) = (reached.without(it.dst_usages, &lanes), it.dst_usages);
            !(is_ordered && seen.is_none() && visible.without(usages, &writes).is_none())
        });
    }

    /// How many stretches it has.
    pub(crate) fn stretches(&self) -> usize {
        self.stretches.len() + self.passed.as_ref().map_or(0, |it| it.stretches.len())
    }

    /// Forgets stretches that nobody asks for.
    pub(crate) fn keep_only(&mut self, asked: &Asked) {
        self.stretches.keep_only(asked);
        if let Some(passed) = &mut self.passed {
            passed.stretches.keep_only(asked);
        }
    }

    /// What is visible to some usages here.
    pub(crate) fn seen_by(&self, usages: Usages) -> Seen {
        let row = |usage: Usage| {
            let mut keys = Usages::default();
            keys.add(usage);
            let (visible, reached) = (self.visible.join(keys), self.reached.join(keys));
            Sight { usage, visible, reached, points: self.reached_points.join(keys) }
        };
        let mut stretches = Stretches::default();
        for it in self.stretches.iter().filter(|it| !it.dst_usages.and(usages).is_none()) {
            stretches.add(Stretch { dst: Stages::default(), dst_usages: it.dst_usages.and(usages), ..*it });
        }
        Seen { rows: usages.iter().map(row).collect(), stretches }
    }

    /// What was visible elsewhere to some usages is visible to them here.
    pub(crate) fn see(&mut self, seen: &Seen) {
        for it in &seen.rows {
            let mut keys = Usages::default();
            keys.add(it.usage);
            self.visible.raise(keys, &it.visible);
            self.reached.raise(keys, &it.reached);
            self.reached_points.raise(keys, &it.points);
        }
        self.reached_points.forget_covered(&self.reached);
        seen.stretches.iter().for_each(|it| self.stretches.add(*it));
        if !self.stretches.is_empty() {
            self.forget_covered();
        }
    }

    /// A subpass is over, whose clock this was at its end.
    pub(crate) fn pass(&mut self, subpass: &Clock) {
        let new = || {
            let table = || Table::default();
            Box::new(Passed { happened: table(), available: table(), points: table(), stretches: Stretches::default() })
        };
        let passed = self.passed.get_or_insert_with(new);
        passed.happened.raise_each(&subpass.happened);
        passed.available.raise_each(&subpass.available);
        passed.points.raise_each(&subpass.points);
        for it in subpass.stretches.iter().filter(|it| !it.dst.is_empty()) {
            passed.stretches.add(Stretch { dst_usages: Usages::default(), ..*it });
        }
        passed.forget_covered(&self.happened, &self.available);
    }
}

#[cfg(test)]
mod tests;
