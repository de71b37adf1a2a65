//! Changes that would make a hazard safe, and synchronization that nobody needs.

pub(crate) mod apply;
pub(crate) mod candidates;
pub(crate) mod change;
pub(crate) mod describe;
#[cfg(test)]
pub(crate) mod mutation;
pub(crate) mod proposal;
pub(crate) mod redundant_sync;
