//! Command pools and command buffers, and what is bound in one while it is recorded.

use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome};
use lavascope_sync_ir::{Access, Command, CommandBufferId, Queue};

use crate::bind::State;
use crate::device::{Device, Event};
use crate::late::Waiting;
use crate::listener::{Gone, Out, Source, object};
use crate::rendering::Scene;
use crate::undo::{Executed, Undo};

/// Accesses that there is room for all the time.
const ROOM_MAX: usize = 4096;

/// A command pool: the command buffers that were allocated from it.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) buffers: Vec<u64>,
    /// Of the queues that they are for.
    family: u32,
}

/// A command buffer.
pub(crate) struct Recording {
    pub(crate) id: CommandBufferId,
    pub(crate) is_secondary: bool,
    /// Commands that the listener was told of.
    pub(crate) count: u32,
    /// Secondary command buffers that it executes.
    pub(crate) executed: Vec<u64>,
    pub(crate) state: State,
    pub(crate) waiting: Waiting,
    /// The thread and the number of the call that recorded the last command, and what that changed.
    pub(crate) last: Option<(u32, u64)>,
    pub(crate) undo: Undo,
}

impl Recording {
    fn new(id: CommandBufferId, is_secondary: bool) -> Recording {
        Recording {
            id,
            is_secondary,
            count: 0,
            executed: Vec::new(),
            state: State::default(),
            waiting: Waiting::default(),
            last: None,
            undo: Undo::Nothing,
        }
    }

    /// Appends a command, and gives its place.
    pub(crate) fn push(&mut self, command: Command, out: &mut Out<'_>) -> u32 {
        if let Command::WaitEvents(_) = command {
            self.state.updates.clear();
        }
        out.listener.command(out.at, self.id, command);
        self.pushed(out)
    }

    /// Appends an action command, and gives its place.
    pub(crate) fn push_action(&mut self, accesses: &[Access], out: &mut Out<'_>) -> u32 {
        self.state.updates.pass(accesses);
        out.listener.action(&out.at, self.id, accesses);
        self.pushed(out)
    }

    fn pushed(&mut self, out: &Out<'_>) -> u32 {
        let Source { thread, call, .. } = &out.at.source;
        (self.last, self.undo) = (Some((*thread, *call)), Undo::Nothing);
        self.count += 1;
        self.count - 1
    }

    fn clear(&mut self) {
        self.count = 0;
        self.executed.clear();
        self.state = State::default();
        self.waiting.clear();
        (self.last, self.undo) = (None, Undo::Nothing);
    }
}

impl Device {
    pub(crate) fn command_buffers(&mut self, event: Event<'_>, out: &mut Out<'_>) -> bool {
        match (event.call, event.outcome) {
            (Call::CreateCommandPool(it), Some(Outcome::CreateCommandPool(made))) => {
                if let (Some(info), Some(pool)) = (it.p_create_info(), made.p_command_pool()) {
                    let family = info.queue_family_index;
                    self.command_pools.insert(pool.0, Pool { buffers: Vec::new(), family });
                }
            }
            (Call::DestroyCommandPool(it), None) => {
                for buffer in self.command_pools.remove(it.command_pool.0).unwrap_or_default().buffers {
                    self.free(buffer, out);
                }
            }
            (Call::ResetCommandPool(it), None) => {
                let buffers = self.command_pools.get(it.command_pool.0).map_or(Vec::new(), |it| it.buffers.clone());
                for buffer in buffers {
                    self.reset(buffer, out);
                }
            }
            (Call::AllocateCommandBuffers(it), Some(Outcome::AllocateCommandBuffers(made))) => {
                let Some(info) = it.p_allocate_info() else { return true };
                let is_secondary = info.level == vk::CommandBufferLevel::SECONDARY;
                for buffer in made.p_command_buffers() {
                    self.allocate(info.command_pool.0, buffer.0, is_secondary, out);
                }
            }
            (Call::FreeCommandBuffers(it), None) => {
                for buffer in it.p_command_buffers() {
                    if let Some(pool) = self.command_pools.get_mut(it.command_pool.0) {
                        pool.buffers.retain(|it| *it != buffer.0);
                    }
                    self.free(buffer.0, out);
                }
            }
            (Call::BeginCommandBuffer(it), None) => self.begin(*it, out),
            (Call::EndCommandBuffer(it), None) => {
                if let Some(own) = self.recording(it.command_buffer) {
                    out.listener.end(out.at, own.id);
                }
            }
            (Call::ResetCommandBuffer(it), None) => self.reset(it.command_buffer.0, out),
            (Call::CmdExecuteCommands(it), None) => self.execute(it.command_buffer, it.p_command_buffers(), out),
            _ => return false,
        }
        true
    }

