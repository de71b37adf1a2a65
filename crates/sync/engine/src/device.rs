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
    At, Batch, FenceId, Found, Place, Point, QueueId, Region, ResourceId, Scope, SemaphoreId, Signal, SparseBind, Wait,
};

use rustc_hash::FxHashMap;

use crate::address::Addresses;
use crate::batches::Batches;
use crate::clock::{Carry, Clock, Seen, Tag};
use crate::contents::Contents;
use crate::places::Places;
use crate::rules::Rules;
use crate::scope::{self, EVERYTHING, Everything, Expanded};
use crate::state::{Conflict, State};
use crate::stretch::Asked;
use crate::usage::{PRESENTATION, Stages};

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
const STRETCHES_MIN: usize = if cfg!(debug_assertions) { 0 } else { 32 };
const STRETCHES_MORE_MAX: usize = 512;
const RANGES_PER_STRETCH: usize = 1024;

/// Executes the command buffers of a batch: the device, the queue, step and index of the batch, and the batch.
pub(crate) type Execute<'a> = &'a mut dyn FnMut(&mut Device, u8, u32, u32, &Batch);

pub(crate) struct Device {
    pub(crate) rules: Rules,
    pub(crate) queues: Vec<Timeline>,
    /// Apart, so that another device may have it for a while.
    pub(crate) addresses: Box<Addresses>,
    pub(crate) states: IntervalMap<State>,
    pub(crate) events: Vec<Event>,
    semaphores: Vec<Semaphore>,
    fences: Vec<Option<Known>>,
    host: Arc<Known>,
    /// What the host's own accesses come after.
    pub(crate) host_clock: Clock,
    tag: Tag,
    /// Images that were presented or acquired, numbered, with what their presentation came after.
    presented: FxHashMap<ResourceId, (usize, Known)>,
    /// Numbers of images that are gone. They are given again: tags only grow, so nothing that is known of the one
    /// before says anything of the next.
    unpresented: Vec<usize>,
    pub(crate) places: Places,
    /// Ranges that were left when they were looked at last.
    kept: usize,
    pub(crate) found: Vec<Found>,
    /// What is known of contents, and what is wrong with them.
    pub(crate) contents: Contents,
    /// Whether the addresses are another's, who wants to know what was moved.
    pub(crate) is_alone: bool,
    pub(crate) moved: Vec<(ResourceId, Range<u64>, Vec<u64>)>,
    /// Whether anything sparse was used, which lies elsewhere after its next binding.
    pub(crate) has_used_sparse: bool,
}

/// A queue.
pub(crate) struct Timeline {
    pub(crate) flags: u32,
    pub(crate) family: u32,
    pub(crate) clock: Clock,
    /// Scopes that were expanded already: programs use few, and use them again and again.
    expanded: FxHashMap<Scope, Expanded>,
    /// What all signals so far have handed on together.
    signals: Known,
    /// What is visible to the host, as waits brought it to some stages.
    received: Vec<(Stages, Seen)>,
    parked: VecDeque<Parked>,
    /// What of the host's knowledge the clock has already.
    host: Option<Arc<Known>>,
    /// Where rendering that was suspended began, and what was known inside of it.
    pub(crate) suspended: Option<(Tag, Box<Clock>)>,
    /// Stretches of the clock that were left when they were looked at last.
    stretches_kept: usize,
}

impl Timeline {
    pub(crate) fn kind(&self) -> lavascope_sync_ir::Queue {
        lavascope_sync_ir::Queue { family: self.family, flags: self.flags }
    }

    pub(crate) fn expand(&mut self, scope: Scope) -> Expanded {
        *self.expanded.entry(scope).or_insert_with(|| Expanded::new(scope, self.flags))
    }

    fn receive(&mut self, stages: Stages, seen: &Seen) {
        match self.received.iter_mut().find(|it| it.0 == stages) {
            Some(own) => own.1.raise_all(seen),
            None => self.received.push((stages, seen.clone())),
        }
    }
}

/// Work that has not been executed, and what the host knew when it was submitted.
struct Parked {
    step: u32,
    host: Arc<Known>,
    work: Work,
}

enum Work {
    Batch(u32, Batch),
    Fence(FenceId),
    Present(Vec<SemaphoreId>, Vec<ResourceId>),
    Sparse(SparseWork),
}

