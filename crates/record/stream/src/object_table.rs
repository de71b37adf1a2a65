//! The live objects: their ids, and the last call of each.
//!
//! Every recorded call reads this table, without locks. An object has a slot, which is reused after the object is
//! destroyed, so memory is bounded by the number of live objects. Ids are never reused.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use lavascope_abi::ObjectId;
use lavascope_record::encoding::OrderEdge;

const CHUNK_SLOTS: usize = 1024;
const CHUNKS_MAX: usize = 1 << 14;

/// The place of an object in the table.
///
/// A slot may be wrong: its number may be invented, or belong to another [`ObjectTable`] or a destroyed object.
/// [`ObjectTable`] panics if the slot does not exist. Otherwise it returns the object that has the slot now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectSlot(u32);

impl ObjectSlot {
    /// The slot with a number from [`ObjectSlot::number`], for maps that store numbers.
    #[inline(always)]
    pub const fn from_number(number: u32) -> ObjectSlot {
        ObjectSlot(number)
    }

    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// All live objects of a process.
pub struct ObjectTable {
    /// Release in `grow`; pairs with Acquire in `entry`.
    chunks: [AtomicPtr<EntryChunk>; CHUNKS_MAX],
    free: Mutex<Vec<u32>>,
    /// Number of chunks. Written under the lock of `free`.
    count: AtomicUsize,
}

type EntryChunk = [ObjectEntry; CHUNK_SLOTS];

#[derive(Default)]
struct ObjectEntry {
    id: AtomicU64,
    /// The word of an [`OrderEdge`], or zero. Release in `set_last_edge`; pairs with Acquire in `last_edge`, so that a
    /// thread that sees the edge also finds the record that it names in its stream.
    last_edge: AtomicU64,
    /// The slot that stores the edges of this object: its own, or that of its pool.
    sync_domain: AtomicU32,
    parent: AtomicU32,
    /// Release in `swap_user_data`; pairs with Acquire in `user_data`.
    user_data: AtomicU32,
    /// See [`ObjectReaders`]. Relaxed: whoever changes the object is synchronized with those who read it.
    readers: AtomicU32,
}

/// The slot number of no object.
const NONE: u32 = u32::MAX;

/// The parent of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectParent {
    None,
    /// The object is destroyed with its parent.
    Owner(ObjectSlot),
    /// In addition, every use of the object is synchronized with every use of its parent, so they share one order: a
    /// command buffer and its pool.
    SharedSyncDomain(ObjectSlot),
}

impl Default for ObjectTable {
    fn default() -> ObjectTable {
        ObjectTable::new()
    }
}

impl ObjectTable {
    /// Largest number of live objects.
    pub const MAX: usize = CHUNK_SLOTS * CHUNKS_MAX;

