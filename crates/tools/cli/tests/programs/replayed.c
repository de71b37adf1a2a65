// replayed WAY: does one thing that replays are tested with.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != VK_SUCCESS) {                                                                                    \
            fprintf(stderr, "%s failed\n", #call);                                                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define OF_DEVICE(name) PFN_##name name##_ = (PFN_##name)vkGetDeviceProcAddr(device, #name)
#define OF_INSTANCE(name) PFN_##name name##_ = (PFN_##name)vkGetInstanceProcAddr(instance, #name)

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;

static void make_instance(uint32_t count, const char **extensions) {
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application;
    info.enabledExtensionCount = count;
    info.ppEnabledExtensionNames = extensions;
    CHECK(vkCreateInstance(&info, NULL, &instance));
    uint32_t one = 1;
    if (vkEnumeratePhysicalDevices(instance, &one, &physical) < 0 || one == 0) {
        exit(1);
    }
}

static void make_device(uint32_t count, const char **extensions, void *features) {
    float priority = 1;
    VkDeviceQueueCreateInfo of_queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    of_queue.queueCount = 1;
    of_queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, features};
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &of_queue;
    info.enabledExtensionCount = count;
    info.ppEnabledExtensionNames = extensions;
    CHECK(vkCreateDevice(physical, &info, NULL, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
}

static void destroy(void) {
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
}

// Asks for the physical devices again and again, as some programs do in every frame.
static void enumerate(void) {
    make_instance(0, NULL);
    for (int at = 0; at < 200; at++) {
        VkPhysicalDevice all[8];
        uint32_t count = 8;
        CHECK(vkEnumeratePhysicalDevices(instance, &count, all));
        VkPhysicalDeviceGroupProperties groups[8] = {{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_GROUP_PROPERTIES}};
        count = 1;
        CHECK(vkEnumeratePhysicalDeviceGroups(instance, &count, groups));
    }
    make_device(0, NULL, NULL);
    destroy();
}

static void label(VkObjectType type, uint64_t handle) {
    OF_DEVICE(vkSetDebugUtilsObjectNameEXT);
    OF_DEVICE(vkSetDebugUtilsObjectTagEXT);
    VkDebugUtilsObjectNameInfoEXT name = {VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
    name.objectType = type;
    name.objectHandle = handle;
    name.pObjectName = "named";
    CHECK(vkSetDebugUtilsObjectNameEXT_(device, &name));
    VkDebugUtilsObjectTagInfoEXT tag = {VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_TAG_INFO_EXT};
    tag.objectType = type;
    tag.objectHandle = handle;
    tag.tagSize = 4;
    tag.pTag = "tag";
    CHECK(vkSetDebugUtilsObjectTagEXT_(device, &tag));
    VkPrivateDataSlot slot;
    VkPrivateDataSlotCreateInfo of_slot = {VK_STRUCTURE_TYPE_PRIVATE_DATA_SLOT_CREATE_INFO};
    CHECK(vkCreatePrivateDataSlot(device, &of_slot, NULL, &slot));
    CHECK(vkSetPrivateData(device, type, handle, slot, 7));
    name.objectType = VK_OBJECT_TYPE_PRIVATE_DATA_SLOT;
    name.objectHandle = (uint64_t)slot;
    CHECK(vkSetDebugUtilsObjectNameEXT_(device, &name));
    vkDestroyPrivateDataSlot(device, slot, NULL);
}

static void mark(VkDebugReportObjectTypeEXT type, uint64_t handle) {
    OF_DEVICE(vkDebugMarkerSetObjectNameEXT);
    OF_DEVICE(vkDebugMarkerSetObjectTagEXT);
    VkDebugMarkerObjectNameInfoEXT name = {VK_STRUCTURE_TYPE_DEBUG_MARKER_OBJECT_NAME_INFO_EXT};
    name.objectType = type;
    name.object = handle;
    name.pObjectName = "marked";
    CHECK(vkDebugMarkerSetObjectNameEXT_(device, &name));
    VkDebugMarkerObjectTagInfoEXT tag = {VK_STRUCTURE_TYPE_DEBUG_MARKER_OBJECT_TAG_INFO_EXT};
    tag.objectType = type;
    tag.object = handle;
    tag.tagSize = 4;
    tag.pTag = "tag";
    CHECK(vkDebugMarkerSetObjectTagEXT_(device, &tag));
}

static VkBool32 on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
                           const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    return VK_FALSE;
}

// Names what a replay does not have: a surface, a swapchain, a messenger, a slot, and no object at all.
static void names(void) {
    const char *of_instance[] = {"VK_EXT_debug_utils", "VK_KHR_surface", "VK_EXT_headless_surface",
                                 "VK_EXT_debug_report"};
    const char *of_device[] = {"VK_KHR_swapchain", "VK_EXT_debug_marker", "VK_AMD_display_native_hdr",
                               "VK_KHR_get_surface_capabilities2"};
    make_instance(4, of_instance);
    make_device(3, of_device, NULL);
    OF_INSTANCE(vkCreateHeadlessSurfaceEXT);
    OF_INSTANCE(vkCreateDebugUtilsMessengerEXT);
    OF_INSTANCE(vkDestroyDebugUtilsMessengerEXT);
    VkHeadlessSurfaceCreateInfoEXT of_surface = {VK_STRUCTURE_TYPE_HEADLESS_SURFACE_CREATE_INFO_EXT};
    VkSurfaceKHR surface;
    CHECK(vkCreateHeadlessSurfaceEXT_(instance, &of_surface, NULL, &surface));
    VkSwapchainCreateInfoKHR of_swapchain = {VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
    of_swapchain.surface = surface;
    of_swapchain.minImageCount = 3;
    of_swapchain.imageFormat = VK_FORMAT_B8G8R8A8_UNORM;
    of_swapchain.imageExtent.width = of_swapchain.imageExtent.height = 64;
    of_swapchain.imageArrayLayers = 1;
    of_swapchain.imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    of_swapchain.preTransform = VK_SURFACE_TRANSFORM_IDENTITY_BIT_KHR;
    of_swapchain.compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR;
    of_swapchain.presentMode = VK_PRESENT_MODE_FIFO_KHR;
    VkSwapchainKHR swapchain;
    CHECK(vkCreateSwapchainKHR(device, &of_swapchain, NULL, &swapchain));
    VkDebugUtilsMessengerCreateInfoEXT of_messenger = {VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    of_messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    of_messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    of_messenger.pfnUserCallback = on_message;
    VkDebugUtilsMessengerEXT messenger;
    CHECK(vkCreateDebugUtilsMessengerEXT_(instance, &of_messenger, NULL, &messenger));
    label(VK_OBJECT_TYPE_SURFACE_KHR, (uint64_t)surface);
    label(VK_OBJECT_TYPE_SWAPCHAIN_KHR, (uint64_t)swapchain);
    label(VK_OBJECT_TYPE_DEBUG_UTILS_MESSENGER_EXT, (uint64_t)messenger);
    label(VK_OBJECT_TYPE_BUFFER, 0x12345);
    label(VK_OBJECT_TYPE_QUEUE, (uint64_t)queue);
    label(VK_OBJECT_TYPE_INSTANCE, (uint64_t)instance);
    mark(VK_DEBUG_REPORT_OBJECT_TYPE_SURFACE_KHR_EXT, (uint64_t)surface);
    mark(VK_DEBUG_REPORT_OBJECT_TYPE_SWAPCHAIN_KHR_EXT, (uint64_t)swapchain);
    mark(VK_DEBUG_REPORT_OBJECT_TYPE_BUFFER_EXT, 0x12345);
    mark(VK_DEBUG_REPORT_OBJECT_TYPE_QUEUE_EXT, (uint64_t)queue);
    OF_DEVICE(vkSetLocalDimmingAMD);
    vkSetLocalDimmingAMD_(device, swapchain, VK_TRUE);
    vkDestroyDebugUtilsMessengerEXT_(instance, messenger, NULL);
    vkDestroySwapchainKHR(device, swapchain, NULL);
    vkDestroySurfaceKHR(instance, surface, NULL);
    destroy();
}

static VkFence make_fence(VkExternalFenceHandleTypeFlags types) {
    VkExportFenceCreateInfo shared = {VK_STRUCTURE_TYPE_EXPORT_FENCE_CREATE_INFO, NULL, types};
    VkFenceCreateInfo info = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, types ? &shared : NULL};
    VkFence fence;
    CHECK(vkCreateFence(device, &info, NULL, &fence));
    return fence;
}

static VkSemaphore make_semaphore(VkExternalSemaphoreHandleTypeFlags types) {
    VkExportSemaphoreCreateInfo shared = {VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO, NULL, types};
    VkSemaphoreCreateInfo info = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, types ? &shared : NULL};
    VkSemaphore semaphore;
    CHECK(vkCreateSemaphore(device, &info, NULL, &semaphore));
    return semaphore;
}

static void submit(VkSemaphore wait, VkSemaphore signal, VkFence fence) {
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    info.waitSemaphoreCount = wait != VK_NULL_HANDLE;
    info.pWaitSemaphores = &wait;
    info.pWaitDstStageMask = &stage;
    info.signalSemaphoreCount = signal != VK_NULL_HANDLE;
    info.pSignalSemaphores = &signal;
    CHECK(vkQueueSubmit(queue, 1, &info, fence));
}

static void import_semaphore(VkSemaphore semaphore, VkExternalSemaphoreHandleTypeFlagBits type, int fd) {
    OF_DEVICE(vkImportSemaphoreFdKHR);
    VkImportSemaphoreFdInfoKHR info = {VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR};
    info.semaphore = semaphore;
    info.flags = type == VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT ? VK_SEMAPHORE_IMPORT_TEMPORARY_BIT : 0;
    info.handleType = type;
    info.fd = fd;
    CHECK(vkImportSemaphoreFdKHR_(device, &info));
}

// Signals one semaphore, and waits for the other, which has its payload.
static void share_semaphore(VkExternalSemaphoreHandleTypeFlagBits type) {
    OF_DEVICE(vkGetSemaphoreFdKHR);
    VkSemaphore one = make_semaphore(type), other = make_semaphore(0);
    VkFence fence = make_fence(0);
    VkSemaphoreGetFdInfoKHR info = {VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR, NULL, one, type};
    for (int turn = 0; turn < 3; turn++) {
        int fd;
        submit(VK_NULL_HANDLE, one, VK_NULL_HANDLE);
        if (turn == 0 || type == VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT) {
            CHECK(vkGetSemaphoreFdKHR_(device, &info, &fd));
            import_semaphore(other, type, fd);
        }
        submit(other, VK_NULL_HANDLE, fence);
        CHECK(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
        CHECK(vkResetFences(device, 1, &fence));
    }
    vkDestroySemaphore(device, one, NULL);
    vkDestroySemaphore(device, other, NULL);
    vkDestroyFence(device, fence, NULL);
}

static void share_fence(VkExternalFenceHandleTypeFlagBits type) {
    OF_DEVICE(vkGetFenceFdKHR);
    OF_DEVICE(vkImportFenceFdKHR);
    VkFence one = make_fence(type), other = make_fence(0);
    VkFenceGetFdInfoKHR info = {VK_STRUCTURE_TYPE_FENCE_GET_FD_INFO_KHR, NULL, one, type};
    VkImportFenceFdInfoKHR import = {VK_STRUCTURE_TYPE_IMPORT_FENCE_FD_INFO_KHR, NULL, other};
    import.flags = type == VK_EXTERNAL_FENCE_HANDLE_TYPE_SYNC_FD_BIT ? VK_FENCE_IMPORT_TEMPORARY_BIT : 0;
    import.handleType = type;
    submit(VK_NULL_HANDLE, VK_NULL_HANDLE, one);
    CHECK(vkGetFenceFdKHR_(device, &info, &import.fd));
    CHECK(vkImportFenceFdKHR_(device, &import));
    CHECK(vkWaitForFences(device, 1, &other, VK_TRUE, UINT64_MAX));
    vkDestroyFence(device, one, NULL);
    vkDestroyFence(device, other, NULL);
}

static VkBuffer make_buffer(VkBufferUsageFlags usage, void *next) {
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, next};
    info.size = 4096;
    info.usage = usage;
    VkBuffer buffer;
    CHECK(vkCreateBuffer(device, &info, NULL, &buffer));
    return buffer;
}

// Host memory for a buffer.
static VkDeviceMemory make_memory(VkBuffer buffer, void *next) {
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(physical, &types);
    VkFlags want = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while ((types.memoryTypes[type].propertyFlags & want) != want || !(needs.memoryTypeBits >> type & 1)) {
        type += 1;
    }
    VkMemoryAllocateInfo info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, next};
    info.allocationSize = needs.size;
    info.memoryTypeIndex = type;
    VkDeviceMemory memory;
    CHECK(vkAllocateMemory(device, &info, NULL, &memory));
    CHECK(vkBindBufferMemory(device, buffer, memory, 0));
    return memory;
}

static VkCommandBuffer begin(void) {
    VkCommandPoolCreateInfo of_pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    VkCommandBufferAllocateInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    CHECK(vkCreateCommandPool(device, &of_pool, NULL, &info.commandPool));
    info.commandBufferCount = 1;
    VkCommandBuffer commands;
    CHECK(vkAllocateCommandBuffers(device, &info, &commands));
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK(vkBeginCommandBuffer(commands, &begin));
    return commands;
}

static void perform(VkCommandBuffer commands) {
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_MEMORY_WRITE_BIT,
                               VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                         NULL, 0, NULL);
    CHECK(vkEndCommandBuffer(commands));
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    CHECK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
    CHECK(vkQueueWaitIdle(queue));
}

