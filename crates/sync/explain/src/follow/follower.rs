//! Follows one access through the program. It computes what the access happens before, to which
//! accesses it is visible, and what each operation contributes.

use std::collections::{HashMap, HashSet};

use lavascope_sync_ir::ResourceId;

use super::access_pair::{AccessPair, access_at};
use super::dependency::{ExecutedDependency, FirstScopeOrigin};
use super::sync_state::{QueueSyncState, SignalSyncState, single_stage, single_usage};
use super::timeline::{Completion, ExecutionTimeline, Resumption, TimelineAccess, TimelineAction, TimelineMoment};
use crate::{AccessRole, SyncOperation};
use lavascope_engine::access::access_order;
use lavascope_engine::access::access_order::AccessOrder;
use lavascope_engine::access::usages::{PRESENT, SYNC_TABLES, StageSet, TRANSITION, TRANSITION_WRITE, UsageSet};
use lavascope_engine::dependency::scopes;

/// The role of a dependency between the two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyRole {
    Between,
    /// The later access is a layout transition, and comes after the first scope of this dependency.
    TransitionBarrier,
}

/// What the follower computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowMode {
    CoverageOnly,
    WithOperations,
}

pub(crate) struct FollowResult {
    pub(crate) operations: Vec<SyncOperation>,
    pub(crate) is_ordered: bool,
    pub(crate) is_inside_one_instance: bool,
    pub(crate) has_unordered_subpasses: bool,
    pub(crate) is_covered: bool,
}

/// Follows the earlier access of a pair up to the later access.
pub(crate) fn follow_access(timeline: &ExecutionTimeline<'_>, pair: &AccessPair, want: FollowMode) -> FollowResult {
    let (prior_moment, prior) = access_at(timeline, pair.prior.0, pair.prior.1);
    let (at_moment, at) = access_at(timeline, pair.later.0, pair.later.1);
    let mut follower = Follower {
        timeline,
        pair,
        prior,
        prior_queue: prior_moment.queue,
        later: at,
        later_queue: at_moment.queue,
        at_submitted: at_moment.submitted,
        required_scope: RequiredScope::new(prior, at),
        queue_states: vec![QueueSyncState::default(); usize::from(timeline.presentation()) + 1],
        ended_subpass_states: vec![QueueSyncState::default(); usize::from(timeline.presentation()) + 1],
        event_states: HashMap::new(),
        signal_states: HashMap::new(),
        signaled_so_far: vec![SignalSyncState::default(); timeline.program.queues.len()],
        host_visibility: vec![Vec::new(); timeline.program.queues.len()],
        host_state: SignalSyncState::default(),
        submits: HashMap::new(),
        pass: None,
        suspended: vec![QueueSyncState::default(); timeline.program.queues.len()],
        is_in_transition_first_scope: false,
        before_barrier: None,
        is_memory_freed: false,
        moment_index: 0,
        waited_moments: HashSet::new(),
        mode: want,
        operations: Vec::new(),
    };
    for now in 0..pair.later.0 {
        follower.moment_index = now;
        follower.moment(&timeline.moments[now]);
    }
    follower.finish()
}

/// What a second scope must include to cover the later access.
pub(crate) struct RequiredScope {
    pub(crate) stages: StageSet,
    /// The write must be visible to these usages. If none, it is enough that the write is
    /// available.
    pub(crate) usages: Option<UsageSet>,
}

impl RequiredScope {
    fn new(prior: &TimelineAccess, at: &TimelineAccess) -> RequiredScope {
        if at.role == AccessRole::Transition {
            let stages = at.first_scopes.iter().fold(StageSet::default(), |all, it| all.union(it.scope.src));
            return RequiredScope { stages, usages: None };
        }
        // The layout transitions of a render pass need not be visible to its own store operations.
        let is_own_transition =
            at.role == AccessRole::Store && prior.role == AccessRole::Transition && prior.instance == at.instance;
        let usages = Some(single_usage(at.usage)).filter(|_| !is_own_transition);
        let marker = access_order::marker_stages(at.order).without(SYNC_TABLES.marker);
        let stages = single_stage(SYNC_TABLES.stage(at.usage)).union(marker);
        RequiredScope { stages, usages }
    }

