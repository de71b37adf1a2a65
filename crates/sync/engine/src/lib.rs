//! Finds synchronization hazards in an event stream and explains them.
//!
//! The engine ([`Engine`], or [`check`] for a whole program) executes what queues execute, in their order. Every range of memory
//! remembers its last write and the reads since (`state`); what is ordered before a point of a queue is in that
//! queue's clock (`clock`), whatever the number of ranges, so that a barrier costs the same in a large program as in
//! a small one. `overlay` has what barriers on single resources did, `render` what subpasses may and may not rely on.

#![forbid(unsafe_code)]

mod actions;
mod addresses;
mod aliases;
mod batch_clock;
#[cfg(test)]
mod bounded_tests;
mod check;
mod clocks;
mod contents;
mod device;
#[cfg(test)]
mod test_rng;
mod execution;
mod used_blocks;
mod host;
mod deferred_checks;
mod marks;
mod allocations;
pub mod access_order;
mod overlays;
mod tag_locations;
mod plans;
mod prepared;
mod event_races;
mod recording;
mod render_passes;
mod tag_rows;
mod rules;
pub mod scopes;
mod sparse;
mod addressed_access;
mod range_state;
mod subpass_intervals;
mod texels;
pub mod usages;

pub use addresses::{AddressMap, ResourceIdentity};
pub use check::{Engine, check, check_all, check_with};
pub use clocks::KeySet;
pub use allocations::UnplacedReason;
pub use prepared::PreparedCommandBuffer;
pub use event_races::{IndexedCommands, EventRace, EventRaces, EventRaceKind, event_races, uses_events};
pub use rules::Rules;
