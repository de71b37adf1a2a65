//! An instance, a device and queues, made as an application would, and the functions found by name.

use std::ffi::CString;

use lavascope_abi::*;

use crate::capabilities::settings::{DriverSettings, Execute, for_tests};
use crate::{vk_icdGetInstanceProcAddr, vk_icdNegotiateLoaderICDInterfaceVersion};

/// Where a command writes to.
pub(crate) fn out<T>(place: &mut T) -> Ptr<T> {
    Ptr::new(std::ptr::from_mut(place).expose_provenance() as u64)
}

/// The address of a function of an instance.
pub(crate) fn instance_function(instance: Instance, name: &str) -> FnPtr {
    let name = CString::new(name).unwrap_or_default();
    let address = Ptr::new(name.as_ptr().expose_provenance() as u64);
    // SAFETY: the instance is null or the test's, which is alive, and `name` ends with a zero and lives here.
    let found = unsafe { vk_icdGetInstanceProcAddr(instance, address) };
    assert_ne!(found.0, 0, "{name:?} is missing");
    found
}

/// Calls a command by the name of its Rust type.
macro_rules! vk {
    ($ty:ident($instance:expr; $($argument:expr),* $(,)?)) => {{
        let name = concat!("vk", stringify!($ty)).replacen("vkFn", "vk", 1);
        let function = crate::tests::test_device::instance_function($instance, &name);
        // SAFETY: `FnX` is the type of the command `vkX`, and the name was made of it.
        let function = unsafe { std::mem::transmute::<FnPtr, $ty>(function) };
        // SAFETY: tests pass handles of their `TestDevice`, which destroys them at its end, and pointers to their own values
        // that live until the call returns, with as many elements as they say.
        unsafe { function($($argument),*) }
    }};
}
pub(crate) use vk;

/// Common objects of tests. Everything is destroyed at the end.
pub(crate) struct TestDevice {
    pub(crate) instance: Instance,
    pub(crate) physical: PhysicalDevice,
    pub(crate) device: Device,
    /// The first queue of each family.
    pub(crate) queues: Vec<Queue>,
    pub(crate) pool: CommandPool,
}

impl TestDevice {
    pub(crate) fn new() -> TestDevice {
        TestDevice::with(DriverSettings::new())
    }

    pub(crate) fn executing() -> TestDevice {
        TestDevice::with(DriverSettings { execute: Execute::Transfer, ..DriverSettings::new() })
    }

    pub(crate) fn with(settings: DriverSettings) -> TestDevice {
        for_tests::set(Some(settings));
        let mut version = 5;
        // SAFETY: `version` is a number of this stack frame.
        let result = unsafe { vk_icdNegotiateLoaderICDInterfaceVersion(&mut version) };
        assert_eq!((result, version), (Result::SUCCESS, 5));
        let (info, mut instance) = (InstanceCreateInfo::zeroed(), Instance(0));
        let result = vk!(FnCreateInstance(Instance(0); Ptr::to(&info), Ptr::NULL, out(&mut instance)));
        assert_eq!(result, Result::SUCCESS);
        let (mut count, mut physical) = (1u32, PhysicalDevice(0));
        let result = vk!(FnEnumeratePhysicalDevices(instance; instance, out(&mut count), out(&mut physical)));
        assert_eq!((result, count), (Result::SUCCESS, 1));
        let device = create_device(instance, physical);
        let queues = (0..7)
            .map(|family| {
                let mut queue = Queue(0);
                vk!(FnGetDeviceQueue(instance; device, family, 0, out(&mut queue)));
                assert_ne!(queue.0, 0);
                queue
            })
            .collect();
        let (info, mut pool) = (CommandPoolCreateInfo::zeroed(), CommandPool(0));
        vk!(FnCreateCommandPool(instance; device, Ptr::to(&info), Ptr::NULL, out(&mut pool)));
        TestDevice { instance, physical, device, queues, pool }
    }

    pub(crate) fn command_buffer(&self, level: CommandBufferLevel) -> CommandBuffer {
        let mut info = CommandBufferAllocateInfo::zeroed();
        info.command_pool = self.pool;
        info.level = level;
        info.command_buffer_count = 1;
        let mut buffer = CommandBuffer(0);
        let result = vk!(FnAllocateCommandBuffers(self.instance; self.device, Ptr::to(&info), out(&mut buffer)));
        assert_eq!(result, Result::SUCCESS);
        let begin = CommandBufferBeginInfo::zeroed();
        assert_eq!(vk!(FnBeginCommandBuffer(self.instance; buffer, Ptr::to(&begin))), Result::SUCCESS);
        buffer
    }

    /// A buffer with memory of its own, and where that is mapped.
    pub(crate) fn buffer(&self, size: u64) -> MappedBuffer {
        let mut info = BufferCreateInfo::zeroed();
        info.size = size;
        let mut buffer = Buffer(0);
        vk!(FnCreateBuffer(self.instance; self.device, Ptr::to(&info), Ptr::NULL, out(&mut buffer)));
        let mut needs = MemoryRequirements::zeroed();
        vk!(FnGetBufferMemoryRequirements(self.instance; self.device, buffer, out(&mut needs)));
        let memory = self.memory(needs.size);
        let result = vk!(FnBindBufferMemory(self.instance; self.device, buffer, memory, 0));
        assert_eq!(result, Result::SUCCESS);
        MappedBuffer { buffer, memory, bytes: self.map(memory), size: size as usize }
    }

