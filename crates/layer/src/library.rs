//! This library in memory: the loader closes it with its last instance.

use std::sync::atomic::{AtomicBool, Ordering};

/// Keeps the library until the process ends. Somebody listens: what was counted, and the ids that were given, must
/// outlive the instance, and what is kept of threads and objects would be lost with the library.
pub(crate) fn keep() {
    /// One time is enough. Relaxed: a second time would do no harm.
    static IS_KEPT: AtomicBool = AtomicBool::new(false);
    if !IS_KEPT.swap(true, Ordering::Relaxed) {
        system::keep();
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::{c_char, c_int, c_void};

    /// `Dl_info` of the C library.
    #[repr(C)]
    struct Place {
        file: *const c_char,
        base: *const c_void,
        symbol: *const c_char,
        address: *const c_void,
    }

    const RTLD_NOW: c_int = 2;
    const RTLD_NOLOAD: c_int = 4;
    const RTLD_NODELETE: c_int = 0x1000;

    unsafe extern "C" {
        fn dladdr(address: *const c_void, place: *mut Place) -> c_int;
        fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    }

    pub(super) fn keep() {
        let null = std::ptr::null();
        let mut place = Place { file: null, base: null.cast(), symbol: null, address: null.cast() };
        // SAFETY: an address of ours, and a structure for the answer.
        if unsafe { dladdr((keep as fn()) as *const c_void, &raw mut place) } != 0 {
            // SAFETY: the file is the one that this code was loaded from, and it is not loaded again.
            unsafe { dlopen(place.file, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) };
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Not written yet: what was counted starts anew with each load.
    pub(super) fn keep() {}
}
