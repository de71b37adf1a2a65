//! A baseline of a real program: the same findings in every run, wherever they are looked for.

use std::fs;

use crate::common::text;
use crate::test_environment::{TestEnvironment, samples, unwrapped};

#[test]
fn findings_stay_known_from_run_to_run_and_from_mode_to_mode() {
    let stage = TestEnvironment::new("baseline");
    let file = stage.folder.join("known.txt");
    let shown = file.to_str().expect("a path");
    let run = |options: &[&str], arguments: &[&str]| {
        let options = [&["--sync", "--baseline", shown], options].concat();
        let output = stage.under_layer(&options, samples()).args(arguments).output().expect("it starts");
        (output.status.code(), unwrapped(&text(&output.stderr)))
    };
    for sample in ["fault-war-copy", "fault-missing-barrier-compute", "fault-subpass"] {
        let _ = fs::remove_file(&file);
        let (code, said) = run(&["--update-baseline"], &[sample]);
        assert_eq!(code, Some(0), "{sample}: {said}");
        let written = fs::read_to_string(&file).expect("it is written");
        // Numbers of objects would not be the same in another run.
        let entry = written.lines().find(|it| it.starts_with("SYNC-HAZARD-")).expect("a hazard");
        assert!(entry.split_once(' ').is_some_and(|it| it.1.len() == 16), "{written}");
        for options in [&[][..], &["--inline"], &["--null-driver"]] {
            let arguments: &[&str] = if options == ["--null-driver"] { &[sample, "--no-check"] } else { &[sample] };
            let (code, said) = run(options, arguments);
            assert_eq!(code, Some(0), "{sample} {options:?}: {said}\n{written}");
            assert!(
                said.contains("no new findings; known: ") && !said.contains("did not occur"),
                "{options:?}: {said}"
            );
        }
        let (code, said) = run(&[], &[sample, "--fixed"]);
        assert_eq!(code, Some(0), "{sample}: {said}");
        assert!(said.contains("did not occur") && !said.contains("known: "), "{sample}: {said}");
    }
}

#[test]
fn findings_of_a_program_can_be_ignored() {
    let stage = TestEnvironment::new("ignore");
    let run = |options: &[&str]| {
        let options = [&["--sync"], options].concat();
        let output = stage.under_layer(&options, samples()).arg("fault-war-copy").output().expect("it starts");
        (output.status.code(), text(&output.stderr))
    };
    for rules in [&["--ignore", "code=WAR"][..], &["--ignore", "code=WRITE-AFTER-READ", "--ignore", "code=WAR"]] {
        let (code, said) = run(rules);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.starts_with("lavascope: no new findings; ignored: 1\n"), "{said}");
        assert!(!said.contains("matched nothing"), "{said}");
    }
    let (code, said) = run(&["--ignore", "code=READ-AFTER-WRITE"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("lavascope: note: `--ignore code=READ-AFTER-WRITE` matched nothing\n"), "{said}");
}

#[test]
fn call_stacks_have_the_names_of_functions() {
    let stage = TestEnvironment::new("backtrace");
    let file = stage.folder.join("report.json");
    for mode in ["--async", "--inline"] {
        let options = ["--sync", "--backtrace", mode, "--json", file.to_str().expect("a path")];
        let output = stage.under_layer(&options, samples()).arg("fault-war-copy").output().expect("it starts");
        let said = text(&output.stderr);
        let is_place = |it: &str| it.starts_with("  --> ") && it.contains(".rs:") && it.contains("war_copy()");
        assert!(said.lines().any(is_place), "{said}");
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&file).expect("it is written")).expect("JSON");
        let frames = &json["findings"][0]["accesses"][0]["stack"]["frames"];
        let has = |it: &serde_json::Value| it["source"]["function"].as_str().is_some_and(|it| it.contains("war_copy"));
        assert!(frames.as_array().is_some_and(|it| it.iter().any(has)), "{frames:#}");
    }
}
