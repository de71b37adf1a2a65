// Passes a null pCreateInfo to the command that its argument names: what happens then is the driver's affair.
#include <stdio.h>
#include <string.h>
#include <vulkan/vulkan.h>

static VkInstance create_instance(void) {
    VkInstanceCreateInfo info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    VkInstance instance = VK_NULL_HANDLE;
    vkCreateInstance(&info, NULL, &instance);
    return instance;
}

static VkDevice create_device(VkPhysicalDevice physical) {
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    VkDevice device = VK_NULL_HANDLE;
    vkCreateDevice(physical, &info, NULL, &device);
    return device;
}

// Printed at once: the next call may be the last.
static void say(const char *what) {
    puts(what);
    fflush(stdout);
}

int main(int count, char **arguments) {
    const char *command = count > 1 ? arguments[1] : "";
    VkInstance instance = VK_NULL_HANDLE;
    if (strcmp(command, "vkCreateInstance") == 0) {
        say("before");
        return vkCreateInstance(NULL, NULL, &instance) == VK_SUCCESS ? 10 : 11;
    }
    instance = create_instance();
    uint32_t devices = 1;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    vkEnumeratePhysicalDevices(instance, &devices, &physical);
    VkDevice device = VK_NULL_HANDLE;
    if (strcmp(command, "vkCreateDevice") == 0) {
        say("before");
        return vkCreateDevice(physical, NULL, NULL, &device) == VK_SUCCESS ? 10 : 11;
    }
    device = create_device(physical);
    if (device == VK_NULL_HANDLE) {
        return 12;
    }
    VkBuffer buffer = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    say("before");
    if (strcmp(command, "vkCreateBuffer") == 0) {
        return vkCreateBuffer(device, NULL, NULL, &buffer) == VK_SUCCESS ? 10 : 11;
    }
    if (strcmp(command, "vkCreateFence") == 0) {
        return vkCreateFence(device, NULL, NULL, &fence) == VK_SUCCESS ? 10 : 11;
    }
    return 13;
}
