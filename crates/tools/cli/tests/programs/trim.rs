//! `trim`: a part of a trace is replayed as it was in the whole.

use lavascope_test_support::wait_until;
use serde_json::Value;

use crate::common::{output, text};
use crate::displays::XServer;
use crate::faults::is_only_for_null;
use crate::test_environment::{TestEnvironment, names, samples, succeed, verified};

fn captured(stage: &TestEnvironment, program: &[&str], screen: &XServer) {
    let mut command = stage.lavascope();
    command.args(["capture", "--results", "-o", "trace.lava", "--"]).args(program).env("DISPLAY", &screen.display);
    succeed(&mut command);
}

fn trimmed(stage: &TestEnvironment, options: &[&str]) -> Value {
    let result = succeed(stage.lavascope().args(["trim", "--json", "trace.lava", "-o", "part.lava"]).args(options));
    serde_json::from_slice(&result.stdout).expect("JSON")
}

fn replayed(stage: &TestEnvironment, file: &str, options: &[&str]) -> Value {
    verified(stage.lavascope().args(["replay", "--json", file]).args(options))
}

/// The pictures of frames, one behind the other.
fn pictures(stage: &TestEnvironment, file: &str, first: u64, count: u64) -> Vec<Vec<u8>> {
    let range = format!("{first}..{}", first + count);
    replayed(stage, file, &["--screenshot", &range, "--screenshots", "shots"]);
    let read = |it| std::fs::read(stage.folder.join(format!("shots/frame-{it:06}.png"))).expect("a picture");
    (first..first + count).map(read).collect()
}

#[test]
fn a_part_shows_what_the_whole_shows() {
    let (stage, screen) = (TestEnvironment::new("trim-cube"), XServer::start());
    captured(&stage, &["vkcube", "--c", "60"], &screen);
    let result = trimmed(&stage, &["--frames", "40..44"]);
    assert_eq!(result["frames"].as_u64(), Some(4), "{result:#}");
    assert!(result["frames_left_out"].as_u64() > Some(20), "{result:#}");
    let whole = pictures(&stage, "trace.lava", 40, 4);
    // Frames keep their numbers, whatever stands before them.
    assert_eq!(pictures(&stage, "part.lava", 40, 4), whole);
    // The cube turns: another frame is another picture.
    assert_ne!(whole[0], whole[1]);
    let result = succeed(stage.lavascope().args(["info", "part.lava"]));
    assert!(text(&result.stdout).contains("frames 40..44 of another trace"), "{}", text(&result.stdout));
    // A part of a part, and the whole as its own part.
    std::fs::rename(stage.folder.join("part.lava"), stage.folder.join("trace.lava")).expect("it is there");
    trimmed(&stage, &["--frames", "42..44"]);
    assert_eq!(pictures(&stage, "part.lava", 42, 2), whole[2..]);
}

#[test]
fn parts_of_every_sample_have_the_results_of_the_whole() {
    let (stage, screen) = (TestEnvironment::new("trim-samples"), XServer::start());
    let program = samples().to_str().expect("a path").to_owned();
    for name in names().iter().filter(|it| !is_only_for_null(it) && !it.starts_with("fault-")) {
        captured(&stage, &[&program, name], &screen);
        let whole = replayed(&stage, "trace.lava", &["--verify"]);
        let info = succeed(stage.lavascope().args(["info", "--json", "trace.lava"]));
        let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
        let count = info["submissions"].as_u64().expect("a number");
        for part in [format!("{}..", count / 2), format!("{}..", count - 1), format!("..{}", count.div_ceil(2))] {
            let result = trimmed(&stage, &["--submits", &part]);
            let again = replayed(&stage, "part.lava", &["--verify"]);
            assert_eq!(again["different_bytes"].as_u64(), Some(0), "{name} {part}: {again:#}");
            assert_eq!(again["remarks"].as_array().map(Vec::len), Some(0), "{name} {part}: {again:#}");
            assert!(again["calls"].as_u64() <= whole["calls"].as_u64(), "{name} {part}: {result:#}");
            let checked = output(stage.lavascope().args(["check", "part.lava"]));
            assert_eq!(checked.status.code(), Some(0), "{name} {part}: {}", text(&checked.stdout));
        }
    }
}

#[test]
fn spans_of_many_threads_can_be_left_out() {
    let (stage, screen) = (TestEnvironment::new("trim-threads"), XServer::start());
    captured(&stage, &[samples().to_str().expect("a path"), "threads", "--threads", "4", "--frames", "30"], &screen);
    for part in ["10..12", "20..", "29.."] {
        let result = trimmed(&stage, &["--submits", part]);
        assert!(result["submits_left_out"].as_u64() > Some(5), "{part}: {result:#}");
        for options in [&["--verify"][..], &["--verify", "--threads", "1"]] {
            let again = replayed(&stage, "part.lava", options);
            assert_eq!(again["different_bytes"].as_u64(), Some(0), "{part}: {again:#}");
            assert!(part == "10..12" || again["equal_bytes"].as_u64() > Some(1000), "{part}: {again:#}");
        }
        let info = succeed(stage.lavascope().args(["info", "--json", "part.lava"]));
        let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
        assert_eq!(info["order"]["is_acyclic"], true, "{part}: {info:#}");
    }
}

