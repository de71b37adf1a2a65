//! Checks an access against the state of its range.
//!
//! Spec: a read and a later write need an execution dependency (`synchronization-dependencies-execution`); a write and
//! any later access need a memory dependency (`synchronization-dependencies-memory`). Without one, the two are in a data
//! race (`memory-model-access-data-race`).
//!
//! Almost all accesses have no conflict. [`RangeState::has_conflict`] only answers whether there is one, and mostly from
//! the hot fields. Only if there is one, [`RangeState::find_conflicts`] lists them all.

use std::ops::Range;

use lavascope_sync_ir::HazardKind;

use crate::access::access_context::{AccessContext, Addressing};
use crate::access::access_order;
use crate::access::access_order::AccessOrder;
use crate::access::possible_reads::TaggedRead;
use crate::access::range_state::{Accessor, Conflict, LaneReads, LastWrite, RangeState};
use crate::access::usages::{PRESENT, SYNC_TABLES, StageIndex, TRANSITION, TRANSITION_WRITE, UsageIndex};
use crate::dependency::clocks::{FirstScope, QueueClock, Tag};
use crate::dependency::expanded::ResourceFirstScope;
use crate::dependency::scopes::COMMON_SETS;
use crate::memory::addresses::ResourceIdentity;
use crate::queue::host::after_present;
use crate::rules::Rules;

impl RangeState {
    /// All conflicts of an access.
    pub(crate) fn find_conflicts(
        &self,
        context: &AccessContext<'_>,
        usage: UsageIndex,
        order: AccessOrder,
    ) -> Vec<Conflict> {
        let by = (usage, order);
        match SYNC_TABLES.write_column(usage) {
            Some(_) => {
                let reads = self.reads().filter_map(|it| it.conflict_with_write(context, by));
                reads.chain(self.writes().filter_map(|it| self.write_conflict(context, it, by))).collect()
            }
            None => self.writes().filter_map(|it| self.read_conflict(context, it, by)).collect(),
        }
    }

    /// Whether a read has a conflict.
    #[inline]
    pub(crate) fn has_read_conflict(&self, context: &AccessContext<'_>, by: Accessor) -> bool {
        self.write_tag != 0 && self.has_conflict(context, by)
    }

    /// Whether an access has a conflict.
    pub(crate) fn has_conflict(&self, context: &AccessContext<'_>, by: Accessor) -> bool {
        let is_write = SYNC_TABLES.write_column(by.usage).is_some();
        let cold = self.cold.as_deref();
        if cold.is_some_and(|it| it.has_other_writes() || is_write && !it.other_reads.is_empty()) {
            return self.has_cold_conflict(context, (by.usage, by.order));
        }
        self.has_hot_conflict(context, (by.usage, by.order), is_write)
    }

    /// The fast path: there is at most one write, and a write meets reads of at most one lane.
    #[inline]
    fn has_hot_conflict(&self, context: &AccessContext<'_>, by: (UsageIndex, AccessOrder), is_write: bool) -> bool {
        if is_write && self.read_tag != 0 && self.hot_read().conflict_with_write(context, by).is_some() {
            return true;
        }
        match is_write {
            _ if self.write_tag == 0 => false,
            true => self.write_conflict(context, self.hot_write(), by).is_some(),
            false => self.read_conflict(context, self.hot_write(), by).is_some(),
        }
    }

    /// The slow path, which handles any state.
    #[cold]
    fn has_cold_conflict(&self, context: &AccessContext<'_>, by: (UsageIndex, AccessOrder)) -> bool {
        match SYNC_TABLES.write_column(by.0) {
            Some(_) => {
                self.reads().any(|it| it.conflict_with_write(context, by).is_some())
                    || self.writes().any(|it| self.write_conflict(context, it, by).is_some())
            }
            None => self.writes().any(|it| self.read_conflict(context, it, by).is_some()),
        }
    }

