//! Collects the output of the tracker as whole programs.

use std::collections::{BTreeMap, HashMap};

use lavascope_abi::ObjectId;
use lavascope_sync_ir::{
    Command, CommandBuffer, CommandBufferId, EventId, FenceId, HostStep, Program, Queue, RenderPass, RenderPassId,
    Resource, ResourceId, SemaphoreId, SubmitBatch,
};

use crate::listener::{CallSource, DeviceCall, TrackerListener, Untracked};

/// A listener that builds a [`Program`] for each device.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    pub devices: BTreeMap<ObjectId, CollectedDevice>,
    pub untracked: Vec<Untracked>,
}

/// The program of a device.
#[derive(Clone, Debug, Default)]
pub struct CollectedDevice {
    pub program: Program,
    /// The objects of resources, and the calls of steps and commands.
    pub resources: Vec<ObjectId>,
    pub steps: Vec<CallSource>,
    pub commands: Vec<Vec<CallSource>>,
    /// A command buffer gets a new id each time it is recorded, because the program keeps all recordings.
    current_ids: HashMap<CommandBufferId, CommandBufferId>,
}

impl Collector {
    /// The only device, for tests and small programs.
    pub fn only_device(&self) -> Option<&CollectedDevice> {
        self.devices.values().next().filter(|_| self.devices.len() == 1)
    }

    fn at(&mut self, at: DeviceCall) -> &mut CollectedDevice {
        self.devices.entry(at.device).or_default()
    }
}

impl CollectedDevice {
    fn current_id(&self, id: CommandBufferId) -> CommandBufferId {
        self.current_ids.get(&id).copied().unwrap_or(id)
    }

    fn start_recording(&mut self, id: CommandBufferId, commands: CommandBuffer, sources: Vec<CallSource>) {
        let new = CommandBufferId(self.program.command_buffers.len() as u32);
        self.program.command_buffers.push(commands);
        self.commands.push(sources);
        self.current_ids.insert(id, new);
    }

    fn translate(&self, command: Command) -> Command {
        match command {
            Command::Execute(all) => Command::Execute(all.into_iter().map(|it| self.current_id(it)).collect()),
            other => other,
        }
    }

    fn is_submitted(&self, id: CommandBufferId) -> bool {
        let is_in = |host_step: &HostStep| match host_step {
            HostStep::Submit { batches, .. } => batches.iter().any(|it| it.command_buffers.contains(&id)),
            _ => false,
        };
        self.program.steps.iter().any(is_in)
    }
}

impl TrackerListener for Collector {
    fn device(&mut self, at: DeviceCall, queues: &[Queue]) {
        self.at(at).program.queues = queues.to_vec();
    }

    fn resource(&mut self, at: DeviceCall, _id: ResourceId, object: ObjectId, resource: &Resource) {
        let own = self.at(at);
        own.program.resources.push(resource.clone());
        own.resources.push(object);
    }

    fn render_pass(&mut self, at: DeviceCall, _id: RenderPassId, _object: ObjectId, pass: &RenderPass) {
        self.at(at).program.render_passes.push(pass.clone());
    }

    fn event(&mut self, at: DeviceCall, _id: EventId, _object: ObjectId) {
        self.at(at).program.event_count += 1;
    }

    fn semaphore(&mut self, at: DeviceCall, _id: SemaphoreId, _object: ObjectId) {
        self.at(at).program.semaphore_count += 1;
    }

    fn fence(&mut self, at: DeviceCall, _id: FenceId, _object: ObjectId) {
        self.at(at).program.fence_count += 1;
    }

    fn begin(&mut self, at: DeviceCall, id: CommandBufferId, _object: ObjectId, is_secondary: bool) {
        self.at(at).start_recording(id, CommandBuffer { is_secondary, commands: Vec::new() }, Vec::new());
    }

    fn command_recorded(&mut self, at: DeviceCall, id: CommandBufferId, command: Command) {
        let own = self.at(at);
        let (id, command) = (own.current_id(id), own.translate(command));
        if let Some(buffer) = own.program.command_buffers.get_mut(id.0 as usize) {
            buffer.commands.push(command);
            own.commands[id.0 as usize].push(at.source);
        }
    }

    fn cancel_command(&mut self, at: DeviceCall, id: CommandBufferId) {
        let own = self.at(at);
        let id = own.current_id(id).0 as usize;
        if let Some(buffer) = own.program.command_buffers.get_mut(id) {
            buffer.commands.pop();
            own.commands[id].pop();
        }
    }

    fn replace_command(&mut self, at: DeviceCall, id: CommandBufferId, index: u32, command: Command) {
        let own = self.at(at);
        let (now, command) = (own.current_id(id), own.translate(command));
        if own.is_submitted(now) {
            // Earlier submissions keep the earlier recording.
            let place = now.0 as usize;
            let (buffer, sources) = (own.program.command_buffers[place].clone(), own.commands[place].clone());
            own.start_recording(id, buffer, sources);
        }
        let now = own.current_id(id).0 as usize;
        if let Some(slot) = own.program.command_buffers.get_mut(now).and_then(|it| it.commands.get_mut(index as usize))
        {
            *slot = command;
        }
    }

    fn step(&mut self, at: DeviceCall, step: HostStep) {
        let own = self.at(at);
        let step = match step {
            HostStep::Submit { queue, batches, fence } => {
                let translate = |submit_batch: SubmitBatch| SubmitBatch {
                    command_buffers: submit_batch.command_buffers.iter().map(|it| own.current_id(*it)).collect(),
                    ..submit_batch
                };
                HostStep::Submit { queue, batches: batches.into_iter().map(translate).collect(), fence }
            }
            other => other,
        };
        own.program.steps.push(step);
        own.steps.push(at.source);
    }

    fn untracked(&mut self, _at: DeviceCall, missing: Untracked) {
        self.untracked.push(missing);
    }
}
