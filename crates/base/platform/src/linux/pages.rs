//! Mappings of memory.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// By the C library: `rustix` reads the auxiliary vector of the kernel by itself, which crashes under valgrind.
#[inline]
pub(crate) fn page_size() -> u64 {
    /// Zero before it is known. Relaxed: every thread that asks first gets the same answer.
    static PAGE_SIZE: AtomicU64 = AtomicU64::new(0);
    match PAGE_SIZE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: `sysconf` may be called at any time, and answers this question with a number above zero.
            let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
            PAGE_SIZE.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}

pub(crate) fn map(address: u64, bytes: usize) -> Option<u64> {
    let hint = ptr::without_provenance_mut(address as usize);
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
    // SAFETY: a new mapping; the address is a wish only.
    let mapped = unsafe { mmap_anonymous(hint, bytes, protection, flags) }.ok()?;
    Some(mapped.expose_provenance() as u64)
}

/// # Safety
///
/// As for [`crate::pages::unmap`].
pub(crate) unsafe fn unmap(address: u64, bytes: usize) -> bool {
    // SAFETY: nobody uses what is there, by this function's contract.
    unsafe { munmap(ptr::with_exposed_provenance_mut(address as usize), bytes) }.is_ok()
}

/// # Safety
///
/// As for [`crate::pages::unmap`].
pub(crate) unsafe fn unmap_and_reserve(address: u64, bytes: usize) -> bool {
    let place = ptr::with_exposed_provenance_mut(address as usize);
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: nobody uses what is there, by this function's contract.
    unsafe { mmap_anonymous(place, bytes, ProtFlags::empty(), flags) }.is_ok()
}
