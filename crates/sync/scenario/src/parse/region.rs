//! Parts of resources: `b[0..64]`, `tex.depth.mip0.layers0..2.rg[0..8, 0..8]`.

use std::fmt::Write;
use std::ops::Range;

use lavascope_abi::desc::{FormatDesc, FormatPlane};
use lavascope_sync_ir::{Area, Components, ImageDesc, ImageRegion, Region, Resource, ResourceId, ResourceKind};
use lavascope_sync_ir::{SubresourceLayout, Tiling};

use crate::error::Result;
use crate::parse::builder::ScenarioBuilder;
use crate::parse::tokens::{Token, TokenCursor};
use crate::parse::words::format_desc;

const ASPECTS: [(&str, u32); 7] = [
    ("color", 0x1),
    ("depth", 0x2),
    ("stencil", 0x4),
    ("metadata", 0x8),
    ("plane0", 0x10),
    ("plane1", 0x20),
    ("plane2", 0x40),
];

/// A resource and a part of it.
pub(crate) fn parse_region(builder: &ScenarioBuilder, cursor: &mut TokenCursor) -> Result<(ResourceId, Region)> {
    let id = builder.resource(cursor)?;
    let region = match &builder.program.resources[id.0 as usize].kind {
        ResourceKind::Buffer { size } => Region::Buffer(bytes(cursor, *size)?),
        ResourceKind::Image(image) => Region::Image(image_part(cursor, image)?),
    };
    Ok((id, region))
}

/// An image and a part of it.
pub(crate) fn parse_image(builder: &ScenarioBuilder, cursor: &mut TokenCursor) -> Result<(ResourceId, ImageRegion)> {
    let column = cursor.column();
    match parse_region(builder, cursor)? {
        (id, Region::Image(region)) => Ok((id, region)),
        (_, Region::Buffer(_)) => Err(cursor.error_at(column, "an image is wanted here, not a buffer".to_owned())),
    }
}

/// The whole of a resource.
pub(crate) fn whole(resource: &Resource) -> Region {
    match &resource.kind {
        ResourceKind::Buffer { size } => Region::Buffer(0..*size),
        ResourceKind::Image(image) => Region::Image(whole_image(image)),
    }
}

pub(crate) fn whole_image(image: &ImageDesc) -> ImageRegion {
    ImageRegion {
        aspects: aspects_of(image),
        mips: 0..image.mips,
        layers: 0..image.layers,
        area: None,
        components: Components::ALL,
    }
}

/// All aspects that an image has; planes count as one color.
pub(crate) fn aspects_of(image: &ImageDesc) -> u32 {
    let Some(desc) = format_desc(image.format) else { return 1 };
    let has = |name: &str| desc.components.iter().any(|it| it.name == name);
    match (has("D"), has("S")) {
        (false, false) => 1,
        (depth, stencil) => u32::from(depth) * 2 + u32::from(stencil) * 4,
    }
}

