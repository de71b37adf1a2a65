//! What can be looked up once about a command buffer, however often it is executed: the usages and addresses of its
//! accesses.

use std::ops::Range;

use lavascope_program::{Access, Command, CommandBuffer, CommandBufferId, Queue, ResourceId};

use crate::address::{Addresses, Identity};
use crate::order::{self, Order};
use crate::record::{Alone, Told};
use crate::state::By;
use crate::usage::{TABLES, Usage};

/// A command buffer, made ready.
#[derive(Default)]
pub struct Prepared {
    pub(crate) source: CommandBuffer,
    /// For each command.
    plans: Vec<Plan>,
    spots: Vec<Spot>,
    /// How often addresses had changed when this was looked up.
    moves: u64,
    /// The command buffers that it executes.
    pub(crate) executed: Vec<CommandBufferId>,
    /// What was told when it was recorded.
    pub(crate) told: Told,
    /// For what kind of queue it is recorded, if it is checked meanwhile.
    pub(crate) queue: Option<Queue>,
    /// How far it was checked.
    pub(crate) alone: Option<Box<Alone>>,
}

/// Not a number of moves.
const STALE: u64 = u64::MAX;

/// Room that is not worth giving back.
const ROOM_MIN: usize = 1024;

/// One run of addresses that a command uses.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) range: Range<u64>,
    pub(crate) resource: ResourceId,
    /// What the resource is, whatever it is called.
    pub(crate) through: Identity,
    pub(crate) usage: Usage,
    pub(crate) order: Order,
    /// Of the first spot of a range, for all of them.
    pub(crate) repeats: Repeats,
}

/// Draw after draw uses the same things. What the command before or behind does in the very same way to a range, with
/// nothing between, cannot conflict if that one does not, and only the first and the last of them must be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repeats(u8);

impl Repeats {
    const BEFORE: u8 = 1;
    const BEHIND: u8 = 2;
    const RENDERS: u8 = 4;

    /// Whether the command before does the same.
    pub(crate) fn before(self, is_rendering: bool) -> bool {
        self.0 & Repeats::BEFORE != 0 && (is_rendering || self.0 & Repeats::RENDERS == 0)
    }

    /// Whether the command behind does the same.
    pub(crate) fn behind(self) -> bool {
        self.0 & Repeats::BEHIND != 0
    }
}

impl Spot {
    pub(crate) fn by(&self, queue: u8) -> By {
        By { usage: self.usage, queue, order: self.order }
    }
}

/// What a command uses: its spots, those that are the same range side by side.
#[derive(Clone, Copy, Debug)]
struct Plan {
    first: u32,
    end: u32,
    kind: PlanKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanKind {
    /// Two of its spots overlap only if they are the same range.
    Apart,
    Overlapping,
    /// Not an action, or its addresses are not known before it is executed.
    Unknown,
}

impl Prepared {
    pub(crate) fn new(source: CommandBuffer, addresses: &Addresses) -> Prepared {
        let mut prepared = Prepared::default();
        prepared.record(source, addresses);
        prepared
    }

    /// Recorded anew, in the room that there is.
    pub(crate) fn record(&mut self, source: CommandBuffer, addresses: &Addresses) {
        self.source = source;
        self.queue = None;
        self.told = Told::default();
        self.renew(addresses);
        self.shrink();
    }

    /// To be recorded anew, command by command. If it is for a queue of some kind, it is checked meanwhile.
    pub(crate) fn begin(&mut self, is_secondary: bool, queue: Option<Queue>, addresses: &Addresses) {
        self.shrink();
        self.source.is_secondary = is_secondary;
        self.source.commands.clear();
        self.queue = queue;
        self.told = Told::default();
        self.renew(addresses);
    }

    pub(crate) fn push(&mut self, command: Command, addresses: &Addresses) {
        self.refresh(addresses);
        self.prepare(&command, addresses);
        self.source.commands.push(command);
    }

    /// The last command was not recorded after all.
    pub(crate) fn pop(&mut self) {
        self.source.commands.pop();
        self.told.forget(self.source.commands.len());
        self.moves = STALE;
    }

    pub(crate) fn replace(&mut self, index: usize, command: Command) {
        if let Some(slot) = self.source.commands.get_mut(index) {
            *slot = command;
            self.moves = STALE;
        }
    }

    /// Room for much more than there is now would stay for as long as the command buffer.
    fn shrink(&mut self) {
        if self.spots.capacity() > 4 * self.spots.len() + ROOM_MIN {
            self.spots.shrink_to_fit();
            self.plans.shrink_to_fit();
            self.source.commands.shrink_to_fit();
        }
    }

    /// Looks everything up again if addresses have changed since.
    pub(crate) fn refresh(&mut self, addresses: &Addresses) {
        if self.moves != addresses.moves() {
            self.renew(addresses);
        }
    }

    /// The spots of a command; unknown where they must be looked up when it is executed.
    pub(crate) fn spots(&self, command: usize, addresses: &Addresses) -> (PlanKind, &[Spot]) {
        let plan = self.plans[command];
        let kind = if self.moves == addresses.moves() { plan.kind } else { PlanKind::Unknown };
        (kind, &self.spots[plan.first as usize..plan.end as usize])
    }

