//! The only place that names an item of the registry specially, each time with the reason.
//!
//! An entry for an item that does not exist is an error of the generator, so the list cannot rot.

/// What is special about a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    /// An address that must never be followed: a record says present or absent.
    Opaque,
    /// The implementation writes what this pointer points to, although it lies in an input structure.
    Output,
    /// The application provides what this pointer points to, although it is not const.
    Input,
    /// Read only when a sibling is one of these enum values.
    WhenIs(&'static str, &'static [&'static str]),
    /// Read only when a sibling has this bit.
    WhenHas(&'static str, &'static str),
    /// Read only when a sibling lacks this bit.
    WhenLacks(&'static str, &'static str),
    /// Read only when any of these one-bit members of the sibling `flags` is set.
    WhenFlag(&'static [&'static str]),
    /// Read under a condition written by hand: a variant of `abi::desc::ReadRule`.
    When(&'static str),
    /// As many elements as this sibling says.
    Len(&'static str),
    /// A length written by hand: a variant of `abi::desc::LenRule`.
    LenRule(&'static str),
    /// The same, and read only when a one-bit member of the sibling `flags` is set.
    LenRuleWhenFlag(&'static str, &'static str),
    /// Bytes whose number only other objects know: a variant of `abi::desc::Blob`.
    Blob(&'static str),
    /// The same, written by the implementation.
    OutputBlob(&'static str),
    /// Laid out by a descriptor update template.
    Template,
    /// A structure that tells its own type.
    AnyStruct,
    /// An array of values whose type a sibling selects: `VkLayerSettingEXT`.
    SettingValues,
    /// All members of an output structure are inputs too.
    KeepAll,
}

pub(crate) struct Override {
    pub(crate) item: &'static str,
    pub(crate) how: How,
    pub(crate) why: &'static str,
}

const fn over(item: &'static str, how: How, why: &'static str) -> Override {
    Override { item, how, why }
}

use How::*;

const VIDEO: &str = "a flag says whether it is there";
const CONCURRENT: How = WhenIs("sharingMode", &["VK_SHARING_MODE_CONCURRENT"]);

pub(crate) const OVERRIDES: &[Override] = &[
    // Pointers that may be garbage because they are ignored.
    over("VkDeviceCreateInfo.ppEnabledLayerNames", Opaque, "legacy: ignored by drivers, and by us"),
    over("VkWriteDescriptorSet.pImageInfo", When("DescriptorImages"), "only for image and sampler types"),
    over("VkWriteDescriptorSet.pBufferInfo", When("DescriptorBuffers"), "only for buffer types"),
    over("VkWriteDescriptorSet.pTexelBufferView", When("DescriptorTexelViews"), "only for texel buffer types"),
    over("VkBufferCreateInfo.pQueueFamilyIndices", CONCURRENT, "ignored when exclusive"),
    over("VkImageCreateInfo.pQueueFamilyIndices", CONCURRENT, "ignored when exclusive"),
    over("VkTensorCreateInfoARM.pQueueFamilyIndices", CONCURRENT, "ignored when exclusive"),
    over("VkPhysicalDeviceImageDrmFormatModifierInfoEXT.pQueueFamilyIndices", CONCURRENT, "ignored when exclusive"),
    over(
        "VkSwapchainCreateInfoKHR.pQueueFamilyIndices",
        WhenIs("imageSharingMode", &["VK_SHARING_MODE_CONCURRENT"]),
        "ignored when exclusive",
    ),
    over(
        "VkDescriptorSetLayoutBinding.pImmutableSamplers",
        WhenIs("descriptorType", &["VK_DESCRIPTOR_TYPE_SAMPLER", "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER"]),
        "only sampler types have immutable samplers",
    ),
    over(
        "VkFramebufferCreateInfo.pAttachments",
        WhenLacks("flags", "VK_FRAMEBUFFER_CREATE_IMAGELESS_BIT"),
        "ignored when imageless",
    ),
    over("VkCommandBufferBeginInfo.pInheritanceInfo", When("SecondaryCommandBuffer"), "ignored for a primary one"),
    over(
        "VkImageCompressionControlEXT.pFixedRateFlags",
        WhenHas("flags", "VK_IMAGE_COMPRESSION_FIXED_RATE_EXPLICIT_EXT"),
        "ignored unless explicit rates are asked for; an input, though not const",
    ),
    over("VkGraphicsPipelineCreateInfo.pStages", When("PipelineStages"), "a library may not specify shaders"),
    over("VkGraphicsPipelineCreateInfo.pVertexInputState", When("PipelineVertexInput"), "mesh, dynamic, library"),
    over("VkGraphicsPipelineCreateInfo.pInputAssemblyState", When("PipelineInputAssembly"), "mesh, library"),
    over("VkGraphicsPipelineCreateInfo.pTessellationState", When("PipelineTessellation"), "needs both stages"),
    over("VkGraphicsPipelineCreateInfo.pViewportState", When("PipelineViewport"), "rasterizer discard, library"),
    over("VkGraphicsPipelineCreateInfo.pRasterizationState", When("PipelineRasterization"), "library"),
    over("VkGraphicsPipelineCreateInfo.pMultisampleState", When("PipelineMultisample"), "rasterizer discard, library"),
    over("VkGraphicsPipelineCreateInfo.pDepthStencilState", When("PipelineDepthStencil"), "needs an attachment"),
    over("VkGraphicsPipelineCreateInfo.pColorBlendState", When("PipelineColorBlend"), "needs an attachment"),
    over("VkPipelineViewportStateCreateInfo.pViewports", When("ViewportsStatic"), "ignored when dynamic"),
    over("VkPipelineViewportStateCreateInfo.pScissors", When("ScissorsStatic"), "ignored when dynamic"),
    over("VkPipelineMultisampleStateCreateInfo.pSampleMask", When("SampleMask"), "ignored when dynamic"),
    over("VkGraphicsShaderGroupCreateInfoNV.pVertexInputState", When("GroupVertexInput"), "mesh or dynamic"),
    over("VkGraphicsShaderGroupCreateInfoNV.pTessellationState", When("GroupTessellation"), "needs both stages"),
    over(
        "VkPipelineViewportWScalingStateCreateInfoNV.pViewportWScalings",
        When("ViewportScalingsStatic"),
        "ignored when dynamic",
    ),
    over(
        "VkPipelineDiscardRectangleStateCreateInfoEXT.pDiscardRectangles",
        When("DiscardRectanglesStatic"),
        "ignored when dynamic",
    ),
    over(
        "VkPipelineCoverageModulationStateCreateInfoNV.pCoverageModulationTable",
        When("CoverageTable"),
        "ignored when disabled or dynamic",
    ),
    over(
        "VkPipelineViewportExclusiveScissorStateCreateInfoNV.pExclusiveScissors",
        When("ExclusiveScissorsStatic"),
        "ignored when dynamic",
    ),
    over(
        "VkPipelineViewportShadingRateImageStateCreateInfoNV.pShadingRatePalettes",
        When("ShadingRatePalettesStatic"),
        "ignored when dynamic",
    ),
    over(
        "VkPipelineRenderingCreateInfo.pColorAttachmentFormats",
        When("RenderingColors"),
        "ignored with a render pass",
    ),
    over(
        "VkAttachmentSampleCountInfoAMD.pColorAttachmentSamples",
        When("RenderingColors"),
        "ignored with a render pass",
    ),
    over(
        "VkCommandBufferInheritanceRenderingInfo.pColorAttachmentFormats",
        When("RenderingColors"),
        "ignored with a render pass, or outside one",
    ),
    over("VkCustomResolveCreateInfoEXT.pColorAttachmentFormats", When("RenderingColors"), "ignored with a render pass"),
    over(
        "VkRenderingAttachmentLocationInfo.pColorAttachmentLocations",
        When("RenderingColors"),
        "ignored with a render pass",
    ),
    over("VkPipelineColorBlendStateCreateInfo.pAttachments", When("BlendAttachments"), "ignored when all dynamic"),
    over("VkPipelineColorWriteCreateInfoEXT.pColorWriteEnables", When("ColorWriteEnables"), "ignored when dynamic"),
    over(
        "VkPipelineViewportCoarseSampleOrderStateCreateInfoNV.pCustomSampleOrders",
        When("SampleOrders"),
        "ignored when dynamic",
    ),
    over(
        "VkPipelineViewportSwizzleStateCreateInfoNV.pViewportSwizzles",
        When("ViewportSwizzles"),
        "ignored when dynamic",
    ),
    over(
        "VkPipelineViewportDepthClampControlCreateInfoEXT.pDepthClampRange",
        When("DepthClampRange"),
        "ignored when dynamic",
    ),
    over(
        "VkCommandBufferInheritanceViewportScissorInfoNV.pViewportDepths",
        When("ViewportDepths"),
        "ignored unless inherited, and the registry states no length",
    ),
    // Parameter sets of the video standards, whose flags say which of their parts are there.
    over("StdVideoH264SequenceParameterSet.pScalingLists", WhenFlag(&["seq_scaling_matrix_present_flag"]), VIDEO),
    over(
        "StdVideoH264SequenceParameterSet.pSequenceParameterSetVui",
        WhenFlag(&["vui_parameters_present_flag"]),
        VIDEO,
    ),
    over(
        "StdVideoH264SequenceParameterSetVui.pHrdParameters",
        WhenFlag(&["nal_hrd_parameters_present_flag", "vcl_hrd_parameters_present_flag"]),
        VIDEO,
    ),
    over("StdVideoH264PictureParameterSet.pScalingLists", WhenFlag(&["pic_scaling_matrix_present_flag"]), VIDEO),
    over("StdVideoH265SequenceParameterSet.pScalingLists", WhenFlag(&["sps_scaling_list_data_present_flag"]), VIDEO),
    over("StdVideoH265SequenceParameterSet.pLongTermRefPicsSps", WhenFlag(&["long_term_ref_pics_present_flag"]), VIDEO),
    over(
        "StdVideoH265SequenceParameterSet.pSequenceParameterSetVui",
        WhenFlag(&["vui_parameters_present_flag"]),
        VIDEO,
    ),
    over(
        "StdVideoH265SequenceParameterSet.pPredictorPaletteEntries",
        WhenFlag(&["sps_palette_predictor_initializers_present_flag"]),
        VIDEO,
    ),
    over("StdVideoH265PictureParameterSet.pScalingLists", WhenFlag(&["pps_scaling_list_data_present_flag"]), VIDEO),
    over(
        "StdVideoH265PictureParameterSet.pPredictorPaletteEntries",
        WhenFlag(&["pps_palette_predictor_initializers_present_flag"]),
        VIDEO,
    ),
    over("StdVideoAV1TileInfo.pMiColStarts", When("DecodedTiles"), "ignored by encoders"),
    over("StdVideoAV1TileInfo.pMiRowStarts", When("DecodedTiles"), "ignored by encoders"),
    over("StdVideoAV1TileInfo.pWidthInSbsMinus1", When("TileSizes"), "ignored by encoders of uniform tiles"),
    over("StdVideoAV1TileInfo.pHeightInSbsMinus1", When("TileSizes"), "ignored by encoders of uniform tiles"),
    over(
        "StdVideoEncodeH264ReferenceListsInfo.pRefList0ModOperations",
        WhenFlag(&["ref_pic_list_modification_flag_l0"]),
        VIDEO,
    ),
    over(
        "StdVideoEncodeH264ReferenceListsInfo.pRefList1ModOperations",
        WhenFlag(&["ref_pic_list_modification_flag_l1"]),
        VIDEO,
    ),
    over("StdVideoAV1SequenceHeader.pTimingInfo", WhenFlag(&["timing_info_present_flag"]), VIDEO),
    over("StdVideoDecodeAV1PictureInfo.pSegmentation", WhenFlag(&["segmentation_enabled"]), VIDEO),
    over("StdVideoDecodeAV1PictureInfo.pLoopRestoration", WhenFlag(&["UsesLr"]), VIDEO),
    over("StdVideoDecodeVP9PictureInfo.pSegmentation", WhenFlag(&["segmentation_enabled"]), VIDEO),
    over("VkCudaLaunchInfoNV.pExtras", Opaque, "must be null"),
    over("VkCuLaunchInfoNVX.pExtras", Opaque, "the layout belongs to CUDA"),
    // Addresses that are values or belong to the platform.
    over("VkAllocationCallbacks.pUserData", Opaque, "the application's own"),
    over("VkDebugReportCallbackCreateInfoEXT.pUserData", Opaque, "the application's own"),
    over("VkDebugUtilsMessengerCreateInfoEXT.pUserData", Opaque, "the application's own"),
    over("VkDeviceDeviceMemoryReportCreateInfoEXT.pUserData", Opaque, "the application's own"),
    over("VkInitializePerformanceApiInfoINTEL.pUserData", Opaque, "the application's own"),
    over("VkViSurfaceCreateInfoNN.window", Opaque, "a platform object"),
    over("VkIOSSurfaceCreateInfoMVK.pView", Opaque, "a platform object"),
    over("VkMacOSSurfaceCreateInfoMVK.pView", Opaque, "a platform object"),
    over("VkMetalSurfaceCreateInfoEXT.pLayer", Opaque, "a platform object"),
    over("VkImportMemoryMetalHandleInfoEXT.handle", Opaque, "a platform object"),
    over("vkGetMemoryMetalHandlePropertiesEXT.pHandle", Opaque, "a platform object"),
    over("VkImportMemoryHostPointerInfoEXT.pHostPointer", Opaque, "memory contents travel apart from calls"),
    over("vkGetMemoryHostPointerPropertiesEXT.pHostPointer", Opaque, "only the address matters"),
    over("VkMemoryMapPlacedInfoEXT.pPlacedAddress", Opaque, "only the address matters"),
    over("VkCheckpointDataNV.pCheckpointMarker", Opaque, "a value of the application"),
    over("VkCheckpointData2NV.pCheckpointMarker", Opaque, "a value of the application"),
    over("vkCmdSetCheckpointNV.pCheckpointMarker", Opaque, "a value of the application"),
    // Data whose size or shape other objects know.
    over("vkUpdateDescriptorSetWithTemplate.pData", Template, "the template has the layout"),
    over("vkCmdPushDescriptorSetWithTemplate.pData", Template, "the template has the layout"),
    over("VkPushDescriptorSetWithTemplateInfo.pData", Template, "the template has the layout"),
    over(
        "VkRayTracingShaderGroupCreateInfoKHR.pShaderGroupCaptureReplayHandle",
        Blob("ShaderGroupCaptureReplayHandle"),
        "a device property has the size",
    ),
    over(
        "VkOpaqueCaptureDescriptorDataCreateInfoEXT.opaqueCaptureDescriptorData",
        Blob("OpaqueCaptureDescriptor"),
        "a device property has the size",
    ),
    over("VkMemoryToImageCopy.pHostPointer", Blob("HostImage"), "the image's format decides"),
    over("VkImageToMemoryCopy.pHostPointer", OutputBlob("HostImage"), "the image's format decides"),
    over("VkDataGraphPipelineConstantARM.pConstantData", Blob("TensorConstant"), "the chained tensor decides"),
    over("VkOpticalFlowSessionCreatePrivateDataInfoNV.pPrivateData", Len("size"), "the registry states no length"),
    over("VkQueryLowLatencySupportNV.pQueriedLowLatencyData", OutputBlob("DriverPrivate"), "written by the driver"),
    over("vkGetLatencyTimingsLegacyNV.pTimings", Blob("DriverPrivate"), "written by the driver"),
    over("vkGetExternalComputeQueueDataNV.pData", Blob("DriverPrivate"), "a device property has the size"),
    over("vkGetShaderInstrumentationValuesARM.pMetricValues", Blob("DriverPrivate"), "properties have the size"),
    over("vkGetBufferOpaqueCaptureDescriptorDataEXT.pData", Blob("OpaqueCaptureDescriptor"), "a property has the size"),
    over("vkGetImageOpaqueCaptureDescriptorDataEXT.pData", Blob("OpaqueCaptureDescriptor"), "a property has the size"),
    over(
        "vkGetImageViewOpaqueCaptureDescriptorDataEXT.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    over(
        "vkGetSamplerOpaqueCaptureDescriptorDataEXT.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    over(
        "vkGetAccelerationStructureOpaqueCaptureDescriptorDataEXT.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    over("vkGetTensorOpaqueCaptureDescriptorDataARM.pData", Blob("OpaqueCaptureDescriptor"), "a property has the size"),
    over(
        "vkGetTensorViewOpaqueCaptureDescriptorDataARM.pData",
        Blob("OpaqueCaptureDescriptor"),
        "a property has the size",
    ),
    // Lengths that the registry does not state.
    over("VkDeviceFaultInfoEXT.pAddressInfos", LenRule("FaultAddressInfos"), "counted by another parameter"),
    over("VkDeviceFaultInfoEXT.pVendorInfos", LenRule("FaultVendorInfos"), "counted by another parameter"),
    over("VkDeviceFaultInfoEXT.pVendorBinaryData", LenRule("FaultVendorBinary"), "counted by another parameter"),
    over("VkDataGraphPipelinePropertyQueryResultARM", KeepAll, "says which property is asked for"),
    over("VkGpaDeviceClockModeInfoAMD", KeepAll, "says which mode is set"),
    over("VkExternalComputeQueueDataParamsNV", KeepAll, "says which device is asked for"),
    over("VkDeviceFaultCountsEXT", KeepAll, "capacities going in, counts coming out"),
    over(
        "StdVideoH265HrdParameters.pSubLayerHrdParametersNal",
        LenRuleWhenFlag("SubLayers", "nal_hrd_parameters_present_flag"),
        "counted by the parent, if a flag says that it is there",
    ),
    over(
        "StdVideoH265HrdParameters.pSubLayerHrdParametersVcl",
        LenRuleWhenFlag("SubLayers", "vcl_hrd_parameters_present_flag"),
        "counted by the parent, if a flag says that it is there",
    ),
    over("StdVideoEncodeAV1PictureInfo.pBufferRemovalTimes", Opaque, "counted by the session's sequence header"),
    over("vkCmdBuildAccelerationStructuresKHR.ppBuildRangeInfos", LenRule("GeometriesOfBuild"), "inner arrays"),
    over("vkBuildAccelerationStructuresKHR.ppBuildRangeInfos", LenRule("GeometriesOfBuild"), "inner arrays"),
    over(
        "vkCmdBuildAccelerationStructuresIndirectKHR.ppMaxPrimitiveCounts",
        LenRule("GeometriesOfBuild"),
        "inner arrays",
    ),
    // Outputs inside input structures.
    over("VkPipelineBinaryHandlesInfoKHR.pPipelineBinaries", Output, "filled by the driver"),
    over("VkPresentInfoKHR.pResults", Output, "filled by the driver"),
    over("VkPipelineCreationFeedbackCreateInfo.pPipelineCreationFeedback", Output, "filled by the driver"),
    over("VkPipelineCreationFeedbackCreateInfo.pPipelineStageCreationFeedbacks", Output, "filled by the driver"),
    over("VkRenderPassCreationFeedbackCreateInfoEXT.pRenderPassFeedback", Output, "filled by the driver"),
    over("VkRenderPassSubpassFeedbackCreateInfoEXT.pSubpassFeedback", Output, "filled by the driver"),
    over("VkBindMemoryStatus.pResult", Output, "filled by the driver"),
    over("VkGetLatencyMarkerInfoNV.pTimings", Output, "filled by the driver"),
    over("VkConvertCooperativeVectorMatrixInfoNV.pDstSize", Input, "a capacity going in"),
    over("VkHostAddressRangeEXT.address", Output, "filled by the driver"),
    over("VkDataGraphPipelinePropertyQueryResultARM.pData", Output, "filled by the driver"),
    over("VkLatencySurfaceCapabilitiesNV.pPresentModes", Output, "filled by the driver"),
    over("VkPhysicalDeviceHostImageCopyProperties.pCopySrcLayouts", Output, "filled by the driver"),
    over("VkPhysicalDeviceHostImageCopyProperties.pCopyDstLayouts", Output, "filled by the driver"),
    over("VkPhysicalDeviceLayeredApiPropertiesListKHR.pLayeredApis", Output, "filled by the driver"),
    over("VkSurfacePresentModeCompatibilityKHR.pPresentModes", Output, "filled by the driver"),
    // Inputs that are not const.
    over("VkClusterAccelerationStructureOpInputNV.pClustersBottomLevel", Input, "read by the driver"),
    over("VkClusterAccelerationStructureOpInputNV.pMoveObjects", Input, "read by the driver"),
    over("VkClusterAccelerationStructureOpInputNV.pTriangleClusters", Input, "read by the driver"),
    over("VkDataGraphProcessingEngineCreateInfoARM.pProcessingEngines", Input, "read by the driver"),
    over("VkPipelineBinaryDataKHR.pData", Input, "read by the driver"),
    over("VkRenderPassPerformanceCountersByRegionBeginInfoARM.pCounterIndices", Input, "read by the driver"),
    // Host addresses in place of device addresses.
    over("VkDeviceOrHostAddressKHR.hostAddress", Opaque, "the command decides; see `Work::DeviceOrHost`"),
    over("VkDeviceOrHostAddressConstKHR.hostAddress", Opaque, "the command decides; see `Work::DeviceOrHost`"),
    over("VkDeviceOrHostAddressConstAMDX.hostAddress", Opaque, "the command decides; see `Work::DeviceOrHost`"),
    // Structures that tell their own type.
    over("vkGetPipelinePropertiesEXT.pPipelineProperties", AnyStruct, "typed as the base structure"),
    over(
        "vkGetPhysicalDeviceQueueFamilyDataGraphEngineOperationPropertiesARM.pProperties",
        AnyStruct,
        "typed as the base structure",
    ),
    over("VkLayerSettingEXT.pValues", SettingValues, "the type is in a sibling"),
];

/// Pointers whose validity the specification states in prose, and that are valid whenever their count is not zero.
pub(crate) const HARMLESS: &[(&str, &str)] = &[
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

/// Commands whose outputs are written although they fail, with the reason.
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

/// How platform types are passed by value: C type, bytes, whether it is an object rather than a number.
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

pub(crate) fn find(item: &str) -> Option<How> {
    OVERRIDES.iter().find(|it| it.item == item).map(|it| it.how)
}
