//! The features that the layer adds to a `VkDeviceCreateInfo`: stores in shaders, and buffer device addresses.
//!
//! Shaders with checks use SPIR-V 1.3, so Vulkan 1.1 is required. Device addresses are of Vulkan 1.2; on an older device
//! the layer adds `VK_KHR_buffer_device_address`. The features are enabled if the device supports them;
//! a stage that cannot write is not checked.
//!
//! If the application enables `VK_EXT_buffer_device_address`, the layer enables the feature of that extension, because
//! it and the newer one exclude each other. Our code makes pointers out of two words, which the older extension alone
//! does not allow: that requires Vulkan 1.2. Without it, the tables are in a descriptor set, and shaders that use
//! device addresses are not checked.

use std::ffi::CStr;

use lavascope_abi::*;

use crate::loader::instance::{InstanceData, has_name};
use crate::loader::interface::{LOADER_DEVICE_CREATE_INFO, LayerCreateInfo};
use crate::loader::pnext_chain::{chain_types, find_in_chain};

/// Shaders use SPIR-V 1.3.
const VERSION_MIN: u32 = 1 << 22 | 1 << 12;
/// From this version on, every device may support buffer device addresses.
const VERSION_ADDRESSES: u32 = 1 << 22 | 2 << 12;

/// The extension that provides buffer device addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressExtension {
    /// The Khronos extension, or the core version.
    Khr,
    /// The older extension.
    Ext,
}

/// The request that the driver gets instead of the application's.
pub(crate) struct DeviceRequest {
    /// The stages that can write to buffers, as bits of `VkShaderStageFlags`.
    pub(crate) storing_stages: u32,
    /// Whether buffers have device addresses.
    pub(crate) has_addresses: bool,
    /// The extension for them. The feature of the older extension and the newer feature exclude each other.
    pub(crate) extension: AddressExtension,
    /// Whether the application enables robust buffer access.
    pub(crate) is_robust: bool,
    /// Whether the application may rely on zeros when it reads beyond the end of a buffer.
    pub(crate) wants_zeros: bool,
    /// The queue families of the device.
    pub(crate) families: Vec<u32>,
    /// Whether the extension for addresses is added to the application's.
    adds_extension: bool,
    features: Option<Box<PhysicalDeviceFeatures>>,
    /// A copy of the beginning of the chain, up to the last feature structure that changes.
    chain: ChainCopy,
    /// Added before the chain if the application has no structure for device addresses.
    address_features: Option<Box<PhysicalDeviceBufferDeviceAddressFeatures>>,
}

