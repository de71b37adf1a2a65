//! Instances, what exists before them, and how the loader finds every function.

use std::ffi::CStr;
use std::sync::Arc;

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::command_log;
use crate::calls::command_return::catch_panic;
use crate::calls::dispatchable;
use crate::capabilities::extensions;
use crate::capabilities::extensions::{ApiBlock, ApiBlockKind};
use crate::capabilities::settings::{API_VERSION, DriverSettings, Execute};
use crate::generated::{by_hand, by_hand_in_transfers, by_table, empty};
use crate::resources::address_space;

/// The object of a `VkInstance`.
pub(crate) struct InstanceData {
    settings: Arc<DriverSettings>,
    physical_device: PhysicalDevice,
}

/// The object of the one `VkPhysicalDevice` of an instance.
pub(crate) struct PhysicalDeviceData {
    pub(crate) settings: Arc<DriverSettings>,
}

/// The newest version of the loader's driver interface that we speak.
const INTERFACE_VERSION: u32 = 7;

/// The loader and the driver agree on how they talk.
///
/// # Safety
///
/// `version` must be null or valid, as the loader's driver interface demands.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdNegotiateLoaderICDInterfaceVersion(version: *mut u32) -> Result {
    // SAFETY: by the loader's driver interface, `version` leads to a number that only the loader has, or is null.
    let Some(version) = (unsafe { version.as_mut() }) else { return Result::ERROR_INCOMPATIBLE_DRIVER };
    *version = INTERFACE_VERSION.min(*version);
    Result::SUCCESS
}

/// Every function of the driver, by name.
///
/// # Safety
///
/// `instance` must be null or an instance of ours that is alive, and `name` must be null or lead to a text that ends
/// with a zero, as the loader's driver interface demands.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdGetInstanceProcAddr(instance: Instance, name: Ptr<u8>) -> FnPtr {
    // SAFETY: the instance is alive and the name a text until this returns, by the contract of this function; `c` is
    // used until then.
    let c = unsafe { ApplicationMemory::in_call() };
    let params = GetInstanceProcAddrParams { instance, p_name: name };
    catch_panic("_icdGetInstanceProcAddr", || get_instance_proc_addr(c, &params), FnPtr::default)
}

/// The functions that take a physical device, by name; null for others.
///
/// # Safety
///
/// As for [`vk_icdGetInstanceProcAddr`].
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdGetPhysicalDeviceProcAddr(instance: Instance, name: Ptr<u8>) -> FnPtr {
    // SAFETY: the instance is alive and the name a text until this returns, by the contract of this function; `c` is
    // used until then.
    let c = unsafe { ApplicationMemory::in_call() };
    let find = || {
        let command = c.text(name).to_str().ok().and_then(command_by_name);
        let command = command.filter(|it| it.desc().level == desc::CommandLevel::PhysicalDevice);
        command.map_or(FnPtr::default(), |it| entry_point(it, execute_of(c, instance)))
    };
    catch_panic("_icdGetPhysicalDeviceProcAddr", find, FnPtr::default)
}

/// The function of a command. Recorded transfers are empty unless they are to be performed.
pub(crate) fn entry_point(command: Command, execute: Execute) -> FnPtr {
    if command_log::is_on() {
        entry_point_with_log::<true>(command, execute)
    } else {
        entry_point_with_log::<false>(command, execute)
    }
}

fn entry_point_with_log<const LOGS: bool>(command: Command, execute: Execute) -> FnPtr {
    let transfer = match execute {
        Execute::Transfer => by_hand_in_transfers::<LOGS>(command),
        Execute::Nothing => None,
    };
    let made = transfer.or_else(|| by_hand::<LOGS>(command)).or_else(|| by_table::<LOGS>(command));
    made.or_else(|| empty::<LOGS>(command)).unwrap_or_default()
}

fn execute_of(c: ApplicationMemory<'_>, instance: Instance) -> Execute {
    if instance.0 == 0 { Execute::Nothing } else { c.instance(instance).settings.execute }
}

pub(crate) fn get_instance_proc_addr(c: ApplicationMemory<'_>, call: &GetInstanceProcAddrParams) -> FnPtr {
    let name = c.text(call.p_name);
    type Negotiate = unsafe extern "system" fn(*mut u32) -> Result;
    type Get = unsafe extern "system" fn(Instance, Ptr<u8>) -> FnPtr;
    match name.to_bytes() {
        b"vk_icdNegotiateLoaderICDInterfaceVersion" => {
            address!(vk_icdNegotiateLoaderICDInterfaceVersion, Negotiate)
        }
        b"vk_icdGetInstanceProcAddr" => address!(vk_icdGetInstanceProcAddr, Get),
        b"vk_icdGetPhysicalDeviceProcAddr" => address!(vk_icdGetPhysicalDeviceProcAddr, Get),
        name => {
            let command = std::str::from_utf8(name).ok().and_then(command_by_name);
            command.map_or(FnPtr::default(), |it| entry_point(it, execute_of(c, call.instance)))
        }
    }
}

