//! The spots of all commands of a command buffer.
//!
//! Most commands are much like the one before: what they have in common is not looked up again.

use std::ops::Range;

use lavascope_sync_ir::{Access, AccessList, Barrier, Command, Region, ResourceId};

use crate::address::{Addresses, Identity, Looked};
use crate::mark::{Made, Marks};
use crate::order;
use crate::spot::Spot;
use crate::usage::TABLES;

/// For each command its spots, and those of all commands one behind the other.
#[derive(Default)]
pub(crate) struct Plans {
    plans: Vec<Plan>,
    /// Of all actions; what a command does as the one before is not there again.
    accesses: AccessList,
    spots: Vec<Spot>,
    /// For each 64 spots of a command.
    marks: Vec<Marks>,
    /// Commands that are not actions.
    others: Vec<Command>,
    /// The resources of the last action, with the numbers that they came with.
    last: Vec<ResourceId>,
}

/// What a command uses: its spots.
#[derive(Clone, Copy, Debug)]
struct Plan {
    first: u32,
    end: u32,
    marks: u32,
    /// Its accesses, if it is not straight; of a command that is not an action, its place among those.
    accesses: (u32, u32),
    kind: PlanKind,
    /// Whether each access has one spot, in the order of accesses, and there are at most 64.
    is_straight: bool,
    /// Whether all accesses are to buffers.
    is_on_buffers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanKind {
    /// What is written overlaps with another spot only if that is the same range, and next to it.
    Apart,
    Overlapping,
    /// Its addresses are not known before it is executed.
    Unknown,
    /// Not an action.
    Other,
}

/// What is recorded.
pub(crate) enum Recorded<'a> {
    Action(Accesses<'a>),
    Other(&'a Command),
}

/// The command that was recorded last.
pub(crate) enum Last<'a> {
    Barrier(&'a Barrier),
    /// An action that uses nothing but buffers, and knows where they are: its spots, and which of them it writes, as
    /// bits.
    OnBuffers(&'a [Spot], u64),
    Else,
}

/// The accesses of an action.
#[derive(Clone, Copy)]
pub(crate) struct Accesses<'a> {
    /// Of all commands.
    all: &'a AccessList,
    /// Where they are, unless there are spots that say so.
    own: (u32, u32),
    spots: &'a [Spot],
}

impl<'a> Accesses<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = Access> + 'a {
        let places = (self.own.0..self.own.1).chain(self.spots.iter().map(|it| it.access));
        places.map(move |it| self.all.get(it as usize))
    }
}

/// Room that is not worth giving back.
const ROOM_MIN: usize = 1024;
/// Spots whose marks are in one place.
const WORD: usize = 64;

impl Plans {
    /// Room for much more than there was would stay for as long as the command buffer.
    pub(crate) fn clear(&mut self) {
        if self.spots.capacity() > 4 * self.spots.len() + ROOM_MIN {
            *self = Plans::default();
        }
        self.plans.clear();
        self.accesses.clear();
        self.spots.clear();
        self.marks.clear();
        self.others.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.plans.len()
    }

    #[inline]
    pub(crate) fn command(&self, command: usize) -> Recorded<'_> {
        let plan = self.plans[command];
        match plan.kind {
            PlanKind::Other => Recorded::Other(&self.others[plan.accesses.0 as usize]),
            _ => Recorded::Action(plan.accesses_in(&self.spots, &self.accesses)),
        }
    }

