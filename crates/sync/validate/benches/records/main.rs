//! What it costs to follow a call of an application and to find what is wrong with it, from its record on.
//!
//! The same records go to the tracker alone, with nobody who listens, and to the validator.

mod app;
mod drawing;

use lavascope_abi::*;
use lavascope_bench::{Bench, Suite};
use lavascope_record::{Record, RecordPhase};
use lavascope_state::{SpirvReflection, Tracker, TrackerListener};
use lavascope_validate::Validator;

use app::{BUFFER_SIZE, PRIMARY, RecordedApp, buffer, command_buffer};

/// Calls that are made once, and calls that are made for each frame.
struct Calls {
    first: Vec<Record<'static>>,
    frame: Vec<Record<'static>>,
    /// How many of those are counted.
    commands: u64,
}

fn main() {
    let mut suite = Suite::default();
    add(&mut suite, "copies and barriers, 100 buffers", || copies(100));
    add(&mut suite, "copies and barriers, 10,000 buffers", || copies(10_000));
    add(&mut suite, "draws, each with a bind", draws);
    suite.main();
}

fn add(suite: &mut Suite<'_>, name: &str, calls: fn() -> Calls) {
    let tracker = move || {
        let calls = calls();
        let mut tracker = Tracker::with_reflection(Quiet, Box::new(SpirvReflection::default()));
        calls.first.iter().for_each(|it| follow(&mut tracker, *it));
        (tracker, calls)
    };
    suite.add(Bench {
        name: format!("tracker: {name}"),
        limit: None,
        run: lazily(tracker, |(tracker, calls), times| {
            calls.times(times).for_each(|it| follow(tracker, it));
        }),
        bare: None,
    });
    for is_submitted in [false, true] {
        let validator = move || {
            let (calls, mut validator) = (calls(), Validator::default());
            if is_submitted {
                validator.check_submissions();
            }
            calls.first.iter().for_each(|it| validator.process_record(1, *it));
            (validator, calls)
        };
        let how = if is_submitted { "validator" } else { "validator, recording only" };
        suite.add(Bench {
            name: format!("{how}: {name}"),
            limit: is_submitted.then_some(288.0),
            run: lazily(validator, |(validator, calls), times| {
                calls.times(times).for_each(|it| validator.process_record(1, it));
                assert!(validator.take_findings().is_empty(), "the application is right");
            }),
            bare: None,
        });
    }
}

/// Nobody who listens.
struct Quiet;

impl TrackerListener for Quiet {}

fn follow(tracker: &mut Tracker<Quiet>, record: Record<'static>) {
    match record.phase() {
        RecordPhase::Enter => tracker.track_parameters(1, record),
        RecordPhase::Leave => tracker.track_outputs(1, record),
    };
}

impl Calls {
    fn times(&self, times: u64) -> impl Iterator<Item = Record<'static>> {
        (0..times.div_ceil(self.commands)).flat_map(|_| self.frame.iter().copied())
    }

    /// Parts the calls of an application behind the first ones.
    fn new(mut app: RecordedApp, first: usize, commands: u64) -> Calls {
        let frame = app.records.split_off(first);
        Calls { first: app.records, frame, commands }
    }
}

fn lazily<'a, T: 'a>(make: impl Fn() -> T + 'a, run: impl Fn(&mut T, u64) + 'a) -> Box<dyn FnMut(u64) + 'a> {
    let mut made = None;
    Box::new(move |times| run(made.get_or_insert_with(&make), times))
}

const TRANSFER: PipelineStageFlags = PipelineStageFlags::TRANSFER;
const COPIED: (PipelineStageFlags, AccessFlags) = (TRANSFER, AccessFlags::TRANSFER_WRITE);
const BOTH: AccessFlags = AccessFlags(AccessFlags::TRANSFER_READ.0 | AccessFlags::TRANSFER_WRITE.0);

/// A thousand copies between buffers, and 64 barriers.
fn copies(buffers: u64) -> Calls {
    let mut app = RecordedApp::default();
    app.make_device();
    (1..=buffers).for_each(|it| app.make_buffer(it));
    let first = app.records.len();
    app.begin();
    app.barrier(COPIED, (TRANSFER, BOTH));
    for index in 0..1000 {
        let region = BufferCopy { src_offset: 0, dst_offset: 0, size: BUFFER_SIZE };
        app.call(
            Command::CmdCopyBuffer,
            &CmdCopyBufferParams {
                command_buffer: command_buffer(PRIMARY),
                src_buffer: buffer(1 + 2 * index % buffers),
                dst_buffer: buffer(1 + (2 * index + 1) % buffers),
                region_count: 1,
                p_regions: Ptr::to(&region),
            },
        );
        if index % 16 == 15 {
            app.barrier(COPIED, (TRANSFER, BOTH));
        }
    }
    app.end();
    Calls::new(app, first, 1063)
}

/// A thousand draws with a bind in front of each.
fn draws() -> Calls {
    const DRAWS: u32 = 1000;
    let mut app = RecordedApp::default();
    app.make_drawing();
    let first = app.records.len();
    app.begin();
    let (all, written) = (PipelineStageFlags::ALL_COMMANDS, AccessFlags::MEMORY_WRITE);
    let both = AccessFlags(AccessFlags::MEMORY_READ.0 | AccessFlags::MEMORY_WRITE.0);
    app.barrier((all, written), (all, both));
    app.begin_drawing();
    (0..DRAWS).for_each(|it| app.draw(it));
    app.end_drawing();
    app.end();
    Calls::new(app, first, u64::from(2 * DRAWS))
}
