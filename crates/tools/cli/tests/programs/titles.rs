//! What findings of the planted samples are called, and how many of their hazards have a verified fix.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lavascope_findings::{Finding, FindingAccess};
use lavascope_test_support::{lavapipe, set_driver, swiftshader};

use crate::common::{output, text};
use crate::displays::XServer;
use crate::faults::is_rare;
use crate::test_environment::{TestEnvironment, names, samples, succeed};

/// Characters of a title.
const TITLE_MAX: usize = 100;

/// Words of the implementation, which no user knows.
const FOREIGN_WORDS: [&str; 9] = ["site", "form", "table", "root", "part", "sites", "parts", "variant", "word"];

/// A sample without `lavascope run`: the layer writes its findings to a folder.
pub(crate) struct SampleRun<'a> {
    pub(crate) stage: &'a TestEnvironment,
    pub(crate) driver: PathBuf,
    pub(crate) settings: &'a [(&'a str, &'a str)],
}

impl SampleRun<'_> {
    /// The findings, merged as `lavascope run` does it.
    pub(crate) fn findings(&self, arguments: &[&str], display: &str) -> Vec<Finding> {
        let folder = self.stage.folder.join("reports");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the folder is ours");
        let mut command = self.stage.bare(samples());
        set_driver(&mut command, &self.driver).args(arguments).env("DISPLAY", display).env("LAVASCOPE_REPORT", &folder);
        command.envs(layer_variables(self.stage)).envs(self.settings.iter().copied());
        let ran = output(&mut command);
        assert!(matches!(ran.status.code(), Some(0 | 1)), "{arguments:?}: {}", text(&ran.stderr));
        read_findings(&folder)
    }
}

/// What `lavascope env` says.
fn layer_variables(stage: &TestEnvironment) -> BTreeMap<String, String> {
    let said = text(&succeed(stage.lavascope().arg("env")).stdout);
    let pair = |line: &str| {
        let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
        Some((name.to_owned(), value.trim_matches('\'').to_owned()))
    };
    said.lines().filter_map(pair).collect()
}

fn read_findings(folder: &Path) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let entries = fs::read_dir(folder).expect("the folder is there").map(|it| it.expect("an entry").path());
    // Beside the reports are marks of shaders that are compiled.
    for report in entries.filter(|it| it.extension().is_none_or(|it| it != "compiling")) {
        let written = fs::read_to_string(report).expect("a report");
        for line in written.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let Some(finding) = line.get("finding") else { continue };
            let finding: Finding = serde_json::from_value(finding.clone()).expect("a finding");
            match found.iter_mut().find(|it| it.is_same_cause(&finding)) {
                Some(known) => known.add(&finding),
                None => found.push(finding),
            }
        }
    }
    found
}

/// How a sample with a planted fault is run, and its findings.
fn planted_findings(stage: &TestEnvironment, name: &str, display: &str) -> Vec<Finding> {
    let is_bounds = name.starts_with("fault-bounds-");
    let is_observed = name.starts_with("fault-observed-");
    let settings: &[(&str, &str)] = match (is_bounds, is_observed) {
        (true, _) => &[("LAVASCOPE_GPU", "1")],
        (_, true) => &[("LAVASCOPE_GPU", "1"), ("LAVASCOPE_SYNC", "1")],
        _ => &[("LAVASCOPE_SYNC", "1")],
    };
    // The null driver runs no shaders, and lavapipe lacks what some need.
    let is_indexing = name.starts_with("fault-bounds-sampler-") || name.starts_with("fault-bounds-late");
    let driver = match (is_bounds || is_observed, is_indexing) {
        (_, true) => swiftshader(),
        (true, false) => lavapipe(),
        (false, false) => stage.null_driver(),
    };
    SampleRun { stage, driver, settings }.findings(&[name, "--no-check"], display)
}

