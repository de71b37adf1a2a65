//! The state of fences, semaphores and acquired images at each point of a trace.
//!
//! A span of calls can be skipped if this state is the same after the span as before it. So the state is kept as one
//! hash, which is equal if the state is. The hash counts differences from the state at creation, so that new objects at
//! the end of a span do not matter if they are still in that state. Timeline semaphores only grow: their values are
//! stored beside the hash, and a signal of the host can set them.

use std::collections::{BTreeMap, VecDeque};

use lavascope_abi as vk;
use lavascope_abi::{HandleType, ObjectId, Result};
use lavascope_record::{Call, Outcome, View};
use rustc_hash::{FxHashMap, FxHashSet};

/// More images than a swapchain has.
const IMAGES_MAX: u64 = 64;

/// A point at which a span may begin or end: behind a submission or a presentation.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    /// The last record before it.
    pub(crate) record: usize,
    pub(crate) is_frame: bool,
    pub(crate) state_hash: u128,
    pub(crate) timelines: BTreeMap<ObjectId, TimelineState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimelineState {
    pub(crate) device: ObjectId,
    pub(crate) initial: u64,
    pub(crate) value: u64,
    /// The value that it reaches without further signals of the host.
    reached: u64,
}

/// Timelines that a batch waits for, and that it signals.
struct TimelineBatch {
    waits: Vec<(ObjectId, u64)>,
    signals: Vec<(ObjectId, u64)>,
}

#[derive(Default)]
pub(crate) struct SyncState {
    /// What differs from the state at creation: an object, and for a swapchain the index of an image.
    changed: FxHashSet<(ObjectId, u64)>,
    state_hash: u128,
    /// Fences that were signaled when they were made.
    signaled: FxHashSet<ObjectId>,
    timelines: BTreeMap<ObjectId, TimelineState>,
    /// By queue, the batches that wait for timeline values that nothing has signaled so far, and the batches after
    /// them.
    blocked: BTreeMap<ObjectId, VecDeque<TimelineBatch>>,
    /// The images of each swapchain.
    images: FxHashMap<ObjectId, Vec<ObjectId>>,
    pub(crate) devices: usize,
    has_events: bool,
}

fn id(raw: u64) -> ObjectId {
    ObjectId::from_raw(raw).unwrap_or_default()
}

impl SyncState {
    /// Applies a call that succeeded.
    pub(crate) fn apply_call(&mut self, call: Call<'_>, outcome: Option<Outcome<'_>>) {
        match (call, outcome) {
            (Call::CreateDevice(_), _) => self.devices += 1,
            (Call::SetEvent(_), _) => self.has_events = true,
            (Call::CreateFence(params), Some(Outcome::CreateFence(made))) => {
                let flags = params.p_create_info().map_or(0, |it| it.flags.0);
                if let Some(fence) = made.p_fence().filter(|_| flags & vk::FenceCreateFlags::SIGNALED.0 != 0) {
                    self.signaled.insert(id(fence.0));
                }
            }
            (Call::CreateSemaphore(params), Some(Outcome::CreateSemaphore(made))) => {
                let ty = params.p_create_info().and_then(|it| it.chained::<vk::SemaphoreTypeCreateInfo>());
                let ty = ty.filter(|it| it.semaphore_type == vk::SemaphoreType::TIMELINE);
                if let (Some(ty), Some(made)) = (ty, made.p_semaphore()) {
                    let (device, initial) = (id(params.device.0), ty.initial_value);
                    self.timelines
                        .insert(id(made.0), TimelineState { device, initial, value: initial, reached: initial });
                }
            }
            (Call::GetSwapchainImagesKHR(params), Some(Outcome::GetSwapchainImagesKHR(made))) => {
                let images: Vec<ObjectId> = made.p_swapchain_images().iter().map(|it| id(it.0)).collect();
                let own = self.images.entry(id(params.swapchain.0)).or_default();
                if own.len() < images.len() {
                    *own = images;
                }
            }
            (Call::DestroyFence(params), _) => self.remove_object(id(params.fence.0)),
            (Call::DestroySemaphore(params), _) => self.remove_object(id(params.semaphore.0)),
            (Call::DestroySwapchainKHR(params), _) => self.remove_object(id(params.swapchain.0)),
            (call, outcome) => self.apply_queue_call(call, outcome),
        }
    }

