//! What a finding is to those who read reports: people in a terminal, editors, and services of continuous integration.
//!
//! The layer and `lavascope check` make a [`Finding`] out of each diagnostic. The command line merges those of all
//! processes, finds the source lines, and renders them.

#![forbid(unsafe_code)]

mod model;

pub use model::{
    Finding, FindingAccess, FindingFix, FindingObject, FindingOperation, FindingProperty, FindingSeverity, FindingSite,
    FixChange, FixEdit, FrameSpan, NeighborCommands, SourceLocation, Stack, StackFrame,
};
