//! `run --sync`: each planted fault is found, with the names of what it is about, and nothing else is.

use serde_json::Value;

use crate::common::{output, text};
use crate::screen::Screen;
use crate::stage::{Report, Stage, names, samples, succeed};

/// What is found in a sample.
struct Fault {
    name: &'static str,
    /// On lavapipe, which has one queue, and on the null driver, which has more.
    kinds: [&'static str; 2],
    /// An error is certain; where the shader decides something, it is a warning.
    severity: &'static str,
    function: &'static str,
    prior: &'static str,
    /// The name of the resource.
    object: &'static str,
    /// What else the text must have.
    parts: &'static [&'static str],
}

const FAULTS: [Fault; 6] = [
    Fault {
        name: "fault-missing-barrier-compute",
        kinds: ["READ-AFTER-WRITE"; 2],
        severity: "warning",
        function: "vkCmdDispatch",
        prior: "vkCmdDispatch",
        object: "between",
        parts: &["\"two dispatches\"", "\"between\"[0..1024]", "vkCmdDispatch in two dispatches::read"],
    },
    Fault {
        name: "fault-war-copy",
        kinds: ["WRITE-AFTER-READ"; 2],
        severity: "error",
        function: "vkCmdFillBuffer",
        prior: "vkCmdCopyBuffer",
        object: "source",
        parts: &["\"copy, then overwrite\"", "an execution dependency is sufficient"],
    },
    Fault {
        name: "fault-queue-race",
        kinds: ["READ-AFTER-WRITE", "READ-RACING-WRITE"],
        severity: "error",
        function: "vkCmdCopyBuffer",
        prior: "vkCmdFillBuffer",
        object: "shared",
        parts: &["\"read\", submit 2 on VkQueue#", "\"write\", submit 1 on VkQueue#"],
    },
    Fault {
        name: "fault-layout",
        kinds: ["READ-AFTER-WRITE"; 2],
        severity: "error",
        function: "vkCmdDispatch",
        prior: "vkCmdCopyBufferToImage",
        object: "uploaded",
        parts: &["\"uploaded\".mip0.layer0"],
    },
    Fault {
        name: "fault-threads",
        kinds: ["WRITE-AFTER-WRITE"; 2],
        severity: "error",
        function: "vkCmdFillBuffer",
        prior: "vkCmdFillBuffer",
        object: "slices",
        parts: &["\"thread ", "executed by command 2 of", "\"all slices\""],
    },
    Fault {
        name: "fault-subpass",
        kinds: ["WRITE-RACING-WRITE"; 2],
        severity: "error",
        function: "vkCmdNextSubpass",
        prior: "vkCmdBeginRenderPass",
        object: "first",
        parts: &["performs an image layout transition", "subpass dependency 1 of VkRenderPass#0"],
    },
];

/// By driver: lavapipe, and the null driver; and by where hazards are looked for.
const OPTIONS: [[&[&str]; 2]; 2] =
    [[&["--sync"], &["--sync", "--inline"]], [&["--sync", "--null-driver"], &["--sync", "--inline", "--null-driver"]]];

#[test]
fn clean_samples_have_no_hazards() {
    let (stage, screen) = (Stage::new("sync-clean"), Screen::start());
    for (modes, argument) in OPTIONS.into_iter().zip([None, Some("--no-check")]) {
        for (options, name) in modes.into_iter().flat_map(|it| names().into_iter().map(move |name| (it, name))) {
            let mut command = stage.counted(options, samples());
            command.arg(&name).args(argument).env("DISPLAY", &screen.display);
            if name.starts_with("fault-") {
                command.arg("--mended");
            }
            succeed(&mut command);
            stage.report().assert_clean(&name);
        }
    }
}

#[test]
fn every_fault_is_found() {
    let stage = Stage::new("sync-faults");
    let planted: Vec<String> = names().into_iter().filter(|it| it.starts_with("fault-")).collect();
    assert_eq!(planted, FAULTS.map(|it| it.name));
    for (driver, modes) in OPTIONS.into_iter().enumerate() {
        for (options, fault) in modes.into_iter().flat_map(|it| FAULTS.iter().map(move |fault| (it, fault))) {
            let output = output(stage.counted(options, samples()).args([fault.name, "--no-check"]));
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{}\n{said}", fault.name);
            check(fault, driver, &stage.report(), &said);
        }
    }
}

fn check(fault: &Fault, driver: usize, report: &Report, said: &str) {
    let (name, findings) = (fault.name, report.0["findings"].as_array().expect("a list"));
    // The image that the missing dependency leaves unordered is used once more.
    let count = if name == "fault-subpass" { 2 } else { 1 };
    assert_eq!(findings.len(), count, "{name}: {:#}", report.0);
    let (it, details) = (&findings[0], &findings[0]["details"]);
    assert_eq!(it["code"], format!("SYNC-HAZARD-{}", fault.kinds[driver]), "{it:#}");
    assert_eq!(it["severity"], fault.severity, "{it:#}");
    assert_eq!(fact(details, "command"), fault.function, "{it:#}");
    assert_eq!(fact(details, "prior_command"), fault.prior, "{it:#}");
    assert_eq!(details["objects"][0]["name"], fault.object, "{it:#}");
    assert_eq!(details["fixes"][0]["is_verified"], true, "{it:#}");
    for part in fault.parts.iter().chain(&["Fix (verified): "]) {
        assert!(said.contains(part), "{name}: no `{part}` in\n{said}");
    }
}

fn fact<'a>(details: &'a Value, key: &str) -> &'a str {
    let facts = details["facts"].as_array().expect("a list");
    facts.iter().find(|it| it["key"] == key).and_then(|it| it["value"].as_str()).unwrap_or_default()
}

#[test]
fn the_exit_code_can_be_the_programs() {
    let stage = Stage::new("sync-exit-code");
    let run = succeed(stage.under(&["--sync", "--exit-code", "app"], samples()).args(["fault-war-copy"]));
    assert!(text(&run.stderr).contains("SYNC-HAZARD-WRITE-AFTER-READ"), "{}", text(&run.stderr));
}

/// Without `run`, and by the names that other layers have for it.
#[test]
fn the_khronos_name_switches_it_on() {
    let stage = Stage::new("sync-khronos");
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
    let (stage, screen) = (Stage::new("sync-vkcube"), Screen::start());
    for options in OPTIONS[0] {
        succeed(stage.counted(options, "vkcube").args(["--c", "60"]).env("DISPLAY", &screen.display));
        let report = stage.report();
        report.assert_clean("vkcube");
        assert_eq!(report.calls_of("vkQueuePresentKHR"), 60, "{:#}", report.0);
        assert_eq!(report.0["processes"][0]["not_followed"].as_array().map(Vec::len), Some(0), "{:#}", report.0);
    }
}
