//! Acceleration structures, micromaps and shader groups: sizes, addresses and handles that are the same in every run
//! unless another salt is set.

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::DriverObjectTable;
use crate::capabilities::physical_device::ORDINARY_TYPES;
use crate::resources::buffers::BUFFERS;

static STRUCTURES: DriverObjectTable<AccelerationStructureData> =
    DriverObjectTable::new(HandleType::AccelerationStructureKHR);
/// The size of a structure without contents.
pub(crate) const MIN_STRUCTURE_BYTES: u64 = 4096;
const BYTES_PER_PRIMITIVE: u64 = 64;
const ALIGNMENT: u64 = 256;
const GROUP_HANDLE_BYTES: usize = 32;

/// An acceleration structure.
struct AccelerationStructureData {
    address: u64,
    size: u64,
}

pub(crate) fn create_acceleration_structure_khr(
    c: ApplicationMemory<'_>,
    call: &CreateAccelerationStructureKHRParams,
) -> Result {
    let Some(info) = c.get(call.p_create_info) else { return Result::ERROR_UNKNOWN };
    let base = BUFFERS.get(info.buffer.0).map_or(0, |it| it.address());
    let structure = AccelerationStructureData { address: base + info.offset, size: info.size };
    c.write(call.p_acceleration_structure, AccelerationStructureKHR(STRUCTURES.add(structure)));
    Result::SUCCESS
}

pub(crate) fn create_acceleration_structure2_khr(
    c: ApplicationMemory<'_>,
    call: &CreateAccelerationStructure2KHRParams,
) -> Result {
    let Some(info) = c.get(call.p_create_info) else { return Result::ERROR_UNKNOWN };
    let structure = AccelerationStructureData { address: info.address_range.address, size: info.address_range.size };
    c.write(call.p_acceleration_structure, AccelerationStructureKHR(STRUCTURES.add(structure)));
    Result::SUCCESS
}

pub(crate) fn destroy_acceleration_structure_khr(
    _: ApplicationMemory<'_>,
    call: &DestroyAccelerationStructureKHRParams,
) {
    STRUCTURES.remove(call.acceleration_structure.0);
}

/// The result of a size query; compaction saves nothing here.
pub(crate) fn size_of_structure(structure: AccelerationStructureKHR) -> u64 {
    STRUCTURES.get(structure.0).map_or(MIN_STRUCTURE_BYTES, |it| it.size)
}

pub(crate) fn get_acceleration_structure_device_address_khr(
    c: ApplicationMemory<'_>,
    call: &GetAccelerationStructureDeviceAddressKHRParams,
) -> u64 {
    let found = c.get(call.p_info).and_then(|it| STRUCTURES.get(it.acceleration_structure.0));
    found.map_or(0, |it| it.address)
}

pub(crate) fn get_acceleration_structure_handle_nv(
    c: ApplicationMemory<'_>,
    call: &GetAccelerationStructureHandleNVParams,
) -> Result {
    let bytes = call.acceleration_structure.0.to_le_bytes();
    let out = c.slice_mut(call.p_data.cast::<u8>(), call.data_size);
    let size = out.len().min(bytes.len());
    out[..size].copy_from_slice(&bytes[..size]);
    Result::SUCCESS
}

fn size_for(primitives: u64) -> u64 {
    MIN_STRUCTURE_BYTES.saturating_add(primitives.saturating_mul(BYTES_PER_PRIMITIVE)).next_multiple_of(ALIGNMENT)
}

fn put_sizes(c: ApplicationMemory<'_>, to: Ptr<AccelerationStructureBuildSizesInfoKHR>, primitives: u64) {
    let Some(out) = c.get_mut(to) else { return };
    out.acceleration_structure_size = size_for(primitives);
    out.build_scratch_size = size_for(primitives / 2);
    out.update_scratch_size = size_for(primitives / 4);
}

pub(crate) fn get_acceleration_structure_build_sizes_khr(
    c: ApplicationMemory<'_>,
    call: &GetAccelerationStructureBuildSizesKHRParams,
) {
    let geometries = c.get(call.p_build_info).map_or(0, |it| it.geometry_count);
    let counts = c.slice(call.p_max_primitive_counts, geometries);
    put_sizes(c, call.p_size_info, counts.iter().map(|it| u64::from(*it)).sum());
}

pub(crate) fn get_cluster_acceleration_structure_build_sizes_nv(
    c: ApplicationMemory<'_>,
    call: &GetClusterAccelerationStructureBuildSizesNVParams,
) {
    let count = c.get(call.p_info).map_or(0, |it| it.max_acceleration_structure_count);
    put_sizes(c, call.p_size_info, u64::from(count) * 128);
}

