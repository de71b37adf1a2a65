//! TestRng steps of the host: submissions, what links them, and waits.

use lavascope_abi::PipelineStageFlags2 as S;
use lavascope_sync_ir::{
    Certainty, CommandBufferId, EventId, FenceId, HostStep, QueueId, ResourceId, SemaphoreId, SemaphorePoint,
    SemaphoreSignal, SemaphoreWait, SubmitBatch,
};

use super::{DependencyStyle, ProgramGenerator};

impl ProgramGenerator {
    pub(super) fn steps(&mut self) {
        let primaries: Vec<u32> =
            (0..self.buffer_traits.len() as u32).filter(|it| self.buffer_traits[*it as usize].is_submitted()).collect();
        let mut last = None;
        let mut left = primaries.clone();
        // The same image comes back, with the work of other frames between.
        let frames = primaries.iter().filter(|it| self.buffer_traits[**it as usize].is_presented);
        left.extend(frames.filter(|_| self.random.one_in(2)));
        while !left.is_empty() {
            let buffer = left.remove(0);
            self.before_submission(last);
            last = Some(self.submission(last, buffer));
            if self.features.resubmission && self.chance(25) && left.len() < 3 {
                let again = self.pick(&primaries);
                left.push(again);
            }
        }
        self.final_steps(last);
        if self.features.queues && self.chance(40) {
            self.move_waiter_before_signal();
        }
    }

    /// Acquires, host accesses and the like.
    fn before_submission(&mut self, last: Option<QueueId>) {
        if self.features.host_accesses && self.chance(20) {
            if last.is_some() && self.chance(80) {
                self.push_step(HostStep::DeviceIdle);
            }
            let resource = ResourceId(0);
            let (region, is_write) = (self.random_region(resource), self.chance(60));
            self.push_step(HostStep::HostAccess { resource, region, is_write, certainty: Certainty::Certain });
        }
        if self.features.events && self.features.host_accesses && self.chance(7) {
            let event = EventId(self.random.below(4) as u32);
            let step = if self.chance(50) { HostStep::SetEvent(event) } else { HostStep::ResetEvent(event) };
            self.push_step(step);
        }
    }

    /// Submits a command buffer, linked to what was submitted last.
    fn submission(&mut self, last: Option<QueueId>, buffer: u32) -> QueueId {
        let uses = self.buffer_traits[buffer as usize];
        let fits = |value: &u32| {
            let queue = &self.program.queues[*value as usize];
            let has_graphics = queue.flags & lavascope_abi::QueueFlags::GRAPHICS.0 != 0;
            (has_graphics || !uses.needs_graphics) && uses.family.is_none_or(|it| it == queue.family)
        };
        let queues: Vec<u32> = (0..self.program.queues.len() as u32).filter(fits).collect();
        let queue = if queues.is_empty() { QueueId(0) } else { QueueId(self.pick(&queues)) };
        let buffers = [CommandBufferId(buffer)].into_iter().chain(uses.resumed_by);
        let mut batch = SubmitBatch { command_buffers: buffers.clone().collect(), ..SubmitBatch::default() };
        if self.features.resubmission && self.chance(15) && !uses.is_presented {
            batch.command_buffers.extend(buffers);
        }
        let image = self.presentable.filter(|_| uses.is_presented);
        let acquired = image.map(|image| self.acquire(image, &mut batch));
        let is_linked = self.chance(if self.dependency_style == DependencyStyle::Random { 50 } else { 90 });
        if let Some(last) =
            last.filter(|it| is_linked && self.features.queues && (*it != queue || self.random.one_in(8)))
        {
            self.order_after(last, &mut batch);
        }
        let fence = (self.features.host_waits && self.chance(15)).then(|| self.fence());
        self.submit(queue, batch, fence);
        if let Some(fence) = fence.filter(|_| self.random.one_in(2)) {
            self.push_step(HostStep::WaitFences(vec![fence]));
            if self.random.one_in(2) {
                self.push_step(HostStep::ResetFences(vec![fence]));
            }
        }
        if let Some(image) = acquired {
            self.present(queue, image);
        }
        queue
    }

    /// A submission of its own, or one more batch of the last one.
    fn submit(&mut self, queue: QueueId, batch: SubmitBatch, fence: Option<FenceId>) {
        let is_more = fence.is_none() && self.chance(40);
        match self.program.steps.last_mut() {
            Some(HostStep::Submit { queue: last, batches, fence: None }) if *last == queue && is_more => {
                batches.push(batch)
            }
            _ => self.push_step(HostStep::Submit { queue, batches: vec![batch], fence }),
        }
    }

