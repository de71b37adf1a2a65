//! Features of a device by name: asked of the driver, enabled, and asked again by a sample.

use ash::vk;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    DescriptorBindingStorageBufferUpdateAfterBind,
    DrawIndirectFirstInstance,
    DynamicRendering,
    MultiDrawIndirect,
    OcclusionQueryPrecise,
    ShaderStorageBufferArrayDynamicIndexing,
    Synchronization2,
    TimelineSemaphore,
}

/// The structures of a device's features, of those versions that it has.
pub(crate) struct FeatureSet {
    core: vk::PhysicalDeviceFeatures,
    core_1_2: vk::PhysicalDeviceVulkan12Features<'static>,
    core_1_3: Option<vk::PhysicalDeviceVulkan13Features<'static>>,
}

impl FeatureSet {
    /// No feature at all, in the form that a device of this version takes.
    pub(crate) fn empty(api_version: u32) -> FeatureSet {
        FeatureSet {
            core: Default::default(),
            core_1_2: Default::default(),
            core_1_3: (api_version >= vk::API_VERSION_1_3).then(Default::default),
        }
    }

    pub(crate) fn supported(instance: &ash::Instance, device: vk::PhysicalDevice, api_version: u32) -> FeatureSet {
        let mut set = FeatureSet::empty(api_version);
        let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut set.core_1_2);
        if let Some(it) = &mut set.core_1_3 {
            features = features.push_next(it);
        }
        // SAFETY: the device is of this instance and has the versions that the structures are of.
        unsafe { instance.get_physical_device_features2(device, &mut features) };
        set.core = features.features;
        // The chain was for this call only.
        set.core_1_2.p_next = std::ptr::null_mut();
        if let Some(it) = &mut set.core_1_3 {
            it.p_next = std::ptr::null_mut();
        }
        set
    }

    pub(crate) fn has(&mut self, feature: Feature) -> bool {
        self.slot(feature).is_some_and(|it| *it == vk::TRUE)
    }

    pub(crate) fn enable(&mut self, feature: Feature) {
        if let Some(slot) = self.slot(feature) {
            *slot = vk::TRUE;
        }
    }

    /// Chains the features to what a device is created from.
    pub(crate) fn chain<'a>(&'a mut self, mut info: vk::DeviceCreateInfo<'a>) -> vk::DeviceCreateInfo<'a> {
        info = info.enabled_features(&self.core).push_next(&mut self.core_1_2);
        match &mut self.core_1_3 {
            Some(it) => info.push_next(it),
            None => info,
        }
    }

    fn slot(&mut self, feature: Feature) -> Option<&mut vk::Bool32> {
        Some(match feature {
            Feature::DescriptorBindingStorageBufferUpdateAfterBind => {
                &mut self.core_1_2.descriptor_binding_storage_buffer_update_after_bind
            }
            Feature::DrawIndirectFirstInstance => &mut self.core.draw_indirect_first_instance,
            Feature::DynamicRendering => &mut self.core_1_3.as_mut()?.dynamic_rendering,
            Feature::MultiDrawIndirect => &mut self.core.multi_draw_indirect,
            Feature::OcclusionQueryPrecise => &mut self.core.occlusion_query_precise,
            Feature::ShaderStorageBufferArrayDynamicIndexing => {
                &mut self.core.shader_storage_buffer_array_dynamic_indexing
            }
            Feature::Synchronization2 => &mut self.core_1_3.as_mut()?.synchronization2,
            Feature::TimelineSemaphore => &mut self.core_1_2.timeline_semaphore,
        })
    }
}
