//! Programs that ask for an old version of Vulkan are checked, and see what they see without the layer.

use crate::bad_input::compiled;
use crate::common::{output, text};
use crate::test_environment::{TestEnvironment, samples, succeed};

use lavascope_test_support::{set_driver, swiftshader};

/// The versions that a program may ask for; none is no application info.
const VERSIONS: [&[&str]; 4] = [&[], &["0"], &["1"], &["2"]];

#[test]
fn a_program_sees_no_more_than_it_asked_for() {
    let stage = TestEnvironment::new("old-versions");
    let program = compiled(&stage, "old_version.c");
    for driver in [None, Some(swiftshader())] {
        for version in VERSIONS {
            let run = |mut command: std::process::Command| {
                driver.iter().for_each(|it| _ = set_driver(&mut command, it));
                text(&succeed(command.args(version)).stdout)
            };
            let alone = run(stage.bare(&program));
            assert!(alone.contains("vkCmdDraw 1 1"), "{alone}");
            assert_eq!(run(stage.under_layer(&["--gpu"], &program)), alone, "{driver:?} {version:?}");
        }
    }
}

#[test]
fn faults_of_programs_for_vulkan_1_0_are_found() {
    let stage = TestEnvironment::new("old-versions-faults");
    for version in ["none", "1.0", "1.1"] {
        for sample in [&["fault-bounds-read"][..], &["fault-bounds-uniform", "--render-pass"]] {
            let mut command = stage.under_layer(&["--gpu", "--json", "report.json"], samples());
            let run = output(command.args(sample).env("LAVASCOPE_SAMPLE_API", version));
            let said = text(&run.stderr);
            assert_eq!(run.status.code(), Some(1), "{version} {sample:?}: {said}");
            let report = stage.report().0;
            assert_eq!(report["findings"].as_array().map(Vec::len), Some(1), "{version} {sample:?}: {report:#}");
            let mut command = stage.under_layer(&["--gpu", "--json", "report.json"], samples());
            succeed(command.args(sample).arg("--fixed").env("LAVASCOPE_SAMPLE_API", version));
            stage.report().assert_nothing_is_wrong(version);
        }
    }
}

/// The device has Vulkan 1.0 only, so that the check that was asked for cannot be made.
#[test]
fn a_check_that_no_device_can_make_fails() {
    let stage = TestEnvironment::new("old-versions-impossible");
    let profile = r#"{ "capabilities": { "old": { "properties": { "VkPhysicalDeviceProperties": {
        "apiVersion": 4194304 } } } } }"#;
    let file = stage.folder.join("profile.json");
    std::fs::write(&file, profile).expect("writable");
    let program = compiled(&stage, "old_version.c");
    for (options, code) in [(&["--gpu"][..], 2), (&["--printf"], 2), (&[], 0)] {
        let mut command = stage.under_layer(&[options, &["--null-driver"]].concat(), &program);
        let run = output(command.arg("0").env("LAVASCOPE_NULL_PROFILE", &file));
        let said = text(&run.stderr);
        assert_eq!(run.status.code(), Some(code), "{options:?}: {said}");
        assert_eq!(said.contains("no device of this run can make the checks"), code == 2, "{options:?}: {said}");
    }
}
