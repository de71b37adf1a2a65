//! Performs the calls of a trace again, on all its threads.
//!
//! [`replay`] gives each stream of the trace a thread. A thread reads its records (`play`), waits until the calls of
//! other threads that a record names are complete (`positions`), lays the call out as C memory with the handles of
//! here (`perform`), and calls the driver. What cannot be done as it was has a way of its own (`treat`): memory of
//! other types, waits, swapchains without a window.
//!
//! Absent on purpose: files and words for people. Whoever replays gives the bytes of a trace, and gets errors that
//! name thread and call.

mod call;
mod chain;
mod device;
mod error;
mod functions;
#[rustfmt::skip]
mod generated;
mod instance;
mod memory;
mod objects;
mod options;
mod pair;
mod perform;
mod picture;
mod play;
mod positions;
mod present;
mod replay;
mod treat;
mod wait;

use std::sync::atomic::Ordering;

use lavascope_trace::{StreamReader, Tail, Trace};

pub use error::ReplayError;
pub use options::{Frames, Options};
pub use picture::Picture;

use play::Player;
use replay::Replay;

/// What a replay did.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub threads: usize,
    pub calls: u64,
    pub frames: u64,
    /// What the user should know, each once.
    pub remarks: Vec<String>,
}

/// Plays a whole trace.
pub fn replay(trace: &Trace<'_>, tail: Option<&Tail>, options: Options) -> Result<Summary, ReplayError> {
    let mut streams = trace.streams();
    streams.extend(tail.into_iter().flat_map(Tail::streams));
    streams.sort_unstable();
    streams.dedup();
    let replay = Replay::new(options, &streams)?;
    let results: Vec<Result<(), ReplayError>> = std::thread::scope(|scope| {
        let play = |(place, stream): (usize, &u32)| {
            let (replay, stream) = (&replay, *stream);
            scope.spawn(move || Player::new(replay, stream, place).play(StreamReader::new(trace, tail, stream)))
        };
        let threads: Vec<_> = streams.iter().enumerate().map(play).collect();
        threads.into_iter().map(|it| it.join().unwrap_or(Err(ReplayError::Stopped))).collect()
    });
    // Who only stopped because of another has nothing to say.
    let mut errors = results.into_iter().filter_map(Result::err);
    let first = errors.next();
    if let Some(error) = first {
        let told = |it: &ReplayError| !matches!(it, ReplayError::Stopped);
        return Err(if told(&error) { error } else { errors.find(told).unwrap_or(error) });
    }
    Ok(Summary {
        threads: streams.len(),
        calls: replay.calls.load(Ordering::Relaxed),
        frames: replay.frames.load(Ordering::Relaxed),
        remarks: replay.remarks(),
    })
}
