//! Threads of their own for all streams, and phases in which one thread plays all of them.
//!
//! When a serial phase begins, each thread finishes its call, hands its stream to the first that came, and sleeps. A
//! thread that is in the driver then comes later: the phase goes on without it. When the phase ends, each thread gets
//! its stream back.
//!
//! # Why no wait lasts forever
//!
//! The one thread could block in a wait whose end depends on a stream that it has in its hands. While all streams are
//! there, a wait is performed after all calls that had begun when it returned in the program, so what it waited for was
//! performed before. While some are missing, an older call may have to wait for one of those, and those threads will hand
//! over their streams at any time. Then a call that may block is not performed: if nothing else is left, the phase ends.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use lavascope_trace::StreamReader;

use crate::error::ReplayError;
use crate::replay::{Replay, lock};
use crate::schedule::player::{PlayEnd, StreamPlayer};
use crate::schedule::single_thread::{NextTurn, ScheduledStream, next_turn, play_turn};

/// How long the one thread waits for streams that it needs.
const ARRIVAL_TIME: Duration = Duration::from_millis(2);

/// The threads of a replay, each with its stream, or with none in a serial phase.
pub(crate) struct StreamThreads<'r, 't, 'a> {
    replay: &'r Replay,
    handed: Mutex<HandedStreams<'r, 't, 'a>>,
    changed: Condvar,
    /// Whether a stream was handed over that the one thread has not taken yet.
    has_arrivals: AtomicBool,
    /// Number of streams that have ended on threads of their own.
    ended: AtomicUsize,
    count: usize,
}

/// Streams between two threads.
struct HandedStreams<'r, 't, 'a> {
    /// Whether a thread plays all streams, or is about to.
    has_player: bool,
    arrivals: Vec<ScheduledStream<'r, 't, 'a>>,
    /// By index: to their own threads.
    returned: Vec<Option<ScheduledStream<'r, 't, 'a>>>,
}

/// Why a serial phase ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PhaseEnd {
    Switched,
    /// The streams that are there wait for others.
    Stalled,
}

