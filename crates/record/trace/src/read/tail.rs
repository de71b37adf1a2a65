//! The tail of a capture: records that were not written yet, in the streams' own memory, which is a file beside the
//! trace.
//!
//! The file is mapped and shared, so it keeps the records even if the process is killed. It has a header and slots of
//! equal size. A chunk of a stream takes one slot, or several in a row: a header of four words, and the words of the
//! stream. The recording thread writes words first, and their number afterwards.

use lavascope_record::encoding::{RecordHeader, beside};
use rustc_hash::FxHashMap;

use crate::error::Damage;
use crate::format::block::HEADER_SIZE;
use crate::format::column_decoder::{DecodedRecords, RecordSpan};
use crate::format::column_encoder::HEAD_WORDS;

/// The bits of a word that hold a time.
const TIME_MASK: u64 = (1 << 48) - 1;

const MAGIC: [u8; 8] = *b"\x89LAVT\r\n\x1a";

/// The header of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailHeader {
    /// The id of the trace.
    pub id: u128,
    /// Number of words of a slot, including its header.
    pub slot_words: u32,
    /// The clock at the begin of the capture. Times in the tail count from the clock's own begin.
    pub began: u64,
}

impl TailHeader {
    /// Size of the file header in bytes.
    pub const SIZE: usize = HEADER_SIZE;

    pub fn to_bytes(self) -> [u8; HEADER_SIZE] {
        let mut all = [0; HEADER_SIZE];
        all[..8].copy_from_slice(&MAGIC);
        all[8..12].copy_from_slice(&crate::VERSION.to_le_bytes());
        all[12..16].copy_from_slice(&self.slot_words.to_le_bytes());
        all[16..32].copy_from_slice(&self.id.to_le_bytes());
        all[32..40].copy_from_slice(&self.began.to_le_bytes());
        all
    }

    fn read(file: &[u8]) -> Option<TailHeader> {
        let all = file.get(..HEADER_SIZE).filter(|it| it.starts_with(&MAGIC))?;
        let slot_words = u32::from_le_bytes(std::array::from_fn(|it| all[12 + it]));
        let id = u128::from_le_bytes(std::array::from_fn(|it| all[16 + it]));
        let began = u64::from_le_bytes(std::array::from_fn(|it| all[32 + it]));
        (slot_words as usize > TailSlot::HEAD_WORDS).then_some(TailHeader { id, slot_words, began })
    }
}

/// The header of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailSlot {
    /// Zero if the slot is free.
    pub stream: u32,
    /// Position of its first word in the stream.
    pub word_offset: u64,
    /// Number of complete words.
    pub committed: u64,
    /// Capacity in words.
    pub size: u64,
}

impl TailSlot {
    pub const HEAD_WORDS: usize = 4;
    /// The index of the header word with the number of complete words.
    pub const COMMITTED: usize = 2;

    pub fn to_words(self) -> [u64; TailSlot::HEAD_WORDS] {
        [u64::from(self.stream), self.word_offset, self.committed, self.size]
    }

    fn from_words(words: &[u64]) -> Option<TailSlot> {
        let [stream, word_offset, committed, size] = *words.first_chunk()?;
        Some(TailSlot { stream: u32::try_from(stream).ok()?, word_offset, committed, size })
    }
}

/// The tails of all streams.
pub struct Tail {
    header: TailHeader,
    /// By stream: runs of words, each with its offset in words.
    runs: FxHashMap<u32, Vec<(u64, Vec<u64>)>>,
}

impl Tail {
    /// Reads the file beside a trace; none if it is not a tail.
    pub fn read(file: &[u8]) -> Option<Tail> {
        let header = TailHeader::read(file)?;
        let words: Vec<u64> = file[HEADER_SIZE..]
            .chunks_exact(8)
            .map(|it| u64::from_le_bytes(std::array::from_fn(|at| it[at])))
            .collect();
        let mut runs: FxHashMap<u32, Vec<(u64, Vec<u64>)>> = FxHashMap::default();
        let mut at = 0;
        while let Some(slot) = words.get(at..).and_then(TailSlot::from_words) {
            let own = &words[at + TailSlot::HEAD_WORDS..];
            let is_sane = slot.committed <= slot.size && slot.size <= own.len() as u64 && slot.size > 0;
            if is_sane && slot.stream != 0 {
                runs.entry(slot.stream).or_default().push((slot.word_offset, own[..slot.committed as usize].to_vec()));
            }
            let taken = if is_sane { TailSlot::HEAD_WORDS + slot.size as usize } else { 1 };
            at += taken.next_multiple_of(header.slot_words as usize);
        }
        runs.values_mut().for_each(|it| it.sort_by_key(|it| it.0));
        Some(Tail { header, runs })
    }

    pub fn header(&self) -> TailHeader {
        self.header
    }

    /// The streams that have words in it.
    pub fn streams(&self) -> Vec<u32> {
        self.runs.keys().copied().collect()
    }

