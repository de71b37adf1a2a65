//! What is done once for each recorded command buffer, before any queue executes it.

pub(crate) mod deferred_checks;
pub(crate) mod marks;
pub(crate) mod prepared;
pub(crate) mod prepared_commands;
pub(crate) mod recording;
pub(crate) mod used_blocks;
