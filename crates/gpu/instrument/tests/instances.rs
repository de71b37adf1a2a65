//! The shader that checks instances, on a device.

mod common;

use common::{
    validation_errors,
    vulkan::{BoundBinding, Dispatch, Gpu},
};
use lavascope_instrument::interface::instance_check;
use lavascope_instrument::interface::instance_check::{
    BoundInstanceCheck, InstanceCheck, InvalidInstance, WORKGROUP_SIZE,
};

/// Sixteen words, of which the last two are the reference.
fn instance(reference: u64) -> Vec<u32> {
    let mut words = vec![0x3f80_0000; 14];
    words.extend([reference as u32, (reference >> 32) as u32]);
    words
}

const KNOWN: [u64; 4] = [0x1000, 0x7_0000_2000, 0x7_0000_3000, 0xffff_ffff_0000_0100];

fn dispatch(instances: Vec<u32>, known: &[u64], count: u32, has_addresses: bool, room: u32) -> Dispatch {
    let (table, known_count) = instance_check::reference_table(known.iter().copied());
    let table = if table.is_empty() { vec![0; 2] } else { table };
    let found = vec![0; instance_check::result_words(room) as usize];
    let push = vec![count, known_count, u32::from(has_addresses), room, 0, 0];
    let groups = count.div_ceil(WORKGROUP_SIZE);
    Dispatch { addressed: vec![instances, table, found], push, groups, ..Dispatch::default() }
}

#[test]
fn wrong_references_are_reported_and_taken_out() {
    assert_eq!(validation_errors(&instance_check::shader_words(), "vulkan1.2"), None);
    let gpu = Gpu::new();
    let references: Vec<u64> = (0..100)
        .map(|value| match value {
            3 => 0x1001,
            50 => 0x7_0000_2001,
            51 => 0,
            99 => 0xffff_ffff_0000_0200,
            _ => KNOWN[value % 4],
        })
        .collect();
    let words: Vec<u32> = references.iter().flat_map(|it| instance(*it)).collect();
    let wrong = [3, 50, 99].map(|at| InvalidInstance { instance: at, reference: references[at as usize] });
    for room in [8, 3, 2, 0] {
        let left = gpu.run(&instance_check::shader_words(), &dispatch(words.clone(), &KNOWN, 100, false, room));
        let (count, invalid) = instance_check::read_results(&left[2]);
        assert_eq!((count, invalid.len()), (3, 3.min(room as usize)));
        assert!(invalid.iter().all(|it| wrong.contains(it)), "{invalid:?}");
        for (at, after) in left[0].chunks(16).enumerate() {
            let expected = if wrong.iter().any(|it| it.instance == at as u32) { 0 } else { references[at] };
            assert_eq!(after, instance(expected), "{at}");
        }
    }
}

#[test]
fn instances_behind_addresses_and_none_at_all_are_checked() {
    let gpu = Gpu::new();
    let far = gpu.buffer(&[instance(0x1000), instance(0x2000), instance(0x1000)].concat());
    let addresses: Vec<u32> =
        [2u64, 0, 1].iter().map(|it| far.address + it * 64).flat_map(|it| [it as u32, (it >> 32) as u32]).collect();
    let left = gpu.run(&instance_check::shader_words(), &dispatch(addresses.clone(), &KNOWN, 3, true, 4));
    assert_eq!(instance_check::read_results(&left[2]), (1, vec![InvalidInstance { instance: 2, reference: 0x2000 }]));
    assert_eq!(left[0], addresses, "the addresses stay");
    assert_eq!(gpu.read(far), [instance(0x1000), instance(0), instance(0x1000)].concat());
    // Where nothing is known, every reference is wrong.
    let left = gpu.run(&instance_check::shader_words(), &dispatch(instance(0x1000), &[], 1, false, 4));
    assert_eq!(instance_check::read_results(&left[2]), (1, vec![InvalidInstance { instance: 0, reference: 0x1000 }]));
}

#[test]
fn the_push_constants_are_those_of_the_shader() {
    let look = InstanceCheck {
        instances: 0x1_0000_0002,
        has_addresses: true,
        count: 7,
        valid_references: 0x3_0000_0004,
        valid_count: 8,
        results: 0x5_0000_0006,
        max_results: 9,
        range: 0xb_0000_000a,
    };
    assert_eq!(look.push_constants(), [2, 1, 4, 3, 6, 5, 7, 8, 1, 9, 10, 11]);
    let look = BoundInstanceCheck { first_word: 1, count: 2, valid_count: 3, max_results: 4 };
    assert_eq!(look.push_constants(), [1, 2, 3, 4]);
}

/// The device reports how many instances exist, and where they begin.
#[test]
fn instances_are_counted_by_the_device() {
    let gpu = Gpu::new();
    let range = gpu.buffer(&[2, 64, 0, 0]);
    let words: Vec<u32> = [0x2000, 0x1000, 0x2001, 0x2002].iter().flat_map(|it| instance(*it)).collect();
    let mut dispatch = dispatch(words.clone(), &KNOWN, 3, false, 4);
    dispatch.push[4..].copy_from_slice(&[range.address as u32, (range.address >> 32) as u32]);
    let left = gpu.run(&instance_check::shader_words(), &dispatch);
    assert_eq!(instance_check::read_results(&left[2]), (1, vec![InvalidInstance { instance: 1, reference: 0x2001 }]));
    assert_eq!(left[0], [&words[..32], &instance(0), &words[48..]].concat(), "the first and the last are not built");
}

/// The same where nothing has an address.
#[test]
fn instances_that_are_bound_are_checked() {
    assert_eq!(validation_errors(&instance_check::bound_shader_words(), "vulkan1.1"), None);
    let gpu = Gpu::new();
    let references = [0x1000, 0x3000, 0x7_0000_2000, 0, 0xffff_ffff_0000_0101];
    let words: Vec<u32> = [0; 4].into_iter().chain(references.iter().flat_map(|it| instance(*it))).collect();
    let (table, known_count) = instance_check::reference_table(KNOWN);
    let look = BoundInstanceCheck { first_word: 4, count: 5, valid_count: known_count, max_results: 4 };
    let found = vec![0; instance_check::result_words(look.max_results) as usize];
    let bound = [words, table, found].into_iter().zip(0..).map(|(it, at)| BoundBinding::storage(at, it)).collect();
    let left = gpu.run(
        &instance_check::bound_shader_words(),
        &Dispatch { bound, push: look.push_constants().to_vec(), groups: 1, ..Dispatch::default() },
    );
    let wrong = [1, 4].map(|at| InvalidInstance { instance: at, reference: references[at as usize] });
    assert_eq!(instance_check::read_results(&left[2]), (2, wrong.to_vec()));
    let expected = [0x1000, 0, 0x7_0000_2000, 0, 0];
    let want: Vec<u32> = [0; 4].into_iter().chain(expected.iter().flat_map(|it| instance(*it))).collect();
    assert_eq!(left[0], want);
}
