//! Compresses blocks of contents so that each refers to those before it: the same data often come again, a little
//! different, megabytes later.
//!
//! The blocks of a *group* are one stream of Zstandard, cut after each block. The first of them can be read alone, and
//! each other one after those before it. A group is small enough to be kept in memory.

use zstd::stream::raw::{CParameter, DParameter, Decoder, Encoder, InBuffer, Operation, OutBuffer};

use crate::format::block::BLOCK_MAX;

/// Most bytes of a group, decompressed: a block refers to bytes so far behind it.
pub(crate) const GROUP_BYTES_MAX: usize = 8 << 20;
/// Largest number of blocks in a group.
pub(crate) const GROUP_BLOCKS_MAX: u32 = 64;
const WINDOW_LOG: u32 = 23;
/// Entries of the table by which equal bytes are found. With the table of the level, most bytes that lie far behind
/// would be forgotten.
const TABLE_LOG: u32 = 19;
const _: () = assert!(1 << WINDOW_LOG == GROUP_BYTES_MAX);

/// Largest compressed size of a block.
pub(crate) fn stored_max(raw_size: usize) -> usize {
    raw_size + raw_size / 128 + 128
}

/// Compresses the blocks of a file, group after group.
#[derive(Default)]
pub(crate) struct WindowEncoder {
    encoder: Option<Encoder<'static>>,
    blocks: u32,
    bytes: usize,
}

impl WindowEncoder {
    /// The compressed bytes of the next block, and its number in its group. They may be a little more than before. None
    /// after an error.
    pub(crate) fn compress(&mut self, raw: &[u8]) -> Option<(u32, Vec<u8>)> {
        if self.blocks == GROUP_BLOCKS_MAX || self.bytes + raw.len() > GROUP_BYTES_MAX {
            self.end_group();
        }
        let number = self.blocks;
        let packed = self.try_compress(raw);
        if packed.is_none() {
            // What the stream may have of this block is not in the file.
            self.end_group();
            return None;
        }
        self.blocks += 1;
        self.bytes += raw.len();
        packed.map(|it| (number, it))
    }

    fn end_group(&mut self) {
        if self.encoder.as_mut().is_some_and(|it| it.reinit().is_err()) {
            self.encoder = None;
        }
        (self.blocks, self.bytes) = (0, 0);
    }

    fn try_compress(&mut self, raw: &[u8]) -> Option<Vec<u8>> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(new_encoder()?),
        };
        let mut packed = vec![0; stored_max(raw.len())];
        let (mut from, mut to) = (InBuffer::around(raw), OutBuffer::around(&mut packed[..]));
        while from.pos() < raw.len() {
            let before = (from.pos(), to.pos());
            encoder.run(&mut from, &mut to).ok()?;
            // It takes no more if there is no room for what it has.
            if (from.pos(), to.pos()) == before {
                return None;
            }
        }
        loop {
            let before = to.pos();
            if encoder.flush(&mut to).ok()? == 0 {
                break;
            }
            if to.pos() == before {
                return None;
            }
        }
        let size = to.pos();
        packed.truncate(size);
        (size <= BLOCK_MAX).then_some(packed)
    }
}

fn new_encoder() -> Option<Encoder<'static>> {
    let mut encoder = Encoder::new(1).ok()?;
    encoder.set_parameter(CParameter::WindowLog(WINDOW_LOG)).ok()?;
    encoder.set_parameter(CParameter::HashLog(TABLE_LOG)).ok()?;
    Some(encoder)
}

/// Decompresses the blocks of a group, one after the other.
pub(crate) struct WindowDecoder {
    decoder: Decoder<'static>,
    bytes: usize,
}

