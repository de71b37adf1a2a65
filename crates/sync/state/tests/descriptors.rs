//! Accesses through descriptor sets, templates, push descriptors and dynamic offsets, and when they are resolved.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, Command as Api, PipelineStageFlags2 as Stage, *};
use lavascope_engine::check;
use lavascope_spirv::{AccessBytes, ValueSource};
use lavascope_state::{Collector, DescriptorArrayIndex, DescriptorUse, ShaderInterface, Tracker};
use lavascope_sync_ir::{Access, Certainty, HazardKind, Region};

const READ: u64 = Bits::SHADER_STORAGE_READ.0;
const WRITE: u64 = Bits::SHADER_STORAGE_WRITE.0;
const UNIFORM: u64 = Bits::UNIFORM_READ.0;
const SAMPLED: u64 = Bits::SHADER_SAMPLED_READ.0;

fn one(binding: u32, element: DescriptorArrayIndex, reads: bool, writes: bool) -> DescriptorUse {
    DescriptorUse { element, reads, writes, ..DescriptorUse::new(0, binding) }
}

/// An application with a compute shader with the given descriptors, three buffers and an image.
fn app(descriptors: Vec<DescriptorUse>) -> App<Collector> {
    let shaders = TestShaders(vec![ShaderInterface { descriptors, ..ShaderInterface::default() }]);
    let mut app = App::with_tracker(Tracker::with_reflection(Collector::default(), Box::new(shaders)));
    for serial in 1..4 {
        app.make_buffer(serial, 1024, serial * 1024);
    }
    app.make_image(1, Format::R8G8B8A8_UNORM, [16, 16], 1, 1 << 20);
    app.make_shader(1, 0);
    app.make_compute_pipeline(1, 1);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app
}

fn short(all: &[Access]) -> Vec<(u32, u64, Region)> {
    assert!(all.iter().all(|it| it.stage == Stage::COMPUTE_SHADER.0));
    all.iter().map(|it| (it.resource.0, it.access, it.region.clone())).collect()
}

#[test]
fn a_dispatch_accesses_what_its_shader_uses() {
    let mut used = one(0, DescriptorArrayIndex::One(0), true, true);
    used.bytes = Some(16..32);
    let mut app = app(vec![
        used,
        one(1, DescriptorArrayIndex::Unknown, true, false),
        one(2, DescriptorArrayIndex::Unknown, true, false),
    ]);
    make_set(
        &mut app,
        &[
            (DescriptorType::STORAGE_BUFFER, 1, NO_FLAGS),
            (DescriptorType::UNIFORM_BUFFER, 1, NO_FLAGS),
            (DescriptorType::STORAGE_BUFFER, 2, NO_FLAGS),
        ],
    );
    write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &[buffer_info(1, 256, WHOLE_SIZE)]);
    write_buffers(&mut app, 1, DescriptorType::UNIFORM_BUFFER, &[buffer_info(2, 0, 64)]);
    app.begin(2);
    bind_set(&mut app, 1, &[]);
    dispatch(&mut app, 1);
    dispatch(&mut app, 0);
    assert_eq!(
        short(accesses(app.program(), 0, 0)),
        [
            (0, READ, Region::Buffer(272..288)),
            (0, WRITE, Region::Buffer(272..288)),
            (1, UNIFORM, Region::Buffer(0..64)),
        ]
    );
    // A dispatch without groups accesses nothing, but its possible reads may lie between two writes.
    let possible = accesses(app.program(), 0, 1);
    assert_eq!(short(possible), [(0, READ, Region::Buffer(272..288)), (1, UNIFORM, Region::Buffer(0..64))]);
    assert!(possible.iter().all(|it| it.certainty == Certainty::Unreported));
    let missing: Vec<&str> = app.tracker.untracked().map(|it| it.0.reason).collect();
    assert_eq!(missing, ["which descriptor of an array a shader uses"]);
}

#[test]
fn dynamic_offsets_go_to_their_descriptors() {
    let mut app =
        app(vec![one(0, DescriptorArrayIndex::One(1), true, false), one(1, DescriptorArrayIndex::One(0), true, false)]);
    make_set(
        &mut app,
        &[(DescriptorType::UNIFORM_BUFFER_DYNAMIC, 2, NO_FLAGS), (DescriptorType::STORAGE_BUFFER_DYNAMIC, 1, NO_FLAGS)],
    );
    let infos = [buffer_info(1, 0, 16), buffer_info(2, 8, 16)];
    write_buffers(&mut app, 0, DescriptorType::UNIFORM_BUFFER_DYNAMIC, &infos);
    write_buffers(&mut app, 1, DescriptorType::STORAGE_BUFFER_DYNAMIC, &[buffer_info(3, 0, 32)]);
    app.begin(2);
    bind_set(&mut app, 1, &[256, 512, 64]);
    dispatch(&mut app, 1);
    assert_eq!(
        short(accesses(app.program(), 0, 0)),
        [(1, UNIFORM, Region::Buffer(520..536)), (2, READ, Region::Buffer(64..96))]
    );
}

