//! Sleeping until a word changes.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::system;

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitResult {
    /// The thread was woken, the word had changed already, or it is a spurious wake-up: check again.
    MaybeWoken,
    TimedOut,
}

/// Sleeps as long as the word has the value, until a wake-up or the time limit. Threads of this process only.
#[inline]
pub fn wait(word: &AtomicU32, value: u32, most: Option<Duration>) -> WaitResult {
    system::wait::wait(word, value, most)
}

/// Wakes one thread that sleeps on the word.
#[inline]
pub fn wake_one(word: &AtomicU32) {
    system::wait::wake(word, 1);
}

/// Wakes all threads that sleep on the word.
#[inline]
pub fn wake_all(word: &AtomicU32) {
    system::wait::wake(word, u32::MAX >> 1);
}