    pub(crate) fn last(&self) -> Last<'_> {
        let Some(plan) = self.plans.last() else { return Last::Else };
        let spots = &self.spots[plan.first as usize..plan.end as usize];
        match plan.kind {
            PlanKind::Other => match &self.others[plan.accesses.0 as usize] {
                Command::Barrier(it) => Last::Barrier(it),
                _ => Last::Else,
            },
            PlanKind::Apart if plan.is_straight && plan.is_on_buffers => {
                Last::OnBuffers(spots, self.marks.get(plan.marks as usize).map_or(0, |it| it.writes))
            }
            _ => Last::Else,
        }
    }

    /// Takes the last command out; gives it if it is not an action.
    pub(crate) fn pop(&mut self) -> Option<Command> {
        let is_action = self.plans.pop()?.kind != PlanKind::Other;
        if is_action { None } else { self.others.pop() }
    }

    /// An action has other accesses. What was known of it is wrong until all is looked up again.
    pub(crate) fn replace(&mut self, command: usize, accesses: &[Access]) {
        let first = self.accesses.len() as u32;
        if let Some(plan) = self.plans.get_mut(command).filter(|it| it.kind != PlanKind::Other) {
            (plan.accesses, plan.is_straight) = ((first, first + accesses.len() as u32), false);
            self.accesses.extend(accesses);
        }
    }

    /// Looks everything up again.
    pub(crate) fn renew(&mut self, addresses: &Addresses) {
        let (plans, spots) = (std::mem::take(&mut self.plans), std::mem::take(&mut self.spots));
        let (accesses, mut own) = (std::mem::take(&mut self.accesses), Vec::new());
        self.marks.clear();
        for it in plans {
            if it.kind == PlanKind::Other {
                self.plans.push(it);
            } else {
                own.clear();
                own.extend(it.accesses_in(&spots, &accesses).iter());
                self.add_action(&own, |it| it, addresses);
            }
        }
        // They came with other numbers.
        self.last.clear();
    }

    /// Commands that have something to be done, as bits.
    pub(crate) fn busy(&self) -> Vec<u64> {
        let (mut is_rendering, mut busy) = (false, vec![0; self.plans.len().div_ceil(WORD)]);
        for (index, plan) in self.plans.iter().enumerate() {
            busy[index / WORD] |= u64::from(self.is_busy(index, is_rendering)) << (index % WORD);
            if plan.kind == PlanKind::Other {
                match &self.others[plan.accesses.0 as usize] {
                    Command::BeginRendering(_) | Command::BeginRenderPass { .. } => is_rendering = true,
                    Command::EndRendering | Command::EndRenderPass => is_rendering = false,
                    _ => {}
                }
            }
        }
        busy
    }

    #[inline]
    pub(crate) fn spots(&self, command: usize) -> (PlanKind, &[Spot]) {
        let plan = self.plans[command];
        (plan.kind, &self.spots[plan.first as usize..plan.end as usize])
    }

    /// The number of the marks of a spot of a command, and its bit.
    #[inline]
    pub(crate) fn mark_of(&self, command: usize, spot: usize) -> (u32, u64) {
        (self.plans[command].marks + (spot / WORD) as u32, 1 << (spot % WORD))
    }

    #[inline]
    pub(crate) fn marks_at(&self, number: u32) -> &Marks {
        &self.marks[number as usize]
    }

    pub(crate) fn mark(&mut self, number: u32, made: Made) {
        let marks = &mut self.marks[number as usize];
        match made {
            Made::Own { inner, again } => (marks.inner, marks.again) = (inner, again),
            Made::Later(bits) => marks.later |= bits,
        }
    }

    /// The marks of a command, each with its number, with the spots from there on, and with the bits that are spots.
    #[inline]
    pub(crate) fn marked(&self, command: usize) -> impl Iterator<Item = Marked<'_>> {
        let plan = self.plans[command];
        let spots = &self.spots[plan.first as usize..plan.end as usize];
        (0..spots.len().div_ceil(WORD)).map(move |word| {
            let (number, spots) = (plan.marks + word as u32, &spots[word * WORD..]);
            Marked { number, marks: &self.marks[number as usize], spots, valid: valid(spots.len()) }
        })
    }

    /// The same, one by one; none behind the last. Almost all commands have one.
    #[inline]
    pub(crate) fn marked_at(&self, command: usize, word: usize) -> Option<Marked<'_>> {
        let plan = &self.plans[command];
        let first = plan.first as usize + word * WORD;
        let spots = self.spots.get(first..plan.end as usize).filter(|it| !it.is_empty())?;
        let number = plan.marks + word as u32;
        Some(Marked { number, marks: &self.marks[number as usize], spots, valid: valid(spots.len()) })
    }

    /// Whether a command has something to be checked or kept, if nothing before it is wrong.
    pub(crate) fn is_busy(&self, command: usize, is_rendering: bool) -> bool {
        self.plans[command].kind != PlanKind::Apart
            || self.marked(command).any(|it| {
                let (marks, repeated) = (it.marks, it.marks.repeated(is_rendering));
                let (check, keep) = (repeated | marks.inner | marks.again, repeated & marks.behind | marks.later);
                it.valid & !(check & keep) != 0
            })
    }

    /// Spots of a command whose ranges the command buffer wrote to before.
    pub(crate) fn inner(&self, command: usize) -> impl Iterator<Item = &Spot> {
        self.marked(command).flat_map(|it| bits(it.marks.inner).map(move |at| &it.spots[at]))
    }

    /// The next command is not an action.
    pub(crate) fn add_other(&mut self, command: Command) {
        let (at, kind) = (self.others.len() as u32, PlanKind::Other);
        let accesses = (at, at);
        self.plans.push(Plan { first: 0, end: 0, marks: 0, accesses, kind, is_straight: false, is_on_buffers: false });
        self.others.push(command);
    }

    /// Looks up what the next command uses, an action whose resources have other numbers.
    pub(crate) fn add_action(
        &mut self,
        accesses: &[Access],
        number: impl Fn(ResourceId) -> ResourceId,
        addresses: &Addresses,
    ) {
        let (first, marks, own) = (self.spots.len() as u32, self.marks.len() as u32, self.accesses.len() as u32);
        let is_like = |it: &Plan| it.is_straight && it.len() == accesses.len() && self.last.len() == accesses.len();
        let last = self.plans.last().copied().filter(is_like);
        let is_alike = last.is_some_and(|it| self.add_alike(it, accesses, &number, addresses));
        let (kind, is_straight) = match is_alike {
            true => (PlanKind::Apart, true),
            false => {
                self.spots.truncate(first as usize);
                self.accesses.truncate(own as usize);
                self.last.clear();
                self.last.extend(accesses.iter().map(|it| it.resource));
                self.add_all(first as usize, accesses, &number, addresses)
            }
        };
        let is_on_buffers = accesses.iter().all(|it| matches!(it.region, Region::Buffer(_)));
        let (end, accesses) = (self.spots.len() as u32, (own, self.accesses.len() as u32));
        self.plans.push(Plan { first, end, marks, accesses, kind, is_straight, is_on_buffers });
    }

    fn add_all(
        &mut self,
        first: usize,
        accesses: &[Access],
        number: &impl Fn(ResourceId) -> ResourceId,
        addresses: &Addresses,
    ) -> (PlanKind, bool) {
        let (mut is_straight, mut is_known) = ((1..=WORD).contains(&accesses.len()), true);
        for access in accesses {
            let (resource, at) = (number(access.resource), self.accesses.len() as u32);
            self.accesses.push_with(access, resource);
            // An access that its stage cannot make is another's to report.
            let usage = TABLES.usage(access.stage, access.access);
            let looked = usage.map_or(Looked::Nothing, |_| addresses.look_up(resource, &access.region));
            let spot = |range, through| spot(access, resource, at, range, through);
            match looked {
                Looked::One(range, through) => self.spots.extend(spot(range, through)),
                Looked::Many(ranges, through) => {
                    is_straight = false;
                    self.spots.extend(ranges.into_iter().filter_map(|it| spot(it, through)));
                }
                Looked::Nothing => is_straight = false,
                Looked::Unsettled => is_known = false,
            }
        }
        if !is_known {
            self.spots.truncate(first);
            return (PlanKind::Unknown, false);
        }
        let (kind, has_moved) = self.group(first);
        let before = self.plans.last().copied().filter(|it| it.kind == PlanKind::Apart && kind == it.kind);
        if let Some(before) = before {
            self.mark_repeats(before, first);
        }
        (kind, is_straight && !has_moved && kind == PlanKind::Apart)
    }

    /// A command that is much like the one before, which is straight: all that is looked up is what is different. False
    /// if it is not straight itself.
    fn add_alike(
        &mut self,
        last: Plan,
        accesses: &[Access],
        number: &impl Fn(ResourceId) -> ResourceId,
        addresses: &Addresses,
    ) -> bool {
        let (old, new) = (last.first as usize, self.spots.len());
        // What is different, and which of it does something else.
        let (mut different, mut other) = (0_u64, 0_u64);
        for (index, access) in accesses.iter().enumerate() {
            let mut spot = self.spots[old + index].clone();
            let (is_same_usage, is_same_region) = self.accesses.compare(spot.access as usize, access);
            let is_same_resource = access.resource == self.last[index];
            if !(is_same_usage && is_same_region && is_same_resource) {
                different |= 1 << index;
                other |= u64::from(!is_same_usage) << index;
                if !is_same_resource {
                    (self.last[index], spot.resource) = (access.resource, number(access.resource));
                }
                let is_one = match is_same_usage {
                    true => self.make_other(&mut spot, access, addresses),
                    false => self.make_other_use(&mut spot, access, addresses),
                };
                if !is_one {
                    return false;
                }
            }
            self.spots.push(spot);
        }
        let (spots, marks) = (&self.spots[new..], &self.marks[last.marks as usize]);
        let meets_write = |it: usize| bits(marks.writes).any(|write| spots[it].overlaps(&spots[write]));
        // What is written is the same, and nothing new is the same range.
        if different & marks.beside_write == 0 && other == 0 && !bits(different).any(meets_write) {
            let before = !different & valid(spots.len()) & (!marks.beside_write | marks.ordered);
            let marks = Marks { before, ..marks.of_command() };
            self.marks[last.marks as usize].behind = before;
            self.marks.push(marks);
            return true;
        }
        // All that is written is something else, and alone.
        let meets_any = |write: usize| (0..spots.len()).any(|it| it != write && spots[it].overlaps(&spots[write]));
        let is_alone = marks.writes == marks.beside_write && marks.writes & !different == 0;
        if other == 0 && is_alone && !bits(marks.writes).any(meets_any) {
            let before = !different & valid(spots.len());
            let marks = Marks { before, ..marks.of_command() };
            self.marks[last.marks as usize].behind = before;
            self.marks.push(marks);
            return true;
        }
        let (all, (kind, has_moved)) = (valid(spots.len()), self.group(new));
        if kind != PlanKind::Apart || has_moved {
            self.marks.truncate(last.marks as usize + 1);
            return false;
        }
        if different != all {
            self.mark_repeats(last, new);
        }
        true
    }

    /// A spot, which is that of the command before but for its resource, becomes the one of an access that does the same
    /// to something else. False if it is not one spot.
    #[inline]
    fn make_other(&mut self, spot: &mut Spot, access: &Access, addresses: &Addresses) -> bool {
        let Looked::One(range, through) = addresses.look_up(spot.resource, &access.region) else { return false };
        let at = self.accesses.len() as u32;
        self.accesses.push_like(spot.access as usize, access, spot.resource);
        (spot.range, spot.through, spot.access) = (range, through, at);
        true
    }

    /// The same for one that does something else.
    fn make_other_use(&mut self, spot: &mut Spot, access: &Access, addresses: &Addresses) -> bool {
        let Some(usage) = TABLES.usage(access.stage, access.access) else { return false };
        let Looked::One(range, through) = addresses.look_up(spot.resource, &access.region) else { return false };
        let at = self.accesses.len() as u32;
        self.accesses.push_with(access, spot.resource);
        let (resource, order) = (spot.resource, access.order.into());
        *spot = Spot { range, resource, through, access: at, usage, order };
        true
    }

    /// Puts what is written next to other spots of the same range, and marks it, in the spots of a new command. Gives
    /// whether anything was moved.
    fn group(&mut self, first: usize) -> (PlanKind, bool) {
        let spots = &mut self.spots[first..];
        if spots.len() <= WORD
            && let Some(marks) = marks_alone(spots)
        {
            self.marks.extend(Some(marks).filter(|_| !spots.is_empty()));
            return (PlanKind::Apart, false);
        }
        let marks = self.marks.len();
        self.marks.resize(marks + spots.len().div_ceil(WORD), Marks::default());
        let (kind, has_moved) = put_together(spots);
        if kind != PlanKind::Apart {
            return (kind, has_moved);
        }
        let mut at = 0;
        while at < spots.len() {
            let same = |it: &&Spot| it.is_same_range(&spots[at]);
            let len = 1 + spots[at + 1..].iter().take_while(same).count();
            let group = &spots[at..at + len];
            let has_write = group.iter().any(is_write);
            let is_ordered = has_write && is_ordered(group);
            for (index, spot) in (at..).zip(group) {
                let (own, bit) = (&mut self.marks[marks + index / WORD], 1 << (index % WORD));
                own.writes |= if is_write(spot) { bit } else { 0 };
                own.beside_write |= if has_write { bit } else { 0 };
                own.ordered |= if is_ordered { bit } else { 0 };
            }
            at += len;
        }
        (PlanKind::Apart, has_moved)
    }

    /// Marks what a new command and the one before do in the same way. Those that are alike are alike in order too.
    fn mark_repeats(&mut self, last: Plan, new: usize) {
        let (before, behind) = (&self.spots[last.first as usize..last.end as usize], &self.spots[new..]);
        let numbers = (last.marks as usize, self.marks.len() - behind.len().div_ceil(WORD));
        let mut at = 0;
        while at < behind.len().min(before.len()) {
            let is_beside =
                |number: usize, at: usize| self.marks[number + at / WORD].beside_write >> (at % WORD) & 1 != 0;
            let is_ordered = self.marks[numbers.1 + at / WORD].ordered >> (at % WORD) & 1 != 0;
            let (is_old, is_new) = (is_beside(numbers.0, at), is_beside(numbers.1, at));
            let same = |it: &&Spot| is_new && it.is_same_range(&behind[at]);
            let len = 1 + behind[at + 1..].iter().take_while(same).count();
            let others = before.get(at..at + len).unwrap_or(&[]);
            // Of what is written all that the other does to the range, not the end or the beginning of it.
            let is_other = |it: Option<&Spot>| it.is_none_or(|it| !it.is_same_range(&behind[at]));
            let is_whole = !is_new || is_other(before.get(at + len)) && (at == 0 || is_other(before.get(at - 1)));
            let is_same = others.len() == len && others.iter().zip(&behind[at..]).all(|(old, new)| old.is_same(new));
            if is_old == is_new && is_whole && is_same && (!is_new || is_ordered) {
                for index in at..at + len {
                    self.marks[numbers.0 + index / WORD].behind |= 1 << (index % WORD);
                    self.marks[numbers.1 + index / WORD].before |= 1 << (index % WORD);
                }
            }
            at += len;
        }
    }
}

