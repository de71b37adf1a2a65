//! `replay`: what a program did is done again, with the same results, on all its threads or on one.

use std::process::Command;

use serde_json::Value;

use crate::below::system_khronos;
use crate::common::{output, text};
use crate::displays::XServer;
use crate::faults::is_only_for_null;
use crate::known::{on_wgpu, python, wgpu};
use crate::test_environment::{TestEnvironment, names, samples, succeed, verified};

/// Samples whose results the host does not read: this one only records, and submits nothing.
const WITHOUT_RESULTS: [&str; 1] = ["recording"];

fn captured(stage: &TestEnvironment, arguments: &[&str], display: Option<&XServer>) {
    let mut command = stage.lavascope();
    command.args(["capture", "--results", "-o", "trace.lava", "--"]).arg(samples()).args(arguments);
    if let Some(x_server) = display {
        command.env("DISPLAY", &x_server.display);
    }
    succeed(&mut command);
}

fn replay(stage: &TestEnvironment, options: &[&str]) -> Command {
    let mut command = stage.lavascope();
    command.args(["replay", "--json", "trace.lava"]).args(options);
    command
}

fn replayed(stage: &TestEnvironment, options: &[&str]) -> Value {
    verified(&mut replay(stage, options))
}

#[test]
fn every_sample_is_replayed_with_equal_results() {
    let (stage, screen) = (TestEnvironment::new("replay"), XServer::start());
    for name in names().iter().filter(|it| !is_only_for_null(it)) {
        let is_fault = name.starts_with("fault-");
        let fixed = if is_fault { &["--fixed"][..] } else { &[] };
        captured(&stage, &[&[name.as_str()], fixed].concat(), Some(&screen));
        let one = ["--verify", "--threads", "1"];
        let ways = if is_fault { &[&one[..1]][..] } else { &[&one[..1], &one] };
        for options in ways {
            let result = replayed(&stage, options);
            assert_eq!(result["different_bytes"].as_u64(), Some(0), "{name}: {result:#}");
            assert_eq!(result["remarks"].as_array().map(Vec::len), Some(0), "{name}: {result:#}");
            let has_results = is_fault || WITHOUT_RESULTS.contains(&name.as_str());
            assert!(has_results || result["equal_bytes"].as_u64() > Some(0), "{name}: {result:#}");
        }
        if !is_fault {
            replay_again(&stage, name);
        }
    }
}

/// What a replay did is captured, and replayed in its turn.
fn replay_again(stage: &TestEnvironment, name: &str) {
    let mut command = replay(stage, &["--recapture", "again.lava"]);
    let first = succeed(command.env("LAVASCOPE_CAPTURE_RESULTS", "1"));
    let first: Value = serde_json::from_slice(&first.stdout).expect("JSON");
    let again = verified(stage.lavascope().args(["replay", "--json", "--verify", "again.lava"]));
    assert_eq!((&again["different_bytes"], &again["frames"]), (&0.into(), &first["frames"]), "{name}: {again:#}");
    let has_results = WITHOUT_RESULTS.contains(&name) || again["equal_bytes"].as_u64() > Some(0);
    assert!(has_results && again["threads"].as_u64() >= first["threads"].as_u64(), "{name}: {again:#}");
}

#[test]
fn a_trace_runs_on_the_null_driver() {
    let stage = TestEnvironment::new("replay-null");
    captured(&stage, &["threads", "--frames", "20"], None);
    let result = replayed(&stage, &["--null", "--repeat", "3"]);
    assert_eq!(result["seconds"].as_array().map(Vec::len), Some(3), "{result:#}");
    assert!(result["threads"].as_u64() > Some(2) && result["calls"].as_u64() > Some(500), "{result:#}");
}

#[test]
fn frames_become_pictures_that_can_be_compared() {
    let (stage, screen) = (TestEnvironment::new("replay-pictures"), XServer::start());
    captured(&stage, &["present"], Some(&screen));
    let shots = ["--screenshot", "0..2", "--screenshot", "4"];
    let result = replayed(&stage, &[&shots[..], &["--screenshots", "first"]].concat());
    assert_eq!((&result["frames"], result["pictures"].as_array().map(Vec::len)), (&6.into(), Some(3)), "{result:#}");
    let compare = [&shots[..], &["--screenshots", "second", "--compare", "first"]].concat();
    let result = replayed(&stage, &compare);
    let all = result["pictures"].as_array().expect("a list");
    assert!(all.iter().all(|it| it["difference"] == 0), "{result:#}");
    // The sample clears each image with another color.
    std::fs::copy(stage.folder.join("first/frame-000004.png"), stage.folder.join("first/frame-000001.png"))
        .expect("it can be copied");
    let result = output(&mut replay(&stage, &compare));
    assert_eq!(result.status.code(), Some(1), "{}", text(&result.stderr));
    let result: Value = serde_json::from_slice(&result.stdout).expect("JSON");
    assert!(result["pictures"][1]["difference"].as_u64() > Some(0), "{result:#}");
}

