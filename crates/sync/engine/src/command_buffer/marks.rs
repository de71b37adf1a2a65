//! Marks: which accesses of a command buffer a queue need not check, or need not add to the state of their ranges.
//!
//! A command buffer is recorded once and executed many times. While it is recorded, the engine already executes it once
//! on an isolated device (`recording`), and that execution sets the marks. When a queue executes the command buffer, it
//! skips what the marks allow. The rules:
//!
//! 1. **Recording reports every hazard between two accesses of the command buffer.** An execution only has to find
//!    hazards between the command buffer and work before it, and to leave the state that later work is checked against.
//! 2. **Hazards with earlier work show at the first accesses of a range**: the reads before the first write, and that
//!    write. After that write, the last write to the range is one of the command buffer itself, so rule 1 covers every
//!    later access ([`AccessMarks::written_before`]).
//! 3. **A read that repeats an earlier read conflicts only if the earlier one does.** Clocks only gain knowledge, so
//!    what was visible to the first read is visible to the second ([`AccessMarks::read_before`],
//!    [`AccessMarks::repeats_previous`]). Two limits follow. The earlier access must be free of conflicts
//!    ([`ExecutionProgress::is_clean`], [`ExecutionProgress::was_clean_action`]). And no subpass may end between the
//!    two, because the queue drops what the clock of a subpass knows ([`ExecutionProgress::visible_since`]). A write
//!    can repeat only the write of the previous draw, and only in rasterization order
//!    ([`AccessMarks::raster_ordered`]).
//! 4. **Later work can only conflict with the last accesses of a range**: the last write, and the last read of each
//!    stage after it. Earlier accesses need not be added to the state ([`AccessMarks::superseded`],
//!    [`AccessMarks::repeated_by_next`]).
//! 5. **The first read of a range is added to the state even if the command buffer overwrites it later.** The checks of
//!    a later read and of the first write ask whether a read came before them (`Rules::most_recent_reads`,
//!    `Rules::visible_writes`).
//! 6. **Marks concern accesses to exactly the same range.** If another access uses only a part of the range, or a
//!    barrier names the range, the range is no longer marked (`RangeState::is_marked`). Then no access before that is
//!    superseded.
//!
//! The marks hold only as long as resources keep their addresses and aliases (`PreparedCommandBuffer::is_marked`).

use crate::access::access_context::AccessContext;
use crate::access::addressed_access::AddressedAccess;
use crate::access::range_state::RangeState;
use crate::command_buffer::prepared_commands::{PreparedCommands, PreparedKind};
use crate::dependency::clocks::Tag;
use crate::queue::device::TAGS_PER_COMMAND;

/// Marks of up to 64 accesses of a command. Bit `n` of each word belongs to access `n`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccessMarks {
    // What the command does, whatever is recorded around it.
    /// The access writes.
    pub(crate) writes: u64,
    /// The command writes to the range, by this access or by another one to the same range, which stands next to it.
    pub(crate) written_range: u64,
    /// Rasterization order (`primsrast-order`) orders all accesses of the command to the range after the same accesses
    /// of an earlier draw in the same subpass.
    pub(crate) raster_ordered: u64,

    // How the command compares with its neighbors. Draws often use the same resources one after the other.
    /// The previous command makes the same access. Rule 3.
    pub(crate) repeats_previous: u64,
    /// The next command makes the same access. Rule 4.
    pub(crate) repeated_by_next: u64,

    // What the rest of the command buffer does.
    /// The command buffer writes to the whole range before this access. Rule 2.
    pub(crate) written_before: u64,
    /// The command buffer makes the same read before this access, and no write to the range before that. Rule 3.
    pub(crate) read_before: u64,
    /// A later access of the command buffer replaces this one in the state of the range. Rule 4.
    pub(crate) superseded: u64,
}

impl AccessMarks {
    /// The marks that do not depend on other commands.
    pub(crate) fn command_only(&self) -> AccessMarks {
        let AccessMarks { writes, written_range, raster_ordered, .. } = *self;
        AccessMarks { writes, written_range, raster_ordered, ..AccessMarks::default() }
    }

    /// Accesses that cannot conflict if those of the previous command do not. Outside of rendering nothing orders a
    /// write after the same write of the previous command.
    #[inline]
    pub(crate) fn repeated(&self, is_rendering: bool) -> u64 {
        self.repeats_previous & if is_rendering { u64::MAX } else { !self.written_range }
    }

    /// Accesses for which the check of an earlier access of the command buffer suffices.
    fn checked_by_earlier_access(&self) -> u64 {
        self.repeats_previous | self.written_before | self.read_before
    }
}

/// What an execution does with marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkMode {
    /// The execution neither sets nor uses marks, except for repeated accesses, which `prepared_commands` marks without
    /// execution.
    Off,
    /// The command buffer is being recorded: the execution sets marks.
    Set,
    /// A queue executes the command buffer: the execution skips what marks allow.
    Apply,
}

