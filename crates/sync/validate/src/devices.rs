//! The listener of the tracker: passes each notification to the validated device, and reports the findings.

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_abi::{Command as ApiCommand, HandleType, ObjectId};
use lavascope_record::{Call, ObjectNames, Record};
use lavascope_state::{CallSource, Destroyed, DeviceCall, REPEATABLE_COMMANDS, TrackerListener, Untracked};
use lavascope_sync_ir::{
    Access, Certainty, Command, CommandBufferId, EventId, FenceId, HostStep, Queue, QueueId, Region, RenderPass,
    RenderPassId, Resource, ResourceId, SemaphoreId,
};
use rustc_hash::FxHashMap;

use crate::device::{RecordedFindings, ValidatedDevice};
use crate::findings::causes::CauseRegistry;
use crate::findings::diagnostic_builder::DiagnosticBuilder;
use crate::findings::launch::LaunchLocation;
use crate::recording::call_sequence::{BegunRecording, CallSequenceCache, DeviceCommandBuffer};
use crate::recording::command_buffer::{CommandCall, LabelsAtEnd};
use crate::recording::host_polls::{HostPoll, OpenPolls};
use crate::recording::watched::{WatchedAccesses, WatchedCall, WatchedResource, resources_of_step};

/// The most parts of a buffer of which one record of host writes is reported.
const WRITTEN_PARTS_MAX: usize = 8;

#[derive(Default)]
pub(crate) struct ValidatedDevices {
    pub(crate) devices: FxHashMap<ObjectId, ValidatedDevice>,
    pub(crate) object_names: ObjectNames,
    open_polls: OpenPolls,
    /// By command buffer: labels that it closes and that it did not open.
    closed_labels: FxHashMap<ObjectId, u16>,
    /// Whether the calls of the recording that ends now were skipped, because they repeat the last recording.
    is_end_skipped: bool,
    /// Number of commands that were recorded into each command buffer so far, including ignored commands.
    counts: CommandCounts,
    pub(crate) causes: CauseRegistry,
    pub(crate) call_sequences: CallSequenceCache,
    /// None unless somebody watches for accesses.
    pub(crate) watched: Option<Box<WatchedAccesses>>,
    /// The call stack of the current call.
    pub(crate) stack: u32,
    /// Whether submissions are checked, not only the inside of command buffers.
    pub(crate) checks_submissions: bool,
    /// Whether host writes to mapped memory are checked.
    pub(crate) checks_host_writes: bool,
    /// Whether command buffers are checked when they are executed, and not while they are recorded.
    pub(crate) checks_when_executed: bool,
    /// Whether the caches of the engines are off.
    pub(crate) is_cache_disabled: bool,
    /// Whether there are findings since the last query.
    pub(crate) needs_recheck: bool,
    /// How often engines had no addresses for a resource, by reason.
    pub(crate) unplaced: BTreeMap<Untracked, u64>,
    /// What was checked, without the submissions of devices that still exist.
    past_work: CheckedWork,
}

/// How much of the work of devices was seen and checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckedWork {
    /// Accesses of draws, dispatches, copies and other actions, each time they are recorded.
    pub accesses: u64,
    /// Submissions that were checked against those before them.
    pub submits: u64,
    /// Submissions that wait for a semaphore that nothing signals: they were not checked.
    pub blocked_submits: u64,
    /// Submissions that were not checked because submissions are not checked at all.
    pub skipped_submits: u64,
}

impl CheckedWork {
    fn add_device(&mut self, device: &ValidatedDevice) {
        let mut blocked = device.engine.blocked_submissions();
        blocked.sort_unstable();
        blocked.dedup();
        self.blocked_submits += blocked.len() as u64;
        self.submits += device.submits.saturating_sub(blocked.len() as u64);
    }
}

impl ValidatedDevices {
    /// Follows what the tracker ignores: object names, labels, and command counts.
    pub(crate) fn track_names(&mut self, record: Record<'_>) {
        let kind = COMMAND_FLAGS[record.command() as usize];
        if kind & RECORDED != 0 {
            self.counts.add(first_handle(record), kind & LAUNCH != 0);
        }
        if kind & NAMES_AND_LABELS != 0 {
            self.track_object_names(record);
        }
    }