    pub(crate) fn is_satisfied_by(&self, is_write: bool, stages: StageSet, usages: UsageSet) -> bool {
        match self.usages.filter(|_| is_write) {
            Some(own) => own.iter().all(|it| usages.has(it)),
            None => self.stages.0 & stages.0 != 0,
        }
    }
}

pub(crate) struct Follower<'t> {
    pub(crate) timeline: &'t ExecutionTimeline<'t>,
    pub(crate) pair: &'t AccessPair,
    pub(crate) prior: &'t TimelineAccess,
    pub(crate) prior_queue: u8,
    pub(crate) later: &'t TimelineAccess,
    pub(crate) later_queue: u8,
    pub(crate) at_submitted: Option<usize>,
    pub(crate) required_scope: RequiredScope,
    /// For each queue: the state at the current moment.
    pub(crate) queue_states: Vec<QueueSyncState>,
    /// For each queue: the state in subpasses that have ended. It is not ordered before the current
    /// command. But a first scope with those subpasses includes this state.
    ended_subpass_states: Vec<QueueSyncState>,
    /// The state when an event was set, by the index of that moment.
    event_states: HashMap<usize, QueueSyncState>,
    /// The state of a signal or of the end of a batch, by the index of that moment.
    pub(crate) signal_states: HashMap<usize, SignalSyncState>,
    /// For each queue: the state that its signals so far include. A signal includes the earlier
    /// signals of its queue.
    signaled_so_far: Vec<SignalSyncState>,
    /// For each queue: the stages that waited for semaphores, and the host accesses to which the
    /// write was visible then.
    host_visibility: Vec<Vec<(StageSet, UsageSet)>>,
    pub(crate) host_state: SignalSyncState,
    submits: HashMap<usize, SignalSyncState>,
    pass: Option<OpenRenderPass>,
    /// For each queue: the state inside dynamic rendering when it ended. Resumed rendering
    /// continues with it.
    suspended: Vec<QueueSyncState>,
    /// Whether the first scope of the later layout transition includes the earlier access.
    is_in_transition_first_scope: bool,
    /// The state before the barrier or the end of the render pass that executes the later layout
    /// transition.
    before_barrier: Option<QueueSyncState>,
    /// Whether the memory was freed. Later accesses to it are not compared with the followed
    /// access.
    is_memory_freed: bool,
    pub(crate) moment_index: usize,
    pub(crate) waited_moments: HashSet<usize>,
    pub(crate) mode: FollowMode,
    pub(crate) operations: Vec<SyncOperation>,
}

struct OpenRenderPass {
    begin: usize,
    outside: QueueSyncState,
    /// The state outside for first scopes, which includes ended subpasses.
    outside_first_scope: QueueSyncState,
    subpass: Option<usize>,
    ended: Vec<EndedSubpass>,
}

#[derive(Clone, Copy)]
struct EndedSubpass {
    state: QueueSyncState,
    begin: usize,
    end: usize,
}

/// The moments that a first scope includes, and the state at its end.
#[derive(Clone, Copy)]
pub(crate) struct FirstScopeRange {
    pub(crate) state: QueueSyncState,
    pub(crate) queue: u8,
    /// The scope includes only moments after this one, if there is one.
    pub(crate) after: Option<usize>,
    /// The scope includes only moments before this one.
    pub(crate) before: usize,
}

/// How a first scope includes the followed access.
#[derive(Clone, Copy, Default)]
pub(crate) struct FirstScopeMatch {
    /// The masks and the range include the access, directly or by a dependency chain.
    pub(crate) is_included: bool,
    /// The source stages continue the dependency chain of the access, whatever the range is.
    pub(crate) is_chained: bool,
    /// The masks include the access, but it went through another resource in the same memory.
    pub(crate) is_through_alias: bool,
}

