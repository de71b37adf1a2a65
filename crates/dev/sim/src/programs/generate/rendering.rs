//! TestRng render passes, and rendering without them.

use lavascope_abi::{AccessFlags2 as A, ImageAspectFlags, PipelineStageFlags2 as S};
use lavascope_sync_ir::{
    Access, Area, Attachment, AttachmentKind, AttachmentView, Barrier, Command, Components, Dependency,
    DependencyTarget, LoadOp, RasterOrder, Region, RenderPass, RenderPassId, Rendering, RenderingAttachment, Resolve,
    ResourceId, StoreOp, Subpass, SubpassDependency,
};
use lavascope_sync_ir::{Certainty, ColorResolve};

use lavascope_oracle::is_write;

use super::{DependencyStyle, ProgramGenerator, StageAccessMasks, commands::scope};

const UNDEFINED: i32 = 0;
const COLOR: i32 = 2;
const DEPTH: i32 = 3;
const GENERAL: i32 = 1;
const DEPTH_READ_ONLY: i32 = 4;
const READ_ONLY: i32 = 5;
/// `VK_IMAGE_LAYOUT_READ_ONLY_OPTIMAL`.
const ANY_READ_ONLY: i32 = 1_000_314_000;

/// What attachments are used for.
pub(super) const ATTACHMENTS: StageAccessMasks = StageAccessMasks {
    stages: S::COLOR_ATTACHMENT_OUTPUT.0 | S::EARLY_FRAGMENT_TESTS.0 | S::LATE_FRAGMENT_TESTS.0 | S::FRAGMENT_SHADER.0,
    access: A::COLOR_ATTACHMENT_READ.0
        | A::COLOR_ATTACHMENT_WRITE.0
        | A::DEPTH_STENCIL_ATTACHMENT_READ.0
        | A::DEPTH_STENCIL_ATTACHMENT_WRITE.0
        | A::INPUT_ATTACHMENT_READ.0,
};

/// What those need that read what others drew.
const INPUT_READ: StageAccessMasks =
    StageAccessMasks { stages: S::FRAGMENT_SHADER.0, access: A::INPUT_ATTACHMENT_READ.0 };

/// Which subpasses read what the first one drew.
#[derive(Clone, Copy)]
enum Readers {
    Nobody,
    Second,
    AllButFirst,
    InTheMiddle,
}

impl Readers {
    fn contain(self, subpass: u32, count: u32) -> bool {
        match self {
            Readers::Nobody => false,
            Readers::Second => subpass == 1,
            Readers::AllButFirst => subpass > 0,
            Readers::InTheMiddle => subpass > 0 && subpass + 1 < count,
        }
    }
}

/// Where draws go.
#[derive(Clone, Copy)]
struct DrawTarget {
    color: Option<ResourceId>,
    input: Option<ResourceId>,
    depth: Option<ResourceId>,
    area: Area,
    view_mask: u32,
}

impl ProgramGenerator {
    /// A render pass of one kind or the other, with its draws.
    pub(super) fn pass(&mut self, before: StageAccessMasks) -> (Vec<Command>, StageAccessMasks) {
        let is_dynamic = match (self.features.render_passes, self.features.dynamic_rendering) {
            (true, true) => self.chance(40),
            (_, is_dynamic) => is_dynamic,
        };
        let commands = if is_dynamic { self.dynamic_rendering() } else { self.render_pass(before) };
        (commands, ATTACHMENTS)
    }

    fn dynamic_rendering(&mut self) -> Vec<Command> {
        let is_split = self.chance(20);
        self.rendering(if is_split { 2 } else { 1 }).concat()
    }

    /// Rendering in two parts, for two command buffers.
    pub(super) fn split_rendering(&mut self) -> (Vec<Command>, Vec<Command>) {
        let mut parts = self.rendering(2);
        let tail = parts.pop().unwrap_or_default();
        (parts.concat(), tail)
    }

