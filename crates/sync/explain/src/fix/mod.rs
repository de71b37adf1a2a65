//! Proposes changes that remove a hazard, and finds synchronization that is not needed.

pub(crate) mod apply;
pub(crate) mod candidates;
pub(crate) mod change;
pub(crate) mod describe;
pub(crate) mod endless_wait;
#[cfg(test)]
pub(crate) mod mutation;
pub(crate) mod proposal;
pub(crate) mod redundant_sync;
pub(crate) mod sync_version;
