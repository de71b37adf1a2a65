//! Collects records into blocks.

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_abi::{Command, bytes_of_slice};
use lavascope_record::encoding::{HEADER_SIZE, RecordHeader};
use lavascope_record::{HostWrite, RecordPhase};

use crate::format::block::BlockKind;
use crate::format::column_encoder::{ColumnEncoder, HEAD_WORDS, RecordBody, WORDS_MAX};
use crate::format::content::{ContentStore, PIECE_MAX};
use crate::format::index::{SeekPoint, SeekPointKind};

/// A larger body is stored as content, where equal bodies are stored once.
const INLINE_BODY_MAX: usize = 512;

/// A block that is not compressed yet. Any thread may pass it to [`crate::BlockWriter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawBlock {
    pub kind: BlockKind,
    pub stream: u32,
    pub(crate) word_offset: u64,
    pub(crate) words: u32,
    pub(crate) call: u64,
    pub(crate) time: u64,
    pub(crate) count: u32,
    pub(crate) contents: Vec<u8>,
}

impl RawBlock {
    pub(crate) fn new(kind: BlockKind, contents: Vec<u8>) -> RawBlock {
        RawBlock { kind, stream: 0, word_offset: 0, words: 0, call: 0, time: 0, count: 0, contents }
    }

    /// Metadata of a capture, as JSON.
    pub fn metadata(metadata: &serde_json::Value) -> RawBlock {
        RawBlock::new(BlockKind::Metadata, metadata.to_string().into_bytes())
    }
}

/// A record with its place in the stream.
#[derive(Clone)]
pub struct StreamRecord<'a> {
    pub stream: u32,
    /// The words of the stream before and after it. They may include a word with its time.
    pub span: Range<u64>,
    /// The time since the begin of the capture.
    pub time: u64,
    pub record: &'a [u64],
}

/// Collects the records of all streams.
#[derive(Default)]
pub struct TraceRecorder {
    streams: BTreeMap<u32, StreamEncoder>,
    contents: ContentStore,
    /// What the device wrote, apart: most readers do not need it.
    results: ContentStore,
    seek_points: Vec<SeekPoint>,
    /// The bits of times that are not stored.
    time_mask: u64,
}

#[derive(Default)]
struct StreamEncoder {
    columns: ColumnEncoder,
    /// The number of words before the block that is being collected, and that of the block.
    word_offset: u64,
    words: u32,
    /// Number and time of its first record.
    first: Option<(u64, u64)>,
}

impl TraceRecorder {
    /// A recorder that rounds times down to about a microsecond: the last bits of a time do not compress.
    pub fn with_rounded_times(ticks_per_second: u64) -> TraceRecorder {
        let step = (ticks_per_second / 1_000_000).max(1);
        TraceRecorder { time_mask: (1 << step.ilog2()) - 1, ..TraceRecorder::default() }
    }

    /// Adds the next record of a stream. Passes complete blocks to `give`; a block comes after those that it refers to.
    pub fn add_record(&mut self, stream_record: StreamRecord<'_>, give: &mut impl FnMut(RawBlock)) {
        let StreamRecord { stream, span, time, record } = stream_record;
        let [first, second, ..] = *record else { return };
        let time = time & !self.time_mask;
        let head = RecordHeader::from_words(first, second);
        let body = &record[HEAD_WORDS..head.body_words as usize];
        let order_edges = &record[head.body_words as usize..];
        self.add_seek_point(stream, time, head);
        let is_result = HostWrite::has_device_write(head) && !body.is_empty();
        let is_large =
            is_result || body.len() * 8 > INLINE_BODY_MAX || HEAD_WORDS + body.len() + order_edges.len() >= WORDS_MAX;
        let pieces = is_large.then(|| {
            // The bytes of a host write are hashed apart from its header, so that equal bytes at another offset are
            // stored once.
            let header_words = HostWrite::words_before_bytes(record).map_or(0, |it| it - HEAD_WORDS);
            self.store_body(body, (header_words, is_result), give)
        });
        let body = pieces.as_deref().map_or(RecordBody::Inline(body), RecordBody::External);
        let (RecordBody::Inline(row) | RecordBody::External(row)) = body;
        let own = self.streams.entry(stream).or_default();
        if !own.columns.has_room(HEAD_WORDS + row.len() + order_edges.len()) {
            flush_contents(&mut self.results, BlockKind::Results, give);
            flush_stream(stream, own, &mut self.contents, give);
        }
        if own.first.is_none() {
            (own.first, own.word_offset) = (Some((head.call, time)), span.start);
        }
        own.columns.push(time, head, body, order_edges);
        own.words = (span.end - own.word_offset) as u32;
    }

    /// Passes all collected blocks to `give`.
    pub fn flush(&mut self, give: &mut impl FnMut(RawBlock)) {
        flush_contents(&mut self.results, BlockKind::Results, give);
        for (number, stream) in &mut self.streams {
            flush_stream(*number, stream, &mut self.contents, give);
        }
        flush_contents(&mut self.contents, BlockKind::Contents, give);
    }

    /// Number of words that were collected and not passed on yet.
    pub fn buffered_words(&self) -> usize {
        self.streams.values().map(|it| it.words as usize).sum()
    }

    /// The frames and submissions so far, for the index.
    pub fn seek_points(&self) -> &[SeekPoint] {
        &self.seek_points
    }

    /// Stores a body in pieces, and returns the hash of each, as two words. The first `header_words` words are a piece of
    /// their own.
    fn store_body(
        &mut self,
        body: &[u64],
        (header_words, is_result): (usize, bool),
        give: &mut impl FnMut(RawBlock),
    ) -> Vec<u64> {
        let (store, kind) = match is_result {
            true => (&mut self.results, BlockKind::Results),
            false => (&mut self.contents, BlockKind::Contents),
        };
        let mut hashes = Vec::new();
        let (first, rest) = body.split_at(header_words);
        for piece in first.chunks(PIECE_MAX / 8).chain(rest.chunks(PIECE_MAX / 8)) {
            if store.is_full() {
                flush_contents(store, kind, give);
            }
            let hash = store.add(bytes_of_slice(piece));
            hashes.extend([hash as u64, (hash >> 64) as u64]);
        }
        hashes
    }

    fn add_seek_point(&mut self, stream: u32, time: u64, head: RecordHeader) {
        if head.kind == RecordPhase::Enter as u8
            && let Some(kind) = Command::from_number(head.command).and_then(SeekPointKind::of)
        {
            self.seek_points.push(SeekPoint { kind, stream, call: head.call, time });
        }
    }
}

fn flush_stream(number: u32, stream: &mut StreamEncoder, contents: &mut ContentStore, give: &mut impl FnMut(RawBlock)) {
    if stream.columns.is_empty() {
        return;
    }
    // The contents to which its records refer come first.
    flush_contents(contents, BlockKind::Contents, give);
    let next = ColumnEncoder::after(stream.columns.last());
    let full = std::mem::replace(&mut stream.columns, next);
    let (call, time) = stream.first.take().unwrap_or_default();
    give(RawBlock {
        kind: BlockKind::Calls,
        stream: number,
        word_offset: stream.word_offset,
        words: stream.words,
        call,
        time,
        count: full.len() as u32,
        contents: full.encode(),
    });
    stream.words = 0;
}

fn flush_contents(contents: &mut ContentStore, kind: BlockKind, give: &mut impl FnMut(RawBlock)) {
    if let Some((bytes, count)) = contents.take() {
        give(RawBlock { count, ..RawBlock::new(kind, bytes) });
    }
}

const _: () = assert!(HEADER_SIZE == HEAD_WORDS * 8);
