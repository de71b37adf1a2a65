//! Reads the fault records of command buffers that the device has completed.
//!
//! The layer knows that a command buffer is completed
//!
//! - when `vkWaitForFences`, `vkGetFenceStatus`, `vkWaitSemaphores`, `vkGetSemaphoreCounterValue`, `vkQueueWaitIdle` or
//!   `vkDeviceWaitIdle` says so; earlier submissions to the same queue are completed as well,
//! - when the command buffer is begun, reset or freed,
//! - when the device is lost or destroyed, and at the end of the process.

use std::sync::Arc;

use lavascope_abi::*;
use lavascope_instrument::decode;
use lavascope_validate::CommandBufferFeedback;

use crate::gpu::draw::command_buffer::CommandBufferState;
use crate::gpu::draw::recorded_draws::RecordedDraw;
use crate::gpu::pipeline::plan::CheckStyle;
use crate::gpu::pipeline::variants::{InstrumentedPipeline, PipelineVariant};
use crate::gpu::report::fault_draws::ExecutedCommands;
use crate::gpu::report::findings::{CheckFinding, ReportedFault, fault_counts};
use crate::gpu::resource::buffer_addresses::write_address_table;
use crate::gpu::{ChecksState, DeviceChecks, slice};
use crate::loader::pnext_chain::find_in_chain;
use crate::process::catch_panic::run_if_enabled;

/// Submitted command buffers.
pub(crate) struct Submission {
    queue: u64,
    fence: u64,
    /// Timeline semaphores, and the values that the submission signals.
    signals: Vec<(u64, u64)>,
    pub(crate) command_buffers: Vec<u64>,
    /// The copy of the address table that it may read.
    pub(crate) address_copy: Option<usize>,
}

/// What shaders recorded in command buffers.
#[derive(Default)]
struct Readback {
    found: Vec<CheckFinding>,
    /// Pipelines that must be created again, and how.
    rebuilds: Vec<(Arc<InstrumentedPipeline>, CheckStyle)>,
    touched: Vec<CommandBufferFeedback>,
}

/// The command buffers and semaphores of one submission call.
#[derive(Default)]
pub(crate) struct CheckedSubmit {
    pub(crate) command_buffers: Vec<u64>,
    pub(crate) signals: Vec<(u64, u64)>,
}

impl CheckedSubmit {
    /// # Safety
    ///
    /// The info must be that of a valid `vkQueueSubmit` that has not returned.
    pub(crate) unsafe fn add(&mut self, info: &SubmitInfo) {
        let ty = StructureType::TIMELINE_SEMAPHORE_SUBMIT_INFO;
        // SAFETY: VUID-VkSubmitInfo-pNext-pNext, by the contract of this function: a valid chain; the type is that of
        // the structure.
        let values = unsafe { find_in_chain::<TimelineSemaphoreSubmitInfo>(info.p_next, ty) };
        // SAFETY: a structure of the chain, which stays until the call returns.
        let values = values.map(|it| unsafe { &*it.as_ptr() });
        // SAFETY: VUID-VkTimelineSemaphoreSubmitInfo-pSignalSemaphoreValues-parameter: null, or as many as it says.
        let values = values
            .map_or(&[][..], |it| unsafe { slice(it.p_signal_semaphore_values, it.signal_semaphore_value_count) });
        // SAFETY: VUID-VkSubmitInfo-pCommandBuffers-parameter, by the contract of this function: as many as it says.
        let command_buffers = unsafe { slice(info.p_command_buffers, info.command_buffer_count) };
        // SAFETY: VUID-VkSubmitInfo-pSignalSemaphores-parameter, by the contract of this function: as many as it says.
        let semaphores = unsafe { slice(info.p_signal_semaphores, info.signal_semaphore_count) };
        self.command_buffers.extend(command_buffers.iter().map(|it| it.0));
        self.signals.extend(semaphores.iter().zip(values).map(|(it, value)| (it.0, *value)));
    }

