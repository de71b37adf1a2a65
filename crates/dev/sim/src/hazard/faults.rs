//! The oracle for contents: looks back from every read and every acquire, texel by texel, for who owns what it is about,
//! and for subpasses that did not preserve it.
//!
//! Spec: "Queue Family Ownership Transfer", "Resource Sharing Mode", `VkSubpassDescription2`.

use std::collections::{BTreeMap, BTreeSet};

use lavascope_abi::{QUEUE_FAMILY_EXTERNAL, QUEUE_FAMILY_FOREIGN_EXT};
use lavascope_sync_ir::{UndefinedContents, UndefinedContentsKind, QueueFamilyTransfer, ProgramLocation, Program, ResourceId};

use super::{
    cells::{Cell, Cells, cells_of},
    machine::execute,
    trace::{Line, Op, Role, Time, Trace},
};

/// What is wrong with a part of a resource; the first thing of its sort.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultVerdict {
    pub kind: UndefinedContentsKind,
    pub at: ProgramLocation,
    /// Any of these made it so; empty if it is missing that something happened.
    pub priors: Vec<ProgramLocation>,
}

/// Who owns something, and whether a subpass keeps something, are different questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Ownership,
    Preservation,
}

type Verdicts = BTreeMap<(Sort, u32, Cell), FaultVerdict>;

/// The first cell on which an engine and the oracle differ, in words; none if they agree.
pub fn compare_faults(program: &Program, found: &[UndefinedContents]) -> Option<String> {
    let mut verdicts = find_faults(program);
    let mut first: BTreeMap<(Sort, u32, Cell), &UndefinedContents> = BTreeMap::new();
    for it in found {
        for cell in cells_of(program, it.resource, &it.region) {
            first.entry((sort(it.kind), it.resource.0, texel(cell))).or_insert(it);
        }
    }
    for (key, fault) in first {
        let agrees = |it: &FaultVerdict| {
            let is_prior = fault.prior.as_ref().map_or(it.priors.is_empty(), |prior| it.priors.contains(prior));
            it.kind == fault.kind && it.at == fault.at && is_prior
        };
        let verdict = verdicts.remove(&key);
        if !verdict.as_ref().is_some_and(agrees) {
            return Some(format!("{key:?}: oracle {verdict:?}, engine {fault:?}"));
        }
    }
    verdicts.into_iter().next().map(|(key, it)| format!("{key:?}: oracle {it:?}, engine none"))
}

fn find_faults(program: &Program) -> Verdicts {
    let (trace, cells) = execute(program);
    let mut found = Verdicts::new();
    let is_one_family = program.queues.windows(2).all(|it| it[0].family == it[1].family);
    for (index, resource) in program.resources.iter().enumerate() {
        if resource.is_exclusive && !is_one_family {
            owners(program, &trace, &cells, ResourceId(index as u32), &mut found);
        }
    }
    preservation(&trace, &cells, &mut found);
    found
}

fn sort(kind: UndefinedContentsKind) -> Sort {
    match kind {
        UndefinedContentsKind::AcquireWithoutRelease | UndefinedContentsKind::ReadWithoutAcquire | UndefinedContentsKind::ReadWithoutTransfer => {
            Sort::Ownership
        }
        UndefinedContentsKind::WriteToPreserved | UndefinedContentsKind::ReadNotPreserved => Sort::Preservation,
    }
}

/// Contents are those of whole texels.
fn texel(cell: Cell) -> Cell {
    match cell {
        Cell::Texel { image, aspect, mip, layer, texel, .. } | Cell::Block { image, aspect, mip, layer, texel, .. } => {
            Cell::Texel { image, aspect, mip, layer, texel, component: 0 }
        }
        other => other,
    }
}

/// Something that happens to the contents of a texel.
#[derive(Clone)]
struct Event {
    /// What a command reads comes before what it writes.
    time: (Time, u8),
    place: ProgramLocation,
    what: What,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Read(u32),
    Write(u32),
    Release(QueueFamilyTransfer),
    Acquire(QueueFamilyTransfer),
    /// Nobody owns it any more.
    Forget,
}

fn owners(program: &Program, trace: &Trace, cells: &Cells<'_>, resource: ResourceId, found: &mut Verdicts) {
    let mut events: BTreeMap<Cell, Vec<Event>> = BTreeMap::new();
    let mut add = |numbers: &[u32], event: &Event| {
        let texels: BTreeSet<Cell> = numbers.iter().map(|it| texel(cells.get(*it))).collect();
        texels.into_iter().for_each(|it| events.entry(it).or_default().push(event.clone()));
    };
    for op in trace.ops.iter().filter(|it| it.resource == resource) {
        let what = match (op.line, &op.role) {
            (_, Role::Acquire) => What::Forget,
            (Line::Queue(_), Role::Transition { .. }) | (Line::Host | Line::Engine(_), _) => continue,
            (Line::Queue(queue), _) if op.is_write => What::Write(program.queues[queue as usize].family),
            (Line::Queue(queue), _) => What::Read(program.queues[queue as usize].family),
        };
        add(&op.cells, &Event { time: (op.time, u8::from(op.is_write)), place: op.place.clone(), what });
    }
    for it in trace.transfers.iter().filter(|it| it.resource == resource) {
        let is_outside = |family| family == QUEUE_FAMILY_EXTERNAL || family == QUEUE_FAMILY_FOREIGN_EXT;
        let what = match it.is_release {
            true if is_outside(it.ownership.dst_family) => What::Forget,
            true => What::Release(it.ownership),
            false if is_outside(it.ownership.src_family) => What::Write(it.ownership.dst_family),
            false => What::Acquire(it.ownership),
        };
        add(&it.cells, &Event { time: (it.time, 0), place: it.place.clone(), what });
    }
    for (time, _) in trace.destroyed.iter().filter(|it| it.1 == resource) {
        events.values_mut().for_each(|all| {
            let time = (*time, 0);
            all.push(Event { time, place: ProgramLocation::Step(0), what: What::Forget });
        });
    }
    for (cell, mut all) in events {
        all.sort_by_key(|it| it.time);
        let verdict = (0..all.len()).find_map(|it| owner_fault(&all[..it], &all[it]));
        if let Some(verdict) = verdict {
            found.insert((Sort::Ownership, resource.0, cell), verdict);
        }
    }
}

