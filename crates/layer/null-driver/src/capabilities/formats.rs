//! The features of each format: everything that its class allows.

use lavascope_abi::desc::FormatDesc;
use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;

type Features = FormatFeatureFlags2;

/// The properties of a format in the tables.
pub(crate) fn find(format: Format) -> Option<&'static FormatDesc> {
    FORMATS.iter().find(|it| it.format == format)
}

/// Whether a format has depth or stencil.
pub(crate) fn is_depth_stencil(desc: &FormatDesc) -> bool {
    desc.components.iter().any(|it| matches!(it.name, "D" | "S"))
}

fn is_integer(desc: &FormatDesc) -> bool {
    desc.components.iter().any(|it| matches!(it.numeric, "UINT" | "SINT"))
}

const EVERY: u64 = Features::SAMPLED_IMAGE.0
    | Features::TRANSFER_SRC.0
    | Features::TRANSFER_DST.0
    | Features::HOST_IMAGE_TRANSFER.0
    | Features::COPY_IMAGE_INDIRECT_DST_KHR.0;
const FILTERED: u64 = Features::SAMPLED_IMAGE_FILTER_LINEAR.0 | Features::SAMPLED_IMAGE_FILTER_MINMAX.0;
const STORED: u64 =
    Features::STORAGE_IMAGE.0 | Features::STORAGE_READ_WITHOUT_FORMAT.0 | Features::STORAGE_WRITE_WITHOUT_FORMAT.0;
const YCBCR: u64 = Features::MIDPOINT_CHROMA_SAMPLES.0
    | Features::COSITED_CHROMA_SAMPLES.0
    | Features::SAMPLED_IMAGE_YCBCR_CONVERSION_LINEAR_FILTER.0
    | Features::SAMPLED_IMAGE_YCBCR_CONVERSION_SEPARATE_RECONSTRUCTION_FILTER.0
    | Features::SAMPLED_IMAGE_YCBCR_CONVERSION_CHROMA_RECONSTRUCTION_EXPLICIT.0
    | Features::VIDEO_DECODE_OUTPUT_KHR.0
    | Features::VIDEO_DECODE_DPB_KHR.0
    | Features::VIDEO_ENCODE_INPUT_KHR.0
    | Features::VIDEO_ENCODE_DPB_KHR.0;

/// Features of images with optimal or linear tiling; the driver lays both out the same way.
pub(crate) fn image_features(desc: &FormatDesc) -> u64 {
    let blits = Features::BLIT_SRC.0 | Features::BLIT_DST.0;
    if is_ycbcr(desc) {
        let disjoint = if desc.planes.is_empty() { 0 } else { Features::DISJOINT.0 };
        return EVERY | FILTERED | YCBCR | disjoint;
    }
    if is_depth_stencil(desc) {
        let compared = Features::SAMPLED_IMAGE_DEPTH_COMPARISON.0 | Features::SAMPLED_IMAGE_FILTER_LINEAR.0;
        return EVERY | Features::DEPTH_STENCIL_ATTACHMENT.0 | blits | compared;
    }
    if desc.is_compressed {
        return EVERY | FILTERED | Features::BLIT_SRC.0;
    }
    let mut features = EVERY | STORED | blits | Features::COLOR_ATTACHMENT.0;
    if is_integer(desc) {
        let is_atomic = desc.components.len() == 1 && desc.block_size >= 4;
        features |= if is_atomic { Features::STORAGE_IMAGE_ATOMIC.0 } else { 0 };
    } else {
        features |= FILTERED | Features::COLOR_ATTACHMENT_BLEND.0 | Features::SAMPLED_IMAGE_FILTER_CUBIC.0;
    }
    match desc.format {
        Format::R8_UINT => features | Features::FRAGMENT_SHADING_RATE_ATTACHMENT_KHR.0,
        Format::R8G8_UNORM => features | Features::FRAGMENT_DENSITY_MAP_EXT.0,
        _ => features,
    }
}

