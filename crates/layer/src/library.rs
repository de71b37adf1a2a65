//! Libraries in memory: this one, which the loader closes with its last instance, and whose an address is.

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

/// The module that an address is in.
pub(crate) struct Module {
    /// As the dynamic linker calls it: the program itself may have no path.
    pub(crate) file: String,
    pub(crate) base: usize,
    /// The exported function at or before the address.
    pub(crate) symbol: Option<String>,
}

/// Where an address is, if in any module.
pub(crate) fn module_of(address: usize) -> Option<Module> {
    system::module_of(address)
}

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::{CStr, c_char, c_int, c_void};

    use super::Module;

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

    fn place_of(address: *const c_void) -> Option<Place> {
        let null = std::ptr::null();
        let mut place = Place { file: null, base: null.cast(), symbol: null, address: null.cast() };
        // SAFETY: any address may be asked for, and the structure for the answer is ours.
        let is_known = unsafe { dladdr(address, &raw mut place) } != 0;
        (is_known && !place.file.is_null()).then_some(place)
    }

    pub(super) fn keep() {
        if let Some(place) = place_of((keep as fn()) as *const c_void) {
            // SAFETY: the file is the one that this code was loaded from, and it is not loaded again.
            unsafe { dlopen(place.file, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) };
        }
    }

    pub(super) fn module_of(address: usize) -> Option<Module> {
        let place = place_of(std::ptr::without_provenance(address))?;
        // SAFETY: texts of the dynamic linker, which live as long as their module.
        let text = |it: *const c_char| unsafe { CStr::from_ptr(it) }.to_string_lossy().into_owned();
        let symbol = (!place.symbol.is_null()).then(|| text(place.symbol));
        Some(Module { file: text(place.file), base: place.base.addr(), symbol })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Not written yet: what was counted starts anew with each load.
    pub(super) fn keep() {}

    pub(super) fn module_of(_: usize) -> Option<super::Module> {
        None
    }
}
