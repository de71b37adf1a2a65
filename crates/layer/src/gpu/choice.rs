//! Which form of a pipeline a draw gets, with which table of what is bound.
//!
//! What was chosen is remembered by what was bound, while nothing is written into sets: programs bind the same again
//! and again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lavascope_abi::*;

use super::arena::Region;
use super::commands::{Bind, Commands, Point};
use super::layouts::{TAIL_BYTES, Way};
use super::variants::{ROOT_SPACE, Variant, root_words};
use super::{Gpu, descriptors, feedback};

/// What a draw is made with.
#[derive(Clone)]
pub(super) struct Chosen {
    pub(super) variant: Arc<Variant>,
    /// Its number among those of the command buffer.
    pub(super) number: u32,
    /// None: nothing is told about what is bound.
    pub(super) table: Option<Region>,
    /// Whether a set of ours takes away what the application bound.
    pub(super) is_disturbing: bool,
    pub(super) record_words: u32,
    pub(super) touch_words: u32,
    /// The root table, but for what is the draw's own.
    pub(super) root: [u32; ROOT_SPACE as usize],
    /// The layout and the stages that the address of the root table is pushed with.
    pub(super) push: Option<(PipelineLayout, ShaderStageFlags)>,
}

/// What was chosen for what was bound.
#[derive(Default)]
pub(super) struct Known {
    /// By the first bits of a hash, one for each. None until something is remembered.
    entries: Vec<Option<Entry>>,
}

struct Entry {
    /// As many writes into sets there were.
    version: u64,
    hash: u64,
    /// What was bound, in words.
    key: Box<[u64]>,
    chosen: Arc<Chosen>,
}

/// How many are remembered at first, and at most.
const KNOWN_MIN: usize = 16;
const KNOWN_MAX: usize = 512;

/// Words of a bind in front of its sets.
const HEAD: usize = 3;

impl Bind {
    /// What is the same for other sets.
    #[inline(always)]
    fn head(&self) -> [u64; HEAD] {
        let layout = Arc::as_ptr(&self.layout).addr() as u64;
        [layout, u64::from(self.first), (self.sets.len() as u64) << 32 | self.offsets.len() as u64]
    }
}

impl Point {
    #[inline(always)]
    fn pipeline_word(&self) -> u64 {
        self.pipeline.as_ref().map_or(0, |it| Arc::as_ptr(it).addr() as u64)
    }

    /// What is bound, in words. Equal words are equal binds.
    fn key(&self) -> Box<[u64]> {
        let mut words = vec![self.pipeline_word()];
        for bind in &self.binds {
            words.extend(bind.head());
            words.extend(&bind.sets);
            words.extend(bind.offsets.iter().map(|it| u64::from(*it)));
        }
        words.into_boxed_slice()
    }

