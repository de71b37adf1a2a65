//! The features that a device of a performance has. The profile of the null driver lists the same.

use lavascope_abi as vk;
use lavascope_abi::{Bool32, Ptr, Structure};

/// A structure of features: its name in the registry, and of each member the field and the name in the registry.
macro_rules! device_features {
    (
        core { $($core:ident: $core_name:literal,)* }
        $($field:ident: $ty:ident = $name:literal { $($member:ident: $member_name:literal,)* })*
    ) => {
        /// The names of all features: for each structure its members.
        pub(crate) const FEATURE_NAMES: &[(&str, &[&str])] = &[
            ("VkPhysicalDeviceFeatures", &[$($core_name,)*]),
            $(($name, &[$($member_name,)*]),)*
        ];

        /// What is chained to a `VkDeviceCreateInfo`.
        pub(crate) struct DeviceFeatures {
            first: vk::PhysicalDeviceFeatures2,
            $($field: vk::$ty,)*
        }

        impl DeviceFeatures {
            pub(crate) fn all() -> DeviceFeatures {
                let mut features =
                    DeviceFeatures { first: vk::PhysicalDeviceFeatures2::zeroed(), $($field: vk::$ty::zeroed(),)* };
                $(features.first.features.$core = Bool32::TRUE;)*
                $($(features.$field.$member = Bool32::TRUE;)*)*
                features
            }

            /// Links the structures to each other; valid as long as they stay where they are.
            pub(crate) fn chain(&mut self) -> Ptr<vk::PhysicalDeviceFeatures2> {
                let mut next = Ptr::NULL;
                $(
                    self.$field.p_next = next;
                    next = Ptr::to(&self.$field).cast();
                )*
                self.first.p_next = next;
                Ptr::to(&self.first)
            }
        }
    };
}

device_features! {
    core {
        independent_blend: "independentBlend",
        geometry_shader: "geometryShader",
        tessellation_shader: "tessellationShader",
        multi_draw_indirect: "multiDrawIndirect",
        vertex_pipeline_stores_and_atomics: "vertexPipelineStoresAndAtomics",
        fragment_stores_and_atomics: "fragmentStoresAndAtomics",
        shader_storage_image_extended_formats: "shaderStorageImageExtendedFormats",
        shader_storage_image_multisample: "shaderStorageImageMultisample",
        shader_storage_image_read_without_format: "shaderStorageImageReadWithoutFormat",
        shader_storage_image_write_without_format: "shaderStorageImageWriteWithoutFormat",
        sparse_binding: "sparseBinding",
        sparse_residency_buffer: "sparseResidencyBuffer",
        sparse_residency_image2_d: "sparseResidencyImage2D",
        sparse_residency_aliased: "sparseResidencyAliased",
    }
    vulkan_1_1: PhysicalDeviceVulkan11Features = "VkPhysicalDeviceVulkan11Features" {
        multiview: "multiview",
    }
    vulkan_1_2: PhysicalDeviceVulkan12Features = "VkPhysicalDeviceVulkan12Features" {
        draw_indirect_count: "drawIndirectCount",
        storage_buffer8_bit_access: "storageBuffer8BitAccess",
        uniform_and_storage_buffer8_bit_access: "uniformAndStorageBuffer8BitAccess",
        shader_int8: "shaderInt8",
        uniform_buffer_standard_layout: "uniformBufferStandardLayout",
        scalar_block_layout: "scalarBlockLayout",
        separate_depth_stencil_layouts: "separateDepthStencilLayouts",
        timeline_semaphore: "timelineSemaphore",
        buffer_device_address: "bufferDeviceAddress",
        shader_output_layer: "shaderOutputLayer",
        shader_output_viewport_index: "shaderOutputViewportIndex",
    }
    vulkan_1_3: PhysicalDeviceVulkan13Features = "VkPhysicalDeviceVulkan13Features" {
        synchronization2: "synchronization2",
        dynamic_rendering: "dynamicRendering",
        maintenance4: "maintenance4",
    }
    vulkan_1_4: PhysicalDeviceVulkan14Features = "VkPhysicalDeviceVulkan14Features" {
        index_type_uint8: "indexTypeUint8",
        maintenance5: "maintenance5",
    }
    maintenance_7: PhysicalDeviceMaintenance7FeaturesKHR = "VkPhysicalDeviceMaintenance7FeaturesKHR" {
        maintenance7: "maintenance7",
    }
    nested: PhysicalDeviceNestedCommandBufferFeaturesEXT = "VkPhysicalDeviceNestedCommandBufferFeaturesEXT" {
        nested_command_buffer: "nestedCommandBuffer",
        nested_command_buffer_rendering: "nestedCommandBufferRendering",
        nested_command_buffer_simultaneous_use: "nestedCommandBufferSimultaneousUse",
    }
    raster_order: PhysicalDeviceRasterizationOrderAttachmentAccessFeaturesEXT =
        "VkPhysicalDeviceRasterizationOrderAttachmentAccessFeaturesEXT" {
        rasterization_order_color_attachment_access: "rasterizationOrderColorAttachmentAccess",
        rasterization_order_depth_attachment_access: "rasterizationOrderDepthAttachmentAccess",
        rasterization_order_stencil_attachment_access: "rasterizationOrderStencilAttachmentAccess",
    }
}
