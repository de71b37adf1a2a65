//! `replay` of small programs, each of which does one thing that replays failed at.

use std::process::Command;

use lavascope_record::{RecordPhase, check};
use lavascope_test_support::set_driver;
use serde_json::Value;

use crate::bad_input::compiled;
use crate::common::{output, text};
use crate::hostile::read_from;
use crate::test_environment::{TestEnvironment, succeed};

/// Captures one way of the program on the null driver, whose copies are real.
fn captured(stage: &TestEnvironment, way: &str) {
    let program = compiled(stage, "replayed.c");
    let mut command = stage.lavascope();
    command.args(["capture", "--results", "-o", "trace.lava", "--"]).arg(program).arg(way);
    set_driver(&mut command, stage.null_driver());
    with_device_salt(&mut command, "1");
    succeed(&mut command);
}

/// As a device of some kind, whose addresses and descriptors are its own.
fn with_device_salt(command: &mut Command, salt: &str) {
    command.env("LAVASCOPE_NULL_SALT", salt).env("LAVASCOPE_NULL_EXECUTE", "transfer");
}

fn replay(stage: &TestEnvironment, options: &[&str]) -> Command {
    let mut command = stage.lavascope();
    command.args(["replay", "--null", "--json", "trace.lava"]).args(options);
    with_device_salt(&mut command, "2");
    command
}

/// Replays on one thread and on all, and on the first captures again.
fn replayed(stage: &TestEnvironment) {
    for options in [&["--threads", "1", "--verify", "--recapture", "again.lava"][..], &["--verify"]] {
        let result = succeed(&mut replay(stage, options));
        let result: Value = serde_json::from_slice(&result.stdout).expect("JSON");
        assert_eq!(result["different_bytes"].as_u64(), Some(0), "{result:#}");
    }
}

/// How often a command was called, in a trace.
fn calls_of(stage: &TestEnvironment, file: &str, command: &str) -> usize {
    let all = read_from(&stage.folder.join(file));
    let enters = all.iter().filter(|it| it.head().kind == RecordPhase::Enter as u8);
    enters.filter(|it| check(&it.words).expect("it is whole").command().desc().name == command).count()
}

#[test]
fn physical_devices_that_are_known_are_not_asked_for_again() {
    let stage = TestEnvironment::new("replay-enumerate");
    captured(&stage, "enumerate");
    assert!(calls_of(&stage, "trace.lava", "vkEnumeratePhysicalDevices") > 1000);
    replayed(&stage);
    let asked = ["vkEnumeratePhysicalDevices", "vkEnumeratePhysicalDeviceGroups"];
    let again = asked.map(|it| calls_of(&stage, "again.lava", it));
    assert!(again.iter().sum::<usize>() < 10, "{again:?}");
}

#[test]
fn names_of_objects_that_exist_in_name_only_are_skipped() {
    let stage = TestEnvironment::new("replay-names");
    captured(&stage, "names");
    for options in [&[][..], &["--threads", "1", "--recapture", "again.lava"], &["--dry-run"]] {
        let result = output(&mut replay(&stage, options));
        assert_eq!(result.status.code(), Some(0), "{options:?}: {}", text(&result.stderr));
    }
    // Those of the queue and of the instance.
    for (command, count) in [("vkSetDebugUtilsObjectNameEXT", 2), ("vkDebugMarkerSetObjectTagEXT", 1)] {
        assert_eq!(calls_of(&stage, "again.lava", command), count, "{command}");
    }
}

#[test]
fn what_a_program_shares_with_itself_is_shared_again() {
    let stage = TestEnvironment::new("replay-shared");
    captured(&stage, "shared");
    replayed(&stage);
    succeed(&mut replay(&stage, &["--dry-run"]));
    for command in ["vkImportFenceFdKHR", "vkGetSemaphoreFdKHR", "vkGetMemoryFdKHR"] {
        let [there, here] = ["trace.lava", "again.lava"].map(|it| calls_of(&stage, it, command));
        assert!(there > 0 && here == there, "{command}: {there}, {here}");
    }
}

/// lavapipe has no descriptors of fences and semaphores.
#[test]
fn memory_that_a_program_shares_with_itself_is_the_same_memory() {
    let stage = TestEnvironment::new("replay-shared-memory");
    let program = compiled(&stage, "replayed.c");
    let mut command = stage.lavascope();
    succeed(command.args(["capture", "--results", "-o", "trace.lava", "--"]).arg(program).arg("shared-memory"));
    for options in [&["--verify", "--json"][..], &["--verify", "--json", "--threads", "1"]] {
        let result = succeed(stage.lavascope().args(["replay", "trace.lava"]).args(options));
        let result: Value = serde_json::from_slice(&result.stdout).expect("JSON");
        assert_eq!((&result["equal_bytes"], &result["different_bytes"]), (&4096.into(), &0.into()), "{result:#}");
    }
}

#[test]
fn a_descriptor_from_elsewhere_is_named_and_not_waited_for() {
    let stage = TestEnvironment::new("replay-foreign");
    captured(&stage, "foreign");
    for (options, code) in [(&["--dry-run"][..], 1), (&[], 2)] {
        let mut command = stage.lavascope();
        let result = output(command.args(["replay", "--null", "trace.lava"]).args(options));
        let said = text(&[result.stdout, result.stderr].concat());
        let expected = "vkImportSemaphoreFdKHR: it imports a file descriptor that no call of the trace exported";
        assert!(result.status.code() == Some(code) && said.contains(expected), "{options:?}: {said}");
    }
}
