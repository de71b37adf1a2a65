//! The handles here of the objects of a trace.
//!
//! Ids are dense numbers by type, so a handle is found by three loads and without a lock.

use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use lavascope_abi::{HandleType, ObjectId};

use crate::replay::lock;

const CHUNK_SLOTS: usize = 4096;
const CHUNKS_MAX: usize = 4096;
const TYPES: usize = 256;

/// An object here: what the driver calls it, and whose functions are called with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplayObject {
    pub(crate) handle: u64,
    pub(crate) owner: u32,
}

struct HandleSlot {
    /// Zero while there is no such object.
    handle: AtomicU64,
    owner: AtomicU32,
}

/// The objects of a type: slots, where there are any. Slots that were never used take no memory.
type Chunks = [AtomicPtr<HandleChunk>; CHUNKS_MAX];
type HandleChunk = [HandleSlot; CHUNK_SLOTS];

/// All objects that are alive.
pub(crate) struct ReplayObjects {
    types: Box<[AtomicPtr<Chunks>]>,
    /// Where there are slots: the type, and which of its chunks.
    used: Mutex<Vec<(usize, usize)>>,
}

/// The existing entry, or else a new one of zeros.
///
/// # Safety
///
/// Zeros must be a value of this type, and the place must hold null or what this function stored there.
unsafe fn get_or_make<T>(place: &AtomicPtr<T>) -> (&T, bool) {
    // SAFETY: by the contract of this function, the place holds null or a box made below, which nobody frees before the
    // place is dropped; the acquiring load sees it initialized.
    let found = unsafe { place.load(Ordering::Acquire).as_ref() };
    if let Some(value) = found {
        return (value, false);
    }
    // SAFETY: zeros are a value of this type, by the contract of this function.
    let made: *mut T = Box::into_raw(unsafe { Box::new_zeroed().assume_init() });
    match place.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: the box made above, which the place owns now.
        Ok(_) => (unsafe { &*made }, true),
        Err(other) => {
            // SAFETY: `made` is the box from above, and nobody else has it. `other` is what another thread stored here
            // meanwhile, by the contract of this function.
            unsafe {
                drop(Box::from_raw(made));
                (&*other, false)
            }
        }
    }
}

impl ReplayObjects {
    pub(crate) fn new() -> ReplayObjects {
        let types = (0..TYPES).map(|_| AtomicPtr::default()).collect();
        ReplayObjects { types, used: Mutex::default() }
    }

    #[inline]
    fn slot(&self, id: ObjectId) -> Option<&HandleSlot> {
        let (ty, chunk, at) = split(id)?;
        // SAFETY: only `insert` stores here, by `get_or_make`, and only `drop` frees it; the loads acquire what was
        // stored.
        unsafe { Some(&self.types[ty].load(Ordering::Acquire).as_ref()?[chunk].load(Ordering::Acquire).as_ref()?[at]) }
    }

    #[inline]
    pub(crate) fn find(&self, id: ObjectId) -> Option<ReplayObject> {
        let slot = self.slot(id)?;
        match slot.handle.load(Ordering::Acquire) {
            0 => None,
            handle => Some(ReplayObject { handle, owner: slot.owner.load(Ordering::Relaxed) }),
        }
    }

    /// An object begins. False if a trace has more objects of a type than anybody could make.
    pub(crate) fn insert(&self, id: ObjectId, object: ReplayObject) -> bool {
        let Some((ty, chunk, at)) = split(id) else { return false };
        // SAFETY: zeros are null pointers, and slots without objects; nothing else stores into these places.
        let (slots, is_new) = unsafe { get_or_make(&get_or_make(&self.types[ty]).0[chunk]) };
        if is_new {
            lock(&self.used).push((ty, chunk));
        }
        slots[at].owner.store(object.owner, Ordering::Relaxed);
        slots[at].handle.store(object.handle, Ordering::Release);
        true
    }

    /// All objects of a type, by their ids.
    pub(crate) fn alive(&self, ty: HandleType) -> Vec<(ObjectId, ReplayObject)> {
        let used = lock(&self.used).clone();
        let mut chunks: Vec<usize> = used.iter().filter(|it| it.0 == ty as usize).map(|it| it.1).collect();
        chunks.sort_unstable();
        let serials = chunks.iter().flat_map(|it| (0..CHUNK_SLOTS).map(move |at| it * CHUNK_SLOTS + at));
        let ids = serials.filter_map(|it| ObjectId::new(ty, it as u64));
        ids.filter_map(|it| Some((it, self.find(it)?))).collect()
    }

    pub(crate) fn remove(&self, id: ObjectId) {
        if let Some(slot) = self.slot(id) {
            slot.handle.store(0, Ordering::Release);
        }
    }
}

impl Drop for ReplayObjects {
    fn drop(&mut self) {
        for ty in self.types.iter_mut().map(AtomicPtr::get_mut).filter(|it| !it.is_null()) {
            // SAFETY: `get_or_make` made the box, and `&mut self` says that nobody has a reference into it.
            let mut chunks = unsafe { Box::from_raw(*ty) };
            for slots in chunks.iter_mut().map(AtomicPtr::get_mut).filter(|it| !it.is_null()) {
                // SAFETY: `get_or_make` made the box, and `&mut self` says that nobody has a reference into it.
                drop(unsafe { Box::from_raw(*slots) });
            }
        }
    }
}

/// The type of an id, which slots it is in, and at which place of them.
#[inline]
fn split(id: ObjectId) -> Option<(usize, usize, usize)> {
    let (ty, serial) = ((id.raw() >> 56) as usize, id.serial() as usize);
    let is_possible = !id.is_null() && serial < CHUNKS_MAX * CHUNK_SLOTS;
    is_possible.then_some((ty, serial / CHUNK_SLOTS, serial % CHUNK_SLOTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_from_its_beginning_to_its_end() {
        let objects = ReplayObjects::new();
        let id = |serial| ObjectId::new(HandleType::Buffer, serial).expect("a small number");
        let object = ReplayObject { handle: 7, owner: 3 };
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
        let objects = ReplayObjects::new();
        let id = ObjectId::new(HandleType::Buffer, ObjectId::SERIAL_MAX).expect("the largest");
        assert!(!objects.insert(id, ReplayObject { handle: 1, owner: 0 }));
        assert!(!objects.insert(ObjectId::NULL, ReplayObject { handle: 1, owner: 0 }));
        assert_eq!(objects.find(id), None);
        objects.remove(id);
    }
}
