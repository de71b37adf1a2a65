//! Descriptors that may be written after a draw was recorded: what is bound to them counts when it is submitted.
//!
//! The table of such a draw is written anew then, word by word where it differs: work that is pending may read it, and
//! what it uses does not change.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::arena::Region;
use super::commands::Commands;
use super::layouts::Layout;
use super::variants::Variant;
use super::{Gpu, State, descriptors};

/// A table of what is bound to draws, as it was when it was looked at last.
pub(super) struct Late {
    variant: Arc<Variant>,
    /// What is bound to each set of the layout, with the dynamic offsets.
    sets: Vec<Option<(u64, Vec<u32>)>>,
    table: Region,
    words: Vec<u32>,
    /// As many writes into sets there were.
    version: u64,
}

impl Layout {
    /// Whether any of its descriptors may be written after it was bound.
    pub(super) fn has_late(&self) -> bool {
        self.sets.iter().flatten().flat_map(|it| &it.bindings).any(|it| it.count > 0 && it.is_late())
    }

    /// Whether a binding is one of them.
    pub(super) fn is_late(&self, set: u32, binding: u32) -> bool {
        self.slot(set, binding).is_some_and(|it| it.is_late())
    }
}

impl Late {
    /// Looks at what is bound again.
    fn renew(&mut self, state: &State, version: u64) {
        if self.version == version {
            return;
        }
        self.version = version;
        let bound = |it: usize| self.sets.get(it).cloned().flatten();
        let words = descriptors::table(&self.variant.layout, &state.sets, bound);
        if !self.variant.fixed.is_empty() {
            return self.variant.fixed.iter().for_each(|it| it.add(&words));
        }
        if words.len() != self.words.len() {
            // A set is no more, and had another number of descriptors.
            return;
        }
        for (at, word) in words.iter().enumerate().filter(|it| *it.1 != self.words[it.0]) {
            self.table.set(at as u32, *word);
        }
        self.words = words;
    }
}

impl Gpu {
    /// The table for draws with such sets; it will be written anew when they are submitted.
    pub(super) fn late_table(
        &self,
        commands: &mut Commands,
        variant: &Arc<Variant>,
        sets: Vec<Option<(u64, Vec<u32>)>>,
        (words, version): (Vec<u32>, u64),
    ) -> Option<Region> {
        let is_same = |it: &&Late| Arc::ptr_eq(&it.variant, variant) && it.sets == sets;
        if let Some(known) = commands.late.iter().find(is_same) {
            return Some(known.table);
        }
        let table = commands.allocate_table(self, &words)?;
        commands.late.push(Late { variant: Arc::clone(variant), sets, table, words, version });
        Some(table)
    }

    /// Command buffers are about to be submitted: what was written into their sets since they were recorded counts.
    pub(super) fn renew_late(&self, commands: &[u64]) {
        let has_late = |it: &u64| self.slot(*it).and_then(|it| it.with(|it| !it.late.is_empty())) == Some(true);
        if !commands.iter().any(has_late) {
            return;
        }
        let state = self.state();
        let version = self.sets_version.load(Ordering::Acquire);
        for slot in commands.iter().filter_map(|it| self.slot(*it)) {
            slot.with(|it| it.late.iter_mut().for_each(|it| it.renew(&state, version)));
        }
    }
}
