//! `lavascope replay`: replays a trace in a child process.
//!
//! The command starts itself again for the replay. The loader reads environment variables for the
//! driver and the layers when it is opened, so they must be set before. A crash of the driver ends
//! only the child process, and the parent reports it.

pub(crate) mod expected_pictures;
pub(crate) mod output;
mod verification;
pub(crate) mod worker;

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use lavascope_findings::Coverage;
use lavascope_record::RecordPhase;
use lavascope_record::encoding::RecordHeader;
use lavascope_replay::{DEVICE_ADDRESS_REMARK, PausePoint, is_device_address_query};
use lavascope_trace::StreamReader;

use super::CommandOutcome;
use crate::launch::child_program;
use crate::launch::child_program::ProgramEnd;
use crate::launch::layer_manifest::LayerName;
use crate::launch::{layer_manifest, null_driver};
use crate::report::baseline::{BaselineArguments, BaselineFile, HidingRules};
use crate::report::coverage;
use crate::report::output::{ReportArguments, ReportOutputs, TextStream};
use crate::report::{LayerReport, ReportFolder};
use crate::text;
use crate::trace::trace_file::TraceFile;

/// The hidden command of the child process. Its argument is the JSON of the parsed arguments,
/// because parsing them again would add to the measured memory of the replay.
const WORKER_COMMAND: &str = "replay-here";

const EXIT_CODES: &str = "\
Exit codes:
  0  the whole trace was replayed, and what was compared is equal; with --dry-run: this machine can replay all of it
  1  there are differences, or --validate has findings; with --dry-run: this machine cannot replay a part of it
  2  lavascope failed: the file cannot be read, or this machine cannot make a call; or --verify had nothing to compare";

