//! Action commands: checks their accesses against the states of ranges, and adds them to these states.
//!
//! The fast path is `check_and_add`. It only finds out whether there is a conflict. If there is one, `check_and_add_each`
//! checks all accesses again, and reports the hazards.
//!
//! Some accesses need no check, or need not be added, because other commands of the command buffer cover them (`marks`).

use std::borrow::Cow;
use std::ops::Range;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::{Access, Hazard, Region, ResourceId};

use smallvec::SmallVec;

use crate::access::access_context::AccessContext;
use crate::access::access_order;
use crate::access::access_order::AccessOrder;
use crate::access::addressed_access::AddressedAccess;
use crate::access::range_state::{Accessor, Conflict, RangeState};
use crate::access::usages::{SYNC_TABLES, UsageIndex};
use crate::command_buffer::marks::{MarkChange, MarkMode, MarkUpdate};
use crate::command_buffer::prepared::PreparedCommandBuffer;
use crate::command_buffer::prepared_commands::{ActionAccesses, MarkedAccesses, PreparedCommands, PreparedKind};
use crate::dependency::clocks::Tag;
use crate::memory::addresses::{AddressLookup, ResourceIdentity};
use crate::memory::aliases;
use crate::queue::device::EngineDevice;
use crate::queue::execution::{CommandExecutor, access_context};
use crate::queue::submissions::QueueTimeline;

