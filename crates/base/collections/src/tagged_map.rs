//! A map from a key and a tag to a word, read without locks on every recorded call.
//!
//! Keys and values lie one behind the other in the order of insertion. Applications use objects much in the order in
//! which they created them, so the next key is often in the same cache line. An index by hash, open addressing with
//! linear probing and four bytes a slot, finds the entry. With entries in hash order, each look-up among 65,536
//! buffers was a cold cache line.
//!
//! Readers take no lock and write nothing. Writers are rare and hold a mutex. The tag is the top byte of the value, so
//! an entry is two words.
//!
//! A reader may race a writer only for keys that the application itself uses unsynchronized, which it must not do;
//! even then the reader gets an old value, a new one or none, never a torn one.
//!
//! Compiled twice: with the atomics of the standard library, and for the tests that go through all interleavings.

use std::sync::{Arc, PoisonError};

use super::atomics::{AtomicPtr, AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, SLOTS_MIN};

/// No key, and a slot of the index that was never used.
const EMPTY: u64 = 0;
const UNUSED: u32 = 0;
pub(crate) const TAG_SHIFT: u32 = 56;

/// A map from non-zero keys to values whose top byte is part of the key.
pub struct TaggedMap {
    /// The table in use. Release in `publish`; pairs with Acquire in `table`.
    current: AtomicPtr<TaggedTable>,
    writer: Mutex<Writer>,
}

#[derive(Default)]
struct Writer {
    /// All tables ever used, the current one last. Old ones stay, since a reader may still use one; each is at least
    /// twice as large as the one before, so together they are smaller than the current one. Not boxes: moving a box
    /// asserts that no other pointer leads to its contents, and readers have some.
    tables: Vec<Arc<TaggedTable>>,
    live: usize,
    /// Slots of the index that were used once, dead ones included.
    used: usize,
    /// Entries that were used and are not any more; behind `next` none was.
    free: Vec<u32>,
    next: u32,
}

pub(crate) struct TaggedTable {
    /// The number of an entry plus one in the low bits, as many as the number of slots has, and a part of its hash
    /// above them. A dead slot has no number, but all bits above. Release in `insert_new`, after the entry; pairs with
    /// Acquire in `get`.
    pub(crate) index: Box<[AtomicU32]>,
    entries: Box<[TaggedEntry]>,
    /// How many bits a number has.
    bits: u32,
}

struct TaggedEntry {
    /// Release in `insert_new`, after the value; pairs with Acquire in `get`.
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
        let map = TaggedMap { current: AtomicPtr::new(std::ptr::null_mut()), writer: Mutex::new(Writer::default()) };
        map.publish(&mut map.lock(), TaggedTable::new((count * 2).next_power_of_two().max(SLOTS_MIN)));
        map
    }

    /// The value of a key and tag.
    #[inline(always)]
    pub fn get(&self, key: u64, tag: u8) -> Option<u64> {
        // The key of free entries; an invalid handle of an application may equal it.
        if key == EMPTY {
            return None;
        }
        self.table().get(key, tag)
    }

    /// Sets the value, whose top byte is the tag. Returns the one it replaces.
    pub fn insert(&self, key: u64, value: u64) -> Option<u64> {
        assert!(key != EMPTY, "this key marks entries that nobody has");
        let mut writer = self.lock();
        let tag = (value >> TAG_SHIFT) as u8;
        if let Some((_, entry)) = self.table().find(key, tag) {
            return Some(self.table().entries[entry].value.swap(value, Ordering::Release));
        }
        if (writer.used + 1) * 4 > self.table().index.len() * 3 {
            self.grow(&mut writer);
        }
        let number = writer.free.pop().unwrap_or(writer.next);
        writer.next = writer.next.max(number + 1);
        let was_unused = self.table().insert_new(number, key, value);
        writer.live += 1;
        writer.used += usize::from(was_unused);
        None
    }

    /// Forgets a key and tag, and gives the value it had.
    pub fn remove(&self, key: u64, tag: u8) -> Option<u64> {
        if key == EMPTY {
            return None;
        }
        let mut writer = self.lock();
        let table = self.table();
        let (slot, entry) = table.find(key, tag)?;
        let value = table.entries[entry].value.load(Ordering::Relaxed);
        table.entries[entry].key.store(EMPTY, Ordering::Release);
        writer.live -= 1;
        writer.used -= table.mark_dead(slot);
        writer.free.push(entry as u32);
        Some(value)
    }

    /// All keys and values, in no order.
    pub fn entries_unsorted(&self) -> Vec<(u64, u64)> {
        let _writer = self.lock();
        self.table().entries().map(|(_, key, value)| (key, value)).collect()
    }

    pub fn len(&self) -> usize {
        self.lock().live
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic of a writer leaves a consistent table: a key is there from one store on.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    pub(crate) fn table(&self) -> &TaggedTable {
        // SAFETY: `publish` alone stores into `current`, the first time in `with_capacity`, and keeps every table in
        // `Writer::tables` until the map is dropped, which the reference does not outlive. Nobody has a table mutably.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    fn publish(&self, writer: &mut Writer, table: TaggedTable) {
        let table = Arc::new(table);
        self.current.store(Arc::as_ptr(&table).cast_mut(), Ordering::Release);
        writer.tables.push(table);
    }

    /// Entries keep their numbers.
    fn grow(&self, writer: &mut Writer) {
        let old = self.table();
        let table = TaggedTable::new(old.index.len() * 2);
        for (number, key, value) in old.entries() {
            table.insert_new(number, key, value);
        }
        writer.used = writer.live;
        self.publish(writer, table);
    }
}