    /// Follows the parameters or the outputs of a call by which the host asks for the progress of the device.
    #[cold]
    pub(crate) fn track_poll(&mut self, thread: u32, record: Record<'_>) {
        if let Some((device, poll)) = self.open_polls.answer(thread, record)
            && let Some(device) = self.devices.get_mut(&device)
        {
            let before_step = device.engine.next_step();
            device.host_polls.push(HostPoll { before_step, ..poll });
        }
    }

    /// The device of a recorded command, and a function that returns the call of the command.
    fn device_and_call(
        &mut self,
        at: &DeviceCall,
    ) -> (Option<&mut ValidatedDevice>, impl FnOnce(ObjectId) -> CommandCall) {
        let ValidatedDevices { devices, counts, object_names, closed_labels, stack, .. } = self;
        let function = at.source.command;
        let is_launch = is_launch(function);
        let call_of = move |object: ObjectId| CommandCall {
            function,
            number: counts.get(object.raw()).commands,
            launch: if is_launch { counts.get(object.raw()).launches } else { 0 },
            labels: object_names.labels(object),
            closed_labels: closed_count(closed_labels, object),
            stack: *stack,
        };
        (devices.get_mut(&at.device), call_of)
    }

    fn track_object_names(&mut self, record: Record<'_>) {
        let object = || ObjectId::from_raw(first_handle(record));
        match record.command() {
            ApiCommand::BeginCommandBuffer => {
                self.counts.begin(first_handle(record));
                object().map(|it| self.closed_labels.remove(&it));
            }
            ApiCommand::CmdEndDebugUtilsLabelEXT | ApiCommand::CmdDebugMarkerEndEXT => {
                if let Some(object) = object().filter(|it| self.object_names.labels(*it).is_none()) {
                    let count = self.closed_labels.entry(object).or_default();
                    *count = count.saturating_add(1);
                }
            }
            _ => {}
        }
        if names_reported_object(record) {
            self.object_names.apply(record);
        }
    }

