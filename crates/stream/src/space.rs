//! Where the words of a stream lie: in memory of ours, or in a room that outlives the process.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;

/// Words that one thread writes and one reads, and how many of them are complete.
pub struct Space {
    words: NonNull<u64>,
    count: usize,
    committed: NonNull<AtomicUsize>,
}

// SAFETY: plain memory, which belongs to whoever holds the space.
unsafe impl Send for Space {}
// SAFETY: the words are reached by pointers only, and the counter is atomic.
unsafe impl Sync for Space {}

impl Space {
    /// # Safety
    ///
    /// There must be `count` words and a counter, nobody else's, until the space is given back.
    pub unsafe fn new(words: NonNull<u64>, count: usize, committed: NonNull<AtomicUsize>) -> Space {
        Space { words, count, committed }
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
        // SAFETY: it is there for as long as the space is.
        unsafe { self.committed.as_ref() }
    }
}

/// A place for the words of streams.
pub trait Room: Send + Sync {
    /// Space for words of a stream, behind its first `position` ones; none if there is no more.
    fn claim(&self, stream: u32, position: u64, words: usize) -> Option<Space>;

    /// The words are not needed any more.
    fn release(&self, space: Space);
}

/// Memory of ours: the counter, and then the words.
pub(crate) struct Heap(Box<[UnsafeCell<MaybeUninit<u64>>]>);

// SAFETY: reached through the space only, see there.
unsafe impl Sync for Heap {}
// SAFETY: plain memory.
unsafe impl Send for Heap {}

impl Heap {
    pub(crate) fn new(count: usize) -> Heap {
        Heap((0..=count).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect())
    }

    /// The space that it is. There must be one at a time.
    pub(crate) fn space(&self) -> Space {
        let first = NonNull::from(&self.0[0]).cast::<AtomicUsize>();
        // SAFETY: the first word is nobody's yet, and has the size and alignment of the counter.
        unsafe { first.write(AtomicUsize::new(0)) };
        // SAFETY: there is one word more than were asked for; the cells may be written through a shared reference.
        let words = unsafe { NonNull::from(&self.0[..]).cast::<u64>().add(1) };
        // SAFETY: the words are behind the counter, and live as long as the space does.
        unsafe { Space::new(words, self.0.len() - 1, first) }
    }
}
