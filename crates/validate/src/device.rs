//! A device: what its engine is told, and what is kept to explain what the engine finds.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use lavascope_abi::{Command as ApiCommand, ObjectId};
use lavascope_event::LabelPath;
use lavascope_program::{
    Access, Batch, Command, CommandBuffer, CommandBufferId, EventId, FenceId, Findings, Queue, QueueId, RenderPass,
    RenderPassId, Resource, ResourceId, SemaphoreId, Step,
};
use lavascope_state::{Gone, Source};
use lavascope_sync::{EventRace, EventRaces, uses_events};
use rustc_hash::FxHashMap;

use crate::engine::Live;
use crate::window::{Forgotten, Kept, Submitted, Window};

/// Accesses for which room is not worth giving back.
const ROOM_MIN: usize = 1024;

pub(crate) struct Device {
    pub(crate) live: Live,
    pub(crate) objects: Objects,
    recordings: FxHashMap<CommandBufferId, Arc<Recorded>>,
    /// What each command buffer is recorded for.
    kinds: FxHashMap<CommandBufferId, Queue>,
    pub(crate) window: Window,
    pub(crate) races: EventRaces,
    /// Submissions so far.
    pub(crate) submits: u64,
    /// Objects that nothing speaks of any more.
    pub(crate) forgotten: Vec<ObjectId>,
    /// Whether it was told what still waits.
    pub(crate) is_finished: bool,
}

/// What things of a device are, and what they are called. Those that are gone stay as long as the window may ask.
pub(crate) struct Objects {
    pub(crate) queues: Vec<Queue>,
    pub(crate) queue_objects: HashMap<QueueId, ObjectId>,
    pub(crate) resources: HashMap<ResourceId, (ObjectId, Resource)>,
    /// The step before which each resource came.
    pub(crate) since: HashMap<ResourceId, u32>,
    pub(crate) passes: HashMap<RenderPassId, (ObjectId, RenderPass)>,
    pub(crate) events: HashMap<EventId, ObjectId>,
    pub(crate) semaphores: HashMap<SemaphoreId, ObjectId>,
    pub(crate) fences: HashMap<FenceId, ObjectId>,
    command_buffers: HashMap<CommandBufferId, ObjectId>,
}

/// What was recorded, with the numbers of the tracker.
#[derive(Clone)]
pub(crate) struct Recorded {
    pub(crate) object: ObjectId,
    /// Actions are empty lists here; their accesses lie one behind the other, unless they became known later.
    pub(crate) outline: CommandBuffer,
    accesses: Vec<Access>,
    /// For each command, where its accesses begin and end.
    spans: Vec<(u32, u32)>,
    /// For each command.
    pub(crate) marks: Vec<Mark>,
    /// How often the command buffer had been recorded before.
    pub(crate) resets: u32,
    pub(crate) has_events: bool,
}

/// The call that a command comes from.
#[derive(Clone)]
pub(crate) struct Mark {
    pub(crate) function: ApiCommand,
    /// Its number among the commands that were recorded, from one.
    pub(crate) number: u32,
    /// The debug labels around it.
    pub(crate) labels: Option<LabelPath>,
    /// Of its call; zero, if nobody captured it.
    pub(crate) stack: u32,
}

impl Device {
    pub(crate) fn new(queues: &[Queue]) -> Device {
        Device {
            live: Live::new(queues),
            objects: Objects {
                queues: queues.to_vec(),
                queue_objects: HashMap::new(),
                resources: HashMap::new(),
                since: HashMap::new(),
                passes: HashMap::new(),
                events: HashMap::new(),
                semaphores: HashMap::new(),
                fences: HashMap::new(),
                command_buffers: HashMap::new(),
            },
            recordings: FxHashMap::default(),
            kinds: FxHashMap::default(),
            window: Window::default(),
            races: EventRaces::default(),
            submits: 0,
            forgotten: Vec::new(),
            is_finished: false,
        }
    }

    pub(crate) fn add_queue(&mut self, id: QueueId, object: ObjectId) {
        self.objects.queue_objects.insert(id, object);
    }

