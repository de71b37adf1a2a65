//! Submissions: batches, presents, sparse binds and fence signals, executed in the order of their queue.
//!
//! A submission that waits for a semaphore which nothing has signaled yet is blocked, with everything behind it on its
//! queue. The engine executes it when a later call signals the semaphore.

use std::collections::VecDeque;
use std::sync::Arc;

use lavascope_sync_ir::{
    FenceId, QueueId, ResourceId, SemaphoreId, SemaphorePoint, SemaphoreWait, SparseBind, SubmitBatch, SyncScope,
};
use rustc_hash::FxHashMap;

use crate::access::access_context::RareOrder;
use crate::access::usages::StageSet;
use crate::dependency::clocks::{QueueClock, VisibleWrites};
use crate::dependency::scopes;
use crate::dependency::scopes::{COMMON_SETS, CommonSets, ExpandedScope};
use crate::queue::device::{EngineDevice, TAGS_PER_COMMAND};
use crate::queue::render_passes::SuspendedRendering;
use crate::queue::signals::CompletedWork;

/// Executes the command buffers of a batch: the device, the queue, step and index of the batch, and the batch.
pub(crate) type ExecuteBatch<'a> = &'a mut dyn FnMut(&mut EngineDevice, u8, u32, u32, &SubmitBatch);

/// A queue.
pub(crate) struct QueueTimeline {
    pub(crate) flags: u32,
    pub(crate) family: u32,
    pub(crate) clock: QueueClock,
    /// Scopes that were expanded already. Programs use few scopes, each of them often.
    expanded: FxHashMap<SyncScope, ExpandedScope>,
    /// What all signals of the queue so far hand on. A later signal hands on the same again: its first scope has all
    /// earlier work of the queue (`synchronization-semaphores-signaling`).
    pub(super) signals: CompletedWork,
    /// Writes that semaphore waits made visible to the host, with the stages of the waits.
    pub(super) received_visible: Vec<(StageSet, VisibleWrites)>,
    pub(super) blocked: VecDeque<BlockedSubmission>,
    /// What the clock already has of the completed work that the host knows.
    merged_host: Option<Arc<CompletedWork>>,
    pub(crate) suspended: Option<SuspendedRendering>,
    pub(crate) rare_order: RareOrder,
    /// How many intervals the clock had after the last sweep.
    pub(super) intervals_after_sweep: usize,
}

impl QueueTimeline {
    pub(super) fn new(queue: lavascope_sync_ir::Queue) -> QueueTimeline {
        QueueTimeline {
            flags: queue.flags,
            family: queue.family,
            clock: QueueClock::default(),
            expanded: FxHashMap::default(),
            signals: CompletedWork::default(),
            received_visible: Vec::new(),
            blocked: VecDeque::new(),
            merged_host: None,
            suspended: None,
            rare_order: RareOrder::default(),
            intervals_after_sweep: 0,
        }
    }

    /// Makes the queue of an isolated execution ready for another one. Expanded scopes depend only on the flags.
    pub(super) fn reset_isolated(&mut self, queue: lavascope_sync_ir::Queue) {
        if self.flags != queue.flags {
            self.expanded.clear();
        }
        (self.flags, self.family, self.suspended) = (queue.flags, queue.family, None);
        self.clock.clear();
        self.rare_order.possible_reads.clear();
        self.rare_order.markers.clear();
        self.intervals_after_sweep = 0;
    }

    pub(crate) fn kind(&self) -> lavascope_sync_ir::Queue {
        lavascope_sync_ir::Queue { family: self.family, flags: self.flags }
    }

    #[inline]
    pub(crate) fn expand(&mut self, scope: SyncScope) -> ExpandedScope {
        *self.expanded.entry(scope).or_insert_with(|| ExpandedScope::new(scope, self.flags))
    }

    fn receive(&mut self, stages: StageSet, seen: &VisibleWrites) {
        match self.received_visible.iter_mut().find(|it| it.0 == stages) {
            Some(own) => own.1.merge(seen),
            None => self.received_visible.push((stages, seen.clone())),
        }
    }
}

