//! The records of one stream, in their order: for a thread that replays it.

use std::ops::Range;

use lavascope_record::encoding::{OrderEdge, RecordHeader};

use crate::error::TraceError;
use crate::format::column_decoder::{ColumnDecoder, DecodedRecords, RecordSpan};
use crate::format::index::BlockEntry;
use crate::read::tail::Tail;
use crate::read::trace::Trace;

/// Words of records that are made of columns at once: few enough to be still in the cache when they are used.
const WORDS_AT_ONCE: usize = 1 << 12;

/// The records of a block, of which only a few lie there at once. The next block uses its space again.
#[derive(Default)]
pub struct StreamBlock {
    contents: Vec<u8>,
    columns: ColumnDecoder,
    decoded: DecodedRecords,
}

impl StreamBlock {
    /// Records that lie there already.
    pub(crate) fn of(decoded: DecodedRecords) -> StreamBlock {
        StreamBlock { decoded, ..StreamBlock::default() }
    }

    /// Reads and looks at a block, in the place of another one. None of its records lies there yet.
    pub(crate) fn open(&mut self, trace: &Trace<'_>, entry: &BlockEntry) -> Result<(), TraceError> {
        self.decoded.clear();
        trace.open_calls(entry, &mut self.contents, &mut self.columns)
    }

    /// Records that lie there.
    pub(crate) fn len(&self) -> usize {
        self.decoded.spans.len()
    }

    /// Whether there are more behind those.
    pub(crate) fn has_more(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Where one of those lies.
    #[inline]
    pub(crate) fn record_span(&self, index: usize) -> Option<&RecordSpan> {
        self.decoded.spans.get(index)
    }

    /// One of those that lie there.
    #[inline]
    pub(crate) fn record(&self, index: usize) -> Option<(RecordSpan, &[u64])> {
        let place = *self.decoded.spans.get(index)?;
        Some((place, &self.decoded.words[place.first as usize..place.end as usize]))
    }

    /// Bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        size_of::<StreamBlock>() + self.contents.capacity() + self.decoded.size() + self.columns.size()
    }

    /// Puts its next records in the place of those before them. False where there are none.
    pub(crate) fn decode_next(&mut self) -> bool {
        let has_more = self.has_more();
        if has_more {
            self.columns.decode_next(&self.contents, WORDS_AT_ONCE, &mut self.decoded);
        }
        has_more
    }
}

/// The blocks of one stream.
pub struct StreamBlocks<'t, 'a> {
    trace: &'t Trace<'a>,
    entries: std::vec::IntoIter<BlockEntry>,
    /// What comes behind the blocks.
    tail: Option<DecodedRecords>,
}

impl<'t, 'a> StreamBlocks<'t, 'a> {
    pub fn new(trace: &'t Trace<'a>, tail: Option<&Tail>, stream: u32) -> StreamBlocks<'t, 'a> {
        let tail = tail.filter(|it| it.header().id == trace.header().id);
        // What is damaged of a tail is told by who reads all streams.
        let tail = tail.map(|it| it.records(stream, trace.stored_words(stream), &mut Vec::new()));
        StreamBlocks { trace, entries: trace.blocks_of(stream).into_iter(), tail }
    }

    /// How many there are still.
    pub fn left(&self) -> usize {
        self.entries.len() + usize::from(self.tail.is_some())
    }

    /// Reads the next one. False at the end.
    pub fn read_next(&mut self, to: &mut StreamBlock) -> Result<bool, TraceError> {
        match self.entries.next() {
            Some(entry) => to.open(self.trace, &entry)?,
            None => match self.tail.take() {
                Some(tail) => *to = StreamBlock::of(tail),
                None => {
                    to.decoded.clear();
                    return Ok(false);
                }
            },
        }
        Ok(true)
    }
}

/// A record, for somebody who may write to it.
pub struct RecordMut<'a> {
    pub time: u64,
    pub record: &'a mut [u64],
}

/// Puts the next block in the place of one that is used up. False at the end.
pub type BlockFeed<'f> = Box<dyn FnMut(&mut StreamBlock) -> Result<bool, TraceError> + Send + 'f>;

/// What a reader knows of the next record before it takes it.
pub struct NextRecord<E> {
    pub time: u64,
    pub call: u64,
    /// The calls that it comes after.
    pub edges: E,
}

/// Goes through one stream of a trace.
pub struct StreamReader<'t, 'a> {
    trace: &'t Trace<'a>,
    stream: u32,
    feed: BlockFeed<'t>,
    block: StreamBlock,
    /// Records given of the block.
    given: usize,
    /// The last record, where it is not as it stands in the block.
    whole: Vec<u64>,
}

impl<'t, 'a> StreamReader<'t, 'a> {
    pub fn new(trace: &'t Trace<'a>, tail: Option<&Tail>, stream: u32) -> StreamReader<'t, 'a> {
        let mut blocks = StreamBlocks::new(trace, tail, stream);
        StreamReader::with_feed(trace, stream, Box::new(move |it| blocks.read_next(it)))
    }

    /// With blocks that somebody else reads.
    pub fn with_feed(trace: &'t Trace<'a>, stream: u32, feed: BlockFeed<'t>) -> StreamReader<'t, 'a> {
        StreamReader { trace, stream, feed, block: StreamBlock::default(), given: 0, whole: Vec::new() }
    }

    /// The next record, without taking it; none at the end.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<NextRecord<impl Iterator<Item = OrderEdge> + '_>>, TraceError> {
        if !self.load()? {
            return Ok(None);
        }
        let DecodedRecords { words, spans: places } = &self.block.decoded;
        let place = places[self.given];
        let words = &words[place.first as usize..place.end as usize];
        let RecordHeader { call, order_edge_count: edge_count, .. } = RecordHeader::from_words(words[0], words[1]);
        let edges = words[words.len() - edge_count as usize..].iter().map(|it| OrderEdge::from_word(*it));
        Ok(Some(NextRecord { time: place.time, call, edges }))
    }

    /// Makes sure that the next record is there. False at the end.
    #[inline]
    fn load(&mut self) -> Result<bool, TraceError> {
        if self.given < self.block.decoded.spans.len() { Ok(true) } else { self.load_more() }
    }

    #[cold]
    fn load_more(&mut self) -> Result<bool, TraceError> {
        while self.given >= self.block.decoded.spans.len() {
            self.given = 0;
            if !self.block.decode_next() && !(self.feed)(&mut self.block)? {
                self.block = StreamBlock::default();
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The next record; none at the end.
    ///
    /// Always inlined: what it gives has four words, which would otherwise be written one by one and read two at once;
    /// a processor has to wait for that.
    #[inline(always)]
    pub fn take_next(&mut self) -> Result<Option<RecordMut<'_>>, TraceError> {
        if !self.load()? {
            return Ok(None);
        }
        let RecordSpan { time, first, end, is_external: is_elsewhere, .. } = self.block.decoded.spans[self.given];
        self.given += 1;
        let record = match is_elsewhere || self.trace.needs_renumbering() {
            true => self.resolve_current(first..end, is_elsewhere)?,
            false => &mut self.block.decoded.words[first as usize..end as usize],
        };
        Ok(Some(RecordMut { time, record }))
    }

    /// A record that does not stand in the block as it is meant.
    #[cold]
    fn resolve_current(&mut self, place: Range<u32>, is_elsewhere: bool) -> Result<&mut [u64], TraceError> {
        let words = &self.block.decoded.words[place.start as usize..place.end as usize];
        self.trace.resolve_record(self.stream, words, is_elsewhere, &mut self.whole)?;
        Ok(&mut self.whole)
    }
}
