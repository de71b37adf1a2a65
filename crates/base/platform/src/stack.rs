//! The stack of the calling thread: its bounds, and the return addresses on it.
//!
//! Stacks are walked by the tables that every program has for exceptions. A function without tables ends the walk: code
//! that a program generated at run time has none.

use std::ffi::{c_int, c_void};
use std::ops::ControlFlow;

use crate::system;

/// Largest number of frames of a walk.
const FRAMES_MAX: usize = 64;

/// A return address, and its place on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnAddress {
    /// Zero if it need not be on the stack.
    pub at: usize,
    pub address: usize,
}

/// The memory that the system gave a thread for its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStack {
    low: usize,
    /// The first address above.
    high: usize,
}

impl ThreadStack {
    /// The stack of the calling thread, if the system knows it. The thread may run on another one: a fiber has its own.
    pub fn of_this_thread() -> Option<ThreadStack> {
        system::threads::stack_bounds().map(|it| ThreadStack { low: it.start, high: it.end })
    }

    /// Whether a word at this address is on the stack.
    pub fn contains_word(&self, address: usize) -> bool {
        address >= self.low && address <= self.high.saturating_sub(size_of::<usize>())
    }
}

/// Whether return addresses are on the stack, so that a stack can be compared with an earlier one. Elsewhere the
/// innermost ones may be in registers.
pub const HAS_PLACES: bool = cfg!(target_arch = "x86_64");

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
    visit: &'a mut dyn FnMut(ReturnAddress) -> ControlFlow<()>,
    /// The frames of interest are above.
    above: usize,
    bounds: Option<ThreadStack>,
    count: usize,
}

/// Visits the return addresses of the frames above an address of the stack, the innermost first.
///
/// With bounds, a frame outside of them ends the walk.
pub fn walk_stack(above: usize, bounds: Option<ThreadStack>, visit: &mut dyn FnMut(ReturnAddress) -> ControlFlow<()>) {
    let mut state = WalkState { visit, above, bounds, count: 0 };
    // SAFETY: `step` gets this state, and nothing else has it meanwhile.
    unsafe { _Unwind_Backtrace(step, (&raw mut state).cast()) };
}

extern "C" fn step(context: *mut UnwindContext, state: *mut c_void) -> c_int {
    // SAFETY: the state of `walk_stack`, and a context that is valid during this call.
    let (state, address, frame) =
        unsafe { (&mut *state.cast::<WalkState<'_>>(), _Unwind_GetIP(context), _Unwind_GetCFA(context)) };
    // A frame's end is where its caller's return address ends; the context has that of the frame inside of it.
    let at = frame.wrapping_sub(size_of::<usize>());
    // There is nothing after the last frame. A frame outside of the stack is none.
    if address == 0 || state.bounds.is_some_and(|it| !it.contains_word(at)) {
        return URC_END_OF_STACK;
    }
    if at <= state.above {
        return URC_NO_REASON;
    }
    // Frames only go up.
    state.above = at;
    state.count += 1;
    let at = if HAS_PLACES { at } else { 0 };
    match (state.visit)(ReturnAddress { at, address }) {
        ControlFlow::Continue(()) if state.count < FRAMES_MAX => URC_NO_REASON,
        _ => URC_END_OF_STACK,
    }
}

/// A word of the stack.
///
/// # Safety
///
/// The address must be aligned, and in a live frame of the calling thread, or above one in the memory of the same stack.
#[inline(always)]
pub unsafe fn word_at(address: usize) -> usize {
    // SAFETY: the contract of this function: the memory of a stack above a live frame is mapped.
    unsafe { std::ptr::with_exposed_provenance::<usize>(address).read_volatile() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(bounds: Option<ThreadStack>) -> Vec<ReturnAddress> {
        let mark = 0usize;
        let mut all = Vec::new();
        walk_stack((&raw const mark).addr(), bounds, &mut |frame| {
            all.push(frame);
            ControlFlow::Continue(())
        });
        all
    }

    #[test]
    fn return_addresses_are_at_their_places() {
        let bounds = ThreadStack::of_this_thread().expect("the system knows the stack");
        let all = collected(Some(bounds));
        assert!(all.len() > 2, "{all:?}");
        // The first is that of `collected`, which has returned.
        for item in all.iter().skip(1).filter(|_| HAS_PLACES) {
            assert!(bounds.contains_word(item.at));
            // SAFETY: places of frames above this one.
            assert_eq!(unsafe { word_at(item.at) }, item.address);
        }
        assert!(all.is_sorted_by_key(|it| it.at));
    }

    #[test]
    fn a_walk_ends_at_the_bounds_and_where_the_visitor_says() {
        let all = collected(None);
        let high = all[2].at;
        let inside = collected(Some(ThreadStack { low: 0, high }));
        assert!(!HAS_PLACES || inside.len() < all.len(), "{} of {}", inside.len(), all.len());
        let (mark, mut count) = (0usize, 0);
        walk_stack((&raw const mark).addr(), None, &mut |_| {
            count += 1;
            if count == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(count, 2);
    }

    #[test]
    fn the_smallest_stack_has_room_for_a_walk() {
        // What a thread needs to start is added by the standard library.
        let thread = std::thread::Builder::new().stack_size(16 << 10).spawn(|| {
            let mark = 0usize;
            let bounds = ThreadStack::of_this_thread().expect("the system knows the stack");
            assert!(bounds.contains_word((&raw const mark).addr()));
            collected(Some(bounds)).len()
        });
        assert!(thread.expect("a thread").join().expect("it does not crash") > 2);
    }
}
