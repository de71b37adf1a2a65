//! What the things of a running program are called: functions, object numbers, and the application's own names.

use lavascope_abi::ObjectId;
use lavascope_diag::{Labels, Object};
use lavascope_explain::{Executor, Names, Sequence, description, kind_of};
use lavascope_record::{LabelPath, ObjectNames};
use lavascope_sync_ir::{
    CommandLocation, CommandBufferId, FenceId, ProgramLocation, QueueId, RenderPassId, Resource, ResourceId, SemaphoreId, HostStep,
};

use crate::device::Objects;
use crate::recording::{Mark, Recorded};
use crate::slice::Slice;
use crate::window::{Kept, step_of};

/// `VkBuffer#3 "vertices"`.
pub(crate) fn title(object: ObjectId, titles: &ObjectNames) -> String {
    match titles.name(object) {
        Some(name) => format!("{object} {name:?}"),
        None => object.to_string(),
    }
}

/// `command 3 of VkCommandBuffer#1 "upload"`.
pub(crate) fn recorded_text(recorded: &Recorded, index: u32, titles: &ObjectNames) -> String {
    let own = title(recorded.object, titles);
    match recorded.marks.get(index as usize) {
        Some(mark) => format!("command {} of {own}", mark.number),
        None => format!("the end of {own}"),
    }
}

/// `vkCmdDraw in Frame::Shadows`.
pub(crate) fn function_text(mark: &Mark) -> String {
    let name = mark.function.desc().name;
    mark.labels.as_ref().map_or_else(|| name.to_owned(), |it| format!("{name} in {}", it.join("::")))
}

/// `submit 4 on VkQueue#0`, or the call that something else is.
pub(crate) fn step_text(kept: &Kept, objects: &Objects, titles: &ObjectNames) -> String {
    match &kept.step {
        _ if kept.is_recording() => "the recording".to_owned(),
        HostStep::Submit { queue, .. } => format!("submit {} on {}", kept.submit, queue_text(*queue, objects, titles)),
        _ => {
            let source = kept.source;
            format!("{}, call {} of thread {}", source.command.desc().name, source.call, source.thread)
        }
    }
}

/// The debug labels around something.
pub(crate) fn labels(kept: &Kept, mark: Option<&Mark>) -> Labels {
    let list = |it: Option<&LabelPath>| it.iter().flat_map(|it| it.iter()).map(|it| it.to_string()).collect();
    Labels { queue: list(kept.labels.as_ref()), commands: list(mark.and_then(|it| it.labels.as_ref())) }
}

/// An object as the application knows it.
pub(crate) fn named(kind: &'static str, object: ObjectId, titles: &ObjectNames) -> Object {
    Object::new(kind, object.serial(), titles.name(object).map(str::to_owned))
}

/// The same of a resource, with what it is like.
pub(crate) fn named_resource(it: &(ObjectId, Resource), titles: &ObjectNames) -> Object {
    Object { description: Some(description(&it.1)), ..named(kind_of(Some(&it.1)), it.0, titles) }
}

pub(crate) fn queue_text(queue: QueueId, objects: &Objects, titles: &ObjectNames) -> String {
    objects.queue_objects.get(&queue).map_or_else(|| format!("queue {}", queue.0), |it| title(*it, titles))
}

/// The names of a slice.
pub(crate) struct LiveNames<'a> {
    pub(crate) slice: &'a Slice<'a>,
    pub(crate) objects: &'a Objects,
    pub(crate) titles: &'a ObjectNames,
}

impl LiveNames<'_> {
    fn title(&self, object: Option<&ObjectId>, kind: &str) -> String {
        object.map_or_else(|| kind.to_owned(), |it| title(*it, self.titles))
    }

    /// The command buffer of a place, and the index in there.
    fn find(&self, at: &CommandLocation) -> Option<(&Recorded, u32)> {
        let program = &self.slice.program;
        let HostStep::Submit { batches, .. } = program.steps.get(at.step as usize)? else { return None };
        let mut buffer = *batches.get(at.batch as usize)?.command_buffers.get(at.primary as usize)?;
        let (last, way) = at.path.split_last()?;
        for step in way.chunks_exact(2) {
            let commands = &program.command_buffers.get(buffer.0 as usize)?.commands;
            let lavascope_sync_ir::Command::Execute(all) = commands.get(step[0] as usize)? else { return None };
            buffer = *all.get(step[1] as usize)?;
        }
        Some((self.slice.buffers.get(buffer.0 as usize)?, *last))
    }

    fn mark(&self, place: &ProgramLocation) -> Option<&Mark> {
        let ProgramLocation::Command(at) = place else { return None };
        let (recorded, index) = self.find(at)?;
        recorded.marks.get(index as usize)
    }
}

