//! What happened to a range: its last write, and the reads since.

use std::ops::Range;
use std::sync::Arc;

use lavascope_sync_ir::HazardKind;
use smallvec::SmallVec;

use crate::address::Identity;
use crate::clock::{Carry, Clock, Tag};
use crate::execute::Ready;
use crate::host::after_present;
use crate::order::{self, Order};
use crate::overlay::Overlay;
use crate::rules::Rules;
use crate::scope::{EVERYTHING, Expanded};
use crate::stretch::Ask;
use crate::usage::{PRESENT, Stage, Stages, TABLES, TRANSITION, TRANSITION_WRITE, Usage};

/// Small, because there is one for every range: most ranges have one write and one lane that read it since. What else
/// there is lies apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// When it was written last; zero for never.
    written: Tag,
    /// The last read of a lane; zero for none.
    last: Tag,
    more: Option<Box<More>>,
    /// Through which resource it was written.
    through: Identity,
    /// How long before the last read the first one was.
    span: u32,
    writer: By,
    reader: By,
    /// Whether all that it knows is of spots that marks were made for (see `mark`).
    is_marked: bool,
}

/// Who accesses, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct By {
    pub(crate) usage: Usage,
    pub(crate) queue: u8,
    pub(crate) order: Order,
}

impl Default for By {
    fn default() -> By {
        By { usage: TRANSITION_WRITE, queue: 0, order: Order::None }
    }
}

/// One of a few ranges has this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct More {
    /// Of the last write.
    overlay: Option<Arc<Overlay>>,
    /// Of other lanes.
    reads: Vec<Read>,
    /// What hardly any range has.
    rest: Option<Box<Rest>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rest {
    /// What the command that wrote last wrote in other ways.
    writes: Vec<(By, Identity, Tag, Option<Arc<Overlay>>)>,
    /// Reads of lanes that have read again, where a write by another name lies between: whoever comes after one of
    /// these has been checked against what is before it.
    past: Vec<Read>,
}