    /// The conflict of a read with an earlier write: the write must be visible to it.
    #[inline]
    fn read_conflict(
        &self,
        context: &AccessContext<'_>,
        write: LastWrite<'_>,
        (usage, order): (UsageIndex, AccessOrder),
    ) -> Option<Conflict> {
        if access_order::are_atomic(write.order, order) {
            return None;
        }
        if write.is_in_unordered_subpass(context) {
            let is_ordered = write.is_ordered_across_subpasses(context, (usage, order))
                || context.rules.most_recent_reads
                    && self
                        .reads()
                        .any(|it| it.first > write.tag && it.is_ordered_across_subpasses(context, (usage, order)));
            return (!is_ordered)
                .then(|| write.conflict(context, HazardKind::ReadAfterWrite, HazardKind::ReadRacingWrite));
        }
        if write.tag == context.tag
            || write.is_visible(context, usage)
            || context.is_ordered_by_rendering(write.queue, write.tag, (write.usage, write.order), (usage, order))
        {
            return None;
        }
        let is_covered = write.is_ordered_across_subpasses(context, (usage, order))
            || context.rules.most_recent_reads && self.is_covered_by_read(context, write.tag, (usage, order));
        (!is_covered).then(|| write.conflict(context, HazardKind::ReadAfterWrite, HazardKind::ReadRacingWrite))
    }

    /// Whether another read lies between an older write and this read: that read was checked against the write, and this
    /// one is ordered after it.
    fn is_covered_by_read(
        &self,
        context: &AccessContext<'_>,
        older: Tag,
        (usage, order): (UsageIndex, AccessOrder),
    ) -> bool {
        let reads = self.reads().chain(self.earlier_reads().iter().copied());
        reads.filter(|it| it.first > older && it.first != context.tag).any(|read| {
            read.happens_before(context, SYNC_TABLES.stage(usage), read.first)
                || context.is_ordered_by_rendering(read.queue, read.first, (read.usage, read.order), (usage, order))
                || context.is_ordered_across_subpasses(read.queue, read.first, (read.usage, read.order), (usage, order))
        })
    }

    /// The conflict of a write with an earlier write.
    #[inline]
    fn write_conflict(
        &self,
        context: &AccessContext<'_>,
        write: LastWrite<'_>,
        (usage, order): (UsageIndex, AccessOrder),
    ) -> Option<Conflict> {
        let is_ordered = write.tag == context.tag
            || self.is_followed_by_read(context.rules, write)
            || write.allows_write(context, usage, order)
            || context.is_ordered_by_rendering(write.queue, write.tag, (write.usage, write.order), (usage, order));
        let is_exempt = || {
            access_order::are_atomic(write.order, order)
                || order.is_marker() && is_marker_ordered(context, write, order)
                || write.is_ordered_across_subpasses(context, (usage, order))
                || self.is_followed_by_ordered_read(context, write, (usage, order))
                || write.may_be_read_before(context, usage)
        };
        let is_conflict = (!is_ordered || write.is_in_unordered_subpass(context)) && !is_exempt();
        is_conflict.then(|| write.conflict(context, HazardKind::WriteAfterWrite, HazardKind::WriteRacingWrite))
    }

    /// Whether a read lies between a write and a later write. That read was checked against the first write, and the
    /// later write is checked against the read. Reads of the command that wrote do not count: they were not checked.
    #[inline]
    fn is_followed_by_read(&self, rules: Rules, write: LastWrite<'_>) -> bool {
        rules.visible_writes && self.reads().any(|it| it.last > write.tag)
    }

    /// Like `is_followed_by_read`, if no dependency orders the subpass of the first write before that of the later one.
    /// Then load and store operations must order the read before the later write.
    fn is_followed_by_ordered_read(
        &self,
        context: &AccessContext<'_>,
        write: LastWrite<'_>,
        by: (UsageIndex, AccessOrder),
    ) -> bool {
        let is_ordered = |it: &LaneReads| it.last > write.tag && it.is_ordered_across_subpasses(context, by);
        context.rules.visible_writes && self.reads().any(|it| is_ordered(&it))
    }

    /// Whether an access to this range lies between an earlier access through another resource in the same memory and
    /// the access that is being checked. The access in between was checked against the earlier one.
    pub(crate) fn has_access_between(
        &self,
        context: &AccessContext<'_>,
        by: (UsageIndex, AccessOrder),
        conflict: &Conflict,
    ) -> bool {
        let prior = conflict.prior;
        let has_read = || match SYNC_TABLES.write_column(by.0) {
            Some(_) => {
                let is_write = SYNC_TABLES.write_column(conflict.prior_usage).is_some();
                context.rules.visible_writes && is_write && self.reads().any(|it| it.last > prior)
            }
            None => context.rules.most_recent_reads && self.is_covered_by_read(context, prior, by),
        };
        self.writes().any(|it| it.tag > prior) || has_read()
    }

