//! Host memory for what a driver keeps of recorded commands.
//!
//! A driver that only stores commands until they are executed, as drivers for processors do, allocates memory with each
//! of them. An allocator made for small pieces halves the time of recording in comparison to that of the system. So
//! command pools are created with an allocator of the replay, whatever the program used. The allocator keeps freed
//! pages for some time: returning them to the system at once costs 70 ns for each call.

use std::ffi::c_void;
use std::ptr;
use std::sync::LazyLock;

use lavascope_abi as vk;
use lavascope_abi::{FnPtr, Ptr};
#[cfg(not(lavascope_sanitize))]
use libmimalloc_sys::{mi_free, mi_malloc, mi_malloc_aligned, mi_realloc_aligned};

use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
#[cfg(lavascope_sanitize)]
use watched::{mi_free, mi_malloc, mi_malloc_aligned, mi_realloc_aligned};

/// The smallest alignment of any piece of memory.
const ALIGNED: usize = 8;

static CALLBACKS: LazyLock<vk::AllocationCallbacks> = LazyLock::new(|| vk::AllocationCallbacks {
    p_user_data: Ptr::NULL,
    pfn_allocation: address(allocate as *const ()),
    pfn_reallocation: address(reallocate as *const ()),
    pfn_free: address(free as *const ()),
    pfn_internal_allocation: FnPtr(0),
    pfn_internal_free: FnPtr(0),
});

/// The callbacks with which command pools are created and destroyed.
pub(crate) fn callbacks() -> Ptr<vk::Opaque> {
    Ptr::new(Ptr::to(&*CALLBACKS).0)
}

pub(crate) fn create_pool(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.has_failed() {
        return Ok(());
    }
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    unsafe { (*unpacked.image.cast::<vk::CreateCommandPoolParams>()).p_allocator = callbacks() };
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)
}

pub(crate) fn destroy_pool(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let unpacked = performer.unpack(recorded_call)?;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command, and nobody else refers to them.
    unsafe { (*unpacked.image.cast::<vk::DestroyCommandPoolParams>()).p_allocator = callbacks() };
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)
}

fn address(function: *const ()) -> FnPtr {
    FnPtr(function.expose_provenance() as u64)
}

unsafe extern "system" fn allocate(_: *mut c_void, size: usize, alignment: usize, _scope: u32) -> *mut c_void {
    // SAFETY: `mi_malloc` takes any size. The specification of PFN_vkAllocationFunction says that `alignment` is a
    // power of two, which `mi_malloc_aligned` needs.
    unsafe {
        match alignment <= ALIGNED {
            true => mi_malloc(size),
            false => mi_malloc_aligned(size, alignment),
        }
    }
}

unsafe extern "system" fn reallocate(
    _: *mut c_void,
    original: *mut c_void,
    size: usize,
    alignment: usize,
    _scope: u32,
) -> *mut c_void {
    // SAFETY: by PFN_vkReallocationFunction, `original` is null or memory of these callbacks that the driver has not
    // freed, so it is of mimalloc, and `alignment` is a power of two.
    unsafe {
        if size == 0 {
            mi_free(original);
            return ptr::null_mut();
        }
        mi_realloc_aligned(original, size, alignment)
    }
}

unsafe extern "system" fn free(_: *mut c_void, memory: *mut c_void) {
    // SAFETY: by PFN_vkFreeFunction, `memory` is null or memory of these callbacks that the driver has not freed and
    // uses no more, so it is of mimalloc.
    unsafe { mi_free(memory) };
}

/// The C library's memory under the names above: a sanitizer sees who uses it, and sees nothing of our allocator's.
#[cfg(lavascope_sanitize)]
mod watched {
    use std::ffi::c_void;
    use std::ptr;

    #[link(name = "c")]
    unsafe extern "C" {
        fn malloc(size: usize) -> *mut c_void;
        fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
        fn malloc_usable_size(memory: *mut c_void) -> usize;
        fn free(memory: *mut c_void);
    }

    pub(super) unsafe fn mi_malloc(size: usize) -> *mut c_void {
        // SAFETY: `malloc` takes any size.
        unsafe { malloc(size) }
    }

    pub(super) unsafe fn mi_malloc_aligned(size: usize, alignment: usize) -> *mut c_void {
        // SAFETY: alignments of a driver are powers of two (VkAllocationCallbacks), and the size is a multiple.
        unsafe { aligned_alloc(alignment, size.next_multiple_of(alignment)) }
    }

    pub(super) unsafe fn mi_realloc_aligned(original: *mut c_void, size: usize, alignment: usize) -> *mut c_void {
        // SAFETY: `original` is null or of the functions above, which are those of the C library, so that this has its
        // size; both pieces are at least as large as what is copied, and one is new.
        unsafe {
            let memory = mi_malloc_aligned(size, alignment.max(super::ALIGNED));
            if !memory.is_null() && !original.is_null() {
                let kept = malloc_usable_size(original).min(size);
                ptr::copy_nonoverlapping(original.cast::<u8>(), memory.cast::<u8>(), kept);
                free(original);
            }
            memory
        }
    }

    pub(super) unsafe fn mi_free(memory: *mut c_void) {
        // SAFETY: null or of the functions above, and nobody uses it: the driver frees what it got once.
        unsafe { free(memory) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_keeps_its_bytes_when_it_grows() {
        // SAFETY: alignments are powers of two; what is written, resized and freed was given just before and has that
        // size.
        unsafe {
            for alignment in [1usize, 8, 16, 64, 4096] {
                let memory = allocate(ptr::null_mut(), 24, alignment, 0);
                assert!(is_aligned(memory, alignment));
                memory.cast::<u8>().write_bytes(7, 24);
                let larger = reallocate(ptr::null_mut(), memory, 100_000, alignment, 0);
                assert!(is_aligned(larger, alignment));
                assert_eq!(std::slice::from_raw_parts(larger.cast::<u8>(), 24), [7; 24]);
                assert!(reallocate(ptr::null_mut(), larger, 0, alignment, 0).is_null());
                let fresh = reallocate(ptr::null_mut(), ptr::null_mut(), 8, alignment, 0);
                assert!(is_aligned(fresh, alignment));
                free(ptr::null_mut(), fresh);
            }
            free(ptr::null_mut(), ptr::null_mut());
        }
    }

    fn is_aligned(memory: *mut c_void, alignment: usize) -> bool {
        !memory.is_null() && memory.addr().is_multiple_of(alignment)
    }
}