    pub const fn new() -> ObjectTable {
        ObjectTable {
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS_MAX],
            free: Mutex::new(Vec::new()),
            count: AtomicUsize::new(0),
        }
    }

    /// Adds an object; `note` is data of the caller. Returns none if there are [`ObjectTable::MAX`] objects.
    pub fn add(&self, id: ObjectId, parent: ObjectParent, note: u32) -> Option<ObjectSlot> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.is_empty() {
            self.grow(&mut free);
        }
        let slot = free.pop()?;
        drop(free);
        let entry = self.entry(ObjectSlot(slot));
        entry.id.store(id.raw(), Ordering::Relaxed);
        entry.last_edge.store(0, Ordering::Relaxed);
        let (parent, keeper) = match parent {
            ObjectParent::None => (NONE, slot),
            ObjectParent::Owner(owner) => (owner.0, slot),
            ObjectParent::SharedSyncDomain(object_slot) => (object_slot.0, object_slot.0),
        };
        entry.parent.store(parent, Ordering::Relaxed);
        entry.sync_domain.store(keeper, Ordering::Relaxed);
        entry.user_data.store(note, Ordering::Relaxed);
        entry.readers.store(0, Ordering::Relaxed);
        Some(ObjectSlot(slot))
    }

    /// Removes an object and frees its slot. Does nothing if the slot is free already: a slot that was freed twice
    /// would be given to two objects.
    pub fn remove(&self, slot: ObjectSlot) {
        if self.entry(slot).id.swap(0, Ordering::Relaxed) != 0 {
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(slot.0);
        }
    }

    #[inline(always)]
    pub fn id(&self, slot: ObjectSlot) -> Option<ObjectId> {
        ObjectId::from_raw(self.raw_id(slot))
    }

    /// The id as it is stored in a record.
    #[inline(always)]
    pub fn raw_id(&self, slot: ObjectSlot) -> u64 {
        self.entry(slot).id.load(Ordering::Relaxed)
    }

    pub fn parent(&self, slot: ObjectSlot) -> Option<ObjectSlot> {
        Some(self.entry(slot).parent.load(Ordering::Relaxed)).filter(|it| *it != NONE).map(ObjectSlot)
    }

    /// Sets the data of the caller, and returns the old data.
    pub fn swap_user_data(&self, slot: ObjectSlot, note: u32) -> u32 {
        self.entry(slot).user_data.swap(note, Ordering::AcqRel)
    }

    pub fn user_data(&self, slot: ObjectSlot) -> u32 {
        self.entry(slot).user_data.load(Ordering::Acquire)
    }

    /// The word of the last order edge of an object or of its pool; zero if there is none.
    #[inline(always)]
    pub fn last_edge(&self, slot: ObjectSlot) -> u64 {
        self.sync_domain_entry(slot).last_edge.load(Ordering::Acquire)
    }

    /// Sets the last call that had the object as an externally synchronized parameter.
    #[inline(always)]
    pub fn set_last_edge(&self, slot: ObjectSlot, by: OrderEdge) {
        self.sync_domain_entry(slot).last_edge.store(by.to_word(), Ordering::Release);
    }

    /// The place where the edges of an object are stored, for callers that cache it.
    ///
    /// It belongs to this object as long as the object lives, and to some object as long as `self` lives.
    pub fn sync_domain(&self, slot: ObjectSlot) -> SyncDomain<'_> {
        SyncDomain { last_edge: &self.sync_domain_entry(slot).last_edge }
    }

    /// The threads that have read an object; of the object itself, also if it shares its edges with its pool.
    #[inline(always)]
    pub fn readers(&self, slot: ObjectSlot) -> ObjectReaders<'_> {
        ObjectReaders { readers: &self.entry(slot).readers }
    }

    /// Number of live objects.
    pub fn len(&self) -> usize {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        self.count.load(Ordering::Relaxed) * CHUNK_SLOTS - free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    fn sync_domain_entry(&self, slot: ObjectSlot) -> &ObjectEntry {
        self.entry(ObjectSlot(self.entry(slot).sync_domain.load(Ordering::Relaxed)))
    }

    #[inline(always)]
    fn entry(&self, slot: ObjectSlot) -> &ObjectEntry {
        let chunk = self.chunks[slot.0 as usize / CHUNK_SLOTS].load(Ordering::Acquire);
        // SAFETY: `grow` alone stores into `chunks`, and only what `Box::into_raw` gave; nobody frees that before `drop`.
        let Some(chunk) = (unsafe { chunk.as_ref() }) else { no_such_slot(slot) };
        &chunk[slot.0 as usize % CHUNK_SLOTS]
    }

    fn grow(&self, free: &mut Vec<u32>) {
        let count = self.count.load(Ordering::Relaxed);
        let Some(place) = self.chunks.get(count) else { return };
        let chunk: Box<EntryChunk> = Box::new(std::array::from_fn(|_| ObjectEntry::default()));
        place.store(Box::into_raw(chunk), Ordering::Release);
        self.count.store(count + 1, Ordering::Relaxed);
        let first = (count * CHUNK_SLOTS) as u32;
        free.extend((first..first + CHUNK_SLOTS as u32).rev());
    }
}

#[cold]
#[inline(never)]
fn no_such_slot(slot: ObjectSlot) -> ! {
    panic!("no object was ever in slot {}", slot.0)
}

/// The place where the order edges of an object are stored.
#[derive(Clone, Copy)]
pub struct SyncDomain<'a> {
    last_edge: &'a AtomicU64,
}

impl SyncDomain<'_> {
    /// See [`ObjectTable::last_edge`].
    #[inline(always)]
    pub fn last_edge(self) -> u64 {
        self.last_edge.load(Ordering::Acquire)
    }

    /// See [`ObjectTable::set_last_edge`].
    #[inline(always)]
    pub fn set_last_edge(self, by: OrderEdge) {
        self.last_edge.store(by.to_word(), Ordering::Release);
    }
}

/// Which threads have used an object without having it to themselves, since a thread had.
///
/// A call that changes the object comes after theirs. They may be many at once, so only the thread is stored, or that
/// there are several: the call then makes a local barrier.
#[derive(Clone, Copy)]
pub struct ObjectReaders<'a> {
    /// The number of the only thread, zero for none, or [`SEVERAL`].
    readers: &'a AtomicU32,
}

/// The number of no thread.
const SEVERAL: u32 = u32::MAX;

impl ObjectReaders<'_> {
    #[inline(always)]
    pub fn add(self, thread: u32) {
        let known = self.readers.load(Ordering::Relaxed);
        if known != thread && known != SEVERAL {
            self.add_new(thread);
        }
    }

    #[inline(never)]
    fn add_new(self, thread: u32) {
        // If another thread was faster, there are several.
        if self.readers.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            self.readers.store(SEVERAL, Ordering::Relaxed);
        }
    }

    /// Whether other threads are among them.
    #[inline(always)]
    pub fn has_others(self, thread: u32) -> bool {
        let known = self.readers.load(Ordering::Relaxed);
        known != 0 && known != thread
    }

    /// The object is changed, after all of them.
    pub fn clear(self) {
        self.readers.store(0, Ordering::Relaxed);
    }
}

