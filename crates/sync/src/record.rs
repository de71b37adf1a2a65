//! What is wrong inside of a command buffer, whoever executes it and whatever came before: told when its recording
//! ends, and not again when it is executed.

use lavascope_program::{CommandBufferId, Found, Queue};

use crate::check::Engine;
use crate::device::Device;
use crate::execute::{self, Recorded};

impl Engine {
    /// The step of hazards that were found while recording, where nothing has been executed yet.
    pub const RECORDING: u32 = u32::MAX;

    /// Checks a primary command buffer that was recorded, for a queue of this kind, with the secondary ones that it
    /// executes. Those are not checked by themselves: what rendering they are part of only the primary one knows.
    pub fn check_recorded(&mut self, id: CommandBufferId, queue: Queue) -> Vec<Found> {
        let Some(commands) = self.command_buffers.get_mut(id.0 as usize) else { return Vec::new() };
        commands.refresh(&self.device.addresses);
        let mut alone = Device::new(&[queue], 0, 0, 0);
        (alone.rules, alone.is_alone) = (self.device.rules, true);
        for event in 0..self.device.events.len() {
            alone.add_event(event);
        }
        // The addresses are everybody's; what happened at them is not.
        std::mem::swap(&mut alone.addresses, &mut self.device.addresses);
        let recorded = Recorded { command_buffers: &self.command_buffers, render_passes: &self.render_passes };
        execute::alone(&mut alone, recorded, &self.command_buffers[id.0 as usize], Engine::RECORDING);
        std::mem::swap(&mut alone.addresses, &mut self.device.addresses);
        for (resource, old, planes) in &alone.moved {
            self.device.move_states(*resource, old, planes);
        }
        // Where sparse resources lie, and with whom, is decided when it is executed.
        if alone.has_used_sparse {
            alone.found.clear();
        }
        self.command_buffers[id.0 as usize].told.clone_from(&alone.found);
        alone.found
    }
}

#[cfg(test)]
mod tests {
    use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S, QueueFlags};
    use lavascope_program::{
        Access, Batch, Command, CommandBuffer, HazardKind, MemoryId, Place, QueueId, Region, Resource, ResourceId,
        ResourceKind, SparseBind, SparsePart, Step,
    };

    use super::*;

    fn access(resource: u32, access: A) -> Command {
        let region = Region::Buffer(0..16);
        let (resource, stage, access) = (ResourceId(resource), S::COPY.0, access.0);
        Command::Action(vec![Access::new(resource, region, stage, access)])
    }

    fn engine(queue: Queue) -> Engine {
        let mut engine = Engine::new(&[queue], 0, 0, 0);
        for id in [4, 1] {
            let kind = ResourceKind::Buffer { size: 64 };
            engine.set_resource(ResourceId(id), &Resource::new(kind, None));
        }
        engine
    }

    fn submit(engine: &mut Engine, id: CommandBufferId) -> Vec<Found> {
        let batches = vec![Batch { command_buffers: vec![id], ..Batch::default() }];
        engine.step(&Step::Submit { queue: QueueId(0), batches, fence: None });
        engine.take_found()
    }

    #[test]
    fn what_was_told_while_recording_is_not_told_again() {
        let queue = Queue { family: 0, flags: QueueFlags::GRAPHICS.0 };
        let (mut engine, id) = (engine(queue), CommandBufferId(3));
        // A hazard inside, and a read that conflicts with the write of an earlier execution.
        let commands = vec![access(4, A::TRANSFER_READ), access(1, A::TRANSFER_WRITE), access(1, A::TRANSFER_READ)];
        engine.set_command_buffer(id, CommandBuffer { is_secondary: false, commands });
        let told = engine.check_recorded(id, queue);
        let at = |index: u32, it: &Place| matches!(it, Place::Command(it) if it.path == [index]);
        assert_eq!(told.len(), 1);
        assert!(told[0].kind == HazardKind::ReadAfterWrite && at(2, &told[0].at) && at(1, &told[0].prior));
        assert_eq!(submit(&mut engine, id), []);
        let again = submit(&mut engine, id);
        assert_eq!(again.iter().map(|it| it.kind).collect::<Vec<_>>(), [HazardKind::WriteAfterRead]);
        // Recorded anew and not checked: all of it is told when it is executed.
        let commands = vec![access(4, A::TRANSFER_WRITE), access(4, A::TRANSFER_WRITE)];
        engine.set_command_buffer(id, CommandBuffer { is_secondary: false, commands });
        assert_eq!(submit(&mut engine, id).len(), 2);
    }

    /// Two buffers that share memory while it is recorded may not share it when it is executed.
    #[test]
    fn what_is_sparse_is_not_told_while_recording() {
        let queue = Queue { family: 0, flags: QueueFlags::GRAPHICS.0 };
        let (mut engine, id) = (engine(queue), CommandBufferId(0));
        let kind = ResourceKind::Buffer { size: 64 };
        engine.set_resource(ResourceId(1), &Resource { is_sparse: true, ..Resource::new(kind, None) });
        let memory = Some((MemoryId(0), 0));
        let bind = SparseBind { resource: ResourceId(1), part: SparsePart::Bytes(0), size: 64, memory };
        let (waits, signals) = (Vec::new(), Vec::new());
        engine.step(&Step::BindSparse { queue: QueueId(0), waits, binds: vec![bind], signals, fence: None });
        let commands = vec![access(1, A::TRANSFER_WRITE), access(1, A::TRANSFER_READ)];
        engine.set_command_buffer(id, CommandBuffer { is_secondary: false, commands });
        assert_eq!(engine.check_recorded(id, queue), []);
        assert_eq!(submit(&mut engine, id).len(), 1);
    }
}
