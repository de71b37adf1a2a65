//! Describes the device in the trace, as the driver reports it, so that the trace can be replayed on another device.

use std::mem::MaybeUninit;

use lavascope_abi::desc::{Layout, Ty};
use lavascope_abi::*;
use serde_json::{Map, Value, json};

use crate::intercept::handle_table::PROCESS_HANDLES;
use crate::loader::instance::InstanceData;
use crate::loader::interface::{out, out_slice};
use crate::process::process_state::PROCESS_STATE;

/// Asks the driver about the device that was just made, for the trace.
///
/// # Safety
///
/// Both handles must be alive until this returns, and the physical device must be one of the instance.
pub(crate) unsafe fn record_device_metadata(instance: &InstanceData, physical_device: PhysicalDevice, device: Device) {
    let id = PROCESS_HANDLES.slot(HandleType::Device, device.0).and_then(|it| PROCESS_STATE.objects.id(it));
    let mut facts = Map::new();
    facts.insert("object".into(), id.map(|it| it.to_string()).into());
    // SAFETY: the contract of this function, which is that of each of these.
    unsafe {
        facts.extend(properties(instance, physical_device));
        facts.extend(driver_properties(instance, physical_device));
        facts.insert("queue_families".into(), queue_families(instance, physical_device));
        facts.extend(memory_properties(instance, physical_device));
    }
    PROCESS_STATE.add_trace_metadata(json!({ "device": facts }));
}

/// # Safety
///
/// The physical device must be one of the instance, and be alive until this returns.
unsafe fn properties(instance: &InstanceData, physical_device: PhysicalDevice) -> Map<String, Value> {
    let mut all = Map::new();
    let Some(ask) = instance.table.get_physical_device_properties else { return all };
    let mut found = PhysicalDeviceProperties::zeroed();
    // SAFETY: the contract of this function, for the function of its instance; the place of the answer is ours.
    unsafe { ask(physical_device, out(&mut found)) };
    let uuid: String = found.pipeline_cache_uuid.iter().map(|it| format!("{it:02x}")).collect();
    all.insert("name".into(), text_of(&found.device_name).into());
    all.insert("type".into(), device_type_name(found.device_type).into());
    all.insert("vendor".into(), found.vendor_id.into());
    all.insert("model".into(), found.device_id.into());
    all.insert("api_version".into(), version_text(found.api_version).into());
    all.insert("driver_version".into(), found.driver_version.into());
    all.insert("pipeline_cache_uuid".into(), uuid.into());
    all.insert("limits".into(), struct_to_json(&found.limits));
    all.insert("sparse_properties".into(), struct_to_json(&found.sparse_properties));
    all
}

/// The vendor of the driver, if it can be queried.
///
/// # Safety
///
/// As for [`properties`].
unsafe fn driver_properties(instance: &InstanceData, physical_device: PhysicalDevice) -> Map<String, Value> {
    let mut all = Map::new();
    let Some(ask) = instance.table.get_physical_device_properties2 else { return all };
    let mut own = PhysicalDeviceDriverProperties::zeroed();
    own.s_type = StructureType::PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    let mut asked = PhysicalDeviceProperties2::zeroed();
    asked.s_type = StructureType::PHYSICAL_DEVICE_PROPERTIES_2;
    asked.p_next = out(&mut own).cast();
    // SAFETY: the contract of this function, for the function of its instance; both places are ours. A driver skips
    // what it does not know in the chain of an output.
    unsafe { ask(physical_device, out(&mut asked)) };
    let name = text_of(&own.driver_name);
    if !name.is_empty() {
        all.insert("driver".into(), name.into());
        all.insert("driver_info".into(), text_of(&own.driver_info).into());
        all.insert("driver_id".into(), own.driver_id.0.into());
    }
    all
}

/// # Safety
///
/// As for [`properties`].
unsafe fn queue_families(instance: &InstanceData, physical_device: PhysicalDevice) -> Value {
    let Some(ask) = instance.table.get_physical_device_queue_family_properties else { return Value::Null };
    let mut count = 0u32;
    // SAFETY: the contract of this function, for the function of its instance; a null array asks for the count, whose
    // place is ours.
    unsafe { ask(physical_device, out(&mut count), Ptr::NULL) };
    let mut all = vec![QueueFamilyProperties::zeroed(); count as usize];
    // SAFETY: as for the count, with an array of ours that has as many elements as the count says.
    unsafe { ask(physical_device, out(&mut count), out_slice(&mut all)) };
    all.iter().map(struct_to_json).collect()
}

