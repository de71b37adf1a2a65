//! Pages of memory: how large they are, memory of our own, which pages were written, and what can be given back.

use crate::system;
pub use crate::system::page_tracker::{AlignedMapping, PageTracker};
pub use crate::system::write_guard::WriteGuard;

/// Bytes of a page.
#[inline]
pub fn page_size() -> u64 {
    system::pages::page_size()
}

/// New memory of zeros, at the wished address if that is free; none if the system has no room. It takes no room until
/// it is used.
pub fn map(address: u64, bytes: usize) -> Option<u64> {
    system::pages::map(address, bytes)
}

/// Gives mapped memory back.
///
/// # Safety
///
/// The memory at the addresses must not be used any more, and must be of mappings of the caller's own.
pub unsafe fn unmap(address: u64, bytes: usize) -> bool {
    // SAFETY: the same contract.
    unsafe { system::pages::unmap(address, bytes) }
}

/// Gives mapped memory back, and keeps its addresses: nothing else is mapped there, and nothing can be read or written.
///
/// # Safety
///
/// As for [`unmap`].
pub unsafe fn unmap_and_reserve(address: u64, bytes: usize) -> bool {
    // SAFETY: the same contract.
    unsafe { system::pages::unmap_and_reserve(address, bytes) }
}

/// Returns memory to the system that opening large libraries has left: unchanged parts of their files, and free memory
/// of the C library, which keeps large pieces from now on.
pub fn trim_memory() {
    system::memory_trim::trim_memory();
}

/// From now on, returns free memory to the system at once.
pub fn trim_free_memory() {
    system::memory_trim::trim_free_memory();
}
