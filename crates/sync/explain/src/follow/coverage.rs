//! Decides for each operation whether it covers the two accesses, and if not, why.

use std::collections::HashSet;

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{ProgramLocation, SyncScope};

use super::dependency::{ExecutedDependency, FirstScopeOrigin, OwnershipHalf};
use super::follower::{DependencyRole, FirstScopeMatch, FirstScopeRange, FollowMode, Follower};
use super::sync_state::SignalSyncState;
use super::timeline::{TimelineAction, TimelineMoment, semaphore_scope};
use crate::text::api_names::{access_names, first_scope_stages, first_stage, second_scope_stages, stage_names};
use crate::text::barrier_member::barrier_member;
use crate::{
    AccessRole, Agent, BatchSemaphoreLocation, CoverageGap, OperationLocation, ProgramNames, ScopeCoverage,
    SyncOperation, SyncOperationKind, SyncVersion,
};
use lavascope_engine::access::usages::{
    PRESENT, SYNC_TABLES, StageSet, TRANSITION_WRITE, UsageDesc, UsageIndex, access_members,
};
use lavascope_engine::dependency::scopes;

impl Follower<'_> {
    /// Adds a dependency to the list of operations. A dependency before the earlier access is added
    /// only if it would cover the accesses at a later position.
    pub(crate) fn record_operation(
        &mut self,
        moment: &TimelineMoment,
        element: &ExecutedDependency,
        view: &FirstScopeRange,
        held: FirstScopeMatch,
        part: DependencyRole,
    ) {
        let is_gate = part == DependencyRole::TransitionBarrier;
        if self.mode == FollowMode::CoverageOnly {
            return;
        }
        let mut missing = self.missing(element, is_gate);
        if self.moment_index <= self.pair.prior.0 {
            self.record_misplaced(moment, element, missing, CoverageGap::BeforeAccess);
            return;
        }
        let is_held =
            held.is_included || self.makes_visible_to_later_alias(element, held) || is_gate && held.is_through_alias;
        let mut gaps = if is_held { Vec::new() } else { self.source_gaps(element, view, held, &mut missing) };
        let is_other_subpass = self.is_in_other_subpass();
        let has_target = is_gate
            || self.required_scope.is_satisfied_by(self.prior.is_write(), element.scope.dst, element.scope.dst_usages)
                && moment.queue == self.later_queue;
        if !has_target {
            gaps.extend(self.destination_gaps(element, &mut missing));
            if self.later_queue == self.timeline.host() {
                // A dependency to the host stage takes effect only after the host waits.
                gaps.extend(gaps.is_empty().then_some(CoverageGap::NeverWaited));
            } else if moment.queue != self.later_queue {
                gaps.push(self.later_queue_gap());
            }
        }
        if !is_gate
            && self.later.role == AccessRole::Transition
            && moment.executed_at == self.timeline.moments[self.pair.later.0].executed_at
        {
            gaps.push(CoverageGap::SameCommand);
        }
        if is_other_subpass {
            gaps.push(CoverageGap::OtherSubpass);
        }
        let mut known = HashSet::new();
        gaps.retain(|it| known.insert(*it));
        let verdict = match (is_held || held.is_chained, gaps.is_empty()) {
            (true, true) => ScopeCoverage::Both,
            (true, false) => ScopeCoverage::FirstOnly,
            (false, _) => ScopeCoverage::NotInFirst,
        };
        self.keep(moment, element, verdict, gaps, missing);
    }

    fn keep(
        &mut self,
        moment: &TimelineMoment,
        element: &ExecutedDependency,
        verdict: ScopeCoverage,
        gaps: Vec<CoverageGap>,
        missing: SyncScope,
    ) {
        self.operations.push(SyncOperation {
            executed_at: moment.executed_at.clone(),
            agent: self.timeline.agent(moment.queue),
            kind: element.kind,
            location: element.location,
            member: barrier_member(self.timeline.program, element.location),
            scope: element.given_scope,
            version: element.version(),
            subpasses: element.subpasses(),
            resource_region: element.resource_region.as_ref().map(|it| (it.resource, it.region.clone())),
            coverage: verdict,
            gaps,
            missing,
        });
    }

    /// Adds an operation that would cover the accesses at another position. Only operations in the
    /// command buffers of the two accesses are considered.
    fn record_misplaced(
        &mut self,
        moment: &TimelineMoment,
        element: &ExecutedDependency,
        missing: SyncScope,
        gap: CoverageGap,
    ) {
        let near = match gap {
            CoverageGap::AfterAccess => &self.timeline.moments[self.pair.later.0],
            _ => &self.timeline.moments[self.pair.prior.0],
        };
        let is_near = same_execution(&moment.executed_at, &near.executed_at)
            && element.first_scope_origin == FirstScopeOrigin::Preceding;
        let is_by_name =
            !self.prior.is_write() || self.includes_prior_resource(element) && self.includes_later_resource(element);
        let has_both = missing == SyncScope::default() && is_by_name && self.covers_memory(element);
        if is_near && has_both && !element.is_transition {
            self.keep(moment, element, ScopeCoverage::NotInFirst, vec![gap], missing);
        }
    }

    /// Why an operation does not come after the earlier access, if that access is on another queue,
    /// the host or the presentation engine.
    fn prior_queue_gap(&self) -> CoverageGap {
        match self.timeline.agent(self.prior_queue) {
            Agent::Queue(_) => CoverageGap::OtherQueue,
            Agent::Host => CoverageGap::NotAfterHost,
            Agent::Presentation => CoverageGap::NotAfterPresentation,
        }
    }

    /// Why an operation does not come before the later access, if that access is on another queue,
    /// the host or the presentation engine.
    fn later_queue_gap(&self) -> CoverageGap {
        match self.timeline.agent(self.later_queue) {
            Agent::Queue(_) => CoverageGap::OtherQueue,
            Agent::Host => CoverageGap::NeverWaited,
            Agent::Presentation => CoverageGap::NotBeforePresentation,
        }
    }

    /// Why the first scope of a dependency does not include the earlier access.
    fn source_gaps(
        &self,
        element: &ExecutedDependency,
        view: &FirstScopeRange,
        held: FirstScopeMatch,
        missing: &mut SyncScope,
    ) -> Vec<CoverageGap> {
        if element.ownership_half == Some(OwnershipHalf::Acquire) {
            (missing.src_stages, missing.src_access) = (0, 0);
            return vec![CoverageGap::Acquire];
        }
        if !self.is_direct(view) && !self.has_chain(view) {
            let gap = match element.first_scope_origin {
                FirstScopeOrigin::UnsetEvent => CoverageGap::NotSet,
                _ if view.queue == self.timeline.host() && view.queue != self.prior_queue => CoverageGap::SetByHost,
                _ if view.queue != self.prior_queue => self.prior_queue_gap(),
                FirstScopeOrigin::Event(_) => CoverageGap::SetBeforeAccess,
                FirstScopeOrigin::Subpass(_) | FirstScopeOrigin::Preceding | FirstScopeOrigin::BeforeRenderPass => {
                    CoverageGap::OtherSubpass
                }
            };
            return vec![gap];
        }
        if held.is_through_alias && element.resource_region.is_some() && self.includes_later_resource(element) {
            // The write through the alias reaches the first scope. A dependency on the full range
            // would make it visible to the later access.
            (missing.src_stages, missing.src_access) = (0, 0);
            return vec![CoverageGap::OtherRange];
        }
        let mut gaps = Vec::new();
        gaps.extend((missing.src_stages != 0).then_some(CoverageGap::SourceStage));
        if let Some(gap) = self.prior_alias_gap(element) {
            missing.src_access = 0;
            gaps.push(gap);
            return gaps;
        }
        gaps.extend((missing.src_access != 0).then_some(CoverageGap::SourceAccess));
        if self.prior.is_write() && !self.covers_memory(element) {
            let is_same = element.resource_region.as_ref().is_some_and(|it| it.resource == self.prior.resource);
            gaps.push(if is_same { CoverageGap::OtherRange } else { CoverageGap::OtherResource });
        }
        if gaps.is_empty() {
            // The masks are sufficient. But the access is outside of the first scope, and its
            // dependency chain leads to other stages.
            gaps.push(if view.queue == self.prior_queue {
                CoverageGap::OtherSubpass
            } else {
                CoverageGap::SourceStage
            });
        }
        gaps
    }

    /// Why the second scope of a dependency does not include the later access.
    fn destination_gaps(&self, element: &ExecutedDependency, missing: &mut SyncScope) -> Vec<CoverageGap> {
        if element.ownership_half == Some(OwnershipHalf::Release) {
            (missing.dst_stages, missing.dst_access) = (0, 0);
            return vec![CoverageGap::Release];
        }
        let name = self.later_alias_gap(element);
        if name.is_some() {
            missing.dst_access = 0;
        }
        let stage = (missing.dst_stages != 0).then_some(CoverageGap::DestinationStage);
        let access = (missing.dst_access != 0).then_some(CoverageGap::DestinationAccess);
        let nothing = self.waits_for_nothing().then_some(CoverageGap::TransitionWaitsForNothing);
        stage.into_iter().chain(access).chain(nothing).chain(name).collect()
    }

    /// Whether the later access is a layout transition with an empty first scope.
    fn waits_for_nothing(&self) -> bool {
        self.later.role == AccessRole::Transition && self.required_scope.stages.0 == 0
    }

    fn has_chain(&self, view: &FirstScopeRange) -> bool {
        let chain = if self.prior.is_write() { view.state.available } else { view.state.happens_before };
        !chain.is_empty()
    }

    fn is_in_other_subpass(&self) -> bool {
        self.subpass().is_some_and(|pair| {
            let is_begin = matches!(self.timeline.moments[self.moment_index].action, TimelineAction::PassEnds(_));
            !is_begin && self.later.instance.zip(self.later.subpass) != Some(pair)
        })
    }

    /// The mask bits that a dependency lacks to include both accesses in its scopes.
    fn missing(&self, element: &ExecutedDependency, is_gate: bool) -> SyncScope {
        let (given, flags) = (element.given_scope, self.flags(self.prior_queue));
        let is_memory = self.prior.is_write();
        let source =
            DependencySide { stages: given.src_stages, access: given.src_access, expanded_stages: element.scope.src };
        let destination =
            DependencySide { stages: given.dst_stages, access: given.dst_access, expanded_stages: element.scope.dst };
        let (src_stages, src_access) = source.missing(self.prior.usage, is_memory, flags);
        let (dst_stages, dst_access) = if is_gate {
            (0, 0)
        } else if self.later.role == AccessRole::Transition {
            let is_reached = self.required_scope.stages.0 & element.scope.dst.0 != 0;
            (if is_reached || self.waits_for_nothing() { 0 } else { self.required_stage() }, 0)
        } else {
            destination.missing(self.later.usage, is_memory, self.flags(self.later_queue))
        };
        SyncScope { src_stages, src_access, dst_stages, dst_access }
    }

    /// The stage that must wait for the earlier access. For a layout transition, it is the first
    /// source stage of the dependencies that it comes after.
    fn required_stage(&self) -> u64 {
        let given = self.later.first_scopes.iter().fold(0, |all, it| all | it.given_scope.src_stages);
        let wanted = first_scope_stages(given);
        match self.later.role {
            AccessRole::Transition if wanted != 0 => first_stage(wanted),
            _ => stage_bit(self.later.usage),
        }
    }

    /// Adds the dependencies that the earlier layout transition belongs to. Only their second
    /// scopes can have gaps, because the transition comes after their first scopes
    /// (`synchronization-image-layout-transitions`).
    pub(crate) fn record_own_transition_barriers(&mut self) {
        if self.mode == FollowMode::CoverageOnly {
            return;
        }
        let moment = &self.timeline.moments[self.pair.prior.0];
        for gate in self.with_merged_scopes(&self.prior.second_scopes) {
            let Some(usages) = self.visible_after_transition(&gate) else { continue };
            // A transition between two subpasses is no part of a dependency from the outside.
            let is_own = self.prior.first_scopes.iter().any(|it| it.location == gate.location);
            if gate.first_scope_origin == FirstScopeOrigin::BeforeRenderPass && !is_own {
                continue;
            }
            // If dependencies lead into several subpasses, only those into the subpass of the later
            // access and of the transition are relevant.
            let is_other_subpass = gate.second_subpass.is_some_and(|it| !self.is_subpass_of_later(it));
            if is_other_subpass && gate.second_subpass != self.prior.subpass {
                continue;
            }
            let mut missing = SyncScope { src_stages: 0, src_access: 0, ..self.missing(&gate, false) };
            let has_target = self.required_scope.is_satisfied_by(true, gate.scope.dst, usages);
            let mut gaps = Vec::new();
            if !has_target {
                gaps.extend(self.destination_gaps(&gate, &mut missing));
            }
            if moment.queue != self.later_queue {
                gaps.push(self.later_queue_gap());
            }
            if is_other_subpass && self.later.instance == self.prior.instance {
                gaps.push(CoverageGap::OtherSubpass);
            }
            let verdict = if gaps.is_empty() { ScopeCoverage::Both } else { ScopeCoverage::FirstOnly };
            self.keep(moment, &gate, verdict, gaps, missing);
        }
    }

    fn is_subpass_of_later(&self, subpass: u32) -> bool {
        self.later.instance == self.prior.instance && self.later.subpass == Some(subpass)
    }

    pub(crate) fn record_wait(
        &mut self,
        moment: &TimelineMoment,
        signal: usize,
        known: SignalSyncState,
        (stages, dst): (u64, StageSet),
        part: BatchSemaphoreLocation,
    ) {
        if self.mode == FollowMode::CoverageOnly || self.moment_index <= self.pair.prior.0 {
            return;
        }
        let from = &self.timeline.moments[signal];
        let (given, own) = match from.action {
            TimelineAction::Signals { stages, location: part } => (stages, Some(part)),
            _ => (PipelineStageFlags2::ALL_COMMANDS.0, None),
        };
        let is_held = known.orders(self.prior.is_write());
        let mut missing = SyncScope::default();
        let mut gaps = Vec::new();
        if !is_held {
            if from.queue != self.prior_queue {
                gaps.push(CoverageGap::SignaledElsewhere);
            } else if signal < self.pair.prior.0 {
                gaps.push(CoverageGap::SignaledBeforeAccess);
            } else {
                gaps.push(CoverageGap::SourceStage);
                missing.src_stages = stage_bit(self.prior.usage);
            }
        }
        if moment.queue != self.later_queue {
            gaps.push(match self.later_queue_gap() {
                CoverageGap::OtherQueue => CoverageGap::WaitedElsewhere,
                other => other,
            });
        } else if self.required_scope.stages.0 & dst.0 == 0 {
            gaps.push(CoverageGap::WaitStages);
            missing.dst_stages = self.required_stage();
        }
        let location = OperationLocation::Semaphore { signal: own, wait: Some(part) };
        let scope = semaphore_scope(given, stages);
        self.push_queue_operation(moment, SyncOperationKind::Semaphore, location, scope, (is_held, gaps, missing));
    }

    pub(crate) fn record_submit(&mut self, moment: &TimelineMoment, known: SignalSyncState) {
        let is_own = self.at_submitted.is_some() && self.at_submitted == moment.submitted;
        let is_batch = same_batch(&moment.executed_at, &self.timeline.moments[self.pair.later.0].executed_at);
        if self.mode == FollowMode::WithOperations && self.prior_queue == self.timeline.host() && is_own && is_batch {
            let is_held = known.orders(self.prior.is_write());
            let gaps = if is_held { Vec::new() } else { vec![CoverageGap::BeforeAccess] };
            let location = OperationLocation::Step(
                moment.submitted.map_or(0, |it| step_of(&self.timeline.moments[it].executed_at)),
            );
            let scope = semaphore_scope(PipelineStageFlags2::HOST.0, PipelineStageFlags2::ALL_COMMANDS.0);
            self.push_queue_operation(
                moment,
                SyncOperationKind::Submit,
                location,
                scope,
                (is_held, gaps, SyncScope::default()),
            );
        }
    }

    pub(crate) fn record_host_wait(&mut self, moment: &TimelineMoment, from: &[usize], learned: SignalSyncState) {
        if self.mode == FollowMode::CoverageOnly || self.moment_index <= self.pair.prior.0 {
            return;
        }
        let is_held = learned.orders(self.prior.is_write());
        let mut gaps = Vec::new();
        let mut missing = SyncScope::default();
        if !is_held {
            let is_own = from.iter().any(|it| self.timeline.moments[*it].queue == self.prior_queue);
            gaps.push(if is_own { CoverageGap::SignaledBeforeAccess } else { CoverageGap::SignaledElsewhere });
        } else if self.later_queue == self.timeline.host() {
            if self.prior.is_write() && !learned.visible_to_host.has(self.later.usage) {
                gaps.push(CoverageGap::NotVisibleToHost);
                missing.dst_stages = PipelineStageFlags2::HOST.0;
                missing.dst_access = SYNC_TABLES.usages[usize::from(self.later.usage.0)].access;
            }
        } else if self.at_submitted.is_none_or(|it| it < self.moment_index) {
            gaps.push(CoverageGap::SubmittedBefore);
        }
        let location = OperationLocation::Step(step_of(&moment.executed_at));
        let scope = semaphore_scope(PipelineStageFlags2::ALL_COMMANDS.0, PipelineStageFlags2::ALL_COMMANDS.0);
        self.push_queue_operation(moment, SyncOperationKind::HostWait, location, scope, (is_held, gaps, missing));
    }

    fn push_queue_operation(
        &mut self,
        moment: &TimelineMoment,
        kind: SyncOperationKind,
        location: OperationLocation,
        scope: SyncScope,
        (is_held, gaps, missing): (bool, Vec<CoverageGap>, SyncScope),
    ) {
        let verdict = match (is_held, gaps.is_empty()) {
            (true, true) => ScopeCoverage::Both,
            (true, false) => ScopeCoverage::FirstOnly,
            (false, _) => ScopeCoverage::NotInFirst,
        };
        let (place, lane) = (moment.executed_at.clone(), self.timeline.agent(moment.queue));
        self.operations.push(SyncOperation {
            executed_at: place,
            agent: lane,
            kind,
            location,
            member: None,
            scope,
            version: SyncVersion::Two,
            subpasses: None,
            resource_region: None,
            coverage: verdict,
            gaps,
            missing,
        });
    }

    /// Adds the signals and event sets between the two accesses that nothing waits for, and the
    /// barriers after the later access.
    pub(crate) fn record_unused_operations(&mut self) {
        if self.mode == FollowMode::CoverageOnly {
            return;
        }
        for index in self.pair.prior.0 + 1..self.pair.later.0 {
            let moment = &self.timeline.moments[index];
            if self.waited_moments.contains(&index)
                || moment.queue != self.prior_queue
                || self.is_signal_of_later(index)
            {
                continue;
            }
            let (kind, location, given) = match &moment.action {
                TimelineAction::Signals { stages, location: part } => (
                    SyncOperationKind::Semaphore,
                    OperationLocation::Semaphore { signal: Some(*part), wait: None },
                    *stages,
                ),
                TimelineAction::SetsEvent { given, recorded_at: Some((buffer, command)), .. } => (
                    SyncOperationKind::Event,
                    OperationLocation::SetEvent { buffer: *buffer, command: *command },
                    *given,
                ),
                _ => continue,
            };
            let mut gaps = vec![CoverageGap::NeverWaited];
            let mut missing = SyncScope::default();
            let stages = scopes::signal_stages(given, self.flags(moment.queue));
            if !stages.has(SYNC_TABLES.stage(self.prior.usage)) {
                gaps.insert(0, CoverageGap::SourceStage);
                missing.src_stages = stage_bit(self.prior.usage);
            }
            self.push_queue_operation(moment, kind, location, semaphore_scope(given, 0), (false, gaps, missing));
        }
        self.record_present_waits();
        for index in self.pair.later.0 + 1..self.timeline.moments.len() {
            let moment = &self.timeline.moments[index];
            let TimelineAction::Depends(elements) = &moment.action else { continue };
            for element in elements {
                let missing = self.missing(element, false);
                self.record_misplaced(moment, element, missing, CoverageGap::AfterAccess);
            }
        }
    }

    fn is_signal_of_later(&self, index: usize) -> bool {
        self.later.waited_signals.contains(&index)
    }

    /// Adds the semaphores that a present waits for.
    fn record_present_waits(&mut self) {
        for signal in self.later.waited_signals.clone() {
            let TimelineAction::Signals { stages, location: part } = self.timeline.moments[signal].action else {
                continue;
            };
            let is_held = self.signal_states.get(&signal).is_some_and(|it| it.orders(self.prior.is_write()));
            let mut gaps = Vec::new();
            let mut missing = SyncScope::default();
            if !is_held && self.timeline.moments[signal].queue != self.prior_queue {
                gaps.push(CoverageGap::SignaledElsewhere);
            } else if !is_held && signal < self.pair.prior.0 {
                gaps.push(CoverageGap::SignaledBeforeAccess);
            } else if !is_held {
                gaps.push(CoverageGap::SourceStage);
                missing.src_stages = stage_bit(self.prior.usage);
            }
            let location = OperationLocation::Semaphore { signal: Some(part), wait: None };
            let moment = &self.timeline.moments[self.pair.later.0];
            let scope = semaphore_scope(stages, PipelineStageFlags2::ALL_COMMANDS.0);
            self.push_queue_operation(moment, SyncOperationKind::Semaphore, location, scope, (is_held, gaps, missing));
        }
    }
}

