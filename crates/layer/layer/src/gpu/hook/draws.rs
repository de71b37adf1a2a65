//! Hooks for draws and dispatches: each gives its shaders their tables.

use lavascope_abi::*;

use crate::DeviceTable;
use crate::gpu::checks_of;
use crate::gpu::draw::record::StateToRestore;
use crate::process::catch_panic::{catch_panic, run_if_enabled};

pub(crate) const GRAPHICS: usize = 0;
pub(crate) const COMPUTE: usize = 1;
const RAYS: usize = 2;

/// Defines a hook for each command, and a function that installs all of them.
macro_rules! draws {
    ($($name:ident: $command:ident, $bind_point:ident = fn($($parameter:ident: $ty:ty),*);)*) => {
        $(unsafe extern "system" fn $name(command_buffer: CommandBuffer, $($parameter: $ty),*) {
            // SAFETY: the commandBuffer-parameter VUID of every command that is recorded: the command buffer is valid until
            // the call returns.
            let Some(gpu) = (unsafe { checks_of(command_buffer.0) }) else { return };
            let Some(next) = gpu.next.$name else { return };
            let before = || gpu.before_draw(command_buffer, $bind_point, Command::$command);
            // A shader with our code must not run without tables.
            let permit = || gpu.record_permissive_draw(command_buffer, $bind_point);
            let after = run_if_enabled(Command::$command, before, || catch_panic(Command::$command, permit, StateToRestore::default));
            // SAFETY: the driver's function of this name, with the parameters that the application called ours with.
            unsafe { next(command_buffer, $($parameter),*) };
            if !after.is_empty() {
                catch_panic(Command::$command, || gpu.restore_state(command_buffer, $bind_point, &after), || ());
            }
        })*

        #[cfg(test)]
        const ALL: &[Command] = &[$(Command::$command),*];

        pub(crate) fn install(device_table: &mut DeviceTable) {
            $(if device_table.$name.is_some() {
                device_table.$name = Some($name);
            })*
        }
    };
}