impl<'t> Follower<'t> {
    fn moment(&mut self, moment: &'t TimelineMoment) {
        if self.moment_index == self.pair.prior.0 {
            self.begin_access(moment.queue);
        }
        let queue = usize::from(moment.queue);
        match &moment.action {
            TimelineAction::Accesses(accesses) => {
                if let Some(order) = accesses.last().map(|it| it.order).filter(|it| it.is_marker()) {
                    self.follow_through_marker(queue, order);
                }
            }
            TimelineAction::Depends(elements) => self.apply_dependencies(moment, elements),
            TimelineAction::SetsEvent { .. } => {
                self.event_states.insert(self.moment_index, self.state_with_ended_subpasses(queue));
            }
            TimelineAction::PassBegins => self.begin_pass(queue, self.moment_index, None),
            TimelineAction::RenderingBegins { instance, resumption } => {
                self.begin_rendering(queue, *instance, *resumption);
            }
            TimelineAction::RenderingEnds => self.end_rendering(moment),
            TimelineAction::SubpassBegins(elements) => self.begin_subpass(moment, elements),
            TimelineAction::SubpassEnds => self.end_subpass(queue),
            TimelineAction::PassEnds(elements) => self.end_pass(moment, elements),
            TimelineAction::Submits => {
                self.submits.insert(self.moment_index, self.host_state);
            }
            TimelineAction::BatchBegins => self.begin_batch(moment),
            TimelineAction::Waits { signal, stages, location: part } => self.wait(moment, *signal, *stages, *part),
            TimelineAction::Signals { stages, .. } => {
                let stages = scopes::signal_stages(*stages, self.flags(moment.queue));
                self.signal(moment, stages);
            }
            TimelineAction::Completes(completion) => self.complete_batch(queue, *completion),
            TimelineAction::HostWaits(from) => self.apply_host_wait(moment, from),
            TimelineAction::HostSignals => drop(self.signal_states.insert(self.moment_index, self.host_state)),
            TimelineAction::Binds { signals, is_signaling } => self.bind_sparse(moment, signals, *is_signaling),
            TimelineAction::Destroys(resource) => self.destroy_resource(*resource),
            TimelineAction::Acquires(image) => self.acquire_image(moment.queue, *image),
        }
    }

    /// A buffer marker continues the dependency chain of the followed access, if its first scope has the access or the
    /// chain (`vkCmdWriteBufferMarker2AMD`).
    fn follow_through_marker(&mut self, queue: usize, order: AccessOrder) {
        let src = access_order::marker_stages(order).without(SYNC_TABLES.marker);
        let subpass = self.subpass().filter(|it| Some(it.0) == self.prior.instance);
        let is_direct = queue == usize::from(self.prior_queue)
            && self.pair.prior.0 < self.moment_index
            && subpass.is_none_or(|it| Some(it.1) == self.prior.subpass);
        let state = self.state_with_ended_subpasses(queue);
        let (chain, is_included) = match self.prior.is_write() {
            true => (state.available, access_order::are_ordered_markers(self.prior.order, order)),
            false => (state.happens_before, src.has(SYNC_TABLES.stage(self.prior.usage))),
        };
        if chain.0 & src.0 != 0 || is_direct && is_included {
            let marks = &mut self.queue_states[queue];
            let reached = if self.prior.is_write() { &mut marks.available } else { &mut marks.happens_before };
            reached.add(SYNC_TABLES.marker);
        }
    }

    /// Inside a subpass or rendering, first scopes have no markers from outside.
    fn forget_markers(&mut self, queue: usize) {
        let marks = &mut self.queue_states[queue];
        for reached in [&mut marks.available, &mut marks.happens_before] {
            if !reached.has(SYNC_TABLES.copy) {
                *reached = reached.without(SYNC_TABLES.marker);
            }
        }
    }

    fn begin_pass(&mut self, queue: usize, begin: usize, subpass: Option<usize>) {
        self.pass = Some(OpenRenderPass {
            begin,
            outside: self.queue_states[queue],
            outside_first_scope: self.state_with_ended_subpasses(queue),
            subpass,
            ended: Vec::new(),
        });
    }

    /// Dynamic rendering is treated as a render pass with one subpass. Resumed rendering continues
    /// with the state of the suspended rendering.
    fn begin_rendering(&mut self, queue: usize, instance: usize, resumption: Resumption) {
        self.begin_pass(queue, instance, Some(instance));
        match resumption {
            Resumption::Resumed => {
                self.queue_states[queue] = self.suspended.get(queue).copied().unwrap_or_default();
            }
            Resumption::New => self.forget_markers(queue),
        }
    }