    /// # Safety
    ///
    /// The info must be that of a valid `vkQueueSubmit2` that has not returned.
    pub(crate) unsafe fn add2(&mut self, info: &SubmitInfo2) {
        // SAFETY: VUID-VkSubmitInfo2-pCommandBufferInfos-parameter, by the contract of this function: as many as it
        // says.
        let command_buffers = unsafe { slice(info.p_command_buffer_infos, info.command_buffer_info_count) };
        // SAFETY: VUID-VkSubmitInfo2-pSignalSemaphoreInfos-parameter, by the contract of this function: as many as it
        // says.
        let semaphores = unsafe { slice(info.p_signal_semaphore_infos, info.signal_semaphore_info_count) };
        self.command_buffers.extend(command_buffers.iter().map(|it| it.command_buffer.0));
        self.signals.extend(semaphores.iter().map(|it| (it.semaphore.0, it.value)));
    }
}

impl ChecksState {
    /// Takes the submissions up to the last one that is done, and earlier ones of the same queue. Returns their command
    /// buffers.
    fn take_completed(&mut self, is_done: impl Fn(&Submission) -> bool) -> Vec<u64> {
        let queues: Vec<(u64, usize)> =
            self.submissions.iter().enumerate().filter(|it| is_done(it.1)).map(|it| (it.1.queue, it.0)).collect();
        let mut done = Vec::new();
        let mut at = 0;
        self.submissions.retain_mut(|submission| {
            let is_before = queues.iter().any(|(queue, last)| *queue == submission.queue && at <= *last);
            at += 1;
            if is_before {
                done.append(&mut submission.command_buffers);
            }
            !is_before
        });
        done.sort_unstable();
        done.dedup();
        // If a command buffer was submitted again, the device may write its records now.
        done.retain(|it| !self.submissions.iter().any(|other| other.command_buffers.contains(it)));
        done
    }

    /// The device does not use a command buffer any more.
    fn forget_command_buffer(&mut self, handle: u64) {
        self.submissions.iter_mut().for_each(|it| it.command_buffers.retain(|it| *it != handle));
        let used = self.submissions.iter().position(|it| !it.command_buffers.is_empty());
        self.submissions.drain(..used.unwrap_or(self.submissions.len()));
    }

    /// Reads the records of a command buffer.
    fn read_records(&mut self, handle: u64, commands: &mut CommandBufferState) -> Vec<CheckFinding> {
        let mut found = Vec::new();
        let number = commands.number;
        let queue_labels = std::mem::take(&mut commands.queue_labels);
        let frames = std::mem::take(&mut commands.submitted_frames);
        let object = commands.object_id;
        let executed = ExecutedCommands { handle, number, object, queue_labels: &queue_labels, frames: &frames };
        for drawn in &commands.draws {
            found.extend(self.read_draw(commands, drawn, &executed));
        }
        found.extend(commands.builds.iter().flat_map(|it| self.read_wrong_instances(it, (handle, number))));
        found
    }

    /// Reads the records of a draw that the device does not execute now, and clears them: later it writes new ones from
    /// the beginning.
    pub(crate) fn read_draw(
        &mut self,
        commands: &CommandBufferState,
        drawn: &RecordedDraw,
        executed: &ExecutedCommands<'_>,
    ) -> Vec<CheckFinding> {
        let Some(words) = drawn.take_records() else { return Vec::new() };
        let draw = commands.describe_draw(drawn);
        let faults = decode(&words).unwrap_or_default();
        let mut found = self.find_faults(&draw, executed, &faults);
        found.extend(self.read_prints(&draw, (executed.handle, executed.number), &words));
        found
    }

    /// Pipelines with a variant that has unreported faulty sites, and the style to rebuild them with. If a rebuild is
    /// impossible: the findings without details.
    fn read_seen_sites(
        &mut self,
        variants: &[Arc<PipelineVariant>],
    ) -> (Vec<(Arc<InstrumentedPipeline>, CheckStyle)>, Vec<CheckFinding>) {
        let (mut rebuilds, mut found) = (Vec::new(), Vec::new());
        for variant in variants {
            let sites: Vec<_> = variant.seen_sites().into_iter().filter(|it| !self.is_reported(variant, *it)).collect();
            if sites.is_empty() {
                continue;
            }
            let checked = self.pipeline_of_variant(variant);
            match checked.filter(|it| it.can_be_rebuilt()) {
                Some(checked) => {
                    let style = checked.request_sites(variant, &sites);
                    rebuilds.extend(style.map(|style| (checked, style)));
                }
                None => found.extend(sites.iter().filter_map(|it| self.find_seen_site(variant, *it))),
            }
        }
        (rebuilds, found)
    }
}

