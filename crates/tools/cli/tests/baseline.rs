//! `--baseline`, `--update-baseline` and `--ignore`: what is known or not wanted is counted and changes no exit code.

mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use common::{home, lavascope, output, text};

const HAZARD: &str = "tests/scenarios/hazard.vks";

fn check(home: &Path, arguments: &[&str]) -> Output {
    let mut command = lavascope(home);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    output(command.arg("check").args(arguments))
}

/// `run` of a program that reports findings, each by a text and what it is known by.
fn run(home: &Path, arguments: &[&str], findings: &[(&str, &str)]) -> Output {
    let mut script = r#"say() { printf '%s\n' "$1" >> "$LAVASCOPE_REPORT/$$.jsonl"; }
say '{"process":{"pid":'$$',"program":"/bin/app","version":"0.1.0"}}'
"#
    .to_owned();
    for (text, identity) in findings {
        let line = serde_json::json!({ "finding": {
            "code": "SYNC-HAZARD-READ-AFTER-WRITE", "severity": "error", "title": text, "message": text,
            "occurrences": 2, "identity": [identity],
        }});
        script += &format!("say '{line}'\n");
    }
    output(lavascope(home).arg("run").args(arguments).args(["--", "sh", "-c", &script]))
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn a_scenarios_findings_become_known() {
    let home = home("baseline-check");
    let file = home.join("known.txt");
    let file = file.to_str().expect("a path");
    let missing = check(&home, &[HAZARD, "--baseline", file]);
    assert_eq!(code(&missing), Some(2));
    assert!(text(&missing.stderr).contains("cannot be read; --update-baseline writes it"), "{}", text(&missing.stderr));

    let written = check(&home, &[HAZARD, "--baseline", file, "--update-baseline"]);
    assert_eq!(code(&written), Some(0), "{}", text(&written.stderr));
    assert!(text(&written.stderr).ends_with("known.txt is written: 1 added, 0 removed\n"));
    let content = fs::read_to_string(file).expect("it is written");
    let block = "\nSYNC-HAZARD-READ-AFTER-WRITE\n  access: main: copy b -> c (COPY, TRANSFER_READ)\n  \
                 prior access: main: copy a -> b (COPY, TRANSFER_WRITE)\n  object: VkBuffer \"b\"\n";
    assert!(content.starts_with("lavascope-baseline 1\n") && content.ends_with(block), "{content}");

    let known = check(&home, &[HAZARD, "--baseline", file]);
    assert_eq!(code(&known), Some(0));
    assert_eq!(text(&known.stdout), "tests/scenarios/hazard.vks: no hazards; known: 1\n");
    let json: Value =
        serde_json::from_slice(&check(&home, &[HAZARD, "--baseline", file, "--json"]).stdout).expect("JSON");
    assert_eq!((&json[0]["is_known"], json[0]["fingerprint"].as_str().map(str::len)), (&true.into(), Some(16)));
}

#[test]
fn what_is_new_counts_and_what_is_gone_is_mentioned() {
    let home = home("baseline-new");
    let file = home.join("known.txt");
    let shown = file.to_str().expect("a path");
    let text_of =
        "lavascope-baseline 1\n\n# Somebody's words.\nSYNC-HAZARD-WRITE-AFTER-READ\n  access: main: copy x -> y\n";
    fs::write(&file, text_of).expect("the folder is ours");
    let new = check(&home, &[HAZARD, "--baseline", shown]);
    assert_eq!(code(&new), Some(1));
    assert!(text(&new.stdout).ends_with("1 finding; `lavascope explain CODE` tells more about its kind\n"));
    let gone = format!(
        "lavascope: 1 finding of {shown} did not occur; --update-baseline removes them\n  \
         SYNC-HAZARD-WRITE-AFTER-READ: access: main: copy x -> y\n"
    );
    assert_eq!(text(&new.stderr), gone);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), text_of, "nobody asked to write it");
    let updated = check(&home, &[HAZARD, "--baseline", shown, "--update-baseline"]);
    assert!(text(&updated.stderr).ends_with("is written: 1 added, 1 removed\n"), "{}", text(&updated.stderr));
    assert!(!fs::read_to_string(&file).expect("it is there").contains("Somebody"));
}

