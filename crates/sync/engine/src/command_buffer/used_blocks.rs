//! The memory that a command buffer has used so far, to postpone its check.
//!
//! A hazard inside a command buffer needs two accesses to the same memory, at least one of them a write. Until a
//! command buffer makes such a pair, the engine postpones the check of its commands.
//!
//! Memory is compared in blocks. A block may be larger than the range that was used, so this check may find a conflict
//! that does not exist, but it never misses one.

use std::ops::RangeInclusive;

use lavascope_sync_ir::{Barrier, Dependency, DependencyTarget};

use crate::access::addressed_access::AddressedAccess;
use crate::command_buffer::prepared_commands::{LastCommand, PreparedCommands, low_bits};

/// The set of used blocks. A range lies in one or two blocks that are at most twice as large as the range, or of the
/// minimum size.
#[derive(Default)]
pub(crate) struct UsedBlocks {
    /// A hash table. A slot holds the number of a block, its size, and whether it was written; an empty slot is zero.
    /// The length is zero or a power of two.
    slots: Vec<u64>,
    count: usize,
    /// One bit for each block size in the table; bit `n` stands for blocks of `1 << n` bytes.
    sizes: u64,
}

/// The smallest block, as a power of two. Numbers of smaller blocks do not fit into a slot.
const SIZE_MIN: u32 = 7;
/// A range that is larger than a used block by up to this power of two is compared with every block that it reaches. A
/// still larger range counts as used.
const SMALLER_MAX: u32 = 3;
const SLOTS_MIN: usize = 64;
/// A table with more slots is freed, because emptying it costs more than allocating a new one.
const SLOTS_KEPT: usize = 1 << 14;

impl UsedBlocks {
    /// Empties the set for another command buffer.
    pub(crate) fn clear(&mut self) {
        if self.slots.len() > SLOTS_KEPT.max(8 * self.count) {
            self.slots = Vec::new();
        }
        self.slots.fill(0);
        (self.count, self.sizes) = (0, 0);
    }

    /// Inserts the memory of the last command if it conflicts with no earlier command. Returns false if it may
    /// conflict.
    pub(crate) fn insert_last_if_unused(&mut self, list: &PreparedCommands) -> bool {
        match list.last() {
            LastCommand::Barrier(Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies }) => {
                dependencies.iter().all(has_no_access)
            }
            LastCommand::BufferAction(addressed, writes) => self.insert_all_if_unused(addressed, writes),
            LastCommand::Other => false,
        }
    }

    /// If this returns false, the set may already contain some blocks of the command. Callers do not use the set after
    /// that.
    fn insert_all_if_unused(&mut self, addressed: &[AddressedAccess], writes: u64) -> bool {
        if 2 * (self.count + 2 * addressed.len()) > self.slots.len() {
            self.grow(addressed.len());
        }
        let mut at = 0;
        while let Some(addressed_access) = addressed.get(at) {
            let first = at;
            // Accesses of one command do not conflict with each other.
            while addressed.get(at).is_some_and(|it| it.range == addressed_access.range) {
                at += 1;
            }
            let is_write = writes >> first & low_bits(at - first) != 0;
            if !self.insert_if_unused(addressed_access, is_write) {
                return false;
            }
        }
        true
    }

    #[inline]
    fn insert_if_unused(&mut self, addressed_access: &AddressedAccess, is_write: bool) -> bool {
        let size = block_size_log2(addressed_access);
        let others = self.sizes & !(1 << size);
        if others != 0 && !self.is_unused(addressed_access, is_write, size, others) {
            return false;
        }
        self.sizes |= 1 << size;
        let (mut block, last) = blocks(addressed_access, size).into_inner();
        while self.insert_block_if_unused(key(block, size), is_write) {
            if block == last {
                return true;
            }
            block += 1;
        }
        false
    }

    #[inline]
    fn insert_block_if_unused(&mut self, key: u64, is_write: bool) -> bool {
        let place = self.slot_index(key);
        let slot = &mut self.slots[place];
        if *slot == 0 {
            *slot = key | u64::from(is_write);
            self.count += 1;
            return true;
        }
        !is_write && *slot & 1 == 0
    }

    /// Whether the range conflicts with no block of another size.
    fn is_unused(&self, addressed_access: &AddressedAccess, is_write: bool, own: u32, mut others: u64) -> bool {
        while others != 0 {
            let size = others.trailing_zeros();
            others &= others - 1;
            let is_used = |block: u64| {
                let found = self.slots[self.slot_index(key(block, size))];
                found != 0 && (is_write || found & 1 != 0)
            };
            if size + SMALLER_MAX < own || blocks(addressed_access, size).any(is_used) {
                return false;
            }
        }
        true
    }

    /// The slot of a block, or the empty slot in which it would be stored. The table is never full.
    #[inline]
    fn slot_index(&self, key: u64) -> usize {
        let (slots, mask) = (&self.slots[..], self.slots.len() - 1);
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while slots[at] != 0 && slots[at] & !1 != key {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self, addressed: usize) {
        let len = (4 * (self.count + 2 * addressed)).next_power_of_two().max(SLOTS_MIN);
        let old = std::mem::replace(&mut self.slots, vec![0; len]);
        for old_item in old.into_iter().filter(|it| *it != 0) {
            let place = self.slot_index(old_item & !1);
            self.slots[place] = old_item;
        }
    }
}

