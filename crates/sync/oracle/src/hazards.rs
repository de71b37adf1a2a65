//! The oracle: for every pair of accesses it checks whether a chain of dependencies orders them.
//!
//! Deliberately simple and slow: it follows the definitions and keeps every access. Faster engines are compared with
//! it. Spec: `synchronization-dependencies-execution`, `synchronization-dependencies-chains`,
//! `synchronization-dependencies-memory`.

use lavascope_abi::{AccessFlags2 as Access, PipelineStageFlags2 as Stage};
use lavascope_sync_ir::{HazardKind, Program, ProgramLocation, RasterOrder};

use crate::execute::cells::{CellTable, MemoryCell};
use crate::execute::executor::execute;
use crate::execute::log::{
    AccessScope, ExecutedAccess, ExecutionAgent, ExecutionLog, LoggedDependency, OracleAccessRole, TransitionSource,
};
use crate::execute::masks;

/// Where hazards that users want differ from the letter of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OracleRules {
    /// If a read sees a write, a later read that is ordered after the first read needs no visibility operation of its
    /// own.
    pub most_recent_reads: bool,
    /// A write must be visible, not only available, to a later write, unless a read lies between the two.
    pub visible_writes: bool,
    /// All layout transitions and ownership transfers of a queue are ordered. The specification orders only transitions
    /// of barriers with one another and with those of render passes
    /// (`synchronization-image-barrier-layout-transition-order`).
    pub all_transitions_ordered: bool,
}

impl OracleRules {
    pub const SPECIFICATION: OracleRules =
        OracleRules { most_recent_reads: false, visible_writes: false, all_transitions_ordered: false };
    pub const CONTRACT: OracleRules =
        OracleRules { most_recent_reads: true, visible_writes: true, all_transitions_ordered: true };
}

/// The hazards of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct OracleReport {
    /// Sorted by cell. Cells without a hazard are missing.
    pub hazards: Vec<CellHazard>,
    /// Step and batch of everything that still waits for a semaphore at the end.
    pub blocked: Vec<(u32, u32)>,
}

/// The first hazard on a cell. Later accesses to the same cell are not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CellHazard {
    pub cell: MemoryCell,
    pub at: ProgramLocation,
    /// The number of the access within its command.
    pub index: u32,
    /// All earlier accesses that it conflicts with.
    pub conflicts: Vec<ConflictingAccess>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ConflictingAccess {
    pub at: ProgramLocation,
    pub index: u32,
    pub kind: HazardKind,
}

/// Executes a program and finds the first hazard of each cell.
pub fn find_hazards(program: &Program, rules: OracleRules) -> OracleReport {
    let (trace, cells) = execute(program);
    let finder = HazardFinder::new(&trace, rules);
    let mut users = vec![Vec::new(); cells.len()];
    for (number, op) in trace.accesses.iter().enumerate() {
        op.cells.iter().for_each(|cell| users[*cell as usize].push(number));
    }
    let mut verdicts: Vec<_> = finder.find_all(&cells, &users);
    verdicts.sort_by_key(|it| it.cell);
    OracleReport { hazards: verdicts, blocked: trace.blocked }
}

struct HazardFinder<'t> {
    log: &'t ExecutionLog,
    rules: OracleRules,
    /// Whether a dependency chain leads from one dependency to another. Each leads to itself.
    chains: Vec<Vec<bool>>,
    /// As `chains`, but stages do not matter.
    chains_in_any_stage: Vec<Vec<bool>>,
    /// For each access: the dependencies with the access in a first scope. `reachable` adds all that chains lead to
    /// from there.
    in_first_scope: Vec<Vec<usize>>,
    reachable: Vec<Vec<bool>>,
    /// As `reachable`, for each possible read.
    possible_reachable: Vec<Vec<bool>>,
    /// For each access: the dependencies with the access in the second scope.
    in_second_scope: Vec<Vec<usize>>,
}

/// An access to one cell.
#[derive(Clone, Copy)]
struct CellAccess {
    access: usize,
    cell: u32,
}

