//! What a new device must be able to do: stages that write into buffers, and buffers that have addresses.

use lavascope_abi::*;

use crate::application::{chain_types, find_in_chain};
use crate::instance::{InstanceData, has_name};
use crate::interface::{DEVICE_LINK, Link};

/// Shaders use SPIR-V 1.3.
const VERSION_MIN: u32 = 1 << 22 | 1 << 12;
/// From here on every device may have buffers with addresses.
const VERSION_ADDRESSES: u32 = 1 << 22 | 2 << 12;

/// The extensions by which buffers have addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressExtension {
    /// That of Khronos, or the version that has it.
    Khr,
    /// The older one.
    Ext,
}

/// What the driver is asked for in the place of what the application asks for.
pub(crate) struct Wish {
    /// The stages that can then write, as bits of `VkShaderStageFlags`.
    pub(crate) stages: u32,
    /// Whether buffers then have addresses.
    pub(crate) has_addresses: bool,
    /// By which extension: the older one and the newer feature exclude each other.
    pub(super) extension: AddressExtension,
    /// Whether the application wants buffers to be accessed robustly.
    pub(super) is_robust: bool,
    /// Whether it may rely on zeros where it reads behind the end of a buffer.
    pub(super) wants_zeros: bool,
    /// The families of its queues.
    pub(crate) families: Vec<u32>,
    features: Option<Box<PhysicalDeviceFeatures>>,
    /// A copy of the chain's beginning, up to the last features that are changed.
    chain: Copies,
    /// In front of the chain, where the application says nothing of addresses.
    addresses: Option<Box<PhysicalDeviceBufferDeviceAddressFeatures>>,
}

impl Wish {
    /// # Safety
    ///
    /// The parameters must be those of a valid `vkCreateDevice`.
    pub(crate) unsafe fn of(
        instance: &InstanceData,
        params: &CreateDeviceParams,
    ) -> std::result::Result<Wish, &'static str> {
        // SAFETY: the caller's word.
        let info = unsafe { params.p_create_info.as_ptr().as_ref() }.ok_or("there is no device to be made")?;
        let (has, version) = ask(instance, params.physical_device).ok_or("the driver does not tell its features")?;
        if instance.api_version < VERSION_MIN || version < VERSION_MIN {
            return Err("Vulkan 1.1 is needed to check shaders; nothing is checked on the device");
        }
        let vertex = ShaderStageFlags::VERTEX.0
            | ShaderStageFlags::TESSELLATION_CONTROL.0
            | ShaderStageFlags::TESSELLATION_EVALUATION.0
            | ShaderStageFlags::GEOMETRY.0;
        // SAFETY: the caller's word.
        let extension = unsafe { address_extension(info) };
        let mut wish = Wish {
            stages: ShaderStageFlags::ALL.0 & !vertex & !FRAGMENT,
            // SAFETY: the caller's word.
            has_addresses: unsafe { may_have_addresses(instance, params.physical_device, info, (extension, version)) },
            extension,
            is_robust: false,
            // SAFETY: the caller's word.
            wants_zeros: unsafe { wants_zeros(info.p_next) },
            // SAFETY: the caller's word.
            families: unsafe { families(info) },
            features: None,
            chain: Vec::new(),
            addresses: None,
        };
        if has.fragment_stores_and_atomics.0 != 0 {
            wish.stages |= FRAGMENT;
        }
        if has.vertex_pipeline_stores_and_atomics.0 != 0 {
            wish.stages |= vertex;
        }
        // SAFETY: a valid info, with its chain.
        unsafe { wish.take(info, &has) }
            .ok_or("the features of the device cannot be changed; nothing is checked on it")?;
        Ok(wish)
    }

    /// Copies the features and switches on what is needed.
    ///
    /// # Safety
    ///
    /// The info must be valid, with its chain.
    unsafe fn take(&mut self, info: &DeviceCreateInfo, has: &PhysicalDeviceFeatures) -> Option<()> {
        // SAFETY: the caller's word.
        let types: Vec<StructureType> = unsafe { chain_types(info.p_next) }.into_iter().map(|it| it.0).collect();
        let (has_addresses, own_addresses) = (self.has_addresses, features_of(self.extension));
        let is_new = self.extension == AddressExtension::Khr;
        // Where an application says whether it wants addresses.
        let is_said = |it: &StructureType| has_addresses && (*it == own_addresses || *it == CORE_1_2 && is_new);
        let is_changed = |it: &&StructureType| **it == FEATURES || is_said(it);
        if let Some(last) = types.iter().rfind(is_changed) {
            // SAFETY: the caller's word.
            self.chain = unsafe { copy_until(info.p_next, *last) }?;
        }
        if !types.contains(&FEATURES) {
            // SAFETY: the caller's word.
            let own = unsafe { info.p_enabled_features.as_ptr().as_ref() };
            let mut features = Box::new(own.map_or_else(PhysicalDeviceFeatures::zeroed, |it| *it));
            self.is_robust = features.robust_buffer_access.0 != 0;
            switch_on(&mut features, has);
            self.features = Some(features);
        }
        for words in &mut self.chain {
            let first = words.as_mut_ptr();
            // SAFETY: copies of ours of whole structures, whose types are looked at.
            unsafe {
                match *first.cast::<StructureType>() {
                    FEATURES => {
                        let features = &mut (*first.cast::<PhysicalDeviceFeatures2>()).features;
                        self.is_robust = features.robust_buffer_access.0 != 0;
                        switch_on(features, has);
                    }
                    CORE_1_2 if is_said(&CORE_1_2) => {
                        (*first.cast::<PhysicalDeviceVulkan12Features>()).buffer_device_address = Bool32(1);
                    }
                    // Both have the same members.
                    it if is_said(&it) => {
                        (*first.cast::<PhysicalDeviceBufferDeviceAddressFeatures>()).buffer_device_address = Bool32(1);
                    }
                    _ => {}
                }
            }
        }
        if self.has_addresses && !types.iter().any(is_said) {
            let mut own = Box::new(PhysicalDeviceBufferDeviceAddressFeatures::zeroed());
            own.s_type = own_addresses;
            own.buffer_device_address = Bool32(1);
            own.p_next = self.chain.first().map_or(info.p_next, |it| Ptr::to_slice(it).cast());
            self.addresses = Some(own);
        }
        Some(())
    }

    /// What the driver is asked for instead.
    pub(crate) fn info(&self, info: &DeviceCreateInfo) -> DeviceCreateInfo {
        let mut info = *info;
        if let Some(features) = &self.features {
            info.p_enabled_features = Ptr::to(features);
        }
        if let Some(first) = self.chain.first() {
            info.p_next = Ptr::to_slice(first).cast();
        }
        if let Some(addresses) = &self.addresses {
            info.p_next = Ptr::to(&**addresses).cast();
        }
        info
    }
}

