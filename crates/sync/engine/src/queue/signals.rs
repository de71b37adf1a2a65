//! What semaphores, fences and events hand on from the work that signals them to the work that waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use lavascope_sync_ir::{FenceId, QueueId, SemaphorePoint, SemaphoreSignal};

use crate::access::usages::StageSet;
use crate::dependency::batch_clock::BatchClock;
use crate::dependency::clocks::{FirstScope, QueueClock, Tag, VisibleWrites};
use crate::dependency::scopes;
use crate::dependency::scopes::COMMON_SETS;
use crate::dependency::subpass_intervals::ClockQueries;
use crate::queue::device::{EngineDevice, TAGS_PER_COMMAND, get_or_grow};
use crate::queue::submissions::QueueTimeline;

/// How many signals of a timeline semaphore are remembered. A wait for an older value gets the oldest one that is
/// remembered.
const SIGNALS_MAX: usize = 1024;

/// The work that has completed for one who waited: for a queue, or for the host.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompletedWork {
    pub(crate) first_scope: FirstScope,
    /// The writes of that work that are visible to the host.
    pub(super) host_visible: VisibleWrites,
    pub(crate) batches: BatchClock,
}

impl CompletedWork {
    /// Whether this has all work of another.
    fn covers(&self, other: &CompletedWork) -> bool {
        self.first_scope.covers(&other.first_scope)
            && self.host_visible.covers(&other.host_visible)
            && self.batches.covers(&other.batches)
    }

    pub(crate) fn merge(&mut self, other: &CompletedWork) {
        self.first_scope.merge(&other.first_scope);
        self.host_visible.merge(&other.host_visible);
        self.batches.merge(&other.batches);
    }

