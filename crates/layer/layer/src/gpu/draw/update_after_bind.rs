//! Descriptors that may be updated after a draw was recorded: their contents at submission count.
//!
//! The table of such a draw is then updated, word by word where it differs. Pending work may read the table, and the
//! descriptors that this work uses do not change. Shaders do not rely on the contents of such descriptors.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::command_buffer::CommandBufferState;
use crate::gpu::pipeline::layouts::PipelineLayoutState;
use crate::gpu::pipeline::variants::PipelineVariant;
use crate::gpu::resource::arena::ArenaRegion;
use crate::gpu::resource::descriptor_sets;
use crate::gpu::{ChecksState, DeviceChecks};

/// A descriptor table as it was when it was last updated.
pub(crate) struct UpdateAfterBindTable {
    variant: Arc<PipelineVariant>,
    /// The sets that are bound, with their dynamic offsets.
    sets: Vec<Option<(u64, Vec<u32>)>>,
    table: ArenaRegion,
    words: Vec<u32>,
    /// The value of `choice_version` at the last update.
    version: u64,
}

impl PipelineLayoutState {
    /// Whether any of its descriptors may be updated after binding.
    pub(crate) fn has_update_after_bind(&self) -> bool {
        self.sets.iter().flatten().flat_map(|it| &it.bindings).any(|it| it.count > 0 && it.is_update_after_bind())
    }

    /// Whether a binding has such descriptors.
    pub(crate) fn is_update_after_bind(&self, set: u32, binding: u32) -> bool {
        self.binding(set, binding).is_some_and(|it| it.is_update_after_bind())
    }
}

impl UpdateAfterBindTable {
    /// Updates the table to the current contents of the sets.
    fn refresh(&mut self, state: &ChecksState, version: u64) {
        if self.version == version {
            return;
        }
        self.version = version;
        let bound = |it: usize| self.sets.get(it).cloned().flatten();
        let words = descriptor_sets::descriptor_table(&self.variant.layout, &state.sets, bound);
        if !self.variant.fixed_tables.is_empty() {
            return self.variant.fixed_tables.iter().for_each(|it| it.widen(&words));
        }
        if words.len() != self.words.len() {
            // A set was freed, and its handle now has another number of descriptors.
            return;
        }
        for (at, word) in words.iter().enumerate().filter(|it| *it.1 != self.words[it.0]) {
            self.table.write_word(at as u32, *word);
        }
        self.words = words;
    }
}

impl DeviceChecks {
    /// Adds a table for draws with such sets; it is updated at each submission.
    pub(crate) fn update_after_bind_table(
        &self,
        commands: &mut CommandBufferState,
        variant: &Arc<PipelineVariant>,
        sets: Vec<Option<(u64, Vec<u32>)>>,
        (words, version): (Vec<u32>, u64),
    ) -> Option<ArenaRegion> {
        let is_same = |it: &&UpdateAfterBindTable| Arc::ptr_eq(&it.variant, variant) && it.sets == sets;
        if let Some(known) = commands.update_after_bind_tables.iter().find(is_same) {
            return Some(known.table);
        }
        let table = commands.allocate_descriptor_table(self, &words)?;
        commands.update_after_bind_tables.push(UpdateAfterBindTable {
            variant: Arc::clone(variant),
            sets,
            table,
            words,
            version,
        });
        Some(table)
    }

    /// Updates the tables of command buffers that are about to be submitted.
    pub(crate) fn refresh_update_after_bind_tables(&self, commands: &[u64]) {
        let has_late = |value: &u64| {
            self.slot(*value).and_then(|it| it.with(|it| !it.update_after_bind_tables.is_empty())) == Some(true)
        };
        if !commands.iter().any(has_late) {
            return;
        }
        let state = self.state();
        let version = self.choice_version.load(Ordering::Acquire);
        for slot in commands.iter().filter_map(|it| self.slot(*it)) {
            slot.with(|it| it.update_after_bind_tables.iter_mut().for_each(|it| it.refresh(&state, version)));
        }
    }
}
