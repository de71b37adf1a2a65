// Two fills of one buffer without a barrier, from functions whose names the tests look for.
//
// The argument says where they are called: from main ("plain"), below code without unwind tables ("generated"), on a
// stack that the program made itself ("fiber"), on a thread with the smallest stack ("thread"), from many lines of one
// function ("lines"), or below a frame whose size changes ("array").
#define _GNU_SOURCE
#include <alloca.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <vulkan/vulkan.h>

#define CHECK(call) \
    do { \
        if ((call) != VK_SUCCESS) { \
            fprintf(stderr, "%s failed\n", #call); \
            exit(3); \
        } \
    } while (0)

static VkCommandBuffer commands;
static VkBuffer buffer;
static VkQueue queue;
static volatile int after_the_call;

__attribute__((noinline)) void clear_counters(void) {
    vkCmdFillBuffer(commands, buffer, 0, 64, 1);
    after_the_call++;
}

__attribute__((noinline)) void add_counters(void) {
    vkCmdFillBuffer(commands, buffer, 32, 64, 2);
    after_the_call++;
}

__attribute__((noinline)) void wait_for_counters(void) {
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFER_WRITE_BIT,
                               VK_ACCESS_TRANSFER_WRITE_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0,
                         NULL, 0, NULL);
    after_the_call++;
}

__attribute__((noinline)) void record_frame(void) {
    clear_counters();
    add_counters();
    after_the_call++;
}

// One command from many places: frames further out differ while those inside are the same.
__attribute__((noinline)) void record_from_many_lines(void) {
    for (int i = 0; i < 50; i++) {
        clear_counters();
        wait_for_counters();
        clear_counters();
        wait_for_counters();
        add_counters();
        wait_for_counters();
        add_counters();
        wait_for_counters();
    }
    record_frame();
    after_the_call++;
}

__attribute__((noinline)) void record_below_an_array(int size) {
    char *array = alloca(size);
    memset(array, size, size);
    if (size % 32 == 0) {
        clear_counters();
    } else {
        add_counters();
    }
    after_the_call += array[size / 2];
    wait_for_counters();
}

__attribute__((noinline)) void record_below_generated_code(void) {
    // sub rsp, 8; call rdi; add rsp, 8; ret
    static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    ((void (*)(void (*)(void)))page)(record_frame);
    after_the_call++;
}

static ucontext_t main_context, fiber_context;

static void run_fiber(void) {
    record_frame();
    swapcontext(&fiber_context, &main_context);
}

static void record_on_a_fiber(void) {
    // Nothing is mapped above: whoever reads past the end of this stack crashes.
    size_t size = 256 << 10;
    char *stack = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack + size, 4096, PROT_NONE);
    getcontext(&fiber_context);
    fiber_context.uc_stack.ss_sp = stack;
    fiber_context.uc_stack.ss_size = size;
    fiber_context.uc_link = &main_context;
    makecontext(&fiber_context, run_fiber, 0);
    swapcontext(&main_context, &fiber_context);
}

static void *run_thread(void *unused) {
    record_frame();
    return unused;
}

static void record_on_a_thread(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    // The layer itself needs some room, too.
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + (48 << 10));
    if (pthread_create(&thread, &attributes, run_thread, NULL) != 0) {
        exit(3);
    }
    pthread_join(thread, NULL);
}

static VkDevice make_device(void) {
    VkApplicationInfo application = {VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
    VkInstanceCreateInfo instance_info = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    VkInstance instance;
    CHECK(vkCreateInstance(&instance_info, NULL, &instance));
    uint32_t count = 1;
    VkPhysicalDevice physical;
    if (vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || count == 0) {
        exit(3);
    }
    float priority = 1.0f;
    VkDeviceQueueCreateInfo queue_info = {
        VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    VkDeviceCreateInfo device_info = {
        VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue_info};
    VkDevice device;
    CHECK(vkCreateDevice(physical, &device_info, NULL, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
    return device;
}

static void make_buffer(VkDevice device) {
    VkBufferCreateInfo buffer_info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                      .size = 1024,
                                      .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    CHECK(vkCreateBuffer(device, &buffer_info, NULL, &buffer));
    VkMemoryAllocateInfo memory_info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = 4096};
    VkDeviceMemory memory;
    CHECK(vkAllocateMemory(device, &memory_info, NULL, &memory));
    CHECK(vkBindBufferMemory(device, buffer, memory, 0));
}

static void record(const char *where) {
    if (strcmp(where, "generated") == 0) {
        record_below_generated_code();
    } else if (strcmp(where, "fiber") == 0) {
        record_on_a_fiber();
    } else if (strcmp(where, "thread") == 0) {
        record_on_a_thread();
    } else if (strcmp(where, "lines") == 0) {
        record_from_many_lines();
    } else if (strcmp(where, "array") == 0) {
        for (int size = 16; size < 3000; size += 16) {
            record_below_an_array(size);
        }
        record_frame();
    } else {
        record_frame();
    }
}

int main(int count, char **arguments) {
    VkDevice device = make_device();
    make_buffer(device);
    VkCommandPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    VkCommandPool pool;
    CHECK(vkCreateCommandPool(device, &pool_info, NULL, &pool));
    VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = pool,
                                            .commandBufferCount = 1};
    CHECK(vkAllocateCommandBuffers(device, &allocate, &commands));
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK(vkBeginCommandBuffer(commands, &begin));
    record(count > 1 ? arguments[1] : "plain");
    CHECK(vkEndCommandBuffer(commands));
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    CHECK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
    CHECK(vkQueueWaitIdle(queue));
    vkDestroyDevice(device, NULL);
    return 0;
}