pub(crate) fn buffer_features(desc: &FormatDesc) -> u64 {
    if desc.is_compressed || is_depth_stencil(desc) || is_ycbcr(desc) {
        return 0;
    }
    let mut features = Features::VERTEX_BUFFER.0 | Features::UNIFORM_TEXEL_BUFFER.0 | Features::STORAGE_TEXEL_BUFFER.0;
    if is_integer(desc) && desc.components.len() == 1 && desc.block_size >= 4 {
        features |= Features::STORAGE_TEXEL_BUFFER_ATOMIC.0;
    }
    if matches!(desc.components.len(), 2 | 3) && desc.components.iter().all(|it| it.numeric != "UINT") {
        features |= Features::ACCELERATION_STRUCTURE_VERTEX_BUFFER_KHR.0;
    }
    features | Features::STORAGE_READ_WITHOUT_FORMAT.0 | Features::STORAGE_WRITE_WITHOUT_FORMAT.0
}

fn is_ycbcr(desc: &FormatDesc) -> bool {
    !desc.planes.is_empty() || desc.name.contains("_422_") || desc.name.contains("G8B8G8R8")
}

/// The first 32 bits, without those that have another meaning there.
fn narrow(features: u64) -> FormatFeatureFlags {
    FormatFeatureFlags(features as u32 & 0x7fff_ffff)
}

fn properties(format: Format) -> FormatProperties {
    let Some(desc) = find(format) else { return FormatProperties::zeroed() };
    FormatProperties {
        linear_tiling_features: narrow(image_features(desc)),
        optimal_tiling_features: narrow(image_features(desc)),
        buffer_features: narrow(buffer_features(desc)),
    }
}

pub(crate) fn get_physical_device_format_properties(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceFormatPropertiesParams,
) {
    c.write(call.p_format_properties, properties(call.format));
}

pub(crate) fn get_physical_device_format_properties2(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceFormatProperties2Params,
) {
    let Some(out) = c.get_mut(call.p_format_properties) else { return };
    out.format_properties = properties(call.format);
    let desc = find(call.format);
    let (image, buffer) = (desc.map_or(0, image_features), desc.map_or(0, buffer_features));
    for (at, s_type) in c.chain(out.p_next) {
        if s_type == FormatProperties3::layout().s_type_raw {
            let Some(other) = c.get_mut(at.cast::<FormatProperties3>()) else { continue };
            other.linear_tiling_features = FormatFeatureFlags2(image);
            other.optimal_tiling_features = FormatFeatureFlags2(image);
            other.buffer_features = FormatFeatureFlags2(buffer);
        } else if let Some(layout) = structure_by_type(s_type) {
            // SAFETY: the chain of an output of this call, which is valid by the promise made to `ApplicationMemory::in_call`: each
            // structure has the layout of its `sType` and is ours to write. `chain` has read the link already and keeps
            // no reference.
            unsafe { clear_without_chain(at, layout) };
        }
    }
}

/// Zeros one structure of a chain and leaves the rest of the chain.
///
/// # Safety
///
/// `at` must lead to a valid output structure of this layout, which begins with its type and its chain, and to which
/// nobody has a reference.
unsafe fn clear_without_chain(at: Ptr<Opaque>, layout: &desc::Layout) {
    let next = Ptr::<Ptr<Opaque>>::new(at.0 + 8);
    // SAFETY: a structure with a type has its link behind it, at eight, and is ours to write, by the contract of this
    // function; with a null link, `clear` stays in this structure.
    unsafe {
        let link = next.as_ptr().read();
        next.as_mut_ptr().write(Ptr::NULL);
        crate::calls::described_outputs::clear(at.0, layout);
        next.as_mut_ptr().write(link);
    }
}

/// The properties of an image on which its support depends.
struct ImageFormatQuery {
    format: Format,
    ty: ImageType,
    tiling: ImageTiling,
    usage: ImageUsageFlags,
    flags: ImageCreateFlags,
}

