// Presents in less usual ways, on a driver with surfaces that nobody sees: two windows at once, in a format that is no
// usual one, an image that is shared with the display, swapchains that are made together, on a queue that cannot copy.
#include <stdio.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define FRAMES 3
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != VK_SUCCESS) {                                                                                    \
            fprintf(stderr, "%s failed\n", #call);                                                                     \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue, presents;
static VkCommandBuffer commands;
static VkCommandPool pool;
static VkSwapchainKHR swapchains[2];
static VkSurfaceKHR surfaces[2];

static int make_device(const char **extensions, uint32_t extension_count, uint32_t families) {
    const char *of_surfaces[] = {"VK_KHR_surface", "VK_EXT_headless_surface", "VK_KHR_display"};
    VkInstanceCreateInfo of_instance = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    of_instance.enabledExtensionCount = 3;
    of_instance.ppEnabledExtensionNames = of_surfaces;
    CHECK(vkCreateInstance(&of_instance, NULL, &instance));
    uint32_t count = 1;
    CHECK(vkEnumeratePhysicalDevices(instance, &count, &physical));
    float priority = 1;
    VkDeviceQueueCreateInfo queues[2] = {{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO},
                                         {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO}};
    for (uint32_t it = 0; it < families; it++) {
        queues[it].queueFamilyIndex = it;
        queues[it].queueCount = 1;
        queues[it].pQueuePriorities = &priority;
    }
    VkDeviceCreateInfo of_device = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    of_device.queueCreateInfoCount = families;
    of_device.pQueueCreateInfos = queues;
    of_device.enabledExtensionCount = extension_count;
    of_device.ppEnabledExtensionNames = extensions;
    CHECK(vkCreateDevice(physical, &of_device, NULL, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
    vkGetDeviceQueue(device, families - 1, 0, &presents);
    VkCommandPoolCreateInfo of_pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    of_pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    CHECK(vkCreateCommandPool(device, &of_pool, NULL, &pool));
    VkCommandBufferAllocateInfo of_commands = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    of_commands.commandPool = pool;
    of_commands.commandBufferCount = 1;
    CHECK(vkAllocateCommandBuffers(device, &of_commands, &commands));
    return 0;
}

static int make_swapchains(VkFormat format, VkPresentModeKHR mode, int together) {
    PFN_vkCreateHeadlessSurfaceEXT make_surface =
        (PFN_vkCreateHeadlessSurfaceEXT)vkGetInstanceProcAddr(instance, "vkCreateHeadlessSurfaceEXT");
    VkSwapchainCreateInfoKHR infos[2];
    memset(infos, 0, sizeof infos);
    for (int it = 0; it < 2; it++) {
        VkHeadlessSurfaceCreateInfoEXT info = {VK_STRUCTURE_TYPE_HEADLESS_SURFACE_CREATE_INFO_EXT};
        CHECK(make_surface(instance, &info, NULL, &surfaces[it]));
        infos[it].sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR;
        infos[it].surface = surfaces[it];
        infos[it].minImageCount = 2;
        infos[it].imageFormat = format;
        // Not a multiple of anything.
        infos[it].imageExtent.width = it == 0 ? 7 : 5;
        infos[it].imageExtent.height = 3;
        infos[it].imageArrayLayers = 1;
        infos[it].imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
        infos[it].preTransform = VK_SURFACE_TRANSFORM_IDENTITY_BIT_KHR;
        infos[it].compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR;
        infos[it].presentMode = mode;
        if (!together) {
            CHECK(vkCreateSwapchainKHR(device, &infos[it], NULL, &swapchains[it]));
        }
    }
    if (together) {
        PFN_vkCreateSharedSwapchainsKHR make =
            (PFN_vkCreateSharedSwapchainsKHR)vkGetDeviceProcAddr(device, "vkCreateSharedSwapchainsKHR");
        CHECK(make(device, 2, infos, NULL, swapchains));
    }
    return 0;
}

static void change(VkImage image, VkImageLayout from, VkImageLayout to) {
    VkImageMemoryBarrier barrier = {VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.oldLayout = from;
    barrier.newLayout = to;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = image;
    barrier.subresourceRange = (VkImageSubresourceRange){VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 0,
                         NULL, 1, &barrier);
}

// Clears the images with colors of the frame and the window, and presents them together.
static int frame(int number, VkSemaphore drawn, VkFence acquired) {
    uint32_t indices[2];
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK(vkBeginCommandBuffer(commands, &begin));
    for (int it = 0; it < 2; it++) {
        CHECK(vkAcquireNextImageKHR(device, swapchains[it], UINT64_MAX, VK_NULL_HANDLE, acquired, &indices[it]));
        CHECK(vkWaitForFences(device, 1, &acquired, VK_TRUE, UINT64_MAX));
        CHECK(vkResetFences(device, 1, &acquired));
        uint32_t count = 8;
        VkImage images[8];
        CHECK(vkGetSwapchainImagesKHR(device, swapchains[it], &count, images));
        VkImage image = images[indices[it]];
        VkClearColorValue color = {{number / 255.0f, it / 255.0f, 1, 1}};
        VkImageSubresourceRange all = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
        change(image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
        vkCmdClearColorImage(commands, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &color, 1, &all);
        change(image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR);
    }
    CHECK(vkEndCommandBuffer(commands));
    // Not every present waits.
    uint32_t waits = number % 2;
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    submit.signalSemaphoreCount = waits;
    submit.pSignalSemaphores = &drawn;
    CHECK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
    VkResult results[2];
    VkPresentInfoKHR present = {VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
    present.waitSemaphoreCount = waits;
    present.pWaitSemaphores = &drawn;
    present.swapchainCount = 2;
    present.pSwapchains = swapchains;
    present.pImageIndices = indices;
    present.pResults = results;
    CHECK(vkQueuePresentKHR(presents, &present));
    CHECK(results[0]);
    CHECK(results[1]);
    CHECK(vkDeviceWaitIdle(device));
    return 0;
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    int is_shared = strcmp(how, "shared") == 0, is_together = strcmp(how, "together") == 0;
    const char *extensions[] = {"VK_KHR_swapchain",
                                is_shared ? "VK_KHR_shared_presentable_image" : "VK_KHR_display_swapchain"};
    uint32_t families = strcmp(how, "queue") == 0 ? 2 : 1;
    VkFormat format = strcmp(how, "format") == 0 ? VK_FORMAT_R5G6B5_UNORM_PACK16 : VK_FORMAT_B8G8R8A8_UNORM;
    VkPresentModeKHR mode = is_shared ? VK_PRESENT_MODE_SHARED_DEMAND_REFRESH_KHR : VK_PRESENT_MODE_FIFO_KHR;
    if (make_device(extensions, is_shared || is_together ? 2 : 1, families) ||
        make_swapchains(format, mode, is_together)) {
        return 1;
    }
    VkSemaphoreCreateInfo of_semaphore = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    VkFenceCreateInfo of_fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkSemaphore drawn;
    VkFence acquired;
    CHECK(vkCreateSemaphore(device, &of_semaphore, NULL, &drawn));
    CHECK(vkCreateFence(device, &of_fence, NULL, &acquired));
    for (int number = 0; number < FRAMES; number++) {
        if (frame(number, drawn, acquired)) {
            return 1;
        }
    }
    // Without an end: whatever is under way is finished all the same.
    return 0;
}
