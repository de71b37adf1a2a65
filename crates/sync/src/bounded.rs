//! What stays small however long a program runs.

use lavascope_abi::PipelineStageFlags2;
use lavascope_program::{Batch, Point, Program, QueueId, ResourceId, SemaphoreId, Signal, Step, Wait};

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
    let engine = Engine::of(Rules::CONTRACT, &program);
    (program, engine)
}

const T: SemaphoreId = SemaphoreId(0);
const S: SemaphoreId = SemaphoreId(1);

fn frame(program: &Program, value: u64) -> [Step; 2] {
    let Step::Submit { batches, .. } = &program.steps[0] else { unreachable!("all command buffers in one batch") };
    let [up, paint] = batches[0].command_buffers[..] else { unreachable!("there are two") };
    let stages = PipelineStageFlags2::ALL_COMMANDS.0;
    let at = |semaphore, value| Point { semaphore, value };
    let first = Batch {
        command_buffers: vec![up],
        waits: vec![Wait { point: at(T, Some(value - 1)), stages }],
        signals: vec![Signal { point: at(S, None), stages }],
    };
    let second = Batch {
        command_buffers: vec![paint],
        waits: vec![Wait { point: at(S, None), stages }],
        signals: vec![Signal { point: at(T, Some(value)), stages }],
    };
    let submit = |queue, batch| Step::Submit { queue: QueueId(queue), batches: vec![batch], fence: None };
    [submit(1, first), submit(0, second)]
}

/// The host never waits: what timelines were signaled with stays bounded.
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
    assert_eq!(engine.take_found(), []);
    assert!(sizes.iter().all(|it| *it <= 1100) && sizes[3] == sizes[1], "{sizes:?}");
}

/// The host waits for every frame, and what it knows is forgotten.
#[test]
fn signals_that_the_host_knows_are_forgotten() {
    let (program, mut engine) = engine();
    for value in 1..100 {
        frame(&program, value).iter().for_each(|it| engine.step(it));
        engine.step(&Step::WaitSemaphores(vec![Point { semaphore: T, value: Some(value) }]));
    }
    assert_eq!(engine.take_found(), []);
    assert!(engine.device.known_signals() <= 2, "{}", engine.device.known_signals());
}

/// Where tags were given is forgotten when nothing leads there any more.
#[test]
fn places_stay_bounded() {
    let (program, mut engine) = engine();
    for value in 1..20_000 {
        frame(&program, value).iter().for_each(|it| engine.step(it));
    }
    assert!(engine.device.places.len() < 1_100, "{}", engine.device.places.len());
}

/// A wait leaves nothing of accesses that are over and that the host may look at; of others it does.
#[test]
fn ranges_go_with_their_last_access() {
    let (program, mut engine) = engine();
    frame(&program, 1).iter().for_each(|it| engine.step(it));
    let before = engine.ranges();
    engine.forget_known();
    assert_eq!(engine.ranges(), before);
    engine.step(&Step::DeviceIdle);
    engine.forget_known();
    // The host may read what was copied; nothing made the attachment visible to it.
    let left: Vec<u64> = engine.device.states.iter().map(|it| it.0.start).collect();
    assert_eq!(left, [engine.device.addresses.whole(ResourceId(2)).start]);
    assert!(before > 1);
}

/// Small pieces of many buffers, each used once: they go by themselves.
#[test]
fn ranges_that_are_over_go_by_themselves() {
    let (program, mut engine) = engine();
    let mut most = 0;
    for value in 1..200 {
        frame(&program, value).iter().for_each(|it| engine.step(it));
        engine.step(&Step::DeviceIdle);
        for number in 0..100_u64 {
            let resource = lavascope_program::Resource::new(lavascope_program::ResourceKind::Buffer { size: 4 }, None);
            let id = engine.add_resource(&resource);
            let region = lavascope_program::Region::Buffer(0..1 + number % 4);
            engine.step(&Step::HostAccess { resource: id, region, is_write: true, certainty: Default::default() });
        }
        most = most.max(engine.ranges());
    }
    assert!(most < 5_000, "{most}");
}
