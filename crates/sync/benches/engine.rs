//! What the hazard engine costs: barriers, accesses and submits with many live ranges.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S, QueueFlags};
use lavascope_bench::{Bench, Suite};
use lavascope_program::{
    Access, Barrier, Batch, Command, CommandBuffer, CommandBufferId, Dependency, Queue, QueueId, RasterOrder, Region,
    Resource, ResourceId, ResourceKind, Scope, Step, What,
};
use lavascope_sync::Engine;

/// Operations of one command buffer, so that the submit itself weighs little.
const RUN: u64 = 1000;
const RANGE: u64 = 16;

fn main() {
    let mut suite = Suite::default();
    for ranges in [100, 10_000, 1_000_000] {
        for (label, scope, limit) in [("narrow", NARROW, 1500.0), ("ALL to ALL", ALL, 3000.0)] {
            let mut world = World::new(ranges);
            let barriers = world.record((0..RUN).map(|_| barrier(scope)).collect());
            suite.add(Bench {
                name: format!("global barrier, {label}, {ranges} ranges"),
                limit: Some(limit),
                run: Box::new(move |times| world.submit(barriers, times.div_ceil(RUN))),
                bare: None,
            });
        }
        let mut world = World::new(ranges);
        let step = (ranges / RUN).max(1);
        let reads = (0..RUN).map(|it| access(it * step % ranges, S::COMPUTE_SHADER, A::SHADER_STORAGE_READ)).collect();
        let reads = world.record(reads);
        let limit = [(100, 40.0), (10_000, 100.0)].iter().find(|it| it.0 == ranges).map_or(400.0, |it| it.1);
        suite.add(Bench {
            name: format!("access to a live range, {ranges} ranges"),
            limit: Some(limit),
            run: Box::new(move |times| world.submit(reads, times.div_ceil(RUN))),
            bare: None,
        });
    }
    let mut world = World::new(262_144);
    let empty = world.record(Vec::new());
    suite.add(Bench {
        name: "empty submit, 262144 ranges".into(),
        limit: Some(20_000.0),
        run: Box::new(move |times| world.submit(empty, times)),
        bare: None,
    });
    suite.main();
}

const NARROW: Scope = Scope {
    src_stages: S::COPY.0,
    src_access: A::TRANSFER_WRITE.0,
    dst_stages: S::COMPUTE_SHADER.0,
    dst_access: A::SHADER_STORAGE_READ.0,
};
const ALL: Scope = Scope {
    src_stages: S::ALL_COMMANDS.0,
    src_access: A::MEMORY_WRITE.0,
    dst_stages: S::ALL_COMMANDS.0,
    dst_access: A::MEMORY_READ.0 | A::MEMORY_WRITE.0,
};

fn barrier(scope: Scope) -> Command {
    Command::Barrier(Barrier::Two { dependencies: vec![Dependency { scope, what: What::Memory }] })
}

fn access(range: u64, stage: S, access: A) -> Command {
    let region = Region::Buffer(range * RANGE..(range + 1) * RANGE - 1);
    let (stage, access) = (stage.0, access.0);
    Command::Action(vec![Access { resource: ResourceId(0), region, stage, access, order: RasterOrder::None }])
}

/// An engine with a buffer, every range of which was written once.
struct World {
    engine: Engine,
}

impl World {
    fn new(ranges: u64) -> World {
        let flags = QueueFlags::GRAPHICS.0 | QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0;
        let mut engine = Engine::new(&[Queue { family: 0, flags }], 0, 0, 0);
        engine.add_resource(&Resource::new(ResourceKind::Buffer { size: ranges * RANGE }, None));
        let mut world = World { engine };
        let mut commands: Vec<Command> = (0..ranges).map(|it| access(it, S::COPY, A::TRANSFER_WRITE)).collect();
        commands.push(barrier(ALL));
        let all = world.record(commands);
        world.submit(all, 1);
        assert_eq!(world.engine.ranges() as u64, ranges);
        world
    }

    fn record(&mut self, commands: Vec<Command>) -> CommandBufferId {
        self.engine.add_command_buffer(CommandBuffer { is_secondary: false, commands })
    }

    fn submit(&mut self, buffer: CommandBufferId, times: u64) {
        let batch = Batch { command_buffers: vec![buffer], ..Batch::default() };
        let step = Step::Submit { queue: QueueId(0), batches: vec![batch], fence: None };
        for _ in 0..times {
            self.engine.step(&step);
        }
        assert!(self.engine.take_found().is_empty(), "the program is right");
    }
}
