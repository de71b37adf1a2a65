//! The table of addresses: a tree of fixed depth, so that shaders find the buffer of an address without a loop.
//!
//! A word of the tree is the place of another node, or of the record of a range. The ranges that begin in a block of
//! addresses are told apart by going down as far as one begins in it: then it is that one or the one before. Blocks of
//! 64 GiB are found by a hash without collisions among those that have buffers; whatever else ends up there is told
//! apart in the end, since the whole address is compared.

use spirv::Op;

use crate::{
    Table,
    context::{Context, emit},
    helpers::begin,
    tables::AddressRange,
};

/// Words before the first record: how many ranges there are, the hash's factor, the scratch memory, the hash's shift,
/// and where the nodes begin.
const ADDRESS_HEAD: u32 = 8;
/// Words of a record: its own place, then address and bytes, the lower half first. The first record is of no range.
const RECORD_WORDS: u32 = 5;
const FACTOR: u32 = 1;
const SHIFT: u32 = 4;
const NODES: u32 = 5;
/// Bits of an address that are inside of a block that is hashed.
const BLOCK_BITS: u32 = 36;
/// Where the bits of each level begin, and how many there are.
const LEVELS: [(u32, u32); 4] = [(26, 10), (17, 9), (8, 9), (0, 8)];
/// No buffer is larger than so many blocks.
const BLOCKS_MAX: u32 = 1 << 14;
/// Words of a table with one range.
pub const ADDRESS_WORDS_LEAST: u32 = ADDRESS_HEAD + 2 * RECORD_WORDS + 2;
/// Factors that are tried before the hash gets more places.
const TRIES: u32 = 64;

/// The table of addresses: what overlaps becomes one range, since no address tells the buffers apart.
///
/// Accesses that are wrong go to `scratch`: the address of memory that nobody else uses.
pub fn addresses(ranges: &[AddressRange], scratch: u64) -> Vec<u32> {
    let merged = merged(ranges);
    let count = merged.len() as u32;
    let nodes = ADDRESS_HEAD + (count + 1) * RECORD_WORDS;
    let blocks = used_blocks(&merged);
    let (factor, shift) = hash_of(&blocks);
    let mut words = vec![count, factor, scratch as u32, (scratch >> 32) as u32, shift, nodes, 0, 0];
    let none = AddressRange { address: 0, bytes: 0 };
    for it in std::iter::once(&none).chain(&merged) {
        words.push(words.len() as u32);
        words.extend([it.address as u32, (it.address >> 32) as u32, it.bytes as u32, (it.bytes >> 32) as u32]);
    }
    let starts: Vec<u64> = merged.iter().map(|it| it.address).collect();
    words.resize(words.len() + (1usize << (32 - shift)), record(starts.len().min(1)));
    for block in blocks {
        let start = u64::from(block) << BLOCK_BITS;
        let before = starts.partition_point(|it| *it <= start);
        let inside = starts[before..].partition_point(|it| it - start < 1 << BLOCK_BITS);
        let place = nodes as usize + slot(block, factor, shift);
        words[place] = grow(&mut words, &starts, before, inside, start, 0);
    }
    words
}

/// Where the record of a range is; the first one is of no range.
fn record(number: usize) -> u32 {
    ADDRESS_HEAD + number as u32 * RECORD_WORDS
}

fn merged(ranges: &[AddressRange]) -> Vec<AddressRange> {
    let mut sorted: Vec<AddressRange> = ranges.iter().copied().filter(|it| it.bytes > 0).collect();
    sorted.sort_unstable();
    let mut merged: Vec<AddressRange> = Vec::with_capacity(sorted.len());
    for it in sorted {
        match merged.last_mut() {
            Some(last) if it.address - last.address < last.bytes => {
                last.bytes = last.bytes.max((it.address - last.address).saturating_add(it.bytes));
            }
            _ => merged.push(it),
        }
    }
    merged
}

/// The numbers of blocks that have bytes of a range, in their order. One range alone is found everywhere.
fn used_blocks(ranges: &[AddressRange]) -> Vec<u32> {
    let block = |address: u64| (address >> BLOCK_BITS) as u32;
    let mut blocks: Vec<u32> = Vec::new();
    for it in ranges.iter().filter(|_| ranges.len() > 1) {
        let from = blocks.last().map_or(block(it.address), |before| block(it.address).max(before + 1));
        let last = block(it.address.saturating_add(it.bytes - 1)).min(from.saturating_add(BLOCKS_MAX));
        blocks.extend(from..=last);
    }
    blocks
}

