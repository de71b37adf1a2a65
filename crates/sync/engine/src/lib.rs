//! Finds synchronization hazards in accesses and dependencies.
//!
//! The engine ([`Engine`], or [`check`] for a whole program) executes commands in the order in which queues execute
//! them. Every range of memory remembers its last write and the reads since (`access::range_state`). The clock of a
//! queue holds what is ordered before a point of that queue (`dependency::clocks`). It does not depend on the number
//! of ranges, so a barrier costs the same in a large program as in a small one. Barriers on single resources are
//! recorded with the writes that they concern (`access::overlays`), and each subpass has a clock of its own
//! (`queue::render_passes`).
//!
//! - **Execution, not summaries.** A command buffer is walked each time it is executed. A summary, as first accesses
//!   and a transfer relation, would need a second set of rules that could disagree with the first.
//! - **Looked up once.** Usages and addresses do not depend on what came before, so they are looked up when a command
//!   buffer is recorded (`command_buffer/prepared.rs`). A command that does just what the one before it did is checked
//!   once, and only the first and the last of such a run touch the ranges.
//! - **Recorded, then executed.** A hazard inside of a command buffer is found as it is recorded
//!   (`command_buffer/recording.rs`), and not reported again when it is executed.
//! - **Bounded.** Commands of one command buffer share one entry of where they are, and entries that no range
//!   remembers are dropped. So is what the host knows to be complete, where nobody can ask for it any more.
//!
//! The rules of the specification stand in the modules that implement them. Three rules that users rely on are not in
//! the specification ([`Rules`]). The crate `oracle` decides every pair of accesses by searching for a chain of
//! dependencies, and was written without knowledge of this crate; `cargo xtask sim` compares the two on random
//! programs, with these rules and without.

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

pub use check::{Engine, check, check_all, check_with};
pub use command_buffer::prepared::PreparedCommandBuffer;
pub use dependency::clocks::KeySet;
pub use dependency::event_races::{
    EventRace, EventRaceKind, EventRaces, IndexedCommands, RecordedEventRaces, event_races, uses_events,
};
pub use memory::addresses::{AddressMap, ResourceIdentity};
pub use memory::allocations::UnplacedReason;
pub use rules::Rules;
