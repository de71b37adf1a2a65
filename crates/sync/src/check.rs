//! Checks a program, step by step or whole.

use lavascope_program::{
    Batch, CommandBuffer, CommandBufferId, EventId, FenceId, Found, Program, Queue, QueueId, RenderPass, RenderPassId,
    Resource, ResourceId, SemaphoreId, Step,
};

use crate::device::{Device, Execute, slot};
use crate::execute::{self, Recorded};
use crate::prepare::Prepared;
use crate::rules::Rules;

/// All hazards of a program, in the order in which they happen.
pub fn check(program: &Program) -> Vec<Found> {
    check_with(Rules::CONTRACT, program)
}

/// The same by other rules than those that users see.
pub fn check_with(rules: Rules, program: &Program) -> Vec<Found> {
    let mut engine = Engine::of(rules, program);
    for step in &program.steps {
        engine.step(step);
    }
    engine.take_found()
}

/// The engine, for programs that are told as they happen.
///
/// Whoever tells gives the numbers of things: those of a program count from zero, those of a running application may be
/// used again after something was destroyed.
pub struct Engine {
    pub(crate) device: Device,
    pub(crate) command_buffers: Vec<Prepared>,
    pub(crate) render_passes: Vec<RenderPass>,
    steps: u32,
}

impl Engine {
    pub fn new(queues: &[Queue], events: u32, semaphores: u32, fences: u32) -> Engine {
        Engine {
            device: Device::new(queues, events, semaphores, fences),
            command_buffers: Vec::new(),
            render_passes: Vec::new(),
            steps: 0,
        }
    }

    /// With all that a program has, before its first step.
    pub fn of(rules: Rules, program: &Program) -> Engine {
        let mut engine = Engine::new(&program.queues, program.events, program.semaphores, program.fences);
        engine.device.rules = rules;
        for resource in &program.resources {
            engine.add_resource(resource);
        }
        engine.render_passes.clone_from(&program.render_passes);
        for commands in &program.command_buffers {
            engine.add_command_buffer(commands.clone());
        }
        engine
    }

    pub fn add_resource(&mut self, resource: &Resource) -> ResourceId {
        self.device.addresses.add(resource)
    }

    /// There is a resource of this number from now on; there was none, or it was destroyed.
    pub fn set_resource(&mut self, id: ResourceId, resource: &Resource) {
        self.device.addresses.set(id, resource);
    }

    /// There is a render pass of this number from now on.
    pub fn set_render_pass(&mut self, id: RenderPassId, pass: RenderPass) {
        *slot(&mut self.render_passes, id.0 as usize) = pass;
    }

    /// There is an event of this number from now on, which is not set.
    pub fn set_event(&mut self, id: EventId) {
        self.device.add_event(id.0 as usize);
    }

    /// There is a semaphore of this number from now on, which is not signaled.
    pub fn set_semaphore(&mut self, id: SemaphoreId) {
        self.device.add_semaphore(id.0 as usize);
    }

    /// There is a fence of this number from now on, which is not signaled.
    pub fn set_fence(&mut self, id: FenceId) {
        self.device.add_fence(id.0 as usize);
    }

    pub fn add_render_pass(&mut self, pass: RenderPass) -> RenderPassId {
        self.render_passes.push(pass);
        RenderPassId(self.render_passes.len() as u32 - 1)
    }

    pub fn add_command_buffer(&mut self, commands: CommandBuffer) -> CommandBufferId {
        let prepared = self.prepare(commands);
        self.command_buffers.push(prepared);
        CommandBufferId(self.command_buffers.len() as u32 - 1)
    }

    /// Looks up what can be known of a command buffer before it is executed. Threads may do this at the same time.
    pub fn prepare(&self, commands: CommandBuffer) -> Prepared {
        Prepared::new(commands, &self.device.addresses)
    }

    /// Recorded anew.
    pub fn set_command_buffer(&mut self, id: CommandBufferId, commands: CommandBuffer) {
        let prepared = self.prepare(commands);
        *slot(&mut self.command_buffers, id.0 as usize) = prepared;
    }

    /// The host does something.
    pub fn step(&mut self, step: &Step) {
        self.refresh(step);
        let recorded = Recorded { command_buffers: &self.command_buffers, render_passes: &self.render_passes };
        let mut run = |device: &mut Device, queue: u8, step: u32, index: u32, batch: &Batch| {
            execute::batch(device, recorded, queue, step, index, batch);
        };
        take(&mut self.device, self.steps, step, &mut run);
        self.steps += 1;
    }

    /// Looks up again what is about to be executed, where addresses have changed.
    fn refresh(&mut self, step: &Step) {
        let Step::Submit { batches, .. } = step else { return };
        for id in batches.iter().flat_map(|it| &it.command_buffers) {
            if let Some(commands) = self.command_buffers.get_mut(id.0 as usize) {
                commands.refresh(&self.device.addresses);
            }
        }
    }

    /// The hazards found since the last time.
    pub fn take_found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.device.found)
    }

    /// Work that waits for semaphores which nobody has signaled: its queue, and the step that submitted it.
    pub fn parked(&self) -> Vec<(QueueId, u32)> {
        self.device.parked().collect()
    }

    /// Ranges of memory about which something is known.
    pub fn ranges(&self) -> usize {
        self.device.states.len()
    }
}

fn take(device: &mut Device, index: u32, step: &Step, run: Execute<'_>) {
    match step {
        Step::Submit { queue, batches, fence } => device.submit(index, *queue, batches, *fence, run),
        Step::WaitFences(fences) => device.wait_fences(fences),
        Step::ResetFences(fences) => device.reset_fences(fences),
        Step::QueueIdle(queue) => device.queue_idle(*queue),
        Step::DeviceIdle => device.device_idle(),
        Step::WaitSemaphores(points) => device.host_waits(points),
        Step::SignalSemaphore(point) => {
            device.host_signals(*point);
            device.run(run);
        }
        Step::Destroy(resource) => {
            let range = device.addresses.whole(*resource);
            device.states.remove(range);
            device.addresses.remove(*resource);
        }
        Step::Acquire { image, semaphore, fence } => {
            device.acquire(index, *image, *semaphore, *fence);
            device.run(run);
        }
        Step::SetEvent(event) => {
            device.host_sets_event(index, event.0 as usize);
            device.run(run);
        }
        Step::ResetEvent(event) => {
            if let Some(event) = device.events.get_mut(event.0 as usize) {
                event.set = None;
            }
        }
        Step::HostAccess { resource, region, is_write } => device.host_access(index, *resource, region, *is_write),
        Step::Present { queue, waits, images } => device.submit_present(index, *queue, waits, images, run),
    }
}
