//! Where a program runs: in an empty folder, on lavapipe unless told otherwise, bare or under the layer.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lavascope_test_support::{lavapipe, null_driver_library, set_driver, write_null_driver_manifest};
use serde_json::Value;

use crate::common::{home, lavascope, output, text};

/// What a user of these tests may have set, and what would change what they see.
const FOREIGN_VARIABLES: [&str; 14] = [
    "DISPLAY",
    "LAVASCOPE_CAPTURE",
    "LAVASCOPE_NULL_EXECUTE",
    "LAVASCOPE_NULL_PROFILE",
    "LAVASCOPE_PRINT",
    "LAVASCOPE_REPORT",
    "LAVASCOPE_SAMPLE_DEVICE",
    "LAVASCOPE_STATS",
    "LAVASCOPE_SYNC",
    "LAVASCOPE_SYNC_MODE",
    "VK_LAYER_SETTINGS_PATH",
    "VK_LOADER_LAYERS_DISABLE",
    "VK_LOADER_LAYERS_ENABLE",
    "WAYLAND_DISPLAY",
];

pub(crate) struct TestEnvironment {
    pub(crate) folder: PathBuf,
}

/// A program that ran under `run --stats --json`.
pub(crate) struct RunReport(pub(crate) Value);

impl TestEnvironment {
    pub(crate) fn new(name: &str) -> TestEnvironment {
        TestEnvironment { folder: home(&format!("programs-{name}")) }
    }

    /// The program alone, in the same surroundings as under the layer.
    pub(crate) fn bare(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, value) in self.lavascope().get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(&self.folder);
        command
    }

    /// `lavascope run` with such options, which has no checks but those of the options, and says nothing of a clean run;
    /// what is added to the command are arguments of the program.
    pub(crate) fn under_layer(&self, options: &[&str], program: impl AsRef<OsStr>) -> Command {
        let mut command = self.lavascope();
        let is_bare = !options.iter().any(|it| *it == "--sync" || it.starts_with("--break"));
        command.args(["run", "--quiet"]).args(is_bare.then_some("--no-sync")).args(options).arg("--").arg(program);
        command
    }

    /// As [`TestEnvironment::under_layer`], and what [`TestEnvironment::report`] reads is written.
    pub(crate) fn under_layer_with_report(&self, options: &[&str], program: impl AsRef<OsStr>) -> Command {
        let all = [&["--stats", "--json", "report.json"], options].concat();
        self.under_layer(&all, program)
    }

    /// Of the last [`TestEnvironment::under_layer_with_report`] command that ended.
    pub(crate) fn report(&self) -> RunReport {
        let bytes = std::fs::read(self.folder.join("report.json")).expect("a report");
        RunReport(serde_json::from_slice(&bytes).expect("JSON"))
    }

    /// The manifest of the null driver, for programs that are not under the layer.
    pub(crate) fn null_driver(&self) -> PathBuf {
        write_null_driver_manifest(&self.folder)
    }

    pub(crate) fn lavascope(&self) -> Command {
        let mut command = lavascope(&self.folder);
        FOREIGN_VARIABLES.iter().for_each(|text| {
            command.env_remove(text);
        });
        command.env("LAVASCOPE_NULL_DRIVER_LIBRARY", null_driver_library());
        command.env("XDG_STATE_HOME", self.folder.join("state"));
        set_driver(&mut command, lavapipe()).current_dir(&self.folder);
        command
    }
}

impl RunReport {
    /// One process ran to its end, and nobody has a complaint.
    pub(crate) fn assert_clean(&self, name: &str) {
        let document = &self.0;
        let processes = document["processes"].as_array().expect("a list");
        assert_eq!(processes.len(), 1, "{name}: {document:#}");
        assert_eq!(processes[0]["has_ended"], true, "{name}: {document:#}");
        for list in ["findings", "bugs", "problems", "unknown_commands"] {
            assert_eq!(processes[0][list].as_array().map(Vec::len), Some(0), "{name}: {document:#}");
        }
        assert!(self.calls() > 0, "{name}: {document:#}");
    }

    /// The same for a run without statistics.
    pub(crate) fn assert_nothing_is_wrong(&self, name: &str) {
        for list in ["findings", "bugs", "problems"] {
            assert_eq!(self.0["processes"][0][list].as_array().map_or(0, Vec::len), 0, "{name}: {:#}", self.0);
        }
        assert_eq!(self.0["findings"].as_array().map(Vec::len), Some(0), "{name}: {:#}", self.0);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.0["stats"]["calls"].as_u64().expect("a number")
    }

    pub(crate) fn threads(&self) -> u64 {
        self.0["stats"]["threads"].as_u64().expect("a number")
    }

    /// How often a command was called.
    pub(crate) fn calls_of(&self, command: &str) -> u64 {
        self.0["stats"]["by_command"][command].as_u64().unwrap_or(0)
    }
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = output(command);
    let said = text(&[&output.stdout[..], &output.stderr].concat());
    assert_eq!(output.status.code(), Some(0), "{command:?}\n{said}");
    output
}

/// The JSON of a replay without differences. Exit code 2 is right only where nothing was compared.
pub(crate) fn verified(command: &mut Command) -> Value {
    let output = output(command);
    let said = text(&[&output.stdout[..], &output.stderr].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let expected = if document["not_compared"].is_string() { 2 } else { 0 };
    assert_eq!(output.status.code(), Some(expected), "{command:?}\n{said}");
    document
}

/// The program with the samples, from this build.
pub(crate) fn samples() -> PathBuf {
    let path = beside("lavascope-samples");
    assert!(path.is_file(), "{} is missing: `cargo build --package lavascope-samples` makes it", path.display());
    path
}

/// Every sample's name.
pub(crate) fn names() -> Vec<String> {
    let listed = succeed(Command::new(samples()).arg("list"));
    text(&listed.stdout).lines().filter_map(|it| it.split_whitespace().next()).map(str::to_owned).collect()
}

fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_lavascope")).with_file_name(name)
}

/// A text for people without its line breaks: continued lines are indented. Where they break depends on paths.
pub(crate) fn unwrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if !out.is_empty() {
            out.push(if line.starts_with("  ") { ' ' } else { '\n' });
        }
        out.push_str(line.trim_start());
    }
    out + "\n"
}