/// `vkQueueBindSparse`.
pub(crate) struct SparseWork {
    pub(crate) waits: Vec<Point>,
    pub(crate) binds: Vec<SparseBind>,
    pub(crate) signals: Vec<Point>,
    pub(crate) fence: Option<FenceId>,
}

/// What one who waited knows to be over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) carry: Carry,
    /// What of it the host may look at.
    host: Seen,
    pub(crate) batches: Batches,
}

impl Known {
    /// Whether it has all that another has.
    fn covers(&self, other: &Known) -> bool {
        self.carry.covers(&other.carry) && self.host.covers(&other.host) && self.batches.covers(&other.batches)
    }

    pub(crate) fn raise_all(&mut self, other: &Known) {
        self.carry.raise_all(&other.carry);
        self.host.raise_all(&other.host);
        self.batches.raise_all(&other.batches);
    }

    /// Forgets stretches that nobody asks for.
    fn keep_only(&mut self, asked: &Asked) {
        self.carry.keep_only(asked);
        self.host.keep_only(asked);
    }
}

#[derive(Clone, Debug, Default)]
struct Semaphore {
    /// Of a binary semaphore that is signaled.
    binary: Option<Known>,
    /// Of a timeline, by value.
    values: BTreeMap<u64, Known>,
}

/// An event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Event {
    pub(crate) set: Option<SetAt>,
}

/// What an event's first scope was when it was set.
#[derive(Clone, Debug)]
pub(crate) struct SetAt {
    pub(crate) tag: Tag,
    pub(crate) queue: u8,
    /// The clock at that time: a wait tells the accesses, and in version 1 the stages again.
    pub(crate) clock: Clock,
    pub(crate) stages: Stages,
}

impl Device {
    pub(crate) fn new(queues: &[lavascope_sync_ir::Queue], events: u32, semaphores: u32, fences: u32) -> Device {
        let timeline = |it: &lavascope_sync_ir::Queue| Timeline {
            flags: it.flags,
            family: it.family,
            clock: Clock::default(),
            expanded: FxHashMap::default(),
            signals: Known::default(),
            received: Vec::new(),
            parked: VecDeque::new(),
            host: None,
            suspended: None,
            stretches_kept: 0,
        };
        Device {
            rules: Rules::default(),
            queues: queues.iter().map(timeline).collect(),
            addresses: Box::default(),
            states: IntervalMap::default(),
            events: vec![Event::default(); events as usize],
            semaphores: vec![Semaphore::default(); semaphores as usize],
            fences: vec![None; fences as usize],
            host: Arc::default(),
            host_clock: Clock::default(),
            tag: TAGS_PER_COMMAND,
            presented: FxHashMap::default(),
            unpresented: Vec::new(),
            places: Places::default(),
            kept: 0,
            found: Vec::new(),
            contents: Contents::default(),
            is_alone: false,
            moved: Vec::new(),
            has_used_sparse: false,
        }
    }

    /// One for the execution of a command buffer by itself, with a queue of this kind.
    pub(crate) fn alone(queue: lavascope_sync_ir::Queue) -> Device {
        Device { is_alone: true, ..Device::new(&[queue], 0, 0, 0) }
    }

    /// The same, for another execution.
    pub(crate) fn clear_alone(&mut self, queue: lavascope_sync_ir::Queue) {
        let own = &mut self.queues[0];
        if own.flags != queue.flags {
            own.expanded.clear();
        }
        (own.flags, own.family, own.suspended) = (queue.flags, queue.family, None);
        own.clock.clear();
        own.stretches_kept = 0;
        self.states.clear();
        self.events.clear();
        self.places.clear();
        self.found.clear();
        self.contents.found.clear();
        self.moved.clear();
        (self.tag, self.has_used_sparse) = (TAGS_PER_COMMAND, false);
    }

    /// There are as many events as with another, none of them set.
    pub(crate) fn grow_events(&mut self, other: &Device) {
        if self.events.len() < other.events.len() {
            self.events.resize(other.events.len(), Event::default());
        }
    }

    /// A tag for a step of the host.
    pub(crate) fn step_tag(&mut self, step: u32) -> Tag {
        self.places.begin(self.tag + TAGS_PER_COMMAND, Place::Step(step));
        self.next_tag()
    }

