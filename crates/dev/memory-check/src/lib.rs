//! A layer that hashes memory when it is freed, to compare programs with their replays.
//!
//! Each allocation that the host can see begins with zeros. When it is freed, or its device is destroyed, one line goes
//! to the file of `LAVASCOPE_MEMORY_CHECK`: the number of the allocation in its process, its size and the hash of its
//! bytes. Memory that was imported is hashed, but not filled with zeros.
//!
//! It shares no code with capture and replay, so an error there is not repeated here. It is for tests on drivers all of
//! whose memory the host can see: on others, the rest is counted as `hidden`.
//!
//! # Why the unsafe code is sound
//!
//! The loader calls the functions here with the parameters of the application, which follow the rules of Vulkan. The
//! functions of the next layer are those that its `vkGet…ProcAddr` returns for their names, and so have their types.

mod chain;
mod device;
mod memory;

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ash::vk;

use chain::{LayerInstanceCreateInfo, next_link};

/// The name in the manifest.
pub const LAYER_NAME: &str = "VK_LAYER_LAVASCOPE_memory_check";

/// What the loader and a layer agree on.
#[repr(C)]
pub struct NegotiateLayerInterface {
    s_type: i32,
    next: *mut c_void,
    version: u32,
    get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    get_device_proc_addr: vk::PFN_vkGetDeviceProcAddr,
    get_physical_device_proc_addr: *const c_void,
}

/// An instance of the application, and functions of the next layer. They are asked for when it is made: a loader may
/// return those of the first layer later.
#[derive(Clone, Copy)]
struct Instance {
    handle: vk::Instance,
    get: vk::PFN_vkGetInstanceProcAddr,
    destroy: Option<vk::PFN_vkDestroyInstance>,
    memory_properties: Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties>,
}

/// By dispatch key.
static INSTANCES: Mutex<Option<HashMap<usize, Instance>>> = Mutex::new(None);

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all dispatchable handles of an instance or device have in common: the table of the loader.
///
/// # Safety
///
/// `handle` must be a dispatchable handle that is alive.
unsafe fn dispatch_key(handle: u64) -> usize {
    // SAFETY: by the rules of the loader, a dispatchable handle leads to an object that begins with the table's address.
    unsafe { std::ptr::with_exposed_provenance::<usize>(handle as usize).read() }
}

/// A function of the layer or driver below, by its name.
///
/// # Safety
///
/// `F` must be the function type of this command, and the instance alive, or null for a global command.
unsafe fn instance_function<F: Copy>(
    get: vk::PFN_vkGetInstanceProcAddr,
    instance: vk::Instance,
    name: &CStr,
) -> Option<F> {
    // SAFETY: by the contract of this function; function pointers have one size.
    unsafe { get(instance, name.as_ptr()).map(|it| std::mem::transmute_copy(&it)) }
}

/// # Safety
///
/// The loader calls it with a structure of its own.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vkNegotiateLoaderLayerInterfaceVersion(
    about: *mut NegotiateLayerInterface,
) -> vk::Result {
    // SAFETY: the loader gives a structure that it does not use meanwhile.
    let Some(about) = (unsafe { about.as_mut() }) else { return vk::Result::ERROR_INITIALIZATION_FAILED };
    about.version = about.version.min(2);
    about.get_instance_proc_addr = get_instance_proc_addr;
    about.get_device_proc_addr = device::get_device_proc_addr;
    about.get_physical_device_proc_addr = std::ptr::null();
    vk::Result::SUCCESS
}

/// A function as loaders return it.
fn erased(function: *const ()) -> vk::PFN_vkVoidFunction {
    // SAFETY: the caller knows the type by the name, and both are pointers to functions.
    Some(unsafe { std::mem::transmute::<*const (), unsafe extern "system" fn()>(function) })
}

unsafe extern "system" fn get_instance_proc_addr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the application gives a text that ends with a zero.
    let text = unsafe { CStr::from_ptr(name) };
    match text.to_bytes() {
        b"vkGetInstanceProcAddr" => return erased(get_instance_proc_addr as *const ()),
        b"vkGetDeviceProcAddr" => return erased(device::get_device_proc_addr as *const ()),
        b"vkCreateInstance" => return erased(create_instance as *const ()),
        b"vkDestroyInstance" => return erased(destroy_instance as *const ()),
        b"vkCreateDevice" => return erased(device::create_device as *const ()),
        _ => {}
    }
    if let Some(own) = device::own_function(text) {
        return own;
    }
    if instance == vk::Instance::null() {
        return None;
    }
    // SAFETY: the instance is alive while the application asks for its functions.
    unsafe { instance_of(vk::Handle::as_raw(instance)).and_then(|it| (it.get)(it.handle, name)) }
}

/// The instance of an instance or physical device.
///
/// # Safety
///
/// As for [`dispatch_key`].
unsafe fn instance_of(handle: u64) -> Option<Instance> {
    // SAFETY: the same contract.
    let key = unsafe { dispatch_key(handle) };
    lock(&INSTANCES).as_ref()?.get(&key).copied()
}

unsafe extern "system" fn create_instance(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    // SAFETY: the loader puts its structure into the chain, and only this function changes it; `instance` is written by
    // the next layer if it succeeds.
    unsafe {
        let Some(link) =
            next_link::<LayerInstanceCreateInfo>((*info).p_next, vk::StructureType::LOADER_INSTANCE_CREATE_INFO)
        else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let next = (*link).link;
        (*link).link = (*next).next;
        let get = (*next).get_instance_proc_addr;
        let create = instance_function::<vk::PFN_vkCreateInstance>(get, vk::Instance::null(), c"vkCreateInstance");
        let Some(create) = create else { return vk::Result::ERROR_INITIALIZATION_FAILED };
        let result = create(info, allocator, instance);
        if result == vk::Result::SUCCESS {
            let handle = instance.read();
            let key = dispatch_key(vk::Handle::as_raw(handle));
            let memory_properties = instance_function(get, handle, c"vkGetPhysicalDeviceMemoryProperties");
            let destroy = instance_function(get, handle, c"vkDestroyInstance");
            let made = Instance { handle, get, destroy, memory_properties };
            lock(&INSTANCES).get_or_insert_default().insert(key, made);
        }
        result
    }
}

unsafe extern "system" fn destroy_instance(instance: vk::Instance, allocator: *const vk::AllocationCallbacks<'_>) {
    if instance == vk::Instance::null() {
        return;
    }
    // SAFETY: the instance is alive until the next layer has destroyed it.
    unsafe {
        let key = dispatch_key(vk::Handle::as_raw(instance));
        let known = lock(&INSTANCES).get_or_insert_default().remove(&key);
        if let Some(destroy) = known.and_then(|it| it.destroy) {
            destroy(instance, allocator);
        }
    }
}