impl Plan {
    /// How many spots it has.
    fn len(&self) -> usize {
        (self.end - self.first) as usize
    }

    /// Its accesses, out of those of all commands.
    fn accesses_in<'a>(&self, spots: &'a [Spot], all: &'a AccessList) -> Accesses<'a> {
        match self.is_straight {
            true => Accesses { all, own: (0, 0), spots: &spots[self.first as usize..self.end as usize] },
            false => Accesses { all, own: self.accesses, spots: &[] },
        }
    }
}

/// Up to 64 spots of a command, with their marks.
#[derive(Clone, Copy)]
pub(crate) struct Marked<'a> {
    pub(crate) number: u32,
    pub(crate) marks: &'a Marks,
    /// Those, and the ones behind them.
    pub(crate) spots: &'a [Spot],
    /// Bits that are spots.
    pub(crate) valid: u64,
}

impl<'a> Marked<'a> {
    /// Spots that must be looked at together: all of a range that is written. Gives their bits too; those behind the 64
    /// are looked at again, which changes nothing.
    #[inline]
    pub(crate) fn group(&self, at: usize) -> (u64, &'a [Spot]) {
        let len = match self.marks.beside_write >> at & 1 {
            0 => 1,
            _ => 1 + self.spots[at + 1..].iter().take_while(|it| it.is_same_range(&self.spots[at])).count(),
        };
        (valid(len) << at, &self.spots[at..at + len])
    }
}

