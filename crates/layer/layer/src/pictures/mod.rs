//! Pictures of what the application presents.
//!
//! Our functions replace those of the driver in the table, below the shims that record, so a trace has only the
//! application's own calls. Images of swapchains get one more usage, so that they can be copied. A requested frame is
//! copied on the queue that presents it (`screenshot`): the copy waits for the semaphores of the present, and the
//! present waits for a semaphore of ours, one for each image. When an image is presented again, the previous present
//! has waited, so the semaphore is free. A thread of ours waits for the copy and writes the file (`writer`).
//!
//! The driver is called without a lock of ours.

mod screenshot;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lavascope_abi::*;
use lavascope_picture::TexelFormat;
use lavascope_settings::{FrameRange, MessageSeverity, Settings};

use crate::DeviceTable;
use crate::loader::dispatch::dispatch_key;
use crate::loader::instance;
use crate::loader::instance::InstanceData;
use crate::loader::interface::{FAILED, SetLoaderData, out, out_slice};
use crate::loader::proc_addr::WATCHED_DEVICES;
use crate::process::catch_panic::{catch_panic, is_disabled, run_if_enabled};
use crate::process::process_state::PROCESS_STATE;
use crate::report::messages::Messages;
use screenshot::StagingBuffer;
use writer::PictureWriter;
pub(crate) use writer::end_process;

/// Frames that were presented so far, in the whole process, as a replay counts them. Relaxed: it orders nothing.
static FRAMES: AtomicU64 = AtomicU64::new(0);

/// The result of a present that did not take place.
const NOT_PRESENTED: [Result; 3] =
    [Result::ERROR_DEVICE_LOST, Result::ERROR_OUT_OF_DEVICE_MEMORY, Result::ERROR_OUT_OF_HOST_MEMORY];

/// Which frames are written, and where.
pub(crate) struct ScreenshotFrames {
    frames: Vec<FrameRange>,
    folder: PathBuf,
    /// Whether the trace gets a hash of every frame, so that a replay can be compared with it.
    has_hashes: bool,
}

impl ScreenshotFrames {
    pub(crate) fn of(settings: &Settings) -> Option<ScreenshotFrames> {
        let folder = settings.screenshots.clone().unwrap_or_else(|| PathBuf::from("."));
        // The application may go elsewhere.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let frames = settings.screenshot.clone();
        let has_hashes = settings.capture.is_some() && settings.capture_results;
        (has_hashes || !frames.is_empty()).then_some(ScreenshotFrames { frames, folder, has_hashes })
    }

    /// Whether a frame is copied.
    fn contains(&self, frame: u64) -> bool {
        (self.has_hashes && PROCESS_STATE.is_capturing()) || self.is_written(frame)
    }

    /// The setting that asks for pictures.
    fn setting(&self) -> &'static str {
        if self.frames.is_empty() { "setting capture_results" } else { "setting screenshot" }
    }

    /// Whether a frame becomes a file.
    fn is_written(&self, frame: u64) -> bool {
        self.frames.iter().any(|it| it.first <= frame && it.end.is_none_or(|end| frame < end))
    }
}

macro_rules! functions {
    ($($name:ident: $ty:ident,)*) => {
        /// Functions of the driver, for our own objects.
        pub(crate) struct Functions {
            $($name: $ty,)*
        }

        impl Functions {
            /// Before others put theirs into the table.
            pub(crate) fn of(table: &DeviceTable) -> Option<Functions> {
                Some(Functions { $($name: table.$name?,)* })
            }
        }
    };
}

functions! {
    allocate_command_buffers: FnAllocateCommandBuffers,
    allocate_memory: FnAllocateMemory,
    begin_command_buffer: FnBeginCommandBuffer,
    bind_buffer_memory: FnBindBufferMemory,
    cmd_copy_image_to_buffer: FnCmdCopyImageToBuffer,
    cmd_pipeline_barrier: FnCmdPipelineBarrier,
    create_buffer: FnCreateBuffer,
    create_command_pool: FnCreateCommandPool,
    create_fence: FnCreateFence,
    create_semaphore: FnCreateSemaphore,
    destroy_buffer: FnDestroyBuffer,
    destroy_command_pool: FnDestroyCommandPool,
    destroy_fence: FnDestroyFence,
    destroy_semaphore: FnDestroySemaphore,
    end_command_buffer: FnEndCommandBuffer,
    free_memory: FnFreeMemory,
    get_buffer_memory_requirements: FnGetBufferMemoryRequirements,
    map_memory: FnMapMemory,
    queue_submit: FnQueueSubmit,
    reset_command_pool: FnResetCommandPool,
    reset_fences: FnResetFences,
    wait_for_fences: FnWaitForFences,
}

