//! Surfaces: all behave like headless ones, for every kind of window.

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;

/// Formats a surface can show.
const FORMATS: [Format; 6] = [
    Format::B8G8R8A8_UNORM,
    Format::B8G8R8A8_SRGB,
    Format::R8G8B8A8_UNORM,
    Format::R8G8B8A8_SRGB,
    Format::A2B10G10R10_UNORM_PACK32,
    Format::R16G16B16A16_SFLOAT,
];
const MODES: [PresentModeKHR; 4] = [
    PresentModeKHR::FIFO_KHR,
    PresentModeKHR::MAILBOX_KHR,
    PresentModeKHR::IMMEDIATE_KHR,
    PresentModeKHR::FIFO_RELAXED_KHR,
];
/// The swapchain decides how large it is.
const ANY_EXTENT: Extent2D = Extent2D { width: u32::MAX, height: u32::MAX };
const IMAGES_MIN: u32 = 2;
const IMAGES_MAX: u32 = 16;

fn capabilities() -> SurfaceCapabilitiesKHR {
    let usage = ImageUsageFlags::TRANSFER_SRC.0
        | ImageUsageFlags::TRANSFER_DST.0
        | ImageUsageFlags::SAMPLED.0
        | ImageUsageFlags::STORAGE.0
        | ImageUsageFlags::COLOR_ATTACHMENT.0
        | ImageUsageFlags::INPUT_ATTACHMENT.0;
    SurfaceCapabilitiesKHR {
        min_image_count: IMAGES_MIN,
        max_image_count: IMAGES_MAX,
        current_extent: ANY_EXTENT,
        min_image_extent: Extent2D { width: 1, height: 1 },
        max_image_extent: Extent2D { width: 16384, height: 16384 },
        max_image_array_layers: 2048,
        supported_transforms: SurfaceTransformFlagsKHR::IDENTITY_KHR,
        current_transform: SurfaceTransformFlagBitsKHR::IDENTITY_KHR,
        supported_composite_alpha: CompositeAlphaFlagsKHR(
            CompositeAlphaFlagsKHR::OPAQUE_KHR.0 | CompositeAlphaFlagsKHR::INHERIT_KHR.0,
        ),
        supported_usage_flags: ImageUsageFlags(usage),
    }
}

pub(crate) fn get_physical_device_surface_support_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceSurfaceSupportKHRParams,
) -> Result {
    let families = &c.physical_device(call.physical_device).settings.queue_families;
    let family = families.get(call.queue_family_index as usize);
    let is_graphics = family.is_some_and(|it| it.queue_flags.0 & QueueFlags::GRAPHICS.0 != 0);
    let is_compute = family.is_some_and(|it| it.queue_flags.0 & QueueFlags::COMPUTE.0 != 0);
    c.write(call.p_supported, Bool32(u32::from(is_graphics || is_compute)));
    Result::SUCCESS
}

pub(crate) fn get_physical_device_surface_capabilities_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceSurfaceCapabilitiesKHRParams,
) -> Result {
    c.write(call.p_surface_capabilities, capabilities());
    Result::SUCCESS
}

pub(crate) fn get_physical_device_surface_capabilities2_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceSurfaceCapabilities2KHRParams,
) -> Result {
    let Some(out) = c.get_mut(call.p_surface_capabilities) else { return Result::ERROR_UNKNOWN };
    out.surface_capabilities = capabilities();
    for (at, s_type) in c.chain(out.p_next) {
        let Some(layout) = structure_by_type(s_type) else { continue };
        let bytes = c.slice_mut(at.cast::<u8>(), layout.size);
        for field in crate::capabilities::profile::booleans(layout) {
            let at = field.at as usize;
            let is_on = field.name != "fullScreenExclusiveSupported";
            bytes[at..at + 4].copy_from_slice(&u32::from(is_on).to_le_bytes());
        }
    }
    if let Some(value) = c.find_mut::<SurfacePresentScalingCapabilitiesKHR>(out.p_next) {
        value.supported_present_scaling = PresentScalingFlagsKHR(0);
        value.supported_present_gravity_x = PresentGravityFlagsKHR(0);
        value.supported_present_gravity_y = PresentGravityFlagsKHR(0);
        value.min_scaled_image_extent = out.surface_capabilities.min_image_extent;
        value.max_scaled_image_extent = out.surface_capabilities.max_image_extent;
    }
    if let Some(value) = c.find_mut::<SurfacePresentModeCompatibilityKHR>(out.p_next) {
        let count = std::ptr::from_mut(&mut value.present_mode_count).expose_provenance();
        c.enumerate_values(Ptr::new(count as u64), value.p_present_modes, &MODES);
    }
    if let Some(value) = c.find_mut::<SharedPresentSurfaceCapabilitiesKHR>(out.p_next) {
        value.shared_present_supported_usage_flags = out.surface_capabilities.supported_usage_flags;
    }
    Result::SUCCESS
}

