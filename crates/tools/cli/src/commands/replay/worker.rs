//! The child process of `lavascope replay`, which replays the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use lavascope_picture::{Comparison, Picture};
use lavascope_platform::{clock, signals};
use lavascope_replay::plan;
use lavascope_replay::{
    FrameOutput, MeasureFrom, PausedCall, ReplayError, ReplayOptions, ReplaySummary, ThreadSharing, replay,
};
use lavascope_trace::{PartNumbers, Tail, Trace};
use lavascope_trim::TrimRange;

use super::expected_pictures::ExpectedPictures;
use super::output::{FrameTimes, ReplayDocument, Screenshot, VerifiedResults, print_plan};
use super::verification::{PresentedHashes, describe_difference};
use crate::commands::CommandOutcome;
use crate::commands::replay::{ReplayArguments, Speed, ThreadChoice};
use crate::commands::trim::trim_with_progress;
use crate::text;
use crate::text::progress::TerminalProgress;
use crate::trace::trace_file::TraceFile;

pub(crate) fn run(arguments: &ReplayArguments) -> anyhow::Result<CommandOutcome> {
    // The handler is installed first, so that Ctrl-C works from the start.
    let interrupt = install_interrupt()?;
    let compared = ExpectedPictures::of(arguments)?;
    let file = TraceFile::read_lazily(&arguments.file)?;
    let mut whole = file.open()?;
    if !arguments.verify && requested_range(arguments).is_none() {
        whole.skip_results();
    }
    let Some(part) = requested_range(arguments) else {
        let numbers = FrameNumbering { frames: PartNumbers::of_frames(&whole), frames_before: 0, calls_before: 0 };
        let presented = arguments.verify.then(|| PresentedHashes::of(&whole));
        let how = ReplayJob { compared, numbers, presented, begin: MeasureFrom::Frame(0), interrupt };
        return replay_trace(arguments, (&whole, file.tail()), &how);
    };
    let failed = |it: &dyn std::fmt::Display| anyhow!("{}: {it}", file.path.display());
    let mut bytes = Vec::new();
    let cut = trim_with_progress(&whole, file.tail(), &part, &mut bytes).map_err(|it| failed(&it))?;
    let trace = Trace::open(&bytes).map_err(|it| failed(&it))?;
    let (frames, calls) = (cut.frames_before, cut.calls_before);
    let begin = match part {
        TrimRange::Frames(_) => MeasureFrom::Frame(frames),
        TrimRange::Submits(_) => MeasureFrom::Submit(cut.submits_before),
    };
    let numbers = FrameNumbering { frames: PartNumbers::of_frames(&trace), frames_before: frames, calls_before: calls };
    let presented = arguments.verify.then(|| PresentedHashes::of(&trace));
    replay_trace(arguments, (&trace, None), &ReplayJob { compared, numbers, presented, begin, interrupt })
}

/// The requested part of the trace. None if the whole trace is replayed.
fn requested_range(arguments: &ReplayArguments) -> Option<TrimRange> {
    let frames = arguments.frames.clone().map(TrimRange::Frames);
    frames.or_else(|| arguments.submits.clone().map(TrimRange::Submits))
}

/// The numbers of the frames of a part of a trace, and how much of it only prepares the first requested frame.
#[derive(Clone)]
struct FrameNumbering {
    frames: PartNumbers,
    frames_before: u64,
    calls_before: u64,
}

/// The expected pictures, the frame numbers and the interrupt flag of a replay.
struct ReplayJob {
    compared: ExpectedPictures,
    numbers: FrameNumbering,
    /// What the program presented, if the replay is compared with it.
    presented: Option<PresentedHashes>,
    begin: MeasureFrom,
    interrupt: Arc<AtomicBool>,
}