    /// The number of remembered objects, and the number of ids of the engines.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> (usize, usize) {
        self.devices.values().map(ValidatedDevice::sizes).fold((0, 0), |all, it| (all.0 + it.0, all.1 + it.1))
    }

    /// Counts a draw or dispatch that is about to be recorded.
    #[cfg(test)]
    pub(crate) fn count_launch(&mut self, commands: ObjectId) {
        self.counts.add(commands.raw(), true);
    }

    /// Sets whether the cache of repeated recordings is off.
    #[cfg(test)]
    pub(crate) fn set_never_repeats(&mut self, is_anew: bool) {
        self.devices.values_mut().for_each(|it| it.engine.never_repeats = is_anew);
    }

    /// Applies to the devices that exist as well as to new ones.
    #[cfg(test)]
    pub(crate) fn check_when_executed(&mut self) {
        self.checks_when_executed = true;
        self.devices.values_mut().for_each(ValidatedDevice::check_when_executed);
    }

    /// How much was seen and checked so far.
    pub(crate) fn checked_work(&self) -> CheckedWork {
        let mut work = self.past_work;
        self.devices.values().for_each(|it| work.add_device(it));
        work
    }

    /// Number of commands that repeated the previous recording.
    #[cfg(test)]
    pub(crate) fn repeated(&self) -> usize {
        self.devices.values().map(ValidatedDevice::repeated).sum()
    }

    /// Whether a validator that checks command buffers while they are recorded may have findings.
    pub(crate) fn finish_quick_check(&mut self) -> bool {
        let may_have_findings = self.devices.values_mut().any(|it| it.engine.finish_quick_check());
        may_have_findings || self.needs_recheck || !self.unplaced.is_empty()
    }

    /// Reports blocked submissions, because nothing will signal them any more.
    pub(crate) fn finish(&mut self) {
        let mut all: Vec<ObjectId> = self.devices.keys().copied().collect();
        all.sort_unstable();
        for object_id in all {
            self.report_all_held(object_id);
            self.report_blocked(object_id);
        }
    }

    fn report_blocked(&mut self, id: ObjectId) {
        let Some(device) = self.devices.get_mut(&id).filter(|it| !it.is_blocked_reported) else { return };
        device.is_blocked_reported = true;
        let builder =
            DiagnosticBuilder { id, device, recording: None, feedback: None, object_names: &self.object_names };
        builder.report_blocked(&mut self.causes);
    }

    /// The progress of the queues of a device, as far as the host knows it.
    pub(crate) fn queue_progress(&self, device: ObjectId) -> Vec<String> {
        self.devices.get(&device).map_or_else(Vec::new, |it| it.queue_progress(&self.object_names))
    }

    /// See [`ValidatedDevice::locate_launch`].
    pub(crate) fn locate_launch(
        &self,
        device: ObjectId,
        command_buffer: ObjectId,
        launch: (u32, ApiCommand),
    ) -> Option<LaunchLocation> {
        self.devices.get(&device)?.locate_launch(command_buffer, launch, &self.object_names)
    }

    /// Undoes what a call did to the devices.
    pub(crate) fn undo_steps(&mut self, source: CallSource) {
        // The remaining steps get new numbers.
        let all: Vec<ObjectId> = self.devices.iter().filter(|it| it.1.feedback.is_some()).map(|it| *it.0).collect();
        all.into_iter().for_each(|it| self.report_all_held(it));
        self.devices.values_mut().any(|it| it.undo_steps(source));
        self.causes.shared_fixes.clear();
    }

    /// Repeats all commands of the previous recording. Returns false if that is impossible.
    pub(crate) fn repeat_all(&mut self, place: DeviceCommandBuffer) -> bool {
        let device = self.devices.get_mut(&place.device);
        let accesses = device.and_then(|it| it.repeat_all(place.id).then(|| it.access_count(place.id)));
        let is_same = accesses.is_some();
        self.past_work.accesses += accesses.unwrap_or(0) as u64;
        self.is_end_skipped = is_same;
        is_same
    }

    /// Reports findings inside a command buffer that is being recorded: makes diagnostics of them.
    #[cold]
    fn report_recorded(&mut self, at: DeviceCall, id: CommandBufferId, found: &RecordedFindings) {
        if self.checks_when_executed {
            // The engine reports hazards later (`finish_quick_check`).
            self.needs_recheck |= !found.races.is_empty();
            return;
        }
        let RecordedFindings { findings: found, races } = found;
        self.call_sequences.invalidate_last();
        let Some(device) = self.devices.get_mut(&at.device) else { return };
        let kept = device.as_single_submission(id, at.source);
        let hazards = device.hold_recorded(id, &kept, found.hazards.clone());
        let builder = DiagnosticBuilder {
            id: at.device,
            device,
            recording: Some(&kept),
            feedback: None,
            object_names: &self.object_names,
        };
        let first = self.causes.diagnostics.len();
        builder.report_hazards(&hazards, &mut self.causes);
        builder.report_faults(&found.faults, &mut self.causes);
        builder.report_races(races, &mut self.causes);
        self.causes.await_neighbors(at.device, id, first);
    }

    /// Compares the accesses of a call with those that are watched.
    #[cold]
    fn watch(&mut self, at: &DeviceCall, id: Option<CommandBufferId>, mut resources: Vec<WatchedResource>) {
        let ValidatedDevices { devices, counts, object_names, watched, .. } = self;
        let (Some(device), Some(watched)) = (devices.get(&at.device), watched) else { return };
        let commands = id.and_then(|it| device.object_of(it));
        let call = WatchedCall {
            // The host itself accesses mapped memory.
            function: if id.is_some() || is_presentation(at.source.command) {
                at.source.command.desc().name
            } else {
                "the host"
            },
            label: commands.and_then(|it| object_names.labels(it)?.last().cloned()),
            place: commands.map(|it| (it, counts.get(it.raw()).commands)),
        };
        resources.sort_unstable();
        resources.dedup();
        for WatchedResource { resource, is_write } in resources {
            let object = device.objects.diagnostic_resource(resource, object_names);
            watched.compare(&call, &object, is_write, object_names);
        }
    }

    /// Counts resources for which the engine of a device had no addresses.
    fn count_unplaced(&mut self, at: DeviceCall) {
        let device = self.devices.get_mut(&at.device).filter(|it| it.engine.has_unplaced());
        let unplaced = device.map(|it| it.engine.take_unplaced());
        for (why, count) in unplaced.into_iter().flatten() {
            let missing = Untracked { command: at.source.command, reason: why.reason() };
            *self.unplaced.entry(missing).or_default() += count;
        }
    }

    fn device_at(&mut self, at: DeviceCall) -> Option<&mut ValidatedDevice> {
        self.devices.get_mut(&at.device)
    }
}

