//! Emits the entry points of `null-driver`, its extensions, and the limits of its properties.
//!
//! Most commands need only the tables: they succeed, create handles and write zeros. Commands with handwritten
//! functions are in [`BY_HAND`], with the module of the driver.

use std::path::PathBuf;

use lavascope_registry::{EnumExtensionValue, Registry, VersionOrExtension, VersionOrExtensionKind};

use crate::Files;
use crate::emit::text::SourceText;
use crate::model::names;
use crate::model::*;

/// The module of the driver, and the commands that have a function in it.
const BY_HAND: &[(&str, &[&str])] = &[
    (
        "instance",
        &[
            "vkCreateInstance",
            "vkDestroyInstance",
            "vkEnumerateDeviceExtensionProperties",
            "vkEnumerateInstanceExtensionProperties",
            "vkEnumerateInstanceVersion",
            "vkEnumeratePhysicalDeviceGroups",
            "vkEnumeratePhysicalDevices",
            "vkGetDeviceProcAddr",
            "vkGetInstanceProcAddr",
        ],
    ),
    (
        "physical_device",
        &[
            "vkGetPhysicalDeviceCalibrateableTimeDomainsKHR",
            "vkGetPhysicalDeviceFeatures",
            "vkGetPhysicalDeviceFeatures2",
            "vkGetPhysicalDeviceFragmentShadingRatesKHR",
            "vkGetPhysicalDeviceMemoryProperties",
            "vkGetPhysicalDeviceMemoryProperties2",
            "vkGetPhysicalDeviceMultisamplePropertiesEXT",
            "vkGetPhysicalDeviceProperties",
            "vkGetPhysicalDeviceProperties2",
            "vkGetPhysicalDeviceQueueFamilyProperties",
            "vkGetPhysicalDeviceQueueFamilyProperties2",
        ],
    ),
    (
        "formats",
        &[
            "vkGetPhysicalDeviceFormatProperties",
            "vkGetPhysicalDeviceFormatProperties2",
            "vkGetPhysicalDeviceImageFormatProperties",
            "vkGetPhysicalDeviceImageFormatProperties2",
            "vkGetPhysicalDeviceSparseImageFormatProperties",
            "vkGetPhysicalDeviceSparseImageFormatProperties2",
        ],
    ),
    (
        "device",
        &[
            "vkCreateDevice",
            "vkCreateExternalComputeQueueNV",
            "vkDestroyDevice",
            "vkDestroyExternalComputeQueueNV",
            "vkDeviceWaitIdle",
            "vkGetCalibratedTimestampsKHR",
            "vkGetDeviceFaultInfoEXT",
            "vkGetDeviceGroupPeerMemoryFeatures",
            "vkGetDeviceQueue",
            "vkGetDeviceQueue2",
            "vkGetRenderAreaGranularity",
            "vkGetRenderingAreaGranularity",
            "vkQueueWaitIdle",
        ],
    ),
    (
        "memory",
        &[
            "vkAllocateMemory",
            "vkFreeMemory",
            "vkGetDeviceMemoryCommitment",
            "vkGetDeviceMemoryOpaqueCaptureAddress",
            "vkGetMemoryFdKHR",
            "vkGetMemoryFdPropertiesKHR",
            "vkGetMemoryHostPointerPropertiesEXT",
            "vkMapMemory",
            "vkMapMemory2",
            "vkUnmapMemory",
            "vkUnmapMemory2",
        ],
    ),
    (
        "buffers",
        &[
            "vkBindBufferMemory",
            "vkBindBufferMemory2",
            "vkCreateBuffer",
            "vkDestroyBuffer",
            "vkGetBufferDeviceAddress",
            "vkGetBufferMemoryRequirements",
            "vkGetBufferMemoryRequirements2",
            "vkGetBufferOpaqueCaptureAddress",
            "vkGetDeviceBufferMemoryRequirements",
        ],
    ),
    (
        "images",
        &[
            "vkBindImageMemory",
            "vkBindImageMemory2",
            "vkCreateImage",
            "vkDestroyImage",
            "vkGetDeviceImageMemoryRequirements",
            "vkGetDeviceImageSparseMemoryRequirements",
            "vkGetDeviceImageSubresourceLayout",
            "vkGetImageMemoryRequirements",
            "vkGetImageMemoryRequirements2",
            "vkGetImageSparseMemoryRequirements",
            "vkGetImageSparseMemoryRequirements2",
            "vkGetImageSubresourceLayout",
            "vkGetImageSubresourceLayout2",
        ],
    ),
    (
        "sync",
        &[
            "vkCreateEvent",
            "vkCreateFence",
            "vkCreateSemaphore",
            "vkDestroyEvent",
            "vkDestroyFence",
            "vkDestroySemaphore",
            "vkGetEventStatus",
            "vkGetFenceStatus",
            "vkGetSemaphoreCounterValue",
            "vkResetEvent",
            "vkResetFences",
            "vkSetEvent",
            "vkSignalSemaphore",
            "vkWaitForFences",
            "vkWaitSemaphores",
        ],
    ),
    (
        "external",
        &[
            "vkGetFenceFdKHR",
            "vkGetPhysicalDeviceExternalBufferProperties",
            "vkGetPhysicalDeviceExternalFenceProperties",
            "vkGetPhysicalDeviceExternalSemaphoreProperties",
            "vkGetSemaphoreFdKHR",
            "vkImportFenceFdKHR",
            "vkImportSemaphoreFdKHR",
        ],
    ),
    ("host_copy", &["vkCopyImageToImage", "vkCopyImageToMemory", "vkCopyMemoryToImage"]),
    ("submit", &["vkQueueBindSparse", "vkQueueSubmit", "vkQueueSubmit2"]),
    (
        "commands",
        &[
            "vkAllocateCommandBuffers",
            "vkBeginCommandBuffer",
            "vkCmdEndQuery",
            "vkCmdEndQueryIndexedEXT",
            "vkCmdExecuteCommands",
            "vkCmdResetEvent",
            "vkCmdResetEvent2",
            "vkCmdResetQueryPool",
            "vkCmdSetEvent",
            "vkCmdSetEvent2",
            "vkCmdWaitEvents",
            "vkCmdWaitEvents2",
            "vkCmdWriteAccelerationStructuresPropertiesKHR",
            "vkCmdWriteAccelerationStructuresPropertiesNV",
            "vkCmdWriteMicromapsPropertiesEXT",
            "vkCmdWriteTimestamp",
            "vkCmdWriteTimestamp2",
            "vkCreateCommandPool",
            "vkDestroyCommandPool",
            "vkFreeCommandBuffers",
            "vkResetCommandBuffer",
            "vkResetCommandPool",
        ],
    ),
    ("queries", &["vkCreateQueryPool", "vkDestroyQueryPool", "vkGetQueryPoolResults", "vkResetQueryPool"]),
    (
        "surface",
        &[
            "vkGetDeviceGroupPresentCapabilitiesKHR",
            "vkGetDeviceGroupSurfacePresentModesKHR",
            "vkGetPhysicalDevicePresentRectanglesKHR",
            "vkGetPhysicalDeviceSurfaceCapabilities2EXT",
            "vkGetPhysicalDeviceSurfaceCapabilities2KHR",
            "vkGetPhysicalDeviceSurfaceCapabilitiesKHR",
            "vkGetPhysicalDeviceSurfaceFormats2KHR",
            "vkGetPhysicalDeviceSurfaceFormatsKHR",
            "vkGetPhysicalDeviceSurfacePresentModes2EXT",
            "vkGetPhysicalDeviceSurfacePresentModesKHR",
            "vkGetPhysicalDeviceSurfaceSupportKHR",
        ],
    ),
    (
        "swapchain",
        &[
            "vkAcquireNextImage2KHR",
            "vkAcquireNextImageKHR",
            "vkCreateSharedSwapchainsKHR",
            "vkCreateSwapchainKHR",
            "vkDestroySwapchainKHR",
            "vkGetRefreshCycleDurationGOOGLE",
            "vkGetSwapchainImagesKHR",
            "vkGetSwapchainTimingPropertiesEXT",
            "vkQueuePresentKHR",
            "vkReleaseSwapchainImagesKHR",
            "vkWaitForPresent2KHR",
            "vkWaitForPresentKHR",
        ],
    ),
    (
        "descriptors",
        &[
            "vkAllocateDescriptorSets",
            "vkCreateDescriptorPool",
            "vkCreateDescriptorSetLayout",
            "vkDestroyDescriptorPool",
            "vkDestroyDescriptorSetLayout",
            "vkFreeDescriptorSets",
            "vkGetDescriptorEXT",
            "vkGetDescriptorSetLayoutBindingOffsetEXT",
            "vkGetDescriptorSetLayoutSizeEXT",
            "vkGetDescriptorSetLayoutSupport",
            "vkGetPhysicalDeviceDescriptorSizeEXT",
            "vkResetDescriptorPool",
            "vkWriteResourceDescriptorsEXT",
            "vkWriteSamplerDescriptorsEXT",
        ],
    ),
    ("compiler", &["vkCreateComputePipelines", "vkCreateGraphicsPipelines", "vkCreateShaderModule"]),
    (
        "pipelines",
        &[
            "vkCreatePipelineBinariesKHR",
            "vkCreateShadersEXT",
            "vkDestroyShaderEXT",
            "vkGetCudaModuleCacheNV",
            "vkGetDeferredOperationMaxConcurrencyKHR",
            "vkGetDeferredOperationResultKHR",
            "vkGetImageViewAddressNVX",
            "vkGetImageViewHandle64NVX",
            "vkGetImageViewHandleNVX",
            "vkGetPipelineBinaryDataKHR",
            "vkGetPipelineCacheData",
            "vkGetPipelineIndirectDeviceAddressNV",
            "vkGetPipelineKeyKHR",
            "vkGetShaderBinaryDataEXT",
            "vkGetShaderModuleCreateInfoIdentifierEXT",
            "vkGetShaderModuleIdentifierEXT",
            "vkGetValidationCacheDataEXT",
        ],
    ),
    ("private_data", &["vkCreatePrivateDataSlot", "vkDestroyPrivateDataSlot", "vkGetPrivateData", "vkSetPrivateData"]),
    (
        "ray_tracing",
        &[
            "vkCreateAccelerationStructure2KHR",
            "vkCreateAccelerationStructureKHR",
            "vkDestroyAccelerationStructureKHR",
            "vkGetAccelerationStructureBuildSizesKHR",
            "vkGetAccelerationStructureDeviceAddressKHR",
            "vkGetAccelerationStructureHandleNV",
            "vkGetAccelerationStructureMemoryRequirementsNV",
            "vkGetClusterAccelerationStructureBuildSizesNV",
            "vkGetDeviceAccelerationStructureCompatibilityKHR",
            "vkGetDeviceMicromapCompatibilityEXT",
            "vkGetMicromapBuildSizesEXT",
            "vkGetPartitionedAccelerationStructuresBuildSizesNV",
            "vkGetRayTracingCaptureReplayShaderGroupHandlesKHR",
            "vkGetRayTracingShaderGroupHandlesKHR",
            "vkGetRayTracingShaderGroupStackSizeKHR",
            "vkWriteAccelerationStructuresPropertiesKHR",
            "vkWriteMicromapsPropertiesEXT",
        ],
    ),
    (
        "video",
        &[
            "vkGetDataGraphPipelineSessionMemoryRequirementsARM",
            "vkGetDeviceTensorMemoryRequirementsARM",
            "vkGetGeneratedCommandsMemoryRequirementsEXT",
            "vkGetGeneratedCommandsMemoryRequirementsNV",
            "vkGetPhysicalDeviceVideoCapabilitiesKHR",
            "vkGetPhysicalDeviceVideoFormatPropertiesKHR",
            "vkGetPipelineIndirectMemoryRequirementsNV",
            "vkGetTensorMemoryRequirementsARM",
            "vkGetVideoSessionMemoryRequirementsKHR",
        ],
    ),
];