/// Whether a dependency makes no access of its own, as a layout transition does.
fn has_no_access(dependency: &Dependency) -> bool {
    matches!(dependency.target, DependencyTarget::Global | DependencyTarget::Resource { .. })
}

/// The size of the blocks in which a range is stored, as a power of two.
#[inline]
fn block_size_log2(addressed_access: &AddressedAccess) -> u32 {
    let bytes = (addressed_access.range.end - addressed_access.range.start).max(1);
    (64 - (bytes - 1).leading_zeros()).max(SIZE_MIN)
}

/// The blocks of a size that overlap a range.
#[inline]
fn blocks(addressed_access: &AddressedAccess, size: u32) -> RangeInclusive<u64> {
    let last = addressed_access.range.end.max(addressed_access.range.start + 1) - 1;
    (addressed_access.range.start >> size)..=(last >> size)
}

/// A block as stored in a slot. It is never zero; the lowest bit is free for the write flag.
#[inline]
fn key(block: u64, size: u32) -> u64 {
    block << 7 | u64::from(size) << 1
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use lavascope_sync_ir::ResourceId;

    use super::*;
    use crate::access::access_order::AccessOrder;
    use crate::access::usages::TRANSITION_WRITE;
    use crate::memory::addresses::ResourceIdentity;
    use lavascope_test_support::TestRng;

    fn addressed_access(range: Range<u64>) -> AddressedAccess {
        let (resource, identity) = (ResourceId(0), ResourceIdentity::default());
        AddressedAccess {
            range,
            resource,
            identity,
            access_index: 0,
            usage: TRANSITION_WRITE,
            order: AccessOrder::None,
        }
    }

    #[test]
    fn what_is_used_again_is_never_fresh() {
        let mut dice = TestRng::new(5);
        let mut used_blocks = UsedBlocks::default();
        let mut taken = 0;
        for _ in 0..300 {
            used_blocks.clear();
            let mut used: Vec<(Range<u64>, bool)> = Vec::new();
            for _ in 0..60 {
                let (start, size) = (dice.below(1 << 20), dice.below(12));
                let range = start..start + 1 + dice.below(1 << size);
                let is_write = dice.below(2) == 0;
                let meets = |it: &(Range<u64>, bool)| it.0.start < range.end && range.start < it.0.end;
                let conflicts = used.iter().any(|it| meets(it) && (it.1 || is_write));
                let is_taken =
                    used_blocks.insert_all_if_unused(&[addressed_access(range.clone())], u64::from(is_write));
                assert!(!(conflicts && is_taken), "{range:?} after {used:?}");
                if is_taken {
                    taken += 1;
                    used.push((range, is_write));
                }
            }
        }
        assert!(taken > 3000, "{taken} of 18,000");
    }

    #[test]
    fn what_lies_side_by_side_is_fresh() {
        let mut used_blocks = UsedBlocks::default();
        for at in 0..5000 {
            let at = at * 256;
            assert!(used_blocks.insert_all_if_unused(&[addressed_access(at..at + 256)], 1));
        }
        assert!(!used_blocks.insert_all_if_unused(&[addressed_access(300..301)], 0), "it was written");
        let far = [addressed_access(1 << 40..(1 << 40) + 256)];
        assert!(used_blocks.insert_all_if_unused(&far, 0) && used_blocks.insert_all_if_unused(&far, 0));
        assert!(!used_blocks.insert_all_if_unused(&far, 1), "it was read");
        // A large range takes few blocks, because they are large as well.
        let mut large = UsedBlocks::default();
        assert!(large.insert_all_if_unused(&[addressed_access(100..100 + (1 << 36))], 0) && large.count <= 2);
        // A command with three ranges, of which only the last is written.
        let three = [0, 1, 2].map(|it| (1 << 42) + it * 512).map(|it| addressed_access(it..it + 16));
        assert!(used_blocks.insert_all_if_unused(&three, 4));
        assert!(
            used_blocks.insert_all_if_unused(&three[..1], 0)
                && used_blocks.insert_all_if_unused(&three[1..2], 0)
                && !used_blocks.insert_all_if_unused(&three[2..], 0)
        );
        // A command reads and writes the same range.
        let far = 1 << 41;
        let both =
            [addressed_access(far..far + 16), addressed_access(far..far + 16), addressed_access(far + 512..far + 528)];
        assert!(
            used_blocks.insert_all_if_unused(&both, 2)
                && !used_blocks.insert_all_if_unused(&both[..1], 0)
                && used_blocks.insert_all_if_unused(&both[2..], 0)
        );
        // The largest command: 64 accesses to one range, of which the last is a write.
        let far = 1 << 43;
        let all = [0; 64].map(|_| addressed_access(far..far + 16));
        assert!(used_blocks.insert_all_if_unused(&all, 1 << 63) && !used_blocks.insert_all_if_unused(&all[..1], 0));
    }
}