    /// Removes intervals that no query can reach.
    pub(super) fn retain_queried(&mut self, queries: &ClockQueries) {
        self.first_scope.retain_queried(queries);
        self.host_visible.retain_queried(queries);
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct TrackedSemaphore {
    /// For a binary semaphore, if it is signaled.
    binary: Option<CompletedWork>,
    /// For a timeline semaphore, by value.
    values: BTreeMap<u64, CompletedWork>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedEvent {
    pub(crate) set: Option<EventSetState>,
}

/// How an event was set.
#[derive(Clone, Debug)]
pub(crate) struct EventSetState {
    pub(crate) tag: Tag,
    pub(crate) queue: u8,
    /// The clock of the queue at that time. The first scopes are made from it at the wait, because the wait gives the
    /// access masks, and in version 1 the stages again.
    pub(crate) clock: QueueClock,
    pub(crate) stages: StageSet,
}

impl EngineDevice {
    /// Adds an event that is not set.
    pub(crate) fn add_event(&mut self, id: usize) {
        *get_or_grow(&mut self.events, id) = TrackedEvent::default();
    }

    /// Adds a semaphore that is not signaled.
    pub(crate) fn add_semaphore(&mut self, id: usize) {
        *get_or_grow(&mut self.semaphores, id) = TrackedSemaphore::default();
    }

    /// Adds a fence that is not signaled.
    pub(crate) fn add_fence(&mut self, id: usize) {
        *get_or_grow(&mut self.fences, id) = None;
    }

    pub(super) fn is_signaled(&self, point: SemaphorePoint) -> bool {
        let Some(semaphore) = self.semaphores.get(point.semaphore.0 as usize) else { return true };
        match point.value {
            None => semaphore.binary.is_some(),
            Some(value) => value == 0 || semaphore.values.range(value..).next().is_some(),
        }
    }

    /// What a wait gets from a semaphore. The wait unsignals a binary semaphore.
    pub(super) fn take_semaphore(&mut self, point: SemaphorePoint) -> Option<CompletedWork> {
        let semaphore = self.semaphores.get_mut(point.semaphore.0 as usize)?;
        match point.value {
            None => semaphore.binary.take(),
            Some(0) => None,
            Some(value) => semaphore.values.range(value..).next().map(|it| it.1.clone()),
        }
    }

    pub(super) fn signal(&mut self, queue: u8, signal: SemaphoreSignal, host: &CompletedWork) {
        let tag = self.tag;
        let own = &mut self.queues[usize::from(queue)];
        let stages = scopes::signal_stages(signal.stages, own.flags);
        let mut first_scope = own.clock.first_scope(queue, tag, stages, scopes::usages_of(stages));
        first_scope.merge(&own.signals.first_scope);
        first_scope.forget_covered();
        own.signals.first_scope = first_scope.clone();
        first_scope.merge(&host.first_scope);
        let is_for_host = stages.0 & COMMON_SETS.host.0 != 0;
        let mut host =
            if is_for_host { own.clock.visible_to(COMMON_SETS.host_usages) } else { VisibleWrites::default() };
        for (_, seen) in own.received_visible.iter().filter(|it| it.0.0 & stages.0 != 0) {
            host.merge(seen);
        }
        host.merge(&own.signals.host_visible);
        own.signals.host_visible = host.clone();
        let mut batches = own.clock.batches.clone();
        batches.raise(queue, tag);
        own.signals.batches.merge(&batches);
        self.set_semaphore(signal.point, CompletedWork { first_scope, host_visible: host, batches });
    }

    pub(super) fn set_semaphore(&mut self, point: SemaphorePoint, completed: CompletedWork) {
        let Some(semaphore) = self.semaphores.get_mut(point.semaphore.0 as usize) else { return };
        match point.value {
            None => semaphore.binary = Some(completed),
            Some(value) => {
                semaphore.values.insert(value, completed);
                if semaphore.values.len() > SIGNALS_MAX {
                    semaphore.values.pop_first();
                }
            }
        }
    }

    pub(super) fn signal_fence(&mut self, queue: u8, fence: FenceId) {
        let completed = self.completed_by_queue(queue);
        self.queues[usize::from(queue)].signals = completed.clone();
        if let Some(slot) = self.fences.get_mut(fence.0 as usize) {
            *slot = Some(completed);
        }
    }

    /// All work of a queue so far, and all that it knows of other queues.
    fn completed_by_queue(&self, queue: u8) -> CompletedWork {
        let QueueTimeline { clock, signals, .. } = &self.queues[usize::from(queue)];
        let first_scope = clock.first_scope(queue, self.tag, COMMON_SETS.stages, COMMON_SETS.usages);
        let mut batches = clock.batches.clone();
        batches.raise(queue, self.tag);
        let mut completed =
            CompletedWork { first_scope, host_visible: clock.visible_to(COMMON_SETS.host_usages), batches };
        completed.merge(signals);
        completed.first_scope.forget_covered();
        completed
    }

    pub(crate) fn wait_fences(&mut self, fences: &[FenceId]) {
        for fence in fences {
            let index = fence.0 as usize;
            if let Some(completed) = self.fences.get_mut(index).and_then(Option::take) {
                self.merge_into_host(&completed);
                self.fences[index] = Some(completed);
            }
        }
    }

    pub(crate) fn reset_fences(&mut self, fences: &[FenceId]) {
        for fence in fences {
            if let Some(slot) = self.fences.get_mut(fence.0 as usize) {
                *slot = None;
            }
        }
    }

    pub(crate) fn queue_idle(&mut self, queue: QueueId) {
        if (queue.0 as usize) < self.queues.len() {
            let completed = self.completed_by_queue(queue.0 as u8);
            self.merge_into_host(&completed);
        }
    }

    pub(crate) fn device_idle(&mut self) {
        (0..self.queues.len() as u32).for_each(|it| self.queue_idle(QueueId(it)));
    }

    pub(crate) fn host_wait_semaphores(&mut self, points: &[SemaphorePoint]) {
        for point in points {
            let semaphore = self.semaphores.get(point.semaphore.0 as usize);
            let completed = semaphore.and_then(|it| it.values.range(point.value?..).next().map(|it| it.1.clone()));
            if let Some(completed) = completed {
                self.merge_into_host(&completed);
            }
        }
    }

    pub(crate) fn host_signal_semaphore(&mut self, point: SemaphorePoint) {
        let mut completed = CompletedWork::clone(&self.host);
        completed.batches.raise(self.host_queue(), self.tag + TAGS_PER_COMMAND);
        self.set_semaphore(point, completed);
    }

    fn merge_into_host(&mut self, completed: &CompletedWork) {
        let host = Arc::make_mut(&mut self.host);
        host.merge(completed);
        host.first_scope.forget_covered();
        self.forget_signals();
        self.host_clock.apply_execution_dependency(&completed.first_scope, COMMON_SETS.host);
        self.host_clock.merge_visible(&completed.host_visible);
        self.host_clock.batches.merge(&completed.batches);
    }

    /// Empties the signals of timeline semaphores that the host knows: a submission that waits for one comes later, and
    /// gets the same from the host. A submission that is blocked already may not know it.
    fn forget_signals(&mut self) {
        if self.queues.iter().any(|it| !it.blocked.is_empty()) {
            return;
        }
        let host = &self.host;
        for semaphore in &mut self.semaphores {
            let newest = semaphore.values.iter().rev().find(|it| host.covers(it.1)).map(|it| *it.0);
            let Some(last) = newest.filter(|it| semaphore.values.range(..it).next().is_some()) else { continue };
            semaphore.values = semaphore.values.split_off(&last);
            semaphore.values.insert(last, CompletedWork::default());
        }
    }

    /// The number of remembered signals of timeline semaphores.
    #[cfg(test)]
    pub(crate) fn known_signals(&self) -> usize {
        self.semaphores.iter().map(|it| it.values.len()).sum()
    }
}