/// Recorded commands that execute only with `execute=transfer`. Without it they do nothing, like a draw.
const TRANSFER: &[(&str, &[&str])] = &[(
    "transfer",
    &[
        "vkCmdClearColorImage",
        "vkCmdCopyBuffer",
        "vkCmdCopyBuffer2",
        "vkCmdCopyBufferToImage",
        "vkCmdCopyBufferToImage2",
        "vkCmdCopyImage",
        "vkCmdCopyImage2",
        "vkCmdCopyImageToBuffer",
        "vkCmdCopyImageToBuffer2",
        "vkCmdCopyQueryPoolResults",
        "vkCmdFillBuffer",
        "vkCmdUpdateBuffer",
    ],
)];

/// Platforms on which this driver never runs.
const FOREIGN_PLATFORMS: &[&str] =
    &["win32", "android", "fuchsia", "ggp", "metal", "macos", "ios", "screen", "ohos", "directfb", "vi", "sci", "sec"];

/// Extensions that promise something that this driver does not provide.
const UNTRUE: &[(&str, &str)] = &[
    ("VK_KHR_portability_subset", "the driver leaves nothing out"),
    ("VK_KHR_portability_enumeration", "is the loader's"),
    ("VK_LUNARG_direct_driver_loading", "is the loader's"),
    ("VK_EXT_layer_settings", "is for layers"),
    ("VK_EXT_validation_features", "is for layers"),
    ("VK_EXT_validation_flags", "is for layers"),
    ("VK_EXT_validation_cache", "is for layers"),
    ("VK_NV_external_compute_queue", "its queues are dispatchable handles that no loader makes"),
];

