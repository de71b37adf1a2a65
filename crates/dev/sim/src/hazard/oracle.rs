//! The oracle: finds hazards by asking for every pair of accesses whether dependencies lead from one to the other.
//!
//! Slow and obvious on purpose, straight from the definitions: nothing is summarized, nothing is forgotten. Whatever
//! finds hazards quickly is held against it. Spec: "Execution and Memory Dependencies".

use lavascope_abi::{AccessFlags2 as Access, PipelineStageFlags2 as Stage};
use lavascope_sync_ir::{HazardKind, ProgramLocation, Program, RasterOrder};

use super::{
    cells::{Cell, Cells},
    machine::execute,
    trace::{Accesses, Dependency, Line, Op, Role, Trace},
};

/// Where users see something else than the letter of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OracleRules {
    /// A read that comes after another read, which sees the write, is not held against the write.
    pub most_recent_reads: bool,
    /// A write must be visible, not only available, to a write that comes after it; unless there was a read between.
    pub visible_writes: bool,
    /// Layout transitions on one queue come one after the other by themselves.
    pub ordered_transitions: bool,
}

impl OracleRules {
    pub const SPECIFICATION: OracleRules =
        OracleRules { most_recent_reads: false, visible_writes: false, ordered_transitions: false };
    pub const CONTRACT: OracleRules =
        OracleRules { most_recent_reads: true, visible_writes: true, ordered_transitions: true };
}

/// What the oracle says of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// By cell; cells without a hazard are not here.
    pub verdicts: Vec<Verdict>,
    /// Step and batch of what still waits for a semaphore at the end.
    pub parked: Vec<(u32, u32)>,
}

/// The first hazard on a cell. What comes after it on the same cell is not looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub cell: Cell,
    pub at: ProgramLocation,
    /// The place of the access in its command.
    pub index: u32,
    /// All the accesses that it conflicts with.
    pub partners: Vec<Partner>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Partner {
    pub at: ProgramLocation,
    pub index: u32,
    pub kind: HazardKind,
}

/// Executes a program and finds the first hazard of each cell.
pub fn find_hazards(program: &Program, rules: OracleRules) -> Outcome {
    let (trace, cells) = execute(program);
    let judge = Judge::new(&trace, rules);
    let mut users = vec![Vec::new(); cells.len()];
    for (number, op) in trace.ops.iter().enumerate() {
        op.cells.iter().for_each(|cell| users[*cell as usize].push(number));
    }
    let mut verdicts: Vec<_> = judge.verdicts(&cells, &users);
    verdicts.sort_by_key(|it| it.cell);
    Outcome { verdicts, parked: trace.parked }
}

struct Judge<'t> {
    trace: &'t Trace,
    rules: OracleRules,
    /// Whether a chain leads from one dependency to another; each leads to itself.
    chains: Vec<Vec<bool>>,
    /// As `chains`, whatever the stages.
    paths: Vec<Vec<bool>>,
    /// Per access the dependencies in whose first scope it is, and all to which chains lead from there.
    out: Vec<Vec<usize>>,
    reached: Vec<Vec<bool>>,
    /// Per access the dependencies in whose second scope it is.
    into: Vec<Vec<usize>>,
}

/// An access to one cell.
#[derive(Clone, Copy)]
struct Touch {
    op: usize,
    cell: u32,
}