#[derive(Clone, Copy)]
struct Write<'a> {
    usage: Usage,
    /// Through which resource.
    through: Identity,
    queue: u8,
    tag: Tag,
    order: Order,
    overlay: Option<&'a Overlay>,
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
    pub(crate) through: Identity,
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
    pub(crate) own: Vec<(Identity, Carry)>,
    /// In version 1 also of accesses to the same memory by names whose addresses are others: these.
    pub(crate) elsewhere: Vec<(Range<u64>, Identity, Carry)>,
    /// The stages that it begins with, and up to when: one for a barrier, one for each event of a wait.
    pub(crate) parts: SmallVec<[(Stages, Tag); 1]>,
    /// Of a render pass: pairs of stretches of its subpasses where nothing leads from the one to the other.
    pub(crate) racing: Vec<[(Tag, Tag); 2]>,
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
    pub(crate) fn check(&self, now: &Now<'_>, usage: Usage, order: Order) -> Vec<Conflict> {
        let by = (usage, order);
        match TABLES.write_column(usage) {
            Some(_) => {
                let reads = self.reads().filter_map(|it| it.against_write(now, by));
                reads.chain(self.writes().filter_map(|it| self.check_write(now, it, by))).collect()
            }
            None => self.writes().filter_map(|it| self.check_read(now, it, by)).collect(),
        }
    }

    /// Whether a read conflicts with anything.
    #[inline]
    pub(crate) fn conflicts_with_read(&self, now: &Now<'_>, by: By) -> bool {
        self.written != 0 && self.conflicts(now, by)
    }

    /// Whether it conflicts with anything.
    pub(crate) fn conflicts(&self, now: &Now<'_>, by: By) -> bool {
        let is_write = TABLES.write_column(by.usage).is_some();
        let more = self.more.as_deref();
        // Rarely, a command wrote in several ways, or a write meets reads of several lanes.
        if more.is_some_and(|it| it.has_writes() || is_write && !it.reads.is_empty()) {
            return self.has_conflict(now, (by.usage, by.order));
        }
        let own = (by.usage, by.order);
        let By { usage, queue, order } = self.reader;
        let read = Read { usage, queue, first: self.first(), last: self.last, order };
        if is_write && self.last != 0 && read.against_write(now, own).is_some() {
            return true;
        }
        let By { usage, queue, order } = self.writer;
        let overlay = more.and_then(|it| it.overlay.as_deref());
        let write = Write { usage, through: self.through, queue, tag: self.written, order, overlay };
        match is_write {
            _ if self.written == 0 => false,
            true => self.check_write(now, write, own).is_some(),
            false => self.check_read(now, write, own).is_some(),
        }
    }

    #[cold]
    fn has_conflict(&self, now: &Now<'_>, by: (Usage, Order)) -> bool {
        match TABLES.write_column(by.0) {
            Some(_) => {
                self.reads().any(|it| it.against_write(now, by).is_some())
                    || self.writes().any(|it| self.check_write(now, it, by).is_some())
            }
            None => self.writes().any(|it| self.check_read(now, it, by).is_some()),
        }
    }

    #[inline]
    fn writes(&self) -> impl Iterator<Item = Write<'_>> {
        let By { usage, queue, order } = self.writer;
        let more = self.more.as_deref();
        let overlay = more.and_then(|it| it.overlay.as_deref());
        let (through, tag) = (self.through, self.written);
        let last = (tag != 0).then_some(Write { usage, through, queue, tag, order, overlay });
        let others = more.and_then(|it| it.rest.as_deref()).map_or(&[][..], |it| &it.writes);
        let others = others.iter().map(|(by, through, tag, overlay)| Write {
            usage: by.usage,
            through: *through,
            queue: by.queue,
            tag: *tag,
            order: by.order,
            overlay: overlay.as_deref(),
        });
        last.into_iter().chain(others)
    }

    #[inline]
    fn reads(&self) -> impl Iterator<Item = Read> {
        let By { usage, queue, order } = self.reader;
        let (first, last) = (self.first(), self.last);
        let own = (last != 0).then_some(Read { usage, queue, first, last, order });
        own.into_iter().chain(self.more.as_deref().map_or(&[][..], |it| &it.reads).iter().copied())
    }

    /// The first read of the lane that read last.
    #[inline]
    fn first(&self) -> Tag {
        self.last - Tag::from(self.span)
    }

    /// A first read that is too long ago is forgotten: the last one stands for it.
    #[inline]
    fn set_read(&mut self, first: Tag, last: Tag, by: By) {
        (self.span, self.last, self.reader) = (u32::try_from(last - first).unwrap_or(0), last, by);
    }

    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        self.written != 0
    }

    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked
    }

    #[inline]
    pub(crate) fn set_marked(&mut self, is_marked: bool) {
        self.is_marked = is_marked;
    }

    /// When it was read last in this very way.
    #[inline]
    pub(crate) fn last_read(&self, usage: Usage, order: Order) -> Option<Tag> {
        if self.last != 0 && (self.reader.usage, self.reader.order) == (usage, order) {
            return Some(self.last);
        }
        let reads = &self.more.as_deref()?.reads;
        reads.iter().find(|it| (it.usage, it.order) == (usage, order)).map(|it| it.last)
    }

    /// When it was written last.
    pub(crate) fn written(&self) -> impl Iterator<Item = Tag> {
        self.writes().map(|it| it.tag)
    }

    /// The same as `tags`, where it is asked for all the time.
    #[inline]
    pub(crate) fn each_tag(&self, mut each: impl FnMut(Tag)) {
        if self.more.is_some() {
            return self.tags().for_each(each);
        }
        if self.written != 0 {
            each(self.written);
        }
        if self.last != 0 {
            each(self.last);
        }
    }

    /// When it was accessed: what may be named as the earlier access of a conflict.
    pub(crate) fn tags(&self) -> impl Iterator<Item = Tag> {
        self.writes().map(|it| it.tag).chain(self.reads().map(|it| it.last))
    }

    /// What it asks clocks for.
    pub(crate) fn asks(&self) -> impl Iterator<Item = Ask> {
        let past = self.more.as_deref().and_then(|it| it.rest.as_deref()).map_or(&[][..], |it| &it.past);
        let reads = self
            .reads()
            .chain(past.iter().copied())
            .flat_map(|it| [it.first, it.last].map(|tag| Ask::of_stage(it.queue, TABLES.stage(it.usage), tag)));
        let writes = self.writes().flat_map(|it| {
            let own = Ask { tag: it.tag, queue: it.queue, stages: Stages::default(), write: Some(it.usage) };
            it.overlay.into_iter().flat_map(Overlay::asks).chain([own])
        });
        reads.chain(writes)
    }

    #[inline]
    fn check_read(&self, now: &Now<'_>, write: Write<'_>, (usage, order): (Usage, Order)) -> Option<Conflict> {
        if order::are_atomic(write.order, order) {
            return None;
        }
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
        let is_covered = self.is_covered(now, write.tag, (usage, order));
        (!is_covered).then(|| write.conflict(now, HazardKind::ReadAfterWrite, HazardKind::ReadRacingWrite))
    }

    /// Whether a read happens before this one that was checked in its stead against what is older.
    fn is_covered(&self, now: &Now<'_>, older: Tag, (usage, order): (Usage, Order)) -> bool {
        let rest = self.more.as_deref().and_then(|it| it.rest.as_deref());
        let past = rest.map_or(&[][..], |it| &it.past);
        self.reads().chain(past.iter().copied()).filter(|it| it.first > older && it.first != now.tag).any(|it| {
            it.happens_before(now, TABLES.stage(usage), it.first)
                || now.is_ordered(it.queue, it.first, (it.usage, it.order), (usage, order))
        })
    }

    #[inline]
    fn check_write(&self, now: &Now<'_>, write: Write<'_>, (usage, order): (Usage, Order)) -> Option<Conflict> {
        let is_fine = write.tag == now.tag
            || self.is_excused(now.rules, write)
            || write.is_ready(now, usage)
            || now.is_ordered(write.queue, write.tag, (write.usage, write.order), (usage, order));
        let is_bad = (!is_fine || now.is_apart(write.queue, write.tag)) && !order::are_atomic(write.order, order);
        is_bad.then(|| write.conflict(now, HazardKind::WriteAfterWrite, HazardKind::WriteRacingWrite))
    }

    /// Reads since a write have been checked against it; those of its own command have not.
    #[inline]
    fn is_excused(&self, rules: Rules, write: Write<'_>) -> bool {
        rules.visible_writes && self.reads().any(|it| it.last > write.tag)
    }

    /// Whether an access to this very range stands between an earlier access of its memory by another name and one
    /// that happens now: it has been held against the earlier one in its stead.
    pub(crate) fn stands_between(&self, now: &Now<'_>, by: (Usage, Order), conflict: &Conflict) -> bool {
        let prior = conflict.prior;
        let is_read = || match TABLES.write_column(by.0) {
            Some(_) => {
                let is_write = TABLES.write_column(conflict.prior_usage).is_some();
                now.rules.visible_writes && is_write && self.reads().any(|it| it.last > prior)
            }
            None => now.rules.most_recent_reads && self.is_covered(now, prior, by),
        };
        self.writes().any(|it| it.tag > prior) || is_read()
    }

    /// Addresses of other resources at which what is visible through them changes.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = u64> {
        self.writes().filter_map(|it| it.overlay).flat_map(Overlay::cuts)
    }

    /// Another resource in the same memory has got other addresses, once for each component.
    pub(crate) fn move_names(&mut self, old: &Range<u64>, planes: &[u64]) {
        let Some(more) = &mut self.more else { return };
        for overlay in more.overlays().flatten().filter(|it| it.cuts().next().is_some()) {
            Arc::make_mut(overlay).move_names(old, planes);
        }
    }

    /// With what the layout transition of a barrier conflicts: what its first scope does not cover.
    pub(crate) fn check_transition(&self, now: &Now<'_>, first: &First, at: &Range<u64>) -> Vec<Conflict> {
        let mut found = Vec::new();
        for read in self.reads() {
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
            let is_fine = now.rules.visible_writes && self.reads().any(|it| first.has_read_since(now, write, &it))
                || write.is_in_scope(now, first, at)
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
        for it in self.reads().filter(|it| !carry.has(it.queue, TABLES.stage(it.usage), it.last)) {
            found.push(Conflict { kind: HazardKind::PresentAfterRead, prior: it.last, prior_usage: it.usage });
        }
        let others = self.writes().filter(|it| it.queue != queue && !self.is_excused(rules, *it));
        for it in others.filter(|it| !carry.has_available(it.queue, it.usage, it.tag)) {
            found.push(Conflict { kind: HazardKind::PresentAfterWrite, prior: it.tag, prior_usage: it.usage });
        }
        found
    }

    /// Whether all of it is known to the host, and visible to it by whatever name.
    pub(crate) fn is_over(&self, known: &Carry, host: &Clock) -> bool {
        let is_seen = |it: &Write<'_>| {
            let is_visible = |usage| host.is_visible(usage, it.queue, it.usage, it.tag);
            known.has_available(it.queue, it.usage, it.tag) && EVERYTHING.host_usages.iter().all(is_visible)
        };
        self.reads().all(|it| known.has(it.queue, TABLES.stage(it.usage), it.last))
            && self.writes().all(|it| is_seen(&it))
    }

    /// Keeps a read.
    #[inline]
    pub(crate) fn read(&mut self, by: By, now: &Now<'_>) {
        // The usual cases: read for the first time, or again in the same way with nothing between.
        if self.more.is_none() && self.last == 0 {
            self.set_read(now.tag, now.tag, by);
        } else if self.more.is_none() && self.reader == by && self.last > now.from && self.first() > self.written {
            self.set_read(self.first(), now.tag, by);
        } else if !self.is_read_again(by, now) {
            return self.add(by, now);
        }
        self.is_marked = false;
    }

    /// Keeps a read, if two lanes have read and it is another one of the second.
    #[inline]
    fn is_read_again(&mut self, by: By, now: &Now<'_>) -> bool {
        let (first, written) = (self.reader, self.written);
        let Some([own]) = self.more.as_mut().map(|it| &mut it.reads[..]) else { return false };
        let is_other = self.last != 0 && (first.queue, TABLES.stage(first.usage)) != (by.queue, TABLES.stage(by.usage));
        let is_again = is_other && own.by() == by && own.last > now.from && own.first > written;
        if is_again {
            own.last = now.tag;
        }
        is_again
    }

    /// Keeps an access.
    pub(crate) fn add(&mut self, by: By, now: &Now<'_>) {
        self.is_marked = false;
        match TABLES.write_column(by.usage) {
            Some(_) => self.add_write(by, now.through, now.tag),
            None => self.add_read(by, now),
        }
    }

    /// Whatever comes after the last read of a lane comes after the earlier ones too, unless it only knows the stretch
    /// of a subpass: inside of one the reads before it stay, as long as nothing orders them before this one.
    #[inline]
    fn add_read(&mut self, by: By, now: &Now<'_>) {
        let tag = now.tag;
        let is_same = |it: &Read| it.is_followed(by, now);
        // A read of the command that wrote says nothing about who may read after that.
        let written = self.written;
        let mut first = tag;
        let mut join = |other: Tag| first = if other > written { first.min(other) } else { first };
        if let Some(more) = &mut self.more {
            more.reads.retain(|it| {
                let is_same = is_same(it);
                is_same.then(|| join(it.first));
                !is_same
            });
        }
        let By { usage, queue, order } = self.reader;
        let own = Read { usage, queue, first: self.last - Tag::from(self.span), last: self.last, order };
        let is_own = self.last != 0 && is_same(&own);
        if self.last == 0 || is_own {
            is_own.then(|| join(own.first));
            self.set_read(first, tag, by);
        } else {
            let By { usage, queue, order } = by;
            let reads = &mut self.more.get_or_insert_default().reads;
            reads.reserve_exact(1);
            reads.push(Read { usage, queue, first, last: tag, order });
        }
    }

    /// Before a read is kept: what its lane read before the last of some writes by other names is kept by itself.
    pub(crate) fn part_reads(&mut self, by: By, now: &Now<'_>, writes: &[Tag]) {
        let last = writes.iter().copied().max().unwrap_or(0);
        let is_past = |it: &Read| it.first <= last && it.is_followed(by, now);
        let past: Vec<Read> = self.reads().filter(is_past).collect();
        if past.is_empty() {
            return;
        }
        if self.reads().next().is_some_and(|it| it.last == self.last && is_past(&it)) {
            (self.last, self.span) = (0, 0);
        }
        let (written, more) = (self.written, self.more.get_or_insert_default());
        more.reads.retain(|it| !is_past(it));
        let rest = more.rest.get_or_insert_default();
        rest.past.extend(past);
        // Only the first read behind a write can stand for others that come after the write.
        let all = rest.past.clone();
        rest.past.retain(|it| {
            let is_first = |write: Tag| {
                let is_between = |other: &Read| write < other.first && other.first < it.first && other.is_like(it);
                write != 0 && write < it.first && !all.iter().any(is_between)
            };
            writes.iter().copied().chain([written]).any(is_first)
        });
    }

    #[inline]
    pub(crate) fn add_write(&mut self, by: By, through: Identity, tag: Tag) {
        self.is_marked = false;
        if self.written != tag {
            *self = State { written: tag, writer: by, through, ..State::default() };
        } else if self.writes().all(|it| (it.usage, it.through) != (by.usage, through)) || by.usage == TRANSITION_WRITE
        {
            let more = self.more.get_or_insert_default();
            more.rest.get_or_insert_default().writes.push((by, through, tag, None));
        }
    }

    /// The barrier's own write, from which its second scope begins. It is available by itself, so whatever comes after
    /// transitions comes after it.
    pub(crate) fn add_transition(&mut self, now: &Now<'_>, scope: &Expanded, shared: &mut Shared) {
        self.add_write(By { usage: TRANSITION_WRITE, queue: now.queue, order: Order::None }, now.through, now.tag);
        shared.change(self.more.get_or_insert_default().newest_overlay(), |it| {
            it.add(now, scope);
            it.add_itself(now);
        });
    }

    /// If the last write is a layout transition that happens now, a second scope gets it.
    pub(crate) fn share_transition(&mut self, now: &Now<'_>, scope: &Expanded, shared: &mut Shared) {
        self.overlay_where(now, scope, shared, |it| it.usage == TRANSITION_WRITE && it.tag == now.tag);
    }

    /// A dependency on the resource: if its first scope has the last write, its second scope, which is now, gets it.
    pub(crate) fn depend(&mut self, now: &Now<'_>, it: &Ready, at: &Range<u64>, shared: &mut Shared) {
        self.overlay_where(now, &it.element.scope, shared, |write| write.is_in_scope(now, &it.first, at));
    }

    /// A second scope gets some of the writes.
    fn overlay_where(
        &mut self,
        now: &Now<'_>,
        scope: &Expanded,
        shared: &mut Shared,
        is_wanted: impl Fn(Write<'_>) -> bool,
    ) {
        if self.more.as_ref().is_none_or(|it| !it.has_writes()) {
            if self.writes().any(is_wanted) {
                shared.change(&mut self.more.get_or_insert_default().overlay, |it| it.add(now, scope));
            }
            return;
        }
        let wanted: Vec<bool> = self.writes().map(is_wanted).collect();
        let more = self.more.get_or_insert_default();
        for (overlay, _) in more.overlays().zip(wanted).filter(|it| it.1) {
            shared.change(overlay, |it| it.add(now, scope));
        }
    }
}

