//! Where the bytes of a trace come from: memory, or a file of which only what is needed is read.

use crate::format::block::{BLOCK_HEAD_SIZE, BLOCK_MAX, stored_size};

/// A file that can be read at any place, by several threads.
pub trait ReadAt: Send + Sync {
    fn size(&self) -> u64;

    /// Fills `to` from a place on. False where that cannot be done.
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

    /// What is in memory of it.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            TraceSource::Bytes(bytes) => bytes,
            TraceSource::File(_) => &[],
        }
    }

    /// So many bytes from a place on, or as many as there are.
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

    /// A block from its head on, at least as much of it as it says that it has.
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
