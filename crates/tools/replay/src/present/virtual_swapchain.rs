//! Swapchains without a window: plain images, acquired and presented in the order of the trace.
//!
//! Acquiring an image signals what the trace waits for, and presenting one waits for what the trace signals, each by a
//! submission of our own; so the device sees the order that the program saw.

use std::sync::{Arc, Mutex};

use lavascope_abi as vk;
use lavascope_abi::{ObjectId, Ptr, Structure};
use lavascope_record::{Call, Outcome, View};
use rustc_hash::FxHashMap;

use crate::call::functions::driver;
use crate::call::objects::{ReplayObject, ReplayObjects};
use crate::call::output_handles::output_ids;
use crate::call::perform::{Performer, RecordedCall, result_name};
use crate::error::ReplayError;
use crate::options::FrameOutput;
use crate::port::device::ReplayDevice;
use crate::port::instance::out;
use crate::present::real_swapchain::{RealSurface, RealSwapchain};
use crate::replay::lock;
use crate::schedule::device_waits::WaitLimit;

/// Swapchains here, by their id in the trace.
#[derive(Default)]
pub(crate) struct VirtualSwapchains {
    all: Mutex<FxHashMap<ObjectId, Arc<VirtualSwapchain>>>,
    /// The real surfaces, if frames are shown.
    surfaces: Mutex<FxHashMap<ObjectId, Arc<RealSurface>>>,
}

pub(crate) struct VirtualSwapchain {
    pub(crate) device: Arc<ReplayDevice>,
    info: vk::SwapchainCreateInfoKHR,
    images: Mutex<Vec<(vk::Image, vk::DeviceMemory)>>,
    /// The images that the trace has asked for.
    image_ids: Mutex<Vec<ObjectId>>,
    real: Mutex<Option<RealSwapchain>>,
}

/// More images than any swapchain has.
const IMAGES_MAX: usize = 64;

impl VirtualSwapchains {
    fn find(&self, id: ObjectId) -> Option<Arc<VirtualSwapchain>> {
        lock(&self.all).get(&id).cloned()
    }

    /// Swapchains that the program did not destroy are removed with their device.
    pub(crate) fn destroy_device(&self, device: &ReplayDevice, objects: &ReplayObjects) {
        lock(&self.all).retain(|_, virtual_swapchain| {
            let stays = virtual_swapchain.device.owner != device.owner;
            if !stays {
                virtual_swapchain.destroy(objects);
            }
            stays
        });
    }

    /// Frames for a surface are no longer shown.
    fn release_surface(&self, surface: vk::SurfaceKHR) {
        for virtual_swapchain in lock(&self.all).values().filter(|it| it.info.surface == surface) {
            lock(&virtual_swapchain.real).take();
        }
    }

    /// No swapchain is left.
    pub(crate) fn destroy_surfaces(&self) {
        lock(&self.surfaces).clear();
    }
}

impl VirtualSwapchain {
    pub(crate) fn format(&self) -> vk::Format {
        self.info.image_format
    }

    pub(crate) fn extent(&self) -> vk::Extent2D {
        self.info.image_extent
    }

    /// The image with an index; images are added up to that index.
    pub(crate) fn image(&self, index: usize) -> Result<vk::Image, String> {
        if index >= IMAGES_MAX {
            return Err(format!("there is no image {index} in a swapchain"));
        }
        let mut images = lock(&self.images);
        while images.len() <= index {
            images.push(self.make_image()?);
        }
        Ok(images[index].0)
    }

