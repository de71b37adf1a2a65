//! How host writes are found in memory of each type, chosen when a device is made.
//!
//! In this order: the driver imports memory of ours; the application gets a copy; all bytes are compared. Comparing is
//! for memory that the processor caches, as far as that takes little time: how fast the memory can be read is measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lavascope_abi::*;
use lavascope_platform::device_memory;
use lavascope_settings::CaptureMemory;
use serde_json::{Value, json};

use super::import::is_grouped;
use super::types_with;
use crate::DeviceTable;
use crate::loader::instance::{InstanceData, has_name};
use crate::loader::pnext_chain::find_in_chain;

/// All compared memory together may cost so much before each submission.
const COMPARE_TIME_MAX: Duration = Duration::from_micros(20);

/// Bytes that are read to measure. Few: of uncached memory they take about 100 us.
const MEASURED_BYTES: usize = 4096;

/// What is chosen for a device.
#[derive(Default)]
pub(super) struct DetectionChoice {
    /// Types of memory that get a copy, one bit each.
    copied: u32,
    /// Those of them that are compared while that is cheap.
    cached: u32,
    /// The bytes that may still be compared. Relaxed: a little more or less does no harm.
    compare_left: AtomicU64,
    types: Vec<TypeChoice>,
}

struct TypeChoice {
    index: u32,
    method: &'static str,
    reason: String,
}

/// What is known of a device when the choice is made.
pub(super) struct DetectionFacts<'a> {
    pub(super) setting: CaptureMemory,
    pub(super) properties: &'a PhysicalDeviceMemoryProperties,
    /// Types of which the driver imports memory of ours, one bit each.
    pub(super) imported: u32,
    /// Why no memory can have a copy.
    pub(super) obstacle: Option<&'static str>,
    /// Whether the driver runs on the processor, and its writes are told apart from the host's.
    pub(super) is_processor: bool,
    /// Bytes that can be read in the time that comparing may take, of a type.
    pub(super) bytes_per_compare: &'a dyn Fn(u32) -> Option<u64>,
}

impl DetectionChoice {
    pub(super) fn new(facts: &DetectionFacts<'_>) -> DetectionChoice {
        let mut choice = DetectionChoice::default();
        let visible = types_with(facts.properties, MemoryPropertyFlags::HOST_VISIBLE);
        for index in (0..facts.properties.memory_type_count.min(32)).filter(|it| visible >> it & 1 != 0) {
            let (method, reason) = choice.add_type(index, facts);
            choice.types.push(TypeChoice { index, method, reason });
        }
        choice
    }

    fn add_type(&mut self, index: u32, facts: &DetectionFacts<'_>) -> (&'static str, String) {
        let bit = 1 << index;
        let has = |flag| types_with(facts.properties, flag) & bit != 0;
        match facts.setting {
            CaptureMemory::Mprotect => return ("mprotect", "the setting capture_memory".to_owned()),
            CaptureMemory::Compare => return ("compare", "the setting capture_memory".to_owned()),
            CaptureMemory::Auto | CaptureMemory::Copy | CaptureMemory::Userfaultfd => {}
        }
        if facts.is_processor && has(MemoryPropertyFlags::HOST_COHERENT) {
            self.copied |= bit;
            return ("copy", "the driver runs on the processor, as the program does".to_owned());
        }
        if facts.imported & bit != 0 {
            return ("userfaultfd", "the driver imports memory of the layer".to_owned());
        }
        if facts.setting == CaptureMemory::Userfaultfd {
            return ("compare", "the driver does not import memory of the layer".to_owned());
        }
        if let Some(obstacle) = facts.obstacle {
            return ("compare", obstacle.to_owned());
        }
        if !has(MemoryPropertyFlags::HOST_COHERENT) {
            return ("compare", "the memory is not coherent".to_owned());
        }
        self.copied |= bit;
        if facts.setting == CaptureMemory::Copy {
            return ("copy", "the setting capture_memory".to_owned());
        }
        if !has(MemoryPropertyFlags::HOST_CACHED) {
            return ("copy", "the processor does not cache the memory".to_owned());
        }
        let Some(bytes) = (facts.bytes_per_compare)(index) else {
            return ("copy", "the memory cannot be measured".to_owned());
        };
        self.cached |= bit;
        let left = match *self.compare_left.get_mut() {
            0 => bytes,
            left => left.min(bytes),
        };
        *self.compare_left.get_mut() = left;
        ("copy", format!("the driver does not import memory; up to {} KiB are compared", left >> 10))
    }

    /// Whether memory of a type may get a copy.
    pub(super) fn may_copy(&self, memory_type: u32) -> bool {
        1u32.checked_shl(memory_type).is_some_and(|it| self.copied & it != 0)
    }

