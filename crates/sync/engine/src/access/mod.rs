//! What commands access, and what each range of memory remembers of it.

pub(crate) mod access_context;
pub mod access_order;
pub(crate) mod actions;
pub(crate) mod addressed_access;
pub(crate) mod contents;
pub(crate) mod markers;
pub(crate) mod overlays;
pub(crate) mod possible_reads;
pub(crate) mod range_state;
pub mod usages;
