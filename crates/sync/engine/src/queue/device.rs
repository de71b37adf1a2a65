//! A device: its queues, what waits between them, and what happened to its memory.
//!
//! Work is looked at when a queue executes it: a batch that waits for a semaphore nobody has signaled yet is parked,
//! with the batches behind it. A command buffer is walked each time it is executed; what was recorded is small by
//! then, and nothing has to be summed up that could be summed up wrongly.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::{
    CommandLocation, FenceId, Hazard, ProgramLocation, QueueId, Region, ResourceId, SemaphoreId, SemaphorePoint,
    SemaphoreSignal, SemaphoreWait, SparseBind, SubmitBatch, SyncScope,
};

use rustc_hash::FxHashMap;

use crate::access::contents::ContentTracker;
use crate::access::range_state::{Conflict, RangeState};
use crate::access::usages::{PRESENTATION, StageSet};
use crate::dependency::batch_clock::BatchClock;
use crate::dependency::clocks::{FirstScope, QueueClock, Tag, VisibleWrites};
use crate::dependency::scopes;
use crate::dependency::scopes::{COMMON_SETS, CommonSets, ExpandedScope};
use crate::dependency::subpass_intervals::ClockQueries;
use crate::memory::addresses::AddressMap;
use crate::queue::tag_locations::TagLocations;
use crate::rules::Rules;

/// Tags of one command: two for what ends with it, itself, one for what its barrier does, and some for what begins
/// with it.
pub(crate) const TAGS_PER_COMMAND: Tag = 8;
const OWN_TAG: Tag = 2;

/// Ranges that are worth a look at what can go.
const SWEEP_MIN: usize = 4096;
/// Signals of one timeline that are told apart. Whoever waits for one that is older gets the next one that is known.
const SIGNALS_MAX: usize = 1024;
/// Stretches that are worth a look at what can go; more where there are many ranges to look at. In debug builds any, so
/// that every test tries it.
const INTERVALS_SWEEP_MIN: usize = if cfg!(debug_assertions) { 0 } else { 32 };
const INTERVALS_SWEEP_EXTRA_MAX: usize = 512;
const RANGES_PER_INTERVAL: usize = 1024;

/// Executes the command buffers of a batch: the device, the queue, step and index of the batch, and the batch.
pub(crate) type ExecuteBatch<'a> = &'a mut dyn FnMut(&mut EngineDevice, u8, u32, u32, &SubmitBatch);

pub(crate) struct EngineDevice {
    pub(crate) rules: Rules,
    pub(crate) queues: Vec<QueueTimeline>,
    /// Apart, so that another device may have it for a while.
    pub(crate) addresses: Box<AddressMap>,
    pub(crate) states: IntervalMap<RangeState>,
    pub(crate) events: Vec<TrackedEvent>,
    semaphores: Vec<TrackedSemaphore>,
    fences: Vec<Option<CompletedWork>>,
    host: Arc<CompletedWork>,
    /// What the host's own accesses come after.
    pub(crate) host_clock: QueueClock,
    tag: Tag,
    /// Images that were presented or acquired, numbered, with what their presentation came after.
    presented: FxHashMap<ResourceId, (usize, CompletedWork)>,
    /// Numbers of images that are gone. They are given again: tags only grow, so nothing that is known of the one
    /// before says anything of the next.
    free_presentation_slots: Vec<usize>,
    pub(crate) locations: TagLocations,
    /// Ranges that were left when they were looked at last.
    ranges_after_sweep: usize,
    pub(crate) hazards: Vec<Hazard>,
    /// What is known of contents, and what is wrong with them.
    pub(crate) contents: ContentTracker,
    /// Whether the addresses are another's, who wants to know what was moved.
    pub(crate) is_isolated: bool,
    pub(crate) moved_images: Vec<(ResourceId, Range<u64>, Vec<u64>)>,
    /// Whether anything sparse was used, which lies elsewhere after its next binding.
    pub(crate) has_used_sparse: bool,
}

