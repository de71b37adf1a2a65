//! The accesses of all commands of a command buffer.
//!
//! Consecutive commands often access the same resources. What a command shares with the previous one is not looked up
//! again.

use std::ops::Range;

use lavascope_sync_ir::{Access, AccessList, Barrier, Certainty, Command, MarkerStage, Region, ResourceId};

use crate::access::access_order;
use crate::access::addressed_access::AddressedAccess;
use crate::access::usages::{SYNC_TABLES, UsageIndex};
use crate::command_buffer::marks::{AccessMarks, MarkChange};
use crate::memory::addresses::{AddressLookup, AddressMap, ResourceIdentity};

/// The accesses of each command, stored in lists that all commands of the command buffer share.
#[derive(Default)]
pub(crate) struct PreparedCommands {
    entries: Vec<PreparedCommand>,
    /// The accesses of all actions. An access that repeats one of the previous command is not stored again.
    accesses: AccessList,
    addressed: Vec<AddressedAccess>,
    /// One entry for each 64 accesses of a command.
    marks: Vec<AccessMarks>,
    /// Commands that are not actions.
    non_actions: Vec<Command>,
    /// The possible reads of all actions, by command.
    possible_reads: Vec<PossibleRead>,
    /// The actions that are buffer markers, by command.
    markers: Vec<MarkerCommand>,
    /// The resources of the last action, with the ids of the caller.
    last_resources: Vec<ResourceId>,
    /// Whether the caches are off: each command is looked up on its own, and no access is marked.
    pub(crate) is_cache_disabled: bool,
}

/// A read that the command would make if it were not empty (a draw without vertices). It is never reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PossibleRead {
    command: u32,
    pub(crate) usage: UsageIndex,
}

/// An action that is a buffer marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MarkerCommand {
    command: u32,
    stage: MarkerStage,
}

/// The accesses of a command, as ranges in the lists of [`PreparedCommands`].
#[derive(Clone, Copy, Debug)]
struct PreparedCommand {
    first: u32,
    end: u32,
    marks: u32,
    /// For an action that is not one-to-one: its range in the list of accesses. For any other command: its index in
    /// `non_actions`.
    accesses: (u32, u32),
    kind: PreparedKind,
    /// Whether each `Access` has exactly one `AddressedAccess`, both lists have the same order, and there are at most
    /// 64.
    is_one_to_one: bool,
    /// Whether all accesses are to buffers.
    is_buffers_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreparedKind {
    /// A written range overlaps only with accesses to exactly the same range, and these stand next to each other.
    Disjoint,
    Overlapping,
    /// Its addresses are known only when it is executed.
    UnknownAddresses,
    /// Not an action.
    NotAction,
}

/// A recorded command, as the engine executes it.
pub(crate) enum RecordedCommand<'a> {
    Action(ActionAccesses<'a>),
    Other(&'a Command),
}

/// The command that was recorded last, as far as `UsedBlocks` has to know it.
pub(crate) enum LastCommand<'a> {
    Barrier(&'a Barrier),
    /// An action that uses only buffers whose addresses are known. The bits say which of its accesses are writes.
    BufferAction(&'a [AddressedAccess], u64),
    Other,
}

/// The accesses of an action.
#[derive(Clone, Copy)]
pub(crate) struct ActionAccesses<'a> {
    /// The accesses of all commands.
    all: &'a AccessList,
    /// The range of this action in `all`, if `addressed` does not name its accesses.
    own: (u32, u32),
    addressed: &'a [AddressedAccess],
}

impl<'a> ActionAccesses<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = Access> + 'a {
        let places = (self.own.0..self.own.1).chain(self.addressed.iter().map(|it| it.access_index));
        places.map(move |it| self.all.get(it as usize))
    }
}

/// A smaller capacity is not worth freeing.
const ROOM_MIN: usize = 1024;
/// Number of accesses whose marks share one entry.
const MARKS_PER_WORD: usize = 64;

impl PreparedCommands {
    /// Frees lists whose capacity is much larger than needed. Otherwise they would stay as long as the command buffer.
    pub(crate) fn clear(&mut self) {
        if self.addressed.capacity() > 4 * self.addressed.len() + ROOM_MIN {
            *self = PreparedCommands { is_cache_disabled: self.is_cache_disabled, ..PreparedCommands::default() };
        }
        self.entries.clear();
        self.accesses.clear();
        self.addressed.clear();
        self.marks.clear();
        self.non_actions.clear();
        self.possible_reads.clear();
        self.markers.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(crate) fn command(&self, command: usize) -> RecordedCommand<'_> {
        let entry = self.entries[command];
        match entry.kind {
            PreparedKind::NotAction => RecordedCommand::Other(&self.non_actions[entry.accesses.0 as usize]),
            _ => RecordedCommand::Action(entry.accesses_in(&self.addressed, &self.accesses)),
        }
    }

