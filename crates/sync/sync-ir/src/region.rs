//! Parts of resources.

use std::ops::Range;

/// A part of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Region {
    /// Bytes of a buffer.
    Buffer(Range<u64>),
    Image(ImageRegion),
}

/// Part of an image: some aspects, mip levels and layers, and in each of these subresources an area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRegion {
    /// `VkImageAspectFlags`.
    pub aspects: u32,
    pub mips: Range<u32>,
    pub layers: Range<u32>,
    /// None: the whole of each subresource. Otherwise the same texels of each level.
    pub area: Option<Area>,
    pub components: Components,
}

/// Texels of a subresource: `offset` up to, not including, `offset + extent`, cut at the edge of the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Area {
    pub offset: [u32; 3],
    pub extent: [u32; 3],
}

/// The components of a texel, as bits: red 1, green 2, blue 4, alpha 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Components(pub u8);

impl Components {
    pub const ALL: Components = Components(0xf);
}

impl Region {
    /// Both together, if that is one region: they touch or overlap, and are alike in all other ways.
    pub fn join(&self, other: &Region) -> Option<Region> {
        match (self, other) {
            (Region::Buffer(a), Region::Buffer(b)) => {
                let is_adjacent = a.start <= b.end && b.start <= a.end;
                is_adjacent.then(|| Region::Buffer(a.start.min(b.start)..a.end.max(b.end)))
            }
            (Region::Image(a), Region::Image(b)) => join_images(a, b).map(Region::Image),
            (Region::Buffer(_), Region::Image(_)) | (Region::Image(_), Region::Buffer(_)) => None,
        }
    }

    /// As few regions as joining leads to, in their order.
    pub fn join_all(all: impl IntoIterator<Item = Region>) -> Vec<Region> {
        let mut all: Vec<Region> = all.into_iter().collect();
        let mut at = 0;
        while at < all.len() {
            let joined = (at + 1..all.len()).find_map(|it| Some((it, all[at].join(&all[it])?)));
            match joined {
                Some((other, region)) => {
                    all.remove(other);
                    all[at] = region;
                    // An earlier range may fit now.
                    at = 0;
                }
                None => at += 1,
            }
        }
        all
    }
}

/// Regions that are equal but for one property, in which they touch.
fn join_images(a: &ImageRegion, b: &ImageRegion) -> Option<ImageRegion> {
    let range = |a: &std::ops::Range<u32>, b: &std::ops::Range<u32>| {
        (a.start <= b.end && b.start <= a.end).then(|| a.start.min(b.start)..a.end.max(b.end))
    };
    let candidates = [
        Some(ImageRegion { aspects: a.aspects | b.aspects, ..a.clone() }),
        range(&a.mips, &b.mips).map(|mips| ImageRegion { mips, ..a.clone() }),
        range(&a.layers, &b.layers).map(|layers| ImageRegion { layers, ..a.clone() }),
        join_areas(a, b).map(|area| ImageRegion { area: Some(area), ..a.clone() }),
    ];
    let is_union = |made: &ImageRegion| {
        let with = |image_region: &ImageRegion| ImageRegion {
            aspects: if made.aspects == a.aspects { image_region.aspects } else { made.aspects },
            mips: if made.mips == a.mips { image_region.mips.clone() } else { made.mips.clone() },
            layers: if made.layers == a.layers { image_region.layers.clone() } else { made.layers.clone() },
            area: if made.area == a.area { image_region.area } else { made.area },
            components: image_region.components,
        };
        with(b) == *made
    };
    if a == b {
        return Some(a.clone());
    }
    candidates.into_iter().flatten().find(|it| it != a && is_union(it))
}

fn join_areas(a: &ImageRegion, b: &ImageRegion) -> Option<Area> {
    let (a, b) = (a.area?, b.area?);
    let differs: Vec<usize> =
        (0..3).filter(|axis| (a.offset[*axis], a.extent[*axis]) != (b.offset[*axis], b.extent[*axis])).collect();
    let [axis] = differs[..] else { return None };
    let (first, second) = if a.offset[axis] <= b.offset[axis] { (a, b) } else { (b, a) };
    let end = |it: &Area| it.offset[axis].saturating_add(it.extent[axis]);
    if end(&first) < second.offset[axis] {
        return None;
    }
    let mut made = first;
    made.extent[axis] = end(&first).max(end(&second)) - first.offset[axis];
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(layers: Range<u32>, rows: Option<Range<u32>>) -> Region {
        let area = rows.map(|it| Area { offset: [0, it.start, 0], extent: [8, it.end - it.start, 1] });
        Region::Image(ImageRegion { aspects: 1, mips: 0..1, layers, area, components: Components::ALL })
    }

    #[test]
    fn regions_that_touch_are_one() {
        let bytes = [Region::Buffer(0..8), Region::Buffer(16..24), Region::Buffer(8..16), Region::Buffer(32..40)];
        assert_eq!(Region::join_all(bytes), [Region::Buffer(0..24), Region::Buffer(32..40)]);
        let rows = (0..4).map(|it| image(0..1, Some(it..it + 1)));
        assert_eq!(Region::join_all(rows), [image(0..1, Some(0..4))]);
        assert_eq!(Region::join_all([image(0..1, None), image(1..3, None)]), [image(0..3, None)]);
        // Together they would be more than the two.
        let corner = [image(0..1, Some(0..2)), image(1..2, Some(1..3))];
        assert_eq!(Region::join_all(corner.clone()), corner);
        assert_eq!(Region::Buffer(0..8).join(&image(0..1, None)), None);
    }
}
