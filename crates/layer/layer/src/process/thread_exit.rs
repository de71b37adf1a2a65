//! Runs a function when a thread of the application ends.

use std::ffi::c_void;

use lavascope_platform::threads;

/// Calls `function` once when the calling thread ends.
pub(crate) fn on_thread_exit(function: fn()) {
    unsafe extern "C" fn run(function: *mut c_void) {
        // SAFETY: the address of a function of this type, below.
        let function = unsafe { std::mem::transmute::<*mut c_void, fn()>(function) };
        crate::process::catch_panic::catch_panic("the end of a thread", function, || ());
    }
    // SAFETY: the function has no preconditions, and `run` gets its address.
    unsafe { threads::on_thread_exit(run, function as *mut c_void) };
}
