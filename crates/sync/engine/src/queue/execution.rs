//! Executes the commands of command buffers, one by one.
//!
//! Each kind of command has a file: `actions` checks accesses and adds them to ranges, `barriers` applies dependencies
//! to the clocks and ranges, `render_passes` begins and ends subpasses.

use std::ops::Range;

use lavascope_sync_ir::{Command, CommandBufferId, CommandLocation, Hazard, RenderPass, ResourceId, SubmitBatch};

use crate::access::access_context::{AccessContext, Addressing};
use crate::access::contents::RenderPassContents;
use crate::command_buffer::marks::{CommandRun, ExecutionProgress, MarkMode};
use crate::command_buffer::prepared::PreparedCommandBuffer;
use crate::command_buffer::prepared_commands::RecordedCommand;
use crate::command_buffer::recording::is_same_execution;
use crate::dependency::clocks::{QueueClock, Tag};
use crate::memory::addresses::ResourceIdentity;
use crate::queue::device::EngineDevice;
use crate::queue::render_passes::RenderPassInstance;
use crate::queue::submissions::QueueTimeline;
use crate::rules::Rules;

/// How deep command buffers may execute command buffers. The specification allows less.
const DEPTH_MAX: usize = 16;

/// All recorded command buffers and render passes.
#[derive(Clone, Copy)]
pub(crate) struct RecordedCommands<'a> {
    pub(crate) command_buffers: &'a [PreparedCommandBuffer],
    pub(crate) render_passes: &'a [RenderPass],
}

/// Executes the command buffers of a batch.
pub(crate) fn execute_batch(
    device: &mut EngineDevice,
    recorded: RecordedCommands<'_>,
    queue: u8,
    step: u32,
    index: u32,
    batch: &SubmitBatch,
) {
    for (primary, id) in batch.command_buffers.iter().enumerate() {
        let Some(commands) = recorded.command_buffers.get(id.0 as usize) else { continue };
        let at = CommandLocation { step, batch: index, primary: primary as u32, path: Vec::new() };
        let first = (device.hazards.len(), device.contents.faults.len());
        let mut cursor = ExecutionCursor::new(at);
        let is_marked = commands.has_valid_marks(&device.addresses)
            && commands.queue == Some(device.queues[usize::from(queue)].kind())
            && recorded.is_up_to_date(commands);
        cursor.progress.marking = if is_marked { MarkMode::Apply } else { MarkMode::Off };
        CommandExecutor::new(device, recorded, queue, &mut cursor).execute_all(commands);
        let is_reported = |hazard: &Hazard| {
            if is_marked { is_same_execution(&hazard.at, &hazard.prior) } else { commands.reported.has_hazard(hazard) }
        };
        let mut found = device.hazards.split_off(first.0);
        found.retain(|it| !is_reported(it));
        device.hazards.append(&mut found);
        let mut faults = device.contents.faults.split_off(first.1);
        faults.retain(|it| !commands.reported.has_fault(it));
        device.contents.faults.append(&mut faults);
    }
}

impl RecordedCommands<'_> {
    /// Whether the secondary command buffers of a command buffer are still those that it was recorded with.
    #[inline]
    pub(crate) fn is_up_to_date(self, commands: &PreparedCommandBuffer) -> bool {
        let version = |id: CommandBufferId| self.command_buffers.get(id.0 as usize).map(|it| it.version);
        commands.executed.iter().all(|it| version(it.0) == Some(it.1))
    }
}

/// How far the execution of a command buffer has come.
pub(crate) struct ExecutionCursor {
    /// The command being executed.
    location: CommandLocation,
    /// How many commands were executed.
    executed_count: usize,
    pub(crate) progress: ExecutionProgress,
    instance: Option<RenderPassInstance>,
    pass_contents: Option<RenderPassContents>,
}

