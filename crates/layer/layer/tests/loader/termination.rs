//! Ends of processes: all findings are in the report, and if the end can be delayed, everything that was recorded is
//! validated.

use crate::child::{ChildOutcome, child, dying_child};
use crate::hazards::{ASYNC, BufferApp, CODE, INLINE};
use crate::world::entry;

use lavascope_test_support::wait_until;

const REPORT: [(&str, &str); 1] = [("LAVASCOPE_REPORT", "{folder}/report")];
const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
const SIGTERM: i32 = 15;

unsafe extern "C" {
    fn raise(signal: i32) -> i32;
    fn _exit(status: i32) -> !;
    fn signal(number: i32, handler: usize) -> usize;
}

fn raise_signal(signal: i32) {
    // SAFETY: `raise` takes any signal; that the process ends of it is tested.
    unsafe { raise(signal) };
}

/// Many commands, and a hazard at their end.
fn record_hazards(settings: &[(&std::ffi::CStr, &std::ffi::CStr)]) {
    let entry = entry();
    let app = BufferApp::silent(&entry, settings);
    app.begin(0);
    for value in 0..2_000 {
        app.fill(0, 0, value);
        app.barrier(0);
    }
    app.fill(0, 128, 1);
    app.fill(0, 128, 2);
    // The loader is not unloaded: nothing is destroyed.
    std::mem::forget((entry, app));
}

fn assert_found(outcome: &ChildOutcome) {
    let findings = outcome.of_kind("finding");
    let [value] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!(value["code"], CODE);
    assert!(value["message"].as_str().is_some_and(|it| it.contains("command 4002 of VkCommandBuffer#0")), "{value:#}");
    assert!(outcome.of_kind("bug").is_empty());
}

#[test]
fn a_crash_waits_for_the_reader() {
    let outcome = dying_child("termination::a_crash_waits_for_the_reader", &REPORT, SIGSEGV, || {
        record_hazards(ASYNC);
        // SAFETY: it is not sound, and that is tested: the volatile write to null makes the system end the process.
        unsafe { std::ptr::null_mut::<u32>().write_volatile(1) };
    });
    outcome.iter().for_each(assert_found);
}

#[test]
fn an_abort_waits_for_the_reader() {
    let outcome = dying_child("termination::an_abort_waits_for_the_reader", &REPORT, SIGABRT, || {
        record_hazards(ASYNC);
        std::process::abort();
    });
    outcome.iter().for_each(assert_found);
}

#[test]
fn whoever_ends_the_process_waits_for_the_reader() {
    let outcome = dying_child("termination::whoever_ends_the_process_waits_for_the_reader", &REPORT, SIGTERM, || {
        record_hazards(ASYNC);
        raise_signal(SIGTERM);
    });
    outcome.iter().for_each(assert_found);
}

#[test]
fn an_exit_waits_for_the_reader() {
    let outcome = child("termination::an_exit_waits_for_the_reader", &REPORT, || {
        record_hazards(ASYNC);
        println!("1 passed");
        std::process::exit(0);
    });
    outcome.iter().for_each(assert_found);
}

/// An application that handles a signal itself is not ended by it, and its handler is called.
#[test]
fn a_handler_of_the_applications_own_is_called() {
    extern "C" fn leave(_: i32) {
        println!("1 passed");
        std::process::exit(0);
    }
    let outcome = child("termination::a_handler_of_the_applications_own_is_called", &REPORT, || {
        for value in [SIGABRT, SIGTERM] {
            // SAFETY: `leave` has the type of a handler and only ends the process, which is async-signal-safe.
            unsafe { signal(value, leave as extern "C" fn(i32) as usize) };
        }
        record_hazards(ASYNC);
        raise_signal(SIGABRT);
        unreachable!("the handler ends the process");
    });
    outcome.iter().for_each(assert_found);
}

/// Whatever the process does next, the findings are in the report: calls that have returned were validated.
#[test]
fn inline_nothing_is_lost_however_the_process_ends() {
    let outcome = dying_child("termination::inline_nothing_is_lost_however_the_process_ends", &REPORT, SIGKILL, || {
        record_hazards(INLINE);
        raise_signal(SIGKILL);
    });
    outcome.iter().for_each(assert_found);
}

/// Waits until the reader has reported the hazard.
fn wait_for_the_report() {
    // The system writes page by page, and a process that ends leaves what it has written: the line must be whole.
    let is_finding = |line: &str| line.contains("\"finding\"") && line.ends_with('\n');
    let has_finding = |text: String| text.split_inclusive('\n').any(is_finding);
    let is_reported = || {
        let files = std::fs::read_dir("report").expect("the folder is ours");
        let mut texts = files.flatten().flat_map(|it| std::fs::read_to_string(it.path()));
        texts.any(has_finding)
    };
    wait_until("the report of the hazard", is_reported);
}

#[test]
fn what_was_found_outlives_a_process_that_is_killed() {
    let outcome =
        dying_child("termination::what_was_found_outlives_a_process_that_is_killed", &REPORT, SIGKILL, || {
            record_hazards(ASYNC);
            wait_for_the_report();
            raise_signal(SIGKILL);
        });
    outcome.iter().for_each(assert_found);
}

#[test]
fn what_was_found_outlives_a_process_that_just_leaves() {
    let outcome = child("termination::what_was_found_outlives_a_process_that_just_leaves", &REPORT, || {
        record_hazards(ASYNC);
        wait_for_the_report();
        println!("1 passed");
        // SAFETY: POSIX lets `_exit` be called at any time; it does not return.
        unsafe { _exit(0) };
    });
    outcome.iter().for_each(assert_found);
}
