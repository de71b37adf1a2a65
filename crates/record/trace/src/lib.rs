//! The trace file: streams, content blobs, memory deltas, index, recovery.
//!
//! A trace is a header and then *blocks*, each of which states its kind and length and has a checksum; see
//! `docs/trace-format.md`. Calls of one thread are gathered into a block as columns (`format/column_encoder.rs`),
//! since neighboring calls are alike; large things are stored once and named by their hash (`format/content.rs`). An
//! index at the end makes opening fast. If it is absent, it is rebuilt by a scan over every block.
//!
//! [`TraceRecorder`] makes blocks out of records and [`BlockWriter`] puts them into a file. [`Trace`] reads one and
//! treats it as hostile: everything is checked, and damage is an error that names its place, never a panic.
//!
//! Absent on purpose: files and threads. The capture passes something to write to; the reader passes bytes, or
//! something that has them ([`ReadAt`]).

#![forbid(unsafe_code)]

mod error;
mod format;
mod read;
mod write;

pub use error::{Damage, TraceError};
pub use format::block::{BLOCK_MAX, BlockKind, Codec, TraceHeader, VERSION, is_trace};
pub use format::content::{ContentHash, PIECE_MAX};
pub use format::index::{SeekPoint, SeekPointKind};
pub use read::call_numbers::{CallNumbers, CallSearch, PartNumbers, SkippedRecords, find_call, streams};
pub use read::merge::{MergedReader, MergedRecord};
pub use read::source::ReadAt;
pub use read::stream_reader::{BlockFeed, NextRecord, RecordMut, StreamBlock, StreamBlocks, StreamReader};
pub use read::tail::{Tail, TailHeader, TailSlot};
pub use read::trace::Trace;
pub use write::block_writer::{BlockWriter, CompressedBlock, WrittenBlock};
pub use write::recorder::{RawBlock, StreamRecord, TraceRecorder};
pub use write::repair::{Repair, repair};
