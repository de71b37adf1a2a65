//! Submissions on a device with fewer queues than the trace: what waits before it is signaled is held back.
//!
//! Work of one queue may wait for what another queue signals later. Where both are one queue here, the work would stand
//! in its own way. So a submission goes to the device only when what it waits for was submitted; behind it wait all
//! later ones of the same queue of the trace, and those of other queues pass.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use lavascope_abi as vk;
use lavascope_abi::{Command, ObjectId, Ptr};
use lavascope_record::{Call, Outcome, View, from_trusted};
use rustc_hash::FxHashMap;

use crate::call::perform::{Performer, RecordedCall, UnpackedCall};
use crate::error::ReplayError;
use crate::port::device::ReplayDevice;
use crate::present::virtual_swapchain;
use crate::replay::lock;
use crate::schedule::device_waits::WaitLimit;

/// Submissions that are held back.
#[derive(Default)]
pub(crate) struct HeldSubmissions(Mutex<HeldQueues>);

#[derive(Default)]
struct HeldQueues {
    /// By queue of the trace.
    queues: BTreeMap<ObjectId, VecDeque<HeldSubmission>>,
    semaphores: SubmittedSignals,
}

/// The semaphores that submissions will signal. Unknown semaphores are shared with others, and nothing waits for them
/// here.
#[derive(Default)]
struct SubmittedSignals {
    all: FxHashMap<ObjectId, Signal>,
    /// Semaphores that use the payload of another one, and whether only until the next wait.
    shared: FxHashMap<ObjectId, (ObjectId, bool)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Binary(bool),
    Timeline(u64),
}

/// A submission of which at least one batch is held back.
struct HeldSubmission {
    enter: Vec<u64>,
    leave: Option<Vec<u64>>,
    stream: u32,
    batches: Vec<HeldBatch>,
    /// How many of them are submitted.
    submitted: usize,
}

/// Semaphores with the values of timelines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct HeldBatch {
    waits: Vec<(ObjectId, u64)>,
    signals: Vec<(ObjectId, u64)>,
}

impl HeldSubmissions {
    /// An export took the signal of a semaphore with it.
    pub(crate) fn take_signal(&self, semaphore: ObjectId) {
        lock(&self.0).semaphores.unsignal(semaphore);
    }

    /// An import: a semaphore uses the payload of another one, perhaps only until the next wait.
    pub(crate) fn share_payload(&self, semaphore: ObjectId, (other, is_temporary): (ObjectId, bool)) {
        let mut state = lock(&self.0);
        let payload = state.semaphores.payload_of(other);
        state.semaphores.shared.insert(semaphore, (payload, is_temporary));
    }
}

impl SubmittedSignals {
    fn is_ready(&self, batch: &HeldBatch) -> bool {
        batch.waits.iter().all(|(id, value)| match self.all.get(&self.payload_of(*id)) {
            Some(Signal::Binary(is_signaled)) => *is_signaled,
            Some(Signal::Timeline(reached)) => reached >= value,
            None => true,
        })
    }

    fn apply_batch(&mut self, batch: &HeldBatch) {
        for (id, _) in &batch.waits {
            self.unsignal(*id);
            if self.shared.get(id).is_some_and(|it| it.1) {
                self.shared.remove(id);
            }
        }
        batch.signals.iter().for_each(|it| self.signal(it.0, it.1));
    }

    fn payload_of(&self, id: ObjectId) -> ObjectId {
        self.shared.get(&id).map_or(id, |it| it.0)
    }

    fn unsignal(&mut self, id: ObjectId) {
        if let Some(Signal::Binary(is_signaled)) = self.all.get_mut(&self.payload_of(id)) {
            *is_signaled = false;
        }
    }

    fn signal(&mut self, id: ObjectId, value: u64) {
        match self.all.get_mut(&self.payload_of(id)) {
            Some(Signal::Binary(is_signaled)) => *is_signaled = true,
            Some(Signal::Timeline(reached)) => *reached = (*reached).max(value),
            None => {}
        }
    }

    /// How many batches from the first on can go, each counted as submitted for those behind it.
    fn take_ready(&mut self, batches: &[HeldBatch]) -> usize {
        let mut count = 0;
        while let Some(held_batch) = batches.get(count).filter(|it| self.is_ready(it)) {
            self.apply_batch(held_batch);
            count += 1;
        }
        count
    }
}

