//! Reasons to delay a thread before a record: random delays, the speed of the original, a call before which the user
//! wants to wait.

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lavascope_abi::Command;
use lavascope_record::encoding::{RecordHeader, RecordPhase};

use crate::error::ReplayError;
use crate::options::{CallMoment, PausedCall};
use crate::replay::{PausedPosition, Replay, lock};
use crate::schedule::chaos::Chaos;

/// How long a thread sleeps before it checks whether the replay was stopped.
const SLICE: Duration = Duration::from_millis(50);

/// The speed of the original: no record comes earlier than it came then.
pub(crate) struct OriginalPace {
    ticks_per_second: u64,
    /// When the first record of the part came, here and in the trace.
    first: Mutex<Option<(Instant, u64)>>,
}

impl OriginalPace {
    pub(crate) fn new(ticks_per_second: u64) -> OriginalPace {
        OriginalPace { ticks_per_second: ticks_per_second.max(1), first: Mutex::default() }
    }

    /// When a record of this time is due.
    fn due(&self, time: u64) -> Instant {
        let (here, there) = *lock(&self.first).get_or_insert_with(|| (Instant::now(), time));
        let nanoseconds = u128::from(time.saturating_sub(there)) * 1_000_000_000 / u128::from(self.ticks_per_second);
        here + Duration::from_nanos(nanoseconds as u64)
    }
}

/// The delays of one thread.
pub(crate) struct ThreadThrottle<'a> {
    replay: &'a Replay,
    stream: u32,
    chaos: Option<Chaos>,
    /// The call before which the thread waits for the user.
    pause: Option<PausedPosition>,
}

impl<'a> ThreadThrottle<'a> {
    /// None if nothing ever does.
    pub(crate) fn new(replay: &'a Replay, stream: u32, index: usize) -> Option<ThreadThrottle<'a>> {
        let chaos = replay.options.chaos.map(|it| Chaos::new(it, index));
        let pause = replay.pause.filter(|it| it.stream == stream);
        let is_held = chaos.is_some() || pause.is_some() || replay.pace.is_some() || replay.options.on_call.is_some();
        is_held.then_some(ThreadThrottle { replay, stream, chaos, pause })
    }

    /// Returns when the record may come.
    #[cold]
    pub(crate) fn wait_before(&mut self, head: &RecordHeader, time: u64) -> Result<(), ReplayError> {
        if let Some(chaos) = &mut self.chaos {
            chaos.delay();
        }
        if let Some(pace) = self.replay.pace.as_ref().filter(|_| self.replay.clock.measured_since().is_some()) {
            self.sleep(pace.due(time))?;
        }
        let is_paused_call =
            |it: &mut PausedPosition| it.position == head.call && head.kind == RecordPhase::Enter as u8;
        if let Some(PausedPosition { number, .. }) = self.pause.take_if(is_paused_call) {
            let command = Command::from_number(head.command).map_or("a call", |it| it.desc().name);
            let is_paused = &self.replay.progress.is_paused;
            is_paused.store(true, Ordering::Relaxed);
            self.replay.options.report_pause(&PausedCall { stream: self.stream, call: number, command });
            is_paused.store(false, Ordering::Relaxed);
        }
        self.replay.options.report_call(self.stream, head.call, CallMoment::Begin);
        Ok(())
    }

    /// Must come before other threads learn that the call is complete.
    pub(crate) fn report_end(&self, call: u64) {
        self.replay.options.report_call(self.stream, call, CallMoment::End);
    }

    fn sleep(&self, until: Instant) -> Result<(), ReplayError> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if self.replay.progress.is_stopped() {
                return Err(ReplayError::Stopped);
            }
            std::thread::sleep(left.min(SLICE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_as_far_apart_as_they_were() {
        let pace = OriginalPace::new(1000);
        let first = pace.due(5000);
        assert_eq!(pace.due(5250), first + Duration::from_millis(250));
        // Records before the first one with a time are due at once.
        assert_eq!(pace.due(4000), first);
    }
}
