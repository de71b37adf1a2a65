//! The process that performs a trace for `lavascope replay`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use lavascope_picture::Picture;
use lavascope_platform::{clock, signals};
use lavascope_replay::{Begin, Options, ReplayError, Show, Stopped, Summary, plan, replay};
use lavascope_trace::{Tail, Trace};
use lavascope_trim::Part;

use super::Outcome;
use super::replay::{Arguments, Speed};
use super::replay_compared::Compared;
use super::replay_words::{Document, FrameTimes, Shot, tell_plan};
use super::trim::cut;
use crate::progress::Progress;
use crate::text;
use crate::trace_file::TraceFile;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    // First of all, so that nobody who interrupts it is too early.
    let interrupt = interrupt()?;
    let compared = Compared::of(arguments)?;
    let file = TraceFile::read_lazily(&arguments.file)?;
    let whole = file.open()?;
    let Some(part) = wanted(arguments) else {
        let how = How { compared, numbers: Numbers::default(), begin: Begin::Frame(0), interrupt };
        return perform(arguments, (&whole, file.tail()), &how);
    };
    let failed = |it: &dyn std::fmt::Display| anyhow!("{}: {it}", file.path.display());
    let mut bytes = Vec::new();
    let cut = cut(&whole, file.tail(), &part, &mut bytes).map_err(|it| failed(&it))?;
    let trace = Trace::open(&bytes).map_err(|it| failed(&it))?;
    let (frames, calls) = (cut.frames_before, cut.calls_before);
    let (first, begin) = match part {
        Part::Frames(range) => (range.start, Begin::Frame(frames)),
        Part::Submits(_) => (frames, Begin::Submit(cut.submits_before)),
    };
    let numbers = Numbers { first, frames_before: frames, calls_before: calls };
    perform(arguments, (&trace, None), &How { compared, numbers, begin, interrupt })
}

/// The part of the trace that somebody wants, if it is not all of it.
fn wanted(arguments: &Arguments) -> Option<Part> {
    let frames = arguments.frames.clone().map(Part::Frames);
    frames.or_else(|| arguments.submits.clone().map(Part::Submits))
}

/// Numbers of frames: in a part of a trace they begin anew.
#[derive(Clone, Copy, Default)]
struct Numbers {
    /// The number of the first frame of the part in the whole.
    first: u64,
    /// Frames and calls before it that it needs.
    frames_before: u64,
    calls_before: u64,
}

impl Numbers {
    fn in_part(self, frames: &Range<u64>) -> Range<u64> {
        let one = |it: u64| it.saturating_sub(self.first).saturating_add(self.frames_before);
        let start = frames.start.max(self.first);
        one(start)..one(frames.end.max(start))
    }

    fn in_whole(self, frame: u64) -> u64 {
        (frame + self.first).saturating_sub(self.frames_before)
    }
}

/// What is to be done with the arguments.
struct How {
    compared: Compared,
    numbers: Numbers,
    begin: Begin,
    interrupt: Arc<AtomicBool>,
}