fn replay_trace(
    arguments: &ReplayArguments,
    (trace, tail): (&Trace<'_>, Option<&Tail>),
    how: &ReplayJob,
) -> anyhow::Result<CommandOutcome> {
    let seen: Arc<Mutex<CapturedFrames>> = Arc::default();
    let options = options(arguments, &seen, how);
    let name = arguments.file.display().to_string();
    if arguments.dry_run {
        let plan = plan(trace, tail, &options).map_err(|it| replay_error(&name, &it))?;
        print_plan(&name, &plan, arguments.json)?;
        return Ok(if plan.unsupported.is_empty() { CommandOutcome::Success } else { CommandOutcome::Findings });
    }
    let mut rounds = ReplayRounds::default();
    let total = estimate_calls(trace);
    let times = arguments.loops.unwrap_or(arguments.repeat.max(1));
    // Zero means to repeat until an interrupt.
    while times == 0 || rounds.seconds.len() < times as usize {
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = CapturedFrames::default();
        let progress = Arc::new(TerminalProgress::new(total));
        let options = ReplayOptions { on_progress: Some(progress_callback(progress.clone())), ..options.clone() };
        let began = processor_time();
        let summary = replay(trace, tail, &options).map_err(|it| replay_error(&name, &it))?;
        rounds.add(summary, processor_time().saturating_sub(began));
        if rounds.last.is_interrupted {
            break;
        }
    }
    let CapturedFrames { mut shots, hashes } =
        std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    if !rounds.last.is_interrupted {
        shots.extend(how.compared.missing(&shots));
    }
    shots.sort_by_key(|it| (it.frame, it.window));
    if let Some(path) = &arguments.hashes {
        let text = serde_json::to_string_pretty(&hashes)?;
        std::fs::write(path, text + "\n").with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let rounds_difference = rounds.last.write_comparison.first_difference;
    let other = arguments.compare_hashes.as_deref().map(|it| differing_frames(it, &hashes)).transpose()?;
    let mut document = rounds.document(arguments, &how.numbers, shots, other);
    document.add_verification(VerifiedResults {
        presented: how.presented.as_ref().map(|it| it.compare(&hashes)),
        difference: rounds_difference.map(|it| describe_difference(trace, tail, &it)),
        has_results: trace.metadata().iter().any(|it| it["results"] == true),
    });
    document.print(arguments)?;
    Ok(match document.differences {
        0 if document.is_nothing_compared() => CommandOutcome::Failed,
        0 => CommandOutcome::Success,
        _ => CommandOutcome::Findings,
    })
}

/// The error message if a trace cannot be replayed, with advice.
fn replay_error(file: &str, error: &ReplayError) -> anyhow::Error {
    match error {
        ReplayError::Unsupported(lines) => {
            let lines: String = lines.lines().map(|it| format!("\n  {it}")).collect();
            anyhow!("{file}: this device cannot do as much as the trace needs; --force performs the rest:{lines}")
        }
        other => anyhow!("{file}: {other}"),
    }
}

/// The pictures that were saved or compared, and the hashes of the pictures of each frame.
#[derive(Default)]
struct CapturedFrames {
    shots: Vec<Screenshot>,
    hashes: BTreeMap<u64, Vec<String>>,
}

/// The frames whose hashes differ from those in a file, or are missing on one side.
fn differing_frames(path: &Path, hashes: &BTreeMap<u64, Vec<String>>) -> anyhow::Result<Vec<u64>> {
    let failed = || format!("{} has no hashes of frames", path.display());
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let known: BTreeMap<u64, Vec<String>> = serde_json::from_str(&text).with_context(failed)?;
    let all: BTreeSet<u64> = known.keys().chain(hashes.keys()).copied().collect();
    Ok(all.into_iter().filter(|it| known.get(it) != hashes.get(it)).collect())
}

/// The results of all rounds so far.
#[derive(Default)]
struct ReplayRounds {
    seconds: Vec<f64>,
    processor_seconds: Vec<f64>,
    frame_times: Vec<Duration>,
    last: ReplaySummary,
}

impl ReplayRounds {
    fn add(&mut self, mut summary: ReplaySummary, processor: Duration) {
        // An interrupted round is dropped if there is a complete one.
        if summary.is_interrupted && !self.seconds.is_empty() {
            self.last.is_interrupted = true;
            return;
        }
        self.seconds.push(summary.time.as_secs_f64());
        self.processor_seconds.push(processor.as_secs_f64());
        self.frame_times.append(&mut summary.frame_times);
        self.last = summary;
    }

    fn document(
        self,
        arguments: &ReplayArguments,
        numbers: &FrameNumbering,
        pictures: Vec<Screenshot>,
        different_frames: Option<Vec<u64>>,
    ) -> ReplayDocument {
        let ReplaySummary { threads, calls, frames, write_comparison, remarks, is_interrupted, .. } = self.last;
        let calls = calls.saturating_sub(numbers.calls_before);
        let wrong = pictures.iter().filter(|it| it.is_mismatch(arguments)).count()
            + different_frames.as_ref().map_or(0, Vec::len);
        let seconds: f64 = self.seconds.iter().sum();
        ReplayDocument {
            file: arguments.file.display().to_string(),
            threads,
            calls,
            frames: frames.saturating_sub(numbers.frames_before),
            calls_per_second: calls as f64 * self.seconds.len() as f64 / seconds.max(1e-9),
            frame_milliseconds: FrameTimes::of(self.frame_times),
            equal_bytes: arguments.verify.then_some(write_comparison.equal),
            different_bytes: arguments.verify.then_some(write_comparison.different),
            first_difference: None,
            presented: None,
            not_compared: None,
            differences: write_comparison.different + wrong as u64,
            seconds: self.seconds,
            processor_seconds: self.processor_seconds,
            interrupted: is_interrupted,
            remarks,
            pictures,
            different_frames,
        }
    }
}

/// The processor time of all threads of this process.
fn processor_time() -> Duration {
    Duration::from_nanos(clock::process_nanoseconds())
}

fn options(arguments: &ReplayArguments, seen: &Arc<Mutex<CapturedFrames>>, how: &ReplayJob) -> ReplayOptions {
    let (folder, other, seen) = (arguments.screenshots.clone(), arguments.compare.clone(), seen.clone());
    let (wanted, compared) = (arguments.screenshot.clone(), how.compared.clone());
    let numbers = how.numbers.frames.clone();
    let (similarity, tolerance) = (arguments.similarity, arguments.tolerance);
    let accepts = move |comparison: &Comparison| match similarity {
        Some(least) => comparison.similarity >= least,
        None => comparison.difference <= tolerance,
    };
    let has_hashes = arguments.hashes.is_some() || arguments.compare_hashes.is_some() || how.presented.is_some();
    let to_trace = numbers.clone();
    let frames = move |frame: u64, window: usize, picture: Picture| {
        let frame = to_trace.original(frame);
        let is_kept = wanted.iter().any(|it| it.contains(&frame));
        let is_seen = is_kept || compared.has_frame(frame);
        let target = PictureTarget { folder: &folder, is_kept, other: other.as_deref(), accepts: &accepts };
        let shot = is_seen.then(|| save_picture((frame, window), &picture, &target));
        let hash = has_hashes.then(|| lavascope_picture::hash(&picture));
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.shots.extend(shot);
        // One frame can have a picture of each window.
        hash.into_iter().for_each(|it| seen.hashes.entry(frame).or_default().push(it));
    };
    let ranges = arguments.screenshot.iter().cloned().chain(how.compared.ranges());
    let mut pictures: Vec<Range<u64>> = ranges.map(|it| numbers.indices(&it)).collect();
    if has_hashes {
        pictures.push(0..u64::MAX);
    }
    ReplayOptions {
        gpu: arguments.gpu,
        one_thread: arguments.threads == Some(ThreadChoice::One),
        sharing: thread_sharing(arguments),
        chaos: arguments.chaos,
        patience: Duration::from_secs(arguments.patience),
        verify: arguments.verify,
        force: arguments.force,
        measure_from: how.begin,
        is_original_speed: arguments.speed == Speed::Original,
        pause: arguments.pause_at,
        on_pause: Some(Arc::new(wait_for_enter)),
        on_call: None,
        frame_output: frame_output(arguments),
        screenshot_frames: pictures,
        on_frame: Some(Arc::new(frames)),
        on_progress: None,
        on_hang: Some(hang_callback(arguments)),
        interrupt: how.interrupt.clone(),
    }
}

/// A layer below sees the threads of the trace.
fn thread_sharing(arguments: &ReplayArguments) -> ThreadSharing {
    match arguments.threads {
        None if arguments.recapture.is_none() && arguments.validate.is_none() => ThreadSharing::Adaptive,
        _ => ThreadSharing::OnePerStream,
    }
}

/// Frames are presented only to a window, or to headless surfaces for a recapture.
fn frame_output(arguments: &ReplayArguments) -> FrameOutput {
    match (arguments.window, &arguments.recapture) {
        (true, _) => FrameOutput::Window,
        (false, Some(_)) => FrameOutput::Headless,
        (false, None) => FrameOutput::Nothing,
    }
}

/// A flag that the first Ctrl-C sets. The second Ctrl-C ends the process.
fn install_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    signals::interrupt_flag().context("signals cannot be received")
}

/// An estimate of the number of calls in a trace. It counts the calls of each thread up to its last
/// submission in the index.
fn estimate_calls(trace: &Trace<'_>) -> u64 {
    // Without an index, this would read the whole trace.
    let moments = if trace.is_complete() { trace.seek_points().unwrap_or_default() } else { Vec::new() };
    let last = |stream: u32| moments.iter().filter(|it| it.stream == stream).map(|it| it.call).max();
    trace.streams().into_iter().filter_map(last).sum()
}

/// Shows the progress of the replay.
fn progress_callback(progress: Arc<TerminalProgress>) -> lavascope_replay::ProgressCallback {
    let began = Instant::now();
    Arc::new(move |calls, frames| {
        let speed = calls as f64 / began.elapsed().as_secs_f64().max(1e-3);
        progress.set_done_with_message(calls, format!(", {frames} frames, {speed:.0} calls/s"));
    })
}

/// Ends the process if a call to the driver does not return.
fn hang_callback(arguments: &ReplayArguments) -> lavascope_replay::HangCallback {
    let name = arguments.file.display().to_string();
    Arc::new(move |error| {
        text::emit_stderr(&format!("lavascope: {:#}\n", replay_error(&name, error)));
        lavascope_replay::end_process(2)
    })
}

/// Waits before a call, so that the user can attach a debugger to this process.
fn wait_for_enter(at: &PausedCall) {
    let PausedCall { stream, call, command } = at;
    let process = std::process::id();
    text::emit_stderr(&format!(
        "lavascope: before call {call} of thread {stream}, {command}; the process is {process}, Enter lets it go on\n"
    ));
    // If standard input is closed, the replay continues at once.
    let _ = std::io::stdin().lock().read_line(&mut String::new());
}

/// Where a picture goes, and what it is compared with.
struct PictureTarget<'a> {
    folder: &'a Path,
    /// Whether the picture is written even if it is as expected.
    is_kept: bool,
    other: Option<&'a Path>,
    accepts: &'a dyn Fn(&Comparison) -> bool,
}

