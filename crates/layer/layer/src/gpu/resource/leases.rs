//! Resources of a pipeline, a library or a layout: memory, descriptor sets, cells, and layouts of ours.
//!
//! Each user of such a resource holds a lease of it. When the last lease is dropped, the resource can be reused.
//! Command buffers hold the variants that they use, so memory whose records may still be read is not reused.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use lavascope_abi::*;
use rustc_hash::FxHashMap;

use super::arena::{ArenaRegion, POOL_SETS, padded_words};
use crate::gpu::pipeline::variants::lock;
use crate::gpu::{DeviceChecks, SHARED_CELL_WORDS, TABLE_COUNT};

/// Free resources of a device.
#[derive(Default)]
pub(crate) struct ResourcePool {
    free: Mutex<FreeResources>,
}

#[derive(Default)]
struct FreeResources {
    /// By the words that they have room for.
    regions: FxHashMap<u32, Vec<ArenaRegion>>,
    sets: Vec<DescriptorSet>,
    shared_cells: FreeRanges,
    /// Layouts that are in use, and those that are to be destroyed.
    layouts: HashSet<u64>,
    unused_layouts: Vec<PipelineLayout>,
}

/// A leased resource.
pub(crate) struct Lease {
    pieces: Arc<ResourcePool>,
    piece: LeasedResource,
}

enum LeasedResource {
    Region(ArenaRegion),
    Set(DescriptorSet),
    /// Words among the cells of parts.
    SharedCells(u32, u32),
    Layout(PipelineLayout),
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut free = lock(&self.pieces.free);
        match self.piece {
            LeasedResource::Region(region) => free.regions.entry(region.words).or_default().push(region),
            LeasedResource::Set(set) => free.sets.push(set),
            LeasedResource::SharedCells(at, words) => free.shared_cells.add(at, words),
            LeasedResource::Layout(layout) => {
                free.layouts.remove(&layout.0);
                free.unused_layouts.push(layout);
            }
        }
    }
}

impl ResourcePool {
    fn lease(self: &Arc<ResourcePool>, piece: LeasedResource) -> Lease {
        Lease { pieces: Arc::clone(self), piece }
    }
}

/// Ranges of numbers that are free: where they begin, and how many they have. No two of them touch.
#[derive(Default)]
struct FreeRanges(BTreeMap<u32, u32>);

impl FreeRanges {
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

impl DeviceChecks {
    /// Memory that both sides see, of zeros.
    pub(crate) fn lease_memory(&self, words: u32) -> Option<(ArenaRegion, Lease)> {
        let room = padded_words(words);
        let known = lock(&self.resource_pool.free).regions.get_mut(&room).and_then(Vec::pop);
        let all = match known {
            Some(arena_region) => {
                arena_region.write(&vec![0; room as usize]);
                arena_region
            }
            None => self.with_arena(|arena| arena.allocate(self, room))?,
        };
        Some((all.first_words(words.max(1)), self.resource_pool.lease(LeasedResource::Region(all))))
    }

    /// A descriptor set of ours with tables in it.
    pub(crate) fn lease_set(&self, regions: [ArenaRegion; TABLE_COUNT]) -> Option<(DescriptorSet, Lease)> {
        let known = lock(&self.resource_pool.free).sets.pop();
        let set = match known {
            Some(descriptor_set) => {
                self.write_reserved_set(descriptor_set, regions)?;
                descriptor_set
            }
            None => self.lasting_set(regions)?,
        };
        Some((set, self.resource_pool.lease(LeasedResource::Set(set))))
    }

    /// A set that is there until the device ends.
    fn lasting_set(&self, regions: [ArenaRegion; TABLE_COUNT]) -> Option<DescriptorSet> {
        let taken = self.state().set_pools.pop();
        let (pool, left) = match taken {
            Some(pair) => pair,
            None => (self.take_descriptor_pool()?, POOL_SETS),
        };
        let set = self.allocate_reserved_set(pool, regions);
        let mut state = self.state();
        match left {
            1 => state.full_pools.push(pool),
            _ => state.set_pools.push((pool, left - 1)),
        }
        set
    }

    /// Where the cells of parts of pipelines are.
    pub(crate) fn shared_cells(&self) -> ArenaRegion {
        self.shared_cells.get().copied().unwrap_or_default()
    }

    /// Cells for a part of pipelines. Gives where they begin among those of all parts.
    pub(crate) fn lease_shared_cells(&self, words: &[u32]) -> Option<(u32, Arc<Lease>)> {
        if self.shared_cells.get().is_none() {
            let made = self.with_arena(|arena| arena.allocate(self, SHARED_CELL_WORDS))?;
            // Another thread may have been faster; its region counts.
            if self.shared_cells.set(made).is_ok() {
                lock(&self.resource_pool.free).shared_cells.add(0, SHARED_CELL_WORDS);
            }
        }
        let count = words.len() as u32;
        let at = lock(&self.resource_pool.free).shared_cells.take(count)?;
        self.shared_cells().skip_words(at).write(words);
        Some((at, Arc::new(self.resource_pool.lease(LeasedResource::SharedCells(at, count)))))
    }

    /// A pipeline layout of ours that was just made.
    pub(crate) fn lease_layout(&self, made: PipelineLayout) -> Lease {
        lock(&self.resource_pool.free).layouts.insert(made.0);
        self.resource_pool.lease(LeasedResource::Layout(made))
    }

    /// Destroys unused layouts.
    pub(crate) fn destroy_unused_layouts(&self) {
        let ended = std::mem::take(&mut lock(&self.resource_pool.free).unused_layouts);
        self.destroy_layouts(ended);
    }

    /// The device ends: all layouts go.
    pub(crate) fn end_layouts(&self) {
        self.destroy_unused_layouts();
        let all = std::mem::take(&mut lock(&self.resource_pool.free).layouts);
        self.destroy_layouts(all.into_iter().map(PipelineLayout).collect());
    }

    fn destroy_layouts(&self, all: Vec<PipelineLayout>) {
        if let Some(destroy) = self.next.destroy_pipeline_layout {
            // SAFETY: layouts of ours that no command buffer records with: the application's own, which they are equal
            // to, is destroyed, and no variant of a pipeline has them; or the device is destroyed.
            all.into_iter().for_each(|it| unsafe { destroy(self.device, it, Ptr::NULL) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_again_and_grow_together() {
        let mut all = FreeRanges::default();
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
        let pieces = Arc::new(ResourcePool::default());
        let set = pieces.lease(LeasedResource::Set(DescriptorSet(7)));
        let part = Arc::new(pieces.lease(LeasedResource::SharedCells(8, 16)));
        let again = Arc::clone(&part);
        drop((set, part));
        let counts = |it: &FreeResources| (it.sets.len(), it.shared_cells.0.len());
        assert_eq!(counts(&lock(&pieces.free)), (1, 0), "one has it still");
        drop(again);
        assert_eq!(lock(&pieces.free).shared_cells.take(16), Some(8));
    }
}