/// The source masks or the destination masks of a dependency.
struct DependencySide {
    stages: u64,
    access: u64,
    /// The expanded stages of its synchronization scope.
    expanded_stages: StageSet,
}

impl DependencySide {
    /// The stage bit and the access bit that the masks lack to include a usage.
    fn missing(&self, usage: UsageIndex, is_memory: bool, flags: u32) -> (u64, u64) {
        const EVERYTHING: u64 = AccessFlags2::MEMORY_READ.0 | AccessFlags2::MEMORY_WRITE.0;
        let stage = SYNC_TABLES.stage(usage);
        let bit = stage_bit(usage);
        if !is_memory || usage == TRANSITION_WRITE || usage == PRESENT {
            return (if self.expanded_stages.has(stage) { 0 } else { bit }, 0);
        }
        let UsageDesc { access, sufficient_access, .. } = SYNC_TABLES.usages[usize::from(usage.0)];
        let has_stage = scopes::access_scope(self.stages, EVERYTHING, flags).has(usage);
        let has_access = access_members(self.access) & sufficient_access != 0;
        (if has_stage { 0 } else { bit }, if has_access { 0 } else { access })
    }
}

/// The stage bit of a usage. Only `VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT` includes layout
/// transitions.
pub(crate) fn stage_bit(usage: UsageIndex) -> u64 {
    match SYNC_TABLES.stages[usize::from(SYNC_TABLES.stage(usage).0)].bit {
        0 => PipelineStageFlags2::ALL_COMMANDS.0,
        bit => bit,
    }
}

