//! Chooses the variant of the pipeline and the descriptor table with which a draw is recorded.
//!
//! [`DeviceChecks::choose_variant`] first asks the [`ChoiceCache`](super::choice_cache::ChoiceCache) of the command
//! buffer. If the cache has no entry for the pipeline and the sets that are bound, it chooses in these steps, and adds an
//! entry:
//!
//! 1. Take the best variant of the pipeline (`variants`): one that records details before one that does not, and one
//!    that selects descriptors (`Guard::Select`) before one that branches (`Guard::Branch`).
//! 2. Write the descriptor table, from the descriptor sets that are bound.
//! 3. If less is bound than the variant requires, take a variant without requirements.
//! 4. Copy the table to memory that the shaders can read. If the shaders find it through a descriptor set of ours,
//!    binding that set may disturb sets of the application, because the layouts are not compatible
//!    (`descriptorsets-compatibility`): `is_disturbing`.
//!
//! Shaders in a protected command buffer may only write to protected memory (`memory-protected-access-rules`), so they
//! cannot write fault records. They get permissive tables, and are not checked. A variant with fixed tables
//! (`FixedTables`) shares these among all its draws. Their address is compiled in, so permissive tables cannot replace
//! them; a choice extends them to the sets that are bound now.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::choice_cache::DrawChoice;
use super::command_buffer::CommandBufferState;
use super::launch_counts::{GENERATED, NOT_REBUILT, PREPROCESSED, PROTECTED, UncheckedLaunch};
use crate::gpu::DeviceChecks;
use crate::gpu::pipeline::layouts::RootBinding;
use crate::gpu::pipeline::variants::PipelineVariant;
use crate::gpu::resource::arena::ArenaRegion;
use crate::gpu::resource::descriptor_sets;

/// The best variant of the last pipeline. Consecutive draws mostly use the same pipeline, and asking the pipeline takes
/// a lock.
#[derive(Clone, Copy)]
pub(crate) struct BestVariant {
    /// The address of the pipeline's state.
    pipeline: usize,
    /// The value of `DeviceChecks::choice_version` at the choice. It changes when a variant is built, which may be
    /// better.
    choice_version: u64,
    variant_index: u32,
}

impl DeviceChecks {
    /// Makes the choice for all draws until something else is bound. Returns the index of its entry in the cache.
    #[inline(always)]
    pub(crate) fn choose_variant(&self, commands: &mut CommandBufferState, bind_point: usize) -> Option<u32> {
        let choice_version = self.choice_version.load(Ordering::Acquire);
        let known = commands.choices.find(&commands.bind_points[bind_point], choice_version);
        let known = known.filter(|_| !self.is_choice_cache_disabled);
        let index = known.or_else(|| self.choose_uncached(commands, bind_point, choice_version));
        commands.bind_points[bind_point].chosen = index.filter(|_| !self.is_choice_cache_disabled);
        index
    }

    #[inline(never)]
    fn choose_uncached(
        &self,
        commands: &mut CommandBufferState,
        bind_point: usize,
        choice_version: u64,
    ) -> Option<u32> {
        let best = self.best_variant_index(commands, bind_point, choice_version)?;
        let mut table = std::mem::take(&mut commands.scratch_words);
        let (bound, variant) = (&commands.bind_points[bind_point], &commands.recorded_variants[best as usize].variant);
        descriptor_sets::write_descriptor_table(&mut table, &variant.layout, &self.state().sets, |it| bound.set(it));
        let fitting = self.fitting_variant_index(commands, bind_point, best, &table);
        // Without a fitting variant, the best one runs with permissive tables.
        let variant_index = fitting.unwrap_or(best);
        let variant = &commands.recorded_variants[variant_index as usize].variant;
        variant.fixed_tables.iter().for_each(|it| it.widen(&table));
        self.warn_if_protected(commands, variant);
        let is_bare = variant.stages.is_empty();
        let is_protected = !is_bare && !self.has_failed() && commands.is_protected;
        let is_unchecked = is_bare || self.has_failed() || is_protected;
        let is_disturbing = variant.root_binding == RootBinding::DescriptorSet
            && !variant.stages.is_empty()
            && commands.bind_points[bind_point].is_disturbed_by(&variant.layout);
        let region = match fitting.is_some() && !is_unchecked {
            true => {
                let versioned_words = (&mut table, choice_version);
                self.or_stop_checking(self.place_descriptor_table(commands, bind_point, variant_index, versioned_words))
            }
            false => None,
        };
        commands.scratch_words = table;
        if commands.choices.is_full() {
            commands.choices.clear();
            commands.bind_points.iter_mut().for_each(|it| it.chosen = None);
        }
        let variant = &commands.recorded_variants[variant_index as usize].variant;
        let unchecked = match () {
            () if variant.unchecked.is_some() => Some(UncheckedLaunch::Shader),
            () if self.has_failed() => (!is_bare).then_some(UncheckedLaunch::Ended),
            () if is_protected => Some(UncheckedLaunch::Protected),
            () if fitting.is_none() => Some(UncheckedLaunch::NotRebuilt),
            () => None,
        };
        if unchecked == Some(UncheckedLaunch::NotRebuilt) {
            self.warn_unchecked(NOT_REBUILT);
        }
        let choice = DrawChoice { variant_index, is_disturbing, table: region, unchecked };
        Some(commands.choices.add(&commands.bind_points[bind_point], choice_version, choice))
    }

