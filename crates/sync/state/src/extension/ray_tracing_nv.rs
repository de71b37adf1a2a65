//! Acceleration structures of `VK_NV_ray_tracing`, which have memory of their own, and its traces.

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
    pub(crate) fn track_ray_tracing_nv(&mut self, event: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (event.call, event.outcome) {
            (Call::CreateAccelerationStructureNV(it), Some(Outcome::CreateAccelerationStructureNV(made))) => {
                if let (Some(info), Some(handle)) = (it.p_create_info(), made.p_acceleration_structure()) {
                    let size = Some(info.compacted_size).filter(|it| *it != 0);
                    self.structures_nv.insert(handle.0, OpaqueObject::new(size));
                }
            }
            (Call::DestroyAccelerationStructureNV(it), None) => {
                let own = self.structures_nv.remove(it.acceleration_structure.0);
                self.destroy_opaque(own, out);
            }
            (
                Call::GetAccelerationStructureMemoryRequirementsNV(it),
                Some(Outcome::GetAccelerationStructureMemoryRequirementsNV(done)),
            ) => {
                let object = vk::AccelerationStructureMemoryRequirementsTypeNV::OBJECT_NV;
                let asked = it.p_info().filter(|it| it.type_ == object);
                let own = asked.and_then(|it| self.structures_nv.get_mut(it.acceleration_structure.0));
                if let (Some(own), Some(it)) = (own, done.p_memory_requirements()) {
                    own.set_size(it.memory_requirements.size);
                }
            }
            (Call::BindAccelerationStructureMemoryNV(it), Some(Outcome::BindAccelerationStructureMemoryNV(done))) => {
                for info in it.p_bind_infos().iter().filter(|_| is_success(done.result)) {
                    let handle = info.acceleration_structure.0;
                    let own = self.structures_nv.get(handle).copied();
                    if let Some(own) = self.bind_opaque(handle, own, info.memory, info.memory_offset, out) {
                        self.structures_nv.insert(handle, own);
                    }
                }
            }
            _ => return self.track_ray_commands_nv(event.call, out),
        }
        true
    }

    fn track_ray_commands_nv(&mut self, call: &Call<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match call {
            Call::CmdBuildAccelerationStructureNV(it) => self.build_nv(*it, out),
            Call::CmdCopyAccelerationStructureNV(it) => {
                let mut accesses = self.structure_accesses_nv(it.src, STRUCTURE_COPY_READ, out);
                accesses.extend(self.structure_accesses_nv(it.dst, STRUCTURE_COPY_WRITE, out));
                self.record_action(it.command_buffer, accesses, out);
            }
            Call::CmdWriteAccelerationStructuresPropertiesNV(it) => {
                let all = it.p_acceleration_structures().iter();
                let reads = all.flat_map(|it| self.structure_accesses_nv(*it, BUILD_READ, out)).collect();
                self.record_action(it.command_buffer, reads, out);
            }
            Call::CmdTraceRaysNV(it) => {
                // How long a table is only the shaders know.
                let tables = [
                    (it.raygen_shader_binding_table_buffer, it.raygen_shader_binding_offset),
                    (it.miss_shader_binding_table_buffer, it.miss_shader_binding_offset),
                    (it.hit_shader_binding_table_buffer, it.hit_shader_binding_offset),
                    (it.callable_shader_binding_table_buffer, it.callable_shader_binding_offset),
                ];
                let given = tables.into_iter().filter(|it| it.0.0 != 0);
                let reads = given.filter_map(|(buffer, offset)| {
                    let read = self.buffer_access(buffer, offset, vk::WHOLE_SIZE, BINDING_TABLE_READ, out)?;
                    Some(Access { certainty: Certainty::Somewhere, ..read })
                });
                let reads = reads.collect();
                let launch = Launch::Rays([it.width, it.height, it.depth]);
                self.record_launch(it.command_buffer, BindPoint::RayTracing, reads, &launch, out);
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

    fn build_nv(&mut self, it: View<'_, vk::CmdBuildAccelerationStructureNVParams>, out: &mut TrackerOutput<'_>) {
        let mut accesses = self.structure_accesses_nv(it.dst, BUILD_WRITE, out);
        if it.update.is_true() {
            accesses.extend(self.structure_accesses_nv(it.src, BUILD_READ, out));
        }
        accesses.extend(self.buffer_access(it.scratch, it.scratch_offset, SCRATCH, BUILD_WRITE, out));
        let Some(info) = it.p_info() else { return };
        if info.type_ == vk::AccelerationStructureTypeKHR::TOP_LEVEL_KHR {
            out.report_untracked("the structures that instances in memory refer to");
            let size = u64::from(info.instance_count) * INSTANCE;
            accesses.extend(self.buffer_access(it.instance_data, it.instance_offset, size, BUILD_INPUT_READ, out));
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
        self.record_action(it.command_buffer, accesses, out);
    }
}

/// Buffers, offsets and sizes of what a build reads.
fn triangles(it: &vk::GeometryTrianglesNV) -> Vec<(vk::Buffer, u64, u64)> {
    let count = u64::from(it.vertex_count);
    let texel = format::block_size(it.vertex_format);
    let vertices = if count == 0 { 0 } else { (count - 1).saturating_mul(it.vertex_stride).saturating_add(texel) };
    let indices = index_size(it.index_type).map_or(0, |size| u64::from(it.index_count) * size);
    vec![
        (it.vertex_data, it.vertex_offset, vertices),
        (it.index_data, it.index_offset, indices),
        (it.transform_data, it.transform_offset, TRANSFORM),
    ]
}

fn boxes(it: &vk::GeometryAABBNV) -> Vec<(vk::Buffer, u64, u64)> {
    let count = u64::from(it.num_aab_bs);
    let size = if count == 0 { 0 } else { (count - 1) * u64::from(it.stride) + BOX };
    vec![(it.aabb_data, it.offset, size)]
}
