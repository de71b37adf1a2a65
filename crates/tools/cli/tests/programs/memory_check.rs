//! A layer of its own hashes what each memory holds in the end: under a program and under its replay it is the same.
//!
//! `replay --verify` compares what the trace knows of. This compares everything, also memory that the host never reads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use lavascope_test_support::memory_check_library;

use crate::displays::XServer;
use crate::faults::is_only_for_null;
use crate::test_environment::{TestEnvironment, names, samples, succeed};

/// One sample of each kind. `cargo xtask nightly` compares all of them.
const SELECTION: [&str; 10] = [
    "descriptors",
    "indirect",
    "linear",
    "mapped",
    "multi-queue-upload",
    "compute",
    "present",
    "textured",
    "threads-handoff",
    "fault-device-address",
];

/// How many memories there were of each size and contents.
type Contents = BTreeMap<(u64, String), usize>;

/// Puts the layer below a command, and returns the file that it writes.
fn with_layer(stage: &TestEnvironment, command: &mut Command, name: &str) -> PathBuf {
    let library = memory_check_library();
    let manifest = serde_json::json!({
        "file_format_version": "1.1.2",
        "layer": {
            "name": "VK_LAYER_LAVASCOPE_memory_check",
            "type": "GLOBAL",
            "library_path": library,
            "api_version": "1.4.300",
            "implementation_version": "1",
            "description": "hashes memory",
        },
    });
    let folder = stage.folder.join("layers");
    std::fs::create_dir_all(&folder).expect("the folder of a test can be written");
    std::fs::write(folder.join("memory_check.json"), manifest.to_string())
        .expect("the folder of a test can be written");
    let file = stage.folder.join(name);
    let _ = std::fs::remove_file(&file);
    command.env("VK_LAYER_PATH", folder).env("VK_INSTANCE_LAYERS", "VK_LAYER_LAVASCOPE_memory_check");
    command.env("LAVASCOPE_MEMORY_CHECK", &file);
    file
}

fn contents(file: &PathBuf) -> Contents {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut all = Contents::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, size, hash] = words[..] else { panic!("{line}") };
        assert_ne!(hash, "hidden", "the host sees all memory of lavapipe");
        *all.entry((size.parse().expect("a number"), hash.to_owned())).or_default() += 1;
    }
    all
}

/// What the first has and the second has not, or not as often.
fn missing(first: &Contents, second: &Contents) -> Vec<(u64, String)> {
    let rest = |it: &(u64, String)| first[it].saturating_sub(second.get(it).copied().unwrap_or(0));
    first.keys().flat_map(|it| std::iter::repeat_n(it.clone(), rest(it))).collect()
}

/// Runs a sample, and captures it.
fn run_and_capture(stage: &TestEnvironment, name: &str, screen: &XServer) -> Contents {
    let there = run(stage, name, screen, "there.txt");
    let mut command = stage.lavascope();
    command.args(["capture", "-o", "trace.lava", "--"]).arg(samples()).args(arguments(name));
    succeed(command.env("DISPLAY", &screen.display));
    there
}

fn arguments(name: &str) -> Vec<&str> {
    if name.starts_with("fault-") { vec![name, "--fixed"] } else { vec![name] }
}

fn run(stage: &TestEnvironment, name: &str, screen: &XServer, file: &str) -> Contents {
    let mut command = stage.bare(samples());
    let file = with_layer(stage, command.args(arguments(name)).env("DISPLAY", &screen.display), file);
    succeed(&mut command);
    contents(&file)
}

fn replayed(stage: &TestEnvironment, options: &[&str]) -> Contents {
    let mut command = stage.lavascope();
    let file = with_layer(stage, command.args(["replay", "trace.lava"]).args(options), "here.txt");
    succeed(&mut command);
    contents(&file)
}

/// Compares a sample with its replays. Returns how many memories were compared, and which differ.
fn compare(stage: &TestEnvironment, name: &str, screen: &XServer) -> (usize, Vec<String>) {
    let there = run_and_capture(stage, name, screen);
    let mut all = Vec::new();
    for threads in [&[][..], &["--threads", "1"]] {
        // A replay has memory of its own besides, for the images of swapchains.
        let mut different = missing(&there, &replayed(stage, threads));
        if !different.is_empty() {
            // What differs from run to run of the program cannot be the same here.
            let again = run(stage, name, screen, "again.txt");
            different.retain(|it| again.contains_key(it));
        }
        all.extend(different.iter().map(|it| format!("{name} {threads:?}: {} bytes", it.0)));
    }
    (there.values().sum(), all)
}

#[test]
fn each_memory_ends_with_the_same_contents_in_a_replay() {
    let (stage, screen) = (TestEnvironment::new("memory-check"), XServer::start());
    let is_whole = std::env::var_os("LAVASCOPE_TEST_ALL").is_some();
    let all = names().into_iter().filter(|it| !is_only_for_null(it));
    let chosen: Vec<String> = all.filter(|it| is_whole || SELECTION.contains(&it.as_str())).collect();
    assert!(chosen.len() >= SELECTION.len(), "{chosen:?}");
    let results: Vec<_> = chosen.iter().map(|it| compare(&stage, it, &screen)).collect();
    let compared: usize = results.iter().map(|it| it.0).sum();
    let different: Vec<&String> = results.iter().flat_map(|it| &it.1).collect();
    assert!(different.is_empty() && compared > chosen.len(), "of {compared} memories these differ: {different:#?}");
}

#[test]
fn a_replay_that_computes_nothing_is_found() {
    let (stage, screen) = (TestEnvironment::new("memory-check-null"), XServer::start());
    let there = run_and_capture(&stage, "compute", &screen);
    assert_eq!(missing(&there, &replayed(&stage, &[])), []);
    assert_ne!(missing(&there, &replayed(&stage, &["--null"])), []);
}