pub(crate) fn emit(registry: &Registry, model: &Model, files: &mut Files) {
    let folder = PathBuf::from("crates/layer/null-driver/src/generated");
    files.insert(folder.join("mod.rs"), entry_points(model));
    files.insert(folder.join("extensions.rs"), extensions(registry));
    files.insert(folder.join("limits.rs"), limits(registry));
}

/// Every command once: empty, from the tables, or handwritten.
fn entry_points(model: &Model) -> String {
    let mut text = SourceText::rust("null-driver", "null_driver");
    text.blank();
    text.line("pub(crate) mod extensions;\npub(crate) mod limits;");
    let by_hand: Vec<&str> = BY_HAND.iter().flat_map(|it| it.1).copied().collect();
    let others = || model.commands.values().filter(|it| !by_hand.contains(&it.c_name.as_str()));
    text.line("\nempty! {");
    for other in others().filter(|it| !writes(it)) {
        let types: Vec<&str> = other.parameters.fields.iter().map(|it| it.rust_type.as_str()).collect();
        let name = names::snake_case(&other.rust_name);
        let head = format!("{name}: {}, Fn{}", other.rust_name, other.rust_name);
        text.line(format!("    {head} = fn({}) -> {};", types.join(", "), result(other)));
    }
    text.line("}\n\nby_table! {");
    for other in others().filter(|it| writes(it)) {
        text.line(format!("    {}", shim(other, "")));
    }
    text.line("}");
    for (macro_name, groups) in [("by_hand", BY_HAND), ("by_hand_in_transfers", TRANSFER)] {
        text.line(format!("\n{macro_name}! {{"));
        for (module, names) in groups {
            for command_model in names.iter().filter_map(|it| model.commands.get(*it)) {
                text.line(format!("    {}", shim(command_model, &format!("{module} "))));
            }
        }
        text.line("}");
    }
    text.finish()
}

