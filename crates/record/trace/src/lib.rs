//! The trace file: streams, content blobs, memory deltas, index, recovery.
//!
//! A trace is a header and then *blocks*, each of which says what it is, how long, and has a checksum; see
//! `docs/trace-format.md`. Calls of one thread are gathered into a block as columns (`columns`), since
//! neighboring calls are alike; large things are stored once and named by their hash (`content`); an index at the end
//! makes opening fast, and is rebuilt by looking at every block when it is absent.
//!
//! [`TraceRecorder`] makes blocks out of records and [`BlockWriter`] puts them into a file; [`Trace`] reads one, treating it
//! as hostile: everything is checked, and a bad place is an error that names it, never a panic.
//!
//! Absent on purpose: files and threads. Whoever captures gives something to write to, whoever reads gives bytes, or
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
pub use read::merge::{MergedReader, MergedRecord};
pub use read::source::ReadAt;
pub use read::stream_reader::{BlockFeed, NextRecord, RecordMut, StreamBlock, StreamBlocks, StreamReader};
pub use read::tail::{Tail, TailHeader, TailSlot};
pub use read::trace::Trace;
pub use write::block_writer::{BlockWriter, CompressedBlock, WrittenBlock};
pub use write::recorder::{RawBlock, StreamRecord, TraceRecorder};
pub use write::repair::{Repair, repair};
