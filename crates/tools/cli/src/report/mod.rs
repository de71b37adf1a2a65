//! What the layer reports from each Vulkan process, read and merged.
//!
//! `run` names a folder in `LAVASCOPE_REPORT`. Each process appends lines of JSON to `PID.jsonl` there, one write per
//! line, so that a crash loses at most the line it interrupts. Kinds of lines that are not known here come from a
//! newer layer and are passed over; `stats` counts everything so far, so the last one of a process holds.

pub(crate) mod baseline;
pub(crate) mod coverage;
mod frame_origin;
pub(crate) mod output;
pub(crate) mod run_summary;
mod source_lines;
pub(crate) mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use lavascope_findings::{Coverage, Finding, FindingSeverity, FindingsReport};
use lavascope_platform::files;

use crate::report::symbols::Symbols;

/// Every process that reported, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct LayerReport {
    /// Of all processes; equal ones are one, with their counts added.
    pub(crate) findings: Vec<Finding>,
    pub(crate) processes: Vec<Process>,
    /// Of all processes; none if the layer reports none.
    pub(crate) coverage: Option<Coverage>,
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
    #[serde(serialize_with = "fingerprints")]
    pub(crate) findings: Vec<Finding>,
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
    /// What was checked.
    pub(crate) coverage: Option<Coverage>,
    /// Lines of kinds that are known, but that make no sense.
    pub(crate) damaged_lines: u32,
}

/// Which findings a process has; all about them is in the document.
fn fingerprints<S: Serializer>(findings: &[Finding], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(findings.iter().map(|finding| OwnFinding {
        code: &finding.code,
        fingerprint: &finding.fingerprint,
        occurrences: finding.occurrences,
    }))
}

/// How often a finding occurred in one process.
#[derive(Serialize)]
struct OwnFinding<'a> {
    code: &'a str,
    fingerprint: &'a str,
    occurrences: u64,
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
    pub(crate) severity: FindingSeverity,
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
    Coverage(Box<Coverage>),
    End {},
}

const KINDS: [&str; 15] = [
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
    "coverage",
    "end",
];

impl LayerReport {
    /// Whether something went wrong with a file.
    pub(crate) fn has_error_at(&self, place: &str) -> bool {
        let mut problems = self.processes.iter().flat_map(|it| &it.problems);
        problems.any(|it| it.severity == FindingSeverity::Error && it.place == place)
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
        let mut findings: Vec<Finding> = Vec::new();
        for finding in processes.iter().flat_map(|it| &it.findings) {
            add(&mut findings, finding.clone());
        }
        let coverage = coverage::of_processes(&processes);
        LayerReport { findings, processes, coverage }
    }

    /// The findings with names for the addresses of their call stacks, and what else a reader has to know.
    pub(crate) fn document(&mut self, command: Vec<String>) -> Result<FindingsReport> {
        let mut document = FindingsReport {
            lavascope: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            notices: run_summary::notices(self),
            ignored: self.processes.iter().flat_map(|it| &it.ignored).map(|it| it.causes).sum(),
            findings: std::mem::take(&mut self.findings),
            coverage: self.coverage.clone(),
            ..FindingsReport::default()
        };
        document.sections.insert("processes".to_owned(), serde_json::to_value(&self.processes)?);
        let mut symbols = Symbols::of_programs(self.processes.iter().map(|it| it.program.clone()).collect());
        document.findings.iter_mut().for_each(|it| symbols.find(it));
        Ok(document)
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
            ReportLine::Finding(finding) => add(&mut self.findings, *finding),
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
            ReportLine::Coverage(coverage) => self.coverage = Some(*coverage),
            ReportLine::End {} => self.has_ended = true,
            ReportLine::Process { .. } => unreachable!("such a line begins a process"),
        }
    }
}

/// Adds a finding; those that have one cause are one.
pub(crate) fn add(findings: &mut Vec<Finding>, finding: Finding) {
    // What only adds to an earlier finding has no place.
    let is_place = |it: &Finding| it.file == finding.file && it.source == finding.source;
    let has_place = finding.file.is_some() || finding.source.is_some();
    let is_same = |it: &&mut Finding| it.is_same_cause(&finding) && (!has_place || is_place(it));
    match findings.iter_mut().find(is_same) {
        Some(earlier) => earlier.add(&finding),
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

/// Whether a process under the layer has reported something into a folder.
pub(crate) fn has_reports(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut it| it.next().is_some())
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

    fn finding(title: &str, occurrences: u64) -> Finding {
        Finding {
            code: "SYNC-HAZARD-READ-AFTER-WRITE".to_owned(),
            severity: FindingSeverity::Error,
            title: title.to_owned(),
            occurrences,
            ..Finding::default()
        }
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
    }
}
