//! Memory of ours that the application writes to, close together, so that one question to the system covers many.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use lavascope_platform::pages::{AlignedMapping, PageTracker, page_size};

use super::lock;

/// Addresses of a chunk. They take no room until they are used.
const CHUNK_BYTES: u64 = 256 << 20;

/// Larger blocks are not populated: a look becomes half as long, but a GiB takes 0.15 s.
const POPULATED_MAX: u64 = 64 << 20;

pub(super) struct PageArena {
    tracker: &'static PageTracker,
    chunks: Mutex<Vec<ArenaChunk>>,
}

struct ArenaChunk {
    mapping: AlignedMapping,
    /// By address: where each free range ends. No two of them touch.
    free: BTreeMap<u64, u64>,
    blocks: usize,
}

/// Memory for one allocation, zeros at first.
pub(super) struct ArenaBlock {
    pub(super) start: u64,
    pub(super) size: u64,
    arena: Arc<PageArena>,
}

impl PageArena {
    /// None if the system does not report written pages.
    pub(super) fn new() -> Option<Arc<PageArena>> {
        let tracker = PageTracker::get()?;
        Some(Arc::new(PageArena { tracker, chunks: Mutex::default() }))
    }

    /// Memory of at least this many bytes, at a multiple of `alignment`, which its size is, too; none if there is no
    /// room. Its pages are not watched yet.
    pub(super) fn allocate(self: &Arc<PageArena>, size: u64, alignment: u64) -> Option<ArenaBlock> {
        let alignment = alignment.max(page_size());
        let size = size.checked_next_multiple_of(alignment).filter(|it| *it > 0)?;
        let block = |start| ArenaBlock { start, size, arena: Arc::clone(self) };
        let mut chunks = lock(&self.chunks);
        if let Some(start) = chunks.iter_mut().find_map(|it| it.take(size, alignment)) {
            return Some(block(start));
        }
        let bytes = if size > CHUNK_BYTES / 4 { size } else { CHUNK_BYTES };
        let mapping = AlignedMapping::new(bytes, alignment)?;
        if !self.tracker.register(&mapping) {
            return None;
        }
        let free = BTreeMap::from([(mapping.start, mapping.start + mapping.size)]);
        let mut chunk = ArenaChunk { mapping, free, blocks: 0 };
        let start = chunk.take(size, alignment)?;
        chunks.push(chunk);
        Some(block(start))
    }

    /// From now on writes to the block are noticed.
    pub(super) fn watch(&self, block: &ArenaBlock) -> bool {
        let addresses = block.start..block.start + block.size;
        let chunks = lock(&self.chunks);
        let Some(chunk) = chunks.iter().find(|it| it.contains(block.start)) else { return false };
        if block.size <= POPULATED_MAX {
            chunk.mapping.populate(addresses.clone());
        }
        self.tracker.protect(&chunk.mapping, addresses)
    }

    /// The pages that were written since they were reported last, and now and then others. False if that is unknown.
    pub(super) fn written(&self, found: &mut Vec<Range<u64>>) -> bool {
        // Held while the system is asked: a chunk that is given back could become somebody else's memory meanwhile.
        lock(&self.chunks).iter().all(|it| self.tracker.written(it.mapping.start..it.used_end(), found))
    }

    fn release(&self, start: u64, size: u64) {
        let mut chunks = lock(&self.chunks);
        let Some(at) = chunks.iter().position(|it| it.contains(start)) else { return };
        let chunk = &mut chunks[at];
        chunk.blocks -= 1;
        if chunk.blocks == 0 {
            chunks.swap_remove(at);
            return;
        }
        chunk.mapping.discard(start..start + size);
        // Unwatched pages between watched ones would be reported.
        self.tracker.protect(&chunk.mapping, start..start + size);
        chunk.add_free(start..start + size);
    }
}

impl ArenaChunk {
    fn contains(&self, address: u64) -> bool {
        (self.mapping.start..self.mapping.start + self.mapping.size).contains(&address)
    }

