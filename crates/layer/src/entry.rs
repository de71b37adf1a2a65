//! The functions that the loader and the application call.
//!
//! Only what the layer must see itself is intercepted. Every other function is asked of the next layer and given out
//! as it is, so that a recorded command goes straight to the driver.
//!
//! Everything here is made twice, for two [`Chain`]s: one library may answer for two layer names in one chain, and
//! the loader then has two layers whose calls must not be mistaken for each other.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use lavascope_abi::*;

use crate::chain::take_next;
use crate::fence::fence;
use crate::generated::shim;
use crate::interface::*;
use crate::objects::{DeviceData, InstanceData, Objects, dispatch_key};
use crate::shim::{Bits, enter, leave};
use crate::{DeviceTable, InstanceTable, watch};

/// One of the two places in a chain where this library may stand.
pub(crate) struct Chain {
    pub(crate) instances: Objects<InstanceData>,
    pub(crate) devices: Objects<DeviceData>,
}

pub(crate) static CHAINS: [Chain; 2] = [Chain::new(), Chain::new()];

impl Chain {
    const fn new() -> Chain {
        Chain { instances: Objects::new(), devices: Objects::new() }
    }
}

/// The loader's first question, once for each layer name.
///
/// # Safety
///
/// Called by the loader, with a structure that it owns.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vkNegotiateLoaderLayerInterfaceVersion(negotiation: *mut Negotiation) -> Result {
    /// How often we were asked. Relaxed: the loader asks under a lock of its own.
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the loader's structure, or null from somebody else.
    let Some(it) = (unsafe { negotiation.as_mut() }) else { return FAILED };
    if it.s_type != NEGOTIATION || it.version < INTERFACE_VERSION {
        return FAILED;
    }
    it.version = INTERFACE_VERSION;
    let functions: [GetProcAddr; 3] = match ASKED.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => [get_instance_proc_addr::<0>, get_device_proc_addr::<0>, get_physical_device_proc_addr::<0>],
        _ => [get_instance_proc_addr::<1>, get_device_proc_addr::<1>, get_physical_device_proc_addr::<1>],
    };
    let [instance, device, physical_device] = functions;
    it.get_instance_proc_addr = Some(instance);
    it.get_device_proc_addr = Some(device);
    it.get_physical_device_proc_addr = Some(physical_device);
    Result::SUCCESS
}

/// A function of ours as the address that `vkGet*ProcAddr` gives.
macro_rules! address {
    ($function:expr, $ty:ty) => {
        FnPtr(($function as $ty as *const ()).expose_provenance() as u64)
    };
}

/// What the layer intercepts before there is a device.
fn own_instance_function<const CHAIN: usize>(name: &CStr) -> FnPtr {
    match name.to_bytes() {
        b"vkGetInstanceProcAddr" => address!(get_instance_proc_addr::<CHAIN>, GetProcAddr),
        b"vkCreateInstance" => address!(create_instance::<CHAIN>, FnCreateInstance),
        b"vkDestroyInstance" => address!(destroy_instance::<CHAIN>, FnDestroyInstance),
        b"vkCreateDevice" => address!(create_device::<CHAIN>, FnCreateDevice),
        b"vkEnumerateInstanceLayerProperties" => {
            address!(enumerate_instance_layer_properties, FnEnumerateInstanceLayerProperties)
        }
        b"vkEnumerateInstanceExtensionProperties" => {
            address!(enumerate_instance_extension_properties, FnEnumerateInstanceExtensionProperties)
        }
        b"vkEnumerateDeviceLayerProperties" => {
            address!(enumerate_device_layer_properties, FnEnumerateDeviceLayerProperties)
        }
        b"vkEnumerateDeviceExtensionProperties" => {
            address!(enumerate_device_extension_properties::<CHAIN>, FnEnumerateDeviceExtensionProperties)
        }
        _ => own_device_function::<CHAIN>(name),
    }
}

