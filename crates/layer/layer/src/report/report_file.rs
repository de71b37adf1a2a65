//! The report of this process for `lavascope run`: one JSON object a line, each written at once.
//!
//! `run` names a folder and reads the files of all processes of the program, so a crash loses nothing that was written
//! before.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lavascope_findings::{Coverage, Finding};
use serde_json::{Map, Value, json};

use crate::process::catch_panic::is_disabled;
use crate::report::call_stats::CallStats;

static REPORT_FILE: Mutex<Option<ReportFile>> = Mutex::new(None);

struct ReportFile {
    /// A fork has another file, or none.
    process: u32,
    folder: PathBuf,
    file: File,
}

/// Begins the report of this process, once.
pub(crate) fn open(folder: &Path) -> Result<(), String> {
    let mut report = REPORT_FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if report.as_ref().is_some_and(|it| it.process == process) {
        return Ok(());
    }
    let path = folder.join(format!("{process}.jsonl"));
    let file = File::options().create(true).append(true).open(&path);
    let file = file.map_err(|it| format!("{} cannot be written: {it}", path.display()))?;
    *report = Some(ReportFile { process, folder: folder.to_owned(), file });
    drop(report);
    let program = std::env::current_exe().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    write_line("process", json!({ "pid": process, "program": program, "version": version }));
    Ok(())
}

/// Begins a report of this process, if the process that it was forked from has one. Returns whether it could.
pub(crate) fn open_in_fork() -> bool {
    // A thread that does not exist here may have had the lock.
    let Ok(report) = REPORT_FILE.try_lock() else { return false };
    let folder = report.as_ref().map(|it| it.folder.clone());
    drop(report);
    folder.is_some_and(|it| open(&it).is_ok())
}

/// The folder of the report, if this process has one.
pub(crate) fn folder() -> Option<PathBuf> {
    let report = REPORT_FILE.lock().unwrap_or_else(PoisonError::into_inner);
    report.as_ref().filter(|it| it.process == std::process::id()).map(|it| it.folder.clone())
}

/// Reports a problem with the settings or the environment. Returns whether there is a report file.
pub(crate) fn problem(severity: &str, place: &str, text: &str) -> bool {
    write_line("problem", json!({ "severity": severity, "place": place, "text": text }))
}

/// Reports a bug of ours. Returns whether there is a report file.
pub(crate) fn bug(command: &str, text: &str) -> bool {
    write_line("bug", json!({ "where": command, "text": text }))
}

/// Reports a new finding, or what is new about a reported one. Returns whether there is a report file.
pub(crate) fn finding(finding: &Finding) -> bool {
    // It has only texts and numbers.
    write_line("finding", serde_json::to_value(finding).unwrap_or_default())
}

/// Reports what a shader printed. Returns whether there is a report file.
pub(crate) fn printed(value: &Value) -> bool {
    write_line("printed", value.clone())
}

/// Reports all that the validation did not follow. A later line replaces an earlier one.
pub(crate) fn unsupported_calls(all: Vec<Value>) {
    write_line("not-followed", Value::Array(all));
}

/// Reports how often and how long threads of the application have waited for ours. A later line replaces an earlier
/// one.
pub(crate) fn stream_waits(times: u64, time: Duration) {
    write_line("waited", json!({ "times": times, "milliseconds": time.as_millis() as u64 }));
}

/// Reports what has been checked so far. A later line replaces an earlier one.
pub(crate) fn coverage(coverage: &Coverage) {
    // It has only texts and numbers.
    write_line("coverage", serde_json::to_value(coverage).unwrap_or_default());
}

/// Reports the most memory that checks in shaders of a device have used.
pub(crate) fn gpu_memory_use(allocations: u64, bytes: u64) {
    write_line("checks", json!({ "allocations": allocations, "bytes": bytes }));
}

/// Findings that rules ignore.
#[derive(Clone)]
pub(crate) struct IgnoredFindings {
    /// The rule that matches them.
    pub(crate) rule: String,
    /// Zero if an earlier rule matches all of them, too.
    pub(crate) causes: u64,
    pub(crate) count: u64,
}

