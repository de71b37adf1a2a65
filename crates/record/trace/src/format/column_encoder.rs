//! Encodes the calls of one stream as columns.
//!
//! The records of a thread have a few *shapes*: a command, parameters or outputs, a length. Records of one shape differ
//! in a few numbers only. A block therefore stores the shapes, and the order in which they come. Then it stores, for each
//! shape and each 32-bit lane of its body, all values one after the other. If all values of a lane are equal, the value
//! is stored once. Otherwise the values are stored as byte planes, lowest bytes first, either directly or as differences.
//! So the compressor gets only the values that differ.

use lavascope_record::RecordPhase;
use lavascope_record::encoding::{HEADER_SIZE, RecordHeader, beside};
use rustc_hash::FxHashMap;

use crate::format::byte_reader::{ByteReader, FormatError, put_varint};

/// Words of a record header.
pub(crate) const HEAD_WORDS: usize = HEADER_SIZE / 8;
/// Largest number of words in one block; a larger body is stored as content.
pub(crate) const WORDS_MAX: usize = 1 << 16;
/// Largest number of shapes in one block.
pub(crate) const SHAPES_MAX: usize = 1 << 12;
/// Number of lanes in a word.
pub(crate) const LANES: usize = 2;

/// What the records of one table have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordShape {
    pub(crate) command: u16,
    pub(crate) kind: u8,
    pub(crate) omissions: u8,
    pub(crate) body_words: u32,
    /// Whether the body is stored elsewhere. The row then has the hashes of its pieces.
    pub(crate) is_external: bool,
    /// Number of words in each row.
    pub(crate) width: u32,
}

struct ShapeTable {
    shape: RecordShape,
    /// Row after row.
    rows: Vec<u64>,
}