#[test]
fn faults_are_found_while_a_trace_is_performed() {
    let stage = TestEnvironment::new("replay-validate");
    captured(&stage, &["fault-war-copy"], None);
    let result = output(&mut replay(&stage, &["--validate", "sync"]));
    assert_eq!(result.status.code(), Some(1), "{}", text(&result.stderr));
    assert!(text(&result.stderr).starts_with("error[WAR]: "), "{}", text(&result.stderr));
    for (options, code, words) in [
        (&["--ignore", "code=WAR"][..], 0, "lavascope: no new findings; ignored: 1\n"),
        (&["--ignore", "code=RAW"], 1, "lavascope: note: `--ignore code=RAW` matched nothing\n"),
        (&["--baseline", "known.txt", "--update-baseline"], 0, "known.txt is written: 1 added, 0 removed\n"),
        (&["--baseline", "known.txt"], 0, "lavascope: no new findings; known: 1\n"),
    ] {
        let result = output(&mut replay(&stage, &[&["--validate", "sync"], options].concat()));
        let said = text(&result.stderr);
        assert!(result.status.code() == Some(code) && said.contains(words), "{options:?}: {said}");
    }
    let result = output(replay(&stage, &["--validate", "sync"]).env("LAVASCOPE_MESSAGE_ID_FILTER", "WAR"));
    assert_eq!(result.status.code(), Some(0), "{}", text(&result.stderr));
    let result = output(&mut replay(&stage, &["--ignore", "code=WAR"]));
    let said = text(&result.stderr);
    assert_eq!((result.status.code(), &*said), (Some(2), "lavascope: --baseline and --ignore need --validate\n"));
    captured(&stage, &["fault-war-copy", "--fixed"], None);
    succeed(&mut replay(&stage, &["--validate", "sync"]));
}

#[test]
fn what_is_replayed_can_be_captured_and_replayed_again() {
    let stage = TestEnvironment::new("replay-again");
    captured(&stage, &["textured"], None);
    replayed(&stage, &["--recapture", "again.lava"]);
    std::fs::rename(stage.folder.join("again.lava"), stage.folder.join("trace.lava")).expect("it is there");
    let result = replayed(&stage, &["--verify"]);
    assert_eq!(result["different_bytes"].as_u64(), Some(0), "{result:#}");
}

#[test]
fn what_cannot_be_replayed_is_reported_with_its_place() {
    let stage = TestEnvironment::new("replay-bad");
    captured(&stage, &["compute"], None);
    let file = stage.folder.join("trace.lava");
    let result = output(&mut replay(&stage, &["--gpu", "77"]));
    assert_eq!(result.status.code(), Some(2));
    assert!(text(&result.stderr).contains("there is no GPU 77 here"), "{}", text(&result.stderr));
    let bytes = std::fs::read(&file).expect("it is there");
    for length in [0, 10, bytes.len() / 3, bytes.len() / 2] {
        std::fs::write(&file, &bytes[..length]).expect("it can be written");
        let result = output(&mut replay(&stage, &[]));
        // What is left may be a whole beginning.
        assert!(matches!(result.status.code(), Some(0 | 2)), "{length}: {}", text(&result.stderr));
        assert!(
            result.status.code() == Some(0) || text(&result.stderr).contains("trace.lava"),
            "{}",
            text(&result.stderr)
        );
    }
}

/// Captured from our samples, with their results, on a discrete GPU with other memory, queues and features; `linear` on
/// SwiftShader, whose rows are closer.
#[test]
fn traces_of_another_gpu_give_the_same_results_here() {
    let stage = TestEnvironment::new("replay-other-gpu");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/other-gpu");
    for entry in std::fs::read_dir(folder).expect("the traces are here") {
        let path = entry.expect("it can be read").path();
        std::fs::copy(&path, stage.folder.join("trace.lava")).expect("it can be copied");
        for options in [&["--verify"][..], &["--verify", "--threads", "1"]] {
            let result = replayed(&stage, options);
            let bytes = (result["different_bytes"].as_u64(), result["equal_bytes"].as_u64() > Some(200));
            assert_eq!(bytes, (Some(0), true), "{}: {result:#}", path.display());
        }
    }
}

