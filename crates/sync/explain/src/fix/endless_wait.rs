//! Waits of the host that never end: the submitted work needs a signal or an event that the host gives only later.
//!
//! A fix must not add such a wait. The work of each queue is followed in its order, as far as the semaphores and events
//! allow that are signaled and set so far.

use std::collections::VecDeque;

use lavascope_sync_ir::{
    Command, CommandBufferId, EventId, FenceId, HostStep, Program, QueueId, SemaphoreId, SemaphorePoint, SetEvent,
    SubmitBatch, WaitEvents,
};

use super::apply::apply;
use super::change::{ProgramChange, ProgramFix};

/// Whether a fix adds a wait of the host that never ends, or makes one so.
pub(crate) fn adds_endless_wait(program: &Program, fix: &ProgramFix) -> bool {
    if !fix.changes.iter().any(adds_wait) {
        return false;
    }
    let mut changed = program.clone();
    for change in &fix.changes {
        let Some(next) = apply(&changed, change) else { return false };
        changed = next;
    }
    endless_waits(&changed) > endless_waits(program)
}

fn adds_wait(change: &ProgramChange) -> bool {
    matches!(
        change,
        ProgramChange::InsertHostWait { .. }
            | ProgramChange::AddWait { .. }
            | ProgramChange::AddSemaphore { .. }
            | ProgramChange::AddPresentWait { .. }
    )
}

/// Number of waits of the host whose work is not over by then, and cannot be without a later step.
fn endless_waits(program: &Program) -> usize {
    let mut device = DeviceProgress {
        program,
        queues: vec![VecDeque::new(); program.queues.len()],
        semaphores: vec![(false, 0); program.semaphore_count as usize],
        fences: vec![false; program.fence_count as usize],
        events: vec![false; program.event_count as usize],
    };
    program.steps.iter().filter(|it| !device.step(it)).count()
}

/// How far the device is.
struct DeviceProgress<'a> {
    program: &'a Program,
    queues: Vec<VecDeque<QueuedWork<'a>>>,
    /// Whether it is signaled, and the value of a timeline.
    semaphores: Vec<(bool, u64)>,
    fences: Vec<bool>,
    events: Vec<bool>,
}

