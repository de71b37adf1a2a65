//! Whether a program comes to its end: each wait of the host and of a queue has its signal in time.

use std::collections::VecDeque;

use lavascope_sync_ir::{
    Command, EventId, FenceId, HostStep, Program, QueueId, ResourceId, SemaphorePoint, SetEvent, SubmitBatch,
    WaitEvents,
};

/// What is not done yet, and what has been signaled.
struct HostProgress<'a> {
    /// For each queue the batches that wait, with the fence behind the last one of a submission.
    queues: Vec<VecDeque<PendingBatch<'a>>>,
    signaled: Vec<SemaphorePoint>,
    fences: Vec<FenceId>,
    events: Vec<EventId>,
    /// Images that are acquired, and not presented since.
    acquired: Vec<ResourceId>,
    program: &'a Program,
}

struct PendingBatch<'a> {
    batch: Option<&'a SubmitBatch>,
    fence: Option<FenceId>,
}

/// Whether nothing of a program waits for ever, no binary semaphore is waited for before its signal is submitted, and
/// only acquired images are presented.
pub(crate) fn comes_to_its_end(program: &Program) -> bool {
    let queues = program.queues.iter().map(|_| VecDeque::new()).collect();
    let mut progress = HostProgress {
        queues,
        signaled: Vec::new(),
        fences: Vec::new(),
        events: Vec::new(),
        acquired: Vec::new(),
        program,
    };
    has_binary_signals(program) && program.steps.iter().all(|it| progress.advance(it)) && progress.is_idle()
}

impl<'a> HostProgress<'a> {
    /// Does a step; false if the host would wait for ever.
    fn advance(&mut self, step: &'a HostStep) -> bool {
        match step {
            HostStep::Submit { queue, batches, fence } => {
                let own = &mut self.queues[queue.0 as usize];
                own.extend(batches.iter().map(|it| PendingBatch { batch: Some(it), fence: None }));
                own.push_back(PendingBatch { batch: None, fence: *fence });
            }
            HostStep::SignalSemaphore(point) => self.signaled.push(*point),
            HostStep::Acquire { image, semaphore, fence } => {
                // The swapchain has one image, and does not give it twice.
                if self.acquired.contains(image) {
                    return false;
                }
                self.acquired.push(*image);
                self.signaled.extend(semaphore.map(|semaphore| SemaphorePoint { semaphore, value: None }));
                self.fences.extend(*fence);
            }
            HostStep::Present { images, .. } => {
                if !images.iter().all(|it| self.acquired.contains(it)) {
                    return false;
                }
                self.acquired.retain(|it| !images.contains(it));
            }
            HostStep::SetEvent(event) => self.events.push(*event),
            HostStep::ResetEvent(event) => self.events.retain(|it| it != event),
            HostStep::ResetFences(all) => self.fences.retain(|it| !all.contains(it)),
            _ => {}
        }
        if !self.run_queues() {
            return false;
        }
        match step {
            HostStep::WaitFences(all) => all.iter().all(|it| self.fences.contains(it)),
            HostStep::WaitSemaphores(points) => points.iter().all(|it| self.is_signaled(*it)),
            HostStep::QueueIdle(QueueId(queue)) => self.queues[*queue as usize].is_empty(),
            HostStep::DeviceIdle | HostStep::Destroy(_) => self.is_idle(),
            // What a presentation depends on has been submitted.
            HostStep::Present { .. } => self.is_idle(),
            _ => true,
        }
    }

    fn is_idle(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    fn is_signaled(&self, wanted: SemaphorePoint) -> bool {
        self.signaled.iter().any(|it| it.semaphore == wanted.semaphore && it.value >= wanted.value)
    }

    /// False if a queue would wait for an event that nothing sets.
    fn run_queues(&mut self) -> bool {
        while let Some(at) = (0..self.queues.len()).find(|it| self.can_run(*it)) {
            let Some(done) = self.queues[at].pop_front() else { return false };
            let program = self.program;
            let mut buffers = done.batch.into_iter().flat_map(|it| &it.command_buffers);
            if !buffers.all(|it| self.run_commands(&program.command_buffers[it.0 as usize].commands)) {
                return false;
            }
            let signals = done.batch.into_iter().flat_map(|it| &it.signals);
            self.signaled.extend(signals.map(|it| it.point));
            self.fences.extend(done.fence);
        }
        true
    }

    fn run_commands(&mut self, commands: &[Command]) -> bool {
        let program = self.program;
        commands.iter().all(|command| match command {
            Command::SetEvent(SetEvent::Sync1 { event, .. } | SetEvent::Sync2 { event, .. }) => {
                self.events.push(*event);
                true
            }
            Command::ResetEvent { event, .. } => {
                self.events.retain(|it| it != event);
                true
            }
            Command::WaitEvents(WaitEvents::Sync1 { events, .. }) => events.iter().all(|it| self.events.contains(it)),
            Command::WaitEvents(WaitEvents::Sync2 { events }) => events.iter().all(|it| self.events.contains(&it.0)),
            Command::Execute(all) => {
                all.iter().all(|it| self.run_commands(&program.command_buffers[it.0 as usize].commands))
            }
            _ => true,
        })
    }

    fn can_run(&self, queue: usize) -> bool {
        let Some(first) = self.queues[queue].front() else { return false };
        first.batch.is_none_or(|it| it.waits.iter().all(|it| self.is_signaled(it.point)))
    }
}

/// A wait for a binary semaphore consumes a signal that was submitted before.
fn has_binary_signals(program: &Program) -> bool {
    let mut open = Vec::new();
    let take = |open: &mut Vec<_>, semaphore| {
        let found = open.iter().position(|it| *it == semaphore);
        found.map(|it| open.swap_remove(it)).is_some()
    };
    program.steps.iter().all(|step| match step {
        HostStep::Submit { batches, .. } => batches.iter().all(|batch| {
            let waits = batch.waits.iter().filter(|it| it.point.value.is_none());
            let has_all = waits.map(|it| it.point.semaphore).all(|it| take(&mut open, it));
            let signals = batch.signals.iter().filter(|it| it.point.value.is_none());
            open.extend(signals.map(|it| it.point.semaphore));
            has_all
        }),
        HostStep::Acquire { semaphore, .. } => {
            open.extend(*semaphore);
            true
        }
        HostStep::Present { waits, .. } => waits.iter().all(|it| take(&mut open, *it)),
        _ => true,
    })
}