impl Names for LiveNames<'_> {
    fn resource(&self, resource: ResourceId) -> String {
        let id = self.slice.resources.get(resource.0 as usize);
        self.title(id.and_then(|it| self.objects.resources.get(it)).map(|it| &it.0), "a resource")
    }

    fn queue(&self, queue: QueueId) -> String {
        queue_text(queue, self.objects, self.titles)
    }

    fn place(&self, place: &ProgramLocation) -> String {
        let at = match place {
            ProgramLocation::Step(step) => return self.step(*step),
            ProgramLocation::Command(at) => at,
        };
        let Some((recorded, index)) = self.find(at) else { return self.batch(at.step, at.batch) };
        let mut text = recorded_text(recorded, index, self.titles);
        if at.path.len() > 1
            && let Some((primary, index)) = self.find(&CommandLocation { path: at.path[..1].to_vec(), ..at.clone() })
        {
            text += &format!(", executed by {}", recorded_text(primary, index, self.titles));
        }
        // Nothing of it was submitted yet.
        if self.slice.steps.get(at.step as usize).is_some_and(|it| it.is_recording()) {
            return text;
        }
        format!("{text}, {}", self.batch(at.step, at.batch))
    }

    fn recorded(&self, buffer: CommandBufferId, command: u32) -> String {
        match self.slice.buffers.get(buffer.0 as usize) {
            Some(recorded) => recorded_text(recorded, command, self.titles),
            None => "a command buffer".to_owned(),
        }
    }

    fn function(&self, place: &ProgramLocation, _stage: u64) -> String {
        if let Some(mark) = self.mark(place) {
            return mark.function.desc().name.to_owned();
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
        kept.map_or_else(|| "a submission".to_owned(), |it| step_text(it, self.objects, self.titles))
    }

    fn batch(&self, step: u32, batch: u32) -> String {
        match self.slice.program.steps.get(step as usize) {
            Some(HostStep::Submit { batches, .. }) if batches.len() > 1 => format!("batch {batch} of {}", self.step(step)),
            _ => self.step(step),
        }
    }

    fn render_pass(&self, pass: RenderPassId) -> String {
        let id = self.slice.passes.get(pass.0 as usize);
        self.title(id.and_then(|it| self.objects.passes.get(it)).map(|it| &it.0), "a render pass")
    }

    fn semaphore(&self, semaphore: SemaphoreId) -> String {
        let id = self.slice.semaphores.get(semaphore.0 as usize);
        self.title(id.and_then(|it| self.objects.semaphores.get(it)), "a semaphore")
    }

    fn fence(&self, fence: FenceId) -> String {
        let id = self.slice.fences.get(fence.0 as usize);
        self.title(id.and_then(|it| self.objects.fences.get(it)), "a fence")
    }

    fn source(&self, place: &ProgramLocation) -> Option<String> {
        Some(function_text(self.mark(place)?))
    }

    fn object(&self, resource: ResourceId) -> Object {
        let id = self.slice.resources.get(resource.0 as usize);
        let own = id.and_then(|it| self.objects.resources.get(it));
        own.map_or_else(|| Object::new(kind_of(None), 0, None), |it| named_resource(it, self.titles))
    }

    fn labels(&self, place: &ProgramLocation) -> Labels {
        let kept = self.slice.steps.get(step_of(place) as usize);
        kept.map_or_else(Labels::default, |it| labels(it, self.mark(place)))
    }

    fn path(&self, place: &ProgramLocation, stage: u64) -> Vec<String> {
        let ProgramLocation::Command(at) = place else { return vec![self.function(place, stage)] };
        // Of each command buffer on the way the command that executes the next, and then the command itself.
        let ends = (1..=at.path.len()).step_by(2);
        let part = |end| ProgramLocation::Command(CommandLocation { path: at.path[..end].to_vec(), ..at.clone() });
        ends.map(|it| self.function(&part(it), stage)).collect()
    }

    fn call(&self, place: &ProgramLocation) -> Option<String> {
        let kept = self.slice.steps.get(step_of(place) as usize)?;
        Some(kept.source.command.desc().name.to_owned())
    }

    fn executor(&self, place: &ProgramLocation) -> Option<Executor> {
        let ProgramLocation::Command(at) = place else { return None };
        let (recorded, _) = self.find(at)?;
        let HostStep::Submit { queue, .. } = self.slice.program.steps.get(at.step as usize)? else { return None };
        Some(Executor { commands: title(recorded.object, self.titles), queue: self.queue(*queue) })
    }

    fn submit_index(&self, step: u32) -> u64 {
        self.slice.steps.get(step as usize).map_or(0, |it| it.submit)
    }

    fn stack(&self, place: &ProgramLocation) -> Option<u32> {
        let own = match place {
            ProgramLocation::Command(_) => self.mark(place)?.stack,
            ProgramLocation::Step(step) => self.slice.steps.get(*step as usize)?.stack,
        };
        Some(own).filter(|it| *it != 0)
    }

    fn sequence(&self, place: &ProgramLocation) -> Option<Sequence> {
        let ProgramLocation::Command(at) = place else { return None };
        let (recorded, index) = self.find(at)?;
        let mark = recorded.marks.get(index as usize)?;
        Some(Sequence { command: mark.number, resets: recorded.resets })
    }
}