/// Work that is not executed yet, and the completed work that the host knew when it submitted it.
pub(super) struct BlockedSubmission {
    step: u32,
    host: Arc<CompletedWork>,
    work: QueueWork,
}

enum QueueWork {
    Batch(u32, SubmitBatch),
    Fence(FenceId),
    Present(Vec<SemaphoreId>, Vec<ResourceId>),
    Sparse(SparseBindWork),
}

/// `vkQueueBindSparse`.
pub(crate) struct SparseBindWork {
    pub(crate) waits: Vec<SemaphorePoint>,
    pub(crate) binds: Vec<SparseBind>,
    pub(crate) signals: Vec<SemaphorePoint>,
    pub(crate) fence: Option<FenceId>,
}

impl EngineDevice {
    /// Submits batches to a queue, and executes all work that is ready.
    pub(crate) fn submit(
        &mut self,
        step: u32,
        queue: QueueId,
        batches: &[SubmitBatch],
        fence: Option<FenceId>,
        execute: ExecuteBatch<'_>,
    ) {
        let Some(timeline) = self.queues.get_mut(queue.0 as usize) else { return };
        let batches = batches.iter().enumerate().map(|(index, batch)| QueueWork::Batch(index as u32, batch.clone()));
        for work in batches.chain(fence.map(QueueWork::Fence)) {
            timeline.blocked.push_back(BlockedSubmission { step, host: Arc::clone(&self.host), work });
        }
        self.run_queues(execute);
    }

    /// Submits a present to a queue.
    pub(crate) fn submit_present(
        &mut self,
        step: u32,
        queue: QueueId,
        waits: &[SemaphoreId],
        images: &[ResourceId],
        execute: ExecuteBatch<'_>,
    ) {
        let Some(timeline) = self.queues.get_mut(queue.0 as usize) else { return };
        let work = QueueWork::Present(waits.to_vec(), images.to_vec());
        timeline.blocked.push_back(BlockedSubmission { step, host: Arc::clone(&self.host), work });
        self.run_queues(execute);
    }

    /// Submits sparse binds to a queue.
    pub(crate) fn submit_sparse(&mut self, step: u32, queue: QueueId, work: SparseBindWork, execute: ExecuteBatch<'_>) {
        let Some(timeline) = self.queues.get_mut(queue.0 as usize) else { return };
        timeline.blocked.push_back(BlockedSubmission {
            step,
            host: Arc::clone(&self.host),
            work: QueueWork::Sparse(work),
        });
        self.run_queues(execute);
    }

    /// Executes work until every queue is empty or blocked.
    pub(crate) fn run_queues(&mut self, execute: ExecuteBatch<'_>) {
        loop {
            let is_ready = |it: &usize| self.queues[*it].blocked.front().is_some_and(|it| self.is_ready(&it.work));
            let Some(queue) = (0..self.queues.len()).find(is_ready) else { return self.remove_destroyed() };
            let Some(submission) = self.queues[queue].blocked.pop_front() else { return };
            match &submission.work {
                QueueWork::Batch(index, batch) => self.execute(queue as u8, &submission, *index, batch, execute),
                QueueWork::Fence(fence) => self.signal_fence(queue as u8, *fence),
                QueueWork::Present(waits, images) => self.present(submission.step, &submission.host, waits, images),
                QueueWork::Sparse(work) => self.bind_sparse(queue, &submission.host, work),
            }
        }
    }

    fn is_ready(&self, work: &QueueWork) -> bool {
        match work {
            QueueWork::Batch(_, batch) => batch.waits.iter().all(|it| self.is_signaled(it.point)),
            QueueWork::Fence(_) => true,
            QueueWork::Sparse(work) => work.waits.iter().all(|it| self.is_signaled(*it)),
            QueueWork::Present(waits, _) => {
                waits.iter().all(|it| self.is_signaled(SemaphorePoint { semaphore: *it, value: None }))
            }
        }
    }

