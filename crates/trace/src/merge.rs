//! All streams of a trace as one: every record after the calls that its touches name.

use lavascope_event::record::{Head, TOUCHES_SHIFT, Touch};
use rustc_hash::FxHashMap;

use crate::error::{Damage, TraceError};
use crate::index::Entry;
use crate::read::{Calls, Trace};
use crate::tail::Tail;

/// Words of unpacked blocks that are kept at once: 32 MiB. A file may have very many streams.
const HELD_MAX: usize = 4 << 20;

/// A record, and where it comes from.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    pub stream: u32,
    pub time: u64,
    pub record: &'a [u64],
}

/// Gives the records of a trace in an order in which the calls could have been made. The same file gives the same
/// order each time.
pub struct Merged<'t, 'a> {
    trace: &'t Trace<'a>,
    streams: Vec<Cursor>,
    /// By number of the stream: its place above.
    places: FxHashMap<u32, usize>,
    /// Whose turn it is: a stream goes on for as long as it can.
    turn: usize,
    /// Words held of all streams.
    held: usize,
    /// The last record, where its body was elsewhere.
    whole: Vec<u64>,
    damages: Vec<Damage>,
    /// Records that the heads of blocks promise, and that were given.
    total: u64,
    given: u64,
    /// Records that were given although they should come later: the order has a circle, or something is missing.
    forced: u64,
}

struct Cursor {
    stream: u32,
    blocks: std::vec::IntoIter<Entry>,
    /// The block that is being read; none while it is not held.
    entry: Option<Entry>,
    calls: Option<Calls>,
    /// Records given of it.
    given: usize,
    /// What comes behind the blocks.
    tail: Option<Calls>,
    /// The last call that is complete in what was given.
    done: u64,
}

impl<'t, 'a> Merged<'t, 'a> {
    pub fn new(trace: &'t Trace<'a>, tail: Option<&Tail>) -> Merged<'t, 'a> {
        let mut numbers = trace.streams();
        let tail = tail.filter(|it| it.header().id == trace.header().id);
        numbers.extend(tail.iter().flat_map(|it| it.streams()));
        numbers.sort_unstable();
        numbers.dedup();
        let mut damages = Vec::new();
        let cursor = |stream: &u32| Cursor {
            stream: *stream,
            blocks: trace.blocks_of(*stream).into_iter(),
            entry: None,
            calls: None,
            given: 0,
            tail: tail.map(|it| Calls { decoded: it.records(*stream, trace.position(*stream), &mut damages) }),
            done: 0,
        };
        let streams: Vec<Cursor> = numbers.iter().map(cursor).collect();
        let total = streams.iter().map(Cursor::promised).fold(0, u64::saturating_add);
        let places = numbers.iter().enumerate().map(|it| (*it.1, it.0)).collect();
        Merged { trace, streams, places, turn: 0, held: 0, whole: Vec::new(), damages, total, given: 0, forced: 0 }
    }

    /// Records that stand before one that they should come after.
    pub fn forced(&self) -> u64 {
        self.forced
    }

    /// How many records were given, and how many there are as far as one knows.
    pub fn progress(&self) -> (u64, u64) {
        (self.given, self.total.max(self.given))
    }

