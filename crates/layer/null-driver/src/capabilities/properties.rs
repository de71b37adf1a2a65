//! The driver's limits and properties, by the name of the member.
//!
//! A member that is not listed gets a value from how the registry says it is limited, so that structures of newer
//! registries are filled too. Values are at least what the specification's table of required limits demands.

use lavascope_abi::desc::{EnumDesc, Field, Layout, Ty};
use lavascope_abi::{ImageLayout, Opaque, Ptr, structure_by_type};
use lavascope_platform::pages::page_size;

use crate::calls::application_memory::ApplicationMemory;
use crate::capabilities::settings::{API_VERSION, DriverSettings};
use crate::capabilities::struct_bytes::StructBytes;
use crate::generated::limits::LIMITS;

/// How the registry says that a property is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// More is better.
    Max,
    /// Less is better.
    Min,
    /// Bits: more is better.
    Bits,
    Mask,
    Other,
}

const SAMPLES: &[f64] = &[127.0];
const MANY: &[f64] = &[1048576.0];
const DESCRIPTOR: &[f64] = &[32.0];
const K64: &[f64] = &[65535.0];
const GIB: f64 = (1u64 << 30) as f64;

/// Members that are as large as a page of the system.
const OF_PAGES: [&str; 2] = ["minImportedHostPointerAlignment", "minPlacedMemoryMapAlignment"];

