//! Consumers of records.

use crate::encoding::Record;

/// A consumer of calls: a file, the state tracker, a printer.
pub trait Sink {
    /// The driver is about to see this call.
    fn enter(&mut self, record: Record<'_>);

    /// The driver returned from the thread's last entered call.
    fn leave(&mut self, record: Record<'_>);
}

/// Feeds two sinks, the first before the second.
pub struct Tee<A, B>(pub A, pub B);

impl<A: Sink, B: Sink> Sink for Tee<A, B> {
    fn enter(&mut self, record: Record<'_>) {
        self.0.enter(record);
        self.1.enter(record);
    }

    fn leave(&mut self, record: Record<'_>) {
        self.0.leave(record);
        self.1.leave(record);
    }
}
