//! Finds hazards by a search for chains of dependencies, straight from the definitions of the specification.
//!
//! The oracle shares with the engine under test only the representation of programs and the tables of the registry. It
//! is deliberately simple and slow: [`find_hazards`] checks every pair of accesses to a cell.

#![forbid(unsafe_code)]

mod compare;
mod content_faults;
mod execute;
mod hazards;
pub mod notation;

pub use compare::{Disagreement, EngineUnderTest, compare, first_hazards};
pub use content_faults::{ContentFault, compare_faults};
pub use execute::cells::{MemoryCell, cells_of};
pub use execute::masks::is_write;
pub use hazards::{CellHazard, ConflictingAccess, OracleReport, OracleRules, find_hazards};

#[cfg(test)]
mod tests;
