//! Replays the calls of a trace, on all its threads.
//!
//! [`replay`] gives each stream of the trace a thread. A thread reads its records (`schedule/player.rs`) and waits
//! until the calls of other threads that a record names are complete (`schedule/progress.rs`). It lays the call out as
//! C memory with the handles of this device (`call/`), and calls the driver. Most commands are performed unchanged;
//! `call/handlers.rs` has the handlers of the others: memory of other types, waits, swapchains without a window.
//!
//! - **The replay makes a call when it knows the outputs.** It reads the *enter* and the *leave* of a call together. So it
//!   skips a call that failed in the trace, and knows what a wait waited for. It skips and names a call that never
//!   returned.
//! - **Memory is mapped as the program mapped it**, so that a capture of the replay has the same host writes as the
//!   capture of the program. If a trace also has the writes of the device (`capture_results`), the replay waits for the
//!   device before it writes such bytes, and keeps bytes that the device has written itself.
//! - **Parts** of a trace are cut by `trim` in memory, and replayed as traces of their own.
//!
//! Absent on purpose: files and messages to users. The caller passes the bytes of a trace, and gets errors that name
//! thread and call.

mod call;
mod error;
mod memory;
mod port;
mod present;
mod schedule;
mod teardown;
#[rustfmt::skip]
mod generated;
#[doc(hidden)]
pub mod measure;
mod options;
mod replay;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lavascope_trace::{CallNumbers, CallSearch, Tail, Trace, find_call};

pub use error::{ReplayError, ThreadWaits};
pub use memory::device_memory::{WriteComparison, WriteDifference};
pub use options::{
    CallCallback, CallMoment, FrameCallback, FrameOutput, HangCallback, MeasureFrom, PauseCallback, PausePoint,
    PausedCall, ProgressCallback, ReplayOptions, ThreadSharing,
};
pub use port::device_addresses::{REMARK as DEVICE_ADDRESS_REMARK, is_query as is_device_address_query};
pub use port::plan::{PlannedDevice, ReplayPlan, UnsupportedCall};
pub use schedule::device_waits::end_process;

use replay::{PausedPosition, Replay, RunMode};
use schedule::device_waits::{HangDetector, INTERVAL};
use schedule::player::StreamPlayer;
use schedule::serial_phase::StreamThreads;
use schedule::single_thread::ScheduledStream;

/// The result of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplaySummary {
    pub threads: usize,
    pub calls: u64,
    pub frames: u64,
    /// The duration of the measured part, and of each of its frames except the first of a trace.
    pub time: Duration,
    pub frame_times: Vec<Duration>,
    pub write_comparison: WriteComparison,
    /// Remarks for the user, each once.
    pub remarks: Vec<String>,
    /// Whether the user ended the replay.
    pub is_interrupted: bool,
}

/// Replays a whole trace. If the device differs from that of the trace, first checks what this device does not support.
pub fn replay(trace: &Trace<'_>, tail: Option<&Tail>, options: &ReplayOptions) -> Result<ReplaySummary, ReplayError> {
    let (result, _) = run(trace, tail, options, RunMode::Perform)?;
    let numbered = |it: ReplayError| it.with_numbers(&CallNumbers::of_all(trace, tail));
    let result = match result {
        Err(ReplayError::DifferentDevice) => match plan(trace, tail, options) {
            Ok(plan) if !plan.unsupported.is_empty() => Err(ReplayError::Unsupported(plan.describe_unsupported())),
            // Faults of the trace itself are reported when the calls are performed.
            _ => run(trace, tail, options, RunMode::PerformAnyway)?.0,
        },
        result => result,
    };
    result.map_err(numbered)
}

/// Finds out what a replay on this device would do.
pub fn plan(trace: &Trace<'_>, tail: Option<&Tail>, options: &ReplayOptions) -> Result<ReplayPlan, ReplayError> {
    let options = ReplayOptions { one_thread: true, chaos: None, pause: None, ..options.clone() };
    let (result, replay) = run(trace, tail, &options, RunMode::Plan)?;
    let numbers = || CallNumbers::of_all(trace, tail);
    let summary = result.map_err(|it| it.with_numbers(&numbers()))?;
    let planning = replay.plan.map(Mutex::into_inner).map(|it| it.unwrap_or_else(PoisonError::into_inner));
    let mut plan = planning.unwrap_or_default().plan;
    if !plan.unsupported.is_empty() {
        let numbers = numbers();
        plan.unsupported.iter_mut().for_each(|it| it.call = numbers.number(it.stream, it.call));
    }
    Ok(ReplayPlan { calls: summary.calls, remarks: summary.remarks, ..plan })
}

