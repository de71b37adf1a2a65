//! `lavascope capture`: every call of a program into a file.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::Outcome;
use super::setup::Setup;
use crate::program::{self, End};
use crate::report::{Folder, Report};
use crate::summary;
use crate::text::{self, Paint};
use crate::trace_file;

const EXIT_CODES: &str = "\
Exit codes:
  the program's own where that is not 0, and 128 and the signal's number where a signal ended it; else
  0  every call is in the file
  2  lavascope failed: the program cannot be started, nothing ran under the layer, or the file cannot be written";

/// Record every Vulkan call of a program into a file
///
/// A program that crashes or is killed leaves a whole file too, with the call that it was in.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    setup: Setup,
    /// The file; where several processes use Vulkan, the others get the numbers of their processes into the name
    #[arg(short, long, value_name = "FILE", default_value = "capture.lava")]
    output: PathBuf,
    /// How the file is packed: zstd, lz4 or none
    #[arg(long, value_name = "HOW")]
    compression: Option<String>,
    /// Capture what the device writes into memory that the host can see as well, for `replay --verify`
    #[arg(long)]
    results: bool,
    /// Print JSON about what was captured
    #[arg(long)]
    json: bool,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let [program, rest @ ..] = &arguments.command[..] else { anyhow::bail!("no program is given") };
    let name = program.display().to_string();
    let output = begun(&arguments.output)?;
    let folder = Folder::new()?;
    let mut command = Command::new(program);
    command.args(rest).envs(arguments.setup.variables()?).env("LAVASCOPE_REPORT", folder.path());
    command.env("LAVASCOPE_CAPTURE", &output);
    if let Some(how) = &arguments.compression {
        command.env("LAVASCOPE_CAPTURE_COMPRESSION", how);
    }
    if arguments.results {
        command.env("LAVASCOPE_CAPTURE_RESULTS", "1");
    }
    let end = program::run(&mut command)?;
    let report = Report::read(folder.path())?;
    if let End::Signal(number) = end {
        text::tell(&format!("lavascope: `{name}` was ended by {}\n", program::name_of_signal(number)));
    }
    text::tell(&summary::render(&report, &name, None, Paint::for_stderr()));
    let files = files(&output, &report);
    tell(arguments, &files)?;
    let is_cut = |it: &Captured| it.is_broken || report.has_error_at(&it.path.display().to_string());
    let has_failed =
        files.is_empty() || files.iter().any(is_cut) || report.processes.iter().any(|it| !it.bugs.is_empty());
    Ok(match end {
        End::Exit(0) if has_failed => Outcome::Failed,
        End::Exit(0) => Outcome::Fine,
        End::Exit(_) | End::Signal(_) => Outcome::Program(end.code()),
    })
}

/// A file that can be written, by a name that does not depend on where the program goes.
fn begun(path: &Path) -> anyhow::Result<PathBuf> {
    fs::write(path, "").with_context(|| format!("{} cannot be written", path.display()))?;
    // What an earlier capture left behind is not this one's.
    let _ = fs::remove_file(trace_file::tail_of(path));
    fs::canonicalize(path).with_context(|| format!("{} cannot be found again", path.display()))
}

/// A file with a capture, and how many records were saved out of its tail.
struct Captured {
    path: PathBuf,
    bytes: u64,
    saved: Option<u64>,
    /// Whether it could not be made whole. What is in it can be read all the same.
    is_broken: bool,
}

/// The files that processes left, each made whole.
fn files(output: &Path, report: &Report) -> Vec<Captured> {
    let own = report.processes.iter().map(|it| output.with_extension(format!("{}.lava", it.pid)));
    let mut all = Vec::new();
    for path in std::iter::once(output.to_owned()).chain(own) {
        let Ok(size) = fs::metadata(&path).map(|it| it.len()) else { continue };
        if size == 0 {
            let _ = fs::remove_file(&path);
            continue;
        }
        let made = trace_file::make_whole(&path);
        if let Err(error) = &made {
            text::tell(&format!("lavascope: {error:#}\n"));
        }
        let (is_broken, saved) = (made.is_err(), made.ok().flatten());
        let bytes = fs::metadata(&path).map_or(size, |it| it.len());
        all.push(Captured { path, bytes, saved, is_broken });
    }
    all
}

fn tell(arguments: &Arguments, files: &[Captured]) -> anyhow::Result<()> {
    if arguments.json {
        let line = |it: &Captured| serde_json::json!({ "file": it.path.display().to_string(), "bytes": it.bytes, "saved_records": it.saved });
        return text::emit_json(&files.iter().map(line).collect::<Vec<_>>());
    }
    for Captured { path, bytes, saved, .. } in files {
        let saved = saved.map(|it| format!(", {it} records of it saved after the program was cut short"));
        text::tell(&format!("lavascope: {}: {bytes} bytes{}\n", path.display(), saved.unwrap_or_default()));
    }
    if files.is_empty() {
        text::tell("lavascope: nothing was captured\n");
    }
    Ok(())
}