    /// The commands from this one on follow each other. Gives the first of its tags.
    pub(crate) fn begin_run(&mut self, at: &At) -> Tag {
        let first = self.tag + TAGS_PER_COMMAND;
        self.places.begin(first, Place::Command(at.clone()));
        first
    }

    /// A tag for the next command.
    pub(crate) fn next_tag(&mut self) -> Tag {
        self.tag += TAGS_PER_COMMAND;
        self.tag + OWN_TAG
    }

    /// Nothing is done for some commands.
    pub(crate) fn skip(&mut self, commands: usize) {
        self.tag += commands as Tag * TAGS_PER_COMMAND;
    }

    /// The tag of the last command.
    pub(crate) fn last_tag(&self) -> Tag {
        self.tag + OWN_TAG
    }

    /// Forgets what is over and cannot be part of a hazard any more: all that the host knows of, and may look at.
    /// Whatever is submitted from now on comes after it.
    pub(crate) fn forget_known(&mut self) {
        if self.queues.iter().all(|it| it.parked.is_empty()) {
            let (carry, clock) = (&self.host.carry, &self.host_clock);
            self.states.retain(|it| !it.is_over(carry, clock));
        }
        self.kept = self.states.len();
    }

    /// Forgets what nobody can ask for any more, once enough has come together.
    pub(crate) fn sweep(&mut self) {
        if self.states.len() > 2 * self.kept + SWEEP_MIN {
            self.forget_known();
        }
        if self.places.is_grown(self.states.len()) {
            let states = self.states.iter().flat_map(|(_, state)| state.tags());
            let mut tags: Vec<Tag> = states.chain(self.contents.tags()).collect();
            tags.sort_unstable();
            self.places.keep_only(&tags);
        }
    }

    /// Forgets stretches that nobody can ask a queue for any more, once enough have come together. Not inside of a
    /// subpass, whose outside is elsewhere.
    pub(crate) fn sweep_stretches(&mut self, queue: u8) {
        let own = &mut self.queues[usize::from(queue)];
        let more = (self.states.len() / RANGES_PER_STRETCH).min(STRETCHES_MORE_MAX);
        let count = |clock: &Clock, host: &Clock| clock.stretches() + host.stretches();
        if count(&own.clock, &self.host_clock) <= 2 * own.stretches_kept + STRETCHES_MIN + more {
            return;
        }
        let asks = self.states.iter().flat_map(|(_, state)| state.asks());
        let asked = Asked::new(asks.collect());
        own.clock.keep_only(&asked);
        own.signals.keep_only(&asked);
        own.received.iter_mut().for_each(|it| it.1.keep_only(&asked));
        self.host_clock.keep_only(&asked);
        Arc::make_mut(&mut self.host).keep_only(&asked);
        own.stretches_kept = count(&own.clock, &self.host_clock);
    }

    /// Stretches that the clocks have.
    #[cfg(test)]
    pub(crate) fn stretches(&self) -> usize {
        self.queues.iter().map(|it| it.clock.stretches()).sum::<usize>() + self.host_clock.stretches()
    }

    /// Hands batches to a queue, and executes whatever can be executed.
    pub(crate) fn submit(
        &mut self,
        step: u32,
        queue: QueueId,
        batches: &[Batch],
        fence: Option<FenceId>,
        execute: Execute<'_>,
    ) {
        let Some(timeline) = self.queues.get_mut(queue.0 as usize) else { return };
        let batches = batches.iter().enumerate().map(|(index, batch)| Work::Batch(index as u32, batch.clone()));
        for work in batches.chain(fence.map(Work::Fence)) {
            timeline.parked.push_back(Parked { step, host: Arc::clone(&self.host), work });
        }
        self.run(execute);
    }

    /// Hands images to a queue, which hands them to the presentation engine in its turn.
    pub(crate) fn submit_present(
        &mut self,
        step: u32,
        queue: QueueId,
        waits: &[SemaphoreId],
        images: &[ResourceId],
        execute: Execute<'_>,
    ) {
        let Some(timeline) = self.queues.get_mut(queue.0 as usize) else { return };
        let work = Work::Present(waits.to_vec(), images.to_vec());
        timeline.parked.push_back(Parked { step, host: Arc::clone(&self.host), work });
        self.run(execute);
    }

