// Puts bytes of the driver's own into memory: handles of shader groups into a table, descriptors into a descriptor
// buffer, addresses into an ordinary one; then has the device copy all of it, and compares.
#include <stdio.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define SIZE 1024
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != VK_SUCCESS) {                                                                                    \
            fprintf(stderr, "%s failed\n", #call);                                                                     \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

// `void main() {}` for rays.
static const uint32_t SHADER[] = {
    0x07230203, 0x00010400, 0, 5, 0,
    (2 << 16) | 17, 4479,                                                          // OpCapability RayTracingKHR
    (6 << 16) | 10, 0x5f565053, 0x5f52484b, 0x5f796172, 0x63617274, 0x00676e69,    // OpExtension
    (3 << 16) | 14, 0, 1,                                                          // OpMemoryModel Logical GLSL450
    (5 << 16) | 15, 5313, 1, 0x6e69616d, 0,                                        // OpEntryPoint RayGenerationKHR
    (2 << 16) | 19, 2,                                                             // OpTypeVoid
    (3 << 16) | 33, 3, 2,                                                          // OpTypeFunction
    (5 << 16) | 54, 2, 1, 0, 3,                                                    // OpFunction
    (2 << 16) | 248, 4,                                                            // OpLabel
    (1 << 16) | 253,                                                               // OpReturn
    (1 << 16) | 56,                                                                // OpFunctionEnd
};

static VkDevice device;
static VkPhysicalDevice physical;

struct buffer {
    VkBuffer handle;
    VkDeviceMemory memory;
    VkDeviceAddress address;
    char *bytes;
};

static int make_device(void) {
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo of_instance = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    of_instance.pApplicationInfo = &application;
    VkInstance instance;
    CHECK(vkCreateInstance(&of_instance, NULL, &instance));
    uint32_t count = 1;
    CHECK(vkEnumeratePhysicalDevices(instance, &count, &physical));
    VkPhysicalDeviceVulkan12Features core = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    core.bufferDeviceAddress = VK_TRUE;
    VkPhysicalDeviceRayTracingPipelineFeaturesKHR rays = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_RAY_TRACING_PIPELINE_FEATURES_KHR, &core};
    rays.rayTracingPipeline = VK_TRUE;
    VkPhysicalDeviceDescriptorBufferFeaturesEXT descriptors = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_BUFFER_FEATURES_EXT, &rays};
    descriptors.descriptorBuffer = VK_TRUE;
    const char *extensions[] = {"VK_KHR_acceleration_structure", "VK_KHR_deferred_host_operations",
                                "VK_KHR_ray_tracing_pipeline", "VK_EXT_descriptor_buffer"};
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &descriptors};
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = 4;
    info.ppEnabledExtensionNames = extensions;
    CHECK(vkCreateDevice(physical, &info, NULL, &device));
    return 0;
}

static int make_buffer(struct buffer *it) {
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = SIZE;
    info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                 VK_BUFFER_USAGE_SHADER_BINDING_TABLE_BIT_KHR | VK_BUFFER_USAGE_RESOURCE_DESCRIPTOR_BUFFER_BIT_EXT;
    CHECK(vkCreateBuffer(device, &info, NULL, &it->handle));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, it->handle, &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(physical, &types);
    VkFlags want = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while ((types.memoryTypes[type].propertyFlags & want) != want || !(needs.memoryTypeBits >> type & 1)) {
        type += 1;
    }
    VkMemoryAllocateFlagsInfo flags = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags};
    memory.allocationSize = needs.size;
    memory.memoryTypeIndex = type;
    CHECK(vkAllocateMemory(device, &memory, NULL, &it->memory));
    CHECK(vkBindBufferMemory(device, it->handle, it->memory, 0));
    CHECK(vkMapMemory(device, it->memory, 0, VK_WHOLE_SIZE, 0, (void **)&it->bytes));
    memset(it->bytes, 0, SIZE);
    VkBufferDeviceAddressInfo of_buffer = {VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    of_buffer.buffer = it->handle;
    it->address = vkGetBufferDeviceAddress(device, &of_buffer);
    return 0;
}