/// A factor and a shift that lead every block to another place. There are never more places than numbers up to the
/// largest block: 2048 of them for addresses of 47 bits, wherever the buffers are.
fn hash_of(blocks: &[u32]) -> (u32, u32) {
    let least = blocks.len().max(2).next_power_of_two().trailing_zeros();
    let all = blocks.last().map_or(0, |it| 32 - it.leading_zeros()).max(least);
    for bits in least..=24 {
        if bits == all {
            // The number itself.
            return (1 << (32 - bits), 32 - bits);
        }
        let mut factor: u32 = 0x9e37_79b1;
        for _ in 0..TRIES {
            let shift = 32 - bits;
            let mut is_taken = vec![false; 1 << bits];
            let is_first = |block: &u32| !std::mem::replace(&mut is_taken[slot(*block, factor, shift)], true);
            if blocks.iter().all(is_first) {
                return (factor, shift);
            }
            factor = factor.wrapping_mul(0x2c1b_3c6d).wrapping_add(0x1234_5678) | 1;
        }
    }
    // Petabytes of buffers: of blocks that meet, only the last one's are found.
    (0x9e37_79b1, 8)
}

fn slot(block: u32, factor: u32, shift: u32) -> usize {
    (block.wrapping_mul(factor) >> shift) as usize
}

/// What stands for a block at a level: a record, or a node that it makes. `before` ranges begin before it or with it,
/// and `inside` more in it.
fn grow(words: &mut Vec<u32>, starts: &[u64], before: usize, inside: usize, start: u64, level: usize) -> u32 {
    let Some((from, bits)) = LEVELS.get(level).copied().filter(|_| inside > 1) else {
        return record(before + inside.min(1));
    };
    let node = words.len();
    words.resize(node + (1usize << bits), 0);
    let mut before = before;
    let last = before + inside;
    for entry in 0..1usize << bits {
        let start = start + ((entry as u64) << from);
        before += starts[before..last].partition_point(|it| *it <= start);
        let inside = starts[before..last].partition_point(|it| it - start < 1 << from);
        words[node + entry] = grow(words, starts, before, inside, start, level + 1);
    }
    node as u32
}

/// The function that shaders call: the bytes from an address to the end of its buffer, and those before it; none of
/// either, where there is no buffer.
pub(crate) fn find(cx: &mut Context<'_>) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (uint, boolean, pair, function) = (cx.ids.uint, cx.ids.boolean, cx.ids.uint_pair, cx.ids.find);
    let parameters = begin(cx, code, function, pair, 2);
    let [low, high] = parameters[..] else { unreachable!("two parameters were asked for") };
    let table = cx.table(code, Table::Addresses);
    let found = descend(cx, code, table, [low, high]);
    let start = [1, 2].map(|word| record_word(cx, code, table, found, word));
    let is_later = is_less(cx, code, [low, high], start);
    let size = cx.number(RECORD_WORDS);
    let before = cx.value(code, Op::ISub, uint, &[found, size]);
    let found = cx.value(code, Op::Select, uint, &[is_later, before, found]);
    let [start_low, start_high, length_low, length_high] =
        [1, 2, 3, 4].map(|word| record_word(cx, code, table, found, word));
    let offset = less(cx, code, [low, high], [start_low, start_high]);
    let is_in = is_less(cx, code, offset, [length_low, length_high]);
    let left = less(cx, code, [length_low, length_high], offset);
    let zero = cx.number(0);
    // What does not fit into a word is as large as can be; what is before is cut further, since it is added to others.
    let both = [(left, u32::MAX), (offset, 0x3fff_ffff)].map(|([low, high], most)| {
        let most = cx.number(most);
        let is_small = cx.value(code, Op::IEqual, boolean, &[high, zero]);
        let is_low = cx.value(code, Op::ULessThan, boolean, &[low, most]);
        let fits = cx.value(code, Op::LogicalAnd, boolean, &[is_small, is_low]);
        let cut = cx.value(code, Op::Select, uint, &[fits, low, most]);
        cx.value(code, Op::Select, uint, &[is_in, cut, zero])
    });
    let found = cx.value(code, Op::CompositeConstruct, pair, &both);
    emit(code, Op::ReturnValue, &[found]);
    emit(code, Op::FunctionEnd, &[]);
    std::mem::take(code)
}

