//! Shared by tests: seeded random numbers, drivers and libraries, waiting for a condition, and the commands of pages.
//!
//! The crate depends on the standard library only, so that unit tests of every crate can use it.

#![forbid(unsafe_code)]

mod console;
mod drivers;
mod rng;
mod waiting;

pub use console::{ConsoleCommand, ConsoleOutcome, console_commands, with_outputs};
pub use drivers::{
    KHRONOS_LAYER_MISSING, find_lavapipe, find_newer_khronos_layer, lavapipe, layer_library, memory_check_library,
    newer_khronos_layer, null_driver_library, set_driver, swiftshader, write_null_driver_manifest,
};
pub use rng::{RandomBound, TestRng};
pub use waiting::{wait_for, wait_until};
