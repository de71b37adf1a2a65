//! A real swapchain beside the virtual one: presented images are copied into it, and shown.
//!
//! The images of the trace stay plain images, so it does not matter in which order the real ones are acquired, how
//! many there are, or which format they have.

use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};

use crate::call::functions::{Functions, driver};
use crate::options::{FrameOutput, ReplayOptions};
use crate::port::device::ReplayDevice;
use crate::port::instance::{out, out_slice};
use crate::present::screenshot::transition;
use crate::present::virtual_swapchain::check;
use crate::present::window;
use crate::present::window::ReplayWindow;

/// Where frames are shown.
pub(crate) struct RealSurface {
    handle: vk::SurfaceKHR,
    instance: vk::Instance,
    functions: Arc<Functions>,
    /// None for a headless surface.
    window: Option<ReplayWindow>,
}

/// Extensions of the instance that it needs.
pub(crate) fn instance_extensions(show: FrameOutput) -> &'static [&'static std::ffi::CStr] {
    match show {
        FrameOutput::Nothing => &[],
        FrameOutput::Window => window::EXTENSIONS,
        FrameOutput::Headless => &[c"VK_KHR_surface", c"VK_EXT_headless_surface"],
    }
}

impl RealSurface {
    /// None if frames are not shown, or if the driver has no headless surfaces.
    pub(crate) fn new(
        options: &ReplayOptions,
        device: &ReplayDevice,
        extent: vk::Extent2D,
    ) -> Result<Option<RealSurface>, String> {
        let functions = device.mapping.functions.clone();
        let Some(instance) = functions.instance() else { return Ok(None) };
        let mut handle = vk::SurfaceKHR(0);
        let window = match options.frame_output {
            FrameOutput::Nothing => return Ok(None),
            FrameOutput::Window => {
                let (window, surface) = ReplayWindow::open(&functions, instance, extent)?;
                handle = surface;
                Some(window)
            }
            FrameOutput::Headless => {
                let info = vk::HeadlessSurfaceCreateInfoEXT::zeroed();
                let made = driver!(
                    functions,
                    CreateHeadlessSurfaceEXT,
                    FnCreateHeadlessSurfaceEXT(instance, Ptr::to(&info), Ptr::NULL, out(&mut handle))
                );
                if made != Some(vk::Result::SUCCESS) {
                    return Ok(None);
                }
                None
            }
        };
        Ok(Some(RealSurface { handle, instance, functions, window }))
    }
}

impl Drop for RealSurface {
    fn drop(&mut self) {
        driver!(self.functions, DestroySurfaceKHR, FnDestroySurfaceKHR(self.instance, self.handle, Ptr::NULL));
    }
}

/// A real swapchain, and the objects for copying into it.
pub(crate) struct RealSwapchain {
    device: Arc<ReplayDevice>,
    surface: Arc<RealSurface>,
    swapchain: vk::SwapchainKHR,
    images: Vec<vk::Image>,
    format: vk::Format,
    extent: vk::Extent2D,
    pool: vk::CommandPool,
    commands: vk::CommandBuffer,
    fence: vk::Fence,
    copied: vk::Semaphore,
}

impl RealSwapchain {
    /// For a swapchain of the trace. No other one may show anything on this surface.
    pub(crate) fn new(
        device: &Arc<ReplayDevice>,
        surface: Arc<RealSurface>,
        (wanted, extent): (vk::Format, vk::Extent2D),
        is_original_speed: bool,
    ) -> Result<RealSwapchain, String> {
        if let Some(window) = &surface.window {
            window.resize(extent);
        }
        let mut screen = RealSwapchain {
            device: device.clone(),
            surface,
            swapchain: vk::SwapchainKHR(0),
            images: Vec::new(),
            format: wanted,
            extent,
            pool: vk::CommandPool(0),
            commands: vk::CommandBuffer(0),
            fence: vk::Fence(0),
            copied: vk::Semaphore(0),
        };
        screen.make_swapchain(is_original_speed)?;
        screen.make_commands()?;
        Ok(screen)
    }

