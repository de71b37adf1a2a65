//! Random programs with known hazards: an oracle, a generator, a comparison and a shrinker.
//!
//! The oracle shares nothing with the engine that it checks but the form of programs and the tables of the registry.

mod cells;
mod commands;
mod machine;
mod masks;
mod oracle;
mod print;
mod rendering;
mod trace;

pub use cells::{Cell, cells_of};
pub use print::{print, print_place};
pub use oracle::{OracleRules, Outcome, Partner, Verdict, find_hazards};

#[cfg(test)]
mod tests;