// The device writes through one memory, and the host reads through the other, which is the same.
static void share_memory(void) {
    OF_DEVICE(vkGetMemoryFdKHR);
    VkExternalMemoryHandleTypeFlagBits type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkExternalMemoryBufferCreateInfo shared = {VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, NULL, type};
    VkExportMemoryAllocateInfo export = {VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, NULL, type};
    VkBuffer one = make_buffer(VK_BUFFER_USAGE_TRANSFER_DST_BIT, &shared);
    VkBuffer other = make_buffer(VK_BUFFER_USAGE_TRANSFER_DST_BIT, &shared);
    VkDeviceMemory first = make_memory(one, &export);
    VkMemoryGetFdInfoKHR info = {VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, NULL, first, type};
    VkImportMemoryFdInfoKHR import = {VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, NULL, type};
    CHECK(vkGetMemoryFdKHR_(device, &info, &import.fd));
    VkDeviceMemory second = make_memory(other, &import);
    VkCommandBuffer commands = begin();
    vkCmdFillBuffer(commands, one, 0, VK_WHOLE_SIZE, 0x01020304);
    perform(commands);
    uint32_t *words;
    CHECK(vkMapMemory(device, second, 0, VK_WHOLE_SIZE, 0, (void **)&words));
    if (words[0] != 0x01020304 || words[1023] != 0x01020304) {
        fprintf(stderr, "the memory is not shared\n");
        exit(1);
    }
    vkUnmapMemory(device, second);
    vkDestroyBuffer(device, one, NULL);
    vkDestroyBuffer(device, other, NULL);
    vkFreeMemory(device, first, NULL);
    vkFreeMemory(device, second, NULL);
}

