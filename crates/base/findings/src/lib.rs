//! What a finding is to those who read reports: people in a terminal, editors, and services of continuous integration.
//!
//! The layer and `lavascope check` make a [`Finding`] out of each diagnostic. The command line merges those of all
//! processes, finds the source lines, and renders them as a [`FindingsReport`] in one or more [`ReportFormat`]s.
//!
//! Absent on purpose: files, terminals and the environment. Whoever calls has read the source lines, and knows the width.

#![forbid(unsafe_code)]

mod baseline;
mod coverage;
mod formats;
mod from_diagnostic;
mod merge;
mod model;
mod report;
mod shader_fault;
mod words;

pub use baseline::{Baseline, BaselineChange, BaselineEntry, BaselineError, Date, is_old_baseline};
pub use coverage::{CheckState, CheckedCount, Coverage, CoverageShortfall, UncheckedCount};
pub use formats::{Coloring, Detail, ReportFormat, TextOptions, render};
pub use merge::MORE_SITES_MAX;
pub use model::{
    Finding, FindingAccess, FindingFix, FindingObject, FindingOperation, FindingProperty, FindingSeverity, FindingSite,
    FixChange, FixEdit, FrameSpan, NeighborCommands, SourceLocation, Stack, StackFrame,
};
pub use report::{CodeDescription, FINDINGS_FORMAT, FINDINGS_VERSION, FindingsReport, ReportNotice};
pub use words::{simple_function_name, wrapped_line};
