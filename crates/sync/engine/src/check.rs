//! Checks a program, step by step or as a whole.

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_sync_ir::{
    CommandBuffer, CommandBufferId, EventId, FenceId, Findings, Hazard, HostStep, Program, Queue, QueueId, RenderPass,
    RenderPassId, Resource, ResourceId, SemaphoreId, SemaphorePoint, SubmitBatch, UndefinedContents, may_share_bytes,
};

use crate::command_buffer::deferred_checks::DeferredChecks;
use crate::command_buffer::prepared::PreparedCommandBuffer;
use crate::command_buffer::recording::IsolatedExecution;
use crate::command_buffer::used_blocks::UsedBlocks;
use crate::memory::allocations::UnplacedReason;
use crate::queue::device::{EngineDevice, get_or_grow};
use crate::queue::execution;
use crate::queue::execution::RecordedCommands;
use crate::queue::submissions::{ExecuteBatch, SparseBindWork};
use crate::rules::Rules;

/// All hazards of a program, in the order in which they happen.
pub fn check(program: &Program) -> Vec<Hazard> {
    check_all(program).hazards
}

/// Like `check`, with other rules than those that users see.
pub fn check_with(rules: Rules, program: &Program) -> Vec<Hazard> {
    check_program(rules, program).hazards
}

/// All findings of a program: hazards, and uses of undefined contents.
pub fn check_all(program: &Program) -> Findings {
    check_program(Rules::CONTRACT, program)
}

fn check_program(rules: Rules, program: &Program) -> Findings {
    let mut engine = Engine::with_program(rules, program);
    for step in &program.steps {
        engine.step(step);
    }
    let mut hazards = engine.take_hazards();
    hazards.retain(|it| may_share_bytes(it, program.accesses_at(&it.at), program.accesses_at(&it.prior)));
    Findings { hazards, faults: engine.take_faults() }
}

/// The engine, for programs that arrive step by step.
///
/// The caller assigns the ids. Those of a program count from zero. Those of a running application may be reused after
/// an object was destroyed.
pub struct Engine {
    pub(crate) device: EngineDevice,
    pub(crate) command_buffers: Vec<PreparedCommandBuffer>,
    pub(crate) render_passes: Vec<RenderPass>,
    /// Reused by the next command buffers that are recorded.
    #[expect(clippy::vec_box, reason = "they go in and out as they are")]
    pub(crate) spare_isolated: Vec<Box<IsolatedExecution>>,
    pub(crate) spare_used_blocks: Vec<UsedBlocks>,
    /// Present if command buffers are not checked while they are recorded.
    pub(crate) deferred_checks: Option<DeferredChecks>,
    pub(crate) is_cache_disabled: bool,
    steps: u32,
}

impl Engine {
    pub fn new(queues: &[Queue], events: u32, semaphores: u32, fences: u32) -> Engine {
        Engine {
            device: EngineDevice::new(queues, events, semaphores, fences),
            command_buffers: Vec::new(),
            render_passes: Vec::new(),
            spare_isolated: Vec::new(),
            spare_used_blocks: Vec::new(),
            deferred_checks: None,
            is_cache_disabled: false,
            steps: 0,
        }
    }

    /// Switches off all caches, as a reference for tests: every access of every command is looked up and checked. Must
    /// be called before the first command buffer.
    pub fn disable_caches(&mut self) {
        self.is_cache_disabled = true;
    }

    /// An engine with all objects of a program, before its first step.
    pub fn with_program(rules: Rules, program: &Program) -> Engine {
        let mut engine =
            Engine::new(&program.queues, program.event_count, program.semaphore_count, program.fence_count);
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
        let id = self.device.addresses.add(resource);
        self.device.forget_freed_ranges();
        self.device.track_owner(id);
        id
    }

    /// Adds a resource. The id must be new, or that of a destroyed resource.
    pub fn set_resource(&mut self, id: ResourceId, resource: &Resource) {
        self.device.addresses.set(id, resource);
        self.device.forget_freed_ranges();
        self.device.contents.forget(id);
        self.device.track_owner(id);
    }

    /// Adds or replaces a render pass.
    pub fn set_render_pass(&mut self, id: RenderPassId, pass: RenderPass) {
        *get_or_grow(&mut self.render_passes, id.0 as usize) = pass;
    }

    /// Adds an event that is not set.
    pub fn set_event(&mut self, id: EventId) {
        self.device.add_event(id.0 as usize);
    }

