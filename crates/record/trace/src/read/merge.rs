//! All streams of a trace as one: every record after the calls that its order edges name.
//!
//! The order is always the same, so `lavascope check` gives the same bytes each time. If the reader comes to the end
//! without forcing a record, the order edges have no cycle.

use lavascope_record::encoding::{CALL_MAX, ORDER_EDGES_SHIFT, OrderEdge};
use rustc_hash::FxHashMap;

use crate::error::{Damage, TraceError};
use crate::format::column_decoder::{DecodedRecords, RecordSpan};
use crate::format::index::BlockEntry;
use crate::read::stream_reader::StreamBlock;
use crate::read::tail::Tail;
use crate::read::trace::Trace;

/// Largest memory size of decoded blocks, because a file may have very many streams. In tests, a few streams exceed it.
const HELD_MAX: usize = if cfg!(test) { 20 << 10 } else { 32 << 20 };

/// A record with its stream.
#[derive(Clone, Copy)]
pub struct MergedRecord<'a> {
    pub stream: u32,
    pub time: u64,
    pub record: &'a [u64],
}

/// Returns the records of a trace in an order in which the calls could have been made. The same file always gives the
/// same order.
pub struct MergedReader<'t, 'a> {
    trace: &'t Trace<'a>,
    streams: Vec<StreamCursor>,
    /// The index in `streams`, by stream number.
    index_by_stream: FxHashMap<u32, usize>,
    /// The index of the current stream, which continues as long as possible.
    current: usize,
    /// Memory size of the decoded blocks of all streams.
    held: usize,
    /// The last record, if its body was stored elsewhere.
    whole: Vec<u64>,
    damages: Vec<Damage>,
    /// Number of records according to the heads of the blocks, and of returned records.
    total: u64,
    given: u64,
    /// Number of records that were returned too early, because of a cycle or missing records.
    out_of_order: u64,
}

struct StreamCursor {
    stream: u32,
    blocks: std::vec::IntoIter<BlockEntry>,
    /// The block that is being read.
    entry: Option<BlockEntry>,
    /// The decoded part of it; none if it was evicted.
    block: Option<Box<StreamBlock>>,
    /// Its memory size.
    held: usize,
    /// Records of the block before the decoded part, and returned records of the part.
    before: usize,
    given: usize,
    /// The records after the last block.
    tail: Option<DecodedRecords>,
    /// The last call that is complete in the returned records.
    completed: u64,
}

impl<'t, 'a> MergedReader<'t, 'a> {
    pub fn new(trace: &'t Trace<'a>, tail: Option<&Tail>) -> MergedReader<'t, 'a> {
        let mut numbers = trace.streams();
        let tail = tail.filter(|it| it.header().id == trace.header().id);
        numbers.extend(tail.iter().flat_map(|it| it.streams()));
        numbers.sort_unstable();
        numbers.dedup();
        let mut damages = Vec::new();
        let cursor = |stream: &u32| StreamCursor {
            stream: *stream,
            blocks: trace.blocks_of(*stream).into_iter(),
            entry: None,
            block: None,
            held: 0,
            before: 0,
            given: 0,
            tail: tail.map(|it| it.records(*stream, trace.stored_words(*stream), &mut damages)),
            completed: 0,
        };
        let streams: Vec<StreamCursor> = numbers.iter().map(cursor).collect();
        let total = streams.iter().map(StreamCursor::records_left).fold(0, u64::saturating_add);
        let places = numbers.iter().enumerate().map(|it| (*it.1, it.0)).collect();
        MergedReader {
            trace,
            streams,
            index_by_stream: places,
            current: 0,
            held: 0,
            whole: Vec::new(),
            damages,
            total,
            given: 0,
            out_of_order: 0,
        }
    }

    /// Number of records that were returned before a record that they must follow.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Number of returned records, and of all records as far as known.
    pub fn progress(&self) -> (u64, u64) {
        (self.given, self.total.max(self.given))
    }

