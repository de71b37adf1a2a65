//! Reads an image of the device, as somebody would see it.

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};

use crate::device::Device;
use crate::functions::{Functions, driver};
use crate::instance::out;
use crate::perform::Performer;
use crate::present::{Swapchain, check};
use crate::replay::lock;

/// Pixels as one sees them: red, green, blue and alpha, a byte each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub rgba: Vec<u8>,
}

/// How the bytes of a texel become a pixel.
#[derive(Clone, Copy)]
enum Order {
    Rgba,
    Bgra,
    /// Ten bits each, red lowest.
    Rgb10,
    /// Ten bits each, blue lowest.
    Bgr10,
    Half,
}

fn order_of(format: vk::Format) -> Option<(Order, usize)> {
    Some(match format {
        vk::Format::R8G8B8A8_UNORM | vk::Format::R8G8B8A8_SRGB | vk::Format::A8B8G8R8_UNORM_PACK32 => (Order::Rgba, 4),
        vk::Format::A8B8G8R8_SRGB_PACK32 => (Order::Rgba, 4),
        vk::Format::B8G8R8A8_UNORM | vk::Format::B8G8R8A8_SRGB => (Order::Bgra, 4),
        vk::Format::A2B10G10R10_UNORM_PACK32 => (Order::Rgb10, 4),
        vk::Format::A2R10G10B10_UNORM_PACK32 => (Order::Bgr10, 4),
        vk::Format::R16G16B16A16_SFLOAT => (Order::Half, 8),
        _ => return None,
    })
}

impl Performer<'_> {
    /// What an image holds that was just presented. Nothing may be under way on its queue.
    pub(crate) fn read(&self, swapchain: &Swapchain, image: vk::Image) -> Result<Picture, String> {
        let format = swapchain.format();
        let (order, size) = order_of(format).ok_or_else(|| format!("format {} cannot be shown", format.0))?;
        let extent = swapchain.extent();
        let (width, height) = (extent.width, extent.height);
        let room = u64::from(width) * u64::from(height) * size as u64;
        let staging = Staging::new(&swapchain.device, room)?;
        staging.copy(image, extent, |run| {
            let queue = self.replay.queue_lock(swapchain.device.queue.0);
            let _guard = lock(&queue);
            run();
        })?;
        let bytes = staging.bytes()?;
        let rgba = bytes.chunks_exact(size).flat_map(|it| pixel(order, it)).collect();
        Ok(Picture { width, height, rgba })
    }
}

fn pixel(order: Order, it: &[u8]) -> [u8; 4] {
    let word = || u32::from_le_bytes([it[0], it[1], it[2], it[3]]);
    let ten = |shift: u32| (word() >> (shift + 2)) as u8;
    let half = |at: usize| half_to_byte(u16::from_le_bytes([it[at], it[at + 1]]));
    match order {
        Order::Rgba => [it[0], it[1], it[2], it[3]],
        Order::Bgra => [it[2], it[1], it[0], it[3]],
        Order::Rgb10 => [ten(0), ten(10), ten(20), 255],
        Order::Bgr10 => [ten(20), ten(10), ten(0), 255],
        Order::Half => [half(0), half(2), half(4), half(6)],
    }
}

/// Half a float between 0 and 1 as a byte; what is outside is cut.
fn half_to_byte(bits: u16) -> u8 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction / 1024.0 * 2f32.powi(-14),
        exponent => (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    };
    if bits >> 15 == 1 { 0 } else { (magnitude.min(1.0) * 255.0).round() as u8 }
}

/// A buffer that the host can read, and a command buffer to fill it.
struct Staging<'a> {
    device: &'a Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    pool: vk::CommandPool,
    size: u64,
}

