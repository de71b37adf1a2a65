//! `lavascope run`: a program under the layer, with nothing installed system-wide.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde::Serialize;

use super::CommandOutcome;
use super::debugging::DebuggingOptions;
use super::setup::Setup;
use crate::launch::child_program;
use crate::launch::child_program::ProgramEnd;
use crate::report::baseline::{BaselineArguments, BaselineFile, not_found_text};
use crate::report::run_summary;
use crate::report::run_summary::StatsDetail;
use crate::report::{LayerReport, ReportFolder, ReportedSeverity, Stats};
use crate::text::{self, Paint};

const EXIT_CODES: &str = "\
Exit codes:
  the program's own where that is not 0, and 128 and the signal's number where a signal ended it; else
  0  nothing was found
  1  there were errors or warnings that are not in the baseline
  2  lavascope failed: the program cannot be started, the layer is missing or has a bug, or nothing ran under it";

/// Run a program under the layer
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    setup: Setup,
    /// Look for hazards inside of each call, so that a debugger stops there; a callback can give a call up then
    #[arg(long, requires = "sync")]
    inline: bool,
    /// Look for hazards on a thread of our own, while the program goes on; this is the default
    #[arg(long = "async", requires = "sync", conflicts_with = "inline")]
    off_thread: bool,
    /// Tell what is only possible, too: two writes at places that only shaders know, descriptors that they pick
    #[arg(long, requires = "sync")]
    possible: bool,
    #[command(flatten)]
    debugging: DebuggingOptions,
    #[command(flatten)]
    known: BaselineArguments,
    /// Print every Vulkan call into a file, or `-` for standard error
    #[arg(long, value_name = "FILE")]
    print: Option<PathBuf>,
    /// Count calls, threads and processes
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "top")]
    stats: Option<StatsDetail>,
    /// Write what was reported as JSON into a file, or `-` for standard output behind what the program wrote there
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What to exit with after a program that ended with 0; `findings` is the default
    #[arg(long, value_name = "WHOSE", default_value = "findings", hide_default_value = true)]
    exit_code: ExitCodeSource,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExitCodeSource {
    /// What the exit codes below say
    Findings,
    /// The program's own code, whatever was found
    App,
}

/// The document of `--json`.
#[derive(Serialize)]
struct RunDocument<'a> {
    lavascope: &'static str,
    command: Vec<String>,
    /// Of the program; none where a signal ended it.
    exit_code: Option<u8>,
    signal: Option<String>,
    stats: Option<Stats>,
    #[serde(flatten)]
    report: &'a LayerReport,
}

/// Says where hazards are looked for.
const SYNC_MODE: &str = "LAVASCOPE_SYNC_MODE";

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

pub(crate) fn run(arguments: &RunArguments) -> anyhow::Result<CommandOutcome> {
    let [program, rest @ ..] = &arguments.command[..] else { anyhow::bail!("no program is given") };
    let name = program.display().to_string();
    let baseline = arguments.known.baseline()?;
    let folder = ReportFolder::new()?;
    let mut command = Command::new(program);
    command.args(rest).envs(arguments.setup.variables()?).env("LAVASCOPE_REPORT", folder.path());
    if let Some(mode) = arguments.sync_mode() {
        command.env(SYNC_MODE, mode);
    }
    if arguments.possible {
        command.env("LAVASCOPE_POSSIBLE", "1");
    }
    command.envs(arguments.debugging.variables());
    if let Some(rules) = arguments.known.rules_for_layer()? {
        command.env("LAVASCOPE_IGNORE", rules);
    }
    if let Some(path) = &arguments.print {
        command.env("LAVASCOPE_PRINT", create_output(path)?);
    }
    if arguments.stats.is_some() {
        command.env("LAVASCOPE_STATS", "1");
    }
    let json = arguments.json.as_deref().map(create_output).transpose()?;
    let end = child_program::run(&mut command)?;
    let mut report = LayerReport::read(folder.path())?;
    for process in report.processes.iter_mut().filter(|it| !it.has_ended) {
        process.is_running = lavascope_platform::process::is_running(process.pid);
    }
    if let ProgramEnd::Signal(cause) = end {
        text::emit_stderr(&format!("lavascope: `{name}` was ended by {cause}\n"));
    }
    report.symbolize();
    if let Some(baseline) = &baseline {
        report.compare(baseline);
    }
    text::emit_stderr(&run_summary::render(&report, &name, arguments.stats, Paint::for_stderr()));
    if let Some(baseline) = &baseline {
        report_baseline(baseline, &report)?;
    }
    if let Some(path) = json {
        write_document(&path, &RunDocument::new(arguments, end, &report))?;
    }
    Ok(outcome(end, &report, arguments.exit_code))
}

/// What did not occur; or the baseline is written anew, where something ran that could have been found fault with.
fn report_baseline(baseline: &BaselineFile, report: &LayerReport) -> anyhow::Result<()> {
    let found = report.identities();
    if has_failed(report) {
        text::emit_stderr(&format!("lavascope: {} stays as it is, and is not compared\n", baseline.path().display()));
        return Ok(());
    }
    text::emit_stderr(&not_found_text(baseline.path(), &baseline.not_found(&found)));
    if let Some(said) = baseline.update(&found)? {
        text::emit_stderr(&said);
    }
    Ok(())
}

/// Whether we failed, so that there may be more than what was found.
fn has_failed(report: &LayerReport) -> bool {
    report.processes.is_empty() || report.processes.iter().any(|it| !it.bugs.is_empty())
}

/// An empty file whose place does not depend on where the program goes; made now, so that a mistake in its name is
/// told before the program runs.
fn create_output(path: &Path) -> anyhow::Result<PathBuf> {
    if path == Path::new("-") {
        return Ok(path.to_owned());
    }
    fs::write(path, "").with_context(|| format!("{} cannot be written", path.display()))?;
    fs::canonicalize(path).with_context(|| format!("{} cannot be found again", path.display()))
}

fn write_document(path: &Path, document: &RunDocument<'_>) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return text::emit_json(document);
    }
    let text = serde_json::to_string_pretty(document)? + "\n";
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

impl<'a> RunDocument<'a> {
    fn new(arguments: &RunArguments, end: ProgramEnd, report: &'a LayerReport) -> RunDocument<'a> {
        let (exit_code, signal) = match end {
            ProgramEnd::Exit(code) => (Some(code), None),
            ProgramEnd::Signal(cause) => (None, Some(cause.to_string())),
        };
        RunDocument {
            lavascope: env!("CARGO_PKG_VERSION"),
            command: arguments.command.iter().map(|it| it.display().to_string()).collect(),
            exit_code,
            signal,
            stats: arguments.stats.map(|_| report.stats()),
            report,
        }
    }
}

fn outcome(end: ProgramEnd, report: &LayerReport, verdict: ExitCodeSource) -> CommandOutcome {
    let has_lost = report.processes.iter().any(|it| !it.lost_devices.is_empty());
    let has_found = has_lost || report.count(ReportedSeverity::Error) + report.count(ReportedSeverity::Warning) > 0;
    match end {
        ProgramEnd::Exit(0) if verdict == ExitCodeSource::App => CommandOutcome::Success,
        ProgramEnd::Exit(0) if has_failed(report) => CommandOutcome::Failed,
        ProgramEnd::Exit(0) if has_found => CommandOutcome::Findings,
        ProgramEnd::Exit(0) => CommandOutcome::Success,
        ProgramEnd::Exit(_) | ProgramEnd::Signal(_) => CommandOutcome::Program(end.code()),
    }
}
