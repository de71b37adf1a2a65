//! `capture`, and what reads a trace: nothing of a program is lost, also when it is killed.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use lavascope_test_support::wait_for;
use serde_json::Value;

use crate::common::{output, text};
use crate::displays::XServer;
use crate::faults::is_only_for_null;
use crate::test_environment::{TestEnvironment, names, samples, succeed};

fn info(stage: &TestEnvironment, file: &str) -> Value {
    let result = succeed(stage.lavascope().args(["info", "--json", file]));
    serde_json::from_slice(&result.stdout).expect("JSON")
}

#[test]
fn every_sample_is_captured_call_by_call() {
    let (stage, screen) = (TestEnvironment::new("capture"), XServer::start());
    for name in names() {
        if is_only_for_null(&name) {
            continue;
        }
        let mut command = stage.under_layer_with_report(&["--capture", "trace.lava"], samples());
        command.arg(&name).env("DISPLAY", &screen.display);
        if name.starts_with("fault-") {
            command.arg("--fixed");
        }
        succeed(&mut command);
        let report = stage.report();
        report.assert_clean(&name);
        let info = info(&stage, "trace.lava");
        assert_eq!(info["calls"].as_u64(), Some(report.calls()), "{name}");
        assert_eq!(info["threads"].as_object().map(|it| it.len() as u64), Some(report.threads()), "{name}");
        assert_eq!((&info["is_complete"], &info["order"]["is_acyclic"]), (&true.into(), &true.into()), "{name}");
        assert!(!stage.folder.join("trace.lava.tail").exists(), "{name}");
        // Without the device nobody knows which of its branches a shader takes.
        if name != "fault-observed-branch" {
            succeed(stage.lavascope().args(["check", "trace.lava"]));
        }
    }
}

/// Two writes at places that only shaders know are reported to whoever asks.
#[test]
fn what_is_only_possible_is_reported_where_asked_for() {
    let stage = TestEnvironment::new("capture-possible");
    let command = &mut stage.under_layer_with_report(&["--capture", "trace.lava"], samples());
    succeed(command.args(["fault-observed-bytes", "--fixed"]));
    succeed(stage.lavascope().args(["check", "trace.lava"]));
    let result = output(stage.lavascope().args(["check", "--possible", "trace.lava"]));
    assert_eq!(result.status.code(), Some(1), "{}", text(&result.stderr));
    assert!(text(&result.stdout).starts_with("info[WAW]: "), "{}", text(&result.stdout));
    succeed(stage.under_layer_with_report(&["--sync"], samples()).args(["fault-observed-bytes", "--fixed"]));
    stage.report().assert_clean("not asked for");
    output(
        stage.under_layer_with_report(&["--sync", "--possible"], samples()).args(["fault-observed-bytes", "--fixed"]),
    );
    let found = stage.report();
    assert_eq!(found.0["processes"][0]["findings"].as_array().map(Vec::len), Some(1), "{:#}", found.0);
}

#[test]
fn the_hazards_of_a_trace_are_those_of_the_program() {
    let stage = TestEnvironment::new("capture-faults");
    let names = ["fault-war-copy", "fault-queue-race", "fault-layout", "fault-threads", "fault-subpass"];
    let mut all: Vec<Value> = Vec::new();
    for name in names {
        let file = format!("{name}.lava");
        let options = &["--sync", "--null-driver", "--capture", &file];
        output(stage.under_layer_with_report(options, samples()).args([name, "--no-check"]));
        let live = stage.report();
        let codes = |it: &Value| it.as_array().expect("a list").iter().map(|it| it["code"].clone()).collect::<Vec<_>>();
        let check = || {
            let result = output(stage.lavascope().args(["check", "--json", &file]));
            assert_eq!(result.status.code(), Some(1), "{name}: {}", text(&result.stderr));
            result.stdout
        };
        let first = check();
        let found: Value = serde_json::from_slice(&first).expect("JSON");
        let found = &found["findings"];
        assert_eq!(codes(found), codes(&live.0["findings"]), "{name}");
        for member in ["title", "fingerprint", "identity", "objects"] {
            assert_eq!(found[0][member], live.0["findings"][0][member], "{name}");
        }
        assert_eq!(first, check(), "{name}: the same each time");
        all.extend(found.as_array().expect("a list").clone());
    }
    // All at once, side by side, and reported in their order.
    let files = names.map(|it| format!("{it}.lava"));
    let result = output(stage.lavascope().args(["check", "--json"]).args(&files));
    assert_eq!(result.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&result.stdout).expect("JSON");
    assert_eq!(found["findings"], Value::from(all));
}

