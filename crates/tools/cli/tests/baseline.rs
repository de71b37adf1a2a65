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

/// `run` of a program that reports findings, each by a title and a fingerprint.
fn run(home: &Path, arguments: &[&str], findings: &[(&str, &str)]) -> Output {
    let mut script = r#"say() { printf '%s\n' "$1" >> "$LAVASCOPE_REPORT/$$.jsonl"; }
say '{"process":{"pid":'$$',"program":"/bin/app","version":"0.1.0"}}'
"#
    .to_owned();
    for (text, fingerprint) in findings {
        let line = serde_json::json!({ "finding": {
            "code": "SYNC-HAZARD-READ-AFTER-WRITE", "severity": "error", "title": text, "message": text,
            "occurrences": 2, "fingerprint": fingerprint,
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
    // A file that is not there is an empty one.
    let missing = check(&home, &[HAZARD, "--baseline", file]);
    assert_eq!(code(&missing), Some(1));
    let said = text(&missing.stdout);
    assert!(unwrapped(&said).contains("known.txt does not exist: no finding is known"), "{said}");

    let written = check(&home, &[HAZARD, "--baseline", file, "--update-baseline"]);
    assert_eq!(code(&written), Some(0), "{}", text(&written.stderr));
    assert!(text(&written.stderr).ends_with("known.txt is written: 1 added, 0 removed\n"));
    let content = fs::read_to_string(file).expect("it is written");
    let block = "\n# copy reads \"b\" before an earlier copy is visible\nSYNC-HAZARD-READ-AFTER-WRITE ";
    assert!(content.starts_with("lavascope-baseline 2\n") && content.contains(block), "{content}");

    let known = check(&home, &[HAZARD, "--baseline", file]);
    assert_eq!(code(&known), Some(0));
    assert_eq!(text(&known.stdout), "lavascope: no new findings; known: 1\n");
    let json: Value =
        serde_json::from_slice(&check(&home, &[HAZARD, "--baseline", file, "--json"]).stdout).expect("JSON");
    let finding = &json["findings"][0];
    assert_eq!((&finding["is_known"], finding["fingerprint"].as_str().map(str::len)), (&true.into(), Some(16)));
}

/// Text without the line breaks of its 80 columns.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_new_counts_and_what_is_gone_is_mentioned() {
    let home = home("baseline-new");
    let file = home.join("known.txt");
    let shown = file.to_str().expect("a path");
    let content = "lavascope-baseline 2\n\n# Somebody's words.\nSYNC-HAZARD-WRITE-AFTER-READ 0123456789abcdef\n";
    fs::write(&file, content).expect("the folder is ours");
    let new = check(&home, &[HAZARD, "--baseline", shown]);
    assert_eq!(code(&new), Some(1));
    let said = unwrapped(&text(&new.stdout));
    assert!(said.contains("lavascope: 1 error lavascope: note: 1 finding of "), "{said}");
    let gone =
        "did not occur; --update-baseline removes it SYNC-HAZARD-WRITE-AFTER-READ 0123456789abcdef: Somebody's words.";
    assert!(said.ends_with(gone), "{said}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), content, "nobody asked to write it");
    let updated = check(&home, &[HAZARD, "--baseline", shown, "--update-baseline"]);
    assert!(text(&updated.stderr).ends_with("is written: 1 added, 1 removed\n"), "{}", text(&updated.stderr));
    assert!(!fs::read_to_string(&file).expect("it is there").contains("Somebody"));
}

#[test]
fn reasons_stay_and_dates_end_what_is_known() {
    let home = home("baseline-dates");
    let file = home.join("known.txt");
    let shown = file.to_str().expect("a path");
    check(&home, &[HAZARD, "--baseline", shown, "--update-baseline"]);
    let entry = fs::read_to_string(&file).expect("it is written");
    let with = |until: &str| fs::write(&file, format!("{entry}  reason: rewritten soon\n  until: {until}\n"));
    with("2999-12-31").expect("the folder is ours");
    assert_eq!(code(&check(&home, &[HAZARD, "--baseline", shown])), Some(0));
    check(&home, &[HAZARD, "--baseline", shown, "--update-baseline"]);
    let kept = fs::read_to_string(&file).expect("it is there");
    assert!(kept.ends_with("  reason: rewritten soon\n  until: 2999-12-31\n"), "{kept}");
    with("2001-01-31").expect("the folder is ours");
    let again = check(&home, &[HAZARD, "--baseline", shown]);
    assert_eq!(code(&again), Some(1));
    let said = unwrapped(&text(&again.stdout));
    assert!(said.contains("known until 2001-01-31, counts again: SYNC-HAZARD-READ-AFTER-WRITE "), "{said}");
}

#[test]
fn a_damaged_baseline_is_reported_before_anything_runs() {
    let home = home("baseline-damaged");
    let file = home.join("known.txt");
    let shown = file.to_str().expect("a path");
    for (content, said) in [
        (&b"lavascope-baseline 2\nCODE 0123456789abcdef\nwhat is this\n"[..], ":3: `what is this` is not an entry: "),
        (b"lavascope-baseline 2\n\nCODE 0123456789abcdef\n  until: soon\n", ":4: `soon` is not a date like 2027-01-31"),
        (b"", ":1: not a baseline: it would begin with `lavascope-baseline 2`"),
        (b"lavascope-baseline 2\n\n\xff\n", ":3: not UTF-8 text"),
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
fn a_baseline_of_the_first_version_is_written_anew() {
    let home = home("baseline-old");
    let file = home.join("known.txt");
    let shown = file.to_str().expect("a path");
    fs::write(&file, "lavascope-baseline 1\n\nCODE\n  access: vkCmdDraw\n").expect("the folder is ours");
    let refused = check(&home, &[HAZARD, "--baseline", shown]);
    let error =
        format!("lavascope: {shown}:1: version 1 of baselines has no fingerprints; --update-baseline writes it anew\n");
    assert_eq!((code(&refused), text(&refused.stderr)), (Some(2), error));
    let written = check(&home, &[HAZARD, "--baseline", shown, "--update-baseline"]);
    assert_eq!(code(&written), Some(0), "{}", text(&written.stderr));
    assert_eq!(code(&check(&home, &[HAZARD, "--baseline", shown])), Some(0));
}

#[test]
fn findings_are_ignored_by_rules() {
    let home = home("ignore-check");
    let hidden = "lavascope: no new findings; ignored: 1\n";
    for rule in ["object=^b$", "code=READ-AFTER-WRITE", "code=RAW"] {
        let output = check(&home, &[HAZARD, "--ignore", rule]);
        assert_eq!((code(&output), text(&output.stdout).as_str()), (Some(0), hidden), "{rule}");
    }
    // A rule that another one makes needless matches all the same; one that matches nothing is named.
    let output = check(&home, &[HAZARD, "--ignore", "code=RAW", "--ignore", "object=^b$", "--ignore", "code=RAWR"]);
    let unused = "lavascope: note: `--ignore code=RAWR` matched nothing\n";
    assert_eq!((code(&output), text(&output.stdout)), (Some(0), format!("{hidden}{unused}")));
    let needless = check(&home, &["tests/scenarios/needless.vks", "--needless", "--ignore", "code=OVER"]);
    let said = text(&needless.stdout);
    assert!(said.contains("no new findings; ignored: ") && !said.contains("matched nothing"), "{said}");
    let output = check(&home, &[HAZARD, "--ignore", "object=^c$", "--ignore", "label=main"]);
    assert_eq!(code(&output), Some(1));
    let wrong = check(&home, &[HAZARD, "--ignore", "object=["]);
    assert_eq!(code(&wrong), Some(2));
    let said = "lavascope: --ignore: `object=[` is not a regular expression: unclosed character class\n";
    assert_eq!(text(&wrong.stderr), said);
}

/// What `lavascope explain` shows silences a code in `check`, too.
#[test]
fn check_hides_what_the_settings_hide() {
    let home = home("ignore-settings");
    let check = |variable: (&str, &str)| {
        let mut command = lavascope(&home);
        command.current_dir(env!("CARGO_MANIFEST_DIR")).env(variable.0, variable.1);
        let output = output(command.args(["check", HAZARD]));
        (code(&output), text(&output.stdout))
    };
    for variable in [
        ("LAVASCOPE_MESSAGE_ID_FILTER", "SYNC-HAZARD-READ-AFTER-WRITE"),
        ("LAVASCOPE_MESSAGE_ID_FILTER", "0xe4d96472"),
        ("LAVASCOPE_MESSAGE_ID_FILTER", "RAW"),
        ("LAVASCOPE_IGNORE", "code=RAW"),
    ] {
        assert_eq!(check(variable), (Some(0), "lavascope: no new findings; ignored: 1\n".to_owned()), "{variable:?}");
    }
    assert_eq!(check(("LAVASCOPE_MESSAGE_ID_FILTER", "SYNC-HAZARD-WRITE-AFTER-READ")).0, Some(1));
    let (code, said) = check(("LAVASCOPE_IGNORE", "wrong"));
    assert_eq!(code, Some(1));
    assert!(said.contains("lavascope: error: LAVASCOPE_IGNORE: "), "{said}");
}

#[test]
fn run_compares_with_a_baseline() {
    let home = home("baseline-run");
    let file = home.join("known.txt");
    let file = file.to_str().expect("a path");
    let (one, other) = (("read of one", "0123456789abcdef"), ("read of two", "fedcba9876543210"));
    let written = run(&home, &["--baseline", file, "--update-baseline"], &[one]);
    assert_eq!(code(&written), Some(0), "{}", text(&written.stderr));
    assert!(text(&written.stderr).contains("lavascope: no new findings; known: 1\n"), "{}", text(&written.stderr));
    assert!(text(&written.stderr).ends_with("known.txt is written: 1 added, 0 removed\n"), "{}", text(&written.stderr));
    let known = run(&home, &["--baseline", file], &[one]);
    assert_eq!((code(&known), text(&known.stderr)), (Some(0), "lavascope: no new findings; known: 1\n".to_owned()));
    let json = home.join("report.json");
    let new = run(&home, &["--baseline", file, "--json", json.to_str().expect("a path")], &[one, other]);
    assert_eq!(code(&new), Some(1));
    let said = text(&new.stderr);
    assert!(
        said.starts_with("error[RAW]: read of two\n") && said.ends_with("lavascope: 1 error; known: 1\n"),
        "{said}"
    );
    assert!(!said.contains("read of one"), "{said}");
    let json: Value = serde_json::from_slice(&fs::read(&json).expect("it is written")).expect("JSON");
    let known: Vec<_> = json["findings"].as_array().expect("a list").iter().map(|it| &it["is_known"]).collect();
    assert_eq!(known, [&Value::Bool(true), &Value::Bool(false)]);
    let gone = run(&home, &["--baseline", file], &[]);
    assert_eq!(code(&gone), Some(0));
    let said = unwrapped(&text(&gone.stderr));
    assert!(said.contains("1 finding of ") && said.ends_with(" 0123456789abcdef: read of one"), "{said}");
    // A run of nothing says nothing about what is known.
    let before = fs::read_to_string(file).expect("it is there");
    let nothing = output(lavascope(&home).args(["run", "--baseline", file, "--update-baseline", "--", "true"]));
    assert_eq!(code(&nothing), Some(2));
    assert!(unwrapped(&text(&nothing.stderr)).contains("stays as it is"), "{}", text(&nothing.stderr));
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
