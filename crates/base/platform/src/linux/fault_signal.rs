//! The signal of a fault: first for the guards of pages, and then for the previous handler.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::write_guard;

/// How often others may take the signal from us while guards are there.
const HANDLERS_MAX: usize = 16;
/// A fault on a page that exists and does not allow it: the only kind that a guard makes.
const SEGV_ACCERR: c_int = 2;

pub(super) type SignalHandler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// A handler for each time that we installed ours. A later handler of others may pass the signal on to the handler that
/// it replaced. Each handler of ours passes it on to the one that it replaced itself, so this ends.
static HANDLERS: [SignalHandler; HANDLERS_MAX] = [
    fault::<0>,
    fault::<1>,
    fault::<2>,
    fault::<3>,
    fault::<4>,
    fault::<5>,
    fault::<6>,
    fault::<7>,
    fault::<8>,
    fault::<9>,
    fault::<10>,
    fault::<11>,
    fault::<12>,
    fault::<13>,
    fault::<14>,
    fault::<15>,
];

/// The handler that each of ours replaced. Written under the lock, before our handler gets the signal.
static PREVIOUS_ACTIONS: [OnceLock<libc::sigaction>; HANDLERS_MAX] = [const { OnceLock::new() }; HANDLERS_MAX];
static LOCK: Mutex<()> = Mutex::new(());

