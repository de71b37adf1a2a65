//! The functions that the loader asks for, and what it gets.
//!
//! Only what the layer must see itself is intercepted. Every other function is asked of the next layer and given out
//! as it is, so that a recorded command goes straight to the driver.
//!
//! Everything here is made twice, for two [`Chain`]s: one library may answer for two layer names in one chain, and the
//! loader then has two layers whose calls must not be mistaken for each other. The second one notices that it is
//! inside of the first one's `vkCreateInstance`, and passes everything through.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use lavascope_abi::*;
use lavascope_settings::MessageSeverity;
use serde_json::json;

use crate::generated::{shim, unshimmed};
use crate::loader::device;
use crate::loader::device::DeviceData;
use crate::loader::dispatch::{DispatchMap, WatchedDispatch, dispatch_key};
use crate::loader::instance;
use crate::loader::instance::InstanceData;
use crate::loader::interface::*;
use crate::loader::raised_version::is_newer_command;
use crate::loader::{device_limits, enumerate};
use crate::process::catch_panic::catch_panic;
use crate::process::listeners::Listeners;
use crate::process::process_state::PROCESS_STATE;
use crate::report::messages::{Messages, OutgoingMessage};
use crate::report::{messages, report_file};

/// One of the two places in a chain where this library may stand.
pub(crate) struct Chain {
    pub(crate) instances: DispatchMap<InstanceData>,
    pub(crate) devices: DispatchMap<DeviceData>,
}

pub(crate) static CHAINS: [Chain; 2] = [Chain::new(), Chain::new()];

/// Those whose calls are recorded: at most one of the two places in a chain does that, so shims need not know which.
pub(crate) static WATCHED_INSTANCES: WatchedDispatch<InstanceData> = WatchedDispatch::new();
pub(crate) static WATCHED_DEVICES: WatchedDispatch<DeviceData> = WatchedDispatch::new();

impl Chain {
    const fn new() -> Chain {
        Chain { instances: DispatchMap::new(), devices: DispatchMap::new() }
    }
}

/// The loader's first question, once for each layer name.
///
/// # Safety
///
/// Called by the loader: `negotiation` must be null, or lead to a `VkNegotiateLayerInterface` that may be written and
/// that nobody else uses until this returns.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vkNegotiateLoaderLayerInterfaceVersion(
    negotiation: *mut NegotiateLayerInterface,
) -> Result {
    /// How often we were asked. Relaxed: the loader asks under a lock of its own.
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: the contract of this function; null is none.
    let Some(other) = (unsafe { negotiation.as_mut() }) else { return FAILED };
    if other.s_type != LAYER_NEGOTIATE_INTERFACE_STRUCT || other.version < INTERFACE_VERSION {
        return FAILED;
    }
    other.version = INTERFACE_VERSION;
    let functions: [GetProcAddr; 3] = match ASKED.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => [get_instance_proc_addr::<0>, get_device_proc_addr::<0>, get_physical_device_proc_addr::<0>],
        _ => [get_instance_proc_addr::<1>, get_device_proc_addr::<1>, get_physical_device_proc_addr::<1>],
    };
    let [instance, device, physical_device] = functions;
    other.get_instance_proc_addr = Some(instance);
    other.get_device_proc_addr = Some(device);
    other.get_physical_device_proc_addr = Some(physical_device);
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
        // A layer above may ask for it by name, as the loader does not.
        b"vk_layerGetPhysicalDeviceProcAddr" => address!(get_physical_device_proc_addr::<CHAIN>, GetProcAddr),
        b"vkCreateInstance" => address!(instance::create::<CHAIN>, FnCreateInstance),
        b"vkDestroyInstance" => address!(instance::destroy::<CHAIN>, FnDestroyInstance),
        b"vkCreateDevice" => address!(device::create::<CHAIN>, FnCreateDevice),
        b"vkEnumerateInstanceLayerProperties" => {
            address!(enumerate::instance_layers, FnEnumerateInstanceLayerProperties)
        }
        b"vkEnumerateInstanceExtensionProperties" => {
            address!(enumerate::instance_extensions, FnEnumerateInstanceExtensionProperties)
        }
        b"vkEnumerateDeviceLayerProperties" => {
            address!(enumerate::device_layers, FnEnumerateDeviceLayerProperties)
        }
        b"vkEnumerateDeviceExtensionProperties" => {
            address!(enumerate::device_extensions::<CHAIN>, FnEnumerateDeviceExtensionProperties)
        }
        _ => own_device_function::<CHAIN>(name),
    }
}

