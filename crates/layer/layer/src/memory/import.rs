//! Host memory that the driver imports instead of allocating its own, so that the system can report what was written
//! (`page_tracker`).
//!
//! If the application allocates memory that is visible to the host, the driver imports memory of the layer instead,
//! where possible: the layer enables `VK_EXT_external_memory_host` for it. If anything about an allocation is unusual,
//! or the driver refuses the import, the driver allocates normally. Buffers and images stay as the application created
//! them: with the structure that the specification demands for imports, a driver may require other memory types.

use std::collections::HashMap;
use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;
use lavascope_platform::pages::PageTracker;
use lavascope_settings::CaptureMemory;

use super::MemoryInterest;
use super::arena::{ArenaBlock, PageArena};
use super::detection_choice::external_wait;
use crate::DeviceTable;
use crate::loader::dispatch::dispatch_key;
use crate::loader::instance::{InstanceData, has_name};
use crate::loader::pnext_chain::{chain_types, find_in_chain};
use crate::loader::proc_addr::WATCHED_DEVICES;
use crate::process::catch_panic::{catch_panic, run_if_enabled};
use crate::report::report_file;

const EXTERNAL_MEMORY_HOST: &CStr = c"VK_EXT_external_memory_host";
/// Memory that was imported cannot be mapped at a place of the application's choice.
const MAP_MEMORY_PLACED: &CStr = c"VK_EXT_map_memory_placed";
/// The first version in which a device can have it without other extensions.
const VERSION_MIN: u32 = 1 << 22 | 1 << 12;

/// The imports of one device.
pub(crate) struct MemoryImport {
    arena: Arc<PageArena>,
    /// Whether only the driver writes to the arena: the application gets copies.
    is_separate: bool,
    /// Types of memory that are left to the driver, one bit each.
    excluded_types: u32,
    alignment: u64,
    allocate: FnAllocateMemory,
    free: FnFreeMemory,
    properties: FnGetMemoryHostPointerPropertiesEXT,
    owned: Mutex<HashMap<u64, ImportedMemory>>,
}

struct ImportedMemory {
    own: ArenaBlock,
    is_watched: bool,
}

/// The extensions of a new device, with the one that imports need.
pub(crate) struct MemoryImportRequest {
    extensions: Vec<Ptr<u8>>,
    /// Whether resources may be bound piece by piece, which not every driver can do with memory that it imported.
    is_sparse: bool,
}

impl MemoryImportRequest {
    /// None if memory is not to be imported, or cannot be.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkCreateDevice`.
    pub(crate) unsafe fn of(instance: &InstanceData, params: &CreateDeviceParams) -> Option<MemoryImportRequest> {
        let method = match instance.memory_interest? {
            MemoryInterest::Everything(method) => method,
            MemoryInterest::Places => CaptureMemory::Auto,
            MemoryInterest::Indices => return None,
        };
        if !matches!(method, CaptureMemory::Auto | CaptureMemory::Userfaultfd) {
            return None;
        }
        // SAFETY: the contract of this function: the parameters are those of a valid `vkCreateDevice`.
        let found = unsafe { MemoryImportRequest::find(instance, params) };
        if let (Err(text), CaptureMemory::Userfaultfd) = (&found, method) {
            report_file::problem(
                "warning",
                "setting capture_memory",
                &format!("{text}; memory is compared with a copy"),
            );
        }
        found.ok()
    }