static const char *SHARING[] = {"VK_KHR_external_memory_fd", "VK_KHR_external_fence_fd",
                                "VK_KHR_external_semaphore_fd"};

static void shared(void) {
    make_instance(0, NULL);
    make_device(3, SHARING, NULL);
    share_fence(VK_EXTERNAL_FENCE_HANDLE_TYPE_OPAQUE_FD_BIT);
    share_fence(VK_EXTERNAL_FENCE_HANDLE_TYPE_SYNC_FD_BIT);
    share_semaphore(VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT);
    share_semaphore(VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT);
    share_memory();
    destroy();
}

static void shared_memory(void) {
    make_instance(0, NULL);
    make_device(1, SHARING, NULL);
    share_memory();
    destroy();
}

// A semaphore of somebody else, as far as a trace knows: the descriptor has another number.
static void foreign(void) {
    make_instance(0, NULL);
    make_device(3, SHARING, NULL);
    OF_DEVICE(vkGetSemaphoreFdKHR);
    VkExternalSemaphoreHandleTypeFlagBits type = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkSemaphore one = make_semaphore(type), other = make_semaphore(0);
    VkSemaphoreGetFdInfoKHR info = {VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR, NULL, one, type};
    int fd;
    CHECK(vkGetSemaphoreFdKHR_(device, &info, &fd));
    import_semaphore(other, type, dup(fd));
    submit(VK_NULL_HANDLE, one, VK_NULL_HANDLE);
    submit(other, VK_NULL_HANDLE, VK_NULL_HANDLE);
    CHECK(vkQueueWaitIdle(queue));
    vkDestroySemaphore(device, one, NULL);
    vkDestroySemaphore(device, other, NULL);
    destroy();
}

