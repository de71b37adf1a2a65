//! Features of a device by name: asked of the driver, enabled, and asked again by a sample.

use std::ffi::CStr;

use ash::{ext, khr, nv, vk};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    AccelerationStructure,
    AccelerationStructureIndirectBuild,
    BufferDeviceAddress,
    /// The structure of the older extension.
    BufferDeviceAddressOlder,
    ConditionalRendering,
    DescriptorBindingPartiallyBound,
    DescriptorBindingStorageBufferUpdateAfterBind,
    DescriptorBuffer,
    DeviceGeneratedCommands,
    DrawIndirectCount,
    DrawIndirectFirstInstance,
    DynamicRendering,
    FragmentStoresAndAtomics,
    GeometryShader,
    GraphicsPipelineLibrary,
    InlineUniformBlock,
    Maintenance5,
    MeshShader,
    MultiDrawIndirect,
    OcclusionQueryPrecise,
    RayTracingPipeline,
    RobustBufferAccess,
    RobustBufferAccess2,
    RuntimeDescriptorArray,
    ShaderFloat64,
    ShaderImageGatherExtended,
    ShaderInt64,
    ShaderSampledImageArrayDynamicIndexing,
    ShaderSampledImageArrayNonUniformIndexing,
    ShaderStorageBufferArrayDynamicIndexing,
    ShaderObject,
    SparseBinding,
    SparseResidencyAliased,
    Synchronization2,
    TaskShader,
    TessellationShader,
    TimelineSemaphore,
    TransformFeedback,
}

/// The structures of a device's features, of those versions and extensions that it has.
pub(crate) struct FeatureSet {
    core: vk::PhysicalDeviceFeatures,
    chained: Chained,
}