/// A killed program leaves everything that it had recorded, and the call that it was in.
///
/// In every second round all records are printed as well, each on the thread of its call and after it is complete: what
/// was printed must be in the trace. `cargo xtask proofs` kills more often.
#[test]
fn a_killed_program_leaves_a_whole_trace() {
    let stage = TestEnvironment::new("capture-killed");
    let rounds = std::env::var("LAVASCOPE_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(8);
    let mut compared = 0;
    for round in 0..rounds {
        let mut command = stage.lavascope();
        let printed = stage.folder.join("print.txt");
        let _ = std::fs::remove_file(&printed);
        if round % 2 == 1 {
            command.env("LAVASCOPE_PRINT", &printed);
        }
        command.args(["capture", "-o", "trace.lava", "--null-driver", "--"]).arg(samples());
        command.args(["threads", "--frames", "1000", "--threads", "3", "--no-check"]);
        let mut child = command.stderr(std::process::Stdio::null()).spawn().expect("it starts");
        let program = wait_for_child(child.id());
        // Moments all over its run.
        std::thread::sleep(Duration::from_micros(5000 + round * 79_193 % 400_000));
        let killed = Command::new("kill").args(["-9", &program.to_string()]).status().expect("there is a `kill`");
        let ended = child.wait().expect("it ends");
        // It may have come to its end before, and then there was nobody to kill.
        assert!(ended.code() == Some(137) || !killed.success() || ended.success(), "{ended:?}");
        if !stage.folder.join("trace.lava").exists() {
            continue;
        }
        let info = info(&stage, "trace.lava");
        assert_eq!((&info["is_complete"], &info["order"]["is_acyclic"]), (&true.into(), &true.into()), "{round}");
        assert_eq!(info["damage"].as_array().map(Vec::len), Some(0), "{round}: {info:#}");
        assert!(!stage.folder.join("trace.lava.tail").exists());
        for (thread, printed) in calls_printed(&std::fs::read_to_string(&printed).unwrap_or_default()) {
            let found = info["threads"][thread.to_string()]["calls"].as_u64().unwrap_or(0);
            // One may be in the trace and not printed yet.
            assert!((printed..=printed + 1).contains(&found), "{round}: thread {thread}: {found} of {printed} calls");
            compared += 1;
        }
    }
    assert!(rounds < 8 || compared > 0, "some were killed while they ran");
}

/// How many calls of each thread were printed.
fn calls_printed(text: &str) -> BTreeMap<u32, u64> {
    let (mut all, mut thread) = (BTreeMap::new(), 1);
    // What was cut off is no line.
    for line in text.split_inclusive('\n').filter_map(|it| it.strip_suffix('\n')) {
        match line.strip_prefix("// thread ").and_then(|it| it.parse().ok()) {
            Some(number) => thread = number,
            None if line.starts_with("vk") && !line.ends_with(" ->") => *all.entry(thread).or_insert(0) += 1,
            None => {}
        }
    }
    all
}

/// A full disk ends the trace and not the program.
#[test]
fn a_program_goes_on_when_its_trace_cannot_grow() {
    let stage = TestEnvironment::new("capture-full");
    let mut command = stage.lavascope();
    command.args(["capture", "-o", "trace.lava", "--null-driver", "--", "sh", "-c"]);
    // Files may not become larger than a hundred kilobytes or two, as the shell counts; without a signal about that.
    let script =
        r#"trap "" XFSZ; ulimit -f 200; "$0" threads --frames 1000 --threads 3 --no-check && echo came to its end"#;
    let result = output(command.arg(script).arg(samples()));
    let said = text(&result.stderr);
    assert!(text(&result.stdout).ends_with("came to its end\n"), "{said}");
    assert_eq!(result.status.code(), Some(2), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("trace.lava: the capture ends early, and is whole up to there"), "{said}");
    assert!(!stage.folder.join("trace.lava.tail").exists());
    let info = info(&stage, "trace.lava");
    assert_eq!((&info["order"]["is_acyclic"], info["damage"].as_array().map(Vec::len)), (&true.into(), Some(0)));
    assert!(info["calls"].as_u64().is_some_and(|it| (1000..190_000).contains(&it)), "{}", info["calls"]);
}

/// The process that a process started.
fn wait_for_child(parent: u32) -> u32 {
    let path = format!("/proc/{parent}/task/{parent}/children");
    wait_for("a child process", || {
        let children = std::fs::read_to_string(&path).unwrap_or_default();
        children.split_whitespace().next().and_then(|it| it.parse().ok())
    })
}

#[test]
fn calls_are_printed_with_what_they_come_after() {
    let stage = TestEnvironment::new("capture-print");
    let mut command = stage.lavascope();
    command.args(["capture", "-o", "trace.lava", "--null-driver", "--"]).arg(samples());
    succeed(command.args(["threads-handoff", "--frames", "20", "--threads", "3", "--no-check"]));
    let print =
        |arguments: &[&str]| text(&succeed(stage.lavascope().arg("print").arg("trace.lava").args(arguments)).stdout);
    let all = print(&[]);
    assert!(all.contains("// after call "), "threads hand things to each other");
    assert!(all.starts_with("// call 1 of thread 1: frame 0, "));
    let first = print(&["1"]);
    assert!(all.starts_with(&first) && first.contains("vkCreateInstance ->\n"), "{first}");
    let second = print(&["--thread", "2", "--json"]);
    let lines: Vec<Value> = second.lines().map(|it| serde_json::from_str(it).expect("JSON")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|it| it["thread"] == 2));
}