impl<'t> HazardFinder<'t> {
    fn new(trace: &'t ExecutionLog, rules: OracleRules) -> HazardFinder<'t> {
        let all = &trace.dependencies;
        let chains = transitive_closure(all, continues_chain);
        let paths = transitive_closure(all, |one, other| {
            other.first_scopes.iter().any(|it| one.second_scope.overlaps_in_time(it))
        });
        let numbers = |is_wanted: &dyn Fn(usize, &LoggedDependency) -> bool| {
            all.iter().enumerate().filter(|(number, it)| is_wanted(*number, it)).map(|(number, _)| number).collect()
        };
        let out: Vec<Vec<usize>> =
            trace.accesses.iter().map(|op| numbers(&|number, it| is_in_first_scope(op, number, it))).collect();
        let into = trace.accesses.iter().map(|op| numbers(&|number, it| is_in_second_scope(op, number, it))).collect();
        let reached_from =
            |out: &Vec<usize>| (0..all.len()).map(|it| out.iter().any(|from| chains[*from][it])).collect();
        let reached = out.iter().map(reached_from).collect();
        let possible_reads = trace.possible_reads.iter();
        let possible: Vec<Vec<usize>> =
            possible_reads.map(|op| numbers(&|number, it| is_in_first_scope(op, number, it))).collect();
        let possible_reached = possible.iter().map(reached_from).collect();
        HazardFinder {
            log: trace,
            rules,
            chains,
            chains_in_any_stage: paths,
            reachable: reached,
            possible_reachable: possible_reached,
            in_first_scope: out,
            in_second_scope: into,
        }
    }

    fn find_all(&self, cells: &CellTable<'_>, users: &[Vec<usize>]) -> Vec<CellHazard> {
        let aliases = cells.aliases();
        let verdict = |cell: u32| {
            let others = aliases[cell as usize].iter();
            let all = [cell].into_iter().chain(others.copied());
            let mut cell_accesses: Vec<_> = all
                .flat_map(|cell| users[cell as usize].iter().map(move |op| CellAccess { access: *op, cell }))
                .collect();
            cell_accesses.sort_by_key(|it| it.access);
            self.first_hazard(cells.get(cell), cell, &cell_accesses)
        };
        (0..cells.len() as u32).filter_map(verdict).collect()
    }

    fn first_hazard(&self, name: MemoryCell, cell: u32, cell_accesses: &[CellAccess]) -> Option<CellHazard> {
        let mut found: Option<(u32, CellHazard)> = None;
        for (position, cell_access) in cell_accesses.iter().enumerate() {
            let op = &self.log.accesses[cell_access.access];
            if found.as_ref().is_some_and(|(time, _)| *time != op.time) {
                break;
            }
            if cell_access.cell != cell {
                continue;
            }
            let partners = self.conflicts(&cell_accesses[..position], *cell_access);
            if partners.is_empty() {
                continue;
            }
            match &mut found {
                Some((_, verdict)) => verdict.conflicts.extend(partners),
                None => {
                    let verdict = CellHazard { cell: name, at: op.place.clone(), index: op.index, conflicts: partners };
                    found = Some((op.time, verdict));
                }
            }
        }
        found.map(|(_, verdict)| verdict)
    }

    /// The earlier accesses that a later one conflicts with. The earlier accesses have no hazards among themselves.
    fn conflicts(&self, earlier: &[CellAccess], later: CellAccess) -> Vec<ConflictingAccess> {
        let after = &self.log.accesses[later.access];
        if after.role == OracleAccessRole::Acquire {
            return Vec::new();
        }
        let mut is_right = vec![true; earlier.len()];
        let mut partners = Vec::new();
        for position in (0..earlier.len()).rev() {
            let before = &self.log.accesses[earlier[position].access];
            if before.time == after.time
                || !(before.is_write || after.is_write)
                || self.is_destroyed_between(before, after)
            {
                continue;
            }
            // An ordered access between the two helps only if it is to one of the two cells. Another alias may lie
            // elsewhere in the memory.
            let is_between = |(cell_access, _, op): &(CellAccess, bool, &ExecutedAccess)| {
                let is_same = cell_access.cell == earlier[position].cell || cell_access.cell == later.cell;
                is_same && op.time != before.time && op.time != after.time
            };
            let between = || {
                let rest = earlier.iter().zip(&is_right).skip(position + 1);
                rest.map(|(cell_access, right)| (*cell_access, *right, &self.log.accesses[cell_access.access]))
                    .filter(is_between)
            };
            // A read between the two does not help if it races with the first access itself, in the way the later
            // access does.
            let is_also_racing = |op: &ExecutedAccess| {
                self.are_unordered_subpasses(before, after) && self.are_unordered_subpasses(before, op)
            };
            let is_relevant =
                |it: &CellAccess, op: &ExecutedAccess| it.cell != earlier[position].cell || !is_also_racing(op);
            is_right[position] = self.is_ordered(earlier[position], later)
                || self.may_be_read_between(earlier[position], later)
                || between().any(|(_, right, op)| right && op.is_write && !self.is_destroyed_between(op, after))
                || between().any(|(load, _, _)| self.is_before_load(earlier[position], load, later))
                || self.is_read_between_enough(before, after)
                    && between().any(|(read, _, op)| {
                        !op.is_write && is_relevant(&read, op) && self.is_execution_ordered(read, later)
                    });
            if !is_right[position] {
                partners.push(ConflictingAccess {
                    at: before.place.clone(),
                    index: before.index,
                    kind: self.hazard_kind(before, after),
                });
            }
        }
        partners.reverse();
        partners
    }

    /// Whether a read happens before a load operation, and the later access uses the attachment in the same render pass
    /// instance. The load operation happens before all these uses (`renderpass-load-operations`).
    fn is_before_load(&self, before: CellAccess, load: CellAccess, later: CellAccess) -> bool {
        let [first, own, last] = [before, load, later].map(|it| &self.log.accesses[it.access]);
        !first.is_write
            && (own.role == OracleAccessRole::Load && !own.is_write)
            && is_implicitly_ordered(own, last)
            && self.is_execution_ordered(before, load)
    }

    /// Whether an ordered read between the two accesses replaces a dependency from the first.
    fn is_read_between_enough(&self, before: &ExecutedAccess, after: &ExecutedAccess) -> bool {
        let rule = if after.is_write { self.rules.visible_writes } else { self.rules.most_recent_reads };
        rule && before.is_write
    }

    /// Whether a possible read between two writes is ordered before the second and sees the first. Such a read replaces
    /// visibility.
    fn may_be_read_between(&self, before: CellAccess, later: CellAccess) -> bool {
        let (first, after) = (&self.log.accesses[before.access], &self.log.accesses[later.access]);
        let is_asked = self.rules.visible_writes
            && first.is_write
            && after.is_write
            && after.access != 0
            && !self.are_unordered_subpasses(first, after);
        let reads = self.log.possible_reads.iter().zip(&self.possible_reachable);
        is_asked
            && reads
                .filter(|(read, _)| read.agent == after.agent && first.time < read.time && read.time < after.time)
                .filter(|(_, reached)| self.in_second_scope[later.access].iter().any(|it| reached[*it]))
                .any(|(read, _)| {
                    let own = ExecutedAccess { resource: after.resource, ..read.clone() };
                    let late =
                        ExecutedAccess { stage: read.stage, access: read.access, is_write: false, ..after.clone() };
                    self.is_visible_to(before, &own, later.cell) || self.is_visible_to(before, &late, later.cell)
                })
    }

    /// Whether a write would be visible to a read of the cell that is not in the log.
    fn is_visible_to(&self, before: CellAccess, read: &ExecutedAccess, cell: u32) -> bool {
        let all = self.log.dependencies.iter().enumerate();
        let mut into = all.filter(|(number, dependency)| {
            let has_access = dependency.visible.iter().any(|it| it.includes(read, cell));
            is_in_second_scope(read, *number, dependency) && has_access
        });
        into.any(|(to, _)| self.availability_operations(before).any(|from| self.chains[from][to]))
    }

    fn is_destroyed_between(&self, before: &ExecutedAccess, after: &ExecutedAccess) -> bool {
        let mut all = self.log.destroyed_unshared.iter();
        all.any(|(time, resource)| *resource == before.resource && before.time < *time && *time < after.time)
    }

    /// Whether the pair has the dependencies it needs, without help of other accesses to the cell.
    fn is_ordered(&self, before: CellAccess, after: CellAccess) -> bool {
        let (first, second) = (&self.log.accesses[before.access], &self.log.accesses[after.access]);
        // Atomic operations are never in a data race with each other (`memory-model-access-data-race`).
        if first.order == RasterOrder::Atomic && second.order == RasterOrder::Atomic {
            return true;
        }
        if is_implicitly_ordered(first, second)
            || are_ordered_transitions(first, second, self.rules)
            || self.are_ordered_markers(before, after)
        {
            return true;
        }
        let needs_memory =
            first.is_write && !matches!(first.role, OracleAccessRole::Present | OracleAccessRole::Acquire);
        if !needs_memory {
            return self.is_execution_ordered(before, after);
        }
        // A store operation needs no visibility of a transition in its own render pass: the implementation performs
        // both.
        let is_stored = second.role == OracleAccessRole::Store
            && matches!(first.role, OracleAccessRole::Transition { .. })
            && is_same_pass(first, second);
        let needs_visibility = !second.is_write || self.rules.visible_writes && !is_stored;
        self.is_execution_ordered(before, after)
            && if needs_visibility { self.is_visible(before, after) } else { self.is_available(before, after) }
    }

    /// Whether a dependency chain or an implicit guarantee orders the two accesses
    /// (`synchronization-dependencies-chains`).
    fn is_execution_ordered(&self, before: CellAccess, after: CellAccess) -> bool {
        let reached = &self.reachable[before.access];
        let (first, second) = (&self.log.accesses[before.access], &self.log.accesses[after.access]);
        let into = &self.in_second_scope[after.access];
        let is_reached = match (&first.role, &second.role) {
            (OracleAccessRole::Transition { .. }, OracleAccessRole::Transition { .. }) => self.in_first_scope
                [before.access]
                .iter()
                .any(|from| into.iter().any(|to| self.leads(before, after, *from, *to))),
            _ => into.iter().any(|it| reached[*it]),
        };
        is_reached || is_implicitly_ordered(first, second)
    }

    /// Whether a chain leads from an access over one dependency and up to another one to a later access. Two layout
    /// transitions may lie between the scopes of one dependency: the first before its visibility operations, and the
    /// second after its availability operations. That does not order them (`renderpass-layout-transitions`).
    fn leads(&self, before: CellAccess, after: CellAccess, from: usize, to: usize) -> bool {
        let (first, second) = (&self.log.accesses[before.access], &self.log.accesses[after.access]);
        let is_between = || {
            let dependency = self.dependency(from);
            !dependency.first_scopes.iter().any(|it| it.contains(first)) && !dependency.second_scope.contains(second)
        };
        self.chains[from][to] && !(from == to && is_between())
    }

    /// Whether both are buffer markers, and the dependency of the later one has the earlier one in its first scopes.
    fn are_ordered_markers(&self, before: CellAccess, after: CellAccess) -> bool {
        let (first, second) = (&self.log.accesses[before.access], &self.log.accesses[after.access]);
        let is_own = |number: &usize| {
            self.dependency(*number).marker_stages.is_some() && self.in_second_scope[after.access].contains(number)
        };
        marker_stages(first).is_some()
            && marker_stages(second).is_some()
            && self.in_first_scope[before.access].iter().any(is_own)
    }

    /// Whether a write is made available before the other access.
    fn is_available(&self, before: CellAccess, after: CellAccess) -> bool {
        let into = &self.in_second_scope[after.access];
        self.availability_operations(before).any(|from| into.iter().any(|to| self.leads(before, after, from, *to)))
    }

    /// Whether a write is made available, and then visible to the other access.
    fn is_visible(&self, before: CellAccess, after: CellAccess) -> bool {
        let op = &self.log.accesses[after.access];
        if op.agent == ExecutionAgent::Host {
            return self.is_visible_to_host(before, after);
        }
        let into = &self.in_second_scope[after.access];
        // Available memory is automatically visible to layout transitions and to the presentation engine
        // (`synchronization-image-layout-transitions`).
        let is_automatic = op.access == 0;
        let mut ends = into.iter().filter(|it| is_automatic || self.includes(&self.dependency(**it).visible, after));
        ends.any(|to| self.availability_operations(before).any(|from| self.leads(before, after, from, *to)))
    }

    /// The host sees a write if a barrier makes it visible to the host, and the host has waited for that barrier.
    fn is_visible_to_host(&self, before: CellAccess, after: CellAccess) -> bool {
        let knows = |through: usize| self.in_second_scope[after.access].iter().any(|to| self.chains[through][*to]);
        let makes_visible = |value: &usize| {
            let is_barrier = self.dependency(*value).visible.iter().all(|it| matches!(it, AccessScope::Masked { .. }));
            is_barrier && self.includes(&self.dependency(*value).visible, after)
        };
        let mut through = (0..self.log.dependencies.len()).filter(makes_visible);
        through.any(|it| knows(it) && self.availability_operations(before).any(|from| self.chains[from][it]))
    }

    /// The dependencies that make a write available. Host writes and layout transitions need no access mask for that.
    fn availability_operations(&self, write: CellAccess) -> impl Iterator<Item = usize> {
        let op = &self.log.accesses[write.access];
        let is_automatic = op.access == 0 || op.agent == ExecutionAgent::Host;
        let makes = move |it: &usize| is_automatic || self.includes(&self.dependency(*it).available, write);
        self.in_first_scope[write.access].iter().copied().filter(makes)
    }

    fn includes(&self, accesses: &[AccessScope], cell_access: CellAccess) -> bool {
        accesses.iter().any(|it| it.includes(&self.log.accesses[cell_access.access], cell_access.cell))
    }

    fn dependency(&self, number: usize) -> &LoggedDependency {
        &self.log.dependencies[number]
    }

    fn hazard_kind(&self, before: &ExecutedAccess, after: &ExecutedAccess) -> HazardKind {
        let is_engine = |it: &ExecutedAccess| matches!(it.role, OracleAccessRole::Present | OracleAccessRole::Acquire);
        match (is_engine(before), is_engine(after)) {
            (true, _) if after.is_write && self.is_racing(before, after) => return HazardKind::WriteAfterPresent,
            // Something waits for the image, but not in the stage of this write: the presentation engine may still
            // read.
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

    /// Whether the accesses are in two subpasses of a render pass with no dependencies from the first to the second.
    fn are_unordered_subpasses(&self, before: &ExecutedAccess, after: &ExecutedAccess) -> bool {
        let subpasses = before.subpass.zip(after.subpass).filter(|_| before.agent == after.agent);
        subpasses.is_some_and(|(one, other)| {
            let is_path = |from: u32| {
                from == other.subpass
                    || self.log.subpass_reachability[one.instance][from as usize][other.subpass as usize]
            };
            // A layout transition happens before all subpasses that use the layout.
            let shared = match &before.role {
                OracleAccessRole::Transition { subpasses, .. } => &subpasses[..],
                _ => &[],
            };
            one.instance == other.instance && !is_path(one.subpass) && !shared.iter().any(|it| is_path(*it))
        })
    }

    /// Whether no dependency at all, in whatever stages, leads from one queue or subpass to the other.
    fn is_racing(&self, before: &ExecutedAccess, after: &ExecutedAccess) -> bool {
        if before.agent == after.agent {
            return self.are_unordered_subpasses(before, after);
        }
        let all = &self.log.dependencies;
        let mut from = (0..all.len()).filter(|it| all[*it].first_scopes.iter().any(|it| it.contains_in_time(before)));
        let to: Vec<_> = (0..all.len()).filter(|it| all[*it].second_scope.contains_in_time(after)).collect();
        !from.any(|from| to.iter().any(|to| self.chains_in_any_stage[from][*to]))
    }
}

fn is_in_first_scope(op: &ExecutedAccess, number: usize, dependency: &LoggedDependency) -> bool {
    let is_own = matches!(&op.role, OracleAccessRole::Transition { before, .. } if before.contains(&number));
    let mut scopes = dependency.first_scopes.iter();
    is_own
        || match marker_stages(op).zip(dependency.marker_stages) {
            Some((own, later)) => own & !later == 0 && scopes.any(|it| it.contains_in_time(op)),
            None => scopes.any(|it| it.contains(op)),
        }
}

fn is_in_second_scope(op: &ExecutedAccess, number: usize, dependency: &LoggedDependency) -> bool {
    let is_own = matches!(&op.role, OracleAccessRole::Transition { after, .. } if after.contains(&number));
    is_own || dependency.second_scope.contains(op)
}

/// Whether both are in the same render pass instance.
fn is_same_pass(one: &ExecutedAccess, other: &ExecutedAccess) -> bool {
    one.subpass.zip(other.subpass).is_some_and(|(one, other)| one.instance == other.instance)
}

/// Implicit ordering on the host, in the presentation engine, and of attachment accesses in a subpass. Spec:
/// `synchronization-implicit`, `primsrast-order`, `renderpass-load-operations`, `renderpass-store-operations`.
fn is_implicitly_ordered(before: &ExecutedAccess, after: &ExecutedAccess) -> bool {
    if before.agent != after.agent {
        return false;
    }
    match before.agent {
        ExecutionAgent::Host | ExecutionAgent::PresentationEngine(_) => return true,
        ExecutionAgent::Queue(_) => {}
    }
    if !is_same_pass(before, after) {
        return false;
    }
    // Load and store operations are ordered with all commands of the render pass instance, in every subpass.
    let is_loaded = before.role == OracleAccessRole::Load && after.role != OracleAccessRole::Load;
    let is_stored = after.role == OracleAccessRole::Store && before.role != OracleAccessRole::Store;
    if is_loaded && is_attachment_access(after) || is_stored && is_attachment_access(before) {
        return true;
    }
    if before.subpass != after.subpass {
        return false;
    }
    let is_raster_order =
        before.order == after.order && has_raster_order(before, before.order) && has_raster_order(after, before.order);
    is_raster_order
        || before.role == OracleAccessRole::Load && is_attachment_access(after)
        || matches!(after.role, OracleAccessRole::Store | OracleAccessRole::ResolveRead) && is_attachment_access(before)
}

fn has_raster_order(op: &ExecutedAccess, order: RasterOrder) -> bool {
    let (stages, accesses) = match order {
        RasterOrder::Color => (Stage::COLOR_ATTACHMENT_OUTPUT.0, COLOR_ACCESSES),
        RasterOrder::DepthStencil => {
            (Stage::EARLY_FRAGMENT_TESTS.0 | Stage::LATE_FRAGMENT_TESTS.0, DEPTH_STENCIL_ACCESSES)
        }
        _ => (0, 0),
    };
    // A pipeline can include input attachment reads in rasterization order.
    let is_input = op.stage & Stage::FRAGMENT_SHADER.0 != 0 && op.access & Access::INPUT_ATTACHMENT_READ.0 != 0;
    op.stage & stages != 0 && op.access & accesses != 0
        || is_input && matches!(order, RasterOrder::Color | RasterOrder::DepthStencil)
}

fn is_attachment_access(op: &ExecutedAccess) -> bool {
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

/// Layout transitions of barriers execute in submission order, relative to all other transitions of the queue. Spec:
/// `synchronization-image-barrier-layout-transition-order`.
fn are_ordered_transitions(before: &ExecutedAccess, after: &ExecutedAccess, rules: OracleRules) -> bool {
    let source = |op: &ExecutedAccess| match op.role {
        OracleAccessRole::Transition { by, .. } => Some(by),
        _ => None,
    };
    let Some((one, other)) = source(before).zip(source(after)).filter(|_| before.agent == after.agent) else {
        return false;
    };
    let are_layouts = [one, other].iter().all(|it| *it != TransitionSource::OwnershipTransfer);
    rules.all_transitions_ordered
        || are_layouts && (one == TransitionSource::Barrier || other == TransitionSource::Barrier)
}

/// The stages of earlier commands that a buffer marker waits for. Spec: `vkCmdWriteBufferMarker2AMD`.
fn marker_stages(op: &ExecutedAccess) -> Option<u64> {
    op.order.marker_stage().map(|it| masks::first_scope(it.stages(), u32::MAX))
}

/// Whether the second scope of a dependency and a first scope of another one have operations in common. Of markers, a
/// marker has those of the same stage or a logically earlier one in its first scope: everything before the stage of the
/// earlier one is also before that of the later one.
fn continues_chain(one: &LoggedDependency, other: &LoggedDependency) -> bool {
    let mut scopes = other.first_scopes.iter();
    match one.marker_stages.zip(other.marker_stages) {
        Some((own, later)) => own & !later == 0 && scopes.any(|it| one.second_scope.overlaps_in_time(it)),
        None => scopes.any(|it| one.second_scope.intersects(it)),
    }
}

/// For each dependency, all that are reachable from it, itself included. `leads` decides single steps.
fn transitive_closure(
    all: &[LoggedDependency],
    leads: impl Fn(&LoggedDependency, &LoggedDependency) -> bool,
) -> Vec<Vec<bool>> {
    let next: Vec<Vec<usize>> =
        all.iter().map(|one| (0..all.len()).filter(|it| leads(one, &all[*it])).collect()).collect();
    let reach = |start: usize| {
        let mut reached = vec![false; all.len()];
        let mut open = vec![start];
        while let Some(item) = open.pop() {
            if !std::mem::replace(&mut reached[item], true) {
                open.extend(&next[item]);
            }
        }
        reached
    };
    (0..all.len()).map(reach).collect()
}