/// What the layer intercepts of a device.
fn own_device_function<const CHAIN: usize>(name: &CStr) -> FnPtr {
    match name.to_bytes() {
        b"vkGetDeviceProcAddr" => address!(get_device_proc_addr::<CHAIN>, GetProcAddr),
        b"vkDestroyDevice" => address!(destroy_device::<CHAIN>, FnDestroyDevice),
        _ => FnPtr::default(),
    }
}

/// The next function itself, or its shim while somebody watches. What is newer than our registry passes through.
fn watched<const CHAIN: usize>(name: &CStr, next: FnPtr) -> FnPtr {
    if next.0 == 0 || !watch::is_on() {
        return next;
    }
    let command = name.to_str().ok().and_then(command_by_name);
    let shim = command.map_or(FnPtr::default(), shim::<CHAIN>);
    if shim.0 == 0 { next } else { shim }
}

/// A name as the application gave it; none for null.
unsafe fn text<'a>(name: Ptr<u8>) -> Option<&'a CStr> {
    // SAFETY: a name that is not null is null-terminated, by the valid usage of `vkGet*ProcAddr`.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name.as_ptr().cast()) })
}

unsafe extern "system" fn get_instance_proc_addr<const CHAIN: usize>(instance: u64, name: Ptr<u8>) -> FnPtr {
    let work = || {
        // SAFETY: called by the loader with the application's name.
        let own = own_instance_function::<CHAIN>(unsafe { text(name) }?);
        if own.0 != 0 {
            return Some(own);
        }
        // SAFETY: the loader calls with an instance that is alive, or null.
        let data = CHAINS[CHAIN].instances.get(unsafe { dispatch_key(instance) })?;
        // SAFETY: the next function is the one that the loader gave for this instance.
        let next = unsafe { (data.get_instance_proc_addr)(instance, name) };
        // SAFETY: as above.
        Some(watched::<CHAIN>(unsafe { text(name) }?, next))
    };
    fence("vkGetInstanceProcAddr", || work().unwrap_or_default(), FnPtr::default)
}

unsafe extern "system" fn get_device_proc_addr<const CHAIN: usize>(device: u64, name: Ptr<u8>) -> FnPtr {
    let work = || {
        // SAFETY: called by the loader or the application with a name.
        let own = own_device_function::<CHAIN>(unsafe { text(name) }?);
        if own.0 != 0 {
            return Some(own);
        }
        // SAFETY: `vkGetDeviceProcAddr` takes a device that is alive.
        let data = CHAINS[CHAIN].devices.get(unsafe { dispatch_key(device) })?;
        // SAFETY: the next function is the one that the loader gave for this device.
        let next = unsafe { (data.get_device_proc_addr)(device, name) };
        // SAFETY: as above.
        Some(watched::<CHAIN>(unsafe { text(name) }?, next))
    };
    fence("vkGetDeviceProcAddr", || work().unwrap_or_default(), FnPtr::default)
}

/// Functions of physical devices: ours are known to the loader, so only the next layer's are given.
unsafe extern "system" fn get_physical_device_proc_addr<const CHAIN: usize>(instance: u64, name: Ptr<u8>) -> FnPtr {
    let work = || {
        // SAFETY: the loader calls with an instance that is alive.
        let data = CHAINS[CHAIN].instances.get(unsafe { dispatch_key(instance) })?;
        // SAFETY: the next function is the one that the loader gave for this instance.
        Some(unsafe { (data.get_physical_device_proc_addr?)(instance, name) })
    };
    fence("vk_layerGetPhysicalDeviceProcAddr", || work().unwrap_or_default(), FnPtr::default)
}

