//! Acceleration structures and ray tracing.

use std::ops::Range;

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome, View};
use lavascope_sync_ir::{Access, Certainty, Origin, ResourceId};

use crate::command::bound_state::BindPoint;
use crate::command::incomplete::mark_if_launched;
use crate::command::stage_access::{
    BINDING_TABLE_READ, BUILD_INPUT_READ, BUILD_MICROMAP_READ, BUILD_RANGES_READ, BUILD_READ, BUILD_WRITE,
    INDIRECT_READ, SERIALIZE_READ, SERIALIZE_WRITE, STRUCTURE_COPY_READ, STRUCTURE_COPY_WRITE, StageAccess,
};
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::vertex_input::index_size;
use crate::listener::TrackerOutput;
use crate::resource::format;
use crate::shader::launch::Launch;

/// An acceleration structure, with the range of the buffer that contains it.
#[derive(Clone, Debug)]
pub(crate) struct TrackedAccelerationStructure {
    pub(crate) resource: ResourceId,
    pub(crate) bytes: Range<u64>,
    address: Option<u64>,
}

/// Sizes in bytes of the inputs of builds.
pub(crate) const TRANSFORM: u64 = 48;
pub(crate) const BOX: u64 = 24;
pub(crate) const INSTANCE: u64 = 64;
/// The records do not contain the scratch size of a build. Builds with the same scratch address overlap in these first
/// bytes.
pub(crate) const SCRATCH: u64 = 256;
/// The size of a serialized acceleration structure is in its header, so only the header is certain.
pub(crate) const HEADER: u64 = 56;
/// Sizes in bytes of an operation of a partitioned structure, and of the operation count.
const PARTITION_INFO: u64 = 24;
const COUNT: u64 = 4;
const TRACE: u64 = 12;
const TRACE_2: u64 = 104;

