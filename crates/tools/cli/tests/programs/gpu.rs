//! `run --gpu`: what the layer asks of a driver for its checks, and what it makes of what is written late, of blocks
//! in sets, and of shaders without lines.

use std::collections::BTreeMap;
use std::path::Path;

use crate::below::system_khronos;
use crate::bounds::{Expected, STORAGE, assert_findings, invocations};
use crate::common::{output, text};
use crate::test_environment::{TestEnvironment, samples, succeed};

use lavascope_test_support::{set_driver, swiftshader};

/// What is written after a draw was recorded, in primary and secondary command buffers.
const LATE_FAULTS: [(&str, &[Expected]); 2] = [
    (
        "fault-bounds-late",
        &[(
            "VUID-vkCmdDispatch-None-08114",
            &["Storage buffer descriptor index 2 was never written (set = 0, binding = 0)", "Command buffer (pick)"],
            256,
        )],
    ),
    (
        "fault-bounds-late-short",
        &[(STORAGE, &["where 64 bytes are bound to descriptor 2", "with indices from 16 to 255"], 240)],
    ),
];

#[test]
fn what_is_written_late_counts_when_it_is_submitted() {
    let driver = swiftshader();
    let stage = TestEnvironment::new("gpu-late");
    for (name, expected) in LATE_FAULTS {
        assert_findings(&stage, name, expected, |command| {
            set_driver(command, &driver);
        });
    }
}

#[test]
fn inline_uniform_blocks_are_checked() {
    let expected: &[Expected] = &[(
        "UNASSIGNED-Inline uniform block access out of bounds",
        &["where 128 bytes are bound to descriptor 0 (set = 0, binding = 0)", "with indices from 8 to 15"],
        128,
    )];
    assert_findings(&TestEnvironment::new("gpu-inline"), "fault-bounds-inline", expected, |_| ());
}

/// The host lets work go only after it was submitted: a layer that waits for the queue in between would hang.
#[test]
fn work_may_wait_for_the_host() {
    let expected: &[Expected] = &[(STORAGE, &["binding = 0", "with indices from 128 to 255"], 128)];
    assert_findings(&TestEnvironment::new("gpu-released"), "fault-bounds-released", expected, |_| ());
}

/// Two are submitted at once, and the second one has the fault.
#[test]
fn a_fault_is_reported_with_its_command_buffer() {
    let parts = &["Command buffer (second)(0x", "(dispatch 0 of command buffer 2", "with indices from 128"];
    let expected: &[Expected] = &[(STORAGE, parts, 128)];
    assert_findings(&TestEnvironment::new("gpu-second"), "fault-bounds-second", expected, |_| ());
}

#[test]
fn without_lines_a_message_is_complete() {
    let stage = TestEnvironment::new("gpu-bare");
    let expected: &[Expected] = &[(STORAGE, &["with indices from 128 to 255", "shader: instruction 32"], 128)];
    assert_findings(&stage, "fault-bounds-bare", expected, |_| ());
    output(stage.under_layer_with_report(&["--gpu"], samples()).arg("fault-bounds-bare"));
    let report = stage.report();
    let said = report.0["findings"][0]["message"].as_str().unwrap_or_default();
    assert!(said.contains("Shader Instruction Index = 32. Stage = Compute. Global invocation ID"), "{said}");
    assert!(said.contains("\n  It happened 128 times, with indices from 128 to 255.\n"), "{said}");
    assert!(!said.contains("occurred in file") && !said.contains(" line "), "{said}");
}

