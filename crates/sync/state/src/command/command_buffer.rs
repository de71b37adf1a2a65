//! Command pools and command buffers, and their state during recording.

use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome};
use lavascope_sync_ir::{Access, Command, CommandBufferId, Queue};

use crate::command::bound_state::BoundState;
use crate::command::incomplete::IncompleteCommands;
use crate::command::undo::{BeforeExecute, Undo};
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::rendering::CurrentAttachments;
use crate::listener::{CallSource, Destroyed, TrackerOutput, object};

/// Capacity for this many accesses is kept between commands.
const SPARE_ACCESSES_MAX: usize = 4096;

/// A command pool, with its command buffers.
#[derive(Default)]
pub(crate) struct TrackedCommandPool {
    pub(crate) buffers: Vec<u64>,
    /// The queue family of its command buffers.
    family: u32,
}

/// A command buffer.
pub(crate) struct TrackedCommandBuffer {
    pub(crate) id: CommandBufferId,
    pub(crate) is_secondary: bool,
    /// The number of recorded commands that the listener has received.
    pub(crate) count: u32,
    /// The secondary command buffers that it executes.
    pub(crate) executed: Vec<u64>,
    pub(crate) state: BoundState,
    pub(crate) incomplete: IncompleteCommands,
    /// The thread and number of the call that recorded the last command, and the other state it changed.
    pub(crate) last_call: Option<(u32, u64)>,
    pub(crate) undo: Undo,
}

impl TrackedCommandBuffer {
    fn new(id: CommandBufferId, is_secondary: bool) -> TrackedCommandBuffer {
        TrackedCommandBuffer {
            id,
            is_secondary,
            count: 0,
            executed: Vec::new(),
            state: BoundState::default(),
            incomplete: IncompleteCommands::default(),
            last_call: None,
            undo: Undo::Nothing,
        }
    }

    /// Notifies the listener of a recorded command. Returns the index of the command.
    pub(crate) fn notify_command(&mut self, command: Command, out: &mut TrackerOutput<'_>) -> u32 {
        if let Command::WaitEvents(_) = command {
            self.state.index_updates.clear();
        }
        out.listener.command_recorded(out.at, self.id, command);
        self.count_command(out)
    }

    /// Notifies the listener of an action command, as its accesses. Returns the index of the command. Only the listener
    /// keeps the accesses: the validator checks them.
    pub(crate) fn notify_action(&mut self, accesses: &[Access], out: &mut TrackerOutput<'_>) -> u32 {
        self.state.index_updates.invalidate_written(accesses);
        if out.possible_reads.is_empty() {
            out.listener.action_recorded(&out.at, self.id, accesses);
        } else {
            let all = [accesses, &out.possible_reads].concat();
            out.possible_reads.clear();
            out.listener.action_recorded(&out.at, self.id, &all);
        }
        self.count_command(out)
    }

    fn count_command(&mut self, out: &TrackerOutput<'_>) -> u32 {
        let CallSource { thread, call, .. } = &out.at.source;
        (self.last_call, self.undo) = (Some((*thread, *call)), Undo::Nothing);
        self.count += 1;
        self.count - 1
    }

    fn clear(&mut self) {
        self.count = 0;
        self.executed.clear();
        self.state = BoundState::default();
        self.incomplete.clear();
        (self.last_call, self.undo) = (None, Undo::Nothing);
    }
}

