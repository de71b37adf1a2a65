//! Random render passes, and rendering without them.

use lavascope_abi::{AccessFlags2 as A, ImageAspectFlags, PipelineStageFlags2 as S};
use lavascope_program::{
    Access, Area, Attachment, AttachmentKind, AttachmentView, Barrier, Command, Dependency, LoadOp, RasterOrder,
    Region, RenderPass, RenderPassId, Rendering, RenderingAttachment, Resolve, ResourceId, StoreOp, Subpass,
    SubpassDependency, What,
};

use super::{Care, Maker, Usage, commands::scope};

const UNDEFINED: i32 = 0;
const COLOR: i32 = 2;
const DEPTH: i32 = 3;
const READ_ONLY: i32 = 5;

/// What attachments are used for.
const ATTACHMENTS: Usage = Usage {
    stages: S::COLOR_ATTACHMENT_OUTPUT.0 | S::EARLY_FRAGMENT_TESTS.0 | S::LATE_FRAGMENT_TESTS.0 | S::FRAGMENT_SHADER.0,
    access: A::COLOR_ATTACHMENT_READ.0
        | A::COLOR_ATTACHMENT_WRITE.0
        | A::DEPTH_STENCIL_ATTACHMENT_READ.0
        | A::DEPTH_STENCIL_ATTACHMENT_WRITE.0
        | A::INPUT_ATTACHMENT_READ.0,
};

impl Maker {
    /// A render pass of one kind or the other, with its draws.
    pub(super) fn pass(&mut self, before: Usage) -> (Vec<Command>, Usage) {
        let is_dynamic = match (self.kinds.render_passes, self.kinds.dynamic_rendering) {
            (true, true) => self.chance(40),
            (_, is_dynamic) => is_dynamic,
        };
        let commands = if is_dynamic { self.dynamic_rendering() } else { self.render_pass(before) };
        (commands, ATTACHMENTS)
    }

    fn dynamic_rendering(&mut self) -> Vec<Command> {
        let [color, depth] = [self.attachments[0], self.attachments[1]];
        let mut attachments = vec![self.rendering_attachment(color, AttachmentKind::Color)];
        let has_depth = self.chance(50);
        if has_depth {
            attachments.push(self.rendering_attachment(depth, AttachmentKind::Depth));
            attachments.push(self.rendering_attachment(depth, AttachmentKind::Stencil));
        }
        if self.chance(20) {
            let target = ResourceId(1);
            let view = AttachmentView { resource: target, region: self.whole_image(target) };
            attachments[0].resolve = Some(Resolve { view });
        }
        let area = self.area();
        let is_split = self.chance(20);
        let rendering = |is_resuming: bool, is_suspending: bool| {
            let attachments = attachments.clone();
            Command::BeginRendering(Rendering { attachments, area, view_mask: 0, is_suspending, is_resuming })
        };
        let mut commands = vec![rendering(false, is_split)];
        commands.extend(self.draws(Some(color), None, has_depth.then_some(depth), area));
        if self.chance(15) {
            commands.extend(self.barrier_and_read(color, area));
        }
        commands.push(Command::EndRendering);
        if is_split {
            commands.push(rendering(true, false));
            commands.extend(self.draws(Some(color), None, has_depth.then_some(depth), area));
            commands.push(Command::EndRendering);
        }
        commands
    }

    fn rendering_attachment(&mut self, resource: ResourceId, kind: AttachmentKind) -> RenderingAttachment {
        let mut region = self.whole_image(resource);
        match kind {
            AttachmentKind::Depth => region.aspects = ImageAspectFlags::DEPTH.0,
            AttachmentKind::Stencil => region.aspects = ImageAspectFlags::STENCIL.0,
            AttachmentKind::Color | AttachmentKind::DepthStencil => {}
        }
        let (load, store) = (self.load(), self.store());
        RenderingAttachment { kind, view: AttachmentView { resource, region }, load, store, resolve: None }
    }

    fn render_pass(&mut self, before: Usage) -> Vec<Command> {
        let [color, depth] = [self.attachments[0], self.attachments[1]];
        let has_depth = self.chance(50);
        let has_two = self.chance(45);
        let reads_input = self.chance(50);
        let mut attachments = vec![self.attachment(AttachmentKind::Color, COLOR)];
        let mut views = vec![AttachmentView { resource: color, region: self.whole_image(color) }];
        if has_depth {
            attachments.push(self.attachment(AttachmentKind::DepthStencil, DEPTH));
            views.push(AttachmentView { resource: depth, region: self.whole_image(depth) });
        }
        let depth_stencil = has_depth.then_some((1, DEPTH));
        let mut subpasses = vec![Subpass { colors: vec![(0, COLOR)], depth_stencil, ..Subpass::default() }];
        if self.chance(15) {
            attachments.push(self.attachment(AttachmentKind::Color, COLOR));
            views.push(AttachmentView { resource: ResourceId(1), region: self.whole_image(ResourceId(1)) });
            subpasses[0].resolves.push((0, attachments.len() as u32 - 1, COLOR));
        }
        if has_two {
            let inputs = if reads_input { vec![(0, READ_ONLY)] } else { Vec::new() };
            let colors = if reads_input { Vec::new() } else { vec![(0, COLOR)] };
            subpasses.push(Subpass { inputs, colors, depth_stencil, ..Subpass::default() });
        }
        let mut dependencies = self.subpass_dependencies(before, has_two);
        let has_barrier = self.chance(15);
        if has_barrier {
            let scope = scope(ATTACHMENTS, ATTACHMENTS);
            dependencies.push(SubpassDependency { src: Some(0), dst: Some(0), scope, view_offset: None });
        }
        self.program.render_passes.push(RenderPass { attachments, subpasses, dependencies });
        let pass = RenderPassId(self.program.render_passes.len() as u32 - 1);
        let area = self.area();
        let mut commands = vec![Command::BeginRenderPass { pass, views, area }];
        let depth = has_depth.then_some(depth);
        commands.extend(self.draws(Some(color), None, depth, area));
        if has_barrier {
            commands.extend(self.barrier_and_read(color, area));
        }
        if has_two {
            commands.push(Command::NextSubpass);
            let (drawn, input) = if reads_input { (None, Some(color)) } else { (Some(color), None) };
            commands.extend(self.draws(drawn, input, depth, area));
        }
        commands.push(Command::EndRenderPass);
        commands
    }

