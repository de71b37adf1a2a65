//! Random frames: images that are acquired, drawn to and presented.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use lavascope_sync_ir::{
    Access, Area, Attachment, AttachmentKind, AttachmentView, Barrier, Command, CommandBuffer, Dependency,
    DependencyTarget, HostStep, LoadOp, QueueId, RenderPass, RenderPassId, ResourceId, SemaphorePoint, SemaphoreSignal,
    SemaphoreWait, StoreOp, Subpass, SubpassDependency, SyncScope,
};

use super::{CommandBufferTraits, ProgramGenerator, StageAccessMasks, commands::scope};
use lavascope_sync_ir::SubmitBatch;

const COLOR_STAGE: u64 = S::COLOR_ATTACHMENT_OUTPUT.0;
const COLOR: StageAccessMasks = StageAccessMasks { stages: COLOR_STAGE, access: A::COLOR_ATTACHMENT_WRITE.0 };

impl ProgramGenerator {
    /// A command buffer that draws into an image and gets it ready to be presented.
    pub(super) fn presented_frame(&mut self, resource: ResourceId) {
        let region = self.whole_region(resource);
        let mut commands = if self.chance(40) { self.use_of_shared_resource() } else { Vec::new() };
        match self.random.below(10) {
            // A frame that only looks at the image.
            0..=2 => {
                let read = Access::new(resource, region, S::COPY.0, A::TRANSFER_READ.0);
                commands.push(Command::Action(vec![read]));
            }
            3..=4 if self.features.render_passes => commands.extend(self.pass_to_present(resource)),
            _ => {
                let draw = Access::new(resource, region, COLOR.stages, COLOR.access);
                let first = scope(StageAccessMasks { access: 0, ..COLOR }, COLOR);
                commands.extend([self.transition(resource, first), Command::Action(vec![draw])]);
                self.push_last_transition(&mut commands, resource);
            }
        }
        let uses = CommandBufferTraits { is_presented: true, family: Some(0), ..CommandBufferTraits::default() };
        self.push_buffer(CommandBuffer { is_secondary: false, commands }, uses);
    }

    fn transition(&self, resource: ResourceId, scope: SyncScope) -> Command {
        let target = DependencyTarget::Transition { resource, region: self.whole_region(resource) };
        Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target }] })
    }

    /// To the layout in which it is presented: before nothing, before the stage that draws, or before everything.
    fn push_last_transition(&mut self, commands: &mut Vec<Command>, resource: ResourceId) {
        let nothing = StageAccessMasks::default();
        let all = StageAccessMasks::EVERYTHING;
        let (src, dst) = self.pick(&[
            (COLOR, nothing),
            (COLOR, StageAccessMasks { access: 0, ..COLOR }),
            (COLOR, COLOR),
            (all, all),
        ]);
        let last = self.transition(resource, scope(src, dst));
        if self.features.secondaries && self.chance(20) {
            let secondary = self.push_secondary(vec![last]);
            return commands.push(Command::Execute(vec![secondary]));
        }
        commands.push(last);
    }

    /// The same by a render pass: the dependency to the outside leads from its last transition to some stage.
    fn pass_to_present(&mut self, resource: ResourceId) -> Vec<Command> {
        let dst = self.pick(&[
            None,
            Some(StageAccessMasks { access: 0, ..COLOR }),
            Some(StageAccessMasks { stages: S::COPY.0, access: 0 }),
            Some(StageAccessMasks::EVERYTHING),
        ]);
        let dependency = |src, dst, scope| SubpassDependency { src, dst, scope, view_offset: None };
        let first = scope(StageAccessMasks { access: 0, ..COLOR }, COLOR);
        let mut dependencies = vec![dependency(None, Some(0), first)];
        dependencies.extend(dst.map(|it| dependency(Some(0), None, scope(COLOR, it))));
        let attachment = Attachment {
            kind: AttachmentKind::Color,
            load: LoadOp::Clear,
            store: StoreOp::Store,
            stencil_load: LoadOp::DontCare,
            stencil_store: StoreOp::DontCare,
            initial_layout: 0,
            final_layout: 1,
        };
        let subpass = Subpass { colors: vec![(0, 2)], ..Subpass::default() };
        self.program.render_passes.push(RenderPass {
            attachments: vec![attachment],
            subpasses: vec![subpass],
            dependencies,
        });
        let pass = RenderPassId(self.program.render_passes.len() as u32 - 1);
        let views = vec![AttachmentView { resource, region: self.whole_image(resource) }];
        let area = Area { offset: [0; 3], extent: [2, 1, 1] };
        vec![Command::BeginRenderPass { pass, views, area }, Command::EndRenderPass]
    }

    /// Something that all frames use, and nothing but a barrier in the middle of the frame guards: what waits for the
    /// acquire leads to that barrier.
    fn use_of_shared_resource(&mut self) -> Vec<Command> {
        let resource = ResourceId(0);
        let (stages, access) = self.pick(&[
            (S::COPY.0, A::TRANSFER_WRITE.0),
            (S::COMPUTE_SHADER.0, A::SHADER_STORAGE_WRITE.0),
            (S::COMPUTE_SHADER.0, A::SHADER_STORAGE_READ.0),
        ]);
        let own = StageAccessMasks { stages, access };
        let acquired = StageAccessMasks { access: 0, ..COLOR };
        let src = self.pick(&[acquired, acquired.union(own), acquired.union(StageAccessMasks { access: 0, ..own })]);
        let dependency = Dependency { scope: scope(src, own), target: DependencyTarget::Global };
        let action = Access::new(resource, self.whole_region(resource), stages, access);
        vec![Command::Barrier(Barrier::Sync2 { dependencies: vec![dependency] }), Command::Action(vec![action])]
    }

    pub(super) fn acquire(&mut self, image: ResourceId, batch: &mut SubmitBatch) -> ResourceId {
        if self.features.host_waits && self.chance(20) {
            let fence = self.fence();
            self.push_step(HostStep::Acquire { image, semaphore: None, fence: Some(fence) });
            self.push_step(HostStep::WaitFences(vec![fence]));
            return image;
        }
        let semaphore = self.semaphore();
        self.push_step(HostStep::Acquire { image, semaphore: Some(semaphore), fence: None });
        let point = SemaphorePoint { semaphore, value: None };
        let stages = self.pick(&[COLOR_STAGE, COLOR_STAGE | S::COPY.0, COLOR_STAGE | S::COPY.0, S::ALL_COMMANDS.0]);
        batch.waits.push(SemaphoreWait { point, stages });
        image
    }

    pub(super) fn present(&mut self, queue: QueueId, image: ResourceId) {
        let semaphore = self.semaphore();
        let point = SemaphorePoint { semaphore, value: None };
        let all = S::ALL_COMMANDS.0;
        let stages = self.pick(&[all, all, all, COLOR_STAGE, COLOR_STAGE | S::COPY.0, S::ALL_GRAPHICS.0]);
        self.signal_after(queue, SemaphoreSignal { point, stages });
        self.push_step(HostStep::Present { queue, waits: vec![semaphore], images: vec![image] });
    }
}
