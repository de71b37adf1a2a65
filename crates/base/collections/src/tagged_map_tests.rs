//! Tests of the map without control of the interleavings.

use lavascope_test_support::TestRng;
use std::collections::BTreeMap;

use crate::tagged_map::{TAG_SHIFT, TaggedMap};

fn value(tag: u8, serial: u64) -> u64 {
    u64::from(tag) << TAG_SHIFT | serial
}

#[test]
fn keys_of_different_tags_are_different() {
    let map = TaggedMap::default();
    map.insert(7, value(1, 10));
    map.insert(7, value(2, 20));
    assert_eq!(map.get(7, 1), Some(value(1, 10)));
    assert_eq!(map.get(7, 2), Some(value(2, 20)));
    assert_eq!(map.get(7, 3), None);
    assert_eq!(map.remove(7, 1), Some(value(1, 10)));
    assert_eq!(map.get(7, 1), None);
    assert_eq!(map.get(7, 2), Some(value(2, 20)));
}

#[test]
fn what_marks_entries_is_no_key() {
    let map = TaggedMap::default();
    assert_eq!(map.get(0, 3), None);
    map.insert(5, value(3, 1));
    map.remove(5, 3);
    map.insert(6, value(3, 2));
    assert_eq!((map.get(u64::MAX, 3), map.remove(u64::MAX, 3), map.remove(0, 3)), (None, None, None));
    assert_eq!(map.len(), 1);
    map.insert(u64::MAX, value(3, 4));
    assert_eq!((map.get(u64::MAX, 3), map.entries_unsorted().len()), (Some(value(3, 4)), 2));
}

/// Addresses with strides, numbers, and numbers with a kind above them.
#[test]
fn keys_of_all_sorts_are_found_in_few_steps() {
    let steps: [fn(u64) -> u64; 5] = [
        |number| number + 1,
        |it| (0x7f00 << 32) + it * 208,
        |it| it << 12 | 1 << 40,
        |it| it | 9 << 56,
        |it| it << 32 | 5,
    ];
    for key in steps {
        let map = TaggedMap::with_capacity(16);
        for number in 0..70_000 {
            map.insert(key(number), value(1, number));
        }
        (0..70_000).for_each(|it| assert_eq!(map.get(key(it), 1), Some(value(1, it))));
        let table = map.table();
        let steps = (0..70_000).map(|number| {
            let slot = table.find(key(number), 1).expect("it is there").0;
            slot.wrapping_sub(table.home(key(number)).0) & (table.index.len() - 1)
        });
        let (all, most) = steps.fold((0, 0), |(all, most), it| (all + it, most.max(it)));
        assert!(all < 4 * 70_000 && most < 1000, "{all} steps, {most} at most, to {:x} and the like", key(1));
    }
}

#[test]
fn agrees_with_a_tree_over_random_operations() {
    let map = TaggedMap::with_capacity(4);
    let mut tree = BTreeMap::new();
    let mut rng = TestRng::new(1);
    for step in 0..200_000 {
        let (key, tag) = (rng.below(997_u64) + 1, rng.below(3) as u8);
        match rng.below(4) {
            0 => assert_eq!(map.remove(key, tag), tree.remove(&(key, tag))),
            1 => assert_eq!(map.insert(key, value(tag, step)), tree.insert((key, tag), value(tag, step))),
            _ => assert_eq!(map.get(key, tag), tree.get(&(key, tag)).copied()),
        }
    }
    assert_eq!(map.len(), tree.len());
}

#[test]
fn churn_at_a_constant_size_stops_growing() {
    let map = TaggedMap::with_capacity(64);
    for key in 1..2_000_000_u64 {
        map.insert(key, value(1, key));
        if key > 50 {
            map.remove(key - 50, 1);
        }
    }
    let slots = map.table().index.len();
    assert!(slots <= 4096, "50 live keys take {slots} slots");
}

#[test]
fn readers_see_what_was_there_before_they_started() {
    let map = TaggedMap::with_capacity(16);
    for key in 1..1000 {
        map.insert(key, value(1, key));
    }
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..200 {
                    let key = round * 7 % 999 + 1;
                    assert_eq!(map.get(key, 1), Some(value(1, key)));
                }
            });
        }
        scope.spawn(|| {
            for key in 1000..20_000 {
                map.insert(key, value(1, key));
                map.remove(key, 1);
            }
        });
    });
}