static VkDeviceAddress address_of(VkBuffer buffer) {
    VkBufferDeviceAddressInfo info = {VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, NULL, buffer};
    return vkGetBufferDeviceAddress(device, &info);
}

static void make_pipeline(VkPipelineLayout layout, uint32_t count, const VkSpecializationMapEntry *entries,
                          const uint32_t *words) {
    // `void main() {}`
    static const uint32_t code[] = {0x07230203, 0x00010000, 0, 5, 0, (2 << 16) | 17, 1, (3 << 16) | 14, 0, 1,
                                    (5 << 16) | 15, 5, 1, 0x6e69616d, 0, (6 << 16) | 16, 1, 17, 1, 1, 1,
                                    (2 << 16) | 19, 2, (3 << 16) | 33, 3, 2, (5 << 16) | 54, 2, 1, 0, 3,
                                    (2 << 16) | 248, 4, (1 << 16) | 253, (1 << 16) | 56};
    VkShaderModuleCreateInfo of_module = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    of_module.codeSize = sizeof code;
    of_module.pCode = code;
    VkSpecializationInfo constants = {count, entries, 16, words};
    VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = &constants;
    info.layout = layout;
    CHECK(vkCreateShaderModule(device, &of_module, NULL, &info.stage.module));
    VkPipeline pipeline;
    CHECK(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline));
}

