//! Reading integers and following pointers, in C memory and in records alike.
//!
//! The rules are written once against [`ReadableMemory`]. `marshal` implements it for addresses, this file for offsets.

use lavascope_abi::desc::IntegerLocation;

/// Memory to read from. Nothing is read through a null pointer or a mark.
pub trait ReadableMemory {
    /// An unsigned integer of 1, 2, 4 or 8 bytes.
    fn read(&self, at: u64, width: u8) -> Option<u64>;

    /// The target of the pointer at `at`.
    fn follow(&self, at: u64) -> Option<u64>;

    /// A 32-bit number.
    fn u32(&self, at: u64) -> Option<u32> {
        self.read(at, 4).map(|it| it as u32)
    }

    /// An integer of the structure at `base`.
    fn read_field(&self, base: u64, place: IntegerLocation) -> Option<u64> {
        let owner = match place.through {
            IntegerLocation::HERE => base,
            through => self.follow(base + u64::from(through))?,
        };
        self.read(owner + u64::from(place.at), place.width)
    }
}

/// The body of a record, checked or not: a read outside of it returns none.
#[derive(Clone, Copy)]
pub struct RecordMemory<'a> {
    pub body: &'a [u8],
}

impl ReadableMemory for RecordMemory<'_> {
    fn read(&self, at: u64, width: u8) -> Option<u64> {
        let start = usize::try_from(at).ok()?;
        let bytes = self.body.get(start..start.checked_add(usize::from(width))?)?;
        // Most reads are words and half words.
        match *bytes {
            [a, b, c, d, e, f, g, h] => Some(u64::from_le_bytes([a, b, c, d, e, f, g, h])),
            [a, b, c, d] => Some(u64::from(u32::from_le_bytes([a, b, c, d]))),
            [a, b] => Some(u64::from(u16::from_le_bytes([a, b]))),
            [a] => Some(u64::from(a)),
            _ => None,
        }
    }

    fn follow(&self, at: u64) -> Option<u64> {
        self.read(at, 8).filter(|it| (super::encoding::HEADER_SIZE as u64..self.body.len() as u64).contains(it))
    }
}
