// A program for Vulkan 1.0: prints what it sees of the versions, the functions and the extensions that there are.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

static const char *const NAMES[] = {
    "vkCmdDraw", "vkTrimCommandPool", "vkCmdDispatchBase", "vkGetDeviceQueue2", "vkBindBufferMemory2",
    "vkCreateDescriptorUpdateTemplate", "vkCmdDrawIndirectCount", "vkCreateRenderPass2", "vkWaitSemaphores",
    "vkGetBufferDeviceAddress", "vkGetBufferDeviceAddressKHR", "vkQueueSubmit2", "vkCmdBeginRendering",
    "vkCmdSetCullMode", "vkTrimCommandPoolKHR", "vkGetPhysicalDeviceFeatures2", "vkGetPhysicalDeviceProperties2KHR",
    "vkEnumeratePhysicalDeviceGroups", "vkGetPhysicalDeviceToolProperties", "vkEnumerateInstanceVersion",
};

static void fail(const char *what) {
    fprintf(stderr, "%s failed\n", what);
    exit(3);
}

int main(int count, char **arguments) {
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = count > 1 ? VK_MAKE_API_VERSION(0, 1, atoi(arguments[1]), 0) : 0;
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = count > 1 ? &application : NULL;
    VkInstance instance;
    if (vkCreateInstance(&info, NULL, &instance) != VK_SUCCESS) fail("vkCreateInstance");
    uint32_t one = 1;
    VkPhysicalDevice physical;
    if (vkEnumeratePhysicalDevices(instance, &one, &physical) < 0) fail("vkEnumeratePhysicalDevices");
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(physical, &properties);
    uint32_t extensions = 0;
    vkEnumerateDeviceExtensionProperties(physical, NULL, &extensions, NULL);
    float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo device_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue;
    VkDevice device;
    if (vkCreateDevice(physical, &device_info, NULL, &device) != VK_SUCCESS) fail("vkCreateDevice");
    printf("device %u, %u extensions\n", properties.apiVersion, extensions);
    for (size_t at = 0; at < sizeof NAMES / sizeof *NAMES; ++at) {
        int of_instance = vkGetInstanceProcAddr(instance, NAMES[at]) != NULL;
        int of_device = vkGetDeviceProcAddr(device, NAMES[at]) != NULL;
        printf("%s %d %d\n", NAMES[at], of_instance, of_device);
    }
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
    return 0;
}
