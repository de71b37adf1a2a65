//! What happened to a range: its last write, and the reads since.

use std::ops::Range;
use std::sync::Arc;

use lavascope_sync_ir::HazardKind;
use smallvec::SmallVec;

use crate::access::access_order;
use crate::access::access_order::AccessOrder;
use crate::access::overlays::Overlay;
use crate::access::usages::{PRESENT, SYNC_TABLES, StageIndex, StageSet, TRANSITION, TRANSITION_WRITE, UsageIndex};
use crate::dependency::clocks::{FirstScope, QueueClock, Tag};
use crate::dependency::scopes::{COMMON_SETS, ExpandedScope};
use crate::dependency::subpass_intervals::ClockQuery;
use crate::memory::addresses::ResourceIdentity;
use crate::queue::execution::ResolvedDependency;
use crate::queue::host::after_present;
use crate::rules::Rules;

/// Small, because there is one for every range: most ranges have one write and one lane that read it since. What else
/// there is lies apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeState {
    /// When it was written last; zero for never.
    write_tag: Tag,
    /// The last read of a lane; zero for none.
    read_tag: Tag,
    cold: Option<Box<ColdState>>,
    /// Through which resource it was written.
    write_identity: ResourceIdentity,
    /// How long before the last read the first one was.
    span: u32,
    writer: Accessor,
    reader: Accessor,
    /// Whether all that it knows is of spots that marks were made for (see `mark`).
    is_marked: bool,
}

/// Who accesses, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accessor {
    pub(crate) usage: UsageIndex,
    pub(crate) queue: u8,
    pub(crate) order: AccessOrder,
}

impl Default for Accessor {
    fn default() -> Accessor {
        Accessor { usage: TRANSITION_WRITE, queue: 0, order: AccessOrder::None }
    }
}

/// One of a few ranges has this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ColdState {
    /// Of the last write.
    overlay: Option<Arc<Overlay>>,
    /// Of other lanes.
    other_reads: Vec<ReadRecord>,
    /// What hardly any range has.
    rare: Option<Box<RareState>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RareState {
    /// What the command that wrote last wrote in other ways.
    other_writes: Vec<(Accessor, ResourceIdentity, Tag, Option<Arc<Overlay>>)>,
    /// Reads of lanes that have read again, where a write by another name lies between: whoever comes after one of
    /// these has been checked against what is before it.
    earlier_reads: Vec<ReadRecord>,
}

#[derive(Clone, Copy)]
struct WriteRecord<'a> {
    usage: UsageIndex,
    /// Through which resource.
    identity: ResourceIdentity,
    queue: u8,
    tag: Tag,
    order: AccessOrder,
    overlay: Option<&'a Overlay>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReadRecord {
    usage: UsageIndex,
    queue: u8,
    first: Tag,
    last: Tag,
    order: AccessOrder,
}

/// Where and how something is accessed now.
#[derive(Clone, Copy)]
pub(crate) struct AccessContext<'a> {
    pub(crate) rules: Rules,
    pub(crate) clock: &'a QueueClock,
    pub(crate) queue: u8,
    pub(crate) tag: Tag,
    /// The tag before which the render pass instance began, inside which fragments are ordered.
    pub(crate) instance_begin: Option<Tag>,
    /// Where the subpass began, inside of which the direct part of a scope lies; zero outside of render passes.
    pub(crate) subpass_begin: Tag,
    /// Stretches of tags of subpasses that nothing orders before this one.
    pub(crate) unordered_subpasses: &'a [(Tag, Tag)],
    /// Through which resource the memory is accessed, and whether by its own addresses.
    pub(crate) identity: ResourceIdentity,
    pub(crate) addressing: Addressing,
}

/// By what name memory is accessed. A dependency on one resource is not one on another in the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addressing {
    Own,
    /// By another resource in the same memory, at these addresses of that one.
    Alias {
        start: u64,
        end: u64,
    },
}