    /// Whether memory that is mapped for the first time is compared instead, because that is cheap.
    pub(super) fn take_compared(&self, memory_type: u32, size: u64) -> bool {
        let is_cached = 1u32.checked_shl(memory_type).is_some_and(|it| self.cached & it != 0);
        let take = |left: u64| left.checked_sub(size);
        is_cached && self.compare_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// For the trace.
    pub(super) fn metadata(&self) -> Value {
        self.types.iter().map(|it| json!({ "type": it.index, "method": it.method, "reason": it.reason })).collect()
    }
}

/// How the program may learn that the device has finished without a call that the layer sees; none if it cannot.
///
/// # Safety
///
/// The info must be that of a valid `vkCreateDevice`.
pub(super) unsafe fn external_wait(info: &DeviceCreateInfo) -> Option<&'static str> {
    let (names, count) = (info.pp_enabled_extension_names, info.enabled_extension_count);
    // SAFETY: VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-parameter: as many texts as the count says.
    let has = |name| unsafe { has_name(names, count, name) };
    (has(c"VK_KHR_external_fence_fd") || has(c"VK_KHR_external_semaphore_fd"))
        .then_some("the program may wait for the device without Vulkan, by file descriptors")
}

/// Why no memory of a device can have a copy; none if it can.
///
/// # Safety
///
/// The info must be that of a valid `vkCreateDevice`.
pub(super) unsafe fn copy_obstacle(info: &DeviceCreateInfo) -> Option<&'static str> {
    // SAFETY: by the contract of this function the info is that of a valid `vkCreateDevice`.
    if let Some(obstacle) = unsafe { external_wait(info) } {
        return Some(obstacle);
    }
    // SAFETY: VUID-VkDeviceCreateInfo-pNext-pNext: a valid chain.
    if unsafe { is_grouped(info) } {
        return Some("the memory belongs to several devices");
    }
    // SAFETY: as above; a structure of a type is such a one.
    let builds_on_host = unsafe {
        let structures = find_in_chain::<PhysicalDeviceAccelerationStructureFeaturesKHR>(
            info.p_next,
            StructureType::PHYSICAL_DEVICE_ACCELERATION_STRUCTURE_FEATURES_KHR,
        );
        let micromaps = find_in_chain::<PhysicalDeviceOpacityMicromapFeaturesEXT>(
            info.p_next,
            StructureType::PHYSICAL_DEVICE_OPACITY_MICROMAP_FEATURES_EXT,
        );
        structures.is_some_and(|it| (*it.as_ptr()).acceleration_structure_host_commands.0 != 0)
            || micromaps.is_some_and(|it| (*it.as_ptr()).micromap_host_commands.0 != 0)
    };
    builds_on_host.then_some("the driver may write to memory in calls that build acceleration structures")
}

/// Whether a driver runs on the processor: the system reports its writes as it does those of the program.
pub(super) fn is_processor(instance: &InstanceData, physical_device: PhysicalDevice) -> bool {
    let Some(get) = instance.table.get_physical_device_properties else { return false };
    let mut properties = PhysicalDeviceProperties::zeroed();
    // SAFETY: a physical device that is alive, and a place of ours.
    unsafe { get(physical_device, Ptr::new((&raw mut properties).expose_provenance() as u64)) };
    properties.device_type == PhysicalDeviceType::CPU
}

/// The functions by which memory is measured.
pub(super) struct MemoryFunctions {
    allocate: FnAllocateMemory,
    free: FnFreeMemory,
    map: FnMapMemory,
    unmap: FnUnmapMemory,
}

impl MemoryFunctions {
    pub(super) fn of(table: &DeviceTable) -> Option<MemoryFunctions> {
        Some(MemoryFunctions {
            allocate: table.allocate_memory?,
            free: table.free_memory?,
            map: table.map_memory?,
            unmap: table.unmap_memory?,
        })
    }

