//! Limits of physical devices that are told lower than they are, so that a descriptor set is left for the layer.

use lavascope_abi::*;

use crate::application::find_in_chain;
use crate::dispatch::dispatch_key;
use crate::entry::CHAINS;
use crate::fence::fence;
use crate::generated::shim;
use crate::instance::InstanceData;

/// Descriptors that can be told apart in what checks on a device report: more must not be in use at once.
const DESCRIPTORS_MAX: u32 = 1 << 22;

pub(crate) unsafe extern "system" fn get_physical_device_properties<const CHAIN: usize>(
    physical_device: PhysicalDevice,
    p_properties: Ptr<PhysicalDeviceProperties>,
) {
    // SAFETY: a physical device shares the key of its instance, and is alive.
    let Some(owner) = CHAINS[CHAIN].instances.get(unsafe { dispatch_key(physical_device.0) }) else { return };
    let shim = owner.shim(Command::GetPhysicalDeviceProperties);
    // SAFETY: the shim of a command has its type.
    let shim = unsafe { std::mem::transmute::<FnPtr, Option<FnGetPhysicalDeviceProperties>>(shim) };
    let Some(next) = shim.or(owner.table.get_physical_device_properties) else { return };
    // SAFETY: the application's own parameters.
    unsafe { next(physical_device, p_properties) };
    // SAFETY: the place of the answer is the application's, and written by now.
    let work = || unsafe { p_properties.as_mut_ptr().as_mut() }.map_or((), |it| lower(&mut it.limits));
    fence(Command::GetPhysicalDeviceProperties, work, || ());
}

pub(crate) unsafe extern "system" fn get_physical_device_properties2<const CHAIN: usize>(
    physical_device: PhysicalDevice,
    p_properties: Ptr<PhysicalDeviceProperties2>,
) {
    // SAFETY: as above.
    let Some(owner) = CHAINS[CHAIN].instances.get(unsafe { dispatch_key(physical_device.0) }) else { return };
    let shim = owner.shim(Command::GetPhysicalDeviceProperties2);
    // SAFETY: as above.
    let shim = unsafe { std::mem::transmute::<FnPtr, Option<FnGetPhysicalDeviceProperties2>>(shim) };
    let Some(next) = shim.or(owner.table.get_physical_device_properties2) else { return };
    // SAFETY: the application's own parameters.
    unsafe { next(physical_device, p_properties) };
    // SAFETY: as above, with all that is chained to it.
    let work = || unsafe {
        if let Some(it) = p_properties.as_mut_ptr().as_mut() {
            lower(&mut it.properties.limits);
            clamp(it.p_next);
        }
    };
    fence(Command::GetPhysicalDeviceProperties2, work, || ());
}

impl InstanceData {
    /// What stands in for a command where somebody listens; null where nobody does.
    fn shim(&self, command: Command) -> FnPtr {
        if self.listeners == 0 { FnPtr::default() } else { shim(command) }
    }
}

/// One descriptor set is ours.
fn lower(limits: &mut PhysicalDeviceLimits) {
    limits.max_bound_descriptor_sets = limits.max_bound_descriptor_sets.saturating_sub(1);
}

/// # Safety
///
/// The chain must be that of properties which were just written.
unsafe fn clamp(chain: Ptr<Opaque>) {
    // SAFETY: the caller's word; what is found is the application's to write, and ours during its call.
    unsafe {
        let ty = StructureType::PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_PROPERTIES;
        if let Some(it) = find_in_chain::<PhysicalDeviceDescriptorIndexingProperties>(chain, ty) {
            let most = &mut (*it.as_mut_ptr()).max_update_after_bind_descriptors_in_all_pools;
            *most = (*most).min(DESCRIPTORS_MAX);
        }
        let ty = StructureType::PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
        if let Some(it) = find_in_chain::<PhysicalDeviceVulkan12Properties>(chain, ty) {
            let most = &mut (*it.as_mut_ptr()).max_update_after_bind_descriptors_in_all_pools;
            *most = (*most).min(DESCRIPTORS_MAX);
        }
    }
}
