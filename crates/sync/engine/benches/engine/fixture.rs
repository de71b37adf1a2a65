//! An engine with something in it, and frames to be recorded.

use lavascope_abi::{AccessFlags2 as A, Format, ImageAspectFlags, PipelineStageFlags2 as S, QueueFlags};
use lavascope_engine::Engine;
use lavascope_sync_ir::{
    Access, Area, AttachmentKind, AttachmentView, Barrier, Command, CommandBuffer, CommandBufferId, Components,
    Dependency, DependencyTarget, FenceId, HostStep, ImageDesc, ImageRegion, LoadOp, Queue, QueueId, RasterOrder,
    Region, Rendering, RenderingAttachment, Resource, ResourceId, ResourceKind, SemaphoreId, SemaphorePoint,
    SemaphoreSignal, SemaphoreWait, StoreOp, SubmitBatch, SyncScope, Tiling,
};

/// Bytes of a range; one is left between two, so that they stay apart.
const RANGE: u64 = 16;
const QUEUE: Queue =
    Queue { family: 0, flags: QueueFlags::GRAPHICS.0 | QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0 };
const COPIES: u64 = 10;

pub(crate) const NARROW: SyncScope = SyncScope {
    src_stages: S::COPY.0,
    src_access: A::TRANSFER_WRITE.0,
    dst_stages: S::COMPUTE_SHADER.0,
    dst_access: A::SHADER_STORAGE_READ.0,
};
pub(crate) const ALL: SyncScope = SyncScope {
    src_stages: S::ALL_COMMANDS.0,
    src_access: A::MEMORY_WRITE.0,
    dst_stages: S::ALL_COMMANDS.0,
    dst_access: A::MEMORY_READ.0 | A::MEMORY_WRITE.0,
};

pub(crate) fn barrier(scope: SyncScope) -> Command {
    Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target: DependencyTarget::Global }] })
}

/// A barrier on one range.
pub(crate) fn image_barrier(range: u64) -> Command {
    let what = DependencyTarget::Resource { resource: BUFFER, region: region(range) };
    let scope = SyncScope { dst_access: A::SHADER_STORAGE_READ.0 | A::UNIFORM_READ.0, ..NARROW };
    Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target: what }] })
}

pub(crate) fn access(range: u64, stage: S, access: A) -> Command {
    Command::Action(vec![of_buffer(range, stage, access)])
}

/// Every world has these.
const BUFFER: ResourceId = ResourceId(0);
const COLOR: ResourceId = ResourceId(1);
const DEPTH: ResourceId = ResourceId(2);
const TEXTURE: ResourceId = ResourceId(3);

pub(crate) struct EngineFixture {
    pub(crate) engine: Engine,
    frames: u64,
    buffer: Option<CommandBufferId>,
    /// Of frames that are still under way.
    alive: Vec<ResourceId>,
}

impl EngineFixture {
    /// With a buffer, every range of which was written once, and queues that know of each other.
    pub(crate) fn new(ranges: u64, queues: u32) -> EngineFixture {
        let queue = |family| Queue { family, ..QUEUE };
        let mut engine = Engine::new(&(0..queues).map(queue).collect::<Vec<_>>(), 0, queues, 2);
        engine.add_resource(&Resource::new(ResourceKind::Buffer { size: ranges * RANGE }, None));
        for format in [Format::R8G8B8A8_UNORM, Format::D32_SFLOAT, Format::R8G8B8A8_UNORM] {
            engine.add_resource(&image(format));
        }
        let mut world = EngineFixture { engine, frames: 0, buffer: None, alive: Vec::new() };
        for queue in 1..queues {
            world.submit_semaphores(QueueId(queue), None, Some(SemaphoreId(queue)));
        }
        (1..queues).for_each(|queue| world.submit_semaphores(QueueId(0), Some(SemaphoreId(queue)), None));
        let mut commands: Vec<Command> = (0..ranges).map(|it| access(it, S::COPY, A::TRANSFER_WRITE)).collect();
        commands.push(barrier(ALL));
        let all = world.record(commands);
        world.submit(all, 1);
        world.clear_command_buffer(all);
        assert_eq!(world.engine.range_count() as u64, ranges);
        world
    }

    /// An empty batch that waits and signals.
    fn submit_semaphores(&mut self, queue: QueueId, wait: Option<SemaphoreId>, signal: Option<SemaphoreId>) {
        let point = |semaphore| SemaphorePoint { semaphore, value: None };
        let stages = S::ALL_COMMANDS.0;
        let batch = SubmitBatch {
            waits: wait.map(|it| SemaphoreWait { point: point(it), stages }).into_iter().collect(),
            signals: signal.map(|it| SemaphoreSignal { point: point(it), stages }).into_iter().collect(),
            ..SubmitBatch::default()
        };
        self.engine.step(&HostStep::Submit { queue, batches: vec![batch], fence: None });
    }

