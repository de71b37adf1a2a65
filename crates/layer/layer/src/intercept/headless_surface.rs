//! Headless surfaces for drivers that have none: swapchains on them are plain images.
//!
//! If a replay is captured again, it presents its frames to such a surface. So the new trace has the frames, even on
//! machines without a display. The functions here replace those of the driver in the tables, below the shims that
//! record. Calls about other surfaces are passed on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;

use crate::loader::chain::find_set_loader_data;
use crate::loader::dispatch::dispatch_key;
use crate::loader::enumerate::write_enumeration;
use crate::loader::interface::{FAILED, out};
use crate::loader::proc_addr::{WATCHED_DEVICES, WATCHED_INSTANCES};
use crate::process::catch_panic::catch_panic;
use crate::{DeviceTable, InstanceTable};

/// Handles of our surfaces: no address has these bits.
const FIRST_HANDLE: u64 = 0x4c76_0000_0000_0001;
const IMAGES_MIN: u32 = 2;
const IMAGES_MAX: u32 = 8;
const EXTENT_MAX: u32 = 16384;
/// The extent of a surface without a size of its own.
const ANY_EXTENT: u32 = u32::MAX;
const FORMATS: [Format; 4] =
    [Format::B8G8R8A8_UNORM, Format::B8G8R8A8_SRGB, Format::R8G8B8A8_UNORM, Format::R8G8B8A8_SRGB];
const PRESENT_MODES: [PresentModeKHR; 3] =
    [PresentModeKHR::FIFO_KHR, PresentModeKHR::IMMEDIATE_KHR, PresentModeKHR::MAILBOX_KHR];

/// All headless surfaces and swapchains of this process.
struct HeadlessState {
    next_handle: u64,
    surfaces: BTreeSet<u64>,
    swapchains: BTreeMap<u64, HeadlessSwapchain>,
}

/// Images that are acquired in turns.
#[derive(Default)]
struct HeadlessSwapchain {
    images: Vec<(Image, DeviceMemory)>,
    next_image: usize,
}

static STATE: Mutex<HeadlessState> =
    Mutex::new(HeadlessState { next_handle: FIRST_HANDLE, surfaces: BTreeSet::new(), swapchains: BTreeMap::new() });

fn state() -> MutexGuard<'static, HeadlessState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HeadlessState {
    fn new_handle(&mut self) -> u64 {
        self.next_handle += 1;
        self.next_handle
    }
}

fn is_headless(surface: SurfaceKHR) -> bool {
    state().surfaces.contains(&surface.0)
}

hook_functions! {
    /// Functions of an instance.
    HeadlessInstanceFunctions for InstanceTable {
        destroy_surface_khr: FnDestroySurfaceKHR,
        get_physical_device_surface_support_khr: FnGetPhysicalDeviceSurfaceSupportKHR,
        get_physical_device_surface_capabilities_khr: FnGetPhysicalDeviceSurfaceCapabilitiesKHR,
        get_physical_device_surface_capabilities2_khr: FnGetPhysicalDeviceSurfaceCapabilities2KHR,
        get_physical_device_surface_formats_khr: FnGetPhysicalDeviceSurfaceFormatsKHR,
        get_physical_device_surface_formats2_khr: FnGetPhysicalDeviceSurfaceFormats2KHR,
        get_physical_device_surface_present_modes_khr: FnGetPhysicalDeviceSurfacePresentModesKHR,
    } and uses {}
}

hook_functions! {
    /// Functions of a device.
    HeadlessDeviceFunctions for DeviceTable {
        create_swapchain_khr: FnCreateSwapchainKHR,
        destroy_swapchain_khr: FnDestroySwapchainKHR,
        get_swapchain_images_khr: FnGetSwapchainImagesKHR,
        acquire_next_image_khr: FnAcquireNextImageKHR,
        acquire_next_image2_khr: FnAcquireNextImage2KHR,
        queue_present_khr: FnQueuePresentKHR,
    } and uses {
        create_image: FnCreateImage,
        destroy_image: FnDestroyImage,
        get_image_memory_requirements: FnGetImageMemoryRequirements,
        allocate_memory: FnAllocateMemory,
        free_memory: FnFreeMemory,
        bind_image_memory: FnBindImageMemory,
        queue_submit: FnQueueSubmit,
    }
}

