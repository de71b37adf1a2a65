//! The accesses of real shaders that depend on push constants and on the launch size.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage, *};
use lavascope_engine::check;
use lavascope_state::{Collector, SpirvReflection, Tracker};
use lavascope_sync_ir::Certainty::{Certain, Maybe, OneOfArray, Somewhere};
use lavascope_sync_ir::{Certainty, HazardKind, Region};

const READ: u64 = Bits::SHADER_STORAGE_READ.0;
const WRITE: u64 = Bits::SHADER_STORAGE_WRITE.0;

/// An application with a compute pipeline and four buffers of 4096 bytes.
fn app(shader: &str) -> App<Collector> {
    let mut app =
        App::with_tracker(Tracker::with_reflection(Collector::default(), Box::new(SpirvReflection::default())));
    for serial in 1..5 {
        app.make_buffer(serial, 4096, serial * 4096);
    }
    app.make_module(1, &words_of(shader));
    app.make_compute_pipeline(1, 1);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app
}

fn push(app: &mut App<Collector>, offset: u32, bytes: &[u8]) {
    record!(
        app,
        CmdPushConstants,
        CmdPushConstantsParams {
            layout: pipeline_layout(1),
            stage_flags: ShaderStageFlags::COMPUTE,
            offset: offset,
            size: bytes.len() as u32,
            p_values: Ptr::to_slice(bytes),
        }
    );
}

/// The accesses of a recorded command: resource, bytes and certainty.
fn found(app: &App<Collector>, index: usize, access: u64) -> Vec<(u32, std::ops::Range<u64>, Certainty)> {
    let all = accesses(app.program(), 0, index).iter().filter(|it| it.access == access);
    all.map(|item| match &item.region {
        Region::Buffer(bytes) => (item.resource.0, bytes.clone(), item.certainty),
        Region::Image(_) => (item.resource.0, 0..0, item.certainty),
    })
    .collect()
}

fn missing(app: &App<Collector>) -> Vec<&'static str> {
    app.tracker.untracked().map(|it| it.0.reason).collect()
}

#[test]
fn the_launch_size_and_what_is_pushed_decide_which_bytes_are_written() {
    let mut app = app("invocations.comp.spv");
    make_set(&mut app, &[(DescriptorType::STORAGE_BUFFER, 1, NO_FLAGS)]);
    write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &[buffer_info(1, 1024, 2048)]);
    app.begin(2);
    bind_set(&mut app, 1, &[]);
    push(&mut app, 0, &10_u32.to_le_bytes());
    dispatch(&mut app, 2);
    let wanted = [
        (0, 1028..1540, Certain),
        (0, 1072..2092, Somewhere),
        (0, 1028..1540, Certain),
        // The first invocation is out of bounds; the second accesses the first byte.
        (0, 1028..1536, Certain),
        (0, 1028..3072, Somewhere),
        (0, 1028..1048, Somewhere),
        (0, 1028..3072, Somewhere),
    ];
    assert_eq!(found(&app, 0, WRITE), wanted);
    assert_eq!(found(&app, 0, READ), [(0, 1024..1028, Certain)]);
    assert_eq!(missing(&app), [""; 0]);
}

#[test]
fn halves_of_a_buffer_are_distinguished_by_the_offset_that_is_pushed() {
    for (second, is_hazard) in [(1000_u32, false), (64, true)] {
        let mut app = app("half.comp.spv");
        make_set(&mut app, &[(DescriptorType::STORAGE_BUFFER, 1, NO_FLAGS)]);
        write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &[buffer_info(1, 0, WHOLE_SIZE)]);
        app.begin(2);
        bind_set(&mut app, 1, &[]);
        for base in [0, second] {
            push(&mut app, 0, &base.to_le_bytes());
            dispatch(&mut app, 2);
        }
        app.end(2);
        app.submit(0, 2, Fence(0));
        let kinds: Vec<HazardKind> = check(app.program()).iter().map(|it| it.kind).collect();
        assert_eq!(kinds, if is_hazard { vec![HazardKind::WriteAfterWrite] } else { vec![] });
        assert_eq!(found(&app, 0, WRITE), [(0, 0..512, Certain)]);
    }
}

#[test]
fn addresses_that_are_pushed_are_followed_and_others_are_counted() {
    let mut app = app("addresses.comp.spv");
    app.set_buffer_address(1, 0x10000);
    app.set_buffer_address(2, 0x20000);
    app.begin(2);
    app.bind_pipeline(2, PipelineBindPoint::COMPUTE, 1);
    push(&mut app, 0, &[0; 8]);
    push(&mut app, 8, &0x10100_u64.to_le_bytes());
    push(&mut app, 16, &0x20000_u64.to_le_bytes());
    dispatch(&mut app, 1);
    let writes = found(&app, 0, WRITE);
    let wanted = [(0, 256..260, Certain), (1, 0..4, Certain), (0, 268..272, Certain), (0, 256..260, Maybe)];
    assert_eq!(writes, wanted);
    assert_eq!(missing(&app), ["memory that a shader reaches by an address that stands in memory"]);
    assert!(found(&app, 0, READ).contains(&(0, 264..272, Certain)), "{:?}", found(&app, 0, READ));
}

