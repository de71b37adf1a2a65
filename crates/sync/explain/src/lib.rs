//! Why a hazard is one, which change fixes it, and which synchronization is not needed.
//!
//! [`explain`] follows the earlier of two accesses through the program, with masks of what it happens before and to
//! what it is visible, and states for every synchronization operation on the way whether and why it did not cover.
//! [`propose`] turns the gaps into changes and keeps those with which [`lavascope_engine::check`] finds no hazard.
//! [`find_over_synchronization`] removes operations and checks whether anything changes. [`diagnose_hazards`],
//! [`diagnose_over_synchronization`] and [`diagnose_never_executed`] put all that into diagnostics.
//!
//! The names of objects and commands are the caller's ([`ProgramNames`]). The texts for the hazards of the corpus
//! stand beside it, and each code has a page in `docs/hazards`, whose programs are tests.
//!
//! This crate has rules of its own and shares only tables and addresses with the engine, so that an error in one shows
//! as a disagreement.

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
pub use follow::access_detail::{AccessDetail, AccessRelation, LayoutChange, RenderingContext, relation};
pub use follow::coverage::describe_operation;
pub use text::api_names::{access_names, region_text, stage_names};
pub use text::names::{
    CommandSequenceNumber, ExecutorNames, NumberedNames, ProgramNames, object_type, resource_description,
};

/// Two accesses, and what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The later one.
    pub later: ExplainedAccess,
    pub prior: ExplainedAccess,
    /// The part of the resource where they meet, in the words of the later one.
    pub region: Region,
    /// In the order in which they were executed.
    pub operations: Vec<SyncOperation>,
    /// Whether the order of fragments, or of loads and stores, makes them safe.
    pub is_ordered: bool,
    /// Whether both are in one render pass instance.
    pub is_inside_one_instance: bool,
    /// Whether they are in subpasses that no dependency connects: nothing else can help then.
    pub has_unordered_subpasses: bool,
    /// Whether the two are safe.
    pub is_covered: bool,
}

/// One of two accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedAccess {
    pub executed_at: ProgramLocation,
    /// The command buffer in which it was recorded, and the command in it.
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
    /// Of the render pass instance that it is in.
    pub subpass: Option<u32>,
}

/// Who executes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Agent {
    Queue(QueueId),
    Host,
    Presentation,
}

/// What an access is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessRole {
    Command,
    Transition,
    Load,
    Store,
    Resolve,
    Host,
    /// The presentation engine gives an image back.
    Acquire,
    Present,
    /// The earlier access is too old: nothing is known of it but whether it wrote.
    Forgotten,
}

