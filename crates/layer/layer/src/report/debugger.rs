//! Stops in a debugger, inside of the call of the application that a finding is about.
//!
//! The message is printed before the stop, since a report comes too late for somebody who looks at a stopped program.
//! [`lavascope_break_here`] is called by the very function that the application has called, so the application is two
//! frames further out.

use std::io::Write;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use lavascope_diag::FirstAccessKey;
use lavascope_platform::process;
use lavascope_settings::Settings;

use crate::report::report_file;

/// Whether the program is to stop at a first access, and has not done so. Relaxed: only the report at the end reads it.
static IS_FIRST_ACCESS_AWAITED: AtomicBool = AtomicBool::new(false);

/// What is printed once if no debugger is attached.
const NO_DEBUGGER: &str = "\
lavascope: not stopped, because no debugger is attached: start the program with `gdb --args PROGRAM`, `lldb -- PROGRAM`, \
or by a launch.json of VS Code, as docs/guide/debugger.md shows";

/// Stops a debugger here. The caller is the function that the application has called.
///
/// It has a name of its own, so that a debugger can also have a breakpoint here.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn lavascope_break_here() {
    if process::has_debugger() {
        lavascope_platform::break_into_debugger!();
    } else {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| print(NO_DEBUGGER));
    }
    // Something after the stop, so that the debugger is still in this function.
    std::hint::black_box(());
}

/// Prints why the program stops. Standard error is where a debugger's user looks.
pub(crate) fn print_reason(reason: &str) {
    print(&format!("lavascope: stop: {reason}"));
}

fn print(text: &str) {
    // Nobody is left to be told if that fails.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The first accesses that the settings name. The text that is none is reported by `complain`.
pub(crate) fn first_access_keys(settings: &Settings, mut complain: impl FnMut(&str)) -> Vec<FirstAccessKey> {
    let mut keys = Vec::new();
    for text in &settings.break_first {
        match FirstAccessKey::of_fingerprint(text) {
            Some(key) => keys.push(key),
            None => complain(&format!(
                "`{text}` is not a fingerprint with a first access: copy all of it from `--verbose` text, such as \
                 0123456789abcdef-0123456789ab"
            )),
        }
    }
    keys
}

/// The program is to stop at a first access.
pub(crate) fn await_first_access() {
    IS_FIRST_ACCESS_AWAITED.store(true, Ordering::Relaxed);
}

/// The program stops at a first access.
pub(crate) fn stopped_at_first_access() {
    IS_FIRST_ACCESS_AWAITED.store(false, Ordering::Relaxed);
}

/// Reports at the end of the process that it made none of the first accesses.
pub(crate) fn report_unmet_first_access() {
    const TEXT: &str = "the program made no access like the first one of that finding, so it was never stopped";
    if IS_FIRST_ACCESS_AWAITED.swap(false, Ordering::Relaxed) && !report_file::problem("warning", "break_first", TEXT) {
        print(&format!("lavascope: break_first: {TEXT}"));
    }
}
