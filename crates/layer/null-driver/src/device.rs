//! Devices and their queues.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::dispatchable;
use crate::capabilities::extensions::ApiBlockKind;
use crate::capabilities::settings::DriverSettings;
use crate::execution::queue_engine;
use crate::instance::is_offered;

/// The object of a `VkDevice`.
pub(crate) struct DeviceData {
    pub(crate) settings: Arc<DriverSettings>,
    /// The device extensions that the application turned on.
    pub(crate) enabled: Vec<CString>,
    /// By family, index and whether it is protected.
    queues: BTreeMap<(u32, u32, bool), Queue>,
    /// Bytes allocated from each heap. Relaxed: a sum that orders nothing.
    pub(crate) heap_used: [AtomicU64; 2],
}

/// The object of a `VkQueue`.
pub(crate) struct QueueData {
    pub(crate) number: u64,
    /// As in the settings.
    pub(crate) lose_at_submission: u64,
}

pub(crate) fn create_device(c: ApplicationMemory<'_>, call: &CreateDeviceParams) -> Result {
    let settings = Arc::clone(&c.physical_device(call.physical_device).settings);
    let Some(info) = c.get(call.p_create_info) else { return Result::ERROR_UNKNOWN };
    let mut enabled = Vec::new();
    for name in c.slice(info.pp_enabled_extension_names, info.enabled_extension_count) {
        let name = c.text(*name);
        if !is_offered(name, ApiBlockKind::Device, &settings) {
            return Result::ERROR_EXTENSION_NOT_PRESENT;
        }
        enabled.push(name.to_owned());
    }
    if !are_features_supported(c, info, &settings) {
        return Result::ERROR_FEATURE_NOT_PRESENT;
    }
    let Some(queues) = create_queues(c, info, &settings) else { return Result::ERROR_INITIALIZATION_FAILED };
    let device = DeviceData { settings, enabled, queues, heap_used: [const { AtomicU64::new(0) }; 2] };
    let Some(handle) = dispatchable::create(device) else { return Result::ERROR_OUT_OF_HOST_MEMORY };
    c.write(call.p_device, Device(handle));
    Result::SUCCESS
}

/// Whether every feature that is turned on is one that a profile left.
fn are_features_supported(c: ApplicationMemory<'_>, info: &DeviceCreateInfo, settings: &DriverSettings) -> bool {
    if settings.profile.is_none() {
        return true;
    }
    let core = info.p_enabled_features.cast::<Opaque>();
    let core = (!core.is_null()).then(|| (core, PhysicalDeviceFeatures::layout()));
    let chained = c.chain(info.p_next).filter_map(|(at, s_type)| Some((at, structure_by_type(s_type)?)));
    let mut asked = core.into_iter().chain(chained.filter(|it| it.1.name.contains("Features")));
    asked.all(|(at, layout)| {
        let bytes = c.slice(at.cast::<u8>(), layout.size);
        crate::capabilities::profile::booleans(layout).all(|boolean| {
            let is_on = bytes[boolean.at as usize..boolean.at as usize + 4] != [0; 4];
            !is_on || settings.has_feature(layout.name, boolean.name)
        })
    })
}

fn create_queues(
    c: ApplicationMemory<'_>,
    info: &DeviceCreateInfo,
    settings: &DriverSettings,
) -> Option<BTreeMap<(u32, u32, bool), Queue>> {
    let infos = c.slice(info.p_queue_create_infos, info.queue_create_info_count);
    let count = |family: u32| settings.queue_families.get(family as usize).map_or(0, |it| it.queue_count);
    if infos.iter().any(|it| it.queue_count > count(it.queue_family_index)) {
        return None;
    }
    let mut queues = BTreeMap::new();
    for create_info in infos {
        let is_protected = create_info.flags.0 & DeviceQueueCreateFlags::PROTECTED.0 != 0;
        for index in 0..create_info.queue_count {
            let queue = dispatchable::create(QueueData {
                number: queue_engine::next_queue(),
                lose_at_submission: settings.lose_at_submission,
            })?;
            queues.insert((create_info.queue_family_index, index, is_protected), Queue(queue));
        }
    }
    Some(queues)
}

pub(crate) fn destroy_device(c: ApplicationMemory<'_>, call: &DestroyDeviceParams) {
    if call.device.0 == 0 {
        return;
    }
    // In the reverse order, so that the next device gets the same handles.
    for queue in c.device(call.device).queues.values().rev() {
        queue_engine::remove_queue(c.queue(*queue).number);
        c.destroy::<QueueData>(queue.0);
    }
    c.destroy::<DeviceData>(call.device.0);
    crate::resources::external::remove_dead_exports();
}

