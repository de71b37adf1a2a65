//! How far one thread is, for others to look at and to sleep on.
//!
//! The thread stores its number and looks whether somebody wants it: two plain accesses to a line that is its own. Who
//! is about to sleep says first what it wants. The two may miss each other; so the thread looks once more, in an order
//! that all agree on, before it may stand still ([`ProgressCounter::flush_wakeups`]).
//!
//! Compiled twice: with the atomics of the standard library, and for the test that goes through all interleavings.

use std::time::Duration;

use super::atomics::{AtomicU64, EventCount, Ordering, fence};

/// A number that only grows, written by one thread.
pub(crate) struct ProgressCounter {
    value: AtomicU64,
    /// The least that somebody sleeps for; the largest number where nobody does.
    wake_at: AtomicU64,
    event_count: EventCount,
}

/// How somebody slept.
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
    /// Everything up to this is done, and whoever sees the number sees what was done.
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

    /// Wakes those that began to sleep while the last number was published.
    #[inline]
    pub(crate) fn flush_wakeups(&self) {
        // Pairs with the one in `sleep`: either we see what is wanted, or who wants it sees the number.
        fence(Ordering::SeqCst);
        if self.value.load(Ordering::Relaxed) >= self.wake_at.load(Ordering::Relaxed) {
            self.wake_all();
        }
    }

    /// Wakes everybody; those that still have to wait say so again.
    #[cold]
    pub(crate) fn wake_all(&self) {
        self.wake_at.store(u64::MAX, Ordering::Relaxed);
        self.event_count.notify_all();
    }

    /// Sleeps until the number may have been reached, or `nap` is over. Not at all where `is_over`.
    pub(crate) fn sleep(&self, until: u64, nap: Duration, is_over: impl Fn() -> bool) -> SleepOutcome {
        // Before it is said what is wanted: a ring that takes that back is heard.
        let heard = self.event_count.epoch();
        self.wake_at.fetch_min(until, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.get() >= until || is_over() {
            return SleepOutcome { is_timeout: false };
        }
        SleepOutcome { is_timeout: self.event_count.wait(heard, nap) }
    }

    /// How often somebody was woken.
    #[cfg(test)]
    #[allow(dead_code, reason = "only the model asks")]
    pub(crate) fn wakeup_count(&self) -> u32 {
        self.event_count.epoch()
    }
}
