//! Caches the choices for draws by what is bound, because programs bind the same objects again and again.
//!
//! - Result: the [`DrawChoice`] of a draw.
//! - Key: the pipeline, and for each bind the pipeline layout, the number of the first set, the sets and the dynamic
//!   offsets. All of it is compared; the hash only finds the slot.
//! - Invalidation: an entry is invalid after `DeviceChecks::choice_version` has changed, which happens when a descriptor
//!   set is written or freed, a pipeline or a layout is destroyed, or a variant is built. All entries are invalid when
//!   the command buffer is reset, because the descriptor tables of the choices are freed then.

use std::ops::Range;
use std::sync::Arc;

use super::command_buffer::{BindPointState, BoundSets};
use super::launch_counts::UncheckedLaunch;
use crate::gpu::resource::arena::ArenaRegion;

/// The result of a choice, with which draws are recorded.
#[derive(Clone, Copy)]
pub(crate) struct DrawChoice {
    /// The variant, by its index among the variants of the command buffer.
    pub(crate) variant_index: u32,
    /// Whether binding our set disturbs sets that the application bound.
    pub(crate) is_disturbing: bool,
    /// The descriptor table; none if the draw is not checked.
    pub(crate) table: Option<ArenaRegion>,
    /// Why the draw is not checked.
    pub(crate) unchecked: Option<UncheckedLaunch>,
}

/// See the module documentation.
#[derive(Default)]
pub(crate) struct ChoiceCache {
    /// In the order of addition. The index of an entry stays valid until all are cleared.
    pub(crate) entries: Vec<ChoiceEntry>,
    /// A hash table: the index of the last entry whose hash begins with the number of the slot. Clearing the entries
    /// leaves the slots as they are, because a lookup compares the key anyway.
    slots: Vec<u32>,
    /// The keys of the entries, one after the other.
    keys: Vec<u64>,
}

/// A choice and its key.
pub(crate) struct ChoiceEntry {
    pub(crate) choice: DrawChoice,
    choice_version: u64,
    hash: u64,
    /// The range of the key in `ChoiceCache::keys`.
    key: Range<u32>,
}

/// Initial and largest number of slots. The number is a power of two.
const SLOTS_MIN: usize = 16;
const SLOTS_MAX: usize = 1024;
const EMPTY_SLOT: u32 = u32::MAX;
/// Largest number of entries. A program that reaches it writes sets all the time, and its old entries are invalid.
const ENTRIES_MAX: usize = 4096;

impl ChoiceCache {
    /// The index of the entry for what is bound.
    #[inline(always)]
    pub(crate) fn find(&self, bound: &BindPointState, choice_version: u64) -> Option<u32> {
        let index = *self.slots.get(self.slot_of(bound.hash()))?;
        let entry = self.entries.get(index as usize)?;
        let key = &self.keys[entry.key.start as usize..entry.key.end as usize];
        (entry.choice_version == choice_version && bound.matches_key(key)).then_some(index)
    }

    /// Adds the choice for what is bound, and returns its index.
    pub(crate) fn add(&mut self, bound: &BindPointState, choice_version: u64, choice: DrawChoice) -> u32 {
        if self.slots.is_empty() {
            self.resize_slots(SLOTS_MIN);
        }
        let hash = bound.hash();
        while self.is_slot_in_use(self.slot_of(hash), choice_version) && self.slots.len() < SLOTS_MAX {
            self.resize_slots(self.slots.len() * 2);
        }
        let (index, slot) = (self.entries.len() as u32, self.slot_of(hash));
        let start = self.keys.len() as u32;
        bound.append_key(&mut self.keys);
        self.entries.push(ChoiceEntry { choice, choice_version, hash, key: start..self.keys.len() as u32 });
        self.slots[slot] = index;
        index
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= ENTRIES_MAX
    }

    /// Removes all entries, but keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.keys.clear();
    }

    #[inline(always)]
    fn slot_of(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - self.slots.len().trailing_zeros())) as usize
    }

    /// Whether a slot refers to a valid entry. It may also refer to an entry of another slot that was added after a
    /// clear.
    fn is_slot_in_use(&self, slot: usize, choice_version: u64) -> bool {
        let entry = self.entries.get(self.slots[slot] as usize);
        entry.is_some_and(|it| it.choice_version == choice_version && self.slot_of(it.hash) == slot)
    }

    fn resize_slots(&mut self, count: usize) {
        self.slots.clear();
        self.slots.resize(count, EMPTY_SLOT);
        for (index, entry) in (0..).zip(&self.entries) {
            let slot = self.slot_of(entry.hash);
            self.slots[slot] = index;
        }
    }
}

/// Words of a bind's key before its sets.
const BIND_HEAD: usize = 3;

impl BoundSets {
    /// The key without the sets and offsets. It has their counts, so that the keys of different binds differ.
    #[inline(always)]
    fn key_head(&self) -> [u64; BIND_HEAD] {
        let layout = Arc::as_ptr(&self.layout).addr() as u64;
        [layout, u64::from(self.first), (self.sets.len() as u64) << 32 | self.offsets.len() as u64]
    }
}

impl BindPointState {
    #[inline(always)]
    fn pipeline_word(&self) -> u64 {
        self.pipeline.as_ref().map_or(0, |it| Arc::as_ptr(it).addr() as u64)
    }

