//! Decides hazards by searching for a chain of dependencies, straight from the specification.
//!
//! The oracle shares nothing with the engine that it checks but the form of programs and the tables of the registry.
//! It is slow on purpose: [`find_hazards`] looks at every pair of accesses to a cell of memory.

#![forbid(unsafe_code)]

mod compare;
mod content_faults;
mod execute;
mod hazards;
pub mod notation;

pub use compare::{Disagreement, EngineUnderTest, compare};
pub use content_faults::{ContentFault, compare_faults};
pub use execute::cells::{MemoryCell, cells_of};
pub use execute::masks::is_write;
pub use hazards::{CellHazard, ConflictingAccess, OracleReport, OracleRules, find_hazards};

#[cfg(test)]
mod tests;