    pub(crate) fn last(&self) -> LastCommand<'_> {
        let Some(entry) = self.entries.last() else { return LastCommand::Other };
        let addressed = &self.addressed[entry.first as usize..entry.end as usize];
        match entry.kind {
            PreparedKind::NotAction => match &self.non_actions[entry.accesses.0 as usize] {
                Command::Barrier(barrier) => LastCommand::Barrier(barrier),
                _ => LastCommand::Other,
            },
            PreparedKind::Disjoint if entry.is_one_to_one && entry.is_buffers_only => {
                LastCommand::BufferAction(addressed, self.marks.get(entry.marks as usize).map_or(0, |it| it.writes))
            }
            _ => LastCommand::Other,
        }
    }

    /// Removes the last command, and returns it if it is not an action.
    pub(crate) fn pop(&mut self) -> Option<Command> {
        let is_action = self.entries.pop()?.kind != PreparedKind::NotAction;
        self.possible_reads.retain(|it| (it.command as usize) < self.entries.len());
        self.markers.retain(|it| (it.command as usize) < self.entries.len());
        if is_action { None } else { self.non_actions.pop() }
    }

    /// Replaces the accesses of an action. Its addresses and marks are wrong until `look_up_again` is called.
    pub(crate) fn replace(&mut self, command: usize, accesses: &[Access]) {
        let first = self.accesses.len() as u32;
        let accesses = self.add_possible_reads(command, accesses);
        self.possible_reads.sort_by_key(|it| it.command);
        self.add_marker(command, accesses);
        self.markers.sort_by_key(|it| it.command);
        if let Some(entry) = self.entries.get_mut(command).filter(|it| it.kind != PreparedKind::NotAction) {
            (entry.accesses, entry.is_one_to_one) = ((first, first + accesses.len() as u32), false);
            self.accesses.extend(accesses);
        }
    }

