//! Unrolls a program into one list of moments, in the order in which the engine executes them.
//!
//! The list contains the commands of all submitted command buffers. Each batch is at the position
//! where its semaphores allow it to execute. Each wait has the index of the moment that it waits
//! for, so the follower needs no scheduler.

use std::collections::{BTreeMap, VecDeque};

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{
    Certainty, Command, CommandBufferId, CommandLocation, FenceId, HostStep, Origin, Program, ProgramLocation, QueueId,
    Region, ResourceId, SemaphoreId, SemaphorePoint, SemaphoreSignal, SemaphoreWait, SparseBind, SubmitBatch,
    SyncScope,
};

use super::access_detail::{AccessDetail, RenderingContext};
use super::dependency::{ExecutedDependency, barrier_dependencies, event_wait_dependencies};
use super::render_pass::{SuspendedTimelineRendering, TimelineInstance};
use crate::{AccessRole, BatchSemaphoreLocation};
use lavascope_engine::AddressMap;
use lavascope_engine::access::access_order::AccessOrder;
use lavascope_engine::access::usages::{PRESENT, SYNC_TABLES, StageSet, UsageIndex};
use lavascope_engine::dependency::scopes;

/// The maximum depth of nested secondary command buffers, as in the engine.
const DEPTH_MAX: usize = 16;

pub(crate) struct ExecutionTimeline<'a> {
    pub(crate) program: &'a Program,
    pub(crate) moments: Vec<TimelineMoment>,
    /// The addresses of all resources. Each entry is valid from its moment on, because sparse binds
    /// change addresses.
    addresses: Vec<(usize, AddressMap)>,
    /// The indices of the moments before which a command may have read any resource.
    pub(crate) possible_reads: Vec<usize>,
}

pub(crate) struct TimelineMoment {
    pub(crate) executed_at: ProgramLocation,
    /// The index of the queue, of the host, or of the presentation engine.
    pub(crate) queue: u8,
    /// The index of the moment that submitted the work.
    pub(crate) submitted: Option<usize>,
    pub(crate) action: TimelineAction,
}