/// No memory beside a buffer is touched then, so it is a warning, and can be left out.
#[test]
fn robust_access_makes_warnings() {
    let stage = TestEnvironment::new("gpu-robust");
    let run = output(stage.under_layer_with_report(&["--gpu"], samples()).arg("fault-bounds-robust"));
    let report = stage.report();
    let finding = &report.0["findings"][0];
    assert_eq!((&finding["severity"], invocations(finding)), (&"warning".into(), 128), "{}", text(&run.stderr));
    assert!(finding["message"].as_str().unwrap_or_default().contains("The device accesses buffers robustly"));
    let mut command = stage.under_layer_with_report(&["--gpu"], samples());
    succeed(command.arg("fault-bounds-robust").env("LAVASCOPE_GPU_WARN_ROBUST", "0"));
    stage.report().assert_clean("fault-bounds-robust");
}

/// A program may rely on them. The sample compares what it reads with the fault, too.
#[test]
fn zeros_that_the_device_promises_are_read() {
    let stage = TestEnvironment::new("gpu-zeros");
    succeed(stage.bare(samples()).arg("fault-bounds-zeros"));
    let run = output(stage.under_layer_with_report(&["--gpu"], samples()).arg("fault-bounds-zeros"));
    let (report, said) = (stage.report(), text(&run.stderr));
    assert_eq!(invocations(&report.0["findings"][0]), 128, "{said}");
    assert_eq!(report.0["exit_code"], 0, "{said}");
    succeed(stage.under_layer_with_report(&["--gpu"], samples()).args(["fault-bounds-zeros", "--fixed"]));
    stage.report().assert_clean("fault-bounds-zeros");
}

/// Else what was read after the first submission would be read again after the second.
#[test]
fn records_are_gone_once_they_were_read() {
    let stage = TestEnvironment::new("gpu-cleared");
    let run = succeed(stage.under_layer_with_report(&["--printf"], samples()).arg("printf-again"));
    let shown = text(&[run.stdout, run.stderr].concat());
    for line in ["invocation 5: the square of 15", "invocation 37: the square of 47"] {
        assert_eq!(shown.matches(line).count(), 2, "{shown}");
    }
}

/// The application does not see what checks take of the memory of its device, so the summary has it.
#[test]
fn what_checks_take_of_memory_is_reported() {
    let stage = TestEnvironment::new("gpu-taken");
    let run = succeed(stage.under_layer_with_report(&["--gpu"], samples()).arg("compute"));
    let report = stage.report();
    let checks = &report.0["processes"][0]["checks"];
    let (allocations, bytes) = (checks["allocations"].as_u64(), checks["bytes"].as_u64());
    assert!(allocations > Some(0) && bytes > Some(0), "{:#}", report.0);
    let said = text(&run.stderr);
    let line = format!("checks in shaders took {} KiB of device memory", bytes.unwrap_or(0) / 1024);
    assert!(said.contains(&line), "{line}: {said}");
    succeed(stage.under_layer_with_report(&[], samples()).arg("compute"));
    assert!(stage.report().0["processes"][0]["checks"].is_null());
}

/// The commands that reach the null driver.
struct Calls(Vec<String>);

impl Calls {
    fn of(stage: &TestEnvironment, options: &[&str], name: &str) -> Calls {
        let log = stage.folder.join("calls.txt");
        let _ = std::fs::remove_file(&log);
        let all = [&["--null-driver"], options].concat();
        succeed(
            stage.under_layer_with_report(&all, samples()).args([name, "--no-check"]).env("LAVASCOPE_NULL_LOG", &log),
        );
        stage.report().assert_clean(name);
        Calls::read(&log)
    }

    fn read(log: &Path) -> Calls {
        let text = std::fs::read_to_string(log).expect("the driver wrote it");
        Calls(text.lines().map(str::to_owned).collect())
    }

    /// What is recorded into the command buffer that has a command.
    fn around(&self, command: &str) -> Vec<&str> {
        let at = self.0.iter().position(|it| it == command).unwrap_or_else(|| panic!("{command}: {:#?}", self.0));
        let begin = self.0[..at].iter().rposition(|it| it == "vkBeginCommandBuffer").expect("it began");
        let end = at + self.0[at..].iter().position(|it| it == "vkEndCommandBuffer").expect("it ended");
        let is_recorded = |it: &&str| it.starts_with("vkCmd") && !it.contains("DebugUtilsLabel");
        self.0[begin..end].iter().map(String::as_str).filter(is_recorded).collect()
    }

    fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        self.0.iter().for_each(|it| *counts.entry(it.as_str()).or_insert(0) += 1);
        counts
    }
}

const BARRIER: &str = "vkCmdPipelineBarrier";

/// Before a build of a top level structure, and nowhere else: a barrier, a dispatch of ours, and a barrier. One more is
/// at the end, for the host.
#[test]
fn builds_get_a_dispatch_with_barriers_around_it() {
    let stage = TestEnvironment::new("gpu-builds");
    let all = [
        ("fault-bounds-instances", "vkCmdBuildAccelerationStructuresKHR", false),
        ("fault-bounds-instances-indirect", "vkCmdBuildAccelerationStructuresIndirectKHR", false),
        ("fault-bounds-instances-nv", "vkCmdBuildAccelerationStructureNV", true),
    ];
    for (name, build, is_bound) in all {
        let (bare, checked) = (Calls::of(&stage, &[], name), Calls::of(&stage, &["--gpu"], name));
        let (bare, checked) = (bare.around(build), checked.around(build));
        let mut look = vec![BARRIER, "vkCmdBindPipeline"];
        look.extend(is_bound.then_some("vkCmdBindDescriptorSets"));
        look.extend(["vkCmdPushConstants", "vkCmdDispatch", BARRIER]);
        let last = bare.iter().rposition(|it| *it == build).expect("a build");
        let want = [&bare[..last], &look[..], &bare[last..], &[BARRIER]].concat();
        assert_eq!(checked, want, "{name}");
    }
}

/// Rays are led to our tables as draws are, in both extensions.
#[test]
fn rays_are_led_to_their_tables() {
    let stage = TestEnvironment::new("gpu-rays");
    for (name, trace) in [("fault-trace-rays", "vkCmdTraceRaysKHR"), ("fault-bounds-rays-nv", "vkCmdTraceRaysNV")] {
        let (bare, checked) = (Calls::of(&stage, &[], name), Calls::of(&stage, &["--gpu"], name));
        let (bare, checked) = (bare.around(trace), checked.around(trace));
        let last = bare.iter().rposition(|it| *it == trace).expect("rays");
        let want = [&bare[..last], &["vkCmdPushConstants"], &bare[last..], &[BARRIER]].concat();
        assert_eq!(checked, want, "{name}");
    }
}

/// Buffers have addresses by the older extension as well, and then shaders find our tables by them.
#[test]
fn addresses_of_the_older_extension_are_followed() {
    let stage = TestEnvironment::new("gpu-older");
    let name = "fault-bounds-older-address";
    let (bare, checked) = (Calls::of(&stage, &[], name), Calls::of(&stage, &["--gpu"], name));
    let count = |it: &Calls| it.counts().get("vkGetBufferDeviceAddress").copied().unwrap_or(0);
    assert!(count(&bare) == 2 && count(&checked) > 2, "{:?}", checked.0);
    let (bare, checked) = (bare.around("vkCmdDispatch"), checked.around("vkCmdDispatch"));
    let last = bare.iter().rposition(|it| *it == "vkCmdDispatch").expect("a dispatch");
    let want = [&bare[..last], &["vkCmdPushConstants"], &bare[last..], &[BARRIER]].concat();
    assert_eq!(checked, want);
}

