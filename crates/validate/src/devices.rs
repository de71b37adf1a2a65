//! Who listens to the tracker: one device after the other.

use std::collections::HashMap;

use lavascope_abi::{HandleType, ObjectId, cast};
use lavascope_event::record::HEAD_SIZE;
use lavascope_event::{Call, Record, Titles};
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
        if is_about_ours(record) {
            self.titles.follow(record);
        }
        let name = record.command().desc().name;
        if name.starts_with("vkCmd") {
            *self.counts.entry(first_handle(record)).or_default() += 1;
        } else if name == "vkBeginCommandBuffer" {
            self.counts.insert(first_handle(record), 0);
        }
    }

    /// Objects that are remembered, and numbers that engines have.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> (usize, usize) {
        self.devices.values().map(Device::sizes).fold((0, 0), |all, it| (all.0 + it.0, all.1 + it.1))
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
        for object in self.devices.remove(&at.device).iter().flat_map(|it| it.objects.all()) {
            self.counts.remove(&object.raw());
            self.titles.forget(object);
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
        device.tell(at.device, &found.hazards, &self.titles, &mut self.causes);
        device.tell_faults(at.device, &found.faults, &self.titles, &mut self.causes);
        device.forgotten.drain(..).for_each(|it| self.titles.forget(it));
    }

    fn gone(&mut self, at: Where, gone: Gone) {
        let Some(device) = self.devices.get_mut(&at.device) else { return };
        if let Gone::CommandBuffer(id) = gone
            && let Some(object) = device.object_of(id)
        {
            self.counts.remove(&object.raw());
        }
        device.end(gone);
        device.forgotten.drain(..).for_each(|it| self.titles.forget(it));
    }
}

/// Whether a record may say something about what diagnostics name. Names of other things would only pile up.
fn is_about_ours(record: Record<'_>) -> bool {
    let object = match Call::of(record) {
        Some(Call::SetDebugUtilsObjectNameEXT(it)) => it.p_name_info().map(|it| it.object_handle),
        Some(Call::DebugMarkerSetObjectNameEXT(it)) => it.p_name_info().map(|it| it.object),
        // Labels, and what has nothing to do with either.
        _ => return true,
    };
    let ours = [
        HandleType::Buffer,
        HandleType::Image,
        HandleType::RenderPass,
        HandleType::Semaphore,
        HandleType::Fence,
        HandleType::CommandBuffer,
        HandleType::Queue,
    ];
    object.and_then(ObjectId::from_raw).and_then(ObjectId::ty).is_some_and(|it| ours.contains(&it))
}

fn first_handle(record: Record<'_>) -> u64 {
    record.body().get(HEAD_SIZE..).and_then(cast::<u64>).copied().unwrap_or(0)
}
