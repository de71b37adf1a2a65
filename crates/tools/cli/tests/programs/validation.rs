//! `run --sync`: what is right has no findings, and how findings are reported.

use crate::common::{output, text};
use crate::displays::XServer;
use crate::faults::is_only_for_null;
use crate::test_environment::{TestEnvironment, names, samples, succeed};

/// By driver: lavapipe, and the null driver; and by where hazards are looked for.
const OPTIONS: [[&[&str]; 2]; 2] =
    [[&["--sync"], &["--sync", "--inline"]], [&["--sync", "--null-driver"], &["--sync", "--inline", "--null-driver"]]];

#[test]
fn clean_samples_have_no_hazards() {
    let (stage, screen) = (TestEnvironment::new("sync-clean"), XServer::start());
    for (modes, argument) in OPTIONS.into_iter().zip([None, Some("--no-check")]) {
        for (options, name) in modes.into_iter().flat_map(|it| names().into_iter().map(move |name| (it, name))) {
            // Without the device nobody knows which of its branches a shader takes.
            let is_undecided = name == "fault-observed-branch";
            if argument.is_none() && is_only_for_null(&name) || is_undecided {
                continue;
            }
            let mut command = stage.under_layer_with_report(options, samples());
            command.arg(&name).args(argument).env("DISPLAY", &screen.display);
            if name.starts_with("fault-") {
                command.arg("--fixed");
            }
            succeed(&mut command);
            stage.report().assert_clean(&name);
        }
    }
}

#[test]
fn the_exit_code_can_be_the_programs() {
    let stage = TestEnvironment::new("sync-exit-code");
    let run = succeed(stage.under_layer(&["--sync", "--exit-code", "app"], samples()).args(["fault-war-copy"]));
    assert!(text(&run.stderr).starts_with("error[WAR]: "), "{}", text(&run.stderr));
}

/// The code, the severity and the count of each finding of a sample, with the setting `caches`.
fn findings_with_caches(stage: &TestEnvironment, options: &[&str], arguments: &[&str], caches: &str) -> Vec<String> {
    let mut command = stage.under_layer_with_report(options, samples());
    output(command.args(arguments).env("LAVASCOPE_CACHES", caches));
    let report = stage.report();
    let findings = report.0["findings"].as_array().expect("findings");
    findings.iter().map(|it| format!("{} {} {}", it["code"], it["severity"], it["occurrences"])).collect()
}

/// The guard of the caches of the layer: the last command buffer of a thread, and the choices for draws. It runs one
/// sample in four; `LAVASCOPE_TEST_ALL=1` runs all.
#[test]
fn samples_have_the_same_findings_without_caches() {
    let stage = TestEnvironment::new("sync-caches");
    let compare = |options: &[&str], arguments: &[&str]| {
        let [cached, uncached] = ["on", "off"].map(|it| findings_with_caches(&stage, options, arguments, it));
        assert_eq!(cached, uncached, "{arguments:?}");
        cached.len()
    };
    let mut found = [0, 0];
    let step = if std::env::var_os("LAVASCOPE_TEST_ALL").is_some() { 1 } else { 4 };
    for name in names().iter().filter(|it| it.starts_with("fault-")).step_by(step) {
        found[0] += compare(OPTIONS[1][1], &[name, "--no-check"]);
        if name.starts_with("fault-bounds") && !is_only_for_null(name) {
            found[1] += compare(&["--gpu"], &[name]);
        }
    }
    assert!(found[0] > 10 && found[1] > 0, "{found:?} findings");
}

/// What depends on a shader is an error to whoever wants it so.
#[test]
fn the_heuristic_makes_errors_of_what_is_likely() {
    let stage = TestEnvironment::new("sync-heuristic");
    for (value, severity) in [("0", "warning"), ("1", "error")] {
        let mut command = stage.under_layer_with_report(OPTIONS[1][1], samples());
        command.env("VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC", value);
        output(command.args(["fault-missing-barrier-compute", "--no-check"]));
        let report = stage.report();
        assert_eq!(report.0["findings"][0]["severity"], severity, "{:#}", report.0);
        assert_eq!(report.0["findings"].as_array().map(Vec::len), Some(1), "{:#}", report.0);
    }
}

/// Which element of an array a shader takes nobody knows: no setting makes an error of that.
#[test]
fn the_heuristic_leaves_elements_of_arrays_possible() {
    let stage = TestEnvironment::new("sync-heuristic-arrays");
    for (options, expected) in [(&["--sync"][..], None), (&["--sync", "--possible"], Some("info"))] {
        let mut command = stage.under_layer_with_report(options, samples());
        command.env("VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC", "1");
        output(command.args(["fault-observed-element", "--fixed", "--no-check"]));
        let report = stage.report();
        let found = report.0["findings"].as_array().expect("a list");
        let severities: Vec<_> = found.iter().map(|it| it["severity"].as_str()).collect();
        assert!(severities.iter().all(|it| *it == expected), "{:#}", report.0);
        assert_eq!(severities.is_empty(), expected.is_none(), "{:#}", report.0);
    }
}

/// A capture may end, so that nobody says what the host writes. A draw may then read all vertices that are bound: that is
/// possible, where something else than all of them was written, and no more.
#[test]
fn vertices_whose_indices_nobody_read_are_possible() {
    let stage = TestEnvironment::new("sync-unread-indices");
    let options: [&[&str]; 2] = [&["--sync"], &["--sync", "--possible"]];
    for (options, is_reported) in options.into_iter().zip([false, true]) {
        let options = [options, &["--capture", "unread.lava"]].concat();
        let mut command = stage.under_layer_with_report(&options, samples());
        let run = output(command.args(["fault-indexed-vertices", "--fixed"]));
        let report = stage.report();
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        let found = report.0["findings"].as_array().expect("a list");
        assert_eq!(
            found.iter().map(|it| it["severity"].as_str()).collect::<Vec<_>>(),
            vec![Some("info"); usize::from(is_reported)]
        );
    }
}

/// Without `run`, and by the names that other layers have for it.
#[test]
fn the_khronos_name_switches_it_on() {
    let stage = TestEnvironment::new("sync-khronos");
    succeed(stage.bare(env!("CARGO_BIN_EXE_lavascope")).args(["env", "--as-khronos"]));
    let mut command = stage.bare(samples());
    command.env("VK_LAYER_PATH", stage.folder.join("cache/lavascope/layer-as-khronos"));
    command.env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation").env("VK_LAYER_VALIDATE_SYNC", "1");
    let run = succeed(command.arg("fault-war-copy"));
    let logged = "lavascope: error: [ SYNC-HAZARD-WRITE-AFTER-READ | MessageID = 0x376bc9df ] vkCmdFillBuffer()";
    assert_eq!(text(&run.stderr).matches(logged).count(), 1, "{}", text(&run.stderr));
}

#[test]
fn vkcube_has_no_hazards() {
    let (stage, screen) = (TestEnvironment::new("sync-vkcube"), XServer::start());
    for options in OPTIONS[0] {
        succeed(stage.under_layer_with_report(options, "vkcube").args(["--c", "60"]).env("DISPLAY", &screen.display));
        let report = stage.report();
        report.assert_clean("vkcube");
        assert_eq!(report.calls_of("vkQueuePresentKHR"), 60, "{:#}", report.0);
        assert_eq!(report.0["processes"][0]["not_followed"].as_array().map(Vec::len), Some(0), "{:#}", report.0);
    }
}