fn id(raw: u64) -> ObjectId {
    ObjectId::from_raw(raw).unwrap_or(ObjectId::NULL)
}

/// Semaphores, each with its value; those of binary ones do not count.
fn valued(semaphores: &[vk::Semaphore], values: &[u64]) -> Vec<(ObjectId, u64)> {
    let values = values.iter().copied().chain(std::iter::repeat(0));
    semaphores.iter().zip(values).map(|it| (id(it.0.0), it.1)).collect()
}

/// The values that a submission waits for and signals.
fn values(submit_info: Option<View<'_, vk::TimelineSemaphoreSubmitInfo>>) -> (&[u64], &[u64]) {
    submit_info.map_or((&[], &[]), |it| (it.p_wait_semaphore_values(), it.p_signal_semaphore_values()))
}

/// The semaphores that the batches of a submission wait for and signal.
fn batches(recorded_call: &RecordedCall<'_>) -> Vec<HeldBatch> {
    match Call::of(recorded_call.enter) {
        Some(Call::QueueSubmit(call)) => {
            let one = |submit_info: View<'_, vk::SubmitInfo>| {
                let (waits, signals) = values(submit_info.chained());
                HeldBatch {
                    waits: valued(submit_info.p_wait_semaphores(), waits),
                    signals: valued(submit_info.p_signal_semaphores(), signals),
                }
            };
            call.p_submits().iter().map(one).collect()
        }
        Some(Call::QueueBindSparse(call)) => {
            let one = |sparse_info: View<'_, vk::BindSparseInfo>| {
                let (waits, signals) = values(sparse_info.chained());
                HeldBatch {
                    waits: valued(sparse_info.p_wait_semaphores(), waits),
                    signals: valued(sparse_info.p_signal_semaphores(), signals),
                }
            };
            call.p_bind_info().iter().map(one).collect()
        }
        Some(Call::QueueSubmit2(call)) => {
            let one = |submit_info: View<'_, vk::SubmitInfo2>| HeldBatch {
                waits: submit_info.p_wait_semaphore_infos().iter().map(|it| (id(it.semaphore.0), it.value)).collect(),
                signals: submit_info
                    .p_signal_semaphore_infos()
                    .iter()
                    .map(|it| (id(it.semaphore.0), it.value))
                    .collect(),
            };
            call.p_submits().iter().map(one).collect()
        }
        Some(Call::QueuePresentKHR(call)) => {
            let waits = call.p_present_info().map(|it| valued(it.p_wait_semaphores(), &[])).unwrap_or_default();
            vec![HeldBatch { waits, signals: Vec::new() }]
        }
        _ => Vec::new(),
    }
}

/// A submission: at once where each queue of the trace is one here.
pub(crate) fn submit(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    performer.replay.clock.count_submit();
    if let Some(what) = unsupported_submit(&*performer.device(recorded_call)?, recorded_call) {
        return Err(performer.error(recorded_call, what));
    }
    if recorded_call.has_failed() || !performer.device(recorded_call)?.shares_queues {
        return performer.perform_unchanged(recorded_call);
    }
    performer.hold_submission(recorded_call)
}

