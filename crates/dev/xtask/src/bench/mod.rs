//! Measures, prints a table, and holds the figures against their limits.

mod programs;
mod replay;
pub(crate) mod vkcube;

use std::path::Path;

use anyhow::{Context, Result, bail};
use lavascope_bench::BenchEntry;

use crate::setup::process;
use crate::setup::process::cargo;

/// The bench binaries: package and target.
const BENCHES: &[(&str, &str)] = &[
    ("lavascope-marshal", "pack"),
    ("lavascope-layer", "overhead"),
    ("lavascope-layer", "capture"),
    ("lavascope-layer", "validation"),
    ("lavascope-layer", "gpu"),
    ("lavascope-instrument", "instrument"),
    ("lavascope-replay", "handover"),
    ("lavascope-spirv", "reflect"),
    ("lavascope-engine", "engine"),
    ("lavascope-trace", "file"),
    ("lavascope-validate", "records"),
];

pub(crate) fn run(root: &Path, json: Option<&Path>, instructions: bool, filter: Option<&str>) -> Result<()> {
    let mut entries = Vec::new();
    for (package, bench) in BENCHES {
        let mut measured = measure(root, package, bench, filter)?;
        if instructions {
            let binary = binary(root, package, bench)?;
            for entry in &mut measured {
                entry.instructions = count_instructions(root, &binary, &entry.name)?;
            }
        }
        entries.extend(measured);
    }
    entries.extend(programs::entries(root, filter)?);
    entries.extend(replay::entries(root, filter)?);
    print(&entries);
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&entries)?;
        std::fs::write(path, text + "\n").with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let over: Vec<&str> = entries.iter().filter(|it| !it.is_within_limit()).map(|it| it.name.as_str()).collect();
    if !over.is_empty() {
        bail!("over the limit: {}", over.join(", "));
    }
    Ok(())
}

fn measure(root: &Path, package: &str, bench: &str, filter: Option<&str>) -> Result<Vec<BenchEntry>> {
    let mut arguments = vec!["bench", "--quiet", "--package", package, "--bench", bench, "--"];
    arguments.extend(filter);
    let output = process::output(root, &cargo(), &arguments)?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("the bench `{bench}` failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let lines = text.lines().filter(|it| it.starts_with('{'));
    lines.map(|it| serde_json::from_str(it).with_context(|| format!("not an entry: {it}"))).collect()
}

/// The path of a bench binary that is built already.
fn binary(root: &Path, package: &str, bench: &str) -> Result<String> {
    let arguments = ["bench", "--no-run", "--package", package, "--bench", bench, "--message-format", "json"];
    let output = process::output(root, &cargo(), &arguments)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|it| serde_json::from_str::<serde_json::Value>(it).ok());
    let found =
        messages.filter(|it| it["target"]["name"] == bench).find_map(|it| Some(it["executable"].as_str()?.to_owned()));
    found.with_context(|| format!("cargo names no binary for `{bench}`"))
}

/// Instructions of one operation: the difference of two runs, so that start and set-up drop out. None for an entry that
/// cannot be run by itself.
fn count_instructions(root: &Path, binary: &str, name: &str) -> Result<Option<f64>> {
    const TIMES: u64 = 10_000;
    let (few, many) =
        (collect_instructions(root, binary, name, TIMES)?, collect_instructions(root, binary, name, 2 * TIMES)?);
    Ok(few.zip(many).map(|(few, many)| (many.saturating_sub(few)) as f64 / TIMES as f64))
}

fn collect_instructions(root: &Path, binary: &str, name: &str, times: u64) -> Result<Option<u64>> {
    let times = times.to_string();
    let arguments = ["--tool=callgrind", "--callgrind-out-file=/dev/null", binary, "--count", name, &times];
    let output = process::output(root, "valgrind", &arguments)
        .context("instructions are counted by valgrind: `apt-get install valgrind`")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|it| it.contains("Collected :"));
    Ok(line.and_then(|it| it.split_whitespace().last()).and_then(|it| it.parse().ok()))
}

fn print(entries: &[BenchEntry]) {
    let width = entries.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let head = ["unit", "bare", "ours", "added", "peer", "times", "ratio", "limit", "process", "instr."];
    println!("{:width$} {}", "name", head.map(|it| format!("{it:>8}")).join(" "));
    for entry in entries {
        let figure = |value: Option<f64>| format!("{:>8}", value.map_or("-".to_owned(), |it| format!("{it:.1}")));
        // So many times as much as we add the peer adds.
        let times = entry.share().map(f64::recip);
        let cells = [
            entry.bare,
            Some(entry.ours),
            entry.added,
            entry.peer,
            times,
            entry.ratio(),
            entry.limit,
            entry.process,
            entry.instructions,
        ];
        let cells = cells.map(figure);
        let mark = if entry.is_within_limit() { "" } else { "  OVER" };
        println!("{:width$} {:>8} {}{mark}", entry.name, entry.unit, cells.join(" "));
    }
}