    /// The best variant of the bound pipeline, whatever else is bound.
    fn best_variant_index(
        &self,
        commands: &mut CommandBufferState,
        bind_point: usize,
        choice_version: u64,
    ) -> Option<u32> {
        let pipeline = commands.bind_points[bind_point].pipeline.as_ref()?;
        let address = Arc::as_ptr(pipeline).addr();
        let is_known = |it: &BestVariant| it.pipeline == address && it.choice_version == choice_version;
        if let Some(known) = commands.best_variant.filter(|it| is_known(it) && !self.is_choice_cache_disabled) {
            return Some(known.variant_index);
        }
        let variant = pipeline.best_variant()?;
        let variant_index = self.recorded_variant_index(commands, &variant);
        commands.best_variant = Some(BestVariant { pipeline: address, choice_version, variant_index });
        Some(variant_index)
    }

    /// The best variant, or a variant without requirements if less is bound than the best one requires (`is_fit_for`:
    /// the table has as much as each requirement says). `variant_for_table` creates that variant when it is first
    /// needed. None if it cannot be built.
    fn fitting_variant_index(
        &self,
        commands: &mut CommandBufferState,
        bind_point: usize,
        best: u32,
        table: &[u32],
    ) -> Option<u32> {
        let variant = &commands.recorded_variants[best as usize].variant;
        if variant.is_fit_for(table) {
            return Some(best);
        }
        let (pipeline, variant) = (commands.bind_points[bind_point].pipeline.clone()?, Arc::clone(variant));
        let fitting = self.variant_for_table(&pipeline, &variant, table)?;
        Some(self.recorded_variant_index(commands, &fitting))
    }

    /// Warns that the shaders of a protected command buffer are not checked.
    fn warn_if_protected(&self, commands: &CommandBufferState, variant: &PipelineVariant) {
        if commands.is_protected && !variant.stages.is_empty() {
            self.warn_unchecked(PROTECTED);
        }
    }

    /// Prepares commands that name pipelines by handle, such as `vkCmdExecuteGeneratedCommandsEXT`: they run the
    /// variant with the application's handle. If they are preprocessed, they get no tables.
    pub(crate) fn choose_application_variant(
        &self,
        commands: &mut CommandBufferState,
        bind_point: usize,
        is_preprocessed: bool,
    ) -> Option<DrawChoice> {
        let first = commands.bind_points[bind_point].pipeline.as_ref().map(|it| Arc::clone(&it.first))?;
        let variant_index = self.recorded_variant_index(commands, &first);
        let (bound, variant) =
            (&commands.bind_points[bind_point], &commands.recorded_variants[variant_index as usize].variant);
        let choice_version = self.choice_version.load(Ordering::Acquire);
        let mut table = descriptor_sets::descriptor_table(&variant.layout, &self.state().sets, |it| bound.set(it));
        if is_preprocessed && !variant.stages.is_empty() {
            self.warn_unchecked(PREPROCESSED);
        }
        if !is_preprocessed {
            self.warn_if_protected(commands, variant);
        }
        let is_protected = commands.is_protected;
        let unchecked = match () {
            () if variant.unchecked.is_some() => Some(UncheckedLaunch::Shader),
            () if variant.stages.is_empty() => None,
            () if is_preprocessed => Some(UncheckedLaunch::Preprocessed),
            () if self.has_failed() => Some(UncheckedLaunch::Ended),
            () if is_protected => Some(UncheckedLaunch::Protected),
            () if !variant.is_fit_for(&table) => Some(UncheckedLaunch::Generated),
            () => None,
        };
        if unchecked == Some(UncheckedLaunch::Generated) {
            self.warn_unchecked(GENERATED);
        }
        let is_checked = matches!(unchecked, None | Some(UncheckedLaunch::Shader))
            && !(is_preprocessed || is_protected || variant.stages.is_empty() || self.has_failed())
            && variant.is_fit_for(&table);
        let is_disturbing =
            variant.root_binding == RootBinding::DescriptorSet && bound.is_disturbed_by(&variant.layout);
        let region = match is_checked {
            true => {
                let versioned_words = (&mut table, choice_version);
                self.or_stop_checking(self.place_descriptor_table(commands, bind_point, variant_index, versioned_words))
            }
            false => None,
        };
        Some(DrawChoice { variant_index, is_disturbing, table: region, unchecked })
    }

    /// Places the descriptor table in memory that shaders can read, or reuses the last table if it is equal. Consumes
    /// the words.
    fn place_descriptor_table(
        &self,
        commands: &mut CommandBufferState,
        bind_point: usize,
        variant_index: u32,
        (words, choice_version): (&mut Vec<u32>, u64),
    ) -> Option<ArenaRegion> {
        let (bound, variant) =
            (&commands.bind_points[bind_point], &commands.recorded_variants[variant_index as usize].variant);
        let set_count = variant.layout.sets.len();
        if variant.layout.uses_descriptor_buffers() {
            let sets = (0..set_count).map(|it| bound.set(it).map(|it| it.0)).collect();
            let variant = Arc::clone(variant);
            return self.descriptor_buffer_table(commands, &variant, sets, words.clone());
        }
        if variant.layout.has_update_after_bind() {
            let sets = (0..set_count).map(|it| bound.set(it)).collect();
            let variant = Arc::clone(variant);
            return self.update_after_bind_table(commands, &variant, sets, (words.clone(), choice_version));
        }
        let fits = |it: &ArenaRegion| variant.root_binding != RootBinding::DescriptorSet || it.is_aligned();
        if let Some(same) = commands.last_table.1.filter(fits).filter(|_| commands.last_table.0 == *words) {
            return Some(same);
        }
        let region = match variant.root_binding {
            RootBinding::DescriptorSet => commands.allocate_descriptor_table(self, words)?,
            RootBinding::PushConstant | RootBinding::Specialization => {
                commands.allocate_addressed_table(self, words)?
            }
        };
        std::mem::swap(&mut commands.last_table.0, words);
        commands.last_table.1 = Some(region);
        Some(region)
    }
}