pub(crate) enum TimelineAction {
    /// The accesses of one command. They never conflict with each other.
    Accesses(Vec<TimelineAccess>),
    /// The dependencies of one command. Their first scopes include only what comes before the
    /// command.
    Depends(Vec<ExecutedDependency>),
    SetsEvent {
        stages: StageSet,
        given: u64,
        recorded_at: Option<(CommandBufferId, u32)>,
    },
    PassBegins,
    /// Contains the dependencies that lead to the subpass.
    SubpassBegins(Vec<ExecutedDependency>),
    SubpassEnds,
    /// Dynamic rendering. A barrier inside is limited to it.
    RenderingBegins {
        instance: usize,
        resumption: Resumption,
    },
    RenderingEnds,
    PassEnds(Vec<ExecutedDependency>),
    Submits,
    BatchBegins,
    Waits {
        /// The index of the moment that signaled the semaphore, if there is one.
        signal: Option<usize>,
        stages: u64,
        location: BatchSemaphoreLocation,
    },
    Signals {
        stages: u64,
        location: BatchSemaphoreLocation,
    },
    /// All work of a queue so far is complete, because of a fence or a wait for idle.
    Completes(Completion),
    /// The host waits for these moments.
    HostWaits(Vec<usize>),
    HostSignals,
    /// The presentation engine signals that it has released an image (`vkAcquireNextImageKHR`).
    Acquires(ResourceId),
    /// A sparse bind that waits for some signals. Its own signals include what it waited for.
    Binds {
        signals: Vec<usize>,
        is_signaling: bool,
    },
    /// The resource is destroyed. Later accesses to its memory are not compared with earlier ones.
    Destroys(ResourceId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumption {
    New,
    Resumed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    Fence,
    Idle,
}

/// An access with all details for comparisons.
#[derive(Clone)]
pub(crate) struct TimelineAccess {
    pub(crate) resource: ResourceId,
    pub(crate) region: Region,
    pub(crate) usage: UsageIndex,
    pub(crate) order: AccessOrder,
    pub(crate) role: AccessRole,
    pub(crate) detail: AccessDetail,
    pub(crate) within: RenderingContext,
    /// The render pass instance, as the index of the moment at which it began.
    pub(crate) instance: Option<usize>,
    pub(crate) subpass: Option<u32>,
    /// The earlier subpasses that nothing orders before this one.
    pub(crate) unordered_subpasses: Vec<u32>,
    /// For a layout transition: the dependencies whose first scopes come before it.
    pub(crate) first_scopes: Vec<ExecutedDependency>,
    /// For a layout transition: the dependencies whose second scopes come after it.
    pub(crate) second_scopes: Vec<ExecutedDependency>,
    /// For a present: the indices of the moments whose signals it waits for.
    pub(crate) waited_signals: Vec<usize>,
}

impl TimelineAccess {
    pub(crate) fn new(resource: ResourceId, region: Region, usage: UsageIndex, role: AccessRole) -> TimelineAccess {
        TimelineAccess {
            resource,
            region,
            usage,
            order: AccessOrder::None,
            role,
            detail: AccessDetail::Command(Origin::NONE),
            within: RenderingContext::Nothing,
            instance: None,
            subpass: None,
            unordered_subpasses: Vec::new(),
            first_scopes: Vec::new(),
            second_scopes: Vec::new(),
            waited_signals: Vec::new(),
        }
    }

    pub(crate) fn is_write(&self) -> bool {
        SYNC_TABLES.write_column(self.usage).is_some()
    }
}

impl<'a> ExecutionTimeline<'a> {
    pub(crate) fn new(program: &'a Program) -> ExecutionTimeline<'a> {
        let mut addresses = AddressMap::default();
        for resource in &program.resources {
            addresses.add(resource);
        }
        let mut builder = TimelineBuilder {
            program,
            moments: Vec::new(),
            queues: program.queues.iter().map(|_| VecDeque::new()).collect(),
            semaphores: (0..program.semaphore_count).map(|_| SemaphoreSignals::default()).collect(),
            fences: vec![None; program.fence_count as usize],
            events: vec![None; program.event_count as usize],
            suspended: vec![None; program.queues.len()],
            instance: None,
            running: None,
            binds: Vec::new(),
            possible_reads: Vec::new(),
        };
        for (index, step) in program.steps.iter().enumerate() {
            builder.step(index as u32, step);
        }
        add_planes(&mut addresses, &builder.moments);
        let mut all = vec![(0, addresses)];
        for (moment, binds) in builder.binds {
            let mut next = all[all.len() - 1].1.clone();
            binds.iter().for_each(|it| drop(next.bind(it)));
            all.push((moment, next));
        }
        ExecutionTimeline { program, moments: builder.moments, addresses: all, possible_reads: builder.possible_reads }
    }

    /// The addresses of all resources at a moment.
    pub(crate) fn addresses(&self, moment: usize) -> &AddressMap {
        let after = self.addresses.partition_point(|it| it.0 <= moment);
        &self.addresses[after.saturating_sub(1)].1
    }

    pub(crate) fn host(&self) -> u8 {
        self.program.queues.len() as u8
    }

    pub(crate) fn presentation(&self) -> u8 {
        self.program.queues.len() as u8 + 1
    }

    /// All accesses, each with the index of its moment.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = (usize, &TimelineAccess)> {
        self.moments.iter().enumerate().flat_map(|(index, moment)| {
            let uses = if let TimelineAction::Accesses(uses) = &moment.action { &uses[..] } else { &[] };
            uses.iter().map(move |it| (index, it))
        })
    }
}

pub(crate) struct TimelineBuilder<'a> {
    pub(crate) program: &'a Program,
    pub(crate) moments: Vec<TimelineMoment>,
    queues: Vec<VecDeque<PendingSubmission<'a>>>,
    semaphores: Vec<SemaphoreSignals>,
    fences: Vec<Option<usize>>,
    pub(crate) events: Vec<Option<usize>>,
    /// For each queue: the suspended dynamic rendering.
    pub(crate) suspended: Vec<Option<SuspendedTimelineRendering>>,
    pub(crate) instance: Option<TimelineInstance>,
    running: Option<RunningCommand>,
    /// The sparse binds in execution order, each with the index of its moment.
    binds: Vec<(usize, &'a [SparseBind])>,
    possible_reads: Vec<usize>,
}

/// The command that is being executed.
#[derive(Clone)]
struct RunningCommand {
    at: CommandLocation,
    queue: u8,
    submitted: usize,
}

struct PendingSubmission<'a> {
    step: u32,
    submitted: usize,
    work: TimelineWork<'a>,
}

#[derive(Clone, Copy)]
enum TimelineWork<'a> {
    Batch(u32, &'a SubmitBatch),
    Fence(FenceId),
    Present(&'a [SemaphoreId], &'a [ResourceId]),
    Sparse(TimelineSparseBind<'a>),
}

#[derive(Clone, Copy)]
struct TimelineSparseBind<'a> {
    waits: &'a [SemaphorePoint],
    binds: &'a [SparseBind],
    signals: &'a [SemaphorePoint],
    fence: Option<FenceId>,
}

/// The indices of the moments that signaled a semaphore.
#[derive(Default)]
struct SemaphoreSignals {
    binary: Option<usize>,
    values: BTreeMap<u64, usize>,
}

/// Adds separate addresses for each component of the images whose components are accessed
/// separately.
fn add_planes(addresses: &mut AddressMap, moments: &[TimelineMoment]) {
    for moment in moments {
        let uses = if let TimelineAction::Accesses(uses) = &moment.action { &uses[..] } else { &[] };
        let elements = if let TimelineAction::Depends(elements) = &moment.action { &elements[..] } else { &[] };
        let abouts = elements.iter().filter_map(|it| it.resource_region.as_ref()).map(|it| (it.resource, &it.region));
        for (resource, region) in uses.iter().map(|it| (it.resource, &it.region)).chain(abouts) {
            if addresses.needs_component_planes(resource, region) {
                addresses.add_component_planes(resource);
            }
        }
    }
}

impl<'a> TimelineBuilder<'a> {
    fn step(&mut self, index: u32, step: &'a HostStep) {
        let host = self.queues.len() as u8;
        match step {
            HostStep::Submit { queue, batches, fence } => self.submit(index, *queue, batches, *fence),
            HostStep::WaitFences(fences) => {
                let from = fences.iter().filter_map(|it| *self.fences.get(it.0 as usize)?).collect();
                self.push_host(index, host, TimelineAction::HostWaits(from));
            }
            HostStep::ResetFences(fences) => {
                for fence in fences {
                    self.fences.get_mut(fence.0 as usize).map(Option::take);
                }
            }
            HostStep::QueueIdle(queue) => self.wait_idle(index, &[queue.0 as u8]),
            HostStep::DeviceIdle => self.wait_idle(index, &(0..host).collect::<Vec<_>>()),
            HostStep::WaitSemaphores(points) => {
                let from = points.iter().filter_map(|it| self.signal_of(*it)).collect();
                self.push_host(index, host, TimelineAction::HostWaits(from));
            }
            HostStep::SignalSemaphore(point) => {
                let moment = self.push_host(index, host, TimelineAction::HostSignals);
                self.set_semaphore(*point, moment);
            }
            HostStep::SetEvent(event) => {
                let what = TimelineAction::SetsEvent {
                    stages: scopes::COMMON_SETS.host,
                    given: PipelineStageFlags2::HOST.0,
                    recorded_at: None,
                };
                let moment = self.push_host(index, host, what);
                self.set_event(event.0 as usize, moment);
            }
            HostStep::ResetEvent(event) => {
                self.events.get_mut(event.0 as usize).map(Option::take);
            }
            HostStep::HostAccess { resource, region, is_write, .. } => {
                let access = if *is_write { AccessFlags2::HOST_WRITE } else { AccessFlags2::HOST_READ };
                let usage = SYNC_TABLES.usage(PipelineStageFlags2::HOST.0, access.0);
                let uses = usage.map(|usage| TimelineAccess::new(*resource, region.clone(), usage, AccessRole::Host));
                self.push_host(index, host, TimelineAction::Accesses(uses.into_iter().collect()));
            }
            HostStep::Acquire { image, semaphore, fence } => self.acquire(index, *image, *semaphore, *fence),
            HostStep::Present { queue, waits, images } => {
                self.enqueue(index, *queue, [TimelineWork::Present(waits, images)])
            }
            HostStep::BindSparse { queue, waits, binds, signals, fence } => {
                self.enqueue(
                    index,
                    *queue,
                    [TimelineWork::Sparse(TimelineSparseBind { waits, binds, signals, fence: *fence })],
                );
            }
            HostStep::Destroy(resource) => {
                self.push_host(index, host, TimelineAction::Destroys(*resource));
            }
        }
        self.run_ready_work();
    }

