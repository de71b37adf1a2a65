//! Render passes, and rendering without them.

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_sync_ir::{
    Area, AttachmentKind, AttachmentView, Command, ImageRegion, LoadOp, RenderPass, RenderPassId, Rendering,
    RenderingAttachment, ResourceId, StoreOp, Subpass, SubpassDependency,
};

use crate::error::{LiveError, UnsupportedProgram};
use crate::objects::calls::call;
use crate::objects::device::{LiveDevice, create};
use crate::objects::resources::samples;
use crate::plan::choose::image;
use crate::plan::draw::RATE_TEXEL;
use crate::plan::formats;
use crate::plan::formats::{DEPTH, STENCIL};
use crate::plan::live_command::LiveAttachments;

/// Who records the commands of a subpass or of rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubpassContentsKind {
    Inline,
    /// Both: each command has labels around it, which the primary command buffer records.
    Both,
}

impl SubpassContentsKind {
    /// An open scope between a command that begins it and the one that ends it.
    pub(crate) fn of(following: &[Command]) -> SubpassContentsKind {
        let is_end =
            |it: &&Command| !matches!(it, Command::EndRenderPass | Command::EndRendering | Command::NextSubpass);
        let mut inside = following.iter().take_while(is_end);
        match inside.any(|it| matches!(it, Command::Execute(_))) {
            false => SubpassContentsKind::Inline,
            true => SubpassContentsKind::Both,
        }
    }

    fn of_subpass(self) -> vk::SubpassContents {
        match self {
            SubpassContentsKind::Inline => vk::SubpassContents::INLINE,
            SubpassContentsKind::Both => vk::SubpassContents::INLINE_AND_SECONDARY_COMMAND_BUFFERS_KHR,
        }
    }

    fn of_rendering(self) -> u32 {
        use vk::RenderingFlags as Flags;
        match self {
            SubpassContentsKind::Inline => 0,
            SubpassContentsKind::Both => Flags::CONTENTS_SECONDARY_COMMAND_BUFFERS.0 | Flags::CONTENTS_INLINE_KHR.0,
        }
    }
}

/// All parts of rendering that is suspended have the same flags, whoever records their commands.
fn rendering_flags(rendering: &Rendering, contents: SubpassContentsKind) -> u32 {
    let is_split = rendering.is_suspending || rendering.is_resuming;
    let contents = if is_split { SubpassContentsKind::Both } else { contents };
    let suspending = if rendering.is_suspending { vk::RenderingFlags::SUSPENDING.0 } else { 0 };
    let resuming = if rendering.is_resuming { vk::RenderingFlags::RESUMING.0 } else { 0 };
    contents.of_rendering() | suspending | resuming
}

/// The flags of a rendering, as secondary command buffers inherit them.
pub(crate) fn inherited_flags(rendering: &Rendering, contents: SubpassContentsKind) -> u32 {
    rendering_flags(rendering, contents) & !vk::RenderingFlags::CONTENTS_SECONDARY_COMMAND_BUFFERS.0
}