impl HeadlessInstanceFunctions {
    pub(crate) fn begin(table: &mut InstanceTable) -> HeadlessInstanceFunctions {
        table.create_headless_surface_ext = Some(create_headless_surface_ext);
        HeadlessInstanceFunctions::install(table)
    }
}

/// A device whose swapchains may be ours.
pub(crate) struct HeadlessDevice {
    next: HeadlessDeviceFunctions,
    device: Device,
    /// Where acquiring an image signals.
    queue: Queue,
}

impl HeadlessDevice {
    /// None if the driver does not know swapchains at all.
    ///
    /// # Safety
    ///
    /// The device must have just been made with this info, by a `vkCreateDevice` that the loader passed to this layer
    /// and that has not returned to the application, and the table must have its functions. The result must not be used
    /// once the device is destroyed.
    pub(crate) unsafe fn begin(
        device: Device,
        info: &DeviceCreateInfo,
        table: &mut DeviceTable,
    ) -> Option<HeadlessDevice> {
        table.create_swapchain_khr?;
        let queues = match info.queue_create_info_count {
            0 => &[],
            // SAFETY: VUID-VkDeviceCreateInfo-pQueueCreateInfos-parameter, by the contract of this function: as many
            // infos as the count says.
            count => unsafe { std::slice::from_raw_parts(info.p_queue_create_infos.as_ptr(), count as usize) },
        };
        // Others are had by `vkGetDeviceQueue2` alone.
        let first = queues.iter().find(|it| it.flags.0 == 0);
        let (get, family, mut queue) = (table.get_device_queue?, first?.queue_family_index, Queue(0));
        // SAFETY: the device was made with a queue of this family (VUID-vkGetDeviceQueue-queueFamilyIndex-00384),
        // without flags (VUID-vkGetDeviceQueue-flags-01841); the place is ours.
        unsafe { get(device, family, 0, out(&mut queue)) };
        // SAFETY: the chain of a `vkCreateDevice` that the loader handed to this layer, by the contract of this function.
        if let Some(set) = unsafe { find_set_loader_data(info.p_next) } {
            // SAFETY: the loader's function, for a dispatchable object of a device that it is making: layers below us know
            // the queue by what this writes, also if the application never asks for it.
            unsafe { set(device, queue.0) };
        }
        Some(HeadlessDevice { next: HeadlessDeviceFunctions::install(table), device, queue })
    }

    /// # Safety
    ///
    /// The info must be that of a `vkCreateSwapchainKHR` on this device that obeys its VUIDs and has not returned.
    unsafe fn create_swapchain(
        &self,
        info: &SwapchainCreateInfoKHR,
    ) -> core::result::Result<HeadlessSwapchain, Result> {
        let mut made = HeadlessSwapchain::default();
        for _ in 0..info.min_image_count.clamp(IMAGES_MIN, IMAGES_MAX) {
            // SAFETY: the contract of this function, which is that of `image`.
            match unsafe { self.create_image(info) } {
                Ok(pair) => made.images.push(pair),
                Err(result) => {
                    // SAFETY: images that were just made, which nobody else has.
                    unsafe { self.destroy_images(&made) };
                    return Err(result);
                }
            }
        }
        Ok(made)
    }

