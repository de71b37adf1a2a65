//! Pictures of what a program presents: they are what its replay presents, and the program and its trace stay as they
//! are.

use lavascope_picture::{Picture, file_name, read, write};
use serde_json::Value;

use crate::bad_input::compiled;
use crate::common::{output, text};
use crate::displays::XServer;
use crate::test_environment::{TestEnvironment, samples, succeed, unwrapped};

/// The calls of a trace, without times.
fn calls(stage: &TestEnvironment, file: &str) -> Vec<String> {
    let printed = succeed(stage.lavascope().args(["print", file]));
    let is_time = |it: &&str| it.starts_with("// ") && it.ends_with(" s");
    text(&printed.stdout).lines().filter(|it| !is_time(it)).map(str::to_owned).collect()
}

fn compared(stage: &TestEnvironment, file: &str, options: &[&str]) -> (Option<i32>, Value) {
    let result = output(stage.lavascope().args(["replay", "--json", file]).args(options));
    let value = serde_json::from_slice(&result.stdout).unwrap_or_else(|_| panic!("{}", text(&result.stderr)));
    (result.status.code(), value)
}

fn picture(stage: &TestEnvironment, folder: &str, frame: u64) -> Picture {
    read(&stage.folder.join(folder).join(file_name(frame, 0))).expect("a picture")
}

#[test]
fn what_a_program_presents_is_what_its_replay_presents() {
    let (stage, screen) = (TestEnvironment::new("pictures"), XServer::start());
    let mut command = stage.lavascope();
    command.args([
        "capture",
        "--screenshot",
        "0..3",
        "--screenshot",
        "5",
        "--screenshots",
        "shots",
        "-o",
        "trace.lava",
    ]);
    let result = succeed(command.arg("--").arg(samples()).arg("present").env("DISPLAY", &screen.display));
    assert!(text(&result.stderr).contains("lavascope: shots: 4 pictures\n"), "{}", text(&result.stderr));
    for frame in [0, 1, 2, 5] {
        // The colors of the sample.
        let color = [(frame * 40) as u8, 255 - (frame * 20) as u8, 128, 255];
        let shown = picture(&stage, "shots", frame);
        assert!(shown.width > 0 && shown.rgba.chunks_exact(4).all(|it| it == color), "{frame}: {:?}", &shown.rgba[..4]);
    }
    let (code, result) = compared(&stage, "trace.lava", &["--compare", "shots"]);
    let frames: Vec<&Value> = result["pictures"].as_array().expect("a list").iter().map(|it| &it["frame"]).collect();
    assert_eq!((code, frames), (Some(0), vec![&0.into(), &1.into(), &2.into(), &5.into()]), "{result:#}");
    // Nothing was written for that.
    assert!(!stage.folder.join(file_name(0, 0)).exists());
    // One pixel is another one, and one picture is of a frame that the trace has not.
    let mut other = picture(&stage, "shots", 2);
    other.rgba[5] ^= 1;
    write(&stage.folder.join("shots").join(file_name(2, 0)), &other).expect("it can be written");
    write(&stage.folder.join("shots").join(file_name(9, 0)), &other).expect("it can be written");
    let (code, result) = compared(&stage, "trace.lava", &["--compare", "shots"]);
    assert_eq!((code, &result["differences"]), (Some(1), &2.into()), "{result:#}");
    assert_eq!((&result["pictures"][2]["frame"], &result["pictures"][2]["difference"]), (&2.into(), &1.into()));
    assert_eq!(result["pictures"][4]["problem"], "the replay has no such frame", "{result:#}");
}

/// It does not say itself that its images are copied.
#[test]
fn what_vkcube_shows_is_shown_again() {
    let (stage, screen) = (TestEnvironment::new("pictures-vkcube"), XServer::start());
    let mut command = stage.lavascope();
    command.args(["capture", "--screenshot", "0..", "--screenshots", "shots", "-o", "trace.lava"]);
    command.args(["--", "vkcube", "--c", "30", "--suppress_popups"]);
    succeed(command.env("DISPLAY", &screen.display));
    let usage: Vec<String> = calls(&stage, "trace.lava").into_iter().filter(|it| it.contains("imageUsage")).collect();
    assert_eq!(usage, ["    imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT"]);
    // The cube turns.
    assert!((1..30).all(|it| picture(&stage, "shots", it) != picture(&stage, "shots", it - 1)));
    for options in [&[][..], &["--threads", "1"]] {
        let (code, result) = compared(&stage, "trace.lava", &[&["--compare", "shots"], options].concat());
        assert_eq!((code, result["pictures"].as_array().map(Vec::len)), (Some(0), Some(30)), "{result:#}");
    }
}