    fn make_swapchain(&mut self, is_original_speed: bool) -> Result<(), String> {
        let (about, surface) = (&self.device.mapping, self.surface.handle);
        let mut is_able = vk::Bool32(0);
        driver!(
            about.functions,
            GetPhysicalDeviceSurfaceSupportKHR,
            FnGetPhysicalDeviceSurfaceSupportKHR(about.physical, self.device.family, surface, out(&mut is_able))
        );
        if is_able.0 == 0 {
            return Err("this device cannot present to a window".to_owned());
        }
        let mut can = vk::SurfaceCapabilitiesKHR::zeroed();
        let asked = driver!(
            about.functions,
            GetPhysicalDeviceSurfaceCapabilitiesKHR,
            FnGetPhysicalDeviceSurfaceCapabilitiesKHR(about.physical, surface, out(&mut can))
        );
        check("a swapchain", asked)?;
        let formats = formats(&self.device, surface);
        let format = formats.iter().find(|it| it.format == self.format).or(formats.first());
        let format = *format.ok_or("the window has no formats")?;
        self.format = format.format;
        // A window has a size of its own, which may still be the previous one.
        let (least, most) = (can.min_image_extent, can.max_image_extent);
        self.extent.width = self.extent.width.min(most.width).max(least.width);
        self.extent.height = self.extent.height.min(most.height).max(least.height);
        let most = if can.max_image_count == 0 { u32::MAX } else { can.max_image_count };
        let info = vk::SwapchainCreateInfoKHR {
            surface,
            min_image_count: can.min_image_count.max(2).min(most),
            image_format: format.format,
            image_color_space: format.color_space,
            image_extent: self.extent,
            image_array_layers: 1,
            image_usage: vk::ImageUsageFlags::TRANSFER_DST,
            pre_transform: can.current_transform,
            composite_alpha: vk::CompositeAlphaFlagsKHR(lowest_bit(can.supported_composite_alpha.0)),
            present_mode: present_mode(&self.device, surface, is_original_speed),
            clipped: vk::Bool32(1),
            ..vk::SwapchainCreateInfoKHR::zeroed()
        };
        let ReplayDevice { functions, handle, .. } = &*self.device;
        let made = driver!(
            functions,
            CreateSwapchainKHR,
            FnCreateSwapchainKHR(*handle, Ptr::to(&info), Ptr::NULL, out(&mut self.swapchain))
        );
        check("a swapchain", made)?;
        let ask = |count: &mut u32, first: Ptr<vk::Image>| {
            driver!(
                functions,
                GetSwapchainImagesKHR,
                FnGetSwapchainImagesKHR(*handle, self.swapchain, out(count), first)
            );
        };
        let mut count = 0;
        ask(&mut count, Ptr::NULL);
        let mut images = vec![vk::Image(0); count as usize];
        ask(&mut count, out_slice(&mut images));
        images.truncate(count as usize);
        self.images = images;
        Ok(())
    }

    fn make_commands(&mut self) -> Result<(), String> {
        let ReplayDevice { functions, handle, family, .. } = &*self.device;
        let info = vk::CommandPoolCreateInfo {
            flags: vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER,
            queue_family_index: *family,
            ..vk::CommandPoolCreateInfo::zeroed()
        };
        let made = driver!(
            functions,
            CreateCommandPool,
            FnCreateCommandPool(*handle, Ptr::to(&info), Ptr::NULL, out(&mut self.pool))
        );
        check("a command pool", made)?;
        let info = vk::CommandBufferAllocateInfo {
            command_pool: self.pool,
            command_buffer_count: 1,
            ..vk::CommandBufferAllocateInfo::zeroed()
        };
        let made = driver!(
            functions,
            AllocateCommandBuffers,
            FnAllocateCommandBuffers(*handle, Ptr::to(&info), out(&mut self.commands))
        );
        check("a command buffer", made)?;
        let info = vk::FenceCreateInfo::zeroed();
        let made =
            driver!(functions, CreateFence, FnCreateFence(*handle, Ptr::to(&info), Ptr::NULL, out(&mut self.fence)));
        check("a fence", made)?;
        let info = vk::SemaphoreCreateInfo::zeroed();
        let made = driver!(
            functions,
            CreateSemaphore,
            FnCreateSemaphore(*handle, Ptr::to(&info), Ptr::NULL, out(&mut self.copied))
        );
        check("a semaphore", made)
    }