    /// # Safety
    ///
    /// The info must be that of a `vkCreateSwapchainKHR` on this device that obeys its VUIDs and has not returned.
    unsafe fn create_image(&self, of: &SwapchainCreateInfoKHR) -> core::result::Result<(Image, DeviceMemory), Result> {
        let is_mutable = of.flags.0 & SwapchainCreateFlagsKHR::MUTABLE_FORMAT_KHR.0 != 0;
        let mutable = ImageCreateFlags::MUTABLE_FORMAT.0 | ImageCreateFlags::EXTENDED_USAGE.0;
        let info = ImageCreateInfo {
            flags: ImageCreateFlags(if is_mutable { mutable } else { 0 }),
            image_type: ImageType(1),
            format: of.image_format,
            extent: Extent3D { width: of.image_extent.width, height: of.image_extent.height, depth: 1 },
            mip_levels: 1,
            array_layers: of.image_array_layers,
            samples: SampleCountFlags(1),
            usage: of.image_usage,
            ..ImageCreateInfo::zeroed()
        };
        let next = &self.next;
        let functions = (next.create_image.zip(next.bind_image_memory), next.get_image_memory_requirements);
        let (Some((create, bind)), Some(ask)) = functions else { return Err(FAILED) };
        let (Some(allocate), device) = (next.allocate_memory, self.device) else { return Err(FAILED) };
        let (mut image, mut memory, mut needs) = (Image(0), DeviceMemory(0), MemoryRequirements::zeroed());
        // SAFETY: a device that is alive by the contract of `begin`, a structure and a place of ours. By the contract
        // of this function format, extent and usage are such as `capabilities` and `formats` allow.
        succeeded(unsafe { create(device, Ptr::to(&info), Ptr::NULL, out(&mut image)) })?;
        // SAFETY: the image was just made on this device; the place is ours.
        unsafe { ask(device, image, out(&mut needs)) };
        let info = MemoryAllocateInfo {
            allocation_size: needs.size,
            memory_type_index: needs.memory_type_bits.trailing_zeros(),
            ..MemoryAllocateInfo::zeroed()
        };
        // SAFETY: as for the image; the size is not zero, and the type is one that the driver gave for the image.
        let allocated = succeeded(unsafe { allocate(device, Ptr::to(&info), Ptr::NULL, out(&mut memory)) });
        // SAFETY: both were just made, the memory is as large as the image needs and of a type that it allows.
        let bound = allocated.and_then(|()| succeeded(unsafe { bind(device, image, memory, 0) }));
        if let Err(result) = bound {
            // SAFETY: objects that were just made, which nobody else has; memory that was not allocated is null.
            unsafe { self.destroy_images(&HeadlessSwapchain { images: vec![(image, memory)], next_image: 0 }) };
            return Err(result);
        }
        Ok((image, memory))
    }

    /// # Safety
    ///
    /// The images must be of this device, all uses of them must have completed, and they must not be used afterwards.
    unsafe fn destroy_images(&self, swapchain: &HeadlessSwapchain) {
        let (Some(destroy), Some(free)) = (self.next.destroy_image, self.next.free_memory) else { return };
        for (image, memory) in &swapchain.images {
            // SAFETY: the contract of this function, for a device that is alive by that of `begin`; null is allowed.
            unsafe {
                destroy(self.device, *image, Ptr::NULL);
                free(self.device, *memory, Ptr::NULL);
            }
        }
    }

    /// A submission that only waits and signals.
    ///
    /// # Safety
    ///
    /// The queue must be of this device, and nobody else may use it until this returns. The semaphores and the fence
    /// must be such as the VUIDs of `vkQueueSubmit` ask for.
    unsafe fn submit(&self, queue: Queue, waits: &[Semaphore], signals: &[Semaphore], fence: Fence) -> Result {
        let stages = vec![PipelineStageFlags::ALL_COMMANDS; waits.len()];
        let info = SubmitInfo {
            wait_semaphore_count: waits.len() as u32,
            p_wait_semaphores: Ptr::to_slice(waits),
            p_wait_dst_stage_mask: Ptr::to_slice(&stages),
            signal_semaphore_count: signals.len() as u32,
            p_signal_semaphores: Ptr::to_slice(signals),
            ..SubmitInfo::zeroed()
        };
        // SAFETY: the contract of this function; the info and its lists are ours and outlive the call.
        self.next.queue_submit.map_or(FAILED, |submit| unsafe { submit(queue, 1, Ptr::to(&info), fence) })
    }
}

fn succeeded(result: Result) -> core::result::Result<(), Result> {
    if result.0 < 0 { Err(result) } else { Ok(()) }
}

/// # Safety
///
/// An instance or physical device that is alive, and stays so while the result is used.
unsafe fn headless_instance_of<'a>(handle: u64) -> Option<&'a HeadlessInstanceFunctions> {
    // SAFETY: by the contract of this function the handle is alive, and so is what it belongs to while the result is
    // used.
    unsafe { WATCHED_INSTANCES.get(dispatch_key(handle)) }?.headless_surfaces.as_ref()
}