impl<'t> Judge<'t> {
    fn new(trace: &'t Trace, rules: OracleRules) -> Judge<'t> {
        let all = &trace.dependencies;
        let chains = closure(all, |one, other| other.first.iter().any(|it| one.second.meets(it)));
        let paths = closure(all, |one, other| other.first.iter().any(|it| one.second.overlaps(it)));
        let numbers = |is_wanted: &dyn Fn(usize, &Dependency) -> bool| {
            all.iter().enumerate().filter(|(number, it)| is_wanted(*number, it)).map(|(number, _)| number).collect()
        };
        let out: Vec<Vec<usize>> =
            trace.ops.iter().map(|op| numbers(&|number, it| is_before(op, number, it))).collect();
        let into = trace.ops.iter().map(|op| numbers(&|number, it| is_after(op, number, it))).collect();
        let reached_from =
            |out: &Vec<usize>| (0..all.len()).map(|it| out.iter().any(|from| chains[*from][it])).collect();
        let reached = out.iter().map(reached_from).collect();
        Judge { trace, rules, chains, paths, reached, out, into }
    }

    fn verdicts(&self, cells: &Cells<'_>, users: &[Vec<usize>]) -> Vec<Verdict> {
        let aliases = cells.aliases();
        let verdict = |cell: u32| {
            let others = aliases[cell as usize].iter();
            let all = [cell].into_iter().chain(others.copied());
            let mut touches: Vec<_> =
                all.flat_map(|cell| users[cell as usize].iter().map(move |op| Touch { op: *op, cell })).collect();
            touches.sort_by_key(|it| it.op);
            self.first_hazard(cells.get(cell), cell, &touches)
        };
        (0..cells.len() as u32).filter_map(verdict).collect()
    }

    fn first_hazard(&self, name: Cell, cell: u32, touches: &[Touch]) -> Option<Verdict> {
        let mut found: Option<(u32, Verdict)> = None;
        for (position, touch) in touches.iter().enumerate() {
            let op = &self.trace.ops[touch.op];
            if found.as_ref().is_some_and(|(time, _)| *time != op.time) {
                break;
            }
            if touch.cell != cell {
                continue;
            }
            let partners = self.conflicts(&touches[..position], *touch);
            if partners.is_empty() {
                continue;
            }
            match &mut found {
                Some((_, verdict)) => verdict.partners.extend(partners),
                None => {
                    let verdict = Verdict { cell: name, at: op.place.clone(), index: op.index, partners };
                    found = Some((op.time, verdict));
                }
            }
        }
        found.map(|(_, verdict)| verdict)
    }

    /// The earlier accesses that a later one conflicts with. All pairs of earlier accesses are known to be right.
    fn conflicts(&self, earlier: &[Touch], later: Touch) -> Vec<Partner> {
        let after = &self.trace.ops[later.op];
        if after.role == Role::Acquire {
            return Vec::new();
        }
        let mut is_right = vec![true; earlier.len()];
        let mut partners = Vec::new();
        for position in (0..earlier.len()).rev() {
            let before = &self.trace.ops[earlier[position].op];
            if before.time == after.time || !(before.is_write || after.is_write) || self.is_forgotten(before, after) {
                continue;
            }
            // Only what touches the very cell stands between; another alias may be elsewhere in the memory.
            let is_between = |(touch, _, op): &(Touch, bool, &Op)| {
                let is_same = touch.cell == earlier[position].cell || touch.cell == later.cell;
                is_same && op.time != before.time && op.time != after.time
            };
            let between = || {
                let rest = earlier.iter().zip(&is_right).skip(position + 1);
                rest.map(|(touch, right)| (*touch, *right, &self.trace.ops[touch.op])).filter(is_between)
            };
            // Where the two race, a read by the name of the first that races it, too, was in no better place.
            let is_lost = |op: &Op| self.is_apart(before, after) && self.is_apart(before, op);
            let stands = |it: &Touch, op: &Op| it.cell != earlier[position].cell || !is_lost(op);
            is_right[position] = self.is_ordered(earlier[position], later)
                || between().any(|(_, right, op)| right && op.is_write && !self.is_forgotten(op, after))
                || self.is_excused(before, after)
                    && between().any(|(it, _, op)| !op.is_write && stands(&it, op) && self.executes(it, later));
            if !is_right[position] {
                partners.push(Partner {
                    at: before.place.clone(),
                    index: before.index,
                    kind: self.kind(before, after),
                });
            }
        }
        partners.reverse();
        partners
    }

    /// Whether an ordered read between two accesses is enough.
    fn is_excused(&self, before: &Op, after: &Op) -> bool {
        let rule = if after.is_write { self.rules.visible_writes } else { self.rules.most_recent_reads };
        rule && before.is_write
    }

    fn is_forgotten(&self, before: &Op, after: &Op) -> bool {
        let mut all = self.trace.forgotten.iter();
        all.any(|(time, resource)| *resource == before.resource && before.time < *time && *time < after.time)
    }

    /// Whether dependencies order a pair, memory included, without help of other accesses to the cell.
    fn is_ordered(&self, before: Touch, after: Touch) -> bool {
        let (first, second) = (&self.trace.ops[before.op], &self.trace.ops[after.op]);
        // Atomic operations are in no data race with each other.
        if first.order == RasterOrder::Atomic && second.order == RasterOrder::Atomic {
            return true;
        }
        if is_implicit(first, second) || self.rules.ordered_transitions && are_transitions_of_one_queue(first, second) {
            return true;
        }
        let needs_memory = first.is_write && !matches!(first.role, Role::Present | Role::Acquire);
        if !needs_memory {
            return self.executes(before, after);
        }
        let needs_visibility = !second.is_write || self.rules.visible_writes;
        self.executes(before, after)
            && if needs_visibility { self.sees(before, after) } else { self.is_available(before, after) }
    }

    /// Whether an execution dependency chain leads from one access to the other, or they are ordered anyway.
    fn executes(&self, before: Touch, after: Touch) -> bool {
        let reached = &self.reached[before.op];
        self.into[after.op].iter().any(|it| reached[*it])
            || is_implicit(&self.trace.ops[before.op], &self.trace.ops[after.op])
    }

    /// Whether a write is made available before the other access.
    fn is_available(&self, before: Touch, after: Touch) -> bool {
        let into = &self.into[after.op];
        self.availabilities(before).any(|from| into.iter().any(|to| self.chains[from][*to]))
    }

    /// Whether a write is made available, and then visible to the other access.
    fn sees(&self, before: Touch, after: Touch) -> bool {
        let op = &self.trace.ops[after.op];
        if op.line == Line::Host {
            return self.host_sees(before, after);
        }
        let into = &self.into[after.op];
        // Transitions and the presentation engine see whatever is available.
        let is_automatic = op.access == 0;
        let mut ends = into.iter().filter(|it| is_automatic || self.includes(&self.dependency(**it).visible, after));
        ends.any(|to| self.availabilities(before).any(|from| self.chains[from][*to]))
    }

    /// The host sees what a dependency made visible to it, once it knows that this dependency is behind.
    fn host_sees(&self, before: Touch, after: Touch) -> bool {
        let knows = |through: usize| self.into[after.op].iter().any(|to| self.chains[through][*to]);
        let makes_visible = |it: &usize| {
            let is_barrier = self.dependency(*it).visible.iter().all(|it| matches!(it, Accesses::Some { .. }));
            is_barrier && self.includes(&self.dependency(*it).visible, after)
        };
        let mut through = (0..self.trace.dependencies.len()).filter(makes_visible);
        through.any(|it| knows(it) && self.availabilities(before).any(|from| self.chains[from][it]))
    }

    /// The dependencies that make a write available. What has no mask, and what the host wrote, is so by itself.
    fn availabilities(&self, write: Touch) -> impl Iterator<Item = usize> {
        let op = &self.trace.ops[write.op];
        let is_automatic = op.access == 0 || op.line == Line::Host;
        let makes = move |it: &usize| is_automatic || self.includes(&self.dependency(*it).available, write);
        self.out[write.op].iter().copied().filter(makes)
    }

    fn includes(&self, accesses: &[Accesses], touch: Touch) -> bool {
        accesses.iter().any(|it| it.include(&self.trace.ops[touch.op], touch.cell))
    }

    fn dependency(&self, number: usize) -> &Dependency {
        &self.trace.dependencies[number]
    }

    fn kind(&self, before: &Op, after: &Op) -> HazardKind {
        let is_engine = |it: &Op| matches!(it.role, Role::Present | Role::Acquire);
        match (is_engine(before), is_engine(after)) {
            (true, _) if after.is_write && self.is_racing(before, after) => return HazardKind::WriteAfterPresent,
            // Something waits for the image, but not this write: the engine may still read.
            (true, _) if after.is_write => return HazardKind::WriteAfterRead,
            (true, _) => return HazardKind::ReadAfterPresent,
            (_, true) if before.is_write => return HazardKind::PresentAfterWrite,
            (_, true) => return HazardKind::PresentAfterRead,
            _ => {}
        }
        match (before.is_write, after.is_write, self.is_racing(before, after)) {
            (true, false, false) => HazardKind::ReadAfterWrite,
            (true, false, true) => HazardKind::ReadRacingWrite,
            (false, _, false) => HazardKind::WriteAfterRead,
            (false, _, true) => HazardKind::WriteRacingRead,
            (true, true, false) => HazardKind::WriteAfterWrite,
            (true, true, true) => HazardKind::WriteRacingWrite,
        }
    }

    /// Whether they are in subpasses of one render pass, and nothing leads from one to the other.
    fn is_apart(&self, before: &Op, after: &Op) -> bool {
        let subpasses = before.subpass.zip(after.subpass).filter(|_| before.line == after.line);
        subpasses.is_some_and(|(one, other)| {
            let is_one_instance = one.instance == other.instance && one.subpass != other.subpass;
            is_one_instance && !self.trace.instances[one.instance][one.subpass as usize][other.subpass as usize]
        })
    }

    /// Whether nothing at all leads from one queue, or one subpass, to the other.
    fn is_racing(&self, before: &Op, after: &Op) -> bool {
        if before.line == after.line {
            return self.is_apart(before, after);
        }
        let all = &self.trace.dependencies;
        let mut from = (0..all.len()).filter(|it| all[*it].first.iter().any(|it| it.spans(before)));
        let to: Vec<_> = (0..all.len()).filter(|it| all[*it].second.spans(after)).collect();
        !from.any(|from| to.iter().any(|to| self.paths[from][*to]))
    }
}

fn is_before(op: &Op, number: usize, dependency: &Dependency) -> bool {
    let is_own = matches!(&op.role, Role::Transition { before, .. } if before.contains(&number));
    is_own || dependency.first.iter().any(|it| it.contains(op))
}

fn is_after(op: &Op, number: usize, dependency: &Dependency) -> bool {
    let is_own = matches!(&op.role, Role::Transition { after, .. } if after.contains(&number));
    is_own || dependency.second.contains(op)
}

/// Orders that need no dependency: of the host, of the presentation engine, and of attachments in a subpass.
/// Spec: "Implicit Synchronization Guarantees", "Rasterization Order", "Load Operations", "Store Operations".
fn is_implicit(before: &Op, after: &Op) -> bool {
    if before.line != after.line {
        return false;
    }
    match before.line {
        Line::Host | Line::Engine(_) => return true,
        Line::Queue(_) => {}
    }
    if before.subpass.is_none() || before.subpass != after.subpass {
        return false;
    }
    let is_raster_order =
        before.order == after.order && has_raster_order(before, before.order) && has_raster_order(after, before.order);
    is_raster_order
        || before.role == Role::Load && is_attachment_access(after)
        || matches!(after.role, Role::Store | Role::ResolveRead) && is_attachment_access(before)
}

fn has_raster_order(op: &Op, order: RasterOrder) -> bool {
    let (stages, accesses) = match order {
        RasterOrder::None | RasterOrder::Atomic => (0, 0),
        RasterOrder::Color => (Stage::COLOR_ATTACHMENT_OUTPUT.0, COLOR_ACCESSES),
        RasterOrder::DepthStencil => {
            (Stage::EARLY_FRAGMENT_TESTS.0 | Stage::LATE_FRAGMENT_TESTS.0, DEPTH_STENCIL_ACCESSES)
        }
    };
    // Pipelines may ask for input attachments to be read in this order.
    let is_input = op.stage & Stage::FRAGMENT_SHADER.0 != 0 && op.access & Access::INPUT_ATTACHMENT_READ.0 != 0;
    op.stage & stages != 0 && op.access & accesses != 0
        || is_input && matches!(order, RasterOrder::Color | RasterOrder::DepthStencil)
}

fn is_attachment_access(op: &Op) -> bool {
    let stages = Stage::COLOR_ATTACHMENT_OUTPUT.0
        | Stage::EARLY_FRAGMENT_TESTS.0
        | Stage::FRAGMENT_SHADER.0
        | Stage::LATE_FRAGMENT_TESTS.0;
    let accesses = COLOR_ACCESSES | DEPTH_STENCIL_ACCESSES | Access::INPUT_ATTACHMENT_READ.0;
    op.stage & stages != 0 && op.access & accesses != 0
}

const COLOR_ACCESSES: u64 = Access::COLOR_ATTACHMENT_READ.0
    | Access::COLOR_ATTACHMENT_WRITE.0
    | Access::COLOR_ATTACHMENT_READ_NONCOHERENT_EXT.0;
const DEPTH_STENCIL_ACCESSES: u64 = Access::DEPTH_STENCIL_ATTACHMENT_READ.0 | Access::DEPTH_STENCIL_ATTACHMENT_WRITE.0;

fn are_transitions_of_one_queue(before: &Op, after: &Op) -> bool {
    let is_transition = |it: &Op| matches!(it.role, Role::Transition { .. });
    before.line == after.line && is_transition(before) && is_transition(after)
}

/// Which things lead to which, each to itself, when `leads` says so for single steps.
fn closure(all: &[Dependency], leads: impl Fn(&Dependency, &Dependency) -> bool) -> Vec<Vec<bool>> {
    let next: Vec<Vec<usize>> =
        all.iter().map(|one| (0..all.len()).filter(|it| leads(one, &all[*it])).collect()).collect();
    let reach = |start: usize| {
        let mut reached = vec![false; all.len()];
        let mut open = vec![start];
        while let Some(it) = open.pop() {
            if !std::mem::replace(&mut reached[it], true) {
                open.extend(&next[it]);
            }
        }
        reached
    };
    (0..all.len()).map(reach).collect()
}
