//! Plays one stream of the trace on a thread of the replay.

use std::sync::atomic::Ordering;

use lavascope_abi::Command;
use lavascope_record::encoding::{RecordHeader, RecordPhase, beside};
use lavascope_record::{HostBytes, HostWrite, OrderEdge, check, from_trusted};
use lavascope_trace::{RecordMut, StreamReader};

use crate::call::handlers::{CommandEntry, is_wait};
use crate::call::in_place_call::{CachedOutcome, only_code};
use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::memory::device_memory::WriteComparison;
use crate::replay::{Replay, UnreturnedCall, lock};
use crate::schedule::progress_counter::ProgressCounter;
use crate::schedule::throttle::ThreadThrottle;
use crate::teardown;

/// Sleeping threads are woken explicitly once in this many recorded commands.
const FLUSH_INTERVAL: u64 = 64;

/// A call that has begun, and the time of that in the trace.
#[derive(Default)]
struct OpenCall {
    words: Vec<u64>,
    time: u64,
}

impl OpenCall {
    fn head(&self) -> RecordHeader {
        RecordHeader::from_words(self.words[0], self.words[1])
    }
}

/// Why a thread stops to play its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlayEnd {
    Finished,
    /// One thread plays all streams now.
    SerialPhase,
}

/// Plays the calls of one stream in their order.
pub(crate) struct StreamPlayer<'a> {
    performer: Performer<'a>,
    index: usize,
    /// The progress of this thread, which others read.
    counter: &'a ProgressCounter,
    stream: u32,
    /// Calls that have begun and not returned, outermost first. There are several if a callback makes calls.
    open_calls: Vec<OpenCall>,
    throttle: Option<ThreadThrottle<'a>>,
    calls: u64,
    write_comparison: WriteComparison,
    /// By index of a thread: the last call of it that is known to be complete.
    known_progress: Vec<u64>,
    /// Buffers for reuse.
    spare: Vec<Vec<u64>>,
}

