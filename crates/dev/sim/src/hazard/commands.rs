//! Execution of command buffers: actions, barriers and events.
//!
//! Spec: "Pipeline Barriers", "Events", "Queue Family Ownership Transfer".

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::{
    Access, CommandLocation, Barrier, Command, CommandBufferId, Dependency as Element, EventId, QueueFamilyTransfer, ProgramLocation, RasterOrder,
    Region, ResourceId, SetEvent, WaitEvents, DependencyTarget,
};

use super::{
    machine::Machine,
    masks::{self, EVERY_STAGE, TRANSITION},
    rendering::Instance,
    trace::{Accesses, Dependency, END, Line, Op, Part, Role, Scope, Time, Transfer},
};

/// Where commands are executed.
pub(super) struct Environment<'p> {
    pub(super) queue: u32,
    pub(super) pass: Option<Instance<'p>>,
    pub(super) suspended: Option<Instance<'p>>,
}

/// A signaled event: what the signal came after.
#[derive(Clone, Copy)]
pub(super) struct EventState {
    pub(super) line: Line,
    pub(super) time: Time,
    /// Of version 1; version 2 says it at the wait again.
    pub(super) stages: u64,
}

/// Masks of stages as they were given, first and second.
#[derive(Clone, Copy)]
struct Stages {
    first: u64,
    second: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Elements of a command that are one dependency: all in version 1, each for itself in version 2.
#[derive(Clone, Copy)]
struct Elements<'e> {
    version: Version,
    elements: &'e [Element],
    first_index: usize,
}

impl<'e> Elements<'e> {
    fn united(elements: &'e [Element]) -> Elements<'e> {
        Elements { version: Version::One, elements, first_index: 0 }
    }

    fn single(element: &'e Element, first_index: usize) -> Elements<'e> {
        Elements { version: Version::Two, elements: std::slice::from_ref(element), first_index }
    }
}

/// Which half of a transfer a queue executes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Release,
    Acquire,
    Neither,
}

impl Environment<'_> {
    fn line(&self) -> Line {
        Line::Queue(self.queue)
    }
}

impl<'p> Machine<'p> {
    pub(super) fn run_commands(&mut self, environment: &mut Environment<'p>, id: CommandBufferId, at: &CommandLocation) {
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
            Command::Action(accesses) => self.action(environment, place, accesses),
            Command::Barrier(barrier) => self.barrier(environment, place, barrier),
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

    fn action(&mut self, environment: &Environment<'p>, place: &ProgramLocation, accesses: &[Access]) {
        let time = self.tick();
        for (index, access) in accesses.iter().enumerate() {
            let op = Op {
                time,
                line: environment.line(),
                place: place.clone(),
                index: index as u32,
                resource: access.resource,
                cells: self.cells.numbers(access.resource, &access.region),
                stage: access.stage,
                access: access.access,
                is_write: masks::is_write(access.access),
                role: Role::Plain,
                order: access.order,
                subpass: environment.pass.as_ref().map(|it| it.at()),
            };
            self.trace.ops.push(op);
        }
    }

    fn barrier(&mut self, environment: &mut Environment<'p>, place: &ProgramLocation, barrier: &Barrier) {
        let time = self.tick();
        match barrier {
            Barrier::Sync1 { src_stages, dst_stages, dependencies } => {
                let stages = Stages { first: *src_stages, second: *dst_stages };
                let first = vec![self.first_scope(environment, time, stages.first)];
                self.dependency(environment, (place, time), first, stages, Elements::united(dependencies));
            }
            Barrier::Sync2 { dependencies } => {
                for (index, element) in dependencies.iter().enumerate() {
                    let stages = stages_of(element);
                    let first = vec![self.first_scope(environment, time, stages.first)];
                    self.dependency(environment, (place, time), first, stages, Elements::single(element, index));
                }
            }
        }
    }

    /// Operations before a time; inside of a render pass, those of the subpass.
    fn first_scope(&self, environment: &Environment<'p>, to: Time, stages: u64) -> Scope {
        let from = environment.pass.as_ref().map_or(0, |it| it.begin());
        let stages = masks::first_scope(stages, self.queue_flags(environment.queue));
        Scope { line: environment.line(), from, to, stages }
    }

    /// One dependency with the access scopes of all of its elements, and the accesses that they make themselves.
    fn dependency(
        &mut self,
        environment: &mut Environment<'p>,
        (place, time): (&ProgramLocation, Time),
        first: Vec<Scope>,
        stages: Stages,
        elements: Elements<'_>,
    ) {
        let Elements { version, elements, first_index } = elements;
        let flags = self.queue_flags(environment.queue);
        let second =
            Scope { line: environment.line(), from: time, to: END, stages: masks::second_scope(stages.second, flags) };
        let shared = Dependency { first, second, available: Vec::new(), visible: Vec::new() };
        let is_alone = version == Version::Two && self.target(environment.queue, &elements[0].target).1 != Half::Neither;
        let common = (!is_alone).then(|| self.add_inside(environment, shared.clone()));
        for (index, element) in elements.iter().enumerate() {
            let (target, half) = self.target(environment.queue, &element.target);
            let part = target.map(|(resource, region)| Part {
                cells: self.cells.numbers(resource, region),
                through: self.cells.compatible(resource),
            });
            let accesses = |stages: u64, access: u64| Accesses::Some {
                stages: masks::expand_stages(stages, flags),
                access: masks::expand_access(access),
                cells: part.clone(),
            };
            let available = accesses(stages.first, element.scope.src_access);
            let visible = accesses(stages.second, element.scope.dst_access);
            let number = match common {
                Some(number) => {
                    let dependency = &mut self.trace.dependencies[number];
                    dependency.available.extend(Some(available).filter(|_| half != Half::Acquire));
                    dependency.visible.extend(Some(visible).filter(|_| half != Half::Release));
                    number
                }
                None => self.add_inside(environment, half_of_transfer(&shared, half, available, visible)),
            };
            if let (DependencyTarget::QueueFamilyTransfer { resource, transfer: ownership, .. }, true) = (&element.target, half != Half::Neither) {
                self.trace.transfers.push(Transfer {
                    time,
                    place: place.clone(),
                    resource: *resource,
                    cells: part.as_ref().map_or(Vec::new(), |it| it.cells.clone()),
                    ownership: *ownership,
                    is_release: half == Half::Release,
                });
            }
            let is_access = half != Half::Neither || is_transition(&element.target);
            if let Some((resource, _)) = target.filter(|_| is_access) {
                let index = first_index + index;
                let op =
                    transition(environment, (place, time), index, resource, part.map_or(Vec::new(), |it| it.cells));
                self.trace.ops.push(Op { role: Role::Transition { after: vec![number], before: vec![number] }, ..op });
            }
        }
    }

    fn add_inside(&mut self, environment: &mut Environment<'p>, dependency: Dependency) -> usize {
        let number = self.depend(dependency);
        if let Some(pass) = &mut environment.pass {
            pass.add_inside(number);
        }
        number
    }

    fn target<'e>(&self, queue: u32, what: &'e DependencyTarget) -> (Option<(ResourceId, &'e Region)>, Half) {
        match what {
            DependencyTarget::Global => (None, Half::Neither),
            DependencyTarget::Resource { resource, region } | DependencyTarget::Transition { resource, region } => {
                (Some((*resource, region)), Half::Neither)
            }
            DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership } => (Some((*resource, region)), self.half(queue, ownership)),
        }
    }

