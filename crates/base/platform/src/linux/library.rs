//! The dynamic linker.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;

use crate::library::{LoadedModule, Module, ModuleChanges};

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

pub(crate) fn loaded_modules() -> Vec<LoadedModule> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, all: *mut c_void) -> c_int {
        // SAFETY: what the dynamic linker gives, for the length of this call, and the list of the caller below.
        let (info, all) = unsafe { (&*info, &mut *all.cast::<Vec<LoadedModule>>()) };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: so many headers are there as long as the module is.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let loaded = || headers.iter().filter(|it| it.p_type == libc::PT_LOAD);
        let first = loaded().map(|it| it.p_vaddr as usize).min();
        let end = loaded().map(|it| (it.p_vaddr + it.p_memsz) as usize).max();
        if let (Some(first), Some(end)) = (first, end) {
            let place = info.dlpi_addr as usize;
            let page = crate::pages::page_size() as usize;
            // SAFETY: a text of the dynamic linker that lives as long as the module.
            let name = (!info.dlpi_name.is_null()).then(|| unsafe { CStr::from_ptr(info.dlpi_name) });
            let file = name.unwrap_or_default().to_string_lossy().into_owned();
            let base = place.wrapping_add(first / page * page);
            all.push(LoadedModule { file, base, end: place.wrapping_add(end) });
        }
        0
    }
    let mut all: Vec<LoadedModule> = Vec::new();
    // SAFETY: the function has the type that it must have, and gets the list while nothing else uses it.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut all).cast()) };
    all
}

pub(crate) fn module_changes() -> ModuleChanges {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, changes: *mut c_void) -> c_int {
        // SAFETY: what the dynamic linker gives, for the length of this call, and the value of the caller below.
        let (info, changes) = unsafe { (&*info, &mut *changes.cast::<ModuleChanges>()) };
        *changes = ModuleChanges { loaded: info.dlpi_adds, unloaded: info.dlpi_subs };
        1
    }
    let mut changes = ModuleChanges::default();
    // SAFETY: the function has the type that it must have, and gets the value while nothing else uses it.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut changes).cast()) };
    changes
}

/// # Safety
///
/// As for [`crate::library::c_free`].
pub(crate) unsafe fn c_free(memory: *mut c_void) {
    // SAFETY: memory of `malloc` that nobody uses any more, by this function's contract.
    unsafe { libc::free(memory) };
}