    fn push_host(&mut self, step: u32, queue: u8, what: TimelineAction) -> usize {
        self.moments.push(TimelineMoment {
            executed_at: ProgramLocation::Step(step),
            queue,
            submitted: None,
            action: what,
        });
        self.moments.len() - 1
    }

    fn wait_idle(&mut self, step: u32, queues: &[u8]) {
        let complete = |it: &u8| self.push_host(step, *it, TimelineAction::Completes(Completion::Idle));
        let from = queues.iter().map(complete).collect();
        self.push_host(step, self.queues.len() as u8, TimelineAction::HostWaits(from));
    }

    fn acquire(&mut self, step: u32, image: ResourceId, semaphore: Option<SemaphoreId>, fence: Option<FenceId>) {
        let presentation = self.queues.len() as u8 + 1;
        let used = TimelineAccess::new(image, whole_image(self.program, image), PRESENT, AccessRole::Acquire);
        self.push_host(step, presentation, TimelineAction::Accesses(vec![used]));
        let moment = self.push_host(step, presentation, TimelineAction::Acquires(image));
        if let Some(fence) = fence.and_then(|it| self.fences.get_mut(it.0 as usize)) {
            *fence = Some(moment);
        }
        if let Some(semaphore) = semaphore {
            self.set_semaphore(SemaphorePoint { semaphore, value: None }, moment);
        }
    }