/// The title without the names of the application.
fn without_names(title: &str) -> String {
    title.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

/// What a person calls the actor of an access, by its function.
fn nouns(access: &FindingAccess) -> &'static [&'static str] {
    const SHADERS: &[&str] = &["shader", "ray query", "draw", "dispatch", "render pass", "it"];
    match access.function.as_str() {
        "" => &["host", "presentation"],
        name if name.contains("Present") => &["presentation", "shows"],
        name if name.contains("Acquire") => &["presentation engine"],
        name if name.contains("Barrier") || name.contains("WaitEvents") => &["layout transition", "ownership transfer"],
        name if name.contains("Conditional") => &["conditional rendering"],
        name if name.contains("Render") || name.contains("Subpass") => &["render pass", "layout transition"],
        name if name.contains("QueryPoolResults") => &["query copy"],
        name if name.contains("Copy") => &["copy"],
        name if name.contains("Clear") => &["clear"],
        name if name.contains("Fill") => &["fill"],
        name if name.contains("Update") => &["update"],
        name if name.contains("Blit") => &["blit"],
        name if name.contains("ResolveImage") => &["resolve"],
        name if name.contains("Build") => &["build"],
        name if name.contains("Draw") || name.contains("Dispatch") || name.contains("TraceRays") => SHADERS,
        _ => &["host", "conditional", "vkCmd"],
    }
}

/// What is wrong with a title.
fn complaint(finding: &Finding) -> Option<String> {
    let title = &finding.title;
    let plain = without_names(title);
    let words: Vec<&str> = plain.split(|it: char| !it.is_alphanumeric()).collect();
    if title.is_empty() || title.chars().count() > TITLE_MAX {
        return Some("it is empty or too long".to_owned());
    }
    if let Some(word) = FOREIGN_WORDS.iter().find(|it| words.contains(it)) {
        return Some(format!("`{word}` is a word of the implementation"));
    }
    if title.contains("0x") || title.ends_with('.') || title.contains('\n') {
        return Some("it has an address, a period or several lines".to_owned());
    }
    if !finding.code.starts_with("SYNC-HAZARD-") {
        return None;
    }
    let named = finding.objects.first().map(|object| match &object.name {
        Some(name) => format!("{name:?}"),
        None => format!("{}#{}", object.kind, object.id),
    });
    if named.is_none_or(|it| !title.contains(&it)) {
        return Some("it does not name the resource".to_owned());
    }
    let is_same = title.contains("the same command") || title.contains("an earlier");
    let missing = finding.accesses.iter().find(|it| !nouns(it).iter().any(|noun| plain.contains(noun)));
    missing.filter(|_| !is_same).map(|it| format!("it does not name the {} of {}", it.role, it.function))
}

#[test]
fn every_planted_fault_has_a_title_that_names_it() {
    let (stage, screen) = (TestEnvironment::new("titles"), XServer::start());
    let (mut complaints, mut titles, mut hazards, mut fixed) = (Vec::new(), Vec::new(), 0, 0);
    let planted = names().into_iter().filter(|it| it.starts_with("fault-"));
    // Lavapipe lacks what the others need; one ends before it has reported anything.
    let is_for_shaders = |it: &str| it.starts_with("fault-bounds-") || it.starts_with("fault-observed-");
    let is_runnable = |it: &String| !is_for_shaders(it) || !(is_rare(it) || it.contains("instances"));
    for name in planted.filter(is_runnable).filter(|it| it != "fault-bounds-exit") {
        let found = planted_findings(&stage, &name, &screen.display);
        for finding in &found {
            titles.push(format!("{name}: {}", finding.title));
            complaints.extend(complaint(finding).map(|it| format!("{name}: {}\n  {it}", finding.title)));
            if finding.code.starts_with("SYNC-HAZARD-") {
                hazards += 1;
                fixed += usize::from(finding.fixes.first().is_some_and(|it| it.is_verified));
            }
        }
    }
    println!("{}\n{fixed} of {hazards} hazards have a verified fix", titles.join("\n"));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(titles.len() >= 100, "{}", titles.len());
    assert!(hazards >= 70 && fixed * 100 >= hazards * 90, "{fixed} of {hazards}");
}

