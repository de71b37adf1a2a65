//! The report says what was checked, also of a process that crashes; a device that is not created is explained.

use std::ffi::CStr;

use ash::vk;
use serde_json::{Value, json};

use crate::child::{ChildOutcome, child, dying_child};
use crate::hazards::{ASYNC, BufferApp, CODE, INLINE};
use crate::world::{Setup, entry};

const REPORT: (&str, &str) = ("LAVASCOPE_REPORT", "{folder}/report");
const SIGKILL: i32 = 9;

unsafe extern "C" {
    fn raise(signal: i32) -> i32;
}

fn submit_fills(settings: &[(&CStr, &CStr)], submits: u32) -> (ash::Entry, BufferApp) {
    let entry = entry();
    let app = BufferApp::silent(&entry, settings);
    app.begin(0);
    app.fill(0, 0, 1);
    app.barrier(0);
    app.end(0);
    (0..submits).for_each(|_| app.submit(0).expect("the null driver submits"));
    (entry, app)
}

fn last_coverage(outcome: &ChildOutcome) -> Value {
    outcome.of_kind("coverage").pop().expect("a line")
}

fn check_state<'a>(coverage: &'a Value, name: &str) -> &'a Value {
    let checks = coverage["checks"].as_array().expect("a list");
    checks.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("no check {name}: {coverage:#}"))
}

/// Three submissions of the same command buffer.
fn expect_counts(name: &str, settings: &[(&CStr, &CStr)]) {
    let outcome = child(name, &[REPORT], || {
        let (_entry, app) = submit_fills(settings, 3);
        app.wait();
        app.destroy();
    });
    let Some(outcome) = outcome else { return };
    let coverage = last_coverage(&outcome);
    assert_eq!(coverage["submits"], json!({ "seen": 3, "checked": 3, "unchecked": [] }), "{coverage:#}");
    assert_eq!(coverage["accesses"], json!({ "seen": 1, "checked": 1, "unchecked": [] }), "{coverage:#}");
    assert!(coverage["calls"].as_u64() >= Some(10), "{coverage:#}");
    assert_eq!(check_state(&coverage, "sync")["is_armed"], true);
}

#[test]
fn inline_validation_counts_its_work() {
    expect_counts("coverage::inline_validation_counts_its_work", INLINE);
}

#[test]
fn async_validation_counts_its_work() {
    expect_counts("coverage::async_validation_counts_its_work", ASYNC);
}

#[test]
fn submissions_that_are_not_checked_have_a_reason() {
    let name = "coverage::submissions_that_are_not_checked_have_a_reason";
    let outcome = child(name, &[REPORT, ("LAVASCOPE_SYNC_SUBMIT_TIME", "off")], || {
        let (_entry, app) = submit_fills(INLINE, 3);
        app.destroy();
    });
    let Some(outcome) = outcome else { return };
    let coverage = last_coverage(&outcome);
    let unchecked = json!([{ "reason": "sync_submit_time is off", "count": 3 }]);
    assert_eq!(coverage["submits"], json!({ "seen": 3, "checked": 0, "unchecked": unchecked }));
    let check = check_state(&coverage, "sync_submit_time");
    assert_eq!((&check["is_armed"], &check["why"]), (&json!(false), &json!("off by LAVASCOPE_SYNC_SUBMIT_TIME")));
}

#[test]
fn a_submission_that_is_blocked_was_not_checked() {
    let outcome = child("coverage::a_submission_that_is_blocked_was_not_checked", &[REPORT], || {
        let (entry, app) = submit_fills(INLINE, 1);
        app.begin(1);
        app.end(1);
        app.submit_after(1, 5);
        // The loader stays as it is: nothing is destroyed.
        std::mem::forget((entry, app));
    });
    let Some(outcome) = outcome else { return };
    let coverage = last_coverage(&outcome);
    assert_eq!((&coverage["submits"]["seen"], &coverage["submits"]["checked"]), (&json!(2), &json!(1)));
}

/// What was counted when the last submission was made is there.
#[test]
fn a_process_that_is_killed_leaves_its_coverage() {
    let name = "coverage::a_process_that_is_killed_leaves_its_coverage";
    let outcome = dying_child(name, &[REPORT], SIGKILL, || {
        let kept = submit_fills(INLINE, 4);
        // SAFETY: `raise` takes any signal; that the process ends of it is tested.
        unsafe { raise(SIGKILL) };
        drop(kept);
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(last_coverage(&outcome)["submits"]["checked"], 4);
}

/// The default, which the other tests switch off.
#[test]
fn without_settings_the_layer_validates() {
    let outcome = child("coverage::without_settings_the_layer_validates", &[], || {
        std::fs::remove_file("vk_layer_settings.txt").expect("the folder is ours");
        let entry = entry();
        let app = BufferApp::silent(&entry, &[]);
        app.record(0, &[(0, 1), (32, 2)]);
        app.destroy();
    });
    let Some(outcome) = outcome else { return };
    let logged = format!("lavascope: error: [ {CODE} ");
    assert_eq!(outcome.stderr.matches(&logged).count(), 1, "{}", outcome.stderr);
}

/// A program whose every command is wrong writes no endless log.
#[test]
fn a_log_is_not_flooded() {
    let outcome = child("coverage::a_log_is_not_flooded", &[], || {
        let entry = entry();
        let world = Setup { settings: INLINE, ..Setup::OFF }.world(&entry);
        let pool = world.command_pool();
        let commands = world.command_buffers(pool, 1)[0];
        let memory = world.allocate(256 * 130);
        // SAFETY: objects of this world, bound once each to their own part of a memory of that size; the command buffer is
        // recorded here, by this thread (lifetime, owner).
        unsafe {
            let device = &world.device;
            device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).expect("it begins");
            for at in 0..130 {
                let buffer = world.create_buffer();
                device.bind_buffer_memory(buffer, memory, 256 * at).expect("it can be bound");
                device.cmd_fill_buffer(commands, buffer, 0, 64, 1);
                device.cmd_fill_buffer(commands, buffer, 32, 64, 2);
            }
            device.end_command_buffer(commands).expect("it ends");
        }
        world.destroy();
    });
    let Some(outcome) = outcome else { return };
    let logged = outcome.stderr.lines().filter(|it| it.starts_with("lavascope: error: ")).count();
    assert_eq!(logged, 100, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("30 more findings are not shown here"), "{}", outcome.stderr);
}