    /// Hands bindings of memory to a queue.
    pub(crate) fn submit_sparse(&mut self, step: u32, queue: QueueId, work: SparseWork, execute: Execute<'_>) {
        let Some(timeline) = self.queues.get_mut(queue.0 as usize) else { return };
        timeline.parked.push_back(Parked { step, host: Arc::clone(&self.host), work: Work::Sparse(work) });
        self.run(execute);
    }

    /// Changes where sparse resources lie. Its scopes have nothing of the queue's commands: what it waited for it hands
    /// on, with what the queue has signaled before.
    fn bind_sparse(&mut self, queue: usize, host: &Known, work: &SparseWork) {
        let mut known = host.clone();
        for point in &work.waits {
            known.raise_all(&self.take(*point).unwrap_or_default());
        }
        for bind in &work.binds {
            for range in self.addresses.bind(bind) {
                self.states.remove(range);
            }
            self.forget_gone();
        }
        known.raise_all(&self.queues[queue].signals);
        if !work.signals.is_empty() || work.fence.is_some() {
            self.queues[queue].signals = known.clone();
        }
        for point in &work.signals {
            self.set_semaphore(*point, known.clone());
        }
        if let Some(slot) = work.fence.and_then(|it| self.fences.get_mut(it.0 as usize)) {
            *slot = Some(known);
        }
    }

    /// Executes work until every queue is empty or waits.
    pub(crate) fn run(&mut self, execute: Execute<'_>) {
        loop {
            let is_ready = |it: &usize| self.queues[*it].parked.front().is_some_and(|it| self.is_ready(&it.work));
            let Some(queue) = (0..self.queues.len()).find(is_ready) else { return self.remove_destroyed() };
            let Some(parked) = self.queues[queue].parked.pop_front() else { return };
            match &parked.work {
                Work::Batch(index, batch) => self.execute(queue as u8, &parked, *index, batch, execute),
                Work::Fence(fence) => self.signal_fence(queue as u8, *fence),
                Work::Present(waits, images) => self.present(parked.step, &parked.host, waits, images),
                Work::Sparse(work) => self.bind_sparse(queue, &parked.host, work),
            }
        }
    }

    /// What was destroyed goes, unless something waits that may use it.
    pub(crate) fn remove_destroyed(&mut self) {
        if self.queues.iter().all(|it| it.parked.is_empty()) {
            self.addresses.remove_destroyed();
            self.forget_gone();
        }
    }

    /// Nothing is known at addresses that are given to something else.
    pub(crate) fn forget_gone(&mut self) {
        for range in self.addresses.take_gone() {
            self.states.remove(range);
        }
    }

    fn is_ready(&self, work: &Work) -> bool {
        match work {
            Work::Batch(_, batch) => batch.waits.iter().all(|it| self.is_signaled(it.point)),
            Work::Fence(_) => true,
            Work::Sparse(work) => work.waits.iter().all(|it| self.is_signaled(*it)),
            Work::Present(waits, _) => waits.iter().all(|it| self.is_signaled(Point { semaphore: *it, value: None })),
        }
    }

    fn is_signaled(&self, point: Point) -> bool {
        let Some(semaphore) = self.semaphores.get(point.semaphore.0 as usize) else { return true };
        match point.value {
            None => semaphore.binary.is_some(),
            Some(value) => value == 0 || semaphore.values.range(value..).next().is_some(),
        }
    }

    fn execute(&mut self, queue: u8, parked: &Parked, index: u32, batch: &Batch, execute: Execute<'_>) {
        let own = &mut self.queues[usize::from(queue)];
        // What the host knows is visible to the device, not to the host: that takes a barrier.
        let Everything { device, device_usages, .. } = *EVERYTHING;
        if own.host.as_ref().is_none_or(|it| !Arc::ptr_eq(it, &parked.host)) {
            own.clock.second_scope(&parked.host.carry, device, device_usages);
            own.clock.batches.raise_all(&parked.host.batches);
            own.host = Some(Arc::clone(&parked.host));
        }
        let waited: Vec<(Wait, Known)> =
            batch.waits.iter().filter_map(|it| Some((*it, self.take(it.point)?))).collect();
        let own = &mut self.queues[usize::from(queue)];
        for (wait, known) in &waited {
            let stages = scope::destination(wait.stages, own.flags);
            own.clock.second_scope(&known.carry, stages, scope::usages_of(stages));
            // A wait at no stage brings nothing to anybody.
            if !stages.is_empty() {
                own.clock.see(&known.host);
                own.receive(stages, &known.host);
            }
            own.clock.batches.raise_all(&known.batches);
        }
        execute(self, queue, parked.step, index, batch);
        self.tag += TAGS_PER_COMMAND;
        for signal in &batch.signals {
            self.signal(queue, *signal, &parked.host);
        }
        self.sweep_stretches(queue);
    }

