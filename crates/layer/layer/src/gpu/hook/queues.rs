//! Hooks for submissions, and for calls by which the application learns that work has completed.

use std::sync::Arc;

use lavascope_abi::*;

use super::{deref_param, hooks, read_output};
use crate::DeviceTable;
use crate::gpu::readback::submissions::CheckedSubmit;
use crate::gpu::{DeviceChecks, checks_of, slice};
use crate::process::catch_panic::{catch_panic, run_if_enabled};

hooks! {
    queue_submit = fn(queue: Queue, count: u32, p_submits: Ptr<SubmitInfo>, signaled: Fence) -> Result, |gpu, forward| {
        // SAFETY: VUID-vkQueueSubmit-pSubmits-parameter: an array of so many until the call returns.
        let submits = unsafe { slice(p_submits, count) };
        let batch = || {
            let mut batch = CheckedSubmit::default();
            // SAFETY: VUID-vkQueueSubmit-pSubmits-parameter: each is valid, with its chain and its arrays.
            submits.iter().for_each(|it| unsafe { batch.add(it) });
            batch
        };
        // Before the call, because another thread may wait for the fence immediately.
        gpu.before_submit("vkQueueSubmit", (queue, signaled), batch);
        gpu.after_call(forward())
    }
    queue_submit2 = fn(queue: Queue, count: u32, p_submits: Ptr<SubmitInfo2>, signaled: Fence) -> Result, |gpu, forward| {
        // SAFETY: VUID-vkQueueSubmit2-pSubmits-parameter: an array of so many until the call returns.
        let submits = unsafe { slice(p_submits, count) };
        let batch = || {
            let mut batch = CheckedSubmit::default();
            // SAFETY: VUID-vkQueueSubmit2-pSubmits-parameter: each is valid, with its arrays.
            submits.iter().for_each(|it| unsafe { batch.add2(it) });
            batch
        };
        gpu.before_submit("vkQueueSubmit2", (queue, signaled), batch);
        gpu.after_call(forward())
    }
    queue_present_khr = fn(queue: Queue, p_info: Ptr<PresentInfoKHR>) -> Result, |gpu, forward| {
        let result = forward();
        run_if_enabled("vkQueuePresentKHR", || gpu.count_frame(), || ());
        result
    }
    signal_semaphore = fn(device: Device, p_info: Ptr<SemaphoreSignalInfo>) -> Result, |gpu, forward| {
        gpu.before_signal("vkSignalSemaphore");
        forward()
    }
    set_event = fn(device: Device, event: Event) -> Result, |gpu, forward| {
        gpu.before_signal("vkSetEvent");
        forward()
    }
    wait_semaphores = fn(device: Device, p_info: Ptr<SemaphoreWaitInfo>, timeout: u64) -> Result, |gpu, forward| {
        let result = gpu.after_call(forward());
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkWaitSemaphores-pWaitInfo-parameter: a valid structure, with its arrays, until the call
            // returns; its semaphores are alive until then.
            run_if_enabled("vkWaitSemaphores", || unsafe { gpu.semaphores_waited(deref_param(p_info)) }, || ());
        }
        result
    }
    get_semaphore_counter_value = fn(device: Device, semaphore: Semaphore, p_value: Ptr<u64>) -> Result, |gpu, forward| {
        let result = gpu.after_call(forward());
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkGetSemaphoreCounterValue-pValue-parameter: a place for the value, which the call has written.
            let value = unsafe { read_output(p_value) };
            run_if_enabled("vkGetSemaphoreCounterValue", || gpu.counter_reached(semaphore, value), || ());
        }
        result
    }
    wait_for_fences = fn(device: Device, count: u32, p_fences: Ptr<Fence>, wait_all: Bool32, timeout: u64) -> Result, |gpu, forward| {
        let result = gpu.after_call(forward());
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkWaitForFences-pFences-parameter: an array of so many fences that are alive until the call
            // returns.
            run_if_enabled("vkWaitForFences", || unsafe { gpu.fences_waited(count, p_fences, wait_all.0 != 0) }, || ());
        }
        result
    }
    get_fence_status = fn(device: Device, fence: Fence) -> Result, |gpu, forward| {
        let result = gpu.after_call(forward());
        if result == Result::SUCCESS {
            run_if_enabled("vkGetFenceStatus", || gpu.fence_signaled(fence), || ());
        }
        result
    }
    queue_wait_idle = fn(queue: Queue) -> Result, |gpu, forward| {
        let result = gpu.after_call(forward());
        if result == Result::SUCCESS {
            run_if_enabled("vkQueueWaitIdle", || gpu.queue_idle(queue), || ());
        }
        result
    }
    device_wait_idle = fn(device: Device) -> Result, |gpu, forward| {
        let result = gpu.after_call(forward());
        if result == Result::SUCCESS {
            run_if_enabled("vkDeviceWaitIdle", || gpu.device_idle(), || ());
        }
        result
    }
}

impl DeviceChecks {
    /// A frame ends.
    fn count_frame(&self) {
        self.state().fault_draws.presented += 1;
    }

    /// Work is about to be submitted. Once everything is off, its shaders get permissive tables, which accept every access.
    fn before_submit(&self, name: &str, (queue, signaled): (Queue, Fence), batch: impl Fn() -> CheckedSubmit) {
        let permit = || catch_panic(name, || self.make_permissive(&batch().command_buffers), || ());
        run_if_enabled(name, || self.record_submission(queue, signaled, batch()), permit);
    }

    /// The host is about to unblock waiting work, which may use objects that were created meanwhile.
    fn before_signal(&self, name: &str) {
        run_if_enabled(
            name,
            || self.before_host_signal(),
            || catch_panic(name, || self.make_submitted_permissive(), || ()),
        );
    }

    /// Checks the result of a call: if the device is lost, reports what was recorded before.
    fn after_call(self: &Arc<DeviceChecks>, result: Result) -> Result {
        if result.0 < 0 {
            // The submitted work may not have been executed.
            self.stop_feedback();
        }
        if result == Result::ERROR_DEVICE_LOST {
            run_if_enabled("a lost device", || self.device_idle(), || ());
        }
        result
    }
}