    fn submit(&mut self, step: u32, queue: QueueId, batches: &'a [SubmitBatch], fence: Option<FenceId>) {
        let batches = batches.iter().enumerate().map(|(index, it)| TimelineWork::Batch(index as u32, it));
        self.enqueue(step, queue, batches.chain(fence.map(TimelineWork::Fence)));
    }

    fn enqueue(&mut self, step: u32, queue: QueueId, work: impl IntoIterator<Item = TimelineWork<'a>>) {
        let submitted = self.push_host(step, self.queues.len() as u8, TimelineAction::Submits);
        if let Some(own) = self.queues.get_mut(queue.0 as usize) {
            own.extend(work.into_iter().map(|work| PendingSubmission { step, submitted, work }));
        }
    }

    /// Executes work until every queue is empty or waits. The first queue with ready work
    /// continues.
    fn run_ready_work(&mut self) {
        loop {
            let is_ready = |it: &PendingSubmission<'_>| self.is_ready(it.work);
            let Some(queue) = self.queues.iter().position(|it| it.front().is_some_and(is_ready)) else { return };
            let Some(PendingSubmission { step, submitted, work }) = self.queues[queue].pop_front() else { return };
            let at = CommandLocation { step, batch: 0, primary: 0, path: Vec::new() };
            self.running = Some(RunningCommand { at, queue: queue as u8, submitted });
            match work {
                TimelineWork::Batch(index, batch) => self.batch(index, batch),
                TimelineWork::Fence(fence) => {
                    let moment = self.push(TimelineAction::Completes(Completion::Fence));
                    if let Some(fence) = self.fences.get_mut(fence.0 as usize) {
                        *fence = Some(moment);
                    }
                }
                TimelineWork::Present(waits, images) => self.present(step, submitted, waits, images),
                TimelineWork::Sparse(work) => self.bind_sparse(step, queue as u8, submitted, work),
            }
            self.running = None;
        }
    }

