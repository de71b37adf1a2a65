//! Random records of every command: the family in the table handles it, and no contents cause a panic.

mod common;

use common::*;
use lavascope_abi::{Command, CommandBufferLevel};
use lavascope_marshal::{Packer, RecordBuffer};
use lavascope_record::check;
use lavascope_sim::{CallMemory, CallOptions, SyntheticObjects, random_call_memory};
use lavascope_state::{Collector, CommandSupport, TrackPhase, Tracker, command_support};
use lavascope_test_support::TestRng;

/// Few objects, so that random calls use the same ones.
const OBJECTS: u64 = 3;
const ROUNDS: u64 = 40;

#[test]
fn every_command_is_taken_by_whom_the_table_names() {
    let mut app = App::collecting();
    for serial in 0..OBJECTS {
        app.make_buffer(serial, 4096, serial * 4096);
        app.make_image(serial, lavascope_abi::Format::R8G8B8A8_UNORM, [16, 16], 2, 1 << 20);
        app.make_command_buffer(serial, CommandBufferLevel::PRIMARY);
        app.begin(serial);
    }
    for round in 0..ROUNDS {
        for command in Command::ALL.iter().filter(|it| **it != Command::DestroyDevice) {
            let mut random = TestRng::new(round * 1000 + *command as u64);
            call(&mut app.tracker, *command, &mut random);
        }
    }
    let steps = app.program().steps.len();
    assert!(steps > 0, "some of it means something");
    // The engine must accept every program.
    lavascope_engine::check(app.program());
    for (missing, count) in app.tracker.untracked() {
        assert!(count > 0, "{missing:?}");
    }
}

fn call(tracker: &mut Tracker<Collector>, command: Command, random: &mut TestRng) {
    let desc = command.desc();
    let mut memory =
        random_call_memory(desc.parameters, random, CallOptions { count_end: 3, ..CallOptions::UNRESTRICTED });
    aim(&mut memory, command, random);
    let mut stream = RecordBuffer::default();
    let mut packer = Packer::new(&SyntheticObjects, &SyntheticObjects);
    let image = std::ptr::with_exposed_provenance(memory.address(0) as usize);
    // SAFETY: every pointer of a random call is null or points into its own memory.
    let Ok(record) = check(unsafe { packer.pack_parameters(&mut stream, command, image, 1) }) else {
        panic!("{command:?}")
    };
    assert!(tracker.track_parameters(1, record), "nobody takes {command:?}");
    let CommandSupport::Tracked(_, TrackPhase::Leave) = command_support(command) else { return };
    let Some(outputs) = desc.outputs else { panic!("{command:?} has no outputs") };
    let memory = random_call_memory(outputs.layout, random, CallOptions { count_end: 3, ..CallOptions::UNRESTRICTED });
    let image = std::ptr::with_exposed_provenance(memory.address(0) as usize);
    let mut stream = RecordBuffer::default();
    // SAFETY: every pointer of a random call is null or points into its own memory.
    let words = unsafe { packer.pack_outputs(&mut stream, command, image, 1) };
    let Some(words) = words else { panic!("{command:?} has no outputs") };
    // Random outputs may be inconsistent; they do not make a valid record.
    if let Ok(record) = check(words) {
        assert!(tracker.track_outputs(1, record), "nobody takes the results of {command:?}");
    }
}

/// Makes the first parameter an existing object.
fn aim(memory: &mut CallMemory, command: Command, random: &mut TestRng) {
    let Some(first) = command.desc().parameters.fields.first() else { return };
    let handle = match first.name {
        "device" => device(DEVICE).0,
        "commandBuffer" => command_buffer(random.below(OBJECTS)).0,
        "queue" => queue(random.below(2)).0,
        _ => return,
    };
    assert!(memory.overwrite_pointer(memory.address(0), handle));
}
