//! Devices, and the commands of theirs that are intercepted.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Arc, Mutex};

use ash::vk;

use crate::chain::{LayerDeviceCreateInfo, next_link};
use crate::memory::{Memories, Usage};
use crate::{dispatch_key, erased, instance_function, instance_of, lock};

/// A device of the application.
pub(crate) struct Device {
    pub(crate) handle: vk::Device,
    get: vk::PFN_vkGetDeviceProcAddr,
    /// The flags of each memory type.
    types: Vec<vk::MemoryPropertyFlags>,
    memories: Memories,
}

/// By dispatch key.
static DEVICES: Mutex<Option<HashMap<usize, Arc<Device>>>> = Mutex::new(None);

impl Device {
    /// A function of the layer or driver below, by its name.
    ///
    /// # Safety
    ///
    /// `F` must be the function type of this command.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr) -> Option<F> {
        // SAFETY: by the contract of this function; function pointers have one size.
        unsafe { (self.get)(self.handle, name.as_ptr()).map(|it| std::mem::transmute_copy(&it)) }
    }
}

/// # Safety
///
/// The device must be alive.
unsafe fn device_of(device: vk::Device) -> Option<Arc<Device>> {
    // SAFETY: the device is alive, by the contract of this function, and so is its table.
    let key = unsafe { dispatch_key(vk::Handle::as_raw(device)) };
    lock(&DEVICES).as_ref()?.get(&key).cloned()
}

/// The function of a device's command, if it is intercepted.
pub(crate) fn own_function(name: &CStr) -> Option<vk::PFN_vkVoidFunction> {
    Some(erased(match name.to_bytes() {
        b"vkDestroyDevice" => destroy_device as *const (),
        b"vkAllocateMemory" => allocate_memory as *const (),
        b"vkFreeMemory" => free_memory as *const (),
        b"vkMapMemory" => map_memory as *const (),
        b"vkUnmapMemory" => unmap_memory as *const (),
        b"vkMapMemory2" | b"vkMapMemory2KHR" => map_memory2 as *const (),
        b"vkUnmapMemory2" | b"vkUnmapMemory2KHR" => unmap_memory2 as *const (),
        _ => return None,
    }))
}

pub(crate) unsafe extern "system" fn get_device_proc_addr(
    device: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the application gives a text that ends with a zero, and a device that is alive.
    unsafe {
        let text = CStr::from_ptr(name);
        if text == c"vkGetDeviceProcAddr" {
            return erased(get_device_proc_addr as *const ());
        }
        let below = device_of(device).and_then(|it| (it.get)(device, name));
        // A command that the driver does not have stays missing.
        below.and_then(|it| own_function(text).unwrap_or(Some(it)))
    }
}

pub(crate) unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    // SAFETY: the loader puts its structure into the chain, and only this function changes it; `device` is written by
    // the next layer if it succeeds. The physical device is alive.
    unsafe {
        let link = next_link::<LayerDeviceCreateInfo>((*info).p_next, vk::StructureType::LOADER_DEVICE_CREATE_INFO);
        let (Some(link), Some(instance)) = (link, instance_of(vk::Handle::as_raw(physical))) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let next = (*link).link;
        (*link).link = (*next).next;
        let get_instance = (*next).get_instance_proc_addr;
        let create = instance_function::<vk::PFN_vkCreateDevice>(get_instance, instance.handle, c"vkCreateDevice");
        let (Some(create), Some(ask)) = (create, instance.memory_properties) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let get = (*next).get_device_proc_addr;
        let result = create(physical, info, allocator, device);
        if result == vk::Result::SUCCESS {
            let mut found = vk::PhysicalDeviceMemoryProperties::default();
            ask(physical, &raw mut found);
            let types = found.memory_types.iter().map(|it| it.property_flags).collect();
            let handle = device.read();
            let key = dispatch_key(vk::Handle::as_raw(handle));
            let made = Device { handle, get, types, memories: Memories::default() };
            lock(&DEVICES).get_or_insert_default().insert(key, Arc::new(made));
        }
        result
    }
}

unsafe extern "system" fn destroy_device(handle: vk::Device, allocator: *const vk::AllocationCallbacks<'_>) {
    if handle == vk::Device::null() {
        return;
    }
    // SAFETY: the device is alive until the next layer has destroyed it, and nothing is pending on it.
    unsafe {
        let key = dispatch_key(vk::Handle::as_raw(handle));
        let known = lock(&DEVICES).get_or_insert_default().remove(&key);
        let Some(device) = known else { return };
        device.memories.report_rest(&device);
        if let Some(destroy) = device.function::<vk::PFN_vkDestroyDevice>(c"vkDestroyDevice") {
            destroy(handle, allocator);
        }
    }
}

