//! What is to be done when a thread of the application ends.
//!
//! The destructor of a thread-local is not enough: a thread may make its first call, or one more, in a destructor
//! that runs after ours, and a second one is then never run. The C library takes new ones until the last has run. It
//! also keeps this library loaded until then.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::ffi::{c_int, c_void};

#[cfg(all(target_os = "linux", target_env = "gnu"))]
unsafe extern "C" {
    /// Calls a function when the calling thread ends, also if it is ending already.
    fn __cxa_thread_atexit_impl(
        call: unsafe extern "C" fn(*mut c_void),
        with: *mut c_void,
        library: *const u8,
    ) -> c_int;
    /// Stands for this library.
    static __dso_handle: u8;
}

/// Calls `function` once when the calling thread ends.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn call(function: fn()) {
    unsafe extern "C" fn run(function: *mut c_void) {
        // SAFETY: the address of a function of this type, below.
        let function = unsafe { std::mem::transmute::<*mut c_void, fn()>(function) };
        crate::fence::fence("the end of a thread", function, || ());
    }
    // SAFETY: the function lives as long as the library.
    unsafe { __cxa_thread_atexit_impl(run, function as *mut c_void, &raw const __dso_handle) };
}

/// Calls `function` once when the calling thread ends, unless it is ending already.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn call(function: fn()) {
    struct Guard(std::cell::Cell<Option<fn()>>);
    impl Drop for Guard {
        fn drop(&mut self) {
            if let Some(function) = self.0.take() {
                crate::fence::fence("the end of a thread", function, || ());
            }
        }
    }
    thread_local! {
        static GUARD: Guard = const { Guard(std::cell::Cell::new(None)) };
    }
    let _ = GUARD.try_with(|it| it.0.set(Some(function)));
}
