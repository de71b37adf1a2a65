//! The times at which frames were presented, and at which the measured part began.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::options::MeasureFrom;
use crate::replay::lock;

/// The time of a replay.
pub(crate) struct FrameClock {
    measure_from: MeasureFrom,
    frames: AtomicU64,
    submits: AtomicU64,
    state: Mutex<FrameClockState>,
}

struct FrameClockState {
    /// When the part began; none while it has not.
    began: Option<Instant>,
    /// When the last frame ended, if there was one.
    last: Option<Instant>,
    times: Vec<Duration>,
}

impl FrameClock {
    pub(crate) fn new(begin: MeasureFrom) -> FrameClock {
        let began = begin.is_immediate().then(Instant::now);
        let state = Mutex::new(FrameClockState { began, last: None, times: Vec::new() });
        FrameClock { measure_from: begin, frames: AtomicU64::new(0), submits: AtomicU64::new(0), state }
    }

    /// A frame ends; gives its number.
    pub(crate) fn end_frame(&self) -> u64 {
        let number = self.frames.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let mut state = lock(&self.state);
        match (state.began, state.last) {
            (Some(_), Some(last)) => state.times.push(now - last),
            // The calls before the first frame of a trace belong to its beginning.
            (Some(_), None) => {}
            (None, _) if matches!(self.measure_from, MeasureFrom::Frame(first) if number + 1 >= first) => {
                state.began = Some(now)
            }
            (None, _) => {}
        }
        state.last = Some(now);
        number
    }

    /// Something is submitted.
    pub(crate) fn count_submit(&self) {
        let number = self.submits.fetch_add(1, Ordering::Relaxed) + 1;
        let MeasureFrom::Submit(first) = self.measure_from else { return };
        let mut state = lock(&self.state);
        if number >= first && state.began.is_none() {
            state.began = Some(Instant::now());
        }
    }

    pub(crate) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    pub(crate) fn measured_since(&self) -> Option<Instant> {
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
        let clock = FrameClock::new(MeasureFrom::Frame(2));
        assert!(clock.measured_since().is_none());
        assert_eq!((clock.end_frame(), clock.measured_since().is_none()), (0, true));
        assert_eq!((clock.end_frame(), clock.measured_since().is_some()), (1, true));
        assert_eq!((clock.end_frame(), clock.end_frame(), clock.frames()), (2, 3, 4));
        assert_eq!(clock.take_times().len(), 2);
    }

    #[test]
    fn a_part_may_begin_with_a_submission_or_at_once() {
        let clock = FrameClock::new(MeasureFrom::Submit(2));
        clock.count_submit();
        assert!(clock.measured_since().is_none());
        clock.count_submit();
        assert!(clock.measured_since().is_some());
        let clock = FrameClock::new(MeasureFrom::Frame(0));
        assert!(clock.measured_since().is_some());
        // The beginning of the first frame is unknown.
        assert_eq!((clock.end_frame(), clock.take_times().len()), (0, 0));
        assert_eq!((clock.end_frame(), clock.take_times().len()), (1, 1));
    }
}
