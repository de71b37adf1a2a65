//! Block sizes, planes, aspects and components of formats.

use std::collections::HashMap;
use std::sync::LazyLock;

use lavascope_abi::desc::FormatDesc;
use lavascope_abi::{FORMATS, Format, ImageAspectFlags};
use lavascope_sync_ir::{AttachmentKind, Certainty, Components};

static BY_NUMBER: LazyLock<HashMap<i32, &'static FormatDesc>> =
    LazyLock::new(|| FORMATS.iter().map(|it| (it.format.0, it)).collect());

pub(crate) fn desc(format: Format) -> Option<&'static FormatDesc> {
    BY_NUMBER.get(&format.0).copied()
}

/// Size of a texel block in bytes; one if unknown.
pub(crate) fn block_size(format: Format) -> u64 {
    desc(format).map_or(1, |it| u64::from(it.block_size)).max(1)
}

/// Size of a block in texels.
pub(crate) fn block_extent(format: Format) -> [u32; 3] {
    desc(format).map_or([1; 3], |it| it.block_extent).map(|it| it.max(1))
}

/// Whether a texel of the view is a block of the compressed image.
pub(crate) fn has_blocks_as_texels(view: Format, image: Format) -> bool {
    let is_compressed = |it: Format| desc(it).is_some_and(|it| it.is_compressed);
    is_compressed(image) && !is_compressed(view)
}

/// The number of planes; one for a single-plane format.
pub(crate) fn plane_count(format: Format) -> usize {
    desc(format).map_or(1, |it| it.planes.len()).max(1)
}

/// Bytes per row, rows and slices of one plane, or of the whole image if the format has no planes.
pub(crate) fn plane_extent(format: Format, plane: usize, extent: [u32; 3]) -> [u64; 3] {
    let own = desc(format).and_then(|it| it.planes.get(plane));
    let (single, divisor) =
        own.map_or((format, [1, 1]), |it| (it.format, [it.width_divisor.max(1), it.height_divisor.max(1)]));
    let block = block_extent(single);
    let blocks = |at: usize, divisor: u32| u64::from(extent[at].div_ceil(divisor).div_ceil(block[at]));
    [blocks(0, divisor[0]) * block_size(single), blocks(1, divisor[1]), blocks(2, 1)]
}

/// The aspects of a format. For a multi-planar format, color means all planes.
pub(crate) fn aspects(format: Format) -> u32 {
    match attachment_kind(format) {
        AttachmentKind::Color => ImageAspectFlags::COLOR.0,
        AttachmentKind::Depth => ImageAspectFlags::DEPTH.0,
        AttachmentKind::Stencil => ImageAspectFlags::STENCIL.0,
        AttachmentKind::DepthStencil => ImageAspectFlags::DEPTH.0 | ImageAspectFlags::STENCIL.0,
    }
}

pub(crate) fn attachment_kind(format: Format) -> AttachmentKind {
    match format {
        Format::D16_UNORM | Format::X8_D24_UNORM_PACK32 | Format::D32_SFLOAT => AttachmentKind::Depth,
        Format::S8_UINT => AttachmentKind::Stencil,
        Format::D16_UNORM_S8_UINT | Format::D24_UNORM_S8_UINT | Format::D32_SFLOAT_S8_UINT => {
            AttachmentKind::DepthStencil
        }
        _ => AttachmentKind::Color,
    }
}

/// The format of one aspect of an image when it is copied to a buffer.
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

/// The components of the image that are written through a view of another format, and whether they are written
/// completely.
pub(crate) fn cast_components(view: Format, image: Format, mask: Components) -> (Components, Certainty) {
    let (view, image) = (desc(view), desc(image));
    let own = view.map_or(Components::ALL.0, components);
    if mask.0 & own == own {
        return (Components::ALL, Certainty::Certain);
    }
    let (Some(view), Some(image)) = (view.and_then(bits), image.and_then(bits)) else {
        return (Components::ALL, Certainty::Somewhere);
    };
    let bits = |of: &[u128; 4]| (0..4).filter(|it| mask.0 >> it & 1 != 0).fold(0, |all, it| all | of[it]);
    let written = bits(&view);
    let meets = |it: &usize| image[*it] & written != 0;
    let is_whole = (0..4).filter(meets).all(|it| image[it] & !written == 0);
    let components = (0..4).filter(meets).fold(0, |all, it| all | 1 << it);
    (Components(components), if is_whole { Certainty::Certain } else { Certainty::Somewhere })
}

