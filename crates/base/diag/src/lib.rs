//! What a diagnostic is: code, severity, places, structured facts, proposed fix.
//!
//! A diagnostic is data: whoever finds something fills it in, whoever shows it decides how. [`group`] joins those with
//! the same cause and counts them, [`render_text`] is the form that is printed where nothing else is asked for.
//! [`DiagnosticIdentity`] is what stays the same from run to run, and [`IgnoreRule`] a rule for those that nobody wants
//! to hear of.
//!
//! Absent on purpose: Vulkan, and every other rendering (see `report`).

#![forbid(unsafe_code)]

mod diagnostic;
mod first_access;
mod group;
mod identity;
mod ignore;
mod short_codes;
mod text;

pub use diagnostic::{
    AccessText, CallStack, Code, CommandNeighbors, DebugLabels, Diagnostic, DiagnosticLocation, DiagnosticObject,
    DiagnosticOperation, DiagnosticSite, Fix, FixChange, FixEdit, FrameRange, Property, Severity, TITLE_MAX, shortened,
};
pub use first_access::{FirstAccessKey, RecordedAccess};
pub use group::group_by_cause;
pub use identity::DiagnosticIdentity;
pub use ignore::{IgnoreRule, object_text};
pub use short_codes::short_code;
pub use text::{ordinal_word, render_text, short_names};