/// Member, or structure and member, and its values in the order of the structure.
static VALUES: &[(&str, &[f64])] = &[
    // VkPhysicalDeviceLimits
    ("maxImageDimension1D", &[16384.0]),
    ("maxImageDimension2D", &[16384.0]),
    ("maxImageDimension3D", &[2048.0]),
    ("maxImageDimensionCube", &[16384.0]),
    ("maxImageArrayLayers", &[2048.0]),
    ("maxTexelBufferElements", &[134217728.0]),
    ("maxUniformBufferRange", &[65536.0]),
    ("maxStorageBufferRange", &[4294967295.0]),
    ("maxPushConstantsSize", &[256.0]),
    ("maxMemoryAllocationCount", &[4294967295.0]),
    ("maxSamplerAllocationCount", &[1048576.0]),
    ("bufferImageGranularity", &[1.0]),
    ("sparseAddressSpaceSize", &[1099511627776.0]),
    ("maxBoundDescriptorSets", &[32.0]),
    ("maxVertexInputAttributes", &[32.0]),
    ("maxVertexInputBindings", &[32.0]),
    ("maxVertexInputAttributeOffset", &[2047.0]),
    ("maxVertexInputBindingStride", &[2048.0]),
    ("maxVertexOutputComponents", &[128.0]),
    ("maxTessellationGenerationLevel", &[64.0]),
    ("maxTessellationPatchSize", &[32.0]),
    ("maxTessellationControlPerVertexInputComponents", &[128.0]),
    ("maxTessellationControlPerVertexOutputComponents", &[128.0]),
    ("maxTessellationControlPerPatchOutputComponents", &[120.0]),
    ("maxTessellationControlTotalOutputComponents", &[4216.0]),
    ("maxTessellationEvaluationInputComponents", &[128.0]),
    ("maxTessellationEvaluationOutputComponents", &[128.0]),
    ("maxGeometryShaderInvocations", &[32.0]),
    ("maxGeometryInputComponents", &[128.0]),
    ("maxGeometryOutputComponents", &[128.0]),
    ("maxGeometryOutputVertices", &[1024.0]),
    ("maxGeometryTotalOutputComponents", &[1024.0]),
    ("maxFragmentInputComponents", &[128.0]),
    ("maxFragmentOutputAttachments", &[8.0]),
    ("maxFragmentDualSrcAttachments", &[1.0]),
    ("maxFragmentCombinedOutputResources", &[4294967295.0]),
    ("maxComputeSharedMemorySize", &[65536.0]),
    ("maxComputeWorkGroupCount", &[2147483647.0, 65535.0, 65535.0]),
    ("maxComputeWorkGroupInvocations", &[1024.0]),
    ("maxComputeWorkGroupSize", &[1024.0, 1024.0, 64.0]),
    ("subPixelPrecisionBits", &[8.0]),
    ("subTexelPrecisionBits", &[8.0]),
    ("mipmapPrecisionBits", &[8.0]),
    ("maxDrawIndexedIndexValue", &[4294967295.0]),
    ("maxDrawIndirectCount", &[4294967295.0]),
    ("maxSamplerLodBias", &[15.0]),
    ("maxSamplerAnisotropy", &[16.0]),
    ("maxViewports", &[16.0]),
    ("maxViewportDimensions", &[16384.0]),
    ("viewportBoundsRange", &[-32768.0, 32767.0]),
    ("viewportSubPixelBits", &[8.0]),
    ("minMemoryMapAlignment", &[64.0]),
    ("minTexelBufferOffsetAlignment", &[16.0]),
    ("minUniformBufferOffsetAlignment", &[64.0]),
    ("minStorageBufferOffsetAlignment", &[16.0]),
    ("minTexelOffset", &[-8.0]),
    ("maxTexelOffset", &[7.0]),
    ("minTexelGatherOffset", &[-32.0]),
    ("maxTexelGatherOffset", &[31.0]),
    ("minInterpolationOffset", &[-0.5]),
    ("maxInterpolationOffset", &[0.4375]),
    ("subPixelInterpolationOffsetBits", &[4.0]),
    ("maxFramebufferWidth", &[16384.0]),
    ("maxFramebufferHeight", &[16384.0]),
    ("maxFramebufferLayers", &[2048.0]),
    ("framebufferColorSampleCounts", SAMPLES),
    ("framebufferDepthSampleCounts", SAMPLES),
    ("framebufferStencilSampleCounts", SAMPLES),
    ("framebufferNoAttachmentsSampleCounts", SAMPLES),
    ("framebufferIntegerColorSampleCounts", SAMPLES),
    ("maxColorAttachments", &[8.0]),
    ("sampledImageColorSampleCounts", SAMPLES),
    ("sampledImageIntegerSampleCounts", SAMPLES),
    ("sampledImageDepthSampleCounts", SAMPLES),
    ("sampledImageStencilSampleCounts", SAMPLES),
    ("storageImageSampleCounts", SAMPLES),
    ("maxSampleMaskWords", &[1.0]),
    ("timestampComputeAndGraphics", &[1.0]),
    ("timestampPeriod", &[1.0]),
    ("maxClipDistances", &[8.0]),
    ("maxCullDistances", &[8.0]),
    ("maxCombinedClipAndCullDistances", &[8.0]),
    ("discreteQueuePriorities", &[2.0]),
    ("pointSizeRange", &[1.0, 2047.9375]),
    ("lineWidthRange", &[1.0, 64.0]),
    ("pointSizeGranularity", &[0.0625]),
    ("lineWidthGranularity", &[0.0625]),
    ("strictLines", &[1.0]),
    ("standardSampleLocations", &[1.0]),
    ("optimalBufferCopyOffsetAlignment", &[1.0]),
    ("optimalBufferCopyRowPitchAlignment", &[1.0]),
    ("nonCoherentAtomSize", &[64.0]),
    // Versions and their extensions
    ("maxMultiviewViewCount", &[32.0]),
    ("maxMultiviewInstanceIndex", &[134217727.0]),
    ("subgroupSize", &[32.0]),
    ("minSubgroupSize", &[32.0]),
    ("maxSubgroupSize", &[32.0]),
    ("maxComputeWorkgroupSubgroups", &[32.0]),
    ("supportedDepthResolveModes", &[15.0]),
    ("supportedStencilResolveModes", &[13.0]),
    ("maxPerSetDescriptors", MANY),
    ("maxBufferSize", &[16.0 * GIB]),
    ("maxTimelineSemaphoreValueDifference", &[9223372036854775808.0]),
    ("maxInlineUniformBlockSize", &[256.0]),
    ("maxInlineUniformTotalSize", &[65536.0]),
    ("maxPushDescriptors", &[256.0]),
    ("maxCombinedImageSamplerDescriptorCount", &[3.0]),
    ("maxVertexAttribDivisor", &[4294967295.0]),
    ("lineSubPixelPrecisionBits", &[8.0]),
    ("storageTexelBufferOffsetAlignmentBytes", &[16.0]),
    ("uniformTexelBufferOffsetAlignmentBytes", &[16.0]),
    ("defaultRobustnessStorageBuffers", &[2.0]),
    ("defaultRobustnessUniformBuffers", &[2.0]),
    ("defaultRobustnessVertexInputs", &[2.0]),
    ("defaultRobustnessImages", &[2.0]),
    ("conformanceVersion", &[1.0, 4.0, 0.0, 0.0]),
    ("denormBehaviorIndependence", &[1.0]),
    ("roundingModeIndependence", &[1.0]),
    ("deviceLUIDValid", &[0.0]),
    ("protectedNoFault", &[1.0]),
    // Extensions
    ("robustStorageBufferAccessSizeAlignment", &[4.0]),
    ("robustUniformBufferAccessSizeAlignment", &[64.0]),
    ("maxDiscardRectangles", &[8.0]),
    ("advancedBlendMaxColorAttachments", &[8.0]),
    ("maxSampleLocationGridSize", &[2.0]),
    ("sampleLocationCoordinateRange", &[0.0, 0.9375]),
    ("sampleLocationSubPixelBits", &[4.0]),
    ("primitiveOverestimationSize", &[0.0]),
    ("maxExtraPrimitiveOverestimationSize", &[0.75]),
    ("extraPrimitiveOverestimationSizeGranularity", &[0.25]),
    ("maxTransformFeedbackStreams", &[4.0]),
    ("maxTransformFeedbackBuffers", &[4.0]),
    ("maxTransformFeedbackBufferSize", &[4294967295.0]),
    ("maxTransformFeedbackStreamDataSize", &[2048.0]),
    ("maxTransformFeedbackBufferDataSize", &[512.0]),
    ("maxTransformFeedbackBufferDataStride", &[2048.0]),
    ("shadingRateTexelSize", &[16.0]),
    ("shadingRatePaletteSize", &[16.0]),
    ("shadingRateMaxCoarseSamples", &[16.0]),
    ("maxTaskWorkGroupTotalCount", &[4194304.0]),
    ("maxTaskWorkGroupCount", K64),
    ("maxTaskWorkGroupInvocations", &[1024.0]),
    ("maxTaskWorkGroupSize", &[1024.0]),
    ("maxTaskPayloadSize", &[16384.0]),
    ("maxTaskSharedMemorySize", &[65536.0]),
    ("maxTaskPayloadAndSharedMemorySize", &[65536.0]),
    ("maxTaskTotalMemorySize", &[65536.0]),
    ("maxTaskOutputCount", K64),
    ("maxDrawMeshTasksCount", K64),
    ("maxMeshWorkGroupTotalCount", &[4194304.0]),
    ("maxMeshWorkGroupCount", K64),
    ("maxMeshWorkGroupInvocations", &[1024.0]),
    ("maxMeshWorkGroupSize", &[1024.0]),
    ("maxMeshSharedMemorySize", &[65536.0]),
    ("maxMeshTotalMemorySize", &[65536.0]),
    ("maxMeshPayloadAndSharedMemorySize", &[65536.0]),
    ("maxMeshOutputMemorySize", &[65536.0]),
    ("maxMeshPayloadAndOutputMemorySize", &[65536.0]),
    ("maxMeshOutputComponents", &[128.0]),
    ("maxMeshOutputVertices", &[256.0]),
    ("maxMeshOutputPrimitives", &[512.0]),
    ("maxMeshOutputLayers", &[2048.0]),
    ("maxMeshMultiviewViewCount", &[6.0]),
    ("meshOutputPerVertexGranularity", &[32.0]),
    ("meshOutputPerPrimitiveGranularity", &[32.0]),
    ("maxPreferredTaskWorkGroupInvocations", &[32.0]),
    ("maxPreferredMeshWorkGroupInvocations", &[32.0]),
    ("maxGeometryCount", &[16777215.0]),
    ("maxInstanceCount", &[16777215.0]),
    ("maxPrimitiveCount", &[536870911.0]),
    ("maxTriangleCount", &[536870911.0]),
    ("minAccelerationStructureScratchOffsetAlignment", &[128.0]),
    ("shaderGroupHandleSize", &[32.0]),
    ("maxRayRecursionDepth", &[31.0]),
    ("maxRecursionDepth", &[31.0]),
    ("maxShaderGroupStride", &[4096.0]),
    ("shaderGroupBaseAlignment", &[64.0]),
    ("shaderGroupHandleCaptureReplaySize", &[32.0]),
    ("maxRayDispatchInvocationCount", &[1073741824.0]),
    ("shaderGroupHandleAlignment", &[32.0]),
    ("maxRayHitAttributeSize", &[32.0]),
    ("minFragmentDensityTexelSize", &[8.0]),
    ("maxFragmentDensityTexelSize", &[64.0]),
    ("fragmentDensityOffsetGranularity", &[8.0]),
    ("minFragmentShadingRateAttachmentTexelSize", &[8.0]),
    ("maxFragmentShadingRateAttachmentTexelSize", &[32.0]),
    ("maxFragmentShadingRateAttachmentTexelSizeAspectRatio", &[4.0]),
    ("maxFragmentSize", &[4.0]),
    ("maxFragmentSizeAspectRatio", &[4.0]),
    ("maxFragmentShadingRateCoverageSamples", &[16.0]),
    ("maxFragmentShadingRateRasterizationSamples", &[16.0]),
    ("maxFragmentShadingRateInvocationCount", &[16.0]),
    ("shaderSMCount", &[16.0]),
    ("shaderWarpsPerSM", &[32.0]),
    ("maxSubpassShadingWorkgroupSizeAspectRatio", &[4.0]),
    ("maxCustomBorderColorSamplers", &[4096.0]),
    ("maxCommandBufferNestingLevel", &[4294967295.0]),
    ("maxMultiDrawCount", K64),
    ("maxShaderAbortMessageSize", &[65536.0]),
    ("maxOpacity2StateSubdivisionLevel", &[12.0]),
    ("maxOpacity4StateSubdivisionLevel", &[12.0]),
    ("maxDisplacementMicromapSubdivisionLevel", &[5.0]),
    ("descriptorBufferOffsetAlignment", &[64.0]),
    ("maxDescriptorBufferBindings", &[32.0]),
    ("maxResourceDescriptorBufferBindings", &[32.0]),
    ("maxSamplerDescriptorBufferBindings", &[32.0]),
    ("maxEmbeddedImmutableSamplerBindings", &[32.0]),
    ("maxEmbeddedImmutableSamplers", &[2048.0]),
    ("bufferCaptureReplayDescriptorDataSize", &[8.0]),
    ("imageCaptureReplayDescriptorDataSize", &[8.0]),
    ("imageViewCaptureReplayDescriptorDataSize", &[8.0]),
    ("samplerCaptureReplayDescriptorDataSize", &[8.0]),
    ("accelerationStructureCaptureReplayDescriptorDataSize", &[8.0]),
    ("tensorCaptureReplayDescriptorDataSize", &[8.0]),
    ("tensorViewCaptureReplayDescriptorDataSize", &[8.0]),
    ("imageCaptureReplayOpaqueDataSize", &[8.0]),
    ("tensorCaptureReplayOpaqueDataSize", &[8.0]),
    ("samplerDescriptorSize", DESCRIPTOR),
    ("combinedImageSamplerDescriptorSize", DESCRIPTOR),
    ("sampledImageDescriptorSize", DESCRIPTOR),
    ("storageImageDescriptorSize", DESCRIPTOR),
    ("uniformTexelBufferDescriptorSize", DESCRIPTOR),
    ("robustUniformTexelBufferDescriptorSize", DESCRIPTOR),
    ("storageTexelBufferDescriptorSize", DESCRIPTOR),
    ("robustStorageTexelBufferDescriptorSize", DESCRIPTOR),
    ("uniformBufferDescriptorSize", DESCRIPTOR),
    ("robustUniformBufferDescriptorSize", DESCRIPTOR),
    ("storageBufferDescriptorSize", DESCRIPTOR),
    ("robustStorageBufferDescriptorSize", DESCRIPTOR),
    ("inputAttachmentDescriptorSize", DESCRIPTOR),
    ("accelerationStructureDescriptorSize", DESCRIPTOR),
    ("combinedImageSamplerDensityMapDescriptorSize", DESCRIPTOR),
    ("tensorDescriptorSize", DESCRIPTOR),
    ("imageDescriptorSize", DESCRIPTOR),
    ("bufferDescriptorSize", DESCRIPTOR),
    ("samplerDescriptorAlignment", DESCRIPTOR),
    ("imageDescriptorAlignment", DESCRIPTOR),
    ("bufferDescriptorAlignment", DESCRIPTOR),
    ("tensorDescriptorAlignment", DESCRIPTOR),
    ("samplerHeapAlignment", &[64.0]),
    ("resourceHeapAlignment", &[64.0]),
    ("maxSamplerHeapSize", &[1048576.0]),
    ("maxResourceHeapSize", &[1073741824.0]),
    ("minSamplerHeapReservedRange", &[4096.0]),
    ("minSamplerHeapReservedRangeWithEmbedded", &[4096.0]),
    ("minResourceHeapReservedRange", &[4096.0]),
    ("maxPushDataSize", &[256.0]),
    ("maxDescriptorHeapEmbeddedSamplers", &[2048.0]),
    ("samplerYcbcrConversionCount", &[1.0]),
    ("samplerDescriptorBufferAddressSpaceSize", &[4.0 * GIB]),
    ("resourceDescriptorBufferAddressSpaceSize", &[4.0 * GIB]),
    ("descriptorBufferAddressSpaceSize", &[4.0 * GIB]),
    ("maxSamplerDescriptorBufferRange", &[GIB]),
    ("maxResourceDescriptorBufferRange", &[GIB]),
    ("executionGraphDispatchAddressAlignment", &[64.0]),
    ("minWidth", &[32.0]),
    ("minHeight", &[32.0]),
    ("maxWidth", &[8192.0]),
    ("maxHeight", &[8192.0]),
    ("supportedImageAlignmentMask", &[65536.0]),
    ("shaderCoreMask", &[65535.0]),
    ("shaderCoreCount", &[16.0]),
    ("numMetrics", &[0.0]),
    ("computeCapabilityMajor", &[9.0]),
    ("computeCapabilityMinor", &[0.0]),
    ("splitBarrierReservedSharedMemory", &[0.0]),
    ("cooperativeMatrixWorkgroupScopeReservedSharedMemory", &[0.0]),
    ("extendedSparseAddressSpaceSize", &[1099511627776.0]),
];