    /// Behind the last block.
    fn used_end(&self) -> u64 {
        let end = self.mapping.start + self.mapping.size;
        self.free.last_key_value().filter(|it| *it.1 == end).map_or(end, |it| *it.0)
    }

    /// The first place that fits.
    fn take(&mut self, size: u64, alignment: u64) -> Option<u64> {
        let place = |(start, end): (&u64, &u64)| {
            let first = start.checked_next_multiple_of(alignment)?;
            first.checked_add(size).filter(|it| it <= end).map(|_| (*start, *end, first))
        };
        let (start, end, first) = self.free.iter().find_map(place)?;
        self.free.remove(&start);
        if start < first {
            self.free.insert(start, first);
        }
        if first + size < end {
            self.free.insert(first + size, end);
        }
        self.blocks += 1;
        Some(first)
    }

    fn add_free(&mut self, range: Range<u64>) {
        let (mut start, mut end) = (range.start, range.end);
        if let Some((before, _)) = self.free.range(..start).next_back().filter(|it| *it.1 == start) {
            start = *before;
        }
        if let Some(after) = self.free.remove(&end) {
            end = after;
        }
        self.free.insert(start, end);
    }
}

impl Drop for ArenaBlock {
    fn drop(&mut self) {
        self.arena.release(self.start, self.size);
    }
}

#[cfg(test)]
mod tests {
    use lavascope_test_support::TestRng;

    use super::*;

    fn arena() -> Arc<PageArena> {
        PageArena::new().expect("asynchronous userfaultfd: it needs Linux 6.7, and a sandbox that allows the call")
    }

    fn write(at: u64) {
        // SAFETY: memory of the test's own.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(at as usize).write_volatile(1) };
    }

    fn pages(arena: &PageArena) -> Vec<u64> {
        let mut found = Vec::new();
        assert!(arena.written(&mut found));
        let mut all: Vec<u64> = found.into_iter().flat_map(|it| it.step_by(page_size() as usize)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn one_question_covers_all_blocks_that_come_and_go() {
        let (arena, page, mut rng) = (arena(), page_size(), TestRng::new(3));
        let mut blocks: Vec<ArenaBlock> = Vec::new();
        for _ in 0..400 {
            if rng.below(3) == 0 && !blocks.is_empty() {
                blocks.swap_remove(rng.below(blocks.len()));
            } else {
                let alignment = [1, page, 4 * page][rng.below(3)];
                let block = arena.allocate(1 + rng.below(9 * page as usize) as u64, alignment).expect("there is room");
                assert!(block.start.is_multiple_of(alignment) && block.size.is_multiple_of(page));
                // SAFETY: memory of the test's own.
                let first = unsafe { std::ptr::with_exposed_provenance::<u8>(block.start as usize).read_volatile() };
                assert_eq!(first, 0, "a block that is used again is zeros");
                assert!(arena.watch(&block));
                blocks.push(block);
            }
            let mut ordered: Vec<(u64, u64)> = blocks.iter().map(|it| (it.start, it.start + it.size)).collect();
            ordered.sort_unstable();
            assert!(ordered.windows(2).all(|it| it[0].1 <= it[1].0), "no two blocks have the same page");
            if let Some(block) = blocks.get(rng.below(blocks.len().max(1))) {
                let at = block.start + rng.below((block.size / page) as usize) as u64 * page;
                pages(&arena);
                write(at + 7);
                assert_eq!(pages(&arena), [at]);
                assert_eq!(pages(&arena), [0; 0]);
            }
        }
        drop(blocks);
        assert!(lock(&arena.chunks).is_empty(), "what nobody uses is given back");
    }

    #[test]
    fn a_large_block_has_a_chunk_of_its_own() {
        let arena = arena();
        let large = arena.allocate(CHUNK_BYTES * 2, 1).expect("there are addresses");
        let small = arena.allocate(1, 1).expect("there is room");
        assert!(arena.watch(&large) && arena.watch(&small));
        write(large.start + CHUNK_BYTES);
        write(small.start);
        assert_eq!(pages(&arena).len(), 2);
        assert!(arena.allocate(u64::MAX, 1).is_none() && arena.allocate(0, 1).is_none());
    }
}
