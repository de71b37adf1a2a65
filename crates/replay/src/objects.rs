//! The handles here of the objects of a trace.
//!
//! Ids are dense numbers by type, so a handle is found by two loads and without a lock.

use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use lavascope_abi::{HandleType, ObjectId};

use crate::replay::lock;

const CHUNK_SLOTS: usize = 512;
const CHUNKS_MAX: usize = 1 << 15;
const TYPES: usize = 256;

/// An object here: what the driver calls it, and whose functions are called with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) handle: u64,
    pub(crate) owner: u32,
}

struct Slot {
    /// Zero while there is no such object.
    handle: AtomicU64,
    owner: AtomicU32,
}

/// All objects that are alive.
pub(crate) struct Objects {
    /// By type and number: slots, where there are any. Most of it is never touched, and takes no memory.
    chunks: Box<[AtomicPtr<Slot>]>,
    /// The chunks that have slots.
    used: Mutex<Vec<usize>>,
}

impl Objects {
    pub(crate) fn new() -> Objects {
        // SAFETY: pointers of zeros are null.
        let chunks = unsafe { Box::new_zeroed_slice(TYPES * CHUNKS_MAX).assume_init() };
        Objects { chunks, used: Mutex::default() }
    }

    #[inline]
    fn slot(&self, id: ObjectId) -> Option<&Slot> {
        let (chunk, at) = split(id)?;
        let slots = self.chunks[chunk].load(Ordering::Acquire);
        // SAFETY: what is not null are slots that live as long as we do, and the place is one of theirs.
        (!slots.is_null()).then(|| unsafe { &*slots.add(at) })
    }

    #[inline]
    pub(crate) fn find(&self, id: ObjectId) -> Option<Object> {
        let slot = self.slot(id)?;
        match slot.handle.load(Ordering::Acquire) {
            0 => None,
            handle => Some(Object { handle, owner: slot.owner.load(Ordering::Relaxed) }),
        }
    }

    /// An object begins. False where a trace has more objects of a type than anybody could make.
    pub(crate) fn insert(&self, id: ObjectId, object: Object) -> bool {
        let Some((chunk, _)) = split(id) else { return false };
        if self.slot(id).is_none() {
            self.add_slots(chunk);
        }
        let Some(slot) = self.slot(id) else { return false };
        slot.owner.store(object.owner, Ordering::Relaxed);
        slot.handle.store(object.handle, Ordering::Release);
        true
    }

    /// Slots where there are none.
    fn add_slots(&self, chunk: usize) {
        // SAFETY: slots of zeros are slots without objects.
        let slots: Box<[Slot; CHUNK_SLOTS]> = unsafe { Box::new_zeroed().assume_init() };
        let slots = Box::into_raw(slots);
        let stored =
            self.chunks[chunk].compare_exchange(ptr::null_mut(), slots.cast(), Ordering::AcqRel, Ordering::Acquire);
        match stored {
            Ok(_) => lock(&self.used).push(chunk),
            // SAFETY: made above, and another thread was faster, so nobody else has them.
            Err(_) => drop(unsafe { Box::from_raw(slots) }),
        }
    }

    /// All objects of a type, by their ids.
    pub(crate) fn alive(&self, ty: HandleType) -> Vec<(ObjectId, Object)> {
        let mut chunks: Vec<usize> =
            lock(&self.used).iter().copied().filter(|it| it / CHUNKS_MAX == ty as usize).collect();
        chunks.sort_unstable();
        let serials = chunks.iter().flat_map(|it| (0..CHUNK_SLOTS).map(move |at| it % CHUNKS_MAX * CHUNK_SLOTS + at));
        let ids = serials.filter_map(|it| ObjectId::new(ty, it as u64));
        ids.filter_map(|it| Some((it, self.find(it)?))).collect()
    }

    pub(crate) fn remove(&self, id: ObjectId) {
        if let Some(slot) = self.slot(id) {
            slot.handle.store(0, Ordering::Release);
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        for chunk in lock(&self.used).drain(..) {
            let slots = self.chunks[chunk].get_mut().cast::<[Slot; CHUNK_SLOTS]>();
            // SAFETY: made by `add_slots`, named once, and nobody has a reference any more.
            drop(unsafe { Box::from_raw(slots) });
        }
    }
}

/// Which slots an id is in, and at which place of them.
#[inline]
fn split(id: ObjectId) -> Option<(usize, usize)> {
    let (ty, serial) = ((id.raw() >> 56) as usize, id.serial() as usize);
    let is_possible = !id.is_null() && serial < CHUNKS_MAX * CHUNK_SLOTS;
    is_possible.then_some((ty * CHUNKS_MAX + serial / CHUNK_SLOTS, serial % CHUNK_SLOTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_from_its_beginning_to_its_end() {
        let objects = Objects::new();
        let id = |serial| ObjectId::new(HandleType::Buffer, serial).expect("a small number");
        let object = Object { handle: 7, owner: 3 };
        for serial in [0, 1, CHUNK_SLOTS as u64, (CHUNK_SLOTS * CHUNKS_MAX) as u64 - 1] {
            assert_eq!(objects.find(id(serial)), None);
            assert!(objects.insert(id(serial), object));
            assert_eq!(objects.find(id(serial)), Some(object));
            assert_eq!(objects.alive(HandleType::Buffer), [(id(serial), object)]);
            objects.remove(id(serial));
            assert_eq!(objects.find(id(serial)), None);
            assert_eq!(objects.alive(HandleType::Buffer), []);
        }
    }

    #[test]
    fn there_is_no_room_for_impossible_numbers() {
        let objects = Objects::new();
        let id = ObjectId::new(HandleType::Buffer, ObjectId::SERIAL_MAX).expect("the largest");
        assert!(!objects.insert(id, Object { handle: 1, owner: 0 }));
        assert!(!objects.insert(ObjectId::NULL, Object { handle: 1, owner: 0 }));
        assert_eq!(objects.find(id), None);
        objects.remove(id);
    }
}
