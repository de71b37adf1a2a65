//! The addresses of an image's texels, relative to its beginning.
//!
//! The unit is a block of texels: a compressed image has one address for each block, other images have one for each
//! texel. The order for optimal tiling is invented: aspects, then levels, layers, slices and rows. A linear image has
//! the byte offsets that the driver or the application gave.

use std::ops::Range;

use lavascope_abi::desc::FormatDesc;
use lavascope_abi::{FORMATS, Format, ImageAspectFlags};
use lavascope_sync_ir::{Area, Components, ImageDesc, ImageRegion, Region, SubresourceLayout, Tiling};

/// The texels of an image.
pub(crate) struct TexelLayout {
    levels: Vec<MipLevelLayout>,
    /// Bits of all aspects.
    aspects: u32,
    /// Whether the color aspect stands for all planes.
    is_multiplanar: bool,
    /// The components that are separate; accesses to other components are ignored. Empty if texels are used as a whole.
    components: Components,
    mips: u32,
    layers: u32,
    size: u64,
    /// Whether every address belongs to a texel.
    is_dense: bool,
}

/// One mip level of an aspect or plane.
struct MipLevelLayout {
    aspect: Aspect,
    mip: u32,
    /// In texels of the aspect.
    texel_extent: [u32; 3],
    /// In blocks.
    block_extent: [u64; 3],
    /// Number of addresses of a block.
    unit: u64,
    layout: SubresourceLayout,
}

const PLANES: u32 = ImageAspectFlags::PLANE_0.0 | ImageAspectFlags::PLANE_1.0 | ImageAspectFlags::PLANE_2.0;

/// One aspect of an image, or one of its planes.
#[derive(Clone, Copy)]
struct Aspect {
    bit: u32,
    /// How many times smaller a plane is than the image, in each direction.
    divisors: [u32; 3],
    /// Texels of a block, in each direction.
    block: [u32; 3],
    /// Bytes of a block.
    size: u64,
}

impl TexelLayout {
    pub(crate) fn new(image: &ImageDesc) -> TexelLayout {
        let aspects = aspects(image.format);
        let mut levels: Vec<MipLevelLayout> = aspects
            .iter()
            .flat_map(|aspect| (0..image.mips).map(|mip| MipLevelLayout::new(image, *aspect, mip)))
            .collect();
        let size = match &image.tiling {
            Tiling::Optimal => assign_addresses(&mut levels, image.layers, |_| 1, Nesting::LayersInMips),
            Tiling::Linear => assign_addresses(&mut levels, image.layers, |it| it.size, Nesting::MipsInLayers),
            Tiling::Pitched(layouts) => {
                for (level, layout) in levels.iter_mut().zip(layouts.iter()) {
                    (level.unit, level.layout) = (level.aspect.size, *layout);
                }
                levels.iter().map(|it| it.layer_range(image.layers.saturating_sub(1)).end).max().unwrap_or(0)
            }
        };
        let is_dense = !matches!(image.tiling, Tiling::Pitched(_));
        let has_planes = aspects.iter().all(|it| it.bit & PLANES != 0);
        let aspects = aspects.iter().fold(0, |all, it| all | it.bit);
        let is_color = aspects == ImageAspectFlags::COLOR.0;
        let components = if is_color { components(image.format) } else { Components(0) };
        TexelLayout {
            levels,
            aspects,
            is_multiplanar: has_planes,
            components,
            mips: image.mips,
            layers: image.layers,
            size,
            is_dense,
        }
    }

    /// Whether this is a real subset of the components.
    pub(crate) fn is_part(&self, components: Components) -> bool {
        self.components.0 & !components.0 != 0
    }

    /// The components that can be used separately.
    pub(crate) fn components(&self) -> Components {
        self.components
    }