/// What the layer intercepts of a device.
fn own_device_function<const CHAIN: usize>(name: &CStr) -> FnPtr {
    match name.to_bytes() {
        b"vkGetDeviceProcAddr" => address!(get_device_proc_addr::<CHAIN>, GetProcAddr),
        b"vkDestroyDevice" => address!(device::destroy::<CHAIN>, FnDestroyDevice),
        _ => FnPtr::default(),
    }
}

/// What the layer intercepts of an instance that has the extension: messages of ours go to the application's own
/// messengers.
fn own_messenger_function<const CHAIN: usize>(instance: &InstanceData, name: &CStr) -> FnPtr {
    let function = match name.to_bytes() {
        b"vkCreateDebugUtilsMessengerEXT" => {
            address!(messages::create_debug_utils_messenger_ext::<CHAIN>, FnCreateDebugUtilsMessengerEXT)
        }
        b"vkDestroyDebugUtilsMessengerEXT" => {
            address!(messages::destroy_debug_utils_messenger_ext::<CHAIN>, FnDestroyDebugUtilsMessengerEXT)
        }
        b"vkCreateDebugReportCallbackEXT" => {
            address!(messages::create_debug_report_callback_ext::<CHAIN>, FnCreateDebugReportCallbackEXT)
        }
        b"vkDestroyDebugReportCallbackEXT" => {
            address!(messages::destroy_debug_report_callback_ext::<CHAIN>, FnDestroyDebugReportCallbackEXT)
        }
        _ => return FnPtr::default(),
    };
    let is_utils = name.to_bytes().windows(5).any(|it| it == b"Utils");
    let is_enabled = if is_utils { instance.has_debug_utils } else { instance.has_debug_report };
    if is_enabled { function } else { FnPtr::default() }
}

/// What the layer intercepts of an instance from which it keeps a descriptor set.
fn own_property_function<const CHAIN: usize>(instance: &InstanceData, name: &CStr) -> FnPtr {
    match name.to_bytes() {
        _ if !instance.reserves_set => FnPtr::default(),
        b"vkGetPhysicalDeviceProperties" => {
            address!(device_limits::get_physical_device_properties::<CHAIN>, FnGetPhysicalDeviceProperties)
        }
        b"vkGetPhysicalDeviceProperties2" | b"vkGetPhysicalDeviceProperties2KHR" => {
            address!(device_limits::get_physical_device_properties2::<CHAIN>, FnGetPhysicalDeviceProperties2)
        }
        _ => FnPtr::default(),
    }
}

/// The next function itself, or its shim where somebody listens. What is newer than our registry passes through.
fn shim_or_next(name: &CStr, next: FnPtr, is_watched: bool, messages: &Messages) -> FnPtr {
    if next.0 == 0 || !is_watched {
        return next;
    }
    match name.to_str().ok().and_then(command_by_name) {
        Some(command) => Some(shim(command)).filter(|it| it.0 != 0).unwrap_or(next),
        None => {
            report_unknown_command(&name.to_string_lossy(), messages);
            next
        }
    }
}

/// Where nobody listens to records, and functions of ours merely stand in for the driver's, nothing is left to be done
/// around a command that is recorded: it goes to that function, or to the driver.
fn bypass_shim(device: &DeviceData, name: &CStr) -> FnPtr {
    let is_it = device.listeners == Listeners::GPU;
    let command = is_it.then(|| name.to_str().ok().and_then(command_by_name)).flatten();
    command.map_or(FnPtr::default(), |it| unshimmed(&device.table, it))
}

