//! Calls of one stream as columns.
//!
//! Calls of a thread come in a few *shapes*: a command, the half of the call, a length. Calls of one shape differ in a
//! few of their numbers, so a block keeps the shapes, the order in which they come, and then for each shape and each
//! 32-bit lane of its image all values one after the other: one value where they are all alike, else plane by plane,
//! all lowest bytes first, as they are or as differences. What is left to the compressor is what really varies.

use lavascope_event::Kind;
use lavascope_event::record::{CALL_MAX, HEAD_SIZE, Head, TOUCHES_SHIFT, beside};
use rustc_hash::FxHashMap;

use crate::bytes::{Bad, Bytes, put_varint};

/// Words of a head.
pub(crate) const HEAD_WORDS: usize = HEAD_SIZE / 8;
/// Words of records in one block, at most; a larger body is a content.
pub(crate) const WORDS_MAX: usize = 1 << 16;
/// Shapes of one block, at most.
const SHAPES_MAX: usize = 1 << 12;
/// Lanes of a word.
const LANES: usize = 2;

/// What records must share to stand in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    command: u16,
    kind: u8,
    remarks: u8,
    body_words: u32,
    /// Whether the body is not here: its words are the hashes of its pieces.
    is_elsewhere: bool,
    /// Words of each row.
    width: u32,
}

struct Table {
    shape: Shape,
    /// Row after row.
    rows: Vec<u64>,
}