/// Why something cannot be submitted here, if so: drivers that do not have it may do nothing at all.
pub(crate) fn unsupported_submit(device: &ReplayDevice, recorded_call: &RecordedCall<'_>) -> Option<&'static str> {
    let is_sparse = recorded_call.command() == Command::QueueBindSparse && !recorded_call.has_failed();
    let is_missing = is_sparse && device.mapping.missing_features.contains(&"sparseBinding");
    is_missing.then_some("it binds sparse memory, which this device does not have")
}

/// A frame: it waits as submissions do.
pub(crate) fn present(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    match performer.device(recorded_call)?.shares_queues {
        true => performer.hold_submission(recorded_call),
        false => virtual_swapchain::present(performer, recorded_call),
    }
}

pub(crate) fn create_semaphore(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    performer.perform_unchanged(recorded_call)?;
    if !performer.device(recorded_call)?.shares_queues {
        return Ok(());
    }
    let (Some(Call::CreateSemaphore(call)), Some(Outcome::CreateSemaphore(outcome))) = (
        Call::of(recorded_call.enter),
        recorded_call.leave.filter(|_| !recorded_call.has_failed()).and_then(Outcome::of),
    ) else {
        return Ok(());
    };
    let ty = call.p_create_info().and_then(|it| it.chained::<vk::SemaphoreTypeCreateInfo>());
    let signal = match ty {
        Some(create_info) if create_info.semaphore_type == vk::SemaphoreType::TIMELINE => {
            Signal::Timeline(create_info.initial_value)
        }
        _ => Signal::Binary(false),
    };
    if let Some(made) = outcome.p_semaphore().and_then(|it| ObjectId::from_raw(it.0)) {
        lock(&performer.replay.held_submissions.0).semaphores.all.insert(made, signal);
    }
    Ok(())
}

/// The host signals.
pub(crate) fn signal(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    performer.perform_unchanged(recorded_call)?;
    if let Some(Call::SignalSemaphore(call)) = Call::of(recorded_call.enter)
        && let Some(info) = call.p_signal_info()
    {
        let (semaphore, value) = (id(info.semaphore.0), info.value);
        return performer.note_semaphore_signal(semaphore, value);
    }
    Ok(())
}

/// Before the host waits for a queue, the submissions of that queue that are held back are submitted.
pub(crate) fn queue_wait_idle(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    let queue = recorded_call.first_object();
    performer.wait_until_released(recorded_call, |it| *it == queue)?;
    let _waiting = performer.begin_wait(recorded_call, "the device", WaitLimit::Unlimited);
    performer.perform_unchanged(recorded_call)
}

impl Performer<'_> {
    /// Something signals a semaphore that is no submission of the trace.
    pub(crate) fn note_semaphore_signal(&mut self, semaphore: ObjectId, value: u64) -> Result<(), ReplayError> {
        let mut state = lock(&self.replay.held_submissions.0);
        state.semaphores.signal(semaphore, value);
        self.submit_ready(&mut state)
    }

    fn hold_submission(&mut self, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
        let waiting = HeldSubmission {
            enter: recorded_call.enter.words().to_vec(),
            leave: recorded_call.leave.map(|it| it.words().to_vec()),
            stream: self.stream,
            batches: batches(recorded_call),
            submitted: 0,
        };
        let mut state = lock(&self.replay.held_submissions.0);
        state.queues.entry(recorded_call.first_object()).or_default().push_back(waiting);
        self.submit_ready(&mut state)
    }

    /// Submits everything that can be submitted now.
    fn submit_ready(&mut self, state: &mut HeldQueues) -> Result<(), ReplayError> {
        let HeldQueues { queues, semaphores } = state;
        let mut is_moving = true;
        while is_moving {
            is_moving = false;
            for queue in queues.values_mut() {
                while let Some(first) = queue.front_mut() {
                    let ready = semaphores.take_ready(&first.batches[first.submitted..]);
                    let is_whole = first.submitted + ready == first.batches.len();
                    if ready > 0 || is_whole {
                        is_moving = true;
                        self.submit_held(first, ready)?;
                        first.submitted += ready;
                    }
                    if !is_whole {
                        break;
                    }
                    queue.pop_front();
                }
            }
        }
        Ok(())
    }

    /// Submits some of the batches that are held back.
    fn submit_held(&mut self, held_submission: &HeldSubmission, ready: usize) -> Result<(), ReplayError> {
        // Both were checked when they came.
        let Some(enter) = from_trusted(&held_submission.enter) else { return Ok(()) };
        let recorded_call = RecordedCall { enter, leave: held_submission.leave.as_deref().and_then(from_trusted) };
        let stream = std::mem::replace(&mut self.stream, held_submission.stream);
        let result = self.submit_held_batches(&recorded_call, held_submission, ready);
        self.stream = stream;
        result
    }

    fn submit_held_batches(
        &mut self,
        recorded_call: &RecordedCall<'_>,
        held_submission: &HeldSubmission,
        ready: usize,
    ) -> Result<(), ReplayError> {
        if recorded_call.command() == Command::QueuePresentKHR {
            return virtual_swapchain::present(self, recorded_call);
        }
        let unpacked = self.unpack(recorded_call)?;
        if ready < held_submission.batches.len() {
            let is_last = held_submission.submitted + ready == held_submission.batches.len();
            // SAFETY: `UnpackedCall::image` holds the parameters of this command. `batches` read the same record, so that it
            // has as many structures.
            unsafe {
                keep_batches(
                    recorded_call.command(),
                    unpacked,
                    held_submission.submitted..held_submission.submitted + ready,
                    is_last,
                )
            };
        }
        let result = self.call(recorded_call, unpacked)?;
        self.finish_call(recorded_call, unpacked, result)
    }

    /// Returns when the queues that must be idle have no submission that is held back.
    pub(crate) fn wait_until_released(
        &self,
        recorded_call: &RecordedCall<'_>,
        is_meant: impl Fn(&ObjectId) -> bool,
    ) -> Result<(), ReplayError> {
        const NAP: Duration = Duration::from_micros(100);
        let mut waiting = self.begin_wait(recorded_call, "a signal that never comes", WaitLimit::Sliced);
        loop {
            let state = lock(&self.replay.held_submissions.0);
            if state.queues.iter().all(|it| it.1.is_empty() || !is_meant(it.0)) {
                return Ok(());
            }
            drop(state);
            waiting.check()?;
            std::thread::sleep(NAP);
        }
    }
}

