//! All interleavings of readers and writers of the map, also such as only weakly ordered processors show. The code is
//! that of [`crate::tagged_map`], compiled with the atomics of `loom` and with tables of four slots.
//!
//! Each test goes through them a second time with orderings that are too weak, and then it has to fail: so it is known
//! that the test can.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::Arc;
use loom::thread;

#[path = "tagged_map.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    clippy::duplicate_mod,
    reason = "compiled with other atomics, and only what is modeled is used"
)]
mod tagged_map;

use tagged_map::TaggedMap;

/// The types of the code under test.
mod atomics {
    pub(crate) use loom::sync::atomic::Ordering;
    pub(crate) use loom::sync::{Mutex, MutexGuard};

    /// So that the fourth key makes the table grow.
    pub(crate) const SLOTS_MIN: usize = 4;

    loom::lazy_static! {
        static ref STEPS: loom::sync::atomic::AtomicUsize = loom::sync::atomic::AtomicUsize::new(0);
    }

    /// Makes `loom` try the other threads here. By itself it remembers one access of an atomic, the last; where a writer
    /// loads what it then stores, the load of a reader before is forgotten, and so is the order that it belongs to.
    /// Relaxed: it orders nothing.
    fn step() {
        STEPS.fetch_add(1, Ordering::Relaxed);
    }

    /// The ordering that is asked for, or a weaker one.
    fn stored(order: Ordering) -> Ordering {
        if super::WEAK.get() == Some(super::Weak::Stores) { Ordering::Relaxed } else { order }
    }

    fn loaded(order: Ordering) -> Ordering {
        if super::WEAK.get() == Some(super::Weak::Loads) { Ordering::Relaxed } else { order }
    }

    macro_rules! atomic {
        ($name:ident $(<$of:ident>)?, $value:ty) => {
            pub(crate) struct $name $(<$of>)? (loom::sync::atomic::$name $(<$of>)?);

            impl $(<$of>)? $name $(<$of>)? {
                pub(crate) fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    step();
                    self.0.load(loaded(order))
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    step();
                    self.0.store(value, stored(order));
                }
            }
        };
    }
    atomic!(AtomicU32, u32);
    atomic!(AtomicU64, u64);
    atomic!(AtomicPtr<T>, *mut T);

    impl AtomicU64 {
        pub(crate) fn swap(&self, value: u64, order: Ordering) -> u64 {
            step();
            self.0.swap(value, stored(order))
        }
    }
}

/// Orderings that are weaker than those of the code.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Weak {
    Stores,
    Loads,
}

thread_local! {
    /// The weakened ordering of the model on this thread; all threads of a model run on one system thread.
    static WEAK: Cell<Option<Weak>> = const { Cell::new(None) };
}

const TAG: u8 = 3;

fn value(serial: u64) -> u64 {
    u64::from(TAG) << tagged_map::TAG_SHIFT | serial
}

/// So many keys whose search begins at the same slot.
fn neighbors<const N: usize>(map: &TaggedMap) -> [u64; N] {
    let first = map.table().home(1).0;
    let mut keys = (1..).filter(|it| map.table().home(*it).0 == first);
    std::array::from_fn(|_| keys.next().unwrap_or(0))
}

/// A map with keys that all hash to the same place. The first ones are in the map. Returns all keys, too.
fn filled<const N: usize>(count: usize) -> (Arc<TaggedMap>, [u64; N]) {
    let map = TaggedMap::with_capacity(1);
    let keys = neighbors(&map);
    for key in &keys[..count] {
        map.insert(*key, value(*key));
    }
    (Arc::new(map), keys)
}

/// All interleavings with a limited number of preemptions. With weaker orderings one of them must fail, if one of those
/// orderings is supposed to matter.
fn explore(preemptions: usize, needed: &[Weak], test: impl Fn() + Sync + Send + Copy + 'static) {
    let model = || {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(test);
    };
    WEAK.set(None);
    model();
    for weak in needed {
        WEAK.set(Some(*weak));
        let is_found = catch_unwind(AssertUnwindSafe(model)).is_err();
        WEAK.set(None);
        assert!(is_found, "the model does not notice that {weak:?} are weak");
    }
}

#[test]
fn a_reader_during_an_insertion_finds_all_of_a_key_or_nothing() {
    explore(3, &[Weak::Stores, Weak::Loads], || {
        let (map, keys) = filled::<2>(1);
        // The next key takes the entry of one that was there before.
        map.insert(keys[1], value(6));
        map.remove(keys[1], TAG);
        let other = map.clone();
        let writer = thread::spawn(move || assert_eq!(other.insert(keys[1], value(7)), None));
        let found = map.get(keys[1], TAG);
        assert!(found.is_none_or(|it| it == value(7)), "{found:?}");
        assert_eq!(map.get(keys[0], TAG), Some(value(keys[0])), "it is there all the time");
        writer.join().expect("it ends");
        assert_eq!(map.get(keys[1], TAG), Some(value(7)));
    });
}

