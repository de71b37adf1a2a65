//! What `run` says on standard error after the program ended: nothing, if there is nothing to say.

use std::fmt::Write as _;

use crate::commands::api::catalog::registry_version;
use crate::report::symbols;
use crate::report::{LayerReport, Process, ReportedFinding, ReportedSeverity, Stats};
use crate::text::{Paint, columns};

/// More than this is for the JSON.
const FINDINGS_MAX: usize = 20;
const COMMANDS_MAX: usize = 20;

/// How much of the statistics to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StatsDetail {
    /// The most frequent commands
    Top,
    /// Every command
    All,
}

/// The whole text; empty if nothing ran under the layer.
pub(crate) fn render(report: &LayerReport, stats: Option<StatsDetail>, paint: Paint) -> String {
    let mut out = String::new();
    if report.processes.is_empty() {
        return out;
    }
    findings(&mut out, report, paint);
    for line in problem_lines(report, paint) {
        let _ = writeln!(out, "lavascope: {line}");
    }
    if let Some(wanted) = stats {
        statistics(&mut out, report, wanted, paint);
    }
    out
}

fn findings(out: &mut String, report: &LayerReport, paint: Paint) {
    let all: Vec<&ReportedFinding> = report.findings.iter().filter(|it| !it.is_known).collect();
    if all.is_empty() {
        return;
    }
    let counts = [ReportedSeverity::Error, ReportedSeverity::Warning, ReportedSeverity::Info]
        .map(|it| (report.count(it), it.word()));
    let counts: Vec<_> = counts.iter().filter(|it| it.0 > 0).map(|(count, word)| count_text(*count, word)).collect();
    let _ = writeln!(out, "lavascope: {}", paint.bad(counts.join(", ")));
    let shown = || all.iter().copied().take(FINDINGS_MAX);
    let rows: Vec<_> = shown().filter(|it| !is_long(it)).map(finding_row).collect();
    out.push_str(&columns(&rows));
    shown().filter(|it| is_long(it)).for_each(|it| full_text(out, it));
    if let Some(more) = all.len().checked_sub(FINDINGS_MAX).filter(|it| *it > 0) {
        let _ = writeln!(out, "  and {more} more, all of which are in the JSON (`--json FILE`)");
    }
    if shown().any(is_long) {
        let _ = writeln!(out, "`lavascope explain CODE` tells more about a kind of finding");
    }
}

/// Whether a finding comes with all that is known of it.
fn is_long(finding: &ReportedFinding) -> bool {
    !finding.details.is_null()
}

fn full_text(out: &mut String, finding: &ReportedFinding) {
    let (first, rest) = finding.text.split_once('\n').unwrap_or((&finding.text, ""));
    let _ = writeln!(out, "{first}");
    if finding.count > 1 {
        let _ = writeln!(out, "Found {} times; this is the first.", finding.count);
    }
    let _ = writeln!(out, "{rest}");
    for line in finding.stacks.iter().flat_map(symbols::lines) {
        let _ = writeln!(out, "  {line}");
    }
    out.push('\n');
}

fn finding_row(finding: &ReportedFinding) -> Vec<String> {
    let times = if finding.count == 1 { String::new() } else { format!("{} times", finding.count) };
    let first = finding.text.lines().next().unwrap_or_default();
    vec![finding.severity.word().to_owned(), finding.code.clone(), times, first.to_owned()]
}

/// What is no finding, each once however many processes tell it.
fn problem_lines(report: &LayerReport, paint: Paint) -> Vec<String> {
    let processes = &report.processes;
    let mut lines = suppressed_lines(report);
    for process in processes.iter().flat_map(|it| &it.problems) {
        lines.push(format!("{}: {}: {}", paint.note(process.severity.word()), process.place, process.text));
    }
    for process in processes.iter().flat_map(|it| &it.bugs) {
        lines.push(format!("{} in {}: {}; please report it", paint.bad("a bug of ours"), process.place, process.text));
    }
    for process in processes.iter().flat_map(|it| &it.lost_devices) {
        lines.push(format!("{}\n  {}", paint.bad(&process.text), process.lines.join("\n  ")));
    }
    // The coverage has it too.
    lines.extend(not_followed(processes).filter(|_| report.coverage.is_none()));
    for process in processes.iter().filter(|it| it.waited.times > 0) {
        let (times, time) = (count_text(process.waited.times, "time"), process.waited.milliseconds);
        lines.push(format!(
            "threads of {} waited {times} for us, {time} ms in all: calls came faster than they were looked at",
            name(process)
        ));
    }
    let mut unknown: Vec<&str> = processes.iter().flat_map(|it| &it.unknown_commands).map(String::as_str).collect();
    unknown.sort_unstable();
    unknown.dedup();
    if !unknown.is_empty() {
        let (count, names) = (count_text(unknown.len() as u64, "command"), unknown.join(", "));
        lines.push(format!("{count} not understood, newer than Vulkan {}: {names}", registry_version()));
    }
    for process in processes.iter().filter(|it| it.damaged_lines > 0) {
        let count = count_text(process.damaged_lines.into(), "line");
        lines.push(format!(
            "{count} in the report of {} cannot be read: is the layer of another version ({})?",
            name(process),
            process.version
        ));
    }
    for process in processes.iter().filter(|it| it.is_running) {
        lines.push(format!("{} still runs; what it reports from now on is not counted", name(process)));
    }
    let mut seen = std::collections::BTreeSet::new();
    lines.retain(|it| seen.insert(it.clone()));
    lines
}

/// What was found and is not told.
fn suppressed_lines(report: &LayerReport) -> Vec<String> {
    let known: u64 = report.findings.iter().filter(|it| it.is_known).map(|it| it.count).sum();
    let mut lines: Vec<String> = Some(known)
        .filter(|it| *it > 0)
        .map(|it| format!("{} known by the baseline", count_text(it, "finding")))
        .into_iter()
        .collect();
    let mut rules: Vec<(&str, u64)> = Vec::new();
    for process in report.processes.iter().flat_map(|it| &it.ignored) {
        match rules.iter_mut().find(|own| own.0 == process.rule) {
            Some(own) => own.1 += process.count,
            None => rules.push((&process.rule, process.count)),
        }
    }
    lines.extend(rules.iter().map(|(rule, count)| format!("{} ignored by {rule}", count_text(*count, "finding"))));
    lines
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

fn statistics(out: &mut String, report: &LayerReport, wanted: StatsDetail, paint: Paint) {
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
        (1, _) | (_, "info") => format!("{count} {word}"),
        (_, "process") => format!("{count} processes"),
        _ => format!("{count} {word}s"),
    }
}
