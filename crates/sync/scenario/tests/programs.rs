//! Programs from random numbers, with everything that a program can hold: printed, read back, and the same again.

use lavascope_abi::{Format, SYNC_ACCESSES, SYNC_STAGES};
use lavascope_scenario::{Scenario, parse, print};
use lavascope_sync_ir::ColorResolve;
use lavascope_sync_ir::*;
use lavascope_test_support::TestRng;

/// Chooses the parts of a program.
struct ProgramRng(TestRng);

impl ProgramRng {
    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    fn small(&mut self, end: u32) -> u32 {
        self.below(u64::from(end)) as u32
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        *self.one_of(all)
    }

    fn range(&mut self, end: u64) -> std::ops::Range<u64> {
        let start = self.below(end);
        start..start + 1 + self.below(end - start)
    }

    fn range32(&mut self, end: u32) -> std::ops::Range<u32> {
        let range = self.range(u64::from(end));
        range.start as u32..range.end as u32
    }

    fn list<T>(&mut self, count_max: u64, mut one: impl FnMut(&mut ProgramRng) -> T) -> Vec<T> {
        (0..self.below(count_max + 1)).map(|_| one(self)).collect()
    }

    fn some<T>(&mut self, one: impl FnOnce(&mut ProgramRng) -> T) -> Option<T> {
        if self.flip() { Some(one(self)) } else { None }
    }
}

fn stages(random: &mut ProgramRng) -> u64 {
    // A bit without a name now and then.
    let extra = if random.below(12) == 0 { 1 << 62 } else { 0 };
    random.list(3, |it| it.one_of(SYNC_STAGES).stage).into_iter().fold(extra, |all, it| all | it)
}

fn accesses(random: &mut ProgramRng) -> u64 {
    random.list(3, |it| it.one_of(SYNC_ACCESSES).access).into_iter().fold(0, |all, it| all | it)
}

fn scope(random: &mut ProgramRng) -> SyncScope {
    SyncScope {
        src_stages: stages(random),
        src_access: accesses(random),
        dst_stages: stages(random),
        dst_access: accesses(random),
    }
}

/// One buffer, one bound buffer, and images of several kinds.
fn resources(random: &mut ProgramRng) -> Vec<Resource> {
    let image = |random: &mut ProgramRng, format: Format, tiling: Tiling| {
        let extent = [1 + random.small(64), 1 + random.small(64), 1 + random.small(3)];
        let (mips, layers) = (1 + random.small(4), 1 + random.small(4));
        ResourceKind::Image(ImageDesc { format, extent, mips, layers, tiling, alias: random.flip() })
    };
    let kinds = [
        ResourceKind::Buffer { size: 256 },
        ResourceKind::Buffer { size: 256 },
        image(random, Format::R8G8B8A8_UNORM, Tiling::Optimal),
        image(random, Format::D24_UNORM_S8_UINT, Tiling::Optimal),
        image(random, Format::G8_B8R8_2PLANE_420_UNORM, Tiling::Linear),
        pitched(random),
        image(random, Format::BC1_RGBA_UNORM_BLOCK, Tiling::Optimal),
    ];
    let binding = |random: &mut ProgramRng| MemoryBinding {
        memory: MemoryId(random.small(2)),
        offset: random.below(1000),
        size: 1 + random.below(1000),
    };
    let one = |kind| {
        let resource = Resource::new(kind, random.some(binding));
        // Sparse resources get their memory later.
        let is_sparse = resource.binding.is_none() && random.flip();
        Resource { is_exclusive: random.flip(), is_sparse, ..resource }
    };
    kinds.into_iter().map(one).collect()
}

/// A linear image with layouts that have gaps.
fn pitched(random: &mut ProgramRng) -> ResourceKind {
    let extent = [1 + random.small(8), 1 + random.small(8), 1 + random.small(3)];
    let (mips, layers) = (1 + random.small(3), 1 + random.small(3));
    let layout = |random: &mut ProgramRng| SubresourceLayout {
        offset: random.below(64),
        row_pitch: 32 + random.below(32),
        depth_pitch: 1024 + random.below(64),
        array_pitch: 4096 + random.below(64),
    };
    let tiling = Tiling::Pitched((0..mips).map(|_| layout(random)).collect());
    ResourceKind::Image(ImageDesc {
        format: Format::R8G8B8A8_UNORM,
        extent,
        mips,
        layers,
        tiling,
        alias: random.flip(),
    })
}

