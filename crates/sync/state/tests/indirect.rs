//! Indirect commands access what their parameters name, as written by the host or by the same command buffer.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, Command as Api, *};
use lavascope_record::{HostWrite, HostWriteBuilder};
use lavascope_sim::SyntheticObjects;
use lavascope_spirv::{InvocationBytes, OffsetTerm, Quantity};
use lavascope_state::{Collector, DescriptorUse, ShaderInterface, Tracker};
use lavascope_sync_ir::{Access, Certainty, Region};

const VERTICES: u64 = 1;
const INDICES: u64 = 2;
const PARAMETERS: u64 = 3;
const COUNT: u64 = 4;
const INSTANCES: u64 = 5;
/// The offsets of the buffers in the memory.
const PLACES: [u64; 6] = [0, 0, 1 << 16, 1 << 17, 1 << 18, 1 << 19];
const INDEX: BufferUsageFlags = BufferUsageFlags::INDEX_BUFFER;
const INDIRECT: BufferUsageFlags = BufferUsageFlags::INDIRECT_BUFFER;
const FILLED: BufferUsageFlags = BufferUsageFlags::TRANSFER_DST;

type Bytes = Vec<(std::ops::Range<u64>, Certainty)>;

/// A pipeline that reads eight of sixteen bytes of each vertex, and eight bytes for each two instances.
fn app(indices: BufferUsageFlags, parameters: BufferUsageFlags) -> App<Collector> {
    let vertex = ShaderInterface { inputs: 3, ..ShaderInterface::default() };
    let tracker = Tracker::with_reflection(Collector::default(), Box::new(TestShaders(vec![vertex])));
    let mut app = App::with_tracker(tracker);
    app.tracker.expect_all_host_writes();
    for (serial, usage) in [
        (VERTICES, BufferUsageFlags::VERTEX_BUFFER),
        (INSTANCES, BufferUsageFlags::VERTEX_BUFFER),
        (INDICES, indices),
        (PARAMETERS, parameters),
        (COUNT, INDIRECT),
    ] {
        make_buffer(&mut app, serial, usage, PLACES[serial as usize]);
    }
    app.make_shader(0, 0);
    let stages = [stage(ShaderStageFlagBits::VERTEX, 0)];
    let binding = |binding, input_rate| VertexInputBindingDescription { binding, stride: 16, input_rate };
    let attribute = |location| VertexInputAttributeDescription {
        location,
        binding: location,
        format: Format::R32G32_SFLOAT,
        offset: 0,
    };
    let bindings = [binding(0, VertexInputRate::VERTEX), binding(1, VertexInputRate::INSTANCE)];
    let attributes = [attribute(0), attribute(1)];
    let divisor = VertexInputBindingDivisorDescription { binding: 1, divisor: 2 };
    let divisors = PipelineVertexInputDivisorStateCreateInfo {
        vertex_binding_divisor_count: 1,
        p_vertex_binding_divisors: Ptr::to(&divisor),
        ..PipelineVertexInputDivisorStateCreateInfo::zeroed()
    };
    let vertex = PipelineVertexInputStateCreateInfo {
        p_next: Ptr::to(&divisors).cast(),
        vertex_binding_description_count: 2,
        p_vertex_binding_descriptions: Ptr::to_slice(&bindings),
        vertex_attribute_description_count: 2,
        p_vertex_attribute_descriptions: Ptr::to_slice(&attributes),
        ..PipelineVertexInputStateCreateInfo::zeroed()
    };
    let raster = PipelineRasterizationStateCreateInfo {
        rasterizer_discard_enable: Bool32(1),
        ..PipelineRasterizationStateCreateInfo::zeroed()
    };
    let assembly = PipelineInputAssemblyStateCreateInfo::zeroed();
    let info = GraphicsPipelineCreateInfo {
        stage_count: 1,
        p_stages: Ptr::to_slice(&stages),
        p_vertex_input_state: Ptr::to(&vertex),
        p_input_assembly_state: Ptr::to(&assembly),
        p_rasterization_state: Ptr::to(&raster),
        render_pass: render_pass(3),
        ..GraphicsPipelineCreateInfo::zeroed()
    };
    app.make_graphics_pipeline(1, &info);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app
}

