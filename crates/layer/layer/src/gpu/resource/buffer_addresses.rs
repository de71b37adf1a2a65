//! The buffers whose addresses the application asked for, and the table of them that shaders search.
//!
//! One table serves all draws. It is written again when work is submitted after a buffer came or went, into a copy that
//! no work may be reading, and the root tables of the work are led to it. Older work may see the newer table as well:
//! what it uses must not be destroyed, so it is still there. The last 4096 destroyed buffers are remembered, so that an
//! address in one of them can be named.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::Ordering;

use lavascope_instrument::interface::tables::{AddressRange, build_address_table};

use super::arena::{ArenaBlock, ArenaRegion};
use crate::gpu::pipeline::variants::ROOT_ADDRESSES;
use crate::gpu::{ChecksState, DeviceChecks};

/// Destroyed buffers that are remembered.
const DESTROYED_MAX: usize = 4096;
/// Words that a table has room for at the beginning: those of some buffers here and there.
const WORDS_MIN: usize = 16384;

/// What an address belongs to.
#[derive(Default)]
pub(crate) struct BufferAddresses {
    /// By address and buffer.
    live: BTreeMap<(u64, u64), u64>,
    /// By buffer.
    address_by_buffer: std::collections::HashMap<u64, u64>,
    destroyed: VecDeque<DestroyedBuffer>,
    /// Something changed since the table was written.
    is_stale: bool,
    pub(crate) copies: Vec<AddressTableCopy>,
    /// Which of the copies is up to date.
    pub(crate) current: usize,
}

/// A buffer that was destroyed.
struct DestroyedBuffer {
    range: AddressRange,
    buffer: u64,
    name: Option<String>,
}

/// One of the tables.
pub(crate) struct AddressTableCopy {
    block: ArenaBlock,
}

/// Where an address is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BufferAddressLookup {
    Nowhere,
    /// Inside of a buffer: the offset, and the size of the buffer.
    InBuffer {
        buffer: u64,
        offset: u64,
        bytes: u64,
    },
    /// Behind the end of a buffer: the distance, and the size of the buffer.
    PastEnd {
        buffer: u64,
        distance: u64,
        bytes: u64,
    },
    /// In a buffer that was destroyed; its name.
    Destroyed {
        buffer: u64,
        name: Option<String>,
    },
}

/// An address counts as behind a buffer if it is not farther away.
const NEAR: u64 = 1 << 20;

impl BufferAddresses {
    /// The application learned the address of a buffer.
    pub(crate) fn add(&mut self, buffer: u64, address: u64, bytes: u64) {
        if address == 0 || self.address_by_buffer.insert(buffer, address) == Some(address) {
            return;
        }
        self.live.insert((address, buffer), bytes);
        self.is_stale = true;
    }

    /// A buffer is destroyed.
    pub(crate) fn remove(&mut self, buffer: u64, name: Option<String>) {
        let Some(address) = self.address_by_buffer.remove(&buffer) else { return };
        let Some(bytes) = self.live.remove(&(address, buffer)) else { return };
        if self.destroyed.len() == DESTROYED_MAX {
            self.destroyed.pop_front();
        }
        self.destroyed.push_back(DestroyedBuffer { range: AddressRange { address, bytes }, buffer, name });
        self.is_stale = true;
    }

    /// Where an address is: in a buffer, in one that was, or behind one.
    pub(crate) fn find(&self, address: u64) -> BufferAddressLookup {
        let before = self.live.range(..=(address, u64::MAX)).next_back();
        if let Some(((start, buffer), bytes)) = before
            && address - start < *bytes
        {
            return BufferAddressLookup::InBuffer { buffer: *buffer, offset: address - start, bytes: *bytes };
        }
        let is_in = |it: &&DestroyedBuffer| address.wrapping_sub(it.range.address) < it.range.bytes;
        if let Some(gone) = self.destroyed.iter().rev().find(is_in) {
            return BufferAddressLookup::Destroyed { buffer: gone.buffer, name: gone.name.clone() };
        }
        match before {
            Some(((start, buffer), bytes)) if address - start - bytes < NEAR => {
                BufferAddressLookup::PastEnd { buffer: *buffer, distance: address - start - bytes, bytes: *bytes }
            }
            _ => BufferAddressLookup::Nowhere,
        }
    }

    /// Where buffers are that have addresses, and where some were. None if there were too many.
    pub(crate) fn ranges(&self) -> Option<Vec<Range<u64>>> {
        let range = |address: u64, bytes: u64| address..address.saturating_add(bytes);
        let live = self.live.iter().map(|(key, bytes)| range(key.0, *bytes));
        let gone = self.destroyed.iter().map(|it| range(it.range.address, it.range.bytes));
        (self.destroyed.len() < DESTROYED_MAX).then(|| live.chain(gone).collect())
    }

    fn words(&self, scratch: u64) -> Vec<u32> {
        let ranges: Vec<AddressRange> =
            self.live.iter().map(|(key, bytes)| AddressRange { address: key.0, bytes: *bytes }).collect();
        build_address_table(&ranges, scratch)
    }

