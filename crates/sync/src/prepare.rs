//! What can be looked up once about a command buffer, however often it is executed: the usages and addresses of its
//! accesses.

use std::ops::Range;

use lavascope_program::{Access, Command, CommandBuffer, ResourceId};

use crate::address::Addresses;
use crate::state::By;
use crate::usage::{TABLES, Usage};

/// A command buffer, made ready.
pub struct Prepared {
    pub(crate) source: CommandBuffer,
    /// For each command.
    plans: Vec<Plan>,
    spots: Vec<Spot>,
    /// How often addresses had changed when this was looked up.
    moves: u64,
}

/// One run of addresses that a command uses.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) range: Range<u64>,
    pub(crate) resource: ResourceId,
    pub(crate) usage: Usage,
    pub(crate) order: crate::order::Order,
}

impl Spot {
    pub(crate) fn by(&self, queue: u8) -> By {
        By { usage: self.usage, queue, order: self.order }
    }
}

/// What a command uses: its spots, writes first.
#[derive(Clone, Copy, Debug)]
struct Plan {
    first: u32,
    end: u32,
    kind: PlanKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanKind {
    /// No two of its spots overlap.
    Apart,
    Overlapping,
    /// Not an action, or its addresses are not known before it is executed.
    Unknown,
}

impl Prepared {
    pub(crate) fn new(source: CommandBuffer, addresses: &Addresses) -> Prepared {
        let mut prepared =
            Prepared { plans: Vec::with_capacity(source.commands.len()), spots: Vec::new(), source, moves: 0 };
        prepared.renew(addresses);
        prepared
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
        self.moves = addresses.moves();
        for command in &self.source.commands {
            let first = self.spots.len();
            let kind = match command {
                Command::Action(accesses) => add_spots(&mut self.spots, accesses, addresses),
                _ => PlanKind::Unknown,
            };
            self.plans.push(Plan { first: first as u32, end: self.spots.len() as u32, kind });
        }
    }
}

fn add_spots(spots: &mut Vec<Spot>, accesses: &[Access], addresses: &Addresses) -> PlanKind {
    let first = spots.len();
    for is_write in [true, false] {
        for access in accesses {
            // An access that its stage cannot make is another's to report.
            let Some(usage) = TABLES.usage(access.stage, access.access) else { continue };
            if addresses.wants_planes(access.resource, &access.region) {
                spots.truncate(first);
                return PlanKind::Unknown;
            }
            if TABLES.write_column(usage).is_some() == is_write {
                let (resource, order) = (access.resource, access.order.into());
                let spot = |range| Spot { range, resource, usage, order };
                addresses.each_range(resource, &access.region, |it| spots.push(spot(it)));
            }
        }
    }
    match are_apart(&spots[first..]) {
        true => PlanKind::Apart,
        false => PlanKind::Overlapping,
    }
}

fn are_apart(spots: &[Spot]) -> bool {
    const FEW: usize = 8;
    let overlap = |left: &Range<u64>, right: &Range<u64>| left.start < right.end && right.start < left.end;
    if spots.len() <= FEW {
        let is_apart = |(at, it): (usize, &Spot)| spots[..at].iter().all(|other| !overlap(&it.range, &other.range));
        return spots.iter().enumerate().all(is_apart);
    }
    let mut ranges: Vec<&Range<u64>> = spots.iter().map(|it| &it.range).collect();
    ranges.sort_unstable_by_key(|it| it.start);
    ranges.windows(2).all(|it| !overlap(it[0], it[1]))
}