    fn apply_queue_call(&mut self, call: Call<'_>, outcome: Option<Outcome<'_>>) {
        match (call, outcome) {
            (Call::QueueSubmit(params), _) => {
                params.p_submits().iter().for_each(|batch| self.submit(params.queue, batch));
                self.fence(params.fence, true);
            }
            (Call::QueueSubmit2(params), _) => {
                for batch in params.p_submits().iter() {
                    let waits = batch.p_wait_semaphore_infos().iter().map(|it| (it.semaphore, it.value)).collect();
                    let signals = batch.p_signal_semaphore_infos().iter().map(|it| (it.semaphore, it.value)).collect();
                    self.submit_batch(params.queue, waits, signals);
                }
                self.fence(params.fence, true);
            }
            (Call::ResetFences(params), _) => params.p_fences().iter().for_each(|it| self.fence(*it, false)),
            (Call::SignalSemaphore(params), _) => {
                if let Some(info) = params.p_signal_info() {
                    self.signal(info.semaphore, info.value);
                    self.apply_signals(&[(id(info.semaphore.0), info.value)]);
                    self.unblock();
                }
            }
            (Call::AcquireNextImageKHR(params), Some(Outcome::AcquireNextImageKHR(got))) if is_acquired(got.result) => {
                self.acquire(params.swapchain, got.p_image_index().copied(), (params.semaphore, params.fence));
            }
            (Call::AcquireNextImage2KHR(params), Some(Outcome::AcquireNextImage2KHR(got))) => {
                if let Some(info) = params.p_acquire_info().filter(|_| is_acquired(got.result)) {
                    self.acquire(info.swapchain, got.p_image_index().copied(), (info.semaphore, info.fence));
                }
            }
            (Call::QueuePresentKHR(params), _) => {
                if let Some(info) = params.p_present_info() {
                    self.present(info);
                }
            }
            // Nothing else changes the state.
            _ => {}
        }
    }

    /// Whether everything that was submitted can complete without the host.
    pub(crate) fn can_complete(&self) -> bool {
        self.blocked.values().all(VecDeque::is_empty)
    }

    /// Whether the host never sets an event, so that the device never waits for that.
    pub(crate) fn is_without_events(&self) -> bool {
        !self.has_events
    }

    pub(crate) fn boundary(&self, place: usize, is_frame: bool) -> Boundary {
        Boundary { record: place, is_frame, state_hash: self.state_hash, timelines: self.timelines.clone() }
    }

    /// The images that a call presents.
    pub(crate) fn presented(&self, call: Call<'_>) -> Vec<ObjectId> {
        let Call::QueuePresentKHR(params) = call else { return Vec::new() };
        let Some(info) = params.p_present_info() else { return Vec::new() };
        let pairs = info.p_swapchains().iter().zip(info.p_image_indices());
        pairs.filter_map(|(own, index)| self.images.get(&id(own.0))?.get(*index as usize).copied()).collect()
    }

    fn submit(&mut self, queue: vk::Queue, submit_info: View<'_, vk::SubmitInfo>) {
        let values = submit_info.chained::<vk::TimelineSemaphoreSubmitInfo>();
        let (waited, signaled) =
            values.map_or((&[][..], &[][..]), |it| (it.p_wait_semaphore_values(), it.p_signal_semaphore_values()));
        let pairs = |all: &[vk::Semaphore], values: &[u64]| {
            all.iter().enumerate().map(|(at, it)| (*it, values.get(at).copied().unwrap_or(0))).collect()
        };
        self.submit_batch(
            queue,
            pairs(submit_info.p_wait_semaphores(), waited),
            pairs(submit_info.p_signal_semaphores(), signaled),
        );
    }

    /// A queue gets a batch, which waits for semaphores and signals others.
    fn submit_batch(&mut self, queue: vk::Queue, waits: Vec<(vk::Semaphore, u64)>, signals: Vec<(vk::Semaphore, u64)>) {
        waits.iter().for_each(|it| self.wait(it.0));
        signals.iter().for_each(|it| self.signal(it.0, it.1));
        let own = |all: Vec<(vk::Semaphore, u64)>| all.into_iter().map(|it| (id(it.0.0), it.1)).collect();
        let batch = TimelineBatch { waits: own(waits), signals: own(signals) };
        self.blocked.entry(id(queue.0)).or_default().push_back(batch);
        self.unblock();
    }

