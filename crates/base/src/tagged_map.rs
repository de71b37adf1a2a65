//! A map from a key and a tag to a word, read without locks on every recorded call.
//!
//! Open addressing with linear probing. Readers take no lock and write nothing. Writers, which are rare, hold a
//! mutex. The tag is the top byte of the value, so a slot is two words: one cache line holds four of them.
//!
//! A reader may race a writer only for keys that the application itself uses unsynchronized, which it must not do;
//! even then the reader gets an old value, a new one or none, never a torn one.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const EMPTY: u64 = 0;
const DEAD: u64 = u64::MAX;
const TAG_SHIFT: u32 = 56;

/// A map from non-zero keys to values whose top byte is part of the key.
pub struct TaggedMap {
    /// The table in use. Release in `publish`; pairs with Acquire in `table`.
    current: AtomicPtr<Table>,
    writer: Mutex<Writer>,
}

#[derive(Default)]
struct Writer {
    /// All tables ever used, the current one last. Old ones stay, since a reader may still be in one; each is at
    /// least twice as large as the one before, so together they are smaller than the current one.
    #[expect(clippy::vec_box, reason = "readers hold addresses of tables, which must not move")]
    tables: Vec<Box<Table>>,
    live: usize,
    /// Slots that were used once, dead ones included.
    used: usize,
}

struct Table {
    slots: Box<[Slot]>,
    shift: u32,
}

#[derive(Default)]
struct Slot {
    /// Release in `insert`, after the value; pairs with Acquire in `get`.
    key: AtomicU64,
    value: AtomicU64,
}

impl Default for TaggedMap {
    fn default() -> TaggedMap {
        TaggedMap::with_capacity(512)
    }
}

impl TaggedMap {
    /// Room for `count` keys before the first growth.
    pub fn with_capacity(count: usize) -> TaggedMap {
        let map = TaggedMap { current: AtomicPtr::default(), writer: Mutex::default() };
        map.publish(&mut map.lock(), Table::new((count * 2).next_power_of_two().max(16)));
        map
    }

    /// The value of a key and tag.
    #[inline(always)]
    pub fn get(&self, key: u64, tag: u8) -> Option<u64> {
        // These two mark slots; an application's garbage may well be one of them.
        if key == EMPTY || key == DEAD {
            return None;
        }
        self.table().get(key, tag)
    }

    /// Sets the value, whose top byte is the tag. Gives the one it replaces.
    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        assert!(key != EMPTY && key != DEAD, "these keys mark slots");
        let mut writer = self.lock();
        let tag = (value >> TAG_SHIFT) as u8;
        let table = self.table();
        if let Some(at) = table.find(key, tag) {
            return Some(table.slots[at].value.swap(value, Ordering::Release));
        }
        let is_full = (writer.used + 1) * 4 > table.slots.len() * 3 || (writer.live + 1) * 2 > table.slots.len();
        if is_full {
            self.grow(&mut writer);
        }
        let was_empty = self.table().put(key, value);
        writer.live += 1;
        writer.used += usize::from(was_empty);
        None
    }

    /// Forgets a key and tag, and gives the value it had.
    pub fn remove(&self, key: u64, tag: u8) -> Option<u64> {
        if key == EMPTY || key == DEAD {
            return None;
        }
        let mut writer = self.lock();
        let table = self.table();
        let at = table.find(key, tag)?;
        let value = table.slots[at].value.load(Ordering::Relaxed);
        writer.live -= 1;
        writer.used -= table.bury(at);
        Some(value)
    }

    /// All keys and values, in no order.
    pub fn entries_unsorted(&self) -> Vec<(u64, u64)> {
        let _writer = self.lock();
        let all = self.table().slots.iter();
        all.map(|it| (it.key.load(Ordering::Relaxed), it.value.load(Ordering::Relaxed)))
            .filter(|it| it.0 != EMPTY && it.0 != DEAD)
            .collect()
    }

    pub fn len(&self) -> usize {
        self.lock().live
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic of a writer leaves a consistent table: every change is one store.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn table(&self) -> &Table {
        // SAFETY: `current` always points into a box that `Writer` keeps until the map is dropped.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    fn publish(&self, writer: &mut Writer, table: Table) {
        let mut table = Box::new(table);
        self.current.store(&raw mut *table, Ordering::Release);
        writer.tables.push(table);
    }

    fn grow(&self, writer: &mut Writer) {
        let old = self.table();
        let table = Table::new(old.slots.len() * 2);
        for slot in &old.slots {
            let key = slot.key.load(Ordering::Relaxed);
            if key != EMPTY && key != DEAD {
                table.put(key, slot.value.load(Ordering::Relaxed));
            }
        }
        writer.used = writer.live;
        self.publish(writer, table);
    }
}

