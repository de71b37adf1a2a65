//! What the layer reports from each Vulkan process, read and merged.
//!
//! `run` names a folder in `LAVASCOPE_REPORT`. Each process appends lines of JSON to `PID.jsonl` there, one write per
//! line, so that a crash loses at most the line it interrupts. Kinds of lines that are not known here come from a
//! newer layer and are passed over; `stats` counts everything so far, so the last one of a process holds.

pub(crate) mod baseline;
pub(crate) mod run_summary;
pub(crate) mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use lavascope_diag::{Code, DiagnosticIdentity};
use lavascope_findings::{Finding, FindingSeverity};
use lavascope_platform::files;

use crate::report::baseline::BaselineFile;
use crate::report::symbols::Symbols;

/// Every process that reported, in the order in which they began.
#[derive(Debug, Default, Serialize)]
pub(crate) struct LayerReport {
    /// Of all processes; equal ones are one, with their counts added.
    pub(crate) findings: Vec<ReportedFinding>,
    pub(crate) processes: Vec<Process>,
    /// Known by the baseline, but not found; each with the lines that it is known by.
    pub(crate) gone: Vec<MissingFinding>,
}

/// A finding that did not occur.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct MissingFinding {
    code: String,
    identity: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) program: String,
    /// Of the layer.
    pub(crate) version: String,
    /// Whether it said that it ended; one that crashed or was stopped does not.
    pub(crate) has_ended: bool,
    /// Whether it outlived the program that was run.
    pub(crate) is_running: bool,
    pub(crate) findings: Vec<ReportedFinding>,
    /// With the settings.
    pub(crate) problems: Vec<SettingsProblem>,
    /// Of ours.
    pub(crate) bugs: Vec<Bug>,
    /// Findings that the settings keep away.
    pub(crate) ignored: Vec<Ignored>,
    /// What the validation did not follow.
    pub(crate) not_followed: Vec<NotFollowed>,
    /// Devices that were lost, and how far they came.
    pub(crate) lost_devices: Vec<LostDevice>,
    /// What its shaders printed, and how much more that was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) prints: Vec<ShaderPrint>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) prints_left_out: u64,
    /// Files with pictures of frames.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pictures: Vec<String>,
    /// How often and how long its threads waited for the validation.
    pub(crate) waited: Waited,
    /// What checks in its shaders took of the memory of its devices.
    #[serde(skip_serializing_if = "Checks::are_none")]
    pub(crate) checks: Checks,
    /// Commands newer than the layer's registry.
    pub(crate) unknown_commands: BTreeSet<String>,
    pub(crate) stats: Option<Stats>,
    /// Lines of kinds that are known, but that make no sense.
    pub(crate) damaged_lines: u32,
}

/// A mistake of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ReportedFinding {
    pub(crate) code: String,
    pub(crate) severity: ReportedSeverity,
    pub(crate) text: String,
    pub(crate) count: u64,
    /// What it is known by from run to run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) identity: Vec<String>,
    /// Whether it is in the baseline.
    pub(crate) is_known: bool,
    /// Where the program made the calls that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stacks: Vec<Stack>,
    /// The parts of the text and more, for programs.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) details: Value,
    #[serde(skip)]
    pub(crate) finding: Finding,
}

/// A call stack, the innermost frame first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Stack {
    /// What was called there.
    pub(crate) role: String,
    pub(crate) frames: Vec<StackFrame>,
}

/// One function of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StackFrame {
    pub(crate) module: Option<String>,
    /// From the beginning of the module: the address behind the call.
    pub(crate) offset: u64,
    /// The exported function at or before it.
    pub(crate) symbol: Option<String>,
    /// What the module on disk says of it.
    pub(crate) function: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
}

