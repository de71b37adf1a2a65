//! The listener, which receives resources, commands and steps in the types of `sync-ir`.

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_abi::{AccessFlags2, Command as ApiCommand, ObjectId};
use lavascope_sync_ir::{
    Access, Certainty, Command, CommandBufferId, EventId, FenceId, HostStep, Queue, QueueId, Region, RenderPass,
    RenderPassId, Resource, ResourceId, SemaphoreId,
};

use crate::shader::interface::Reflect;

/// The call of which the listener is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSource {
    pub command: ApiCommand,
    pub thread: u32,
    /// The number of the call within the thread.
    pub call: u64,
}

/// A device, and the call of which its listener is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCall {
    pub device: ObjectId,
    pub source: CallSource,
}

/// Something in a call that the tracker does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Untracked {
    pub command: ApiCommand,
    pub reason: &'static str,
}

/// A destroyed object. Resources have a host step instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destroyed {
    RenderPass(RenderPassId),
    Event(EventId),
    Semaphore(SemaphoreId),
    Fence(FenceId),
    CommandBuffer(CommandBufferId),
}

/// Receives what an application does.
///
/// Ids of `sync-ir` count from zero on each device, in the order in which the listener gets them. They are never
/// reused, because a view or a descriptor may outlive its resource and must not refer to another one. Objects are those
/// of the records, for messages. A command buffer keeps its id until it is freed.
pub trait TrackerListener {
    fn device(&mut self, _at: DeviceCall, _queues: &[Queue]) {}

    /// The application enabled the feature `synchronization2` of the device.
    fn synchronization2(&mut self, _at: DeviceCall) {}

    /// The device is destroyed, with all of its objects.
    fn device_destroyed(&mut self, _at: DeviceCall) {}

    /// The application got a queue.
    fn queue(&mut self, _at: DeviceCall, _id: QueueId, _object: ObjectId) {}

    /// A buffer or an image is bound to memory.
    fn resource(&mut self, _at: DeviceCall, _id: ResourceId, _object: ObjectId, _resource: &Resource) {}

    /// A buffer or an image without memory is destroyed.
    fn unbound_destroyed(&mut self, _at: DeviceCall, _object: ObjectId) {}

    fn render_pass(&mut self, _at: DeviceCall, _id: RenderPassId, _object: ObjectId, _pass: &RenderPass) {}

    fn event(&mut self, _at: DeviceCall, _id: EventId, _object: ObjectId) {}

    fn semaphore(&mut self, _at: DeviceCall, _id: SemaphoreId, _object: ObjectId) {}

    fn fence(&mut self, _at: DeviceCall, _id: FenceId, _object: ObjectId) {}

    /// A command buffer is allocated, for queues like this one.
    fn command_buffer(&mut self, _at: DeviceCall, _id: CommandBufferId, _object: ObjectId, _queue: Queue) {}

    /// Recording of a command buffer begins.
    fn begin(&mut self, _at: DeviceCall, _id: CommandBufferId, _object: ObjectId, _is_secondary: bool) {}

    /// A command is appended to a command buffer.
    fn command_recorded(&mut self, _at: DeviceCall, _id: CommandBufferId, _command: Command) {}

    /// As `command_recorded`, for an action command: a draw, dispatch or copy, as its accesses. A slice avoids an
    /// allocation for these frequent commands. The validator implements it in `crates/sync/validate/src/devices.rs`.
    fn action_recorded(&mut self, at: &DeviceCall, id: CommandBufferId, accesses: &[Access]) {
        self.command_recorded(*at, id, Command::Action(accesses.to_vec()));
    }

    /// Replaces a recorded command, because more is known now: descriptors at submission, or the attachments that a
    /// secondary command buffer inherits.
    fn replace_command(&mut self, _at: DeviceCall, _id: CommandBufferId, _index: u32, _command: Command) {}

    /// Removes the last recorded command, which did not reach the driver.
    fn cancel_command(&mut self, _at: DeviceCall, _id: CommandBufferId) {}

    fn end(&mut self, _at: DeviceCall, _id: CommandBufferId) {}

    /// The recorded commands are discarded by a reset or with the command buffer.
    fn reset(&mut self, _at: DeviceCall, _id: CommandBufferId) {}

    fn step(&mut self, _at: DeviceCall, _step: HostStep) {}

    /// Whether a host write into some of these bytes of a buffer is of interest: [`TrackerListener::host_write`] is only called if it
    /// is.
    fn uses_bytes(&self, _at: DeviceCall, _resource: ResourceId, _bytes: Range<u64>) -> bool {
        true
    }

    /// The host wrote these bytes of a buffer through a mapping, some time after the last submission and before the call.
    /// They are in order and do not touch.
    fn host_write(&mut self, _at: DeviceCall, _resource: ResourceId, _bytes: &[Range<u64>], _certainty: Certainty) {}

    /// An object is destroyed, and nothing refers to it any more.
    fn destroyed(&mut self, _at: DeviceCall, _gone: Destroyed) {}

    /// Called once for each unsupported item. [`Tracker::untracked`](crate::Tracker::untracked) has the counts.
    fn untracked(&mut self, _at: DeviceCall, _missing: Untracked) {}
}

/// The output of the tracker during one call.
pub(crate) struct TrackerOutput<'a> {
    pub(crate) listener: &'a mut dyn TrackerListener,
    pub(crate) counts: &'a mut BTreeMap<Untracked, u64>,
    /// See [`Tracker::change_count`](crate::Tracker::change_count).
    pub(crate) change_count: &'a mut u64,
    pub(crate) reflect: &'a dyn Reflect,
    /// Whether accesses through dynamically indexed descriptors are reported.
    pub(crate) reports_dynamic_indexing: bool,
    /// Possible reads of the next action, in any resource: one access of each kind.
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

    /// Adds the reads among some accesses as possible reads, which cause no reports.
    pub(crate) fn add_possible_reads(&mut self, accesses: impl IntoIterator<Item = Access>) {
        for access in accesses.into_iter().filter(|it| !is_write(it.access)) {
            if !self.possible_reads.iter().any(|it| (it.stage, it.access) == (access.stage, access.access)) {
                self.possible_reads.push(Access { certainty: Certainty::Unreported, ..access });
            }
        }
    }

    /// Reports something that the tracker does not support. Nothing is skipped silently.
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

/// Whether a bit of `VkAccessFlags2` is a write of a draw, a dispatch or a trace.
pub(crate) fn is_write(access: u64) -> bool {
    const WRITES: u64 = AccessFlags2::SHADER_STORAGE_WRITE.0
        | AccessFlags2::COLOR_ATTACHMENT_WRITE.0
        | AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE.0
        | AccessFlags2::TRANSFORM_FEEDBACK_WRITE_EXT.0
        | AccessFlags2::TRANSFORM_FEEDBACK_COUNTER_WRITE_EXT.0;
    access & WRITES != 0
}

/// The object of a handle in a record.
pub(crate) fn object(handle: u64) -> ObjectId {
    ObjectId::from_raw(handle).unwrap_or_default()
}
