//! Random calls in C memory.

pub(crate) mod call_memory;
pub(crate) mod mutate;
pub(crate) mod synthetic_objects;