/// The first scope of a dependency on a resource.
#[derive(Default)]
pub(crate) struct ResourceFirstScope {
    /// What it has of everything.
    pub(crate) global: FirstScope,
    /// What it has in addition of accesses through the resource that it names; in version 1, through each of them.
    pub(crate) through_resource: Vec<(ResourceIdentity, FirstScope)>,
    /// In version 1 also of accesses to the same memory by names whose addresses are others: these.
    pub(crate) through_aliases: Vec<(Range<u64>, ResourceIdentity, FirstScope)>,
    /// The stages that it begins with, and up to when: one for a barrier, one for each event of a wait.
    pub(crate) stage_limits: SmallVec<[(StageSet, Tag); 1]>,
    /// Of a render pass: pairs of stretches of its subpasses where nothing leads from the one to the other.
    pub(crate) unordered_pairs: Vec<[(Tag, Tag); 2]>,
}

/// A conflict with an earlier access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) kind: HazardKind,
    pub(crate) prior: Tag,
    pub(crate) prior_usage: UsageIndex,
}

impl RangeState {
    /// With what an access conflicts.
    pub(crate) fn check(&self, context: &AccessContext<'_>, usage: UsageIndex, order: AccessOrder) -> Vec<Conflict> {
        let by = (usage, order);
        match SYNC_TABLES.write_column(usage) {
            Some(_) => {
                let reads = self.reads().filter_map(|it| it.conflict_with_write(context, by));
                reads.chain(self.writes().filter_map(|it| self.check_write(context, it, by))).collect()
            }
            None => self.writes().filter_map(|it| self.check_read(context, it, by)).collect(),
        }
    }

    /// Whether a read conflicts with anything.
    #[inline]
    pub(crate) fn conflicts_with_read(&self, context: &AccessContext<'_>, by: Accessor) -> bool {
        self.write_tag != 0 && self.conflicts(context, by)
    }

    /// Whether it conflicts with anything.
    pub(crate) fn conflicts(&self, context: &AccessContext<'_>, by: Accessor) -> bool {
        let is_write = SYNC_TABLES.write_column(by.usage).is_some();
        let cold = self.cold.as_deref();
        // Rarely, a command wrote in several ways, or a write meets reads of several lanes.
        if cold.is_some_and(|it| it.has_other_writes() || is_write && !it.other_reads.is_empty()) {
            return self.has_conflict(context, (by.usage, by.order));
        }
        let own = (by.usage, by.order);
        let Accessor { usage, queue, order } = self.reader;
        let read = ReadRecord { usage, queue, first: self.first(), last: self.read_tag, order };
        if is_write && self.read_tag != 0 && read.conflict_with_write(context, own).is_some() {
            return true;
        }
        let Accessor { usage, queue, order } = self.writer;
        let overlay = cold.and_then(|it| it.overlay.as_deref());
        let write = WriteRecord { usage, identity: self.write_identity, queue, tag: self.write_tag, order, overlay };
        match is_write {
            _ if self.write_tag == 0 => false,
            true => self.check_write(context, write, own).is_some(),
            false => self.check_read(context, write, own).is_some(),
        }
    }

    #[cold]
    fn has_conflict(&self, context: &AccessContext<'_>, by: (UsageIndex, AccessOrder)) -> bool {
        match SYNC_TABLES.write_column(by.0) {
            Some(_) => {
                self.reads().any(|it| it.conflict_with_write(context, by).is_some())
                    || self.writes().any(|it| self.check_write(context, it, by).is_some())
            }
            None => self.writes().any(|it| self.check_read(context, it, by).is_some()),
        }
    }

