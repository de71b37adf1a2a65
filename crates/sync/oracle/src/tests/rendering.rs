//! Single rules of render passes, dynamic rendering, rasterization order and shared memory.

use lavascope_abi::{Format, ImageAspectFlags};
use lavascope_sync_ir::{
    Access, Area, Attachment, AttachmentKind, AttachmentView, Barrier, Command, CommandBuffer, CommandBufferId,
    Components, Dependency, DependencyTarget, HostStep, ImageDesc, ImageRegion, LoadOp, MemoryBinding, MemoryId,
    Program, QueueId, RasterOrder, Region, RenderPass, RenderPassId, Rendering, RenderingAttachment, Resolve, Resource,
    ResourceId, ResourceKind, StoreOp, SubmitBatch, Subpass, SubpassDependency, SyncScope, Tiling,
};

use crate::OracleRules;
use crate::notation::{accesses, base_program, parse, stages, summary, texels};

const AREA: Area = Area { offset: [0; 3], extent: [8, 1, 1] };
const HALF: Area = Area { offset: [0; 3], extent: [4, 1, 1] };

fn program(commands: Vec<Command>, passes: Vec<RenderPass>) -> Program {
    let batch = SubmitBatch { command_buffers: vec![CommandBufferId(0)], ..SubmitBatch::default() };
    Program {
        render_passes: passes,
        command_buffers: vec![CommandBuffer { is_secondary: false, commands }],
        steps: vec![HostStep::Submit { queue: QueueId(0), batches: vec![batch], fence: None }],
        ..base_program()
    }
}

/// Checks that both sets of rules give the same hazards.
fn both(program: &Program) -> String {
    let specification = summary(program, OracleRules::SPECIFICATION);
    assert_eq!(specification, summary(program, OracleRules::CONTRACT));
    specification.replace("0.0.0:", "")
}

fn commands(text: &str) -> Vec<Command> {
    parse(&format!("cb0:\n{}", text.replace("; ", "\n"))).command_buffers.remove(0).commands
}

fn whole() -> AttachmentView {
    AttachmentView { resource: ResourceId(0), region: ImageRegion { area: None, ..texels(0, 8) } }
}

fn begin(area: Area) -> Command {
    Command::BeginRenderPass { pass: RenderPassId(0), views: vec![whole()], area }
}

fn dependency(src: Option<u32>, dst: Option<u32>, masks: [&str; 4]) -> SubpassDependency {
    SubpassDependency { src, dst, scope: scope(masks), view_offset: None }
}

fn scope([src, src_access, dst, dst_access]: [&str; 4]) -> SyncScope {
    SyncScope {
        src_stages: stages(src),
        src_access: accesses(src_access),
        dst_stages: stages(dst),
        dst_access: accesses(dst_access),
    }
}

/// A render pass with one color attachment, which all subpasses draw to in layout 2.
fn pass(subpasses: usize, load: LoadOp, dependencies: Vec<SubpassDependency>) -> RenderPass {
    RenderPass {
        attachments: vec![Attachment {
            kind: AttachmentKind::Color,
            load,
            store: StoreOp::Store,
            stencil_load: LoadOp::None,
            stencil_store: StoreOp::None,
            initial_layout: 2,
            final_layout: 2,
        }],
        subpasses: vec![Subpass { colors: vec![(0, 2)], ..Subpass::default() }; subpasses],
        dependencies,
    }
}

/// Commands inside and around a render pass; `|` separates those before it, each subpass, and those after it.
fn run(pass: RenderPass, area: Area, text: &str) -> String {
    let parts: Vec<_> = text.split('|').map(|it| commands(it.trim())).collect();
    let mut all = parts[0].clone();
    all.push(begin(area));
    for (subpass, part) in parts[1..parts.len() - 1].iter().enumerate() {
        if subpass > 0 {
            all.push(Command::NextSubpass);
        }
        all.extend(part.clone());
    }
    all.push(Command::EndRenderPass);
    all.extend(parts[parts.len() - 1].clone());
    both(&program(all, vec![pass]))
}

const EXTERNAL_IN: [&str; 4] = ["TR", "W", "CO", "cr~CW"];

