//! What belongs to a pipeline, a part of one, or a layout: memory, descriptor sets, cells, and layouts of ours.
//!
//! Whoever has a piece holds a lease of it, and where the last one ends, the piece is free for others. Command buffers
//! hold the forms of pipelines that they use, so nobody gets a piece whose records may still be read.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use lavascope_abi::*;
use rustc_hash::FxHashMap;

use super::arena::{POOL_SETS, Region, room_words};
use super::variants::lock;
use super::{Gpu, PART_WORDS, TABLES};

/// The pieces of a device that nobody has.
#[derive(Default)]
pub(super) struct Pieces {
    free: Mutex<Free>,
}

#[derive(Default)]
struct Free {
    /// By the words that they have room for.
    regions: FxHashMap<u32, Vec<Region>>,
    sets: Vec<DescriptorSet>,
    parts: Ranges,
    /// Layouts that somebody has, and those that are to be destroyed.
    layouts: HashSet<u64>,
    ended_layouts: Vec<PipelineLayout>,
}

/// A piece that somebody has.
pub(super) struct Lease {
    pieces: Arc<Pieces>,
    piece: Piece,
}

enum Piece {
    Region(Region),
    Set(DescriptorSet),
    /// Words among the cells of parts.
    Part(u32, u32),
    Layout(PipelineLayout),
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut free = lock(&self.pieces.free);
        match self.piece {
            Piece::Region(it) => free.regions.entry(it.words).or_default().push(it),
            Piece::Set(it) => free.sets.push(it),
            Piece::Part(at, words) => free.parts.add(at, words),
            Piece::Layout(it) => {
                free.layouts.remove(&it.0);
                free.ended_layouts.push(it);
            }
        }
    }
}

impl Pieces {
    fn lease(self: &Arc<Pieces>, piece: Piece) -> Lease {
        Lease { pieces: Arc::clone(self), piece }
    }
}

/// Ranges of numbers that are free: where they begin, and how many they have. No two of them touch.
#[derive(Default)]
struct Ranges(BTreeMap<u32, u32>);

impl Ranges {
    fn add(&mut self, mut at: u32, mut count: u32) {
        if let Some(after) = self.0.remove(&(at + count)) {
            count += after;
        }
        if let Some((before, many)) = self.0.range(..at).next_back().map(|it| (*it.0, *it.1))
            && before + many == at
        {
            (at, count) = (before, count + many);
        }
        self.0.insert(at, count);
    }

    fn take(&mut self, count: u32) -> Option<u32> {
        let (at, many) = self.0.iter().find(|it| *it.1 >= count).map(|it| (*it.0, *it.1))?;
        self.0.remove(&at);
        if many > count {
            self.0.insert(at + count, many - count);
        }
        Some(at)
    }
}

impl Gpu {
    /// Memory that both sides see, of zeros.
    pub(super) fn lease_memory(&self, words: u32) -> Option<(Region, Lease)> {
        let room = room_words(words);
        let known = lock(&self.pieces.free).regions.get_mut(&room).and_then(Vec::pop);
        let all = match known {
            Some(it) => {
                it.write(&vec![0; room as usize]);
                it
            }
            None => self.with_arena(|arena| arena.allocate(self, room))?,
        };
        Some((all.first(words.max(1)), self.pieces.lease(Piece::Region(all))))
    }

    /// A descriptor set of ours with tables in it.
    pub(super) fn lease_set(&self, regions: [Region; TABLES]) -> Option<(DescriptorSet, Lease)> {
        let known = lock(&self.pieces.free).sets.pop();
        let set = match known {
            Some(it) => {
                self.rewrite_set(it, regions)?;
                it
            }
            None => self.lasting_set(regions)?,
        };
        Some((set, self.pieces.lease(Piece::Set(set))))
    }

    /// A set that is there until the device ends.
    fn lasting_set(&self, regions: [Region; TABLES]) -> Option<DescriptorSet> {
        let taken = self.state().set_pools.pop();
        let (pool, left) = match taken {
            Some(it) => it,
            None => (self.take_pool()?, POOL_SETS),
        };
        let set = self.write_set(pool, regions);
        let mut state = self.state();
        match left {
            1 => state.full_pools.push(pool),
            _ => state.set_pools.push((pool, left - 1)),
        }
        set
    }

    /// Where the cells of parts of pipelines are.
    pub(super) fn part_cells(&self) -> Region {
        self.part_cells.get().copied().unwrap_or_default()
    }

    /// Cells for a part of pipelines. Gives where they begin among those of all parts.
    pub(super) fn lease_part(&self, words: &[u32]) -> Option<(u32, Arc<Lease>)> {
        if self.part_cells.get().is_none() {
            let made = self.with_arena(|arena| arena.allocate(self, PART_WORDS))?;
            // Another thread may have been faster; its region counts.
            if self.part_cells.set(made).is_ok() {
                lock(&self.pieces.free).parts.add(0, PART_WORDS);
            }
        }
        let count = words.len() as u32;
        let at = lock(&self.pieces.free).parts.take(count)?;
        self.part_cells().from(at).write(words);
        Some((at, Arc::new(self.pieces.lease(Piece::Part(at, count)))))
    }

    /// A pipeline layout of ours that was just made.
    pub(super) fn lease_layout(&self, made: PipelineLayout) -> Lease {
        lock(&self.pieces.free).layouts.insert(made.0);
        self.pieces.lease(Piece::Layout(made))
    }

    /// Destroys layouts that nobody has any more.
    pub(super) fn sweep_layouts(&self) {
        let ended = std::mem::take(&mut lock(&self.pieces.free).ended_layouts);
        self.destroy_layouts(ended);
    }

    /// The device ends: all layouts go.
    pub(super) fn end_layouts(&self) {
        self.sweep_layouts();
        let all = std::mem::take(&mut lock(&self.pieces.free).layouts);
        self.destroy_layouts(all.into_iter().map(PipelineLayout).collect());
    }

    fn destroy_layouts(&self, all: Vec<PipelineLayout>) {
        if let Some(destroy) = self.next.destroy_pipeline_layout {
            // SAFETY: layouts of ours that no command buffer records with: the application's own, which they are equal
            // to, is destroyed, and no form of a pipeline has them; or the device ends.
            all.into_iter().for_each(|it| unsafe { destroy(self.device, it, Ptr::NULL) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_again_and_grow_together() {
        let mut all = Ranges::default();
        all.add(0, 100);
        assert_eq!([all.take(10), all.take(20), all.take(30)], [Some(0), Some(10), Some(30)]);
        assert_eq!(all.take(41), None, "40 are left");
        all.add(10, 20);
        assert_eq!(all.take(21), Some(60), "those in the middle are too few");
        all.add(0, 10);
        assert_eq!(all.take(30), Some(0), "two that touch are one");
        all.add(0, 30);
        all.add(60, 21);
        all.add(30, 30);
        assert_eq!(all.0, BTreeMap::from([(0, 100)]));
    }

    #[test]
    fn what_nobody_has_is_free() {
        let pieces = Arc::new(Pieces::default());
        let set = pieces.lease(Piece::Set(DescriptorSet(7)));
        let part = Arc::new(pieces.lease(Piece::Part(8, 16)));
        let again = Arc::clone(&part);
        drop((set, part));
        let counts = |it: &Free| (it.sets.len(), it.parts.0.len());
        assert_eq!(counts(&lock(&pieces.free)), (1, 0), "one has it still");
        drop(again);
        assert_eq!(lock(&pieces.free).parts.take(16), Some(8));
    }
}
