//! Decodes columns into records, a few at a time.
//!
//! Opening a block checks all of it, so decoding its records cannot fail. Records are decoded in parts, because a part
//! is still in the cache when it is read, and a stream then needs little memory.

use std::ops::Range;

use lavascope_record::encoding::{CALL_MAX, ORDER_EDGES_SHIFT, RecordHeader};

use crate::format::byte_reader::{ByteReader, FormatError};
use crate::format::column_encoder::{
    ALL_ALIKE, DIFFERENCES, HEAD_WORDS, LANES, PLAIN, RecordShape, SHAPES_MAX, WORDS_MAX, expected_call, unzigzag,
};

/// Number of words that are copied at once. Most rows are not longer, so the copy needs no loop. Words behind a row are
/// copied as well and overwritten later.
const STRIDE: usize = 8;

/// The position of a record in the decoded words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordSpan {
    pub(crate) first: u32,
    pub(crate) end: u32,
    pub(crate) time: u64,
    /// Whether the words between the header and the order edges are hashes of the pieces of the body.
    pub(crate) is_external: bool,
    /// Whether its call is complete with this record.
    pub(crate) completes: bool,
    /// Whether it has no order edge to another stream.
    pub(crate) is_independent: bool,
}

/// Decoded records of a block, one after the other.
#[derive(Default)]
pub(crate) struct DecodedRecords {
    pub(crate) words: Vec<u64>,
    pub(crate) spans: Vec<RecordSpan>,
}

impl DecodedRecords {
    /// Removes the records, but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.spans.clear();
    }

    /// Memory size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.words.capacity() * size_of::<u64>() + self.spans.capacity() * size_of::<RecordSpan>()
    }
}

/// A checked block, and how much of it was decoded. The values of the columns stay in the contents of the block.
#[derive(Default)]
pub(crate) struct ColumnDecoder {
    /// Number of records, of their words, and of decoded records.
    count: usize,
    words: usize,
    given: usize,
    /// Number and time of the last decoded record.
    last: (u64, u64),
    shapes: Vec<ShapeDecoder>,
    /// Position of the order column, and bytes of each number in it.
    order: (usize, usize),
    unexpected_calls: SparseColumn,
    edge_counts: SparseColumn,
    times: BytePlanes,
    edges: BytePlanes,
    edges_given: usize,
    /// The common words of each shape, followed by one stride of zeros.
    common: Vec<u64>,
    lanes: Vec<LaneDecoder>,
    buffers: DecodeBuffers,
}

/// The records of one shape.
struct ShapeDecoder {
    /// The first word of their headers, and the difference between consecutive call numbers.
    head: u64,
    step: u64,
    width: usize,
    is_external: bool,
    completes: bool,
    /// The position of its words in `common`, and its lanes with different values.
    common: usize,
    lanes: Range<usize>,
    /// Number of records, of decoded ones, and of those in the current part; and the begin of their rows.
    count: usize,
    given: usize,
    here: usize,
    row: usize,
}

/// Values for some of the records, in their order.
#[derive(Default)]
struct SparseColumn {
    all: Vec<(u32, u64)>,
    given: usize,
}

/// Numbers in byte planes: all lowest bytes first.
#[derive(Clone, Copy, Default)]
struct BytePlanes {
    first: usize,
    planes: usize,
    count: usize,
}

/// A lane with different values.
struct LaneDecoder {
    word: u32,
    shift: u32,
    are_differences: bool,
    planes: BytePlanes,
    /// The last decoded value.
    last: u32,
}

/// Buffers for the current part.
#[derive(Default)]
struct DecodeBuffers {
    order: Vec<u16>,
    times: Vec<u64>,
    order_edges: Vec<u64>,
    rows: Vec<u32>,
}

impl ColumnDecoder {
    /// Whether all records are decoded.
    pub(crate) fn is_empty(&self) -> bool {
        self.given == self.count
    }

    /// Memory size in bytes.
    pub(crate) fn size(&self) -> usize {
        let DecodeBuffers { order, times, order_edges, rows } = &self.buffers;
        self.shapes.capacity() * size_of::<ShapeDecoder>()
            + (self.unexpected_calls.all.capacity() + self.edge_counts.all.capacity()) * size_of::<(u32, u64)>()
            + self.lanes.capacity() * size_of::<LaneDecoder>()
            + (self.common.capacity() + times.capacity() + order_edges.capacity()) * size_of::<u64>()
            + order.capacity() * size_of::<u16>()
            + rows.capacity() * size_of::<u32>()
    }