/// Makes sure that faults come to us. False if others want them too often.
pub(super) fn install() -> bool {
    install_under(&LOCK.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The same, in the handler: the holder of the lock is about to write it.
fn install_again() {
    if let Ok(guard) = LOCK.try_lock() {
        install_under(&guard);
    }
}

fn install_under(_: &MutexGuard<'_, ()>) -> bool {
    let Some(mut now) = action_of(libc::SIGSEGV) else { return false };
    loop {
        if HANDLERS.iter().any(|it| *it as usize == now.sa_sigaction) {
            return true;
        }
        // The lock is ours, so no other thread writes it.
        let Some(level) = PREVIOUS_ACTIONS.iter().position(|it| it.get().is_none()) else { return false };
        let found = *PREVIOUS_ACTIONS[level].get_or_init(|| now);
        let Some(before) = set_handler(libc::SIGSEGV, HANDLERS[level], libc::SA_SIGINFO) else { return false };
        if before.sa_sigaction == found.sa_sigaction {
            return true;
        }
        // Other code installed a handler in between, and we replaced that one: it comes before those that we know.
        now = before;
    }
}

/// The current disposition of a signal.
pub(super) fn action_of(signal: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: no new action, and the place for the answer is ours.
    let result = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: a call that succeeded has written it.
    (result == 0).then(|| unsafe { action.assume_init() })
}

/// Passes a signal to a handler of this crate, on the stack for signals where there is one: a stack that overflowed is
/// no place for it. Returns what the signal did before.
pub(super) fn set_handler(signal: c_int, handler: SignalHandler, flags: c_int) -> Option<libc::sigaction> {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = flags | libc::SA_ONSTACK;
    let mut before = MaybeUninit::uninit();
    // SAFETY: the handlers of this crate do only what handlers may do, and whoever installs one keeps the library.
    let result = unsafe { libc::sigaction(signal, &raw const action, before.as_mut_ptr()) };
    // SAFETY: a call that succeeded has written it.
    (result == 0).then(|| unsafe { before.assume_init() })
}

/// Whether a failed instruction caused the signal, and not another process.
pub(super) fn is_from_instruction(info: *const libc::siginfo_t) -> bool {
    // SAFETY: what the system gives to a handler, or null.
    unsafe { info.as_ref() }.is_some_and(|it| it.si_code > 0)
}

/// Whether a fault was one of a guarded page, and its instruction can continue. For handlers of `SIGSEGV`.
pub(super) fn handle_guard_fault(info: *const libc::siginfo_t) -> bool {
    // SAFETY: what the system gives to a handler, or null.
    let Some(info) = (unsafe { info.as_ref() }).filter(|it| it.si_code == SEGV_ACCERR) else { return false };
    // SAFETY: a fault has an address.
    write_guard::handle_fault(unsafe { info.si_addr() }.addr() as u64)
}

extern "C" fn fault<const LEVEL: usize>(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the C library's own, of this thread.
    let error = unsafe { *libc::__errno_location() };
    if !handle_guard_fault(info) {
        pass_on(PREVIOUS_ACTIONS[LEVEL].get(), signal, info, context);
    }
    // SAFETY: the C library's own, of this thread.
    unsafe { *libc::__errno_location() = error };
}

/// A fault that is not ours.
fn pass_on(before: Option<&libc::sigaction>, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(before) = before else { return };
    match before.sa_sigaction {
        // It was sent by a process, and there is no other handler.
        libc::SIG_IGN if !is_from_instruction(info) => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // The instruction fails again when we return; a signal that was sent must be sent again.
            // SAFETY: allowed in a handler; the action was there before.
            unsafe {
                libc::sigaction(signal, before, ptr::null_mut());
                if !is_from_instruction(info) {
                    libc::raise(signal);
                }
            }
        }
        // One of the two forms; the first takes fewer parameters and ignores the others.
        function => {
            // SAFETY: the address of a handler, which somebody gave to the system to be called like this.
            let function = unsafe { std::mem::transmute::<usize, SignalHandler>(function) };
            function(signal, info, context);
            // The handler may have restored the next one, which then gets the signal when the instruction fails again.
            install_again();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

    use rustix::mm::{MprotectFlags, mprotect};

    use super::*;
    use crate::pages::{AlignedMapping, WriteGuard, page_size};

    /// The page that faults, how often each of the two handlers was called, and whom the second found.
    static PAGE: AtomicU64 = AtomicU64::new(0);
    static CALLS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
    static FOUND: AtomicUsize = AtomicUsize::new(0);

    fn protect(flags: MprotectFlags) {
        let place = ptr::with_exposed_provenance_mut(PAGE.load(Ordering::SeqCst) as usize);
        // SAFETY: a page of the test's own.
        unsafe { mprotect(place, page_size() as usize, flags) }.expect("a page of ours");
    }

    /// Repairs the cause of the fault.
    extern "C" fn first(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        CALLS[0].fetch_add(1, Ordering::SeqCst);
        protect(MprotectFlags::READ | MprotectFlags::WRITE);
    }

    /// Passes the fault on to whom it found.
    extern "C" fn second(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        CALLS[1].fetch_add(1, Ordering::SeqCst);
        // SAFETY: the address of a handler of this file, below.
        let before = unsafe { std::mem::transmute::<usize, SignalHandler>(FOUND.load(Ordering::SeqCst)) };
        before(signal, info, context);
    }

    fn fault_once() -> [u32; 2] {
        protect(MprotectFlags::READ);
        let place = ptr::with_exposed_provenance_mut::<u8>(PAGE.load(Ordering::SeqCst) as usize);
        // SAFETY: a page of the test's own; the fault is fixed.
        unsafe { place.write_volatile(1) };
        [0, 1].map(|it| CALLS[it].load(Ordering::SeqCst))
    }

    #[test]
    fn faults_of_others_go_to_each_of_them_once() {
        let own = AlignedMapping::new(2 * page_size(), page_size()).expect("there is room");
        PAGE.store(own.start + page_size(), Ordering::SeqCst);
        set_handler(libc::SIGSEGV, first, libc::SA_SIGINFO).expect("it can be set");
        // From here on a fault is tried once more, since a guard was dropped.
        drop(WriteGuard::new(own.start..own.start + page_size()).expect("there are entries"));
        assert_eq!(fault_once(), [1, 0]);
        // The application takes the signal from us, and we take it again.
        let found = set_handler(libc::SIGSEGV, second, libc::SA_SIGINFO).expect("it can be set");
        FOUND.store(found.sa_sigaction, Ordering::SeqCst);
        drop(WriteGuard::new(own.start..own.start + page_size()).expect("there are entries"));
        assert_eq!(fault_once(), [2, 1]);
    }
}