    /// Bytes of memory of a type that can be read in [`COMPARE_TIME_MAX`]; none if there is no such memory.
    ///
    /// # Safety
    ///
    /// The device must be alive, and these must be its functions.
    pub(super) unsafe fn bytes_per_compare(&self, device: Device, memory_type: u32) -> Option<u64> {
        let info = MemoryAllocateInfo {
            s_type: StructureType::MEMORY_ALLOCATE_INFO,
            allocation_size: MEASURED_BYTES as u64,
            memory_type_index: memory_type,
            ..MemoryAllocateInfo::zeroed()
        };
        let (mut memory, mut host) = (DeviceMemory(0), 0_u64);
        let out = Ptr::new((&raw mut memory).expose_provenance() as u64);
        // SAFETY: the caller's word; new memory of a type that the device has, which is mapped, unmapped and freed here.
        unsafe {
            if (self.allocate)(device, Ptr::to(&info), Ptr::NULL, out) != Result::SUCCESS {
                return None;
            }
            let out = Ptr::new((&raw mut host).expose_provenance() as u64);
            let mapped = (self.map)(device, memory, 0, WHOLE_SIZE, MemoryMapFlags(0), out) == Result::SUCCESS;
            let time = mapped.then(|| {
                let time = read_time(host);
                (self.unmap)(device, memory);
                time
            });
            (self.free)(device, memory, Ptr::NULL);
            let nanoseconds = time?.as_nanos().max(1) as u64;
            Some(MEASURED_BYTES as u64 * COMPARE_TIME_MAX.as_nanos() as u64 / nanoseconds)
        }
    }
}

/// # Safety
///
/// As many bytes as are measured must be mapped.
unsafe fn read_time(host: u64) -> Duration {
    let mut bytes = [0; MEASURED_BYTES];
    let mut measure = || {
        let start = Instant::now();
        // SAFETY: by the contract of this function as many bytes as are measured are mapped.
        unsafe { device_memory::read(host, &mut bytes) };
        start.elapsed()
    };
    // The first time, pages may be missing.
    (0..3).map(|_| measure()).min().unwrap_or(COMPARE_TIME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: u32 = MemoryPropertyFlags::DEVICE_LOCAL.0;
    const VISIBLE: u32 = MemoryPropertyFlags::HOST_VISIBLE.0;
    const COHERENT: u32 = MemoryPropertyFlags::HOST_COHERENT.0;
    const CACHED: u32 = MemoryPropertyFlags::HOST_CACHED.0;

    /// The types of a discrete device: the last one is memory of the device that the host sees.
    fn discrete() -> PhysicalDeviceMemoryProperties {
        let mut properties = PhysicalDeviceMemoryProperties::zeroed();
        let flags =
            [LOCAL, VISIBLE | COHERENT, VISIBLE | COHERENT | CACHED, VISIBLE | CACHED, LOCAL | VISIBLE | COHERENT];
        properties.memory_type_count = flags.len() as u32;
        for (to, from) in properties.memory_types.iter_mut().zip(flags) {
            to.property_flags = MemoryPropertyFlags(from);
        }
        properties
    }

    fn methods(setting: CaptureMemory, imported: u32, obstacle: Option<&'static str>) -> Vec<(u32, &'static str)> {
        let (properties, bytes_per_compare) = (discrete(), |_| Some(200 << 10));
        let facts = DetectionFacts {
            setting,
            properties: &properties,
            imported,
            obstacle,
            is_processor: false,
            bytes_per_compare: &bytes_per_compare,
        };
        DetectionChoice::new(&facts).types.iter().map(|it| (it.index, it.method)).collect()
    }

    #[test]
    fn what_cannot_be_imported_has_a_copy() {
        let own = "userfaultfd";
        assert_eq!(methods(CaptureMemory::Auto, 0b1110, None), [(1, own), (2, own), (3, own), (4, "copy")]);
        let none = [(1, "copy"), (2, "copy"), (3, "compare"), (4, "copy")];
        assert_eq!(methods(CaptureMemory::Auto, 0, None), none);
        assert_eq!(methods(CaptureMemory::Copy, 0, None), none);
        let compared = [(1, "compare"), (2, "compare"), (3, "compare"), (4, "compare")];
        assert_eq!(methods(CaptureMemory::Auto, 0, Some("a reason")), compared);
        assert_eq!(methods(CaptureMemory::Userfaultfd, 0, None), compared);
        assert_eq!(methods(CaptureMemory::Mprotect, 0, None)[3], (4, "mprotect"));
    }

    #[test]
    fn cached_memory_is_compared_as_long_as_that_is_cheap() {
        let (properties, bytes_per_compare) = (discrete(), |_| Some(200 << 10));
        let facts = DetectionFacts {
            setting: CaptureMemory::Auto,
            properties: &properties,
            imported: 0,
            obstacle: None,
            is_processor: false,
            bytes_per_compare: &bytes_per_compare,
        };
        let choice = DetectionChoice::new(&facts);
        assert!(!choice.take_compared(4, 16), "it is never read to find writes");
        assert!(choice.take_compared(2, 150 << 10) && !choice.take_compared(2, 100 << 10));
        assert!(choice.take_compared(2, 50 << 10) && !choice.take_compared(2, 1));
        assert!(choice.may_copy(2) && choice.may_copy(4) && !choice.may_copy(3) && !choice.may_copy(40));
    }
}
