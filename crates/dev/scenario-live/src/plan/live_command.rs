//! The commands of Vulkan that stand for the actions of a program.
//!
//! An action may take several of them; its accesses are then divided among them, and no two of these conflict.

use std::ops::Range;

use lavascope_sync_ir::{Area, AttachmentView, AttributeBytes, ImageRegion, Region, RenderPassId, ResourceId};

/// One command with its operands. If the program names no resource, one of ours is used.
#[derive(Clone, Debug)]
pub(crate) enum LiveCommand {
    CopyBuffer {
        src: Option<ResourceId>,
        dst: Option<ResourceId>,
        regions: Vec<CopyRegion>,
    },
    CopyToImage {
        src: Option<ResourceId>,
        dst: ResourceId,
        parts: Vec<(u64, CopyBox)>,
    },
    CopyFromImage {
        src: ResourceId,
        dst: Option<ResourceId>,
        parts: Vec<(u64, CopyBox)>,
    },
    CopyImage {
        how: ImageCopy,
        src: ResourceId,
        dst: ResourceId,
        parts: Vec<(CopyBox, CopyBox)>,
    },
    Fill {
        dst: ResourceId,
        bytes: Range<u64>,
    },
    /// A buffer marker of a stage, at an offset.
    Marker {
        dst: ResourceId,
        offset: u64,
        stage: u64,
    },
    Clear {
        image: ResourceId,
        regions: Vec<ImageRegion>,
    },
    Dispatch(Dispatch),
    Draw(Box<DrawCommand>),
    /// By the index of the color attachment.
    ClearAttachment {
        index: u32,
        area: Area,
        layers: Range<u32>,
    },
    Trace(TraceRays),
    Build(StructureBuild),
    /// For commands that the device generates.
    Preprocess(BufferBytes),
    CopyStructure {
        src: Option<BufferBytes>,
        dst: Option<BufferBytes>,
    },
    Encode {
        src: ResourceId,
        region: ImageRegion,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageCopy {
    Copy,
    Blit,
    Resolve,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyRegion {
    pub(crate) src: u64,
    pub(crate) dst: u64,
    pub(crate) size: u64,
}

/// A box of texels in one aspect of one mip level, of some layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyBox {
    pub(crate) aspect: u32,
    pub(crate) mip: u32,
    pub(crate) layers: Range<u32>,
    pub(crate) offset: [u32; 3],
    pub(crate) extent: [u32; 3],
}

/// Bytes of a buffer.
pub(crate) type BufferBytes = (ResourceId, Range<u64>);

/// The access of a shader to a descriptor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShaderBinding {
    pub(crate) resource: ResourceId,
    pub(crate) region: Region,
    pub(crate) kind: BindingKind,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindingKind {
    StorageBuffer,
    /// A word in which atomic operations count.
    Counter,
    UniformBuffer,
    TexelBuffer,
    SampledImage,
    StorageImage,
    /// By its index among the input attachments.
    Input(u32),
    Structure,
    /// The descriptors themselves, which are what the part of the buffer holds.
    Descriptors,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Dispatch {
    pub(crate) bindings: Vec<ShaderBinding>,
    pub(crate) indirect: Option<BufferBytes>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DrawCommand {
    /// By the bit of the stage.
    pub(crate) bindings: Vec<(u64, Vec<ShaderBinding>)>,
    pub(crate) vertices: Vec<BufferBytes>,
    /// Set if the only vertex buffer has bytes that are not read.
    pub(crate) attributes: Option<AttributeBytes>,
    pub(crate) source: DrawSource,
    pub(crate) indices: Option<BufferBytes>,
    pub(crate) feedback: Vec<BufferBytes>,
    pub(crate) condition: Option<(ResourceId, u64)>,
    pub(crate) colors: Vec<ColorUse>,
    pub(crate) depth: Option<DepthStencilUse>,
    pub(crate) stencil: Option<DepthStencilUse>,
    pub(crate) is_early: bool,
    /// Input attachments are read in the order of fragments.
    pub(crate) is_ordered: bool,
    /// Shaders choose the layer, which may then be any.
    pub(crate) chooses_layer: bool,
    pub(crate) attachments: DrawAttachments,
}

/// Where a draw has its parameters from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum DrawSource {
    #[default]
    Direct,
    Indirect(BufferBytes),
    /// Only the number of draws.
    Count(ResourceId, u64),
    /// The number of bytes that transform feedback wrote.
    ByteCount(ResourceId, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DepthStencilUse {
    Reads,
    Writes,
}

/// A color attachment, by its index in the subpass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColorUse {
    pub(crate) index: u32,
    pub(crate) mask: u8,
    pub(crate) is_blended: bool,
}

/// The attachments among which a draw stands.
#[derive(Clone, Debug)]
pub(crate) enum DrawAttachments {
    /// In a render pass instance of the program.
    Program(LiveAttachments),
    /// In a render pass instance around the draw alone.
    AroundDraw(LiveAttachments),
}

impl Default for DrawAttachments {
    fn default() -> DrawAttachments {
        DrawAttachments::AroundDraw(LiveAttachments::default())
    }
}

/// Attachments of a subpass, or of rendering without render passes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LiveAttachments {
    /// None without a render pass object.
    pub(crate) pass: Option<(RenderPassId, u32)>,
    pub(crate) colors: Vec<AttachmentView>,
    pub(crate) depth: Option<AttachmentView>,
    pub(crate) stencil: Option<AttachmentView>,
    pub(crate) inputs: Vec<AttachmentView>,
    pub(crate) shading_rate: Option<AttachmentView>,
    pub(crate) density_map: Option<AttachmentView>,
    pub(crate) area: Option<Area>,
    pub(crate) view_mask: u32,
    /// `VkRenderingFlags` that a secondary command buffer inherits.
    pub(crate) rendering_flags: u32,
}

impl LiveAttachments {
    pub(crate) fn is_empty(&self) -> bool {
        let has_maps = self.shading_rate.is_some() || self.density_map.is_some();
        self.colors.is_empty() && self.depth.is_none() && self.stencil.is_none() && !has_maps
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TraceRays {
    pub(crate) bindings: Vec<ShaderBinding>,
    pub(crate) tables: Vec<BufferBytes>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct StructureBuild {
    pub(crate) target: Option<BufferBytes>,
    /// The structure that is updated, if any.
    pub(crate) source: Option<BufferBytes>,
    pub(crate) inputs: Vec<BufferBytes>,
}