/// Whether something is wrong with an event, where nothing was wrong with those before it.
fn owner_fault(before: &[Event], event: &Event) -> Option<FaultVerdict> {
    let decided = before.iter().rposition(|it| !matches!(it.what, What::Read(_)));
    let last = decided.map(|it| &before[it]).filter(|it| it.what != What::Forget);
    let fault = |kind, prior: Option<&Event>| {
        let priors = prior.map(|it| it.place.clone()).into_iter().collect();
        Some(FaultVerdict { kind, at: event.place.clone(), priors })
    };
    match (event.what, last.map(|it| it.what)) {
        (What::Acquire(ownership), release) if release != Some(What::Release(ownership)) => {
            fault(UndefinedContentsKind::AcquireWithoutRelease, None)
        }
        (What::Read(_), Some(What::Release(_))) => fault(UndefinedContentsKind::ReadWithoutAcquire, last),
        (What::Read(family), Some(What::Write(owner))) if family != owner => {
            fault(UndefinedContentsKind::ReadWithoutTransfer, last)
        }
        (What::Read(family), Some(What::Acquire(it))) if family != it.dst_family => {
            fault(UndefinedContentsKind::ReadWithoutTransfer, last)
        }
        (What::Read(family), None) => {
            // Whoever came first owns it.
            let first = before[decided.map_or(0, |it| it + 1)..].first()?;
            if first.what == What::Read(family) { None } else { fault(UndefinedContentsKind::ReadWithoutTransfer, Some(first)) }
        }
        _ => None,
    }
}

fn preservation(trace: &Trace, cells: &Cells<'_>, found: &mut Verdicts) {
    let mut ops: Vec<&Op> =
        trace.ops.iter().filter(|it| it.subpass.is_some() && !matches!(it.role, Role::Transition { .. })).collect();
    ops.sort_by_key(|it| (it.time, it.is_write));
    for op in ops {
        for number in &op.cells {
            let verdict = if op.is_write { preserved(trace, op, *number) } else { lost(trace, cells, op, *number) };
            if let Some(verdict) = verdict {
                found.entry((Sort::Preservation, op.resource.0, texel(cells.get(*number)))).or_insert(verdict);
            }
        }
    }
}

/// Whether the subpass of a write preserves what is written.
fn preserved(trace: &Trace, op: &Op, cell: u32) -> Option<FaultVerdict> {
    let begin = trace.subpasses.iter().find(|it| Some(it.at) == op.subpass)?;
    let has = |it: &u32| begin.attachments.get(*it as usize).is_some_and(|it| it.1.contains(&cell));
    begin.preserved.iter().any(has).then(|| FaultVerdict {
        kind: UndefinedContentsKind::WriteToPreserved,
        at: op.place.clone(),
        priors: vec![begin.place.clone()],
    })
}

/// Whether a subpass before a read lost what is read, and nothing has written it since. Whoever writes one component of
/// a texel writes the texel: that there was nothing to be kept of the others is not told.
fn lost(trace: &Trace, cells: &Cells<'_>, op: &Op, cell: u32) -> Option<FaultVerdict> {
    let own = op.subpass?;
    let is_same = |it: &u32| texel(cells.get(*it)) == texel(cells.get(cell));
    let mut priors = Vec::new();
    for begin in trace.subpasses.iter().filter(|it| it.at.instance == own.instance && it.time < op.time) {
        let paths = &trace.instances[own.instance];
        let leads = begin.at == own || paths[begin.at.subpass as usize][own.subpass as usize];
        let has = |it: &u32| {
            let attachment = begin.attachments.get(*it as usize);
            attachment.is_some_and(|it| it.0 == op.resource && it.1.contains(&cell))
        };
        let is_write = |it: &&Op| {
            let is_between = begin.time < it.time && it.time < op.time;
            is_between && it.is_write && it.resource == op.resource && !matches!(it.role, Role::Transition { .. })
        };
        let is_written = || trace.ops.iter().filter(is_write).any(|it| it.cells.iter().any(is_same));
        if leads && begin.lost.iter().any(has) && !is_written() {
            priors.push(begin.place.clone());
        }
    }
    let verdict = FaultVerdict { kind: UndefinedContentsKind::ReadNotPreserved, at: op.place.clone(), priors };
    (!verdict.priors.is_empty()).then_some(verdict)
}