/// Texts and identities.
static TEXTS: &[(&str, &str)] = &[
    ("driverName", "Lavascope null driver"),
    ("driverInfo", "accepts everything, draws nothing"),
    ("deviceUUID", "lavascope-null-0"),
    ("driverUUID", "lavascope-driver"),
    ("optimalTilingLayoutUUID", "lavascope-linear"),
    ("shaderModuleIdentifierAlgorithmUUID", "lavascope-shader"),
    ("shaderBinaryUUID", "lavascope-shader"),
    ("pipelineCacheUUID", PIPELINE_CACHE_UUID),
    ("deviceName", "Lavascope null device"),
];

/// Sixteen letters that stand in pipeline caches.
pub(crate) const PIPELINE_CACHE_UUID: &str = "lavascope-caches";
/// A vendor id without a vendor.
pub(crate) const VENDOR_ID: u32 = 0x10_1a7a;
pub(crate) const DEVICE_ID: u32 = 0x0001;

/// The layouts between which host copies work: all layouts with defined contents.
const COPY_LAYOUTS: &[ImageLayout] = &[
    ImageLayout::GENERAL,
    ImageLayout::SHADER_READ_ONLY_OPTIMAL,
    ImageLayout::TRANSFER_SRC_OPTIMAL,
    ImageLayout::TRANSFER_DST_OPTIMAL,
    ImageLayout::PRESENT_SRC_KHR,
];

