//! What the commands of a command buffer show about each other, so that less must be looked at each time it is executed.
//!
//! All conflicts inside of a command buffer are told while it is recorded. When it is executed, what counts is how it
//! begins: of each range the reads until the first write, and that write. And how it leaves things: of each range the
//! last write, and the reads behind it. Everything else is marked, spot by spot, and left out.
//!
//! Marks are made where a range is used just as it was used before. Whoever else looks at a range, in whatever other way,
//! takes that into the range's state (`State::is_marked`): what he needs is not left out.

use crate::clock::Tag;
use crate::device::TAGS_PER_COMMAND;
use crate::plan::{PlanKind, Plans};
use crate::spot::Spot;
use crate::state::{Now, State};

/// Marks of up to 64 spots of a command, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) writes: u64,
    /// The command writes to this range, here or by another spot, which is next to it.
    pub(crate) beside_write: u64,
    /// Rendering orders all that the command does to this range after what was done to it in the same way.
    pub(crate) ordered: u64,

    /// Draw after draw uses the same things. What the command before does in the very same way to a range, with
    /// nothing between, cannot conflict if that one does not, and only the first and the last of them must be known.
    pub(crate) before: u64,
    /// The command behind does the same.
    pub(crate) behind: u64,

    /// The command buffer wrote to all of the range before: whatever is wrong is wrong inside of it, and was told when
    /// it was recorded.
    pub(crate) inner: u64,
    /// The command buffer read the range in the same way before, and has not written to it: it cannot conflict with
    /// what came before if that one does not.
    pub(crate) again: u64,
    /// The command buffer does something to the range later after which nobody asks for this one.
    pub(crate) later: u64,
}

impl Marks {
    /// What does not depend on other commands.
    pub(crate) fn of_command(&self) -> Marks {
        let Marks { writes, beside_write, ordered, .. } = *self;
        Marks { writes, beside_write, ordered, ..Marks::default() }
    }

    /// What the command before did too.
    #[inline]
    pub(crate) fn repeated(&self, is_rendering: bool) -> u64 {
        self.before & if is_rendering { u64::MAX } else { !self.beside_write }
    }

    /// What needs no look at what came before the command buffer: another spot shows what there is to see.
    fn not_first(&self) -> u64 {
        self.before | self.inner | self.again
    }
}

/// How marks and an execution have to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marking {
    None,
    Made,
    Used,
}

/// What the execution of a command buffer has shown so far.
pub(crate) struct Progress {
    /// Whether it is executed as it is recorded, so that nobody knows what comes behind.
    pub(crate) is_growing: bool,
    /// Whether the command before was an action without a conflict.
    pub(crate) is_smooth: bool,
    /// Whether no command had a conflict.
    pub(crate) is_clean: bool,
    pub(crate) marking: Marking,
    /// What was visible to accesses since then is visible to the same ones now: where the last subpass ended.
    pub(crate) epoch: Tag,
    /// The first tag of commands that follow each other, and its command.
    pub(crate) run: (Tag, usize),
    /// Marks that are to be made, by their numbers.
    pub(crate) made: Vec<(u32, Made)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Made {
    Own { inner: u64, again: u64 },
    Later(u64),
}

/// Spots of a command that need no check, and those that need not be kept.
#[derive(Clone, Copy)]
pub(crate) struct Skipped {
    pub(crate) check: u64,
    pub(crate) keep: u64,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress {
            is_growing: false,
            is_smooth: false,
            is_clean: true,
            marking: Marking::None,
            epoch: 0,
            run: (0, 0),
            made: Vec::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        (self.is_smooth, self.is_clean, self.epoch) = (false, true, 0);
        self.made.clear();
    }

    /// What need not be looked at. Where nobody knows what comes behind, what is repeated is kept later.
    #[inline]
    pub(crate) fn skipped(&self, marks: &Marks, is_rendering: bool) -> Skipped {
        let repeated = if self.is_smooth { marks.repeated(is_rendering) } else { 0 };
        let kept = if self.is_growing { repeated } else { repeated & marks.behind };
        match self.marking {
            Marking::None | Marking::Made => Skipped { check: repeated, keep: kept },
            Marking::Used => {
                let again = if self.is_clean { marks.again } else { 0 };
                Skipped { check: repeated | marks.inner | again, keep: kept | marks.later }
            }
        }
    }

    /// Marks for a spot that only reads a range, which has this state, all of it, and is about to keep it.
    #[inline]
    pub(crate) fn mark_read(&mut self, plans: &Plans, state: &State, now: &Now<'_>, spot: &Spot, at: usize) -> bool {
        let Some(last) = state.last_read(spot.usage, spot.order) else { return false };
        let Some(command) = self.command_of(last) else { return false };
        let (kind, spots) = plans.spots(command);
        // The same things are in the same places, in most cases.
        let is_there = |it: &Spot| it.is_same(spot);
        let at = if spots.get(at).is_some_and(is_there) { Some(at) } else { spots.iter().position(is_there) };
        let Some(at) = at.filter(|_| kind == PlanKind::Apart) else { return false };
        let (number, bit) = plans.mark_of(command, at);
        // One that is not of the same subpass is remembered apart.
        if state.is_marked() && last > now.from && plans.marks_at(number).not_first() & bit != 0 {
            self.made.push((number, Made::Later(bit)));
        }
        last > self.epoch
    }

    /// What a range remembers until it is overwritten.
    pub(crate) fn mark_overwritten(&mut self, plans: &Plans, state: &State, spot: &Spot) {
        if !state.is_marked() {
            return;
        }
        state.each_tag(|tag| {
            let Some(command) = self.command_of(tag) else { return };
            let (kind, spots) = plans.spots(command);
            if kind != PlanKind::Apart {
                return;
            }
            for (at, _) in spots.iter().enumerate().filter(|it| it.1.range == spot.range) {
                let (number, bit) = plans.mark_of(command, at);
                let marks = plans.marks_at(number);
                if (marks.writes | marks.not_first()) & bit != 0 {
                    self.made.push((number, Made::Later(bit)));
                }
            }
        });
    }

    /// The command with a tag, if it is one of those that follow each other now.
    #[inline]
    fn command_of(&self, tag: Tag) -> Option<usize> {
        let (first, command) = self.run;
        (tag >= first).then(|| command + ((tag - first) / TAGS_PER_COMMAND) as usize)
    }
}

#[cfg(test)]
mod tests;
