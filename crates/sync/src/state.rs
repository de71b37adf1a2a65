//! What happened to a range: its last write, and the reads since.

use lavascope_program::{HazardKind, ResourceId};

use crate::clock::{Carry, Clock, Tag};
use crate::host::after_present;
use crate::order::{self, Order};
use crate::overlay::Overlay;
use crate::rules::Rules;
use crate::scope::Expanded;
use crate::usage::{PRESENT, Stage, Stages, TABLES, TRANSITION, TRANSITION_WRITE, Usage};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    write: Option<Write>,
    /// What the same command wrote in other ways.
    more_writes: Vec<Write>,
    /// One for each lane that read.
    reads: Vec<Read>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Write {
    usage: Usage,
    /// Through which resource.
    through: ResourceId,
    queue: u8,
    tag: Tag,
    order: Order,
    overlay: Option<Box<Overlay>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    usage: Usage,
    queue: u8,
    first: Tag,
    last: Tag,
    order: Order,
}

/// Where and how something is accessed now.
#[derive(Clone, Copy)]
pub(crate) struct Now<'a> {
    pub(crate) rules: Rules,
    pub(crate) clock: &'a Clock,
    pub(crate) queue: u8,
    pub(crate) tag: Tag,
    /// The tag before which the render pass instance began, inside which fragments are ordered.
    pub(crate) instance: Option<Tag>,
    /// Where the subpass began, inside of which the direct part of a scope lies; zero outside of render passes.
    pub(crate) from: Tag,
    /// Stretches of tags of subpasses that nothing orders before this one.
    pub(crate) apart: &'a [(Tag, Tag)],
    /// Through which resource the memory is accessed, and whether by its own addresses.
    pub(crate) through: ResourceId,
    pub(crate) name: Name,
}

/// By what name memory is accessed. A dependency on one resource is not one on another in the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Own,
    /// By another resource in the same memory, at these addresses of that one.
    Alias {
        start: u64,
        end: u64,
    },
}

/// The first scope of a dependency on a resource.
#[derive(Default)]
pub(crate) struct First {
    /// What it has of everything.
    pub(crate) carry: Carry,
    /// What it has in addition of accesses through the resource that it names; in version 1, through each of them.
    pub(crate) own: Vec<(ResourceId, Carry)>,
    /// The stages that it begins with, and up to when: one for a barrier, one for each event of a wait.
    pub(crate) parts: Vec<(Stages, Tag)>,
}

/// A conflict with an earlier access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) kind: HazardKind,
    pub(crate) prior: Tag,
    pub(crate) prior_usage: Usage,
}

impl State {
    /// With what an access conflicts.
    pub(crate) fn check(&self, now: Now<'_>, usage: Usage, order: Order) -> Vec<Conflict> {
        if TABLES.write_column(usage).is_some() {
            self.check_write(now, usage, order)
        } else {
            self.writes().filter_map(|it| self.check_read(now, it, usage, order)).collect()
        }
    }

    fn writes(&self) -> impl Iterator<Item = &Write> {
        self.write.iter().chain(&self.more_writes)
    }

    fn check_read(&self, now: Now<'_>, write: &Write, usage: Usage, order: Order) -> Option<Conflict> {
        if now.is_apart(write.queue, write.tag) {
            return Some(write.conflict(now, HazardKind::ReadAfterWrite, HazardKind::ReadRacingWrite));
        }
        if write.tag == now.tag
            || write.is_visible(now, usage)
            || now.is_ordered(write.queue, write.tag, (write.usage, write.order), (usage, order))
        {
            return None;
        }
        if !now.rules.most_recent_reads {
            return Some(write.conflict(now, HazardKind::ReadAfterWrite, HazardKind::ReadRacingWrite));
        }
        // A read in between that happens before this one has been checked in its stead.
        let stage = TABLES.stage(usage);
        let is_covered = self.reads.iter().filter(|it| it.first > write.tag).any(|it| {
            it.happens_before(now, stage, it.first)
                || now.is_ordered(it.queue, it.first, (it.usage, it.order), (usage, order))
        });
        (!is_covered).then(|| write.conflict(now, HazardKind::ReadAfterWrite, HazardKind::ReadRacingWrite))
    }

    fn check_write(&self, now: Now<'_>, usage: Usage, order: Order) -> Vec<Conflict> {
        let stage = TABLES.stage(usage);
        let mut found = Vec::new();
        for read in self.reads.iter().filter(|it| it.last != now.tag) {
            let is_ordered = now.is_ordered(read.queue, read.last, (read.usage, read.order), (usage, order));
            let is_before = is_ordered || read.happens_before(now, stage, read.last);
            if !is_before || now.is_apart(read.queue, read.last) {
                found.push(read.conflict(now));
            }
        }
        for write in self.writes() {
            let is_fine = write.tag == now.tag
                || self.is_excused(now.rules, write)
                || write.is_ready(now, usage)
                || now.is_ordered(write.queue, write.tag, (write.usage, write.order), (usage, order));
            if !is_fine || now.is_apart(write.queue, write.tag) {
                found.push(write.conflict(now, HazardKind::WriteAfterWrite, HazardKind::WriteRacingWrite));
            }
        }
        found
    }

