//! A program as one list of moments, in the order in which the engine executes them.
//!
//! Command buffers are unrolled, batches stand where their semaphores let them run, and every wait knows the moment
//! that it waits for. Whoever follows an access needs no scheduler of its own.

use std::collections::{BTreeMap, VecDeque};

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{
    CommandLocation, SubmitBatch, Command, CommandBufferId, FenceId, Origin, ProgramLocation, SemaphorePoint, Program, QueueId, Region, ResourceId, SyncScope,
    SemaphoreId, SemaphoreSignal, SparseBind, HostStep, SemaphoreWait,
};

use super::detail::{Detail, Within};
use super::element::{Element, elements_of, moments_of_wait};
use super::passes::Instance;
use super::{BatchPart, Role};
use lavascope_engine::AddressMap;
use lavascope_engine::order::AccessOrder;
use lavascope_engine::scope;
use lavascope_engine::usage::{PRESENT, StageSet, SYNC_TABLES, UsageIndex};

/// Command buffers call command buffers at most this deep, as in the engine.
const DEPTH_MAX: usize = 16;

pub(super) struct Timeline<'a> {
    pub(super) program: &'a Program,
    pub(super) moments: Vec<Moment>,
    /// Where everything lies, from a moment on: bindings of sparse resources change it.
    addresses: Vec<(usize, AddressMap)>,
}

pub(super) struct Moment {
    pub(super) place: ProgramLocation,
    /// Of the device, or the host, or the presentation engine.
    pub(super) queue: u8,
    /// When the batch was submitted.
    pub(super) submitted: Option<usize>,
    pub(super) what: Happens,
}