impl<'a> Staging<'a> {
    fn new(device: &'a Device, size: u64) -> Result<Staging<'a>, String> {
        let mut it =
            Staging { device, buffer: vk::Buffer(0), memory: vk::DeviceMemory(0), pool: vk::CommandPool(0), size };
        let (functions, handle) = (&device.functions, device.handle);
        let info =
            vk::BufferCreateInfo { size, usage: vk::BufferUsageFlags::TRANSFER_DST, ..vk::BufferCreateInfo::zeroed() };
        let made =
            driver!(functions, CreateBuffer, FnCreateBuffer(handle, Ptr::to(&info), Ptr::NULL, out(&mut it.buffer)));
        check("a buffer for a screenshot", made)?;
        let mut needs = vk::MemoryRequirements::zeroed();
        driver!(
            functions,
            GetBufferMemoryRequirements,
            FnGetBufferMemoryRequirements(handle, it.buffer, out(&mut needs))
        );
        let host = vk::MemoryPropertyFlags::HOST_VISIBLE.0 | vk::MemoryPropertyFlags::HOST_COHERENT.0;
        let ty = device.find_memory(needs.memory_type_bits, host).ok_or("no memory that the host can read")?;
        let info = vk::MemoryAllocateInfo {
            allocation_size: needs.size,
            memory_type_index: ty,
            ..vk::MemoryAllocateInfo::zeroed()
        };
        let made = driver!(
            functions,
            AllocateMemory,
            FnAllocateMemory(handle, Ptr::to(&info), Ptr::NULL, out(&mut it.memory))
        );
        check("memory for a screenshot", made)?;
        check("a buffer", driver!(functions, BindBufferMemory, FnBindBufferMemory(handle, it.buffer, it.memory, 0)))?;
        let info =
            vk::CommandPoolCreateInfo { queue_family_index: device.family, ..vk::CommandPoolCreateInfo::zeroed() };
        let made = driver!(
            functions,
            CreateCommandPool,
            FnCreateCommandPool(handle, Ptr::to(&info), Ptr::NULL, out(&mut it.pool))
        );
        check("a command pool", made)?;
        Ok(it)
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
        let region = vk::BufferImageCopy {
            image_subresource: vk::ImageSubresourceLayers {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                layer_count: 1,
                ..vk::ImageSubresourceLayers::zeroed()
            },
            image_extent: vk::Extent3D { width: extent.width, height: extent.height, depth: 1 },
            ..vk::BufferImageCopy::zeroed()
        };
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
        // SAFETY: mapped, as large as the buffer, and the copy is over.
        Ok(unsafe { std::slice::from_raw_parts(data.cast::<u8>().as_ptr(), self.size as usize) }.to_vec())
    }
}

/// Changes the layout of an image, after all that was done and before all that comes.
pub(crate) fn transition(
    functions: &Functions,
    commands: vk::CommandBuffer,
    image: vk::Image,
    (from, to): (vk::ImageLayout, vk::ImageLayout),
) {
    let all = vk::AccessFlags(vk::AccessFlags::MEMORY_READ.0 | vk::AccessFlags::MEMORY_WRITE.0);
    let barrier = vk::ImageMemoryBarrier {
        src_access_mask: all,
        dst_access_mask: all,
        old_layout: from,
        new_layout: to,
        src_queue_family_index: vk::QUEUE_FAMILY_IGNORED,
        dst_queue_family_index: vk::QUEUE_FAMILY_IGNORED,
        image,
        subresource_range: vk::ImageSubresourceRange {
            aspect_mask: vk::ImageAspectFlags::COLOR,
            level_count: vk::REMAINING_MIP_LEVELS,
            layer_count: vk::REMAINING_ARRAY_LAYERS,
            ..vk::ImageSubresourceRange::zeroed()
        },
        ..vk::ImageMemoryBarrier::zeroed()
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texels_become_pixels() {
        assert_eq!(pixel(Order::Bgra, &[1, 2, 3, 4]), [3, 2, 1, 4]);
        assert_eq!(pixel(Order::Half, &[0, 0x3c, 0, 0x38, 0, 0, 0, 0xbc]), [255, 128, 0, 0]);
        let word = (1023u32 | 512 << 10 | 3 << 30).to_le_bytes();
        assert_eq!(pixel(Order::Rgb10, &word), [255, 128, 0, 255]);
    }
}
