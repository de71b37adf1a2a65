//! Submissions, and waits of the host.

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome, View};
use lavascope_sync_ir::{
    CommandBufferId, EventId, FenceId, HostStep, QueueId, SemaphoreId, SemaphorePoint, SemaphoreSignal, SemaphoreWait,
    SubmitBatch,
};

use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::{Destroyed, TrackerOutput, object};
use crate::resource::memory::is_success;

#[derive(Clone, Copy)]
pub(crate) struct TrackedSemaphore {
    pub(crate) id: SemaphoreId,
    is_timeline: bool,
}

const ALL_COMMANDS: u64 = vk::PipelineStageFlags2::ALL_COMMANDS.0;

impl TrackedDevice {
    /// Creation and destruction of fences, semaphores and events.
    pub(crate) fn track_sync_objects(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateFence(_), Some(Outcome::CreateFence(made))) => {
                if let Some(fence) = made.p_fence() {
                    self.add_fence(fence.0, out);
                }
            }
            (Call::CreateSemaphore(params), Some(Outcome::CreateSemaphore(made))) => {
                if let (Some(info), Some(semaphore)) = (params.p_create_info(), made.p_semaphore()) {
                    self.create_semaphore(info, semaphore.0, out);
                }
            }
            (Call::CreateEvent(_), Some(Outcome::CreateEvent(made))) => {
                if let Some(event) = made.p_event() {
                    let id = EventId(self.ids.events.next_id());
                    self.events.insert(event.0, id);
                    out.listener.event(out.at, id, object(event.0));
                }
            }
            (Call::RegisterDeviceEventEXT(_), Some(Outcome::RegisterDeviceEventEXT(made))) => {
                if let Some(fence) = made.p_fence() {
                    self.add_fence(fence.0, out);
                }
            }
            (Call::RegisterDisplayEventEXT(_), Some(Outcome::RegisterDisplayEventEXT(made))) => {
                if let Some(fence) = made.p_fence() {
                    self.add_fence(fence.0, out);
                }
            }
            (Call::DestroyFence(params), None) => {
                let fence = self.fences.remove(params.fence.0);
                if let Some(fence_id) = fence {
                    self.imported_fences.remove(&fence_id);
                    self.submitted_fences.remove(&fence_id);
                }
                out.destroyed(fence.map(Destroyed::Fence));
            }
            (Call::DestroySemaphore(params), None) => {
                let semaphore = self.semaphores.remove(params.semaphore.0).map(|it| it.id);
                semaphore.map(|it| self.external_semaphores.remove(&it));
                out.destroyed(semaphore.map(Destroyed::Semaphore));
            }
            (Call::DestroyEvent(params), None) => {
                out.destroyed(self.events.remove(params.event.0).map(Destroyed::Event))
            }
            _ => return self.track_host_sync(tracked, out),
        }
        true
    }

    /// Waits, signals and resets on the host.
    fn track_host_sync(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::WaitForFences(params), Some(Outcome::WaitForFences(done))) => {
                let fences = self.fences_of(params.p_fences(), out);
                if !is_success(done.result) {
                } else if params.wait_all.is_true() || fences.len() == 1 {
                    self.wait_fences(fences, out);
                } else if let Some(first) = self.first_signaled_fence(&fences) {
                    self.wait_fences(vec![first], out);
                } else {
                    out.report_untracked("which of several fences is signaled is not reported");
                }
            }
            (Call::GetFenceStatus(params), Some(Outcome::GetFenceStatus(done))) => {
                if is_success(done.result) {
                    let fences = self.fences_of(&[params.fence], out);
                    self.wait_fences(fences, out);
                }
            }
            (Call::ResetFences(params), None) => {
                let fences = self.fences_of(params.p_fences(), out);
                // A reset removes a temporarily imported payload.
                self.imported_fences.retain(|it| !fences.contains(it));
                self.submitted_fences.retain(|it, _| !fences.contains(it));
                out.step(HostStep::ResetFences(fences));
            }
            (Call::WaitSemaphores(params), Some(Outcome::WaitSemaphores(done))) => {
                if let Some(info) = params.p_wait_info().filter(|_| is_success(done.result)) {
                    self.wait_semaphores(info, out);
                }
            }
            (Call::GetSemaphoreCounterValue(params), Some(Outcome::GetSemaphoreCounterValue(done))) => {
                if let (Some(value), true) = (done.p_value().copied().filter(|it| *it > 0), is_success(done.result)) {
                    let points: Vec<SemaphorePoint> =
                        self.semaphore_point(params.semaphore, value).into_iter().collect();
                    self.wait_external(&points, out);
                    out.step(HostStep::WaitSemaphores(points));
                }
            }
            (Call::SignalSemaphore(params), None) => {
                let Some(info) = params.p_signal_info() else { return true };
                if let Some(point) = self.semaphore_point(info.semaphore, info.value) {
                    self.signal_external([point].into_iter());
                    out.step(HostStep::SignalSemaphore(point));
                }
            }
            (Call::SetEvent(params), None) => {
                if let Some(event) = self.event_id(params.event, out) {
                    out.step(HostStep::SetEvent(event));
                }
            }
            (Call::ResetEvent(params), None) => {
                if let Some(event) = self.event_id(params.event, out) {
                    out.step(HostStep::ResetEvent(event));
                }
            }
            (Call::DeviceWaitIdle(_), Some(Outcome::DeviceWaitIdle(done))) => {
                if is_success(done.result) {
                    out.step(HostStep::DeviceIdle);
                }
            }
            _ => return false,
        }
        true
    }

    fn add_fence(&mut self, handle: u64, out: &mut TrackerOutput<'_>) {
        let id = FenceId(self.ids.fences.next_id());
        self.fences.insert(handle, id);
        out.listener.fence(out.at, id, object(handle));
    }

    fn create_semaphore(&mut self, info: View<'_, vk::SemaphoreCreateInfo>, handle: u64, out: &mut TrackerOutput<'_>) {
        let ty = info.chained::<vk::SemaphoreTypeCreateInfo>();
        let is_timeline = ty.is_some_and(|it| it.semaphore_type == vk::SemaphoreType::TIMELINE);
        let id = SemaphoreId(self.ids.semaphores.next_id());
        self.semaphores.insert(handle, TrackedSemaphore { id, is_timeline });
        out.listener.semaphore(out.at, id, object(handle));
        if let Some(value) = ty.map(|it| it.initial_value).filter(|it| is_timeline && *it > 0) {
            out.step(HostStep::SignalSemaphore(SemaphorePoint { semaphore: id, value: Some(value) }));
        }
    }

    fn fences_of(&self, fences: &[vk::Fence], out: &mut TrackerOutput<'_>) -> Vec<FenceId> {
        let found: Vec<FenceId> = fences.iter().filter_map(|it| self.fences.get(it.0).copied()).collect();
        if found.len() != fences.len() {
            out.report_untracked("a fence that nobody created");
        }
        found
    }

    fn wait_semaphores(&mut self, info: View<'_, vk::SemaphoreWaitInfo>, out: &mut TrackerOutput<'_>) {
        let pairs = info.p_semaphores().iter().zip(info.p_values());
        let points: Vec<SemaphorePoint> =
            pairs.filter_map(|(semaphore, value)| self.semaphore_point(*semaphore, *value)).collect();
        if points.len() != info.semaphore_count as usize {
            out.report_untracked("a semaphore that nobody created");
        }
        if info.flags.0 & vk::SemaphoreWaitFlags::ANY.0 != 0 && points.len() > 1 {
            out.report_untracked("which of several semaphores is signaled is not reported");
            return;
        }
        self.wait_external(&points, out);
        out.step(HostStep::WaitSemaphores(points));
    }

    pub(crate) fn semaphore_point(&self, semaphore: vk::Semaphore, value: u64) -> Option<SemaphorePoint> {
        let own = self.semaphores.get(semaphore.0)?;
        Some(SemaphorePoint { semaphore: own.id, value: own.is_timeline.then_some(value) })
    }

    /// Calls on a queue.
    pub(crate) fn track_queue(
        &mut self,
        queue: QueueId,
        tracked: TrackedCall<'_>,
        out: &mut TrackerOutput<'_>,
    ) -> bool {
        self.submission_count += 1;
        match (tracked.call, tracked.outcome) {
            (Call::QueueSubmit(params), None) => {
                let batches: Vec<SubmitBatch> = params.p_submits().iter().map(|it| self.batch(it)).collect();
                self.add_host_waits(&batches);
                for buffer in params.p_submits().iter().flat_map(|it| it.p_command_buffers()) {
                    self.resolve_at_submission(buffer.0, out);
                }
                let given = params.p_submits().iter().flat_map(|p_submit| {
                    [p_submit.wait_semaphore_count, p_submit.command_buffer_count, p_submit.signal_semaphore_count]
                        .map(u64::from)
                });
                report_unknown_handles(&batches, given.sum(), out);
                self.submit(queue, batches, params.fence, out);
            }
            (Call::QueueSubmit2(params), None) => {
                let batches: Vec<SubmitBatch> = params.p_submits().iter().map(|it| self.batch2(it)).collect();
                self.add_host_waits(&batches);
                for info in params.p_submits().iter().flat_map(|it| it.p_command_buffer_infos().iter()) {
                    self.resolve_at_submission(info.command_buffer.0, out);
                }
                let given = params.p_submits().iter().flat_map(|p_submit| {
                    [
                        p_submit.wait_semaphore_info_count,
                        p_submit.command_buffer_info_count,
                        p_submit.signal_semaphore_info_count,
                    ]
                    .map(u64::from)
                });
                report_unknown_handles(&batches, given.sum(), out);
                self.submit(queue, batches, params.fence, out);
            }
            (Call::QueueBindSparse(params), None) => self.bind_sparse(queue, *params, out),
            (Call::QueueWaitIdle(_), Some(Outcome::QueueWaitIdle(done))) => {
                if is_success(done.result) {
                    out.step(HostStep::QueueIdle(queue));
                }
            }
            (Call::QueuePresentKHR(params), None) => {
                if let Some(info) = params.p_present_info() {
                    self.present(queue, info, out);
                }
            }
            _ => return false,
        }
        true
    }

    /// Called before a submission is resolved: notes whether the host may write after it.
    fn add_host_waits(&mut self, batches: &[SubmitBatch]) {
        for batch in batches.iter().flat_map(|it| &it.waits) {
            self.waits_for_host.note_wait(batch.point);
        }
    }

    fn submit(&mut self, queue: QueueId, batches: Vec<SubmitBatch>, signaled: vk::Fence, out: &mut TrackerOutput<'_>) {
        let fence = self.signaled_fence(signaled, out);
        let shared: &[SubmitBatch] = if self.external_semaphores.is_empty() { &[] } else { &batches };
        for batch in shared {
            let waits: Vec<SemaphorePoint> = batch.waits.iter().map(|it| it.point).collect();
            self.wait_external(&waits, out);
            self.signal_external(batch.signals.iter().map(|it| it.point));
        }
        if let Some(fence) = fence {
            self.submitted_fences.insert(fence, (queue, self.submission_count));
        }
        out.step(HostStep::Submit { queue, batches, fence });
    }

    /// When a wait for any of several fences returns: the fence whose submission is complete in any case. The fences of
    /// one queue are signaled in submission order.
    fn first_signaled_fence(&self, fences: &[FenceId]) -> Option<FenceId> {
        let own = |it: &FenceId| self.submitted_fences.get(it).filter(|_| !self.imported_fences.contains(it));
        let known: Option<Vec<_>> = fences.iter().map(|it| Some((*own(it)?, *it))).collect();
        let known = known?;
        let ((queue, _), first) = known.iter().min_by_key(|it| it.0.1)?;
        known.iter().all(|it| it.0.0 == *queue).then_some(*first)
    }

    /// The fence of a submission, if it has one.
    pub(crate) fn signaled_fence(&self, fence: vk::Fence, out: &mut TrackerOutput<'_>) -> Option<FenceId> {
        let found = self.fences.get(fence.0).copied();
        if found.is_none() && fence.0 != 0 {
            out.report_untracked("a fence that nobody created");
        }
        found
    }

    fn batch(&self, submit_info: View<'_, vk::SubmitInfo>) -> SubmitBatch {
        let timeline = submit_info.chained::<vk::TimelineSemaphoreSubmitInfo>();
        let waits = timeline.map_or(&[][..], |it| it.p_wait_semaphore_values());
        let signals = timeline.map_or(&[][..], |it| it.p_signal_semaphore_values());
        let value = |values: &[u64], at: usize| values.get(at).copied().unwrap_or(0);
        let stages = submit_info.p_wait_dst_stage_mask();
        let wait = |(at, semaphore): (usize, &vk::Semaphore)| {
            let stages = stages.get(at).map_or(0, |it| u64::from(it.0));
            Some(SemaphoreWait { point: self.semaphore_point(*semaphore, value(waits, at))?, stages })
        };
        let signal = |(at, semaphore): (usize, &vk::Semaphore)| {
            Some(SemaphoreSignal { point: self.semaphore_point(*semaphore, value(signals, at))?, stages: ALL_COMMANDS })
        };
        SubmitBatch {
            waits: submit_info.p_wait_semaphores().iter().enumerate().filter_map(wait).collect(),
            command_buffers: submit_info
                .p_command_buffers()
                .iter()
                .filter_map(|it| self.command_buffer_id(*it))
                .collect(),
            signals: submit_info.p_signal_semaphores().iter().enumerate().filter_map(signal).collect(),
        }
    }

    fn batch2(&self, submit_info: View<'_, vk::SubmitInfo2>) -> SubmitBatch {
        let wait = |info: View<'_, vk::SemaphoreSubmitInfo>| {
            Some(SemaphoreWait { point: self.semaphore_point(info.semaphore, info.value)?, stages: info.stage_mask.0 })
        };
        let signal = |info: View<'_, vk::SemaphoreSubmitInfo>| {
            Some(SemaphoreSignal {
                point: self.semaphore_point(info.semaphore, info.value)?,
                stages: info.stage_mask.0,
            })
        };
        let buffers = submit_info.p_command_buffer_infos();
        SubmitBatch {
            waits: submit_info.p_wait_semaphore_infos().iter().filter_map(wait).collect(),
            command_buffers: buffers.iter().filter_map(|it| self.command_buffer_id(it.command_buffer)).collect(),
            signals: submit_info.p_signal_semaphore_infos().iter().filter_map(signal).collect(),
        }
    }

    fn command_buffer_id(&self, buffer: vk::CommandBuffer) -> Option<CommandBufferId> {
        Some(self.command_buffers.get(buffer.0)?.id)
    }
}

/// If a submission contains unknown objects, its order is incomplete, so this is reported.
fn report_unknown_handles(batches: &[SubmitBatch], given: u64, out: &mut TrackerOutput<'_>) {
    let known: usize = batches.iter().map(|it| it.waits.len() + it.command_buffers.len() + it.signals.len()).sum();
    if known as u64 != given {
        out.report_untracked("a semaphore or a command buffer that nobody created");
    }
}
