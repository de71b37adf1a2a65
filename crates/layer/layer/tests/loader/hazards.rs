//! An application that fills a buffer, with and without hazards, and receives the messages of the layer.

use std::ffi::{CStr, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::ThreadId;

use ash::vk;

use crate::world::{Setup, World};

pub(crate) const DEBUG_UTILS: &CStr = c"VK_EXT_debug_utils";
pub(crate) const CODE: &str = "SYNC-HAZARD-WRITE-AFTER-WRITE";
pub(crate) const INLINE: &[(&CStr, &CStr)] = &[(c"sync", c"on")];
pub(crate) const ASYNC: &[(&CStr, &CStr)] = &[(c"sync", c"on"), (c"sync_mode", c"async")];

/// A message that a messenger received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReceivedMessage {
    pub(crate) thread: ThreadId,
    pub(crate) severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    pub(crate) ty: vk::DebugUtilsMessageTypeFlagsEXT,
    pub(crate) name: String,
    pub(crate) number: i32,
    pub(crate) text: String,
    pub(crate) objects: Vec<(vk::ObjectType, u64, Option<String>)>,
    /// The labels of the queue, and of the command buffer.
    pub(crate) labels: [Vec<String>; 2],
}

static RECEIVED: Mutex<Vec<ReceivedMessage>> = Mutex::new(Vec::new());
/// The results of messengers.
static CALLBACK_RESULT: AtomicU32 = AtomicU32::new(vk::FALSE);

/// The messages since the last call.
pub(crate) fn take_received() -> Vec<ReceivedMessage> {
    std::mem::take(&mut *RECEIVED.lock().expect("callbacks do not panic"))
}

/// From now on messengers want calls to be given up, or not.
pub(crate) fn set_callback_result(gives_up: bool) {
    CALLBACK_RESULT.store(u32::from(gives_up), Ordering::Relaxed);
}

pub(crate) unsafe extern "system" fn debug_callback(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    ty: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: by PFN_vkDebugUtilsMessengerCallbackEXT, `data` leads to a valid structure until this returns.
    let data = unsafe { &*data };
    let owned = |it: Option<&CStr>| it.map(|it| it.to_string_lossy().into_owned());
    // SAFETY: by PFN_vkDebugUtilsMessengerCallbackEXT, `data` leads to a valid structure until this returns: its texts
    // are null or end with a zero.
    let (name, text) = unsafe { (owned(data.message_id_name_as_c_str()), owned(data.message_as_c_str())) };
    let Some(name) = name.filter(|it| it.starts_with("SYNC") || it.starts_with("LAVASCOPE-Device")) else {
        return vk::FALSE;
    };
    let objects = match data.object_count {
        0 => &[],
        // SAFETY: by PFN_vkDebugUtilsMessengerCallbackEXT, `data` leads to a valid structure until this returns: it has
        // so many objects.
        count => unsafe { std::slice::from_raw_parts(data.p_objects, count as usize) },
    };
    // SAFETY: by PFN_vkDebugUtilsMessengerCallbackEXT, `data` leads to a valid structure until this returns: the names
    // of its objects are null or end with a zero.
    let object = |name_info: &vk::DebugUtilsObjectNameInfoEXT<'_>| unsafe {
        (name_info.object_type, name_info.object_handle, owned(name_info.object_name_as_c_str()))
    };
    let labels = [(data.queue_label_count, data.p_queue_labels), (data.cmd_buf_label_count, data.p_cmd_buf_labels)];
    let labels = labels.map(|(count, first)| match count {
        0 => Vec::new(),
        // SAFETY: by PFN_vkDebugUtilsMessengerCallbackEXT, `data` leads to a valid structure until this returns: it has
        // so many labels, whose names end with a zero.
        count => unsafe {
            let all = std::slice::from_raw_parts(first, count as usize);
            all.iter().filter_map(|it| owned(it.label_name_as_c_str())).collect()
        },
    });
    let heard = ReceivedMessage {
        thread: std::thread::current().id(),
        severity,
        ty,
        name,
        number: data.message_id_number,
        text: text.unwrap_or_default(),
        objects: objects.iter().map(object).collect(),
        labels,
    };
    RECEIVED.lock().expect("callbacks do not panic").push(heard);
    CALLBACK_RESULT.load(Ordering::Relaxed)
}

/// Errors of validation go to [`debug_callback`].
pub(crate) fn messenger_info() -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    use vk::DebugUtilsMessageSeverityFlagsEXT as Severity;
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(Severity::ERROR | Severity::WARNING)
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(debug_callback))
}