    /// Shows an image that was presented. The queue of the device must not be used meanwhile.
    pub(crate) fn show(&self, image: vk::Image, extent: vk::Extent2D, format: vk::Format) -> Result<(), String> {
        if let Some(window) = &self.surface.window {
            window.dispatch_events();
        }
        let Some(to) = self.acquire()? else { return Ok(()) };
        let ReplayDevice { functions, queue, .. } = &*self.device;
        let begin = vk::CommandBufferBeginInfo::zeroed();
        driver!(functions, BeginCommandBuffer, FnBeginCommandBuffer(self.commands, Ptr::to(&begin)));
        self.record((image, extent, format), self.images[to as usize]);
        driver!(functions, EndCommandBuffer, FnEndCommandBuffer(self.commands));
        let (buffers, signals) = ([self.commands], [self.copied]);
        let submit = vk::SubmitInfo {
            command_buffer_count: 1,
            p_command_buffers: Ptr::to_slice(&buffers),
            signal_semaphore_count: 1,
            p_signal_semaphores: Ptr::to_slice(&signals),
            ..vk::SubmitInfo::zeroed()
        };
        let result = driver!(functions, QueueSubmit, FnQueueSubmit(*queue, 1, Ptr::to(&submit), vk::Fence(0)));
        check("a copy into the window", result)?;
        let (swapchains, indices) = ([self.swapchain], [to]);
        let info = vk::PresentInfoKHR {
            wait_semaphore_count: 1,
            p_wait_semaphores: Ptr::to_slice(&signals),
            swapchain_count: 1,
            p_swapchains: Ptr::to_slice(&swapchains),
            p_image_indices: Ptr::to_slice(&indices),
            ..vk::PresentInfoKHR::zeroed()
        };
        let result = driver!(functions, QueuePresentKHR, FnQueuePresentKHR(*queue, Ptr::to(&info)));
        driver!(functions, QueueWaitIdle, FnQueueWaitIdle(*queue));
        check("a frame in the window", result.map(tolerate_suboptimal))
    }

    /// The next image; none if the window does not accept images now.
    fn acquire(&self) -> Result<Option<u32>, String> {
        let ReplayDevice { functions, handle, .. } = &*self.device;
        let mut index = 0;
        let none = vk::Semaphore(0);
        let result = driver!(
            functions,
            AcquireNextImageKHR,
            FnAcquireNextImageKHR(*handle, self.swapchain, u64::MAX, none, self.fence, out(&mut index))
        );
        if result == Some(vk::Result::ERROR_OUT_OF_DATE_KHR) {
            return Ok(None);
        }
        check("the next image of the window", result.map(tolerate_suboptimal))?;
        let fences = [self.fence];
        driver!(functions, WaitForFences, FnWaitForFences(*handle, 1, Ptr::to_slice(&fences), vk::Bool32(1), u64::MAX));
        driver!(functions, ResetFences, FnResetFences(*handle, 1, Ptr::to_slice(&fences)));
        Ok((index as usize).lt(&self.images.len()).then_some(index))
    }