// A set with an inline block, which is updated and pushed by a template.
static VkDescriptorSetLayout write_blocks(const uint32_t *words) {
    VkDescriptorSetLayoutBinding binding = {0, VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK, 16,
                                            VK_SHADER_STAGE_COMPUTE_BIT};
    VkDescriptorSetLayoutCreateInfo of_layout = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    of_layout.bindingCount = 1;
    of_layout.pBindings = &binding;
    VkDescriptorSetLayout layout;
    CHECK(vkCreateDescriptorSetLayout(device, &of_layout, NULL, &layout));
    VkDescriptorPoolInlineUniformBlockCreateInfo blocks = {
        VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_INLINE_UNIFORM_BLOCK_CREATE_INFO, NULL, 1};
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK, 16};
    VkDescriptorPoolCreateInfo of_pool = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, &blocks};
    of_pool.maxSets = of_pool.poolSizeCount = 1;
    of_pool.pPoolSizes = &size;
    VkDescriptorSetAllocateInfo of_set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    CHECK(vkCreateDescriptorPool(device, &of_pool, NULL, &of_set.descriptorPool));
    of_set.descriptorSetCount = 1;
    of_set.pSetLayouts = &layout;
    VkWriteDescriptorSetInlineUniformBlock block = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET_INLINE_UNIFORM_BLOCK, NULL,
                                                    16, words};
    VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, &block};
    CHECK(vkAllocateDescriptorSets(device, &of_set, &write.dstSet));
    write.descriptorCount = 16;
    write.descriptorType = VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK;
    vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    VkDescriptorUpdateTemplateEntry entry = {0, 0, 16, VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK};
    VkDescriptorUpdateTemplateCreateInfo of_template = {VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO};
    of_template.descriptorUpdateEntryCount = 1;
    of_template.pDescriptorUpdateEntries = &entry;
    of_template.templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET;
    of_template.descriptorSetLayout = layout;
    VkDescriptorUpdateTemplate template;
    CHECK(vkCreateDescriptorUpdateTemplate(device, &of_template, NULL, &template));
    vkUpdateDescriptorSetWithTemplate(device, write.dstSet, template, words);
    return layout;
}

// Passes an address as two words that are not aligned, in all ways that shaders get values.
static void addresses(void) {
    make_instance(0, NULL);
    VkPhysicalDeviceVulkan13Features core = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    core.inlineUniformBlock = VK_TRUE;
    VkPhysicalDeviceVulkan12Features features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &core};
    features.bufferDeviceAddress = VK_TRUE;
    make_device(0, NULL, &features);
    VkBuffer buffer = make_buffer(VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, NULL);
    VkMemoryAllocateFlagsInfo flags = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, NULL,
                                       VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkDeviceMemory memory = make_memory(buffer, &flags);
    VkDeviceAddress address = address_of(buffer) + 256;
    uint32_t low = (uint32_t)address, high = (uint32_t)(address >> 32);
    uint32_t words[4] = {7, low, high, 9}, apart[4] = {high, 7, low, 9};
    VkSpecializationMapEntry entries[4] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}, {3, 12, 4}};
    VkSpecializationMapEntry by_number[2] = {{4, 8, 4}, {5, 0, 4}};
    VkDescriptorSetLayout set_layout = write_blocks(words);
    VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 16};
    VkPipelineLayoutCreateInfo of_layout = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    of_layout.setLayoutCount = 1;
    of_layout.pSetLayouts = &set_layout;
    of_layout.pushConstantRangeCount = 1;
    of_layout.pPushConstantRanges = &range;
    VkPipelineLayout layout;
    CHECK(vkCreatePipelineLayout(device, &of_layout, NULL, &layout));
    make_pipeline(layout, 4, entries, words);
    make_pipeline(layout, 2, by_number, apart);
    uint32_t *mapped;
    CHECK(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&mapped));
    memcpy(mapped + 16, words, sizeof words);
    VkCommandBuffer commands = begin();
    vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 16, words);
    vkCmdUpdateBuffer(commands, buffer, 256, 16, words);
    perform(commands);
    // No address any more, although one half of it stays.
    mapped[18] = 1;
    perform(begin());
    vkUnmapMemory(device, memory);
    destroy();
}

