//! What the host wrote into mapped memory, as it stands in a stream before the call that lets the device read it.
//!
//! The image of such a record ([`beside::HOST_WRITE`]):
//!
//! ```text
//! word 0   the id of the memory
//! word 1   the byte of the memory from which the runs are counted
//! word 2   bits  0..32  how many runs
//!          bits 32..64  how many bytes all of them have
//! runs     one word each: where it begins (32 bits), how many bytes it has (32 bits); in order and apart
//! bytes    of all runs, one behind the other, and zeros up to a whole word
//! ```
//!
//! It has a position of its own in the stream, so that records of other threads can come after it.
//!
//! The field of the command is that of the call before which the write was noticed; zero in files of older versions.
//!
//! A capture of results also looks for changes after waits. In such a record the field of omissions is
//! [`FOUND_AFTER_WAIT`]: the device may have written the bytes.
//!
//! If it is [`WITHOUT_BYTES`], the record only says where the host had written before a wait for the device. The bytes come
//! with the next submission: on some devices, what the device is writing now looks the same.
//!
//! If it is [`CHANGED_BITS`], there is one run, and in the place of its bytes one bit for each: whether it was written. A
//! validation of a running program gets such records where many short runs were written.

use std::ops::Range;

use lavascope_abi::{Command, HandleType, ObjectId, bytes_of_slice};

use crate::encoding::{HEADER_SIZE, RecordHeader, beside};
use crate::host_bytes;

const HEAD_WORDS: usize = HEADER_SIZE / 8;
/// In the field of omissions: the bytes were found after a wait for the device.
pub const FOUND_AFTER_WAIT: u8 = 1;
/// In the field of omissions: the device wrote the bytes, and the host wrote none of them.
pub const DEVICE_WROTE: u8 = 2;
/// In the field of omissions: there are runs, and no bytes.
pub const WITHOUT_BYTES: u8 = 3;
/// In the field of omissions: there is a run, and one bit for each of its bytes.
pub const CHANGED_BITS: u8 = 4;
/// Words of the image before the runs.
const FIRST_RUN: usize = 3;

/// Bytes that the host wrote into one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostWrite<'a> {
    memory: ObjectId,
    found: u8,
    noticed_by: Option<Command>,
    call: u64,
    first: u64,
    runs: &'a [u64],
    bytes: &'a [u8],
}