impl LiveDevice<'_> {
    pub(crate) fn create_passes(&mut self) -> Result<(), LiveError> {
        for (at, pass) in self.scenario.program.render_passes.iter().enumerate() {
            let views = self.first_attachments(RenderPassId(at as u32));
            let made = self.create_pass(pass, &views)?;
            // Variations have render passes without names.
            if let Some(name) = self.scenario.names.render_passes.get(at) {
                self.set_name(vk::ObjectType::RENDER_PASS, made.0, name);
            }
            self.passes.push(made);
        }
        Ok(())
    }

    /// The images of the first instance of a render pass: they define the formats of its attachments.
    fn first_attachments(&self, wanted: RenderPassId) -> Vec<ResourceId> {
        let commands = self.scenario.program.command_buffers.iter().flat_map(|it| &it.commands);
        let mut instances = commands.filter_map(|command| match command {
            Command::BeginRenderPass { pass, views, .. } if *pass == wanted => Some(views),
            _ => None,
        });
        instances.next().map_or(Vec::new(), |it| it.iter().map(|it| it.resource).collect())
    }

    fn format(&self, resource: Option<&ResourceId>) -> vk::Format {
        let image = resource.and_then(|it| image(self.scenario.program, *it));
        image.map_or(vk::Format::R8G8B8A8_UNORM, |it| it.format)
    }

    fn create_pass(&self, pass: &RenderPass, views: &[ResourceId]) -> Result<vk::RenderPass, LiveError> {
        let attachment = |(at, item): (usize, &lavascope_sync_ir::Attachment)| vk::AttachmentDescription2 {
            format: self.format(views.get(at)),
            samples: vk::SampleCountFlags(views.get(at).map_or(1, |it| samples(self.scenario.program, *it))),
            load_op: load_op(item.load),
            store_op: store_op(item.store),
            stencil_load_op: load_op(item.stencil_load),
            stencil_store_op: store_op(item.stencil_store),
            initial_layout: vk::ImageLayout(item.initial_layout),
            final_layout: vk::ImageLayout(item.final_layout),
            ..vk::AttachmentDescription2::zeroed()
        };
        let attachments: Vec<_> = pass.attachments.iter().enumerate().map(attachment).collect();
        let references: Vec<References> = pass.subpasses.iter().map(|it| References::of(pass, it)).collect();
        let resolves: Vec<_> = references.iter().map(References::depth_resolve).collect();
        let subpasses: Vec<_> = references
            .iter()
            .zip(&pass.subpasses)
            .zip(&resolves)
            .map(|((own, subpass), resolve)| own.description(subpass, resolve))
            .collect();
        let barriers: Vec<vk::MemoryBarrier2> = pass.dependencies.iter().map(|it| memory_barrier(&it.scope)).collect();
        let dependencies: Vec<_> =
            pass.dependencies.iter().zip(&barriers).map(|(it, barrier)| dependency(it, barrier)).collect();
        let info = vk::RenderPassCreateInfo2 {
            attachment_count: attachments.len() as u32,
            p_attachments: Ptr::to_slice(&attachments),
            subpass_count: subpasses.len() as u32,
            p_subpasses: Ptr::to_slice(&subpasses),
            dependency_count: dependencies.len() as u32,
            p_dependencies: Ptr::to_slice(&dependencies),
            ..vk::RenderPassCreateInfo2::zeroed()
        };
        Ok(create!(self, create_render_pass2, info, RenderPass))
    }

    pub(crate) fn begin_pass(
        &self,
        buffer: vk::CommandBuffer,
        pass: RenderPassId,
        views: &[AttachmentView],
        area: Area,
        contents: SubpassContentsKind,
    ) -> Result<(), LiveError> {
        let handles = views.iter().map(|it| self.attachment(it)).collect::<Result<Vec<_>, _>>()?;
        let own = &self.scenario.program.render_passes[pass.0 as usize];
        let has_views = own.subpasses.iter().any(|it| it.view_mask != 0);
        let (extent, layers) = self.extent(views, area);
        let info = vk::FramebufferCreateInfo {
            render_pass: self.passes[pass.0 as usize],
            attachment_count: handles.len() as u32,
            p_attachments: Ptr::to_slice(&handles),
            width: extent[0],
            height: extent[1],
            layers: if has_views { 1 } else { layers },
            ..vk::FramebufferCreateInfo::zeroed()
        };
        let framebuffer = create!(self, create_framebuffer, info, Framebuffer);
        let clears = vec![vk::ClearValue { words: [0; 4] }; views.len()];
        let info = vk::RenderPassBeginInfo {
            render_pass: self.passes[pass.0 as usize],
            framebuffer,
            render_area: rect(area),
            clear_value_count: clears.len() as u32,
            p_clear_values: Ptr::to_slice(&clears),
            ..vk::RenderPassBeginInfo::zeroed()
        };
        let begin = subpass_begin(contents);
        call!(self.vk, cmd_begin_render_pass2(buffer, Ptr::to(&info), Ptr::to(&begin)));
        Ok(())
    }

    pub(crate) fn next_subpass(&self, buffer: vk::CommandBuffer, contents: SubpassContentsKind) {
        let (begin, end) = (subpass_begin(contents), vk::SubpassEndInfo::zeroed());
        call!(self.vk, cmd_next_subpass2(buffer, Ptr::to(&begin), Ptr::to(&end)));
    }

    /// The extent that all views have, and their layers.
    fn extent(&self, views: &[AttachmentView], area: Area) -> ([u32; 2], u32) {
        let extents = views.iter().filter_map(|view| {
            let extent = image(self.scenario.program, view.resource)?.extent_of_mip(view.region.mips.start);
            Some([extent[0], extent[1]])
        });
        let extent = extents.reduce(|one, two| [one[0].min(two[0]), one[1].min(two[1])]);
        let end = [area.offset[0] + area.extent[0], area.offset[1] + area.extent[1]];
        let layers = views.iter().map(|it| it.region.layers.len() as u32).max().unwrap_or(1);
        (extent.unwrap_or(end), layers)
    }

    pub(crate) fn begin_rendering(
        &self,
        buffer: vk::CommandBuffer,
        rendering: &Rendering,
        contents: SubpassContentsKind,
    ) -> Result<(), LiveError> {
        let made = |it: &RenderingAttachment| self.rendering_attachment(it, self.attachment(&it.view)?);
        let of = |kind: AttachmentKind| rendering.attachments.iter().filter(move |it| it.kind == kind);
        let colors = of(AttachmentKind::Color).map(made).collect::<Result<Vec<_>, _>>()?;
        let (depth, stencil) = (of(AttachmentKind::Depth).next(), of(AttachmentKind::Stencil).next());
        let views = self.depth_stencil_views([depth.map(|it| &it.view), stencil.map(|it| &it.view)])?;
        let depth = depth.map(|it| self.rendering_attachment(it, views[0])).transpose()?;
        let stencil = stencil.map(|it| self.rendering_attachment(it, views[1])).transpose()?;
        if of(AttachmentKind::DepthStencil).next().is_some() {
            return Err(UnsupportedProgram("depth and stencil are two attachments of rendering".to_owned()).into());
        }
        let views: Vec<AttachmentView> = rendering.attachments.iter().map(|it| it.view.clone()).collect();
        let flags = rendering_flags(rendering, contents);
        let info = vk::RenderingInfo {
            flags: vk::RenderingFlags(flags),
            render_area: rect(rendering.area),
            layer_count: self.extent(&views, rendering.area).1,
            view_mask: rendering.view_mask,
            color_attachment_count: colors.len() as u32,
            p_color_attachments: Ptr::to_slice(&colors),
            p_depth_attachment: depth.as_ref().map_or(Ptr::NULL, Ptr::to),
            p_stencil_attachment: stencil.as_ref().map_or(Ptr::NULL, Ptr::to),
            ..vk::RenderingInfo::zeroed()
        };
        call!(self.vk, cmd_begin_rendering(buffer, Ptr::to(&info)));
        Ok(())
    }

    /// The views of depth and stencil: one for both if they are the same part of an image.
    fn depth_stencil_views(&self, both: [Option<&AttachmentView>; 2]) -> Result<[vk::ImageView; 2], LiveError> {
        if let [Some(depth), Some(stencil)] = both {
            let aspects = depth.region.aspects | stencil.region.aspects;
            let [one, two] = [depth, stencil]
                .map(|it| AttachmentView { region: ImageRegion { aspects, ..it.region.clone() }, ..it.clone() });
            if one == two {
                return Ok([self.attachment(&one)?; 2]);
            }
        }
        let view = |it: Option<&AttachmentView>| it.map_or(Ok(vk::ImageView(0)), |it| self.attachment(it));
        Ok([view(both[0])?, view(both[1])?])
    }

    fn rendering_attachment(
        &self,
        item: &RenderingAttachment,
        image_view: vk::ImageView,
    ) -> Result<vk::RenderingAttachmentInfo, LiveError> {
        let general = vk::ImageLayout::GENERAL;
        let mut info = vk::RenderingAttachmentInfo {
            image_view,
            image_layout: general,
            load_op: load_op(item.load),
            store_op: store_op(item.store),
            ..vk::RenderingAttachmentInfo::zeroed()
        };
        if let Some(resolve) = &item.resolve {
            let is_color = item.kind == AttachmentKind::Color;
            use vk::ResolveModeFlagBits as Mode;
            info.resolve_mode = if is_color { Mode::AVERAGE } else { Mode::SAMPLE_ZERO };
            info.resolve_image_view = self.attachment(&resolve.view)?;
            info.resolve_image_layout = general;
        }
        Ok(info)
    }

    /// Rendering around one draw, that neither loads nor stores.
    pub(crate) fn begin_rendering_around_draw(
        &self,
        buffer: vk::CommandBuffer,
        targets: &LiveAttachments,
    ) -> Result<(), LiveError> {
        let made = |image_view: vk::ImageView| vk::RenderingAttachmentInfo {
            image_view,
            image_layout: vk::ImageLayout::GENERAL,
            load_op: vk::AttachmentLoadOp::NONE,
            store_op: vk::AttachmentStoreOp::NONE,
            ..vk::RenderingAttachmentInfo::zeroed()
        };
        let colors =
            targets.colors.iter().map(|it| Ok(made(self.attachment(it)?))).collect::<Result<Vec<_>, LiveError>>()?;
        let [depth_view, stencil_view] =
            self.depth_stencil_views([targets.depth.as_ref(), targets.stencil.as_ref()])?;
        let depth = targets.depth.as_ref().map(|_| made(depth_view));
        let stencil = targets.stencil.as_ref().map(|_| made(stencil_view));
        let views: Vec<AttachmentView> =
            targets.colors.iter().chain(&targets.depth).chain(&targets.stencil).cloned().collect();
        let rate = match &targets.shading_rate {
            Some(attachment_view) => self.attachment(attachment_view)?,
            None => vk::ImageView(0),
        };
        let rate = vk::RenderingFragmentShadingRateAttachmentInfoKHR {
            image_view: rate,
            image_layout: vk::ImageLayout::GENERAL,
            shading_rate_attachment_texel_size: vk::Extent2D { width: RATE_TEXEL, height: RATE_TEXEL },
            ..vk::RenderingFragmentShadingRateAttachmentInfoKHR::zeroed()
        };
        let map = match &targets.density_map {
            Some(attachment_view) => self.attachment(attachment_view)?,
            None => vk::ImageView(0),
        };
        let map = vk::RenderingFragmentDensityMapAttachmentInfoEXT {
            image_view: map,
            image_layout: vk::ImageLayout::GENERAL,
            ..vk::RenderingFragmentDensityMapAttachmentInfoEXT::zeroed()
        };
        let area = targets.area.unwrap_or(Area { offset: [0; 3], extent: [1; 3] });
        let info = vk::RenderingInfo {
            p_next: match (&targets.shading_rate, &targets.density_map) {
                (Some(_), _) => Ptr::to(&rate).cast(),
                (None, Some(_)) => Ptr::to(&map).cast(),
                (None, None) => Ptr::NULL,
            },
            render_area: rect(area),
            layer_count: self.extent(&views, area).1,
            color_attachment_count: colors.len() as u32,
            p_color_attachments: Ptr::to_slice(&colors),
            p_depth_attachment: depth.as_ref().map_or(Ptr::NULL, Ptr::to),
            p_stencil_attachment: stencil.as_ref().map_or(Ptr::NULL, Ptr::to),
            ..vk::RenderingInfo::zeroed()
        };
        call!(self.vk, cmd_begin_rendering(buffer, Ptr::to(&info)));
        Ok(())
    }

    /// The formats of attachments, for pipelines and for command buffers that inherit them.
    pub(crate) fn formats(&self, targets: &LiveAttachments) -> (Vec<vk::Format>, [vk::Format; 2]) {
        let format = |it: &AttachmentView| self.format(Some(&it.resource));
        let of = |it: &Option<AttachmentView>| it.as_ref().map_or(vk::Format(0), format);
        (targets.colors.iter().map(format).collect(), [of(&targets.depth), of(&targets.stencil)])
    }
}