    fn make_image(&self) -> Result<(vk::Image, vk::DeviceMemory), String> {
        let ReplayDevice { functions, handle, .. } = &*self.device;
        let mutable = vk::SwapchainCreateFlagsKHR::MUTABLE_FORMAT_KHR.0;
        let is_mutable = self.info.flags.0 & mutable != 0;
        let flags = match is_mutable {
            true => vk::ImageCreateFlags::MUTABLE_FORMAT.0 | vk::ImageCreateFlags::EXTENDED_USAGE.0,
            false => 0,
        };
        let info = vk::ImageCreateInfo {
            flags: vk::ImageCreateFlags(flags),
            image_type: vk::ImageType(1),
            format: self.info.image_format,
            extent: vk::Extent3D {
                width: self.info.image_extent.width,
                height: self.info.image_extent.height,
                depth: 1,
            },
            mip_levels: 1,
            array_layers: self.info.image_array_layers,
            samples: vk::SampleCountFlags(1),
            usage: vk::ImageUsageFlags(self.info.image_usage.0 | vk::ImageUsageFlags::TRANSFER_SRC.0),
            ..vk::ImageCreateInfo::zeroed()
        };
        let mut image = vk::Image(0);
        let made = driver!(functions, CreateImage, FnCreateImage(*handle, Ptr::to(&info), Ptr::NULL, out(&mut image)));
        check("an image of the swapchain", made)?;
        let mut needs = vk::MemoryRequirements::zeroed();
        driver!(functions, GetImageMemoryRequirements, FnGetImageMemoryRequirements(*handle, image, out(&mut needs)));
        let local = vk::MemoryPropertyFlags::DEVICE_LOCAL.0;
        let ty = self.device.find_memory_type(needs.memory_type_bits, local);
        let ty = ty.or_else(|| self.device.find_memory_type(needs.memory_type_bits, 0)).unwrap_or(0);
        let info = vk::MemoryAllocateInfo {
            allocation_size: needs.size,
            memory_type_index: ty,
            ..vk::MemoryAllocateInfo::zeroed()
        };
        let mut memory = vk::DeviceMemory(0);
        let made =
            driver!(functions, AllocateMemory, FnAllocateMemory(*handle, Ptr::to(&info), Ptr::NULL, out(&mut memory)));
        check("memory of the swapchain", made)?;
        let bound = driver!(functions, BindImageMemory, FnBindImageMemory(*handle, image, memory, 0));
        check("memory of the swapchain", bound)?;
        Ok((image, memory))
    }

    /// The images are gone with their swapchain.
    fn destroy(&self, objects: &ReplayObjects) {
        lock(&self.real).take();
        lock(&self.image_ids).drain(..).for_each(|it| objects.remove(it));
        let ReplayDevice { functions, handle, .. } = &*self.device;
        for (image, memory) in lock(&self.images).drain(..) {
            driver!(functions, DestroyImage, FnDestroyImage(*handle, image, Ptr::NULL));
            driver!(functions, FreeMemory, FnFreeMemory(*handle, memory, Ptr::NULL));
        }
    }
}

pub(crate) fn check(what: &str, result: Option<vk::Result>) -> Result<(), String> {
    match result {
        Some(vk::Result::SUCCESS) => Ok(()),
        Some(code) => Err(format!("{what} cannot be created: the driver returned {}", result_name(code))),
        None => Err(format!("{what} cannot be created: the driver does not have the function")),
    }
}

/// A surface is destroyed, and so is the window for it.
pub(crate) fn destroy_surface(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    if let Some(Call::DestroySurfaceKHR(call)) = Call::of(recorded_call.enter) {
        performer.replay.swapchains.release_surface(call.surface);
        let id = ObjectId::from_raw(call.surface.0).unwrap_or(ObjectId::NULL);
        lock(&performer.replay.swapchains.surfaces).remove(&id);
    }
    performer.remove_destroyed(recorded_call);
    Ok(())
}

/// A surface or swapchain has no handle of a driver; its id does as well.
pub(crate) fn placeholder_handle(id: ObjectId) -> u64 {
    id.serial() + 1
}

/// Surfaces exist in name only.
pub(crate) fn surface(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(leave) = recorded_call.leave.filter(|_| !recorded_call.has_failed()) else { return Ok(()) };
    performer.arena.clear();
    for id in output_ids(leave, &mut performer.arena) {
        performer.add_object(recorded_call, id, ReplayObject { handle: placeholder_handle(id), owner: 0 })?;
    }
    Ok(())
}

pub(crate) fn create(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(leave) = recorded_call.leave.filter(|_| !recorded_call.has_failed()) else { return Ok(()) };
    let (Some(Call::CreateSwapchainKHR(call)), Some(Outcome::CreateSwapchainKHR(outcome))) =
        (Call::of(recorded_call.enter), Outcome::of(leave))
    else {
        return Ok(());
    };
    let (Some(info), Some(id)) = (call.p_create_info(), outcome.p_swapchain().and_then(|it| ObjectId::from_raw(it.0)))
    else {
        return Ok(());
    };
    let device = performer.device(recorded_call)?;
    let object = ReplayObject { handle: placeholder_handle(id), owner: device.owner };
    let screen = performer
        .create_real_swapchain(recorded_call, &device, info.get())
        .map_err(|it| performer.error(recorded_call, it))?;
    let swapchain = VirtualSwapchain {
        device,
        info: *info.get(),
        images: Mutex::default(),
        image_ids: Mutex::default(),
        real: Mutex::new(screen),
    };
    lock(&performer.replay.swapchains.all).insert(id, Arc::new(swapchain));
    performer.add_object(recorded_call, id, object)
}

