//! `lavascope run`: a program under the layer, with nothing installed system-wide.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use lavascope_findings::{FindingSeverity, FindingsReport};
use serde_json::json;

use super::CommandOutcome;
use super::setup::Setup;
use crate::launch::child_program;
use crate::launch::child_program::ProgramEnd;
use crate::report::baseline::{BaselineArguments, remove_ignored};
use crate::report::output::{ReportArguments, TextStream, create_output};
use crate::report::run_summary;
use crate::report::run_summary::StatsDetail;
use crate::report::{LayerReport, ReportFolder};
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
    /// Show with each hazard from where in the program the commands were called
    #[arg(long, requires = "sync")]
    backtrace: bool,
    #[command(flatten)]
    known: BaselineArguments,
    /// Print every Vulkan call into a file, or `-` for standard error
    #[arg(long, value_name = "FILE")]
    print: Option<PathBuf>,
    /// Count calls, threads and processes
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "top")]
    stats: Option<StatsDetail>,
    #[command(flatten)]
    report: ReportArguments,
    /// Short for `--format json=FILE`; `-` is standard output, after what the program wrote there
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
    let rules = arguments.known.rules()?;
    let outputs = arguments.report.open(arguments.json.as_deref(), TextStream::Stderr)?;
    let folder = ReportFolder::new()?;
    let mut command = Command::new(program);
    command.args(rest).envs(arguments.setup.variables()?).env("LAVASCOPE_REPORT", folder.path());
    if let Some(mode) = arguments.sync_mode() {
        command.env(SYNC_MODE, mode);
    }
    if arguments.possible {
        command.env("LAVASCOPE_POSSIBLE", "1");
    }
    if arguments.backtrace {
        command.env("LAVASCOPE_BACKTRACE", "1");
    }
    if let Some(rules) = arguments.known.rules_for_layer()? {
        command.env("LAVASCOPE_IGNORE", rules);
    }
    if let Some(path) = &arguments.print {
        command.env("LAVASCOPE_PRINT", print_target(path)?);
    }
    if arguments.stats.is_some() {
        command.env("LAVASCOPE_STATS", "1");
    }
    let end = child_program::run(&mut command)?;
    let mut report = LayerReport::read(folder.path())?;
    for process in report.processes.iter_mut().filter(|it| !it.has_ended) {
        process.is_running = lavascope_platform::process::is_running(process.pid);
    }
    if let ProgramEnd::Signal(cause) = end {
        text::emit_stderr(&format!("lavascope: `{name}` was ended by {cause}\n"));
    }
    let mut document = document(arguments, end, &mut report)?;
    remove_ignored(&mut document, &rules);
    if let Some(baseline) = &baseline {
        baseline.compare(&mut document, !has_failed(&report));
    }
    if report.processes.is_empty() {
        text::emit_stderr(&run_summary::no_process_text(&name, Paint::for_stderr()));
    }
    outputs.write(&mut document)?;
    if let Some(wanted) = arguments.stats.filter(|_| !report.processes.is_empty()) {
        text::emit_stderr(&run_summary::statistics_text(&report, wanted, Paint::for_stderr()));
    }
    if let Some(baseline) = baseline.filter(|_| !has_failed(&report)) {
        baseline.update(&document.findings)?;
    }
    Ok(outcome(end, &report, &document, arguments.exit_code))
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