const FRAGMENT: u32 = ShaderStageFlags::FRAGMENT.0;
const FEATURES: StructureType = StructureType::PHYSICAL_DEVICE_FEATURES_2;
const CORE_1_2: StructureType = StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;

/// The structure of features with addresses; both kinds have the same members.
fn features_of(extension: AddressExtension) -> StructureType {
    match extension {
        AddressExtension::Khr => StructureType::PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        AddressExtension::Ext => StructureType::PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES_EXT,
    }
}

/// By which extension a new device may have addresses.
///
/// # Safety
///
/// The info must be valid.
unsafe fn address_extension(info: &DeviceCreateInfo) -> AddressExtension {
    let (names, count) = (info.pp_enabled_extension_names, info.enabled_extension_count);
    // SAFETY: the caller's word.
    match unsafe { has_name(names, count, c"VK_EXT_buffer_device_address") } {
        true => AddressExtension::Ext,
        false => AddressExtension::Khr,
    }
}

/// Whether reads behind the end of a buffer give zero, or may in pipelines that ask for it.
///
/// # Safety
///
/// The chain must be valid.
unsafe fn wants_zeros(chain: Ptr<Opaque>) -> bool {
    // SAFETY: the caller's word, and the structures of these types.
    unsafe {
        let of_device = StructureType::PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_KHR;
        let of_device = find_in_chain::<PhysicalDeviceRobustness2FeaturesKHR>(chain, of_device);
        let of_pipelines = StructureType::PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES;
        let of_pipelines = find_in_chain::<PhysicalDevicePipelineRobustnessFeatures>(chain, of_pipelines);
        let core = StructureType::PHYSICAL_DEVICE_VULKAN_1_4_FEATURES;
        let core = find_in_chain::<PhysicalDeviceVulkan14Features>(chain, core);
        of_device.is_some_and(|it| (*it.as_ptr()).robust_buffer_access2.0 != 0)
            || of_pipelines.is_some_and(|it| (*it.as_ptr()).pipeline_robustness.0 != 0)
            || core.is_some_and(|it| (*it.as_ptr()).pipeline_robustness.0 != 0)
    }
}

