//! Swapchains: images in turn, never displayed, never out of date.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::DriverObjectTable;
use crate::execution::commands::RecordedOp;
use crate::execution::queue_engine;
use crate::execution::queue_engine::QueueBatch;
use crate::execution::submit::semaphore_values;
use crate::execution::sync::{FENCES, SEMAPHORES};
use crate::resources::images::{IMAGES, ImageData};

pub(crate) static SWAPCHAINS: DriverObjectTable<SwapchainData> = DriverObjectTable::new(HandleType::SwapchainKHR);

/// A swapchain.
pub(crate) struct SwapchainData {
    pub(crate) images: Vec<Image>,
    acquire_state: Mutex<AcquireState>,
    /// The id of the last presentation. Release in `perform`, Acquire where it is waited for.
    presented: AtomicU64,
}

struct AcquireState {
    next: usize,
    /// Whether the application has each image.
    is_acquired: Vec<bool>,
}

/// A presentation in a queue.
#[derive(Clone)]
pub(crate) struct Presentation {
    swapchain: Arc<SwapchainData>,
    image: usize,
    id: u64,
}

impl Presentation {
    pub(crate) fn perform(&self) {
        self.swapchain.release(self.image);
        self.swapchain.presented.fetch_max(self.id, Ordering::Release);
    }
}

impl SwapchainData {
    fn lock(&self) -> MutexGuard<'_, AcquireState> {
        self.acquire_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, image: usize) {
        if let Some(flag) = self.lock().is_acquired.get_mut(image) {
            *flag = false;
        }
    }

    /// The next image in turn that the application does not have.
    fn acquire(&self) -> Option<u32> {
        let mut turn = self.lock();
        let count = turn.is_acquired.len();
        let free = (0..count).map(|it| (turn.next + it) % count).find(|it| !turn.is_acquired[*it])?;
        turn.is_acquired[free] = true;
        turn.next = (free + 1) % count;
        Some(free as u32)
    }
}

fn create(info: &SwapchainCreateInfoKHR) -> Option<SwapchainKHR> {
    let mut image = ImageCreateInfo::zeroed();
    image.image_type = ImageType::_2D;
    image.format = info.image_format;
    image.extent = Extent3D { width: info.image_extent.width, height: info.image_extent.height, depth: 1 };
    image.mip_levels = 1;
    image.array_layers = info.image_array_layers;
    image.samples = SampleCountFlags::_1;
    image.usage = info.image_usage;
    let count = info.min_image_count.clamp(1, 64) as usize;
    let mut images = Vec::new();
    for _ in 0..count {
        images.push(Image(IMAGES.add(ImageData::of_swapchain(&image)?)));
    }
    let turn = Mutex::new(AcquireState { next: 0, is_acquired: vec![false; count] });
    Some(SwapchainKHR(SWAPCHAINS.add(SwapchainData { images, acquire_state: turn, presented: AtomicU64::new(0) })))
}

pub(crate) fn create_swapchain_khr(c: ApplicationMemory<'_>, call: &CreateSwapchainKHRParams) -> Result {
    match c.get(call.p_create_info).and_then(create) {
        Some(swapchain) => c.write(call.p_swapchain, swapchain),
        None => return Result::ERROR_OUT_OF_DEVICE_MEMORY,
    }
    Result::SUCCESS
}

pub(crate) fn create_shared_swapchains_khr(c: ApplicationMemory<'_>, call: &CreateSharedSwapchainsKHRParams) -> Result {
    let infos = c.slice(call.p_create_infos, call.swapchain_count);
    for (info, out) in infos.iter().zip(c.slice_mut(call.p_swapchains, call.swapchain_count)) {
        match create(info) {
            Some(swapchain) => *out = swapchain,
            None => return Result::ERROR_OUT_OF_DEVICE_MEMORY,
        }
    }
    Result::SUCCESS
}

pub(crate) fn destroy_swapchain_khr(_: ApplicationMemory<'_>, call: &DestroySwapchainKHRParams) {
    let Some(swapchain) = SWAPCHAINS.remove(call.swapchain.0) else { return };
    for image in swapchain.images.iter().rev() {
        IMAGES.remove(image.0);
    }
}

pub(crate) fn get_swapchain_images_khr(c: ApplicationMemory<'_>, call: &GetSwapchainImagesKHRParams) -> Result {
    let Some(swapchain) = SWAPCHAINS.get(call.swapchain.0) else { return Result::ERROR_UNKNOWN };
    c.enumerate_values(call.p_swapchain_image_count, call.p_swapchain_images, &swapchain.images)
}

pub(crate) fn acquire_next_image_khr(c: ApplicationMemory<'_>, call: &AcquireNextImageKHRParams) -> Result {
    acquire(c, call.swapchain, call.timeout, (call.semaphore, call.fence), call.p_image_index)
}

pub(crate) fn acquire_next_image2_khr(c: ApplicationMemory<'_>, call: &AcquireNextImage2KHRParams) -> Result {
    let Some(info) = c.get(call.p_acquire_info) else { return Result::ERROR_UNKNOWN };
    acquire(c, info.swapchain, info.timeout, (info.semaphore, info.fence), call.p_image_index)
}

