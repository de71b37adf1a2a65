//! Commands that the tracker follows, by who takes them and when.

use super::{Family, Takers, When, commands};

pub(super) static UNDERSTOOD: Takers = &[
    (
        Family::Device,
        When::Leave,
        commands! {
            GetPhysicalDeviceQueueFamilyProperties GetPhysicalDeviceQueueFamilyProperties2 CreateDevice GetDeviceQueue
            GetDeviceQueue2
        },
    ),
    (
        Family::Device,
        When::Enter,
        commands! {
            DestroyDevice
        },
    ),
    (
        Family::Memory,
        When::Leave,
        commands! {
            AllocateMemory BindBufferMemory BindBufferMemory2 BindImageMemory BindImageMemory2 GetImageMemoryRequirements
            GetImageMemoryRequirements2 MapMemory MapMemory2
        },
    ),
    (
        Family::Memory,
        When::Enter,
        commands! {
            FreeMemory UnmapMemory UnmapMemory2 FlushMappedMemoryRanges InvalidateMappedMemoryRanges
        },
    ),
    (
        Family::Image,
        When::Leave,
        commands! {
            CreateBuffer CreateImage CreateImageView CreateBufferView
        },
    ),
    (
        Family::Image,
        When::Enter,
        commands! {
            DestroyBuffer DestroyImage DestroyImageView DestroyBufferView
        },
    ),
    (
        Family::CommandBuffer,
        When::Leave,
        commands! {
            CreateCommandPool AllocateCommandBuffers
        },
    ),
    (
        Family::CommandBuffer,
        When::Enter,
        commands! {
            DestroyCommandPool ResetCommandPool FreeCommandBuffers BeginCommandBuffer EndCommandBuffer ResetCommandBuffer
            CmdExecuteCommands
        },
    ),
    (
        Family::Copy,
        When::Enter,
        commands! {
            CmdCopyBuffer CmdCopyBuffer2 CmdCopyImage CmdCopyImage2 CmdBlitImage CmdBlitImage2 CmdResolveImage
            CmdResolveImage2 CmdCopyBufferToImage CmdCopyBufferToImage2 CmdCopyImageToBuffer CmdCopyImageToBuffer2
            CmdFillBuffer CmdUpdateBuffer CmdClearColorImage CmdClearDepthStencilImage CmdWriteBufferMarkerAMD
            CmdWriteBufferMarker2AMD
        },
    ),
    (
        Family::Barrier,
        When::Enter,
        commands! {
            CmdPipelineBarrier CmdPipelineBarrier2 CmdSetEvent CmdSetEvent2 CmdResetEvent CmdResetEvent2 CmdWaitEvents
            CmdWaitEvents2
        },
    ),
    (
        Family::Sync,
        When::Leave,
        commands! {
            CreateFence CreateSemaphore CreateEvent RegisterDeviceEventEXT RegisterDisplayEventEXT WaitForFences
            GetFenceStatus WaitSemaphores GetSemaphoreCounterValue DeviceWaitIdle
        },
    ),
    (
        Family::Sync,
        When::Enter,
        commands! {
            DestroyFence DestroySemaphore DestroyEvent ResetFences SignalSemaphore SetEvent ResetEvent
        },
    ),
    (
        Family::Queue,
        When::Enter,
        commands! {
            QueueSubmit QueueSubmit2 QueueBindSparse QueuePresentKHR
        },
    ),
    (
        Family::Queue,
        When::Leave,
        commands! {
            QueueWaitIdle
        },
    ),
    (
        Family::Swapchain,
        When::Leave,
        commands! {
            CreateSwapchainKHR CreateSharedSwapchainsKHR GetSwapchainImagesKHR AcquireNextImageKHR AcquireNextImage2KHR
        },
    ),
    (
        Family::Swapchain,
        When::Enter,
        commands! {
            DestroySwapchainKHR
        },
    ),
    (
        Family::RenderPass,
        When::Leave,
        commands! {
            CreateRenderPass CreateRenderPass2 CreateFramebuffer
        },
    ),
    (
        Family::RenderPass,
        When::Enter,
        commands! {
            DestroyRenderPass DestroyFramebuffer
        },
    ),
    (
        Family::Rendering,
        When::Enter,
        commands! {
            CmdBeginRenderPass CmdBeginRenderPass2 CmdNextSubpass CmdNextSubpass2 CmdEndRenderPass CmdEndRenderPass2
            CmdBeginRendering CmdEndRendering CmdEndRendering2KHR CmdClearAttachments CmdSetRenderingAttachmentLocations
        },
    ),
    (
        Family::Pipeline,
        When::Leave,
        commands! {
            CreateShaderModule CreateGraphicsPipelines CreateComputePipelines CreateRayTracingPipelinesKHR
            CreateShadersEXT
        },
    ),
    (
        Family::Pipeline,
        When::Enter,
        commands! {
            DestroyShaderModule DestroyPipeline DestroyShaderEXT
        },
    ),
    (
        Family::Descriptor,
        When::Leave,
        commands! {
            CreateDescriptorSetLayout CreatePipelineLayout CreateDescriptorPool CreateDescriptorUpdateTemplate
            AllocateDescriptorSets
        },
    ),
    (
        Family::Descriptor,
        When::Enter,
        commands! {
            DestroyDescriptorSetLayout DestroyPipelineLayout DestroyDescriptorUpdateTemplate DestroyDescriptorPool
            ResetDescriptorPool FreeDescriptorSets UpdateDescriptorSets UpdateDescriptorSetWithTemplate
        },
    ),
    (
        Family::Bind,
        When::Enter,
        commands! {
            CmdBindPipeline CmdBindShadersEXT CmdBindDescriptorSets CmdBindDescriptorSets2 CmdPushDescriptorSet
            CmdPushDescriptorSet2 CmdPushDescriptorSetWithTemplate CmdPushDescriptorSetWithTemplate2 CmdBindVertexBuffers
            CmdBindVertexBuffers2 CmdBindIndexBuffer CmdBindIndexBuffer2 CmdSetVertexInputEXT
            CmdSetRasterizerDiscardEnable CmdSetCullMode CmdSetDepthTestEnable CmdSetDepthWriteEnable
            CmdSetDepthBoundsTestEnable CmdSetStencilTestEnable CmdSetStencilOp CmdSetStencilWriteMask
            CmdSetLogicOpEnableEXT CmdSetLogicOpEXT CmdSetColorBlendEnableEXT CmdSetColorWriteMaskEXT
            CmdSetColorWriteEnableEXT
        },
    ),
    (
        Family::Draw,
        When::Enter,
        commands! {
            CmdDraw CmdDrawIndexed CmdDrawMultiEXT CmdDrawMultiIndexedEXT CmdDrawIndirect CmdDrawIndexedIndirect
            CmdDrawIndirectCount CmdDrawIndexedIndirectCount CmdDrawIndirectByteCountEXT CmdDrawMeshTasksEXT
            CmdDrawMeshTasksNV CmdDrawMeshTasksIndirectEXT CmdDrawMeshTasksIndirectNV CmdDrawMeshTasksIndirectCountEXT
            CmdDrawMeshTasksIndirectCountNV CmdDispatch CmdDispatchBase CmdDispatchIndirect
        },
    ),
    (
        Family::Query,
        When::Leave,
        commands! {
            CreateQueryPool
        },
    ),
    (
        Family::Query,
        When::Enter,
        commands! {
            DestroyQueryPool CmdCopyQueryPoolResults CmdBeginConditionalRenderingEXT CmdBindTransformFeedbackBuffersEXT
            CmdBeginTransformFeedbackEXT CmdEndTransformFeedbackEXT
        },
    ),
    (
        Family::Ray,
        When::Leave,
        commands! {
            CreateAccelerationStructureKHR CreateAccelerationStructure2KHR
        },
    ),
    (
        Family::Ray,
        When::Enter,
        commands! {
            DestroyAccelerationStructureKHR CmdBuildAccelerationStructuresKHR CmdBuildAccelerationStructuresIndirectKHR
            CmdCopyAccelerationStructureKHR CmdTraceRaysKHR CmdTraceRaysIndirectKHR CmdTraceRaysIndirect2KHR
        },
    ),
    (
        Family::Address,
        When::Leave,
        commands! {
            GetBufferDeviceAddress
        },
    ),
    (
        Family::Address,
        When::Enter,
        commands! {
            CmdBindIndexBuffer3KHR CmdBindVertexBuffers3KHR CmdBindTransformFeedbackBuffers2EXT
            CmdBeginTransformFeedback2EXT CmdEndTransformFeedback2EXT CmdBeginConditionalRendering2EXT CmdCopyMemoryKHR
            CmdCopyMemoryToImageKHR CmdCopyImageToMemoryKHR CmdFillMemoryKHR CmdUpdateMemoryKHR CmdWriteMarkerToMemoryAMD
            CmdCopyQueryPoolResultsToMemoryKHR CmdDrawIndirect2KHR CmdDrawIndexedIndirect2KHR CmdDrawMeshTasksIndirect2EXT
            CmdDrawIndirectCount2KHR CmdDrawIndexedIndirectCount2KHR CmdDrawMeshTasksIndirectCount2EXT
            CmdDrawIndirectByteCount2EXT CmdDispatchIndirect2KHR
        },
    ),
    (
        Family::HostCopy,
        When::Enter,
        commands! {
            CopyMemoryToImage CopyImageToMemory CopyImageToImage TransitionImageLayout
        },
    ),
    (
        Family::Video,
        When::Enter,
        commands! {
            CmdDecodeVideoKHR CmdEncodeVideoKHR
        },
    ),
];