/// Replays a trace to its end.
fn run(
    trace: &Trace<'_>,
    tail: Option<&Tail>,
    options: &ReplayOptions,
    mode: RunMode,
) -> Result<(Result<ReplaySummary, ReplayError>, Replay), ReplayError> {
    let streams = lavascope_trace::streams(trace, tail);
    let metadata = trace.metadata();
    let speed = metadata.iter().rev().find_map(|it| it["ticks_per_second"].as_u64());
    let speed = speed.unwrap_or(trace.header().ticks_per_second);
    let mut replay = Replay::new(options.clone(), mode, (metadata, speed), &streams)?;
    replay.pause = options.pause.map(|it| find_pause(trace, tail, it, &streams)).transpose()?;
    let numbers = || CallNumbers::of_all(trace, tail);
    let began = Instant::now();
    let result = run_watched(&replay, &numbers, || match replay.options.one_thread {
        true => play_single_threaded(&replay, trace, tail, &streams),
        false => play_threaded(&replay, trace, tail, &streams),
    });
    let is_interrupted = options.interrupt.load(Ordering::Relaxed);
    let result = match result {
        Err(ReplayError::Stopped) if is_interrupted => Ok(()),
        result => result,
    };
    let end = Instant::now();
    let result = match result {
        Ok(()) => match teardown::destroy_remaining(&replay) {
            // After an interruption by the user, later errors do not matter.
            Err(error) if is_interrupted => {
                replay.remark(error.to_string());
                Ok(())
            }
            ended => ended,
        },
        Err(ReplayError::DifferentDevice) => {
            teardown::destroy_remaining(&replay).and(Err(ReplayError::DifferentDevice))
        }
        // A device that makes no progress must not be waited for.
        result => result,
    };
    let summary = result.map(|()| ReplaySummary {
        threads: streams.len(),
        calls: replay.calls.load(Ordering::Relaxed),
        frames: replay.clock.frames(),
        time: end - replay.clock.measured_since().unwrap_or(began),
        frame_times: replay.clock.take_times(),
        write_comparison: *replay::lock(&replay.write_comparison),
        remarks: replay.remarks(&numbers),
        is_interrupted,
    });
    Ok((summary, replay))
}

/// The position of the call to pause at.
fn find_pause(
    trace: &Trace<'_>,
    tail: Option<&Tail>,
    pause: PausePoint,
    streams: &[u32],
) -> Result<PausedPosition, ReplayError> {
    let stream = pause.stream.or(streams.first().copied()).unwrap_or(0);
    let number = pause.call;
    let missing = match find_call(trace, tail, stream, number) {
        CallSearch::Found(position) => return Ok(PausedPosition { stream, position, number }),
        CallSearch::NoThread => format!("there is no thread {stream} to pause"),
        CallSearch::NoCall(None) => format!("thread {stream} has no call to pause at"),
        CallSearch::NoCall(Some((first, last))) => {
            format!("thread {stream} has no call {number} to pause at; its calls are {first} to {last}")
        }
    };
    Err(ReplayError::NoCall(missing))
}

/// Runs the replay, and reports its progress to the caller.
fn run_watched<T: Send>(
    replay: &Replay,
    numbers: &(dyn Fn() -> CallNumbers + Sync),
    act: impl FnOnce() -> T + Send,
) -> T {
    let ReplayOptions { on_progress: watcher, on_hang: hung, .. } = &replay.options;
    if replay.is_plan() || (watcher.is_none() && hung.is_none()) {
        return act();
    }
    std::thread::scope(|scope| {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let mut hang = HangDetector::new(replay);
            while ended.recv_timeout(INTERVAL) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                if let Some(watcher) = watcher {
                    watcher(replay.progress.calls(), replay.clock.frames());
                }
                hang.check(numbers);
            }
        });
        let result = act();
        drop(end);
        result
    })
}

/// Starts one thread for each stream of the trace. In a serial phase, one of them plays all. Each thread calls
/// `StreamThreads::play`, which calls `StreamPlayer::play` of its stream until that ends.
fn play_threaded(replay: &Replay, trace: &Trace<'_>, tail: Option<&Tail>, streams: &[u32]) -> Result<(), ReplayError> {
    let thread_results: Vec<Result<(), ReplayError>> = std::thread::scope(|scope| {
        let readers = schedule::read_ahead::stream_readers(scope, trace, tail, streams);
        let threads = Arc::new(StreamThreads::new(replay, streams.len()));
        let play = |((index, stream), reader): ((usize, &u32), _)| {
            let (stream, threads) = (*stream, Arc::clone(&threads));
            scope.spawn(move || threads.play(StreamPlayer::new(replay, stream, index), reader))
        };
        let threads: Vec<_> = streams.iter().enumerate().zip(readers).map(play).collect();
        threads.into_iter().map(|it| it.join().unwrap_or(Err(ReplayError::Stopped))).collect()
    });
    // A thread that stopped only because of another one has no error of its own.
    let mut errors: Vec<ReplayError> = thread_results.into_iter().filter_map(Result::err).collect();
    let first_failure = errors.iter().position(|it| !matches!(it, ReplayError::Stopped)).unwrap_or(0);
    if errors.is_empty() { Ok(()) } else { Err(errors.swap_remove(first_failure)) }
}

fn play_single_threaded(
    replay: &Replay,
    trace: &Trace<'_>,
    tail: Option<&Tail>,
    streams: &[u32],
) -> Result<(), ReplayError> {
    std::thread::scope(|scope| {
        let part = |((index, stream), reader): ((usize, &u32), _)| ScheduledStream {
            player: StreamPlayer::new(replay, *stream, index),
            reader,
            is_finished: false,
        };
        let readers = schedule::read_ahead::stream_readers(scope, trace, tail, streams);
        let mut parts: Vec<ScheduledStream<'_, '_, '_>> = streams.iter().enumerate().zip(readers).map(part).collect();
        schedule::single_thread::play_streams(replay, &mut parts)
    })
}