impl TrackedDevice {
    pub(crate) fn track_acceleration_structures(
        &mut self,
        tracked: TrackedCall<'_>,
        out: &mut TrackerOutput<'_>,
    ) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateAccelerationStructureKHR(params), Some(Outcome::CreateAccelerationStructureKHR(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_acceleration_structure()) {
                    let part = self.buffer_range(info.buffer, info.offset, info.size);
                    self.add_structure(handle.0, part, out);
                }
            }
            (Call::CreateAccelerationStructure2KHR(params), Some(Outcome::CreateAccelerationStructure2KHR(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_acceleration_structure()) {
                    let part = self.find_address(info.address_range.address, info.address_range.size);
                    self.add_structure(handle.0, part, out);
                }
            }
            (Call::DestroyAccelerationStructureKHR(params), None) => {
                if let Some(address) = self.structures.remove(params.acceleration_structure.0).and_then(|it| it.address)
                {
                    self.structure_addresses.remove(&address);
                }
            }
            (
                Call::GetAccelerationStructureDeviceAddressKHR(params),
                Some(Outcome::GetAccelerationStructureDeviceAddressKHR(done)),
            ) => {
                let handle = params.p_info().map_or(0, |it| it.acceleration_structure.0);
                if let Some(own) = self.structures.get_mut(handle) {
                    own.address = Some(done.result);
                    self.structure_addresses.insert(done.result, handle);
                }
            }
            (Call::CmdBuildAccelerationStructuresKHR(params), None) => self.build(*params, out),
            (Call::CmdBuildAccelerationStructuresIndirectKHR(params), None) => self.build_indirect(*params, out),
            (Call::CmdCopyAccelerationStructureKHR(params), None) => {
                let Some(info) = params.p_info() else { return true };
                let mut accesses = self.structure_accesses(info.src, STRUCTURE_COPY_READ, out);
                accesses.extend(self.structure_accesses(info.dst, STRUCTURE_COPY_WRITE, out));
                self.record_action(params.command_buffer, accesses, out);
            }
            (Call::CmdCopyAccelerationStructureToMemoryKHR(params), None) => {
                let Some(info) = params.p_info() else { return true };
                let mut accesses = self.structure_accesses(info.src, STRUCTURE_COPY_READ, out);
                let address = *info.dst.device_address();
                accesses.extend(self.address_access(address, HEADER, SERIALIZE_WRITE, out));
                self.record_action(params.command_buffer, accesses, out);
            }
            (Call::CmdCopyMemoryToAccelerationStructureKHR(params), None) => {
                let Some(info) = params.p_info() else { return true };
                let mut accesses = self.structure_accesses(info.dst, STRUCTURE_COPY_WRITE, out);
                let address = *info.src.device_address();
                accesses.extend(self.address_access(address, HEADER, SERIALIZE_READ, out));
                self.record_action(params.command_buffer, accesses, out);
            }
            (Call::CmdWriteAccelerationStructuresPropertiesKHR(params), None) => {
                let all = params.p_acceleration_structures().iter();
                let reads = all.flat_map(|it| self.structure_accesses(*it, BUILD_READ, out)).collect();
                self.record_action(params.command_buffer, reads, out);
            }
            _ => return self.track_ray_traces(tracked.call, out) || self.track_address_builds(tracked.call, out),
        }
        true
    }

    fn track_ray_traces(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdTraceRaysKHR(params) => {
                let tables = [
                    params.p_raygen_shader_binding_table(),
                    params.p_miss_shader_binding_table(),
                    params.p_hit_shader_binding_table(),
                    params.p_callable_shader_binding_table(),
                ];
                let launch = Launch::Rays([params.width, params.height, params.depth]);
                let reads = if launch.is_empty() { Vec::new() } else { self.binding_table_reads(tables, out) };
                self.record_launch(params.command_buffer, BindPoint::RayTracing, reads, &launch, out);
            }
            Call::CmdTraceRaysIndirectKHR(params) => {
                let tables = [
                    params.p_raygen_shader_binding_table(),
                    params.p_miss_shader_binding_table(),
                    params.p_hit_shader_binding_table(),
                    params.p_callable_shader_binding_table(),
                ];
                let mut reads = self.binding_table_reads(tables, out);
                mark_if_launched(&mut reads);
                reads.extend(self.address_access(params.indirect_device_address, TRACE, INDIRECT_READ, out));
                self.record_launch(params.command_buffer, BindPoint::RayTracing, reads, &Launch::Unknown, out);
            }
            Call::CmdTraceRaysIndirect2KHR(params) => {
                out.report_untracked("shader binding tables that memory names");
                let read = self.address_access(params.indirect_device_address, TRACE_2, INDIRECT_READ, out);
                self.record_launch(
                    params.command_buffer,
                    BindPoint::RayTracing,
                    read.into_iter().collect(),
                    &Launch::Unknown,
                    out,
                );
            }
            _ => return false,
        }
        true
    }

    fn add_structure(&mut self, handle: u64, part: Option<(ResourceId, Range<u64>)>, out: &mut TrackerOutput<'_>) {
        match part {
            Some((resource, bytes)) => {
                self.structures.insert(handle, TrackedAccelerationStructure { resource, bytes, address: None })
            }
            None => out.report_untracked("a buffer whose memory is not known"),
        }
    }

    /// The acceleration structure at an address.
    pub(crate) fn structure_at(&self, address: u64) -> Option<&TrackedAccelerationStructure> {
        self.structures.get(*self.structure_addresses.get(&address)?)
    }

    fn binding_table_reads(
        &self,
        tables: [Option<View<'_, vk::StridedDeviceAddressRegionKHR>>; 4],
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let given = tables.into_iter().flatten();
        let read = |table: View<'_, vk::StridedDeviceAddressRegionKHR>| {
            let read = self.address_access(table.device_address, table.size, BINDING_TABLE_READ, out)?;
            // If a table has several records, the shaders choose some of them.
            let certainty = if table.size <= table.stride { Certainty::Certain } else { Certainty::Anywhere };
            Some(Access { certainty, ..read })
        };
        given.filter_map(read).collect()
    }

    fn structure_accesses(
        &self,
        handle: vk::AccelerationStructureKHR,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        match self.structures.get(handle.0) {
            Some(acceleration_structure) => {
                vec![
                    usage
                        .access_to_bytes(acceleration_structure.resource, acceleration_structure.bytes.clone())
                        .with_origin(Origin::ACCELERATION_STRUCTURE),
                ]
            }
            None => {
                out.report_untracked("an acceleration structure that nobody created");
                Vec::new()
            }
        }
    }

    fn build(
        &mut self,
        khr_params: View<'_, vk::CmdBuildAccelerationStructuresKHRParams>,
        out: &mut TrackerOutput<'_>,
    ) {
        let lists = khr_params.values(khr_params.pp_build_range_infos, u64::from(khr_params.info_count));
        let mut accesses = Vec::new();
        for (at, info) in khr_params.p_infos().iter().enumerate() {
            accesses.extend(self.build_accesses(info, out));
            let ranges = lists.get(at).map(|list| khr_params.values(*list, u64::from(info.geometry_count)));
            let ranges = ranges.unwrap_or_default();
            for (geometry, range) in geometries(info).into_iter().zip(ranges) {
                accesses.extend(self.build_input_reads(geometry, range, out));
            }
        }
        self.record_action(khr_params.command_buffer, accesses, out);
    }

    fn build_indirect(
        &mut self,
        khr_params: View<'_, vk::CmdBuildAccelerationStructuresIndirectKHRParams>,
        out: &mut TrackerOutput<'_>,
    ) {
        out.report_untracked("the inputs of builds whose ranges stand in memory");
        let (addresses, strides) = (khr_params.p_indirect_device_addresses(), khr_params.p_indirect_strides());
        let mut accesses = Vec::new();
        for (at, info) in khr_params.p_infos().iter().enumerate() {
            accesses.extend(self.build_accesses(info, out));
            let stride = strides.get(at).map_or(0, |it| u64::from(*it));
            let size = stride.saturating_mul(u64::from(info.geometry_count));
            let address = addresses.get(at).copied().unwrap_or(0);
            accesses.extend(self.address_access(address, size, BUILD_RANGES_READ, out));
        }
        self.record_action(khr_params.command_buffer, accesses, out);
    }

    /// The structure itself, the source of an update, and the scratch memory.
    fn build_accesses(
        &self,
        info: View<'_, vk::AccelerationStructureBuildGeometryInfoKHR>,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let mut found = self.structure_accesses(info.dst_acceleration_structure, BUILD_WRITE, out);
        if info.mode == vk::BuildAccelerationStructureModeKHR::UPDATE_KHR {
            found.extend(self.structure_accesses(info.src_acceleration_structure, BUILD_READ, out));
        }
        let scratch = *info.scratch_data.device_address();
        found.extend(self.address_access(scratch, SCRATCH, BUILD_WRITE, out));
        found
    }

    fn build_input_reads(
        &self,
        geometry: View<'_, vk::AccelerationStructureGeometryKHR>,
        range: &vk::AccelerationStructureBuildRangeInfoKHR,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let (count, offset) = (u64::from(range.primitive_count), u64::from(range.primitive_offset));
        if count == 0 {
            return Vec::new();
        }
        let mut found = Vec::new();
        let parts = match geometry.geometry_type {
            vk::GeometryTypeKHR::TRIANGLES_KHR => {
                let own = geometry.inner(geometry.get().geometry.triangles());
                if let Some(map) = own.chained::<vk::AccelerationStructureTrianglesOpacityMicromapEXT>() {
                    found.extend(self.triangle_micromap_accesses(map, count, out));
                }
                triangles(own.get(), range)
            }
            vk::GeometryTypeKHR::AABBS_KHR => {
                let boxes = geometry.geometry.aabbs();
                let size = (count - 1).saturating_mul(boxes.stride).saturating_add(BOX);
                let address = boxes.data.device_address().saturating_add(offset);
                vec![BuildInput::whole(address, size)]
            }
            vk::GeometryTypeKHR::INSTANCES_KHR => {
                out.report_untracked("the structures that instances in memory refer to");
                let instances = geometry.geometry.instances();
                let size = if instances.array_of_pointers.is_true() { 8 } else { INSTANCE };
                vec![BuildInput::whole(instances.data.device_address().saturating_add(offset), count * size)]
            }
            _ => {
                out.report_untracked("geometry of an unknown type");
                Vec::new()
            }
        };
        let read = |input: BuildInput| {
            let read = self.address_access(input.address, input.size, BUILD_INPUT_READ, out)?;
            Some(Access { certainty: input.certainty, ..read })
        };
        found.extend(parts.into_iter().filter_map(read));
        found
    }

    /// The micromap reads of a build of triangles.
    fn triangle_micromap_accesses(
        &self,
        map: View<'_, vk::AccelerationStructureTrianglesOpacityMicromapEXT>,
        count: u64,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let is_given = map.micromap.0 != 0;
        let mut found =
            if is_given { self.micromap_accesses(map.micromap, BUILD_MICROMAP_READ, out) } else { Vec::new() };
        if let Some(size) = index_size(map.index_type) {
            let bytes = (count - 1).saturating_mul(map.index_stride).saturating_add(size);
            let address = *map.index_buffer.device_address();
            found.extend(self.address_access(address, bytes, BUILD_INPUT_READ, out));
        }
        found
    }

    /// Builds of structures without handles, whose inputs are in memory.
    fn track_address_builds(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdBuildPartitionedAccelerationStructuresNV(params) => {
                let Some(info) = params.p_build_info() else { return true };
                out.report_untracked("what builds read that memory describes");
                let parts = [
                    (info.dst_acceleration_structure_data, SCRATCH, BUILD_WRITE),
                    (info.src_acceleration_structure_data, SCRATCH, BUILD_READ),
                    (info.scratch_data, SCRATCH, BUILD_WRITE),
                    (info.src_infos, PARTITION_INFO, BUILD_RANGES_READ),
                    (info.src_infos_count, COUNT, BUILD_RANGES_READ),
                ];
                self.record_address_build(params.command_buffer, &parts, out);
            }
            Call::CmdBuildClusterAccelerationStructureIndirectNV(params) => {
                let Some(info) = params.p_command_infos() else { return true };
                out.report_untracked("what builds read that memory describes");
                let is_indirect = info.address_resolution_flags.0 != 0;
                let destination = if is_indirect { BUILD_RANGES_READ } else { BUILD_WRITE };
                let parts = [
                    (info.dst_implicit_data, SCRATCH, destination),
                    (info.scratch_data, SCRATCH, destination),
                    (info.dst_addresses_array.device_address, info.dst_addresses_array.size, destination),
                    (info.dst_sizes_array.device_address, info.dst_sizes_array.size, destination),
                    (info.src_infos_array.device_address, info.src_infos_array.size, BUILD_RANGES_READ),
                    (info.src_infos_count, COUNT, BUILD_RANGES_READ),
                ];
                self.record_address_build(params.command_buffer, &parts, out);
            }
            _ => return false,
        }
        true
    }

    fn record_address_build(
        &mut self,
        buffer: vk::CommandBuffer,
        parts: &[(u64, u64, StageAccess)],
        out: &mut TrackerOutput<'_>,
    ) {
        let accesses = parts.iter().filter_map(|(at, size, usage)| self.address_access(*at, *size, *usage, out));
        let accesses = accesses.collect();
        self.record_action(buffer, accesses, out);
    }
}

