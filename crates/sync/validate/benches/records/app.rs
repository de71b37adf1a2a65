//! An application in C memory: its calls become records.

use lavascope_abi::*;
use lavascope_marshal::{Packer, RecordBuffer, outputs_image};
use lavascope_record::{Record, check};
use lavascope_sim::SyntheticObjects;

macro_rules! handles {
    ($($name:ident, $ty:ident;)*) => { $(
        pub(crate) fn $name(serial: u64) -> $ty {
            $ty(SyntheticObjects::handle_of(HandleType::$ty, serial))
        }
    )* };
}

handles! {
    device, Device;
    physical_device, PhysicalDevice;
    queue, Queue;
    memory, DeviceMemory;
    buffer, Buffer;
    image, Image;
    image_view, ImageView;
    command_pool, CommandPool;
    command_buffer, CommandBuffer;
    pipeline, Pipeline;
    pipeline_layout, PipelineLayout;
    shader_module, ShaderModule;
    set_layout, DescriptorSetLayout;
    descriptor_pool, DescriptorPool;
    descriptor_set, DescriptorSet;
    render_pass, RenderPass;
    fence, Fence;
}

/// The one that is recorded, unless somebody says otherwise. Its number is even: a primary one.
pub(crate) const PRIMARY: u64 = 2;
pub(crate) const BUFFER_SIZE: u64 = 4096;
const EXTENT: [u32; 2] = [1920, 1080];

/// Records of calls, in their order.
#[derive(Default)]
pub(crate) struct RecordedApp {
    calls: u64,
    pub(crate) records: Vec<Record<'static>>,
    /// The command buffer that is recorded, if it is not [`PRIMARY`].
    pub(crate) other: Option<u64>,
}

impl RecordedApp {
    /// Makes a call that succeeds.
    pub(crate) fn call<P: Structure>(&mut self, command: Command, params: &P) {
        self.call_returning(command, params, 0);
    }

    /// Makes a call that returns this.
    pub(crate) fn call_returning<P: Structure>(&mut self, command: Command, params: &P, result: u64) {
        let desc = command.desc();
        assert!(std::ptr::eq(desc.parameters, P::layout()), "the parameters are of another command");
        self.calls += 1;
        let params: *const u8 = std::ptr::from_ref(params).cast();
        let mut packer = Packer::new(&SyntheticObjects, &SyntheticObjects);
        let mut stream = RecordBuffer::default();
        // SAFETY: the parameters are of this command, and what they lead to is alive in the caller.
        self.add(unsafe { packer.pack_parameters(&mut stream, command, params, self.calls) }.to_vec());
        let (mut image, mut stream) = (Vec::new(), RecordBuffer::default());
        // SAFETY: the parameters are of this command, which returned what it is said to return.
        if unsafe { outputs_image(desc, params, result, &mut image) }
            // SAFETY: the parameters are of this command, and what they lead to is alive in the caller.
            && let Some(words) = unsafe { packer.pack_outputs(&mut stream, command, image.as_ptr().cast(), self.calls) }
        {
            self.add(words.to_vec());
        }
    }

    pub(crate) fn commands(&self) -> CommandBuffer {
        command_buffer(self.other.unwrap_or(PRIMARY))
    }

    fn add(&mut self, words: Vec<u64>) {
        self.records.push(check(words.leak()).expect("a record"));
    }

    /// A device with a queue, a memory, a command pool and a command buffer.
    pub(crate) fn make_device(&mut self) {
        let queues = DeviceQueueCreateInfo {
            queue_count: 1,
            p_queue_priorities: Ptr::to(&1.0),
            ..DeviceQueueCreateInfo::zeroed()
        };
        let info = DeviceCreateInfo {
            queue_create_info_count: 1,
            p_queue_create_infos: Ptr::to(&queues),
            ..DeviceCreateInfo::zeroed()
        };
        self.call(
            Command::CreateDevice,
            &CreateDeviceParams {
                physical_device: physical_device(1),
                p_create_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_device: Ptr::to(&device(1)),
            },
        );
        self.call(
            Command::GetDeviceQueue,
            &GetDeviceQueueParams {
                device: device(1),
                queue_family_index: 0,
                queue_index: 0,
                p_queue: Ptr::to(&queue(1)),
            },
        );
        let info = MemoryAllocateInfo { allocation_size: 1 << 40, ..MemoryAllocateInfo::zeroed() };
        self.call(
            Command::AllocateMemory,
            &AllocateMemoryParams {
                device: device(1),
                p_allocate_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_memory: Ptr::to(&memory(1)),
            },
        );
        self.call(
            Command::CreateCommandPool,
            &CreateCommandPoolParams {
                device: device(1),
                p_create_info: Ptr::to(&CommandPoolCreateInfo::zeroed()),
                p_allocator: Ptr::NULL,
                p_command_pool: Ptr::to(&command_pool(1)),
            },
        );
        self.make_command_buffer();
        self.make_fence();
    }

