//! What was executed: every access, and every dependency between sets of operations.
//!
//! One clock counts for the whole program, in the order of execution. Dependencies are the specification's: two sets
//! of operations and two sets of memory accesses, kept as they are and never merged.

use lavascope_sync_ir::{ProgramLocation, QueueFamilyTransfer, RasterOrder, ResourceId, SparseBind};

use crate::execute::masks;

/// A point of the clock. All accesses of one command have the same.
pub(crate) type Time = u32;

pub(crate) const END: Time = Time::MAX;

/// Who executes things in an order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecutionAgent {
    Queue(u32),
    Host,
    /// The presentation engine, as far as it has to do with one image.
    PresentationEngine(u32),
}

/// An access that took place.
#[derive(Clone, Debug)]
pub(crate) struct ExecutedAccess {
    pub(crate) time: Time,
    pub(crate) agent: ExecutionAgent,
    pub(crate) place: ProgramLocation,
    /// The place among the accesses of the command.
    pub(crate) index: u32,
    pub(crate) resource: ResourceId,
    pub(crate) cells: Vec<u32>,
    pub(crate) stage: u64,
    /// Zero for what no mask can name.
    pub(crate) access: u64,
    pub(crate) is_write: bool,
    pub(crate) role: OracleAccessRole,
    pub(crate) order: RasterOrder,
    pub(crate) subpass: Option<SubpassInstance>,
}

/// What an access is, where the specification treats it specially.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OracleAccessRole {
    Plain,
    /// Happens after the first scopes of some dependencies and before the second scopes of others.
    Transition {
        by: TransitionSource,
        after: Vec<usize>,
        before: Vec<usize>,
        /// In a render pass: the subpasses that these second scopes are in.
        subpasses: Vec<u32>,
    },
    Load,
    Store,
    ResolveRead,
    Present,
    Acquire,
}

/// What a transition belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransitionSource {
    /// A barrier, or a wait for events, that changes a layout.
    Barrier,
    RenderPass,
    /// Half of a transfer between queue families that changes no layout.
    OwnershipTransfer,
}

/// A subpass of one execution of a render pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubpassInstance {
    pub(crate) instance: usize,
    pub(crate) subpass: u32,
}

/// Operations of a line strictly between two times, in some stages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SynchronizationScope {
    pub(crate) agent: ExecutionAgent,
    pub(crate) from: Time,
    pub(crate) to: Time,
    pub(crate) stages: u64,
}

/// Memory accesses among the operations of a scope.
#[derive(Clone, Debug)]
pub(crate) enum AccessScope {
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
pub(crate) struct ResourceCells {
    pub(crate) cells: Vec<u32>,
    /// The resource, with its compatible aliases.
    pub(crate) resources: Vec<ResourceId>,
}

/// One dependency: of a barrier, an event, a semaphore, a submission, a wait of the host.
#[derive(Clone, Debug)]
pub(crate) struct LoggedDependency {
    pub(crate) first_scopes: Vec<SynchronizationScope>,
    pub(crate) second_scope: SynchronizationScope,
    pub(crate) available: Vec<AccessScope>,
    pub(crate) visible: Vec<AccessScope>,
}

/// Everything that happened.
#[derive(Default)]
pub(crate) struct ExecutionLog {
    pub(crate) accesses: Vec<ExecutedAccess>,
    /// Reads that may have taken place, of whatever resource.
    pub(crate) possible_reads: Vec<ExecutedAccess>,
    pub(crate) dependencies: Vec<LoggedDependency>,
    /// Per execution of a render pass: whether dependencies lead from one subpass to another, in whatever stages.
    pub(crate) subpass_reachability: Vec<Vec<Vec<bool>>>,
    pub(crate) destroyed: Vec<(Time, ResourceId)>,
    /// Of these, what had its cells for itself.
    pub(crate) destroyed_unshared: Vec<(Time, ResourceId)>,
    /// Bindings of memory to sparse resources.
    pub(crate) binds: Vec<(Time, SparseBind)>,
    pub(crate) transfers: Vec<OwnershipTransfer>,
    pub(crate) subpasses: Vec<SubpassBegin>,
    /// Batches, and presents as batch zero, that still wait at the end.
    pub(crate) blocked: Vec<(u32, u32)>,
}

/// Half of a transfer between queue families.
pub(crate) struct OwnershipTransfer {
    pub(crate) time: Time,
    pub(crate) place: ProgramLocation,
    pub(crate) resource: ResourceId,
    pub(crate) cells: Vec<u32>,
    pub(crate) ownership: QueueFamilyTransfer,
    pub(crate) is_release: bool,
}

/// A subpass begins.
pub(crate) struct SubpassBegin {
    pub(crate) time: Time,
    pub(crate) place: ProgramLocation,
    pub(crate) at: SubpassInstance,
    /// What is inside the render area of each attachment.
    pub(crate) attachments: Vec<(ResourceId, Vec<u32>)>,
    /// Attachments that the subpass preserves.
    pub(crate) preserved: Vec<u32>,
    /// Attachments whose contents become undefined.
    pub(crate) undefined: Vec<u32>,
}

impl SynchronizationScope {
    pub(crate) fn contains(&self, op: &ExecutedAccess) -> bool {
        self.stages & op.stage != 0 && self.contains_in_time(op)
    }

    /// As [`SynchronizationScope::contains`], whatever the stages.
    pub(crate) fn contains_in_time(&self, op: &ExecutedAccess) -> bool {
        self.agent == op.agent && self.from < op.time && op.time < self.to
    }

    /// Whether one operation could be in both: enough for a chain, even if there is none.
    pub(crate) fn intersects(&self, other: &SynchronizationScope) -> bool {
        self.stages & other.stages != 0 && self.overlaps_in_time(other)
    }

    /// As [`SynchronizationScope::intersects`], whatever the stages.
    pub(crate) fn overlaps_in_time(&self, other: &SynchronizationScope) -> bool {
        self.agent == other.agent && self.from.max(other.from) < self.to.min(other.to)
    }
}

impl AccessScope {
    /// Whether they include the access to that cell, provided that its operation is in the scope.
    pub(crate) fn includes(&self, op: &ExecutedAccess, cell: u32) -> bool {
        match self {
            AccessScope::All => true,
            AccessScope::Masked { stages, access, cells } => {
                let is_part = |it: &ResourceCells| it.cells.contains(&cell) && it.resources.contains(&op.resource);
                let is_named = access & masks::names_of_access(op.stage, op.access) != 0;
                stages & op.stage != 0 && is_named && cells.as_ref().is_none_or(is_part)
            }
        }
    }
}