/// The body of a record, behind its head.
#[derive(Clone, Copy)]
pub(crate) enum Body<'a> {
    Here(&'a [u64]),
    /// Two words for each piece.
    Elsewhere(&'a [u64]),
}

/// Records of one stream on their way into a block.
#[derive(Default)]
pub(crate) struct Gather {
    shapes: FxHashMap<Shape, u16>,
    tables: Vec<Table>,
    order: Vec<u16>,
    times: Vec<u64>,
    /// Records with touches: which, and how many.
    touched: Vec<(u32, u32)>,
    touches: Vec<u64>,
    /// Records whose number is not the one that is expected.
    odd: Vec<(u32, u64)>,
    /// Number and time of the record before the first, and of the last.
    first: (u64, u64),
    last: (u64, u64),
    /// Words that the block takes at most.
    room: usize,
}

impl Gather {
    /// A block behind a record with this number and time.
    pub(crate) fn after(last: (u64, u64)) -> Gather {
        Gather { first: last, last, ..Gather::default() }
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

    /// Whether there is room for one more record of so many words.
    pub(crate) fn has_room(&self, words: usize) -> bool {
        self.room + words < WORDS_MAX && self.tables.len() < SHAPES_MAX
    }

    pub(crate) fn push(&mut self, time: u64, head: Head, body: Body<'_>, touches: &[u64]) {
        let (row, is_elsewhere) = match body {
            Body::Here(row) => (row, false),
            Body::Elsewhere(row) => (row, true),
        };
        let shape = Shape {
            command: head.command,
            kind: head.kind,
            remarks: head.remarks,
            body_words: head.body_words,
            is_elsewhere,
            width: row.len() as u32,
        };
        let index = self.order.len() as u32;
        let tables = &mut self.tables;
        let table = *self.shapes.entry(shape).or_insert_with(|| {
            tables.push(Table { shape, rows: Vec::new() });
            (tables.len() - 1) as u16
        });
        self.tables[usize::from(table)].rows.extend_from_slice(row);
        self.order.push(table);
        // Clocks of different processors may disagree by a little.
        let time = time.max(self.last.1);
        self.times.push(time - self.last.1);
        if head.call != expected(self.last.0, head.kind) {
            self.odd.push((index, head.call));
        }
        if !touches.is_empty() {
            self.touched.push((index, touches.len() as u32));
            self.touches.extend_from_slice(touches);
        }
        self.last = (head.call, time);
        self.room += HEAD_WORDS + row.len() + touches.len() + 1;
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(self.room * 2 + 64);
        put_varint(&mut to, self.order.len() as u64);
        put_varint(&mut to, self.tables.len() as u64);
        put_varint(&mut to, self.first.0);
        put_varint(&mut to, self.first.1);
        for table in &self.tables {
            table.shape.encode(&mut to);
        }
        if self.tables.len() <= 256 {
            to.extend(self.order.iter().map(|it| *it as u8));
        } else {
            to.extend(self.order.iter().flat_map(|it| it.to_le_bytes()));
        }
        put_pairs(&mut to, self.odd.iter().copied());
        put_pairs(&mut to, self.touched.iter().map(|it| (it.0, u64::from(it.1))));
        put_planes(&mut to, self.times.iter().copied(), self.times.len());
        put_planes(&mut to, self.touches.iter().copied(), self.touches.len());
        for table in &self.tables {
            table.encode(&mut to);
        }
        to
    }
}

/// The number of the record behind one with number `last`: the next call, or the second half of that one.
fn expected(last: u64, kind: u8) -> u64 {
    let is_next = kind == Kind::Enter as u8 || beside::has_own_number(kind);
    if is_next { last.wrapping_add(1) } else { last }
}

impl Shape {
    fn encode(self, to: &mut Vec<u8>) {
        to.extend(self.command.to_le_bytes());
        to.extend([self.kind, self.remarks, u8::from(self.is_elsewhere)]);
        put_varint(to, u64::from(self.body_words));
        put_varint(to, u64::from(self.width));
    }

    fn decode(from: &mut Bytes<'_>) -> Result<Shape, Bad> {
        let (command, kind, remarks) = (from.u16()?, from.u8()?, from.u8()?);
        let is_elsewhere = match from.u8()? {
            0 => false,
            1 => true,
            _ => return from.bad("a body is neither here nor elsewhere"),
        };
        let body_words = from.count(u32::MAX as usize)? as u32;
        let width = from.count(WORDS_MAX)? as u32;
        let is_fitting = match is_elsewhere {
            false => body_words as usize == HEAD_WORDS + width as usize,
            true => body_words as usize > HEAD_WORDS && width > 0 && width.is_multiple_of(2),
        };
        if !is_fitting {
            return from.bad("a body is not as long as its shape says");
        }
        Ok(Shape { command, kind, remarks, body_words, is_elsewhere, width })
    }
}

/// How the values of a lane are stored.
const ALL_ALIKE: u8 = 0;
const PLAIN: u8 = 1;
const DIFFERENCES: u8 = 2;

impl Table {
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

/// How the values of a lane are best stored. Differences where most steps are like the one before.
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
    values.map(move |it| fold(it.wrapping_sub(std::mem::replace(&mut last, it))))
}

/// Small numbers of both signs as small numbers.
fn fold(step: u32) -> u32 {
    step << 1 ^ ((step as i32) >> 31) as u32
}

fn unfold(folded: u32) -> u32 {
    folded >> 1 ^ (folded & 1).wrapping_neg()
}

/// Bytes of numbers, all lowest ones first, as many of each as the largest needs.
fn put_planes(to: &mut Vec<u8>, values: impl Iterator<Item = u64> + Clone, count: usize) {
    let bits = 64 - values.clone().fold(0, |all, it| all | it).leading_zeros();
    let planes = bits.div_ceil(8);
    to.push(planes as u8);
    to.reserve(count * planes as usize);
    for plane in 0..planes {
        to.extend(values.clone().map(|it| (it >> (8 * plane)) as u8));
    }
}

/// The bytes of so many numbers that stand in planes.
fn take_planes<'a, const MAX: u8>(from: &mut Bytes<'a>, count: usize) -> Result<&'a [u8], Bad> {
    let planes = from.u8()?;
    if planes > MAX {
        return from.bad("a number has more bytes than it can have");
    }
    from.take(count * usize::from(planes))
}

/// Gives numbers that stand in planes, in their order.
fn each_of_planes(bytes: &[u8], count: usize, give: impl FnMut(usize, u64)) {
    // So that the compiler knows how many there are of each: most numbers have one or two bytes.
    match bytes.len() / count.max(1) {
        0 => join_planes::<0>(bytes, count, give),
        1 => join_planes::<1>(bytes, count, give),
        2 => join_planes::<2>(bytes, count, give),
        3 => join_planes::<3>(bytes, count, give),
        4 => join_planes::<4>(bytes, count, give),
        5 => join_planes::<5>(bytes, count, give),
        6 => join_planes::<6>(bytes, count, give),
        7 => join_planes::<7>(bytes, count, give),
        _ => join_planes::<8>(bytes, count, give),
    }
}

