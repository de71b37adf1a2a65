//! Reads a file in which everything may be wrong.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lavascope_record::encoding::RecordHeader;
use lavascope_record::{HostWrite, renumber};

use crate::error::{Damage, TraceError};
use crate::format::block::{
    ALIGNMENT, BLOCK_HEAD_SIZE, BLOCK_MAGIC, BlockHead, BlockKind, Decompressors, HEADER_SIZE, TraceHeader,
};
use crate::format::byte_reader::FormatError;
use crate::format::column_decoder::{ColumnDecoder, DecodedRecords};
use crate::format::column_encoder::HEAD_WORDS;
use crate::format::index::{BlockEntry, Index, SeekPoint, SeekPointKind};
use crate::format::schema::{Schema, SchemaRenumbering};
use crate::read::content_reader::ContentReader;
use crate::read::source::{ReadAt, TraceSource};
use crate::write::block_writer::{END_MAGIC, END_SIZE};

/// Bodies may be larger than the file, because equal pieces are stored once, but there is a limit.
const BODY_ROOM: usize = 32 << 20;
/// Largest number of seek points in a small file.
const SEEK_POINTS_MAX: usize = 1 << 20;

/// A trace that can be read.
pub struct Trace<'a> {
    file: TraceSource<'a>,
    header: TraceHeader,
    entries: Vec<BlockEntry>,
    /// From the index; none if there is no index.
    seek_points: Option<Vec<SeekPoint>>,
    damages: Vec<Damage>,
    renumbering: SchemaRenumbering,
    contents: ContentReader,
    /// None if they are not needed.
    results: Option<ContentReader>,
    /// Buffers for reading blocks: one for each block that is being read.
    scratches: Mutex<Vec<Scratch>>,
}

/// The records of a block.
#[derive(Default)]
pub(crate) struct CallBlock {
    pub(crate) decoded: DecodedRecords,
}

/// Buffers for reading a block: its bytes, and the decompressors.
#[derive(Default)]
struct Scratch {
    stored: Vec<u8>,
    decompressors: Decompressors,
}

