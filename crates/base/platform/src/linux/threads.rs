//! Threads of the C library and of the system.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub(crate) fn id() -> u32 {
    // SAFETY: a system call that reads and writes no memory of this process.
    unsafe { libc::gettid() }.cast_unsigned()
}

pub(crate) fn on_fork(in_child: extern "C" fn()) {
    // SAFETY: a function that may be called at any time. The C library forgets it if the library that it is in is
    // unloaded. The only error is a lack of memory for its list.
    let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// The destructor of a thread-local is not enough: a thread may make its first call, or one more, in a destructor that
/// runs after ours, and a second one is then never run. The C library takes new ones until the last has run.
///
/// # Safety
///
/// As for [`crate::threads::on_thread_exit`].
#[cfg(target_env = "gnu")]
pub(crate) unsafe fn on_thread_exit(call: unsafe extern "C" fn(*mut c_void), with: *mut c_void) {
    unsafe extern "C" {
        /// Calls a function when the calling thread ends, also if it is ending already.
        fn __cxa_thread_atexit_impl(
            call: unsafe extern "C" fn(*mut c_void),
            with: *mut c_void,
            library: *const u8,
        ) -> std::ffi::c_int;
        /// Stands for this library.
        static __dso_handle: u8;
    }
    // SAFETY: the C library keeps this library, which the function is in, until the thread has ended.
    unsafe { __cxa_thread_atexit_impl(call, with, &raw const __dso_handle) };
}

/// Unless the thread is ending already.
///
/// # Safety
///
/// As for [`crate::threads::on_thread_exit`].
#[cfg(not(target_env = "gnu"))]
pub(crate) unsafe fn on_thread_exit(call: unsafe extern "C" fn(*mut c_void), with: *mut c_void) {
    struct AtEnd(std::cell::RefCell<Vec<(unsafe extern "C" fn(*mut c_void), *mut c_void)>>);
    impl Drop for AtEnd {
        fn drop(&mut self) {
            for (call, with) in self.0.take() {
                // SAFETY: whoever gave the function said that it may be called with the value on this thread.
                unsafe { call(with) };
            }
        }
    }
    thread_local! {
        static AT_END: AtEnd = const { AtEnd(std::cell::RefCell::new(Vec::new())) };
    }
    let _ = AT_END.try_with(|it| it.0.borrow_mut().push((call, with)));
}

pub(crate) fn pin_to_processor(number: usize) {
    static PROCESSORS: OnceLock<Vec<usize>> = OnceLock::new();
    let processors = PROCESSORS.get_or_init(|| {
        let all = sched_getaffinity(None).unwrap_or_default();
        (0..CpuSet::MAX_CPU).filter(|it| all.is_set(*it)).collect()
    });
    if processors.len() > 1 {
        let mut own = CpuSet::new();
        own.set(processors[number % processors.len()]);
        let _ = sched_setaffinity(None, &own);
    }
}

pub(crate) fn signal_safe_sleep(time: Duration) {
    let nap = libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: allowed in a handler; the time is ours, and nobody wants to know what is left of it.
    unsafe { libc::nanosleep(&raw const nap, ptr::null_mut()) };
}

/// The stack of the calling thread. The first one's grows down to its limit.
pub(crate) fn stack_bounds() -> Option<Range<usize>> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the thread is this one, and the structure for the answer is ours.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut low, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the call before has written the attributes, and the two places are ours.
    let result = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size) };
    // SAFETY: attributes that were written, and that nobody uses any more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (result == 0 && size > 0).then(|| low.addr()..low.addr().saturating_add(size))
}