impl TrackerListener for ValidatedDevices {
    fn device(&mut self, at: DeviceCall, queues: &[Queue]) {
        let mut device = ValidatedDevice::new(queues);
        if self.checks_when_executed {
            device.check_when_executed();
        }
        if self.is_cache_disabled {
            device.engine.disable_caches();
        }
        self.devices.insert(at.device, device);
    }

    fn synchronization2(&mut self, at: DeviceCall) {
        if let Some(device) = self.device_at(at) {
            device.versions.has_synchronization2 = true;
        }
    }

    fn device_destroyed(&mut self, at: DeviceCall) {
        self.report_all_held(at.device);
        match self.devices.get_mut(&at.device).filter(|_| self.checks_when_executed) {
            Some(device) => self.needs_recheck |= device.engine.finish_quick_check(),
            None => self.report_blocked(at.device),
        }
        if let Some(device) = self.devices.get(&at.device) {
            self.past_work.add_device(device);
        }
        for object in self.devices.remove(&at.device).iter().flat_map(|it| it.objects.all()) {
            self.counts.remove(object.raw());
            self.closed_labels.remove(&object);
            self.call_sequences.remove(object);
            self.object_names.remove(object);
        }
    }

    fn queue(&mut self, at: DeviceCall, id: QueueId, object: ObjectId) {
        if let Some(validated_device) = self.device_at(at) {
            validated_device.add_queue(id, object);
        }
    }

    fn resource(&mut self, at: DeviceCall, id: ResourceId, object: ObjectId, resource: &Resource) {
        if let Some(validated_device) = self.device_at(at) {
            let is_swapchain_image = at.source.command == ApiCommand::GetSwapchainImagesKHR;
            validated_device.add_resource(id, object, resource, is_swapchain_image);
            self.count_unplaced(at);
        }
    }

    fn unbound_destroyed(&mut self, _: DeviceCall, object: ObjectId) {
        self.object_names.remove(object);
    }

    fn render_pass(&mut self, at: DeviceCall, id: RenderPassId, object: ObjectId, pass: &RenderPass) {
        if let Some(validated_device) = self.device_at(at) {
            validated_device.add_render_pass(id, object, pass);
        }
    }

    fn event(&mut self, at: DeviceCall, id: EventId, object: ObjectId) {
        if let Some(validated_device) = self.device_at(at) {
            validated_device.add_event(id, object);
        }
    }

    fn semaphore(&mut self, at: DeviceCall, id: SemaphoreId, object: ObjectId) {
        if let Some(validated_device) = self.device_at(at) {
            validated_device.add_semaphore(id, object);
        }
    }

    fn fence(&mut self, at: DeviceCall, id: FenceId, object: ObjectId) {
        if let Some(validated_device) = self.device_at(at) {
            validated_device.add_fence(id, object);
        }
    }

    fn command_buffer(&mut self, at: DeviceCall, id: CommandBufferId, object: ObjectId, queue: Queue) {
        if let Some(validated_device) = self.device_at(at) {
            validated_device.add_command_buffer(id, object, queue);
        }
    }

    fn begin(&mut self, at: DeviceCall, id: CommandBufferId, object: ObjectId, is_secondary: bool) {
        self.report_held(at, id);
        if self.causes.awaits_neighbors() {
            // The recording before did not end.
            self.causes.complete_neighbors((at.device, id), |_| None);
        }
        let Some(other) = self.device_at(at) else { return };
        let may_repeat = other.begin(id, object, is_secondary);
        let place = DeviceCommandBuffer { device: at.device, id };
        // The accesses of a secondary command buffer may become known later, so its recording is not cached.
        self.call_sequences.begun = (!is_secondary).then_some(BegunRecording { buffer: place, may_repeat });
    }

