//! Executes command buffers: actions, barriers and events.
//!
//! Spec: `synchronization-pipeline-barriers`, `synchronization-events`, `synchronization-queue-transfers`.

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::{
    Access, Barrier, Certainty, Command, CommandBufferId, CommandLocation, Dependency as Element, DependencyTarget,
    EventId, OriginKind, ProgramLocation, QueueFamilyTransfer, RasterOrder, Region, ResourceId, SetEvent, WaitEvents,
};

use super::{
    executor::ProgramExecutor,
    log::{
        AccessScope, END, ExecutedAccess, ExecutionAgent, LoggedDependency, OracleAccessRole, OwnershipTransfer,
        ResourceCells, SynchronizationScope, Time, TransitionSource,
    },
    masks::{self, EVERY_STAGE, TRANSITION_STAGE},
    rendering::ExecutedPassInstance,
};

/// The queue, command buffer and render pass in which commands execute.
pub(crate) struct Environment<'p> {
    pub(crate) queue: u32,
    pub(crate) pass: Option<ExecutedPassInstance<'p>>,
    pub(crate) suspended: Option<ExecutedPassInstance<'p>>,
}

/// A signaled event: the first scope of its signal operation.
#[derive(Clone, Copy)]
pub(crate) struct EventState {
    pub(crate) line: ExecutionAgent,
    pub(crate) time: Time,
    /// The stages of `vkCmdSetEvent`. `vkCmdWaitEvents2` passes its own masks.
    pub(crate) stages: u64,
}

/// The source and destination stage masks of a command.
#[derive(Clone, Copy)]
struct StageMasks {
    first: u64,
    second: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The elements that form one dependency: all elements of a command in version 1, a single element in version 2.
#[derive(Clone, Copy)]
struct DependencyGroup<'e> {
    version: Version,
    elements: &'e [Element],
    first_element: usize,
}

impl<'e> DependencyGroup<'e> {
    fn all_elements(elements: &'e [Element]) -> DependencyGroup<'e> {
        DependencyGroup { version: Version::One, elements, first_element: 0 }
    }

    fn one_element(element: &'e Element, first_index: usize) -> DependencyGroup<'e> {
        DependencyGroup { version: Version::Two, elements: std::slice::from_ref(element), first_element: first_index }
    }
}

/// The half of an ownership transfer that a queue executes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TransferHalf {
    Release,
    Acquire,
    NoTransfer,
}

impl Environment<'_> {
    fn line(&self) -> ExecutionAgent {
        ExecutionAgent::Queue(self.queue)
    }
}

impl<'p> ProgramExecutor<'p> {
    pub(crate) fn run_commands(
        &mut self,
        environment: &mut Environment<'p>,
        id: CommandBufferId,
        at: &CommandLocation,
    ) {
        let program = self.program;
        for (number, command) in program.command_buffers[id.0 as usize].commands.iter().enumerate() {
            let mut at = at.clone();
            at.path.push(number as u32);
            if let Command::Execute(secondaries) = command {
                for (place, secondary) in secondaries.iter().enumerate() {
                    let mut at = at.clone();
                    at.path.push(place as u32);
                    self.run_commands(environment, *secondary, &at);
                }
            } else {
                self.run_command(environment, command, &ProgramLocation::Command(at));
            }
        }
    }

    fn run_command(&mut self, environment: &mut Environment<'p>, command: &'p Command, place: &ProgramLocation) {
        match command {
            Command::Action(accesses) => self.push_action(environment, place, accesses),
            Command::Barrier(barrier) => self.push_barrier(environment, place, barrier),
            Command::SetEvent(set) => self.set_event(environment, set),
            Command::ResetEvent { event, stages: _ } => {
                self.tick();
                self.events[event.0 as usize] = None;
            }
            Command::WaitEvents(wait) => self.wait_events(environment, place, wait),
            Command::BeginRenderPass { pass, views, area } => {
                self.begin_render_pass(environment, place, *pass, views, *area);
            }
            Command::NextSubpass => self.next_subpass(environment, place),
            Command::EndRenderPass => self.end_render_pass(environment, place),
            Command::BeginRendering(rendering) => self.begin_rendering(environment, place, rendering),
            Command::EndRendering => self.end_rendering(environment, place),
            Command::Execute(_) => unreachable!("the caller goes into secondary command buffers"),
        }
    }

