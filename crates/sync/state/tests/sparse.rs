//! Sparse resources: their memory follows from the binds on a queue.

mod common;

use common::*;
use lavascope_abi::*;
use lavascope_engine::check;
use lavascope_state::Collector;
use lavascope_sync_ir::{
    Area, Components, HazardKind, HostStep, ImageRegion, MemoryId, QueueId, ResourceId, SemaphoreId, SemaphorePoint,
    SparseBind, SparsePart,
};

const PAGE: u64 = 65536;

fn make_buffer(app: &mut App<Collector>, serial: u64) {
    let flags = BufferCreateFlags::SPARSE_BINDING;
    let info = BufferCreateInfo { size: 4 * PAGE, flags, ..BufferCreateInfo::zeroed() };
    create!(app, CreateBuffer, CreateBufferParams, info, p_buffer: buffer(serial));
}

fn page(resource_offset: u64, memory: DeviceMemory, memory_offset: u64) -> SparseMemoryBind {
    SparseMemoryBind { resource_offset, size: PAGE, memory, memory_offset, flags: SparseMemoryBindFlags(0) }
}

fn bind_info(binds: &[SparseMemoryBind], serial: u64) -> SparseBufferMemoryBindInfo {
    SparseBufferMemoryBindInfo { buffer: buffer(serial), bind_count: binds.len() as u32, p_binds: Ptr::to_slice(binds) }
}

fn submit(app: &mut App<Collector>, info: &BindSparseInfo, fence: Fence) {
    app.call(
        Command::QueueBindSparse,
        &QueueBindSparseParams { queue: queue(0), bind_info_count: 1, p_bind_info: Ptr::to(info), fence },
    );
}

/// Binds a page of a buffer, and waits for it.
fn bind_page(app: &mut App<Collector>, serial: u64, at: u64, memory_offset: u64) {
    let binds = [page(at, memory(MEMORY), memory_offset)];
    let buffers = [bind_info(&binds, serial)];
    let info =
        BindSparseInfo { buffer_bind_count: 1, p_buffer_binds: Ptr::to_slice(&buffers), ..BindSparseInfo::zeroed() };
    submit(app, &info, Fence(0));
    call!(app, DeviceWaitIdle, DeviceWaitIdleParams {});
}

/// Copies to one sparse buffer and from another.
fn copies(app: &mut App<Collector>) -> Vec<HazardKind> {
    app.make_buffer(5, PAGE, 1 << 24);
    app.make_buffer(6, PAGE, 1 << 25);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    app.copy_buffer(2, 5, 1, 256);
    app.copy_buffer(2, 2, 6, 256);
    app.end(2);
    app.submit(0, 2, Fence(0));
    check(app.program()).iter().map(|it| it.kind).collect()
}

#[test]
fn sparse_buffers_conflict_where_they_share_a_page() {
    for (offset, kinds) in [(0, vec![HazardKind::ReadAfterWrite]), (PAGE, vec![])] {
        let mut app = App::collecting();
        make_buffer(&mut app, 1);
        make_buffer(&mut app, 2);
        bind_page(&mut app, 1, 0, 0);
        bind_page(&mut app, 2, 0, offset);
        assert_eq!(copies(&mut app), kinds);
        assert_eq!(app.tracker.untracked().count(), 0);
    }
}

#[test]
fn what_has_no_page_conflicts_with_nothing() {
    let mut app = App::collecting();
    make_buffer(&mut app, 1);
    make_buffer(&mut app, 2);
    bind_page(&mut app, 1, 0, 0);
    bind_page(&mut app, 2, PAGE, 0);
    assert_eq!(copies(&mut app), []);
}

