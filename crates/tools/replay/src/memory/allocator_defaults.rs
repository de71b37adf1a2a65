//! Settings of the allocator, which must be made before it begins to work, that is before `main`.
//!
//! Our allocator asks for pages of two megabytes, and the system clears one when the first few bytes of it are used. A
//! process that only starts another one and waits for it would spend more time on that than on all the rest: tenths of a
//! millisecond, and tens of them where memory is in pieces. The allocator hears of it by a variable of the environment.

use std::ffi::CStr;

use lavascope_platform::{before_allocator, process};

before_allocator!(set_allocator_defaults);

fn set_allocator_defaults(command: &CStr) {
    if command == c"replay" {
        // SAFETY: before `main`, when no other thread exists yet. What the user says is left.
        unsafe { process::set_default_variable(c"MIMALLOC_ALLOW_THP", c"0") };
    }
}