fn same_execution(left: &ProgramLocation, right: &ProgramLocation) -> bool {
    let (ProgramLocation::Command(left), ProgramLocation::Command(right)) = (left, right) else { return false };
    (left.step, left.batch, left.primary) == (right.step, right.batch, right.primary)
}

fn same_batch(left: &ProgramLocation, right: &ProgramLocation) -> bool {
    let (ProgramLocation::Command(left), ProgramLocation::Command(right)) = (left, right) else { return false };
    (left.step, left.batch) == (right.step, right.batch)
}

fn step_of(place: &ProgramLocation) -> u32 {
    match place {
        ProgramLocation::Step(step) => *step,
        ProgramLocation::Command(at) => at.step,
    }
}

/// Whether the operation is a semaphore signal that nothing waits for.
fn is_unwaited_signal(sync_operation: &SyncOperation) -> bool {
    matches!(sync_operation.location, OperationLocation::Semaphore { wait: None, .. })
        && sync_operation.gaps.contains(&CoverageGap::NeverWaited)
}

/// The name of an operation, with its location.
pub(crate) fn operation_name(sync_operation: &SyncOperation, names: &dyn ProgramNames) -> String {
    match (sync_operation.kind, sync_operation.location) {
        (SyncOperationKind::Barrier, _) => format!("barrier at {}", names.location(&sync_operation.executed_at)),
        (SyncOperationKind::Event, OperationLocation::SetEvent { .. }) => {
            format!("event set by {}", names.location(&sync_operation.executed_at))
        }
        (SyncOperationKind::Event, _) => format!("event wait at {}", names.location(&sync_operation.executed_at)),
        (SyncOperationKind::SubpassDependency, OperationLocation::Subpass { pass, dependency: Some(index) }) => {
            format!("subpass dependency {index} of {}", names.render_pass(pass))
        }
        (SyncOperationKind::SubpassDependency, OperationLocation::Subpass { pass, dependency: None }) => {
            format!("implicit subpass dependency of {}", names.render_pass(pass))
        }
        (SyncOperationKind::SubpassDependency, _) => "subpass dependency".to_owned(),
        (SyncOperationKind::Semaphore, _) if is_unwaited_signal(sync_operation) => {
            format!("semaphore signal of {}", names.location(&sync_operation.executed_at))
        }
        (SyncOperationKind::Semaphore, _) => {
            format!("semaphore wait of {}", names.location(&sync_operation.executed_at))
        }
        (SyncOperationKind::HostWait, _) => format!("host wait at {}", names.location(&sync_operation.executed_at)),
        (SyncOperationKind::Submit, _) => format!("submission of {}", names.location(&sync_operation.executed_at)),
    }
}

