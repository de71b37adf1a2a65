// replayed WAY: does one thing that replays are tested with.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    for (int at = 0; at < 1000; at++) {
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

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*act)(void);
    } ways[] = {{"enumerate", enumerate}, {"names", names}};
    for (size_t at = 0; count == 2 && at < sizeof ways / sizeof *ways; at++) {
        if (strcmp(arguments[1], ways[at].name) == 0) {
            ways[at].act();
            return 0;
        }
    }
    return 2;
}