/// The commands that are newer than our registry and were asked for.
static UNKNOWN_COMMANDS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Tells once of a command that goes past us.
#[cold]
fn report_unknown_command(name: &str, messages: &Messages) {
    if !UNKNOWN_COMMANDS.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned()) {
        return;
    }
    let is_reported = report_file::unknown_command(name);
    if PROCESS_STATE.is_capturing() {
        PROCESS_STATE.add_trace_metadata(json!({ "unknown_command": name }));
        let text = format!("{name} is newer than this version of Lavascope: calls of it are not in the trace");
        let message = OutgoingMessage::new(MessageSeverity::Warning, c"LAVASCOPE-Unknown-Command", &text);
        match is_reported {
            true => _ = messages.send_to_messengers(&message),
            false => _ = messages.send(&message),
        }
    }
}

/// A function of a device that the driver need not have, because the layer offers the extension.
fn debug_utils_of_device(name: &CStr) -> FnPtr {
    match name.to_str().ok().and_then(command_by_name) {
        Some(
            command @ (Command::SetDebugUtilsObjectNameEXT
            | Command::SetDebugUtilsObjectTagEXT
            | Command::QueueBeginDebugUtilsLabelEXT
            | Command::QueueEndDebugUtilsLabelEXT
            | Command::QueueInsertDebugUtilsLabelEXT
            | Command::CmdBeginDebugUtilsLabelEXT
            | Command::CmdEndDebugUtilsLabelEXT
            | Command::CmdInsertDebugUtilsLabelEXT),
        ) => shim(command),
        _ => FnPtr::default(),
    }
}

/// A name as the application gave it; none for null.
///
/// # Safety
///
/// `name` must be null, or lead to a null-terminated text that stays unchanged while `'a` lasts.
pub(crate) unsafe fn c_str<'a>(name: Ptr<u8>) -> Option<&'a CStr> {
    // SAFETY: the contract of this function, for a name that is not null.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name.as_ptr().cast()) })
}

pub(crate) unsafe extern "system" fn get_instance_proc_addr<const CHAIN: usize>(instance: u64, name: Ptr<u8>) -> FnPtr {
    let work = || {
        // SAFETY: VUID-vkGetInstanceProcAddr-pName-parameter: a null-terminated name that stays until the call returns.
        let text = unsafe { c_str(name) }?;
        let own = own_instance_function::<CHAIN>(text);
        if own.0 != 0 {
            return Some(own);
        }
        // SAFETY: VUID-vkGetInstanceProcAddr-instance-parameter: null, or an instance that is valid until the call
        // returns.
        let data = unsafe { CHAINS[CHAIN].instances.get(dispatch_key(instance)) }?;
        let own = own_messenger_function::<CHAIN>(data, text);
        if own.0 != 0 {
            return Some(own);
        }
        // SAFETY: the link that the loader gave in `vkCreateInstance` has this function for this instance, and it gets
        // what the application passed to `vkGetInstanceProcAddr`.
        let next = unsafe { (data.get_instance_proc_addr)(instance, name) };
        if next.0 == 0 && data.has_debug_utils {
            return Some(debug_utils_of_device(text));
        }
        let own = own_property_function::<CHAIN>(data, text);
        if own.0 != 0 && next.0 != 0 {
            return Some(own);
        }
        Some(shim_or_next(text, next, !data.listeners.is_empty(), &data.messages))
    };
    catch_panic("vkGetInstanceProcAddr", || work().unwrap_or_default(), FnPtr::default)
}

pub(crate) unsafe extern "system" fn get_device_proc_addr<const CHAIN: usize>(device: u64, name: Ptr<u8>) -> FnPtr {
    let work = || {
        // SAFETY: VUID-vkGetDeviceProcAddr-pName-parameter: a null-terminated name that stays until the call returns.
        let text = unsafe { c_str(name) }?;
        let own = own_device_function::<CHAIN>(text);
        if own.0 != 0 {
            return Some(own);
        }
        // SAFETY: VUID-vkGetDeviceProcAddr-device-parameter: a device that is valid until the call returns.
        let data = unsafe { CHAINS[CHAIN].devices.get(dispatch_key(device)) }?;
        // SAFETY: the link that the loader gave in `vkCreateDevice` has this function for this device, and it gets what
        // the application passed to `vkGetDeviceProcAddr`.
        let next = unsafe { (data.get_device_proc_addr)(device, name) };
        if data.hidden_above.is_some_and(|it| is_newer_command(text, it)) {
            return None;
        }
        if next.0 == 0 && data.has_debug_utils {
            return Some(debug_utils_of_device(text));
        }
        let own = bypass_shim(data, text);
        if own.0 != 0 && next.0 != 0 {
            return Some(own);
        }
        Some(shim_or_next(text, next, !data.listeners.is_empty(), &data.messages))
    };
    catch_panic("vkGetDeviceProcAddr", || work().unwrap_or_default(), FnPtr::default)
}