impl<'a> HostWrite<'a> {
    /// Parses an entry; none if it is not a complete one of this kind.
    pub fn parse(record: &'a [u64]) -> Option<HostWrite<'a>> {
        let head = RecordHeader::from_words(*record.first()?, *record.get(1)?);
        if head.kind != beside::HOST_WRITE || head.size() != record.len() * 8 {
            return None;
        }
        let image = record.get(HEAD_WORDS..head.body_words as usize)?;
        let (&[memory, first, counts], rest) = image.split_first_chunk::<FIRST_RUN>()?;
        let memory = ObjectId::from_raw_typed(memory, HandleType::DeviceMemory)?;
        let (count, size) = (counts as u32 as usize, (counts >> 32) as usize);
        let (runs, bytes) = rest.split_at_checked(count)?;
        let bytes = Some(bytes_of_slice(bytes)).filter(|it| it.len() == size.next_multiple_of(8))?;
        let (bytes, padding) = bytes.split_at(size);
        let mut end = 0;
        let mut sum = 0;
        let is_sane = runs.iter().all(|run| {
            let (start, length) = (u64::from(*run as u32), *run >> 32);
            let is_next = start >= end && length > 0;
            (end, sum) = (start + length, sum + length);
            is_next
        });
        let is_full = match head.omissions {
            WITHOUT_BYTES => true,
            CHANGED_BITS => count == 1 && size as u64 == sum.div_ceil(64) * 8,
            _ => sum == size as u64,
        };
        let is_whole = is_sane && is_full && first.checked_add(end).is_some();
        let noticed_by = Command::from_number(head.command).filter(|_| head.command != 0);
        let is_right = is_whole && padding.iter().all(|it| *it == 0);
        let (found, call) = (head.omissions, head.call);
        is_right.then_some(HostWrite { memory, found, noticed_by, call, first, runs, bytes })
    }

    /// The memory that was written.
    pub fn memory(self) -> ObjectId {
        self.memory
    }

    /// Whether it was found after a wait for the device, so that the device may have written it.
    pub fn is_after_wait(self) -> bool {
        matches!(self.found, FOUND_AFTER_WAIT | DEVICE_WROTE)
    }

    /// Whether the device wrote the bytes, and the host none of them.
    pub fn is_device_write(self) -> bool {
        self.found == DEVICE_WROTE
    }

    /// The same, of a record that may lack its bytes.
    pub fn has_device_write(head: RecordHeader) -> bool {
        head.kind == beside::HOST_WRITE && head.omissions == DEVICE_WROTE
    }

    /// The command of the call before which it was noticed; none in files of older versions.
    pub fn noticed_by(self) -> Option<Command> {
        self.noticed_by
    }

    /// The number of the next call of the thread, if calls have the numbers of messages.
    pub fn next_call(self) -> u64 {
        self.call + 1
    }

    /// Number of bytes that were written.
    pub fn size(self) -> usize {
        if self.has_bytes() { self.bytes.len() } else { 0 }
    }

    /// Whether it says what was written, and not only where.
    pub fn has_bytes(self) -> bool {
        !matches!(self.found, WITHOUT_BYTES | CHANGED_BITS)
    }

    /// Where something was written: ranges in their order.
    pub fn ranges(self) -> impl Iterator<Item = Range<u64>> {
        let has_bits = self.found == CHANGED_BITS;
        let runs = if has_bits { &[] } else { self.runs };
        let start = self.hull().start;
        let bits = if has_bits { self.bytes } else { &[] };
        let words = bits.chunks_exact(8).map(|it| u64::from_le_bytes(std::array::from_fn(|at| it[at])));
        runs.iter().map(move |run| self.range_of(*run)).chain(BitRuns { start, at: 0, words })
    }

    fn range_of(self, run: u64) -> Range<u64> {
        let start = self.first + u64::from(run as u32);
        start..start + (run >> 32)
    }

    /// From the first byte that was written to the last.
    pub fn hull(self) -> Range<u64> {
        let ends = self.runs.first().zip(self.runs.last());
        ends.map_or(self.first..self.first, |(first, last)| self.range_of(*first).start..self.range_of(*last).end)
    }

    /// The written runs: offset in the memory, and bytes. None without bytes.
    pub fn runs(self) -> impl ExactSizeIterator<Item = (u64, &'a [u8])> {
        let mut bytes = self.bytes;
        let runs = if self.has_bytes() { self.runs } else { &[] };
        runs.iter().map(move |run| {
            let (own, rest) = bytes.split_at((*run >> 32) as usize);
            bytes = rest;
            (self.first + u64::from(*run as u32), own)
        })
    }

    /// Number of words before the bytes, including the header: these differ if equal bytes are written at another
    /// offset. Also for `HostBytes`.
    pub fn words_before_bytes(record: &[u64]) -> Option<usize> {
        let head = RecordHeader::from_words(*record.first()?, *record.get(1)?);
        let words = match head.kind {
            beside::HOST_WRITE => FIRST_RUN + *record.get(HEAD_WORDS + 2)? as u32 as usize,
            beside::HOST_BYTES => host_bytes::FIRST_BYTE,
            _ => return None,
        };
        Some(HEAD_WORDS + words).filter(|it| *it < head.body_words as usize)
    }
}

/// More runs than this are stored as bits.
const RUNS_MAX: usize = 8;

/// Number of runs of ones.
fn run_count(bits: &[u64]) -> usize {
    let mut last = 0;
    let begins = |word: &u64| {
        let begins = *word & !(*word << 1 | last);
        last = *word >> 63;
        begins.count_ones() as usize
    };
    bits.iter().map(begins).sum()
}

/// The runs of ones in words of bits.
struct BitRuns<I> {
    /// What the first bit stands for.
    start: u64,
    /// The number of bits before the words that are left.
    at: u64,
    words: I,
}

impl<I: Iterator<Item = u64> + Clone> Iterator for BitRuns<I> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        // The bits before `at` are known, also those of the next word.
        let mut first = None;
        loop {
            let (known, word) = (self.at % 64, self.words.clone().next());
            let Some(word) = word else { return first.map(|it| self.start + it..self.start + self.at) };
            let rest = if first.is_some() { !word } else { word } >> known;
            let skipped = u64::from(rest.trailing_zeros());
            if known + skipped >= 64 {
                self.at += 64 - known;
                self.words.next();
                continue;
            }
            self.at += skipped;
            match first {
                None => first = Some(self.at),
                Some(first) => return Some(self.start + first..self.start + self.at),
            }
        }
    }
}

