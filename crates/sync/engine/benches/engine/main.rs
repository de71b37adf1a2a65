//! What the hazard engine costs: barriers, accesses and submits with many live ranges, memory, and long runs.

mod allocator;
mod fixture;

use std::cell::OnceCell;
use std::time::Instant;

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use lavascope_bench::{Bench, BenchEntry, Suite};
use lavascope_engine::Engine;
use lavascope_sync_ir::{Command, CommandBuffer};

use allocator::CountingAllocator;
use fixture::{ALL, EngineFixture, NARROW, access, barrier, copies, frame, image_barrier};

#[global_allocator]
static MEMORY: CountingAllocator = CountingAllocator;

/// Operations of one command buffer, so that the submit itself weighs little.
const RUN: u64 = 1000;

fn main() {
    let mut suite = Suite::default();
    for ranges in [100, 10_000, 1_000_000] {
        for queues in [1, 4] {
            barriers(&mut suite, ranges, queues);
        }
        accesses(&mut suite, ranges);
    }
    submits(&mut suite);
    overlays(&mut suite);
    commands(&mut suite);
    suite.add_value("memory of a live range", bytes_per_range);
    suite.add_value("100,000 frames: the last 1,000 to the first", || steady().0);
    suite.add_value("100,000 frames: memory after them to memory after 1,000", || steady().1);
    suite.add_value("two threads to two processes, commands recorded", two_threads);
    suite.main();
}

/// Worlds are made when they are needed: one entry may be run alone, to count its instructions.
fn lazily<'a, T: 'a>(make: impl Fn() -> T + 'a, run: impl Fn(&mut T, u64) + 'a) -> Box<dyn FnMut(u64) + 'a> {
    let mut made = OnceCell::new();
    Box::new(move |times| {
        made.get_or_init(&make);
        if let Some(made) = made.get_mut() {
            run(made, times);
        }
    })
}

fn barriers(suite: &mut Suite<'_>, ranges: u64, queues: u32) {
    for (label, scope, limit) in [("narrow", NARROW, 1500.0), ("ALL to ALL", ALL, 3000.0)] {
        let make = move || {
            let mut world = EngineFixture::new(ranges, queues);
            let barriers = world.record((0..RUN).map(|_| barrier(scope)).collect());
            (world, barriers)
        };
        suite.add(Bench {
            name: format!("global barrier, {label}, {ranges} ranges, {queues} queues"),
            limit: Some(limit),
            run: lazily(make, |(world, barriers), times| world.submit(*barriers, times.div_ceil(RUN))),
            bare: None,
        });
    }
}

fn accesses(suite: &mut Suite<'_>, ranges: u64) {
    let make = move || {
        let mut world = EngineFixture::new(ranges, 1);
        let step = (ranges / RUN).max(1);
        let read = |it: u64| access(it * step % ranges, S::COMPUTE_SHADER, A::SHADER_STORAGE_READ);
        let reads = world.record((0..RUN).map(read).collect());
        (world, reads)
    };
    let limit = [(100, 40.0), (10_000, 100.0)].iter().find(|it| it.0 == ranges).map_or(400.0, |it| it.1);
    suite.add(Bench {
        name: format!("access to a live range, {ranges} ranges"),
        limit: Some(limit),
        run: lazily(make, |(world, reads), times| world.submit(*reads, times.div_ceil(RUN))),
        bare: None,
    });
}

fn submits(suite: &mut Suite<'_>) {
    let empty = || {
        let mut world = EngineFixture::new(262_144, 1);
        let empty = world.record(Vec::new());
        (world, empty)
    };
    suite.add(Bench {
        name: "empty submit, 262144 ranges".into(),
        limit: Some(20_000.0),
        run: lazily(empty, |(world, empty), times| world.submit(*empty, times)),
        bare: None,
    });
    let again = || {
        let mut world = EngineFixture::new(262_144, 1);
        let mut commands: Vec<Command> = (0..RUN).map(|it| access(it * 100, S::COPY, A::TRANSFER_WRITE)).collect();
        commands.push(barrier(ALL));
        let writes = world.record(commands);
        (world, writes)
    };
    suite.add(Bench {
        name: "submit of 1,000 first accesses again".into(),
        limit: Some(150_000.0),
        run: lazily(again, |(world, writes), times| world.submit(*writes, times)),
        bare: None,
    });
}

/// Ten thousand barriers since a range got its overlay.
fn overlays(suite: &mut Suite<'_>) {
    const TOUCHES: u64 = 10;
    let make = || {
        let mut world = EngineFixture::new(100, 1);
        let mut commands: Vec<Command> = (0..TOUCHES).map(image_barrier).collect();
        commands.extend((0..10_000).map(|_| barrier(NARROW)));
        let before = world.record(commands);
        world.submit(before, 1);
        let read = |it| access(it, S::COMPUTE_SHADER, A::SHADER_STORAGE_READ);
        let touch = world.record((0..TOUCHES).map(read).collect());
        (world, touch)
    };
    suite.add(Bench {
        name: "touching a range that has an overlay, after 10,000 barriers".into(),
        limit: Some(5000.0),
        run: lazily(make, |(world, touch), times| world.submit(*touch, times.div_ceil(TOUCHES))),
        bare: None,
    });
}

