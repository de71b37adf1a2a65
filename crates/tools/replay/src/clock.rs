//! When frames were presented, and when the part began that somebody wants to know the time of.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::options::Begin;
use crate::replay::lock;

/// The time of a replay.
pub(crate) struct Clock {
    begin: Begin,
    frames: AtomicU64,
    submits: AtomicU64,
    state: Mutex<State>,
}

struct State {
    /// When the part began; none while it has not.
    began: Option<Instant>,
    /// When the last frame ended, if there was one.
    last: Option<Instant>,
    times: Vec<Duration>,
}

impl Clock {
    pub(crate) fn new(begin: Begin) -> Clock {
        let began = begin.is_at_once().then(Instant::now);
        let state = Mutex::new(State { began, last: None, times: Vec::new() });
        Clock { begin, frames: AtomicU64::new(0), submits: AtomicU64::new(0), state }
    }

    /// A frame ends; gives its number.
    pub(crate) fn frame(&self) -> u64 {
        let number = self.frames.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let mut state = lock(&self.state);
        match (state.began, state.last) {
            (Some(_), Some(last)) => state.times.push(now - last),
            // What comes before the first frame of a trace is its beginning.
            (Some(_), None) => {}
            (None, _) if matches!(self.begin, Begin::Frame(first) if number + 1 >= first) => state.began = Some(now),
            (None, _) => {}
        }
        state.last = Some(now);
        number
    }

    /// Something is submitted.
    pub(crate) fn submit(&self) {
        let number = self.submits.fetch_add(1, Ordering::Relaxed) + 1;
        let Begin::Submit(first) = self.begin else { return };
        let mut state = lock(&self.state);
        if number >= first && state.began.is_none() {
            state.began = Some(Instant::now());
        }
    }

    pub(crate) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    pub(crate) fn began(&self) -> Option<Instant> {
        lock(&self.state).began
    }

    /// How long each frame of the part took, but the first of a trace.
    pub(crate) fn take_times(&self) -> Vec<Duration> {
        std::mem::take(&mut lock(&self.state).times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_frames_of_the_part_have_times() {
        let clock = Clock::new(Begin::Frame(2));
        assert!(clock.began().is_none());
        assert_eq!((clock.frame(), clock.began().is_none()), (0, true));
        assert_eq!((clock.frame(), clock.began().is_some()), (1, true));
        assert_eq!((clock.frame(), clock.frame(), clock.frames()), (2, 3, 4));
        assert_eq!(clock.take_times().len(), 2);
    }

    #[test]
    fn a_part_may_begin_with_a_submission_or_at_once() {
        let clock = Clock::new(Begin::Submit(2));
        clock.submit();
        assert!(clock.began().is_none());
        clock.submit();
        assert!(clock.began().is_some());
        let clock = Clock::new(Begin::Frame(0));
        assert!(clock.began().is_some());
        // Nobody knows when the first one began.
        assert_eq!((clock.frame(), clock.take_times().len()), (0, 0));
        assert_eq!((clock.frame(), clock.take_times().len()), (1, 1));
    }
}
