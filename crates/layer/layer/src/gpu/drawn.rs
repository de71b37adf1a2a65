//! Draws and dispatches with checks, as their command buffer keeps them.
//!
//! There are many, and most of them have nothing to tell: what is kept of one is small, and leads nowhere that would
//! have to be let go. What a finding needs is put together when there is one.

use std::sync::Arc;

use lavascope_abi::*;

use super::arena::Region;
use super::commands::Commands;
use super::variants::{ROOT_SPACE, Variant};

/// A draw or dispatch with checks.
pub(super) struct Drawn {
    /// Counted from zero, among the draws and dispatches of the command buffer.
    pub(super) number: u32,
    /// The same, without those that the device generates, as the validator counts; none for one of these.
    pub(super) launch: Option<u32>,
    pub(super) function: Command,
    memory: Memory,
    /// The form of its pipeline, among those of the command buffer.
    variant: u32,
    /// The debug labels around it, among those of the command buffer.
    labels: u32,
    record_words: u32,
    touch_words: u32,
    /// Where its records begin, for the host.
    records: u64,
}

/// What of its memory is a draw's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// A root table, records, and what it touches, one behind the other.
    Root,
    /// Records.
    Records,
    /// Nothing: all draws of the pipeline write to the same place.
    Shared,
}

/// Memory of a draw: where its records are, and how many words there are for what it touches behind them.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) memory: Memory,
    pub(super) records: Region,
    pub(super) touch_words: u32,
}

/// A draw, for what is told of it.
pub(super) struct Draw {
    pub(super) number: u32,
    pub(super) command: &'static str,
    pub(super) variant: Arc<Variant>,
    /// All debug labels around it, the outermost first.
    pub(super) labels: Vec<String>,
}

impl Drawn {
    /// Where shaders write records.
    pub(super) fn records(&self) -> Region {
        // SAFETY: `all` has these words, and they come first.
        unsafe { Region::mapped(self.records, self.record_words) }
    }

    /// Records, and behind them what it touches.
    fn all(&self) -> Region {
        // SAFETY: `keep_draw` alone makes a draw, of a place in a block, which has this many words and stays mapped for
        // longer than the draw is kept.
        unsafe { Region::mapped(self.records, self.record_words + self.touch_words) }
    }

    /// Where shaders keep what they touch; none where they do not.
    pub(super) fn touches(&self) -> Option<Region> {
        (self.touch_words > 0).then(|| self.all().from(self.record_words))
    }

    fn root(&self) -> Option<Region> {
        let space = u64::from(ROOT_SPACE) * 4;
        // SAFETY: in memory of this kind a root table lies before the records (`Memory::Root`).
        (self.memory == Memory::Root).then(|| unsafe { Region::mapped(self.records - space, ROOT_SPACE) })
    }

    /// The device does not use it any more: its memory has zeros again.
    fn clear(&self) {
        if let Some(root) = self.root() {
            root.zero();
        }
        // Where no word is counted, no record was begun.
        if self.memory != Memory::Shared && (self.records().word(0) != 0 || self.touch_words > 0) {
            self.all().zero();
        }
    }
}

/// Debug labels that were open at draws.
#[derive(Default)]
pub(super) struct Labels {
    /// Those that are open, the outermost first.
    open: Vec<String>,
    kept: Vec<Vec<String>>,
    /// Which of those that are kept are open; none where they changed since.
    now: Option<u32>,
}

impl Labels {
    pub(super) fn begin(&mut self, name: String) {
        self.open.push(name);
        self.now = None;
    }

    pub(super) fn end(&mut self) {
        self.open.pop();
        self.now = None;
    }

    /// Those that are open.
    pub(super) fn open(&self) -> &[String] {
        &self.open
    }

    /// The number by which those that are open are kept.
    #[inline(always)]
    fn number(&mut self) -> u32 {
        match self.now {
            Some(it) => it,
            None => self.keep(),
        }
    }

