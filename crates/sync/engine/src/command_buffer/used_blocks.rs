//! What a command buffer has used so far, as long as it uses nothing twice, unless it only reads it: nothing can be wrong
//! inside of it until then, and its check is put off.
//!
//! Whether a range was used is found out roughly, by blocks: a range may be taken for one that was used, and then the
//! check is made, but never the other way round.

use std::ops::RangeInclusive;

use lavascope_sync_ir::{Barrier, Dependency, DependencyTarget};

use crate::access::addressed_access::AddressedAccess;
use crate::command_buffer::plans::{CommandPlans, LastCommand, low_bits};

/// Blocks that were used. A range lies in one or two blocks, which are as large as it is at most.
#[derive(Default)]
pub(crate) struct UsedBlocks {
    /// Each has the number of the block, its size, and whether it was written; zero where there is none. Its length is
    /// zero or a power of two.
    slots: Vec<u64>,
    count: usize,
    /// Sizes of blocks that there are, as powers of two.
    sizes: u64,
}

/// Blocks are at least so large, as a power of two: there is no room for the numbers of smaller ones.
const SIZE_MIN: u32 = 7;
/// Ranges up to so much larger than a block that was used are held against all blocks that they reach.
const SMALLER_MAX: u32 = 3;
const SLOTS_MIN: usize = 64;
/// Slots that it is not worth to empty for the next command buffer.
const SLOTS_KEPT: usize = 1 << 14;

impl UsedBlocks {
    /// For another command buffer.
    pub(crate) fn clear(&mut self) {
        if self.slots.len() > SLOTS_KEPT.max(8 * self.count) {
            self.slots = Vec::new();
        }
        self.slots.fill(0);
        (self.count, self.sizes) = (0, 0);
    }

    /// Whether the last command of a command buffer uses nothing that those before it have used, unless both only read
    /// it. If so, it is one of those from now on.
    pub(crate) fn insert_last_if_unused(&mut self, plans: &CommandPlans) -> bool {
        match plans.last() {
            LastCommand::Barrier(Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies }) => {
                dependencies.iter().all(has_no_access)
            }
            LastCommand::BufferAction(addressed, writes) => self.insert_all_if_unused(addressed, writes),
            LastCommand::Other => false,
        }
    }

    /// If this returns false, some blocks of the command may be inserted already. That is harmless: nobody uses the set
    /// after that.
    fn insert_all_if_unused(&mut self, addressed: &[AddressedAccess], writes: u64) -> bool {
        if 2 * (self.count + 2 * addressed.len()) > self.slots.len() {
            self.grow(addressed.len());
        }
        let mut at = 0;
        while let Some(addressed_access) = addressed.get(at) {
            let first = at;
            // A command does not conflict with itself.
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

    /// Whether it is not in blocks of other sizes.
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

    /// The slot of a block, or the one that it would have. There are empty ones.
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

/// Whether a dependency does nothing by itself.
fn has_no_access(dependency: &Dependency) -> bool {
    matches!(dependency.target, DependencyTarget::Global | DependencyTarget::Resource { .. })
}

/// The size of the blocks that a range lies in, as a power of two.
#[inline]
fn block_size_log2(addressed_access: &AddressedAccess) -> u32 {
    let bytes = (addressed_access.range.end - addressed_access.range.start).max(1);
    (64 - (bytes - 1).leading_zeros()).max(SIZE_MIN)
}

/// The blocks of a size that a range reaches.
#[inline]
fn blocks(addressed_access: &AddressedAccess, size: u32) -> RangeInclusive<u64> {
    let last = addressed_access.range.end.max(addressed_access.range.start + 1) - 1;
    (addressed_access.range.start >> size)..=(last >> size)
}

/// What a slot has of a block: never zero, and the lowest bit is free.
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
    use crate::test_rng::TestRng;

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
        let mut dice = TestRng(5);
        let mut fresh = UsedBlocks::default();
        let mut taken = 0;
        for _ in 0..300 {
            fresh.clear();
            let mut used: Vec<(Range<u64>, bool)> = Vec::new();
            for _ in 0..60 {
                let (start, size) = (dice.below(1 << 20), dice.below(12));
                let range = start..start + 1 + dice.below(1 << size);
                let is_write = dice.below(2) == 0;
                let meets = |it: &(Range<u64>, bool)| it.0.start < range.end && range.start < it.0.end;
                let conflicts = used.iter().any(|it| meets(it) && (it.1 || is_write));
                let is_taken = fresh.insert_all_if_unused(&[addressed_access(range.clone())], u64::from(is_write));
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
        let mut fresh = UsedBlocks::default();
        for at in 0..5000 {
            let at = at * 256;
            assert!(fresh.insert_all_if_unused(&[addressed_access(at..at + 256)], 1));
        }
        assert!(!fresh.insert_all_if_unused(&[addressed_access(300..301)], 0), "it was written");
        let far = [addressed_access(1 << 40..(1 << 40) + 256)];
        assert!(fresh.insert_all_if_unused(&far, 0) && fresh.insert_all_if_unused(&far, 0));
        assert!(!fresh.insert_all_if_unused(&far, 1), "it was read");
        // What is large lies in large blocks, of which there are few.
        let mut large = UsedBlocks::default();
        assert!(large.insert_all_if_unused(&[addressed_access(100..100 + (1 << 36))], 0) && large.count <= 2);
        // Of three ranges of a command only the last is written.
        let three = [0, 1, 2].map(|it| (1 << 42) + it * 512).map(|it| addressed_access(it..it + 16));
        assert!(fresh.insert_all_if_unused(&three, 4));
        assert!(
            fresh.insert_all_if_unused(&three[..1], 0)
                && fresh.insert_all_if_unused(&three[1..2], 0)
                && !fresh.insert_all_if_unused(&three[2..], 0)
        );
        // One command may read and write the same.
        let far = 1 << 41;
        let both =
            [addressed_access(far..far + 16), addressed_access(far..far + 16), addressed_access(far + 512..far + 528)];
        assert!(
            fresh.insert_all_if_unused(&both, 2)
                && !fresh.insert_all_if_unused(&both[..1], 0)
                && fresh.insert_all_if_unused(&both[2..], 0)
        );
        // As many as a command can have here, all of the same range, of which the last is written.
        let far = 1 << 43;
        let all = [0; 64].map(|_| addressed_access(far..far + 16));
        assert!(fresh.insert_all_if_unused(&all, 1 << 63) && !fresh.insert_all_if_unused(&all[..1], 0));
    }
}
