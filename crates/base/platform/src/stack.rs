//! Walks the stack of the calling thread by the tables that every program has for exceptions.

use std::ffi::{c_int, c_void};

/// The number of frames that are read; outer frames are the same for most calls.
const FRAMES_MAX: usize = 64;

/// A return address, and where on the stack it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnAddress {
    at: usize,
    pub address: usize,
}

#[repr(C)]
struct UnwindContext {
    _opaque: [u8; 0],
}

const URC_NO_REASON: c_int = 0;
const URC_END_OF_STACK: c_int = 5;

// Functions of the library that the standard library unwinds with.
unsafe extern "C" {
    fn _Unwind_Backtrace(step: extern "C" fn(*mut UnwindContext, *mut c_void) -> c_int, state: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut UnwindContext) -> usize;
    fn _Unwind_GetCFA(context: *mut UnwindContext) -> usize;
}

struct WalkState<'a> {
    slots: &'a mut Vec<ReturnAddress>,
    depth: usize,
}

/// The return addresses of the frames above a depth, the innermost first; an address on the stack defines the depth.
pub fn walk_stack(slots: &mut Vec<ReturnAddress>, depth: usize) {
    slots.clear();
    let mut state = WalkState { slots, depth };
    // SAFETY: `step` gets this state, and nothing else has it meanwhile.
    unsafe { _Unwind_Backtrace(step, (&raw mut state).cast()) };
}

extern "C" fn step(context: *mut UnwindContext, state: *mut c_void) -> c_int {
    // SAFETY: the state of `walk_stack`, and a context that is valid during this call.
    let (state, address, frame) =
        unsafe { (&mut *state.cast::<WalkState<'_>>(), _Unwind_GetIP(context), _Unwind_GetCFA(context)) };
    // Behind the last frame there is nothing.
    if address == 0 {
        return URC_END_OF_STACK;
    }
    // A frame's end is where its caller's return address ends; the context has that of the frame inside of it.
    let at = frame.wrapping_sub(size_of::<usize>());
    if at > state.depth {
        state.slots.push(ReturnAddress { at, address });
    }
    if state.slots.len() == FRAMES_MAX { URC_END_OF_STACK } else { URC_NO_REASON }
}

/// Whether every return address is unchanged on the stack. From the innermost on: as long as they are equal, the frames
/// are equal, and the next place is on the stack as well.
///
/// # Safety
///
/// The places must be of frames of this thread, above the frame that asks.
#[cfg(target_arch = "x86_64")]
pub unsafe fn is_unchanged(slots: &[ReturnAddress]) -> bool {
    slots.iter().all(|slot| {
        let place = std::ptr::with_exposed_provenance::<usize>(slot.at);
        // SAFETY: a place of a frame above the one that asks, by this function's contract: the stack above a live frame is
        // mapped, and return addresses are aligned words.
        let found = unsafe { place.read_volatile() };
        found == slot.address
    })
}

/// Elsewhere return addresses need not be on the stack.
///
/// # Safety
///
/// None.
#[cfg(not(target_arch = "x86_64"))]
pub unsafe fn is_unchanged(_: &[ReturnAddress]) -> bool {
    false
}