/// An operation in one line: its name, its masks and its verdict.
pub fn describe_operation(sync_operation: &SyncOperation, names: &dyn ProgramNames) -> String {
    let what = operation_name(sync_operation, names);
    let masks = match sync_operation.kind {
        SyncOperationKind::HostWait | SyncOperationKind::Submit => String::new(),
        _ => format!(" [{}]", scope_text(sync_operation)),
    };
    let about = sync_operation
        .resource_region
        .as_ref()
        .map(|(resource, region)| format!(" on {}", names.region(*resource, region)));
    let about = about.unwrap_or_default();
    format!("{what}{masks}{about}: {}", verdict_text(sync_operation, names))
}

fn scope_text(sync_operation: &SyncOperation) -> String {
    let scope = &sync_operation.scope;
    match (sync_operation.kind, sync_operation.location) {
        (SyncOperationKind::Semaphore, _) if is_unwaited_signal(sync_operation) => {
            return stage_names(scope.src_stages);
        }
        (_, OperationLocation::SetEvent { .. }) => return stage_names(scope.src_stages),
        (SyncOperationKind::Semaphore, _) => {
            return format!("{} => {}", stage_names(scope.src_stages), stage_names(scope.dst_stages));
        }
        _ => {}
    }
    let side = |stages, access| format!("{}({})", stage_names(stages), access_names(access));
    format!("{} => {}", side(scope.src_stages, scope.src_access), side(scope.dst_stages, scope.dst_access))
}

