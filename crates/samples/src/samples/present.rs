//! A swapchain: acquire, clear, present, with two frames in flight. Without a window where a driver can, else in one.

use ash::{ext, khr, vk};

use super::window::Window;
use crate::Sample;
use crate::arguments::Options;
use crate::common::{Buffer, Gpu, Image, Instance, Needs, Place, Scope, scope};
use crate::failure::Failure;

pub(super) const SAMPLE: Sample = Sample {
    name: "present",
    about: "Clears and presents the images of a swapchain, on a headless surface or in an X window.",
    run,
};

const IN_FLIGHT: usize = 2;
const PRESENTED: Scope = Scope { stages: vk::PipelineStageFlags::BOTTOM_OF_PIPE, access: vk::AccessFlags::empty() };

fn run(options: &Options) -> Result<(), Failure> {
    let window = match Instance::offers(ext::headless_surface::NAME)? {
        true => None,
        false => Some(Window::open()?),
    };
    let kind = window.as_ref().map_or(ext::headless_surface::NAME, |_| khr::xcb_surface::NAME);
    let instance = Instance::new(&[khr::surface::NAME, kind])?;
    let gpu = Gpu::with_instance(instance, &Needs { extensions: &[khr::swapchain::NAME], ..Needs::NOTHING })?;
    let screen = Screen::new(&gpu, window.as_ref())?;
    let mut frames = (0..IN_FLIGHT).map(|_| Frame::new(&gpu, &screen)).collect::<Result<Vec<_>, Failure>>()?;
    for number in 0..options.frames.unwrap_or(6) {
        let frame = &mut frames[number as usize % IN_FLIGHT];
        frame.finish(&gpu, &screen, options)?;
        frame.draw(&gpu, &screen, number)?;
    }
    frames.iter_mut().try_for_each(|it| it.finish(&gpu, &screen, options))
}

/// The color of a frame, as the bytes of a texel.
fn color(number: u32) -> [u8; 4] {
    [(number * 40 % 256) as u8, 255 - (number * 20 % 256) as u8, 128, 255]
}

/// A surface and its swapchain.
struct Screen<'a> {
    gpu: &'a Gpu,
    surfaces: khr::surface::Instance,
    surface: vk::SurfaceKHR,
    swapchains: khr::swapchain::Device,
    swapchain: vk::SwapchainKHR,
    format: vk::Format,
    images: Vec<Image>,
    /// One per image: an image is presented again only after its semaphore was waited for.
    drawn: Vec<vk::Semaphore>,
    is_readable: bool,
}

