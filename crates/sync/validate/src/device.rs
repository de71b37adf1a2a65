//! A device: feeds its engine, and keeps what explanations of findings need.

use lavascope_abi::ObjectId;
use lavascope_engine::{EventRace, EventRaces, RecordedEventRaces, uses_events};
use lavascope_explain::SyncVersion;
use lavascope_record::LabelPath;
use lavascope_state::{CallSource, Destroyed};
use lavascope_sync_ir::{
    Access, Command, CommandBufferId, EventId, FenceId, Findings, HostStep, ProgramLocation, Queue, QueueId,
    RenderPass, RenderPassId, Resource, ResourceId, SemaphoreId, SubmitBatch,
};
use rustc_hash::FxHashMap;

use crate::engine::IdMappedEngine;
use crate::feedback::pending::PendingFeedback;
use crate::recording::command_buffer::{
    CommandBufferBody, CommandBufferRecording, CommandCall, LabelsAtEnd, RecordedCommandBuffer,
};
use crate::recording::host_polls::HostPolls;
use crate::recording::open_labels::OpenLabels;
use crate::recording::step_history::{ForgottenObject, HistoryStep, StepHistory, SubmittedCommandBuffer};
use crate::resource_ordinals::ResourceOrdinals;

pub(crate) struct ValidatedDevice {
    pub(crate) engine: IdMappedEngine,
    pub(crate) objects: DeviceObjects,
    recordings: FxHashMap<CommandBufferId, CommandBufferRecording>,
    /// The queue for which each command buffer is recorded.
    target_queues: FxHashMap<CommandBufferId, Queue>,
    pub(crate) history: StepHistory,
    pub(crate) races: EventRaces,
    /// Debug labels that command buffers left open.
    open_labels: OpenLabels,
    pub(crate) host_polls: HostPolls,
    /// Submissions so far.
    pub(crate) submits: u64,
    /// Presentations so far.
    pub(crate) frames: u64,
    /// Submissions and presentations so far, by queue.
    queue_submits: FxHashMap<QueueId, u64>,
    /// Objects that no finding can name any more.
    pub(crate) forgotten_objects: Vec<ObjectId>,
    /// Whether blocked submissions are already reported.
    pub(crate) is_blocked_reported: bool,
    /// The accesses that shaders reported; none if shaders do not record accesses.
    pub(crate) feedback: Option<Box<PendingFeedback>>,
    /// Whether there will be no explanations, so that nothing is kept for them.
    skips_explanations: bool,
    pub(crate) versions: UsedVersions,
}

/// Which synchronization commands the application has, and which it uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UsedVersions {
    /// The feature `synchronization2` is enabled.
    pub(crate) has_synchronization2: bool,
    uses_version_1: bool,
    uses_version_2: bool,
}

impl UsedVersions {
    fn add(&mut self, command: &Command) {
        match SyncVersion::of(command) {
            Some(SyncVersion::One) => self.uses_version_1 = true,
            Some(SyncVersion::Two) => self.uses_version_2 = true,
            None => {}
        }
    }

    /// The version that fits the program: the new commands, if it uses them, or if they are enabled and it uses none of
    /// the old ones.
    pub(crate) fn commands(self) -> SyncVersion {
        let is_new = self.uses_version_2 || self.has_synchronization2 && !self.uses_version_1;
        if is_new { SyncVersion::Two } else { SyncVersion::One }
    }
}

/// The findings of a recorded command and earlier commands of its command buffer.
#[derive(Default)]
pub(crate) struct RecordedFindings {
    pub(crate) findings: Findings,
    pub(crate) races: Vec<EventRace>,
}

impl RecordedFindings {
    pub(crate) fn is_empty(&self) -> bool {
        self.findings.is_empty() && self.races.is_empty()
    }
}