/// Replay a trace on as many threads as the program used
#[derive(clap::Args, serde::Serialize, serde::Deserialize)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ReplayArguments {
    /// The trace
    #[serde(with = "any_path")]
    pub(crate) file: PathBuf,
    /// Which GPU of this machine, as `lavascope doctor` counts them from 0; else those in the places of the trace
    #[arg(long, value_name = "NUMBER")]
    pub(crate) gpu: Option<usize>,
    /// On the null driver, which needs no GPU, accepts everything and draws nothing
    #[arg(long)]
    null: bool,
    /// Report what a replay would do, and do not replay: the device, what it lacks, and the unsupported calls
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Skip calls that this machine does not support
    #[arg(long)]
    pub(crate) force: bool,
    /// Only these frames, counted from 0: A..B without B, or one; of earlier calls, only those that they need
    #[arg(long, value_name = "A..B", value_parser = super::print::range, conflicts_with = "submits")]
    pub(crate) frames: Option<Range<u64>>,
    /// Only these submissions, counted from 0, for programs without frames
    #[arg(long, value_name = "A..B", value_parser = super::print::range)]
    pub(crate) submits: Option<Range<u64>>,
    /// `max`: as fast as possible; `original`: no call earlier than in the program
    #[arg(long, value_name = "SPEED", default_value = "max", hide_possible_values = true)]
    pub(crate) speed: Speed,
    /// Wait for Enter before a call, so that a debugger can be attached: the number of the call; for another thread than
    /// the first, its number and a colon before it
    #[arg(long, value_name = "[THREAD:]CALL", value_parser = pause)]
    pub(crate) pause_at: Option<PausePoint>,
    /// Show the frames in a window on the Wayland or X display of the environment
    #[arg(long)]
    pub(crate) window: bool,
    /// 1: one thread makes all calls, in the same order each time; all: always as many threads as the program used; by
    /// default, these share one thread while they hand over work so often that one is faster
    #[arg(long, value_name = "1|all", hide_possible_values = true)]
    pub(crate) threads: Option<ThreadChoice>,
    /// Frames to write as pictures, counted from 0: A..B without B, or one; may be given more than once
    #[arg(long, value_name = "A..B", value_parser = super::print::range)]
    pub(crate) screenshot: Vec<Range<u64>>,
    /// Where pictures are written; those that differ from --compare are written there as well, with their difference
    #[arg(long, value_name = "DIR", default_value = ".")]
    #[serde(with = "any_path")]
    pub(crate) screenshots: PathBuf,
    /// Compare the pictures with those of the same names in a folder, of the program itself (`capture --screenshot`) or
    /// of another replay; where no --screenshot is given, all that it has
    #[arg(long, value_name = "DIR")]
    #[serde(with = "any_paths")]
    pub(crate) compare: Option<PathBuf>,
    /// How far a channel of a pixel may be from what it is compared with, of 255
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) tolerance: u8,
    /// Compare pictures as people see them: how similar they must be at least, from 0 to 1, instead of --tolerance
    #[arg(long, value_name = "NUMBER", value_parser = similarity, conflicts_with = "tolerance")]
    pub(crate) similarity: Option<f64>,
    /// Write a number for the picture of each frame into a file
    #[arg(long, value_name = "FILE")]
    #[serde(with = "any_paths")]
    pub(crate) hashes: Option<PathBuf>,
    /// Compare the pictures of all frames with the numbers that --hashes wrote
    #[arg(long, value_name = "FILE")]
    #[serde(with = "any_paths")]
    pub(crate) compare_hashes: Option<PathBuf>,
    /// Compare what the device writes into memory that the host can see, and what is presented, with what the trace has
    /// of it (`capture --results`)
    #[arg(long)]
    pub(crate) verify: bool,
    /// Check the program during the replay
    #[arg(long, value_name = "WHAT")]
    validate: Option<Validation>,
    #[command(flatten)]
    #[serde(skip)]
    report: ReportArguments,
    #[command(flatten)]
    #[serde(skip)]
    known: BaselineArguments,
    /// Capture the replay into a file
    #[arg(long, value_name = "FILE")]
    #[serde(with = "any_paths")]
    pub(crate) recapture: Option<PathBuf>,
    /// Replay this number of times, each from the beginning
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    pub(crate) repeat: u32,
    /// Replay again and again, each time from the beginning, until interrupted or this number of times
    #[arg(long = "loop", value_name = "TIMES", num_args = 0..=1, require_equals = true, default_missing_value = "0", conflicts_with = "repeat")]
    pub(crate) loops: Option<u32>,
    /// Delay threads at random, by this seed: only the order in the trace keeps them in order
    #[arg(long, value_name = "SEED")]
    pub(crate) chaos: Option<u64>,
    /// Stop the replay if nothing happens for this number of seconds; waits for the device may take longer
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub(crate) patience: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Serializes paths, including those that are not UTF-8.
mod any_path {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}

/// Serializes optional paths, including those that are not UTF-8.
mod any_paths {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_ref().map(|it| it.as_os_str()).serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<OsString>::deserialize(from)?.map(PathBuf::from))
    }
}

/// On how many threads a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
pub(crate) enum ThreadChoice {
    #[value(name = "1")]
    One,
    All,
}

/// How fast a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
pub(crate) enum Speed {
    Max,
    Original,
}

/// Parses `CALL` or `THREAD:CALL`, as errors and `print` name a call.
fn pause(text: &str) -> Result<PausePoint, String> {
    let wrong = || format!("`{text}` names no call; use CALL or THREAD:CALL, as in `2:17`");
    let (stream, call) = match text.split_once(':') {
        Some((stream, call)) => (Some(stream.parse().map_err(|_| wrong())?), call),
        None => (None, text),
    };
    Ok(PausePoint { stream, call: call.parse().map_err(|_| wrong())? })
}