    fn push_action(&mut self, environment: &Environment<'p>, place: &ProgramLocation, accesses: &[Access]) {
        let time = self.tick();
        if let Some(stage) = accesses.last().and_then(|it| it.order.marker_stage()) {
            self.push_marker_dependency(environment, time, stage.stages());
        }
        for (index, access) in accesses.iter().enumerate() {
            let op = ExecutedAccess {
                time,
                agent: environment.line(),
                place: place.clone(),
                index: index as u32,
                resource: access.resource,
                cells: self.cells_of_access(access),
                stage: access.stage,
                access: access.access,
                is_write: masks::is_write(access.access),
                role: OracleAccessRole::Plain,
                order: access.order,
                subpass: environment.pass.as_ref().map(|it| it.subpass_instance()),
            };
            match access.certainty {
                // A possible read: only that it may happen is known, not its cells.
                Certainty::Unreported => self.log.possible_reads.push(ExecutedAccess { cells: Vec::new(), ..op }),
                _ => self.log.accesses.push(op),
            }
        }
    }

    /// The cells of an access: between the attributes of vertices are none.
    fn cells_of_access(&mut self, access: &Access) -> Vec<u32> {
        let (OriginKind::Attributes(attributes), Region::Buffer(bytes)) = (access.origin.kind(), &access.region) else {
            return self.cells.cell_indices(access.resource, &access.region);
        };
        let is_read = |byte: &u64| attributes.reads_any(&(byte - bytes.start..byte - bytes.start + 1));
        let read = bytes.clone().filter(is_read).map(|it| Region::Buffer(it..it + 1));
        read.flat_map(|it| self.cells.cell_indices(access.resource, &it)).collect()
    }

    /// The dependency of a buffer marker on earlier commands in its stage and on earlier markers. Only the marker is in
    /// its second scope. Commands of other subpasses are not earlier: they are in no submission order with it. Spec:
    /// `vkCmdWriteBufferMarker2AMD`, `synchronization-submission-order`.
    fn push_marker_dependency(&mut self, environment: &Environment<'p>, time: Time, stages: u64) {
        let stages = masks::first_scope(stages, u32::MAX);
        let scope = |from, to| SynchronizationScope { agent: environment.line(), from, to, stages };
        let first_scopes = match &environment.pass {
            Some(pass) => vec![scope(0, pass.pass_begin()), scope(pass.subpass_begin(), time)],
            None => vec![scope(0, time)],
        };
        let second_scope = SynchronizationScope {
            agent: environment.line(),
            from: time - 1,
            to: time + 1,
            stages: PipelineStageFlags2::COPY.0,
        };
        self.push_dependency(LoggedDependency {
            first_scopes,
            second_scope,
            available: vec![AccessScope::Markers],
            visible: Vec::new(),
            marker_stages: Some(stages),
        });
    }

    fn push_barrier(&mut self, environment: &mut Environment<'p>, place: &ProgramLocation, barrier: &Barrier) {
        let time = self.tick();
        match barrier {
            Barrier::Sync1 { src_stages, dst_stages, dependencies } => {
                let stages = StageMasks { first: *src_stages, second: *dst_stages };
                let first = vec![self.first_scope(environment, time, stages.first)];
                self.push_dependencies(
                    environment,
                    (place, time),
                    first,
                    stages,
                    DependencyGroup::all_elements(dependencies),
                );
            }
            Barrier::Sync2 { dependencies } => {
                for (index, element) in dependencies.iter().enumerate() {
                    let stages = stage_masks(element);
                    let first = vec![self.first_scope(environment, time, stages.first)];
                    self.push_dependencies(
                        environment,
                        (place, time),
                        first,
                        stages,
                        DependencyGroup::one_element(element, index),
                    );
                }
            }
        }
    }

    /// The operations before a time; inside a render pass only those of the subpass.
    fn first_scope(&self, environment: &Environment<'p>, to: Time, stages: u64) -> SynchronizationScope {
        let from = environment.pass.as_ref().map_or(0, |it| it.subpass_begin());
        let stages = masks::first_scope(stages, self.queue_flags(environment.queue));
        SynchronizationScope { agent: environment.line(), from, to, stages }
    }

