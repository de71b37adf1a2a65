//! Where texels lie, held against a loop over all of them.

use std::collections::BTreeSet;

use super::*;
use lavascope_test_support::TestRng;

/// A plane or an aspect: its bit, by what it is smaller, the texels of its blocks, the bytes of a block.
type Part = (ImageAspectFlags, [u32; 2], [u32; 2], u64);

const DEPTH: ImageAspectFlags = ImageAspectFlags::DEPTH;
const STENCIL: ImageAspectFlags = ImageAspectFlags::STENCIL;
const COLOR: ImageAspectFlags = ImageAspectFlags::COLOR;

fn formats() -> Vec<(Format, Vec<Part>)> {
    let one = [1, 1];
    vec![
        (Format::R8G8B8A8_UNORM, vec![(COLOR, one, one, 4)]),
        (Format::D32_SFLOAT, vec![(DEPTH, one, one, 4)]),
        (Format::X8_D24_UNORM_PACK32, vec![(DEPTH, one, one, 4)]),
        (Format::D24_UNORM_S8_UINT, vec![(DEPTH, one, one, 3), (STENCIL, one, one, 1)]),
        (Format::BC7_UNORM_BLOCK, vec![(COLOR, one, [4, 4], 16)]),
        (
            Format::G8_B8R8_2PLANE_420_UNORM,
            vec![(ImageAspectFlags::PLANE_0, one, one, 1), (ImageAspectFlags::PLANE_1, [2, 2], one, 2)],
        ),
    ]
}

/// A block of texels: what it is part of, where it is in blocks, and its addresses.
struct Block {
    part: Part,
    mip: u32,
    layer: u32,
    at: [u32; 3],
    /// Texels of the level.
    texels: [u32; 3],
    addresses: Range<u64>,
}

/// All blocks of an image, as the words at the top of the file say.
fn blocks(image: &ImageDesc, parts: &[Part]) -> Vec<Block> {
    let (mut found, mut next) = (Vec::new(), 0);
    let layers = |it: bool| if it { 0..image.layers } else { 0..1 };
    let is_linear = image.tiling == Tiling::Linear;
    for part in parts {
        for outer in layers(is_linear) {
            for mip in 0..image.mips {
                let whole = image.extent.map(|it| (it >> mip).max(1));
                let texels = [whole[0].div_ceil(part.1[0]), whole[1].div_ceil(part.1[1]), whole[2]];
                let side = |axis: usize| texels[axis].div_ceil(part.2[axis]);
                for inner in layers(!is_linear) {
                    for (z, y) in (0..whole[2]).flat_map(|z| (0..side(1)).map(move |y| (z, y))) {
                        for x in 0..side(0) {
                            let end = next + if is_linear { part.3 } else { 1 };
                            let (at, layer) = ([x, y, z], outer + inner);
                            found.push(Block { part: *part, mip, layer, at, texels, addresses: next..end });
                            next = end;
                        }
                    }
                }
            }
        }
    }
    found
}

impl Block {
    /// Whether a region has some of it.
    fn is_in(&self, region: &ImageRegion) -> bool {
        let own = region.aspects & self.part.0.0 != 0;
        let is_color = region.aspects & COLOR.0 != 0 && self.part.0.0 & PLANES != 0;
        let is_touched = |area: Area| {
            (0..3).all(|axis| {
                let (divisor, block) = if axis < 2 { (self.part.1[axis], self.part.2[axis]) } else { (1, 1) };
                let scale = if own { block } else { block * divisor };
                let (start, end) = (self.at[axis] * scale, (self.at[axis] + 1) * scale);
                // What is left of a block behind the edge is nothing.
                area.offset[axis] / (scale / block) < self.texels[axis]
                    && area.offset[axis] < end
                    && start < area.offset[axis] + area.extent[axis]
            })
        };
        (own || is_color)
            && region.mips.contains(&self.mip)
            && region.layers.contains(&self.layer)
            && region.area.is_none_or(is_touched)
    }
}

fn all_of<'a>(blocks: impl Iterator<Item = &'a Block>) -> BTreeSet<u64> {
    blocks.flat_map(|it| it.addresses.clone()).collect()
}

fn random_image(dice: &mut TestRng, format: Format) -> ImageDesc {
    let tiling = if dice.below(2) == 0 { Tiling::Optimal } else { Tiling::Linear };
    let extent = [1 + dice.below(9) as u32, 1 + dice.below(9) as u32, 1 + dice.below(3) as u32];
    let (mips, layers) = (1 + dice.below(3) as u32, 1 + dice.below(3) as u32);
    ImageDesc { format, extent, mips, layers, tiling, alias: false }
}

fn random_region(dice: &mut TestRng, parts: &[Part]) -> ImageRegion {
    let mut part = |end: u64| {
        let start = dice.below(end) as u32;
        start..start + 1 + dice.below(end) as u32
    };
    let (mips, layers) = (part(2), part(2));
    let [x, y, z] = [part(9), part(9), part(3)];
    let area = Area { offset: [x.start, y.start, z.start], extent: [x, y, z].map(|it| it.end - it.start) };
    let all = parts.iter().fold(COLOR.0, |all, it| all | it.0.0);
    let aspects = dice.pick(&[all, COLOR.0, parts[0].0.0, parts[parts.len() - 1].0.0]);
    let area = Some(area).filter(|_| dice.below(2) == 0);
    let whole = |dice: &mut TestRng, it: Range<u32>| if dice.below(2) == 0 { 0..4 } else { it };
    let (mips, layers) = (whole(dice, mips), whole(dice, layers));
    ImageRegion { aspects, mips, layers, area, components: Components::ALL }
}

