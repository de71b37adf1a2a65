//! Finds which vertices an indexed draw reads, if the index values are known.
//!
//! They are known if only the host can write them. The host may write until submission, so these draws are completed at
//! submission. They are also known if the same command buffer wrote them with `vkCmdUpdateBuffer`.

use std::ops::Range;

use lavascope_abi as vk;
use lavascope_sync_ir::{Access, ResourceId, SemaphorePoint};

use crate::device::TrackedDevice;
use crate::draw::vertex_input::{BoundIndexBuffer, FetchedElements, VertexFetch};

/// The vertices of a draw, given by indices.
#[derive(Clone, Debug)]
pub(crate) struct IndexedVertices {
    buffer: u64,
    /// The bytes of the indices in the buffer.
    bytes: Range<u64>,
    /// Size of an index in bytes.
    size: usize,
    vertex_offset: i32,
    read: Vec<VertexFetch>,
    /// Whether conditional rendering may skip the draw.
    pub(crate) is_conditional: bool,
}

/// Which host writes to mapped memory are reported to the tracker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HostWriteCoverage {
    #[default]
    None,
    /// All writes to some memories, reported before a submission that reads them; no writes to others.
    Some,
    All,
}

/// Ways in which the host may write after a submission. A submission sees earlier host writes. A later write is ordered
/// only if the device waits for the host, with a dependency from the host stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitsForHost {
    by_event: bool,
    by_barrier: bool,
    by_timeline: bool,
}

const HOST: u64 = vk::PipelineStageFlags2::HOST.0;

impl WaitsForHost {
    /// Called for a wait for events whose first scope has these stages.
    pub(crate) fn note_event(&mut self, stages: u64) {
        self.by_event |= stages & HOST != 0;
    }

    /// Called for a barrier with these stages.
    #[inline]
    pub(crate) fn note_barrier(&mut self, stages: u64) {
        self.by_barrier |= stages & HOST != 0;
    }

    pub(crate) fn note_wait(&mut self, point: SemaphorePoint) {
        self.by_timeline |= point.value.is_some();
    }

    /// Whether a submission can wait until the host has written what it reads.
    pub(crate) fn is_possible(self) -> bool {
        self.by_event || self.by_barrier && self.by_timeline
    }
}

/// Draws with more indices are not evaluated at submission.
pub(crate) const INDICES_MAX: u64 = 4096;
/// A command buffer stores at most this many bytes of updates.
const UPDATES_MAX: usize = 1 << 18;

/// What `vkCmdUpdateBuffer` wrote into index and parameter buffers in this command buffer, until another command may
/// overwrite it.
#[derive(Debug, Default)]
pub(crate) struct IndexBufferUpdates {
    all: Vec<IndexBufferUpdate>,
    bytes: usize,
}

#[derive(Debug)]
struct IndexBufferUpdate {
    /// The index of the command.
    index: u32,
    resource: ResourceId,
    /// The offset of the first byte in the buffer.
    first: u64,
    bytes: Vec<u8>,
}

impl IndexBufferUpdates {
    fn add(&mut self, update: IndexBufferUpdate) {
        if self.bytes + update.bytes.len() <= UPDATES_MAX {
            self.bytes += update.bytes.len();
            self.all.push(update);
        }
    }

    /// Removes the updates of commands from this index on.
    pub(crate) fn cancel_from(&mut self, index: u32) {
        self.all.retain(|it| it.index < index);
    }

    /// Removes updates that these accesses may overwrite.
    #[inline]
    pub(crate) fn invalidate_written(&mut self, accesses: &[Access]) {
        if !self.all.is_empty() {
            accesses.iter().filter(|it| is_write(it.access)).for_each(|it| self.remove_resource(it.resource));
        }
    }

    fn remove_resource(&mut self, resource: ResourceId) {
        self.all.retain(|it| it.resource != resource);
    }

    /// Called when the command buffer waits: others may write in the meantime.
    pub(crate) fn clear(&mut self) {
        *self = IndexBufferUpdates::default();
    }

    pub(crate) fn read(&self, resource: ResourceId, bytes: &Range<u64>) -> Option<&[u8]> {
        self.all.iter().filter(|it| it.resource == resource).find_map(|update| {
            let at = |it: u64| it.checked_sub(update.first).and_then(|it| usize::try_from(it).ok());
            update.bytes.get(at(bytes.start)?..at(bytes.end)?)
        })
    }
}

impl TrackedDevice {
    /// Stores the data of `vkCmdUpdateBuffer`.
    pub(crate) fn record_index_update(&mut self, buffer: vk::CommandBuffer, to: u64, first: u64, bytes: &[u8]) {
        let Some(target) = self.buffers.get(to).filter(|it| it.usage & READ_USAGES != 0) else { return };
        let (Some(resource), memory) = (target.resource, target.memory) else { return };
        // A write through an alias would not be noticed.
        if self.memories.get(memory).is_some_and(|it| it.is_unaliased(resource))
            && let Some(own) = self.command_buffers.get_mut(buffer.0)
        {
            let index = own.count.saturating_sub(1);
            own.state.index_updates.add(IndexBufferUpdate { index, resource, first, bytes: bytes.to_vec() });
        }
    }

    /// The vertices of a draw whose indices the same command buffer wrote.
    pub(crate) fn vertices_from_updates(
        &self,
        updates: &IndexBufferUpdates,
        bound: &BoundIndexBuffer,
        indices: &FetchedElements,
        vertex_offset: Option<i32>,
    ) -> Option<FetchedElements> {
        let (vertex_offset, part) = (vertex_offset?, indices.single_range().filter(|_| !updates.all.is_empty())?);
        let buffer = self.buffers.get(bound.buffer)?;
        let is_alone = self.memories.get(buffer.memory)?.is_unaliased(bound.resource);
        let at = |index: u64| Some(bound.bytes.start.saturating_add(index.checked_mul(bound.size)?));
        let bytes = updates.read(bound.resource, &(at(part.start)?..at(part.end)?)).filter(|_| is_alone)?;
        Some(vertices_from_indices(bytes, bound.size as usize, vertex_offset))
    }