/// Whether the chain of an allocation brings memory that exists already.
///
/// # Safety
///
/// The chain must be valid.
unsafe fn is_import(mut chain: *const c_void) -> bool {
    let imports =
        [vk::StructureType::IMPORT_MEMORY_FD_INFO_KHR, vk::StructureType::IMPORT_MEMORY_HOST_POINTER_INFO_EXT];
    // SAFETY: each structure of a chain begins with its type and the next one.
    unsafe {
        while let Some(head) = chain.cast::<vk::BaseInStructure<'_>>().as_ref() {
            if imports.contains(&head.s_type) {
                return true;
            }
            chain = head.p_next.cast();
        }
    }
    false
}

unsafe extern "system" fn allocate_memory(
    handle: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    memory: *mut vk::DeviceMemory,
) -> vk::Result {
    // SAFETY: the parameters are those of the application; the next layer writes `memory` if it succeeds.
    unsafe {
        let Some(device) = device_of(handle) else { return vk::Result::ERROR_INITIALIZATION_FAILED };
        let Some(allocate) = device.function::<vk::PFN_vkAllocateMemory>(c"vkAllocateMemory") else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = allocate(handle, info, allocator, memory);
        if result == vk::Result::SUCCESS {
            let flags = device.types.get((*info).memory_type_index as usize).copied().unwrap_or_default();
            let usage = Usage { size: (*info).allocation_size, flags, is_import: is_import((*info).p_next) };
            device.memories.begin(&device, memory.read(), usage);
        }
        result
    }
}

unsafe extern "system" fn free_memory(
    handle: vk::Device,
    memory: vk::DeviceMemory,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the parameters are those of the application, and the memory is not in use any more.
    unsafe {
        let Some(device) = device_of(handle) else { return };
        device.memories.end(&device, memory);
        if let Some(free) = device.function::<vk::PFN_vkFreeMemory>(c"vkFreeMemory") {
            free(handle, memory, allocator);
        }
    }
}

unsafe extern "system" fn map_memory(
    handle: vk::Device,
    memory: vk::DeviceMemory,
    offset: u64,
    size: u64,
    flags: vk::MemoryMapFlags,
    data: *mut *mut c_void,
) -> vk::Result {
    // SAFETY: the parameters are those of the application.
    unsafe {
        let Some(device) = device_of(handle) else { return vk::Result::ERROR_MEMORY_MAP_FAILED };
        let Some(map) = device.function::<vk::PFN_vkMapMemory>(c"vkMapMemory") else {
            return vk::Result::ERROR_MEMORY_MAP_FAILED;
        };
        let result = map(handle, memory, offset, size, flags, data);
        device.memories.set_mapped(memory, result == vk::Result::SUCCESS);
        result
    }
}

unsafe extern "system" fn map_memory2(
    handle: vk::Device,
    info: *const vk::MemoryMapInfoKHR<'_>,
    data: *mut *mut c_void,
) -> vk::Result {
    // SAFETY: the parameters are those of the application.
    unsafe {
        let Some(device) = device_of(handle) else { return vk::Result::ERROR_MEMORY_MAP_FAILED };
        let core = device.function::<vk::PFN_vkMapMemory2KHR>(c"vkMapMemory2");
        let map = core.or_else(|| device.function::<vk::PFN_vkMapMemory2KHR>(c"vkMapMemory2KHR"));
        let Some(map) = map else { return vk::Result::ERROR_MEMORY_MAP_FAILED };
        let result = map(handle, info, data);
        device.memories.set_mapped((*info).memory, result == vk::Result::SUCCESS);
        result
    }
}

unsafe extern "system" fn unmap_memory(handle: vk::Device, memory: vk::DeviceMemory) {
    // SAFETY: the parameters are those of the application.
    unsafe {
        let Some(device) = device_of(handle) else { return };
        device.memories.set_mapped(memory, false);
        if let Some(unmap) = device.function::<vk::PFN_vkUnmapMemory>(c"vkUnmapMemory") {
            unmap(handle, memory);
        }
    }
}

unsafe extern "system" fn unmap_memory2(handle: vk::Device, info: *const vk::MemoryUnmapInfoKHR<'_>) -> vk::Result {
    // SAFETY: the parameters are those of the application.
    unsafe {
        let Some(device) = device_of(handle) else { return vk::Result::ERROR_MEMORY_MAP_FAILED };
        let core = device.function::<vk::PFN_vkUnmapMemory2KHR>(c"vkUnmapMemory2");
        let unmap = core.or_else(|| device.function::<vk::PFN_vkUnmapMemory2KHR>(c"vkUnmapMemory2KHR"));
        let Some(unmap) = unmap else { return vk::Result::ERROR_MEMORY_MAP_FAILED };
        device.memories.set_mapped((*info).memory, false);
        unmap(handle, info)
    }
}
