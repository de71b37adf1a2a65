//! `lavascope check`: the hazards of a program that was captured, or is written as a scenario.

pub(crate) mod scenario_check;
pub(crate) mod scenario_names;
pub(crate) mod trace_check;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, anyhow};
use lavascope_findings::{Finding, FindingSeverity, FindingsReport, ReportNotice};
use serde::Serialize;

use super::CommandOutcome;
use crate::report;
use crate::report::baseline::BaselineArguments;
use crate::report::output::{ReportArguments, TextStream};
use crate::text;
use crate::text::progress::TerminalProgress;
use crate::trace::trace_file::TraceFile;

const EXIT_CODES: &str = "\
Exit codes:
  0  there are no findings that are not in the baseline
  1  there are findings
  2  a file cannot be read, or is neither a trace nor a scenario; the other files are checked all the same";

/// Find the hazards of programs that were captured, or are written as scenarios
///
/// Needs no GPU and no driver, and uses all cores. docs/scenarios.md describes the language of scenarios.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CheckArguments {
    /// Traces and scenarios
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Also report synchronization in scenarios that no access needs; it does not change the exit code
    #[arg(long)]
    needless: bool,
    /// Also report hazards in traces that depend on values which only shaders know
    #[arg(long)]
    possible: bool,
    #[command(flatten)]
    report: ReportArguments,
    /// Short for `--format json`: JSON on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    known: BaselineArguments,
}

pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<CommandOutcome> {
    let baseline = arguments.known.baseline()?;
    let (rules, problems) = arguments.known.rules_and_settings()?;
    let json = arguments.json.then_some(Path::new("-"));
    let outputs = arguments.report.open(json, TextStream::Stdout)?;
    let total = arguments.files.iter().filter_map(|it| Some(it.metadata().ok()?.len())).sum();
    let progress = TerminalProgress::new(total);
    let checked = map_parallel(&arguments.files, |it| check_file(it, arguments, &progress));
    drop(progress);
    let CheckedFiles { mut document, mut needless, errors, files } = CheckedFiles::new(&arguments.files, checked);
    document.notices.extend(problems);
    let hidden = rules.apply([&mut document.findings, &mut needless]);
    // What was not checked may still be there.
    if let Some(baseline) = &baseline {
        baseline.compare(&mut document, errors.is_empty());
    }
    hidden.report(&mut document, errors.is_empty());
    let new = document.findings.iter().filter(|it| !it.is_known).count();
    let found = document.findings.len();
    document.findings.extend(needless);
    document.sections.insert("files".to_owned(), serde_json::to_value(&files)?);
    if outputs.has_text() {
        let clean: String = files.iter().filter_map(CheckedFile::clean_line).collect();
        text::emit(&clean)?;
    }
    outputs.write_text(&mut document)?;
    for error in errors {
        text::emit_stderr(&format!("lavascope: {error}\n"));
        document.notices.push(ReportNotice::new(FindingSeverity::Error, error));
    }
    outputs.write_documents(&mut document)?;
    let has_failed = files.iter().any(|it| it.error.is_some());
    if let Some(baseline) = baseline.filter(|_| !has_failed) {
        baseline.update(&document.findings[..found])?;
    }
    Ok(match (has_failed, new) {
        (true, _) => CommandOutcome::Failed,
        (false, 0) => CommandOutcome::Success,
        _ => CommandOutcome::Findings,
    })
}

/// Checks all files, as many at once as there are cores; what was found is in their order.
fn map_parallel<T: Send>(files: &[PathBuf], check: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<(usize, T)>> = Mutex::default();
    let work = || {
        // Relaxed: each number is taken once, and nothing else goes by it.
        while let Some((index, file)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|it| Some((it, files.get(it)?)))
        {
            let found = check(file);
            all.lock().unwrap_or_else(PoisonError::into_inner).push((index, found));
        }
    };
    std::thread::scope(|scope| (0..cores.min(files.len())).for_each(|_| drop(scope.spawn(work))));
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by_key(|it| it.0);
    all.into_iter().map(|it| it.1).collect()
}

