//! Memories with indices, or with parameters of indirect commands. Validation needs their contents.

use lavascope_abi::*;

use super::write_detection::WriteDetection;
use super::{HostVisibleMemories, lock};
use crate::loader::pnext_chain::find_in_chain;

/// Whether a memory has indices: then all host writes to it must be recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IndexState {
    #[default]
    None,
    Tracked,
    /// It was written before it had any, or there is too much of it.
    Untracked,
}

impl IndexState {
    /// Writes before this point are not found any more.
    pub(super) fn on_unmap(&mut self) {
        if *self == IndexState::None {
            *self = IndexState::Untracked;
        }
    }
}

/// The largest memory that is checked for indices before each submission, and the largest sum of them.
pub(super) const INDEX_MEMORY_MAX: u64 = 128 << 10;
const INDEX_BYTES_MAX: u64 = 256 << 10;

impl HostVisibleMemories {
    /// A buffer was made, or got its memory.
    ///
    /// # Safety
    ///
    /// The parameters must be those of the command, which succeeded.
    pub(super) unsafe fn track_index_buffers(&self, command: Command, params: *const u8) {
        match command {
            Command::CreateBuffer => {
                // SAFETY: the caller's word; a call that succeeded wrote the buffer.
                let (info, buffer) = unsafe {
                    let params = &*params.cast::<CreateBufferParams>();
                    (&*params.p_create_info.as_ptr(), params.p_buffer.as_ptr().read())
                };
                let ty = StructureType::BUFFER_USAGE_FLAGS_2_CREATE_INFO;
                // SAFETY: as above; the structure of this type.
                let more =
                    unsafe { find_in_chain::<BufferUsageFlags2CreateInfo>(info.p_next, ty).map(|it| &*it.as_ptr()) };
                let usage = more.map_or(u64::from(info.usage.0), |it| it.usage.0);
                if usage & u64::from(BufferUsageFlags::INDEX_BUFFER.0 | BufferUsageFlags::INDIRECT_BUFFER.0) != 0 {
                    lock(&self.inner).index_buffers.insert(buffer.0);
                }
            }
            Command::BindBufferMemory => {
                // SAFETY: the contract of this function: the parameters are those of a `vkBindBufferMemory`.
                let params = unsafe { &*params.cast::<BindBufferMemoryParams>() };
                self.bind_index_buffer(params.buffer, params.memory);
            }
            _ => {
                // SAFETY: the contract of this function: the parameters are those of a `vkBindBufferMemory2`.
                let params = unsafe { &*params.cast::<BindBufferMemory2Params>() };
                for at in 0..params.bind_info_count as usize {
                    // SAFETY: VUID-vkBindBufferMemory2-pBindInfos-parameter: as many as the count says.
                    let info = unsafe { &*params.p_bind_infos.as_ptr().add(at) };
                    self.bind_index_buffer(info.buffer, info.memory);
                }
            }
        }
    }

    /// A buffer lies in a memory.
    pub(super) fn bind_index_buffer(&self, buffer: Buffer, memory: DeviceMemory) {
        let mut inner = lock(&self.inner);
        if !inner.index_buffers.contains(&buffer.0) {
            return;
        }
        let Some(other) = inner.all.get(&memory.0).cloned() else { return };
        let mut state = lock(&other.state);
        if state.index_state != IndexState::None {
            return;
        }
        let has_room = other.size <= INDEX_MEMORY_MAX && inner.index_bytes + other.size <= INDEX_BYTES_MAX;
        if !has_room || state.is_imported {
            state.index_state = IndexState::Untracked;
            return;
        }
        state.index_state = IndexState::Tracked;
        inner.index_bytes += other.size;
        let is_compared = state.mapped.is_some() && !matches!(state.detection, WriteDetection::PageTracking);
        drop(state);
        if is_compared {
            inner.add_mapped(other);
        }
    }
}
