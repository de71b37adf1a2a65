//! Converts ranges in parameters to regions of images and buffers.

use std::ops::Range;

use lavascope_abi as vk;
use lavascope_sync_ir::{Area, Components, ImageRegion, Region};

use crate::resource::format;
use crate::resource::image::TrackedImage;

/// A copy between a buffer and an image has at most this many ranges of bytes. If it would have more, they become one
/// range from the first to the last byte.
const RANGES_MAX: u64 = 4096;

/// A box of texels in a mip level of an image, with its layers.
#[derive(Clone, Copy)]
pub(crate) struct TexelBox {
    pub(crate) layers: vk::ImageSubresourceLayers,
    pub(crate) offset: [i32; 3],
    pub(crate) extent: [u32; 3],
}

/// The layout of texels in a buffer.
#[derive(Clone, Copy)]
pub(crate) struct BufferTexelLayout {
    pub(crate) offset: u64,
    pub(crate) row_length: u32,
    pub(crate) image_height: u32,
}

pub(crate) fn offset_of(offset3_d: vk::Offset3D) -> [i32; 3] {
    [offset3_d.x, offset3_d.y, offset3_d.z]
}

pub(crate) fn extent_of(extent3_d: vk::Extent3D) -> [u32; 3] {
    [extent3_d.width, extent3_d.height, extent3_d.depth]
}

/// The area of a rectangle. Texels at negative offsets do not exist.
pub(crate) fn area_of(rect2_d: vk::Rect2D) -> Area {
    let start = |at: i32| at.max(0) as u32;
    let size = |at: i32, size: u32| (i64::from(at) + i64::from(size) - i64::from(start(at))).max(0) as u32;
    Area {
        offset: [start(rect2_d.offset.x), start(rect2_d.offset.y), 0],
        extent: [size(rect2_d.offset.x, rect2_d.extent.width), size(rect2_d.offset.y, rect2_d.extent.height), 1],
    }
}

impl TrackedImage {
    pub(crate) fn whole_region(&self) -> ImageRegion {
        ImageRegion {
            aspects: self.aspects,
            mips: 0..self.info.mips,
            layers: 0..self.info.layers,
            area: None,
            components: Components::ALL,
        }
    }

    pub(crate) fn subresource_region(&self, subresource_range: &vk::ImageSubresourceRange) -> ImageRegion {
        ImageRegion {
            aspects: subresource_range.aspect_mask.0,
            mips: clamped_range(subresource_range.base_mip_level, subresource_range.level_count, self.info.mips),
            layers: clamped_range(subresource_range.base_array_layer, subresource_range.layer_count, self.info.layers),
            area: None,
            components: Components::ALL,
        }
    }

    /// A region of a 3D image; the layers of the range are its slices.
    pub(crate) fn slices_region(&self, range: &vk::ImageSubresourceRange) -> ImageRegion {
        let extent = self.info.extent_of_mip(range.base_mip_level);
        let slices = clamped_range(range.base_array_layer, range.layer_count, extent[2]);
        let part = [extent[0], extent[1], slices.end - slices.start];
        let area = Some(Area { offset: [0, 0, slices.start], extent: part });
        ImageRegion { layers: 0..1, area, ..self.subresource_region(range) }
    }

    /// The region of a barrier.
    pub(crate) fn barrier_region(&self, range: &vk::ImageSubresourceRange) -> ImageRegion {
        let depth = self.info.extent_of_mip(range.base_mip_level)[2];
        let is_whole = range.base_array_layer == 0 && range.layer_count >= depth;
        match self.has_slice_ranges && !is_whole {
            true => self.slices_region(range),
            false => self.subresource_region(range),
        }
    }