/// How the driver implements a command.
pub(crate) fn verdict(command: &CommandModel) -> &'static str {
    let is_in = |groups: &[(&str, &[&str])]| groups.iter().any(|it| it.1.contains(&command.c_name.as_str()));
    match () {
        () if is_in(TRANSFER) => "executed on request",
        () if is_in(BY_HAND) => "by hand",
        () if writes(command) => "by table",
        () => "accepted",
    }
}

/// Whether a command has outputs, or must report that it is not deferred.
fn writes(command: &CommandModel) -> bool {
    if command.parameters.fields.iter().any(|it| it.c_name == "deferredOperation") {
        return true;
    }
    let sources = command.outputs.as_ref().map(|it| it.sources.as_slice()).unwrap_or_default();
    sources.iter().any(|it| matches!(it, OutputSource::Parameter { .. }))
}

fn result(command: &CommandModel) -> &str {
    if command.result_type.is_empty() { "()" } else { &command.result_type }
}

fn shim(command_model: &CommandModel, module: &str) -> String {
    let parameters: Vec<String> =
        command_model.parameters.fields.iter().map(|it| format!("{}: {}", it.rust_name, it.rust_type)).collect();
    let name = names::snake_case(&command_model.rust_name);
    let head = format!(
        "{name}: {}, {}, Fn{}",
        command_model.rust_name, command_model.parameters.rust_name, command_model.rust_name
    );
    format!("{head} = {module}fn({}) -> {};", parameters.join(", "), result(command_model))
}

