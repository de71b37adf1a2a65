//! Which variant of a pipeline a draw gets, with which table of descriptors.
//!
//! A choice is remembered by what was bound, while nothing is written into sets: programs bind the same again and
//! again.
//!
//! Shaders in a protected command buffer may write to protected memory only. They get permissive tables, and are not
//! checked. Shared tables (`FixedTables`) cannot be exchanged, and stay.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lavascope_abi::*;

use super::command_buffer::{BindPointState, BoundSets, CommandBufferState};
use crate::gpu::DeviceChecks;
use crate::gpu::pipeline::layouts::{ROOT_PUSH_BYTES, RootBinding};
use crate::gpu::pipeline::variants::{PipelineVariant, ROOT_SPACE, root_words};
use crate::gpu::readback::touches;
use crate::gpu::resource::arena::ArenaRegion;
use crate::gpu::resource::descriptor_sets;

/// What a draw is made with. Where each draw has other sets, there are as many.
#[derive(Clone, Copy)]
pub(crate) struct DrawChoice {
    /// Which of the forms.
    pub(crate) variant_index: u32,
    /// Whether a set of ours takes away what the application bound.
    pub(crate) is_disturbing: bool,
    /// None: nothing is told about what is bound.
    pub(crate) table: Option<ArenaRegion>,
}

/// What draws with a form of a pipeline have in common in a command buffer.
#[derive(Clone)]
pub(crate) struct RecordedVariant {
    pub(crate) variant: Arc<PipelineVariant>,
    /// Its number among those of the command buffer.
    pub(crate) number: u32,
    pub(crate) record_words: u32,
    pub(crate) touch_words: u32,
    /// The root table, but for the table of what is bound and what is the draw's own.
    pub(crate) root: [u32; ROOT_SPACE as usize],
    /// The layout and the stages that the address of the root table is pushed with.
    pub(crate) push: Option<(PipelineLayout, ShaderStageFlags)>,
}

/// What was chosen for draws of a command buffer. What it takes stays, for what is recorded next.
#[derive(Default)]
pub(crate) struct DrawChoices {
    pub(crate) all: Vec<DrawChoice>,
    pub(crate) variants: Vec<RecordedVariant>,
    /// The form that was the best of a pipeline, by its address and as many writes into sets as there were.
    best: Option<(usize, u64, u32)>,
    /// By the first bits of a hash of what was bound, one for each. None until something is chosen.
    entries: Vec<ChoiceEntry>,
    /// What was bound, in words, one behind the other.
    keys: Vec<u64>,
    /// How often all of it was forgotten.
    generation: u64,
}

#[derive(Clone, Copy, Default)]
struct ChoiceEntry {
    /// The generation it is of, plus one.
    stamp: u64,
    /// As many writes into sets there were.
    version: u64,
    hash: u64,
    /// Where its key is: from, and up to.
    key: [u32; 2],
    /// Which of all.
    chosen: u32,
}

/// How many are remembered by what was bound at first, and at most.
const ENTRIES_MIN: usize = 16;
const ENTRIES_MAX: usize = 1024;
/// More are not kept: where sets are written all the time, what was chosen is of no use.
const CHOICES_MAX: usize = 4096;

/// Words of a bind in front of its sets.
const HEAD: usize = 3;

impl BoundSets {
    /// What is the same for other sets.
    #[inline(always)]
    fn key_head(&self) -> [u64; HEAD] {
        let layout = Arc::as_ptr(&self.layout).addr() as u64;
        [layout, u64::from(self.first), (self.sets.len() as u64) << 32 | self.offsets.len() as u64]
    }
}

impl BindPointState {
    #[inline(always)]
    fn pipeline_word(&self) -> u64 {
        self.pipeline.as_ref().map_or(0, |it| Arc::as_ptr(it).addr() as u64)
    }

    /// Says what is bound, in words. Equal words are equal binds.
    fn append_key(&self, words: &mut Vec<u64>) {
        words.push(self.pipeline_word());
        for bind in &self.binds {
            words.extend(bind.key_head());
            words.extend(&bind.sets);
            words.extend(bind.offsets.iter().map(|it| u64::from(*it)));
        }
    }