/// The text of a part; a buffer's bytes always, or only where they are not all.
pub(crate) fn region_text(name: &str, resource: &Resource, region: &Region, bytes: ByteRangeText) -> String {
    match (region, &resource.kind) {
        (Region::Buffer(range), ResourceKind::Buffer { size })
            if *range == (0..*size) && bytes == ByteRangeText::OnlyIfPartial =>
        {
            name.to_owned()
        }
        (Region::Buffer(range), _) => format!("{name}[{}..{}]", range.start, range.end),
        (Region::Image(region), ResourceKind::Image(image)) => format!("{name}{}", image_text(image, region)),
        (Region::Image(_), ResourceKind::Buffer { .. }) => format!("{name}.unknown"),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteRangeText {
    Always,
    OnlyIfPartial,
}

/// Bytes that an image takes: to the end of its last row, or with its subresources one behind the other.
pub(crate) fn image_size(image: &ImageDesc) -> u64 {
    let levels = levels(image).into_iter();
    if let Tiling::Pitched(layouts) = &image.tiling {
        let end = |([width, height, depth], subresource_layout): ([u64; 3], &SubresourceLayout)| {
            let layers = u64::from(image.layers.saturating_sub(1)) * subresource_layout.array_pitch;
            subresource_layout.offset
                + layers
                + (depth - 1) * subresource_layout.depth_pitch
                + (height - 1) * subresource_layout.row_pitch
                + width
        };
        return levels.zip(layouts.iter()).map(end).max().unwrap_or(0);
    }
    levels.map(|it| it.into_iter().product::<u64>()).sum::<u64>() * u64::from(image.layers)
}

/// The levels of each plane: bytes of a row, rows, slices.
pub(crate) fn levels(image: &ImageDesc) -> Vec<[u64; 3]> {
    let of_level = |[width, height, depth, size]: [u64; 4]| [width * size, height, depth];
    let of_aspect = |aspect: ByteAspect| (0..image.mips).map(move |mip| of_level(aspect.blocks(image, mip)));
    byte_aspects(image).into_iter().flat_map(of_aspect).collect()
}

/// A plane, or the depth or stencil of an image.
struct ByteAspect {
    divisors: [u32; 3],
    block: [u32; 3],
    size: u64,
}

impl ByteAspect {
    /// Blocks each way of a level, and the bytes of one.
    fn blocks(&self, image: &ImageDesc, mip: u32) -> [u64; 4] {
        let whole = image.extent_of_mip(mip);
        let count = |it: usize| u64::from(whole[it].div_ceil(self.divisors[it].max(1)).div_ceil(self.block[it].max(1)));
        [count(0), count(1), count(2), self.size]
    }
}

fn byte_aspects(image: &ImageDesc) -> Vec<ByteAspect> {
    let Some(desc) = format_desc(image.format) else {
        return vec![ByteAspect { divisors: [1; 3], block: [1; 3], size: 4 }];
    };
    let of = |divisors: [u32; 3], desc: &FormatDesc, size: u32| ByteAspect {
        divisors,
        block: desc.block_extent,
        size: u64::from(size),
    };
    if desc.planes.len() > 1 {
        let plane = |format_plane: &FormatPlane| {
            let own = format_desc(format_plane.format).unwrap_or(desc);
            of([format_plane.width_divisor, format_plane.height_divisor, 1], own, own.block_size)
        };
        return desc.planes.iter().map(plane).collect();
    }
    let bits = |name: &str| desc.components.iter().find(|it| it.name == name).map(|it| it.bits);
    match (bits("D"), bits("S")) {
        (Some(depth), Some(stencil)) => vec![of([1; 3], desc, depth / 8), of([1; 3], desc, stencil / 8)],
        _ => vec![of([1; 3], desc, desc.block_size)],
    }
}

fn bytes(cursor: &mut TokenCursor, size: u64) -> Result<Range<u64>> {
    if !cursor.take("[") {
        return Ok(0..size);
    }
    let column = cursor.column();
    let start = cursor.number("the first byte")?;
    cursor.expect("..")?;
    let end = cursor.number("the byte behind the last")?;
    cursor.expect("]")?;
    if start >= end || end > size {
        let message = format!("{start}..{end} is no part of {size} bytes");
        return Err(cursor.error_at(column, message));
    }
    Ok(start..end)
}

/// `[0..64]`, for a resource of any size.
pub(crate) fn parse_bytes(cursor: &mut TokenCursor) -> Result<Range<u64>> {
    if !cursor.is("[") {
        return Err(cursor.unexpected("`[` and bytes"));
    }
    bytes(cursor, u64::MAX)
}

fn image_part(cursor: &mut TokenCursor, image: &ImageDesc) -> Result<ImageRegion> {
    let mut region = whole_image(image);
    let mut aspects = 0;
    while cursor.take(".") {
        let token = cursor.word("a part of an image")?;
        if let Some((_, bit)) = ASPECTS.iter().find(|it| it.0 == token.text) {
            aspects |= bit;
        } else if let Some(range) = numbered(cursor, token, "mip", image.mips)? {
            region.mips = range;
        } else if let Some(range) = numbered(cursor, token, "layer", image.layers)? {
            region.layers = range;
        } else if let Some(components) = components(token.text) {
            region.components = components;
        } else {
            let words = ASPECTS.iter().map(|it| it.0).chain(["mip0", "mips0..2", "layer0", "layers0..2", "rgba"]);
            return Err(cursor.unknown(token, "part of an image", words));
        }
    }
    if aspects != 0 {
        region.aspects = aspects;
    }
    if cursor.is("[") {
        region.area = Some(parse_area(cursor)?);
    }
    Ok(region)
}

/// `mip2` or `mips0..2`.
fn numbered(cursor: &mut TokenCursor, token: Token, word: &str, count: u32) -> Result<Option<Range<u32>>> {
    let Some(rest) = token.text.strip_prefix(word) else { return Ok(None) };
    let is_range = rest.starts_with('s');
    let digits = rest.strip_prefix('s').unwrap_or(rest);
    let bad = |cursor: &TokenCursor| cursor.error_at(token.column, format!("write `{word}0` or `{word}s0..2`"));
    let start: u32 = digits.parse().map_err(|_| bad(cursor))?;
    let end = if is_range {
        if !cursor.take("..") {
            return Err(bad(cursor));
        }
        cursor.number32("the end of the range")?
    } else {
        start.checked_add(1).ok_or_else(|| bad(cursor))?
    };
    if start >= end || end > count {
        return Err(cursor.error_at(token.column, format!("the image has {count} {word}s, not {start}..{end}")));
    }
    Ok(Some(start..end))
}

fn components(word: &str) -> Option<Components> {
    let mut bits = 0;
    for letter in word.chars() {
        let bit = 1 << "rgba".find(letter)?;
        // In order, each once.
        if bit <= bits {
            return None;
        }
        bits |= bit;
    }
    Some(Components(bits))
}

/// `[x0..x1, y0..y1]`, with a third pair for depth.
pub(crate) fn parse_area(cursor: &mut TokenCursor) -> Result<Area> {
    cursor.expect("[")?;
    let mut area = Area { offset: [0; 3], extent: [1; 3] };
    for axis in 0..3 {
        if axis > 0 && !cursor.take(",") {
            if axis == 1 {
                return Err(cursor.unexpected("`,`"));
            }
            break;
        }
        let column = cursor.column();
        let start = cursor.number32("the first texel")?;
        cursor.expect("..")?;
        let end = cursor.number32("the texel behind the last")?;
        if start >= end {
            return Err(cursor.error_at(column, format!("{start}..{end} is empty")));
        }
        area.offset[axis] = start;
        area.extent[axis] = end - start;
    }
    cursor.expect("]")?;
    Ok(area)
}

pub(crate) fn area_text(area: &Area) -> String {
    let axes = if area.offset[2] == 0 && area.extent[2] == 1 { 2 } else { 3 };
    let range = |axis: usize| format!("{}..{}", area.offset[axis], area.offset[axis].wrapping_add(area.extent[axis]));
    format!("[{}]", (0..axes).map(range).collect::<Vec<_>>().join(", "))
}

fn image_text(image: &ImageDesc, region: &ImageRegion) -> String {
    let whole = whole_image(image);
    let mut text = String::new();
    if region.aspects != whole.aspects {
        for (word, _) in ASPECTS.iter().filter(|it| region.aspects & it.1 != 0) {
            let _ = write!(text, ".{word}");
        }
    }
    for (word, part, all) in [("mip", &region.mips, &whole.mips), ("layer", &region.layers, &whole.layers)] {
        if part == all {
            continue;
        }
        let _ = match part.end == part.start.wrapping_add(1) {
            true => write!(text, ".{word}{}", part.start),
            false => write!(text, ".{word}s{}..{}", part.start, part.end),
        };
    }
    if region.components != whole.components {
        text.push('.');
        text.extend("rgba".chars().enumerate().filter(|it| region.components.0 & (1 << it.0) != 0).map(|it| it.1));
    }
    if let Some(area) = &region.area {
        text.push_str(&area_text(area));
    }
    text
}