    fn allocate(&mut self, pool: u64, buffer: u64, is_secondary: bool, out: &mut Out<'_>) {
        if buffer == 0 {
            return;
        }
        let id = CommandBufferId(self.ids.command_buffers.take());
        self.command_buffers.insert(buffer, Recording::new(id, is_secondary));
        if let Some(pool) = self.command_pools.get_mut(pool) {
            pool.buffers.push(buffer);
            let is_same = |it: &&Queue| it.family == pool.family;
            if let Some(queue) = self.queues.all().iter().find(is_same) {
                out.listener.command_buffer(out.at, id, object(buffer), *queue);
            }
        }
        self.born.push(buffer);
    }

    fn free(&mut self, buffer: u64, out: &mut Out<'_>) {
        if let Some(own) = self.command_buffers.remove(buffer) {
            out.listener.reset(out.at, own.id);
            out.gone(Some(Gone::CommandBuffer(own.id)));
            self.freed.push(buffer);
        }
    }

    fn reset(&mut self, buffer: u64, out: &mut Out<'_>) {
        if let Some(own) = self.command_buffers.get_mut(buffer) {
            own.clear();
            out.listener.reset(out.at, own.id);
        }
    }

    fn begin(&mut self, it: lavascope_record::View<'_, vk::BeginCommandBufferParams>, out: &mut Out<'_>) {
        let info = it.p_begin_info();
        let goes_on = info.is_some_and(|it| it.flags.0 & vk::CommandBufferUsageFlags::RENDER_PASS_CONTINUE.0 != 0);
        let inherited = info.and_then(|it| it.p_inheritance_info()).map(|it| self.inherited(it));
        let Some(own) = self.command_buffers.get_mut(it.command_buffer.0) else { return };
        own.clear();
        if goes_on && own.is_secondary {
            own.state.scene = inherited.unwrap_or_default();
        }
        out.listener.begin(out.at, own.id, object(it.command_buffer.0), own.is_secondary);
    }

    fn execute(&mut self, buffer: vk::CommandBuffer, executed: &[vk::CommandBuffer], out: &mut Out<'_>) {
        let ids: Vec<CommandBufferId> =
            executed.iter().filter_map(|it| Some(self.command_buffers.get(it.0)?.id)).collect();
        if ids.len() != executed.len() {
            out.missing("a command buffer that nobody allocated");
        }
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        let count = own.executed.len();
        own.executed.extend(executed.iter().map(|it| it.0));
        let targets = match &own.state.scene {
            Scene::Known(targets) => Some(Arc::clone(targets)),
            Scene::None | Scene::Inherited { .. } => None,
        };
        // Their attachments become known first, so that whoever executes them knows all of it.
        let mut attached = Vec::with_capacity(executed.len());
        for secondary in executed.iter().filter(|it| **it != buffer) {
            attached.push((secondary.0, self.attached(secondary.0)));
            self.attach(secondary.0, targets.as_ref(), out);
        }
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        own.push(Command::Execute(ids), out);
        let state = own.state.forget();
        own.undo = Undo::Executed(Box::new(Executed { count, state, attached }));
    }

    /// Records a command that is what it is.
    pub(crate) fn record(&mut self, buffer: vk::CommandBuffer, command: Command, out: &mut Out<'_>) {
        if let Some(own) = self.command_buffers.get_mut(buffer.0) {
            own.push(command, out);
        }
    }

    /// Records the accesses of an action command.
    pub(crate) fn act(&mut self, buffer: vk::CommandBuffer, accesses: Vec<Access>, out: &mut Out<'_>) {
        if let Some(own) = self.command_buffers.get_mut(buffer.0) {
            own.push_action(&accesses, out);
        }
        self.give_room(accesses);
    }

    /// An empty list for the accesses of a command: the one that a command before has done with.
    pub(crate) fn room(&mut self) -> Vec<Access> {
        std::mem::take(&mut self.room)
    }

    pub(crate) fn give_room(&mut self, mut accesses: Vec<Access>) {
        if accesses.capacity() > self.room.capacity() && accesses.capacity() <= ROOM_MAX {
            accesses.clear();
            self.room = accesses;
        }
    }
}