    /// Number of addresses.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The addresses of a region.
    pub(crate) fn ranges(&self, region: &ImageRegion) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        self.each_range(region, &mut |range| found.push(range));
        found
    }

    pub(crate) fn each_range(&self, region: &ImageRegion, each: &mut impl FnMut(Range<u64>)) {
        if self.is_whole(region) {
            each(0..self.size);
            return;
        }
        let mut last = 0..0;
        let mut add = |range: Range<u64>| match range {
            range if range.is_empty() => {}
            range if last.end == range.start && !last.is_empty() => last.end = range.end,
            range => {
                let done = std::mem::replace(&mut last, range);
                if !done.is_empty() {
                    each(done);
                }
            }
        };
        let is_meant = |it: &&MipLevelLayout| it.aspect.is_in(region.aspects) && region.mips.contains(&it.mip);
        for level in self.levels.iter().filter(is_meant) {
            let blocks = level.blocks(region);
            for layer in region.layers.start..region.layers.end.min(self.layers) {
                level.for_each_layer_range(layer, &blocks, &mut add);
            }
        }
        if !last.is_empty() {
            each(last);
        }
    }

    /// Whether a region is the whole image in one range.
    #[inline]
    pub(crate) fn is_whole(&self, region: &ImageRegion) -> bool {
        let ends = |it: &Range<u32>, end: u32| it.start == 0 && it.end >= end;
        self.is_dense
            && self.size != 0
            && region.area.is_none()
            && ends(&region.mips, self.mips)
            && ends(&region.layers, self.layers)
            && (region.aspects & self.aspects == self.aspects
                || self.is_multiplanar && region.aspects & ImageAspectFlags::COLOR.0 != 0)
    }

    /// Translates addresses into regions of the API, one for each row, slice or subresource.
    pub(crate) fn regions(&self, range: &Range<u64>, components: Components) -> Vec<Region> {
        let mut found = Vec::new();
        for level in &self.levels {
            for layer in 0..self.layers {
                let whole = level.layer_range(layer);
                let part = range.start.max(whole.start)..range.end.min(whole.end);
                if part.is_empty() {
                    continue;
                }
                let region = |area| {
                    Region::Image(ImageRegion {
                        aspects: level.aspect.bit,
                        mips: level.mip..level.mip + 1,
                        layers: layer..layer + 1,
                        area,
                        components,
                    })
                };
                if part == whole {
                    found.push(region(None));
                } else {
                    let areas = level.areas(part.start - whole.start..part.end - whole.start);
                    found.extend(areas.into_iter().map(|it| region(Some(it))));
                }
            }
        }
        found
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Nesting {
    LayersInMips,
    MipsInLayers,
}

/// Places the levels one after the other without gaps. Returns the total size.
fn assign_addresses(
    levels: &mut [MipLevelLayout],
    layers: u32,
    unit: impl Fn(&Aspect) -> u64,
    nesting: Nesting,
) -> u64 {
    let mut next = 0;
    for aspect in levels.chunk_by_mut(|a, b| a.aspect.bit == b.aspect.bit) {
        for level in aspect.iter_mut() {
            level.unit = unit(&level.aspect);
            let [width, height, depth] = level.block_extent;
            let row_pitch = width * level.unit;
            let depth_pitch = row_pitch * height;
            level.layout = SubresourceLayout { offset: 0, row_pitch, depth_pitch, array_pitch: depth_pitch * depth };
        }
        let of_layer: u64 = aspect.iter().map(|it| it.layout.array_pitch).sum();
        for level in aspect.iter_mut() {
            level.layout.offset = next;
            match nesting {
                Nesting::LayersInMips => next += level.layout.array_pitch * u64::from(layers),
                Nesting::MipsInLayers => {
                    next += level.layout.array_pitch;
                    level.layout.array_pitch = of_layer;
                }
            }
        }
        if nesting == Nesting::MipsInLayers {
            next += of_layer * u64::from(layers.saturating_sub(1));
        }
    }
    next
}

impl MipLevelLayout {
    fn new(image: &ImageDesc, aspect: Aspect, mip: u32) -> MipLevelLayout {
        let whole = image.extent_of_mip(mip);
        let texels: [u32; 3] = std::array::from_fn(|it| whole[it].div_ceil(aspect.divisors[it].max(1)));
        let extent = std::array::from_fn(|it| u64::from(texels[it].div_ceil(aspect.block[it].max(1))));
        let layout = SubresourceLayout { offset: 0, row_pitch: 0, depth_pitch: 0, array_pitch: 0 };
        MipLevelLayout { aspect, mip, texel_extent: texels, block_extent: extent, unit: 1, layout }
    }

    /// The range from the first address of a layer to its last.
    fn layer_range(&self, layer: u32) -> Range<u64> {
        let [width, height, depth] = self.block_extent;
        let begin = self.layer_begin(layer);
        let slices = depth.saturating_sub(1) * self.layout.depth_pitch;
        begin..begin + slices + height.saturating_sub(1) * self.layout.row_pitch + width * self.unit
    }

    fn layer_begin(&self, layer: u32) -> u64 {
        self.layout.offset + u64::from(layer) * self.layout.array_pitch
    }

    /// The blocks that a region overlaps, in each direction.
    fn blocks(&self, region: &ImageRegion) -> [Range<u64>; 3] {
        let Some(area) = region.area else { return self.block_extent.map(|it| 0..it) };
        // A region of the color aspect of a multi-planar image is in texels of the image, not of the plane.
        let is_own = region.aspects & self.aspect.bit != 0;
        std::array::from_fn(|axis| {
            let divisor = if is_own { 1 } else { self.aspect.divisors[axis].max(1) };
            let start = area.offset[axis] / divisor;
            let end =
                area.offset[axis].saturating_add(area.extent[axis]).div_ceil(divisor).min(self.texel_extent[axis]);
            let block = self.aspect.block[axis].max(1);
            if start >= end { 0..0 } else { u64::from(start / block)..u64::from(end.div_ceil(block)) }
        })
    }

    fn for_each_layer_range(&self, layer: u32, [x, y, z]: &[Range<u64>; 3], add: &mut impl FnMut(Range<u64>)) {
        let SubresourceLayout { row_pitch, depth_pitch, .. } = self.layout;
        // Whole rows without padding are consecutive.
        let is_wide = *x == (0..self.block_extent[0]) && row_pitch == self.block_extent[0] * self.unit;
        for slice in z.clone() {
            let slice = self.layer_begin(layer) + slice * depth_pitch;
            if is_wide {
                add(slice + y.start * row_pitch..slice + y.end * row_pitch);
                continue;
            }
            for row in y.clone() {
                let row = slice + row * row_pitch;
                add(row + x.start * self.unit..row + x.end * self.unit);
            }
        }
    }

    /// The areas of a range of addresses within a layer. Equal rows are merged.
    fn areas(&self, run: Range<u64>) -> Vec<Area> {
        let SubresourceLayout { row_pitch, depth_pitch, .. } = self.layout;
        let [width, height, depth] = self.block_extent;
        let mut found: Vec<Area> = Vec::new();
        for z in touched_steps(&run, depth_pitch, depth) {
            let slice = run.start.saturating_sub(z * depth_pitch)..run.end.saturating_sub(z * depth_pitch);
            for y in touched_steps(&slice, row_pitch, height) {
                let first = slice.start.saturating_sub(y * row_pitch) / self.unit;
                let end = (slice.end - y * row_pitch).div_ceil(self.unit).min(width);
                if first >= end {
                    continue;
                }
                let area = self.area([first..end, y..y + 1, z..z + 1]);
                match found.last_mut() {
                    Some(last) if is_below(last, &area) => last.extent[1] += area.extent[1],
                    _ => found.push(area),
                }
            }
        }
        found
    }

    /// Converts blocks to texels, cut at the edge of the level.
    fn area(&self, blocks: [Range<u64>; 3]) -> Area {
        let mut area = Area { offset: [0; 3], extent: [1; 3] };
        for (axis, blocks) in blocks.iter().enumerate() {
            let block = self.aspect.block[axis].max(1);
            let end = (blocks.end as u32).saturating_mul(block).min(self.texel_extent[axis]);
            area.offset[axis] = blocks.start as u32 * block;
            area.extent[axis] = end - area.offset[axis];
        }
        area
    }
}

/// The steps of some size that a range overlaps, of `count`.
fn touched_steps(range: &Range<u64>, size: u64, count: u64) -> Range<u64> {
    if size == 0 {
        return 0..count.min(1);
    }
    (range.start / size).min(count)..range.end.div_ceil(size).min(count)
}

fn is_below(upper: &Area, lower: &Area) -> bool {
    upper.offset[0] == lower.offset[0]
        && upper.extent[0] == lower.extent[0]
        && upper.offset[1] + upper.extent[1] == lower.offset[1]
        && upper.offset[2] == lower.offset[2]
}

impl Aspect {
    fn new(bit: ImageAspectFlags, desc: Option<&FormatDesc>) -> Aspect {
        let (block, size) = desc.map_or(([1; 3], 1), |it| (it.block_extent, it.block_size));
        Aspect { bit: bit.0, divisors: [1; 3], block, size: u64::from(size).max(1) }
    }

    /// The color aspect of a multi-planar image includes all planes.
    fn is_in(&self, mask: u32) -> bool {
        let is_color = mask & ImageAspectFlags::COLOR.0 != 0 && self.bit & PLANES != 0;
        mask & self.bit != 0 || is_color
    }
}

fn desc(format: Format) -> Option<&'static FormatDesc> {
    FORMATS.iter().find(|it| it.format == format)
}

