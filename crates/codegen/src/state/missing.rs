//! Commands that matter and that `state` does not follow, by the reason.

use super::{Reasons, commands};

pub(super) static MISSING: Reasons = &[
    (
        "who else uses exported memory is not known",
        commands! {
            ExportMetalObjectsEXT GetMemoryAndroidHardwareBufferANDROID GetMemoryFdKHR GetMemoryMetalHandleEXT
            GetMemoryNativeBufferOHOS GetMemoryRemoteAddressNV GetMemoryWin32HandleKHR GetMemoryWin32HandleNV
            GetMemoryZirconHandleFUCHSIA
        },
    ),
    (
        "host accesses without a buffer of ours are not followed",
        commands! {
            BuildAccelerationStructuresKHR BuildMicromapsEXT ConvertCooperativeVectorMatrixNV CopyAccelerationStructureKHR
            CopyAccelerationStructureToMemoryKHR CopyMemoryToAccelerationStructureKHR CopyMemoryToMicromapEXT
            CopyMicromapEXT CopyMicromapToMemoryEXT WriteAccelerationStructuresPropertiesKHR WriteMicromapsPropertiesEXT
        },
    ),
    (
        "micromaps are not followed",
        commands! {
            CmdBuildMicromapsEXT CmdCopyMemoryToMicromapEXT CmdCopyMicromapEXT CmdCopyMicromapToMemoryEXT
            CreateMicromapEXT DestroyMicromapEXT
        },
    ),
    (
        "acceleration structures of NV are not followed",
        commands! {
            BindAccelerationStructureMemoryNV CmdBuildAccelerationStructureNV
            CmdBuildClusterAccelerationStructureIndirectNV CmdBuildPartitionedAccelerationStructuresNV
            CmdCopyAccelerationStructureNV CmdTraceRaysNV CreateAccelerationStructureNV CreateRayTracingPipelinesNV
            DestroyAccelerationStructureNV
        },
    ),
    (
        "tensors are not followed",
        commands! {
            BindTensorMemoryARM CmdCopyTensorARM CreateTensorARM CreateTensorViewARM DestroyTensorARM DestroyTensorViewARM
        },
    ),
    (
        "data graphs are not followed",
        commands! {
            BindDataGraphPipelineSessionMemoryARM CmdDispatchDataGraphARM CreateDataGraphPipelineSessionARM
            CreateDataGraphPipelinesARM DestroyDataGraphPipelineSessionARM
        },
    ),
    (
        "optical flow is not followed",
        commands! {
            BindOpticalFlowSessionImageNV CmdOpticalFlowExecuteNV CreateOpticalFlowSessionNV DestroyOpticalFlowSessionNV
        },
    ),
    (
        "execution graphs are not followed",
        commands! {
            CmdDispatchGraphAMDX CmdDispatchGraphIndirectAMDX CmdDispatchGraphIndirectCountAMDX
            CmdInitializeGraphScratchMemoryAMDX CreateExecutionGraphPipelinesAMDX
        },
    ),
    (
        "kernels of CUDA are not followed",
        commands! {
            CmdCuLaunchKernelNVX CmdCudaLaunchKernelNV CreateCuFunctionNVX CreateCuModuleNVX CreateCudaFunctionNV
            CreateCudaModuleNV DestroyCuFunctionNVX DestroyCuModuleNVX DestroyCudaFunctionNV DestroyCudaModuleNV
        },
    ),
    (
        "commands generated on the device are not followed",
        commands! {
            CmdBindPipelineShaderGroupNV CmdExecuteGeneratedCommandsEXT CmdExecuteGeneratedCommandsNV
            CmdPreprocessGeneratedCommandsEXT CmdPreprocessGeneratedCommandsNV CmdUpdatePipelineIndirectBufferNV
            CreateIndirectCommandsLayoutEXT CreateIndirectCommandsLayoutNV CreateIndirectExecutionSetEXT
            DestroyIndirectCommandsLayoutEXT DestroyIndirectCommandsLayoutNV DestroyIndirectExecutionSetEXT
            UpdateIndirectExecutionSetPipelineEXT UpdateIndirectExecutionSetShaderEXT
        },
    ),
    (
        "descriptors in buffers and heaps are not followed",
        commands! {
            CmdBindDescriptorBufferEmbeddedSamplers2EXT CmdBindDescriptorBufferEmbeddedSamplersEXT
            CmdBindDescriptorBuffersEXT CmdBindResourceHeapEXT CmdBindSamplerHeapEXT CmdPushDataEXT
            CmdSetDescriptorBufferOffsets2EXT CmdSetDescriptorBufferOffsetsEXT GetDescriptorEXT
            WriteResourceDescriptorsEXT WriteSamplerDescriptorsEXT
        },
    ),
    (
        "memory that is named by its address is not followed",
        commands! {
            CmdCopyAccelerationStructureToMemoryKHR CmdCopyMemoryIndirectKHR CmdCopyMemoryIndirectNV
            CmdCopyMemoryToAccelerationStructureKHR CmdCopyMemoryToImageIndirectKHR CmdCopyMemoryToImageIndirectNV
            CmdDecompressMemoryEXT CmdDecompressMemoryIndirectCountEXT CmdDecompressMemoryIndirectCountNV
            CmdDecompressMemoryNV
        },
    ),
    (
        "tiles are not followed",
        commands! {
            CmdBeginPerTileExecutionQCOM CmdBindTileMemoryQCOM CmdDispatchTileQCOM CmdEndPerTileExecutionQCOM
        },
    ),
    (
        "images of Fuchsia are not followed",
        commands! {
            CreateBufferCollectionFUCHSIA DestroyBufferCollectionFUCHSIA SetBufferCollectionBufferConstraintsFUCHSIA
            SetBufferCollectionImageConstraintsFUCHSIA
        },
    ),
    (
        "external compute queues are not followed",
        commands! {
            CreateExternalComputeQueueNV DestroyExternalComputeQueueNV
        },
    ),
    (
        "what it accesses is not followed",
        commands! {
            CmdBeginCustomResolveEXT CmdBindInvocationMaskHUAWEI CmdBindShadingRateImageNV
            CmdConvertCooperativeVectorMatrixNV CmdDrawClusterHUAWEI CmdDrawClusterIndirectHUAWEI
            CmdSubpassShadingHUAWEI
        },
    ),
];