/// The same findings after 3, 30 and 300 frames, one of which occurs a hundred times in each.
#[test]
fn five_bugs_are_five_findings_however_long_they_run() {
    let (stage, screen) = (TestEnvironment::new("five-bugs"), XServer::start());
    let run = SampleRun { stage: &stage, driver: stage.null_driver(), settings: &[("LAVASCOPE_SYNC", "1")] };
    let mut known: Option<Vec<(String, String, u64)>> = None;
    for frames in [3, 30, 300] {
        let count = frames.to_string();
        let found = run.findings(&["fault-five-bugs", "--no-check", "--frames", &count], &screen.display);
        assert_eq!(found.len(), 5, "{frames}: {:#?}", found.iter().map(|it| &it.title).collect::<Vec<_>>());
        let occurrences: Vec<u64> = found.iter().map(|it| it.occurrences / frames).collect();
        assert_eq!(occurrences, [100, 1, 1, 1, 1]);
        assert_eq!((found[0].sites, found[0].more_sites.len()), (100, 4));
        assert!(found.iter().all(|it| it.fixes.first().is_some_and(|it| it.is_verified)));
        let all = found.into_iter().map(|it| (it.title, it.fingerprint, it.sites)).collect();
        assert_eq!(*known.get_or_insert_with(|| Vec::clone(&all)), all);
    }
    let right = ["fault-five-bugs", "--no-check", "--fixed"];
    assert_eq!(run.findings(&right, &screen.display), []);
}

/// In every run, in each mode, and where its capture is checked.
#[test]
fn fingerprints_are_those_of_every_run_and_of_a_check() {
    let (stage, screen) = (TestEnvironment::new("fingerprints"), XServer::start());
    let trace = stage.folder.join("trace.lava");
    let shown = trace.to_str().expect("a path");
    for sample in ["fault-five-bugs", "fault-subpass", "fault-acquire", "fault-threads", "fault-alias-buffer"] {
        let of_run = |mode: &str| {
            let settings = [("LAVASCOPE_SYNC", "1"), ("LAVASCOPE_SYNC_MODE", mode)];
            let run = SampleRun { stage: &stage, driver: stage.null_driver(), settings: &settings };
            let found = run.findings(&[sample, "--no-check"], &screen.display);
            let mut all: Vec<String> = found.into_iter().map(|it| it.fingerprint).collect();
            all.sort();
            all
        };
        let known = of_run("async");
        assert!(!known.is_empty(), "{sample}");
        for mode in ["async", "inline", "async"] {
            assert_eq!(of_run(mode), known, "{sample} {mode}");
        }
        let mut capture = stage.lavascope();
        capture.args(["capture", "--null-driver", "--output", shown, "--"]).arg(samples());
        succeed(capture.args([sample, "--no-check"]).env("DISPLAY", &screen.display));
        let checked = output(stage.lavascope().args(["check", shown, "--json"]));
        let checked = text(&checked.stdout);
        let missing: Vec<&String> = known.iter().filter(|it| !checked.contains(it.as_str())).collect();
        assert!(missing.is_empty(), "{sample}: {missing:?} are not in {checked}");
        assert_eq!(checked.matches("\"fingerprint\"").count(), known.len(), "{sample}: {checked}");
    }
}

/// Rules fit shader faults, too, and what they keep away is counted.
#[test]
fn shader_faults_are_ignored_by_their_code() {
    let stage = TestEnvironment::new("ignored-faults");
    for (sample, rule) in [
        ("fault-bounds-read", "code=storageBuffers-06936"),
        ("fault-bounds-read", "code=STORAGE-BOUNDS"),
        ("fault-bounds-address", "code=VUID-RuntimeSpirv-PhysicalStorageBuffer64-11819"),
    ] {
        let run = |rule: &str| {
            let settings = [("LAVASCOPE_GPU", "1"), ("LAVASCOPE_IGNORE", rule)];
            SampleRun { stage: &stage, driver: lavapipe(), settings: &settings }.findings(&[sample], "")
        };
        assert_eq!((run("code=nothing").len(), run(rule)), (1, Vec::new()), "{rule}");
        let said = output(stage.under_layer(&["--gpu", "--ignore", rule], samples()).arg(sample));
        assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
        assert!(text(&said.stderr).contains("ignored: 1"), "{}", text(&said.stderr));
    }
}
