//! Finds synchronization hazards in an event stream and explains them.
//!
//! The engine ([`Engine`], or [`check`] for a whole program) executes what queues execute, in their order. Every range of memory
//! remembers its last write and the reads since (`state`); what is ordered before a point of a queue is in that
//! queue's clock (`clock`), whatever the number of ranges, so that a barrier costs the same in a large program as in
//! a small one. `overlay` has what barriers on single resources did, `render` what subpasses may and may not rely on.

#![forbid(unsafe_code)]

pub mod access;
#[cfg(test)]
mod bounded_tests;
mod check;
mod command_buffer;
pub mod dependency;
mod memory;
mod queue;
mod rules;
#[cfg(test)]
mod test_rng;

pub use check::{Engine, check, check_all, check_with};
pub use command_buffer::prepared::PreparedCommandBuffer;
pub use dependency::clocks::KeySet;
pub use dependency::event_races::{EventRace, EventRaceKind, EventRaces, IndexedCommands, event_races, uses_events};
pub use memory::addresses::{AddressMap, ResourceIdentity};
pub use memory::allocations::UnplacedReason;
pub use rules::Rules;