/// # Safety
///
/// A device, queue or command buffer that is alive, and stays so while the result is used.
unsafe fn headless_device_of<'a>(handle: u64) -> Option<&'a HeadlessDevice> {
    // SAFETY: by the contract of this function the handle is alive, and so is what it belongs to while the result is
    // used.
    unsafe { WATCHED_DEVICES.get(dispatch_key(handle)) }?.headless_surfaces.as_ref()
}

unsafe extern "system" fn create_headless_surface_ext(
    _instance: Instance,
    _p_create_info: Ptr<HeadlessSurfaceCreateInfoEXT>,
    _p_allocator: Ptr<Opaque>,
    p_surface: Ptr<SurfaceKHR>,
) -> Result {
    let make = || {
        let mut state = state();
        let handle = state.new_handle();
        state.surfaces.insert(handle);
        // SAFETY: VUID-vkCreateHeadlessSurfaceEXT-pSurface-parameter: a place for the handle.
        unsafe { p_surface.as_mut_ptr().write(SurfaceKHR(handle)) };
        Result::SUCCESS
    };
    catch_panic("vkCreateHeadlessSurfaceEXT", make, || FAILED)
}

unsafe extern "system" fn destroy_surface_khr(instance: Instance, surface: SurfaceKHR, p_allocator: Ptr<Opaque>) {
    if catch_panic("vkDestroySurfaceKHR", || state().surfaces.remove(&surface.0), || true) {
        return;
    }
    // SAFETY: VUID-vkDestroySurfaceKHR-instance-parameter: it is alive until the call returns.
    let next = unsafe { headless_instance_of(instance.0) }.and_then(|it| it.destroy_surface_khr);
    if let Some(next) = next {
        // SAFETY: what stood in the table for this command, with what the application passed to it.
        unsafe { next(instance, surface, p_allocator) };
    }
}

unsafe extern "system" fn get_physical_device_surface_support_khr(
    physical_device: PhysicalDevice,
    family: u32,
    surface: SurfaceKHR,
    p_supported: Ptr<Bool32>,
) -> Result {
    if is_headless(surface) {
        // SAFETY: VUID-vkGetPhysicalDeviceSurfaceSupportKHR-pSupported-parameter: a place for the answer.
        unsafe { p_supported.as_mut_ptr().write(Bool32::TRUE) };
        return Result::SUCCESS;
    }
    // SAFETY: VUID-vkGetPhysicalDeviceSurfaceSupportKHR-physicalDevice-parameter: it is alive until the call returns.
    let owner = unsafe { headless_instance_of(physical_device.0) };
    let next = owner.and_then(|it| it.get_physical_device_surface_support_khr);
    // SAFETY: what stood in the table for this command, with what the application passed to it.
    next.map_or(FAILED, |next| unsafe { next(physical_device, family, surface, p_supported) })
}

/// The capabilities of our surfaces.
fn capabilities() -> SurfaceCapabilitiesKHR {
    let extent = |it| Extent2D { width: it, height: it };
    let usage = ImageUsageFlags::TRANSFER_SRC.0
        | ImageUsageFlags::TRANSFER_DST.0
        | ImageUsageFlags::SAMPLED.0
        | ImageUsageFlags::COLOR_ATTACHMENT.0
        | ImageUsageFlags::INPUT_ATTACHMENT.0;
    SurfaceCapabilitiesKHR {
        min_image_count: IMAGES_MIN,
        max_image_count: IMAGES_MAX,
        current_extent: extent(ANY_EXTENT),
        min_image_extent: extent(1),
        max_image_extent: extent(EXTENT_MAX),
        max_image_array_layers: 1,
        supported_transforms: SurfaceTransformFlagsKHR(1),
        current_transform: SurfaceTransformFlagsKHR(1),
        supported_composite_alpha: CompositeAlphaFlagsKHR(1),
        supported_usage_flags: ImageUsageFlags(usage),
    }
}

