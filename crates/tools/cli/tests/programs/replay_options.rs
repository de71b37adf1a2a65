//! `replay`: its plan, parts of a trace, speeds, windows, and devices with less than the trace needs.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lavascope_test_support::{set_driver, wait_until};
use serde_json::Value;

use crate::common::{output, text};
use crate::displays::{Compositor, XServer};
use crate::test_environment::{TestEnvironment, samples, succeed};

fn capture(stage: &TestEnvironment, program: &[&str], screen: &XServer) {
    let mut command = stage.lavascope();
    command.args(["capture", "-o", "trace.lava", "--"]).args(program).env("DISPLAY", &screen.display);
    succeed(&mut command);
}

fn capture_cube(stage: &TestEnvironment, screen: &XServer, frames: &str) {
    capture(stage, &["vkcube", "--c", frames, "--suppress_popups"], screen);
}

/// A sample on the null driver, which has all that lavapipe lacks, and really copies.
pub(crate) fn capture_on_null(stage: &TestEnvironment, arguments: &[&str]) {
    let mut command = stage.lavascope();
    command.args(["capture", "--results", "-o", "trace.lava", "--"]).arg(samples()).args(arguments);
    set_driver(&mut command, stage.null_driver());
    // What shaders compute is not there, and some samples say so.
    let result = output(command.env("LAVASCOPE_NULL_EXECUTE", "transfer"));
    assert!(matches!(result.status.code(), Some(0 | 1)), "{}", text(&result.stderr));
}

