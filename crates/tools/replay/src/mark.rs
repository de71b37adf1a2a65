//! How far one thread is, for others to look at and to sleep on.
//!
//! The thread stores its number and looks whether somebody wants it: two plain accesses to a line that is its own. Who
//! is about to sleep says first what it wants. The two may miss each other; so the thread looks once more, in an order
//! that all agree on, before it may stand still ([`Mark::settle`]).
//!
//! Compiled twice: with the atomics of the standard library, and for the test that goes through all interleavings.

use std::time::Duration;

use super::atomics::{AtomicU64, Bell, Ordering, fence};

/// A number that only grows, written by one thread.
pub(crate) struct Mark {
    value: AtomicU64,
    /// The least that somebody sleeps for; the largest number where nobody does.
    wanted: AtomicU64,
    bell: Bell,
}

/// How somebody slept.
#[derive(Clone, Copy)]
pub(crate) struct Slept {
    pub(crate) is_timeout: bool,
}

impl Default for Mark {
    fn default() -> Mark {
        Mark { value: AtomicU64::new(0), wanted: AtomicU64::new(u64::MAX), bell: Bell::default() }
    }
}

impl Mark {
    /// Everything up to this is done, and whoever sees the number sees what was done.
    #[inline]
    pub(crate) fn publish(&self, value: u64) {
        self.value.store(value, Ordering::Release);
        if value >= self.wanted.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.value.load(Ordering::Acquire)
    }

    /// Wakes those that began to sleep while the last number was published.
    #[inline]
    pub(crate) fn settle(&self) {
        // Pairs with the one in `sleep`: either we see what is wanted, or who wants it sees the number.
        fence(Ordering::SeqCst);
        if self.value.load(Ordering::Relaxed) >= self.wanted.load(Ordering::Relaxed) {
            self.ring();
        }
    }

    /// Wakes everybody; those that still have to wait say so again.
    #[cold]
    pub(crate) fn ring(&self) {
        self.wanted.store(u64::MAX, Ordering::Relaxed);
        self.bell.ring();
    }

    /// Sleeps until the number may have been reached, or `nap` is over. Not at all where `is_over`.
    pub(crate) fn sleep(&self, until: u64, nap: Duration, is_over: impl Fn() -> bool) -> Slept {
        // Before it is said what is wanted: a ring that takes that back is heard.
        let heard = self.bell.listen();
        self.wanted.fetch_min(until, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.get() >= until || is_over() {
            return Slept { is_timeout: false };
        }
        Slept { is_timeout: self.bell.wait(heard, nap) }
    }

    /// How often somebody was woken.
    #[cfg(test)]
    #[allow(dead_code, reason = "only the model asks")]
    pub(crate) fn rings(&self) -> u32 {
        self.bell.listen()
    }
}