#[test]
fn threads_that_are_held_up_at_random_keep_their_order() {
    let stage = TestEnvironment::new("replay-chaos");
    captured(&stage, &["threads-handoff", "--threads", "16"], None);
    for seed in ["1", "2", "3", "4"] {
        let result = replayed(&stage, &["--verify", "--chaos", seed]);
        assert_eq!(result["different_bytes"].as_u64(), Some(0), "{result:#}");
        assert!(result["threads"].as_u64() > Some(15), "{result:#}");
    }
}

#[test]
fn vkcube_is_shown_again_and_again_the_same() {
    let (stage, screen) = (TestEnvironment::new("replay-vkcube"), XServer::start());
    let mut command = stage.lavascope();
    command.args(["capture", "-o", "trace.lava", "--", "vkcube", "--c", "40", "--suppress_popups"]);
    succeed(command.env("DISPLAY", &screen.display));
    let shots = ["--screenshot", "0..40"];
    let result = replayed(&stage, &[&shots[..], &["--screenshots", "first"]].concat());
    assert_eq!((&result["frames"], result["pictures"].as_array().map(Vec::len)), (&40.into(), Some(40)), "{result:#}");
    // The cube turns, so no two are equal, and each is more than a color.
    let bytes = |at: u32| std::fs::read(stage.folder.join(format!("first/frame-{at:06}.png"))).expect("a picture");
    assert!((1..40).all(|it| bytes(it) != bytes(it - 1) && bytes(it).len() > 5000));
    let one = ["--threads", "1", "--screenshots", "second", "--compare", "first"];
    let result = replayed(&stage, &[&shots[..], &one].concat());
    assert!(result["pictures"].as_array().is_some_and(|it| it.iter().all(|it| it["difference"] == 0)), "{result:#}");
}

#[test]
fn what_wgpu_drew_is_drawn_again() {
    let stage = TestEnvironment::new("replay-wgpu");
    for threads in [1, 4] {
        let mut command = stage.lavascope();
        command.args(["capture", "--results", "-o", "trace.lava", "--"]).arg(python());
        succeed(wgpu(&mut command, threads));
        let result = replayed(&stage, &["--verify"]);
        let bytes = (result["different_bytes"].as_u64(), result["equal_bytes"].as_u64() > Some(1000));
        assert_eq!(bytes, (Some(0), true), "{threads}: {result:#}");
    }
}

/// Its shader changes a buffer in its place, in memory that the host has mapped, while the program goes on.
#[test]
fn what_the_device_is_about_to_write_is_not_written_for_it() {
    let stage = TestEnvironment::new("replay-in-place");
    let mut command = stage.lavascope();
    command.args(["capture", "--results", "-o", "trace.lava", "--"]).arg(python());
    succeed(on_wgpu(&mut command, "../../dev/xtask/programs/wgpu_frames.py"));
    for options in [&["--verify"][..], &["--verify", "--threads", "1"]] {
        let result = replayed(&stage, options);
        let bytes = (result["different_bytes"].as_u64(), result["equal_bytes"].as_u64() > Some(1000));
        assert_eq!(bytes, (Some(0), true), "{options:?}: {result:#}");
    }
}

/// The images of a swapchain that the program has destroyed are gone when the replay destroys what is left.
#[test]
fn what_is_left_at_the_end_of_a_part_is_destroyed_once() {
    let stage = TestEnvironment::new("replay-rest");
    let mut capture = stage.lavascope();
    capture.args(["capture", "--headless", "-o", "trace.lava", "--"]).arg(samples());
    succeed(capture.args(["present-recreated", "--frames", "8"]));
    succeed(stage.lavascope().args(["trim", "trace.lava", "--frames", "0..7", "-o", "part.lava"]));
    let mut command = stage.lavascope();
    command.args(["replay", "part.lava"]).env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation");
    let run = succeed(command.env("VK_ADD_LAYER_PATH", system_khronos()).env("VK_LOADER_DEBUG", "layer"));
    let said = text(&[run.stdout, run.stderr].concat());
    assert!(said.contains("Insert instance layer \"VK_LAYER_KHRONOS_validation\""), "{said}");
    assert!(!said.contains("VUID-") && !said.contains("UNASSIGNED-"), "{said}");
}