unsafe extern "system" fn get_physical_device_surface_capabilities_khr(
    physical_device: PhysicalDevice,
    surface: SurfaceKHR,
    p_capabilities: Ptr<SurfaceCapabilitiesKHR>,
) -> Result {
    if is_headless(surface) {
        // SAFETY: VUID-vkGetPhysicalDeviceSurfaceCapabilitiesKHR-pSurfaceCapabilities-parameter: a place for the
        // answer.
        unsafe { p_capabilities.as_mut_ptr().write(capabilities()) };
        return Result::SUCCESS;
    }
    // SAFETY: VUID-vkGetPhysicalDeviceSurfaceCapabilitiesKHR-physicalDevice-parameter: it is alive until the call
    // returns.
    let owner = unsafe { headless_instance_of(physical_device.0) };
    let next = owner.and_then(|it| it.get_physical_device_surface_capabilities_khr);
    // SAFETY: what stood in the table for this command, with what the application passed to it.
    next.map_or(FAILED, |next| unsafe { next(physical_device, surface, p_capabilities) })
}

unsafe extern "system" fn get_physical_device_surface_capabilities2_khr(
    physical_device: PhysicalDevice,
    p_info: Ptr<PhysicalDeviceSurfaceInfo2KHR>,
    p_capabilities: Ptr<SurfaceCapabilities2KHR>,
) -> Result {
    // SAFETY: VUID-vkGetPhysicalDeviceSurfaceCapabilities2KHR-pSurfaceInfo-parameter: a valid structure.
    if is_headless(unsafe { (*p_info.as_ptr()).surface }) {
        // SAFETY: VUID-vkGetPhysicalDeviceSurfaceCapabilities2KHR-pSurfaceCapabilities-parameter: a structure to be
        // written.
        unsafe { (*p_capabilities.as_mut_ptr()).surface_capabilities = capabilities() };
        return Result::SUCCESS;
    }
    // SAFETY: VUID-vkGetPhysicalDeviceSurfaceCapabilities2KHR-physicalDevice-parameter: it is alive until the call
    // returns.
    let owner = unsafe { headless_instance_of(physical_device.0) };
    let next = owner.and_then(|it| it.get_physical_device_surface_capabilities2_khr);
    // SAFETY: what stood in the table for this command, with what the application passed to it.
    next.map_or(FAILED, |next| unsafe { next(physical_device, p_info, p_capabilities) })
}

fn formats() -> [SurfaceFormatKHR; 4] {
    FORMATS.map(|format| SurfaceFormatKHR { format, ..SurfaceFormatKHR::zeroed() })
}

unsafe extern "system" fn get_physical_device_surface_formats_khr(
    physical_device: PhysicalDevice,
    surface: SurfaceKHR,
    p_count: Ptr<u32>,
    p_formats: Ptr<SurfaceFormatKHR>,
) -> Result {
    if is_headless(surface) {
        // SAFETY: VUID-vkGetPhysicalDeviceSurfaceFormatsKHR-pSurfaceFormatCount-parameter and
        // -pSurfaceFormats-parameter.
        return unsafe { write_enumeration(&formats(), p_count, p_formats) };
    }
    // SAFETY: VUID-vkGetPhysicalDeviceSurfaceFormatsKHR-physicalDevice-parameter: it is alive until the call returns.
    let owner = unsafe { headless_instance_of(physical_device.0) };
    let next = owner.and_then(|it| it.get_physical_device_surface_formats_khr);
    // SAFETY: what stood in the table for this command, with what the application passed to it.
    next.map_or(FAILED, |next| unsafe { next(physical_device, surface, p_count, p_formats) })
}