/// Compares a picture with the expected one, and writes it to a file. A picture that differs is written together with
/// the difference.
fn save_picture((frame, window): (u64, usize), picture: &Picture, target: &PictureTarget<'_>) -> Screenshot {
    let name = lavascope_picture::file_name(frame, window);
    let path = if target.is_kept { target.folder } else { target.other.unwrap_or(Path::new("")) }.join(&name);
    let mut shot = Screenshot {
        frame,
        window,
        file: path.display().to_string(),
        width: picture.width,
        height: picture.height,
        difference: None,
        similarity: None,
        differing: Vec::new(),
        problem: None,
    };
    let mut written: Vec<(PathBuf, Picture)> = Vec::new();
    if target.is_kept {
        written.push((path, picture.clone()));
    }
    if let Some(other) = target.other {
        let beside = |what: &str| target.folder.join(name.replace(".png", &format!("-{what}.png")));
        let read = lavascope_picture::read(&other.join(&name)).map_err(anyhow::Error::from);
        match read.and_then(|it| Ok((lavascope_picture::compare(picture, &it)?, it))) {
            Ok((comparison, expected)) => {
                (shot.difference, shot.similarity) = (Some(comparison.difference), Some(comparison.similarity));
                if !(target.accepts)(&comparison) {
                    if !target.is_kept {
                        written.push((beside("replay"), picture.clone()));
                    }
                    let difference = lavascope_picture::difference(picture, &expected).ok();
                    written.extend(difference.map(|it| (beside("difference"), it)));
                    let differing = written.iter().map(|it| it.0.display().to_string());
                    shot.differing = differing.collect();
                }
            }
            Err(value) => shot.problem = Some(value.to_string()),
        }
    }
    for (path, picture) in &written {
        if let Err(error) = lavascope_picture::write(path, picture) {
            shot.problem = Some(error.to_string());
        }
    }
    shot
}
