//! The process is about to end by a signal: the reader gets the time to look at what was recorded until then.
//!
//! Only where a thread of ours reads calls: inline validation has told everything already. The signal is held up until
//! the reader is done, or does not get on for ten seconds, and then does what it would have done without us. What a handler may
//! do is little: it sets one flag and waits for another. `_exit` and `SIGKILL` cannot be held up; what was found by
//! then is in the report.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::hub::HUB;

/// Signals of a crash. A handler of the application's own comes after us.
const CRASHES: [c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGSYS];
/// Signals that ask a process to end. Where the application has something to say about them, it is not ended.
const REQUESTS: [c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// What would have happened without us.
static BEFORE: OnceLock<Vec<(c_int, libc::sigaction)>> = OnceLock::new();
/// Whether the reader was waited for. An application may live on after a signal, and make many of them.
static IS_HELD_UP: AtomicBool = AtomicBool::new(false);

const NAP_NANOSECONDS: i64 = 1_000_000;
/// In which the reader does not get on, and all together.
const NAPS_MAX: u32 = 10_000;
const NAPS_MAX_IN_ALL: u32 = 60_000;

/// From now on a signal that ends the process waits for the reader.
pub(crate) fn watch() {
    BEFORE.get_or_init(|| {
        let crashes = CRASHES.into_iter().filter_map(|it| Some((it, action(it)?)));
        let requests = REQUESTS.into_iter().filter_map(|it| Some((it, action(it)?)));
        crashes.chain(requests.filter(|it| it.1.sa_sigaction == libc::SIG_DFL)).collect()
    });
    for (signal, _) in BEFORE.get().into_iter().flatten() {
        install(*signal);
    }
}

/// What a signal does now.
fn action(signal: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: the place for the answer is ours.
    let result = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: a call that succeeded has written it.
    (result == 0).then(|| unsafe { action.assume_init() })
}

fn install(signal: c_int) {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = hold_up as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
    // A stack that overflowed is no place for a handler.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: a handler that does what handlers may do, and stays loaded: who reads keeps the library.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}

fn wait_for_the_reader() {
    let nap = libc::timespec { tv_sec: 0, tv_nsec: NAP_NANOSECONDS };
    let (mut naps, mut seen) = (0, HUB.looked_at());
    for _ in 0..NAPS_MAX_IN_ALL {
        if seen != HUB.looked_at() {
            (naps, seen) = (0, HUB.looked_at());
        }
        naps += 1;
        if HUB.has_died() || naps > NAPS_MAX {
            break;
        }
        // SAFETY: allowed in a handler.
        unsafe { libc::nanosleep(&raw const nap, ptr::null_mut()) };
    }
}

extern "C" fn hold_up(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the C library's own, of this thread.
    let error = unsafe { *libc::__errno_location() };
    if !IS_HELD_UP.swap(true, Ordering::AcqRel) && HUB.begin_dying() {
        wait_for_the_reader();
    }
    let before = BEFORE.get().and_then(|all| all.iter().find(|it| it.0 == signal));
    // SAFETY: allowed in a handler; the system gives valid information, and the action is one that was there before.
    unsafe {
        if let Some((_, before)) = before {
            libc::sigaction(signal, before, ptr::null_mut());
        }
        // An instruction that failed fails again when we return; what somebody sent must be sent again.
        if info.as_ref().is_none_or(|it| it.si_code <= 0) {
            libc::raise(signal);
        }
        *libc::__errno_location() = error;
    }
}
