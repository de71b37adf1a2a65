//! The parts of [`crate::schedule::progress_counter`]: the atomics of the standard library, and an event count for
//! sleeping threads.

use std::sync::atomic::AtomicU32;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use lavascope_platform::wait::{WaitResult, wait, wake_all};

/// Counts events. A thread can sleep until the next one without missing it.
#[derive(Default)]
pub(crate) struct EventCount(AtomicU32);

impl EventCount {
    /// Number of events so far.
    pub(crate) fn epoch(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Wakes all sleeping threads.
    pub(crate) fn notify_all(&self) {
        self.0.fetch_add(1, Ordering::Release);
        wake_all(&self.0);
    }

    /// Sleeps, unless there was an event since `heard`. Returns whether the time is over.
    pub(crate) fn wait(&self, heard: u32, nap: Duration) -> bool {
        wait(&self.0, heard, Some(nap)) == WaitResult::TimedOut
    }
}