#[test]
fn writes_roll_over_into_the_next_binding_and_copies_take_what_is_there() {
    let mut app = app(vec![one(1, DescriptorArrayIndex::One(0), true, false)]);
    make_set(&mut app, &[(DescriptorType::STORAGE_BUFFER, 2, NO_FLAGS), (DescriptorType::STORAGE_BUFFER, 1, NO_FLAGS)]);
    let infos = [buffer_info(1, 0, 16), buffer_info(2, 0, 16), buffer_info(3, 0, 16)];
    write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &infos);
    let copy = CopyDescriptorSet {
        src_set: descriptor_set(1),
        src_array_element: 1,
        dst_set: descriptor_set(2),
        dst_binding: 1,
        descriptor_count: 1,
        ..CopyDescriptorSet::zeroed()
    };
    update_sets(&mut app, &[], &[copy]);
    app.begin(2);
    for set in [1, 2] {
        bind_set(&mut app, set, &[]);
        dispatch(&mut app, 1);
    }
    assert_eq!(short(accesses(app.program(), 0, 0)), [(2, READ, Region::Buffer(0..16))]);
    assert_eq!(short(accesses(app.program(), 0, 1)), [(1, READ, Region::Buffer(0..16))]);
}

#[test]
fn what_may_change_after_the_bind_is_decided_by_the_submission() {
    for flags in [NO_FLAGS, DescriptorBindingFlags::UPDATE_AFTER_BIND] {
        let mut app = app(vec![one(0, DescriptorArrayIndex::One(0), false, true)]);
        make_set(&mut app, &[(DescriptorType::STORAGE_BUFFER, 1, flags)]);
        write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &[buffer_info(1, 0, 16)]);
        app.begin(2);
        bind_set(&mut app, 1, &[]);
        dispatch(&mut app, 1);
        app.end(2);
        write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &[buffer_info(2, 0, 16)]);
        app.submit(0, 2, Fence(0));
        let resource = if flags == NO_FLAGS { 0 } else { 1 };
        assert_eq!(short(accesses(app.program(), 0, 0)), [(resource, WRITE, Region::Buffer(0..16))]);
        // Earlier submissions keep their contents.
        write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &[buffer_info(3, 0, 16)]);
        app.submit(0, 2, Fence(0));
        assert_eq!(short(accesses(app.program(), 0, 0)), [(resource, WRITE, Region::Buffer(0..16))]);
        if flags != NO_FLAGS {
            assert_eq!(short(accesses(app.program(), 1, 0)), [(2, WRITE, Region::Buffer(0..16))]);
            assert_eq!(check(app.program()), [], "the two submissions write to different buffers");
        } else {
            let kinds: Vec<HazardKind> = check(app.program()).iter().map(|it| it.kind).collect();
            assert_eq!(kinds, [HazardKind::WriteAfterWrite]);
        }
    }
}

