//! Who is told what happens, in the words of `program`.

use std::collections::BTreeMap;

use lavascope_abi::{AccessFlags2, Command as ApiCommand, ObjectId};
use lavascope_sync_ir::{
    Access, Certainty, Command, CommandBufferId, EventId, FenceId, HostStep, Queue, QueueId, Region, RenderPass,
    RenderPassId, Resource, ResourceId, SemaphoreId,
};

use crate::shader::interface::Reflect;

/// The call that something comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSource {
    pub command: ApiCommand,
    pub thread: u32,
    /// The call's number within the thread.
    pub call: u64,
}

/// The device that something happens on, and the call that made it happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCall {
    pub device: ObjectId,
    pub source: CallSource,
}

/// What the tracker could not understand of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Untracked {
    pub command: ApiCommand,
    pub reason: &'static str,
}

/// Something that is no more; of resources a step says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destroyed {
    RenderPass(RenderPassId),
    Event(EventId),
    Semaphore(SemaphoreId),
    Fence(FenceId),
    CommandBuffer(CommandBufferId),
}

/// Is told what an application does.
///
/// Ids of `program` count from zero on each device, in the order in which they are told, and are never used again: a
/// view or a descriptor may outlive what it leads to, and must not lead to something else then.
/// Objects are those of the records, for messages. A command buffer has one id for as long as it lives.
pub trait Listener {
    fn device(&mut self, _at: DeviceCall, _queues: &[Queue]) {}

    /// The device is gone, with all that it had.
    fn device_destroyed(&mut self, _at: DeviceCall) {}

    /// The application knows a queue from now on.
    fn queue(&mut self, _at: DeviceCall, _id: QueueId, _object: ObjectId) {}

    /// A buffer or an image has its memory from now on.
    fn resource(&mut self, _at: DeviceCall, _id: ResourceId, _object: ObjectId, _resource: &Resource) {}

    /// A buffer or an image is no more that never had memory.
    fn unbound_destroyed(&mut self, _at: DeviceCall, _object: ObjectId) {}

    fn render_pass(&mut self, _at: DeviceCall, _id: RenderPassId, _object: ObjectId, _pass: &RenderPass) {}

    fn event(&mut self, _at: DeviceCall, _id: EventId, _object: ObjectId) {}

    fn semaphore(&mut self, _at: DeviceCall, _id: SemaphoreId, _object: ObjectId) {}

    fn fence(&mut self, _at: DeviceCall, _id: FenceId, _object: ObjectId) {}

    /// There is a command buffer, for queues like this one.
    fn command_buffer(&mut self, _at: DeviceCall, _id: CommandBufferId, _object: ObjectId, _queue: Queue) {}

    /// A command buffer is recorded anew.
    fn begin(&mut self, _at: DeviceCall, _id: CommandBufferId, _object: ObjectId, _is_secondary: bool) {}

    /// A command is recorded behind those before it.
    fn command(&mut self, _at: DeviceCall, _id: CommandBufferId, _command: Command) {}

    /// The same for an action command. Most commands are such, and need no list of their own to be looked at.
    fn action(&mut self, at: &DeviceCall, id: CommandBufferId, accesses: &[Access]) {
        self.command(*at, id, Command::Action(accesses.to_vec()));
    }

    /// What a recorded command is became known only now: descriptors that may change until the submission, or
    /// attachments that a secondary command buffer inherits.
    fn replace_command(&mut self, _at: DeviceCall, _id: CommandBufferId, _index: u32, _command: Command) {}

    /// The last command that was recorded did not reach the driver: it is as if it had not been.
    fn cancel_command(&mut self, _at: DeviceCall, _id: CommandBufferId) {}

    fn end(&mut self, _at: DeviceCall, _id: CommandBufferId) {}

    /// What was recorded is gone: by a reset, or with the command buffer.
    fn reset(&mut self, _at: DeviceCall, _id: CommandBufferId) {}

    fn step(&mut self, _at: DeviceCall, _step: HostStep) {}

    /// Nothing uses it any more.
    fn destroyed(&mut self, _at: DeviceCall, _gone: Destroyed) {}

    /// The first time that something of a command is not understood. [`Tracker::untracked`](crate::Tracker::missing)
    /// has the counts.
    fn untracked(&mut self, _at: DeviceCall, _missing: Untracked) {}
}

/// Where the parts of the tracker put what they find, during one call.
pub(crate) struct TrackerOutput<'a> {
    pub(crate) listener: &'a mut dyn Listener,
    pub(crate) counts: &'a mut BTreeMap<Untracked, u64>,
    /// See [`Tracker::change_count`](crate::Tracker::change_count).
    pub(crate) change_count: &'a mut u64,
    pub(crate) reflect: &'a dyn Reflect,
    /// Whether accesses are told that are made to one of several descriptors.
    pub(crate) reports_dynamic_indexing: bool,
    /// What the action that is about to be recorded may read, of whatever resource: one access of each kind.
    pub(crate) possible_reads: Vec<Access>,
    pub(crate) at: DeviceCall,
}

impl TrackerOutput<'_> {
    pub(crate) fn step(&mut self, step: HostStep) {
        self.listener.step(self.at, step);
    }

    pub(crate) fn host_access(&mut self, resource: ResourceId, region: Region, is_write: bool, certainty: Certainty) {
        self.step(HostStep::HostAccess { resource, region, is_write, certainty });
    }

    pub(crate) fn destroyed(&mut self, gone: Option<Destroyed>) {
        if let Some(gone) = gone {
            self.listener.destroyed(self.at, gone);
        }
    }

    /// Of some accesses, the reads: they are only possible, and nothing is reported of them.
    pub(crate) fn add_possible_reads(&mut self, accesses: impl IntoIterator<Item = Access>) {
        const WRITES: u64 = AccessFlags2::SHADER_STORAGE_WRITE.0
            | AccessFlags2::COLOR_ATTACHMENT_WRITE.0
            | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE.0
            | AccessFlags2::TRANSFORM_FEEDBACK_WRITE_EXT.0
            | AccessFlags2::TRANSFORM_FEEDBACK_COUNTER_WRITE_EXT.0;
        for access in accesses.into_iter().filter(|it| it.access & WRITES == 0) {
            if !self.possible_reads.iter().any(|it| (it.stage, it.access) == (access.stage, access.access)) {
                self.possible_reads.push(Access { certainty: Certainty::Unreported, ..access });
            }
        }
    }

    /// Never silent: whatever is not understood goes through here.
    pub(crate) fn report_untracked(&mut self, reason: &'static str) {
        let missing = Untracked { command: self.at.source.command, reason };
        *self.change_count += 1;
        let count = self.counts.entry(missing).or_default();
        *count += 1;
        if *count == 1 {
            self.listener.untracked(self.at, missing);
        }
    }
}

/// The object of a handle in a record.
pub(crate) fn object(handle: u64) -> ObjectId {
    ObjectId::from_raw(handle).unwrap_or_default()
}
