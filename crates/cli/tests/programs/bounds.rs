//! `run --gpu`: what shaders access out of bounds is told, and nothing else changes.

use crate::common::{output, text};
use crate::faults::is_only_for_null;
use crate::screen::Screen;
use crate::stage::{Stage, names, samples, succeed};

/// Samples, what their messages are called, what they say, and how often it happened.
const FAULTS: [(&str, &str, &[&str], u64); 10] = [
    (
        "fault-bounds-read",
        "UNASSIGNED-Storage buffer access out of bounds",
        &["where 512 bytes are bound", "binding = 0", "with indices from 128 to 255", "target[at] = source[at] * 2u;"],
        128,
    ),
    (
        "fault-bounds-write",
        "UNASSIGNED-Storage buffer access out of bounds",
        &["where 512 bytes are bound", "binding = 1", "with indices from 128 to 255", "double.comp at line 10"],
        128,
    ),
    (
        "fault-bounds-array",
        "UNASSIGNED-Storage buffer access out of bounds",
        &["where 64 bytes are bound to descriptor 2", "with indices from 16 to 255", "Stage = Compute"],
        240,
    ),
    (
        "fault-bounds-uniform",
        "UNASSIGNED-Uniform buffer access out of bounds",
        &["bytes 0 to 15, where 8 bytes are bound", "Stage = Fragment. Fragment coord (x,y) = (", "vkCmdDraw ("],
        256,
    ),
    (
        "fault-bounds-address",
        "UNASSIGNED-Device address out of bounds",
        &[
            "4 bytes at device address 0x",
            "0 bytes behind the end of buffer (source)",
            "which has 1020 bytes",
            "with index 255",
            "address.comp at line 11",
            "target.words[at] = source.words[at] * 2u;",
        ],
        1,
    ),
    (
        "fault-bounds-address-null",
        "UNASSIGNED-Device address out of bounds",
        &["the address is null", "with indices from 0 to 255", "address.comp at line 11"],
        256,
    ),
    (
        "fault-bounds-address-freed",
        "UNASSIGNED-Device address out of bounds",
        &["in buffer (source)", "which was destroyed", "with indices from 0 to 255"],
        256,
    ),
    ("fault-bounds-full-sets", STORAGE, &["binding = 0", "with indices from 128 to 255"], 128),
    ("fault-bounds-full-constants", STORAGE, &["binding = 0", "with indices from 128 to 255"], 128),
    ("fault-bounds-full", STORAGE, &["binding = 0", "with indices from 128 to 255"], 128),
];

const STORAGE: &str = "UNASSIGNED-Storage buffer access out of bounds";

#[test]
fn accesses_out_of_bounds_are_told_and_mended_ones_are_not() {
    let stage = Stage::new("gpu-bounds");
    for (name, code, parts, count) in FAULTS {
        let run = output(stage.counted(&["--gpu"], samples()).arg(name));
        assert_eq!(run.status.code(), Some(1), "{name}: {}", text(&run.stderr));
        let report = stage.report();
        let findings = report.0["findings"].as_array().expect("findings");
        assert_eq!(findings.len(), 1, "{name}: {:#}", report.0);
        let finding = &findings[0];
        assert_eq!((&finding["code"], &finding["severity"]), (&code.into(), &"error".into()), "{name}");
        assert_eq!(finding["count"].as_u64(), Some(count), "{name}: {finding:#}");
        let said = finding["text"].as_str().unwrap_or_default();
        // Where nothing else is left, all draws of a pipeline share one place for their records.
        let place = if name == "fault-bounds-full" { "a draw or dispatch" } else { "(draw or dispatch 0 of" };
        for part in parts.iter().chain(&[place, "command buffer", "Pipeline ("]) {
            assert!(said.contains(part), "{name}: {part}: {said}");
        }
        succeed(stage.counted(&["--gpu"], samples()).args([name, "--mended"]));
        stage.report().assert_clean(name);
    }
}

/// The samples compare their results themselves.
#[test]
fn results_are_the_same_where_shaders_check_themselves() {
    let (stage, screen) = (Stage::new("gpu-same"), Screen::start());
    for name in names() {
        if is_only_for_null(&name) {
            continue;
        }
        let mut command = stage.counted(&["--gpu"], samples());
        command.arg(&name).env("DISPLAY", &screen.display);
        if name.starts_with("fault-") {
            command.arg("--mended");
        }
        succeed(&mut command);
        stage.report().assert_clean(&name);
    }
}

/// No allocation of ours, or few: that is told once, the program goes on, and its results are right.
#[test]
fn without_memory_for_checks_a_program_goes_on() {
    let stage = Stage::new("gpu-no-memory");
    for name in ["descriptors", "compute", "triangle-dynamic", "threads"] {
        for allowed in 0..8 {
            let mut command = stage.counted(&["--gpu"], samples());
            let run = succeed(command.arg(name).env("LAVASCOPE_GPU_ALLOCATIONS", allowed.to_string()));
            let said = text(&run.stderr).matches("there is no memory for checks").count();
            assert!(said <= 1, "{name}, {allowed}: {}", text(&run.stderr));
            assert!(allowed > 0 || said == 1, "{name}: {}", text(&run.stderr));
        }
    }
}

/// The records of calls are of the calls that the application made.
#[test]
fn hazards_are_found_beside_checks() {
    let stage = Stage::new("gpu-and-sync");
    let run = output(stage.counted(&["--gpu", "--sync"], samples()).arg("fault-missing-barrier-compute"));
    assert!(text(&run.stderr).contains("SYNC-HAZARD-READ-AFTER-WRITE"), "{}", text(&run.stderr));
    let run = output(stage.counted(&["--gpu", "--sync"], samples()).arg("fault-bounds-write"));
    let said = text(&run.stderr);
    assert!(said.contains("Storage buffer access out of bounds") && !said.contains("SYNC-HAZARD"), "{said}");
}
