//! Programs of others: `vulkaninfo`, `vkcube` and one on wgpu print the same with and without the layer.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{output, text};
use crate::displays::XServer;
use crate::test_environment::{TestEnvironment, succeed};

#[test]
fn vulkaninfo_prints_the_same() {
    let (stage, screen) = (TestEnvironment::new("vulkaninfo"), XServer::start());
    for display in [None, Some(&screen.display)] {
        let result = |mut command: Command| {
            let output = succeed(command.envs(display.map(|it| ("DISPLAY", it))));
            (text(&output.stdout), text(&output.stderr))
        };
        let (bare, bare_errors) = result(stage.bare("vulkaninfo"));
        let (under, under_errors) = result(stage.under_layer(&[], "vulkaninfo"));
        let (counted, _) = result(stage.under_layer_with_report(&[], "vulkaninfo"));
        stage.report().assert_clean("vulkaninfo");
        // So the comparison is of something, and the layer was there.
        assert!(without_lists(&bare).lines().count() > 500, "{bare}");
        assert_eq!(bare.contains("Presentable Surfaces:"), display.is_some(), "{bare}");
        assert!(under.contains("VK_LAYER_LAVASCOPE_inspect") && !bare.contains("VK_LAYER_LAVASCOPE_inspect"));
        assert_same(&without_lists(&bare), &without_lists(&under));
        assert_same(&under, &counted);
        assert_same(&without_variable(&bare_errors), &without_variable(&under_errors));
    }
}

/// Without the two sections that must differ: the lists of instance extensions and of layers.
fn without_lists(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &&str| line.len() > 2 && line.bytes().all(|it| it == b'=');
    let mut is_cut = false;
    let mut kept = String::new();
    for (at, line) in lines.iter().enumerate() {
        if lines.get(at + 1).is_some_and(is_rule) {
            is_cut = line.starts_with("Instance Extensions:") || line.starts_with("Layers:");
        }
        if !is_cut {
            kept += &format!("{line}\n");
        }
    }
    kept
}

/// Without what the loader says of the variable by which the layer comes in.
fn without_variable(text: &str) -> String {
    text.lines().filter(|it| !it.contains("VK_INSTANCE_LAYERS")).map(|it| format!("{it}\n")).collect()
}

/// Names the first line that differs, since the texts are long.
fn assert_same(one: &str, other: &str) {
    let differing = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    assert_eq!(differing, None);
    assert_eq!(one.lines().count(), other.lines().count());
}

#[test]
fn vkcube_turns_300_times() {
    let (stage, screen) = (TestEnvironment::new("vkcube"), XServer::start());
    let run = |mut command: Command| {
        let output = succeed(command.args(["--c", "300"]).env("DISPLAY", &screen.display));
        text(&output.stdout)
    };
    let bare = run(stage.bare("vkcube"));
    assert_eq!(run(stage.under_layer(&[], "vkcube")), bare);
    assert_eq!(run(stage.under_layer_with_report(&[], "vkcube")), bare);
    let report = stage.report();
    report.assert_clean("vkcube");
    assert_eq!(report.calls_of("vkQueuePresentKHR"), 300, "{:#}", report.0);
    assert_eq!(report.calls_of("vkAcquireNextImageKHR"), 300, "{:#}", report.0);
}

#[test]
fn wgpu_draws_the_same_pixels() {
    draw_with_wgpu(1);
}

#[test]
fn wgpu_draws_the_same_pixels_on_many_threads() {
    draw_with_wgpu(4);
}

/// Each thread has a device of its own.
fn draw_with_wgpu(threads: usize) {
    let stage = TestEnvironment::new(&format!("wgpu-{threads}"));
    let hashes = |mut command: Command| text(&succeed(wgpu(&mut command, threads)).stdout);
    let bare = hashes(stage.bare(python()));
    assert!(bare.starts_with("llvmpipe") && bare.contains("Vulkan"), "{bare}");
    assert_eq!(bare.lines().count(), threads + 1, "{bare}");
    assert_eq!(hashes(stage.under_layer(&[], python())), bare);
    assert_eq!(hashes(stage.under_layer_with_report(&[], python())), bare);
    let report = stage.report();
    assert!(report.threads() >= threads as u64, "{:#}", report.0);
    assert_eq!(report.calls_of("vkCreateDevice"), threads as u64, "{:#}", report.0);
    assert_eq!(report.0["processes"][0]["bugs"].as_array().map(Vec::len), Some(0), "{:#}", report.0);
    assert_eq!(hashes(stage.under_layer_with_report(&["--sync"], python())), bare);
    let report = stage.report();
    for list in ["findings", "bugs", "not_followed"] {
        assert_eq!(report.0["processes"][0][list].as_array().map(Vec::len), Some(0), "{:#}", report.0);
    }
}

pub(crate) fn wgpu(command: &mut Command, threads: usize) -> &mut Command {
    on_wgpu(command, "tests/programs/wgpu_triangle.py").arg(threads.to_string())
}

/// A script of this repository, for the interpreter.
pub(crate) fn on_wgpu<'a>(command: &'a mut Command, script: &str) -> &'a mut Command {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packages = here.join("../../../target/python");
    assert!(packages.join("wgpu").is_dir(), "{} lacks wgpu: `cargo xtask test` gets it", packages.display());
    command.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1").env("WGPU_BACKEND_TYPE", "Vulkan");
    command.arg(here.join(script))
}

/// The interpreter itself: what is in the path may be a script that needs the user's home.
pub(crate) fn python() -> PathBuf {
    let output = output(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]));
    PathBuf::from(text(&output.stdout).trim())
}
