//! How one recorded call is performed.

pub(crate) mod chain;
pub(crate) mod functions;
pub(crate) mod handlers;
pub(crate) mod held_submissions;
pub(crate) mod host_waits;
pub(crate) mod in_place_call;
pub(crate) mod object_labels;
pub(crate) mod objects;
pub(crate) mod output_handles;
pub(crate) mod perform;
pub(crate) mod trampolines;
