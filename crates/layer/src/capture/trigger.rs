//! A signal by which a user says: from now on, and until now.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often it came. Relaxed: the reader looks now and then.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// From now on the signal is counted. A handler that the application has for it is gone, one that it sets later takes
/// the place of ours.
pub(crate) fn listen(signal: c_int) {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = count_one as extern "C" fn(c_int) as usize;
    // Calls of the application go on as if nothing had come.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: a handler that only counts, and stays loaded: who captures keeps the library.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}

/// How often the signal came so far.
pub(crate) fn count() -> u32 {
    COUNT.load(Ordering::Relaxed)
}

extern "C" fn count_one(_: c_int) {
    COUNT.fetch_add(1, Ordering::Relaxed);
}
