//! Submissions in their three forms, as batches for the engine.

use std::sync::Arc;

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::execution::commands::RecordedOp;
use crate::execution::queue_engine;
use crate::execution::queue_engine::{QueueBatch, SemaphoreValue};
use crate::execution::sync::{FENCES, SEMAPHORES};

pub(crate) fn queue_submit(c: ApplicationMemory<'_>, call: &QueueSubmitParams) -> Result {
    let submits = c.slice(call.p_submits, call.submit_count);
    submit_batches(c, call.queue, call.fence, submits.iter().map(|it| batch(c, it)).collect())
}

pub(crate) fn queue_submit2(c: ApplicationMemory<'_>, call: &QueueSubmit2Params) -> Result {
    let submits = c.slice(call.p_submits, call.submit_count);
    submit_batches(c, call.queue, call.fence, submits.iter().map(|it| batch2(c, it)).collect())
}

pub(crate) fn queue_bind_sparse(c: ApplicationMemory<'_>, call: &QueueBindSparseParams) -> Result {
    let binds = c.slice(call.p_bind_info, call.bind_info_count);
    submit_batches(c, call.queue, call.fence, binds.iter().map(|it| sparse_batch(c, it)).collect())
}

/// The fence belongs to the last batch, or to one of its own.
fn submit_batches(c: ApplicationMemory<'_>, queue: Queue, fence: Fence, mut batches: Vec<QueueBatch>) -> Result {
    if let Some(fence) = FENCES.get(fence.0) {
        if batches.is_empty() {
            batches.push(QueueBatch::default());
        }
        if let Some(last) = batches.last_mut() {
            last.fences.push(fence);
        }
    }
    let queue = c.queue(queue);
    queue_engine::submit(queue.number, batches, queue.lose_at_submission)
}

fn batch(c: ApplicationMemory<'_>, submit: &SubmitInfo) -> QueueBatch {
    let timeline = c.find::<TimelineSemaphoreSubmitInfo>(submit.p_next);
    let waits = timeline.map(|it| c.slice(it.p_wait_semaphore_values, it.wait_semaphore_value_count));
    let signals = timeline.map(|it| c.slice(it.p_signal_semaphore_values, it.signal_semaphore_value_count));
    let wait_semaphores = c.slice(submit.p_wait_semaphores, submit.wait_semaphore_count);
    let signal_semaphores = c.slice(submit.p_signal_semaphores, submit.signal_semaphore_count);
    let buffers = c.slice(submit.p_command_buffers, submit.command_buffer_count);
    QueueBatch {
        waits: semaphore_values(wait_semaphores, waits.unwrap_or_default()),
        recorded_ops: buffers.iter().filter_map(|it| recorded_ops(c, *it)).collect(),
        signals: semaphore_values(signal_semaphores, signals.unwrap_or_default()),
        ..QueueBatch::default()
    }
}

fn batch2(c: ApplicationMemory<'_>, submit: &SubmitInfo2) -> QueueBatch {
    let point = |it: &SemaphoreSubmitInfo| Some((SEMAPHORES.get(it.semaphore.0)?, it.value));
    let waits = c.slice(submit.p_wait_semaphore_infos, submit.wait_semaphore_info_count);
    let signals = c.slice(submit.p_signal_semaphore_infos, submit.signal_semaphore_info_count);
    let buffers = c.slice(submit.p_command_buffer_infos, submit.command_buffer_info_count);
    QueueBatch {
        waits: waits.iter().filter_map(point).collect(),
        recorded_ops: buffers.iter().filter_map(|it| recorded_ops(c, it.command_buffer)).collect(),
        signals: signals.iter().filter_map(point).collect(),
        ..QueueBatch::default()
    }
}

/// The bindings themselves are not kept: a sparse resource has no contents here.
fn sparse_batch(c: ApplicationMemory<'_>, bind: &BindSparseInfo) -> QueueBatch {
    let timeline = c.find::<TimelineSemaphoreSubmitInfo>(bind.p_next);
    let waits = timeline.map(|it| c.slice(it.p_wait_semaphore_values, it.wait_semaphore_value_count));
    let signals = timeline.map(|it| c.slice(it.p_signal_semaphore_values, it.signal_semaphore_value_count));
    QueueBatch {
        waits: semaphore_values(c.slice(bind.p_wait_semaphores, bind.wait_semaphore_count), waits.unwrap_or_default()),
        signals: semaphore_values(
            c.slice(bind.p_signal_semaphores, bind.signal_semaphore_count),
            signals.unwrap_or_default(),
        ),
        ..QueueBatch::default()
    }
}

/// Semaphores with their values; binary ones need none.
pub(crate) fn semaphore_values(semaphores: &[Semaphore], values: &[u64]) -> Vec<SemaphoreValue> {
    let value = |at: usize| values.get(at).copied().unwrap_or_default();
    semaphores.iter().enumerate().filter_map(|(at, it)| Some((SEMAPHORES.get(it.0)?, value(at)))).collect()
}

/// The work of a command buffer; none if it has none.
fn recorded_ops(c: ApplicationMemory<'_>, buffer: CommandBuffer) -> Option<Arc<Vec<RecordedOp>>> {
    Some(c.command_buffer(buffer).recorded()).filter(|it| !it.is_empty())
}
