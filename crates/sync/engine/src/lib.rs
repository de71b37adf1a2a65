//! Finds synchronization hazards in an event stream and explains them.
//!
//! The engine ([`Engine`], or [`check`] for a whole program) executes commands in the order in which queues execute them.
//! Every range of memory remembers its last write and the reads since (`access::range_state`). The clock of a queue holds
//! what is ordered before a point of that queue (`dependency::clocks`). It does not depend on the number of ranges, so a
//! barrier costs the same in a large program as in a small one. Barriers on single resources are recorded with the writes
//! that they concern (`access::overlays`), and each subpass has a clock of its own (`queue::render_passes`).

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