fn verdict_text(sync_operation: &SyncOperation, names: &dyn ProgramNames) -> String {
    // If the mask already has the missing stages, another gap explains why nothing comes after it.
    let lacks_nothing = sync_operation.missing.dst_stages & !sync_operation.scope.dst_stages == 0;
    let gaps = sync_operation.gaps.iter().filter(|it| **it != CoverageGap::DestinationStage || !lacks_nothing);
    let because: Vec<String> = gaps.map(|gap| gap_text(*gap, sync_operation, names)).collect();
    let because = because.join("; ");
    match sync_operation.coverage {
        ScopeCoverage::Both => "covers".to_owned(),
        // The first scope includes the access only by a dependency chain, and the chain does not
        // continue.
        ScopeCoverage::FirstOnly if sync_operation.gaps.iter().any(is_about_first_scope) => {
            format!("does not cover: {because}")
        }
        ScopeCoverage::FirstOnly if sync_operation.gaps.contains(&CoverageGap::Release) => {
            format!("has the earlier access, but {because}")
        }
        ScopeCoverage::FirstOnly
            if !matches!(sync_operation.kind, SyncOperationKind::HostWait | SyncOperationKind::Submit)
                && second_scope_stages(sync_operation.scope.dst_stages) == 0 =>
        {
            format!("has the earlier access, but no stage waits for it: {because}")
        }
        ScopeCoverage::FirstOnly => {
            let reach = match sync_operation.kind {
                SyncOperationKind::HostWait | SyncOperationKind::Submit => "what the host does next".to_owned(),
                _ => stage_names(second_scope_stages(sync_operation.scope.dst_stages)),
            };
            format!("has the earlier access and orders it before {reach}, but {because}")
        }
        ScopeCoverage::NotInFirst => format!("does not cover: {because}"),
    }
}