    fn end_rendering(&mut self, moment: &'t TimelineMoment) {
        let queue = usize::from(moment.queue);
        if let Some(slot) = self.suspended.get_mut(queue) {
            *slot = self.queue_states[queue];
        }
        self.end_subpass(queue);
        self.end_pass(moment, &[]);
    }

    fn complete_batch(&mut self, queue: usize, completion: Completion) {
        let mut known = self.signal_of(queue, scopes::COMMON_SETS.stages);
        known.merge(self.signaled_so_far[queue]);
        self.signal_states.insert(self.moment_index, known);
        if completion == Completion::Fence {
            self.signaled_so_far[queue] = known;
        }
    }

    /// Stores whether the followed memory was freed. Memory that another resource shares is not
    /// freed.
    fn destroy_resource(&mut self, resource: ResourceId) {
        let piece = &self.pair.memory_range;
        let gone = self.timeline.addresses(self.moment_index).unshared_ranges(resource);
        let has_it = gone.iter().any(|it| it.start <= piece.start && piece.end <= it.end);
        self.is_memory_freed |= has_it && self.pair.prior.0 < self.moment_index;
    }

    /// The presentation engine has released an image. This orders nothing else
    /// (`vkAcquireNextImageKHR`).
    fn acquire_image(&mut self, queue: u8, image: ResourceId) {
        let is_over =
            self.prior_queue == queue && self.pair.prior.0 < self.moment_index && self.prior.resource == image;
        let known = SignalSyncState { happened: is_over, available: is_over, ..SignalSyncState::default() };
        self.signal_states.insert(self.moment_index, known);
    }

    /// Executes the followed access.
    fn begin_access(&mut self, queue: u8) {
        if self.prior.role == AccessRole::Transition {
            self.apply_transition(queue, self.prior.subpass);
            self.record_own_transition_barriers();
        }
        if queue == self.timeline.host() {
            self.host_state.merge(SignalSyncState { happened: true, available: true, ..SignalSyncState::default() });
            let host = self.host_state;
            self.queue_states[usize::from(queue)].merge_wait(host, scopes::COMMON_SETS.host);
        }
    }

    /// Applies the second scopes of the followed layout transition. For a render pass, only those
    /// of the given subpass.
    fn apply_transition(&mut self, queue: u8, subpass: Option<u32>) {
        for gate in self.with_merged_scopes(&self.prior.second_scopes) {
            let Some(usages) = self.visible_after_transition(&gate) else { continue };
            if gate.second_subpass.is_none_or(|it| Some(it) == subpass) {
                let marks = &mut self.queue_states[usize::from(queue)];
                marks.available = marks.available.union(gate.scope.dst);
                marks.visible = marks.visible.union(usages);
            }
        }
    }

    fn state_at_present(&self, timeline_access: &TimelineAccess, submitted: Option<usize>) -> SignalSyncState {
        let host = submitted.and_then(|it| self.submits.get(&it));
        let mut known = SignalSyncState::default();
        timeline_access
            .waited_signals
            .iter()
            .filter_map(|it| self.signal_states.get(it))
            .chain(host)
            .for_each(|it| known.merge(*it));
        known
    }

    pub(crate) fn flags(&self, queue: u8) -> u32 {
        self.timeline.program.queues.get(usize::from(queue)).map_or(0, |it| it.flags)
    }

    pub(crate) fn first_scope_range(&self, queue: u8, element: &ExecutedDependency) -> Option<FirstScopeRange> {
        let pass = self.pass.as_ref();
        Some(match element.first_scope_origin {
            FirstScopeOrigin::Preceding => {
                let after = pass.and_then(|it| it.subpass);
                let own = usize::from(queue);
                let marks = if after.is_some() { self.queue_states[own] } else { self.state_with_ended_subpasses(own) };
                FirstScopeRange { state: marks, queue, after, before: self.moment_index }
            }
            FirstScopeOrigin::Event(moment) => {
                let set_on = self.timeline.moments[moment].queue;
                if set_on != queue && set_on != self.timeline.host() {
                    // An event does not order commands on different queues
                    // (`synchronization-events`).
                    return Some(FirstScopeRange {
                        state: QueueSyncState::default(),
                        queue: set_on,
                        after: None,
                        before: 0,
                    });
                }
                let queue = set_on;
                FirstScopeRange { state: *self.event_states.get(&moment)?, queue, after: None, before: moment }
            }
            FirstScopeOrigin::UnsetEvent => {
                FirstScopeRange { state: QueueSyncState::default(), queue, after: None, before: 0 }
            }
            FirstScopeOrigin::Subpass(index) => {
                let ended = pass?.ended.get(index as usize)?;
                FirstScopeRange { state: ended.state, queue, after: Some(ended.begin), before: ended.end }
            }
            FirstScopeOrigin::BeforeRenderPass => {
                FirstScopeRange { state: pass?.outside_first_scope, queue, after: None, before: pass?.begin }
            }
        })
    }