fn make_buffer(app: &mut App<Collector>, serial: u64, usage: BufferUsageFlags, place: u64) {
    let info = BufferCreateInfo { size: 4096, usage, ..BufferCreateInfo::zeroed() };
    create!(app, CreateBuffer, CreateBufferParams, info, p_buffer: buffer(serial));
    let (buffer, memory) = (buffer(serial), memory(MEMORY));
    call!(app, BindBufferMemory, BindBufferMemoryParams { buffer: buffer, memory: memory, memory_offset: place });
}

fn host_writes(app: &mut App<Collector>, serial: u64, bytes: &[u8]) {
    let mut writing = HostWriteBuilder::default();
    writing.begin(SyntheticObjects::id_of(HandleType::DeviceMemory, memory(MEMORY).0), PLACES[serial as usize]);
    writing.add_run(0, bytes);
    let words = writing.finish(1, &[]).to_vec();
    app.tracker.apply_host_write(0, HostWrite::parse(&words).expect("our own"));
}

fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|it| it.to_le_bytes()).collect()
}

fn shorts(all: &[u16]) -> Vec<u8> {
    all.iter().flat_map(|it| it.to_le_bytes()).collect()
}

fn bind(app: &mut App<Collector>) {
    app.begin(2);
    bind_all(app);
}

fn bind_all(app: &mut App<Collector>) {
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    let buffers = [buffer(VERTICES), buffer(INSTANCES)];
    app.call(
        Api::CmdBindVertexBuffers,
        &CmdBindVertexBuffersParams {
            command_buffer: command_buffer(2),
            first_binding: 0,
            binding_count: 2,
            p_buffers: Ptr::to_slice(&buffers),
            p_offsets: Ptr::to_slice(&[0, 0]),
        },
    );
    app.call(
        Api::CmdBindIndexBuffer,
        &CmdBindIndexBufferParams {
            command_buffer: command_buffer(2),
            buffer: buffer(INDICES),
            offset: 0,
            index_type: IndexType::UINT16,
        },
    );
}

fn draw_indexed(app: &mut App<Collector>, draw_count: u32, stride: u32) {
    app.call(
        Api::CmdDrawIndexedIndirect,
        &CmdDrawIndexedIndirectParams {
            command_buffer: command_buffer(2),
            buffer: buffer(PARAMETERS),
            offset: 0,
            draw_count,
            stride,
        },
    );
}

fn submit(app: &mut App<Collector>) {
    app.end(2);
    app.submit(0, 2, Fence(0));
}

/// The bytes of a buffer that the last command of the last command buffer accesses in this way.
fn read(app: &App<Collector>, access: Bits, serial: u64) -> Bytes {
    let last = app.program().command_buffers.len() - 1;
    let command = app.program().command_buffers[last].commands.len() - 1;
    let resource = resource_of(serial);
    let of = |item: &Access| match &item.region {
        Region::Buffer(bytes) => (bytes.clone(), item.certainty),
        Region::Image(_) => panic!("there is no image"),
    };
    let all = accesses(app.program(), last, command);
    all.iter().filter(|it| it.access == access.0 && it.resource.0 == resource).map(of).collect()
}

/// Resources are numbered in the order in which memory is bound.
fn resource_of(serial: u64) -> u32 {
    let order = [VERTICES, INSTANCES, INDICES, PARAMETERS, COUNT];
    order.iter().position(|it| *it == serial).expect("one of them") as u32
}

const ALL: (std::ops::Range<u64>, Certainty) = (0..4096, Certainty::Anywhere);
/// The same of a draw that may draw nothing.
const MAYBE_ALL: (std::ops::Range<u64>, Certainty) = (0..4096, Certainty::MaybeAnywhere);

