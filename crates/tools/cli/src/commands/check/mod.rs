//! `lavascope check`: the hazards of a program that was captured, or is written as a scenario.

pub(crate) mod scenario_names;
pub(crate) mod trace_check;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, anyhow};
use serde::Serialize;

use lavascope_diag::{Diagnostic, DiagnosticIdentity, Severity, render_text};
use lavascope_engine::event_races;
use lavascope_explain::{
    CheckBudget, OperationLocation, blocked_submissions, diagnose_faults, diagnose_hazards, diagnose_never_executed,
    diagnose_over_synchronization, diagnose_races, fault_causes, find_over_synchronization, hazard_causes, race_causes,
};
use lavascope_scenario::{ScenarioSource, StatementId as Written, TextLocation};
use lavascope_sync_ir::{CommandBufferId, Findings};

use super::CommandOutcome;
use crate::commands::check::scenario_names::ScenarioNames;
use crate::report::baseline::{BaselineArguments, ComparedFindings, not_found_text};
use crate::text;
use crate::text::progress::TerminalProgress;
use crate::trace::trace_file::TraceFile;

const EXIT_CODES: &str = "\
Exit codes:
  0  nothing was found that is not known already
  1  something was found
  2  a file cannot be read, or is neither a trace nor a scenario; the others are told all the same";

/// Find the hazards of programs that were captured, or are written as scenarios
///
/// Needs no GPU and no driver, and uses all cores. What is expected in a scenario does not count here; its form is in docs/scenarios.md.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CheckArguments {
    /// Traces and scenarios
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Tell as well which synchronization of scenarios nobody needs; that does not count for the exit code
    #[arg(long)]
    needless: bool,
    /// Tell what is only possible in traces, too: two writes at places that only shaders know, descriptors that they pick
    #[arg(long)]
    possible: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    known: BaselineArguments,
}

/// How often a program is checked again in search of what it does not need.
const BUDGET: CheckBudget = CheckBudget { checks_max: 10_000 };

pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<CommandOutcome> {
    let (baseline, rules) = (arguments.known.baseline()?, arguments.known.rules()?);
    let total = arguments.files.iter().filter_map(|it| Some(it.metadata().ok()?.len())).sum();
    let progress = TerminalProgress::new(total);
    let looked = map_parallel(&arguments.files, |it| check_input(it, arguments, &progress));
    drop(progress);
    let mut report = CheckReport::default();
    for (file, found) in arguments.files.iter().zip(looked) {
        match found {
            Ok(found) => {
                text::emit_stderr(&found.warning);
                let judged =
                    ComparedFindings::new(found.items, |it: &LocatedDiagnostic| &it.1, &rules, baseline.as_ref());
                report.add(file, judged, found.needless, (&found.footer, &found.no_findings_text));
            }
            Err(error) => {
                report.has_failed = true;
                text::emit_stderr(&format!("lavascope: {error:#}\n"));
            }
        }
    }
    if arguments.json {
        text::emit_json(&report.infos())?;
    } else {
        text::emit(&(std::mem::take(&mut report.text) + &report.summary_line(arguments.files.len())))?;
    }
    // What was not looked at may still be there.
    if let Some(baseline) = baseline.filter(|_| !report.has_failed) {
        text::emit_stderr(&not_found_text(baseline.path(), &baseline.not_found(&report.identities)));
        text::emit_stderr(&baseline.update(&report.identities)?.unwrap_or_default());
    }
    Ok(match (report.has_failed, report.new) {
        (true, _) => CommandOutcome::Failed,
        (false, 0) => CommandOutcome::Success,
        _ => CommandOutcome::Findings,
    })
}

/// Looks at all files, as many at once as there are cores; what was found is in their order.
fn map_parallel<T: Send>(files: &[PathBuf], look: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<(usize, T)>> = Mutex::default();
    let work = || {
        // Relaxed: each number is taken once, and nothing else goes by it.
        while let Some((index, file)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|it| Some((it, files.get(it)?)))
        {
            let found = look(file);
            all.lock().unwrap_or_else(PoisonError::into_inner).push((index, found));
        }
    };
    std::thread::scope(|scope| (0..cores.min(files.len())).for_each(|_| drop(scope.spawn(work))));
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by_key(|it| it.0);
    all.into_iter().map(|it| it.1).collect()
}

/// Where a finding is written.
#[derive(Clone, Copy)]
struct SourcePosition {
    line: u32,
    column: u32,
}

impl SourcePosition {
    fn of(spot: Option<TextLocation<'_>>) -> Option<SourcePosition> {
        spot.map(|it| SourcePosition { line: it.line, column: it.column })
    }
}

/// A finding, with where it is written.
type LocatedDiagnostic = (Option<SourcePosition>, Diagnostic);