impl IgnoredFindings {
    /// Adds a cause that occurred so often. It counts for the first of the rules that match it.
    pub(crate) fn add(all: &mut Vec<IgnoredFindings>, rules: &[String], count: u64) {
        for (at, rule) in rules.iter().enumerate() {
            let (causes, count) = if at == 0 { (1, count) } else { (0, 0) };
            match all.iter_mut().find(|it| it.rule == *rule) {
                Some(known) => (known.causes, known.count) = (known.causes + causes, known.count + count),
                None => all.push(IgnoredFindings { rule: rule.clone(), causes, count }),
            }
        }
    }
}

/// What has been ignored so far: hazards and shader faults.
static IGNORED: Mutex<[Vec<IgnoredFindings>; 2]> = Mutex::new([Vec::new(), Vec::new()]);

/// All hazards that were ignored so far.
pub(crate) fn ignored_hazards(all: Vec<IgnoredFindings>) {
    let mut ignored = IGNORED.lock().unwrap_or_else(PoisonError::into_inner);
    ignored[0] = all;
    write_ignored(&ignored.concat());
}

/// A shader fault was ignored, which occurred so often.
pub(crate) fn ignored_fault(rules: &[String], count: u64) {
    let mut ignored = IGNORED.lock().unwrap_or_else(PoisonError::into_inner);
    IgnoredFindings::add(&mut ignored[1], rules, count);
    write_ignored(&ignored.concat());
}

/// A later line replaces an earlier one.
fn write_ignored(all: &[IgnoredFindings]) {
    let line = |it: &IgnoredFindings| json!({ "rule": it.rule, "causes": it.causes, "count": it.count });
    write_line("ignored", all.iter().map(line).collect());
}

/// Reports a lost device. Returns whether there is a report file.
pub(crate) fn device_lost(title: &str, lines: &[String]) -> bool {
    write_line("device-lost", json!({ "text": title, "lines": lines }))
}

/// Whether there is a report file.
pub(crate) fn is_open() -> bool {
    let report = REPORT_FILE.lock().unwrap_or_else(PoisonError::into_inner);
    report.as_ref().is_some_and(|it| it.process == std::process::id())
}

/// Reports a command that our registry does not have. Returns whether there is a report file.
pub(crate) fn unknown_command(command: &str) -> bool {
    write_line("unknown", json!({ "command": command }))
}

/// Reports the counts so far. A later line replaces an earlier one.
pub(crate) fn stats(stats: &CallStats) {
    let by_command: Map<String, Value> = stats.by_command().map(|(name, count)| (name.into(), count.into())).collect();
    write_line("stats", json!({ "threads": stats.threads(), "calls": stats.calls(), "by_command": by_command }));
    if stats.malformed > 0 {
        bug("records", &format!("{} records are not well formed", stats.malformed));
    }
}

/// Reports a complete capture.
pub(crate) fn captured(path: &Path, size: u64) {
    write_line("captured", json!({ "path": path.to_string_lossy(), "bytes": size }));
}

/// Reports the file of a picture of a frame.
pub(crate) fn picture(path: &Path) {
    write_line("picture", json!({ "file": path.to_string_lossy() }));
}

/// Ends the report with the last instance.
pub(crate) fn end() {
    write_line("end", json!({}));
}

/// The library may be unloaded: the file does not stay open without it.
pub(crate) fn close() {
    *REPORT_FILE.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// What is still reported after a bug of ours: no findings, because the bug may have caused them.
const WRITTEN_WHEN_DISABLED: [&str; 5] = ["process", "bug", "captured", "picture", "end"];

fn write_line(kind: &str, value: Value) -> bool {
    if is_disabled() && !WRITTEN_WHEN_DISABLED.contains(&kind) {
        return true;
    }
    let mut report = REPORT_FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(ReportFile { process, file, .. }) = report.as_mut() else { return false };
    if *process != std::process::id() {
        return false;
    }
    // An error of the file must not affect the application.
    let _ = file.write_all(format!("{}\n", json!({ kind: value })).as_bytes());
    true
}