#[test]
fn an_address_that_nobody_has_is_counted_and_null_is_nothing() {
    let mut app = app("addresses.comp.spv");
    app.begin(2);
    app.bind_pipeline(2, PipelineBindPoint::COMPUTE, 1);
    push(&mut app, 0, &[0; 24]);
    dispatch(&mut app, 1);
    assert!(!missing(&app).contains(&"an address that nobody asked for"));
    push(&mut app, 8, &0x5000_u64.to_le_bytes());
    dispatch(&mut app, 1);
    assert!(missing(&app).contains(&"an address that nobody asked for"));
    assert_eq!(found(&app, 1, WRITE), []);
}

/// Binding 0 has four buffers. Binding 1 has three images; the push constant at offset 4 selects one.
fn arrays() -> App<Collector> {
    let mut app = app("arrays.comp.spv");
    for serial in 1..4 {
        app.make_image(serial, Format::R32_UINT, [4, 4], 1, (1 << 20) + serial * 4096);
    }
    make_set(&mut app, &[(DescriptorType::STORAGE_BUFFER, 4, NO_FLAGS), (DescriptorType::SAMPLED_IMAGE, 6, NO_FLAGS)]);
    let buffers = [1, 2, 3, 4].map(|it| buffer_info(it, 0, 64));
    write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &buffers);
    let images =
        [1, 2, 3].map(|it| DescriptorImageInfo { image_view: image_view(it), ..DescriptorImageInfo::zeroed() });
    let write = WriteDescriptorSet {
        dst_set: descriptor_set(1),
        dst_binding: 1,
        descriptor_count: 3,
        descriptor_type: DescriptorType::SAMPLED_IMAGE,
        p_image_info: Ptr::to_slice(&images),
        ..WriteDescriptorSet::zeroed()
    };
    update_sets(&mut app, &[write], &[]);
    app
}

/// One descriptor represents all that a shader may read. Possible writes are not reported.
#[test]
fn a_descriptor_that_may_be_read_is_a_possible_read() {
    let mut app = arrays();
    app.begin(2);
    bind_set(&mut app, 1, &[]);
    dispatch(&mut app, 1);
    let possible = accesses(app.program(), 0, 0).iter().filter(|it| it.certainty == Certainty::Unreported);
    let possible: Vec<(u32, u64)> = possible.map(|it| (it.resource.0, it.access)).collect();
    assert_eq!(possible, [(4, Bits::SHADER_SAMPLED_READ.0)]);
}

#[test]
fn a_descriptor_is_picked_by_the_number_that_is_pushed() {
    let mut app = arrays();
    app.begin(2);
    bind_set(&mut app, 1, &[]);
    for which in [1_u32, 2] {
        push(&mut app, 4, &which.to_le_bytes());
        dispatch(&mut app, 1);
    }
    let sampled = |index| found(&app, index, Bits::SHADER_SAMPLED_READ.0).iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!((sampled(0), sampled(1)), (vec![5], vec![6]));
    assert_eq!(missing(&app), ["which descriptor of an array a shader uses"]);
}

#[test]
fn descriptors_that_only_the_shader_picks_are_reported_on_request() {
    let mut app = arrays();
    app.tracker.report_dynamic_indexing(true);
    app.begin(2);
    bind_set(&mut app, 1, &[]);
    push(&mut app, 4, &0_u32.to_le_bytes());
    dispatch(&mut app, 1);
    let picked: Vec<_> = found(&app, 0, WRITE).into_iter().filter(|it| it.2 == OneOfArray).collect();
    assert_eq!(picked, [0, 1, 2, 3].map(|it| (it, 12..16, OneOfArray)));
    assert_eq!(missing(&app), [""; 0]);
    assert!(accesses(app.program(), 0, 0).iter().all(|it| it.stage == Stage::COMPUTE_SHADER.0));
}

#[test]
fn atomic_operations_do_not_race_with_each_other() {
    for (shader, wanted) in [("count.comp.spv", vec![]), ("half.comp.spv", vec![HazardKind::WriteAfterWrite])] {
        let mut app = app(shader);
        make_set(&mut app, &[(DescriptorType::STORAGE_BUFFER, 1, NO_FLAGS)]);
        write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &[buffer_info(1, 0, WHOLE_SIZE)]);
        app.begin(2);
        bind_set(&mut app, 1, &[]);
        push(&mut app, 0, &[0; 4]);
        dispatch(&mut app, 2);
        dispatch(&mut app, 2);
        app.end(2);
        app.submit(0, 2, Fence(0));
        let kinds: Vec<HazardKind> = check(app.program()).iter().map(|it| it.kind).collect();
        assert_eq!(kinds, wanted, "{shader}");
        // A copy still reads the resource.
        app.begin(2);
        app.copy_buffer(2, 1, 2, 4);
        app.end(2);
        app.submit(0, 2, Fence(0));
        assert!(check(app.program()).iter().any(|it| it.kind == HazardKind::ReadAfterWrite), "{shader}");
    }
}