impl Drop for ObjectTable {
    fn drop(&mut self) {
        for chunk in &mut self.chunks[..*self.count.get_mut()] {
            // SAFETY: `grow` stored what `Box::into_raw` gave into each of the first `count` places, once. Every reference
            // that `entry` made borrows `self`, which is borrowed alone here.
            drop(unsafe { Box::from_raw(*chunk.get_mut()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_abi::HandleType;

    fn id(serial: u64) -> ObjectId {
        ObjectId::new(HandleType::Buffer, serial).unwrap_or_default()
    }

    #[test]
    fn slots_are_used_again_and_start_untouched() {
        let objects = ObjectTable::new();
        let first = objects.add(id(1), ObjectParent::None, 7).expect("room");
        objects.set_last_edge(first, OrderEdge { thread: 3, call: 9 });
        assert_eq!(OrderEdge::from_word(objects.last_edge(first)), OrderEdge { thread: 3, call: 9 });
        assert_eq!((objects.id(first), objects.user_data(first), objects.len()), (Some(id(1)), 7, 1));
        objects.remove(first);
        let second = objects.add(id(2), ObjectParent::None, 0).expect("room");
        assert_eq!((second, objects.last_edge(second), objects.id(second)), (first, 0, Some(id(2))));
    }

    #[test]
    fn a_pool_and_its_children_share_one_order() {
        let objects = ObjectTable::new();
        let pool = objects.add(id(0), ObjectParent::None, 0).expect("room");
        let child = objects.add(id(1), ObjectParent::SharedSyncDomain(pool), 0).expect("room");
        let other = objects.add(id(2), ObjectParent::SharedSyncDomain(pool), 0).expect("room");
        objects.set_last_edge(child, OrderEdge { thread: 1, call: 5 });
        assert_eq!(OrderEdge::from_word(objects.last_edge(other)), OrderEdge { thread: 1, call: 5 });
        assert_eq!(objects.last_edge(pool), objects.last_edge(child));
        let set = objects.add(id(3), ObjectParent::Owner(pool), 0).expect("room");
        assert_eq!((objects.last_edge(set), objects.parent(set)), (0, Some(pool)));
    }

    #[test]
    fn readers_are_one_thread_or_several() {
        let objects = ObjectTable::new();
        let pool = objects.add(id(0), ObjectParent::None, 0).expect("room");
        let child = objects.add(id(1), ObjectParent::SharedSyncDomain(pool), 0).expect("room");
        let readers = objects.readers(child);
        assert!(!readers.has_others(1));
        readers.add(1);
        readers.add(1);
        assert!(!readers.has_others(1) && readers.has_others(2) && !objects.readers(pool).has_others(2));
        readers.add(2);
        assert!(readers.has_others(1) && readers.has_others(2), "each has another");
        readers.add(1);
        assert!(readers.has_others(1));
        readers.clear();
        assert!(!readers.has_others(1));
        readers.add(2);
        objects.remove(child);
        let next = objects.add(id(2), ObjectParent::None, 0).expect("room");
        assert!(next == child && !objects.readers(next).has_others(1), "nobody has read the new object");
    }

    /// A slot of a larger table, a slot beyond any table, and the slot of no object.
    #[test]
    fn a_slot_of_others_is_found_out() {
        let (busy, objects) = (ObjectTable::new(), ObjectTable::new());
        let foreign = (0..2000).filter_map(|it| busy.add(id(it), ObjectParent::None, 0)).last().expect("room");
        let unused = objects.add(id(1), ObjectParent::None, 0).expect("room");
        for slot in [foreign, ObjectSlot::from_number(ObjectTable::MAX as u32), ObjectSlot::from_number(NONE)] {
            let is_caught = |work: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err();
            assert!(is_caught(&|| _ = objects.id(slot)), "{slot:?} is no slot of an empty process");
            assert!(is_caught(&|| objects.set_last_edge(slot, OrderEdge { thread: 1, call: 1 })));
            assert!(is_caught(&|| objects.remove(slot)));
        }
        let child = objects.add(id(2), ObjectParent::SharedSyncDomain(foreign), 0).expect("room");
        let touched = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| objects.last_edge(child)));
        assert!(touched.is_err(), "a keeper of others is found out, too");
        assert_eq!((objects.id(unused), objects.len()), (Some(id(1)), 2));
    }

    #[test]
    fn a_slot_is_free_once() {
        let objects = ObjectTable::new();
        let first = objects.add(id(1), ObjectParent::None, 0).expect("room");
        objects.remove(first);
        objects.remove(first);
        assert_eq!(objects.len(), 0);
        let (second, third) = (objects.add(id(2), ObjectParent::None, 0), objects.add(id(3), ObjectParent::None, 0));
        assert_ne!(second, third, "two objects never share a slot");
        assert_eq!(first, ObjectSlot::from_number(first.number()));
    }

    #[test]
    fn many_objects_grow_the_table() {
        let objects = ObjectTable::new();
        let slots: Vec<ObjectSlot> = (0..5000).filter_map(|it| objects.add(id(it), ObjectParent::None, 0)).collect();
        assert_eq!((slots.len(), objects.len()), (5000, 5000));
        assert!(slots.iter().zip(0..).all(|(slot, serial)| objects.id(*slot) == Some(id(serial))));
    }
}