fn area(random: &mut ProgramRng) -> Area {
    let mut area = Area { offset: [0; 3], extent: [1; 3] };
    for axis in 0..3 {
        let range = random.range32(8);
        area.offset[axis] = range.start;
        area.extent[axis] = range.end - range.start;
    }
    area
}

fn image_region(random: &mut ProgramRng, image: &ImageDesc) -> ImageRegion {
    let aspects = match image.format {
        Format::D24_UNORM_S8_UINT => random.pick(&[2, 4, 6]),
        Format::G8_B8R8_2PLANE_420_UNORM => random.pick(&[1, 0x10, 0x20, 0x30]),
        _ => 1,
    };
    ImageRegion {
        aspects,
        mips: random.range32(image.mips),
        layers: random.range32(image.layers),
        area: random.some(area),
        components: Components(1 + random.small(15) as u8),
    }
}

fn part(random: &mut ProgramRng, resources: &[Resource]) -> (ResourceId, Region) {
    let at = random.small(resources.len() as u32);
    let region = match &resources[at as usize].kind {
        ResourceKind::Buffer { size } => Region::Buffer(random.range(*size)),
        ResourceKind::Image(image) => Region::Image(image_region(random, image)),
    };
    (ResourceId(at), region)
}

fn view(random: &mut ProgramRng, resources: &[Resource]) -> AttachmentView {
    let resource = ResourceId(2 + random.small(3));
    let ResourceKind::Image(image) = &resources[resource.0 as usize].kind else { panic!("images begin at two") };
    AttachmentView { resource, region: ImageRegion { area: None, ..image_region(random, image) } }
}

fn access(random: &mut ProgramRng, resources: &[Resource]) -> Access {
    let (resource, region) = part(random, resources);
    let named = |it: &mut ProgramRng| it.one_of(&SYNC_STAGES[1..]).stage;
    let order = random.pick(&[RasterOrder::None, RasterOrder::Color, RasterOrder::DepthStencil]);
    // Stages and accesses that the grammar has words for are drawn more often than their share.
    let (stage, access) = match random.below(4) {
        0 => (1 << 32, random.pick(&[0x800, 0x1000])),
        1 => (0x400, random.pick(&[0x80, 0x100])),
        _ => (named(random), random.one_of(&SYNC_ACCESSES[1..]).access),
    };
    Access { order, ..Access::new(resource, region, stage, access) }
}

fn dependency(random: &mut ProgramRng, resources: &[Resource], scope: SyncScope) -> Dependency {
    let (resource, region) = part(random, resources);
    let family = |it: &mut ProgramRng| it.pick(&[0, 1, 7, !0, !1, !2]);
    let what = match random.below(4) {
        0 => DependencyTarget::Global,
        1 => DependencyTarget::Resource { resource, region },
        2 => DependencyTarget::Transition { resource, region },
        _ => {
            let (src_family, dst_family, is_transition) = (family(random), family(random), random.flip());
            DependencyTarget::QueueFamilyTransfer {
                resource,
                region,
                transfer: QueueFamilyTransfer { src_family, dst_family, is_transition },
            }
        }
    };
    Dependency { scope, target: what }
}

fn dependencies(random: &mut ProgramRng, resources: &[Resource]) -> Vec<Dependency> {
    random.list(3, |random_item| {
        let scope = scope(random_item);
        dependency(random_item, resources, scope)
    })
}

/// Stages of the command, which its dependencies repeat.
fn dependencies_one(random: &mut ProgramRng, resources: &[Resource]) -> (u64, u64, Vec<Dependency>) {
    let (src_stages, dst_stages) = (stages(random), stages(random));
    let all = random.list(3, |random_item| {
        let scope = SyncScope { src_stages, dst_stages, ..scope(random_item) };
        dependency(random_item, resources, scope)
    });
    (src_stages, dst_stages, all)
}

const LOADS: [LoadOp; 4] = [LoadOp::Load, LoadOp::Clear, LoadOp::DontCare, LoadOp::None];
const STORES: [StoreOp; 3] = [StoreOp::Store, StoreOp::DontCare, StoreOp::None];