fn is_about_first_scope(gap: &CoverageGap) -> bool {
    matches!(gap, CoverageGap::SourceStage | CoverageGap::SourceAccess | CoverageGap::PriorThroughAlias(_))
}

fn never_waited_text(sync_operation: &SyncOperation) -> &'static str {
    match sync_operation.location {
        OperationLocation::SetEvent { .. } => "no vkCmdWaitEvents waits for it before the later access",
        OperationLocation::Semaphore { wait: None, .. } => "nothing waits for it before the later access",
        _ => "the host does not wait for it",
    }
}

fn gap_text(gap: CoverageGap, sync_operation: &SyncOperation, names: &dyn ProgramNames) -> String {
    let missing = &sync_operation.missing;
    let about = || sync_operation.resource_region.as_ref().map_or_else(String::new, |pair| names.resource(pair.0));
    match gap {
        CoverageGap::NeverWaited => never_waited_text(sync_operation).to_owned(),
        CoverageGap::SignaledBeforeAccess | CoverageGap::SignaledElsewhere
            if sync_operation.kind == SyncOperationKind::HostWait =>
        {
            "what it waits for does not come after the earlier access".to_owned()
        }
        CoverageGap::WaitStages if missing.dst_stages == PipelineStageFlags2::ALL_COMMANDS.0 => {
            "the layout transition does not wait for it".to_owned()
        }
        CoverageGap::SourceStage if missing.src_stages & !PipelineStageFlags2::ALL_COMMANDS.0 != 0 => {
            format!("its source stages lack {}", stage_names(missing.src_stages))
        }
        CoverageGap::SourceStage => "its source stages do not continue the chain from the earlier access".to_owned(),
        CoverageGap::SourceAccess => format!("its source accesses lack {}", access_names(missing.src_access)),
        CoverageGap::DestinationStage => format!("its destination stages lack {}", stage_names(missing.dst_stages)),
        CoverageGap::DestinationAccess => format!("its destination accesses lack {}", access_names(missing.dst_access)),
        CoverageGap::OtherRange => "it is about another range of the resource".to_owned(),
        CoverageGap::OtherResource => "it is about another resource".to_owned(),
        CoverageGap::PriorThroughAlias(other) => {
            let other = names.resource(other);
            format!("it is about {}; the earlier access went through {other}, which has the same memory", about())
        }
        CoverageGap::LaterThroughAlias(other) => {
            let other = names.resource(other);
            format!("it is about {}; the later access goes through {other}, which has the same memory", about())
        }
        CoverageGap::OtherQueue => "it is on another queue".to_owned(),
        CoverageGap::SetByHost => "the host set the event, and not after the earlier access".to_owned(),
        CoverageGap::TransitionWaitsForNothing => {
            "the layout transition waits for no stage: it has no source stages of its own".to_owned()
        }
        CoverageGap::NotAfterPresentation => "it does not wait for the presentation engine".to_owned(),
        CoverageGap::NotAfterHost => "its first scope has no accesses of the host".to_owned(),
        CoverageGap::NotBeforePresentation => "the presentation does not wait for it".to_owned(),
        CoverageGap::BeforeAccess => "it was executed before the earlier access".to_owned(),
        CoverageGap::AfterAccess => "it was executed after the later access".to_owned(),
        CoverageGap::SetBeforeAccess => "the event was set before the earlier access".to_owned(),
        CoverageGap::NotSet => "the event was not set when it was waited for".to_owned(),
        CoverageGap::SameCommand => {
            "the same command performs the layout transition, and dependencies of one command form no dependency chain"
                .to_owned()
        }
        CoverageGap::NotVisibleToHost => {
            "writes become visible to the host only by a dependency to VK_PIPELINE_STAGE_2_HOST_BIT".to_owned()
        }
        CoverageGap::SignaledElsewhere => "its signal does not come after the earlier access".to_owned(),
        CoverageGap::WaitedElsewhere => "another queue waits for it".to_owned(),
        CoverageGap::SignaledBeforeAccess => "it was signaled before the earlier access".to_owned(),
        CoverageGap::WaitStages => format!("{} does not wait for it", stage_names(missing.dst_stages)),
        CoverageGap::OtherSubpass => "its scopes are limited to another subpass".to_owned(),
        CoverageGap::Release => {
            format!("it gives {} to another queue family: its second scope has no accesses of this queue", about())
        }
        CoverageGap::Acquire => {
            format!(
                "it takes {} over from another queue family: its first scope has no accesses of this queue",
                about()
            )
        }
        CoverageGap::SubmittedBefore => "the later access was submitted before it".to_owned(),
    }
}