    /// Looks up the addresses of all commands again.
    pub(crate) fn look_up_again(&mut self, addresses: &AddressMap) {
        let (entries, addressed) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.addressed));
        let (accesses, mut own) = (std::mem::take(&mut self.accesses), Vec::new());
        self.marks.clear();
        self.markers.clear();
        for entry in entries {
            if entry.kind == PreparedKind::NotAction {
                self.entries.push(entry);
            } else {
                own.clear();
                own.extend(entry.accesses_in(&addressed, &accesses).iter());
                self.add_action(&own, |it| it, addresses);
            }
        }
        // These are ids of the caller, but the accesses above have ids of the engine.
        self.last_resources.clear();
    }

    /// One bit for each command; see `is_busy`.
    pub(crate) fn busy_bits(&self) -> Vec<u64> {
        let (mut is_rendering, mut busy) = (false, vec![0; self.entries.len().div_ceil(MARKS_PER_WORD)]);
        for (index, entry) in self.entries.iter().enumerate() {
            busy[index / MARKS_PER_WORD] |= u64::from(self.is_busy(index, is_rendering)) << (index % MARKS_PER_WORD);
            if entry.kind == PreparedKind::NotAction {
                match &self.non_actions[entry.accesses.0 as usize] {
                    Command::BeginRendering(_) | Command::BeginRenderPass { .. } => is_rendering = true,
                    Command::EndRendering | Command::EndRenderPass => is_rendering = false,
                    _ => {}
                }
            }
        }
        busy
    }

    #[inline]
    pub(crate) fn addressed_accesses(&self, command: usize) -> (PreparedKind, &[AddressedAccess]) {
        let entry = self.entries[command];
        (entry.kind, &self.addressed[entry.first as usize..entry.end as usize])
    }

    /// The index of the marks of an access, and the bit of the access in these marks.
    #[inline]
    pub(crate) fn mark_position(&self, command: usize, addressed_access: usize) -> (u32, u64) {
        (
            self.entries[command].marks + (addressed_access / MARKS_PER_WORD) as u32,
            1 << (addressed_access % MARKS_PER_WORD),
        )
    }

    #[inline]
    pub(crate) fn marks_at(&self, number: u32) -> &AccessMarks {
        &self.marks[number as usize]
    }

    pub(crate) fn apply_mark(&mut self, word: u32, change: MarkChange) {
        let marks = &mut self.marks[word as usize];
        match change {
            MarkChange::Before { written, read } => (marks.written_before, marks.read_before) = (written, read),
            MarkChange::Superseded(bits) => marks.superseded |= bits,
        }
    }

    /// The marks of a command, entry by entry, each with the accesses that it marks.
    #[inline]
    pub(crate) fn marked_words(&self, command: usize) -> impl Iterator<Item = MarkedAccesses<'_>> {
        let entry = self.entries[command];
        let addressed = &self.addressed[entry.first as usize..entry.end as usize];
        (0..addressed.len().div_ceil(MARKS_PER_WORD)).map(move |word| {
            let (number, addressed) = (entry.marks + word as u32, &addressed[word * MARKS_PER_WORD..]);
            MarkedAccesses {
                number,
                marks: &self.marks[number as usize],
                addressed,
                valid_bits: low_bits(addressed.len()),
            }
        })
    }

    /// One of the entries of `marked_words`, or none after the last. Almost all commands have a single entry.
    #[inline]
    pub(crate) fn marked_word(&self, command: usize, word: usize) -> Option<MarkedAccesses<'_>> {
        let entry = &self.entries[command];
        let first = entry.first as usize + word * MARKS_PER_WORD;
        let addressed = self.addressed.get(first..entry.end as usize).filter(|it| !it.is_empty())?;
        let number = entry.marks + word as u32;
        Some(MarkedAccesses {
            number,
            marks: &self.marks[number as usize],
            addressed,
            valid_bits: low_bits(addressed.len()),
        })
    }

    /// Whether an execution has to check or record an access of a command, if no command before it had a conflict.
    pub(crate) fn is_busy(&self, command: usize, is_rendering: bool) -> bool {
        self.entries[command].kind != PreparedKind::Disjoint
            || !self.possible_reads(command).is_empty()
            || self.marker(command).is_some()
            || self.marked_words(command).any(|marked_word| {
                let (marks, repeated) = (marked_word.marks, marked_word.marks.repeated(is_rendering));
                let (check, keep) = (
                    repeated | marks.written_before | marks.read_before,
                    repeated & marks.repeated_by_next | marks.superseded,
                );
                marked_word.valid_bits & !(check & keep) != 0
            })
    }

    /// The accesses of a command to ranges that the command buffer wrote before.
    pub(crate) fn accesses_after_write(&self, command: usize) -> impl Iterator<Item = &AddressedAccess> {
        self.marked_words(command).flat_map(|it| bits(it.marks.written_before).map(move |at| &it.addressed[at]))
    }

    /// Adds a command that is not an action.
    pub(crate) fn add_non_action(&mut self, command: Command) {
        let (at, kind) = (self.non_actions.len() as u32, PreparedKind::NotAction);
        let accesses = (at, at);
        self.entries.push(PreparedCommand {
            first: 0,
            end: 0,
            marks: 0,
            accesses,
            kind,
            is_one_to_one: false,
            is_buffers_only: false,
        });
        self.non_actions.push(command);
    }

    /// Adds an action and looks up its addresses. `engine_id` translates its resources to ids of the engine.
    pub(crate) fn add_action(
        &mut self,
        accesses: &[Access],
        engine_id: impl Fn(ResourceId) -> ResourceId,
        addresses: &AddressMap,
    ) {
        let accesses = match accesses.last() {
            Some(last) if last.certainty == Certainty::Unreported => {
                self.add_possible_reads(self.entries.len(), accesses)
            }
            Some(last) if last.order.marker_stage().is_some() => self.add_marker(self.entries.len(), accesses),
            _ => accesses,
        };
        let (first, marks, own) = (self.addressed.len() as u32, self.marks.len() as u32, self.accesses.len() as u32);
        let is_like = |previous: &PreparedCommand| {
            !self.is_cache_disabled
                && previous.is_one_to_one
                && previous.len() == accesses.len()
                && self.last_resources.len() == accesses.len()
        };
        let last = self.entries.last().copied().filter(is_like);
        let is_alike = last.is_some_and(|it| self.add_similar(it, accesses, &engine_id, addresses));
        let (kind, is_straight) = match is_alike {
            true => (PreparedKind::Disjoint, true),
            false => {
                self.addressed.truncate(first as usize);
                self.accesses.truncate(own as usize);
                self.last_resources.clear();
                self.last_resources.extend(accesses.iter().map(|it| it.resource));
                self.look_up_all(first as usize, accesses, &engine_id, addresses)
            }
        };
        let is_on_buffers = accesses.iter().all(|it| matches!(it.region, Region::Buffer(_)));
        let (end, accesses) = (self.addressed.len() as u32, (own, self.accesses.len() as u32));
        self.entries.push(PreparedCommand {
            first,
            end,
            marks,
            accesses,
            kind,
            is_one_to_one: is_straight,
            is_buffers_only: is_on_buffers,
        });
    }

    /// Keeps the reads of a command of which nothing is reported, and gives the accesses before them.
    #[cold]
    fn add_possible_reads<'a>(&mut self, command: usize, accesses: &'a [Access]) -> &'a [Access] {
        let is_possible = |it: &Access| it.certainty == Certainty::Unreported;
        let end = accesses.iter().rposition(|it| !is_possible(it)).map_or(0, |it| it + 1);
        for read in &accesses[end..] {
            let usage = SYNC_TABLES.usage(read.stage, read.access);
            let new = usage.map(|usage| PossibleRead { command: command as u32, usage });
            self.possible_reads.extend(new.filter(|it| !self.possible_reads.contains(it)));
        }
        &accesses[..end]
    }

    /// What a command may read besides, of whatever is visible to such a read.
    #[inline]
    pub(crate) fn possible_reads(&self, command: usize) -> &[PossibleRead] {
        if self.possible_reads.is_empty() {
            return &[];
        }
        let first = self.possible_reads.partition_point(|it| (it.command as usize) < command);
        let end = self.possible_reads.partition_point(|it| it.command as usize <= command);
        &self.possible_reads[first..end]
    }

    /// Remembers that a command is a buffer marker, if its last access is that of one.
    #[cold]
    fn add_marker<'a>(&mut self, command: usize, accesses: &'a [Access]) -> &'a [Access] {
        self.markers.retain(|it| it.command as usize != command);
        if let Some(stage) = accesses.last().and_then(|it| it.order.marker_stage()) {
            self.markers.push(MarkerCommand { command: command as u32, stage });
        }
        accesses
    }

    /// The stage that a command comes after, if it is a buffer marker.
    #[inline]
    pub(crate) fn marker(&self, command: usize) -> Option<MarkerStage> {
        if self.markers.is_empty() {
            return None;
        }
        let found = self.markers.binary_search_by_key(&command, |it| it.command as usize);
        found.ok().map(|it| self.markers[it].stage)
    }

    fn look_up_all(
        &mut self,
        first: usize,
        accesses: &[Access],
        engine_id: &impl Fn(ResourceId) -> ResourceId,
        addresses: &AddressMap,
    ) -> (PreparedKind, bool) {
        let (mut is_straight, mut is_known) = ((1..=MARKS_PER_WORD).contains(&accesses.len()), true);
        for access in accesses {
            let (resource, at) = (engine_id(access.resource), self.accesses.len() as u32);
            self.accesses.push_with_resource(access, resource);
            // `validate` reports an access that its stage cannot make. Here it is not an access.
            let usage = SYNC_TABLES.usage(access.stage, access.access);
            let looked = usage.map_or(AddressLookup::Empty, |_| addresses.look_up(resource, &access.region));
            let addressed_access = |range, identity| addressed_access(access, resource, at, range, identity);
            match looked {
                AddressLookup::One(range, identity) => self.addressed.extend(addressed_access(range, identity)),
                AddressLookup::Many(ranges, identity) => {
                    is_straight = false;
                    self.addressed.extend(ranges.into_iter().filter_map(|it| addressed_access(it, identity)));
                }
                AddressLookup::Empty => is_straight = false,
                AddressLookup::NotFixed => is_known = false,
            }
        }
        if !is_known {
            self.addressed.truncate(first);
            return (PreparedKind::UnknownAddresses, false);
        }
        let (kind, has_moved) = self.group_written_ranges(first);
        let before = self.entries.last().copied().filter(|it| it.kind == PreparedKind::Disjoint && kind == it.kind);
        let before = before.filter(|_| !self.is_cache_disabled);
        if let Some(before) = before {
            self.mark_repeats(before, first);
        }
        (kind, is_straight && !has_moved && kind == PreparedKind::Disjoint)
    }

    /// Adds an action that has as many accesses as the previous one, and looks up only accesses that differ. Returns
    /// false if the result is not one-to-one; the caller then looks up everything.
    fn add_similar(
        &mut self,
        last: PreparedCommand,
        accesses: &[Access],
        engine_id: &impl Fn(ResourceId) -> ResourceId,
        addresses: &AddressMap,
    ) -> bool {
        let (old, new) = (last.first as usize, self.addressed.len());
        // Bits of the accesses that differ from the previous command, and of those among them that differ in usage.
        let (mut different, mut other) = (0_u64, 0_u64);
        for (index, access) in accesses.iter().enumerate() {
            let mut addressed_access = self.addressed[old + index].clone();
            let (is_same_usage, is_same_region) =
                self.accesses.compare_use_and_region(addressed_access.access_index as usize, access);
            let is_same_resource = access.resource == self.last_resources[index];
            if !(is_same_usage && is_same_region && is_same_resource) {
                different |= 1 << index;
                other |= u64::from(!is_same_usage) << index;
                if !is_same_resource {
                    (self.last_resources[index], addressed_access.resource) =
                        (access.resource, engine_id(access.resource));
                }
                let is_one = match is_same_usage {
                    true => self.retarget(&mut addressed_access, access, addresses),
                    false => self.retarget_with_usage(&mut addressed_access, access, addresses),
                };
                if !is_one {
                    return false;
                }
            }
            self.addressed.push(addressed_access);
        }
        let (addressed, marks) = (&self.addressed[new..], &self.marks[last.marks as usize]);
        let meets_write = |it: usize| bits(marks.writes).any(|write| addressed[it].overlaps(&addressed[write]));
        // All writes repeat the previous command, and no new access overlaps with them.
        if different & marks.written_range == 0 && other == 0 && !bits(different).any(meets_write) {
            let before = !different & low_bits(addressed.len()) & (!marks.written_range | marks.raster_ordered);
            let marks = AccessMarks { repeats_previous: before, ..marks.command_only() };
            self.marks[last.marks as usize].repeated_by_next = before;
            self.marks.push(marks);
            return true;
        }
        // All writes are new, and none overlaps with another access.
        let meets_any =
            |write: usize| (0..addressed.len()).any(|it| it != write && addressed[it].overlaps(&addressed[write]));
        let is_alone = marks.writes == marks.written_range && marks.writes & !different == 0;
        if other == 0 && is_alone && !bits(marks.writes).any(meets_any) {
            let before = !different & low_bits(addressed.len());
            let marks = AccessMarks { repeats_previous: before, ..marks.command_only() };
            self.marks[last.marks as usize].repeated_by_next = before;
            self.marks.push(marks);
            return true;
        }
        let (all, (kind, has_moved)) = (low_bits(addressed.len()), self.group_written_ranges(new));
        if kind != PreparedKind::Disjoint || has_moved {
            self.marks.truncate(last.marks as usize + 1);
            return false;
        }
        if different != all {
            self.mark_repeats(last, new);
        }
        true
    }

    /// Moves a copy of the previous command's access to the resource and region of `access`, which has the same usage.
    /// Returns false if the region is not a single range.
    #[inline]
    fn retarget(&mut self, addressed_access: &mut AddressedAccess, access: &Access, addresses: &AddressMap) -> bool {
        let AddressLookup::One(range, identity) = addresses.look_up(addressed_access.resource, &access.region) else {
            return false;
        };
        let at = self.accesses.len() as u32;
        self.accesses.push_like(addressed_access.access_index as usize, access, addressed_access.resource);
        (addressed_access.range, addressed_access.identity, addressed_access.access_index) = (range, identity, at);
        true
    }

    /// Like `retarget`, for an access with another usage.
    fn retarget_with_usage(
        &mut self,
        addressed_access: &mut AddressedAccess,
        access: &Access,
        addresses: &AddressMap,
    ) -> bool {
        let Some(usage) = SYNC_TABLES.usage(access.stage, access.access) else { return false };
        let AddressLookup::One(range, identity) = addresses.look_up(addressed_access.resource, &access.region) else {
            return false;
        };
        let at = self.accesses.len() as u32;
        self.accesses.push_with_resource(access, addressed_access.resource);
        let (resource, order) = (addressed_access.resource, access.order.into());
        *addressed_access = AddressedAccess { range, resource, identity, access_index: at, usage, order };
        true
    }

    /// Marks the accesses of a new command, and moves accesses next to writes of the same range. Returns whether it
    /// moved any.
    fn group_written_ranges(&mut self, first: usize) -> (PreparedKind, bool) {
        let addressed = &mut self.addressed[first..];
        if addressed.len() <= MARKS_PER_WORD
            && let Some(marks) = marks_if_disjoint(addressed)
        {
            self.marks.extend(Some(marks).filter(|_| !addressed.is_empty()));
            return (PreparedKind::Disjoint, false);
        }
        let marks = self.marks.len();
        self.marks.resize(marks + addressed.len().div_ceil(MARKS_PER_WORD), AccessMarks::default());
        let (kind, has_moved) = group_by_range(addressed);
        if kind != PreparedKind::Disjoint {
            return (kind, has_moved);
        }
        let mut at = 0;
        while at < addressed.len() {
            let same = |it: &&AddressedAccess| it.is_same_range(&addressed[at]);
            let len = 1 + addressed[at + 1..].iter().take_while(same).count();
            let group = &addressed[at..at + len];
            let has_write = group.iter().any(is_write);
            let is_ordered = has_write && is_ordered(group);
            for (index, addressed_access) in (at..).zip(group) {
                let (own, bit) = (&mut self.marks[marks + index / MARKS_PER_WORD], 1 << (index % MARKS_PER_WORD));
                own.writes |= if is_write(addressed_access) { bit } else { 0 };
                own.written_range |= if has_write { bit } else { 0 };
                own.raster_ordered |= if is_ordered { bit } else { 0 };
            }
            at += len;
        }
        (PreparedKind::Disjoint, has_moved)
    }

    /// Marks accesses that a new command and the previous one have in common. The order of equal accesses is the same
    /// in both.
    fn mark_repeats(&mut self, last: PreparedCommand, new: usize) {
        let (before, behind) = (&self.addressed[last.first as usize..last.end as usize], &self.addressed[new..]);
        let numbers = (last.marks as usize, self.marks.len() - behind.len().div_ceil(MARKS_PER_WORD));
        let mut at = 0;
        while at < behind.len().min(before.len()) {
            let is_beside = |number: usize, at: usize| {
                self.marks[number + at / MARKS_PER_WORD].written_range >> (at % MARKS_PER_WORD) & 1 != 0
            };
            let is_ordered =
                self.marks[numbers.1 + at / MARKS_PER_WORD].raster_ordered >> (at % MARKS_PER_WORD) & 1 != 0;
            let (is_old, is_new) = (is_beside(numbers.0, at), is_beside(numbers.1, at));
            let same = |it: &&AddressedAccess| is_new && it.is_same_range(&behind[at]);
            let len = 1 + behind[at + 1..].iter().take_while(same).count();
            let others = before.get(at..at + len).unwrap_or(&[]);
            // The access repeats a write only if both commands access the range with the same complete group of
            // accesses.
            let is_other = |it: Option<&AddressedAccess>| it.is_none_or(|it| !it.is_same_range(&behind[at]));
            let is_whole = !is_new || is_other(before.get(at + len)) && (at == 0 || is_other(before.get(at - 1)));
            let is_same =
                others.len() == len && others.iter().zip(&behind[at..]).all(|(old, new)| old.is_same_use(new));
            if is_old == is_new && is_whole && is_same && (!is_new || is_ordered) {
                for index in at..at + len {
                    self.marks[numbers.0 + index / MARKS_PER_WORD].repeated_by_next |= 1 << (index % MARKS_PER_WORD);
                    self.marks[numbers.1 + index / MARKS_PER_WORD].repeats_previous |= 1 << (index % MARKS_PER_WORD);
                }
            }
            at += len;
        }
    }
}