impl<'r, 't, 'a> StreamThreads<'r, 't, 'a> {
    pub(crate) fn new(replay: &'r Replay, count: usize) -> StreamThreads<'r, 't, 'a> {
        let returned = (0..count).map(|_| None).collect();
        StreamThreads {
            replay,
            handed: Mutex::new(HandedStreams { has_player: false, arrivals: Vec::new(), returned }),
            changed: Condvar::new(),
            has_arrivals: AtomicBool::new(false),
            ended: AtomicUsize::new(0),
            count,
        }
    }

    /// Plays the stream of this thread to its end. Other threads learn when it ends, whatever the reason.
    pub(crate) fn play(&self, player: StreamPlayer<'r>, reader: StreamReader<'t, 'a>) -> Result<(), ReplayError> {
        let mut part = ScheduledStream { player, reader, is_finished: false };
        loop {
            let result = part.player.play(&mut part.reader);
            if !matches!(result, Ok(PlayEnd::SerialPhase)) {
                if result.is_err() {
                    self.replay.progress.stop();
                }
                part.player.end();
                self.ended.fetch_add(1, Ordering::SeqCst);
                return result.map(drop);
            }
            part = self.hand_over(part)?;
            if part.is_finished {
                return Ok(());
            }
        }
    }

    /// Hands a stream to the thread that plays all. Returns with it when the phase is over.
    fn hand_over(&self, part: ScheduledStream<'r, 't, 'a>) -> Result<ScheduledStream<'r, 't, 'a>, ReplayError> {
        let phases = &self.replay.progress.phases;
        let index = part.player.index();
        self.replay.progress.flush_wakeups(index);
        let mut handed = lock(&self.handed);
        if !phases.is_serial() {
            return Ok(part);
        }
        if !std::mem::replace(&mut handed.has_player, true) {
            drop(handed);
            return self.run_phase(part);
        }
        handed.arrivals.push(part);
        self.has_arrivals.store(true, Ordering::Release);
        self.changed.notify_all();
        loop {
            if let Some(part) = handed.returned[index].take() {
                return Ok(part);
            }
            if !handed.has_player && handed.arrivals.is_empty() {
                return Err(ReplayError::Stopped);
            }
            handed = self.changed.wait(handed).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Plays all streams in this thread, as long as that is faster.
    fn run_phase(&self, own: ScheduledStream<'r, 't, 'a>) -> Result<ScheduledStream<'r, 't, 'a>, ReplayError> {
        let (index, progress) = (own.player.index(), &self.replay.progress);
        let mut guard = PhaseGuard { threads: self, parts: vec![own] };
        progress.phases.begin_serial_phase(progress.calls());
        let result = self.play_streams(&mut guard.parts);
        if result.is_err() {
            progress.stop();
        }
        let is_stalled = matches!(result, Ok(PhaseEnd::Stalled));
        let mut handed = lock(&self.handed);
        guard.parts.append(&mut handed.arrivals);
        self.has_arrivals.store(false, Ordering::Relaxed);
        // Under the lock, so that no stream is handed over to nobody.
        progress.phases.end_serial_phase(is_stalled, progress.calls());
        handed.has_player = false;
        for part in guard.parts.drain(..) {
            self.ended.fetch_add(usize::from(part.is_finished), Ordering::SeqCst);
            let index = part.player.index();
            handed.returned[index] = Some(part);
        }
        let own = handed.returned[index].take();
        drop(handed);
        self.changed.notify_all();
        result.and(own.ok_or(ReplayError::Stopped))
    }

    fn play_streams(&self, parts: &mut Vec<ScheduledStream<'r, 't, 'a>>) -> Result<PhaseEnd, ReplayError> {
        let (replay, mut turn, mut record) = (self.replay, 0, 0_u32);
        loop {
            if self.has_arrivals.swap(false, Ordering::Acquire) {
                parts.append(&mut lock(&self.handed).arrivals);
            }
            if replay.progress.is_stopped() {
                return Err(ReplayError::Stopped);
            }
            let is_complete = parts.len() + self.ended.load(Ordering::SeqCst) >= self.count;
            let next = next_turn(replay, parts, turn)?.filter(|it| is_complete || !it.may_block);
            let Some(NextTurn { at, until, .. }) = next else {
                match parts.iter().all(|it| it.is_finished) {
                    true if is_complete => return Ok(PhaseEnd::Switched),
                    _ if !is_complete && self.wait_for_arrival() => continue,
                    _ => return Ok(PhaseEnd::Stalled),
                }
            };
            turn = at;
            let mut is_over = false;
            play_turn(replay, &mut parts[turn], (until, is_complete), || {
                record = record.wrapping_add(1);
                is_over = replay.progress.phases.ends_serial_phase(record, || replay.progress.calls());
                is_over || self.has_arrivals.load(Ordering::Relaxed)
            })?;
            if is_over {
                return Ok(PhaseEnd::Switched);
            }
        }
    }

    /// Waits until another stream is there. False if none comes.
    fn wait_for_arrival(&self) -> bool {
        let handed = lock(&self.handed);
        let is_missing = |it: &mut HandedStreams<'_, '_, '_>| it.arrivals.is_empty();
        let result = self.changed.wait_timeout_while(handed, ARRIVAL_TIME, is_missing);
        !result.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Ends a serial phase whose thread panics: nobody waits for a stream that is lost.
struct PhaseGuard<'s, 'r, 't, 'a> {
    threads: &'s StreamThreads<'r, 't, 'a>,
    parts: Vec<ScheduledStream<'r, 't, 'a>>,
}

impl Drop for PhaseGuard<'_, '_, '_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.threads.replay.progress.stop();
            let mut handed = lock(&self.threads.handed);
            handed.arrivals.clear();
            handed.has_player = false;
            drop(handed);
            self.threads.changed.notify_all();
        }
    }
}