/// Fills an output structure of `vkGetPhysicalDeviceProperties2` that lies in `bytes`, less its type and chain.
pub(crate) fn fill(layout: &'static Layout, bytes: &mut StructBytes<'_>, settings: &DriverSettings) {
    let limits = LIMITS.binary_search_by_key(&layout.name, |it| it.0).map(|at| LIMITS[at].1).unwrap_or_default();
    // Capacities are the application's until the lists are written.
    let is_ours = |it: &&Field| !matches!(it.name, "sType" | "copySrcLayoutCount" | "copyDstLayoutCount");
    for field in layout.fields.iter().filter(is_ours) {
        let limit = limits.iter().find(|it| it.0 == field.name).map_or(Limit::Other, |it| it.1);
        fill_member(field, limit, bytes, settings);
    }
    if let Some(profile) = &settings.profile {
        profile.override_properties(layout, bytes);
    }
}

fn fill_member(field: &'static Field, limit: Limit, bytes: &mut StructBytes<'_>, settings: &DriverSettings) {
    if let Ty::Struct(inner) = &field.ty
        && matches!(inner.name, "VkPhysicalDeviceLimits" | "VkPhysicalDeviceSparseProperties")
    {
        let (at, size) = (field.at as usize, inner.size as usize);
        fill(inner, &mut StructBytes(&mut bytes.0[at..at + size]), settings);
        return;
    }
    if let Some(text) = TEXTS.iter().find(|it| it.0 == field.name) {
        let at = field.at as usize;
        bytes.0[at..at + text.1.len()].copy_from_slice(text.1.as_bytes());
        return;
    }
    let given = VALUES.iter().find(|it| it.0 == field.name).map(|it| it.1);
    let one = match OF_PAGES.contains(&field.name) {
        true => [page_size() as f64],
        false => [value(field, limit, settings)],
    };
    let values = given.unwrap_or(&one);
    let last = values.last().copied().unwrap_or_default();
    bytes.numbers(0, field, &mut values.iter().copied().chain(std::iter::repeat(last)));
}