/// An input of a build: a range of bytes at an address.
struct BuildInput {
    address: u64,
    size: u64,
    certainty: Certainty,
}

impl BuildInput {
    fn whole(address: u64, size: u64) -> BuildInput {
        BuildInput { address, size, certainty: Certainty::Certain }
    }
}

fn triangles(
    triangles_data: &vk::AccelerationStructureGeometryTrianglesDataKHR,
    range: &vk::AccelerationStructureBuildRangeInfoKHR,
) -> Vec<BuildInput> {
    let corners = u64::from(range.primitive_count) * 3;
    let offset = u64::from(range.primitive_offset);
    let first = u64::from(range.first_vertex).saturating_mul(triangles_data.vertex_stride);
    let vertices = triangles_data.vertex_data.device_address().saturating_add(first);
    let (stride, vertex) = (triangles_data.vertex_stride, format::block_size(triangles_data.vertex_format));
    let span = |count: u64| count.saturating_sub(1).saturating_mul(stride).saturating_add(vertex);
    let mut found = match index_size(triangles_data.index_type) {
        Some(size) => vec![
            // The indices decide which vertices are read.
            BuildInput {
                address: vertices,
                size: span(u64::from(triangles_data.max_vertex) + 1),
                certainty: Certainty::Anywhere,
            },
            BuildInput::whole(triangles_data.index_data.device_address().saturating_add(offset), corners * size),
        ],
        None => vec![BuildInput::whole(vertices.saturating_add(offset), span(corners))],
    };
    let transform = *triangles_data.transform_data.device_address();
    if transform != 0 {
        let address = transform.saturating_add(u64::from(range.transform_offset));
        found.push(BuildInput::whole(address, TRANSFORM));
    }
    found
}