/// The record of the last range that may have an address, or of the one behind it.
fn descend(cx: &mut Context<'_>, code: &mut Vec<u32>, table: u32, [low, high]: [u32; 2]) -> u32 {
    let (uint, boolean, zero) = (cx.ids.uint, cx.ids.boolean, cx.number(0));
    let [factor, shift, nodes] = [FACTOR, SHIFT, NODES].map(|place| {
        let place = cx.number(place);
        cx.word(code, table, place)
    });
    let by = cx.number(BLOCK_BITS - 32);
    let block = cx.value(code, Op::ShiftRightLogical, uint, &[high, by]);
    let product = cx.value(code, Op::IMul, uint, &[block, factor]);
    let slot = cx.value(code, Op::ShiftRightLogical, uint, &[product, shift]);
    let place = cx.value(code, Op::IAdd, uint, &[nodes, slot]);
    let mut at = cx.word(code, table, place);
    for (from, bits) in LEVELS {
        let mut part = low;
        if from > 0 {
            let from = cx.number(from);
            part = cx.value(code, Op::ShiftRightLogical, uint, &[low, from]);
        }
        if from + bits > 32 {
            let by = cx.number(32 - from);
            let upper = cx.value(code, Op::ShiftLeftLogical, uint, &[high, by]);
            part = cx.value(code, Op::BitwiseOr, uint, &[part, upper]);
        }
        let mask = cx.number((1 << bits) - 1);
        let part = cx.value(code, Op::BitwiseAnd, uint, &[part, mask]);
        // The first word of a record is its own place: whoever has found one stays there.
        let is_node = cx.value(code, Op::UGreaterThanEqual, boolean, &[at, nodes]);
        let part = cx.value(code, Op::Select, uint, &[is_node, part, zero]);
        let place = cx.value(code, Op::IAdd, uint, &[at, part]);
        at = cx.word(code, table, place);
    }
    at
}

fn record_word(cx: &mut Context<'_>, code: &mut Vec<u32>, table: u32, record: u32, word: u32) -> u32 {
    let word = cx.number(word);
    let place = cx.value(code, Op::IAdd, cx.ids.uint, &[record, word]);
    cx.word(code, table, place)
}

/// Whether a number of two words is below another one.
fn is_less(cx: &mut Context<'_>, code: &mut Vec<u32>, left: [u32; 2], right: [u32; 2]) -> u32 {
    let boolean = cx.ids.boolean;
    let is_below = cx.value(code, Op::ULessThan, boolean, &[left[1], right[1]]);
    let is_equal = cx.value(code, Op::IEqual, boolean, &[left[1], right[1]]);
    let is_low = cx.value(code, Op::ULessThan, boolean, &[left[0], right[0]]);
    let is_at = cx.value(code, Op::LogicalAnd, boolean, &[is_equal, is_low]);
    cx.value(code, Op::LogicalOr, boolean, &[is_below, is_at])
}

