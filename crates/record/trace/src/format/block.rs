//! The header of a file, and its blocks.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::TraceError;
use crate::format::byte_reader::ByteReader;
use crate::format::content_window::stored_max;

/// The version of the format that is written.
pub const VERSION: u32 = 2;
/// Largest size of a block, compressed and decompressed.
pub const BLOCK_MAX: usize = 1 << 20;

const MAGIC: [u8; 8] = *b"\x89LAVA\r\n\x1a";
pub(crate) const HEADER_SIZE: usize = 64;
pub(crate) const BLOCK_HEAD_SIZE: usize = 72;
/// Size of a block's head without the checksum.
const CHECKSUMMED_BYTES: usize = BLOCK_HEAD_SIZE - 8;
/// At the begin of each block, so that reading can continue after damage.
pub(crate) const BLOCK_MAGIC: [u8; 4] = *b"LBLK";
/// Blocks begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    pub version: u32,
    /// A random number that identifies a capture, and connects a trace with its tail.
    pub id: u128,
    /// The begin of the capture, in nanoseconds since 1970.
    pub began: u64,
    /// Times of calls are counted in this many steps per second, from the begin of the capture.
    pub ticks_per_second: u64,
}

impl TraceHeader {
    pub(crate) fn to_bytes(self) -> [u8; HEADER_SIZE] {
        let mut all = [0; HEADER_SIZE];
        all[..8].copy_from_slice(&MAGIC);
        all[8..12].copy_from_slice(&self.version.to_le_bytes());
        all[12..16].copy_from_slice(&(HEADER_SIZE as u32).to_le_bytes());
        all[16..32].copy_from_slice(&self.id.to_le_bytes());
        all[32..40].copy_from_slice(&self.began.to_le_bytes());
        all[40..48].copy_from_slice(&self.ticks_per_second.to_le_bytes());
        let sum = xxh3_64(&all[..HEADER_SIZE - 8]);
        all[HEADER_SIZE - 8..].copy_from_slice(&sum.to_le_bytes());
        all
    }

    pub(crate) fn read(file: &[u8]) -> Result<TraceHeader, TraceError> {
        if !file.starts_with(&MAGIC) {
            let is_cut = MAGIC.starts_with(file) && !file.is_empty();
            return Err(if is_cut { TraceError::NoHeader } else { TraceError::NoTrace });
        }
        let all = file.get(..HEADER_SIZE).ok_or(TraceError::NoHeader)?;
        let mut bytes = ByteReader::new(&all[8..]);
        let read = |reader: &mut ByteReader<'_>| -> Result<_, crate::format::byte_reader::FormatError> {
            Ok((
                reader.u32()?,
                reader.u32()?,
                reader.u128()?,
                reader.u64()?,
                reader.u64()?,
                reader.u64()?,
                reader.u64()?,
            ))
        };
        let Ok((version, _, id, began, ticks_per_second, _, sum)) = read(&mut bytes) else {
            return Err(TraceError::NoHeader);
        };
        if sum != xxh3_64(&all[..HEADER_SIZE - 8]) {
            return Err(TraceError::BadHeader);
        }
        if version > VERSION {
            return Err(TraceError::TooNew(version));
        }
        Ok(TraceHeader { version, id, began, ticks_per_second })
    }
}

/// Whether a file begins like a trace.
pub fn is_trace(file: &[u8]) -> bool {
    TraceHeader::read(file) != Err(TraceError::NoTrace)
}

/// The kind of contents of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum BlockKind {
    /// The numbers of commands and object types in this file.
    Schema = 1,
    /// Metadata of the capture, as JSON.
    Metadata = 2,
    /// Large data, by hash.
    Contents = 3,
    /// Calls of one stream.
    Calls = 4,
    /// The positions of all blocks.
    Index = 5,
    /// What the device wrote, by hash: only for comparisons.
    Results = 6,
}

impl BlockKind {
    pub(crate) fn from_number(number: u8) -> Option<BlockKind> {
        use BlockKind as K;
        [K::Schema, K::Metadata, K::Contents, K::Calls, K::Index, K::Results].into_iter().find(|it| *it as u8 == number)
    }
}

/// The compression of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Codec {
    None = 0,
    #[default]
    Zstd = 1,
    Lz4 = 2,
    /// A part of the stream of a group of blocks with contents.
    ZstdGroup = 3,
}

impl Codec {
    fn from_number(number: u8) -> Option<Codec> {
        [Codec::None, Codec::Zstd, Codec::Lz4, Codec::ZstdGroup].into_iter().find(|it| *it as u8 == number)
    }