    fn is_ready(&self, work: TimelineWork<'_>) -> bool {
        let binary = |semaphore| SemaphorePoint { semaphore, value: None };
        match work {
            TimelineWork::Batch(_, batch) => batch.waits.iter().all(|it| self.is_signaled(it.point)),
            TimelineWork::Fence(_) => true,
            TimelineWork::Present(waits, _) => waits.iter().all(|it| self.is_signaled(binary(*it))),
            TimelineWork::Sparse(work) => work.waits.iter().all(|it| self.is_signaled(*it)),
        }
    }

    fn present(&mut self, step: u32, submitted: usize, waits: &[SemaphoreId], images: &[ResourceId]) {
        let points = waits.iter().map(|it| SemaphorePoint { semaphore: *it, value: None });
        let signals: Vec<usize> = points.filter_map(|it| self.take(it)).collect();
        let uses = images.iter().map(|image| {
            let region = whole_image(self.program, *image);
            TimelineAccess {
                waited_signals: signals.clone(),
                ..TimelineAccess::new(*image, region, PRESENT, AccessRole::Present)
            }
        });
        let what = TimelineAction::Accesses(uses.collect());
        let queue = self.queues.len() as u8 + 1;
        self.moments.push(TimelineMoment {
            executed_at: ProgramLocation::Step(step),
            queue,
            submitted: Some(submitted),
            action: what,
        });
    }

    fn bind_sparse(&mut self, step: u32, queue: u8, submitted: usize, work: TimelineSparseBind<'a>) {
        let signals = work.waits.iter().filter_map(|it| self.take(*it)).collect();
        let is_signaling = !work.signals.is_empty() || work.fence.is_some();
        let what = TimelineAction::Binds { signals, is_signaling };
        self.moments.push(TimelineMoment {
            executed_at: ProgramLocation::Step(step),
            queue,
            submitted: Some(submitted),
            action: what,
        });
        let moment = self.moments.len() - 1;
        self.binds.push((moment, work.binds));
        for point in work.signals {
            self.set_semaphore(*point, moment);
        }
        if let Some(fence) = work.fence.and_then(|it| self.fences.get_mut(it.0 as usize)) {
            *fence = Some(moment);
        }
    }

    fn batch(&mut self, index: u32, batch: &'a SubmitBatch) {
        self.edit_location(|at| at.batch = index);
        let step = self.running.as_ref().map_or(0, |it| it.at.step);
        let part = |it: usize| BatchSemaphoreLocation { step, batch: index, index: it as u32 };
        self.push(TimelineAction::BatchBegins);
        for (index, SemaphoreWait { point, stages }) in batch.waits.iter().enumerate() {
            let signal = self.take(*point);
            self.push(TimelineAction::Waits { signal, stages: *stages, location: part(index) });
        }
        for (primary, id) in batch.command_buffers.iter().enumerate() {
            self.edit_location(|at| at.primary = primary as u32);
            self.instance = None;
            self.commands(*id);
        }
        self.edit_location(|at| at.primary = 0);
        for (index, SemaphoreSignal { point, stages }) in batch.signals.iter().enumerate() {
            let moment = self.push(TimelineAction::Signals { stages: *stages, location: part(index) });
            self.set_semaphore(*point, moment);
        }
    }

    fn is_signaled(&self, point: SemaphorePoint) -> bool {
        let Some(semaphore) = self.semaphores.get(point.semaphore.0 as usize) else { return true };
        match point.value {
            None => semaphore.binary.is_some(),
            Some(value) => value == 0 || semaphore.values.range(value..).next().is_some(),
        }
    }