impl From<Finding> for ReportedFinding {
    fn from(finding: Finding) -> ReportedFinding {
        let severity = match finding.severity {
            FindingSeverity::Error => ReportedSeverity::Error,
            FindingSeverity::Warning | FindingSeverity::Performance => ReportedSeverity::Warning,
            FindingSeverity::Info => ReportedSeverity::Info,
        };
        let word = match finding.severity {
            FindingSeverity::Error => "Error",
            FindingSeverity::Warning => "Warning",
            FindingSeverity::Performance => "Performance",
            FindingSeverity::Info => "Information",
        };
        let number = Code(finding.code.clone().into()).message_id();
        let title = format!("{word}: [ {} | MessageID = {number:#010x} ]", finding.code);
        // What no layer made has no identity.
        let text = match finding.identity[..] {
            [] => finding.message.clone(),
            _ => format!("{title}\n{}", finding.message),
        };
        ReportedFinding {
            code: finding.code.clone(),
            severity,
            text,
            count: finding.occurrences,
            identity: finding.identity.clone(),
            is_known: false,
            stacks: stacks(&finding),
            details: details(&finding),
            finding,
        }
    }
}

fn details(finding: &Finding) -> Value {
    if finding.identity.is_empty() {
        return Value::Null;
    }
    let places = finding.accesses.iter();
    let places: Vec<Value> =
        places.map(|it| json!({ "role": it.role, "text": it.place, "path": it.path, "labels": it.labels })).collect();
    let message = finding.message.split("\n  access: ").next().unwrap_or_default();
    json!({
        "message_id": Code(finding.code.clone().into()).message_id(),
        "fingerprint": finding.fingerprint,
        "function": finding.function,
        "message": message,
        "places": places,
        "objects": finding.objects,
        "facts": finding.properties,
        "explanation": finding.explanation,
        "fixes": finding.fixes,
        "no_fix": finding.no_fix,
    })
}

fn stacks(finding: &Finding) -> Vec<Stack> {
    let accesses = finding.accesses.iter().map(|it| (it.role.clone(), &it.stack));
    let operations = finding.operations.iter().map(|it| (format!("{} at {}", it.kind, it.place), &it.stack));
    let all = accesses.chain(operations).filter(|it| !it.1.frames.is_empty());
    all.map(|(role, stack)| Stack { role, frames: stack.frames.iter().map(frame).collect() }).collect()
}

fn frame(frame: &lavascope_findings::StackFrame) -> StackFrame {
    StackFrame {
        module: frame.module.clone(),
        offset: frame.offset,
        symbol: frame.symbol.clone(),
        function: None,
        file: None,
        line: None,
    }
}

impl ReportedFinding {
    pub(crate) fn identity(&self) -> DiagnosticIdentity {
        // A layer that says none is older than this command.
        let lines = match &self.identity[..] {
            [] => vec![format!("text: {}", self.text.lines().next().unwrap_or_default())],
            lines => lines.to_vec(),
        };
        DiagnosticIdentity { code: self.code.clone(), lines }
    }
}

/// Findings that a rule of the settings fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ignored {
    pub(crate) rule: String,
    pub(crate) causes: u64,
    pub(crate) count: u64,
}

/// Something of a program that was not understood, so that it may have hazards that were not found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotFollowed {
    pub(crate) command: String,
    pub(crate) reason: String,
    pub(crate) count: u64,
}

/// A mistake in the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingsProblem {
    pub(crate) severity: ReportedSeverity,
    /// A file and line, or a variable.
    pub(crate) place: String,
    pub(crate) text: String,
}

/// A device that was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LostDevice {
    /// The call that found out.
    pub(crate) text: String,
    /// What is known about it.
    pub(crate) lines: Vec<String>,
}

/// What threads had to wait for the reader of their calls, because so many were not read yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Waited {
    pub(crate) times: u64,
    /// Of all threads together.
    pub(crate) milliseconds: u64,
}

/// Memory of devices that the program does not know of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Checks {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

impl Checks {
    pub(crate) fn are_none(&self) -> bool {
        self.allocations == 0
    }
}

/// Something that a shader printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShaderPrint {
    pub(crate) text: String,
    /// In the shader's source, where that is known.
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
    pub(crate) instruction: u32,
    pub(crate) command: String,
    /// Which of the draws and dispatches of its command buffer.
    pub(crate) draw: u32,
    /// All of where it was printed, for people.
    pub(crate) place: String,
}

/// More prints of one process are only counted.
const PRINTS_MAX: usize = 10_000;

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A mistake of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bug {
    /// The command.
    #[serde(rename = "where")]
    pub(crate) place: String,
    pub(crate) text: String,
}

