//! Names for the objects and commands of a program.

use lavascope_abi::PipelineStageFlags2;
use lavascope_diag::{CommandNeighbors, DebugLabels, DiagnosticObject};
use lavascope_sync_ir::{
    Barrier, Command, CommandBufferId, EventId, FenceId, HostStep, ImageDesc, Program, ProgramLocation, QueueId,
    Region, RenderPassId, Resource, ResourceId, ResourceKind, SemaphoreId, SetEvent, WaitEvents,
};

use super::api_names::region_text;
use crate::follow::dependency::recorded_location;

/// Provides names for the objects and commands of a program.
pub trait ProgramNames {
    fn resource(&self, resource: ResourceId) -> String;
    fn region(&self, resource: ResourceId, region: &Region) -> String {
        format!("{}{}", self.resource(resource), region_text(region))
    }
    /// The Vulkan object of a resource.
    fn object(&self, resource: ResourceId) -> DiagnosticObject;
    fn queue(&self, queue: QueueId) -> String;
    /// The name of an executed command.
    fn location(&self, place: &ProgramLocation) -> String;
    /// The name of a recorded command.
    fn recorded_command(&self, buffer: CommandBufferId, command: u32) -> String;
    /// The function that the application called. `stage` is the pipeline stage of the access, or
    /// zero if there is none.
    fn function(&self, place: &ProgramLocation, stage: u64) -> String;
    /// The name of a step of the host.
    fn step(&self, step: u32) -> String {
        format!("step {step}")
    }
    /// The function before which a write of the host was noticed, if the step is that. No call makes the write.
    fn noticed_before(&self, _step: u32) -> Option<String> {
        None
    }
    /// The name of a batch in a submission.
    fn batch(&self, step: u32, batch: u32) -> String {
        format!("batch {batch} of {}", self.step(step))
    }
    fn render_pass(&self, pass: RenderPassId) -> String {
        format!("render pass {}", pass.0)
    }
    fn semaphore(&self, semaphore: SemaphoreId) -> String {
        format!("semaphore {}", semaphore.0)
    }
    fn fence(&self, fence: FenceId) -> String {
        format!("fence {}", fence.0)
    }
    fn event(&self, event: EventId) -> String {
        format!("event {}", event.0)
    }
    /// The source text at this location, if it is known.
    fn source(&self, _place: &ProgramLocation) -> Option<String> {
        None
    }
    /// The debug labels around a command.
    fn labels(&self, _place: &ProgramLocation) -> DebugLabels {
        DebugLabels::default()
    }
    /// The chain of functions that executes a command, outermost first. The submission is not part
    /// of it.
    fn path(&self, place: &ProgramLocation, stage: u64) -> Vec<String> {
        vec![self.function(place, stage)]
    }
    /// The call that submitted a command.
    fn submitting_call(&self, _place: &ProgramLocation) -> Option<String> {
        None
    }
    fn executor(&self, _place: &ProgramLocation) -> Option<ExecutorNames> {
        None
    }
    /// The index of a submission on its queue. It counts from zero, as the Khronos layer does.
    fn submit_index(&self, step: u32) -> u64 {
        u64::from(step)
    }
    fn sequence(&self, _place: &ProgramLocation) -> Option<CommandSequenceNumber> {
        None
    }
    /// The number of the call stack, if one was captured.
    fn call_stack(&self, _place: &ProgramLocation) -> Option<u32> {
        None
    }
    /// The number of the call stack that recorded a command. Zero if none was captured.
    fn recorded_stack(&self, _buffer: CommandBufferId, _command: u32) -> u32 {
        0
    }
    /// The function of a recorded command. At the end of the command buffer, a text that says so.
    fn recorded_function(&self, buffer: CommandBufferId, command: u32) -> String {
        self.recorded_command(buffer, command)
    }
    /// The commands that were recorded directly before and after a command.
    fn neighbors(&self, _place: &ProgramLocation) -> Option<CommandNeighbors> {
        None
    }
}

/// The command buffer and the queue that execute a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorNames {
    /// The command buffer that contains the command.
    pub command_buffer: String,
    pub queue: String,
}

/// The position of a command in its command buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandSequenceNumber {
    /// The number of the command, from one. It counts only commands with accesses or dependencies.
    pub command: u32,
    /// How many times the command buffer was recorded before.
    pub resets: u32,
}

/// Numbers as names, for programs without names.
pub struct NumberedNames<'a>(pub &'a Program);

