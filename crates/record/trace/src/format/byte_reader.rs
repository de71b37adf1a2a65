//! Reads little-endian bytes with bounds checks.

/// An error in the bytes, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormatError {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

/// Untrusted bytes, read from front to back.
#[derive(Clone)]
pub(crate) struct ByteReader<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(all: &'a [u8]) -> ByteReader<'a> {
        ByteReader { all, at: 0 }
    }

    pub(crate) fn error<T>(&self, what: &'static str) -> Result<T, FormatError> {
        Err(FormatError { at: self.at, what })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.all.len()
    }

    /// Number of bytes that were read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn left(&self) -> usize {
        self.all.len() - self.at
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        let Some(taken) = self.all[self.at..].get(..count) else { return self.error("it ends too early") };
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let taken = self.take(N)?;
        Ok(std::array::from_fn(|it| taken[it]))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, FormatError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FormatError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn u128(&mut self) -> Result<u128, FormatError> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    /// Seven bits in each byte, lowest first; the top bit means that more bytes follow.
    pub(crate) fn varint(&mut self) -> Result<u64, FormatError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return self.error("a number is too large");
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        self.error("a number is too long")
    }

    /// A number of items, each of which takes at least one byte, or at most `max`.
    pub(crate) fn count(&mut self, max: usize) -> Result<usize, FormatError> {
        let before = self.at;
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= max => Ok(count),
            _ => Err(FormatError { at: before, what: "a count is larger than what could be there" }),
        }
    }
}

pub(crate) fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut to = Vec::new();
                put_varint(&mut to, value);
                let mut from = ByteReader::new(&to);
                assert_eq!((from.varint(), from.is_empty()), (Ok(value), true));
            }
        }
    }

    #[test]
    fn what_is_too_long_or_cut_is_an_error_with_its_place() {
        assert_eq!(ByteReader::new(&[0xff; 11]).varint(), Err(FormatError { at: 10, what: "a number is too large" }));
        assert_eq!(ByteReader::new(&[0x80; 2]).varint(), Err(FormatError { at: 2, what: "it ends too early" }));
        assert_eq!(ByteReader::new(&[5]).count(4).map_err(|it| it.at), Err(0));
    }
}
