//! Threads: their numbers, their end, their processor.

use std::ffi::c_void;
use std::time::Duration;

use crate::system;

/// The system's number of the calling thread. Also in a handler.
pub fn id() -> u32 {
    system::threads::id()
}

/// Calls a function with a value once when the calling thread ends. Where the system can do it, also if the thread is
/// ending already; the library that this code is in stays loaded until then.
///
/// # Safety
///
/// The function must be one that may be called with the value on this thread, at any later time.
pub unsafe fn on_thread_exit(call: unsafe extern "C" fn(*mut c_void), with: *mut c_void) {
    // SAFETY: the same contract.
    unsafe { system::threads::on_thread_exit(call, with) };
}

/// Calls a function in each process that is made by `fork` from now on, before anything else runs there. Only the calling
/// thread exists in it, and locks of others stay taken.
pub fn on_fork(in_child: extern "C" fn()) {
    system::threads::on_fork(in_child);
}

/// Keeps the calling thread on a processor: equal numbers stand for the same one. Nothing happens where that is not
/// allowed, or where there is only one.
pub fn pin_to_processor(number: usize) {
    system::threads::pin_to_processor(number);
}

/// Sleeps for at most so long. Also in a handler.
pub fn signal_safe_sleep(time: Duration) {
    system::threads::signal_safe_sleep(time);
}