    /// Whether this is what is bound.
    #[inline(always)]
    fn matches_key(&self, key: &[u64]) -> bool {
        let Some((pipeline, mut rest)) = key.split_first() else { return false };
        for bind in &self.binds {
            let Some((head, behind)) = rest.split_at_checked(HEAD) else { return false };
            if head != bind.key_head() {
                return false;
            }
            // By its head there are as many.
            let (sets, behind) = behind.split_at(bind.sets.len());
            let (offsets, behind) = behind.split_at(bind.offsets.len());
            let are_sets = sets.iter().zip(&bind.sets).all(|(known, it)| known == it);
            if !are_sets || !offsets.iter().zip(&bind.offsets).all(|(known, it)| *known == u64::from(*it)) {
                return false;
            }
            rest = behind;
        }
        rest.is_empty() && *pipeline == self.pipeline_word()
    }

    /// A hash of what changes from draw to draw.
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

impl DrawChoices {
    #[inline(always)]
    fn entry_index(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - self.entries.len().trailing_zeros())) as usize
    }

    #[inline(always)]
    fn is_current(&self, entry: &ChoiceEntry, version: u64) -> bool {
        entry.stamp == self.generation + 1 && entry.version == version
    }

    #[inline(always)]
    fn find(&self, point: &BindPointState, version: u64) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        let entry = &self.entries[self.entry_index(point.hash())];
        let [from, to] = entry.key.map(|it| it as usize);
        let is_it = self.is_current(entry, version) && point.matches_key(&self.keys[from..to]);
        is_it.then_some(entry.chosen)
    }

    /// Gives its number.
    fn add(&mut self, point: &BindPointState, version: u64, chosen: DrawChoice) -> u32 {
        if self.entries.is_empty() {
            self.entries.resize(ENTRIES_MIN, ChoiceEntry::default());
        }
        let hash = point.hash();
        while self.is_current(&self.entries[self.entry_index(hash)], version) && self.entries.len() < ENTRIES_MAX {
            self.grow();
        }
        let (from, number) = (self.keys.len() as u32, self.all.len() as u32);
        point.append_key(&mut self.keys);
        let (place, key) = (self.entry_index(hash), [from, self.keys.len() as u32]);
        self.entries[place] = ChoiceEntry { stamp: self.generation + 1, version, hash, key, chosen: number };
        self.all.push(chosen);
        number
    }

    fn grow(&mut self) {
        let count = self.entries.len() * 2;
        let old = std::mem::take(&mut self.entries);
        self.entries.resize(count, ChoiceEntry::default());
        for entry in old.iter().filter(|it| it.stamp == self.generation + 1) {
            let place = self.entry_index(entry.hash);
            self.entries[place] = *entry;
        }
    }

    /// The tables of what was chosen are no more.
    pub(crate) fn clear(&mut self) {
        self.generation += 1;
        self.all.clear();
        self.keys.clear();
        self.variants.clear();
        self.best = None;
    }
}

impl DeviceChecks {
    /// Takes what was chosen before for the same; else looks at what is bound, and takes the form of the pipeline that
    /// fits it. Gives its number.
    #[inline(always)]
    pub(crate) fn choose_variant(&self, commands: &mut CommandBufferState, at: usize) -> Option<u32> {
        let version = self.sets_version.load(Ordering::Acquire);
        let known = commands.choices.find(&commands.bind_points[at], version);
        let number = known.or_else(|| self.choose_uncached(commands, at, version));
        commands.bind_points[at].chosen = number;
        number
    }