/// The difference of two numbers of two words.
fn less(cx: &mut Context<'_>, code: &mut Vec<u32>, left: [u32; 2], right: [u32; 2]) -> [u32; 2] {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one] = [0, 1].map(|it| cx.number(it));
    let low = cx.value(code, Op::ISub, uint, &[left[0], right[0]]);
    let borrows = cx.value(code, Op::ULessThan, boolean, &[left[0], right[0]]);
    let borrow = cx.value(code, Op::Select, uint, &[borrows, one, zero]);
    let high = cx.value(code, Op::ISub, uint, &[left[1], right[1]]);
    [low, cx.value(code, Op::ISub, uint, &[high, borrow])]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a shader finds: where the range begins, and how many bytes it has.
    fn found(words: &[u32], address: u64) -> Option<(u64, u64)> {
        let (low, high, nodes) = (address as u32, (address >> 32) as u32, words[NODES as usize]);
        let at = slot(high >> (BLOCK_BITS - 32), words[FACTOR as usize], words[SHIFT as usize]);
        let mut at = words[nodes as usize + at];
        for (from, bits) in LEVELS {
            let part = ((u64::from(high) << 32 | u64::from(low)) >> from) as u32 & ((1 << bits) - 1);
            at = words[(at + if at >= nodes { part } else { 0 }) as usize];
        }
        let wide = |at: u32| u64::from(words[at as usize]) | u64::from(words[at as usize + 1]) << 32;
        if address < wide(at + 1) {
            at -= RECORD_WORDS;
        }
        (address.wrapping_sub(wide(at + 1)) < wide(at + 3)).then(|| (wide(at + 1), wide(at + 3)))
    }

    fn expect(ranges: &[AddressRange]) {
        let (words, all) = (addresses(ranges, 0), merged(ranges));
        let edges = all.iter().flat_map(|it| {
            let end = it.address.wrapping_add(it.bytes);
            let near = [it.address, it.address + it.bytes / 2, end];
            near.into_iter().flat_map(|it| [it.wrapping_sub(1), it, it.wrapping_add(1)])
        });
        let far = [0, 1, 0xffff, 1 << 32, 1 << 36, (1 << 47) - 1, u64::MAX];
        for address in edges.chain(far) {
            let range = all.iter().find(|it| address.wrapping_sub(it.address) < it.bytes);
            assert_eq!(found(&words, address), range.map(|it| (it.address, it.bytes)), "{address:#x}");
        }
    }

    #[test]
    fn every_address_is_found_in_its_range() {
        let of = |address, bytes| AddressRange { address, bytes };
        expect(&[]);
        expect(&[of(0x7f12_3456_7800, 256)]);
        expect(&[of(0, u64::MAX)]);
        assert_eq!(addresses(&[of(0, u64::MAX)], 0).len(), ADDRESS_WORDS_LEAST as usize);
        expect(&[of(1, 1), of(2, 1), of(3, 5), of(9, 1)]);
        // Side by side, around the edges of blocks of every size, and far larger than them.
        let next = (0..2000).map(|it| of(0x7fff_fff0_0000 + it * 256, 256));
        expect(&next.collect::<Vec<_>>());
        let edges = [8, 17, 26, 32, 36, 40].map(|it| 1u64 << it);
        let around = edges.iter().flat_map(|it| [of(it - 3, 2), of(it - 1, 3), of(it + 2, 1), of(it + 7, 100)]);
        expect(&around.collect::<Vec<_>>());
        expect(&[of(0x10_0000, 1 << 40), of(1 << 45, 3), of((1 << 45) + 3, 1 << 38), of(0xffff_8000_0000_0000, 64)]);
    }

    #[test]
    fn random_ranges_are_found() {
        let mut state = 0x1234_5678_9abc_def1u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..40 {
            let count = 1 + random() % 200;
            let spread = 8 + random() % 40;
            let base = random() >> 17;
            let one = |_| AddressRange {
                address: base.wrapping_add(random() % (1 << spread)) & ((1 << 47) - 1),
                bytes: random() % (1 << (random() % 20)),
            };
            let ranges: Vec<AddressRange> = (0..count).map(one).collect();
            expect(&ranges);
        }
    }

    /// However buffers are spread over the addresses that a device has, the blocks take one word each.
    #[test]
    fn buffers_in_many_blocks_take_little_memory() {
        let mut state = 7_u64;
        let mut random = move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state >> 33
        };
        for count in [3, 40, 600, 2047] {
            let ranges: Vec<AddressRange> = (0..count)
                .map(|_| AddressRange { address: ((random() % 2048) << BLOCK_BITS) | ((random() % 9) << 8), bytes: 64 })
                .collect();
            expect(&ranges);
            let (words, all) = (addresses(&ranges, 0), merged(&ranges));
            let places = 1_usize << (32 - words[SHIFT as usize]);
            assert!(places <= 2048, "{count}: {places}");
            assert!(words.len() <= ADDRESS_HEAD as usize + (all.len() + 1) * 5 + places + all.len() / 2 * 2300);
        }
        let every: Vec<AddressRange> =
            (1..4096).map(|it| AddressRange { address: it << BLOCK_BITS, bytes: 1 << 20 }).collect();
        expect(&every);
        assert!(addresses(&every, 0).len() < 4096 * 7);
    }

    #[test]
    fn many_small_buffers_take_little_memory() {
        let ranges: Vec<AddressRange> =
            (0..100_000).map(|it| AddressRange { address: 0x5555_0000_1000 + it * 256, bytes: 256 }).collect();
        assert!(addresses(&ranges, 0).len() < 100_000 * 8);
    }
}
