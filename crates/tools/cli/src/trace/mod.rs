//! Reads traces for the commands.

pub(crate) mod enabled_features;
pub(crate) mod record_reader;
pub(crate) mod trace_file;
