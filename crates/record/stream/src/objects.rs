//! The objects that are alive: their ids, and the calls that last touched them.
//!
//! Read on every recorded call, without locks. An object lives in a slot, which is used again after its end, so that
//! memory is bounded by what is alive at once; ids are never used again.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use lavascope_abi::ObjectId;
use lavascope_record::record::Touch;

const CHUNK_SLOTS: usize = 1024;
const CHUNKS_MAX: usize = 1 << 14;

/// Where an object lives.
///
/// A slot carries no promise: a number that was made up, a slot of other [`Objects`] and one whose object is no more
/// are found out by [`Objects`], which panics where there is no such slot and else reads what lives there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(u32);

impl Slot {
    /// The slot of a number that [`Slot::number`] gave, for maps that hold numbers.
    #[inline(always)]
    pub const fn from_number(number: u32) -> Slot {
        Slot(number)
    }

    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// All objects of a process.
pub struct Objects {
    /// Release in `grow`; pairs with Acquire in `entry`.
    chunks: [AtomicPtr<Chunk>; CHUNKS_MAX],
    free: Mutex<Vec<u32>>,
    /// Chunks that exist. Written under the lock of `free`.
    count: AtomicUsize,
}

type Chunk = [Entry; CHUNK_SLOTS];

#[derive(Default)]
struct Entry {
    id: AtomicU64,
    /// The word of a [`Touch`], or zero. Release in `touch`; pairs with Acquire in `touch_of`, so that who sees a
    /// touch also sees the record it speaks of in its stream.
    touch: AtomicU64,
    /// The slot whose touch counts for this object: its own, or that of the pool it was allocated from.
    keeper: AtomicU32,
    parent: AtomicU32,
    note: AtomicU32,
}

/// The slot of nobody.
const NONE: u32 = u32::MAX;

/// Whose pool an object came out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    None,
    /// It ends with its parent.
    Owner(Slot),
    /// And every use of it is synchronized with every use of its parent, so that they share one order: a command
    /// buffer and its pool.
    Keeper(Slot),
}

impl Default for Objects {
    fn default() -> Objects {
        Objects::new()
    }
}

impl Objects {
    /// More objects than this cannot be alive at once.
    pub const MAX: usize = CHUNK_SLOTS * CHUNKS_MAX;

    pub const fn new() -> Objects {
        Objects {
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS_MAX],
            free: Mutex::new(Vec::new()),
            count: AtomicUsize::new(0),
        }
    }

    /// A new object; `note` is the caller's. None when there are [`Objects::MAX`] already.
    pub fn add(&self, id: ObjectId, parent: Parent, note: u32) -> Option<Slot> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.is_empty() {
            self.grow(&mut free);
        }
        let slot = free.pop()?;
        drop(free);
        let entry = self.entry(Slot(slot));
        entry.id.store(id.raw(), Ordering::Relaxed);
        entry.touch.store(0, Ordering::Relaxed);
        let (parent, keeper) = match parent {
            Parent::None => (NONE, slot),
            Parent::Owner(it) => (it.0, slot),
            Parent::Keeper(it) => (it.0, it.0),
        };
        entry.parent.store(parent, Ordering::Relaxed);
        entry.keeper.store(keeper, Ordering::Relaxed);
        entry.note.store(note, Ordering::Relaxed);
        Some(Slot(slot))
    }

    /// The object is no more. Its slot will be another's. Nothing happens if nobody lives there: a slot that is free
    /// twice would become that of two objects.
    pub fn remove(&self, slot: Slot) {
        if self.entry(slot).id.swap(0, Ordering::Relaxed) != 0 {
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(slot.0);
        }
    }

    #[inline(always)]
    pub fn id(&self, slot: Slot) -> Option<ObjectId> {
        ObjectId::from_raw(self.raw_id(slot))
    }

    /// The id as it stands in a record.
    #[inline(always)]
    pub fn raw_id(&self, slot: Slot) -> u64 {
        self.entry(slot).id.load(Ordering::Relaxed)
    }

    pub fn parent(&self, slot: Slot) -> Option<Slot> {
        Some(self.entry(slot).parent.load(Ordering::Relaxed)).filter(|it| *it != NONE).map(Slot)
    }

    /// Sets the caller's note, and gives the one before.
    pub fn set_note(&self, slot: Slot, note: u32) -> u32 {
        self.entry(slot).note.swap(note, Ordering::Relaxed)
    }

    pub fn note(&self, slot: Slot) -> u32 {
        self.entry(slot).note.load(Ordering::Relaxed)
    }

    /// The word of the last touch of an object or of its pool; zero if there was none.
    #[inline(always)]
    pub fn touch_of(&self, slot: Slot) -> u64 {
        self.keeper(slot).touch.load(Ordering::Acquire)
    }

    /// A call had the object as an externally synchronized parameter.
    #[inline(always)]
    pub fn touch(&self, slot: Slot, by: Touch) {
        self.keeper(slot).touch.store(by.to_word(), Ordering::Release);
    }

    /// The place where touches of an object are kept, for callers that remember it.
    ///
    /// It is the object's for as long as that lives, and some object's for as long as `self` does.
    pub fn keeper_of(&self, slot: Slot) -> Keeper<'_> {
        Keeper { touch: &self.keeper(slot).touch }
    }

    /// Objects that are alive.
    pub fn len(&self) -> usize {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        self.count.load(Ordering::Relaxed) * CHUNK_SLOTS - free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    fn keeper(&self, slot: Slot) -> &Entry {
        self.entry(Slot(self.entry(slot).keeper.load(Ordering::Relaxed)))
    }

    #[inline(always)]
    fn entry(&self, slot: Slot) -> &Entry {
        let chunk = self.chunks[slot.0 as usize / CHUNK_SLOTS].load(Ordering::Acquire);
        // SAFETY: `grow` alone stores into `chunks`, and only what `Box::into_raw` gave; nobody frees that before `drop`.
        let Some(chunk) = (unsafe { chunk.as_ref() }) else { no_such_slot(slot) };
        &chunk[slot.0 as usize % CHUNK_SLOTS]
    }

    fn grow(&self, free: &mut Vec<u32>) {
        let count = self.count.load(Ordering::Relaxed);
        let Some(place) = self.chunks.get(count) else { return };
        let chunk: Box<Chunk> = Box::new(std::array::from_fn(|_| Entry::default()));
        place.store(Box::into_raw(chunk), Ordering::Release);
        self.count.store(count + 1, Ordering::Relaxed);
        let first = (count * CHUNK_SLOTS) as u32;
        free.extend((first..first + CHUNK_SLOTS as u32).rev());
    }
}

