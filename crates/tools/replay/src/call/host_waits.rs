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
        recorded_call: &RecordedCall<'_>,
        mut ask: impl FnMut() -> Option<vk::Result>,
    ) -> Result<(), ReplayError> {
        let mut waiting = self.begin_wait(recorded_call, "the device", WaitLimit::Sliced);
        loop {
            match ask() {
                Some(vk::Result::SUCCESS) | None => return Ok(()),
                Some(vk::Result::TIMEOUT | vk::Result::NOT_READY) => {}
                Some(result) => {
                    return Err(self.error(
                        recorded_call,
                        format!("the driver returned {}", crate::call::perform::result_name(result)),
                    ));
                }
            }
            waiting.check()?;
        }
    }
}

/// Waited for in the trace, with success.
fn has_succeeded(recorded_call: &RecordedCall<'_>) -> bool {
    recorded_call.leave.is_some() && recorded_call.code() == vk::Result::SUCCESS.0
}

pub(crate) fn fences(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if !has_succeeded(recorded_call) {
        return Ok(());
    }
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    unsafe { (*unpacked.image.cast::<vk::WaitForFencesParams>()).timeout = SLICE.as_nanos() as u64 };
    call_until_success(performer, recorded_call, unpacked)
}

pub(crate) fn semaphores(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if !has_succeeded(recorded_call) {
        return Ok(());
    }
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    unsafe { (*unpacked.image.cast::<vk::WaitSemaphoresParams>()).timeout = SLICE.as_nanos() as u64 };
    call_until_success(performer, recorded_call, unpacked)
}

/// Makes a call with a time limit until it succeeds.
fn call_until_success(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
    unpacked: UnpackedCall,
) -> Result<(), ReplayError> {
    let mut waiting = performer.begin_wait(recorded_call, "the device", WaitLimit::Sliced);
    loop {
        let result = performer.call(recorded_call, unpacked)?;
        if result != u64::from(vk::Result::TIMEOUT.0 as u32) {
            return performer.finish_call(recorded_call, unpacked, result);
        }
        waiting.check()?;
    }
}

pub(crate) fn fence_status(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if !has_succeeded(recorded_call) {
        return Ok(());
    }
    let device = performer.device(recorded_call)?;
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    let fence = unsafe { (*unpacked.image.cast::<vk::GetFenceStatusParams>()).fence };
    performer.poll_until_success(recorded_call, || {
        let (fences, slice) = ([fence], SLICE.as_nanos() as u64);
        driver!(
            device.functions,
            WaitForFences,
            FnWaitForFences(device.handle, 1, Ptr::to_slice(&fences), vk::Bool32(1), slice)
        )
    })
}

pub(crate) fn counter(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(Outcome::GetSemaphoreCounterValue(outcome)) = recorded_call.leave.and_then(Outcome::of) else {
        return Ok(());
    };
    let Some(value) = outcome.p_value().filter(|_| has_succeeded(recorded_call)) else { return Ok(()) };
    let device = performer.device(recorded_call)?;
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    let semaphores = unsafe { [(*unpacked.image.cast::<vk::GetSemaphoreCounterValueParams>()).semaphore] };
    let values = [*value];
    let info = vk::SemaphoreWaitInfo {
        semaphore_count: 1,
        p_semaphores: Ptr::to_slice(&semaphores),
        p_values: Ptr::to_slice(&values),
        ..vk::SemaphoreWaitInfo::zeroed()
    };
    performer.poll_until_success(recorded_call, || {
        driver!(
            device.functions,
            WaitSemaphores,
            FnWaitSemaphores(device.handle, Ptr::to(&info), SLICE.as_nanos() as u64)
        )
    })
}

pub(crate) fn event_status(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.code() != vk::Result::EVENT_SET.0 {
        return Ok(());
    }
    let device = performer.device(recorded_call)?;
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    let event = unsafe { (*unpacked.image.cast::<vk::GetEventStatusParams>()).event };
    performer.poll_until_success(recorded_call, || {
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

pub(crate) fn query_results(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    if !has_succeeded(recorded_call) {
        return Ok(());
    }
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    unsafe {
        let image = unpacked.image.cast::<vk::GetQueryPoolResultsParams>();
        (*image).flags.0 |= vk::QueryResultFlags::WAIT.0;
    }
    let _waiting = performer.begin_wait(recorded_call, "the device", WaitLimit::Unlimited);
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)
}

/// Other threads that join take a part of the work; here one does all of it.
pub(crate) fn join(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.has_failed() {
        return Ok(());
    }
    let unpacked = performer.unpack(recorded_call)?;
    let mut waiting = performer.begin_wait(recorded_call, "an operation that other threads perform", WaitLimit::Sliced);
    loop {
        let result = performer.call(recorded_call, unpacked)?;
        let code = vk::Result(result as u32 as i32);
        if code == vk::Result::THREAD_IDLE_KHR {
            waiting.check()?;
            std::thread::yield_now();
            continue;
        }
        return performer.finish_call(recorded_call, unpacked, result);
    }
}
