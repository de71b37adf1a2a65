//! Records render pass instances and dynamic rendering.

use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_record::{Call, View};
use lavascope_sync_ir::{
    Area, AttachmentKind, AttachmentView, Command, Components, ImageRegion, Rendering, RenderingAttachment, Resolve,
    ResourceId,
};

use crate::command::bound_state::BoundState;
use crate::command::incomplete::CommandLaunch;
use crate::command::undo::Undo;
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::attachment;
use crate::draw::attachment::{AttachmentSet, BoundAttachment};
use crate::draw::render_pass::{SubpassAttachments, TrackedRenderPass, load_op, store_op};
use crate::listener::TrackerOutput;
use crate::resource::image::ImageView;
use crate::resource::region::area_of;
use crate::shader::accesses::ShaderUses;

/// A render pass instance that is being recorded in a command buffer.
#[derive(Debug)]
pub(crate) struct RecordingRenderPass {
    pass: Arc<TrackedRenderPass>,
    /// By attachment number.
    views: Vec<Option<BoundAttachment>>,
    area: Area,
    subpass: usize,
}

/// The attachments that draws access now.
#[derive(Debug, Default)]
pub(crate) enum CurrentAttachments {
    /// Outside of render passes and rendering.
    #[default]
    None,
    Known(Arc<AttachmentSet>),
    /// Inherited from the primary command buffer. Only the number of color attachments is known yet.
    Inherited {
        colors: usize,
    },
}

impl CurrentAttachments {
    pub(crate) fn colors(&self) -> usize {
        match self {
            CurrentAttachments::None => 0,
            CurrentAttachments::Known(targets) => targets.colors.len(),
            CurrentAttachments::Inherited { colors } => *colors,
        }
    }
}

impl TrackedDevice {
    pub(crate) fn track_rendering(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match tracked.call {
            Call::CmdBeginRenderPass(params) => {
                self.begin_pass(params.command_buffer, params.p_render_pass_begin(), out)
            }
            Call::CmdBeginRenderPass2(params) => {
                self.begin_pass(params.command_buffer, params.p_render_pass_begin(), out)
            }
            Call::CmdNextSubpass(params) => self.next_subpass(params.command_buffer, out),
            Call::CmdNextSubpass2(params) => self.next_subpass(params.command_buffer, out),
            Call::CmdEndRenderPass(params) => self.end_pass(params.command_buffer, out),
            Call::CmdEndRenderPass2(params) => self.end_pass(params.command_buffer, out),
            Call::CmdBeginRendering(params) => {
                if let Some(info) = params.p_rendering_info() {
                    self.begin_rendering(params.command_buffer, info, out);
                }
            }
            Call::CmdBeginCustomResolveEXT(params) => {
                if let Some(CurrentAttachments::Known(targets)) =
                    self.command_buffer_mut(params.command_buffer).map(|it| &mut it.state.attachments)
                {
                    Arc::make_mut(targets).is_resolving = true;
                }
            }
            Call::CmdEndRendering(params) => self.end_rendering(params.command_buffer, out),
            Call::CmdEndRendering2KHR(params) => self.end_rendering(params.command_buffer, out),
            Call::CmdClearAttachments(params) => self.clear_attachments(*params, out),
            Call::CmdSetRenderingAttachmentLocations(params) => {
                let locations = params.p_location_info().map(|it| it.p_color_attachment_locations().to_vec());
                if let Some(own) = self.command_buffer_mut(params.command_buffer) {
                    own.state.locations = locations.filter(|it| !it.is_empty());
                }
            }
            _ => return false,
        }
        true
    }

