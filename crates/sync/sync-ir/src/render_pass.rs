//! Render passes, and rendering without them.

use crate::{Area, ImageRegion, ResourceId};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RenderPass {
    pub attachments: Vec<Attachment>,
    pub subpasses: Vec<Subpass>,
    pub dependencies: Vec<SubpassDependency>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attachment {
    pub kind: AttachmentKind,
    /// Operations on color, or on depth.
    pub load: LoadOp,
    pub store: StoreOp,
    pub stencil_load: LoadOp,
    pub stencil_store: StoreOp,
    pub initial_layout: i32,
    pub final_layout: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachmentKind {
    Color,
    Depth,
    Stencil,
    DepthStencil,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOp {
    Load,
    Clear,
    DontCare,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOp {
    Store,
    DontCare,
    None,
}

/// A color attachment that is resolved into another one. Attachments are indices into the render pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColorResolve {
    pub source: u32,
    pub target: u32,
    /// The layout of the target.
    pub layout: i32,
}

/// Attachments are numbers into the render pass, with the layout that the subpass wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subpass {
    pub inputs: Vec<(u32, i32)>,
    pub colors: Vec<(u32, i32)>,
    pub resolves: Vec<ColorResolve>,
    pub depth_stencil: Option<(u32, i32)>,
    pub depth_stencil_resolve: Option<(u32, i32)>,
    pub preserves: Vec<u32>,
    /// Zero: no multiview.
    pub view_mask: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubpassDependency {
    /// None is outside of the render pass.
    pub src: Option<u32>,
    pub dst: Option<u32>,
    pub scope: crate::SyncScope,
    /// `VK_DEPENDENCY_VIEW_LOCAL_BIT`, and how views are offset.
    pub view_offset: Option<i32>,
}

/// The part of an image that an attachment is.
#[derive(Clone, Debug, PartialEq)]
pub struct AttachmentView {
    pub resource: ResourceId,
    pub region: ImageRegion,
}

impl AttachmentView {
    /// A render area in the attachment: a view of slices of a 3D image is limited to these.
    pub fn area_in_attachment(&self, area: Area) -> Area {
        let Some(own) = self.region.area else { return area };
        let [x, y, _] = area.offset;
        let [width, height, _] = area.extent;
        Area { offset: [x, y, own.offset[2]], extent: [width, height, own.extent[2]] }
    }
}

/// `vkCmdBeginRendering`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendering {
    pub attachments: Vec<RenderingAttachment>,
    pub area: Area,
    pub view_mask: u32,
    pub is_suspending: bool,
    pub is_resuming: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RenderingAttachment {
    /// Color, depth or stencil; an image with both is two of these.
    pub kind: AttachmentKind,
    pub view: AttachmentView,
    pub load: LoadOp,
    pub store: StoreOp,
    pub resolve: Option<Resolve>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Resolve {
    pub view: AttachmentView,
    /// `VkResolveModeFlagBits`, for messages; zero if it is unknown.
    pub mode: u32,
}
