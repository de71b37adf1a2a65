//! A swapchain on a headless surface, or on a window if no driver has headless surfaces.

use ash::{ext, khr, vk};

use crate::common::{Gpu, Needs, SampleImage, SampleInstance, XcbWindow};
use crate::failure::Failure;

/// A surface and its swapchain.
pub(crate) struct Screen<'a> {
    gpu: &'a Gpu,
    surfaces: khr::surface::Instance,
    surface: vk::SurfaceKHR,
    pub(crate) swapchains: khr::swapchain::Device,
    pub(crate) swapchain: vk::SwapchainKHR,
    format: vk::Format,
    pub(crate) images: Vec<SampleImage>,
    /// One per image: an image is presented again only after its semaphore was waited for.
    pub(crate) drawn: Vec<vk::Semaphore>,
    pub(crate) is_readable: bool,
}

impl<'a> Screen<'a> {
    /// A device that can present to the window, or any device without a window.
    pub(crate) fn gpu(window: Option<&XcbWindow>) -> Result<Gpu, Failure> {
        let kind = window.map_or(ext::headless_surface::NAME, |_| khr::xcb_surface::NAME);
        let instance = SampleInstance::new(&[khr::surface::NAME, kind])?;
        Gpu::with_instance(instance, &Needs { extensions: &[khr::swapchain::NAME], ..Needs::NOTHING })
    }

    pub(crate) fn new(gpu: &'a Gpu, window: Option<&XcbWindow>) -> Result<Screen<'a>, Failure> {
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
        let lacks = |what: &str| Failure::Unsupported(format!("the surface cannot {what}"));
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
        let image = |(at, handle)| {
            let handle = self.gpu.name(handle, &format!("image {at} of the screen"));
            SampleImage::color(handle, vk::ImageView::null(), extent, 1)
        };
        self.images = images.into_iter().enumerate().map(image).collect();
        Ok(())
    }

    /// A texel of this color in the swapchain's format.
    pub(crate) fn texel(&self, [red, green, blue, alpha]: [u8; 4]) -> u32 {
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

fn create_surface(gpu: &Gpu, window: Option<&XcbWindow>) -> Result<vk::SurfaceKHR, Failure> {
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