#[test]
fn an_indexed_draw_reads_what_the_parameters_of_the_host_say() {
    // The device may write the indices, so only the number of reads is known.
    let mut app = app(BufferUsageFlags(INDEX.0 | FILLED.0), INDIRECT);
    host_writes(&mut app, PARAMETERS, &words(&[3, 5, 2, 10, 1]));
    bind(&mut app);
    draw_indexed(&mut app, 1, 0);
    assert_eq!(read(&app, Bits::INDEX_READ, INDICES), [], "they may still be written");
    assert_eq!(read(&app, Bits::INDIRECT_COMMAND_READ, PARAMETERS), [(0..20, Certainty::Certain)]);
    submit(&mut app);
    assert_eq!(read(&app, Bits::INDEX_READ, INDICES), [(4..10, Certainty::Certain)]);
    assert_eq!(read(&app, Bits::VERTEX_ATTRIBUTE_READ, VERTICES), [ALL]);
    // Instances 1 to 5 with a divisor of two use elements 1 to 3.
    assert_eq!(read(&app, Bits::VERTEX_ATTRIBUTE_READ, INSTANCES), [(16..56, Certainty::Certain)]);
    // Other parameters for another submission; then a draw of nothing.
    host_writes(&mut app, PARAMETERS, &words(&[1, 1, 0]));
    app.submit(0, 2, Fence(0));
    assert_eq!(read(&app, Bits::INDEX_READ, INDICES), [(0..2, Certainty::Certain)]);
    host_writes(&mut app, PARAMETERS, &words(&[3, 0]));
    app.submit(0, 2, Fence(0));
    assert_eq!(read(&app, Bits::INDEX_READ, INDICES), []);
    assert_eq!(read(&app, Bits::VERTEX_ATTRIBUTE_READ, VERTICES), []);
    assert_eq!(read(&app, Bits::INDIRECT_COMMAND_READ, PARAMETERS), [(0..20, Certainty::Certain)]);
}

#[test]
fn vertices_are_known_where_the_host_wrote_the_indices_too() {
    let mut app = app(INDEX, INDIRECT);
    host_writes(&mut app, INDICES, &shorts(&[9, 0, 1, 2, 5, 7]));
    // Two draws, the second with a vertex offset of ten, with a gap between the structures.
    host_writes(&mut app, PARAMETERS, &words(&[2, 1, 1, 0, 0, 77, 1, 1, 4, 10, 4, 77]));
    bind(&mut app);
    draw_indexed(&mut app, 2, 24);
    submit(&mut app);
    let certain =
        |all: &[std::ops::Range<u64>]| -> Bytes { all.iter().map(|it| (it.clone(), Certainty::Certain)).collect() };
    assert_eq!(read(&app, Bits::INDEX_READ, INDICES), certain(&[2..6, 8..10]));
    assert_eq!(read(&app, Bits::VERTEX_ATTRIBUTE_READ, VERTICES), certain(&[0..24, 240..248]));
    assert_eq!(read(&app, Bits::VERTEX_ATTRIBUTE_READ, INSTANCES), certain(&[0..8, 64..72]));
    assert_eq!(read(&app, Bits::INDIRECT_COMMAND_READ, PARAMETERS), certain(&[0..20, 24..44]));
}

#[test]
fn parameters_that_nobody_read_leave_everything_open() {
    for usage in [FILLED, BufferUsageFlags::STORAGE_BUFFER] {
        let mut app = app(INDEX, BufferUsageFlags(INDIRECT.0 | usage.0));
        host_writes(&mut app, PARAMETERS, &words(&[3, 1, 0, 0, 0]));
        bind(&mut app);
        draw_indexed(&mut app, 1, 0);
        assert_eq!(read(&app, Bits::INDEX_READ, INDICES), [MAYBE_ALL], "at once: the device may write them");
        submit(&mut app);
        assert_eq!(read(&app, Bits::INDEX_READ, INDICES), [MAYBE_ALL]);
        assert_eq!(read(&app, Bits::VERTEX_ATTRIBUTE_READ, INSTANCES), [MAYBE_ALL]);
    }
    // Host writes were expected, but none was reported.
    let mut silent = app(INDEX, INDIRECT);
    bind(&mut silent);
    draw_indexed(&mut silent, 1, 0);
    submit(&mut silent);
    assert_eq!(read(&silent, Bits::INDEX_READ, INDICES), [MAYBE_ALL]);
}