    fn begin_pass(
        &mut self,
        buffer: vk::CommandBuffer,
        info: Option<View<'_, vk::RenderPassBeginInfo>>,
        out: &mut TrackerOutput<'_>,
    ) {
        let Some(info) = info else { return };
        let pass = self.passes.get(info.render_pass.0).cloned();
        let framebuffer = self.framebuffers.get(info.framebuffer.0).cloned();
        let (Some(pass), Some(framebuffer)) = (pass, framebuffer) else {
            out.report_untracked("a render pass or a framebuffer that nobody created");
            return;
        };
        let given = info.chained::<vk::RenderPassAttachmentBeginInfo>();
        let views = given.map_or(framebuffer.views.as_slice(), |it| it.p_attachments());
        // With multiview the view mask selects the layers, not the framebuffer.
        let is_multiview = pass.subpasses.iter().any(|it| it.view_mask != 0);
        let layers = (!is_multiview).then_some(framebuffer.layers);
        let views: Vec<Option<BoundAttachment>> = views.iter().map(|it| self.attachment(*it, layers, out)).collect();
        let area = area_of(info.render_area);
        let Some(id) = pass.id else { return };
        let attachment_views =
            views.iter().map(|it| it.as_ref().map_or_else(empty_view, |it| it.view.clone())).collect();
        self.record(buffer, Command::BeginRenderPass { pass: id, views: attachment_views, area }, out);
        let Some(own) = self.command_buffer_mut(buffer) else { return };
        let open = RecordingRenderPass { pass, views, area, subpass: 0 };
        let scene = CurrentAttachments::Known(Arc::new(open.subpass_attachments()));
        own.undo = own.state.set_rendering(Some(open), scene);
    }

    /// The attachment that a view describes.
    fn attachment(
        &self,
        view: vk::ImageView,
        layers: Option<u32>,
        out: &mut TrackerOutput<'_>,
    ) -> Option<BoundAttachment> {
        let found = self.image_views.get(view.0);
        if found.is_none() && view.0 != 0 {
            out.report_untracked("a view that nobody created");
        }
        // The render area is in texels of the view. A block of the image can be one texel of such a view.
        if found.is_some_and(|it| it.is_of_blocks) {
            out.report_untracked("an attachment whose texels are blocks of a compressed image");
            return None;
        }
        found.map(|it| it.attachment(layers))
    }

    fn next_subpass(&mut self, buffer: vk::CommandBuffer, out: &mut TrackerOutput<'_>) {
        self.record(buffer, Command::NextSubpass, out);
        let Some(own) = self.command_buffer_mut(buffer) else { return };
        own.undo = Undo::NextSubpass;
        if let Some(open) = &mut own.state.recording_render_pass {
            open.subpass += 1;
            own.state.attachments = CurrentAttachments::Known(Arc::new(open.subpass_attachments()));
        }
    }

    fn end_pass(&mut self, buffer: vk::CommandBuffer, out: &mut TrackerOutput<'_>) {
        self.record(buffer, Command::EndRenderPass, out);
        if let Some(own) = self.command_buffer_mut(buffer) {
            own.undo = own.state.set_rendering(None, CurrentAttachments::None);
        }
    }

