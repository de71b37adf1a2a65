//! Explains hazards, proposes fixes for them, and finds synchronization that is not needed.
//!
//! [`explain`] follows the earlier of two accesses through the program. It keeps masks of the
//! stages that the access happens before and of the accesses to which it is visible. For each
//! synchronization operation between the two, it states whether the operation covers the accesses,
//! and why not. [`propose`] turns the gaps into changes, and keeps the changes after which
//! [`lavascope_engine::check`] finds no hazard. [`find_over_synchronization`] removes operations,
//! and tests whether the result changes. [`diagnose_hazards`], [`diagnose_over_synchronization`]
//! and [`diagnose_never_executed`] turn the results into diagnostics.
//!
//! The caller supplies the names of objects and commands ([`ProgramNames`]). The expected texts for
//! the hazards of the corpus are stored with the corpus. Each code has a page in `docs/hazards`,
//! and tests run the programs of these pages.
//!
//! This crate implements the synchronization rules a second time. It shares only tables and
//! addresses with the engine, so an error in one of the two shows as a disagreement.

#![forbid(unsafe_code)]

mod diagnose;
mod fix;
mod follow;
mod text;

use lavascope_sync_ir::{
    CommandBufferId, Hazard, Program, ProgramLocation, QueueId, Region, RenderPassId, ResourceId, SyncScope,
};

pub use diagnose::certainty::{
    HazardCertainty, hazard_certainty, hazard_certainty_between, host_accesses, prior_writes,
};
pub use diagnose::fault::{diagnose_faults, fault_causes, fault_code, fault_severity};
pub use diagnose::hazard::{HazardDetail, describe_hazard, diagnose_hazards, hazard_causes, report, set_fixes};
pub use diagnose::never_executed::{NEVER_EXECUTED, blocked_submissions, diagnose_never_executed};
pub use diagnose::over_synchronization::{OVER_SYNCHRONIZATION, diagnose_over_synchronization};
pub use diagnose::race::{diagnose_races, race_causes, race_code, race_texts, race_title};
pub use diagnose::render_area::is_beside_render_area;
pub use fix::change::{BatchLocation, HostWait, ProgramChange, ProgramFix};
pub use fix::proposal::{Proposal, propose};
pub use fix::redundant_sync::{CheckBudget, OverSynchronization, RedundantSync, Removal, find_over_synchronization};
pub use fix::sync_version::{SyncVersion, SyncVersions};
pub use follow::access_detail::{AccessDetail, AccessRelation, LayoutChange, RenderingContext, relation};
pub use follow::coverage::describe_operation;
pub use text::api_names::{access_names, region_text, stage_names};
pub use text::names::{
    CommandSequenceNumber, ExecutorNames, NumberedNames, ProgramNames, object_type, resource_description,
};

/// Two accesses, and the synchronization operations between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The access that the hazard reports.
    pub later: ExplainedAccess,
    pub prior: ExplainedAccess,
    /// The region on which the two accesses overlap, in the resource of the later access.
    pub region: Region,
    /// The operations in execution order.
    pub operations: Vec<SyncOperation>,
    /// Whether rasterization order, or the order of load and store operations, makes the two
    /// accesses safe (`primsrast-order`).
    pub is_ordered: bool,
    /// Whether both accesses are in one render pass instance.
    pub is_inside_one_instance: bool,
    /// Whether the accesses are in subpasses that no subpass dependency connects. No other
    /// synchronization can order them then.
    pub has_unordered_subpasses: bool,
    /// Whether the program synchronizes the two accesses.
    pub is_covered: bool,
}

/// An access of a hazard, with everything that a message needs.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedAccess {
    pub executed_at: ProgramLocation,
    /// The command buffer that contains the command, and the index of the command.
    pub recorded_at: Option<(CommandBufferId, u32)>,
    pub agent: Agent,
    pub role: AccessRole,
    pub resource: ResourceId,
    pub region: Region,
    /// One bit of `VkPipelineStageFlags2`; zero for layout transitions and presentation.
    pub stage: u64,
    /// One bit of `VkAccessFlags2`; zero for layout transitions and presentation.
    pub access: u64,
    pub is_write: bool,
    pub detail: AccessDetail,
    pub within: RenderingContext,
    /// The subpass of the access, if it is in a render pass instance.
    pub subpass: Option<u32>,
}

/// The queue, the host or the presentation engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Agent {
    Queue(QueueId),
    Host,
    Presentation,
}

/// The operation that makes an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessRole {
    Command,
    Transition,
    Load,
    Store,
    Resolve,
    Host,
    /// The application acquires an image from the presentation engine.
    Acquire,
    Present,
    /// The earlier access is too old. The engine only knows whether it was a write.
    Forgotten,
}