    /// The texels of a copy. For a 3D image the depth of the copy counts slices, otherwise layers.
    pub(crate) fn texel_region(&self, texel_box: &TexelBox) -> Region {
        let mip = texel_box.layers.mip_level;
        let is_3d = self.ty == vk::ImageType::_3D;
        let count = match texel_box.layers.layer_count {
            vk::REMAINING_ARRAY_LAYERS => u32::MAX,
            count if is_3d => count,
            count => count.max(texel_box.extent[2]),
        };
        let offset: [u32; 3] = texel_box.offset.map(|it| it.max(0) as u32);
        let area = if is_3d {
            Area { offset, extent: texel_box.extent }
        } else {
            Area { offset: [offset[0], offset[1], 0], extent: [texel_box.extent[0], texel_box.extent[1], 1] }
        };
        Region::Image(ImageRegion {
            aspects: texel_box.layers.aspect_mask.0,
            mips: mip..mip.saturating_add(1),
            layers: clamped_range(texel_box.layers.base_array_layer, count, self.info.layers),
            area: (!self.is_whole_level(mip, &area)).then_some(area),
            components: Components::ALL,
        })
    }

    fn is_whole_level(&self, mip: u32, area: &Area) -> bool {
        let extent = self.info.extent_of_mip(mip);
        area.offset == [0; 3] && (0..3).all(|it| area.extent[it] >= extent[it])
    }

    /// The bytes of a buffer for these texels: one range for each row, merged if rows are adjacent.
    pub(crate) fn buffer_ranges(&self, texels: &TexelBox, rows: BufferTexelLayout) -> Vec<Range<u64>> {
        let format = format::of_aspect(self.info.format, texels.layers.aspect_mask.0);
        let (block, size) = (format::block_extent(format).map(u64::from), format::block_size(format));
        let in_blocks = |texels: u32, at: usize| u64::from(texels).div_ceil(block[at]);
        let or = |own: u32, other: u32| if own == 0 { other } else { own };
        let row_bytes = in_blocks(texels.extent[0], 0) * size;
        let row_stride = in_blocks(or(rows.row_length, texels.extent[0]), 0) * size;
        let slice_stride = in_blocks(or(rows.image_height, texels.extent[1]), 1) * row_stride;
        let row_count = in_blocks(texels.extent[1], 1);
        let layers = clamped_range(texels.layers.base_array_layer, texels.layers.layer_count, self.info.layers);
        let slice_count = u64::from(texels.extent[2]).max(layers.len() as u64);
        if row_bytes == 0 || row_count == 0 || slice_count == 0 {
            return Vec::new();
        }
        let start = |slice: u64, row: u64| {
            let inside = slice.saturating_mul(slice_stride).saturating_add(row.saturating_mul(row_stride));
            rows.offset.saturating_add(inside)
        };
        let is_dense = row_stride == row_bytes;
        let runs = if is_dense { slice_count } else { slice_count.saturating_mul(row_count) };
        if runs > RANGES_MAX {
            let end = start(slice_count - 1, row_count - 1).saturating_add(row_bytes);
            return Some(rows.offset..end).into_iter().collect();
        }
        let mut found: Vec<Range<u64>> = Vec::new();
        for slice in 0..slice_count {
            let lines = if is_dense { 1 } else { row_count };
            for row in 0..lines {
                let first = start(slice, row);
                let bytes = if is_dense { row_bytes.saturating_mul(row_count) } else { row_bytes };
                let range = first..first.saturating_add(bytes);
                match found.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => found.push(range),
                }
            }
        }
        found
    }
}

/// A base and a count as a range, clamped to `0..end`. A count with all bits set means the remainder.
pub(crate) fn clamped_range(base: u32, count: u32, end: u32) -> Range<u32> {
    let base = base.min(end);
    base..base.saturating_add(count).min(end)
}

/// A range of a buffer, clamped to its size. A size with all bits set means the remainder.
pub(crate) fn clamped_bytes(offset: u64, size: u64, end: u64) -> Range<u64> {
    let start = offset.min(end);
    start..offset.saturating_add(size).min(end).max(start)
}
