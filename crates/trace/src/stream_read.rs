//! The records of one stream, in their order: for a thread that replays it.

use lavascope_event::record::{Head, Touch};

use crate::error::TraceError;
use crate::index::Entry;
use crate::merge::Item;
use crate::read::{Calls, Trace};
use crate::tail::Tail;

/// Goes through one stream of a trace.
pub struct StreamReader<'t, 'a> {
    trace: &'t Trace<'a>,
    stream: u32,
    blocks: std::vec::IntoIter<Entry>,
    calls: Option<Calls>,
    /// Records given of the block.
    given: usize,
    /// What comes behind the blocks.
    tail: Option<Calls>,
    /// The last record, where its body was elsewhere.
    whole: Vec<u64>,
}

impl<'t, 'a> StreamReader<'t, 'a> {
    pub fn new(trace: &'t Trace<'a>, tail: Option<&Tail>, stream: u32) -> StreamReader<'t, 'a> {
        let tail = tail.filter(|it| it.header().id == trace.header().id);
        // What is damaged of a tail is told by who reads all streams.
        let tail = tail.map(|it| Calls { decoded: it.records(stream, trace.position(stream), &mut Vec::new()) });
        let blocks = trace.blocks_of(stream).into_iter();
        StreamReader { trace, stream, blocks, calls: None, given: 0, tail, whole: Vec::new() }
    }

    /// The time of the next record and what it comes after; none at the end.
    pub fn look(&mut self) -> Result<Option<(u64, impl Iterator<Item = Touch> + '_)>, TraceError> {
        if !self.load()? {
            return Ok(None);
        }
        let Some(calls) = &self.calls else { return Ok(None) };
        let place = calls.decoded.places[self.given];
        let words = &calls.decoded.words[place.first as usize..place.end as usize];
        let touches = Head::from_words(words[0], words[1]).touches as usize;
        Ok(Some((place.time, words[words.len() - touches..].iter().map(|it| Touch::from_word(*it)))))
    }

    /// Makes sure that the next record is there. False at the end.
    fn load(&mut self) -> Result<bool, TraceError> {
        while self.calls.as_ref().is_none_or(|it| self.given >= it.decoded.places.len()) {
            self.given = 0;
            self.calls = match self.blocks.next() {
                Some(entry) => Some(self.trace.read_calls(&entry)?),
                None => self.tail.take(),
            };
            if self.calls.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The next record; none at the end.
    pub fn take_next(&mut self) -> Result<Option<Item<'_>>, TraceError> {
        if !self.load()? {
            return Ok(None);
        }
        let Some(calls) = &self.calls else { return Ok(None) };
        let place = calls.decoded.places[self.given];
        let words = &calls.decoded.words[place.first as usize..place.end as usize];
        self.given += 1;
        let is_changed = self.trace.change(self.stream, words, place.is_elsewhere, &mut self.whole)?;
        let record = if is_changed { &self.whole } else { words };
        Ok(Some(Item { stream: self.stream, time: place.time, record }))
    }
}