    pub(crate) fn memory(&self, size: u64) -> DeviceMemory {
        let mut info = MemoryAllocateInfo::zeroed();
        info.allocation_size = size;
        info.memory_type_index = 1;
        let mut memory = DeviceMemory(0);
        let result = vk!(FnAllocateMemory(self.instance; self.device, Ptr::to(&info), Ptr::NULL, out(&mut memory)));
        assert_eq!(result, Result::SUCCESS);
        memory
    }

    pub(crate) fn map(&self, memory: DeviceMemory) -> *mut u8 {
        let mut place = Ptr::<Opaque>::NULL;
        let flags = MemoryMapFlags(0);
        let to = out(&mut place).cast();
        let result = vk!(FnMapMemory(self.instance; self.device, memory, 0, WHOLE_SIZE, flags, to));
        assert_eq!(result, Result::SUCCESS);
        place.cast::<u8>().as_mut_ptr()
    }

    pub(crate) fn semaphore(&self, timeline: Option<u64>) -> Semaphore {
        let mut ty = SemaphoreTypeCreateInfo::zeroed();
        ty.semaphore_type = SemaphoreType::TIMELINE;
        ty.initial_value = timeline.unwrap_or_default();
        let mut info = SemaphoreCreateInfo::zeroed();
        if timeline.is_some() {
            info.p_next = Ptr::to(&ty).cast();
        }
        let mut semaphore = Semaphore(0);
        vk!(FnCreateSemaphore(self.instance; self.device, Ptr::to(&info), Ptr::NULL, out(&mut semaphore)));
        semaphore
    }

    pub(crate) fn fence(&self) -> Fence {
        let (info, mut fence) = (FenceCreateInfo::zeroed(), Fence(0));
        vk!(FnCreateFence(self.instance; self.device, Ptr::to(&info), Ptr::NULL, out(&mut fence)));
        fence
    }

    pub(crate) fn fence_status(&self, fence: Fence) -> Result {
        vk!(FnGetFenceStatus(self.instance; self.device, fence))
    }

    pub(crate) fn counter(&self, semaphore: Semaphore) -> u64 {
        let mut value = 0u64;
        vk!(FnGetSemaphoreCounterValue(self.instance; self.device, semaphore, out(&mut value)));
        value
    }

    /// Submits with one point to wait for and one to signal, where they are not null.
    pub(crate) fn submit(
        &self,
        queue: Queue,
        wait: (Semaphore, u64),
        buffers: &[CommandBuffer],
        signal: (Semaphore, u64),
        fence: Fence,
    ) {
        let point = |(semaphore, value)| {
            let mut info = SemaphoreSubmitInfo::zeroed();
            info.semaphore = semaphore;
            info.value = value;
            info
        };
        let buffers: Vec<CommandBufferSubmitInfo> = buffers
            .iter()
            .map(|buffer| {
                let mut info = CommandBufferSubmitInfo::zeroed();
                info.command_buffer = *buffer;
                info
            })
            .collect();
        let (wait_info, signal_info) = (point(wait), point(signal));
        let mut info = SubmitInfo2::zeroed();
        info.wait_semaphore_info_count = u32::from(wait.0.0 != 0);
        info.p_wait_semaphore_infos = Ptr::to(&wait_info);
        info.signal_semaphore_info_count = u32::from(signal.0.0 != 0);
        info.p_signal_semaphore_infos = Ptr::to(&signal_info);
        info.command_buffer_info_count = buffers.len() as u32;
        info.p_command_buffer_infos = Ptr::to_slice(&buffers);
        let result = vk!(FnQueueSubmit2(self.instance; queue, 1, Ptr::to(&info), fence));
        assert_eq!(result, Result::SUCCESS);
    }

    pub(crate) fn run(&self, buffer: CommandBuffer) {
        self.submit(self.queues[0], NO_SEMAPHORE, &[buffer], NO_SEMAPHORE, Fence(0));
    }
}

pub(crate) const NO_SEMAPHORE: (Semaphore, u64) = (Semaphore(0), 0);

pub(crate) struct MappedBuffer {
    pub(crate) buffer: Buffer,
    pub(crate) memory: DeviceMemory,
    bytes: *mut u8,
    size: usize,
}

impl MappedBuffer {
    pub(crate) fn read(&self) -> Vec<u8> {
        // SAFETY: `bytes` is a mapping of `size` bytes that lives as long as the world, and no other thread uses it.
        unsafe { std::slice::from_raw_parts(self.bytes, self.size) }.to_vec()
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.size);
        // SAFETY: `bytes` is a mapping of `size` bytes that lives as long as the world, and no other thread uses it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes, bytes.len()) };
    }
}

fn create_device(instance: Instance, physical: PhysicalDevice) -> Device {
    let priorities = [1.0f32; 4];
    let families: Vec<DeviceQueueCreateInfo> = (0..7)
        .map(|family| {
            let mut info = DeviceQueueCreateInfo::zeroed();
            info.queue_family_index = family;
            info.queue_count = 4;
            info.p_queue_priorities = Ptr::to(&priorities[0]);
            info
        })
        .collect();
    let mut info = DeviceCreateInfo::zeroed();
    info.queue_create_info_count = families.len() as u32;
    info.p_queue_create_infos = Ptr::to_slice(&families);
    let mut device = Device(0);
    let result = vk!(FnCreateDevice(instance; physical, Ptr::to(&info), Ptr::NULL, out(&mut device)));
    assert_eq!(result, Result::SUCCESS);
    device
}

impl Drop for TestDevice {
    fn drop(&mut self) {
        vk!(FnDestroyCommandPool(self.instance; self.device, self.pool, Ptr::NULL));
        vk!(FnDestroyDevice(self.instance; self.device, Ptr::NULL));
        vk!(FnDestroyInstance(self.instance; self.instance, Ptr::NULL));
        for_tests::set(None);
    }
}