    #[inline]
    fn writes(&self) -> impl Iterator<Item = WriteRecord<'_>> {
        let Accessor { usage, queue, order } = self.writer;
        let cold = self.cold.as_deref();
        let overlay = cold.and_then(|it| it.overlay.as_deref());
        let (identity, tag) = (self.write_identity, self.write_tag);
        let last = (tag != 0).then_some(WriteRecord { usage, identity, queue, tag, order, overlay });
        let others = cold.and_then(|it| it.rare.as_deref()).map_or(&[][..], |it| &it.other_writes);
        let others = others.iter().map(|(by, identity, tag, overlay)| WriteRecord {
            usage: by.usage,
            identity: *identity,
            queue: by.queue,
            tag: *tag,
            order: by.order,
            overlay: overlay.as_deref(),
        });
        last.into_iter().chain(others)
    }

    #[inline]
    fn reads(&self) -> impl Iterator<Item = ReadRecord> {
        let Accessor { usage, queue, order } = self.reader;
        let (first, last) = (self.first(), self.read_tag);
        let own = (last != 0).then_some(ReadRecord { usage, queue, first, last, order });
        own.into_iter().chain(self.cold.as_deref().map_or(&[][..], |it| &it.other_reads).iter().copied())
    }

    /// The first read of the lane that read last.
    #[inline]
    fn first(&self) -> Tag {
        self.read_tag - Tag::from(self.span)
    }

    /// A first read that is too long ago is forgotten: the last one stands for it.
    #[inline]
    fn set_read(&mut self, first: Tag, last: Tag, by: Accessor) {
        (self.span, self.read_tag, self.reader) = (u32::try_from(last - first).unwrap_or(0), last, by);
    }

    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        self.write_tag != 0
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
    pub(crate) fn last_read(&self, usage: UsageIndex, order: AccessOrder) -> Option<Tag> {
        if self.read_tag != 0 && (self.reader.usage, self.reader.order) == (usage, order) {
            return Some(self.read_tag);
        }
        let reads = &self.cold.as_deref()?.other_reads;
        reads.iter().find(|it| (it.usage, it.order) == (usage, order)).map(|it| it.last)
    }

    /// When it was written last.
    pub(crate) fn write_tags(&self) -> impl Iterator<Item = Tag> {
        self.writes().map(|it| it.tag)
    }

    /// The same as `tags`, where it is asked for all the time.
    #[inline]
    pub(crate) fn each_tag(&self, mut each: impl FnMut(Tag)) {
        if self.cold.is_some() {
            return self.tags().for_each(each);
        }
        if self.write_tag != 0 {
            each(self.write_tag);
        }
        if self.read_tag != 0 {
            each(self.read_tag);
        }
    }

    /// When it was accessed: what may be named as the earlier access of a conflict.
    pub(crate) fn tags(&self) -> impl Iterator<Item = Tag> {
        self.writes().map(|it| it.tag).chain(self.reads().map(|it| it.last))
    }

    /// What it asks clocks for.
    pub(crate) fn clock_queries(&self) -> impl Iterator<Item = ClockQuery> {
        let past = self.cold.as_deref().and_then(|it| it.rare.as_deref()).map_or(&[][..], |it| &it.earlier_reads);
        let reads = self.reads().chain(past.iter().copied()).flat_map(|read| {
            [read.first, read.last].map(|tag| ClockQuery::of_stage(read.queue, SYNC_TABLES.stage(read.usage), tag))
        });
        let writes = self.writes().flat_map(|write_record| {
            let own = ClockQuery {
                tag: write_record.tag,
                queue: write_record.queue,
                stages: StageSet::default(),
                write: Some(write_record.usage),
            };
            write_record.overlay.into_iter().flat_map(Overlay::clock_queries).chain([own])
        });
        reads.chain(writes)
    }

    #[inline]
    fn check_read(
        &self,
        context: &AccessContext<'_>,
        write: WriteRecord<'_>,
        (usage, order): (UsageIndex, AccessOrder),
    ) -> Option<Conflict> {
        if access_order::are_atomic(write.order, order) {
            return None;
        }
        if context.is_in_unordered_subpass(write.queue, write.tag) {
            return Some(write.conflict(context, HazardKind::ReadAfterWrite, HazardKind::ReadRacingWrite));
        }
        if write.tag == context.tag
            || write.is_visible(context, usage)
            || context.is_ordered(write.queue, write.tag, (write.usage, write.order), (usage, order))
        {
            return None;
        }
        if !context.rules.most_recent_reads {
            return Some(write.conflict(context, HazardKind::ReadAfterWrite, HazardKind::ReadRacingWrite));
        }
        let is_covered = self.is_covered_by_read(context, write.tag, (usage, order));
        (!is_covered).then(|| write.conflict(context, HazardKind::ReadAfterWrite, HazardKind::ReadRacingWrite))
    }

    /// Whether a read happens before this one that was checked in its stead against what is older.
    fn is_covered_by_read(
        &self,
        context: &AccessContext<'_>,
        older: Tag,
        (usage, order): (UsageIndex, AccessOrder),
    ) -> bool {
        let rare = self.cold.as_deref().and_then(|it| it.rare.as_deref());
        let past = rare.map_or(&[][..], |it| &it.earlier_reads);
        self.reads().chain(past.iter().copied()).filter(|it| it.first > older && it.first != context.tag).any(|read| {
            read.happens_before(context, SYNC_TABLES.stage(usage), read.first)
                || context.is_ordered(read.queue, read.first, (read.usage, read.order), (usage, order))
        })
    }

    #[inline]
    fn check_write(
        &self,
        context: &AccessContext<'_>,
        write: WriteRecord<'_>,
        (usage, order): (UsageIndex, AccessOrder),
    ) -> Option<Conflict> {
        let is_fine = write.tag == context.tag
            || self.is_followed_by_read(context.rules, write)
            || write.allows_write(context, usage)
            || context.is_ordered(write.queue, write.tag, (write.usage, write.order), (usage, order));
        let is_bad = (!is_fine || context.is_in_unordered_subpass(write.queue, write.tag))
            && !access_order::are_atomic(write.order, order);
        is_bad.then(|| write.conflict(context, HazardKind::WriteAfterWrite, HazardKind::WriteRacingWrite))
    }

    /// Reads since a write have been checked against it; those of its own command have not.
    #[inline]
    fn is_followed_by_read(&self, rules: Rules, write: WriteRecord<'_>) -> bool {
        rules.visible_writes && self.reads().any(|it| it.last > write.tag)
    }

    /// Whether an access to this very range stands between an earlier access of its memory by another name and one
    /// that happens now: it has been held against the earlier one in its stead.
    pub(crate) fn has_access_between(
        &self,
        context: &AccessContext<'_>,
        by: (UsageIndex, AccessOrder),
        conflict: &Conflict,
    ) -> bool {
        let prior = conflict.prior;
        let is_read = || match SYNC_TABLES.write_column(by.0) {
            Some(_) => {
                let is_write = SYNC_TABLES.write_column(conflict.prior_usage).is_some();
                context.rules.visible_writes && is_write && self.reads().any(|it| it.last > prior)
            }
            None => context.rules.most_recent_reads && self.is_covered_by_read(context, prior, by),
        };
        self.writes().any(|it| it.tag > prior) || is_read()
    }

    /// Addresses of other resources at which what is visible through them changes.
    pub(crate) fn alias_boundaries(&self) -> impl Iterator<Item = u64> {
        self.writes().filter_map(|it| it.overlay).flat_map(Overlay::alias_boundaries)
    }

    /// Another resource in the same memory has got other addresses, once for each component.
    pub(crate) fn move_alias_addresses(&mut self, old: &Range<u64>, planes: &[u64]) {
        let Some(cold) = &mut self.cold else { return };
        for overlay in cold.overlays().flatten().filter(|it| it.alias_boundaries().next().is_some()) {
            Arc::make_mut(overlay).move_alias_addresses(old, planes);
        }
    }

    /// With what the layout transition of a barrier conflicts: what its first scope does not cover.
    pub(crate) fn check_transition(
        &self,
        context: &AccessContext<'_>,
        first: &ResourceFirstScope,
        at: &Range<u64>,
    ) -> Vec<Conflict> {
        let mut found = Vec::new();
        for read in self.reads() {
            let is_fine = first.global.has_access(read.queue, SYNC_TABLES.stage(read.usage), read.last)
                || read.happens_before(context, TRANSITION, read.last);
            if !is_fine {
                found.push(read.conflict(context));
            }
        }
        for write in self.writes() {
            let is_implicit =
                write.tag == context.tag || context.rules.ordered_transitions && write.queue == context.queue;
            if write.usage == TRANSITION_WRITE && is_implicit {
                continue;
            }
            let is_fine = context.rules.visible_writes
                && self.reads().any(|it| first.has_read_since(context, write, &it))
                || write.is_in_scope(context, first, at)
                || write.is_available(context, TRANSITION);
            if !is_fine {
                found.push(write.conflict(context, HazardKind::WriteAfterWrite, HazardKind::WriteRacingWrite));
            }
        }
        found
    }

    /// With what presenting conflicts: what the semaphores before it do not cover.
    pub(crate) fn check_present(&self, rules: Rules, first_scope: &FirstScope, queue: u8) -> Vec<Conflict> {
        let mut found = Vec::new();
        for read in self.reads().filter(|it| !first_scope.has_access(it.queue, SYNC_TABLES.stage(it.usage), it.last)) {
            found.push(Conflict { kind: HazardKind::PresentAfterRead, prior: read.last, prior_usage: read.usage });
        }
        let others = self.writes().filter(|it| it.queue != queue && !self.is_followed_by_read(rules, *it));
        for other in others.filter(|it| !first_scope.has_available(it.queue, it.usage, it.tag)) {
            found.push(Conflict { kind: HazardKind::PresentAfterWrite, prior: other.tag, prior_usage: other.usage });
        }
        found
    }

    /// Whether all of it is known to the host, and visible to it by whatever name.
    pub(crate) fn is_finished(&self, known: &FirstScope, host: &QueueClock) -> bool {
        let is_seen = |write_record: &WriteRecord<'_>| {
            let is_visible = |usage| host.is_visible(usage, write_record.queue, write_record.usage, write_record.tag);
            known.has_available(write_record.queue, write_record.usage, write_record.tag)
                && COMMON_SETS.host_usages.iter().all(is_visible)
        };
        self.reads().all(|it| known.has_access(it.queue, SYNC_TABLES.stage(it.usage), it.last))
            && self.writes().all(|it| is_seen(&it))
    }

    /// Keeps a read.
    #[inline]
    pub(crate) fn record_read(&mut self, by: Accessor, context: &AccessContext<'_>) {
        // The usual cases: read for the first time, or again in the same way with nothing between.
        if self.cold.is_none() && self.read_tag == 0 {
            self.set_read(context.tag, context.tag, by);
        } else if self.cold.is_none()
            && self.reader == by
            && self.read_tag > context.subpass_begin
            && self.first() > self.write_tag
        {
            self.set_read(self.first(), context.tag, by);
        } else if !self.extend_second_read(by, context) {
            return self.record(by, context);
        }
        self.is_marked = false;
    }

    /// Keeps a read, if two lanes have read and it is another one of the second.
    #[inline]
    fn extend_second_read(&mut self, by: Accessor, context: &AccessContext<'_>) -> bool {
        let (first, written) = (self.reader, self.write_tag);
        let Some([own]) = self.cold.as_mut().map(|it| &mut it.other_reads[..]) else { return false };
        let is_other = self.read_tag != 0
            && (first.queue, SYNC_TABLES.stage(first.usage)) != (by.queue, SYNC_TABLES.stage(by.usage));
        let is_again = is_other && own.accessor() == by && own.last > context.subpass_begin && own.first > written;
        if is_again {
            own.last = context.tag;
        }
        is_again
    }

    /// Keeps an access.
    pub(crate) fn record(&mut self, by: Accessor, context: &AccessContext<'_>) {
        self.is_marked = false;
        match SYNC_TABLES.write_column(by.usage) {
            Some(_) => self.record_write(by, context.identity, context.tag),
            None => self.merge_read(by, context),
        }
    }

    /// Whatever comes after the last read of a lane comes after the earlier ones too, unless it only knows the stretch
    /// of a subpass: inside of one the reads before it stay, as long as nothing orders them before this one.
    #[inline]
    fn merge_read(&mut self, by: Accessor, context: &AccessContext<'_>) {
        let tag = context.tag;
        let is_same = |it: &ReadRecord| it.is_replaced_by(by, context);
        // A read of the command that wrote says nothing about who may read after that.
        let written = self.write_tag;
        let mut first = tag;
        let mut join = |other: Tag| first = if other > written { first.min(other) } else { first };
        if let Some(cold) = &mut self.cold {
            cold.other_reads.retain(|other_read| {
                let is_same = is_same(other_read);
                is_same.then(|| join(other_read.first));
                !is_same
            });
        }
        let Accessor { usage, queue, order } = self.reader;
        let own = ReadRecord { usage, queue, first: self.read_tag - Tag::from(self.span), last: self.read_tag, order };
        let is_own = self.read_tag != 0 && is_same(&own);
        if self.read_tag == 0 || is_own {
            is_own.then(|| join(own.first));
            self.set_read(first, tag, by);
        } else {
            let Accessor { usage, queue, order } = by;
            let reads = &mut self.cold.get_or_insert_default().other_reads;
            reads.reserve_exact(1);
            reads.push(ReadRecord { usage, queue, first, last: tag, order });
        }
    }

    /// Before a read is kept: what its lane read before the last of some writes by other names is kept by itself.
    pub(crate) fn separate_reads(&mut self, by: Accessor, context: &AccessContext<'_>, writes: &[Tag]) {
        let last = writes.iter().copied().max().unwrap_or(0);
        let is_past = |it: &ReadRecord| it.first <= last && it.is_replaced_by(by, context);
        let past: Vec<ReadRecord> = self.reads().filter(is_past).collect();
        if past.is_empty() {
            return;
        }
        if self.reads().next().is_some_and(|it| it.last == self.read_tag && is_past(&it)) {
            (self.read_tag, self.span) = (0, 0);
        }
        let (written, cold) = (self.write_tag, self.cold.get_or_insert_default());
        cold.other_reads.retain(|it| !is_past(it));
        let rare = cold.rare.get_or_insert_default();
        rare.earlier_reads.extend(past);
        // Only the first read behind a write can stand for others that come after the write.
        let all = rare.earlier_reads.clone();
        rare.earlier_reads.retain(|earlier_read| {
            let is_first = |write: Tag| {
                let is_between = |other: &ReadRecord| {
                    write < other.first && other.first < earlier_read.first && other.is_same_lane(earlier_read)
                };
                write != 0 && write < earlier_read.first && !all.iter().any(is_between)
            };
            writes.iter().copied().chain([written]).any(is_first)
        });
    }

    #[inline]
    pub(crate) fn record_write(&mut self, by: Accessor, identity: ResourceIdentity, tag: Tag) {
        self.is_marked = false;
        if self.write_tag != tag {
            *self = RangeState { write_tag: tag, writer: by, write_identity: identity, ..RangeState::default() };
        } else if self.writes().all(|it| (it.usage, it.identity) != (by.usage, identity))
            || by.usage == TRANSITION_WRITE
        {
            let cold = self.cold.get_or_insert_default();
            cold.rare.get_or_insert_default().other_writes.push((by, identity, tag, None));
        }
    }

    /// The barrier's own write, from which its second scope begins. It is available by itself, so whatever comes after
    /// transitions comes after it.
    pub(crate) fn record_transition(
        &mut self,
        context: &AccessContext<'_>,
        scope: &ExpandedScope,
        shared: &mut SharedOverlays,
    ) {
        self.record_write(
            Accessor { usage: TRANSITION_WRITE, queue: context.queue, order: AccessOrder::None },
            context.identity,
            context.tag,
        );
        shared.change(self.cold.get_or_insert_default().newest_overlay(), |overlay| {
            overlay.add(context, scope);
            overlay.add_transition_write(context);
        });
    }

    /// If the last write is a layout transition that happens now, a second scope gets it.
    pub(crate) fn share_transition(
        &mut self,
        context: &AccessContext<'_>,
        scope: &ExpandedScope,
        shared: &mut SharedOverlays,
    ) {
        self.add_to_overlays(context, scope, shared, |it| it.usage == TRANSITION_WRITE && it.tag == context.tag);
    }

    /// A dependency on the resource: if its first scope has the last write, its second scope, which is now, gets it.
    pub(crate) fn apply_dependency(
        &mut self,
        context: &AccessContext<'_>,
        resolved_dependency: &ResolvedDependency,
        at: &Range<u64>,
        shared: &mut SharedOverlays,
    ) {
        self.add_to_overlays(context, &resolved_dependency.dependency.scope, shared, |write| {
            write.is_in_scope(context, &resolved_dependency.first_scope, at)
        });
    }

    /// A second scope gets some of the writes.
    fn add_to_overlays(
        &mut self,
        context: &AccessContext<'_>,
        scope: &ExpandedScope,
        shared: &mut SharedOverlays,
        is_wanted: impl Fn(WriteRecord<'_>) -> bool,
    ) {
        if self.cold.as_ref().is_none_or(|it| !it.has_other_writes()) {
            if self.writes().any(is_wanted) {
                shared.change(&mut self.cold.get_or_insert_default().overlay, |it| it.add(context, scope));
            }
            return;
        }
        let wanted: Vec<bool> = self.writes().map(is_wanted).collect();
        let cold = self.cold.get_or_insert_default();
        for (overlay, _) in cold.overlays().zip(wanted).filter(|it| it.1) {
            shared.change(overlay, |it| it.add(context, scope));
        }
    }
}

