//! The draws and dispatches with checks of a command buffer.
//!
//! There are many, and most of them have no finding. A stored draw is small and needs no destructor. Everything that a
//! finding needs is collected when there is one.

use std::sync::Arc;

use lavascope_abi::*;

use super::command_buffer::CommandBufferState;
use crate::gpu::pipeline::variants::{PipelineVariant, ROOT_SPACE};
use crate::gpu::resource::arena::ArenaRegion;

/// A draw or dispatch with checks.
pub(crate) struct RecordedDraw {
    /// The number among all draws and dispatches of the command buffer, from zero.
    pub(crate) number: u32,
    /// The number without generated draws, as the validator counts; none for a generated draw.
    pub(crate) launch: Option<u32>,
    pub(crate) function: Command,
    memory: DrawMemory,
    /// The variant of its pipeline, as an index of the command buffer.
    variant: u32,
    /// The debug labels around it, as an index of the command buffer.
    labels: u32,
    record_words: u32,
    touch_words: u32,
    /// The host address of its records.
    records: u64,
}

/// The memory that belongs to a draw.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrawMemory {
    /// A root table, records and touches, one after the other.
    Root,
    /// Only records.
    Records,
    /// None: all draws of the pipeline write to the same memory.
    Shared,
}

/// The memory of a draw: the address of its records, and the number of words for touches after them.
#[derive(Clone, Copy)]
pub(crate) struct DrawRecordArea {
    pub(crate) memory: DrawMemory,
    pub(crate) records: ArenaRegion,
    pub(crate) touch_words: u32,
}

/// A draw as messages describe it.
pub(crate) struct DrawDescription {
    pub(crate) number: u32,
    /// As the validator counts it, if it does.
    pub(crate) launch: Option<(u32, Command)>,
    pub(crate) command: &'static str,
    pub(crate) variant: Arc<PipelineVariant>,
    /// All debug labels around it, outermost first.
    pub(crate) labels: Vec<String>,
}

impl RecordedDraw {
    /// The records that shaders wrote, without the word that marks their sites; none if there are none. From now on there
    /// are none.
    pub(crate) fn take_records(&self) -> Option<Vec<u32>> {
        let records = self.records();
        if records.read_word(0) == 0 {
            return None;
        }
        let words = records.first_words(records.words - 1).read();
        records.zero();
        Some(words)
    }

    /// Where shaders write records.
    fn records(&self) -> ArenaRegion {
        // SAFETY: `all` has these words, and they come first.
        unsafe { ArenaRegion::mapped(self.records, self.record_words) }
    }

    /// The records, followed by the touches.
    fn all(&self) -> ArenaRegion {
        // SAFETY: `add_draw` alone makes a draw, of a place in a block, which has this many words and stays mapped for
        // longer than the draw is kept.
        unsafe { ArenaRegion::mapped(self.records, self.record_words + self.touch_words) }
    }

    /// Where shaders record their touches; none if they do not.
    pub(crate) fn touches(&self) -> Option<ArenaRegion> {
        (self.touch_words > 0).then(|| self.all().skip_words(self.record_words))
    }

    fn root(&self) -> Option<ArenaRegion> {
        let space = u64::from(ROOT_SPACE) * 4;
        // SAFETY: in memory of this kind a root table lies before the records (`DrawMemory::Root`).
        (self.memory == DrawMemory::Root).then(|| unsafe { ArenaRegion::mapped(self.records - space, ROOT_SPACE) })
    }

    /// Clears the memory of a draw that has completed. Only records that a shader has begun are cleared, because a draw
    /// has more than a kilobyte.
    fn clear(&self) {
        if let Some(root) = self.root() {
            root.zero();
        }
        // If the word counter is zero, no record was begun.
        if self.memory != DrawMemory::Shared && (self.records().read_word(0) != 0 || self.touch_words > 0) {
            self.all().zero();
        }
    }
}

/// The labels at a draw.
struct LabelSnapshot {
    ended_outer: usize,
    open: Vec<String>,
}

/// The debug labels around draws.
#[derive(Default)]
pub(crate) struct DrawLabels {
    /// The open labels, outermost first.
    open: Vec<String>,
    /// How many labels were ended that an earlier command buffer had begun.
    ended_outer: usize,
    snapshots: Vec<LabelSnapshot>,
    /// The snapshot of the open labels; none if they have changed since.
    current: Option<u32>,
}

impl DrawLabels {
    pub(crate) fn begin(&mut self, name: String) {
        self.open.push(name);
        self.current = None;
    }

    pub(crate) fn end(&mut self) {
        if self.open.pop().is_none() {
            self.ended_outer += 1;
        }
        self.current = None;
    }

    /// The labels that are open behind this command buffer, by those before it.
    pub(crate) fn continue_labels(&self, labels: &mut Vec<String>) {
        labels.truncate(labels.len().saturating_sub(self.ended_outer));
        labels.extend_from_slice(&self.open);
    }

    /// The open labels.
    pub(crate) fn open(&self) -> &[String] {
        &self.open
    }

    /// The number of the snapshot of the open labels.
    #[inline(always)]
    fn snapshot_number(&mut self) -> u32 {
        match self.current {
            Some(item) => item,
            None => self.take_snapshot(),
        }
    }

    #[cold]
    fn take_snapshot(&mut self) -> u32 {
        let number = self.snapshots.len() as u32;
        self.snapshots.push(LabelSnapshot { ended_outer: self.ended_outer, open: self.open.clone() });
        self.current = Some(number);
        number
    }

