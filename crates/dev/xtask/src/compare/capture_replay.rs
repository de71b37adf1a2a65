//! Programs that others wrote, captured and replayed: as many threads as they had, the same results and pictures, and
//! again.
//!
//! Not part of the tests: it takes minutes, and downloads what it needs into `target/compare`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use crate::compare::{ComparedCase, ToolEnvironment, foreign, prepare_programs};

/// What became of one program.
#[derive(Serialize)]
struct ReplayedProgram {
    program: String,
    threads: u64,
    calls: u64,
    frames: u64,
    /// Frames of the program whose pictures are those of the replay.
    equal_pictures: u64,
    /// Bytes that the device wrote, as in the program.
    equal_bytes: u64,
    /// What differed, in which replay.
    faults: Vec<String>,
}

/// A replay, and what is expected of it.
struct ReplayRun<'a> {
    name: &'static str,
    file: &'a str,
    options: &'a [&'a str],
}

pub(crate) fn run(root: &Path, filter: &str, json: Option<&Path>, no_install: bool) -> Result<()> {
    let (bench, _screen) = prepare_programs(root, no_install)?;
    let mut rows = Vec::new();
    let head = ["threads", "calls", "frames", "pictures equal", "bytes equal"];
    println!("{:<12} {:>8} {:>9} {:>7} {:>15} {:>14}", "", head[0], head[1], head[2], head[3], head[4]);
    for program in foreign(filter)? {
        let row = replay_all(&bench, &program).with_context(|| program.name.clone())?;
        let ReplayedProgram { program, threads, calls, frames, equal_pictures, equal_bytes, faults } = &row;
        println!("{program:<12} {threads:>8} {calls:>9} {frames:>7} {equal_pictures:>15} {equal_bytes:>14}");
        faults.iter().for_each(|it| println!("    {it}"));
        rows.push(row);
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&rows)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let wrong = rows.iter().filter(|it| !it.faults.is_empty()).count();
    println!("replayed: {} programs, {wrong} not the same again", rows.len());
    ensure!(wrong == 0, "{wrong} of {} programs are not the same again", rows.len());
    Ok(())
}

/// Where pictures of the program itself are.
const ORIGINAL: &str = "original";

fn replay_all(bench: &ToolEnvironment, program: &ComparedCase) -> Result<ReplayedProgram> {
    let pictures = bench.folder.join(ORIGINAL);
    // Those of another program must not be taken for its own.
    let _ = std::fs::remove_dir_all(&pictures);
    let mut command = bench.lavascope(program);
    command.args([
        "capture",
        "--results",
        "--screenshot",
        "0..",
        "--screenshots",
        ORIGINAL,
        "-o",
        "program.lava",
        "--",
    ]);
    command.args(program.words(bench)).envs(program.environment(bench));
    succeed(&mut command)?;
    // A program that presents nothing has none.
    let compared = if pictures.exists() { &["--compare", ORIGINAL][..] } else { &[] };
    let hashes = bench.folder.join("hashes.json").display().to_string();
    let options = [&["--hashes", &hashes], compared].concat();
    let first = ReplayRun { name: "replay", file: "program.lava", options: &options }.run(bench, program)?.1;
    let number = |report: &Value, what: &str| report[what].as_u64().unwrap_or(0);
    let frames = number(&first, "frames");
    let shown =
        if frames > 0 { &["--recapture", "again.lava", "--window"][..] } else { &["--recapture", "again.lava"] };
    let compared = [&["--compare-hashes", &hashes], compared].concat();
    let replays = [
        ReplayRun { name: "one thread", file: "program.lava", options: &[&["--threads", "1"], &compared[..]].concat() },
        ReplayRun { name: "chaos", file: "program.lava", options: &[&["--chaos", "7"], &compared[..]].concat() },
        ReplayRun { name: "recapture", file: "program.lava", options: shown },
        ReplayRun { name: "replay of the recapture", file: "again.lava", options: &compared },
    ];
    let mut faults = replay_faults("replay", &first, frames);
    let equal = |it: &&Value| it["difference"] == 0;
    let equal_pictures = first["pictures"].as_array().map_or(0, |it| it.iter().filter(equal).count()) as u64;
    if equal_pictures != frames {
        faults.push(format!("replay: {equal_pictures} of {frames} frames look as in the program"));
    }
    for replay in replays {
        let (name, report) = replay.run(bench, program)?;
        faults.extend(self::replay_faults(name, &report, frames));
    }
    Ok(ReplayedProgram {
        program: program.name.clone(),
        threads: number(&first, "threads"),
        calls: number(&first, "calls"),
        frames,
        equal_pictures,
        equal_bytes: number(&first, "equal_bytes"),
        faults,
    })
}

impl ReplayRun<'_> {
    fn run(&self, bench: &ToolEnvironment, program: &ComparedCase) -> Result<(&'static str, Value)> {
        let mut command = bench.lavascope(program);
        command.args(["replay", "--json", "--verify", self.file]).args(self.options);
        // What is captured again has results, too.
        command.env("LAVASCOPE_CAPTURE_RESULTS", "1");
        let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let report: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        // The code is 1 for differences, which the report has, and 2 for a program that has no results as well.
        let is_right = match (output.status.code(), &report) {
            (Some(0 | 1), Some(_)) => true,
            (Some(2), Some(report)) => report["not_compared"].is_string(),
            _ => false,
        };
        ensure!(is_right, "{}: {command:?} failed:\n{said}", self.name);
        Ok((self.name, report.unwrap_or_default()))
    }
}

/// What is not as it was.
fn replay_faults(name: &str, report: &Value, frames: u64) -> Vec<String> {
    let mut all = Vec::new();
    let first = &report["first_difference"];
    if let Some(place) = first["resource"].as_str().or(first["memory"].as_str()) {
        let (bytes, offset) = (&report["different_bytes"], &first["offset"]);
        all.push(format!("{name}: {bytes} bytes differ, the first: byte {offset} of {place}"));
    }
    if let Some(list) = report["different_frames"].as_array().filter(|it| !it.is_empty()) {
        all.push(format!("{name}: {} frames differ, the first: {}", list.len(), list[0]));
    }
    let is_wrong = |it: &&Value| it["difference"].as_u64() != Some(0) || it["problem"].is_string();
    if let Some(array) = report["pictures"].as_array().and_then(|it| it.iter().find(is_wrong)) {
        let why =
            array["problem"].as_str().map_or_else(|| format!("differs by {}", array["difference"]), str::to_owned);
        all.push(format!("{name}: the picture of frame {} is not that of the program: {why}", array["frame"]));
    }
    if report["frames"] != frames {
        all.push(format!("{name}: {} frames instead of {frames}", report["frames"]));
    }
    all
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
    ensure!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_the_same_is_a_fault() {
        let same = serde_json::json!({ "frames": 3, "different_bytes": 0, "first_difference": null,
            "different_frames": [], "pictures": [{ "frame": 0, "difference": 0, "problem": null }] });
        assert!(replay_faults("again", &same, 3).is_empty());
        let other = serde_json::json!({ "frames": 2, "different_bytes": 9, "first_difference": { "offset": 4, "resource": null, "memory": "VkDeviceMemory#1" },
            "different_frames": [1], "pictures": [{ "frame": 0, "difference": 0 }, { "frame": 1, "difference": 7 }] });
        let report = replay_faults("again", &other, 3);
        assert_eq!(report.len(), 4, "{report:?}");
        assert_eq!(report[2], "again: the picture of frame 1 is not that of the program: differs by 7");
        assert_eq!(report[0], "again: 9 bytes differ, the first: byte 4 of VkDeviceMemory#1");
    }
}
