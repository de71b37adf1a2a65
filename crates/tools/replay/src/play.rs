//! A thread of the trace, played by a thread of ours.

use std::sync::atomic::Ordering;

use lavascope_abi::Command;
use lavascope_record::record::{RecordHeader, RecordPhase, beside};
use lavascope_record::{HostBytes, OrderEdge, HostWrite, check, from_trusted};
use lavascope_trace::{StreamReader, Taken};

use crate::end;
use crate::error::ReplayError;
use crate::hold::Hold;
use crate::mark::Mark;
use crate::memory::Results;
use crate::perform::{Done, Performer};
use crate::replay::{Replay, lock};
use crate::straight::{Quick, only_code};
use crate::treat::{Row, is_wait};

/// After so many recorded commands those that sleep are looked for with care.
const SETTLED: u64 = 64;

/// Plays the calls of one stream in their order.
pub(crate) struct Player<'a> {
    performer: Performer<'a>,
    place: usize,
    /// How far it is.
    mark: &'a Mark,
    stream: u32,
    /// Calls that have begun and not returned, outermost first: more than one where a callback calls.
    open: Vec<Vec<u64>>,
    hold: Option<Hold<'a>>,
    calls: u64,
    results: Results,
    /// By place: how far other threads are known to be.
    seen: Vec<u64>,
    /// Room for words that are not needed any more.
    spare: Vec<Vec<u64>>,
}