    /// The labels of a snapshot, in those that were open before.
    fn snapshot(&self, number: u32, mut outer: Vec<String>) -> Vec<String> {
        let Some(snapshot) = self.snapshots.get(number as usize) else { return outer };
        outer.truncate(outer.len().saturating_sub(snapshot.ended_outer));
        outer.extend_from_slice(&snapshot.open);
        outer
    }
}

/// A draw or dispatch that is being recorded.
#[derive(Clone, Copy)]
pub(crate) struct DrawCommand {
    /// Its number among the draws of the command buffer.
    pub(crate) number: u32,
    /// Its number among the launches of shaders, for feedback.
    pub(crate) launch: Option<u32>,
    pub(crate) command: Command,
}

impl CommandBufferState {
    /// Adds a recorded draw or dispatch with checks.
    #[inline(always)]
    pub(crate) fn add_draw(&mut self, draw: DrawCommand, variant: u32, area: DrawRecordArea) {
        let labels = self.labels.snapshot_number();
        self.draws.push(RecordedDraw {
            number: draw.number,
            launch: draw.launch,
            function: draw.command,
            memory: area.memory,
            variant,
            labels,
            record_words: area.records.words,
            touch_words: area.touch_words,
            records: area.records.host_address(),
        });
    }

    /// Describes a draw for a message.
    pub(crate) fn describe_draw(&self, recorded_draw: &RecordedDraw) -> DrawDescription {
        DrawDescription {
            number: recorded_draw.number,
            launch: recorded_draw.launch.map(|it| (it, recorded_draw.function)),
            command: recorded_draw.function.desc().name,
            variant: Arc::clone(self.variant_of(recorded_draw)),
            labels: self.labels.snapshot(recorded_draw.labels, self.outer_labels.as_ref().clone()),
        }
    }

    /// The variant of a draw's pipeline.
    pub(crate) fn variant_of(&self, recorded_draw: &RecordedDraw) -> &Arc<PipelineVariant> {
        &self.variants[recorded_draw.variant as usize]
    }

    /// The root tables that have the address table.
    pub(crate) fn roots(&self) -> impl Iterator<Item = ArenaRegion> {
        self.draws.iter().filter(|it| self.variant_of(it).reads_addresses).filter_map(RecordedDraw::root)
    }

    /// Clears the memory of all draws, which have completed.
    pub(crate) fn clear_draws(&self) {
        self.draws.iter().for_each(RecordedDraw::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded_draw(words: &mut [u32], memory: DrawMemory, touch_words: u32) -> RecordedDraw {
        let space = if memory == DrawMemory::Root { ROOT_SPACE } else { 0 };
        let records = ArenaRegion::of_words(words).skip_words(space);
        RecordedDraw {
            launch: Some(0),
            number: 0,
            function: Command::CmdDraw,
            memory,
            variant: 0,
            labels: 0,
            record_words: records.words - touch_words,
            touch_words,
            records: records.host_address(),
        }
    }

    #[test]
    fn what_a_draw_wrote_is_zero_again() {
        let root = ROOT_SPACE as usize;
        for (memory, touch_words) in [(DrawMemory::Root, 0), (DrawMemory::Root, 3), (DrawMemory::Records, 0)] {
            let mut words = vec![7_u32; root + 8];
            recorded_draw(&mut words, memory, touch_words).clear();
            assert_eq!(words, vec![0; root + 8]);
        }
        let mut words = vec![7_u32; 8];
        recorded_draw(&mut words, DrawMemory::Shared, 0).clear();
        assert_eq!(words, [7; 8], "others may use it");
    }

    #[test]
    fn memory_without_records_is_not_written() {
        let root = ROOT_SPACE as usize;
        let mut words = vec![7_u32; root + 8];
        words[root] = 0;
        recorded_draw(&mut words, DrawMemory::Root, 0).clear();
        assert_eq!(words[..=root], vec![0; root + 1]);
        assert_eq!(words[root + 1..], [7; 7], "no word was counted");
        words[root] = 0;
        recorded_draw(&mut words, DrawMemory::Root, 2).clear();
        assert_eq!(words, vec![0; root + 8], "what is touched is not counted there");
    }

    #[test]
    fn labels_are_kept_once_for_all_draws_between_two_changes() {
        let mut labels = DrawLabels::default();
        assert_eq!((labels.snapshot_number(), labels.snapshot_number()), (0, 0));
        labels.begin("frame".into());
        labels.begin("shadows".into());
        let inner = labels.snapshot_number();
        assert_eq!((inner, labels.snapshot_number()), (1, 1));
        labels.end();
        let outer = labels.snapshot_number();
        assert_eq!(labels.snapshot(inner, Vec::new()), ["frame", "shadows"]);
        assert_eq!(labels.snapshot(outer, Vec::new()), ["frame"]);
        assert!(labels.snapshot(0, Vec::new()).is_empty());
    }

    #[test]
    fn labels_go_on_in_the_next_command_buffer() {
        let (mut first, mut second) = (DrawLabels::default(), DrawLabels::default());
        first.begin("frame".into());
        first.begin("shadows".into());
        let before = second.snapshot_number();
        second.end();
        second.begin("sky".into());
        let inside = second.snapshot_number();
        let mut open = Vec::new();
        first.continue_labels(&mut open);
        assert_eq!(open, ["frame", "shadows"]);
        assert_eq!(second.snapshot(before, open.clone()), ["frame", "shadows"]);
        assert_eq!(second.snapshot(inside, open.clone()), ["frame", "sky"]);
        second.continue_labels(&mut open);
        assert_eq!(open, ["frame", "sky"]);
    }
}
