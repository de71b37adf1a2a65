//! Seeded random calls in C memory, for tests.
//!
//! The same seed always gives the same call. Addresses are numbers here, so nothing is unsafe; whoever follows
//! them does so while the [`CallMemory`] lives.
//!
//! [`hazard`] has random programs in the form that hazards are looked for in, and an oracle that knows theirs.

#![forbid(unsafe_code)]

mod call_memory;
mod mutate;
pub mod oracle;
mod random;
mod synthetic_objects;

pub use call_memory::{CallMemory, CallOptions, random_call_memory};
pub use mutate::mutate;
pub use random::Random;
pub use synthetic_objects::SyntheticObjects;