/// A synchronization operation that was executed.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncOperation {
    pub executed_at: ProgramLocation,
    pub agent: Agent,
    pub kind: SyncOperationKind,
    pub location: OperationLocation,
    /// The barrier among the parameters of its call, if the call has several: `pImageMemoryBarriers[1]`.
    pub member: Option<String>,
    /// The masks that the application passed.
    pub scope: SyncScope,
    /// The version of the command, which has its own names for the masks.
    pub version: SyncVersion,
    /// The subpasses that a subpass dependency connects. `None` in the pair is the outside of the
    /// render pass.
    pub subpasses: Option<(Option<u32>, Option<u32>)>,
    /// The resource and the region to which the operation is limited.
    pub resource_region: Option<(ResourceId, Region)>,
    pub coverage: ScopeCoverage,
    /// The reasons why this operation alone does not make the two accesses safe. Empty if it does.
    pub gaps: Vec<CoverageGap>,
    /// The mask bits that the operation lacks to cover the two accesses.
    pub missing: SyncScope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncOperationKind {
    Barrier,
    /// A wait for an event, with the command that set the event.
    Event,
    SubpassDependency,
    /// A signal of a semaphore and a wait for it.
    Semaphore,
    /// The host waited for a fence, a timeline semaphore or a queue.
    HostWait,
    /// The host submitted work to a queue. The work comes after the earlier accesses of the host
    /// (`synchronization-submission-host-writes`).
    Submit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeCoverage {
    /// The first scope includes the earlier access, and the second scope includes the later access.
    Both,
    /// The first scope includes the earlier access, directly or by a dependency chain. The second
    /// scope does not include the later access.
    FirstOnly,
    /// The first scope does not include the earlier access.
    NotInFirst,
}

/// Why an operation does not cover the two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoverageGap {
    /// The source stages do not include the stage of the earlier access.
    SourceStage,
    SourceAccess,
    /// The destination stages do not include the stage of the later access.
    DestinationStage,
    DestinationAccess,
    OtherRange,
    OtherResource,
    /// The operation is limited to another resource in the same memory. The earlier access used the
    /// resource in this value.
    PriorThroughAlias(ResourceId),
    /// The operation is limited to another resource in the same memory. The later access uses the
    /// resource in this value.
    LaterThroughAlias(ResourceId),
    OtherQueue,
    /// The presentation engine made the earlier access, and the operation does not wait for it.
    NotAfterPresentation,
    /// The host made the earlier access, and the first scope of the operation includes no host
    /// accesses.
    NotAfterHost,
    /// The presentation engine makes the later access, and does not wait for the operation.
    NotBeforePresentation,
    /// The operation was executed before the earlier access.
    BeforeAccess,
    /// The operation was executed after the later access.
    AfterAccess,
    SetBeforeAccess,
    /// The host set the event, but did not wait for the earlier access before that.
    SetByHost,
    /// The event was not set when a command waited for it.
    NotSet,
    SignaledBeforeAccess,
    /// The host or another queue signaled the semaphore, and no dependency chain leads from the
    /// earlier access to the signal.
    SignaledElsewhere,
    /// Another queue than that of the later access waits for the semaphore.
    WaitedElsewhere,
    /// The host waited, but no dependency makes the write visible to the host.
    NotVisibleToHost,
    /// The later access is a layout transition of the same command. The dependencies of one command
    /// form no dependency chain with each other.
    SameCommand,
    /// A batch waits for the semaphore, but not in the stage of the later access.
    WaitStages,
    NeverWaited,
    /// The later access is a layout transition whose first scope has no stages, so it waits for
    /// nothing.
    TransitionWaitsForNothing,
    /// The scopes of the operation are limited to another subpass.
    OtherSubpass,
    /// A release: the second scope belongs to the acquire on the other queue family
    /// (`synchronization-queue-transfers-release`).
    Release,
    /// An acquire: the first scope belongs to the release on the other queue family
    /// (`synchronization-queue-transfers-acquire`).
    Acquire,
    /// The later access was submitted before the host waited.
    SubmittedBefore,
}

/// The part of a program that defines an operation, and that a fix can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationLocation {
    /// A dependency of a barrier command. Without an index, the masks of the whole command, which
    /// only version 1 has.
    Barrier {
        buffer: CommandBufferId,
        command: u32,
        dependency: Option<u32>,
    },
    /// A dependency of a wait for an event, and the command that set the event.
    Event {
        set: Option<(CommandBufferId, u32)>,
        buffer: CommandBufferId,
        command: u32,
        event: u32,
        dependency: Option<u32>,
    },
    /// A subpass dependency. Without an index, the implicit dependency (`VkSubpassDependency`).
    Subpass {
        pass: RenderPassId,
        dependency: Option<u32>,
    },
    Semaphore {
        signal: Option<BatchSemaphoreLocation>,
        wait: Option<BatchSemaphoreLocation>,
    },
    /// A command that sets an event, if no command waits for the event.
    SetEvent {
        buffer: CommandBufferId,
        command: u32,
    },
    /// A step of the host.
    Step(u32),
}