/// What a program is made of can be read off its trace.
#[test]
fn a_trace_says_what_it_was_made_on_and_with() {
    let stage = TestEnvironment::new("capture-facts");
    let mut command = stage.lavascope();
    command.args(["capture", "-o", "trace.lava", "--null-driver", "--"]).arg(samples());
    succeed(command.args(["triangle-dynamic", "--no-check"]));
    let info = info(&stage, "trace.lava");
    assert_eq!(info["devices"].as_array().map(Vec::len), Some(1), "{info:#}");
    assert!(info["devices"][0]["limits"]["maxPushConstantsSize"].as_u64().is_some_and(|it| it >= 128));
    let has = |list: &str, name: &str| info[list].as_array().is_some_and(|it| it.iter().any(|it| it == name));
    assert!(has("features", "dynamicRendering") && has("features", "synchronization2"), "{}", info["features"]);
    assert!(!has("features", "geometryShader"));
    let memory: u64 = info["memory"].as_object().expect("by type").values().filter_map(|it| it["bytes"].as_u64()).sum();
    assert!(memory > 0, "{}", info["memory"]);
    let shown = text(&succeed(stage.lavascope().args(["info", "trace.lava"])).stdout);
    assert!(shown.contains("memory of type ") && shown.contains("feature "), "{shown}");
}

#[test]
fn what_is_no_trace_is_reported() {
    let stage = TestEnvironment::new("capture-bad");
    std::fs::write(stage.folder.join("bad.lava"), "something else").expect("written");
    for command in ["info", "print"] {
        let result = output(stage.lavascope().args([command, "bad.lava"]));
        assert_eq!(result.status.code(), Some(2));
        assert!(text(&result.stderr).contains("bad.lava: this is no trace of Lavascope"), "{}", text(&result.stderr));
    }
    let result =
        output(stage.lavascope().args(["capture", "-o", "no/such/folder.lava", "--"]).arg(samples()).arg("list"));
    assert_eq!(result.status.code(), Some(2));
    assert!(text(&result.stderr).contains("no/such/folder.lava cannot be written"), "{}", text(&result.stderr));
}

/// What a program writes into memory is shown by `info` and `print`, before the submission that reads it.
#[test]
fn what_the_host_wrote_is_in_the_trace() {
    let stage = TestEnvironment::new("capture-memory");
    let mut command = stage.lavascope();
    command.args(["capture", "-o", "trace.lava", "--"]).arg(samples());
    succeed(command.arg("mapped"));
    let info = info(&stage, "trace.lava");
    assert!(info["memory_written"]["bytes"].as_u64() > Some(0), "{info:#}");
    let print = |arguments: &[&str]| {
        let result = succeed(stage.lavascope().arg("print").arg("trace.lava").args(arguments));
        text(&result.stdout)
    };
    let all = print(&[]);
    let wrote = all.find("// new before call ").expect("it is printed");
    assert!(all[wrote..].contains("vkQueueSubmit"), "before a submission");
    assert!(!all.contains("no call that this version knows"), "{all}");
    let lines = print(&["--json"]);
    let notes = lines.lines().map(|it| serde_json::from_str::<Value>(it).expect("JSON"));
    let bytes: u64 = notes
        .filter(|it| it["kind"] == "memory")
        .flat_map(|it| it["runs"].as_array().cloned().unwrap_or_default())
        .filter_map(|it| it["bytes"].as_u64())
        .sum();
    assert_eq!(Some(bytes), info["memory_written"]["bytes"].as_u64());
}
