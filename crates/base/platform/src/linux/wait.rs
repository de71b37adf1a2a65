//! Sleeping on a word: the system's futex.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;

use crate::wait::WaitResult;

#[inline]
pub(crate) fn wait(word: &AtomicU32, value: u32, most: Option<Duration>) -> WaitResult {
    let most = most.map(|it| futex::Timespec { tv_sec: it.as_secs() as i64, tv_nsec: it.subsec_nanos().into() });
    match futex::wait(word, futex::Flags::PRIVATE, value, most.as_ref()) {
        Err(Errno::TIMEDOUT) => WaitResult::TimedOut,
        _ => WaitResult::MaybeWoken,
    }
}

#[inline]
pub(crate) fn wake(word: &AtomicU32, count: u32) {
    // It fails for no word that is aligned.
    let _ = futex::wake(word, futex::Flags::PRIVATE, count);
}