    /// What was wrong with what was read so far.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// The next record.
    pub fn take_next(&mut self) -> Result<Option<Item<'_>>, TraceError> {
        let Some(index) = self.find()? else { return Ok(None) };
        self.turn = index;
        let cursor = &mut self.streams[index];
        let Some(calls) = cursor.calls.as_ref() else { return Ok(None) };
        let place = calls.decoded.places[cursor.given];
        let words = &calls.decoded.words[place.first as usize..place.end as usize];
        let head = Head::from_words(words[0], words[1]);
        cursor.given += 1;
        self.given += 1;
        // A call inside another is complete before it.
        cursor.done = head.completed().map_or(cursor.done, |it| it.max(cursor.done));
        let (stream, time) = (cursor.stream, place.time);
        if place.is_elsewhere || self.trace.renumbers() {
            self.trace.change(stream, words, place.is_elsewhere, &mut self.whole)?;
            return Ok(Some(Item { stream, time, record: &self.whole }));
        }
        Ok(Some(Item { stream, time, record: words }))
    }

    /// The stream that can go on; none at the end.
    fn find(&mut self) -> Result<Option<usize>, TraceError> {
        let count = self.streams.len();
        // Most records come right after the one before.
        if self.streams.get(self.turn).is_some_and(Cursor::is_free) {
            return Ok(Some(self.turn));
        }
        let mut first: Option<(u64, usize)> = None;
        for step in 0..count {
            let index = (self.turn + step) % count;
            if !self.load(index)? {
                continue;
            }
            let (time, is_ready) = self.look(index);
            if is_ready {
                return Ok(Some(index));
            }
            if first.is_none_or(|it| time < it.0) {
                first = Some((time, index));
            }
        }
        // Nobody can go on: what they wait for was lost, or the file is wrong. The oldest goes on.
        self.forced += u64::from(first.is_some());
        Ok(first.map(|it| it.1))
    }

    /// The time of the next record of a stream, and whether it may come now.
    fn look(&self, index: usize) -> (u64, bool) {
        let cursor = &self.streams[index];
        let Some(calls) = &cursor.calls else { return (u64::MAX, false) };
        let place = calls.decoded.places[cursor.given];
        let words = &calls.decoded.words[place.first as usize..place.end as usize];
        let touches = Head::from_words(words[0], words[1]).touches as usize;
        let is_done = |it: &u64| {
            let touch = Touch::from_word(*it);
            let other = self.places.get(&touch.thread).map(|it| &self.streams[*it]);
            // What is not in the file is not waited for.
            other.is_none_or(|it| it.done >= touch.call || it.is_at_end())
        };
        (place.time, words[words.len() - touches..].iter().all(is_done))
    }

    /// Makes sure that the next record of a stream is there. False at its end.
    fn load(&mut self, index: usize) -> Result<bool, TraceError> {
        loop {
            let cursor = &mut self.streams[index];
            if let Some(calls) = &cursor.calls {
                if cursor.given < calls.decoded.places.len() {
                    return Ok(true);
                }
                self.held -= calls.decoded.words.len();
                (cursor.calls, cursor.entry, cursor.given) = (None, None, 0);
            }
            cursor.entry = cursor.entry.take().or_else(|| cursor.blocks.next());
            let calls = match (cursor.entry, cursor.tail.take()) {
                (Some(entry), tail) => {
                    cursor.tail = tail;
                    self.trace.read_calls(&entry)
                }
                (None, Some(tail)) => Ok(tail),
                (None, None) => return Ok(false),
            };
            match calls {
                Ok(calls) => {
                    self.held += calls.decoded.words.len();
                    self.streams[index].calls = Some(calls);
                    self.make_room(index);
                }
                // The others go on without it.
                Err(it) => {
                    let (at, size) = (self.streams[index].entry.map_or(0, |it| it.at), 0);
                    self.damages.push(Damage { at, size, what: it.to_string() });
                    self.streams[index].entry = None;
                }
            }
        }
    }

    /// Puts blocks of other streams away where there are too many; they are read again when it is their turn.
    fn make_room(&mut self, keep: usize) {
        for index in 0..self.streams.len() {
            if self.held <= HELD_MAX {
                return;
            }
            let cursor = &mut self.streams[index];
            if index != keep && cursor.entry.is_some() {
                self.held -= cursor.calls.take().map_or(0, |it| it.decoded.words.len());
            }
        }
    }
}

impl Cursor {
    /// Whether the next record is there, and comes after none of another stream.
    fn is_free(&self) -> bool {
        let Some(Calls { decoded }) = &self.calls else { return false };
        let place = decoded.places.get(self.given);
        place.is_some_and(|it| decoded.words[it.first as usize + 1] >> TOUCHES_SHIFT == 0)
    }

    /// Records that it will give if nothing is damaged.
    fn promised(&self) -> u64 {
        let blocks = self.blocks.as_slice().iter().map(|it| u64::from(it.count)).sum::<u64>();
        blocks + self.tail.as_ref().map_or(0, |it| it.decoded.places.len() as u64)
    }

    fn is_at_end(&self) -> bool {
        let is_given = |it: &Calls| self.given >= it.decoded.places.len();
        self.blocks.len() == 0
            && self.tail.is_none()
            && match &self.calls {
                Some(calls) => is_given(calls),
                None => self.entry.is_none(),
            }
    }
}