fn replay(stage: &TestEnvironment, options: &[&str]) -> Command {
    let mut command = stage.lavascope();
    command.args(["replay", "--json", "trace.lava"]).args(options);
    command
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

fn replayed(stage: &TestEnvironment, options: &[&str]) -> Value {
    json(&succeed(&mut replay(stage, options)).stdout)
}

fn length(list: &Value) -> Option<usize> {
    list.as_array().map(Vec::len)
}

#[test]
fn a_plan_names_the_device_and_what_it_cannot_do() {
    let stage = TestEnvironment::new("replay-plan");
    capture_on_null(&stage, &["fault-mesh-indirect", "--fixed"]);
    let result = output(&mut replay(&stage, &["--dry-run"]));
    assert_eq!(result.status.code(), Some(1), "{}", text(&result.stderr));
    let plan = json(&result.stdout);
    let device = &plan["devices"][0];
    assert_eq!((&device["trace"], &device["is_same"]), (&"Lavascope null device".into(), &false.into()), "{plan:#}");
    assert!(device["here"].as_str().is_some_and(|it| it.starts_with("llvmpipe")), "{plan:#}");
    assert_eq!(device["missing_extensions"], serde_json::json!(["VK_EXT_mesh_shader"]), "{plan:#}");
    assert!(length(&device["memory_types"]) > Some(1) && length(&device["queue_families"]) > Some(1), "{plan:#}");
    let refused = plan["refused"].as_array().expect("a list");
    let commands: Vec<_> = refused.iter().filter_map(|it| it["command"].as_str()).collect();
    let expected = ["vkCreateShaderModule", "vkCreateGraphicsPipelines", "vkCmdDrawMeshTasksIndirectEXT"];
    assert_eq!(commands, expected, "{plan:#}");
    // The replay says the same before it begins, and can be told not to care.
    let result = output(&mut replay(&stage, &[]));
    assert_eq!(result.status.code(), Some(2));
    let said = text(&result.stderr);
    assert!(commands.iter().all(|it| said.contains(it)) && said.contains("--force"), "{said}");
    let forced = replayed(&stage, &["--force"]);
    assert!(forced["remarks"].to_string().contains("were left out, the first: thread"), "{forced:#}");
}

#[test]
fn a_plan_for_the_same_device_has_nothing_to_say() {
    let (stage, screen) = (TestEnvironment::new("replay-plan-same"), XServer::start());
    capture_cube(&stage, &screen, "5");
    let plan = replayed(&stage, &["--dry-run"]);
    let device = &plan["devices"][0];
    assert_eq!((&device["is_same"], &plan["frames"]), (&true.into(), &5.into()), "{plan:#}");
    for value in [&device["missing_extensions"], &device["missing_features"], &plan["refused"], &plan["remarks"]] {
        assert_eq!(length(value), Some(0), "{plan:#}");
    }
    // Nothing was performed, so nothing is there.
    let result = succeed(stage.lavascope().args(["replay", "trace.lava", "--dry-run", "--null"]));
    let said = text(&result.stdout);
    let parts =
        ["device: Lavascope null device in place of llvmpipe", "memory types", "This machine supports all of it."];
    assert!(parts.iter().all(|it| said.contains(it)), "{said}");
}

#[test]
fn some_frames_are_shown_as_in_the_whole() {
    let (stage, screen) = (TestEnvironment::new("replay-frames"), XServer::start());
    capture_cube(&stage, &screen, "60");
    let shots = ["--screenshot", "40..43", "--screenshots"];
    let whole = replayed(&stage, &[&shots[..], &["whole"]].concat());
    let times = &whole["frame_milliseconds"];
    let order = ["best", "median", "p90", "p95", "p99", "worst"].map(|it| times[it].as_f64().expect("a number"));
    assert!(order.is_sorted() && order[0] > 0.0 && whole["calls_per_second"].as_f64() > Some(1.0), "{whole:#}");
    assert!(whole["processor_seconds"][0].as_f64() > Some(0.0), "{whole:#}");
    let part = replayed(&stage, &[&shots[..], &["part", "--compare", "whole", "--frames", "40..43"]].concat());
    assert_eq!((&part["frames"], length(&part["pictures"])), (&3.into(), Some(3)), "{part:#}");
    assert_eq!((&part["differences"], &part["pictures"][0]["frame"]), (&0.into(), &40.into()), "{part:#}");
    // Acquire, submit, present, and waiting: no more than ten calls a frame.
    assert!(part["calls"].as_u64().is_some_and(|it| (9..=30).contains(&it)), "{part:#}");
    let submits = replayed(&stage, &["--submits", "40..43"]);
    assert!(submits["calls"].as_u64().is_some_and(|it| (9..=60).contains(&it)), "{submits:#}");
    let result = output(&mut replay(&stage, &["--frames", "100..101"]));
    assert_eq!(result.status.code(), Some(2));
    assert!(text(&result.stderr).contains("the trace has 60 frames"), "{}", text(&result.stderr));
}

#[test]
fn similar_pictures_are_told_from_others() {
    let (stage, screen) = (TestEnvironment::new("replay-similar"), XServer::start());
    capture_cube(&stage, &screen, "40");
    replayed(&stage, &["--screenshot", "0..40", "--screenshots", "first"]);
    let copy = |from: u32| {
        let path = |at: u32| stage.folder.join(format!("first/frame-{at:06}.png"));
        std::fs::copy(path(from), path(0)).expect("it can be copied");
    };
    // The cube turns by less than a degree, and by a quarter.
    copy(1);
    let compare = ["--screenshot", "0", "--screenshots", "second", "--compare", "first"];
    let near = replayed(&stage, &[&compare[..], &["--similarity", "0.9"]].concat());
    assert!(near["pictures"][0]["difference"].as_u64() > Some(30), "{near:#}");
    copy(39);
    let least = near["pictures"][0]["similarity"].as_f64().expect("a number").to_string();
    let result = output(&mut replay(&stage, &[&compare[..], &["--similarity", &least]].concat()));
    assert_eq!(result.status.code(), Some(1), "{}", text(&result.stdout));
    let far = json(&result.stdout);
    assert!(far["pictures"][0]["similarity"].as_f64() < near["pictures"][0]["similarity"].as_f64(), "{far:#}");
    assert_eq!(far["differences"], 1, "{far:#}");
}

#[test]
fn frames_are_known_by_their_hashes() {
    let (stage, screen) = (TestEnvironment::new("replay-hashes"), XServer::start());
    capture_cube(&stage, &screen, "6");
    replayed(&stage, &["--hashes", "frames.json"]);
    let result = replayed(&stage, &["--threads", "1", "--compare-hashes", "frames.json"]);
    assert_eq!((&result["differences"], length(&result["different_frames"])), (&0.into(), Some(0)), "{result:#}");
    let path = stage.folder.join("frames.json");
    let mut hashes: Value = json(&std::fs::read(&path).expect("it is there"));
    assert_eq!(hashes.as_object().map(serde_json::Map::len), Some(6), "{hashes:#}");
    // The cube turns.
    assert_ne!(hashes["3"], hashes["4"], "{hashes:#}");
    hashes["3"] = hashes["4"].clone();
    std::fs::write(&path, hashes.to_string()).expect("it can be written");
    let result = output(&mut replay(&stage, &["--compare-hashes", "frames.json"]));
    assert_eq!(result.status.code(), Some(1), "{}", text(&result.stderr));
    assert_eq!(json(&result.stdout)["different_frames"], serde_json::json!([3]));
}

#[test]
fn the_original_speed_takes_as_long_as_the_program() {
    let (stage, screen) = (TestEnvironment::new("replay-speed"), XServer::start());
    capture_cube(&stage, &screen, "100");
    let info = json(&succeed(stage.lavascope().args(["info", "--json", "trace.lava"])).stdout);
    let program = info["seconds"].as_f64().expect("a number");
    let result = replayed(&stage, &["--speed", "original"]);
    let seconds = result["seconds"][0].as_f64().expect("a number");
    assert!(seconds > program * 0.9, "{seconds} s, the program {program} s");
}

#[test]
fn a_trace_is_played_again_and_again_until_it_is_interrupted() {
    let (stage, screen) = (TestEnvironment::new("replay-loop"), XServer::start());
    capture_cube(&stage, &screen, "20");
    let result = replayed(&stage, &["--loop=3", "--frames", "5..10"]);
    assert_eq!((length(&result["seconds"]), &result["frames"]), (Some(3), &5.into()), "{result:#}");
    // What is sent to one process alone is passed on; who sends it to all of a group sends it twice.
    for (to_all, folder) in [(false, "one"), (true, "all")] {
        let mut command = replay(&stage, &["--loop", "--screenshot", "0..1", "--screenshots", folder]);
        let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().expect("it starts");
        let picture = stage.folder.join(folder).join("frame-000000.png");
        wait_until("the first picture", || {
            assert!(poll_running(&mut child));
            picture.exists()
        });
        let pid = rustix::process::Pid::from_child(&child);
        match to_all {
            true => rustix::process::kill_process_group(pid, rustix::process::Signal::TERM),
            false => rustix::process::kill_process(pid, rustix::process::Signal::TERM),
        }
        .expect("it is there");
        let result = child.wait_with_output().expect("it ends");
        assert_eq!(result.status.code(), Some(0), "{}", text(&result.stderr));
        let result = json(&result.stdout);
        assert!(length(&result["seconds"]) > Some(0) && result["interrupted"] == true, "{result:#}");
    }
}

#[test]
fn a_device_that_does_not_come_to_an_end_is_given_up() {
    let stage = TestEnvironment::new("replay-stuck");
    succeed(stage.lavascope().args(["capture", "-o", "trace.lava", "--"]).arg(samples()).arg("timeline"));
    let printed = succeed(stage.lavascope().args(["print", "--json", "trace.lava"]));
    let calls = text(&printed.stdout);
    let signal = calls.lines().map(|it| json(it.as_bytes())).find(|it| it["command"] == "vkSignalSemaphore");
    let signal = signal.expect("two submissions wait for what the host signals");
    let mut command = replay(&stage, &["--patience", "2", "--pause-at", &signal["call"].to_string()]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("it has one"));
    lines.read_line(&mut said).expect("it says where it is");
    let pid = said.split("the process is ").nth(1).and_then(|it| it.split(',').next()).and_then(|it| it.parse().ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw).expect("and which process it is");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is there");
    std::thread::sleep(Duration::from_millis(200));
    child.stdin.take().expect("it has one").write_all(b"\n").expect("it listens");
    let result = child.wait_with_output().expect("it ends");
    assert_eq!(result.status.code(), Some(0), "{}", text(&result.stdout));
    let result = json(&result.stdout);
    let remarks = result["remarks"].to_string();
    assert!(result["interrupted"] == true && remarks.contains("does not come to an end"), "{result:#}");
}

#[test]
fn a_replay_waits_before_a_call_until_enter() {
    let (stage, screen) = (TestEnvironment::new("replay-pause"), XServer::start());
    capture_cube(&stage, &screen, "5");
    let mut command = replay(&stage, &["--pause-at", "40"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (mut said, mut lines) = (String::new(), BufReader::new(child.stderr.take().expect("it has one")));
    while !said.contains("before call 40 of thread 1, vk") {
        assert!(lines.read_line(&mut said).expect("it says where it is") > 0, "{said}");
    }
    std::thread::sleep(Duration::from_millis(200));
    assert!(poll_running(&mut child));
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    assert!(!status.contains("THP_enabled:\t1"), "who only waits clears no large pages: {status}");
    child.stdin.take().expect("it has one").write_all(b"\n").expect("it listens");
    let result = child.wait_with_output().expect("it ends");
    assert!(said.contains("the process is"), "{said}");
    assert_eq!(json(&result.stdout)["frames"], 5);
    let result = output(&mut replay(&stage, &["--pause-at", "7:1"]));
    assert_eq!(result.status.code(), Some(2));
    assert!(text(&result.stderr).contains("there is no thread 7 to pause"), "{}", text(&result.stderr));
    let result = output(&mut replay(&stage, &["--pause-at", "100000"]));
    assert_eq!(result.status.code(), Some(2));
    let missing = "thread 1 has no call 100000 to pause at; its calls are 1 to ";
    assert!(text(&result.stderr).contains(missing), "{}", text(&result.stderr));
    let result = output(&mut replay(&stage, &["--pause-at", "x:1"]));
    assert!(text(&result.stderr).contains("names no call"), "{}", text(&result.stderr));
}

fn poll_running(child: &mut Child) -> bool {
    child.try_wait().expect("it can be asked").is_none()
}

#[test]
fn what_waits_before_it_is_signaled_is_held_back_where_queues_are_one() {
    let stage = TestEnvironment::new("replay-held");
    capture_on_null(&stage, &["timeline"]);
    for options in [&["--verify"][..], &["--verify", "--threads", "1"]] {
        let began = Instant::now();
        let result = replayed(&stage, options);
        assert!(result["remarks"].to_string().contains("fewer queues"), "{result:#}");
        let bytes = (result["different_bytes"].as_u64(), result["equal_bytes"].as_u64() > Some(500));
        assert_eq!(bytes, (Some(0), true), "{result:#}");
        assert!(began.elapsed() < Duration::from_secs(15), "nothing waited for the patience to end");
    }
}

#[test]
fn rows_of_linear_images_go_where_they_are_here() {
    let stage = TestEnvironment::new("replay-linear");
    capture_on_null(&stage, &["linear"]);
    let result = replayed(&stage, &["--verify"]);
    let bytes = (result["different_bytes"].as_u64(), result["equal_bytes"].as_u64() > Some(1000));
    assert_eq!(bytes, (Some(0), true), "{result:#}");
}

#[test]
fn frames_are_shown_in_a_window_and_captured_again() {
    let (stage, screen) = (TestEnvironment::new("replay-window"), XServer::start());
    capture_cube(&stage, &screen, "8");
    let shots = ["--screenshot", "0..8", "--screenshots"];
    replayed(&stage, &[&shots[..], &["first"]].concat());
    let mut command = replay(&stage, &["--window", "--recapture", "again.lava"]);
    let result = json(&succeed(command.env("DISPLAY", &screen.display)).stdout);
    assert_eq!(result["frames"], 8, "{result:#}");
    std::fs::rename(stage.folder.join("again.lava"), stage.folder.join("trace.lava")).expect("it is there");
    let result = replayed(&stage, &[&shots[..], &["second", "--compare", "first"]].concat());
    assert_eq!(
        (&result["frames"], &result["differences"], length(&result["pictures"])),
        (&8.into(), &0.into(), Some(8))
    );
    let result = output(&mut replay(&stage, &["--window"]));
    assert_eq!(result.status.code(), Some(2));
    assert!(
        text(&result.stderr).contains("there is no display; set WAYLAND_DISPLAY or DISPLAY"),
        "{}",
        text(&result.stderr)
    );
}

#[test]
fn frames_are_shown_in_a_window_of_wayland() {
    let (stage, screen, compositor) = (TestEnvironment::new("replay-wayland"), XServer::start(), Compositor::start());
    capture_cube(&stage, &screen, "8");
    let shots = ["--screenshot", "0..8", "--screenshots"];
    replayed(&stage, &[&shots[..], &["first"]].concat());
    let mut command = replay(&stage, &["--window", "--recapture", "again.lava"]);
    command.env("WAYLAND_DISPLAY", Compositor::DISPLAY).env("XDG_RUNTIME_DIR", &compositor.folder);
    let result = json(&succeed(&mut command).stdout);
    assert_eq!(result["frames"], 8, "{result:#}");
    let info = json(&succeed(stage.lavascope().args(["info", "--json", "again.lava"])).stdout);
    assert_eq!((&info["frames"], &info["commands"]["vkCreateWaylandSurfaceKHR"]), (&8.into(), &1.into()), "{info:#}");
    std::fs::rename(stage.folder.join("again.lava"), stage.folder.join("trace.lava")).expect("it is there");
    let result = replayed(&stage, &[&shots[..], &["second", "--compare", "first"]].concat());
    assert_eq!((&result["differences"], length(&result["pictures"])), (&0.into(), Some(8)), "{result:#}");
    // Where there is no such display, that of X11 does.
    let mut command = replay(&stage, &["--window"]);
    succeed(command.env("WAYLAND_DISPLAY", "nobody").env("DISPLAY", &screen.display));
    let result = output(replay(&stage, &["--window"]).env("WAYLAND_DISPLAY", "nobody"));
    assert!(text(&result.stderr).contains("there is no Wayland display"), "{}", text(&result.stderr));
}

#[test]
fn frames_are_in_a_capture_of_a_replay_that_nobody_sees() {
    let (stage, screen) = (TestEnvironment::new("replay-unseen"), XServer::start());
    capture_cube(&stage, &screen, "8");
    let shots = ["--screenshot", "0..8", "--screenshots"];
    replayed(&stage, &[&shots[..], &["first"]].concat());
    // This driver presents in windows only; the layer below the replay has surfaces without.
    for options in [&["--null"][..], &[], &["--validate", "sync"]] {
        let result = replayed(&stage, &[options, &["--recapture", "again.lava"]].concat());
        assert_eq!((&result["frames"], length(&result["remarks"])), (&8.into(), Some(0)), "{options:?}: {result:#}");
        let info = json(&succeed(stage.lavascope().args(["info", "--json", "again.lava"])).stdout);
        assert_eq!(info["frames"], 8, "{options:?}: {info:#}");
    }
    std::fs::rename(stage.folder.join("again.lava"), stage.folder.join("trace.lava")).expect("it is there");
    let result = replayed(&stage, &[&shots[..], &["second", "--compare", "first"]].concat());
    assert_eq!((&result["differences"], length(&result["pictures"])), (&0.into(), Some(8)), "{result:#}");
}
