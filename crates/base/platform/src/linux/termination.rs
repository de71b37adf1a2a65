//! Signals that end the process.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::fault_signal::{self, action_of, is_from_instruction, set_handler};

/// Signals of a crash. A handler of the application's own comes after us.
const CRASHES: [c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGSYS];
/// Signals that ask a process to end. If the application handles them, it is not ended.
const REQUESTS: [c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// The function that runs first, and the previous disposition.
static HANDLERS: OnceLock<TerminationHandlers> = OnceLock::new();
/// An application may live on after a signal, and make many of them.
static IS_CALLED: AtomicBool = AtomicBool::new(false);

struct TerminationHandlers {
    before_end: fn(),
    previous_actions: Vec<(c_int, libc::sigaction)>,
}

pub(crate) fn on_termination(hold_up: fn()) {
    let watch = HANDLERS.get_or_init(|| {
        let crashes = CRASHES.into_iter().filter_map(|it| Some((it, action_of(it)?)));
        let requests = REQUESTS.into_iter().filter_map(|it| Some((it, action_of(it)?)));
        let before = crashes.chain(requests.filter(|it| it.1.sa_sigaction == libc::SIG_DFL)).collect();
        TerminationHandlers { before_end: hold_up, previous_actions: before }
    });
    for (signal, _) in &watch.previous_actions {
        set_handler(*signal, handle_signal, libc::SA_SIGINFO);
    }
}

extern "C" fn handle_signal(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the C library's own, of this thread.
    let error = unsafe { *libc::__errno_location() };
    // The last handler gets the signal first, and these faults do not end the process.
    if signal != libc::SIGSEGV || !fault_signal::handle_guard_fault(info) {
        terminate_by(signal, info);
    }
    // SAFETY: the C library's own, of this thread.
    unsafe { *libc::__errno_location() = error };
}

fn terminate_by(signal: c_int, info: *const libc::siginfo_t) {
    let watch = HANDLERS.get();
    if let Some(watch) = watch.filter(|_| !IS_CALLED.swap(true, Ordering::AcqRel)) {
        (watch.before_end)();
    }
    let before = watch.and_then(|it| it.previous_actions.iter().find(|it| it.0 == signal));
    // SAFETY: allowed in a handler; the action is one that was there before.
    unsafe {
        if let Some((_, before)) = before {
            libc::sigaction(signal, before, ptr::null_mut());
        }
        // A failed instruction fails again when we return; a signal that was sent must be sent again.
        if !is_from_instruction(info) {
            libc::raise(signal);
        }
    }
}