impl PreparedCommand {
    /// Number of accesses.
    fn len(&self) -> usize {
        (self.end - self.first) as usize
    }

    /// The accesses of this command.
    fn accesses_in<'a>(&self, addressed: &'a [AddressedAccess], all: &'a AccessList) -> ActionAccesses<'a> {
        match self.is_one_to_one {
            true => ActionAccesses { all, own: (0, 0), addressed: &addressed[self.first as usize..self.end as usize] },
            false => ActionAccesses { all, own: self.accesses, addressed: &[] },
        }
    }
}

/// Up to 64 accesses of a command, with their marks.
#[derive(Clone, Copy)]
pub(crate) struct MarkedAccesses<'a> {
    pub(crate) number: u32,
    pub(crate) marks: &'a AccessMarks,
    /// These accesses, followed by the remaining ones of the command.
    pub(crate) addressed: &'a [AddressedAccess],
    /// One bit for each access that exists.
    pub(crate) valid_bits: u64,
}

impl<'a> MarkedAccesses<'a> {
    /// The accesses that must be checked together: if a range is written, all accesses to it. A group may reach past
    /// the 64 accesses of the entry. The accesses behind them are then checked twice, which changes nothing.
    #[inline]
    pub(crate) fn group(&self, at: usize) -> (u64, &'a [AddressedAccess]) {
        let len = match self.marks.written_range >> at & 1 {
            0 => 1,
            _ => 1 + self.addressed[at + 1..].iter().take_while(|it| it.is_same_range(&self.addressed[at])).count(),
        };
        (low_bits(len) << at, &self.addressed[at..at + len])
    }
}

