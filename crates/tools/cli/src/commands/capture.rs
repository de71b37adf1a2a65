//! `lavascope capture`: every call of a program into a file.

use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use lavascope_trim::TrimRange;

use super::setup::{Setup, sync_beside_capture};
use super::{CommandOutcome, print, trim};
use crate::launch::capture_signal;
use crate::launch::capture_signal::CaptureSignal;
use crate::launch::child_program;
use crate::launch::child_program::ProgramEnd;
use crate::launch::direct_driver::DriverWatch;
use crate::launch::missing_instance;
use crate::report::coverage;
use crate::report::output::{ReportArguments, TextStream};
use crate::report::{LayerReport, ReportFolder, has_reports};
use crate::text;
use crate::trace::trace_file;
use crate::trace::trace_file::TraceFile;

const EXIT_CODES: &str = "\
Exit codes:
  the program's own if that is not 0, or 128 and the signal's number if a signal ended the program; otherwise
  0  the file contains every call
  2  lavascope failed: the program cannot be started, it created no Vulkan instance, or the file cannot be written";

/// Record every Vulkan call of a program into a file
///
/// The file is complete even if the program crashes: it ends with the call that crashed.
///
/// With --frames, --submits or --signal, the capture ends with that part. When the program has ended, calls that the
/// part does not need are removed from the file.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CaptureArguments {
    #[command(flatten)]
    setup: Setup,
    /// Also find synchronization hazards, which a capture does not do by default
    #[arg(long)]
    sync: bool,
    /// The file; if several processes use Vulkan, the names of the other files contain the process id
    #[arg(short, long, value_name = "FILE", default_value = "capture.lava")]
    output: PathBuf,
    /// Only these frames and what they need, counted from 0: one frame, or A..B, which excludes B
    #[arg(long, value_name = "A..B", value_parser = print::range, conflicts_with_all = ["submits", "signal"])]
    frames: Option<Range<u64>>,
    /// Only these submissions and what they need, for programs without frames
    #[arg(long, value_name = "A..B", value_parser = print::range, conflicts_with = "signal")]
    submits: Option<Range<u64>>,
    /// Only what the program does between two signals: usr1 or usr2, which is the default
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "usr2", value_enum, ignore_case = true)]
    signal: Option<CaptureSignal>,
    /// Send the signal to a program that is captured with --signal, by its process id
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "frames", "submits"])]
    attach_trigger: Option<u32>,
    /// Write these frames as pictures, for `lavascope replay --compare`; may be given more than once
    #[arg(long, value_name = "A..B", value_parser = print::range, conflicts_with_all = ["frames", "submits", "signal"])]
    screenshot: Vec<Range<u64>>,
    /// The folder for pictures
    #[arg(long, value_name = "DIR", default_value = ".")]
    screenshots: PathBuf,
    /// How the file is compressed: zstd, lz4 or none
    #[arg(long, value_name = "HOW")]
    compression: Option<String>,
    /// Also record what the device writes into host-visible memory, for `lavascope replay --verify`
    #[arg(long)]
    results: bool,
    /// Print the names and sizes of the files as JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments, after `--`
    #[arg(last = true, required_unless_present = "attach_trigger", value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &CaptureArguments) -> anyhow::Result<CommandOutcome> {
    if let Some(pid) = arguments.attach_trigger {
        capture_signal::send(pid, arguments.signal.unwrap_or(CaptureSignal::Usr2))?;
        return Ok(CommandOutcome::Success);
    }
    let [program, rest @ ..] = &arguments.command[..] else { anyhow::bail!("no program is given") };
    let name = program.display().to_string();
    let output = create_output(&arguments.output)?;
    let folder = ReportFolder::new()?;
    let mut command = Command::new(program);
    let setup = arguments.setup.variables()?;
    command.args(rest).envs(setup.iter().map(|it| (it.0, &it.1))).env("LAVASCOPE_REPORT", folder.path());
    command.env("LAVASCOPE_CAPTURE", &output).envs([sync_beside_capture(arguments.sync)]);
    if let Some(how) = &arguments.compression {
        command.env("LAVASCOPE_CAPTURE_COMPRESSION", how);
    }
    if arguments.results {
        command.env("LAVASCOPE_CAPTURE_RESULTS", "1");
    }
    command.envs(part_settings(arguments));
    if !arguments.screenshot.is_empty() {
        command.env("LAVASCOPE_SCREENSHOT", frames(&arguments.screenshot));
        // The program may go elsewhere.
        command.env("LAVASCOPE_SCREENSHOTS", std::path::absolute(&arguments.screenshots)?);
    }
    let reports = folder.path().to_owned();
    let is_under_layer = move || has_reports(&reports);
    let (end, drivers) = child_program::run_watched(&mut command, |it| DriverWatch::start(it, is_under_layer))?;
    let direct_driver = drivers.end();
    let mut report = LayerReport::read(folder.path())?;
    if let ProgramEnd::Signal(cause) = end {
        text::emit_stderr(&format!("lavascope: `{name}` was ended by {cause}\n"));
    }
    if report.processes.is_empty() {
        text::emit_stderr(&missing_instance::explain(program, &setup, direct_driver));
    }
    let command = arguments.command.iter().map(|it| it.display().to_string()).collect();
    let mut document = report.document(command)?;
    ReportArguments::default().open(None, TextStream::Stderr)?.write(&mut document)?;
    text::emit_stderr(&coverage::checked_line(&document).unwrap_or_default());
    let files = finish_files(&output, &report);
    print_files(arguments, &files)?;
    print_pictures(arguments, &report);
    let is_cut = |it: &CapturedFile| it.is_broken || report.has_error_at(&it.path.display().to_string());
    let has_failed =
        files.is_empty() || files.iter().any(is_cut) || report.processes.iter().any(|it| !it.bugs.is_empty());
    Ok(match end {
        ProgramEnd::Exit(0) if has_failed => CommandOutcome::Failed,
        ProgramEnd::Exit(0) => CommandOutcome::Success,
        ProgramEnd::Exit(_) | ProgramEnd::Signal(_) => CommandOutcome::Program(end.code()),
    })
}

