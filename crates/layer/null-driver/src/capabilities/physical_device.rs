//! Questions about the one physical device: properties, features, queue families, memory.

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::capabilities::profile::booleans;
use crate::capabilities::properties;
use crate::capabilities::settings::DriverSettings;
use crate::capabilities::struct_bytes::StructBytes;

pub(crate) fn get_physical_device_properties(c: ApplicationMemory<'_>, call: &GetPhysicalDevicePropertiesParams) {
    write_properties(c, call.p_properties, &c.physical_device(call.physical_device).settings);
}

pub(crate) fn get_physical_device_properties2(c: ApplicationMemory<'_>, call: &GetPhysicalDeviceProperties2Params) {
    let settings = &c.physical_device(call.physical_device).settings;
    let Some(out) = c.get(call.p_properties) else { return };
    let inner = std::mem::offset_of!(PhysicalDeviceProperties2, properties) as u64;
    write_properties(c, Ptr::new(call.p_properties.0 + inner), settings);
    properties::fill_chain(c, out.p_next, settings);
}

fn write_properties(c: ApplicationMemory<'_>, to: Ptr<PhysicalDeviceProperties>, settings: &DriverSettings) {
    let layout = PhysicalDeviceProperties::layout();
    let bytes = c.slice_mut(to.cast::<u8>(), layout.size);
    bytes.fill(0);
    properties::fill(layout, &mut StructBytes(bytes), settings);
    if let Some(out) = c.get_mut(to) {
        // Applications prefer a device that looks like a real one.
        out.device_type = PhysicalDeviceType::DISCRETE_GPU;
        out.sparse_properties = PhysicalDeviceSparseProperties {
            residency_standard2_d_block_shape: Bool32::TRUE,
            residency_standard2_d_multisample_block_shape: Bool32::TRUE,
            residency_standard3_d_block_shape: Bool32::TRUE,
            residency_aligned_mip_size: Bool32::FALSE,
            residency_non_resident_strict: Bool32::TRUE,
        };
    }
}

pub(crate) fn get_physical_device_features(c: ApplicationMemory<'_>, call: &GetPhysicalDeviceFeaturesParams) {
    let settings = &c.physical_device(call.physical_device).settings;
    write_features(c, call.p_features.cast(), PhysicalDeviceFeatures::layout(), settings);
}

pub(crate) fn get_physical_device_features2(c: ApplicationMemory<'_>, call: &GetPhysicalDeviceFeatures2Params) {
    let settings = &c.physical_device(call.physical_device).settings;
    let Some(out) = c.get(call.p_features) else { return };
    let inner = std::mem::offset_of!(PhysicalDeviceFeatures2, features) as u64;
    write_features(c, Ptr::new(call.p_features.0 + inner), PhysicalDeviceFeatures::layout(), settings);
    for (at, s_type) in c.chain(out.p_next) {
        let layout = structure_by_type(s_type).filter(|it| it.name.contains("Features"));
        if let Some(layout) = layout {
            write_features(c, at, layout, settings);
        }
    }
}

fn write_features(c: ApplicationMemory<'_>, to: Ptr<Opaque>, layout: &'static desc::Layout, settings: &DriverSettings) {
    let bytes = c.slice_mut(to.cast::<u8>(), layout.size);
    for field in booleans(layout) {
        let is_on = settings.has_feature(layout.name, field.name);
        let at = field.at as usize;
        bytes[at..at + 4].copy_from_slice(&u32::from(is_on).to_le_bytes());
    }
}

pub(crate) fn get_physical_device_queue_family_properties(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceQueueFamilyPropertiesParams,
) {
    let families = &c.physical_device(call.physical_device).settings.queue_families;
    c.enumerate_values(call.p_queue_family_property_count, call.p_queue_family_properties, families);
}

pub(crate) fn get_physical_device_queue_family_properties2(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceQueueFamilyProperties2Params,
) {
    let families = &c.physical_device(call.physical_device).settings.queue_families;
    let (count, to) = (call.p_queue_family_property_count, call.p_queue_family_properties);
    c.enumerate(count, to, families, |out, at| {
        out.queue_family_properties = families[at];
        chained_family(c, out.p_next, families[at].queue_flags.0, at as u32);
    });
}

fn chained_family(c: ApplicationMemory<'_>, first: Ptr<Opaque>, flags: u32, index: u32) {
    let has = |bits: QueueFlags| flags & bits.0 != 0;
    if let Some(value) = c.find_mut::<QueueFamilyGlobalPriorityProperties>(first) {
        value.priority_count = 4;
        let all = [QueueGlobalPriority::LOW, QueueGlobalPriority::MEDIUM, QueueGlobalPriority::HIGH];
        value.priorities[..3].copy_from_slice(&all);
        value.priorities[3] = QueueGlobalPriority::REALTIME;
    }
    if let Some(value) = c.find_mut::<QueueFamilyVideoPropertiesKHR>(first) {
        let decode = if has(QueueFlags::VIDEO_DECODE_KHR) { 0x0f } else { 0 };
        let encode = if has(QueueFlags::VIDEO_ENCODE_KHR) { 0x7_0000 } else { 0 };
        value.video_codec_operations = VideoCodecOperationFlagsKHR(decode | encode);
    }
    if let Some(value) = c.find_mut::<QueueFamilyQueryResultStatusPropertiesKHR>(first) {
        value.query_result_status_support = Bool32::TRUE;
    }
    if let Some(value) = c.find_mut::<QueueFamilyOwnershipTransferPropertiesKHR>(first) {
        value.optimal_image_transfer_to_queue_families = !(1 << index);
    }
    if let Some(value) = c.find_mut::<QueueFamilyCheckpointProperties2NV>(first) {
        value.checkpoint_execution_stage_mask = PipelineStageFlags2::ALL_COMMANDS;
    }
    if let Some(value) = c.find_mut::<QueueFamilyCheckpointPropertiesNV>(first) {
        value.checkpoint_execution_stage_mask = PipelineStageFlags::ALL_COMMANDS;
    }
}

