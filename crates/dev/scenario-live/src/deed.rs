//! The commands of Vulkan that stand for the actions of a program.
//!
//! An action may take several of them; its accesses are then divided among them, and no two of these conflict.

use std::ops::Range;

use lavascope_sync_ir::{Area, AttachmentView, ImageRegion, Region, RenderPassId, ResourceId};

/// One command, with what it needs. Where nothing of the program is meant, a resource of ours is used.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    CopyBuffer {
        src: Option<ResourceId>,
        dst: Option<ResourceId>,
        regions: Vec<CopyRegion>,
    },
    CopyToImage {
        src: Option<ResourceId>,
        dst: ResourceId,
        parts: Vec<(u64, Texels)>,
    },
    CopyFromImage {
        src: ResourceId,
        dst: Option<ResourceId>,
        parts: Vec<(u64, Texels)>,
    },
    CopyImage {
        how: ImageCopy,
        src: ResourceId,
        dst: ResourceId,
        parts: Vec<(Texels, Texels)>,
    },
    Fill {
        dst: ResourceId,
        bytes: Range<u64>,
    },
    Clear {
        image: ResourceId,
        regions: Vec<ImageRegion>,
    },
    Dispatch(Dispatch),
    Draw(Box<Draw>),
    /// By the index of the color attachment.
    ClearAttachment {
        index: u32,
        area: Area,
        layers: Range<u32>,
    },
    Trace(Trace),
    Build(Build),
    /// Of commands that the device makes.
    Preprocess(Bytes),
    CopyStructure {
        src: Option<Bytes>,
        dst: Option<Bytes>,
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
pub(crate) struct Texels {
    pub(crate) aspect: u32,
    pub(crate) mip: u32,
    pub(crate) layers: Range<u32>,
    pub(crate) offset: [u32; 3],
    pub(crate) extent: [u32; 3],
}

/// Bytes of a buffer.
pub(crate) type Bytes = (ResourceId, Range<u64>);

/// What a shader does with a descriptor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Binding {
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
    pub(crate) bindings: Vec<Binding>,
    pub(crate) indirect: Option<Bytes>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Draw {
    /// By the bit of the stage.
    pub(crate) bindings: Vec<(u64, Vec<Binding>)>,
    pub(crate) vertices: Vec<Bytes>,
    pub(crate) source: DrawSource,
    pub(crate) indices: Option<Bytes>,
    pub(crate) feedback: Vec<Bytes>,
    pub(crate) condition: Option<(ResourceId, u64)>,
    pub(crate) colors: Vec<ColorUse>,
    pub(crate) depth: Option<Test>,
    pub(crate) stencil: Option<Test>,
    pub(crate) is_early: bool,
    /// Input attachments are read in the order of fragments.
    pub(crate) is_ordered: bool,
    /// Shaders choose the layer, which may then be any.
    pub(crate) chooses_layer: bool,
    pub(crate) scene: SceneOf,
}

/// Where a draw has its parameters from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum DrawSource {
    #[default]
    Direct,
    Indirect(Bytes),
    /// Only the number of draws.
    Count(ResourceId, u64),
    /// The number of bytes that transform feedback wrote.
    ByteCount(ResourceId, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
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
pub(crate) enum SceneOf {
    /// Of a render pass instance of the program.
    Program(Targets),
    /// Of one that is made around the draw alone.
    Own(Targets),
}

impl Default for SceneOf {
    fn default() -> SceneOf {
        SceneOf::Own(Targets::default())
    }
}

/// Attachments of a subpass, or of rendering without render passes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Targets {
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
}

impl Targets {
    pub(crate) fn is_empty(&self) -> bool {
        let has_maps = self.shading_rate.is_some() || self.density_map.is_some();
        self.colors.is_empty() && self.depth.is_none() && self.stencil.is_none() && !has_maps
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) bindings: Vec<Binding>,
    pub(crate) tables: Vec<Bytes>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Build {
    pub(crate) target: Option<Bytes>,
    /// What is updated.
    pub(crate) source: Option<Bytes>,
    pub(crate) inputs: Vec<Bytes>,
}