impl ExecutionCursor {
    pub(crate) fn new(at: CommandLocation) -> ExecutionCursor {
        ExecutionCursor {
            location: at,
            executed_count: 0,
            progress: ExecutionProgress::new(),
            instance: None,
            pass_contents: None,
        }
    }

    /// Goes back to the first command.
    pub(crate) fn clear(&mut self) {
        self.location.path.clear();
        self.progress.clear();
        (self.executed_count, self.instance, self.pass_contents) = (0, None, None);
    }

    /// Executes the commands since the last call, up to a command, on the only queue of an isolated device.
    pub(crate) fn advance(
        &mut self,
        device: &mut EngineDevice,
        recorded: RecordedCommands<'_>,
        commands: &PreparedCommandBuffer,
        until: usize,
    ) {
        if self.location.path.is_empty() {
            self.location.path.push(0);
            let first_tag = device.begin_run(&self.location);
            self.progress.is_recording = true;
            self.progress.command_run = CommandRun { first_tag, first_command: 0 };
        }
        let range = self.executed_count..until;
        CommandExecutor::new(device, recorded, 0, self).execute_range(commands, range);
        self.executed_count = until;
    }
}

pub(crate) struct CommandExecutor<'a> {
    pub(crate) device: &'a mut EngineDevice,
    pub(crate) recorded: RecordedCommands<'a>,
    pub(crate) queue: u8,
    /// The command being executed.
    location: &'a mut CommandLocation,
    pub(crate) progress: &'a mut ExecutionProgress,
    /// The render pass instance that is open.
    pub(crate) instance: &'a mut Option<RenderPassInstance>,
    /// The contents of the attachments of the open render pass.
    pub(crate) pass_contents: &'a mut Option<RenderPassContents>,
}