fn join_planes<const PLANES: usize>(bytes: &[u8], count: usize, mut give: impl FnMut(usize, u64)) {
    let planes: [&[u8]; PLANES] = std::array::from_fn(|it| &bytes[it * count..(it + 1) * count]);
    for at in 0..count {
        let mut value = 0;
        for (plane, bytes) in planes.iter().enumerate() {
            value |= u64::from(bytes[at]) << (8 * plane);
        }
        give(at, value);
    }
}

fn get_planes<const MAX: u8>(from: &mut Bytes<'_>, count: usize) -> Result<Vec<u64>, Bad> {
    let mut all = Vec::with_capacity(count);
    each_of_planes(take_planes::<MAX>(from, count)?, count, |_, value| all.push(value));
    Ok(all)
}

/// Numbers of records, each with a value.
fn put_pairs(to: &mut Vec<u8>, pairs: impl ExactSizeIterator<Item = (u32, u64)>) {
    put_varint(to, pairs.len() as u64);
    let mut last = 0;
    for (index, value) in pairs {
        put_varint(to, u64::from(index - last));
        put_varint(to, value);
        last = index;
    }
}

fn get_pairs(from: &mut Bytes<'_>, records: usize) -> Result<Vec<(u32, u64)>, Bad> {
    let count = from.count(records)?;
    let mut all = Vec::with_capacity(count);
    let mut last = 0usize;
    for at in 0..count {
        let step = from.count(records)?;
        last += step;
        if last >= records || (at > 0 && step == 0) {
            return from.bad("a note about a record that is not there");
        }
        all.push((last as u32, from.varint()?));
    }
    Ok(all)
}

/// A record of a block, by its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) first: u32,
    pub(crate) end: u32,
    pub(crate) time: u64,
    /// Words between head and touches are hashes of the pieces of its body.
    pub(crate) is_elsewhere: bool,
}

/// Records of a block, one behind the other.
#[derive(Default)]
pub(crate) struct Decoded {
    pub(crate) words: Vec<u64>,
    pub(crate) places: Vec<Place>,
}

/// Reads a block into `all`, whose space is used again.
pub(crate) fn decode_into(block: &[u8], all: &mut Decoded) -> Result<(), Bad> {
    all.places.clear();
    let mut from = Bytes::new(block);
    let count = from.count(WORDS_MAX)?;
    let shape_count = from.count(SHAPES_MAX)?;
    let last = (from.varint()?, from.varint()?);
    let shapes = (0..shape_count).map(|_| Shape::decode(&mut from)).collect::<Result<Vec<_>, _>>()?;
    let order = decode_order(&mut from, count, shape_count)?;
    let odd = get_pairs(&mut from, count)?;
    let touched = get_pairs(&mut from, count)?;
    let times = get_planes::<8>(&mut from, count)?;
    let touch_count = touched.iter().fold(0u64, |all, it| all.saturating_add(it.1));
    let words = order
        .iter()
        .fold(touch_count, |all, it| all.saturating_add((HEAD_WORDS + shapes[usize::from(*it)].width as usize) as u64));
    if words > WORDS_MAX as u64 {
        return from.bad("the records are larger than those of one block are");
    }
    let touches = get_planes::<8>(&mut from, touch_count as usize)?;
    // Heads, touches and bodies fill all of it, so what stands there may stay.
    if all.words.capacity() < words as usize {
        // Blocks of one stream are about as large, so that a little more room does for all of them.
        all.words = Vec::with_capacity((words as usize).next_power_of_two().min(WORDS_MAX));
    }
    all.words.resize(words as usize, 0);
    all.places.reserve(count);
    all.put_heads(&Heads { last, shapes: &shapes, order: &order, odd: &odd, touched: &touched, times, touches });
    all.put_tables(&mut from, &shapes, &order)?;
    if !from.is_empty() {
        return from.bad("there is more than the records need");
    }
    Ok(())
}

#[cfg(test)]
fn decode(block: &[u8]) -> Result<Decoded, Bad> {
    let mut all = Decoded::default();
    decode_into(block, &mut all).map(|()| all)
}

