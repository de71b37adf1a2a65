//! The layer beside others: above and below the Khronos layer and GFXReconstruct, and twice in one chain.

use std::process::Command;

use crate::common::{output, text};
use crate::displays::XServer;
use crate::test_environment::{RunReport, TestEnvironment, samples, succeed};

const OURS: &str = "VK_LAYER_LAVASCOPE_inspect";
const KHRONOS: &str = "VK_LAYER_KHRONOS_validation";
const GFXRECONSTRUCT: &str = "VK_LAYER_LUNARG_gfxreconstruct";
/// Where the system's layers are.
const SYSTEM: &str = "/usr/share/vulkan/explicit_layer.d";
const SAMPLES: [&str; 2] = ["triangle-dynamic", "threads"];

#[test]
fn above_another_layer_every_call_is_seen_once() {
    let stage = TestEnvironment::new("above");
    let ours = stage.folder.join("cache/lavascope/layer").display().to_string();
    for other in [KHRONOS, GFXRECONSTRUCT] {
        for name in SAMPLES {
            let alone = run_alone(&stage, name);
            let report = run_chained(&stage, name, &[(OURS, &ours), (other, SYSTEM)]);
            assert_eq!(report.0["stats"], alone.0["stats"], "{name} above {other}");
        }
    }
}

/// There we see what the other layer asks for itself, too.
#[test]
fn below_another_layer_every_call_is_seen_once() {
    let stage = TestEnvironment::new("below");
    let ours = stage.folder.join("cache/lavascope/layer").display().to_string();
    for other in [KHRONOS, GFXRECONSTRUCT] {
        for name in SAMPLES {
            let alone = run_alone(&stage, name);
            let report = run_chained(&stage, name, &[(other, SYSTEM), (OURS, &ours)]);
            assert_eq!(report.threads(), alone.threads());
            assert_eq!(actions(&report), actions(&alone), "{name} below {other}");
            assert!(actions(&alone).len() > 30, "{:#}", alone.0);
        }
    }
}

#[test]
fn twice_in_a_chain_every_call_is_seen_once() {
    let stage = TestEnvironment::new("twice");
    for options in [&["env"][..], &["env", "--as-khronos"]] {
        // Writes the manifest of this name.
        succeed(stage.bare(env!("CARGO_BIN_EXE_lavascope")).args(options));
    }
    let folder = |name: &str| stage.folder.join("cache/lavascope").join(name).display().to_string();
    let (own, khronos) = (folder("layer"), folder("layer-as-khronos"));
    for name in SAMPLES {
        let alone = run_alone(&stage, name);
        for chain in [[(OURS, &own[..]), (KHRONOS, &khronos)], [(KHRONOS, &khronos), (OURS, &own)]] {
            let report = run_chained(&stage, name, &chain);
            assert_eq!(report.0["stats"], alone.0["stats"], "{name}: {chain:?}");
        }
    }
}

/// Above and below the real one, which has its own opinion of other things.
#[test]
fn beside_the_khronos_layer_hazards_are_found_once() {
    let stage = TestEnvironment::new("beside");
    let ours = stage.folder.join("cache/lavascope/layer").display().to_string();
    for options in [&["--sync"][..], &["--sync", "--inline"]] {
        for chain in [[(OURS, &ours[..]), (KHRONOS, SYSTEM)], [(KHRONOS, SYSTEM), (OURS, &ours)]] {
            let mut command = chain_of(&stage, options, &chain);
            let output = output(command.args(["fault-war-copy", "--no-check"]).env("VK_LOADER_DEBUG", "layer"));
            let said = text(&output.stderr);
            assert_eq!(inserted(&said), chain.map(|it| it.0), "{said}");
            let report = stage.report();
            let findings = report.0["findings"].as_array().expect("a list");
            assert_eq!(findings.len(), 1, "{:#}", report.0);
            assert_eq!(findings[0]["code"], "SYNC-HAZARD-WRITE-AFTER-READ", "{:#}", report.0);
        }
    }
}