/// A word whose lowest `addressed` bits are set.
#[inline]
pub(crate) fn low_bits(addressed: usize) -> u64 {
    if addressed >= MARKS_PER_WORD { u64::MAX } else { (1 << addressed) - 1 }
}

fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| word &= word - 1).map(|()| bit)
    })
}

#[inline]
fn addressed_access(
    access: &Access,
    resource: ResourceId,
    at: u32,
    range: Range<u64>,
    identity: ResourceIdentity,
) -> Option<AddressedAccess> {
    let usage = SYNC_TABLES.usage(access.stage, access.access)?;
    Some(AddressedAccess { range, resource, identity, access_index: at, usage, order: access.order.into() })
}

#[inline]
fn is_write(addressed_access: &AddressedAccess) -> bool {
    SYNC_TABLES.write_column(addressed_access.usage).is_some()
}

/// Whether rasterization order orders every access of a group after all accesses of the same group in an earlier draw.
fn is_ordered(group: &[AddressedAccess]) -> bool {
    let key = |it: &AddressedAccess| (it.usage, it.order);
    group.iter().all(|it| group.iter().all(|other| access_order::is_ordered(key(it), key(other))))
}

/// The marks of some accesses, if no written range overlaps with another access.
#[inline]
fn marks_if_disjoint(addressed: &[AddressedAccess]) -> Option<AccessMarks> {
    let mut marks = AccessMarks::default();
    for (at, addressed_access) in addressed.iter().enumerate().filter(|it| is_write(it.1)) {
        if addressed.iter().enumerate().any(|(other, it)| other != at && it.overlaps(addressed_access)) {
            return None;
        }
        marks.writes |= 1 << at;
        marks.raster_ordered |= u64::from(is_ordered(std::slice::from_ref(addressed_access))) << at;
    }
    marks.written_range = marks.writes;
    Some(marks)
}

