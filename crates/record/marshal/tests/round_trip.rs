//! Every command and structure with random values, from C memory to a record and back.

mod common;

use common::SimHandles;
use lavascope_abi::desc::Layout;
use lavascope_abi::{Command, STRUCTURES};
use lavascope_marshal::{Arena, ConditionalPointer, Packer, RecordBuffer, UnpackPurpose, Unpacker};
use lavascope_record::Omissions;
use lavascope_record::check::{check, check_image};
use lavascope_record::rules::PointerUse;
use lavascope_record::walk::WalkPass;
use lavascope_sim::{CallMemory, CallOptions, SyntheticObjects, random_call_memory};
use lavascope_test_support::TestRng;

const OPTIONS: CallOptions = CallOptions::UNRESTRICTED;

/// Packs an image of a layout.
fn pack(layout: &'static Layout, pass: WalkPass, image: *const u8) -> (Vec<u64>, Omissions, Vec<ConditionalPointer>) {
    let mut stream = RecordBuffer::default();
    let mut packer = Packer::new(&SimHandles, &SyntheticObjects);
    packer.conditional = Some(Vec::new());
    // SAFETY: the image was made for this layout, by `random_call_memory` or by unpacking, and the test keeps its
    // targets.
    let (words, remarks) = unsafe { packer.pack_structure(&mut stream, layout, pass, image) };
    (words.to_vec(), remarks, packer.conditional.unwrap_or_default())
}

fn address(memory: &CallMemory) -> *const u8 {
    std::ptr::with_exposed_provenance(memory.address(0) as usize)
}

fn round_trip(layout: &'static Layout, pass: WalkPass, seed: u64) {
    let mut random = TestRng::new(seed);
    let mut memory = random_call_memory(layout, &mut random, OPTIONS);
    let (words, remarks, conditional) = pack(layout, pass, address(&memory));
    let body = lavascope_abi::bytes_of_slice(&words);
    if let Err(error) = check_image(body, layout, pass, remarks) {
        panic!("{} with seed {seed}: {error}", layout.name);
    }
    // Ignored pointers may be invalid: the record must not change, and nothing may read them.
    for pointer in conditional.iter().filter(|it| it.pointer_use != PointerUse::Read) {
        assert!(
            memory.overwrite_pointer(pointer.address, 0xdead_beef_dead_beef),
            "ignored pointers lie in the call's memory"
        );
    }
    assert_eq!(pack(layout, pass, address(&memory)).0, words, "{} with seed {seed} and garbage", layout.name);
    let mut arena = Arena::default();
    let unpacker = Unpacker { handles: &SimHandles, purpose: UnpackPurpose::RoundTrip };
    let image = match unpacker.unpack_image(body, layout, pass, &mut arena) {
        Ok(image) => image,
        Err(error) => panic!("{} with seed {seed}: {error}", layout.name),
    };
    let again = pack(layout, pass, image).0;
    assert_eq!(again, words, "{} with seed {seed} does not come back", layout.name);
}

#[test]
fn every_structure_comes_back() {
    // A single union has no selector. Unions are tested within their structures.
    for (index, layout) in STRUCTURES.iter().enumerate().filter(|it| !it.1.is_union) {
        for round in 0..20 {
            for pass in [WalkPass::Enter, WalkPass::Leave] {
                round_trip(layout, pass, index as u64 * 1000 + round);
            }
        }
    }
}

#[test]
fn every_command_comes_back() {
    for command in Command::ALL {
        let desc = command.desc();
        for round in 0..40 {
            round_trip(desc.parameters, WalkPass::Enter, *command as u64 * 7919 + round);
            if let Some(outputs) = desc.outputs {
                round_trip(outputs.layout, WalkPass::Leave, *command as u64 * 7919 + round);
            }
        }
    }
}

#[test]
fn records_of_commands_pass_the_check() {
    for command in Command::ALL {
        let mut random = TestRng::new(*command as u64);
        let memory = random_call_memory(command.desc().parameters, &mut random, OPTIONS);
        let mut stream = RecordBuffer::default();
        let mut packer = Packer::new(&SimHandles, &SyntheticObjects);
        // SAFETY: `random_call_memory` made the parameters of this command, and `memory` keeps all of their targets.
        let words = unsafe { packer.pack_parameters(&mut stream, *command, address(&memory), 17) };
        match check(words) {
            Ok(record) => {
                assert_eq!((record.command(), record.call_number()), (*command, 17));
                assert!(lavascope_record::Call::of(record).is_some());
                assert!(lavascope_record::print::print(record).starts_with(command.desc().name));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn straight_lines_give_the_bytes_of_the_walker() {
    let options = CallOptions { pointer_depth_max: 3, has_unknown: false, ..CallOptions::UNRESTRICTED };
    let mut stored = 0;
    for command in lavascope_marshal::fast_pack::COMMANDS {
        for round in 0..200 {
            let mut random = TestRng::new(*command as u64 * 31 + round);
            let memory = random_call_memory(command.desc().parameters, &mut random, options);
            let (mut walked, mut straight) = (RecordBuffer::default(), RecordBuffer::default());
            let mut packer = Packer::new(&SimHandles, &SyntheticObjects);
            // SAFETY: `random_call_memory` made the parameters of this command, and `memory` keeps all of their
            // targets.
            let want = unsafe { packer.pack_parameters(&mut walked, *command, address(&memory), round) };
            // SAFETY: `random_call_memory` made the parameters of this command, and `memory` keeps all of their
            // targets.
            let got = unsafe {
                lavascope_marshal::fast_pack::pack(&mut straight, &SimHandles, *command, round, address(&memory))
            };
            if let Some(got) = got {
                assert_eq!(got, want, "{} with round {round}", command.desc().name);
                stored += 1;
            }
        }
    }
    assert!(stored > lavascope_marshal::fast_pack::COMMANDS.len() * 50, "only {stored} were stored in straight lines");
}
