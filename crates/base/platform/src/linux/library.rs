//! The dynamic linker.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;

use crate::library::Module;

pub(crate) const VULKAN_LOADER: &str = "libvulkan.so.1";
pub(crate) const IS_ELF: bool = true;

fn symbol_info(address: *const c_void) -> Option<libc::Dl_info> {
    let mut place = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked for, and the structure for the answer is ours.
    let is_known = unsafe { libc::dladdr(address, place.as_mut_ptr()) } != 0;
    // SAFETY: a call that succeeded has written it.
    is_known.then(|| unsafe { place.assume_init() }).filter(|it| !it.dli_fname.is_null())
}

pub(crate) fn keep_loaded() {
    if let Some(place) = symbol_info((keep_loaded as fn()) as *const c_void) {
        // SAFETY: the file is the one that this code was loaded from, and it is not loaded again.
        unsafe { libc::dlopen(place.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    }
}

pub(crate) fn module_of(address: usize) -> Option<Module> {
    let place = symbol_info(std::ptr::without_provenance(address))?;
    // SAFETY: texts of the dynamic linker, which live as long as their module.
    let text = |it: *const c_char| unsafe { CStr::from_ptr(it) }.to_string_lossy().into_owned();
    let symbol = (!place.dli_sname.is_null()).then(|| text(place.dli_sname));
    Some(Module { file: text(place.dli_fname), base: place.dli_fbase.addr(), symbol })
}

/// # Safety
///
/// As for [`crate::library::c_free`].
pub(crate) unsafe fn c_free(memory: *mut c_void) {
    // SAFETY: memory of `malloc` that nobody uses any more, by this function's contract.
    unsafe { libc::free(memory) };
}