impl WindowDecoder {
    pub(crate) fn new() -> Option<WindowDecoder> {
        let mut decoder = Decoder::new().ok()?;
        // A file must not ask for a larger window.
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).ok()?;
        Some(WindowDecoder { decoder, bytes: 0 })
    }

    /// The next block of the group. None if it does not have the stated size, or is damaged.
    pub(crate) fn decompress(&mut self, stored: &[u8], raw_size: usize) -> Option<Vec<u8>> {
        self.bytes += raw_size;
        if raw_size > BLOCK_MAX || self.bytes > GROUP_BYTES_MAX {
            return None;
        }
        // One byte more, to see whether there is more.
        let mut raw = vec![0; raw_size + 1];
        let (mut from, mut to) = (InBuffer::around(stored), OutBuffer::around(&mut raw[..]));
        loop {
            let before = (from.pos(), to.pos());
            self.decoder.run(&mut from, &mut to).ok()?;
            if (from.pos(), to.pos()) == before {
                break;
            }
        }
        let is_right = from.pos() == stored.len() && to.pos() == raw_size;
        raw.truncate(raw_size);
        is_right.then_some(raw)
    }
}

#[cfg(test)]
mod tests {
    use lavascope_test_support::TestRng;

    use super::*;

    fn random(rng: &mut TestRng, size: usize) -> Vec<u8> {
        (0..size).map(|_| rng.next_u64() as u8).collect()
    }

    #[test]
    fn data_that_come_again_are_small_and_a_group_is_bounded() {
        let mut rng = TestRng::new(3);
        let first = random(&mut rng, 400 << 10);
        let (mut encoder, mut all) = (WindowEncoder::default(), Vec::new());
        for round in 0..60 {
            let mut block = vec![round as u8; 1000];
            block.extend(&first[round * 500..]);
            all.push((encoder.compress(&block), block));
        }
        let sizes: Vec<usize> = all.iter().map(|it| it.0.as_ref().map_or(0, |it| it.1.len())).collect();
        let numbers: Vec<u32> = all.iter().map(|it| it.0.as_ref().map_or(0, |it| it.0)).collect();
        assert!(numbers.iter().filter(|it| **it == 0).count() < 6, "{numbers:?}");
        assert!(sizes.iter().filter(|it| **it > 100_000).count() < 6, "{sizes:?}");
        let mut decoder = WindowDecoder::new().expect("memory");
        for (packed, block) in &all {
            let (number, packed) = packed.as_ref().expect("there is room");
            if *number == 0 {
                decoder = WindowDecoder::new().expect("memory");
            }
            assert_eq!(decoder.decompress(packed, block.len()).as_ref(), Some(block));
        }
    }

    #[test]
    fn what_does_not_compress_is_found_again() {
        let mut rng = TestRng::new(4);
        let (mut encoder, block) = (WindowEncoder::default(), random(&mut rng, 5000));
        let (number, first) = encoder.compress(&block).expect("there is room");
        assert!(number == 0 && first.len() > 5000 && first.len() <= stored_max(5000));
        let (number, second) = encoder.compress(&block).expect("easy");
        assert!(number == 1 && second.len() < 100, "{} bytes", second.len());
        let mut decoder = WindowDecoder::new().expect("memory");
        assert_eq!(decoder.decompress(&first, 5000).as_ref(), Some(&block));
        assert_eq!(decoder.decompress(&second, 5000).as_ref(), Some(&block));
        assert!(WindowDecoder::new().expect("memory").decompress(&second, 5000).is_none(), "it is not the first");
    }

    #[test]
    fn damage_is_nothing() {
        let mut encoder = WindowEncoder::default();
        let block: Vec<u8> = (0..5000u32).map(|it| (it / 9 * it) as u8).collect();
        let (_, packed) = encoder.compress(&block).expect("easy");
        let decode = |bytes: &[u8], size: usize| WindowDecoder::new().expect("memory").decompress(bytes, size);
        assert!(decode(&packed, 4999).is_none() && decode(&packed, 5001).is_none());
        assert!(decode(&packed[..packed.len() - 1], 5000).is_none() && decode(&[], 5000).is_none());
        assert!(decode(&packed, BLOCK_MAX + 1).is_none());
        for at in 0..packed.len() {
            let mut bad = packed.clone();
            bad[at] ^= 0x55;
            // It may decode to other bytes; their hash says so.
            let _ = decode(&bad, 5000);
        }
        let mut decoder = WindowDecoder::new().expect("memory");
        assert_eq!(decoder.decompress(&packed, 5000), Some(block));
        assert_eq!(decoder.decompress(&[1, 2, 3], 5000), None);
    }
}
