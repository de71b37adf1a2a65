//! The device on which a trace was captured, from the metadata of the trace.

use lavascope_abi as vk;
use lavascope_abi::ObjectId;
use serde_json::Value;

/// The properties of a device that matter for a replay on another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedDevice {
    pub(crate) name: String,
    pub(crate) driver_version: u64,
    /// Flags and heap of each type of memory.
    pub(crate) memory: Vec<(u32, u32)>,
    /// Flags of each queue family.
    pub(crate) families: Vec<u32>,
}

impl RecordedDevice {
    /// The metadata about a device, if the capture stored them.
    pub(crate) fn from_metadata(facts: &[Value], device: ObjectId) -> Option<RecordedDevice> {
        let object = device.to_string();
        let facts = facts.iter().map(|it| &it["device"]).find(|it| it["object"] == object.as_str())?;
        let numbers = |list: &Value, name: &str| -> Vec<u32> {
            let all = list.as_array().into_iter().flatten();
            all.map(|it| it[name].as_u64().unwrap_or(0) as u32).collect()
        };
        let types = &facts["memory_types"];
        let memory = numbers(types, "propertyFlags").into_iter().zip(numbers(types, "heapIndex")).collect();
        Some(RecordedDevice {
            name: facts["name"].as_str().unwrap_or_default().to_owned(),
            driver_version: facts["driver_version"].as_u64().unwrap_or(0),
            memory,
            families: numbers(&facts["queue_families"], "queueFlags"),
        })
    }
}

/// The types of memory of a device here.
pub(crate) fn memory_of(memory_properties: &vk::PhysicalDeviceMemoryProperties) -> Vec<(u32, u32)> {
    let all = memory_properties.memory_types.iter().take(memory_properties.memory_type_count as usize);
    all.map(|it| (it.property_flags.0, it.heap_index)).collect()
}

#[cfg(test)]
mod tests {
    use lavascope_abi::HandleType;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_facts_of_a_device_are_found_by_its_name() {
        let types = json!([{ "propertyFlags": 7, "heapIndex": 0 }, { "propertyFlags": 1, "heapIndex": 1 }]);
        let device = json!({
            "object": "VkDevice#3",
            "name": "a GPU",
            "driver_version": 5,
            "memory_types": types,
            "queue_families": [{ "queueFlags": 15, "queueCount": 1 }],
        });
        let facts = [json!({ "program": "it" }), json!({ "device": device })];
        let id = |serial| ObjectId::new(HandleType::Device, serial).expect("a small number");
        let origin = RecordedDevice::from_metadata(&facts, id(3)).expect("it is there");
        let memory = vec![(7, 0), (1, 1)];
        assert_eq!(origin, RecordedDevice { name: "a GPU".into(), driver_version: 5, memory, families: vec![15] });
        assert_eq!(RecordedDevice::from_metadata(&facts, id(4)), None);
    }
}
