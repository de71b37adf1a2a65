//! Checks the trace of performed programs.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lavascope_replay::{CallMoment, ReplayOptions, ThreadSharing, replay};
use lavascope_trace::Trace;

use crate::generate::{CallPlace, Program, generate};
use crate::guarantees::{CallIndex, Guarantees};
use crate::perform::CallCounts;
use crate::program_trace::{TracedPlace, TracedStreams, find_operations};

/// What was checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckedPrograms {
    pub programs: usize,
    pub calls: usize,
    pub pairs: usize,
    pub streams: usize,
    /// Of all programs together.
    pub threads: usize,
}

/// Two calls that may be exchanged, or were.
#[derive(Clone, Debug)]
pub struct Difference {
    pub seed: u64,
    pub text: String,
}

/// Checks the trace of the programs of some seeds: what it guarantees, and a replay with random delays. `sharing` decides
/// whether threads share one in the replay.
///
/// An error is a trace that cannot be read or replayed.
pub fn check(
    file: &[u8],
    counts: &CallCounts,
    queues: usize,
    seeds: Range<u64>,
    sharing: ThreadSharing,
) -> Result<(CheckedPrograms, Vec<Difference>), String> {
    let trace = Trace::open(file).map_err(|it| it.to_string())?;
    let streams = TracedStreams::read(&trace)?;
    let programs: Vec<Program> = seeds.clone().map(|it| generate(it, queues)).collect();
    let places = find_operations(&streams, &programs, counts)?;
    let mut wakes = HashMap::new();
    for (program, places) in programs.iter().zip(&places) {
        for (signal, wait) in &program.wakes {
            wakes.insert(last(&places[wait]), first(&places[signal]));
        }
    }
    let guarantees = Guarantees::new(&streams, &wakes)?;
    let times = replay_with_delays(&trace, &streams, seeds.start, sharing)?;
    let mut checked = CheckedPrograms { programs: programs.len(), streams: streams.calls.len(), ..Default::default() };
    checked.calls = streams.calls.iter().map(Vec::len).sum();
    let mut differences = Vec::new();
    for ((seed, program), places) in seeds.zip(&programs).zip(&places) {
        checked.pairs += program.pairs.len();
        checked.threads += program.threads.len();
        for (before, after) in &program.pairs {
            let (end, begin) = (last(&places[before]), first(&places[after]));
            let how = match (guarantees.is_over(&streams, end, begin), times.is_over(&streams, end, begin)) {
                (true, true) => continue,
                (false, true) => "is not guaranteed to be over",
                (false, false) => "is not guaranteed to be over, and was not,",
                (true, false) => "is guaranteed to be over, but was not,",
            };
            let text = format!("{} {how} when {} begins", describe(program, *before), describe(program, *after));
            differences.push(Difference { seed, text });
        }
    }
    Ok((checked, differences))
}

fn first(place: &TracedPlace) -> CallIndex {
    (place.stream, place.first)
}

fn last(place: &TracedPlace) -> CallIndex {
    (place.stream, place.last)
}

fn describe(program: &Program, place: CallPlace) -> String {
    let operation = program.threads[place.thread].operations().nth(place.call);
    let operation = operation.map_or_else(String::new, |it| format!("{it:?}"));
    format!("call {} of thread {}, {operation},", place.call, place.thread)
}

/// When calls began and were over, in a replay: by stream and number.
struct ReplayTimes {
    times: Vec<Vec<(u64, u64)>>,
}

fn replay_with_delays(
    trace: &Trace<'_>,
    streams: &TracedStreams,
    seed: u64,
    sharing: ThreadSharing,
) -> Result<ReplayTimes, String> {
    let clock = AtomicU64::new(1);
    let numbers = streams.calls.iter().map(|it| it.last().map_or(0, |it| it.number as usize) + 1);
    let times: Vec<Mutex<Vec<(u64, u64)>>> = numbers.map(|it| Mutex::new(vec![(0, 0); it])).collect();
    let times = Arc::new(times);
    let (written, indices) = (Arc::clone(&times), streams.numbers.clone());
    let on_call = move |stream: u32, call: u64, moment: CallMoment| {
        let Some(index) = indices.iter().position(|it| *it == stream) else { return };
        let mut own = written[index].lock().unwrap_or_else(PoisonError::into_inner);
        let Some(time) = own.get_mut(call as usize) else { return };
        let now = clock.fetch_add(1, Ordering::SeqCst);
        match moment {
            CallMoment::Begin => time.0 = now,
            CallMoment::End => time.1 = now,
        }
    };
    let options = ReplayOptions {
        chaos: Some(seed),
        sharing,
        patience: Duration::from_secs(60),
        on_call: Some(Arc::new(on_call)),
        on_hang: Some(Arc::new(|error| {
            eprintln!("the driver does not return: {error}");
            lavascope_replay::end_process(3)
        })),
        ..ReplayOptions::default()
    };
    let summary = replay(trace, None, &options).map_err(|it| it.to_string())?;
    if !summary.remarks.is_empty() {
        return Err(format!("the replay has remarks: {}", summary.remarks.join("; ")));
    }
    let times = times.iter().map(|it| it.lock().unwrap_or_else(PoisonError::into_inner).clone()).collect();
    Ok(ReplayTimes { times })
}

impl ReplayTimes {
    fn is_over(&self, streams: &TracedStreams, call: CallIndex, when: CallIndex) -> bool {
        let number = |it: CallIndex| streams.calls[it.0][it.1].number as usize;
        self.times[call.0][number(call)].1 < self.times[when.0][number(when)].0
    }
}