    /// Logs one dependency with the access scopes of its elements, and the transitions and transfers that they perform.
    fn push_dependencies(
        &mut self,
        environment: &mut Environment<'p>,
        (place, time): (&ProgramLocation, Time),
        first: Vec<SynchronizationScope>,
        stages: StageMasks,
        elements: DependencyGroup<'_>,
    ) {
        let DependencyGroup { version, elements, first_element: first_index } = elements;
        let flags = self.queue_flags(environment.queue);
        let second = SynchronizationScope {
            agent: environment.line(),
            from: time,
            to: END,
            stages: masks::second_scope(stages.second, flags),
        };
        let shared = LoggedDependency {
            first_scopes: first,
            second_scope: second,
            available: Vec::new(),
            visible: Vec::new(),
            marker_stages: None,
        };
        let is_alone = version == Version::Two
            && self.barrier_target(environment.queue, &elements[0].target).1 != TransferHalf::NoTransfer;
        let common = (!is_alone).then(|| self.push_barrier_dependency(environment, shared.clone()));
        for (index, element) in elements.iter().enumerate() {
            let (target, half) = self.barrier_target(environment.queue, &element.target);
            let part = target.map(|(resource, region)| ResourceCells {
                cells: self.cells.cell_indices(resource, region),
                resources: self.cells.compatible_aliases(resource),
            });
            let accesses = |stages: u64, access: u64| AccessScope::Masked {
                stages: masks::expand_stages(stages, flags),
                access: masks::expand_access(access),
                cells: part.clone(),
            };
            let available = accesses(stages.first, element.scope.src_access);
            let visible = accesses(stages.second, element.scope.dst_access);
            let number = match common {
                Some(number) => {
                    let dependency = &mut self.log.dependencies[number];
                    dependency.available.extend(Some(available).filter(|_| half != TransferHalf::Acquire));
                    dependency.visible.extend(Some(visible).filter(|_| half != TransferHalf::Release));
                    number
                }
                None => {
                    self.push_barrier_dependency(environment, transfer_dependency(&shared, half, available, visible))
                }
            };
            let cells = part.map_or(Vec::new(), |it| it.cells);
            self.push_ownership_transfer((place, time), &element.target, half, &cells);
            let is_access = half != TransferHalf::NoTransfer || is_transition(&element.target);
            if let Some((resource, _)) = target.filter(|_| is_access) {
                let index = first_index + index;
                let op = transition_access(environment, (place, time), index, resource, cells);
                let by = match is_transition(&element.target) {
                    true => TransitionSource::Barrier,
                    false => TransitionSource::OwnershipTransfer,
                };
                let (after, before) = (vec![number], vec![number]);
                let role = OracleAccessRole::Transition { by, after, before, subpasses: Vec::new() };
                self.log.accesses.push(ExecutedAccess { role, ..op });
            }
        }
    }

    /// Logs the release or acquire half if the barrier is part of a queue family ownership transfer.
    fn push_ownership_transfer(
        &mut self,
        (place, time): (&ProgramLocation, Time),
        target: &DependencyTarget,
        half: TransferHalf,
        cells: &[u32],
    ) {
        let DependencyTarget::QueueFamilyTransfer { resource, transfer, .. } = target else { return };
        if half == TransferHalf::NoTransfer {
            return;
        }
        self.log.transfers.push(OwnershipTransfer {
            time,
            place: place.clone(),
            resource: *resource,
            cells: cells.to_vec(),
            ownership: *transfer,
            is_release: half == TransferHalf::Release,
        });
    }

    fn push_barrier_dependency(&mut self, environment: &mut Environment<'p>, dependency: LoggedDependency) -> usize {
        let number = self.push_dependency(dependency);
        if let Some(pass) = &mut environment.pass {
            pass.add_subpass_barrier(number);
        }
        number
    }

