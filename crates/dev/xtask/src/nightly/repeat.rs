//! One test, many times, each in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::StepCounts;
use crate::setup::process::cargo;

/// Which test, and how often.
#[derive(Clone, Copy)]
pub(super) struct RepeatedTest {
    pub(super) package: &'static str,
    /// A target of tests, or `lib` for those inside of the library.
    pub(super) target: &'static str,
    /// With its module.
    pub(super) test: &'static str,
    pub(super) runs: u64,
    /// Set for each run.
    pub(super) variables: &'static [(&'static str, &'static str)],
}

/// Runs it as often as it says, or until the time is over.
pub(super) fn run(root: &Path, repeated: &RepeatedTest, limit: Option<Duration>) -> Result<StepCounts> {
    let program = build(root, repeated)?;
    let folder = folder_of(root, repeated.package)?;
    let (mut outcome, begin) = (StepCounts::default(), Instant::now());
    for number in 1..=repeated.runs {
        let mut command = Command::new(&program);
        command.args([repeated.test, "--exact"]).current_dir(&folder).envs(repeated.variables.iter().copied());
        let output = command.output().with_context(|| format!("{} cannot be started", program.display()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(!said.contains("running 0 tests"), "no test has the name {}", repeated.test);
        outcome.count += 1;
        if !output.status.success() {
            outcome.failed += 1;
            println!("run {number}: {}\n{said}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        if number % 100 == 0 {
            println!("{number} of {} runs, {} failed", repeated.runs, outcome.failed);
        }
        if limit.is_some_and(|it| begin.elapsed() >= it) {
            break;
        }
    }
    Ok(outcome)
}

/// The folder of a package, which is in one of the groups.
fn folder_of(root: &Path, package: &str) -> Result<PathBuf> {
    let name = package.trim_start_matches("lavascope-");
    let groups = root.join("crates").read_dir().context("the folder `crates` cannot be read")?;
    let found = groups.flatten().map(|it| it.path().join(name)).find(|it| it.join("Cargo.toml").is_file());
    found.with_context(|| format!("no folder of `crates` has a crate {name}"))
}

/// Builds the tests, and finds their program.
fn build(root: &Path, repeated: &RepeatedTest) -> Result<PathBuf> {
    let mut command = Command::new(cargo());
    command.args(["test", "--no-run", "--message-format", "json-render-diagnostics", "--package", repeated.package]);
    if repeated.target == "lib" {
        command.arg("--lib")
    } else {
        command.args(["--test", repeated.target])
    };
    let output = command.current_dir(root).stderr(std::process::Stdio::inherit()).output();
    let output = output.context("cargo cannot be run")?;
    ensure!(output.status.success(), "the tests of {} cannot be built", repeated.package);
    let text = String::from_utf8_lossy(&output.stdout);
    executable(&text).with_context(|| format!("cargo names no program of tests of {}", repeated.package))
}

/// The program of tests in what cargo says of a build.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let mut tests = messages.filter(|it| it["profile"]["test"] == true);
    tests.find_map(|it| it["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_in_its_group() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        for package in ["lavascope-cli", "lavascope-layer"] {
            assert!(folder_of(&root, package).is_ok_and(|it| it.join("src").is_dir()), "{package}");
        }
        assert!(folder_of(&root, "lavascope-nothing").is_err());
    }

    #[test]
    fn the_program_of_tests_is_found_among_what_is_built() {
        let messages = concat!(
            "{\"profile\":{\"test\":false},\"executable\":\"target/debug/a\"}\n",
            "{\"reason\":\"build-finished\"}\nno json\n",
            "{\"profile\":{\"test\":true},\"executable\":\"target/debug/deps/b\"}\n",
        );
        assert_eq!(executable(messages), Some("target/debug/deps/b".into()));
        assert_eq!(executable("{\"reason\":\"build-finished\"}"), None);
    }
}
