//! Counts the memory that is in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

pub(crate) struct Counting;

static USED: AtomicIsize = AtomicIsize::new(0);

/// Bytes in use, as they were asked for.
pub(crate) fn used() -> isize {
    USED.load(Ordering::Relaxed)
}

// SAFETY: everything is passed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the rules of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the rules of `dealloc`, and `at` came from the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }
}