/// Builds such an entry.
#[derive(Debug, Default)]
pub struct HostWriteBuilder {
    is_after_wait: bool,
    is_device_write: bool,
    omits_bytes: bool,
    has_bits: bool,
    noticed_by: Option<Command>,
    words: Vec<u64>,
    bytes: Vec<u8>,
}

impl HostWriteBuilder {
    /// Begins an entry without runs. Their offsets are relative to `first`.
    pub fn begin(&mut self, memory: ObjectId, first: u64) {
        (self.omits_bytes, self.has_bits) = (false, false);
        self.words.clear();
        self.bytes.clear();
        self.words.extend([0, 0, memory.raw(), first, 0]);
    }

    /// From now on, entries are found after a wait for the device, or are not.
    pub fn set_after_wait(&mut self, is_after_wait: bool) {
        self.is_after_wait = is_after_wait;
    }

    /// From now on, entries have what the device wrote and nothing else, or do not.
    pub fn set_device_write(&mut self, is_device_write: bool) {
        self.is_device_write = is_device_write;
    }

    /// From now on, entries are noticed before a call of this command.
    pub fn set_noticed_by(&mut self, command: Command) {
        self.noticed_by = Some(command);
    }

    /// Appends a run whose bytes nobody needs. An entry has either these or those of `add_run`.
    pub fn add_range(&mut self, start: u32, size: u32) {
        self.omits_bytes = true;
        self.words.push(u64::from(start) | u64::from(size) << 32);
    }

    /// Adds what was written as one bit for each of `size` bytes. The entry has nothing else. Bits behind the last byte are
    /// zero.
    pub fn set_bits(&mut self, size: u32, bits: &[u64]) {
        if run_count(bits) <= RUNS_MAX {
            let runs = BitRuns { start: 0, at: 0, words: bits.iter().copied() };
            return runs.for_each(|it| self.add_range(it.start as u32, (it.end - it.start) as u32));
        }
        self.has_bits = true;
        self.words.push(u64::from(size) << 32);
        self.bytes.extend(bits.iter().flat_map(|it| it.to_le_bytes()));
    }

    /// Appends a run, after those before it.
    pub fn add_run(&mut self, start: u32, bytes: &[u8]) {
        self.words.push(u64::from(start) | (bytes.len() as u64) << 32);
        self.bytes.extend_from_slice(bytes);
    }

