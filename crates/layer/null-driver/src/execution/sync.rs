//! Fences, semaphores and events as the host sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::DriverObjectTable;
use crate::execution::queue_engine;
use crate::execution::queue_engine::SemaphoreValue;

pub(crate) static FENCES: DriverObjectTable<queue_engine::FencePayload> = DriverObjectTable::new(HandleType::Fence);
pub(crate) static SEMAPHORES: DriverObjectTable<queue_engine::SemaphorePayload> =
    DriverObjectTable::new(HandleType::Semaphore);
pub(crate) static EVENTS: DriverObjectTable<queue_engine::EventPayload> = DriverObjectTable::new(HandleType::Event);

pub(crate) fn create_fence(c: ApplicationMemory<'_>, call: &CreateFenceParams) -> Result {
    let is_signaled = c.get(call.p_create_info).is_some_and(|it| it.flags.0 & FenceCreateFlags::SIGNALED.0 != 0);
    let fence = queue_engine::FencePayload { is_signaled: AtomicBool::new(is_signaled) };
    c.write(call.p_fence, Fence(FENCES.add(fence)));
    Result::SUCCESS
}

pub(crate) fn destroy_fence(_: ApplicationMemory<'_>, call: &DestroyFenceParams) {
    FENCES.remove(call.fence.0);
}

pub(crate) fn reset_fences(c: ApplicationMemory<'_>, call: &ResetFencesParams) -> Result {
    for fence in c.slice(call.p_fences, call.fence_count).iter().filter_map(|it| FENCES.get(it.0)) {
        fence.is_signaled.store(false, Ordering::Release);
    }
    Result::SUCCESS
}

pub(crate) fn get_fence_status(_: ApplicationMemory<'_>, call: &GetFenceStatusParams) -> Result {
    match FENCES.get(call.fence.0) {
        Some(fence_payload) if fence_payload.is_signaled.load(Ordering::Acquire) => Result::SUCCESS,
        Some(_) if queue_engine::is_lost() => Result::ERROR_DEVICE_LOST,
        Some(_) => Result::NOT_READY,
        None => Result::ERROR_DEVICE_LOST,
    }
}

pub(crate) fn wait_for_fences(c: ApplicationMemory<'_>, call: &WaitForFencesParams) -> Result {
    let fences: Vec<Arc<queue_engine::FencePayload>> =
        c.slice(call.p_fences, call.fence_count).iter().filter_map(|it| FENCES.get(it.0)).collect();
    let is_signaled = |it: &Arc<queue_engine::FencePayload>| it.is_signaled.load(Ordering::Acquire);
    wait(call.timeout, call.wait_all.is_true(), &fences, is_signaled)
}

/// Waits for all or any of some things; nothing to wait for is done at once.
fn wait<T>(timeout: u64, is_all: bool, items: &[T], is_done: impl Fn(&T) -> bool) -> Result {
    queue_engine::wait_until(timeout, || {
        if is_all || items.is_empty() { items.iter().all(&is_done) } else { items.iter().any(&is_done) }
    })
}

pub(crate) fn create_semaphore(c: ApplicationMemory<'_>, call: &CreateSemaphoreParams) -> Result {
    let info = c.get(call.p_create_info);
    let ty = info.and_then(|it| c.find::<SemaphoreTypeCreateInfo>(it.p_next));
    let is_timeline = ty.is_some_and(|it| it.semaphore_type == SemaphoreType::TIMELINE);
    let initial = ty.filter(|_| is_timeline).map_or(0, |it| it.initial_value);
    let semaphore = queue_engine::SemaphorePayload { is_timeline, value: AtomicU64::new(initial) };
    c.write(call.p_semaphore, Semaphore(SEMAPHORES.add(semaphore)));
    Result::SUCCESS
}

pub(crate) fn destroy_semaphore(_: ApplicationMemory<'_>, call: &DestroySemaphoreParams) {
    SEMAPHORES.remove(call.semaphore.0);
}

pub(crate) fn get_semaphore_counter_value(c: ApplicationMemory<'_>, call: &GetSemaphoreCounterValueParams) -> Result {
    let Some(other) = SEMAPHORES.get(call.semaphore.0) else { return Result::ERROR_DEVICE_LOST };
    c.write(call.p_value, other.value.load(Ordering::Acquire));
    Result::SUCCESS
}

pub(crate) fn signal_semaphore(c: ApplicationMemory<'_>, call: &SignalSemaphoreParams) -> Result {
    let Some(info) = c.get(call.p_signal_info) else { return Result::ERROR_UNKNOWN };
    let Some(other) = SEMAPHORES.get(info.semaphore.0) else { return Result::ERROR_DEVICE_LOST };
    queue_engine::signal(&other, info.value);
    Result::SUCCESS
}

pub(crate) fn wait_semaphores(c: ApplicationMemory<'_>, call: &WaitSemaphoresParams) -> Result {
    let Some(info) = c.get(call.p_wait_info) else { return Result::ERROR_UNKNOWN };
    let values = c.slice(info.p_values, info.semaphore_count);
    let semaphores = c.slice(info.p_semaphores, info.semaphore_count);
    let points: Vec<SemaphoreValue> =
        semaphores.iter().zip(values).filter_map(|(it, value)| Some((SEMAPHORES.get(it.0)?, *value))).collect();
    let is_all = info.flags.0 & SemaphoreWaitFlags::ANY.0 == 0;
    wait(call.timeout, is_all, &points, queue_engine::is_reached)
}

pub(crate) fn create_event(c: ApplicationMemory<'_>, call: &CreateEventParams) -> Result {
    c.write(call.p_event, Event(EVENTS.add(queue_engine::EventPayload::default())));
    Result::SUCCESS
}

pub(crate) fn destroy_event(_: ApplicationMemory<'_>, call: &DestroyEventParams) {
    EVENTS.remove(call.event.0);
}

pub(crate) fn get_event_status(_: ApplicationMemory<'_>, call: &GetEventStatusParams) -> Result {
    match EVENTS.get(call.event.0) {
        Some(event_payload) if event_payload.is_set.load(Ordering::Acquire) => Result::EVENT_SET,
        Some(_) => Result::EVENT_RESET,
        None => Result::ERROR_DEVICE_LOST,
    }
}

pub(crate) fn set_event(_: ApplicationMemory<'_>, call: &SetEventParams) -> Result {
    put_event(call.event, true)
}

pub(crate) fn reset_event(_: ApplicationMemory<'_>, call: &ResetEventParams) -> Result {
    put_event(call.event, false)
}

fn put_event(event: Event, is_set: bool) -> Result {
    let Some(other) = EVENTS.get(event.0) else { return Result::ERROR_DEVICE_LOST };
    queue_engine::change(|| other.is_set.store(is_set, Ordering::Release));
    Result::SUCCESS
}