impl DeviceRequest {
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkCreateDevice` that has not returned, on a physical device of the
    /// instance. What the info leads to must stay for as long as [`DeviceRequest::info`] is used.
    pub(crate) unsafe fn of(
        instance: &InstanceData,
        params: &CreateDeviceParams,
    ) -> std::result::Result<DeviceRequest, &'static str> {
        // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter, by the contract of this function; null is none.
        let info = unsafe { params.p_create_info.as_ptr().as_ref() }.ok_or("the create info of the device is null")?;
        // SAFETY: VUID-vkCreateDevice-physicalDevice-parameter, by the contract of this function.
        let asked = unsafe { query_features(instance, params.physical_device) };
        let (has, version) = asked.ok_or("the driver does not report its features")?;
        if instance.api_version < VERSION_MIN || version < VERSION_MIN {
            return Err(
                "Vulkan 1.1 is needed to check shaders, and the device does not have it; nothing is checked on it",
            );
        }
        let vertex = ShaderStageFlags::VERTEX.0
            | ShaderStageFlags::TESSELLATION_CONTROL.0
            | ShaderStageFlags::TESSELLATION_EVALUATION.0
            | ShaderStageFlags::GEOMETRY.0;
        // SAFETY: the contract of this function: the info of a valid `vkCreateDevice`.
        let extension = unsafe { address_extension(info) };
        // SAFETY: the contract of this function: the info of a valid `vkCreateDevice`, and its physical device.
        let (has_addresses, adds_extension) =
            unsafe { address_support(instance, params.physical_device, info, (extension, version)) };
        let mut request = DeviceRequest {
            storing_stages: ShaderStageFlags::ALL.0 & !vertex & !FRAGMENT,
            has_addresses,
            adds_extension,
            extension,
            is_robust: false,
            // SAFETY: the contract of this function: the chain of a valid `vkCreateDevice`.
            wants_zeros: unsafe { wants_zeros(info.p_next) },
            // SAFETY: the contract of this function: the info of a valid `vkCreateDevice`.
            families: unsafe { families(info) },
            features: None,
            chain: ChainCopy::default(),
            address_features: None,
        };
        if has.fragment_stores_and_atomics.0 != 0 {
            request.storing_stages |= FRAGMENT;
        }
        if has.vertex_pipeline_stores_and_atomics.0 != 0 {
            request.storing_stages |= vertex;
        }
        // SAFETY: the contract of this function: the info of a valid `vkCreateDevice`.
        unsafe { request.enable_features(info, &has) }
            .ok_or("the features of the device cannot be changed; nothing is checked on it")?;
        Ok(request)
    }

    /// Copies the features and switches on what is needed.
    ///
    /// # Safety
    ///
    /// The info must be that of a valid `vkCreateDevice` that has not returned.
    unsafe fn enable_features(&mut self, info: &DeviceCreateInfo, has: &PhysicalDeviceFeatures) -> Option<()> {
        // SAFETY: VUID-VkDeviceCreateInfo-pNext-pNext, by the contract of this function; the loader's links are such
        // structures, too.
        let types: Vec<StructureType> = unsafe { chain_types(info.p_next) }.into_iter().map(|it| it.0).collect();
        let (has_addresses, own_addresses) = (self.has_addresses, address_features_type(self.extension));
        let is_new = self.extension == AddressExtension::Khr;
        // Whether a structure is one in which the application asks for device addresses.
        let is_said = |it: &StructureType| has_addresses && (*it == own_addresses || *it == CORE_1_2 && is_new);
        let is_changed = |it: &&StructureType| **it == FEATURES || is_said(it);
        if let Some(last) = types.iter().rfind(is_changed) {
            // SAFETY: VUID-VkDeviceCreateInfo-pNext-pNext, by the contract of this function.
            self.chain = unsafe { ChainCopy::copy_until(info.p_next, *last) }?;
        }
        if !types.contains(&FEATURES) {
            // SAFETY: VUID-VkDeviceCreateInfo-pEnabledFeatures-parameter, by the contract of this function: null or
            // valid.
            let own = unsafe { info.p_enabled_features.as_ptr().as_ref() };
            let mut features = Box::new(own.map_or_else(PhysicalDeviceFeatures::zeroed, |it| *it));
            self.is_robust = features.robust_buffer_access.0 != 0;
            enable_stores(&mut features, has);
            self.features = Some(features);
        }
        for words in &mut self.chain.all {
            let first = words.as_mut_ptr();
            // SAFETY: `ChainCopy` has whole structures, each of which begins with its type.
            match unsafe { *first.cast::<StructureType>() } {
                FEATURES => {
                    // SAFETY: a copy of the structure of this type, which is ours alone and aligned for any structure.
                    let features = unsafe { &mut (*first.cast::<PhysicalDeviceFeatures2>()).features };
                    self.is_robust = features.robust_buffer_access.0 != 0;
                    enable_stores(features, has);
                }
                CORE_1_2 if is_said(&CORE_1_2) => {
                    // SAFETY: a copy of the structure of this type, which is ours alone and aligned for any structure.
                    unsafe { (*first.cast::<PhysicalDeviceVulkan12Features>()).buffer_device_address = Bool32(1) };
                }
                // Both structures have the same members.
                structure_type if is_said(&structure_type) => {
                    let own = first.cast::<PhysicalDeviceBufferDeviceAddressFeatures>();
                    // SAFETY: a copy of a structure with these members, which is ours alone and aligned for any
                    // structure.
                    unsafe { (*own).buffer_device_address = Bool32(1) };
                }
                _ => {}
            }
        }
        let rest = self.chain.last_next().unwrap_or(info.p_next);
        let first = self.chain.link(rest);
        if self.has_addresses && !types.iter().any(is_said) {
            let mut own = Box::new(PhysicalDeviceBufferDeviceAddressFeatures::zeroed());
            own.s_type = own_addresses;
            own.buffer_device_address = Bool32(1);
            own.p_next = first;
            self.address_features = Some(own);
        }
        Some(())
    }

    /// The names of extensions with what a request adds.
    ///
    /// # Safety
    ///
    /// `first` must lead to `count` names, which stay for as long as the result is used.
    pub(crate) unsafe fn extension_names(
        request: Option<&DeviceRequest>,
        first: Ptr<Ptr<u8>>,
        count: u32,
    ) -> Vec<Ptr<u8>> {
        // SAFETY: by the contract of this function `first` leads to so many names, which stay.
        let mut names = unsafe { crate::gpu::slice(first, count) }.to_vec();
        if request.is_some_and(|it| it.adds_extension) {
            names.push(Ptr::new(ADDRESS_EXTENSION.as_ptr().expose_provenance() as u64));
        }
        names
    }

    /// The create info for the driver. It refers to this value, and to whatever `info` refers to.
    pub(crate) fn info(&self, info: &DeviceCreateInfo) -> DeviceCreateInfo {
        let mut info = *info;
        if let Some(features) = &self.features {
            info.p_enabled_features = Ptr::to(features);
        }
        if let Some(first) = self.chain.first() {
            info.p_next = first;
        }
        if let Some(addresses) = &self.address_features {
            info.p_next = Ptr::to(&**addresses).cast();
        }
        info
    }
}

const FRAGMENT: u32 = ShaderStageFlags::FRAGMENT.0;
const FEATURES: StructureType = StructureType::PHYSICAL_DEVICE_FEATURES_2;
const CORE_1_2: StructureType = StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;

/// The type of the feature structure for device addresses. Both kinds have the same members.
fn address_features_type(extension: AddressExtension) -> StructureType {
    match extension {
        AddressExtension::Khr => StructureType::PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        AddressExtension::Ext => StructureType::PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES_EXT,
    }
}

/// By which extension a new device may have addresses.
///
/// # Safety
///
/// The info must be that of a valid `vkCreateDevice` that has not returned.
unsafe fn address_extension(info: &DeviceCreateInfo) -> AddressExtension {
    let (names, count) = (info.pp_enabled_extension_names, info.enabled_extension_count);
    // SAFETY: VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-parameter, by the contract of this function.
    match unsafe { has_name(names, count, c"VK_EXT_buffer_device_address") } {
        true => AddressExtension::Ext,
        false => AddressExtension::Khr,
    }
}

/// Whether reads behind the end of a buffer give zero, or may in pipelines that ask for it.
///
/// # Safety
///
/// The chain must be that of a valid `vkCreateDevice` that has not returned.
unsafe fn wants_zeros(chain: Ptr<Opaque>) -> bool {
    let ty = StructureType::PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_KHR;
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    let of_device = unsafe { find_in_chain::<PhysicalDeviceRobustness2FeaturesKHR>(chain, ty) };
    let ty = StructureType::PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES;
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    let of_pipelines = unsafe { find_in_chain::<PhysicalDevicePipelineRobustnessFeatures>(chain, ty) };
    let ty = StructureType::PHYSICAL_DEVICE_VULKAN_1_4_FEATURES;
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    let core = unsafe { find_in_chain::<PhysicalDeviceVulkan14Features>(chain, ty) };
    // SAFETY: structures of the chain, which by the contract of this function stay until the call returns.
    unsafe {
        of_device.is_some_and(|it| (*it.as_ptr()).robust_buffer_access2.0 != 0)
            || of_pipelines.is_some_and(|it| (*it.as_ptr()).pipeline_robustness.0 != 0)
            || core.is_some_and(|it| (*it.as_ptr()).pipeline_robustness.0 != 0)
    }
}

/// # Safety
///
/// The info must be that of a valid `vkCreateDevice` that has not returned.
unsafe fn families(info: &DeviceCreateInfo) -> Vec<u32> {
    // SAFETY: VUID-VkDeviceCreateInfo-pQueueCreateInfos-parameter, by the contract of this function.
    let queues = unsafe { crate::gpu::slice(info.p_queue_create_infos, info.queue_create_info_count) };
    let mut all: Vec<u32> = queues.iter().map(|it| it.queue_family_index).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether buffers of a new device can have addresses, and whether an extension must be added for them.
///
/// # Safety
///
/// The info must be that of a valid `vkCreateDevice` on this physical device of the instance, that has not returned.
unsafe fn address_support(
    instance: &InstanceData,
    physical_device: PhysicalDevice,
    info: &DeviceCreateInfo,
    (extension, version): (AddressExtension, u32),
) -> (bool, bool) {
    let (names, count) = (info.pp_enabled_extension_names, info.enabled_extension_count);
    // SAFETY: VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-parameter, by the contract of this function.
    let is_named = unsafe { has_name(names, count, ADDRESS_EXTENSION) };
    let is_core = instance.api_version.min(version) >= VERSION_ADDRESSES;
    // Our code makes pointers out of two words, for which the older extension is not enough. It and the newer one
    // exclude each other.
    let can_add = !is_core && !is_named && extension == AddressExtension::Khr;
    // SAFETY: the contract of this function: a physical device of the instance.
    let adds = can_add && unsafe { offers_address_extension(instance, physical_device) };
    if !is_core && (!(is_named || adds) || extension == AddressExtension::Ext) {
        return (false, false);
    }
    let Some(ask) = instance.table.get_physical_device_features2 else { return (false, false) };
    let mut has = PhysicalDeviceBufferDeviceAddressFeatures::zeroed();
    has.s_type = address_features_type(extension);
    let mut features = PhysicalDeviceFeatures2::zeroed();
    features.s_type = FEATURES;
    features.p_next = crate::gpu::out_ptr(&mut has).cast();
    // SAFETY: VUID-vkCreateDevice-physicalDevice-parameter, by the contract of this function, for the function of its
    // instance; both places are ours.
    unsafe { ask(physical_device, crate::gpu::out_ptr(&mut features)) };
    let has_addresses = has.buffer_device_address.0 != 0;
    (has_addresses, has_addresses && adds)
}

const ADDRESS_EXTENSION: &CStr = c"VK_KHR_buffer_device_address";

/// # Safety
///
/// The physical device must be one of the instance, and be alive until this returns.
unsafe fn offers_address_extension(instance: &InstanceData, physical_device: PhysicalDevice) -> bool {
    let Some(ask) = instance.table.enumerate_device_extension_properties else { return false };
    let mut count = 0_u32;
    let p_count = crate::gpu::out_ptr(&mut count);
    // SAFETY: the contract of this function, for the function of its instance; the places are ours.
    unsafe { ask(physical_device, Ptr::NULL, p_count, Ptr::NULL) };
    let mut all = vec![ExtensionProperties::zeroed(); count as usize];
    let p_all = Ptr::new(all.as_mut_ptr().expose_provenance() as u64);
    // SAFETY: as above, with places for as many as the driver has.
    unsafe { ask(physical_device, Ptr::NULL, p_count, p_all) };
    let wanted = ADDRESS_EXTENSION.to_bytes_with_nul();
    all.iter().any(|it| it.extension_name.starts_with(wanted))
}

fn enable_stores(features: &mut PhysicalDeviceFeatures, has: &PhysicalDeviceFeatures) {
    for (bool, has) in [
        (&mut features.fragment_stores_and_atomics, has.fragment_stores_and_atomics),
        (&mut features.vertex_pipeline_stores_and_atomics, has.vertex_pipeline_stores_and_atomics),
    ] {
        bool.0 |= has.0;
    }
}

/// The features and the version of a physical device.
///
/// # Safety
///
/// The physical device must be one of the instance, and be alive until this returns.
unsafe fn query_features(
    instance: &InstanceData,
    physical_device: PhysicalDevice,
) -> Option<(PhysicalDeviceFeatures, u32)> {
    let mut features = PhysicalDeviceFeatures::zeroed();
    let mut properties = PhysicalDeviceProperties::zeroed();
    // SAFETY: the contract of this function, for functions of the instance; the places are ours.
    unsafe {
        (instance.table.get_physical_device_features?)(physical_device, crate::gpu::out_ptr(&mut features));
        (instance.table.get_physical_device_properties?)(physical_device, crate::gpu::out_ptr(&mut properties));
    }
    Some((features, properties.api_version))
}

/// Copies of structures at the beginning of a chain, word by word. After `link`, they refer to each other and do not
/// change. Each is a vector, not a box, because its address must stay valid while it is moved.
#[derive(Default)]
pub(crate) struct ChainCopy {
    all: Vec<Vec<u64>>,
}

impl ChainCopy {
    /// Copies of the structures of a chain up to the one of a type, with that; none if one of them is not known.
    ///
    /// # Safety
    ///
    /// `first` must be the `pNext` of a structure that a command was called with, while that has not returned, or null.
    pub(crate) unsafe fn copy_until(first: Ptr<Opaque>, last: StructureType) -> Option<ChainCopy> {
        let mut all = Vec::new();
        // SAFETY: the contract of this function, which is that of `chain_types`.
        for (ty, at) in unsafe { chain_types(first) } {
            let size = match ty.0 {
                LOADER_DEVICE_CREATE_INFO => size_of::<LayerCreateInfo>(),
                other => structure_by_type(other)?.size as usize,
            };
            let mut words = vec![0_u64; size.div_ceil(8)];
            let target = words.as_mut_ptr().cast::<u8>();
            // SAFETY: the structure of this type is so large, and by the contract of this function it may be read.
            // There is room for it in the words, which are ours.
            unsafe { std::ptr::copy_nonoverlapping(at.cast::<u8>().as_ptr(), target, size) };
            all.push(words);
            if ty == last {
                return Some(ChainCopy { all });
            }
        }
        None
    }

    /// Removes the last structure.
    pub(crate) fn pop(&mut self) {
        self.all.pop();
    }

    /// The `pNext` of the last structure; none if there is none.
    fn last_next(&self) -> Option<Ptr<Opaque>> {
        self.all.last().map(|it| Ptr::new(it[1]))
    }

    /// Links each structure to the next, and the last one to `rest`. Returns the begin of the chain.
    pub(crate) fn link(&mut self, rest: Ptr<Opaque>) -> Ptr<Opaque> {
        let mut next = rest;
        // From the end, because the address of a structure is taken only after its last write.
        for words in self.all.iter_mut().rev() {
            // The second word of every structure is `pNext`.
            words[1] = next.0;
            next = Ptr::to_slice(words).cast();
        }
        next
    }

    /// The begin of the chain; none if it is empty.
    fn first(&self) -> Option<Ptr<Opaque>> {
        self.all.first().map(|it| Ptr::to_slice(it).cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain_of(first: Ptr<Opaque>) -> Vec<StructureType> {
        // SAFETY: a chain of this test.
        unsafe { chain_types(first) }.into_iter().map(|it| it.0).collect()
    }

    #[test]
    fn copies_lead_to_each_other_and_to_the_rest_wherever_they_are_moved() {
        let third = PhysicalDeviceVulkan12Features::zeroed();
        let mut second = PhysicalDeviceFeatures2::zeroed();
        second.p_next = Ptr::to(&third).cast();
        let mut first = PhysicalDeviceBufferDeviceAddressFeatures::zeroed();
        first.p_next = Ptr::to(&second).cast();
        // SAFETY: the chain above.
        let mut copies = unsafe { ChainCopy::copy_until(Ptr::to(&first).cast(), FEATURES) }.expect("both are known");
        let rest = copies.last_next().expect("there are two");
        assert_eq!(rest, Ptr::to(&third).cast());
        let begin = copies.link(rest);
        let moved = Box::new(copies);
        assert_eq!(moved.first(), Some(begin));
        let own = StructureType::PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES;
        assert_eq!(chain_of(begin), [own, FEATURES, CORE_1_2]);
        let mut copies = *moved;
        copies.pop();
        let begin = copies.link(Ptr::NULL);
        assert_eq!(chain_of(begin), [own]);
        // SAFETY: the chain above, which has no such structure.
        assert!(unsafe { ChainCopy::copy_until(Ptr::to(&first).cast(), StructureType::SUBMIT_INFO) }.is_none());
    }
}