impl More {
    /// Whether a command wrote in several ways.
    #[inline]
    fn has_writes(&self) -> bool {
        self.rest.as_ref().is_some_and(|it| !it.writes.is_empty())
    }

    fn newest_overlay(&mut self) -> &mut Option<Arc<Overlay>> {
        let newest = self.rest.as_mut().and_then(|it| it.writes.last_mut());
        newest.map_or(&mut self.overlay, |it| &mut it.3)
    }

    /// Of all writes, in the order of `State::writes`.
    fn overlays(&mut self) -> impl Iterator<Item = &mut Option<Arc<Overlay>>> {
        let others = self.rest.iter_mut().flat_map(|it| &mut it.writes).map(|it| &mut it.3);
        std::iter::once(&mut self.overlay).chain(others)
    }
}

/// Ranges to which one dependency does the same share what it did.
#[derive(Default)]
pub(crate) struct Shared {
    last: Option<(Option<Arc<Overlay>>, Arc<Overlay>)>,
}

impl Shared {
    fn change(&mut self, overlay: &mut Option<Arc<Overlay>>, change: impl FnOnce(&mut Overlay)) {
        let is_same = |old: &Option<Arc<Overlay>>| match (old, &*overlay) {
            (None, None) => true,
            (Some(old), Some(own)) => Arc::ptr_eq(old, own),
            _ => false,
        };
        if let Some((_, new)) = self.last.as_ref().filter(|it| is_same(&it.0)) {
            *overlay = Some(Arc::clone(new));
            return;
        }
        let old = overlay.clone();
        change(Arc::make_mut(overlay.get_or_insert_default()));
        self.last = overlay.clone().map(|new| (old, new));
    }
}