impl ColdState {
    /// Whether a command wrote in several ways.
    #[inline]
    fn has_other_writes(&self) -> bool {
        self.rare.as_ref().is_some_and(|it| !it.other_writes.is_empty())
    }

    fn newest_overlay(&mut self) -> &mut Option<Arc<Overlay>> {
        let newest = self.rare.as_mut().and_then(|it| it.other_writes.last_mut());
        newest.map_or(&mut self.overlay, |it| &mut it.3)
    }

    /// Of all writes, in the order of `RangeState::writes`.
    fn overlays(&mut self) -> impl Iterator<Item = &mut Option<Arc<Overlay>>> {
        let others = self.rare.iter_mut().flat_map(|it| &mut it.other_writes).map(|it| &mut it.3);
        std::iter::once(&mut self.overlay).chain(others)
    }
}

/// Ranges to which one dependency does the same share what it did.
#[derive(Default)]
pub(crate) struct SharedOverlays {
    last: Option<(Option<Arc<Overlay>>, Arc<Overlay>)>,
}

impl SharedOverlays {
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

impl ResourceFirstScope {
    /// Whether a read came after a write. Where the write races what happens now, a read that raced it, too, was in no
    /// better place.
    fn has_read_since(&self, context: &AccessContext<'_>, write: WriteRecord<'_>, read: &ReadRecord) -> bool {
        let is_in = |(begin, end): (Tag, Tag), tag: Tag| begin < tag && tag <= end;
        let races = |[one, other]: &[(Tag, Tag); 2]| is_in(*one, write.tag) && is_in(*other, read.last);
        let is_lost = || context.is_in_unordered_subpass(write.queue, write.tag) && read.queue == context.queue;
        read.last > write.tag && !(is_lost() && self.unordered_pairs.iter().any(races))
    }
}

impl AccessContext<'_> {
    /// Whether rendering itself orders two accesses.
    #[inline]
    fn is_ordered(
        &self,
        queue: u8,
        tag: Tag,
        prior: (UsageIndex, AccessOrder),
        own: (UsageIndex, AccessOrder),
    ) -> bool {
        let is_inside = self.instance_begin.is_some_and(|begin| tag > begin) && queue == self.queue;
        is_inside && access_order::is_ordered(prior, own)
    }