    #[inline(never)]
    fn choose_uncached(&self, commands: &mut CommandBufferState, at: usize, version: u64) -> Option<u32> {
        let mut form = self.best_variant_index(commands, at, version)?;
        let mut words = std::mem::take(&mut commands.scratch_words);
        let (point, variant) = (&commands.bind_points[at], &commands.choices.variants[form as usize].variant);
        descriptor_sets::write_descriptor_table(&mut words, &variant.layout, &self.state().sets, |it| point.set(it));
        let mut is_quiet = false;
        if !variant.is_fit_for(&words) {
            let (checked, selected) = (point.pipeline.clone()?, Arc::clone(variant));
            let other = self.variant_for_table(&checked, &selected, &words);
            is_quiet = other.is_none();
            form = self.recorded_variant_index(commands, &other.unwrap_or(selected));
        }
        let variant = &commands.choices.variants[form as usize].variant;
        variant.fixed_tables.iter().for_each(|it| it.widen(&words));
        is_quiet |= variant.stages.is_empty() || self.has_failed() || self.warn_if_protected(commands, variant);
        let is_disturbing = variant.root_binding == RootBinding::DescriptorSet
            && !variant.stages.is_empty()
            && commands.bind_points[at].is_disturbed_by(&variant.layout);
        let table = match is_quiet {
            true => None,
            false => self.or_stop_checking(self.choose_descriptor_table(commands, at, form, (&mut words, version))),
        };
        commands.scratch_words = words;
        if commands.choices.all.len() >= CHOICES_MAX {
            let variant = Arc::clone(&commands.choices.variants[form as usize].variant);
            commands.choices.clear();
            commands.bind_points.iter_mut().for_each(|it| it.chosen = None);
            form = self.recorded_variant_index(commands, &variant);
        }
        let chosen = DrawChoice { variant_index: form, is_disturbing, table };
        Some(commands.choices.add(&commands.bind_points[at], version, chosen))
    }

    /// Whether nothing may be told, since shaders cannot write into our memory. It is said once.
    fn warn_if_protected(&self, commands: &CommandBufferState, variant: &PipelineVariant) -> bool {
        if commands.is_protected && !variant.stages.is_empty() {
            self.warn_unchecked(
                "what protected command buffers run is not checked: it may not write into memory that is not",
            );
        }
        commands.is_protected
    }

    /// The best form of the pipeline that is bound, whatever else is. Others are made now and then, and then it counts
    /// as if sets were written.
    fn best_variant_index(&self, commands: &mut CommandBufferState, at: usize, version: u64) -> Option<u32> {
        let checked = commands.bind_points[at].pipeline.as_ref()?;
        let address = Arc::as_ptr(checked).addr();
        if let Some((_, _, form)) = commands.choices.best.filter(|it| (it.0, it.1) == (address, version)) {
            return Some(form);
        }
        let form = self.recorded_variant_index(commands, &checked.best_variant()?);
        commands.choices.best = Some((address, version, form));
        Some(form)
    }

    /// The number of a form among those of the command buffer.
    fn recorded_variant_index(&self, commands: &mut CommandBufferState, variant: &Arc<PipelineVariant>) -> u32 {
        let known = commands.choices.variants.iter().position(|it| Arc::ptr_eq(&it.variant, variant));
        let number = known.unwrap_or_else(|| {
            let form = self.record_variant(commands, variant);
            commands.choices.variants.push(form);
            commands.choices.variants.len() - 1
        });
        number as u32
    }

    /// For commands that know what is bound by its handle: in the form that the application has; without tables where
    /// they are fixed before.
    pub(crate) fn choose_application_variant(
        &self,
        commands: &mut CommandBufferState,
        at: usize,
        is_fixed: bool,
    ) -> Option<DrawChoice> {
        let first = commands.bind_points[at].pipeline.as_ref().map(|it| Arc::clone(&it.first))?;
        let form = self.recorded_variant_index(commands, &first);
        let (bound, variant) = (&commands.bind_points[at], &commands.choices.variants[form as usize].variant);
        let version = self.sets_version.load(Ordering::Acquire);
        let mut words = descriptor_sets::descriptor_table(&variant.layout, &self.state().sets, |it| bound.set(it));
        if is_fixed && !variant.stages.is_empty() {
            self.warn_unchecked("generated commands that are preprocessed are not checked");
        }
        let can_tell = !is_fixed && !self.warn_if_protected(commands, variant);
        let is_fit = can_tell && variant.is_fit_for(&words) && !variant.stages.is_empty() && !self.has_failed();
        let is_disturbing =
            variant.root_binding == RootBinding::DescriptorSet && bound.is_disturbed_by(&variant.layout);
        let table = match is_fit {
            true => self.or_stop_checking(self.choose_descriptor_table(commands, at, form, (&mut words, version))),
            false => None,
        };
        Some(DrawChoice { variant_index: form, is_disturbing, table })
    }

