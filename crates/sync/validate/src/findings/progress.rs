//! How far the queues of a device have come, as far as the host knows from fences, timeline semaphores and waits for
//! idle.
//!
//! Computed from the remembered steps when the device is lost, so it costs nothing before.

use std::collections::HashMap;

use lavascope_abi::ObjectId;
use lavascope_record::ObjectNames;
use lavascope_sync_ir::{FenceId, HostStep, QueueId, SemaphorePoint};

use crate::device::ValidatedDevice;
use crate::findings::names::{function_text, object_text, queue_text};
use crate::recording::step_history::{HistoryStep, SubmittedCommandBuffer};

/// A submitted batch.
struct SubmittedBatch<'a> {
    history_step: &'a HistoryStep,
    waits: Vec<SemaphorePoint>,
    signals: Vec<SemaphorePoint>,
    buffers: &'a [SubmittedCommandBuffer],
    is_finished: bool,
}

#[derive(Default)]
struct DeviceProgress<'a> {
    /// The batches of each queue, in the order of submission.
    queues: Vec<Vec<SubmittedBatch<'a>>>,
    /// The queue of each fence, and the number of its batches that the fence covers.
    fences: HashMap<FenceId, (usize, usize)>,
}

impl ValidatedDevice {
    /// For each queue the last batch that has completed and the first that has not, one line each.
    pub(crate) fn queue_progress(&self, object_names: &ObjectNames) -> Vec<String> {
        let mut progress = DeviceProgress::default();
        progress.queues.resize_with(self.objects.queues.len(), Vec::new);
        self.history.all_steps().for_each(|it| progress.apply_step(it));
        let mut lines = Vec::new();
        for (queue, works) in progress.queues.iter().enumerate().filter(|it| !it.1.is_empty()) {
            let name = queue_text(QueueId(queue as u32), &self.objects, object_names);
            let first = works.iter().position(|it| !it.is_finished);
            let last = works[..first.unwrap_or(works.len())].last();
            lines.push(match last {
                Some(submitted_batch) => {
                    format!(
                        "the last work of {name} that is known to be over: {}",
                        work_text(submitted_batch, object_names)
                    )
                }
                None => format!("no work of {name} is known to be over"),
            });
            lines.push(match first {
                Some(value) => {
                    format!("the first work of {name} that may not be over: {}", work_text(&works[value], object_names))
                }
                None => format!("all work of {name} is over"),
            });
            lines.extend(first.into_iter().flat_map(|it| batch_command_lines(&works[it])));
        }
        lines
    }
}

impl<'a> DeviceProgress<'a> {
    fn apply_step(&mut self, kept: &'a HistoryStep) {
        match &kept.step {
            HostStep::Submit { queue, batches, fence } => {
                for (at, batch) in batches.iter().enumerate() {
                    let waits = batch.waits.iter().map(|it| it.point).collect();
                    let signals = batch.signals.iter().map(|it| it.point).collect();
                    let buffers = kept.buffers.get(at).map_or(&[][..], Vec::as_slice);
                    self.push(
                        *queue,
                        SubmittedBatch { history_step: kept, waits, signals, buffers, is_finished: false },
                    );
                }
                self.signal(*fence, *queue);
            }
            HostStep::BindSparse { queue, waits, signals, fence, .. } => {
                let (waits, signals) = (waits.clone(), signals.clone());
                self.push(
                    *queue,
                    SubmittedBatch { history_step: kept, waits, signals, buffers: &[], is_finished: false },
                );
                self.signal(*fence, *queue);
            }
            HostStep::WaitFences(all) => {
                let known: Vec<(usize, usize)> = all.iter().filter_map(|it| self.fences.get(it).copied()).collect();
                known.into_iter().for_each(|(queue, count)| self.finish_first(queue, count));
            }
            HostStep::ResetFences(all) => self.fences.retain(|it, _| !all.contains(it)),
            HostStep::WaitSemaphores(points) => points.iter().for_each(|it| self.finish_signal(*it)),
            HostStep::QueueIdle(queue) => self.finish_first(queue.0 as usize, usize::MAX),
            HostStep::DeviceIdle => (0..self.queues.len()).for_each(|it| self.finish_first(it, usize::MAX)),
            // The host learns nothing from it about the progress of a queue.
            HostStep::SignalSemaphore(_)
            | HostStep::SetEvent(_)
            | HostStep::ResetEvent(_)
            | HostStep::HostAccess { .. }
            | HostStep::Acquire { .. }
            | HostStep::Present { .. }
            | HostStep::Destroy(_) => {}
        }
    }