pub(crate) fn destroy(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(Call::DestroySwapchainKHR(call)) = Call::of(recorded_call.enter) else { return Ok(()) };
    let Some(id) = ObjectId::from_raw(call.swapchain.0) else { return Ok(()) };
    let removed = lock(&performer.replay.swapchains.all).remove(&id);
    if let Some(virtual_swapchain) = removed {
        // The work that presentation waits for was submitted, but may not be complete.
        performer.wait_device_idle(recorded_call, &virtual_swapchain.device);
        virtual_swapchain.destroy(&performer.replay.objects);
    }
    performer.remove_destroyed(recorded_call);
    Ok(())
}

pub(crate) fn images(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(leave) = recorded_call.leave.filter(|_| !recorded_call.has_failed()) else { return Ok(()) };
    let Some(Call::GetSwapchainImagesKHR(call)) = Call::of(recorded_call.enter) else { return Ok(()) };
    let swapchain = performer.swapchain(recorded_call, call.swapchain.0)?;
    performer.arena.clear();
    for (at, id) in output_ids(leave, &mut performer.arena).into_iter().enumerate() {
        let image = swapchain.image(at).map_err(|it| performer.error(recorded_call, it))?;
        performer.add_object(recorded_call, id, ReplayObject { handle: image.0, owner: swapchain.device.owner })?;
        lock(&swapchain.image_ids).push(id);
    }
    Ok(())
}

pub(crate) fn acquire(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.leave.is_none()
        || !matches!(vk::Result(recorded_call.code()), vk::Result::SUCCESS | vk::Result::SUBOPTIMAL_KHR)
    {
        return Ok(());
    }
    let (semaphore, fence) = match Call::of(recorded_call.enter) {
        Some(Call::AcquireNextImageKHR(params)) => (params.semaphore.0, params.fence.0),
        Some(Call::AcquireNextImage2KHR(params)) => {
            params.p_acquire_info().map_or((0, 0), |it| (it.semaphore.0, it.fence.0))
        }
        _ => return Ok(()),
    };
    let device = performer.device(recorded_call)?;
    let recorded = semaphore;
    let (semaphore, fence) = (performer.handle(recorded_call, semaphore)?, performer.handle(recorded_call, fence)?);
    let semaphores = if semaphore == 0 { vec![] } else { vec![vk::Semaphore(semaphore)] };
    performer
        .submit_empty(&device, device.queue, (&[], &semaphores), vk::Fence(fence))
        .map_err(|it| performer.error(recorded_call, it))?;
    match ObjectId::from_raw(recorded).filter(|_| device.shares_queues) {
        Some(id) => performer.note_semaphore_signal(id, 0),
        None => Ok(()),
    }
}

pub(crate) fn present(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let Some(Call::QueuePresentKHR(call)) = Call::of(recorded_call.enter) else { return Ok(()) };
    let Some(info) = call.p_present_info() else { return Ok(()) };
    let lost =
        [vk::Result::ERROR_DEVICE_LOST, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, vk::Result::ERROR_OUT_OF_HOST_MEMORY];
    if lost.contains(&vk::Result(recorded_call.code())) {
        return Ok(());
    }
    let device = performer.device(recorded_call)?;
    let queue = vk::Queue(performer.handle(recorded_call, call.queue.0)?);
    let waits = info.p_wait_semaphores().iter().map(|it| performer.handle(recorded_call, it.0).map(vk::Semaphore));
    let waits = waits.collect::<Result<Vec<_>, _>>()?;
    performer
        .submit_empty(&device, queue, (&waits, &[]), vk::Fence(0))
        .map_err(|it| performer.error(recorded_call, it))?;
    let frame = performer.replay.clock.end_frame();
    performer.show(recorded_call, &device, info)?;
    if performer.replay.options.wants_frame(frame) {
        for (window, (swapchain, index)) in info.p_swapchains().iter().zip(info.p_image_indices()).enumerate() {
            let swapchain = performer.swapchain(recorded_call, swapchain.0)?;
            let image = swapchain.image(*index as usize).map_err(|it| performer.error(recorded_call, it))?;
            performer.wait_queue_idle(recorded_call, &device, queue);
            let picture = performer.read_image(&swapchain, image).map_err(|it| performer.error(recorded_call, it))?;
            performer.replay.options.report_frame(frame, window, picture);
        }
    }
    let fences = info.chained::<vk::SwapchainPresentFenceInfoKHR>();
    for fence in fences.map(|it| it.p_fences().to_vec()).unwrap_or_default() {
        let fence = vk::Fence(performer.handle(recorded_call, fence.0)?);
        performer.submit_empty(&device, queue, (&[], &[]), fence).map_err(|it| performer.error(recorded_call, it))?;
    }
    Ok(())
}