unsafe extern "system" fn get_physical_device_surface_formats2_khr(
    physical_device: PhysicalDevice,
    p_info: Ptr<PhysicalDeviceSurfaceInfo2KHR>,
    p_count: Ptr<u32>,
    p_formats: Ptr<SurfaceFormat2KHR>,
) -> Result {
    // SAFETY: VUID-vkGetPhysicalDeviceSurfaceFormats2KHR-pSurfaceInfo-parameter: a valid structure.
    if is_headless(unsafe { (*p_info.as_ptr()).surface }) {
        let all = formats();
        // SAFETY: VUID-vkGetPhysicalDeviceSurfaceFormats2KHR-pSurfaceFormatCount-parameter: a count.
        let room = if p_formats.is_null() { 0 } else { unsafe { *p_count.as_ptr() as usize } };
        let count = if p_formats.is_null() { all.len() } else { room.min(all.len()) };
        for (at, format) in all.into_iter().enumerate().take(room) {
            // SAFETY: VUID-vkGetPhysicalDeviceSurfaceFormats2KHR-pSurfaceFormats-parameter: as many structures to be
            // written as the count says, and `at` is below that.
            unsafe { (*p_formats.as_mut_ptr().add(at)).surface_format = format };
        }
        // SAFETY: VUID-vkGetPhysicalDeviceSurfaceFormats2KHR-pSurfaceFormatCount-parameter: the count may be written.
        unsafe { p_count.as_mut_ptr().write(count as u32) };
        return if p_formats.is_null() || room >= FORMATS.len() { Result::SUCCESS } else { Result::INCOMPLETE };
    }
    // SAFETY: VUID-vkGetPhysicalDeviceSurfaceFormats2KHR-physicalDevice-parameter: it is alive until the call returns.
    let owner = unsafe { headless_instance_of(physical_device.0) };
    let next = owner.and_then(|it| it.get_physical_device_surface_formats2_khr);
    // SAFETY: what stood in the table for this command, with what the application passed to it.
    next.map_or(FAILED, |next| unsafe { next(physical_device, p_info, p_count, p_formats) })
}

unsafe extern "system" fn get_physical_device_surface_present_modes_khr(
    physical_device: PhysicalDevice,
    surface: SurfaceKHR,
    p_count: Ptr<u32>,
    p_modes: Ptr<PresentModeKHR>,
) -> Result {
    if is_headless(surface) {
        // SAFETY: VUID-vkGetPhysicalDeviceSurfacePresentModesKHR-pPresentModeCount-parameter and
        // -pPresentModes-parameter.
        return unsafe { write_enumeration(&PRESENT_MODES, p_count, p_modes) };
    }
    // SAFETY: VUID-vkGetPhysicalDeviceSurfacePresentModesKHR-physicalDevice-parameter: it is alive until the call
    // returns.
    let owner = unsafe { headless_instance_of(physical_device.0) };
    let next = owner.and_then(|it| it.get_physical_device_surface_present_modes_khr);
    // SAFETY: what stood in the table for this command, with what the application passed to it.
    next.map_or(FAILED, |next| unsafe { next(physical_device, surface, p_count, p_modes) })
}

unsafe extern "system" fn create_swapchain_khr(
    device: Device,
    p_info: Ptr<SwapchainCreateInfoKHR>,
    p_allocator: Ptr<Opaque>,
    p_swapchain: Ptr<SwapchainKHR>,
) -> Result {
    // SAFETY: VUID-vkCreateSwapchainKHR-device-parameter: it is alive until the call returns.
    let Some(unseen) = (unsafe { headless_device_of(device.0) }) else { return FAILED };
    // SAFETY: VUID-vkCreateSwapchainKHR-pCreateInfo-parameter: a valid info, which stays until the call returns.
    let info = unsafe { &*p_info.as_ptr() };
    if !is_headless(info.surface) {
        // SAFETY: what stood in the table for this command, with what the application passed to it.
        let pass_on = |next: FnCreateSwapchainKHR| unsafe { next(device, p_info, p_allocator, p_swapchain) };
        return unseen.next.create_swapchain_khr.map_or(FAILED, pass_on);
    }
    let make = || {
        // SAFETY: the info is that of a `vkCreateSwapchainKHR` on this device, for a surface of ours.
        let made = match unsafe { unseen.create_swapchain(info) } {
            Ok(headless_swapchain) => headless_swapchain,
            Err(result) => return result,
        };
        let mut state = state();
        let handle = state.new_handle();
        state.swapchains.insert(handle, made);
        // SAFETY: VUID-vkCreateSwapchainKHR-pSwapchain-parameter: a place for the handle.
        unsafe { p_swapchain.as_mut_ptr().write(SwapchainKHR(handle)) };
        Result::SUCCESS
    };
    catch_panic("vkCreateSwapchainKHR", make, || FAILED)
}

