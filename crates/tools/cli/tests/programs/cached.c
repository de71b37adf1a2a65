// cached SHADER FROM TO: makes a compute pipeline through a pipeline cache that begins with the bytes of FROM, if there
// are any, doubles some words with it, and writes the bytes of the cache to TO.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define COUNT 64
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != VK_SUCCESS) {                                                                                    \
            fprintf(stderr, "%s failed\n", #call);                                                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static VkDevice device;
static VkPhysicalDevice physical;
static VkQueue queue;

static size_t read_all(const char *path, void *to, size_t most) {
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(to, 1, most, file) : 0;
    if (file) {
        fclose(file);
    }
    return size;
}

static void make_device(void) {
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo of_instance = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    of_instance.pApplicationInfo = &application;
    VkInstance instance;
    CHECK(vkCreateInstance(&of_instance, NULL, &instance));
    uint32_t count = 1;
    VkResult found = vkEnumeratePhysicalDevices(instance, &count, &physical);
    if (found < 0 || count == 0) {
        exit(2);
    }
    float priority = 1;
    VkDeviceQueueCreateInfo of_queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    of_queue.queueCount = 1;
    of_queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo of_device = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    of_device.queueCreateInfoCount = 1;
    of_device.pQueueCreateInfos = &of_queue;
    CHECK(vkCreateDevice(physical, &of_device, NULL, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
}

static VkBuffer make_buffer(uint32_t **words) {
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = COUNT * 4;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    VkBuffer buffer;
    CHECK(vkCreateBuffer(device, &info, NULL, &buffer));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(physical, &types);
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryAllocateInfo of_memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    of_memory.allocationSize = needs.size;
    for (uint32_t at = types.memoryTypeCount; at-- > 0;) {
        if ((needs.memoryTypeBits >> at & 1) && (types.memoryTypes[at].propertyFlags & wanted) == wanted) {
            of_memory.memoryTypeIndex = at;
        }
    }
    VkDeviceMemory memory;
    CHECK(vkAllocateMemory(device, &of_memory, NULL, &memory));
    CHECK(vkBindBufferMemory(device, buffer, memory, 0));
    CHECK(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)words));
    return buffer;
}

static VkPipeline make_pipeline(const char *path, VkPipelineLayout layout, VkPipelineCache cache) {
    static uint32_t words[1 << 16];
    VkShaderModuleCreateInfo of_module = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    of_module.codeSize = read_all(path, words, sizeof words);
    of_module.pCode = words;
    VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.pName = "main";
    info.layout = layout;
    CHECK(vkCreateShaderModule(device, &of_module, NULL, &info.stage.module));
    VkPipeline pipeline;
    CHECK(vkCreateComputePipelines(device, cache, 1, &info, NULL, &pipeline));
    vkDestroyShaderModule(device, info.stage.module, NULL);
    return pipeline;
}

static VkDescriptorSet make_set(VkDescriptorSetLayout layout, const VkBuffer *buffers) {
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    VkDescriptorPoolCreateInfo of_pool = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    of_pool.maxSets = of_pool.poolSizeCount = 1;
    of_pool.pPoolSizes = &size;
    VkDescriptorPool pool;
    CHECK(vkCreateDescriptorPool(device, &of_pool, NULL, &pool));
    VkDescriptorSetAllocateInfo of_set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    of_set.descriptorPool = pool;
    of_set.descriptorSetCount = 1;
    of_set.pSetLayouts = &layout;
    VkDescriptorSet set;
    CHECK(vkAllocateDescriptorSets(device, &of_set, &set));
    VkDescriptorBufferInfo infos[2] = {{buffers[0], 0, VK_WHOLE_SIZE}, {buffers[1], 0, VK_WHOLE_SIZE}};
    VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set;
    write.descriptorCount = 2;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = infos;
    vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    return set;
}

static void dispatch(VkPipeline pipeline, VkPipelineLayout layout, VkDescriptorSet set) {
    VkCommandPoolCreateInfo of_pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    VkCommandPool pool;
    CHECK(vkCreateCommandPool(device, &of_pool, NULL, &pool));
    VkCommandBufferAllocateInfo of_commands = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    of_commands.commandPool = pool;
    of_commands.commandBufferCount = 1;
    VkCommandBuffer commands;
    CHECK(vkAllocateCommandBuffers(device, &of_commands, &commands));
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK(vkBeginCommandBuffer(commands, &begin));
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL);
    vkCmdDispatch(commands, 1, 1, 1);
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                         NULL, 0, NULL);
    CHECK(vkEndCommandBuffer(commands));
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    CHECK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
    CHECK(vkQueueWaitIdle(queue));
}

int main(int count, char **arguments) {
    if (count < 4) {
        return 2;
    }
    make_device();
    static char bytes[1 << 22];
    VkPipelineCacheCreateInfo of_cache = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    of_cache.initialDataSize = read_all(arguments[2], bytes, sizeof bytes);
    of_cache.pInitialData = bytes;
    VkPipelineCache cache;
    CHECK(vkCreatePipelineCache(device, &of_cache, NULL, &cache));
    VkDescriptorSetLayoutBinding bindings[2] = {
        {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
        {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
    };
    VkDescriptorSetLayoutCreateInfo of_sets = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    of_sets.bindingCount = 2;
    of_sets.pBindings = bindings;
    VkDescriptorSetLayout set_layout;
    CHECK(vkCreateDescriptorSetLayout(device, &of_sets, NULL, &set_layout));
    VkPipelineLayoutCreateInfo of_layout = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    of_layout.setLayoutCount = 1;
    of_layout.pSetLayouts = &set_layout;
    VkPipelineLayout layout;
    CHECK(vkCreatePipelineLayout(device, &of_layout, NULL, &layout));
    VkPipeline pipeline = make_pipeline(arguments[1], layout, cache);
    uint32_t *source, *target;
    VkBuffer buffers[2] = {make_buffer(&source), make_buffer(&target)};
    for (uint32_t at = 0; at < COUNT; at++) {
        source[at] = at * 3;
    }
    dispatch(pipeline, layout, make_set(set_layout, buffers));
    for (uint32_t at = 0; at < COUNT; at++) {
        if (target[at] != at * 6) {
            fprintf(stderr, "word %u is %u\n", at, target[at]);
            return 1;
        }
    }
    size_t size;
    CHECK(vkGetPipelineCacheData(device, cache, &size, NULL));
    if (size > sizeof bytes) {
        return 1;
    }
    CHECK(vkGetPipelineCacheData(device, cache, &size, bytes));
    FILE *file = fopen(arguments[3], "wb");
    if (!file || fwrite(bytes, 1, size, file) != size) {
        return 1;
    }
    fclose(file);
    vkDeviceWaitIdle(device);
    return 0;
}
