//! Rows of tags: cells by queue and column. The cells of a queue are one block, which rows share until they differ:
//! most of what a barrier on one queue hands on about other queues is what everybody knows already.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::clock::Tag;
use crate::usage::{COLUMNS, Stage, TABLES};

/// Names a cell.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    queue: u8,
    at: u8,
}

/// The column of a lane.
#[inline]
pub(crate) fn lane(queue: u8, stage: Stage) -> Column {
    Column { queue, at: stage.0 }
}

/// The column of a write, from its place among the usages that write.
#[inline]
pub(crate) fn write(queue: u8, column: usize) -> Column {
    debug_assert!(column < TABLES.writes.len());
    Column { queue, at: column as u8 }
}

type Block = [Tag; COLUMNS];

/// None is all zero, and so is what lies behind the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row(SmallVec<[Option<Arc<Block>>; 4]>);

impl Row {
    #[inline]
    pub(crate) fn get(&self, column: Column) -> Tag {
        match self.0.get(usize::from(column.queue)) {
            Some(Some(block)) => block[usize::from(column.at)],
            _ => 0,
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Raises some cells of a queue.
    pub(crate) fn raise(&mut self, queue: u8, columns: u64, tag: Tag) {
        if columns == 0 || tag == 0 {
            return;
        }
        let block = Arc::make_mut(self.block(usize::from(queue)).get_or_insert_with(|| Arc::new([0; COLUMNS])));
        for (at, cell) in block.iter_mut().enumerate() {
            let own = if columns >> at & 1 != 0 { tag } else { 0 };
            *cell = (*cell).max(own);
        }
    }

    pub(crate) fn raise_all(&mut self, other: &Row) {
        for (queue, theirs) in other.0.iter().enumerate() {
            let Some(theirs) = theirs else { continue };
            match self.block(queue) {
                Some(own) => raise_block(own, theirs),
                none => *none = Some(Arc::clone(theirs)),
            }
        }
    }

    /// Whether raising it by another changes nothing.
    pub(crate) fn covers(&self, other: &Row) -> bool {
        other.0.iter().enumerate().all(|(queue, theirs)| match (self.0.get(queue), theirs) {
            (_, None) => true,
            (Some(Some(own)), Some(theirs)) => Arc::ptr_eq(own, theirs) || !is_greater(theirs, own),
            _ => false,
        })
    }

    fn block(&mut self, queue: usize) -> &mut Option<Arc<Block>> {
        if self.0.len() <= queue {
            self.0.resize(queue + 1, None);
        }
        &mut self.0[queue]
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        let (short, long) = if self.0.len() <= other.0.len() { (self, other) } else { (other, self) };
        let is_same = |(left, right): (&Option<Arc<Block>>, &Option<Arc<Block>>)| match (left, right) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right) || left == right,
            (left, right) => left.is_none() && right.is_none(),
        };
        short.0.iter().zip(&long.0).all(is_same) && long.0[short.0.len()..].iter().all(Option::is_none)
    }
}

/// Whether some cell of one is greater than that of the other. Without branches, so that cells go side by side.
fn is_greater(one: &Block, other: &Block) -> bool {
    one.iter().zip(other).fold(false, |any, (one, other)| any | (one > other))
}

fn raise_block(own: &mut Arc<Block>, theirs: &Arc<Block>) {
    if Arc::ptr_eq(own, theirs) || !is_greater(theirs, own) {
        return;
    }
    if !is_greater(own, theirs) {
        *own = Arc::clone(theirs);
        return;
    }
    for (own, theirs) in Arc::make_mut(own).iter_mut().zip(theirs.iter()) {
        *own = (*own).max(*theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[(u8, u8, Tag)]) -> Row {
        let mut row = Row::default();
        for (queue, stage, tag) in cells {
            row.raise(*queue, 1 << stage, *tag);
        }
        row
    }

    #[test]
    fn the_greater_cell_wins_and_equal_blocks_are_shared() {
        let mut left = row(&[(0, 1, 5), (2, 3, 7)]);
        let right = row(&[(0, 1, 4), (0, 2, 6), (2, 3, 9)]);
        assert!(!left.covers(&right) && !right.covers(&left));
        left.raise_all(&right);
        assert!(left.covers(&right) && left == row(&[(0, 1, 5), (0, 2, 6), (2, 3, 9)]));
        assert!(Arc::ptr_eq(left.0[2].as_ref().expect("a block"), right.0[2].as_ref().expect("a block")));
        assert_eq!((left.get(lane(0, Stage(2))), left.get(lane(1, Stage(0))), left.get(lane(9, Stage(0)))), (6, 0, 0));
    }

    #[test]
    fn what_is_not_there_is_zero() {
        let mut long = row(&[(3, 0, 1)]);
        long.0[3] = None;
        assert!(long == Row::default() && Row::default() == long && long.is_zero() && Row::default().covers(&long));
        assert!(row(&[(1, 0, 0)]) == Row::default());
    }
}
