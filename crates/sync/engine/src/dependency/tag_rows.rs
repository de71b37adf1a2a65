//! Rows of tags, with one cell for each queue and column.
//!
//! Most cells of a row have one of a few tags. A row is therefore a short list of tags, each with the set of columns
//! that have it, and operations on whole rows are cheap.

use smallvec::SmallVec;

use crate::access::usages::{SYNC_TABLES, StageIndex};
use crate::dependency::clocks::Tag;

/// The address of a cell.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    queue: u8,
    at: u8,
}

/// The column of a lane.
#[inline]
pub(crate) fn lane(queue: u8, stage: StageIndex) -> Column {
    Column { queue, at: stage.0 }
}

/// The column of a write, by its index among the usages that write.
#[inline]
pub(crate) fn write(queue: u8, column: usize) -> Column {
    debug_assert!(column < SYNC_TABLES.writes.len());
    Column { queue, at: column as u8 }
}

/// A cell that is not in the list is zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TagRow(TagRuns);

type TagRuns = SmallVec<[TagRun; 6]>;

/// Some columns of a queue that have the same tag. Runs are sorted by key, and the runs of one queue share no column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TagRun {
    key: TagRunKey,
    columns: u64,
}

/// Sorts by queue, then by tag in descending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TagRunKey(u64);

impl TagRunKey {
    const TAG_BITS: u32 = 56;
    const TAG_MAX: Tag = (1 << TagRunKey::TAG_BITS) - 1;

    #[inline]
    fn new(queue: u8, tag: Tag) -> TagRunKey {
        debug_assert!(tag <= TagRunKey::TAG_MAX);
        TagRunKey(u64::from(queue) << TagRunKey::TAG_BITS | (TagRunKey::TAG_MAX - tag))
    }

    #[inline]
    fn queue(self) -> u8 {
        (self.0 >> TagRunKey::TAG_BITS) as u8
    }

    #[inline]
    fn tag(self) -> Tag {
        TagRunKey::TAG_MAX - (self.0 & TagRunKey::TAG_MAX)
    }
}

