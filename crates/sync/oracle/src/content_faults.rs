//! The oracle for contents: finds reads of texels that the queue family does not own, and attachments that a subpass
//! does not preserve.
//!
//! For every read and every acquire it searches the earlier events of the same texel. Spec:
//! `synchronization-queue-transfers`, `resources-sharing`, `VkSubpassDescription2`.

use std::collections::{BTreeMap, BTreeSet};

use lavascope_abi::{QUEUE_FAMILY_EXTERNAL, QUEUE_FAMILY_FOREIGN_EXT};
use lavascope_sync_ir::{
    Program, ProgramLocation, QueueFamilyTransfer, ResourceId, UndefinedContents, UndefinedContentsKind,
};

use crate::execute::cells::{CellTable, MemoryCell, cells_of};
use crate::execute::executor::execute;
use crate::execute::log::{ExecutedAccess, ExecutionAgent, ExecutionLog, OracleAccessRole, Time};

/// A read of undefined contents, or an access that breaks a rule of ownership or preservation. In a row of wrong reads
/// without a write between them, only the first is a fault. In a subpass, only the first fault of each category counts.
#[derive(Clone, Debug, PartialEq)]
pub struct ContentFault {
    pub kind: UndefinedContentsKind,
    pub at: ProgramLocation,
    /// The causes; the engine may name any of them. Empty if the cause is that something did not happen.
    pub priors: Vec<ProgramLocation>,
}

/// Faults of ownership and of preservation are compared separately, because an access can have both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FaultCategory {
    Ownership,
    Preservation,
}

/// Faults with the same key are compared with each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FaultKey {
    category: FaultCategory,
    resource: u32,
    cell: MemoryCell,
    /// Set for faults of ownership, where each access counts. For preservation only the first fault of the texel
    /// counts.
    at: Option<ProgramLocation>,
}

impl FaultKey {
    fn new(kind: UndefinedContentsKind, resource: ResourceId, cell: MemoryCell, at: &ProgramLocation) -> FaultKey {
        let category = category(kind);
        let at = (category == FaultCategory::Ownership).then(|| at.clone());
        FaultKey { category, resource: resource.0, cell: whole_texel(cell), at }
    }
}

type ContentFaults = BTreeMap<FaultKey, ContentFault>;

/// Describes the first cell on which an engine and the oracle differ; none if they agree.
pub fn compare_faults(program: &Program, found: &[UndefinedContents]) -> Option<String> {
    let mut verdicts = find_faults(program);
    let mut first: BTreeMap<FaultKey, &UndefinedContents> = BTreeMap::new();
    for undefined_contents in found {
        for cell in cells_of(program, undefined_contents.resource, &undefined_contents.region) {
            let UndefinedContents { kind, resource, at, .. } = undefined_contents;
            first.entry(FaultKey::new(*kind, *resource, cell, at)).or_insert(undefined_contents);
        }
    }
    for (key, fault) in first {
        let agrees = |content_fault: &ContentFault| {
            let is_prior = fault
                .prior
                .as_ref()
                .map_or(content_fault.priors.is_empty(), |prior| content_fault.priors.contains(prior));
            content_fault.kind == fault.kind && content_fault.at == fault.at && is_prior
        };
        let verdict = verdicts.remove(&key);
        if !verdict.as_ref().is_some_and(agrees) {
            return Some(format!("{key:?}: oracle {verdict:?}, engine {fault:?}"));
        }
    }
    verdicts.into_iter().next().map(|(key, it)| format!("{key:?}: oracle {it:?}, engine none"))
}

fn find_faults(program: &Program) -> ContentFaults {
    let (trace, cells) = execute(program);
    let mut found = ContentFaults::new();
    let is_one_family = program.queues.windows(2).all(|it| it[0].family == it[1].family);
    for (index, resource) in program.resources.iter().enumerate() {
        if resource.is_exclusive && !is_one_family {
            check_ownership(program, &trace, &cells, ResourceId(index as u32), &mut found);
        }
    }
    check_preservation(&trace, &cells, &mut found);
    found
}

fn category(kind: UndefinedContentsKind) -> FaultCategory {
    match kind {
        UndefinedContentsKind::AcquireWithoutRelease
        | UndefinedContentsKind::ReadWithoutAcquire
        | UndefinedContentsKind::ReadWithoutTransfer => FaultCategory::Ownership,
        UndefinedContentsKind::WriteToPreserved | UndefinedContentsKind::ReadNotPreserved => {
            FaultCategory::Preservation
        }
    }
}

