//! Performances in processes of their own: the loader, the layer and the driver are set by the environment, and one
//! validator does not keep all findings apart.

use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lavascope_scenario_live::{LayerLibrary, LiveEnvironment, LiveGpu};
use serde_json::{Value, json};

use crate::scenarios::{LiveVariant, Mode, ScenarioOutcome, ScenarioResult, ScenarioRunner, queue_flags, scenarios};

const LAYER: &CStr = c"VK_LAYER_LAVASCOPE_inspect";
/// Set in a child: the part of the scenarios that it performs, as two numbers.
const CHILD: &str = "ROUTE_TEST_PART";
/// Only scenarios with this in their names, for debugging.
pub(crate) const ONLY: &str = "ROUTE_TEST_ONLY";
/// The folder for further outputs of the layer.
const REPORT: &str = "report";
/// So many scenarios are performed by one process: a validator keeps a thousand findings apart, and explains two hundred.
const SCENARIOS_MAX: usize = 60;

/// Performs all scenarios in one way, from the test of this name. In a child it does not return.
pub(crate) fn run(test: &str, variant: LiveVariant, mode: Mode) -> Vec<ScenarioResult> {
    let only = std::env::var(ONLY).unwrap_or_default();
    let all: Vec<(String, String)> = scenarios().into_iter().filter(|it| it.0.contains(&only)).collect();
    if let Ok(part) = std::env::var(CHILD) {
        let at: usize = part.parse().expect("a number");
        perform(variant, mode, all.chunks(SCENARIOS_MAX).nth(at).expect("there are so many parts"));
        std::process::exit(0);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join(REPORT)).expect("the build folder can be written");
    let environment = write_environment(&folder);
    let mut lines = Vec::new();
    // One after the other: several tests run at the same time already.
    for at in 0..all.len().div_ceil(SCENARIOS_MAX) {
        let child = start_child(test, at, mode, &folder, &environment);
        let output = child.wait_with_output().expect("a child ends");
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
        assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
        assert!(!stderr.contains("bug"), "{stderr}");
        lines.extend(stdout.lines().filter_map(|it| it.strip_prefix(OUTCOME_PREFIX)).map(parse_result));
    }
    check_reports(&folder.join(REPORT));
    let _ = fs::remove_dir_all(&folder);
    assert!(lines.len() >= all.len() || variant == LiveVariant::Variations, "every scenario has an outcome");
    lines
}

/// Stands before each outcome in the output of a child.
const OUTCOME_PREFIX: &str = "outcome ";

fn perform(variant: LiveVariant, mode: Mode, scenarios: &[(String, String)]) {
    let mut actor = ScenarioRunner::new(LiveGpu::open(&[LAYER]).expect("the null driver and our layer"), variant, mode);
    for (name, text) in scenarios {
        for line in actor.run(name, text) {
            let (kind, text) = match line.outcome {
                ScenarioOutcome::AsExpected => ("told", String::new()),
                ScenarioOutcome::Unsupported(why) => ("unable", why),
                ScenarioOutcome::Wrong(text) => ("wrong", text),
            };
            println!("\n{OUTCOME_PREFIX}{}", json!({ "name": line.name, "kind": kind, "text": text }));
        }
    }
}

/// The layer found nothing wrong with itself, and followed all calls; what descriptors in buffers lead to is in no
/// record.
fn check_reports(folder: &Path) {
    const KNOWN: &str = "what is reached through descriptors that stand in buffers";
    for file in fs::read_dir(folder).expect("the folder is ours") {
        let text = fs::read_to_string(file.expect("the folder is ours").path()).expect("a report is text");
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("a line is JSON");
            // With so many findings in one process, later ones have no fix; a note reports that.
            let is_note = line.pointer("/problem/severity").is_some_and(|it| it == "note");
            for kind in ["bug", "problem", "unknown"] {
                assert!(is_note || line.get(kind).is_none(), "{line}");
            }
            let missing = line.get("not-followed").and_then(Value::as_array);
            for missing_item in missing.into_iter().flatten() {
                assert_eq!(missing_item["reason"], KNOWN, "{missing_item}");
            }
        }
    }
}

fn parse_result(text: &str) -> ScenarioResult {
    let value: Value = serde_json::from_str(text).expect("an outcome");
    let of = |key: &str| value[key].as_str().expect("a text").to_owned();
    let outcome = match of("kind").as_str() {
        "told" => ScenarioOutcome::AsExpected,
        "unable" => ScenarioOutcome::Unsupported(of("text")),
        _ => ScenarioOutcome::Wrong(of("text")),
    };
    ScenarioResult { name: of("name"), outcome }
}

fn start_child(test: &str, at: usize, mode: Mode, folder: &Path, environment: &LiveEnvironment) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("a program knows where it is"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    environment.apply(&mut command);
    command.env(CHILD, at.to_string()).env("LAVASCOPE_REPORT", folder.join(REPORT));
    command.env("LAVASCOPE_SYNC", "on").env("LAVASCOPE_POSSIBLE", "on").env("LAVASCOPE_SYNC_MODE", mode.word());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program that runs can be run again")
}

fn write_environment(folder: &Path) -> LiveEnvironment {
    let libraries = std::env::current_exe().expect("a program knows where it is");
    let library = |name: &str| -> PathBuf { libraries.with_file_name(name) };
    let (ours, driver) = (library("libVkLayer_lavascope.so"), library("liblavascope_null_driver.so"));
    let layer = LayerLibrary { name: LAYER, library: &ours };
    LiveEnvironment::write(folder, layer, &driver, &queue_flags()).expect("the folder is ours")
}
