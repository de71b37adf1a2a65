//! An error that ends a replay before the end of the trace.

use std::fmt;

use lavascope_trace::{CallNumbers, TraceError};

/// Why a replay cannot continue.
#[derive(Clone, Debug, thiserror::Error)]
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
    OrderCycle(ThreadWaits),
    /// The device or a thread does not get on: who waits for what.
    #[error("nothing has happened for {seconds} seconds: {what}")]
    Stuck { seconds: u64, what: ThreadWaits },
    /// The call to pause at does not exist.
    #[error("{0}")]
    NoCall(String),
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

impl ReplayError {
    /// With the numbers of calls in place of their positions.
    pub(crate) fn with_numbers(self, numbers: &CallNumbers) -> ReplayError {
        match self {
            ReplayError::Call { stream, call, command, what } => {
                ReplayError::Call { stream, call: numbers.number(stream, call), command, what }
            }
            ReplayError::OrderCycle(waits) => ReplayError::OrderCycle(waits.with_numbers(numbers)),
            ReplayError::Stuck { seconds, what } => ReplayError::Stuck { seconds, what: what.with_numbers(numbers) },
            ReplayError::Trace(error) => ReplayError::Trace(error.with_numbers(numbers)),
            other => other,
        }
    }
}

/// What threads wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadWaits(pub(crate) Vec<ThreadWait>);

/// What one thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ThreadWait {
    /// A call of another thread.
    Call { stream: u32, call: u64, other: u32, until: u64 },
    /// Something that the device or the driver does.
    Device { stream: u32, call: u64, command: &'static str, what: &'static str },
    /// The work that is left when all threads have ended.
    End,
}

impl ThreadWaits {
    fn with_numbers(self, numbers: &CallNumbers) -> ThreadWaits {
        let one = |wait| match wait {
            ThreadWait::Call { stream, call, other, until } => ThreadWait::Call {
                stream,
                call: numbers.number(stream, call),
                other,
                until: numbers.number(other, until),
            },
            ThreadWait::Device { stream, call, command, what } => {
                ThreadWait::Device { stream, call: numbers.number(stream, call), command, what }
            }
            ThreadWait::End => ThreadWait::End,
        };
        ThreadWaits(self.0.into_iter().map(one).collect())
    }
}

impl fmt::Display for ThreadWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, wait) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            match wait {
                ThreadWait::Call { stream, call, other, until } => {
                    write!(f, "call {call} of thread {stream} waits for call {until} of thread {other}")
                }
                ThreadWait::Device { stream, call, command, what } => {
                    write!(f, "call {call} of thread {stream}, {command}, waits for {what}")
                }
                ThreadWait::End => f.write_str("the device does not come to an end with what was submitted last"),
            }?;
        }
        Ok(())
    }
}
