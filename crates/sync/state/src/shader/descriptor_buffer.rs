//! Descriptors in buffers and heaps.
//!
//! The application writes them like any other memory, so their contents are not in the records. The reads of the
//! descriptors themselves are tracked; accesses through them are counted as unsupported.

use std::ops::Range;

use lavascope_abi as vk;
use lavascope_abi::AccessFlags2 as Bits;
use lavascope_record::{Call, Outcome};
use lavascope_sync_ir::{Access, Certainty, ResourceId};

use crate::command::bound_state::{BindPoint, BoundSet, BoundState, SetRef, bind_point_of, bind_points_of};
use crate::command::stage_access::StageAccess;
use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;
use crate::shader::interface::Shader;

/// The bound descriptor buffers and heaps.
#[derive(Debug, Default)]
pub(crate) struct DescriptorMemory {
    /// Whether any are bound, so that other command buffers skip the check.
    is_used: bool,
    buffers: Vec<Option<ResourceBytes>>,
    resource_heap: Option<ResourceBytes>,
    sampler_heap: Option<ResourceBytes>,
}

type ResourceBytes = (ResourceId, Range<u64>);

impl TrackedDevice {
    pub(crate) fn track_descriptor_buffers(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::GetDescriptorSetLayoutSizeEXT(params), Some(Outcome::GetDescriptorSetLayoutSizeEXT(done))) => {
                if let (Some(layout), Some(size)) =
                    (self.set_layouts.get(params.layout.0), done.p_layout_size_in_bytes())
                {
                    // The driver returns the same size each time.
                    let _ = layout.size.set(*size);
                }
            }
            (Call::CmdBindDescriptorBuffersEXT(params), None) => {
                let parts =
                    params.p_binding_infos().iter().map(|it| self.resolve_address(it.address, vk::WHOLE_SIZE, out));
                let parts = parts.collect();
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    (own.state.memory.buffers, own.state.memory.is_used) = (parts, true);
                }
            }
            (Call::CmdSetDescriptorBufferOffsetsEXT(params), None) => {
                let kinds = bind_point_of(params.pipeline_bind_point).into_iter().collect::<Vec<_>>();
                let places = places(params.p_buffer_indices(), params.p_offsets());
                self.set_offsets(params.command_buffer, &kinds, params.layout, params.first_set, &places);
            }
            (Call::CmdSetDescriptorBufferOffsets2EXT(params), None) => {
                let Some(info) = params.p_set_descriptor_buffer_offsets_info() else { return true };
                let places = places(info.p_buffer_indices(), info.p_offsets());
                self.set_offsets(
                    params.command_buffer,
                    &bind_points_of(info.stage_flags),
                    info.layout,
                    info.first_set,
                    &places,
                );
            }
            (Call::CmdBindResourceHeapEXT(params), None) => {
                let range = params.p_bind_info().map(|it| (it.heap_range.address, it.heap_range.size));
                let part = range.and_then(|(at, size)| self.resolve_address(at, size, out));
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    (own.state.memory.resource_heap, own.state.memory.is_used) = (part, true);
                }
            }
            (Call::CmdBindSamplerHeapEXT(params), None) => {
                let range = params.p_bind_info().map(|it| (it.heap_range.address, it.heap_range.size));
                let part = range.and_then(|(at, size)| self.resolve_address(at, size, out));
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    (own.state.memory.sampler_heap, own.state.memory.is_used) = (part, true);
                }
            }
            (Call::CmdPushDataEXT(params), None) => {
                let Some(info) = params.p_push_data_info() else { return true };
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    own.state.push_constants.write(info.offset, info.data().address());
                }
            }
            _ => return false,
        }
        true
    }

    fn set_offsets(
        &mut self,
        buffer: vk::CommandBuffer,
        kinds: &[BindPoint],
        layout: vk::PipelineLayout,
        first: u32,
        places: &[(u32, u64)],
    ) {
        for (index, (number, offset)) in (first..).zip(places) {
            let layouts = self.pipeline_layouts.get(layout.0);
            let size = layouts.and_then(|it| it.get(index as usize)?.as_ref()?.size.get().copied());
            let Some(own) = self.command_buffer_mut(buffer) else { return };
            let part = own.state.memory.buffers.get(*number as usize).cloned().flatten();
            let bound = part.map(|(resource, bytes)| {
                let start = bytes.start.saturating_add(*offset).min(bytes.end);
                let end = size.map_or(bytes.end, |it| start.saturating_add(it).min(bytes.end));
                BoundSet { set: SetRef::InMemory(resource, start..end), offsets: Vec::new() }
            });
            for kind in kinds {
                own.state.bind_set(*kind, index, bound.clone());
            }
        }
    }
}

impl BoundState {
    /// Whether any descriptors are in memory.
    pub(crate) fn has_descriptors_in_memory(&self, kind: BindPoint) -> bool {
        let is_in_memory = |it: &Option<BoundSet>| matches!(it, Some(BoundSet { set: SetRef::InMemory(..), .. }));
        self.memory.resource_heap.is_some()
            || self.memory.sampler_heap.is_some()
            || self.bind_point(kind).sets.iter().any(is_in_memory)
    }

    /// The reads of descriptors in memory by a shader.
    pub(crate) fn descriptor_memory_reads(
        &self,
        kind: BindPoint,
        shader: &Shader,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let Some(interface) = shader.interface.as_ref().filter(|_| self.memory.is_used) else { return Vec::new() };
        let mut sets: Vec<u32> = interface.descriptors.iter().map(|it| it.set).collect();
        sets.sort_unstable();
        sets.dedup();
        let read = |bits, (resource, bytes): &ResourceBytes| {
            let access =
                StageAccess::for_shader(shader.pipeline_stage(), bits).access_to_bytes(*resource, bytes.clone());
            Access { certainty: Certainty::Anywhere, ..access }
        };
        let mut found = Vec::new();
        for index in sets {
            let bound = self.bind_point(kind).sets.get(index as usize).and_then(Option::as_ref);
            if let Some(SetRef::InMemory(resource, bytes)) = bound.map(|it| &it.set) {
                out.report_untracked("what is reached through descriptors that stand in buffers");
                found.push(read(Bits::DESCRIPTOR_BUFFER_READ_EXT, &(*resource, bytes.clone())));
            }
        }
        if let Some(heap) = &self.memory.resource_heap {
            out.report_untracked("what is reached through descriptors that stand in heaps");
            found.push(read(Bits::RESOURCE_HEAP_READ_EXT, heap));
        }
        found.extend(self.memory.sampler_heap.as_ref().map(|it| read(Bits::SAMPLER_HEAP_READ_EXT, it)));
        found
    }
}

fn places(indices: &[u32], offsets: &[u64]) -> Vec<(u32, u64)> {
    indices.iter().copied().zip(offsets.iter().copied()).collect()
}
