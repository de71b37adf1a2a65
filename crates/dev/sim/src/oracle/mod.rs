//! Random programs with known hazards: an oracle, a generator, a comparison and a shrinker.
//!
//! The oracle shares nothing with the engine that it checks but the form of programs and the tables of the registry.

mod cells;
mod commands;
mod compare;
mod content_faults;
mod coverage;
mod coverage_patterns;
mod edit;
mod executor;
mod generate;
mod hazards;
mod log;
mod masks;
mod print;
mod rendering;
mod share_memory;
mod shrink;
mod sparse;

pub use cells::{MemoryCell, cells_of};
pub use compare::{Disagreement, EngineUnderTest, compare, describe, find_disagreement};
pub use content_faults::{ContentFault, compare_faults};
pub use coverage::{FEATURES, FeatureCoverage};
pub use generate::{ProgramFeatures, random_program};
pub use hazards::{CellHazard, ConflictingAccess, OracleReport, OracleRules, find_hazards};
pub use print::{print, print_place};
pub use share_memory::share_memory;
pub use shrink::shrink;
pub use sparse::make_sparse;

#[cfg(test)]
mod tests;
