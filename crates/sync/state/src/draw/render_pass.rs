//! Render passes of both versions, and framebuffers.

use lavascope_sync_ir::ColorResolve;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome, View};
use lavascope_sync_ir::{Attachment, LoadOp, RenderPass, RenderPassId, StoreOp, Subpass, SubpassDependency, SyncScope};

use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::{Destroyed, TrackerOutput, object};
use crate::resource::format;

/// A render pass, with the data that draws need.
#[derive(Debug, Default)]
pub(crate) struct TrackedRenderPass {
    pub(crate) id: Option<RenderPassId>,
    pub(crate) subpasses: Vec<SubpassAttachments>,
    pub(crate) density_map: Option<u32>,
}

/// The attachments of a subpass, by the numbers that shaders use.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubpassAttachments {
    pub(crate) colors: Vec<Option<u32>>,
    pub(crate) depth_stencil: Option<u32>,
    pub(crate) shading_rate: Option<(u32, [u32; 2])>,
    pub(crate) view_mask: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Framebuffer {
    /// Empty for an imageless framebuffer: each begin passes the views.
    pub(crate) views: Vec<vk::ImageView>,
    pub(crate) layers: u32,
}

/// An attachment reference of either version.
#[derive(Clone, Copy)]
struct AttachmentRef {
    attachment: Option<u32>,
    layout: i32,
}

/// Both versions use the same field names.
macro_rules! reference {
    ($info:expr) => {{
        let info = $info;
        let attachment = Some(info.attachment).filter(|it| *it != vk::ATTACHMENT_UNUSED);
        AttachmentRef { attachment, layout: info.layout.0 }
    }};
}

macro_rules! attachment {
    ($info:expr) => {{
        let info = $info;
        Attachment {
            kind: format::attachment_kind(info.format),
            load: load_op(info.load_op),
            store: store_op(info.store_op),
            stencil_load: load_op(info.stencil_load_op),
            stencil_store: store_op(info.stencil_store_op),
            initial_layout: info.initial_layout.0,
            final_layout: info.final_layout.0,
        }
    }};
}

macro_rules! references {
    ($info:expr) => {{
        let info = $info;
        SubpassRefs {
            inputs: info.p_input_attachments().iter().map(|it| reference!(it)).collect(),
            colors: info.p_color_attachments().iter().map(|it| reference!(it)).collect(),
            resolves: info.p_resolve_attachments().iter().map(|it| reference!(it)).collect(),
            depth_stencil: info.p_depth_stencil_attachment().map(|it| reference!(it)),
            preserves: info.p_preserve_attachments().to_vec(),
        }
    }};
}

struct SubpassRefs {
    inputs: Vec<AttachmentRef>,
    colors: Vec<AttachmentRef>,
    resolves: Vec<AttachmentRef>,
    depth_stencil: Option<AttachmentRef>,
    preserves: Vec<u32>,
}