    fn command_recorded(&mut self, at: DeviceCall, id: CommandBufferId, command: Command) {
        if let Some(watched) = &mut self.watched {
            let resources = watched.resources_of(id, &command);
            self.watch(&at, Some(id), resources);
        }
        let (Some(device), call_of) = self.device_and_call(&at) else { return };
        let found = device.validate_command(id, command, call_of);
        if !found.is_empty() {
            self.report_recorded(at, id, &found);
        }
    }

    fn action_recorded(&mut self, at: &DeviceCall, id: CommandBufferId, accesses: &[Access]) {
        self.past_work.accesses += accesses.len() as u64;
        if self.watched.is_some() {
            self.watch(at, Some(id), accesses.iter().map(WatchedResource::of).collect());
        }
        let (Some(device), call_of) = self.device_and_call(at) else { return };
        // None if the command repeats the last recording, or has no hazards.
        if let Some(findings) = device.validate_action(id, accesses, call_of) {
            self.report_recorded(*at, id, &RecordedFindings { findings: *findings, races: Vec::new() });
        }
    }

    fn replace_command(&mut self, at: DeviceCall, id: CommandBufferId, index: u32, command: Command) {
        if let Some(validated_device) = self.device_at(at) {
            validated_device.replace_command(id, index, command);
        }
    }

    fn cancel_command(&mut self, at: DeviceCall, id: CommandBufferId) {
        let Some(device) = self.devices.get_mut(&at.device) else { return };
        device.undo_last_command(id);
        if let Some(object) = device.object_of(id) {
            self.counts.undo(object.raw(), is_launch(at.source.command));
        }
    }

    fn end(&mut self, at: DeviceCall, id: CommandBufferId) {
        let is_skipped = std::mem::take(&mut self.is_end_skipped);
        let ValidatedDevices { devices, object_names, closed_labels, causes, .. } = self;
        let Some(device) = devices.get_mut(&at.device) else { return };
        device.end_recording(id);
        if causes.awaits_neighbors() {
            causes.complete_neighbors((at.device, id), |index| device.function_at(id, index));
        }
        if let Some(object) = device.object_of(id).filter(|_| !is_skipped) {
            let open = object_names.labels(object);
            device.set_labels_at_end(id, LabelsAtEnd { closed: closed_count(closed_labels, object), open });
        }
    }

    fn reset(&mut self, at: DeviceCall, id: CommandBufferId) {
        self.report_held(at, id);
        if let Some(validated_device) = self.device_at(at) {
            validated_device.reset(id);
        }
    }

    fn step(&mut self, at: DeviceCall, step: HostStep) {
        if !self.devices.contains_key(&at.device) {
            return;
        }
        let is_presentation = matches!(step, HostStep::Present { .. });
        // A destroyed object is removed even if submissions are not checked.
        if !self.checks_submissions && !matches!(step, HostStep::Destroy(_)) {
            self.past_work.skipped_submits += u64::from(matches!(step, HostStep::Submit { .. }));
            return;
        }
        if self.watched.is_some() {
            self.watch(&at, None, resources_of_step(&step));
        }
        let Some(device) = self.devices.get_mut(&at.device) else { return };
        let labels = device.objects.queue_of(&step).and_then(|it| self.object_names.labels(it));
        let (found, races) = device.step(at.source, step, (labels, self.stack));
        if self.checks_when_executed {
            self.needs_recheck |= !(found.is_empty() && races.is_empty());
            device.forgotten_objects.drain(..).for_each(|it| self.object_names.remove(it));
            return self.count_unplaced(at);
        }
        let hazards = device.hold_step(found.hazards);
        let builder = DiagnosticBuilder {
            id: at.device,
            device,
            recording: None,
            feedback: None,
            object_names: &self.object_names,
        };
        builder.report_hazards(&hazards, &mut self.causes);
        builder.report_faults(&found.faults, &mut self.causes);
        builder.report_races(&races, &mut self.causes);
        if is_presentation {
            device.frames += 1;
            self.causes.count_presentation();
        }
        device.forgotten_objects.drain(..).for_each(|it| self.object_names.remove(it));
        self.count_unplaced(at);
        self.decide_submissions(at.device);
    }

