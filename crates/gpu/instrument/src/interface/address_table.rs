//! The table of addresses: a tree of fixed depth, so that shaders find the buffer of an address without a loop.
//! A loop costs lavapipe three more rounds of its optimizer, and a dispatch with it is slower the more buffers there are.
//!
//! The tree has five steps, whatever the number of buffers: one by the upper half of an address and four by the bytes
//! of its lower half. The search stops where at most one range begins in a block of addresses. The address is then in
//! that range, or in the range before it, or in none.
//!
//! | words | |
//! | --- | --- |
//! | 0, 1 | the address of scratch memory |
//! | 2, 3 | the number of ranges; unused |
//! | 4, 5 | the factor and the shift of the hash of the upper half |
//! | 6 | where the nodes begin |
//! | 7 | which bits of the upper half count |
//! | 8 for each range | a record |
//! | then | the words that the hash leads to, and the nodes, 256 words each |
//!
//! Places are counted from word 8. A word of a node is the place of another node, if it is not below the beginning of
//! the nodes, else of a record. The upper half of an address, times the factor, shifted right, gives a word of the
//! hash; the factor is chosen so that no two blocks of 4 GiB with buffers share one. A range is cut where such a block
//! ends: within a block only the lower halves are compared. The upper half is compared at the end, since any address
//! may have led to the block.
//!
//! | words of a record | |
//! | --- | --- |
//! | 0 | its own place: a search that has found it stays there |
//! | 1 | the lower half of the address |
//! | 2 | how many bytes of the range are before this piece, at most 2^30 - 1 |
//! | 3 | unused |
//! | 4 | the negated lower half: added to the lower half of an address, it gives the offset |
//! | 5 | the upper half |
//! | 6 | the offset of the last byte of the range |
//! | 7 | all ones if that is 4 GiB away or more, else zero |
//!
//! The first record is of no range, the others are in the order of addresses. Ranges that overlap are merged.

use spirv::{GlslStd450Op, Op};

use crate::ShaderTable;
use crate::checks::report_functions::{begin_helper_with, end_function};
use crate::interface::tables::AddressRange;
use crate::rewrite::context::Context;

/// Words before the first record.
const ADDRESS_HEAD: u32 = 8;
/// Places in the table are counted from behind them; these are the numbers of their halves.
pub(crate) const SCRATCH: u32 = 0;
const HASH: u32 = 1;
/// Words of a record, which is read in two halves.
const RECORD_WORDS: u32 = 8;
const HALF: u32 = RECORD_WORDS / 2;
/// Where the bits of each level begin.
const LEVELS: [u32; 4] = [24, 16, 8, 0];
const NODE_WORDS: u32 = 1 << 8;
/// No range is in more blocks.
const BLOCKS_MAX: u32 = 1 << 16;
/// Words of the table with the range that has all addresses.
pub const ADDRESS_WORDS_MIN: u32 = ADDRESS_HEAD + 2 * RECORD_WORDS + 2;
/// Factors that are tried before the hash gets more places.
const TRIES: u32 = 64;
/// The bytes before an address are added to other numbers, so their count is limited.
const BEFORE_MAX: u32 = 0x3fff_ffff;

/// A range in one block.
struct BlockRange {
    address: u64,
    /// Bytes of the range before the piece, and from its beginning on.
    before: u64,
    bytes: u64,
}

