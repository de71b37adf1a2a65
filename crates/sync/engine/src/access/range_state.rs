//! The state of a range of memory: its last write, and the reads since that write.
//!
//! Every access is checked against the state (`check`) and then added to it (`update`). Barriers on single resources and
//! layout transitions change it as well (`resource_dependency`). The rules:
//!
//! 1. **A write replaces all earlier accesses.** If it is ordered after them, whatever is ordered after the write is
//!    ordered after them, too. If it is not, the check has reported the hazard.
//! 2. **Reads of one lane are one entry ([`LaneReads`]), with the tags of the first and of the last read.** A lane is a
//!    stage of a queue. A dependency that orders the last read orders the earlier ones, because its first scope has all
//!    earlier commands (`synchronization-submission-order`). Inside a subpass the first scope begins with the subpass,
//!    so reads before the subpass keep an entry of their own.
//! 3. **A later write is checked against the last read.** Where `Rules::most_recent_reads` lets an earlier read cover a
//!    later one, the first read counts: only that one was checked against the write.
//! 4. **Accesses of one command do not conflict.** They have one tag. A command that writes to a range with several
//!    usages leaves several writes ([`LastWrite`]).
//! 5. **Most ranges have one write and one lane that reads.** There may be millions of ranges, so the fields of
//!    [`RangeState`] hold just these, and [`ColdState`] holds the rest. [`RangeState::writes`] and [`RangeState::reads`]
//!    show both. Functions with `hot` in their names use only the fields of `RangeState` (`hot_write` also the overlay);
//!    their callers make sure that the rest of the cold state does not matter.
//! 6. **Adding an access clears `is_marked`.** Only the executor sets it again, if the access has marks (`marks`, rule
//!    6).

use std::sync::Arc;

use lavascope_sync_ir::HazardKind;

use crate::access::access_order::AccessOrder;
use crate::access::overlays::Overlay;
use crate::access::usages::{SYNC_TABLES, StageSet, TRANSITION_WRITE, UsageIndex};
use crate::dependency::clocks::Tag;
use crate::dependency::subpass_intervals::ClockQuery;
use crate::memory::addresses::ResourceIdentity;

mod check;
mod resource_dependency;
mod update;

pub(crate) use resource_dependency::SharedOverlays;

/// The fields stand by themselves, not in structs for the write and the read, because that would add padding to every
/// range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeState {
    /// The tag of the last write; zero if there is none.
    write_tag: Tag,
    /// The tag of the last read of `reader`; zero if there is none.
    read_tag: Tag,
    cold: Option<Box<ColdState>>,
    /// The resource through which the last write went.
    write_identity: ResourceIdentity,
    /// How many tags before the last read of `reader` its first read was.
    read_span: u32,
    writer: Accessor,
    reader: Accessor,
    is_marked: bool,
}

/// The queue and the usage of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accessor {
    pub(crate) usage: UsageIndex,
    pub(crate) queue: u8,
    pub(crate) order: AccessOrder,
}

impl Default for Accessor {
    fn default() -> Accessor {
        // Any usage: without a tag nobody reads it.
        Accessor { usage: TRANSITION_WRITE, queue: 0, order: AccessOrder::None }
    }
}

/// State that few ranges have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ColdState {
    /// What dependencies on single resources did for the last write.
    overlay: Option<Arc<Overlay>>,
    /// Reads of lanes other than that of `reader`.
    other_reads: Vec<LaneReads>,
    rare: Option<Box<RareState>>,
}

/// State that hardly any range has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RareState {
    /// The writes of the last command that wrote to the range, except the one in `RangeState`.
    other_writes: Vec<OtherWrite>,
    /// Reads before a write through another resource in the same memory, if their lane has read again since. An access
    /// that is ordered after one of these needs no check against the writes before that read.
    earlier_reads: Vec<LaneReads>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OtherWrite {
    accessor: Accessor,
    identity: ResourceIdentity,
    tag: Tag,
    overlay: Option<Arc<Overlay>>,
}

/// A write of the last command that wrote to the range.
#[derive(Clone, Copy)]
struct LastWrite<'a> {
    usage: UsageIndex,
    /// The resource through which the write went.
    identity: ResourceIdentity,
    queue: u8,
    tag: Tag,
    order: AccessOrder,
    overlay: Option<&'a Overlay>,
}

/// The reads of one lane that the range remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LaneReads {
    usage: UsageIndex,
    queue: u8,
    first: Tag,
    last: Tag,
    order: AccessOrder,
}

/// A conflict with an earlier access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) kind: HazardKind,
    pub(crate) prior: Tag,
    pub(crate) prior_usage: UsageIndex,
    pub(crate) prior_queue: u8,
}