    /// Opens and checks a block, and replaces the current one. `own` translates command numbers of the file.
    pub(crate) fn open(&mut self, contents: &[u8], own: impl Fn(u16) -> u16) -> Result<(), FormatError> {
        // A block that is not valid has no records.
        (self.count, self.given) = (0, 0);
        self.common.clear();
        self.lanes.clear();
        let mut from = ByteReader::new(contents);
        let count = from.count(WORDS_MAX)?;
        let shapes = from.count(SHAPES_MAX)?;
        self.last = (from.varint()?, from.varint()?);
        self.shapes.clear();
        for _ in 0..shapes {
            self.shapes.push(ShapeDecoder::of(RecordShape::decode(&mut from)?, &own));
        }
        self.take_order(&mut from, contents, count)?;
        self.unexpected_calls.take(&mut from, count)?;
        self.edge_counts.take(&mut from, count)?;
        self.times = BytePlanes::take::<8>(&mut from, count)?;
        let order_edges = self.edge_counts.all.iter().fold(0u64, |all, it| all.saturating_add(it.1));
        let words = |all: u64, it: &ShapeDecoder| all.saturating_add((it.count * (HEAD_WORDS + it.width)) as u64);
        let words = self.shapes.iter().fold(order_edges, words);
        if words > WORDS_MAX as u64 {
            return from.error("the records are larger than those of one block are");
        }
        self.edges = BytePlanes::take::<8>(&mut from, order_edges as usize)?;
        self.edges_given = 0;
        for shape in &mut self.shapes {
            shape.take_table(&mut from, &mut self.common, &mut self.lanes)?;
        }
        self.common.resize(self.common.len() + STRIDE, 0);
        if !from.is_empty() {
            return from.error("there is more than the records need");
        }
        (self.count, self.words) = (count, words as usize);
        Ok(())
    }

    /// Reads the shape of each record.
    fn take_order(&mut self, from: &mut ByteReader<'_>, contents: &[u8], count: usize) -> Result<(), FormatError> {
        let width = if self.shapes.len() <= 256 { 1 } else { 2 };
        self.order = (from.at(), width);
        from.take(count * width)?;
        self.read_order(contents, 0..count);
        for order_item in &self.buffers.order {
            match self.shapes.get_mut(usize::from(*order_item)) {
                Some(shape) => shape.count += 1,
                None => return from.error("a record of a shape that is not there"),
            }
        }
        Ok(())
    }

    fn read_order(&mut self, contents: &[u8], range: Range<usize>) {
        let (first, width) = self.order;
        let bytes = &contents[first + range.start * width..first + range.end * width];
        self.buffers.order.clear();
        match width {
            1 => self.buffers.order.extend(bytes.iter().map(|it| u16::from(*it))),
            _ => self.buffers.order.extend(bytes.chunks_exact(2).map(|it| u16::from_le_bytes([it[0], it[1]]))),
        }
    }

    /// Replaces the contents of `to` with the next records: about `words` words, but at least one record. `contents`
    /// must be those of the checked block.
    pub(crate) fn decode_next(&mut self, contents: &[u8], words: usize, to: &mut DecodedRecords) {
        let step = (words.min(WORDS_MAX) * self.count / self.words.max(1)).clamp(1, WORDS_MAX);
        let range = self.given..(self.given + step).min(self.count);
        self.read_order(contents, range.clone());
        self.times.read(contents, range.clone(), &mut self.buffers.times);
        let order_edges = self.edge_counts.pending_before(range.end).iter().map(|it| it.1 as usize).sum::<usize>();
        self.edges.read(contents, self.edges_given..self.edges_given + order_edges, &mut self.buffers.order_edges);
        self.edges_given += order_edges;
        let words = self.count_rows() + order_edges;
        // All of it is written below, so old contents may stay.
        if to.words.capacity() < words + STRIDE {
            to.words = Vec::with_capacity(words.next_power_of_two().min(WORDS_MAX) + STRIDE);
        }
        to.words.resize(words + STRIDE, 0);
        to.spans.clear();
        to.spans.reserve(range.len());
        self.put_heads(to);
        for shape in self.shapes.iter_mut().filter(|it| it.here > 0) {
            let rows = &self.buffers.rows[shape.row - shape.here..shape.row];
            for lane in &mut self.lanes[shape.lanes.clone()] {
                lane.put(contents, shape.given, rows, &mut to.words);
            }
            shape.given += shape.here;
        }
        to.words.truncate(words);
        self.given = range.end;
    }

