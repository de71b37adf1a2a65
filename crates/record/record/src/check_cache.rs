//! *Check* for many similar records: what the check read in the first record is compared in the others.
//!
//! Whether a record is well formed follows from its size and from the bytes that the check reads: pointers, counts,
//! selectors, types, gaps. Values are none of these. If two records of one shape agree in these bytes, both are well
//! formed or both are not. Only the handles in them are checked again, each for its type.

use std::cell::RefCell;

use lavascope_abi::{HandleType, ObjectId};

use crate::check::{CheckError, check, check_observed};
use crate::encoding::{Record, RecordHeader};
use crate::memory::{ReadableMemory, RecordMemory};

/// Largest number of shapes for the parameters or outputs of a command, because a file may have any number.
const SHAPES_MAX: usize = 8;
/// Larger records are checked each time.
const WORDS_MAX: u64 = 96;

/// Checks records, and caches the shapes of valid ones.
#[derive(Default)]
pub struct RecordCheckCache {
    /// By command and kind of record; most have a single shape.
    shapes: Vec<Vec<CheckedShape>>,
}

/// Everything that the check of a valid record has read.
struct CheckedShape {
    /// The first word of all records of this shape: size, command, kind and omissions.
    first: u64,
    fixed: Vec<FixedBits>,
    /// The words that are handles, with their types.
    handles: Vec<(u32, HandleType)>,
    /// Number of records that did not match this shape.
    misses: u32,
}

/// Bits of a word that must be equal.
struct FixedBits {
    word: u32,
    mask: u64,
    value: u64,
}

impl RecordCheckCache {
    /// Like [`check`].
    #[inline]
    pub fn check<'a>(&mut self, words: &'a [u64]) -> Result<Record<'a>, CheckError> {
        let known =
            words.first().and_then(|first| self.shapes.get(shape_index(*first))?.iter().find(|it| it.first == *first));
        match known.and_then(|it| it.match_record(words)) {
            Some(record) => {
                debug_assert!(check(words).is_ok(), "what is like a record is one");
                Ok(record)
            }
            None => self.check_and_learn(words),
        }
    }

    /// Makes a full check, and caches the shape for later records.
    #[cold]
    fn check_and_learn<'a>(&mut self, words: &'a [u64]) -> Result<Record<'a>, CheckError> {
        let Some(first) = words.first().copied().filter(|it| it & u64::from(u32::MAX) <= WORDS_MAX) else {
            return check(words);
        };
        let place = shape_index(first);
        let known = self.shapes.get_mut(place).map_or(&mut [][..], |it| it);
        let own = known.iter().position(|it| it.first == first);
        let misses = own.map_or(0, |own| known[own].count_miss());
        // If records differ in what the check reads, caching them does not help. So it is tried less and less often.
        let is_wanted = if own.is_some() { misses.is_power_of_two() } else { known.len() < SHAPES_MAX };
        if !is_wanted {
            return check(words);
        }
        let seen = ObservedReads::default();
        let record = check_observed(words, &seen)?;
        let shape = seen.into_shape(record.words(), misses);
        match own {
            Some(own) => self.shapes[place][own] = shape,
            None => {
                // It is a valid record, so the index is bounded by the number of commands.
                self.shapes.resize_with(self.shapes.len().max(place + 1), Vec::new);
                self.shapes[place].push(shape);
            }
        }
        Ok(record)
    }
}

/// The index of the shapes with this first word.
#[inline]
fn shape_index(first: u64) -> usize {
    let RecordHeader { command, kind, .. } = RecordHeader::from_words(first, 0);
    usize::from(command) * 2 + usize::from(kind & 1)
}

impl CheckedShape {
    /// Counts a record that does not match. Returns the number so far.
    fn count_miss(&mut self) -> u32 {
        self.misses = self.misses.saturating_add(1);
        self.misses
    }