    /// Lets queues get on as far as they do by themselves.
    fn unblock(&mut self) {
        let mut blocked = std::mem::take(&mut self.blocked);
        let mut gets_on = true;
        while std::mem::take(&mut gets_on) {
            for queue in blocked.values_mut() {
                while let Some(batch) = queue.pop_front_if(|it| self.is_reached(&it.waits)) {
                    self.apply_signals(&batch.signals);
                    gets_on = true;
                }
            }
        }
        self.blocked = blocked;
    }

    fn is_reached(&self, waits: &[(ObjectId, u64)]) -> bool {
        waits.iter().all(|(it, value)| self.timelines.get(it).is_none_or(|it| it.reached >= *value))
    }

    fn apply_signals(&mut self, signals: &[(ObjectId, u64)]) {
        for (signal, value) in signals {
            if let Some(timeline_state) = self.timelines.get_mut(signal) {
                timeline_state.reached = timeline_state.reached.max(*value);
            }
        }
    }

    fn acquire(
        &mut self,
        swapchain: vk::SwapchainKHR,
        index: Option<u32>,
        (semaphore, fence): (vk::Semaphore, vk::Fence),
    ) {
        self.signal(semaphore, 0);
        self.fence(fence, true);
        if let Some(index) = index {
            self.set_changed((id(swapchain.0), u64::from(index)), true);
        }
    }

    fn present(&mut self, info: View<'_, vk::PresentInfoKHR>) {
        info.p_wait_semaphores().iter().for_each(|it| self.wait(*it));
        for (swapchain, index) in info.p_swapchains().iter().zip(info.p_image_indices()) {
            self.set_changed((id(swapchain.0), u64::from(*index)), false);
        }
        let fences = info.chained::<vk::SwapchainPresentFenceInfoKHR>();
        fences.map_or(&[][..], |it| it.p_fences()).iter().for_each(|it| self.fence(*it, true));
    }

    fn fence(&mut self, fence: vk::Fence, is_signaled: bool) {
        let fence = id(fence.0);
        self.set_changed((fence, 0), self.signaled.contains(&fence) != is_signaled);
    }

    fn wait(&mut self, semaphore: vk::Semaphore) {
        if !self.timelines.contains_key(&id(semaphore.0)) {
            self.set_changed((id(semaphore.0), 0), false);
        }
    }

    fn signal(&mut self, semaphore: vk::Semaphore, value: u64) {
        match self.timelines.get_mut(&id(semaphore.0)) {
            Some(timeline_state) => timeline_state.value = timeline_state.value.max(value),
            None => self.set_changed((id(semaphore.0), 0), true),
        }
    }

    fn set_changed(&mut self, what: (ObjectId, u64), is_changed: bool) {
        if what.0.is_null() || what.0.is_unknown() {
            return;
        }
        let differs = match is_changed {
            true => self.changed.insert(what),
            false => self.changed.remove(&what),
        };
        if differs {
            self.state_hash ^= mixed(what.0.raw(), what.1);
        }
    }

    fn remove_object(&mut self, object: ObjectId) {
        let count = if object.ty() == Some(HandleType::SwapchainKHR) { IMAGES_MAX } else { 1 };
        (0..count).for_each(|it| self.set_changed((object, it), false));
        self.timelines.remove(&object);
        self.signaled.remove(&object);
    }
}

fn is_acquired(result: Result) -> bool {
    matches!(result, Result::SUCCESS | Result::SUBOPTIMAL_KHR)
}

/// A hash of a pair.
fn mixed(object: u64, part: u64) -> u128 {
    let half = |seed: u64| {
        let mut item = object.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part.wrapping_add(seed);
        for _ in 0..3 {
            item = (item ^ item >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        }
        u128::from(item ^ item >> 29)
    };
    half(0x1234_5678) << 64 | half(0x8765_4321_0fed_cba9)
}
