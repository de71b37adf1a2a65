//! Counts the memory that is in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

pub(crate) struct Counting;

thread_local! {
    /// By thread: counting for all of them together costs as much as allocating does.
    static USED: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has in use, as they were asked for.
pub(crate) fn used() -> isize {
    USED.get()
}

// SAFETY: everything is passed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED.set(USED.get() + layout.size() as isize);
        // SAFETY: the caller keeps the rules of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.set(USED.get() - layout.size() as isize);
        // SAFETY: the caller keeps the rules of `dealloc`, and `at` came from the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }
}