/// The first bits, as many as there are spots.
#[inline]
pub(crate) fn valid(spots: usize) -> u64 {
    if spots >= WORD { u64::MAX } else { (1 << spots) - 1 }
}

fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| word &= word - 1).map(|()| bit)
    })
}

#[inline]
fn spot(access: &Access, resource: ResourceId, at: u32, range: Range<u64>, through: Identity) -> Option<Spot> {
    let usage = TABLES.usage(access.stage, access.access)?;
    Some(Spot { range, resource, through, access: at, usage, order: access.order.into() })
}

#[inline]
fn is_write(spot: &Spot) -> bool {
    TABLES.write_column(spot.usage).is_some()
}

/// Whether rendering orders whatever is done to a range after what was done to it in the same way.
fn is_ordered(group: &[Spot]) -> bool {
    let key = |it: &Spot| (it.usage, it.order);
    group.iter().all(|it| group.iter().all(|other| order::is_ordered(key(it), key(other))))
}

/// The marks of some spots, if nothing that is written overlaps with anything else.
#[inline]
fn marks_alone(spots: &[Spot]) -> Option<Marks> {
    let mut marks = Marks::default();
    for (at, spot) in spots.iter().enumerate().filter(|it| is_write(it.1)) {
        if spots.iter().enumerate().any(|(other, it)| other != at && it.overlaps(spot)) {
            return None;
        }
        marks.writes |= 1 << at;
        marks.ordered |= u64::from(is_ordered(std::slice::from_ref(spot))) << at;
    }
    marks.beside_write = marks.writes;
    Some(marks)
}