    /// Whether this is what is bound.
    #[inline(always)]
    fn is_at(&self, key: &[u64]) -> bool {
        let Some((pipeline, mut rest)) = key.split_first() else { return false };
        for bind in &self.binds {
            let Some((head, behind)) = rest.split_at_checked(HEAD) else { return false };
            if head != bind.head() {
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

impl Known {
    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        (hash >> (u64::BITS - self.entries.len().trailing_zeros())) as usize
    }

    #[inline(always)]
    fn find(&self, point: &Point, version: u64) -> Option<Arc<Chosen>> {
        if self.entries.is_empty() {
            return None;
        }
        let entry = self.entries[self.place(point.hash())].as_ref()?;
        (entry.version == version && point.is_at(&entry.key)).then(|| Arc::clone(&entry.chosen))
    }

    fn add(&mut self, point: &Point, version: u64, chosen: &Arc<Chosen>) {
        if self.entries.is_empty() {
            self.entries.resize_with(KNOWN_MIN, || None);
        }
        let hash = point.hash();
        let is_taken = |it: &Option<Entry>| it.as_ref().is_some_and(|it| it.version == version);
        while is_taken(&self.entries[self.place(hash)]) && self.entries.len() < KNOWN_MAX {
            self.grow();
        }
        let place = self.place(hash);
        self.entries[place] = Some(Entry { version, hash, key: point.key(), chosen: Arc::clone(chosen) });
    }

    fn grow(&mut self) {
        let count = self.entries.len() * 2;
        let old = std::mem::take(&mut self.entries);
        self.entries.resize_with(count, || None);
        for entry in old.into_iter().flatten() {
            let place = self.place(entry.hash);
            self.entries[place] = Some(entry);
        }
    }

    /// The tables of what was chosen are no more.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}

impl Gpu {
    /// Takes what was chosen before for the same; else looks at what is bound, and takes the form of the pipeline that
    /// fits it.
    #[inline(always)]
    pub(super) fn choose(&self, commands: &mut Commands, at: usize) {
        let version = self.sets_version.load(Ordering::Acquire);
        let point = &mut commands.points[at];
        match commands.known.find(point, version) {
            Some(chosen) => point.chosen = Some(chosen),
            None => self.choose_anew(commands, at, version),
        }
    }

    #[inline(never)]
    fn choose_anew(&self, commands: &mut Commands, at: usize, version: u64) {
        let point = &commands.points[at];
        let Some(checked) = point.pipeline.clone() else { return };
        let Some(selected) = checked.selected() else { return };
        let words = descriptors::table(&selected.layout, &self.state().sets, |it| point.set(it));
        let form = self.form_for(&checked, &words);
        let is_quiet = form.is_none();
        let variant = form.unwrap_or(selected);
        variant.fixed.iter().for_each(|it| it.add(&words));
        let is_quiet = is_quiet || variant.stages.is_empty() || self.has_failed();
        let table = match is_quiet {
            true => None,
            false => self.or_fail(self.table_of(commands, at, &variant, (words, version))),
        };
        let is_disturbing = variant.way == Way::Set
            && !variant.stages.is_empty()
            && commands.points[at].is_disturbed_by(&variant.layout);
        let chosen = Arc::new(self.chosen(commands, variant, table, is_disturbing));
        commands.known.add(&commands.points[at], version, &chosen);
        commands.points[at].chosen = Some(chosen);
    }

    /// For commands that know what is bound by its handle: in the form that the application has.
    pub(super) fn choose_first(&self, commands: &mut Commands, at: usize) -> Option<Chosen> {
        let bound = &commands.points[at];
        let variant = bound.pipeline.as_ref().map(|it| Arc::clone(&it.first))?;
        let version = self.sets_version.load(Ordering::Acquire);
        let words = descriptors::table(&variant.layout, &self.state().sets, |it| bound.set(it));
        let is_fit = variant.is_fit_for(&words) && !variant.stages.is_empty() && !self.has_failed();
        let is_disturbing = variant.way == Way::Set && bound.is_disturbed_by(&variant.layout);
        let table = match is_fit {
            true => self.or_fail(self.table_of(commands, at, &variant, (words, version))),
            false => None,
        };
        Some(self.chosen(commands, variant, table, is_disturbing))
    }

    /// What all draws with such a form and table have in common.
    fn chosen(
        &self,
        commands: &mut Commands,
        variant: Arc<Variant>,
        table: Option<Region>,
        is_disturbing: bool,
    ) -> Chosen {
        let stages = self.tail.map(|tail| ShaderStageFlags(variant.layout.stages_of(tail, TAIL_BYTES)));
        let record_words = self.record_words(&variant);
        let records = Region::mapped(0, record_words);
        Chosen {
            number: commands.number_of(&variant),
            table,
            is_disturbing,
            record_words,
            touch_words: feedback::touch_words(&variant),
            root: root_words([records, table.unwrap_or_default(), self.everywhere, variant.cells]),
            push: variant.layout.own.zip(stages),
            variant,
        }
    }

    /// The table of what is bound, in the way that its layout needs.
    fn table_of(
        &self,
        commands: &mut Commands,
        at: usize,
        variant: &Arc<Variant>,
        (words, version): (Vec<u32>, u64),
    ) -> Option<Region> {
        let (point, count) = (&commands.points[at], variant.layout.sets.len());
        if variant.layout.is_in_buffers() {
            let sets = (0..count).map(|it| point.set(it).map(|it| it.0)).collect();
            return self.buffered_table(commands, variant, sets, words);
        }
        if variant.layout.has_late() {
            let sets = (0..count).map(|it| point.set(it)).collect();
            return self.late_table(commands, variant, sets, (words, version));
        }
        self.table(commands, words)
    }

    fn table(&self, commands: &mut Commands, words: Vec<u32>) -> Option<Region> {
        match &commands.table {
            Some((same, region)) if *same == words => Some(*region),
            _ => {
                let region = commands.allocate_table(self, &words)?;
                commands.table = Some((words, region));
                Some(region)
            }
        }
    }
}
