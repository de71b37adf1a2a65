//! A forked process that goes on with the Vulkan objects of its parent. It has no reader thread, so its calls are neither
//! captured nor validated there, and the report has to say so.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::process::catch_panic::catch_panic;
use crate::report::coverage;

/// Whether this process is such a fork, and has not said so. Relaxed, because one thread comes out of a fork.
static IS_UNREPORTED: AtomicBool = AtomicBool::new(false);

/// Called by `fork` in the new process. Most of them call `exec` next, and no Vulkan before that.
pub(crate) fn begin() {
    IS_UNREPORTED.store(true, Ordering::Relaxed);
}

/// The process has an instance of its own, whose settings report what is off.
pub(crate) fn has_own_instance() {
    IS_UNREPORTED.store(false, Ordering::Relaxed);
}

/// Called when a thread submits, presents or waits.
#[inline(always)]
pub(crate) fn report_once() {
    if IS_UNREPORTED.load(Ordering::Relaxed) {
        report();
    }
}

#[cold]
fn report() {
    if IS_UNREPORTED.swap(false, Ordering::Relaxed) {
        catch_panic("a forked process", coverage::add_fork, || ());
    }
}
