//! Indexed draws read the vertices that the indices name at submission, as written by the host.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, Command as Api, *};
use lavascope_record::{HostWrite, HostWriteBuilder};
use lavascope_sim::SyntheticObjects;
use lavascope_state::{Collector, ShaderInterface, Tracker};
use lavascope_sync_ir::{Access, Certainty, Region};

const VERTICES: u64 = 1;
const INDICES: u64 = 2;
/// The offset of the indices in the memory.
const PLACE: u64 = 1 << 16;
const ALL: (std::ops::Range<u64>, Certainty) = (0..4096, Certainty::Anywhere);

/// A pipeline that reads eight of the sixteen bytes of each vertex, and writes nothing.
fn app(usage: BufferUsageFlags) -> App<Collector> {
    let vertex = ShaderInterface { inputs: 1, ..ShaderInterface::default() };
    let tracker = Tracker::with_reflection(Collector::default(), Box::new(TestShaders(vec![vertex])));
    let mut app = App::with_tracker(tracker);
    app.make_buffer(VERTICES, 4096, 0);
    make_buffer(&mut app, INDICES, usage);
    app.make_shader(0, 0);
    let stages = [stage(ShaderStageFlagBits::VERTEX, 0)];
    let binding = VertexInputBindingDescription { binding: 0, stride: 16, input_rate: VertexInputRate::VERTEX };
    let attribute = VertexInputAttributeDescription { format: Format::R32G32_SFLOAT, ..zeroed_attribute() };
    let vertex = PipelineVertexInputStateCreateInfo {
        vertex_binding_description_count: 1,
        p_vertex_binding_descriptions: Ptr::to(&binding),
        vertex_attribute_description_count: 1,
        p_vertex_attribute_descriptions: Ptr::to(&attribute),
        ..PipelineVertexInputStateCreateInfo::zeroed()
    };
    let raster = PipelineRasterizationStateCreateInfo {
        rasterizer_discard_enable: Bool32(1),
        ..PipelineRasterizationStateCreateInfo::zeroed()
    };
    let assembly = PipelineInputAssemblyStateCreateInfo::zeroed();
    app.make_graphics_pipeline(
        1,
        &GraphicsPipelineCreateInfo {
            stage_count: 1,
            p_stages: Ptr::to_slice(&stages),
            p_vertex_input_state: Ptr::to(&vertex),
            p_input_assembly_state: Ptr::to(&assembly),
            p_rasterization_state: Ptr::to(&raster),
            render_pass: render_pass(3),
            ..GraphicsPipelineCreateInfo::zeroed()
        },
    );
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app
}

fn zeroed_attribute() -> VertexInputAttributeDescription {
    VertexInputAttributeDescription { location: 0, binding: 0, format: Format::UNDEFINED, offset: 0 }
}

fn make_buffer(app: &mut App<Collector>, serial: u64, usage: BufferUsageFlags) {
    let info = BufferCreateInfo { size: 256, usage, ..BufferCreateInfo::zeroed() };
    create!(app, CreateBuffer, CreateBufferParams, info, p_buffer: buffer(serial));
    let (buffer, memory) = (buffer(serial), memory(MEMORY));
    call!(app, BindBufferMemory, BindBufferMemoryParams { buffer: buffer, memory: memory, memory_offset: PLACE });
}

fn host_writes(app: &mut App<Collector>, indices: &[u16]) {
    let mut writing = HostWriteBuilder::default();
    writing.begin(SyntheticObjects::id_of(HandleType::DeviceMemory, memory(MEMORY).0), PLACE);
    let bytes: Vec<u8> = indices.iter().flat_map(|it| it.to_le_bytes()).collect();
    writing.add_run(0, &bytes);
    let words = writing.finish(1, &[]).to_vec();
    app.tracker.apply_host_write(0, HostWrite::parse(&words).expect("our own"));
}

fn record(app: &mut App<Collector>) {
    record_with(app, INDICES);
}

fn record_with(app: &mut App<Collector>, indices: u64) {
    app.begin(2);
    draw_with(app, indices);
    app.end(2);
}

