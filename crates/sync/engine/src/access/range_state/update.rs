//! Adds accesses to the state of a range.
//!
//! Most reads are the first one of a range, or repeat the read before. [`RangeState::add_read`] tries these cases on
//! the hot fields. [`RangeState::add_access`] handles every case; both leave the same state.

use crate::access::access_context::AccessContext;
use crate::access::access_order;
use crate::access::range_state::{Accessor, LaneReads, OtherWrite, RangeState};
use crate::access::usages::{SYNC_TABLES, TRANSITION_WRITE};
use crate::dependency::clocks::Tag;
use crate::memory::addresses::ResourceIdentity;

impl RangeState {
    /// Adds a read.
    #[inline]
    pub(crate) fn add_read(&mut self, by: Accessor, context: &AccessContext<'_>) {
        if !self.try_add_hot_read(by, context) && !self.try_extend_second_read(by, context) {
            return self.add_access(by, context);
        }
        self.is_marked = false;
    }

    /// Adds the first read of a range, or one that repeats the only read of a range. Returns whether it was one of
    /// these.
    #[inline(always)]
    fn try_add_hot_read(&mut self, by: Accessor, context: &AccessContext<'_>) -> bool {
        if self.cold.is_none() && self.read_tag == 0 {
            self.set_hot_read(context.tag, context.tag, by);
            return true;
        }
        let is_repeated = self.cold.is_none()
            && self.reader == by
            && self.read_tag > context.subpass_begin
            && self.first_read_tag() > self.write_tag;
        if is_repeated {
            self.set_hot_read(self.first_read_tag(), context.tag, by);
        }
        is_repeated
    }

    /// If two lanes read the range: adds a read that repeats that of the second lane. Returns whether it was one.
    #[inline]
    pub(super) fn try_extend_second_read(&mut self, by: Accessor, context: &AccessContext<'_>) -> bool {
        let (reader, write_tag) = (self.reader, self.write_tag);
        let Some([second]) = self.cold.as_mut().map(|it| &mut it.other_reads[..]) else { return false };
        let is_other_lane = self.read_tag != 0
            && (reader.queue, SYNC_TABLES.stage(reader.usage)) != (by.queue, SYNC_TABLES.stage(by.usage));
        let is_repeated =
            is_other_lane && second.accessor() == by && second.last > context.subpass_begin && second.first > write_tag;
        if is_repeated {
            second.last = context.tag;
        }
        is_repeated
    }

    /// Adds any access.
    pub(crate) fn add_access(&mut self, by: Accessor, context: &AccessContext<'_>) {
        self.is_marked = false;
        match SYNC_TABLES.write_column(by.usage) {
            Some(_) => self.add_write(by, context.identity, context.tag),
            None => self.merge_read(by, context),
        }
    }

    /// Adds a read to any state: the new read replaces the entries of its lane, except those before the current subpass
    /// that nothing orders before it (rule 2 of `range_state`).
    #[inline]
    fn merge_read(&mut self, by: Accessor, context: &AccessContext<'_>) {
        let tag = context.tag;
        let is_replaced = |it: &LaneReads| it.is_replaced_by(by, context);
        // A read of the command that wrote was not checked against the write, so it cannot be the first read since.
        let write_tag = self.write_tag;
        let mut first = tag;
        let mut join = |other: Tag| first = if other > write_tag { first.min(other) } else { first };
        if let Some(cold) = &mut self.cold {
            cold.other_reads.retain(|other_read| {
                let is_replaced = is_replaced(other_read);
                is_replaced.then(|| join(other_read.first));
                !is_replaced
            });
        }
        let hot_read = self.hot_read();
        let is_hot_replaced = self.read_tag != 0 && is_replaced(&hot_read);
        if self.read_tag == 0 || is_hot_replaced {
            is_hot_replaced.then(|| join(hot_read.first));
            self.set_hot_read(first, tag, by);
        } else {
            let Accessor { usage, queue, order } = by;
            let reads = &mut self.cold.get_or_insert_default().other_reads;
            reads.reserve_exact(1);
            reads.push(LaneReads { usage, queue, first, last: tag, order });
        }
    }

