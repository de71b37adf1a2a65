//! What must be settled before the allocator begins to work, which is before `main`.
//!
//! Our allocator asks for pages of two megabytes, and the system clears one when the first few bytes of it are used. A
//! process that only starts another one and waits for it would spend more time on that than on all the rest: tenths of a
//! millisecond, and tens of them where memory is in pieces. The allocator hears of it by a variable of the environment.

use std::ffi::{CStr, c_char, c_int};

/// The C library calls functions in this section with the arguments of `main`; those of lower numbers come first, and the
/// allocator's own has 101.
#[used]
#[unsafe(link_section = ".init_array.00100")]
static BEFORE_ALLOCATOR: unsafe extern "C" fn(c_int, *const *const c_char) = before_allocator;

unsafe extern "C" {
    fn setenv(name: *const c_char, value: *const c_char, replaces: c_int) -> c_int;
}

unsafe extern "C" fn before_allocator(count: c_int, arguments: *const *const c_char) {
    if count < 2 {
        return;
    }
    // SAFETY: glibc calls initializers with the arguments of `main`: there are `count` pointers, each to a text that
    // ends with a zero and lives as long as the process.
    let command = unsafe { CStr::from_ptr(arguments.add(1).read()) };
    if command == c"replay" {
        // SAFETY: initializers run before `main`, so that no other thread reads the environment yet; both texts end
        // with a zero. A value that the user set is kept.
        unsafe { setenv(c"MIMALLOC_ALLOW_THP".as_ptr(), c"0".as_ptr(), 0) };
    }
}
