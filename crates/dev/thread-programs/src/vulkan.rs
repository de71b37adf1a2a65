//! The device that programs run on, and one function for each operation.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use ash::vk;
use ash::vk::Handle;

use crate::operation::{Object, Operation};
use crate::program_trace::{host_word, mark_size};

const FOREVER: u64 = u64::MAX;

/// A device with what all programs share.
pub(crate) struct TestDevice {
    // Last, so that the library is closed after everything that points into it.
    device: ash::Device,
    instance: ash::Instance,
    _entry: ash::Entry,
    pub(crate) queues: Vec<vk::Queue>,
    set_layout: vk::DescriptorSetLayout,
    pipeline_layout: vk::PipelineLayout,
    /// What descriptors refer to.
    uniform: vk::Buffer,
    memory: vk::DeviceMemory,
    /// Where that is mapped. Each address is written once, by one thread.
    mapped: usize,
    /// Words that were written.
    written: AtomicUsize,
}

/// Size of the mapped memory.
const MEMORY_SIZE: u64 = 1 << 20;

/// The objects of one program.
pub(crate) struct ProgramObjects {
    gpu: Arc<TestDevice>,
    /// Of this program, in the process.
    number: usize,
    handles: RwLock<HashMap<Object, u64>>,
}

impl TestDevice {
    pub(crate) fn open(layer: &CStr, queue_count: usize) -> TestDevice {
        // SAFETY: the initializers of the Vulkan loader have no preconditions.
        let entry = unsafe { ash::Entry::load() }.expect("the Vulkan loader: install libvulkan1");
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let layers = [layer.as_ptr()];
        let info = vk::InstanceCreateInfo::default().application_info(&application).enabled_layer_names(&layers);
        // SAFETY: the structures live until the call returns.
        let instance = unsafe { entry.create_instance(&info, None) }.expect("the null driver and our layer");
        // SAFETY: a live instance.
        let gpu = unsafe { instance.enumerate_physical_devices() }.expect("the null driver has one")[0];
        let priorities = vec![1.0; queue_count];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&priorities)];
        let mut features =
            vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true).buffer_device_address(true);
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut features);
        // SAFETY: the null driver has the features, and at least as many queues in its first family.
        let device = unsafe { instance.create_device(gpu, &info, None) }.expect("the null driver makes devices");
        // SAFETY: the device was made with these queues.
        let queues = (0..queue_count as u32).map(|it| unsafe { device.get_device_queue(0, it) }).collect();
        let binding = [vk::DescriptorSetLayoutBinding::default()
            .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&binding);
        // SAFETY: a live device, and structures that live until the call returns.
        let set_layout = unsafe { device.create_descriptor_set_layout(&info, None) }.expect("a layout");
        let range = [vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(8)];
        let layouts = [set_layout];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts).push_constant_ranges(&range);
        // SAFETY: a live device, and structures that live until the call returns.
        let pipeline_layout = unsafe { device.create_pipeline_layout(&info, None) }.expect("a layout");
        let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
        // SAFETY: a live device, and a structure that lives until the call returns.
        let uniform = unsafe { device.create_buffer(&info, None) }.expect("a buffer");
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(MEMORY_SIZE)
            .memory_type_index(host_visible(&instance, gpu));
        // SAFETY: a live device, and a memory type that it has.
        let memory = unsafe { device.allocate_memory(&info, None) }.expect("the null driver has memory");
        // SAFETY: a live memory that the host can see, mapped once.
        let mapped = unsafe { device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) };
        let mapped = mapped.expect("it is mapped").expose_provenance();
        let written = AtomicUsize::new(0);
        TestDevice {
            device,
            instance,
            _entry: entry,
            queues,
            set_layout,
            pipeline_layout,
            uniform,
            memory,
            mapped,
            written,
        }
    }

    /// Writes a word that was not written before.
    fn write_memory(&self, word: u64) {
        let offset = self.written.fetch_add(1, Ordering::Relaxed) * 8;
        assert!((offset as u64) < MEMORY_SIZE, "the memory is large enough for the programs of a process");
        // SAFETY: inside of the mapped memory, and no other thread has this offset.
        unsafe { std::ptr::with_exposed_provenance_mut::<u64>(self.mapped + offset).write_volatile(word) };
    }

    /// A call that no other needs.
    pub(crate) fn make_any_call(&self) {
        // SAFETY: a live buffer, which no thread changes.
        let _ = unsafe { self.device.get_buffer_memory_requirements(self.uniform) };
    }

    pub(crate) fn close(&self) {
        // SAFETY: all threads have ended, and nothing is pending: each program ends with a wait for the device.
        unsafe {
            // Host writes that no program has submitted are recorded, too.
            self.device.queue_submit(self.queues[0], &[], vk::Fence::null()).expect("it is submitted");
            self.device.free_memory(self.memory, None);
            self.device.destroy_buffer(self.uniform, None);
            self.device.destroy_pipeline_layout(self.pipeline_layout, None);
            self.device.destroy_descriptor_set_layout(self.set_layout, None);
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

fn host_visible(instance: &ash::Instance, gpu: vk::PhysicalDevice) -> u32 {
    // SAFETY: a live instance, whose physical device this is.
    let properties = unsafe { instance.get_physical_device_memory_properties(gpu) };
    let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    let is_fit = |it: &u32| properties.memory_types[*it as usize].property_flags.contains(wanted);
    (0..properties.memory_type_count).find(is_fit).expect("every driver has such memory")
}

impl ProgramObjects {
    pub(crate) fn new(gpu: Arc<TestDevice>, number: usize) -> ProgramObjects {
        ProgramObjects { gpu, number, handles: RwLock::default() }
    }

    fn get<T: Handle>(&self, object: Object) -> T {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        T::from_raw(*handles.get(&object).expect("the generator makes objects before it uses them"))
    }

    fn set(&self, object: Object, handle: impl Handle) {
        self.handles.write().unwrap_or_else(PoisonError::into_inner).insert(object, handle.as_raw());
    }

    /// Makes the call of an operation, or several until one succeeds. Returns their number.
    pub(crate) fn perform(&self, thread: usize, operation: &Operation) -> u64 {
        use Operation as O;
        match operation {
            O::Allocate { .. }
            | O::Begin { .. }
            | O::Record { .. }
            | O::BindSet { .. }
            | O::PushAddress { .. }
            | O::Execute { .. }
            | O::End { .. }
            | O::Reset { .. }
            | O::Free { .. } => self.record(operation),
            O::CreatePool(_) | O::ResetPool { .. } | O::DestroyPool { .. } => self.use_pool(operation),
            O::CreateDescriptorPool(_)
            | O::AllocateSet { .. }
            | O::UpdateSet(_)
            | O::CopySet { .. }
            | O::ResetDescriptorPool { .. }
            | O::DestroyDescriptorPool { .. } => self.use_descriptors(operation),
            O::PollFence { .. } | O::PollTimeline { .. } => return self.poll(operation),
            O::CreateFence(_)
            | O::Submit { .. }
            | O::WaitFence { .. }
            | O::LookAtFence(_)
            | O::ResetFence(_)
            | O::DestroyFence(_)
            | O::WaitQueue { .. }
            | O::WaitDevice { .. } => self.use_queue(operation),
            O::Mark(_) | O::CreateBuffer(_) | O::GetAddress(_) | O::DestroyBuffer(_) => {
                self.use_buffer(thread, operation)
            }
            O::CreateEvent(_) | O::SetEvent(_) | O::ResetEvent(_) | O::LookAtEvent(_) | O::DestroyEvent(_) => {
                self.use_event(operation)
            }
            O::CreateTimeline(_) | O::Signal { .. } | O::WaitTimeline { .. } | O::DestroyTimeline(_) => {
                self.use_timeline(operation)
            }
            O::WriteMemory(bytes) => {
                self.gpu.write_memory(host_word(self.number, *bytes));
                return 0;
            }
        }
        1
    }

    fn record(&self, operation: &Operation) {
        use Operation as O;
        let device = &self.gpu.device;
        let command_buffer = |it: &usize| self.get::<vk::CommandBuffer>(Object::CommandBuffer(*it));
        // SAFETY: as the crate says: objects are alive, used by one thread at a time, and in the states that the calls
        // need.
        unsafe {
            match operation {
                O::Allocate { pool, command_buffer, is_secondary } => {
                    let level = match is_secondary {
                        true => vk::CommandBufferLevel::SECONDARY,
                        false => vk::CommandBufferLevel::PRIMARY,
                    };
                    let info = vk::CommandBufferAllocateInfo::default()
                        .command_pool(self.get(Object::Pool(*pool)))
                        .level(level)
                        .command_buffer_count(1);
                    let made = device.allocate_command_buffers(&info).expect("a command buffer");
                    self.set(Object::CommandBuffer(*command_buffer), made[0]);
                }
                O::Begin { command_buffer: own, is_secondary, .. } => {
                    let inheritance = vk::CommandBufferInheritanceInfo::default();
                    let mut info =
                        vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
                    if *is_secondary {
                        info = info.inheritance_info(&inheritance);
                    }
                    device.begin_command_buffer(command_buffer(own), &info).expect("it begins");
                }
                O::Record { command_buffer: own, .. } => device.cmd_set_line_width(command_buffer(own), 1.0),
                O::BindSet { command_buffer: own, set, .. } => {
                    let (point, sets) = (vk::PipelineBindPoint::COMPUTE, [self.get(Object::DescriptorSet(*set))]);
                    device.cmd_bind_descriptor_sets(
                        command_buffer(own),
                        point,
                        self.gpu.pipeline_layout,
                        0,
                        &sets,
                        &[],
                    );
                }
                O::PushAddress { command_buffer: own, buffer, .. } => {
                    let address: vk::QueryPool = self.get(Object::Address(*buffer));
                    let (stages, bytes) = (vk::ShaderStageFlags::COMPUTE, address.as_raw().to_ne_bytes());
                    let layout = self.gpu.pipeline_layout;
                    device.cmd_push_constants(command_buffer(own), layout, stages, 0, &bytes);
                }
                O::Execute { command_buffer: own, secondary, .. } => {
                    device.cmd_execute_commands(command_buffer(own), &[command_buffer(secondary)]);
                }
                O::End { command_buffer: own, .. } => {
                    device.end_command_buffer(command_buffer(own)).expect("it ends");
                }
                O::Reset { command_buffer: own, .. } => {
                    let flags = vk::CommandBufferResetFlags::empty();
                    device.reset_command_buffer(command_buffer(own), flags).expect("it is reset");
                }
                O::Free { pool, command_buffer: own } => {
                    device.free_command_buffers(self.get(Object::Pool(*pool)), &[command_buffer(own)]);
                }
                _ => unreachable!("`perform` chooses"),
            }
        }
    }

    fn use_pool(&self, operation: &Operation) {
        use Operation as O;
        let device = &self.gpu.device;
        // SAFETY: as the crate says.
        unsafe {
            match operation {
                O::CreatePool(pool) => {
                    let info =
                        vk::CommandPoolCreateInfo::default().flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
                    self.set(Object::Pool(*pool), device.create_command_pool(&info, None).expect("a pool"));
                }
                O::ResetPool { pool, .. } => {
                    let flags = vk::CommandPoolResetFlags::empty();
                    device.reset_command_pool(self.get(Object::Pool(*pool)), flags).expect("it is reset");
                }
                O::DestroyPool { pool, .. } => device.destroy_command_pool(self.get(Object::Pool(*pool)), None),
                _ => unreachable!("`perform` chooses"),
            }
        }
    }

    fn use_descriptors(&self, operation: &Operation) {
        use Operation as O;
        let device = &self.gpu.device;
        let set = |it: &usize| self.get::<vk::DescriptorSet>(Object::DescriptorSet(*it));
        // SAFETY: as the crate says.
        unsafe {
            match operation {
                O::CreateDescriptorPool(pool) => {
                    let sizes =
                        [vk::DescriptorPoolSize::default().ty(vk::DescriptorType::UNIFORM_BUFFER).descriptor_count(64)];
                    let info = vk::DescriptorPoolCreateInfo::default().max_sets(64).pool_sizes(&sizes);
                    let made = device.create_descriptor_pool(&info, None).expect("a pool");
                    self.set(Object::DescriptorPool(*pool), made);
                }
                O::AllocateSet { pool, set } => {
                    let layouts = [self.gpu.set_layout];
                    let info = vk::DescriptorSetAllocateInfo::default()
                        .descriptor_pool(self.get(Object::DescriptorPool(*pool)))
                        .set_layouts(&layouts);
                    let made = device.allocate_descriptor_sets(&info).expect("a set");
                    self.set(Object::DescriptorSet(*set), made[0]);
                }
                O::UpdateSet(own) => {
                    let buffers = [vk::DescriptorBufferInfo::default().buffer(self.gpu.uniform).range(256)];
                    let write = vk::WriteDescriptorSet::default()
                        .dst_set(set(own))
                        .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
                        .buffer_info(&buffers);
                    device.update_descriptor_sets(&[write], &[]);
                }
                O::CopySet { from, to } => {
                    let copy = vk::CopyDescriptorSet::default().src_set(set(from)).dst_set(set(to)).descriptor_count(1);
                    device.update_descriptor_sets(&[], &[copy]);
                }
                O::ResetDescriptorPool { pool, .. } => {
                    let flags = vk::DescriptorPoolResetFlags::empty();
                    let pool = self.get(Object::DescriptorPool(*pool));
                    device.reset_descriptor_pool(pool, flags).expect("it is reset");
                }
                O::DestroyDescriptorPool { pool, .. } => {
                    device.destroy_descriptor_pool(self.get(Object::DescriptorPool(*pool)), None);
                }
                _ => unreachable!("`perform` chooses"),
            }
        }
    }

    fn use_queue(&self, operation: &Operation) {
        use Operation as O;
        let device = &self.gpu.device;
        let fence = |it: &usize| self.get::<vk::Fence>(Object::Fence(*it));
        // SAFETY: as the crate says.
        unsafe {
            match operation {
                O::CreateFence(own) => {
                    let made = device.create_fence(&vk::FenceCreateInfo::default(), None).expect("a fence");
                    self.set(Object::Fence(*own), made);
                }
                O::Submit { queue, command_buffers, fence: own, .. } => {
                    let all: Vec<vk::CommandBuffer> =
                        command_buffers.iter().map(|it| self.get(Object::CommandBuffer(*it))).collect();
                    let submit = vk::SubmitInfo::default().command_buffers(&all);
                    let fence = own.as_ref().map_or(vk::Fence::null(), fence);
                    device.queue_submit(self.gpu.queues[*queue], &[submit], fence).expect("it is submitted");
                }
                O::WaitFence { fence: own, .. } => {
                    device.wait_for_fences(&[fence(own)], true, FOREVER).expect("it is signaled");
                }
                O::LookAtFence(own) => _ = device.get_fence_status(fence(own)).expect("a status"),
                O::ResetFence(own) => device.reset_fences(&[fence(own)]).expect("it is reset"),
                O::DestroyFence(own) => device.destroy_fence(fence(own), None),
                O::WaitQueue { queue, .. } => device.queue_wait_idle(self.gpu.queues[*queue]).expect("it is idle"),
                O::WaitDevice { .. } => device.device_wait_idle().expect("it is idle"),
                _ => unreachable!("`perform` chooses"),
            }
        }
    }

    fn use_buffer(&self, thread: usize, operation: &Operation) {
        use Operation as O;
        let device = &self.gpu.device;
        let create = |size: u64, usage: vk::BufferUsageFlags| {
            let info = vk::BufferCreateInfo::default().size(size).usage(usage);
            // SAFETY: a live device, and a structure that lives until the call returns.
            unsafe { device.create_buffer(&info, None) }.expect("a buffer")
        };
        match operation {
            O::Mark(buffer) => {
                let made = create(mark_size(self.number, thread), vk::BufferUsageFlags::TRANSFER_DST);
                self.set(Object::Buffer(*buffer), made);
            }
            O::CreateBuffer(buffer) => {
                self.set(Object::Buffer(*buffer), create(64, vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS));
            }
            O::GetAddress(buffer) => {
                let info = vk::BufferDeviceAddressInfo::default().buffer(self.get(Object::Buffer(*buffer)));
                // SAFETY: a live buffer; the null driver gives addresses to buffers without memory.
                let address = unsafe { device.get_buffer_device_address(&info) };
                self.set(Object::Address(*buffer), vk::QueryPool::from_raw(address));
            }
            O::DestroyBuffer(buffer) => {
                // SAFETY: as the crate says.
                unsafe { device.destroy_buffer(self.get(Object::Buffer(*buffer)), None) };
            }
            _ => unreachable!("`perform` chooses"),
        }
    }

    fn use_event(&self, operation: &Operation) {
        use Operation as O;
        let device = &self.gpu.device;
        let event = |it: &usize| self.get::<vk::Event>(Object::Event(*it));
        // SAFETY: as the crate says.
        unsafe {
            match operation {
                O::CreateEvent(own) => {
                    let made = device.create_event(&vk::EventCreateInfo::default(), None).expect("an event");
                    self.set(Object::Event(*own), made);
                }
                O::SetEvent(own) => device.set_event(event(own)).expect("it is set"),
                O::ResetEvent(own) => device.reset_event(event(own)).expect("it is reset"),
                O::LookAtEvent(own) => _ = device.get_event_status(event(own)).expect("a status"),
                O::DestroyEvent(own) => device.destroy_event(event(own), None),
                _ => unreachable!("`perform` chooses"),
            }
        }
    }

    fn use_timeline(&self, operation: &Operation) {
        use Operation as O;
        let device = &self.gpu.device;
        let semaphore = |it: &usize| self.get::<vk::Semaphore>(Object::Timeline(*it));
        // SAFETY: as the crate says; values of a timeline grow.
        unsafe {
            match operation {
                O::CreateTimeline(own) => {
                    let mut ty = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
                    let info = vk::SemaphoreCreateInfo::default().push_next(&mut ty);
                    let made = device.create_semaphore(&info, None).expect("a semaphore");
                    self.set(Object::Timeline(*own), made);
                }
                O::Signal { timeline, value } => {
                    let info = vk::SemaphoreSignalInfo::default().semaphore(semaphore(timeline)).value(*value);
                    device.signal_semaphore(&info).expect("it is signaled");
                }
                O::WaitTimeline { timeline, value } => {
                    let (semaphores, values) = ([semaphore(timeline)], [*value]);
                    let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
                    device.wait_semaphores(&info, FOREVER).expect("it is reached");
                }
                O::DestroyTimeline(own) => device.destroy_semaphore(semaphore(own), None),
                _ => unreachable!("`perform` chooses"),
            }
        }
    }

    fn poll(&self, operation: &Operation) -> u64 {
        let device = &self.gpu.device;
        let is_over = || {
            // SAFETY: as the crate says.
            unsafe {
                match operation {
                    Operation::PollFence { fence, .. } => {
                        device.get_fence_status(self.get(Object::Fence(*fence))).expect("a status")
                    }
                    Operation::PollTimeline { timeline, value } => {
                        let semaphore = self.get(Object::Timeline(*timeline));
                        device.get_semaphore_counter_value(semaphore).expect("a value") >= *value
                    }
                    _ => unreachable!("`perform` chooses"),
                }
            }
        };
        let mut calls = 1;
        while !is_over() {
            calls += 1;
            std::thread::yield_now();
        }
        calls
    }
}