    /// The damage in the blocks that were read so far.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// The next record.
    #[inline]
    pub fn take_next(&mut self) -> Result<Option<MergedRecord<'_>>, TraceError> {
        // Most records directly follow the one before in their stream.
        if !self.streams.get(self.current).is_some_and(StreamCursor::is_independent) {
            let Some(index) = self.next_stream() else { return Ok(None) };
            self.current = index;
        }
        let cursor = &mut self.streams[self.current];
        let Some((place, words)) = cursor.block.as_ref().and_then(|it| it.record(cursor.given)) else {
            return Ok(None);
        };
        cursor.given += 1;
        self.given += 1;
        if place.completes {
            // A call inside another call is complete before the outer one.
            cursor.completed = cursor.completed.max(words[1] & CALL_MAX);
        }
        let (stream, time) = (cursor.stream, place.time);
        if place.is_external || self.trace.needs_renumbering() {
            self.trace.resolve_record(stream, words, place.is_external, &mut self.whole)?;
            return Ok(Some(MergedRecord { stream, time, record: &self.whole }));
        }
        Ok(Some(MergedRecord { stream, time, record: words }))
    }

    /// The index of a stream that can continue; none at the end.
    fn next_stream(&mut self) -> Option<usize> {
        loop {
            let mut first: Option<(u64, usize)> = None;
            for step in 0..self.streams.len() {
                let index = (self.current + step) % self.streams.len();
                if !self.load(index) {
                    continue;
                }
                let (time, is_ready) = self.peek(index);
                if is_ready {
                    return Some(index);
                }
                if first.is_none_or(|it| time < it.0) {
                    first = Some((time, index));
                }
            }
            // No stream can continue: records are lost, or the file is wrong. The oldest record comes next.
            let (_, index) = first?;
            self.out_of_order += 1;
            // It may have been evicted while others were loaded.
            if self.load(index) {
                return Some(index);
            }
        }
    }

    /// The time of the next record of a stream, and whether it may come now.
    fn peek(&self, index: usize) -> (u64, bool) {
        let Some((place, words)) = self.streams[index].peek() else { return (u64::MAX, false) };
        let edge_count = (words[1] >> ORDER_EDGES_SHIFT) as usize;
        let is_done = |value: &u64| {
            let edge = OrderEdge::from_word(*value);
            let other = self.index_by_stream.get(&edge.thread).map(|it| &self.streams[*it]);
            // A record that is not in the file is not waited for.
            other.is_none_or(|it| it.completed >= edge.call || it.is_at_end())
        };
        (place.time, words[words.len() - edge_count..].iter().all(is_done))
    }

    /// Loads the next record of a stream. False at its end.
    fn load(&mut self, index: usize) -> bool {
        loop {
            let cursor = &mut self.streams[index];
            if cursor.peek().is_some() {
                return true;
            }
            let goes_on = cursor.advance(self.trace);
            let before = std::mem::replace(&mut cursor.held, cursor.block.as_ref().map_or(0, |it| it.size()));
            self.held = self.held - before + cursor.held;
            match goes_on {
                Ok(true) => self.evict_blocks(index),
                Ok(false) => return false,
                // The other streams continue without it.
                Err(error) => {
                    let (at, size) = (cursor.entry.take().map_or(0, |it| it.at), 0);
                    self.damages.push(Damage { at, size, what: error.to_string() });
                }
            }
        }
    }

    /// Evicts blocks of other streams if they use too much memory. They are decoded again later.
    fn evict_blocks(&mut self, keep: usize) {
        for index in 0..self.streams.len() {
            if self.held <= HELD_MAX {
                return;
            }
            let cursor = &mut self.streams[index];
            if index != keep && cursor.entry.is_some() {
                cursor.block = None;
                self.held -= std::mem::take(&mut cursor.held);
            }
        }
    }
}

impl StreamCursor {
    /// The next record, if it is decoded.
    #[inline]
    fn peek(&self) -> Option<(RecordSpan, &[u64])> {
        self.block.as_ref()?.record(self.given)
    }

    /// Whether the next record is decoded, and has no order edge to another stream.
    #[inline]
    fn is_independent(&self) -> bool {
        self.block.as_ref().and_then(|it| it.record_span(self.given)).is_some_and(|it| it.is_independent)
    }