    fn signal_fence(&mut self, queue: u8, fence: FenceId) {
        let known = self.all_of(queue);
        self.queues[usize::from(queue)].signals = known.clone();
        if let Some(slot) = self.fences.get_mut(fence.0 as usize) {
            *slot = Some(known);
        }
    }

    /// What a wait gets, and for a binary semaphore takes.
    fn take(&mut self, point: Point) -> Option<Known> {
        let semaphore = self.semaphores.get_mut(point.semaphore.0 as usize)?;
        match point.value {
            None => semaphore.binary.take(),
            Some(0) => None,
            Some(value) => semaphore.values.range(value..).next().map(|it| it.1.clone()),
        }
    }

    fn signal(&mut self, queue: u8, signal: Signal, host: &Known) {
        let tag = self.tag;
        let own = &mut self.queues[usize::from(queue)];
        let stages = scope::signal(signal.stages, own.flags);
        let mut carry = own.clock.first_scope(queue, tag, stages, scope::usages_of(stages));
        carry.raise_all(&own.signals.carry);
        carry.forget_covered();
        own.signals.carry = carry.clone();
        carry.raise_all(&host.carry);
        let is_for_host = stages.0 & EVERYTHING.host.0 != 0;
        let mut host = if is_for_host { own.clock.seen_by(EVERYTHING.host_usages) } else { Seen::default() };
        for (_, seen) in own.received.iter().filter(|it| it.0.0 & stages.0 != 0) {
            host.raise_all(seen);
        }
        host.raise_all(&own.signals.host);
        own.signals.host = host.clone();
        let mut batches = own.clock.batches.clone();
        batches.raise(queue, tag);
        own.signals.batches.raise_all(&batches);
        self.set_semaphore(signal.point, Known { carry, host, batches });
    }

    fn set_semaphore(&mut self, point: Point, known: Known) {
        let Some(semaphore) = self.semaphores.get_mut(point.semaphore.0 as usize) else { return };
        match point.value {
            None => semaphore.binary = Some(known),
            Some(value) => {
                semaphore.values.insert(value, known);
                if semaphore.values.len() > SIGNALS_MAX {
                    semaphore.values.pop_first();
                }
            }
        }
    }

    /// Everything that a queue has done, and all that it knows of others.
    fn all_of(&self, queue: u8) -> Known {
        let Timeline { clock, signals, .. } = &self.queues[usize::from(queue)];
        let carry = clock.first_scope(queue, self.tag, EVERYTHING.stages, EVERYTHING.usages);
        let mut batches = clock.batches.clone();
        batches.raise(queue, self.tag);
        let mut known = Known { carry, host: clock.seen_by(EVERYTHING.host_usages), batches };
        known.raise_all(signals);
        known.carry.forget_covered();
        known
    }

    fn host_learns(&mut self, known: &Known) {
        let host = Arc::make_mut(&mut self.host);
        host.raise_all(known);
        host.carry.forget_covered();
        self.forget_signals();
        self.host_clock.execution_only(&known.carry, EVERYTHING.host);
        self.host_clock.see(&known.host);
        self.host_clock.batches.raise_all(&known.batches);
    }

    /// Forgets what timelines were signaled with, as far as the host knows it: whoever waits for it is submitted later,
    /// and knows it by that. A batch that is parked already may not.
    fn forget_signals(&mut self) {
        if self.queues.iter().any(|it| !it.parked.is_empty()) {
            return;
        }
        let host = &self.host;
        for semaphore in &mut self.semaphores {
            let known = semaphore.values.iter().rev().find(|it| host.covers(it.1)).map(|it| *it.0);
            let Some(last) = known.filter(|it| semaphore.values.range(..it).next().is_some()) else { continue };
            semaphore.values = semaphore.values.split_off(&last);
            semaphore.values.insert(last, Known::default());
        }
    }