impl TrackedDevice {
    pub(crate) fn track_render_passes(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateRenderPass(params), Some(Outcome::CreateRenderPass(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_render_pass()) {
                    let (pass, own) = from_create_info(info);
                    self.add_render_pass(handle.0, &pass, own, out);
                }
            }
            (Call::CreateRenderPass2(params), Some(Outcome::CreateRenderPass2(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_render_pass()) {
                    let (pass, own) = from_create_info2(info);
                    self.add_render_pass(handle.0, &pass, own, out);
                }
            }
            (Call::CreateFramebuffer(params), Some(Outcome::CreateFramebuffer(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_framebuffer()) {
                    let framebuffer = Framebuffer { views: info.p_attachments().to_vec(), layers: info.layers };
                    self.framebuffers.insert(handle.0, framebuffer);
                }
            }
            (Call::DestroyRenderPass(params), None) => {
                out.destroyed(self.passes.remove(params.render_pass.0).and_then(|it| it.id).map(Destroyed::RenderPass));
            }
            (Call::DestroyFramebuffer(params), None) => drop(self.framebuffers.remove(params.framebuffer.0)),
            _ => return false,
        }
        true
    }

    fn add_render_pass(
        &mut self,
        handle: u64,
        pass: &RenderPass,
        mut own: TrackedRenderPass,
        out: &mut TrackerOutput<'_>,
    ) {
        let id = RenderPassId(self.ids.render_passes.next_id());
        own.id = Some(id);
        out.listener.render_pass(out.at, id, object(handle), pass);
        self.passes.insert(handle, Arc::new(own));
    }
}

fn from_create_info(info: View<'_, vk::RenderPassCreateInfo>) -> (RenderPass, TrackedRenderPass) {
    let multiview = info.chained::<vk::RenderPassMultiviewCreateInfo>();
    let masks = multiview.map_or(&[][..], |it| it.p_view_masks());
    let offsets = multiview.map_or(&[][..], |it| it.p_view_offsets());
    let mut pass = RenderPass {
        attachments: info.p_attachments().iter().map(|it| attachment!(it)).collect(),
        ..RenderPass::default()
    };
    let mut own = TrackedRenderPass { density_map: density_map(info.chained()), ..TrackedRenderPass::default() };
    for (at, p_subpass) in info.p_subpasses().iter().enumerate() {
        let view_mask = masks.get(at).copied().unwrap_or(0);
        let (subpass, slots) = subpass(&references!(p_subpass), view_mask);
        pass.subpasses.push(subpass);
        own.subpasses.push(slots);
    }
    for (at, p_dependency) in info.p_dependencies().iter().enumerate() {
        let scope = SyncScope {
            src_stages: u64::from(p_dependency.src_stage_mask.0),
            src_access: u64::from(p_dependency.src_access_mask.0),
            dst_stages: u64::from(p_dependency.dst_stage_mask.0),
            dst_access: u64::from(p_dependency.dst_access_mask.0),
        };
        let offset = offsets.get(at).copied().unwrap_or(0);
        pass.dependencies.push(dependency(
            [p_dependency.src_subpass, p_dependency.dst_subpass],
            scope,
            p_dependency.dependency_flags,
            offset,
        ));
    }
    (pass, own)
}

fn from_create_info2(info: View<'_, vk::RenderPassCreateInfo2>) -> (RenderPass, TrackedRenderPass) {
    let mut pass = RenderPass {
        attachments: info.p_attachments().iter().map(|it| attachment!(it)).collect(),
        ..RenderPass::default()
    };
    let mut own = TrackedRenderPass { density_map: density_map(info.chained()), ..TrackedRenderPass::default() };
    for p_subpass in info.p_subpasses().iter() {
        let (mut subpass, mut slots) = subpass(&references!(p_subpass), p_subpass.view_mask);
        if let Some(resolve) = p_subpass.chained::<vk::SubpassDescriptionDepthStencilResolve>() {
            let target = resolve.p_depth_stencil_resolve_attachment().map(|it| reference!(it));
            subpass.depth_stencil_resolve = target.and_then(used_attachment);
        }
        if let Some(rate) = p_subpass.chained::<vk::FragmentShadingRateAttachmentInfoKHR>() {
            let target = rate.p_fragment_shading_rate_attachment().map(|it| reference!(it)).and_then(used_attachment);
            let size = rate.shading_rate_attachment_texel_size;
            slots.shading_rate = target.map(|it| (it.0, [size.width, size.height]));
        }
        pass.subpasses.push(subpass);
        own.subpasses.push(slots);
    }
    for p_dependency in info.p_dependencies().iter() {
        let scope = match p_dependency.chained::<vk::MemoryBarrier2>() {
            Some(barrier) => SyncScope {
                src_stages: barrier.src_stage_mask.0,
                src_access: barrier.src_access_mask.0,
                dst_stages: barrier.dst_stage_mask.0,
                dst_access: barrier.dst_access_mask.0,
            },
            None => SyncScope {
                src_stages: u64::from(p_dependency.src_stage_mask.0),
                src_access: u64::from(p_dependency.src_access_mask.0),
                dst_stages: u64::from(p_dependency.dst_stage_mask.0),
                dst_access: u64::from(p_dependency.dst_access_mask.0),
            },
        };
        let subpasses = [p_dependency.src_subpass, p_dependency.dst_subpass];
        pass.dependencies.push(dependency(subpasses, scope, p_dependency.dependency_flags, p_dependency.view_offset));
    }
    (pass, own)
}

fn density_map(info: Option<View<'_, vk::RenderPassFragmentDensityMapCreateInfoEXT>>) -> Option<u32> {
    info.map(|it| it.fragment_density_map_attachment.attachment).filter(|it| *it != vk::ATTACHMENT_UNUSED)
}

fn used_attachment(attachment_ref: AttachmentRef) -> Option<(u32, i32)> {
    Some((attachment_ref.attachment?, attachment_ref.layout))
}

fn subpass(subpass_refs: &SubpassRefs, view_mask: u32) -> (Subpass, SubpassAttachments) {
    let all = |them: &[AttachmentRef]| them.iter().copied().filter_map(used_attachment).collect::<Vec<_>>();
    let resolve = |(from, to): (&AttachmentRef, &AttachmentRef)| {
        Some(ColorResolve { source: from.attachment?, target: to.attachment?, layout: to.layout })
    };
    let subpass = Subpass {
        inputs: all(&subpass_refs.inputs),
        colors: all(&subpass_refs.colors),
        resolves: subpass_refs.colors.iter().zip(&subpass_refs.resolves).filter_map(resolve).collect(),
        depth_stencil: subpass_refs.depth_stencil.and_then(used_attachment),
        depth_stencil_resolve: None,
        preserves: subpass_refs.preserves.clone(),
        view_mask,
    };
    let slots = SubpassAttachments {
        colors: subpass_refs.colors.iter().map(|it| it.attachment).collect(),
        depth_stencil: subpass_refs.depth_stencil.and_then(|it| it.attachment),
        shading_rate: None,
        view_mask,
    };
    (subpass, slots)
}

fn dependency(
    [src, dst]: [u32; 2],
    scope: SyncScope,
    flags: vk::DependencyFlags,
    view_offset: i32,
) -> SubpassDependency {
    let inside = |it: u32| Some(it).filter(|it| *it != vk::SUBPASS_EXTERNAL);
    let is_local = flags.0 & vk::DependencyFlags::VIEW_LOCAL.0 != 0;
    SubpassDependency { src: inside(src), dst: inside(dst), scope, view_offset: is_local.then_some(view_offset) }
}

pub(crate) fn load_op(op: vk::AttachmentLoadOp) -> LoadOp {
    match op {
        vk::AttachmentLoadOp::LOAD => LoadOp::Load,
        vk::AttachmentLoadOp::CLEAR => LoadOp::Clear,
        vk::AttachmentLoadOp::NONE => LoadOp::None,
        // Unknown load operations count as the weakest one.
        _ => LoadOp::DontCare,
    }
}

pub(crate) fn store_op(op: vk::AttachmentStoreOp) -> StoreOp {
    match op {
        vk::AttachmentStoreOp::STORE => StoreOp::Store,
        vk::AttachmentStoreOp::NONE => StoreOp::None,
        _ => StoreOp::DontCare,
    }
}