    /// Lets a batch come after the last submission: by a semaphore, or by a wait of the host.
    fn order_after(&mut self, last: QueueId, batch: &mut SubmitBatch) {
        if self.features.host_waits && self.chance(30) {
            let step = if self.chance(60) { HostStep::QueueIdle(last) } else { HostStep::DeviceIdle };
            self.push_step(step);
            return;
        }
        let value = self.chance(40).then_some(1);
        let point = SemaphorePoint { semaphore: self.semaphore(), value };
        let (signal, wait) = match self.random.below(10) {
            0..=1 if self.dependency_style == DependencyStyle::Tight => {
                (S::ALL_COMMANDS.0, S::DRAW_INDIRECT.0 | S::ALL_TRANSFER.0)
            }
            2..=3 if self.dependency_style == DependencyStyle::Tight => {
                (self.recorded_accesses.stages, S::ALL_COMMANDS.0)
            }
            4..=5 if self.final_stages != 0 => (self.final_stages, S::ALL_COMMANDS.0),
            _ => (S::ALL_COMMANDS.0, S::ALL_COMMANDS.0),
        };
        self.signal_after(last, SemaphoreSignal { point, stages: signal });
        if value.is_some() && self.features.host_waits && self.chance(25) {
            self.push_step(HostStep::WaitSemaphores(vec![point]));
            return;
        }
        batch.waits.push(SemaphoreWait { point, stages: wait });
    }

    /// Signals with the last submission on a queue, or with an empty one after it.
    pub(super) fn signal_after(&mut self, queue: QueueId, signal: SemaphoreSignal) {
        let is_empty = self.chance(30);
        let last = self.program.steps.iter_mut().rev().find_map(|step| match step {
            HostStep::Submit { queue: queue_id, batches, fence: None } if *queue_id == queue => batches.last_mut(),
            _ => None,
        });
        match last.filter(|_| !is_empty) {
            Some(batch) => batch.signals.push(signal),
            None => {
                let batch = SubmitBatch { signals: vec![signal], ..SubmitBatch::default() };
                self.push_step(HostStep::Submit { queue, batches: vec![batch], fence: None });
            }
        }
    }

    fn final_steps(&mut self, last: Option<QueueId>) {
        if self.features.host_waits && self.chance(20) {
            self.push_step(HostStep::DeviceIdle);
            let resource = ResourceId(self.program.resources.len() as u32 - 1);
            if Some(resource) != self.presentable && self.chance(50) {
                self.push_step(HostStep::Destroy(resource));
            }
        }
        if self.features.host_accesses && last.is_some() && self.chance(15) {
            let (resource, region) = (ResourceId(0), self.random_region(ResourceId(0)));
            self.push_step(HostStep::HostAccess { resource, region, is_write: false, certainty: Certainty::Certain });
        }
        if self.features.host_waits && self.features.queues && self.chance(10) {
            self.wait_for_host_signal();
        }
    }

    /// A submission that waits for the host.
    fn wait_for_host_signal(&mut self) {
        let point = SemaphorePoint { semaphore: self.semaphore(), value: Some(1) };
        let Some(HostStep::Submit { batches, .. }) = self.program.steps.iter_mut().rev().find(|it| is_submit(it))
        else {
            return;
        };
        if let Some(batch) = batches.last_mut() {
            batch.waits.push(SemaphoreWait { point, stages: S::ALL_COMMANDS.0 });
        }
        if self.features.events && self.features.host_accesses && self.chance(50) {
            let (resource, region) = (ResourceId(0), self.random_region(ResourceId(0)));
            self.push_step(HostStep::HostAccess { resource, region, is_write: true, certainty: Certainty::Certain });
            self.push_step(HostStep::SetEvent(EventId(self.program.event_count - 1)));
        }
        self.push_step(HostStep::SignalSemaphore(point));
    }

    /// Puts a submission that waits for a timeline before the one that signals it.
    fn move_waiter_before_signal(&mut self) {
        let waits_only_for_timelines = |host_step: &HostStep| match host_step {
            HostStep::Submit { batches, .. } => {
                let mut waits = batches.iter().flat_map(|it| &it.waits).peekable();
                waits.peek().is_some() && waits.all(|it| it.point.value.is_some())
            }
            _ => false,
        };
        let steps = &mut self.program.steps;
        let found = (1..steps.len()).find(|number| {
            let queue = |step: &HostStep| if let HostStep::Submit { queue, .. } = step { Some(*queue) } else { None };
            let (one, other) = (queue(&steps[number - 1]), queue(&steps[*number]));
            one.is_some() && other.is_some() && one != other && waits_only_for_timelines(&steps[*number])
        });
        if let Some(at) = found {
            steps.swap(at - 1, at);
        }
    }

    pub(super) fn push_step(&mut self, step: HostStep) {
        self.program.steps.push(step);
    }

    pub(super) fn semaphore(&mut self) -> SemaphoreId {
        self.program.semaphore_count += 1;
        SemaphoreId(self.program.semaphore_count - 1)
    }

    pub(super) fn fence(&mut self) -> FenceId {
        self.program.fence_count += 1;
        FenceId(self.program.fence_count - 1)
    }
}

fn is_submit(step: &HostStep) -> bool {
    matches!(step, HostStep::Submit { .. })
}