impl Performer<'_> {
    /// The real swapchain for one of the trace, if frames are shown.
    fn create_real_swapchain(
        &self,
        recorded_call: &RecordedCall<'_>,
        device: &Arc<ReplayDevice>,
        info: &vk::SwapchainCreateInfoKHR,
    ) -> Result<Option<RealSwapchain>, String> {
        let (options, swapchains) = (&self.replay.options, &self.replay.swapchains);
        if options.frame_output == FrameOutput::Nothing || self.replay.is_plan() {
            return Ok(None);
        }
        self.wait_device_idle(recorded_call, device);
        swapchains.release_surface(info.surface);
        let id = ObjectId::from_raw(info.surface.0).unwrap_or(ObjectId::NULL);
        let known = lock(&swapchains.surfaces).get(&id).cloned();
        let surface = match known {
            Some(real_surface) => real_surface,
            None => match RealSurface::new(options, device, info.image_extent)? {
                Some(real_surface) => Arc::new(real_surface),
                None => {
                    self.replay.remark("this driver has no headless surfaces: frames are not presented".into());
                    return Ok(None);
                }
            },
        };
        lock(&swapchains.surfaces).insert(id, surface.clone());
        let shape = (info.image_format, info.image_extent);
        RealSwapchain::new(device, surface, shape, options.is_original_speed).map(Some)
    }

    /// Shows the images of a frame, if frames are shown.
    fn show(
        &self,
        recorded_call: &RecordedCall<'_>,
        device: &ReplayDevice,
        info: View<'_, vk::PresentInfoKHR>,
    ) -> Result<(), ReplayError> {
        if self.replay.options.frame_output == FrameOutput::Nothing {
            return Ok(());
        }
        let _waiting = self.begin_wait(recorded_call, "the window", WaitLimit::Unlimited);
        for (swapchain, index) in info.p_swapchains().iter().zip(info.p_image_indices()) {
            let swapchain = self.swapchain(recorded_call, swapchain.0)?;
            let image = swapchain.image(*index as usize).map_err(|it| self.error(recorded_call, it))?;
            let queue_lock = self.replay.queue_lock(device.queue.0);
            let _guard = lock(&queue_lock);
            if let Some(screen) = &*lock(&swapchain.real) {
                let shown = screen.show(image, swapchain.extent(), swapchain.format());
                shown.map_err(|it| self.error(recorded_call, it))?;
            }
        }
        Ok(())
    }

    fn swapchain(&self, recorded_call: &RecordedCall<'_>, raw: u64) -> Result<Arc<VirtualSwapchain>, ReplayError> {
        let id = ObjectId::from_raw(raw).unwrap_or(ObjectId::NULL);
        let found = self.replay.swapchains.find(id);
        found.ok_or_else(|| self.error(recorded_call, format!("{id} does not exist at this point")))
    }

    /// A submission without commands, which waits and signals.
    fn submit_empty(
        &self,
        device: &ReplayDevice,
        queue: vk::Queue,
        (waits, signals): (&[vk::Semaphore], &[vk::Semaphore]),
        fence: vk::Fence,
    ) -> Result<(), String> {
        let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; waits.len()];
        let info = vk::SubmitInfo {
            wait_semaphore_count: waits.len() as u32,
            p_wait_semaphores: Ptr::to_slice(waits),
            p_wait_dst_stage_mask: Ptr::to_slice(&stages),
            signal_semaphore_count: signals.len() as u32,
            p_signal_semaphores: Ptr::to_slice(signals),
            ..vk::SubmitInfo::zeroed()
        };
        let queue_lock = self.replay.queue_lock(queue.0);
        let _guard = lock(&queue_lock);
        let result = driver!(device.functions, QueueSubmit, FnQueueSubmit(queue, 1, Ptr::to(&info), fence));
        check("a submission of ours", result)
    }

    pub(crate) fn wait_queue_idle(&self, recorded_call: &RecordedCall<'_>, device: &ReplayDevice, queue: vk::Queue) {
        let _waiting = self.begin_wait(recorded_call, "the device", WaitLimit::Unlimited);
        let queue_lock = self.replay.queue_lock(queue.0);
        let _guard = lock(&queue_lock);
        driver!(device.functions, QueueWaitIdle, FnQueueWaitIdle(queue));
    }

    fn wait_device_idle(&self, recorded_call: &RecordedCall<'_>, device: &ReplayDevice) {
        self.wait_queue_idle(recorded_call, device, device.queue);
    }
}
