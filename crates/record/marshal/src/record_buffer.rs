//! A buffer of words to which records are appended.

use lavascope_abi::Command;
use lavascope_record::encoding::{HEADER_SIZE, ORDER_EDGES_SHIFT, Omissions, RecordHeader, RecordPhase};

/// A growing sequence of records.
#[derive(Default)]
pub struct RecordBuffer {
    words: Vec<u64>,
    /// The offset of the record that is being written.
    start: usize,
}

impl RecordBuffer {
    pub fn with_capacity(words: usize) -> RecordBuffer {
        RecordBuffer { words: Vec::with_capacity(words), start: 0 }
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Appends order edges to the last record, and returns the complete record.
    #[inline(always)]
    pub fn add_order_edges(&mut self, order_edges: &[u64]) -> &[u64] {
        if !order_edges.is_empty() {
            self.words[self.start + 1] += (order_edges.len() as u64) << ORDER_EDGES_SHIFT;
            self.words.extend_from_slice(order_edges);
        }
        self.last_record()
    }

    /// Appends a record that was made elsewhere.
    pub fn append(&mut self, record: &[u64]) {
        self.start = self.words.len();
        self.words.extend_from_slice(record);
    }

    /// Removes all records and keeps the allocation.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.words.clear();
        self.start = 0;
    }

    /// Begins a record and claims the space of its header.
    pub(crate) fn begin(&mut self) {
        self.start = self.words.len();
        self.words.extend_from_slice(&[0; HEADER_SIZE / 8]);
    }

    /// Claims a zeroed block of `size` bytes. Returns its offset in the record.
    pub(crate) fn claim(&mut self, size: usize) -> usize {
        let at = self.words.len();
        self.words.resize(at + size.div_ceil(8), 0);
        (at - self.start) * 8
    }

    /// Bytes at an offset of the record that is being written.
    ///
    /// # Safety
    ///
    /// They must be in claimed blocks of this record.
    pub(crate) unsafe fn bytes(&mut self, offset: usize, size: usize) -> &mut [u8] {
        debug_assert!(offset + size <= (self.words.len() - self.start) * 8, "what is written was claimed");
        let first = self.words.as_mut_ptr().cast::<u8>().wrapping_add(self.start * 8 + offset);
        // SAFETY: `claim` extends the buffer by zeros, so by the contract these bytes are in it and initialized.
        unsafe { std::slice::from_raw_parts_mut(first, size) }
    }

    pub(crate) fn write_word(&mut self, offset: usize, value: u64) {
        self.words[self.start + offset / 8] = value;
    }

    pub(crate) fn word(&self, offset: usize) -> u64 {
        self.words[self.start + offset / 8]
    }

    /// # Safety
    ///
    /// As for [`RecordBuffer::bytes`].
    pub(crate) unsafe fn zero(&mut self, offset: usize, size: usize) {
        // SAFETY: by the contract the bytes were claimed.
        unsafe { self.bytes(offset, size) }.fill(0);
    }

    /// Ends the record: writes its header, and returns its words.
    pub(crate) fn end(&mut self, command: Command, kind: RecordPhase, call: u64, remarks: Omissions) -> &[u64] {
        assert!(self.words.len() - self.start <= u32::MAX as usize, "a record is at most 32 GiB");
        let head = RecordHeader {
            body_words: (self.words.len() - self.start) as u32,
            command: command as u16,
            kind: kind as u8,
            omissions: remarks.0,
            call,
            order_edge_count: 0,
        };
        let [first, second] = head.to_words();
        self.words[self.start] = first;
        self.words[self.start + 1] = second;
        &self.words[self.start..]
    }

    /// Claims space for a whole record of known size, for fast packing.
    #[inline(always)]
    pub(crate) fn claim_record(&mut self, words: usize) -> *mut u64 {
        self.start = self.words.len();
        self.words.reserve(words);
        self.words.spare_capacity_mut().as_mut_ptr().cast()
    }

    /// Makes the claimed record part of the buffer.
    ///
    /// # Safety
    ///
    /// `words` must be the size that was claimed last, and every word must be written.
    #[inline(always)]
    pub(crate) unsafe fn commit_record(&mut self, words: usize) -> &[u64] {
        // SAFETY: by the contract `claim_record` reserved `words` after `start`, the end of the buffer at that time,
        // and all of them are written.
        unsafe { self.words.set_len(self.start + words) };
        self.last_record()
    }

    #[inline(always)]
    pub(crate) fn last_record(&self) -> &[u64] {
        // SAFETY: `start` is zero, or the end of the buffer when a record began. Only `clear` shortens the buffer, and
        // it sets `start` to zero.
        unsafe { self.words.get_unchecked(self.start..) }
    }
}