    /// Signals of timelines that can be waited for.
    #[cfg(test)]
    pub(crate) fn known_signals(&self) -> usize {
        self.semaphores.iter().map(|it| it.values.len()).sum()
    }

    /// There is an event of this number, which is not set.
    pub(crate) fn add_event(&mut self, id: usize) {
        *slot(&mut self.events, id) = Event::default();
    }

    /// There is a semaphore of this number, which is not signaled.
    pub(crate) fn add_semaphore(&mut self, id: usize) {
        *slot(&mut self.semaphores, id) = Semaphore::default();
    }

    /// There is a fence of this number, which is not signaled.
    pub(crate) fn add_fence(&mut self, id: usize) {
        *slot(&mut self.fences, id) = None;
    }

    /// The number of the host among the queues.
    pub(crate) fn host_queue(&self) -> u8 {
        self.queues.len() as u8
    }

    /// The number among the queues of the presentation engine's dealings with an image: each is by itself.
    pub(crate) fn presentation_queue(&mut self, image: ResourceId) -> u8 {
        let (next, free) = (self.presented.len(), &mut self.unpresented);
        let new = || (free.pop().unwrap_or(next), Known::default());
        let slot = self.presented.entry(image).or_insert_with(new).0;
        // More images than that share the last number.
        (self.queues.len() + 1 + slot).min(usize::from(u8::MAX)) as u8
    }

    /// An image is no more, nor are its ways through the presentation engine.
    pub(crate) fn forget_presented(&mut self, image: ResourceId) {
        self.unpresented.extend(self.presented.remove(&image).map(|it| it.0));
    }

    /// The host accessed something: what is submitted from now on comes after it, and sees what it wrote.
    pub(crate) fn host_did(&mut self, tag: Tag) {
        let carry = Carry::of(self.host_queue(), tag, EVERYTHING.host, EVERYTHING.host_usages);
        let queue = self.host_queue();
        let host = Arc::make_mut(&mut self.host);
        host.carry.raise_all(&carry);
        host.batches.raise(queue, tag);
    }

