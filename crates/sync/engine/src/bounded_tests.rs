//! Tests that state stays bounded however long a program runs.

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::{
    CommandBufferId, FenceId, HazardKind, HostStep, MemoryBinding, MemoryId, Program, QueueId, Resource, ResourceId,
    ResourceKind, SemaphoreId, SemaphorePoint, SemaphoreSignal, SemaphoreWait, SubmitBatch,
};

use crate::Engine;
use crate::rules::Rules;

/// One command buffer that copies between two buffers, and one that renders.
const TEXT: &str = "# Work for one frame.
# spec: synchronization
# expect: clean

buffer a b 64
image att 8x8
queue gfx: graphics xfer: transfer
event e
timeline t
semaphore s
fence f

cmd up
  barrier all:memory_write => copy:read|write
  copy a -> b
  barrier copy:write => host:host_read|host_write
  set1 e copy

cmd paint
  barrier all:memory_write => all:memory_read|memory_write
  begin rendering color att load=clear
  draw writes color att, reads b at vertex
  end rendering
";

fn engine() -> (Program, Engine) {
    let program = lavascope_scenario::parse(TEXT).expect("a scenario").program;
    let engine = Engine::with_program(Rules::CONTRACT, &program);
    (program, engine)
}

const T: SemaphoreId = SemaphoreId(0);
const S: SemaphoreId = SemaphoreId(1);

fn frame(program: &Program, value: u64) -> [HostStep; 2] {
    let HostStep::Submit { batches, .. } = &program.steps[0] else { unreachable!("all command buffers in one batch") };
    let [up, paint] = batches[0].command_buffers[..] else { unreachable!("there are two") };
    let stages = PipelineStageFlags2::ALL_COMMANDS.0;
    let at = |semaphore, value| SemaphorePoint { semaphore, value };
    let first = SubmitBatch {
        command_buffers: vec![up],
        waits: vec![SemaphoreWait { point: at(T, Some(value - 1)), stages }],
        signals: vec![SemaphoreSignal { point: at(S, None), stages }],
    };
    let second = SubmitBatch {
        command_buffers: vec![paint],
        waits: vec![SemaphoreWait { point: at(S, None), stages }],
        signals: vec![SemaphoreSignal { point: at(T, Some(value)), stages }],
    };
    let submit = |queue, batch| HostStep::Submit { queue: QueueId(queue), batches: vec![batch], fence: None };
    [submit(1, first), submit(0, second)]
}

/// The host never waits, and the remembered signals of timeline semaphores stay bounded.
#[test]
fn signals_and_events_stay_bounded() {
    let (program, mut engine) = engine();
    let mut sizes = Vec::new();
    for value in 1..5_000 {
        frame(&program, value).iter().for_each(|it| engine.step(it));
        if value % 1_000 == 0 {
            sizes.push(engine.device.known_signals());
        }
    }
    assert_eq!(engine.take_hazards(), []);
    assert!(sizes.iter().all(|it| *it <= 1100) && sizes[3] == sizes[1], "{sizes:?}");
}

/// The host waits for every frame, so the engine forgets what the host knows.
#[test]
fn signals_that_the_host_knows_are_forgotten() {
    let (program, mut engine) = engine();
    for value in 1..100 {
        frame(&program, value).iter().for_each(|it| engine.step(it));
        engine.step(&HostStep::WaitSemaphores(vec![SemaphorePoint { semaphore: T, value: Some(value) }]));
    }
    assert_eq!(engine.take_hazards(), []);
    assert!(engine.device.known_signals() <= 2, "{}", engine.device.known_signals());
}

/// Locations of tags are forgotten when no range remembers the tags.
#[test]
fn places_stay_bounded() {
    let (program, mut engine) = engine();
    for value in 1..20_000 {
        frame(&program, value).iter().for_each(|it| engine.step(it));
    }
    assert!(engine.device.locations.len() < 1_100, "{}", engine.device.locations.len());
}

/// A wait removes accesses that are complete and visible to the host, and no others.
#[test]
fn ranges_go_with_their_last_access() {
    let (program, mut engine) = engine();
    frame(&program, 1).iter().for_each(|it| engine.step(it));
    let before = engine.range_count();
    engine.forget_finished();
    assert_eq!(engine.range_count(), before);
    engine.step(&HostStep::DeviceIdle);
    engine.forget_finished();
    // The copy is visible to the host; the attachment is not.
    let left: Vec<u64> = engine.device.states.iter().map(|it| it.0.start).collect();
    assert_eq!(left, [engine.device.addresses.whole(ResourceId(2)).start]);
    assert!(before > 1);
}

/// Small pieces of many buffers, each used once, are removed without an explicit call.
#[test]
fn ranges_that_are_over_go_by_themselves() {
    let (program, mut engine) = engine();
    let mut most = 0;
    for value in 1..200 {
        frame(&program, value).iter().for_each(|it| engine.step(it));
        engine.step(&HostStep::DeviceIdle);
        for number in 0..100_u64 {
            let resource = lavascope_sync_ir::Resource::new(lavascope_sync_ir::ResourceKind::Buffer { size: 4 }, None);
            let id = engine.add_resource(&resource);
            let region = lavascope_sync_ir::Region::Buffer(0..1 + number % 4);
            engine.step(&HostStep::HostAccess { resource: id, region, is_write: true, certainty: Default::default() });
        }
        most = most.max(engine.range_count());
    }
    assert!(most < 5_000, "{most}");
}

/// Two render passes with dependencies between subpasses only, and no wider barrier anywhere.
const PASSES: &str = "# Passes, one after the other.
# spec: VkSubpassDependency
# expect: clean