    /// The conflicts of a layout transition, or of a half of an ownership transfer.
    ///
    /// Spec: `synchronization-image-layout-transitions`. A transition happens after the first scope of its barrier, and
    /// writes must be available before it. A transition of a barrier and any other one on its queue happen in submission
    /// order (`synchronization-image-barrier-layout-transition-order`).
    pub(crate) fn find_transition_conflicts(
        &self,
        context: &AccessContext<'_>,
        first_scope: &ResourceFirstScope,
        order: AccessOrder,
        range: &Range<u64>,
    ) -> Vec<Conflict> {
        let mut found = Vec::new();
        for read in self.reads() {
            let is_ordered = first_scope.global.has_access(read.queue, SYNC_TABLES.stage(read.usage), read.last)
                || read.happens_before(context, TRANSITION, read.last);
            if !is_ordered {
                found.push(read.conflict(context));
            }
        }
        for write in self.writes() {
            let is_in_order =
                context.rules.all_transitions_ordered || access_order::are_ordered_transitions(write.order, order);
            let is_same_queue = write.queue == context.queue && is_in_order;
            if write.usage == TRANSITION_WRITE && (write.tag == context.tag || is_same_queue) {
                continue;
            }
            let is_read_since = |it: LaneReads| first_scope.has_read_since(context, write, &it);
            let is_ordered = context.rules.visible_writes && self.reads().any(is_read_since)
                || write.is_in_first_scope(context, first_scope, range)
                || write.is_available(context, TRANSITION);
            if !is_ordered {
                found.push(write.conflict(context, HazardKind::WriteAfterWrite, HazardKind::WriteRacingWrite));
            }
        }
        found
    }

    /// The conflicts of a present with accesses that the semaphores it waits for do not cover.
    ///
    /// Spec: `vkQueuePresentKHR`. What is available before the present is visible to it. A layout transition is available
    /// by itself; whether the semaphores come after it is decided by the second scope of its barrier.
    pub(crate) fn find_present_conflicts(&self, rules: Rules, waited: &FirstScope, queue: u8) -> Vec<Conflict> {
        let mut found = Vec::new();
        for read in self.reads().filter(|it| !waited.has_access(it.queue, SYNC_TABLES.stage(it.usage), it.last)) {
            found.push(read.as_conflict(HazardKind::PresentAfterRead));
        }
        let others = self.writes().filter(|it| it.queue != queue && !self.is_followed_by_read(rules, *it));
        let is_available = |write: &LastWrite<'_>| {
            waited.has_available(write.queue, write.usage, write.tag)
                || write.overlay.is_some_and(|it| it.is_in_scope(waited))
        };
        for other in others.filter(|it| !is_available(it)) {
            found.push(other.as_conflict(HazardKind::PresentAfterWrite));
        }
        found
    }

    /// Whether no later access can conflict: the host knows that all accesses have completed, and sees all writes.
    pub(crate) fn is_finished(&self, completed: &FirstScope, host_clock: &QueueClock) -> bool {
        let is_seen = |write: &LastWrite<'_>| {
            let is_visible = |usage| host_clock.is_visible(usage, write.queue, write.usage, write.tag);
            completed.has_available(write.queue, write.usage, write.tag)
                && COMMON_SETS.host_usages.iter().all(is_visible)
        };
        self.reads().all(|it| completed.has_access(it.queue, SYNC_TABLES.stage(it.usage), it.last))
            && self.writes().all(|it| is_seen(&it))
    }
}