    fn begin_rendering(
        &mut self,
        buffer: vk::CommandBuffer,
        info: View<'_, vk::RenderingInfo>,
        out: &mut TrackerOutput<'_>,
    ) {
        let layers = (info.view_mask == 0).then_some(info.layer_count);
        let area = area_of(info.render_area);
        let mut attachments = Vec::new();
        let mut targets = AttachmentSet { area: Some(area), view_mask: info.view_mask, ..AttachmentSet::default() };
        for p_color_attachment in info.p_color_attachments().iter() {
            let view = self.attachment(p_color_attachment.image_view, layers, out);
            attachments.extend(
                view.as_ref()
                    .map(|of| self.rendering_attachment(p_color_attachment, AttachmentKind::Color, of, layers, out)),
            );
            targets.colors.push(view);
            targets.resolved.push(self.custom_resolve_attachment(p_color_attachment, layers, out));
        }
        let depth_stencil = [
            (info.p_depth_attachment(), AttachmentKind::Depth),
            (info.p_stencil_attachment(), AttachmentKind::Stencil),
        ];
        for (at, (attachment_info, kind)) in depth_stencil.into_iter().enumerate() {
            let Some(other) = attachment_info else { continue };
            let view = self.attachment(other.image_view, layers, out);
            attachments.extend(view.as_ref().map(|of| self.rendering_attachment(other, kind, of, layers, out)));
            targets.depth_stencil[at] = view;
            targets.resolved_depth_stencil[at] = self.custom_resolve_attachment(other, layers, out);
        }
        if let Some(rate) = info.chained::<vk::RenderingFragmentShadingRateAttachmentInfoKHR>() {
            let size = rate.shading_rate_attachment_texel_size;
            let view = self.attachment(rate.image_view, None, out);
            targets.shading_rate = view.map(|it| (it, [size.width, size.height]));
        }
        if let Some(map) = info.chained::<vk::RenderingFragmentDensityMapAttachmentInfoEXT>() {
            targets.density_map = self.attachment(map.image_view, None, out);
        }
        let has = |flag: vk::RenderingFlags| info.flags.0 & flag.0 != 0;
        let rendering = Rendering {
            attachments,
            area,
            view_mask: info.view_mask,
            is_suspending: has(vk::RenderingFlags::SUSPENDING),
            is_resuming: has(vk::RenderingFlags::RESUMING),
        };
        self.record(buffer, Command::BeginRendering(rendering), out);
        if let Some(own) = self.command_buffer_mut(buffer) {
            own.undo = own.state.set_rendering(None, CurrentAttachments::Known(Arc::new(targets)));
        }
    }

    fn rendering_attachment(
        &self,
        attachment_info: View<'_, vk::RenderingAttachmentInfo>,
        kind: AttachmentKind,
        of: &BoundAttachment,
        layers: Option<u32>,
        out: &mut TrackerOutput<'_>,
    ) -> RenderingAttachment {
        let is_resolved = attachment_info.resolve_mode.0 != 0 && !is_custom(attachment_info.resolve_mode);
        let resolve = is_resolved.then(|| self.attachment(attachment_info.resolve_image_view, layers, out)).flatten();
        RenderingAttachment {
            kind,
            view: of.view.clone(),
            load: load_op(attachment_info.load_op),
            store: store_op(attachment_info.store_op),
            resolve: resolve.map(|of| Resolve { view: of.view, mode: attachment_info.resolve_mode.0 }),
        }
    }

    /// The attachment that draws write when they resolve another one.
    fn custom_resolve_attachment(
        &self,
        attachment_info: View<'_, vk::RenderingAttachmentInfo>,
        layers: Option<u32>,
        out: &mut TrackerOutput<'_>,
    ) -> Option<BoundAttachment> {
        let view = Some(attachment_info.resolve_image_view).filter(|_| is_custom(attachment_info.resolve_mode))?;
        self.attachment(view, layers, out)
    }

    fn end_rendering(&mut self, buffer: vk::CommandBuffer, out: &mut TrackerOutput<'_>) {
        self.record(buffer, Command::EndRendering, out);
        if let Some(own) = self.command_buffer_mut(buffer) {
            own.undo = own.state.set_rendering(None, CurrentAttachments::None);
        }
    }

    fn clear_attachments(
        &mut self,
        attachments_params: View<'_, vk::CmdClearAttachmentsParams>,
        out: &mut TrackerOutput<'_>,
    ) {
        let mut attachment_uses = Vec::new();
        for clear in attachments_params.p_attachments().iter() {
            for rect in attachments_params.p_rects().iter() {
                let first = rect.base_array_layer;
                let layers = first..first.saturating_add(rect.layer_count);
                attachment_uses.extend(attachment::clear_uses(clear.get(), area_of(rect.rect), layers));
            }
        }
        let (buffer, uses) = (attachments_params.command_buffer, ShaderUses::default());
        self.record_incomplete_action(buffer, uses, &attachment_uses, &CommandLaunch::CERTAIN, out);
    }

