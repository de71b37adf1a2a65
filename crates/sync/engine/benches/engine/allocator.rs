//! Counts the memory that is in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

pub(crate) struct CountingAllocator;

thread_local! {
    /// By thread: counting for all of them together costs as much as allocating does.
    static USED: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has in use, as they were asked for.
pub(crate) fn used() -> isize {
    USED.get()
}

// SAFETY: the memory is that of `System`, which keeps the contract of `GlobalAlloc`; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED.set(USED.get() + layout.size() as isize);
        // SAFETY: `layout` has a size that is not zero, by the contract of `alloc`, and `System` asks for no more.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.set(USED.get() - layout.size() as isize);
        // SAFETY: by the contract of `dealloc`, `alloc` gave `at` for this layout, and that was `System`.
        unsafe { System.dealloc(at, layout) }
    }
}