    fn barrier_target<'e>(
        &self,
        queue: u32,
        what: &'e DependencyTarget,
    ) -> (Option<(ResourceId, &'e Region)>, TransferHalf) {
        match what {
            DependencyTarget::Global => (None, TransferHalf::NoTransfer),
            DependencyTarget::Resource { resource, region } | DependencyTarget::Transition { resource, region } => {
                (Some((*resource, region)), TransferHalf::NoTransfer)
            }
            DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership } => {
                (Some((*resource, region)), self.transfer_half(queue, ownership))
            }
        }
    }

    fn transfer_half(&self, queue: u32, ownership: &QueueFamilyTransfer) -> TransferHalf {
        let family = self.program.queues[queue as usize].family;
        if ownership.src_family == ownership.dst_family {
            TransferHalf::NoTransfer
        } else if family == ownership.src_family {
            TransferHalf::Release
        } else if family == ownership.dst_family {
            TransferHalf::Acquire
        } else {
            TransferHalf::NoTransfer
        }
    }

    /// Setting an event that is already signaled has no effect.
    fn set_event(&mut self, environment: &Environment<'p>, set: &SetEvent) {
        let time = self.tick();
        let (event, stages) = match set {
            SetEvent::Sync1 { event, stages } => (event, *stages),
            SetEvent::Sync2 { event, .. } => (event, 0),
        };
        let state = EventState { line: environment.line(), time, stages };
        self.events[event.0 as usize].get_or_insert(state);
    }

    fn wait_events(&mut self, environment: &mut Environment<'p>, place: &ProgramLocation, wait: &WaitEvents) {
        let time = self.tick();
        match wait {
            WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies } => {
                let stages = StageMasks { first: *src_stages, second: *dst_stages };
                let scopes = events.iter().filter_map(|it| self.event_scope(environment, *it, None, *src_stages));
                let first = scopes.collect();
                self.push_dependencies(
                    environment,
                    (place, time),
                    first,
                    stages,
                    DependencyGroup::all_elements(dependencies),
                );
            }
            WaitEvents::Sync2 { events } => {
                let mut index = 0;
                for (event, dependencies) in events {
                    for element in dependencies {
                        let stages = stage_masks(element);
                        let scope = self.event_scope(environment, *event, Some(stages.first), stages.first);
                        let first = scope.into_iter().collect();
                        self.push_dependencies(
                            environment,
                            (place, time),
                            first,
                            stages,
                            DependencyGroup::one_element(element, index),
                        );
                        index += 1;
                    }
                }
            }
        }
    }

    /// The first scope of a signaled event. None if neither this queue nor the host signaled it.
    fn event_scope(
        &self,
        environment: &Environment<'p>,
        event: EventId,
        stages: Option<u64>,
        waited: u64,
    ) -> Option<SynchronizationScope> {
        let state = self.events[event.0 as usize]?;
        let stages = match state.line {
            ExecutionAgent::Host if waited & PipelineStageFlags2::HOST.0 != 0 => EVERY_STAGE,
            line if line == environment.line() => {
                masks::first_scope(stages.unwrap_or(state.stages), self.queue_flags(environment.queue))
            }
            _ => return None,
        };
        Some(SynchronizationScope { agent: state.line, from: 0, to: state.time, stages })
    }
}

/// The access of a transition; the caller sets the dependencies before and after it.
pub(crate) fn transition_access(
    environment: &Environment<'_>,
    (place, time): (&ProgramLocation, Time),
    index: usize,
    resource: ResourceId,
    cells: Vec<u32>,
) -> ExecutedAccess {
    ExecutedAccess {
        time,
        agent: environment.line(),
        place: place.clone(),
        index: index as u32,
        resource,
        cells,
        stage: TRANSITION_STAGE,
        access: 0,
        is_write: true,
        role: OracleAccessRole::Plain,
        order: RasterOrder::None,
        subpass: environment.pass.as_ref().map(|it| it.subpass_instance()),
    }
}

/// In version 2, a release has an empty second scope on its queue, and an acquire an empty first scope. Only
/// all-commands includes the two.
fn transfer_dependency(
    shared: &LoggedDependency,
    half: TransferHalf,
    available: AccessScope,
    visible: AccessScope,
) -> LoggedDependency {
    let mut dependency = shared.clone();
    if half == TransferHalf::Release {
        dependency.second_scope.stages = 0;
        dependency.available.push(available);
    } else {
        dependency.first_scopes.clear();
        dependency.visible.push(visible);
    }
    dependency
}

fn stage_masks(element: &Element) -> StageMasks {
    StageMasks { first: element.scope.src_stages, second: element.scope.dst_stages }
}

fn is_transition(what: &DependencyTarget) -> bool {
    match what {
        DependencyTarget::Global | DependencyTarget::Resource { .. } => false,
        DependencyTarget::Transition { .. } => true,
        DependencyTarget::QueueFamilyTransfer { transfer: ownership, .. } => ownership.is_transition,
    }
}