impl<'a> CommandExecutor<'a> {
    fn new(
        device: &'a mut EngineDevice,
        recorded: RecordedCommands<'a>,
        queue: u8,
        cursor: &'a mut ExecutionCursor,
    ) -> CommandExecutor<'a> {
        let ExecutionCursor { location: at, progress, instance, pass_contents, .. } = cursor;
        CommandExecutor { device, recorded, queue, location: at, progress, instance, pass_contents }
    }

    fn execute_all(&mut self, commands: &PreparedCommandBuffer) {
        self.location.path.push(0);
        self.device.begin_run(self.location);
        self.timeline().rare_order.possible_reads.begin_run();
        self.execute_range(commands, 0..commands.list.len());
        self.location.path.pop();
    }

    /// Executes some of the commands, each with the next tag. Skips commands whose marks say that they need no check
    /// here, because an earlier command of the command buffer has covered them.
    fn execute_range(&mut self, commands: &PreparedCommandBuffer, range: Range<usize>) {
        let mut next = range.start;
        while next < range.end {
            let index = next;
            let is_skipping = self.progress.marking == MarkMode::Apply && self.progress.is_clean;
            if is_skipping && !self.is_tracking_contents() && !self.is_tracking_attachment_writes() {
                next = commands.next_busy_command(index);
                if next > index {
                    self.device.skip_commands(next - index);
                    self.progress.was_clean_action = true;
                    continue;
                }
            }
            next = index + 1;
            if self.progress.was_clean_action && self.progress.is_recording {
                self.add_last_repeated(commands, index - 1);
            }
            let tag = self.device.next_tag();
            match commands.list.command(index) {
                RecordedCommand::Action(accesses) => {
                    self.progress.was_clean_action = self.execute_action(tag, accesses, commands, index);
                }
                RecordedCommand::Other(command) => {
                    self.progress.was_clean_action = false;
                    if let Some(last) = self.location.path.last_mut() {
                        *last = index as u32;
                    }
                    self.execute_non_action(tag, command);
                }
            }
        }
    }

    fn execute_non_action(&mut self, tag: Tag, command: &Command) {
        self.timeline().rare_order.possible_reads.begin_run();
        match command {
            // `execute_range` executes actions.
            Command::Action(_) => {}
            Command::Barrier(barrier) => self.barrier(tag, barrier),
            Command::SetEvent(set) => self.set_event(tag, set),
            Command::ResetEvent { event, .. } => {
                if let Some(event) = self.device.events.get_mut(event.0 as usize) {
                    event.set = None;
                }
            }
            Command::WaitEvents(wait) => self.wait_events(tag, wait),
            Command::Execute(buffers) => self.execute_secondaries(buffers),
            Command::BeginRenderPass { pass, views, area } => self.begin_render_pass(tag, *pass, views, *area),
            Command::NextSubpass => self.next_subpass(tag),
            Command::EndRenderPass => self.end_render_pass(tag),
            Command::BeginRendering(rendering) => self.begin_rendering(tag, rendering),
            Command::EndRendering => self.end_rendering(tag),
        }
        // These commands have dropped what the clock of the subpass knew, so what was visible before may not be visible
        // now (`marks`, rule 3).
        let is_resuming = matches!(command, Command::BeginRendering(item) if item.is_resuming);
        if is_resuming || matches!(command, Command::NextSubpass | Command::EndRenderPass | Command::EndRendering) {
            self.progress.visible_since = tag;
        }
    }

    fn execute_secondaries(&mut self, buffers: &[CommandBufferId]) {
        for (place, id) in buffers.iter().enumerate() {
            let Some(commands) = self.recorded.command_buffers.get(id.0 as usize) else { continue };
            if self.location.path.len() < DEPTH_MAX {
                self.location.path.push(place as u32);
                let outside = std::mem::replace(self.progress, ExecutionProgress::new());
                self.execute_all(commands);
                *self.progress = outside;
                self.location.path.pop();
            }
        }
        // The secondary command buffers have used tags: the next command begins a new run.
        if let Some(last) = self.location.path.last_mut() {
            *last += 1;
            let first_command = *last as usize;
            let first_tag = self.device.begin_run(self.location);
            self.progress.command_run = CommandRun { first_tag, first_command };
        }
    }

    /// The context of an access of the current command.
    pub(crate) fn access_context(&self, tag: Tag, resource: ResourceId) -> AccessContext<'_> {
        let timeline = &self.device.queues[usize::from(self.queue)];
        let identity = self.device.addresses.identity(resource);
        access_context(self.device.rules, timeline, self.queue, self.instance.as_ref(), tag, identity)
    }

    /// The tag before the subpass to which the first scopes of barriers are limited; zero outside of render passes.
    pub(crate) fn scope_begin(&self) -> Tag {
        self.instance.as_ref().map_or(0, RenderPassInstance::scope_begin)
    }

    pub(crate) fn clock(&mut self) -> &mut QueueClock {
        &mut self.device.queues[usize::from(self.queue)].clock
    }

    pub(crate) fn timeline(&mut self) -> &mut QueueTimeline {
        &mut self.device.queues[usize::from(self.queue)]
    }

    pub(crate) fn flags(&self) -> u32 {
        self.device.queues[usize::from(self.queue)].flags
    }
}

pub(crate) fn access_context<'n>(
    rules: Rules,
    timeline: &'n QueueTimeline,
    queue: u8,
    instance: Option<&'n RenderPassInstance>,
    tag: Tag,
    identity: ResourceIdentity,
) -> AccessContext<'n> {
    AccessContext {
        rules,
        identity,
        clock: &timeline.clock,
        rare_order: Some(&timeline.rare_order),
        queue,
        tag,
        instance_begin: instance.map(RenderPassInstance::raster_order_begin),
        pass_begin: instance.map_or(Tag::MAX, RenderPassInstance::pass_begin),
        subpass_begin: instance.map_or(0, RenderPassInstance::scope_begin),
        unordered_subpasses: instance.map_or(&[][..], RenderPassInstance::unordered_subpasses),
        addressing: Addressing::Own,
    }
}