/// The objects of a device. A destroyed object stays as long as the step history refers to it.
pub(crate) struct DeviceObjects {
    pub(crate) queues: Vec<Queue>,
    pub(crate) queue_objects: FxHashMap<QueueId, ObjectId>,
    pub(crate) resources: FxHashMap<ResourceId, (ObjectId, Resource)>,
    pub(crate) ordinals: ResourceOrdinals,
    /// The step before which each resource was created.
    pub(crate) first_steps: FxHashMap<ResourceId, u32>,
    pub(crate) passes: FxHashMap<RenderPassId, (ObjectId, RenderPass)>,
    pub(crate) events: FxHashMap<EventId, ObjectId>,
    pub(crate) semaphores: FxHashMap<SemaphoreId, ObjectId>,
    pub(crate) fences: FxHashMap<FenceId, ObjectId>,
    command_buffers: FxHashMap<CommandBufferId, ObjectId>,
}

impl ValidatedDevice {
    pub(crate) fn new(queues: &[Queue]) -> ValidatedDevice {
        ValidatedDevice {
            engine: IdMappedEngine::new(queues),
            objects: DeviceObjects {
                queues: queues.to_vec(),
                queue_objects: FxHashMap::default(),
                resources: FxHashMap::default(),
                ordinals: ResourceOrdinals::default(),
                first_steps: FxHashMap::default(),
                passes: FxHashMap::default(),
                events: FxHashMap::default(),
                semaphores: FxHashMap::default(),
                fences: FxHashMap::default(),
                command_buffers: FxHashMap::default(),
            },
            recordings: FxHashMap::default(),
            target_queues: FxHashMap::default(),
            history: StepHistory::default(),
            races: EventRaces::default(),
            open_labels: OpenLabels::default(),
            host_polls: HostPolls::default(),
            submits: 0,
            frames: 0,
            queue_submits: FxHashMap::default(),
            forgotten_objects: Vec::new(),
            is_blocked_reported: false,
            feedback: None,
            skips_explanations: false,
            versions: UsedVersions::default(),
        }
    }

    /// From now on, only finds out whether there are findings, without explanations.
    pub(crate) fn check_when_executed(&mut self) {
        self.engine.check_when_executed();
        self.skips_explanations = true;
    }

    pub(crate) fn add_queue(&mut self, id: QueueId, object: ObjectId) {
        self.objects.queue_objects.insert(id, object);
    }

    pub(crate) fn add_resource(
        &mut self,
        id: ResourceId,
        object: ObjectId,
        resource: &Resource,
        is_swapchain_image: bool,
    ) {
        self.engine.add_resource(id, resource);
        self.objects.ordinals.add(id, resource, is_swapchain_image);
        self.objects.first_steps.insert(id, self.engine.next_step());
        self.objects.resources.insert(id, (object, resource.clone()));
    }

    pub(crate) fn add_render_pass(&mut self, id: RenderPassId, object: ObjectId, pass: &RenderPass) {
        self.engine.add_render_pass(id, pass);
        self.objects.passes.insert(id, (object, pass.clone()));
    }

    pub(crate) fn add_event(&mut self, id: EventId, object: ObjectId) {
        self.engine.add_event(id);
        self.objects.events.insert(id, object);
    }

    pub(crate) fn add_semaphore(&mut self, id: SemaphoreId, object: ObjectId) {
        self.engine.add_semaphore(id);
        self.objects.semaphores.insert(id, object);
    }

    pub(crate) fn add_fence(&mut self, id: FenceId, object: ObjectId) {
        self.engine.add_fence(id);
        self.objects.fences.insert(id, object);
    }

    /// Adds a command buffer for queues like this one.
    pub(crate) fn add_command_buffer(&mut self, id: CommandBufferId, object: ObjectId, queue: Queue) {
        self.target_queues.insert(id, queue);
        self.objects.command_buffers.insert(id, object);
    }

    /// Begins a recording. Returns whether it may turn out to repeat the previous one.
    pub(crate) fn begin(&mut self, id: CommandBufferId, object: ObjectId, is_secondary: bool) -> bool {
        let resets = self.recordings.get(&id).map_or(0, |it| it.resets() + 1);
        self.restart_recording(id, object, is_secondary, resets);
        self.objects.command_buffers.insert(id, object);
        self.feedback.is_none() && self.recordings.get(&id).is_some_and(CommandBufferRecording::is_repeated)
    }

    /// How many accesses of actions are in a command buffer.
    pub(crate) fn access_count(&self, id: CommandBufferId) -> usize {
        self.recordings.get(&id).map_or(0, CommandBufferRecording::access_count)
    }