/// How far the execution of a command buffer has come, as far as marks depend on it.
pub(crate) struct ExecutionProgress {
    /// The command buffer is executed while it is recorded: the next command is not known.
    pub(crate) is_recording: bool,
    /// The previous command was an action without a conflict.
    pub(crate) was_clean_action: bool,
    /// No command so far had a conflict.
    pub(crate) is_clean: bool,
    pub(crate) marking: MarkMode,
    /// The end of the last subpass. What was visible to an access after this tag is still visible to the same access.
    pub(crate) visible_since: Tag,
    /// The current run of commands with consecutive tags.
    pub(crate) command_run: CommandRun,
    /// Marks that this execution sets. They are applied afterwards (`check_until`), because the list of commands is
    /// borrowed meanwhile.
    pub(crate) mark_updates: Vec<MarkUpdate>,
}

/// Commands whose tags follow each other. A run ends where the command buffer executes secondary command buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommandRun {
    pub(crate) first_tag: Tag,
    pub(crate) first_command: usize,
}

impl CommandRun {
    /// The command with a tag, unless it is before this run.
    #[inline]
    fn command_of_tag(&self, tag: Tag) -> Option<usize> {
        (tag >= self.first_tag).then(|| self.first_command + ((tag - self.first_tag) / TAGS_PER_COMMAND) as usize)
    }
}

/// A change of one word of marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkUpdate {
    /// The index of the [`AccessMarks`] in the list of commands.
    pub(crate) word: u32,
    pub(crate) change: MarkChange,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum MarkChange {
    /// Sets `written_before` and `read_before`.
    Before { written: u64, read: u64 },
    /// Adds to `superseded`.
    Superseded(u64),
}

/// Accesses of a command that an execution skips, as bits.
#[derive(Clone, Copy)]
pub(crate) struct SkippedAccesses {
    /// They need no check.
    pub(crate) checks: u64,
    /// They need not be added to the states of their ranges.
    pub(crate) additions: u64,
}

impl ExecutionProgress {
    pub(crate) fn new() -> ExecutionProgress {
        ExecutionProgress {
            is_recording: false,
            was_clean_action: false,
            is_clean: true,
            marking: MarkMode::Off,
            visible_since: 0,
            command_run: CommandRun::default(),
            mark_updates: Vec::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        (self.was_clean_action, self.is_clean, self.visible_since) = (false, true, 0);
        self.mark_updates.clear();
    }

    /// The accesses of a command that this execution skips.
    ///
    /// While the command buffer is recorded, no repeated access is added at once, because the next command may repeat it
    /// again. The executor adds the last one later (`add_last_repeated`).
    #[inline]
    pub(crate) fn skipped(&self, marks: &AccessMarks, is_rendering: bool) -> SkippedAccesses {
        let repeated = if self.was_clean_action { marks.repeated(is_rendering) } else { 0 };
        let not_added = if self.is_recording { repeated } else { repeated & marks.repeated_by_next };
        match self.marking {
            MarkMode::Off | MarkMode::Set => SkippedAccesses { checks: repeated, additions: not_added },
            MarkMode::Apply => {
                let read_before = if self.is_clean { marks.read_before } else { 0 };
                SkippedAccesses {
                    checks: repeated | marks.written_before | read_before,
                    additions: not_added | marks.superseded,
                }
            }
        }
    }

    /// Marks the previous read with the same usage as superseded by a new read, if rules 5 and 6 allow it. `state` is
    /// that of the whole range, before the new read is added.
    ///
    /// Returns whether the check of the previous read suffices for the new one (rule 3).
    #[inline]
    pub(crate) fn mark_read(
        &mut self,
        list: &PreparedCommands,
        state: &RangeState,
        context: &AccessContext<'_>,
        read: &AddressedAccess,
        position: usize,
    ) -> bool {
        let Some(last_read) = state.last_read(read.usage, read.order) else { return false };
        let Some(command) = self.command_run.command_of_tag(last_read) else { return false };
        let (kind, addressed) = list.addressed_accesses(command);
        // Commands that use the same resources mostly have them at the same positions.
        let is_same_read = |it: &AddressedAccess| it.is_same_use(read);
        let is_at_position = addressed.get(position).is_some_and(is_same_read);
        let found = if is_at_position { Some(position) } else { addressed.iter().position(is_same_read) };
        let Some(found) = found.filter(|_| kind == PreparedKind::Disjoint) else { return false };
        let (word, bit) = list.mark_position(command, found);
        let is_not_first = || list.marks_at(word).checked_by_earlier_access() & bit != 0;
        // A read of an earlier subpass stays in the state by itself; the new read does not replace it.
        if state.is_marked() && last_read > context.subpass_begin && is_not_first() {
            self.mark_updates.push(MarkUpdate { word, change: MarkChange::Superseded(bit) });
        }
        last_read > self.visible_since
    }

    /// Marks the accesses in the state of a range as superseded, if rules 5 and 6 allow it: a write is about to replace
    /// them.
    pub(crate) fn mark_overwritten(&mut self, list: &PreparedCommands, state: &RangeState, write: &AddressedAccess) {
        if !state.is_marked() {
            return;
        }
        state.each_tag(|tag| {
            let Some(command) = self.command_run.command_of_tag(tag) else { return };
            let (kind, addressed) = list.addressed_accesses(command);
            if kind != PreparedKind::Disjoint {
                return;
            }
            for (position, _) in addressed.iter().enumerate().filter(|it| it.1.range == write.range) {
                let (word, bit) = list.mark_position(command, position);
                let marks = list.marks_at(word);
                if (marks.writes | marks.checked_by_earlier_access()) & bit != 0 {
                    self.mark_updates.push(MarkUpdate { word, change: MarkChange::Superseded(bit) });
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
