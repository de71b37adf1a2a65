//! Performs the calls of a trace again, on all its threads.
//!
//! [`replay`] gives each stream of the trace a thread. A thread reads its records (`play`), waits until the calls of
//! other threads that a record names are complete (`positions`), lays the call out as C memory with the handles of
//! here (`perform`), and calls the driver. What cannot be done as it was has a way of its own (`treat`): memory of
//! other types, waits, swapchains without a window.
//!
//! Absent on purpose: files and words for people. Whoever replays gives the bytes of a trace, and gets errors that
//! name thread and call.

mod addresses;
mod ahead;
mod alone;
mod atomics;
mod bind;
mod call;
mod chain;
mod chaos;
mod device;
mod error;
mod families;
mod features;
mod functions;
#[rustfmt::skip]
mod generated;
mod host;
mod instance;
mod layout;
mod mark;
#[doc(hidden)]
pub mod measure;
mod memory;
#[cfg(test)]
mod model;
mod objects;
mod options;
mod origin;
mod pair;
mod perform;
mod picture;
mod pipeline;
mod play;
mod positions;
mod present;
mod replay;
mod straight;
mod treat;
mod wait;

use std::sync::atomic::Ordering;

use lavascope_trace::{Tail, Trace};

pub use error::ReplayError;
pub use memory::Results;
pub use options::{Frames, Options};
pub use picture::Picture;

use alone::Part;
use play::Player;
use replay::Replay;

/// What a replay did.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub threads: usize,
    pub calls: u64,
    pub frames: u64,
    pub results: Results,
    /// What the user should know, each once.
    pub remarks: Vec<String>,
}

/// Plays a whole trace.
pub fn replay(trace: &Trace<'_>, tail: Option<&Tail>, options: Options) -> Result<Summary, ReplayError> {
    let mut streams = trace.streams();
    streams.extend(tail.into_iter().flat_map(Tail::streams));
    streams.sort_unstable();
    streams.dedup();
    let replay = Replay::new(options, trace.facts(), &streams)?;
    match replay.options.one_thread {
        true => play_alone(&replay, trace, tail, &streams)?,
        false => play_all(&replay, trace, tail, &streams)?,
    }
    Ok(Summary {
        threads: streams.len(),
        calls: replay.calls.load(Ordering::Relaxed),
        frames: replay.frames.load(Ordering::Relaxed),
        results: *replay::lock(&replay.results),
        remarks: replay.remarks(),
    })
}

/// One thread of ours for each of the trace.
fn play_all(replay: &Replay, trace: &Trace<'_>, tail: Option<&Tail>, streams: &[u32]) -> Result<(), ReplayError> {
    let results: Vec<Result<(), ReplayError>> = std::thread::scope(|scope| {
        let readers = ahead::readers(scope, trace, tail, streams);
        let play = |((place, stream), reader): ((usize, &u32), _)| {
            let stream = *stream;
            scope.spawn(move || Player::new(replay, stream, place).play(reader))
        };
        let threads: Vec<_> = streams.iter().enumerate().zip(readers).map(play).collect();
        threads.into_iter().map(|it| it.join().unwrap_or(Err(ReplayError::Stopped))).collect()
    });
    // Who only stopped because of another has nothing to say.
    let mut errors: Vec<ReplayError> = results.into_iter().filter_map(Result::err).collect();
    let told = errors.iter().position(|it| !matches!(it, ReplayError::Stopped)).unwrap_or(0);
    if errors.is_empty() { Ok(()) } else { Err(errors.swap_remove(told)) }
}

fn play_alone(replay: &Replay, trace: &Trace<'_>, tail: Option<&Tail>, streams: &[u32]) -> Result<(), ReplayError> {
    std::thread::scope(|scope| {
        let part = |((place, stream), reader): ((usize, &u32), _)| Part {
            stream: *stream,
            player: Player::new(replay, *stream, place),
            reader,
            is_over: false,
        };
        let readers = ahead::readers(scope, trace, tail, streams);
        let mut parts: Vec<Part<'_, '_, '_>> = streams.iter().enumerate().zip(readers).map(part).collect();
        alone::play(replay, &mut parts)
    })
}
