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
mod group;
mod identity;
mod ignore;
mod text;

pub use diagnostic::{
    AccessText, CallStack, Code, CommandNeighbors, DebugLabels, Diagnostic, DiagnosticLocation, DiagnosticObject,
    DiagnosticOperation, Fix, FixChange, FixEdit, Property, Severity, TITLE_MAX, shortened,
};
pub use group::group_by_cause;
pub use identity::DiagnosticIdentity;
pub use ignore::{IgnoreRule, object_text};
pub use text::render_text;