/// Geometries are in an array, or in an array of pointers.
fn geometries<'a>(
    info: View<'a, vk::AccelerationStructureBuildGeometryInfoKHR>,
) -> Vec<View<'a, vk::AccelerationStructureGeometryKHR>> {
    let direct: Vec<_> = info.p_geometries().iter().collect();
    if !direct.is_empty() {
        return direct;
    }
    let pointers = info.values(info.pp_geometries, u64::from(info.geometry_count));
    pointers.iter().filter_map(|it| info.view(*it)).collect()
}

#[cfg(test)]
mod tests {
    use lavascope_abi::Structure;

    use super::*;

    #[test]
    fn which_vertices_of_indexed_triangles_are_read_nobody_knows() {
        let parts = |index_type| {
            let data = vk::AccelerationStructureGeometryTrianglesDataKHR {
                vertex_format: vk::Format::R32G32B32_SFLOAT,
                vertex_data: vk::DeviceOrHostAddressConstKHR { words: [4096] },
                vertex_stride: 12,
                max_vertex: 9,
                index_type,
                index_data: vk::DeviceOrHostAddressConstKHR { words: [8192] },
                ..vk::AccelerationStructureGeometryTrianglesDataKHR::zeroed()
            };
            let range = vk::AccelerationStructureBuildRangeInfoKHR {
                primitive_count: 2,
                first_vertex: 1,
                ..vk::AccelerationStructureBuildRangeInfoKHR::zeroed()
            };
            triangles(&data, &range).iter().map(|it| ([it.address, it.size], it.certainty)).collect::<Vec<_>>()
        };
        let indexed = [([4108, 120], Certainty::Anywhere), ([8192, 12], Certainty::Certain)];
        assert_eq!(parts(vk::IndexType::UINT16), indexed);
        assert_eq!(parts(vk::IndexType::NONE_KHR), [([4108, 72], Certainty::Certain)]);
    }
}