/// Frames recorded and submitted: draws, copies, barriers. Once they come as a whole and are checked when they are
/// submitted, otherwise they are checked as they are recorded.
fn commands(suite: &mut Suite<'_>) {
    let limit = Some(1e9 / 3e6);
    let whole = |world: &mut EngineFixture, commands: Vec<Command>| world.frame(commands);
    let name = "a command of a frame, recorded and submitted";
    add_frames(suite, name.into(), limit, || EngineFixture::new(10_000, 1), || frame(80), whole);
    let checked = |world: &mut EngineFixture, commands: Vec<Command>| world.checked_frame(commands);
    let name = "a command of a frame, checked when recorded, and submitted";
    add_frames(suite, name.into(), limit, || EngineFixture::new(10_000, 1), || frame(80), checked);
    let name = "a command of 1,000 draws, checked when recorded, and submitted";
    add_frames(suite, name.into(), None, || EngineFixture::new(10_000, 1), || frame(1000), checked);
    for buffers in [100, 65_536] {
        let name = format!("a command of 1,000 copies, {buffers} buffers, checked when recorded, and submitted");
        add_frames(suite, name, None, move || EngineFixture::of_buffers(buffers), move || copies(buffers), checked);
    }
}

/// What making the commands takes is not ours.
fn add_frames<'a>(
    suite: &mut Suite<'a>,
    name: String,
    limit: Option<f64>,
    world: impl Fn() -> EngineFixture + 'a,
    make: impl Fn() -> Vec<Command> + Copy + 'a,
    run: impl Fn(&mut EngineFixture, Vec<Command>) + 'a,
) {
    let length = make().len() as u64;
    let times = move |times: u64| 0..times.div_ceil(length);
    suite.add(Bench {
        name,
        limit,
        run: lazily(world, move |world, count| times(count).for_each(|_| run(world, make()))),
        bare: Some(Box::new(move |count| times(count).for_each(|_| drop(std::hint::black_box(make()))))),
    });
}

fn entry(unit: &str, ours: f64, limit: f64) -> BenchEntry {
    BenchEntry { unit: unit.into(), ours, limit: Some(limit), ..BenchEntry::default() }
}

/// A million ranges: all written, all read by one stage, one of eight by a second one, one of eight behind a barrier
/// of its own.
fn bytes_per_range() -> BenchEntry {
    const RANGES: u64 = 1_000_000;
    let mut world = EngineFixture::new(RANGES, 1);
    let mut commands: Vec<Command> =
        (0..RANGES).map(|it| access(it, S::COMPUTE_SHADER, A::SHADER_STORAGE_READ)).collect();
    commands.extend((0..RANGES / 8).map(|it| access(it * 8, S::VERTEX_SHADER, A::UNIFORM_READ)));
    commands.extend((0..RANGES / 8).map(|it| image_barrier(it * 8 + 1)));
    let reads = world.record(commands);
    world.submit(reads, 1);
    world.clear_command_buffer(reads);
    let all = allocator::used();
    drop(world);
    entry("B", (all - allocator::used()) as f64 / RANGES as f64, 96.0)
}

/// Frames with resources that come and go: how much slower the last are than the first, and how much memory grew.
fn steady() -> (BenchEntry, BenchEntry) {
    // Worlds of other entries may be there too.
    let others = allocator::used();
    let mut world = EngineFixture::new(1000, 1);
    let mut run = |frames: u64| {
        let start = Instant::now();
        (0..frames).for_each(|_| world.render_loop_frame());
        (start.elapsed().as_secs_f64(), allocator::used() - others)
    };
    run(1000);
    let (first, before) = run(1000);
    run(97_000);
    let (last, after) = run(1000);
    (entry("times", last / first, 1.5), entry("times", after as f64 / before as f64, 1.05))
}

/// Frames recorded by two threads at once, to those that two threads with an engine each record: nothing is shared
/// while recording.
fn two_threads() -> BenchEntry {
    const FRAMES: usize = 4000;
    let record = |engine: &Engine| {
        for _ in 0..FRAMES {
            let commands = CommandBuffer { is_secondary: false, commands: frame(80) };
            std::hint::black_box(engine.prepare(commands));
        }
    };
    let time = |left: &Engine, right: &Engine| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| record(left));
            scope.spawn(|| record(right));
        });
        start.elapsed().as_secs_f64()
    };
    let (one, other) = (EngineFixture::new(1000, 1), EngineFixture::new(1000, 1));
    let rounds = || (0..7).map(|_| (time(&one.engine, &one.engine), time(&one.engine, &other.engine)));
    let (shared, apart) = rounds().fold((f64::MAX, f64::MAX), |all, it| (all.0.min(it.0), all.1.min(it.1)));
    // As a time, so that less is better: 0.9 of the speed.
    entry("times", shared / apart, 1.0 / 0.9)
}