    /// Whether what follows directly from a dependency holds here: one outside of render passes from then on, one in a
    /// subpass until that ends.
    pub(crate) fn is_in_subpass(&self, queue: u8, from: Tag) -> bool {
        queue == self.queue && (from == 0 || from == self.subpass_begin)
    }

    /// Whether an access lies in a subpass that nothing orders before this one.
    #[inline]
    fn is_in_unordered_subpass(&self, queue: u8, tag: Tag) -> bool {
        queue == self.queue && self.unordered_subpasses.iter().any(|(begin, end)| *begin < tag && tag <= *end)
    }

    /// Whether no path at all leads here from an access: from the batch of another queue, or from a subpass.
    fn is_racing(&self, queue: u8, tag: Tag) -> bool {
        let is_far = queue != self.queue && self.clock.batches.get(queue) < tag;
        is_far || self.is_in_unordered_subpass(queue, tag)
    }
}

impl WriteRecord<'_> {
    #[inline]
    fn is_visible(&self, context: &AccessContext<'_>, usage: UsageIndex) -> bool {
        context.clock.is_visible(usage, self.queue, self.usage, self.tag)
            || self.overlay.is_some_and(|it| it.is_visible(context, usage))
    }

    /// Whether another write may come after it.
    #[inline]
    fn allows_write(&self, context: &AccessContext<'_>, usage: UsageIndex) -> bool {
        match context.rules.visible_writes {
            true => self.is_visible(context, usage),
            false => self.is_available(context, SYNC_TABLES.stage(usage)),
        }
    }

    /// Whether it is available to a stage by what came before.
    fn is_available(&self, context: &AccessContext<'_>, stage: StageIndex) -> bool {
        context.clock.is_available(stage, self.queue, self.usage, self.tag)
            || self.overlay.is_some_and(|it| it.is_available(context, stage))
    }

    /// Whether the first scope of a dependency has this write, which is at some addresses.
    fn is_in_scope(&self, context: &AccessContext<'_>, first: &ResourceFirstScope, at: &Range<u64>) -> bool {
        let has = |identity: ResourceIdentity, first_scope: &FirstScope| {
            identity == self.identity && first_scope.has_available(self.queue, self.usage, self.tag)
        };
        let is_there = |it: &Range<u64>| it.start <= at.start && at.end <= it.end;
        let is_direct = match context.addressing {
            Addressing::Own => first.through_resource.iter().any(|it| has(it.0, &it.1)),
            Addressing::Alias { .. } => first.through_aliases.iter().any(|it| is_there(&it.0) && has(it.1, &it.2)),
        };
        is_direct
            || first.global.has_available(self.queue, self.usage, self.tag)
            || self.overlay.is_some_and(|it| it.reaches(context, first))
    }

    fn conflict(&self, context: &AccessContext<'_>, after: HazardKind, racing: HazardKind) -> Conflict {
        let kind = if context.is_racing(self.queue, self.tag) { racing } else { after };
        let kind = if self.usage == PRESENT { after_present(kind) } else { kind };
        Conflict { kind, prior: self.tag, prior_usage: self.usage }
    }
}