    /// A barrier inside, so that what was drawn can be read.
    fn barrier_and_read(&mut self, color: ResourceId, area: Area) -> [Command; 2] {
        let dependency = Dependency { scope: scope(ATTACHMENTS, ATTACHMENTS), what: What::Memory };
        let access = self.attachment_access(color, area, S::FRAGMENT_SHADER.0, A::INPUT_ATTACHMENT_READ.0);
        [Command::Barrier(Barrier::Two { dependencies: vec![dependency] }), Command::Action(vec![access])]
    }

    fn subpass_dependencies(&mut self, before: Usage, has_two: bool) -> Vec<SubpassDependency> {
        let dependency =
            |src, dst, first, second| SubpassDependency { src, dst, scope: scope(first, second), view_offset: None };
        let outside = if self.care == Care::Tight { before.and(ATTACHMENTS) } else { Usage::EVERYTHING };
        let last = u32::from(has_two);
        let mut dependencies = Vec::new();
        if self.chance(85) {
            dependencies.push(dependency(None, Some(0), outside, ATTACHMENTS));
        }
        if has_two && self.chance(90) {
            dependencies.push(dependency(Some(0), Some(1), ATTACHMENTS, ATTACHMENTS));
        }
        if self.chance(80) {
            dependencies.push(dependency(Some(last), None, ATTACHMENTS, Usage::EVERYTHING));
        }
        dependencies
    }

    /// Draws into attachments, and sometimes a barrier between them.
    fn draws(
        &mut self,
        color: Option<ResourceId>,
        input: Option<ResourceId>,
        depth: Option<ResourceId>,
        area: Area,
    ) -> Vec<Command> {
        let mut commands = Vec::new();
        for _ in 0..self.random.below(3) {
            let mut accesses = Vec::new();
            if let Some(color) = color {
                let access = self.pick(&[A::COLOR_ATTACHMENT_WRITE.0, A::COLOR_ATTACHMENT_READ.0]);
                accesses.push(self.attachment_access(color, area, S::COLOR_ATTACHMENT_OUTPUT.0, access));
            }
            if let Some(input) = input {
                let access = A::INPUT_ATTACHMENT_READ.0;
                accesses.push(self.attachment_access(input, area, S::FRAGMENT_SHADER.0, access));
            }
            if let Some(depth) = depth {
                let (stage, access) = self.pick(&[
                    (S::EARLY_FRAGMENT_TESTS.0, A::DEPTH_STENCIL_ATTACHMENT_READ.0),
                    (S::EARLY_FRAGMENT_TESTS.0, A::DEPTH_STENCIL_ATTACHMENT_WRITE.0),
                    (S::LATE_FRAGMENT_TESTS.0, A::DEPTH_STENCIL_ATTACHMENT_WRITE.0),
                ]);
                accesses.push(self.attachment_access(depth, area, stage, access));
            }
            if self.chance(20) {
                let resource = ResourceId(0);
                let (stage, access) = (S::FRAGMENT_SHADER.0, A::SHADER_STORAGE_READ.0);
                let region = self.part(resource);
                accesses.push(Access { resource, region, stage, access, order: RasterOrder::None });
            }
            if !accesses.is_empty() {
                commands.push(Command::Action(accesses));
            }
        }
        commands
    }

    fn attachment_access(&mut self, resource: ResourceId, area: Area, stage: u64, access: u64) -> Access {
        let mut region = self.whole_image(resource);
        region.area = Some(area);
        let order = match stage {
            _ if access == A::INPUT_ATTACHMENT_READ.0 => RasterOrder::None,
            _ if self.is_depth(resource) => RasterOrder::DepthStencil,
            _ => RasterOrder::Color,
        };
        if self.is_depth(resource) && self.chance(50) {
            region.aspects = ImageAspectFlags::DEPTH.0;
        }
        Access { resource, region: Region::Image(region), stage, access, order }
    }

    fn attachment(&mut self, kind: AttachmentKind, layout: i32) -> Attachment {
        let initial_layout = if self.chance(50) { layout } else { UNDEFINED };
        let final_layout = if self.chance(50) { layout } else { READ_ONLY };
        let (load, stencil_load) = (self.load(), self.load());
        let (store, stencil_store) = (self.store(), self.store());
        Attachment { kind, load, store, stencil_load, stencil_store, initial_layout, final_layout }
    }

    fn load(&mut self) -> LoadOp {
        self.pick(&[LoadOp::Load, LoadOp::Clear, LoadOp::Clear, LoadOp::DontCare, LoadOp::None])
    }

    fn store(&mut self) -> StoreOp {
        self.pick(&[StoreOp::Store, StoreOp::Store, StoreOp::DontCare, StoreOp::None])
    }

    fn area(&mut self) -> Area {
        let extent = if self.chance(70) { [2, 2, 1] } else { [1, 2, 1] };
        Area { offset: [0; 3], extent }
    }
}
