//! Per-thread streams of records in memory, and the order between them.
//!
//! Each thread of the application appends its records to a stream of its own, without locks. What must come before a
//! record on *other* threads is written behind it as *touches*: a thread and the number of a call of that thread
//! which must be complete first. Three things make touches:
//!
//! - **Object order.** An object remembers the last call that had it as an externally synchronized parameter, and a
//!   call that uses the object comes after that one ([`ObjectTable`]).
//! - **Local barriers.** A call that ends or resets something comes after everything that other threads have
//!   completed by then ([`StreamThread::order_after_completed`]).
//! - **Push barriers.** After a wait every other thread makes such a barrier before its next call
//!   ([`StreamThreads::push_barrier`]).
//!
//! A touch that follows from an earlier one of the same thread is left out, so the records of a program with one
//! thread have none. The order is the same: a thread's own calls are in order anyway.
//!
//! [`Merger`] reads all streams and gives their records in an order that respects every touch.

/// What `link` and `thread_progress` are made of, except where they are modeled.
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
pub use object_table::{ObjectParent, ObjectSlot, ObjectTable, SyncDomain};
pub use thread::{StreamThread, StreamThreads, ThreadShared};
pub use time::{TIME_MASK, ticks, ticks_per_second};