fn similarity(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|it| (0.0..=1.0).contains(it));
    number.ok_or_else(|| format!("`{text}` is not a number from 0 to 1"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
enum Validation {
    /// Synchronization hazards
    Sync,
    /// Accesses of shaders
    Gpu,
    /// Both
    All,
}

/// Names the option that switches on what is not checked: a user of `replay` has set no variable.
fn name_options(coverage: &mut Coverage, validate: Option<Validation>) {
    let others: &[&str] = match validate {
        Some(Validation::Sync) => &["gpu"],
        Some(Validation::Gpu) => &["sync"],
        Some(Validation::All) => &[],
        None => &["sync", "gpu"],
    };
    others.iter().for_each(|it| coverage.replace_reason(it, "--validate all"));
}

/// The arguments from the parent. None if this is not the child process.
pub(crate) fn from_parent() -> Option<anyhow::Result<ReplayArguments>> {
    let mut words = std::env::args_os().skip(1);
    words.next().filter(|it| it == WORKER_COMMAND)?;
    let text = words.next().unwrap_or_default();
    Some(serde_json::from_slice(text.as_encoded_bytes()).context("`replay-here` is how `replay` starts itself"))
}

pub(crate) fn run(arguments: &ReplayArguments) -> anyhow::Result<CommandOutcome> {
    let mut command = worker_command(arguments)?;
    let report = ValidationReport::new(arguments)?;
    let folder = ReportFolder::new()?;
    let has_layer = arguments.validate.is_some() || arguments.recapture.is_some();
    if has_layer {
        command.envs(layer_manifest::variables(LayerName::Headless)?).env("LAVASCOPE_REPORT", folder.path());
        command.envs(arguments.layer_variables()?);
    }
    let end = child_program::run(&mut command)?;
    let has_findings = has_layer && report.write(arguments, &mut LayerReport::read(folder.path())?)?;
    Ok(match end {
        ProgramEnd::Exit(0) if has_findings => CommandOutcome::Findings,
        ProgramEnd::Exit(0) => CommandOutcome::Success,
        ProgramEnd::Exit(1) => CommandOutcome::Findings,
        ProgramEnd::Exit(_) => CommandOutcome::Failed,
        ProgramEnd::Signal(name) => {
            text::emit_stderr(&format!("lavascope: {}: the replay was ended by {name}\n", arguments.file.display()));
            if uses_device_addresses(arguments).unwrap_or(false) {
                text::emit_stderr(&format!("  {DEVICE_ADDRESS_REMARK}\n"));
            }
            CommandOutcome::Failed
        }
    })
}

/// Whether the program asked for a device address: a wrong one is the likeliest cause of a crash.
fn uses_device_addresses(arguments: &ReplayArguments) -> anyhow::Result<bool> {
    let file = TraceFile::read_lazily(&arguments.file)?;
    let trace = file.open()?;
    let queries = trace.streams().into_iter().map(|stream| {
        let mut reader = StreamReader::new(&trace, file.tail(), stream);
        while let Some(record) = reader.take_next()? {
            let head = RecordHeader::from_words(record.record[0], record.record[1]);
            if head.kind == RecordPhase::Enter as u8
                && lavascope_abi::Command::from_number(head.command).is_some_and(is_device_address_query)
            {
                return anyhow::Ok(true);
            }
        }
        Ok(false)
    });
    let found: Vec<bool> = queries.collect::<Result<_, _>>()?;
    Ok(found.contains(&true))
}

/// The child process, which replays. This process waits for its result.
fn worker_command(arguments: &ReplayArguments) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("lavascope does not find itself")?);
    command.arg(WORKER_COMMAND).arg(serde_json::to_string(arguments)?);
    // For mimalloc: a replay allocates little memory, so pages of 2 MiB and the tables of a large
    // arena would be mostly unused.
    command.env("MIMALLOC_ALLOW_THP", "0").env("MIMALLOC_ARENA_RESERVE", "64MiB");
    // For malloc: a large allocation of the loader gets its own mapping, which is released when the
    // loader frees it.
    command.env("MALLOC_MMAP_THRESHOLD_", "131072");
    if arguments.null {
        command.envs(null_driver::variables()?);
    }
    Ok(command)
}