    /// Reads since a write have been checked against it; those of its own command have not.
    fn is_excused(&self, rules: Rules, write: &Write) -> bool {
        rules.visible_writes && self.reads.iter().any(|it| it.last > write.tag)
    }

    /// Whether an access to this very range stands between an earlier access of its memory by another name and one
    /// that happens now: it has been held against the earlier one in its stead.
    pub(crate) fn stands_between(&self, now: Now<'_>, usage: Usage, conflict: &Conflict) -> bool {
        let prior = conflict.prior;
        let is_written = self.writes().any(|it| it.tag > prior);
        let stage = TABLES.stage(usage);
        let is_between = |it: &Read| match TABLES.write_column(usage) {
            Some(_) if !now.rules.visible_writes => false,
            None if !now.rules.most_recent_reads => false,
            Some(_) => it.last > prior && TABLES.write_column(conflict.prior_usage).is_some(),
            None => [it.first, it.last].iter().any(|tag| *tag > prior && it.happens_before(now, stage, *tag)),
        };
        is_written || self.reads.iter().any(is_between)
    }

    /// Addresses of other resources at which what is visible through them changes.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = u64> {
        self.writes().filter_map(|it| it.overlay.as_deref()).flat_map(Overlay::cuts)
    }

    /// With what the layout transition of a barrier conflicts: what its first scope does not cover.
    pub(crate) fn check_transition(&self, now: Now<'_>, first: &First) -> Vec<Conflict> {
        let mut found = Vec::new();
        for read in &self.reads {
            let is_fine = first.carry.has(read.queue, TABLES.stage(read.usage), read.last)
                || read.happens_before(now, TRANSITION, read.last);
            if !is_fine {
                found.push(read.conflict(now));
            }
        }
        for write in self.writes() {
            let is_implicit = write.tag == now.tag || now.rules.ordered_transitions && write.queue == now.queue;
            if write.usage == TRANSITION_WRITE && is_implicit {
                continue;
            }
            let is_fine = self.is_excused(now.rules, write)
                || write.is_in_scope(now, first)
                || write.is_available(now, TRANSITION);
            if !is_fine {
                found.push(write.conflict(now, HazardKind::WriteAfterWrite, HazardKind::WriteRacingWrite));
            }
        }
        found
    }

    /// With what presenting conflicts: what the semaphores before it do not cover.
    pub(crate) fn check_present(&self, rules: Rules, carry: &Carry, queue: u8) -> Vec<Conflict> {
        let mut found = Vec::new();
        for it in self.reads.iter().filter(|it| !carry.has(it.queue, TABLES.stage(it.usage), it.last)) {
            found.push(Conflict { kind: HazardKind::PresentAfterRead, prior: it.last, prior_usage: it.usage });
        }
        let others = self.writes().filter(|it| it.queue != queue && !self.is_excused(rules, it));
        for it in others.filter(|it| !carry.has_available(it.queue, it.usage, it.tag)) {
            found.push(Conflict { kind: HazardKind::PresentAfterWrite, prior: it.tag, prior_usage: it.usage });
        }
        found
    }

    /// Whatever comes after the last read of a lane comes after the earlier ones too, unless it only knows the stretch
    /// of a subpass: inside of one, which began at `from`, the reads before it stay.
    pub(crate) fn add_read(&mut self, queue: u8, tag: Tag, usage: Usage, order: Order, from: Tag) {
        let stage = TABLES.stage(usage);
        let mut read = Read { usage, queue, first: tag, last: tag, order };
        // A read of the command that wrote says nothing about who may read after that.
        let written = self.write.as_ref().map_or(0, |it| it.tag);
        self.reads.retain(|it| {
            let is_lane = it.queue == queue && TABLES.stage(it.usage) == stage && it.last > from;
            let is_same = is_lane && order::is_alike((it.usage, it.order), (usage, order));
            if is_same && it.first > written {
                read.first = read.first.min(it.first);
            }
            !is_same
        });
        self.reads.push(read);
    }

    pub(crate) fn add_write(&mut self, through: ResourceId, queue: u8, tag: Tag, usage: Usage, order: Order) {
        let is_first = self.write.as_ref().is_none_or(|it| it.tag != tag);
        if is_first {
            self.reads.clear();
            self.more_writes.clear();
            self.write = Some(Write { usage, through, queue, tag, order, overlay: None });
        } else if self.writes().all(|it| (it.usage, it.through) != (usage, through)) || usage == TRANSITION_WRITE {
            self.more_writes.push(Write { usage, through, queue, tag, order, overlay: None });
        }
    }

    /// The barrier's own write, from which its second scope begins. It is available by itself, so whatever comes after
    /// transitions comes after it.
    pub(crate) fn add_transition(&mut self, now: Now<'_>, scope: &Expanded) {
        self.add_write(now.through, now.queue, now.tag, TRANSITION_WRITE, Order::None);
        if let Some(write) = self.more_writes.last_mut().or(self.write.as_mut()) {
            write.overlay(now, scope);
            write.overlay.get_or_insert_default().add_itself(now);
        }
    }

    /// If the last write is a layout transition that happens now, a second scope gets it.
    pub(crate) fn share_transition(&mut self, now: Now<'_>, scope: &Expanded) {
        for write in self.write.iter_mut().chain(&mut self.more_writes) {
            if write.usage == TRANSITION_WRITE && write.tag == now.tag {
                write.overlay(now, scope);
            }
        }
    }

    /// A dependency on the resource: if its first scope has the last write, its second scope, which is now, gets it.
    pub(crate) fn depend(&mut self, now: Now<'_>, first: &First, scope: &Expanded) {
        for write in self.write.iter_mut().chain(&mut self.more_writes) {
            if write.is_in_scope(now, first) {
                write.overlay(now, scope);
            }
        }
    }
}