/// The value of a member that is not listed.
fn value(field: &Field, limit: Limit, settings: &DriverSettings) -> f64 {
    match (field.name, &field.ty, limit) {
        ("apiVersion" | "driverVersion", ..) => f64::from(API_VERSION),
        ("vendorID", ..) => f64::from(VENDOR_ID),
        ("deviceID", ..) => f64::from(DEVICE_ID),
        ("maxMemoryAllocationSize", ..) => settings.heap_bytes as f64,
        (name, Ty::U32, Limit::Max) if name.contains("Descriptor") || name.contains("Resources") => 1048576.0,
        (_, Ty::Flags(desc), Limit::Mask | Limit::Max) => single_bits(desc),
        (_, Ty::Bool32, _) => 1.0,
        (_, Ty::F32, Limit::Max) => 64.0,
        (_, Ty::U64 | Ty::I64 | Ty::Size, Limit::Max) => GIB,
        (_, _, Limit::Max) => 1024.0,
        (_, _, Limit::Min) => 64.0,
        (_, _, Limit::Bits) => 8.0,
        _ => 0.0,
    }
}

/// All bits of a mask that have a name.
fn single_bits(desc: &EnumDesc) -> f64 {
    let is_bit = |it: &&(i64, &str)| (it.0 as u64).is_power_of_two();
    desc.values.iter().filter(is_bit).fold(0u64, |bits, it| bits | it.0 as u64) as f64
}

