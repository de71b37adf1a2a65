//! The checks of shaders find the same whatever else is on: with `gpu` as the only setting nobody records calls, and
//! whatever the checks know of an object they must have kept themselves.

use serde_json::Value;

use crate::common::output;
use crate::faults::{is_only_for_null, is_rare};
use crate::test_environment::{TestEnvironment, names, samples};

use lavascope_test_support::{set_driver, swiftshader};

const ALONE: &[&str] = &["run", "--quiet", "--no-sync", "--gpu"];
const WITH_STATS: &[&str] = &["run", "--quiet", "--no-sync", "--gpu", "--stats"];
const WITH_SYNC: &[&str] = &["run", "--quiet", "--sync", "--gpu"];

/// The faults in shaders: code, place in the shader, how often, and what the notes count.
fn faults(
    stage: &TestEnvironment,
    options: &[&str],
    sample: &[&str],
    change: &dyn Fn(&mut std::process::Command),
) -> Vec<String> {
    let mut command = stage.lavascope();
    command.args(options).args(["--json", "report.json", "--"]).arg(samples()).args(sample).arg("--no-check");
    change(&mut command);
    let run = output(&mut command);
    assert!(run.status.code().is_some_and(|it| it < 2), "{options:?} {sample:?}: {}", crate::common::text(&run.stderr));
    let report = stage.report().0;
    let findings = report["findings"].as_array().expect("findings");
    let is_of_shader = |it: &&Value| it["notes"].to_string().contains("invocation");
    let text = |finding: &Value| {
        let count = finding["notes"][0].as_str().unwrap_or_default();
        let accesses = finding["accesses"].as_array().map_or(&[][..], Vec::as_slice);
        let place = accesses.iter().find(|it| it["role"] == "shader").map(|it| &it["place"]);
        format!("{} {place:?} {} {count}", finding["code"], finding["occurrences"])
    };
    let mut faults: Vec<String> = findings.iter().filter(is_of_shader).map(text).collect();
    faults.sort();
    faults
}

fn planted() -> Vec<String> {
    let all = names().into_iter().filter(|it| it.starts_with("fault-bounds-"));
    all.filter(|it| !is_rare(it) && !is_only_for_null(it)).collect()
}

#[test]
fn every_planted_fault_is_found_with_gpu_as_the_only_setting() {
    let stage = TestEnvironment::new("gpu-alone");
    let mut found = 0;
    for name in planted().iter().filter(|it| !it.contains("sampler")) {
        let alone = faults(&stage, ALONE, &[name], &|_| ());
        assert_eq!(faults(&stage, WITH_SYNC, &[name], &|_| ()), alone, "{name}");
        found += alone.len();
    }
    assert!(found >= 40, "{found}");
}

/// Pipelines for a render pass object are created again only if what the pass uses is known.
#[test]
fn faults_in_render_pass_objects_are_found_with_gpu_as_the_only_setting() {
    let stage = TestEnvironment::new("gpu-alone-pass");
    for name in ["uniform", "vertex", "geometry", "tessellation", "discard"] {
        let name = format!("fault-bounds-{name}");
        let sample = [name.as_str(), "--render-pass"];
        let alone = faults(&stage, ALONE, &sample, &|_| ());
        assert!(!alone.is_empty(), "{name}");
        assert_eq!(faults(&stage, WITH_STATS, &sample, &|_| ()), alone, "{name}");
        assert_eq!(faults(&stage, ALONE, &[&name], &|_| ()), alone, "{name}");
    }
}

/// SwiftShader crashes if it uses a descriptor that was never written.
#[test]
fn samplers_that_were_never_written_are_found_with_gpu_as_the_only_setting() {
    let (stage, driver) = (TestEnvironment::new("gpu-alone-samplers"), swiftshader());
    let change = |command: &mut std::process::Command| {
        set_driver(command, &driver);
    };
    for name in ["fault-bounds-sampler-index", "fault-bounds-sampler-never"] {
        let alone = faults(&stage, ALONE, &[name, "--render-pass"], &change);
        assert_eq!(alone.len(), 1, "{name}");
        assert_eq!(faults(&stage, WITH_STATS, &[name, "--render-pass"], &change), alone, "{name}");
    }
}