/// Leaves only some batches of a submission; the fence belongs to the last.
///
/// # Safety
///
/// `unpacked` must hold the parameters of this command, and the range must lie in its batches.
unsafe fn keep_batches(command: Command, unpacked: UnpackedCall, batches: std::ops::Range<usize>, is_last: bool) {
    let (first, count) = (batches.start as u64, batches.len() as u32);
    // SAFETY: `unpacked` holds the parameters of this command, by the contract of this function, and nobody else refers to
    // them.
    unsafe {
        let fence = match command {
            Command::QueueSubmit => {
                let submit_params = &mut *unpacked.image.cast::<vk::QueueSubmitParams>();
                submit_params.submit_count = count;
                submit_params.p_submits =
                    Ptr::new(submit_params.p_submits.0 + first * size_of::<vk::SubmitInfo>() as u64);
                &mut submit_params.fence
            }
            Command::QueueSubmit2 => {
                let submit2_params = &mut *unpacked.image.cast::<vk::QueueSubmit2Params>();
                submit2_params.submit_count = count;
                submit2_params.p_submits =
                    Ptr::new(submit2_params.p_submits.0 + first * size_of::<vk::SubmitInfo2>() as u64);
                &mut submit2_params.fence
            }
            Command::QueueBindSparse => {
                let sparse_params = &mut *unpacked.image.cast::<vk::QueueBindSparseParams>();
                sparse_params.bind_info_count = count;
                sparse_params.p_bind_info =
                    Ptr::new(sparse_params.p_bind_info.0 + first * size_of::<vk::BindSparseInfo>() as u64);
                &mut sparse_params.fence
            }
            _ => return,
        };
        if !is_last {
            *fence = vk::Fence(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use lavascope_abi::HandleType;

    use super::*;

    #[test]
    fn batches_go_as_far_as_what_they_wait_for_was_submitted() {
        let id = |serial| ObjectId::new(HandleType::Semaphore, serial).expect("a small number");
        let (timeline, binary, unknown) = (id(1), id(2), id(3));
        let mut semaphores = SubmittedSignals::default();
        semaphores.all.insert(timeline, Signal::Timeline(1));
        semaphores.all.insert(binary, Signal::Binary(false));
        let batch = |waits: &[_], signals: &[_]| HeldBatch { waits: waits.to_vec(), signals: signals.to_vec() };
        let all = [
            batch(&[(timeline, 1), (unknown, 0)], &[(binary, 0)]),
            batch(&[(binary, 0)], &[(timeline, 2)]),
            batch(&[(timeline, 5)], &[]),
            batch(&[], &[]),
        ];
        // The first signals what the second waits for; the third waits for something later.
        assert_eq!(semaphores.take_ready(&all), 2);
        assert_eq!(semaphores.all[&binary], Signal::Binary(false));
        assert_eq!(semaphores.take_ready(&all[2..]), 0);
        semaphores.signal(timeline, 5);
        semaphores.signal(timeline, 3);
        assert_eq!(semaphores.take_ready(&all[2..]), 2);
        // A binary semaphore is there for one wait.
        semaphores.signal(binary, 0);
        assert_eq!(semaphores.take_ready(&[batch(&[(binary, 0)], &[]), batch(&[(binary, 0)], &[])]), 1);
    }
}
