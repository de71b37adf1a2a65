//! How a call of the application reaches a function and gets its result.

pub(crate) mod application_memory;
pub(crate) mod command_log;
pub(crate) mod command_return;
pub(crate) mod described_outputs;
pub(crate) mod dispatchable;
pub(crate) mod object_table;
