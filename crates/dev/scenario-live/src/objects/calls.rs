//! The functions of Vulkan that are called, and the one way to call them.

use std::cell::{Cell, RefCell};
use std::ffi::CStr;

use lavascope_abi as vk;

use crate::error::LiveError;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static CURRENT: Cell<&'static str> = const { Cell::new("") };
    static LABEL: RefCell<String> = const { RefCell::new(String::new()) };
}

/// How many calls this thread has made.
pub(crate) fn call_count() -> u64 {
    CALLS.get()
}

/// The last call of this thread, or the one that it is in.
pub(crate) fn current_call() -> &'static str {
    CURRENT.get()
}

/// The label of the command of the program that this thread is recording; empty outside of commands.
pub(crate) fn current_label() -> String {
    LABEL.with_borrow(String::clone)
}

pub(crate) fn set_current_label(label: String) {
    LABEL.set(label);
}

pub(crate) fn begin_call(name: &'static str) {
    CALLS.set(CALLS.get() + 1);
    CURRENT.set(name);
}

/// Calls a function of a table, and counts the call.
macro_rules! call {
    ($table:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        $crate::objects::calls::begin_call(stringify!($function));
        // SAFETY: the function has this type, since its table was filled by name; the handles are of objects that are
        // alive until the performance is over, and pointers lead to values of this stack frame.
        unsafe { ($table.$function)($($argument),*) }
    }};
}
pub(crate) use call;

/// A table of functions, found by their names.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($field:ident: $ty:ident = $name:literal;)* }) => {
        $(#[$doc])*
        pub(crate) struct $table { $(pub(crate) $field: vk::$ty,)* }

        impl $table {
            /// # Safety
            ///
            /// `find` must give the address of the function that it is asked for, or null.
            pub(crate) unsafe fn find(find: impl Fn(&CStr) -> vk::FnPtr) -> Result<$table, LiveError> {
                Ok($table {
                    $($field: {
                        let address = checked_function($name, find($name))?;
                        // SAFETY: by the contract `find` gives the function of the command that it is asked for, and the
                        // table pairs each name with the function type that `types` has for that command.
                        unsafe { std::mem::transmute::<*const (), vk::$ty>(address) }
                    },)*
                })
            }
        }
    };
}

fn checked_function(name: &CStr, function: vk::FnPtr) -> Result<*const (), LiveError> {
    match function.0 {
        0 => Err(LiveError::Missing(name.to_string_lossy().into_owned())),
        address => Ok(std::ptr::with_exposed_provenance(address as usize)),
    }
}

/// The result of a call that may fail.
pub(crate) fn check(call: &'static str, result: vk::Result) -> Result<(), LiveError> {
    if result.0 < 0 { Err(LiveError::Failed { call, result: result.0 }) } else { Ok(()) }
}

/// A pointer through which a function writes.
pub(crate) fn out<T>(target: &mut T) -> vk::Ptr<T> {
    vk::Ptr::new(std::ptr::from_mut(target).expose_provenance() as u64)
}

pub(crate) fn text_ptr(text: &CStr) -> vk::Ptr<u8> {
    vk::Ptr::new(text.as_ptr().expose_provenance() as u64)
}

functions! {
    /// Functions without an instance.
    GlobalCalls {
        create_instance: FnCreateInstance = c"vkCreateInstance";
    }
}

functions! {
    /// Functions of an instance.
    InstanceCalls {
        destroy_instance: FnDestroyInstance = c"vkDestroyInstance";
        enumerate_physical_devices: FnEnumeratePhysicalDevices = c"vkEnumeratePhysicalDevices";
        get_physical_device_queue_family_properties: FnGetPhysicalDeviceQueueFamilyProperties =
            c"vkGetPhysicalDeviceQueueFamilyProperties";
        get_physical_device_memory_properties: FnGetPhysicalDeviceMemoryProperties =
            c"vkGetPhysicalDeviceMemoryProperties";
        create_device: FnCreateDevice = c"vkCreateDevice";
        get_device_proc_addr: FnGetDeviceProcAddr = c"vkGetDeviceProcAddr";
        create_debug_utils_messenger: FnCreateDebugUtilsMessengerEXT = c"vkCreateDebugUtilsMessengerEXT";
        destroy_debug_utils_messenger: FnDestroyDebugUtilsMessengerEXT = c"vkDestroyDebugUtilsMessengerEXT";
        create_headless_surface: FnCreateHeadlessSurfaceEXT = c"vkCreateHeadlessSurfaceEXT";
        destroy_surface: FnDestroySurfaceKHR = c"vkDestroySurfaceKHR";
    }
}