/// What was found in one file.
pub(crate) struct FileFindings {
    findings: Vec<Finding>,
    needless: Vec<Finding>,
    notices: Vec<ReportNotice>,
    kind: InputKind,
    /// Of a trace.
    calls: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum InputKind {
    Trace,
    Scenario,
}

/// A file as the document has it.
#[derive(Debug, Serialize)]
struct CheckedFile {
    file: String,
    /// None if it cannot be read.
    kind: Option<InputKind>,
    calls: Option<u64>,
    /// Before any were hidden by rules.
    findings: usize,
    error: Option<String>,
}

impl CheckedFile {
    /// What is printed for a file without hazards.
    fn clean_line(&self) -> Option<String> {
        let calls = self.calls.map_or(String::new(), |it| format!(" in {it} calls"));
        let is_clean = self.findings == 0 && self.error.is_none();
        is_clean.then(|| format!("{}: no hazards{calls}\n", self.file))
    }
}

/// What was found in all files.
struct CheckedFiles {
    document: FindingsReport,
    needless: Vec<Finding>,
    /// Files that cannot be checked.
    errors: Vec<String>,
    files: Vec<CheckedFile>,
}

impl CheckedFiles {
    fn new(files: &[PathBuf], checked: Vec<anyhow::Result<FileFindings>>) -> CheckedFiles {
        let names = files.iter().map(|it| it.display().to_string());
        let mut all = CheckedFiles {
            document: FindingsReport {
                lavascope: env!("CARGO_PKG_VERSION").to_owned(),
                command: std::iter::once("check".to_owned()).chain(names.clone()).collect(),
                ..FindingsReport::default()
            },
            needless: Vec::new(),
            errors: Vec::new(),
            files: Vec::new(),
        };
        for (name, result) in names.zip(checked) {
            let file = match result {
                Ok(found) => all.add(name, found),
                Err(error) => {
                    let error = format!("{error:#}");
                    all.errors.push(error.clone());
                    CheckedFile { file: name, kind: None, calls: None, findings: 0, error: Some(error) }
                }
            };
            all.files.push(file);
        }
        all
    }

    fn add(&mut self, name: String, found: FileFindings) -> CheckedFile {
        let before = self.document.findings.len();
        for mut finding in found.findings {
            finding.file = Some(name.clone());
            report::add(&mut self.document.findings, finding);
        }
        let needless = found.needless.into_iter().map(|it| Finding { file: Some(name.clone()), ..it });
        self.needless.extend(needless);
        self.document.notices.extend(found.notices);
        CheckedFile {
            file: name,
            kind: Some(found.kind),
            calls: found.calls,
            findings: self.document.findings.len() - before,
            error: None,
        }
    }
}

fn check_file(file: &Path, wanted: &CheckArguments, progress: &TerminalProgress) -> anyhow::Result<FileFindings> {
    let bytes = std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    if lavascope_trace::is_trace(&bytes) {
        return trace_check::check_trace(&TraceFile::from_bytes(file, bytes), wanted.possible, progress);
    }
    let content = std::str::from_utf8(&bytes).map_err(|error| not_utf8_error(file, &bytes, error.valid_up_to()))?;
    let found = scenario_check::check_scenario(file, content, wanted.needless)?;
    progress.advance(bytes.len() as u64);
    Ok(found)
}

fn not_utf8_error(file: &Path, bytes: &[u8], valid: usize) -> anyhow::Error {
    let before = &bytes[..valid];
    let line = before.iter().filter(|it| **it == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|it| **it != b'\n').count() + 1;
    let shown = file.display();
    anyhow!("{shown} is neither a trace nor a scenario: line {line}, column {column} is not UTF-8 text")
}