unsafe extern "system" fn create_instance<const CHAIN: usize>(
    p_create_info: Ptr<InstanceCreateInfo>,
    p_allocator: Ptr<Opaque>,
    p_instance: Ptr<Instance>,
) -> Result {
    let work = || {
        // SAFETY: a create info that is not null is valid, and its chain has the loader's links.
        let chain = unsafe { p_create_info.as_ptr().as_ref() }?.p_next;
        // SAFETY: as above.
        let next = unsafe { take_next(chain, INSTANCE_LINK) }?;
        let get = next.get_instance_proc_addr?;
        // SAFETY: `vkCreateInstance` is asked for without an instance.
        let create =
            unsafe { std::mem::transmute::<FnPtr, Option<FnCreateInstance>>(ask(get, 0, c"vkCreateInstance")) }?;
        let params = CreateInstanceParams { p_create_info, p_allocator, p_instance };
        // SAFETY: the application's own parameters.
        unsafe { enter(Command::CreateInstance, &params) };
        // SAFETY: as above.
        let result = unsafe { create(p_create_info, p_allocator, p_instance) };
        // SAFETY: as above, after the call.
        unsafe { leave(Command::CreateInstance, &params, result.bits()) };
        if result == Result::SUCCESS {
            // SAFETY: a call that succeeded wrote the instance.
            unsafe { remember_instance::<CHAIN>(*p_instance.as_ptr(), get, next.get_other_proc_addr) };
        }
        Some(result)
    };
    fence("vkCreateInstance", || work().unwrap_or(FAILED), || FAILED)
}

/// # Safety
///
/// `get` and `get_physical` must be the next functions for this new instance.
unsafe fn remember_instance<const CHAIN: usize>(
    instance: Instance,
    get: GetProcAddr,
    get_physical: Option<GetProcAddr>,
) {
    // SAFETY: what `get` gives for a name is that function.
    let table = unsafe { InstanceTable::load(|name| ask(get, raw(instance), name)) };
    let data = InstanceData { get_instance_proc_addr: get, get_physical_device_proc_addr: get_physical, table };
    // SAFETY: the instance was just created.
    CHAINS[CHAIN].instances.insert(unsafe { dispatch_key(raw(instance)) }, data);
}

unsafe extern "system" fn destroy_instance<const CHAIN: usize>(instance: Instance, p_allocator: Ptr<Opaque>) {
    // SAFETY: an instance to be destroyed is alive, or null.
    let key = unsafe { dispatch_key(raw(instance)) };
    let data = fence("vkDestroyInstance", || CHAINS[CHAIN].instances.remove(key), || None);
    if let Some(destroy) = data.and_then(|it| it.table.destroy_instance) {
        let params = DestroyInstanceParams { instance, p_allocator };
        // SAFETY: the application's own parameters.
        unsafe { enter(Command::DestroyInstance, &params) };
        // SAFETY: as above.
        unsafe { destroy(instance, p_allocator) };
        // SAFETY: as above; the handle is only named.
        unsafe { leave(Command::DestroyInstance, &params, 0) };
    }
}

unsafe extern "system" fn create_device<const CHAIN: usize>(
    physical_device: PhysicalDevice,
    p_create_info: Ptr<DeviceCreateInfo>,
    p_allocator: Ptr<Opaque>,
    p_device: Ptr<Device>,
) -> Result {
    let work = || {
        // SAFETY: a create info that is not null is valid, and its chain has the loader's links.
        let chain = unsafe { p_create_info.as_ptr().as_ref() }?.p_next;
        // SAFETY: as above.
        let next = unsafe { take_next(chain, DEVICE_LINK) }?;
        let (get_instance, get_device) = (next.get_instance_proc_addr?, next.get_other_proc_addr?);
        // SAFETY: the loader answers for `vkCreateDevice` without an instance here, as for every layer.
        let found = unsafe { ask(get_instance, 0, c"vkCreateDevice") };
        // SAFETY: what was asked for by this name has this type.
        let mut create = unsafe { std::mem::transmute::<FnPtr, Option<FnCreateDevice>>(found) };
        if create.is_none() {
            // SAFETY: a physical device shares the key of its instance and is alive.
            let instance = CHAINS[CHAIN].instances.get(unsafe { dispatch_key(physical_device.0) });
            create = instance.and_then(|it| it.table.create_device);
        }
        let create = create?;
        let params = CreateDeviceParams { physical_device, p_create_info, p_allocator, p_device };
        // SAFETY: the application's own parameters.
        unsafe { enter(Command::CreateDevice, &params) };
        // SAFETY: as above.
        let result = unsafe { create(physical_device, p_create_info, p_allocator, p_device) };
        // SAFETY: as above, after the call.
        unsafe { leave(Command::CreateDevice, &params, result.bits()) };
        if result == Result::SUCCESS {
            // SAFETY: a call that succeeded wrote the device, and `get_device` is its next function.
            unsafe { remember_device::<CHAIN>(*p_device.as_ptr(), get_device) };
        }
        Some(result)
    };
    fence("vkCreateDevice", || work().unwrap_or(FAILED), || FAILED)
}