    pub(crate) fn record(&mut self, commands: Vec<Command>) -> CommandBufferId {
        self.engine.add_command_buffer(CommandBuffer { is_secondary: false, commands })
    }

    pub(crate) fn clear_command_buffer(&mut self, id: CommandBufferId) {
        // Twice: room that was needed the last time is kept for the next.
        (0..2).for_each(|_| self.engine.set_command_buffer(id, CommandBuffer::default()));
    }

    pub(crate) fn submit(&mut self, buffer: CommandBufferId, times: u64) {
        let batch = SubmitBatch { command_buffers: vec![buffer], ..SubmitBatch::default() };
        let step = HostStep::Submit { queue: QueueId(0), batches: vec![batch], fence: None };
        for _ in 0..times {
            self.engine.step(&step);
        }
        assert!(self.engine.take_hazards().is_empty(), "the program is right");
    }

    /// A frame, recorded anew and submitted.
    pub(crate) fn frame(&mut self, commands: Vec<Command>) {
        let id = self.record_again(commands);
        self.submit(id, 1);
    }

    /// The same, checked as it is recorded.
    pub(crate) fn checked_frame(&mut self, commands: Vec<Command>) {
        let id = match self.buffer {
            Some(id) => id,
            None => *self.buffer.insert(self.engine.add_command_buffer(CommandBuffer::default())),
        };
        self.engine.begin_recording(id, QUEUE, false);
        for command in commands {
            let found = match command {
                Command::Action(accesses) => self.engine.check_action(id, &accesses, |it| it),
                command => Some(self.engine.check_command(id, command)).filter(|it| !it.is_empty()).map(Box::new),
            };
            assert!(found.is_none(), "the program is right");
        }
        self.engine.end_recording(id);
        self.submit(id, 1);
    }

    /// With many buffers, all of which were written once.
    pub(crate) fn of_buffers(count: u32) -> EngineFixture {
        let mut engine = Engine::new(&[QUEUE], 0, 0, 0);
        let kind = ResourceKind::Buffer { size: RANGE };
        for _ in 0..count {
            engine.add_resource(&Resource::new(kind.clone(), None));
        }
        let mut world = EngineFixture { engine, frames: 0, buffer: None, alive: Vec::new() };
        let write = |it| Command::Action(vec![of_whole(it, A::TRANSFER_WRITE)]);
        let mut commands: Vec<Command> = (0..count).map(write).collect();
        commands.push(barrier(ALL));
        let all = world.record(commands);
        world.submit(all, 1);
        world.clear_command_buffer(all);
        world
    }

    fn record_again(&mut self, commands: Vec<Command>) -> CommandBufferId {
        let commands = CommandBuffer { is_secondary: false, commands };
        match self.buffer {
            Some(id) => {
                self.engine.set_command_buffer(id, commands);
                id
            }
            None => *self.buffer.insert(self.engine.add_command_buffer(commands)),
        }
    }

    /// The same as a render loop does it: with a buffer of its own, two frames under way, and a wait for the one before.
    pub(crate) fn render_loop_frame(&mut self) {
        let fence = FenceId((self.frames % 2) as u32);
        self.frames += 1;
        if self.frames > 2 {
            self.engine.step(&HostStep::WaitFences(vec![fence]));
            self.engine.step(&HostStep::ResetFences(vec![fence]));
            let old = self.alive.remove(0);
            self.engine.step(&HostStep::Destroy(old));
        }
        let kind = ResourceKind::Buffer { size: 4096 };
        let upload = self.engine.add_resource(&Resource::new(kind, None));
        self.alive.push(upload);
        let mut commands = frame(80);
        let region = Region::Buffer(0..2048 + self.frames % 64 * 16);
        let (stage, access) = (S::COPY.0, A::TRANSFER_WRITE.0);
        commands.push(Command::Action(vec![Access::new(upload, region, stage, access)]));
        let id = self.record_again(commands);
        let batch = SubmitBatch { command_buffers: vec![id], ..SubmitBatch::default() };
        self.engine.step(&HostStep::Submit { queue: QueueId(0), batches: vec![batch], fence: Some(fence) });
        assert!(self.engine.take_hazards().is_empty(), "the program is right");
    }
}

fn image(format: Format) -> Resource {
    let kind = ImageDesc { format, extent: [1920, 1080, 1], mips: 1, layers: 1, tiling: Tiling::Optimal, alias: false };
    Resource::new(ResourceKind::Image(kind), None)
}

fn region(range: u64) -> Region {
    Region::Buffer(range * RANGE..(range + 1) * RANGE - 1)
}

fn whole(aspect: ImageAspectFlags) -> ImageRegion {
    ImageRegion { aspects: aspect.0, mips: 0..1, layers: 0..1, area: None, components: Components::ALL }
}