impl Table {
    fn new(slots: usize) -> Table {
        assert!(slots.is_power_of_two(), "the hash is cut to a power of two");
        let all = (0..slots).map(|_| Slot::default()).collect();
        Table { slots: all, shift: 64 - slots.trailing_zeros() }
    }

    /// Multiplicative hashing: the top bits depend on all bits of the key.
    #[inline(always)]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline(always)]
    fn get(&self, key: u64, tag: u8) -> Option<u64> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(key);
        loop {
            // SAFETY: `mask` is one less than the number of slots.
            let slot = unsafe { self.slots.get_unchecked(at & mask) };
            let have = slot.key.load(Ordering::Acquire);
            if have == key {
                let value = slot.value.load(Ordering::Acquire);
                // The slot may have been given to another key between the loads, and back again.
                let is_same = slot.key.load(Ordering::Acquire) == key && slot.value.load(Ordering::Acquire) == value;
                if is_same && (value >> TAG_SHIFT) as u8 == tag {
                    return Some(value);
                }
            } else if have == EMPTY {
                return None;
            }
            at += 1;
        }
    }

    /// Marks a slot dead, for writers. Dead slots in front of an empty one lead nowhere and become empty again;
    /// gives their number.
    fn bury(&self, at: usize) -> usize {
        let mask = self.slots.len() - 1;
        self.slots[at].key.store(DEAD, Ordering::Release);
        let mut freed = 0;
        let mut at = at;
        if self.slots[(at + 1) & mask].key.load(Ordering::Relaxed) == EMPTY {
            while self.slots[at].key.load(Ordering::Relaxed) == DEAD {
                self.slots[at].key.store(EMPTY, Ordering::Release);
                freed += 1;
                at = at.wrapping_sub(1) & mask;
            }
        }
        freed
    }

    /// For writers, under the lock.
    fn find(&self, key: u64, tag: u8) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(key);
        loop {
            let slot = &self.slots[at & mask];
            match slot.key.load(Ordering::Relaxed) {
                EMPTY => return None,
                have if have == key && (slot.value.load(Ordering::Relaxed) >> TAG_SHIFT) as u8 == tag => {
                    return Some(at & mask);
                }
                _ => at += 1,
            }
        }
    }

    /// Puts a key that is not there into the first dead or empty slot; says whether the slot was empty.
    fn put(&self, key: u64, value: u64) -> bool {
        let mask = self.slots.len() - 1;
        let mut at = self.home(key);
        loop {
            let slot = &self.slots[at & mask];
            let have = slot.key.load(Ordering::Relaxed);
            if have == EMPTY || have == DEAD {
                slot.value.store(value, Ordering::Release);
                slot.key.store(key, Ordering::Release);
                return have == EMPTY;
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

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
    fn the_marks_of_slots_are_no_keys() {
        let map = TaggedMap::default();
        assert_eq!(map.get(0, 3), None);
        map.insert(5, value(3, 1));
        map.remove(5, 3);
        map.insert(6, value(3, 2));
        assert_eq!((map.get(u64::MAX, 3), map.remove(u64::MAX, 3), map.remove(0, 3)), (None, None, None));
        assert_eq!(map.len(), 1);
    }

    #[test]
    fn agrees_with_a_tree_over_random_operations() {
        let map = TaggedMap::with_capacity(4);
        let mut tree = BTreeMap::new();
        let mut state = 1_u64;
        for step in 0..200_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let (key, tag) = (state % 997 + 1, (state >> 20) as u8 % 3);
            match state >> 40 & 3 {
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
        let slots = map.table().slots.len();
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
}