impl CommandExecutor<'_> {
    /// Executes an action. All accesses of a command are checked before any of them is added, because they do not
    /// conflict with each other. Returns whether the next command may rely on its marks: there was no conflict.
    pub(crate) fn execute_action(
        &mut self,
        tag: Tag,
        accesses: ActionAccesses<'_>,
        commands: &PreparedCommandBuffer,
        index: usize,
    ) -> bool {
        let uses = || accesses.iter().filter_map(ResourceUse::from_access).collect::<Vec<ResourceUse<'static>>>();
        if self.is_tracking_contents() {
            self.check_contents(tag, &uses());
        }
        for read in commands.list.possible_reads(index) {
            let begin = self.scope_begin();
            let QueueTimeline { clock, rare_order, .. } = self.timeline();
            rare_order.possible_reads.add(read.usage, tag, begin, clock);
        }
        let buffer_marker = commands.list.marker(index);
        if let Some(stage) = buffer_marker {
            self.begin_marker(tag, stage);
        }
        if let Some(instance) = self.instance.as_mut().filter(|it| it.has_unwritten_attachments()) {
            instance.mark_written(accesses.iter());
        }
        let (kind, addressed) = commands.addressed_accesses(index, &self.device.addresses);
        let is_done = match kind {
            // No written range overlaps another range of the command in part, so each range is checked by itself.
            PreparedKind::Disjoint => self.check_and_add(tag, &commands.list, index),
            PreparedKind::Overlapping => self.check_then_add(tag, addressed),
            PreparedKind::UnknownAddresses | PreparedKind::NotAction => false,
        };
        if !is_done {
            self.progress.is_clean = false;
            let is_marked = self.progress.marking == MarkMode::Apply;
            let after_write: Vec<&AddressedAccess> =
                if is_marked { commands.list.accesses_after_write(index).collect() } else { Vec::new() };
            self.check_and_add_each(tag, &uses(), &after_write);
        }
        if let Some(stage) = buffer_marker {
            self.end_marker(tag, stage, accesses.iter().last());
        }
        is_done && kind == PreparedKind::Disjoint
    }

    /// The fast path, which looks up each range once. Returns false if there is a conflict, or if a resource has aliases.
    /// The caller then adds all accesses of the command again, which changes nothing for those added by then.
    #[inline]
    fn check_and_add(&mut self, tag: Tag, list: &PreparedCommands, index: usize) -> bool {
        let (addresses, is_rendering) = (&self.device.addresses, self.instance.is_some());
        if addresses.alias_count() != 0
            && list.addressed_accesses(index).1.iter().any(|it| addresses.has_aliases(it.resource))
        {
            return false;
        }
        let mut word = 0;
        while let Some(marked) = list.marked_word(index, word) {
            word += 1;
            // The checks and additions for which marks say that other commands of the command buffer cover them.
            let skipped = self.progress.skipped(marked.marks, is_rendering);
            let left = marked.valid_bits & !(skipped.checks & skipped.additions);
            if left != 0 && !self.check_and_add_word(tag, list, marked, left, skipped.checks) {
                return false;
            }
        }
        true
    }

    /// Checks and adds up to 64 accesses: those with a bit in `left`. Those with a bit in `unchecked` are added without a
    /// check.
    fn check_and_add_word(
        &mut self,
        tag: Tag,
        list: &PreparedCommands,
        marked: MarkedAccesses<'_>,
        left: u64,
        unchecked: u64,
    ) -> bool {
        let CommandExecutor { device, queue, instance, progress, .. } = self;
        let EngineDevice { rules, queues, states, .. } = &mut **device;
        let timeline = &queues[usize::from(*queue)];
        let mut context = access_context(*rules, timeline, *queue, instance.as_ref(), tag, ResourceIdentity::default());
        let sets_marks = progress.marking == MarkMode::Set;
        let (mut left, mut written_before, mut read_before) = (left, 0, 0);
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            let (bits, addressed) = marked.group(at);
            let (addressed_access, is_write) = (&addressed[0], marked.marks.written_range & bits != 0);
            left &= !bits;
            context.identity = addressed_access.identity;
            let Some(state) = states.get_exact_mut(&addressed_access.range) else {
                if let Some(state) = states.insert_default_if_vacant(&addressed_access.range) {
                    add_all(state, addressed, is_write, &context);
                    state.set_marked(sets_marks);
                    continue;
                }
                if !check_and_add_parts(states, addressed, &context, sets_marks, unchecked & bits == 0) {
                    return false;
                }
                continue;
            };
            if unchecked & bits == 0 && has_range_conflict(state, addressed, is_write, &context) {
                return false;
            }
            let mut is_marked = state.is_marked();
            if sets_marks {
                written_before |= if state.is_written() { bits } else { 0 };
                if is_write {
                    is_marked = true;
                    progress.mark_overwritten(list, state, addressed_access);
                } else if progress.mark_read(list, state, &context, addressed_access, at) && !state.is_written() {
                    read_before |= bits;
                }
            }
            add_all(state, addressed, is_write, &context);
            state.set_marked(is_marked);
        }
        if written_before != 0 || read_before != 0 {
            let change = MarkChange::Before { written: written_before, read: read_before };
            progress.mark_updates.push(MarkUpdate { word: marked.number, change });
        }
        true
    }

    /// Adds the accesses of the last command that repeat those of the previous command and that the next command does
    /// not repeat.
    #[inline]
    pub(crate) fn add_last_repeated(&mut self, commands: &PreparedCommandBuffer, index: usize) {
        let is_rendering = self.instance.is_some();
        let mut word = 0;
        while let Some(marked) = commands.list.marked_word(index, word) {
            word += 1;
            let left = marked.marks.repeated(is_rendering) & !marked.marks.repeated_by_next;
            if left != 0 && commands.addressed_accesses(index, &self.device.addresses).0 == PreparedKind::Disjoint {
                self.add_word(marked, left);
            }
        }
    }

    fn add_word(&mut self, marked: MarkedAccesses<'_>, mut left: u64) {
        let tag = self.device.last_tag();
        let CommandExecutor { device, queue, instance, .. } = self;
        let EngineDevice { rules, queues, states, .. } = &mut **device;
        let timeline = &queues[usize::from(*queue)];
        let mut context = access_context(*rules, timeline, *queue, instance.as_ref(), tag, ResourceIdentity::default());
        while left != 0 {
            let (bits, addressed) = marked.group(left.trailing_zeros() as usize);
            let is_write = marked.marks.written_range & bits != 0;
            left &= !bits;
            context.identity = addressed[0].identity;
            if let Some(state) = states.get_exact_mut(&addressed[0].range) {
                let is_marked = state.is_marked();
                add_all(state, addressed, is_write, &context);
                state.set_marked(is_marked);
            } else {
                let add =
                    |it: &mut Option<RangeState>| add_all(it.get_or_insert_default(), addressed, is_write, &context);
                states.update(addressed[0].range.clone(), |_, it| add(it));
            }
        }
    }

    /// The path for accesses of one command that overlap in part: checks all of them, then adds them.
    fn check_then_add(&mut self, tag: Tag, addressed: &[AddressedAccess]) -> bool {
        let CommandExecutor { device, queue, instance, .. } = self;
        let EngineDevice { rules, queues, states, addresses, .. } = &mut **device;
        let timeline = &queues[usize::from(*queue)];
        let context = |identity| access_context(*rules, timeline, *queue, instance.as_ref(), tag, identity);
        for addressed_access in addressed {
            let (by, context) = (addressed_access.accessor(*queue), context(addressed_access.identity));
            let is_bad = |(_, state): (_, &RangeState)| state.has_conflict(&context, by);
            if addresses.has_aliases(addressed_access.resource)
                || states.overlapping(addressed_access.range.clone()).any(is_bad)
            {
                return false;
            }
        }
        // Writes first: a write replaces the reads of a range, and those of the same command must stay.
        for is_write in [true, false] {
            for addressed_access in
                addressed.iter().filter(|it| SYNC_TABLES.write_column(it.usage).is_some() == is_write)
            {
                let (by, context) = (addressed_access.accessor(*queue), context(addressed_access.identity));
                states.update(addressed_access.range.clone(), |_, state| {
                    state.get_or_insert_default().add_access(by, &context)
                });
            }
        }
        true
    }

    pub(crate) fn check_and_add_uses(&mut self, tag: Tag, uses: &[ResourceUse<'_>]) {
        if self.is_tracking_contents() {
            self.check_contents(tag, uses);
        }
        let is_done = self.addressed_uses(uses).is_some_and(|it| self.check_then_add(tag, &it));
        if !is_done {
            self.check_and_add_each(tag, uses, &[]);
        }
    }

    /// The uses with their addresses; none if one of them has several ranges of addresses.
    fn addressed_uses(&self, uses: &[ResourceUse<'_>]) -> Option<SmallVec<[AddressedAccess; 4]>> {
        let addresses = &self.device.addresses;
        let addressed_access =
            |resource_use: &ResourceUse<'_>| match addresses.look_up(resource_use.resource, &resource_use.region) {
                AddressLookup::One(range, identity) => Some(AddressedAccess {
                    range,
                    resource: resource_use.resource,
                    identity,
                    access_index: 0,
                    usage: resource_use.usage,
                    order: resource_use.order,
                }),
                AddressLookup::Many(..) | AddressLookup::Empty | AddressLookup::NotFixed => None,
            };
        uses.iter().map(addressed_access).collect()
    }

    /// The path that reports hazards: checks each use, then adds it.
    fn check_and_add_each(&mut self, tag: Tag, uses: &[ResourceUse<'_>], unchecked: &[&AddressedAccess]) {
        for resource_use in uses {
            self.check_use(tag, resource_use, unchecked);
        }
        let is_write = |it: &&ResourceUse<'_>| SYNC_TABLES.write_column(it.usage).is_some();
        // Writes first: a write replaces the reads of a range, and those of the same command must stay.
        for resource_use in uses.iter().filter(|it| is_write(it)) {
            self.add_use(tag, resource_use);
        }
        for resource_use in uses.iter().filter(|it| !is_write(it)) {
            self.add_use(tag, resource_use);
        }
    }

    /// Reports the hazards of a use, except where an unchecked access covers it.
    fn check_use(&mut self, tag: Tag, resource_use: &ResourceUse<'_>, unchecked: &[&AddressedAccess]) {
        let ranges = self.device.ranges(resource_use.resource, &resource_use.region);
        let device = &*self.device;
        let context = self.access_context(tag, resource_use.resource);
        let mut conflicts = Vec::new();
        let is_unchecked = |range: &Range<u64>| {
            let is_own = |addressed_access: &AddressedAccess| {
                (addressed_access.resource, addressed_access.usage) == (resource_use.resource, resource_use.usage)
            };
            unchecked.iter().any(|addressed_access| addressed_access.range == *range && is_own(addressed_access))
        };
        for range in ranges.iter().filter(|it| !is_unchecked(it)) {
            for (part, state) in device.states.overlapping(range.clone()) {
                let found = state.find_conflicts(&context, resource_use.usage, resource_use.order);
                if !found.is_empty() {
                    conflicts.push((part, found));
                }
            }
        }
        conflicts.extend(device.alias_conflicts(
            &context,
            resource_use.resource,
            &ranges,
            (resource_use.usage, resource_use.order),
        ));
        if !conflicts.is_empty() && self.instance.is_some() {
            self.remove_reads_before_load(&mut conflicts, (resource_use.usage, resource_use.order));
        }
        self.device.report_conflicts(tag, resource_use.resource, conflicts);
    }

    /// Removes conflicts of a draw or a store operation with reads that happen before the load operation of the same
    /// render pass instance: the load operation comes before it.
    #[cold]
    fn remove_reads_before_load(
        &self,
        conflicts: &mut Vec<(Range<u64>, Vec<Conflict>)>,
        by: (UsageIndex, AccessOrder),
    ) {
        let Some(instance) = self.instance.as_ref() else { return };
        for (range, found) in conflicts.iter_mut() {
            // A part has one state, or none if the conflict is with an alias.
            let load = self.device.states.overlapping(range.clone()).find_map(|it| it.1.last_load(self.queue));
            let is_first =
                |it: &(UsageIndex, Tag)| access_order::is_ordered_across_subpasses((it.0, AccessOrder::Load), by);
            let Some((load, tag)) = load.filter(is_first) else { continue };
            let Some(clock) = instance.clock_at_load(tag) else { continue };
            found.retain(|conflict| {
                let is_read = SYNC_TABLES.write_column(conflict.prior_usage).is_none();
                let (here, stage) = (SYNC_TABLES.stage(load), SYNC_TABLES.stage(conflict.prior_usage));
                !(is_read && clock.has_happened(here, conflict.prior_queue, stage, conflict.prior))
            });
        }
        conflicts.retain(|it| !it.1.is_empty());
    }

    fn add_use(&mut self, tag: Tag, resource_use: &ResourceUse<'_>) {
        let ranges = self.device.addresses.ranges(resource_use.resource, &resource_use.region);
        let by = Accessor { usage: resource_use.usage, queue: self.queue, order: resource_use.order };
        let alias_writes = self.device.alias_writes(resource_use.resource, &ranges, by);
        let CommandExecutor { device, queue, instance, .. } = self;
        let EngineDevice { rules, queues, states, addresses, .. } = &mut **device;
        let identity = addresses.identity(resource_use.resource);
        let context = access_context(*rules, &queues[usize::from(*queue)], *queue, instance.as_ref(), tag, identity);
        for range in ranges {
            aliases::add_access(states, range, &alias_writes, by, &context);
        }
    }
}

/// Whether one of the accesses of a command to one range conflicts with the state of the range.
#[inline]
fn has_range_conflict(
    state: &RangeState,
    addressed: &[AddressedAccess],
    is_write: bool,
    context: &AccessContext<'_>,
) -> bool {
    match is_write {
        false => state.has_read_conflict(context, addressed[0].accessor(context.queue)),
        true => addressed.iter().any(|it| state.has_conflict(context, it.accessor(context.queue))),
    }
}

/// Adds the accesses of a command to one range. Adds writes first: a write replaces the reads of a range, and those of
/// the same command must stay.
#[inline(always)]
fn add_all(state: &mut RangeState, addressed: &[AddressedAccess], is_write: bool, context: &AccessContext<'_>) {
    if is_write {
        add_written_range(state, addressed, context);
    } else {
        state.add_read(addressed[0].accessor(context.queue), context);
    }
}

fn add_written_range(state: &mut RangeState, addressed: &[AddressedAccess], context: &AccessContext<'_>) {
    if let [addressed_access] = addressed {
        return state.add_write(addressed_access.accessor(context.queue), context.identity, context.tag);
    }
    for is_write in [true, false] {
        let wanted = addressed.iter().filter(|it| SYNC_TABLES.write_column(it.usage).is_some() == is_write);
        wanted.for_each(|it| state.add_access(it.accessor(context.queue), context));
    }
}

/// Checks and adds accesses to a range that is split, or lies in a larger one. Returns false if there is a conflict.
fn check_and_add_parts(
    states: &mut IntervalMap<RangeState>,
    addressed: &[AddressedAccess],
    context: &AccessContext<'_>,
    sets_marks: bool,
    is_checked: bool,
) -> bool {
    let (range, mut parts, mut is_fine) = (&addressed[0].range, 0, true);
    let is_write = addressed.iter().any(|it| SYNC_TABLES.write_column(it.usage).is_some());
    states.update(range.clone(), |_, state| {
        parts += 1;
        match state {
            Some(state) if is_checked && has_range_conflict(state, addressed, is_write, context) => is_fine = false,
            Some(state) => {
                add_all(state, addressed, is_write, context);
                state.set_marked(false);
            }
            None => {
                let state = state.get_or_insert_default();
                add_all(state, addressed, is_write, context);
                state.set_marked(sets_marks);
            }
        }
    });
    // Neighbors may have equal states now. Without merging, a buffer that was used in small pieces would stay split.
    if parts > 1 {
        states.merge_equal_neighbors(range.clone());
    }
    is_fine
}

impl EngineDevice {
    /// Adds the conflicts of an access to a resource to the hazards of the device. Whoever executes the command takes them:
    /// `IsolatedExecution::take_findings` while it is recorded, `Engine::take_hazards` when a queue executes it.
    pub(crate) fn report_conflicts(
        &mut self,
        tag: Tag,
        resource: ResourceId,
        conflicts: Vec<(Range<u64>, Vec<Conflict>)>,
    ) {
        let Some(at) = Some(tag).filter(|_| !conflicts.is_empty()).and_then(|it| self.locations.get(it)) else {
            return;
        };
        let first = self.hazards.len();
        for (range, conflicts) in conflicts {
            for conflict in conflicts {
                let Some(prior) = self.locations.get(conflict.prior) else { continue };
                for region in self.addresses.regions(resource, &range) {
                    let found = Hazard { kind: conflict.kind, at: at.clone(), prior: prior.clone(), resource, region };
                    push_or_merge_hazard(&mut self.hazards, first, found);
                }
            }
        }
    }
}

/// Adds a hazard, or merges it with the same hazard on other components of the same texels.
fn push_or_merge_hazard(all: &mut Vec<Hazard>, first: usize, new: Hazard) {
    for own in &mut all[first..] {
        let is_same = (own.kind, &own.prior) == (new.kind, &new.prior);
        if let (true, Region::Image(left), Region::Image(right)) = (is_same, &mut own.region, &new.region) {
            let is_there = (left.aspects, &left.mips, &left.layers, left.area)
                == (right.aspects, &right.mips, &right.layers, right.area);
            if is_there {
                left.components.0 |= right.components.0;
                return;
            }
        }
    }
    all.push(new);
}

/// A use of a region of a resource, with the usage of the tables.
pub(crate) struct ResourceUse<'a> {
    pub(crate) resource: ResourceId,
    pub(crate) region: Cow<'a, Region>,
    pub(crate) usage: UsageIndex,
    pub(crate) order: AccessOrder,
}

impl ResourceUse<'static> {
    /// None for an access that its stage cannot make. Other validation reports that.
    fn from_access(access: Access) -> Option<ResourceUse<'static>> {
        let usage = SYNC_TABLES.usage(access.stage, access.access)?;
        let (resource, region) = (access.resource, Cow::Owned(access.region));
        Some(ResourceUse { resource, region, usage, order: access.order.into() })
    }
}