draws! {
    cmd_trace_rays_indirect2_khr: CmdTraceRaysIndirect2KHR, RAYS = fn(indirect_device_address: u64);
    cmd_trace_rays_indirect_khr: CmdTraceRaysIndirectKHR, RAYS = fn(p_raygen: Ptr<StridedDeviceAddressRegionKHR>, p_miss: Ptr<StridedDeviceAddressRegionKHR>, p_hit: Ptr<StridedDeviceAddressRegionKHR>, p_callable: Ptr<StridedDeviceAddressRegionKHR>, indirect_device_address: u64);
    cmd_trace_rays_khr: CmdTraceRaysKHR, RAYS = fn(p_raygen: Ptr<StridedDeviceAddressRegionKHR>, p_miss: Ptr<StridedDeviceAddressRegionKHR>, p_hit: Ptr<StridedDeviceAddressRegionKHR>, p_callable: Ptr<StridedDeviceAddressRegionKHR>, width: u32, height: u32, depth: u32);
    cmd_trace_rays_nv: CmdTraceRaysNV, RAYS = fn(raygen: Buffer, raygen_offset: u64, miss: Buffer, miss_offset: u64, miss_stride: u64, hit: Buffer, hit_offset: u64, hit_stride: u64, callable: Buffer, callable_offset: u64, callable_stride: u64, width: u32, height: u32, depth: u32);
    cmd_dispatch: CmdDispatch, COMPUTE = fn(group_count_x: u32, group_count_y: u32, group_count_z: u32);
    cmd_dispatch_base: CmdDispatchBase, COMPUTE = fn(base_group_x: u32, base_group_y: u32, base_group_z: u32, group_count_x: u32, group_count_y: u32, group_count_z: u32);
    cmd_dispatch_indirect: CmdDispatchIndirect, COMPUTE = fn(buffer: Buffer, offset: u64);
    cmd_dispatch_indirect2_khr: CmdDispatchIndirect2KHR, COMPUTE = fn(p_info: Ptr<DispatchIndirect2InfoKHR>);
    cmd_dispatch_tile_qcom: CmdDispatchTileQCOM, COMPUTE = fn(p_dispatch_tile_info: Ptr<DispatchTileInfoQCOM>);
    cmd_draw: CmdDraw, GRAPHICS = fn(vertex_count: u32, instance_count: u32, first_vertex: u32, first_instance: u32);
    cmd_draw_cluster_huawei: CmdDrawClusterHUAWEI, GRAPHICS = fn(group_count_x: u32, group_count_y: u32, group_count_z: u32);
    cmd_draw_cluster_indirect_huawei: CmdDrawClusterIndirectHUAWEI, GRAPHICS = fn(buffer: Buffer, offset: u64);
    cmd_draw_indexed: CmdDrawIndexed, GRAPHICS = fn(index_count: u32, instance_count: u32, first_index: u32, vertex_offset: i32, first_instance: u32);
    cmd_draw_indexed_indirect: CmdDrawIndexedIndirect, GRAPHICS = fn(buffer: Buffer, offset: u64, draw_count: u32, stride: u32);
    cmd_draw_indexed_indirect2_khr: CmdDrawIndexedIndirect2KHR, GRAPHICS = fn(p_info: Ptr<DrawIndirect2InfoKHR>);
    cmd_draw_indexed_indirect_count: CmdDrawIndexedIndirectCount, GRAPHICS = fn(buffer: Buffer, offset: u64, count_buffer: Buffer, count_buffer_offset: u64, max_draw_count: u32, stride: u32);
    cmd_draw_indexed_indirect_count2_khr: CmdDrawIndexedIndirectCount2KHR, GRAPHICS = fn(p_info: Ptr<DrawIndirectCount2InfoKHR>);
    cmd_draw_indirect: CmdDrawIndirect, GRAPHICS = fn(buffer: Buffer, offset: u64, draw_count: u32, stride: u32);
    cmd_draw_indirect2_khr: CmdDrawIndirect2KHR, GRAPHICS = fn(p_info: Ptr<DrawIndirect2InfoKHR>);
    cmd_draw_indirect_byte_count2_ext: CmdDrawIndirectByteCount2EXT, GRAPHICS = fn(instance_count: u32, first_instance: u32, p_counter_info: Ptr<BindTransformFeedbackBuffer2InfoEXT>, counter_offset: u32, vertex_stride: u32);
    cmd_draw_indirect_byte_count_ext: CmdDrawIndirectByteCountEXT, GRAPHICS = fn(instance_count: u32, first_instance: u32, counter_buffer: Buffer, counter_buffer_offset: u64, counter_offset: u32, vertex_stride: u32);
    cmd_draw_indirect_count: CmdDrawIndirectCount, GRAPHICS = fn(buffer: Buffer, offset: u64, count_buffer: Buffer, count_buffer_offset: u64, max_draw_count: u32, stride: u32);
    cmd_draw_indirect_count2_khr: CmdDrawIndirectCount2KHR, GRAPHICS = fn(p_info: Ptr<DrawIndirectCount2InfoKHR>);
    cmd_draw_mesh_tasks_ext: CmdDrawMeshTasksEXT, GRAPHICS = fn(group_count_x: u32, group_count_y: u32, group_count_z: u32);
    cmd_draw_mesh_tasks_indirect2_ext: CmdDrawMeshTasksIndirect2EXT, GRAPHICS = fn(p_info: Ptr<DrawIndirect2InfoKHR>);
    cmd_draw_mesh_tasks_indirect_count2_ext: CmdDrawMeshTasksIndirectCount2EXT, GRAPHICS = fn(p_info: Ptr<DrawIndirectCount2InfoKHR>);
    cmd_draw_mesh_tasks_indirect_count_ext: CmdDrawMeshTasksIndirectCountEXT, GRAPHICS = fn(buffer: Buffer, offset: u64, count_buffer: Buffer, count_buffer_offset: u64, max_draw_count: u32, stride: u32);
    cmd_draw_mesh_tasks_indirect_count_nv: CmdDrawMeshTasksIndirectCountNV, GRAPHICS = fn(buffer: Buffer, offset: u64, count_buffer: Buffer, count_buffer_offset: u64, max_draw_count: u32, stride: u32);
    cmd_draw_mesh_tasks_indirect_ext: CmdDrawMeshTasksIndirectEXT, GRAPHICS = fn(buffer: Buffer, offset: u64, draw_count: u32, stride: u32);
    cmd_draw_mesh_tasks_indirect_nv: CmdDrawMeshTasksIndirectNV, GRAPHICS = fn(buffer: Buffer, offset: u64, draw_count: u32, stride: u32);
    cmd_draw_mesh_tasks_nv: CmdDrawMeshTasksNV, GRAPHICS = fn(task_count: u32, first_task: u32);
    cmd_draw_multi_ext: CmdDrawMultiEXT, GRAPHICS = fn(draw_count: u32, p_vertex_info: Ptr<MultiDrawInfoEXT>, instance_count: u32, first_instance: u32, stride: u32);
    cmd_draw_multi_indexed_ext: CmdDrawMultiIndexedEXT, GRAPHICS = fn(draw_count: u32, p_index_info: Ptr<MultiDrawIndexedInfoEXT>, instance_count: u32, first_instance: u32, stride: u32, p_vertex_offset: Ptr<i32>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_counted_here_as_the_validator_counts_them() {
        for command in Command::ALL {
            assert_eq!(ALL.contains(command), lavascope_validate::is_launch(*command), "{}", command.desc().name);
        }
    }
}
