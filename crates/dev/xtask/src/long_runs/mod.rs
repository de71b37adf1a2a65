//! Runs that take long: soak, fuzz, random programs, sanitizers.

pub(crate) mod fuzz;
pub(crate) mod proofs;
pub(crate) mod sanitize;
pub(crate) mod sim;
pub(crate) mod soak;
