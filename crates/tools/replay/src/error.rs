//! An error that ends a replay before the end of the trace.

use lavascope_trace::TraceError;

/// Why a replay cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Vulkan cannot be reached here at all.
    #[error("{0}")]
    Loader(String),
    /// A call that cannot be made again.
    #[error("thread {stream}, call {call}, {command}: {what}")]
    Call { stream: u32, call: u64, command: &'static str, what: String },
    /// A record that is none.
    #[error("thread {stream}: {what}")]
    Record { stream: u32, what: String },
    /// Threads that wait for each other: who, before which call, and for whom.
    #[error("the order of the trace has a circle: {0}")]
    OrderCycle(String),
    /// The device or a thread does not get on: who waits for what.
    #[error("nothing has happened for {seconds} seconds: {what}")]
    Stuck { seconds: u64, what: String },
    /// The device is another one than that of the trace, so what cannot be done here is looked for first.
    #[error("this is not the device of the trace")]
    DifferentDevice,
    /// The unsupported parts of the trace, one in each line.
    #[error("{0}")]
    Unsupported(String),
    /// Another thread found something wrong.
    #[error("stopped")]
    Stopped,
    #[error(transparent)]
    Trace(#[from] TraceError),
}