// Two groups: their handles go to the beginning and to the next aligned place.
static int write_table(char *table) {
    VkShaderModuleCreateInfo code = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    code.codeSize = sizeof SHADER;
    code.pCode = SHADER;
    VkPipelineShaderStageCreateInfo stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
    stage.stage = VK_SHADER_STAGE_RAYGEN_BIT_KHR;
    stage.pName = "main";
    CHECK(vkCreateShaderModule(device, &code, NULL, &stage.module));
    VkRayTracingShaderGroupCreateInfoKHR groups[2] = {{VK_STRUCTURE_TYPE_RAY_TRACING_SHADER_GROUP_CREATE_INFO_KHR}};
    groups[0].type = VK_RAY_TRACING_SHADER_GROUP_TYPE_GENERAL_KHR;
    groups[0].closestHitShader = groups[0].anyHitShader = groups[0].intersectionShader = VK_SHADER_UNUSED_KHR;
    groups[1] = groups[0];
    VkPipelineLayoutCreateInfo of_layout = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    VkRayTracingPipelineCreateInfoKHR info = {VK_STRUCTURE_TYPE_RAY_TRACING_PIPELINE_CREATE_INFO_KHR};
    info.stageCount = 1;
    info.pStages = &stage;
    info.groupCount = 2;
    info.pGroups = groups;
    info.maxPipelineRayRecursionDepth = 1;
    CHECK(vkCreatePipelineLayout(device, &of_layout, NULL, &info.layout));
    PFN_vkCreateRayTracingPipelinesKHR create =
        (PFN_vkCreateRayTracingPipelinesKHR)vkGetDeviceProcAddr(device, "vkCreateRayTracingPipelinesKHR");
    PFN_vkGetRayTracingShaderGroupHandlesKHR get =
        (PFN_vkGetRayTracingShaderGroupHandlesKHR)vkGetDeviceProcAddr(device, "vkGetRayTracingShaderGroupHandlesKHR");
    VkPipeline pipeline;
    CHECK(create(device, VK_NULL_HANDLE, VK_NULL_HANDLE, 1, &info, NULL, &pipeline));
    char handles[64];
    CHECK(get(device, pipeline, 0, 2, sizeof handles, handles));
    memcpy(table, handles, 32);
    memcpy(table + 64, handles + 32, 32);
    return 0;
}

// Descriptors of two storage buffers, where the layout wants them.
static int write_descriptors(char *descriptors, const struct buffer *buffers) {
    VkDescriptorSetLayoutBinding bindings[2] = {{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_ALL},
                                                {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_ALL}};
    VkDescriptorSetLayoutCreateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    info.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_DESCRIPTOR_BUFFER_BIT_EXT;
    info.bindingCount = 2;
    info.pBindings = bindings;
    VkDescriptorSetLayout layout;
    CHECK(vkCreateDescriptorSetLayout(device, &info, NULL, &layout));
    VkPhysicalDeviceDescriptorBufferPropertiesEXT sizes = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_BUFFER_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &sizes};
    vkGetPhysicalDeviceProperties2(physical, &properties);
    PFN_vkGetDescriptorSetLayoutBindingOffsetEXT where = (PFN_vkGetDescriptorSetLayoutBindingOffsetEXT)
        vkGetDeviceProcAddr(device, "vkGetDescriptorSetLayoutBindingOffsetEXT");
    PFN_vkGetDescriptorEXT get = (PFN_vkGetDescriptorEXT)vkGetDeviceProcAddr(device, "vkGetDescriptorEXT");
    for (uint32_t binding = 0; binding < 2; binding++) {
        VkDeviceSize offset;
        where(device, layout, binding, &offset);
        VkDescriptorAddressInfoEXT of_buffer = {VK_STRUCTURE_TYPE_DESCRIPTOR_ADDRESS_INFO_EXT};
        of_buffer.address = buffers[binding].address;
        of_buffer.range = SIZE;
        VkDescriptorGetInfoEXT of = {VK_STRUCTURE_TYPE_DESCRIPTOR_GET_INFO_EXT};
        of.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        of.data.pStorageBuffer = &of_buffer;
        get(device, &of, sizes.storageBufferDescriptorSize, descriptors + offset);
    }
    return 0;
}

static int copy(const struct buffer *from, const struct buffer *to) {
    VkCommandPoolCreateInfo of_pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    VkCommandBufferAllocateInfo of_buffer = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    CHECK(vkCreateCommandPool(device, &of_pool, NULL, &of_buffer.commandPool));
    of_buffer.commandBufferCount = 1;
    VkCommandBuffer commands;
    CHECK(vkAllocateCommandBuffers(device, &of_buffer, &commands));
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK(vkBeginCommandBuffer(commands, &begin));
    for (int at = 0; at < 3; at++) {
        VkBufferCopy region = {0, 0, SIZE};
        vkCmdCopyBuffer(commands, from[at].handle, to[at].handle, 1, &region);
    }
    CHECK(vkEndCommandBuffer(commands));
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    VkQueue queue;
    vkGetDeviceQueue(device, 0, 0, &queue);
    CHECK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
    CHECK(vkQueueWaitIdle(queue));
    return 0;
}

int main(void) {
    struct buffer all[6];
    if (make_device()) {
        return 1;
    }
    for (int at = 0; at < 6; at++) {
        if (make_buffer(&all[at])) {
            return 1;
        }
    }
    if (write_table(all[0].bytes) || write_descriptors(all[1].bytes, all + 3)) {
        return 1;
    }
    // Not at its beginning, and an address inside of a buffer.
    VkDeviceAddress inside = all[4].address + 64;
    memcpy(all[2].bytes + 40, &inside, sizeof inside);
    memcpy(all[2].bytes + 48, "and a text behind it", 20);
    if (copy(all, all + 3)) {
        return 1;
    }
    for (int at = 0; at < 3; at++) {
        if (memcmp(all[at].bytes, all[at + 3].bytes, SIZE)) {
            fprintf(stderr, "buffer %d was not copied\n", at);
            return 1;
        }
        vkUnmapMemory(device, all[at + 3].memory);
    }
    return 0;
}