    /// The device ends.
    pub(crate) fn take_blocks(&mut self) -> impl Iterator<Item = ArenaBlock> {
        self.copies.drain(..).map(|it| it.block)
    }

    fn current_region(&self) -> Option<ArenaRegion> {
        self.copies.get(self.current).map(|it| it.block.whole())
    }
}

impl ChecksState {
    /// A copy that no work may be reading, with room for a table.
    fn free_copy(&self, words: usize) -> Option<usize> {
        let is_free = |at: usize| {
            let is_used = self.submissions.iter().any(|it| it.address_copy == Some(at));
            at != self.addresses.current && !is_used
        };
        let fits = |at: usize| self.addresses.copies[at].block.whole().words as usize >= words;
        (0..self.addresses.copies.len()).find(|at| is_free(*at) && fits(*at))
    }
}

impl DeviceChecks {
    /// The first table, and scratch memory before it. None if there is no memory.
    pub(crate) fn create_address_table(&self) -> Option<()> {
        let block = self.take_block(WORDS_MIN as u64 * 4)?;
        block.whole().write(&build_address_table(&[], self.scratch.device_address));
        self.current_address_table.store(block.whole().device_address, Ordering::Release);
        self.state().addresses.copies.push(AddressTableCopy { block });
        Some(())
    }

    /// The table that is up to date, or was when work was submitted last.
    pub(crate) fn current_address_region(&self) -> ArenaRegion {
        self.permissive_addresses.with_device_address(self.current_address_table.load(Ordering::Acquire))
    }

    /// Writes the table again if something changed. Returns the current copy.
    pub(crate) fn publish_address_table(&self) -> Option<usize> {
        let mut state = self.state();
        if !state.addresses.is_stale {
            return (!state.addresses.copies.is_empty()).then_some(state.addresses.current);
        }
        let mut words = state.addresses.words(self.scratch.device_address);
        let mut copy = state.free_copy(words.len());
        if copy.is_none() {
            drop(state);
            let block = self.or_stop_checking(self.take_block((words.len() * 2).max(WORDS_MIN) as u64 * 4))?;
            state = self.state();
            state.addresses.copies.push(AddressTableCopy { block });
            // If the entries do not fit any more, the old table stays until the next time.
            words = state.addresses.words(self.scratch.device_address);
            copy = state.free_copy(words.len());
        }
        if let Some(copy) = copy {
            state.addresses.copies[copy].block.whole().write(&words);
            state.addresses.is_stale = false;
            state.addresses.current = copy;
            let now = state.addresses.current_region()?;
            self.current_address_table.store(now.device_address, Ordering::Release);
            for variant in state.variants.iter().filter(|it| it.reads_addresses) {
                variant.fixed_tables.iter().for_each(|it| write_address_table(it.root, now));
            }
        }
        Some(state.addresses.current)
    }
}

/// Leads a root table to another table of addresses. Tables of one device are near each other, mostly, so that one
/// word is written; where two are, that is done by one store.
pub(crate) fn write_address_table(root: ArenaRegion, table: ArenaRegion) {
    let (low, high) = (table.device_address as u32, (table.device_address >> 32) as u32);
    if root.read_word(ROOT_ADDRESSES + 1) == high {
        return root.write_word(ROOT_ADDRESSES, low);
    }
    root.write_word_pair(ROOT_ADDRESSES, [low, high]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_named_by_their_buffers() {
        let mut all = BufferAddresses::default();
        all.add(1, 0x1000, 0x100);
        all.add(2, 0x2000, 0x10);
        all.add(2, 0x2000, 0x10);
        assert_eq!(all.live.len(), 2, "asking again changes nothing");
        assert_eq!(all.find(0x1000), BufferAddressLookup::InBuffer { buffer: 1, offset: 0, bytes: 0x100 });
        assert_eq!(all.find(0x10ff), BufferAddressLookup::InBuffer { buffer: 1, offset: 0xff, bytes: 0x100 });
        assert_eq!(all.find(0x1100), BufferAddressLookup::PastEnd { buffer: 1, distance: 0, bytes: 0x100 });
        assert_eq!(all.find(0), BufferAddressLookup::Nowhere);
        assert_eq!(all.find(0xfff), BufferAddressLookup::Nowhere);
        all.remove(2, Some("target".to_owned()));
        assert_eq!(all.find(0x2008), BufferAddressLookup::Destroyed { buffer: 2, name: Some("target".to_owned()) });
        assert_eq!(all.words(0)[2], 1, "one range is left");
    }

    #[test]
    fn buffers_that_are_gone_are_forgotten_in_the_end() {
        let mut all = BufferAddresses::default();
        for at in 1..=DESTROYED_MAX as u64 + 1 {
            all.add(at, at << 16, 16);
            all.remove(at, None);
        }
        assert_eq!(all.find(1 << 16), BufferAddressLookup::Nowhere);
        assert_eq!(all.find(2 << 16), BufferAddressLookup::Destroyed { buffer: 2, name: None });
    }
}