/// The table of addresses: overlapping buffers become one range, since an address does not identify one of them.
///
/// Wrong accesses go to `scratch`: the address of memory without other uses.
pub fn build_address_table(ranges: &[AddressRange], scratch: u64) -> Vec<u32> {
    let merged = merged(ranges);
    let is_all = merged.first().is_some_and(|it| it.address == 0 && it.bytes == u64::MAX);
    let pieces = match is_all {
        true => vec![BlockRange { address: 0, before: u64::MAX, bytes: u64::MAX }],
        false => pieces(&merged),
    };
    let nodes = (pieces.len() as u32 + 1) * RECORD_WORDS;
    let blocks = if is_all { Vec::new() } else { used_blocks(&pieces) };
    let (factor, shift) = hash_of(&blocks);
    let mask = if is_all { 0 } else { u32::MAX };
    let mut words = vec![scratch as u32, (scratch >> 32) as u32, merged.len() as u32, 0, factor, shift, nodes, mask];
    // Nothing is before it, and no range has the last byte of all.
    words.extend([0, 0, 0, 0, 1, u32::MAX, 0, 0]);
    for piece in &pieces {
        let [low, high] = [piece.address as u32, (piece.address >> 32) as u32];
        let last = u32::try_from(piece.bytes - 1).unwrap_or(u32::MAX);
        let more = if last == u32::MAX { u32::MAX } else { 0 };
        words.extend([words.len() as u32 - ADDRESS_HEAD, low, piece.before.min(u64::from(BEFORE_MAX)) as u32, 0]);
        words.extend([low.wrapping_neg(), high, last, more]);
    }
    words.resize(words.len() + (1usize << (32 - shift)), if is_all { record(1) } else { record(0) });
    let starts: Vec<u64> = pieces.iter().map(|it| it.address).collect();
    for block in blocks {
        let start = u64::from(block) << 32;
        let before = starts.partition_point(|it| *it <= start);
        let inside = starts[before..].partition_point(|it| it - start < 1 << 32);
        let place = (ADDRESS_HEAD + nodes) as usize + slot(block, factor, shift);
        words[place] = build_node(&mut words, &starts, before, inside, start, 0);
    }
    words
}

/// Where the record of a piece is; the first one is of none.
fn record(number: usize) -> u32 {
    number as u32 * RECORD_WORDS
}

fn merged(ranges: &[AddressRange]) -> Vec<AddressRange> {
    let mut sorted: Vec<AddressRange> = ranges.iter().copied().filter(|it| it.bytes > 0).collect();
    sorted.sort_unstable();
    let mut merged: Vec<AddressRange> = Vec::with_capacity(sorted.len());
    for address_range in sorted {
        match merged.last_mut() {
            Some(last) if address_range.address - last.address < last.bytes => {
                last.bytes = last.bytes.max((address_range.address - last.address).saturating_add(address_range.bytes));
            }
            _ => merged.push(address_range),
        }
    }
    merged
}

/// Ranges, cut where blocks end.
fn pieces(ranges: &[AddressRange]) -> Vec<BlockRange> {
    let mut pieces = Vec::with_capacity(ranges.len());
    for range in ranges {
        let last = range.address.saturating_add(range.bytes - 1);
        let first = range.address >> 32;
        for block in first..=(last >> 32).min(first + u64::from(BLOCKS_MAX)) {
            let address = range.address.max(block << 32);
            pieces.push(BlockRange {
                address,
                before: address - range.address,
                bytes: (last - address).saturating_add(1),
            });
        }
    }
    pieces
}

/// The numbers of blocks that have pieces, in their order.
fn used_blocks(pieces: &[BlockRange]) -> Vec<u32> {
    let mut blocks: Vec<u32> = pieces.iter().map(|it| (it.address >> 32) as u32).collect();
    blocks.dedup();
    blocks
}

/// A factor and a shift that lead every block to another place. There are never more places than numbers up to the
/// largest block: 32,768 of them for addresses of 47 bits, wherever the buffers are.
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

/// The entry for a block at a level: a record, or a new node. `before` ranges begin before it or with it, and `inside`
/// more in it.
fn build_node(words: &mut Vec<u32>, starts: &[u64], before: usize, inside: usize, start: u64, level: usize) -> u32 {
    let Some(from) = LEVELS.get(level).copied().filter(|_| inside > 1) else {
        return record(before + inside.min(1));
    };
    let node = words.len();
    words.resize(node + NODE_WORDS as usize, 0);
    let mut before = before;
    let last = before + inside;
    for entry in 0..NODE_WORDS as usize {
        let start = start + ((entry as u64) << from);
        before += starts[before..last].partition_point(|it| *it <= start);
        let inside = starts[before..last].partition_point(|it| it - start < 1 << from);
        words[node + entry] = build_node(words, starts, before, inside, start, level + 1);
    }
    node as u32 - ADDRESS_HEAD
}