#[cold]
#[inline(never)]
fn no_such_slot(slot: Slot) -> ! {
    panic!("no object was ever in slot {}", slot.0)
}

/// Where touches of an object are kept.
#[derive(Clone, Copy)]
pub struct Keeper<'a> {
    touch: &'a AtomicU64,
}

impl Keeper<'_> {
    /// As [`Objects::touch_of`].
    #[inline(always)]
    pub fn last(self) -> u64 {
        self.touch.load(Ordering::Acquire)
    }

    /// As [`Objects::touch`].
    #[inline(always)]
    pub fn touch(self, by: Touch) {
        self.touch.store(by.to_word(), Ordering::Release);
    }
}

impl Drop for Objects {
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
        let objects = Objects::new();
        let first = objects.add(id(1), Parent::None, 7).expect("room");
        objects.touch(first, Touch { thread: 3, call: 9 });
        assert_eq!(Touch::from_word(objects.touch_of(first)), Touch { thread: 3, call: 9 });
        assert_eq!((objects.id(first), objects.note(first), objects.len()), (Some(id(1)), 7, 1));
        objects.remove(first);
        let second = objects.add(id(2), Parent::None, 0).expect("room");
        assert_eq!((second, objects.touch_of(second), objects.id(second)), (first, 0, Some(id(2))));
    }

    #[test]
    fn a_pool_and_its_children_share_one_order() {
        let objects = Objects::new();
        let pool = objects.add(id(0), Parent::None, 0).expect("room");
        let child = objects.add(id(1), Parent::Keeper(pool), 0).expect("room");
        let other = objects.add(id(2), Parent::Keeper(pool), 0).expect("room");
        objects.touch(child, Touch { thread: 1, call: 5 });
        assert_eq!(Touch::from_word(objects.touch_of(other)), Touch { thread: 1, call: 5 });
        assert_eq!(objects.touch_of(pool), objects.touch_of(child));
        let set = objects.add(id(3), Parent::Owner(pool), 0).expect("room");
        assert_eq!((objects.touch_of(set), objects.parent(set)), (0, Some(pool)));
    }

    /// The slot of a busy process, a slot that is too large for any, and the slot of nobody.
    #[test]
    fn a_slot_of_others_is_found_out() {
        let (busy, objects) = (Objects::new(), Objects::new());
        let foreign = (0..2000).filter_map(|it| busy.add(id(it), Parent::None, 0)).last().expect("room");
        let unused = objects.add(id(1), Parent::None, 0).expect("room");
        for slot in [foreign, Slot::from_number(Objects::MAX as u32), Slot::from_number(NONE)] {
            let is_caught = |work: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err();
            assert!(is_caught(&|| _ = objects.id(slot)), "{slot:?} is no slot of an empty process");
            assert!(is_caught(&|| objects.touch(slot, Touch { thread: 1, call: 1 })));
            assert!(is_caught(&|| objects.remove(slot)));
        }
        let child = objects.add(id(2), Parent::Keeper(foreign), 0).expect("room");
        let touched = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| objects.touch_of(child)));
        assert!(touched.is_err(), "a keeper of others is found out, too");
        assert_eq!((objects.id(unused), objects.len()), (Some(id(1)), 2));
    }

    #[test]
    fn a_slot_is_free_once() {
        let objects = Objects::new();
        let first = objects.add(id(1), Parent::None, 0).expect("room");
        objects.remove(first);
        objects.remove(first);
        assert_eq!(objects.len(), 0);
        let (second, third) = (objects.add(id(2), Parent::None, 0), objects.add(id(3), Parent::None, 0));
        assert_ne!(second, third, "two objects never share a slot");
        assert_eq!(first, Slot::from_number(first.number()));
    }

    #[test]
    fn many_objects_grow_the_table() {
        let objects = Objects::new();
        let slots: Vec<Slot> = (0..5000).filter_map(|it| objects.add(id(it), Parent::None, 0)).collect();
        assert_eq!((slots.len(), objects.len()), (5000, 5000));
        assert!(slots.iter().zip(0..).all(|(slot, serial)| objects.id(*slot) == Some(id(serial))));
    }
}
