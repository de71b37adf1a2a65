//! Dispatchable handles: words that the loader writes to, at addresses that are the same in every run.

use std::sync::{Mutex, PoisonError};

use lavascope_platform::pages;

/// The value that the loader expects in a new dispatchable object.
const LOADER_MAGIC: u64 = 0x01CD_C0DE;
/// Where slots lie if the address is free, far from where programs and libraries are placed.
const FIRST_ADDRESS: u64 = 0x1000_0000_0000;
/// A multiple of the largest pages that systems have.
const CHUNK_BYTES: usize = 64 << 10;
const SLOTS_PER_CHUNK: usize = CHUNK_BYTES / size_of::<DispatchableSlot>();

#[repr(C)]
struct DispatchableSlot {
    /// The loader's from the moment it has the handle.
    loader: u64,
    data: *mut (),
}

struct DispatchableArena {
    /// Addresses of chunks.
    chunks: Vec<u64>,
    used: usize,
    free: Vec<u64>,
}

static ARENA: Mutex<DispatchableArena> =
    Mutex::new(DispatchableArena { chunks: Vec::new(), used: 0, free: Vec::new() });

/// A new dispatchable object with `data` behind it; none without memory.
pub(crate) fn create<T>(data: T) -> Option<u64> {
    let mut arena = ARENA.lock().unwrap_or_else(PoisonError::into_inner);
    let handle = match arena.free.pop() {
        Some(handle) => handle,
        None => arena.grow()?,
    };
    let slot = std::ptr::with_exposed_provenance_mut::<DispatchableSlot>(handle as usize);
    let data = Box::into_raw(Box::new(data)).cast();
    // SAFETY: a slot that nobody uses, in a chunk that is mapped for as long as it has slots in use.
    unsafe { slot.write(DispatchableSlot { loader: LOADER_MAGIC, data }) };
    Some(handle)
}

/// The object of a handle.
///
/// # Safety
///
/// `handle` must come from [`create`] with this `T` and must outlive `'a`.
pub(crate) unsafe fn data<'a, T>(handle: u64) -> &'a T {
    let slot = std::ptr::with_exposed_provenance::<DispatchableSlot>(handle as usize);
    // SAFETY: by the contract of this function the handle is the address of a slot that `create` filled with a `T`, and that
    // no `destroy` gave away yet.
    unsafe { &*(*slot).data.cast::<T>() }
}

/// Ends an object and gives its slot to the next one.
///
/// # Safety
///
/// As for [`data`], and the handle must not be used any more.
pub(crate) unsafe fn destroy<T>(handle: u64) {
    let slot = std::ptr::with_exposed_provenance_mut::<DispatchableSlot>(handle as usize);
    // SAFETY: the caller says that the slot is alive, has a `T`, and that nobody else uses it.
    drop(unsafe { Box::from_raw((*slot).data.cast::<T>()) });
    let mut arena = ARENA.lock().unwrap_or_else(PoisonError::into_inner);
    arena.free.push(handle);
    if arena.free.len() == arena.used {
        arena.release_chunks();
    }
}

impl DispatchableArena {
    /// Without objects there is no memory either: the loader may unload the driver and load it again.
    fn release_chunks(&mut self) {
        for chunk in self.chunks.drain(..) {
            // SAFETY: our own mapping, and none of its slots is in use.
            unsafe { pages::unmap(chunk, CHUNK_BYTES) };
        }
        *self = DispatchableArena { chunks: Vec::new(), used: 0, free: Vec::new() };
    }

    fn grow(&mut self) -> Option<u64> {
        let chunk = self.used / SLOTS_PER_CHUNK;
        if chunk == self.chunks.len() {
            self.chunks.push(pages::map(FIRST_ADDRESS + (chunk * CHUNK_BYTES) as u64, CHUNK_BYTES)?);
        }
        let at = self.chunks[chunk] + (self.used % SLOTS_PER_CHUNK * size_of::<DispatchableSlot>()) as u64;
        self.used += 1;
        Some(at)
    }
}