fn image_format_properties(question: &ImageFormatQuery, heap_bytes: u64) -> Option<ImageFormatProperties> {
    let desc = find(question.format)?;
    let needed = features_for(question.usage.0);
    let has_all = image_features(desc) & needed == needed;
    let is_block_only_2d = desc.is_compressed || is_depth_stencil(desc) || is_ycbcr(desc);
    if !has_all || (is_block_only_2d && question.ty == ImageType::_1D) {
        return None;
    }
    let is_cube = question.flags.0 & ImageCreateFlags::CUBE_COMPATIBLE.0 != 0;
    let is_flat = question.ty == ImageType::_2D;
    let (extent, layers) = match question.ty {
        ImageType::_1D => (Extent3D { width: 16384, height: 1, depth: 1 }, 2048),
        ImageType::_2D => (Extent3D { width: 16384, height: 16384, depth: 1 }, 2048),
        _ => (Extent3D { width: 2048, height: 2048, depth: 2048 }, 1),
    };
    let is_optimal = question.tiling == ImageTiling::OPTIMAL;
    let is_multisampled = is_optimal && is_flat && !is_cube && !desc.is_compressed && !is_ycbcr(desc);
    let largest = extent.width.max(extent.height).max(extent.depth);
    Some(ImageFormatProperties {
        max_extent: extent,
        max_mip_levels: if is_ycbcr(desc) { 1 } else { largest.ilog2() + 1 },
        max_array_layers: layers,
        sample_counts: SampleCountFlags(if is_multisampled { 127 } else { 1 }),
        max_resource_size: heap_bytes,
    })
}

fn features_for(usage: u32) -> u64 {
    let pairs = [
        (ImageUsageFlags::SAMPLED.0, Features::SAMPLED_IMAGE.0),
        (ImageUsageFlags::STORAGE.0, Features::STORAGE_IMAGE.0),
        (ImageUsageFlags::COLOR_ATTACHMENT.0, Features::COLOR_ATTACHMENT.0),
        (ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT.0, Features::DEPTH_STENCIL_ATTACHMENT.0),
    ];
    pairs.iter().filter(|it| usage & it.0 != 0).fold(0, |all, it| all | it.1)
}

pub(crate) fn get_physical_device_image_format_properties(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceImageFormatPropertiesParams,
) -> Result {
    let (format, ty, tiling) = (call.format, call.type_, call.tiling);
    let question = ImageFormatQuery { format, ty, tiling, usage: call.usage, flags: call.flags };
    let heap_bytes = c.physical_device(call.physical_device).settings.heap_bytes;
    let answer = image_format_properties(&question, heap_bytes);
    c.write(call.p_image_format_properties, answer.unwrap_or_else(ImageFormatProperties::zeroed));
    if answer.is_some() { Result::SUCCESS } else { Result::ERROR_FORMAT_NOT_SUPPORTED }
}

pub(crate) fn get_physical_device_image_format_properties2(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceImageFormatProperties2Params,
) -> Result {
    let Some(info) = c.get(call.p_image_format_info).filter(|_| !call.p_image_format_properties.is_null()) else {
        return Result::ERROR_UNKNOWN;
    };
    let (format, ty, tiling) = (info.format, info.type_, info.tiling);
    let question = ImageFormatQuery { format, ty, tiling, usage: info.usage, flags: info.flags };
    // SAFETY: the output of this call, which is not null and so valid with its chain, by the promise made to
    // `ApplicationMemory::in_call` (VUID-vkGetPhysicalDeviceImageFormatProperties2-pImageFormatProperties-parameter). No reference to
    // it exists yet.
    unsafe {
        crate::calls::described_outputs::clear(call.p_image_format_properties.0, ImageFormatProperties2::layout())
    };
    let Some(out) = c.get_mut(call.p_image_format_properties) else { return Result::ERROR_UNKNOWN };
    let Some(answer) = image_format_properties(&question, c.physical_device(call.physical_device).settings.heap_bytes)
    else {
        return Result::ERROR_FORMAT_NOT_SUPPORTED;
    };
    out.image_format_properties = answer;
    if let Some(value) = c.find_mut::<SamplerYcbcrConversionImageFormatProperties>(out.p_next) {
        value.combined_image_sampler_descriptor_count = 1;
    }
    if let Some(value) = c.find_mut::<HostImageCopyDevicePerformanceQuery>(out.p_next) {
        value.optimal_device_access = Bool32::TRUE;
        value.identical_memory_layout = Bool32::TRUE;
    }
    if let Some(value) = c.find_mut::<FilterCubicImageViewImageFormatPropertiesEXT>(out.p_next) {
        value.filter_cubic = Bool32::TRUE;
        value.filter_cubic_minmax = Bool32::TRUE;
    }
    if let Some(wanted) = c.find::<PhysicalDeviceExternalImageFormatInfo>(info.p_next)
        && wanted.handle_type.0 != 0
    {
        let external = crate::resources::external::memory_properties(wanted.handle_type.0);
        if external.external_memory_features.0 == 0 {
            return Result::ERROR_FORMAT_NOT_SUPPORTED;
        }
        if let Some(value) = c.find_mut::<ExternalImageFormatProperties>(out.p_next) {
            value.external_memory_properties = external;
        }
    }
    Result::SUCCESS
}