    /// Computes the begin of each shape's rows. Returns the number of words of all rows.
    fn count_rows(&mut self) -> usize {
        for shape in &mut self.shapes {
            shape.here = 0;
        }
        for table in &self.buffers.order {
            self.shapes[usize::from(*table)].here += 1;
        }
        let (mut row, mut words) = (0, 0);
        for shape in &mut self.shapes {
            shape.row = row;
            row += shape.here;
            words += shape.here * (HEAD_WORDS + shape.width);
        }
        self.buffers.rows.resize(row, 0);
        words
    }

    /// Writes the positions of the records, their headers, order edges, and the common words of their shapes.
    fn put_heads(&mut self, to: &mut DecodedRecords) {
        let DecodeBuffers { order, times, order_edges, rows } = &mut self.buffers;
        let (mut last, mut first, mut order_edges) = (self.last, 0, &order_edges[..]);
        for (index, (table, time)) in (self.given as u32..).zip(order.iter().zip(times.iter())) {
            let shape = &mut self.shapes[usize::from(*table)];
            let call = self.unexpected_calls.next_if(index).unwrap_or(last.0.wrapping_add(shape.step));
            let edge_count = self.edge_counts.next_if(index).map_or(0, |it| it as usize);
            last = (call, last.1.wrapping_add(*time));
            let body = first + HEAD_WORDS;
            let body_end = body + shape.width;
            let end = body_end + edge_count;
            let words = &mut to.words[first..];
            words[0] = shape.head;
            words[1] = call & CALL_MAX | (edge_count as u64) << ORDER_EDGES_SHIFT;
            let (row, common) = (&mut words[HEAD_WORDS..], &self.common[shape.common..]);
            let mut at = 0;
            while at < shape.width {
                row[at..at + STRIDE].copy_from_slice(&common[at..at + STRIDE]);
                at += STRIDE;
            }
            if edge_count > 0 {
                let (own, rest) = order_edges.split_at(edge_count);
                to.words[body_end..end].copy_from_slice(own);
                order_edges = rest;
            }
            rows[shape.row] = body as u32;
            shape.row += 1;
            let ShapeDecoder { is_external, completes, .. } = *shape;
            let (is_free, time) = (edge_count == 0, last.1);
            let place = RecordSpan {
                first: first as u32,
                end: end as u32,
                time,
                is_external,
                completes,
                is_independent: is_free,
            };
            to.spans.push(place);
            first = end;
        }
        self.last = last;
    }
}

impl ShapeDecoder {
    fn of(shape: RecordShape, own: impl Fn(u16) -> u16) -> ShapeDecoder {
        let RecordShape { command, kind, omissions, body_words, is_external, width } = shape;
        let head = RecordHeader { body_words, command: own(command), kind, omissions, call: 0, order_edge_count: 0 };
        ShapeDecoder {
            head: head.to_words()[0],
            step: expected_call(0, kind),
            width: width as usize,
            is_external,
            completes: head.completed_call().is_some(),
            common: 0,
            lanes: 0..0,
            count: 0,
            given: 0,
            here: 0,
            row: 0,
        }
    }

    /// Reads the common words and the lanes of a shape.
    fn take_table(
        &mut self,
        from: &mut ByteReader<'_>,
        common: &mut Vec<u64>,
        lanes: &mut Vec<LaneDecoder>,
    ) -> Result<(), FormatError> {
        let modes = from.take(self.width * LANES)?;
        let first_lane = lanes.len();
        self.common = common.len();
        common.resize(self.common + self.width, 0);
        for (lane, mode) in modes.iter().enumerate() {
            let (word, shift) = (lane / LANES, 32 * (lane % LANES) as u32);
            match *mode {
                ALL_ALIKE => common[self.common + word] |= (from.count(u32::MAX as usize)? as u64) << shift,
                PLAIN | DIFFERENCES => {
                    let (planes, are_differences) = (BytePlanes::take::<4>(from, self.count)?, *mode == DIFFERENCES);
                    lanes.push(LaneDecoder { word: word as u32, shift, are_differences, planes, last: 0 });
                }
                _ => return from.error("a lane is stored in no known way"),
            }
        }
        // A shape without records must not use memory.
        if self.count == 0 {
            common.truncate(self.common);
            lanes.truncate(first_lane);
        }
        self.lanes = first_lane..lanes.len();
        Ok(())
    }
}

impl SparseColumn {
    fn take(&mut self, from: &mut ByteReader<'_>, records: usize) -> Result<(), FormatError> {
        self.given = 0;
        self.all.clear();
        let count = from.count(records)?;
        let mut last = 0usize;
        for at in 0..count {
            let step = from.count(records)?;
            last += step;
            if last >= records || (at > 0 && step == 0) {
                return from.error("a note about a record that is not there");
            }
            self.all.push((last as u32, from.varint()?));
        }
        Ok(())
    }

