//! Waits of the host: for the same point as in the trace, however long it takes here.
//!
//! If the trace polled until it saw a result, the replay waits for that result once. If the trace did not see a result,
//! the replay does not ask.

use std::time::Duration;

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_record::Outcome;

use crate::call::functions::driver;
use crate::call::perform::{Performer, RecordedCall, UnpackedCall};
use crate::error::ReplayError;
use crate::schedule::device_waits::WaitLimit;

/// How long the driver waits before the replay checks whether waiting still makes sense.
const SLICE: Duration = Duration::from_millis(200);

impl Performer<'_> {
    /// Asks until the answer is success.
    fn poll_until_success(
        &self,
        done: &RecordedCall<'_>,
        mut ask: impl FnMut() -> Option<vk::Result>,
    ) -> Result<(), ReplayError> {
        let mut waiting = self.begin_wait(done, "the device", WaitLimit::Sliced);
        loop {
            match ask() {
                Some(vk::Result::SUCCESS) | None => return Ok(()),
                Some(vk::Result::TIMEOUT | vk::Result::NOT_READY) => {}
                Some(result) => {
                    return Err(
                        self.error(done, format!("the driver returned {}", crate::call::perform::result_name(result)))
                    );
                }
            }
            waiting.check()?;
        }
    }
}

/// Waited for in the trace, with success.
fn has_succeeded(done: &RecordedCall<'_>) -> bool {
    done.leave.is_some() && done.code() == vk::Result::SUCCESS.0
}

pub(crate) fn fences(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if !has_succeeded(done) {
        return Ok(());
    }
    let laid = performer.unpack(done)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    unsafe { (*laid.image.cast::<vk::WaitForFencesParams>()).timeout = SLICE.as_nanos() as u64 };
    call_until_success(performer, done, laid)
}

pub(crate) fn semaphores(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if !has_succeeded(done) {
        return Ok(());
    }
    let laid = performer.unpack(done)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    unsafe { (*laid.image.cast::<vk::WaitSemaphoresParams>()).timeout = SLICE.as_nanos() as u64 };
    call_until_success(performer, done, laid)
}

/// Makes a call with a time limit until it succeeds.
fn call_until_success(
    performer: &mut Performer<'_>,
    done: &RecordedCall<'_>,
    laid: UnpackedCall,
) -> Result<(), ReplayError> {
    let mut waiting = performer.begin_wait(done, "the device", WaitLimit::Sliced);
    loop {
        let result = performer.call(done, laid)?;
        if result != u64::from(vk::Result::TIMEOUT.0 as u32) {
            return performer.finish_call(done, laid, result);
        }
        waiting.check()?;
    }
}

pub(crate) fn fence_status(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if !has_succeeded(done) {
        return Ok(());
    }
    let device = performer.device(done)?;
    let laid = performer.unpack(done)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    let fence = unsafe { (*laid.image.cast::<vk::GetFenceStatusParams>()).fence };
    performer.poll_until_success(done, || {
        let (fences, slice) = ([fence], SLICE.as_nanos() as u64);
        driver!(
            device.functions,
            WaitForFences,
            FnWaitForFences(device.handle, 1, Ptr::to_slice(&fences), vk::Bool32(1), slice)
        )
    })
}

pub(crate) fn counter(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(Outcome::GetSemaphoreCounterValue(outcome)) = done.leave.and_then(Outcome::of) else { return Ok(()) };
    let Some(value) = outcome.p_value().filter(|_| has_succeeded(done)) else { return Ok(()) };
    let device = performer.device(done)?;
    let laid = performer.unpack(done)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    let semaphores = unsafe { [(*laid.image.cast::<vk::GetSemaphoreCounterValueParams>()).semaphore] };
    let values = [*value];
    let info = vk::SemaphoreWaitInfo {
        semaphore_count: 1,
        p_semaphores: Ptr::to_slice(&semaphores),
        p_values: Ptr::to_slice(&values),
        ..vk::SemaphoreWaitInfo::zeroed()
    };
    performer.poll_until_success(done, || {
        driver!(
            device.functions,
            WaitSemaphores,
            FnWaitSemaphores(device.handle, Ptr::to(&info), SLICE.as_nanos() as u64)
        )
    })
}

pub(crate) fn event_status(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if done.code() != vk::Result::EVENT_SET.0 {
        return Ok(());
    }
    let device = performer.device(done)?;
    let laid = performer.unpack(done)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    let event = unsafe { (*laid.image.cast::<vk::GetEventStatusParams>()).event };
    performer.poll_until_success(done, || {
        let status = driver!(device.functions, GetEventStatus, FnGetEventStatus(device.handle, event));
        match status {
            Some(vk::Result::EVENT_SET) => Some(vk::Result::SUCCESS),
            Some(vk::Result::EVENT_RESET) => {
                std::thread::sleep(Duration::from_micros(50));
                Some(vk::Result::NOT_READY)
            }
            other => other,
        }
    })
}

pub(crate) fn query_results(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if !has_succeeded(done) {
        return Ok(());
    }
    let laid = performer.unpack(done)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    unsafe {
        let image = laid.image.cast::<vk::GetQueryPoolResultsParams>();
        (*image).flags.0 |= vk::QueryResultFlags::WAIT.0;
    }
    let _waiting = performer.begin_wait(done, "the device", WaitLimit::Unlimited);
    let result = performer.call(done, laid)?;
    performer.finish_call(done, laid, result)
}

/// Other threads that join take a part of the work; here one does all of it.
pub(crate) fn join(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if done.has_failed() {
        return Ok(());
    }
    let laid = performer.unpack(done)?;
    let mut waiting = performer.begin_wait(done, "an operation that other threads perform", WaitLimit::Sliced);
    loop {
        let result = performer.call(done, laid)?;
        let code = vk::Result(result as u32 as i32);
        if code == vk::Result::THREAD_IDLE_KHR {
            waiting.check()?;
            std::thread::yield_now();
            continue;
        }
        return performer.finish_call(done, laid, result);
    }
}
