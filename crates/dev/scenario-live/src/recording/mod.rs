//! Records the commands.

pub(crate) mod actions;
pub(crate) mod barrier;
pub(crate) mod command_buffer;
pub(crate) mod render_pass;