impl ProgramNames for NumberedNames<'_> {
    fn resource(&self, resource: ResourceId) -> String {
        let kind = self.0.resources.get(resource.0 as usize).map(|it| &it.kind);
        let kind = if matches!(kind, Some(ResourceKind::Image(_))) { "image" } else { "buffer" };
        format!("{kind} {}", resource.0)
    }

    fn object(&self, resource: ResourceId) -> DiagnosticObject {
        let own = self.0.resources.get(resource.0 as usize);
        DiagnosticObject {
            description: own.map(resource_description),
            ..DiagnosticObject::new(object_type(own), u64::from(resource.0), None)
        }
    }

    fn queue(&self, queue: QueueId) -> String {
        format!("queue {}", queue.0)
    }

    fn location(&self, place: &ProgramLocation) -> String {
        match (place, recorded_location(self.0, place)) {
            (ProgramLocation::Command(at), Some((buffer, command))) => {
                format!("{} (step {}, batch {})", self.recorded_command(buffer, command), at.step, at.batch)
            }
            (ProgramLocation::Command(at), None) => format!("batch {} of step {}", at.batch, at.step),
            (ProgramLocation::Step(step), _) => format!("step {step}"),
        }
    }

    fn recorded_command(&self, buffer: CommandBufferId, command: u32) -> String {
        format!("command {command} of command buffer {}", buffer.0)
    }

    fn function(&self, place: &ProgramLocation, stage: u64) -> String {
        let command = recorded_location(self.0, place).and_then(|(buffer, command)| {
            self.0.command_buffers.get(buffer.0 as usize)?.commands.get(command as usize)
        });
        let step = match place {
            ProgramLocation::Step(step) => self.0.steps.get(*step as usize),
            ProgramLocation::Command(_) => None,
        };
        match (command, step) {
            (Some(command), _) => function_of(command, stage),
            (_, Some(HostStep::Present { .. })) => "vkQueuePresentKHR",
            (_, Some(HostStep::Acquire { .. })) => "vkAcquireNextImageKHR",
            _ => HOST,
        }
        .to_owned()
    }
}

/// The name for accesses of the host, which have no function.
pub(crate) const HOST: &str = "the host";

/// The Vulkan type of a resource.
pub fn object_type(resource: Option<&Resource>) -> &'static str {
    match resource.map(|it| &it.kind) {
        Some(ResourceKind::Image(_)) => "VkImage",
        Some(ResourceKind::Buffer { .. }) | None => "VkBuffer",
    }
}

/// The size or the format of a resource: `1024 bytes`, `VK_FORMAT_R8G8B8A8_UNORM, 64x64`.
pub fn resource_description(resource: &Resource) -> String {
    let ImageDesc { format, extent: [width, height, depth], mips, layers, .. } = match &resource.kind {
        ResourceKind::Buffer { size } => return format!("{size} bytes"),
        ResourceKind::Image(image) => image,
    };
    let mut text = format!("{}, {width}x{height}", super::api_names::enum_name(&lavascope_abi::FORMAT_ENUM, format.0));
    let more = [(*depth, "x", ""), (*mips, ", ", " mips"), (*layers, ", ", " layers")];
    for (count, before, after) in more.into_iter().filter(|it| it.0 > 1) {
        text += &format!("{before}{count}{after}");
    }
    text
}

fn function_of(command: &Command, stage: u64) -> &'static str {
    match command {
        Command::Action(_) if stage & PipelineStageFlags2::COMPUTE_SHADER.0 != 0 => "dispatch",
        Command::Action(_)
            if lavascope_engine::access::usages::group_members(PipelineStageFlags2::ALL_GRAPHICS.0) & stage != 0 =>
        {
            "draw"
        }
        Command::Action(_) if stage & PipelineStageFlags2::COPY.0 != 0 => "copy",
        Command::Action(_) if stage & PipelineStageFlags2::CLEAR.0 != 0 => "clear",
        Command::Action(_) if stage & PipelineStageFlags2::BLIT.0 != 0 => "blit",
        Command::Action(_) if stage & PipelineStageFlags2::RESOLVE.0 != 0 => "resolve",
        Command::Action(_) => "command",
        Command::Barrier(Barrier::Sync1 { .. }) => "vkCmdPipelineBarrier",
        Command::Barrier(Barrier::Sync2 { .. }) => "vkCmdPipelineBarrier2",
        Command::SetEvent(SetEvent::Sync1 { .. }) => "vkCmdSetEvent",
        Command::SetEvent(SetEvent::Sync2 { .. }) => "vkCmdSetEvent2",
        Command::ResetEvent { .. } => "vkCmdResetEvent",
        Command::WaitEvents(WaitEvents::Sync1 { .. }) => "vkCmdWaitEvents",
        Command::WaitEvents(WaitEvents::Sync2 { .. }) => "vkCmdWaitEvents2",
        Command::BeginRenderPass { .. } => "vkCmdBeginRenderPass",
        Command::NextSubpass => "vkCmdNextSubpass",
        Command::EndRenderPass => "vkCmdEndRenderPass",
        Command::BeginRendering(_) => "vkCmdBeginRendering",
        Command::EndRendering => "vkCmdEndRendering",
        Command::Execute(_) => "vkCmdExecuteCommands",
    }
}