pub(crate) fn get_device_queue(c: ApplicationMemory<'_>, call: &GetDeviceQueueParams) {
    let key = (call.queue_family_index, call.queue_index, false);
    c.write(call.p_queue, c.device(call.device).queues.get(&key).copied().unwrap_or_default());
}

pub(crate) fn get_device_queue2(c: ApplicationMemory<'_>, call: &GetDeviceQueue2Params) {
    let Some(info) = c.get(call.p_queue_info) else { return };
    let is_protected = info.flags.0 & DeviceQueueCreateFlags::PROTECTED.0 != 0;
    let key = (info.queue_family_index, info.queue_index, is_protected);
    c.write(call.p_queue, c.device(call.device).queues.get(&key).copied().unwrap_or_default());
}

pub(crate) fn queue_wait_idle(c: ApplicationMemory<'_>, call: &QueueWaitIdleParams) -> Result {
    queue_engine::wait_idle(&[c.queue(call.queue).number])
}

pub(crate) fn device_wait_idle(c: ApplicationMemory<'_>, call: &DeviceWaitIdleParams) -> Result {
    let numbers: Vec<u64> = c.device(call.device).queues.values().map(|it| c.queue(*it).number).collect();
    queue_engine::wait_idle(&numbers)
}

/// Fault information that a driver may report for a lost device: here an unmapped page.
pub(crate) fn get_device_fault_info_ext(c: ApplicationMemory<'_>, call: &GetDeviceFaultInfoEXTParams) -> Result {
    let Some(mut counts) = c.get(call.p_fault_counts).copied() else { return Result::ERROR_UNKNOWN };
    let Some(mut info) = c.get(call.p_fault_info).copied() else {
        (counts.address_info_count, counts.vendor_info_count, counts.vendor_binary_size) = (1, 0, 0);
        c.write(call.p_fault_counts, counts);
        return Result::SUCCESS;
    };
    let text = if queue_engine::is_lost() { "a submission never ended" } else { "" };
    info.description = [0; 256];
    info.description[..text.len()].copy_from_slice(text.as_bytes());
    c.write(call.p_fault_info, info);
    if counts.address_info_count == 0 || info.p_address_infos.is_null() {
        return Result::INCOMPLETE;
    }
    let address = DeviceFaultAddressInfoKHR {
        address_type: DeviceFaultAddressTypeKHR::READ_INVALID_KHR,
        reported_address: 0xdead_b000,
        address_precision: 4096,
    };
    c.write(info.p_address_infos, address);
    counts.address_info_count = 1;
    c.write(call.p_fault_counts, counts);
    Result::SUCCESS
}

/// A queue for another API: nothing is ever submitted to it.
pub(crate) fn create_external_compute_queue_nv(
    c: ApplicationMemory<'_>,
    call: &CreateExternalComputeQueueNVParams,
) -> Result {
    let Some(handle) = dispatchable::create(()) else { return Result::ERROR_OUT_OF_HOST_MEMORY };
    c.write(call.p_external_queue, ExternalComputeQueueNV(handle));
    Result::SUCCESS
}

pub(crate) fn destroy_external_compute_queue_nv(c: ApplicationMemory<'_>, call: &DestroyExternalComputeQueueNVParams) {
    if call.external_queue.0 != 0 {
        c.destroy::<()>(call.external_queue.0);
    }
}

pub(crate) fn get_device_group_peer_memory_features(
    c: ApplicationMemory<'_>,
    call: &GetDeviceGroupPeerMemoryFeaturesParams,
) {
    let all = PeerMemoryFeatureFlags::COPY_SRC.0
        | PeerMemoryFeatureFlags::COPY_DST.0
        | PeerMemoryFeatureFlags::GENERIC_SRC.0
        | PeerMemoryFeatureFlags::GENERIC_DST.0;
    c.write(call.p_peer_memory_features, PeerMemoryFeatureFlags(all));
}

pub(crate) fn get_render_area_granularity(c: ApplicationMemory<'_>, call: &GetRenderAreaGranularityParams) {
    c.write(call.p_granularity, Extent2D { width: 1, height: 1 });
}

pub(crate) fn get_rendering_area_granularity(c: ApplicationMemory<'_>, call: &GetRenderingAreaGranularityParams) {
    c.write(call.p_granularity, Extent2D { width: 1, height: 1 });
}

/// All clocks show the driver's own time, which counts the timestamps written so far.
pub(crate) fn get_calibrated_timestamps_khr(
    c: ApplicationMemory<'_>,
    call: &GetCalibratedTimestampsKHRParams,
) -> Result {
    c.slice_mut(call.p_timestamps, call.timestamp_count).fill(queue_engine::time());
    c.write(call.p_max_deviation, 1);
    Result::SUCCESS
}