/// Rounds that are left out have moved a timeline semaphore on; whoever waits for it behind them finds it there.
#[test]
fn timelines_go_on_behind_what_is_left_out() {
    let (stage, screen) = (TestEnvironment::new("trim-timeline"), XServer::start());
    captured(&stage, &[samples().to_str().expect("a path"), "timeline", "--frames", "30"], &screen);
    let result = trimmed(&stage, &["--submits", "40..44"]);
    assert!(result["submits_left_out"].as_u64() > Some(20), "{result:#}");
    let again = replayed(&stage, "part.lava", &["--verify"]);
    assert_eq!(again["different_bytes"].as_u64(), Some(0), "{again:#}");
    assert_eq!(again["remarks"].as_array().map(Vec::len), Some(0), "{again:#}");
    // Three values a round, and two submissions: the host brings it to where the 20th round begins.
    let calls = succeed(stage.lavascope().args(["print", "part.lava"]));
    let is_there = text(&calls.stdout).lines().filter(|it| it.contains("value")).any(|it| it.contains("60"));
    assert!(is_there && text(&calls.stdout).contains("vkSignalSemaphore"), "{}", text(&calls.stdout));
    let checked = output(stage.lavascope().args(["check", "part.lava"]));
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stdout));
}

#[test]
fn a_part_that_is_not_there_is_reported() {
    let (stage, screen) = (TestEnvironment::new("trim-none"), XServer::start());
    captured(&stage, &[samples().to_str().expect("a path"), "compute"], &screen);
    let options = ["trim", "trace.lava", "-o", "part.lava", "--frames", "3..4"];
    let result = output(stage.lavascope().args(options));
    assert_eq!(result.status.code(), Some(2));
    assert!(text(&result.stderr).contains("the trace has 0 frames"), "{}", text(&result.stderr));
    assert!(!stage.folder.join("part.lava").exists() && !stage.folder.join("part.lava.part").exists());
}

#[test]
fn a_capture_ends_with_the_part_that_is_wanted() {
    let (stage, screen) = (TestEnvironment::new("trim-capture"), XServer::start());
    captured(&stage, &["vkcube", "--c", "40"], &screen);
    let whole = pictures(&stage, "trace.lava", 20, 3);
    let mut command = stage.lavascope();
    command.args(["capture", "-o", "part.lava", "--frames", "20..23", "--", "vkcube", "--c", "40"]);
    let result = succeed(command.env("DISPLAY", &screen.display));
    assert!(text(&result.stderr).contains("frames keep their numbers"), "{}", text(&result.stderr));
    let info = succeed(stage.lavascope().args(["info", "--json", "part.lava"]));
    let info: Value = serde_json::from_slice(&info.stdout).expect("JSON");
    let frames = info["frames"].as_u64().expect("a number");
    assert!((3..15).contains(&frames), "{info:#}");
    assert_eq!(pictures(&stage, "part.lava", 20, 3), whole);
    let mut command = stage.lavascope();
    command.args(["capture", "--results", "-o", "part.lava", "--submits", "2..4", "--"]).arg(samples()).arg("timeline");
    succeed(&mut command);
    let again = replayed(&stage, "part.lava", &["--verify"]);
    assert_eq!(again["different_bytes"].as_u64(), Some(0), "{again:#}");
    // A part that the program never gets to.
    let mut command = stage.lavascope();
    command.args(["capture", "--results", "-o", "part.lava", "--frames", "2..4", "--"]).arg(samples()).arg("compute");
    let result = succeed(&mut command);
    assert!(text(&result.stderr).contains("all of it is kept"), "{}", text(&result.stderr));
    replayed(&stage, "part.lava", &["--verify"]);
}

#[test]
fn a_signal_begins_and_ends_the_part_that_is_wanted() {
    let (stage, screen) = (TestEnvironment::new("trim-signal"), XServer::start());
    let mut command = stage.lavascope();
    command.args(["capture", "-o", "part.lava", "--signal", "--", "vkcube", "--c", "1000000"]);
    let mut capture = command.env("DISPLAY", &screen.display).spawn().expect("it can be started");
    let own = capture.id();
    let children = || std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    let trigger =
        |pid: &str| output(stage.lavascope().args(["capture", "--attach-trigger", pid])).status.code() == Some(0);
    // The file tells how far the program is, and what the capture knows of the signal: machines may be slow.
    let info = || {
        let result = output(stage.lavascope().args(["info", "--json", "part.lava"]));
        serde_json::from_slice::<Value>(&result.stdout).unwrap_or_default()
    };
    let until = |what: &str, is_so: &dyn Fn(&Value) -> bool| {
        wait_until(what, || is_so(&info()));
    };
    let frames = |it: &Value| it["frames"].as_u64().unwrap_or(0);
    let facts = |it: &Value| it["stored"]["facts"]["unpacked"].as_u64().unwrap_or(0);
    until("a few frames", &|it| frames(it) > 3);
    for what in ["a beginning", "an end"] {
        let before = info();
        // Nobody listens before there is an instance, and a program that does not listen must not be ended.
        assert!(trigger(children().trim()), "somebody listens");
        until(what, &|it| facts(it) > facts(&before));
        let there = frames(&info());
        if what == "a beginning" {
            until("frames of the part", &|it| frames(it) > there + 3);
        }
    }
    let pid = children().trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect("it runs");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    capture.wait().expect("it ends");
    let info = succeed(stage.lavascope().args(["info", "part.lava"]));
    assert!(text(&info.stdout).contains("begins in the middle"), "{}", text(&info.stdout));
    let result = replayed(&stage, "part.lava", &["--verify"]);
    assert!(result["frames"].as_u64() > Some(1), "{result:#}");
}