    /// The function of a recorded command.
    pub(crate) fn function_at(&self, id: CommandBufferId, index: usize) -> Option<String> {
        let call = self.recordings.get(&id)?.current().calls.get(index)?;
        Some(call.function.desc().name.to_owned())
    }

    /// All commands of the previous recording came again. Returns whether the recording then is complete.
    pub(crate) fn repeat_all(&mut self, id: CommandBufferId) -> bool {
        self.engine.check_unchanged(id) && self.recordings.get_mut(&id).is_some_and(CommandBufferRecording::repeat_all)
    }

    /// Empties a command buffer; submitted copies stay. Most command buffers repeat their previous recording, and the
    /// engine gets no commands as long as this one does.
    fn restart_recording(&mut self, id: CommandBufferId, object: ObjectId, is_secondary: bool, resets: u32) {
        let kind = self.target_queue(id);
        self.engine.end_recording(id);
        let own = self.recordings.entry(id).or_insert_with(|| CommandBufferRecording::new(object));
        if own.freeze_and_match(object, is_secondary) && self.engine.prepare_repeat(id, kind, is_secondary) {
            own.begin_repeat(resets);
        } else {
            own.clear(object, is_secondary, resets);
            self.engine.begin_recording(id, kind, is_secondary);
        }
    }

    /// Validates a recorded command. Returns the hazards between it and earlier commands, with the ids of the tracker.
    pub(crate) fn validate_command(
        &mut self,
        id: CommandBufferId,
        command: Command,
        call_of: impl FnOnce(ObjectId) -> CommandCall,
    ) -> RecordedFindings {
        if let Command::Execute(all) = &command {
            all.iter().for_each(|it| self.finish_repeat(*it));
        }
        self.versions.add(&command);
        let Some(own) = self.recordings.get_mut(&id) else { return RecordedFindings::default() };
        let call = call_of(own.object());
        if own.is_repeated() && !(own.matches_next(&command, &call) && self.engine.check_unchanged(id)) {
            self.stop_repeating(id);
        }
        let Some(own) = self.recordings.get_mut(&id) else { return RecordedFindings::default() };
        if own.advance_repeated() {
            return RecordedFindings::default();
        }
        let findings = self.engine.check_command(id, &command);
        let races = if own.is_without_events() && !self.may_use_events(&command) {
            Vec::new()
        } else {
            self.record_races(id, &command)
        };
        if let Some(own) = self.recordings.get_mut(&id) {
            own.push(command, call);
        }
        RecordedFindings { findings, races }
    }

    /// Whether a command uses events, or executes a command buffer that does.
    fn may_use_events(&self, command: &Command) -> bool {
        let Command::Execute(all) = command else { return uses_events(command) };
        let recorded = |it: &CommandBufferId| self.recordings.get(it).map(CommandBufferRecording::current);
        let uses = |it: &CommandBufferBody| it.has_events || it.executes().next().is_some();
        all.iter().filter_map(recorded).any(uses)
    }

    /// The races of events between a command and those before it in a primary command buffer. Secondary ones are checked
    /// as part of those.
    fn record_races(&mut self, id: CommandBufferId, command: &Command) -> Vec<EventRace> {
        if self.recordings.get(&id).is_none_or(|it| it.current().is_secondary) {
            return Vec::new();
        }
        let (queue, mut races) = (self.target_queue(id), self.take_races(id));
        let Some(own) = self.recordings.get(&id) else { return Vec::new() };
        let buffer = |id: CommandBufferId| self.recordings.get(&id).map(|it| it.current().others());
        let found = races.record(own.len() as u32, command, queue, &buffer).to_vec();
        if let Some(own) = self.recordings.get_mut(&id) {
            own.set_races(races);
        }
        found
    }

    /// Takes the event races of the commands so far. The caller puts them back with `set_races`.
    fn take_races(&mut self, id: CommandBufferId) -> RecordedEventRaces {
        if let Some(races) = self.recordings.get_mut(&id).and_then(CommandBufferRecording::take_races) {
            return races;
        }
        let (queue, mut races) = (self.target_queue(id), RecordedEventRaces::default());
        let buffer = |id: CommandBufferId| self.recordings.get(&id).map(|it| it.current().others());
        for (index, command) in buffer(id).into_iter().flatten() {
            races.record(index, command, queue, &buffer);
        }
        races
    }