    pub(crate) fn wait_fences(&mut self, fences: &[FenceId]) {
        for fence in fences {
            let index = fence.0 as usize;
            if let Some(known) = self.fences.get_mut(index).and_then(Option::take) {
                self.host_learns(&known);
                self.fences[index] = Some(known);
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
            let known = self.all_of(queue.0 as u8);
            self.host_learns(&known);
        }
    }

    pub(crate) fn device_idle(&mut self) {
        (0..self.queues.len() as u32).for_each(|it| self.queue_idle(QueueId(it)));
    }

    pub(crate) fn host_waits(&mut self, points: &[Point]) {
        for point in points {
            let semaphore = self.semaphores.get(point.semaphore.0 as usize);
            let known = semaphore.and_then(|it| it.values.range(point.value?..).next().map(|it| it.1.clone()));
            if let Some(known) = known {
                self.host_learns(&known);
            }
        }
    }

    pub(crate) fn host_signals(&mut self, point: Point) {
        let mut known = Known::clone(&self.host);
        known.batches.raise(self.host_queue(), self.tag + TAGS_PER_COMMAND);
        self.set_semaphore(point, known);
    }

    /// The presentation engine is done with an image at `tag`, and tells so.
    pub(crate) fn tell_acquired(
        &mut self,
        image: ResourceId,
        tag: Tag,
        semaphore: Option<SemaphoreId>,
        fence: Option<FenceId>,
    ) {
        let queue = self.presentation_queue(image);
        let mut stages = Stages::default();
        stages.add(PRESENTATION);
        let carry = Carry::of(queue, tag, stages, scope::usages_of(stages));
        let mut known = Known { carry, ..Known::default() };
        known.batches.raise(queue, tag);
        known.raise_all(self.presented.get(&image).map_or(&Known::default(), |it| &it.1));
        if let Some(slot) = fence.and_then(|it| self.fences.get_mut(it.0 as usize)) {
            *slot = Some(known.clone());
        }
        if let Some(semaphore) = semaphore {
            self.set_semaphore(Point { semaphore, value: None }, known);
        }
    }

    /// What an image's way through the presentation engine comes after.
    pub(crate) fn keep_known(&mut self, image: ResourceId, known: &Known) {
        if let Some(own) = self.presented.get_mut(&image) {
            own.1.raise_all(known);
        }
    }

    /// What a present comes after: all that its semaphores hand on.
    pub(crate) fn wait_to_present(&mut self, waits: &[SemaphoreId]) -> Known {
        let mut known = Known::default();
        for semaphore in waits {
            known.raise_all(&self.take(Point { semaphore: *semaphore, value: None }).unwrap_or_default());
        }
        known
    }

    /// The addresses of a part of a resource that is about to be used.
    pub(crate) fn ranges(&mut self, resource: ResourceId, region: &Region) -> Vec<Range<u64>> {
        if self.addresses.wants_planes(resource, region) {
            let (old, planes) = self.addresses.add_planes(resource);
            self.move_states(resource, &old, &planes);
            self.moved.extend(self.is_alone.then_some((resource, old, planes)));
        }
        self.has_used_sparse |= self.addresses.is_sparse(resource);
        self.addresses.ranges(resource, region)
    }

    /// What was at some addresses is at others from now on, once at each.
    pub(crate) fn move_states(&mut self, resource: ResourceId, old: &Range<u64>, planes: &[u64]) {
        let states: Vec<(Range<u64>, State)> =
            self.states.overlapping(old.clone()).map(|(range, state)| (range, state.clone())).collect();
        for (range, state) in states {
            for plane in planes {
                let (start, end) = (plane + range.start - old.start, plane + range.end - old.start);
                self.states.update(start..end, |_, it| *it = Some(state.clone()));
            }
        }
        self.states.remove(old.clone());
        // What is visible through it of writes by other names is told by its addresses.
        for other in self.addresses.names_beside(resource) {
            self.states.update(self.addresses.whole(other), |_, state| {
                if let Some(state) = state {
                    state.move_names(old, planes);
                }
            });
        }
    }

    /// Keeps conflicts of an access to a resource.
    pub(crate) fn report(&mut self, tag: Tag, resource: ResourceId, conflicts: Vec<(Range<u64>, Vec<Conflict>)>) {
        let Some(at) = Some(tag).filter(|_| !conflicts.is_empty()).and_then(|it| self.places.get(it)) else { return };
        let first = self.found.len();
        for (range, conflicts) in conflicts {
            for conflict in conflicts {
                let Some(prior) = self.places.get(conflict.prior) else { continue };
                for region in self.addresses.regions(resource, &range) {
                    let found = Found { kind: conflict.kind, at: at.clone(), prior: prior.clone(), resource, region };
                    add_found(&mut self.found, first, found);
                }
            }
        }
    }

    /// What the first work that is parked on a queue waits for, as far as nobody has signaled it.
    pub(crate) fn unsignaled(&self, queue: QueueId) -> Vec<Point> {
        let parked = self.queues.get(queue.0 as usize).and_then(|it| it.parked.front());
        let points: Vec<Point> = match parked.map(|it| &it.work) {
            Some(Work::Batch(_, batch)) => batch.waits.iter().map(|it| it.point).collect(),
            Some(Work::Present(waits, _)) => waits.iter().map(|it| Point { semaphore: *it, value: None }).collect(),
            Some(Work::Sparse(work)) => work.waits.clone(),
            Some(Work::Fence(_)) | None => Vec::new(),
        };
        points.into_iter().filter(|it| !self.is_signaled(*it)).collect()
    }

    /// Batches that wait for semaphores which nobody signals.
    pub(crate) fn parked(&self) -> impl Iterator<Item = (QueueId, u32)> {
        let queues = self.queues.iter().enumerate();
        queues.flat_map(|(queue, it)| it.parked.iter().map(move |it| (QueueId(queue as u32), it.step)))
    }
}

/// Adds a hazard; the same one on other components of the same texels becomes one with it.
fn add_found(all: &mut Vec<Found>, first: usize, new: Found) {
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
pub(crate) fn slot<T: Default>(all: &mut Vec<T>, id: usize) -> &mut T {
    if all.len() <= id {
        all.resize_with(id + 1, T::default);
    }
    &mut all[id]
}
