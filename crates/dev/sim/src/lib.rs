//! Seeded random calls and programs, for tests.
//!
//! The same seed always gives the same call or program. Addresses are numbers here, so nothing is unsafe; whoever
//! follows them does so while the [`CallMemory`] lives.
//!
//! [`programs`] has random programs in the form that hazards are looked for in, and makes a program small on which an
//! engine and the oracle disagree.

#![forbid(unsafe_code)]

mod calls;
pub mod programs;

pub use calls::call_memory::{CallMemory, CallOptions, random_call_memory};
pub use calls::mutate::mutate;
pub use calls::synthetic_objects::SyntheticObjects;