/// The components of a color format.
fn components(format: Format) -> Components {
    let names = desc(format).map_or(&[][..], |it| it.components);
    let has = |name: &str| names.iter().any(|it| it.name == name);
    let bits = ["R", "G", "B", "A"].iter().enumerate().map(|(at, name)| u8::from(has(name)) << at);
    Components(bits.fold(0, |all, bit| all | bit))
}

/// The aspects of a format, in the order of their addresses.
fn aspects(format: Format) -> Vec<Aspect> {
    let own = desc(format);
    // Depth and stencil of one format have separate bytes.
    let part = |bit: ImageAspectFlags, name: &str| {
        let component = own.and_then(|it| it.components.iter().find(|it| it.name == name))?;
        Some(Aspect { size: u64::from(component.bits.div_ceil(8)).max(1), ..Aspect::new(bit, own) })
    };
    let parts: Vec<Aspect> =
        [part(ImageAspectFlags::DEPTH, "D"), part(ImageAspectFlags::STENCIL, "S")].into_iter().flatten().collect();
    match (&parts[..], own.map_or(&[][..], |it| it.planes)) {
        ([_, _], _) => parts,
        // Including bits of the format that are not used.
        ([aspect], _) => vec![Aspect { size: own.map_or(1, |it| u64::from(it.block_size)), ..*aspect }],
        (_, [] | [_]) => vec![Aspect::new(ImageAspectFlags::COLOR, own)],
        (_, planes) => planes
            .iter()
            .zip([ImageAspectFlags::PLANE_0, ImageAspectFlags::PLANE_1, ImageAspectFlags::PLANE_2])
            .map(|(plane, bit)| Aspect {
                divisors: [plane.width_divisor, plane.height_divisor, 1],
                ..Aspect::new(bit, desc(plane.format))
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests;