#[test]
fn a_number_of_draws_in_memory_limits_them() {
    let draw = |app: &mut App<Collector>| {
        host_writes(app, PARAMETERS, &words(&[3, 1, 0, 0, 5, 1, 100, 0]));
        bind(app);
        app.call(
            Api::CmdDrawIndirectCount,
            &CmdDrawIndirectCountParams {
                command_buffer: command_buffer(2),
                buffer: buffer(PARAMETERS),
                offset: 0,
                count_buffer: buffer(COUNT),
                count_buffer_offset: 8,
                max_draw_count: 2,
                stride: 16,
            },
        );
    };
    let mut known = app(INDEX, INDIRECT);
    host_writes(&mut known, COUNT, &words(&[7, 7, 1]));
    draw(&mut known);
    submit(&mut known);
    assert_eq!(read(&known, Bits::VERTEX_ATTRIBUTE_READ, VERTICES), [(0..40, Certainty::Certain)]);
    // More draws than the maximum.
    host_writes(&mut known, COUNT, &words(&[0, 0, 9]));
    known.submit(0, 2, Fence(0));
    let both = [(0..40, Certainty::Certain), (1600..1672, Certainty::Certain)];
    assert_eq!(read(&known, Bits::VERTEX_ATTRIBUTE_READ, VERTICES), both);
    // The count decides which structures are read. The count itself is read completely.
    assert_eq!(read(&known, Bits::INDIRECT_COMMAND_READ, PARAMETERS), [(0..32, Certainty::Anywhere)]);
    assert_eq!(read(&known, Bits::INDIRECT_COMMAND_READ, COUNT), [(8..12, Certainty::Certain)]);
    // The device may write the count.
    let mut open = app(INDEX, INDIRECT);
    let gone = buffer(COUNT);
    call!(open, DestroyBuffer, DestroyBufferParams { buffer: gone, p_allocator: Ptr::NULL });
    make_buffer(&mut open, COUNT, BufferUsageFlags(INDIRECT.0 | FILLED.0), PLACES[4]);
    draw(&mut open);
    submit(&mut open);
    let either = [(0..40, Certainty::MaybeAnywhere), (1600..1672, Certainty::MaybeAnywhere)];
    assert_eq!(read(&open, Bits::VERTEX_ATTRIBUTE_READ, VERTICES), either);
}

#[test]
fn parameters_of_an_update_are_known_at_once() {
    let mut app = app(INDEX, BufferUsageFlags(INDIRECT.0 | FILLED.0));
    let parameters = words(&[3, 1, 4, 0]);
    let update = |app: &mut App<Collector>| {
        app.begin(2);
        let (command_buffer, dst_buffer) = (command_buffer(2), buffer(PARAMETERS));
        let data_size = parameters.len() as u64;
        let p_data = Ptr::to_slice(&parameters).cast();
        app.call(
            Api::CmdUpdateBuffer,
            &CmdUpdateBufferParams { command_buffer, dst_buffer, dst_offset: 16, data_size, p_data },
        );
        bind_all(app);
    };
    let draw = |app: &mut App<Collector>| {
        let (command_buffer, buffer) = (command_buffer(2), buffer(PARAMETERS));
        app.call(
            Api::CmdDrawIndirect,
            &CmdDrawIndirectParams { command_buffer, buffer, offset: 16, draw_count: 1, stride: 0 },
        );
    };
    update(&mut app);
    draw(&mut app);
    assert_eq!(read(&app, Bits::VERTEX_ATTRIBUTE_READ, VERTICES), [(64..104, Certainty::Certain)]);
    update(&mut app);
    app.copy_buffer(2, VERTICES, PARAMETERS, 64);
    draw(&mut app);
    assert_eq!(read(&app, Bits::VERTEX_ATTRIBUTE_READ, VERTICES), [MAYBE_ALL], "something else may stand there");
}

#[test]
fn several_draws_in_one_have_their_own_vertices() {
    let draw = |app: &mut App<Collector>, offset: Option<i32>| {
        bind(app);
        let infos = [
            MultiDrawIndexedInfoEXT { first_index: 0, index_count: 2, vertex_offset: 0 },
            MultiDrawIndexedInfoEXT { first_index: 4, index_count: 1, vertex_offset: 20 },
        ];
        app.call(
            Api::CmdDrawMultiIndexedEXT,
            &CmdDrawMultiIndexedEXTParams {
                command_buffer: command_buffer(2),
                draw_count: 2,
                p_index_info: Ptr::to_slice(&infos),
                instance_count: 3,
                first_instance: 1,
                stride: size_of::<MultiDrawIndexedInfoEXT>() as u32,
                p_vertex_offset: offset.as_ref().map_or(Ptr::NULL, Ptr::to),
            },
        );
    };
    let certain =
        |all: &[std::ops::Range<u64>]| -> Bytes { all.iter().map(|it| (it.clone(), Certainty::Certain)).collect() };
    for (offset, vertices) in [(None, [0..24, 400..408]), (Some(10), [160..184, 240..248])] {
        let mut app = app(INDEX, INDIRECT);
        host_writes(&mut app, INDICES, &shorts(&[0, 1, 9, 9, 5]));
        draw(&mut app, offset);
        assert_eq!(read(&app, Bits::INDEX_READ, INDICES), certain(&[0..4, 8..10]), "the command says so");
        submit(&mut app);
        assert_eq!(read(&app, Bits::INDEX_READ, INDICES), certain(&[0..4, 8..10]));
        assert_eq!(read(&app, Bits::VERTEX_ATTRIBUTE_READ, VERTICES), certain(&vertices));
        assert_eq!(read(&app, Bits::VERTEX_ATTRIBUTE_READ, INSTANCES), vec![(16..40, Certainty::Certain)]);
    }
    let mut unknown = app(BufferUsageFlags(INDEX.0 | FILLED.0), INDIRECT);
    draw(&mut unknown, None);
    submit(&mut unknown);
    assert_eq!(read(&unknown, Bits::INDEX_READ, INDICES), certain(&[0..4, 8..10]));
    assert_eq!(read(&unknown, Bits::VERTEX_ATTRIBUTE_READ, VERTICES), [ALL]);
}

