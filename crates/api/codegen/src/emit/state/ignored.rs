//! Commands that do not concern what `state` follows, by reason.

use super::{CommandsByReason, commands};

pub(super) static IGNORED: CommandsByReason = &[
    (
        "work that the host does for another call",
        commands! {
            CreateDeferredOperationKHR DeferredOperationJoinKHR DestroyDeferredOperationKHR
            GetDeferredOperationMaxConcurrencyKHR GetDeferredOperationResultKHR
        },
    ),
    (
        "video sessions use memory that nobody else names",
        commands! {
            BindVideoSessionMemoryKHR CmdBeginVideoCodingKHR CmdControlVideoCodingKHR CmdEndVideoCodingKHR
            CreateVideoSessionKHR CreateVideoSessionParametersKHR DestroyVideoSessionKHR DestroyVideoSessionParametersKHR
            GetEncodedVideoSessionParametersKHR GetVideoSessionMemoryRequirementsKHR UpdateVideoSessionParametersKHR
        },
    ),
    (
        "a name or a mark for tools",
        commands! {
            ClearShaderInstrumentationMetricsARM CmdBeginDebugUtilsLabelEXT CmdBeginGpaSampleAMD CmdBeginGpaSessionAMD
            CmdBeginShaderInstrumentationARM CmdCopyGpaSessionResultsAMD CmdDebugMarkerBeginEXT CmdDebugMarkerEndEXT
            CmdDebugMarkerInsertEXT CmdEndDebugUtilsLabelEXT CmdEndGpaSampleAMD CmdEndGpaSessionAMD
            CmdEndShaderInstrumentationARM CmdInsertDebugUtilsLabelEXT CmdSetCheckpointNV CmdSetPerformanceMarkerINTEL
            CmdSetPerformanceOverrideINTEL CmdSetPerformanceStreamMarkerINTEL CreateDebugReportCallbackEXT
            CreateDebugUtilsMessengerEXT CreateGpaSessionAMD CreatePrivateDataSlot CreateShaderInstrumentationARM
            CreateValidationCacheEXT DebugMarkerSetObjectNameEXT DebugMarkerSetObjectTagEXT DebugReportMessageEXT
            DestroyDebugReportCallbackEXT DestroyDebugUtilsMessengerEXT DestroyGpaSessionAMD DestroyPrivateDataSlot
            DestroyShaderInstrumentationARM DestroyValidationCacheEXT
            EnumeratePhysicalDeviceShaderInstrumentationMetricsARM GetGpaDeviceClockInfoAMD GetGpaSessionResultsAMD
            GetGpaSessionStatusAMD GetPrivateData GetShaderInstrumentationValuesARM GetValidationCacheDataEXT
            MergeValidationCachesEXT QueueBeginDebugUtilsLabelEXT QueueEndDebugUtilsLabelEXT QueueInsertDebugUtilsLabelEXT
            ResetGpaSessionAMD SetDebugUtilsObjectNameEXT SetDebugUtilsObjectTagEXT SetGpaDeviceClockModeAMD
            SetPrivateData SubmitDebugUtilsMessageEXT
        },
    ),
    (
        "instances and physical devices have no accesses",
        commands! {
            CreateInstance DestroyInstance EnumerateDeviceExtensionProperties EnumerateDeviceLayerProperties
            EnumerateInstanceExtensionProperties EnumerateInstanceLayerProperties EnumerateInstanceVersion
            EnumeratePhysicalDeviceGroups EnumeratePhysicalDeviceQueueFamilyPerformanceCountersByRegionARM
            EnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR EnumeratePhysicalDevices GetDeviceProcAddr
            GetInstanceProcAddr GetPhysicalDeviceCalibrateableTimeDomainsKHR
            GetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV
            GetPhysicalDeviceCooperativeMatrixProperties2EXT GetPhysicalDeviceCooperativeMatrixPropertiesKHR
            GetPhysicalDeviceCooperativeMatrixPropertiesNV GetPhysicalDeviceCooperativeVectorPropertiesNV
            GetPhysicalDeviceDescriptorSizeEXT GetPhysicalDeviceDirectFBPresentationSupportEXT
            GetPhysicalDeviceDisplayPlaneProperties2KHR GetPhysicalDeviceDisplayPlanePropertiesKHR
            GetPhysicalDeviceDisplayProperties2KHR GetPhysicalDeviceDisplayPropertiesKHR
            GetPhysicalDeviceExternalBufferProperties GetPhysicalDeviceExternalFenceProperties
            GetPhysicalDeviceExternalImageFormatPropertiesNV GetPhysicalDeviceExternalSemaphoreProperties
            GetPhysicalDeviceExternalTensorPropertiesARM GetPhysicalDeviceFeatures GetPhysicalDeviceFeatures2
            GetPhysicalDeviceFormatProperties GetPhysicalDeviceFormatProperties2 GetPhysicalDeviceFragmentShadingRatesKHR
            GetPhysicalDeviceImageFormatProperties GetPhysicalDeviceImageFormatProperties2
            GetPhysicalDeviceMemoryProperties GetPhysicalDeviceMemoryProperties2 GetPhysicalDeviceMultisamplePropertiesEXT
            GetPhysicalDeviceOpticalFlowImageFormatsNV GetPhysicalDevicePresentRectanglesKHR GetPhysicalDeviceProperties
            GetPhysicalDeviceProperties2 GetPhysicalDeviceQueueFamilyDataGraphEngineOperationPropertiesARM
            GetPhysicalDeviceQueueFamilyDataGraphOpticalFlowImageFormatsARM
            GetPhysicalDeviceQueueFamilyDataGraphProcessingEnginePropertiesARM
            GetPhysicalDeviceQueueFamilyDataGraphPropertiesARM GetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR
            GetPhysicalDeviceScreenPresentationSupportQNX GetPhysicalDeviceSparseImageFormatProperties
            GetPhysicalDeviceSparseImageFormatProperties2 GetPhysicalDeviceSupportedFramebufferMixedSamplesCombinationsNV
            GetPhysicalDeviceSurfaceCapabilities2EXT GetPhysicalDeviceSurfaceCapabilities2KHR
            GetPhysicalDeviceSurfaceCapabilitiesKHR GetPhysicalDeviceSurfaceFormats2KHR GetPhysicalDeviceSurfaceFormatsKHR
            GetPhysicalDeviceSurfacePresentModes2EXT GetPhysicalDeviceSurfacePresentModesKHR
            GetPhysicalDeviceSurfaceSupportKHR GetPhysicalDeviceToolProperties GetPhysicalDeviceUbmPresentationSupportSEC
            GetPhysicalDeviceVideoCapabilitiesKHR GetPhysicalDeviceVideoEncodeQualityLevelPropertiesKHR
            GetPhysicalDeviceVideoFormatPropertiesKHR GetPhysicalDeviceWaylandPresentationSupportKHR
            GetPhysicalDeviceWin32PresentationSupportKHR GetPhysicalDeviceXcbPresentationSupportKHR
            GetPhysicalDeviceXlibPresentationSupportKHR
        },
    ),
    (
        "surfaces and displays are not ours",
        commands! {
            AcquireDrmDisplayEXT AcquireFullScreenExclusiveModeEXT AcquireWinrtDisplayNV AcquireXlibDisplayEXT
            CreateAndroidSurfaceKHR CreateDirectFBSurfaceEXT CreateDisplayModeKHR CreateDisplayPlaneSurfaceKHR
            CreateHeadlessSurfaceEXT CreateIOSSurfaceMVK CreateImagePipeSurfaceFUCHSIA CreateMacOSSurfaceMVK
            CreateMetalSurfaceEXT CreateScreenSurfaceQNX CreateStreamDescriptorSurfaceGGP CreateSurfaceOHOS
            CreateUbmSurfaceSEC CreateViSurfaceNN CreateWaylandSurfaceKHR CreateWin32SurfaceKHR CreateXcbSurfaceKHR
            CreateXlibSurfaceKHR DestroySurfaceKHR DisplayPowerControlEXT GetDisplayModeProperties2KHR
            GetDisplayModePropertiesKHR GetDisplayPlaneCapabilities2KHR GetDisplayPlaneCapabilitiesKHR
            GetDisplayPlaneSupportedDisplaysKHR GetDrmDisplayEXT GetRandROutputDisplayEXT GetWinrtDisplayNV
            ReleaseDisplayEXT ReleaseFullScreenExclusiveModeEXT SetHdrMetadataEXT SetLocalDimmingAMD
            SetSwapchainPresentTimingQueueSizeEXT
        },
    ),
    (
        "hints about time and power",
        commands! {
            AcquirePerformanceConfigurationINTEL AcquireProfilingLockKHR AntiLagUpdateAMD CmdSetComputeOccupancyPriorityNV
            CmdSetDispatchParametersARM GetLatencyTimingsLegacyNV GetLatencyTimingsNV InitializePerformanceApiINTEL
            LatencySleepLegacyNV LatencySleepNV QueueNotifyOutOfBandLegacyNV QueueNotifyOutOfBandNV QueueSetPerfHintQCOM
            QueueSetPerformanceConfigurationINTEL ReleasePerformanceConfigurationINTEL ReleaseProfilingLockKHR
            SetDeviceMemoryPriorityEXT SetLatencyMarkerLegacyNV SetLatencyMarkerNV SetLatencySleepModeLegacyNV
            SetLatencySleepModeNV ShutdownLatencyDeviceLegacyNV UninitializePerformanceApiINTEL
        },
    ),
    (
        "caches and binaries of pipelines change nothing",
        commands! {
            CompileDeferredNV CreatePipelineBinariesKHR CreatePipelineCache DestroyPipelineBinaryKHR DestroyPipelineCache
            GetCudaModuleCacheNV GetPipelineBinaryDataKHR GetPipelineCacheData MergePipelineCaches
            ReleaseCapturedPipelineDataKHR
        },
    ),
    (
        "samplers read nothing themselves",
        commands! {
            CmdBindDescriptorBufferEmbeddedSamplers2EXT CmdBindDescriptorBufferEmbeddedSamplersEXT CreateSampler
            CreateSamplerYcbcrConversion DestroySampler DestroySamplerYcbcrConversion RegisterCustomBorderColorEXT
            UnregisterCustomBorderColorEXT
        },
    ),
    (
        "no access depends on this state",
        commands! {
            CmdSetAlphaToCoverageEnableEXT CmdSetAlphaToOneEnableEXT CmdSetAttachmentFeedbackLoopEnableEXT
            CmdSetBlendConstants CmdSetCoarseSampleOrderNV CmdSetColorBlendAdvancedEXT CmdSetColorBlendEquationEXT
            CmdSetConservativeRasterizationModeEXT CmdSetCoverageModulationModeNV CmdSetCoverageModulationTableEnableNV
            CmdSetCoverageModulationTableNV CmdSetCoverageReductionModeNV CmdSetCoverageToColorEnableNV
            CmdSetCoverageToColorLocationNV CmdSetDepthBias CmdSetDepthBias2EXT CmdSetDepthBiasEnable CmdSetDepthBounds
            CmdSetDepthClampEnableEXT CmdSetDepthClampRangeEXT CmdSetDepthClipEnableEXT
            CmdSetDepthClipNegativeOneToOneEXT CmdSetDepthCompareOp CmdSetDeviceMask CmdSetDiscardRectangleEXT
            CmdSetDiscardRectangleEnableEXT CmdSetDiscardRectangleModeEXT CmdSetExclusiveScissorEnableNV
            CmdSetExclusiveScissorNV CmdSetExtraPrimitiveOverestimationSizeEXT CmdSetFragmentShadingRateEnumNV
            CmdSetFragmentShadingRateKHR CmdSetFrontFace CmdSetLineRasterizationModeEXT CmdSetLineStipple
            CmdSetLineStippleEnableEXT CmdSetLineWidth CmdSetPatchControlPointsEXT CmdSetPolygonModeEXT
            CmdSetPrimitiveRestartEnable CmdSetPrimitiveRestartIndexEXT CmdSetProvokingVertexModeEXT
            CmdSetRasterizationSamplesEXT CmdSetRasterizationStreamEXT CmdSetRayTracingPipelineStackSizeKHR
            CmdSetRenderingInputAttachmentIndices CmdSetRepresentativeFragmentTestEnableNV CmdSetSampleLocationsEXT
            CmdSetSampleLocationsEnableEXT CmdSetSampleMaskEXT CmdSetScissor CmdSetScissorWithCount
            CmdSetStencilCompareMask CmdSetStencilReference CmdSetTessellationDomainOriginEXT CmdSetViewport
            CmdSetViewportShadingRatePaletteNV CmdSetViewportSwizzleNV CmdSetViewportWScalingEnableNV
            CmdSetViewportWScalingNV CmdSetViewportWithCount
        },
    ),
    (
        "queries lie in no memory that others use",
        commands! {
            CmdBeginQuery CmdBeginQueryIndexedEXT CmdEndQuery CmdEndQueryIndexedEXT CmdResetQueryPool CmdWriteTimestamp
            CmdWriteTimestamp2 GetQueryPoolResults ResetQueryPool
        },
    ),
    (
        "trimming keeps what is recorded",
        commands! {
            TrimCommandPool
        },
    ),
    (
        "asks, and learns nothing about the order of accesses",
        commands! {
            GetAccelerationStructureBuildSizesKHR GetAccelerationStructureHandleNV
            GetAccelerationStructureOpaqueCaptureDescriptorDataEXT GetAndroidHardwareBufferPropertiesANDROID
            GetBufferCollectionPropertiesFUCHSIA GetBufferMemoryRequirements GetBufferMemoryRequirements2
            GetBufferOpaqueCaptureAddress GetBufferOpaqueCaptureDescriptorDataEXT GetCalibratedTimestampsKHR
            GetClusterAccelerationStructureBuildSizesNV GetDataGraphPipelineAvailablePropertiesARM
            GetDataGraphPipelinePropertiesARM GetDataGraphPipelineSessionBindPointRequirementsARM
            GetDataGraphPipelineSessionMemoryRequirementsARM GetDescriptorSetHostMappingVALVE
            GetDescriptorSetLayoutBindingOffsetEXT GetDescriptorSetLayoutHostMappingInfoVALVE
            GetDescriptorSetLayoutSupport GetDeviceAccelerationStructureCompatibilityKHR
            GetDeviceBufferMemoryRequirements GetDeviceCombinedImageSamplerIndexNVX GetDeviceFaultDebugInfoKHR
            GetDeviceFaultInfoEXT GetDeviceFaultReportsKHR GetDeviceGroupPeerMemoryFeatures
            GetDeviceGroupPresentCapabilitiesKHR GetDeviceGroupSurfacePresentModes2EXT
            GetDeviceGroupSurfacePresentModesKHR GetDeviceImageMemoryRequirements GetDeviceImageSparseMemoryRequirements
            GetDeviceImageSubresourceLayout GetDeviceMemoryCommitment GetDeviceMemoryOpaqueCaptureAddress
            GetDeviceMicromapCompatibilityEXT GetDeviceSubpassShadingMaxWorkgroupSizeHUAWEI
            GetDeviceTensorMemoryRequirementsARM GetDynamicRenderingTilePropertiesQCOM GetEventStatus
            GetExecutionGraphPipelineNodeIndexAMDX GetExecutionGraphPipelineScratchSizeAMDX
            GetExternalComputeQueueDataNV GetFramebufferTilePropertiesQCOM GetGeneratedCommandsMemoryRequirementsEXT
            GetGeneratedCommandsMemoryRequirementsNV GetImageDrmFormatModifierPropertiesEXT GetImageOpaqueCaptureDataEXT
            GetImageOpaqueCaptureDescriptorDataEXT GetImageViewAddressNVX GetImageViewHandle64NVX GetImageViewHandleNVX
            GetImageViewOpaqueCaptureDescriptorDataEXT GetMemoryFdPropertiesKHR GetMemoryHostPointerPropertiesEXT
            GetMemoryMetalHandlePropertiesEXT GetMemoryWin32HandlePropertiesKHR GetMemoryZirconHandlePropertiesFUCHSIA
            GetMicromapBuildSizesEXT GetNativeBufferPropertiesOHOS GetPartitionedAccelerationStructuresBuildSizesNV
            GetPastPresentationTimingEXT GetPastPresentationTimingGOOGLE GetPerformanceParameterINTEL
            GetPipelineExecutableInternalRepresentationsKHR GetPipelineExecutablePropertiesKHR
            GetPipelineExecutableStatisticsKHR GetPipelineIndirectDeviceAddressNV
            GetPipelineIndirectMemoryRequirementsNV GetPipelineKeyKHR GetPipelinePropertiesEXT GetQueueCheckpointData2NV
            GetQueueCheckpointDataNV GetRayTracingCaptureReplayShaderGroupHandlesKHR GetRayTracingShaderGroupHandlesKHR
            GetRayTracingShaderGroupStackSizeKHR GetRefreshCycleDurationGOOGLE GetRenderAreaGranularity
            GetRenderingAreaGranularity GetSamplerOpaqueCaptureDescriptorDataEXT GetScreenBufferPropertiesQNX
            GetShaderBinaryDataEXT GetShaderInfoAMD GetShaderModuleCreateInfoIdentifierEXT GetShaderModuleIdentifierEXT
            GetSleepStatusLegacyNV GetSwapchainCounterEXT GetSwapchainStatusKHR GetSwapchainTimeDomainPropertiesEXT
            GetSwapchainTimingPropertiesEXT GetTensorOpaqueCaptureDataARM GetTensorOpaqueCaptureDescriptorDataARM
            GetTensorViewOpaqueCaptureDescriptorDataARM
        },
    ),
    (
        "tiles decide when something is accessed, not what",
        commands! {
            CmdBeginPerTileExecutionQCOM CmdBindTileMemoryQCOM CmdEndPerTileExecutionQCOM
        },
    ),
    (
        "makes a descriptor, which counts where a shader reads it",
        commands! {
            GetDescriptorEXT WriteResourceDescriptorsEXT WriteSamplerDescriptorsEXT
        },
    ),
    (
        "a kernel accesses nothing until it is launched",
        commands! {
            CreateCuFunctionNVX CreateCuModuleNVX CreateCudaFunctionNV CreateCudaModuleNV DestroyCuFunctionNVX
            DestroyCuModuleNVX DestroyCudaFunctionNV DestroyCudaModuleNV
        },
    ),
    (
        "a data graph accesses nothing until it is dispatched",
        commands! {
            BindDataGraphPipelineSessionMemoryARM CreateDataGraphPipelineSessionARM CreateDataGraphPipelinesARM
            DestroyDataGraphPipelineSessionARM
        },
    ),
    (
        "memory of buffer collections is imported like any other",
        commands! {
            CreateBufferCollectionFUCHSIA DestroyBufferCollectionFUCHSIA SetBufferCollectionBufferConstraintsFUCHSIA
            SetBufferCollectionImageConstraintsFUCHSIA
        },
    ),
    (
        "ends what others submit to",
        commands! {
            DestroyExternalComputeQueueNV
        },
    ),
];