#[test]
fn pushed_descriptors_stay_until_they_are_pushed_again() {
    let mut app =
        app(vec![one(0, DescriptorArrayIndex::One(0), true, false), one(1, DescriptorArrayIndex::One(0), true, false)]);
    make_set(
        &mut app,
        &[(DescriptorType::STORAGE_BUFFER, 1, NO_FLAGS), (DescriptorType::COMBINED_IMAGE_SAMPLER, 1, NO_FLAGS)],
    );
    let (one, two) = (buffer_info(1, 0, 16), buffer_info(2, 0, 16));
    let sampled = DescriptorImageInfo { image_view: image_view(1), ..DescriptorImageInfo::zeroed() };
    let write = WriteDescriptorSet {
        descriptor_count: 1,
        descriptor_type: DescriptorType::STORAGE_BUFFER,
        p_buffer_info: Ptr::to(&one),
        ..WriteDescriptorSet::zeroed()
    };
    let image = WriteDescriptorSet {
        dst_binding: 1,
        descriptor_type: DescriptorType::COMBINED_IMAGE_SAMPLER,
        p_image_info: Ptr::to(&sampled),
        ..write
    };
    app.begin(2);
    app.bind_pipeline(2, PipelineBindPoint::COMPUTE, 1);
    let push = |app: &mut App<Collector>, writes: &[WriteDescriptorSet]| {
        app.call(
            Api::CmdPushDescriptorSet,
            &CmdPushDescriptorSetParams {
                command_buffer: command_buffer(2),
                pipeline_bind_point: PipelineBindPoint::COMPUTE,
                layout: pipeline_layout(1),
                set: 0,
                descriptor_write_count: writes.len() as u32,
                p_descriptor_writes: Ptr::to_slice(writes),
            },
        );
        dispatch(app, 1);
    };
    push(&mut app, &[write, image]);
    push(&mut app, &[WriteDescriptorSet { p_buffer_info: Ptr::to(&two), ..write }]);
    let brief = |at| short(accesses(app.program(), 0, at)).into_iter().map(|it| (it.0, it.1)).collect::<Vec<_>>();
    assert_eq!(brief(0), [(0, READ), (3, SAMPLED)]);
    assert_eq!(brief(1), [(1, READ), (3, SAMPLED)]);
}

#[test]
fn a_descriptor_is_picked_by_what_stands_in_an_inline_uniform_block() {
    let place = ValueSource::Descriptor {
        set: 0,
        binding: 1,
        element: lavascope_spirv::DescriptorElement::Constant(0),
        bytes: AccessBytes { start: 4, end: Some(8), is_exact: true },
    };
    let mut app = app(vec![one(0, DescriptorArrayIndex::Read(place), true, false)]);
    make_set(
        &mut app,
        &[(DescriptorType::STORAGE_BUFFER, 3, NO_FLAGS), (DescriptorType::INLINE_UNIFORM_BLOCK, 16, NO_FLAGS)],
    );
    let buffers = [buffer_info(1, 0, 16), buffer_info(2, 0, 16), buffer_info(3, 0, 16)];
    write_buffers(&mut app, 0, DescriptorType::STORAGE_BUFFER, &buffers);
    let bytes = [2_u8, 0, 0, 0];
    let block = WriteDescriptorSetInlineUniformBlock {
        data_size: 4,
        p_data: Ptr::to_slice(&bytes).cast(),
        ..WriteDescriptorSetInlineUniformBlock::zeroed()
    };
    let write = WriteDescriptorSet {
        p_next: Ptr::to(&block).cast(),
        dst_set: descriptor_set(1),
        dst_binding: 1,
        dst_array_element: 4,
        descriptor_count: 4,
        descriptor_type: DescriptorType::INLINE_UNIFORM_BLOCK,
        ..WriteDescriptorSet::zeroed()
    };
    update_sets(&mut app, &[write], &[]);
    let copy = |src_binding, descriptor_count| CopyDescriptorSet {
        src_set: descriptor_set(1),
        src_binding,
        dst_set: descriptor_set(2),
        dst_binding: src_binding,
        descriptor_count,
        ..CopyDescriptorSet::zeroed()
    };
    update_sets(&mut app, &[], &[copy(0, 3), copy(1, 16)]);
    app.begin(2);
    for set in [1, 2] {
        bind_set(&mut app, set, &[]);
        dispatch(&mut app, 1);
        let index = set as usize - 1;
        assert_eq!(short(accesses(app.program(), 0, index)), [(2, READ, Region::Buffer(0..16))]);
    }
    assert_eq!(app.tracker.untracked().count(), 0);
}

#[test]
fn a_template_fills_a_set() {
    let mut app = app(vec![one(1, DescriptorArrayIndex::One(1), true, false)]);
    make_set(
        &mut app,
        &[(DescriptorType::COMBINED_IMAGE_SAMPLER, 2, NO_FLAGS), (DescriptorType::UNIFORM_BUFFER, 2, NO_FLAGS)],
    );
    // Template 2 of the model in `sim`: two images, and two buffers 96 bytes after them.
    let mut data = [0_u64; 24];
    (data[12], data[13], data[14]) = (buffer(1).0, 0, 16);
    (data[15], data[16], data[17]) = (buffer(3).0, 32, 64);
    app.call(
        Api::UpdateDescriptorSetWithTemplate,
        &UpdateDescriptorSetWithTemplateParams {
            device: device(DEVICE),
            descriptor_set: descriptor_set(1),
            descriptor_update_template: template(2),
            p_data: Ptr::to_slice(&data).cast(),
        },
    );
    app.begin(2);
    bind_set(&mut app, 1, &[]);
    dispatch(&mut app, 1);
    assert_eq!(short(accesses(app.program(), 0, 0)), [(2, UNIFORM, Region::Buffer(32..96))]);
}

