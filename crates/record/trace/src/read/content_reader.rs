//! The contents of a file: where each piece is, and the blocks that were decompressed last.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use crate::error::TraceError;
use crate::format::block::{BlockHead, Codec, Decompressors};
use crate::format::content::{self, ContentHash};
use crate::format::content_window::{GROUP_BLOCKS_MAX, WindowDecoder};
use crate::read::source::TraceSource;
use crate::read::trace::{contents_error, lock};

/// Bytes of decompressed blocks that are kept: two groups.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Where a piece is.
pub(crate) struct ContentPiece {
    block: Arc<Vec<u8>>,
    range: Range<usize>,
    /// The position of the block.
    pub(crate) at: u64,
}

impl ContentPiece {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.block[self.range.clone()]
    }
}

/// The number of a block, and the bytes of a piece in it.
type PieceIndex = FxHashMap<ContentHash, (usize, Range<usize>)>;

/// The contents of one kind.
#[derive(Default)]
pub(crate) struct ContentReader {
    /// The positions of the blocks, in the order of the file.
    blocks: Vec<u64>,
    /// Computed when first needed.
    pieces: Mutex<Option<PieceIndex>>,
    blocks_read: Mutex<ReadBlocks>,
}

#[derive(Default)]
struct ReadBlocks {
    kept: Vec<(usize, Arc<Vec<u8>>)>,
    /// The decoder of a group, and the number of the block that it continues with.
    window: Option<(usize, WindowDecoder)>,
    stored: Vec<u8>,
    decompressors: Decompressors,
}

impl ContentReader {
    pub(crate) fn new(blocks: Vec<u64>) -> ContentReader {
        ContentReader { blocks, ..ContentReader::default() }
    }

    /// The place of a piece; none if the file does not have it.
    pub(crate) fn piece(&self, file: TraceSource<'_>, hash: ContentHash) -> Result<Option<ContentPiece>, TraceError> {
        let mut pieces = lock(&self.pieces);
        let known = match &mut *pieces {
            Some(known) => known,
            none => none.insert(self.scan_pieces(file)?),
        };
        let Some((number, range)) = known.get(&hash).cloned() else { return Ok(None) };
        drop(pieces);
        let block = self.block(&mut lock(&self.blocks_read), file, number)?;
        Ok(Some(ContentPiece { block, range, at: self.blocks[number] }))
    }

    fn scan_pieces(&self, file: TraceSource<'_>) -> Result<PieceIndex, TraceError> {
        let (mut all, mut read) = (PieceIndex::default(), lock(&self.blocks_read));
        for (number, at) in self.blocks.iter().enumerate() {
            // A block that cannot be read only matters to records that need it.
            let Ok(contents) = self.block(&mut read, file, number) else { continue };
            for (hash, range) in content::pieces(&contents).map_err(|it| contents_error(*at, it))? {
                // The hash is checked. That also keeps a small file from naming very many pieces, because hashes are
                // not compressible.
                if content::hash(&contents[range.clone()]) != hash {
                    return Err(TraceError::Block { at: *at, what: "a piece of content is not what its name says" });
                }
                all.insert(hash, (number, range));
            }
        }
        Ok(all)
    }

    fn block(
        &self,
        read: &mut MutexGuard<'_, ReadBlocks>,
        file: TraceSource<'_>,
        number: usize,
    ) -> Result<Arc<Vec<u8>>, TraceError> {
        if let Some(kept) = read.kept.iter().find(|it| it.0 == number) {
            return Ok(kept.1.clone());
        }
        let in_group = self.number_in_group(read, file, number)?;
        let is_next = read.window.as_ref().is_some_and(|it| it.0 == number && in_group > 0);
        if !is_next {
            // The blocks before it, which are most likely needed, too.
            for other in number - in_group as usize..number {
                self.read_block(read, file, other, other + in_group as usize - number)?;
            }
        }
        self.read_block(read, file, number, in_group as usize)
    }

    /// How many blocks come before it in its group.
    fn number_in_group(&self, read: &mut ReadBlocks, file: TraceSource<'_>, number: usize) -> Result<u32, TraceError> {
        let at = self.blocks[number];
        let wrong = |what| TraceError::Block { at, what };
        let head = BlockHead::read(file.block(at, &mut read.stored)).map_err(wrong)?;
        let is_possible = head.in_group < GROUP_BLOCKS_MAX && head.in_group as usize <= number;
        is_possible.then_some(head.in_group).ok_or_else(|| wrong("the blocks that it continues are missing"))
    }

    fn read_block(
        &self,
        read: &mut ReadBlocks,
        file: TraceSource<'_>,
        number: usize,
        in_group: usize,
    ) -> Result<Arc<Vec<u8>>, TraceError> {
        let at = self.blocks[number];
        let wrong = |what| TraceError::Block { at, what };
        let ReadBlocks { stored, decompressors, window, .. } = &mut *read;
        let block = file.block(at, stored);
        let head = BlockHead::read(block).map_err(wrong)?;
        if head.in_group as usize != in_group {
            return Err(wrong("the blocks that the next one continues are missing"));
        }
        let mut contents = Vec::new();
        if head.codec == Codec::ZstdGroup {
            let mut decoder = match window.take() {
                Some((next, decoder)) if in_group > 0 && next == number => decoder,
                _ if in_group > 0 => return Err(wrong("the blocks that it continues are missing")),
                _ => WindowDecoder::new().ok_or_else(|| wrong("there is no memory to unpack it"))?,
            };
            let unpacked = decoder.decompress(head.stored(block), head.raw_size as usize);
            contents = unpacked.ok_or_else(|| wrong("it does not unpack to its stated size"))?;
            *window = Some((number + 1, decoder));
        } else {
            head.decompress(block, decompressors, &mut contents).map_err(wrong)?;
        }
        let contents = Arc::new(contents);
        read.keep(number, contents.clone());
        Ok(contents)
    }
}

impl ReadBlocks {
    fn keep(&mut self, number: usize, contents: Arc<Vec<u8>>) {
        self.kept.retain(|it| it.0 != number);
        self.kept.push((number, contents));
        let mut bytes: usize = self.kept.iter().map(|it| it.1.len()).sum();
        let mut gone = 0;
        while bytes > KEPT_BYTES_MAX {
            bytes -= self.kept[gone].1.len();
            gone += 1;
        }
        self.kept.drain(..gone);
    }
}