    /// Sets the reads of the hot fields. A first read that is too long ago for the field is replaced by the last one.
    #[inline]
    fn set_hot_read(&mut self, first: Tag, last: Tag, by: Accessor) {
        (self.read_span, self.read_tag, self.reader) = (u32::try_from(last - first).unwrap_or(0), last, by);
    }

    /// Before a read is added: moves the reads of its lane to `earlier_reads`, if one of the writes through other
    /// resources in the same memory comes after them.
    pub(crate) fn separate_reads(&mut self, by: Accessor, context: &AccessContext<'_>, alias_writes: &[Tag]) {
        let last_write = alias_writes.iter().copied().max().unwrap_or(0);
        let is_earlier = |it: &LaneReads| it.first <= last_write && it.is_replaced_by(by, context);
        let earlier: Vec<LaneReads> = self.reads().filter(is_earlier).collect();
        if earlier.is_empty() {
            return;
        }
        if self.reads().next().is_some_and(|it| it.last == self.read_tag && is_earlier(&it)) {
            (self.read_tag, self.read_span) = (0, 0);
        }
        let (write_tag, cold) = (self.write_tag, self.cold.get_or_insert_default());
        cold.other_reads.retain(|it| !is_earlier(it));
        let rare = cold.rare.get_or_insert_default();
        rare.earlier_reads.extend(earlier);
        // A check only asks for a read after a write, and the first read after each write answers that.
        let all = rare.earlier_reads.clone();
        rare.earlier_reads.retain(|earlier_read| {
            let is_first_after = |write: Tag| {
                let is_between = |other: &LaneReads| {
                    write < other.first && other.first < earlier_read.first && other.is_same_lane(earlier_read)
                };
                write != 0 && write < earlier_read.first && !all.iter().any(is_between)
            };
            alias_writes.iter().copied().chain([write_tag]).any(is_first_after)
        });
    }

    /// Adds a write. It replaces the whole state, unless the same command has written to the range already.
    #[inline]
    pub(crate) fn add_write(&mut self, by: Accessor, identity: ResourceIdentity, tag: Tag) {
        self.is_marked = false;
        if self.write_tag != tag {
            *self = RangeState { write_tag: tag, writer: by, write_identity: identity, ..RangeState::default() };
        } else if self.writes().all(|it| (it.usage, it.identity) != (by.usage, identity))
            || by.usage == TRANSITION_WRITE
        {
            let rare = self.cold.get_or_insert_default().rare.get_or_insert_default();
            rare.other_writes.push(OtherWrite { accessor: by, identity, tag, overlay: None });
        }
    }
}

impl LaneReads {
    #[inline]
    fn accessor(&self) -> Accessor {
        Accessor { usage: self.usage, queue: self.queue, order: self.order }
    }

    /// Whether a new read replaces this entry: it has the same lane, and is in the same subpass or ordered after it.
    #[inline]
    fn is_replaced_by(&self, by: Accessor, context: &AccessContext<'_>) -> bool {
        let Accessor { usage, queue, order } = by;
        let stage = SYNC_TABLES.stage(usage);
        self.is_same_lane(&LaneReads { usage, queue, first: 0, last: 0, order })
            && (self.last > context.subpass_begin || context.clock.has_happened(stage, queue, stage, self.last))
    }

    /// Whether two reads have the same queue and stage, and rendering orders them in the same way.
    #[inline]
    fn is_same_lane(&self, other: &LaneReads) -> bool {
        self.queue == other.queue
            && SYNC_TABLES.stage(self.usage) == SYNC_TABLES.stage(other.usage)
            && access_order::is_same_order_class((self.usage, self.order), (other.usage, other.order))
    }
}
