//! Reads an image of the device as a picture.

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_picture::{Picture, TexelFormat, copy_region};

use crate::call::functions::{Functions, driver};
use crate::call::perform::Performer;
use crate::port::device::ReplayDevice;
use crate::port::instance::out;
use crate::present::virtual_swapchain::{VirtualSwapchain, check};
use crate::replay::lock;

impl Performer<'_> {
    /// The contents of an image that was just presented. Nothing may be pending on its queue.
    pub(crate) fn read_image(&self, swapchain: &VirtualSwapchain, image: vk::Image) -> Result<Picture, String> {
        let format = swapchain.format();
        let texels = TexelFormat::of(format).ok_or_else(|| format!("format {} cannot be shown", format.0))?;
        let extent = swapchain.extent();
        let staging = Staging::new(&swapchain.device, texels.bytes(extent))?;
        staging.copy(image, extent, |run| {
            let queue = self.replay.queue_lock(swapchain.device.queue.0);
            let _guard = lock(&queue);
            run();
        })?;
        Ok(texels.picture(extent, &staging.bytes()?))
    }
}

/// A buffer that the host can read, and a command buffer to fill it.
struct Staging<'a> {
    device: &'a ReplayDevice,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    pool: vk::CommandPool,
    size: u64,
}

impl<'a> Staging<'a> {
    fn new(device: &'a ReplayDevice, size: u64) -> Result<Staging<'a>, String> {
        let mut staging =
            Staging { device, buffer: vk::Buffer(0), memory: vk::DeviceMemory(0), pool: vk::CommandPool(0), size };
        let (functions, handle) = (&device.functions, device.handle);
        let info =
            vk::BufferCreateInfo { size, usage: vk::BufferUsageFlags::TRANSFER_DST, ..vk::BufferCreateInfo::zeroed() };
        let made = driver!(
            functions,
            CreateBuffer,
            FnCreateBuffer(handle, Ptr::to(&info), Ptr::NULL, out(&mut staging.buffer))
        );
        check("a buffer for a screenshot", made)?;
        let mut needs = vk::MemoryRequirements::zeroed();
        driver!(
            functions,
            GetBufferMemoryRequirements,
            FnGetBufferMemoryRequirements(handle, staging.buffer, out(&mut needs))
        );
        let host = vk::MemoryPropertyFlags::HOST_VISIBLE.0 | vk::MemoryPropertyFlags::HOST_COHERENT.0;
        let ty = device.find_memory_type(needs.memory_type_bits, host).ok_or("no memory that the host can read")?;
        let info = vk::MemoryAllocateInfo {
            allocation_size: needs.size,
            memory_type_index: ty,
            ..vk::MemoryAllocateInfo::zeroed()
        };
        let made = driver!(
            functions,
            AllocateMemory,
            FnAllocateMemory(handle, Ptr::to(&info), Ptr::NULL, out(&mut staging.memory))
        );
        check("memory for a screenshot", made)?;
        check(
            "a buffer",
            driver!(functions, BindBufferMemory, FnBindBufferMemory(handle, staging.buffer, staging.memory, 0)),
        )?;
        let info =
            vk::CommandPoolCreateInfo { queue_family_index: device.family, ..vk::CommandPoolCreateInfo::zeroed() };
        let made = driver!(
            functions,
            CreateCommandPool,
            FnCreateCommandPool(handle, Ptr::to(&info), Ptr::NULL, out(&mut staging.pool))
        );
        check("a command pool", made)?;
        Ok(staging)
    }

    /// Copies an image that is ready to be presented, and puts it back as it was.
    fn copy(&self, image: vk::Image, extent: vk::Extent2D, guarded: impl FnOnce(&dyn Fn())) -> Result<(), String> {
        let (functions, handle) = (&self.device.functions, self.device.handle);
        let info = vk::CommandBufferAllocateInfo {
            command_pool: self.pool,
            command_buffer_count: 1,
            ..vk::CommandBufferAllocateInfo::zeroed()
        };
        let mut commands = vk::CommandBuffer(0);
        let made = driver!(
            functions,
            AllocateCommandBuffers,
            FnAllocateCommandBuffers(handle, Ptr::to(&info), out(&mut commands))
        );
        check("a command buffer", made)?;
        let begin = vk::CommandBufferBeginInfo::zeroed();
        driver!(functions, BeginCommandBuffer, FnBeginCommandBuffer(commands, Ptr::to(&begin)));
        let (presented, readable) = (vk::ImageLayout::PRESENT_SRC_KHR, vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
        transition(functions, commands, image, (presented, readable));
        let region = copy_region(extent);
        driver!(
            functions,
            CmdCopyImageToBuffer,
            FnCmdCopyImageToBuffer(commands, image, readable, self.buffer, 1, Ptr::to(&region))
        );
        transition(functions, commands, image, (readable, presented));
        driver!(functions, EndCommandBuffer, FnEndCommandBuffer(commands));
        let buffers = [commands];
        let submit = vk::SubmitInfo {
            command_buffer_count: 1,
            p_command_buffers: Ptr::to_slice(&buffers),
            ..vk::SubmitInfo::zeroed()
        };
        let queue = self.device.queue;
        guarded(&|| {
            driver!(functions, QueueSubmit, FnQueueSubmit(queue, 1, Ptr::to(&submit), vk::Fence(0)));
            driver!(functions, QueueWaitIdle, FnQueueWaitIdle(queue));
        });
        Ok(())
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        let (functions, handle) = (&self.device.functions, self.device.handle);
        let mut data = Ptr::<vk::Opaque>::NULL;
        let mapped = driver!(
            functions,
            MapMemory,
            FnMapMemory(handle, self.memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags(0), out(&mut data).cast())
        );
        check("a view of a screenshot", mapped)?;
        // SAFETY: the memory is mapped whole, was made for the buffer of `size` bytes, and `copy` waited until the
        // queue was idle, so that nobody writes it.
        Ok(unsafe { std::slice::from_raw_parts(data.cast::<u8>().as_ptr(), self.size as usize) }.to_vec())
    }
}

/// Changes the layout of an image, after all earlier commands and before all later ones.
pub(crate) fn transition(
    functions: &Functions,
    commands: vk::CommandBuffer,
    image: vk::Image,
    layouts: (vk::ImageLayout, vk::ImageLayout),
) {
    let barrier = lavascope_picture::layout_barrier(image, layouts);
    let stages = vk::PipelineStageFlags::ALL_COMMANDS;
    driver!(
        functions,
        CmdPipelineBarrier,
        FnCmdPipelineBarrier(
            commands,
            stages,
            stages,
            vk::DependencyFlags(0),
            0,
            Ptr::NULL,
            0,
            Ptr::NULL,
            1,
            Ptr::to(&barrier)
        )
    );
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        let (functions, handle) = (&self.device.functions, self.device.handle);
        driver!(functions, DestroyCommandPool, FnDestroyCommandPool(handle, self.pool, Ptr::NULL));
        driver!(functions, DestroyBuffer, FnDestroyBuffer(handle, self.buffer, Ptr::NULL));
        driver!(functions, FreeMemory, FnFreeMemory(handle, self.memory, Ptr::NULL));
    }
}