/// What we add stands between the application and the driver, and nowhere else.
#[test]
fn a_trace_with_pictures_is_the_same_trace() {
    let stage = TestEnvironment::new("pictures-same");
    let capture = |options: &[&str]| {
        let mut command = stage.lavascope();
        command.env("LAVASCOPE_NULL_LOG", stage.folder.join("driver.txt"));
        command.args(["capture", "--null-driver", "-o", "trace.lava"]).args(options).arg("--").arg(samples());
        succeed(command.args(["present", "--no-check"]));
        let driver = std::fs::read_to_string(stage.folder.join("driver.txt")).expect("a log");
        std::fs::remove_file(stage.folder.join("driver.txt")).expect("it is there");
        (calls(&stage, "trace.lava"), driver.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    let (without, bare) = capture(&[]);
    let (with, busy) = capture(&["--screenshot", "0..", "--screenshots", "shots"]);
    assert!(without.len() > 1000 && without == with);
    let count = |log: &[String], command: &str| log.iter().filter(|it| *it == command).count();
    // Each of six frames is submitted once by the application, and once by us.
    assert_eq!((count(&bare, "vkQueueSubmit"), count(&busy, "vkQueueSubmit")), (6, 12));
    assert_eq!((count(&bare, "vkQueuePresentKHR"), count(&busy, "vkQueuePresentKHR")), (6, 6));
    // All that was made is gone.
    for (made, gone) in [
        ("vkCreateBuffer", "vkDestroyBuffer"),
        ("vkAllocateMemory", "vkFreeMemory"),
        ("vkCreateSemaphore", "vkDestroySemaphore"),
        ("vkCreateFence", "vkDestroyFence"),
        ("vkCreateCommandPool", "vkDestroyCommandPool"),
    ] {
        assert_eq!(count(&busy, made), count(&busy, gone), "{made}");
        assert!(count(&busy, made) > count(&bare, made), "{made}");
    }
}

#[test]
fn pictures_are_not_compared_with_themselves() {
    let stage = TestEnvironment::new("pictures-themselves");
    let mut command = stage.lavascope();
    command.args(["capture", "--null-driver", "--screenshot", "1", "-o", "trace.lava", "--"]).arg(samples());
    succeed(command.args(["present", "--no-check"]));
    assert!(stage.folder.join(file_name(1, 0)).exists());
    let refused = |options: &[&str], why: &str| {
        let result = output(stage.lavascope().args(["replay", "--null", "trace.lava"]).args(options));
        assert!(result.status.code() == Some(2) && text(&result.stderr).contains(why), "{}", text(&result.stderr));
    };
    refused(&["--screenshot", "1", "--compare", "."], "--screenshots names another folder");
    refused(&["--frames", "2..4", "--compare", "."], "has no pictures of these frames");
    let (code, result) = compared(&stage, "trace.lava", &["--null", "--compare", "."]);
    assert_eq!((code, &result["pictures"][0]["difference"]), (Some(0), &0.into()), "{result:#}");
}

/// The null driver with these families of queues, and what else a program for less usual ways needs.
const PROFILE: &str = r#"{
  "capabilities": { "queues": {
    "extensions": { "VK_KHR_swapchain": 70, "VK_KHR_surface": 25, "VK_EXT_headless_surface": 1, "VK_KHR_display": 23 },
    "queueFamiliesProperties": [
      { "VkQueueFamilyProperties": { "queueFlags": ["VK_QUEUE_GRAPHICS_BIT", "VK_QUEUE_COMPUTE_BIT"], "queueCount": 1 } },
      { "VkQueueFamilyProperties": { "queueFlags": ["VK_QUEUE_SPARSE_BINDING_BIT"], "queueCount": 1 } }
    ]
  } }
}"#;

/// Captures the program that presents in a way, with pictures of all frames. Says what was told.
fn presented(stage: &TestEnvironment, how: &str) -> String {
    let program = compiled(stage, "presents.c");
    let mut command = stage.lavascope();
    if how == "queue" {
        std::fs::write(stage.folder.join("profile.json"), PROFILE).expect("it can be written");
        command.env("LAVASCOPE_NULL_PROFILE", stage.folder.join("profile.json"));
    }
    command.env("LAVASCOPE_NULL_EXECUTE", "transfer").args(["capture", "--null-driver", "--screenshot", "0.."]);
    command.args(["--screenshots", how, "-o", "trace.lava", "--"]).arg(program).arg(how);
    unwrapped(&text(&succeed(&mut command).stderr))
}

/// Some of the presents wait for a semaphore, and nothing is destroyed at the end.
#[test]
fn windows_that_are_presented_together_have_pictures_of_their_own() {
    let stage = TestEnvironment::new("pictures-windows");
    let result = presented(&stage, "windows");
    assert!(result.contains("lavascope: windows: 6 pictures\n"), "{result}");
    for (frame, window, width) in (0..3).flat_map(|it| [(it, 0, 7), (it, 1, 5)]) {
        let shown = read(&stage.folder.join("windows").join(file_name(frame, window))).expect("a picture");
        let color = [frame as u8, window as u8, 255, 255];
        assert_eq!((shown.width, shown.height), (width, 3));
        assert!(shown.rgba.chunks_exact(4).all(|it| it == color), "{frame}, {window}: {:?}", shown.rgba);
    }
    let mut command = stage.lavascope();
    command.env("LAVASCOPE_NULL_EXECUTE", "transfer").args(["replay", "--null", "--json", "--compare", "windows"]);
    let result: Value = serde_json::from_slice(&succeed(command.arg("trace.lava")).stdout).expect("JSON");
    assert_eq!(
        (result["pictures"].as_array().map(Vec::len), &result["differences"]),
        (Some(6), &0.into()),
        "{result:#}"
    );
}

#[test]
fn what_cannot_be_copied_is_reported_once() {
    let stage = TestEnvironment::new("pictures-none");
    for (how, why) in [
        ("format", "the format of its images cannot be shown"),
        ("shared", "its image is shared with the display"),
        ("together", "swapchains that are not made by vkCreateSwapchainKHR"),
        ("queue", "frames are presented on a queue that cannot copy"),
    ] {
        let result = presented(&stage, how);
        assert_eq!(result.matches(why).count(), 1, "{how}: {result}");
        assert!(result.contains("lavascope: there are no pictures\n"), "{how}: {result}");
        assert!(!stage.folder.join(how).exists(), "{how}");
    }
    let mut command = stage.lavascope();
    command.args(["capture", "--null-driver", "--screenshot", "0..", "-o", "trace.lava", "--"]).arg(samples());
    let result = text(&succeed(command.args(["compute", "--no-check"])).stderr);
    assert!(result.contains("lavascope: there are no pictures: no such frame was presented\n"), "{result}");
}
