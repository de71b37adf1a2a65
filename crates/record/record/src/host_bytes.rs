//! Bytes of the host's own memory that a call reads and its record does not hold: only the image that the call writes
//! defines their number.
//!
//! The image of such a record ([`beside::HOST_BYTES`]), which stands directly before that of the call:
//!
//! ```text
//! word 0   which region of the call reads them
//! word 1   which byte of the region's memory is the first
//! word 2   how many bytes
//! bytes    and zeros up to a whole word
//! ```
//!
//! It has a call number of its own, as what the host wrote ([`HostWrite`](crate::HostWrite)).

use lavascope_abi::bytes_of_slice;

use crate::encoding::{HEADER_SIZE, RecordHeader, beside};

const HEAD_WORDS: usize = HEADER_SIZE / 8;
/// Words of the image before the bytes.
pub(crate) const FIRST_BYTE: usize = 3;

/// A part of what one region of a call reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostBytes<'a> {
    pub region: u64,
    /// Number of bytes of the region's memory before these.
    pub first: u64,
    pub bytes: &'a [u8],
}

impl<'a> HostBytes<'a> {
    /// Parses an entry; none if it is not a complete one of this kind.
    pub fn parse(record: &'a [u64]) -> Option<HostBytes<'a>> {
        let head = RecordHeader::from_words(*record.first()?, *record.get(1)?);
        if head.kind != beside::HOST_BYTES || head.size() != record.len() * 8 {
            return None;
        }
        let image = record.get(HEAD_WORDS..head.body_words as usize)?;
        let (&[region, first, size], rest) = image.split_first_chunk::<FIRST_BYTE>()?;
        let bytes = bytes_of_slice(rest);
        let size = usize::try_from(size).ok().filter(|it| it.div_ceil(8) == rest.len())?;
        let (bytes, padding) = bytes.split_at(size);
        first.checked_add(size as u64)?;
        padding.iter().all(|it| *it == 0).then_some(HostBytes { region, first, bytes })
    }

    /// Appends the words of an entry with its number and its order edges.
    pub fn to_words(self, call: u64, order_edges: &[u64], words: &mut Vec<u64>) {
        words.clear();
        words.extend([0, 0, self.region, self.first, self.bytes.len() as u64]);
        let (whole, rest) = self.bytes.as_chunks::<8>();
        words.extend(whole.iter().map(|it| u64::from_le_bytes(*it)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            words.push(u64::from_le_bytes(last));
        }
        let (body_words, edge_count) = (words.len() as u32, order_edges.len() as u32);
        let head = RecordHeader {
            body_words,
            command: 0,
            kind: beside::HOST_BYTES,
            omissions: 0,
            call,
            order_edge_count: edge_count,
        };
        words[..HEAD_WORDS].copy_from_slice(&head.to_words());
        words.extend_from_slice(order_edges);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_what_is_wrong_is_nothing() {
        for size in [0, 1, 7, 8, 9, 64] {
            let all: Vec<u8> = (1..=size).collect();
            let host_bytes = HostBytes { region: 2, first: 48, bytes: &all };
            let mut words = Vec::new();
            host_bytes.to_words(5, &[9], &mut words);
            assert_eq!(HostBytes::parse(&words), Some(host_bytes));
            assert_eq!(RecordHeader::from_words(words[0], words[1]).completed_call(), Some(5));
            for cut in 0..words.len() {
                assert_eq!(HostBytes::parse(&words[..cut]), None);
            }
            words[4] += 8;
            assert_eq!(HostBytes::parse(&words), None);
        }
    }
}
