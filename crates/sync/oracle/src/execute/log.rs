//! The log of an execution: every access, and every dependency between two sets of operations.
//!
//! One clock counts for the whole program, in the order of execution. Each dependency keeps its two synchronization
//! scopes and two access scopes; dependencies are never merged.

use lavascope_sync_ir::{ProgramLocation, QueueFamilyTransfer, RasterOrder, ResourceId, SparseBind};

use crate::execute::masks;

/// A point of the clock. All accesses of one command have the same time.
pub(crate) type Time = u32;

pub(crate) const END: Time = Time::MAX;

/// Executes its operations in an order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExecutionAgent {
    Queue(u32),
    Host,
    /// The presentation engine, separately for each image.
    PresentationEngine(u32),
}

/// An access that the program executed.
#[derive(Clone, Debug)]
pub(crate) struct ExecutedAccess {
    pub(crate) time: Time,
    pub(crate) agent: ExecutionAgent,
    pub(crate) place: ProgramLocation,
    /// The number of the access within its command.
    pub(crate) index: u32,
    pub(crate) resource: ResourceId,
    pub(crate) cells: Vec<u32>,
    pub(crate) stage: u64,
    /// Zero if no access flag names this access.
    pub(crate) access: u64,
    pub(crate) is_write: bool,
    pub(crate) role: OracleAccessRole,
    pub(crate) order: RasterOrder,
    pub(crate) subpass: Option<SubpassInstance>,
}

/// Accesses that the specification treats specially.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OracleAccessRole {
    Plain,
    /// A layout transition: it happens after the first scopes of the dependencies in `after`, and before the second
    /// scopes of those in `before`.
    Transition {
        by: TransitionSource,
        after: Vec<usize>,
        before: Vec<usize>,
        /// In a render pass: the subpasses of these second scopes.
        subpasses: Vec<u32>,
    },
    Load,
    Store,
    ResolveRead,
    Present,
    Acquire,
}

/// The command that performs a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransitionSource {
    /// A barrier, or a wait for events, that changes the layout.
    Barrier,
    RenderPass,
    /// The release or acquire of a queue family ownership transfer that does not change the layout.
    OwnershipTransfer,
}

/// A subpass of one render pass instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubpassInstance {
    pub(crate) instance: usize,
    pub(crate) subpass: u32,
}

/// A synchronization scope: the operations of an agent strictly between two times, in some stages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SynchronizationScope {
    pub(crate) agent: ExecutionAgent,
    pub(crate) from: Time,
    pub(crate) to: Time,
    pub(crate) stages: u64,
}

/// An access scope: memory accesses of the operations in a synchronization scope.
#[derive(Clone, Debug)]
pub(crate) enum AccessScope {
    All,
    /// Only these stages (without logically earlier or later ones) and access flags; all cells if `cells` is none.
    Masked {
        stages: u64,
        access: u64,
        cells: Option<ResourceCells>,
    },
    /// What buffer markers write.
    Markers,
}

/// Some cells of a resource.
#[derive(Clone, Debug)]
pub(crate) struct ResourceCells {
    pub(crate) cells: Vec<u32>,
    /// The resource and its compatible aliases.
    pub(crate) resources: Vec<ResourceId>,
}

/// One dependency, made by a barrier, an event, a semaphore, a submission or a wait on the host.
#[derive(Clone, Debug)]
pub(crate) struct LoggedDependency {
    pub(crate) first_scopes: Vec<SynchronizationScope>,
    pub(crate) second_scope: SynchronizationScope,
    pub(crate) available: Vec<AccessScope>,
    pub(crate) visible: Vec<AccessScope>,
    /// For the dependency of a buffer marker: the stages that the marker comes after. Its first scopes also have earlier
    /// markers that come after some of these stages only (`vkCmdWriteBufferMarker2AMD`).
    pub(crate) marker_stages: Option<u64>,
}

/// Everything that happened in an execution.
#[derive(Default)]
pub(crate) struct ExecutionLog {
    pub(crate) accesses: Vec<ExecutedAccess>,
    /// Reads that may have happened, with unknown cells.
    pub(crate) possible_reads: Vec<ExecutedAccess>,
    pub(crate) dependencies: Vec<LoggedDependency>,
    /// For each render pass instance: whether dependencies lead from one subpass to another, in whatever stages.
    pub(crate) subpass_reachability: Vec<Vec<Vec<bool>>>,
    pub(crate) destroyed: Vec<(Time, ResourceId)>,
    /// The destroyed resources that shared no cells with others.
    pub(crate) destroyed_unshared: Vec<(Time, ResourceId)>,
    /// Sparse binds, with their times.
    pub(crate) binds: Vec<(Time, SparseBind)>,
    pub(crate) transfers: Vec<OwnershipTransfer>,
    pub(crate) subpasses: Vec<SubpassBegin>,
    /// Step and batch of what still waits for a semaphore at the end. A present counts as batch zero.
    pub(crate) blocked: Vec<(u32, u32)>,
}

/// The release or acquire half of a queue family ownership transfer.
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
    /// The cells inside the render area, for each attachment.
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

    /// As [`SynchronizationScope::contains`], but stages do not matter.
    pub(crate) fn contains_in_time(&self, op: &ExecutedAccess) -> bool {
        self.agent == op.agent && self.from < op.time && op.time < self.to
    }

    /// Whether an operation could be in both scopes. That is enough for a dependency chain, even if there is no such
    /// operation.
    pub(crate) fn intersects(&self, other: &SynchronizationScope) -> bool {
        self.stages & other.stages != 0 && self.overlaps_in_time(other)
    }

    /// As [`SynchronizationScope::intersects`], but stages do not matter.
    pub(crate) fn overlaps_in_time(&self, other: &SynchronizationScope) -> bool {
        self.agent == other.agent && self.from.max(other.from) < self.to.min(other.to)
    }
}

impl AccessScope {
    /// Whether an access to the cell is in the access scope. The caller checks the synchronization scope.
    pub(crate) fn includes(&self, op: &ExecutedAccess, cell: u32) -> bool {
        match self {
            AccessScope::All => true,
            AccessScope::Markers => op.order.marker_stage().is_some(),
            AccessScope::Masked { stages, access, cells } => {
                let is_part = |it: &ResourceCells| it.cells.contains(&cell) && it.resources.contains(&op.resource);
                let is_named = access & masks::names_of_access(op.stage, op.access) != 0;
                stages & op.stage != 0 && is_named && cells.as_ref().is_none_or(is_part)
            }
        }
    }
}
