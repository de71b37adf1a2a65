//! An abstract machine that executes a program and logs what happens.
//!
//! The host executes its steps in order. A batch executes at submission, unless it waits for a semaphore. After each
//! signal, the queues continue in the order of their numbers, each as far as it can. Spec:
//! `synchronization-semaphores`, `synchronization-fences`, `synchronization-submission-host-writes`.

use std::collections::VecDeque;

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{
    CommandLocation, FenceId, HostStep, Program, ProgramLocation, RasterOrder, Region, ResourceId, ResourceKind,
    SemaphoreId, SemaphorePoint, SparseBind, SubmitBatch,
};

use super::{
    cells::CellTable,
    commands::{Environment, EventState},
    log::{
        AccessScope, END, ExecutedAccess, ExecutionAgent, ExecutionLog, LoggedDependency, OracleAccessRole,
        SynchronizationScope, Time,
    },
    masks::{self, EVERY_STAGE, PRESENT_STAGE},
    rendering::ExecutedPassInstance,
};

/// Executes a program.
pub(crate) fn execute<'p>(program: &'p Program) -> (ExecutionLog, CellTable<'p>) {
    let mut machine = ProgramExecutor::new(program);
    for (number, step) in program.steps.iter().enumerate() {
        machine.run_step(number as u32, step);
        machine.run_queues();
    }
    for queue in &machine.queues {
        machine.log.blocked.extend(queue.pending.iter().filter_map(|queue_item| match queue_item {
            QueueItem::Batch { step, batch, .. } => Some((*step, *batch)),
            QueueItem::Present { step, .. } | QueueItem::Bind { step, .. } => Some((*step, 0)),
            QueueItem::Fence(_) => None,
        }));
    }
    (machine.log, machine.cells)
}

pub(crate) struct ProgramExecutor<'p> {
    pub(crate) program: &'p Program,
    pub(crate) cells: CellTable<'p>,
    pub(crate) log: ExecutionLog,
    pub(crate) events: Vec<Option<EventState>>,
    clock: Time,
    queues: Vec<QueueState<'p>>,
    semaphores: Vec<VecDeque<ExecutedSignal>>,
    fences: Vec<Option<Vec<SynchronizationScope>>>,
}

#[derive(Default)]
struct QueueState<'p> {
    pending: VecDeque<QueueItem<'p>>,
    /// The first scopes of all signal operations so far. Each later signal includes them.
    signals: Vec<SynchronizationScope>,
    suspended: Option<ExecutedPassInstance<'p>>,
}

enum QueueItem<'p> {
    Batch { step: u32, batch: u32, submitted: Time, content: &'p SubmitBatch },
    Fence(u32),
    Present { step: u32, submitted: Time, waits: &'p [SemaphoreId], images: &'p [ResourceId] },
    Bind { step: u32, submitted: Time, content: SparseBindBatch<'p> },
}

/// A batch of `vkQueueBindSparse`.
struct SparseBindBatch<'p> {
    waits: &'p [SemaphorePoint],
    binds: &'p [SparseBind],
    signals: &'p [SemaphorePoint],
    fence: Option<FenceId>,
}

/// An executed signal operation.
struct ExecutedSignal {
    value: Option<u64>,
    first: Vec<SynchronizationScope>,
}