/// References of a subpass, in the form that the API wants.
struct References {
    inputs: Vec<vk::AttachmentReference2>,
    colors: Vec<vk::AttachmentReference2>,
    resolves: Vec<vk::AttachmentReference2>,
    depth: Option<vk::AttachmentReference2>,
    depth_resolve: Option<vk::AttachmentReference2>,
}

impl References {
    fn of(pass: &RenderPass, subpass: &Subpass) -> References {
        let reference = |(attachment, layout): &(u32, i32)| vk::AttachmentReference2 {
            attachment: *attachment,
            layout: vk::ImageLayout(*layout),
            aspect_mask: vk::ImageAspectFlags(match pass.attachments.get(*attachment as usize).map(|it| it.kind) {
                Some(AttachmentKind::Depth) => DEPTH,
                Some(AttachmentKind::Stencil) => STENCIL,
                Some(AttachmentKind::DepthStencil) => DEPTH | STENCIL,
                Some(AttachmentKind::Color) | None => formats::COLOR,
            }),
            ..vk::AttachmentReference2::zeroed()
        };
        let resolve = |color: &(u32, i32)| {
            let own = subpass.resolves.iter().find(|it| it.source == color.0);
            own.map_or(reference(&(vk::ATTACHMENT_UNUSED, 0)), |it| reference(&(it.target, it.layout)))
        };
        let resolves = match subpass.resolves.is_empty() {
            true => Vec::new(),
            false => subpass.colors.iter().map(resolve).collect(),
        };
        References {
            inputs: subpass.inputs.iter().map(reference).collect(),
            colors: subpass.colors.iter().map(reference).collect(),
            resolves,
            depth: subpass.depth_stencil.as_ref().map(reference),
            depth_resolve: subpass.depth_stencil_resolve.as_ref().map(reference),
        }
    }

