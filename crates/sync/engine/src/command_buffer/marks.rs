//! What the commands of a command buffer show about each other, so that less must be looked at each time it is executed.
//!
//! All conflicts inside of a command buffer are told while it is recorded. When it is executed, what counts is how it
//! begins: of each range the reads until the first write, and that write. And how it leaves things: of each range the
//! last write, and the reads behind it. Everything else is marked, spot by spot, and left out.
//!
//! Marks are made where a range is used just as it was used before. Whoever else looks at a range, in whatever other way,
//! takes that into the range's state (`RangeState::is_marked`): what he needs is not left out.

use crate::access::addressed_access::AddressedAccess;
use crate::access::range_state::{AccessContext, RangeState};
use crate::command_buffer::plans::{CommandPlans, PlanKind};
use crate::dependency::clocks::Tag;
use crate::queue::device::TAGS_PER_COMMAND;

/// Marks of up to 64 spots of a command, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccessMarks {
    pub(crate) writes: u64,
    /// The command writes to this range, here or by another spot, which is next to it.
    pub(crate) written_range: u64,
    /// Rendering orders all that the command does to this range after what was done to it in the same way.
    pub(crate) raster_ordered: u64,

    /// Draw after draw uses the same things. What the command before does in the very same way to a range, with
    /// nothing between, cannot conflict if that one does not, and only the first and the last of them must be known.
    pub(crate) repeats_previous: u64,
    /// The command behind does the same.
    pub(crate) repeated_by_next: u64,

    /// The command buffer wrote to all of the range before: whatever is wrong is wrong inside of it, and was told when
    /// it was recorded.
    pub(crate) written_before: u64,
    /// The command buffer read the range in the same way before, and has not written to it: it cannot conflict with
    /// what came before if that one does not.
    pub(crate) read_before: u64,
    /// The command buffer does something to the range later after which nobody asks for this one.
    pub(crate) superseded: u64,
}

impl AccessMarks {
    /// What does not depend on other commands.
    pub(crate) fn command_only(&self) -> AccessMarks {
        let AccessMarks { writes, written_range: beside_write, raster_ordered: ordered, .. } = *self;
        AccessMarks { writes, written_range: beside_write, raster_ordered: ordered, ..AccessMarks::default() }
    }

    /// What the command before did too.
    #[inline]
    pub(crate) fn repeated(&self, is_rendering: bool) -> u64 {
        self.repeats_previous & if is_rendering { u64::MAX } else { !self.written_range }
    }

    /// What needs no look at what came before the command buffer: another spot shows what there is to see.
    fn checked_elsewhere(&self) -> u64 {
        self.repeats_previous | self.written_before | self.read_before
    }
}

/// How marks and an execution have to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkMode {
    Off,
    Record,
    Apply,
}

/// What the execution of a command buffer has shown so far.
pub(crate) struct ExecutionProgress {
    /// Whether it is executed as it is recorded, so that nobody knows what comes behind.
    pub(crate) is_recording: bool,
    /// Whether the command before was an action without a conflict.
    pub(crate) was_clean_action: bool,
    /// Whether no command had a conflict.
    pub(crate) is_clean: bool,
    pub(crate) marking: MarkMode,
    /// What was visible to accesses since then is visible to the same ones now: where the last subpass ended.
    pub(crate) visible_since: Tag,
    /// The first tag of commands that follow each other, and its command.
    pub(crate) tag_run: (Tag, usize),
    /// Marks that are to be made, by their numbers.
    pub(crate) mark_updates: Vec<(u32, MarkUpdate)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum MarkUpdate {
    Own { inner: u64, again: u64 },
    Superseded(u64),
}

/// Spots of a command that need no check, and those that need not be kept.
#[derive(Clone, Copy)]
pub(crate) struct SkippedAccesses {
    pub(crate) check: u64,
    pub(crate) record: u64,
}

impl ExecutionProgress {
    pub(crate) fn new() -> ExecutionProgress {
        ExecutionProgress {
            is_recording: false,
            was_clean_action: false,
            is_clean: true,
            marking: MarkMode::Off,
            visible_since: 0,
            tag_run: (0, 0),
            mark_updates: Vec::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        (self.was_clean_action, self.is_clean, self.visible_since) = (false, true, 0);
        self.mark_updates.clear();
    }

    /// What need not be looked at. Where nobody knows what comes behind, what is repeated is kept later.
    #[inline]
    pub(crate) fn skipped(&self, marks: &AccessMarks, is_rendering: bool) -> SkippedAccesses {
        let repeated = if self.was_clean_action { marks.repeated(is_rendering) } else { 0 };
        let kept = if self.is_recording { repeated } else { repeated & marks.repeated_by_next };
        match self.marking {
            MarkMode::Off | MarkMode::Record => SkippedAccesses { check: repeated, record: kept },
            MarkMode::Apply => {
                let again = if self.is_clean { marks.read_before } else { 0 };
                SkippedAccesses { check: repeated | marks.written_before | again, record: kept | marks.superseded }
            }
        }
    }

    /// Marks for a spot that only reads a range, which has this state, all of it, and is about to keep it.
    #[inline]
    pub(crate) fn mark_read(
        &mut self,
        plans: &CommandPlans,
        state: &RangeState,
        context: &AccessContext<'_>,
        addressed_access: &AddressedAccess,
        at: usize,
    ) -> bool {
        let Some(last) = state.last_read(addressed_access.usage, addressed_access.order) else { return false };
        let Some(command) = self.command_of_tag(last) else { return false };
        let (kind, addressed) = plans.addressed_accesses(command);
        // The same things are in the same places, in most cases.
        let is_there = |it: &AddressedAccess| it.is_same_use(addressed_access);
        let at = if addressed.get(at).is_some_and(is_there) { Some(at) } else { addressed.iter().position(is_there) };
        let Some(at) = at.filter(|_| kind == PlanKind::Disjoint) else { return false };
        let (number, bit) = plans.mark_position(command, at);
        // One that is not of the same subpass is remembered apart.
        if state.is_marked() && last > context.subpass_begin && plans.marks_at(number).checked_elsewhere() & bit != 0 {
            self.mark_updates.push((number, MarkUpdate::Superseded(bit)));
        }
        last > self.visible_since
    }

    /// What a range remembers until it is overwritten.
    pub(crate) fn mark_overwritten(
        &mut self,
        plans: &CommandPlans,
        state: &RangeState,
        addressed_access: &AddressedAccess,
    ) {
        if !state.is_marked() {
            return;
        }
        state.each_tag(|tag| {
            let Some(command) = self.command_of_tag(tag) else { return };
            let (kind, addressed) = plans.addressed_accesses(command);
            if kind != PlanKind::Disjoint {
                return;
            }
            for (at, _) in addressed.iter().enumerate().filter(|it| it.1.range == addressed_access.range) {
                let (number, bit) = plans.mark_position(command, at);
                let marks = plans.marks_at(number);
                if (marks.writes | marks.checked_elsewhere()) & bit != 0 {
                    self.mark_updates.push((number, MarkUpdate::Superseded(bit)));
                }
            }
        });
    }

    /// The command with a tag, if it is one of those that follow each other now.
    #[inline]
    fn command_of_tag(&self, tag: Tag) -> Option<usize> {
        let (first, command) = self.tag_run;
        (tag >= first).then(|| command + ((tag - first) / TAGS_PER_COMMAND) as usize)
    }
}

#[cfg(test)]
mod tests;