/// The body of a record.
#[derive(Clone, Copy)]
pub(crate) enum RecordBody<'a> {
    Inline(&'a [u64]),
    /// Two words for each piece.
    External(&'a [u64]),
}

/// Collects records of one stream for a block.
#[derive(Default)]
pub(crate) struct ColumnEncoder {
    shapes: FxHashMap<RecordShape, u16>,
    tables: Vec<ShapeTable>,
    order: Vec<u16>,
    times: Vec<u64>,
    /// Records with order edges, and the number of edges.
    edge_counts: Vec<(u32, u32)>,
    edges: Vec<u64>,
    /// Records whose call number is not the expected one.
    unexpected_calls: Vec<(u32, u64)>,
    /// Number and time of the record before the first one.
    before_first: (u64, u64),
    /// Number and time of the last record.
    last: (u64, u64),
    /// Upper bound of the words of the block so far.
    words_max: usize,
}

impl ColumnEncoder {
    /// Begins a block after a record with this number and time.
    pub(crate) fn after(last: (u64, u64)) -> ColumnEncoder {
        ColumnEncoder { before_first: last, last, ..ColumnEncoder::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn last(&self) -> (u64, u64) {
        self.last
    }

    /// Whether a record of this size still fits.
    pub(crate) fn has_room(&self, words: usize) -> bool {
        self.words_max + words < WORDS_MAX && self.tables.len() < SHAPES_MAX
    }

    pub(crate) fn push(&mut self, time: u64, head: RecordHeader, body: RecordBody<'_>, order_edges: &[u64]) {
        let (row, is_external) = match body {
            RecordBody::Inline(row) => (row, false),
            RecordBody::External(row) => (row, true),
        };
        let shape = RecordShape {
            command: head.command,
            kind: head.kind,
            omissions: head.omissions,
            body_words: head.body_words,
            is_external,
            width: row.len() as u32,
        };
        let index = self.order.len() as u32;
        let tables = &mut self.tables;
        let table = *self.shapes.entry(shape).or_insert_with(|| {
            tables.push(ShapeTable { shape, rows: Vec::new() });
            (tables.len() - 1) as u16
        });
        self.tables[usize::from(table)].rows.extend_from_slice(row);
        self.order.push(table);
        // The clocks of different processors may differ a little.
        let time = time.max(self.last.1);
        self.times.push(time - self.last.1);
        if head.call != expected_call(self.last.0, head.kind) {
            self.unexpected_calls.push((index, head.call));
        }
        if !order_edges.is_empty() {
            self.edge_counts.push((index, order_edges.len() as u32));
            self.edges.extend_from_slice(order_edges);
        }
        self.last = (head.call, time);
        self.words_max += HEAD_WORDS + row.len() + order_edges.len() + 1;
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(self.words_max * 2 + 64);
        put_varint(&mut to, self.order.len() as u64);
        put_varint(&mut to, self.tables.len() as u64);
        put_varint(&mut to, self.before_first.0);
        put_varint(&mut to, self.before_first.1);
        for table in &self.tables {
            table.shape.encode(&mut to);
        }
        if self.tables.len() <= 256 {
            to.extend(self.order.iter().map(|it| *it as u8));
        } else {
            to.extend(self.order.iter().flat_map(|it| it.to_le_bytes()));
        }
        put_pairs(&mut to, self.unexpected_calls.iter().copied());
        put_pairs(&mut to, self.edge_counts.iter().map(|it| (it.0, u64::from(it.1))));
        put_planes(&mut to, self.times.iter().copied(), self.times.len());
        put_planes(&mut to, self.edges.iter().copied(), self.edges.len());
        for table in &self.tables {
            table.encode(&mut to);
        }
        to
    }
}

/// The expected call number after a record: that of the next call, or of the outputs of the same call.
pub(crate) fn expected_call(last: u64, kind: u8) -> u64 {
    let is_next = kind == RecordPhase::Enter as u8 || beside::has_own_number(kind);
    if is_next { last.wrapping_add(1) } else { last }
}

impl RecordShape {
    fn encode(self, to: &mut Vec<u8>) {
        to.extend(self.command.to_le_bytes());
        to.extend([self.kind, self.omissions, u8::from(self.is_external)]);
        put_varint(to, u64::from(self.body_words));
        put_varint(to, u64::from(self.width));
    }

    pub(crate) fn decode(from: &mut ByteReader<'_>) -> Result<RecordShape, FormatError> {
        let (command, kind, omissions) = (from.u16()?, from.u8()?, from.u8()?);
        let is_external = match from.u8()? {
            0 => false,
            1 => true,
            _ => return from.error("a body is neither here nor elsewhere"),
        };
        let body_words = from.count(u32::MAX as usize)? as u32;
        let width = from.count(WORDS_MAX)? as u32;
        let is_fitting = match is_external {
            false => body_words as usize == HEAD_WORDS + width as usize,
            true => body_words as usize > HEAD_WORDS && width > 0 && width.is_multiple_of(2),
        };
        if !is_fitting {
            return from.error("a body is not as long as its shape says");
        }
        Ok(RecordShape { command, kind, omissions, body_words, is_external, width })
    }
}

/// The ways to store the values of a lane.
pub(crate) const ALL_ALIKE: u8 = 0;
pub(crate) const PLAIN: u8 = 1;
pub(crate) const DIFFERENCES: u8 = 2;

impl ShapeTable {
    fn lane(&self, lane: usize) -> impl Iterator<Item = u32> + Clone + '_ {
        let width = self.shape.width as usize;
        let (word, shift) = (lane / LANES, 32 * (lane % LANES));
        self.rows.iter().skip(word).step_by(width.max(1)).map(move |it| (it >> shift) as u32)
    }

    fn encode(&self, to: &mut Vec<u8>) {
        let lanes = self.shape.width as usize * LANES;
        let modes: Vec<u8> = (0..lanes).map(|it| mode(self.lane(it))).collect();
        to.extend(&modes);
        for (lane, mode) in modes.into_iter().enumerate() {
            let values = self.lane(lane);
            let count = self.rows.len() / self.shape.width as usize;
            match mode {
                ALL_ALIKE => put_varint(to, u64::from(values.clone().next().unwrap_or(0))),
                PLAIN => put_planes(to, values.map(u64::from), count),
                _ => put_planes(to, differences(values).map(u64::from), count),
            }
        }
    }
}

/// The best way to store the values of a lane. Differences are best if most of them equal the one before.
fn mode(values: impl Iterator<Item = u32> + Clone) -> u8 {
    let Some(first) = values.clone().next() else { return ALL_ALIKE };
    if values.clone().all(|it| it == first) {
        return ALL_ALIKE;
    }
    let (mut same, mut count, mut last, mut step) = (0u32, 0u32, first, 0u32);
    for value in values.skip(1) {
        let next = value.wrapping_sub(last);
        same += u32::from(next == step && next != 0);
        (last, step, count) = (value, next, count + 1);
    }
    if same * 2 > count { DIFFERENCES } else { PLAIN }
}

fn differences(values: impl Iterator<Item = u32> + Clone) -> impl Iterator<Item = u32> + Clone {
    let mut last = 0u32;
    values.map(move |it| zigzag(it.wrapping_sub(std::mem::replace(&mut last, it))))
}

/// Maps small numbers of both signs to small unsigned numbers.
fn zigzag(step: u32) -> u32 {
    step << 1 ^ ((step as i32) >> 31) as u32
}

pub(crate) fn unzigzag(folded: u32) -> u32 {
    folded >> 1 ^ (folded & 1).wrapping_neg()
}

/// Writes numbers as byte planes, lowest bytes first, with as many planes as the largest number needs.
fn put_planes(to: &mut Vec<u8>, values: impl Iterator<Item = u64> + Clone, count: usize) {
    let bits = 64 - values.clone().fold(0, |all, it| all | it).leading_zeros();
    let planes = bits.div_ceil(8);
    to.push(planes as u8);
    to.reserve(count * planes as usize);
    for plane in 0..planes {
        to.extend(values.clone().map(|it| (it >> (8 * plane)) as u8));
    }
}

/// Writes record numbers with a value each.
fn put_pairs(to: &mut Vec<u8>, pairs: impl ExactSizeIterator<Item = (u32, u64)>) {
    put_varint(to, pairs.len() as u64);
    let mut last = 0;
    for (index, value) in pairs {
        put_varint(to, u64::from(index - last));
        put_varint(to, value);
        last = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_both_signs_fold() {
        for step in [0, 1, u32::MAX, 5, u32::MAX - 4, 1 << 31, (1 << 31) - 1] {
            assert_eq!(unzigzag(zigzag(step)), step);
        }
        assert!(zigzag(u32::MAX) < 3);
    }
}