impl ReadRecord {
    #[inline]
    fn accessor(&self) -> Accessor {
        Accessor { usage: self.usage, queue: self.queue, order: self.order }
    }

    /// Whether a read that happens now stands for it from now on: it is one of the same lane, in the same subpass or
    /// ordered after it.
    #[inline]
    fn is_replaced_by(&self, by: Accessor, context: &AccessContext<'_>) -> bool {
        let Accessor { usage, queue, order } = by;
        let stage = SYNC_TABLES.stage(usage);
        self.is_same_lane(&ReadRecord { usage, queue, first: 0, last: 0, order })
            && (self.last > context.subpass_begin || context.clock.has_happened(stage, queue, stage, self.last))
    }

    /// Whether they are of one lane, and in the same places of rendering.
    #[inline]
    fn is_same_lane(&self, other: &ReadRecord) -> bool {
        self.queue == other.queue
            && SYNC_TABLES.stage(self.usage) == SYNC_TABLES.stage(other.usage)
            && access_order::is_same_order_class((self.usage, self.order), (other.usage, other.order))
    }

    /// The conflict of a write with this read, if there is one.
    #[inline]
    fn conflict_with_write(
        &self,
        context: &AccessContext<'_>,
        (usage, order): (UsageIndex, AccessOrder),
    ) -> Option<Conflict> {
        if self.last == context.tag || access_order::are_atomic(self.order, order) {
            return None;
        }
        let is_ordered = context.is_ordered(self.queue, self.last, (self.usage, self.order), (usage, order));
        let is_before = is_ordered || self.happens_before(context, SYNC_TABLES.stage(usage), self.last);
        (!is_before || context.is_in_unordered_subpass(self.queue, self.last)).then(|| self.conflict(context))
    }

    #[inline]
    fn happens_before(&self, context: &AccessContext<'_>, stage: StageIndex, tag: Tag) -> bool {
        context.clock.has_happened(stage, self.queue, SYNC_TABLES.stage(self.usage), tag)
    }

    fn conflict(&self, context: &AccessContext<'_>) -> Conflict {
        let is_racing = context.is_racing(self.queue, self.last);
        let kind = if is_racing { HazardKind::WriteRacingRead } else { HazardKind::WriteAfterRead };
        Conflict { kind, prior: self.last, prior_usage: self.usage }
    }
}

#[cfg(test)]
mod tests;