    fn signal_of(&self, point: SemaphorePoint) -> Option<usize> {
        let values = &self.semaphores.get(point.semaphore.0 as usize)?.values;
        values.range(point.value.filter(|it| *it > 0)?..).next().map(|it| *it.1)
    }

    fn take(&mut self, point: SemaphorePoint) -> Option<usize> {
        match point.value {
            None => self.semaphores.get_mut(point.semaphore.0 as usize)?.binary.take(),
            Some(_) => self.signal_of(point),
        }
    }

    fn set_semaphore(&mut self, point: SemaphorePoint, moment: usize) {
        let Some(semaphore) = self.semaphores.get_mut(point.semaphore.0 as usize) else { return };
        match point.value {
            None => semaphore.binary = Some(moment),
            Some(value) => drop(semaphore.values.insert(value, moment)),
        }
    }

    /// Sets an event. A set of an event that is already set changes nothing.
    fn set_event(&mut self, event: usize, moment: usize) {
        if let Some(event) = self.events.get_mut(event) {
            event.get_or_insert(moment);
        }
    }

    /// Adds a moment of the running command, and returns its index.
    pub(crate) fn push(&mut self, what: TimelineAction) -> usize {
        let running = self.running.clone();
        let Some(RunningCommand { at, queue, submitted }) = running else { return self.moments.len() };
        self.moments.push(TimelineMoment {
            executed_at: ProgramLocation::Command(at),
            queue,
            submitted: Some(submitted),
            action: what,
        });
        self.moments.len() - 1
    }

    pub(crate) fn queue(&self) -> u8 {
        self.running.as_ref().map_or(0, |it| it.queue)
    }

    pub(crate) fn flags(&self) -> u32 {
        self.program.queues.get(usize::from(self.queue())).map_or(0, |it| it.flags)
    }

    pub(crate) fn family(&self) -> u32 {
        self.program.queues.get(usize::from(self.queue())).map_or(0, |it| it.family)
    }

    fn commands(&mut self, id: CommandBufferId) {
        let program = self.program;
        let Some(buffer) = program.command_buffers.get(id.0 as usize) else { return };
        for (index, command) in buffer.commands.iter().enumerate() {
            self.edit_path(|path| path.push(index as u32));
            self.command(id, index as u32, command);
            self.edit_path(|path| path.truncate(path.len() - 1));
        }
    }

    fn edit_location(&mut self, change: impl FnOnce(&mut CommandLocation)) {
        if let Some(running) = &mut self.running {
            change(&mut running.at);
        }
    }

    fn edit_path(&mut self, change: impl FnOnce(&mut Vec<u32>)) {
        self.edit_location(|at| change(&mut at.path));
    }

    fn depth(&self) -> usize {
        self.running.as_ref().map_or(0, |it| it.at.path.len())
    }

    fn command(&mut self, buffer: CommandBufferId, index: u32, command: &'a Command) {
        match command {
            Command::Action(accesses) => {
                let uses: Vec<TimelineAccess> = accesses.iter().filter_map(timeline_access).collect();
                if accesses.iter().any(|it| it.certainty == Certainty::Unreported) {
                    self.possible_reads.push(self.moments.len());
                }
                if let Some(instance) = &mut self.instance {
                    instance.add_writes(&uses);
                }
                self.push_accesses(uses);
            }
            Command::Barrier(barrier) => {
                let elements = barrier_dependencies(self, barrier, buffer, index);
                self.push_dependencies(elements);
            }
            Command::SetEvent(set) => {
                let (event, given) = super::dependency::set_stages(set);
                let stages = scopes::source_stages(given, self.flags());
                let moment = self.push(TimelineAction::SetsEvent { stages, given, recorded_at: Some((buffer, index)) });
                self.set_event(event.0 as usize, moment);
            }
            Command::ResetEvent { event, .. } => {
                self.events.get_mut(event.0 as usize).map(Option::take);
            }
            Command::WaitEvents(wait) => {
                let elements = event_wait_dependencies(self, wait, buffer, index);
                self.push_dependencies(elements);
            }
            Command::Execute(buffers) => {
                for (place, id) in buffers.iter().enumerate() {
                    if self.depth() < DEPTH_MAX {
                        self.edit_path(|path| path.push(place as u32));
                        self.commands(*id);
                        self.edit_path(|path| path.truncate(path.len() - 1));
                    }
                }
            }
            Command::BeginRenderPass { pass, views, area } => self.begin_render_pass(*pass, views, *area),
            Command::NextSubpass => self.next_subpass(),
            Command::EndRenderPass => self.end_render_pass(),
            Command::BeginRendering(rendering) => self.begin_rendering(rendering),
            Command::EndRendering => self.end_rendering(),
        }
    }

