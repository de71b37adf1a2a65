//! Reads the records of one stream in order, for a thread that replays it.

use std::ops::Range;

use lavascope_record::encoding::{OrderEdge, RecordHeader};

use crate::error::TraceError;
use crate::format::column_decoder::{ColumnDecoder, DecodedRecords, RecordSpan};
use crate::format::index::BlockEntry;
use crate::read::tail::Tail;
use crate::read::trace::Trace;

/// Number of words that are decoded at once: few enough to be still in the cache when they are used.
const WORDS_AT_ONCE: usize = 1 << 12;

/// The records of a block, a few of which are decoded at a time. The next block reuses the memory.
#[derive(Default)]
pub struct StreamBlock {
    contents: Vec<u8>,
    columns: ColumnDecoder,
    decoded: DecodedRecords,
}

impl StreamBlock {
    /// A block whose records are already decoded.
    pub(crate) fn of(decoded: DecodedRecords) -> StreamBlock {
        StreamBlock { decoded, ..StreamBlock::default() }
    }

    /// Opens and checks a block, and replaces the current one. No record is decoded yet.
    pub(crate) fn open(&mut self, trace: &Trace<'_>, entry: &BlockEntry) -> Result<(), TraceError> {
        self.decoded.clear();
        trace.open_calls(entry, &mut self.contents, &mut self.columns)
    }

    /// Number of decoded records.
    pub(crate) fn len(&self) -> usize {
        self.decoded.spans.len()
    }

    /// Whether there are more records to decode.
    pub(crate) fn has_more(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The position of a decoded record.
    #[inline]
    pub(crate) fn record_span(&self, index: usize) -> Option<&RecordSpan> {
        self.decoded.spans.get(index)
    }

    /// A decoded record.
    #[inline]
    pub(crate) fn record(&self, index: usize) -> Option<(RecordSpan, &[u64])> {
        let place = *self.decoded.spans.get(index)?;
        Some((place, &self.decoded.words[place.first as usize..place.end as usize]))
    }

    /// Memory size in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of::<StreamBlock>() + self.contents.capacity() + self.decoded.size() + self.columns.size()
    }

    /// Decodes the next records, and replaces the current ones. False if there are none.
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
    /// The records after the last block.
    tail: Option<DecodedRecords>,
}

impl<'t, 'a> StreamBlocks<'t, 'a> {
    pub fn new(trace: &'t Trace<'a>, tail: Option<&Tail>, stream: u32) -> StreamBlocks<'t, 'a> {
        let tail = tail.filter(|it| it.header().id == trace.header().id);
        // Damage of the tail is reported by the reader of all streams.
        let tail = tail.map(|it| it.records(stream, trace.stored_words(stream), &mut Vec::new()));
        StreamBlocks { trace, entries: trace.blocks_of(stream).into_iter(), tail }
    }

    /// Number of remaining blocks.
    pub fn left(&self) -> usize {
        self.entries.len() + usize::from(self.tail.is_some())
    }

    /// Reads the next block. False at the end.
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

/// A record that the caller may modify.
pub struct RecordMut<'a> {
    pub time: u64,
    pub record: &'a mut [u64],
}

/// Replaces a block with the next one. False at the end.
pub type BlockFeed<'f> = Box<dyn FnMut(&mut StreamBlock) -> Result<bool, TraceError> + Send + 'f>;

/// What a reader knows of the next record without taking it.
pub struct NextRecord<E> {
    pub time: u64,
    pub head: RecordHeader,
    /// The calls that the record comes after.
    pub edges: E,
}

/// Reads one stream of a trace.
pub struct StreamReader<'t, 'a> {
    trace: &'t Trace<'a>,
    stream: u32,
    feed: BlockFeed<'t>,
    block: StreamBlock,
    /// Number of returned records of the block.
    given: usize,
    /// The last record in its final form, if that differs from the words in the block.
    whole: Vec<u64>,
}

impl<'t, 'a> StreamReader<'t, 'a> {
    pub fn new(trace: &'t Trace<'a>, tail: Option<&Tail>, stream: u32) -> StreamReader<'t, 'a> {
        let mut blocks = StreamBlocks::new(trace, tail, stream);
        StreamReader::with_feed(trace, stream, Box::new(move |it| blocks.read_next(it)))
    }

    /// A reader that gets its blocks from another thread.
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
        let head = RecordHeader::from_words(words[0], words[1]);
        let edges = words[words.len() - head.order_edge_count as usize..].iter().map(|it| OrderEdge::from_word(*it));
        Ok(Some(NextRecord { time: place.time, head, edges }))
    }

    /// Loads the next record. False at the end.
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
    /// Always inlined: the result has four words. They would otherwise be written one by one and read in pairs, which
    /// is a store-forwarding stall.
    #[inline(always)]
    pub fn take_next(&mut self) -> Result<Option<RecordMut<'_>>, TraceError> {
        if !self.load()? {
            return Ok(None);
        }
        let RecordSpan { time, first, end, is_external, .. } = self.block.decoded.spans[self.given];
        self.given += 1;
        let record = match is_external || self.trace.needs_renumbering() {
            true => self.resolve_current(first..end, is_external)?,
            false => &mut self.block.decoded.words[first as usize..end as usize],
        };
        Ok(Some(RecordMut { time, record }))
    }

    /// The last record that was taken comes again. Its words must not have been modified, and nothing may have been called
    /// since [`StreamReader::take_next`].
    pub fn put_back(&mut self) {
        self.given = self.given.saturating_sub(1);
    }

    /// Resolves a record whose words in the block are not final.
    #[cold]
    fn resolve_current(&mut self, place: Range<u32>, is_external: bool) -> Result<&mut [u64], TraceError> {
        let words = &self.block.decoded.words[place.start as usize..place.end as usize];
        self.trace.resolve_record(self.stream, words, is_external, &mut self.whole)?;
        Ok(&mut self.whole)
    }
}