/// The location of a wait or a signal in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchSemaphoreLocation {
    pub step: u32,
    pub batch: u32,
    pub index: u32,
}

/// Explains a hazard. None if the program does not contain its accesses.
pub fn explain(program: &Program, found: &Hazard) -> Option<Explanation> {
    Explainer::new(program).explain(found)
}

/// Explains many hazards of one program.
pub struct Explainer<'a> {
    timeline: follow::timeline::ExecutionTimeline<'a>,
    versions: SyncVersions,
}

impl<'a> Explainer<'a> {
    pub fn new(program: &'a Program) -> Explainer<'a> {
        let versions = SyncVersions::of(program);
        Explainer { timeline: follow::timeline::ExecutionTimeline::new(program), versions }
    }

    /// With the versions in which fixes may write new commands.
    pub fn with_versions(self, versions: SyncVersions) -> Explainer<'a> {
        Explainer { versions, ..self }
    }

    pub fn explain(&self, found: &Hazard) -> Option<Explanation> {
        let pairs = follow::access_pair::pairs_of_hazard(&self.timeline, found);
        pairs.into_iter().next().map(|it| self.explain_pair(&it))
    }

    /// Explains the later access of a hazard, if nothing is known of the earlier access. None if
    /// the program does not contain it.
    pub(crate) fn explain_later(&self, found: &Hazard) -> Option<Explanation> {
        let (moment, used) = follow::access_pair::later_access(&self.timeline, found)?;
        let later = self.describe_access(moment, used);
        let prior = ExplainedAccess {
            executed_at: found.prior.clone(),
            recorded_at: None,
            role: AccessRole::Forgotten,
            region: found.region.clone(),
            stage: 0,
            access: 0,
            is_write: follow::access_pair::writes_of_hazard(found.kind).1,
            detail: AccessDetail::Command(lavascope_sync_ir::Origin::NONE),
            within: RenderingContext::Nothing,
            subpass: None,
            ..later.clone()
        };
        Some(Explanation {
            later,
            prior,
            region: found.region.clone(),
            operations: Vec::new(),
            is_ordered: false,
            is_inside_one_instance: false,
            has_unordered_subpasses: false,
            is_covered: false,
        })
    }

    fn explain_pair(&self, pair: &follow::access_pair::AccessPair) -> Explanation {
        let followed =
            follow::follower::follow_access(&self.timeline, pair, follow::follower::FollowMode::WithOperations);
        Explanation {
            later: self.describe_access(pair.later.0, pair.later.1),
            prior: self.describe_access(pair.prior.0, pair.prior.1),
            region: pair.region.clone(),
            operations: followed.operations,
            is_ordered: followed.is_ordered,
            is_inside_one_instance: followed.is_inside_one_instance,
            has_unordered_subpasses: followed.has_unordered_subpasses,
            is_covered: followed.is_covered,
        }
    }

    fn describe_access(&self, moment: usize, used: usize) -> ExplainedAccess {
        let (moment, used) = follow::access_pair::access_at(&self.timeline, moment, used);
        let desc = &lavascope_engine::access::usages::SYNC_TABLES.usages[usize::from(used.usage.0)];
        ExplainedAccess {
            executed_at: moment.executed_at.clone(),
            recorded_at: follow::dependency::recorded_location(self.timeline.program, &moment.executed_at),
            agent: self.timeline.agent(moment.queue),
            role: used.role,
            resource: used.resource,
            region: used.region.clone(),
            stage: lavascope_engine::access::usages::SYNC_TABLES.stages[usize::from(desc.stage.0)].bit,
            access: desc.access,
            is_write: used.is_write(),
            detail: used.detail,
            within: used.within,
            subpass: used.subpass,
        }
    }

    /// All pairs of accesses with no other access to the same memory between them, and whether each
    /// pair is safe. Tests compare them with the engine. Pairs of two reads are not included.
    pub fn adjacent_accesses(&self) -> Vec<AdjacentAccesses> {
        follow::access_pair::adjacent_accesses(&self.timeline)
    }
}

/// Two accesses with no other access to the same memory between them.
#[derive(Clone, Debug, PartialEq)]
pub struct AdjacentAccesses {
    pub prior: ProgramLocation,
    pub later: ProgramLocation,
    pub resource: ResourceId,
    pub is_covered: bool,
}

impl follow::timeline::ExecutionTimeline<'_> {
    fn agent(&self, queue: u8) -> Agent {
        match queue {
            byte if byte == self.host() => Agent::Host,
            byte if byte == self.presentation() => Agent::Presentation,
            byte => Agent::Queue(QueueId(u32::from(byte))),
        }
    }
}