/// The Khronos layer sees what we add to a program of which somebody wants pictures, and finds nothing wrong with it.
#[test]
fn copies_of_frames_are_correct_vulkan() {
    let (stage, screen) = (TestEnvironment::new("copies"), XServer::start());
    let ours = stage.folder.join("cache/lavascope/layer").display().to_string();
    let chain = [(OURS, &ours[..]), (KHRONOS, SYSTEM)];
    let mut command = chain_of(&stage, &[], &chain);
    command.env("LAVASCOPE_SCREENSHOT", "0..").env("DISPLAY", &screen.display).env("VK_LOADER_DEBUG", "layer");
    command.env("VK_LAYER_ENABLES", "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT");
    let output = succeed(command.args(["present", "--frames", "12"]));
    assert_eq!(inserted(&text(&output.stderr)), chain.map(|it| it.0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(!said.contains("VUID-") && !said.contains("SYNC-") && !said.contains("UNASSIGNED-"), "{said}");
    let report = stage.report();
    report.assert_clean("present");
    assert_eq!(report.0["processes"][0]["pictures"].as_array().map(Vec::len), Some(12), "{:#}", report.0);
    assert!(stage.folder.join("frame-000011.png").exists());
}

fn run_alone(stage: &TestEnvironment, name: &str) -> RunReport {
    succeed(stage.under_layer_with_report(&[], samples()).arg(name));
    let report = stage.report();
    report.assert_clean(name);
    report
}

/// The samples under layers, each with the folder of its manifest, from the application to the driver.
fn chain_of(stage: &TestEnvironment, options: &[&str], chain: &[(&str, &str)]) -> Command {
    let join = |words: Vec<&str>| words.join(":");
    let mut command = stage.under_layer_with_report(options, samples());
    // Newer loaders go by the order of the names, older ones by where they found the layers.
    command.env("VK_INSTANCE_LAYERS", join(chain.iter().map(|it| it.0).collect()));
    command.env("VK_LAYER_PATH", join(chain.iter().map(|it| it.1).collect()));
    command
}

/// Runs a sample under layers.
fn run_chained(stage: &TestEnvironment, name: &str, chain: &[(&str, &str)]) -> RunReport {
    let layers: Vec<&str> = chain.iter().map(|it| it.0).collect();
    let mut command = chain_of(stage, &[], chain);
    command.env("GFXRECON_CAPTURE_FILE", stage.folder.join("capture.gfxr")).env("GFXRECON_LOG_LEVEL", "error");
    // Its own way of watching memory, by page faults, crashes with several threads now and then, without us too.
    command.env("GFXRECON_MEMORY_TRACKING_MODE", "assisted");
    let output = succeed(command.arg(name).env("VK_LOADER_DEBUG", "layer"));
    let said = text(&output.stderr);
    assert_eq!(inserted(&said), layers, "{said}");
    // What the Khronos layer finds is printed there.
    assert!(!text(&output.stdout).contains("VUID-"), "{}", text(&output.stdout));
    let report = stage.report();
    report.assert_clean(name);
    report
}

/// The chain as the loader made it, from the application to the driver, without what the system adds.
fn inserted(said: &str) -> Vec<&str> {
    let layers = said.lines().filter_map(|it| it.split_once("nsert instance layer \"")?.1.split('"').next());
    let mut layers: Vec<&str> = layers.filter(|it| [OURS, KHRONOS, GFXRECONSTRUCT].contains(it)).collect();
    // It begins at the driver.
    layers.reverse();
    layers
}

/// How often each command was called that is not a question.
fn actions(report: &RunReport) -> Vec<(String, u64)> {
    let by_command = report.0["stats"]["by_command"].as_object().expect("counts");
    let is_action = |name: &&String| !name.starts_with("vkGet") && !name.starts_with("vkEnumerate");
    by_command.keys().filter(is_action).map(|it| (it.clone(), report.calls_of(it))).collect()
}