/// # Safety
///
/// `get` must be the next function for this new device.
unsafe fn remember_device<const CHAIN: usize>(device: Device, get: GetProcAddr) {
    // SAFETY: what `get` gives for a name is that function.
    let table = unsafe { DeviceTable::load(|name| ask(get, device.0, name)) };
    // SAFETY: the device was just created.
    CHAINS[CHAIN].devices.insert(unsafe { dispatch_key(device.0) }, DeviceData { get_device_proc_addr: get, table });
}

unsafe extern "system" fn destroy_device<const CHAIN: usize>(device: Device, p_allocator: Ptr<Opaque>) {
    // SAFETY: a device to be destroyed is alive, or null.
    let key = unsafe { dispatch_key(device.0) };
    let data = fence("vkDestroyDevice", || CHAINS[CHAIN].devices.remove(key), || None);
    if let Some(destroy) = data.and_then(|it| it.table.destroy_device) {
        let params = DestroyDeviceParams { device, p_allocator };
        // SAFETY: the application's own parameters.
        unsafe { enter(Command::DestroyDevice, &params) };
        // SAFETY: as above.
        unsafe { destroy(device, p_allocator) };
        // SAFETY: as above; the handle is only named.
        unsafe { leave(Command::DestroyDevice, &params, 0) };
    }
}

/// The layer itself, for whoever asks which layers there are.
unsafe extern "system" fn enumerate_instance_layer_properties(
    p_count: Ptr<u32>,
    p_properties: Ptr<LayerProperties>,
) -> Result {
    let mut it = LayerProperties::zeroed();
    it.spec_version = 1 << 22 | 4 << 12 | HEADER_VERSION;
    it.implementation_version = 1;
    copy_text(LAYER_NAME, &mut it.layer_name);
    copy_text(c"Lavascope: what a Vulkan program does and where it is wrong", &mut it.description);
    // SAFETY: the application's own parameters.
    unsafe { answer(&[it], p_count, p_properties) }
}

unsafe extern "system" fn enumerate_device_layer_properties(
    _physical_device: PhysicalDevice,
    p_count: Ptr<u32>,
    p_properties: Ptr<LayerProperties>,
) -> Result {
    // SAFETY: the application's own parameters.
    unsafe { enumerate_instance_layer_properties(p_count, p_properties) }
}

/// Whether this layer is asked for. Under the Khronos name the question is left to the loader, which has the
/// manifest: the real Khronos layer may be in the same chain.
fn is_ours(name: Option<&CStr>) -> bool {
    name.is_some_and(|it| it == LAYER_NAME)
}

unsafe extern "system" fn enumerate_instance_extension_properties(
    p_layer_name: Ptr<u8>,
    p_count: Ptr<u32>,
    p_properties: Ptr<ExtensionProperties>,
) -> Result {
    // SAFETY: the application's name, or null.
    if is_ours(unsafe { text(p_layer_name) }) {
        // SAFETY: the application's own parameters. The layer has no extensions of its own yet.
        return unsafe { answer(&[], p_count, p_properties) };
    }
    Result::ERROR_LAYER_NOT_PRESENT
}

