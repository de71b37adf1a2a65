//! Who listens to the tracker: one device after the other.

use std::collections::HashMap;

use lavascope_abi::{ObjectId, cast};
use lavascope_event::record::HEAD_SIZE;
use lavascope_event::{Record, Titles};
use lavascope_program::{
    Command, CommandBufferId, EventId, FenceId, Queue, QueueId, RenderPass, RenderPassId, Resource, ResourceId,
    SemaphoreId, Step,
};
use lavascope_state::{Gone, Listener, Where};

use crate::causes::Causes;
use crate::device::{Device, Mark};

#[derive(Default)]
pub(crate) struct Devices {
    devices: HashMap<ObjectId, Device>,
    titles: Titles,
    /// How many commands were recorded into each command buffer so far, whatever they mean.
    counts: HashMap<u64, u32>,
    pub(crate) causes: Causes,
}

impl Devices {
    /// Takes in what the tracker has no word for: names, labels, and the numbers of commands.
    pub(crate) fn follow(&mut self, record: Record<'_>) {
        self.titles.follow(record);
        let name = record.command().desc().name;
        if name.starts_with("vkCmd") {
            *self.counts.entry(first_handle(record)).or_default() += 1;
        } else if name == "vkBeginCommandBuffer" {
            self.counts.insert(first_handle(record), 0);
        }
    }

    fn at(&mut self, at: Where) -> Option<&mut Device> {
        self.devices.get_mut(&at.device)
    }
}

impl Listener for Devices {
    fn device(&mut self, at: Where, queues: &[Queue]) {
        self.devices.insert(at.device, Device::new(queues));
    }

    fn device_gone(&mut self, at: Where) {
        for object in self.devices.remove(&at.device).iter().flat_map(Device::command_buffers) {
            self.counts.remove(&object.raw());
        }
    }

    fn queue(&mut self, at: Where, id: QueueId, object: ObjectId) {
        if let Some(it) = self.at(at) {
            it.add_queue(id, object);
        }
    }

    fn resource(&mut self, at: Where, id: ResourceId, object: ObjectId, resource: &Resource) {
        if let Some(it) = self.at(at) {
            it.add_resource(id, object, resource);
        }
    }

    fn render_pass(&mut self, at: Where, id: RenderPassId, object: ObjectId, pass: &RenderPass) {
        if let Some(it) = self.at(at) {
            it.add_render_pass(id, object, pass);
        }
    }

    fn event(&mut self, at: Where, id: EventId, _object: ObjectId) {
        if let Some(it) = self.at(at) {
            it.add_event(id);
        }
    }

    fn semaphore(&mut self, at: Where, id: SemaphoreId, object: ObjectId) {
        if let Some(it) = self.at(at) {
            it.add_semaphore(id, object);
        }
    }

    fn fence(&mut self, at: Where, id: FenceId, object: ObjectId) {
        if let Some(it) = self.at(at) {
            it.add_fence(id, object);
        }
    }

    fn begin(&mut self, at: Where, id: CommandBufferId, object: ObjectId, is_secondary: bool) {
        if let Some(it) = self.at(at) {
            it.begin(id, object, is_secondary);
        }
    }

    fn command(&mut self, at: Where, id: CommandBufferId, command: Command) {
        let Some(device) = self.devices.get_mut(&at.device) else { return };
        let Some(object) = device.object_of(id) else { return };
        let mark = Mark {
            function: at.source.command,
            number: self.counts.get(&object.raw()).copied().unwrap_or(0),
            labels: self.titles.path_in_command_buffer(lavascope_abi::CommandBuffer(object.raw())),
        };
        device.command(id, command, mark);
    }

    fn amend(&mut self, at: Where, id: CommandBufferId, index: u32, command: Command) {
        if let Some(it) = self.at(at) {
            it.amend(id, index, command);
        }
    }

    fn reset(&mut self, at: Where, id: CommandBufferId) {
        if let Some(it) = self.at(at) {
            it.reset(id);
        }
    }

    fn step(&mut self, at: Where, step: Step) {
        let Some(device) = self.devices.get_mut(&at.device) else { return };
        let found = device.step(at.source, step);
        if !found.is_empty() {
            device.tell(at.device, &found, &self.titles, &mut self.causes);
        }
    }

    fn gone(&mut self, at: Where, gone: Gone) {
        let Some(device) = self.devices.get_mut(&at.device) else { return };
        if let Gone::CommandBuffer(id) = gone
            && let Some(object) = device.object_of(id)
        {
            self.counts.remove(&object.raw());
        }
        device.end(gone);
    }
}

fn first_handle(record: Record<'_>) -> u64 {
    record.body().get(HEAD_SIZE..).and_then(cast::<u64>).copied().unwrap_or(0)
}