    /// Adds a semaphore that is not signaled.
    pub fn set_semaphore(&mut self, id: SemaphoreId) {
        self.device.add_semaphore(id.0 as usize);
    }

    /// Adds a fence that is not signaled.
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

    /// Looks up what is known of a command buffer before its execution. Several threads may do this at the same time.
    pub fn prepare(&self, commands: CommandBuffer) -> PreparedCommandBuffer {
        match self.is_cache_disabled {
            true => PreparedCommandBuffer::uncached(commands, &self.device.addresses),
            false => PreparedCommandBuffer::new(commands, &self.device.addresses),
        }
    }

    /// Replaces a command buffer. It is not checked before it is executed.
    pub fn set_command_buffer(&mut self, id: CommandBufferId, commands: CommandBuffer) {
        self.end_recording(id);
        self.end_deferred_check(id);
        let prepared = get_or_grow(&mut self.command_buffers, id.0 as usize);
        prepared.list.is_cache_disabled = self.is_cache_disabled;
        prepared.record(commands, &self.device.addresses);
    }

    /// Processes one step of the host.
    pub fn step(&mut self, step: &HostStep) {
        if let HostStep::Destroy(_) = step {
            self.check_unexecuted();
        }
        self.refresh(step);
        let recorded = RecordedCommands { command_buffers: &self.command_buffers, render_passes: &self.render_passes };
        let mut run = |device: &mut EngineDevice, queue: u8, step: u32, index: u32, batch: &SubmitBatch| {
            execution::execute_batch(device, recorded, queue, step, index, batch);
        };
        execute_step(&mut self.device, self.steps, step, &mut run);
        self.steps += 1;
    }

    /// Looks up the commands that are about to be executed again, if addresses have changed.
    fn refresh(&mut self, step: &HostStep) {
        let HostStep::Submit { batches, .. } = step else { return };
        for id in batches.iter().flat_map(|it| &it.command_buffers) {
            self.end_recording(*id);
            if let Some(commands) = self.command_buffers.get_mut(id.0 as usize) {
                commands.set_executed();
                commands.refresh(&self.device.addresses);
                commands.update_busy_commands(&self.device.addresses);
                let executed = std::mem::take(&mut commands.executed);
                self.refresh_all(executed.iter().map(|it| it.0));
                self.command_buffers[id.0 as usize].executed = executed;
            }
        }
    }

    /// Like `refresh`, for secondary command buffers. Those that they execute themselves are looked up at execution.
    pub(crate) fn refresh_all(&mut self, ids: impl Iterator<Item = CommandBufferId>) {
        for id in ids {
            if let Some(commands) = self.command_buffers.get_mut(id.0 as usize) {
                commands.refresh(&self.device.addresses);
            }
        }
    }

    /// The hazards found since the last call.
    pub fn take_hazards(&mut self) -> Vec<Hazard> {
        std::mem::take(&mut self.device.hazards)
    }

    /// The uses of undefined contents found since the last call.
    pub fn take_faults(&mut self) -> Vec<UndefinedContents> {
        std::mem::take(&mut self.device.contents.faults)
    }

    /// Which of these bytes of a buffer submitted work may still use, as far as the host knows: it must not write them yet.
    pub fn bytes_in_use(&self, resource: ResourceId, bytes: &[Range<u64>]) -> Vec<Range<u64>> {
        self.device.bytes_in_use(resource, bytes)
    }

    /// Submissions that wait for semaphores which nothing has signaled: the queue, and the step of the submission.
    pub fn blocked_submissions(&self) -> Vec<(QueueId, u32)> {
        self.device.blocked_submissions().collect()
    }

    /// The semaphores for which the first blocked submission of a queue waits.
    pub fn unsignaled_waits(&self, queue: QueueId) -> Vec<SemaphorePoint> {
        self.device.unsignaled_waits(queue)
    }

    /// Whether a resource got no addresses since the last call.
    #[inline]
    pub fn has_unplaced(&self) -> bool {
        self.device.addresses.has_unplaced()
    }

    /// How often a resource got no addresses since the last call, by reason. Accesses to such a resource are not
    /// checked.
    pub fn take_unplaced(&mut self) -> BTreeMap<UnplacedReason, u64> {
        self.device.addresses.take_unplaced()
    }

    /// Forgets state that no later hazard can need. The engine also does this by itself from time to time.
    pub fn forget_finished(&mut self) {
        self.device.forget_finished();
    }