    /// Removes races of the last step that were found while their command buffers were recorded.
    fn remove_recorded_races(&mut self, step: &HostStep, found: &mut Vec<EventRace>) {
        let HostStep::Submit { batches, .. } = step else { return };
        found.retain(|race| {
            let ProgramLocation::Command(at) = &race.at else { return true };
            let batch = batches.get(at.batch as usize);
            let Some(id) = batch.and_then(|it| it.command_buffers.get(at.primary as usize)) else { return true };
            let races = self.take_races(*id);
            let is_recorded = races.has_found(race);
            if let Some(own) = self.recordings.get_mut(id) {
                own.set_races(races);
            }
            !is_recorded
        });
    }

    /// Validates a recorded action. If it is the same command as in the last recording of the command buffer (`own`),
    /// the engine has checked it already. Otherwise the engine checks it, and `own` keeps it for explanations. Returns
    /// none if there are no hazards.
    pub(crate) fn validate_action(
        &mut self,
        id: CommandBufferId,
        accesses: &[Access],
        call_of: impl FnOnce(ObjectId) -> CommandCall,
    ) -> Option<Box<Findings>> {
        let mut own = self.recordings.get_mut(&id)?;
        let call = call_of(own.object());
        if own.is_repeated() {
            if own.matches_next_action(accesses, &call) && self.engine.check_unchanged(id) && own.advance_repeated() {
                return None;
            }
            self.stop_repeating(id);
            own = self.recordings.get_mut(&id)?;
        }
        // Translates the ids, and calls `Engine::check_action`.
        let found = self.engine.check_action(id, accesses);
        own.push_action(accesses, call);
        found
    }

    /// The recording differs from the previous one: gives the engine all commands recorded so far.
    #[cold]
    fn stop_repeating(&mut self, id: CommandBufferId) {
        let kind = self.target_queue(id);
        let Some(own) = self.recordings.get_mut(&id).filter(|it| it.is_repeated()) else { return };
        own.truncate_to_repeated();
        let body = own.freeze();
        self.engine.begin_recording(id, kind, body.is_secondary);
        let mut is_clean = true;
        for command in body.commands() {
            is_clean &= self.engine.check_command(id, &command).is_empty();
        }
        // Resources may have become aliases since the last recording. Hazards from that are reported at execution.
        if !is_clean {
            self.engine.set_command_buffer(id, &body.buffer());
        }
    }

    /// Ends a recording before the command buffer is used.
    fn finish_repeat(&mut self, id: CommandBufferId) {
        if self.recordings.get_mut(&id).is_some_and(|it| !it.finish_repeat()) {
            self.stop_repeating(id);
        }
    }

    /// Replaces a command whose accesses became known later. Submitted copies keep the old command.
    pub(crate) fn replace_command(&mut self, id: CommandBufferId, index: u32, command: Command) {
        self.finish_repeat(id);
        let Some(own) = self.recordings.get_mut(&id) else { return };
        if (index as usize) < own.len() {
            self.engine.replace_command(id, index, &command);
            if let Command::Action(accesses) = command {
                own.replace(index as usize, accesses);
            }
        }
    }

    /// Removes the last command.
    pub(crate) fn undo_last_command(&mut self, id: CommandBufferId) {
        self.finish_repeat(id);
        let Some(own) = self.recordings.get_mut(&id) else { return };
        own.pop();
        self.engine.undo_last_command(id);
    }

    pub(crate) fn end_recording(&mut self, id: CommandBufferId) {
        self.finish_repeat(id);
        self.engine.end_recording(id);
    }

    /// What a recording that has ended does to the labels of its queue.
    pub(crate) fn set_labels_at_end(&mut self, id: CommandBufferId, labels: LabelsAtEnd) {
        if let Some(own) = self.recordings.get_mut(&id) {
            own.set_labels_at_end(labels);
        }
    }

    /// A queue has again the labels and the number of submissions that it had before a step.
    pub(crate) fn undo_submission(&mut self, removed: &HistoryStep) {
        if let HostStep::Submit { queue, .. } | HostStep::Present { queue, .. } = removed.step {
            self.open_labels.restore(queue, &removed.carried_labels);
            self.queue_submits.insert(queue, removed.queue_submit);
        }
    }

