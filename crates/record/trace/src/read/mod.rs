//! Reads trace files, complete or not.

pub(crate) mod call_numbers;
pub(crate) mod content_reader;
pub(crate) mod merge;
pub(crate) mod source;
pub(crate) mod stream_reader;
pub(crate) mod tail;
pub(crate) mod trace;