#[test]
fn conditions_make_nothing_certain() {
    let mut app = app(INDEX, INDIRECT);
    host_writes(&mut app, PARAMETERS, &words(&[3, 1, 2, 10, 1]));
    bind(&mut app);
    let begin =
        ConditionalRenderingBeginInfoEXT { buffer: buffer(COUNT), ..ConditionalRenderingBeginInfoEXT::zeroed() };
    app.call(
        Api::CmdBeginConditionalRenderingEXT,
        &CmdBeginConditionalRenderingEXTParams {
            command_buffer: command_buffer(2),
            p_conditional_rendering_begin: Ptr::to(&begin),
        },
    );
    draw_indexed(&mut app, 1, 0);
    submit(&mut app);
    assert_eq!(read(&app, Bits::INDEX_READ, INDICES), [(4..10, Certainty::Maybe)]);
}

/// Values of `BuiltIn`.
const GLOBAL_INVOCATION_ID: u32 = 28;

/// A pipeline with groups of eight invocations. Each reads a word of one buffer, and the same word of another if the
/// shader decides so. A third buffer is read completely.
fn computing(parameters: BufferUsageFlags) -> App<Collector> {
    let each = InvocationBytes {
        start: 0,
        terms: vec![OffsetTerm {
            quantity: Quantity::BuiltIn { built_in: GLOBAL_INVOCATION_ID, component: 0 },
            factor: 4,
        }],
        size: 4,
    };
    let use_of = |binding, certainty, per_invocation| DescriptorUse {
        reads: true,
        bytes: Some(0..1 << 20),
        per_invocation,
        certainty,
        ..DescriptorUse::new(0, binding)
    };
    let shader = ShaderInterface {
        descriptors: vec![
            use_of(0, Certainty::Somewhere, Some(each.clone())),
            use_of(1, Certainty::Maybe, Some(each)),
            use_of(2, Certainty::Somewhere, None),
        ],
        workgroup_size: Some([8, 1, 1]),
        ..ShaderInterface::default()
    };
    let tracker = Tracker::with_reflection(Collector::default(), Box::new(TestShaders(vec![shader])));
    let mut app = App::with_tracker(tracker);
    app.tracker.expect_all_host_writes();
    for serial in [VERTICES, INSTANCES, INDICES] {
        make_buffer(&mut app, serial, BufferUsageFlags::STORAGE_BUFFER, PLACES[serial as usize]);
    }
    make_buffer(&mut app, PARAMETERS, parameters, PLACES[3]);
    make_set(&mut app, &[(DescriptorType::STORAGE_BUFFER, 1, NO_FLAGS); 3]);
    for (binding, serial) in [(0, VERTICES), (1, INSTANCES), (2, INDICES)] {
        let info = buffer_info(serial, 16, WHOLE_SIZE);
        write_buffers(&mut app, binding, DescriptorType::STORAGE_BUFFER, &[info]);
    }
    app.make_shader(0, 0);
    app.make_compute_pipeline(1, 0);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app
}

fn dispatch_indirect(app: &mut App<Collector>) {
    bind_set(app, 1, &[]);
    let (command_buffer, buffer) = (command_buffer(2), buffer(PARAMETERS));
    app.call(Api::CmdDispatchIndirect, &CmdDispatchIndirectParams { command_buffer, buffer, offset: 4 });
}

