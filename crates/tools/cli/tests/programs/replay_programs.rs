//! `replay` of small programs, each of which does one thing that replays failed at.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use lavascope_record::{Outcome, RecordPhase, check};
use lavascope_test_support::set_driver;
use serde_json::Value;

use crate::bad_input::compiled;
use crate::common::{output, text};
use crate::hostile::{TestRecord, read_from};
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
        let run = output(&mut replay(stage, options));
        let result: Value = serde_json::from_slice(&run.stdout).expect("JSON");
        // If the device writes nothing that the host can read, there is nothing to compare.
        let code = if result["not_compared"].is_string() { 2 } else { 0 };
        assert_eq!(run.status.code(), Some(code), "{}", text(&run.stderr));
        assert_eq!(result["different_bytes"].as_u64(), Some(0), "{result:#}");
    }
}

/// Where a trace has the address that the program passes on: in the parameters of each command, and in host writes.
fn addresses_in(stage: &TestEnvironment, file: &str) -> BTreeMap<&'static str, usize> {
    let all = read_from(&stage.folder.join(file));
    let is_leave = |it: &&TestRecord| it.head().kind == RecordPhase::Leave as u8;
    let address_of = |record: &TestRecord| match Outcome::of(check(&record.words).expect("it is whole")) {
        Some(Outcome::GetBufferDeviceAddress(outputs)) => Some(outputs.result + 256),
        _ => None,
    };
    let address = all.iter().filter(is_leave).find_map(address_of).expect("the program asked for it");
    let halves = [address as u32, (address >> 32) as u32];
    let mut counts = BTreeMap::new();
    for record in all.iter().filter(|it| !is_leave(it)) {
        let name = match record.head().kind {
            kind if kind == RecordPhase::Enter as u8 => {
                check(&record.words).expect("it is whole").command().desc().name
            }
            _ => "beside",
        };
        let words: Vec<u32> = record.words.iter().flat_map(|it| [*it as u32, (*it >> 32) as u32]).collect();
        // Perhaps with another word between the halves.
        let is_it = |it: &&[u32]| it[..2] == halves || it[0] == halves[1] && it[2] == halves[0];
        let count = words.windows(3).filter(is_it).count();
        if count > 0 {
            *counts.entry(name).or_default() += count;
        }
    }
    counts
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
    assert!(calls_of(&stage, "trace.lava", "vkEnumeratePhysicalDevices") > 200);
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

#[test]
fn addresses_in_two_unaligned_words_become_those_of_this_device() {
    let stage = TestEnvironment::new("replay-addresses");
    captured(&stage, "addresses");
    let there = addresses_in(&stage, "trace.lava");
    let expected = [
        ("vkCmdPushConstants", 1),
        ("vkCmdUpdateBuffer", 1),
        ("vkCreateComputePipelines", 2),
        ("vkUpdateDescriptorSetWithTemplate", 1),
        ("vkUpdateDescriptorSets", 1),
    ];
    assert!(expected.iter().all(|it| there.get(it.0) == Some(&it.1)) && there["beside"] > 0, "{there:?}");
    replayed(&stage);
    assert_eq!(addresses_in(&stage, "again.lava"), there);
    let plan = succeed(stage.lavascope().args(["replay", "--null", "--dry-run", "trace.lava"]));
    assert!(text(&plan.stdout).contains("the program uses device addresses"), "{}", text(&plan.stdout));
}

#[test]
fn a_crash_of_a_replay_with_device_addresses_says_so() {
    let stage = TestEnvironment::new("replay-crash");
    captured(&stage, "addresses");
    let mut command = replay(&stage, &["--pause-at", "20"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (mut said, mut lines) = (String::new(), BufReader::new(child.stderr.take().expect("it has one")));
    lines.read_line(&mut said).expect("it says where it is");
    let pid = said.split("the process is ").nth(1).and_then(|it| it.split(',').next()).and_then(|it| it.parse().ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw).expect("and which process it is");
    rustix::process::kill_process(pid, rustix::process::Signal::ABORT).expect("it is there");
    lines.read_to_string(&mut said).expect("it says why it ends");
    assert_eq!(child.wait().expect("it ends").code(), Some(2), "{said}");
    assert!(said.contains("SIGABRT") && said.contains("the program uses device addresses"), "{said}");
}

#[test]
fn a_copy_of_an_image_to_host_memory_is_made_again() {
    let stage = TestEnvironment::new("replay-host-copy");
    captured(&stage, "host-copy");
    replayed(&stage);
    succeed(&mut replay(&stage, &["--dry-run"]));
    assert_eq!(calls_of(&stage, "again.lava", "vkCopyImageToMemory"), 2);
}