    pub(crate) fn add_resource(&mut self, id: ResourceId, object: ObjectId, resource: &Resource) {
        self.live.add_resource(id, resource);
        self.objects.since.insert(id, self.live.next_step());
        self.objects.resources.insert(id, (object, resource.clone()));
    }

    pub(crate) fn add_render_pass(&mut self, id: RenderPassId, object: ObjectId, pass: &RenderPass) {
        self.live.add_render_pass(id, pass);
        self.objects.passes.insert(id, (object, pass.clone()));
    }

    pub(crate) fn add_event(&mut self, id: EventId, object: ObjectId) {
        self.live.add_event(id);
        self.objects.events.insert(id, object);
    }

    pub(crate) fn add_semaphore(&mut self, id: SemaphoreId, object: ObjectId) {
        self.live.add_semaphore(id);
        self.objects.semaphores.insert(id, object);
    }

    pub(crate) fn add_fence(&mut self, id: FenceId, object: ObjectId) {
        self.live.add_fence(id);
        self.objects.fences.insert(id, object);
    }

    /// There is a command buffer, for queues like this one.
    pub(crate) fn add_command_buffer(&mut self, id: CommandBufferId, queue: Queue) {
        self.kinds.insert(id, queue);
    }

    pub(crate) fn begin(&mut self, id: CommandBufferId, object: ObjectId, is_secondary: bool) {
        let resets = self.recordings.get(&id).map_or(0, |it| it.resets + 1);
        self.clear(id, object, is_secondary, resets);
        self.objects.command_buffers.insert(id, object);
        self.live.begin_recording(id, self.kind(id), is_secondary);
    }

    /// There is nothing in a command buffer; what was submitted of it stays as it is.
    fn clear(&mut self, id: CommandBufferId, object: ObjectId, is_secondary: bool, resets: u32) {
        let own = self.recordings.entry(id).or_insert_with(|| Arc::new(Recorded::new(object)));
        if Arc::get_mut(own).is_none() {
            *own = Arc::new(Recorded::new(object));
        }
        Arc::make_mut(own).clear(object, is_secondary, resets);
    }

    /// Gives what is wrong with a command because of those before it, with the numbers of the tracker.
    pub(crate) fn command(
        &mut self,
        id: CommandBufferId,
        command: Command,
        mark: impl FnOnce(ObjectId) -> Mark,
    ) -> Findings {
        let Some(own) = self.recordings.get_mut(&id) else { return Findings::default() };
        let found = self.live.record(id, &command);
        let recorded = Arc::make_mut(own);
        recorded.has_events |= uses_events(&command);
        recorded.push(command, &[], mark);
        found
    }

    /// The same for an action command.
    pub(crate) fn action(
        &mut self,
        id: CommandBufferId,
        accesses: &[Access],
        mark: impl FnOnce(ObjectId) -> Mark,
    ) -> Option<Box<Findings>> {
        let own = self.recordings.get_mut(&id)?;
        let found = self.live.record_action(id, accesses);
        Arc::make_mut(own).push(Command::Action(Vec::new()), accesses, mark);
        found
    }

    /// What was submitted before stays as it was then.
    pub(crate) fn amend(&mut self, id: CommandBufferId, index: u32, command: Command) {
        let Some(own) = self.recordings.get_mut(&id) else { return };
        if (index as usize) < own.spans.len() {
            self.live.amend(id, index, &command);
            Arc::make_mut(own).replace(index as usize, command);
        }
    }

    /// The last command is as if it had not been recorded.
    pub(crate) fn take_back(&mut self, id: CommandBufferId) {
        let Some(own) = self.recordings.get_mut(&id) else { return };
        Arc::make_mut(own).pop();
        self.live.unrecord(id);
    }

    pub(crate) fn end_recording(&mut self, id: CommandBufferId) {
        self.live.end_recording(id);
    }

    /// All that is recorded is told to the engine again.
    pub(crate) fn record_again(&mut self) {
        let mut all: Vec<(CommandBufferId, Arc<Recorded>)> =
            self.recordings.iter().map(|(id, it)| (*id, it.clone())).collect();
        // Whoever executes others comes after them.
        all.sort_unstable_by_key(|it| (!it.1.outline.is_secondary, it.0));
        for (id, recorded) in all {
            self.live.begin_recording(id, self.kind(id), recorded.outline.is_secondary);
            recorded.commands().for_each(|it| drop(self.live.record(id, &it)));
            self.live.end_recording(id);
        }
    }