    /// The compressed bytes; none if they would not be smaller.
    pub(crate) fn compress(self, raw: &[u8]) -> Option<Vec<u8>> {
        let packed = match self {
            Codec::None | Codec::ZstdGroup => return None,
            Codec::Zstd => zstd::bulk::compress(raw, 1).ok()?,
            Codec::Lz4 => lz4_flex::block::compress(raw),
        };
        (packed.len() < raw.len()).then_some(packed)
    }

    /// Replaces the contents of `to` with the decompressed bytes. None if their size is wrong.
    fn decompress(self, stored: &[u8], raw_size: usize, means: &mut Decompressors, to: &mut Vec<u8>) -> Option<()> {
        to.clear();
        let size = match self {
            Codec::None => {
                to.extend_from_slice(stored);
                stored.len()
            }
            Codec::Zstd => {
                let zstd = match &mut means.zstd {
                    Some(decompressor) => decompressor,
                    none => none.insert(zstd::bulk::Decompressor::new().ok()?),
                };
                to.reserve(raw_size);
                zstd.decompress_to_buffer(stored, to).ok()?
            }
            // Only the reader of contents has the blocks before it.
            Codec::ZstdGroup => return None,
            Codec::Lz4 => {
                to.resize(raw_size, 0);
                lz4_flex::block::decompress_into(stored, to).ok()?
            }
        };
        (size == raw_size).then_some(())
    }
}

/// Decompressors that are reused for many blocks.
#[derive(Default)]
pub(crate) struct Decompressors {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

/// Number of bytes after a block's head, if the head is plausible.
pub(crate) fn stored_size(head: &[u8]) -> Option<usize> {
    let bytes = head.get(56..60)?;
    Some(u32::from_le_bytes(std::array::from_fn(|it| bytes[it])) as usize)
}

/// The head of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHead {
    pub(crate) kind: BlockKind,
    pub(crate) codec: Codec,
    /// For calls: the stream number.
    pub(crate) stream: u32,
    /// Blocks are counted from zero. A gap means that a block is lost.
    pub(crate) sequence: u64,
    /// For calls: the number of words before the block in the stream, and its number of words.
    pub(crate) word_offset: u64,
    pub(crate) words: u32,
    /// For calls: the number and the time of the first call, and the number of records.
    pub(crate) call: u64,
    pub(crate) time: u64,
    pub(crate) count: u32,
    pub(crate) raw_size: u32,
    pub(crate) stored_size: u32,
    /// For contents: how many blocks of the same group come before it.
    pub(crate) in_group: u32,
}

impl BlockHead {
    pub(crate) fn to_bytes(self, stored: &[u8]) -> [u8; BLOCK_HEAD_SIZE] {
        let mut all = [0; BLOCK_HEAD_SIZE];
        all[..4].copy_from_slice(&BLOCK_MAGIC);
        (all[4], all[5]) = (self.kind as u8, self.codec as u8);
        all[8..12].copy_from_slice(&self.stream.to_le_bytes());
        all[12..16].copy_from_slice(&self.words.to_le_bytes());
        all[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        all[24..32].copy_from_slice(&self.word_offset.to_le_bytes());
        all[32..40].copy_from_slice(&self.call.to_le_bytes());
        all[40..48].copy_from_slice(&self.time.to_le_bytes());
        all[48..52].copy_from_slice(&self.count.to_le_bytes());
        all[52..56].copy_from_slice(&self.raw_size.to_le_bytes());
        all[56..60].copy_from_slice(&self.stored_size.to_le_bytes());
        all[60..64].copy_from_slice(&self.in_group.to_le_bytes());
        let sum = checksum(&all, stored);
        all[CHECKSUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        all
    }

    /// Size of the block including padding.
    pub(crate) fn size(self) -> usize {
        (BLOCK_HEAD_SIZE + self.stored_size as usize).next_multiple_of(ALIGNMENT)
    }

    /// Reads the head of a block, and checks that the block is complete.
    pub(crate) fn read(file: &[u8]) -> Result<BlockHead, &'static str> {
        let head = file.get(..BLOCK_HEAD_SIZE).ok_or("the file ends inside the head of a block")?;
        if head[..4] != BLOCK_MAGIC {
            return Err("no block begins here");
        }
        let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|it| head[at + it]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|it| head[at + it]));
        let (raw_size, stored_size) = (number(52), number(56));
        let stored_max = match head[5] == Codec::ZstdGroup as u8 {
            true => stored_max(raw_size as usize).min(BLOCK_MAX),
            false => raw_size as usize,
        };
        if raw_size as usize > BLOCK_MAX || stored_size as usize > stored_max {
            return Err("the block says that it is larger than blocks are");
        }
        let stored = &file[BLOCK_HEAD_SIZE..];
        let stored = stored.get(..stored_size as usize).ok_or("the file ends inside the block")?;
        if checksum(head, stored) != long(CHECKSUMMED_BYTES) {
            return Err("the checksum does not fit: the block is damaged");
        }
        let kind = BlockKind::from_number(head[4]).ok_or("a kind of block that this version does not know")?;
        let codec = Codec::from_number(head[5]).ok_or("a compression that this version does not know")?;
        Ok(BlockHead {
            kind,
            codec,
            stream: number(8),
            words: number(12),
            sequence: long(16),
            word_offset: long(24),
            call: long(32),
            time: long(40),
            count: number(48),
            raw_size,
            stored_size,
            in_group: number(60),
        })
    }

    /// The stored bytes of a block at the begin of `file`.
    pub(crate) fn stored(self, file: &[u8]) -> &[u8] {
        &file[BLOCK_HEAD_SIZE..BLOCK_HEAD_SIZE + self.stored_size as usize]
    }

    /// Replaces the contents of `to` with those of a block at the begin of `file`.
    pub(crate) fn decompress(
        self,
        file: &[u8],
        means: &mut Decompressors,
        to: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        self.codec
            .decompress(self.stored(file), self.raw_size as usize, means, to)
            .ok_or("it does not unpack to its stated size")
    }
}

