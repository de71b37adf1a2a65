//! Errors in traces, with their positions.

use crate::read::call_numbers::CallNumbers;

/// Why a file, or a part of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    #[error("this is no trace of Lavascope: it does not begin like one")]
    NoTrace,
    #[error("the file ends inside its header")]
    NoHeader,
    #[error("the header is damaged; everything behind it may still be whole")]
    BadHeader,
    #[error("a trace of format {0}, and this version reads up to {supported}; use a newer one", supported = crate::VERSION)]
    TooNew(u32),
    #[error("block at byte {at}: {what}")]
    Block { at: u64, what: &'static str },
    #[error("block at byte {at}, byte {inside} of its contents: {what}")]
    Contents { at: u64, inside: u64, what: &'static str },
    #[error("stream {stream}, call {call}: its contents ({hash:032x}) are not in the file")]
    MissingContent { stream: u32, call: u64, hash: u128 },
    #[error("the calls of streams wait for each other: stream {stream} stops before call {call}")]
    Order { stream: u32, call: u64 },
}

impl TraceError {
    /// With the number of a call in place of its position.
    pub fn with_numbers(self, numbers: &CallNumbers) -> TraceError {
        match self {
            TraceError::MissingContent { stream, call, hash } => {
                TraceError::MissingContent { stream, call: numbers.number(stream, call), hash }
            }
            TraceError::Order { stream, call } => TraceError::Order { stream, call: numbers.number(stream, call) },
            other => other,
        }
    }
}

/// Damage and its extent. The rest of the file was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {what}")]
pub struct Damage {
    pub at: u64,
    /// Number of bytes that are lost or were skipped.
    pub size: u64,
    pub what: String,
}
