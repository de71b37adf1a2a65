//! Call stacks of a program in C, and stops in gdb: at the call that completes a hazard, and at the first access.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::text;
use crate::test_environment::{TestEnvironment, succeed};

/// What `gdb` does: start the program, show where it stopped, and go on past one more stop.
const IN_GDB: [&str; 13] = [
    "-nx",
    "-batch",
    "-iex",
    "set debuginfod enabled off",
    "-ex",
    "run",
    "-ex",
    "bt",
    "-ex",
    "continue",
    "-ex",
    "continue",
    "--args",
];

fn compiled(stage: &TestEnvironment, options: &[&str]) -> PathBuf {
    let program = stage.folder.join("counters");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/debugger.c");
    let mut command = Command::new("cc");
    command.args(["-Wall", "-Werror", "-g"]).args(options).arg(source).arg("-o").arg(&program);
    succeed(command.args(["-lvulkan", "-lpthread"]));
    program
}

/// The report of a run that finds the hazard.
fn report(stage: &TestEnvironment, program: &Path, options: &[&str], argument: &str) -> Value {
    let options = [&["--null-driver", "--sync", "--json", "report.json"], options].concat();
    let output = stage.under_layer(&options, program).arg(argument).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{argument}: {}", text(&output.stderr));
    serde_json::from_slice(&std::fs::read(stage.folder.join("report.json")).expect("a report")).expect("JSON")
}

