//! What the caches of `state` and `validate` may assume of each command. A command that is not listed is never cached.
//!
//! Each effect becomes one list in `state`. An entry that is wrong makes a cache return stale results, so a row states
//! why its commands have the effect. `docs/caches.md` describes the caches.

use super::{CommandsByReason, commands};

/// The effects, each with the commands that have it. An effect may have several rows.
pub(super) static CACHED: CommandsByReason = &[
    (
        "REPEATABLE",
        // Their accesses follow from their parameters, from the commands recorded before them, and from objects that only
        // calls outside `KEEPS_RECORDINGS` change.
        commands! {
            CmdBeginDebugUtilsLabelEXT CmdBeginQuery CmdBeginRenderPass CmdBeginRenderPass2 CmdBeginRendering
            CmdBindDescriptorSets CmdBindDescriptorSets2 CmdBindIndexBuffer CmdBindIndexBuffer2 CmdBindPipeline
            CmdBindVertexBuffers CmdBindVertexBuffers2 CmdBlitImage CmdBlitImage2 CmdClearAttachments CmdClearColorImage
            CmdClearDepthStencilImage CmdCopyBuffer CmdCopyBuffer2 CmdCopyBufferToImage CmdCopyBufferToImage2
            CmdCopyImage CmdCopyImage2 CmdCopyImageToBuffer CmdCopyImageToBuffer2 CmdCopyQueryPoolResults CmdDispatch
            CmdDispatchBase CmdDispatchIndirect CmdDraw CmdDrawIndexed CmdDrawIndexedIndirect
            CmdDrawIndexedIndirectCount CmdDrawIndirect CmdDrawIndirectCount CmdEndDebugUtilsLabelEXT CmdEndQuery
            CmdEndRenderPass CmdEndRenderPass2 CmdEndRendering CmdFillBuffer CmdInsertDebugUtilsLabelEXT CmdNextSubpass
            CmdNextSubpass2 CmdPipelineBarrier CmdPipelineBarrier2 CmdPushConstants CmdPushConstants2
            CmdPushDescriptorSet CmdPushDescriptorSet2 CmdResetEvent CmdResetEvent2 CmdResetQueryPool CmdResolveImage
            CmdResolveImage2 CmdSetBlendConstants CmdSetCullMode CmdSetDepthBias CmdSetDepthBiasEnable CmdSetDepthBounds
            CmdSetDepthBoundsTestEnable CmdSetDepthCompareOp CmdSetDepthTestEnable CmdSetDepthWriteEnable CmdSetEvent
            CmdSetEvent2 CmdSetFrontFace CmdSetLineWidth CmdSetPrimitiveRestartEnable CmdSetPrimitiveTopology
            CmdSetRasterizerDiscardEnable CmdSetScissor CmdSetScissorWithCount CmdSetStencilCompareMask CmdSetStencilOp
            CmdSetStencilReference CmdSetStencilTestEnable CmdSetStencilWriteMask CmdSetViewport CmdSetViewportWithCount
            CmdUpdateBuffer CmdWaitEvents CmdWaitEvents2 CmdWriteTimestamp CmdWriteTimestamp2
        },
    ),
    (
        "KEEPS_ATTACHMENTS",
        // These commands do not change the pipeline, dynamic state or attachments of later draws.
        commands! {
            CmdBindDescriptorSets CmdBindDescriptorSets2 CmdBindIndexBuffer CmdBindIndexBuffer2 CmdBindVertexBuffers
            CmdBindVertexBuffers2 CmdBlitImage CmdBlitImage2 CmdClearColorImage CmdClearDepthStencilImage CmdCopyBuffer
            CmdCopyBuffer2 CmdCopyBufferToImage CmdCopyBufferToImage2 CmdCopyImage CmdCopyImage2 CmdCopyImageToBuffer
            CmdCopyImageToBuffer2 CmdDispatch CmdDispatchBase CmdDispatchIndirect CmdDispatchTileQCOM CmdDraw
            CmdDrawClusterHUAWEI CmdDrawClusterIndirectHUAWEI CmdDrawIndexed CmdDrawIndexedIndirect
            CmdDrawIndexedIndirectCount CmdDrawIndirect CmdDrawIndirectByteCountEXT CmdDrawIndirectCount
            CmdDrawMeshTasksEXT CmdDrawMeshTasksIndirectCountEXT CmdDrawMeshTasksIndirectCountNV
            CmdDrawMeshTasksIndirectEXT CmdDrawMeshTasksIndirectNV CmdDrawMeshTasksNV CmdDrawMultiEXT
            CmdDrawMultiIndexedEXT CmdFillBuffer CmdPipelineBarrier CmdPipelineBarrier2 CmdPushConstants
            CmdPushConstants2 CmdPushDescriptorSet CmdPushDescriptorSet2 CmdResetEvent CmdResetEvent2 CmdResolveImage
            CmdResolveImage2 CmdSetEvent CmdSetEvent2 CmdSubpassShadingHUAWEI CmdUpdateBuffer CmdWaitEvents
            CmdWaitEvents2 CmdWriteBufferMarker2AMD CmdWriteBufferMarkerAMD
        },
    ),
    (
        "KEEPS_RECORDINGS",
        // These commands change only the command buffer that they are recorded into.
        commands! {
            CmdBeginConditionalRendering2EXT CmdBeginConditionalRenderingEXT CmdBeginCustomResolveEXT CmdBeginRenderPass
            CmdBeginRenderPass2 CmdBeginRendering CmdBeginTransformFeedback2EXT CmdBeginTransformFeedbackEXT
            CmdBindDescriptorBuffersEXT CmdBindDescriptorSets CmdBindDescriptorSets2 CmdBindIndexBuffer
            CmdBindIndexBuffer2 CmdBindIndexBuffer3KHR CmdBindInvocationMaskHUAWEI CmdBindPipeline
            CmdBindPipelineShaderGroupNV CmdBindResourceHeapEXT CmdBindSamplerHeapEXT CmdBindShadersEXT
            CmdBindShadingRateImageNV CmdBindTransformFeedbackBuffers2EXT CmdBindTransformFeedbackBuffersEXT
            CmdBindVertexBuffers CmdBindVertexBuffers2 CmdBindVertexBuffers3KHR CmdBlitImage CmdBlitImage2
            CmdBuildAccelerationStructureNV CmdBuildAccelerationStructuresIndirectKHR CmdBuildAccelerationStructuresKHR
            CmdBuildClusterAccelerationStructureIndirectNV CmdBuildMicromapsEXT
            CmdBuildPartitionedAccelerationStructuresNV CmdClearAttachments CmdClearColorImage CmdClearDepthStencilImage
            CmdConvertCooperativeVectorMatrixNV CmdCopyAccelerationStructureKHR CmdCopyAccelerationStructureNV
            CmdCopyAccelerationStructureToMemoryKHR CmdCopyBuffer CmdCopyBuffer2 CmdCopyBufferToImage
            CmdCopyBufferToImage2 CmdCopyImage CmdCopyImage2 CmdCopyImageToBuffer CmdCopyImageToBuffer2
            CmdCopyImageToMemoryKHR CmdCopyMemoryIndirectKHR CmdCopyMemoryIndirectNV CmdCopyMemoryKHR
            CmdCopyMemoryToAccelerationStructureKHR CmdCopyMemoryToImageIndirectKHR CmdCopyMemoryToImageIndirectNV
            CmdCopyMemoryToImageKHR CmdCopyMemoryToMicromapEXT CmdCopyMicromapEXT CmdCopyMicromapToMemoryEXT
            CmdCopyQueryPoolResults CmdCopyQueryPoolResultsToMemoryKHR CmdCopyTensorARM CmdDecodeVideoKHR
            CmdDecompressMemoryEXT CmdDecompressMemoryIndirectCountEXT CmdDecompressMemoryIndirectCountNV
            CmdDecompressMemoryNV CmdDispatch CmdDispatchBase CmdDispatchGraphAMDX CmdDispatchGraphIndirectAMDX
            CmdDispatchGraphIndirectCountAMDX CmdDispatchIndirect CmdDispatchIndirect2KHR CmdDispatchTileQCOM CmdDraw
            CmdDrawClusterHUAWEI CmdDrawClusterIndirectHUAWEI CmdDrawIndexed CmdDrawIndexedIndirect
            CmdDrawIndexedIndirect2KHR CmdDrawIndexedIndirectCount CmdDrawIndexedIndirectCount2KHR CmdDrawIndirect
            CmdDrawIndirect2KHR CmdDrawIndirectByteCount2EXT CmdDrawIndirectByteCountEXT CmdDrawIndirectCount
            CmdDrawIndirectCount2KHR CmdDrawMeshTasksEXT CmdDrawMeshTasksIndirect2EXT CmdDrawMeshTasksIndirectCount2EXT
            CmdDrawMeshTasksIndirectCountEXT CmdDrawMeshTasksIndirectCountNV CmdDrawMeshTasksIndirectEXT
            CmdDrawMeshTasksIndirectNV CmdDrawMeshTasksNV CmdDrawMultiEXT CmdDrawMultiIndexedEXT CmdEncodeVideoKHR
            CmdEndConditionalRenderingEXT CmdEndRenderPass CmdEndRenderPass2 CmdEndRendering CmdEndRendering2KHR
            CmdEndTransformFeedback2EXT CmdEndTransformFeedbackEXT CmdExecuteCommands CmdExecuteGeneratedCommandsEXT
            CmdExecuteGeneratedCommandsNV CmdFillBuffer CmdFillMemoryKHR CmdInitializeGraphScratchMemoryAMDX
            CmdNextSubpass CmdNextSubpass2 CmdOpticalFlowExecuteNV CmdPipelineBarrier CmdPipelineBarrier2
            CmdPreprocessGeneratedCommandsEXT CmdPreprocessGeneratedCommandsNV CmdPushConstants CmdPushConstants2
            CmdPushDataEXT CmdPushDescriptorSet CmdPushDescriptorSet2 CmdPushDescriptorSetWithTemplate
            CmdPushDescriptorSetWithTemplate2 CmdResetEvent CmdResetEvent2 CmdResolveImage CmdResolveImage2
            CmdSetColorBlendEnableEXT CmdSetColorWriteEnableEXT CmdSetColorWriteMaskEXT CmdSetCullMode
            CmdSetDepthBoundsTestEnable CmdSetDepthTestEnable CmdSetDepthWriteEnable CmdSetDescriptorBufferOffsets2EXT
            CmdSetDescriptorBufferOffsetsEXT CmdSetEvent CmdSetEvent2 CmdSetLogicOpEXT CmdSetLogicOpEnableEXT
            CmdSetPrimitiveTopology CmdSetRasterizerDiscardEnable CmdSetRenderingAttachmentLocations
            CmdSetShadingRateImageEnableNV CmdSetStencilOp CmdSetStencilTestEnable CmdSetStencilWriteMask
            CmdSetVertexInputEXT CmdSubpassShadingHUAWEI CmdTraceRaysIndirect2KHR CmdTraceRaysIndirectKHR
            CmdTraceRaysKHR CmdTraceRaysNV CmdUpdateBuffer CmdUpdateMemoryKHR CmdUpdatePipelineIndirectBufferNV
            CmdWaitEvents CmdWaitEvents2 CmdWriteAccelerationStructuresPropertiesKHR
            CmdWriteAccelerationStructuresPropertiesNV CmdWriteBufferMarker2AMD CmdWriteBufferMarkerAMD
            CmdWriteMarkerToMemoryAMD CmdWriteMicromapsPropertiesEXT
        },
    ),
    (
        "KEEPS_RECORDINGS",
        // These commands change no object that the accesses of a recorded command depend on.
        commands! {
            AcquireNextImage2KHR AcquireNextImageKHR AllocateCommandBuffers BeginCommandBuffer CreateCommandPool
            CreateEvent CreateFence CreateSemaphore DestroyCommandPool DestroyEvent DestroyFence DestroySemaphore
            DeviceWaitIdle EndCommandBuffer FlushMappedMemoryRanges FreeCommandBuffers GetFenceStatus
            GetSemaphoreCounterValue InvalidateMappedMemoryRanges MapMemory MapMemory2 QueuePresentKHR QueueSubmit
            QueueSubmit2 QueueWaitIdle RegisterDeviceEventEXT RegisterDisplayEventEXT ResetCommandBuffer
            ResetCommandPool ResetEvent ResetFences SetEvent SignalSemaphore UnmapMemory UnmapMemory2 WaitForFences
            WaitForPresent2KHR WaitForPresentKHR WaitSemaphores
        },
    ),
];