/// A queue.
pub(crate) struct QueueTimeline {
    pub(crate) flags: u32,
    pub(crate) family: u32,
    pub(crate) clock: QueueClock,
    /// Scopes that were expanded already: programs use few, and use them again and again.
    expanded: FxHashMap<SyncScope, ExpandedScope>,
    /// What all signals so far have handed on together.
    signals: CompletedWork,
    /// What is visible to the host, as waits brought it to some stages.
    received_visible: Vec<(StageSet, VisibleWrites)>,
    blocked: VecDeque<BlockedSubmission>,
    /// What of the host's knowledge the clock has already.
    merged_host: Option<Arc<CompletedWork>>,
    /// Where rendering that was suspended began, and what was known inside of it.
    pub(crate) suspended: Option<(Tag, Box<QueueClock>)>,
    /// Stretches of the clock that were left when they were looked at last.
    intervals_after_sweep: usize,
}

impl QueueTimeline {
    pub(crate) fn kind(&self) -> lavascope_sync_ir::Queue {
        lavascope_sync_ir::Queue { family: self.family, flags: self.flags }
    }

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

/// Work that has not been executed, and what the host knew when it was submitted.
struct BlockedSubmission {
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

/// What one who waited knows to be over.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompletedWork {
    pub(crate) first_scope: FirstScope,
    /// What of it the host may look at.
    host_visible: VisibleWrites,
    pub(crate) batches: BatchClock,
}

impl CompletedWork {
    /// Whether it has all that another has.
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

    /// Forgets intervals that nobody asks for.
    fn retain_queried(&mut self, asked: &ClockQueries) {
        self.first_scope.retain_queried(asked);
        self.host_visible.retain_queried(asked);
    }
}

#[derive(Clone, Debug, Default)]
struct TrackedSemaphore {
    /// Of a binary semaphore that is signaled.
    binary: Option<CompletedWork>,
    /// Of a timeline, by value.
    values: BTreeMap<u64, CompletedWork>,
}

/// An event.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedEvent {
    pub(crate) set: Option<EventSetState>,
}

/// What an event's first scope was when it was set.
#[derive(Clone, Debug)]
pub(crate) struct EventSetState {
    pub(crate) tag: Tag,
    pub(crate) queue: u8,
    /// The clock at that time: a wait tells the accesses, and in version 1 the stages again.
    pub(crate) clock: QueueClock,
    pub(crate) stages: StageSet,
}

impl EngineDevice {
    pub(crate) fn new(queues: &[lavascope_sync_ir::Queue], events: u32, semaphores: u32, fences: u32) -> EngineDevice {
        let timeline = |queue: &lavascope_sync_ir::Queue| QueueTimeline {
            flags: queue.flags,
            family: queue.family,
            clock: QueueClock::default(),
            expanded: FxHashMap::default(),
            signals: CompletedWork::default(),
            received_visible: Vec::new(),
            blocked: VecDeque::new(),
            merged_host: None,
            suspended: None,
            intervals_after_sweep: 0,
        };
        EngineDevice {
            rules: Rules::default(),
            queues: queues.iter().map(timeline).collect(),
            addresses: Box::default(),
            states: IntervalMap::default(),
            events: vec![TrackedEvent::default(); events as usize],
            semaphores: vec![TrackedSemaphore::default(); semaphores as usize],
            fences: vec![None; fences as usize],
            host: Arc::default(),
            host_clock: QueueClock::default(),
            tag: TAGS_PER_COMMAND,
            presented: FxHashMap::default(),
            free_presentation_slots: Vec::new(),
            locations: TagLocations::default(),
            ranges_after_sweep: 0,
            hazards: Vec::new(),
            contents: ContentTracker::default(),
            is_isolated: false,
            moved_images: Vec::new(),
            has_used_sparse: false,
        }
    }

    /// One for the execution of a command buffer by itself, with a queue of this kind.
    pub(crate) fn isolated(queue: lavascope_sync_ir::Queue) -> EngineDevice {
        EngineDevice { is_isolated: true, ..EngineDevice::new(&[queue], 0, 0, 0) }
    }