#[derive(Clone)]
enum QueuedWork<'a> {
    Batch(&'a SubmitBatch),
    Fence(FenceId),
    Present(&'a [SemaphoreId]),
    Bind { waits: &'a [SemaphorePoint], signals: &'a [SemaphorePoint], fence: Option<FenceId> },
}

impl<'a> DeviceProgress<'a> {
    /// Returns false if the step is a wait that does not end.
    fn step(&mut self, step: &'a HostStep) -> bool {
        match step {
            HostStep::Submit { queue, batches, fence } => {
                let work = batches.iter().map(QueuedWork::Batch).chain(fence.map(QueuedWork::Fence));
                self.enqueue(*queue, work);
            }
            HostStep::Present { queue, waits, .. } => self.enqueue(*queue, [QueuedWork::Present(waits)]),
            HostStep::BindSparse { queue, waits, signals, fence, .. } => {
                self.enqueue(*queue, [QueuedWork::Bind { waits, signals, fence: *fence }]);
            }
            HostStep::Acquire { semaphore, fence, .. } => {
                semaphore.iter().for_each(|it| self.signal(SemaphorePoint { semaphore: *it, value: None }));
                fence.iter().for_each(|it| self.set_fence(*it, true));
            }
            HostStep::SignalSemaphore(point) => self.signal(*point),
            HostStep::SetEvent(event) => self.set_event(*event, true),
            HostStep::ResetEvent(event) => self.set_event(*event, false),
            HostStep::ResetFences(fences) => fences.iter().for_each(|it| self.set_fence(*it, false)),
            HostStep::WaitFences(fences) => {
                return fences.iter().all(|it| self.fences.get(it.0 as usize).is_none_or(|it| *it));
            }
            HostStep::WaitSemaphores(points) => return points.iter().all(|it| self.is_signaled(*it)),
            HostStep::QueueIdle(queue) => return self.queues.get(queue.0 as usize).is_none_or(VecDeque::is_empty),
            HostStep::DeviceIdle => return self.queues.iter().all(VecDeque::is_empty),
            HostStep::HostAccess { .. } | HostStep::Destroy(_) => return true,
        }
        self.run_ready_work();
        true
    }

    fn enqueue(&mut self, queue: QueueId, work: impl IntoIterator<Item = QueuedWork<'a>>) {
        if let Some(own) = self.queues.get_mut(queue.0 as usize) {
            own.extend(work);
        }
    }

    fn run_ready_work(&mut self) {
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for queue in 0..self.queues.len() {
                while let Some(work) = self.queues[queue].front().cloned() {
                    if !self.run(&work) {
                        break;
                    }
                    self.queues[queue].pop_front();
                    is_changed = true;
                }
            }
        }
    }

    /// Executes work, if it is ready.
    fn run(&mut self, work: &QueuedWork<'a>) -> bool {
        let binary = |semaphore: &SemaphoreId| SemaphorePoint { semaphore: *semaphore, value: None };
        match work {
            QueuedWork::Batch(batch) => {
                let waits: Vec<SemaphorePoint> = batch.waits.iter().map(|it| it.point).collect();
                let mut events = self.events.clone();
                let commands = |it: &CommandBufferId| self.run_commands(*it, &mut events);
                if !waits.iter().all(|it| self.is_signaled(*it)) || !batch.command_buffers.iter().all(commands) {
                    return false;
                }
                self.events = events;
                self.take(&waits);
                batch.signals.iter().for_each(|it| self.signal(it.point));
            }
            QueuedWork::Fence(fence) => self.set_fence(*fence, true),
            QueuedWork::Present(waits) => {
                let waits: Vec<SemaphorePoint> = waits.iter().map(binary).collect();
                if !waits.iter().all(|it| self.is_signaled(*it)) {
                    return false;
                }
                self.take(&waits);
            }
            QueuedWork::Bind { waits, signals, fence } => {
                if !waits.iter().all(|it| self.is_signaled(*it)) {
                    return false;
                }
                self.take(waits);
                signals.iter().for_each(|it| self.signal(*it));
                fence.iter().for_each(|it| self.set_fence(*it, true));
            }
        }
        true
    }

    /// Whether a command buffer comes to its end, with the events that are set when it begins.
    fn run_commands(&self, id: CommandBufferId, events: &mut [bool]) -> bool {
        let Some(buffer) = self.program.command_buffers.get(id.0 as usize) else { return true };
        for command in &buffer.commands {
            let is_set = |event: &EventId| events.get(event.0 as usize).is_none_or(|it| *it);
            let is_over = match command {
                Command::SetEvent(SetEvent::Sync1 { event, .. } | SetEvent::Sync2 { event, .. }) => {
                    set(events, *event, true)
                }
                Command::ResetEvent { event, .. } => set(events, *event, false),
                Command::WaitEvents(WaitEvents::Sync1 { events: waited, .. }) => waited.iter().all(is_set),
                Command::WaitEvents(WaitEvents::Sync2 { events: waited }) => waited.iter().all(|it| is_set(&it.0)),
                Command::Execute(buffers) => buffers.iter().all(|it| self.run_commands(*it, events)),
                _ => true,
            };
            if !is_over {
                return false;
            }
        }
        true
    }

    fn is_signaled(&self, point: SemaphorePoint) -> bool {
        let Some((is_signaled, value)) = self.semaphores.get(point.semaphore.0 as usize) else { return true };
        point.value.map_or(*is_signaled, |it| it <= *value)
    }

    fn take(&mut self, waits: &[SemaphorePoint]) {
        for point in waits.iter().filter(|it| it.value.is_none()) {
            if let Some(semaphore) = self.semaphores.get_mut(point.semaphore.0 as usize) {
                semaphore.0 = false;
            }
        }
    }

    fn signal(&mut self, point: SemaphorePoint) {
        if let Some(semaphore) = self.semaphores.get_mut(point.semaphore.0 as usize) {
            match point.value {
                None => semaphore.0 = true,
                Some(value) => semaphore.1 = semaphore.1.max(value),
            }
        }
    }

    fn set_fence(&mut self, fence: FenceId, value: bool) {
        if let Some(fence) = self.fences.get_mut(fence.0 as usize) {
            *fence = value;
        }
    }

    fn set_event(&mut self, event: EventId, value: bool) {
        set(&mut self.events, event, value);
    }
}

/// Sets or resets an event, which never waits.
fn set(events: &mut [bool], event: EventId, value: bool) -> bool {
    if let Some(event) = events.get_mut(event.0 as usize) {
        *event = value;
    }
    true
}
