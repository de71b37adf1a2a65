//! The handles here of the objects of a trace.
//!
//! Ids are dense numbers by type, so a handle is found by two loads and without a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use lavascope_abi::{HandleType, ObjectId};

const CHUNK_SLOTS: usize = 4096;
const CHUNKS_MAX: usize = 4096;
const TYPES: usize = 256;

/// An object here: what the driver calls it, and whose functions are called with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) handle: u64,
    pub(crate) owner: u32,
}

#[derive(Default)]
struct Slot {
    /// Zero while there is no such object.
    handle: AtomicU64,
    owner: AtomicU32,
}

type Chunk = OnceLock<Box<[Slot]>>;

/// All objects that are alive.
pub(crate) struct Objects {
    types: Box<[OnceLock<Box<[Chunk]>>]>,
}

impl Objects {
    pub(crate) fn new() -> Objects {
        Objects { types: (0..TYPES).map(|_| OnceLock::new()).collect() }
    }

    pub(crate) fn find(&self, id: ObjectId) -> Option<Object> {
        let (chunk, at) = split(id)?;
        let slot = &self.types[number(id)].get()?[chunk].get()?[at];
        match slot.handle.load(Ordering::Acquire) {
            0 => None,
            handle => Some(Object { handle, owner: slot.owner.load(Ordering::Relaxed) }),
        }
    }

    /// An object begins. False where a trace has more objects of a type than anybody could make.
    pub(crate) fn insert(&self, id: ObjectId, object: Object) -> bool {
        let Some((chunk, at)) = split(id) else { return false };
        let chunks = self.types[number(id)].get_or_init(|| (0..CHUNKS_MAX).map(|_| Chunk::new()).collect());
        let slot = &chunks[chunk].get_or_init(|| (0..CHUNK_SLOTS).map(|_| Slot::default()).collect())[at];
        slot.owner.store(object.owner, Ordering::Relaxed);
        slot.handle.store(object.handle, Ordering::Release);
        true
    }

    /// All objects of a type, by their ids.
    pub(crate) fn alive(&self, ty: HandleType) -> Vec<(ObjectId, Object)> {
        let id = |serial: usize| ObjectId::new(ty, serial as u64);
        let first = id(0).map_or(0, number);
        let chunks = self.types[first].get().into_iter().flat_map(|it| it.iter().enumerate());
        let chunks = chunks.filter_map(|it| Some((it.0, it.1.get()?)));
        let slots =
            chunks.flat_map(|(chunk, slots)| (0..slots.len()).filter_map(move |at| id(chunk * CHUNK_SLOTS + at)));
        slots.filter_map(|it| Some((it, self.find(it)?))).collect()
    }

    pub(crate) fn remove(&self, id: ObjectId) {
        let Some((chunk, at)) = split(id) else { return };
        if let Some(chunk) = self.types[number(id)].get().and_then(|it| it[chunk].get()) {
            chunk[at].handle.store(0, Ordering::Release);
        }
    }
}

fn number(id: ObjectId) -> usize {
    (id.raw() >> 56) as usize
}

fn split(id: ObjectId) -> Option<(usize, usize)> {
    let serial = usize::try_from(id.serial()).ok()?;
    let chunk = serial / CHUNK_SLOTS;
    (!id.is_null() && chunk < CHUNKS_MAX).then_some((chunk, serial % CHUNK_SLOTS))
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