    /// The value for a record, if the next value belongs to it.
    #[inline]
    fn next_if(&mut self, record: u32) -> Option<u64> {
        let (_, value) = *self.all.get(self.given).filter(|it| it.0 == record)?;
        self.given += 1;
        Some(value)
    }

    /// The values for records before `record` that were not read yet.
    fn pending_before(&self, record: usize) -> &[(u32, u64)] {
        let rest = &self.all[self.given..];
        &rest[..rest.partition_point(|it| (it.0 as usize) < record)]
    }
}

impl BytePlanes {
    fn take<const MAX: u8>(from: &mut ByteReader<'_>, count: usize) -> Result<BytePlanes, FormatError> {
        let planes = from.u8()?;
        if planes > MAX {
            return from.error("a number has more bytes than it can have");
        }
        let first = from.at();
        from.take(count * usize::from(planes))?;
        Ok(BytePlanes { first, planes: usize::from(planes), count })
    }

    fn read(&self, contents: &[u8], range: Range<usize>, to: &mut Vec<u64>) {
        to.clear();
        to.resize(range.len(), 0);
        self.each(contents, range.start, to.iter_mut(), |to, value| *to = value);
    }

    /// Calls `put` with the numbers from `from` on, each together with an item of `with`.
    fn each<T>(
        &self,
        contents: &[u8],
        from: usize,
        with: impl ExactSizeIterator<Item = T>,
        mut give: impl FnMut(T, u64),
    ) {
        let count = with.len();
        let plane = |it: usize| contents[self.first + it * self.count + from..][..count].iter();
        // Separate cases, so that the number of bytes is a constant for the compiler. Most numbers have one or two
        // bytes.
        match self.planes {
            0 => with.for_each(|it| give(it, 0)),
            1 => with.zip(plane(0)).for_each(|(it, low)| give(it, u64::from(*low))),
            2 => {
                let numbers = plane(0).zip(plane(1)).map(|(low, high)| u64::from(u16::from_le_bytes([*low, *high])));
                with.zip(numbers).for_each(|(it, number)| give(it, number));
            }
            3 => self.join::<3, T>(contents, from, with, give),
            4 => self.join::<4, T>(contents, from, with, give),
            5 => self.join::<5, T>(contents, from, with, give),
            6 => self.join::<6, T>(contents, from, with, give),
            7 => self.join::<7, T>(contents, from, with, give),
            _ => self.join::<8, T>(contents, from, with, give),
        }
    }

    fn join<const PLANES: usize, T>(
        &self,
        contents: &[u8],
        from: usize,
        with: impl ExactSizeIterator<Item = T>,
        mut give: impl FnMut(T, u64),
    ) {
        let count = with.len();
        let planes: [&[u8]; PLANES] = std::array::from_fn(|number| {
            let first = self.first + number * self.count + from;
            &contents[first..first + count]
        });
        for (at, with) in with.enumerate() {
            let mut value = 0;
            for (plane, bytes) in planes.iter().enumerate() {
                value |= u64::from(bytes[at]) << (8 * plane);
            }
            give(with, value);
        }
    }
}

