//! The numbers of calls in messages, and those of frames and submissions in a part of a trace.
//!
//! A stream numbers its calls together with the host writes between them, because other threads can come after a host
//! write, too. These are *positions*. A user counts calls only, so every message has the *number* of a call: its
//! position minus the number of records beside calls before it. The first call of a thread has number 1.
//!
//! A trim skips such records as well. It writes down how many, so that calls keep their numbers in a part.

use std::ops::Range;

use lavascope_record::encoding::{RecordHeader, RecordPhase, beside};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::read::stream_reader::{StreamBlock, StreamBlocks};
use crate::read::tail::Tail;
use crate::read::trace::Trace;

/// The key of the metadata with the records beside calls that a trim skipped.
const SKIPPED_KEY: &str = "skipped_host_records";
/// The number of entries in one block of metadata, which is far below the size that a block may have.
const SKIPPED_MAX: usize = 8192;

/// From positions in a stream to numbers of calls, as far as the stream was read.
#[derive(Clone, Debug, Default)]
pub struct CallNumbers {
    streams: FxHashMap<u32, StreamNumbers>,
}

#[derive(Clone, Debug, Default)]
struct StreamNumbers {
    /// Positions of skipped records, in order, with the number of skipped records up to there.
    skipped: Vec<(u64, u64)>,
    /// Positions of records beside calls, in order.
    beside: Vec<u64>,
}

impl StreamNumbers {
    /// The number of records beside calls up to a position.
    fn beside_up_to(&self, position: u64) -> u64 {
        let known = self.skipped.partition_point(|it| it.0 <= position);
        let skipped = known.checked_sub(1).map_or(0, |it| self.skipped[it].1);
        let own = match self.beside.last() {
            Some(last) if *last > position => self.beside.partition_point(|it| *it <= position),
            _ => self.beside.len(),
        };
        skipped + own as u64
    }
}

impl CallNumbers {
    /// Before the first record is read.
    pub fn new(trace: &Trace<'_>) -> CallNumbers {
        let mut numbers = CallNumbers::default();
        for facts in trace.metadata() {
            for item in facts[SKIPPED_KEY].as_array().into_iter().flatten() {
                let (Some(stream), Some(position), Some(count)) =
                    (item[0].as_u64().and_then(|it| u32::try_from(it).ok()), item[1].as_u64(), item[2].as_u64())
                else {
                    continue;
                };
                numbers.streams.entry(stream).or_default().skipped.push((position, count));
            }
        }
        for stream in numbers.streams.values_mut() {
            stream.skipped.sort_unstable();
            let mut sum = 0_u64;
            for (_, count) in &mut stream.skipped {
                sum = sum.saturating_add(*count);
                *count = sum;
            }
        }
        numbers
    }

    /// The numbers of all calls of a trace. Damaged parts count as if they had calls only.
    pub fn of_all(trace: &Trace<'_>, tail: Option<&Tail>) -> CallNumbers {
        let mut numbers = CallNumbers::new(trace);
        for stream in streams(trace, tail) {
            each_header(trace, tail, stream, |head| numbers.read(stream, head));
        }
        numbers
    }

    /// Counts a record, if it stands beside calls.
    #[inline]
    pub fn read(&mut self, stream: u32, head: RecordHeader) {
        if beside::has_own_number(head.kind) {
            self.streams.entry(stream).or_default().beside.push(head.call);
        }
    }

    /// The number of the call at a position. For a record beside calls, it is the number of the call before.
    #[inline]
    pub fn number(&self, stream: u32, position: u64) -> u64 {
        self.streams.get(&stream).map_or(position, |it| position.saturating_sub(it.beside_up_to(position)))
    }

    /// Whether the record at a position is a host write, or host memory that a call reads.
    pub fn is_beside(&self, stream: u32, position: u64) -> bool {
        self.streams.get(&stream).is_some_and(|it| it.beside.binary_search(&position).is_ok())
    }

    /// The position of the call with a number, if the trace had no gaps.
    fn position(&self, stream: u32, number: u64) -> u64 {
        let mut position = number;
        loop {
            let next = number.saturating_add(self.streams.get(&stream).map_or(0, |it| it.beside_up_to(position)));
            if next <= position {
                return position;
            }
            position = next;
        }
    }
}