/// Ownership and preservation are tracked per texel, not per component.
fn whole_texel(cell: MemoryCell) -> MemoryCell {
    match cell {
        MemoryCell::Texel { image, aspect, mip, layer, texel, .. }
        | MemoryCell::SparseBlock { image, aspect, mip, layer, texel, .. } => {
            MemoryCell::Texel { image, aspect, mip, layer, texel, component: 0 }
        }
        other => other,
    }
}

/// Something that happens to the contents of a texel.
#[derive(Clone)]
struct ContentEvent {
    /// The time, then 0 for reads and 1 for writes: a command reads before it writes.
    time: (Time, u8),
    place: ProgramLocation,
    what: ContentEventKind,
}

#[derive(Clone, Copy, PartialEq)]
enum ContentEventKind {
    Read(u32),
    Write(u32),
    Release(QueueFamilyTransfer),
    Acquire(QueueFamilyTransfer),
    /// No queue family owns the texel from here on.
    Disown,
}

fn check_ownership(
    program: &Program,
    trace: &ExecutionLog,
    cells: &CellTable<'_>,
    resource: ResourceId,
    found: &mut ContentFaults,
) {
    let mut events: BTreeMap<MemoryCell, Vec<ContentEvent>> = BTreeMap::new();
    let mut add = |numbers: &[u32], event: &ContentEvent| {
        let texels: BTreeSet<MemoryCell> = numbers.iter().map(|it| whole_texel(cells.get(*it))).collect();
        texels.into_iter().for_each(|it| events.entry(it).or_default().push(event.clone()));
    };
    for op in trace.accesses.iter().filter(|it| it.resource == resource) {
        let what = match (op.agent, &op.role) {
            (_, OracleAccessRole::Acquire) => ContentEventKind::Disown,
            (ExecutionAgent::Queue(_), OracleAccessRole::Transition { .. })
            | (ExecutionAgent::Host | ExecutionAgent::PresentationEngine(_), _) => continue,
            (ExecutionAgent::Queue(queue), _) if op.is_write => {
                ContentEventKind::Write(program.queues[queue as usize].family)
            }
            (ExecutionAgent::Queue(queue), _) => ContentEventKind::Read(program.queues[queue as usize].family),
        };
        add(&op.cells, &ContentEvent { time: (op.time, u8::from(op.is_write)), place: op.place.clone(), what });
    }
    for transfer in trace.transfers.iter().filter(|it| it.resource == resource) {
        let is_outside = |family| family == QUEUE_FAMILY_EXTERNAL || family == QUEUE_FAMILY_FOREIGN_EXT;
        let what = match transfer.is_release {
            true if is_outside(transfer.ownership.dst_family) => ContentEventKind::Disown,
            true => ContentEventKind::Release(transfer.ownership),
            false if is_outside(transfer.ownership.src_family) => {
                ContentEventKind::Write(transfer.ownership.dst_family)
            }
            false => ContentEventKind::Acquire(transfer.ownership),
        };
        add(&transfer.cells, &ContentEvent { time: (transfer.time, 0), place: transfer.place.clone(), what });
    }
    for (time, _) in trace.destroyed.iter().filter(|it| it.1 == resource) {
        events.values_mut().for_each(|all| {
            let time = (*time, 0);
            all.push(ContentEvent { time, place: ProgramLocation::Step(0), what: ContentEventKind::Disown });
        });
    }
    for (cell, mut all) in events {
        all.sort_by_key(|it| it.time);
        let mut has_wrong_read = false;
        for (index, event) in all.iter().enumerate() {
            let is_read = matches!(event.what, ContentEventKind::Read(_));
            has_wrong_read &= is_read;
            let Some(fault) = ownership_fault(&all[..index], event) else { continue };
            if !std::mem::replace(&mut has_wrong_read, is_read) {
                found.entry(FaultKey::new(fault.kind, resource, cell, &fault.at)).or_insert(fault);
            }
        }
    }
}