/// Blocks of 64 KiB, as the standard shapes have them.
pub(crate) fn sparse_properties(format: Format) -> Option<SparseImageFormatProperties> {
    let desc = find(format).filter(|it| it.planes.is_empty() && it.block_size.is_power_of_two())?;
    let texels = (64 << 10) / desc.block_size.max(1);
    let width = 1 << texels.ilog2().div_ceil(2);
    let [x, y, _] = desc.block_extent;
    let aspect = if is_depth_stencil(desc) { ImageAspectFlags::DEPTH } else { ImageAspectFlags::COLOR };
    let image_granularity = Extent3D { width: width * x, height: texels / width * y, depth: 1 };
    Some(SparseImageFormatProperties { aspect_mask: aspect, image_granularity, flags: SparseImageFormatFlags(0) })
}

pub(crate) fn get_physical_device_sparse_image_format_properties(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceSparseImageFormatPropertiesParams,
) {
    let found: Vec<SparseImageFormatProperties> = sparse_properties(call.format).into_iter().collect();
    c.enumerate_values(call.p_property_count, call.p_properties, &found);
}

pub(crate) fn get_physical_device_sparse_image_format_properties2(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceSparseImageFormatProperties2Params,
) {
    let format = c.get(call.p_format_info).map_or(Format::UNDEFINED, |it| it.format);
    let found: Vec<SparseImageFormatProperties> = sparse_properties(format).into_iter().collect();
    c.enumerate(call.p_property_count, call.p_properties, &found, |it, at| it.properties = found[at]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_formats_can_do_what_they_must() {
        let features = |format| find(format).map_or(0, image_features);
        let color = features(Format::R8G8B8A8_UNORM);
        for needed in [Features::COLOR_ATTACHMENT_BLEND, Features::STORAGE_IMAGE, Features::SAMPLED_IMAGE_FILTER_LINEAR]
        {
            assert_ne!(color & needed.0, 0);
        }
        assert_ne!(features(Format::D32_SFLOAT) & Features::DEPTH_STENCIL_ATTACHMENT.0, 0);
        assert_eq!(features(Format::D32_SFLOAT) & Features::COLOR_ATTACHMENT.0, 0);
        assert_eq!(features(Format::BC7_UNORM_BLOCK) & Features::COLOR_ATTACHMENT.0, 0);
        assert_ne!(features(Format::G8_B8R8_2PLANE_420_UNORM) & Features::DISJOINT.0, 0);
        assert_eq!(features(Format::R32_UINT) & Features::COLOR_ATTACHMENT_BLEND.0, 0);
        assert!(FORMATS.iter().all(|it| image_features(it) & EVERY == EVERY));
    }

    #[test]
    fn standard_sparse_blocks() {
        let granularity = |format| sparse_properties(format).map(|it| it.image_granularity);
        let size = granularity(Format::R8G8B8A8_UNORM).map(|it| (it.width, it.height));
        assert_eq!(size, Some((128, 128)));
        assert_eq!(granularity(Format::R8_UNORM).map(|it| (it.width, it.height)), Some((256, 256)));
    }
}
