//! Turns each kind of finding into diagnostics.

pub(crate) mod certainty;
pub(crate) mod fault;
pub(crate) mod hazard;
pub(crate) mod never_executed;
pub(crate) mod operations;
pub(crate) mod over_synchronization;
pub(crate) mod race;
pub(crate) mod render_area;