/// # Safety
///
/// As for [`properties`].
unsafe fn memory_properties(instance: &InstanceData, physical_device: PhysicalDevice) -> Map<String, Value> {
    let mut all = Map::new();
    let Some(ask) = instance.table.get_physical_device_memory_properties else { return all };
    let mut found = PhysicalDeviceMemoryProperties::zeroed();
    // SAFETY: the contract of this function, for the function of its instance; the place of the answer is ours.
    unsafe { ask(physical_device, out(&mut found)) };
    let types = found.memory_types.iter().take(found.memory_type_count as usize);
    let heaps = found.memory_heaps.iter().take(found.memory_heap_count as usize);
    all.insert("memory_types".into(), types.map(struct_to_json).collect());
    all.insert("memory_heaps".into(), heaps.map(struct_to_json).collect());
    all
}

/// A structure of plain numbers as JSON, with the names of its members.
fn struct_to_json<T: Structure>(value: &T) -> Value {
    // SAFETY: any memory may be read as bytes that need not have a value, as those of padding.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) };
    // SAFETY: the bytes of a value with this layout.
    unsafe { fields_to_json(T::layout(), bytes) }
}

/// # Safety
///
/// The bytes must be those of a value with this layout.
unsafe fn fields_to_json(layout: &Layout, bytes: &[MaybeUninit<u8>]) -> Value {
    let mut all = Map::new();
    for field in layout.fields {
        let size = field.ty.size();
        let one = |index: u32| {
            let at = (field.at + index * size) as usize;
            // SAFETY: by the contract of this function these are the bytes of a value of this type.
            bytes.get(at..at + size as usize).map_or(Value::Null, |it| unsafe { scalar_to_json(&field.ty, it) })
        };
        let value = if field.count == 1 { one(0) } else { (0..field.count).map(one).collect() };
        all.insert(field.name.to_owned(), value);
    }
    Value::Object(all)
}

/// # Safety
///
/// The bytes must be those of a value of this type.
unsafe fn scalar_to_json(ty: &Ty, bytes: &[MaybeUninit<u8>]) -> Value {
    if let Ty::Struct(layout) = ty {
        // SAFETY: by the contract of this function the bytes are those of a value with this layout.
        return unsafe { fields_to_json(layout, bytes) };
    }
    // SAFETY: by the contract of this function the bytes are those of a number, which has no padding.
    let byte = |it: &MaybeUninit<u8>| u64::from(unsafe { it.assume_init() });
    let raw = bytes.iter().rev().take(8).fold(0u64, |all, it| all << 8 | byte(it));
    match ty {
        Ty::F32 => f32::from_bits(raw as u32).into(),
        Ty::F64 => f64::from_bits(raw).into(),
        Ty::I32 | Ty::Enum(_) => (raw as u32 as i32).into(),
        Ty::Bool32 => (raw != 0).into(),
        _ => raw.into(),
    }
}

fn version_text(packed: u32) -> String {
    format!("{}.{}.{}", packed >> 22 & 0x7f, packed >> 12 & 0x3ff, packed & 0xfff)
}

fn device_type_name(ty: PhysicalDeviceType) -> &'static str {
    match ty {
        PhysicalDeviceType::INTEGRATED_GPU => "integrated GPU",
        PhysicalDeviceType::DISCRETE_GPU => "discrete GPU",
        PhysicalDeviceType::VIRTUAL_GPU => "virtual GPU",
        PhysicalDeviceType::CPU => "CPU",
        _ => "other",
    }
}

/// A string of the driver, up to the terminating zero.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_of_numbers_is_reported_by_names() {
        let mut family = QueueFamilyProperties::zeroed();
        (family.queue_count, family.timestamp_valid_bits) = (3, 64);
        family.min_image_transfer_granularity.height = 7;
        let json_value = struct_to_json(&family);
        let granularity = json!({ "width": 0, "height": 7, "depth": 0 });
        let expected = json!({ "queueFlags": 0, "queueCount": 3, "timestampValidBits": 64, "minImageTransferGranularity": granularity });
        assert_eq!(json_value, expected);
        let mut limits = PhysicalDeviceLimits::zeroed();
        (limits.point_size_range, limits.strict_lines) = ([1.0, 2.5], Bool32(1));
        let json_value = struct_to_json(&limits);
        assert_eq!((&json_value["pointSizeRange"], &json_value["strictLines"]), (&json!([1.0, 2.5]), &json!(true)));
    }
}