/// The versions and extensions of the driver, with their commands.
fn extensions(registry: &Registry) -> String {
    let mut text = SourceText::rust("null-driver", "null_driver");
    text.line("\nuse crate::capabilities::extensions::{ApiBlock, ApiBlockKind};\n");
    text.line("/// Sorted by name.\npub(crate) static BLOCKS: &[ApiBlock] = &[");
    let mut blocks: Vec<&VersionOrExtension> =
        registry.versions_and_extensions.iter().filter(|it| is_supported(it)).collect();
    blocks.sort_by(|a, b| a.name.cmp(&b.name));
    for block in blocks {
        let kind = match block.kind {
            VersionOrExtensionKind::Version => "Version",
            VersionOrExtensionKind::InstanceExtension => "Instance",
            VersionOrExtensionKind::DeviceExtension | VersionOrExtensionKind::VideoHeader => "Device",
        };
        let commands: Vec<String> = block.commands.iter().map(|it| format!("\"{it}\"")).collect();
        let version = spec_version(block);
        let (name, commands) = (&block.name, commands.join(", "));
        text.line(format!(
            "    ApiBlock {{ name: c\"{name}\", kind: ApiBlockKind::{kind}, spec_version: {version}, commands: &[{commands}] }},"
        ));
    }
    text.line("];");
    text.finish()
}

fn is_supported(block: &VersionOrExtension) -> bool {
    let is_foreign = block.platform.as_deref().is_some_and(|it| FOREIGN_PLATFORMS.contains(&it));
    let is_untrue = UNTRUE.iter().any(|it| it.0 == block.name);
    block.kind != VersionOrExtensionKind::VideoHeader && !is_foreign && !is_untrue
}

fn spec_version(block: &VersionOrExtension) -> i64 {
    let value = block.enums.iter().find(|it| it.name.ends_with("_SPEC_VERSION"));
    match value.map(|it| &it.value) {
        Some(EnumExtensionValue::Number(number)) => *number,
        Some(EnumExtensionValue::Text(text)) => text.parse().unwrap_or(1),
        _ => 1,
    }
}

/// The limit of each member of a property structure.
fn limits(registry: &Registry) -> String {
    let mut text = SourceText::rust("null-driver", "null_driver");
    text.line("\nuse crate::capabilities::properties::Limit;\n");
    text.line("/// Structure, and for each member how it is limited. Sorted by name.");
    text.line("pub(crate) static LIMITS: &[(&str, &[(&str, Limit)])] = &[");
    for (name, structure) in &registry.structs {
        let is_property = structure.extends.iter().any(|it| it == "VkPhysicalDeviceProperties2");
        if !is_property && name != "VkPhysicalDeviceLimits" && name != "VkPhysicalDeviceSparseProperties" {
            continue;
        }
        let member = |it: &lavascope_registry::RegistryField| Some((it.name.clone(), limit(it.limit_type.as_deref()?)));
        let members: Vec<String> =
            structure.fields.iter().filter_map(member).map(|it| format!("(\"{}\", Limit::{})", it.0, it.1)).collect();
        text.line(format!("    (\"{name}\", &[{}]),", members.join(", ")));
    }
    text.line("];");
    text.finish()
}

fn limit(limit_type: &str) -> &'static str {
    match limit_type {
        "max" | "max,pot" => "Max",
        "min" | "min,pot" | "min,mul" | "mul" => "Min",
        "bitmask" => "Mask",
        "bits" => "Bits",
        _ => "Other",
    }
}