fn render_pass(random: &mut ProgramRng) -> RenderPass {
    let kinds = [AttachmentKind::Color, AttachmentKind::Depth, AttachmentKind::Stencil, AttachmentKind::DepthStencil];
    let layouts = [0, 1, 2, 3, 5, 1000001002];
    let attachment = |random: &mut ProgramRng| Attachment {
        kind: random.pick(&kinds),
        load: random.pick(&LOADS),
        store: random.pick(&STORES),
        stencil_load: random.pick(&LOADS),
        stencil_store: random.pick(&STORES),
        initial_layout: random.pick(&layouts),
        final_layout: random.pick(&layouts),
    };
    let one = |random: &mut ProgramRng| (random.small(2), random.pick(&layouts));
    let subpass = |random: &mut ProgramRng| Subpass {
        inputs: random.list(2, one),
        colors: random.list(2, one),
        resolves: random.list(2, |random| ColorResolve {
            source: random.small(2),
            target: random.small(2),
            layout: random.pick(&layouts),
        }),
        depth_stencil: random.some(one),
        depth_stencil_resolve: random.some(one),
        preserves: random.list(2, |it| it.small(2)),
        view_mask: random.small(4),
    };
    let number = |random: &mut ProgramRng| random.some(|it| it.small(2));
    let dependency = |random: &mut ProgramRng| SubpassDependency {
        src: number(random),
        dst: number(random),
        scope: scope(random),
        view_offset: random.some(|it| it.small(5) as i32 - 2),
    };
    RenderPass {
        attachments: (0..2).map(|_| attachment(random)).collect(),
        subpasses: (0..2).map(|_| subpass(random)).collect(),
        dependencies: random.list(3, dependency),
    }
}

fn rendering(random: &mut ProgramRng, resources: &[Resource]) -> Rendering {
    let kinds = [AttachmentKind::Color, AttachmentKind::Depth, AttachmentKind::Stencil];
    let attachment = |random: &mut ProgramRng| RenderingAttachment {
        kind: random.pick(&kinds),
        view: view(random, resources),
        load: random.pick(&LOADS),
        store: random.pick(&STORES),
        resolve: random.some(|it| Resolve { view: view(it, resources), mode: 0 }),
    };
    Rendering {
        attachments: random.list(3, attachment),
        area: area(random),
        view_mask: random.small(4),
        is_suspending: random.flip(),
        is_resuming: random.flip(),
    }
}

fn command(random: &mut ProgramRng, resources: &[Resource]) -> Command {
    let event = |it: &mut ProgramRng| EventId(it.small(2));
    match random.below(12) {
        0..3 => Command::Action(random.list(4, |it| access(it, resources))),
        3 => Command::Barrier(Barrier::Sync2 { dependencies: dependencies(random, resources) }),
        4 => {
            let (src_stages, dst_stages, dependencies) = dependencies_one(random, resources);
            Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
        }
        5 if random.flip() => Command::SetEvent(SetEvent::Sync1 { event: event(random), stages: stages(random) }),
        5 => Command::SetEvent(SetEvent::Sync2 { event: event(random), dependencies: dependencies(random, resources) }),
        6 => Command::ResetEvent { event: event(random), stages: stages(random) },
        7 => {
            let one = |it: &mut ProgramRng| (event(it), dependencies(it, resources));
            let mut events = vec![one(random)];
            events.extend(random.list(2, one));
            Command::WaitEvents(WaitEvents::Sync2 { events })
        }
        8 => {
            let (src_stages, dst_stages, dependencies) = dependencies_one(random, resources);
            let mut events = vec![event(random)];
            events.extend(random.list(2, event));
            Command::WaitEvents(WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies })
        }
        9 => {
            let views = (0..2).map(|_| view(random, resources)).collect();
            Command::BeginRenderPass { pass: RenderPassId(0), views, area: area(random) }
        }
        10 => match random.below(3) {
            0 => Command::NextSubpass,
            1 => Command::EndRenderPass,
            _ => Command::EndRendering,
        },
        _ => Command::BeginRendering(rendering(random, resources)),
    }
}

fn point(random: &mut ProgramRng) -> SemaphorePoint {
    let is_timeline = random.flip();
    SemaphorePoint { semaphore: SemaphoreId(u32::from(is_timeline)), value: is_timeline.then(|| random.below(9)) }
}

fn timeline(random: &mut ProgramRng) -> SemaphorePoint {
    SemaphorePoint { semaphore: SemaphoreId(1), value: Some(random.below(9)) }
}

fn batch(random: &mut ProgramRng) -> SubmitBatch {
    SubmitBatch {
        waits: random.list(2, |it| SemaphoreWait { point: point(it), stages: stages(it) }),
        command_buffers: random.list(2, |it| CommandBufferId(it.small(3))),
        signals: random.list(2, |it| SemaphoreSignal { point: point(it), stages: stages(it) }),
    }
}