pub(crate) fn get_physical_device_surface_capabilities2_ext(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceSurfaceCapabilities2EXTParams,
) -> Result {
    let Some(out) = c.get_mut(call.p_surface_capabilities) else { return Result::ERROR_UNKNOWN };
    let from = capabilities();
    out.min_image_count = from.min_image_count;
    out.max_image_count = from.max_image_count;
    out.current_extent = from.current_extent;
    out.min_image_extent = from.min_image_extent;
    out.max_image_extent = from.max_image_extent;
    out.max_image_array_layers = from.max_image_array_layers;
    out.supported_transforms = from.supported_transforms;
    out.current_transform = from.current_transform;
    out.supported_composite_alpha = from.supported_composite_alpha;
    out.supported_usage_flags = from.supported_usage_flags;
    out.supported_surface_counters = SurfaceCounterFlagsEXT(0);
    Result::SUCCESS
}

fn format(at: usize) -> SurfaceFormatKHR {
    SurfaceFormatKHR { format: FORMATS[at], color_space: ColorSpaceKHR::SRGB_NONLINEAR_KHR }
}

pub(crate) fn get_physical_device_surface_formats_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceSurfaceFormatsKHRParams,
) -> Result {
    c.enumerate(call.p_surface_format_count, call.p_surface_formats, &FORMATS, |it, at| *it = format(at))
}

pub(crate) fn get_physical_device_surface_formats2_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceSurfaceFormats2KHRParams,
) -> Result {
    let (count, to) = (call.p_surface_format_count, call.p_surface_formats);
    c.enumerate(count, to, &FORMATS, |it, at| it.surface_format = format(at))
}

pub(crate) fn get_physical_device_surface_present_modes_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceSurfacePresentModesKHRParams,
) -> Result {
    c.enumerate_values(call.p_present_mode_count, call.p_present_modes, &MODES)
}

pub(crate) fn get_physical_device_surface_present_modes2_ext(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceSurfacePresentModes2EXTParams,
) -> Result {
    c.enumerate_values(call.p_present_mode_count, call.p_present_modes, &MODES)
}

pub(crate) fn get_physical_device_present_rectangles_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDevicePresentRectanglesKHRParams,
) -> Result {
    let all = [Rect2D { offset: Offset2D { x: 0, y: 0 }, extent: Extent2D { width: 16384, height: 16384 } }];
    c.enumerate_values(call.p_rect_count, call.p_rects, &all)
}

pub(crate) fn get_device_group_present_capabilities_khr(
    c: ApplicationMemory<'_>,
    call: &GetDeviceGroupPresentCapabilitiesKHRParams,
) -> Result {
    let Some(out) = c.get_mut(call.p_device_group_present_capabilities) else { return Result::ERROR_UNKNOWN };
    out.present_mask = [0; MAX_DEVICE_GROUP_SIZE as usize];
    out.present_mask[0] = 1;
    out.modes = DeviceGroupPresentModeFlagsKHR::LOCAL_KHR;
    Result::SUCCESS
}

pub(crate) fn get_device_group_surface_present_modes_khr(
    c: ApplicationMemory<'_>,
    call: &GetDeviceGroupSurfacePresentModesKHRParams,
) -> Result {
    c.write(call.p_modes, DeviceGroupPresentModeFlagsKHR::LOCAL_KHR);
    Result::SUCCESS
}