    fn execute(
        &mut self,
        queue: u8,
        submission: &BlockedSubmission,
        index: u32,
        batch: &SubmitBatch,
        execute: ExecuteBatch<'_>,
    ) {
        let own = &mut self.queues[usize::from(queue)];
        // A submission makes host writes visible to the device (`synchronization-submission-host-writes`). Device writes
        // that the host waited for are not visible to the host by that.
        let CommonSets { device, device_usages, .. } = *COMMON_SETS;
        if own.merged_host.as_ref().is_none_or(|it| !Arc::ptr_eq(it, &submission.host)) {
            own.clock.apply_second_scope(&submission.host.first_scope, device, device_usages);
            own.clock.batches.merge(&submission.host.batches);
            own.merged_host = Some(Arc::clone(&submission.host));
        }
        let waited: Vec<(SemaphoreWait, CompletedWork)> =
            batch.waits.iter().filter_map(|it| Some((*it, self.take_semaphore(it.point)?))).collect();
        let own = &mut self.queues[usize::from(queue)];
        for (wait, completed) in &waited {
            let stages = scopes::destination_stages(wait.stages, own.flags);
            own.clock.apply_second_scope(&completed.first_scope, stages, scopes::usages_of(stages));
            // A wait with no stages has an empty second scope.
            if !stages.is_empty() {
                own.clock.merge_visible(&completed.host_visible);
                own.receive(stages, &completed.host_visible);
            }
            own.clock.batches.merge(&completed.batches);
        }
        execute(self, queue, submission.step, index, batch);
        self.tag += TAGS_PER_COMMAND;
        for signal in &batch.signals {
            self.signal(queue, *signal, &submission.host);
        }
        self.sweep_intervals(queue);
    }

    /// Binds memory to sparse resources. The scopes of a bind have no commands of the queue: its signals hand on what it
    /// waited for, and what the queue signaled before.
    fn bind_sparse(&mut self, queue: usize, host: &CompletedWork, work: &SparseBindWork) {
        let mut completed = host.clone();
        for point in &work.waits {
            completed.merge(&self.take_semaphore(*point).unwrap_or_default());
        }
        for bind in &work.binds {
            for range in self.addresses.bind(bind) {
                self.states.remove(range);
            }
            self.forget_freed_ranges();
        }
        completed.merge(&self.queues[queue].signals);
        if !work.signals.is_empty() || work.fence.is_some() {
            self.queues[queue].signals = completed.clone();
        }
        for point in &work.signals {
            self.set_semaphore(*point, completed.clone());
        }
        if let Some(slot) = work.fence.and_then(|it| self.fences.get_mut(it.0 as usize)) {
            *slot = Some(completed);
        }
    }

    /// The semaphores that block the first submission of a queue.
    pub(crate) fn unsignaled_waits(&self, queue: QueueId) -> Vec<SemaphorePoint> {
        let submission = self.queues.get(queue.0 as usize).and_then(|it| it.blocked.front());
        let points: Vec<SemaphorePoint> = match submission.map(|it| &it.work) {
            Some(QueueWork::Batch(_, batch)) => batch.waits.iter().map(|it| it.point).collect(),
            Some(QueueWork::Present(waits, _)) => {
                waits.iter().map(|it| SemaphorePoint { semaphore: *it, value: None }).collect()
            }
            Some(QueueWork::Sparse(work)) => work.waits.clone(),
            Some(QueueWork::Fence(_)) | None => Vec::new(),
        };
        points.into_iter().filter(|it| !self.is_signaled(*it)).collect()
    }

    /// The queue and the step of all blocked submissions.
    pub(crate) fn blocked_submissions(&self) -> impl Iterator<Item = (QueueId, u32)> {
        let queues = self.queues.iter().enumerate();
        queues.flat_map(|(queue, it)| it.blocked.iter().map(move |it| (QueueId(queue as u32), it.step)))
    }
}
