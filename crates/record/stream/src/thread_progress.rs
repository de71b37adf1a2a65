//! What threads tell each other: how far one is, and that another should order itself after it.
//!
//! Compiled twice: with the atomics of the standard library, and for the test that goes through all interleavings.

use super::atomics::{AtomicBool, AtomicU64, Ordering};

/// Of one thread; others look at it.
pub(crate) struct ThreadProgress {
    /// The last call that returned. Release in `complete`; pairs with Acquire in `position`.
    position: AtomicU64,
    /// Another thread waited for something: a barrier must come before the next record. Release in `request_barrier`,
    /// after that thread's position; pairs with Acquire in `take_barrier_request`.
    barrier_requested: AtomicBool,
}

impl ThreadProgress {
    pub(crate) fn new() -> ThreadProgress {
        ThreadProgress { position: AtomicU64::new(0), barrier_requested: AtomicBool::new(false) }
    }

    /// By the thread itself: a call returned.
    #[inline(always)]
    pub(crate) fn complete(&self, call: u64) {
        // One that was made inside another returned before it, and has the larger number.
        if self.position.load(Ordering::Relaxed) < call {
            self.position.store(call, Ordering::Release);
        }
    }

    /// The last call that returned.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// By another thread, which has published its own position already.
    pub(crate) fn request_barrier(&self) {
        // Not a store: that would hide the position of another thread whose wish it takes the place of.
        self.barrier_requested.swap(true, Ordering::Release);
    }

    /// By the thread itself: whether a barrier is wanted; asking takes the wish away.
    #[inline(always)]
    pub(crate) fn take_barrier_request(&self) -> bool {
        self.barrier_requested.load(Ordering::Relaxed) && self.barrier_requested.swap(false, Ordering::Acquire)
    }
}
