//! Command buffers and the commands that neither draw nor dispatch.

pub(crate) mod barrier;
pub(crate) mod bound_state;
pub(crate) mod command_buffer;
pub(crate) mod copy;
pub(crate) mod incomplete;
pub(crate) mod query;
pub(crate) mod stage_access;
pub(crate) mod undo;