    /// How many submissions and presentations of its queue there were before a step.
    fn count_on_queue(&mut self, step: &HostStep) -> u64 {
        let (HostStep::Submit { queue, .. } | HostStep::Present { queue, .. }) = step else { return 0 };
        let count = self.queue_submits.entry(*queue).or_default();
        *count += 1;
        *count - 1
    }

    /// Records all command buffers in the engine again.
    pub(crate) fn record_all_again(&mut self) {
        let all = self.recordings.iter_mut().map(|(id, it)| (*id, it.take_recorded()));
        let mut all: Vec<(CommandBufferId, RecordedCommandBuffer)> = all.collect();
        // Secondary command buffers come before the primary ones that execute them.
        all.sort_unstable_by_key(|it| (!it.1.is_secondary, it.0));
        for (id, recorded) in all {
            self.engine.begin_recording(id, self.target_queue(id), recorded.is_secondary);
            recorded.commands().for_each(|it| drop(self.engine.check_command(id, &it)));
            self.engine.end_recording(id);
        }
    }

    /// The queue for which a command buffer is recorded; a queue with all capabilities if that is unknown.
    fn target_queue(&self, id: CommandBufferId) -> Queue {
        let any = || self.objects.queues.first().copied().unwrap_or(Queue { family: 0, flags: 0 });
        self.target_queues.get(&id).copied().unwrap_or_else(any)
    }

    /// The command buffer that is being recorded, as if it were submitted alone.
    pub(crate) fn as_single_submission(&mut self, id: CommandBufferId, source: CallSource) -> HistoryStep {
        let family = self.target_queues.get(&id).map(|it| it.family);
        let queue = self.objects.queues.iter().position(|it| Some(it.family) == family).unwrap_or(0);
        HistoryStep::from_recording(source, QueueId(queue as u32), id, self.submitted(id))
    }

    pub(crate) fn reset(&mut self, id: CommandBufferId) {
        if let Some(own) = self.recordings.get(&id) {
            let (object, is_secondary, resets) = (own.object(), own.current().is_secondary, own.resets());
            self.restart_recording(id, object, is_secondary, resets);
        }
    }

    /// The last recording of a command buffer.
    pub(crate) fn recording_of(&self, object: ObjectId) -> Option<&CommandBufferRecording> {
        self.recordings.values().find(|it| it.object() == object)
    }

    /// The tracker's object for a command buffer.
    pub(crate) fn object_of(&self, id: CommandBufferId) -> Option<ObjectId> {
        Some(self.recordings.get(&id)?.object())
    }

    pub(crate) fn remove_object(&mut self, gone: Destroyed) {
        self.engine.remove_object(gone);
        if let Destroyed::Event(id) = gone {
            self.races.forget(id);
        }
        if let Destroyed::CommandBuffer(id) = gone {
            self.recordings.remove(&id);
            self.target_queues.remove(&id);
        }
        if let Some(forgotten_object) = self.history.push_destroyed(gone) {
            self.forgotten_objects.extend(self.objects.forget(forgotten_object));
        }
    }

    /// Processes a step of the host. Returns the findings that it causes, with the ids of the tracker.
    pub(crate) fn step(
        &mut self,
        source: CallSource,
        step: HostStep,
        (labels, stack): (Option<LabelPath>, u32),
    ) -> (Findings, Vec<EventRace>) {
        let batches: &[SubmitBatch] = if let HostStep::Submit { batches, .. } = &step { batches } else { &[] };
        batches.iter().flat_map(|it| &it.command_buffers).for_each(|it| self.finish_repeat(*it));
        let mut submitted = |it: &SubmitBatch| it.command_buffers.iter().map(|it| self.submitted(*it)).collect();
        let buffers: Vec<Vec<SubmittedCommandBuffer>> = batches.iter().map(&mut submitted).collect();
        if let HostStep::Submit { .. } = step {
            self.submits += 1;
        }
        let (index, found) = self.engine.step(&step);
        if let HostStep::Destroy(id) = step {
            self.objects.ordinals.release(id);
        }
        let races = self.races_of(index, &step, &buffers);
        if self.skips_explanations {
            if let HostStep::Destroy(id) = step {
                self.forgotten_objects.extend(self.objects.forget(ForgottenObject::Resource(id)));
            }
            return (found, races);
        }
        self.expect_submission_feedback(index, &step, &buffers);
        let carried_labels = self.open_labels.submit(&step, &buffers);
        let queue_submit = self.count_on_queue(&step);
        let mut kept = HistoryStep::new(index, self.submits, source, step, buffers);
        (kept.labels, kept.carried_labels, kept.stack) = (labels, carried_labels, stack);
        kept.queue_submit = queue_submit;
        for forgotten_object in self.history.push(kept) {
            self.forgotten_objects.extend(self.objects.forget(forgotten_object));
        }
        (found, races)
    }

