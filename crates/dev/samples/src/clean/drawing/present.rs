//! A swapchain: acquire, clear, present, with two frames in flight. On a headless surface if the driver has such,
//! otherwise in a window.

use std::ops::Range;

use ash::vk;

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Gpu, MemoryPlacement, SampleImage, Screen, XcbWindow, scope};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "present",
    about: "Clears and presents the images of a swapchain, on a headless surface or in an X window.",
    run,
};

pub(crate) const RECREATED: Sample = Sample {
    name: "present-recreated",
    about: "Presents like the sample present, and makes surface and swapchain anew after half of the frames.",
    run: run_recreated,
};

const IN_FLIGHT: usize = 2;

fn run(options: &SampleOptions) -> Result<(), Failure> {
    run_swapchains(options, 1)
}

fn run_recreated(options: &SampleOptions) -> Result<(), Failure> {
    run_swapchains(options, 2)
}

/// The frames are shared out among so many swapchains, one after the other.
fn run_swapchains(options: &SampleOptions, count: u32) -> Result<(), Failure> {
    let window = XcbWindow::if_needed()?;
    let gpu = Screen::gpu(window.as_ref())?;
    let frame_count = options.frames.unwrap_or(6);
    for at in 0..count {
        let screen = Screen::new(&gpu, window.as_ref())?;
        let numbers = frame_count * at / count..frame_count * (at + 1) / count;
        run_frames(&gpu, &screen, options, numbers)?;
    }
    Ok(())
}

fn run_frames(gpu: &Gpu, screen: &Screen, options: &SampleOptions, numbers: Range<u32>) -> Result<(), Failure> {
    let mut frames = (0..IN_FLIGHT).map(|_| FrameInFlight::new(gpu, screen)).collect::<Result<Vec<_>, Failure>>()?;
    for number in numbers {
        let frame = &mut frames[number as usize % IN_FLIGHT];
        frame.finish(gpu, screen, options)?;
        frame.draw(gpu, screen, number)?;
    }
    frames.iter_mut().try_for_each(|it| it.finish(gpu, screen, options))
}

/// The color of a frame, as the bytes of a texel.
fn color(number: u32) -> [u8; 4] {
    [(number * 40 % 256) as u8, 255 - (number * 20 % 256) as u8, 128, 255]
}

/// The objects of one frame in flight.
struct FrameInFlight {
    pool: vk::CommandPool,
    commands: vk::CommandBuffer,
    acquired: vk::Semaphore,
    fence: vk::Fence,
    copy: Buffer,
    /// The frame that is on its way.
    number: Option<u32>,
}

impl FrameInFlight {
    fn new(gpu: &Gpu, screen: &Screen) -> Result<FrameInFlight, Failure> {
        let pool = gpu.command_pool(gpu.main)?;
        let extent = screen.images.first().map(|it| it.extent).unwrap_or_default();
        let size = u64::from(extent.width * extent.height * 4).max(4);
        Ok(FrameInFlight {
            pool,
            commands: gpu.command_buffer(pool, vk::CommandBufferLevel::PRIMARY)?,
            acquired: gpu.semaphore("acquired")?,
            fence: gpu.fence(vk::FenceCreateFlags::empty())?,
            copy: gpu.buffer("copy of the frame", size, vk::BufferUsageFlags::TRANSFER_DST, MemoryPlacement::Host)?,
            number: None,
        })
    }

    /// Waits for the pending frame, if any, and checks it.
    fn finish(&mut self, gpu: &Gpu, screen: &Screen, options: &SampleOptions) -> Result<(), Failure> {
        let Some(number) = self.number.take() else { return Ok(()) };
        gpu.wait(self.fence)?;
        // SAFETY: the fence of the last use was waited for, and all are this thread's (lifetime, owner).
        unsafe {
            gpu.device.reset_fences(&[self.fence])?;
            gpu.device.reset_command_pool(self.pool, vk::CommandPoolResetFlags::empty())?;
        }
        if !screen.is_readable {
            return Ok(());
        }
        let words = gpu.read(&self.copy)?;
        options.check.words(&format!("frame {number}"), &words, &vec![screen.texel(color(number)); words.len()])
    }

    fn draw(&mut self, gpu: &Gpu, screen: &Screen, number: u32) -> Result<(), Failure> {
        let forever = u64::MAX;
        // SAFETY: the semaphore's last wait was in the submission whose fence was waited for (lifetime, owner).
        let (index, _) = unsafe {
            screen.swapchains.acquire_next_image(screen.swapchain, forever, self.acquired, vk::Fence::null())?
        };
        let (Some(image), Some(drawn)) = (screen.images.get(index as usize), screen.drawn.get(index as usize)) else {
            return Err(Failure::Wrong(format!("the swapchain has no image {index}")));
        };
        gpu.record(self.commands, || {
            gpu.labeled(self.commands, &format!("frame {number}"), || self.clear(gpu, screen, image, number));
        })?;
        let (waits, drawn, commands) = ([self.acquired], [*drawn], [self.commands]);
        let submit = vk::SubmitInfo::default()
            .wait_semaphores(&waits)
            .wait_dst_stage_mask(&[vk::PipelineStageFlags::TRANSFER])
            .command_buffers(&commands)
            .signal_semaphores(&drawn);
        gpu.submit(gpu.main, &submit, self.fence)?;
        self.number = Some(number);
        let (swapchains, indices) = ([screen.swapchain], [index]);
        let present = vk::PresentInfoKHR::default().wait_semaphores(&drawn).swapchains(&swapchains);
        // SAFETY: the image was acquired, and this thread owns the queue (owner).
        unsafe { screen.swapchains.queue_present(gpu.main.handle, &present.image_indices(&indices)) }?;
        Ok(())
    }

    fn clear(&self, gpu: &Gpu, screen: &Screen, image: &SampleImage, number: u32) {
        let (commands, target) = (self.commands, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
        // The stage of the semaphore's wait, so that the change of layout happens after it.
        let acquired = BarrierScope { stages: vk::PipelineStageFlags::TRANSFER, access: vk::AccessFlags::empty() };
        gpu.image_barrier(commands, image, (acquired, vk::ImageLayout::UNDEFINED), (scope::COPY_WRITE, target));
        let float32 = color(number).map(|it| f32::from(it) / 255.0);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            let value = vk::ClearColorValue { float32 };
            gpu.device.cmd_clear_color_image(commands, image.handle, target, &value, &[image.range()]);
        }
        let shown = (scope::PRESENTED, vk::ImageLayout::PRESENT_SRC_KHR);
        if !screen.is_readable {
            return gpu.image_barrier(commands, image, (scope::COPY_WRITE, target), shown);
        }
        let source = (scope::COPY_READ, vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
        gpu.image_barrier(commands, image, (scope::COPY_WRITE, target), source);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            let region = [image.buffer_copy_region(0, 0)];
            gpu.device.cmd_copy_image_to_buffer(commands, image.handle, source.1, self.copy.handle, &region);
        }
        gpu.buffer_barrier(commands, &self.copy, scope::COPY_WRITE, scope::HOST_READ);
        gpu.image_barrier(commands, image, source, shown);
    }
}