/// A file that can be written, by a name that does not depend on where the program goes.
fn create_output(path: &Path) -> anyhow::Result<PathBuf> {
    fs::write(path, "").with_context(|| format!("{} cannot be written", path.display()))?;
    // What an earlier capture left behind is not this one's.
    let _ = fs::remove_file(trace_file::tail_path(path));
    fs::canonicalize(path).with_context(|| format!("{} cannot be found again", path.display()))
}

/// A file with a capture, and how many records were saved out of its tail.
struct CapturedFile {
    path: PathBuf,
    bytes: u64,
    saved: Option<u64>,
    /// Whether it could not be made whole. What is in it can be read all the same.
    is_broken: bool,
    /// What became of a file of which only a part was wanted.
    part: Option<String>,
}

/// As the layer reads it.
fn range(value: &Range<u64>) -> String {
    match value.end {
        u64::MAX => format!("{}..", value.start),
        end => format!("{}..{end}", value.start),
    }
}

fn frames(all: &[Range<u64>]) -> String {
    let all: Vec<String> = all.iter().filter(|it| !it.is_empty()).map(range).collect();
    all.join(",")
}

/// Which part is wanted, for the layer.
fn part_settings(arguments: &CaptureArguments) -> impl Iterator<Item = (&'static str, String)> {
    let frames = arguments.frames.as_ref().map(|it| ("LAVASCOPE_CAPTURE_FRAMES", range(it)));
    let submits = arguments.submits.as_ref().map(|it| ("LAVASCOPE_CAPTURE_SUBMITS", range(it)));
    let signal = arguments.signal.map(|it| ("LAVASCOPE_CAPTURE_TRIGGER", it.word().to_owned()));
    frames.into_iter().chain(submits).chain(signal)
}

