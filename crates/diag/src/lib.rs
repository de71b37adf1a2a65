//! What a diagnostic is: code, severity, places, structured facts, proposed fix.
//!
//! A diagnostic is data: whoever finds something fills it in, whoever shows it decides how. [`group`] joins those with
//! the same cause and counts them, [`render_text`] is the form that is printed where nothing else is asked for.
//!
//! Absent on purpose: Vulkan, and every other rendering (see `report`).

#![forbid(unsafe_code)]

mod diagnostic;
mod group;
mod text;

pub use diagnostic::{Code, Diagnostic, Fact, Fix, Object, Place, Severity};
pub use group::group;
pub use text::render_text;
