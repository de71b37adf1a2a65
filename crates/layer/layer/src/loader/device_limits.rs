//! Limits of physical devices that are told lower than they are, so that a descriptor set is left for the layer.

use lavascope_abi::*;

use crate::generated::shim;
use crate::loader::dispatch::dispatch_key;
use crate::loader::instance::InstanceData;
use crate::loader::pnext_chain::find_in_chain;
use crate::loader::proc_addr::CHAINS;
use crate::process::catch_panic::catch_panic;

/// Descriptors that can be told apart in what checks on a device report: more must not be in use at once.
const DESCRIPTORS_MAX: u32 = 1 << 22;

pub(crate) unsafe extern "system" fn get_physical_device_properties<const CHAIN: usize>(
    physical_device: PhysicalDevice,
    p_properties: Ptr<PhysicalDeviceProperties>,
) {
    // SAFETY: VUID-vkGetPhysicalDeviceProperties-physicalDevice-parameter: a physical device that is alive, and so is
    // its instance, whose key it shares. Both stay so until the call returns.
    let Some(owner) = (unsafe { CHAINS[CHAIN].instances.get(dispatch_key(physical_device.0)) }) else { return };
    let shim = owner.shim_if_watched(Command::GetPhysicalDeviceProperties);
    // SAFETY: null is none. `shim` gives the function that stands in for this command, with the command's prototype.
    let shim = unsafe { std::mem::transmute::<FnPtr, Option<FnGetPhysicalDeviceProperties>>(shim) };
    let Some(next) = shim.or(owner.table.get_physical_device_properties) else { return };
    // SAFETY: `next` is the shim, or the next function of the chain, of the command that the application called with
    // these parameters.
    unsafe { next(physical_device, p_properties) };
    // SAFETY: VUID-vkGetPhysicalDeviceProperties-pProperties-parameter: it leads to a structure that the call writes.
    // The next function has returned, so that until this call returns the structure is ours alone.
    let work = || unsafe { p_properties.as_mut_ptr().as_mut() }.map_or((), |it| reserve_descriptor_set(&mut it.limits));
    catch_panic(Command::GetPhysicalDeviceProperties, work, || ());
}

pub(crate) unsafe extern "system" fn get_physical_device_properties2<const CHAIN: usize>(
    physical_device: PhysicalDevice,
    p_properties: Ptr<PhysicalDeviceProperties2>,
) {
    // SAFETY: VUID-vkGetPhysicalDeviceProperties2-physicalDevice-parameter: a physical device that is alive, and so is
    // its instance, whose key it shares. Both stay so until the call returns.
    let Some(owner) = (unsafe { CHAINS[CHAIN].instances.get(dispatch_key(physical_device.0)) }) else { return };
    let shim = owner.shim_if_watched(Command::GetPhysicalDeviceProperties2);
    // SAFETY: null is none. `shim` gives the function that stands in for this command, with the command's prototype.
    let shim = unsafe { std::mem::transmute::<FnPtr, Option<FnGetPhysicalDeviceProperties2>>(shim) };
    let Some(next) = shim.or(owner.table.get_physical_device_properties2) else { return };
    // SAFETY: `next` is the shim, or the next function of the chain, of the command that the application called with
    // these parameters.
    unsafe { next(physical_device, p_properties) };
    let work = || {
        // SAFETY: VUID-vkGetPhysicalDeviceProperties2-pProperties-parameter: it leads to a structure that the call
        // writes. The next function has returned, so that until this call returns the structure is ours alone.
        let Some(other) = (unsafe { p_properties.as_mut_ptr().as_mut() }) else { return };
        reserve_descriptor_set(&mut other.properties.limits);
        // SAFETY: VUID-VkPhysicalDeviceProperties2-pNext-pNext: the chain of the structure that was just written.
        unsafe { clamp_descriptor_limits(other.p_next) };
    };
    catch_panic(Command::GetPhysicalDeviceProperties2, work, || ());
}

impl InstanceData {
    /// What stands in for a command where somebody listens; null where nobody does.
    fn shim_if_watched(&self, command: Command) -> FnPtr {
        if self.listeners.is_empty() { FnPtr::default() } else { shim(command) }
    }
}

/// One descriptor set is ours.
fn reserve_descriptor_set(limits: &mut PhysicalDeviceLimits) {
    limits.max_bound_descriptor_sets = limits.max_bound_descriptor_sets.saturating_sub(1);
}

/// # Safety
///
/// The chain must be that of a `VkPhysicalDeviceProperties2` which a call that has not returned to the application has
/// written.
unsafe fn clamp_descriptor_limits(chain: Ptr<Opaque>) {
    let ty = StructureType::PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_PROPERTIES;
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    if let Some(indexing_properties) = unsafe { find_in_chain::<PhysicalDeviceDescriptorIndexingProperties>(chain, ty) }
    {
        // SAFETY: structures of this chain are outputs of the call, so by the contract of this function they are
        // writable, and nobody else uses them until it returns.
        let most = unsafe { &mut (*indexing_properties.as_mut_ptr()).max_update_after_bind_descriptors_in_all_pools };
        *most = (*most).min(DESCRIPTORS_MAX);
    }
    let ty = StructureType::PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    if let Some(vulkan12_properties) = unsafe { find_in_chain::<PhysicalDeviceVulkan12Properties>(chain, ty) } {
        // SAFETY: an output of the call, as the structure before.
        let most = unsafe { &mut (*vulkan12_properties.as_mut_ptr()).max_update_after_bind_descriptors_in_all_pools };
        *most = (*most).min(DESCRIPTORS_MAX);
    }
}