    /// The vertices of a draw whose indices are known at submission; none if they will not be.
    pub(crate) fn host_indexed_vertices(
        &self,
        bound: &BoundIndexBuffer,
        indices: &FetchedElements,
        vertex_offset: Option<i32>,
        read: impl Iterator<Item = VertexFetch>,
    ) -> Option<IndexedVertices> {
        let (vertex_offset, part) = (vertex_offset?, indices.single_range()?);
        let buffer = self.buffers.get(bound.buffer).filter(|_| self.host_write_coverage != HostWriteCoverage::None)?;
        let memory = self.memories.get(buffer.memory)?;
        let is_host_write_reported =
            self.host_write_coverage == HostWriteCoverage::All || memory.has_reported_contents();
        let is_filled = is_host_write_reported && memory.is_filled_by_host(buffer.resource?);
        let at = |index: u64| Some(bound.bytes.start.saturating_add(index.checked_mul(bound.size)?));
        let bytes = at(part.start)?..at(part.end)?;
        let is_inside = bytes.end <= bound.bytes.end && part.end - part.start <= INDICES_MAX;
        let read: Vec<VertexFetch> = read.collect();
        (is_filled && is_inside && !read.is_empty()).then_some(IndexedVertices {
            buffer: bound.buffer,
            bytes,
            size: bound.size as usize,
            vertex_offset,
            read,
            is_conditional: false,
        })
    }

    /// Adds the vertex reads for the current index values.
    pub(crate) fn add_indexed(&self, indexed_vertices: &IndexedVertices, found: &mut Vec<Access>) {
        let (known, taken) = (found.len(), self.fetched_vertices(indexed_vertices).unwrap_or(FetchedElements::Unknown));
        indexed_vertices.read.iter().for_each(|it| it.add_accesses(&taken, found));
        if indexed_vertices.is_conditional {
            found[known..].iter_mut().for_each(|it| it.certainty = it.certainty.if_made());
        }
    }

    fn fetched_vertices(&self, indexed_vertices: &IndexedVertices) -> Option<FetchedElements> {
        if self.waits_for_host.is_possible() || self.host_write_coverage == HostWriteCoverage::None {
            return None;
        }
        let buffer = self.buffers.get(indexed_vertices.buffer)?;
        let indices = self.memories.get(buffer.memory)?.host_bytes(buffer.resource?, indexed_vertices.bytes.clone())?;
        Some(vertices_from_indices(&indices, indexed_vertices.size, indexed_vertices.vertex_offset))
    }
}

/// Usages of buffers whose contents the tracker evaluates: indices and indirect parameters.
pub(crate) const READ_USAGES: u64 =
    (vk::BufferUsageFlags::INDEX_BUFFER.0 | vk::BufferUsageFlags::INDIRECT_BUFFER.0) as u64;

/// Whether a bit of `VkAccessFlags2` is a write. Unknown bits count as writes.
fn is_write(access: u64) -> bool {
    use vk::AccessFlags2 as A;
    const READS: u64 = A::INDIRECT_COMMAND_READ.0
        | A::INDEX_READ.0
        | A::VERTEX_ATTRIBUTE_READ.0
        | A::UNIFORM_READ.0
        | A::TRANSFER_READ.0
        | A::SHADER_SAMPLED_READ.0
        | A::SHADER_STORAGE_READ.0;
    access & !READS != 0
}

/// The range of vertices that the indices name. The largest index value counts as primitive restart.
fn vertices_from_indices(indices: &[u8], size: usize, vertex_offset: i32) -> FetchedElements {
    FetchedElements::from_ranges(index_numbers(indices, size, vertex_offset).map(|it| (it, 1)))
}

pub(crate) fn index_numbers(indices: &[u8], size: usize, vertex_offset: i32) -> impl Iterator<Item = u32> {
    let number = |it: &[u8]| it.iter().rev().fold(0_i64, |all, byte| all << 8 | i64::from(*byte));
    let restart = (1_i64 << (8 * size)) - 1;
    let all = indices.chunks_exact(size).map(number).filter(move |it| *it != restart);
    all.filter_map(move |it| u32::try_from(it + i64::from(vertex_offset)).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_follow_from_indices() {
        let of = |indices: &[u16], offset| {
            let bytes: Vec<u8> = indices.iter().flat_map(|it| it.to_le_bytes()).collect();
            vertices_from_indices(&bytes, 2, offset)
        };
        assert_eq!(of(&[2, 1, 0, 1, 2, 3], 0), FetchedElements::Single(0..4));
        assert_eq!(of(&[0, 9, 0xffff, 1], 10), FetchedElements::Multiple(vec![10..12, 19..20]));
        assert_eq!(of(&[3, 5], -4), FetchedElements::Single(1..2), "before the first there is none");
        assert_eq!(of(&[0xffff; 3], 0), FetchedElements::Single(0..0));
        let far: Vec<u16> = (0..100).map(|it| it * 2).collect();
        assert_eq!(of(&far, 0), FetchedElements::Within(0..199));
        assert_eq!(vertices_from_indices(&[7, 255, 6], 1, 0), FetchedElements::Single(6..8));
        assert_eq!(vertices_from_indices(&[1, 0, 0, 0, 255, 255, 255, 255], 4, 0), FetchedElements::Single(1..2));
    }
}