    fn depth_resolve(&self) -> Option<vk::SubpassDescriptionDepthStencilResolve> {
        use vk::ResolveModeFlagBits as Mode;
        self.depth_resolve.as_ref().map(|attachment_reference| vk::SubpassDescriptionDepthStencilResolve {
            depth_resolve_mode: Mode::SAMPLE_ZERO,
            stencil_resolve_mode: Mode::SAMPLE_ZERO,
            p_depth_stencil_resolve_attachment: Ptr::to(attachment_reference),
            ..vk::SubpassDescriptionDepthStencilResolve::zeroed()
        })
    }

    fn description(
        &self,
        subpass: &Subpass,
        resolve: &Option<vk::SubpassDescriptionDepthStencilResolve>,
    ) -> vk::SubpassDescription2 {
        vk::SubpassDescription2 {
            flags: match subpass.inputs.is_empty() {
                // Each pipeline defines whether the order counts.
                false => vk::SubpassDescriptionFlags::RASTERIZATION_ORDER_ATTACHMENT_COLOR_ACCESS_EXT,
                true => vk::SubpassDescriptionFlags(0),
            },
            p_next: resolve.as_ref().map_or(Ptr::NULL, |it| Ptr::to(it).cast()),
            pipeline_bind_point: vk::PipelineBindPoint::GRAPHICS,
            view_mask: subpass.view_mask,
            input_attachment_count: self.inputs.len() as u32,
            p_input_attachments: Ptr::to_slice(&self.inputs),
            color_attachment_count: self.colors.len() as u32,
            p_color_attachments: Ptr::to_slice(&self.colors),
            p_resolve_attachments: Ptr::to_slice(&self.resolves),
            p_depth_stencil_attachment: self.depth.as_ref().map_or(Ptr::NULL, Ptr::to),
            preserve_attachment_count: subpass.preserves.len() as u32,
            p_preserve_attachments: Ptr::to_slice(&subpass.preserves),
            ..vk::SubpassDescription2::zeroed()
        }
    }
}