    /// The records of a stream from an offset in words on.
    pub(crate) fn records(&self, stream: u32, word_offset: u64, damages: &mut Vec<Damage>) -> DecodedRecords {
        let mut all = DecodedRecords::default();
        let mut next = word_offset;
        for (first, words) in self.runs.get(&stream).into_iter().flatten() {
            let end = first.saturating_add(words.len() as u64);
            if end <= next {
                continue;
            }
            if *first > next {
                damages.push(lost(stream, next, first - next));
                next = *first;
            }
            let used = split(&words[(next - first) as usize..], self.header.began, &mut all);
            next += used as u64;
            if next < end {
                damages.push(lost(stream, next, end - next));
                next = end;
            }
        }
        all
    }
}

fn lost(stream: u32, word_offset: u64, words: u64) -> Damage {
    let what = format!("stream {stream}: {words} words from word {word_offset} on are no records");
    Damage { at: 0, size: words.saturating_mul(8), what }
}

/// Splits words into records. Returns the number of used words.
fn split(words: &[u64], began: u64, all: &mut DecodedRecords) -> usize {
    let mut at = 0;
    while let Some((time, size)) = record(&words[at..]) {
        let first = all.words.len() as u32;
        all.words.extend(&words[at + 1..at + 1 + size]);
        let (end, time) = (all.words.len() as u32, time.wrapping_sub(began) & TIME_MASK);
        let head = RecordHeader::from_words(words[at + 1], words[at + 2]);
        let (completes, is_free) = (head.completed_call().is_some(), head.order_edge_count == 0);
        all.spans.push(RecordSpan { first, end, time, is_external: false, completes, is_independent: is_free });
        at += 1 + size;
    }
    at
}

/// The time of a record and its number of words, without the word for the time.
fn record(words: &[u64]) -> Option<(u64, usize)> {
    let time = *words.first().filter(|it| (**it >> 48) as u8 == beside::TIME)?;
    let head = RecordHeader::from_words(*words.get(1)?, *words.get(2)?);
    let size = head.size() / 8;
    let is_whole = head.body_words as usize >= HEAD_WORDS && size < words.len();
    is_whole.then_some((time & TIME_MASK, size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_test_support::TestRng;

    fn head(call: u64, body: usize) -> Vec<u64> {
        let body_words = (HEAD_WORDS + body) as u32;
        let mut words = RecordHeader { body_words, command: 3, kind: 0, omissions: 0, call, order_edge_count: 0 }
            .to_words()
            .to_vec();
        words.extend((0..body as u64).map(|it| it + call));
        words
    }

    fn timed(time: u64, record: &[u64]) -> Vec<u64> {
        [u64::from(beside::TIME) << 48 | time].into_iter().chain(record.iter().copied()).collect()
    }

    /// Slots of 32 words: one of stream 5, a free one, one of stream 5 that takes two, one of stream 6.
    fn file() -> Vec<u8> {
        let mut words = Vec::new();
        let mut slot = |stream, word_offset, size: usize, own: &[u64]| {
            let committed = own.len() as u64;
            words.extend(TailSlot { stream, word_offset, committed, size: size as u64 }.to_words());
            words.extend(own);
            words.resize(words.len() + size - own.len(), 0xdead);
        };
        let first = [timed(10, &head(1, 2)), timed(11, &head(2, 0))].concat();
        slot(5, 100, 28, &first);
        slot(0, 0, 28, &[]);
        slot(5, 100 + first.len() as u64, 60, &timed(12, &head(3, 40)));
        slot(6, 0, 28, &timed(13, &head(1, 1))[..3]);
        let bytes = words.iter().flat_map(|it| it.to_le_bytes());
        TailHeader { id: 9, slot_words: 32, began: 0 }.to_bytes().into_iter().chain(bytes).collect()
    }

    #[test]
    fn complete_records_are_found_and_the_rest_is_reported() {
        let tail = Tail::read(&file()).expect("it is one");
        assert_eq!(tail.header().id, 9);
        let mut damages = Vec::new();
        let found = tail.records(5, 100, &mut damages);
        assert_eq!(found.spans.iter().map(|it| it.time).collect::<Vec<_>>(), [10, 11, 12]);
        assert_eq!(found.words[found.spans[2].first as usize..], head(3, 40));
        assert_eq!(damages, []);
        // The first record is in the trace already.
        assert_eq!(tail.records(5, 105, &mut damages).spans.len(), 2);
        assert_eq!(damages, []);
        // The record is incomplete.
        assert_eq!(tail.records(6, 0, &mut damages).spans.len(), 0);
        assert_eq!(damages.len(), 1);
    }

    #[test]
    fn any_damage_is_survived() {
        let good = file();
        let mut rng = TestRng::new(3);
        for _ in 0..5000 {
            let mut bad = good.clone();
            bad[rng.below(good.len())] ^= 1 << rng.below(8);
            bad.truncate(1 + rng.below(good.len()));
            let Some(tail) = Tail::read(&bad) else { continue };
            for stream in tail.streams() {
                tail.records(stream, 0, &mut Vec::new());
            }
        }
    }
}
