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