buffer b 64
image att sun 8x8
queue gfx: graphics
fence f g

pass light
  attachment color load=clear
  subpass color 0
  dependency external => 0: color:write => color:write
  dependency 0 => external: color:write => fragment:sampled_read

pass main
  attachment color load=clear
  subpass color 0
  dependency external => 0: color:write => color:write
  dependency 0 => 0: fragment:storage_write => fragment:storage_read|storage_write
  dependency 0 => external: fragment:storage_write => fragment:storage_read|storage_write
  dependency 0 => external: color:write => copy:read

cmd frame
  begin light with sun
  draw writes color sun
  end pass
  begin main with att
  draw samples sun at fragment, writes b at fragment, writes color att
  barrier fragment:storage_write => fragment:storage_read|storage_write
  draw reads b at fragment
  end pass

cmd look
  dispatch reads b
";

struct Passes {
    engine: Engine,
    frame: SubmitBatch,
    look: SubmitBatch,
    most: usize,
}

impl Passes {
    fn new() -> Passes {
        let program = lavascope_scenario::parse(PASSES).expect("a scenario").program;
        let HostStep::Submit { batches, .. } = &program.steps[0] else {
            unreachable!("all command buffers in one batch")
        };
        let [frame, look] = batches[0].command_buffers[..] else { unreachable!("there are two") };
        let batch = |it| SubmitBatch { command_buffers: vec![it], ..SubmitBatch::default() };
        let engine = Engine::with_program(Rules::CONTRACT, &program);
        Passes { engine, frame: batch(frame), look: batch(look), most: 0 }
    }

    fn submit(&mut self, batch: SubmitBatch, fence: Option<FenceId>) {
        self.engine.step(&HostStep::Submit { queue: QueueId(0), batches: vec![batch], fence });
        self.most = self.most.max(self.engine.device.interval_count());
    }

    /// So far there is no hazard, and a new one is found: the last render pass is not ordered before a dispatch.
    fn assert_exact(mut self) {
        assert_eq!(self.engine.take_hazards(), []);
        self.submit(self.look.clone(), None);
        let found = self.engine.take_hazards();
        assert!(matches!(&found[..], [hazard] if hazard.kind == HazardKind::ReadAfterWrite), "{found:?}");
    }
}

/// Two frames in flight, as most programs have.
#[test]
fn stretches_go_when_the_host_has_waited() {
    let mut passes = Passes::new();
    for number in 0..10_000_u32 {
        let fence = FenceId(number % 2);
        passes.engine.step(&HostStep::WaitFences(vec![fence]));
        passes.engine.step(&HostStep::ResetFences(vec![fence]));
        passes.submit(passes.frame.clone(), Some(fence));
    }
    assert!(passes.most <= 24, "{}", passes.most);
    passes.assert_exact();
}

/// The host never waits, and every dependency covers a single subpass.
#[test]
fn stretches_stay_bounded_without_any_wait() {
    let mut passes = Passes::new();
    (0..10_000).for_each(|_| passes.submit(passes.frame.clone(), None));
    assert!(passes.most <= 80, "{}", passes.most);
    passes.assert_exact();
}

/// Like the test before, inside one submission.
#[test]
fn stretches_stay_bounded_in_one_batch() {
    let mut passes = Passes::new();
    let frames = vec![passes.frame.command_buffers[0]; 5_000];
    passes.submit(SubmitBatch { command_buffers: frames, ..SubmitBatch::default() }, None);
    assert!(passes.most <= 80, "{}", passes.most);
    passes.assert_exact();
}

/// A destroyed resource leaves no state behind; its id and its addresses are reused.
#[test]
fn what_is_destroyed_is_given_again() {
    let text = "# A copy.\n# spec: synchronization\n# expect: clean\n\nbuffer a b c d e 8\n\n\
        cmd up\n  copy a -> b\n\ncmd down\n  copy d -> e\n";
    let program = lavascope_scenario::parse(text).expect("a scenario").program;
    let mut engine = Engine::with_program(Rules::CONTRACT, &program);
    let bound = |memory: u32, offset: u64| {
        let binding = Some(MemoryBinding { memory: MemoryId(memory), offset, size: 8 });
        Resource::new(ResourceKind::Buffer { size: 8 }, binding)
    };
    let submit = |engine: &mut Engine, id: CommandBufferId| {
        let batches = vec![SubmitBatch { command_buffers: vec![id], ..SubmitBatch::default() }];
        engine.step(&HostStep::Submit { queue: QueueId(0), batches, fence: None });
    };
    // The two resources share some bytes, so the write to the first one is known after it is destroyed.
    let [written, beside] = [ResourceId(1), ResourceId(2)];
    engine.set_resource(written, &bound(0, 0));
    engine.set_resource(beside, &bound(0, 4));
    let up = engine.add_command_buffer(program.command_buffers[0].clone());
    submit(&mut engine, up);
    let base = engine.device.addresses.whole(written).start;
    [written, beside].into_iter().for_each(|it| engine.step(&HostStep::Destroy(it)));
    let mut most = 0;
    for memory in 1..10_000 {
        let id = engine.add_resource(&bound(memory, 0));
        most = most.max(id.0);
        if engine.device.addresses.whole(id).start == base {
            // Another resource takes its place.
            engine.set_resource(ResourceId(3), &bound(memory, 0));
            let down = engine.add_command_buffer(program.command_buffers[1].clone());
            submit(&mut engine, down);
            assert_eq!(engine.take_hazards(), []);
            return;
        }
        engine.step(&HostStep::Destroy(id));
        assert!(most <= 5, "{most}");
    }
    panic!("the addresses are not given again");
}
