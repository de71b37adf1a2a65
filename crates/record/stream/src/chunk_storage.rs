//! Where the words of a stream are stored: on our heap, or in a storage that outlives the process.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Words that one thread writes and another one reads, and the number of complete ones.
pub struct ChunkSpace {
    words: NonNull<u64>,
    count: usize,
    committed: NonNull<AtomicUsize>,
}

// SAFETY: memory of `u64` and an atomic, which have no thread of their own; by the contract of `ChunkSpace::new` only the
// holder of the space reaches them.
unsafe impl Send for ChunkSpace {}
// SAFETY: a shared space gives a raw pointer to the words, which only unsafe code follows, and a reference to the counter,
// which is atomic.
unsafe impl Sync for ChunkSpace {}

impl ChunkSpace {
    /// # Safety
    ///
    /// Until the space is given back by [`ChunkStorage::release`] or dropped, `words` must lead to `count` words that can be
    /// written and `committed` to a counter, and nobody else may write any of them. The counter must be zero, and not be
    /// one of the words.
    pub unsafe fn new(words: NonNull<u64>, count: usize, committed: NonNull<AtomicUsize>) -> ChunkSpace {
        ChunkSpace { words, count, committed }
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline(always)]
    pub fn words(&self) -> *mut u64 {
        self.words.as_ptr()
    }

    #[inline(always)]
    pub(crate) fn committed(&self) -> &AtomicUsize {
        // SAFETY: by the contract of `ChunkSpace::new` the counter is there for as long as the space, which the reference
        // borrows.
        unsafe { self.committed.as_ref() }
    }
}

/// A storage for the words of streams.
pub trait ChunkStorage: Send + Sync {
    /// Space for words of a stream after its first `word_offset` ones; none if the storage is full.
    fn claim(&self, stream: u32, word_offset: u64, words: usize) -> Option<ChunkSpace>;

    /// Returns space whose words are not needed any more.
    fn release(&self, space: ChunkSpace);
}

/// Space on our heap: the counter, then the words.
///
/// Not a `Box`: moving a box asserts unique access to its contents, and a heap chunk moves while its space is in use.
pub(crate) struct HeapChunk(Arc<[UnsafeCell<MaybeUninit<u64>>]>);

// SAFETY: a shared heap gives a space and no more, by a function whose contract says that there is one at a time.
unsafe impl Sync for HeapChunk {}
// SAFETY: words without a meaning, which have no thread of their own; the `Arc` is never cloned.
unsafe impl Send for HeapChunk {}

impl HeapChunk {
    pub(crate) fn new(count: usize) -> HeapChunk {
        HeapChunk((0..=count).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect())
    }

    /// The space that it is.
    ///
    /// # Safety
    ///
    /// Nobody may use a space that this heap gave before, and nobody this one after the heap is dropped.
    pub(crate) unsafe fn space(&self) -> ChunkSpace {
        let all = NonNull::from(&self.0[..]).cast::<u64>();
        let first = all.cast::<AtomicUsize>();
        // SAFETY: `HeapChunk::new` made one cell more than words were asked for, so there is a first one. It has the size and
        // alignment of the counter, may be written through a shared reference, and by the contract nobody else uses it.
        unsafe { first.write(AtomicUsize::new(0)) };
        // SAFETY: the words begin behind the first cell, which there is, and end with the slice.
        let words = unsafe { all.add(1) };
        // SAFETY: all cells but the first are the words, and the first is the counter, just set to zero. The heap owns
        // them, and outlives the space by the contract of this function, which also says that nobody uses another space of it.
        unsafe { ChunkSpace::new(words, self.0.len() - 1, first) }
    }
}