/// Everything of a block but its tables.
struct Heads<'a> {
    /// Number and time of the record before the first.
    last: (u64, u64),
    shapes: &'a [Shape],
    order: &'a [u16],
    odd: &'a [(u32, u64)],
    touched: &'a [(u32, u64)],
    times: Vec<u64>,
    touches: Vec<u64>,
}

impl Decoded {
    /// Places all records, and fills in heads and touches.
    fn put_heads(&mut self, it: &Heads<'_>) {
        // What the records of a shape have in common, ready to be stored.
        let form = |it: &Shape| {
            let Shape { command, kind, remarks, body_words, is_elsewhere, width } = *it;
            let head = Head { body_words, command, kind, remarks, call: 0, touches: 0 };
            (head.to_words()[0], expected(0, kind), width as usize, is_elsewhere)
        };
        let forms: Vec<(u64, u64, usize, bool)> = it.shapes.iter().map(form).collect();
        let (mut odd, mut touched) = (it.odd.iter().peekable(), it.touched.iter().peekable());
        let (mut last, mut first, mut touches) = (it.last, 0usize, &it.touches[..]);
        for (index, (table, time)) in it.order.iter().zip(&it.times).enumerate() {
            let is_this = |it: &&(u32, u64)| it.0 as usize == index;
            let (head, step, width, is_elsewhere) = forms[usize::from(*table)];
            let call = odd.next_if(is_this).map_or(last.0.wrapping_add(step), |it| it.1);
            let touch_count = touched.next_if(is_this).map_or(0, |it| it.1 as usize);
            last = (call, last.1.wrapping_add(*time));
            self.words[first] = head;
            self.words[first + 1] = call & CALL_MAX | (touch_count as u64) << TOUCHES_SHIFT;
            let body_end = first + HEAD_WORDS + width;
            let end = body_end + touch_count;
            if touch_count > 0 {
                let (own, rest) = touches.split_at(touch_count);
                self.words[body_end..end].copy_from_slice(own);
                touches = rest;
            }
            self.places.push(Place { first: first as u32, end: end as u32, time: last.1, is_elsewhere });
            first = end;
        }
    }

    /// Fills in the bodies, shape by shape.
    fn put_tables(&mut self, from: &mut Bytes<'_>, shapes: &[Shape], order: &[u16]) -> Result<(), Bad> {
        // Where the bodies of each shape begin, those of one shape together.
        let mut ends = vec![0usize; shapes.len()];
        order.iter().for_each(|it| ends[usize::from(*it)] += 1);
        let mut sum = 0;
        for it in &mut ends {
            (*it, sum) = (sum, sum + *it);
        }
        let mut rows = vec![0u32; order.len()];
        for (table, place) in order.iter().zip(&self.places) {
            let end = &mut ends[usize::from(*table)];
            rows[*end] = place.first + HEAD_WORDS as u32;
            *end += 1;
        }
        let mut first = 0;
        for (shape, end) in shapes.iter().zip(ends) {
            put_table(from, shape.width as usize, &rows[first..end], &mut self.words)?;
            first = end;
        }
        Ok(())
    }
}

/// A lane whose values differ.
struct Lane<'a> {
    word: usize,
    shift: u32,
    are_differences: bool,
    planes: &'a [u8],
}

/// Fills in the bodies of one shape, which begin at `rows`.
fn put_table(from: &mut Bytes<'_>, width: usize, rows: &[u32], words: &mut [u64]) -> Result<(), Bad> {
    let modes = from.take(width * LANES)?;
    // What all have in common is copied to each; the lanes that differ are put on top of it.
    let mut common = vec![0u64; width];
    let mut lanes = Vec::new();
    for (lane, mode) in modes.iter().enumerate() {
        let (word, shift) = (lane / LANES, 32 * (lane % LANES) as u32);
        match *mode {
            ALL_ALIKE => common[word] |= (from.count(u32::MAX as usize)? as u64) << shift,
            PLAIN | DIFFERENCES => {
                let planes = take_planes::<4>(from, rows.len())?;
                lanes.push(Lane { word, shift, are_differences: *mode == DIFFERENCES, planes });
            }
            _ => return from.bad("a lane is stored in no known way"),
        }
    }
    for row in rows {
        let first = *row as usize;
        words[first..first + width].iter_mut().zip(&common).for_each(|(to, it)| *to = *it);
    }
    lanes.iter().for_each(|it| it.put(rows, words));
    Ok(())
}

