//! The bytes that `vkCopyMemoryToImage` reads. No record of a call can hold them, because their number depends on the
//! image.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{LazyLock, Mutex};

use lavascope_abi::desc::FormatDesc;
use lavascope_abi::*;

use super::lock;

/// The properties of an image that such copies need.
#[derive(Default)]
pub(super) struct HostCopyImages(Mutex<HashMap<u64, HostCopyShape>>);

#[derive(Clone, Copy)]
struct HostCopyShape {
    format: Format,
    layers: u32,
}

impl HostCopyImages {
    /// # Safety
    ///
    /// The parameters must be those of a call that succeeded.
    pub(super) unsafe fn add(&self, params: &CreateImageParams) {
        // SAFETY: VUID-vkCreateImage-pCreateInfo-parameter and -pImage-parameter; by the contract of this function the call
        // succeeded, and so wrote the image.
        let (info, image) = unsafe { (&*params.p_create_info.as_ptr(), params.p_image.as_ptr().read()) };
        lock(&self.0).insert(image.0, HostCopyShape { format: info.format, layers: info.array_layers });
    }

    pub(super) fn remove(&self, image: Image) {
        lock(&self.0).remove(&image.0);
    }

    /// The addresses that a region of a copy reads; none if they are unknown.
    pub(super) fn source_range(&self, info: &CopyMemoryToImageInfo, region: &MemoryToImageCopy) -> Option<Range<u64>> {
        // Then the driver alone knows how texels lie.
        if info.flags.0 & HostImageCopyFlags::MEMCPY.0 != 0 {
            return None;
        }
        let shape = *lock(&self.0).get(&info.dst_image.0)?;
        let start = region.p_host_pointer.0;
        let end = start.checked_add(region_bytes(shape, region)?).filter(|_| start != 0)?;
        Some(start..end)
    }
}

/// Bytes from the first texel of a region to the last: rows and layers may be longer than the part that is copied.
fn region_bytes(shape: HostCopyShape, region: &MemoryToImageCopy) -> Option<u64> {
    let MemoryToImageCopy { image_subresource: at, image_extent: extent, .. } = region;
    let (block, bytes) = texel_block(shape.format, at.aspect_mask)?;
    let blocks = |texels: u32, of: usize| u64::from(texels.div_ceil(block[of].max(1)));
    let or = |wanted: u32, else_: u32| if wanted == 0 { else_ } else { wanted };
    let row = blocks(or(region.memory_row_length, extent.width), 0);
    let rows = blocks(or(region.memory_image_height, extent.height), 1);
    let layers = match at.layer_count {
        REMAINING_ARRAY_LAYERS => shape.layers.checked_sub(at.base_array_layer)?,
        count => count,
    };
    let slices = u64::from(layers).checked_mul(blocks(extent.depth, 2))?;
    let before_last_slice = slices.checked_sub(1)?.checked_mul(rows)?.checked_mul(row)?;
    let before_last_row = blocks(extent.height, 1).checked_sub(1)?.checked_mul(row)?;
    let all = before_last_slice.checked_add(before_last_row)?.checked_add(blocks(extent.width, 0))?;
    all.checked_mul(bytes).filter(|_| extent.width > 0)
}

/// The extent of a texel block of one aspect, and its bytes as they lie in memory.
fn texel_block(format: Format, aspect: ImageAspectFlags) -> Option<([u32; 3], u64)> {
    static BY_NUMBER: LazyLock<HashMap<i32, &'static FormatDesc>> =
        LazyLock::new(|| FORMATS.iter().map(|it| (it.format.0, it)).collect());
    let desc = *BY_NUMBER.get(&format.0)?;
    let planes = [ImageAspectFlags::PLANE_0, ImageAspectFlags::PLANE_1, ImageAspectFlags::PLANE_2];
    if let Some(plane) = planes.iter().position(|it| it.0 == aspect.0) {
        let own = *BY_NUMBER.get(&desc.planes.get(plane)?.format.0)?;
        return Some((own.block_extent, u64::from(own.block_size)));
    }
    let bytes = match aspect {
        ImageAspectFlags::STENCIL => 1,
        // The bytes of a texel without its stencil, as copies have it.
        ImageAspectFlags::DEPTH => match format {
            Format::D16_UNORM | Format::D16_UNORM_S8_UINT => 2,
            _ => 4,
        },
        _ => u64::from(desc.block_size),
    };
    Some((desc.block_extent, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_reads_up_to_its_last_texel() {
        let mut region = MemoryToImageCopy::zeroed();
        region.image_extent = Extent3D { width: 10, height: 6, depth: 1 };
        region.image_subresource.aspect_mask = ImageAspectFlags::COLOR;
        region.image_subresource.layer_count = 1;
        let of = |format, region: &MemoryToImageCopy| region_bytes(HostCopyShape { format, layers: 5 }, region);
        assert_eq!(of(Format::R8G8B8A8_UNORM, &region), Some(10 * 6 * 4));
        assert_eq!(of(Format::BC1_RGB_UNORM_BLOCK, &region), Some(3 * 2 * 8), "blocks of 4 by 4");
        region.memory_row_length = 16;
        assert_eq!(of(Format::R8G8B8A8_UNORM, &region), Some((16 * 5 + 10) * 4));
        (region.memory_image_height, region.image_subresource.layer_count) = (8, REMAINING_ARRAY_LAYERS);
        region.image_subresource.base_array_layer = 3;
        assert_eq!(of(Format::R8G8B8A8_UNORM, &region), Some((16 * 8 + 16 * 5 + 10) * 4));
        region.image_subresource.aspect_mask = ImageAspectFlags::STENCIL;
        assert_eq!(of(Format::D32_SFLOAT_S8_UINT, &region), Some(16 * 8 + 16 * 5 + 10));
        region.image_extent.width = 0;
        assert_eq!(of(Format::R8_UNORM, &region), None);
    }
}