impl LastWrite<'_> {
    /// Whether the write is visible to a usage (`synchronization-dependencies-available-and-visible`), by dependencies
    /// on all memory (the clock of the queue holds those so far) or by those on the resource (overlay). The
    /// presentation engine only reads, so after a present an execution dependency chain suffices
    /// (`synchronization-dependencies-chains`).
    #[inline]
    fn is_visible(&self, context: &AccessContext<'_>, usage: UsageIndex) -> bool {
        context.clock.is_visible(usage, self.queue, self.usage, self.tag)
            || self.overlay.is_some_and(|it| it.is_visible(context, usage))
            || self.usage == PRESENT && self.is_present_over(context, usage)
    }

    /// Whether a chain of dependencies leads from the presentation engine to a usage.
    #[cold]
    fn is_present_over(&self, context: &AccessContext<'_>, usage: UsageIndex) -> bool {
        self.is_available(context, SYNC_TABLES.stage(usage))
    }

    /// Whether another write may come after this one. A store operation need not see the layout transitions of its own
    /// render pass.
    #[inline]
    fn allows_write(&self, context: &AccessContext<'_>, usage: UsageIndex, order: AccessOrder) -> bool {
        let is_available = || self.is_available(context, SYNC_TABLES.stage(usage));
        let is_own_transition = || {
            let is_stored = order == AccessOrder::Store && self.usage == TRANSITION_WRITE;
            is_stored && context.is_in_same_pass(self.queue, self.tag)
        };
        match context.rules.visible_writes {
            true => self.is_visible(context, usage) || is_own_transition() && is_available(),
            false => is_available(),
        }
    }

    /// Whether the write lies in a subpass that no dependency orders before the access. A layout transition is also
    /// before the later subpasses that use the attachment in the same layout (`renderpass-layout-transitions`).
    #[inline]
    fn is_in_unordered_subpass(&self, context: &AccessContext<'_>) -> bool {
        let is_before_subpass =
            || self.usage == TRANSITION_WRITE && self.overlay.is_some_and(|it| it.is_before_ordered_subpass(context));
        context.is_in_unordered_subpass(self.queue, self.tag) && !is_before_subpass()
    }

    /// Whether a possible read (`possible_reads`) lies between this write and the write that is being checked, and orders
    /// them.
    #[cold]
    fn may_be_read_before(&self, context: &AccessContext<'_>, usage: UsageIndex) -> bool {
        /// The context of the read: its clock, its tag and its subpass.
        fn at_read<'a>(context: &AccessContext<'a>, read: &'a TaggedRead) -> AccessContext<'a> {
            AccessContext { clock: &read.clock, tag: read.tag, subpass_begin: read.subpass_begin, ..*context }
        }
        let (stage, marker_scope) = (SYNC_TABLES.stage(usage), context.marker_scope());
        let is_between = |read: &TaggedRead| {
            let before = SYNC_TABLES.stage(read.usage);
            let is_in_marker_scope =
                || marker_scope.is_some_and(|it| it.global.has_access(context.queue, before, read.tag));
            read.tag > self.tag
                && (context.clock.has_happened(stage, context.queue, before, read.tag) || is_in_marker_scope())
                && (self.is_visible(&at_read(context, read), read.usage) || self.is_visible(context, read.usage))
        };
        let is_allowed = context.rules.visible_writes && !self.is_in_unordered_subpass(context);
        is_allowed && context.possible_reads().iter().any(is_between)
    }

    /// Whether load and store operations order the write before an access, whatever their subpasses are.
    fn is_ordered_across_subpasses(&self, context: &AccessContext<'_>, by: (UsageIndex, AccessOrder)) -> bool {
        context.is_ordered_across_subpasses(self.queue, self.tag, (self.usage, self.order), by)
    }

    /// Whether the write is available, and the chain of dependencies that made it available reaches a stage.
    fn is_available(&self, context: &AccessContext<'_>, stage: StageIndex) -> bool {
        context.clock.is_available(stage, self.queue, self.usage, self.tag)
            || self.overlay.is_some_and(|it| it.is_available(context, stage))
    }

    /// Whether the first scopes of a dependency include this write to a range.
    pub(super) fn is_in_first_scope(
        &self,
        context: &AccessContext<'_>,
        first_scope: &ResourceFirstScope,
        range: &Range<u64>,
    ) -> bool {
        let has = |identity: ResourceIdentity, scope: &FirstScope| {
            identity == self.identity && scope.has_available(self.queue, self.usage, self.tag)
        };
        let has_range = |it: &Range<u64>| it.start <= range.start && range.end <= it.end;
        let is_direct = match context.addressing {
            Addressing::Own => first_scope.through_resource.iter().any(|it| has(it.0, &it.1)),
            Addressing::Alias { .. } => {
                first_scope.through_aliases.iter().any(|it| has_range(&it.addresses) && has(it.resource, &it.scope))
            }
        };
        is_direct
            || first_scope.global.has_available(self.queue, self.usage, self.tag)
            || self.overlay.is_some_and(|it| it.reaches(context, first_scope))
    }

    fn conflict(&self, context: &AccessContext<'_>, after: HazardKind, racing: HazardKind) -> Conflict {
        let is_racing = context.is_in_unknown_batch(self.queue, self.tag) || self.is_in_unordered_subpass(context);
        let kind = if is_racing { racing } else { after };
        let kind = if self.usage == PRESENT { after_present(kind) } else { kind };
        self.as_conflict(kind)
    }

    fn as_conflict(&self, kind: HazardKind) -> Conflict {
        Conflict { kind, prior: self.tag, prior_usage: self.usage, prior_queue: self.queue }
    }
}

