//! Finds synchronization hazards in an event stream and explains them.
//!
//! The engine ([`Engine`], or [`check`] for a whole program) executes what queues execute, in their order. Every range of memory
//! remembers its last write and the reads since (`state`); what is ordered before a point of a queue is in that
//! queue's clock (`clock`), whatever the number of ranges, so that a barrier costs the same in a large program as in
//! a small one. `overlay` has what barriers on single resources did, `render` what subpasses may and may not rely on.

#![forbid(unsafe_code)]

mod action;
mod address;
mod alias;
mod batches;
#[cfg(test)]
mod bounded;
mod check;
mod clock;
mod contents;
mod device;
#[cfg(test)]
mod dice;
mod execute;
mod fresh;
mod host;
mod late;
mod mark;
mod memories;
pub mod order;
mod overlay;
mod places;
mod plan;
mod prepare;
mod races;
mod record;
mod render;
mod row;
mod rules;
pub mod scope;
mod sparse;
mod spot;
mod state;
mod stretch;
mod texels;
pub mod usage;

pub use address::{AddressMap, ResourceIdentity};
pub use check::{Engine, check, check_all, check_with};
pub use clock::KeySet;
pub use memories::UnplacedReason;
pub use prepare::PreparedCommandBuffer;
pub use races::{IndexedCommands, EventRace, EventRaces, EventRaceKind, event_races, uses_events};
pub use rules::Rules;