    /// The entry with its number and its order edges.
    pub fn finish(&mut self, call: u64, order_edges: &[u64]) -> &[u64] {
        let runs = (self.words.len() - HEAD_WORDS - FIRST_RUN) as u64;
        self.words[HEAD_WORDS + 2] = runs | (self.bytes.len() as u64) << 32;
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let bytes = self.bytes.chunks_exact(8).map(|it| u64::from_le_bytes(std::array::from_fn(|at| it[at])));
        self.words.extend(bytes);
        let (body_words, edge_count) = (self.words.len() as u32, order_edges.len() as u32);
        let head = RecordHeader {
            body_words,
            command: self.noticed_by.map_or(0, |it| it as u16),
            kind: beside::HOST_WRITE,
            omissions: match (self.omits_bytes, self.is_device_write, self.is_after_wait) {
                _ if self.has_bits => CHANGED_BITS,
                (true, ..) => WITHOUT_BYTES,
                (false, true, _) => DEVICE_WROTE,
                (false, false, true) => FOUND_AFTER_WAIT,
                (false, false, false) => 0,
            },
            call,
            order_edge_count: edge_count,
        };
        self.words[..HEAD_WORDS].copy_from_slice(&head.to_words());
        self.words.extend_from_slice(order_edges);
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_test_support::TestRng;

    fn memory() -> ObjectId {
        ObjectId::new(HandleType::DeviceMemory, 4).expect("a small number")
    }

    fn record() -> Vec<u64> {
        let mut writing = HostWriteBuilder::default();
        writing.set_noticed_by(Command::WaitForFences);
        writing.begin(memory(), 0x1_0000_0000);
        writing.add_run(0, b"one");
        writing.add_run(100, b"twelve bytes");
        writing.finish(9, &[77]).to_vec()
    }

    #[test]
    fn runs_come_back_with_their_places() {
        let record = record();
        let written = HostWrite::parse(&record).expect("our own");
        assert_eq!((written.memory(), written.size()), (memory(), 15));
        assert_eq!(written.noticed_by(), Some(Command::WaitForFences));
        let runs: Vec<_> = written.runs().collect();
        assert_eq!(runs, [(0x1_0000_0000, &b"one"[..]), (0x1_0000_0064, b"twelve bytes")]);
        assert_eq!(RecordHeader::from_words(record[0], record[1]).completed_call(), Some(9));
        assert_eq!(HostWrite::words_before_bytes(&record), Some(7));
    }

    #[test]
    fn an_entry_may_have_no_bytes() {
        let mut writing = HostWriteBuilder::default();
        writing.begin(memory(), 64);
        writing.add_range(0, 4);
        writing.add_range(16, 1 << 20);
        let record = writing.finish(9, &[]).to_vec();
        let written = HostWrite::parse(&record).expect("our own");
        assert_eq!(written.ranges().collect::<Vec<_>>(), [64..68, 80..80 + (1 << 20)]);
        assert!(!written.has_bytes() && written.size() == 0 && written.runs().len() == 0);
        writing.begin(memory(), 0);
        writing.add_run(0, b"bytes");
        assert!(HostWrite::parse(writing.finish(10, &[])).is_some_and(HostWrite::has_bytes));
    }

    #[test]
    fn an_entry_may_have_a_bit_for_each_byte() {
        let (mut rng, mut has_bits) = (TestRng::new(7), false);
        for _ in 0..300 {
            let size = 1 + rng.below(300_usize);
            let density = 1 + rng.below(5);
            let mut changed: Vec<bool> = (0..size).map(|_| rng.below(density) == 0).collect();
            let (from, to) = (rng.below(size), rng.below(size));
            changed[from.min(to)..from.max(to)].fill(rng.below(2) == 0);
            changed[rng.below(size)] = true;
            let mut bits = vec![0u64; size.div_ceil(64)];
            changed.iter().enumerate().for_each(|(at, it)| bits[at / 64] |= u64::from(*it) << (at % 64));
            let mut writing = HostWriteBuilder::default();
            writing.begin(memory(), 4096);
            writing.set_bits(size as u32, &bits);
            let record = writing.finish(9, &[]).to_vec();
            let written = HostWrite::parse(&record).expect("our own");
            assert!(!written.has_bytes() && written.size() == 0 && written.runs().len() == 0);
            assert!(written.hull().start >= 4096 && written.hull().end <= 4096 + size as u64);
            let runs = (0..size).filter(|it| changed[*it] && (*it == 0 || !changed[*it - 1])).count();
            has_bits |= runs > RUNS_MAX;
            assert_eq!(RecordHeader::from_words(record[0], record[1]).omissions == CHANGED_BITS, runs > RUNS_MAX);
            let ranges: Vec<Range<u64>> = written.ranges().collect();
            assert!(ranges.windows(2).all(|it| it[0].end < it[1].start));
            let wanted: Vec<u64> = (0..size).filter(|it| changed[*it]).map(|it| 4096 + it as u64).collect();
            assert_eq!(ranges.into_iter().flatten().collect::<Vec<u64>>(), wanted);
            assert!(HostWrite::parse(&record[..record.len() - 1]).is_none());
        }
        assert!(has_bits);
    }

    #[test]
    fn what_is_wrong_is_nothing() {
        let good = record();
        let changed = |at: usize, word: u64| {
            let mut bad = good.clone();
            bad[at] = word;
            HostWrite::parse(&bad).is_some()
        };
        let buffer = ObjectId::new(HandleType::Buffer, 4).expect("a small number");
        assert!(!changed(2, buffer.raw()), "no memory");
        assert!(!changed(3, u64::MAX), "past all memory");
        assert!(!changed(4, u64::from(u32::MAX)), "more runs than words");
        assert!(!changed(4, 2 | 14 << 32), "not all bytes");
        assert!(!changed(5, 3 << 32 | 101), "behind the next run");
        assert!(!changed(8, u64::MAX), "no zeros at the end");
        for words in 0..good.len() {
            assert!(HostWrite::parse(&good[..words]).is_none());
        }
        let mut rng = TestRng::new(5);
        for _ in 0..20_000 {
            let mut bad = good.clone();
            bad[rng.below(good.len())] ^= 1 << rng.below(64);
            if let Some(host_write) = HostWrite::parse(&bad) {
                let size = host_write.runs().map(|it| it.1.len()).sum::<usize>();
                assert!(size == host_write.size() || !host_write.has_bytes());
            }
        }
    }
}