/// An application with a buffer of 256 bytes and two command buffers.
pub(crate) struct BufferApp {
    pub(crate) world: World,
    pub(crate) commands: [vk::CommandBuffer; 2],
    pub(crate) buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    pool: vk::CommandPool,
    messenger: Option<(ash::ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
}

impl BufferApp {
    /// With a messenger.
    pub(crate) fn new(entry: &ash::Entry, settings: &[(&CStr, &CStr)]) -> BufferApp {
        BufferApp::of(entry, Setup { extensions: &[DEBUG_UTILS], settings, ..Setup::OFF })
    }

    /// With a messenger.
    pub(crate) fn of(entry: &ash::Entry, setup: Setup<'_>) -> BufferApp {
        let mut app = BufferApp::silent_of(entry, setup);
        let functions = ash::ext::debug_utils::Instance::new(entry, &app.world.instance);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        let made = unsafe { functions.create_debug_utils_messenger(&messenger_info(), None) }.expect("it is made");
        app.messenger = Some((functions, made));
        app
    }

    /// Without a messenger.
    pub(crate) fn silent(entry: &ash::Entry, settings: &[(&CStr, &CStr)]) -> BufferApp {
        BufferApp::silent_of(entry, Setup { extensions: &[DEBUG_UTILS], settings, ..Setup::OFF })
    }

    pub(crate) fn silent_of(entry: &ash::Entry, setup: Setup<'_>) -> BufferApp {
        let world = setup.world(entry);
        let (buffer, pool) = (world.create_buffer(), world.command_pool());
        let commands = world.command_buffers(pool, 2);
        let device = &world.device;
        // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what
        // structures point to lives in this frame, and only this thread uses the queue and the pool; work is waited for
        // before its objects end (lifetime, owner).
        let memory = unsafe {
            let memory = device.allocate_memory(&vk::MemoryAllocateInfo::default().allocation_size(1024), None);
            let memory = memory.expect("the null driver has memory");
            device.bind_buffer_memory(buffer, memory, 0).expect("it can be bound");
            memory
        };
        BufferApp { world, commands: [commands[0], commands[1]], buffer, memory, pool, messenger: None }
    }

    pub(crate) fn begin(&self, index: usize) {
        let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
        // SAFETY: the command buffer is not pending, its pool lets it be begun again, and only this thread uses it
        // (lifetime, owner).
        unsafe { self.world.device.begin_command_buffer(self.commands[index], &info) }
            .expect("the null driver records");
    }

    /// Fills 64 bytes.
    pub(crate) fn fill(&self, index: usize, offset: u64, value: u32) {
        self.fill_in(self.commands[index], offset, value);
    }

    pub(crate) fn fill_in(&self, commands: vk::CommandBuffer, offset: u64, value: u32) {
        // SAFETY: recorded here, with live objects (lifetime, owner).
        unsafe { self.world.device.cmd_fill_buffer(commands, self.buffer, offset, 64, value) };
    }

    /// Two secondary command buffers.
    pub(crate) fn secondaries(&self) -> [vk::CommandBuffer; 2] {
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(2);
        let info = info.level(vk::CommandBufferLevel::SECONDARY);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        let made = unsafe { self.world.device.allocate_command_buffers(&info) };
        let made = made.expect("the null driver makes command buffers");
        [made[0], made[1]]
    }

    pub(crate) fn record_secondary(&self, commands: vk::CommandBuffer, record: impl FnOnce(vk::CommandBuffer)) {
        let inherited = vk::CommandBufferInheritanceInfo::default();
        let info = vk::CommandBufferBeginInfo::default().inheritance_info(&inherited);
        let info = info.flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
        // SAFETY: the command buffer is not pending, its pool lets it be begun again, and only this thread uses it
        // (lifetime, owner).
        unsafe {
            self.world.device.begin_command_buffer(commands, &info).expect("the null driver records");
            record(commands);
            self.world.device.end_command_buffer(commands).expect("the null driver records");
        }
    }

    pub(crate) fn execute(&self, index: usize, secondary: vk::CommandBuffer) {
        // SAFETY: recorded here; `secondary` was recorded for simultaneous use and is of this device (lifetime, owner).
        unsafe { self.world.device.cmd_execute_commands(self.commands[index], &[secondary]) };
    }

    /// Orders all later commands after all earlier ones.
    pub(crate) fn barrier(&self, index: usize) {
        self.barrier_in(self.commands[index]);
    }

    pub(crate) fn barrier_in(&self, commands: vk::CommandBuffer) {
        let all = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
        let barrier = vk::MemoryBarrier::default().src_access_mask(all).dst_access_mask(all);
        let stages = vk::PipelineStageFlags::ALL_COMMANDS;
        let flags = vk::DependencyFlags::empty();
        // SAFETY: recorded here, with live objects (lifetime, owner).
        unsafe {
            self.world.device.cmd_pipeline_barrier(commands, stages, stages, flags, &[barrier], &[], &[]);
        }
    }