    /// Why no memory is imported; none if it is tried for each.
    ///
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkCreateDevice`.
    pub(super) unsafe fn obstacle(instance: &InstanceData, params: &CreateDeviceParams) -> Option<&'static str> {
        // SAFETY: by the contract of this function the parameters are those of a valid `vkCreateDevice`.
        unsafe { MemoryImportRequest::find(instance, params) }.err()
    }

    /// # Safety
    ///
    /// The parameters must be those of a valid `vkCreateDevice`.
    unsafe fn find(
        instance: &InstanceData,
        params: &CreateDeviceParams,
    ) -> std::result::Result<MemoryImportRequest, &'static str> {
        // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter, by the contract of this function.
        let info = unsafe { params.p_create_info.as_ptr().as_ref() }.ok_or("the create info of the device is null")?;
        if PageTracker::get().is_none() {
            return Err("the system does not report written pages");
        }
        if instance.api_version < VERSION_MIN || api_version(instance, params.physical_device) < VERSION_MIN {
            return Err("importing host memory needs Vulkan 1.1");
        }
        // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter: the info is valid.
        let obstacle = unsafe { external_wait(info) };
        if let (Some(MemoryInterest::Places), Some(obstacle)) = (instance.memory_interest, obstacle) {
            return Err(obstacle);
        }
        let (names, count) = (info.pp_enabled_extension_names, info.enabled_extension_count);
        // SAFETY: the list has as many names as it says.
        let mut all: Vec<Ptr<u8>> = (0..count as usize).map(|it| unsafe { *names.as_ptr().add(it) }).collect();
        // SAFETY: VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-parameter and -pNext-pNext: as many texts as the count
        // says, and a valid chain.
        let (is_placed, is_grouped) = unsafe { (has_name(names, count, MAP_MEMORY_PLACED), is_grouped(info)) };
        if is_placed || is_grouped {
            return Err(
                "memory that is mapped at a fixed address, or that belongs to several devices, cannot be imported",
            );
        }
        // SAFETY: VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-parameter: as many texts as the count says.
        if !unsafe { has_name(names, count, EXTERNAL_MEMORY_HOST) } {
            if !has_extension(instance, params.physical_device) {
                return Err("the driver has no VK_EXT_external_memory_host");
            }
            all.push(Ptr::new(EXTERNAL_MEMORY_HOST.as_ptr().expose_provenance() as u64));
        }
        // SAFETY: a valid info, with its chain.
        Ok(MemoryImportRequest { extensions: all, is_sparse: unsafe { is_sparse(info) } })
    }

    /// Whether what lies on the device is to be left to the driver.
    pub(crate) fn is_sparse(&self) -> bool {
        self.is_sparse
    }

    /// The allocation that the driver gets instead.
    pub(crate) fn device_create_info(&self, info: &DeviceCreateInfo) -> DeviceCreateInfo {
        DeviceCreateInfo {
            enabled_extension_count: self.extensions.len() as u32,
            pp_enabled_extension_names: Ptr::to_slice(&self.extensions),
            ..*info
        }
    }
}

/// # Safety
///
/// The info must be valid, with its chain.
unsafe fn is_sparse(info: &DeviceCreateInfo) -> bool {
    // SAFETY: the caller's word; the structure of this type.
    unsafe {
        let chained = find_in_chain::<PhysicalDeviceFeatures2>(info.p_next, StructureType::PHYSICAL_DEVICE_FEATURES_2);
        let chained = chained.is_some_and(|it| (*it.as_ptr()).features.sparse_binding.0 != 0);
        chained || info.p_enabled_features.as_ptr().as_ref().is_some_and(|it| it.sparse_binding.0 != 0)
    }
}

/// Whether a device is several.
///
/// # Safety
///
/// As above.
pub(super) unsafe fn is_grouped(info: &DeviceCreateInfo) -> bool {
    let ty = StructureType::DEVICE_GROUP_DEVICE_CREATE_INFO;
    // SAFETY: the caller's word; the structure of this type.
    unsafe {
        let found = find_in_chain::<DeviceGroupDeviceCreateInfo>(info.p_next, ty);
        found.is_some_and(|it| (*it.as_ptr()).physical_device_count > 1)
    }
}

fn api_version(instance: &InstanceData, physical_device: PhysicalDevice) -> u32 {
    let Some(get) = instance.table.get_physical_device_properties else { return 0 };
    let mut properties = PhysicalDeviceProperties::zeroed();
    // SAFETY: a physical device that is alive, and a place of ours.
    unsafe { get(physical_device, Ptr::new((&raw mut properties).expose_provenance() as u64)) };
    properties.api_version
}

fn has_extension(instance: &InstanceData, physical_device: PhysicalDevice) -> bool {
    let Some(get) = instance.table.enumerate_device_extension_properties else { return false };
    let mut count = 0_u32;
    let p_count = Ptr::new((&raw mut count).expose_provenance() as u64);
    // SAFETY: a physical device that is alive, and a place of ours.
    if unsafe { get(physical_device, Ptr::NULL, p_count, Ptr::NULL) } != Result::SUCCESS {
        return false;
    }
    let mut all = vec![ExtensionProperties::zeroed(); count as usize];
    // SAFETY: as above, with as many places as there were.
    let result =
        unsafe { get(physical_device, Ptr::NULL, p_count, Ptr::new(all.as_mut_ptr().expose_provenance() as u64)) };
    all.truncate(count as usize);
    let is_it = |it: &ExtensionProperties| CStr::from_bytes_until_nul(&it.extension_name) == Ok(EXTERNAL_MEMORY_HOST);
    matches!(result, Result::SUCCESS | Result::INCOMPLETE) && all.iter().any(is_it)
}

impl MemoryImport {
    /// For a new device with the extension: from now on its memory is allocated here.
    pub(super) fn begin(
        instance: &InstanceData,
        physical_device: PhysicalDevice,
        left_out: u32,
        (arena, is_separate): (Arc<PageArena>, bool),
        table: &mut DeviceTable,
    ) -> Option<MemoryImport> {
        let get = instance.table.get_physical_device_properties2?;
        let mut host = PhysicalDeviceExternalMemoryHostPropertiesEXT::zeroed();
        host.s_type = StructureType::PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
        let mut all = PhysicalDeviceProperties2::zeroed();
        all.s_type = StructureType::PHYSICAL_DEVICE_PROPERTIES_2;
        all.p_next = Ptr::new((&raw mut host).expose_provenance() as u64);
        // SAFETY: a physical device that is alive, and places of ours.
        unsafe { get(physical_device, Ptr::new((&raw mut all).expose_provenance() as u64)) };
        let alignment = host.min_imported_host_pointer_alignment;
        let import = MemoryImport {
            arena,
            is_separate,
            excluded_types: left_out,
            alignment: Some(alignment).filter(|it| it.is_power_of_two())?,
            allocate: table.allocate_memory?,
            free: table.free_memory?,
            properties: table.get_memory_host_pointer_properties_ext?,
            owned: Mutex::default(),
        };
        table.allocate_memory = Some(allocate_memory);
        table.free_memory = Some(free_memory);
        Some(import)
    }

    /// Where the first byte of a memory is, if its pages are watched.
    pub(super) fn tracked_address(&self, memory: DeviceMemory) -> Option<u64> {
        self.owned().get(&memory.0).filter(|it| it.is_watched).map(|it| it.own.start)
    }

    /// Whether only the driver writes to memory that it imported.
    pub(super) fn is_separate(&self) -> bool {
        self.is_separate
    }

    /// The pages that were written since they were reported last. False if that is unknown.
    pub(super) fn written(&self, found: &mut Vec<Range<u64>>) -> bool {
        self.arena.written(found)
    }

    fn owned(&self) -> MutexGuard<'_, HashMap<u64, ImportedMemory>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of ours that the driver can import for such an allocation.
    ///
    /// # Safety
    ///
    /// The device must be alive, and the info that of a valid `vkAllocateMemory`.
    unsafe fn prepare(&self, device: Device, visible: u32, info: &MemoryAllocateInfo) -> Option<ArenaBlock> {
        let bit = 1u32.checked_shl(info.memory_type_index)?;
        // SAFETY: the contract of this function: the info of a valid `vkAllocateMemory`.
        if visible & !self.excluded_types & bit == 0 || !unsafe { is_importable(info) } {
            return None;
        }
        let own = self.arena.allocate(info.allocation_size, self.alignment)?;
        // SAFETY: by the contract of this function the device is alive.
        (unsafe { self.types_of(device, &own) } & bit != 0).then_some(own)
    }

    /// The types of memory that the driver can import, one bit each.
    ///
    /// # Safety
    ///
    /// The device must be alive.
    pub(super) unsafe fn imported_types(&self, device: Device) -> u32 {
        let Some(probe) = self.arena.allocate(1, self.alignment) else { return 0 };
        // SAFETY: by the contract of this function the device is alive.
        unsafe { self.types_of(device, &probe) & !self.excluded_types }
    }

    /// # Safety
    ///
    /// The device must be alive.
    unsafe fn types_of(&self, device: Device, own: &ArenaBlock) -> u32 {
        let mut properties = MemoryHostPointerPropertiesEXT::zeroed();
        properties.s_type = StructureType::MEMORY_HOST_POINTER_PROPERTIES_EXT;
        let place = Ptr::new((&raw mut properties).expose_provenance() as u64);
        let handle_type = ExternalMemoryHandleTypeFlagBits::HOST_ALLOCATION_EXT;
        // SAFETY: the device has the extension; memory and place are ours.
        let result = unsafe { (self.properties)(device, handle_type, Ptr::new(own.start), place) };
        if result == Result::SUCCESS { properties.memory_type_bits } else { 0 }
    }
}

/// Whether an allocation may be an import as well: nothing in its chain contradicts that.
///
/// # Safety
///
/// The info must be that of a valid `vkAllocateMemory`.
unsafe fn is_importable(info: &MemoryAllocateInfo) -> bool {
    // SAFETY: VUID-VkMemoryAllocateInfo-pNext-pNext, by the contract of this function: a valid chain.
    unsafe { chain_types(info.p_next) }.into_iter().all(|(ty, at)| match ty {
        StructureType::MEMORY_PRIORITY_ALLOCATE_INFO_EXT => true,
        StructureType::MEMORY_ALLOCATE_FLAGS_INFO => {
            // SAFETY: in a valid chain a structure that says that it is a `VkMemoryAllocateFlagsInfo` is one.
            let flags = unsafe { (*at.cast::<MemoryAllocateFlagsInfo>().as_ptr()).flags.0 };
            flags & !MemoryAllocateFlags::DEVICE_ADDRESS.0 == 0
        }
        StructureType::EXPORT_MEMORY_ALLOCATE_INFO => {
            // SAFETY: in a valid chain a structure that says that it is a `VkExportMemoryAllocateInfo` is one.
            let types = unsafe { (*at.cast::<ExportMemoryAllocateInfo>().as_ptr()).handle_types.0 };
            types == 0
        }
        // Dedicated to one resource, imported from elsewhere, at a wanted address, or not known to us.
        _ => false,
    })
}

/// In the place of the driver's function.
unsafe extern "system" fn allocate_memory(
    device: Device,
    p_info: Ptr<MemoryAllocateInfo>,
    p_allocator: Ptr<Opaque>,
    p_memory: Ptr<DeviceMemory>,
) -> Result {
    // SAFETY: VUID-vkAllocateMemory-device-parameter: the device is valid until the call returns.
    let data = unsafe { WATCHED_DEVICES.get(dispatch_key(device.0)) };
    let memories = data.and_then(|it| it.handles().memories.as_ref());
    let Some((memories, import)) = memories.and_then(|it| Some((it, it.import.as_ref()?))) else {
        return Result::ERROR_OUT_OF_HOST_MEMORY;
    };
    let prepare = || {
        // SAFETY: VUID-vkAllocateMemory-pAllocateInfo-parameter.
        let info = unsafe { p_info.as_ptr().as_ref() }?;
        // SAFETY: VUID-vkAllocateMemory-device-parameter: the device is valid, and the info is that of this call.
        Some((info, unsafe { import.prepare(device, memories.visible, info) }?))
    };
    if let Some((info, own)) = run_if_enabled("vkAllocateMemory", prepare, || None) {
        let mut pointer = ImportMemoryHostPointerInfoEXT::zeroed();
        pointer.s_type = StructureType::IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
        pointer.p_next = info.p_next;
        pointer.handle_type = ExternalMemoryHandleTypeFlagBits::HOST_ALLOCATION_EXT;
        pointer.p_host_pointer = Ptr::new(own.start);
        let changed = MemoryAllocateInfo { allocation_size: own.size, p_next: Ptr::to(&pointer).cast(), ..*info };
        // SAFETY: what the application asked for, out of memory that the driver says it can import.
        let result = unsafe { (import.allocate)(device, Ptr::to(&changed), p_allocator, p_memory) };
        if result == Result::SUCCESS {
            // SAFETY: a call that succeeded wrote the memory.
            let memory = unsafe { p_memory.as_ptr().read() };
            // A panic must not free what the driver has by now.
            let own = ManuallyDrop::new(own);
            let keep = || {
                // Not before: to import it the driver may have to touch it.
                let is_watched = import.arena.watch(&own);
                let own = ManuallyDrop::into_inner(own);
                import.owned().insert(memory.0, ImportedMemory { own, is_watched });
            };
            catch_panic("vkAllocateMemory", keep, || ());
            return result;
        }
    }
    // SAFETY: the driver's function, with the parameters that the application called ours with.
    unsafe { (import.allocate)(device, p_info, p_allocator, p_memory) }
}

/// In the place of the driver's function.
unsafe extern "system" fn free_memory(device: Device, memory: DeviceMemory, p_allocator: Ptr<Opaque>) {
    // SAFETY: VUID-vkFreeMemory-device-parameter: the device is valid until the call returns.
    let data = unsafe { WATCHED_DEVICES.get(dispatch_key(device.0)) };
    let memories = data.and_then(|it| it.handles().memories.as_ref());
    let Some(import) = memories.and_then(|it| it.import.as_ref()) else { return };
    // Before: the driver may give the same handle to another thread at once.
    let owned = catch_panic("vkFreeMemory", || import.owned().remove(&memory.0), || None);
    // SAFETY: the driver's function, with the parameters that the application called ours with.
    unsafe { (import.free)(device, memory, p_allocator) };
    drop(owned);
}
