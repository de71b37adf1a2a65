//! Libraries: opening them, this one, and whose an address is.

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::system;

/// The system's Vulkan loader, as [`Library::open`] finds it.
pub const VULKAN_LOADER: &str = system::library::VULKAN_LOADER;

/// Whether libraries of this system are ELF files.
pub const IS_ELF: bool = system::library::IS_ELF;

/// A library that is open until it is dropped.
pub struct Library(libloading::Library);

/// Why a library, or a symbol of it, is not there.
#[derive(Debug)]
pub struct LibraryError(libloading::Error);

impl Library {
    /// Opens a library where the system looks for one of this name.
    ///
    /// # Safety
    ///
    /// Its initializers must have no preconditions that do not hold.
    pub unsafe fn open(name: &str) -> Result<Library, LibraryError> {
        // SAFETY: the same contract.
        unsafe { libloading::Library::new(name) }.map(Library).map_err(LibraryError)
    }

    /// The address of a symbol, as a pointer or function.
    ///
    /// # Safety
    ///
    /// `T` must be as large as a pointer, and what the library has by this name. It must not be used after the library
    /// was dropped.
    pub unsafe fn get<T: Copy>(&self, name: &str) -> Result<T, LibraryError> {
        // SAFETY: the same contract.
        unsafe { self.0.get::<T>(name) }.map(|it| *it).map_err(LibraryError)
    }
}

impl LibraryError {
    /// The system's error, without the attempts.
    pub fn reason(&self) -> String {
        std::error::Error::source(&self.0).map_or_else(|| self.0.to_string(), ToString::to_string)
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for LibraryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.0)
    }
}

/// Keeps the library that this code is in until the process ends.
pub fn keep_loaded() {
    /// One time is enough. Relaxed: a second time would do no harm.
    static IS_KEPT: AtomicBool = AtomicBool::new(false);
    if !IS_KEPT.swap(true, Ordering::Relaxed) {
        system::library::keep_loaded();
    }
}

/// The module that an address is in.
pub struct Module {
    /// As the dynamic linker calls it: the program itself may have no path.
    pub file: String,
    pub base: usize,
    /// The exported function at or before the address.
    pub symbol: Option<String>,
}

/// Where an address is, if in any module.
pub fn module_of(address: usize) -> Option<Module> {
    system::library::module_of(address)
}

/// A module that is loaded: the program or a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedModule {
    /// As the dynamic linker calls it; empty for the program itself.
    pub file: String,
    pub base: usize,
    /// The first address behind it.
    pub end: usize,
}

/// How many modules were loaded and unloaded so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleChanges {
    pub loaded: u64,
    pub unloaded: u64,
}

/// All modules that are loaded.
pub fn loaded_modules() -> Vec<LoadedModule> {
    system::library::loaded_modules()
}

/// Whether other modules are loaded than before, in a few instructions.
pub fn module_changes() -> ModuleChanges {
    system::library::module_changes()
}

/// Gives memory back to the C library that a library in C took from it for its caller.
///
/// # Safety
///
/// The memory must come from `malloc` of the C library, and must not be used any more.
pub unsafe fn c_free(memory: *mut c_void) {
    // SAFETY: the same contract.
    unsafe { system::library::c_free(memory) };
}
