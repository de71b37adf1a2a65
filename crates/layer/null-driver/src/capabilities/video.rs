//! Video, tensors and generated commands: what sessions can do and how much memory they need.

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::capabilities::physical_device::ORDINARY_TYPES;
use crate::capabilities::struct_bytes::StructBytes;
use crate::resources::buffers::put_requirements;

/// For sessions in memory: like real devices, independent of the system's page size.
const ALIGNMENT: u64 = 4096;
/// The memory requirements of a session or a preprocess buffer of any size.
const SESSION_BYTES: u64 = 1 << 20;

fn session_requirements() -> MemoryRequirements {
    MemoryRequirements { size: SESSION_BYTES, alignment: ALIGNMENT, memory_type_bits: ORDINARY_TYPES }
}

/// The newest header of the codec that a profile names.
fn std_header(profile: &VideoProfileInfoKHR) -> ExtensionProperties {
    let name: &[u8] = match profile.video_codec_operation {
        VideoCodecOperationFlagBitsKHR::DECODE_H265_KHR => b"VK_STD_vulkan_video_codec_h265_decode",
        VideoCodecOperationFlagBitsKHR::DECODE_AV1_KHR => b"VK_STD_vulkan_video_codec_av1_decode",
        VideoCodecOperationFlagBitsKHR::DECODE_VP9_KHR => b"VK_STD_vulkan_video_codec_vp9_decode",
        VideoCodecOperationFlagBitsKHR::ENCODE_H264_KHR => b"VK_STD_vulkan_video_codec_h264_encode",
        VideoCodecOperationFlagBitsKHR::ENCODE_H265_KHR => b"VK_STD_vulkan_video_codec_h265_encode",
        VideoCodecOperationFlagBitsKHR::ENCODE_AV1_KHR => b"VK_STD_vulkan_video_codec_av1_encode",
        _ => b"VK_STD_vulkan_video_codec_h264_decode",
    };
    let mut out = ExtensionProperties::zeroed();
    out.extension_name[..name.len()].copy_from_slice(name);
    out.spec_version = 1 << 22;
    out
}

pub(crate) fn get_physical_device_video_capabilities_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceVideoCapabilitiesKHRParams,
) -> Result {
    let (Some(profile), Some(out)) = (c.get(call.p_video_profile), c.get_mut(call.p_capabilities)) else {
        return Result::ERROR_UNKNOWN;
    };
    out.flags = VideoCapabilityFlagsKHR::SEPARATE_REFERENCE_IMAGES_KHR;
    out.min_bitstream_buffer_offset_alignment = 256;
    out.min_bitstream_buffer_size_alignment = 256;
    out.picture_access_granularity = Extent2D { width: 16, height: 16 };
    out.min_coded_extent = Extent2D { width: 16, height: 16 };
    out.max_coded_extent = Extent2D { width: 8192, height: 8192 };
    out.max_dpb_slots = 17;
    out.max_active_reference_pictures = 16;
    out.std_header_version = std_header(profile);
    for (at, s_type) in c.chain(out.p_next) {
        let Some(layout) = structure_by_type(s_type) else { continue };
        fill_capabilities(layout, &mut StructBytes(c.slice_mut(at.cast::<u8>(), layout.size)));
    }
    if let Some(value) = c.find_mut::<VideoDecodeCapabilitiesKHR>(out.p_next) {
        value.flags = VideoDecodeCapabilityFlagsKHR::DPB_AND_OUTPUT_COINCIDE_KHR;
    }
    Result::SUCCESS
}

/// Capabilities of a codec: small numbers for counts and levels, all bits for masks.
fn fill_capabilities(layout: &'static desc::Layout, bytes: &mut StructBytes<'_>) {
    for field in layout.fields.iter().filter(|it| it.name != "sType") {
        let value = match (&field.ty, field.name) {
            (desc::Ty::Flags(desc), _) => all_bits(desc) as f64,
            (_, "minQp" | "minQIndex") => 0.0,
            (_, "maxQp" | "maxQIndex") => 51.0,
            (_, "maxBitrate") => 1e9,
            (desc::Ty::U32, _) => 4.0,
            (desc::Ty::Bool32, _) => 1.0,
            _ => 0.0,
        };
        bytes.numbers(0, field, &mut std::iter::repeat(value));
    }
}

fn all_bits(desc: &desc::EnumDesc) -> u64 {
    desc.values.iter().map(|it| it.0 as u64).filter(|it| it.is_power_of_two()).fold(0, |all, it| all | it)
}