impl Now<'_> {
    /// Whether rendering itself orders two accesses.
    fn is_ordered(&self, queue: u8, tag: Tag, prior: (Usage, Order), own: (Usage, Order)) -> bool {
        let is_inside = self.instance.is_some_and(|begin| tag > begin) && queue == self.queue;
        is_inside && order::is_ordered(prior, own)
    }

    /// Whether what follows directly from a dependency holds here: one outside of render passes from then on, one in a
    /// subpass until that ends.
    pub(crate) fn is_inside(&self, queue: u8, from: Tag) -> bool {
        queue == self.queue && (from == 0 || from == self.from)
    }

    /// Whether an access lies in a subpass that nothing orders before this one.
    fn is_apart(&self, queue: u8, tag: Tag) -> bool {
        queue == self.queue && self.apart.iter().any(|(begin, end)| *begin < tag && tag <= *end)
    }

    /// Whether no path at all leads here from an access: from the batch of another queue, or from a subpass.
    fn is_racing(&self, queue: u8, tag: Tag) -> bool {
        let is_far = queue != self.queue && self.clock.batches.get(&queue).copied().unwrap_or(0) < tag;
        is_far || self.is_apart(queue, tag)
    }
}

impl Write {
    /// The second scope of a dependency that has this write in its first.
    fn overlay(&mut self, now: Now<'_>, scope: &Expanded) {
        self.overlay.get_or_insert_default().add(now, scope);
    }

    fn is_visible(&self, now: Now<'_>, usage: Usage) -> bool {
        now.clock.is_visible(usage, self.queue, self.usage, self.tag)
            || self.overlay.as_ref().is_some_and(|it| it.is_visible(now, usage))
    }

    /// Whether another write may come after it.
    fn is_ready(&self, now: Now<'_>, usage: Usage) -> bool {
        match now.rules.visible_writes {
            true => self.is_visible(now, usage),
            false => self.is_available(now, TABLES.stage(usage)),
        }
    }

    /// Whether it is available to a stage by what came before.
    fn is_available(&self, now: Now<'_>, stage: Stage) -> bool {
        now.clock.is_available(stage, self.queue, self.usage, self.tag)
            || self.overlay.as_ref().is_some_and(|it| it.is_available(now, stage))
    }

    /// Whether the first scope of a dependency on this range has this write.
    fn is_in_scope(&self, now: Now<'_>, first: &First) -> bool {
        let is_own = |it: &&(ResourceId, Carry)| it.0 == self.through;
        let has = |it: &(ResourceId, Carry)| it.1.has_available(self.queue, self.usage, self.tag);
        let is_direct = now.name == Name::Own && first.own.iter().filter(is_own).any(has);
        is_direct
            || first.carry.has_available(self.queue, self.usage, self.tag)
            || self.overlay.as_ref().is_some_and(|it| it.reaches(now, first))
    }

    fn conflict(&self, now: Now<'_>, after: HazardKind, racing: HazardKind) -> Conflict {
        let kind = if now.is_racing(self.queue, self.tag) { racing } else { after };
        let kind = if self.usage == PRESENT { after_present(kind) } else { kind };
        Conflict { kind, prior: self.tag, prior_usage: self.usage }
    }
}

impl Read {
    fn happens_before(&self, now: Now<'_>, stage: Stage, tag: Tag) -> bool {
        now.clock.has_happened(stage, self.queue, TABLES.stage(self.usage), tag)
    }

    fn conflict(&self, now: Now<'_>) -> Conflict {
        let is_racing = now.is_racing(self.queue, self.last);
        let kind = if is_racing { HazardKind::WriteRacingRead } else { HazardKind::WriteAfterRead };
        Conflict { kind, prior: self.last, prior_usage: self.usage }
    }
}
