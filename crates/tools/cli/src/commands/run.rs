//! `lavascope run`: a program under the layer, with nothing installed system-wide.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use lavascope_findings::{FindingSeverity, FindingsReport};
use serde_json::json;

use super::CommandOutcome;
use super::debugging::DebuggingOptions;
use super::setup::{Setup, SyncOptions};
use crate::launch::child_program;
use crate::launch::child_program::ProgramEnd;
use crate::launch::crashed_shaders;
use crate::launch::direct_driver::DriverWatch;
use crate::launch::missing_instance;
use crate::report::baseline::BaselineArguments;
use crate::report::coverage;
use crate::report::output::{ReportArguments, TextStream, create_output};
use crate::report::run_summary;
use crate::report::run_summary::StatsDetail;
use crate::report::{LayerReport, ReportFolder, has_reports};
use crate::text::{self, Paint};

const EXIT_CODES: &str = "\
Exit codes:
  the program's own if that is not 0, or 128 and the signal's number if a signal ended the program; otherwise
  0  no errors and no warnings, or all of them are in the baseline
  1  errors or warnings, or less was checked than --min-coverage asks for
  2  lavascope failed: the program cannot be started, it created no Vulkan instance, no device can make a check that is
     asked for, or the layer has a bug";

/// Run a program, and report what it does wrong
///
/// Without options, the layer looks for synchronization hazards. At the end, one line says what was checked.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    sync: SyncOptions,
    #[command(flatten)]
    setup: Setup,
    /// Check each call before the driver gets it: a debugger or a callback then stops at the call that is wrong
    #[arg(long, conflicts_with = "no_sync")]
    inline: bool,
    /// Check calls on a thread of the layer while the program goes on; this is the default
    #[arg(long = "async", conflicts_with_all = ["inline", "no_sync"])]
    off_thread: bool,
    /// Also report hazards that depend on values that only the shader knows
    #[arg(long, conflicts_with = "no_sync")]
    possible: bool,
    /// Do not look for host writes to mapped memory that the device may still use
    #[arg(long, conflicts_with = "no_sync")]
    no_host_writes: bool,
    #[command(flatten)]
    debugging: DebuggingOptions,
    #[command(flatten)]
    known: BaselineArguments,
    /// Exit with 1 if less than PERCENT of the submissions, accesses or shaders were checked
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_coverage: Option<f64>,
    /// Print nothing at the end if there is nothing to report
    #[arg(short, long)]
    quiet: bool,
    /// Print every Vulkan call into FILE, or to standard error if FILE is `-`
    #[arg(long, value_name = "FILE")]
    print: Option<PathBuf>,
    /// Count calls, threads and processes
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "top")]
    stats: Option<StatsDetail>,
    #[command(flatten)]
    report: ReportArguments,
    /// Write the report as JSON into FILE, or to standard output if FILE is `-`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The exit code after a program that ended with 0
    #[arg(long, value_name = "WHOSE", default_value = "findings", hide_default_value = true)]
    exit_code: ExitCodeSource,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExitCodeSource {
    /// That of the list below; this is the default
    Findings,
    /// The program's own code, whatever was found
    App,
}

/// A number from 0 to 100.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    number.filter(|it| (0.0..=100.0).contains(it)).ok_or_else(|| "a number from 0 to 100 is needed".to_owned())
}

/// What the Vulkan loader prints.
const LOADER_DEBUG: &str = "VK_LOADER_DEBUG";
/// Says where hazards are looked for.
const SYNC_MODE: &str = "LAVASCOPE_SYNC_MODE";
const HOST_WRITES: &str = "LAVASCOPE_SYNC_HOST_WRITES";

impl RunArguments {
    /// What is asked for; else what the user has set already, and then what costs the program least.
    fn sync_mode(&self) -> Option<&'static str> {
        match (self.inline, self.off_thread) {
            (true, _) => Some("inline"),
            (_, true) => Some("async"),
            (false, false) => std::env::var_os(SYNC_MODE).is_none_or(|it| it.is_empty()).then_some("async"),
        }
    }
}

