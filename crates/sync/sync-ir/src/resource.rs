//! Buffers and images, and the memory behind them.

use std::sync::Arc;

use lavascope_abi::Format;

use crate::MemoryId;

#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    pub kind: ResourceKind,
    /// None: memory of its own that nothing else shares.
    pub binding: Option<MemoryBinding>,
    /// `VK_SHARING_MODE_EXCLUSIVE`: one queue family owns each part of it.
    pub is_exclusive: bool,
    /// Its memory is given to it, and taken from it, by `HostStep::BindSparse`; what has none accesses nothing.
    pub is_sparse: bool,
}

impl Resource {
    /// One that all queue families share.
    pub fn new(kind: ResourceKind, binding: Option<MemoryBinding>) -> Resource {
        Resource { kind, binding, is_exclusive: false, is_sparse: false }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum ResourceKind {
    Buffer { size: u64 },
    Image(ImageDesc),
}

/// Where a resource lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBinding {
    pub memory: MemoryId,
    pub offset: u64,
    /// Bytes of memory that belong to the resource.
    pub size: u64,
}

/// An image. Two with equal values and `alias` that begin at the same byte of the same memory are compatible aliases,
/// for any sizes of their bindings: without a query of the driver those are estimates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageDesc {
    pub format: Format,
    /// Width, height, depth of the first mip level.
    pub extent: [u32; 3],
    pub mips: u32,
    pub layers: u32,
    pub tiling: Tiling,
    /// `VK_IMAGE_CREATE_ALIAS_BIT`.
    pub alias: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tiling {
    Optimal,
    /// Bytes from the beginning of the image, one subresource after the other: mips within layers, layers within
    /// aspects.
    Linear,
    /// Bytes according to the driver or the application: for each aspect, and in it for each mip level. Bytes between
    /// rows belong to no subresource.
    Pitched(Arc<[SubresourceLayout]>),
}

/// `VkSubresourceLayout` of the first layer of a mip level, in bytes from the beginning of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubresourceLayout {
    pub offset: u64,
    pub row_pitch: u64,
    pub depth_pitch: u64,
    pub array_pitch: u64,
}

impl ImageDesc {
    /// Whether its texels lie at known bytes.
    pub fn is_linear(&self) -> bool {
        match self.tiling {
            Tiling::Optimal => false,
            Tiling::Linear | Tiling::Pitched(_) => true,
        }
    }

    /// The extent of a mip level, at least one texel each way.
    pub fn extent_of_mip(&self, mip: u32) -> [u32; 3] {
        self.extent.map(|it| (it >> mip.min(31)).max(1))
    }
}
