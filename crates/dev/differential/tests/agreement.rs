//! A few hundred random programs under both layers: no disagreement without a predicate. `cargo xtask compare --random`
//! takes more of them, and others.

use std::process::Command;

/// Runs the program of this package, which must succeed, and gives what it printed.
fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_lavascope-differential"))
        .args(arguments)
        .output()
        .expect("the program of this package can be run");
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    assert!(output.status.success(), "{stdout}\n{stderr}");
    stdout
}

/// The number that begins a line which goes on with these words.
fn count_before(stdout: &str, words: &str) -> Option<u32> {
    stdout.lines().find_map(|it| it.split_once(words)?.0.parse().ok())
}

#[test]
fn both_layers_agree_on_random_programs() {
    let stdout = run(&["random", "--programs", "350", "--seed", "1"]);
    assert!(count_before(&stdout, " random programs in ").is_some_and(|it| it >= 330), "{stdout}");
}

#[test]
fn random_programs_are_valid() {
    let stdout = run(&["random", "--core", "--programs", "100", "--seed", "1"]);
    assert!(count_before(&stdout, " random programs under core validation").is_some_and(|it| it >= 95), "{stdout}");
}

#[test]
fn the_scenario_of_each_predicate_needs_it() {
    let stdout = run(&["predicates", concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios")]);
    assert!(stdout.lines().count() >= 15, "{stdout}");
}

/// A comparison that cannot disagree would show nothing: here is something that only our layer sees.
#[test]
fn what_one_layer_does_not_see_is_a_disagreement() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("two_instances.vks");
    let text = "image i 16x16\n\ncmd c\n  draw writes color i\n  draw writes color i\n";
    std::fs::write(&folder, text).expect("the build folder can be written");
    let output = Command::new(env!("CARGO_BIN_EXE_lavascope-differential"))
        .arg("file")
        .arg(&folder)
        .output()
        .expect("the program of this package can be run");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("OnlyOurs at vkCmdDraw[0.1] i"), "{stdout}");
}