impl First {
    /// Whether a read came after a write. Where the write races what happens now, a read that raced it, too, was in no
    /// better place.
    fn has_read_since(&self, now: &Now<'_>, write: Write<'_>, read: &Read) -> bool {
        let is_in = |(begin, end): (Tag, Tag), tag: Tag| begin < tag && tag <= end;
        let races = |[one, other]: &[(Tag, Tag); 2]| is_in(*one, write.tag) && is_in(*other, read.last);
        let is_lost = || now.is_apart(write.queue, write.tag) && read.queue == now.queue;
        read.last > write.tag && !(is_lost() && self.racing.iter().any(races))
    }
}

impl Now<'_> {
    /// Whether rendering itself orders two accesses.
    #[inline]
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
    #[inline]
    fn is_apart(&self, queue: u8, tag: Tag) -> bool {
        queue == self.queue && self.apart.iter().any(|(begin, end)| *begin < tag && tag <= *end)
    }

    /// Whether no path at all leads here from an access: from the batch of another queue, or from a subpass.
    fn is_racing(&self, queue: u8, tag: Tag) -> bool {
        let is_far = queue != self.queue && self.clock.batches.get(queue) < tag;
        is_far || self.is_apart(queue, tag)
    }
}

impl Write<'_> {
    #[inline]
    fn is_visible(&self, now: &Now<'_>, usage: Usage) -> bool {
        now.clock.is_visible(usage, self.queue, self.usage, self.tag)
            || self.overlay.is_some_and(|it| it.is_visible(now, usage))
    }

    /// Whether another write may come after it.
    #[inline]
    fn is_ready(&self, now: &Now<'_>, usage: Usage) -> bool {
        match now.rules.visible_writes {
            true => self.is_visible(now, usage),
            false => self.is_available(now, TABLES.stage(usage)),
        }
    }

    /// Whether it is available to a stage by what came before.
    fn is_available(&self, now: &Now<'_>, stage: Stage) -> bool {
        now.clock.is_available(stage, self.queue, self.usage, self.tag)
            || self.overlay.is_some_and(|it| it.is_available(now, stage))
    }

    /// Whether the first scope of a dependency has this write, which is at some addresses.
    fn is_in_scope(&self, now: &Now<'_>, first: &First, at: &Range<u64>) -> bool {
        let has = |through: Identity, carry: &Carry| {
            through == self.through && carry.has_available(self.queue, self.usage, self.tag)
        };
        let is_there = |it: &Range<u64>| it.start <= at.start && at.end <= it.end;
        let is_direct = match now.name {
            Name::Own => first.own.iter().any(|it| has(it.0, &it.1)),
            Name::Alias { .. } => first.elsewhere.iter().any(|it| is_there(&it.0) && has(it.1, &it.2)),
        };
        is_direct
            || first.carry.has_available(self.queue, self.usage, self.tag)
            || self.overlay.is_some_and(|it| it.reaches(now, first))
    }

    fn conflict(&self, now: &Now<'_>, after: HazardKind, racing: HazardKind) -> Conflict {
        let kind = if now.is_racing(self.queue, self.tag) { racing } else { after };
        let kind = if self.usage == PRESENT { after_present(kind) } else { kind };
        Conflict { kind, prior: self.tag, prior_usage: self.usage }
    }
}

