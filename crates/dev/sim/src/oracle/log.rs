//! What was executed: every access, and every dependency between sets of operations.
//!
//! One clock counts for the whole program, in the order of execution. Dependencies are the specification's: two sets
//! of operations and two sets of memory accesses, kept as they are and never merged.

use lavascope_sync_ir::{ProgramLocation, QueueFamilyTransfer, RasterOrder, ResourceId, SparseBind};

/// A point of the clock. All accesses of one command have the same.
pub(super) type Time = u32;

pub(super) const END: Time = Time::MAX;

/// Who executes things in an order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExecutionAgent {
    Queue(u32),
    Host,
    /// The presentation engine, as far as it has to do with one image.
    PresentationEngine(u32),
}

/// An access that took place.
#[derive(Clone, Debug)]
pub(super) struct ExecutedAccess {
    pub(super) time: Time,
    pub(super) agent: ExecutionAgent,
    pub(super) place: ProgramLocation,
    /// The place among the accesses of the command.
    pub(super) index: u32,
    pub(super) resource: ResourceId,
    pub(super) cells: Vec<u32>,
    pub(super) stage: u64,
    /// Zero for what no mask can name.
    pub(super) access: u64,
    pub(super) is_write: bool,
    pub(super) role: OracleAccessRole,
    pub(super) order: RasterOrder,
    pub(super) subpass: Option<SubpassInstance>,
}

/// What an access is, where the specification treats it specially.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OracleAccessRole {
    Plain,
    /// Happens after the first scopes of some dependencies and before the second scopes of others.
    Transition {
        after: Vec<usize>,
        before: Vec<usize>,
    },
    Load,
    Store,
    ResolveRead,
    Present,
    Acquire,
}

/// A subpass of one execution of a render pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SubpassInstance {
    pub(super) instance: usize,
    pub(super) subpass: u32,
}

/// Operations of a line strictly between two times, in some stages.
#[derive(Clone, Copy, Debug)]
pub(super) struct SynchronizationScope {
    pub(super) agent: ExecutionAgent,
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) stages: u64,
}

/// Memory accesses among the operations of a scope.
#[derive(Clone, Debug)]
pub(super) enum AccessScope {
    All,
    /// Stages as given, without those logically earlier or later; and some cells through some resources, or all.
    Masked {
        stages: u64,
        access: u64,
        cells: Option<ResourceCells>,
    },
}

/// A part of a resource.
#[derive(Clone, Debug)]
pub(super) struct ResourceCells {
    pub(super) cells: Vec<u32>,
    /// The resource, with its compatible aliases.
    pub(super) resources: Vec<ResourceId>,
}

/// One dependency: of a barrier, an event, a semaphore, a submission, a wait of the host.
#[derive(Clone, Debug)]
pub(super) struct LoggedDependency {
    pub(super) first_scopes: Vec<SynchronizationScope>,
    pub(super) second_scope: SynchronizationScope,
    pub(super) available: Vec<AccessScope>,
    pub(super) visible: Vec<AccessScope>,
}

/// Everything that happened.
#[derive(Default)]
pub(super) struct ExecutionLog {
    pub(super) accesses: Vec<ExecutedAccess>,
    pub(super) dependencies: Vec<LoggedDependency>,
    /// Per execution of a render pass: whether dependencies lead from one subpass to another, in whatever stages.
    pub(super) subpass_reachability: Vec<Vec<Vec<bool>>>,
    pub(super) destroyed: Vec<(Time, ResourceId)>,
    /// Of these, what had its cells for itself.
    pub(super) destroyed_unshared: Vec<(Time, ResourceId)>,
    /// Bindings of memory to sparse resources.
    pub(super) binds: Vec<(Time, SparseBind)>,
    pub(super) transfers: Vec<OwnershipTransfer>,
    pub(super) subpasses: Vec<SubpassBegin>,
    /// Batches, and presents as batch zero, that still wait at the end.
    pub(super) blocked: Vec<(u32, u32)>,
}

/// Half of a transfer between queue families.
pub(super) struct OwnershipTransfer {
    pub(super) time: Time,
    pub(super) place: ProgramLocation,
    pub(super) resource: ResourceId,
    pub(super) cells: Vec<u32>,
    pub(super) ownership: QueueFamilyTransfer,
    pub(super) is_release: bool,
}

/// A subpass begins.
pub(super) struct SubpassBegin {
    pub(super) time: Time,
    pub(super) place: ProgramLocation,
    pub(super) at: SubpassInstance,
    /// What is inside the render area of each attachment.
    pub(super) attachments: Vec<(ResourceId, Vec<u32>)>,
    /// Attachments that the subpass preserves.
    pub(super) preserved: Vec<u32>,
    /// Attachments whose contents become undefined.
    pub(super) undefined: Vec<u32>,
}

impl SynchronizationScope {
    pub(super) fn contains(&self, op: &ExecutedAccess) -> bool {
        self.stages & op.stage != 0 && self.contains_in_time(op)
    }

    /// As [`SynchronizationScope::contains`], whatever the stages.
    pub(super) fn contains_in_time(&self, op: &ExecutedAccess) -> bool {
        self.agent == op.agent && self.from < op.time && op.time < self.to
    }

    /// Whether one operation could be in both: enough for a chain, even if there is none.
    pub(super) fn intersects(&self, other: &SynchronizationScope) -> bool {
        self.stages & other.stages != 0 && self.overlaps_in_time(other)
    }

    /// As [`SynchronizationScope::intersects`], whatever the stages.
    pub(super) fn overlaps_in_time(&self, other: &SynchronizationScope) -> bool {
        self.agent == other.agent && self.from.max(other.from) < self.to.min(other.to)
    }
}

impl AccessScope {
    /// Whether they include the access to that cell, provided that its operation is in the scope.
    pub(super) fn includes(&self, op: &ExecutedAccess, cell: u32) -> bool {
        match self {
            AccessScope::All => true,
            AccessScope::Masked { stages, access, cells } => {
                let is_part = |it: &ResourceCells| it.cells.contains(&cell) && it.resources.contains(&op.resource);
                stages & op.stage != 0 && access & op.access != 0 && cells.as_ref().is_none_or(is_part)
            }
        }
    }
}
