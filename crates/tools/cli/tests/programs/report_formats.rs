//! The reports of real runs in every format, and what they have in common.

use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde_json::Value;

use crate::common::{output, text};
use crate::test_environment::{TestEnvironment, samples, succeed};

const FORMATS: [&str; 8] = ["text", "short", "json", "sarif", "junit", "github", "markdown", "html"];

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs").join(name);
    fs::read_to_string(path).expect("a document")
}

fn read(stage: &TestEnvironment, name: &str) -> String {
    fs::read_to_string(stage.folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// A run of a sample that writes each format into a file, `report.FORMAT`.
fn run_with_all_formats(stage: &TestEnvironment, sample: &str) -> String {
    let options: Vec<String> = FORMATS.iter().map(|it| format!("--format={it}=report.{it}")).collect();
    let options: Vec<&str> = ["--sync"].into_iter().chain(options.iter().map(String::as_str)).collect();
    let mut command = stage.under_layer(&options, samples());
    let done = output(command.arg(sample).env_remove("GITHUB_STEP_SUMMARY"));
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    text(&done.stderr)
}

#[test]
fn all_formats_are_written_at_once_and_again_from_json() {
    let stage = TestEnvironment::new("report-formats");
    let said = run_with_all_formats(&stage, "fault-barrier-stage");
    let shown = read(&stage, "report.text");
    let has_coverage = shown.contains("\nlavascope: 1 error\nlavascope: 1 submit, ");
    assert!(said.starts_with(&shown) && has_coverage, "{said}\n---\n{shown}");
    for format in FORMATS {
        let again = succeed(stage.lavascope().args(["report", "report.json", "--format", format]));
        // Annotations do not take the place of the text.
        let before = if format == "github" { shown.as_str() } else { "" };
        assert_eq!(text(&again.stdout), format!("{before}{}", read(&stage, &format!("report.{format}"))), "{format}");
    }
}

#[test]
fn json_of_every_command_obeys_the_schema() {
    let stage = TestEnvironment::new("report-schema");
    let schema = json(&document("findings.schema.json"));
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    run_with_all_formats(&stage, "fault-barrier-stage");
    let mut documents = vec![read(&stage, "report.json")];
    succeed(stage.lavascope().args(["capture", "-o", "trace.lava", "--"]).arg(samples()).arg("fault-barrier-stage"));
    let mut add = |arguments: &[&str]| {
        let done = output(stage.lavascope().args(arguments));
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {}", text(&done.stderr));
        documents.push(text(&done.stdout));
    };
    add(&["check", "trace.lava", "--json"]);
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/hazard.vks");
    add(&["check", scenario.to_str().expect("a path"), "--needless", "--format", "json"]);
    add(&["replay", "trace.lava", "--validate", "sync", "--format", "json=replay.json"]);
    documents.pop();
    documents.push(read(&stage, "replay.json"));
    let fingerprint = |it: &str| json(it)["findings"][0]["fingerprint"].clone();
    for document in &documents {
        let errors: Vec<String> = validator.iter_errors(&json(document)).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{}\n{document}", errors.join("\n"));
    }
    assert_eq!(fingerprint(&documents[0]), fingerprint(&documents[1]), "of a run and of a check of its capture");
}

#[test]
fn editors_and_services_find_the_source_lines() {
    let stage = TestEnvironment::new("report-lines");
    run_with_all_formats(&stage, "fault-barrier-stage");
    let finding = &json(&read(&stage, "report.json"))["findings"][0];
    let frames = finding["accesses"][0]["stack"]["frames"].as_array().expect("frames");
    let own = frames.iter().find(|it| it["is_wrapper"] == false).expect("a frame");
    let (file, line) = (own["source"]["file"].as_str().expect("a file"), own["source"]["line"].as_u64());
    assert!(file.ends_with("samples/src/faults/synchronization/barriers.rs"), "{finding:#}");

    // The problem matcher of `docs/ci.md`.
    let page = document("ci.md");
    let (_, rest) = page.split_once("```json\n").expect("a task");
    let task = json(rest.split("```").next().expect("its end"));
    let pattern = &task["tasks"][0]["problemMatcher"]["pattern"];
    let regex = Regex::new(pattern["regexp"].as_str().expect("an expression")).expect("an expression");
    let short = read(&stage, "report.short");
    let found = regex.captures(short.trim_end()).unwrap_or_else(|| panic!("{short}"));
    let group = |name: &str| &found[pattern[name].as_u64().expect("a group") as usize];
    assert_eq!((group("file"), group("line").parse().ok()), (file, line));
    assert_eq!((group("severity"), group("code")), ("error", "SYNC-HAZARD-READ-AFTER-WRITE"));

    let sarif = json(&read(&stage, "report.sarif"));
    let result = &sarif["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!((place["artifactLocation"]["uri"].as_str(), place["region"]["startLine"].as_u64()), (Some(file), line));
    let steps = result["codeFlows"][0]["threadFlows"][0]["locations"].as_array().map(Vec::len);
    assert_eq!(steps, Some(3), "{result:#}");
    let github = read(&stage, "report.github");
    assert!(github.starts_with(&format!("::error file={file},line={},", line.expect("a line"))), "{github}");
    assert!(read(&stage, "report.junit").contains(&format!("file=\"{file}\"")));
}

#[test]
fn github_gets_the_summary_of_the_step() {
    let stage = TestEnvironment::new("report-summary");
    fs::write(stage.folder.join("summary.md"), "before\n").expect("the folder is ours");
    let mut command = stage.under_layer(&["--sync", "--format", "github"], samples());
    let done = output(command.arg("fault-barrier-stage").env("GITHUB_STEP_SUMMARY", "summary.md"));
    assert!(text(&done.stdout).contains("::error "), "{}", text(&done.stdout));
    let summary = read(&stage, "summary.md");
    assert!(summary.starts_with("before\n# Lavascope: 1 error\n\n1 submit, "), "{summary}");
    assert!(summary.contains("shaders (--gpu)\n\n| | place | problem |"), "{summary}");
}

/// What `lavascope explain` proposes to silence a code.
fn silencing_line(stage: &TestEnvironment, code: &str) -> String {
    let page = text(&succeed(stage.lavascope().args(["explain", code])).stdout);
    let (_, rest) = page.split_once("## How to silence it").unwrap_or_else(|| panic!("{code}: {page}"));
    let line = rest.lines().find_map(|it| it.strip_prefix("export ")).unwrap_or_else(|| panic!("{code}: {page}"));
    line.to_owned()
}

#[test]
fn the_line_that_explain_gives_silences_a_code() {
    let stage = TestEnvironment::new("report-silence");
    for (sample, option) in
        [("fault-barrier-stage", "--sync"), ("fault-bounds-read", "--gpu"), ("fault-bounds-write", "--gpu")]
    {
        let done = output(stage.under_layer(&[option, "--json", "report.json"], samples()).arg(sample));
        assert_eq!(done.status.code(), Some(1), "{sample}: {}", text(&done.stderr));
        let findings = &json(&read(&stage, "report.json"))["findings"];
        let code = findings[0]["code"].as_str().expect("a code");
        // Also by the short code that the text shows.
        let said = text(&done.stderr);
        let short = said.split_once('[').and_then(|it| it.1.split(']').next()).expect("a code");
        for name in [code, short] {
            let line = silencing_line(&stage, name);
            let run = format!("export {line}; exec \"$0\" run {option} -- \"$1\" {sample}");
            let mut shell: Command = stage.bare("sh");
            let lavascope = env!("CARGO_BIN_EXE_lavascope");
            let done = output(shell.args(["-c", &run, lavascope]).arg(samples()));
            assert_eq!(done.status.code(), Some(0), "{sample}, {line}: {}", text(&done.stderr));
        }
        let ignored = format!("code=^{code}$");
        let done = output(stage.under_layer(&[option, "--ignore", &ignored], samples()).arg(sample));
        assert_eq!(done.status.code(), Some(0), "{sample}: {}", text(&done.stderr));
        assert!(text(&done.stderr).contains("no new findings; ignored: 1\n"), "{}", text(&done.stderr));
    }
}