    /// What a command buffer is recorded for; anything, if nobody said so.
    fn kind(&self, id: CommandBufferId) -> Queue {
        let any = || self.objects.queues.first().copied().unwrap_or(Queue { family: 0, flags: 0 });
        self.kinds.get(&id).copied().unwrap_or_else(any)
    }

    /// A command buffer that is being recorded, as if it were submitted alone.
    pub(crate) fn as_submitted(&self, id: CommandBufferId, source: Source) -> Kept {
        let family = self.kinds.get(&id).map(|it| it.family);
        let queue = self.objects.queues.iter().position(|it| Some(it.family) == family).unwrap_or(0);
        Kept::recording(source, QueueId(queue as u32), id, self.submitted(id))
    }

    pub(crate) fn reset(&mut self, id: CommandBufferId) {
        if let Some(own) = self.recordings.get(&id) {
            let (object, is_secondary, resets) = (own.object, own.outline.is_secondary, own.resets);
            self.clear(id, object, is_secondary, resets);
            self.live.begin_recording(id, self.kind(id), is_secondary);
        }
    }

    /// The command buffer of the records.
    pub(crate) fn object_of(&self, id: CommandBufferId) -> Option<ObjectId> {
        Some(self.recordings.get(&id)?.object)
    }

    pub(crate) fn end(&mut self, gone: Gone) {
        self.live.end(gone);
        if let Gone::Event(id) = gone {
            self.races.forget(id);
        }
        if let Gone::CommandBuffer(id) = gone {
            self.recordings.remove(&id);
            self.kinds.remove(&id);
        }
        if let Some(it) = self.window.push_end(gone) {
            self.forgotten.extend(self.objects.forget(it));
        }
    }

    /// The host does something. Gives what is found because of it, with the numbers of the tracker.
    pub(crate) fn step(
        &mut self,
        source: Source,
        step: Step,
        (labels, stack): (Option<LabelPath>, u32),
    ) -> (Findings, Vec<EventRace>) {
        let batches: &[Batch] = if let Step::Submit { batches, .. } = &step { batches } else { &[] };
        let submitted = |it: &Batch| it.command_buffers.iter().map(|it| self.submitted(*it)).collect();
        let buffers: Vec<Vec<Submitted>> = batches.iter().map(submitted).collect();
        if let Step::Submit { .. } = step {
            self.submits += 1;
        }
        let (index, found) = self.live.step(&step);
        let races = self.races_of(index, &step, &buffers);
        let kept = Kept::new(index, self.submits, source, step, buffers).called(labels, stack);
        for it in self.window.push(kept) {
            self.forgotten.extend(self.objects.forget(it));
        }
        (found, races)
    }

    fn races_of(&mut self, index: u32, step: &Step, buffers: &[Vec<Submitted>]) -> Vec<EventRace> {
        if self.races.is_idle() && !buffers.iter().flatten().any(Submitted::has_events) {
            return Vec::new();
        }
        let Device { races, recordings, objects, .. } = self;
        let buffer = |id: CommandBufferId| recordings.get(&id).map(|it| &it.outline);
        races.step(index, step, &objects.queues, &buffer)
    }

    #[cfg(test)]
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.objects.all().len(), self.live.numbers())
    }

    /// A command buffer as it is now, with all that it executes.
    fn submitted(&self, id: CommandBufferId) -> Submitted {
        let own = self.recordings.get(&id).cloned();
        let mut executed: Vec<(CommandBufferId, Arc<Recorded>)> = Vec::new();
        let mut open: Vec<CommandBufferId> = own.iter().flat_map(|it| it.executes()).collect();
        while let Some(next) = open.pop() {
            let is_known = next == id || executed.iter().any(|it| it.0 == next);
            if let Some(it) = self.recordings.get(&next).filter(|_| !is_known) {
                open.extend(it.executes());
                executed.push((next, it.clone()));
            }
        }
        executed.sort_by_key(|it| it.0);
        Submitted { own, executed }
    }
}

