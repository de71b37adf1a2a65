//! Measures, prints a table, and compares the figures with their limits.
//!
//! [`topics`] names what is measured. With `--write-docs` the figures go into [`results`], from which [`page`] renders
//! `docs/performance.md`.

mod build;
mod page;
mod peers;
mod programs;
mod replay;
mod results;
mod topics;
pub(crate) mod vkcube;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use lavascope_bench::BenchEntry;

use crate::setup::process;
use crate::setup::process::cargo;
use build::with_packages;
use peers::BenchPeer;
use results::{BenchResults, ResultRow, RowOrigin};
use topics::{BenchSelection, BenchSource, BenchTopic, TOPICS};

/// What `cargo xtask bench` is asked for.
pub(crate) struct BenchRequest<'a> {
    /// Where the entries are written as JSON.
    pub(crate) json: Option<&'a Path>,
    pub(crate) counts_instructions: bool,
    pub(crate) writes_docs: bool,
    /// A topic, a bench binary, or a part of the names of entries.
    pub(crate) filter: Option<&'a str>,
}

pub(crate) fn run(root: &Path, request: &BenchRequest<'_>) -> Result<()> {
    let selection = BenchSelection::new(request.filter);
    let machine = peers::machine();
    let mut entries = Vec::new();
    for topic in TOPICS.iter().filter(|it| selection.has_topic(it)) {
        for source in topic.sources.iter().filter(|it| selection.has_source(it)) {
            let measured = measure(root, *source, &selection, request.counts_instructions)?;
            // After each source: what follows may take long, and may fail.
            if request.writes_docs && !measured.is_empty() {
                write_docs(root, topic, *source, &measured, &machine)?;
            }
            entries.extend(measured);
        }
    }
    print(&entries);
    if let Some(path) = request.json {
        let text = serde_json::to_string_pretty(&entries)?;
        std::fs::write(path, text + "\n").with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let over: Vec<&str> = entries.iter().filter(|it| !it.is_within_limit()).map(|it| it.name.as_str()).collect();
    if !over.is_empty() {
        bail!("over the limit: {}", over.join(", "));
    }
    Ok(())
}

/// Renders the page from the results of the last runs.
pub(crate) fn render_page(root: &Path) -> Result<()> {
    BenchResults::read(root)?.write(root)
}

fn write_docs(
    root: &Path,
    topic: &BenchTopic,
    source: BenchSource,
    entries: &[BenchEntry],
    machine: &str,
) -> Result<()> {
    let peer = source.peer().map(|it| it.name(root));
    let origin = RowOrigin { topic: topic.name, peer: peer.as_deref(), machine };
    let mut results = BenchResults::read(root)?;
    for row in entries.iter().flat_map(|it| ResultRow::of_entry(it, &origin)) {
        let what = row.what.clone();
        if !results.insert(topic.name, row) {
            eprintln!("{what}: the row of the last run with a peer stays");
        }
    }
    results.write(root)
}

fn measure(
    root: &Path,
    source: BenchSource,
    selection: &BenchSelection<'_>,
    counts_instructions: bool,
) -> Result<Vec<BenchEntry>> {
    match source {
        BenchSource::Binary { bench, peer } => {
            let mut measured = run_binary(root, bench, peer, selection.entry)?;
            if counts_instructions {
                let binary = binary(root, bench)?;
                for entry in &mut measured {
                    entry.instructions = count_instructions(root, &binary, &entry.name)?;
                }
            }
            Ok(measured)
        }
        BenchSource::Programs => programs::capture_entries(root, selection),
        BenchSource::Check => programs::check_entries(root, selection),
        BenchSource::Vkcube => vkcube::entries(root, selection),
        BenchSource::Stacks => programs::stack_entries(root, selection),
        BenchSource::Replay => replay::entries(root, selection.entry),
    }
}

fn run_binary(root: &Path, bench: &str, peer: Option<BenchPeer>, filter: Option<&str>) -> Result<Vec<BenchEntry>> {
    let mut command = Command::new(cargo());
    command.args(with_packages(&["bench", "--quiet", "--bench", bench])).arg("--").args(filter).current_dir(root);
    command.envs(peer.and_then(|it| it.variable(root)));
    let output = command.output().context("cargo cannot be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("the bench `{bench}` failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let lines = text.lines().filter(|it| it.starts_with('{'));
    lines.map(|it| serde_json::from_str(it).with_context(|| format!("not an entry: {it}"))).collect()
}

/// The path of a bench binary that is built already.
fn binary(root: &Path, bench: &str) -> Result<String> {
    let arguments = with_packages(&["bench", "--no-run", "--bench", bench, "--message-format", "json"]);
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
        // The peer takes so many times as much as we do.
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
