/* Calls as an application makes them, built with the real headers, for `c_calls.rs`.
 *
 * Each fixture has the image of a call's parameters, written down as a structure by hand, and lines that the print
 * of its record must have. A structure of a chain is named by its type. Garbage is an address that faults. */
#define VK_ENABLE_BETA_EXTENSIONS
#include <stddef.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define H(type, serial) ((type)(uintptr_t)(0x5a00000000000000ull + (serial)))
#define BAD ((void *)0xdeadbeefdeadbee1ull)
#define S(type, s_type, ...) ((type){.sType = VK_STRUCTURE_TYPE_##s_type, __VA_ARGS__})
#define V(s_type, ...) {.sType = VK_STRUCTURE_TYPE_##s_type, __VA_ARGS__}
#define A(type, ...) ((type[]){__VA_ARGS__})
#define IMAGE(members, ...) &(struct { members }){__VA_ARGS__}

typedef struct { const char *name; const void *image; const char *expected; } Enter;
typedef struct { const char *name; const void *image; int64_t result; const char *expected; } Leave;
typedef const VkAllocationCallbacks *Allocator;

/* Outputs. Never read before the call. */
static uint64_t out[8] = {0xdeadbeefdeadbee1, 0xdeadbeefdeadbee1};
#define OUT(type) ((type *)out)

/* A link of the loader: our layer must pass over it, whatever it holds. */
typedef struct { VkStructureType sType; const void *pNext; uint32_t function; void *garbage; } LoaderLink;
typedef struct { VkStructureType sType; const void *pNext; void *garbage; } Unknown;

static VkBool32 VKAPI_PTR on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
        VkDebugUtilsMessageTypeFlagsEXT types, const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    (void)severity, (void)types, (void)data, (void)user;
    return VK_FALSE;
}

/* ---- Instances, devices, resources ---- */
#define CREATE(type) VkDevice device; const type *info; Allocator allocator; void *object;

static VkBufferCreateInfo dirty_info;
static struct { CREATE(VkBufferCreateInfo) } dirty_buffer;
static struct { VkCommandBuffer commands; uint32_t counts[4]; } draw;
static VkImageMemoryBarrier2 dirty_barriers[2];
static VkDependencyInfo dirty_dependency;

/* Padding of an application's memory is whatever was there before. */
__attribute__((constructor)) static void make_dirty(void) {
    memset(&dirty_info, 0xcc, sizeof dirty_info);
    dirty_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, dirty_info.pNext = NULL, dirty_info.flags = 0;
    dirty_info.size = 77, dirty_info.usage = 1, dirty_info.sharingMode = 0, dirty_info.queueFamilyIndexCount = 0;
    dirty_info.pQueueFamilyIndices = NULL;
    dirty_buffer.device = H(VkDevice, 1), dirty_buffer.info = &dirty_info, dirty_buffer.object = out;
    draw.commands = H(VkCommandBuffer, 3), draw.counts[0] = 3, draw.counts[1] = 2, draw.counts[3] = 9;
    memset(dirty_barriers, 0xcc, sizeof dirty_barriers);
    for (int it = 0; it < 2; it++) {
        VkImageMemoryBarrier2 *barrier = &dirty_barriers[it];
        barrier->sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2, barrier->pNext = NULL;
        barrier->srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT, barrier->srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT;
        barrier->dstStageMask = VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT | VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
        barrier->dstAccessMask = VK_ACCESS_2_SHADER_SAMPLED_READ_BIT;
        barrier->oldLayout = VK_IMAGE_LAYOUT_UNDEFINED, barrier->newLayout = VK_IMAGE_LAYOUT_GENERAL;
        barrier->srcQueueFamilyIndex = barrier->dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
        barrier->image = H(VkImage, 40 + it);
        barrier->subresourceRange = (VkImageSubresourceRange){VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 6};
    }
    memset(&dirty_dependency, 0xcc, sizeof dirty_dependency);
    dirty_dependency.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO, dirty_dependency.pNext = NULL;
    dirty_dependency.dependencyFlags = VK_DEPENDENCY_BY_REGION_BIT, dirty_dependency.memoryBarrierCount = 0;
    dirty_dependency.pMemoryBarriers = NULL, dirty_dependency.bufferMemoryBarrierCount = 0;
    dirty_dependency.pBufferMemoryBarriers = NULL, dirty_dependency.imageMemoryBarrierCount = 2;
    dirty_dependency.pImageMemoryBarriers = dirty_barriers;
}

/* ---- Pipelines ---- */
static const VkSpecializationInfo specialization = {2, A(VkSpecializationMapEntry, {7, 0, 4}, {8, 4, 8}), 12, "abcdefghijk"};
static VkPipelineShaderStageCreateInfo stages[2] = {
    {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, NULL, 0, VK_SHADER_STAGE_VERTEX_BIT, H(VkShaderModule, 1), "vs", NULL},
    {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, NULL, 0, VK_SHADER_STAGE_FRAGMENT_BIT, H(VkShaderModule, 2), "fs",
     &specialization}};
static VkPipelineVertexInputStateCreateInfo vertex_input = {
    VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO, NULL, 0, 1, A(VkVertexInputBindingDescription, {0, 16, 1}), 2,
    A(VkVertexInputAttributeDescription, {0, 0, VK_FORMAT_R32G32_SFLOAT, 0}, {1, 0, VK_FORMAT_R32G32_SFLOAT, 8})};
static VkPipelineInputAssemblyStateCreateInfo assembly = {
    VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO, NULL, 0, VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP, VK_TRUE};
static VkPipelineViewportStateCreateInfo viewport = {VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, NULL, 0, 1,
    A(VkViewport, {0, 1.5f, 640, 480, 0, 1}), 1, A(VkRect2D, {{1, 2}, {3, 4}})};
static VkPipelineViewportStateCreateInfo dynamic_viewport = {
    VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, NULL, 0, 1, BAD, 1, BAD};
static VkPipelineRasterizationStateCreateInfo raster = {VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO,
    .cullMode = VK_CULL_MODE_BACK_BIT, .frontFace = VK_FRONT_FACE_CLOCKWISE, .lineWidth = 2.5f};
static VkPipelineRasterizationStateCreateInfo discard = {
    VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .rasterizerDiscardEnable = VK_TRUE, .lineWidth = 1};
static VkPipelineMultisampleStateCreateInfo multisample = {VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO,
    .rasterizationSamples = VK_SAMPLE_COUNT_64_BIT, .pSampleMask = A(VkSampleMask, 0xf0, 0x0f)};
static VkPipelineDepthStencilStateCreateInfo depth = {VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO,
    .depthTestEnable = VK_TRUE, .depthCompareOp = VK_COMPARE_OP_GREATER, .back = {.reference = 5}};
static VkPipelineColorBlendStateCreateInfo blend = {VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO,
    .attachmentCount = 1, .pAttachments = A(VkPipelineColorBlendAttachmentState, {.blendEnable = VK_TRUE, .colorWriteMask = 15}),
    .blendConstants = {0, 0.25f, 0.5f, 1}};
static VkPipelineDynamicStateCreateInfo dynamic = {VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO,
    .dynamicStateCount = 2, .pDynamicStates = A(VkDynamicState, VK_DYNAMIC_STATE_SCISSOR, VK_DYNAMIC_STATE_VIEWPORT)};

typedef struct { VkDevice device; VkPipelineCache cache; uint32_t count; const VkGraphicsPipelineCreateInfo *infos;
    Allocator allocator; VkPipeline *pipelines; } GraphicsPipelines;
#define PIPELINES(n, ...) &(GraphicsPipelines){H(VkDevice, 1), H(VkPipelineCache, 4), n, A(VkGraphicsPipelineCreateInfo, __VA_ARGS__), NULL, OUT(VkPipeline)}
#define PIPELINE .sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO, .layout = H(VkPipelineLayout, 6), .basePipelineIndex = -1