impl Read {
    #[inline]
    fn by(&self) -> By {
        By { usage: self.usage, queue: self.queue, order: self.order }
    }

    /// Whether a read that happens now stands for it from now on: it is one of the same lane, in the same subpass or
    /// ordered after it.
    #[inline]
    fn is_followed(&self, by: By, now: &Now<'_>) -> bool {
        let By { usage, queue, order } = by;
        let stage = TABLES.stage(usage);
        self.is_like(&Read { usage, queue, first: 0, last: 0, order })
            && (self.last > now.from || now.clock.has_happened(stage, queue, stage, self.last))
    }

    /// Whether they are of one lane, and in the same places of rendering.
    #[inline]
    fn is_like(&self, other: &Read) -> bool {
        self.queue == other.queue
            && TABLES.stage(self.usage) == TABLES.stage(other.usage)
            && order::is_alike((self.usage, self.order), (other.usage, other.order))
    }

    /// The conflict of a write with this read, if there is one.
    #[inline]
    fn against_write(&self, now: &Now<'_>, (usage, order): (Usage, Order)) -> Option<Conflict> {
        if self.last == now.tag || order::are_atomic(self.order, order) {
            return None;
        }
        let is_ordered = now.is_ordered(self.queue, self.last, (self.usage, self.order), (usage, order));
        let is_before = is_ordered || self.happens_before(now, TABLES.stage(usage), self.last);
        (!is_before || now.is_apart(self.queue, self.last)).then(|| self.conflict(now))
    }

    #[inline]
    fn happens_before(&self, now: &Now<'_>, stage: Stage, tag: Tag) -> bool {
        now.clock.has_happened(stage, self.queue, TABLES.stage(self.usage), tag)
    }

    fn conflict(&self, now: &Now<'_>) -> Conflict {
        let is_racing = now.is_racing(self.queue, self.last);
        let kind = if is_racing { HazardKind::WriteRacingRead } else { HazardKind::WriteAfterRead };
        Conflict { kind, prior: self.last, prior_usage: self.usage }
    }
}

#[cfg(test)]
mod tests;