    /// Whether a first scope includes the moment of the followed access itself.
    pub(crate) fn is_direct(&self, view: &FirstScopeRange) -> bool {
        let prior = self.pair.prior.0;
        view.queue == self.prior_queue && prior < view.before && view.after.is_none_or(|it| prior > it)
    }

    fn state_with_ended_subpasses(&self, queue: usize) -> QueueSyncState {
        let (own, passed) = (self.queue_states[queue], self.ended_subpass_states[queue]);
        let happened = own.happens_before.union(passed.happens_before);
        QueueSyncState { happens_before: happened, available: own.available.union(passed.available), ..own }
    }

    pub(crate) fn match_first_scope(&self, element: &ExecutedDependency, view: &FirstScopeRange) -> FirstScopeMatch {
        let stage = SYNC_TABLES.stage(self.prior.usage);
        let is_direct = self.is_direct(view) && element.scope.src.has(stage);
        if !self.prior.is_write() {
            let is_chained = view.state.happens_before.0 & element.scope.src.0 != 0;
            return FirstScopeMatch { is_included: is_direct || is_chained, is_chained, is_through_alias: false };
        }
        // The write of a layout transition is available without another dependency
        // (`synchronization-image-layout-transitions`).
        let is_chained =
            view.state.available.0 & element.scope.src.0 != 0 || is_direct && self.prior.usage == TRANSITION_WRITE;
        let is_everywhere = is_direct && element.scope.src_global_usages.has(self.prior.usage);
        let is_direct = is_direct && element.scope.src_usages.has(self.prior.usage);
        let is_held = self.covers_memory(element) && (is_direct || is_chained);
        FirstScopeMatch {
            is_included: is_held,
            is_chained,
            is_through_alias: self.pair.is_aliased && (is_chained || is_everywhere),
        }
    }

    /// All dependencies of a command are compared with the state before the command. Then they take
    /// effect.
    fn apply_dependencies(&mut self, moment: &TimelineMoment, elements: &[ExecutedDependency]) {
        let elements = self.with_merged_scopes(elements);
        self.before_barrier =
            Some(self.queue_states[usize::from(moment.queue)]).filter(|_| self.pair.later.0 == self.moment_index + 1);
        self.check_transition_first_scopes(moment);
        let held: Vec<FirstScopeMatch> = elements.iter().map(|it| self.check_dependency(moment, it)).collect();
        for (element, held) in elements.iter().zip(held) {
            self.apply_dependency(moment.queue, element, held);
        }
    }

    /// Compares the first scopes of the later layout transition with the followed access, if the
    /// transition is the next moment.
    fn check_transition_first_scopes(&mut self, moment: &TimelineMoment) {
        if self.later.role != AccessRole::Transition || self.pair.later.0 != self.moment_index + 1 {
            return;
        }
        for gate in self.with_merged_scopes(&self.later.first_scopes) {
            let Some(view) = self.first_scope_range(moment.queue, &gate) else { continue };
            let held = self.match_first_scope(&gate, &view);
            self.is_in_transition_first_scope |= held.is_included || held.is_through_alias;
            self.record_operation(moment, &gate, &view, held, DependencyRole::TransitionBarrier);
        }
    }

