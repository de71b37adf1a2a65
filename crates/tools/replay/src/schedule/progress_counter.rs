//! The progress of one thread, which others read and wait for.
//!
//! The thread stores its number, and checks whether another one waits for it: two plain accesses to its own cache line.
//! A thread that is about to sleep first stores which number it needs. The two may miss each other. Before the thread
//! may block, it therefore checks once more with sequential consistency ([`ProgressCounter::flush_wakeups`]).
//!
//! Compiled twice: with the atomics of the standard library, and with those of `loom` for a test of all interleavings.

use std::time::Duration;

use super::atomics::{AtomicU64, EventCount, Ordering, fence};

/// A number that only grows, written by one thread.
pub(crate) struct ProgressCounter {
    value: AtomicU64,
    /// The smallest number that a sleeping thread needs; the largest number if no thread sleeps.
    wake_at: AtomicU64,
    event_count: EventCount,
}

/// How a thread slept.
#[derive(Clone, Copy)]
pub(crate) struct SleepOutcome {
    pub(crate) is_timeout: bool,
}

impl Default for ProgressCounter {
    fn default() -> ProgressCounter {
        ProgressCounter {
            value: AtomicU64::new(0),
            wake_at: AtomicU64::new(u64::MAX),
            event_count: EventCount::default(),
        }
    }
}

impl ProgressCounter {
    /// Publishes a number. A thread that sees it also sees everything that was done before.
    #[inline]
    pub(crate) fn publish(&self, value: u64) {
        self.value.store(value, Ordering::Release);
        if value >= self.wake_at.load(Ordering::Relaxed) {
            self.wake_all();
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.value.load(Ordering::Acquire)
    }

    /// Wakes threads that began to sleep while the last number was published.
    #[inline]
    pub(crate) fn flush_wakeups(&self) {
        // Pairs with the fence in `sleep`: either this thread sees the request, or the sleeping thread sees the number.
        fence(Ordering::SeqCst);
        if self.value.load(Ordering::Relaxed) >= self.wake_at.load(Ordering::Relaxed) {
            self.wake_all();
        }
    }

    /// Wakes all threads; those that must wait longer sleep again.
    #[cold]
    pub(crate) fn wake_all(&self) {
        self.wake_at.store(u64::MAX, Ordering::Relaxed);
        self.event_count.notify_all();
    }

    /// Sleeps until the number may be reached, or `nap` is over. Returns at once if `is_over`.
    pub(crate) fn sleep(&self, until: u64, nap: Duration, is_over: impl Fn() -> bool) -> SleepOutcome {
        // Read before the request is stored, so that a wake-up that clears the request is not missed.
        let heard = self.event_count.epoch();
        self.wake_at.fetch_min(until, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.get() >= until || is_over() {
            return SleepOutcome { is_timeout: false };
        }
        SleepOutcome { is_timeout: self.event_count.wait(heard, nap) }
    }

    /// How often a thread was woken.
    #[cfg(test)]
    #[allow(dead_code, reason = "only the model asks")]
    pub(crate) fn wakeup_count(&self) -> u32 {
        self.event_count.epoch()
    }
}
