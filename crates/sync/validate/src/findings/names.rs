//! How messages name functions and objects: the API's function names, object ids, and the application's debug names.

use lavascope_abi::ObjectId;
use lavascope_diag::{CommandNeighbors, DebugLabels, DiagnosticObject};
use lavascope_explain::{CommandSequenceNumber, ExecutorNames, ProgramNames, object_type, resource_description};
use lavascope_record::ObjectNames;
use lavascope_sync_ir::{
    CommandBufferId, CommandLocation, FenceId, HostStep, ProgramLocation, QueueId, RenderPassId, ResourceId,
    SemaphoreId,
};

use crate::device::DeviceObjects;
use crate::findings::program_slice::ProgramSlice;
use crate::map_ids::UNKNOWN_ID;
use crate::recording::command_buffer::{CommandCall, RecordedCommandBuffer};
use crate::recording::step_history::{HistoryStep, step_of};

/// `VkBuffer#3 "vertices"`.
pub(crate) fn object_text(object: ObjectId, titles: &ObjectNames) -> String {
    match titles.name(object) {
        Some(name) => format!("{object} {name:?}"),
        None => object.to_string(),
    }
}

/// `command 3 of VkCommandBuffer#1 "upload"`.
pub(crate) fn recorded_text(recorded: &RecordedCommandBuffer, index: u32, titles: &ObjectNames) -> String {
    let own = object_text(recorded.object, titles);
    match recorded.calls.get(index as usize) {
        Some(call) => format!("command {} of {own}", call.number),
        None => format!("the end of {own}"),
    }
}

/// `vkCmdDraw in Shadows`, as far as the command buffer itself knows.
pub(crate) fn function_text(call: &CommandCall) -> String {
    let name = call.function.desc().name;
    call.labels.as_ref().map_or_else(|| name.to_owned(), |it| format!("{name} in {}", it.join("::")))
}

/// `vkCmdDraw in Frame::Shadows`, with all labels around the command where it is executed.
pub(crate) fn executed_function_text(call: &CommandCall, labels: &DebugLabels) -> String {
    let name = call.function.desc().name;
    labels.path().map_or_else(|| name.to_owned(), |it| format!("{name} in {it}"))
}

/// What was recorded around a command, of what has accesses or dependencies.
pub(crate) fn command_neighbors(recorded: &RecordedCommandBuffer, index: u32) -> Option<CommandNeighbors> {
    let name = |at: Option<usize>| Some(recorded.calls.get(at?)?.function.desc().name.to_owned());
    let at = index as usize;
    let number = recorded.calls.get(at)?.number;
    Some(CommandNeighbors {
        index: number.saturating_sub(1),
        before: name(at.checked_sub(1)),
        after: name(at.checked_add(1)),
    })
}

/// `submit 4 on VkQueue#0`, or the call that something else is.
pub(crate) fn step_text(kept: &HistoryStep, objects: &DeviceObjects, titles: &ObjectNames) -> String {
    match &kept.step {
        _ if kept.is_recording() => "the recording".to_owned(),
        HostStep::Submit { queue, .. } => format!("submit {} on {}", kept.submit, queue_text(*queue, objects, titles)),
        _ => {
            let source = kept.source;
            let what = if kept.is_noticed_write() { "the write before " } else { "" };
            format!("{what}{}, call {} of thread {}", source.command.desc().name, source.call, source.thread)
        }
    }
}

/// An object as the application knows it.
pub(crate) fn diagnostic_object(kind: &'static str, object: ObjectId, titles: &ObjectNames) -> DiagnosticObject {
    DiagnosticObject::new(kind, object.serial(), titles.name(object).map(str::to_owned))
}

impl DeviceObjects {
    /// Like `diagnostic_object`, for a resource, with its properties.
    pub(crate) fn diagnostic_resource(&self, id: ResourceId, titles: &ObjectNames) -> DiagnosticObject {
        let Some((object, resource)) = self.resources.get(&id) else {
            return DiagnosticObject::new(object_type(None), 0, None);
        };
        DiagnosticObject {
            description: Some(resource_description(resource)),
            ordinal: self.ordinals.ordinal(id),
            is_swapchain_image: self.ordinals.is_swapchain_image(id),
            ..diagnostic_object(object_type(Some(resource)), *object, titles)
        }
    }
}