    fn races_of(&mut self, index: u32, step: &HostStep, buffers: &[Vec<SubmittedCommandBuffer>]) -> Vec<EventRace> {
        if self.races.is_idle() && !buffers.iter().flatten().any(SubmittedCommandBuffer::has_events) {
            return Vec::new();
        }
        let ValidatedDevice { races, recordings, objects, .. } = self;
        let buffer = |id: CommandBufferId| recordings.get(&id).map(|it| it.current().others());
        let mut found = races.step(index, step, &objects.queues, &buffer);
        self.remove_recorded_races(step, &mut found);
        found
    }

    /// Number of commands that repeated the previous recording.
    #[cfg(test)]
    pub(crate) fn repeated(&self) -> usize {
        self.recordings.values().map(|it| it.all_repeated).sum()
    }

    #[cfg(test)]
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.objects.all().len(), self.engine.id_count())
    }

    /// A copy of a command buffer as it is now, with all command buffers that it executes.
    fn submitted(&mut self, id: CommandBufferId) -> SubmittedCommandBuffer {
        let own = self.recordings.get_mut(&id).map(|it| it.freeze().clone());
        let mut executed: Vec<(CommandBufferId, RecordedCommandBuffer)> = Vec::new();
        let mut open: Vec<CommandBufferId> = own.iter().flat_map(|it| it.executes()).collect();
        while let Some(next) = open.pop() {
            let is_known = next == id || executed.iter().any(|it| it.0 == next);
            if let Some(recorded) =
                self.recordings.get_mut(&next).filter(|_| !is_known).map(CommandBufferRecording::freeze)
            {
                open.extend(recorded.executes());
                executed.push((next, recorded.clone()));
            }
        }
        executed.sort_by_key(|it| it.0);
        SubmittedCommandBuffer { own, executed }
    }
}

impl DeviceObjects {
    /// Forgets an object that is destroyed and to which no remembered step refers.
    fn forget(&mut self, forgotten_object: ForgottenObject) -> Option<ObjectId> {
        match forgotten_object {
            ForgottenObject::Resource(id) => {
                self.first_steps.remove(&id);
                self.ordinals.forget(id);
                self.resources.remove(&id).map(|it| it.0)
            }
            ForgottenObject::Other(Destroyed::RenderPass(id)) => self.passes.remove(&id).map(|it| it.0),
            ForgottenObject::Other(Destroyed::Semaphore(id)) => self.semaphores.remove(&id),
            ForgottenObject::Other(Destroyed::Fence(id)) => self.fences.remove(&id),
            ForgottenObject::Other(Destroyed::CommandBuffer(id)) => self.command_buffers.remove(&id),
            ForgottenObject::Other(Destroyed::Event(id)) => self.events.remove(&id),
        }
    }

    /// The queue on which a step happens.
    pub(crate) fn queue_of(&self, step: &HostStep) -> Option<ObjectId> {
        match step {
            HostStep::Submit { queue, .. } | HostStep::Present { queue, .. } => self.queue_objects.get(queue).copied(),
            _ => None,
        }
    }

    /// All objects that have a name.
    pub(crate) fn all(&self) -> Vec<ObjectId> {
        let mut all: Vec<ObjectId> = self.resources.values().map(|it| it.0).collect();
        all.extend(self.passes.values().map(|it| it.0));
        all.extend(self.queue_objects.values().chain(self.semaphores.values()).chain(self.fences.values()));
        all.extend(self.command_buffers.values().chain(self.events.values()));
        all
    }
}
