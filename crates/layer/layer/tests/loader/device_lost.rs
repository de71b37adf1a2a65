//! A lost device: which submissions were complete, which were not, and the driver's fault information.

use ash::vk;

use crate::child::child;
use crate::hazards::{ASYNC, BufferApp, DEBUG_UTILS, INLINE, take_received};
use crate::world::{Setup, entry};

const REPORT: (&str, &str) = ("LAVASCOPE_REPORT", "{folder}/report");
/// The third submission never ends.
const LOSE: (&str, &str) = ("LAVASCOPE_NULL_LOSE", "3");

/// The first submission is waited for, the third never ends, and the wait for it finds out.
fn lose_device(app: &BufferApp) {
    app.name(app.commands[0], c"early");
    app.name(app.commands[1], c"late");
    app.record(0, &[(0, 1)]);
    app.record(1, &[(64, 2)]);
    let device = &app.world.device;
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let fence = device.create_fence(&vk::FenceCreateInfo::default(), None).expect("the null driver makes fences");
        app.submit_with(0, fence).expect("the null driver submits");
        device.wait_for_fences(&[fence], true, u64::MAX).expect("it is signaled");
        app.submit(1).expect("the null driver submits");
        app.record(0, &[(128, 3)]);
        app.submit(0).expect("nobody knows yet");
        assert_eq!(device.queue_wait_idle(app.world.queue), Err(vk::Result::ERROR_DEVICE_LOST));
        app.record(0, &[(192, 4)]);
        assert_eq!(app.submit(0), Err(vk::Result::ERROR_DEVICE_LOST));
        device.destroy_fence(fence, None);
    }
}

const OVER: &str = "the last work of VkQueue#0 that is known to be over: submit 1 with VkCommandBuffer#0 \"early\"";
const NOT_OVER: &str = "the first work of VkQueue#0 that may not be over: submit 2 with VkCommandBuffer#1 \"late\"";

fn expect_device_lost(settings: &[(&std::ffi::CStr, &std::ffi::CStr)]) {
    let entry = entry();
    let extensions = &[c"VK_EXT_device_fault"];
    let setup = Setup { extensions: &[DEBUG_UTILS], settings, ..Setup::OFF };
    let app = BufferApp::of(&entry, Setup { device_extensions: extensions, wants_faults: true, ..setup });
    lose_device(&app);
    let heard = take_received();
    let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
    assert_eq!(received_message.name, "LAVASCOPE-DeviceLost");
    assert!(
        received_message.text.starts_with("vkQueueWaitIdle() returned VK_ERROR_DEVICE_LOST"),
        "{}",
        received_message.text
    );
    for part in [OVER, NOT_OVER, "the driver says: a submission never ended", "an invalid read at 0xdeadb000"] {
        assert!(received_message.text.contains(part), "no `{part}` in\n{}", received_message.text);
    }
    app.destroy();
    assert_eq!(take_received(), [], "it is reported once");
}

#[test]
fn how_far_a_lost_device_came_is_reported_inline() {
    child("device_lost::how_far_a_lost_device_came_is_reported_inline", &[LOSE], || expect_device_lost(INLINE));
}

#[test]
fn how_far_a_lost_device_came_is_reported_off_thread() {
    child("device_lost::how_far_a_lost_device_came_is_reported_off_thread", &[LOSE], || expect_device_lost(ASYNC));
}

/// Nothing is asked of a driver that the application did not switch on.
#[test]
fn the_report_has_a_lost_device_without_the_extension() {
    let name = "device_lost::the_report_has_a_lost_device_without_the_extension";
    let Some(outcome) = child(name, &[LOSE, REPORT], || {
        let entry = entry();
        let app = BufferApp::silent(&entry, ASYNC);
        lose_device(&app);
        println!("1 passed");
        std::process::exit(0);
    }) else {
        return;
    };
    let lost = outcome.of_kind("device-lost");
    let [value] = &lost[..] else { panic!("{lost:#?}") };
    assert_eq!(value["text"], "vkQueueWaitIdle() returned VK_ERROR_DEVICE_LOST");
    let lines: Vec<&str> = value["lines"].as_array().expect("a list").iter().filter_map(|it| it.as_str()).collect();
    assert_eq!(lines[..2], [OVER, NOT_OVER]);
    assert!(!lines.iter().any(|it| it.contains("driver")), "{lines:#?}");
}