/// Whether a text is one of the values.
fn has_text(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Array(all) => all.iter().any(|it| has_text(it, wanted)),
        Value::Object(all) => all.values().any(|it| has_text(it, wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The first text that has this key.
fn text_of<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    match value {
        Value::Object(all) => match all.get(key).and_then(Value::as_str) {
            Some(text) => Some(text),
            None => all.values().find_map(|it| text_of(it, key)),
        },
        Value::Array(all) => all.iter().find_map(|it| text_of(it, key)),
        _ => None,
    }
}

fn assert_functions(found: &Value, functions: &[&str], absent: &[&str]) {
    for function in functions {
        assert!(has_text(found, function), "no {function} in {found:#}");
    }
    for function in absent {
        assert!(!has_text(found, function), "{function} in {found:#}");
    }
}

#[test]
fn programs_in_c_have_call_stacks_with_and_without_frame_pointers() {
    let stage = TestEnvironment::new("stacks-c");
    for options in [&["-O1", "-fomit-frame-pointer"][..], &["-O1", "-fno-omit-frame-pointer"], &["-O0"], &["-O2"]] {
        let program = compiled(&stage, options);
        let found = report(&stage, &program, &[], "plain");
        assert_functions(&found, &["clear_counters", "add_counters", "record_frame", "main"], &[]);
        let found = report(&stage, &program, &["--inline"], "lines");
        let outer = "record_from_many_lines";
        assert_functions(&found, &["clear_counters", "add_counters", "record_frame", outer, "main"], &[]);
    }
}

#[test]
fn stacks_of_every_kind_are_walked_as_far_as_that_is_safe() {
    let stage = TestEnvironment::new("stacks-kinds");
    let program = compiled(&stage, &["-O1", "-fomit-frame-pointer"]);
    let known = ["clear_counters", "add_counters", "record_frame"];
    // Generated code has no unwind tables, which ends the walk.
    assert_functions(&report(&stage, &program, &[], "generated"), &known, &["main"]);
    // How far the stack of a fiber goes is unknown, so only the innermost frame is kept.
    assert_functions(&report(&stage, &program, &[], "fiber"), &known[..2], &["record_frame"]);
    assert_functions(&report(&stage, &program, &[], "thread"), &[&known[..], &["run_thread"]].concat(), &["main"]);
    assert_functions(&report(&stage, &program, &[], "array"), &[&known[..], &["main"]].concat(), &[]);
}

#[test]
fn the_setting_says_how_much_of_a_stack_is_kept() {
    let stage = TestEnvironment::new("stacks-setting");
    let program = compiled(&stage, &["-O1"]);
    let (innermost, outer) = (["clear_counters", "add_counters"], ["record_frame", "main"]);
    let found = |option: &str| report(&stage, &program, &[option], "plain");
    assert_functions(&found("--backtrace"), &[innermost, outer].concat(), &[]);
    assert_functions(&found("--backtrace=full"), &[innermost, outer].concat(), &[]);
    assert_functions(&found("--backtrace=caller"), &innermost, &outer);
    assert_functions(&found("--backtrace=off"), &[], &[innermost, outer].concat());
}

/// The frame of a function in a backtrace of gdb: `#2  0x0000 in add_counters () at …`.
fn frame_of(backtrace: &str, function: &str) -> Option<usize> {
    let frames = backtrace.lines().filter(|it| it.starts_with('#'));
    let has_function = |it: &&str| it.split_whitespace().any(|word| word == function);
    let frame = frames.into_iter().find(has_function)?;
    frame[1..].split_whitespace().next()?.parse().ok()
}

fn assert_stopped_in(said: &str, function: &str) {
    assert!(said.contains("SIGTRAP"), "{said}");
    let (message, backtrace) = said.split_once("SIGTRAP").expect("checked above");
    assert!(message.contains("lavascope: stop: "), "the message comes first: {said}");
    assert_eq!(frame_of(backtrace, "lavascope_break_here"), Some(0), "{said}");
    let frame = frame_of(backtrace, function);
    assert!(frame.is_some_and(|it| it <= 2), "{function} is frame {frame:?}: {said}");
    assert!(backtrace.contains("exited normally"), "the program goes on: {said}");
}

#[test]
fn a_debugger_stops_at_the_call_that_completes_a_hazard() {
    let stage = TestEnvironment::new("break");
    let program = compiled(&stage, &["-O1"]);
    let mut command = stage.under_layer(&["--null-driver", "--sync", "--break"], "gdb");
    let output = command.args(IN_GDB).arg(&program).output().expect("gdb is there: `apt-get install gdb`");
    let said = text(&[&output.stdout[..], &output.stderr].concat());
    assert_stopped_in(&merged(&said), "add_counters");
}

/// gdb and the program write to different streams, so the lines of the program come first.
fn merged(said: &str) -> String {
    let (own, other): (Vec<&str>, Vec<&str>) = said.lines().partition(|it| it.starts_with("lavascope: stop: "));
    [own, other].concat().join("\n")
}

#[test]
fn a_debugger_stops_at_the_first_access_of_a_known_finding() {
    let stage = TestEnvironment::new("break-first");
    let program = compiled(&stage, &["-O1"]);
    let found = report(&stage, &program, &[], "plain");
    let key = |name: &str| text_of(&found, name).unwrap_or_else(|| panic!("no {name}: {found:#}"));
    let fingerprint = format!("{}-{}", key("fingerprint"), key("first_access"));
    let mut command = stage.under_layer(&["--null-driver", "--sync", "--break-first", &fingerprint], "gdb");
    let output = command.args(IN_GDB).arg(&program).output().expect("gdb is there: `apt-get install gdb`");
    let said = merged(&text(&[&output.stdout[..], &output.stderr].concat()));
    assert!(said.contains("stop: the first access of a finding: vkCmdFillBuffer accesses VkBuffer#0"), "{said}");
    assert_stopped_in(&said, "clear_counters");
    // Where it is never made, one line says so.
    let other = format!("{}-{}", key("fingerprint"), "0123456789ab");
    let output =
        stage.under_layer(&["--null-driver", "--sync", "--break-first", &other], &program).output().expect("it starts");
    let said = text(&output.stderr);
    assert_eq!(said.matches("it was never stopped").count(), 1, "{said}");
    let output = stage.under_layer(&["--sync", "--break-first", "0123"], &program).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_debugger_around_a_program_with_the_settings_stops_too() {
    let stage = TestEnvironment::new("break-env");
    let program = compiled(&stage, &["-O1"]);
    let variables = succeed(stage.lavascope().args(["env", "--null-driver"]));
    let script = format!("{}\nexec gdb \"$@\"", text(&variables.stdout));
    let mut command = stage.bare("sh");
    command.args(["-c", &script, "sh"]).args(IN_GDB).arg(&program);
    let output = command.env("LAVASCOPE_BREAK_ON_HAZARD", "1").output().expect("a shell");
    let said = merged(&text(&[&output.stdout[..], &output.stderr].concat()));
    assert_stopped_in(&said, "add_counters");
}

#[test]
fn without_a_debugger_one_line_says_how_to_start_one() {
    let stage = TestEnvironment::new("break-alone");
    let program = compiled(&stage, &["-O1"]);
    let output =
        stage.under_layer(&["--null-driver", "--sync", "--break"], &program).arg("lines").output().expect("it starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("no debugger is attached").count(), 1, "{said}");
    assert!(said.contains("gdb --args") && said.contains("lldb --"), "{said}");
}