impl<'a> Player<'a> {
    pub(crate) fn new(replay: &'a Replay, stream: u32, place: usize) -> Player<'a> {
        Player {
            performer: Performer::new(replay, stream),
            place,
            mark: replay.positions.mark(place),
            stream,
            open: Vec::new(),
            hold: Hold::new(replay, stream, place),
            calls: 0,
            results: Results::default(),
            seen: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Plays everything. Others are told when it is over, however it ends.
    pub(crate) fn play(mut self, mut reader: StreamReader<'_, '_>) -> Result<(), ReplayError> {
        let result = self.play_all(&mut reader);
        if result.is_err() {
            self.performer.replay.positions.stop();
        }
        self.end();
        result
    }

    /// Whether a call has begun that does not wait for anybody: it returns before anybody else does something.
    pub(crate) fn is_inside(&self) -> bool {
        let command = |it: &Vec<u64>| Command::from_number(RecordHeader::from_words(it[0], it[1]).command);
        self.open.last().and_then(command).is_some_and(|it| !is_wait(it))
    }

    /// The end of the stream.
    pub(crate) fn end(&self) {
        lock(&self.performer.replay.results).add(self.results);
        self.performer.replay.calls.fetch_add(self.calls, Ordering::Relaxed);
        for it in &self.open {
            let head = RecordHeader::from_words(it[0], it[1]);
            let name = Command::from_number(head.command).map_or("a call", |it| it.desc().name);
            let text =
                format!("call {} of thread {}, {name}, never returned, and was not made", head.call, self.stream);
            self.performer.replay.remark(text);
        }
        self.performer.replay.positions.end(self.place);
    }

    fn play_all(&mut self, reader: &mut StreamReader<'_, '_>) -> Result<(), ReplayError> {
        while let Some(it) = reader.take_next()? {
            if self.quick(it.record)? {
                continue;
            }
            if self.performer.replay.positions.is_stopped() {
                return Err(ReplayError::Stopped);
            }
            self.step_words(it.record, it.time)?;
        }
        Ok(())
    }

    /// Performs a record, which is used up by that.
    #[inline]
    pub(crate) fn step(&mut self, it: Taken<'_>) -> Result<(), ReplayError> {
        if self.quick(it.record)? { Ok(()) } else { self.step_words(it.record, it.time) }
    }

    /// Performs most of what is recorded: commands as before, that come after nobody else's. False where nothing has
    /// happened, and now and then in any case: then there is more to look at.
    #[inline]
    fn quick(&mut self, words: &mut [u64]) -> Result<bool, ReplayError> {
        let head = (words[0], words[1]);
        let RecordHeader { kind, call, order_edge_count: touches, .. } = RecordHeader::from_words(head.0, head.1);
        if kind != RecordPhase::Enter as u8 || touches != 0 || self.calls.is_multiple_of(SETTLED) {
            return Ok(false);
        }
        match self.performer.quick(head, words) {
            Quick::NotDone => return Ok(false),
            Quick::Done => {}
            Quick::Missing(command) => self.performer.replay.leave_out(self.performer.missing(head, command))?,
        }
        self.calls += 1;
        self.mark.publish(call);
        Ok(true)
    }

    /// As words, which are handed over in registers.
    #[inline(never)]
    fn step_words(&mut self, words: &mut [u64], time: u64) -> Result<(), ReplayError> {
        // As words, here and below: a head in parts would go by way of memory with every record.
        let head = (words[0], words[1]);
        let RecordHeader { kind, call, order_edge_count: touches, .. } = RecordHeader::from_words(head.0, head.1);
        for it in &words[words.len() - touches as usize..] {
            self.wait(call, OrderEdge::from_word(*it))?;
        }
        if let Some(hold) = &mut self.hold {
            hold.before(&RecordHeader::from_words(head.0, head.1), time)?;
        }
        let is_complete = match kind {
            beside::HOST_WRITE => self.write(words).map(|()| true)?,
            beside::HOST_BYTES => self.keep(words).map(|()| true)?,
            kind if kind == RecordPhase::Enter as u8 => self.enter(head, words)?,
            kind if kind == RecordPhase::Leave as u8 => self.leave(head, words).map(|()| true)?,
            _ => false,
        };
        if is_complete {
            self.mark.publish(call);
        }
        Ok(())
    }

    /// Returns when a call of another thread is complete. What is not in the file is not waited for.
    #[inline]
    fn wait(&mut self, call: u64, touch: OrderEdge) -> Result<(), ReplayError> {
        let positions = &self.performer.replay.positions;
        let Some(other) = positions.place(touch.thread) else { return Ok(()) };
        if self.seen.len() <= other {
            self.seen.resize(other + 1, 0);
        }
        if self.seen[other] < touch.call {
            self.seen[other] = positions.wait(self.place, call, (other, touch.call))?;
        }
        Ok(())
    }

    fn wrong(&self, what: String) -> ReplayError {
        ReplayError::Record { stream: self.stream, what }
    }

    /// A call begins. Where it has no second record it is performed, and that is said.
    #[inline]
    fn enter(&mut self, head: (u64, u64), words: &mut [u64]) -> Result<bool, ReplayError> {
        let replay = self.performer.replay;
        if let Some(row) = replay.treatments.get(RecordHeader::from_words(head.0, head.1).command) {
            if row.has_leave {
                return self.begin(row, words).map(|()| false);
            }
            if let Some(straight) = row.straight.as_ref().filter(|it| it.fits(replay)) {
                // A command that is recorded does not take long, but those that sleep should not be missed for long.
                if self.calls.is_multiple_of(SETTLED) || !straight.is_recorded {
                    replay.positions.settle(self.place);
                }
                match self.performer.straight(straight, head, words) {
                    Ok(None) => {}
                    result => {
                        self.calls += 1;
                        if straight.is_recorded && self.hold.is_none() {
                            self.performer.keep_shortcut(straight);
                        }
                        return result.map(drop).or_else(|it| replay.leave_out(it)).map(|()| true);
                    }
                }
            }
        }
        replay.positions.settle(self.place);
        let record = check(words).map_err(|it| self.wrong(it.to_string()))?;
        self.calls += 1;
        self.performer.perform(&Done { enter: record, leave: None })?;
        Ok(true)
    }

    /// A call is performed when all of it is known.
    fn begin(&mut self, row: &Row, words: &[u64]) -> Result<(), ReplayError> {
        // What is performed where it lies is looked at then.
        if row.straight.is_none() {
            check(words).map_err(|it| self.wrong(it.to_string()))?;
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(words);
        self.open.push(kept);
        Ok(())
    }

    fn leave(&mut self, head: (u64, u64), words: &[u64]) -> Result<(), ReplayError> {
        let head = RecordHeader::from_words(head.0, head.1);
        let call = head.call;
        let place = self.open.iter().rposition(|it| RecordHeader::from_words(it[0], it[1]).call == call);
        let Some(place) = place else {
            return Err(self.wrong(format!("call {call} returns without having begun")));
        };
        let mut enter = self.open.remove(place);
        if RecordHeader::from_words(enter[0], enter[1]).command != head.command {
            return Err(self.wrong(format!("call {call} returns as another one")));
        }
        self.calls += 1;
        self.performer.replay.positions.settle(self.place);
        let result = self.returned(head, &mut enter, words);
        self.spare.push(enter);
        result
    }

    /// Performs a call both of whose records are known.
    fn returned(&mut self, head: RecordHeader, enter: &mut [u64], leave: &[u64]) -> Result<(), ReplayError> {
        let straight = self.performer.replay.treatments.get(head.command).and_then(|it| it.straight.as_ref());
        if let Some((straight, code)) =
            straight.zip(only_code(head, leave)).filter(|it| it.0.fits(self.performer.replay))
        {
            let begun = (enter[0], enter[1]);
            if code < 0 {
                return check(enter).map(drop).map_err(|it| self.wrong(it.to_string()));
            }
            let result = match self.performer.straight(straight, begun, enter) {
                Ok(result) => result.map(|it| self.performer.expect_success(begun, it)),
                Err(it) => Some(Err(it)),
            };
            if let Some(result) = result {
                return result.or_else(|it| self.performer.replay.leave_out(it));
            }
        }
        let leave = check(leave).map_err(|it| self.wrong(it.to_string()))?;
        // Checked when it began, or not yet.
        let enter = match straight {
            Some(_) => check(enter).map_err(|it| self.wrong(it.to_string()))?,
            None => from_trusted(enter).ok_or_else(|| self.wrong(format!("call {} begins as no call", head.call)))?,
        };
        self.performer.perform(&Done { enter, leave: Some(leave) })
    }

    /// Bytes of the host that the next call reads.
    fn keep(&mut self, words: &[u64]) -> Result<(), ReplayError> {
        let Some(it) = HostBytes::parse(words) else {
            let what = "what a call reads from the host cannot be read".to_owned();
            return Err(ReplayError::Record { stream: self.stream, what });
        };
        match self.performer.host.keep(&it) {
            true => Ok(()),
            false => {
                let what = "a call reads more from the host than memory can hold".to_owned();
                Err(ReplayError::Record { stream: self.stream, what })
            }
        }
    }

    /// What the host wrote before the call behind it.
    fn write(&mut self, words: &[u64]) -> Result<(), ReplayError> {
        if self.performer.replay.is_plan() {
            return Ok(());
        }
        let wrong = |what: String| ReplayError::Record { stream: self.stream, what };
        let Some(written) = HostWrite::parse(words) else {
            return Err(wrong("what the host wrote into memory cannot be read".to_owned()));
        };
        let id = written.memory();
        let Some(memory) = self.performer.replay.memories.find(id) else {
            let error = wrong(format!("the host writes into {id}, which does not exist at this point"));
            return self.performer.replay.leave_out(error);
        };
        let about = (&self.performer.replay.addresses, &self.performer.replay.bindings);
        let mut is_settled = false;
        for (offset, bytes) in written.runs() {
            // What the device is about to write must not be taken for what the host wrote.
            if !is_settled && memory.may_be_a_result(offset, bytes) {
                is_settled = true;
                end::settle(self.performer.replay, memory.device());
            }
            let results = memory.write(offset, bytes, about).map_err(|it| wrong(format!("{id}: {it}")))?;
            self.results.add(results);
        }
        memory.flush();
        Ok(())
    }
}