/// What was found in one file.
struct FileFindings {
    items: Vec<LocatedDiagnostic>,
    needless: Vec<LocatedDiagnostic>,
    /// What is to be said behind the findings, and where there are none.
    footer: String,
    no_findings_text: String,
    warning: String,
}

fn check_input(file: &Path, wanted: &CheckArguments, progress: &TerminalProgress) -> anyhow::Result<FileFindings> {
    let bytes = std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    if lavascope_trace::is_trace(&bytes) {
        let mut checked = trace_check::check_file(&TraceFile::from_bytes(file, bytes), wanted.possible, progress)?;
        let items = std::mem::take(&mut checked.diagnostics).into_iter().map(|it| (None, it)).collect();
        let (beside, none) = (checked.footer(file), checked.no_findings_text(file));
        return Ok(FileFindings {
            items,
            needless: Vec::new(),
            footer: beside,
            no_findings_text: none,
            warning: String::new(),
        });
    }
    let content = std::str::from_utf8(&bytes).map_err(|error| not_utf8_error(file, &bytes, error.valid_up_to()))?;
    let source = ScenarioSource::new(content)
        .map_err(|error| anyhow!("{}:{}:{}: {}", file.display(), error.line, error.column, error.message))?;
    let items = find_hazards(&source).into_iter().map(|it| (SourcePosition::of(it.0), it.1)).collect();
    let (mut needless, mut warning) = (Vec::new(), String::new());
    if wanted.needless {
        let found = find_over_synchronization(&source.scenario.program, BUDGET);
        let advice = diagnose_over_synchronization(&found, &ScenarioNames(&source));
        needless = found
            .redundant
            .iter()
            .map(|it| SourcePosition::of(source_position(&source, it.location)))
            .zip(advice)
            .collect();
        if found.untried > 0 {
            warning = format!("lavascope: {} changes were not tried; the program is too large\n", found.untried);
        }
    }
    progress.advance(bytes.len() as u64);
    let none = format!("{}: no hazards", file.display());
    Ok(FileFindings { items, needless, footer: String::new(), no_findings_text: none, warning })
}

/// What is told of all files.
#[derive(Default)]
struct CheckReport<'a> {
    text: String,
    all: Vec<(&'a Path, ComparedFindings<LocatedDiagnostic>, Vec<LocatedDiagnostic>)>,
    identities: Vec<DiagnosticIdentity>,
    /// Findings that are new, and the files that have some.
    new: usize,
    files: usize,
    /// Of those files.
    known: u64,
    ignored: u64,
    has_failed: bool,
}

impl<'a> CheckReport<'a> {
    fn add(
        &mut self,
        file: &'a Path,
        judged: ComparedFindings<LocatedDiagnostic>,
        needless: Vec<LocatedDiagnostic>,
        (beside, none): (&str, &str),
    ) {
        self.identities.extend(judged.findings.iter().map(|it| DiagnosticIdentity::of(&it.0.1)));
        let new = judged.findings.iter().filter(|it| !it.1).map(|it| &it.0);
        self.text.extend(new.chain(&needless).map(|it| render(file, it)));
        self.text += beside;
        let (known, ignored) = (judged.known_count() as u64, judged.ignored);
        if judged.new_count() == 0 {
            self.text += &format!(
                "{none}{}\n",
                counts(&[("needless", needless.len() as u64), ("known", known), ("ignored", ignored)])
            );
        } else {
            self.new += judged.new_count();
            self.files += 1;
            (self.known, self.ignored) = (self.known + known, self.ignored + ignored);
        }
        self.all.push((file, judged, needless));
    }

    fn infos(&self) -> Vec<FindingInfo<'_>> {
        let mut infos = Vec::new();
        for (file, judged, needless) in &self.all {
            infos.extend(judged.findings.iter().map(|(it, is_known)| FindingInfo::new(file, it, *is_known)));
            infos.extend(needless.iter().map(|it| FindingInfo::new(file, it, false)));
        }
        infos
    }

    /// How much was found, of so many files.
    fn summary_line(&self, files: usize) -> String {
        let (count, kind) = match self.new {
            0 => return String::new(),
            1 => ("1 finding".to_owned(), "its kind"),
            count => (format!("{count} findings"), "a kind"),
        };
        let of = if files > 1 { format!(" in {} of {files} files", self.files) } else { String::new() };
        let counts = counts(&[("known", self.known), ("ignored", self.ignored)]);
        format!("{count}{of}{counts}; `lavascope explain CODE` tells more about {kind}\n")
    }
}

fn counts(all: &[(&str, u64)]) -> String {
    all.iter().filter(|it| it.1 > 0).map(|(word, count)| format!("; {word}: {count}")).collect()
}