functions! {
    /// Functions of a device.
    DeviceCalls {
        destroy_device: FnDestroyDevice = c"vkDestroyDevice";
        get_device_queue: FnGetDeviceQueue = c"vkGetDeviceQueue";
        device_wait_idle: FnDeviceWaitIdle = c"vkDeviceWaitIdle";
        set_debug_utils_object_name: FnSetDebugUtilsObjectNameEXT = c"vkSetDebugUtilsObjectNameEXT";
        allocate_memory: FnAllocateMemory = c"vkAllocateMemory";
        free_memory: FnFreeMemory = c"vkFreeMemory";
        map_memory: FnMapMemory = c"vkMapMemory";
        flush_mapped_memory_ranges: FnFlushMappedMemoryRanges = c"vkFlushMappedMemoryRanges";
        invalidate_mapped_memory_ranges: FnInvalidateMappedMemoryRanges = c"vkInvalidateMappedMemoryRanges";
        create_buffer: FnCreateBuffer = c"vkCreateBuffer";
        destroy_buffer: FnDestroyBuffer = c"vkDestroyBuffer";
        bind_buffer_memory: FnBindBufferMemory = c"vkBindBufferMemory";
        get_buffer_device_address: FnGetBufferDeviceAddress = c"vkGetBufferDeviceAddress";
        create_buffer_view: FnCreateBufferView = c"vkCreateBufferView";
        destroy_buffer_view: FnDestroyBufferView = c"vkDestroyBufferView";
        create_image: FnCreateImage = c"vkCreateImage";
        destroy_image: FnDestroyImage = c"vkDestroyImage";
        bind_image_memory: FnBindImageMemory = c"vkBindImageMemory";
        create_image_view: FnCreateImageView = c"vkCreateImageView";
        destroy_image_view: FnDestroyImageView = c"vkDestroyImageView";
        create_swapchain: FnCreateSwapchainKHR = c"vkCreateSwapchainKHR";
        destroy_swapchain: FnDestroySwapchainKHR = c"vkDestroySwapchainKHR";
        get_swapchain_images: FnGetSwapchainImagesKHR = c"vkGetSwapchainImagesKHR";
        acquire_next_image: FnAcquireNextImageKHR = c"vkAcquireNextImageKHR";
        queue_present: FnQueuePresentKHR = c"vkQueuePresentKHR";
        create_acceleration_structure: FnCreateAccelerationStructureKHR = c"vkCreateAccelerationStructureKHR";
        destroy_acceleration_structure: FnDestroyAccelerationStructureKHR = c"vkDestroyAccelerationStructureKHR";
        create_fence: FnCreateFence = c"vkCreateFence";
        destroy_fence: FnDestroyFence = c"vkDestroyFence";
        wait_for_fences: FnWaitForFences = c"vkWaitForFences";
        reset_fences: FnResetFences = c"vkResetFences";
        create_semaphore: FnCreateSemaphore = c"vkCreateSemaphore";
        destroy_semaphore: FnDestroySemaphore = c"vkDestroySemaphore";
        wait_semaphores: FnWaitSemaphores = c"vkWaitSemaphores";
        signal_semaphore: FnSignalSemaphore = c"vkSignalSemaphore";
        create_event: FnCreateEvent = c"vkCreateEvent";
        destroy_event: FnDestroyEvent = c"vkDestroyEvent";
        set_event: FnSetEvent = c"vkSetEvent";
        reset_event: FnResetEvent = c"vkResetEvent";
        create_render_pass2: FnCreateRenderPass2 = c"vkCreateRenderPass2";
        destroy_render_pass: FnDestroyRenderPass = c"vkDestroyRenderPass";
        create_framebuffer: FnCreateFramebuffer = c"vkCreateFramebuffer";
        destroy_framebuffer: FnDestroyFramebuffer = c"vkDestroyFramebuffer";
        create_shader_module: FnCreateShaderModule = c"vkCreateShaderModule";
        destroy_shader_module: FnDestroyShaderModule = c"vkDestroyShaderModule";
        create_descriptor_set_layout: FnCreateDescriptorSetLayout = c"vkCreateDescriptorSetLayout";
        destroy_descriptor_set_layout: FnDestroyDescriptorSetLayout = c"vkDestroyDescriptorSetLayout";
        create_descriptor_pool: FnCreateDescriptorPool = c"vkCreateDescriptorPool";
        destroy_descriptor_pool: FnDestroyDescriptorPool = c"vkDestroyDescriptorPool";
        allocate_descriptor_sets: FnAllocateDescriptorSets = c"vkAllocateDescriptorSets";
        update_descriptor_sets: FnUpdateDescriptorSets = c"vkUpdateDescriptorSets";
        create_pipeline_layout: FnCreatePipelineLayout = c"vkCreatePipelineLayout";
        destroy_pipeline_layout: FnDestroyPipelineLayout = c"vkDestroyPipelineLayout";
        create_graphics_pipelines: FnCreateGraphicsPipelines = c"vkCreateGraphicsPipelines";
        create_compute_pipelines: FnCreateComputePipelines = c"vkCreateComputePipelines";
        create_ray_tracing_pipelines: FnCreateRayTracingPipelinesKHR = c"vkCreateRayTracingPipelinesKHR";
        destroy_pipeline: FnDestroyPipeline = c"vkDestroyPipeline";
        create_command_pool: FnCreateCommandPool = c"vkCreateCommandPool";
        destroy_command_pool: FnDestroyCommandPool = c"vkDestroyCommandPool";
        allocate_command_buffers: FnAllocateCommandBuffers = c"vkAllocateCommandBuffers";
        begin_command_buffer: FnBeginCommandBuffer = c"vkBeginCommandBuffer";
        end_command_buffer: FnEndCommandBuffer = c"vkEndCommandBuffer";
        queue_submit: FnQueueSubmit = c"vkQueueSubmit";
        queue_submit2: FnQueueSubmit2 = c"vkQueueSubmit2";
        queue_bind_sparse: FnQueueBindSparse = c"vkQueueBindSparse";
        queue_wait_idle: FnQueueWaitIdle = c"vkQueueWaitIdle";
        cmd_begin_label: FnCmdBeginDebugUtilsLabelEXT = c"vkCmdBeginDebugUtilsLabelEXT";
        cmd_end_label: FnCmdEndDebugUtilsLabelEXT = c"vkCmdEndDebugUtilsLabelEXT";
        cmd_pipeline_barrier: FnCmdPipelineBarrier = c"vkCmdPipelineBarrier";
        cmd_pipeline_barrier2: FnCmdPipelineBarrier2 = c"vkCmdPipelineBarrier2";
        cmd_set_event: FnCmdSetEvent = c"vkCmdSetEvent";
        cmd_set_event2: FnCmdSetEvent2 = c"vkCmdSetEvent2";
        cmd_reset_event2: FnCmdResetEvent2 = c"vkCmdResetEvent2";
        cmd_wait_events: FnCmdWaitEvents = c"vkCmdWaitEvents";
        cmd_wait_events2: FnCmdWaitEvents2 = c"vkCmdWaitEvents2";
        cmd_begin_render_pass2: FnCmdBeginRenderPass2 = c"vkCmdBeginRenderPass2";
        cmd_next_subpass2: FnCmdNextSubpass2 = c"vkCmdNextSubpass2";
        cmd_end_render_pass2: FnCmdEndRenderPass2 = c"vkCmdEndRenderPass2";
        cmd_begin_rendering: FnCmdBeginRendering = c"vkCmdBeginRendering";
        cmd_end_rendering: FnCmdEndRendering = c"vkCmdEndRendering";
        cmd_execute_commands: FnCmdExecuteCommands = c"vkCmdExecuteCommands";
        cmd_copy_buffer: FnCmdCopyBuffer = c"vkCmdCopyBuffer";
        cmd_copy_buffer_to_image: FnCmdCopyBufferToImage = c"vkCmdCopyBufferToImage";
        cmd_copy_image_to_buffer: FnCmdCopyImageToBuffer = c"vkCmdCopyImageToBuffer";
        cmd_copy_image: FnCmdCopyImage = c"vkCmdCopyImage";
        cmd_blit_image: FnCmdBlitImage = c"vkCmdBlitImage";
        cmd_resolve_image: FnCmdResolveImage = c"vkCmdResolveImage";
        cmd_fill_buffer: FnCmdFillBuffer = c"vkCmdFillBuffer";
        cmd_clear_color_image: FnCmdClearColorImage = c"vkCmdClearColorImage";
        cmd_clear_depth_stencil_image: FnCmdClearDepthStencilImage = c"vkCmdClearDepthStencilImage";
        cmd_clear_attachments: FnCmdClearAttachments = c"vkCmdClearAttachments";
        cmd_bind_pipeline: FnCmdBindPipeline = c"vkCmdBindPipeline";
        cmd_bind_descriptor_sets: FnCmdBindDescriptorSets = c"vkCmdBindDescriptorSets";
        cmd_bind_vertex_buffers2: FnCmdBindVertexBuffers2 = c"vkCmdBindVertexBuffers2";
        cmd_bind_index_buffer2: FnCmdBindIndexBuffer2 = c"vkCmdBindIndexBuffer2";
        cmd_bind_feedback_buffers: FnCmdBindTransformFeedbackBuffersEXT = c"vkCmdBindTransformFeedbackBuffersEXT";
        cmd_begin_feedback: FnCmdBeginTransformFeedbackEXT = c"vkCmdBeginTransformFeedbackEXT";
        cmd_end_feedback: FnCmdEndTransformFeedbackEXT = c"vkCmdEndTransformFeedbackEXT";
        cmd_begin_conditional: FnCmdBeginConditionalRenderingEXT = c"vkCmdBeginConditionalRenderingEXT";
        cmd_end_conditional: FnCmdEndConditionalRenderingEXT = c"vkCmdEndConditionalRenderingEXT";
        cmd_draw: FnCmdDraw = c"vkCmdDraw";
        cmd_draw_indexed: FnCmdDrawIndexed = c"vkCmdDrawIndexed";
        cmd_draw_indirect: FnCmdDrawIndirect = c"vkCmdDrawIndirect";
        cmd_draw_indexed_indirect: FnCmdDrawIndexedIndirect = c"vkCmdDrawIndexedIndirect";
        cmd_draw_indirect_count: FnCmdDrawIndirectCount = c"vkCmdDrawIndirectCount";
        cmd_draw_indirect_byte_count: FnCmdDrawIndirectByteCountEXT = c"vkCmdDrawIndirectByteCountEXT";
        cmd_draw_mesh_tasks: FnCmdDrawMeshTasksEXT = c"vkCmdDrawMeshTasksEXT";
        cmd_dispatch: FnCmdDispatch = c"vkCmdDispatch";
        cmd_dispatch_indirect: FnCmdDispatchIndirect = c"vkCmdDispatchIndirect";
        cmd_trace_rays: FnCmdTraceRaysKHR = c"vkCmdTraceRaysKHR";
        cmd_build_acceleration_structures: FnCmdBuildAccelerationStructuresKHR =
            c"vkCmdBuildAccelerationStructuresKHR";
        cmd_copy_acceleration_structure: FnCmdCopyAccelerationStructureKHR = c"vkCmdCopyAccelerationStructureKHR";
        create_indirect_commands_layout: FnCreateIndirectCommandsLayoutEXT = c"vkCreateIndirectCommandsLayoutEXT";
        destroy_indirect_commands_layout: FnDestroyIndirectCommandsLayoutEXT = c"vkDestroyIndirectCommandsLayoutEXT";
        cmd_preprocess_generated_commands: FnCmdPreprocessGeneratedCommandsEXT =
            c"vkCmdPreprocessGeneratedCommandsEXT";
        cmd_bind_descriptor_buffers: FnCmdBindDescriptorBuffersEXT = c"vkCmdBindDescriptorBuffersEXT";
        cmd_set_descriptor_buffer_offsets: FnCmdSetDescriptorBufferOffsetsEXT =
            c"vkCmdSetDescriptorBufferOffsetsEXT";
        cmd_write_buffer_marker: FnCmdWriteBufferMarker2AMD = c"vkCmdWriteBufferMarker2AMD";
        cmd_encode_video: FnCmdEncodeVideoKHR = c"vkCmdEncodeVideoKHR";
    }
}