impl RangeState {
    /// All writes: those of the last command that wrote to the range.
    #[inline]
    fn writes(&self) -> impl Iterator<Item = LastWrite<'_>> {
        let last = (self.write_tag != 0).then_some(self.hot_write());
        let rare = self.cold.as_deref().and_then(|it| it.rare.as_deref());
        let others = rare.map_or(&[][..], |it| &it.other_writes);
        last.into_iter().chain(others.iter().map(OtherWrite::as_last_write))
    }

    /// All reads since the last write, one entry for each lane.
    #[inline]
    fn reads(&self) -> impl Iterator<Item = LaneReads> {
        let hot = (self.read_tag != 0).then_some(self.hot_read());
        hot.into_iter().chain(self.cold.as_deref().map_or(&[][..], |it| &it.other_reads).iter().copied())
    }

    /// The last write. Only for a range that is written.
    #[inline]
    fn hot_write(&self) -> LastWrite<'_> {
        let Accessor { usage, queue, order } = self.writer;
        let overlay = self.cold.as_deref().and_then(|it| it.overlay.as_deref());
        LastWrite { usage, identity: self.write_identity, queue, tag: self.write_tag, order, overlay }
    }

    /// The reads of `reader`. Only for a range that is read.
    #[inline]
    fn hot_read(&self) -> LaneReads {
        let Accessor { usage, queue, order } = self.reader;
        LaneReads { usage, queue, first: self.first_read_tag(), last: self.read_tag, order }
    }

    /// The first read of `reader`.
    #[inline]
    fn first_read_tag(&self) -> Tag {
        self.read_tag - Tag::from(self.read_span)
    }

    /// Reads before a write through another resource in the same memory.
    fn earlier_reads(&self) -> &[LaneReads] {
        let rare = self.cold.as_deref().and_then(|it| it.rare.as_deref());
        rare.map_or(&[][..], |it| &it.earlier_reads)
    }

    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        self.write_tag != 0
    }

    /// Whether marks may supersede all accesses in this state. Rule 6.
    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked
    }

    #[inline]
    pub(crate) fn set_marked(&mut self, is_marked: bool) {
        self.is_marked = is_marked;
    }

    /// The tag of the last read with the same usage and order.
    #[inline]
    pub(crate) fn last_read(&self, usage: UsageIndex, order: AccessOrder) -> Option<Tag> {
        if self.read_tag != 0 && (self.reader.usage, self.reader.order) == (usage, order) {
            return Some(self.read_tag);
        }
        let reads = &self.cold.as_deref()?.other_reads;
        reads.iter().find(|it| (it.usage, it.order) == (usage, order)).map(|it| it.last)
    }

    /// The last read of a load operation of a queue.
    pub(crate) fn last_load(&self, queue: u8) -> Option<(UsageIndex, Tag)> {
        let is_load = |it: &LaneReads| it.queue == queue && it.order == AccessOrder::Load;
        self.reads().filter(is_load).max_by_key(|it| it.last).map(|it| (it.usage, it.last))
    }

    pub(crate) fn write_tags(&self) -> impl Iterator<Item = Tag> {
        self.writes().map(|it| it.tag)
    }

    /// The tags of all accesses that a hazard may name as the earlier one.
    pub(crate) fn tags(&self) -> impl Iterator<Item = Tag> {
        self.writes().map(|it| it.tag).chain(self.reads().map(|it| it.last))
    }

    /// Visits the same tags as `tags`, without the cost of iterators where there is no cold state.
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

    /// The queries of clocks that later checks of this range can make (`subpass_intervals`, rule 5).
    pub(crate) fn clock_queries(&self) -> impl Iterator<Item = ClockQuery> {
        let reads = self.reads().chain(self.earlier_reads().iter().copied()).flat_map(|read| {
            [read.first, read.last].map(|tag| ClockQuery::of_stage(read.queue, SYNC_TABLES.stage(read.usage), tag))
        });
        let writes = self.writes().flat_map(|write| {
            let stages = StageSet::default();
            let own = ClockQuery { tag: write.tag, queue: write.queue, stages, write: Some(write.usage) };
            write.overlay.into_iter().flat_map(Overlay::clock_queries).chain([own])
        });
        reads.chain(writes)
    }
}

impl ColdState {
    /// Whether the last command that wrote to the range has several writes.
    #[inline]
    fn has_other_writes(&self) -> bool {
        self.rare.as_ref().is_some_and(|it| !it.other_writes.is_empty())
    }
}

impl OtherWrite {
    fn as_last_write(&self) -> LastWrite<'_> {
        let Accessor { usage, queue, order } = self.accessor;
        let overlay = self.overlay.as_deref();
        LastWrite { usage, identity: self.identity, queue, tag: self.tag, order, overlay }
    }
}

#[cfg(test)]
mod tests;