impl DeviceChecks {
    /// The command buffers with checks among some command buffers and those that they execute.
    pub(crate) fn instrumented_command_buffers(&self, commands: &[u64]) -> Vec<u64> {
        let mut all = Vec::new();
        for handle in commands {
            let Some(slot) = self.slot(*handle) else { continue };
            let secondaries = slot.with(|it| it.secondaries.clone()).unwrap_or_default();
            let outer = slot.with(|it| Arc::clone(&it.outer_labels)).unwrap_or_default();
            for (handle, labels) in &secondaries {
                let labels = match outer.is_empty() {
                    true => Arc::clone(labels),
                    false => Arc::new(outer.iter().chain(labels.iter()).cloned().collect()),
                };
                _ = self.slot(*handle).and_then(|it| it.with(|it| it.outer_labels = labels));
            }
            for handle in std::iter::once(*handle).chain(secondaries.iter().map(|it| it.0)) {
                let has_any = |it: &mut CommandBufferState| !it.draws.is_empty() || !it.builds.is_empty();
                let has_draws = self.slot(handle).and_then(|it| it.with(has_any));
                all.extend((has_draws == Some(true)).then_some(handle));
            }
        }
        all
    }

    /// Labels that a command buffer leaves open are those of the next one on its queue.
    fn carry_labels(&self, queue: Queue, commands: &[u64]) {
        let mut state = self.state();
        let labels = state.command_labels.entry(queue.0).or_default();
        let mut now = std::mem::take(labels);
        drop(state);
        for slot in commands.iter().filter_map(|it| self.slot(*it)) {
            slot.with(|buffer_state| {
                if *buffer_state.outer_labels != now {
                    buffer_state.outer_labels = Arc::new(now.clone());
                }
                buffer_state.labels.continue_labels(&mut now);
            });
        }
        if !now.is_empty() {
            self.state().command_labels.insert(queue.0, now);
        }
    }

    /// Records a submission before the driver gets it. It sees all addresses that exist now.
    pub(crate) fn record_submission(&self, queue: Queue, fence: Fence, batch: CheckedSubmit) {
        self.carry_labels(queue, &batch.command_buffers);
        let mut all = self.instrumented_command_buffers(&batch.command_buffers);
        let frame = self.state().fault_draws.presented;
        let executed = self.count_executions(&batch.command_buffers, frame);
        if self.gives_feedback() {
            all = executed;
        }
        self.refresh_update_after_bind_tables(&all);
        self.refresh_descriptor_buffer_tables(&all);
        let addresses = self.update_address_tables(&all);
        let mut state = self.state();
        let labels = state.queue_labels.get(&queue.0).cloned().unwrap_or_default();
        for slot in all.iter().filter_map(|it| self.slot(*it)) {
            slot.with(|it| it.queue_labels.clone_from(&labels));
        }
        // A fence or semaphore shows that earlier submissions are done as well.
        let shows_progress = fence.0 != 0 || !batch.signals.is_empty();
        if !all.is_empty() || shows_progress && !state.submissions.is_empty() {
            let signals = batch.signals;
            state.submissions.push(Submission {
                queue: queue.0,
                fence: fence.0,
                signals,
                command_buffers: all,
                address_copy: addresses,
            });
        }
    }

    /// Gives command buffers the current address table.
    fn update_address_tables(&self, commands: &[u64]) -> Option<usize> {
        let reads = |it: &u64| self.slot(*it).and_then(|it| it.with(|it| it.address_table.is_some())) == Some(true);
        let has_fixed = || commands.iter().any(|it| self.uses_fixed_tables(*it));
        if !self.has_addresses || !commands.iter().any(reads) && !has_fixed() {
            return None;
        }
        let current = self.publish_address_table()?;
        let now = self.current_address_region();
        for slot in commands.iter().filter_map(|it| self.slot(*it)) {
            slot.with(|buffer_state| {
                if buffer_state.address_table.is_some_and(|it| it != now.device_address) {
                    buffer_state.roots().for_each(|root| write_address_table(root, now));
                    buffer_state.address_table = Some(now.device_address);
                }
            });
        }
        Some(current)
    }