impl TaggedTable {
    fn new(slots: usize) -> TaggedTable {
        let bits = slots.trailing_zeros();
        assert!(slots.is_power_of_two() && bits < 32, "the hash is cut to a power of two, and a slot has 32 bits");
        let index = (0..slots).map(|_| AtomicU32::new(UNUSED)).collect();
        // No more slots than that are ever used.
        let entries = (0..slots * 3 / 4).map(|_| TaggedEntry::new()).collect();
        TaggedTable { index, entries, bits }
    }

    /// The first slot for a key, and what a slot has above the number. Multiplicative hashing: the top bits depend on
    /// all bits of the key.
    #[inline(always)]
    pub(crate) fn home(&self, key: u64) -> (usize, u32) {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((hash >> (64 - self.bits)) as usize, ((hash << self.bits) >> 32) as u32 & !self.entry_mask())
    }

    /// The bits of numbers.
    #[inline(always)]
    fn entry_mask(&self) -> u32 {
        (1 << self.bits) - 1
    }

    #[inline(always)]
    fn get(&self, key: u64, tag: u8) -> Option<u64> {
        let (numbers, (mut at, above)) = (self.entry_mask(), self.home(key));
        loop {
            // SAFETY: `TaggedTable::new` makes `1 << bits` slots, and `numbers` is one less than that.
            let slot = unsafe { self.index.get_unchecked(at & numbers as usize) }.load(Ordering::Acquire);
            if slot == UNUSED {
                return None;
            }
            let number = slot & numbers;
            if slot & !numbers == above && number != 0 {
                // SAFETY: `insert_new` alone writes numbers into slots, plus one, after it found the entry by a checked index;
                // `mark_dead` leaves none. `entries` never changes its length.
                let entry = unsafe { self.entries.get_unchecked(number as usize - 1) };
                if let Some(value) = entry.get(key).filter(|it| (it >> TAG_SHIFT) as u8 == tag) {
                    return Some(value);
                }
            }
            at += 1;
        }
    }

    /// Marks a slot dead, for writers. Dead slots in front of an unused one lead nowhere and become unused again; gives
    /// their number.
    fn mark_dead(&self, at: usize) -> usize {
        let mask = self.index.len() - 1;
        let dead = !self.entry_mask();
        self.index[at].store(dead, Ordering::Release);
        let mut freed = 0;
        let mut at = at;
        if self.index[(at + 1) & mask].load(Ordering::Relaxed) == UNUSED {
            while self.index[at].load(Ordering::Relaxed) == dead {
                self.index[at].store(UNUSED, Ordering::Release);
                freed += 1;
                at = at.wrapping_sub(1) & mask;
            }
        }
        freed
    }

    /// The slot and the entry of a key, for writers, under the lock.
    pub(crate) fn find(&self, key: u64, tag: u8) -> Option<(usize, usize)> {
        let (mask, (mut at, above)) = (self.index.len() - 1, self.home(key));
        loop {
            let slot = self.index[at & mask].load(Ordering::Relaxed);
            if slot == UNUSED {
                return None;
            }
            let number = slot & self.entry_mask();
            if slot & !self.entry_mask() == above && number != 0 {
                let found = self.entries[number as usize - 1].get(key);
                if found.is_some_and(|it| (it >> TAG_SHIFT) as u8 == tag) {
                    return Some((at & mask, number as usize - 1));
                }
            }
            at += 1;
        }
    }

    /// Inserts a new key into a free entry, and into the first dead or unused slot. Returns whether the slot was
    /// unused. For writers, under the lock.
    fn insert_new(&self, number: u32, key: u64, value: u64) -> bool {
        let entry = &self.entries[number as usize];
        entry.value.store(value, Ordering::Release);
        entry.key.store(key, Ordering::Release);
        let (mask, (mut at, above)) = (self.index.len() - 1, self.home(key));
        loop {
            let slot = self.index[at & mask].load(Ordering::Relaxed);
            if slot & self.entry_mask() == 0 {
                self.index[at & mask].store(above | (number + 1), Ordering::Release);
                return slot == UNUSED;
            }
            at += 1;
        }
    }

    /// The entries in use, with their numbers.
    fn entries(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        let words = |it: &TaggedEntry| (it.key.load(Ordering::Relaxed), it.value.load(Ordering::Relaxed));
        let all = (0..).zip(&self.entries).map(move |(number, it)| (number, words(it)));
        all.filter(|it| it.1.0 != EMPTY).map(|(number, (key, value))| (number, key, value))
    }
}

impl TaggedEntry {
    fn new() -> TaggedEntry {
        TaggedEntry { key: AtomicU64::new(EMPTY), value: AtomicU64::new(0) }
    }

    /// The value, if it is that of a key.
    #[inline(always)]
    fn get(&self, key: u64) -> Option<u64> {
        if self.key.load(Ordering::Acquire) != key {
            return None;
        }
        let value = self.value.load(Ordering::Acquire);
        // It may have been given to another key between the loads, and back again.
        let is_same = self.key.load(Ordering::Acquire) == key && self.value.load(Ordering::Acquire) == value;
        is_same.then_some(value)
    }
}