/* ---- Descriptors ---- */
#define WRITE(binding, type, images, buffers, views) {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, NULL, H(VkDescriptorSet, 5), binding, 0, 1, VK_DESCRIPTOR_TYPE_##type, images, buffers, views}
static const VkDescriptorImageInfo image_info = {H(VkSampler, 1), H(VkImageView, 2), VK_IMAGE_LAYOUT_GENERAL};
static const VkDescriptorImageInfo no_sampler = {(VkSampler)BAD, H(VkImageView, 3), VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
static const VkDescriptorBufferInfo buffer_info = {H(VkBuffer, 9), 256, VK_WHOLE_SIZE};
static VkBufferView texel_view = H(VkBufferView, 8);
static const VkWriteDescriptorSet writes[] = {
    WRITE(0, SAMPLER, &image_info, BAD, BAD), WRITE(1, COMBINED_IMAGE_SAMPLER, &image_info, BAD, BAD),
    WRITE(2, SAMPLED_IMAGE, &no_sampler, BAD, BAD), WRITE(3, STORAGE_IMAGE, &no_sampler, BAD, BAD),
    WRITE(4, UNIFORM_TEXEL_BUFFER, BAD, BAD, &texel_view), WRITE(5, STORAGE_TEXEL_BUFFER, BAD, BAD, &texel_view),
    WRITE(6, UNIFORM_BUFFER, BAD, &buffer_info, BAD), WRITE(7, STORAGE_BUFFER, BAD, &buffer_info, BAD),
    WRITE(8, UNIFORM_BUFFER_DYNAMIC, BAD, &buffer_info, BAD), WRITE(9, STORAGE_BUFFER_DYNAMIC, BAD, &buffer_info, BAD),
    WRITE(10, INPUT_ATTACHMENT, &no_sampler, BAD, BAD),
    {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, &S(VkWriteDescriptorSetInlineUniformBlock, WRITE_DESCRIPTOR_SET_INLINE_UNIFORM_BLOCK, NULL, 12, "inline data"),
     H(VkDescriptorSet, 5), 11, 0, 12, VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK, BAD, BAD, BAD},
    {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, &S(VkWriteDescriptorSetAccelerationStructureKHR, WRITE_DESCRIPTOR_SET_ACCELERATION_STRUCTURE_KHR, NULL, 1, A(VkAccelerationStructureKHR, H(VkAccelerationStructureKHR, 3))),
     H(VkDescriptorSet, 5), 12, 0, 1, VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR, BAD, BAD, BAD}};

/* The data of an update template, and the entries that describe it. */
static struct { char unused[24]; VkDescriptorImageInfo images[2]; uint64_t between; VkDescriptorBufferInfo buffer; VkBufferView view; char block[8]; } template_data = {
    .images = {{H(VkSampler, 1), H(VkImageView, 2), VK_IMAGE_LAYOUT_GENERAL}, {H(VkSampler, 3), H(VkImageView, 4), VK_IMAGE_LAYOUT_GENERAL}},
    .buffer = {H(VkBuffer, 9), 64, 128}, .view = H(VkBufferView, 8), .block = "uniform"};
#define AT(member) offsetof(__typeof__(template_data), member)
static const VkDescriptorUpdateTemplateEntry template_entries[] = {
    {3, 1, 2, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, AT(images), sizeof(VkDescriptorImageInfo)},
    {4, 0, 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, AT(buffer), 0}, {5, 0, 1, VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, AT(view), 0},
    {6, 0, 8, VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK, AT(block), 0}};

/* ---- Ray tracing ---- */
static const VkAccelerationStructureGeometryKHR geometries[] = {
    {VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_KHR, NULL, VK_GEOMETRY_TYPE_TRIANGLES_KHR, {.triangles = {
        VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_TRIANGLES_DATA_KHR, NULL, VK_FORMAT_R32G32B32_SFLOAT, {0x1000}, 12, 99,
        VK_INDEX_TYPE_UINT16, {0x2000}, {0x3000}}}, VK_GEOMETRY_OPAQUE_BIT_KHR},
    {VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_KHR, NULL, VK_GEOMETRY_TYPE_AABBS_KHR, {.aabbs = {
        VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_AABBS_DATA_KHR, NULL, {0x4000}, 24}}, 0}};
static const VkAccelerationStructureGeometryKHR instances = {
    VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_KHR, NULL, VK_GEOMETRY_TYPE_INSTANCES_KHR, {.instances = {
        VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_INSTANCES_DATA_KHR, NULL, VK_TRUE, {0x5000}}}, 0};
static const VkAccelerationStructureBuildGeometryInfoKHR builds[] = {
    {VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_BUILD_GEOMETRY_INFO_KHR, NULL, VK_ACCELERATION_STRUCTURE_TYPE_BOTTOM_LEVEL_KHR, 0,
     VK_BUILD_ACCELERATION_STRUCTURE_MODE_BUILD_KHR, VK_NULL_HANDLE, H(VkAccelerationStructureKHR, 1), 2, geometries, NULL, {0x6000}},
    {VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_BUILD_GEOMETRY_INFO_KHR, NULL, VK_ACCELERATION_STRUCTURE_TYPE_TOP_LEVEL_KHR, 0,
     VK_BUILD_ACCELERATION_STRUCTURE_MODE_BUILD_KHR, VK_NULL_HANDLE, H(VkAccelerationStructureKHR, 2), 1, NULL,
     A(const VkAccelerationStructureGeometryKHR *, &instances), {0x7000}}};

/* ---- Video ---- */
static const StdVideoH264HrdParameters hrd = {.cpb_cnt_minus1 = 1, .bit_rate_value_minus1 = {10, 20}, .time_offset_length = 24};
static const StdVideoH264SequenceParameterSetVui vui = {.flags = {.color_description_present_flag = 1, .nal_hrd_parameters_present_flag = 1}, .sar_width = 4, .pHrdParameters = &hrd};
static const StdVideoH264SequenceParameterSet sps = {
    .flags = {.direct_8x8_inference_flag = 1, .vui_parameters_present_flag = 1, .frame_cropping_flag = 1},
    .profile_idc = STD_VIDEO_H264_PROFILE_IDC_HIGH, .level_idc = STD_VIDEO_H264_LEVEL_IDC_4_1, .seq_parameter_set_id = 3,
    .offset_for_non_ref_pic = -7, .num_ref_frames_in_pic_order_cnt_cycle = 2, .pic_width_in_mbs_minus1 = 119,
    .pOffsetForRefFrame = A(int32_t, -5, 6), .pSequenceParameterSetVui = &vui};
static const StdVideoH264ScalingLists scaling = {.scaling_list_present_mask = 3, .ScalingList4x4 = {{1, 2}, {3}}};
static const StdVideoH264PictureParameterSet pps = {.flags = {.entropy_coding_mode_flag = 1, .pic_scaling_matrix_present_flag = 1}, .seq_parameter_set_id = 3,
    .pic_parameter_set_id = 1, .chroma_qp_index_offset = -2, .pScalingLists = &scaling};

static const StdVideoH265SubLayerHrdParameters sub_layers[3] = {{.bit_rate_value_minus1 = {1}}, {.bit_rate_value_minus1 = {2}}, {.cbr_flag = 33}};
static const StdVideoH265HrdParameters hrd_265 = {.flags = {.nal_hrd_parameters_present_flag = 1}, .tick_divisor_minus2 = 9, .pSubLayerHrdParametersNal = sub_layers};
static const StdVideoH265DecPicBufMgr buffering = {.max_num_reorder_pics = {1, 2, 3}};
static const StdVideoH265ProfileTierLevel tier = {.general_level_idc = STD_VIDEO_H265_LEVEL_IDC_5_1};
static const StdVideoH265VideoParameterSet vps = {.vps_video_parameter_set_id = 5, .vps_max_sub_layers_minus1 = 2, .vps_time_scale = 60,
    .pDecPicBufMgr = &buffering, .pHrdParameters = &hrd_265, .pProfileTierLevel = &tier};
static const VkVideoProfileInfoKHR profile = {VK_STRUCTURE_TYPE_VIDEO_PROFILE_INFO_KHR, &S(VkVideoDecodeH264ProfileInfoKHR, VIDEO_DECODE_H264_PROFILE_INFO_KHR, NULL,
    STD_VIDEO_H264_PROFILE_IDC_MAIN), VK_VIDEO_CODEC_OPERATION_DECODE_H264_BIT_KHR, VK_VIDEO_CHROMA_SUBSAMPLING_420_BIT_KHR, 1, 1};

static const Enter ENTERS[] = {
{"vkCreateInstance", IMAGE(const VkInstanceCreateInfo *info; Allocator allocator; VkInstance *instance;,
    &S(VkInstanceCreateInfo, INSTANCE_CREATE_INFO,
        &(LoaderLink){VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO,
            &S(VkDebugUtilsMessengerCreateInfoEXT, DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                &(LoaderLink){VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO,
                    &S(VkValidationFeaturesEXT, VALIDATION_FEATURES_EXT, NULL, 1, A(VkValidationFeatureEnableEXT, 4), 0, BAD), 1, BAD},
                0, VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT, 3, on_message, BAD), 0, BAD},
        0, &S(VkApplicationInfo, APPLICATION_INFO, NULL, "app \"x\"", 7, NULL, 8, VK_API_VERSION_1_3),
        2, A(const char *const, "VK_LAYER_one", "VK_LAYER_two"), 1, A(const char *const, "VK_KHR_surface")), BAD, OUT(VkInstance)),
    "pCreateInfo.VkDebugUtilsMessengerCreateInfoEXT.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT\n"
    "pCreateInfo.VkDebugUtilsMessengerCreateInfoEXT.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT\n"
    "pCreateInfo.VkDebugUtilsMessengerCreateInfoEXT.pfnUserCallback = present\n"
    "pCreateInfo.VkDebugUtilsMessengerCreateInfoEXT.pUserData = present\n"
    "pCreateInfo.VkValidationFeaturesEXT.pEnabledValidationFeatures = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n"
    "pCreateInfo.VkValidationFeaturesEXT.pDisabledValidationFeatures = []\n"
    "pCreateInfo.pApplicationInfo.pApplicationName = \"app \\\"x\\\"\"\npCreateInfo.pApplicationInfo.pEngineName = null\n"
    "pCreateInfo.pApplicationInfo.apiVersion = 1.3.0\n"
    "pCreateInfo.ppEnabledLayerNames[0] = \"VK_LAYER_one\"\npCreateInfo.ppEnabledLayerNames[1] = \"VK_LAYER_two\"\n"
    "pCreateInfo.ppEnabledExtensionNames = \"VK_KHR_surface\"\npAllocator = present\npInstance = present\n"},
{"vkCreateDevice", IMAGE(VkPhysicalDevice physical; const VkDeviceCreateInfo *info; Allocator allocator; VkDevice *device;,
    H(VkPhysicalDevice, 2), &S(VkDeviceCreateInfo, DEVICE_CREATE_INFO,
        &(LoaderLink){VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO,
            &S(VkPhysicalDeviceFeatures2, PHYSICAL_DEVICE_FEATURES_2,
                &S(VkPhysicalDeviceVulkan12Features, PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .timelineSemaphore = VK_TRUE,
                    .subgroupBroadcastDynamicId = 7), .features = {.inheritedQueries = VK_TRUE}), 0, BAD},
        0, 2, A(VkDeviceQueueCreateInfo,
            {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, NULL, 0, 3, 2, A(float, 1.0f, 0.5f)},
            {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, NULL, VK_DEVICE_QUEUE_CREATE_PROTECTED_BIT, 4, 1, A(float, 0)}),
        5, BAD, 1, A(const char *const, "VK_KHR_swapchain"), NULL), NULL, OUT(VkDevice)),
    "physicalDevice = VkPhysicalDevice#2\npCreateInfo.VkPhysicalDeviceFeatures2.features.inheritedQueries = VK_TRUE\n"
    "pCreateInfo.VkPhysicalDeviceFeatures2.features.variableMultisampleRate = VK_FALSE\n"
    "pCreateInfo.VkPhysicalDeviceVulkan12Features.timelineSemaphore = VK_TRUE\n"
    "pCreateInfo.VkPhysicalDeviceVulkan12Features.subgroupBroadcastDynamicId = 7\n"
    "pCreateInfo.pQueueCreateInfos[0].queueFamilyIndex = 3\npCreateInfo.pQueueCreateInfos[1].queueFamilyIndex = 4\n"
    "pCreateInfo.pQueueCreateInfos[1].flags = VK_DEVICE_QUEUE_CREATE_PROTECTED_BIT\n"
    "pCreateInfo.pQueueCreateInfos[0].queueCount = 2\n"
    "pCreateInfo.ppEnabledExtensionNames = \"VK_KHR_swapchain\"\npCreateInfo.pEnabledFeatures = null\n"},
{"vkCreateDevice", IMAGE(VkPhysicalDevice physical; const VkDeviceCreateInfo *info; Allocator allocator; VkDevice *device;,
    H(VkPhysicalDevice, 2), &S(VkDeviceCreateInfo, DEVICE_CREATE_INFO, &(Unknown){0x7eadbee1, &S(VkPhysicalDeviceVulkan11Features,
        PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .multiview = VK_TRUE), BAD}, .pEnabledFeatures = &(VkPhysicalDeviceFeatures){.geometryShader = 1}), NULL, OUT(VkDevice)),
    "pCreateInfo.VkPhysicalDeviceVulkan11Features.multiview = VK_TRUE\npCreateInfo.pEnabledFeatures.geometryShader = VK_TRUE\n"
    "pCreateInfo.pNext = unknown structure of type 2125315809, skipped\n"},
{"vkCreateBuffer", IMAGE(CREATE(VkBufferCreateInfo), H(VkDevice, 1), &S(VkBufferCreateInfo, BUFFER_CREATE_INFO, NULL,
        VK_BUFFER_CREATE_SPARSE_BINDING_BIT, 4096, VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_VERTEX_BUFFER_BIT,
        VK_SHARING_MODE_CONCURRENT, 3, A(uint32_t, 5, 6, 7)), NULL, out),
    "device = VkDevice#1\npCreateInfo.size = 4096\npCreateInfo.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT\n"
    "pCreateInfo.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_VERTEX_BUFFER_BIT\n"
    "pCreateInfo.sharingMode = VK_SHARING_MODE_CONCURRENT\npCreateInfo.pQueueFamilyIndices[0] = 5\n"
    "pCreateInfo.pQueueFamilyIndices[2] = 7\npAllocator = null\npBuffer = present\n"},
{"vkCreateBuffer", IMAGE(CREATE(VkBufferCreateInfo), H(VkDevice, 1), &S(VkBufferCreateInfo, BUFFER_CREATE_INFO, NULL, 0, 16, 1,
        VK_SHARING_MODE_EXCLUSIVE, 3, BAD), NULL, out), "pCreateInfo.size = 16\npCreateInfo.pQueueFamilyIndices = null\n"},
{"vkCreateBuffer", &dirty_buffer, "pCreateInfo.size = 77\npCreateInfo.pQueueFamilyIndices = null\n"},
{"vkCreateImage", IMAGE(CREATE(VkImageCreateInfo), H(VkDevice, 1), &S(VkImageCreateInfo, IMAGE_CREATE_INFO,
        &S(VkImageFormatListCreateInfo, IMAGE_FORMAT_LIST_CREATE_INFO, NULL, 2, A(VkFormat, VK_FORMAT_R8G8B8A8_UNORM, VK_FORMAT_R8G8B8A8_SRGB)),
        VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT, VK_IMAGE_TYPE_2D, VK_FORMAT_R8G8B8A8_UNORM, {640, 480, 1}, 4, 2, VK_SAMPLE_COUNT_1_BIT,
        VK_IMAGE_TILING_OPTIMAL, VK_IMAGE_USAGE_SAMPLED_BIT, VK_SHARING_MODE_EXCLUSIVE, 2, BAD, VK_IMAGE_LAYOUT_PREINITIALIZED), NULL, out),
    "pCreateInfo.VkImageFormatListCreateInfo.pViewFormats[1] = VK_FORMAT_R8G8B8A8_SRGB\npCreateInfo.format = VK_FORMAT_R8G8B8A8_UNORM\n"
    "pCreateInfo.extent.height = 480\npCreateInfo.mipLevels = 4\npCreateInfo.arrayLayers = 2\npCreateInfo.samples = VK_SAMPLE_COUNT_1_BIT\n"
    "pCreateInfo.pQueueFamilyIndices = null\npCreateInfo.initialLayout = VK_IMAGE_LAYOUT_PREINITIALIZED\n"},
{"vkCreateImage", IMAGE(CREATE(VkImageCreateInfo), H(VkDevice, 1), &S(VkImageCreateInfo, IMAGE_CREATE_INFO,
        &S(VkExternalMemoryImageCreateInfo, EXTERNAL_MEMORY_IMAGE_CREATE_INFO, NULL, VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT),
        .tiling = VK_IMAGE_TILING_DRM_FORMAT_MODIFIER_EXT, .sharingMode = VK_SHARING_MODE_CONCURRENT, .queueFamilyIndexCount = 2,
        .pQueueFamilyIndices = A(uint32_t, 0, 2)), NULL, out),
    "pCreateInfo.VkExternalMemoryImageCreateInfo.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT\n"
    "pCreateInfo.tiling = VK_IMAGE_TILING_DRM_FORMAT_MODIFIER_EXT\npCreateInfo.pQueueFamilyIndices[1] = 2\n"},
{"vkCreateImageView", IMAGE(CREATE(VkImageViewCreateInfo), H(VkDevice, 1), &S(VkImageViewCreateInfo, IMAGE_VIEW_CREATE_INFO, NULL, 0,
        H(VkImage, 33), VK_IMAGE_VIEW_TYPE_CUBE, VK_FORMAT_D32_SFLOAT_S8_UINT, {.g = VK_COMPONENT_SWIZZLE_ONE},
        {VK_IMAGE_ASPECT_DEPTH_BIT | VK_IMAGE_ASPECT_STENCIL_BIT, 1, 2, 3, VK_REMAINING_ARRAY_LAYERS}), NULL, out),
    "pCreateInfo.image = VkImage#33\npCreateInfo.viewType = VK_IMAGE_VIEW_TYPE_CUBE\npCreateInfo.components.g = VK_COMPONENT_SWIZZLE_ONE\n"
    "pCreateInfo.subresourceRange.aspectMask = VK_IMAGE_ASPECT_DEPTH_BIT | VK_IMAGE_ASPECT_STENCIL_BIT\n"
    "pCreateInfo.subresourceRange.layerCount = VK_REMAINING_ARRAY_LAYERS\npView = present\n"},
{"vkCreateSampler", IMAGE(CREATE(VkSamplerCreateInfo), H(VkDevice, 1), &S(VkSamplerCreateInfo, SAMPLER_CREATE_INFO,
        &S(VkSamplerYcbcrConversionInfo, SAMPLER_YCBCR_CONVERSION_INFO, &S(VkSamplerCustomBorderColorCreateInfoEXT,
            SAMPLER_CUSTOM_BORDER_COLOR_CREATE_INFO_EXT, NULL, {.uint32 = {1, 2, 3, 0xff}}, VK_FORMAT_R8_UINT), H(VkSamplerYcbcrConversion, 2)),
        .magFilter = VK_FILTER_LINEAR, .mipLodBias = -0.5f, .maxLod = VK_LOD_CLAMP_NONE, .borderColor = VK_BORDER_COLOR_INT_CUSTOM_EXT), NULL, out),
    "pCreateInfo.VkSamplerYcbcrConversionInfo.conversion = VkSamplerYcbcrConversion#2\n"
    "pCreateInfo.VkSamplerCustomBorderColorCreateInfoEXT.customBorderColor = 0x00000001 0x00000002 0x00000003 0x000000ff\n"
    "pCreateInfo.magFilter = VK_FILTER_LINEAR\npCreateInfo.mipLodBias = -0.5\npCreateInfo.maxLod = VK_LOD_CLAMP_NONE\n"
    "pCreateInfo.borderColor = VK_BORDER_COLOR_INT_CUSTOM_EXT\n"},
{"vkCreateRenderPass", IMAGE(CREATE(VkRenderPassCreateInfo), H(VkDevice, 1), &S(VkRenderPassCreateInfo, RENDER_PASS_CREATE_INFO, NULL, 0,
        2, A(VkAttachmentDescription, {.format = VK_FORMAT_B8G8R8A8_UNORM}, {.format = VK_FORMAT_D16_UNORM, .stencilLoadOp = VK_ATTACHMENT_LOAD_OP_CLEAR}),
        1, A(VkSubpassDescription, {.colorAttachmentCount = 1, .pColorAttachments = A(VkAttachmentReference, {0, VK_IMAGE_LAYOUT_GENERAL}),
            .pResolveAttachments = NULL, .pDepthStencilAttachment = A(VkAttachmentReference, {1, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL}),
            .preserveAttachmentCount = 2, .pPreserveAttachments = A(uint32_t, 8, 9)}),
        1, A(VkSubpassDependency, {VK_SUBPASS_EXTERNAL, 0, .dstAccessMask = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT})), NULL, out),
    "pCreateInfo.pAttachments[1].stencilLoadOp = VK_ATTACHMENT_LOAD_OP_CLEAR\npCreateInfo.pSubpasses.pColorAttachments.layout = VK_IMAGE_LAYOUT_GENERAL\n"
    "pCreateInfo.pSubpasses.pResolveAttachments = null\npCreateInfo.pSubpasses.pDepthStencilAttachment.attachment = 1\n"
    "pCreateInfo.pSubpasses.pPreserveAttachments[1] = 9\npCreateInfo.pDependencies.srcSubpass = VK_SUBPASS_EXTERNAL\n"
    "pCreateInfo.pDependencies.dstAccessMask = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT\n"},
{"vkCreateRenderPass2", IMAGE(CREATE(VkRenderPassCreateInfo2), H(VkDevice, 1), &S(VkRenderPassCreateInfo2, RENDER_PASS_CREATE_INFO_2,
        .attachmentCount = 1, .pAttachments = &S(VkAttachmentDescription2, ATTACHMENT_DESCRIPTION_2, .samples = VK_SAMPLE_COUNT_4_BIT),
        .subpassCount = 1, .pSubpasses = &S(VkSubpassDescription2, SUBPASS_DESCRIPTION_2,
            &S(VkSubpassDescriptionDepthStencilResolve, SUBPASS_DESCRIPTION_DEPTH_STENCIL_RESOLVE, NULL, VK_RESOLVE_MODE_MIN_BIT,
                0, &S(VkAttachmentReference2, ATTACHMENT_REFERENCE_2, NULL, 12)),
            .viewMask = 3, .inputAttachmentCount = 2, .pInputAttachments = A(VkAttachmentReference2, V(ATTACHMENT_REFERENCE_2, NULL, 0),
                V(ATTACHMENT_REFERENCE_2, NULL, VK_ATTACHMENT_UNUSED, 0, VK_IMAGE_ASPECT_COLOR_BIT))),
        .dependencyCount = 1, .pDependencies = &S(VkSubpassDependency2, SUBPASS_DEPENDENCY_2,
            &S(VkMemoryBarrier2, MEMORY_BARRIER_2, NULL, 1ull << 32), .viewOffset = -1),
        .correlatedViewMaskCount = 1, .pCorrelatedViewMasks = A(uint32_t, 3)), NULL, out),
    "pCreateInfo.pAttachments.samples = VK_SAMPLE_COUNT_4_BIT\npCreateInfo.pSubpasses.viewMask = 3\n"
    "pCreateInfo.pSubpasses.VkSubpassDescriptionDepthStencilResolve.pDepthStencilResolveAttachment.attachment = 12\n"
    "pCreateInfo.pSubpasses.pInputAttachments[1].aspectMask = VK_IMAGE_ASPECT_COLOR_BIT\n"
    "pCreateInfo.pDependencies.VkMemoryBarrier2.srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT\npCreateInfo.pDependencies.viewOffset = -1\n"
    "pCreateInfo.pCorrelatedViewMasks = 3\n"},
{"vkCreateFramebuffer", IMAGE(CREATE(VkFramebufferCreateInfo), H(VkDevice, 1), &S(VkFramebufferCreateInfo, FRAMEBUFFER_CREATE_INFO,
        &S(VkFramebufferAttachmentsCreateInfo, FRAMEBUFFER_ATTACHMENTS_CREATE_INFO, NULL, 1, &S(VkFramebufferAttachmentImageInfo,
            FRAMEBUFFER_ATTACHMENT_IMAGE_INFO, .width = 800, .viewFormatCount = 1, .pViewFormats = A(VkFormat, VK_FORMAT_R8_UNORM))),
        VK_FRAMEBUFFER_CREATE_IMAGELESS_BIT, H(VkRenderPass, 1), 3, BAD, 800, 600, 1), NULL, out),
    "pCreateInfo.VkFramebufferAttachmentsCreateInfo.pAttachmentImageInfos.pViewFormats = VK_FORMAT_R8_UNORM\npCreateInfo.attachmentCount = 3\n"
    "pCreateInfo.pAttachments = null\npCreateInfo.width = 800\npCreateInfo.layers = 1\n"},
{"vkCreateFramebuffer", IMAGE(CREATE(VkFramebufferCreateInfo), H(VkDevice, 1), &S(VkFramebufferCreateInfo, FRAMEBUFFER_CREATE_INFO, NULL,
        0, H(VkRenderPass, 1), 2, A(VkImageView, H(VkImageView, 4), VK_NULL_HANDLE), 1, 2, 3), NULL, out),
    "pCreateInfo.renderPass = VkRenderPass#1\npCreateInfo.pAttachments[0] = VkImageView#4\npCreateInfo.pAttachments[1] = VK_NULL_HANDLE\n"},
{"vkCreateGraphicsPipelines", PIPELINES(1, {PIPELINE, .stageCount = 2, .pStages = stages, .pVertexInputState = &vertex_input,
        .pInputAssemblyState = &assembly, .pTessellationState = BAD, .pViewportState = &viewport, .pRasterizationState = &raster,
        .pMultisampleState = &multisample, .pDepthStencilState = &depth, .pColorBlendState = &blend, .renderPass = H(VkRenderPass, 1)}),
    "pipelineCache = VkPipelineCache#4\npCreateInfos.pStages[0].pName = \"vs\"\npCreateInfos.pStages[1].stage = VK_SHADER_STAGE_FRAGMENT_BIT\n"
    "pCreateInfos.pStages[1].pSpecializationInfo.pMapEntries[1].size = 8\npCreateInfos.pStages[1].pSpecializationInfo.pData = 12 bytes\n"
    "pCreateInfos.pVertexInputState.pVertexBindingDescriptions.inputRate = VK_VERTEX_INPUT_RATE_INSTANCE\n"
    "pCreateInfos.pVertexInputState.pVertexAttributeDescriptions[1].offset = 8\n"
    "pCreateInfos.pInputAssemblyState.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_STRIP\npCreateInfos.pTessellationState = null\n"
    "pCreateInfos.pViewportState.pViewports.y = 1.5\npCreateInfos.pViewportState.pScissors.extent.height = 4\n"
    "pCreateInfos.pRasterizationState.lineWidth = 2.5\npCreateInfos.pMultisampleState.pSampleMask[0] = 240\n"
    "pCreateInfos.pMultisampleState.pSampleMask[1] = 15\npCreateInfos.pDepthStencilState.back.reference = 5\n"
    "pCreateInfos.pColorBlendState.pAttachments.blendEnable = VK_TRUE\npCreateInfos.pColorBlendState.blendConstants[1] = 0.25\n"
    "pCreateInfos.pDynamicState = null\npCreateInfos.layout = VkPipelineLayout#6\npCreateInfos.basePipelineIndex = -1\n"},
{"vkCreateGraphicsPipelines", PIPELINES(1, {PIPELINE, .stageCount = 1, .pStages = stages, .pVertexInputState = &vertex_input,
        .pInputAssemblyState = &assembly, .pTessellationState = BAD, .pViewportState = BAD, .pRasterizationState = &discard,
        .pMultisampleState = BAD, .pDepthStencilState = BAD, .pColorBlendState = BAD, .renderPass = H(VkRenderPass, 1)}),
    "pCreateInfos.pRasterizationState.rasterizerDiscardEnable = VK_TRUE\npCreateInfos.pViewportState = null\n"
    "pCreateInfos.pMultisampleState = null\npCreateInfos.pDepthStencilState = null\npCreateInfos.pColorBlendState = null\n"
    "pCreateInfos.pTessellationState = null\npCreateInfos.pInputAssemblyState.primitiveRestartEnable = VK_TRUE\n"},
{"vkCreateGraphicsPipelines", PIPELINES(2, {PIPELINE, .stageCount = 2, .pStages = stages, .pVertexInputState = &vertex_input,
        .pInputAssemblyState = &assembly, .pViewportState = &dynamic_viewport, .pRasterizationState = &raster,
        .pMultisampleState = &multisample, .pDepthStencilState = BAD, .pColorBlendState = &blend, .pDynamicState = &dynamic, .renderPass = H(VkRenderPass, 51)},
        {PIPELINE, .stageCount = 1, .pStages = stages, .pVertexInputState = &vertex_input, .pInputAssemblyState = &assembly,
        .pRasterizationState = &discard, .basePipelineHandle = H(VkPipeline, 3)}),
    "pCreateInfos[0].pViewportState.viewportCount = 1\npCreateInfos[0].pViewportState.pViewports = null\n"
    "pCreateInfos[0].pViewportState.pScissors = null\npCreateInfos[0].pDynamicState.pDynamicStates[0] = VK_DYNAMIC_STATE_SCISSOR\n"
    "pCreateInfos[0].pDepthStencilState = null\npCreateInfos[0].pColorBlendState.attachmentCount = 1\n"
    "pCreateInfos[1].basePipelineHandle = VkPipeline#3\npCreateInfos[1].pStages.pName = \"vs\"\n"},
{"vkCreateGraphicsPipelines", PIPELINES(1, {PIPELINE, .pNext = &S(VkPipelineRenderingCreateInfo, PIPELINE_RENDERING_CREATE_INFO, NULL, 0, 2,
        A(VkFormat, VK_FORMAT_R8_UNORM, VK_FORMAT_UNDEFINED)), .stageCount = 1, .pStages = &S(VkPipelineShaderStageCreateInfo,
        PIPELINE_SHADER_STAGE_CREATE_INFO, NULL, 0, VK_SHADER_STAGE_MESH_BIT_EXT, H(VkShaderModule, 3), "ms"), .pVertexInputState = BAD,
        .pInputAssemblyState = BAD, .pViewportState = &viewport, .pRasterizationState = &raster, .pMultisampleState = &multisample,
        .pDepthStencilState = BAD, .pColorBlendState = &blend}),
    "pCreateInfos.VkPipelineRenderingCreateInfo.pColorAttachmentFormats[0] = VK_FORMAT_R8_UNORM\npCreateInfos.pVertexInputState = null\n"
    "pCreateInfos.pInputAssemblyState = null\npCreateInfos.pStages.stage = VK_SHADER_STAGE_MESH_BIT_EXT\npCreateInfos.pColorBlendState.attachmentCount = 1\n"
    "pCreateInfos.pDepthStencilState = null\n"},
{"vkCreateGraphicsPipelines", PIPELINES(1, {PIPELINE, .pNext = &S(VkGraphicsPipelineLibraryCreateInfoEXT, GRAPHICS_PIPELINE_LIBRARY_CREATE_INFO_EXT,
        NULL, VK_GRAPHICS_PIPELINE_LIBRARY_VERTEX_INPUT_INTERFACE_BIT_EXT), .flags = VK_PIPELINE_CREATE_LIBRARY_BIT_KHR, .stageCount = 2, .pStages = BAD,
        .pVertexInputState = &vertex_input, .pInputAssemblyState = &assembly, .pTessellationState = BAD, .pViewportState = BAD,
        .pRasterizationState = BAD, .pMultisampleState = BAD, .pDepthStencilState = BAD, .pColorBlendState = BAD}),
    "pCreateInfos.pStages = null\npCreateInfos.pVertexInputState.vertexBindingDescriptionCount = 1\npCreateInfos.pRasterizationState = null\n"
    "pCreateInfos.flags = VK_PIPELINE_CREATE_LIBRARY_BIT_KHR\npCreateInfos.pColorBlendState = null\n"},
{"vkCreateComputePipelines", IMAGE(VkDevice device; VkPipelineCache cache; uint32_t count; const VkComputePipelineCreateInfo *infos; Allocator allocator; void *pipelines;,
        H(VkDevice, 1), VK_NULL_HANDLE, 1, &S(VkComputePipelineCreateInfo, COMPUTE_PIPELINE_CREATE_INFO, .stage = V(PIPELINE_SHADER_STAGE_CREATE_INFO, &S(VkPipelineShaderStageRequiredSubgroupSizeCreateInfo, PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO, NULL, 32),
            0, VK_SHADER_STAGE_COMPUTE_BIT, H(VkShaderModule, 9), "main", &specialization), .layout = H(VkPipelineLayout, 2)), NULL, out),
    "pipelineCache = VK_NULL_HANDLE\npCreateInfos.stage.VkPipelineShaderStageRequiredSubgroupSizeCreateInfo.requiredSubgroupSize = 32\n"
    "pCreateInfos.stage.pName = \"main\"\npCreateInfos.stage.pSpecializationInfo.pMapEntries[0].constantID = 7\npCreateInfos.layout = VkPipelineLayout#2\n"},
{"vkCreateDescriptorSetLayout", IMAGE(CREATE(VkDescriptorSetLayoutCreateInfo), H(VkDevice, 1), &S(VkDescriptorSetLayoutCreateInfo,
        DESCRIPTOR_SET_LAYOUT_CREATE_INFO, &S(VkDescriptorSetLayoutBindingFlagsCreateInfo, DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO, NULL, 4,
            A(VkDescriptorBindingFlags, 1, 2, 4, 8)), 0, 4, A(VkDescriptorSetLayoutBinding,
            {0, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 2, 16, A(VkSampler, H(VkSampler, 5), H(VkSampler, 6))},
            {1, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 3, 16, BAD}, {2, VK_DESCRIPTOR_TYPE_SAMPLER, 1, 16, A(VkSampler, H(VkSampler, 7))},
            {3, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 1, VK_SHADER_STAGE_ALL, BAD})), NULL, out),
    "pCreateInfo.VkDescriptorSetLayoutBindingFlagsCreateInfo.pBindingFlags[3] = VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT\npCreateInfo.pBindings[0].pImmutableSamplers[1] = VkSampler#6\n"
    "pCreateInfo.pBindings[1].pImmutableSamplers = null\npCreateInfo.pBindings[2].pImmutableSamplers = VkSampler#7\n"
    "pCreateInfo.pBindings[3].pImmutableSamplers = null\npCreateInfo.pBindings[3].stageFlags = VK_SHADER_STAGE_ALL\n"},
{"vkUpdateDescriptorSets", IMAGE(VkDevice device; uint32_t writes; const VkWriteDescriptorSet *write; uint32_t copies; const VkCopyDescriptorSet *copy;,
        H(VkDevice, 1), sizeof writes / sizeof writes[0], writes, 1, &S(VkCopyDescriptorSet, COPY_DESCRIPTOR_SET, NULL, H(VkDescriptorSet, 1), 2, 3, H(VkDescriptorSet, 4), 5, 6, 7)),
    "pDescriptorWrites[0].pImageInfo.sampler = VkSampler#1\npDescriptorWrites[0].pBufferInfo = null\npDescriptorWrites[0].pTexelBufferView = null\n"
    "pDescriptorWrites[1].pImageInfo.imageView = VkImageView#2\npDescriptorWrites[2].pImageInfo.imageView = VkImageView#3\n"
    "pDescriptorWrites[3].pImageInfo.imageLayout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL\npDescriptorWrites[4].pTexelBufferView = VkBufferView#8\n"
    "pDescriptorWrites[4].pImageInfo = null\npDescriptorWrites[5].pTexelBufferView = VkBufferView#8\npDescriptorWrites[6].pBufferInfo.buffer = VkBuffer#9\n"
    "pDescriptorWrites[7].pBufferInfo.offset = 256\npDescriptorWrites[8].pBufferInfo.range = VK_WHOLE_SIZE\npDescriptorWrites[9].pBufferInfo.buffer = VkBuffer#9\n"
    "pDescriptorWrites[9].pImageInfo = null\npDescriptorWrites[10].pImageInfo.imageView = VkImageView#3\n"
    "pDescriptorWrites[11].VkWriteDescriptorSetInlineUniformBlock.pData = 12 bytes\npDescriptorWrites[11].pBufferInfo = null\n"
    "pDescriptorWrites[12].VkWriteDescriptorSetAccelerationStructureKHR.pAccelerationStructures = VkAccelerationStructureKHR#3\n"
    "pDescriptorWrites[12].pTexelBufferView = null\npDescriptorCopies.dstSet = VkDescriptorSet#4\npDescriptorCopies.descriptorCount = 7\n"},
/* ---- Commands ---- */
#define CMD(members, ...) IMAGE(VkCommandBuffer commands; members, H(VkCommandBuffer, 3), __VA_ARGS__)
{"vkBeginCommandBuffer", IMAGE(VkCommandBuffer commands; const VkCommandBufferBeginInfo *info;, H(VkCommandBuffer, 3),
        &S(VkCommandBufferBeginInfo, COMMAND_BUFFER_BEGIN_INFO, NULL, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, BAD)),
    "pBeginInfo.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT\npBeginInfo.pInheritanceInfo = null\n"},
{"vkBeginCommandBuffer", IMAGE(VkCommandBuffer commands; const VkCommandBufferBeginInfo *info;, H(VkCommandBuffer, 100),
        &S(VkCommandBufferBeginInfo, COMMAND_BUFFER_BEGIN_INFO, NULL, VK_COMMAND_BUFFER_USAGE_RENDER_PASS_CONTINUE_BIT,
            &S(VkCommandBufferInheritanceInfo, COMMAND_BUFFER_INHERITANCE_INFO, NULL, H(VkRenderPass, 1), 2, VK_NULL_HANDLE, VK_TRUE,
                VK_QUERY_CONTROL_PRECISE_BIT, VK_QUERY_PIPELINE_STATISTIC_CLIPPING_INVOCATIONS_BIT))),
    "commandBuffer = VkCommandBuffer#100\npBeginInfo.pInheritanceInfo.renderPass = VkRenderPass#1\npBeginInfo.pInheritanceInfo.subpass = 2\n"
    "pBeginInfo.pInheritanceInfo.pipelineStatistics = VK_QUERY_PIPELINE_STATISTIC_CLIPPING_INVOCATIONS_BIT\n"},
{"vkBeginCommandBuffer", IMAGE(VkCommandBuffer commands; const VkCommandBufferBeginInfo *info;, H(VkCommandBuffer, 100),
        &S(VkCommandBufferBeginInfo, COMMAND_BUFFER_BEGIN_INFO, NULL, VK_COMMAND_BUFFER_USAGE_RENDER_PASS_CONTINUE_BIT,
            &S(VkCommandBufferInheritanceInfo, COMMAND_BUFFER_INHERITANCE_INFO, &S(VkCommandBufferInheritanceRenderingInfo,
                COMMAND_BUFFER_INHERITANCE_RENDERING_INFO, NULL, 0, 5, 2, A(VkFormat, 9, 37), VK_FORMAT_D16_UNORM)))),
    "pBeginInfo.pInheritanceInfo.VkCommandBufferInheritanceRenderingInfo.pColorAttachmentFormats[1] = VK_FORMAT_R8G8B8A8_UNORM\n"
    "pBeginInfo.pInheritanceInfo.VkCommandBufferInheritanceRenderingInfo.depthAttachmentFormat = VK_FORMAT_D16_UNORM\n"},
{"vkCmdDraw", &draw, "commandBuffer = VkCommandBuffer#3\nvertexCount = 3\ninstanceCount = 2\nfirstVertex = 0\nfirstInstance = 9\n"},
{"vkCmdPipelineBarrier", CMD(uint32_t src; uint32_t dst; uint32_t flags; uint32_t memories; const VkMemoryBarrier *memory; uint32_t buffers;
        const VkBufferMemoryBarrier *buffer; uint32_t images; const VkImageMemoryBarrier *image;, VK_PIPELINE_STAGE_TRANSFER_BIT,
        VK_PIPELINE_STAGE_VERTEX_INPUT_BIT, 0, 1, &S(VkMemoryBarrier, MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_INDEX_READ_BIT),
        0, BAD, 1, &S(VkImageMemoryBarrier, IMAGE_MEMORY_BARRIER, .newLayout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR, .image = H(VkImage, 1),
            .subresourceRange = {1, 2, 3, 4, 5})),
    "srcStageMask = VK_PIPELINE_STAGE_TRANSFER_BIT\npMemoryBarriers.dstAccessMask = VK_ACCESS_INDEX_READ_BIT\npBufferMemoryBarriers = []\n"
    "pImageMemoryBarriers.newLayout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR\npImageMemoryBarriers.subresourceRange.layerCount = 5\n"},
{"vkCmdPipelineBarrier2", CMD(const VkDependencyInfo *info;, &dirty_dependency),
    "pDependencyInfo.pImageMemoryBarriers[1].newLayout = VK_IMAGE_LAYOUT_GENERAL\npDependencyInfo.pImageMemoryBarriers[1].image = VkImage#41\n"
    "pDependencyInfo.pImageMemoryBarriers[0].dstStageMask = VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT | VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT\n"
    "pDependencyInfo.pImageMemoryBarriers[0].dstAccessMask = VK_ACCESS_2_SHADER_SAMPLED_READ_BIT\n"
    "pDependencyInfo.dependencyFlags = VK_DEPENDENCY_BY_REGION_BIT\npDependencyInfo.pMemoryBarriers = null\n"},
{"vkCmdBindDescriptorSets", CMD(VkPipelineBindPoint point; VkPipelineLayout layout; uint32_t first; uint32_t count; const VkDescriptorSet *sets;
        uint32_t offsets; const uint32_t *offset;, VK_PIPELINE_BIND_POINT_COMPUTE, H(VkPipelineLayout, 2), 1, 2,
        A(VkDescriptorSet, H(VkDescriptorSet, 7), H(VkDescriptorSet, 8)), 3, A(uint32_t, 256, 512, 768)),
    "pipelineBindPoint = VK_PIPELINE_BIND_POINT_COMPUTE\nlayout = VkPipelineLayout#2\nfirstSet = 1\npDescriptorSets[1] = VkDescriptorSet#8\npDynamicOffsets[2] = 768\n"},
{"vkCmdPushConstants", CMD(VkPipelineLayout layout; VkShaderStageFlags stages; uint32_t offset; uint32_t size; const void *values;,
        H(VkPipelineLayout, 2), VK_SHADER_STAGE_ALL_GRAPHICS, 4, 12, "hello world"),
    "stageFlags = VK_SHADER_STAGE_ALL_GRAPHICS\noffset = 4\nsize = 12\npValues = 12 bytes\n"},
{"vkCmdBindVertexBuffers2", CMD(uint32_t first; uint32_t count; const VkBuffer *buffers; const VkDeviceSize *offsets; const VkDeviceSize *sizes; const VkDeviceSize *strides;,
        0, 2, A(VkBuffer, H(VkBuffer, 1), VK_NULL_HANDLE), A(VkDeviceSize, 0, 1ull << 40), NULL, A(VkDeviceSize, 16, 32)),
    "pBuffers[0] = VkBuffer#1\npBuffers[1] = VK_NULL_HANDLE\npOffsets[1] = 1099511627776\npSizes = null\npStrides[1] = 32\n"},
{"vkCmdBeginRendering", CMD(const VkRenderingInfo *info;, &S(VkRenderingInfo, RENDERING_INFO, .renderArea = {{-1, 2}, {3, 4}}, .layerCount = 1,
        .colorAttachmentCount = 2, .pColorAttachments = A(VkRenderingAttachmentInfo,
            V(RENDERING_ATTACHMENT_INFO, .imageView = H(VkImageView, 1), .clearValue = {{{1, 0, 0, 0}}}),
            V(RENDERING_ATTACHMENT_INFO, .resolveMode = VK_RESOLVE_MODE_AVERAGE_BIT, .resolveImageView = H(VkImageView, 2),
              .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR)))),
    "pRenderingInfo.renderArea.offset.x = -1\npRenderingInfo.pColorAttachments[0].clearValue = 0x3f800000 0x00000000 0x00000000 0x00000000\n"
    "pRenderingInfo.pColorAttachments[1].resolveImageView = VkImageView#2\npRenderingInfo.pDepthAttachment = null\n"},
{"vkCmdBeginRenderPass", CMD(const VkRenderPassBeginInfo *info; VkSubpassContents contents;, &S(VkRenderPassBeginInfo, RENDER_PASS_BEGIN_INFO,
        &S(VkRenderPassAttachmentBeginInfo, RENDER_PASS_ATTACHMENT_BEGIN_INFO, NULL, 1, A(VkImageView, H(VkImageView, 6))), H(VkRenderPass, 1), H(VkFramebuffer, 2),
        {{0, 0}, {5, 6}}, 2, A(VkClearValue, {.depthStencil = {1, 9}}, {.color = {.int32 = {-1}}})), VK_SUBPASS_CONTENTS_SECONDARY_COMMAND_BUFFERS),
    "pRenderPassBegin.VkRenderPassAttachmentBeginInfo.pAttachments = VkImageView#6\npRenderPassBegin.framebuffer = VkFramebuffer#2\n"
    "contents = VK_SUBPASS_CONTENTS_SECONDARY_COMMAND_BUFFERS\n"},
{"vkCmdClearAttachments", CMD(uint32_t attachments; const VkClearAttachment *attachment; uint32_t rects; const VkClearRect *rect;, 1,
        A(VkClearAttachment, {VK_IMAGE_ASPECT_STENCIL_BIT, 0, {.depthStencil = {0, 7}}}), 1, A(VkClearRect, {{{0, 0}, {8, 8}}, 2, 3})),
    "pAttachments.aspectMask = VK_IMAGE_ASPECT_STENCIL_BIT\npAttachments.clearValue = 0x00000000 0x00000007 0x00000000 0x00000000\npRects.layerCount = 3\n"},
{"vkCmdClearColorImage", CMD(VkImage image; VkImageLayout layout; const VkClearColorValue *color; uint32_t count; const VkImageSubresourceRange *ranges;,
        H(VkImage, 4), VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, A(VkClearColorValue, {.uint32 = {1, 2, 3, 4}}), 1, A(VkImageSubresourceRange, {1, 0, 1, 0, 1})),
    "imageLayout = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL\npRanges.levelCount = 1\n"},
{"vkCmdCopyBuffer2", CMD(const VkCopyBufferInfo2 *info;, &S(VkCopyBufferInfo2, COPY_BUFFER_INFO_2, NULL, H(VkBuffer, 1), H(VkBuffer, 2), 2,
        A(VkBufferCopy2, {VK_STRUCTURE_TYPE_BUFFER_COPY_2, NULL, 1, 2, 3}, {VK_STRUCTURE_TYPE_BUFFER_COPY_2, NULL, 4, 5, 6}))),
    "pCopyBufferInfo.dstBuffer = VkBuffer#2\npCopyBufferInfo.pRegions[1].srcOffset = 4\npCopyBufferInfo.pRegions[1].size = 6\n"},
{"vkCmdCopyBufferToImage", CMD(VkBuffer buffer; VkImage image; VkImageLayout layout; uint32_t count; const VkBufferImageCopy *regions;, H(VkBuffer, 1), H(VkImage, 2),
        VK_IMAGE_LAYOUT_GENERAL, 2, A(VkBufferImageCopy, {.bufferOffset = 64}, {.imageSubresource = {1, 2, 3, 4}, .imageOffset = {-5, 6, 7}, .imageExtent = {8, 9, 10}})),
    "pRegions[0].bufferOffset = 64\npRegions[1].imageSubresource.mipLevel = 2\npRegions[1].imageOffset.x = -5\npRegions[1].imageExtent.depth = 10\n"},
{"vkCmdWaitEvents2", CMD(uint32_t count; const VkEvent *events; const VkDependencyInfo *infos;, 2, A(VkEvent, H(VkEvent, 1), H(VkEvent, 2)),
        A(VkDependencyInfo, V(DEPENDENCY_INFO), V(DEPENDENCY_INFO, .bufferMemoryBarrierCount = 1,
            .pBufferMemoryBarriers = &S(VkBufferMemoryBarrier2, BUFFER_MEMORY_BARRIER_2, .buffer = H(VkBuffer, 6), .size = 99)))),
    "pEvents[1] = VkEvent#2\npDependencyInfos[1].pBufferMemoryBarriers.buffer = VkBuffer#6\npDependencyInfos[1].pBufferMemoryBarriers.size = 99\n"},
{"vkCmdExecuteCommands", CMD(uint32_t count; const VkCommandBuffer *others;, 2, A(VkCommandBuffer, H(VkCommandBuffer, 100), H(VkCommandBuffer, 101))),
    "commandBufferCount = 2\npCommandBuffers[1] = VkCommandBuffer#101\n"},
{"vkCmdSetBlendConstants", CMD(const float *constants;, A(float, 1, 2, 3, 4)), "blendConstants[3] = 4.0\n"},
{"vkCmdSetSampleMaskEXT", CMD(VkSampleCountFlagBits samples; const VkSampleMask *mask;, VK_SAMPLE_COUNT_64_BIT, A(VkSampleMask, 7, 8)), "pSampleMask[1] = 8\n"},
{"vkCmdUpdateBuffer", CMD(VkBuffer buffer; VkDeviceSize offset; VkDeviceSize size; const void *data;, H(VkBuffer, 1), 16, 8, "eightbyt"), "pData = 8 bytes\n"},
{"vkCmdDrawMultiEXT", CMD(uint32_t count; const void *info; uint32_t instances; uint32_t first; uint32_t stride;, 3,
        A(uint32_t, 1, 2, 0xcccccccc, 0xcccccccc, 3, 4, 0xcccccccc, 0xcccccccc, 5, 6), 7, 8, 16),
    "pVertexInfo[0].vertexCount = 2\npVertexInfo[1].firstVertex = 3\npVertexInfo[2].vertexCount = 6\nstride = 16\n"},
{"vkCmdDrawMultiIndexedEXT", CMD(uint32_t count; const VkMultiDrawIndexedInfoEXT *info; uint32_t instances; uint32_t first; uint32_t stride; const int32_t *offset;, 2,
        A(VkMultiDrawIndexedInfoEXT, {1, 2, 3}, {4, 5, -6}), 7, 8, sizeof(VkMultiDrawIndexedInfoEXT), A(int32_t, 11)),
    "pIndexInfo[1].vertexOffset = -6\npVertexOffset = 11\n"},
{"vkCmdBeginTransformFeedbackEXT", CMD(uint32_t first; uint32_t count; const VkBuffer *buffers; const VkDeviceSize *offsets;, 0, 2, NULL, NULL),
    "counterBufferCount = 2\npCounterBuffers = null\n"},
{"vkCmdBeginDebugUtilsLabelEXT", CMD(const VkDebugUtilsLabelEXT *label;, &S(VkDebugUtilsLabelEXT, DEBUG_UTILS_LABEL_EXT, NULL, "zone", {0, 1, 0.5f, 1})),
    "pLabelInfo.pLabelName = \"zone\"\npLabelInfo.color[2] = 0.5\n"},
{"vkCmdBuildAccelerationStructuresKHR", CMD(uint32_t count; const VkAccelerationStructureBuildGeometryInfoKHR *infos; const VkAccelerationStructureBuildRangeInfoKHR *const *ranges;,
        2, builds, A(const VkAccelerationStructureBuildRangeInfoKHR *const, A(const VkAccelerationStructureBuildRangeInfoKHR, {1, 2, 3, 4}, {5, 6, 7, 8}),
            A(const VkAccelerationStructureBuildRangeInfoKHR, {9, 10, 11, 12}))),
    "pInfos[0].pGeometries[0].geometry.triangles.maxVertex = 99\npInfos[0].pGeometries[0].geometry.triangles.indexType = VK_INDEX_TYPE_UINT16\n"
    "pInfos[0].pGeometries[1].geometry.aabbs.stride = 24\npInfos[0].ppGeometries = null\npInfos[1].pGeometries = null\n"
    "pInfos[1].ppGeometries.geometry.instances.arrayOfPointers = VK_TRUE\npInfos[1].dstAccelerationStructure = VkAccelerationStructureKHR#2\n"
    "ppBuildRangeInfos[0][1].primitiveCount = 5\nppBuildRangeInfos[1].transformOffset = 12\n"},
/* ---- Queues, objects, the rest ---- */
{"vkGetAccelerationStructureBuildSizesKHR", IMAGE(VkDevice device; VkAccelerationStructureBuildTypeKHR type; const void *info; const uint32_t *counts; void *sizes;,
        H(VkDevice, 1), VK_ACCELERATION_STRUCTURE_BUILD_TYPE_DEVICE_KHR, builds, A(uint32_t, 100, 200),
        &S(VkAccelerationStructureBuildSizesInfoKHR, ACCELERATION_STRUCTURE_BUILD_SIZES_INFO_KHR, NULL, 77)),
    "pBuildInfo.pGeometries[0].geometry.triangles.vertexStride = 12\npMaxPrimitiveCounts[1] = 200\npSizeInfo.accelerationStructureSize = 0\n"},
{"vkCreateRayTracingPipelinesKHR", IMAGE(VkDevice device; VkDeferredOperationKHR operation; VkPipelineCache cache; uint32_t count; const VkRayTracingPipelineCreateInfoKHR *infos;
        Allocator allocator; void *pipelines;, H(VkDevice, 1), VK_NULL_HANDLE, VK_NULL_HANDLE, 1, &S(VkRayTracingPipelineCreateInfoKHR, RAY_TRACING_PIPELINE_CREATE_INFO_KHR,
        .stageCount = 2, .pStages = stages, .groupCount = 2, .pGroups = A(VkRayTracingShaderGroupCreateInfoKHR,
            V(RAY_TRACING_SHADER_GROUP_CREATE_INFO_KHR, .generalShader = 3),
            V(RAY_TRACING_SHADER_GROUP_CREATE_INFO_KHR, .type = 2, .anyHitShader = VK_SHADER_UNUSED_KHR)),
        .maxPipelineRayRecursionDepth = 2, .pLibraryInfo = &S(VkPipelineLibraryCreateInfoKHR, PIPELINE_LIBRARY_CREATE_INFO_KHR, NULL, 1, A(VkPipeline, H(VkPipeline, 3))),
        .pLibraryInterface = &S(VkRayTracingPipelineInterfaceCreateInfoKHR, RAY_TRACING_PIPELINE_INTERFACE_CREATE_INFO_KHR, NULL, 32)), NULL, out),
    "pCreateInfos.pGroups[0].generalShader = 3\npCreateInfos.pGroups[1].anyHitShader = VK_SHADER_UNUSED_KHR\npCreateInfos.pLibraryInfo.pLibraries = VkPipeline#3\n"
    "pCreateInfos.pGroups[1].type = VK_RAY_TRACING_SHADER_GROUP_TYPE_PROCEDURAL_HIT_GROUP_KHR\npCreateInfos.pLibraryInterface.maxPipelineRayPayloadSize = 32\n"},
{"vkQueueSubmit", IMAGE(VkQueue queue; uint32_t count; const VkSubmitInfo *submits; VkFence fence;, H(VkQueue, 1), 1, &S(VkSubmitInfo, SUBMIT_INFO,
        &S(VkTimelineSemaphoreSubmitInfo, TIMELINE_SEMAPHORE_SUBMIT_INFO, NULL, 1, A(uint64_t, 41), 2, A(uint64_t, 42, 1ull << 63)), 1, A(VkSemaphore, H(VkSemaphore, 1)),
        A(VkPipelineStageFlags, 64), 1, A(VkCommandBuffer, H(VkCommandBuffer, 3)), 2, A(VkSemaphore, H(VkSemaphore, 2), H(VkSemaphore, 3))), H(VkFence, 9)),
    "queue = VkQueue#1\npSubmits.VkTimelineSemaphoreSubmitInfo.pSignalSemaphoreValues[1] = 9223372036854775808\npSubmits.pWaitDstStageMask = VK_PIPELINE_STAGE_GEOMETRY_SHADER_BIT\n"
    "pSubmits.pCommandBuffers = VkCommandBuffer#3\npSubmits.pSignalSemaphores[1] = VkSemaphore#3\nfence = VkFence#9\n"},
{"vkQueueSubmit2", IMAGE(VkQueue queue; uint32_t count; const VkSubmitInfo2 *submits; VkFence fence;, H(VkQueue, 1), 2, A(VkSubmitInfo2,
        V(SUBMIT_INFO_2, .waitSemaphoreInfoCount = 1, .pWaitSemaphoreInfos = &S(VkSemaphoreSubmitInfo, SEMAPHORE_SUBMIT_INFO, NULL, H(VkSemaphore, 1), 5, 0x4000)),
        V(SUBMIT_INFO_2, .commandBufferInfoCount = 1, .pCommandBufferInfos = &S(VkCommandBufferSubmitInfo, COMMAND_BUFFER_SUBMIT_INFO, NULL, H(VkCommandBuffer, 3), 1))),
        VK_NULL_HANDLE),
    "pSubmits[0].pWaitSemaphoreInfos.value = 5\npSubmits[0].pWaitSemaphoreInfos.stageMask = VK_PIPELINE_STAGE_2_HOST_BIT\n"
    "pSubmits[1].pCommandBufferInfos.commandBuffer = VkCommandBuffer#3\nfence = VK_NULL_HANDLE\n"},
#define PRESENT(results) &S(VkPresentInfoKHR, PRESENT_INFO_KHR, NULL, 1, A(VkSemaphore, H(VkSemaphore, 1)), 2, A(VkSwapchainKHR, H(VkSwapchainKHR, 1), H(VkSwapchainKHR, 2)), A(uint32_t, 2, 0), results)
#define QUEUE_PRESENT(results) IMAGE(VkQueue queue; const VkPresentInfoKHR *info;, H(VkQueue, 1), PRESENT(results))
{"vkQueuePresentKHR", QUEUE_PRESENT(OUT(VkResult)),
    "pPresentInfo.pWaitSemaphores = VkSemaphore#1\npPresentInfo.pSwapchains[1] = VkSwapchainKHR#2\npPresentInfo.pImageIndices[0] = 2\npPresentInfo.pResults = present\n"},
{"vkQueueBindSparse", IMAGE(VkQueue queue; uint32_t count; const VkBindSparseInfo *infos; VkFence fence;, H(VkQueue, 1), 1, &S(VkBindSparseInfo, BIND_SPARSE_INFO,
        .bufferBindCount = 1, .pBufferBinds = A(VkSparseBufferMemoryBindInfo, {H(VkBuffer, 1), 2, A(VkSparseMemoryBind, {.size = 1}, {2, 3, H(VkDeviceMemory, 4), 5, 1})}),
        .imageBindCount = 1, .pImageBinds = A(VkSparseImageMemoryBindInfo, {H(VkImage, 6), 1, A(VkSparseImageMemoryBind, {.offset = {7, 8, 9}, .memory = H(VkDeviceMemory, 5)})}),
        .signalSemaphoreCount = 1, .pSignalSemaphores = A(VkSemaphore, H(VkSemaphore, 3))), VK_NULL_HANDLE),
    "pBindInfo.pBufferBinds.pBinds[1].memory = VkDeviceMemory#4\npBindInfo.pBufferBinds.pBinds[1].flags = VK_SPARSE_MEMORY_BIND_METADATA_BIT\n"
    "pBindInfo.pImageBinds.pBinds.offset.z = 9\npBindInfo.pImageOpaqueBinds = null\npBindInfo.pSignalSemaphores = VkSemaphore#3\n"},
{"vkSetDebugUtilsObjectNameEXT", IMAGE(VkDevice device; const VkDebugUtilsObjectNameInfoEXT *info;, H(VkDevice, 1), &S(VkDebugUtilsObjectNameInfoEXT,
        DEBUG_UTILS_OBJECT_NAME_INFO_EXT, NULL, VK_OBJECT_TYPE_PIPELINE_LAYOUT, 0x5a00000000000000ull + 6, "layout \xc3\xa4")),
    "pNameInfo.objectType = VK_OBJECT_TYPE_PIPELINE_LAYOUT\npNameInfo.objectHandle = VkPipelineLayout#6\npNameInfo.pObjectName = \"layout \xc3\xa4\"\n"},
{"vkDebugMarkerSetObjectTagEXT", IMAGE(VkDevice device; const VkDebugMarkerObjectTagInfoEXT *info;, H(VkDevice, 1), &S(VkDebugMarkerObjectTagInfoEXT,
        DEBUG_MARKER_OBJECT_TAG_INFO_EXT, NULL, VK_DEBUG_REPORT_OBJECT_TYPE_SURFACE_KHR_EXT, 0x5a00000000000000ull + 2, 12, 5, "tags")),
    "pTagInfo.objectType = VK_DEBUG_REPORT_OBJECT_TYPE_SURFACE_KHR_EXT\npTagInfo.object = VkSurfaceKHR#2\npTagInfo.tagName = 12\npTagInfo.pTag = 5 bytes\n"},
{"vkWaitSemaphores", IMAGE(VkDevice device; const VkSemaphoreWaitInfo *info; uint64_t timeout;, H(VkDevice, 1), &S(VkSemaphoreWaitInfo, SEMAPHORE_WAIT_INFO, NULL,
        VK_SEMAPHORE_WAIT_ANY_BIT, 2, A(VkSemaphore, H(VkSemaphore, 1), H(VkSemaphore, 2)), A(uint64_t, 3, 4)), UINT64_MAX),
    "pWaitInfo.flags = VK_SEMAPHORE_WAIT_ANY_BIT\npWaitInfo.pSemaphores[1] = VkSemaphore#2\npWaitInfo.pValues[1] = 4\ntimeout = UINT64_MAX\n"},
{"vkUpdateDescriptorSetWithTemplate", IMAGE(VkDevice device; VkDescriptorSet set; VkDescriptorUpdateTemplate update; const void *data;, H(VkDevice, 1),
        H(VkDescriptorSet, 2), H(VkDescriptorUpdateTemplate, 3), &template_data),
    "pData.binding 3[1] = 2 of type VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER\npData.binding 4[0] = 1 of type VK_DESCRIPTOR_TYPE_STORAGE_BUFFER\npData.binding 6[0] = 8 of type VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK\n"},
{"vkUpdateDescriptorSetWithTemplate", IMAGE(VkDevice device; VkDescriptorSet set; VkDescriptorUpdateTemplate update; const void *data;, H(VkDevice, 1),
        H(VkDescriptorSet, 2), H(VkDescriptorUpdateTemplate, 999), BAD), "descriptorUpdateTemplate = VkDescriptorUpdateTemplate#999\npData = present\n"},
{"vkCreateDescriptorUpdateTemplate", IMAGE(CREATE(VkDescriptorUpdateTemplateCreateInfo), H(VkDevice, 1), &S(VkDescriptorUpdateTemplateCreateInfo,
        DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO, NULL, 0, 2, template_entries, 0, H(VkDescriptorSetLayout, 1), 0, (VkPipelineLayout)BAD, 9), NULL, out),
    "pCreateInfo.pDescriptorUpdateEntries[1].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER\npCreateInfo.pDescriptorUpdateEntries[0].offset = 24\n"
    "pCreateInfo.descriptorSetLayout = VkDescriptorSetLayout#1\n"},
#define ALLOCATE_COMMANDS(info, target) IMAGE(VkDevice device; const VkCommandBufferAllocateInfo *it; VkCommandBuffer *out;, H(VkDevice, 1), info, target)
#define COMMANDS_INFO(count) &S(VkCommandBufferAllocateInfo, COMMAND_BUFFER_ALLOCATE_INFO, NULL, H(VkCommandPool, 2), VK_COMMAND_BUFFER_LEVEL_SECONDARY, count)
{"vkAllocateCommandBuffers", ALLOCATE_COMMANDS(COMMANDS_INFO(3), OUT(VkCommandBuffer)),
    "pAllocateInfo.commandPool = VkCommandPool#2\npAllocateInfo.level = VK_COMMAND_BUFFER_LEVEL_SECONDARY\npAllocateInfo.commandBufferCount = 3\npCommandBuffers = present\n"},
{"vkAllocateDescriptorSets", IMAGE(VkDevice device; const VkDescriptorSetAllocateInfo *info; void *out;, H(VkDevice, 1), &S(VkDescriptorSetAllocateInfo, DESCRIPTOR_SET_ALLOCATE_INFO,
        &S(VkDescriptorSetVariableDescriptorCountAllocateInfo, DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_ALLOCATE_INFO, NULL, 2, A(uint32_t, 10, 20)),
        H(VkDescriptorPool, 1), 2, A(VkDescriptorSetLayout, H(VkDescriptorSetLayout, 1), H(VkDescriptorSetLayout, 2))), out),
    "pAllocateInfo.VkDescriptorSetVariableDescriptorCountAllocateInfo.pDescriptorCounts[1] = 20\npAllocateInfo.pSetLayouts[1] = VkDescriptorSetLayout#2\n"},
{"vkEnumeratePhysicalDevices", IMAGE(VkInstance instance; uint32_t *count; VkPhysicalDevice *devices;, H(VkInstance, 1), A(uint32_t, 77), NULL),
    "instance = VkInstance#1\npPhysicalDevices = null\n"},
{"vkEnumeratePhysicalDevices", IMAGE(VkInstance instance; uint32_t *count; VkPhysicalDevice *devices;, H(VkInstance, 1), A(uint32_t, 4), OUT(VkPhysicalDevice)),
    "pPhysicalDeviceCount = 4\npPhysicalDevices = present\n"},
{"vkGetPhysicalDeviceProperties2", IMAGE(VkPhysicalDevice device; VkPhysicalDeviceProperties2 *properties;, H(VkPhysicalDevice, 1), &S(VkPhysicalDeviceProperties2,
        PHYSICAL_DEVICE_PROPERTIES_2, &S(VkPhysicalDeviceVulkan12Properties, PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, .driverID = 77, .driverName = "garbage"),
        .properties = {.apiVersion = 99, .deviceName = "garbage"})),
    "pProperties.VkPhysicalDeviceVulkan12Properties.driverName = \"\"\npProperties.VkPhysicalDeviceVulkan12Properties.driverID = 0\n"
    "pProperties.properties.apiVersion = 0.0.0\npProperties.properties.deviceName = \"\"\n"},
{"vkGetPhysicalDeviceQueueFamilyProperties2", IMAGE(VkPhysicalDevice device; uint32_t *count; VkQueueFamilyProperties2 *properties;, H(VkPhysicalDevice, 1), A(uint32_t, 2),
        A(VkQueueFamilyProperties2, V(QUEUE_FAMILY_PROPERTIES_2), V(QUEUE_FAMILY_PROPERTIES_2,
            &S(VkQueueFamilyGlobalPriorityPropertiesKHR, QUEUE_FAMILY_GLOBAL_PRIORITY_PROPERTIES_KHR, NULL, 5)))),
    "pQueueFamilyProperties[1].VkQueueFamilyGlobalPriorityProperties.priorityCount = 0\npQueueFamilyProperties[0].queueFamilyProperties.queueCount = 0\n"},
{"vkCreateSwapchainKHR", IMAGE(CREATE(VkSwapchainCreateInfoKHR), H(VkDevice, 1), &S(VkSwapchainCreateInfoKHR, SWAPCHAIN_CREATE_INFO_KHR, NULL, 0, H(VkSurfaceKHR, 2), 3,
        VK_FORMAT_B8G8R8A8_SRGB, VK_COLOR_SPACE_SRGB_NONLINEAR_KHR, {640, 480}, 1, 16, VK_SHARING_MODE_EXCLUSIVE, 9, BAD, 1, 1, VK_PRESENT_MODE_MAILBOX_KHR, VK_TRUE,
        H(VkSwapchainKHR, 4)), NULL, out),
    "pCreateInfo.surface = VkSurfaceKHR#2\npCreateInfo.pQueueFamilyIndices = null\npCreateInfo.presentMode = VK_PRESENT_MODE_MAILBOX_KHR\npCreateInfo.oldSwapchain = VkSwapchainKHR#4\n"},
{"vkAllocateMemory", IMAGE(CREATE(VkMemoryAllocateInfo), H(VkDevice, 1), &S(VkMemoryAllocateInfo, MEMORY_ALLOCATE_INFO, &S(VkMemoryDedicatedAllocateInfo,
        MEMORY_DEDICATED_ALLOCATE_INFO, &S(VkImportMemoryFdInfoKHR, IMPORT_MEMORY_FD_INFO_KHR, NULL, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, 17), H(VkImage, 1)), 65536, 2), NULL, out),
    "pAllocateInfo.VkMemoryDedicatedAllocateInfo.image = VkImage#1\npAllocateInfo.VkImportMemoryFdInfoKHR.fd = 17\npAllocateInfo.memoryTypeIndex = 2\n"},
{"vkFlushMappedMemoryRanges", IMAGE(VkDevice device; uint32_t count; const VkMappedMemoryRange *ranges;, H(VkDevice, 1), 2, A(VkMappedMemoryRange,
        V(MAPPED_MEMORY_RANGE, NULL, H(VkDeviceMemory, 1), 0, 64), V(MAPPED_MEMORY_RANGE, NULL, H(VkDeviceMemory, 2), 64, VK_WHOLE_SIZE))),
    "pMemoryRanges[1].memory = VkDeviceMemory#2\npMemoryRanges[0].size = 64\n"},
{"vkMapMemory", IMAGE(VkDevice device; VkDeviceMemory memory; VkDeviceSize offset; VkDeviceSize size; VkMemoryMapFlags flags; void **data;, H(VkDevice, 1), H(VkDeviceMemory, 2), 16, 32, 0, OUT(void *)),
    "memory = VkDeviceMemory#2\noffset = 16\nsize = 32\n"},
{"vkCreateShaderModule", IMAGE(CREATE(VkShaderModuleCreateInfo), H(VkDevice, 1), &S(VkShaderModuleCreateInfo, SHADER_MODULE_CREATE_INFO, NULL, 0, 12, A(uint32_t, 0x07230203, 1, 2)), NULL, out),
    "pCreateInfo.codeSize = 12\npCreateInfo.pCode[0] = 119734787\npCreateInfo.pCode[2] = 2\n"},
{"vkCreatePipelineCache", IMAGE(CREATE(VkPipelineCacheCreateInfo), H(VkDevice, 1), &S(VkPipelineCacheCreateInfo, PIPELINE_CACHE_CREATE_INFO, NULL, 0, 5, "cache"), NULL, out),
    "pCreateInfo.initialDataSize = 5\npCreateInfo.pInitialData = 5 bytes\n"},
{"vkGetDescriptorEXT", IMAGE(VkDevice device; const VkDescriptorGetInfoEXT *info; size_t size; void *data;, H(VkDevice, 1), &S(VkDescriptorGetInfoEXT, DESCRIPTOR_GET_INFO_EXT, NULL,
        VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, {.pStorageImage = &no_sampler}), 32, out),
    "pDescriptorInfo.data.pStorageImage.imageView = VkImageView#3\ndataSize = 32\n"},
{"vkFreeCommandBuffers", IMAGE(VkDevice device; VkCommandPool pool; uint32_t count; const VkCommandBuffer *buffers;, H(VkDevice, 1), H(VkCommandPool, 2), 2, A(VkCommandBuffer, NULL, H(VkCommandBuffer, 3))),
    "pCommandBuffers[0] = VK_NULL_HANDLE\npCommandBuffers[1] = VkCommandBuffer#3\n"},
{"vkCreateVideoSessionParametersKHR", IMAGE(CREATE(VkVideoSessionParametersCreateInfoKHR), H(VkDevice, 1), &S(VkVideoSessionParametersCreateInfoKHR,
        VIDEO_SESSION_PARAMETERS_CREATE_INFO_KHR, &S(VkVideoDecodeH264SessionParametersCreateInfoKHR, VIDEO_DECODE_H264_SESSION_PARAMETERS_CREATE_INFO_KHR, NULL, 4, 5,
            &S(VkVideoDecodeH264SessionParametersAddInfoKHR, VIDEO_DECODE_H264_SESSION_PARAMETERS_ADD_INFO_KHR, NULL, 1, &sps, 1, &pps)), 0, VK_NULL_HANDLE, H(VkVideoSessionKHR, 7)), NULL, out),
#define ADD "pCreateInfo.VkVideoDecodeH264SessionParametersCreateInfoKHR.pParametersAddInfo."
    "pCreateInfo.VkVideoDecodeH264SessionParametersCreateInfoKHR.maxStdPPSCount = 5\npCreateInfo.videoSession = VkVideoSessionKHR#7\n"
    ADD "pStdSPSs.flags.direct_8x8_inference_flag = 1\n" ADD "pStdSPSs.flags.mb_adaptive_frame_field_flag = 0\n" ADD "pStdSPSs.flags.vui_parameters_present_flag = 1\n"
    ADD "pStdSPSs.profile_idc = STD_VIDEO_H264_PROFILE_IDC_HIGH\n" ADD "pStdSPSs.level_idc = STD_VIDEO_H264_LEVEL_IDC_4_1\n" ADD "pStdSPSs.seq_parameter_set_id = 3\n"
    ADD "pStdSPSs.offset_for_non_ref_pic = -7\n" ADD "pStdSPSs.pic_width_in_mbs_minus1 = 119\n" ADD "pStdSPSs.pOffsetForRefFrame[1] = 6\n" ADD "pStdSPSs.pScalingLists = null\n"
    ADD "pStdSPSs.pSequenceParameterSetVui.sar_width = 4\n" ADD "pStdSPSs.pSequenceParameterSetVui.pHrdParameters.bit_rate_value_minus1[1] = 20\n"
    ADD "pStdPPSs.flags.entropy_coding_mode_flag = 1\n" ADD "pStdPPSs.chroma_qp_index_offset = -2\n" ADD "pStdPPSs.pScalingLists.scaling_list_present_mask = 3\n"
    ADD "pStdPPSs.pScalingLists.ScalingList4x4[16] = 3\n"},
#define H265 "pCreateInfo.VkVideoDecodeH265SessionParametersCreateInfoKHR.pParametersAddInfo.pStdVPSs."
{"vkCreateVideoSessionParametersKHR", IMAGE(CREATE(VkVideoSessionParametersCreateInfoKHR), H(VkDevice, 1), &S(VkVideoSessionParametersCreateInfoKHR,
        VIDEO_SESSION_PARAMETERS_CREATE_INFO_KHR, &S(VkVideoDecodeH265SessionParametersCreateInfoKHR, VIDEO_DECODE_H265_SESSION_PARAMETERS_CREATE_INFO_KHR, NULL, 1, 1, 1,
            &S(VkVideoDecodeH265SessionParametersAddInfoKHR, VIDEO_DECODE_H265_SESSION_PARAMETERS_ADD_INFO_KHR, NULL, 1, &vps)), 0, H(VkVideoSessionParametersKHR, 2), H(VkVideoSessionKHR, 7)), NULL, out),
    "pCreateInfo.videoSessionParametersTemplate = VkVideoSessionParametersKHR#2\n" H265 "vps_max_sub_layers_minus1 = 2\n" H265 "vps_time_scale = 60\n"
    H265 "pDecPicBufMgr.max_num_reorder_pics[2] = 3\n" H265 "pHrdParameters.tick_divisor_minus2 = 9\n" H265 "pHrdParameters.flags.nal_hrd_parameters_present_flag = 1\n"
    H265 "pHrdParameters.pSubLayerHrdParametersNal[2].cbr_flag = 33\n" H265 "pHrdParameters.pSubLayerHrdParametersVcl = null\n"
    H265 "pProfileTierLevel.general_level_idc = STD_VIDEO_H265_LEVEL_IDC_5_1\n"},
{"vkCmdDecodeVideoKHR", CMD(const VkVideoDecodeInfoKHR *info;, &S(VkVideoDecodeInfoKHR, VIDEO_DECODE_INFO_KHR, &S(VkVideoDecodeH264PictureInfoKHR,
        VIDEO_DECODE_H264_PICTURE_INFO_KHR, NULL, &(StdVideoDecodeH264PictureInfo){.flags = {.IdrPicFlag = 1}, .frame_num = 17, .PicOrderCnt = {-1, 2}}, 2, A(uint32_t, 0, 900)),
        .srcBuffer = H(VkBuffer, 1), .dstPictureResource = V(VIDEO_PICTURE_RESOURCE_INFO_KHR, .codedExtent = {64, 32}, .imageViewBinding = H(VkImageView, 5)), .referenceSlotCount = 1,
        .pReferenceSlots = &S(VkVideoReferenceSlotInfoKHR, VIDEO_REFERENCE_SLOT_INFO_KHR, NULL, -1, &S(VkVideoPictureResourceInfoKHR, VIDEO_PICTURE_RESOURCE_INFO_KHR, .baseArrayLayer = 6)))),
    "pDecodeInfo.VkVideoDecodeH264PictureInfoKHR.pStdPictureInfo.frame_num = 17\npDecodeInfo.VkVideoDecodeH264PictureInfoKHR.pStdPictureInfo.PicOrderCnt[0] = -1\n"
    "pDecodeInfo.VkVideoDecodeH264PictureInfoKHR.pStdPictureInfo.flags.IdrPicFlag = 1\npDecodeInfo.VkVideoDecodeH264PictureInfoKHR.pSliceOffsets[1] = 900\n"
    "pDecodeInfo.dstPictureResource.imageViewBinding = VkImageView#5\npDecodeInfo.pReferenceSlots.slotIndex = -1\npDecodeInfo.pReferenceSlots.pPictureResource.baseArrayLayer = 6\n"},
{"vkGetPhysicalDeviceVideoCapabilitiesKHR", IMAGE(VkPhysicalDevice device; const void *profile; void *capabilities;, H(VkPhysicalDevice, 1), &profile, &S(VkVideoCapabilitiesKHR,
        VIDEO_CAPABILITIES_KHR, &S(VkVideoDecodeCapabilitiesKHR, VIDEO_DECODE_CAPABILITIES_KHR, NULL, 7), .maxDpbSlots = 99)),
    "pVideoProfile.VkVideoDecodeH264ProfileInfoKHR.stdProfileIdc = STD_VIDEO_H264_PROFILE_IDC_MAIN\npCapabilities.VkVideoDecodeCapabilitiesKHR.flags = 0\npCapabilities.maxDpbSlots = 0\n"},
{"vkCmdBuildAccelerationStructuresIndirectKHR", CMD(uint32_t count; const void *infos; const VkDeviceAddress *addresses; const uint32_t *strides; const uint32_t *const *counts;, 2, builds,
        A(VkDeviceAddress, 1, 2), A(uint32_t, 16, 32), A(const uint32_t *const, A(uint32_t, 5, 6), A(uint32_t, 7))),
    "pIndirectDeviceAddresses[1] = 0x2\npIndirectStrides[1] = 32\nppMaxPrimitiveCounts[0][1] = 6\nppMaxPrimitiveCounts[1] = 7\n"},
{"vkCmdSetVertexInputEXT", CMD(uint32_t bindings; const VkVertexInputBindingDescription2EXT *binding; uint32_t attributes; const VkVertexInputAttributeDescription2EXT *attribute;, 1,
        &S(VkVertexInputBindingDescription2EXT, VERTEX_INPUT_BINDING_DESCRIPTION_2_EXT, NULL, 1, 2, 1, 4), 0, NULL),
    "pVertexBindingDescriptions.divisor = 4\npVertexAttributeDescriptions = null\n"},
{"vkCmdPushDescriptorSetKHR", CMD(VkPipelineBindPoint point; VkPipelineLayout layout; uint32_t set; uint32_t count; const VkWriteDescriptorSet *writes;, 0, H(VkPipelineLayout, 2), 3, 1, &writes[6]),
    "set = 3\npDescriptorWrites.pBufferInfo.buffer = VkBuffer#9\npDescriptorWrites.pImageInfo = null\n"},
{"vkGetPipelinePropertiesEXT", IMAGE(VkDevice device; const VkPipelineInfoKHR *info; void *properties;, H(VkDevice, 1), &S(VkPipelineInfoKHR, PIPELINE_INFO_KHR, NULL, H(VkPipeline, 5)),
        &S(VkPipelinePropertiesIdentifierEXT, PIPELINE_PROPERTIES_IDENTIFIER_EXT, NULL, {9, 9})),
    "pPipelineInfo.pipeline = VkPipeline#5\npPipelineProperties.VkPipelinePropertiesIdentifierEXT.pipelineIdentifier[0] = 0\n"},
{"vkGetPhysicalDeviceFormatProperties2", IMAGE(VkPhysicalDevice device; VkFormat format; void *properties;, H(VkPhysicalDevice, 1), VK_FORMAT_R8_UNORM, &S(VkFormatProperties2, FORMAT_PROPERTIES_2,
        &S(VkDrmFormatModifierPropertiesListEXT, DRM_FORMAT_MODIFIER_PROPERTIES_LIST_EXT, NULL, 3, BAD))),
    "format = VK_FORMAT_R8_UNORM\npFormatProperties.VkDrmFormatModifierPropertiesListEXT.drmFormatModifierCount = 3\n"
    "pFormatProperties.VkDrmFormatModifierPropertiesListEXT.pDrmFormatModifierProperties = present\n"},
{"vkGetPhysicalDeviceImageFormatProperties2", IMAGE(VkPhysicalDevice device; const void *info; void *properties;, H(VkPhysicalDevice, 1), &S(VkPhysicalDeviceImageFormatInfo2,
        PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2, &S(VkPhysicalDeviceImageDrmFormatModifierInfoEXT, PHYSICAL_DEVICE_IMAGE_DRM_FORMAT_MODIFIER_INFO_EXT, NULL, 77, VK_SHARING_MODE_EXCLUSIVE, 4, BAD),
        VK_FORMAT_R8_UNORM), &S(VkImageFormatProperties2, IMAGE_FORMAT_PROPERTIES_2)),
    "pImageFormatInfo.VkPhysicalDeviceImageDrmFormatModifierInfoEXT.drmFormatModifier = 77\npImageFormatInfo.VkPhysicalDeviceImageDrmFormatModifierInfoEXT.pQueueFamilyIndices = null\n"},
{"vkGetDescriptorEXT", IMAGE(VkDevice device; const VkDescriptorGetInfoEXT *info; size_t size; void *data;, H(VkDevice, 1), &S(VkDescriptorGetInfoEXT, DESCRIPTOR_GET_INFO_EXT, NULL,
        VK_DESCRIPTOR_TYPE_SAMPLER, {.pSampler = A(VkSampler, H(VkSampler, 6))}), 32, out), "pDescriptorInfo.data.pSampler = VkSampler#6\n"},
{"vkGetDescriptorEXT", IMAGE(VkDevice device; const VkDescriptorGetInfoEXT *info; size_t size; void *data;, H(VkDevice, 1), &S(VkDescriptorGetInfoEXT, DESCRIPTOR_GET_INFO_EXT, NULL,
        VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR, {.accelerationStructure = 0xabc000}), 32, out), "pDescriptorInfo.data.accelerationStructure = 0xabc000\n"},
{"vkGetDescriptorEXT", IMAGE(VkDevice device; const VkDescriptorGetInfoEXT *info; size_t size; void *data;, H(VkDevice, 1), &S(VkDescriptorGetInfoEXT, DESCRIPTOR_GET_INFO_EXT, NULL,
        VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, {.pStorageTexelBuffer = &S(VkDescriptorAddressInfoEXT, DESCRIPTOR_ADDRESS_INFO_EXT, NULL, 0x1000, 64, VK_FORMAT_R8_UINT)}), 32, out),
    "pDescriptorInfo.data.pStorageTexelBuffer.range = 64\npDescriptorInfo.data.pStorageTexelBuffer.format = VK_FORMAT_R8_UINT\n"},
{"vkSetPrivateData", IMAGE(VkDevice device; VkObjectType type; uint64_t object; VkPrivateDataSlot slot; uint64_t data;, H(VkDevice, 1), VK_OBJECT_TYPE_IMAGE, 0x5a00000000000000ull + 8,
        H(VkPrivateDataSlot, 1), 99), "objectHandle = VkImage#8\nprivateDataSlot = VkPrivateDataSlot#1\ndata = 99\n"},
{"vkSubmitDebugUtilsMessageEXT", IMAGE(VkInstance instance; uint32_t severity; uint32_t types; const void *data;, H(VkInstance, 1), 16, 1, &S(VkDebugUtilsMessengerCallbackDataEXT,
        DEBUG_UTILS_MESSENGER_CALLBACK_DATA_EXT, .pMessage = "text", .messageIdNumber = -3, .objectCount = 2, .pObjects = A(VkDebugUtilsObjectNameInfoEXT,
            V(DEBUG_UTILS_OBJECT_NAME_INFO_EXT, NULL, VK_OBJECT_TYPE_QUEUE, 0x5a00000000000000ull + 1), V(DEBUG_UTILS_OBJECT_NAME_INFO_EXT, NULL, VK_OBJECT_TYPE_UNKNOWN, 0xdeadbeefdeadbee1, "it")))),
    "pCallbackData.messageIdNumber = -3\npCallbackData.pObjects[0].objectHandle = VkQueue#1\npCallbackData.pObjects[1].pObjectName = \"it\"\npCallbackData.pMessageIdName = null\n"},
{"vkCreateIndirectCommandsLayoutNV", IMAGE(CREATE(VkIndirectCommandsLayoutCreateInfoNV), H(VkDevice, 1), &S(VkIndirectCommandsLayoutCreateInfoNV, INDIRECT_COMMANDS_LAYOUT_CREATE_INFO_NV,
        .tokenCount = 1, .pTokens = &S(VkIndirectCommandsLayoutTokenNV, INDIRECT_COMMANDS_LAYOUT_TOKEN_NV, .tokenType = VK_INDIRECT_COMMANDS_TOKEN_TYPE_INDEX_BUFFER_NV, .indexTypeCount = 2,
            .pIndexTypes = A(VkIndexType, 0, 1), .pIndexTypeValues = A(uint32_t, 42, 57)), .streamCount = 2, .pStreamStrides = A(uint32_t, 16, 32)), NULL, out),
    "pCreateInfo.pTokens.pIndexTypeValues[1] = 57\npCreateInfo.pStreamStrides[1] = 32\n"},
{"vkCreateGraphicsPipelines", PIPELINES(3, {PIPELINE, .pNext = &S(VkGraphicsPipelineLibraryCreateInfoEXT, GRAPHICS_PIPELINE_LIBRARY_CREATE_INFO_EXT,
            &S(VkPipelineRenderingCreateInfo, PIPELINE_RENDERING_CREATE_INFO, NULL, 0, 1, A(VkFormat, 9)), VK_GRAPHICS_PIPELINE_LIBRARY_FRAGMENT_OUTPUT_INTERFACE_BIT_EXT),
            .flags = VK_PIPELINE_CREATE_LIBRARY_BIT_KHR, .stageCount = 2, .pStages = BAD, .pVertexInputState = BAD, .pInputAssemblyState = BAD, .pTessellationState = BAD,
            .pViewportState = BAD, .pRasterizationState = BAD, .pMultisampleState = &multisample, .pDepthStencilState = BAD, .pColorBlendState = &blend},
        {PIPELINE, .pNext = &S(VkGraphicsPipelineLibraryCreateInfoEXT, GRAPHICS_PIPELINE_LIBRARY_CREATE_INFO_EXT, &S(VkPipelineRenderingCreateInfo,
            PIPELINE_RENDERING_CREATE_INFO, NULL, 0, 4, BAD), VK_GRAPHICS_PIPELINE_LIBRARY_FRAGMENT_SHADER_BIT_EXT), .flags = VK_PIPELINE_CREATE_LIBRARY_BIT_KHR,
            .stageCount = 1, .pStages = &stages[1], .pVertexInputState = BAD, .pInputAssemblyState = BAD, .pTessellationState = BAD, .pViewportState = BAD,
            .pRasterizationState = BAD, .pMultisampleState = &multisample, .pDepthStencilState = &depth, .pColorBlendState = BAD},
        {PIPELINE, .pNext = &S(VkPipelineLibraryCreateInfoKHR, PIPELINE_LIBRARY_CREATE_INFO_KHR, NULL, 2, A(VkPipeline, H(VkPipeline, 1), H(VkPipeline, 2))), .stageCount = 5,
            .pStages = BAD, .pVertexInputState = BAD, .pInputAssemblyState = BAD, .pTessellationState = BAD, .pViewportState = BAD, .pRasterizationState = BAD,
            .pMultisampleState = BAD, .pDepthStencilState = BAD, .pColorBlendState = BAD}),
    "pCreateInfos[0].VkPipelineRenderingCreateInfo.pColorAttachmentFormats = VK_FORMAT_R8_UNORM\npCreateInfos[0].pStages = null\npCreateInfos[0].pMultisampleState.pSampleMask[1] = 15\n"
    "pCreateInfos[0].pColorBlendState.attachmentCount = 1\npCreateInfos[0].pDepthStencilState = null\npCreateInfos[1].pStages.pName = \"fs\"\n"
    "pCreateInfos[1].VkPipelineRenderingCreateInfo.pColorAttachmentFormats = null\npCreateInfos[1].pDepthStencilState.depthTestEnable = VK_TRUE\n"
    "pCreateInfos[1].pColorBlendState = null\npCreateInfos[2].VkPipelineLibraryCreateInfoKHR.pLibraries[1] = VkPipeline#2\npCreateInfos[2].pStages = null\n"},
{"vkCreateGraphicsPipelines", PIPELINES(1, {PIPELINE, .stageCount = 1, .pStages = stages, .pVertexInputState = BAD, .pInputAssemblyState = &assembly,
        .pViewportState = &S(VkPipelineViewportStateCreateInfo, PIPELINE_VIEWPORT_STATE_CREATE_INFO, NULL, 0, 0, BAD, 0, BAD), .pRasterizationState = &S(
        VkPipelineRasterizationStateCreateInfo, PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .rasterizerDiscardEnable = VK_TRUE), .pMultisampleState = &multisample,
        .pDynamicState = &S(VkPipelineDynamicStateCreateInfo, PIPELINE_DYNAMIC_STATE_CREATE_INFO, .dynamicStateCount = 4, .pDynamicStates = A(VkDynamicState,
            VK_DYNAMIC_STATE_VERTEX_INPUT_EXT, VK_DYNAMIC_STATE_RASTERIZER_DISCARD_ENABLE, VK_DYNAMIC_STATE_VIEWPORT_WITH_COUNT, VK_DYNAMIC_STATE_SCISSOR_WITH_COUNT))}),
    "pCreateInfos.pVertexInputState = null\npCreateInfos.pViewportState.pViewports = null\npCreateInfos.pMultisampleState.pSampleMask[0] = 240\n"},
{"vkBeginCommandBuffer", IMAGE(VkCommandBuffer commands; const VkCommandBufferBeginInfo *info;, H(VkCommandBuffer, 101), &S(VkCommandBufferBeginInfo, COMMAND_BUFFER_BEGIN_INFO, NULL, 0,
        &S(VkCommandBufferInheritanceInfo, COMMAND_BUFFER_INHERITANCE_INFO, &S(VkCommandBufferInheritanceRenderingInfo, COMMAND_BUFFER_INHERITANCE_RENDERING_INFO,
            &S(VkCommandBufferInheritanceViewportScissorInfoNV, COMMAND_BUFFER_INHERITANCE_VIEWPORT_SCISSOR_INFO_NV, NULL, VK_FALSE, 2, BAD), 0, 0, 3, BAD), (VkRenderPass)BAD))),
    "pBeginInfo.pInheritanceInfo.VkCommandBufferInheritanceRenderingInfo.pColorAttachmentFormats = null\n"
    "pBeginInfo.pInheritanceInfo.VkCommandBufferInheritanceViewportScissorInfoNV.pViewportDepths = null\npBeginInfo.pInheritanceInfo.renderPass = VkRenderPass#unknown\n"},
{"vkCmdSetFragmentShadingRateKHR", CMD(const VkExtent2D *size; const VkFragmentShadingRateCombinerOpKHR *ops;, A(VkExtent2D, {1, 2}), A(VkFragmentShadingRateCombinerOpKHR, 1, 2)),
    "pFragmentSize.height = 2\ncombinerOps[1] = VK_FRAGMENT_SHADING_RATE_COMBINER_OP_MIN_KHR\n"},
{"vkCmdSetCheckpointNV", CMD(const void *marker;, BAD), "pCheckpointMarker = present\n"},
{"vkCmdCuLaunchKernelNVX", CMD(const VkCuLaunchInfoNVX *info;, &S(VkCuLaunchInfoNVX, CU_LAUNCH_INFO_NVX, .function = H(VkCuFunctionNVX, 1), .gridDimX = 8, .paramCount = 2,
        .pParams = A(const void *const, BAD, NULL), .extraCount = 0, .pExtras = BAD)), "pLaunchInfo.function = VkCuFunctionNVX#1\npLaunchInfo.gridDimX = 8\npLaunchInfo.paramCount = 2\n"},
{"vkCmdBuildMicromapsEXT", CMD(uint32_t count; const VkMicromapBuildInfoEXT *infos;, 1, &S(VkMicromapBuildInfoEXT, MICROMAP_BUILD_INFO_EXT, .dstMicromap = H(VkMicromapEXT, 2), .usageCountsCount = 2,
        .ppUsageCounts = A(const VkMicromapUsageEXT *const, A(VkMicromapUsageEXT, {1, 2, 3}), A(VkMicromapUsageEXT, {4, 5, 6})), .data = {0x8000})),
    "pInfos.dstMicromap = VkMicromapEXT#2\npInfos.pUsageCounts = null\npInfos.ppUsageCounts[1].format = 6\n"},
{"vkCmdDrawMultiEXT", CMD(uint32_t count; const void *info; uint32_t instances; uint32_t first; uint32_t stride;, 0, BAD, 7, 8, 16), "pVertexInfo = []\n"},
{"vkGetPhysicalDeviceDisplayProperties2KHR", IMAGE(VkPhysicalDevice device; uint32_t *count; void *properties;, H(VkPhysicalDevice, 1), A(uint32_t, 1), &S(VkDisplayProperties2KHR,
        DISPLAY_PROPERTIES_2_KHR, NULL, {H(VkDisplayKHR, 9), BAD})), "pProperties.displayProperties.displayName = null\npProperties.displayProperties.display = VK_NULL_HANDLE\n"},
};

/* ---- After the call ---- */
static VkPhysicalDeviceVulkan12Properties filled_12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, .driverName = "driver\0garbage", .conformanceVersion = {1, 2, 3, 4}};
static VkPhysicalDeviceProperties2 filled = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &filled_12, {.apiVersion = 5, .deviceName = "a device\0garbage",
    .deviceType = VK_PHYSICAL_DEVICE_TYPE_CPU, .pipelineCacheUUID = {1, 2}, .limits = {.maxMemoryAllocationCount = 4096, .nonCoherentAtomSize = 64}}};