    fn uses_bytes(&self, at: DeviceCall, resource: ResourceId, bytes: Range<u64>) -> bool {
        let is_checked = self.checks_submissions && self.checks_host_writes;
        let device = self.devices.get(&at.device).filter(|_| is_checked);
        device.is_some_and(|it| !it.engine.bytes_in_use(resource, &[bytes]).is_empty())
    }

    fn host_write(&mut self, at: DeviceCall, resource: ResourceId, bytes: &[Range<u64>], certainty: Certainty) {
        let Some(device) = self.devices.get(&at.device) else { return };
        // What nothing uses is no step: programs write much, and the history is short.
        for range in device.engine.bytes_in_use(resource, bytes).into_iter().take(WRITTEN_PARTS_MAX) {
            let region = Region::Buffer(range);
            self.step(at, HostStep::HostAccess { resource, region, is_write: true, certainty });
        }
    }

    fn destroyed(&mut self, at: DeviceCall, gone: Destroyed) {
        if let Destroyed::CommandBuffer(id) = gone {
            self.report_held(at, id);
        }
        let Some(device) = self.devices.get_mut(&at.device) else { return };
        if let Destroyed::CommandBuffer(id) = gone
            && let Some(object) = device.object_of(id)
        {
            self.counts.remove(object.raw());
            self.closed_labels.remove(&object);
            self.call_sequences.remove(object);
        }
        device.remove_object(gone);
        device.forgotten_objects.drain(..).for_each(|it| self.object_names.remove(it));
    }
}

/// Whether an access of such a call is one of the presentation engine.
fn is_presentation(command: ApiCommand) -> bool {
    use ApiCommand as C;
    matches!(command, C::QueuePresentKHR | C::AcquireNextImageKHR | C::AcquireNextImage2KHR)
}

/// How many labels a command buffer has closed that it did not open: none, in nearly every program.
fn closed_count(all: &FxHashMap<ObjectId, u16>, object: ObjectId) -> u16 {
    if all.is_empty() { 0 } else { all.get(&object).copied().unwrap_or(0) }
}

/// Number of commands that were recorded into each command buffer.
#[derive(Default)]
struct CommandCounts {
    /// The last used command buffer, and its count. The next command mostly goes into the same one.
    last: (u64, CommandCount),
    others: FxHashMap<u64, CommandCount>,
}

#[derive(Clone, Copy, Default)]
struct CommandCount {
    commands: u32,
    /// Number of draws and dispatches among them.
    launches: u32,
}

impl CommandCounts {
    /// The count of a command buffer, which becomes the last used one.
    fn select(&mut self, buffer: u64) -> &mut CommandCount {
        if self.last.0 != buffer {
            let (last, count) = self.last;
            self.others.extend((last != 0).then_some((last, count)));
            self.last = (buffer, self.others.remove(&buffer).unwrap_or_default());
        }
        &mut self.last.1
    }

    fn begin(&mut self, buffer: u64) {
        *self.select(buffer) = CommandCount::default();
    }

    fn add(&mut self, buffer: u64, is_launch: bool) {
        let count = self.select(buffer);
        count.commands += 1;
        count.launches += u32::from(is_launch);
    }

    fn undo(&mut self, buffer: u64, is_launch: bool) {
        let count = self.select(buffer);
        count.commands = count.commands.saturating_sub(1);
        count.launches = count.launches.saturating_sub(u32::from(is_launch));
    }

    fn get(&self, buffer: u64) -> CommandCount {
        match self.last {
            (last, count) if last == buffer => count,
            _ => self.others.get(&buffer).copied().unwrap_or_default(),
        }
    }

    fn remove(&mut self, buffer: u64) {
        if self.last.0 == buffer {
            self.last = (0, CommandCount::default());
        }
        self.others.remove(&buffer);
    }
}

/// Whether a record names an object that diagnostics may mention. Other names would only fill memory.
fn names_reported_object(record: Record<'_>) -> bool {
    let object = match Call::of(record) {
        Some(Call::SetDebugUtilsObjectNameEXT(params)) => params.p_name_info().map(|it| it.object_handle),
        Some(Call::DebugMarkerSetObjectNameEXT(params)) => params.p_name_info().map(|it| it.object),
        // Labels, and records that name nothing.
        _ => return true,
    };
    let ours = [
        HandleType::Buffer,
        HandleType::Image,
        HandleType::RenderPass,
        HandleType::Semaphore,
        HandleType::Fence,
        HandleType::Event,
        HandleType::CommandBuffer,
        HandleType::Queue,
    ];
    object.and_then(ObjectId::from_raw).and_then(ObjectId::ty).is_some_and(|it| ours.contains(&it))
}