    pub(crate) fn push_accesses(&mut self, mut uses: Vec<TimelineAccess>) {
        if uses.is_empty() {
            return;
        }
        if let Some(instance) = &self.instance {
            uses.iter_mut().for_each(|it| instance.assign_instance(it));
        }
        self.push(TimelineAction::Accesses(uses));
    }

    /// Adds the dependencies of a command, then their layout transitions.
    fn push_dependencies(&mut self, elements: Vec<ExecutedDependency>) {
        let transition = |executed_dependency: &ExecutedDependency| {
            let about = executed_dependency.resource_region.as_ref().filter(|_| executed_dependency.is_transition)?;
            // In version 1, all resource dependencies of a command apply together.
            let is_gate = |gate: &&ExecutedDependency| {
                gate.location == executed_dependency.location
                    || executed_dependency.is_version_1 && gate.resource_region.is_some()
            };
            let gates: Vec<ExecutedDependency> = elements.iter().filter(is_gate).cloned().collect();
            let (resource, region) = (about.resource, about.region.clone());
            Some(TimelineAccess {
                second_scopes: gates.clone(),
                first_scopes: gates,
                detail: AccessDetail::Barrier(executed_dependency.location),
                ..TimelineAccess::new(
                    resource,
                    region,
                    lavascope_engine::access::usages::TRANSITION_WRITE,
                    AccessRole::Transition,
                )
            })
        };
        let transitions: Vec<TimelineAccess> = elements.iter().filter_map(transition).collect();
        self.push(TimelineAction::Depends(elements));
        self.push_accesses(transitions);
    }
}

fn timeline_access(access: &lavascope_sync_ir::Access) -> Option<TimelineAccess> {
    let usage = SYNC_TABLES.usage(access.stage, access.access)?;
    if access.certainty == Certainty::Unreported {
        return None;
    }
    let order = access.order.into();
    let detail = AccessDetail::Command(access.origin);
    Some(TimelineAccess {
        order,
        detail,
        ..TimelineAccess::new(access.resource, access.region.clone(), usage, AccessRole::Command)
    })
}

/// The whole region of an image.
fn whole_image(program: &Program, image: ResourceId) -> Region {
    use lavascope_sync_ir::{Components, ImageRegion, ResourceKind};
    match program.resources.get(image.0 as usize).map(|it| &it.kind) {
        Some(ResourceKind::Image(image_desc)) => Region::Image(ImageRegion {
            aspects: u32::MAX,
            mips: 0..image_desc.mips,
            layers: 0..image_desc.layers,
            area: None,
            components: Components::ALL,
        }),
        Some(ResourceKind::Buffer { size }) => Region::Buffer(0..*size),
        None => Region::Buffer(0..0),
    }
}

/// The scopes of a semaphore: all accesses of the signaling stages, and all accesses of the waiting
/// stages (`synchronization-semaphores-signaling`, `synchronization-semaphores-waiting`).
pub(crate) fn semaphore_scope(signal: u64, wait: u64) -> SyncScope {
    let all = AccessFlags2::MEMORY_READ.0 | AccessFlags2::MEMORY_WRITE.0;
    SyncScope { src_stages: signal, src_access: all, dst_stages: wait, dst_access: all }
}
