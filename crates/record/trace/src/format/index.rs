//! The index of a file: written at its end, or rebuilt by a scan if it is missing.

use lavascope_abi::Command;

use crate::format::block::{BLOCK_MAX, BlockKind};
use crate::format::byte_reader::{ByteReader, FormatError, put_varint};

/// Where a block stands in the file, and what it contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    pub(crate) at: u64,
    pub(crate) kind: BlockKind,
    pub(crate) stream: u32,
    pub(crate) word_offset: u64,
    pub(crate) words: u32,
    pub(crate) call: u64,
    pub(crate) time: u64,
    pub(crate) count: u32,
}

/// A frame or submission to which a reader may seek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeekPoint {
    pub kind: SeekPointKind,
    pub stream: u32,
    /// The call that ends the frame, or submits.
    pub call: u64,
    pub time: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SeekPointKind {
    Frame = 1,
    Submit = 2,
}

impl SeekPointKind {
    /// The kind of seek point that a command makes, if any.
    pub fn of(command: Command) -> Option<SeekPointKind> {
        match command {
            Command::QueuePresentKHR => Some(SeekPointKind::Frame),
            Command::QueueSubmit | Command::QueueSubmit2 | Command::QueueBindSparse => Some(SeekPointKind::Submit),
            _ => None,
        }
    }
}

/// Number of entries in one block of an index.
const ENTRIES_MAX: usize = 8192;
/// Largest and smallest size of an entry in bytes.
const ENTRY_MAX: usize = 64;
const _: () = assert!(ENTRIES_MAX * ENTRY_MAX <= BLOCK_MAX);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) entries: Vec<BlockEntry>,
    pub(crate) seek_points: Vec<SeekPoint>,
}

impl Index {
    /// The contents of the blocks of the index, for a file of this version.
    pub(crate) fn encode(&self, version: u32) -> Vec<Vec<u8>> {
        let (mut entries, mut moments) = (self.entries.chunks(ENTRIES_MAX), self.seek_points.chunks(ENTRIES_MAX));
        let mut all = Vec::new();
        loop {
            match (entries.next(), moments.next()) {
                (None, None) if !all.is_empty() => return all,
                (entries, moments) => {
                    all.push(encode(entries.unwrap_or_default(), moments.unwrap_or_default(), version))
                }
            }
        }
    }

    /// Adds the entries of a block of the index, in a file of this version.
    pub(crate) fn add(&mut self, block: &[u8], version: u32) -> Result<(), FormatError> {
        let mut from = ByteReader::new(block);
        for _ in 0..from.count(ENTRIES_MAX)? {
            self.entries.push(decode_entry(&mut from)?);
        }
        let (mut last_call, mut last_time) = (0, 0);
        for _ in 0..from.count(ENTRIES_MAX)? {
            let kind = match from.u8()? {
                1 => SeekPointKind::Frame,
                2 => SeekPointKind::Submit,
                _ => return from.error("a moment of no known kind"),
            };
            let (stream, mut call, mut time) = (from.count(u32::MAX as usize)? as u32, from.varint()?, from.varint()?);
            if version > 1 {
                (call, time) = (unfold(call).wrapping_add(last_call), unfold(time).wrapping_add(last_time));
                (last_call, last_time) = (call, time);
            }
            self.seek_points.push(SeekPoint { kind, stream, call, time });
        }
        if from.is_empty() { Ok(()) } else { from.error("there is more than the index needs") }
    }
}

fn encode(entries: &[BlockEntry], moments: &[SeekPoint], version: u32) -> Vec<u8> {
    let mut to = Vec::new();
    put_varint(&mut to, entries.len() as u64);
    for entry in entries {
        to.push(entry.kind as u8);
        let numbers = [
            entry.at,
            entry.stream.into(),
            entry.word_offset,
            entry.words.into(),
            entry.call,
            entry.time,
            entry.count.into(),
        ];
        numbers.into_iter().for_each(|it| put_varint(&mut to, it));
    }
    put_varint(&mut to, moments.len() as u64);
    let (mut last_call, mut last_time) = (0, 0);
    for moment in moments {
        to.push(moment.kind as u8);
        let (mut call, mut time) = (moment.call, moment.time);
        if version > 1 {
            (call, time) = (fold(call.wrapping_sub(last_call)), fold(time.wrapping_sub(last_time)));
        }
        [moment.stream.into(), call, time].into_iter().for_each(|it| put_varint(&mut to, it));
        (last_call, last_time) = (moment.call, moment.time);
    }
    to
}

/// Maps small differences of both signs to small numbers.
fn fold(difference: u64) -> u64 {
    difference << 1 ^ ((difference as i64) >> 63) as u64
}

fn unfold(folded: u64) -> u64 {
    folded >> 1 ^ (folded & 1).wrapping_neg()
}

fn decode_entry(from: &mut ByteReader<'_>) -> Result<BlockEntry, FormatError> {
    let number = from.u8()?;
    let Some(kind) = BlockKind::from_number(number) else { return from.error("a block of no known kind") };
    let short = |from: &mut ByteReader<'_>| from.count(u32::MAX as usize).map(|it| it as u32);
    Ok(BlockEntry {
        kind,
        at: from.varint()?,
        stream: short(from)?,
        word_offset: from.varint()?,
        words: short(from)?,
        call: from.varint()?,
        time: from.varint()?,
        count: short(from)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::block::VERSION;

    #[test]
    fn a_large_index_comes_back_from_its_blocks() {
        let entry = |at: u64| BlockEntry {
            at,
            kind: BlockKind::Calls,
            stream: 3,
            word_offset: at * 2,
            words: 4,
            call: u64::MAX,
            time: at,
            count: u32::MAX,
        };
        let moment = |at: u64| {
            let call = if at.is_multiple_of(7) { u64::MAX - at } else { at };
            SeekPoint { kind: SeekPointKind::Submit, stream: 1, call, time: call.wrapping_mul(5) }
        };
        let index = Index { entries: (0..20_000).map(entry).collect(), seek_points: (0..9000).map(moment).collect() };
        for version in 1..=VERSION {
            let blocks = index.encode(version);
            assert!(blocks.len() == 3 && blocks.iter().all(|it| it.len() <= BLOCK_MAX));
            let mut again = Index::default();
            assert!(blocks.iter().all(|it| again.add(it, version).is_ok()));
            assert_eq!(again, index);
            assert_eq!(Index::default().encode(version).len(), 1);
        }
    }
}
