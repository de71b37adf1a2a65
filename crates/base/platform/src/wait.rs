//! Sleeping until a word changes.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::system;

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitResult {
    /// Somebody woke us, the word had changed already, or for no reason: look again.
    MaybeWoken,
    TimedOut,
}

/// Sleeps for as long as the word has the value, until somebody wakes or the time is over. Threads of this process only.
#[inline]
pub fn wait(word: &AtomicU32, value: u32, most: Option<Duration>) -> WaitResult {
    system::wait::wait(word, value, most)
}

/// Wakes one of those that sleep on the word.
#[inline]
pub fn wake_one(word: &AtomicU32) {
    system::wait::wake(word, 1);
}

/// Wakes all that sleep on the word.
#[inline]
pub fn wake_all(word: &AtomicU32) {
    system::wait::wake(word, u32::MAX >> 1);
}
