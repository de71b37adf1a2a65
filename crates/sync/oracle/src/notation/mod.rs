//! Programs as short text, for counterexamples and for reading a disagreement.

mod parse;
mod print;

pub use parse::{accesses, base_program, hazard_summary, parse, stages, summary, texels};
pub use print::{print, print_place};
