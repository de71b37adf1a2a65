//! Writes trace files.

pub(crate) mod block_writer;
pub(crate) mod recorder;
pub(crate) mod repair;