/// The components of a color, in the order of the bits of a mask.
const COMPONENTS: [&str; 4] = ["R", "G", "B", "A"];

fn components(format: &FormatDesc) -> u8 {
    let has = |name: &str| format.components.iter().any(|it| it.name == name);
    COMPONENTS.iter().enumerate().fold(0, |all, (at, name)| all | u8::from(has(name)) << at)
}

/// The bits of red, green, blue and alpha in a texel; none if there are other components or their bits are unknown.
fn bits(format: &FormatDesc) -> Option<[u128; 4]> {
    let size = format.block_size.checked_mul(8).filter(|it| *it <= u128::BITS)?;
    let is_plain = !format.is_compressed && format.planes.is_empty() && format.block_extent == [1; 3];
    let all: u32 = format.components.iter().map(|it| it.bits).sum();
    if !is_plain || all != size {
        return None;
    }
    // In packed formats the first component has the highest bits; otherwise it comes first in memory.
    let is_packed = format.name.contains("_PACK");
    let (mut found, mut begin) = ([0; 4], 0);
    for component in format.components {
        let at = COMPONENTS.iter().position(|name| *name == component.name)?;
        let start = if is_packed { size - begin - component.bits } else { begin };
        found[at] |= u128::MAX.checked_shr(u128::BITS - component.bits).unwrap_or(0) << start;
        begin += component.bits;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The components of an image that are written through some components of a view.
    fn through(view: Format, image: Format, mask: u8) -> (u8, Certainty) {
        let (components, certainty) = cast_components(view, image, Components(mask));
        (components.0, certainty)
    }

    #[test]
    fn components_of_views_are_found_in_images() {
        use Certainty::{Certain, Somewhere};
        use Format as F;
        let (rgba, bgra) = (F::R8G8B8A8_UNORM, F::B8G8R8A8_UNORM);
        for mask in 1..15 {
            assert_eq!(through(F::R8G8B8A8_SRGB, rgba, mask), (mask, Certain));
            assert_eq!(through(F::A8B8G8R8_UNORM_PACK32, rgba, mask), (mask, Certain));
        }
        assert_eq!([1, 2, 4, 8].map(|it| through(bgra, rgba, it).0), [4, 2, 1, 8]);
        // One component that covers the texel, and components that the view does not have.
        assert_eq!([1, 3, 9].map(|it| through(F::R32_UINT, rgba, it)), [(15, Certain); 3]);
        assert_eq!(through(F::R32_UINT, rgba, 14).0, 0);
        assert_eq!(through(F::R8G8_UNORM, F::R16_UINT, 7), (15, Certain));
        // Several components of the image, and a component that is written in part.
        assert_eq!([1, 2].map(|it| through(F::R16G16_UINT, rgba, it)), [(3, Certain), (12, Certain)]);
        assert_eq!([1, 2].map(|it| through(rgba, F::R16G16_UINT, it)), [(1, Somewhere); 2]);
        assert_eq!([3, 12].map(|it| through(rgba, F::R16G16_UINT, it)), [(1, Certain), (2, Certain)]);
        assert_eq!(through(F::A2R10G10B10_UNORM_PACK32, rgba, 8), (8, Somewhere));
        assert_eq!(through(F::A2R10G10B10_UNORM_PACK32, rgba, 4), (3, Somewhere));
        assert_eq!(through(F::R32G32B32A32_SFLOAT, F::R32G32B32A32_UINT, 8), (8, Certain));
    }

    /// If the bits are unknown, something in the texel is written.
    #[test]
    fn components_of_unknown_bits_are_somewhere() {
        use Certainty::{Certain, Somewhere};
        use Format as F;
        let pairs = [
            (F::R32G32_UINT, F::BC1_RGB_UNORM_BLOCK),
            (F::R8G8_UNORM, F::UNDEFINED),
            (F::R32G32_UINT, F::R10X6G10X6_UNORM_2PACK16),
            (F::E5B9G9R9_UFLOAT_PACK32, F::R32_UINT),
            (F::UNDEFINED, F::R8G8B8A8_UNORM),
        ];
        for (view, image) in pairs {
            assert_eq!(through(view, image, 1), (15, Somewhere), "{view:?} {image:?}");
            assert_eq!(through(view, image, 15), (15, Certain), "{view:?} {image:?}");
        }
        assert_eq!(through(F::R8G8_UNORM, F::UNDEFINED, 3), (15, Certain));
    }
}
