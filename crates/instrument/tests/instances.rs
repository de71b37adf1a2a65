//! The shader that looks at instances, on a device.

mod common;

use common::{
    complaints,
    vulkan::{Dispatch, Gpu},
};
use lavascope_instrument::instances::{self, GROUP, Look, Wrong};

/// Sixteen words, of which the last two are the reference.
fn instance(reference: u64) -> Vec<u32> {
    let mut words = vec![0x3f80_0000; 14];
    words.extend([reference as u32, (reference >> 32) as u32]);
    words
}

const KNOWN: [u64; 4] = [0x1000, 0x7_0000_2000, 0x7_0000_3000, 0xffff_ffff_0000_0100];

fn dispatch(instances: Vec<u32>, known: &[u64], count: u32, has_addresses: bool, room: u32) -> Dispatch {
    let (table, known_count) = instances::table(known.iter().copied());
    let table = if table.is_empty() { vec![0; 2] } else { table };
    let found = vec![0; instances::found_words(room) as usize];
    let push = vec![count, known_count, u32::from(has_addresses), room];
    let groups = count.div_ceil(GROUP);
    Dispatch { addressed: vec![instances, table, found], push, groups, ..Dispatch::default() }
}

#[test]
fn wrong_references_are_told_and_taken_out() {
    assert_eq!(complaints(&instances::words(), "vulkan1.2"), None);
    let gpu = Gpu::new();
    let references: Vec<u64> = (0..100)
        .map(|it| match it {
            3 => 0x1001,
            50 => 0x7_0000_2001,
            51 => 0,
            99 => 0xffff_ffff_0000_0200,
            _ => KNOWN[it % 4],
        })
        .collect();
    let words: Vec<u32> = references.iter().flat_map(|it| instance(*it)).collect();
    let wrong = [3, 50, 99].map(|at| Wrong { instance: at, reference: references[at as usize] });
    for room in [8, 3, 2, 0] {
        let left = gpu.run(&instances::words(), &dispatch(words.clone(), &KNOWN, 100, false, room));
        let (count, told) = instances::read(&left[2]);
        assert_eq!((count, told.len()), (3, 3.min(room as usize)));
        assert!(told.iter().all(|it| wrong.contains(it)), "{told:?}");
        for (at, after) in left[0].chunks(16).enumerate() {
            let mended = if wrong.iter().any(|it| it.instance == at as u32) { 0 } else { references[at] };
            assert_eq!(after, instance(mended), "{at}");
        }
    }
}

#[test]
fn instances_behind_addresses_and_none_at_all_are_looked_at() {
    let gpu = Gpu::new();
    let far = gpu.buffer(&[instance(0x1000), instance(0x2000), instance(0x1000)].concat());
    let addresses: Vec<u32> =
        [2u64, 0, 1].iter().map(|it| far.address + it * 64).flat_map(|it| [it as u32, (it >> 32) as u32]).collect();
    let left = gpu.run(&instances::words(), &dispatch(addresses.clone(), &KNOWN, 3, true, 4));
    assert_eq!(instances::read(&left[2]), (1, vec![Wrong { instance: 2, reference: 0x2000 }]));
    assert_eq!(left[0], addresses, "the addresses stay");
    assert_eq!(gpu.read(far), [instance(0x1000), instance(0), instance(0x1000)].concat());
    // Where nothing is known, every reference is wrong.
    let left = gpu.run(&instances::words(), &dispatch(instance(0x1000), &[], 1, false, 4));
    assert_eq!(instances::read(&left[2]), (1, vec![Wrong { instance: 0, reference: 0x1000 }]));
}

#[test]
fn the_push_constants_are_those_of_the_shader() {
    let look = Look {
        instances: 0x1_0000_0002,
        has_addresses: true,
        count: 7,
        known: 0x3_0000_0004,
        known_count: 8,
        found: 0x5_0000_0006,
        room: 9,
    };
    assert_eq!(look.push(), [2, 1, 4, 3, 6, 5, 7, 8, 1, 9]);
}