/// A dispatch with a set of ours is between two whose sets are in a buffer: what they use is chosen again behind it.
#[test]
fn sets_in_buffers_stay_where_they_are() {
    const OFFSETS: &str = "vkCmdSetDescriptorBufferOffsetsEXT";
    let stage = TestEnvironment::new("gpu-between");
    let name = "fault-bounds-buffered-between";
    let (bare, checked) = (Calls::of(&stage, &[], name), Calls::of(&stage, &["--gpu"], name));
    let (bare, checked) = (bare.around(OFFSETS), checked.around(OFFSETS));
    let (bind, push, dispatch) = ("vkCmdBindPipeline", "vkCmdPushConstants", "vkCmdDispatch");
    let fill = [BARRIER, "vkCmdFillBuffer", BARRIER];
    let begin = ["vkCmdFillBuffer", BARRIER, bind, "vkCmdBindDescriptorBuffersEXT", OFFSETS];
    let want = [&begin[..], &[dispatch, bind, push, dispatch], &fill, &[bind, dispatch]].concat();
    assert_eq!(bare, want);
    let between = [bind, push, "vkCmdBindDescriptorSets", dispatch, "vkCmdBindDescriptorBuffersEXT", OFFSETS];
    // What the one between had pushed was taken away by a push of ours.
    let last = [bind, push, dispatch, push, BARRIER];
    let want = [&begin[..], &[push, dispatch], &between, &fill, &last].concat();
    assert_eq!(checked, want);
}

/// All that is made for checks is destroyed in the end.
#[test]
fn what_checks_make_is_destroyed() {
    let stage = TestEnvironment::new("gpu-pairs");
    for name in ["compute", "triangle-dynamic", "fault-bounds-full-constants", "fault-bounds-instances-nv"] {
        let (bare, checked) = (Calls::of(&stage, &[], name), Calls::of(&stage, &["--gpu"], name));
        let (bare, checked) = (bare.counts(), checked.counts());
        let more = |command: &str| checked.get(command).unwrap_or(&0) - bare.get(command).unwrap_or(&0);
        for (make, end) in [
            ("vkCreateBuffer", "vkDestroyBuffer"),
            ("vkAllocateMemory", "vkFreeMemory"),
            ("vkCreateDescriptorSetLayout", "vkDestroyDescriptorSetLayout"),
            ("vkCreatePipelineLayout", "vkDestroyPipelineLayout"),
            ("vkCreatePipelineCache", "vkDestroyPipelineCache"),
            ("vkCreateShaderModule", "vkDestroyShaderModule"),
            ("vkCreateDescriptorPool", "vkDestroyDescriptorPool"),
        ] {
            assert_eq!(more(make), more(end), "{name}: {make}");
        }
        assert_eq!(more("vkCreateDescriptorSetLayout"), 2, "{name}: ours and an empty one");
        assert!(more("vkCreateBuffer") > 0 && more("vkAllocateMemory") == more("vkCreateBuffer"), "{name}");
        assert_eq!((more("vkQueueSubmit"), more("vkQueueWaitIdle"), more("vkDeviceWaitIdle")), (0, 0, 0), "{name}");
    }
}

/// What a trace of a program performs under our checks is valid for the Khronos layer below them.
#[test]
fn calls_of_ours_are_valid_when_a_trace_is_performed() {
    let system = system_khronos();
    let stage = TestEnvironment::new("gpu-trace-valid");
    for name in ["compute", "descriptors", "triangle-dynamic"] {
        let mut capture = stage.lavascope();
        succeed(capture.args(["capture", "-o", "trace.lava", "--"]).arg(samples()).arg(name));
        let mut command = stage.lavascope();
        command.args(["replay", "trace.lava", "--validate", "gpu"]).env("VK_LOADER_DEBUG", "layer");
        command.env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation").env("VK_ADD_LAYER_PATH", system);
        let run = succeed(&mut command);
        let said = text(&[run.stdout, run.stderr].concat());
        let place = |layer: &str| said.find(&format!("Insert instance layer \"{layer}\""));
        let (khronos, ours) = (place("VK_LAYER_KHRONOS_validation"), place("VK_LAYER_LAVASCOPE_inspect"));
        assert!(khronos.is_some() && khronos < ours, "{name}: the one below is inserted first: {said}");
        assert!(!said.contains("VUID-") && !said.contains("UNASSIGNED-"), "{name}: {said}");
    }
}
