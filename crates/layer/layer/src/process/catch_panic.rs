//! A panic of ours never crosses into the application. The first one is reported once and disables the layer.
//!
//! A disabled layer instruments, records and reports nothing new. What the application was given before goes on
//! working: shaders with our code get permissive tables, handles of ours are still translated, and our memory is still
//! freed. So there are two ways to run work of ours: [`run_if_enabled`] for what is new, which a disabled layer skips,
//! and [`catch_panic`] for the upkeep of what was given, which goes on. Upkeep relies on single entries of maps alone,
//! which a panic elsewhere does not leave half-changed.
//!
//! In builds with debug assertions `LAVASCOPE_TEST_PANIC` plants a panic in any such work; tests compare the results
//! of the program.

use std::any::Any;
use std::cell::RefCell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use lavascope_abi::Command;

use crate::process::process_state::PROCESS_STATE;
use crate::report::report_file;

/// Runs optional work. Returns `instead` if the layer is disabled, or if the work panics.
#[inline(always)]
pub(crate) fn run_if_enabled<T>(name: impl TaskName, work: impl FnOnce() -> T, instead: impl FnOnce() -> T) -> T {
    if is_disabled() { instead() } else { catch_panic(name, work, instead) }
}

/// Whether a bug of the layer has disabled it.
#[inline(always)]
pub(crate) fn is_disabled() -> bool {
    PROCESS_STATE.is_disabled()
}

/// Runs upkeep. After a panic, reports it once, disables the layer and returns `instead`.
#[inline(always)]
pub(crate) fn catch_panic<T>(name: impl TaskName, work: impl FnOnce() -> T, instead: impl FnOnce() -> T) -> T {
    let name = &name;
    let work = || {
        injected::panic_before(name);
        let value = work();
        injected::panic_after(name);
        value
    };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => value,
        Err(payload) => {
            report_panic(name.name(), &*payload);
            instead()
        }
    }
}

/// Runs upkeep that gives tables to shaders with our code; without tables they could lose the device. After a panic, it
/// runs once more, because the cause may not occur again.
#[inline(always)]
pub(crate) fn catch_panic_and_retry<T>(
    name: impl TaskName + Copy,
    work: impl Fn() -> T,
    instead: impl FnOnce() -> T,
) -> T {
    catch_panic(name, &work, || catch_panic(name, &work, instead))
}

/// The name of the work, for the report.
pub(crate) trait TaskName {
    fn name(&self) -> &str;
}

impl TaskName for &str {
    fn name(&self) -> &str {
        self
    }
}

impl TaskName for Command {
    fn name(&self) -> &str {
        self.desc().name
    }
}

/// Stops panics of the layer from printing anything: `report` prints the message, once. The hook belongs to our own
/// copy of the standard library, so panics of the application are not affected.
pub(crate) fn silence_panics() {
    static IS_SILENT: Once = Once::new();
    IS_SILENT.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(|it| format!("{}:{}", it.file(), it.line()));
            // The thread-local may be gone when a thread ends, and a panic in this hook would abort the process.
            let _ = LAST_PANIC_LOCATION.try_with(|it| it.replace(place.unwrap_or_default()));
        }));
    });
}

thread_local! {
    /// The location of the last panic of this thread.
    static LAST_PANIC_LOCATION: RefCell<String> = const { RefCell::new(String::new()) };
}

#[cold]
fn report_panic(name: &str, payload: &(dyn Any + Send)) {
    /// Relaxed, because it orders nothing; at worst, two panics are reported.
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    PROCESS_STATE.disable_layer();
    if IS_REPORTED.swap(true, Ordering::Relaxed) {
        return;
    }
    let place = LAST_PANIC_LOCATION.try_with(RefCell::take).unwrap_or_default();
    let text = format!("{} ({place})", panic_text(payload));
    if !report_file::bug(name, &text) {
        // `eprintln` would panic if stderr is closed, and nothing catches a panic here.
        let _ = writeln!(
            std::io::stderr(),
            "lavascope: a bug of ours in {name}: {text}; the program goes on without us. Please report it"
        );
    }
}

/// The message of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|it| (*it).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Planted bugs for tests. In builds with debug assertions, `LAVASCOPE_TEST_PANIC` names work that panics once: `NAME`
/// before it begins, `NAME+` after its end, `NAME@7` after its eighth run.
#[cfg(debug_assertions)]
mod injected {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::TaskName;

    struct InjectedPanic {
        name: String,
        is_after: bool,
        /// Number of runs before the panic.
        count: u64,
        /// Number of runs so far. Relaxed, because it orders nothing.
        passed: AtomicU64,
    }

    static INJECTED_PANIC: LazyLock<Option<InjectedPanic>> = LazyLock::new(|| {
        let text = std::env::var("LAVASCOPE_TEST_PANIC").ok()?;
        let (text, count) = text.split_once('@').unwrap_or((&text, "0"));
        let (name, is_after) = text.strip_suffix('+').map_or((text, false), |it| (it, true));
        Some(InjectedPanic { name: name.to_owned(), is_after, count: count.parse().ok()?, passed: AtomicU64::new(0) })
    });

    pub(super) fn panic_before(name: &impl TaskName) {
        panic_at(name, false);
    }

    pub(super) fn panic_after(name: &impl TaskName) {
        panic_at(name, true);
    }

    fn panic_at(name: &impl TaskName, is_after: bool) {
        let Some(planted) = &*INJECTED_PANIC else { return };
        if planted.is_after == is_after
            && planted.name == name.name()
            && planted.passed.fetch_add(1, Ordering::Relaxed) == planted.count
        {
            panic!("planted in {}", planted.name);
        }
    }
}

#[cfg(not(debug_assertions))]
mod injected {
    #[inline(always)]
    pub(super) fn panic_before(_: &impl super::TaskName) {}

    #[inline(always)]
    pub(super) fn panic_after(_: &impl super::TaskName) {}
}
