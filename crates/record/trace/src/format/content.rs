//! Large data, stored once and identified by hash.

use std::ops::Range;

use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_128;

use crate::format::block::BLOCK_MAX;
use crate::format::byte_reader::{ByteReader, FormatError};

/// The hash of a piece of content.
pub type ContentHash = u128;

/// Larger contents are split into pieces of this size.
pub const PIECE_MAX: usize = 256 << 10;
/// A block of contents is complete at this size.
const FULL: usize = 512 << 10;
/// Largest number of remembered hashes. Beyond that, equal data may be stored twice.
const KNOWN_MAX: usize = 1 << 20;
/// Bytes before each piece: hash and size.
const PIECE_HEAD: usize = 20;

/// The hash of a piece.
pub(crate) fn hash(bytes: &[u8]) -> ContentHash {
    xxh3_128(bytes)
}

/// Collects pieces for a block.
#[derive(Default)]
pub(crate) struct ContentStore {
    block: Vec<u8>,
    count: u32,
    known: FxHashSet<ContentHash>,
}

impl ContentStore {
    /// Adds a piece, if the file does not have it yet.
    pub(crate) fn add(&mut self, piece: &[u8]) -> ContentHash {
        debug_assert!(piece.len() <= PIECE_MAX && self.block.len() + PIECE_HEAD + piece.len() <= BLOCK_MAX);
        let hash = hash(piece);
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        if self.known.insert(hash) {
            self.block.extend(hash.to_le_bytes());
            self.block.extend((piece.len() as u32).to_le_bytes());
            self.block.extend(piece);
            self.count += 1;
        }
        hash
    }

    /// Whether a block must be written before more pieces are added.
    pub(crate) fn is_full(&self) -> bool {
        self.block.len() >= FULL
    }

    /// The contents of a block with the pieces since the last call, and their number.
    pub(crate) fn take(&mut self) -> Option<(Vec<u8>, u32)> {
        let count = std::mem::take(&mut self.count);
        (count > 0).then(|| (std::mem::take(&mut self.block), count))
    }
}

/// The pieces of a block.
pub(crate) fn pieces(block: &[u8]) -> Result<Vec<(ContentHash, Range<usize>)>, FormatError> {
    let mut from = ByteReader::new(block);
    let mut all = Vec::new();
    while !from.is_empty() {
        let (hash, size) = (from.u128()?, from.u32()? as usize);
        let first = block.len() - from.left();
        from.take(size)?;
        all.push((hash, first..first + size));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pieces_are_stored_once() {
        let mut contents = ContentStore::default();
        let (one, two) = (contents.add(b"abc"), contents.add(b"defg"));
        assert_eq!(contents.add(b"abc"), one);
        let (block, count) = contents.take().expect("there are two");
        assert_eq!((count, contents.take()), (2, None));
        let found = pieces(&block).expect("whole");
        assert_eq!(
            found.iter().map(|it| (it.0, &block[it.1.clone()])).collect::<Vec<_>>(),
            [(one, &b"abc"[..]), (two, b"defg")]
        );
        assert_eq!(contents.add(b"abc"), one);
        assert_eq!(contents.take(), None, "also when it is in an earlier block");
        assert!(pieces(&block[..block.len() - 1]).is_err());
    }
}