/// Functions of physical devices: ours are known to the loader, so only the next layer's are given.
pub(crate) unsafe extern "system" fn get_physical_device_proc_addr<const CHAIN: usize>(
    instance: u64,
    name: Ptr<u8>,
) -> FnPtr {
    let work = || {
        // SAFETY: the loader asks `vk_layerGetPhysicalDeviceProcAddr` for an instance that it is making or has, so that
        // it is alive until the call returns.
        let data = unsafe { CHAINS[CHAIN].instances.get(dispatch_key(instance)) }?;
        // SAFETY: the link that the loader gave in `vkCreateInstance` has this function for this instance, and it gets
        // what the loader passed to `vk_layerGetPhysicalDeviceProcAddr`.
        let next = unsafe { (data.get_physical_device_proc_addr?)(instance, name) };
        // SAFETY: the loader passes the name on that `vkGetInstanceProcAddr` was called with
        // (VUID-vkGetInstanceProcAddr-pName-parameter), or one of its own; both are null-terminated and stay until the
        // call returns.
        Some(shim_or_next(unsafe { c_str(name) }?, next, !data.listeners.is_empty(), &data.messages))
    };
    catch_panic("vk_layerGetPhysicalDeviceProcAddr", || work().unwrap_or_default(), FnPtr::default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceTable;

    #[test]
    fn the_negotiation_speaks_version_two() {
        let mut layer_interface = NegotiateLayerInterface {
            s_type: LAYER_NEGOTIATE_INTERFACE_STRUCT,
            p_next: Ptr::NULL,
            version: 7,
            get_instance_proc_addr: None,
            get_device_proc_addr: None,
            get_physical_device_proc_addr: None,
        };
        // SAFETY: the structure above is what a loader hands over.
        let result = unsafe { vkNegotiateLoaderLayerInterfaceVersion(&raw mut layer_interface) };
        assert_eq!((result, layer_interface.version), (Result::SUCCESS, 2));
        assert!(layer_interface.get_instance_proc_addr.is_some() && layer_interface.get_device_proc_addr.is_some());
        layer_interface.version = 1;
        // SAFETY: the structure above, and null, which is an error.
        unsafe {
            assert_eq!(vkNegotiateLoaderLayerInterfaceVersion(&raw mut layer_interface), FAILED);
            assert_eq!(vkNegotiateLoaderLayerInterfaceVersion(std::ptr::null_mut()), FAILED);
        }
    }

    #[test]
    fn commands_that_are_recorded_and_say_nothing_may_go_past_the_shims() {
        // SAFETY: nobody calls the functions.
        let table = unsafe { DeviceTable::load(|_| FnPtr(0x1000)) };
        for command in [Command::CmdDispatch, Command::CmdBindDescriptorSets, Command::CmdCopyBuffer] {
            assert_eq!(unshimmed(&table, command), FnPtr(0x1000));
        }
        for command in [Command::BeginCommandBuffer, Command::QueueSubmit, Command::CreateBuffer] {
            assert_eq!(unshimmed(&table, command), FnPtr::default());
        }
        // SAFETY: there is no function.
        let table = unsafe { DeviceTable::load(|_| FnPtr::default()) };
        assert_eq!(unshimmed(&table, Command::CmdDispatch), FnPtr::default());
    }

    #[test]
    fn a_null_create_info_is_an_error_and_no_crash() {
        // SAFETY: a null create info and a null name are looked at, and lead to an error.
        unsafe {
            assert_eq!(instance::create::<0>(Ptr::NULL, Ptr::NULL, Ptr::NULL), FAILED);
            assert_eq!(get_instance_proc_addr::<0>(0, Ptr::NULL), FnPtr(0));
        }
    }
}