impl<'a> StreamPlayer<'a> {
    pub(crate) fn new(replay: &'a Replay, stream: u32, index: usize) -> StreamPlayer<'a> {
        StreamPlayer {
            performer: Performer::new(replay, stream),
            index,
            counter: replay.progress.counter(index),
            stream,
            open_calls: Vec::new(),
            throttle: ThreadThrottle::new(replay, stream, index),
            calls: 0,
            write_comparison: WriteComparison::default(),
            known_progress: Vec::new(),
            spare: Vec::new(),
        }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn stream(&self) -> u32 {
        self.stream
    }

    /// Whether an outer call has begun. An inner one then returns before any other thread continues.
    pub(crate) fn is_in_call(&self) -> bool {
        self.begin_of_call().is_some()
    }

    /// The time at which that outer call began.
    pub(crate) fn begin_of_call(&self) -> Option<u64> {
        let is_other = |it: &&OpenCall| Command::from_number(it.head().command).is_some_and(|it| !is_wait(it));
        self.open_calls.last().filter(is_other).map(|it| it.time)
    }

    /// Marks the end of the stream.
    pub(crate) fn end(&self) {
        lock(&self.performer.replay.write_comparison).add(self.write_comparison);
        self.performer.replay.calls.fetch_add(self.calls, Ordering::Relaxed);
        for open_call in &self.open_calls {
            let head = open_call.head();
            let command = Command::from_number(head.command).map_or("a call", |it| it.desc().name);
            let unreturned = UnreturnedCall { stream: self.stream, position: head.call, command };
            lock(&self.performer.replay.unreturned).push(unreturned);
        }
        self.performer.replay.progress.end(self.index);
    }

    /// Plays the stream to its end, or until a serial phase begins.
    pub(crate) fn play(&mut self, reader: &mut StreamReader<'_, '_>) -> Result<PlayEnd, ReplayError> {
        let progress = &self.performer.replay.progress;
        while let Some(record_mut) = reader.take_next()? {
            if self.try_cached_call(record_mut.record)? {
                continue;
            }
            if progress.is_stopped() {
                return Err(ReplayError::Stopped);
            }
            let is_switched = progress.phases.is_serial() || progress.begins_phase_at_random();
            if is_switched || !self.play_words(record_mut.record, record_mut.time)? {
                reader.put_back();
                return Ok(PlayEnd::SerialPhase);
            }
        }
        Ok(PlayEnd::Finished)
    }

    /// Performs a record whose order edges are complete, and consumes its words.
    #[inline]
    pub(crate) fn play_record(&mut self, record_mut: RecordMut<'_>) -> Result<(), ReplayError> {
        let is_played =
            self.try_cached_call(record_mut.record)? || self.play_words(record_mut.record, record_mut.time)?;
        debug_assert!(is_played, "nothing is waited for");
        Ok(())
    }

    /// Fast path: a recorded command that this thread has called before and that has no order edges. Returns false if
    /// nothing was done, and once in [`FLUSH_INTERVAL`] commands, so that the slow path can wake others.
    #[inline]
    fn try_cached_call(&mut self, words: &mut [u64]) -> Result<bool, ReplayError> {
        let head = (words[0], words[1]);
        let RecordHeader { kind, call, order_edge_count: edge_count, .. } = RecordHeader::from_words(head.0, head.1);
        if kind != RecordPhase::Enter as u8 || edge_count != 0 || self.calls.is_multiple_of(FLUSH_INTERVAL) {
            return Ok(false);
        }
        match self.performer.call_cached(head, words) {
            CachedOutcome::NotCached => return Ok(false),
            CachedOutcome::Done => {}
            CachedOutcome::MissingObject(command) => {
                self.performer.replay.skip_call(self.performer.missing_object_error(head, command))?
            }
        }
        self.calls += 1;
        self.counter.publish(call);
        Ok(true)
    }

    /// Performs a record after the calls that it waits for; keeps it if its outputs come later. Returns false if a serial
    /// phase begins while the thread waits for others: nothing was done then.
    ///
    /// Takes the slice and the time separately, so that both are passed in registers.
    #[inline(never)]
    fn play_words(&mut self, words: &mut [u64], time: u64) -> Result<bool, ReplayError> {
        // Kept as whole words, here and below: writing the header in parts and reading it as a whole is a
        // store-forwarding stall.
        let head = (words[0], words[1]);
        let RecordHeader { kind, call, order_edge_count: edge_count, .. } = RecordHeader::from_words(head.0, head.1);
        for word in &words[words.len() - edge_count as usize..] {
            if !self.wait_for_edge(call, OrderEdge::from_word(*word))? {
                return Ok(false);
            }
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.wait_before(&RecordHeader::from_words(head.0, head.1), time)?;
        }
        let is_complete = match kind {
            beside::HOST_WRITE => self.play_host_write(words).map(|()| true)?,
            beside::HOST_BYTES => self.store_host_bytes(words).map(|()| true)?,
            kind if kind == RecordPhase::Enter as u8 => self.play_parameters(head, words, time)?,
            kind if kind == RecordPhase::Leave as u8 => self.play_outputs(head, words, time).map(|()| true)?,
            _ => false,
        };
        if is_complete {
            if let Some(throttle) = &self.throttle {
                throttle.report_end(call);
            }
            self.counter.publish(call);
        }
        Ok(true)
    }

    /// Waits until a call of another thread is complete. A thread that is not in the file is not waited for. Returns false
    /// if a serial phase begins meanwhile.
    #[inline]
    fn wait_for_edge(&mut self, call: u64, edge: OrderEdge) -> Result<bool, ReplayError> {
        let progress = &self.performer.replay.progress;
        let Some(other) = progress.index_of(edge.thread) else { return Ok(true) };
        if self.known_progress.len() <= other {
            self.known_progress.resize(other + 1, 0);
        }
        if self.known_progress[other] < edge.call {
            let Some(done) = progress.wait(self.index, call, (other, edge.call))? else { return Ok(false) };
            self.known_progress[other] = done;
        }
        Ok(true)
    }

    fn record_error(&self, what: String) -> ReplayError {
        ReplayError::Record { stream: self.stream, what }
    }

    fn call_error(&self, head: RecordHeader, what: &str) -> ReplayError {
        let command = Command::from_number(head.command).map_or("a call", |it| it.desc().name);
        ReplayError::Call { stream: self.stream, call: head.call, command, what: what.to_owned() }
    }

    /// Processes the parameters of a call. A call without outputs is performed at once; returns whether it was.
    #[inline]
    fn play_parameters(&mut self, head: (u64, u64), words: &mut [u64], time: u64) -> Result<bool, ReplayError> {
        let replay = self.performer.replay;
        if let Some(entry) = replay.handlers.get(RecordHeader::from_words(head.0, head.1).command) {
            if entry.has_leave {
                return self.open_call(entry, words, time).map(|()| false);
            }
            if let Some(in_place_call) = entry.in_place.as_ref().filter(|it| it.needs_no_remap(replay)) {
                // A recorded command is quick, but sleeping threads should not wait long for their wake-up.
                if self.calls.is_multiple_of(FLUSH_INTERVAL) || !in_place_call.is_recorded {
                    replay.progress.flush_wakeups(self.index);
                }
                match self.performer.call_in_place(in_place_call, head, words) {
                    Ok(None) => {}
                    result => {
                        self.calls += 1;
                        if in_place_call.is_recorded && self.throttle.is_none() {
                            self.performer.cache_call(in_place_call);
                        }
                        return result.map(drop).or_else(|it| replay.skip_call(it)).map(|()| true);
                    }
                }
            }
        }
        replay.progress.flush_wakeups(self.index);
        let record = check(words).map_err(|it| self.record_error(it.to_string()))?;
        self.calls += 1;
        self.performer.perform(&RecordedCall { enter: record, leave: None })?;
        Ok(true)
    }

    /// Keeps a call until its outputs are known.
    fn open_call(&mut self, entry: &CommandEntry, words: &[u64], time: u64) -> Result<(), ReplayError> {
        // Records of commands with an in-place function are checked when they are performed.
        if entry.in_place.is_none() {
            check(words).map_err(|it| self.record_error(it.to_string()))?;
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(words);
        self.open_calls.push(OpenCall { words: kept, time });
        Ok(())
    }

    fn play_outputs(&mut self, head: (u64, u64), words: &[u64], time: u64) -> Result<(), ReplayError> {
        let head = RecordHeader::from_words(head.0, head.1);
        let call = head.call;
        let index = self.open_calls.iter().rposition(|it| it.head().call == call);
        let Some(index) = index else {
            return Err(self.call_error(head, "the call returns without having begun"));
        };
        let open_call = self.open_calls.remove(index);
        if open_call.head().command != head.command {
            return Err(self.call_error(head, "the end of the call has another command than its beginning"));
        }
        let OpenCall { words: mut enter, time: began } = open_call;
        self.performer.note_times(head.command, began, time);
        self.calls += 1;
        self.performer.replay.progress.flush_wakeups(self.index);
        let result = self.complete_call(head, &mut enter, words);
        self.spare.push(enter);
        result
    }

    /// Performs a call whose parameters and outputs are known.
    fn complete_call(&mut self, head: RecordHeader, enter: &mut [u64], leave: &[u64]) -> Result<(), ReplayError> {
        let in_place_call = self.performer.replay.handlers.get(head.command).and_then(|it| it.in_place.as_ref());
        if let Some((in_place_call, code)) =
            in_place_call.zip(only_code(head, leave)).filter(|it| it.0.needs_no_remap(self.performer.replay))
        {
            let begun = (enter[0], enter[1]);
            if code < 0 {
                return check(enter).map(drop).map_err(|it| self.record_error(it.to_string()));
            }
            let result = match self.performer.call_in_place(in_place_call, begun, enter) {
                Ok(result) => result.map(|it| self.performer.expect_success(begun, it)),
                Err(error) => Some(Err(error)),
            };
            if let Some(result) = result {
                return result.or_else(|it| self.performer.replay.skip_call(it));
            }
        }
        let leave = check(leave).map_err(|it| self.record_error(it.to_string()))?;
        // Checked at the begin of the call, or not yet.
        let enter = match in_place_call {
            Some(_) => check(enter).map_err(|it| self.record_error(it.to_string()))?,
            None => from_trusted(enter).ok_or_else(|| self.call_error(head, "the record of the call is invalid"))?,
        };
        self.performer.perform(&RecordedCall { enter, leave: Some(leave) })
    }

    /// Stores bytes of host memory that the next call reads.
    fn store_host_bytes(&mut self, words: &[u64]) -> Result<(), ReplayError> {
        let Some(host_bytes) = HostBytes::parse(words) else {
            let what = "the record of host memory that a call reads is invalid".to_owned();
            return Err(ReplayError::Record { stream: self.stream, what });
        };
        match self.performer.host_memory.store(&host_bytes) {
            true => Ok(()),
            false => {
                let what = "a call reads more host memory than exists".to_owned();
                Err(ReplayError::Record { stream: self.stream, what })
            }
        }
    }

    /// Performs a host write that came before the next call.
    fn play_host_write(&mut self, words: &[u64]) -> Result<(), ReplayError> {
        if self.performer.replay.is_plan() {
            return Ok(());
        }
        let is_result = HostWrite::has_device_write(RecordHeader::from_words(words[0], words[1]));
        if is_result && !self.performer.replay.options.verify {
            return Ok(());
        }
        let wrong = |what: String| ReplayError::Record { stream: self.stream, what };
        let Some(written) = HostWrite::parse(words) else {
            return Err(wrong("the record of a host write is invalid".to_owned()));
        };
        let id = written.memory();
        let Some(memory) = self.performer.replay.memories.find(id) else {
            let error = wrong(format!("the host writes to {id}, which does not exist at this point"));
            return self.performer.replay.skip_call(error);
        };
        let about = (&self.performer.replay.addresses, &self.performer.replay.bindings);
        let mut is_settled = false;
        for (offset, bytes) in written.runs() {
            // A pending device write must not be mistaken for a host write.
            if !is_settled && memory.may_be_device_write(offset, bytes) {
                is_settled = true;
                teardown::wait_until_idle(self.performer.replay, memory.device());
            }
            let compared = match is_result {
                true => memory.compare_written(offset, bytes),
                false => memory.write(offset, bytes, about),
            };
            self.write_comparison.add(compared.map_err(|it| wrong(format!("{id}: {it}")))?);
        }
        memory.flush();
        Ok(())
    }
}