    #[cold]
    fn keep(&mut self) -> u32 {
        let number = self.kept.len() as u32;
        self.kept.push(self.open.clone());
        self.now = Some(number);
        number
    }

    fn at(&self, number: u32) -> &[String] {
        self.kept.get(number as usize).map_or(&[], Vec::as_slice)
    }
}

impl Commands {
    /// A draw or dispatch with checks was recorded.
    #[inline(always)]
    pub(super) fn keep_draw(
        &mut self,
        (number, launch, function): (u32, Option<u32>, Command),
        variant: u32,
        place: Place,
    ) {
        let labels = self.labels.number();
        self.draws.push(Drawn {
            number,
            launch,
            function,
            memory: place.memory,
            variant,
            labels,
            record_words: place.records.words,
            touch_words: place.touch_words,
            records: place.records.address(),
        });
    }

    /// What is told of a draw.
    pub(super) fn draw(&self, it: &Drawn) -> Draw {
        Draw {
            number: it.number,
            command: it.function.desc().name,
            variant: Arc::clone(self.variant_of(it)),
            labels: self.outer_labels.iter().chain(self.labels.at(it.labels)).cloned().collect(),
        }
    }

    /// The form of a draw's pipeline.
    pub(super) fn variant_of(&self, it: &Drawn) -> &Arc<Variant> {
        &self.variants[it.variant as usize]
    }

    /// Root tables that lead to the table of addresses.
    pub(super) fn roots(&self) -> impl Iterator<Item = Region> {
        self.draws.iter().filter(|it| self.variant_of(it).reads_addresses).filter_map(Drawn::root)
    }

    /// The device does not use them any more: their memory has zeros again.
    pub(super) fn clear_draws(&self) {
        self.draws.iter().for_each(Drawn::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(words: &mut [u32], memory: Memory, touch_words: u32) -> Drawn {
        let space = if memory == Memory::Root { ROOT_SPACE } else { 0 };
        let records = Region::over(words).from(space);
        Drawn {
            launch: Some(0),
            number: 0,
            function: Command::CmdDraw,
            memory,
            variant: 0,
            labels: 0,
            record_words: records.words - touch_words,
            touch_words,
            records: records.address(),
        }
    }

    #[test]
    fn what_a_draw_wrote_is_zero_again() {
        let root = ROOT_SPACE as usize;
        for (memory, touch_words) in [(Memory::Root, 0), (Memory::Root, 3), (Memory::Records, 0)] {
            let mut words = vec![7_u32; root + 8];
            drawn(&mut words, memory, touch_words).clear();
            assert_eq!(words, vec![0; root + 8]);
        }
        let mut words = vec![7_u32; 8];
        drawn(&mut words, Memory::Shared, 0).clear();
        assert_eq!(words, [7; 8], "others may use it");
    }

    #[test]
    fn memory_without_records_is_not_written() {
        let root = ROOT_SPACE as usize;
        let mut words = vec![7_u32; root + 8];
        words[root] = 0;
        drawn(&mut words, Memory::Root, 0).clear();
        assert_eq!(words[..=root], vec![0; root + 1]);
        assert_eq!(words[root + 1..], [7; 7], "no word was counted");
        words[root] = 0;
        drawn(&mut words, Memory::Root, 2).clear();
        assert_eq!(words, vec![0; root + 8], "what is touched is not counted there");
    }

    #[test]
    fn labels_are_kept_once_for_all_draws_between_two_changes() {
        let mut labels = Labels::default();
        assert_eq!((labels.number(), labels.number()), (0, 0));
        labels.begin("frame".into());
        labels.begin("shadows".into());
        let inner = labels.number();
        assert_eq!((inner, labels.number()), (1, 1));
        labels.end();
        let outer = labels.number();
        assert_eq!(labels.at(inner), ["frame", "shadows"]);
        assert_eq!(labels.at(outer), ["frame"]);
        assert!(labels.at(0).is_empty());
    }
}