#[test]
fn a_reader_during_growth_finds_what_is_there_all_the_time() {
    explore(2, &[Weak::Stores, Weak::Loads], || {
        let (map, keys) = filled::<4>(3);
        let other = map.clone();
        let writer = thread::spawn(move || assert_eq!(other.insert(keys[3], value(9)), None));
        assert_eq!(map.get(keys[2], TAG), Some(value(keys[2])));
        let found = map.get(keys[3], TAG);
        assert!(found.is_none_or(|it| it == value(9)), "{found:?}");
        writer.join().expect("it ends");
        assert_eq!(map.table().index.len(), 8, "it grew");
        assert!(keys[..3].iter().all(|it| map.get(*it, TAG) == Some(value(*it))));
    });
}

/// The second key takes the entry of the first one, and the first one comes back to another.
#[test]
fn a_reader_of_a_key_that_goes_and_comes_back_never_sees_the_value_of_another() {
    explore(2, &[Weak::Stores, Weak::Loads], || {
        let (map, keys) = filled::<2>(1);
        let (old, new) = (value(keys[0]), value(100));
        let other = map.clone();
        let writer = thread::spawn(move || {
            assert_eq!(other.remove(keys[0], TAG), Some(old));
            assert_eq!(other.insert(keys[1], value(50)), None);
            assert_eq!(other.remove(keys[1], TAG), Some(value(50)));
            assert_eq!(other.insert(keys[0], new), None);
        });
        let found = map.get(keys[0], TAG);
        assert!(found.is_none_or(|it| it == old || it == new), "{found:?}");
        writer.join().expect("it ends");
        assert_eq!(map.get(keys[0], TAG), Some(new));
    });
}

/// A reader of a value that is being replaced sees the old or the new one; with the new one it sees all earlier writes.
#[test]
fn whoever_sees_a_new_value_sees_what_came_before_it() {
    explore(3, &[Weak::Stores, Weak::Loads], || {
        let (map, keys) = filled::<1>(1);
        let before = Arc::new(loom::cell::UnsafeCell::new(0));
        let (other, written) = (map.clone(), before.clone());
        let writer = thread::spawn(move || {
            // SAFETY: nobody reads it before the new value is in the map, which is the next step.
            written.with_mut(|it| unsafe { *it = 5 });
            assert_eq!(other.insert(keys[0], value(100)), Some(value(keys[0])));
        });
        let found = map.get(keys[0], TAG);
        if found == Some(value(100)) {
            // SAFETY: written before the value that was found, and never again.
            before.with(|it| assert_eq!(unsafe { *it }, 5));
        } else {
            assert!(found.is_none_or(|it| it == value(keys[0])), "{found:?}");
        }
        writer.join().expect("it ends");
    });
}

/// The dead slots before and behind a key become unused again, and the key is found all the time.
#[test]
fn a_reader_goes_over_slots_that_die() {
    explore(2, &[], || {
        let (map, keys) = filled::<3>(3);
        let other = map.clone();
        let writer = thread::spawn(move || {
            assert_eq!(other.remove(keys[0], TAG), Some(value(keys[0])));
            assert_eq!(other.remove(keys[2], TAG), Some(value(keys[2])));
            assert_eq!(other.insert(keys[2], value(9)), None);
        });
        assert_eq!(map.get(keys[1], TAG), Some(value(keys[1])));
        let found = map.get(keys[2], TAG);
        assert!(found.is_none_or(|it| it == value(keys[2]) || it == value(9)), "{found:?}");
        writer.join().expect("it ends");
        assert_eq!((map.get(keys[0], TAG), map.get(keys[2], TAG), map.len()), (None, Some(value(9)), 2));
    });
}

#[test]
fn two_writers_lose_nothing_of_each_other() {
    explore(2, &[], || {
        let (map, keys) = filled::<4>(2);
        let write = |key: u64| {
            let map = map.clone();
            thread::spawn(move || assert_eq!(map.insert(key, value(key)), None))
        };
        let writers = [write(keys[2]), write(keys[3])];
        assert_eq!(map.get(keys[1], TAG), Some(value(keys[1])), "one of them makes the map grow");
        for writer in writers {
            writer.join().expect("it ends");
        }
        assert!(keys.iter().all(|it| map.get(*it, TAG) == Some(value(*it))));
        assert_eq!(map.len(), 4);
    });
}