hook_functions! {
    /// The function that was in the table; it may be another one of ours.
    NextFunctions for DeviceTable {
        create_swapchain_khr: FnCreateSwapchainKHR,
        destroy_swapchain_khr: FnDestroySwapchainKHR,
        get_device_queue: FnGetDeviceQueue,
        get_device_queue2: FnGetDeviceQueue2,
        queue_present_khr: FnQueuePresentKHR,
    } and uses {
        get_swapchain_images_khr: FnGetSwapchainImagesKHR,
    }
}

/// Pictures of one device. By the contract of `begin` the device is alive until `end` has returned, and the functions
/// are its own.
pub(crate) struct Pictures {
    wanted: Arc<ScreenshotFrames>,
    device: Device,
    functions: Functions,
    next: NextFunctions,
    set_loader_data: SetLoaderData,
    physical: PhysicalDeviceQueries,
    state: Mutex<PictureState>,
    writer: Arc<PictureWriter>,
    messages: Arc<Messages>,
}

/// What is queried from the physical device.
struct PhysicalDeviceQueries {
    handle: PhysicalDevice,
    capabilities: FnGetPhysicalDeviceSurfaceCapabilitiesKHR,
    format: FnGetPhysicalDeviceImageFormatProperties,
    /// The capabilities of each queue family.
    families: Vec<QueueFlags>,
    memory: PhysicalDeviceMemoryProperties,
}

#[derive(Default)]
struct PictureState {
    /// The family of each queue.
    queues: BTreeMap<u64, u32>,
    swapchains: BTreeMap<u64, Arc<PresentedSwapchain>>,
    /// To be used again.
    free_stagings: Vec<StagingBuffer>,
    /// Not to be used again.
    lost_stagings: Vec<StagingBuffer>,
    /// Semaphores of destroyed swapchains. It is unknown when a present has waited for one, so they stay until the
    /// device is destroyed.
    retired_semaphores: Vec<Semaphore>,
    warned: BTreeSet<String>,
}

/// A swapchain of the application.
struct PresentedSwapchain {
    /// How its images become pictures, or why they do not.
    texel_format: core::result::Result<TexelFormat, &'static str>,
    extent: Extent2D,
    images: OnceLock<Vec<Image>>,
    /// The semaphore that the present of an image waits for, by image. An image that is presented again was acquired in
    /// between, so the previous present has waited.
    semaphores: Mutex<BTreeMap<u32, Semaphore>>,
}

impl PhysicalDeviceQueries {
    /// # Safety
    ///
    /// The physical device must be one of the instance, and be alive for as long as the result is used.
    unsafe fn of(instance: &InstanceData, handle: PhysicalDevice) -> Option<PhysicalDeviceQueries> {
        let table = &instance.table;
        let (mut count, mut memory) = (0_u32, PhysicalDeviceMemoryProperties::zeroed());
        let families = table.get_physical_device_queue_family_properties?;
        // SAFETY: the contract of this function, for functions of the instance; the places are ours, and a null array
        // asks for the count.
        unsafe {
            (table.get_physical_device_memory_properties?)(handle, out(&mut memory));
            families(handle, out(&mut count), Ptr::NULL);
        }
        let mut all = vec![QueueFamilyProperties::zeroed(); count as usize];
        // SAFETY: as for the count, with an array of ours that has as many elements as the count says.
        unsafe { families(handle, out(&mut count), out_slice(&mut all)) };
        Some(PhysicalDeviceQueries {
            handle,
            capabilities: table.get_physical_device_surface_capabilities_khr?,
            format: table.get_physical_device_image_format_properties?,
            families: all.iter().map(|it| it.queue_flags).collect(),
            memory,
        })
    }