    fn uses_fixed_tables(&self, handle: u64) -> bool {
        let uses = |buffer_state: &mut CommandBufferState| {
            buffer_state.variants.iter().any(|it| !it.fixed_tables.is_empty() && it.reads_addresses)
        };
        self.slot(handle).and_then(|it| it.with(uses)) == Some(true)
    }

    /// The host is about to unblock waiting work, which sees the addresses that exist now.
    pub(crate) fn before_host_signal(&self) {
        let mut waiting: Vec<u64> = self.state().submissions.iter().flat_map(|it| it.command_buffers.clone()).collect();
        waiting.sort_unstable();
        waiting.dedup();
        let addresses = self.update_address_tables(&waiting);
        if addresses.is_some() {
            // From now on, waiting work may read either copy, so the submissions keep the newer one.
            self.state().submissions.iter_mut().for_each(|it| it.address_copy = it.address_copy.and(addresses));
        }
    }

    /// A fence is signaled.
    pub(crate) fn fence_signaled(self: &Arc<DeviceChecks>, fence: Fence) {
        self.readback(|it| it.fence == fence.0);
    }

    /// A timeline semaphore has reached a value.
    pub(crate) fn counter_reached(self: &Arc<DeviceChecks>, semaphore: Semaphore, value: u64) {
        self.readback(|it| it.signals.iter().any(|it| it.0 == semaphore.0 && it.1 <= value));
    }

    pub(crate) fn queue_idle(self: &Arc<DeviceChecks>, queue: Queue) {
        self.readback(|it| it.queue == queue.0);
    }

    /// All work is done, or the device is lost.
    pub(crate) fn device_idle(self: &Arc<DeviceChecks>) {
        self.readback(|_| true);
    }

    fn readback(self: &Arc<DeviceChecks>, is_done: impl Fn(&Submission) -> bool) {
        let mut state = self.state();
        if state.submissions.is_empty() {
            return;
        }
        let done = state.take_completed(is_done);
        let read = self.read_command_buffers(&mut state, &done);
        drop(state);
        self.report_readback(read);
    }

    /// Reads command buffers. Another thread may know that they have completed, and record them again: it waits until
    /// they are read. The state is locked meanwhile, so that the same thread finds all of its submissions read, too.
    fn read_command_buffers(&self, state: &mut ChecksState, handles: &[u64]) -> Readback {
        let mut read = Readback::default();
        for handle in handles {
            let Some(slot) = self.slot(*handle) else { continue };
            slot.with(|commands| {
                read.touched.extend(self.read_touches(state, commands));
                read.found.extend(state.read_records(*handle, commands));
                let (wanted, findings) = state.read_seen_sites(&commands.variants);
                read.rebuilds.extend(wanted);
                read.found.extend(findings);
            });
        }
        read
    }

    /// Reports the results of a readback. No lock of ours is held.
    fn report_readback(self: &Arc<DeviceChecks>, read: Readback) {
        self.send_feedback(read.touched);
        self.report_all(read.found);
        read.rebuilds.into_iter().for_each(|(checked, style)| self.request_rebuild(checked, style));
    }

    /// Called after a wait for all of some fences, or for any of them.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkWaitForFences` on this device that has not returned to the
    /// application.
    pub(crate) unsafe fn fences_waited(self: &Arc<DeviceChecks>, count: u32, p_fences: Ptr<Fence>, is_all: bool) {
        // SAFETY: VUID-vkWaitForFences-pFences-parameter, by the contract of this function: as many as the count says.
        for fence in unsafe { slice(p_fences, count) } {
            // SAFETY: the same VUID: the fence is alive until the call returns, on a device that is alive by the
            // contract of `DeviceChecks::begin`.
            let status = || self.next.get_fence_status.map(|it| unsafe { it(self.device, *fence) });
            if is_all || count == 1 || status() == Some(Result::SUCCESS) {
                self.fence_signaled(*fence);
            }
        }
    }

