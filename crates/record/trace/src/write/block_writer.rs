//! Writes blocks to a file, one after the other.

use std::io::{self, Write};

use crate::format::block::{ALIGNMENT, BLOCK_HEAD_SIZE, BlockHead, BlockKind, Codec, HEADER_SIZE, TraceHeader};
use crate::format::content_window::WindowEncoder;
use crate::format::index::{BlockEntry, Index, SeekPoint};
use crate::format::schema::Schema;
use crate::write::recorder::RawBlock;

/// The end of a file, after the index.
pub(crate) const END_MAGIC: [u8; 8] = *b"LAVAEND\n";
/// The magic number, the place of the index, and its number of blocks.
pub(crate) const END_SIZE: usize = 24;

/// A compressed block, without its place in the file.
pub struct CompressedBlock {
    raw: RawBlock,
    raw_size: u32,
    codec: Codec,
    stored: Vec<u8>,
    in_group: u32,
}

impl RawBlock {
    /// Compresses a block. This is slow, so threads of the application must not call it.
    pub fn compress(mut self, codec: Codec) -> CompressedBlock {
        let contents = std::mem::take(&mut self.contents);
        let raw_size = contents.len() as u32;
        let (codec, stored) = match codec.compress(&contents) {
            Some(stored) => (codec, stored),
            None => (Codec::None, contents),
        };
        CompressedBlock { raw: self, raw_size, codec, stored, in_group: 0 }
    }
}

/// Where a block stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenBlock {
    pub kind: BlockKind,
    pub stream: u32,
    /// Number of words of the stream that are in the file now.
    pub word_offset: u64,
}

/// Appends blocks to a file.
pub struct BlockWriter<W> {
    out: W,
    version: u32,
    /// Number of written bytes.
    at: u64,
    sequence: u64,
    entries: Vec<BlockEntry>,
    contents: WindowEncoder,
    results: WindowEncoder,
}

impl<W: Write> BlockWriter<W> {
    /// Begins a file.
    pub fn new(mut out: W, header: TraceHeader) -> io::Result<BlockWriter<W>> {
        out.write_all(&header.to_bytes())?;
        let mut writer = BlockWriter {
            out,
            version: header.version,
            at: HEADER_SIZE as u64,
            sequence: 0,
            entries: Vec::new(),
            contents: WindowEncoder::default(),
            results: WindowEncoder::default(),
        };
        writer.write(RawBlock::new(BlockKind::Schema, Schema::current().encode()).compress(Codec::Zstd))?;
        Ok(writer)
    }

    /// Continues a file of a version, of this size, with these blocks.
    pub(crate) fn resume(out: W, version: u32, (at, sequence): (u64, u64), entries: Vec<BlockEntry>) -> BlockWriter<W> {
        BlockWriter {
            out,
            version,
            at,
            sequence,
            entries,
            contents: WindowEncoder::default(),
            results: WindowEncoder::default(),
        }
    }

    /// Compresses and appends a block. Contents refer to earlier contents, if they are compressed by Zstandard.
    pub fn write_compressed(&mut self, mut block: RawBlock, codec: Codec) -> io::Result<WrittenBlock> {
        let window = match block.kind {
            BlockKind::Contents => Some(&mut self.contents),
            BlockKind::Results => Some(&mut self.results),
            _ => None,
        };
        if let Some(window) = window.filter(|_| codec == Codec::Zstd && self.version > 1)
            && let Some((in_group, stored)) = window.compress(&block.contents)
        {
            let raw_size = std::mem::take(&mut block.contents).len() as u32;
            return self.write(CompressedBlock { raw: block, raw_size, codec: Codec::ZstdGroup, stored, in_group });
        }
        self.write(block.compress(codec))
    }

    /// Appends a block. After an error, the file is valid up to [`BlockWriter::size`].
    pub fn write(&mut self, block: CompressedBlock) -> io::Result<WrittenBlock> {
        let CompressedBlock { raw, raw_size, codec, stored, in_group } = block;
        let head = BlockHead {
            kind: raw.kind,
            codec,
            stream: raw.stream,
            sequence: self.sequence,
            word_offset: raw.word_offset,
            words: raw.words,
            call: raw.call,
            time: raw.time,
            count: raw.count,
            raw_size,
            stored_size: stored.len() as u32,
            in_group,
        };
        // In one write, so that a reader, or a crash, hardly ever sees an incomplete block.
        let mut bytes = Vec::with_capacity(head.size());
        bytes.extend(head.to_bytes(&stored));
        bytes.extend(&stored);
        bytes.resize(head.size(), 0);
        debug_assert!(bytes.len().is_multiple_of(ALIGNMENT) && bytes.len() >= BLOCK_HEAD_SIZE);
        self.out.write_all(&bytes)?;
        let RawBlock { kind, stream, word_offset, words, call, time, count, .. } = raw;
        self.entries.push(BlockEntry { at: self.at, kind, stream, word_offset, words, call, time, count });
        self.at += bytes.len() as u64;
        self.sequence += 1;
        Ok(WrittenBlock { kind, stream, word_offset: word_offset + u64::from(words) })
    }

    /// Size of the valid part of the file.
    pub fn size(&self) -> u64 {
        self.at
    }

    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Writes the index and ends the file.
    pub fn finish(mut self, seek_points: &[SeekPoint]) -> io::Result<W> {
        let (at, first) = (self.at, self.sequence);
        let index = Index { entries: std::mem::take(&mut self.entries), seek_points: seek_points.to_vec() };
        for contents in index.encode(self.version) {
            self.write(RawBlock::new(BlockKind::Index, contents).compress(Codec::Zstd))?;
        }
        let mut end = END_MAGIC.to_vec();
        end.extend(at.to_le_bytes());
        end.extend((self.sequence - first).to_le_bytes());
        self.out.write_all(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }
}
