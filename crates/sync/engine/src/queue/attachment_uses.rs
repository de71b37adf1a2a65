//! What render passes do to their attachments by themselves: the accesses of load, store and resolve operations.
//!
//! Spec: `renderpass-load-operations`, `renderpass-store-operations`, `renderpass-resolve-operations`. What they write may
//! be read and written back anywhere in the image subresource, what they read lies inside the render area.

use std::borrow::Cow;
use std::ops::Range;

use lavascope_abi::{AccessFlags2, ImageAspectFlags, PipelineStageFlags2};
use lavascope_sync_ir::{
    Area, Attachment, AttachmentKind, AttachmentView, ImageRegion, LoadOp, Region, Rendering, RenderingAttachment,
    ResourceId, StoreOp,
};
use smallvec::{SmallVec, smallvec};

use crate::access::access_order::AccessOrder;
use crate::access::actions::ResourceUse;
use crate::access::usages::{SYNC_TABLES, UsageIndex};

/// An aspect of an attachment with `VK_ATTACHMENT_STORE_OP_NONE` that no command has written so far: such an attachment
/// is not stored. Once values are written, the operation is like `VK_ATTACHMENT_STORE_OP_DONT_CARE`
/// (`renderpass-store-operations`).
#[derive(Clone)]
pub(crate) struct UnwrittenAttachment {
    pub(super) attachment: usize,
    pub(super) part: AttachmentKind,
    pub(super) resource: ResourceId,
    region: ImageRegion,
}

impl UnwrittenAttachment {
    pub(super) fn overlaps(&self, other: &ImageRegion) -> bool {
        let shares = |one: &Range<u32>, other: &Range<u32>| one.start < other.end && other.start < one.end;
        self.region.aspects & other.aspects != 0
            && shares(&self.region.mips, &other.mips)
            && shares(&self.region.layers, &other.layers)
    }
}

/// Depth and stencil are loaded and stored each by itself.
pub(super) fn split_depth_stencil(kind: AttachmentKind) -> Vec<AttachmentKind> {
    match kind {
        AttachmentKind::DepthStencil => vec![AttachmentKind::Depth, AttachmentKind::Stencil],
        other => vec![other],
    }
}

pub(super) fn load_usage(kind: AttachmentKind, op: LoadOp) -> Option<UsageIndex> {
    let (stage, read, write) = match kind {
        AttachmentKind::Color => (
            PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT,
            AccessFlags2::COLOR_ATTACHMENT_READ,
            AccessFlags2::COLOR_ATTACHMENT_WRITE,
        ),
        _ => (
            PipelineStageFlags2::EARLY_FRAGMENT_TESTS,
            AccessFlags2::DEPTH_STENCIL_ATTACHMENT_READ,
            AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE,
        ),
    };
    match op {
        LoadOp::Load => SYNC_TABLES.usage(stage.0, read.0),
        LoadOp::Clear | LoadOp::DontCare => SYNC_TABLES.usage(stage.0, write.0),
        LoadOp::None => None,
    }
}

pub(super) fn store_op(attachment: &Attachment, part: AttachmentKind) -> StoreOp {
    if part == AttachmentKind::Stencil { attachment.stencil_store } else { attachment.store }
}

pub(super) fn unwritten_attachment(
    attachment: usize,
    part: AttachmentKind,
    view: &AttachmentView,
) -> UnwrittenAttachment {
    let region = ImageRegion { aspects: view.region.aspects & aspects_of(part), ..view.region.clone() };
    UnwrittenAttachment { attachment, part, resource: view.resource, region }
}

pub(super) fn unwritten_attachments(rendering: &Rendering) -> Vec<UnwrittenAttachment> {
    let all = rendering.attachments.iter().enumerate().filter(|it| it.1.store == StoreOp::None);
    all.map(|(index, it)| unwritten_attachment(index, it.kind, &it.view)).collect()
}

pub(super) fn store_usage(kind: AttachmentKind, op: StoreOp, is_written: bool) -> Option<UsageIndex> {
    match (op, kind) {
        (StoreOp::None, _) if !is_written => None,
        (_, AttachmentKind::Color) => {
            SYNC_TABLES.usage(PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT.0, AccessFlags2::COLOR_ATTACHMENT_WRITE.0)
        }
        _ => SYNC_TABLES
            .usage(PipelineStageFlags2::LATE_FRAGMENT_TESTS.0, AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE.0),
    }
}

