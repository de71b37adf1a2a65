//! What formats are made of.

use std::collections::HashMap;
use std::sync::LazyLock;

use lavascope_abi::desc::FormatDesc;
use lavascope_abi::{FORMATS, Format, ImageAspectFlags};
use lavascope_program::AttachmentKind;

static BY_NUMBER: LazyLock<HashMap<i32, &'static FormatDesc>> =
    LazyLock::new(|| FORMATS.iter().map(|it| (it.format.0, it)).collect());

pub(crate) fn desc(format: Format) -> Option<&'static FormatDesc> {
    BY_NUMBER.get(&format.0).copied()
}

/// Bytes of a texel block; one where nobody knows.
pub(crate) fn block_size(format: Format) -> u64 {
    desc(format).map_or(1, |it| u64::from(it.block_size)).max(1)
}

/// Texels of a block, each way.
pub(crate) fn block_extent(format: Format) -> [u32; 3] {
    desc(format).map_or([1; 3], |it| it.block_extent).map(|it| it.max(1))
}

/// Planes that lie apart in memory; one where a format has none.
pub(crate) fn plane_count(format: Format) -> usize {
    desc(format).map_or(1, |it| it.planes.len()).max(1)
}

/// Bytes of a row, rows and slices of one plane, or of the whole where a format has no planes.
pub(crate) fn plane_extent(format: Format, plane: usize, extent: [u32; 3]) -> [u64; 3] {
    let own = desc(format).and_then(|it| it.planes.get(plane));
    let (single, divisor) =
        own.map_or((format, [1, 1]), |it| (it.format, [it.width_divisor.max(1), it.height_divisor.max(1)]));
    let block = block_extent(single);
    let blocks = |at: usize, divisor: u32| u64::from(extent[at].div_ceil(divisor).div_ceil(block[at]));
    [blocks(0, divisor[0]) * block_size(single), blocks(1, divisor[1]), blocks(2, 1)]
}

/// The aspects of an image with a format; the color of one with planes is all of them.
pub(crate) fn aspects(format: Format) -> u32 {
    match kind(format) {
        AttachmentKind::Color => ImageAspectFlags::COLOR.0,
        AttachmentKind::Depth => ImageAspectFlags::DEPTH.0,
        AttachmentKind::Stencil => ImageAspectFlags::STENCIL.0,
        AttachmentKind::DepthStencil => ImageAspectFlags::DEPTH.0 | ImageAspectFlags::STENCIL.0,
    }
}

pub(crate) fn kind(format: Format) -> AttachmentKind {
    match format {
        Format::D16_UNORM | Format::X8_D24_UNORM_PACK32 | Format::D32_SFLOAT => AttachmentKind::Depth,
        Format::S8_UINT => AttachmentKind::Stencil,
        Format::D16_UNORM_S8_UINT | Format::D24_UNORM_S8_UINT | Format::D32_SFLOAT_S8_UINT => {
            AttachmentKind::DepthStencil
        }
        _ => AttachmentKind::Color,
    }
}

/// The format in which one aspect of an image lies in a buffer.
pub(crate) fn of_aspect(format: Format, aspect: u32) -> Format {
    let plane = match ImageAspectFlags(aspect) {
        ImageAspectFlags::PLANE_0 => 0,
        ImageAspectFlags::PLANE_1 => 1,
        ImageAspectFlags::PLANE_2 => 2,
        ImageAspectFlags::STENCIL => return Format::S8_UINT,
        ImageAspectFlags::DEPTH => return of_depth(format),
        _ => return format,
    };
    desc(format).and_then(|it| it.planes.get(plane)).map_or(format, |it| it.format)
}

fn of_depth(format: Format) -> Format {
    match format {
        Format::D16_UNORM_S8_UINT => Format::D16_UNORM,
        Format::D24_UNORM_S8_UINT => Format::X8_D24_UNORM_PACK32,
        Format::D32_SFLOAT_S8_UINT => Format::D32_SFLOAT,
        other => other,
    }
}