fn acquire(
    c: ApplicationMemory<'_>,
    swapchain: SwapchainKHR,
    timeout: u64,
    (semaphore, fence): (Semaphore, Fence),
    index: Ptr<u32>,
) -> Result {
    let Some(swapchain) = SWAPCHAINS.get(swapchain.0) else { return Result::ERROR_UNKNOWN };
    let mut acquired = None;
    let waited = queue_engine::wait_until(timeout, || {
        acquired = swapchain.acquire();
        acquired.is_some()
    });
    let Some(image) = acquired else {
        return if timeout == 0 && waited == Result::TIMEOUT { Result::NOT_READY } else { waited };
    };
    c.write(index, image);
    if let Some(semaphore_payload) = SEMAPHORES.get(semaphore.0) {
        queue_engine::signal(&semaphore_payload, 1);
    }
    if let Some(fence_payload) = FENCES.get(fence.0) {
        queue_engine::change(|| fence_payload.is_signaled.store(true, Ordering::Release));
    }
    Result::SUCCESS
}

pub(crate) fn release_swapchain_images_khr(c: ApplicationMemory<'_>, call: &ReleaseSwapchainImagesKHRParams) -> Result {
    let Some(info) = c.get(call.p_release_info) else { return Result::ERROR_UNKNOWN };
    if let Some(swapchain) = SWAPCHAINS.get(info.swapchain.0) {
        let images = c.slice(info.p_image_indices, info.image_index_count);
        queue_engine::change(|| images.iter().for_each(|it| swapchain.release(*it as usize)));
    }
    Result::SUCCESS
}

pub(crate) fn queue_present_khr(c: ApplicationMemory<'_>, call: &QueuePresentKHRParams) -> Result {
    let Some(info) = c.get(call.p_present_info) else { return Result::ERROR_UNKNOWN };
    let count = info.swapchain_count;
    let swapchains = c.slice(info.p_swapchains, count).iter().map(|it| SWAPCHAINS.get(it.0));
    let ids = present_ids(c, info);
    let mut work = Vec::new();
    for (at, (swapchain, image)) in swapchains.zip(c.slice(info.p_image_indices, count)).enumerate() {
        let Some(swapchain) = swapchain else { continue };
        let id = ids.get(at).copied().unwrap_or_default();
        work.push(RecordedOp::Present(Presentation { swapchain, image: *image as usize, id }));
    }
    let fences = c.find::<SwapchainPresentFenceInfoKHR>(info.p_next);
    let fences = fences.map(|it| c.slice(it.p_fences, it.swapchain_count)).unwrap_or_default();
    let batch = QueueBatch {
        waits: semaphore_values(c.slice(info.p_wait_semaphores, info.wait_semaphore_count), &[]),
        recorded_ops: vec![Arc::new(work)],
        fences: fences.iter().filter_map(|it| FENCES.get(it.0)).collect(),
        ..QueueBatch::default()
    };
    let queue = c.queue(call.queue);
    let result = queue_engine::submit(queue.number, [batch], queue.lose_at_submission);
    c.slice_mut(info.p_results, count).fill(result);
    result
}

fn present_ids<'a>(c: ApplicationMemory<'a>, info: &PresentInfoKHR) -> &'a [u64] {
    if let Some(present_id) = c.find::<PresentId2KHR>(info.p_next) {
        return c.slice(present_id.p_present_ids, present_id.swapchain_count);
    }
    let first = c.find::<PresentIdKHR>(info.p_next);
    first.map(|it| c.slice(it.p_present_ids, it.swapchain_count)).unwrap_or_default()
}

/// Sixty images a second, which are never displayed.
const REFRESH_NANOSECONDS: u64 = 16_666_667;

pub(crate) fn get_refresh_cycle_duration_google(
    c: ApplicationMemory<'_>,
    call: &GetRefreshCycleDurationGOOGLEParams,
) -> Result {
    let duration = RefreshCycleDurationGOOGLE { refresh_duration: REFRESH_NANOSECONDS };
    c.write(call.p_display_timing_properties, duration);
    Result::SUCCESS
}

pub(crate) fn get_swapchain_timing_properties_ext(
    c: ApplicationMemory<'_>,
    call: &GetSwapchainTimingPropertiesEXTParams,
) -> Result {
    let Some(out) = c.get_mut(call.p_swapchain_timing_properties) else { return Result::ERROR_UNKNOWN };
    out.refresh_duration = REFRESH_NANOSECONDS;
    out.refresh_interval = REFRESH_NANOSECONDS;
    c.write(call.p_swapchain_timing_properties_counter, 1);
    Result::SUCCESS
}

pub(crate) fn wait_for_present_khr(_: ApplicationMemory<'_>, call: &WaitForPresentKHRParams) -> Result {
    wait_for_present(call.swapchain, call.present_id, call.timeout)
}

pub(crate) fn wait_for_present2_khr(c: ApplicationMemory<'_>, call: &WaitForPresent2KHRParams) -> Result {
    let Some(info) = c.get(call.p_present_wait2_info) else { return Result::ERROR_UNKNOWN };
    wait_for_present(call.swapchain, info.present_id, info.timeout)
}

fn wait_for_present(swapchain: SwapchainKHR, id: u64, timeout: u64) -> Result {
    let Some(swapchain) = SWAPCHAINS.get(swapchain.0) else { return Result::ERROR_UNKNOWN };
    queue_engine::wait_until(timeout, || swapchain.presented.load(Ordering::Acquire) >= id)
}