    pub(crate) fn record_variant(
        &self,
        commands: &mut CommandBufferState,
        variant: &Arc<PipelineVariant>,
    ) -> RecordedVariant {
        let stages =
            self.root_push_offset.map(|tail| ShaderStageFlags(variant.layout.stages_of_push(tail, ROOT_PUSH_BYTES)));
        let record_words = self.record_words(variant);
        // SAFETY: nobody reads or writes it: its size goes into the root table, and each draw has records elsewhere.
        let records = unsafe { ArenaRegion::mapped(0, record_words) };
        RecordedVariant {
            number: commands.variant_number(variant),
            record_words,
            touch_words: touches::touch_words(variant),
            root: root_words([records, ArenaRegion::default(), self.permissive_addresses, variant.cells]),
            push: variant.layout.own_handle.zip(stages),
            variant: Arc::clone(variant),
        }
    }

    /// The table of what is bound, in the way that its layout needs. The words may be others afterwards.
    fn choose_descriptor_table(
        &self,
        commands: &mut CommandBufferState,
        at: usize,
        form: u32,
        (words, version): (&mut Vec<u32>, u64),
    ) -> Option<ArenaRegion> {
        let (point, variant) = (&commands.bind_points[at], &commands.choices.variants[form as usize].variant);
        let count = variant.layout.sets.len();
        if variant.layout.uses_descriptor_buffers() {
            let sets = (0..count).map(|it| point.set(it).map(|it| it.0)).collect();
            let variant = Arc::clone(variant);
            return self.descriptor_buffer_table(commands, &variant, sets, words.clone());
        }
        if variant.layout.has_update_after_bind() {
            let sets = (0..count).map(|it| point.set(it)).collect();
            let variant = Arc::clone(variant);
            return self.update_after_bind_table(commands, &variant, sets, (words.clone(), version));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::pipeline::layouts::PipelineLayoutState;

    fn chosen(form: u32) -> DrawChoice {
        DrawChoice { variant_index: form, is_disturbing: false, table: None }
    }

    #[test]
    fn what_was_chosen_is_found_by_all_that_is_bound() {
        let layout = Arc::new(PipelineLayoutState::empty());
        let bound = |sets: &[u64], offsets: &[u32]| BindPointState {
            binds: vec![BoundSets::new(&layout, 0, sets.to_vec(), offsets.to_vec())],
            ..BindPointState::default()
        };
        let other = Arc::new(PipelineLayoutState::empty());
        let elsewhere = BindPointState {
            binds: vec![BoundSets::new(&other, 0, vec![1, 2], Vec::new())],
            ..BindPointState::default()
        };
        let second = BindPointState {
            binds: vec![BoundSets::new(&layout, 1, vec![1, 2], Vec::new())],
            ..BindPointState::default()
        };
        let split = BindPointState {
            binds: vec![
                BoundSets::new(&layout, 0, vec![1], Vec::new()),
                BoundSets::new(&layout, 0, vec![2], Vec::new()),
            ],
            ..BindPointState::default()
        };
        let mut all = vec![bound(&[1, 2], &[]), bound(&[2, 1], &[]), bound(&[1], &[2]), elsewhere, second, split];
        all.extend((0..ENTRIES_MAX as u64 / 4).map(|it| bound(&[it + 100], &[])));
        let mut choices = DrawChoices::default();
        for (number, point) in (0..).zip(&all) {
            assert_eq!(choices.find(point, 3), None);
            assert_eq!(choices.add(point, 3, chosen(number)), number);
            assert_eq!(choices.find(point, 3), Some(number));
            assert_eq!(choices.find(point, 4), None, "something was written into sets");
        }
        let found = |choices: &DrawChoices| (0..).zip(&all).filter(|it| choices.find(it.1, 3) == Some(it.0)).count();
        assert!(found(&choices) > all.len() / 2, "few have the same place as others");
        choices.clear();
        assert_eq!(found(&choices), 0);
        assert_eq!(choices.add(&all[1], 3, chosen(7)), 0);
        assert_eq!((choices.find(&all[1], 3), choices.find(&all[0], 3)), (Some(0), None));
    }
}