    fn is_barrier_of_later_transition(&self, element: &ExecutedDependency) -> bool {
        let is_same = |executed_dependency: &ExecutedDependency| {
            executed_dependency.location == element.location
                && executed_dependency.first_scope_origin == element.first_scope_origin
        };
        self.later.role == AccessRole::Transition
            && self.pair.later.0 == self.moment_index + 1
            && self.later.first_scopes.iter().any(is_same)
    }

    /// Whether the followed layout transition of an earlier subpass comes before the second scope
    /// of a dependency.
    fn is_barrier_of_prior_transition(&self, element: &ExecutedDependency) -> bool {
        let is_same = |it: &ExecutedDependency| it.location == element.location && it.second_subpass.is_some();
        self.prior.role == AccessRole::Transition
            && self.pair.prior.0 < self.moment_index
            && self.subpass().is_some_and(|it| Some(it.0) == self.prior.instance)
            && self.prior.second_scopes.iter().any(is_same)
    }

    fn check_dependency(&mut self, moment: &TimelineMoment, element: &ExecutedDependency) -> FirstScopeMatch {
        let Some(view) = self.first_scope_range(moment.queue, element) else { return FirstScopeMatch::default() };
        let held = self.match_first_scope(element, &view);
        if let FirstScopeOrigin::Event(set) = element.first_scope_origin {
            self.waited_moments.insert(set);
        }
        if !self.is_barrier_of_later_transition(element) && !self.is_barrier_of_prior_transition(element) {
            self.record_operation(moment, element, &view, held, DependencyRole::Between);
        }
        held
    }

    fn apply_dependency(&mut self, queue: u8, element: &ExecutedDependency, held: FirstScopeMatch) {
        let is_by_own_name = self.makes_visible_to_later_alias(element, held);
        let marks = &mut self.queue_states[usize::from(queue)];
        if !self.prior.is_write() {
            if held.is_included {
                marks.happens_before = marks.happens_before.union(element.scope.dst);
            }
            return;
        }
        if held.is_included || held.is_chained {
            marks.available = marks.available.union(element.scope.dst);
        }
        if is_by_own_name {
            marks.visible = marks.visible.union(element.scope.dst_usages);
        }
        if held.is_included {
            marks.visible = marks.visible.union(element.scope.dst_usages);
        }
    }

    fn begin_subpass(&mut self, moment: &TimelineMoment, elements: &[ExecutedDependency]) {
        self.check_transition_first_scopes(moment);
        let held: Vec<FirstScopeMatch> = elements.iter().map(|it| self.check_dependency(moment, it)).collect();
        if let Some(pass) = &mut self.pass {
            self.queue_states[usize::from(moment.queue)] = pass.outside;
            pass.subpass = Some(self.moment_index);
        }
        self.forget_markers(usize::from(moment.queue));
        for (element, held) in elements.iter().zip(held) {
            self.apply_dependency(moment.queue, element, held);
        }
        // A layout transition also comes before later subpasses that use the attachment in the same
        // layout.
        let subpass = self.subpass().filter(|it| Some(it.0) == self.prior.instance);
        if self.prior.role == AccessRole::Transition && self.pair.prior.0 < self.moment_index && subpass.is_some() {
            self.apply_transition(moment.queue, subpass.map(|it| it.1));
        }
    }

    fn end_subpass(&mut self, queue: usize) {
        let marks = self.queue_states[queue];
        if let Some(pass) = &mut self.pass
            && let Some(begin) = pass.subpass.take()
        {
            pass.ended.push(EndedSubpass { state: marks, begin, end: self.moment_index });
        }
    }

    fn end_pass(&mut self, moment: &TimelineMoment, elements: &[ExecutedDependency]) {
        self.check_transition_first_scopes(moment);
        let held: Vec<FirstScopeMatch> = elements.iter().map(|it| self.check_dependency(moment, it)).collect();
        if let Some(pass) = self.pass.take() {
            self.queue_states[usize::from(moment.queue)] = pass.outside;
            let passed = &mut self.ended_subpass_states[usize::from(moment.queue)];
            for ended_subpass in pass.ended {
                passed.happens_before = passed.happens_before.union(ended_subpass.state.happens_before);
                passed.available = passed.available.union(ended_subpass.state.available);
            }
        }
        // The final layout transitions are not commands after the render pass, so dependencies on
        // later commands do not order them (`renderpass-layout-transitions`).
        self.before_barrier =
            Some(self.queue_states[usize::from(moment.queue)]).filter(|_| self.pair.later.0 == self.moment_index + 1);
        for (element, held) in elements.iter().zip(held) {
            self.apply_dependency(moment.queue, element, held);
        }
    }