/// Leaves out what a part does not need, if only a part was wanted; says what became of it.
fn trim_to_part(path: &Path) -> anyhow::Result<Option<String>> {
    let file = TraceFile::read(path)?;
    let facts = file.open()?.metadata();
    let Some(wanted) = facts.iter().rev().map(|it| &it["wanted"]).find(|it| !it.is_null()) else { return Ok(None) };
    let range = wanted["first"].as_u64().unwrap_or(0)..wanted["end"].as_u64().unwrap_or(u64::MAX);
    let part = match wanted["of"].as_str() {
        Some("frames") => TrimRange::Frames(range),
        _ => TrimRange::Submits(range),
    };
    drop(file);
    Ok(Some(match trim::trim_file(path, path, &part) {
        Ok(summary) => trim::render_summary(&summary),
        Err(error) => format!("all of it is kept: {error:#}"),
    }))
}

/// The files that processes left, each made whole.
fn finish_files(output: &Path, report: &LayerReport) -> Vec<CapturedFile> {
    let own = report.processes.iter().map(|it| output.with_extension(format!("{}.lava", it.pid)));
    let mut all = Vec::new();
    for path in std::iter::once(output.to_owned()).chain(own) {
        let Ok(size) = fs::metadata(&path).map(|it| it.len()) else { continue };
        if size == 0 {
            let _ = fs::remove_file(&path);
            continue;
        }
        let made = trace_file::repair_file(&path);
        if let Err(error) = &made {
            text::emit_stderr(&format!("lavascope: {error:#}\n"));
        }
        let (is_broken, saved) = (made.is_err(), made.ok().flatten());
        let part = if is_broken {
            None
        } else {
            trim_to_part(&path).unwrap_or_else(|it| Some(format!("all of it is kept: {it:#}")))
        };
        let bytes = fs::metadata(&path).map_or(size, |it| it.len());
        all.push(CapturedFile { path, bytes, saved, is_broken, part });
    }
    all
}

fn print_files(arguments: &CaptureArguments, files: &[CapturedFile]) -> anyhow::Result<()> {
    if arguments.json {
        let line = |it: &CapturedFile| serde_json::json!({ "file": it.path.display().to_string(), "bytes": it.bytes, "saved_records": it.saved, "part": it.part });
        return text::emit_json(&files.iter().map(line).collect::<Vec<_>>());
    }
    for CapturedFile { path, bytes, saved, part, .. } in files {
        let saved = saved.map(|it| format!(", {it} records of it saved after the program was cut short"));
        text::emit_stderr(&format!("lavascope: {}: {bytes} bytes{}\n", path.display(), saved.unwrap_or_default()));
        if let Some(part) = part {
            text::emit_stderr(&format!("lavascope: {}: {part}\n", path.display()));
        } else if arguments.signal.is_some() {
            text::emit_stderr(&format!("lavascope: {}: no signal came, so all of it is kept\n", path.display()));
        }
    }
    if files.is_empty() {
        text::emit_stderr("lavascope: nothing was captured\n");
    }
    Ok(())
}

fn print_pictures(arguments: &CaptureArguments, report: &LayerReport) {
    if arguments.screenshot.is_empty() {
        return;
    }
    let folder = arguments.screenshots.display();
    // Why there are none is reported already.
    let is_reported = report.processes.iter().flat_map(|it| &it.problems).any(|it| it.place == "setting screenshot");
    text::emit_stderr(&match report.processes.iter().map(|it| it.pictures.len()).sum() {
        0_usize if is_reported => "lavascope: there are no pictures\n".to_owned(),
        0 => "lavascope: there are no pictures: no such frame was presented\n".to_owned(),
        1 => format!("lavascope: {folder}: 1 picture\n"),
        count => format!("lavascope: {folder}: {count} pictures\n"),
    });
}
