//! The structures by which the loader names the next layer, as its interface defines them.

use std::ffi::c_void;

use ash::vk;

#[repr(C)]
pub(crate) struct InstanceLink {
    pub(crate) next: *mut InstanceLink,
    pub(crate) get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    get_physical_device_proc_addr: *const c_void,
}

#[repr(C)]
pub(crate) struct LayerInstanceCreateInfo {
    s_type: vk::StructureType,
    next: *const c_void,
    function: i32,
    pub(crate) link: *mut InstanceLink,
}

#[repr(C)]
pub(crate) struct DeviceLink {
    pub(crate) next: *mut DeviceLink,
    pub(crate) get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    pub(crate) get_device_proc_addr: vk::PFN_vkGetDeviceProcAddr,
}

#[repr(C)]
pub(crate) struct LayerDeviceCreateInfo {
    s_type: vk::StructureType,
    next: *const c_void,
    function: i32,
    pub(crate) link: *mut DeviceLink,
}

/// What every structure of a chain begins with; those of the loader have a function behind it.
#[repr(C)]
struct ChainHead {
    s_type: vk::StructureType,
    next: *const c_void,
    function: i32,
}

/// The function of a structure that has a link.
const LINK: i32 = 0;

/// The structure of the loader with the next link.
///
/// # Safety
///
/// The chain must be valid, and `T` the structure of the loader with this type.
pub(crate) unsafe fn next_link<T>(mut chain: *const c_void, s_type: vk::StructureType) -> Option<*mut T> {
    // SAFETY: each structure of a chain begins with its type and the next one; only those of the loader are read further.
    unsafe {
        while let Some(head) = chain.cast::<ChainHead>().as_ref() {
            if head.s_type == s_type && head.function == LINK {
                return Some(chain.cast_mut().cast());
            }
            chain = head.next;
        }
    }
    None
}