    fn append_key(&self, words: &mut Vec<u64>) {
        words.push(self.pipeline_word());
        for bind in &self.binds {
            words.extend(bind.key_head());
            words.extend(&bind.sets);
            words.extend(bind.offsets.iter().map(|it| u64::from(*it)));
        }
    }

    /// Whether this equals the key that `append_key` would produce.
    #[inline(always)]
    fn matches_key(&self, key: &[u64]) -> bool {
        let Some((pipeline, mut rest)) = key.split_first() else { return false };
        for bind in &self.binds {
            let Some((head, behind)) = rest.split_at_checked(BIND_HEAD) else { return false };
            if head != bind.key_head() {
                return false;
            }
            // The heads are equal, so the numbers of sets and offsets are equal, too.
            let (sets, behind) = behind.split_at(bind.sets.len());
            let (offsets, behind) = behind.split_at(bind.offsets.len());
            let has_sets = sets.iter().zip(&bind.sets).all(|(known, it)| known == it);
            if !has_sets || !offsets.iter().zip(&bind.offsets).all(|(known, it)| *known == u64::from(*it)) {
                return false;
            }
            rest = behind;
        }
        rest.is_empty() && *pipeline == self.pipeline_word()
    }

    /// A hash of what differs between draws: the pipeline, the sets and the offsets.
    #[inline(always)]
    fn hash(&self) -> u64 {
        let mut hash = mixed(0, self.pipeline_word());
        for bind in &self.binds {
            hash = bind.sets.iter().fold(hash, |hash, it| mixed(hash, *it));
            hash = bind.offsets.iter().fold(hash, |hash, it| mixed(hash, u64::from(*it)));
        }
        hash
    }
}

#[inline(always)]
fn mixed(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::pipeline::layouts::PipelineLayoutState;

    fn choice(variant_index: u32) -> DrawChoice {
        DrawChoice { variant_index, is_disturbing: false, table: None, unchecked: None }
    }

    fn bound(layout: &Arc<PipelineLayoutState>, first: u32, binds: &[(&[u64], &[u32])]) -> BindPointState {
        let bind = |(sets, offsets): &(&[u64], &[u32])| BoundSets::new(layout, first, sets.to_vec(), offsets.to_vec());
        BindPointState { binds: binds.iter().map(bind).collect(), ..BindPointState::default() }
    }

    #[test]
    fn what_was_chosen_is_found_by_all_that_is_bound() {
        let layout = Arc::new(PipelineLayoutState::empty());
        let other = Arc::new(PipelineLayoutState::empty());
        let mut all = vec![
            bound(&layout, 0, &[(&[1, 2], &[])]),
            bound(&layout, 0, &[(&[2, 1], &[])]),
            bound(&layout, 0, &[(&[1], &[2])]),
            bound(&other, 0, &[(&[1, 2], &[])]),
            bound(&layout, 1, &[(&[1, 2], &[])]),
            bound(&layout, 0, &[(&[1], &[]), (&[2], &[])]),
        ];
        all.extend((0..SLOTS_MAX as u64 / 4).map(|it| bound(&layout, 0, &[(&[it + 100], &[])])));
        let mut choices = ChoiceCache::default();
        for (number, bind_point) in (0..).zip(&all) {
            assert_eq!(choices.find(bind_point, 3), None);
            assert_eq!(choices.add(bind_point, 3, choice(number)), number);
            assert_eq!(choices.find(bind_point, 3), Some(number));
            assert_eq!(choices.find(bind_point, 4), None, "something was written into sets");
        }
        let found = |choices: &ChoiceCache| (0..).zip(&all).filter(|it| choices.find(it.1, 3) == Some(it.0)).count();
        assert!(found(&choices) > all.len() / 2, "few have the same slot as others");
        choices.clear();
        assert_eq!(found(&choices), 0);
        assert_eq!(choices.add(&all[1], 3, choice(7)), 0);
        assert_eq!((choices.find(&all[1], 3), choices.find(&all[0], 3)), (Some(0), None));
    }

    /// Slots survive a clear: one that refers to a new entry must not return it for another key.
    #[test]
    fn a_slot_from_before_a_clear_leads_to_no_wrong_choice() {
        let layout = Arc::new(PipelineLayoutState::empty());
        let all: Vec<BindPointState> = (0..300).map(|it| bound(&layout, 0, &[(&[it + 1], &[])])).collect();
        let mut choices = ChoiceCache::default();
        for round in 0..4 {
            choices.clear();
            // In another order each round, so that the same index refers to another entry.
            let order = (0..all.len()).map(|it| (it * 7 + round * 11) % all.len());
            for at in order.clone() {
                choices.add(&all[at], 1, choice(at as u32));
            }
            let found = order.filter_map(|at| Some((at, choices.find(&all[at], 1)?)));
            let chosen = found.map(|(at, index)| (at as u32, choices.entries[index as usize].choice.variant_index));
            let chosen: Vec<(u32, u32)> = chosen.collect();
            assert!(chosen.len() > all.len() / 2 && chosen.iter().all(|it| it.0 == it.1), "{chosen:?}");
        }
    }
}
