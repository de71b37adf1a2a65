//! The properties of formats that copies and shaders need.

use lavascope_abi::desc::FormatDesc;
use lavascope_abi::{FORMATS, Format, ImageAspectFlags};
use lavascope_sync_ir::{Area, Components, ImageDesc, ImageRegion, SubresourceLayout, Tiling};

use crate::plan::live_command::CopyBox;

/// The type of a texel in a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ComponentType {
    Float,
    Sint,
    Uint,
}

pub(crate) const COLOR: u32 = ImageAspectFlags::COLOR.0;
pub(crate) const DEPTH: u32 = ImageAspectFlags::DEPTH.0;
pub(crate) const STENCIL: u32 = ImageAspectFlags::STENCIL.0;
const PLANES: [u32; 3] = [ImageAspectFlags::PLANE_0.0, ImageAspectFlags::PLANE_1.0, ImageAspectFlags::PLANE_2.0];

pub(crate) fn desc(format: Format) -> Option<&'static FormatDesc> {
    FORMATS.iter().find(|it| it.format == format)
}

pub(crate) fn has_component(format: Format, name: &str) -> bool {
    desc(format).is_some_and(|it| it.components.iter().any(|it| it.name == name))
}

/// All aspects of an image, as a mask.
pub(crate) fn aspects(format: Format) -> u32 {
    let depth = if has_component(format, "D") { DEPTH } else { 0 };
    let stencil = if has_component(format, "S") { STENCIL } else { 0 };
    if depth | stencil == 0 { COLOR } else { depth | stencil }
}

pub(crate) fn component_type(format: Format, aspect: u32) -> ComponentType {
    let wanted = |name: &str| match aspect {
        DEPTH => name == "D",
        STENCIL => name == "S",
        _ => true,
    };
    let numeric = desc(format).and_then(|it| it.components.iter().find(|it| wanted(it.name))).map(|it| it.numeric);
    match numeric {
        Some("UINT") => ComponentType::Uint,
        Some("SINT") => ComponentType::Sint,
        _ => ComponentType::Float,
    }
}

/// Bytes of memory that an image takes: according to its layouts, or without gaps between its rows.
pub(crate) fn size(image: &ImageDesc) -> u64 {
    if let Tiling::Pitched(layouts) = &image.tiling {
        let end = |(copy_box, layout): (CopyBox, &SubresourceLayout)| {
            let [row, rows, slices] = block_counts(image, &copy_box);
            let layers = u64::from(image.layers) - 1;
            layout.offset
                + layers * layout.array_pitch
                + (slices - 1) * layout.depth_pitch
                + (rows - 1) * layout.row_pitch
                + row
        };
        return copy_boxes(image, &whole(image)).into_iter().zip(layouts.iter()).map(end).max().unwrap_or(0);
    }
    let (block, size) = desc(image.format).map_or(([1; 3], 1), |it| (it.block_extent, it.block_size));
    let blocks = |mip: u32| -> u64 {
        let extent = image.extent_of_mip(mip);
        (0..3).map(|it| u64::from(extent[it].div_ceil(block[it].max(1)))).product()
    };
    (0..image.mips).map(blocks).sum::<u64>() * u64::from(image.layers) * u64::from(size)
}

fn whole(image: &ImageDesc) -> ImageRegion {
    ImageRegion {
        aspects: aspects(image.format),
        mips: 0..image.mips,
        layers: 0..image.layers,
        area: None,
        components: Components::ALL,
    }
}

/// The boxes that a part of an image is: one for each aspect, or plane, and each mip level.
pub(crate) fn copy_boxes(image: &ImageDesc, region: &ImageRegion) -> Vec<CopyBox> {
    let planes = desc(image.format).map_or(0, |it| it.planes.len());
    let mut aspects: Vec<u32> = (0..32).map(|it| 1 << it).filter(|it| region.aspects & it != 0).collect();
    if planes > 0 && aspects == [COLOR] {
        aspects = PLANES[..planes].to_vec();
    }
    let each = |aspect: u32| region.mips.clone().map(move |mip| (aspect, mip));
    let made = |(aspect, mip): (u32, u32)| {
        let divisor = divisor(image.format, aspect);
        let level = divided(image.extent_of_mip(mip), divisor);
        let area = region.area.map(|it| if region.aspects == COLOR { plane_area(it, divisor) } else { it });
        let area = area.unwrap_or(Area { offset: [0; 3], extent: level });
        let offset = area.offset;
        let extent = std::array::from_fn(|it| area.extent[it].min(level[it].saturating_sub(offset[it])));
        CopyBox { aspect, mip, layers: region.layers.clone(), offset, extent }
    };
    aspects.into_iter().flat_map(each).map(made).collect()
}

/// Bytes of a buffer that hold texels.
pub(crate) fn bytes(image: &ImageDesc, copy_box: &CopyBox) -> u64 {
    block_counts(image, copy_box).into_iter().product::<u64>() * copy_box.layers.len() as u64
}

/// Bytes of a row, rows, and slices.
fn block_counts(image: &ImageDesc, copy_box: &CopyBox) -> [u64; 3] {
    let format = aspect_format(image.format, copy_box.aspect);
    let (block, size) = desc(format).map_or(([1; 3], 1), |it| (it.block_extent, it.block_size));
    let blocks = |axis: usize| u64::from(copy_box.extent[axis].div_ceil(block[axis].max(1)));
    [blocks(0) * u64::from(size), blocks(1), blocks(2)]
}

fn divisor(format: Format, aspect: u32) -> [u32; 3] {
    let plane = PLANES.iter().position(|it| *it == aspect);
    let plane = plane.and_then(|at| desc(format)?.planes.get(at));
    plane.map_or([1; 3], |it| [it.width_divisor.max(1), it.height_divisor.max(1), 1])
}

fn divided(extent: [u32; 3], by: [u32; 3]) -> [u32; 3] {
    std::array::from_fn(|it| extent[it].div_ceil(by[it]))
}

fn plane_area(area: Area, by: [u32; 3]) -> Area {
    let offset = std::array::from_fn(|it| area.offset[it] / by[it]);
    Area { offset, extent: divided(area.extent, by) }
}

/// The format in which one aspect lies in a buffer.
fn aspect_format(format: Format, aspect: u32) -> Format {
    if let Some(at) = PLANES.iter().position(|it| *it == aspect) {
        return desc(format).and_then(|it| it.planes.get(at)).map_or(format, |it| it.format);
    }
    match (aspect, format) {
        (STENCIL, _) => Format::S8_UINT,
        (DEPTH, Format::D16_UNORM_S8_UINT) => Format::D16_UNORM,
        (DEPTH, Format::D24_UNORM_S8_UINT) => Format::X8_D24_UNORM_PACK32,
        (DEPTH, Format::D32_SFLOAT_S8_UINT) => Format::D32_SFLOAT,
        _ => format,
    }
}