/// What part of an attachment is touched: inside the render area, and with multiview in the layers of the views.
#[derive(Clone, Copy)]
pub(super) struct RenderedArea {
    pub(super) area: Area,
    /// None: all layers.
    pub(super) views: Option<u32>,
}

/// A mask of views; zero is no multiview.
pub(super) fn views(mask: u32) -> Option<u32> {
    Some(mask).filter(|it| *it != 0)
}

impl RenderedArea {
    /// The layers of a view that are touched.
    fn layers(self, layers: &Range<u32>) -> SmallVec<[Range<u32>; 2]> {
        let Some(mask) = self.views else { return smallvec![layers.clone()] };
        let views = (0..32).filter(|it| mask >> it & 1 != 0).map(|it| layers.start + it);
        views.filter(|it| *it < layers.end).map(|it| it..it + 1).collect()
    }
}

/// The aspects of an image that a part of an attachment may have.
pub(super) fn aspects_of(part: AttachmentKind) -> u32 {
    match part {
        AttachmentKind::Depth => ImageAspectFlags::DEPTH.0,
        AttachmentKind::Stencil => ImageAspectFlags::STENCIL.0,
        AttachmentKind::Color | AttachmentKind::DepthStencil => u32::MAX,
    }
}

/// One aspect of an attachment, in one run of layers each.
pub(super) fn attachment_uses(
    view: &AttachmentView,
    part: AttachmentKind,
    inside: RenderedArea,
    usage: UsageIndex,
    order: AccessOrder,
) -> impl Iterator<Item = ResourceUse<'static>> {
    let is_write = SYNC_TABLES.write_column(usage).is_some();
    let of_layers = move |layers| {
        let aspects = view.region.aspects & aspects_of(part);
        // What such an operation writes may be read and written back anywhere in the subresource.
        let area = if is_write { view.region.area } else { Some(view.area_in_attachment(inside.area)) };
        let region = ImageRegion { aspects, layers, area, ..view.region.clone() };
        ResourceUse { resource: view.resource, region: Cow::Owned(Region::Image(region)), usage, order }
    };
    inside.layers(&view.region.layers).into_iter().map(of_layers)
}

pub(super) fn load_uses(
    rendering_attachment: &RenderingAttachment,
    inside: RenderedArea,
) -> impl Iterator<Item = ResourceUse<'static>> {
    let usage = load_usage(rendering_attachment.kind, rendering_attachment.load).into_iter();
    usage.flat_map(move |usage| {
        attachment_uses(&rendering_attachment.view, rendering_attachment.kind, inside, usage, AccessOrder::Load)
    })
}

pub(super) fn store_uses(
    rendering_attachment: &RenderingAttachment,
    inside: RenderedArea,
    is_written: bool,
) -> impl Iterator<Item = ResourceUse<'static>> {
    let usage = store_usage(rendering_attachment.kind, rendering_attachment.store, is_written).into_iter();
    usage.flat_map(move |usage| {
        attachment_uses(&rendering_attachment.view, rendering_attachment.kind, inside, usage, AccessOrder::Store)
    })
}

pub(super) fn resolve_uses(
    rendering_attachment: &RenderingAttachment,
    inside: RenderedArea,
) -> impl Iterator<Item = ResourceUse<'static>> {
    let stage = PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT.0;
    let read = SYNC_TABLES.usage(stage, AccessFlags2::COLOR_ATTACHMENT_READ.0);
    let write = SYNC_TABLES.usage(stage, AccessFlags2::COLOR_ATTACHMENT_WRITE.0);
    let from = read.into_iter().flat_map(move |usage| {
        attachment_uses(&rendering_attachment.view, rendering_attachment.kind, inside, usage, AccessOrder::Resolve)
    });
    let to = rendering_attachment.resolve.as_ref().zip(write).into_iter();
    let to = to.flat_map(move |(resolve, usage)| {
        attachment_uses(&resolve.view, rendering_attachment.kind, inside, usage, AccessOrder::None)
    });
    from.chain(to)
}
