//! `run --sync` finds each planted fault, with the names of what it is about, and nothing else.

use serde_json::Value;

use crate::common::{output, text};
use crate::displays::XServer;
use crate::test_environment::{RunReport, TestEnvironment, names, samples};

/// What is found in a sample.
struct ExpectedFault {
    name: &'static str,
    /// On lavapipe, which has one queue, and on the null driver, which has more.
    codes: [&'static str; 2],
    /// An error is certain; where the shader decides something, it is a warning.
    severity: &'static str,
    function: &'static str,
    prior: &'static str,
    /// The name of the resource.
    object: &'static str,
    /// What else the text must have.
    parts: &'static [&'static str],
    drivers: Drivers,
    findings: usize,
    is_fix_verified: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Drivers {
    Both,
    /// Lavapipe lacks what it needs.
    Null,
}

const RAW: [&str; 2] = ["SYNC-HAZARD-READ-AFTER-WRITE"; 2];
const WAR: [&str; 2] = ["SYNC-HAZARD-WRITE-AFTER-READ"; 2];
const WAW: [&str; 2] = ["SYNC-HAZARD-WRITE-AFTER-WRITE"; 2];
const READ_RACES: [&str; 2] = ["SYNC-HAZARD-READ-RACING-WRITE"; 2];
const WRITE_RACES: [&str; 2] = ["SYNC-HAZARD-WRITE-RACING-READ"; 2];
const WRITES_RACE: [&str; 2] = ["SYNC-HAZARD-WRITE-RACING-WRITE"; 2];
/// A race where there are two queues.
const RAW_OR_RACE: [&str; 2] = [RAW[0], READ_RACES[0]];

/// An error, found on both drivers.
const fn fault(
    name: &'static str,
    codes: [&'static str; 2],
    [function, prior]: [&'static str; 2],
    object: &'static str,
) -> ExpectedFault {
    ExpectedFault {
        name,
        codes,
        severity: "error",
        function,
        prior,
        object,
        parts: &[],
        drivers: Drivers::Both,
        findings: 1,
        is_fix_verified: true,
    }
}

impl ExpectedFault {
    const fn warning(self) -> ExpectedFault {
        ExpectedFault { severity: "warning", ..self }
    }

    /// Two buffers have the fault.
    const fn twice(self) -> ExpectedFault {
        ExpectedFault { findings: 2, ..self }
    }

    const fn on_null(self) -> ExpectedFault {
        ExpectedFault { drivers: Drivers::Null, ..self }
    }

    const fn with(self, parts: &'static [&'static str]) -> ExpectedFault {
        ExpectedFault { parts, ..self }
    }
}

const FILL: &str = "vkCmdFillBuffer";
const UPDATE: &str = "vkCmdUpdateBuffer";
const COPY: &str = "vkCmdCopyBuffer";
const READ_IMAGE: &str = "vkCmdCopyImageToBuffer";
const CLEAR: &str = "vkCmdClearColorImage";
const DISPATCH: &str = "vkCmdDispatch";
const DRAW: &str = "vkCmdDraw";
const BARRIER: &str = "vkCmdPipelineBarrier";
const HOST: &str = "the host";
/// Of a write that no call of Vulkan makes.
const MAPPED_PARTS: &[&str] = &["before vkWaitForFences", "vkWaitForFences on VkFence#1"];

/// In the order of the list.
const FAULTS: &[ExpectedFault] = &[
    fault("war-copy", WAR, [FILL, COPY], "source")
        .with(&["\"copy, then overwrite\"", "an execution dependency is sufficient"]),
    fault("copy-buffer", RAW, [COPY, FILL], "source"),
    fault("update-buffer", WAW, [UPDATE, FILL], "buffer").with(&["\"buffer\"[0..8]"]),
    fault("copy-image", RAW, ["vkCmdCopyImage", CLEAR], "source"),
    fault("copy-buffer-to-image", RAW, ["vkCmdCopyBufferToImage", FILL], "source"),
    fault("copy-image-to-buffer", WAR, [READ_IMAGE, COPY], "buffer"),
    fault("blit-image", RAW, ["vkCmdBlitImage", CLEAR], "source"),
    fault("resolve-image", RAW, ["vkCmdResolveImage", CLEAR], "source"),
    fault("clear-color-image", WAR, [CLEAR, READ_IMAGE], "image"),
    fault("clear-depth-image", RAW, [READ_IMAGE, "vkCmdClearDepthStencilImage"], "depths"),
    fault("query-results", RAW, [COPY, "vkCmdCopyQueryPoolResults"], "results"),
    fault("barrier-stage", RAW, [DISPATCH; 2], "between").with(&["destination stages lack"]),
    fault("barrier-access", RAW, [DISPATCH; 2], "between").with(&["destination accesses lack"]),
    fault("barrier-execution", RAW, [DISPATCH; 2], "between").with(&["accesses lack"]),
    fault("barrier-order", RAW, [DISPATCH; 2], "between").with(&["was executed before the earlier access"]),
    fault("barrier-bytes", RAW, [COPY, FILL], "source").with(&["\"source\"[512..1024]"]),
    fault("barrier-levels", RAW, [READ_IMAGE, CLEAR], "levels").with(&["\"levels\".mip1"]),
    fault("barrier-clear", RAW, [COPY, FILL], "source").with(&["VK_PIPELINE_STAGE_2_CLEAR_BIT"]),
    fault("layout", WAW, [BARRIER, "vkCmdCopyBufferToImage"], "uploaded").with(&["image layout transition"]),
    fault("barrier-queue", RAW, [COPY, FILL], "source").on_null(),
    fault("vertex-buffer", RAW, [DRAW, UPDATE], "vertices").with(&["\"vertices\"[0..48]"]),
    fault("indexed-vertices", RAW, ["vkCmdDrawIndexed", COPY], "vertices").with(&["\"vertices\"[48..96]"]),
    fault("indirect-indices", WAR, [FILL, "vkCmdDrawIndexedIndirect"], "indices").with(&["\"indices\"[0..24]"]),
    fault("index-buffer", RAW, ["vkCmdDrawIndexed", UPDATE], "indices").with(&["\"indices\"[0..24]"]),
    fault("draw-indirect", RAW, ["vkCmdDrawIndirect", UPDATE], "parameters").with(&["\"parameters\"[0..16]"]),
    fault("draw-indirect-count", RAW, ["vkCmdDrawIndirectCount", UPDATE], "count").with(&["\"count\"[0..4]"]),
    fault("uniform-buffer", RAW, [DRAW, UPDATE], "paint").with(&["VK_ACCESS_2_UNIFORM_READ_BIT"]),
    fault("storage-buffer", RAW, [DRAW, DISPATCH], "paint"),
    fault("sampled-image", RAW, [DRAW, CLEAR], "texture").with(&["VK_ACCESS_2_SHADER_SAMPLED_READ_BIT"]),
    fault("secondary-draw", RAW, ["vkCmdDrawIndexed", UPDATE], "indices").with(&["executed by command"]),
    fault("color-attachment", WAR, [DRAW, READ_IMAGE], "canvas"),
    fault("clear-attachments", WAR, ["vkCmdClearAttachments", READ_IMAGE], "canvas"),
    fault("depth-attachment", RAW, ["vkCmdBeginRendering", "vkCmdEndRendering"], "depths").with(&["loadOp"]),
    fault("resolve-attachment", WAR, ["vkCmdEndRendering", READ_IMAGE], "resolved").with(&["resolve"]),
    fault("load-op", RAW, ["vkCmdBeginRendering", CLEAR], "canvas").with(&["loadOp"]),
    fault("store-op", RAW, [READ_IMAGE, "vkCmdEndRendering"], "canvas").with(&["storeOp"]),
    fault("suspended-rendering", RAW, [READ_IMAGE, "vkCmdEndRendering"], "canvas").with(&["\"end\", submit "]),
    fault("missing-barrier-compute", RAW, [DISPATCH; 2], "between").warning().with(&[
        "\"two dispatches\"",
        "\"between\"[0..1024]",
        "vkCmdDispatch in two dispatches::read",
    ]),
    fault("dispatch-indirect", RAW, ["vkCmdDispatchIndirect", UPDATE], "parameters").with(&["\"parameters\"[0..12]"]),
    fault("specialization", RAW, [DISPATCH, FILL], "second"),
    fault("descriptor-array", RAW, [DISPATCH, FILL], "buffer 2"),
    fault("dynamic-offset", RAW, [DISPATCH, FILL], "source").with(&["\"source\"[512..1024]"]),
    fault("push-descriptors", RAW, [DISPATCH, FILL], "source"),
    fault("device-address", RAW, [DISPATCH, FILL], "source"),
    fault("storage-image", RAW, [READ_IMAGE, DISPATCH], "painted"),
    fault("threads", WAW, [FILL; 2], "slices").with(&["\"thread ", "executed by command 2 of", "\"all slices\""]),
    fault("subpass", WRITES_RACE, ["vkCmdNextSubpass", "vkCmdBeginRenderPass"], "first")
        .with(&["image layout transition", "subpass dependency 1 of VkRenderPass#0"]),
    fault("external-dependency", RAW, ["vkCmdBeginRenderPass", CLEAR], "canvas").with(&["loadOp"]),
    fault("initial-layout", WAR, ["vkCmdBeginRenderPass", READ_IMAGE], "canvas").with(&["layout transition"]),
    fault("final-layout", RAW, [READ_IMAGE, "vkCmdEndRenderPass"], "canvas").with(&["layout transition"]),
    fault("self-dependency", RAW, [DRAW; 2], "paint"),
    fault("event-stage", RAW, [COPY, FILL], "source").with(&["event"]),
    fault("event-buffer", RAW, [COPY, FILL], "source").with(&["\"other\""]),
    fault("event-wait", RAW, [COPY, FILL], "source"),
    fault("queue-race", RAW_OR_RACE, [COPY, FILL], "shared")
        .with(&["\"read\", submit 2 on VkQueue#", "\"write\", submit 1 on VkQueue#"]),
    fault("semaphore-stage", RAW, [COPY, FILL], "shared").with(&["VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT"]),
    fault("timeline-value", RAW_OR_RACE, [COPY, FILL], "shared"),
    fault("ownership-race", WRITES_RACE, [BARRIER; 2], "shared").on_null(),
    ExpectedFault {
        severity: "warning",
        is_fix_verified: false,
        drivers: Drivers::Null,
        ..fault("ownership-acquire", ["SYNC-CONTENTS-READ-WITHOUT-ACQUIRE"; 2], [""; 2], "shared")
    },
    fault("fence", READ_RACES, [HOST, FILL], "result"),
    fault("host-write", WRITE_RACES, [HOST, COPY], "upload"),
    fault("host-barrier", RAW, [HOST, FILL], "result"),
    fault("mapped-uniforms", WRITE_RACES, [HOST, DRAW], "paint 0").twice().with(MAPPED_PARTS),
    fault("mapped-vertices", WRITE_RACES, [HOST, DRAW], "vertices 0").twice().with(MAPPED_PARTS),
    fault("mapped-staging", WRITE_RACES, [HOST, "vkCmdCopyBufferToImage"], "upload 0").twice().with(MAPPED_PARTS),
    fault("mapped-indirect", WRITE_RACES, [HOST, "vkCmdDrawIndirect"], "parameters 0").twice().with(MAPPED_PARTS),
    fault("present", ["SYNC-HAZARD-PRESENT-AFTER-WRITE"; 2], ["vkQueuePresentKHR", BARRIER], "image 0 of the screen"),
    fault("acquire", WAR, [BARRIER, "vkAcquireNextImageKHR"], "image 0 of the screen"),
    fault(
        "acquire-wait",
        ["SYNC-HAZARD-WRITE-AFTER-PRESENT"; 2],
        [BARRIER, "vkAcquireNextImageKHR"],
        "image 0 of the screen",
    ),
    fault("alias-buffer", RAW, [COPY, FILL], "second").with(&["\"first\"[0..1024], which has the same memory"]),
    fault("alias-image", WAR, [CLEAR, COPY], "image").with(&["\"buffer\"[0..1024], which has the same memory"]),
    fault("sparse-alias", RAW, [COPY, FILL], "second").on_null().with(&["which has the same memory"]),
    fault("conditional-rendering", RAW, ["vkCmdBeginConditionalRenderingEXT", FILL], "condition"),
    fault("transform-feedback", RAW, [COPY, DRAW], "captured"),
    fault("mesh-indirect", RAW, ["vkCmdDrawMeshTasksIndirectEXT", UPDATE], "parameters").on_null(),
    fault("build-input", RAW, ["vkCmdBuildAccelerationStructuresKHR", UPDATE], "boxes").on_null(),
    fault(
        "acceleration-structure",
        RAW,
        ["vkCmdCopyAccelerationStructureKHR", "vkCmdBuildAccelerationStructuresKHR"],
        "bottom",
    )
    .on_null(),
    fault("trace-rays", RAW, ["vkCmdTraceRaysKHR", "vkCmdBuildAccelerationStructuresKHR"], "scene").on_null(),
];

/// Whether lavapipe cannot run the sample.
pub(crate) fn is_only_for_null(name: &str) -> bool {
    let own = |it: &&ExpectedFault| name.strip_prefix("fault-") == Some(it.name);
    is_dangerous(name) || FAULTS.iter().find(own).is_some_and(|it| it.drivers == Drivers::Null)
}

/// Whether a driver may crash that meets the fault without our checks, or lavapipe lacks what it needs.
fn is_dangerous(name: &str) -> bool {
    let all = ["index", "never-written", "sampler-index", "sampler-never", "pushed-never", "rays-nv"];
    let is_it = |it: &str| all.contains(&it) || it.starts_with("instances") || it.starts_with("late");
    name.strip_prefix("fault-bounds-").is_some_and(is_it) || is_rare(name)
}

const MAPPED_DESCRIPTORS: &str = "fault-mapped-descriptors";

/// Which descriptors of a buffer a shader reads is not known.
#[test]
fn a_descriptor_that_the_host_changes_is_a_possible_hazard() {
    let stage = TestEnvironment::new("mapped-descriptors");
    for (fault, count) in [(None, 1), (Some("--fixed"), 0)] {
        let options = ["--sync", "--null-driver", "--possible"];
        let mut command = stage.under_layer_with_report(&options, samples());
        output(command.args([MAPPED_DESCRIPTORS, "--no-check"]).args(fault));
        let report = stage.report();
        let findings = report.0["findings"].as_array().expect("a list");
        let hazards: Vec<&Value> = findings.iter().filter(|it| it["code"] == WRITE_RACES[0]).collect();
        assert_eq!(hazards.len(), count, "{:#}", report.0);
        assert!(hazards.iter().all(|it| it["objects"][0]["name"] == "descriptors"), "{:#}", report.0);
    }
}

/// The same with the calls of a file, whatever finds the writes.
#[test]
fn host_writes_are_checked_in_traces() {
    let stage = TestEnvironment::new("mapped-traces");
    for (name, method) in [("uniforms", "auto"), ("vertices", "auto"), ("staging", "copy"), ("indirect", "auto")] {
        for (fault, code) in [("--no-check", 1), ("--fixed", 0)] {
            let mut capture = stage.lavascope();
            capture.args(["capture", "-o", "trace.lava", "--"]).arg(samples());
            capture.args([&format!("fault-mapped-{name}"), fault]).env("LAVASCOPE_CAPTURE_MEMORY", method);
            assert!(output(&mut capture).status.success(), "{name} {fault}");
            let result = output(stage.lavascope().args(["check", "trace.lava"]));
            let said = text(&result.stdout) + &text(&result.stderr);
            assert_eq!(result.status.code(), Some(code), "{name} {fault}: {said}");
            assert_eq!(said.contains("lavascope: 2 errors"), code == 1, "{name} {fault}: {said}");
        }
    }
}

/// What is not checked is in the last line.
#[test]
fn mapped_memory_that_is_not_checked_is_counted() {
    let stage = TestEnvironment::new("mapped-unchecked");
    let said = |options: &[&str]| {
        let mut command = stage.lavascope();
        command.arg("run").args(options).arg("--").arg(samples()).args(["fault-mapped-staging", "--no-check"]);
        let output = output(command.env("COLUMNS", "400"));
        (output.status.code(), text(&output.stderr))
    };
    let (code, off) = said(&["--no-host-writes"]);
    assert!(code == Some(0) && off.contains("host writes (--no-host-writes)"), "{code:?} {off}");
    let (code, on) = said(&[]);
    assert!(code == Some(1) && !on.contains("mapped mem"), "{code:?} {on}");
}

/// Whether it needs an extension that lavapipe lacks.
pub(crate) fn is_rare(name: &str) -> bool {
    let all = ["object", "buffered", "chained-module", "rays", "generated", "mesh", "older"];
    let own = ["fault-bounds-", "fault-observed-"].iter().find_map(|it| name.strip_prefix(it));
    name == MAPPED_DESCRIPTORS || own.is_some_and(|name| all.iter().any(|it| name.starts_with(it)))
}

#[test]
fn every_fault_is_in_the_table() {
    let planted = names().iter().filter_map(|it| it.strip_prefix("fault-")).map(str::to_owned).collect::<Vec<_>>();
    // Those have tests of their own.
    let own = ["bounds-", "observed-", "five-bugs", "mapped-descriptors"];
    let planted: Vec<String> = planted.into_iter().filter(|it| !own.iter().any(|own| it.starts_with(own))).collect();
    assert_eq!(planted, FAULTS.iter().map(|it| it.name).collect::<Vec<_>>());
    assert!(planted.len() >= 40, "{}", planted.len());
}

#[test]
fn every_fault_is_found_on_lavapipe() {
    find_all("sync-faults", 0, &["--sync"], FAULTS.iter().filter(|it| it.drivers == Drivers::Both));
}

#[test]
fn every_fault_is_found_on_the_null_driver() {
    find_all("sync-faults-null", 1, &["--sync", "--null-driver"], FAULTS.iter());
}

#[test]
fn every_fault_is_found_inside_of_the_calls() {
    find_all("sync-faults-inline", 1, &["--sync", "--inline", "--null-driver"], FAULTS.iter());
}

fn find_all(name: &str, driver: usize, options: &[&str], faults: impl Iterator<Item = &'static ExpectedFault>) {
    let (stage, screen) = (TestEnvironment::new(name), XServer::start());
    for fault in faults {
        let mut command = stage.under_layer_with_report(options, samples());
        command.arg(format!("fault-{}", fault.name)).arg("--no-check").env("DISPLAY", &screen.display);
        let output = output(&mut command);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}\n{said}", fault.name);
        assert_readable(fault.name, &said);
        check(fault, driver, &stage.report());
    }
}

/// Each finding has at most 15 lines of 80 columns.
fn assert_readable(name: &str, said: &str) {
    const LINES_MAX: usize = 15;
    let findings = said.split("\n\n").filter(|it| it.starts_with("error[") || it.starts_with("warning["));
    for finding in findings {
        assert!(finding.lines().count() <= LINES_MAX, "{name}: more than {LINES_MAX} lines\n{finding}");
        let is_wide = |it: &&str| it.chars().count() > 80;
        assert_eq!(finding.lines().find(is_wide), None, "{name}: more than 80 columns\n{finding}");
    }
}

fn check(fault: &ExpectedFault, driver: usize, report: &RunReport) {
    let (name, findings) = (fault.name, report.0["findings"].as_array().expect("a list"));
    assert_eq!(findings.len(), fault.findings, "{name}: {:#}", report.0);
    let value = &findings[0];
    assert_eq!(value["code"], fault.codes[driver], "{value:#}");
    assert_eq!(value["severity"], fault.severity, "{value:#}");
    assert_eq!(property(value, "command"), fault.function, "{value:#}");
    assert_eq!(property(value, "prior_command"), fault.prior, "{value:#}");
    assert_eq!(value["objects"][0]["name"], fault.object, "{value:#}");
    assert_eq!(value["fixes"][0]["is_verified"], fault.is_fix_verified, "{value:#}");
    let fix = if fault.is_fix_verified { "Fix (verified): " } else { "Fix (not verified): " };
    let said = value["message"].as_str().unwrap_or_default();
    for part in fault.parts.iter().chain(&[fix]) {
        assert!(said.contains(part), "{name}: no `{part}` in\n{said}");
    }
}

fn property<'a>(finding: &'a Value, key: &str) -> &'a str {
    let properties = finding["properties"].as_array().expect("a list");
    properties.iter().find(|it| it["key"] == key).and_then(|it| it["value"].as_str()).unwrap_or_default()
}
