//! The only place that lists single items of the registry, each with a reason.
//!
//! The generator fails for an entry whose item does not exist.

/// The exception for a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OverrideKind {
    /// An address that must never be dereferenced. A record stores only whether it is null.
    Opaque,
    /// The driver writes to the target, although the pointer is in an input structure.
    Output,
    /// The application provides the target, although the pointer is not const.
    Input,
    /// Read only if a sibling field has one of these enum values.
    WhenIs(&'static str, &'static [&'static str]),
    /// Read only if a sibling field has this bit.
    WhenHas(&'static str, &'static str),
    /// Read only if a sibling field does not have this bit.
    WhenLacks(&'static str, &'static str),
    /// Read only if any of these one-bit members of the sibling `flags` is set.
    WhenFlag(&'static [&'static str]),
    /// Read under a handwritten condition: a variant of `abi::desc::ReadRule`.
    When(&'static str),
    /// The length is in this sibling field.
    Len(&'static str),
    /// A handwritten length: a variant of `abi::desc::LenRule`.
    LenRule(&'static str),
    /// As `LenRule`, and read only if a one-bit member of the sibling `flags` is set.
    LenRuleWhenFlag(&'static str, &'static str),
    /// Bytes whose number depends on other objects: a variant of `abi::desc::Blob`.
    Blob(&'static str),
    /// As `Blob`, written by the driver.
    OutputBlob(&'static str),
    /// Its layout is in a descriptor update template.
    Template,
    /// A structure of any type, which its `sType` gives.
    AnyStruct,
    /// An array of values whose type is in a sibling field: `VkLayerSettingEXT`.
    SettingValues,
    /// All members of an output structure are inputs, too.
    KeepAll,
}

pub(crate) struct Override {
    pub(crate) item: &'static str,
    pub(crate) kind: OverrideKind,
    pub(crate) reason: &'static str,
}

const fn override_of(item: &'static str, how: OverrideKind, why: &'static str) -> Override {
    Override { item, kind: how, reason: why }
}

use OverrideKind::*;

const VIDEO: &str = "a flag says whether it is there";
const CONCURRENT: OverrideKind = WhenIs("sharingMode", &["VK_SHARING_MODE_CONCURRENT"]);

pub(crate) const OVERRIDES: &[Override] = &[
    // Pointers that may be invalid because they are ignored.
    override_of("VkDeviceCreateInfo.ppEnabledLayerNames", Opaque, "legacy: ignored by drivers, and by us"),
    override_of("VkWriteDescriptorSet.pImageInfo", When("DescriptorImages"), "only for image and sampler types"),
    override_of("VkWriteDescriptorSet.pBufferInfo", When("DescriptorBuffers"), "only for buffer types"),
    override_of("VkWriteDescriptorSet.pTexelBufferView", When("DescriptorTexelViews"), "only for texel buffer types"),
    override_of("VkBufferCreateInfo.pQueueFamilyIndices", CONCURRENT, "ignored when exclusive"),
    override_of("VkImageCreateInfo.pQueueFamilyIndices", CONCURRENT, "ignored when exclusive"),
    override_of("VkTensorCreateInfoARM.pQueueFamilyIndices", CONCURRENT, "ignored when exclusive"),
    override_of(
        "VkPhysicalDeviceImageDrmFormatModifierInfoEXT.pQueueFamilyIndices",
        CONCURRENT,
        "ignored when exclusive",
    ),
    override_of(
        "VkSwapchainCreateInfoKHR.pQueueFamilyIndices",
        WhenIs("imageSharingMode", &["VK_SHARING_MODE_CONCURRENT"]),
        "ignored when exclusive",
    ),
    override_of(
        "VkDescriptorSetLayoutBinding.pImmutableSamplers",
        WhenIs("descriptorType", &["VK_DESCRIPTOR_TYPE_SAMPLER", "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER"]),
        "only sampler types have immutable samplers",
    ),
    override_of(
        "VkFramebufferCreateInfo.pAttachments",
        WhenLacks("flags", "VK_FRAMEBUFFER_CREATE_IMAGELESS_BIT"),
        "ignored when imageless",
    ),
    override_of(
        "VkCommandBufferBeginInfo.pInheritanceInfo",
        When("SecondaryCommandBuffer"),
        "ignored for a primary one",
    ),
    override_of(
        "VkImageCompressionControlEXT.pFixedRateFlags",
        WhenHas("flags", "VK_IMAGE_COMPRESSION_FIXED_RATE_EXPLICIT_EXT"),
        "ignored unless explicit rates are asked for; an input, though not const",
    ),
    override_of("VkGraphicsPipelineCreateInfo.pStages", When("PipelineStages"), "a library may not specify shaders"),
    override_of(
        "VkGraphicsPipelineCreateInfo.pVertexInputState",
        When("PipelineVertexInput"),
        "mesh, dynamic, library",
    ),
    override_of("VkGraphicsPipelineCreateInfo.pInputAssemblyState", When("PipelineInputAssembly"), "mesh, library"),
    override_of("VkGraphicsPipelineCreateInfo.pTessellationState", When("PipelineTessellation"), "needs both stages"),
    override_of("VkGraphicsPipelineCreateInfo.pViewportState", When("PipelineViewport"), "rasterizer discard, library"),
    override_of("VkGraphicsPipelineCreateInfo.pRasterizationState", When("PipelineRasterization"), "library"),
    override_of(
        "VkGraphicsPipelineCreateInfo.pMultisampleState",
        When("PipelineMultisample"),
        "rasterizer discard, library",
    ),
    override_of("VkGraphicsPipelineCreateInfo.pDepthStencilState", When("PipelineDepthStencil"), "needs an attachment"),
    override_of("VkGraphicsPipelineCreateInfo.pColorBlendState", When("PipelineColorBlend"), "needs an attachment"),
    override_of("VkPipelineViewportStateCreateInfo.pViewports", When("ViewportsStatic"), "ignored when dynamic"),
    override_of("VkPipelineViewportStateCreateInfo.pScissors", When("ScissorsStatic"), "ignored when dynamic"),
    override_of("VkPipelineMultisampleStateCreateInfo.pSampleMask", When("SampleMask"), "ignored when dynamic"),
    override_of("VkGraphicsShaderGroupCreateInfoNV.pVertexInputState", When("GroupVertexInput"), "mesh or dynamic"),
    override_of("VkGraphicsShaderGroupCreateInfoNV.pTessellationState", When("GroupTessellation"), "needs both stages"),
    override_of(
        "VkPipelineViewportWScalingStateCreateInfoNV.pViewportWScalings",
        When("ViewportScalingsStatic"),
        "ignored when dynamic",
    ),
    override_of(
        "VkPipelineDiscardRectangleStateCreateInfoEXT.pDiscardRectangles",
        When("DiscardRectanglesStatic"),
        "ignored when dynamic",
    ),
    override_of(
        "VkPipelineCoverageModulationStateCreateInfoNV.pCoverageModulationTable",
        When("CoverageTable"),
        "ignored when disabled or dynamic",
    ),
    override_of(
        "VkPipelineViewportExclusiveScissorStateCreateInfoNV.pExclusiveScissors",
        When("ExclusiveScissorsStatic"),
        "ignored when dynamic",
    ),
    override_of(
        "VkPipelineViewportShadingRateImageStateCreateInfoNV.pShadingRatePalettes",
        When("ShadingRatePalettesStatic"),
        "ignored when dynamic",
    ),
    override_of(
        "VkPipelineRenderingCreateInfo.pColorAttachmentFormats",
        When("RenderingColors"),
        "ignored with a render pass",
    ),
    override_of(
        "VkAttachmentSampleCountInfoAMD.pColorAttachmentSamples",
        When("RenderingColors"),
        "ignored with a render pass",
    ),
    override_of(
        "VkCommandBufferInheritanceRenderingInfo.pColorAttachmentFormats",
        When("RenderingColors"),
        "ignored with a render pass, or outside one",
    ),
    override_of(
        "VkCustomResolveCreateInfoEXT.pColorAttachmentFormats",
        When("RenderingColors"),
        "ignored with a render pass",
    ),
    override_of(
        "VkRenderingAttachmentLocationInfo.pColorAttachmentLocations",
        When("RenderingColors"),
        "ignored with a render pass",
    ),
    override_of(
        "VkPipelineColorBlendStateCreateInfo.pAttachments",
        When("BlendAttachments"),
        "ignored when all dynamic",
    ),
    override_of(
        "VkPipelineColorWriteCreateInfoEXT.pColorWriteEnables",
        When("ColorWriteEnables"),
        "ignored when dynamic",
    ),
    override_of(
        "VkPipelineViewportCoarseSampleOrderStateCreateInfoNV.pCustomSampleOrders",
        When("SampleOrders"),
        "ignored when dynamic",
    ),
    override_of(
        "VkPipelineViewportSwizzleStateCreateInfoNV.pViewportSwizzles",
        When("ViewportSwizzles"),
        "ignored when dynamic",
    ),
    override_of(
        "VkPipelineViewportDepthClampControlCreateInfoEXT.pDepthClampRange",
        When("DepthClampRange"),
        "ignored when dynamic",
    ),
    override_of(
        "VkCommandBufferInheritanceViewportScissorInfoNV.pViewportDepths",
        When("ViewportDepths"),
        "ignored unless inherited, and the registry states no length",
    ),
    // Parameter sets of the video standards. Their flags define which of their pointers are valid.
    override_of(
        "StdVideoH264SequenceParameterSet.pScalingLists",
        WhenFlag(&["seq_scaling_matrix_present_flag"]),
        VIDEO,
    ),
    override_of(
        "StdVideoH264SequenceParameterSet.pSequenceParameterSetVui",
        WhenFlag(&["vui_parameters_present_flag"]),
        VIDEO,
    ),
    override_of(
        "StdVideoH264SequenceParameterSetVui.pHrdParameters",
        WhenFlag(&["nal_hrd_parameters_present_flag", "vcl_hrd_parameters_present_flag"]),
        VIDEO,
    ),
    override_of("StdVideoH264PictureParameterSet.pScalingLists", WhenFlag(&["pic_scaling_matrix_present_flag"]), VIDEO),
    override_of(
        "StdVideoH265SequenceParameterSet.pScalingLists",
        WhenFlag(&["sps_scaling_list_data_present_flag"]),
        VIDEO,
    ),
    override_of(
        "StdVideoH265SequenceParameterSet.pLongTermRefPicsSps",
        WhenFlag(&["long_term_ref_pics_present_flag"]),
        VIDEO,
    ),
    override_of(
        "StdVideoH265SequenceParameterSet.pSequenceParameterSetVui",
        WhenFlag(&["vui_parameters_present_flag"]),
        VIDEO,
    ),
    override_of(
        "StdVideoH265SequenceParameterSet.pPredictorPaletteEntries",
        WhenFlag(&["sps_palette_predictor_initializers_present_flag"]),
        VIDEO,
    ),
    override_of(
        "StdVideoH265PictureParameterSet.pScalingLists",
        WhenFlag(&["pps_scaling_list_data_present_flag"]),
        VIDEO,
    ),
    override_of(
        "StdVideoH265PictureParameterSet.pPredictorPaletteEntries",
        WhenFlag(&["pps_palette_predictor_initializers_present_flag"]),
        VIDEO,
    ),
    override_of("StdVideoAV1TileInfo.pMiColStarts", When("DecodedTiles"), "ignored by encoders"),
    override_of("StdVideoAV1TileInfo.pMiRowStarts", When("DecodedTiles"), "ignored by encoders"),
    override_of("StdVideoAV1TileInfo.pWidthInSbsMinus1", When("TileSizes"), "ignored by encoders of uniform tiles"),
    override_of("StdVideoAV1TileInfo.pHeightInSbsMinus1", When("TileSizes"), "ignored by encoders of uniform tiles"),
    override_of(
        "StdVideoEncodeH264ReferenceListsInfo.pRefList0ModOperations",
        WhenFlag(&["ref_pic_list_modification_flag_l0"]),
        VIDEO,
    ),
    override_of(
        "StdVideoEncodeH264ReferenceListsInfo.pRefList1ModOperations",
        WhenFlag(&["ref_pic_list_modification_flag_l1"]),
        VIDEO,
    ),
    override_of("StdVideoAV1SequenceHeader.pTimingInfo", WhenFlag(&["timing_info_present_flag"]), VIDEO),
    override_of("StdVideoDecodeAV1PictureInfo.pSegmentation", WhenFlag(&["segmentation_enabled"]), VIDEO),
    override_of("StdVideoDecodeAV1PictureInfo.pLoopRestoration", WhenFlag(&["UsesLr"]), VIDEO),
    override_of("StdVideoDecodeVP9PictureInfo.pSegmentation", WhenFlag(&["segmentation_enabled"]), VIDEO),
    override_of("VkCudaLaunchInfoNV.pExtras", Opaque, "must be null"),
    override_of("VkCuLaunchInfoNVX.pExtras", Opaque, "the layout belongs to CUDA"),
    // Addresses that are only values, or that belong to the platform.
    override_of("VkAllocationCallbacks.pUserData", Opaque, "the application's own"),
    override_of("VkDebugReportCallbackCreateInfoEXT.pUserData", Opaque, "the application's own"),
    override_of("VkDebugUtilsMessengerCreateInfoEXT.pUserData", Opaque, "the application's own"),
    override_of("VkDeviceDeviceMemoryReportCreateInfoEXT.pUserData", Opaque, "the application's own"),
    override_of("VkInitializePerformanceApiInfoINTEL.pUserData", Opaque, "the application's own"),
    override_of("VkViSurfaceCreateInfoNN.window", Opaque, "a platform object"),
    override_of("VkIOSSurfaceCreateInfoMVK.pView", Opaque, "a platform object"),
    override_of("VkMacOSSurfaceCreateInfoMVK.pView", Opaque, "a platform object"),
    override_of("VkMetalSurfaceCreateInfoEXT.pLayer", Opaque, "a platform object"),
    override_of("VkImportMemoryMetalHandleInfoEXT.handle", Opaque, "a platform object"),
    override_of("vkGetMemoryMetalHandlePropertiesEXT.pHandle", Opaque, "a platform object"),
    override_of("VkImportMemoryHostPointerInfoEXT.pHostPointer", Opaque, "memory contents travel apart from calls"),
    override_of("vkGetMemoryHostPointerPropertiesEXT.pHostPointer", Opaque, "only the address matters"),
    override_of("VkMemoryMapPlacedInfoEXT.pPlacedAddress", Opaque, "only the address matters"),
    override_of("VkCheckpointDataNV.pCheckpointMarker", Opaque, "a value of the application"),
    override_of("VkCheckpointData2NV.pCheckpointMarker", Opaque, "a value of the application"),
    override_of("vkCmdSetCheckpointNV.pCheckpointMarker", Opaque, "a value of the application"),
    // Data whose size or layout depends on other objects.
    override_of("vkUpdateDescriptorSetWithTemplate.pData", Template, "the template has the layout"),
    override_of("vkCmdPushDescriptorSetWithTemplate.pData", Template, "the template has the layout"),
    override_of("VkPushDescriptorSetWithTemplateInfo.pData", Template, "the template has the layout"),
    override_of(
        "VkRayTracingShaderGroupCreateInfoKHR.pShaderGroupCaptureReplayHandle",
        Blob("ShaderGroupCaptureReplayHandle"),
        "a device property has the size",
    ),
    override_of(
        "VkOpaqueCaptureDescriptorDataCreateInfoEXT.opaqueCaptureDescriptorData",
        Blob("OpaqueCaptureDescriptor"),
        "a device property has the size",
    ),
    override_of("VkMemoryToImageCopy.pHostPointer", Blob("HostImage"), "the image's format decides"),
    override_of("VkImageToMemoryCopy.pHostPointer", OutputBlob("HostImage"), "the image's format decides"),
    override_of("VkDataGraphPipelineConstantARM.pConstantData", Blob("TensorConstant"), "the chained tensor decides"),
    override_of(
        "VkOpticalFlowSessionCreatePrivateDataInfoNV.pPrivateData",
        Len("size"),
        "the registry states no length",
    ),
    override_of(
        "VkQueryLowLatencySupportNV.pQueriedLowLatencyData",
        OutputBlob("DriverPrivate"),
        "written by the driver",
    ),
    override_of("vkGetLatencyTimingsLegacyNV.pTimings", Blob("DriverPrivate"), "written by the driver"),
    override_of("vkGetExternalComputeQueueDataNV.pData", Blob("DriverPrivate"), "a device property has the size"),
    override_of("vkGetShaderInstrumentationValuesARM.pMetricValues", Blob("DriverPrivate"), "properties have the size"),
    override_of(
        "vkGetBufferOpaqueCaptureDescriptorDataEXT.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    override_of(
        "vkGetImageOpaqueCaptureDescriptorDataEXT.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    override_of(
        "vkGetImageViewOpaqueCaptureDescriptorDataEXT.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    override_of(
        "vkGetSamplerOpaqueCaptureDescriptorDataEXT.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    override_of(
        "vkGetAccelerationStructureOpaqueCaptureDescriptorDataEXT.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    override_of(
        "vkGetTensorOpaqueCaptureDescriptorDataARM.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    override_of(
        "vkGetTensorViewOpaqueCaptureDescriptorDataARM.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    // Lengths that the registry does not state.
    override_of("VkDeviceFaultInfoEXT.pAddressInfos", LenRule("FaultAddressInfos"), "counted by another parameter"),
    override_of("VkDeviceFaultInfoEXT.pVendorInfos", LenRule("FaultVendorInfos"), "counted by another parameter"),
    override_of("VkDeviceFaultInfoEXT.pVendorBinaryData", LenRule("FaultVendorBinary"), "counted by another parameter"),
    override_of("VkDataGraphPipelinePropertyQueryResultARM", KeepAll, "says which property is asked for"),
    override_of("VkGpaDeviceClockModeInfoAMD", KeepAll, "says which mode is set"),
    override_of("VkExternalComputeQueueDataParamsNV", KeepAll, "says which device is asked for"),
    override_of("VkDeviceFaultCountsEXT", KeepAll, "capacities going in, counts coming out"),
    override_of(
        "StdVideoH265HrdParameters.pSubLayerHrdParametersNal",
        LenRuleWhenFlag("SubLayers", "nal_hrd_parameters_present_flag"),
        "counted by the parent, if a flag says that it is there",
    ),
    override_of(
        "StdVideoH265HrdParameters.pSubLayerHrdParametersVcl",
        LenRuleWhenFlag("SubLayers", "vcl_hrd_parameters_present_flag"),
        "counted by the parent, if a flag says that it is there",
    ),
    override_of("StdVideoEncodeAV1PictureInfo.pBufferRemovalTimes", Opaque, "counted by the session's sequence header"),
    override_of("vkCmdBuildAccelerationStructuresKHR.ppBuildRangeInfos", LenRule("GeometriesOfBuild"), "inner arrays"),
    override_of("vkBuildAccelerationStructuresKHR.ppBuildRangeInfos", LenRule("GeometriesOfBuild"), "inner arrays"),
    override_of(
        "vkCmdBuildAccelerationStructuresIndirectKHR.ppMaxPrimitiveCounts",
        LenRule("GeometriesOfBuild"),
        "inner arrays",
    ),
    // Outputs in input structures.
    override_of("VkPipelineBinaryHandlesInfoKHR.pPipelineBinaries", Output, "filled by the driver"),
    override_of("VkPresentInfoKHR.pResults", Output, "filled by the driver"),
    override_of("VkPipelineCreationFeedbackCreateInfo.pPipelineCreationFeedback", Output, "filled by the driver"),
    override_of("VkPipelineCreationFeedbackCreateInfo.pPipelineStageCreationFeedbacks", Output, "filled by the driver"),
    override_of("VkRenderPassCreationFeedbackCreateInfoEXT.pRenderPassFeedback", Output, "filled by the driver"),
    override_of("VkRenderPassSubpassFeedbackCreateInfoEXT.pSubpassFeedback", Output, "filled by the driver"),
    override_of("VkBindMemoryStatus.pResult", Output, "filled by the driver"),
    override_of("VkGetLatencyMarkerInfoNV.pTimings", Output, "filled by the driver"),
    override_of("VkConvertCooperativeVectorMatrixInfoNV.pDstSize", Input, "a capacity going in"),
    override_of("VkHostAddressRangeEXT.address", Output, "filled by the driver"),
    override_of("VkDataGraphPipelinePropertyQueryResultARM.pData", Output, "filled by the driver"),
    override_of("VkLatencySurfaceCapabilitiesNV.pPresentModes", Output, "filled by the driver"),
    override_of("VkPhysicalDeviceHostImageCopyProperties.pCopySrcLayouts", Output, "filled by the driver"),
    override_of("VkPhysicalDeviceHostImageCopyProperties.pCopyDstLayouts", Output, "filled by the driver"),
    override_of("VkPhysicalDeviceLayeredApiPropertiesListKHR.pLayeredApis", Output, "filled by the driver"),
    override_of("VkSurfacePresentModeCompatibilityKHR.pPresentModes", Output, "filled by the driver"),
    // Inputs that are not const.
    override_of("VkClusterAccelerationStructureOpInputNV.pClustersBottomLevel", Input, "read by the driver"),
    override_of("VkClusterAccelerationStructureOpInputNV.pMoveObjects", Input, "read by the driver"),
    override_of("VkClusterAccelerationStructureOpInputNV.pTriangleClusters", Input, "read by the driver"),
    override_of("VkDataGraphProcessingEngineCreateInfoARM.pProcessingEngines", Input, "read by the driver"),
    override_of("VkPipelineBinaryDataKHR.pData", Input, "read by the driver"),
    override_of("VkRenderPassPerformanceCountersByRegionBeginInfoARM.pCounterIndices", Input, "read by the driver"),
    // Host addresses in a union with device addresses.
    override_of("VkDeviceOrHostAddressKHR.hostAddress", Opaque, "the command decides; see `Work::DeviceOrHost`"),
    override_of("VkDeviceOrHostAddressConstKHR.hostAddress", Opaque, "the command decides; see `Work::DeviceOrHost`"),
    override_of("VkDeviceOrHostAddressConstAMDX.hostAddress", Opaque, "the command decides; see `Work::DeviceOrHost`"),
    // Structures whose type is in their `sType`.
    override_of("vkGetPipelinePropertiesEXT.pPipelineProperties", AnyStruct, "typed as the base structure"),
    override_of(
        "vkGetPhysicalDeviceQueueFamilyDataGraphEngineOperationPropertiesARM.pProperties",
        AnyStruct,
        "typed as the base structure",
    ),
    override_of("VkLayerSettingEXT.pValues", SettingValues, "the type is in a sibling"),
];

/// Pointers whose validity the specification states in prose, and that are valid if their count is not zero.
pub(crate) const VALID_WHEN_COUNTED: &[(&str, &str)] = &[
    ("VkRenderPassBeginInfo.pClearValues", "values of attachments that are not cleared are garbage, but there"),
    ("VkRenderingAreaInfo.pColorAttachmentFormats", "read by its count"),
    ("VkShaderCreateInfoEXT.pSetLayouts", "read by its count"),
    ("VkCudaLaunchInfoNV.pParams", "a table of addresses, which are not followed"),
    ("vkFreeCommandBuffers.pCommandBuffers", "elements may be null"),
    ("vkFreeDescriptorSets.pDescriptorSets", "elements may be null"),
    ("vkCmdClearColorImage.pColor", "always there; which member counts, the format decides"),
    ("vkCmdBindTransformFeedbackBuffersEXT.pSizes", "null or there"),
    ("vkCmdBeginTransformFeedbackEXT.pCounterBuffers", "null or there"),
    ("vkCmdEndTransformFeedbackEXT.pCounterBuffers", "null or there"),
    ("vkCmdDrawMultiEXT.pVertexInfo", "read by count and stride"),
    ("vkCmdDrawMultiIndexedEXT.pIndexInfo", "read by count and stride"),
];

/// Commands that write outputs even if they fail, with the reason.
pub(crate) const WRITTEN_ON_FAILURE: &[(&str, &str)] = &[
    ("vkCreateGraphicsPipelines", "a handle or null for each pipeline"),
    ("vkCreateComputePipelines", "a handle or null for each pipeline"),
    ("vkCreateRayTracingPipelinesKHR", "a handle or null for each pipeline"),
    ("vkCreateRayTracingPipelinesNV", "a handle or null for each pipeline"),
    ("vkCreateExecutionGraphPipelinesAMDX", "a handle or null for each pipeline"),
    ("vkCreateDataGraphPipelinesARM", "a handle or null for each pipeline"),
    ("vkCreateShadersEXT", "a handle or null for each shader"),
    ("vkCreatePipelineBinariesKHR", "a handle or null for each binary"),
    ("vkQueuePresentKHR", "one result per swapchain"),
    ("vkBindBufferMemory2", "one result per binding, where asked for"),
    ("vkBindImageMemory2", "one result per binding, where asked for"),
];

/// Success codes that leave outputs unwritten: command or `*`, code, reason.
pub(crate) const UNWRITTEN_ON_SUCCESS: &[(&str, &str, &str)] = &[
    ("*", "VK_OPERATION_DEFERRED_KHR", "written when the deferred operation completes"),
    ("vkAcquireNextImageKHR", "VK_TIMEOUT", "no image was acquired"),
    ("vkAcquireNextImageKHR", "VK_NOT_READY", "no image was acquired"),
    ("vkAcquireNextImage2KHR", "VK_TIMEOUT", "no image was acquired"),
    ("vkAcquireNextImage2KHR", "VK_NOT_READY", "no image was acquired"),
];

/// How platform types are passed by value: C type, size in bytes, whether it is an object and not a number.
pub(crate) const EXTERNAL_VALUES: &[(&str, u32, bool)] = &[
    ("DWORD", 4, false),
    ("GgpFrameToken", 8, false),
    ("GgpStreamDescriptor", 4, false),
    ("HANDLE", 8, true),
    ("HINSTANCE", 8, true),
    ("HMONITOR", 8, true),
    ("HWND", 8, true),
    ("LPCWSTR", 8, true),
    ("NvSciBufAttrList", 8, true),
    ("NvSciBufObj", 8, true),
    ("NvSciSyncAttrList", 8, true),
    ("NvSciSyncObj", 8, true),
    ("RROutput", 8, false),
    ("VisualID", 8, false),
    ("Window", 8, false),
    ("xcb_visualid_t", 4, false),
    ("xcb_window_t", 4, false),
    ("zx_handle_t", 4, false),
];

pub(crate) fn find(item: &str) -> Option<OverrideKind> {
    OVERRIDES.iter().find(|it| it.item == item).map(|it| it.kind)
}