impl Lane<'_> {
    fn put(&self, rows: &[u32], words: &mut [u64]) {
        let mut last = 0u32;
        each_of_planes(self.planes, rows.len(), |row, value| {
            let value = if self.are_differences {
                last = last.wrapping_add(unfold(value as u32));
                last
            } else {
                value as u32
            };
            words[rows[row] as usize + self.word] |= u64::from(value) << self.shift;
        });
    }
}

/// Which table each record is in.
fn decode_order(from: &mut Bytes<'_>, count: usize, shapes: usize) -> Result<Vec<u16>, Bad> {
    let order: Vec<u16> = if shapes <= 256 {
        from.take(count)?.iter().map(|it| u16::from(*it)).collect()
    } else {
        from.take(count * 2)?.chunks_exact(2).map(|it| u16::from_le_bytes([it[0], it[1]])).collect()
    };
    match order.iter().all(|it| usize::from(*it) < shapes) {
        true => Ok(order),
        false => from.bad("a record of a shape that is not there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(command: u16, kind: u8, call: u64, body: usize, touches: usize) -> Head {
        Head { body_words: (HEAD_WORDS + body) as u32, command, kind, remarks: 0, call, touches: touches as u32 }
    }

    /// Records of all sorts, some numbers of which count up, some are alike, some are random.
    fn records() -> Vec<(u64, Head, Vec<u64>, Vec<u64>)> {
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
            let touches: Vec<u64> = (0..if index % 31 == 0 { next() % 4 } else { 0 }).map(|_| next()).collect();
            all.push((time, head(command, u8::from(is_leave), call, body.len(), touches.len()), body, touches));
        }
        all
    }

    #[test]
    fn records_come_back_word_for_word_with_their_times() {
        let all = records();
        let mut gather = Gather::after((40, 900));
        for (time, head, body, touches) in &all {
            gather.push(*time, *head, Body::Here(body), touches);
        }
        let decoded = decode(&gather.encode()).expect("our own block is whole");
        assert_eq!(decoded.places.len(), all.len());
        for (place, (time, head, body, touches)) in decoded.places.iter().zip(&all) {
            let words: Vec<u64> = head.to_words().into_iter().chain(body.clone()).chain(touches.clone()).collect();
            assert_eq!(decoded.words[place.first as usize..place.end as usize], words);
            assert_eq!(place.time, *time);
        }
    }

    #[test]
    fn many_shapes_and_bodies_elsewhere_come_back() {
        let mut gather = Gather::after((0, 0));
        for call in 1..=700u64 {
            let pieces = [call, call + 1];
            let head = Head { body_words: 5000, ..head(call as u16, 0, call, 0, 0) };
            gather.push(call, head, Body::Elsewhere(&pieces), &[]);
        }
        let decoded = decode(&gather.encode()).expect("our own block is whole");
        assert!(decoded.places.iter().all(|it| it.is_elsewhere));
        assert_eq!(decoded.words[decoded.places[699].first as usize + HEAD_WORDS..], [700, 701]);
    }

    #[test]
    fn damaged_columns_are_errors_and_never_large() {
        let mut gather = Gather::after((40, 900));
        for (time, head, body, touches) in &records() {
            gather.push(*time, *head, Body::Here(body), touches);
        }
        let good = gather.encode();
        let mut seed = 7u64;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let mut bad = good.clone();
            let at = (seed >> 20) as usize % bad.len().min(400);
            bad[at] = (seed >> 50) as u8;
            if let Ok(decoded) = decode(&bad) {
                assert!(decoded.words.len() <= WORDS_MAX);
            }
            bad.truncate((seed >> 30) as usize % good.len());
            assert!(decode(&bad).is_err());
        }
    }

    #[test]
    fn differences_of_both_signs_fold() {
        for step in [0, 1, u32::MAX, 5, u32::MAX - 4, 1 << 31, (1 << 31) - 1] {
            assert_eq!(unfold(fold(step)), step);
        }
        assert!(fold(u32::MAX) < 3);
    }
}