#[test]
fn a_descriptor_is_accessed_by_its_type() {
    let types = [
        (DescriptorType::UNIFORM_BUFFER, vec![UNIFORM]),
        (DescriptorType::UNIFORM_BUFFER_DYNAMIC, vec![UNIFORM]),
        (DescriptorType::STORAGE_BUFFER, vec![READ, WRITE]),
        (DescriptorType::STORAGE_BUFFER_DYNAMIC, vec![READ, WRITE]),
        (DescriptorType::SAMPLED_IMAGE, vec![SAMPLED]),
        (DescriptorType::COMBINED_IMAGE_SAMPLER, vec![SAMPLED]),
        (DescriptorType::STORAGE_IMAGE, vec![READ, WRITE]),
        (DescriptorType::INPUT_ATTACHMENT, vec![Bits::INPUT_ATTACHMENT_READ.0]),
        (DescriptorType::UNIFORM_TEXEL_BUFFER, vec![SAMPLED]),
        (DescriptorType::STORAGE_TEXEL_BUFFER, vec![READ, WRITE]),
        (DescriptorType::ACCELERATION_STRUCTURE_KHR, vec![Bits::ACCELERATION_STRUCTURE_READ_KHR.0]),
        (DescriptorType::SAMPLER, vec![]),
        (DescriptorType::INLINE_UNIFORM_BLOCK, vec![]),
    ];
    for (ty, expected) in types {
        let mut app = app(vec![one(0, DescriptorArrayIndex::One(0), true, true)]);
        make_set(&mut app, &[(ty, 1, NO_FLAGS)]);
        write_any(&mut app, ty);
        app.begin(2);
        bind_set(&mut app, 1, &[0]);
        dispatch(&mut app, 1);
        let found: Vec<u64> = accesses(app.program(), 0, 0).iter().map(|it| it.access).collect();
        assert_eq!(found, expected, "{ty:?}");
    }
}

/// Writes a descriptor of any type, with the objects it needs.
fn write_any(app: &mut App<Collector>, ty: DescriptorType) {
    let info = BufferViewCreateInfo { buffer: buffer(1), range: 64, ..BufferViewCreateInfo::zeroed() };
    let view = BufferView(handle(HandleType::BufferView, 1));
    app.call(
        Api::CreateBufferView,
        &CreateBufferViewParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_view: Ptr::to(&view),
        },
    );
    let info = AccelerationStructureCreateInfoKHR {
        buffer: buffer(2),
        size: 256,
        ..AccelerationStructureCreateInfoKHR::zeroed()
    };
    let structure = acceleration_structure(1);
    app.call(
        Api::CreateAccelerationStructureKHR,
        &CreateAccelerationStructureKHRParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_acceleration_structure: Ptr::to(&structure),
        },
    );
    let structures = WriteDescriptorSetAccelerationStructureKHR {
        acceleration_structure_count: 1,
        p_acceleration_structures: Ptr::to(&structure),
        ..WriteDescriptorSetAccelerationStructureKHR::zeroed()
    };
    let bytes = [0_u8; 4];
    let block = WriteDescriptorSetInlineUniformBlock {
        data_size: 4,
        p_data: Ptr::to_slice(&bytes).cast(),
        ..WriteDescriptorSetInlineUniformBlock::zeroed()
    };
    let buffer = DescriptorBufferInfo { buffer: buffer(1), offset: 0, range: 64 };
    let image = DescriptorImageInfo { image_view: image_view(1), ..DescriptorImageInfo::zeroed() };
    let next = match ty {
        DescriptorType::ACCELERATION_STRUCTURE_KHR => Ptr::to(&structures).cast(),
        DescriptorType::INLINE_UNIFORM_BLOCK => Ptr::to(&block).cast(),
        _ => Ptr::NULL,
    };
    let write = WriteDescriptorSet {
        p_next: next,
        dst_set: descriptor_set(1),
        descriptor_count: if ty == DescriptorType::INLINE_UNIFORM_BLOCK { 4 } else { 1 },
        descriptor_type: ty,
        p_buffer_info: Ptr::to(&buffer),
        p_image_info: Ptr::to(&image),
        p_texel_buffer_view: Ptr::to(&view),
        ..WriteDescriptorSet::zeroed()
    };
    update_sets(app, &[write], &[]);
}