#[test]
fn regions_are_the_texels_that_they_name() {
    let mut dice = TestRng::new(31);
    let mut wholes = 0;
    for round in 0..4_000 {
        let formats = formats();
        let (format, parts) = &formats[round % formats.len()];
        let image = random_image(&mut dice, *format);
        let (texels, blocks) = (TexelLayout::new(&image), blocks(&image, parts));
        assert_eq!(texels.size(), blocks.iter().map(|it| it.addresses.end).max().unwrap_or(0));
        let region = random_region(&mut dice, parts);
        let wanted = all_of(blocks.iter().filter(|it| it.is_in(&region)));
        let ranges = texels.ranges(&region);
        let found: BTreeSet<u64> = ranges.iter().cloned().flatten().collect();
        assert_eq!(found, wanted, "{image:?} {region:?}");
        // Runs are as long as they can be, and there is something in each.
        assert!(ranges.iter().all(|it| !it.is_empty()));
        assert!(ranges.windows(2).all(|it| it[0].end != it[1].start), "{ranges:?}");
        let is_all = region.area.is_none() && wanted.len() as u64 == texels.size();
        assert_eq!(texels.is_whole(&region), is_all);
        wholes += usize::from(is_all);
        // And back: the blocks that some addresses touch.
        let start = dice.below(texels.size());
        let run = start..start + 1 + dice.below(texels.size() - start);
        let is_hit = |it: &&Block| it.addresses.start < run.end && run.start < it.addresses.end;
        let wanted = all_of(blocks.iter().filter(is_hit));
        let mut found = BTreeSet::new();
        for item in texels.regions(&run, Components::ALL) {
            let Region::Image(image_region) = item else { panic!("an image") };
            assert!(texels.ranges(&image_region).into_iter().flatten().all(|it| found.insert(it)), "found twice");
        }
        assert_eq!(found, wanted, "{image:?} {run:?}");
    }
    assert!(wholes > 100, "{wholes}");
}

fn areas(image: &ImageDesc, run: Range<u64>) -> Vec<Option<Area>> {
    let texels = TexelLayout::new(image);
    let area = |it| if let Region::Image(it) = it { it.area } else { None };
    texels.regions(&run, Components::ALL).into_iter().map(area).collect()
}

#[test]
fn rows_that_are_alike_are_reported_together() {
    let (format, tiling) = (Format::R8G8B8A8_UNORM, Tiling::Optimal);
    let image = ImageDesc { format, extent: [4, 4, 2], mips: 1, layers: 1, tiling, alias: false };
    let area = |x: Range<u32>, y: Range<u32>, z: u32| {
        Some(Area { offset: [x.start, y.start, z], extent: [x.end - x.start, y.end - y.start, 1] })
    };
    assert_eq!(areas(&image, 0..32), [None]);
    assert_eq!(areas(&image, 4..12), [area(0..4, 1..3, 0)]);
    assert_eq!(areas(&image, 2..6), [area(2..4, 0..1, 0), area(0..2, 1..2, 0)]);
    assert_eq!(areas(&image, 2..12), [area(2..4, 0..1, 0), area(0..4, 1..3, 0)]);
    assert_eq!(areas(&image, 4..14), [area(0..4, 1..3, 0), area(0..2, 3..4, 0)]);
    assert_eq!(areas(&image, 12..20), [area(0..4, 3..4, 0), area(0..4, 0..1, 1)]);
}

/// Bytes between rows belong to nobody.
#[test]
fn rows_with_padding() {
    let layout = SubresourceLayout { offset: 4, row_pitch: 10, depth_pitch: 24, array_pitch: 50 };
    let tiling = Tiling::Pitched([layout].into());
    let image = ImageDesc { format: Format::R8G8_UNORM, extent: [3, 2, 2], mips: 1, layers: 2, tiling, alias: false };
    let texels = TexelLayout::new(&image);
    let all = |area, layers| ImageRegion { aspects: COLOR.0, mips: 0..1, layers, area, components: Components::ALL };
    let rows = [4, 14, 28, 38, 54, 64, 78, 88].map(|it| it..it + 6);
    assert_eq!((texels.ranges(&all(None, 0..2)), texels.size()), (rows.to_vec(), 94));
    assert!(!texels.is_whole(&all(None, 0..2)));
    let area = Area { offset: [1, 1, 0], extent: [9, 9, 9] };
    assert_eq!(texels.ranges(&all(Some(area), 1..2)), [66..70, 90..94]);
    let found = areas(&image, 16..45);
    let area = |x: Range<u32>, y: Range<u32>, z: u32| {
        Some(Area { offset: [x.start, y.start, z], extent: [x.end - x.start, y.end - y.start, 1] })
    };
    assert_eq!(found, [area(1..3, 1..2, 0), area(0..3, 0..2, 1)]);
    assert_eq!(areas(&image, 10..14), []);
    // A row without padding, and one that is not whole.
    let layout = SubresourceLayout { row_pitch: 6, depth_pitch: 12, ..layout };
    let image = ImageDesc { tiling: Tiling::Pitched([layout].into()), ..image };
    let texels = TexelLayout::new(&image);
    assert_eq!(texels.ranges(&all(None, 0..1)), vec![4..28; 1]);
}