impl TrackedDevice {
    pub(crate) fn track_command_buffers(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateCommandPool(params), Some(Outcome::CreateCommandPool(made))) => {
                if let (Some(info), Some(pool)) = (params.p_create_info(), made.p_command_pool()) {
                    let family = info.queue_family_index;
                    self.command_pools.insert(pool.0, TrackedCommandPool { buffers: Vec::new(), family });
                }
            }
            (Call::DestroyCommandPool(params), None) => {
                for buffer in self.command_pools.remove(params.command_pool.0).unwrap_or_default().buffers {
                    self.free(buffer, out);
                }
            }
            (Call::ResetCommandPool(params), None) => {
                let buffers = self.command_pools.get(params.command_pool.0).map_or(Vec::new(), |it| it.buffers.clone());
                for buffer in buffers {
                    self.reset(buffer, out);
                }
            }
            (Call::AllocateCommandBuffers(params), Some(Outcome::AllocateCommandBuffers(made))) => {
                let Some(info) = params.p_allocate_info() else { return true };
                let is_secondary = info.level == vk::CommandBufferLevel::SECONDARY;
                for buffer in made.p_command_buffers() {
                    self.allocate(info.command_pool.0, buffer.0, is_secondary, out);
                }
            }
            (Call::FreeCommandBuffers(params), None) => {
                for buffer in params.p_command_buffers() {
                    if let Some(pool) = self.command_pools.get_mut(params.command_pool.0) {
                        pool.buffers.retain(|it| *it != buffer.0);
                    }
                    self.free(buffer.0, out);
                }
            }
            (Call::BeginCommandBuffer(params), None) => self.begin(*params, out),
            (Call::EndCommandBuffer(params), None) => {
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    out.listener.end(out.at, own.id);
                }
            }
            (Call::ResetCommandBuffer(params), None) => self.reset(params.command_buffer.0, out),
            (Call::CmdExecuteCommands(params), None) => {
                self.execute(params.command_buffer, params.p_command_buffers(), out)
            }
            _ => return false,
        }
        true
    }

    fn allocate(&mut self, pool: u64, buffer: u64, is_secondary: bool, out: &mut TrackerOutput<'_>) {
        if buffer == 0 {
            return;
        }
        let id = CommandBufferId(self.ids.command_buffers.next_id());
        self.command_buffers.insert(buffer, TrackedCommandBuffer::new(id, is_secondary));
        if let Some(pool) = self.command_pools.get_mut(pool) {
            pool.buffers.push(buffer);
            let is_same = |it: &&Queue| it.family == pool.family;
            if let Some(queue) = self.queues.all().iter().find(is_same) {
                out.listener.command_buffer(out.at, id, object(buffer), *queue);
            }
        }
        self.allocated_command_buffers.push(buffer);
    }

    fn free(&mut self, buffer: u64, out: &mut TrackerOutput<'_>) {
        if let Some(own) = self.command_buffers.remove(buffer) {
            out.listener.reset(out.at, own.id);
            out.destroyed(Some(Destroyed::CommandBuffer(own.id)));
            self.freed_command_buffers.push(buffer);
        }
    }

    fn reset(&mut self, buffer: u64, out: &mut TrackerOutput<'_>) {
        if let Some(own) = self.command_buffers.get_mut(buffer) {
            own.clear();
            out.listener.reset(out.at, own.id);
        }
    }

    fn begin(&mut self, view: lavascope_record::View<'_, vk::BeginCommandBufferParams>, out: &mut TrackerOutput<'_>) {
        let info = view.p_begin_info();
        let goes_on = info.is_some_and(|it| it.flags.0 & vk::CommandBufferUsageFlags::RENDER_PASS_CONTINUE.0 != 0);
        let inherited = info.and_then(|it| it.p_inheritance_info()).map(|it| self.attachments_from_inheritance(it));
        let Some(own) = self.command_buffers.get_mut(view.command_buffer.0) else { return };
        own.clear();
        if goes_on && own.is_secondary {
            own.state.attachments = inherited.unwrap_or_default();
        }
        out.listener.begin(out.at, own.id, object(view.command_buffer.0), own.is_secondary);
    }

    fn execute(&mut self, buffer: vk::CommandBuffer, executed: &[vk::CommandBuffer], out: &mut TrackerOutput<'_>) {
        let ids: Vec<CommandBufferId> =
            executed.iter().filter_map(|it| Some(self.command_buffers.get(it.0)?.id)).collect();
        if ids.len() != executed.len() {
            out.report_untracked("a command buffer that nobody allocated");
        }
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        let count = own.executed.len();
        own.executed.extend(executed.iter().map(|it| it.0));
        let targets = match &own.state.attachments {
            CurrentAttachments::Known(targets) => Some(Arc::clone(targets)),
            CurrentAttachments::None | CurrentAttachments::Inherited { .. } => None,
        };
        // The secondary command buffers get their attachments first, so that the listener knows all of their accesses.
        let mut attached = Vec::with_capacity(executed.len());
        for secondary in executed.iter().filter(|it| **it != buffer) {
            attached.push((secondary.0, self.inherited_attachments(secondary.0)));
            self.inherit_attachments(secondary.0, targets.as_ref(), out);
        }
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        own.notify_command(Command::Execute(ids), out);
        let state = own.state.take_bound();
        own.undo = Undo::Executed(Box::new(BeforeExecute { count, state, inherited_attachments: attached }));
    }

    /// Records a command that is completely known.
    pub(crate) fn record(&mut self, buffer: vk::CommandBuffer, command: Command, out: &mut TrackerOutput<'_>) {
        if let Some(own) = self.command_buffers.get_mut(buffer.0) {
            own.notify_command(command, out);
        }
    }

    /// Records the accesses of an action command: a draw, dispatch, copy or the like.
    pub(crate) fn record_action(
        &mut self,
        buffer: vk::CommandBuffer,
        accesses: Vec<Access>,
        out: &mut TrackerOutput<'_>,
    ) {
        if let Some(own) = self.command_buffers.get_mut(buffer.0) {
            own.notify_action(&accesses, out);
        }
        self.return_spare_accesses(accesses);
    }

    /// An empty list for the accesses of a command. It reuses the allocation of an earlier command.
    pub(crate) fn take_spare_accesses(&mut self) -> Vec<Access> {
        std::mem::take(&mut self.spare_accesses)
    }

    pub(crate) fn return_spare_accesses(&mut self, mut accesses: Vec<Access>) {
        if accesses.capacity() > self.spare_accesses.capacity() && accesses.capacity() <= SPARE_ACCESSES_MAX {
            accesses.clear();
            self.spare_accesses = accesses;
        }
    }
}
