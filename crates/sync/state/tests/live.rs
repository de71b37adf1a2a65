//! The engine as a listener finds the same hazards, call by call, as in the whole program.

mod common;

use std::collections::HashMap;

use common::*;
use lavascope_abi::{Fence, ObjectId};
use lavascope_engine::Engine;
use lavascope_state::{DeviceCall, TrackerListener};
use lavascope_sync_ir::{
    Command, CommandBuffer, CommandBufferId, Hazard, HostStep, Queue, RenderPass, RenderPassId, Resource, ResourceId,
};

/// More events, semaphores and fences than the test has.
const OBJECTS: u32 = 16;

#[derive(Default)]
struct LiveChecker {
    engine: Option<Engine>,
    buffers: HashMap<CommandBufferId, CommandBuffer>,
    found: Vec<Hazard>,
}

impl LiveChecker {
    fn engine(&mut self) -> &mut Engine {
        self.engine.get_or_insert_with(|| Engine::new(&[], 0, 0, 0))
    }

    fn hand_over(&mut self, id: CommandBufferId) {
        let commands = self.buffers.get(&id).cloned().unwrap_or_default();
        self.engine().set_command_buffer(id, commands);
    }
}

impl TrackerListener for LiveChecker {
    fn device(&mut self, _at: DeviceCall, queues: &[Queue]) {
        let mut engine = Engine::new(queues, OBJECTS, OBJECTS, OBJECTS);
        for _ in 0..OBJECTS {
            engine.add_command_buffer(CommandBuffer::default());
        }
        self.engine = Some(engine);
    }

    fn resource(&mut self, _at: DeviceCall, id: ResourceId, _object: ObjectId, resource: &Resource) {
        assert_eq!(self.engine().add_resource(resource), id);
    }

    fn render_pass(&mut self, _at: DeviceCall, id: RenderPassId, _object: ObjectId, pass: &RenderPass) {
        assert_eq!(self.engine().add_render_pass(pass.clone()), id);
    }

    fn begin(&mut self, _at: DeviceCall, id: CommandBufferId, _object: ObjectId, is_secondary: bool) {
        self.buffers.insert(id, CommandBuffer { is_secondary, commands: Vec::new() });
    }

    fn command_recorded(&mut self, _at: DeviceCall, id: CommandBufferId, command: Command) {
        if let Some(own) = self.buffers.get_mut(&id) {
            own.commands.push(command);
        }
    }

    fn cancel_command(&mut self, _at: DeviceCall, id: CommandBufferId) {
        if let Some(own) = self.buffers.get_mut(&id) {
            own.commands.pop();
        }
    }

    fn end(&mut self, _at: DeviceCall, id: CommandBufferId) {
        self.hand_over(id);
    }

    fn reset(&mut self, _at: DeviceCall, id: CommandBufferId) {
        self.buffers.remove(&id);
        self.hand_over(id);
    }

    fn step(&mut self, _at: DeviceCall, step: HostStep) {
        self.engine().step(&step);
        let found = self.engine().take_hazards();
        self.found.extend(found);
    }
}

/// Copies a to b in one submission and b to c in the next.
fn copies<L: TrackerListener>(mut app: App<L>) -> App<L> {
    for serial in 1..4 {
        app.make_buffer(serial, 256, serial * 256);
    }
    app.make_command_buffer(2, lavascope_abi::CommandBufferLevel::PRIMARY);
    for (src, dst) in [(1, 2), (2, 3)] {
        app.begin(2);
        app.copy_buffer(2, src, dst, 128);
        app.end(2);
        app.submit(0, 2, Fence(0));
    }
    app
}

#[test]
fn the_engine_finds_the_same_live_and_afterwards() {
    let live = copies(App::new(LiveChecker::default())).tracker.listener.found;
    let whole = lavascope_engine::check(copies(App::collecting()).program());
    assert_eq!(live, whole);
    assert_eq!(live.len(), 1);
    assert_eq!(live[0].resource, ResourceId(1));
}