fn update_parameters(app: &mut App<Collector>, groups: &[u32]) {
    let parameters = words(groups);
    let (command_buffer, dst_buffer) = (command_buffer(2), buffer(PARAMETERS));
    let (data_size, p_data) = (parameters.len() as u64, Ptr::to_slice(&parameters).cast());
    app.call(
        Api::CmdUpdateBuffer,
        &CmdUpdateBufferParams { command_buffer, dst_buffer, dst_offset: 4, data_size, p_data },
    );
}

fn shader_reads(app: &App<Collector>) -> [Bytes; 3] {
    [VERTICES, INSTANCES, INDICES].map(|it| read(app, Bits::SHADER_STORAGE_READ, it))
}

#[test]
fn a_dispatch_reads_as_much_as_the_parameters_of_the_host_launch() {
    let whole = |certainty| vec![(16..4096, certainty)];
    let mut app = computing(INDIRECT);
    host_writes(&mut app, PARAMETERS, &words(&[99, 2, 1, 1]));
    app.begin(2);
    dispatch_indirect(&mut app);
    let possible = [vec![], vec![], whole(Certainty::Unreported)];
    assert_eq!(shader_reads(&app), possible, "the submission tells whether anything is launched");
    submit(&mut app);
    let two = |certainty| vec![(16..16 + 64, certainty)];
    let of_two = [two(Certainty::Certain), two(Certainty::Maybe), whole(Certainty::Somewhere)];
    assert_eq!(shader_reads(&app), of_two);
    host_writes(&mut app, PARAMETERS, &words(&[99, 0, 1, 1]));
    app.submit(0, 2, Fence(0));
    assert_eq!(shader_reads(&app), possible, "nothing is launched");
}

#[test]
fn a_dispatch_of_no_groups_that_the_command_buffer_wrote_accesses_nothing() {
    for (groups, is_made) in [([0, 1, 1], false), ([3, 0, 1], false), ([3, 1, 0], false), ([3, 1, 1], true)] {
        let mut app = computing(BufferUsageFlags(INDIRECT.0 | FILLED.0));
        app.begin(2);
        update_parameters(&mut app, &groups);
        dispatch_indirect(&mut app);
        let made = |app: &App<Collector>| shader_reads(app).concat().iter().any(|it| it.1 != Certainty::Unreported);
        assert_eq!(made(&app), is_made, "{groups:?}");
        assert_eq!(read(&app, Bits::INDIRECT_COMMAND_READ, PARAMETERS), [(4..16, Certainty::Certain)]);
        submit(&mut app);
        assert_eq!(made(&app), is_made, "{groups:?}");
    }
}

#[test]
fn a_dispatch_of_unknown_size_reads_anything() {
    let whole = |certainty| vec![(16..4096, certainty)];
    let mut app = computing(BufferUsageFlags(INDIRECT.0 | FILLED.0));
    app.begin(2);
    dispatch_indirect(&mut app);
    submit(&mut app);
    let unknown = [whole(Certainty::MaybeAnywhere), whole(Certainty::MaybeAnywhere), whole(Certainty::Maybe)];
    assert_eq!(shader_reads(&app), unknown, "there may be no groups");
    assert_eq!(read(&app, Bits::INDIRECT_COMMAND_READ, PARAMETERS), [(4..16, Certainty::Certain)]);
    // The same command buffer writes the parameters.
    app.begin(2);
    update_parameters(&mut app, &[3, 1, 1]);
    dispatch_indirect(&mut app);
    assert_eq!(shader_reads(&app)[0], [(16..16 + 96, Certainty::Certain)]);
}

#[test]
fn transform_feedback_writes_somewhere_in_its_buffers() {
    let mut app = app(INDEX, INDIRECT);
    bind(&mut app);
    let command_buffer = command_buffer(2);
    app.call(
        Api::CmdBindTransformFeedbackBuffersEXT,
        &CmdBindTransformFeedbackBuffersEXTParams {
            command_buffer,
            first_binding: 0,
            binding_count: 1,
            p_buffers: Ptr::to(&buffer(COUNT)),
            p_offsets: Ptr::to(&256),
            p_sizes: Ptr::to(&512),
        },
    );
    let begin = CmdBeginTransformFeedbackEXTParams { command_buffer, ..CmdBeginTransformFeedbackEXTParams::zeroed() };
    app.call(Api::CmdBeginTransformFeedbackEXT, &begin);
    app.draw(2, 3, 0);
    let written = read(&app, Bits::TRANSFORM_FEEDBACK_WRITE_EXT, COUNT);
    assert_eq!(written, [(256..768, Certainty::Anywhere)], "as much as the shaders emit");
}