pub(crate) fn get_device_proc_addr(c: ApplicationMemory<'_>, call: &GetDeviceProcAddrParams) -> FnPtr {
    let Ok(name) = c.text(call.p_name).to_str() else { return FnPtr::default() };
    let device = c.device(call.device);
    let command = command_by_name(name).filter(|it| it.desc().level == desc::CommandLevel::Device);
    let is_there = extensions::has_command(name, |it| device.enabled.iter().any(|name| name.as_c_str() == it));
    match command.filter(|_| is_there) {
        Some(command) => entry_point(command, device.settings.execute),
        None if device.settings.unknown_command.as_deref() == Some(name) => {
            FnPtr((unknown_command as extern "system" fn() as *const ()).expose_provenance() as u64)
        }
        None => FnPtr::default(),
    }
}

/// A command that is newer than the registry.
extern "system" fn unknown_command() {}

pub(crate) fn create_instance(c: ApplicationMemory<'_>, call: &CreateInstanceParams) -> Result {
    let settings = match DriverSettings::from_environment() {
        Ok(settings) => Arc::new(settings),
        Err(error) => {
            eprintln!("lavascope null driver: {error}");
            return Result::ERROR_INITIALIZATION_FAILED;
        }
    };
    let Some(info) = c.get(call.p_create_info) else { return Result::ERROR_UNKNOWN };
    for name in c.slice(info.pp_enabled_extension_names, info.enabled_extension_count) {
        if !is_offered(c.text(*name), ApiBlockKind::Instance, &settings) {
            return Result::ERROR_EXTENSION_NOT_PRESENT;
        }
    }
    address_space::apply_salt(settings.salt);
    let Some(physical) = dispatchable::create(PhysicalDeviceData { settings: Arc::clone(&settings) }) else {
        return Result::ERROR_OUT_OF_HOST_MEMORY;
    };
    let physical_device = PhysicalDevice(physical);
    match dispatchable::create(InstanceData { settings, physical_device }) {
        Some(handle) => c.write(call.p_instance, Instance(handle)),
        None => return Result::ERROR_OUT_OF_HOST_MEMORY,
    }
    Result::SUCCESS
}

pub(crate) fn destroy_instance(c: ApplicationMemory<'_>, call: &DestroyInstanceParams) {
    if call.instance.0 != 0 {
        c.destroy::<PhysicalDeviceData>(c.instance(call.instance).physical_device.0);
        c.destroy::<InstanceData>(call.instance.0);
    }
}

/// Instance extensions are the window system's and the loader's; a profile takes away those of devices only.
pub(crate) fn is_offered(name: &CStr, kind: ApiBlockKind, settings: &DriverSettings) -> bool {
    extensions::by_name(name).is_some_and(|it| it.kind == kind)
        && (kind == ApiBlockKind::Instance || settings.has_extension(name))
}

fn extension_properties(block: &ApiBlock, settings: &DriverSettings) -> ExtensionProperties {
    let mut out = ExtensionProperties::zeroed();
    let name = block.name.to_bytes();
    out.extension_name[..name.len()].copy_from_slice(name);
    out.spec_version = settings.spec_version(block);
    out
}

pub(crate) fn enumerate_instance_extension_properties(
    c: ApplicationMemory<'_>,
    call: &EnumerateInstanceExtensionPropertiesParams,
) -> Result {
    let settings = DriverSettings::new();
    let all: Vec<ExtensionProperties> =
        extensions::of_kind(ApiBlockKind::Instance).map(|it| extension_properties(it, &settings)).collect();
    c.enumerate_values(call.p_property_count, call.p_properties, &all)
}

pub(crate) fn enumerate_device_extension_properties(
    c: ApplicationMemory<'_>,
    call: &EnumerateDeviceExtensionPropertiesParams,
) -> Result {
    let settings = &c.physical_device(call.physical_device).settings;
    let is_there = |it: &&ApiBlock| settings.has_extension(it.name);
    let all: Vec<ExtensionProperties> = extensions::of_kind(ApiBlockKind::Device)
        .filter(is_there)
        .map(|it| extension_properties(it, settings))
        .collect();
    c.enumerate_values(call.p_property_count, call.p_properties, &all)
}

pub(crate) fn enumerate_instance_version(c: ApplicationMemory<'_>, call: &EnumerateInstanceVersionParams) -> Result {
    c.write(call.p_api_version, API_VERSION);
    Result::SUCCESS
}

pub(crate) fn enumerate_physical_devices(c: ApplicationMemory<'_>, call: &EnumeratePhysicalDevicesParams) -> Result {
    let all = [c.instance(call.instance).physical_device];
    c.enumerate_values(call.p_physical_device_count, call.p_physical_devices, &all)
}

pub(crate) fn enumerate_physical_device_groups(
    c: ApplicationMemory<'_>,
    call: &EnumeratePhysicalDeviceGroupsParams,
) -> Result {
    let all = [c.instance(call.instance).physical_device];
    let (count, to) = (call.p_physical_device_group_count, call.p_physical_device_group_properties);
    c.enumerate(count, to, &all, |group_properties, at| {
        group_properties.physical_device_count = 1;
        group_properties.physical_devices[0] = all[at];
        group_properties.subset_allocation = Bool32::FALSE;
    })
}