/// The function that shaders call: the bytes from an address to the end of its buffer, and those before it; none of
/// either, where there is no buffer.
pub(crate) fn find_address_function(cx: &mut Context<'_>) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (uint, boolean, pair, function) = (cx.ids.uint, cx.ids.boolean, cx.ids.uint_pair, cx.ids.find);
    let table = cx.table_parameter();
    let (table, parameters) = begin_helper_with(cx, code, (function, pair), table, 2);
    let [low, high] = parameters[..] else { unreachable!("two parameters were asked for") };
    let table = table.unwrap_or_else(|| cx.table(code, ShaderTable::Addresses));
    let base = cx.address_table(code, table);
    let [zero, one] = [0, 1].map(|it| cx.uint_constant(it));
    let (found, high) = descend(cx, code, (table, base), [low, high]);
    let place = cx.emit_result(code, Op::IAdd, uint, &[found, one]);
    let start = cx.address_word(code, base, place);
    let is_later = cx.emit_result(code, Op::ULessThan, boolean, &[low, start]);
    // The second half of the base of this record or the one before.
    let [before, half] = [HALF.wrapping_neg(), HALF].map(|it| cx.uint_constant(it));
    let half = cx.emit_result(code, Op::Select, uint, &[is_later, before, half]);
    let found = cx.emit_result(code, Op::IAdd, uint, &[found, half]);
    let [less, block, last, more] = cx.address_four(code, table, base, found);
    let offset = cx.emit_result(code, Op::IAdd, uint, &[low, less]);
    let is_block = cx.emit_result(code, Op::IEqual, boolean, &[high, block]);
    let is_low = cx.emit_result(code, Op::ULessThanEqual, boolean, &[offset, last]);
    let is_in = cx.emit_result(code, Op::LogicalAnd, boolean, &[is_block, is_low]);
    let left = cx.emit_result(code, Op::ISub, uint, &[last, offset]);
    let left = cx.emit_result(code, Op::IAdd, uint, &[left, one]);
    let left = cx.emit_result(code, Op::BitwiseOr, uint, &[left, more]);
    let left = cx.emit_result(code, Op::Select, uint, &[is_in, left, zero]);
    let mut before = zero;
    if cx.needs_preceding_bytes {
        let [back, most] = [(HALF - 2).wrapping_neg(), BEFORE_MAX].map(|it| cx.uint_constant(it));
        let place = cx.emit_result(code, Op::IAdd, uint, &[found, back]);
        let earlier = cx.address_word(code, base, place);
        let cut = cx.glsl(code, GlslStd450Op::UMin, &[offset, most]);
        let sum = cx.emit_result(code, Op::IAdd, uint, &[cut, earlier]);
        let sum = cx.glsl(code, GlslStd450Op::UMin, &[sum, most]);
        before = cx.emit_result(code, Op::Select, uint, &[is_in, sum, zero]);
    }
    let found = cx.emit_result(code, Op::CompositeConstruct, pair, &[left, before]);
    end_function(cx, code, Some(found))
}

