//! Every sample under the layer: its result stays right, and all of its objects are known.

use crate::displays::XServer;
use crate::faults::is_only_for_null;
use crate::test_environment::{TestEnvironment, names, samples, succeed};

fn clean() -> Vec<String> {
    let names: Vec<_> = names().into_iter().filter(|it| !it.starts_with("fault-")).collect();
    assert!(names.len() >= 14, "{names:?}");
    names
}

#[test]
fn every_sample_is_right_under_the_layer() {
    let (stage, screen) = (TestEnvironment::new("samples"), XServer::start());
    for name in clean() {
        succeed(stage.under_layer_with_report(&[], samples()).arg(&name).env("DISPLAY", &screen.display));
        let report = stage.report();
        report.assert_clean(&name);
        // Those with threads have four by default, or two.
        let threads = match name.as_str() {
            "recording" => 3,
            _ if name.starts_with("threads") => 5,
            _ => 1,
        };
        assert_eq!(report.threads(), threads, "{name}: {:#}", report.0);
    }
}

#[test]
fn every_thread_is_counted() {
    let stage = TestEnvironment::new("threads");
    for threads in [1, 3, 16] {
        succeed(stage.under_layer_with_report(&[], samples()).args(["threads", "--threads", &threads.to_string()]));
        let report = stage.report();
        report.assert_clean("threads");
        assert_eq!(report.threads(), threads + 1, "{:#}", report.0);
    }
}

#[test]
fn every_sample_runs_on_the_null_driver() {
    let stage = TestEnvironment::new("null-driver");
    for name in names() {
        succeed(stage.under_layer_with_report(&["--null-driver"], samples()).args([&name, "--no-check"]));
        stage.report().assert_clean(&name);
    }
    for name in ["timeline", "mapped", "events"] {
        let mut command = stage.under_layer_with_report(&["--null-driver"], samples());
        succeed(command.arg(name).env("LAVASCOPE_NULL_EXECUTE", "transfer"));
        stage.report().assert_clean(name);
    }
    // Without execution these checks fail, so they saw bytes that the driver moved.
    let output = crate::common::output(stage.under_layer(&["--null-driver"], samples()).arg("timeline"));
    assert_eq!(output.status.code(), Some(1), "{}", crate::common::text(&output.stderr));
}

#[test]
fn every_object_of_every_sample_is_known() {
    let (stage, screen) = (TestEnvironment::new("print"), XServer::start());
    for name in names().into_iter().filter(|it| !is_only_for_null(it)) {
        succeed(stage.under_layer(&["--print", "calls.txt"], samples()).arg(&name).env("DISPLAY", &screen.display));
        let calls = std::fs::read_to_string(stage.folder.join("calls.txt")).expect("the calls");
        for part in ["#unknown", "bug of ours"] {
            let found = calls.lines().find(|it| it.contains(part));
            assert_eq!(found, None, "{name}");
        }
        for part in ["vkCreateDevice\n", "vkQueueSubmit", "vkDestroyDevice\n", "vkDestroyInstance\n"] {
            assert!(calls.contains(part), "no {part} of {name}");
        }
    }
}