fn dependency(subpass_dependency: &SubpassDependency, barrier: &vk::MemoryBarrier2) -> vk::SubpassDependency2 {
    let is_inside = subpass_dependency.src.is_some() && subpass_dependency.src == subpass_dependency.dst;
    let by_region = if is_inside { vk::DependencyFlags::BY_REGION.0 } else { 0 };
    let view_local = if subpass_dependency.view_offset.is_some() { vk::DependencyFlags::VIEW_LOCAL.0 } else { 0 };
    vk::SubpassDependency2 {
        p_next: Ptr::to(barrier).cast(),
        src_subpass: subpass_dependency.src.unwrap_or(vk::SUBPASS_EXTERNAL),
        dst_subpass: subpass_dependency.dst.unwrap_or(vk::SUBPASS_EXTERNAL),
        dependency_flags: vk::DependencyFlags(by_region | view_local),
        view_offset: subpass_dependency.view_offset.unwrap_or(0),
        ..vk::SubpassDependency2::zeroed()
    }
}

pub(crate) fn memory_barrier(sync_scope: &lavascope_sync_ir::SyncScope) -> vk::MemoryBarrier2 {
    vk::MemoryBarrier2 {
        src_stage_mask: vk::PipelineStageFlags2(sync_scope.src_stages),
        src_access_mask: vk::AccessFlags2(sync_scope.src_access),
        dst_stage_mask: vk::PipelineStageFlags2(sync_scope.dst_stages),
        dst_access_mask: vk::AccessFlags2(sync_scope.dst_access),
        ..vk::MemoryBarrier2::zeroed()
    }
}

fn subpass_begin(contents: SubpassContentsKind) -> vk::SubpassBeginInfo {
    vk::SubpassBeginInfo { contents: contents.of_subpass(), ..vk::SubpassBeginInfo::zeroed() }
}

pub(crate) fn rect(area: Area) -> vk::Rect2D {
    vk::Rect2D {
        offset: vk::Offset2D { x: area.offset[0] as i32, y: area.offset[1] as i32 },
        extent: vk::Extent2D { width: area.extent[0], height: area.extent[1] },
    }
}

fn load_op(op: LoadOp) -> vk::AttachmentLoadOp {
    match op {
        LoadOp::Load => vk::AttachmentLoadOp::LOAD,
        LoadOp::Clear => vk::AttachmentLoadOp::CLEAR,
        LoadOp::DontCare => vk::AttachmentLoadOp::DONT_CARE,
        LoadOp::None => vk::AttachmentLoadOp::NONE,
    }
}

fn store_op(op: StoreOp) -> vk::AttachmentStoreOp {
    match op {
        StoreOp::Store => vk::AttachmentStoreOp::STORE,
        StoreOp::DontCare => vk::AttachmentStoreOp::DONT_CARE,
        StoreOp::None => vk::AttachmentStoreOp::NONE,
    }
}