    pub(crate) fn end(&self, index: usize) {
        // SAFETY: recorded here, with live objects (lifetime, owner).
        unsafe { self.world.device.end_command_buffer(self.commands[index]) }.expect("the null driver records");
    }

    /// Records fills, each with its offset and value.
    pub(crate) fn record(&self, index: usize, fills: &[(u64, u32)]) {
        self.begin(index);
        fills.iter().for_each(|(offset, value)| self.fill(index, *offset, *value));
        self.end(index);
    }

    pub(crate) fn submit(&self, index: usize) -> Result<(), vk::Result> {
        self.submit_with(index, vk::Fence::null())
    }

    pub(crate) fn submit_with(&self, index: usize, fence: vk::Fence) -> Result<(), vk::Result> {
        let buffers = [self.commands[index]];
        let submit = vk::SubmitInfo::default().command_buffers(&buffers);
        // SAFETY: no other thread uses the queue meanwhile, and the command buffer was recorded and is not pending, or
        // was begun for simultaneous use (VUID-vkQueueSubmit-pCommandBuffers-00070, -00071; lifetime, owner).
        unsafe { self.world.device.queue_submit(self.world.queue, &[submit], fence) }
    }

    /// Submits work that waits for a value of a new timeline.
    pub(crate) fn submit_after(&self, index: usize, value: u64) -> vk::Semaphore {
        let mut timeline = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut timeline);
        let (device, buffers, values) = (&self.world.device, [self.commands[index]], [value]);
        // SAFETY: the structures live until the calls return, no other thread uses the queue meanwhile, and the command
        // buffer was recorded for simultaneous use (lifetime, owner).
        unsafe {
            let semaphore = device.create_semaphore(&info, None).expect("the null driver makes semaphores");
            let (waits, stages) = ([semaphore], [vk::PipelineStageFlags::ALL_COMMANDS]);
            let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&values);
            let submit = vk::SubmitInfo::default().command_buffers(&buffers).push_next(&mut timeline);
            let submit = submit.wait_semaphores(&waits).wait_dst_stage_mask(&stages);
            let submitted = device.queue_submit(self.world.queue, &[submit], vk::Fence::null());
            submitted.expect("the null driver submits");
            semaphore
        }
    }

    pub(crate) fn wait(&self) {
        // SAFETY: no other thread uses the queue meanwhile (owner).
        unsafe { self.world.device.queue_wait_idle(self.world.queue) }.expect("the null driver waits");
    }

    /// A word of the buffer. The null driver makes all memory visible, and executes fills if it is configured so.
    pub(crate) fn word(&self, offset: u64) -> u32 {
        let device = &self.world.device;
        // SAFETY: the memory is mapped here only (VUID-vkMapMemory-memory-00678), has 1024 bytes, which every test
        // stays below, and the queue was waited for (lifetime, owner).
        unsafe {
            let address = device.map_memory(self.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty());
            let value = address.expect("it can be mapped").byte_add(offset as usize).cast::<u32>().read();
            device.unmap_memory(self.memory);
            value
        }
    }

    /// Opens or closes a debug label in a command buffer.
    pub(crate) fn label(&self, index: usize, label: Option<&CStr>) {
        let functions = ash::ext::debug_utils::Device::new(&self.world.instance, &self.world.device);
        // SAFETY: recorded here, and tests close as many labels as they opened
        // (VUID-vkCmdEndDebugUtilsLabelEXT-commandBuffer-01912; owner).
        unsafe {
            match label {
                Some(name) => {
                    let info = vk::DebugUtilsLabelEXT::default().label_name(name);
                    functions.cmd_begin_debug_utils_label(self.commands[index], &info);
                }
                None => functions.cmd_end_debug_utils_label(self.commands[index]),
            }
        }
    }

    /// Names an object of the application.
    pub(crate) fn name<T: vk::Handle>(&self, object: T, name: &CStr) {
        let functions = ash::ext::debug_utils::Device::new(&self.world.instance, &self.world.device);
        let info = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(object).object_name(name);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        unsafe { functions.set_debug_utils_object_name(&info) }.expect("a name can be given");
    }

    pub(crate) fn destroy_device(&self) {
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe {
            self.world.device.destroy_command_pool(self.pool, None);
            self.world.device.destroy_buffer(self.buffer, None);
            self.world.device.free_memory(self.memory, None);
            self.world.device.destroy_device(None);
        }
    }

    pub(crate) fn destroy_instance(&self) {
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe {
            if let Some((functions, messenger)) = &self.messenger {
                functions.destroy_debug_utils_messenger(*messenger, None);
            }
            self.world.instance.destroy_instance(None);
        }
    }

    pub(crate) fn destroy(&self) {
        self.destroy_device();
        self.destroy_instance();
    }
}