    /// The record at the begin of `words`, if it matches this shape.
    #[inline]
    fn match_record<'a>(&self, words: &'a [u64]) -> Option<Record<'a>> {
        let head = RecordHeader::from_words(words[0], *words.get(1)?);
        let (body, edge_count) = (head.body_words as usize, head.order_edge_count as usize);
        let own = words.get(..body + edge_count)?;
        let is_fixed = |it: &FixedBits| own.get(it.word as usize).is_some_and(|word| word & it.mask == it.value);
        let is_handle = |pair: &(u32, HandleType)| {
            own.get(pair.0 as usize).is_some_and(|word| ObjectId::from_raw_typed(*word, pair.1).is_some())
        };
        (self.fixed.iter().all(is_fixed) && self.handles.iter().all(is_handle)).then_some(Record::from_checked(own))
    }
}

/// Everything that a check has read.
#[derive(Default)]
pub(crate) struct ObservedReads {
    /// The ranges of bytes whose values matter.
    bytes: RefCell<Vec<(u64, u64)>>,
    /// The handles, of which only the types matter.
    handles: RefCell<Vec<(u64, HandleType)>>,
}

impl ObservedReads {
    fn into_shape(self, words: &[u64], misses: u32) -> CheckedShape {
        let mut masks: Vec<u64> = vec![0; words.len()];
        for (from, to) in self.bytes.into_inner() {
            for at in from..to {
                masks[at as usize / 8] |= 0xff << (at % 8 * 8);
            }
        }
        let checked = masks.iter().zip(words).enumerate().filter(|it| *it.1.0 != 0);
        let fixed = |(word, (mask, value)): (usize, (&u64, &u64))| FixedBits {
            word: word as u32,
            mask: *mask,
            value: value & mask,
        };
        let handles = self.handles.into_inner().into_iter().map(|it| ((it.0 / 8) as u32, it.1));
        CheckedShape { first: words[0], fixed: checked.map(fixed).collect(), handles: handles.collect(), misses }
    }
}

/// The body of a record that is being checked. The check reads everything through this type.
#[derive(Clone, Copy)]
pub(crate) struct ObservedMemory<'a> {
    memory: RecordMemory<'a>,
    seen: Option<&'a ObservedReads>,
}

impl<'a> ObservedMemory<'a> {
    pub(crate) fn new(body: &'a [u8], seen: Option<&'a ObservedReads>) -> ObservedMemory<'a> {
        ObservedMemory { memory: RecordMemory { body }, seen }
    }

    /// Size of the body in bytes, from its first word.
    pub(crate) fn len(self) -> u64 {
        self.memory.body.len() as u64
    }

    pub(crate) fn bytes(self, from: u64, to: u64) -> Option<&'a [u8]> {
        let bytes = self.memory.body.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)?;
        self.observe(from, to);
        Some(bytes)
    }

    /// The handle at a position; only its type matters.
    pub(crate) fn handle(self, at: u64, ty: HandleType) -> Option<u64> {
        let raw = self.memory.read(at, 8)?;
        match self.seen {
            // It is a whole word.
            Some(seen) if at.is_multiple_of(8) => seen.handles.borrow_mut().push((at, ty)),
            _ => self.observe(at, at + 8),
        }
        Some(raw)
    }

    #[inline]
    fn observe(self, from: u64, to: u64) {
        if let Some(seen) = self.seen.filter(|_| from < to) {
            seen.bytes.borrow_mut().push((from, to));
        }
    }
}

impl ReadableMemory for ObservedMemory<'_> {
    fn read(&self, at: u64, width: u8) -> Option<u64> {
        let value = self.memory.read(at, width)?;
        self.observe(at, at + u64::from(width));
        Some(value)
    }

    fn follow(&self, at: u64) -> Option<u64> {
        let to = self.memory.follow(at);
        // A read that fails matters as well.
        let end = at.saturating_add(8).min(self.len());
        self.observe(at, end);
        to
    }
}

#[cfg(test)]
mod tests {
    use lavascope_abi::Command;

    use super::*;
    use crate::check::RecordFault;
    use crate::encoding::{ORDER_EDGES_SHIFT, RecordPhase};

    fn id(ty: HandleType, serial: u64) -> u64 {
        ObjectId::new(ty, serial).map_or(0, ObjectId::raw)
    }