/// Whether an event breaks the rules of ownership. A read never changes the owner, even if it is a fault.
fn ownership_fault(before: &[ContentEvent], event: &ContentEvent) -> Option<ContentFault> {
    let decided = before.iter().rposition(|it| !matches!(it.what, ContentEventKind::Read(_)));
    let last = decided.map(|it| &before[it]).filter(|it| it.what != ContentEventKind::Disown);
    let fault = |kind, prior: Option<&ContentEvent>| {
        let priors = prior.map(|it| it.place.clone()).into_iter().collect();
        Some(ContentFault { kind, at: event.place.clone(), priors })
    };
    match (event.what, last.map(|it| it.what)) {
        (ContentEventKind::Acquire(ownership), release) if release != Some(ContentEventKind::Release(ownership)) => {
            fault(UndefinedContentsKind::AcquireWithoutRelease, None)
        }
        (ContentEventKind::Read(_), Some(ContentEventKind::Release(_))) => {
            fault(UndefinedContentsKind::ReadWithoutAcquire, last)
        }
        (ContentEventKind::Read(family), Some(ContentEventKind::Write(owner))) if family != owner => {
            fault(UndefinedContentsKind::ReadWithoutTransfer, last)
        }
        (ContentEventKind::Read(family), Some(ContentEventKind::Acquire(acquire))) if family != acquire.dst_family => {
            fault(UndefinedContentsKind::ReadWithoutTransfer, last)
        }
        (ContentEventKind::Read(family), None) => {
            // The family of the first read becomes the owner.
            let first = before[decided.map_or(0, |it| it + 1)..].first()?;
            if first.what == ContentEventKind::Read(family) {
                None
            } else {
                fault(UndefinedContentsKind::ReadWithoutTransfer, Some(first))
            }
        }
        _ => None,
    }
}

fn check_preservation(trace: &ExecutionLog, cells: &CellTable<'_>, found: &mut ContentFaults) {
    let mut ops: Vec<&ExecutedAccess> = trace
        .accesses
        .iter()
        .filter(|it| it.subpass.is_some() && !matches!(it.role, OracleAccessRole::Transition { .. }))
        .collect();
    ops.sort_by_key(|it| (it.time, it.is_write));
    for op in ops {
        for number in &op.cells {
            let verdict = if op.is_write {
                check_preserved_write(trace, op, *number)
            } else {
                check_undefined_read(trace, cells, op, *number)
            };
            if let Some(verdict) = verdict {
                let key = FaultKey::new(verdict.kind, op.resource, cells.get(*number), &verdict.at);
                found.entry(key).or_insert(verdict);
            }
        }
    }
}

/// Whether a write goes to an attachment that its own subpass preserves.
fn check_preserved_write(trace: &ExecutionLog, op: &ExecutedAccess, cell: u32) -> Option<ContentFault> {
    let begin = trace.subpasses.iter().find(|it| Some(it.at) == op.subpass)?;
    let has = |it: &u32| begin.attachments.get(*it as usize).is_some_and(|it| it.1.contains(&cell));
    begin.preserved.iter().any(has).then(|| ContentFault {
        kind: UndefinedContentsKind::WriteToPreserved,
        at: op.place.clone(),
        priors: vec![begin.place.clone()],
    })
}

/// Whether the contents became undefined in an earlier subpass, with no write since. A write to one component counts as
/// a write to the whole texel, so reads of its other components are not reported.
fn check_undefined_read(
    trace: &ExecutionLog,
    cells: &CellTable<'_>,
    op: &ExecutedAccess,
    cell: u32,
) -> Option<ContentFault> {
    let own = op.subpass?;
    let is_same = |it: &u32| whole_texel(cells.get(*it)) == whole_texel(cells.get(cell));
    let mut priors = Vec::new();
    for begin in trace.subpasses.iter().filter(|it| it.at.instance == own.instance && it.time < op.time) {
        let paths = &trace.subpass_reachability[own.instance];
        let leads = begin.at == own || paths[begin.at.subpass as usize][own.subpass as usize];
        let has = |value: &u32| {
            let attachment = begin.attachments.get(*value as usize);
            attachment.is_some_and(|it| it.0 == op.resource && it.1.contains(&cell))
        };
        let is_write = |executed_access: &&ExecutedAccess| {
            let is_between = begin.time < executed_access.time && executed_access.time < op.time;
            is_between
                && executed_access.is_write
                && executed_access.resource == op.resource
                && !matches!(executed_access.role, OracleAccessRole::Transition { .. })
        };
        let is_written = || trace.accesses.iter().filter(is_write).any(|it| it.cells.iter().any(is_same));
        if leads && begin.undefined.iter().any(has) && !is_written() {
            priors.push(begin.place.clone());
        }
    }
    let verdict = ContentFault { kind: UndefinedContentsKind::ReadNotPreserved, at: op.place.clone(), priors };
    (!verdict.priors.is_empty()).then_some(verdict)
}
