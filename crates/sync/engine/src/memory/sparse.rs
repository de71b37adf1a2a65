//! The memory of sparse resources.
//!
//! A sparse buffer or linear image maps its bytes to memory. An access goes to the memory that is bound at that time,
//! and has no address where none is bound. An optimally tiled sparse image keeps addresses of its own, and its blocks
//! store their memory, so that aliases are found. If memory is bound to an image as opaque bytes, any texel may lie
//! anywhere in it.

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_collections::IntervalMap;
use lavascope_sync_ir::MemoryId;

#[derive(Clone, Default)]
pub(crate) struct SparseBindings {
    /// By byte of the resource: the memory, and the number to add (with wrap-around) to get the address.
    bytes: IntervalMap<(u32, u64)>,
    /// For optimally tiled images: the memory by byte of the resource.
    opaque: IntervalMap<(u32, u64)>,
    /// The sparse block by own address.
    texels: IntervalMap<SparseBlock>,
    /// Number of bytes in each memory.
    bytes_by_memory: BTreeMap<u32, u64>,
}

/// The memory of a sparse block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SparseBlock {
    pub(crate) memory: MemoryId,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Default for SparseBlock {
    fn default() -> SparseBlock {
        SparseBlock { memory: MemoryId(0), offset: 0, size: 0 }
    }
}

/// Memory of a resource, and the own addresses that may lie there; none stands for all own addresses.
pub(crate) struct SparseMemory {
    pub(crate) memory: SparseBlock,
    pub(crate) addresses: Option<Range<u64>>,
}

impl SparseBindings {
    /// The memories in which the resource has parts.
    pub(crate) fn memories(&self) -> impl Iterator<Item = MemoryId> {
        self.bytes_by_memory.keys().map(|it| MemoryId(*it))
    }

    /// Binds bytes of a linear resource to addresses in a memory.
    pub(crate) fn bind_bytes(&mut self, bytes: Range<u64>, address: Option<(MemoryId, u64)>) {
        let new = address.map(|(memory, it)| (memory.0, it.wrapping_sub(bytes.start)));
        let bytes_by_memory = &mut self.bytes_by_memory;
        self.bytes.update(bytes, |part, pair| {
            move_bytes(bytes_by_memory, &part, pair.map(|it| it.0), new.map(|it| it.0));
            *pair = new;
        });
    }

    /// Binds opaque bytes to memory. Returns whether they had other memory before.
    pub(crate) fn bind_opaque(&mut self, bytes: Range<u64>, memory: Option<(MemoryId, u64)>) -> bool {
        let start = bytes.start;
        let new = memory.map(|(memory, offset)| (memory.0, offset.wrapping_sub(start)));
        let (mut has_moved, bytes_by_memory) = (false, &mut self.bytes_by_memory);
        self.opaque.update(bytes, |part, pair| {
            move_bytes(bytes_by_memory, &part, pair.map(|it| it.0), new.map(|it| it.0));
            has_moved |= pair.is_some() && *pair != new;
            *pair = new;
        });
        has_moved
    }

    /// Binds own addresses of an image to memory. Returns those that had other memory before.
    pub(crate) fn bind_texels(&mut self, own: &[Range<u64>], memory: Option<SparseBlock>) -> Vec<Range<u64>> {
        let mut moved = Vec::new();
        let bytes_by_memory = &mut self.bytes_by_memory;
        for range in own {
            self.texels.update(range.clone(), |part, sparse_block| {
                move_bytes(bytes_by_memory, &part, sparse_block.map(|it| it.memory.0), memory.map(|it| it.memory.0));
                if sparse_block.is_some() && *sparse_block != memory {
                    moved.push(part);
                }
                *sparse_block = memory;
            });
        }
        moved
    }

    /// The addresses of bytes of a linear resource.
    pub(crate) fn addresses(&self, bytes: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let bound = self.bytes.overlapping(bytes.clone());
        bound.map(|(it, (_, delta))| it.start.wrapping_add(*delta)..it.end.wrapping_add(*delta))
    }

    /// The bytes of a linear resource at some addresses.
    pub(crate) fn bytes_at(&self, addresses: &Range<u64>) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        for (bytes, (_, delta)) in self.bytes.overlapping(0..u64::MAX) {
            let own = bytes.start.wrapping_add(*delta)..bytes.end.wrapping_add(*delta);
            let both = own.start.max(addresses.start)..own.end.min(addresses.end);
            if !both.is_empty() {
                found.push(both.start.wrapping_sub(*delta)..both.end.wrapping_sub(*delta));
            }
        }
        found
    }

    /// The part of an image's own addresses that has memory.
    pub(crate) fn bound_ranges(&self, own: &Range<u64>) -> Vec<Range<u64>> {
        if !self.opaque.is_empty() {
            return vec![own.clone()];
        }
        let mut found: Vec<Range<u64>> = Vec::new();
        for (range, _) in self.texels.overlapping(own.clone()) {
            match found.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => found.push(range),
            }
        }
        found
    }

    /// All memory of an optimally tiled image.
    pub(crate) fn memory_blocks(&self) -> Vec<SparseMemory> {
        let opaque = self.opaque.overlapping(0..u64::MAX).map(|(bytes, (memory, delta))| {
            let memory = SparseBlock {
                memory: MemoryId(*memory),
                offset: bytes.start.wrapping_add(*delta),
                size: bytes.end - bytes.start,
            };
            SparseMemory { memory, addresses: None }
        });
        let texels = self.texels.overlapping(0..u64::MAX);
        opaque.chain(texels.map(|(own, memory)| SparseMemory { memory: *memory, addresses: Some(own) })).collect()
    }

    /// The memory of a linear resource, as addresses.
    pub(crate) fn all_addresses(&self) -> Vec<Range<u64>> {
        self.addresses(&(0..u64::MAX)).collect()
    }
}

/// Moves a number of bytes from one memory to another.
fn move_bytes(bytes_by_memory: &mut BTreeMap<u32, u64>, part: &Range<u64>, old: Option<u32>, new: Option<u32>) {
    let size = part.end - part.start;
    if let Some(new) = new {
        *bytes_by_memory.entry(new).or_default() += size;
    }
    if let Some(left) = old.and_then(|old| bytes_by_memory.get_mut(&old)) {
        *left -= size;
    }
    bytes_by_memory.retain(|_, size| *size != 0);
}