    fn record(&self, (image, extent, format): (vk::Image, vk::Extent2D, vk::Format), to: vk::Image) {
        let ReplayDevice { functions, .. } = &*self.device;
        let commands = self.commands;
        let (from_layout, to_layout) = (vk::ImageLayout::TRANSFER_SRC_OPTIMAL, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
        let presented = vk::ImageLayout::PRESENT_SRC_KHR;
        transition(functions, commands, image, (presented, from_layout));
        transition(functions, commands, to, (vk::ImageLayout::UNDEFINED, to_layout));
        let layers = vk::ImageSubresourceLayers {
            aspect_mask: vk::ImageAspectFlags::COLOR,
            layer_count: 1,
            ..vk::ImageSubresourceLayers::zeroed()
        };
        let own = self.extent;
        if (extent.width, extent.height, format) == (own.width, own.height, self.format) {
            let region = vk::ImageCopy {
                src_subresource: layers,
                dst_subresource: layers,
                extent: vk::Extent3D { width: extent.width, height: extent.height, depth: 1 },
                ..vk::ImageCopy::zeroed()
            };
            driver!(
                functions,
                CmdCopyImage,
                FnCmdCopyImage(commands, image, from_layout, to, to_layout, 1, Ptr::to(&region))
            );
        } else {
            let corners = |extent2_d: vk::Extent2D| {
                [vk::Offset3D::zeroed(), vk::Offset3D { x: extent2_d.width as i32, y: extent2_d.height as i32, z: 1 }]
            };
            let region = vk::ImageBlit {
                src_subresource: layers,
                src_offsets: corners(extent),
                dst_subresource: layers,
                dst_offsets: corners(own),
            };
            driver!(
                functions,
                CmdBlitImage,
                FnCmdBlitImage(commands, image, from_layout, to, to_layout, 1, Ptr::to(&region), vk::Filter::LINEAR)
            );
        }
        transition(functions, commands, to, (to_layout, presented));
        transition(functions, commands, image, (from_layout, presented));
    }
}

impl Drop for RealSwapchain {
    fn drop(&mut self) {
        let ReplayDevice { functions, handle, .. } = &*self.device;
        driver!(functions, DestroySemaphore, FnDestroySemaphore(*handle, self.copied, Ptr::NULL));
        driver!(functions, DestroyFence, FnDestroyFence(*handle, self.fence, Ptr::NULL));
        driver!(functions, DestroyCommandPool, FnDestroyCommandPool(*handle, self.pool, Ptr::NULL));
        driver!(functions, DestroySwapchainKHR, FnDestroySwapchainKHR(*handle, self.swapchain, Ptr::NULL));
    }
}

/// A suboptimal image is shown; if the swapchain is out of date, the frame is dropped.
fn tolerate_suboptimal(result: vk::Result) -> vk::Result {
    match result {
        vk::Result::SUBOPTIMAL_KHR | vk::Result::ERROR_OUT_OF_DATE_KHR => vk::Result::SUCCESS,
        result => result,
    }
}

fn lowest_bit(bits: u32) -> u32 {
    bits & bits.wrapping_neg()
}

fn formats(device: &ReplayDevice, surface: vk::SurfaceKHR) -> Vec<vk::SurfaceFormatKHR> {
    let about = &device.mapping;
    let ask = |count: &mut u32, first: Ptr<vk::SurfaceFormatKHR>| {
        driver!(
            about.functions,
            GetPhysicalDeviceSurfaceFormatsKHR,
            FnGetPhysicalDeviceSurfaceFormatsKHR(about.physical, surface, out(count), first)
        );
    };
    let mut count = 0;
    ask(&mut count, Ptr::NULL);
    let mut all = vec![vk::SurfaceFormatKHR::zeroed(); count as usize];
    ask(&mut count, out_slice(&mut all));
    all.truncate(count as usize);
    all
}

/// With the picture of the display for one who wants the original speed, else as fast as it can be.
fn present_mode(device: &ReplayDevice, surface: vk::SurfaceKHR, is_original_speed: bool) -> vk::PresentModeKHR {
    let about = &device.mapping;
    let ask = |count: &mut u32, first: Ptr<vk::PresentModeKHR>| {
        driver!(
            about.functions,
            GetPhysicalDeviceSurfacePresentModesKHR,
            FnGetPhysicalDeviceSurfacePresentModesKHR(about.physical, surface, out(count), first)
        );
    };
    let mut count = 0;
    ask(&mut count, Ptr::NULL);
    let mut all = vec![vk::PresentModeKHR(0); count as usize];
    ask(&mut count, out_slice(&mut all));
    all.truncate(count as usize);
    let fast = [vk::PresentModeKHR::MAILBOX_KHR, vk::PresentModeKHR::IMMEDIATE_KHR];
    let found = fast.into_iter().find(|it| all.contains(it)).filter(|_| !is_original_speed);
    found.unwrap_or(vk::PresentModeKHR::FIFO_KHR)
}