    /// The same, for another execution.
    pub(crate) fn reset_isolated(&mut self, queue: lavascope_sync_ir::Queue) {
        let own = &mut self.queues[0];
        if own.flags != queue.flags {
            own.expanded.clear();
        }
        (own.flags, own.family, own.suspended) = (queue.flags, queue.family, None);
        own.clock.clear();
        own.intervals_after_sweep = 0;
        self.states.clear();
        self.events.clear();
        self.locations.clear();
        self.hazards.clear();
        self.contents.faults.clear();
        self.moved_images.clear();
        (self.tag, self.has_used_sparse) = (TAGS_PER_COMMAND, false);
    }

    /// There are as many events as with another, none of them set.
    pub(crate) fn grow_events(&mut self, other: &EngineDevice) {
        if self.events.len() < other.events.len() {
            self.events.resize(other.events.len(), TrackedEvent::default());
        }
    }

    /// A tag for a step of the host.
    pub(crate) fn step_tag(&mut self, step: u32) -> Tag {
        self.locations.begin(self.tag + TAGS_PER_COMMAND, ProgramLocation::Step(step));
        self.next_tag()
    }

    /// The commands from this one on follow each other. Gives the first of its tags.
    pub(crate) fn begin_run(&mut self, at: &CommandLocation) -> Tag {
        let first = self.tag + TAGS_PER_COMMAND;
        self.locations.begin(first, ProgramLocation::Command(at.clone()));
        first
    }

    /// A tag for the next command.
    pub(crate) fn next_tag(&mut self) -> Tag {
        self.tag += TAGS_PER_COMMAND;
        self.tag + OWN_TAG
    }

    /// Nothing is done for some commands.
    pub(crate) fn skip_commands(&mut self, commands: usize) {
        self.tag += commands as Tag * TAGS_PER_COMMAND;
    }

    /// The tag of the last command.
    pub(crate) fn last_tag(&self) -> Tag {
        self.tag + OWN_TAG
    }

    /// Forgets what is over and cannot be part of a hazard any more: all that the host knows of, and may look at.
    /// Whatever is submitted from now on comes after it.
    pub(crate) fn forget_finished(&mut self) {
        if self.queues.iter().all(|it| it.blocked.is_empty()) {
            let (first_scope, clock) = (&self.host.first_scope, &self.host_clock);
            self.states.retain(|it| !it.is_finished(first_scope, clock));
        }
        self.ranges_after_sweep = self.states.len();
    }

    /// Forgets what nobody can ask for any more, once enough has come together.
    pub(crate) fn sweep(&mut self) {
        if self.states.len() > 2 * self.ranges_after_sweep + SWEEP_MIN {
            self.forget_finished();
        }
        if self.locations.needs_sweep(self.states.len()) {
            let states = self.states.iter().flat_map(|(_, state)| state.tags());
            let mut tags: Vec<Tag> = states.chain(self.contents.tags()).collect();
            tags.sort_unstable();
            self.locations.retain_tags(&tags);
        }
    }

    /// Forgets intervals that nobody can ask a queue for any more, once enough have come together. Not inside of a
    /// subpass, whose outside is elsewhere.
    pub(crate) fn sweep_intervals(&mut self, queue: u8) {
        let own = &mut self.queues[usize::from(queue)];
        let more = (self.states.len() / RANGES_PER_INTERVAL).min(INTERVALS_SWEEP_EXTRA_MAX);
        let count = |clock: &QueueClock, host: &QueueClock| clock.interval_count() + host.interval_count();
        if count(&own.clock, &self.host_clock) <= 2 * own.intervals_after_sweep + INTERVALS_SWEEP_MIN + more {
            return;
        }
        let asks = self.states.iter().flat_map(|(_, state)| state.clock_queries());
        let asked = ClockQueries::new(asks.collect());
        own.clock.retain_queried(&asked);
        own.signals.retain_queried(&asked);
        own.received_visible.iter_mut().for_each(|it| it.1.retain_queried(&asked));
        self.host_clock.retain_queried(&asked);
        Arc::make_mut(&mut self.host).retain_queried(&asked);
        own.intervals_after_sweep = count(&own.clock, &self.host_clock);
    }