impl RunArguments {
    /// What the options say, for the layer.
    fn variables(&self) -> anyhow::Result<Vec<(&'static str, OsString)>> {
        let mut variables: Vec<(&str, OsString)> = Vec::new();
        variables.extend(self.sync.variables()?.into_iter().map(|it| (it.0, it.1.into())));
        variables.extend(self.sync_mode().map(|it| (SYNC_MODE, it.into())));
        if self.possible {
            variables.push(("LAVASCOPE_POSSIBLE", "1".into()));
        }
        if self.no_host_writes {
            variables.push((HOST_WRITES, "off".into()));
        }
        // They imply a mode, so they come behind it.
        variables.extend(self.debugging.variables());
        variables.extend(self.known.rules_for_layer()?.map(|it| ("LAVASCOPE_IGNORE", it.into())));
        if let Some(path) = &self.print {
            variables.push(("LAVASCOPE_PRINT", print_target(path)?.into()));
        }
        if self.stats.is_some() {
            variables.push(("LAVASCOPE_STATS", "1".into()));
        }
        // The loader refuses layers and extensions that are missing before a layer sees the call. It says which ones only
        // if it is asked to, and is silent otherwise.
        if std::env::var_os(LOADER_DEBUG).is_none() {
            variables.push((LOADER_DEBUG, "error".into()));
        }
        Ok(variables)
    }
}

pub(crate) fn run(arguments: &RunArguments) -> anyhow::Result<CommandOutcome> {
    let [program, rest @ ..] = &arguments.command[..] else { anyhow::bail!("no program is given") };
    let name = program.display().to_string();
    let baseline = arguments.known.baseline()?;
    let rules = arguments.known.rules()?;
    let outputs = arguments.report.open(arguments.json.as_deref(), TextStream::Stderr)?;
    let folder = ReportFolder::new()?;
    let mut command = Command::new(program);
    let setup = arguments.setup.variables()?;
    command.args(rest).envs(setup.iter().map(|it| (it.0, &it.1))).env("LAVASCOPE_REPORT", folder.path());
    command.envs(arguments.variables()?);
    let reports = folder.path().to_owned();
    let is_under_layer = move || has_reports(&reports);
    let (end, drivers) = child_program::run_watched(&mut command, |it| DriverWatch::start(it, is_under_layer))?;
    let direct_driver = drivers.end();
    let mut report = LayerReport::read(folder.path())?;
    for process in report.processes.iter_mut().filter(|it| !it.has_ended) {
        process.is_running = lavascope_platform::process::is_running(process.pid);
    }
    if let ProgramEnd::Signal(cause) = end {
        text::emit_stderr(&format!("lavascope: `{name}` was ended by {cause}\n"));
    }
    let has_checks = report.coverage.as_ref().is_some_and(|it| it.shaders.checked > 0);
    if let Some(text) = crashed_shaders::report(folder.path(), end, has_checks) {
        text::emit_stderr(&text);
    }
    if let Some(coverage) = report.coverage.as_mut().filter(|_| arguments.sync.no_sync) {
        coverage.replace_reason("sync", "--no-sync");
    }
    if let Some(coverage) = report.coverage.as_mut().filter(|_| arguments.no_host_writes) {
        coverage.replace_reason("sync_host_writes", "--no-host-writes");
    }
    let mut document = document(arguments, end, &mut report)?;
    let hidden = rules.apply([&mut document.findings]).with_those_of_layer(&report);
    if let Some(baseline) = &baseline {
        baseline.compare(&mut document, !has_failed(&report));
    }
    hidden.report(&mut document, !has_failed(&report));
    if report.processes.is_empty() {
        text::emit_stderr(&missing_instance::explain(program, &setup, direct_driver));
    }
    outputs.write_text(&mut document)?;
    if let Some(wanted) = arguments.stats.filter(|_| !report.processes.is_empty()) {
        text::emit_stderr(&run_summary::statistics_text(&report, wanted, Paint::for_stderr()));
    }
    let is_short = report_coverage(arguments, &document);
    let is_impossible = report_impossible_check(&document);
    outputs.write_documents(&mut document)?;
    if let Some(baseline) = baseline.filter(|_| !has_failed(&report)) {
        baseline.update(&document.findings)?;
    }
    Ok(match outcome(end, &report, &document, arguments.exit_code) {
        CommandOutcome::Success if is_short && arguments.exit_code == ExitCodeSource::Findings => {
            CommandOutcome::Findings
        }
        CommandOutcome::Success if is_impossible && arguments.exit_code == ExitCodeSource::Findings => {
            CommandOutcome::Failed
        }
        other => other,
    })
}