    /// The attachments of a secondary command buffer that continues a render pass instance.
    pub(crate) fn attachments_from_inheritance(
        &self,
        info: View<'_, vk::CommandBufferInheritanceInfo>,
    ) -> CurrentAttachments {
        let of_pass = self.passes.get(info.render_pass.0);
        let colors = match (of_pass, info.chained::<vk::CommandBufferInheritanceRenderingInfo>()) {
            (Some(pass), _) => pass.subpasses.get(info.subpass as usize).map_or(0, |it| it.colors.len()),
            (None, Some(rendering)) => rendering.p_color_attachment_formats().len(),
            (None, None) => return CurrentAttachments::None,
        };
        CurrentAttachments::Inherited { colors }
    }
}

impl BoundState {
    /// Begins or ends rendering. Returns the state before.
    fn set_rendering(&mut self, open: Option<RecordingRenderPass>, scene: CurrentAttachments) -> Undo {
        let open = std::mem::replace(&mut self.recording_render_pass, open);
        Undo::Rendering { recording_render_pass: open, attachments: std::mem::replace(&mut self.attachments, scene) }
    }

    /// Makes the previous subpass current again.
    pub(crate) fn previous_subpass(&mut self) {
        if let Some(open) = &mut self.recording_render_pass {
            open.subpass = open.subpass.saturating_sub(1);
            self.attachments = CurrentAttachments::Known(Arc::new(open.subpass_attachments()));
        }
    }
}

impl RecordingRenderPass {
    /// The attachments of the current subpass.
    fn subpass_attachments(&self) -> AttachmentSet {
        let none = SubpassAttachments::default();
        let slots = self.pass.subpasses.get(self.subpass).unwrap_or(&none);
        let view = |at: u32| self.views.get(at as usize).cloned().flatten();
        let of_aspect = |aspect: vk::ImageAspectFlags| {
            slots.depth_stencil.and_then(view).filter(|it| it.view.region.aspects & aspect.0 != 0)
        };
        AttachmentSet {
            colors: slots.colors.iter().map(|it| it.and_then(view)).collect(),
            depth_stencil: [of_aspect(vk::ImageAspectFlags::DEPTH), of_aspect(vk::ImageAspectFlags::STENCIL)],
            shading_rate: slots.shading_rate.and_then(|(at, size)| Some((view(at)?, size))),
            density_map: self.pass.density_map.and_then(view),
            resolved: Vec::new(),
            resolved_depth_stencil: [None, None],
            is_resolving: false,
            area: Some(self.area),
            view_mask: slots.view_mask,
        }
    }
}

/// Whether draws perform the resolve instead of the end of rendering.
fn is_custom(mode: vk::ResolveModeFlagBits) -> bool {
    mode == vk::ResolveModeFlagBits::CUSTOM_EXT
}

/// A view without texels, as a placeholder.
fn empty_view() -> AttachmentView {
    AttachmentView {
        resource: ResourceId(u32::MAX),
        region: ImageRegion { aspects: 0, mips: 0..0, layers: 0..0, area: None, components: Components::ALL },
    }
}

impl ImageView {
    /// As an attachment: with both depth and stencil aspects, and with the layers of the framebuffer.
    fn attachment(&self, layers: Option<u32>) -> BoundAttachment {
        let mut region = self.region.clone();
        region.aspects = self.aspects;
        match (layers, &mut region.area) {
            // For a view of slices, the layers of the framebuffer are slices.
            (Some(count), Some(area)) if self.has_slices => area.extent[2] = area.extent[2].min(count),
            (Some(count), _) => {
                region.layers.end = region.layers.end.min(region.layers.start.saturating_add(count));
            }
            (None, _) => {}
        }
        BoundAttachment { view: AttachmentView { resource: self.resource, region }, format_cast: self.format_cast }
    }
}