/// # Safety
///
/// The info must be valid.
unsafe fn families(info: &DeviceCreateInfo) -> Vec<u32> {
    // SAFETY: the caller's word.
    let queues = unsafe { super::slice(info.p_queue_create_infos, info.queue_create_info_count) };
    let mut all: Vec<u32> = queues.iter().map(|it| it.queue_family_index).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether buffers of a new device can have addresses, with what the application asks for already.
///
/// # Safety
///
/// The physical device must be alive, and the info valid.
unsafe fn may_have_addresses(
    instance: &InstanceData,
    physical_device: PhysicalDevice,
    info: &DeviceCreateInfo,
    (extension, version): (AddressExtension, u32),
) -> bool {
    let (names, count) = (info.pp_enabled_extension_names, info.enabled_extension_count);
    // SAFETY: the caller's word.
    let is_named = unsafe { has_name(names, count, c"VK_KHR_buffer_device_address") };
    let is_new = instance.api_version.min(version) >= VERSION_ADDRESSES;
    // Shaders make pointers of two words, for which the older extension alone is not enough.
    if !is_new && (!is_named || extension == AddressExtension::Ext) {
        return false;
    }
    let Some(ask) = instance.table.get_physical_device_features2 else { return false };
    let mut has = PhysicalDeviceBufferDeviceAddressFeatures::zeroed();
    has.s_type = features_of(extension);
    let mut features = PhysicalDeviceFeatures2::zeroed();
    features.s_type = FEATURES;
    features.p_next = super::place(&mut has).cast();
    // SAFETY: a physical device that is alive, and places of ours.
    unsafe { ask(physical_device, super::place(&mut features)) };
    has.buffer_device_address.0 != 0
}

fn switch_on(features: &mut PhysicalDeviceFeatures, has: &PhysicalDeviceFeatures) {
    for (it, has) in [
        (&mut features.fragment_stores_and_atomics, has.fragment_stores_and_atomics),
        (&mut features.vertex_pipeline_stores_and_atomics, has.vertex_pipeline_stores_and_atomics),
    ] {
        it.0 |= has.0;
    }
}

/// The features and the version of a physical device.
fn ask(instance: &InstanceData, physical_device: PhysicalDevice) -> Option<(PhysicalDeviceFeatures, u32)> {
    let mut features = PhysicalDeviceFeatures::zeroed();
    let mut properties = PhysicalDeviceProperties::zeroed();
    // SAFETY: a physical device that is alive, and places of ours.
    unsafe {
        (instance.table.get_physical_device_features?)(physical_device, super::place(&mut features));
        (instance.table.get_physical_device_properties?)(physical_device, super::place(&mut properties));
    }
    Some((features, properties.api_version))
}

/// Copies of structures, word by word.
pub(super) type Copies = Vec<Box<[u64]>>;

/// Copies of the structures of a chain up to the one of a type; none where one of them is not known.
///
/// # Safety
///
/// The chain must be valid.
pub(super) unsafe fn copy_until(first: Ptr<Opaque>, last: StructureType) -> Option<Copies> {
    let mut all = Copies::new();
    // SAFETY: the caller's word.
    for (ty, at) in unsafe { chain_types(first) } {
        let size = match ty.0 {
            DEVICE_LINK => size_of::<Link>(),
            other => structure_by_type(other)?.size as usize,
        };
        let mut words = vec![0_u64; size.div_ceil(8)].into_boxed_slice();
        // SAFETY: a structure of that size, and room for it.
        unsafe { std::ptr::copy_nonoverlapping(at.cast::<u8>().as_ptr(), words.as_mut_ptr().cast::<u8>(), size) };
        if let Some(before) = all.last_mut() {
            // The second word of every structure leads to the next.
            before[1] = Ptr::to_slice(&words).0;
        }
        all.push(words);
        if ty == last {
            return Some(all);
        }
    }
    None
}