fn of_buffer(range: u64, stage: S, access: A) -> Access {
    let (stage, access) = (stage.0, access.0);
    Access::new(BUFFER, region(range), stage, access)
}

fn of_image(resource: ResourceId, aspect: ImageAspectFlags, stage: S, access: A, order: RasterOrder) -> Access {
    let region = Region::Image(whole(aspect));
    Access { order, ..Access::new(resource, region, stage.0, access.0) }
}

fn of_whole(buffer: u32, access: A) -> Access {
    Access::new(ResourceId(buffer), Region::Buffer(0..RANGE), S::COPY.0, access.0)
}

/// A thousand copies between buffers, and 64 barriers.
pub(crate) fn copies(buffers: u32) -> Vec<Command> {
    const COPY: SyncScope =
        SyncScope { dst_stages: S::COPY.0, dst_access: A::TRANSFER_WRITE.0 | A::TRANSFER_READ.0, ..NARROW };
    let mut commands = vec![barrier(COPY)];
    for index in 0..1000 {
        let [from, to] = [2 * index % buffers, (2 * index + 1) % buffers];
        commands.push(Command::Action(vec![of_whole(from, A::TRANSFER_READ), of_whole(to, A::TRANSFER_WRITE)]));
        if index % 16 == 15 {
            commands.push(barrier(COPY));
        }
    }
    commands.push(barrier(ALL));
    commands
}

/// Draws with a vertex, an index and a uniform buffer, a texture, color and depth; copies; barriers between.
pub(crate) fn frame(draws: u64) -> Vec<Command> {
    const GRAPHICS: SyncScope = SyncScope {
        src_stages: S::ALL_COMMANDS.0,
        src_access: A::MEMORY_WRITE.0,
        dst_stages: S::ALL_GRAPHICS.0,
        dst_access: A::MEMORY_READ.0 | A::MEMORY_WRITE.0,
    };
    let mut commands: Vec<Command> = Vec::with_capacity(128);
    commands.push(barrier(ALL));
    commands.extend((0..COPIES).map(copy));
    commands.push(transition(TEXTURE));
    commands.push(barrier(GRAPHICS));
    commands.push(Command::BeginRendering(rendering()));
    commands.extend((0..draws).map(draw));
    commands.push(Command::EndRendering);
    commands.push(barrier(ALL));
    commands
}

fn copy(index: u64) -> Command {
    let read = of_buffer(index, S::COPY, A::TRANSFER_READ);
    Command::Action(vec![read, of_buffer(50 + index, S::COPY, A::TRANSFER_WRITE)])
}

fn transition(resource: ResourceId) -> Command {
    let scope = SyncScope {
        src_stages: S::ALL_COMMANDS.0,
        src_access: A::MEMORY_WRITE.0,
        dst_stages: S::FRAGMENT_SHADER.0,
        dst_access: A::SHADER_SAMPLED_READ.0,
    };
    let what = DependencyTarget::Transition { resource, region: Region::Image(whole(ImageAspectFlags::COLOR)) };
    Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target: what }] })
}

fn draw(index: u64) -> Command {
    let (color, depth) = (ImageAspectFlags::COLOR, ImageAspectFlags::DEPTH);
    let deep = RasterOrder::DepthStencil;
    Command::Action(vec![
        of_buffer(index % 20, S::VERTEX_ATTRIBUTE_INPUT, A::VERTEX_ATTRIBUTE_READ),
        of_buffer(20 + index % 10, S::INDEX_INPUT, A::INDEX_READ),
        of_buffer(30 + index % 10, S::VERTEX_SHADER, A::UNIFORM_READ),
        of_image(TEXTURE, color, S::FRAGMENT_SHADER, A::SHADER_SAMPLED_READ, RasterOrder::None),
        of_image(COLOR, color, S::COLOR_ATTACHMENT_OUTPUT, A::COLOR_ATTACHMENT_WRITE, RasterOrder::Color),
        of_image(DEPTH, depth, S::EARLY_FRAGMENT_TESTS, A::DEPTH_STENCIL_ATTACHMENT_READ, deep),
        of_image(DEPTH, depth, S::LATE_FRAGMENT_TESTS, A::DEPTH_STENCIL_ATTACHMENT_WRITE, deep),
    ])
}

fn rendering() -> Rendering {
    let attachment = |kind, resource, aspect| RenderingAttachment {
        kind,
        view: AttachmentView { resource, region: whole(aspect) },
        load: LoadOp::Clear,
        store: StoreOp::Store,
        resolve: None,
    };
    Rendering {
        attachments: vec![
            attachment(AttachmentKind::Color, COLOR, ImageAspectFlags::COLOR),
            attachment(AttachmentKind::Depth, DEPTH, ImageAspectFlags::DEPTH),
        ],
        area: Area { offset: [0; 3], extent: [1920, 1080, 1] },
        view_mask: 0,
        is_suspending: false,
        is_resuming: false,
    }
}