/// Moves accesses next to writes of the same range. Returns whether any was moved; the kind is `Overlapping` if a
/// written range overlaps with a different range.
fn group_by_range(addressed: &mut [AddressedAccess]) -> (PreparedKind, bool) {
    if addressed.len() > MARKS_PER_WORD {
        addressed.sort_by_key(|it| (it.range.start, it.range.end));
        let is_apart = |it: &[AddressedAccess]| it[0].range.end <= it[1].range.start || it[0].is_same_range(&it[1]);
        let is_fine = addressed.windows(2).all(is_apart);
        return (if is_fine { PreparedKind::Disjoint } else { PreparedKind::Overlapping }, true);
    }
    let mut has_moved = false;
    for at in 0..addressed.len() {
        let own = addressed[at].clone();
        if !is_write(&own) {
            continue;
        }
        if addressed.iter().any(|it| it.overlaps(&own) && !it.is_same_range(&own)) {
            return (PreparedKind::Overlapping, has_moved);
        }
        // An access that this moves behind `at` is visited again, which changes nothing.
        let first = addressed.iter().position(|it| it.is_same_range(&own)).unwrap_or(at);
        let mut end = first;
        for other in first..addressed.len() {
            if addressed[other].is_same_range(&own) {
                has_moved |= other != end;
                addressed[end..=other].rotate_right(1);
                end += 1;
            }
        }
    }
    (PreparedKind::Disjoint, has_moved)
}

#[cfg(test)]
mod tests;