/// The checksum of a block: its head without the checksum, and its stored bytes.
fn checksum(head: &[u8], stored: &[u8]) -> u64 {
    let mut sum = Xxh3::new();
    sum.update(&head[..CHECKSUMMED_BYTES]);
    sum.update(stored);
    sum.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: TraceHeader = TraceHeader { version: VERSION, id: 7, began: 8, ticks_per_second: 9 };

    #[test]
    fn a_header_comes_back_and_each_damage_has_its_name() {
        let good = HEADER.to_bytes();
        assert_eq!(TraceHeader::read(&good), Ok(HEADER));
        assert_eq!(TraceHeader::read(b"ELF"), Err(TraceError::NoTrace));
        assert_eq!(TraceHeader::read(b""), Err(TraceError::NoTrace));
        assert_eq!(TraceHeader::read(&good[..5]), Err(TraceError::NoHeader));
        assert_eq!(TraceHeader::read(&good[..60]), Err(TraceError::NoHeader));
        let mut bad = good;
        bad[33] ^= 1;
        assert_eq!(TraceHeader::read(&bad), Err(TraceError::BadHeader));
        let newer = TraceHeader { version: VERSION + 1, ..HEADER };
        assert_eq!(TraceHeader::read(&newer.to_bytes()), Err(TraceError::TooNew(VERSION + 1)));
    }

    #[test]
    fn every_codec_gives_back_what_it_got() {
        let raw: Vec<u8> = (0..5000u32).map(|it| (it / 7) as u8).collect();
        for codec in [Codec::Zstd, Codec::Lz4] {
            let packed = codec.compress(&raw).expect("this is easy to compress");
            let (mut means, mut to) = (Decompressors::default(), Vec::new());
            assert_eq!(codec.decompress(&packed, raw.len(), &mut means, &mut to), Some(()));
            assert_eq!(to, raw);
            assert_eq!(codec.decompress(&packed, raw.len() - 1, &mut means, &mut to), None, "{codec:?}");
            assert_eq!(codec.decompress(&packed, raw.len() + 1, &mut means, &mut to), None, "{codec:?}");
        }
        assert_eq!(Codec::None.compress(&raw), None);
    }

    #[test]
    fn any_flipped_bit_of_a_block_is_seen() {
        let stored = [1, 2, 3];
        let head = BlockHead {
            kind: BlockKind::Calls,
            codec: Codec::None,
            stream: 3,
            sequence: 4,
            word_offset: 5,
            words: 6,
            call: 7,
            time: 8,
            count: 9,
            raw_size: 3,
            stored_size: 3,
            in_group: 5,
        };
        let mut block = head.to_bytes(&stored).to_vec();
        block.extend(stored);
        assert_eq!(BlockHead::read(&block), Ok(head));
        let mut contents = vec![7; 9];
        assert_eq!(head.decompress(&block, &mut Decompressors::default(), &mut contents), Ok(()));
        assert_eq!(contents, stored);
        for bit in 0..block.len() * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(BlockHead::read(&block).is_err(), "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