    /// Called after a wait for all of some semaphores, or for any of them.
    ///
    /// # Safety
    ///
    /// The info must be that of a valid `vkWaitSemaphores` on this device that has not returned to the application.
    pub(crate) unsafe fn semaphores_waited(self: &Arc<DeviceChecks>, info: &SemaphoreWaitInfo) {
        // SAFETY: VUID-VkSemaphoreWaitInfo-pSemaphores-parameter, by the contract of this function: as many as it says.
        let semaphores = unsafe { slice(info.p_semaphores, info.semaphore_count) };
        // SAFETY: VUID-VkSemaphoreWaitInfo-pValues-parameter, by the contract of this function: as many as it says.
        let values = unsafe { slice(info.p_values, info.semaphore_count) };
        let is_all = info.flags.0 & SemaphoreWaitFlags::ANY.0 == 0 || semaphores.len() == 1;
        for (semaphore, value) in semaphores.iter().zip(values) {
            let mut now = *value;
            if !is_all {
                let Some(ask) = self.next.get_semaphore_counter_value else { continue };
                // SAFETY: VUID-VkSemaphoreWaitInfo-pSemaphores-parameter: the semaphore is alive until the call
                // returns, and has a counter (VUID-VkSemaphoreWaitInfo-pSemaphores-03256). The place is ours.
                if unsafe { ask(self.device, *semaphore, crate::gpu::out_ptr(&mut now)) } != Result::SUCCESS {
                    continue;
                }
            }
            self.counter_reached(*semaphore, now);
        }
    }

    /// Command buffers are begun, reset or freed, so the device cannot use them.
    pub(crate) fn retire_command_buffers(self: &Arc<DeviceChecks>, handles: &[u64], is_freed: bool) {
        let read = || self.read_command_buffers(&mut self.state(), handles);
        let read = run_if_enabled("reading back", read, Readback::default);
        let mut state = self.state();
        handles.iter().for_each(|it| state.forget_command_buffer(*it));
        if is_freed {
            handles.iter().for_each(|it| _ = state.names.remove(ObjectType::COMMAND_BUFFER, *it));
        }
        drop(state);
        handles.iter().for_each(|it| self.reset_command_buffer(*it, is_freed));
        self.report_readback(read);
    }

    /// The command buffers of a pool.
    pub(crate) fn retire_command_pool(self: &Arc<DeviceChecks>, pool: CommandPool, is_freed: bool) {
        let handles = self.state().pools.get(&pool.0).cloned().unwrap_or_default();
        self.retire_command_buffers(&handles, is_freed);
        if is_freed {
            let mut state = self.state();
            state.pools.remove(&pool.0);
            state.protected_pools.remove(&pool.0);
        }
    }

    /// The last readback: all records, faults whose records did not fit, and new counts.
    pub(crate) fn readback_all(&self) {
        let handles = self.command_buffers.handles_unsorted();
        let mut state = self.state();
        let mut read = self.read_command_buffers(&mut state, &handles);
        let variants = state.variants.clone();
        read.found.extend(state.find_unrecorded(&variants));
        drop(state);
        self.send_feedback(read.touched);
        self.report_all(read.found);
        let (counts, mut state) = (fault_counts(&variants), self.state());
        let ChecksState { reported_faults, fault_draws, .. } = &mut *state;
        reported_faults.iter_mut().for_each(|it: &mut ReportedFault| it.report_new_counts(&counts, fault_draws));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submission(queue: u64, fence: u64, signals: &[(u64, u64)], commands: &[u64]) -> Submission {
        Submission { queue, fence, signals: signals.to_vec(), command_buffers: commands.to_vec(), address_copy: None }
    }

    #[test]
    fn a_counter_tells_of_all_that_came_before_on_its_queue() {
        let submissions = vec![
            submission(1, 0, &[(7, 1)], &[10]),
            submission(2, 0, &[], &[20]),
            submission(1, 0, &[(7, 2)], &[11]),
            submission(1, 0, &[(7, 3)], &[12]),
        ];
        let mut state = ChecksState { submissions, ..ChecksState::default() };
        let reached = |value| move |it: &Submission| it.signals.iter().any(|it| it.0 == 7 && it.1 <= value);
        assert_eq!(state.take_completed(reached(2)), [10, 11]);
        assert_eq!(state.take_completed(reached(2)), [] as [u64; 0]);
        assert_eq!(state.submissions.len(), 2);
    }

    #[test]
    fn what_is_pending_again_is_not_read() {
        let submissions = vec![submission(1, 5, &[], &[10, 11]), submission(1, 6, &[], &[10])];
        let mut state = ChecksState { submissions, ..ChecksState::default() };
        assert_eq!(state.take_completed(|it| it.fence == 5), [11]);
        assert_eq!(state.take_completed(|it| it.fence == 6), [10]);
    }
}
