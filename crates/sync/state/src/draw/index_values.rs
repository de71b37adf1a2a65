//! Which vertices an indexed draw reads, where the indices are known.
//!
//! Where only the host can write them: it may do so until the draw is submitted, so nothing is told of these vertices
//! before that. And where the same command buffer updated them with what stands in the command.

use std::ops::Range;

use lavascope_abi as vk;
use lavascope_sync_ir::{Access, ResourceId, SemaphorePoint};

use crate::device::TrackedDevice;
use crate::draw::vertex_input::{BoundIndexBuffer, FetchedElements, VertexFetch};

/// The vertices of a draw, by their indices.
#[derive(Clone, Debug)]
pub(crate) struct IndexedVertices {
    buffer: u64,
    /// Of the indices, in the buffer.
    bytes: Range<u64>,
    /// Bytes of an index.
    size: usize,
    vertex_offset: i32,
    read: Vec<VertexFetch>,
    /// Whether it is not certain that the draw is made.
    pub(crate) is_conditional: bool,
}

/// What is told of the writes of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HostWriteCoverage {
    #[default]
    None,
    /// All to some memories, which are told of before anything in them is submitted; nothing of others.
    Some,
    All,
}

/// Ways in which the host may write what was submitted already. A submission sees what the host wrote before it; what
/// comes later takes a dependency behind the host, and something that makes the device wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitsForHost {
    by_event: bool,
    by_barrier: bool,
    by_timeline: bool,
}

const HOST: u64 = vk::PipelineStageFlags2::HOST.0;

impl WaitsForHost {
    /// A wait for events has these stages in its first scope.
    pub(crate) fn note_event(&mut self, stages: u64) {
        self.by_event |= stages & HOST != 0;
    }

    /// A barrier has.
    #[inline]
    pub(crate) fn note_barrier(&mut self, stages: u64) {
        self.by_barrier |= stages & HOST != 0;
    }

    pub(crate) fn note_wait(&mut self, point: SemaphorePoint) {
        self.by_timeline |= point.value.is_some();
    }

    /// Whether what is submitted can be read before the host writes it.
    pub(crate) fn is_possible(self) -> bool {
        self.by_event || self.by_barrier && self.by_timeline
    }
}

/// More indices are not looked at for each submission.
pub(crate) const INDICES_MAX: u64 = 4096;
/// Bytes of updates that a command buffer remembers.
const UPDATES_MAX: usize = 1 << 18;

/// What a command buffer put into index buffers and parameters by `vkCmdUpdateBuffer`, as far as nothing can have changed
/// it since.
#[derive(Debug, Default)]
pub(crate) struct IndexBufferUpdates {
    all: Vec<IndexBufferUpdate>,
    bytes: usize,
}

#[derive(Debug)]
struct IndexBufferUpdate {
    /// The place of the command.
    index: u32,
    resource: ResourceId,
    /// Where it begins in the buffer.
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

    /// Commands from this place on are as if they had not been.
    pub(crate) fn cancel_from(&mut self, index: u32) {
        self.all.retain(|it| it.index < index);
    }

    /// A command makes these accesses.
    #[inline]
    pub(crate) fn invalidate_written(&mut self, accesses: &[Access]) {
        if !self.all.is_empty() {
            accesses.iter().filter(|it| is_write(it.access)).for_each(|it| self.remove_resource(it.resource));
        }
    }

    fn remove_resource(&mut self, resource: ResourceId) {
        self.all.retain(|it| it.resource != resource);
    }

    /// Others may write while the command buffer waits.
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
    /// A command buffer updates a buffer.
    pub(crate) fn record_index_update(&mut self, buffer: vk::CommandBuffer, to: u64, first: u64, bytes: &[u8]) {
        let Some(target) = self.buffers.get(to).filter(|it| it.usage & READ_USAGES != 0) else { return };
        let (Some(resource), memory) = (target.resource, target.memory) else { return };
        // By another name it could be written unseen.
        if self.memories.get(memory).is_some_and(|it| it.is_unaliased(resource))
            && let Some(own) = self.command_buffers.get_mut(buffer.0)
        {
            let index = own.count.saturating_sub(1);
            own.state.index_updates.add(IndexBufferUpdate { index, resource, first, bytes: bytes.to_vec() });
        }
    }

    /// The vertices of a draw whose indices the same command buffer put where they are.
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

    /// The vertices of a draw whose indices will be known; none where they will not.
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
        let is_told = self.host_write_coverage == HostWriteCoverage::All || memory.has_reported_contents();
        let is_filled = is_told && memory.is_filled_by_host(buffer.resource?);
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

    /// Adds what is read of the vertices that the indices are about now.
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

/// Usages of buffers whose contents are read here: indices, and the parameters of indirect commands.
pub(crate) const READ_USAGES: u64 =
    (vk::BufferUsageFlags::INDEX_BUFFER.0 | vk::BufferUsageFlags::INDIRECT_BUFFER.0) as u64;

/// Whether a bit of `VkAccessFlags2` changes anything. What is not known to be a read does.
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

/// The vertices that indices of some bytes each are about. The largest index is taken for the one that begins another
/// primitive.
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