    /// A call of `vkCmdExecuteCommands`.
    fn execute(call: u64, executed: &[u64]) -> Vec<u64> {
        let head = RecordHeader {
            body_words: 5 + executed.len() as u32,
            command: Command::CmdExecuteCommands as u16,
            kind: RecordPhase::Enter as u8,
            omissions: 0,
            call,
            order_edge_count: 0,
        };
        let image = [id(HandleType::CommandBuffer, 1), executed.len() as u64, 5 * 8];
        head.to_words().into_iter().chain(image).chain(executed.iter().copied()).collect()
    }

    fn shapes(alike: &RecordCheckCache) -> usize {
        alike.shapes.iter().map(Vec::len).sum()
    }

    #[test]
    fn records_of_one_shape_are_checked_once_and_judged_each() {
        let [first, second, third] = [2, 3, 4].map(|it| id(HandleType::CommandBuffer, it));
        let mut alike = RecordCheckCache::default();
        assert!(alike.check(&execute(1, &[first, second])).is_ok());
        for words in [execute(2, &[third, second]), execute(3, &[0, first])] {
            assert!(alike.shapes[shape_index(words[0])][0].match_record(&words).is_some());
            assert!(alike.check(&words).is_ok());
        }
        let mut touched = execute(4, &[first, third]);
        touched[1] |= 2 << ORDER_EDGES_SHIFT;
        touched.extend([7, 8]);
        assert_eq!(alike.check(&touched).map(|it| it.words().len()), Ok(9));
        assert_eq!(shapes(&alike), 1, "neither handles nor touches make another shape");
        // Another count, a handle of another type, a part of a record, and a kind that does not exist.
        let fault = |alike: &mut RecordCheckCache, words: &[u64]| {
            let found = alike.check(words).err().map(|it| it.fault);
            assert_eq!(found, check(words).err().map(|it| it.fault));
            found
        };
        let mut few = execute(4, &[first, second]);
        few[3] = 1;
        assert_eq!(fault(&mut alike, &few), Some(RecordFault::TrailingBytes));
        let wrong = execute(5, &[first, id(HandleType::Buffer, 2)]);
        assert_eq!(fault(&mut alike, &wrong), Some(RecordFault::WrongHandle));
        assert_eq!(fault(&mut alike, &wrong[..6]), Some(RecordFault::Truncated));
        let mut beside = execute(6, &[first, second]);
        beside[0] |= 2 << 48;
        assert_eq!(fault(&mut alike, &beside), Some(RecordFault::UnknownKind));
        assert_eq!(shapes(&alike), 1);
    }

    #[test]
    fn no_more_shapes_are_remembered_than_there_is_room_for() {
        let mut alike = RecordCheckCache::default();
        for round in 0..3 {
            for count in 1..20 {
                assert!(alike.check(&execute(round, &vec![0; count])).is_ok());
                assert!(alike.check(&execute(round, &vec![7; count])).is_err());
            }
        }
        assert_eq!(shapes(&alike), SHAPES_MAX);
    }

    /// A call of `vkCmdBindDescriptorSets` with one set, and one or two dynamic offsets, which need the same space.
    fn bind(offsets: u64) -> Vec<u64> {
        let head = RecordHeader {
            body_words: 11,
            command: Command::CmdBindDescriptorSets as u16,
            kind: RecordPhase::Enter as u8,
            omissions: 0,
            call: 1,
            order_edge_count: 0,
        };
        let (buffer, layout) = (id(HandleType::CommandBuffer, 1), id(HandleType::PipelineLayout, 1));
        let values = if offsets == 1 { 5 } else { 6 << 32 | 5 };
        let image = [buffer, 0, layout, 1 << 32, 9 * 8, offsets, 10 * 8, id(HandleType::DescriptorSet, 1), values];
        head.to_words().into_iter().chain(image).collect()
    }

    #[test]
    fn what_differs_in_what_is_checked_is_checked_again() {
        let mut alike = RecordCheckCache::default();
        for _ in 0..40 {
            assert_eq!(check(&bind(1)).map(drop), Ok(()));
            assert!(alike.check(&bind(1)).is_ok() && alike.check(&bind(2)).is_ok());
        }
        assert_eq!(shapes(&alike), 1);
        // Padding after one offset, where a second one could be.
        let mut dirty = bind(2);
        dirty[7] = 1;
        assert_eq!(alike.check(&dirty).map(drop), check(&dirty).map(drop));
        assert!(check(&dirty).is_err());
    }
}
