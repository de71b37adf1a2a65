//! Random programs with known hazards: an oracle, a generator, a comparison and a shrinker.
//!
//! The oracle shares nothing with the engine that it checks but the form of programs and the tables of the registry.

mod cells;
mod census;
mod census_shapes;
mod commands;
mod compare;
mod edit;
mod faults;
mod generate;
mod machine;
mod masks;
mod oracle;
mod print;
mod rendering;
mod share;
mod shrink;
mod sparse;
mod trace;

pub use cells::{MemoryCell, cells_of};
pub use census::{FeatureCoverage, FEATURES};
pub use compare::{Disagreement, EngineUnderTest, compare, describe, find_disagreement};
pub use faults::{ContentFault, compare_faults};
pub use generate::{ProgramFeatures, random_program};
pub use oracle::{OracleRules, OracleReport, ConflictingAccess, CellHazard, find_hazards};
pub use print::{print, print_place};
pub use share::share_memory;
pub use shrink::shrink;
pub use sparse::make_sparse;

#[cfg(test)]
mod tests;