    fn begin_batch(&mut self, moment: &TimelineMoment) {
        let Some(known) = moment.submitted.and_then(|it| self.submits.get(&it)).copied() else { return };
        // A submission makes writes visible to the device
        // (`synchronization-submission-host-writes`). Visibility to the host needs a dependency to
        // the host stage.
        let device = scopes::COMMON_SETS.device;
        self.queue_states[usize::from(moment.queue)].merge_wait(known, device);
        self.record_submit(moment, known);
    }

    fn wait(
        &mut self,
        moment: &TimelineMoment,
        signal: Option<usize>,
        stages: u64,
        part: crate::BatchSemaphoreLocation,
    ) {
        let Some(signal) = signal else { return };
        self.waited_moments.insert(signal);
        let known = self.signal_states.get(&signal).copied().unwrap_or_default();
        let dst = scopes::destination_stages(stages, self.flags(moment.queue));
        self.record_wait(moment, signal, known, (stages, dst), part);
        let marks = &mut self.queue_states[usize::from(moment.queue)];
        marks.merge_wait(known, dst);
        marks.visible = marks.visible.union(known.visible_to_host);
        self.host_visibility[usize::from(moment.queue)].push((dst, known.visible_to_host));
    }

    /// The state of a signal after some stages. It includes the access if these stages made it, or
    /// if it is ordered before them.
    fn signal_of(&self, queue: usize, stages: StageSet) -> SignalSyncState {
        let mut known = self.state_with_ended_subpasses(queue).signal_state(stages);
        for (_, host) in self.host_visibility[queue].iter().filter(|it| it.0.0 & stages.0 != 0) {
            known.visible_to_host = known.visible_to_host.union(*host);
        }
        let is_own = queue == usize::from(self.prior_queue) && self.pair.prior.0 < self.moment_index;
        if is_own && stages.has(SYNC_TABLES.stage(self.prior.usage)) {
            (known.happened, known.available) = (true, true);
        }
        known
    }

    fn signal(&mut self, moment: &TimelineMoment, stages: StageSet) {
        let queue = usize::from(moment.queue);
        let mut known = self.signal_of(queue, stages);
        self.signaled_so_far[queue].merge(known);
        known.merge(self.signaled_so_far[queue]);
        if let Some(submit) = moment.submitted.and_then(|it| self.submits.get(&it)) {
            known.merge(submit.without_host());
        }
        self.signal_states.insert(self.moment_index, known);
    }

    fn bind_sparse(&mut self, moment: &TimelineMoment, from: &[usize], is_signaling: bool) {
        self.waited_moments.extend(from);
        let mut known = moment.submitted.and_then(|it| self.submits.get(&it)).copied().unwrap_or_default();
        from.iter().filter_map(|it| self.signal_states.get(it)).for_each(|it| known.merge(*it));
        let queue = usize::from(moment.queue);
        known.merge(self.signaled_so_far[queue]);
        if is_signaling {
            self.signaled_so_far[queue] = known;
        }
        self.signal_states.insert(self.moment_index, known);
    }

    fn apply_host_wait(&mut self, moment: &TimelineMoment, from: &[usize]) {
        self.waited_moments.extend(from);
        let mut learned = SignalSyncState::default();
        from.iter().filter_map(|it| self.signal_states.get(it)).for_each(|it| learned.merge(*it));
        self.record_host_wait(moment, from, learned);
        self.host_state.merge(learned);
        let marks = &mut self.queue_states[usize::from(self.timeline.host())];
        if learned.happened {
            marks.happens_before = marks.happens_before.union(scopes::COMMON_SETS.host);
        }
        if learned.available {
            marks.available = marks.available.union(scopes::COMMON_SETS.host);
        }
        marks.visible = marks.visible.union(learned.visible_to_host);
    }

    /// The open subpass: the instance and the index, as in `TimelineAccess`.
    pub(crate) fn subpass(&self) -> Option<(usize, u32)> {
        let pass = self.pass.as_ref()?;
        Some((pass.begin, pass.ended.len() as u32))
    }

