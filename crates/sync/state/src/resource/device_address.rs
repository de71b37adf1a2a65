//! Device addresses: finds the buffer at an address, and tracks the commands that use addresses.

use std::ops::Range;

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome, View, Views};
use lavascope_sync_ir::{Access, Certainty, ResourceId};

use crate::command::bound_state::BindPoint;
use crate::command::stage_access::{
    CLEAR_WRITE, CONDITION_READ, COPY_READ, COPY_WRITE, COUNTER_INDIRECT_READ, COUNTER_READ, COUNTER_WRITE,
    INDIRECT_READ, StageAccess,
};
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::draw_commands::{COUNT, DISPATCH, DRAW, DRAW_INDEXED, DrawParameters, counted_reads};
use crate::draw::vertex_input::{BoundIndexBuffer, BoundVertexBuffer, FetchedElements, index_size};
use crate::listener::TrackerOutput;
use crate::resource::region::{BufferTexelLayout, TexelBox, extent_of, offset_of};
use crate::shader::launch::Launch;

impl TrackedDevice {
    pub(crate) fn track_addresses(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::GetBufferDeviceAddress(params), Some(Outcome::GetBufferDeviceAddress(done))) => {
                if let Some(info) = params.p_info() {
                    self.set_address(info.buffer.0, done.result);
                }
            }
            (Call::CmdBindIndexBuffer3KHR(params), None) => {
                let Some(info) = params.p_info() else { return true };
                let part = self.resolve_address(info.address_range.address, info.address_range.size, out);
                let bound = part.zip(index_size(info.index_type));
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    own.state.indices =
                        bound.map(|((resource, bytes), size)| BoundIndexBuffer { buffer: 0, resource, bytes, size });
                }
            }
            (Call::CmdBindVertexBuffers3KHR(params), None) => self.bind_vertices_at(*params, out),
            (Call::CmdBindTransformFeedbackBuffers2EXT(params), None) => {
                for (at, info) in params.p_binding_infos().iter().enumerate() {
                    let part = self.resolve_address(info.address_range.address, info.address_range.size, out);
                    let number = params.first_binding.saturating_add(at as u32);
                    if let (Some(own), Some(part)) = (self.command_buffer_mut(params.command_buffer), part) {
                        own.state.feedback_buffers.insert(number, part);
                    }
                }
            }
            (Call::CmdBeginTransformFeedback2EXT(params), None) => {
                let counters = self.counters_at(params.p_counter_infos(), COUNTER_READ, out);
                self.record_action(params.command_buffer, counters, out);
                self.set_transform_feedback(params.command_buffer, true);
            }
            (Call::CmdEndTransformFeedback2EXT(params), None) => {
                let counters = self.counters_at(params.p_counter_infos(), COUNTER_WRITE, out);
                self.record_action(params.command_buffer, counters, out);
                self.set_transform_feedback(params.command_buffer, false);
            }
            (Call::CmdBeginConditionalRendering2EXT(params), None) => {
                let Some(info) = params.p_conditional_rendering_begin() else { return true };
                let read = self.address_access(info.address_range.address, 4, CONDITION_READ, out);
                self.record_action(params.command_buffer, read.into_iter().collect(), out);
                self.set_conditional_rendering(params.command_buffer, true);
            }
            _ => return self.track_address_copies(tracked.call, out) || self.track_address_draws(tracked.call, out),
        }
        true
    }

    fn track_address_copies(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdCopyMemoryKHR(params) => {
                let mut accesses = Vec::new();
                for memory_copy in params.p_copy_memory_info().iter().flat_map(|it| it.p_regions().iter()) {
                    accesses.extend(self.address_access(
                        memory_copy.src_range.address,
                        memory_copy.src_range.size,
                        COPY_READ,
                        out,
                    ));
                    accesses.extend(self.address_access(
                        memory_copy.dst_range.address,
                        memory_copy.dst_range.size,
                        COPY_WRITE,
                        out,
                    ));
                }
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdCopyMemoryToImageKHR(params) => {
                let accesses = self.image_copy_at(params.p_copy_memory_info(), COPY_READ, COPY_WRITE, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdCopyImageToMemoryKHR(params) => {
                let accesses = self.image_copy_at(params.p_copy_memory_info(), COPY_WRITE, COPY_READ, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdFillMemoryKHR(params) => {
                let range = params.p_dst_range();
                let write = range.and_then(|it| self.address_access(it.address, it.size, CLEAR_WRITE, out));
                self.record_action(params.command_buffer, write.into_iter().collect(), out);
            }
            Call::CmdUpdateMemoryKHR(params) => {
                let range = params.p_dst_range();
                let write =
                    range.and_then(|range| self.address_access(range.address, params.data_size, CLEAR_WRITE, out));
                self.record_action(params.command_buffer, write.into_iter().collect(), out);
            }
            Call::CmdWriteMarkerToMemoryAMD(params) => {
                let info = params.p_info();
                let marker = StageAccess::for_marker(info.map_or(0, |it| it.stage.0));
                let write = self.address_access(info.map_or(0, |it| it.dst_range.address), 4, marker, out);
                self.record_action(params.command_buffer, write.into_iter().collect(), out);
            }
            Call::CmdCopyQueryPoolResultsToMemoryKHR(params) => {
                let Some(range) = params.p_dst_range() else { return true };
                let size = self.result_size(params.query_pool, params.query_result_flags, range.stride, out);
                let accesses =
                    self.strided_accesses([range.address, range.stride], params.query_count, size, COPY_WRITE, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            _ => return false,
        }
        true
    }

    fn track_address_draws(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        let (buffer, draw) = match call {
            Call::CmdDrawIndirect2KHR(params) => (
                params.command_buffer,
                DrawParameters::indirect(self.indirect_parameter_reads_at(params.p_info(), DRAW, out))
                    .with_draw_count(params.p_info().map_or(0, |it| it.draw_count)),
            ),
            Call::CmdDrawIndexedIndirect2KHR(params) => (
                params.command_buffer,
                DrawParameters::indexed_indirect(self.indirect_parameter_reads_at(params.p_info(), DRAW_INDEXED, out))
                    .with_draw_count(params.p_info().map_or(0, |it| it.draw_count)),
            ),
            Call::CmdDrawMeshTasksIndirect2EXT(params) => (
                params.command_buffer,
                DrawParameters::mesh(self.indirect_parameter_reads_at(params.p_info(), DISPATCH, out))
                    .with_draw_count(params.p_info().map_or(0, |it| it.draw_count)),
            ),
            Call::CmdDrawIndirectCount2KHR(params) => (
                params.command_buffer,
                DrawParameters::indirect(self.counted_parameter_reads_at(params.p_info(), DRAW, out))
                    .with_draw_count(params.p_info().map_or(0, |it| it.max_draw_count)),
            ),
            Call::CmdDrawIndexedIndirectCount2KHR(params) => (
                params.command_buffer,
                DrawParameters::indexed_indirect(self.counted_parameter_reads_at(params.p_info(), DRAW_INDEXED, out))
                    .with_draw_count(params.p_info().map_or(0, |it| it.max_draw_count)),
            ),
            Call::CmdDrawMeshTasksIndirectCount2EXT(params) => (
                params.command_buffer,
                DrawParameters::mesh(self.counted_parameter_reads_at(params.p_info(), DISPATCH, out))
                    .with_draw_count(params.p_info().map_or(0, |it| it.max_draw_count)),
            ),
            Call::CmdDrawIndirectByteCount2EXT(params) => {
                let address = params.p_counter_info().map_or(0, |it| it.address_range.address);
                let read = self.address_access(address, COUNT, COUNTER_INDIRECT_READ, out);
                let instances = FetchedElements::from_first_and_count(params.first_instance, params.instance_count);
                (params.command_buffer, DrawParameters::counted_in_bytes(read, instances))
            }
            Call::CmdDispatchIndirect2KHR(params) => {
                let address = params.p_info().map_or(0, |it| it.address_range.address);
                let read = self.address_access(address, DISPATCH, INDIRECT_READ, out);
                self.record_launch(
                    params.command_buffer,
                    BindPoint::Compute,
                    read.into_iter().collect(),
                    &Launch::Unknown,
                    out,
                );
                return true;
            }
            _ => return false,
        };
        self.record_draw(buffer, &draw, out);
        true
    }

    fn set_address(&mut self, handle: u64, address: u64) {
        let Some(buffer) = self.buffers.get_mut(handle) else { return };
        if let (Some(resource), true) = (buffer.resource, address != 0) {
            buffer.address = Some(address);
            self.buffer_addresses.insert(address, (resource, buffer.size));
        }
    }

    /// The buffer at an address, and the range within it.
    pub(crate) fn find_address(&self, address: u64, size: u64) -> Option<(ResourceId, Range<u64>)> {
        let (base, (resource, end)) = self.buffer_addresses.range(..=address).next_back()?;
        let start = address - base;
        (start < *end).then(|| (*resource, start..start.saturating_add(size).min(*end)))
    }

    /// The start address of the buffer that contains an address.
    pub(crate) fn buffer_base_address(&self, address: u64) -> Option<u64> {
        self.buffer_addresses.range(..=address).next_back().map(|it| *it.0)
    }

    pub(crate) fn resolve_address(
        &self,
        address: u64,
        size: u64,
        out: &mut TrackerOutput<'_>,
    ) -> Option<(ResourceId, Range<u64>)> {
        let found = self.find_address(address, size);
        if found.is_none() && address != 0 && size != 0 {
            out.report_untracked("an address that nobody asked for");
        }
        found.filter(|it| !it.1.is_empty())
    }

    /// An access to the memory at an address; none for a null address.
    pub(crate) fn address_access(
        &self,
        address: u64,
        size: u64,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Option<Access> {
        let (resource, bytes) = self.resolve_address(address, size, out)?;
        Some(usage.access_to_bytes(resource, bytes))
    }

    fn bind_vertices_at(
        &mut self,
        khr_params: View<'_, vk::CmdBindVertexBuffers3KHRParams>,
        out: &mut TrackerOutput<'_>,
    ) {
        for (at, info) in khr_params.p_binding_infos().iter().enumerate() {
            let range = &info.get().address_range;
            let part = self.resolve_address(range.address, range.size, out);
            let Some(own) = self.command_buffer_mut(khr_params.command_buffer) else { return };
            let number = khr_params.first_binding.saturating_add(at as u32);
            own.state.vertices.remove(&number);
            if let Some((resource, bytes)) = part {
                let stride = info.set_stride.is_true().then_some(range.stride);
                own.state.vertices.insert(number, BoundVertexBuffer { resource, bytes, stride });
            }
        }
    }

    fn counters_at(
        &self,
        infos: Views<'_, vk::BindTransformFeedbackBuffer2InfoEXT>,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        infos.iter().filter_map(|it| self.address_access(it.address_range.address, COUNT, usage, out)).collect()
    }

    fn image_copy_at(
        &self,
        info: Option<View<'_, vk::CopyDeviceMemoryImageInfoKHR>>,
        memory: StageAccess,
        image: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let Some(info) = info else { return Vec::new() };
        let Some((resource, own)) = self.image(info.image) else {
            out.report_untracked("an image whose memory is not known");
            return Vec::new();
        };
        let mut accesses = Vec::new();
        for image_copy in info.p_regions().iter() {
            let extent = extent_of(image_copy.image_extent);
            let texels =
                TexelBox { layers: image_copy.image_subresource, offset: offset_of(image_copy.image_offset), extent };
            let rows = BufferTexelLayout {
                offset: image_copy.address_range.address,
                row_length: image_copy.address_row_length,
                image_height: image_copy.address_image_height,
            };
            for bytes in own.buffer_ranges(&texels, rows) {
                accesses.extend(self.address_access(bytes.start, bytes.end - bytes.start, memory, out));
            }
            accesses.push(image.access_to(resource, own.texel_region(&texels)));
        }
        accesses
    }

    fn indirect_parameter_reads_at(
        &self,
        info: Option<View<'_, vk::DrawIndirect2InfoKHR>>,
        size: u64,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let Some(info) = info else { return Vec::new() };
        let range = &info.get().address_range;
        self.strided_accesses([range.address, range.stride], info.draw_count, size, INDIRECT_READ, out)
    }

    fn counted_parameter_reads_at(
        &self,
        info: Option<View<'_, vk::DrawIndirectCount2InfoKHR>>,
        size: u64,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let Some(info) = info else { return Vec::new() };
        let range = &info.get().address_range;
        let reads = self.strided_accesses([range.address, range.stride], info.max_draw_count, size, INDIRECT_READ, out);
        let mut reads = counted_reads(reads);
        reads.extend(self.address_access(info.count_address_range.address, COUNT, INDIRECT_READ, out));
        reads
    }

    /// Accesses to structures of a size that lie a stride apart. Without gaps, or if there are too many, they form one
    /// range.
    pub(crate) fn strided_accesses(
        &self,
        [address, stride]: [u64; 2],
        count: u32,
        size: u64,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        const STRUCTURES_MAX: u32 = 256;
        if count == 0 {
            return Vec::new();
        }
        if count > STRUCTURES_MAX || stride <= size {
            let bytes = u64::from(count - 1).saturating_mul(stride).saturating_add(size);
            let access = self.address_access(address, bytes, usage, out);
            // With gaps, the bytes between the structures are not accessed.
            let certainty = if stride <= size { Certainty::Certain } else { Certainty::Anywhere };
            return access.into_iter().map(|it| Access { certainty, ..it }).collect();
        }
        let place = |at: u32| address.saturating_add(u64::from(at).saturating_mul(stride));
        (0..count).filter_map(|at| self.address_access(place(at), size, usage, out)).collect()
    }
}