    /// Whether images of a swapchain can be copied, and how they become pictures then.
    ///
    /// # Safety
    ///
    /// The info must be that of a valid `vkCreateSwapchainKHR` on a device of this physical device, that has not
    /// returned.
    unsafe fn texel_format_of(&self, info: &SwapchainCreateInfoKHR) -> core::result::Result<TexelFormat, &'static str> {
        let texels = TexelFormat::of(info.image_format).ok_or("the format of its images cannot be shown")?;
        if info.flags.0 & SwapchainCreateFlagsKHR::PROTECTED_KHR.0 != 0 {
            return Err("its images are protected");
        }
        let shared = [PresentModeKHR::SHARED_DEMAND_REFRESH_KHR, PresentModeKHR::SHARED_CONTINUOUS_REFRESH_KHR];
        if shared.contains(&info.present_mode) {
            return Err("its image is shared with the display");
        }
        let mut surface = SurfaceCapabilitiesKHR::zeroed();
        // SAFETY: VUID-VkSwapchainCreateInfoKHR-surface-parameter, by the contract of this function: the surface is
        // alive. The physical device is by that of `of`, and the place is ours.
        let result = unsafe { (self.capabilities)(self.handle, info.surface, out(&mut surface)) };
        let copied = ImageUsageFlags::TRANSFER_SRC.0;
        if result != Result::SUCCESS || surface.supported_usage_flags.0 & copied == 0 {
            return Err("its surface does not support copies of images (VK_IMAGE_USAGE_TRANSFER_SRC_BIT)");
        }
        let is_mutable = info.flags.0 & SwapchainCreateFlagsKHR::MUTABLE_FORMAT_KHR.0 != 0;
        let mutable = ImageCreateFlags::MUTABLE_FORMAT.0 | ImageCreateFlags::EXTENDED_USAGE.0;
        let flags = ImageCreateFlags(if is_mutable { mutable } else { 0 });
        let usage = ImageUsageFlags(info.image_usage.0 | copied);
        let mut properties = ImageFormatProperties::zeroed();
        let (format, ty, tiling) = (info.image_format, ImageType::_2D, ImageTiling::OPTIMAL);
        // SAFETY: a physical device that is alive by the contract of `of`, and a place of ours.
        let result = unsafe { (self.format)(self.handle, format, ty, tiling, usage, flags, out(&mut properties)) };
        if result != Result::SUCCESS {
            return Err("its format does not support copies of images (VK_IMAGE_USAGE_TRANSFER_SRC_BIT)");
        }
        Ok(texels)
    }
}

impl Pictures {
    /// For a new device; none if no pictures of it are wanted, or if it cannot present.
    ///
    /// # Safety
    ///
    /// The device must have just been made on this physical device, which must be one of the instance. The functions
    /// must be its own, and the table must have its functions. It must not be destroyed before `end` has returned, and
    /// the result must not be used after that.
    pub(crate) unsafe fn begin(
        instance: &InstanceData,
        (physical_device, device): (PhysicalDevice, Device),
        (functions, set_loader_data): (Functions, Option<SetLoaderData>),
        table: &mut DeviceTable,
    ) -> Option<Pictures> {
        let wanted = instance.pictures.clone()?;
        table.create_swapchain_khr?;
        Some(Pictures {
            wanted,
            device,
            functions,
            // SAFETY: the contract of this function: a physical device of the instance, which outlives its devices.
            physical: unsafe { PhysicalDeviceQueries::of(instance, physical_device) }?,
            set_loader_data: set_loader_data?,
            next: NextFunctions::install(table),
            state: Mutex::default(),
            writer: Arc::default(),
            messages: Arc::clone(&instance.messages),
        })
    }