/// Fills every known structure of a chain behind `VkPhysicalDeviceProperties2`.
pub(crate) fn fill_chain(c: ApplicationMemory<'_>, first: Ptr<Opaque>, settings: &DriverSettings) {
    for (at, s_type) in c.chain(first) {
        let Some(layout) = structure_by_type(s_type) else { continue };
        if LIMITS.binary_search_by_key(&layout.name, |it| it.0).is_err() {
            continue;
        }
        fill(layout, &mut StructBytes(c.slice_mut(at.cast(), layout.size)), settings);
        copy_layouts(c, at, layout);
    }
}

/// The two lists of layouts, whose counts the application gives.
fn copy_layouts(c: ApplicationMemory<'_>, at: Ptr<Opaque>, layout: &Layout) {
    let place = |name: &str| layout.fields.iter().find(|it| it.name == name).map(|it| u64::from(it.at));
    for (count, list) in [("copySrcLayoutCount", "pCopySrcLayouts"), ("copyDstLayoutCount", "pCopyDstLayouts")] {
        let (Some(count), Some(list)) = (place(count), place(list)) else { continue };
        let pointer = Ptr::<Ptr<ImageLayout>>::new(at.0 + list);
        let list = c.get(pointer).copied().unwrap_or_default();
        let count = Ptr::new(at.0 + count);
        let _ = c.enumerate_values(count, list, COPY_LAYOUTS);
    }
}