pub(crate) fn queue_text(queue: QueueId, objects: &DeviceObjects, titles: &ObjectNames) -> String {
    objects.queue_objects.get(&queue).map_or_else(|| format!("queue {}", queue.0), |it| object_text(*it, titles))
}

/// The names of a slice.
pub(crate) struct SliceNames<'a> {
    pub(crate) slice: &'a ProgramSlice<'a>,
    pub(crate) objects: &'a DeviceObjects,
    pub(crate) object_names: &'a ObjectNames,
}

impl SliceNames<'_> {
    fn object_text(&self, object: Option<&ObjectId>, kind: &str) -> String {
        object.map_or_else(|| kind.to_owned(), |it| object_text(*it, self.object_names))
    }

    /// The command buffer of a location, and the index of the command in it.
    fn find(&self, at: &CommandLocation) -> Option<(&RecordedCommandBuffer, u32)> {
        let program = &self.slice.program;
        let HostStep::Submit { batches, .. } = program.steps.get(at.step as usize)? else { return None };
        let mut buffer = *batches.get(at.batch as usize)?.command_buffers.get(at.primary as usize)?;
        let (last, way) = at.path.split_last()?;
        for step in way.chunks_exact(2) {
            let commands = &program.command_buffers.get(buffer.0 as usize)?.commands;
            let lavascope_sync_ir::Command::Execute(all) = commands.get(step[0] as usize)? else { return None };
            buffer = *all.get(step[1] as usize)?;
        }
        Some((self.slice.recorded_buffers.get(buffer.0 as usize)?, *last))
    }

    fn command_call(&self, place: &ProgramLocation) -> Option<&CommandCall> {
        let ProgramLocation::Command(at) = place else { return None };
        let (recorded, index) = self.find(at)?;
        recorded.calls.get(index as usize)
    }
}

