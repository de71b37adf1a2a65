//! In-place unpacking gives the results of the walkers, and accepts nothing that the check refuses.

mod common;

use common::SimHandles;
use lavascope_abi::Command;
use lavascope_marshal::in_place::{UnpackInPlace, unpacker_for};
use lavascope_marshal::{Packer, RecordBuffer};
use lavascope_record::encoding::{HEADER_SIZE, RecordHeader};
use lavascope_record::{RecordFault, check};
use lavascope_sim::mutate;
use lavascope_sim::{CallOptions, SyntheticObjects, random_call_memory};
use lavascope_test_support::TestRng;

const OPTIONS: CallOptions = CallOptions { pointer_depth_max: 3, has_unknown: false, ..CallOptions::UNRESTRICTED };

fn unpackers() -> impl Iterator<Item = (Command, UnpackInPlace<SimHandles>)> {
    Command::ALL.iter().filter_map(|it| Some((*it, unpacker_for::<SimHandles>(*it)?)))
}

/// The record of a random call.
fn record(command: Command, random: &mut TestRng) -> Vec<u64> {
    let memory = random_call_memory(command.desc().parameters, random, OPTIONS);
    let mut stream = RecordBuffer::default();
    let mut packer = Packer::new(&SimHandles, &SyntheticObjects);
    let image = std::ptr::with_exposed_provenance(memory.address(0) as usize);
    // SAFETY: `random_call_memory` made the parameters of this command, and `memory` keeps all of their targets.
    unsafe { packer.pack_parameters(&mut stream, command, image, 17) }.to_vec()
}

#[test]
fn a_record_in_its_place_is_the_call_again() {
    let mut placed = 0;
    for (command, place) in unpackers() {
        for round in 0..100 {
            let words = record(command, &mut TestRng::new(command as u64 * 31 + round));
            let mut copy = words.clone();
            if !place(&mut copy, &SimHandles) {
                assert_eq!(copy, words, "{} with round {round} was changed", command.desc().name);
                continue;
            }
            placed += 1;
            let mut stream = RecordBuffer::default();
            let mut packer = Packer::new(&SimHandles, &SyntheticObjects);
            let image = copy[HEADER_SIZE / 8..].as_mut_ptr().expose_provenance();
            // SAFETY: `copy` is the record of this command, whose offsets were just replaced by addresses within it.
            let again =
                unsafe { packer.pack_parameters(&mut stream, command, std::ptr::with_exposed_provenance(image), 17) };
            assert_eq!(again, words, "{} with round {round} does not come back", command.desc().name);
        }
    }
    assert!(placed > unpackers().count() * 30, "only {placed} were made in their places");
}

#[test]
fn what_the_check_refuses_is_not_made_in_its_place() {
    let (mut placed, mut refused) = (0, 0);
    let mut random = TestRng::new(11);
    for (command, place) in unpackers() {
        for _ in 0..30 {
            let good = record(command, &mut random);
            for _ in 0..30 {
                let mut words = good.clone();
                mutate(&mut words, &mut random);
                let head = words.first().map(|it| RecordHeader::from_words(*it, 0));
                let Some(head) = head.filter(|it| it.command == command as u16 && it.kind == 0) else { continue };
                let Some(body) = words.get(..head.body_words as usize) else { continue };
                let mut copy = body.to_vec();
                if !place(&mut copy, &SimHandles) {
                    refused += 1;
                    continue;
                }
                placed += 1;
                let mut alone = body.to_vec();
                // Order edges come after the unpacked part.
                alone[1] &= (1 << 40) - 1;
                // An ignored pointer may be present or not; the driver does not read it.
                let is_fine = check(&alone).is_ok_and(|it| it.words().len() == body.len());
                let is_ignored = check(&alone).is_err_and(|it| it.fault == RecordFault::IgnoredPointer);
                assert!(is_fine || is_ignored, "{}: {:?}", command.desc().name, check(&alone).err());
            }
        }
    }
    assert!(placed > 10_000 && refused > 10_000, "{placed} were made, {refused} refused");
}