impl<'a> Trace<'a> {
    /// Opens a file. Skips damaged parts and lists them in [`Trace::damages`].
    pub fn open(file: &'a [u8]) -> Result<Trace<'a>, TraceError> {
        let mut trace = Trace::of(TraceSource::Bytes(file), TraceHeader::read(file)?);
        if !trace.load_index() {
            trace.scan_blocks();
        }
        trace.read_schema()?;
        Ok(trace)
    }

    /// Opens a file without reading all of it. None if it has no index, so that a scan is necessary.
    pub fn open_indexed(file: &'a dyn ReadAt) -> Result<Option<Trace<'a>>, TraceError> {
        let source = TraceSource::File(file);
        let mut trace = Trace::of(source, TraceHeader::read(source.get(0, HEADER_SIZE, &mut Vec::new()))?);
        if !trace.load_index() {
            return Ok(None);
        }
        trace.read_schema()?;
        Ok(Some(trace))
    }

    fn of(file: TraceSource<'a>, header: TraceHeader) -> Trace<'a> {
        Trace {
            file,
            header,
            entries: Vec::new(),
            seek_points: None,
            damages: Vec::new(),
            renumbering: SchemaRenumbering::default(),
            contents: ContentReader::default(),
            results: Some(ContentReader::default()),
            scratches: Mutex::default(),
        }
    }

    /// Reads the index. False if there is none.
    fn load_index(&mut self) -> bool {
        let Some(index) = self.read_index() else { return false };
        (self.entries, self.seek_points) = (index.entries, Some(index.seek_points));
        true
    }

    fn read_schema(&mut self) -> Result<(), TraceError> {
        let reader_of = |kind| {
            let own = self.entries.iter().filter(|it| it.kind == kind);
            ContentReader::new(own.map(|it| it.at).collect())
        };
        (self.contents, self.results) = (reader_of(BlockKind::Contents), Some(reader_of(BlockKind::Results)));
        if let Some(block_entry) = self.entries.iter().find(|it| it.kind == BlockKind::Schema) {
            let (at, contents) = (block_entry.at, self.contents_of(block_entry.at)?);
            self.renumbering = Schema::decode(&contents, at)?.renumbering();
        }
        Ok(())
    }

    /// From now on, what the device wrote is not read: the records of it have no body.
    pub fn skip_results(&mut self) {
        self.results = None;
    }

    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// The damage in the file. Everything else can be read.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Whether the capture was complete, so that the file has an index.
    pub fn is_complete(&self) -> bool {
        self.seek_points.is_some()
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> usize {
        self.file.len()
    }

    /// The numbers of all streams.
    pub fn streams(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.calls().map(|it| it.stream).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Number of words of a stream in the file. The tail continues after them.
    pub fn stored_words(&self, stream: u32) -> u64 {
        let own = self.calls().filter(|it| it.stream == stream);
        own.map(|it| it.word_offset.saturating_add(it.words.into())).max().unwrap_or(0)
    }

    /// The metadata of the capture.
    pub fn metadata(&self) -> Vec<serde_json::Value> {
        let all = self.entries.iter().filter(|it| it.kind == BlockKind::Metadata);
        all.filter_map(|it| serde_json::from_slice(&self.contents_of(it.at).ok()?).ok()).collect()
    }

    /// Size of each kind of block, stored and decompressed.
    pub fn sizes(&self) -> BTreeMap<BlockKind, (u64, u64)> {
        let mut all: BTreeMap<BlockKind, (u64, u64)> = BTreeMap::new();
        for block_entry in &self.entries {
            if let Ok(head) = self.head(block_entry.at) {
                let sizes = all.entry(block_entry.kind).or_default();
                *sizes = (sizes.0 + head.size() as u64, sizes.1 + u64::from(head.raw_size));
            }
        }
        all
    }

    /// The frames and submissions of the trace, sorted by time.
    pub fn seek_points(&self) -> Result<Vec<SeekPoint>, TraceError> {
        let mut all = match &self.seek_points {
            Some(all) => all.clone(),
            None => self.scan_seek_points()?,
        };
        all.sort_by_key(|it| (it.time, it.stream, it.call));
        Ok(all)
    }

    /// The blocks with calls of a stream, in order.
    pub(crate) fn blocks_of(&self, stream: u32) -> Vec<BlockEntry> {
        let mut all: Vec<BlockEntry> = self.calls().filter(|it| it.stream == stream).copied().collect();
        all.sort_by_key(|it| it.word_offset);
        all
    }

    pub(crate) fn entries(&self) -> &[BlockEntry] {
        &self.entries
    }

    /// The end of the last complete block, and the number of the next one.
    pub(crate) fn end(&self) -> (u64, u64) {
        let last = self.entries.iter().filter_map(|it| Some((it.at, self.head(it.at).ok()?))).max_by_key(|it| it.0);
        last.map_or((HEADER_SIZE as u64, 0), |(at, head)| (at + head.size() as u64, head.sequence + 1))
    }

    fn calls(&self) -> impl Iterator<Item = &BlockEntry> {
        self.entries.iter().filter(|it| it.kind == BlockKind::Calls)
    }

    /// Reads a block of calls.
    pub(crate) fn read_calls(&self, entry: &BlockEntry) -> Result<CallBlock, TraceError> {
        let (mut contents, mut columns) = (Vec::new(), ColumnDecoder::default());
        self.open_calls(entry, &mut contents, &mut columns)?;
        let mut calls = CallBlock::default();
        columns.decode_next(&contents, usize::MAX, &mut calls.decoded);
        Ok(calls)
    }

    /// Opens and checks a block of calls, and replaces the current one.
    pub(crate) fn open_calls(
        &self,
        entry: &BlockEntry,
        contents: &mut Vec<u8>,
        columns: &mut ColumnDecoder,
    ) -> Result<(), TraceError> {
        let block_error = |what| TraceError::Block { at: entry.at, what };
        let mut scratch = lock(&self.scratches).pop().unwrap_or_default();
        let Scratch { stored, decompressors } = &mut scratch;
        let block = self.file.block(entry.at, stored);
        let head = BlockHead::read(block).map_err(block_error)?;
        head.decompress(block, decompressors, contents).map_err(block_error)?;
        lock(&self.scratches).push(scratch);
        // An unknown command becomes `u16::MAX`, which no command has.
        let known_command = |it| self.renumbering.command(it).unwrap_or(u16::MAX);
        columns.open(contents, known_command).map_err(|it| contents_error(entry.at, it))
    }

    /// Whether object types have other numbers in this version, so that every record must be changed.
    pub(crate) fn needs_renumbering(&self) -> bool {
        self.renumbering.handles().is_some()
    }

    /// Writes the final form of a record into `whole`: with its body, and with the object types of this version.
    pub(crate) fn resolve_record(
        &self,
        stream: u32,
        record: &[u64],
        is_external: bool,
        whole: &mut Vec<u64>,
    ) -> Result<(), TraceError> {
        let numbers = self.renumbering.handles();
        if is_external {
            self.assemble_record(stream, record, whole)?;
        } else {
            whole.clear();
            whole.extend_from_slice(record);
        }
        if let Some(numbers) = numbers {
            // If that fails, the record is invalid, and the check of the record reports why.
            let _ = renumber(whole, numbers);
        }
        Ok(())
    }

    /// Replaces the contents of `words` with a record whose body is stored elsewhere.
    fn assemble_record(&self, stream: u32, record: &[u64], words: &mut Vec<u64>) -> Result<(), TraceError> {
        let head = RecordHeader::from_words(record[0], record[1]);
        let (hashes, order_edges) =
            record[HEAD_WORDS..].split_at(record.len() - HEAD_WORDS - head.order_edge_count as usize);
        words.clear();
        words.extend_from_slice(&record[..HEAD_WORDS]);
        let contents = match HostWrite::has_device_write(head) {
            true => self.results.as_ref(),
            false => Some(&self.contents),
        };
        let Some(contents) = contents else {
            words[..HEAD_WORDS].copy_from_slice(&RecordHeader { body_words: HEAD_WORDS as u32, ..head }.to_words());
            words.extend(order_edges);
            return Ok(());
        };
        for pair in hashes.chunks_exact(2) {
            let hash = u128::from(pair[0]) | u128::from(pair[1]) << 64;
            let missing = TraceError::MissingContent { stream, call: head.call, hash };
            let Some(piece) = contents.piece(self.file, hash)? else { return Err(missing) };
            if words.len() * 8 + piece.bytes().len() > BODY_ROOM + self.file.len() * 2 {
                return Err(TraceError::Block { at: piece.at, what: "a record is larger than the file can hold" });
            }
            words.extend(piece.bytes().chunks_exact(8).map(|it| u64::from_le_bytes(std::array::from_fn(|at| it[at]))));
        }
        if words.len() != head.body_words as usize {
            let hash = 0;
            return Err(TraceError::MissingContent { stream, call: head.call, hash });
        }
        words.extend(order_edges);
        Ok(())
    }

    fn scan_seek_points(&self) -> Result<Vec<SeekPoint>, TraceError> {
        let mut all = Vec::new();
        for entry in self.calls() {
            if all.len() > SEEK_POINTS_MAX + self.file.len() / 16 {
                return Err(TraceError::Block {
                    at: entry.at,
                    what: "there are more submissions than the file can hold",
                });
            }
            let calls = self.read_calls(entry)?;
            for place in &calls.decoded.spans {
                let first = place.first as usize;
                let head = RecordHeader::from_words(calls.decoded.words[first], calls.decoded.words[first + 1]);
                let command = lavascope_abi::Command::from_number(head.command).filter(|_| head.kind == 0);
                if let Some(kind) = command.and_then(SeekPointKind::of) {
                    all.push(SeekPoint { kind, stream: entry.stream, call: head.call, time: place.time });
                }
            }
        }
        Ok(all)
    }

    fn read_index(&self) -> Option<Index> {
        let mut room = Vec::new();
        let end = self.file.get(self.file.len().checked_sub(END_SIZE)? as u64, END_SIZE, &mut room);
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|it| end[at + it]));
        if !end.starts_with(&END_MAGIC) || end.len() < END_SIZE {
            return None;
        }
        let (mut at, count) = (number(8), number(16));
        let mut index = Index::default();
        for _ in 0..count {
            let head = self.head(at).ok().filter(|it| it.kind == BlockKind::Index)?;
            index.add(&self.contents_of(at).ok()?, self.header.version).ok()?;
            // A small file must not request much memory.
            let is_sane = index.entries.len() <= self.file.len() / BLOCK_HEAD_SIZE
                && index.seek_points.len() <= SEEK_POINTS_MAX + self.file.len() / 16;
            if !is_sane {
                return None;
            }
            at += head.size() as u64;
        }
        // The index must be complete, and its blocks must lie in the file.
        let is_right = |it: &BlockEntry| it.at < self.file.len() as u64 && it.at.is_multiple_of(ALIGNMENT as u64);
        (at as usize == self.file.len() - END_SIZE && index.entries.iter().all(is_right)).then_some(index)
    }

    /// Finds all blocks by a scan, also after damage.
    fn scan_blocks(&mut self) {
        let mut at = HEADER_SIZE as u64;
        let mut sequence = 0;
        while (at as usize) < self.file.bytes().len() {
            match self.head(at) {
                Ok(head) => {
                    if head.sequence > sequence {
                        self.damage(at, 0, format!("{} blocks are missing before this one", head.sequence - sequence));
                    }
                    sequence = head.sequence + 1;
                    let BlockHead { kind, stream, word_offset, words, call, time, count, .. } = head;
                    if kind != BlockKind::Index {
                        self.entries.push(BlockEntry { at, kind, stream, word_offset, words, call, time, count });
                    }
                    at += head.size() as u64;
                }
                Err(_) if self.file.bytes()[at as usize..].starts_with(&END_MAGIC) => return,
                Err(what) => {
                    let next = self.next_block(at + ALIGNMENT as u64);
                    self.damage(at, next - at, what.to_owned());
                    at = next;
                }
            }
        }
    }

    /// The position of the next complete block, or the end.
    fn next_block(&self, from: u64) -> u64 {
        let mut at = from as usize;
        while let Some(rest) = self.file.bytes().get(at..).filter(|it| it.len() >= BLOCK_HEAD_SIZE) {
            if rest.starts_with(&BLOCK_MAGIC) && BlockHead::read(rest).is_ok() {
                return at as u64;
            }
            at += ALIGNMENT;
        }
        self.file.len() as u64
    }

    fn damage(&mut self, at: u64, size: u64, what: String) {
        self.damages.push(Damage { at, size, what });
    }

    fn head(&self, at: u64) -> Result<BlockHead, &'static str> {
        BlockHead::read(self.file.block(at, &mut Vec::new()))
    }

    fn contents_of(&self, at: u64) -> Result<Vec<u8>, TraceError> {
        let wrong = |what| TraceError::Block { at, what };
        let (mut stored, mut contents) = (Vec::new(), Vec::new());
        let block = self.file.block(at, &mut stored);
        let head = BlockHead::read(block).map_err(wrong)?;
        head.decompress(block, &mut Decompressors::default(), &mut contents).map_err(wrong)?;
        Ok(contents)
    }
}

/// The values behind these locks are consistent at every moment.
pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn contents_error(at: u64, bad: FormatError) -> TraceError {
    TraceError::Contents { at, inside: bad.at as u64, what: bad.what }
}