    /// Stretches that the clocks have.
    #[cfg(test)]
    pub(crate) fn interval_count(&self) -> usize {
        self.queues.iter().map(|it| it.clock.interval_count()).sum::<usize>() + self.host_clock.interval_count()
    }

    /// Hands batches to a queue, and executes whatever can be executed.
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

    /// Hands images to a queue, which hands them to the presentation engine in its turn.
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

    /// Hands bindings of memory to a queue.
    pub(crate) fn submit_sparse(&mut self, step: u32, queue: QueueId, work: SparseBindWork, execute: ExecuteBatch<'_>) {
        let Some(timeline) = self.queues.get_mut(queue.0 as usize) else { return };
        timeline.blocked.push_back(BlockedSubmission {
            step,
            host: Arc::clone(&self.host),
            work: QueueWork::Sparse(work),
        });
        self.run_queues(execute);
    }

    /// Changes where sparse resources lie. Its scopes have nothing of the queue's commands: what it waited for it hands
    /// on, with what the queue has signaled before.
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

    /// Executes work until every queue is empty or waits.
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

    /// What was destroyed goes, unless something waits that may use it.
    pub(crate) fn remove_destroyed(&mut self) {
        if self.queues.iter().all(|it| it.blocked.is_empty()) {
            self.addresses.remove_destroyed();
            self.forget_freed_ranges();
        }
    }

