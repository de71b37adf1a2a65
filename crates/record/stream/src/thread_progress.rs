//! What threads share about their progress: how far one has come, and that another must make a barrier.
//!
//! Compiled twice: with the atomics of the standard library, and with those of `loom` for a test of all interleavings.

use super::atomics::{AtomicBool, AtomicU64, Ordering};

/// The progress of one thread, which others read.
pub(crate) struct ThreadProgress {
    /// The last call that returned. Release in `complete`; pairs with Acquire in `last_returned`.
    last_returned: AtomicU64,
    /// The value of `last_returned` when a push barrier was made last. Relaxed: the request of the barrier publishes it.
    pushed: AtomicU64,
    /// Another thread has waited for the device, so a barrier must come before the next record. Release in
    /// `request_barrier`, after the progress that was pushed; pairs with Acquire in `take_barrier_request`.
    barrier_requested: AtomicBool,
}

impl ThreadProgress {
    /// The progress of a new thread. Its first record needs a barrier: requests made before it existed did not reach it.
    pub(crate) fn new() -> ThreadProgress {
        let (last_returned, pushed) = (AtomicU64::new(0), AtomicU64::new(0));
        ThreadProgress { last_returned, pushed, barrier_requested: AtomicBool::new(true) }
    }

    /// Called by the thread itself when a call has returned.
    #[inline(always)]
    pub(crate) fn complete(&self, call: u64) {
        // A call inside another call returned first, and has the larger number.
        if self.last_returned.load(Ordering::Relaxed) < call {
            self.last_returned.store(call, Ordering::Release);
        }
    }

    /// The last call that returned.
    pub(crate) fn last_returned(&self) -> u64 {
        self.last_returned.load(Ordering::Acquire)
    }

    /// Called by any thread that makes a push barrier, before it requests barriers of others.
    pub(crate) fn note_push(&self) {
        self.pushed.fetch_max(self.last_returned(), Ordering::Relaxed);
    }

    /// The last call that had returned when a push barrier was made.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Relaxed)
    }

    /// Called by another thread, which has already published its own progress, and what is pushed.
    pub(crate) fn request_barrier(&self) {
        // Not a store: that would hide the progress of another thread whose request it replaces.
        self.barrier_requested.swap(true, Ordering::Release);
    }

    /// Called by the thread itself: whether a barrier is requested. Clears the request.
    #[inline(always)]
    pub(crate) fn take_barrier_request(&self) -> bool {
        self.barrier_requested.load(Ordering::Relaxed) && self.barrier_requested.swap(false, Ordering::Acquire)
    }
}