/// Draws four indices, starting at the second.
fn draw_with(app: &mut App<Collector>, indices: u64) {
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    app.call(
        Api::CmdBindVertexBuffers,
        &CmdBindVertexBuffersParams {
            command_buffer: command_buffer(2),
            first_binding: 0,
            binding_count: 1,
            p_buffers: Ptr::to(&buffer(VERTICES)),
            p_offsets: Ptr::to(&0),
        },
    );
    app.call(
        Api::CmdBindIndexBuffer,
        &CmdBindIndexBufferParams {
            command_buffer: command_buffer(2),
            buffer: buffer(indices),
            offset: 0,
            index_type: IndexType::UINT16,
        },
    );
    app.call(
        Api::CmdDrawIndexed,
        &CmdDrawIndexedParams {
            command_buffer: command_buffer(2),
            index_count: 4,
            instance_count: 1,
            first_index: 1,
            vertex_offset: 10,
            first_instance: 0,
        },
    );
}

/// The vertex bytes that the last command buffer reads.
fn read(app: &App<Collector>) -> Vec<(std::ops::Range<u64>, Certainty)> {
    read_by(app, app.program().command_buffers.len() - 1, 0)
}

fn read_by(app: &App<Collector>, buffer: usize, command: usize) -> Vec<(std::ops::Range<u64>, Certainty)> {
    let of = |item: &Access| match &item.region {
        Region::Buffer(bytes) => (bytes.clone(), item.certainty),
        Region::Image(_) => panic!("there is no image"),
    };
    let vertices = |it: &&Access| it.access == Bits::VERTEX_ATTRIBUTE_READ.0;
    accesses(app.program(), buffer, command).iter().filter(vertices).map(of).collect()
}

#[test]
fn vertices_are_those_of_the_indices_that_are_there_when_a_draw_is_submitted() {
    let mut app = app(BufferUsageFlags::INDEX_BUFFER);
    app.tracker.expect_all_host_writes();
    host_writes(&mut app, &[9, 1, 0, 1, 5, 7]);
    record(&mut app);
    assert_eq!(read(&app), [], "they may still be written");
    app.submit(0, 2, Fence(0));
    assert_eq!(read(&app), [(160..184, Certainty::Certain), (240..248, Certainty::Certain)]);
    // Submitted again, with other indices.
    host_writes(&mut app, &[9, 3, 3, 3, 0xffff, 7]);
    app.submit(0, 2, Fence(0));
    assert_eq!(read(&app), [(208..216, Certainty::Certain)]);
    assert_eq!(app.tracker.untracked().count(), 0);
}

#[test]
fn what_is_not_known_of_indices_is_not_made_up() {
    let index = BufferUsageFlags::INDEX_BUFFER;
    // No host writes are reported.
    let mut silent = app(index);
    record(&mut silent);
    assert_eq!(read(&silent), [ALL]);
    // No host write has been reported yet.
    let mut unreported = app(index);
    unreported.tracker.expect_all_host_writes();
    record(&mut unreported);
    unreported.submit(0, 2, Fence(0));
    assert_eq!(read(&unreported), [ALL]);
    // Contents of a memory without index buffers are not stored.
    let mut late = app(BufferUsageFlags::VERTEX_BUFFER);
    late.tracker.expect_all_host_writes();
    host_writes(&mut late, &[0; 6]);
    let gone = buffer(INDICES);
    call!(late, DestroyBuffer, DestroyBufferParams { buffer: gone, p_allocator: Ptr::NULL });
    make_buffer(&mut late, 4, index);
    host_writes(&mut late, &[1; 6]);
    record_with(&mut late, 4);
    assert_eq!(read(&late), [ALL]);
    // The device may have written the indices, by this name or through an alias.
    let mut device = app(BufferUsageFlags(index.0 | BufferUsageFlags::TRANSFER_DST.0));
    let mut alias = app(index);
    make_buffer(&mut alias, 3, BufferUsageFlags::STORAGE_BUFFER);
    for app in [&mut device, &mut alias] {
        app.tracker.expect_all_host_writes();
        host_writes(app, &[0; 6]);
        record(app);
        assert_eq!(read(app), [ALL]);
    }
}

/// If writes to only some memories are reported, a memory without a report has unknown contents.
#[test]
fn indices_of_memories_that_are_reported_are_known() {
    let index = BufferUsageFlags::INDEX_BUFFER;
    let mut app = app(index);
    app.tracker.expect_some_host_writes();
    record(&mut app);
    assert_eq!(read(&app), [ALL], "at once, since nothing is expected");
    host_writes(&mut app, &[9, 1, 0, 1, 5, 7]);
    app.submit(0, 2, Fence(0));
    assert_eq!(read(&app), [ALL]);
    record(&mut app);
    app.submit(0, 2, Fence(0));
    let known = [(160..184, Certainty::Certain), (240..248, Certainty::Certain)];
    assert_eq!(read(&app), known);
    // Reported contents are no longer used after `ignore_host_writes`.
    app.tracker.ignore_host_writes();
    app.submit(0, 2, Fence(0));
    assert_eq!(read(&app), [ALL]);
}

