//! `VK_NV_ray_tracing`: acceleration structures with memory of their own, and traces.

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome, View};
use lavascope_sync_ir::{Access, Certainty};

use crate::command::bound_state::BindPoint;
use crate::command::stage_access::{
    BINDING_TABLE_READ, BUILD_INPUT_READ, BUILD_READ, BUILD_WRITE, STRUCTURE_COPY_READ, STRUCTURE_COPY_WRITE,
    StageAccess,
};
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::vertex_input::index_size;
use crate::extension::acceleration_structure::{BOX, INSTANCE, SCRATCH, TRANSFORM};
use crate::listener::TrackerOutput;
use crate::resource::format;
use crate::resource::memory::is_success;
use crate::resource::opaque_object::OpaqueObject;
use crate::shader::launch::Launch;

impl TrackedDevice {
    pub(crate) fn track_ray_tracing_nv(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateAccelerationStructureNV(params), Some(Outcome::CreateAccelerationStructureNV(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_acceleration_structure()) {
                    let size = Some(info.compacted_size).filter(|it| *it != 0);
                    self.structures_nv.insert(handle.0, OpaqueObject::new(size));
                }
            }
            (Call::DestroyAccelerationStructureNV(params), None) => {
                let own = self.structures_nv.remove(params.acceleration_structure.0);
                self.destroy_opaque(own, out);
            }
            (
                Call::GetAccelerationStructureMemoryRequirementsNV(params),
                Some(Outcome::GetAccelerationStructureMemoryRequirementsNV(done)),
            ) => {
                let object = vk::AccelerationStructureMemoryRequirementsTypeNV::OBJECT_NV;
                let asked = params.p_info().filter(|it| it.type_ == object);
                let own = asked.and_then(|it| self.structures_nv.get_mut(it.acceleration_structure.0));
                if let (Some(own), Some(requirements)) = (own, done.p_memory_requirements()) {
                    own.set_size(requirements.memory_requirements.size);
                }
            }
            (
                Call::BindAccelerationStructureMemoryNV(params),
                Some(Outcome::BindAccelerationStructureMemoryNV(done)),
            ) => {
                for info in params.p_bind_infos().iter().filter(|_| is_success(done.result)) {
                    let handle = info.acceleration_structure.0;
                    let own = self.structures_nv.get(handle).copied();
                    if let Some(own) = self.bind_opaque(handle, own, info.memory, info.memory_offset, out) {
                        self.structures_nv.insert(handle, own);
                    }
                }
            }
            _ => return self.track_ray_commands_nv(tracked.call, out),
        }
        true
    }

    fn track_ray_commands_nv(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdBuildAccelerationStructureNV(params) => self.build_nv(*params, out),
            Call::CmdCopyAccelerationStructureNV(params) => {
                let mut accesses = self.structure_accesses_nv(params.src, STRUCTURE_COPY_READ, out);
                accesses.extend(self.structure_accesses_nv(params.dst, STRUCTURE_COPY_WRITE, out));
                self.record_action(params.command_buffer, accesses, out);
            }
            Call::CmdWriteAccelerationStructuresPropertiesNV(params) => {
                let all = params.p_acceleration_structures().iter();
                let reads = all.flat_map(|it| self.structure_accesses_nv(*it, BUILD_READ, out)).collect();
                self.record_action(params.command_buffer, reads, out);
            }
            Call::CmdTraceRaysNV(params) => {
                // Only the shaders know the length of a table.
                let tables = [
                    (params.raygen_shader_binding_table_buffer, params.raygen_shader_binding_offset),
                    (params.miss_shader_binding_table_buffer, params.miss_shader_binding_offset),
                    (params.hit_shader_binding_table_buffer, params.hit_shader_binding_offset),
                    (params.callable_shader_binding_table_buffer, params.callable_shader_binding_offset),
                ];
                let given = tables.into_iter().filter(|it| it.0.0 != 0);
                let reads = given.filter_map(|(buffer, offset)| {
                    let read = self.buffer_access(buffer, offset, vk::WHOLE_SIZE, BINDING_TABLE_READ, out)?;
                    Some(Access { certainty: Certainty::Anywhere, ..read })
                });
                let launch = Launch::Rays([params.width, params.height, params.depth]);
                let reads = if launch.is_empty() { Vec::new() } else { reads.collect() };
                self.record_launch(params.command_buffer, BindPoint::RayTracing, reads, &launch, out);
            }
            _ => return false,
        }
        true
    }

    fn structure_accesses_nv(
        &self,
        handle: vk::AccelerationStructureNV,
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let own = self.structures_nv.get(handle.0).and_then(OpaqueObject::part);
        if own.is_none() {
            out.report_untracked("an acceleration structure whose memory is not known");
        }
        own.map(|(resource, bytes)| usage.access_to_bytes(resource, bytes)).into_iter().collect()
    }

    fn build_nv(
        &mut self,
        nv_params: View<'_, vk::CmdBuildAccelerationStructureNVParams>,
        out: &mut TrackerOutput<'_>,
    ) {
        let mut accesses = self.structure_accesses_nv(nv_params.dst, BUILD_WRITE, out);
        if nv_params.update.is_true() {
            accesses.extend(self.structure_accesses_nv(nv_params.src, BUILD_READ, out));
        }
        accesses.extend(self.buffer_access(nv_params.scratch, nv_params.scratch_offset, SCRATCH, BUILD_WRITE, out));
        let Some(info) = nv_params.p_info() else { return };
        if info.type_ == vk::AccelerationStructureTypeKHR::TOP_LEVEL_KHR {
            out.report_untracked("the structures that instances in memory refer to");
            let size = u64::from(info.instance_count) * INSTANCE;
            accesses.extend(self.buffer_access(
                nv_params.instance_data,
                nv_params.instance_offset,
                size,
                BUILD_INPUT_READ,
                out,
            ));
        }
        for geometry in info.p_geometries().iter() {
            let parts = match geometry.geometry_type {
                vk::GeometryTypeKHR::AABBS_KHR => boxes(&geometry.get().geometry.aabbs),
                _ => triangles(&geometry.get().geometry.triangles),
            };
            let given = parts.into_iter().filter(|it| it.0.0 != 0 && it.2 != 0);
            let reads =
                given.filter_map(|(buffer, at, size)| self.buffer_access(buffer, at, size, BUILD_INPUT_READ, out));
            accesses.extend(reads.collect::<Vec<_>>());
        }
        self.record_action(nv_params.command_buffer, accesses, out);
    }
}