    fn push(&mut self, queue: QueueId, work: SubmittedBatch<'a>) {
        if let Some(submitted_batchs) = self.queues.get_mut(queue.0 as usize) {
            submitted_batchs.push(work);
        }
    }

    fn signal(&mut self, fence: Option<FenceId>, queue: QueueId) {
        if let (Some(fence), Some(works)) = (fence, self.queues.get(queue.0 as usize)) {
            self.fences.insert(fence, (queue.0 as usize, works.len()));
        }
    }

    /// The first `count` batches of a queue have completed, and so has everything that they waited for.
    fn finish_first(&mut self, queue: usize, count: usize) {
        let Some(works) = self.queues.get_mut(queue) else { return };
        let mut waits = Vec::new();
        for work in works.iter_mut().take(count).filter(|it| !it.is_finished) {
            work.is_finished = true;
            waits.append(&mut work.waits);
        }
        waits.into_iter().for_each(|it| self.finish_signal(it));
    }

    /// A semaphore was signaled, so the batch that signals it has completed. For a binary semaphore that is the last
    /// such batch.
    fn finish_signal(&mut self, point: SemaphorePoint) {
        let is_it = |it: &SemaphorePoint| it.semaphore == point.semaphore && it.value >= point.value;
        for queue in 0..self.queues.len() {
            let works = &self.queues[queue];
            let signals = |work: &SubmittedBatch<'_>| work.signals.iter().any(is_it);
            let found = match point.value {
                Some(_) => works.iter().position(signals),
                None => works.iter().rposition(signals),
            };
            if let Some(at) = found.filter(|it| !works[*it].is_finished) {
                self.finish_first(queue, at + 1);
            }
        }
    }
}

fn work_text(work: &SubmittedBatch<'_>, object_names: &ObjectNames) -> String {
    let object = |it: &SubmittedCommandBuffer| it.own.as_ref().map(|it| it.object);
    let buffers: Vec<ObjectId> = work.buffers.iter().filter_map(object).collect();
    let names: Vec<String> = buffers.iter().map(|it| object_text(*it, object_names)).collect();
    let number = match &work.history_step.step {
        HostStep::Submit { .. } => format!("submit {}", work.history_step.submit),
        _ => work.history_step.source.command.desc().name.to_owned(),
    };
    if names.is_empty() { number } else { format!("{number} with {}", names.join(", ")) }
}

/// Largest number of labels in a list; the others are counted.
const LABELS_MAX: usize = 8;

/// The commands of a batch: the first and the last one, and the debug labels between them.
fn batch_command_lines(work: &SubmittedBatch<'_>) -> Vec<String> {
    let recorded = work.buffers.iter().filter_map(|it| it.own.as_deref());
    let mut lines = Vec::new();
    for own in recorded.filter(|it| !it.calls.is_empty()) {
        let mut paths: Vec<String> = own.calls.iter().filter_map(|it| Some(it.labels.as_ref()?.join("::"))).collect();
        paths.dedup();
        let (first, last) = (own.calls.first().map(function_text), own.calls.last().map(function_text));
        let ends = format!("{} to {}", first.unwrap_or_default(), last.unwrap_or_default());
        let more = paths.len().saturating_sub(LABELS_MAX);
        let mut text = format!("its {} commands with accesses or dependencies: {ends}", own.calls.len());
        if !paths.is_empty() {
            paths.truncate(LABELS_MAX);
            text += &format!("; labels {}", paths.join(", "));
        }
        if more > 0 {
            text += &format!(" and {more} more");
        }
        lines.push(text);
    }
    lines
}