/// Structures that are there if a version or an extension is.
macro_rules! chained {
    ($version:ident, $has:ident; $($field:ident: $kind:ident if $condition:expr,)*) => {
        struct Chained {
            $($field: Option<vk::$kind<'static>>,)*
        }

        impl Chained {
            fn new($version: u32, $has: &dyn Fn(&CStr) -> bool) -> Chained {
                Chained { $($field: $condition.then(Default::default),)* }
            }

            fn ask<'a>(&'a mut self, mut features: vk::PhysicalDeviceFeatures2<'a>) -> vk::PhysicalDeviceFeatures2<'a> {
                $(if let Some(feature) = &mut self.$field {
                    features = features.push_next(feature);
                })*
                features
            }

            fn enable<'a>(&'a mut self, mut info: vk::DeviceCreateInfo<'a>) -> vk::DeviceCreateInfo<'a> {
                $(if let Some(feature) = &mut self.$field {
                    info = info.push_next(feature);
                })*
                info
            }

            /// The chain is for one call only.
            fn part(&mut self) {
                $(if let Some(feature) = &mut self.$field {
                    feature.p_next = std::ptr::null_mut();
                })*
            }
        }
    };
}

chained! {
    version, has;
    core_1_2: PhysicalDeviceVulkan12Features if version >= vk::API_VERSION_1_2,
    core_1_3: PhysicalDeviceVulkan13Features if version >= vk::API_VERSION_1_3,
    addresses: PhysicalDeviceBufferDeviceAddressFeaturesEXT if has(ext::buffer_device_address::NAME),
    condition: PhysicalDeviceConditionalRenderingFeaturesEXT if has(ext::conditional_rendering::NAME),
    descriptors: PhysicalDeviceDescriptorBufferFeaturesEXT if has(ext::descriptor_buffer::NAME),
    generated: PhysicalDeviceDeviceGeneratedCommandsFeaturesNV if has(nv::device_generated_commands::NAME),
    libraries: PhysicalDeviceGraphicsPipelineLibraryFeaturesEXT if has(ext::graphics_pipeline_library::NAME),
    feedback: PhysicalDeviceTransformFeedbackFeaturesEXT if has(ext::transform_feedback::NAME),
    maintenance5: PhysicalDeviceMaintenance5FeaturesKHR if has(khr::maintenance5::NAME),
    mesh: PhysicalDeviceMeshShaderFeaturesEXT if has(ext::mesh_shader::NAME),
    structures: PhysicalDeviceAccelerationStructureFeaturesKHR if has(khr::acceleration_structure::NAME),
    objects: PhysicalDeviceShaderObjectFeaturesEXT if has(ext::shader_object::NAME),
    robustness: PhysicalDeviceRobustness2FeaturesEXT if has(ext::robustness2::NAME),
    rays: PhysicalDeviceRayTracingPipelineFeaturesKHR if has(khr::ray_tracing_pipeline::NAME),
}

impl FeatureSet {
    /// No feature at all, in the form that a device of this version takes, with the extensions that it `has`.
    pub(crate) fn empty(api_version: u32, has: &dyn Fn(&CStr) -> bool) -> FeatureSet {
        FeatureSet { core: Default::default(), chained: Chained::new(api_version, has) }
    }

    pub(crate) fn supported(
        instance: &ash::Instance,
        device: vk::PhysicalDevice,
        api_version: u32,
        has: &dyn Fn(&CStr) -> bool,
    ) -> FeatureSet {
        let mut set = FeatureSet::empty(api_version, has);
        if api_version < vk::API_VERSION_1_1 {
            // SAFETY: the caller enumerated the device from this instance (lifetime).
            set.core = unsafe { instance.get_physical_device_features(device) };
            set.chained = Chained::new(api_version, &|_| false);
            return set;
        }
        let mut features = set.chained.ask(vk::PhysicalDeviceFeatures2::default());
        // SAFETY: the caller enumerated the device from this instance; each structure in the chain is of a version or
        // an extension that the device has, appears once, and lives in `set` until the call returns (lifetime).
        unsafe { instance.get_physical_device_features2(device, &mut features) };
        set.core = features.features;
        set.chained.part();
        set
    }

    pub(crate) fn supports(&mut self, feature: Feature) -> bool {
        self.feature_bit(feature).is_some_and(|it| *it == vk::TRUE)
    }

    pub(crate) fn enable(&mut self, feature: Feature) {
        if let Some(slot) = self.feature_bit(feature) {
            *slot = vk::TRUE;
        }
    }

    /// Chains the features to what a device is created from.
    pub(crate) fn chain<'a>(&'a mut self, info: vk::DeviceCreateInfo<'a>) -> vk::DeviceCreateInfo<'a> {
        self.chained.enable(info.enabled_features(&self.core))
    }

    fn feature_bit(&mut self, feature: Feature) -> Option<&mut vk::Bool32> {
        let (core, chained) = (&mut self.core, &mut self.chained);
        Some(match feature {
            Feature::AccelerationStructure => &mut chained.structures.as_mut()?.acceleration_structure,
            Feature::AccelerationStructureIndirectBuild => {
                &mut chained.structures.as_mut()?.acceleration_structure_indirect_build
            }
            Feature::BufferDeviceAddress => &mut chained.core_1_2.as_mut()?.buffer_device_address,
            Feature::BufferDeviceAddressOlder => &mut chained.addresses.as_mut()?.buffer_device_address,
            Feature::ConditionalRendering => &mut chained.condition.as_mut()?.conditional_rendering,
            Feature::DescriptorBindingPartiallyBound => {
                &mut chained.core_1_2.as_mut()?.descriptor_binding_partially_bound
            }
            Feature::DescriptorBindingStorageBufferUpdateAfterBind => {
                &mut chained.core_1_2.as_mut()?.descriptor_binding_storage_buffer_update_after_bind
            }
            Feature::DescriptorBuffer => &mut chained.descriptors.as_mut()?.descriptor_buffer,
            Feature::DeviceGeneratedCommands => &mut chained.generated.as_mut()?.device_generated_commands,
            Feature::DrawIndirectCount => &mut chained.core_1_2.as_mut()?.draw_indirect_count,
            Feature::DrawIndirectFirstInstance => &mut core.draw_indirect_first_instance,
            Feature::DynamicRendering => &mut chained.core_1_3.as_mut()?.dynamic_rendering,
            Feature::FragmentStoresAndAtomics => &mut core.fragment_stores_and_atomics,
            Feature::GeometryShader => &mut core.geometry_shader,
            Feature::GraphicsPipelineLibrary => &mut chained.libraries.as_mut()?.graphics_pipeline_library,
            Feature::InlineUniformBlock => &mut chained.core_1_3.as_mut()?.inline_uniform_block,
            Feature::Maintenance5 => &mut chained.maintenance5.as_mut()?.maintenance5,
            Feature::MeshShader => &mut chained.mesh.as_mut()?.mesh_shader,
            Feature::MultiDrawIndirect => &mut core.multi_draw_indirect,
            Feature::OcclusionQueryPrecise => &mut core.occlusion_query_precise,
            Feature::RayTracingPipeline => &mut chained.rays.as_mut()?.ray_tracing_pipeline,
            Feature::RobustBufferAccess => &mut core.robust_buffer_access,
            Feature::RobustBufferAccess2 => &mut chained.robustness.as_mut()?.robust_buffer_access2,
            Feature::RuntimeDescriptorArray => &mut chained.core_1_2.as_mut()?.runtime_descriptor_array,
            Feature::ShaderFloat64 => &mut core.shader_float64,
            Feature::ShaderImageGatherExtended => &mut core.shader_image_gather_extended,
            Feature::ShaderInt64 => &mut core.shader_int64,
            Feature::ShaderSampledImageArrayDynamicIndexing => &mut core.shader_sampled_image_array_dynamic_indexing,
            Feature::ShaderSampledImageArrayNonUniformIndexing => {
                &mut chained.core_1_2.as_mut()?.shader_sampled_image_array_non_uniform_indexing
            }
            Feature::ShaderStorageBufferArrayDynamicIndexing => &mut core.shader_storage_buffer_array_dynamic_indexing,
            Feature::ShaderObject => &mut chained.objects.as_mut()?.shader_object,
            Feature::SparseBinding => &mut core.sparse_binding,
            Feature::SparseResidencyAliased => &mut core.sparse_residency_aliased,
            Feature::Synchronization2 => &mut chained.core_1_3.as_mut()?.synchronization2,
            Feature::TaskShader => &mut chained.mesh.as_mut()?.task_shader,
            Feature::TessellationShader => &mut core.tessellation_shader,
            Feature::TimelineSemaphore => &mut chained.core_1_2.as_mut()?.timeline_semaphore,
            Feature::TransformFeedback => &mut chained.feedback.as_mut()?.transform_feedback,
        })
    }
}
