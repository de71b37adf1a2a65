//! Records on their way into blocks.

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_abi::{Command, bytes_of_slice};
use lavascope_record::record::{HEADER_SIZE, RecordHeader};
use lavascope_record::{RecordPhase as Half, HostWrite};

use crate::block::Kind;
use crate::columns::{Body, Gather, HEAD_WORDS, WORDS_MAX};
use crate::content::{Contents, PIECE_MAX};
use crate::index::{Moment, MomentKind};

/// A larger body is stored apart, where equal ones are stored once.
const BODY_MAX: usize = 512;

/// A block that is not compressed yet: on the way to [`crate::BlockWriter`], by way of any thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawBlock {
    pub kind: Kind,
    pub stream: u32,
    pub(crate) position: u64,
    pub(crate) words: u32,
    pub(crate) call: u64,
    pub(crate) time: u64,
    pub(crate) count: u32,
    pub(crate) contents: Vec<u8>,
}

impl RawBlock {
    pub(crate) fn new(kind: Kind, contents: Vec<u8>) -> RawBlock {
        RawBlock { kind, stream: 0, position: 0, words: 0, call: 0, time: 0, count: 0, contents }
    }

    /// Facts about a capture, as JSON.
    pub fn facts(facts: &serde_json::Value) -> RawBlock {
        RawBlock::new(Kind::Facts, facts.to_string().into_bytes())
    }
}

/// A record, and where it stands in its stream.
#[derive(Clone)]
pub struct Recorded<'a> {
    pub stream: u32,
    /// Words of the stream before it and behind it. A word with its time may belong to it.
    pub span: Range<u64>,
    /// Since the capture began.
    pub time: u64,
    pub record: &'a [u64],
}

/// Gathers the records of all streams.
#[derive(Default)]
pub struct Recorder {
    streams: BTreeMap<u32, Stream>,
    contents: Contents,
    moments: Vec<Moment>,
}

#[derive(Default)]
struct Stream {
    gather: Gather,
    /// Words before the block that is being gathered, and in it.
    position: u64,
    words: u32,
    /// Number and time of its first record.
    first: Option<(u64, u64)>,
}

impl Recorder {
    /// The next record of a stream, whole. Blocks that are full go to `give`, those first that later ones need.
    pub fn record(&mut self, it: Recorded<'_>, give: &mut impl FnMut(RawBlock)) {
        let Recorded { stream, span, time, record } = it;
        let [first, second, ..] = *record else { return };
        let head = RecordHeader::from_words(first, second);
        let body = &record[HEAD_WORDS..head.body_words as usize];
        let touches = &record[head.body_words as usize..];
        self.note_moment(stream, time, head);
        let is_large = body.len() * 8 > BODY_MAX || HEAD_WORDS + body.len() + touches.len() >= WORDS_MAX;
        let pieces = is_large.then(|| {
            // What the host wrote is found again wherever it is written.
            let own = HostWrite::words_before_bytes(record).map_or(0, |it| it - HEAD_WORDS);
            self.store(body, own, give)
        });
        let body = pieces.as_deref().map_or(Body::Here(body), Body::Elsewhere);
        let (Body::Here(row) | Body::Elsewhere(row)) = body;
        let own = self.streams.entry(stream).or_default();
        if !own.gather.has_room(HEAD_WORDS + row.len() + touches.len()) {
            seal(stream, own, &mut self.contents, give);
        }
        if own.first.is_none() {
            (own.first, own.position) = (Some((head.call, time)), span.start);
        }
        own.gather.push(time, head, body, touches);
        own.words = (span.end - own.position) as u32;
    }

    /// Gives everything that was gathered.
    pub fn seal(&mut self, give: &mut impl FnMut(RawBlock)) {
        for (number, stream) in &mut self.streams {
            seal(*number, stream, &mut self.contents, give);
        }
        give_contents(&mut self.contents, give);
    }

    /// Words that were gathered and not given yet.
    pub fn words_held(&self) -> usize {
        self.streams.values().map(|it| it.words as usize).sum()
    }

    /// The frames and submissions so far, for the index.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// Stores a body in pieces; two words for each. So many words are a piece of their own.
    fn store(&mut self, body: &[u64], own: usize, give: &mut impl FnMut(RawBlock)) -> Vec<u64> {
        let mut hashes = Vec::new();
        let (first, rest) = body.split_at(own);
        for piece in first.chunks(PIECE_MAX / 8).chain(rest.chunks(PIECE_MAX / 8)) {
            if self.contents.is_full() {
                give_contents(&mut self.contents, give);
            }
            let hash = self.contents.add(bytes_of_slice(piece));
            hashes.extend([hash as u64, (hash >> 64) as u64]);
        }
        hashes
    }

    fn note_moment(&mut self, stream: u32, time: u64, head: RecordHeader) {
        if head.kind == Half::Enter as u8
            && let Some(kind) = Command::from_number(head.command).and_then(MomentKind::of)
        {
            self.moments.push(Moment { kind, stream, call: head.call, time });
        }
    }
}

fn seal(number: u32, stream: &mut Stream, contents: &mut Contents, give: &mut impl FnMut(RawBlock)) {
    if stream.gather.is_empty() {
        return;
    }
    // What its records lead to comes before them.
    give_contents(contents, give);
    let next = Gather::after(stream.gather.last());
    let gather = std::mem::replace(&mut stream.gather, next);
    let (call, time) = stream.first.take().unwrap_or_default();
    give(RawBlock {
        kind: Kind::Calls,
        stream: number,
        position: stream.position,
        words: stream.words,
        call,
        time,
        count: gather.len() as u32,
        contents: gather.encode(),
    });
    stream.words = 0;
}

fn give_contents(contents: &mut Contents, give: &mut impl FnMut(RawBlock)) {
    if let Some((bytes, count)) = contents.take() {
        give(RawBlock { count, ..RawBlock::new(Kind::Contents, bytes) });
    }
}

const _: () = assert!(HEADER_SIZE == HEAD_WORDS * 8);
