//! Commands that `state` follows, by family and phase.

use super::{HandledCommands, commands};

pub(super) static UNDERSTOOD: HandledCommands = &[
    (
        "Device",
        "Leave",
        commands! {
            GetPhysicalDeviceQueueFamilyProperties GetPhysicalDeviceQueueFamilyProperties2 CreateDevice GetDeviceQueue
            GetDeviceQueue2
        },
    ),
    (
        "Device",
        "Enter",
        commands! {
            DestroyDevice
        },
    ),
    (
        "Memory",
        "Leave",
        commands! {
            AllocateMemory BindBufferMemory BindBufferMemory2 BindImageMemory BindImageMemory2
            GetImageMemoryRequirements GetImageMemoryRequirements2 MapMemory MapMemory2 GetImageSparseMemoryRequirements
            GetImageSparseMemoryRequirements2 GetImageSubresourceLayout GetImageSubresourceLayout2
        },
    ),
    (
        "Memory",
        "Enter",
        commands! {
            FreeMemory UnmapMemory UnmapMemory2 FlushMappedMemoryRanges InvalidateMappedMemoryRanges
        },
    ),
    (
        "Image",
        "Leave",
        commands! {
            CreateBuffer CreateImage CreateImageView CreateBufferView
        },
    ),
    (
        "Image",
        "Enter",
        commands! {
            DestroyBuffer DestroyImage DestroyImageView DestroyBufferView
        },
    ),
    (
        "CommandBuffer",
        "Leave",
        commands! {
            CreateCommandPool AllocateCommandBuffers
        },
    ),
    (
        "CommandBuffer",
        "Enter",
        commands! {
            DestroyCommandPool ResetCommandPool FreeCommandBuffers BeginCommandBuffer EndCommandBuffer ResetCommandBuffer
            CmdExecuteCommands
        },
    ),
    (
        "Copy",
        "Enter",
        commands! {
            CmdCopyBuffer CmdCopyBuffer2 CmdCopyImage CmdCopyImage2 CmdBlitImage CmdBlitImage2 CmdResolveImage
            CmdResolveImage2 CmdCopyBufferToImage CmdCopyBufferToImage2 CmdCopyImageToBuffer CmdCopyImageToBuffer2
            CmdFillBuffer CmdUpdateBuffer CmdClearColorImage CmdClearDepthStencilImage CmdWriteBufferMarkerAMD
            CmdWriteBufferMarker2AMD
        },
    ),
    (
        "Barrier",
        "Enter",
        commands! {
            CmdPipelineBarrier CmdPipelineBarrier2 CmdSetEvent CmdSetEvent2 CmdResetEvent CmdResetEvent2 CmdWaitEvents
            CmdWaitEvents2
        },
    ),
    (
        "Sync",
        "Leave",
        commands! {
            CreateFence CreateSemaphore CreateEvent RegisterDeviceEventEXT RegisterDisplayEventEXT WaitForFences
            GetFenceStatus WaitSemaphores GetSemaphoreCounterValue DeviceWaitIdle
        },
    ),
    (
        "Sync",
        "Enter",
        commands! {
            DestroyFence DestroySemaphore DestroyEvent ResetFences SignalSemaphore SetEvent ResetEvent
        },
    ),
    (
        "Queue",
        "Enter",
        commands! {
            QueueSubmit QueueSubmit2 QueueBindSparse QueuePresentKHR
        },
    ),
    (
        "Queue",
        "Leave",
        commands! {
            QueueWaitIdle
        },
    ),
    (
        "Swapchain",
        "Leave",
        commands! {
            CreateSwapchainKHR CreateSharedSwapchainsKHR GetSwapchainImagesKHR AcquireNextImageKHR AcquireNextImage2KHR
            WaitForPresentKHR WaitForPresent2KHR
        },
    ),
    (
        "Swapchain",
        "Enter",
        commands! {
            DestroySwapchainKHR ReleaseSwapchainImagesKHR
        },
    ),
    (
        "RenderPass",
        "Leave",
        commands! {
            CreateRenderPass CreateRenderPass2 CreateFramebuffer
        },
    ),
    (
        "RenderPass",
        "Enter",
        commands! {
            DestroyRenderPass DestroyFramebuffer
        },
    ),
    (
        "Rendering",
        "Enter",
        commands! {
            CmdBeginRenderPass CmdBeginRenderPass2 CmdNextSubpass CmdNextSubpass2 CmdEndRenderPass CmdEndRenderPass2
            CmdBeginRendering CmdEndRendering CmdEndRendering2KHR CmdClearAttachments CmdSetRenderingAttachmentLocations
            CmdBeginCustomResolveEXT
        },
    ),
    (
        "Pipeline",
        "Leave",
        commands! {
            CreateShaderModule CreateGraphicsPipelines CreateComputePipelines CreateRayTracingPipelinesKHR
            CreateShadersEXT CreateRayTracingPipelinesNV CreateExecutionGraphPipelinesAMDX
        },
    ),
    (
        "Pipeline",
        "Enter",
        commands! {
            DestroyShaderModule DestroyPipeline DestroyShaderEXT
        },
    ),
    (
        "Descriptor",
        "Leave",
        commands! {
            CreateDescriptorSetLayout CreatePipelineLayout CreateDescriptorPool CreateDescriptorUpdateTemplate
            AllocateDescriptorSets
        },
    ),
    (
        "Descriptor",
        "Enter",
        commands! {
            DestroyDescriptorSetLayout DestroyPipelineLayout DestroyDescriptorUpdateTemplate DestroyDescriptorPool
            ResetDescriptorPool FreeDescriptorSets UpdateDescriptorSets UpdateDescriptorSetWithTemplate
        },
    ),
    (
        "Bind",
        "Enter",
        commands! {
            CmdBindPipeline CmdBindShadersEXT CmdBindDescriptorSets CmdBindDescriptorSets2 CmdPushDescriptorSet
            CmdPushDescriptorSet2 CmdPushDescriptorSetWithTemplate CmdPushDescriptorSetWithTemplate2
            CmdBindVertexBuffers CmdBindVertexBuffers2 CmdBindIndexBuffer CmdBindIndexBuffer2 CmdSetVertexInputEXT
            CmdSetRasterizerDiscardEnable CmdSetCullMode CmdSetPrimitiveTopology CmdSetDepthTestEnable
            CmdSetDepthWriteEnable CmdSetDepthBoundsTestEnable CmdSetStencilTestEnable CmdSetStencilOp
            CmdSetStencilWriteMask CmdSetLogicOpEnableEXT CmdSetLogicOpEXT CmdSetColorBlendEnableEXT
            CmdSetColorWriteMaskEXT CmdSetColorWriteEnableEXT CmdPushConstants CmdPushConstants2
            CmdBindPipelineShaderGroupNV CmdBindShadingRateImageNV CmdBindInvocationMaskHUAWEI
            CmdSetShadingRateImageEnableNV
        },
    ),
    (
        "Draw",
        "Enter",
        commands! {
            CmdDraw CmdDrawIndexed CmdDrawMultiEXT CmdDrawMultiIndexedEXT CmdDrawIndirect CmdDrawIndexedIndirect
            CmdDrawIndirectCount CmdDrawIndexedIndirectCount CmdDrawIndirectByteCountEXT CmdDrawMeshTasksEXT
            CmdDrawMeshTasksNV CmdDrawMeshTasksIndirectEXT CmdDrawMeshTasksIndirectNV CmdDrawMeshTasksIndirectCountEXT
            CmdDrawMeshTasksIndirectCountNV CmdDispatch CmdDispatchBase CmdDispatchIndirect CmdDrawClusterHUAWEI
            CmdDrawClusterIndirectHUAWEI CmdSubpassShadingHUAWEI CmdDispatchTileQCOM
        },
    ),
    (
        "Query",
        "Leave",
        commands! {
            CreateQueryPool
        },
    ),
    (
        "Query",
        "Enter",
        commands! {
            DestroyQueryPool CmdCopyQueryPoolResults CmdBeginConditionalRenderingEXT CmdBindTransformFeedbackBuffersEXT
            CmdBeginTransformFeedbackEXT CmdEndTransformFeedbackEXT CmdEndConditionalRenderingEXT
        },
    ),
    (
        "Ray",
        "Leave",
        commands! {
            CreateAccelerationStructureKHR CreateAccelerationStructure2KHR GetAccelerationStructureDeviceAddressKHR
        },
    ),
    (
        "Ray",
        "Enter",
        commands! {
            DestroyAccelerationStructureKHR CmdBuildAccelerationStructuresKHR CmdBuildAccelerationStructuresIndirectKHR
            CmdCopyAccelerationStructureKHR CmdTraceRaysKHR CmdTraceRaysIndirectKHR CmdTraceRaysIndirect2KHR
            CmdCopyAccelerationStructureToMemoryKHR CmdCopyMemoryToAccelerationStructureKHR
            CmdWriteAccelerationStructuresPropertiesKHR CmdBuildPartitionedAccelerationStructuresNV
            CmdBuildClusterAccelerationStructureIndirectNV
        },
    ),
    (
        "Address",
        "Leave",
        commands! {
            GetBufferDeviceAddress
        },
    ),
    (
        "Address",
        "Enter",
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
        "HostCopy",
        "Enter",
        commands! {
            CopyMemoryToImage CopyImageToMemory CopyImageToImage TransitionImageLayout
        },
    ),
    (
        "Video",
        "Enter",
        commands! {
            CmdDecodeVideoKHR CmdEncodeVideoKHR
        },
    ),
    (
        "External",
        "Leave",
        commands! {
            GetSemaphoreFdKHR GetSemaphoreWin32HandleKHR GetSemaphoreZirconHandleFUCHSIA ImportSemaphoreFdKHR
            ImportSemaphoreWin32HandleKHR ImportSemaphoreZirconHandleFUCHSIA GetFenceFdKHR GetFenceWin32HandleKHR
            ImportFenceFdKHR ImportFenceWin32HandleKHR
        },
    ),
    (
        "RayNv",
        "Leave",
        commands! {
            CreateAccelerationStructureNV GetAccelerationStructureMemoryRequirementsNV BindAccelerationStructureMemoryNV
        },
    ),
    (
        "RayNv",
        "Enter",
        commands! {
            DestroyAccelerationStructureNV CmdBuildAccelerationStructureNV CmdCopyAccelerationStructureNV
            CmdWriteAccelerationStructuresPropertiesNV CmdTraceRaysNV
        },
    ),
    (
        "Micromap",
        "Leave",
        commands! {
            CreateMicromapEXT
        },
    ),
    (
        "Micromap",
        "Enter",
        commands! {
            DestroyMicromapEXT CmdBuildMicromapsEXT CmdCopyMicromapEXT CmdCopyMicromapToMemoryEXT
            CmdCopyMemoryToMicromapEXT CmdWriteMicromapsPropertiesEXT
        },
    ),
    (
        "HostBuild",
        "Enter",
        commands! {
            BuildAccelerationStructuresKHR CopyAccelerationStructureKHR CopyAccelerationStructureToMemoryKHR
            CopyMemoryToAccelerationStructureKHR WriteAccelerationStructuresPropertiesKHR BuildMicromapsEXT
            CopyMicromapEXT CopyMicromapToMemoryEXT CopyMemoryToMicromapEXT WriteMicromapsPropertiesEXT
        },
    ),
    (
        "Tensor",
        "Leave",
        commands! {
            CreateTensorARM GetTensorMemoryRequirementsARM BindTensorMemoryARM CreateTensorViewARM
        },
    ),
    (
        "Tensor",
        "Enter",
        commands! {
            DestroyTensorARM DestroyTensorViewARM CmdCopyTensorARM
        },
    ),
    (
        "OpticalFlow",
        "Leave",
        commands! {
            CreateOpticalFlowSessionNV BindOpticalFlowSessionImageNV
        },
    ),
    (
        "OpticalFlow",
        "Enter",
        commands! {
            DestroyOpticalFlowSessionNV CmdOpticalFlowExecuteNV
        },
    ),
    (
        "Generated",
        "Leave",
        commands! {
            CreateIndirectCommandsLayoutEXT CreateIndirectCommandsLayoutNV CreateIndirectExecutionSetEXT
        },
    ),
    (
        "Generated",
        "Enter",
        commands! {
            DestroyIndirectCommandsLayoutEXT DestroyIndirectCommandsLayoutNV DestroyIndirectExecutionSetEXT
            UpdateIndirectExecutionSetPipelineEXT UpdateIndirectExecutionSetShaderEXT CmdPreprocessGeneratedCommandsEXT
            CmdPreprocessGeneratedCommandsNV CmdExecuteGeneratedCommandsEXT CmdExecuteGeneratedCommandsNV
            CmdUpdatePipelineIndirectBufferNV
        },
    ),
    (
        "Indirect",
        "Enter",
        commands! {
            CmdCopyMemoryIndirectKHR CmdCopyMemoryIndirectNV CmdCopyMemoryToImageIndirectKHR
            CmdCopyMemoryToImageIndirectNV CmdConvertCooperativeVectorMatrixNV CmdDecompressMemoryEXT
            CmdDecompressMemoryNV CmdDecompressMemoryIndirectCountEXT CmdDecompressMemoryIndirectCountNV
            CmdDispatchGraphAMDX CmdDispatchGraphIndirectAMDX CmdDispatchGraphIndirectCountAMDX
            CmdInitializeGraphScratchMemoryAMDX
        },
    ),
    (
        "DescriptorMemory",
        "Leave",
        commands! {
            GetDescriptorSetLayoutSizeEXT
        },
    ),
    (
        "DescriptorMemory",
        "Enter",
        commands! {
            CmdBindDescriptorBuffersEXT CmdSetDescriptorBufferOffsetsEXT CmdSetDescriptorBufferOffsets2EXT
            CmdBindResourceHeapEXT CmdBindSamplerHeapEXT CmdPushDataEXT
        },
    ),
];
