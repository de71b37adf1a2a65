//! A few hundred random programs under both layers: no disagreement without a predicate. `cargo xtask compare --random`
//! takes more of them, and others.

use std::process::Command;

#[test]
fn both_layers_agree_on_random_programs() {
    let output = Command::new(env!("CARGO_BIN_EXE_lavascope-differential"))
        .args(["random", "--programs", "350", "--seed", "1"])
        .output()
        .expect("the program of this package can be run");
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let performed = stdout.lines().find_map(|it| it.split_once(" random programs in ")?.0.parse::<u32>().ok());
    assert!(performed.is_some_and(|it| it >= 330), "{stdout}");
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
