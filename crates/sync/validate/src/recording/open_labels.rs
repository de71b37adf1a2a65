//! Debug labels that a command buffer opens and a later one on the same queue closes.
//!
//! Such a region has everything in it that the queue executes in between: in the same batch, in the next one, and in
//! later submissions. What counts is the order of submission.

use std::sync::Arc;

use lavascope_record::LabelPath;
use lavascope_sync_ir::{HostStep, QueueId};
use rustc_hash::FxHashMap;

use crate::recording::step_history::SubmittedCommandBuffer;

/// Labels of a queue that may be open at once. A program that opens more forgets to close them: these say nothing.
const OPEN_MAX: usize = 16;

/// The labels that are open on each queue.
#[derive(Default)]
pub(crate) struct OpenLabels {
    queues: FxHashMap<QueueId, Option<LabelPath>>,
}

/// The labels that were open when each command buffer of a submission began, by batch and place in there; empty if none
/// ever was.
pub(crate) type CarriedLabels = Vec<Vec<Option<LabelPath>>>;

impl OpenLabels {
    /// Command buffers are submitted. Gives the labels that are open when each of them begins.
    pub(crate) fn submit(&mut self, step: &HostStep, buffers: &[Vec<SubmittedCommandBuffer>]) -> CarriedLabels {
        let HostStep::Submit { queue, .. } = step else { return Vec::new() };
        let changes = |it: &SubmittedCommandBuffer| it.own.as_ref().is_some_and(|it| it.labels_at_end.open.is_some());
        if !self.queues.contains_key(queue) && !buffers.iter().flatten().any(changes) {
            return Vec::new();
        }
        let open = self.queues.entry(*queue).or_default();
        let mut begin = |submitted: &SubmittedCommandBuffer| {
            let before = open.clone();
            if let Some(own) = &submitted.own {
                *open = joined(before.as_ref(), own.labels_at_end.closed, own.labels_at_end.open.as_ref());
            }
            before
        };
        let carried = buffers.iter().map(|batch| batch.iter().map(&mut begin).collect()).collect();
        if open.is_none() {
            self.queues.remove(queue);
        }
        carried
    }

    /// A submission is taken back that had these labels.
    pub(crate) fn restore(&mut self, queue: QueueId, carried: &CarriedLabels) {
        match carried.iter().flatten().next() {
            Some(Some(before)) => drop(self.queues.insert(queue, Some(before.clone()))),
            Some(None) => drop(self.queues.remove(&queue)),
            None => {}
        }
    }
}

/// Labels without the innermost ones that were closed, and with those that were opened then.
fn joined(before: Option<&LabelPath>, closed: u16, opened: Option<&LabelPath>) -> Option<LabelPath> {
    let kept = before.map_or(0, |it| it.len().saturating_sub(usize::from(closed)));
    let kept = before.iter().flat_map(|it| &it[..kept]);
    let all: Vec<Arc<str>> = kept.chain(opened.iter().flat_map(|it| it.iter())).cloned().collect();
    (!all.is_empty() && all.len() <= OPEN_MAX).then(|| all.into())
}