// Structures of Vulkan 1.4, which older headers lack.
struct image_to_memory_copy {
    VkStructureType type;
    const void *next;
    void *host;
    uint32_t row_length, image_height;
    VkImageSubresourceLayers subresource;
    VkOffset3D offset;
    VkExtent3D extent;
};
struct copy_image_to_memory_info {
    VkStructureType type;
    const void *next;
    VkFlags flags;
    VkImage image;
    VkImageLayout layout;
    uint32_t count;
    const struct image_to_memory_copy *regions;
};

// The host copies an image that the device cleared.
static void host_copy(void) {
    make_instance(0, NULL);
    const char *extensions[] = {"VK_EXT_host_image_copy"};
    make_device(1, extensions, NULL);
    VkImageCreateInfo of_image = {VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    of_image.imageType = VK_IMAGE_TYPE_2D;
    of_image.format = VK_FORMAT_R8G8B8A8_UNORM;
    of_image.extent.width = of_image.extent.height = 64;
    of_image.extent.depth = of_image.mipLevels = of_image.arrayLayers = 1;
    of_image.samples = VK_SAMPLE_COUNT_1_BIT;
    of_image.usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT | 0x00400000;
    VkImage image;
    CHECK(vkCreateImage(device, &of_image, NULL, &image));
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device, image, &needs);
    VkMemoryAllocateInfo of_memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    of_memory.allocationSize = needs.size;
    while (!(needs.memoryTypeBits >> of_memory.memoryTypeIndex & 1)) {
        of_memory.memoryTypeIndex += 1;
    }
    VkDeviceMemory memory;
    CHECK(vkAllocateMemory(device, &of_memory, NULL, &memory));
    CHECK(vkBindImageMemory(device, image, memory, 0));
    VkCommandBuffer commands = begin();
    VkClearColorValue color = {{1, 1, 1, 1}};
    VkImageSubresourceRange all = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    vkCmdClearColorImage(commands, image, VK_IMAGE_LAYOUT_GENERAL, &color, 1, &all);
    perform(commands);
    static uint32_t texels[2][64 * 64];
    struct image_to_memory_copy regions[2] = {{1000270003, NULL, texels[0]}, {1000270003, NULL, texels[1]}};
    for (int at = 0; at < 2; at++) {
        regions[at].subresource.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT;
        regions[at].subresource.layerCount = 1;
        regions[at].extent = of_image.extent;
    }
    struct copy_image_to_memory_info info = {1000270004, NULL, 0, image, VK_IMAGE_LAYOUT_GENERAL, 2, regions};
    VkResult (*copy)(VkDevice, const struct copy_image_to_memory_info *) =
        (void *)vkGetDeviceProcAddr(device, "vkCopyImageToMemoryEXT");
    CHECK(copy(device, &info));
    // As the driver lays out rows.
    info.flags = 1;
    CHECK(copy(device, &info));
    if (texels[1][64 * 64 - 1] != 0xffffffff) {
        fprintf(stderr, "the image was not copied\n");
        exit(1);
    }
    vkDestroyImage(device, image, NULL);
    vkFreeMemory(device, memory, NULL);
    destroy();
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*act)(void);
    } ways[] = {{"enumerate", enumerate}, {"names", names}, {"shared", shared}, {"shared-memory", shared_memory}, {"foreign", foreign}, {"addresses", addresses}, {"host-copy", host_copy}};
    for (size_t at = 0; count == 2 && at < sizeof ways / sizeof *ways; at++) {
        if (strcmp(arguments[1], ways[at].name) == 0) {
            ways[at].act();
            return 0;
        }
    }
    return 2;
}