static VkExtensionProperties extensions[3] = {{"VK_KHR_one", 1}, {"VK_KHR_two\0garbage", 2}, {"not written", 3}};
typedef struct { VkDevice device; VkSwapchainKHR swapchain; uint64_t timeout; VkSemaphore semaphore; VkFence fence; uint32_t *index; } Acquire;
static Leave LEAVES[] = {
{"vkAllocateCommandBuffers", ALLOCATE_COMMANDS(COMMANDS_INFO(2), A(VkCommandBuffer, H(VkCommandBuffer, 100), H(VkCommandBuffer, 101))), VK_SUCCESS,
    "result = VK_SUCCESS\npCommandBuffers[1] = VkCommandBuffer#101\n"},
{"vkAllocateCommandBuffers", ALLOCATE_COMMANDS(COMMANDS_INFO(2), BAD), VK_ERROR_OUT_OF_HOST_MEMORY, "result = VK_ERROR_OUT_OF_HOST_MEMORY\npCommandBuffers = null\n"},
{"vkCreateGraphicsPipelines", &(GraphicsPipelines){H(VkDevice, 1), VK_NULL_HANDLE, 3, A(VkGraphicsPipelineCreateInfo,
        {PIPELINE, .stageCount = 1, .pStages = stages, .pVertexInputState = &vertex_input, .pInputAssemblyState = &assembly, .pRasterizationState = &discard, .pColorBlendState = BAD},
        {PIPELINE, .pRasterizationState = &discard, .pMultisampleState = BAD}, {PIPELINE, .pRasterizationState = &discard}), NULL,
        A(VkPipeline, H(VkPipeline, 1), VK_NULL_HANDLE, H(VkPipeline, 3))}, VK_PIPELINE_COMPILE_REQUIRED,
    "result = VK_PIPELINE_COMPILE_REQUIRED\npPipelines[0] = VkPipeline#1\npPipelines[1] = VK_NULL_HANDLE\npPipelines[2] = VkPipeline#3\n"},
{"vkCreateGraphicsPipelines", PIPELINES(1, {PIPELINE, .pRasterizationState = &discard}), VK_ERROR_OUT_OF_DEVICE_MEMORY, "result = VK_ERROR_OUT_OF_DEVICE_MEMORY\n"},
{"vkGetQueryPoolResults", IMAGE(VkDevice device; VkQueryPool pool; uint32_t first; uint32_t count; size_t size; void *data; VkDeviceSize stride; VkQueryResultFlags flags;,
        H(VkDevice, 1), H(VkQueryPool, 2), 0, 2, 16, A(uint64_t, 1, 2), 8, 1), VK_NOT_READY, "result = VK_NOT_READY\ndataSize = 16\npData = 16 bytes\n"},
{"vkEnumerateInstanceExtensionProperties", IMAGE(const char *layer; uint32_t *count; void *properties;, NULL, A(uint32_t, 2), extensions), VK_INCOMPLETE,
    "result = VK_INCOMPLETE\npPropertyCount = 2\npProperties[0].extensionName = \"VK_KHR_one\"\npProperties[1].extensionName = \"VK_KHR_two\"\npProperties[1].specVersion = 2\n"},
{"vkEnumerateInstanceExtensionProperties", IMAGE(const char *layer; uint32_t *count; void *properties;, NULL, A(uint32_t, 7), NULL), VK_SUCCESS, "pPropertyCount = 7\npProperties = null\n"},
{"vkGetPhysicalDeviceProperties2", IMAGE(VkPhysicalDevice device; void *properties;, H(VkPhysicalDevice, 1), &filled), 0,
    "pProperties.VkPhysicalDeviceVulkan12Properties.driverName = \"driver\"\npProperties.VkPhysicalDeviceVulkan12Properties.conformanceVersion.patch = 4\n"
    "pProperties.properties.deviceName = \"a device\"\npProperties.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_CPU\npProperties.properties.limits.nonCoherentAtomSize = 64\n"
    "pProperties.properties.pipelineCacheUUID = 01020000000000000000000000000000\n"},
{"vkAcquireNextImageKHR", &(Acquire){H(VkDevice, 1), H(VkSwapchainKHR, 2), 0, H(VkSemaphore, 1), VK_NULL_HANDLE, BAD}, VK_TIMEOUT, "result = VK_TIMEOUT\npImageIndex = null\n"},
{"vkAcquireNextImageKHR", &(Acquire){H(VkDevice, 1), H(VkSwapchainKHR, 2), 0, H(VkSemaphore, 1), VK_NULL_HANDLE, A(uint32_t, 2)}, VK_SUBOPTIMAL_KHR, "result = VK_SUBOPTIMAL_KHR\npImageIndex = 2\n"},
{"vkQueuePresentKHR", QUEUE_PRESENT(A(VkResult, VK_SUCCESS, VK_SUBOPTIMAL_KHR)), VK_SUBOPTIMAL_KHR,
    "result = VK_SUBOPTIMAL_KHR\npPresentInfo.pSwapchains[0] = VkSwapchainKHR#1\npPresentInfo.pResults[1] = VK_SUBOPTIMAL_KHR\n"},
{"vkQueuePresentKHR", QUEUE_PRESENT(A(VkResult, VK_SUCCESS, VK_ERROR_OUT_OF_DATE_KHR)), VK_ERROR_OUT_OF_DATE_KHR, "result = VK_ERROR_OUT_OF_DATE_KHR\npPresentInfo.pResults[0] = VK_SUCCESS\n"},
{"vkCreateBuffer", IMAGE(CREATE(VkBufferCreateInfo), H(VkDevice, 1), &dirty_info, NULL, BAD), VK_ERROR_OUT_OF_DEVICE_MEMORY, "result = VK_ERROR_OUT_OF_DEVICE_MEMORY\npBuffer = null\n"},
{"vkCreateBuffer", IMAGE(CREATE(VkBufferCreateInfo), H(VkDevice, 1), &dirty_info, NULL, A(VkBuffer, H(VkBuffer, 12))), VK_SUCCESS, "result = VK_SUCCESS\npBuffer = VkBuffer#12\n"},
{"vkGetBufferDeviceAddress", IMAGE(VkDevice device; const void *info;, H(VkDevice, 1), &S(VkBufferDeviceAddressInfo, BUFFER_DEVICE_ADDRESS_INFO, NULL, H(VkBuffer, 1))), 0x123456789ab,
    "result = 0x123456789ab\n"},
{"vkMapMemory", IMAGE(VkDevice device; VkDeviceMemory memory; VkDeviceSize offset; VkDeviceSize size; VkMemoryMapFlags flags; void **data;, H(VkDevice, 1), H(VkDeviceMemory, 2), 16, 32, 0,
        A(void *, BAD)), VK_SUCCESS, "result = VK_SUCCESS\n"},
{"vkGetSwapchainImagesKHR", IMAGE(VkDevice device; VkSwapchainKHR swapchain; uint32_t *count; VkImage *images;, H(VkDevice, 1), H(VkSwapchainKHR, 2), A(uint32_t, 2),
        A(VkImage, H(VkImage, 7), H(VkImage, 8))), VK_SUCCESS, "pSwapchainImageCount = 2\npSwapchainImages[1] = VkImage#8\n"},
{"vkGetPipelineExecutableStatisticsKHR", IMAGE(VkDevice device; const VkPipelineExecutableInfoKHR *info; uint32_t *count; VkPipelineExecutableStatisticKHR *statistics;, H(VkDevice, 1),
        &S(VkPipelineExecutableInfoKHR, PIPELINE_EXECUTABLE_INFO_KHR, NULL, H(VkPipeline, 1), 2), A(uint32_t, 2), A(VkPipelineExecutableStatisticKHR,
            V(PIPELINE_EXECUTABLE_STATISTIC_KHR, NULL, "flag", "a\0b", VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR, {.u64 = 0xcccccccc00000001}),
            V(PIPELINE_EXECUTABLE_STATISTIC_KHR, NULL, "sum", "", VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR, {.f64 = 1.5}))), VK_SUCCESS,
    "pStatistics[0].name = \"flag\"\npStatistics[0].value.b32 = VK_TRUE\npStatistics[1].value.f64 = 1.5\n"},
{"vkGetPerformanceParameterINTEL", IMAGE(VkDevice device; VkPerformanceParameterTypeINTEL type; VkPerformanceValueINTEL *value;, H(VkDevice, 1), 0,
        A(VkPerformanceValueINTEL, {VK_PERFORMANCE_VALUE_TYPE_STRING_INTEL, {.valueString = "fast"}})), VK_SUCCESS, "pValue.data.valueString = \"fast\"\n"},
{"vkGetPipelineCacheData", IMAGE(VkDevice device; VkPipelineCache cache; size_t *size; void *data;, H(VkDevice, 1), H(VkPipelineCache, 2), A(size_t, 3), "abc"), VK_INCOMPLETE,
    "result = VK_INCOMPLETE\npDataSize = 3\npData = 3 bytes\n"},
{"vkGetCalibratedTimestampsEXT", IMAGE(VkDevice device; uint32_t count; const VkCalibratedTimestampInfoEXT *infos; uint64_t *times; uint64_t *deviation;, H(VkDevice, 1), 2,
        A(VkCalibratedTimestampInfoEXT, V(CALIBRATED_TIMESTAMP_INFO_EXT), V(CALIBRATED_TIMESTAMP_INFO_EXT)), A(uint64_t, 11, 12), A(uint64_t, 13)), VK_SUCCESS,
    "pTimestamps[1] = 12\npMaxDeviation = 13\n"},
{"vkGetDeviceQueue", IMAGE(VkDevice device; uint32_t family; uint32_t index; VkQueue *queue;, H(VkDevice, 1), 2, 3, A(VkQueue, H(VkQueue, 4))), 0, "pQueue = VkQueue#4\n"},
{"vkGetMemoryFdKHR", IMAGE(VkDevice device; const void *info; int *fd;, H(VkDevice, 1), &S(VkMemoryGetFdInfoKHR, MEMORY_GET_FD_INFO_KHR, NULL, H(VkDeviceMemory, 1)), A(int, 21)), VK_SUCCESS, "pFd = 21\n"},
{"vkGetEventStatus", IMAGE(VkDevice device; VkEvent event;, H(VkDevice, 1), H(VkEvent, 2)), VK_EVENT_SET, "result = VK_EVENT_SET\n"},
{"vkAllocateDescriptorSets", IMAGE(VkDevice device; const VkDescriptorSetAllocateInfo *info; void *out;, H(VkDevice, 1), &S(VkDescriptorSetAllocateInfo, DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorSetCount = 2, .pSetLayouts = BAD), A(VkDescriptorSet, H(VkDescriptorSet, 1), H(VkDescriptorSet, 2))), VK_SUCCESS, "pDescriptorSets[1] = VkDescriptorSet#2\n"},
{"vkCreateComputePipelines", IMAGE(VkDevice device; VkPipelineCache cache; uint32_t count; const VkComputePipelineCreateInfo *infos; Allocator allocator; void *pipelines;,
        H(VkDevice, 1), VK_NULL_HANDLE, 1, &S(VkComputePipelineCreateInfo, COMPUTE_PIPELINE_CREATE_INFO, &S(VkPipelineCreationFeedbackCreateInfo, PIPELINE_CREATION_FEEDBACK_CREATE_INFO, NULL,
            A(VkPipelineCreationFeedback, {1, 500}), 1, A(VkPipelineCreationFeedback, {3, 400})), .stage = V(PIPELINE_SHADER_STAGE_CREATE_INFO, .pName = "main")), NULL, A(VkPipeline, H(VkPipeline, 8))),
    VK_SUCCESS, "pCreateInfos.VkPipelineCreationFeedbackCreateInfo.pPipelineCreationFeedback.duration = 500\n"
    "pCreateInfos.VkPipelineCreationFeedbackCreateInfo.pPipelineStageCreationFeedbacks.duration = 400\npPipelines = VkPipeline#8\n"},
{"vkGetPhysicalDeviceFormatProperties2", IMAGE(VkPhysicalDevice device; VkFormat format; void *properties;, H(VkPhysicalDevice, 1), VK_FORMAT_R8_UNORM, &S(VkFormatProperties2, FORMAT_PROPERTIES_2,
        &S(VkDrmFormatModifierPropertiesListEXT, DRM_FORMAT_MODIFIER_PROPERTIES_LIST_EXT, NULL, 2, A(VkDrmFormatModifierPropertiesEXT, {1, 2, 3}, {4, 5, 6})))), 0,
    "pFormatProperties.VkDrmFormatModifierPropertiesListEXT.pDrmFormatModifierProperties[1].drmFormatModifier = 4\n"},
{"vkEnumeratePhysicalDeviceGroups", IMAGE(VkInstance instance; uint32_t *count; VkPhysicalDeviceGroupProperties *groups;, H(VkInstance, 1), A(uint32_t, 1), &S(VkPhysicalDeviceGroupProperties,
        PHYSICAL_DEVICE_GROUP_PROPERTIES, NULL, 1, {H(VkPhysicalDevice, 2), BAD}, VK_TRUE)), VK_SUCCESS, "pPhysicalDeviceGroupProperties.physicalDevices[0] = VkPhysicalDevice#2\n"
    "pPhysicalDeviceGroupProperties.physicalDevices[1] = VK_NULL_HANDLE\n"},
{"vkGetPhysicalDeviceDisplayProperties2KHR", IMAGE(VkPhysicalDevice device; uint32_t *count; void *properties;, H(VkPhysicalDevice, 1), A(uint32_t, 1), &S(VkDisplayProperties2KHR,
        DISPLAY_PROPERTIES_2_KHR, NULL, {H(VkDisplayKHR, 9), "screen"})), VK_SUCCESS, "pProperties.displayProperties.displayName = \"screen\"\npProperties.displayProperties.display = VkDisplayKHR#9\n"},
{"vkCreateRayTracingPipelinesKHR", IMAGE(VkDevice device; VkDeferredOperationKHR operation; VkPipelineCache cache; uint32_t count; const void *infos; Allocator allocator; void *pipelines;,
        H(VkDevice, 1), H(VkDeferredOperationKHR, 1), VK_NULL_HANDLE, 1, &S(VkRayTracingPipelineCreateInfoKHR, RAY_TRACING_PIPELINE_CREATE_INFO_KHR), NULL, out), VK_OPERATION_DEFERRED_KHR,
    "result = VK_OPERATION_DEFERRED_KHR\npPipelines = null\n"},
{"vkGetPipelineExecutableInternalRepresentationsKHR", IMAGE(VkDevice device; const void *info; uint32_t *count; void *representations;, H(VkDevice, 1), &S(VkPipelineExecutableInfoKHR,
        PIPELINE_EXECUTABLE_INFO_KHR), A(uint32_t, 1), &S(VkPipelineExecutableInternalRepresentationKHR, PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR, .isText = VK_TRUE, .dataSize = 4, .pData = "asm")),
    VK_SUCCESS, "pInternalRepresentations.pData = 4 bytes\n"},
{"vkGetRayTracingShaderGroupHandlesKHR", IMAGE(VkDevice device; VkPipeline pipeline; uint32_t first; uint32_t count; size_t size; void *data;, H(VkDevice, 1), H(VkPipeline, 2), 0, 1, 32, "0123456789abcdef0123456789abcdef"), VK_SUCCESS,
    "pData = 32 bytes\ndataSize = 32\n"},
{"vkGetQueryPoolResults", IMAGE(VkDevice device; VkQueryPool pool; uint32_t first; uint32_t count; size_t size; void *data; VkDeviceSize stride; VkQueryResultFlags flags;,
        H(VkDevice, 1), H(VkQueryPool, 2), 0, 2, 16, BAD, 8, 1), VK_ERROR_DEVICE_LOST, "result = VK_ERROR_DEVICE_LOST\npData = null\n"},
{"vkEnumeratePhysicalDevices", IMAGE(VkInstance instance; uint32_t *count; VkPhysicalDevice *devices;, H(VkInstance, 1), A(uint32_t, 2), BAD), VK_ERROR_INITIALIZATION_FAILED,
    "result = VK_ERROR_INITIALIZATION_FAILED\npPhysicalDevices = null\n"},
};

size_t fixture_count(void) { return sizeof ENTERS / sizeof ENTERS[0]; }

void fixture(size_t i, const char **name, const void **image, const char **expected) {
    *name = ENTERS[i].name, *image = ENTERS[i].image, *expected = ENTERS[i].expected;
}

size_t outcome_count(void) { return sizeof LEAVES / sizeof LEAVES[0]; }

void outcome(size_t i, const char **name, const void **image, int64_t *result, const char **expected) {
    *name = LEAVES[i].name, *image = LEAVES[i].image, *result = LEAVES[i].result, *expected = LEAVES[i].expected;
}

const VkDescriptorUpdateTemplateEntry *template_list(size_t *count) {
    *count = sizeof template_entries / sizeof template_entries[0];
    return template_entries;
}