#[test]
fn a_bind_waits_signals_and_names_its_parts() {
    let mut app = App::collecting();
    make_buffer(&mut app, 1);
    for serial in 1..3 {
        let info = SemaphoreCreateInfo::zeroed();
        create!(app, CreateSemaphore, CreateSemaphoreParams, info, p_semaphore: semaphore(serial));
    }
    create!(app, CreateFence, CreateFenceParams, FenceCreateInfo::zeroed(), p_fence: fence(1));
    let binds = [page(PAGE, memory(MEMORY), 8 * PAGE), page(0, DeviceMemory(0), 0)];
    let buffers = [bind_info(&binds, 1)];
    let (waits, signals) = ([semaphore(1)], [semaphore(2)]);
    let info = BindSparseInfo {
        wait_semaphore_count: 1,
        p_wait_semaphores: Ptr::to_slice(&waits),
        buffer_bind_count: 1,
        p_buffer_binds: Ptr::to_slice(&buffers),
        signal_semaphore_count: 1,
        p_signal_semaphores: Ptr::to_slice(&signals),
        ..BindSparseInfo::zeroed()
    };
    submit(&mut app, &info, fence(1));
    let bind =
        |start, memory| SparseBind { resource: ResourceId(0), part: SparsePart::Bytes(start), size: PAGE, memory };
    let point = |it| SemaphorePoint { semaphore: SemaphoreId(it), value: None };
    let wanted = HostStep::BindSparse {
        queue: QueueId(0),
        waits: vec![point(0)],
        binds: vec![bind(PAGE, Some((MemoryId(0), 8 * PAGE))), bind(0, None)],
        signals: vec![point(1)],
        fence: Some(lavascope_sync_ir::FenceId(0)),
    };
    assert_eq!(app.program().steps, [wanted]);
}

#[test]
fn blocks_of_an_image_take_the_memory_that_the_driver_says() {
    let mut app = App::collecting();
    let info = ImageCreateInfo {
        flags: ImageCreateFlags(ImageCreateFlags::SPARSE_BINDING.0 | ImageCreateFlags::SPARSE_RESIDENCY.0),
        image_type: ImageType::_2D,
        format: Format::R8G8B8A8_UNORM,
        extent: Extent3D { width: 512, height: 512, depth: 1 },
        mip_levels: 4,
        array_layers: 1,
        ..ImageCreateInfo::zeroed()
    };
    create!(app, CreateImage, CreateImageParams, info, p_image: image(1));
    let needs = MemoryRequirements { size: 32 * PAGE, alignment: PAGE, memory_type_bits: 1 };
    call!(
        app,
        GetImageMemoryRequirements,
        GetImageMemoryRequirementsParams { image: image(1), p_memory_requirements: Ptr::to(&needs) }
    );
    let properties = SparseImageFormatProperties {
        image_granularity: Extent3D { width: 128, height: 128, depth: 1 },
        ..SparseImageFormatProperties::zeroed()
    };
    let sparse =
        SparseImageMemoryRequirements { format_properties: properties, ..SparseImageMemoryRequirements::zeroed() };
    call!(
        app,
        GetImageSparseMemoryRequirements,
        GetImageSparseMemoryRequirementsParams {
            image: image(1),
            p_sparse_memory_requirement_count: Ptr::to(&1),
            p_sparse_memory_requirements: Ptr::to(&sparse),
        }
    );
    let bind = SparseImageMemoryBind {
        subresource: ImageSubresource { aspect_mask: ImageAspectFlags::COLOR, mip_level: 1, array_layer: 0 },
        offset: Offset3D { x: 128, y: 0, z: 0 },
        extent: Extent3D { width: 128, height: 256, depth: 1 },
        memory: memory(MEMORY),
        memory_offset: 2 * PAGE,
        flags: SparseMemoryBindFlags(0),
    };
    let tail = [page(30 * PAGE, memory(MEMORY), 0)];
    let opaque = SparseImageOpaqueMemoryBindInfo { image: image(1), bind_count: 1, p_binds: Ptr::to_slice(&tail) };
    let images = SparseImageMemoryBindInfo { image: image(1), bind_count: 1, p_binds: Ptr::to(&bind) };
    let info = BindSparseInfo {
        image_opaque_bind_count: 1,
        p_image_opaque_binds: Ptr::to(&opaque),
        image_bind_count: 1,
        p_image_binds: Ptr::to(&images),
        ..BindSparseInfo::zeroed()
    };
    submit(&mut app, &info, Fence(0));
    let HostStep::BindSparse { binds, .. } = &app.program().steps[0] else { panic!("{:?}", app.program().steps) };
    let (area, components) = (Area { offset: [128, 0, 0], extent: [128, 256, 1] }, Components::ALL);
    let region = ImageRegion { aspects: 1, mips: 1..2, layers: 0..1, area: Some(area), components };
    let (resource, id) = (ResourceId(0), MemoryId(0));
    let wanted = [
        SparseBind { resource, part: SparsePart::Bytes(30 * PAGE), size: PAGE, memory: Some((id, 0)) },
        SparseBind { resource, part: SparsePart::Texels(region), size: 2 * PAGE, memory: Some((id, 2 * PAGE)) },
    ];
    assert_eq!(binds[..], wanted);
}