    pub(crate) fn make_command_buffer(&mut self) {
        let info = CommandBufferAllocateInfo {
            command_pool: command_pool(1),
            command_buffer_count: 1,
            ..CommandBufferAllocateInfo::zeroed()
        };
        self.call(
            Command::AllocateCommandBuffers,
            &AllocateCommandBuffersParams {
                device: device(1),
                p_allocate_info: Ptr::to(&info),
                p_command_buffers: Ptr::to(&self.commands()),
            },
        );
    }

    fn make_fence(&mut self) {
        self.call(
            Command::CreateFence,
            &CreateFenceParams {
                device: device(1),
                p_create_info: Ptr::to(&FenceCreateInfo::zeroed()),
                p_allocator: Ptr::NULL,
                p_fence: Ptr::to(&fence(1)),
            },
        );
    }

    pub(crate) fn make_buffer(&mut self, serial: u64) {
        self.make_buffer_at(serial, serial * BUFFER_SIZE);
    }

    pub(crate) fn make_buffer_at(&mut self, serial: u64, memory_offset: u64) {
        let info = BufferCreateInfo { size: BUFFER_SIZE, ..BufferCreateInfo::zeroed() };
        self.call(
            Command::CreateBuffer,
            &CreateBufferParams {
                device: device(1),
                p_create_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_buffer: Ptr::to(&buffer(serial)),
            },
        );
        self.call(
            Command::BindBufferMemory,
            &BindBufferMemoryParams { device: device(1), buffer: buffer(serial), memory: memory(1), memory_offset },
        );
    }

    /// An image with two dimensions, and a view of all of it with the same serial number.
    pub(crate) fn make_image(&mut self, serial: u64, format: Format, aspect_mask: ImageAspectFlags) {
        let info = ImageCreateInfo {
            image_type: ImageType::_2D,
            format,
            extent: Extent3D { width: EXTENT[0], height: EXTENT[1], depth: 1 },
            mip_levels: 1,
            array_layers: 1,
            ..ImageCreateInfo::zeroed()
        };
        self.call(
            Command::CreateImage,
            &CreateImageParams {
                device: device(1),
                p_create_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_image: Ptr::to(&image(serial)),
            },
        );
        let memory_offset = (1 << 30) * (1 + serial);
        self.call(
            Command::BindImageMemory,
            &BindImageMemoryParams { device: device(1), image: image(serial), memory: memory(1), memory_offset },
        );
        let subresource_range = ImageSubresourceRange {
            aspect_mask,
            base_mip_level: 0,
            level_count: 1,
            base_array_layer: 0,
            layer_count: 1,
        };
        let info = ImageViewCreateInfo {
            image: image(serial),
            view_type: ImageViewType::_2D,
            format,
            subresource_range,
            ..ImageViewCreateInfo::zeroed()
        };
        self.call(
            Command::CreateImageView,
            &CreateImageViewParams {
                device: device(1),
                p_create_info: Ptr::to(&info),
                p_allocator: Ptr::NULL,
                p_view: Ptr::to(&image_view(serial)),
            },
        );
    }

    pub(crate) fn begin(&mut self) {
        self.call(
            Command::BeginCommandBuffer,
            &BeginCommandBufferParams {
                command_buffer: self.commands(),
                p_begin_info: Ptr::to(&CommandBufferBeginInfo::zeroed()),
            },
        );
    }

    /// Ends the command buffer, submits it, and waits for it.
    pub(crate) fn end(&mut self) {
        let (commands, own) = (self.commands(), fence(1));
        self.call(Command::EndCommandBuffer, &EndCommandBufferParams { command_buffer: commands });
        let info =
            SubmitInfo { command_buffer_count: 1, p_command_buffers: Ptr::to(&commands), ..SubmitInfo::zeroed() };
        self.call(
            Command::QueueSubmit,
            &QueueSubmitParams { queue: queue(1), submit_count: 1, p_submits: Ptr::to(&info), fence: own },
        );
        let (device, p_fences) = (device(1), Ptr::to(&own));
        self.call(
            Command::WaitForFences,
            &WaitForFencesParams { device, fence_count: 1, p_fences, wait_all: Bool32(1), timeout: u64::MAX },
        );
        self.call(Command::ResetFences, &ResetFencesParams { device, fence_count: 1, p_fences });
    }

    pub(crate) fn barrier(&mut self, src: (PipelineStageFlags, AccessFlags), dst: (PipelineStageFlags, AccessFlags)) {
        let barrier = MemoryBarrier { src_access_mask: src.1, dst_access_mask: dst.1, ..MemoryBarrier::zeroed() };
        self.call(
            Command::CmdPipelineBarrier,
            &CmdPipelineBarrierParams {
                command_buffer: self.commands(),
                src_stage_mask: src.0,
                dst_stage_mask: dst.0,
                memory_barrier_count: 1,
                p_memory_barriers: Ptr::to(&barrier),
                ..CmdPipelineBarrierParams::zeroed()
            },
        );
    }
}