    /// Number of memory ranges with a state.
    pub fn range_count(&self) -> usize {
        self.device.states.len()
    }
}

fn execute_step(device: &mut EngineDevice, index: u32, step: &HostStep, run: ExecuteBatch<'_>) {
    device.sweep();
    match step {
        HostStep::Submit { queue, batches, fence } => device.submit(index, *queue, batches, *fence, run),
        HostStep::WaitFences(fences) => device.wait_fences(fences),
        HostStep::ResetFences(fences) => device.reset_fences(fences),
        HostStep::QueueIdle(queue) => device.queue_idle(*queue),
        HostStep::DeviceIdle => device.device_idle(),
        HostStep::WaitSemaphores(points) => device.host_wait_semaphores(points),
        HostStep::SignalSemaphore(point) => {
            device.host_signal_semaphore(*point);
            device.run_queues(run);
        }
        HostStep::Destroy(resource) => {
            // Accesses through other resources in the same memory must stay: later accesses are checked against them.
            for range in device.addresses.unshared_ranges(*resource) {
                device.states.remove(range);
            }
            device.contents.forget(*resource);
            device.forget_presented(*resource);
            device.addresses.destroy(*resource);
            device.remove_destroyed();
        }
        HostStep::Acquire { image, semaphore, fence } => {
            device.acquire(index, *image, *semaphore, *fence);
            // The first queue family that uses the image owns it.
            device.contents.forget(*image);
            device.run_queues(run);
        }
        HostStep::SetEvent(event) => {
            device.host_set_event(index, event.0 as usize);
            device.run_queues(run);
        }
        HostStep::ResetEvent(event) => {
            if let Some(event) = device.events.get_mut(event.0 as usize) {
                event.set = None;
            }
        }
        HostStep::HostAccess { resource, region, is_write, .. } => {
            device.host_access(index, *resource, region, *is_write);
        }
        HostStep::BindSparse { queue, waits, binds, signals, fence } => {
            let bind =
                SparseBindWork { waits: waits.clone(), binds: binds.clone(), signals: signals.clone(), fence: *fence };
            device.submit_sparse(index, *queue, bind, run);
        }
        HostStep::Present { queue, waits, images } => device.submit_present(index, *queue, waits, images, run),
    }
}

#[cfg(test)]
mod tests {
    use lavascope_sync_ir::ProgramLocation;

    use super::*;

    const TEXT: &str = "# A buffer goes to another family without a transfer.
# spec: resources-sharing

buffer src 64
buffer mid 64 exclusive
queue gfx: graphics xfer: transfer
semaphore s

cmd up
  fill: copy src -> mid

cmd use
  draw reads mid at vertex
  #          ^ UNOWNED mid[0..64] after up.fill

xfer submit up signal s
gfx submit use wait s
";