    fn renew(&mut self, addresses: &Addresses) {
        self.plans.clear();
        self.spots.clear();
        self.executed.clear();
        self.moves = addresses.moves();
        let commands = std::mem::take(&mut self.source.commands);
        self.plans.reserve(commands.len());
        self.spots.reserve(commands.len());
        commands.iter().for_each(|it| self.prepare(it, addresses));
        self.source.commands = commands;
    }

    /// Looks up what the next command uses.
    fn prepare(&mut self, command: &Command, addresses: &Addresses) {
        let first = self.spots.len();
        let kind = match command {
            Command::Action(accesses) => add_spots(&mut self.spots, accesses, addresses),
            Command::Execute(buffers) => {
                self.executed.extend(buffers);
                PlanKind::Unknown
            }
            _ => PlanKind::Unknown,
        };
        let plan = Plan { first: first as u32, end: self.spots.len() as u32, kind };
        if let Some(before) = self.plans.last().filter(|it| it.kind == PlanKind::Apart && kind == it.kind) {
            let (left, right) = self.spots.split_at_mut(first);
            mark_repeats(&mut left[before.first as usize..], right);
        }
        self.plans.push(plan);
    }
}

fn add_spots(spots: &mut Vec<Spot>, accesses: &[Access], addresses: &Addresses) -> PlanKind {
    let first = spots.len();
    for access in accesses {
        // An access that its stage cannot make is another's to report.
        let Some(usage) = TABLES.usage(access.stage, access.access) else { continue };
        if !addresses.is_settled(access.resource, &access.region) {
            spots.truncate(first);
            return PlanKind::Unknown;
        }
        let (resource, order) = (access.resource, access.order.into());
        let (through, repeats) = (addresses.identity(resource), Repeats::default());
        let spot = |range| Spot { range, resource, through, usage, order, repeats };
        addresses.each_range(resource, &access.region, |it| spots.push(spot(it)));
    }
    group(&mut spots[first..])
}

/// Puts spots that are the same range side by side.
fn group(spots: &mut [Spot]) -> PlanKind {
    const FEW: usize = 8;
    if spots.len() > FEW {
        spots.sort_unstable_by_key(|it| (it.range.start, it.range.end));
        let is_apart = |it: &[Spot]| it[0].range.end <= it[1].range.start || is_same_range(&it[0], &it[1]);
        return if spots.windows(2).all(is_apart) { PlanKind::Apart } else { PlanKind::Overlapping };
    }
    for at in 1..spots.len() {
        let (before, behind) = spots.split_at(at);
        let own = &behind[0];
        let is_over = |it: &Spot| it.range.start < own.range.end && own.range.start < it.range.end;
        let Some(other) = before.iter().rposition(is_over) else { continue };
        if before[..=other].iter().any(|it| is_over(it) && !is_same_range(it, own)) {
            return PlanKind::Overlapping;
        }
        spots[other + 1..=at].rotate_right(1);
    }
    PlanKind::Apart
}

fn is_same_range(left: &Spot, right: &Spot) -> bool {
    left.range == right.range && left.through == right.through
}

/// Marks what two commands, one right behind the other, do in the same way.
fn mark_repeats(before: &mut [Spot], behind: &mut [Spot]) {
    let mut own = 0;
    while own < behind.len() {
        let len = group_len(&behind[own..]);
        let group = &behind[own..own + len];
        // Commands that are alike are alike in order too.
        let is_there = before.get(own).is_some_and(|it| it.range == group[0].range);
        // The whole of what the other does to the range, not the end of it.
        let is_first = own == 0 || before.get(own - 1).is_none_or(|it| it.range != group[0].range);
        let same = Some(own).filter(|_| is_there && is_first);
        if let Some(at) = same.filter(|at| is_same(&before[*at..], group)) {
            let renders = group.iter().any(|it| TABLES.write_column(it.usage).is_some());
            if !renders || is_ordered(group) {
                before[at].repeats.0 |= Repeats::BEHIND;
                behind[own].repeats.0 |= Repeats::BEFORE | if renders { Repeats::RENDERS } else { 0 };
            }
        }
        own += len;
    }
}

/// How many of some spots, from the first on, are the same range.
pub(crate) fn group_len(spots: &[Spot]) -> usize {
    1 + spots[1..].iter().take_while(|it| it.range == spots[0].range).count()
}

/// Whether some spots begin with the same uses of a range as a group has, and no other of it.
fn is_same(spots: &[Spot], group: &[Spot]) -> bool {
    let key = |it: &Spot| (it.resource, it.usage, it.order);
    group_len(spots) == group.len() && spots.iter().zip(group).all(|(left, right)| key(left) == key(right))
}

/// Whether rendering orders whatever is done to a range after what was done to it in the same way.
fn is_ordered(group: &[Spot]) -> bool {
    let key = |it: &Spot| (it.usage, it.order);
    group.iter().all(|it| group.iter().all(|other| order::is_ordered(key(it), key(other))))
}
