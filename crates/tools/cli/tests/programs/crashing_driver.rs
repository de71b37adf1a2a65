//! Drivers whose compiler cannot take a shader with checks: the program gets its own shader, and after a crash the next
//! run does so, too. On the null driver, which fails or crashes on demand.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{output, text};
use crate::test_environment::{TestEnvironment, samples};

/// A compute pipeline, and shader objects: with the source file of a shader that has something to check.
const SAMPLES: [(&str, &str); 2] =
    [("compute", "scan.comp (compute)"), ("fault-bounds-object", "double.comp (compute)")];

const REJECTED: [&str; 2] = ["the driver creates a pipeline only without", "the driver creates a shader object only"];
const CRASHED: &str = "the driver crashed in an earlier run when it compiled";

/// A sample under the layer on the null driver, which does not compute: the sample may complain about its results.
fn run(stage: &TestEnvironment, compiler: &str, state: &Path, sample: &str) -> Command {
    let mut command = stage.lavascope();
    command.args(["run", "--null-driver", "--no-sync", "--gpu", "--json", "report.json", "--"]).arg(samples());
    command.arg(sample).env("LAVASCOPE_NULL_COMPILE", compiler).env("XDG_STATE_HOME", state);
    command
}

/// What was written to standard error, with words that are one space apart.
fn said(command: &mut Command) -> String {
    text(&output(command).stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The numbers of checked and of all shaders of the last run.
fn checked(stage: &TestEnvironment) -> (u64, u64) {
    let shaders = &stage.report().0["coverage"]["shaders"];
    (shaders["checked"].as_u64().expect("a number"), shaders["seen"].as_u64().expect("a number"))
}

fn list(state: &Path) -> PathBuf {
    state.join("lavascope/crashed-shaders")
}

#[test]
fn a_driver_that_rejects_checks_gets_the_shader_of_the_program() {
    let stage = TestEnvironment::new("driver-rejects");
    let state = stage.folder.join("state");
    for ((sample, _), reason) in SAMPLES.into_iter().zip(REJECTED) {
        said(&mut run(&stage, "", &state, sample));
        let (seen, all) = checked(&stage);
        assert!(seen > 0, "{sample}: the sample has nothing to check");
        let said = said(&mut run(&stage, "fail", &state, sample));
        assert!(said.contains("warning: setting gpu: ") && said.contains(reason), "{sample}: {said}");
        assert_eq!(checked(&stage), (0, all), "{sample}: {said}");
    }
    assert!(!list(&state).exists(), "an error is no crash");
}

#[test]
fn shaders_at_which_the_driver_crashed_are_not_checked_by_the_next_run() {
    for (sample, name) in SAMPLES {
        let stage = TestEnvironment::new(&format!("driver-crashes-{sample}"));
        let state = stage.folder.join("state");
        let _ = std::fs::remove_dir_all(&state);
        let crashed = output(&mut run(&stage, "crash", &state, sample));
        assert_eq!(crashed.status.code(), Some(134), "{sample}: {crashed:?}");
        let stderr = text(&crashed.stderr);
        assert!(
            stderr.contains("the program crashed while the driver compiled these shaders with checks:\n"),
            "{stderr}"
        );
        assert!(stderr.contains(&format!("\n  {name}\n")) && stderr.contains("--shaders REGEX"), "{stderr}");
        let lines = std::fs::read_to_string(list(&state)).expect("a list");
        assert!(lines.lines().count() == 1 && lines.ends_with(&format!(" {name}\n")), "{lines}");

        let said = said(&mut run(&stage, "crash", &state, sample));
        assert!(said.contains("warning: setting gpu: ") && said.contains(CRASHED), "{sample}: {said}");
        assert_eq!(checked(&stage).0, 0, "{sample}: {said}");
        assert_eq!(std::fs::read_to_string(list(&state)).expect("a list"), lines);
    }
}

#[test]
fn a_crash_behind_a_shell_and_a_list_that_cannot_be_written_are_reported() {
    let stage = TestEnvironment::new("driver-crashes-elsewhere");
    let state = stage.folder.join("state");
    let _ = std::fs::remove_dir_all(&state);
    let mut shell = stage.lavascope();
    let script = format!("{} compute; exit $?", samples().display());
    shell.args(["run", "--null-driver", "--no-sync", "--gpu", "--", "sh", "-c", &script]);
    shell.env("LAVASCOPE_NULL_COMPILE", "crash").env("XDG_STATE_HOME", &state);
    let stderr = said(&mut shell);
    assert!(stderr.contains("compiled these shaders with checks: scan.comp (compute)"), "{stderr}");
    assert!(list(&state).exists());

    // A file in the place of the folder.
    let file = stage.folder.join("no-folder");
    std::fs::write(&file, "").expect("it can be written");
    let stderr = said(&mut run(&stage, "crash", &file, "compute"));
    assert!(stderr.contains("The next run will crash again, because"), "{stderr}");
    assert!(stderr.contains("scan.comp (compute)") && stderr.contains("use `--shaders REGEX`"), "{stderr}");
}

/// Two processes of a run are compiling when one of them crashes: which one is not known.
#[test]
fn several_processes_that_compile_are_not_judged() {
    let stage = TestEnvironment::new("driver-crashes-twice");
    let state = stage.folder.join("state");
    let _ = std::fs::remove_dir_all(&state);
    let mut shell = stage.lavascope();
    let sample = samples();
    let script = format!("{0} compute & {0} compute; code=$?; wait; exit $code", sample.display());
    shell.args(["run", "--null-driver", "--no-sync", "--gpu", "--", "sh", "-c", &script]);
    shell.env("LAVASCOPE_NULL_COMPILE", "crash").env("XDG_STATE_HOME", &state);
    let stderr = said(&mut shell);
    assert!(stderr.contains("the program ended while the driver compiled these shaders"), "{stderr}");
    assert!(!list(&state).exists());
}