/// The answer to the question for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSearch {
    /// The call is at this position in its stream.
    Found(u64),
    /// The trace has no such thread.
    NoThread,
    /// The thread has other calls: the numbers of its first and its last one.
    NoCall(Option<(u64, u64)>),
}

/// Searches for a call by its number.
pub fn find_call(trace: &Trace<'_>, tail: Option<&Tail>, stream: u32, number: u64) -> CallSearch {
    if !streams(trace, tail).contains(&stream) {
        return CallSearch::NoThread;
    }
    let (mut numbers, mut positions) = (CallNumbers::new(trace), Vec::new());
    each_header(trace, tail, stream, |head| {
        numbers.read(stream, head);
        if head.kind == RecordPhase::Enter as u8 {
            positions.push(head.call);
        }
    });
    let position = numbers.position(stream, number);
    match positions.contains(&position) && numbers.number(stream, position) == number {
        true => CallSearch::Found(position),
        false => {
            let number = |it: &u64| numbers.number(stream, *it);
            CallSearch::NoCall(positions.first().map(number).zip(positions.last().map(number)))
        }
    }
}

/// The streams of a trace and of its tail.
pub fn streams(trace: &Trace<'_>, tail: Option<&Tail>) -> Vec<u32> {
    let mut streams = trace.streams();
    streams.extend(tail.into_iter().flat_map(Tail::streams));
    streams.sort_unstable();
    streams.dedup();
    streams
}

/// Passes the headers of all records of a stream, as far as they can be read.
fn each_header(trace: &Trace<'_>, tail: Option<&Tail>, stream: u32, mut act: impl FnMut(RecordHeader)) {
    let (mut blocks, mut block) = (StreamBlocks::new(trace, tail, stream), StreamBlock::default());
    loop {
        match blocks.read_next(&mut block) {
            Ok(false) => return,
            // The rest of the stream can be read.
            Err(_) => continue,
            Ok(true) => {}
        }
        loop {
            for index in 0..block.len() {
                if let Some((_, [first, second, ..])) = block.record(index) {
                    act(RecordHeader::from_words(*first, *second));
                }
            }
            if !block.decode_next() {
                break;
            }
        }
    }
}

/// Collects the records beside calls that a trim skips.
#[derive(Default)]
pub struct SkippedRecords {
    groups: Vec<(u32, u64, u64)>,
    /// By stream: the group that the next skipped record belongs to.
    open: FxHashMap<u32, usize>,
}

impl SkippedRecords {
    /// A record beside calls is skipped.
    pub fn skip(&mut self, stream: u32, position: u64) {
        match self.open.get(&stream) {
            Some(at) => self.groups[*at].2 += 1,
            None => {
                self.open.insert(stream, self.groups.len());
                self.groups.push((stream, position, 1));
            }
        }
    }

    /// A record of a stream is kept.
    pub fn keep(&mut self, stream: u32) {
        self.open.remove(&stream);
    }

    /// The metadata for the trace that is written.
    pub fn metadata(&self) -> Vec<Value> {
        self.groups.chunks(SKIPPED_MAX).map(|it| json!({ SKIPPED_KEY: it })).collect()
    }
}

/// The numbers that frames or submissions of a part have in the trace from which it was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartNumbers {
    /// The numbers of those in the part, in order.
    kept: Vec<Range<u64>>,
}

impl PartNumbers {
    /// The numbers of frames.
    pub fn of_frames(trace: &Trace<'_>) -> PartNumbers {
        PartNumbers::of(trace, "frames")
    }

    /// The numbers of submissions.
    pub fn of_submits(trace: &Trace<'_>) -> PartNumbers {
        PartNumbers::of(trace, "submits")
    }

    fn of(trace: &Trace<'_>, key: &str) -> PartNumbers {
        // A trim of a trim adds metadata that names the original numbers, too.
        let trimmed = trace.metadata().into_iter().rev().find_map(|mut it| Some(it.get_mut("trimmed")?.take()));
        let ranges = trimmed.as_ref().and_then(|it| it[key].as_array());
        let range = |it: &Value| Some(it[0].as_u64()?..it[1].as_u64()?);
        PartNumbers::from_ranges(ranges.into_iter().flatten().filter_map(range))
    }

