//! Random programs: generated, changed, made smaller.

mod coverage;
mod coverage_patterns;
mod disagreement;
mod edit;
mod generate;
mod performable;
mod share_memory;
mod shrink;
mod sparse;

pub use coverage::{FEATURES, FeatureCoverage};
pub use disagreement::{describe, find_disagreement};
pub use generate::{ProgramFeatures, random_program};
pub use lavascope_oracle::notation::{print, print_place};
pub use performable::{make_performable, make_valid};
pub use share_memory::share_memory;
pub use shrink::{clear_unused_buffers, shrink};
pub use sparse::make_sparse;

#[cfg(test)]
mod tests;