impl TagRow {
    #[inline]
    pub(crate) fn get(&self, column: Column) -> Tag {
        let is_it = |it: &&TagRun| it.columns >> column.at & 1 != 0 && it.key.queue() == column.queue;
        self.0.iter().find(is_it).map_or(0, |it| it.key.tag())
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Raises some cells of a queue.
    pub(crate) fn raise(&mut self, queue: u8, mut columns: u64, tag: Tag) {
        let (key, steps) = (TagRunKey::new(queue, tag), &mut self.0);
        let mut at = 0;
        while let Some(step) = steps.get(at).filter(|it| it.key < key) {
            columns &= !if step.key.queue() == queue { step.columns } else { 0 };
            at += 1;
        }
        if columns == 0 || tag == 0 {
            return;
        }
        match steps.get_mut(at).filter(|it| it.key == key) {
            Some(own) => own.columns |= columns,
            None => steps.insert(at, TagRun { key, columns }),
        }
        let (behind, mut kept) = (at + 1, at + 1);
        for index in behind..steps.len() {
            let mut step = steps[index];
            step.columns &= !if step.key.queue() == queue { columns } else { 0 };
            if step.columns != 0 {
                steps[kept] = step;
                kept += 1;
            }
        }
        steps.truncate(kept);
    }

    pub(crate) fn merge(&mut self, other: &TagRow) {
        // Most rows are raised from zero.
        let is_zero = self.is_zero();
        if !is_zero && self.covers(other) {
            return;
        }
        if is_zero || other.covers(self) {
            self.0.clear();
            return self.0.extend_from_slice(&other.0);
        }
        let mut made: TagRuns = SmallVec::new();
        let (mut own, mut theirs) = (&self.0[..], &other.0[..]);
        let (mut queue, mut seen) = (0, 0);
        while let Some(mut next) = first_of(&mut own, &mut theirs) {
            if next.key.queue() != queue {
                (queue, seen) = (next.key.queue(), 0);
            }
            next.columns &= !seen;
            seen |= next.columns;
            if next.columns != 0 {
                made.push(next);
            }
        }
        self.0 = made;
    }

    /// Whether raising this row by another changes nothing.
    #[inline]
    pub(crate) fn covers(&self, other: &TagRow) -> bool {
        let mut own = self.0.iter().peekable();
        let (mut queue, mut seen) = (0, 0);
        for tag_run in &other.0 {
            while let Some(step) = own.next_if(|own| own.key <= tag_run.key) {
                seen = step.columns | if step.key.queue() == queue { seen } else { 0 };
                queue = step.key.queue();
            }
            if queue != tag_run.key.queue() || tag_run.columns & !seen != 0 {
                return false;
            }
        }
        true
    }
}

/// Takes the first run of two lists, or of both if they have the same key.
#[inline]
fn first_of(one: &mut &[TagRun], other: &mut &[TagRun]) -> Option<TagRun> {
    let (left, right) = (one.first().copied(), other.first().copied());
    let key = |it: Option<TagRun>| it.map(|it| it.key);
    let takes_left = left.is_some() && (right.is_none() || key(left) <= key(right));
    let takes_right = right.is_some() && (left.is_none() || key(right) <= key(left));
    if takes_left {
        *one = &one[1..];
    }
    if takes_right {
        *other = &other[1..];
    }
    match (takes_left, takes_right) {
        (true, true) => left.zip(right).map(|(left, right)| TagRun { columns: left.columns | right.columns, ..left }),
        (true, false) => left,
        _ => right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_test_support::TestRng;

    fn row(cells: &[(u8, u8, Tag)]) -> TagRow {
        let mut row = TagRow::default();
        for (queue, stage, tag) in cells {
            row.raise(*queue, 1 << stage, *tag);
        }
        row
    }

    #[test]
    fn the_greater_cell_wins() {
        let mut left = row(&[(0, 1, 5), (2, 3, 7)]);
        let right = row(&[(0, 1, 4), (0, 2, 6), (2, 3, 9)]);
        assert!(!left.covers(&right) && !right.covers(&left));
        left.merge(&right);
        assert!(left.covers(&right) && left == row(&[(0, 1, 5), (0, 2, 6), (2, 3, 9)]));
        assert_eq!(
            (left.get(lane(0, StageIndex(2))), left.get(lane(1, StageIndex(0))), left.get(lane(9, StageIndex(0)))),
            (6, 0, 0)
        );
    }

    #[test]
    fn what_is_not_there_is_zero() {
        assert!(row(&[(1, 0, 0)]) == TagRow::default() && row(&[(1, 0, 0)]).is_zero());
        assert!(row(&[(3, 0, 1)]).covers(&TagRow::default()) && !TagRow::default().covers(&row(&[(3, 0, 1)])));
    }

    const QUEUES: usize = 3;
    const COLUMNS: usize = 5;
    type Cells = [[Tag; COLUMNS]; QUEUES];

    fn random_row(dice: &mut TestRng) -> (TagRow, Cells) {
        let (mut row, mut cells) = (TagRow::default(), Cells::default());
        for _ in 0..dice.below(6) {
            let (queue, columns, tag) = (dice.below(QUEUES as u64), dice.below(1 << COLUMNS), dice.below(6));
            row.raise(queue as u8, columns, tag);
            for (column, cell) in cells[queue as usize].iter_mut().enumerate() {
                *cell = (*cell).max(if columns >> column & 1 != 0 { tag } else { 0 });
            }
        }
        (row, cells)
    }

    /// Compares a row with an array of cells.
    #[test]
    fn it_is_an_array_of_tags() {
        let mut dice = TestRng::new(11);
        for _ in 0..20_000 {
            let ((mut left, mut cells), (right, others)) = (random_row(&mut dice), random_row(&mut dice));
            let is_covered = cells.iter().flatten().zip(others.iter().flatten()).all(|(own, other)| own >= other);
            assert_eq!(left.covers(&right), is_covered);
            assert_eq!(left == right, cells == others, "one form only");
            left.merge(&right);
            for (queue, column) in (0..QUEUES).flat_map(|queue| (0..COLUMNS).map(move |column| (queue, column))) {
                let cell = &mut cells[queue][column];
                *cell = (*cell).max(others[queue][column]);
                assert_eq!(left.get(Column { queue: queue as u8, at: column as u8 }), *cell);
            }
        }
    }
}