unsafe extern "system" fn destroy_swapchain_khr(device: Device, swapchain: SwapchainKHR, p_allocator: Ptr<Opaque>) {
    // SAFETY: VUID-vkDestroySwapchainKHR-device-parameter: it is alive until the call returns.
    let Some(unseen) = (unsafe { headless_device_of(device.0) }) else { return };
    let gone = catch_panic("vkDestroySwapchainKHR", || state().swapchains.remove(&swapchain.0), || None);
    match (gone, unseen.next.destroy_swapchain_khr) {
        // SAFETY: VUID-vkDestroySwapchainKHR-swapchain-01282: all uses of the images are over. It was taken out of the
        // state, so that this is done once.
        (Some(headless_swapchain), _) => unsafe { unseen.destroy_images(&headless_swapchain) },
        // SAFETY: what stood in the table for this command, with what the application passed to it.
        (None, Some(next)) => unsafe { next(device, swapchain, p_allocator) },
        (None, None) => {}
    }
}

unsafe extern "system" fn get_swapchain_images_khr(
    device: Device,
    swapchain: SwapchainKHR,
    p_count: Ptr<u32>,
    p_images: Ptr<Image>,
) -> Result {
    // SAFETY: VUID-vkGetSwapchainImagesKHR-device-parameter: it is alive until the call returns.
    let Some(unseen) = (unsafe { headless_device_of(device.0) }) else { return FAILED };
    let images = |it: &HeadlessSwapchain| it.images.iter().map(|it| it.0).collect::<Vec<Image>>();
    let own = catch_panic("vkGetSwapchainImagesKHR", || state().swapchains.get(&swapchain.0).map(images), || None);
    match own {
        // SAFETY: VUID-vkGetSwapchainImagesKHR-pSwapchainImageCount-parameter and -pSwapchainImages-parameter.
        Some(all) => unsafe { write_enumeration(&all, p_count, p_images) },
        None => {
            let next = unseen.next.get_swapchain_images_khr;
            // SAFETY: what stood in the table for this command, with what the application passed to it.
            next.map_or(FAILED, |next| unsafe { next(device, swapchain, p_count, p_images) })
        }
    }
}

/// The next image of a swapchain of ours.
fn advance_image(swapchain: SwapchainKHR) -> Option<u32> {
    let mut state = state();
    let headless_swapchain = state.swapchains.get_mut(&swapchain.0)?;
    let at = headless_swapchain.next_image % headless_swapchain.images.len().max(1);
    headless_swapchain.next_image = at + 1;
    Some(at as u32)
}

/// Acquires an image of a swapchain of ours; none for another one.
///
/// # Safety
///
/// The parameters must be those of a valid `vkAcquireNextImageKHR` or `vkAcquireNextImage2KHR` on the device of
/// `unseen` that has not returned.
unsafe fn acquire(
    unseen: &HeadlessDevice,
    swapchain: SwapchainKHR,
    (semaphore, fence): (Semaphore, Fence),
    p_index: Ptr<u32>,
) -> Option<Result> {
    let index =
        crate::process::catch_panic::catch_panic("vkAcquireNextImageKHR", || advance_image(swapchain), || None)?;
    let signals = if semaphore.0 == 0 { vec![] } else { vec![semaphore] };
    // SAFETY: VUID-vkAcquireNextImageKHR-pImageIndex-parameter, or that of `vkAcquireNextImage2KHR`, by the contract of
    // this function: a place for the index.
    unsafe { p_index.as_mut_ptr().write(index) };
    // SAFETY: VUID-vkAcquireNextImageKHR-semaphore-01286 and VUID-vkAcquireNextImageKHR-fence-01287, or those of
    // VkAcquireNextImageInfoKHR, by the contract of this function: the semaphore and the fence are unsignaled. An
    // application that presents to such a surface does not use the first queue on other threads while it acquires an
    // image.
    Some(unsafe { unseen.submit(unseen.queue, &[], &signals, fence) })
}