/// How much a process did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Stats {
    pub(crate) threads: u64,
    pub(crate) calls: u64,
    pub(crate) by_command: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReportedSeverity {
    Error,
    Warning,
    /// Or whatever else a newer layer says: it counts for nothing in the exit code.
    #[serde(other)]
    Info,
}

impl ReportedSeverity {
    pub(crate) fn word(self) -> &'static str {
        match self {
            ReportedSeverity::Error => "error",
            ReportedSeverity::Warning => "warning",
            ReportedSeverity::Info => "info",
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReportLine {
    Process { pid: u32, program: String, version: String },
    Finding(Box<Finding>),
    Problem(SettingsProblem),
    Bug(Bug),
    NotFollowed(Vec<NotFollowed>),
    Ignored(Vec<Ignored>),
    Waited(Waited),
    Checks(Checks),
    DeviceLost(LostDevice),
    Printed(ShaderPrint),
    Picture { file: String },
    Unknown { command: String },
    Stats(Stats),
    End {},
}

const KINDS: [&str; 14] = [
    "process",
    "finding",
    "problem",
    "bug",
    "not-followed",
    "ignored",
    "waited",
    "checks",
    "device-lost",
    "printed",
    "picture",
    "unknown",
    "stats",
    "end",
];

impl LayerReport {
    /// Whether something went wrong with a file.
    pub(crate) fn has_error_at(&self, place: &str) -> bool {
        let mut problems = self.processes.iter().flat_map(|it| &it.problems);
        problems.any(|it| it.severity == ReportedSeverity::Error && it.place == place)
    }

    /// Merges every file of the folder.
    pub(crate) fn read(folder: &Path) -> Result<LayerReport> {
        let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
        let mut files = Vec::new();
        for path in entries.flatten().map(|it| it.path()).filter(|it| it.extension().is_some_and(|it| it == "jsonl")) {
            let bytes = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            let pid = path.file_stem().and_then(|it| it.to_str()?.parse().ok()).unwrap_or(0);
            files.push((began(&path), pid, processes(pid, &String::from_utf8_lossy(&bytes))));
        }
        // Numbers of processes wrap around, so the time comes first.
        files.sort_by_key(|it| (it.0, it.1));
        Ok(LayerReport::merged(files.into_iter().flat_map(|it| it.2).collect()))
    }

    fn merged(processes: Vec<Process>) -> LayerReport {
        let mut findings: Vec<ReportedFinding> = Vec::new();
        for finding in processes.iter().flat_map(|it| &it.findings) {
            add(&mut findings, finding.clone());
        }
        LayerReport { findings, processes, gone: Vec::new() }
    }

    /// Compares the findings with a baseline.
    pub(crate) fn compare(&mut self, known: &BaselineFile) {
        let found = self.identities();
        self.gone = known
            .not_found(&found)
            .into_iter()
            .map(|it| MissingFinding { code: it.code, identity: it.lines })
            .collect();
        let all = self.findings.iter_mut().chain(self.processes.iter_mut().flat_map(|it| &mut it.findings));
        for reported_finding in all {
            reported_finding.is_known = known.contains(&reported_finding.identity());
        }
    }

    /// Finds names for the addresses of call stacks.
    pub(crate) fn symbolize(&mut self) {
        let mut symbols = Symbols::default();
        let all = self.findings.iter_mut().chain(self.processes.iter_mut().flat_map(|it| &mut it.findings));
        all.flat_map(|it| &mut it.stacks).for_each(|it| symbols.find(it));
    }

    pub(crate) fn identities(&self) -> Vec<DiagnosticIdentity> {
        self.findings.iter().map(ReportedFinding::identity).collect()
    }

    /// Over all processes.
    pub(crate) fn stats(&self) -> Stats {
        let mut total = Stats::default();
        for stats in self.processes.iter().filter_map(|it| it.stats.as_ref()) {
            total.threads += stats.threads;
            total.calls += stats.calls;
            for (command, count) in &stats.by_command {
                *total.by_command.entry(command.clone()).or_default() += count;
            }
        }
        total
    }

    /// How many findings of a severity there were that are not known.
    pub(crate) fn count(&self, severity: ReportedSeverity) -> u64 {
        self.findings.iter().filter(|it| it.severity == severity && !it.is_known).map(|it| it.count).sum()
    }
}

/// When a file was made; the same for all where the file system does not tell.
fn began(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|it| it.created()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The processes of one file: more than one where a process became another program (`exec`).
fn processes(pid: u32, text: &str) -> Vec<Process> {
    let mut processes: Vec<Process> = Vec::new();
    // What follows the last line break was interrupted.
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in complete.lines().filter(|it| !it.trim().is_empty()) {
        let known = match serde_json::from_str::<ReportLine>(line) {
            Ok(ReportLine::Process { pid, program, version }) => {
                processes.push(Process { pid, program, version, ..Process::default() });
                continue;
            }
            Ok(known) => Some(known),
            Err(_) if is_of_another_kind(line) => continue,
            Err(_) => None,
        };
        if processes.is_empty() {
            processes.push(Process { pid, ..Process::default() });
        }
        let Some(process) = processes.last_mut() else { continue };
        match known {
            Some(line) => process.apply_line(line),
            None => process.damaged_lines += 1,
        }
    }
    processes
}

/// Whether a line is sound and comes from a newer layer.
fn is_of_another_kind(line: &str) -> bool {
    let object: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
    object.keys().next().is_some_and(|it| !KINDS.contains(&it.as_str()))
}

impl Process {
    fn apply_line(&mut self, line: ReportLine) {
        match line {
            ReportLine::Finding(finding) => add(&mut self.findings, (*finding).into()),
            ReportLine::Problem(problem) => self.problems.push(problem),
            ReportLine::Bug(bug) => self.bugs.push(bug),
            ReportLine::NotFollowed(all) => self.not_followed = all,
            ReportLine::Ignored(all) => self.ignored = all,
            ReportLine::Waited(waited) => self.waited = waited,
            ReportLine::Checks(more) => {
                self.checks.allocations += more.allocations;
                self.checks.bytes += more.bytes;
            }
            ReportLine::DeviceLost(lost) => self.lost_devices.push(lost),
            ReportLine::Printed(_) if self.prints.len() >= PRINTS_MAX => self.prints_left_out += 1,
            ReportLine::Printed(print) => self.prints.push(print),
            ReportLine::Picture { file } => self.pictures.push(file),
            ReportLine::Unknown { command } => drop(self.unknown_commands.insert(command)),
            ReportLine::Stats(stats) => self.stats = Some(stats),
            ReportLine::End {} => self.has_ended = true,
            ReportLine::Process { .. } => unreachable!("such a line begins a process"),
        }
    }
}

fn add(findings: &mut Vec<ReportedFinding>, finding: ReportedFinding) {
    let is_same = |it: &&mut ReportedFinding| it.finding.is_same_cause(&finding.finding);
    match findings.iter_mut().find(is_same) {
        Some(earlier) => {
            earlier.count += finding.count;
            earlier.finding.add(&finding.finding);
            earlier.details = details(&earlier.finding);
        }
        None => findings.push(finding),
    }
}

/// A folder for reports that goes away with the run.
pub(crate) struct ReportFolder(PathBuf);

impl ReportFolder {
    pub(crate) fn new() -> Result<ReportFolder> {
        let base = std::path::absolute(std::env::temp_dir()).context("the current folder is not known")?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |it| it.subsec_nanos());
        let path = base.join(format!("lavascope-{}-{now}", std::process::id()));
        // Making it fails where a stranger made it first.
        let made = files::private_folder().create(&path);
        made.with_context(|| format!("the folder {} for reports cannot be made; see TMPDIR", path.display()))?;
        Ok(ReportFolder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ReportFolder {
    fn drop(&mut self) {
        // It lies among temporary files, and nothing depends on it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESS: &str = r#"{"process":{"pid":12,"program":"/bin/app","version":"0.1.0"}}"#;

    fn finding(title: &str, count: u64) -> ReportedFinding {
        ReportedFinding::from(Finding {
            code: "SYNC-HAZARD-READ-AFTER-WRITE".to_owned(),
            severity: FindingSeverity::Error,
            title: title.to_owned(),
            occurrences: count,
            ..Finding::default()
        })
    }

    #[test]
    fn every_kind_of_line_is_taken() {
        let text = format!(
            "{PROCESS}\n{}\n",
            r#"{"problem":{"severity":"warning","place":"vk_layer_settings.txt:3","text":"unknown"}}
{"bug":{"where":"vkCmdDraw","text":"index out of bounds"}}
{"waited":{"times":1,"milliseconds":5}}
{"device-lost":{"text":"vkQueueSubmit() returned VK_ERROR_DEVICE_LOST","lines":["a","b"]}}
{"waited":{"times":3,"milliseconds":70}}
{"checks":{"allocations":2,"bytes":300}}
{"unknown":{"command":"vkFooEXT"}}
{"unknown":{"command":"vkFooEXT"}}
{"checks":{"allocations":1,"bytes":50}}
{"finding":{"code":"SYNC-HAZARD-READ-AFTER-WRITE","severity":"error","title":"a","occurrences":2}}
{"finding":{"code":"SYNC-HAZARD-READ-AFTER-WRITE","severity":"error","title":"a","occurrences":1}}
{"stats":{"threads":1,"calls":1,"by_command":{"vkCmdDraw":1}}}
{"stats":{"threads":3,"calls":9,"by_command":{"vkCmdDraw":9}}}
{"end":{}}"#
        );
        let [process] = &processes(12, &text)[..] else { panic!("not one process") };
        assert_eq!((process.pid, process.program.as_str(), process.has_ended), (12, "/bin/app", true));
        assert_eq!(process.findings, [finding("a", 3)]);
        assert_eq!(process.problems[0].place, "vk_layer_settings.txt:3");
        assert_eq!(process.bugs[0].place, "vkCmdDraw");
        assert_eq!(process.lost_devices[0].lines, ["a", "b"]);
        assert_eq!(process.waited, Waited { times: 3, milliseconds: 70 });
        assert_eq!(process.checks, Checks { allocations: 3, bytes: 350 }, "of both devices");
        assert_eq!(process.unknown_commands.len(), 1);
        assert_eq!(process.stats.as_ref().map(|it| (it.threads, it.calls)), Some((3, 9)));
        assert_eq!(process.damaged_lines, 0);
    }

    #[test]
    fn newer_kinds_are_passed_over_and_a_torn_end_is_forgiven() {
        let text = format!("{PROCESS}\n{{\"frame\":{{\"number\":1}}}}\n\n{{\"finding\":{{\"code\":\"X");
        let found = processes(12, &text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].damaged_lines, 0);
        assert!(!found[0].has_ended);
    }

    #[test]
    fn damage_elsewhere_is_counted() {
        let text = format!("{PROCESS}\nnot json\n{{\"finding\":{{\"code\":7}}}}\n[1]\n{{\"end\":{{}}}}\n");
        let found = processes(12, &text);
        assert_eq!(found[0].damaged_lines, 3);
        assert!(found[0].has_ended);
    }

    #[test]
    fn a_process_without_its_first_line_is_known_by_its_file() {
        assert_eq!(processes(7, "{\"end\":{}}\n")[0].pid, 7);
        assert_eq!(processes(7, ""), []);
    }

    #[test]
    fn a_process_that_becomes_another_program_is_two() {
        let other = PROCESS.replace("/bin/app", "/bin/other");
        let found = processes(12, &format!("{PROCESS}\n{other}\n{{\"end\":{{}}}}\n"));
        let ends: Vec<_> = found.iter().map(|it| (it.program.as_str(), it.has_ended)).collect();
        assert_eq!(ends, [("/bin/app", false), ("/bin/other", true)]);
    }

    #[test]
    fn equal_findings_of_several_processes_are_one() {
        let process = |findings| Process { findings, ..Process::default() };
        let report =
            LayerReport::merged(vec![process(vec![finding("a", 1), finding("b", 1)]), process(vec![finding("a", 4)])]);
        assert_eq!(report.findings, [finding("a", 5), finding("b", 1)]);
        assert_eq!(report.count(ReportedSeverity::Error), 6);
        assert_eq!(report.count(ReportedSeverity::Warning), 0);
    }

    #[test]
    fn a_severity_of_a_newer_layer_is_information() {
        let severity = serde_json::from_str::<ReportedSeverity>("\"performance\"").expect("any word will do");
        assert_eq!(severity, ReportedSeverity::Info);
    }
}