pub(super) enum Happens {
    /// Accesses of one command, which never conflict with each other.
    Uses(Vec<Used>),
    /// Dependencies of one command, all of which look at what was before it.
    Depends(Vec<Element>),
    SetsEvent {
        stages: StageSet,
        given: u64,
        recorded: Option<(CommandBufferId, u32)>,
    },
    PassBegins,
    /// With what dependencies from elsewhere hand on.
    SubpassBegins(Vec<Element>),
    SubpassEnds,
    /// Rendering without a render pass; a barrier inside is limited to it.
    RenderingBegins {
        instance: usize,
        resumption: Resumption,
    },
    RenderingEnds,
    PassEnds(Vec<Element>),
    Submits,
    BatchBegins,
    Waits {
        /// The moment that signaled, if there was one to wait for.
        signal: Option<usize>,
        stages: u64,
        part: BatchPart,
    },
    Signals {
        stages: u64,
        part: BatchPart,
    },
    /// All that a queue has done so far is done: a fence says so, or the host waits for the queue.
    Completes(Completion),
    /// The host waited for these moments.
    HostLearns(Vec<usize>),
    HostSignals,
    /// The presentation engine says that it is done with an image.
    Acquires(ResourceId),
    /// Memory is bound, after the moments that it waits for; it hands on what they do.
    Binds {
        signals: Vec<usize>,
        is_signaling: bool,
    },
    /// Nothing is known of the resource's memory any more.
    Destroys(ResourceId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resumption {
    New,
    Resumed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    Fence,
    Idle,
}

/// One access, ready to be compared.
#[derive(Clone)]
pub(super) struct Used {
    pub(super) resource: ResourceId,
    pub(super) region: Region,
    pub(super) usage: UsageIndex,
    pub(super) order: AccessOrder,
    pub(super) role: Role,
    pub(super) detail: Detail,
    pub(super) within: Within,
    /// The render pass instance, by the moment at which it began, and the subpass.
    pub(super) instance: Option<usize>,
    pub(super) subpass: Option<u32>,
    /// Subpasses that nothing orders before this one.
    pub(super) apart: Vec<u32>,
    /// Of a layout transition: the dependencies whose first scopes it comes after,
    pub(super) gates: Vec<Element>,
    /// and those whose second scopes it comes before.
    pub(super) second: Vec<Element>,
    /// Of a present: the moments whose signals it waits for.
    pub(super) signals: Vec<usize>,
}

impl Used {
    pub(super) fn new(resource: ResourceId, region: Region, usage: UsageIndex, role: Role) -> Used {
        Used {
            resource,
            region,
            usage,
            order: AccessOrder::None,
            role,
            detail: Detail::Command(Origin::NONE),
            within: Within::Nothing,
            instance: None,
            subpass: None,
            apart: Vec::new(),
            gates: Vec::new(),
            second: Vec::new(),
            signals: Vec::new(),
        }
    }

    pub(super) fn is_write(&self) -> bool {
        SYNC_TABLES.write_column(self.usage).is_some()
    }
}

impl<'a> Timeline<'a> {
    pub(super) fn new(program: &'a Program) -> Timeline<'a> {
        let mut addresses = AddressMap::default();
        for resource in &program.resources {
            addresses.add(resource);
        }
        let mut builder = Builder {
            program,
            moments: Vec::new(),
            queues: program.queues.iter().map(|_| VecDeque::new()).collect(),
            semaphores: (0..program.semaphore_count).map(|_| Semaphore::default()).collect(),
            fences: vec![None; program.fence_count as usize],
            events: vec![None; program.event_count as usize],
            suspended: vec![None; program.queues.len()],
            instance: None,
            running: None,
            binds: Vec::new(),
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
        Timeline { program, moments: builder.moments, addresses: all }
    }

    /// Where things lie at a moment.
    pub(super) fn addresses(&self, moment: usize) -> &AddressMap {
        let after = self.addresses.partition_point(|it| it.0 <= moment);
        &self.addresses[after.saturating_sub(1)].1
    }

    pub(super) fn host(&self) -> u8 {
        self.program.queues.len() as u8
    }

    pub(super) fn presentation(&self) -> u8 {
        self.program.queues.len() as u8 + 1
    }

    /// All accesses, with their moments.
    pub(super) fn uses(&self) -> impl Iterator<Item = (usize, &Used)> {
        self.moments.iter().enumerate().flat_map(|(index, it)| {
            let uses = if let Happens::Uses(uses) = &it.what { &uses[..] } else { &[] };
            uses.iter().map(move |it| (index, it))
        })
    }
}

pub(super) struct Builder<'a> {
    pub(super) program: &'a Program,
    pub(super) moments: Vec<Moment>,
    queues: Vec<VecDeque<Parked<'a>>>,
    semaphores: Vec<Semaphore>,
    fences: Vec<Option<usize>>,
    pub(super) events: Vec<Option<usize>>,
    /// By queue: where rendering that was suspended began.
    pub(super) suspended: Vec<Option<usize>>,
    pub(super) instance: Option<Instance>,
    running: Option<Running>,
    /// In the order in which they took place, each with its moment.
    binds: Vec<(usize, &'a [SparseBind])>,
}

/// The command that is being executed.
#[derive(Clone)]
struct Running {
    at: CommandLocation,
    queue: u8,
    submitted: usize,
}

struct Parked<'a> {
    step: u32,
    submitted: usize,
    work: Work<'a>,
}

#[derive(Clone, Copy)]
enum Work<'a> {
    Batch(u32, &'a SubmitBatch),
    Fence(FenceId),
    Present(&'a [SemaphoreId], &'a [ResourceId]),
    Sparse(SparseWork<'a>),
}

#[derive(Clone, Copy)]
struct SparseWork<'a> {
    waits: &'a [SemaphorePoint],
    binds: &'a [SparseBind],
    signals: &'a [SemaphorePoint],
    fence: Option<FenceId>,
}

/// The moments of signals.
#[derive(Default)]
struct Semaphore {
    binary: Option<usize>,
    values: BTreeMap<u64, usize>,
}

/// Images of which single components are used have addresses for each.
fn add_planes(addresses: &mut AddressMap, moments: &[Moment]) {
    for moment in moments {
        let uses = if let Happens::Uses(uses) = &moment.what { &uses[..] } else { &[] };
        let elements = if let Happens::Depends(elements) = &moment.what { &elements[..] } else { &[] };
        let abouts = elements.iter().filter_map(|it| it.about.as_ref()).map(|it| (it.resource, &it.region));
        for (resource, region) in uses.iter().map(|it| (it.resource, &it.region)).chain(abouts) {
            if addresses.needs_component_planes(resource, region) {
                addresses.add_component_planes(resource);
            }
        }
    }
}

impl<'a> Builder<'a> {
    fn step(&mut self, index: u32, step: &'a HostStep) {
        let host = self.queues.len() as u8;
        match step {
            HostStep::Submit { queue, batches, fence } => self.submit(index, *queue, batches, *fence),
            HostStep::WaitFences(fences) => {
                let from = fences.iter().filter_map(|it| *self.fences.get(it.0 as usize)?).collect();
                self.host(index, host, Happens::HostLearns(from));
            }
            HostStep::ResetFences(fences) => {
                for fence in fences {
                    self.fences.get_mut(fence.0 as usize).map(Option::take);
                }
            }
            HostStep::QueueIdle(queue) => self.idle(index, &[queue.0 as u8]),
            HostStep::DeviceIdle => self.idle(index, &(0..host).collect::<Vec<_>>()),
            HostStep::WaitSemaphores(points) => {
                let from = points.iter().filter_map(|it| self.signal_of(*it)).collect();
                self.host(index, host, Happens::HostLearns(from));
            }
            HostStep::SignalSemaphore(point) => {
                let moment = self.host(index, host, Happens::HostSignals);
                self.set_semaphore(*point, moment);
            }
            HostStep::SetEvent(event) => {
                let what = Happens::SetsEvent {
                    stages: scope::COMMON_SETS.host,
                    given: PipelineStageFlags2::HOST.0,
                    recorded: None,
                };
                let moment = self.host(index, host, what);
                self.set_event(event.0 as usize, moment);
            }
            HostStep::ResetEvent(event) => {
                self.events.get_mut(event.0 as usize).map(Option::take);
            }
            HostStep::HostAccess { resource, region, is_write, .. } => {
                let access = if *is_write { AccessFlags2::HOST_WRITE } else { AccessFlags2::HOST_READ };
                let usage = SYNC_TABLES.usage(PipelineStageFlags2::HOST.0, access.0);
                let uses = usage.map(|usage| Used::new(*resource, region.clone(), usage, Role::Host));
                self.host(index, host, Happens::Uses(uses.into_iter().collect()));
            }
            HostStep::Acquire { image, semaphore, fence } => self.acquire(index, *image, *semaphore, *fence),
            HostStep::Present { queue, waits, images } => self.park(index, *queue, [Work::Present(waits, images)]),
            HostStep::BindSparse { queue, waits, binds, signals, fence } => {
                self.park(index, *queue, [Work::Sparse(SparseWork { waits, binds, signals, fence: *fence })]);
            }
            HostStep::Destroy(resource) => {
                self.host(index, host, Happens::Destroys(*resource));
            }
        }
        self.run();
    }

    fn host(&mut self, step: u32, queue: u8, what: Happens) -> usize {
        self.moments.push(Moment { place: ProgramLocation::Step(step), queue, submitted: None, what });
        self.moments.len() - 1
    }

    fn idle(&mut self, step: u32, queues: &[u8]) {
        let complete = |it: &u8| self.host(step, *it, Happens::Completes(Completion::Idle));
        let from = queues.iter().map(complete).collect();
        self.host(step, self.queues.len() as u8, Happens::HostLearns(from));
    }

    fn acquire(&mut self, step: u32, image: ResourceId, semaphore: Option<SemaphoreId>, fence: Option<FenceId>) {
        let presentation = self.queues.len() as u8 + 1;
        let used = Used::new(image, whole_image(self.program, image), PRESENT, Role::Acquire);
        self.host(step, presentation, Happens::Uses(vec![used]));
        let moment = self.host(step, presentation, Happens::Acquires(image));
        if let Some(fence) = fence.and_then(|it| self.fences.get_mut(it.0 as usize)) {
            *fence = Some(moment);
        }
        if let Some(semaphore) = semaphore {
            self.set_semaphore(SemaphorePoint { semaphore, value: None }, moment);
        }
    }

    fn submit(&mut self, step: u32, queue: QueueId, batches: &'a [SubmitBatch], fence: Option<FenceId>) {
        let batches = batches.iter().enumerate().map(|(index, it)| Work::Batch(index as u32, it));
        self.park(step, queue, batches.chain(fence.map(Work::Fence)));
    }

    fn park(&mut self, step: u32, queue: QueueId, work: impl IntoIterator<Item = Work<'a>>) {
        let submitted = self.host(step, self.queues.len() as u8, Happens::Submits);
        if let Some(own) = self.queues.get_mut(queue.0 as usize) {
            own.extend(work.into_iter().map(|work| Parked { step, submitted, work }));
        }
    }

    /// Executes work until every queue is empty or waits; the first queue that can go on goes on.
    fn run(&mut self) {
        loop {
            let is_ready = |it: &Parked<'_>| self.is_ready(it.work);
            let Some(queue) = self.queues.iter().position(|it| it.front().is_some_and(is_ready)) else { return };
            let Some(Parked { step, submitted, work }) = self.queues[queue].pop_front() else { return };
            let at = CommandLocation { step, batch: 0, primary: 0, path: Vec::new() };
            self.running = Some(Running { at, queue: queue as u8, submitted });
            match work {
                Work::Batch(index, batch) => self.batch(index, batch),
                Work::Fence(fence) => {
                    let moment = self.push(Happens::Completes(Completion::Fence));
                    if let Some(fence) = self.fences.get_mut(fence.0 as usize) {
                        *fence = Some(moment);
                    }
                }
                Work::Present(waits, images) => self.present(step, submitted, waits, images),
                Work::Sparse(work) => self.bind_sparse(step, queue as u8, submitted, work),
            }
            self.running = None;
        }
    }

    fn is_ready(&self, work: Work<'_>) -> bool {
        let binary = |semaphore| SemaphorePoint { semaphore, value: None };
        match work {
            Work::Batch(_, batch) => batch.waits.iter().all(|it| self.is_signaled(it.point)),
            Work::Fence(_) => true,
            Work::Present(waits, _) => waits.iter().all(|it| self.is_signaled(binary(*it))),
            Work::Sparse(work) => work.waits.iter().all(|it| self.is_signaled(*it)),
        }
    }

    fn present(&mut self, step: u32, submitted: usize, waits: &[SemaphoreId], images: &[ResourceId]) {
        let points = waits.iter().map(|it| SemaphorePoint { semaphore: *it, value: None });
        let signals: Vec<usize> = points.filter_map(|it| self.take(it)).collect();
        let uses = images.iter().map(|image| {
            let region = whole_image(self.program, *image);
            Used { signals: signals.clone(), ..Used::new(*image, region, PRESENT, Role::Present) }
        });
        let what = Happens::Uses(uses.collect());
        let queue = self.queues.len() as u8 + 1;
        self.moments.push(Moment { place: ProgramLocation::Step(step), queue, submitted: Some(submitted), what });
    }

    fn bind_sparse(&mut self, step: u32, queue: u8, submitted: usize, work: SparseWork<'a>) {
        let signals = work.waits.iter().filter_map(|it| self.take(*it)).collect();
        let is_signaling = !work.signals.is_empty() || work.fence.is_some();
        let what = Happens::Binds { signals, is_signaling };
        self.moments.push(Moment { place: ProgramLocation::Step(step), queue, submitted: Some(submitted), what });
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
        self.at(|at| at.batch = index);
        let step = self.running.as_ref().map_or(0, |it| it.at.step);
        let part = |it: usize| BatchPart { step, batch: index, index: it as u32 };
        self.push(Happens::BatchBegins);
        for (index, SemaphoreWait { point, stages }) in batch.waits.iter().enumerate() {
            let signal = self.take(*point);
            self.push(Happens::Waits { signal, stages: *stages, part: part(index) });
        }
        for (primary, id) in batch.command_buffers.iter().enumerate() {
            self.at(|at| at.primary = primary as u32);
            self.instance = None;
            self.commands(*id);
        }
        self.at(|at| at.primary = 0);
        for (index, SemaphoreSignal { point, stages }) in batch.signals.iter().enumerate() {
            let moment = self.push(Happens::Signals { stages: *stages, part: part(index) });
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

    /// Setting what is set already changes nothing.
    fn set_event(&mut self, event: usize, moment: usize) {
        if let Some(event) = self.events.get_mut(event) {
            event.get_or_insert(moment);
        }
    }

    /// Adds a moment of the command that is running.
    pub(super) fn push(&mut self, what: Happens) -> usize {
        let running = self.running.clone();
        let Some(Running { at, queue, submitted }) = running else { return self.moments.len() };
        self.moments.push(Moment { place: ProgramLocation::Command(at), queue, submitted: Some(submitted), what });
        self.moments.len() - 1
    }

    pub(super) fn queue(&self) -> u8 {
        self.running.as_ref().map_or(0, |it| it.queue)
    }

    pub(super) fn flags(&self) -> u32 {
        self.program.queues.get(usize::from(self.queue())).map_or(0, |it| it.flags)
    }

    pub(super) fn family(&self) -> u32 {
        self.program.queues.get(usize::from(self.queue())).map_or(0, |it| it.family)
    }

    fn commands(&mut self, id: CommandBufferId) {
        let program = self.program;
        let Some(buffer) = program.command_buffers.get(id.0 as usize) else { return };
        for (index, command) in buffer.commands.iter().enumerate() {
            self.path(|path| path.push(index as u32));
            self.command(id, index as u32, command);
            self.path(|path| path.truncate(path.len() - 1));
        }
    }

    fn at(&mut self, change: impl FnOnce(&mut CommandLocation)) {
        if let Some(running) = &mut self.running {
            change(&mut running.at);
        }
    }

    fn path(&mut self, change: impl FnOnce(&mut Vec<u32>)) {
        self.at(|at| change(&mut at.path));
    }

    fn depth(&self) -> usize {
        self.running.as_ref().map_or(0, |it| it.at.path.len())
    }

    fn command(&mut self, buffer: CommandBufferId, index: u32, command: &'a Command) {
        match command {
            Command::Action(accesses) => {
                let uses: Vec<Used> = accesses.iter().filter_map(used).collect();
                self.uses(uses);
            }
            Command::Barrier(barrier) => {
                let elements = elements_of(self, barrier, buffer, index);
                self.depends(elements);
            }
            Command::SetEvent(set) => {
                let (event, given) = super::element::set_stages(set);
                let stages = scope::source_stages(given, self.flags());
                let moment = self.push(Happens::SetsEvent { stages, given, recorded: Some((buffer, index)) });
                self.set_event(event.0 as usize, moment);
            }
            Command::ResetEvent { event, .. } => {
                self.events.get_mut(event.0 as usize).map(Option::take);
            }
            Command::WaitEvents(wait) => {
                let elements = moments_of_wait(self, wait, buffer, index);
                self.depends(elements);
            }
            Command::Execute(buffers) => {
                for (place, id) in buffers.iter().enumerate() {
                    if self.depth() < DEPTH_MAX {
                        self.path(|path| path.push(place as u32));
                        self.commands(*id);
                        self.path(|path| path.truncate(path.len() - 1));
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

    pub(super) fn uses(&mut self, mut uses: Vec<Used>) {
        if uses.is_empty() {
            return;
        }
        if let Some(instance) = &self.instance {
            uses.iter_mut().for_each(|it| instance.place(it));
        }
        self.push(Happens::Uses(uses));
    }

    /// Dependencies, and then the layout transitions among them.
    fn depends(&mut self, elements: Vec<Element>) {
        let transition = |it: &Element| {
            let about = it.about.as_ref().filter(|_| it.is_transition)?;
            // In version 1 all elements about the same memory are one there.
            let is_gate = |gate: &&Element| gate.site == it.site || it.is_united && gate.about.is_some();
            let gates: Vec<Element> = elements.iter().filter(is_gate).cloned().collect();
            let (resource, region) = (about.resource, about.region.clone());
            Some(Used {
                second: gates.clone(),
                gates,
                detail: Detail::Barrier(it.site),
                ..Used::new(resource, region, lavascope_engine::usage::TRANSITION_WRITE, Role::Transition)
            })
        };
        let transitions: Vec<Used> = elements.iter().filter_map(transition).collect();
        self.push(Happens::Depends(elements));
        self.uses(transitions);
    }
}

fn used(access: &lavascope_sync_ir::Access) -> Option<Used> {
    let usage = SYNC_TABLES.usage(access.stage, access.access)?;
    let order = access.order.into();
    let detail = Detail::Command(access.origin);
    Some(Used { order, detail, ..Used::new(access.resource, access.region.clone(), usage, Role::Command) })
}

/// Everything of an image.
fn whole_image(program: &Program, image: ResourceId) -> Region {
    use lavascope_sync_ir::{Components, ImageRegion, ResourceKind};
    match program.resources.get(image.0 as usize).map(|it| &it.kind) {
        Some(ResourceKind::Image(it)) => Region::Image(ImageRegion {
            aspects: u32::MAX,
            mips: 0..it.mips,
            layers: 0..it.layers,
            area: None,
            components: Components::ALL,
        }),
        Some(ResourceKind::Buffer { size }) => Region::Buffer(0..*size),
        None => Region::Buffer(0..0),
    }
}

/// The masks of a semaphore: all accesses of the stages that wait, after all of those that signal.
pub(super) fn semaphore_scope(signal: u64, wait: u64) -> SyncScope {
    let all = AccessFlags2::MEMORY_READ.0 | AccessFlags2::MEMORY_WRITE.0;
    SyncScope { src_stages: signal, src_access: all, dst_stages: wait, dst_access: all }
}
