//! Where resources lie: addresses, texels, aliases and sparse bindings.

pub(crate) mod addresses;
pub(crate) mod aliases;
pub(crate) mod allocations;
pub(crate) mod sparse;
pub(crate) mod texels;
