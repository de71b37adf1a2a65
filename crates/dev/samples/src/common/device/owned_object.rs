//! Any Vulkan object that a device owns, and how it ends.

use ash::vk;

macro_rules! objects {
    ($($kind:ident: $destroy:ident,)*) => {
        #[derive(Clone, Copy)]
        pub(crate) enum Object {
            $($kind(vk::$kind),)*
        }

        $(impl From<vk::$kind> for Object {
            fn from(handle: vk::$kind) -> Object {
                Object::$kind(handle)
            }
        })*

        impl Object {
            /// # Safety
            ///
            /// The object is a child of `device`, no submitted command refers to the handle any more, and this call is
            /// the only one that destroys the handle and the last one that uses it.
            pub(crate) unsafe fn destroy(self, device: &ash::Device) {
                match self {
                    $(Object::$kind(handle) => {
                        // SAFETY: a live child of the device that nothing uses, by the contract of this function (for
                        // example VUID-vkDestroyBuffer-buffer-00922).
                        unsafe { device.$destroy(handle, None) }
                    })*
                }
            }
        }
    };
}

objects! {
    Buffer: destroy_buffer,
    BufferView: destroy_buffer_view,
    CommandPool: destroy_command_pool,
    DescriptorPool: destroy_descriptor_pool,
    DescriptorSetLayout: destroy_descriptor_set_layout,
    DescriptorUpdateTemplate: destroy_descriptor_update_template,
    DeviceMemory: free_memory,
    Event: destroy_event,
    Fence: destroy_fence,
    Framebuffer: destroy_framebuffer,
    Image: destroy_image,
    ImageView: destroy_image_view,
    Pipeline: destroy_pipeline,
    PipelineLayout: destroy_pipeline_layout,
    QueryPool: destroy_query_pool,
    RenderPass: destroy_render_pass,
    Sampler: destroy_sampler,
    Semaphore: destroy_semaphore,
}