/// Puts what is written next to other spots of the same range, if it overlaps only with such. Gives whether anything was
/// moved.
fn put_together(spots: &mut [Spot]) -> (PlanKind, bool) {
    if spots.len() > WORD {
        spots.sort_by_key(|it| (it.range.start, it.range.end));
        let is_apart = |it: &[Spot]| it[0].range.end <= it[1].range.start || it[0].is_same_range(&it[1]);
        let is_fine = spots.windows(2).all(is_apart);
        return (if is_fine { PlanKind::Apart } else { PlanKind::Overlapping }, true);
    }
    let mut has_moved = false;
    for at in 0..spots.len() {
        let own = spots[at].clone();
        if !is_write(&own) {
            continue;
        }
        if spots.iter().any(|it| it.overlaps(&own) && !it.is_same_range(&own)) {
            return (PlanKind::Overlapping, has_moved);
        }
        // What is moved out of the way is looked at again, which changes nothing.
        let first = spots.iter().position(|it| it.is_same_range(&own)).unwrap_or(at);
        let mut end = first;
        for other in first..spots.len() {
            if spots[other].is_same_range(&own) {
                has_moved |= other != end;
                spots[end..=other].rotate_right(1);
                end += 1;
            }
        }
    }
    (PlanKind::Apart, has_moved)
}

#[cfg(test)]
mod tests;