    /// From ranges in order; those that are not are dropped.
    fn from_ranges(ranges: impl Iterator<Item = Range<u64>>) -> PartNumbers {
        let mut kept: Vec<Range<u64>> = Vec::new();
        for range in ranges.filter(|it| !it.is_empty()) {
            match kept.last_mut() {
                Some(last) if range.start < last.end => {}
                Some(last) if range.start == last.end => last.end = range.end,
                _ => kept.push(range),
            }
        }
        PartNumbers { kept }
    }

    /// From single numbers in order.
    pub fn from_numbers(numbers: impl IntoIterator<Item = u64>) -> PartNumbers {
        PartNumbers::from_ranges(numbers.into_iter().map(|it| it..it.saturating_add(1)))
    }

    /// As the metadata have it.
    pub fn to_json(&self) -> Value {
        self.kept.iter().map(|it| json!([it.start, it.end])).collect()
    }

    /// The original number of the one with this index in the part.
    pub fn original(&self, index: u64) -> u64 {
        let mut rest = index;
        for range in &self.kept {
            let size = range.end - range.start;
            if rest < size {
                return range.start + rest;
            }
            rest -= size;
        }
        self.kept.last().map_or(0, |it| it.end).saturating_add(rest)
    }

    /// How many of the part come before an original number.
    pub fn index(&self, original: u64) -> u64 {
        let mut before = 0;
        for range in &self.kept {
            if original <= range.start {
                return before;
            }
            before += range.end.min(original) - range.start;
        }
        let end = self.kept.last().map_or(0, |it| it.end);
        before.saturating_add(original.saturating_sub(end))
    }

    /// The indices of those with these original numbers.
    pub fn indices(&self, original: &Range<u64>) -> Range<u64> {
        let end = if original.end == u64::MAX { u64::MAX } else { self.index(original.end) };
        self.index(original.start)..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(skipped: &[(u64, u64)], beside: &[u64]) -> CallNumbers {
        let stream = StreamNumbers { skipped: skipped.to_vec(), beside: beside.to_vec() };
        CallNumbers { streams: FxHashMap::from_iter([(1, stream)]) }
    }

    #[test]
    fn host_writes_are_no_calls() {
        let numbers = numbers(&[], &[3, 4, 7]);
        assert_eq!([1, 2, 5, 6, 8].map(|it| numbers.number(1, it)), [1, 2, 3, 4, 5]);
        assert_eq!([1, 2, 3, 4, 5].map(|it| numbers.position(1, it)), [1, 2, 5, 6, 8]);
        assert_eq!(numbers.number(1, 4), 2, "a host write has the number of the call before");
        assert!(numbers.is_beside(1, 7) && !numbers.is_beside(1, 8));
        assert_eq!(numbers.number(2, 9), 9);
    }

    #[test]
    fn calls_keep_their_numbers_when_records_before_them_are_skipped() {
        let whole = numbers(&[], &[3, 4, 7]);
        let part = numbers(&[(3, 2)], &[7]);
        assert_eq!([2, 5, 6, 8].map(|it| part.number(1, it)), [2, 5, 6, 8].map(|it| whole.number(1, it)));
        let mut skipped = SkippedRecords::default();
        skipped.skip(1, 3);
        skipped.skip(1, 4);
        skipped.keep(1);
        skipped.skip(1, 7);
        assert_eq!(skipped.metadata(), [json!({ "skipped_host_records": [[1, 3, 2], [1, 7, 1]] })]);
    }

    #[test]
    fn frames_of_a_part_have_their_original_numbers() {
        let part = PartNumbers::from_numbers([0, 3, 4, 40, 41, 42]);
        assert_eq!(part.to_json(), json!([[0, 1], [3, 5], [40, 43]]));
        assert_eq!([0, 1, 3, 5, 6].map(|it| part.original(it)), [0, 3, 40, 42, 43]);
        assert_eq!([0, 1, 3, 40, 42, 43].map(|it| part.index(it)), [0, 1, 1, 3, 5, 6]);
        assert_eq!(part.indices(&(40..u64::MAX)), 3..u64::MAX);
        let whole = PartNumbers::from_numbers([]);
        assert_eq!((whole.original(7), whole.indices(&(2..5))), (7, 2..5));
    }
}