/// A synchronization operation, as it was executed.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncOperation {
    pub executed_at: ProgramLocation,
    pub agent: Agent,
    pub kind: SyncOperationKind,
    pub location: OperationLocation,
    /// Its masks, as given.
    pub scope: SyncScope,
    /// The part of a resource that it is limited to.
    pub resource_region: Option<(ResourceId, Region)>,
    pub coverage: ScopeCoverage,
    /// Why it alone did not make the two accesses safe; empty if it did.
    pub gaps: Vec<CoverageGap>,
    /// The bits with which its masks would have.
    pub missing: SyncScope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncOperationKind {
    Barrier,
    /// Set and waited for.
    Event,
    SubpassDependency,
    /// Signaled and waited for.
    Semaphore,
    /// The host waited for a fence, a timeline or a queue.
    HostWait,
    /// The host handed work to a queue, which comes after what the host did.
    Submit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeCoverage {
    /// The earlier access is in its first scope and the later one in its second.
    Both,
    /// The earlier access is in its first scope, directly or by a chain, but the later one is not in its second.
    FirstOnly,
    /// The earlier access is not in its first scope.
    NotInFirst,
}

/// Why an operation does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoverageGap {
    /// The stage of the earlier access is not in the source stages.
    SourceStage,
    SourceAccess,
    /// The stage of the later access is not in the destination stages.
    DestinationStage,
    DestinationAccess,
    OtherRange,
    OtherResource,
    /// It is about another resource in the same memory than this one, through which the earlier access went,
    PriorThroughAlias(ResourceId),
    /// or the later.
    LaterThroughAlias(ResourceId),
    OtherQueue,
    /// The earlier access is of the presentation engine, and it does not wait for that.
    NotAfterPresentation,
    /// The earlier access is of the host, and it has nothing in its first scope that the host did.
    NotAfterHost,
    /// The later access is of the presentation engine, which does not wait for it.
    NotBeforePresentation,
    /// It was executed before the earlier access.
    BeforeAccess,
    /// It was executed after the later access.
    AfterAccess,
    SetBeforeAccess,
    /// The host set the event, and had not waited for the earlier access.
    SetByHost,
    /// The event was not set when it was waited for.
    NotSet,
    SignaledBeforeAccess,
    /// The signal is of the host or another queue, and no chain leads to it.
    SignaledElsewhere,
    /// Not on the queue of the later access.
    WaitedElsewhere,
    /// The host waited, but what was written was not made visible to it.
    NotVisibleToHost,
    /// A dependency beside the layout transition in one command.
    SameCommand,
    /// The semaphore is waited for, but not by the stage of the later access.
    WaitStages,
    NeverWaited,
    /// The later access is a layout transition whose own first scope has no stages: it waits for nothing.
    TransitionWaitsForNothing,
    /// Its scopes are limited to another subpass.
    OtherSubpass,
    /// It gives the resource to another queue family, whose half has the second scope,
    Release,
    /// or takes it over from one, whose half has the first scope.
    Acquire,
    /// The later access was submitted before the host waited.
    SubmittedBefore,
}

/// Where in a program an operation can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationLocation {
    /// A dependency of a barrier; none: the masks of the whole command, version 1.
    Barrier {
        buffer: CommandBufferId,
        command: u32,
        dependency: Option<u32>,
    },
    /// A dependency of an event wait, and the command that set the event.
    Event {
        set: Option<(CommandBufferId, u32)>,
        buffer: CommandBufferId,
        command: u32,
        event: u32,
        dependency: Option<u32>,
    },
    /// A dependency of a render pass; none: the implicit one.
    Subpass {
        pass: RenderPassId,
        dependency: Option<u32>,
    },
    Semaphore {
        signal: Option<BatchSemaphoreLocation>,
        wait: Option<BatchSemaphoreLocation>,
    },
    /// An event that was set, and not waited for.
    SetEvent {
        buffer: CommandBufferId,
        command: u32,
    },
    /// What the host does.
    Step(u32),
}

/// A wait or a signal of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchSemaphoreLocation {
    pub step: u32,
    pub batch: u32,
    pub index: u32,
}

/// Explains a hazard; none if it is not one of this program.
pub fn explain(program: &Program, found: &Hazard) -> Option<Explanation> {
    Explainer::new(program).explain(found)
}

/// Explains many hazards of one program.
pub struct Explainer<'a> {
    timeline: follow::timeline::ExecutionTimeline<'a>,
}

impl<'a> Explainer<'a> {
    pub fn new(program: &'a Program) -> Explainer<'a> {
        Explainer { timeline: follow::timeline::ExecutionTimeline::new(program) }
    }

    pub fn explain(&self, found: &Hazard) -> Option<Explanation> {
        let pairs = follow::access_pair::pairs_of_hazard(&self.timeline, found);
        pairs.into_iter().next().map(|it| self.explain_pair(&it))
    }

    /// The later access of a hazard, where nothing is known of the earlier one; none if it is not in this program.
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

    /// Every two accesses of the program that follow each other on some memory, and whether they are safe: for
    /// comparing with the engine. Reads that follow reads are left out.
    pub fn adjacent_accesses(&self) -> Vec<AdjacentAccesses> {
        follow::access_pair::adjacent_accesses(&self.timeline)
    }
}

/// Two accesses between which nothing else uses the memory.
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