    fn finish(mut self) -> FollowResult {
        self.moment_index = self.pair.later.0;
        self.record_unused_operations();
        let is_inside_one_instance = self.later_queue == self.prior_queue
            && self.later.instance.is_some()
            && self.later.instance == self.prior.instance;
        let (prior, later) = ((self.prior.usage, self.prior.order), (self.later.usage, self.later.order));
        let is_in_one_subpass = self.later.subpass == self.prior.subpass;
        let is_ordered = is_inside_one_instance
            && (is_in_one_subpass && access_order::is_ordered(prior, later)
                || access_order::is_ordered_across_subpasses(prior, later));
        let is_apart = is_inside_one_instance && self.is_prior_subpass_unordered();
        // A layout transition also comes after dependencies of other subpasses.
        let is_alone = is_apart && self.later.role != AccessRole::Transition;
        let is_covered = self.is_memory_freed || self.is_implicit() || is_ordered || !is_alone && self.is_safe();
        FollowResult {
            operations: self.operations,
            is_ordered,
            is_inside_one_instance,
            has_unordered_subpasses: is_apart,
            is_covered,
        }
    }

    /// Whether no dependency leads from the subpass of the earlier access to that of the later one.
    /// A layout transition also belongs to the subpasses in its second scopes.
    fn is_prior_subpass_unordered(&self) -> bool {
        let is_unordered = |it: u32| self.later.unordered_subpasses.contains(&it);
        let mut shared = self.prior.second_scopes.iter().filter_map(|it| it.second_subpass);
        self.prior.subpass.is_some_and(is_unordered) && shared.all(is_unordered)
    }

    /// Whether both accesses are on one queue and in implicit order. Layout transitions are ordered
    /// among themselves (`synchronization-image-barrier-layout-transition-order`), and so are
    /// buffer markers. A buffer marker also comes after earlier commands in its stage
    /// (`vkCmdWriteBufferMarker2AMD`).
    fn is_implicit(&self) -> bool {
        let is_transition = |it: &TimelineAccess| it.usage == TRANSITION_WRITE;
        let is_read_in_stage = || {
            let stage = SYNC_TABLES.stage(self.prior.usage);
            !self.prior.is_write() && access_order::marker_stages(self.later.order).has(stage)
        };
        // Commands of two subpasses are in no submission order (`synchronization-submission-order`).
        let is_earlier = self.prior.instance.is_none()
            || self.prior.instance != self.later.instance
            || self.prior.subpass == self.later.subpass;
        let is_in_order = is_transition(self.prior) && is_transition(self.later)
            || is_earlier && access_order::are_ordered_markers(self.prior.order, self.later.order)
            || is_earlier && is_read_in_stage();
        is_in_order && self.prior_queue == self.later_queue
    }

    fn is_safe(&self) -> bool {
        let is_write = self.prior.is_write();
        match self.later.role {
            AccessRole::Transition => {
                // An earlier dependency may already order the access before layout transitions.
                let marks = self.before_barrier.unwrap_or(self.queue_states[usize::from(self.later_queue)]);
                let chain = if is_write { marks.available } else { marks.happens_before };
                self.is_in_transition_first_scope || chain.has(TRANSITION)
            }
            // The presentation engine already owns the image that the application acquires.
            AccessRole::Acquire => true,
            AccessRole::Present => {
                let known = self.state_at_present(self.later, self.at_submitted);
                self.prior_queue == self.later_queue || known.orders(is_write)
            }
            AccessRole::Command
            | AccessRole::Load
            | AccessRole::Store
            | AccessRole::Resolve
            | AccessRole::Host
            | AccessRole::Forgotten => {
                let marks = &self.queue_states[usize::from(self.later_queue)];
                // The presentation engine only reads, so nothing must be made visible after it.
                let is_after_reads =
                    self.prior.usage == PRESENT && marks.available.0 & self.required_scope.stages.0 != 0;
                let stages = if is_write { marks.available } else { marks.happens_before };
                is_after_reads || self.required_scope.is_satisfied_by(is_write, stages, marks.visible)
            }
        }
    }
}
