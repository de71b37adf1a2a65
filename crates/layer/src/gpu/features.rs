//! What a new device must be able to do: stages that write into buffers.

use lavascope_abi::*;

use crate::application::{chain_types, find_in_chain};
use crate::instance::InstanceData;
use crate::interface::{DEVICE_LINK, Link};

/// Shaders use SPIR-V 1.3.
const VERSION_MIN: u32 = 1 << 22 | 1 << 12;

/// What the driver is asked for in the place of what the application asks for.
pub(crate) struct Wish {
    /// The stages that can then write, as bits of `VkShaderStageFlags`.
    pub(crate) stages: u32,
    /// Whether the application wants buffers to be accessed robustly.
    pub(super) is_robust: bool,
    features: Option<Box<PhysicalDeviceFeatures>>,
    /// A copy of the chain's beginning, up to the features.
    chain: Vec<Box<[u64]>>,
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
        let stages = ShaderStageFlags::ALL.0 & !vertex & !FRAGMENT;
        let mut wish = Wish { stages, is_robust: false, features: None, chain: Vec::new() };
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
        let ty = StructureType::PHYSICAL_DEVICE_FEATURES_2;
        // SAFETY: the caller's word, and the structure of this type.
        let chained = unsafe { find_in_chain::<PhysicalDeviceFeatures2>(info.p_next, ty) };
        if chained.is_none() {
            // SAFETY: the caller's word.
            let own = unsafe { info.p_enabled_features.as_ptr().as_ref() };
            let mut features = Box::new(own.map_or_else(PhysicalDeviceFeatures::zeroed, |it| *it));
            self.is_robust = features.robust_buffer_access.0 != 0;
            switch_on(&mut features, has);
            self.features = Some(features);
            return Some(());
        }
        // SAFETY: the caller's word.
        self.chain = unsafe { copy_until(info.p_next, ty) }?;
        let last = self.chain.last_mut()?.as_mut_ptr().cast::<PhysicalDeviceFeatures2>();
        // SAFETY: a copy of ours of a structure of this type.
        let features = unsafe { &mut (*last).features };
        self.is_robust = features.robust_buffer_access.0 != 0;
        switch_on(features, has);
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
        info
    }
}

const FRAGMENT: u32 = ShaderStageFlags::FRAGMENT.0;

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

/// Copies of the structures of a chain up to the one of a type; none where one of them is not known.
///
/// # Safety
///
/// The chain must be valid.
unsafe fn copy_until(first: Ptr<Opaque>, last: StructureType) -> Option<Vec<Box<[u64]>>> {
    let mut all: Vec<Box<[u64]>> = Vec::new();
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
