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

mod block;
mod byte_reader;
mod column_encoder;
mod content;
mod error;
mod index;
mod merge;
mod trace;
mod recorder;
mod repair;
mod column_decoder;
mod schema;
mod source;
mod stream_reader;
mod tail;
mod block_writer;

pub use block::{BLOCK_MAX, Codec, TraceHeader, BlockKind as BlockKind, VERSION, is_trace};
pub use content::{ContentHash, PIECE_MAX};
pub use error::{Damage, TraceError};
pub use index::{SeekPoint, SeekPointKind};
pub use merge::{MergedRecord, MergedReader};
pub use trace::Trace;
pub use recorder::{RawBlock, StreamRecord, TraceRecorder};
pub use repair::{Repair, repair};
pub use source::ReadAt;
pub use stream_reader::{StreamBlock, StreamBlocks, BlockFeed, StreamReader, RecordMut};
pub use tail::{TailSlot, Tail, TailHeader};
pub use block_writer::{BlockWriter, PackedBlock, WrittenBlock};
