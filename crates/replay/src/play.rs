//! A thread of the trace, played by a thread of ours.

use std::sync::atomic::Ordering;

use lavascope_abi::Command;
use lavascope_event::record::{Head, Kind, beside};
use lavascope_event::{HostBytes, Touch, Written, check, own};
use lavascope_trace::{Item, StreamReader};

use crate::error::ReplayError;
use crate::hold::Hold;
use crate::memory::Results;
use crate::perform::{Done, Performer};
use crate::replay::{Replay, lock};
use crate::treat::is_wait;

/// Plays the calls of one stream in their order.
pub(crate) struct Player<'a> {
    performer: Performer<'a>,
    place: usize,
    stream: u32,
    /// Calls that have begun and not returned, outermost first: more than one where a callback calls.
    open: Vec<Vec<u64>>,
    hold: Option<Hold<'a>>,
    calls: u64,
    results: Results,
    /// Room for words that are not needed any more.
    spare: Vec<Vec<u64>>,
}

impl<'a> Player<'a> {
    pub(crate) fn new(replay: &'a Replay, stream: u32, place: usize) -> Player<'a> {
        Player {
            performer: Performer::new(replay, stream),
            place,
            stream,
            open: Vec::new(),
            hold: Hold::new(replay, stream, place),
            calls: 0,
            results: Results::default(),
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
        let command = |it: &Vec<u64>| Command::from_number(Head::from_words(it[0], it[1]).command);
        self.open.last().and_then(command).is_some_and(|it| !is_wait(it))
    }

    /// The end of the stream.
    pub(crate) fn end(&self) {
        lock(&self.performer.replay.results).add(self.results);
        self.performer.replay.calls.fetch_add(self.calls, Ordering::Relaxed);
        for it in &self.open {
            let head = Head::from_words(it[0], it[1]);
            let name = Command::from_number(head.command).map_or("a call", |it| it.desc().name);
            let text =
                format!("call {} of thread {}, {name}, never returned, and was not made", head.call, self.stream);
            self.performer.replay.remark(text);
        }
        self.performer.replay.positions.end(self.place);
    }

    fn play_all(&mut self, reader: &mut StreamReader<'_, '_>) -> Result<(), ReplayError> {
        while let Some(item) = reader.take_next()? {
            if self.performer.replay.positions.is_stopped() {
                return Err(ReplayError::Stopped);
            }
            self.step(&item)?;
        }
        Ok(())
    }

    pub(crate) fn step(&mut self, item: &Item<'_>) -> Result<(), ReplayError> {
        let words = item.record;
        let head = Head::from_words(words[0], words[1]);
        for it in &words[words.len() - head.touches as usize..] {
            self.performer.replay.positions.wait(self.place, head.call, Touch::from_word(*it))?;
        }
        if let Some(hold) = &mut self.hold {
            hold.before(&head, item.time)?;
        }
        match head.kind {
            beside::MEMORY => self.write(words)?,
            beside::HOST => self.keep(words)?,
            kind if kind > Kind::Leave as u8 => {}
            kind => self.half(words, kind == Kind::Leave as u8)?,
        }
        if let Some(call) = head.completed() {
            self.performer.replay.positions.publish(self.place, call);
        }
        Ok(())
    }

    /// Half of a call: it is performed when all of it is known.
    fn half(&mut self, words: &[u64], is_leave: bool) -> Result<(), ReplayError> {
        let wrong = |it: String| ReplayError::Record { stream: self.stream, what: it };
        let record = check(words).map_err(|it| wrong(it.to_string()))?;
        if !is_leave {
            if record.command().desc().outputs.is_some() {
                let mut kept = self.spare.pop().unwrap_or_default();
                kept.clear();
                kept.extend_from_slice(words);
                self.open.push(kept);
                return Ok(());
            }
            self.calls += 1;
            return self.performer.perform(&Done { enter: record, leave: None });
        }
        let call = record.call_number();
        let place = self.open.iter().rposition(|it| Head::from_words(it[0], it[1]).call == call);
        let Some(place) = place else {
            return Err(wrong(format!("call {call} returns without having begun")));
        };
        let enter = self.open.remove(place);
        // Checked when it began.
        let result = match own(&enter) {
            Some(it) if it.command() == record.command() => {
                self.calls += 1;
                self.performer.perform(&Done { enter: it, leave: Some(record) })
            }
            _ => Err(wrong(format!("call {call} returns as another one"))),
        };
        self.spare.push(enter);
        result
    }

    /// Bytes of the host that the next call reads.
    fn keep(&mut self, words: &[u64]) -> Result<(), ReplayError> {
        let Some(it) = HostBytes::of(words) else {
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
        let Some(written) = Written::of(words) else {
            return Err(wrong("what the host wrote into memory cannot be read".to_owned()));
        };
        let id = written.memory();
        let Some(memory) = self.performer.replay.memories.find(id) else {
            let error = wrong(format!("the host writes into {id}, which does not exist at this point"));
            return self.performer.replay.leave_out(error);
        };
        let about = (&self.performer.replay.addresses, &self.performer.replay.bindings);
        for (offset, bytes) in written.runs() {
            let results = memory.write(offset, bytes, about).map_err(|it| wrong(format!("{id}: {it}")))?;
            self.results.add(results);
        }
        memory.flush();
        Ok(())
    }
}
