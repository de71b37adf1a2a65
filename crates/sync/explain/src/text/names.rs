//! How things of a program are called.

use lavascope_abi::PipelineStageFlags2;
use lavascope_diag::{CommandNeighbors, DebugLabels, DiagnosticObject};
use lavascope_sync_ir::{
    Barrier, Command, CommandBufferId, EventId, FenceId, HostStep, ImageDesc, Program, ProgramLocation, QueueId,
    Region, RenderPassId, Resource, ResourceId, ResourceKind, SemaphoreId, SetEvent, WaitEvents,
};

use super::api_names::region_text;
use crate::follow::dependency::recorded_location;

/// Whoever has names for the things of a program.
pub trait ProgramNames {
    fn resource(&self, resource: ResourceId) -> String;
    fn region(&self, resource: ResourceId, region: &Region) -> String {
        format!("{}{}", self.resource(resource), region_text(region))
    }
    /// The resource as an object of the application.
    fn object(&self, resource: ResourceId) -> DiagnosticObject;
    fn queue(&self, queue: QueueId) -> String;
    /// A command as it was executed.
    fn location(&self, place: &ProgramLocation) -> String;
    /// A command as it was recorded.
    fn recorded_command(&self, buffer: CommandBufferId, command: u32) -> String;
    /// The function that the application called; `stage` is where the access happens, zero if nowhere.
    fn function(&self, place: &ProgramLocation, stage: u64) -> String;
    /// Something that the host does.
    fn step(&self, step: u32) -> String {
        format!("step {step}")
    }
    /// A batch of a submission.
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
    /// What the application wrote there, where that is known.
    fn source(&self, _place: &ProgramLocation) -> Option<String> {
        None
    }
    /// The debug labels around it.
    fn labels(&self, _place: &ProgramLocation) -> DebugLabels {
        DebugLabels::default()
    }
    /// The functions that lead to a command, the outermost first, without the submission.
    fn path(&self, place: &ProgramLocation, stage: u64) -> Vec<String> {
        vec![self.function(place, stage)]
    }
    /// The call that made a command execute.
    fn submitting_call(&self, _place: &ProgramLocation) -> Option<String> {
        None
    }
    fn executor(&self, _place: &ProgramLocation) -> Option<ExecutorNames> {
        None
    }
    /// The number of a submission among those of its queue, from zero, as the Khronos layer counts.
    fn submit_index(&self, step: u32) -> u64 {
        u64::from(step)
    }
    fn sequence(&self, _place: &ProgramLocation) -> Option<CommandSequenceNumber> {
        None
    }
    /// The number of the call stack, where it was captured.
    fn call_stack(&self, _place: &ProgramLocation) -> Option<u32> {
        None
    }
    /// The same of a command as it was recorded; zero where nobody captured it.
    fn recorded_stack(&self, _buffer: CommandBufferId, _command: u32) -> u32 {
        0
    }
    /// The function of a recorded command, or what stands for the end of the command buffer.
    fn recorded_function(&self, buffer: CommandBufferId, command: u32) -> String {
        self.recorded_command(buffer, command)
    }
    /// What was recorded before and after a command.
    fn neighbors(&self, _place: &ProgramLocation) -> Option<CommandNeighbors> {
        None
    }
}

/// Who executes a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorNames {
    /// The command buffer in which it was recorded.
    pub command_buffer: String,
    pub queue: String,
}

/// Where in its command buffer a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandSequenceNumber {
    /// Its number among the commands with accesses or dependencies, from one.
    pub command: u32,
    /// How often the command buffer had been recorded before.
    pub resets: u32,
}

/// Names for programs that have none: numbers.
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

/// What stands for a function where there is none.
pub(crate) const HOST: &str = "the host";

/// The kind of object that a resource is.
pub fn object_type(resource: Option<&Resource>) -> &'static str {
    match resource.map(|it| &it.kind) {
        Some(ResourceKind::Image(_)) => "VkImage",
        Some(ResourceKind::Buffer { .. }) | None => "VkBuffer",
    }
}

/// What a resource is like: `1024 bytes`, `VK_FORMAT_R8G8B8A8_UNORM, 64x64`.
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
