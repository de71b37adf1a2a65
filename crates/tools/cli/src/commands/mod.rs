//! The commands, one file each.

pub(crate) mod api;
pub(crate) mod capture;
pub(crate) mod check;
mod debugging;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod explain;
pub(crate) mod info;
pub(crate) mod instrument;
pub(crate) mod layer;
pub(crate) mod package_files;
pub(crate) mod print;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
mod setup;
pub(crate) mod trim;

/// How a command ended that did its work. One that could not returns an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    /// Exit code 0.
    Success,
    /// Exit code 1: the command works, and what it looked at does not.
    Findings,
    /// The exit code of the program that was run.
    Program(u8),
    /// Exit code 2: the command could not do all of its work, and has said why.
    Failed,
}
