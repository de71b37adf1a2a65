//! What [`crate::schedule::progress_counter`] is made of: atomics of the standard library, and a bell that threads
//! sleep on.

use std::sync::atomic::AtomicU32;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use lavascope_platform::wait::{WaitResult, wait, wake_all};

/// Something that rings, and that one can sleep on without missing it.
#[derive(Default)]
pub(crate) struct EventCount(AtomicU32);

impl EventCount {
    /// How often it has rung.
    pub(crate) fn epoch(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Wakes all that sleep.
    pub(crate) fn notify_all(&self) {
        self.0.fetch_add(1, Ordering::Release);
        wake_all(&self.0);
    }

    /// Sleeps, unless it has rung since it was listened to. Gives whether the time was over.
    pub(crate) fn wait(&self, heard: u32, nap: Duration) -> bool {
        wait(&self.0, heard, Some(nap)) == WaitResult::TimedOut
    }
}