/// The record of the last piece that may have an address, or of the one behind it; and what counts of the upper half.
fn descend(cx: &mut Context<'_>, code: &mut Vec<u32>, (table, base): (u32, u32), [low, high]: [u32; 2]) -> (u32, u32) {
    let (uint, boolean, zero) = (cx.ids.uint, cx.ids.boolean, cx.uint_constant(0));
    let [factor, shift, nodes, mask] = cx.address_head(code, table, HASH);
    let high = cx.emit_result(code, Op::BitwiseAnd, uint, &[high, mask]);
    let product = cx.emit_result(code, Op::IMul, uint, &[high, factor]);
    let slot = cx.emit_result(code, Op::ShiftRightLogical, uint, &[product, shift]);
    let place = cx.emit_result(code, Op::IAdd, uint, &[nodes, slot]);
    let mut at = cx.address_word(code, base, place);
    for from in LEVELS {
        let mut part = low;
        if from > 0 {
            let from = cx.uint_constant(from);
            part = cx.emit_result(code, Op::ShiftRightLogical, uint, &[low, from]);
        }
        if NODE_WORDS << from != 0 {
            let mask = cx.uint_constant(NODE_WORDS - 1);
            part = cx.emit_result(code, Op::BitwiseAnd, uint, &[part, mask]);
        }
        // The first word of a record is its own index: a search that has found one stays there.
        let is_node = cx.emit_result(code, Op::UGreaterThanEqual, boolean, &[at, nodes]);
        let part = cx.emit_result(code, Op::Select, uint, &[is_node, part, zero]);
        let place = cx.emit_result(code, Op::IAdd, uint, &[at, part]);
        at = cx.address_word(code, base, place);
    }
    (at, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_test_support::TestRng;

    /// The result of the search: the bytes from an address on, and those before it.
    fn found(words: &[u32], address: u64) -> Option<(u32, u32)> {
        let [factor, shift, nodes, mask] = [0, 1, 2, 3].map(|it| words[HASH as usize * 4 + it]);
        let (low, high) = (address as u32, (address >> 32) as u32 & mask);
        let word = |at: u32| words[(ADDRESS_HEAD + at) as usize];
        let mut at = word(nodes + slot(high, factor, shift) as u32);
        for from in LEVELS {
            let part = low >> from & (NODE_WORDS - 1);
            at = word(at + if at >= nodes { part } else { 0 });
        }
        let half = if low < word(at + 1) { at - HALF } else { at + HALF };
        let [less, block, last, more] = [0, 1, 2, 3].map(|it| word(half + it));
        let offset = low.wrapping_add(less);
        let before = (offset.min(BEFORE_MAX) + word(half - 2)).min(BEFORE_MAX);
        (high == block && offset <= last).then(|| ((last - offset).wrapping_add(1) | more, before))
    }

    fn expect(ranges: &[AddressRange]) {
        let (words, all) = (build_address_table(ranges, 0), merged(ranges));
        let edges = all.iter().flat_map(|address_range| {
            let end = address_range.address.wrapping_add(address_range.bytes);
            let near = [
                address_range.address,
                address_range.address + address_range.bytes / 2,
                end,
                address_range.address >> 32 << 32,
                end >> 32 << 32,
            ];
            near.into_iter().flat_map(|it| [it.wrapping_sub(1), it, it.wrapping_add(1)])
        });
        let far = [0, 1, 0xffff, 1 << 32, 1 << 36, (1 << 47) - 1, u64::MAX - 1];
        // The very last byte has no buffer, but nothing reports it if all addresses are in bounds.
        for address in edges.chain(far).filter(|it| *it != u64::MAX) {
            let range = all.iter().find(|it| address.wrapping_sub(it.address) < it.bytes);
            // In a block from which on there are 4 GiB a range has no end.
            let expected = range.map(|address_range| {
                let start = address_range.address.max(address >> 32 << 32);
                let is_all = address_range.bytes == u64::MAX;
                let is_far = is_all || address_range.bytes - (start - address_range.address) >= 1 << 32;
                let left = address_range.bytes - (address - address_range.address);
                let left = if is_far { u32::MAX } else { left as u32 };
                let before = if is_all { u64::MAX } else { address - address_range.address };
                (left, before.min(u64::from(BEFORE_MAX)) as u32)
            });
            assert_eq!(found(&words, address), expected, "{address:#x}");
        }
    }

    #[test]
    fn every_address_is_found_in_its_range() {
        let of = |address, bytes| AddressRange { address, bytes };
        expect(&[]);
        expect(&[of(0x7f12_3456_7800, 256)]);
        expect(&[of(0, u64::MAX)]);
        assert_eq!(build_address_table(&[of(0, u64::MAX)], 0).len(), ADDRESS_WORDS_MIN as usize);
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
        let mut rng = TestRng::new(1);
        let mut random = move || rng.next_u64();
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
        let mut rng = TestRng::new(7);
        for count in [3, 40, 600, 2047] {
            let ranges: Vec<AddressRange> = (0..count)
                .map(|_| AddressRange { address: (rng.below(32768_u64) << 32) | (rng.below(9_u64) << 8), bytes: 64 })
                .collect();
            expect(&ranges);
            let (words, all) = (build_address_table(&ranges, 0), merged(&ranges));
            let places = 1_usize << (32 - words[HASH as usize * 4 + 1]);
            assert!(places <= 32768, "{count}: {places}");
            assert!(words.len() <= ADDRESS_HEAD as usize + (all.len() + 1) * 8 + places + all.len() / 2 * 2300);
        }
        let every: Vec<AddressRange> = (1..4096).map(|it| AddressRange { address: it << 32, bytes: 1 << 20 }).collect();
        expect(&every);
        assert!(build_address_table(&every, 0).len() < 4096 * 10);
    }

    #[test]
    fn many_small_buffers_take_little_memory() {
        let ranges: Vec<AddressRange> =
            (0..100_000).map(|it| AddressRange { address: 0x5555_0000_1000 + it * 256, bytes: 256 }).collect();
        assert!(build_address_table(&ranges, 0).len() < 100_000 * 12);
    }
}
