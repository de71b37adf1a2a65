//! What this process has to say to `lavascope run`: one JSON object a line, each written at once.
//!
//! `run` names a folder and reads what the processes of a program left there, so a crash loses nothing that was
//! said before.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::fence::is_off;
use crate::stats::Stats;

/// With the process that it is of: a fork has another one, or none.
static REPORT: Mutex<Option<(u32, File)>> = Mutex::new(None);

/// Begins the report of this process, once.
pub(crate) fn open(folder: &Path) -> Result<(), String> {
    let mut report = REPORT.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if report.as_ref().is_some_and(|it| it.0 == process) {
        return Ok(());
    }
    let path = folder.join(format!("{process}.jsonl"));
    let file = File::options().create(true).append(true).open(&path);
    *report = Some((process, file.map_err(|it| format!("{} cannot be written: {it}", path.display()))?));
    drop(report);
    let program = std::env::current_exe().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    say("process", json!({ "pid": process, "program": program, "version": version }));
    Ok(())
}

/// Something in the settings or the surroundings that is not as it should be. Says whether there is a report.
pub(crate) fn problem(severity: &str, place: &str, text: &str) -> bool {
    say("problem", json!({ "severity": severity, "place": place, "text": text }))
}

/// A bug of ours. Says whether there is a report.
pub(crate) fn bug(command: &str, text: &str) -> bool {
    say("bug", json!({ "where": command, "text": text }))
}

/// A mistake of the application. Says whether there is a report.
pub(crate) fn finding(value: Value) -> bool {
    say("finding", value)
}

/// What a shader printed. Says whether there is a report.
pub(crate) fn printed(value: &Value) -> bool {
    say("printed", value.clone())
}

/// What the validation did not follow, all of it; a later line takes the place of an earlier one.
pub(crate) fn not_followed(all: Vec<Value>) {
    say("not-followed", Value::Array(all));
}

/// How often and how long threads of the application waited for ours so far; a later line takes the place of an
/// earlier one.
pub(crate) fn waited(times: u64, time: Duration) {
    say("waited", json!({ "times": times, "milliseconds": time.as_millis() as u64 }));
}

/// What checks in shaders of a device took of its memory, at most.
pub(crate) fn checks(allocations: u64, bytes: u64) {
    say("checks", json!({ "allocations": allocations, "bytes": bytes }));
}

/// Findings that nobody wants to hear of.
pub(crate) struct Ignored {
    /// The rule that fits them.
    pub(crate) rule: String,
    pub(crate) causes: u64,
    pub(crate) count: u64,
}

/// All that was ignored so far; a later line takes the place of an earlier one.
pub(crate) fn ignored(all: &[Ignored]) {
    let line = |it: &Ignored| json!({ "rule": it.rule, "causes": it.causes, "count": it.count });
    say("ignored", all.iter().map(line).collect());
}

/// A device was lost. Says whether there is a report.
pub(crate) fn device_lost(title: &str, lines: &[String]) -> bool {
    say("device-lost", json!({ "text": title, "lines": lines }))
}

/// Whether there is a report.
pub(crate) fn is_open() -> bool {
    let report = REPORT.lock().unwrap_or_else(PoisonError::into_inner);
    report.as_ref().is_some_and(|it| it.0 == std::process::id())
}

/// A command that is newer than our registry went past us. Says whether there is a report.
pub(crate) fn unknown(command: &str) -> bool {
    say("unknown", json!({ "command": command }))
}

/// What was counted so far; a later line takes the place of an earlier one.
pub(crate) fn stats(stats: &Stats) {
    let by_command: Map<String, Value> = stats.by_command().map(|(name, count)| (name.into(), count.into())).collect();
    say("stats", json!({ "threads": stats.threads(), "calls": stats.calls(), "by_command": by_command }));
    if stats.broken > 0 {
        bug("records", &format!("{} records are not well formed", stats.broken));
    }
}

/// A capture is complete.
pub(crate) fn captured(path: &Path, size: u64) {
    say("captured", json!({ "path": path.to_string_lossy(), "bytes": size }));
}

/// A picture of a frame is written.
pub(crate) fn picture(path: &Path) {
    say("picture", json!({ "file": path.to_string_lossy() }));
}

/// The last instance is gone.
pub(crate) fn end() {
    say("end", json!({}));
}

/// The library may be unloaded: the file does not stay open without it.
pub(crate) fn close() {
    *REPORT.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// What is still said after a bug of ours: nothing that was found, since that is not sure any more.
const SAID_WHEN_OFF: [&str; 5] = ["process", "bug", "captured", "picture", "end"];

fn say(kind: &str, value: Value) -> bool {
    if is_off() && !SAID_WHEN_OFF.contains(&kind) {
        return true;
    }
    let mut report = REPORT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((process, file)) = report.as_mut() else { return false };
    if *process != std::process::id() {
        return false;
    }
    // The application goes on whatever becomes of our file.
    let _ = file.write_all(format!("{}\n", json!({ kind: value })).as_bytes());
    true
}