fn step(random: &mut ProgramRng, resources: &[Resource]) -> HostStep {
    let queue = QueueId(random.small(3));
    let fence = |it: &mut ProgramRng| FenceId(it.small(2));
    let event = EventId(random.small(2));
    let image = |it: &mut ProgramRng| ResourceId(2 + it.small(3));
    let fences = |item: &mut ProgramRng| {
        let mut all = vec![fence(item)];
        all.extend(item.list(1, fence));
        all
    };
    match random.below(15) {
        0..3 => HostStep::Submit { queue, batches: random.list(3, batch), fence: random.some(fence) },
        3 => HostStep::WaitFences(fences(random)),
        4 => HostStep::ResetFences(fences(random)),
        5 => HostStep::QueueIdle(queue),
        6 => HostStep::DeviceIdle,
        7 => HostStep::WaitSemaphores(vec![timeline(random), timeline(random)]),
        8 => HostStep::SignalSemaphore(timeline(random)),
        9 if random.flip() => HostStep::SetEvent(event),
        9 => HostStep::ResetEvent(event),
        10 => {
            let (resource, region) = part(random, resources);
            HostStep::HostAccess { resource, region, is_write: random.flip(), certainty: Certainty::Certain }
        }
        11 => HostStep::Acquire {
            image: image(random),
            semaphore: random.some(|_| SemaphoreId(0)),
            fence: random.some(fence),
        },
        12 => HostStep::Present { queue, waits: random.list(2, |_| SemaphoreId(0)), images: random.list(2, image) },
        13 => sparse(random, resources, queue),
        _ => HostStep::Destroy(ResourceId(random.small(5))),
    }
}

/// Binds some of the sparse resources.
fn sparse(random: &mut ProgramRng, resources: &[Resource], queue: QueueId) -> HostStep {
    let all = (0..resources.len()).filter(|it| resources[*it].is_sparse);
    let mut one = |index: usize| {
        let (part, size) = match &resources[index].kind {
            ResourceKind::Buffer { size } => {
                let bytes = random.range(*size);
                (SparsePart::Bytes(bytes.start), bytes.end - bytes.start)
            }
            ResourceKind::Image(_) if random.flip() => (SparsePart::Bytes(random.below(64)), 1 + random.below(64)),
            ResourceKind::Image(image) => (SparsePart::Texels(image_region(random, image)), random.below(64)),
        };
        let memory = random.some(|it| (MemoryId(it.small(2)), it.below(1000)));
        let size = if memory.is_none() && matches!(part, SparsePart::Texels(_)) { 0 } else { size };
        SparseBind { resource: ResourceId(index as u32), part, size, memory }
    };
    let binds: Vec<SparseBind> = all.map(&mut one).collect();
    if binds.is_empty() {
        return HostStep::QueueIdle(queue);
    }
    let waits = random.list(2, timeline);
    let signals = random.list(2, timeline);
    HostStep::BindSparse { queue, waits, binds, signals, fence: random.some(|it| FenceId(it.small(2))) }
}

fn program(random: &mut ProgramRng) -> Program {
    let resources = resources(random);
    let mut command_buffers: Vec<CommandBuffer> = (0..4)
        .map(|at| CommandBuffer { is_secondary: at == 3, commands: random.list(6, |it| command(it, &resources)) })
        .collect();
    command_buffers[0].commands.push(Command::Execute(vec![CommandBufferId(3); 2]));
    let mut steps = random.list(8, |it| step(it, &resources));
    // The timeline is one by being used as one.
    steps.push(HostStep::SignalSemaphore(timeline(random)));
    let queue = |it: &mut ProgramRng| Queue { family: it.small(3), flags: it.small(0x600) };
    Program {
        queues: (0..3).map(|_| queue(random)).collect(),
        render_passes: vec![render_pass(random)],
        resources,
        command_buffers,
        event_count: 2,
        semaphore_count: 2,
        fence_count: 2,
        steps,
    }
}

#[test]
fn every_program_has_a_text() {
    let mut random = ProgramRng(TestRng::new(0x5eed_0bad_cafe_0001));
    for round in 0..1500 {
        let scenario = Scenario::of(program(&mut random));
        let text = print(&scenario);
        let again = parse(&text).unwrap_or_else(|error| panic!("round {round}: {error}\n{text}"));
        assert_eq!(again.program, scenario.program, "round {round}:\n{text}");
        assert_eq!(print(&again), text, "round {round}");
    }
}
