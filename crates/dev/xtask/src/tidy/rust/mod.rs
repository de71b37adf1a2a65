//! Rules for Rust files.

pub(crate) mod generated;
pub(crate) mod names;
pub(crate) mod platform;
pub(crate) mod skipped_tests;
pub(crate) mod source;
pub(crate) mod style;
