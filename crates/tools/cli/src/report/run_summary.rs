//! What a run has beside its findings: notices for its report, and statistics.

use std::fmt::Write as _;

use lavascope_findings::{FindingSeverity, ReportNotice};

use crate::commands::api::catalog::registry_version;
use crate::report::{LayerReport, Process, Stats};
use crate::text::{Paint, columns};

const COMMANDS_MAX: usize = 20;

/// How many commands the statistics list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StatsDetail {
    /// The most frequent commands
    Top,
    /// Every command
    All,
}

/// What is no finding, each once however many processes report it.
pub(crate) fn notices(report: &LayerReport) -> Vec<ReportNotice> {
    let processes = &report.processes;
    let mut all = Vec::new();
    let mut add = |severity: FindingSeverity, text: String| {
        let notice = ReportNotice::new(severity, text);
        if !all.contains(&notice) {
            all.push(notice);
        }
    };
    for problem in processes.iter().flat_map(|it| &it.problems) {
        add(problem.severity, format!("{}: {}", problem.place, problem.text));
    }
    for bug in processes.iter().flat_map(|it| &it.bugs) {
        add(FindingSeverity::Error, format!("a bug of ours in {}: {}; please report it", bug.place, bug.text));
    }
    for lost in processes.iter().flat_map(|it| &it.lost_devices) {
        add(FindingSeverity::Error, format!("{}\n{}", lost.text, lost.lines.join("\n")));
    }
    // The coverage has it too.
    if let Some(text) = not_followed(processes).filter(|_| report.coverage.is_none()) {
        add(FindingSeverity::Warning, text);
    }
    for process in processes.iter().filter(|it| it.waited.times > 0) {
        let (times, time) = (count_text(process.waited.times, "time"), process.waited.milliseconds);
        let text = format!(
            "threads of {} waited {times} for the validation, {time} ms in all: calls came faster than they were checked",
            name(process)
        );
        add(FindingSeverity::Info, text);
    }
    let mut unknown: Vec<&str> = processes.iter().flat_map(|it| &it.unknown_commands).map(String::as_str).collect();
    unknown.sort_unstable();
    unknown.dedup();
    if !unknown.is_empty() {
        let (count, names) = (count_text(unknown.len() as u64, "command"), unknown.join(", "));
        let text = format!("{count} not understood, newer than Vulkan {}: {names}", registry_version());
        add(FindingSeverity::Warning, text);
    }
    for process in processes.iter().filter(|it| it.damaged_lines > 0) {
        let count = count_text(process.damaged_lines.into(), "line");
        let text = format!(
            "{count} in the report of {} cannot be read: is the layer of another version ({})?",
            name(process),
            process.version
        );
        add(FindingSeverity::Warning, text);
    }
    for process in processes.iter().filter(|it| it.is_running) {
        let text = format!("{} still runs; what it reports from now on is not counted", name(process));
        add(FindingSeverity::Warning, text);
    }
    all
}

/// What the validation did not understand: without it hazards may be missed, or seen where there are none.
fn not_followed(processes: &[Process]) -> Option<String> {
    let mut reasons: Vec<(&str, u64)> = Vec::new();
    for process in processes.iter().flat_map(|it| &it.not_followed) {
        match reasons.iter_mut().find(|own| own.0 == process.reason) {
            Some(own) => own.1 += process.count,
            None => reasons.push((&process.reason, process.count)),
        }
    }
    let texts: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{reason} ({})", count_text(*count, "time"))).collect();
    (!texts.is_empty()).then(|| format!("not followed, so that hazards may be missed: {}", texts.join("; ")))
}

fn name(process: &Process) -> String {
    format!("{} (process {})", process.program, process.pid)
}

/// Calls, threads and processes.
pub(crate) fn statistics_text(report: &LayerReport, wanted: StatsDetail, paint: Paint) -> String {
    let mut out = String::new();
    let total = report.stats();
    let counts = [
        count_text(report.processes.len() as u64, "process"),
        count_text(total.threads, "thread"),
        count_text(total.calls, "call"),
    ];
    let _ = writeln!(out, "lavascope: {}", paint.bold(counts.join(", ")));
    if report.processes.len() > 1 || report.processes.iter().any(|it| it.stats.is_none()) {
        out.push_str(&columns(&report.processes.iter().map(process_row).collect::<Vec<_>>()));
    }
    let mut commands: Vec<(&String, &u64)> = total.by_command.iter().collect();
    // The map is sorted by name, and so stay commands of equal counts.
    commands.sort_by_key(|it| std::cmp::Reverse(it.1));
    let shown = if wanted == StatsDetail::All { commands.len() } else { commands.len().min(COMMANDS_MAX) };
    if report.processes.len() > 1 && !commands.is_empty() {
        out.push_str("  by command, in all of them\n");
    }
    let (shown, rest) = commands.split_at(shown);
    let rest_calls: u64 = rest.iter().map(|it| it.1).sum();
    let largest = shown.first().map_or(0, |it| *it.1).max(rest_calls);
    let width = largest.to_string().len();
    for (command, count) in shown {
        let _ = writeln!(out, "  {count:>width$}  {command}");
    }
    if !rest.is_empty() {
        let more = count_text(rest.len() as u64, "command");
        let _ = writeln!(out, "  {rest_calls:>width$}  {more} more (`--stats=all`)");
    }
    let checks = report.processes.iter().map(|it| it.checks);
    let (allocations, bytes) = checks.fold((0, 0), |all, it| (all.0 + it.allocations, all.1 + it.bytes));
    if allocations > 0 {
        let (times, size) = (count_text(allocations, "allocation"), bytes.div_ceil(1024));
        let _ = writeln!(out, "  checks in shaders took {size} KiB of device memory, in {times}");
    }
    out
}

fn process_row(process: &Process) -> Vec<String> {
    let mut row = vec![process.pid.to_string(), process.program.clone()];
    match &process.stats {
        Some(Stats { threads, calls, .. }) => row.extend([count_text(*threads, "thread"), count_text(*calls, "call")]),
        None => row.push("sent no counts: it was stopped, or never destroyed its instance".to_owned()),
    }
    row
}

fn count_text(count: u64, word: &str) -> String {
    match (count, word) {
        (1, _) => format!("{count} {word}"),
        (_, "process") => format!("{count} processes"),
        _ => format!("{count} {word}s"),
    }
}