    /// Rendering that is suspended and resumed between its parts.
    fn rendering(&mut self, parts: usize) -> Vec<Vec<Command>> {
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
            attachments[0].resolve = Some(Resolve { view, mode: 0 });
        }
        let (area, view_mask) = (self.area(), self.view_mask());
        let place = DrawTarget { color: Some(color), input: None, depth: has_depth.then_some(depth), area, view_mask };
        let mut found = Vec::new();
        for part in 0..parts {
            let (is_resuming, is_suspending) = (part > 0, part + 1 < parts);
            let attachments = attachments.clone();
            let rendering = Rendering { attachments, area, view_mask, is_suspending, is_resuming };
            let mut commands = vec![Command::BeginRendering(rendering)];
            let mut inside = self.draws(place);
            if self.chance(15) {
                inside.extend(self.barrier_and_read(color, place));
            }
            commands.extend(self.maybe_in_secondary(inside));
            commands.push(Command::EndRendering);
            found.push(commands);
        }
        found
    }

    /// The same commands, some of them in a secondary command buffer.
    fn maybe_in_secondary(&mut self, commands: Vec<Command>) -> Vec<Command> {
        if commands.is_empty() || !self.features.secondaries || !self.chance(25) {
            return commands;
        }
        let secondary = self.push_secondary(commands);
        let again = self.chance(15).then_some(secondary);
        vec![Command::Execute([secondary].into_iter().chain(again).collect())]
    }

    /// Some views of attachments with layers; zero for no multiview.
    fn view_mask(&mut self) -> u32 {
        let has_layers = self.whole_image(self.attachments[0]).layers.end > 1;
        if has_layers && self.chance(75) { self.random_view_mask() } else { 0 }
    }

    fn random_view_mask(&mut self) -> u32 {
        self.pick(&[1, 2, 3, 3])
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

    fn render_pass(&mut self, before: StageAccessMasks) -> Vec<Command> {
        let has_depth = self.chance(50);
        let count = match self.random.below(20) {
            0..=8 => 1,
            9..=14 => 2,
            15..=17 => 3,
            _ => 4,
        };
        let readers = self.pick(&[Readers::Nobody, Readers::Second, Readers::AllButFirst, Readers::InTheMiddle]);
        let (mut pass, mut views) = self.pass_attachments(has_depth);
        for subpass in 0..count {
            let item = self.subpass(has_depth, subpass, readers.contain(subpass, count));
            pass.subpasses.push(item);
        }
        let (color_target, depth_target) = (1 + u32::from(has_depth), pass.attachments.len() as u32 - 1);
        if pass.attachments.get(color_target as usize).is_some_and(|it| it.kind == AttachmentKind::Color) {
            pass.subpasses[0].resolves.push(ColorResolve { source: 0, target: color_target, layout: COLOR });
        }
        if depth_target > 1 && pass.attachments[depth_target as usize].kind == AttachmentKind::DepthStencil {
            pass.subpasses[0].depth_stencil_resolve = Some((depth_target, DEPTH));
        }
        if self.view_mask() != 0 {
            pass.subpasses.iter_mut().for_each(|it| it.view_mask = self.random_view_mask());
        }
        if self.chance(15) {
            self.push_unused_attachment(&mut pass, &mut views);
        }
        pass.dependencies = self.subpass_dependencies(before, count, readers);
        let has_barrier = self.chance(15);
        if has_barrier {
            let scope = scope(ATTACHMENTS, ATTACHMENTS);
            pass.dependencies.push(SubpassDependency { src: Some(0), dst: Some(0), scope, view_offset: None });
        }
        self.pass_commands(pass, views, has_barrier)
    }

    /// A subpass that draws, or one that reads what others drew.
    fn subpass(&mut self, has_depth: bool, number: u32, is_reader: bool) -> Subpass {
        let layout = match self.random.below(10) {
            0 => GENERAL,
            1 | 2 => ANY_READ_ONLY,
            _ => READ_ONLY,
        };
        let inputs = if is_reader { vec![(0, layout)] } else { Vec::new() };
        let is_drawing = !is_reader && (number == 0 || self.chance(90));
        let colors = if is_drawing { vec![(0, COLOR)] } else { Vec::new() };
        let depth_layout = match self.random.below(10) {
            0 if number > 0 => None,
            1 | 2 if number > 0 => Some(DEPTH_READ_ONLY),
            _ => Some(DEPTH),
        };
        let depth_stencil = depth_layout.filter(|_| has_depth).map(|it| (1, it));
        Subpass { inputs, colors, depth_stencil, ..Subpass::default() }
    }

    /// An attachment that no subpass uses: only its layout may change.
    fn push_unused_attachment(&mut self, pass: &mut RenderPass, views: &mut Vec<AttachmentView>) {
        let candidates = [(self.attachments[2], AttachmentKind::DepthStencil), (ResourceId(1), AttachmentKind::Color)];
        let is_free = |it: &&(ResourceId, AttachmentKind)| views.iter().all(|view| view.resource != it.0);
        let Some((resource, kind)) = candidates.iter().find(is_free).copied() else { return };
        let layout = if self.chance(70) { READ_ONLY } else { UNDEFINED };
        pass.attachments.push(Attachment { final_layout: layout, ..self.attachment(kind, UNDEFINED) });
        views.push(AttachmentView { resource, region: self.whole_image(resource) });
    }

    /// A color attachment, perhaps one for depth, and perhaps some to resolve to.
    fn pass_attachments(&mut self, has_depth: bool) -> (RenderPass, Vec<AttachmentView>) {
        let [color, depth, resolved] = [self.attachments[0], self.attachments[1], self.attachments[2]];
        let mut all = vec![(color, AttachmentKind::Color, COLOR)];
        if has_depth {
            all.push((depth, AttachmentKind::DepthStencil, DEPTH));
        }
        if self.chance(15) {
            all.push((ResourceId(1), AttachmentKind::Color, COLOR));
        }
        if has_depth && self.chance(15) {
            all.push((resolved, AttachmentKind::DepthStencil, DEPTH));
        }
        let attachments = all.iter().map(|it| self.attachment(it.1, it.2)).collect();
        let view = |resource| AttachmentView { resource, region: self.whole_image(resource) };
        let views = all.iter().map(|it| view(it.0)).collect();
        (RenderPass { attachments, ..RenderPass::default() }, views)
    }

    fn pass_commands(&mut self, pass: RenderPass, views: Vec<AttachmentView>, has_barrier: bool) -> Vec<Command> {
        let area = self.area();
        let color = views[0].resource;
        let id = RenderPassId(self.program.render_passes.len() as u32);
        let mut commands = vec![Command::BeginRenderPass { pass: id, views, area }];
        for (number, subpass) in pass.subpasses.iter().enumerate() {
            if number > 0 {
                commands.push(Command::NextSubpass);
            }
            let place = DrawTarget {
                color: (!subpass.colors.is_empty()).then_some(color),
                input: (!subpass.inputs.is_empty()).then_some(color),
                depth: subpass.depth_stencil.map(|_| self.attachments[1]),
                area,
                view_mask: subpass.view_mask,
            };
            let mut inside = self.draws(place);
            if has_barrier && number == 0 {
                inside.extend(self.barrier_and_read(color, place));
            }
            commands.extend(self.maybe_in_secondary(inside));
        }
        commands.push(Command::EndRenderPass);
        self.program.render_passes.push(pass);
        commands
    }

    /// A barrier inside, so that what was drawn can be read.
    fn barrier_and_read(&mut self, color: ResourceId, place: DrawTarget) -> [Command; 2] {
        let dependency = Dependency { scope: scope(ATTACHMENTS, ATTACHMENTS), target: DependencyTarget::Global };
        let access = self.attachment_access(color, place, S::FRAGMENT_SHADER.0, A::INPUT_ATTACHMENT_READ.0);
        [Command::Barrier(Barrier::Sync2 { dependencies: vec![dependency] }), Command::Action(vec![access])]
    }

    fn subpass_dependencies(
        &mut self,
        before: StageAccessMasks,
        count: u32,
        readers: Readers,
    ) -> Vec<SubpassDependency> {
        let dependency =
            |src, dst, first, second| SubpassDependency { src, dst, scope: scope(first, second), view_offset: None };
        let outside = if self.dependency_style == DependencyStyle::Tight {
            before.union(ATTACHMENTS)
        } else {
            StageAccessMasks::EVERYTHING
        };
        let mut dependencies = Vec::new();
        if self.chance(85) {
            dependencies.push(dependency(None, Some(0), outside, ATTACHMENTS));
        }
        for subpass in 1..count {
            if self.chance(85) {
                let src = match self.random.below(20) {
                    0..=4 if subpass > 1 => subpass - 2,
                    5..=14 if readers.contain(subpass, count) => 0,
                    _ => subpass - 1,
                };
                let is_narrow = readers.contain(subpass, count) && self.chance(40);
                let second = if is_narrow { INPUT_READ } else { ATTACHMENTS };
                dependencies.push(dependency(Some(src), Some(subpass), ATTACHMENTS, second));
                let is_writer = subpass > 1 && !readers.contain(subpass, count);
                if is_writer && src != subpass - 2 && self.chance(60) {
                    dependencies.push(dependency(Some(subpass - 2), Some(subpass), ATTACHMENTS, ATTACHMENTS));
                }
            }
        }
        if self.chance(80) {
            dependencies.push(dependency(Some(count - 1), None, ATTACHMENTS, StageAccessMasks::EVERYTHING));
            if count > 2 && self.chance(40) {
                dependencies.push(dependency(Some(count - 2), None, ATTACHMENTS, StageAccessMasks::EVERYTHING));
            }
        }
        dependencies
    }

    /// Draws into attachments.
    fn draws(&mut self, place: DrawTarget) -> Vec<Command> {
        let mut commands = Vec::new();
        for _ in 0..self.random.below(3) {
            let mut accesses = Vec::new();
            if let Some(color) = place.color {
                let access = self.pick(&[A::COLOR_ATTACHMENT_WRITE.0, A::COLOR_ATTACHMENT_READ.0]);
                accesses.push(self.attachment_access(color, place, S::COLOR_ATTACHMENT_OUTPUT.0, access));
            }
            if let Some(input) = place.input {
                let access = A::INPUT_ATTACHMENT_READ.0;
                accesses.push(self.attachment_access(input, place, S::FRAGMENT_SHADER.0, access));
            }
            if let Some(depth) = place.depth {
                let (stage, access) = self.pick(&[
                    (S::EARLY_FRAGMENT_TESTS.0, A::DEPTH_STENCIL_ATTACHMENT_READ.0),
                    (S::EARLY_FRAGMENT_TESTS.0, A::DEPTH_STENCIL_ATTACHMENT_WRITE.0),
                    (S::LATE_FRAGMENT_TESTS.0, A::DEPTH_STENCIL_ATTACHMENT_WRITE.0),
                ]);
                accesses.push(self.attachment_access(depth, place, stage, access));
            }
            if self.chance(20) {
                let resource = ResourceId(0);
                let access = if self.chance(20) { A::SHADER_STORAGE_WRITE.0 } else { A::SHADER_STORAGE_READ.0 };
                let (stage, region) = (S::FRAGMENT_SHADER.0, self.random_region(resource));
                accesses.push(Access::new(resource, region, stage, access));
            }
            if !accesses.is_empty() {
                self.maybe_without_instances(&mut accesses);
                commands.push(Command::Action(accesses));
            }
        }
        commands
    }

    /// Some draws have no instances: nothing of them is certain, and nothing is written.
    fn maybe_without_instances(&mut self, accesses: &mut Vec<Access>) {
        if self.chance(8) {
            accesses.retain(|it| !is_write(it.access));
            accesses.iter_mut().for_each(|it| it.certainty = Certainty::Unreported);
        }
    }

    fn attachment_access(&mut self, resource: ResourceId, place: DrawTarget, stage: u64, access: u64) -> Access {
        let mut region = self.whole_image(resource);
        region.area = Some(place.area);
        match place.view_mask {
            1 => region.layers = 0..1,
            2 => region.layers = 1..2,
            _ => {}
        }
        if !self.is_depth(resource) && self.chance(15) {
            // A color write mask.
            region.components = Components(1 + self.random.below(2) as u8);
        }
        let is_ordered = self.chance(25);
        let order = match stage {
            _ if access == A::INPUT_ATTACHMENT_READ.0 && !is_ordered => RasterOrder::None,
            _ if self.is_depth(resource) => RasterOrder::DepthStencil,
            _ => RasterOrder::Color,
        };
        if self.is_depth(resource) && self.chance(50) {
            region.aspects = ImageAspectFlags::DEPTH.0;
        }
        Access { order, ..Access::new(resource, Region::Image(region), stage, access) }
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
        let extent = if self.chance(60) { [2, 2, 1] } else { [1, 2, 1] };
        Area { offset: [0; 3], extent }
    }
}