    /// Decodes the next part, which may be empty. False at the end.
    fn advance(&mut self, trace: &Trace<'_>) -> Result<bool, TraceError> {
        let is_away = self.block.is_none();
        let block = self.block.get_or_insert_default();
        if is_away && let Some(entry) = self.entry {
            // The block was evicted. Records that were returned before are skipped.
            block.open(trace, &entry)?;
            let given = self.before + self.given;
            self.before = 0;
            while block.decode_next() && self.before + block.len() <= given {
                self.before += block.len();
            }
            self.given = given - self.before;
            return Ok(true);
        }
        self.before += block.len();
        self.given = 0;
        if block.decode_next() {
            return Ok(true);
        }
        (self.entry, self.before) = (self.blocks.next(), 0);
        match (self.entry, self.tail.take()) {
            (Some(entry), tail) => {
                self.tail = tail;
                block.open(trace, &entry)?;
            }
            (None, Some(tail)) => **block = StreamBlock::of(tail),
            (None, None) => {
                self.block = None;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Number of remaining records if nothing is damaged.
    fn records_left(&self) -> u64 {
        let blocks = self.blocks.as_slice().iter().map(|it| u64::from(it.count)).sum::<u64>();
        blocks + self.tail.as_ref().map_or(0, |it| it.spans.len() as u64)
    }

    fn is_at_end(&self) -> bool {
        self.blocks.len() == 0
            && self.tail.is_none()
            && match &self.block {
                Some(block) => self.given >= block.len() && !block.has_more(),
                None => self.entry.is_none(),
            }
    }
}

#[cfg(test)]
mod tests {
    use lavascope_abi::Command;
    use lavascope_record::encoding::{RecordHeader, RecordPhase};

    use super::*;
    use crate::{BlockWriter, Codec, StreamRecord, TraceHeader, TraceRecorder, VERSION};

    const STREAMS: u32 = 5;
    const CALLS: u64 = 3000;

    /// A file with streams that alternate after a few calls, with records of different sizes. With a cycle, all of them
    /// wait for the next one, once in the middle.
    fn file(has_circle: bool) -> Vec<u8> {
        let (mut recorder, mut blocks, mut ends) = (TraceRecorder::default(), Vec::new(), [0; STREAMS as usize]);
        for call in 1..=CALLS {
            for stream in 0..STREAMS {
                let before =
                    OrderEdge { thread: (stream + STREAMS - 1) % STREAMS, call: call - u64::from(stream == 0) };
                let next = OrderEdge { thread: (stream + 1) % STREAMS, call };
                let before = if has_circle && call == CALLS / 2 { next } else { before };
                let has_edge = call % 7 == 0 || call == CALLS / 2;
                let edge_count: Vec<u64> = has_edge.then(|| before.to_word()).into_iter().collect();
                let width = 2 + (call % 5) as u32;
                let head = RecordHeader {
                    body_words: 2 + width,
                    command: Command::CmdDraw as u16,
                    kind: RecordPhase::Enter as u8,
                    omissions: 0,
                    call,
                    order_edge_count: edge_count.len() as u32,
                };
                let body = (0..u64::from(width)).map(|it| call * it);
                let record: Vec<u64> = head.to_words().into_iter().chain(body).chain(edge_count).collect();
                let end = &mut ends[stream as usize];
                let span = *end..*end + record.len() as u64 + 1;
                *end = span.end;
                recorder.add_record(StreamRecord { stream, span, time: call, record: &record }, &mut |raw_block| {
                    blocks.push(raw_block)
                });
            }
        }
        recorder.flush(&mut |raw_block| blocks.push(raw_block));
        let header = TraceHeader { version: VERSION, id: 9, began: 0, ticks_per_second: 1 };
        let mut writer = BlockWriter::new(Vec::new(), header).expect("memory takes everything");
        for block in blocks {
            writer.write(block.compress(Codec::Zstd)).expect("memory takes everything");
        }
        writer.finish(recorder.seek_points()).expect("memory takes everything")
    }

    #[test]
    fn a_stream_that_was_put_away_goes_on_where_it_was() {
        for has_circle in [false, true] {
            let file = file(has_circle);
            let trace = Trace::open(&file).expect("it is whole");
            let mut merged = MergedReader::new(&trace, None);
            let (mut last, mut times_away) = ([0; STREAMS as usize], 0);
            while let Ok(Some(merged_record)) = merged.take_next() {
                let (stream, call) = (
                    merged_record.stream as usize,
                    RecordHeader::from_words(merged_record.record[0], merged_record.record[1]).call,
                );
                last[stream] += 1;
                assert_eq!(
                    (call, merged_record.time, merged_record.record[3]),
                    (last[stream], last[stream], last[stream])
                );
                let is_away = |it: &&StreamCursor| it.block.is_none() && it.entry.is_some();
                times_away += merged.streams.iter().filter(is_away).count();
                assert!(merged.held <= HELD_MAX + merged.streams[stream].held);
            }
            assert_eq!((last, merged.damages()), ([CALLS; STREAMS as usize], &[][..]));
            assert_eq!(merged.out_of_order(), u64::from(has_circle));
            assert!(times_away > 0, "there is room for all of them");
        }
    }
}
