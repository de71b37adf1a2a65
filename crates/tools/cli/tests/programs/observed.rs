//! `run --sync --gpu`: what shaders really touched decides what is a hazard.

use crate::common::output;
use crate::test_environment::{TestEnvironment, samples, succeed};

const WAW: &str = "SYNC-HAZARD-WRITE-AFTER-WRITE";
const RAW: &str = "SYNC-HAZARD-READ-AFTER-WRITE";

/// Name, code, and the part of a buffer that both touch.
const FAULTS: [(&str, &str, &str); 7] = [
    ("fault-observed-bytes", WAW, "\"target\"[256..512]"),
    ("fault-observed-submits", WAW, "\"target\"[256..512]"),
    ("fault-observed-element", WAW, "\"buffer 2\"[0..1024]"),
    ("fault-observed-branch", RAW, "\"between\"[0..1024]"),
    ("fault-observed-parts", WAW, "\"target\"[512..1024]"),
    ("fault-observed-address", WAW, "\"target\"[256..512]"),
    ("fault-observed-texels", WAW, "\"target\"[256..512]"),
];

const WAYS: [&[&str]; 2] = [&["--sync", "--gpu"], &["--sync", "--gpu", "--inline"]];

#[test]
fn what_shaders_touch_makes_a_possible_hazard_certain() {
    let stage = TestEnvironment::new("observed-faults");
    for (name, code, part) in FAULTS {
        for options in WAYS {
            let run = output(stage.under_layer_with_report(options, samples()).args([name, "--no-check"]));
            let report = stage.report();
            let findings = report.0["findings"].as_array().expect("a list");
            assert_eq!(findings.len(), 1, "{name} {options:?}: {:#}", report.0);
            let finding = &findings[0];
            assert_eq!(
                (finding["code"].as_str(), finding["severity"].as_str()),
                (Some(code), Some("error")),
                "{finding:#}"
            );
            let said = finding["message"].as_str().unwrap_or_default();
            assert!(said.contains(part), "{said}");
            assert!(said.contains("It was observed: on the device, shaders did touch"), "{said}");
            assert!(said.contains("Fix (verified): "), "{said}");
            assert_eq!(run.status.code(), Some(1), "{name}");
        }
    }
}

#[test]
fn what_shaders_do_not_touch_is_no_hazard() {
    let stage = TestEnvironment::new("observed-fixed");
    for (name, ..) in FAULTS {
        for options in WAYS {
            succeed(stage.under_layer_with_report(options, samples()).args([name, "--fixed"]));
            stage.report().assert_clean(name);
            // Nor is it reported as possible, since it is known that it is not.
            succeed(
                stage
                    .under_layer_with_report(options, samples())
                    .args([name, "--fixed"])
                    .env("LAVASCOPE_POSSIBLE", "on"),
            );
            stage.report().assert_clean(name);
        }
    }
}

#[test]
fn without_what_shaders_touch_it_stays_possible() {
    let stage = TestEnvironment::new("observed-without");
    // Of a branch it is likely.
    for (name, code, ..) in FAULTS.iter().filter(|it| it.0 != "fault-observed-branch") {
        for fixed in [&["--no-check"][..], &["--fixed"]] {
            succeed(stage.under_layer_with_report(&["--sync"], samples()).arg(name).args(fixed));
            stage.report().assert_clean(name);
            output(
                stage
                    .under_layer_with_report(&["--sync"], samples())
                    .arg(name)
                    .args(fixed)
                    .env("LAVASCOPE_POSSIBLE", "on"),
            );
            let report = stage.report();
            let item = &report.0["findings"][0];
            assert_eq!(
                (item["code"].as_str(), item["severity"].as_str()),
                (Some(*code), Some("info")),
                "{name}: {item:#}"
            );
        }
    }
}

/// What lavapipe lacks. The null driver runs no shader, so that nothing is touched: what is possible without that is
/// known not to be.
#[test]
fn shader_objects_and_rays_keep_what_they_touch() {
    let stage = TestEnvironment::new("observed-rare");
    for name in ["fault-observed-object", "fault-observed-rays", "fault-observed-rays-library"] {
        let run = |options: &[&str]| {
            let options = [&["--null-driver"], options].concat();
            succeed(
                stage
                    .under_layer_with_report(&options, samples())
                    .args([name, "--no-check"])
                    .env("LAVASCOPE_POSSIBLE", "on"),
            );
            stage.report()
        };
        let without = run(&["--sync"]);
        let item = &without.0["findings"][0];
        assert_eq!((item["code"].as_str(), item["severity"].as_str()), (Some(WAW), Some("info")), "{name}: {item:#}");
        run(&["--sync", "--gpu"]).assert_clean(name);
    }
}

/// Where it is not kept what is behind addresses, nobody says that it was not touched.
#[test]
fn what_is_not_kept_stays_possible() {
    let stage = TestEnvironment::new("observed-blind");
    for fixed in ["--no-check", "--fixed"] {
        let mut command = stage.under_layer_with_report(&["--sync", "--gpu"], samples());
        command.args(["fault-observed-address", fixed]).env("LAVASCOPE_POSSIBLE", "on");
        output(command.env("LAVASCOPE_GPU_DEVICE_ADDRESS", "off"));
        let report = stage.report();
        let item = &report.0["findings"][0];
        assert_eq!((item["code"].as_str(), item["severity"].as_str()), (Some(WAW), Some("info")), "{fixed}: {item:#}");
    }
}