    /// The device is about to be destroyed, and idle: pending pictures are written.
    pub(crate) fn end(&self) {
        self.writer.end();
        let PictureState {
            free_stagings: spares, lost_stagings: lost, retired_semaphores: retired, swapchains, ..
        } = std::mem::take(&mut *self.state());
        spares.into_iter().chain(lost).for_each(|it| self.destroy_staging(it));
        let open = swapchains.values().flat_map(|it| lock(&it.semaphores).values().copied().collect::<Vec<_>>());
        for semaphore in retired.into_iter().chain(open) {
            // SAFETY: a semaphore that `semaphore` made on this device, taken out of the state, so that this is done
            // once. The device is about to be destroyed, so that all that was submitted is over.
            unsafe { (self.functions.destroy_semaphore)(self.device, semaphore, Ptr::NULL) };
        }
    }

    fn state(&self) -> MutexGuard<'_, PictureState> {
        lock(&self.state)
    }

    /// Why there is no picture, once.
    fn warn_once(&self, text: &str) {
        let is_new = self.state().warned.insert(text.to_owned());
        if is_new {
            instance::report_setting_problem(&self.messages, MessageSeverity::Warning, self.wanted.setting(), text);
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
///
/// `handle` must be a device or queue that is alive, and stays so while the result is used.
unsafe fn pictures_of<'a>(handle: u64) -> Option<&'a Arc<Pictures>> {
    // SAFETY: by the contract of this function the handle is alive, and so is what it belongs to while the result is
    // used.
    unsafe { WATCHED_DEVICES.get(dispatch_key(handle)) }?.pictures.as_ref()
}

unsafe extern "system" fn get_device_queue(device: Device, family: u32, index: u32, p_queue: Ptr<Queue>) {
    // SAFETY: VUID-vkGetDeviceQueue-device-parameter: it is alive until the call returns.
    let Some(pictures) = (unsafe { pictures_of(device.0) }) else { return };
    let Some(next) = pictures.next.get_device_queue else { return };
    // SAFETY: what stood in the table for this command, with what the application passed to it.
    unsafe { next(device, family, index, p_queue) };
    // SAFETY: VUID-vkGetDeviceQueue-pQueue-parameter: a place, which the call has written.
    let queue = unsafe { *p_queue.as_ptr() };
    catch_panic("vkGetDeviceQueue", || _ = pictures.state().queues.insert(queue.0, family), || ());
}

unsafe extern "system" fn get_device_queue2(device: Device, p_info: Ptr<DeviceQueueInfo2>, p_queue: Ptr<Queue>) {
    // SAFETY: VUID-vkGetDeviceQueue2-device-parameter: it is alive until the call returns.
    let Some(pictures) = (unsafe { pictures_of(device.0) }) else { return };
    let Some(next) = pictures.next.get_device_queue2 else { return };
    // SAFETY: what stood in the table for this command, with what the application passed to it.
    unsafe { next(device, p_info, p_queue) };
    // SAFETY: VUID-vkGetDeviceQueue2-pQueue-parameter: a place, which the call has written.
    let queue = unsafe { *p_queue.as_ptr() };
    // SAFETY: VUID-vkGetDeviceQueue2-pQueueInfo-parameter: a valid info, which stays until the call returns.
    let family = unsafe { (*p_info.as_ptr()).queue_family_index };
    catch_panic("vkGetDeviceQueue2", || _ = pictures.state().queues.insert(queue.0, family), || ());
}

unsafe extern "system" fn create_swapchain_khr(
    device: Device,
    p_info: Ptr<SwapchainCreateInfoKHR>,
    p_allocator: Ptr<Opaque>,
    p_swapchain: Ptr<SwapchainKHR>,
) -> Result {
    // SAFETY: VUID-vkCreateSwapchainKHR-device-parameter: it is alive until the call returns.
    let Some(pictures) = (unsafe { pictures_of(device.0) }) else { return FAILED };
    let Some(next) = pictures.next.create_swapchain_khr else { return FAILED };
    // SAFETY: VUID-vkCreateSwapchainKHR-pCreateInfo-parameter: a valid info.
    let info = unsafe { *p_info.as_ptr() };
    // SAFETY: the info of a `vkCreateSwapchainKHR` on this device, that has not returned.
    let texels = run_if_enabled(
        "vkCreateSwapchainKHR",
        || unsafe { pictures.physical.texel_format_of(&info) },
        || Err("internal error of Lavascope"),
    );
    let usage = ImageUsageFlags(info.image_usage.0 | ImageUsageFlags::TRANSFER_SRC.0);
    let own = SwapchainCreateInfoKHR { image_usage: usage, ..info };
    // SAFETY: what stood in the table for this command, with what the application passed to it, or with a usage more
    // that surface and format were found to allow; that info is ours and outlives the call.
    let result = unsafe { next(device, if texels.is_ok() { Ptr::to(&own) } else { p_info }, p_allocator, p_swapchain) };
    if result == Result::SUCCESS {
        // SAFETY: VUID-vkCreateSwapchainKHR-pSwapchain-parameter: a place, which the call that succeeded has written.
        let swapchain = unsafe { *p_swapchain.as_ptr() };
        let (images, semaphores) = (OnceLock::new(), Mutex::default());
        let made = Arc::new(PresentedSwapchain { texel_format: texels, extent: info.image_extent, images, semaphores });
        catch_panic("vkCreateSwapchainKHR", || _ = pictures.state().swapchains.insert(swapchain.0, made), || ());
    }
    result
}

unsafe extern "system" fn destroy_swapchain_khr(device: Device, swapchain: SwapchainKHR, p_allocator: Ptr<Opaque>) {
    // SAFETY: VUID-vkDestroySwapchainKHR-device-parameter: it is alive until the call returns.
    let Some(pictures) = (unsafe { pictures_of(device.0) }) else { return };
    let forget = || {
        let mut state = pictures.state();
        if let Some(gone) = state.swapchains.remove(&swapchain.0) {
            state.retired_semaphores.extend(std::mem::take(&mut *lock(&gone.semaphores)).into_values());
        }
    };
    // Before the driver may give the same handle to another one.
    catch_panic("vkDestroySwapchainKHR", forget, || ());
    if let Some(next) = pictures.next.destroy_swapchain_khr {
        // SAFETY: what stood in the table for this command, with what the application passed to it.
        unsafe { next(device, swapchain, p_allocator) };
    }
}

unsafe extern "system" fn queue_present_khr(queue: Queue, p_info: Ptr<PresentInfoKHR>) -> Result {
    // SAFETY: VUID-vkQueuePresentKHR-queue-parameter: it is alive until the call returns.
    let Some(pictures) = (unsafe { pictures_of(queue.0) }) else { return FAILED };
    let Some(next) = pictures.next.queue_present_khr else { return FAILED };
    let frame = FRAMES.fetch_add(1, Ordering::Relaxed);
    // SAFETY: VUID-vkQueuePresentKHR-pPresentInfo-parameter: a valid info, which stays until the call returns.
    let info = unsafe { &*p_info.as_ptr() };
    let shot = match pictures.wanted.contains(frame) && !is_disabled() {
        // SAFETY: the parameters of a `vkQueuePresentKHR` that is passed on below.
        true => unsafe { pictures.copy_frame(queue, info, frame) },
        false => None,
    };
    let Some(mut shot) = shot else {
        // SAFETY: what stood in the table for this command, with what the application passed to it.
        let result = unsafe { next(queue, p_info) };
        if NOT_PRESENTED.contains(&result) {
            FRAMES.fetch_sub(1, Ordering::Relaxed);
        }
        return result;
    };
    let waits = [shot.semaphore];
    let own = PresentInfoKHR { wait_semaphore_count: 1, p_wait_semaphores: Ptr::to_slice(&waits), ..*info };
    // SAFETY: what stood in the table for this command, with what the application passed to it but for the semaphores:
    // the copy waits for those, and signals the one of ours that the present waits for. That info is ours and outlives
    // the call.
    let result = unsafe { next(queue, Ptr::to(&own)) };
    if NOT_PRESENTED.contains(&result) {
        FRAMES.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the parameters of this present, which did not take place, so that nothing has waited for the
        // semaphore that the shot signals.
        unsafe { pictures.restore_semaphores(queue, info, shot.semaphore) };
        shot.windows.clear();
    }
    catch_panic("vkQueuePresentKHR", || pictures.queue_write(shot), || ());
    result
}