impl<'a> Screen<'a> {
    fn new(gpu: &'a Gpu, window: Option<&Window>) -> Result<Screen<'a>, Failure> {
        let surface = create_surface(gpu, window)?;
        let instance = &gpu.instance;
        // Made first, so that an early end destroys the surface.
        let mut screen = Screen {
            gpu,
            surfaces: khr::surface::Instance::new(&instance.entry, &instance.handle),
            surface,
            swapchains: khr::swapchain::Device::new(&instance.handle, &gpu.device),
            swapchain: vk::SwapchainKHR::null(),
            format: vk::Format::UNDEFINED,
            images: Vec::new(),
            drawn: Vec::new(),
            is_readable: false,
        };
        screen.create_swapchain()?;
        for at in 0..screen.images.len() {
            screen.drawn.push(gpu.semaphore(&format!("image {at} is drawn"))?);
        }
        Ok(screen)
    }

    fn create_swapchain(&mut self) -> Result<(), Failure> {
        let (device, family) = (self.gpu.physical_device, self.gpu.main.family);
        // SAFETY: the surface and the device are of this instance (lifetime).
        let (can_present, capabilities, formats) = unsafe {
            (
                self.surfaces.get_physical_device_surface_support(device, family, self.surface)?,
                self.surfaces.get_physical_device_surface_capabilities(device, self.surface)?,
                self.surfaces.get_physical_device_surface_formats(device, self.surface)?,
            )
        };
        let known = [vk::Format::B8G8R8A8_UNORM, vk::Format::R8G8B8A8_UNORM];
        let format = formats.iter().find(|it| known.contains(&it.format));
        let usage = vk::ImageUsageFlags::TRANSFER_DST;
        let lacks = |what: &str| Failure::Lacks(format!("the surface cannot {what}"));
        let format = format.ok_or_else(|| lacks("show a usual format"))?;
        if !can_present || !capabilities.supported_usage_flags.contains(usage) {
            return Err(lacks("be cleared and presented by the main queue"));
        }
        self.is_readable = capabilities.supported_usage_flags.contains(vk::ImageUsageFlags::TRANSFER_SRC);
        let extent = match capabilities.current_extent.width {
            u32::MAX => vk::Extent2D { width: 64, height: 64 },
            _ => capabilities.current_extent,
        };
        let opaque = vk::CompositeAlphaFlagsKHR::OPAQUE;
        let is_opaque = capabilities.supported_composite_alpha.contains(opaque);
        let most = if capabilities.max_image_count == 0 { u32::MAX } else { capabilities.max_image_count };
        let info = vk::SwapchainCreateInfoKHR::default()
            .surface(self.surface)
            .min_image_count((capabilities.min_image_count + 1).min(most))
            .image_format(format.format)
            .image_color_space(format.color_space)
            .image_extent(extent)
            .image_array_layers(1)
            .image_usage(if self.is_readable { usage | vk::ImageUsageFlags::TRANSFER_SRC } else { usage })
            .pre_transform(capabilities.current_transform)
            .composite_alpha(if is_opaque { opaque } else { vk::CompositeAlphaFlagsKHR::INHERIT })
            .present_mode(vk::PresentModeKHR::FIFO)
            .clipped(true);
        // SAFETY: `info` lives until the call returns, and says only what the surface was found to allow.
        let images = unsafe {
            self.swapchain = self.swapchains.create_swapchain(&info, None)?;
            self.swapchains.get_swapchain_images(self.swapchain)?
        };
        self.format = format.format;
        let image = |handle| Image { handle, view: vk::ImageView::null(), extent, levels: 1 };
        self.images = images.into_iter().map(image).collect();
        Ok(())
    }

    /// A texel of this color in the swapchain's format.
    fn texel(&self, [red, green, blue, alpha]: [u8; 4]) -> u32 {
        u32::from_le_bytes(match self.format {
            vk::Format::B8G8R8A8_UNORM => [blue, green, red, alpha],
            _ => [red, green, blue, alpha],
        })
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing of the swapchain is in use after waiting, and it goes before its surface (lifetime).
        unsafe {
            let _ = self.gpu.device.device_wait_idle();
            self.swapchains.destroy_swapchain(self.swapchain, None);
            self.surfaces.destroy_surface(self.surface, None);
        }
    }
}

fn create_surface(gpu: &Gpu, window: Option<&Window>) -> Result<vk::SurfaceKHR, Failure> {
    let instance = &gpu.instance;
    // SAFETY: the instance has the extension, and the window lives longer than the surface (lifetime, feature).
    let surface = unsafe {
        match window {
            None => {
                let headless = ext::headless_surface::Instance::new(&instance.entry, &instance.handle);
                headless.create_headless_surface(&vk::HeadlessSurfaceCreateInfoEXT::default(), None)
            }
            Some(window) => {
                let xcb = khr::xcb_surface::Instance::new(&instance.entry, &instance.handle);
                let info = vk::XcbSurfaceCreateInfoKHR::default().connection(window.connection.cast());
                xcb.create_xcb_surface(&info.window(window.window), None)
            }
        }
    };
    Ok(surface?)
}

/// What one frame in flight uses.
struct Frame {
    pool: vk::CommandPool,
    commands: vk::CommandBuffer,
    acquired: vk::Semaphore,
    fence: vk::Fence,
    copy: Buffer,
    /// The frame that is on its way.
    number: Option<u32>,
}

impl Frame {
    fn new(gpu: &Gpu, screen: &Screen) -> Result<Frame, Failure> {
        let pool = gpu.command_pool(gpu.main)?;
        let extent = screen.images.first().map(|it| it.extent).unwrap_or_default();
        let size = u64::from(extent.width * extent.height * 4).max(4);
        Ok(Frame {
            pool,
            commands: gpu.command_buffer(pool, vk::CommandBufferLevel::PRIMARY)?,
            acquired: gpu.semaphore("acquired")?,
            fence: gpu.fence(vk::FenceCreateFlags::empty())?,
            copy: gpu.buffer("copy of the frame", size, vk::BufferUsageFlags::TRANSFER_DST, Place::Host)?,
            number: None,
        })
    }

    /// Waits for the frame that is on its way, if any, and looks at it.
    fn finish(&mut self, gpu: &Gpu, screen: &Screen, options: &Options) -> Result<(), Failure> {
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

    fn clear(&self, gpu: &Gpu, screen: &Screen, image: &Image, number: u32) {
        let (commands, target) = (self.commands, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
        // The stage of the semaphore's wait, so that the change of layout happens after it.
        let acquired = Scope { stages: vk::PipelineStageFlags::TRANSFER, access: vk::AccessFlags::empty() };
        gpu.image_barrier(commands, image, (acquired, vk::ImageLayout::UNDEFINED), (scope::COPY_WRITE, target));
        let float32 = color(number).map(|it| f32::from(it) / 255.0);
        // SAFETY: live objects, recorded by this thread (lifetime, owner), here and below.
        unsafe {
            let value = vk::ClearColorValue { float32 };
            gpu.device.cmd_clear_color_image(commands, image.handle, target, &value, &[image.range()]);
        }
        let shown = (PRESENTED, vk::ImageLayout::PRESENT_SRC_KHR);
        if !screen.is_readable {
            return gpu.image_barrier(commands, image, (scope::COPY_WRITE, target), shown);
        }
        let source = (scope::COPY_READ, vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
        gpu.image_barrier(commands, image, (scope::COPY_WRITE, target), source);
        // SAFETY: as above.
        unsafe {
            let region = [image.region(0, 0)];
            gpu.device.cmd_copy_image_to_buffer(commands, image.handle, source.1, self.copy.handle, &region);
        }
        gpu.buffer_barrier(commands, &self.copy, scope::COPY_WRITE, scope::HOST_READ);
        gpu.image_barrier(commands, image, source, shown);
    }
}