/// Reports a requested check that no device could make. Returns whether there is one.
fn report_impossible_check(report: &FindingsReport) -> bool {
    let line = coverage::impossible_line(report);
    line.iter().for_each(|it| text::emit_stderr(it));
    line.is_some()
}

/// Reports what was checked. Returns whether that is less than is wanted.
fn report_coverage(arguments: &RunArguments, report: &FindingsReport) -> bool {
    let is_said = !arguments.quiet || report.has_problems();
    if let Some(line) = coverage::summary_line(report).filter(|_| is_said) {
        text::emit_stderr(&line);
    }
    let shortfall = arguments.min_coverage.and_then(|it| coverage::shortfall_line(report, it));
    if let Some(line) = &shortfall {
        text::emit_stderr(line);
    }
    shortfall.is_some()
}

/// The findings, and how the program ended.
fn document(arguments: &RunArguments, end: ProgramEnd, report: &mut LayerReport) -> anyhow::Result<FindingsReport> {
    let command = arguments.command.iter().map(|it| it.display().to_string()).collect();
    let mut document = report.document(command)?;
    let (exit_code, signal) = match end {
        ProgramEnd::Exit(code) => (Some(code), None),
        ProgramEnd::Signal(cause) => (None, Some(cause.to_string())),
    };
    let stats = arguments.stats.map(|_| report.stats());
    for (name, value) in [("exit_code", json!(exit_code)), ("signal", json!(signal)), ("stats", json!(stats))] {
        document.sections.insert(name.to_owned(), value);
    }
    Ok(document)
}

/// Whether we failed, so that there may be more than what was found.
fn has_failed(report: &LayerReport) -> bool {
    report.processes.is_empty() || report.processes.iter().any(|it| !it.bugs.is_empty())
}

/// Where the layer prints calls; created now, so that a wrong name is an error before the program runs.
fn print_target(path: &Path) -> anyhow::Result<PathBuf> {
    if path == Path::new("-") { Ok(path.to_owned()) } else { create_output(path) }
}

fn outcome(
    end: ProgramEnd,
    report: &LayerReport,
    document: &FindingsReport,
    verdict: ExitCodeSource,
) -> CommandOutcome {
    let has_lost = report.processes.iter().any(|it| !it.lost_devices.is_empty());
    let mut new = document.findings.iter().filter(|it| !it.is_known);
    let has_found = has_lost || new.any(|it| it.severity != FindingSeverity::Info);
    match end {
        ProgramEnd::Exit(0) if verdict == ExitCodeSource::App => CommandOutcome::Success,
        ProgramEnd::Exit(0) if has_failed(report) => CommandOutcome::Failed,
        ProgramEnd::Exit(0) if has_found => CommandOutcome::Findings,
        ProgramEnd::Exit(0) => CommandOutcome::Success,
        ProgramEnd::Exit(_) | ProgramEnd::Signal(_) => CommandOutcome::Program(end.code()),
    }
}
