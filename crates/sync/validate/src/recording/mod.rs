//! Command buffers while they are recorded, and the steps that are kept for explanations.

pub(crate) mod call_sequence;
pub(crate) mod command_buffer;
pub(crate) mod host_polls;
pub(crate) mod open_labels;
pub(crate) mod step_history;
pub(crate) mod watched;