/// All that is wrong, each with where it is written.
fn find_hazards<'a>(source: &ScenarioSource<'a>) -> Vec<(Option<TextLocation<'a>>, Diagnostic)> {
    let (program, names) = (&source.scenario.program, ScenarioNames(source));
    let Findings { hazards, faults } = lavascope_engine::check_all(program);
    let mut spots: Vec<Option<TextLocation<'a>>> =
        hazard_causes(program, &hazards).iter().map(|it| source.operand(it.0)).collect();
    let mut diagnostics = diagnose_hazards(program, &hazards, &names);
    spots.extend(fault_causes(program, &faults).iter().map(|it| source.operand_of_fault(it.0)));
    diagnostics.extend(diagnose_faults(program, &faults, &names));
    let races = event_races(program);
    spots.extend(race_causes(program, &races).iter().map(|it| source.location(source.statement_at(&it.0.at)?)));
    diagnostics.extend(diagnose_races(program, &races, &names));
    let blocked = blocked_submissions(program);
    diagnostics.extend(diagnose_never_executed(program, &blocked, &names));
    let mut steps: Vec<u32> = blocked.iter().map(|it| it.1).collect();
    steps.dedup();
    spots.extend(steps.into_iter().map(|it| source.location(Written::Step(it))));
    spots.into_iter().zip(diagnostics).collect()
}

/// Where an operation is written that can be changed.
fn source_position<'a>(source: &ScenarioSource<'a>, site: OperationLocation) -> Option<TextLocation<'a>> {
    let command = |buffer: CommandBufferId, index| Written::Command { command_buffer: buffer.0, index };
    let written = match site {
        OperationLocation::Barrier { buffer, command: index, .. }
        | OperationLocation::Event { buffer, command: index, .. }
        | OperationLocation::SetEvent { buffer, command: index } => command(buffer, index),
        OperationLocation::Semaphore { signal, wait } => Written::Step(signal.or(wait)?.step),
        OperationLocation::Step(step) => Written::Step(step),
        OperationLocation::Subpass { .. } => return None,
    };
    source.location(written)
}

fn not_utf8_error(file: &Path, bytes: &[u8], valid: usize) -> anyhow::Error {
    let before = &bytes[..valid];
    let line = before.iter().filter(|it| **it == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|it| **it != b'\n').count() + 1;
    anyhow!("{}:{line}:{column}: this is no text in UTF-8", file.display())
}

fn render(file: &Path, (spot, diagnostic): &LocatedDiagnostic) -> String {
    let place = spot.map_or(String::new(), |it| format!(":{}:{}", it.line, it.column));
    // The facts are for tools, which read JSON.
    format!(
        "{}{place}: {}\n",
        file.display(),
        render_text(&Diagnostic { properties: Vec::new(), ..diagnostic.clone() })
    )
}

#[derive(Serialize)]
struct FindingInfo<'a> {
    code: &'a str,
    message_id: u32,
    severity: &'static str,
    file: String,
    line: Option<u32>,
    column: Option<u32>,
    message: &'a str,
    places: Vec<PlaceInfo<'a>>,
    objects: Vec<ObjectInfo<'a>>,
    facts: Vec<FactInfo<'a>>,
    explanation: &'a [String],
    fixes: Vec<FixInfo<'a>>,
    no_fix: Option<&'a str>,
    count: u64,
    fingerprint: String,
    is_known: bool,
}

#[derive(Serialize)]
struct PlaceInfo<'a> {
    role: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct ObjectInfo<'a> {
    kind: &'a str,
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct FactInfo<'a> {
    key: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct FixInfo<'a> {
    text: &'a str,
    is_verified: bool,
}

impl<'a> FindingInfo<'a> {
    fn new(file: &Path, (spot, diagnostic): &'a LocatedDiagnostic, is_known: bool) -> FindingInfo<'a> {
        FindingInfo {
            code: &diagnostic.code.0,
            message_id: diagnostic.code.message_id(),
            severity: severity(diagnostic.severity),
            file: file.display().to_string(),
            line: spot.map(|it| it.line),
            column: spot.map(|it| it.column),
            message: &diagnostic.message,
            places: diagnostic.locations.iter().map(|it| PlaceInfo { role: it.role, text: &it.text }).collect(),
            objects: diagnostic
                .objects
                .iter()
                .map(|it| ObjectInfo { kind: it.kind, name: it.name.as_deref() })
                .collect(),
            facts: diagnostic.properties.iter().map(|it| FactInfo { key: it.key, value: &it.value }).collect(),
            explanation: &diagnostic.explanation,
            fixes: diagnostic.fixes.iter().map(|it| FixInfo { text: &it.text, is_verified: it.is_verified }).collect(),
            no_fix: diagnostic.no_fix.as_deref(),
            count: diagnostic.count,
            fingerprint: DiagnosticIdentity::of(diagnostic).fingerprint(),
            is_known,
        }
    }
}

fn severity(item: Severity) -> &'static str {
    match item {
        Severity::Information => "information",
        Severity::Performance => "performance",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}