#[test]
fn a_damaged_baseline_is_told_before_anything_runs() {
    let home = home("baseline-damaged");
    let file = home.join("known.txt");
    let shown = file.to_str().expect("a path");
    for (content, said) in [
        (&b"lavascope-baseline 1\nCODE\n  a: b\nwhat is this\n"[..], ":4: `what is this` is no code of a finding"),
        (b"lavascope-baseline 1\n\nCODE\n\nMORE\n  a: b\n", ":3: no indented lines say which finding this is"),
        (b"", ":1: not a baseline: it would begin with `lavascope-baseline 1`"),
        (b"lavascope-baseline 1\n\n\xff\n", ":3: this is no text in UTF-8"),
    ] {
        fs::write(&file, content).expect("the folder is ours");
        let ran = home.join("ran");
        let touch = ran.to_str().expect("a path");
        let outputs = [
            output(lavascope(&home).args(["run", "--baseline", shown, "--", "touch", touch])),
            check(&home, &[HAZARD, "--baseline", shown]),
            check(&home, &[HAZARD, "--baseline", shown, "--update-baseline"]),
        ];
        for item in &outputs {
            assert_eq!(code(item), Some(2));
            assert!(text(&item.stderr).starts_with(&format!("lavascope: {shown}{said}")), "{}", text(&item.stderr));
        }
        assert!(!ran.exists() && fs::read(&file).expect("it is there") == content);
    }
}

#[test]
fn findings_are_ignored_by_rules() {
    let home = home("ignore-check");
    for rule in ["object=^b$", "code=READ-AFTER-WRITE"] {
        let output = check(&home, &[HAZARD, "--ignore", "object=other", "--ignore", rule]);
        assert_eq!(
            (code(&output), text(&output.stdout)),
            (Some(0), format!("{HAZARD}: no hazards; ignored: 1\n")),
            "{rule}"
        );
    }
    let output = check(&home, &[HAZARD, "--ignore", "object=^c$", "--ignore", "label=main"]);
    assert_eq!(code(&output), Some(1));
    let wrong = check(&home, &[HAZARD, "--ignore", "object=["]);
    assert_eq!(code(&wrong), Some(2));
    let said = "lavascope: --ignore: `object=[` is no regular expression: unclosed character class\n";
    assert_eq!(text(&wrong.stderr), said);
}

#[test]
fn run_compares_with_a_baseline() {
    let home = home("baseline-run");
    let file = home.join("known.txt");
    let file = file.to_str().expect("a path");
    let (one, other) = (("of VkBuffer#1\nmore", "access: vkCmdDraw"), ("of VkBuffer#2\nmore", "access: vkCmdDispatch"));
    let written = run(&home, &["--baseline", file, "--update-baseline"], &[one]);
    assert_eq!(code(&written), Some(0), "{}", text(&written.stderr));
    // The object has another number in another run.
    let known = run(&home, &["--baseline", file], &[("of VkBuffer#7\nmore", one.1)]);
    assert_eq!(
        (code(&known), text(&known.stderr)),
        (Some(0), "lavascope: 2 findings known by the baseline\n".to_owned())
    );
    let json = home.join("report.json");
    let new = run(&home, &["--baseline", file, "--json", json.to_str().expect("a path")], &[one, other]);
    assert_eq!(code(&new), Some(1));
    let said = text(&new.stderr);
    assert!(said.starts_with("lavascope: 2 errors\n") && said.contains("\nof VkBuffer#2\n"), "{said}");
    assert!(!said.contains("VkBuffer#1"), "{said}");
    let json: Value = serde_json::from_slice(&fs::read(&json).expect("it is written")).expect("JSON");
    let known: Vec<_> = json["findings"].as_array().expect("a list").iter().map(|it| &it["is_known"]).collect();
    assert_eq!(known, [&Value::Bool(true), &Value::Bool(false)]);
    let gone = run(&home, &["--baseline", file], &[]);
    assert_eq!(code(&gone), Some(0));
    assert!(text(&gone.stderr).contains("1 finding of ") && text(&gone.stderr).contains("access: vkCmdDraw"));
    // A run of nothing says nothing about what is known.
    let before = fs::read_to_string(file).expect("it is there");
    let nothing = output(lavascope(&home).args(["run", "--baseline", file, "--update-baseline", "--", "true"]));
    assert_eq!(code(&nothing), Some(2));
    assert!(text(&nothing.stderr).contains("stays as it is"), "{}", text(&nothing.stderr));
    assert_eq!(fs::read_to_string(file).expect("it is there"), before);
}

#[test]
fn the_program_gets_the_rules() {
    let home = home("ignore-run");
    let show = |command: &mut std::process::Command, arguments: &[&str]| {
        command.arg("run").args(arguments).args(["--exit-code", "app", "--", "sh", "-c", "echo $LAVASCOPE_IGNORE"]);
        text(&output(command).stdout)
    };
    let rules = ["--ignore", "object=a{1,2}", "--ignore", "label=b"];
    assert_eq!(show(lavascope(&home).env("LAVASCOPE_IGNORE", ""), &rules), "object=a{1,2},label=b\n");
    let set = show(lavascope(&home).env("LAVASCOPE_IGNORE", "code=c"), &rules);
    assert_eq!(set, "code=c,object=a{1,2},label=b\n");
    assert_eq!(show(lavascope(&home).env("LAVASCOPE_IGNORE", "code=c"), &[]), "code=c\n");
}