/// Types of memory by what they are good for.
pub(crate) const LAZY: u32 = 5;
pub(crate) const PROTECTED: u32 = 6;
/// The memory types that fit any resource.
pub(crate) const ORDINARY_TYPES: u32 = 0b1_1111;
/// The memory types that can be imported from the host: as with discrete devices, not those of the device that the host
/// can map.
pub(crate) const IMPORTED_TYPES: u32 = 0b0_1110;

/// Flags and heap of each memory type.
const MEMORY_TYPES: [(u32, u32); 7] = {
    let local = MemoryPropertyFlags::DEVICE_LOCAL.0;
    let host = MemoryPropertyFlags::HOST_VISIBLE.0 | MemoryPropertyFlags::HOST_COHERENT.0;
    let flushed = MemoryPropertyFlags::HOST_VISIBLE.0 | MemoryPropertyFlags::HOST_CACHED.0;
    [
        (local, 0),
        (host, 1),
        (flushed, 1),
        (host | MemoryPropertyFlags::HOST_CACHED.0, 1),
        (local | host, 0),
        (local | MemoryPropertyFlags::LAZILY_ALLOCATED.0, 0),
        (local | MemoryPropertyFlags::PROTECTED.0, 0),
    ]
};

/// The heap of a memory type; none for a type that is not there.
pub(crate) fn heap_of(memory_type: u32) -> Option<usize> {
    MEMORY_TYPES.get(memory_type as usize).map(|it| it.1 as usize)
}

fn memory_properties(settings: &DriverSettings) -> PhysicalDeviceMemoryProperties {
    let mut out = PhysicalDeviceMemoryProperties::zeroed();
    out.memory_type_count = MEMORY_TYPES.len() as u32;
    for (to, from) in out.memory_types.iter_mut().zip(MEMORY_TYPES) {
        *to = MemoryType { property_flags: MemoryPropertyFlags(from.0), heap_index: from.1 };
    }
    out.memory_heap_count = 2;
    let device_local = MemoryHeapFlags::DEVICE_LOCAL;
    out.memory_heaps[0] = MemoryHeap { size: settings.heap_bytes, flags: device_local };
    out.memory_heaps[1] = MemoryHeap { size: settings.heap_bytes, flags: MemoryHeapFlags(0) };
    out
}

pub(crate) fn get_physical_device_memory_properties(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceMemoryPropertiesParams,
) {
    let settings = &c.physical_device(call.physical_device).settings;
    c.write(call.p_memory_properties, memory_properties(settings));
}

pub(crate) fn get_physical_device_memory_properties2(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceMemoryProperties2Params,
) {
    let settings = &c.physical_device(call.physical_device).settings;
    let Some(out) = c.get_mut(call.p_memory_properties) else { return };
    out.memory_properties = memory_properties(settings);
    if let Some(value) = c.find_mut::<PhysicalDeviceMemoryBudgetPropertiesEXT>(out.p_next) {
        value.heap_budget = [0; 16];
        value.heap_usage = [0; 16];
        value.heap_budget[..2].fill(settings.heap_bytes);
    }
}

pub(crate) fn get_physical_device_multisample_properties_ext(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceMultisamplePropertiesEXTParams,
) {
    if let Some(out) = c.get_mut(call.p_multisample_properties) {
        out.max_sample_location_grid_size = Extent2D { width: 2, height: 2 };
    }
}

pub(crate) fn get_physical_device_calibrateable_time_domains_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceCalibrateableTimeDomainsKHRParams,
) -> Result {
    let domains =
        [TimeDomainKHR::DEVICE_KHR, TimeDomainKHR::CLOCK_MONOTONIC_KHR, TimeDomainKHR::CLOCK_MONOTONIC_RAW_KHR];
    c.enumerate_values(call.p_time_domain_count, call.p_time_domains, &domains)
}

/// All rates up to 4 by 4, the largest first, as the specification orders them.
pub(crate) fn get_physical_device_fragment_shading_rates_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceFragmentShadingRatesKHRParams,
) -> Result {
    let rates = [(4, 4), (4, 2), (2, 4), (4, 1), (2, 2), (1, 4), (2, 1), (1, 2), (1, 1)];
    c.enumerate(call.p_fragment_shading_rate_count, call.p_fragment_shading_rates, &rates, |shading_rate, at| {
        let (width, height) = rates[at];
        shading_rate.fragment_size = Extent2D { width, height };
        shading_rate.sample_counts = SampleCountFlags(if (width, height) == (1, 1) { u32::MAX } else { 0x1f });
    })
}