impl Recorded {
    fn new(object: ObjectId) -> Recorded {
        let (outline, accesses, spans, marks) = (CommandBuffer::default(), Vec::new(), Vec::new(), Vec::new());
        Recorded { object, outline, accesses, spans, marks, resets: 0, has_events: false }
    }

    /// Recorded anew, in the room that there is.
    fn clear(&mut self, object: ObjectId, is_secondary: bool, resets: u32) {
        (self.object, self.outline.is_secondary) = (object, is_secondary);
        (self.resets, self.has_events) = (resets, false);
        if self.accesses.capacity() > 4 * self.accesses.len() + ROOM_MIN {
            self.accesses = Vec::new();
        }
        self.outline.commands.clear();
        self.accesses.clear();
        self.spans.clear();
        self.marks.clear();
    }

    fn push(&mut self, command: Command, accesses: &[Access], mark: impl FnOnce(ObjectId) -> Mark) {
        let first = self.accesses.len();
        self.accesses.extend_from_slice(accesses);
        self.spans.push((first as u32, self.accesses.len() as u32));
        self.outline.commands.push(command);
        self.marks.push(mark(self.object));
    }

    fn pop(&mut self) {
        self.outline.commands.pop();
        self.marks.pop();
        if let Some((first, _)) = self.spans.pop() {
            self.accesses.truncate(first as usize);
        }
    }

    /// A command is another one from now on. Its accesses do not fit where the old ones are.
    fn replace(&mut self, index: usize, command: Command) {
        self.spans[index].1 = self.spans[index].0;
        self.outline.commands[index] = command;
    }

    /// The accesses of an action.
    pub(crate) fn accesses(&self, index: usize) -> Option<&[Access]> {
        let Command::Action(later) = self.outline.commands.get(index)? else { return None };
        let (first, end) = self.spans[index];
        Some(if later.is_empty() { &self.accesses[first as usize..end as usize] } else { later })
    }

    /// What was recorded.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Cow<'_, Command>> {
        self.outline.commands.iter().enumerate().map(|(index, it)| match self.accesses(index) {
            Some(accesses) => Cow::Owned(Command::Action(accesses.to_vec())),
            None => Cow::Borrowed(it),
        })
    }

    pub(crate) fn buffer(&self) -> CommandBuffer {
        let commands = self.commands().map(Cow::into_owned).collect();
        CommandBuffer { commands, is_secondary: self.outline.is_secondary }
    }

    /// The secondary command buffers that it executes.
    fn executes(&self) -> impl Iterator<Item = CommandBufferId> {
        let lists = self.outline.commands.iter().filter_map(|it| match it {
            Command::Execute(all) => Some(all),
            _ => None,
        });
        lists.flatten().copied()
    }
}

impl Objects {
    /// The window knows no more of something that is gone.
    fn forget(&mut self, it: Forgotten) -> Option<ObjectId> {
        match it {
            Forgotten::Resource(id) => {
                self.since.remove(&id);
                self.resources.remove(&id).map(|it| it.0)
            }
            Forgotten::Other(Gone::RenderPass(id)) => self.passes.remove(&id).map(|it| it.0),
            Forgotten::Other(Gone::Semaphore(id)) => self.semaphores.remove(&id),
            Forgotten::Other(Gone::Fence(id)) => self.fences.remove(&id),
            Forgotten::Other(Gone::CommandBuffer(id)) => self.command_buffers.remove(&id),
            Forgotten::Other(Gone::Event(id)) => self.events.remove(&id),
        }
    }

    /// The queue on which a step happens.
    pub(crate) fn queue_of(&self, step: &Step) -> Option<ObjectId> {
        match step {
            Step::Submit { queue, .. } | Step::Present { queue, .. } => self.queue_objects.get(queue).copied(),
            _ => None,
        }
    }

    /// Everything that has a name.
    pub(crate) fn all(&self) -> Vec<ObjectId> {
        let mut all: Vec<ObjectId> = self.resources.values().map(|it| it.0).collect();
        all.extend(self.passes.values().map(|it| it.0));
        all.extend(self.queue_objects.values().chain(self.semaphores.values()).chain(self.fences.values()));
        all.extend(self.command_buffers.values().chain(self.events.values()));
        all
    }
}