/// Buffers, offsets and sizes of the inputs of a build.
fn triangles(geometry_triangles: &vk::GeometryTrianglesNV) -> Vec<(vk::Buffer, u64, u64)> {
    let count = u64::from(geometry_triangles.vertex_count);
    let texel = format::block_size(geometry_triangles.vertex_format);
    let vertices =
        if count == 0 { 0 } else { (count - 1).saturating_mul(geometry_triangles.vertex_stride).saturating_add(texel) };
    let indices =
        index_size(geometry_triangles.index_type).map_or(0, |size| u64::from(geometry_triangles.index_count) * size);
    vec![
        (geometry_triangles.vertex_data, geometry_triangles.vertex_offset, vertices),
        (geometry_triangles.index_data, geometry_triangles.index_offset, indices),
        (geometry_triangles.transform_data, geometry_triangles.transform_offset, TRANSFORM),
    ]
}

fn boxes(geometry_aabb: &vk::GeometryAABBNV) -> Vec<(vk::Buffer, u64, u64)> {
    let count = u64::from(geometry_aabb.num_aab_bs);
    let size = if count == 0 { 0 } else { (count - 1) * u64::from(geometry_aabb.stride) + BOX };
    vec![(geometry_aabb.aabb_data, geometry_aabb.offset, size)]
}