impl LaneDecoder {
    /// Writes the values from `from` on into rows whose words are still zero.
    fn put(&mut self, contents: &[u8], from: usize, rows: &[u32], words: &mut [u64]) {
        let (words, shift) = (&mut words[self.word as usize..], self.shift);
        if self.are_differences {
            let mut last = self.last;
            self.planes.each(contents, from, rows.iter(), |row, value| {
                last = last.wrapping_add(unzigzag(value as u32));
                words[*row as usize] |= u64::from(last) << shift;
            });
            self.last = last;
        } else {
            self.planes.each(contents, from, rows.iter(), |row, value| {
                words[*row as usize] |= u64::from(value as u32) << shift;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::column_encoder::{ColumnEncoder, RecordBody};
    use lavascope_test_support::TestRng;

    fn head(command: u16, kind: u8, call: u64, body: usize, order_edges: usize) -> RecordHeader {
        RecordHeader {
            body_words: (HEAD_WORDS + body) as u32,
            command,
            kind,
            omissions: 0,
            call,
            order_edge_count: order_edges as u32,
        }
    }

    fn decode(block: &[u8]) -> Result<DecodedRecords, FormatError> {
        let (mut columns, mut all) = (ColumnDecoder::default(), DecodedRecords::default());
        columns.open(block, |it| it)?;
        columns.decode_next(block, usize::MAX, &mut all);
        Ok(all)
    }

    /// Records of all kinds: some numbers count up, some are equal, some are random.
    fn records() -> Vec<(u64, RecordHeader, Vec<u64>, Vec<u64>)> {
        let mut random = 1u64;
        let mut next = move || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            random >> 16
        };
        let (mut time, mut call) = (1000, 41);
        let mut all = Vec::new();
        for index in 0..900u64 {
            time += next() % 90;
            let command = (next() % 5) as u16;
            let is_leave = index % 7 == 6;
            call += u64::from(!is_leave) + u64::from(index % 100 == 50) * 3;
            let body: Vec<u64> =
                (0..u64::from(command)).map(|it| [7, index, next(), next() << 40][it as usize % 4]).collect();
            let order_edges: Vec<u64> = (0..if index % 31 == 0 { next() % 4 } else { 0 }).map(|_| next()).collect();
            all.push((time, head(command, u8::from(is_leave), call, body.len(), order_edges.len()), body, order_edges));
        }
        all
    }

    fn block() -> Vec<u8> {
        let mut gather = ColumnEncoder::after((40, 900));
        for (time, head, body, order_edges) in &records() {
            gather.push(*time, *head, RecordBody::Inline(body), order_edges);
        }
        gather.encode()
    }

    #[test]
    fn records_come_back_word_for_word_with_their_times() {
        let all = records();
        let block = block();
        // At once, a few at a time, and one by one, with the memory of the block before.
        let (mut columns, mut part) = (ColumnDecoder::default(), DecodedRecords::default());
        for words in [usize::MAX, 100, 0] {
            columns.open(&block, |it| it).expect("our own block is whole");
            let mut expected = all.iter();
            let mut parts = 0;
            while !columns.is_empty() {
                columns.decode_next(&block, words, &mut part);
                parts += 1;
                for place in &part.spans {
                    let (time, head, body, order_edges) = expected.next().expect("no more than there were");
                    let words: Vec<u64> =
                        head.to_words().into_iter().chain(body.clone()).chain(order_edges.clone()).collect();
                    assert_eq!(part.words[place.first as usize..place.end as usize], words);
                    assert_eq!(place.time, *time);
                }
            }
            assert_eq!(expected.next().map(|it| it.0), None);
            assert!(if words == 0 { parts == all.len() } else { parts < all.len() / 10 }, "{parts}");
        }
    }

    #[test]
    fn many_shapes_and_bodies_elsewhere_come_back() {
        let mut gather = ColumnEncoder::after((0, 0));
        for call in 1..=700u64 {
            let pieces = [call, call + 1];
            let head = RecordHeader { body_words: 5000, ..head(call as u16, 0, call, 0, 0) };
            gather.push(call, head, RecordBody::External(&pieces), &[]);
        }
        let decoded = decode(&gather.encode()).expect("our own block is whole");
        assert!(decoded.spans.iter().all(|it| it.is_external));
        assert_eq!(decoded.words[decoded.spans[699].first as usize + HEAD_WORDS..], [700, 701]);
    }

    #[test]
    fn commands_get_the_numbers_of_here() {
        let (mut columns, mut all) = (ColumnDecoder::default(), DecodedRecords::default());
        let block = block();
        columns.open(&block, |it| it + 100).expect("our own block is whole");
        columns.decode_next(&block, usize::MAX, &mut all);
        for (place, (_, head, ..)) in all.spans.iter().zip(records()) {
            let first = place.first as usize;
            assert_eq!(RecordHeader::from_words(all.words[first], all.words[first + 1]).command, head.command + 100);
        }
    }

    #[test]
    fn damaged_columns_are_errors_and_never_large() {
        let good = block();
        let mut rng = TestRng::new(7);
        for _ in 0..20_000 {
            let mut bad = good.clone();
            bad[rng.below(good.len().min(400))] = rng.below(256) as u8;
            if let Ok(decoded) = decode(&bad) {
                assert!(decoded.words.len() <= WORDS_MAX);
            }
            bad.truncate(rng.below(good.len()));
            assert!(decode(&bad).is_err());
        }
    }

    #[test]
    fn a_block_that_is_damaged_gives_nothing() {
        let (mut columns, good) = (ColumnDecoder::default(), block());
        columns.open(&good, |it| it).expect("our own block is whole");
        assert!(columns.open(&good[..good.len() - 1], |it| it).is_err());
        assert!(columns.is_empty());
    }
}
