//! `lavascope trim`: a part of a trace, as a trace of its own.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use lavascope_trace::{Tail, Trace};
use lavascope_trim::{TrimError, TrimRange, TrimSummary, trim};

use super::{CommandOutcome, print};
use crate::text;
use crate::text::progress::TerminalProgress;
use crate::trace::trace_file::TraceFile;

/// Cut frames or submissions out of a trace, with everything that their replay needs
///
/// Calls before the part stay where it needs them: those that made its objects and what is in them. The part itself is
/// whole. A program that makes each frame out of the one before keeps all that came before.
#[derive(clap::Args)]
pub(crate) struct TrimArguments {
    /// The trace
    file: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    part: TrimRangeArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct TrimRangeArguments {
    /// These frames, counted from 0: A..B without B, or one
    #[arg(long, value_name = "A..B", value_parser = print::range)]
    frames: Option<Range<u64>>,
    /// These submissions, counted from 0: A..B without B, or one
    #[arg(long, value_name = "A..B", value_parser = print::range)]
    submits: Option<Range<u64>>,
}

pub(crate) fn run(arguments: &TrimArguments) -> anyhow::Result<CommandOutcome> {
    let part = match (&arguments.part.frames, &arguments.part.submits) {
        (Some(range), _) => TrimRange::Frames(range.clone()),
        (None, Some(range)) => TrimRange::Submits(range.clone()),
        (None, None) => anyhow::bail!("neither frames nor submissions are given"),
    };
    let summary = trim_file(&arguments.file, &arguments.output, &part)?;
    if arguments.json {
        let bytes = fs::metadata(&arguments.output).map_or(0, |it| it.len());
        text::emit_json(&json(&arguments.output, bytes, &summary))?;
    } else {
        text::emit(&format!("{}: {}\n", arguments.output.display(), render_summary(&summary)))?;
    }
    Ok(CommandOutcome::Success)
}

/// In how many steps the progress of a trim is reported.
const STEPS: u64 = 1000;

/// Writes a part of a trace into a file, which appears when it is whole.
pub(crate) fn trim_file(from: &Path, to: &Path, part: &TrimRange) -> anyhow::Result<TrimSummary> {
    let file = TraceFile::read(from)?;
    let trace = file.open()?;
    let failed = || format!("{} cannot be written", to.display());
    let mut name = to.as_os_str().to_owned();
    name.push(".part");
    let half = PathBuf::from(name);
    let mut out = BufWriter::new(File::create(&half).with_context(failed)?);
    let summary =
        trim_with_progress(&trace, file.tail(), part, &mut out).map_err(|it| anyhow!("{}: {it}", from.display()));
    let written = summary.and_then(|it| out.flush().with_context(failed).map(|()| it));
    let summary = written.inspect_err(|_| {
        let _ = fs::remove_file(&half);
    })?;
    fs::rename(&half, to).with_context(failed)?;
    Ok(summary)
}

/// Writes a part of a trace, and shows how far that is.
pub(crate) fn trim_with_progress(
    trace: &Trace<'_>,
    tail: Option<&Tail>,
    part: &TrimRange,
    to: impl Write,
) -> Result<TrimSummary, TrimError> {
    let progress = TerminalProgress::new(STEPS);
    trim(trace, tail, part, to, &mut |done, all| progress.reach(done * STEPS / all.max(1)))
}

/// What was written, for people.
pub(crate) fn render_summary(trim_summary: &TrimSummary) -> String {
    let mut text = format!("{} calls, {} of them from before the part", trim_summary.calls, trim_summary.calls_before);
    if trim_summary.frames_before + trim_summary.frames > 0 {
        text += "; frames keep their numbers";
    }
    if trim_summary.frames_left_out + trim_summary.submits_left_out > 0 {
        text += &format!(
            "; {} frames and {} submissions are skipped",
            trim_summary.frames_left_out, trim_summary.submits_left_out
        );
    }
    if let Some(reason) = trim_summary.reason.filter(|_| trim_summary.calls_before > 0) {
        text += &format!("; everything before the part is kept, because {reason}");
    }
    text
}

pub(crate) fn json(path: &Path, bytes: u64, trim_summary: &TrimSummary) -> serde_json::Value {
    serde_json::json!({
        "file": path.display().to_string(),
        "bytes": bytes,
        "calls": trim_summary.calls,
        "calls_before": trim_summary.calls_before,
        "frames": trim_summary.frames,
        "frames_before": trim_summary.frames_before,
        "frames_left_out": trim_summary.frames_left_out,
        "submits": trim_summary.submits,
        "submits_before": trim_summary.submits_before,
        "submits_left_out": trim_summary.submits_left_out,
        "reason": trim_summary.reason,
    })
}