    /// Locations are forgotten from time to time, except those that a later message may need.
    #[test]
    fn owners_of_long_ago_are_reported_with_their_place() {
        let program = lavascope_scenario::parse(TEXT).expect("a scenario").program;
        let mut engine =
            Engine::new(&program.queues, program.event_count, program.semaphore_count, program.fence_count);
        let both: Vec<_> = program.resources.iter().map(|it| engine.add_resource(it)).collect();
        for command_buffer in &program.command_buffers {
            engine.add_command_buffer(command_buffer.clone());
        }
        engine.step(&program.steps[0]);
        // As if other resources had overwritten all of it.
        engine.device.states.remove(0..u64::MAX);
        let nothing = engine.add_command_buffer(CommandBuffer::default());
        let batch = SubmitBatch { command_buffers: vec![nothing], ..SubmitBatch::default() };
        let idle = HostStep::Submit { queue: QueueId(0), batches: vec![batch], fence: None };
        (0..10_000).for_each(|_| engine.step(&idle));
        engine.step(&program.steps[1]);
        let faults = engine.take_faults();
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].resource, both[1]);
        assert!(matches!(&faults[0].prior, Some(ProgramLocation::Command(at)) if at.step == 0), "{faults:?}");
    }

    /// A buffer with a reused id has no owner.
    #[test]
    fn owners_go_with_what_they_own() {
        let program = lavascope_scenario::parse(TEXT).expect("a scenario").program;
        for is_new in [false, true] {
            let mut engine = Engine::with_program(Rules::CONTRACT, &program);
            engine.step(&program.steps[0]);
            if is_new {
                engine.set_resource(ResourceId(1), &program.resources[1]);
            }
            engine.step(&program.steps[1]);
            assert_eq!(engine.take_faults().len(), usize::from(!is_new));
        }
    }

    #[test]
    fn things_have_the_numbers_that_they_are_given() {
        let mut engine = Engine::new(&[], 0, 0, 0);
        let numbers = [(); 3].map(|()| engine.add_render_pass(RenderPass::default()).0);
        assert_eq!(numbers, [0, 1, 2]);
        engine.set_render_pass(RenderPassId(7), RenderPass::default());
        assert_eq!(engine.render_passes.len(), 8);
        assert_eq!([(); 2].map(|()| engine.add_command_buffer(CommandBuffer::default()).0), [0, 1]);
        engine.set_command_buffer(CommandBufferId(4), CommandBuffer::default());
        assert_eq!(engine.command_buffers.len(), 5);
        engine.set_event(EventId(3));
        assert_eq!(engine.device.events.len(), 4);
    }

    /// An object with a reused id has no state of the old one.
    #[test]
    fn what_is_made_anew_is_not_signaled() {
        let queue = Queue { family: 0, flags: 1 };
        let mut engine = Engine::new(&[queue], 1, 1, 1);
        let point = SemaphorePoint { semaphore: SemaphoreId(0), value: Some(5) };
        let wait = lavascope_sync_ir::SemaphoreWait { point, stages: 0 };
        let batch = SubmitBatch { waits: vec![wait], ..SubmitBatch::default() };
        let submit = |fence| HostStep::Submit { queue: QueueId(0), batches: vec![batch.clone()], fence };
        engine.step(&HostStep::SignalSemaphore(point));
        engine.step(&submit(None));
        assert!(engine.blocked_submissions().is_empty() && engine.unsignaled_waits(QueueId(0)).is_empty());
        engine.set_semaphore(SemaphoreId(0));
        engine.step(&submit(None));
        assert_eq!(
            (engine.blocked_submissions(), engine.unsignaled_waits(QueueId(0))),
            (vec![(QueueId(0), 2)], vec![point])
        );
        assert_eq!(engine.unsignaled_waits(QueueId(1)), []);
        engine.step(&HostStep::SignalSemaphore(point));
        assert!(engine.blocked_submissions().is_empty());
        engine.step(&HostStep::SetEvent(EventId(0)));
        assert!(engine.device.events[0].set.is_some());
        engine.set_event(EventId(0));
        assert!(engine.device.events[0].set.is_none());
    }

    /// A resource that is too large is reported once.
    #[test]
    fn what_has_no_room_is_reported() {
        let mut engine = Engine::new(&[Queue { family: 0, flags: 1 }], 0, 0, 0);
        let kind = lavascope_sync_ir::ResourceKind::Buffer { size: u64::MAX };
        engine.add_resource(&Resource::new(kind, None));
        assert_eq!(engine.take_unplaced(), BTreeMap::from([(UnplacedReason::AddressSpaceFull, 1)]));
        assert!(engine.take_unplaced().is_empty());
    }

    /// A fence that is new or reset gives no order with the submission that used it before.
    #[test]
    fn a_new_fence_tells_nothing() {
        let text = "# The host reads what was copied.\n# spec: synchronization\n# expect: clean\n\n\
            buffer a b 64\nfence f\n\ncmd up\n  copy a -> b\n  barrier copy:write => host:host_read\n\n\
            q submit up fence f\nwait fence f\nhost reads b\n";
        let program = lavascope_scenario::parse(text).unwrap_or_else(|error| panic!("{error:?}")).program;
        let renew = |engine: &mut Engine| engine.set_fence(FenceId(0));
        let reset = |engine: &mut Engine| engine.step(&HostStep::ResetFences(vec![FenceId(0)]));
        // A wait for an object that does not exist gives no order.
        let other = |engine: &mut Engine| {
            engine.step(&HostStep::ResetFences(vec![FenceId(1)]));
            engine.step(&HostStep::QueueIdle(QueueId(1)));
        };
        type Between<'a> = &'a dyn Fn(&mut Engine);
        let cases: [(Between<'_>, usize); 3] = [(&renew, 1), (&reset, 1), (&other, 0)];
        for (between, wanted) in cases {
            let mut engine = Engine::with_program(Rules::CONTRACT, &program);
            engine.step(&program.steps[0]);
            between(&mut engine);
            program.steps[1..].iter().for_each(|it| engine.step(it));
            assert_eq!(engine.take_hazards().len(), wanted);
        }
    }
}