unsafe extern "system" fn enumerate_device_extension_properties<const CHAIN: usize>(
    physical_device: PhysicalDevice,
    p_layer_name: Ptr<u8>,
    p_count: Ptr<u32>,
    p_properties: Ptr<ExtensionProperties>,
) -> Result {
    // SAFETY: the application's name, or null.
    if is_ours(unsafe { text(p_layer_name) }) {
        // SAFETY: the application's own parameters. The layer has no extensions of its own yet.
        return unsafe { answer(&[], p_count, p_properties) };
    }
    // SAFETY: a physical device shares the key of its instance and is alive.
    let instance = CHAINS[CHAIN].instances.get(unsafe { dispatch_key(physical_device.0) });
    match instance.and_then(|it| it.table.enumerate_device_extension_properties) {
        // SAFETY: the application's own parameters.
        Some(next) => unsafe { next(physical_device, p_layer_name, p_count, p_properties) },
        None => FAILED,
    }
}

/// The two-call answer: the count, or as many as fit.
///
/// # Safety
///
/// `p_count` must be valid, and `p_properties` null or valid for that many.
unsafe fn answer<T: Copy>(have: &[T], p_count: Ptr<u32>, p_properties: Ptr<T>) -> Result {
    // SAFETY: valid, by the caller's word; a null count is an application's mistake.
    let Some(count) = (unsafe { p_count.as_mut_ptr().as_mut() }) else { return FAILED };
    if p_properties.is_null() {
        *count = have.len() as u32;
        return Result::SUCCESS;
    }
    let given = have.len().min(*count as usize);
    // SAFETY: valid for `*count` elements, of which at most that many are written.
    unsafe { std::ptr::copy_nonoverlapping(have.as_ptr(), p_properties.as_mut_ptr(), given) };
    *count = given as u32;
    if given < have.len() { Result::INCOMPLETE } else { Result::SUCCESS }
}

fn copy_text(from: &CStr, to: &mut [u8]) {
    let bytes = from.to_bytes();
    to[..bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_negotiation_speaks_version_two() {
        let mut it = Negotiation {
            s_type: NEGOTIATION,
            p_next: Ptr::NULL,
            version: 7,
            get_instance_proc_addr: None,
            get_device_proc_addr: None,
            get_physical_device_proc_addr: None,
        };
        // SAFETY: the structure above is what a loader hands over.
        let result = unsafe { vkNegotiateLoaderLayerInterfaceVersion(&raw mut it) };
        assert_eq!((result, it.version), (Result::SUCCESS, 2));
        assert!(it.get_instance_proc_addr.is_some() && it.get_device_proc_addr.is_some());
        it.version = 1;
        // SAFETY: as above, and null.
        unsafe {
            assert_eq!(vkNegotiateLoaderLayerInterfaceVersion(&raw mut it), FAILED);
            assert_eq!(vkNegotiateLoaderLayerInterfaceVersion(std::ptr::null_mut()), FAILED);
        }
    }

    #[test]
    fn a_null_create_info_is_an_error_and_no_crash() {
        // SAFETY: null is what is tested.
        unsafe {
            assert_eq!(create_instance::<0>(Ptr::NULL, Ptr::NULL, Ptr::NULL), FAILED);
            assert_eq!(get_instance_proc_addr::<0>(0, Ptr::NULL), FnPtr(0));
        }
    }

    #[test]
    fn enumeration_follows_the_two_call_idiom() {
        let (mut counts, mut layer) = ([9_u32, 1, 0], LayerProperties::zeroed());
        let first = (&raw mut counts).expose_provenance() as u64;
        let p_layer = Ptr::new((&raw mut layer).expose_provenance() as u64);
        // SAFETY: the pointers lead to the two variables above.
        let results = unsafe {
            [
                enumerate_instance_layer_properties(Ptr::new(first), Ptr::NULL),
                enumerate_instance_layer_properties(Ptr::new(first + 4), p_layer),
                enumerate_instance_layer_properties(Ptr::new(first + 8), p_layer),
            ]
        };
        assert_eq!(results, [Result::SUCCESS, Result::SUCCESS, Result::INCOMPLETE]);
        assert_eq!(counts, [1, 1, 0]);
        assert_eq!(CStr::from_bytes_until_nul(&layer.layer_name), Ok(LAYER_NAME));
    }
}
