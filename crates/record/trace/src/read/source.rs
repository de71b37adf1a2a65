//! The source of a trace's bytes: memory, or a file of which only the necessary parts are read.

use crate::format::block::{BLOCK_HEAD_SIZE, BLOCK_MAX, stored_size};

/// A file that several threads can read at any position.
pub trait ReadAt: Send + Sync {
    fn size(&self) -> u64;

    /// Fills `to` from a position. Returns false on an error.
    fn read_at(&self, at: u64, to: &mut [u8]) -> bool;
}

#[derive(Clone, Copy)]
pub(crate) enum TraceSource<'a> {
    Bytes(&'a [u8]),
    File(&'a dyn ReadAt),
}

impl<'a> TraceSource<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            TraceSource::Bytes(bytes) => bytes.len(),
            TraceSource::File(file) => usize::try_from(file.size()).unwrap_or(usize::MAX),
        }
    }

    /// The bytes that are in memory.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            TraceSource::Bytes(bytes) => bytes,
            TraceSource::File(_) => &[],
        }
    }

    /// `size` bytes from a position, or fewer at the end.
    pub(crate) fn get<'r>(self, at: u64, size: usize, room: &'r mut Vec<u8>) -> &'r [u8]
    where
        'a: 'r,
    {
        let first = usize::try_from(at).unwrap_or(usize::MAX).min(self.len());
        let size = size.min(self.len() - first);
        match self {
            TraceSource::Bytes(bytes) => &bytes[first..first + size],
            TraceSource::File(file) => {
                room.resize(size, 0);
                if file.read_at(at, room) { room } else { &[] }
            }
        }
    }

    /// A block with its head, and at least the bytes that the head announces.
    pub(crate) fn block<'r>(self, at: u64, room: &'r mut Vec<u8>) -> &'r [u8]
    where
        'a: 'r,
    {
        let size = match self {
            TraceSource::Bytes(_) => usize::MAX,
            TraceSource::File(_) => {
                let stored = stored_size(self.get(at, BLOCK_HEAD_SIZE, room)).unwrap_or(0);
                BLOCK_HEAD_SIZE + stored.min(BLOCK_MAX)
            }
        };
        self.get(at, size, room)
    }
}