    /// Nothing is known at addresses that are given to something else.
    pub(crate) fn forget_freed_ranges(&mut self) {
        for range in self.addresses.take_freed_ranges() {
            self.states.remove(range);
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

    fn is_signaled(&self, point: SemaphorePoint) -> bool {
        let Some(semaphore) = self.semaphores.get(point.semaphore.0 as usize) else { return true };
        match point.value {
            None => semaphore.binary.is_some(),
            Some(value) => value == 0 || semaphore.values.range(value..).next().is_some(),
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
        // What the host knows is visible to the device, not to the host: that takes a barrier.
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
            // A wait at no stage brings nothing to anybody.
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

    fn signal_fence(&mut self, queue: u8, fence: FenceId) {
        let completed = self.completed_by_queue(queue);
        self.queues[usize::from(queue)].signals = completed.clone();
        if let Some(slot) = self.fences.get_mut(fence.0 as usize) {
            *slot = Some(completed);
        }
    }

    /// What a wait gets, and for a binary semaphore takes.
    fn take_semaphore(&mut self, point: SemaphorePoint) -> Option<CompletedWork> {
        let semaphore = self.semaphores.get_mut(point.semaphore.0 as usize)?;
        match point.value {
            None => semaphore.binary.take(),
            Some(0) => None,
            Some(value) => semaphore.values.range(value..).next().map(|it| it.1.clone()),
        }
    }

    fn signal(&mut self, queue: u8, signal: SemaphoreSignal, host: &CompletedWork) {
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

    fn set_semaphore(&mut self, point: SemaphorePoint, completed: CompletedWork) {
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

    /// Everything that a queue has done, and all that it knows of others.
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

    fn merge_into_host(&mut self, completed: &CompletedWork) {
        let host = Arc::make_mut(&mut self.host);
        host.merge(completed);
        host.first_scope.forget_covered();
        self.forget_signals();
        self.host_clock.apply_execution_dependency(&completed.first_scope, COMMON_SETS.host);
        self.host_clock.merge_visible(&completed.host_visible);
        self.host_clock.batches.merge(&completed.batches);
    }

    /// Forgets what timelines were signaled with, as far as the host knows it: whoever waits for it is submitted later,
    /// and knows it by that. A batch that is parked already may not.
    fn forget_signals(&mut self) {
        if self.queues.iter().any(|it| !it.blocked.is_empty()) {
            return;
        }
        let host = &self.host;
        for semaphore in &mut self.semaphores {
            let completed = semaphore.values.iter().rev().find(|it| host.covers(it.1)).map(|it| *it.0);
            let Some(last) = completed.filter(|it| semaphore.values.range(..it).next().is_some()) else { continue };
            semaphore.values = semaphore.values.split_off(&last);
            semaphore.values.insert(last, CompletedWork::default());
        }
    }

    /// Signals of timelines that can be waited for.
    #[cfg(test)]
    pub(crate) fn known_signals(&self) -> usize {
        self.semaphores.iter().map(|it| it.values.len()).sum()
    }

    /// There is an event of this number, which is not set.
    pub(crate) fn add_event(&mut self, id: usize) {
        *get_or_grow(&mut self.events, id) = TrackedEvent::default();
    }

    /// There is a semaphore of this number, which is not signaled.
    pub(crate) fn add_semaphore(&mut self, id: usize) {
        *get_or_grow(&mut self.semaphores, id) = TrackedSemaphore::default();
    }

    /// There is a fence of this number, which is not signaled.
    pub(crate) fn add_fence(&mut self, id: usize) {
        *get_or_grow(&mut self.fences, id) = None;
    }

    /// The number of the host among the queues.
    pub(crate) fn host_queue(&self) -> u8 {
        self.queues.len() as u8
    }

    /// The number among the queues of the presentation engine's dealings with an image: each is by itself.
    pub(crate) fn presentation_queue(&mut self, image: ResourceId) -> u8 {
        let (next, free) = (self.presented.len(), &mut self.free_presentation_slots);
        let new = || (free.pop().unwrap_or(next), CompletedWork::default());
        let slot = self.presented.entry(image).or_insert_with(new).0;
        // More images than that share the last number.
        (self.queues.len() + 1 + slot).min(usize::from(u8::MAX)) as u8
    }

    /// An image is no more, nor are its ways through the presentation engine.
    pub(crate) fn forget_presented(&mut self, image: ResourceId) {
        self.free_presentation_slots.extend(self.presented.remove(&image).map(|it| it.0));
    }

    /// The host accessed something: what is submitted from now on comes after it, and sees what it wrote.
    pub(crate) fn record_host_access(&mut self, tag: Tag) {
        let first_scope = FirstScope::from_queue(self.host_queue(), tag, COMMON_SETS.host, COMMON_SETS.host_usages);
        let queue = self.host_queue();
        let host = Arc::make_mut(&mut self.host);
        host.first_scope.merge(&first_scope);
        host.batches.raise(queue, tag);
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

    /// The presentation engine is done with an image at `tag`, and tells so.
    pub(crate) fn signal_acquired(
        &mut self,
        image: ResourceId,
        tag: Tag,
        semaphore: Option<SemaphoreId>,
        fence: Option<FenceId>,
    ) {
        let queue = self.presentation_queue(image);
        let mut stages = StageSet::default();
        stages.add(PRESENTATION);
        let first_scope = FirstScope::from_queue(queue, tag, stages, scopes::usages_of(stages));
        let mut completed = CompletedWork { first_scope, ..CompletedWork::default() };
        completed.batches.raise(queue, tag);
        completed.merge(self.presented.get(&image).map_or(&CompletedWork::default(), |it| &it.1));
        if let Some(slot) = fence.and_then(|it| self.fences.get_mut(it.0 as usize)) {
            *slot = Some(completed.clone());
        }
        if let Some(semaphore) = semaphore {
            self.set_semaphore(SemaphorePoint { semaphore, value: None }, completed);
        }
    }

    /// What an image's way through the presentation engine comes after.
    pub(crate) fn merge_presented(&mut self, image: ResourceId, completed: &CompletedWork) {
        if let Some(own) = self.presented.get_mut(&image) {
            own.1.merge(completed);
        }
    }

    /// What a present comes after: all that its semaphores hand on.
    pub(crate) fn take_present_waits(&mut self, waits: &[SemaphoreId]) -> CompletedWork {
        let mut completed = CompletedWork::default();
        for semaphore in waits {
            completed
                .merge(&self.take_semaphore(SemaphorePoint { semaphore: *semaphore, value: None }).unwrap_or_default());
        }
        completed
    }

    /// The addresses of a part of a resource that is about to be used.
    pub(crate) fn ranges(&mut self, resource: ResourceId, region: &Region) -> Vec<Range<u64>> {
        if self.addresses.needs_component_planes(resource, region) {
            let (old, planes) = self.addresses.add_component_planes(resource);
            self.move_states(resource, &old, &planes);
            self.moved_images.extend(self.is_isolated.then_some((resource, old, planes)));
        }
        self.has_used_sparse |= self.addresses.is_sparse(resource);
        self.addresses.ranges(resource, region)
    }

    /// What was at some addresses is at others from now on, once at each.
    pub(crate) fn move_states(&mut self, resource: ResourceId, old: &Range<u64>, planes: &[u64]) {
        let states: Vec<(Range<u64>, RangeState)> =
            self.states.overlapping(old.clone()).map(|(range, state)| (range, state.clone())).collect();
        for (range, state) in states {
            for plane in planes {
                let (start, end) = (plane + range.start - old.start, plane + range.end - old.start);
                self.states.update(start..end, |_, it| *it = Some(state.clone()));
            }
        }
        self.states.remove(old.clone());
        // What is visible through it of writes by other names is told by its addresses.
        for other in self.addresses.aliases_of(resource) {
            self.states.update(self.addresses.whole(other), |_, state| {
                if let Some(state) = state {
                    state.move_alias_addresses(old, planes);
                }
            });
        }
    }

    /// Keeps conflicts of an access to a resource.
    pub(crate) fn report(&mut self, tag: Tag, resource: ResourceId, conflicts: Vec<(Range<u64>, Vec<Conflict>)>) {
        let Some(at) = Some(tag).filter(|_| !conflicts.is_empty()).and_then(|it| self.locations.get(it)) else {
            return;
        };
        let first = self.hazards.len();
        for (range, conflicts) in conflicts {
            for conflict in conflicts {
                let Some(prior) = self.locations.get(conflict.prior) else { continue };
                for region in self.addresses.regions(resource, &range) {
                    let found = Hazard { kind: conflict.kind, at: at.clone(), prior: prior.clone(), resource, region };
                    push_or_merge_hazard(&mut self.hazards, first, found);
                }
            }
        }
    }

    /// What the first work that is parked on a queue waits for, as far as nobody has signaled it.
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

    /// Batches that wait for semaphores which nobody signals.
    pub(crate) fn blocked_submissions(&self) -> impl Iterator<Item = (QueueId, u32)> {
        let queues = self.queues.iter().enumerate();
        queues.flat_map(|(queue, it)| it.blocked.iter().map(move |it| (QueueId(queue as u32), it.step)))
    }
}

/// Adds a hazard; the same one on other components of the same texels becomes one with it.
fn push_or_merge_hazard(all: &mut Vec<Hazard>, first: usize, new: Hazard) {
    for own in &mut all[first..] {
        let is_same = (own.kind, &own.prior) == (new.kind, &new.prior);
        if let (true, Region::Image(left), Region::Image(right)) = (is_same, &mut own.region, &new.region) {
            let is_there = (left.aspects, &left.mips, &left.layers, left.area)
                == (right.aspects, &right.mips, &right.layers, right.area);
            if is_there {
                left.components.0 |= right.components.0;
                return;
            }
        }
    }
    all.push(new);
}

/// The place of a number in a list, which grows as needed.
pub(crate) fn get_or_grow<T: Default>(all: &mut Vec<T>, id: usize) -> &mut T {
    if all.len() <= id {
        all.resize_with(id + 1, T::default);
    }
    &mut all[id]
}