impl<'p> ProgramExecutor<'p> {
    fn new(program: &'p Program) -> ProgramExecutor<'p> {
        ProgramExecutor {
            program,
            cells: CellTable::new(program),
            log: ExecutionLog::default(),
            events: vec![None; program.event_count as usize],
            clock: 0,
            queues: program.queues.iter().map(|_| QueueState::default()).collect(),
            semaphores: (0..program.semaphore_count).map(|_| VecDeque::new()).collect(),
            fences: vec![None; program.fence_count as usize],
        }
    }

    pub(crate) fn tick(&mut self) -> Time {
        self.clock += 1;
        self.clock
    }

    pub(crate) fn push_dependency(&mut self, dependency: LoggedDependency) -> usize {
        self.log.dependencies.push(dependency);
        self.log.dependencies.len() - 1
    }

    fn run_step(&mut self, number: u32, step: &'p HostStep) {
        let time = self.tick();
        match step {
            HostStep::Submit { queue, batches, fence } => {
                let items = &mut self.queues[queue.0 as usize].pending;
                for (batch, content) in batches.iter().enumerate() {
                    items.push_back(QueueItem::Batch { step: number, batch: batch as u32, submitted: time, content });
                }
                items.extend(fence.map(|it| QueueItem::Fence(it.0)));
            }
            HostStep::WaitFences(fences) => {
                let scopes = fences.iter().filter_map(|it| self.fences[it.0 as usize].clone()).flatten().collect();
                self.order_host_after(time, scopes);
            }
            HostStep::ResetFences(fences) => fences.iter().for_each(|it| self.fences[it.0 as usize] = None),
            HostStep::QueueIdle(queue) => self.order_host_after(time, self.idle_scopes(queue.0, time).collect()),
            HostStep::DeviceIdle => {
                let queues = 0..self.program.queues.len() as u32;
                self.order_host_after(time, queues.flat_map(|it| self.idle_scopes(it, time)).collect());
            }
            HostStep::WaitSemaphores(points) => {
                let scopes = points.iter().filter_map(|it| self.find_signal_scopes(*it)).flatten().collect();
                self.order_host_after(time, scopes);
            }
            HostStep::SignalSemaphore(point) => {
                self.signal(*point, vec![everything_before(ExecutionAgent::Host, time)])
            }
            HostStep::SetEvent(event) => {
                let state = &mut self.events[event.0 as usize];
                state.get_or_insert(EventState {
                    line: ExecutionAgent::Host,
                    time,
                    stages: PipelineStageFlags2::HOST.0,
                });
            }
            HostStep::ResetEvent(event) => self.events[event.0 as usize] = None,
            HostStep::HostAccess { resource, region, is_write, .. } => {
                self.push_host_access(number, *resource, region, *is_write);
            }
            HostStep::Acquire { image, semaphore, fence } => {
                let first = self.acquire(number, time, *image);
                if let Some(semaphore) = semaphore {
                    self.signal(SemaphorePoint { semaphore: *semaphore, value: None }, first.clone());
                }
                if let Some(fence) = fence {
                    self.fences[fence.0 as usize] = Some(first);
                }
            }
            HostStep::Present { queue, waits, images } => {
                let item = QueueItem::Present { step: number, submitted: time, waits, images };
                self.queues[queue.0 as usize].pending.push_back(item);
            }
            HostStep::BindSparse { queue, waits, binds, signals, fence } => {
                let content = SparseBindBatch { waits, binds, signals, fence: *fence };
                let item = QueueItem::Bind { step: number, submitted: time, content };
                self.queues[queue.0 as usize].pending.push_back(item);
            }
            HostStep::Destroy(resource) => {
                let is_alone = !self.cells.is_shared(*resource, &self.log.destroyed);
                self.log.destroyed_unshared.extend(is_alone.then_some((time, *resource)));
                self.log.destroyed.push((time, *resource));
            }
        }
    }

    /// `vkAcquireNextImageKHR`: returns the first scope of its signal, which is the acquire of the presentation engine.
    /// The scope does not include the earlier present: otherwise chains would lead through it from what the present
    /// waited for.
    fn acquire(&mut self, step: u32, from: Time, image: ResourceId) -> Vec<SynchronizationScope> {
        self.push_presentation_access(step, 0, image, OracleAccessRole::Acquire);
        let agent = ExecutionAgent::PresentationEngine(image.0);
        vec![SynchronizationScope { agent, from, to: self.tick(), stages: EVERY_STAGE }]
    }

    /// After the host has learned that something is complete, its later steps are ordered after it.
    fn order_host_after(&mut self, time: Time, first: Vec<SynchronizationScope>) {
        let second = SynchronizationScope { agent: ExecutionAgent::Host, from: time, to: END, stages: EVERY_STAGE };
        self.push_dependency(LoggedDependency {
            first_scopes: first,
            second_scope: second,
            available: vec![AccessScope::All],
            visible: Vec::new(),
            marker_stages: None,
        });
    }

    fn signal(&mut self, point: SemaphorePoint, first: Vec<SynchronizationScope>) {
        self.semaphores[point.semaphore.0 as usize].push_back(ExecutedSignal { value: point.value, first });
    }

    /// The first scopes of the signal operation that satisfies a wait for this point.
    fn find_signal_scopes(&self, point: SemaphorePoint) -> Option<Vec<SynchronizationScope>> {
        let signals = &self.semaphores[point.semaphore.0 as usize];
        let Some(value) = point.value else {
            return signals.front().map(|it| it.first.clone());
        };
        if value == 0 {
            return Some(Vec::new());
        }
        // The first signal that reaches the value. If several do, nothing guarantees more than the first.
        let reached = signals.iter().find(|it| it.value.is_some_and(|it| it >= value))?;
        Some(reached.first.clone())
    }

    fn push_host_access(&mut self, step: u32, resource: ResourceId, region: &Region, is_write: bool) {
        let access = if is_write { AccessFlags2::HOST_WRITE.0 } else { AccessFlags2::HOST_READ.0 };
        let op = ExecutedAccess {
            time: self.tick(),
            agent: ExecutionAgent::Host,
            place: ProgramLocation::Step(step),
            index: 0,
            resource,
            cells: self.cells.cell_indices(resource, region),
            stage: PipelineStageFlags2::HOST.0,
            access,
            is_write,
            role: OracleAccessRole::Plain,
            order: RasterOrder::None,
            subpass: None,
        };
        self.log.accesses.push(op);
    }

    fn push_presentation_access(&mut self, step: u32, index: u32, image: ResourceId, role: OracleAccessRole) {
        let ResourceKind::Image(kind) = &self.program.resources[image.0 as usize].kind else { return };
        let region = Region::Image(lavascope_sync_ir::ImageRegion {
            aspects: lavascope_abi::ImageAspectFlags::COLOR.0,
            mips: 0..kind.mips,
            layers: 0..kind.layers,
            area: None,
            components: lavascope_sync_ir::Components::ALL,
        });
        let op = ExecutedAccess {
            time: self.tick(),
            agent: ExecutionAgent::PresentationEngine(image.0),
            place: ProgramLocation::Step(step),
            index,
            resource: image,
            cells: self.cells.cell_indices(image, &region),
            stage: PRESENT_STAGE,
            access: 0,
            is_write: true,
            role,
            order: RasterOrder::None,
            subpass: None,
        };
        self.log.accesses.push(op);
    }

    /// The first scopes of a queue wait: those of a fence after all work of the queue.
    fn idle_scopes(&self, queue: u32, time: Time) -> impl Iterator<Item = SynchronizationScope> {
        let signals = self.queues[queue as usize].signals.iter().copied();
        signals.chain([everything_before(ExecutionAgent::Queue(queue), time)])
    }

    /// If several queues can continue, their order is free, but it matters for sparse binds. The first queue that can
    /// continue does.
    fn run_queues(&mut self) {
        while let Some(queue) = (0..self.queues.len()).find(|it| self.can_run(*it)) {
            let item = self.queues[queue].pending.pop_front().expect("an item that can run is there");
            self.run_item(queue as u32, item);
        }
    }

    fn can_run(&self, queue: usize) -> bool {
        match self.queues[queue].pending.front() {
            None => false,
            Some(QueueItem::Fence(_)) => true,
            Some(QueueItem::Batch { content, .. }) => {
                content.waits.iter().all(|it| self.find_signal_scopes(it.point).is_some())
            }
            Some(QueueItem::Bind { content, .. }) => {
                content.waits.iter().all(|it| self.find_signal_scopes(*it).is_some())
            }
            Some(QueueItem::Present { waits, .. }) => waits.iter().all(|it| !self.semaphores[it.0 as usize].is_empty()),
        }
    }

    fn run_item(&mut self, queue: u32, item: QueueItem<'p>) {
        match item {
            QueueItem::Batch { step, batch, submitted, content } => {
                self.run_batch(queue, step, batch, submitted, content)
            }
            QueueItem::Fence(fence) => {
                // Includes the earlier signals of the queue with their first scopes. For sparse binds these are scopes
                // of other queues.
                let scope = everything_before(ExecutionAgent::Queue(queue), self.tick());
                let signals = &mut self.queues[queue as usize].signals;
                signals.push(scope);
                self.fences[fence as usize] = Some(signals.clone());
            }
            QueueItem::Present { step, submitted, waits, images } => self.present(step, submitted, waits, images),
            QueueItem::Bind { submitted, content, .. } => self.bind_sparse(queue, submitted, &content),
        }
    }

    fn run_batch(&mut self, queue: u32, step: u32, batch: u32, submitted: Time, content: &'p SubmitBatch) {
        let begin = self.tick();
        let after = |stages| SynchronizationScope { agent: ExecutionAgent::Queue(queue), from: begin, to: END, stages };
        if batch == 0 {
            self.push_full_dependency(vec![everything_before(ExecutionAgent::Host, submitted)], after(EVERY_STAGE));
        }
        for wait in &content.waits {
            let first = self.take_signal_scopes(wait.point);
            let stages = masks::second_scope(wait.stages, self.queue_flags(queue));
            self.push_full_dependency(first, after(stages));
        }
        self.run_command_buffers(queue, step, batch, content);
        for signal in &content.signals {
            // A signal after all commands also comes after what they made visible to the host.
            let is_all = signal.stages & PipelineStageFlags2::ALL_COMMANDS.0 != 0;
            let host = if is_all { PipelineStageFlags2::HOST.0 } else { 0 };
            let stages = masks::first_scope(signal.stages, self.queue_flags(queue)) | host;
            let scope = SynchronizationScope { agent: ExecutionAgent::Queue(queue), from: 0, to: self.tick(), stages };
            let signals = &mut self.queues[queue as usize].signals;
            signals.push(scope);
            let mut first = signals.clone();
            first.push(everything_before(ExecutionAgent::Host, submitted));
            self.signal(signal.point, first);
        }
    }

    fn run_command_buffers(&mut self, queue: u32, step: u32, batch: u32, content: &'p SubmitBatch) {
        let suspended = self.queues[queue as usize].suspended.take();
        let mut environment = Environment { queue, pass: None, suspended };
        for (primary, id) in content.command_buffers.iter().enumerate() {
            let at = CommandLocation { step, batch, primary: primary as u32, path: Vec::new() };
            self.run_commands(&mut environment, *id, &at);
        }
        self.queues[queue as usize].suspended = environment.suspended;
    }

    fn present(&mut self, step: u32, submitted: Time, waits: &[SemaphoreId], images: &[ResourceId]) {
        let begin = self.tick();
        let firsts: Vec<_> =
            waits.iter().map(|it| self.take_signal_scopes(SemaphorePoint { semaphore: *it, value: None })).collect();
        let host = everything_before(ExecutionAgent::Host, submitted);
        for (index, image) in images.iter().enumerate() {
            self.push_presentation_access(step, index as u32, *image, OracleAccessRole::Present);
            let to = self.tick();
            let second = SynchronizationScope {
                agent: ExecutionAgent::PresentationEngine(image.0),
                from: begin,
                to,
                stages: EVERY_STAGE,
            };
            for first in firsts.iter().cloned().chain([vec![host]]) {
                self.push_full_dependency(first, second);
            }
        }
    }

    /// A sparse bind has no commands, so its signals come only after its waits, after earlier host operations and after
    /// earlier signals of the queue. Spec: `synchronization-semaphores-signaling`, `vkQueueBindSparse`.
    fn bind_sparse(&mut self, queue: u32, submitted: Time, content: &SparseBindBatch<'p>) {
        let time = self.tick();
        let mut first = vec![everything_before(ExecutionAgent::Host, submitted)];
        for point in content.waits {
            first.extend(self.take_signal_scopes(*point));
        }
        for bind in content.binds {
            self.cells.bind(bind);
            self.log.binds.push((time, bind.clone()));
        }
        if content.signals.is_empty() && content.fence.is_none() {
            return;
        }
        let signals = &mut self.queues[queue as usize].signals;
        signals.extend(first);
        let first = signals.clone();
        content.signals.iter().for_each(|it| self.signal(*it, first.clone()));
        if let Some(fence) = content.fence {
            self.fences[fence.0 as usize] = Some(first);
        }
    }

    /// Takes the first scopes of a semaphore wait. A binary semaphore becomes unsignaled.
    fn take_signal_scopes(&mut self, point: SemaphorePoint) -> Vec<SynchronizationScope> {
        let first = self.find_signal_scopes(point).unwrap_or_default();
        if point.value.is_none() {
            self.semaphores[point.semaphore.0 as usize].pop_front();
        }
        first
    }

    /// Logs a dependency whose access scopes include all memory.
    fn push_full_dependency(&mut self, first: Vec<SynchronizationScope>, second: SynchronizationScope) {
        let all = || vec![AccessScope::All];
        self.push_dependency(LoggedDependency {
            first_scopes: first,
            second_scope: second,
            available: all(),
            visible: all(),
            marker_stages: None,
        });
    }

    pub(crate) fn queue_flags(&self, queue: u32) -> u32 {
        self.program.queues[queue as usize].flags
    }
}

fn everything_before(line: ExecutionAgent, to: Time) -> SynchronizationScope {
    SynchronizationScope { agent: line, from: 0, to, stages: EVERY_STAGE }
}