fn perform(arguments: &Arguments, (trace, tail): (&Trace<'_>, Option<&Tail>), how: &How) -> anyhow::Result<Outcome> {
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let options = options(arguments, &seen, how);
    let name = arguments.file.display().to_string();
    if arguments.dry_run {
        let plan = plan(trace, tail, &options).map_err(|it| refusal(&name, &it))?;
        tell_plan(&name, &plan, arguments.json)?;
        return Ok(if plan.refused.is_empty() { Outcome::Fine } else { Outcome::Found });
    }
    let mut rounds = Rounds::default();
    let total = calls_about(trace);
    let times = arguments.loops.unwrap_or(arguments.repeat.max(1));
    // No number of times is for ever.
    while times == 0 || rounds.seconds.len() < times as usize {
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
        let progress = Arc::new(Progress::new(total));
        let options = Options { watcher: Some(watcher(progress.clone())), ..options.clone() };
        let began = processor_time();
        let summary = replay(trace, tail, &options).map_err(|it| refusal(&name, &it))?;
        rounds.add(summary, processor_time().saturating_sub(began));
        if rounds.last.is_interrupted {
            break;
        }
    }
    let Seen { mut shots, hashes } = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    if !rounds.last.is_interrupted {
        shots.extend(how.compared.missing(&shots));
    }
    shots.sort_by_key(|it| (it.frame, it.window));
    if let Some(path) = &arguments.hashes {
        let text = serde_json::to_string_pretty(&hashes)?;
        std::fs::write(path, text + "\n").with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let other = arguments.compare_hashes.as_deref().map(|it| other_frames(it, &hashes)).transpose()?;
    let document = rounds.document(arguments, how.numbers, shots, other);
    document.tell(arguments)?;
    Ok(if document.differences > 0 { Outcome::Found } else { Outcome::Fine })
}

/// Why a trace cannot be performed, and what can be done.
fn refusal(file: &str, error: &ReplayError) -> anyhow::Error {
    match error {
        ReplayError::Refused(lines) => {
            let lines: String = lines.lines().map(|it| format!("\n  {it}")).collect();
            anyhow!("{file}: this device cannot do as much as the trace needs; --force performs the rest:{lines}")
        }
        other => anyhow!("{file}: {other}"),
    }
}

/// What was to be seen: pictures that are kept, and hashes of the pictures of frames.
#[derive(Default)]
struct Seen {
    shots: Vec<Shot>,
    hashes: BTreeMap<u64, Vec<String>>,
}

/// Frames whose pictures are others than those of a file, or are missing in one of the two.
fn other_frames(path: &Path, hashes: &BTreeMap<u64, Vec<String>>) -> anyhow::Result<Vec<u64>> {
    let failed = || format!("{} has no hashes of frames", path.display());
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let known: BTreeMap<u64, Vec<String>> = serde_json::from_str(&text).with_context(failed)?;
    let all: BTreeSet<u64> = known.keys().chain(hashes.keys()).copied().collect();
    Ok(all.into_iter().filter(|it| known.get(it) != hashes.get(it)).collect())
}

/// What was performed so far.
#[derive(Default)]
struct Rounds {
    seconds: Vec<f64>,
    processor_seconds: Vec<f64>,
    frame_times: Vec<Duration>,
    last: Summary,
}

impl Rounds {
    fn add(&mut self, mut summary: Summary, processor: Duration) {
        // A round that was not finished says nothing where there are others.
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
        arguments: &Arguments,
        numbers: Numbers,
        pictures: Vec<Shot>,
        different_frames: Option<Vec<u64>>,
    ) -> Document {
        let Summary { threads, calls, frames, results, remarks, is_interrupted, .. } = self.last;
        let calls = calls.saturating_sub(numbers.calls_before);
        let wrong =
            pictures.iter().filter(|it| it.is_wrong(arguments)).count() + different_frames.as_ref().map_or(0, Vec::len);
        let seconds: f64 = self.seconds.iter().sum();
        Document {
            file: arguments.file.display().to_string(),
            threads,
            calls,
            frames: frames.saturating_sub(numbers.frames_before),
            calls_per_second: calls as f64 * self.seconds.len() as f64 / seconds.max(1e-9),
            frame_milliseconds: FrameTimes::of(self.frame_times),
            equal_bytes: arguments.verify.then_some(results.equal),
            different_bytes: arguments.verify.then_some(results.different),
            first_difference: results.first.map(|it| format!("byte {} of {}", it.1, it.0)),
            differences: results.different + wrong as u64,
            seconds: self.seconds,
            processor_seconds: self.processor_seconds,
            interrupted: is_interrupted,
            remarks,
            pictures,
            different_frames,
        }
    }
}

/// What all threads of this process have worked.
fn processor_time() -> Duration {
    Duration::from_nanos(clock::process_nanoseconds())
}

fn options(arguments: &Arguments, seen: &Arc<Mutex<Seen>>, how: &How) -> Options {
    let (folder, other, seen) = (arguments.screenshots.clone(), arguments.compare.clone(), seen.clone());
    let (wanted, compared) = (arguments.screenshot.clone(), how.compared.clone());
    let numbers = how.numbers;
    let has_hashes = arguments.hashes.is_some() || arguments.compare_hashes.is_some();
    let frames = move |frame: u64, window: usize, picture: Picture| {
        let frame = numbers.in_whole(frame);
        let is_kept = wanted.iter().any(|it| it.contains(&frame));
        let is_seen = is_kept || compared.has(frame);
        let folder = is_kept.then_some(&*folder);
        let shot = is_seen.then(|| keep((frame, window), &picture, folder, other.as_deref()));
        let hash = has_hashes.then(|| lavascope_picture::hash(&picture));
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.shots.extend(shot);
        // Several windows may end a frame together.
        hash.into_iter().for_each(|it| seen.hashes.entry(frame).or_default().push(it));
    };
    let ranges = arguments.screenshot.iter().cloned().chain(how.compared.ranges());
    let mut pictures: Vec<Range<u64>> = ranges.map(|it| numbers.in_part(&it)).collect();
    if has_hashes {
        pictures.push(numbers.in_part(&(0..u64::MAX)));
    }
    Options {
        gpu: arguments.gpu,
        one_thread: arguments.threads.is_some(),
        chaos: arguments.chaos,
        patience: Duration::from_secs(arguments.patience),
        verify: arguments.verify,
        force: arguments.force,
        begin: how.begin,
        is_original_speed: arguments.speed == Speed::Original,
        pause: arguments.pause_at,
        paused: Some(Arc::new(wait_for_enter)),
        show: show(arguments),
        pictures,
        frames: Some(Arc::new(frames)),
        watcher: None,
        hung: Some(hung(arguments)),
        interrupt: how.interrupt.clone(),
    }
}

/// Frames are presented where somebody sees them, or where they are recorded again.
fn show(arguments: &Arguments) -> Show {
    match (arguments.window, &arguments.recapture) {
        (true, _) => Show::Window,
        (false, Some(_)) => Show::Unseen,
        (false, None) => Show::Nothing,
    }
}

/// Set by the first Ctrl-C; the second one ends the process.
fn interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    signals::interrupt_flag().context("signals cannot be received")
}

/// About how many calls a trace has: those up to the last submission of each thread, as its index tells.
fn calls_about(trace: &Trace<'_>) -> u64 {
    // Without an index all of it would have to be read.
    let moments = if trace.is_complete() { trace.moments().unwrap_or_default() } else { Vec::new() };
    let last = |stream: u32| moments.iter().filter(|it| it.stream == stream).map(|it| it.call).max();
    trace.streams().into_iter().filter_map(last).sum()
}

/// Shows how far the replay is.
fn watcher(progress: Arc<Progress>) -> lavascope_replay::Watcher {
    let began = Instant::now();
    Arc::new(move |calls, frames| {
        let speed = calls as f64 / began.elapsed().as_secs_f64().max(1e-3);
        progress.tell(calls, format!(", {frames} frames, {speed:.0} calls/s"));
    })
}

/// The driver does not return: nothing else can be done in this process.
fn hung(arguments: &Arguments) -> lavascope_replay::Hung {
    let name = arguments.file.display().to_string();
    Arc::new(move |it| {
        text::tell(&format!("lavascope: {:#}\n", refusal(&name, it)));
        lavascope_replay::end_process(2)
    })
}

/// Somebody wants to look at this process before a call.
fn wait_for_enter(at: &Stopped) {
    let Stopped { stream, call, command } = at;
    let process = std::process::id();
    text::tell(&format!(
        "lavascope: before call {call} of thread {stream}, {command}; the process is {process}, Enter lets it go on\n"
    ));
    // Without an input nobody can say so, and it goes on.
    let _ = std::io::stdin().lock().read_line(&mut String::new());
}

/// Compares a picture, and writes it.
fn keep((frame, window): (u64, usize), picture: &Picture, folder: Option<&Path>, other: Option<&Path>) -> Shot {
    let name = lavascope_picture::file_name(frame, window);
    let path = folder.or(other).unwrap_or(Path::new("")).join(&name);
    let mut shot = Shot {
        frame,
        window,
        file: path.display().to_string(),
        width: picture.width,
        height: picture.height,
        difference: None,
        similarity: None,
        problem: None,
    };
    if let Some(other) = other {
        let read = lavascope_picture::read(&other.join(&name)).map_err(anyhow::Error::from);
        match read.and_then(|it| Ok(lavascope_picture::compare(picture, &it)?)) {
            Ok(it) => (shot.difference, shot.similarity) = (Some(it.difference), Some(it.similarity)),
            Err(it) => shot.problem = Some(it.to_string()),
        }
    }
    if let Some(Err(error)) = folder.map(|_| lavascope_picture::write(&path, picture)) {
        shot.problem = Some(error.to_string());
    }
    shot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_part_keep_their_numbers() {
        let numbers = Numbers { first: 40, frames_before: 3, calls_before: 0 };
        assert_eq!(numbers.in_part(&(40..44)), 3..7);
        assert_eq!(numbers.in_part(&(0..42)), 3..5);
        assert_eq!(numbers.in_part(&(10..20)), 3..3);
        assert_eq!([3, 6].map(|it| numbers.in_whole(it)), [40, 43]);
    }
}