impl ProgramNames for SliceNames<'_> {
    fn resource(&self, resource: ResourceId) -> String {
        let id = self.slice.resources.get(resource.0 as usize);
        self.object_text(id.and_then(|it| self.objects.resources.get(it)).map(|it| &it.0), "a resource")
    }

    fn queue(&self, queue: QueueId) -> String {
        queue_text(queue, self.objects, self.object_names)
    }

    fn location(&self, place: &ProgramLocation) -> String {
        let at = match place {
            ProgramLocation::Step(step) => return self.step(*step),
            ProgramLocation::Command(at) => at,
        };
        let Some((recorded, index)) = self.find(at) else { return self.batch(at.step, at.batch) };
        let mut text = recorded_text(recorded, index, self.object_names);
        if at.path.len() > 1
            && let Some((primary, index)) = self.find(&CommandLocation { path: at.path[..1].to_vec(), ..at.clone() })
        {
            text += &format!(", executed by {}", recorded_text(primary, index, self.object_names));
        }
        // The command buffer is still being recorded.
        if self.slice.steps.get(at.step as usize).is_some_and(|it| it.is_recording()) {
            return text;
        }
        format!("{text}, {}", self.batch(at.step, at.batch))
    }

    fn recorded_command(&self, buffer: CommandBufferId, command: u32) -> String {
        match self.slice.recorded_buffers.get(buffer.0 as usize) {
            Some(recorded) => recorded_text(recorded, command, self.object_names),
            None => "a command buffer".to_owned(),
        }
    }

    fn function(&self, place: &ProgramLocation, _stage: u64) -> String {
        if let Some(call) = self.command_call(place) {
            return call.function.desc().name.to_owned();
        }
        let ProgramLocation::Step(step) = place else { return "a command".to_owned() };
        match self.slice.steps.get(*step as usize) {
            Some(kept) if matches!(kept.step, HostStep::Present { .. } | HostStep::Acquire { .. }) => {
                kept.source.command.desc().name.to_owned()
            }
            _ => "the host".to_owned(),
        }
    }

    fn step(&self, step: u32) -> String {
        let kept = self.slice.steps.get(step as usize);
        kept.map_or_else(|| "a submission".to_owned(), |it| step_text(it, self.objects, self.object_names))
    }

    fn noticed_before(&self, step: u32) -> Option<String> {
        let kept = self.slice.steps.get(step as usize).filter(|it| it.is_noticed_write())?;
        Some(kept.source.command.desc().name.to_owned())
    }

    fn batch(&self, step: u32, batch: u32) -> String {
        match self.slice.program.steps.get(step as usize) {
            Some(HostStep::Submit { batches, .. }) if batches.len() > 1 => {
                format!("batch {batch} of {}", self.step(step))
            }
            _ => self.step(step),
        }
    }

    fn render_pass(&self, pass: RenderPassId) -> String {
        let id = self.slice.passes.get(pass.0 as usize);
        self.object_text(id.and_then(|it| self.objects.passes.get(it)).map(|it| &it.0), "a render pass")
    }

    fn semaphore(&self, semaphore: SemaphoreId) -> String {
        let id = self.slice.semaphores.get(semaphore.0 as usize);
        self.object_text(id.and_then(|it| self.objects.semaphores.get(it)), "a semaphore")
    }

    fn fence(&self, fence: FenceId) -> String {
        let id = self.slice.fences.get(fence.0 as usize);
        self.object_text(id.and_then(|it| self.objects.fences.get(it)), "a fence")
    }

    fn source(&self, place: &ProgramLocation) -> Option<String> {
        Some(executed_function_text(self.command_call(place)?, &self.labels(place)))
    }

    fn object(&self, resource: ResourceId) -> DiagnosticObject {
        let id = self.slice.resources.get(resource.0 as usize);
        let id = id.copied().unwrap_or(ResourceId(UNKNOWN_ID));
        self.objects.diagnostic_resource(id, self.object_names)
    }

    fn labels(&self, place: &ProgramLocation) -> DebugLabels {
        let kept = self.slice.steps.get(step_of(place) as usize);
        kept.map_or_else(DebugLabels::default, |it| it.labels_at(place))
    }

    fn path(&self, place: &ProgramLocation, stage: u64) -> Vec<String> {
        let ProgramLocation::Command(at) = place else { return vec![self.function(place, stage)] };
        // Of each command buffer in the path: first the commands that execute the next one, then the command itself.
        let ends = (1..=at.path.len()).step_by(2);
        let part = |end| ProgramLocation::Command(CommandLocation { path: at.path[..end].to_vec(), ..at.clone() });
        ends.map(|it| self.function(&part(it), stage)).collect()
    }

    fn submitting_call(&self, place: &ProgramLocation) -> Option<String> {
        let kept = self.slice.steps.get(step_of(place) as usize)?;
        Some(kept.source.command.desc().name.to_owned())
    }

    fn executor(&self, place: &ProgramLocation) -> Option<ExecutorNames> {
        let ProgramLocation::Command(at) = place else { return None };
        let (recorded, _) = self.find(at)?;
        let HostStep::Submit { queue, .. } = self.slice.program.steps.get(at.step as usize)? else { return None };
        Some(ExecutorNames {
            command_buffer: object_text(recorded.object, self.object_names),
            queue: self.queue(*queue),
        })
    }

    fn submit_index(&self, step: u32) -> u64 {
        self.slice.steps.get(step as usize).map_or(0, |it| it.queue_submit)
    }

    fn call_stack(&self, place: &ProgramLocation) -> Option<u32> {
        let own = match place {
            ProgramLocation::Command(_) => self.command_call(place)?.stack,
            ProgramLocation::Step(step) => self.slice.steps.get(*step as usize)?.stack,
        };
        Some(own).filter(|it| *it != 0)
    }

    fn recorded_stack(&self, buffer: CommandBufferId, command: u32) -> u32 {
        let recorded = self.slice.recorded_buffers.get(buffer.0 as usize);
        recorded.and_then(|it| it.calls.get(command as usize)).map_or(0, |it| it.stack)
    }

    fn recorded_function(&self, buffer: CommandBufferId, command: u32) -> String {
        let recorded = self.slice.recorded_buffers.get(buffer.0 as usize);
        match recorded.and_then(|it| it.calls.get(command as usize)) {
            Some(call) => call.function.desc().name.to_owned(),
            None => "vkEndCommandBuffer".to_owned(),
        }
    }

    fn neighbors(&self, place: &ProgramLocation) -> Option<CommandNeighbors> {
        let ProgramLocation::Command(at) = place else { return None };
        let (recorded, index) = self.find(at)?;
        command_neighbors(recorded, index)
    }

    fn sequence(&self, place: &ProgramLocation) -> Option<CommandSequenceNumber> {
        let ProgramLocation::Command(at) = place else { return None };
        let (recorded, index) = self.find(at)?;
        Some(CommandSequenceNumber { command: index + 1, resets: recorded.resets })
    }
}