/// The command is recorded into a command buffer.
const RECORDED: u8 = 1;
/// The command sets names or labels.
const NAMES_AND_LABELS: u8 = 2;
/// The command runs shaders.
const LAUNCH: u8 = 4;

/// A command may be in a cached call sequence: see [`RecordingCall::Repeatable`].
const REPEATABLE: u8 = 8;

/// Properties of each command. Every record looks them up.
const COMMAND_FLAGS: [u8; ApiCommand::ALL.len()] = {
    let mut kinds = [0; ApiCommand::ALL.len()];
    let mut at = 0;
    while at < kinds.len() {
        kinds[at] = command_flags(ApiCommand::ALL[at]);
        at += 1;
    }
    at = 0;
    while at < REPEATABLE_COMMANDS.len() {
        kinds[REPEATABLE_COMMANDS[at] as usize] |= REPEATABLE;
        at += 1;
    }
    kinds
};

const fn command_flags(command: ApiCommand) -> u8 {
    use ApiCommand as C;
    let recorded = match command.desc().name.as_bytes() {
        [b'v', b'k', b'C', b'm', b'd', ..] => RECORDED,
        _ => 0,
    };
    let titles = match command {
        C::BeginCommandBuffer
        | C::SetDebugUtilsObjectNameEXT
        | C::DebugMarkerSetObjectNameEXT
        | C::CmdBeginDebugUtilsLabelEXT
        | C::CmdEndDebugUtilsLabelEXT
        | C::CmdDebugMarkerBeginEXT
        | C::CmdDebugMarkerEndEXT
        | C::QueueBeginDebugUtilsLabelEXT
        | C::QueueEndDebugUtilsLabelEXT => NAMES_AND_LABELS,
        _ => 0,
    };
    let launch = match command {
        // These run graphs, not the bound pipeline.
        C::CmdDispatchGraphAMDX
        | C::CmdDispatchGraphIndirectAMDX
        | C::CmdDispatchGraphIndirectCountAMDX
        | C::CmdDispatchDataGraphARM => 0,
        _ => match command.desc().name.as_bytes() {
            [b'v', b'k', b'C', b'm', b'd', b'D', b'r', b'a', b'w', ..]
            | [b'v', b'k', b'C', b'm', b'd', b'D', b'i', b's', b'p', b'a', b't', b'c', b'h', ..]
            | [b'v', b'k', b'C', b'm', b'd', b'T', b'r', b'a', b'c', b'e', b'R', b'a', b'y', b's', ..] => LAUNCH,
            _ => 0,
        },
    };
    recorded | titles | launch
}

/// Whether a command runs shaders: a draw, a dispatch, or a ray tracing command.
pub fn is_launch(command: ApiCommand) -> bool {
    COMMAND_FLAGS[command as usize] & LAUNCH != 0
}

/// The role of a call in the recording of a command buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordingCall {
    /// Not a part of a recording.
    Other,
    Begins,
    /// A command whose effect depends only on its parameters and on earlier commands, as long as no object is created
    /// or destroyed.
    Repeatable,
    /// Any other command.
    NotRepeatable,
    Ends,
}

#[inline]
pub(crate) fn recording_call(command: ApiCommand) -> RecordingCall {
    match COMMAND_FLAGS[command as usize] & (RECORDED | REPEATABLE) {
        0 if command == ApiCommand::BeginCommandBuffer => RecordingCall::Begins,
        0 if command == ApiCommand::EndCommandBuffer => RecordingCall::Ends,
        RECORDED => RecordingCall::NotRepeatable,
        0 => RecordingCall::Other,
        _ => RecordingCall::Repeatable,
    }
}

/// Whether a command is recorded into a command buffer.
pub(crate) fn is_recorded(command: ApiCommand) -> bool {
    COMMAND_FLAGS[command as usize] & RECORDED != 0
}

fn first_handle(record: Record<'_>) -> u64 {
    record.image().first().copied().unwrap_or(0)
}