pub(crate) fn get_physical_device_video_format_properties_khr(
    c: ApplicationMemory<'_>,
    call: &GetPhysicalDeviceVideoFormatPropertiesKHRParams,
) -> Result {
    let usage = c.get(call.p_video_format_info).map_or(ImageUsageFlags(0), |it| it.image_usage);
    let formats = [Format::G8_B8R8_2PLANE_420_UNORM, Format::G10X6_B10X6R10X6_2PLANE_420_UNORM_3PACK16];
    let (count, to) = (call.p_video_format_property_count, call.p_video_format_properties);
    c.enumerate(count, to, &formats, |format_properties, at| {
        format_properties.format = formats[at];
        format_properties.component_mapping = ComponentMapping::zeroed();
        format_properties.image_create_flags = ImageCreateFlags(
            ImageCreateFlags::MUTABLE_FORMAT.0 | ImageCreateFlags::EXTENDED_USAGE.0 | ImageCreateFlags::ALIAS.0,
        );
        format_properties.image_type = ImageType::_2D;
        format_properties.image_tiling = ImageTiling::OPTIMAL;
        format_properties.image_usage_flags = ImageUsageFlags(
            usage.0 | ImageUsageFlags::SAMPLED.0 | ImageUsageFlags::TRANSFER_SRC.0 | ImageUsageFlags::TRANSFER_DST.0,
        );
    })
}

pub(crate) fn get_video_session_memory_requirements_khr(
    c: ApplicationMemory<'_>,
    call: &GetVideoSessionMemoryRequirementsKHRParams,
) -> Result {
    let binds = [0u32, 1];
    let (count, to) = (call.p_memory_requirements_count, call.p_memory_requirements);
    c.enumerate(count, to, &binds, |requirements, at| {
        requirements.memory_bind_index = binds[at];
        requirements.memory_requirements = session_requirements();
    })
}

pub(crate) fn get_data_graph_pipeline_session_memory_requirements_arm(
    c: ApplicationMemory<'_>,
    call: &GetDataGraphPipelineSessionMemoryRequirementsARMParams,
) {
    put_requirements(c, call.p_memory_requirements, Some(session_requirements()));
}

/// The bytes of a tensor with eight-byte elements at most.
fn tensor_requirements(c: ApplicationMemory<'_>, description: Ptr<TensorDescriptionARM>) -> MemoryRequirements {
    let dimensions = c.get(description).map(|it| c.slice(it.p_dimensions, it.dimension_count)).unwrap_or_default();
    let elements = dimensions.iter().fold(1u64, |all, it| all.saturating_mul((*it).max(1) as u64));
    let size = elements.saturating_mul(8).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX);
    MemoryRequirements { size, alignment: ALIGNMENT, memory_type_bits: ORDINARY_TYPES }
}

pub(crate) fn get_device_tensor_memory_requirements_arm(
    c: ApplicationMemory<'_>,
    call: &GetDeviceTensorMemoryRequirementsARMParams,
) {
    let description = c.get(call.p_info).and_then(|it| c.get(it.p_create_info)).map(|it| it.p_description);
    put_requirements(c, call.p_memory_requirements, description.map(|it| tensor_requirements(c, it)));
}

/// Tensors are not kept, so all of them need the same.
pub(crate) fn get_tensor_memory_requirements_arm(
    c: ApplicationMemory<'_>,
    call: &GetTensorMemoryRequirementsARMParams,
) {
    put_requirements(c, call.p_memory_requirements, Some(session_requirements()));
}

pub(crate) fn get_generated_commands_memory_requirements_ext(
    c: ApplicationMemory<'_>,
    call: &GetGeneratedCommandsMemoryRequirementsEXTParams,
) {
    put_requirements(c, call.p_memory_requirements, Some(session_requirements()));
}

pub(crate) fn get_generated_commands_memory_requirements_nv(
    c: ApplicationMemory<'_>,
    call: &GetGeneratedCommandsMemoryRequirementsNVParams,
) {
    put_requirements(c, call.p_memory_requirements, Some(session_requirements()));
}

pub(crate) fn get_pipeline_indirect_memory_requirements_nv(
    c: ApplicationMemory<'_>,
    call: &GetPipelineIndirectMemoryRequirementsNVParams,
) {
    put_requirements(c, call.p_memory_requirements, Some(session_requirements()));
}
