//! How an image lies in memory: plane by plane, layer by layer, level by level, row by row.

use lavascope_abi::*;

use crate::capabilities::formats;

const ROW_ALIGNMENT: u64 = 64;

/// The extents and places of an image's parts.
pub(crate) struct ImageShape {
    pub(crate) format: Format,
    pub(crate) mip_levels: u32,
    pub(crate) array_layers: u32,
    pub(crate) samples: u32,
    /// One for all formats that have no planes.
    pub(crate) planes: Vec<Plane>,
}

/// A plane, or the whole of an image without planes.
pub(crate) struct Plane {
    offset: u64,
    pub(crate) size: u64,
    /// Bytes of a texel block.
    pub(crate) block_size: u64,
    /// Texels of a block.
    pub(crate) block_extent: [u32; 3],
    extent: Extent3D,
    array_pitch: u64,
}

/// A level of a layer: where it lies, its extent in blocks, and the way from one row or slice to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelLayout {
    pub(crate) offset: u64,
    pub(crate) blocks: [u64; 3],
    pub(crate) row_pitch: u64,
    pub(crate) slice_pitch: u64,
}

impl LevelLayout {
    fn size(&self) -> u64 {
        self.slice_pitch.saturating_mul(self.blocks[2])
    }
}

impl ImageShape {
    pub(crate) fn of(info: &ImageCreateInfo) -> ImageShape {
        let desc = formats::find(info.format);
        let samples = info.samples.0.max(1);
        let mut shape = ImageShape {
            format: info.format,
            mip_levels: info.mip_levels.max(1),
            array_layers: info.array_layers.max(1),
            samples,
            planes: Vec::new(),
        };
        let count = desc.map_or(1, |it| it.planes.len().max(1));
        let mut offset = 0u64;
        for index in 0..count {
            let mut extent = info.extent;
            let mut block = desc.map_or((4, [1; 3]), |it| (it.block_size, it.block_extent));
            if let Some(plane) = desc.and_then(|it| it.planes.get(index)) {
                extent.width = extent.width.div_ceil(plane.width_divisor.max(1));
                extent.height = extent.height.div_ceil(plane.height_divisor.max(1));
                block = formats::find(plane.format).map_or(block, |it| (it.block_size, it.block_extent));
            }
            let plane = shape.new_plane(offset, extent, block);
            offset = offset.saturating_add(plane.size);
            shape.planes.push(plane);
        }
        shape
    }

    fn new_plane(&self, offset: u64, extent: Extent3D, block: (u32, [u32; 3])) -> Plane {
        let block_size = u64::from(block.0.max(1)) * u64::from(self.samples);
        let block_extent = block.1.map(|it| it.max(1));
        let mut plane = Plane { offset, size: 0, block_size, block_extent, extent, array_pitch: 0 };
        let levels = (0..self.mip_levels.min(32)).map(|level| plane.level(level, 0).size());
        plane.array_pitch = levels.fold(0, u64::saturating_add);
        plane.size = plane.array_pitch.saturating_mul(u64::from(self.array_layers));
        plane
    }

    pub(crate) fn size(&self) -> u64 {
        self.planes.iter().fold(0, |all, it| all.saturating_add(it.size))
    }

    /// The plane that an aspect names.
    pub(crate) fn plane(&self, aspect: ImageAspectFlags) -> &Plane {
        let has = |bits: ImageAspectFlags| aspect.0 & bits.0 != 0;
        let index = match () {
            () if has(ImageAspectFlags::PLANE_1) || has(ImageAspectFlags::MEMORY_PLANE_1_EXT) => 1,
            () if has(ImageAspectFlags::PLANE_2) || has(ImageAspectFlags::MEMORY_PLANE_2_EXT) => 2,
            () => 0,
        };
        &self.planes[if index < self.planes.len() { index } else { 0 }]
    }

    pub(crate) fn subresource(&self, at: &ImageSubresource) -> SubresourceLayout {
        let plane = self.plane(at.aspect_mask);
        let level = plane.level(at.mip_level, at.array_layer);
        SubresourceLayout {
            offset: level.offset,
            size: level.size(),
            row_pitch: level.row_pitch,
            array_pitch: plane.array_pitch,
            depth_pitch: level.slice_pitch,
        }
    }
}

impl Plane {
    /// A level of a layer.
    pub(crate) fn level(&self, level: u32, layer: u32) -> LevelLayout {
        let layer_offset = self.array_pitch.saturating_mul(u64::from(layer));
        let mut offset = self.offset.saturating_add(layer_offset);
        for before in 0..level.min(32) {
            offset = offset.saturating_add(self.level_in_layer(before).size());
        }
        LevelLayout { offset, ..self.level_in_layer(level) }
    }

    fn level_in_layer(&self, level: u32) -> LevelLayout {
        let shrink = |extent: u32, block: u32| u64::from((extent >> level.min(31)).max(1).div_ceil(block));
        let [x, y, z] = self.block_extent;
        let Extent3D { width, height, depth } = self.extent;
        let blocks = [shrink(width, x), shrink(height, y), shrink(depth, z)];
        let row_pitch = (blocks[0] * self.block_size).next_multiple_of(ROW_ALIGNMENT);
        LevelLayout { offset: 0, blocks, row_pitch, slice_pitch: row_pitch.saturating_mul(blocks[1]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(format: Format, width: u32, height: u32, mip_levels: u32, array_layers: u32) -> ImageShape {
        let mut info = ImageCreateInfo::zeroed();
        info.format = format;
        info.extent = Extent3D { width, height, depth: 1 };
        info.mip_levels = mip_levels;
        info.array_layers = array_layers;
        info.samples = SampleCountFlags::_1;
        ImageShape::of(&info)
    }

    #[test]
    fn parts_lie_behind_each_other() {
        let shape = image(Format::R8G8B8A8_UNORM, 64, 32, 3, 2);
        let at = |mip_level, array_layer| {
            let aspect_mask = ImageAspectFlags::COLOR;
            shape.subresource(&ImageSubresource { aspect_mask, mip_level, array_layer })
        };
        assert_eq!((at(0, 0).offset, at(0, 0).row_pitch, at(0, 0).size), (0, 256, 256 * 32));
        assert_eq!((at(1, 0).offset, at(1, 0).row_pitch), (256 * 32, 128));
        assert_eq!(at(0, 1).offset, 256 * 32 + 128 * 16 + 64 * 8);
        assert_eq!(shape.size(), 2 * at(0, 1).offset);
    }

    #[test]
    fn planes_and_blocks_have_their_sizes() {
        let shape = image(Format::G8_B8R8_2PLANE_420_UNORM, 64, 64, 1, 1);
        assert_eq!((shape.planes.len(), shape.planes[0].size, shape.planes[1].size), (2, 64 * 64, 64 * 32));
        let shape = image(Format::BC1_RGB_UNORM_BLOCK, 64, 64, 1, 1);
        assert_eq!(shape.size(), 16 * 16 * 8);
    }
}