impl ReplayArguments {
    /// What the options say, for the layer.
    fn layer_variables(&self) -> anyhow::Result<Vec<(&'static str, OsString)>> {
        let mut variables: Vec<(&str, OsString)> = Vec::new();
        if matches!(self.validate, Some(Validation::Gpu | Validation::All)) {
            variables.push(("LAVASCOPE_GPU", "1".into()));
        }
        let is_wanted = matches!(self.validate, Some(Validation::Sync | Validation::All));
        variables.push(("LAVASCOPE_SYNC", if is_wanted { "1" } else { "0" }.into()));
        variables.push(("LAVASCOPE_SYNC_MODE", "async".into()));
        variables.extend(self.known.rules_for_layer()?.map(|it| ("LAVASCOPE_IGNORE", it.into())));
        if let Some(path) = &self.recapture {
            let path = std::path::absolute(path).with_context(|| format!("{} is no path", path.display()))?;
            variables.push(("LAVASCOPE_CAPTURE", path.into()));
            if !self.window {
                // A recapture contains the frames even if the driver has no headless surfaces, because
                // the layer provides them.
                variables.push(("LAVASCOPE_UNSEEN_SURFACES", "1".into()));
            }
        }
        Ok(variables)
    }
}

/// What is done with the findings of `--validate`. The options are checked before the replay begins.
struct ValidationReport {
    outputs: ReportOutputs,
    baseline: Option<BaselineFile>,
    rules: HidingRules,
}

impl ValidationReport {
    fn new(arguments: &ReplayArguments) -> anyhow::Result<ValidationReport> {
        let outputs = arguments.report.open(None, TextStream::Stderr)?;
        let has_validation = arguments.validate.is_some();
        ensure!(has_validation || !outputs.has_requests(), "--format needs --validate");
        ensure!(has_validation || !arguments.known.is_used(), "--baseline and --ignore need --validate");
        Ok(ValidationReport { outputs, baseline: arguments.known.baseline()?, rules: arguments.known.rules()? })
    }

    /// Writes what the layer found. Returns whether there are findings that are not known.
    fn write(self, arguments: &ReplayArguments, report: &mut LayerReport) -> anyhow::Result<bool> {
        let is_complete = !report.processes.is_empty() && report.processes.iter().all(|it| it.bugs.is_empty());
        if report.processes.is_empty() {
            text::emit_stderr(
                "lavascope: the replay created no Vulkan instance under the layer; nothing was checked\n",
            );
        }
        let file = arguments.file.display().to_string();
        if let Some(coverage) = report.coverage.as_mut() {
            name_options(coverage, arguments.validate);
        }
        let mut document = report.document(vec!["replay".to_owned(), file.clone()])?;
        let hidden = self.rules.apply([&mut document.findings]).with_those_of_layer(report);
        if let Some(baseline) = &self.baseline {
            baseline.compare(&mut document, is_complete);
        }
        hidden.report(&mut document, is_complete);
        document.findings.iter_mut().for_each(|it| it.file = Some(file.clone()));
        self.outputs.write(&mut document)?;
        text::emit_stderr(&coverage::checked_line(&document).unwrap_or_default());
        if let Some(baseline) = self.baseline.filter(|_| is_complete) {
            baseline.update(&document.findings)?;
        }
        Ok(arguments.validate.is_some() && document.findings.iter().any(|it| !it.is_known))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use clap::{Args, FromArgMatches};

    use super::*;

    #[test]
    fn the_other_process_gets_the_same_arguments() {
        let strange = OsStr::from_bytes(b"a\xff.lava");
        let options = "--gpu 1 --frames 2..5 --speed original --pause-at 3:7 --threads 1 --screenshot 1 --screenshot 3..4 \
            --compare there --similarity 0.5 --verify --recapture again.lava --loop=4 --chaos 9 --patience 3 --json";
        let words = [OsStr::new("replay"), strange].into_iter().chain(options.split_whitespace().map(OsStr::new));
        let command = ReplayArguments::augment_args(clap::Command::new("replay"));
        let given = command.try_get_matches_from(words).map(|it| ReplayArguments::from_arg_matches(&it));
        let given = given.expect("these exist").expect("and are right");
        let text = serde_json::to_string(&given).expect("JSON");
        let taken: ReplayArguments = serde_json::from_str(&text).expect("the same");
        assert_eq!(serde_json::to_string(&taken).expect("JSON"), text);
        assert_eq!((taken.file.as_os_str(), taken.frames, taken.loops), (strange, Some(2..5), Some(4)));
        assert_eq!(taken.pause_at, Some(PausePoint { stream: Some(3), call: 7 }));
        assert_eq!((taken.speed, taken.screenshot), (Speed::Original, vec![1..2, 3..4]));
    }
}
