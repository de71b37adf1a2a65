//! What orders accesses: scopes, clocks, subpass intervals and events.

pub(crate) mod batch_clock;
pub(crate) mod clocks;
pub(crate) mod event_races;
pub(crate) mod expanded;
pub mod scopes;
pub(crate) mod subpass_intervals;
pub(crate) mod tag_rows;