/// The host writes before a submission, unless the device waits for it with a dependency from the host stage.
#[test]
fn indices_that_the_host_may_write_later_are_not_known() {
    use PipelineStageFlags as Stage;
    let after = |wait: bool, src: Stage| {
        let mut app = app(BufferUsageFlags::INDEX_BUFFER);
        app.tracker.expect_all_host_writes();
        host_writes(&mut app, &[9, 1, 0, 1, 5, 7]);
        app.begin(2);
        let (command_buffer, dst) = (command_buffer(2), Stage::VERTEX_INPUT);
        if wait {
            let params = CmdWaitEventsParams {
                command_buffer,
                src_stage_mask: src,
                dst_stage_mask: dst,
                ..CmdWaitEventsParams::zeroed()
            };
            app.call(Api::CmdWaitEvents, &params);
        } else {
            let barrier = MemoryBarrier { src_access_mask: AccessFlags::HOST_WRITE, ..MemoryBarrier::zeroed() };
            let params = CmdPipelineBarrierParams {
                command_buffer,
                src_stage_mask: src,
                dst_stage_mask: dst,
                memory_barrier_count: 1,
                p_memory_barriers: Ptr::to(&barrier),
                ..CmdPipelineBarrierParams::zeroed()
            };
            app.call(Api::CmdPipelineBarrier, &params);
        }
        draw_with(&mut app, INDICES);
        app.end(2);
        app
    };
    let last = |app: &App<Collector>| read_by(app, app.program().command_buffers.len() - 1, 1);
    let known = [(160..184, Certainty::Certain), (240..248, Certainty::Certain)];
    for (wait, src, expected) in [
        (true, Stage::HOST, vec![ALL]),
        (true, Stage::TRANSFER, known.to_vec()),
        (false, Stage::HOST, known.to_vec()),
        (false, Stage::ALL_COMMANDS, known.to_vec()),
    ] {
        let mut app = after(wait, src);
        app.submit(0, 2, Fence(0));
        assert_eq!(last(&app), expected, "{wait} {src:?}");
    }
}

/// Records the given commands and a draw into command buffer 2. Returns the bytes that the draw reads.
fn drawn(usage: BufferUsageFlags, between: impl Fn(&mut App<Collector>)) -> Vec<(std::ops::Range<u64>, Certainty)> {
    let mut app = app(usage);
    app.make_buffer(5, 256, 1 << 20);
    app.begin(2);
    let indices: Vec<u8> = [9_u16, 1, 0, 1, 5, 7].iter().flat_map(|it| it.to_le_bytes()).collect();
    app.call(
        Api::CmdUpdateBuffer,
        &CmdUpdateBufferParams {
            command_buffer: command_buffer(2),
            dst_buffer: buffer(INDICES),
            dst_offset: 0,
            data_size: indices.len() as u64,
            p_data: Ptr::to_slice(&indices).cast(),
        },
    );
    between(&mut app);
    draw_with(&mut app, INDICES);
    let last = app.program().command_buffers.len() - 1;
    read_by(&app, last, app.program().command_buffers[last].commands.len() - 1)
}

#[test]
fn indices_that_stand_in_an_update_are_known_until_something_else_is_written() {
    let usage = BufferUsageFlags(BufferUsageFlags::INDEX_BUFFER.0 | BufferUsageFlags::TRANSFER_DST.0);
    let known = [(160..184, Certainty::Certain), (240..248, Certainty::Certain)];
    assert_eq!(drawn(usage, |_| ()), known);
    assert_eq!(drawn(usage, |app| app.copy_buffer(2, INDICES, 5, 64)), known, "a read changes nothing");
    assert_eq!(drawn(usage, |app| app.copy_buffer(2, 5, INDICES, 64)), [ALL], "other bytes");
    assert_eq!(drawn(usage, |app| make_buffer(app, 3, BufferUsageFlags::STORAGE_BUFFER)), [ALL], "another name");
    let begun_anew = |app: &mut App<Collector>| app.begin(2);
    assert_eq!(drawn(usage, begun_anew), [ALL], "what another recording did");
}
