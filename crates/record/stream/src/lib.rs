//! Per-thread streams of records in memory, and the order between them.
//!
//! Each thread of the application appends its records to a stream of its own, without locks. What must come before a
//! record on *other* threads is written behind it as *order edges*: a thread and the number of a call of that thread
//! which must be complete first. Three things make order edges:
//!
//! - **Object order.** An object remembers the last call that had it as an externally synchronized parameter, and a
//!   call that uses the object comes after that one ([`ObjectTable`]). Which parameters these are is data of the
//!   registry. A command buffer shares the edge of its pool, because the specification synchronizes the two together.
//!   A call that has an object to itself also comes after those that only read it ([`ObjectReaders`]).
//! - **Local barriers.** A call that destroys or resets an object, or that lets the device continue, comes after
//!   everything that other threads have completed by then ([`StreamThread::order_after_completed`]).
//! - **Push barriers.** After a call in which the host learned how far the device is, every other thread makes such a
//!   barrier before its next record ([`StreamThreads::push_barrier`]).
//!
//! Positions count completed calls, so a blocked call of another thread delays nobody. An edge is stored after the
//! record that it names was appended, so a reader never waits for a record that is missing. An edge that follows from
//! an earlier one of the same thread is omitted, so the records of a program with one thread have none. A new thread
//! takes over the stream, number and all, of a thread that has ended: a program with a thread for each job needs few
//! streams.
//!
//! [`Merger`] reads all streams and gives their records in an order that respects every edge.

/// The atomics of `chunk_link` and `thread_progress`; the model replaces them.
mod atomics {
    #[cfg(lavascope_sanitize)]
    pub(crate) use super::visible::OnceLock;
    #[cfg(not(lavascope_sanitize))]
    pub(crate) use std::sync::OnceLock;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
}
mod chunk_link;
mod chunk_queue;
mod chunk_storage;
#[cfg(test)]
mod loom_model;
mod merge;
mod object_table;
mod thread;
mod thread_progress;
mod time;
#[cfg(lavascope_sanitize)]
mod visible;

pub use chunk_queue::{Consumer, Producer, StreamControl, WORDS_PER_CHUNK, chunk_queue};
pub use chunk_storage::{ChunkSpace, ChunkStorage};
pub use merge::{Merger, OrderedRecord};
pub use object_table::{ObjectParent, ObjectReaders, ObjectSlot, ObjectTable, SyncDomain};
pub use thread::{BesideCalls, StreamThread, StreamThreads, ThreadShared};
pub use time::{TIME_MASK, ticks, ticks_per_second};