fn masks(masks: [&'static str; 4]) -> [String; 4] {
    masks.map(|it| it.replace('~', "|"))
}

fn external(src: Option<u32>, dst: Option<u32>, all: [&'static str; 4]) -> SubpassDependency {
    let all = masks(all);
    dependency(src, dst, [&all[0], &all[1], &all[2], &all[3]])
}

#[test]
fn load_operations() {
    let outside = |load, dependencies| run(pass(1, load, dependencies), AREA, "TR.W [0,8) || ");
    assert_eq!(outside(LoadOp::Clear, vec![]), "1 WAW 0");
    assert_eq!(outside(LoadOp::DontCare, vec![]), "1 WAW 0");
    assert_eq!(outside(LoadOp::Load, vec![]), "1 RAW 0");
    let good = || vec![external(None, Some(0), EXTERNAL_IN)];
    assert_eq!(outside(LoadOp::Clear, good()), "clean");
    assert_eq!(outside(LoadOp::Load, good()), "clean");
    let no_read = vec![external(None, Some(0), ["TR", "W", "CO", "CW"])];
    assert_eq!(outside(LoadOp::Load, no_read), "1 RAW 0");
    // Without a load operation the first conflict is with the store operation.
    assert_eq!(outside(LoadOp::None, vec![]), "2 WAW 0");
    // A clear may write the whole subresource, not only the area.
    let elsewhere = |load| run(pass(1, load, vec![]), HALF, "TR.W [4,8) || ");
    assert_eq!(elsewhere(LoadOp::Clear), "1 WAW 0");
}

#[test]
fn draws_are_in_raster_order() {
    let draw = "CO.CW [0,8) @color";
    assert_eq!(run(pass(1, LoadOp::Clear, vec![]), AREA, &format!("|{draw}; {draw}|")), "clean");
    assert_eq!(run(pass(1, LoadOp::Load, vec![]), AREA, &format!("|CO.cr [0,8) @color; {draw}|")), "clean");
    assert_eq!(run(pass(1, LoadOp::Clear, vec![]), AREA, "|CO.CW [0,8) @color; CO.CW [0,8)|"), "2 WAW 1");
    assert_eq!(run(pass(1, LoadOp::Clear, vec![]), AREA, "|FS.SW [0,8) @color|"), "1 WAW 0");
    // An input attachment read sees what the load operation wrote, but not what a draw wrote.
    assert_eq!(run(pass(1, LoadOp::Clear, vec![]), AREA, "|FS.in [0,8)|"), "clean");
    assert_eq!(run(pass(1, LoadOp::Clear, vec![]), AREA, &format!("|{draw}; FS.in [0,8)|")), "2 RAW 1");
    // Outside of render passes there is no rasterization order.
    assert_eq!(both(&program(commands(&format!("{draw}; {draw}")), vec![])), "1 WAW 0");
}

#[test]
fn depth_tests_are_in_raster_order() {
    let draws = "|EF.dr [0,8) @depth; LF.DW [0,8) @depth; EF.DW [0,8) @depth|";
    let mut depth = pass(1, LoadOp::None, vec![]);
    depth.attachments[0].store = StoreOp::None;
    assert_eq!(run(depth.clone(), AREA, draws), "clean");
    assert_eq!(run(depth, AREA, "|LF.DW [0,8) @depth; CO.CW [0,8) @color|"), "2 WAW 1");
}

#[test]
fn store_operations() {
    let after = |dependencies, store| {
        let mut pass = pass(1, LoadOp::Clear, dependencies);
        pass.attachments[0].store = store;
        run(pass, AREA, "|| TR.r [0,8)")
    };
    let out = |masks| vec![external(Some(0), None, masks)];
    assert_eq!(after(vec![], StoreOp::Store), "2 RAW 0, 2 RAW 1");
    assert_eq!(after(out(["CO", "CW", "TR", "r"]), StoreOp::Store), "clean");
    assert_eq!(after(out(["CO", "", "TR", "r"]), StoreOp::Store), "2 RAW 0, 2 RAW 1");
    assert_eq!(after(vec![], StoreOp::None), "2 RAW 0");
}

#[test]
fn stores_of_attachments_that_are_only_read_write() {
    let mut only_read = pass(1, LoadOp::Load, vec![external(Some(0), None, ["CO", "CW", "TR", "r"])]);
    only_read.attachments[0].store = StoreOp::DontCare;
    assert_eq!(run(only_read.clone(), AREA, "|CO.cr [0,8) @color| TR.r [0,8)"), "clean");
    only_read.dependencies.clear();
    assert_eq!(run(only_read, AREA, "|CO.cr [0,8) @color| TR.r [0,8)"), "3 RAW 2");
}

#[test]
fn subpasses() {
    let draw = "CO.CW [0,8) @color";
    let two = |dependencies| run(pass(2, LoadOp::Clear, dependencies), AREA, &format!("|{draw}|{draw}|"));
    // Nothing orders the two subpasses: the draws race. The load operation comes before both.
    assert_eq!(two(vec![]), "3 WRW 1");
    let inner = |masks| vec![external(Some(0), Some(1), masks)];
    assert_eq!(two(inner(["CO", "CW", "CO", "CW"])), "clean");
    assert_eq!(two(inner(["CO", "CW", "CS", "CW"])), "3 WAW 1");
    assert_eq!(two(inner(["EF", "", "CO", "CW"])), "3 WAW 1");
    // A subpass dependency orders only its two subpasses.
    let outside = run(pass(2, LoadOp::None, inner(["TR", "W", "CO", "CW"])), AREA, "TR.W [0,8) ||CO.CW [0,1) @color|");
    assert!(outside.contains("WAW 0"), "{outside}");
}

#[test]
fn barriers_in_subpasses_stay_there() {
    let barrier = "barrier Global[S=CO SA=CW -> D=FS DA=in]";
    let draw = "CO.CW [0,8) @color";
    let run = |text: &str| run(pass(1, LoadOp::Clear, vec![]), AREA, text);
    assert_eq!(run(&format!("|{draw}; {barrier}; FS.in [0,8)|")), "clean");
    // A barrier in a subpass includes neither commands before the render pass nor those after it.
    let before = run("FS.SW r1 [0,1) | barrier Global[S=ALL SA=MW -> D=ALL DA=mr]; FS.sr r1 [0,1) |");
    assert_eq!(before, "3 RAW 0");
    let after = run("| FS.SW r1 [0,1); barrier Global[S=ALL SA=MW -> D=ALL DA=mr] | FS.sr r1 [0,1)");
    assert_eq!(after, "4 RAW 1");
    let around = run("FS.SW r1 [0,1); barrier Global[S=ALL SA=MW -> D=ALL DA=mr] | FS.sr r1 [0,1) |");
    assert_eq!(around, "clean");
}

#[test]
fn transitions_of_attachments() {
    let with = |initial, last, dependencies| {
        let mut pass = pass(1, LoadOp::Clear, dependencies);
        (pass.attachments[0].initial_layout, pass.attachments[0].final_layout) = (initial, last);
        pass
    };
    // The first scope of the implicit dependency is empty.
    assert_eq!(run(with(0, 2, vec![]), AREA, "||"), "clean");
    assert_eq!(run(with(0, 2, vec![]), AREA, "TR.W [0,8) ||"), "1 WAW 0");
    let good = || vec![external(None, Some(0), EXTERNAL_IN)];
    assert_eq!(run(with(0, 2, good()), AREA, "TR.W [0,8) ||"), "clean");
    // An explicit dependency with an empty destination mask does not order the load operation.
    let blind = vec![external(None, Some(0), ["TR", "W", "TR", ""])];
    assert_eq!(run(with(0, 2, blind), AREA, "||"), "0 WAW 0");
    // A transition affects the whole attachment, not only the area.
    assert_eq!(run(with(0, 2, vec![]), HALF, "TR.W [4,8) ||"), "1 WAW 0");
    // The transition at the end of the render pass.
    assert_eq!(run(with(2, 5, vec![]), AREA, "||"), "clean");
    let out = |masks| vec![external(Some(0), None, masks)];
    assert!(run(with(2, 5, vec![]), AREA, "|| FS.smp [0,8)").contains("2 RAW 1"));
    assert_eq!(run(with(2, 5, out(["CO", "CW", "FS", "smp"])), AREA, "|| FS.smp [0,8)"), "clean");
    assert!(run(with(2, 5, out(["CO", "", "FS", "smp"])), AREA, "|| FS.smp [0,8)").starts_with("1 WAW"));
}

#[test]
fn transitions_wait_for_dependencies_of_users() {
    let with = |dst| {
        let mut pass = pass(2, LoadOp::Clear, vec![external(None, Some(dst), EXTERNAL_IN)]);
        pass.subpasses[0] = Subpass::default();
        pass.attachments[0].initial_layout = 0;
        run(pass, AREA, "TR.W [0,8) |||")
    };
    assert_eq!(with(1), "clean");
    assert_eq!(with(0), "2 WAW 0");
}

#[test]
fn transitions_between_subpasses() {
    let two = |dependencies| {
        let mut pass = pass(2, LoadOp::Clear, dependencies);
        pass.subpasses[1] = Subpass { inputs: vec![(0, 5)], ..Subpass::default() };
        (pass.attachments[0].final_layout, pass.attachments[0].store) = (5, StoreOp::None);
        run(pass, AREA, "|CO.CW [0,8) @color|FS.in [0,8)|")
    };
    assert_eq!(two(vec![external(Some(0), Some(1), ["CO", "CW", "FS", "in"])]), "clean");
    assert!(two(vec![external(Some(0), Some(1), ["CO", "", "FS", "in"])]).starts_with("2 WAW"));
    assert!(two(vec![external(Some(0), Some(1), ["CO", "CW", "VS", "sr"])]).contains("3 RAW 2"));
    assert!(two(vec![]).starts_with("2 WRW"));
}

/// One transition into the layout of two subpasses, and one away from it. A dependency between the two subpasses has the
/// first one before its visibility operations and the second one after its availability operations, which orders
/// nothing. A dependency to one of them and another one from it does, if they form a chain.
#[test]
fn transitions_around_a_dependency() {
    let text = |dependencies| {
        let mut pass = pass(4, LoadOp::None, dependencies);
        for subpass in 1..3 {
            pass.subpasses[subpass] = Subpass { inputs: vec![(0, 1)], ..Subpass::default() };
        }
        pass.subpasses[3] = Subpass { inputs: vec![(0, 5)], ..Subpass::default() };
        (pass.attachments[0].final_layout, pass.attachments[0].store) = (5, StoreOp::None);
        let mut all = vec![begin(AREA)];
        all.extend([Command::NextSubpass, Command::NextSubpass, Command::NextSubpass, Command::EndRenderPass]);
        let program = program(all, vec![pass]);
        assert_eq!(summary(&program, OracleRules::CONTRACT), "clean");
        summary(&program, OracleRules::SPECIFICATION)
    };
    let [first, second] = [(1, 2), (1, 3)].map(|(src, dst)| external(Some(src), Some(dst), ["FS", "in", "FS", "in"]));
    let into = external(Some(0), Some(1), ["CO", "CW", "FS", "in"]);
    assert_eq!(text(vec![first]), "0.0.0:3 WRW 0.0.0:1");
    assert_eq!(text(vec![first, second]), "0.0.0:3 WAW 0.0.0:1");
    assert_eq!(text(vec![into, second]), "clean");
    let elsewhere = external(Some(0), Some(1), ["CO", "CW", "LF", "dr"]);
    assert_eq!(text(vec![elsewhere, second]), "0.0.0:3 WAW 0.0.0:1");
}

/// A read before the load operation is before the store operation, in whatever subpasses the two are.
#[test]
fn what_is_before_a_load_is_before_the_store() {
    let with = |masks| run(pass(2, LoadOp::Load, vec![external(None, Some(0), masks)]), AREA, "FS.smp [0,8)|||");
    assert_eq!(with(["FS", "", "CO", ""]), "clean");
    assert_eq!(with(["VS", "", "CO", ""]), "3 WAR 0");
    assert_eq!(with(["FS", "", "TR", ""]), "3 WAR 0");
}

fn rendering(load: LoadOp, store: StoreOp) -> Rendering {
    let attachment = RenderingAttachment { kind: AttachmentKind::Color, view: whole(), load, store, resolve: None };
    Rendering { attachments: vec![attachment], area: AREA, view_mask: 0, is_suspending: false, is_resuming: false }
}

fn render(rendering: Rendering, text: &str) -> String {
    let parts: Vec<_> = text.split('|').map(|it| commands(it.trim())).collect();
    let mut all = parts[0].clone();
    all.push(Command::BeginRendering(rendering));
    all.extend(parts[1].clone());
    all.push(Command::EndRendering);
    all.extend(parts[2].clone());
    both(&program(all, vec![]))
}

#[test]
fn dynamic_rendering() {
    let clear = || rendering(LoadOp::Clear, StoreOp::Store);
    assert_eq!(render(clear(), "|CO.CW [0,8) @color|"), "clean");
    assert_eq!(render(clear(), "TR.W [0,8)||"), "1 WAW 0");
    assert_eq!(render(rendering(LoadOp::Load, StoreOp::Store), "TR.W [0,8)||"), "1 RAW 0");
    assert_eq!(render(rendering(LoadOp::None, StoreOp::None), "TR.W [0,8)||"), "clean");
    assert_eq!(render(clear(), "TR.W [0,8); barrier Global[S=TR SA=W -> D=CO DA=CW]||"), "clean");
    assert_eq!(render(clear(), "|| barrier Global[S=CO SA=CW -> D=TR DA=r]; TR.r [0,8)"), "clean");
    assert_eq!(render(clear(), "|| TR.r [0,8)"), "2 RAW 0, 2 RAW 1");
}

#[test]
fn barriers_in_rendering_stay_there() {
    let barrier = "barrier Global[S=ALL SA=MW -> D=ALL DA=mr]";
    let none = || rendering(LoadOp::None, StoreOp::None);
    assert_eq!(render(none(), &format!("|FS.SW r1 [0,1); {barrier}; FS.sr r1 [0,1)|")), "clean");
    assert_eq!(render(none(), &format!("FS.SW r1 [0,1)|{barrier}; FS.sr r1 [0,1)|")), "3 RAW 0");
    assert_eq!(render(none(), &format!("|FS.SW r1 [0,1); {barrier}|FS.sr r1 [0,1)")), "4 RAW 1");
}

#[test]
fn suspended_rendering_goes_on() {
    let mut first = rendering(LoadOp::Clear, StoreOp::Store);
    first.is_suspending = true;
    let second = Rendering { is_suspending: false, is_resuming: true, ..first.clone() };
    let draw = commands("CO.CW [0,8) @color");
    let mut all = vec![Command::BeginRendering(first)];
    all.extend(draw.clone());
    all.extend([Command::EndRendering, Command::BeginRendering(second.clone())]);
    all.extend(draw);
    all.push(Command::EndRendering);
    assert_eq!(both(&program(all.clone(), vec![])), "clean");
    // A second rendering is not ordered after the first.
    all[3] = Command::BeginRendering(Rendering { is_resuming: false, ..second });
    all[0] = Command::BeginRendering(rendering(LoadOp::Clear, StoreOp::Store));
    assert!(both(&program(all, vec![])).contains("3 WAW 2"));
}

#[test]
fn resolves() {
    let with = |text: &str| {
        let mut rendering = rendering(LoadOp::Clear, StoreOp::Store);
        let view = AttachmentView { resource: ResourceId(2), ..whole() };
        rendering.attachments[0].resolve = Some(Resolve { view, mode: 0 });
        let mut all = vec![Command::BeginRendering(rendering)];
        all.extend(commands("CO.CW [0,8) @color"));
        all.push(Command::EndRendering);
        all.extend(commands(text));
        let region = Region::Image(texels(0, 8));
        let (stage, access) = (stages("TR"), accesses("r"));
        let order = RasterOrder::None;
        all.push(Command::Action(vec![Access { order, ..Access::new(ResourceId(2), region, stage, access) }]));
        let mut program = program(all, vec![]);
        program.resources.push(program.resources[0].clone());
        both(&program)
    };
    assert_eq!(with(""), "3 RAW 2");
    assert_eq!(with("barrier Global[S=CO SA=CW -> D=TR DA=r]"), "clean");
}

/// Two resources in one memory: a buffer of 8 bytes, and another resource at byte 4.
fn shared(other: ResourceKind, text: &str) -> String {
    let mut program = program(commands(text), vec![]);
    let binding = |offset, size| Some(MemoryBinding { memory: MemoryId(0), offset, size });
    program.resources[1].binding = binding(0, 8);
    program.resources[0] = Resource::new(other, binding(4, 8));
    both(&program)
}

fn image(tiling: Tiling) -> ResourceKind {
    let format = Format::R8_UNORM;
    ResourceKind::Image(ImageDesc { format, extent: [8, 1, 1], mips: 1, layers: 1, tiling, alias: false })
}

#[test]
fn shared_memory() {
    let linear = |text| shared(image(Tiling::Linear), text);
    assert_eq!(linear("TR.W [0,1); TR.r r1 [4,5)"), "1 RAW 0");
    assert_eq!(linear("TR.W [0,1); TR.r r1 [5,8)"), "clean");
    assert_eq!(linear("TR.W [0,8); TR.r r1 [0,4)"), "clean");
    // A texel of an image with optimal tiling may lie anywhere in the memory of the image.
    let opaque = |text| shared(image(Tiling::Optimal), text);
    assert_eq!(opaque("TR.W [0,1); TR.r r1 [5,8)"), "1 RAW 0");
    assert_eq!(opaque("TR.W [0,1); TR.r r1 [0,4)"), "clean");
    assert_eq!(opaque("TR.r r1 [7,8); TR.W [0,1)"), "1 WAR 0");
    assert_eq!(opaque("TR.W [0,1); TR.W [1,2)"), "clean");
    // An ordered access to another texel does not replace an access to the first.
    let two = "CS.SW [0,1); TR.W [1,2); barrier Global[S=TR SA=W -> D=TR DA=r]; TR.r r1 [5,6)";
    assert_eq!(opaque(two), "3 RAW 0");
    assert_eq!(opaque("TR.W [0,1); barrier Global[S=TR SA=W -> D=TR DA=r]; TR.r r1 [5,8)"), "clean");
}

#[test]
fn compatible_aliases_are_one_image() {
    let alias = |offset: u64| {
        let mut program = program(commands("TR.W [0,1)"), vec![]);
        let format = Format::R8_UNORM;
        let tiling = Tiling::Optimal;
        let image = ImageDesc { format, extent: [8, 1, 1], mips: 1, layers: 1, tiling, alias: true };
        let at = |offset| Some(MemoryBinding { memory: MemoryId(0), offset, size: 8 });
        program.resources[0] = Resource::new(ResourceKind::Image(image.clone()), at(0));
        program.resources.push(Resource::new(ResourceKind::Image(image), at(offset)));
        let read = |from, to| {
            let region = Region::Image(texels(from, to));
            let (stage, access) = (stages("TR"), accesses("r"));
            Access::new(ResourceId(2), region, stage, access)
        };
        [read(0, 1), read(1, 2)].map(|item| {
            let mut program = program.clone();
            program.command_buffers[0].commands.push(Command::Action(vec![item]));
            both(&program)
        })
    };
    assert_eq!(alias(0), ["1 RAW 0", "clean"]);
    assert_eq!(alias(4), ["1 RAW 0", "1 RAW 0"]);
    assert_eq!(alias(8), ["clean", "clean"]);
}

#[test]
fn parts_of_images() {
    let format = Format::R8G8_UNORM;
    let kind = ImageDesc { format, extent: [4, 4, 1], mips: 2, layers: 2, tiling: Tiling::Optimal, alias: false };
    let pair = |one: ImageRegion, other: ImageRegion| {
        let access = |region: ImageRegion| {
            let (stage, access) = (stages("TR"), accesses("W"));
            let region = Region::Image(region);
            Command::Action(vec![Access::new(ResourceId(0), region, stage, access)])
        };
        let mut program = program(vec![access(one), access(other)], vec![]);
        program.resources[0].kind = ResourceKind::Image(kind.clone());
        both(&program) == "clean"
    };
    let all = ImageRegion { area: None, mips: 0..2, layers: 0..2, ..texels(0, 1) };
    assert!(!pair(all.clone(), all.clone()));
    assert!(pair(ImageRegion { mips: 0..1, ..all.clone() }, ImageRegion { mips: 1..2, ..all.clone() }));
    assert!(pair(ImageRegion { layers: 0..1, ..all.clone() }, ImageRegion { layers: 1..2, ..all.clone() }));
    let components = |it| ImageRegion { components: Components(it), ..all.clone() };
    assert!(pair(components(1), components(2)));
    assert!(!pair(components(1), components(3)));
    assert!(pair(components(4), all.clone()), "there is no blue");
    let row = |y| ImageRegion { area: Some(Area { offset: [0, y, 0], extent: [4, 1, 1] }), ..all.clone() };
    assert!(pair(row(0), row(1)));
    assert!(!pair(row(1), row(1)));
    // The second mip level has only two rows.
    let small = |y| ImageRegion { mips: 1..2, ..row(y) };
    assert!(pair(small(2), small(2)));
    let stencil = ImageRegion { aspects: ImageAspectFlags::STENCIL.0, ..all.clone() };
    assert!(pair(stencil, ImageRegion { aspects: ImageAspectFlags::DEPTH.0, ..all }));
}

#[test]
fn barriers_on_parts_of_images_transition_parts() {
    let transition = |region: ImageRegion| {
        let what = DependencyTarget::Transition { resource: ResourceId(0), region: Region::Image(region) };
        let dependency = Dependency { scope: SyncScope::default(), target: what };
        Command::Barrier(Barrier::Sync2 { dependencies: vec![dependency] })
    };
    let mut all = commands("TR.W [0,8)");
    all.push(transition(ImageRegion { layers: 1..2, area: None, ..texels(0, 8) }));
    assert_eq!(both(&program(all.clone(), vec![])), "clean", "there is no second layer");
    all[1] = transition(ImageRegion { area: None, ..texels(0, 8) });
    assert_eq!(both(&program(all, vec![])), "1 WAW 0");
}