pub(crate) fn get_partitioned_acceleration_structures_build_sizes_nv(
    c: ApplicationMemory<'_>,
    call: &GetPartitionedAccelerationStructuresBuildSizesNVParams,
) {
    let count = c.get(call.p_info).map_or(0, |it| it.instance_count);
    put_sizes(c, call.p_size_info, u64::from(count));
}

pub(crate) fn get_micromap_build_sizes_ext(c: ApplicationMemory<'_>, call: &GetMicromapBuildSizesEXTParams) {
    let (Some(info), Some(out)) = (c.get(call.p_build_info), c.get_mut(call.p_size_info)) else { return };
    let direct = c.slice(info.p_usage_counts, info.usage_counts_count);
    let triangles: u64 = direct.iter().map(|it| u64::from(it.count)).sum();
    out.micromap_size = size_for(triangles);
    out.build_scratch_size = size_for(triangles / 2);
    out.discardable = Bool32::FALSE;
}

pub(crate) fn get_acceleration_structure_memory_requirements_nv(
    c: ApplicationMemory<'_>,
    call: &GetAccelerationStructureMemoryRequirementsNVParams,
) {
    let Some(out) = c.get_mut(call.p_memory_requirements) else { return };
    out.memory_requirements =
        MemoryRequirements { size: 1 << 16, alignment: ALIGNMENT, memory_type_bits: ORDINARY_TYPES };
}

pub(crate) fn get_device_acceleration_structure_compatibility_khr(
    c: ApplicationMemory<'_>,
    call: &GetDeviceAccelerationStructureCompatibilityKHRParams,
) {
    c.write(call.p_compatibility, AccelerationStructureCompatibilityKHR::COMPATIBLE_KHR);
}

pub(crate) fn get_device_micromap_compatibility_ext(
    c: ApplicationMemory<'_>,
    call: &GetDeviceMicromapCompatibilityEXTParams,
) {
    c.write(call.p_compatibility, AccelerationStructureCompatibilityKHR::COMPATIBLE_KHR);
}

/// A handle is the pipeline and the number of the group.
fn put_group_handles(salt: u64, pipeline: Pipeline, first: u32, count: u32, out: &mut [u8]) {
    for (at, handle) in out.chunks_mut(GROUP_HANDLE_BYTES).take(count as usize).enumerate() {
        let words = [pipeline.0, u64::from(first) + at as u64, 0x6c61_7661 ^ salt, 0x7363_6f70];
        let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
        handle.copy_from_slice(&bytes[..handle.len()]);
    }
}

pub(crate) fn get_ray_tracing_shader_group_handles_khr(
    c: ApplicationMemory<'_>,
    call: &GetRayTracingShaderGroupHandlesKHRParams,
) -> Result {
    let out = c.slice_mut(call.p_data.cast::<u8>(), call.data_size);
    let salt = c.device(call.device).settings.salt;
    put_group_handles(salt, call.pipeline, call.first_group, call.group_count, out);
    Result::SUCCESS
}

pub(crate) fn get_ray_tracing_capture_replay_shader_group_handles_khr(
    c: ApplicationMemory<'_>,
    call: &GetRayTracingCaptureReplayShaderGroupHandlesKHRParams,
) -> Result {
    let out = c.slice_mut(call.p_data.cast::<u8>(), call.data_size);
    let salt = c.device(call.device).settings.salt;
    put_group_handles(salt, call.pipeline, call.first_group, call.group_count, out);
    Result::SUCCESS
}

pub(crate) fn get_ray_tracing_shader_group_stack_size_khr(
    _: ApplicationMemory<'_>,
    _: &GetRayTracingShaderGroupStackSizeKHRParams,
) -> u64 {
    1024
}

fn write_strided(out: &mut [u8], stride: u64, values: impl Iterator<Item = u64>) {
    for (at, value) in values.enumerate() {
        let at = at * stride as usize;
        if let Some(to) = out.get_mut(at..at + 8) {
            to.copy_from_slice(&value.to_le_bytes());
        }
    }
}

pub(crate) fn write_acceleration_structures_properties_khr(
    c: ApplicationMemory<'_>,
    call: &WriteAccelerationStructuresPropertiesKHRParams,
) -> Result {
    let out = c.slice_mut(call.p_data.cast::<u8>(), call.data_size);
    let structures = c.slice(call.p_acceleration_structures, call.acceleration_structure_count);
    write_strided(out, call.stride, structures.iter().map(|it| size_of_structure(*it)));
    Result::SUCCESS
}

pub(crate) fn write_micromaps_properties_ext(
    c: ApplicationMemory<'_>,
    call: &WriteMicromapsPropertiesEXTParams,
) -> Result {
    let out = c.slice_mut(call.p_data.cast::<u8>(), call.data_size);
    write_strided(out, call.stride, std::iter::repeat_n(MIN_STRUCTURE_BYTES, call.micromap_count as usize));
    Result::SUCCESS
}