/// Whether the later write is a buffer marker that is ordered after the earlier write without a barrier (`markers`).
#[cold]
fn is_marker_ordered(context: &AccessContext<'_>, write: LastWrite<'_>, order: AccessOrder) -> bool {
    let is_available = |scope: &ResourceFirstScope| {
        scope.global.has_available(write.queue, write.usage, write.tag)
            || write.overlay.is_some_and(|it| it.reaches(context, scope))
    };
    access_order::are_ordered_markers(write.order, order)
        && context.is_earlier_in_submission_order(write.queue, write.tag)
        || !context.rules.visible_writes && context.marker_scope().is_some_and(is_available)
}

impl LaneReads {
    /// The conflict of a write with this read: the read must happen before it.
    #[inline]
    fn conflict_with_write(
        &self,
        context: &AccessContext<'_>,
        (usage, order): (UsageIndex, AccessOrder),
    ) -> Option<Conflict> {
        if self.last == context.tag || access_order::are_atomic(self.order, order) {
            return None;
        }
        let prior = (self.usage, self.order);
        let is_ordered = context.is_ordered_by_rendering(self.queue, self.last, prior, (usage, order))
            || self.happens_before(context, SYNC_TABLES.stage(usage), self.last)
            || order.is_marker() && self.happens_before_marker(context);
        let is_conflict = (!is_ordered || context.is_in_unordered_subpass(self.queue, self.last))
            && !self.is_ordered_across_subpasses(context, (usage, order));
        is_conflict.then(|| self.conflict(context))
    }

    /// Whether the read with a tag happens before a stage. The tag is that of the first or of the last read.
    #[inline]
    fn happens_before(&self, context: &AccessContext<'_>, stage: StageIndex, tag: Tag) -> bool {
        context.clock.has_happened(stage, self.queue, SYNC_TABLES.stage(self.usage), tag)
    }

    /// Whether the last read is in the first scope of the buffer marker that is executed.
    #[cold]
    fn happens_before_marker(&self, context: &AccessContext<'_>) -> bool {
        let stage = SYNC_TABLES.stage(self.usage);
        context.marker_scope().is_some_and(|it| it.global.has_access(self.queue, stage, self.last))
    }

    /// Whether load and store operations order the last read before an access, whatever their subpasses are.
    fn is_ordered_across_subpasses(&self, context: &AccessContext<'_>, by: (UsageIndex, AccessOrder)) -> bool {
        context.is_ordered_across_subpasses(self.queue, self.last, (self.usage, self.order), by)
    }

    fn conflict(&self, context: &AccessContext<'_>) -> Conflict {
        let is_unordered = context.is_in_unordered_subpass(self.queue, self.last);
        let is_racing = context.is_in_unknown_batch(self.queue, self.last) || is_unordered;
        let kind = if is_racing { HazardKind::WriteRacingRead } else { HazardKind::WriteAfterRead };
        self.as_conflict(kind)
    }

    fn as_conflict(&self, kind: HazardKind) -> Conflict {
        Conflict { kind, prior: self.last, prior_usage: self.usage, prior_queue: self.queue }
    }
}

impl ResourceFirstScope {
    /// Whether a read came after a write, so that the write needs no check. If the write lies in a subpass that races
    /// this access, a read in a subpass that races the write does not count: nothing ordered it after the write.
    fn has_read_since(&self, context: &AccessContext<'_>, write: LastWrite<'_>, read: &LaneReads) -> bool {
        let contains = |(begin, end): (Tag, Tag), tag: Tag| begin < tag && tag <= end;
        let races = |[one, other]: &[(Tag, Tag); 2]| contains(*one, write.tag) && contains(*other, read.last);
        let is_racing = || write.is_in_unordered_subpass(context) && read.queue == context.queue;
        read.last > write.tag && !(is_racing() && self.unordered_pairs.iter().any(races))
    }
}