unsafe extern "system" fn acquire_next_image_khr(
    device: Device,
    swapchain: SwapchainKHR,
    timeout: u64,
    semaphore: Semaphore,
    fence: Fence,
    p_index: Ptr<u32>,
) -> Result {
    // SAFETY: VUID-vkAcquireNextImageKHR-device-parameter: it is alive until the call returns.
    let Some(unseen) = (unsafe { headless_device_of(device.0) }) else { return FAILED };
    // SAFETY: the parameters are what the application called `vkAcquireNextImageKHR` with.
    let acquired = unsafe { acquire(unseen, swapchain, (semaphore, fence), p_index) };
    acquired.unwrap_or_else(|| {
        let next = unseen.next.acquire_next_image_khr;
        // SAFETY: what stood in the table for this command, with what the application passed to it.
        next.map_or(FAILED, |next| unsafe { next(device, swapchain, timeout, semaphore, fence, p_index) })
    })
}

unsafe extern "system" fn acquire_next_image2_khr(
    device: Device,
    p_info: Ptr<AcquireNextImageInfoKHR>,
    p_index: Ptr<u32>,
) -> Result {
    // SAFETY: VUID-vkAcquireNextImage2KHR-device-parameter: it is alive until the call returns.
    let Some(unseen) = (unsafe { headless_device_of(device.0) }) else { return FAILED };
    // SAFETY: VUID-vkAcquireNextImage2KHR-pAcquireInfo-parameter: a valid info.
    let info = unsafe { &*p_info.as_ptr() };
    // SAFETY: the parameters are what the application called `vkAcquireNextImage2KHR` with.
    let acquired = unsafe { acquire(unseen, info.swapchain, (info.semaphore, info.fence), p_index) };
    acquired.unwrap_or_else(|| {
        let next = unseen.next.acquire_next_image2_khr;
        // SAFETY: what stood in the table for this command, with what the application passed to it.
        next.map_or(FAILED, |next| unsafe { next(device, p_info, p_index) })
    })
}

unsafe extern "system" fn queue_present_khr(queue: Queue, p_info: Ptr<PresentInfoKHR>) -> Result {
    // SAFETY: VUID-vkQueuePresentKHR-queue-parameter: it is alive until the call returns.
    let Some(unseen) = (unsafe { headless_device_of(queue.0) }) else { return FAILED };
    // SAFETY: VUID-vkQueuePresentKHR-pPresentInfo-parameter: a valid info, which stays until the call returns.
    let info = unsafe { &*p_info.as_ptr() };
    let count = info.swapchain_count as usize;
    // SAFETY: VUID-VkPresentInfoKHR-pSwapchains-parameter: `swapchain_count` handles, at least one
    // (VUID-VkPresentInfoKHR-swapchainCount-arraylength).
    let shown = unsafe { std::slice::from_raw_parts(info.p_swapchains.as_ptr(), count) };
    let are_ours = || shown.iter().all(|it| state().swapchains.contains_key(&it.0));
    if !catch_panic("vkQueuePresentKHR", are_ours, || false) {
        // SAFETY: what stood in the table for this command, with what the application passed to it.
        return unseen.next.queue_present_khr.map_or(FAILED, |next| unsafe { next(queue, p_info) });
    }
    let waits = match info.wait_semaphore_count {
        0 => &[],
        // SAFETY: VUID-VkPresentInfoKHR-pWaitSemaphores-parameter: as many semaphores as the count says.
        count => unsafe { std::slice::from_raw_parts(info.p_wait_semaphores.as_ptr(), count as usize) },
    };
    // SAFETY: host access to the queue of a present is externally synchronized.
    // VUID-vkQueuePresentKHR-pWaitSemaphores-03268: each semaphore is signaled, or about to be; nothing is signaled
    // here.
    let result = unsafe { unseen.submit(queue, waits, &[], Fence(0)) };
    if !info.p_results.is_null() {
        // SAFETY: VUID-VkPresentInfoKHR-pResults-parameter: a place for the result of each swapchain.
        (0..count).for_each(|it| unsafe { info.p_results.as_mut_ptr().add(it).write(result) });
    }
    result
}