    fn half(&self, queue: u32, ownership: &QueueFamilyTransfer) -> Half {
        let family = self.program.queues[queue as usize].family;
        if ownership.src_family == ownership.dst_family {
            Half::Neither
        } else if family == ownership.src_family {
            Half::Release
        } else if family == ownership.dst_family {
            Half::Acquire
        } else {
            Half::Neither
        }
    }

    /// An event that is signaled already stays as it is.
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
                let stages = Stages { first: *src_stages, second: *dst_stages };
                let scopes = events.iter().filter_map(|it| self.event_scope(environment, *it, None, *src_stages));
                let first = scopes.collect();
                self.dependency(environment, (place, time), first, stages, Elements::united(dependencies));
            }
            WaitEvents::Sync2 { events } => {
                let mut index = 0;
                for (event, dependencies) in events {
                    for element in dependencies {
                        let stages = stages_of(element);
                        let scope = self.event_scope(environment, *event, Some(stages.first), stages.first);
                        let first = scope.into_iter().collect();
                        self.dependency(environment, (place, time), first, stages, Elements::single(element, index));
                        index += 1;
                    }
                }
            }
        }
    }

    /// What the signal of an event came after; none if there was no signal on this queue or by the host.
    fn event_scope(
        &self,
        environment: &Environment<'p>,
        event: EventId,
        stages: Option<u64>,
        waited: u64,
    ) -> Option<Scope> {
        let state = self.events[event.0 as usize]?;
        let stages = match state.line {
            Line::Host if waited & PipelineStageFlags2::HOST.0 != 0 => EVERY_STAGE,
            line if line == environment.line() => {
                masks::first_scope(stages.unwrap_or(state.stages), self.queue_flags(environment.queue))
            }
            _ => return None,
        };
        Some(Scope { line: state.line, from: 0, to: state.time, stages })
    }
}

/// The access of a transition, which the caller puts between its dependencies.
pub(super) fn transition(
    environment: &Environment<'_>,
    (place, time): (&ProgramLocation, Time),
    index: usize,
    resource: ResourceId,
    cells: Vec<u32>,
) -> Op {
    Op {
        time,
        line: environment.line(),
        place: place.clone(),
        index: index as u32,
        resource,
        cells,
        stage: TRANSITION,
        access: 0,
        is_write: true,
        role: Role::Plain,
        order: RasterOrder::None,
        subpass: environment.pass.as_ref().map(|it| it.at()),
    }
}

/// In version 2 a release comes before nothing on its queue, an acquire after nothing: only all commands include them.
fn half_of_transfer(shared: &Dependency, half: Half, available: Accesses, visible: Accesses) -> Dependency {
    let mut dependency = shared.clone();
    if half == Half::Release {
        dependency.second.stages = 0;
        dependency.available.push(available);
    } else {
        dependency.first.clear();
        dependency.visible.push(visible);
    }
    dependency
}

fn stages_of(element: &Element) -> Stages {
    Stages { first: element.scope.src_stages, second: element.scope.dst_stages }
}

fn is_transition(what: &DependencyTarget) -> bool {
    match what {
        DependencyTarget::Global | DependencyTarget::Resource { .. } => false,
        DependencyTarget::Transition { .. } => true,
        DependencyTarget::QueueFamilyTransfer { transfer: ownership, .. } => ownership.is_transition,
    }
}
