//! Commands with addresses as parameters: indirect copies, decompression, matrix conversion, execution graphs.

use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_record::{Call, View};
use lavascope_sync_ir::{Access, Certainty, Region};

use crate::command::bound_state::BindPoint;
use crate::command::stage_access::{
    CONVERT_READ, CONVERT_WRITE, COPY_INDIRECT_READ, COPY_WRITE, DECOMPRESS_READ, DECOMPRESS_WRITE, GRAPH_WRITE,
    INDIRECT_READ,
};
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::draw_commands::counted_reads;
use crate::listener::TrackerOutput;
use crate::resource::region::TexelBox;
use crate::shader::interface::Shader;
use crate::shader::launch::Launch;
use crate::shader::pipeline::TrackedPipeline;

/// Sizes in bytes of parameters.
const COPY_MEMORY: u64 = 24;
const COPY_TO_IMAGE: u64 = 56;
const DECOMPRESS: u64 = 32;
const DECOMPRESS_NV: u64 = 40;
const COUNT: u64 = 4;
const GRAPH_COUNT: u64 = 24;

const COPIED: &str = "memory that parameters in memory name";

impl TrackedDevice {
    pub(crate) fn track_indirect_memory(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match tracked.call {
            Call::CmdCopyMemoryIndirectKHR(params) => {
                let Some(info) = params.p_copy_memory_indirect_info() else { return true };
                let range = &info.get().copy_address_range;
                self.copy_indirect(params.command_buffer, [range.address, range.stride], info.copy_count, out);
            }
            Call::CmdCopyMemoryIndirectNV(params) => {
                let stride = u64::from(params.stride);
                self.copy_indirect(params.command_buffer, [params.copy_buffer_address, stride], params.copy_count, out);
            }
            Call::CmdCopyMemoryToImageIndirectKHR(params) => {
                let Some(info) = params.p_copy_memory_to_image_indirect_info() else { return true };
                let range = &info.get().copy_address_range;
                let parts = info.p_image_subresources().iter().map(|it| *it.get()).collect::<Vec<_>>();
                let accesses = self.copy_to_image_indirect([range.address, range.stride], info.dst_image, &parts, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdCopyMemoryToImageIndirectNV(params) => {
                let parts = params.p_image_subresources().iter().map(|it| *it.get()).collect::<Vec<_>>();
                let places = [params.copy_buffer_address, u64::from(params.stride)];
                let accesses = self.copy_to_image_indirect(places, params.dst_image, &parts, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdConvertCooperativeVectorMatrixNV(params) => {
                let accesses = params.p_infos().iter().flat_map(|it| self.conversion_accesses(it, out)).collect();
                self.record_action(params.command_buffer, accesses, out);
            }
            _ => return self.track_decompression(tracked.call, out) || self.track_execution_graphs(tracked.call, out),
        }
        true
    }

    fn track_decompression(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdDecompressMemoryEXT(params) => {
                let mut accesses = Vec::new();
                for memory_region in params.p_decompress_memory_info_ext().iter().flat_map(|it| it.p_regions().iter()) {
                    let sizes = [memory_region.compressed_size, memory_region.decompressed_size];
                    accesses.extend(self.decompression_accesses(
                        [memory_region.src_address, memory_region.dst_address],
                        sizes,
                        out,
                    ));
                }
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdDecompressMemoryNV(params) => {
                let mut accesses = Vec::new();
                for p_decompress_memory_region in params.p_decompress_memory_regions().iter() {
                    let sizes =
                        [p_decompress_memory_region.compressed_size, p_decompress_memory_region.decompressed_size];
                    accesses.extend(self.decompression_accesses(
                        [p_decompress_memory_region.src_address, p_decompress_memory_region.dst_address],
                        sizes,
                        out,
                    ));
                }
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdDecompressMemoryIndirectCountEXT(params) => {
                out.report_untracked(COPIED);
                let places = [params.indirect_commands_address, u64::from(params.stride)];
                let reads =
                    self.strided_accesses(places, params.max_decompression_count, DECOMPRESS, INDIRECT_READ, out);
                let count = self.address_access(params.indirect_commands_count_address, COUNT, INDIRECT_READ, out);
                self.record_action(
                    params.command_buffer,
                    counted_reads(reads).into_iter().map(with_certainty_maybe).chain(count).collect(),
                    out,
                );
            }
            Call::CmdDecompressMemoryIndirectCountNV(params) => {
                out.report_untracked(COPIED);
                let read = self.address_access(params.indirect_commands_address, DECOMPRESS_NV, INDIRECT_READ, out);
                let count = self.address_access(params.indirect_commands_count_address, COUNT, INDIRECT_READ, out);
                self.record_action(
                    params.command_buffer,
                    read.map(with_certainty_maybe).into_iter().chain(count).collect(),
                    out,
                );
            }
            _ => return false,
        }
        true
    }

    /// Execution graphs. The graph decides which of its nodes run, and how often.
    fn track_execution_graphs(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        let (buffer, scratch, count) = match call {
            Call::CmdInitializeGraphScratchMemoryAMDX(params) => {
                let write = self.address_access(params.scratch, params.scratch_size, GRAPH_WRITE, out);
                self.record_action(params.command_buffer, write.into_iter().collect(), out);
                return true;
            }
            Call::CmdDispatchGraphAMDX(params) => (params.command_buffer, [params.scratch, params.scratch_size], None),
            Call::CmdDispatchGraphIndirectAMDX(params) => {
                (params.command_buffer, [params.scratch, params.scratch_size], None)
            }
            Call::CmdDispatchGraphIndirectCountAMDX(params) => {
                let count = self.address_access(params.count_info, GRAPH_COUNT, INDIRECT_READ, out);
                (params.command_buffer, [params.scratch, params.scratch_size], count)
            }
            _ => return false,
        };
        out.report_untracked("payloads of graphs");
        let write = self.address_access(scratch[0], scratch[1], GRAPH_WRITE, out);
        let own = self.command_buffers.get(buffer.0);
        let graph = own.and_then(|it| it.state.bind_point(BindPoint::ExecutionGraph).pipeline.clone());
        // Each node may run.
        let nodes = graph.map(|tracked_pipeline| {
            let node = |shader: &Shader| {
                Arc::new(TrackedPipeline { shaders: vec![shader.clone()], ..TrackedPipeline::default() })
            };
            tracked_pipeline.shaders.iter().map(node).collect()
        });
        let fixed = write.into_iter().chain(count).collect();
        self.record_launch_with(buffer, BindPoint::ExecutionGraph, fixed, &Launch::Unknown, nodes, out);
        true
    }

    fn copy_indirect(&mut self, buffer: vk::CommandBuffer, places: [u64; 2], count: u32, out: &mut TrackerOutput<'_>) {
        out.report_untracked(COPIED);
        let reads = self.strided_accesses(places, count, COPY_MEMORY, COPY_INDIRECT_READ, out);
        self.record_action(buffer, reads, out);
    }

    /// The subresources that are written are known, their texels are not.
    fn copy_to_image_indirect(
        &self,
        places: [u64; 2],
        image: vk::Image,
        parts: &[vk::ImageSubresourceLayers],
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        out.report_untracked(COPIED);
        let mut accesses = self.strided_accesses(places, parts.len() as u32, COPY_TO_IMAGE, COPY_INDIRECT_READ, out);
        let Some((resource, image)) = self.image(image) else {
            out.report_untracked("an image whose memory is not known");
            return accesses;
        };
        for part in parts {
            let texels = TexelBox { layers: *part, offset: [0; 3], extent: [u32::MAX; 3] };
            let Region::Image(mut region) = image.texel_region(&texels) else { continue };
            region.layers.end = region.layers.end.min(part.base_array_layer.saturating_add(part.layer_count));
            let write = COPY_WRITE.access_to(resource, Region::Image(region));
            accesses.push(Access { certainty: Certainty::Anywhere, ..write });
        }
        accesses
    }

    fn decompression_accesses(
        &self,
        [src, dst]: [u64; 2],
        [from, to]: [u64; 2],
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let read = self.address_access(src, from, DECOMPRESS_READ, out);
        let write = self.address_access(dst, to, DECOMPRESS_WRITE, out);
        read.into_iter().chain(write).collect()
    }

    fn conversion_accesses(
        &self,
        matrix_info: View<'_, vk::ConvertCooperativeVectorMatrixInfoNV>,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let size = matrix_info.value(matrix_info.p_dst_size).copied().unwrap_or(0);
        let read = self.address_access(*matrix_info.src_data.device_address(), matrix_info.src_size, CONVERT_READ, out);
        let write = self.address_access(*matrix_info.dst_data.device_address(), size, CONVERT_WRITE, out);
        read.into_iter().chain(write).collect()
    }
}

/// The count is in memory, so the access is not certain.
fn with_certainty_maybe(access: Access) -> Access {
    Access { certainty: Certainty::MaybeAnywhere, ..access }
}
