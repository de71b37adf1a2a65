// A small Vulkan program: prints what it sees of the driver, less the instance's handle, which is the loader's.
#include <stdio.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define CHECK(call)                                                        \
    do {                                                                   \
        VkResult result = (call);                                          \
        if (result != VK_SUCCESS) {                                        \
            printf("%s: %d\n", #call, result);                             \
            return 1;                                                      \
        }                                                                  \
    } while (0)

static VkDevice create_device(VkPhysicalDevice physical) {
    float priorities[4] = {1, 1, 1, 1};
    VkDeviceQueueCreateInfo queues[7];
    memset(queues, 0, sizeof queues);
    for (uint32_t i = 0; i < 7; i++) {
        queues[i].sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
        queues[i].queueFamilyIndex = i;
        queues[i].queueCount = 4;
        queues[i].pQueuePriorities = priorities;
    }
    const char *extensions[] = {"VK_KHR_swapchain", "VK_KHR_acceleration_structure",
                                "VK_KHR_deferred_host_operations", "VK_KHR_ray_tracing_pipeline"};
    VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    info.queueCreateInfoCount = 7;
    info.pQueueCreateInfos = queues;
    info.enabledExtensionCount = 4;
    info.ppEnabledExtensionNames = extensions;
    VkDevice device = VK_NULL_HANDLE;
    VkResult result = vkCreateDevice(physical, &info, NULL, &device);
    printf("device %d %p\n", result, (void *)device);
    return device;
}

static int transfer(VkDevice device) {
    VkBuffer buffer;
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = 4096;
    info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    CHECK(vkCreateBuffer(device, &info, NULL, &buffer));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    VkMemoryAllocateInfo allocate = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, NULL, needs.size, 1};
    VkDeviceMemory memory;
    CHECK(vkAllocateMemory(device, &allocate, NULL, &memory));
    CHECK(vkBindBufferMemory(device, buffer, memory, 0));
    void *mapped;
    CHECK(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    VkCommandPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    VkCommandPool pool;
    CHECK(vkCreateCommandPool(device, &pool_info, NULL, &pool));
    VkCommandBufferAllocateInfo buffers = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, NULL, pool, 0, 1};
    VkCommandBuffer commands;
    CHECK(vkAllocateCommandBuffers(device, &buffers, &commands));
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK(vkBeginCommandBuffer(commands, &begin));
    vkCmdFillBuffer(commands, buffer, 0, VK_WHOLE_SIZE, 42);
    CHECK(vkEndCommandBuffer(commands));
    VkQueue queue;
    vkGetDeviceQueue(device, 4, 3, &queue);
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    CHECK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
    CHECK(vkQueueWaitIdle(queue));
    printf("size %llu buffer %llx memory %llx queue %p commands %p mapped %p word %u\n",
           (unsigned long long)needs.size, (unsigned long long)buffer, (unsigned long long)memory, (void *)queue,
           (void *)commands, mapped, *(unsigned *)mapped);
    vkDestroyCommandPool(device, pool, NULL);
    vkDestroyBuffer(device, buffer, NULL);
    vkFreeMemory(device, memory, NULL);
    return 0;
}

int main(void) {
    VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    VkInstance instance;
    CHECK(vkCreateInstance(&info, NULL, &instance));
    uint32_t count = 1;
    VkPhysicalDevice physical;
    CHECK(vkEnumeratePhysicalDevices(instance, &count, &physical));
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(physical, &properties);
    printf("%s %u\n", properties.deviceName, properties.limits.maxImageDimension2D);
    CHECK(vkEnumerateDeviceExtensionProperties(physical, NULL, &count, NULL));
    printf("extensions %u\n", count);
    VkQueueFamilyProperties families[16];
    count = 16;
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        printf("family %x %u %u\n", families[i].queueFlags, families[i].queueCount, families[i].timestampValidBits);
    }
    VkDevice device = create_device(physical);
    if (!device) {
        return 1;
    }
    printf("mesh %d trace %d\n", vkGetDeviceProcAddr(device, "vkCmdDrawMeshTasksEXT") != NULL,
           vkGetDeviceProcAddr(device, "vkCmdTraceRaysKHR") != NULL);
    int failed = transfer(device);
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
    return failed;
}
