//! Swapchains, host accesses, queries, conditional rendering, transform feedback and acceleration structures.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, Command as Api, PipelineStageFlags2 as Stage, *};
use lavascope_engine::check;
use lavascope_state::{Collector, ObjectLifetime};
use lavascope_sync_ir::{Certainty, HazardKind, HostStep, QueueId, Region, ResourceId, SemaphoreId};

fn regions(app: &App<Collector>, index: usize) -> Vec<(u64, u64, Region)> {
    accesses(app.program(), 0, index).iter().map(|it| (it.stage, it.access, it.region.clone())).collect()
}

fn make_semaphore(app: &mut App<Collector>, serial: u64) {
    app.call(
        Api::CreateSemaphore,
        &CreateSemaphoreParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&SemaphoreCreateInfo::zeroed()),
            p_allocator: Ptr::NULL,
            p_semaphore: Ptr::to(&semaphore(serial)),
        },
    );
}

fn make_swapchain(app: &mut App<Collector>) {
    let info = SwapchainCreateInfoKHR {
        image_format: Format::B8G8R8A8_UNORM,
        image_extent: Extent2D { width: 64, height: 32 },
        image_array_layers: 1,
        ..SwapchainCreateInfoKHR::zeroed()
    };
    app.call(
        Api::CreateSwapchainKHR,
        &CreateSwapchainKHRParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_swapchain: Ptr::to(&swapchain(1)),
        },
    );
    let images = [image(7), image(8)];
    app.call(
        Api::GetSwapchainImagesKHR,
        &GetSwapchainImagesKHRParams {
            device: device(DEVICE),
            swapchain: swapchain(1),
            p_swapchain_image_count: Ptr::to(&2),
            p_swapchain_images: Ptr::to_slice(&images),
        },
    );
}

#[test]
fn an_image_is_acquired_used_and_presented() {
    for is_waited in [true, false] {
        let mut app = App::collecting();
        make_semaphore(&mut app, 1);
        make_semaphore(&mut app, 2);
        make_swapchain(&mut app);
        app.call(
            Api::AcquireNextImageKHR,
            &AcquireNextImageKHRParams {
                device: device(DEVICE),
                swapchain: swapchain(1),
                timeout: 0,
                semaphore: semaphore(1),
                fence: Fence(0),
                p_image_index: Ptr::to(&1),
            },
        );
        app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
        app.begin(2);
        app.call(
            Api::CmdClearColorImage,
            &CmdClearColorImageParams {
                command_buffer: command_buffer(2),
                image: image(8),
                image_layout: ImageLayout::GENERAL,
                p_color: Ptr::to(&ClearColorValue::zeroed()),
                range_count: 1,
                p_ranges: Ptr::to(&whole_range(ImageAspectFlags::COLOR)),
            },
        );
        app.end(2);
        let (waits, signals, buffers) = ([semaphore(1)], [semaphore(2)], [command_buffer(2)]);
        let stages = [PipelineStageFlags::TRANSFER];
        let info = SubmitInfo {
            wait_semaphore_count: u32::from(is_waited),
            p_wait_semaphores: Ptr::to_slice(&waits),
            p_wait_dst_stage_mask: Ptr::to_slice(&stages),
            command_buffer_count: 1,
            p_command_buffers: Ptr::to_slice(&buffers),
            signal_semaphore_count: 1,
            p_signal_semaphores: Ptr::to_slice(&signals),
            ..SubmitInfo::zeroed()
        };
        app.call(
            Api::QueueSubmit,
            &QueueSubmitParams { queue: queue(0), submit_count: 1, p_submits: Ptr::to(&info), fence: Fence(0) },
        );
        let (swapchains, indices) = ([swapchain(1)], [1]);
        let info = PresentInfoKHR {
            wait_semaphore_count: 1,
            p_wait_semaphores: Ptr::to_slice(&signals),
            swapchain_count: 1,
            p_swapchains: Ptr::to_slice(&swapchains),
            p_image_indices: Ptr::to_slice(&indices),
            ..PresentInfoKHR::zeroed()
        };
        app.call(Api::QueuePresentKHR, &QueuePresentKHRParams { queue: queue(0), p_present_info: Ptr::to(&info) });
        let steps = &app.program().steps;
        let (first, last) = (Some(SemaphoreId(0)), SemaphoreId(1));
        assert_eq!(steps[0], HostStep::Acquire { image: ResourceId(1), semaphore: first, fence: None });
        let images = vec![ResourceId(1)];
        assert_eq!(steps[2], HostStep::Present { queue: QueueId(0), waits: vec![last], images });
        let kinds: Vec<HazardKind> = check(app.program()).iter().map(|it| it.kind).collect();
        assert_eq!(kinds, if is_waited { vec![] } else { vec![HazardKind::WriteAfterPresent] });
    }
}

#[test]
fn flushes_and_invalidations_tell_of_one_resource_or_of_none() {
    let mut app = App::collecting();
    app.make_buffer(1, 1024, 0);
    app.make_buffer(2, 1024, 4096);
    let mapped = 0_u64;
    app.call(
        Api::MapMemory,
        &MapMemoryParams {
            device: device(DEVICE),
            memory: memory(MEMORY),
            offset: 0,
            size: WHOLE_SIZE,
            flags: MemoryMapFlags(0),
            pp_data: Ptr::to(&mapped).cast(),
        },
    );
    let range =
        |offset, size| MappedMemoryRange { memory: memory(MEMORY), offset, size, ..MappedMemoryRange::zeroed() };
    let ranges = [range(4096 + 256, 512), range(0, WHOLE_SIZE)];
    app.call(
        Api::FlushMappedMemoryRanges,
        &FlushMappedMemoryRangesParams {
            device: device(DEVICE),
            memory_range_count: 2,
            p_memory_ranges: Ptr::to_slice(&ranges),
        },
    );
    app.call(
        Api::InvalidateMappedMemoryRanges,
        &InvalidateMappedMemoryRangesParams {
            device: device(DEVICE),
            memory_range_count: 1,
            p_memory_ranges: Ptr::to(&range(0, 64)),
        },
    );
    let access = |resource, bytes, is_write| HostStep::HostAccess {
        resource: ResourceId(resource),
        region: Region::Buffer(bytes),
        is_write,
        certainty: Certainty::Certain,
    };
    assert_eq!(app.program().steps, [access(1, 256..768, true), access(0, 0..64, false)]);
    assert_eq!(app.tracker.untracked().map(|it| it.1).sum::<u64>(), 1);
}

/// The host can find bytes of a buffer, but not texels of an image with optimal tiling in the same memory.
#[test]
fn the_host_means_the_buffer_and_not_the_image_over_it() {
    let mut app = App::collecting();
    app.make_image(1, Format::R8G8B8A8_UNORM, [8, 8], 1, 0);
    app.make_buffer(2, 256, 0);
    let range = MappedMemoryRange { memory: memory(MEMORY), offset: 0, size: 64, ..MappedMemoryRange::zeroed() };
    app.call(
        Api::FlushMappedMemoryRanges,
        &FlushMappedMemoryRangesParams {
            device: device(DEVICE),
            memory_range_count: 1,
            p_memory_ranges: Ptr::to(&range),
        },
    );
    let (resource, region) = (ResourceId(1), Region::Buffer(0..64));
    assert_eq!(
        app.program().steps,
        [HostStep::HostAccess { resource, region, is_write: true, certainty: lavascope_sync_ir::Certainty::Certain }]
    );
    assert_eq!(app.tracker.untracked().count(), 0);
}

#[test]
fn results_conditions_and_counters_are_accesses() {
    let mut app = App::collecting();
    app.make_buffer(1, 1024, 0);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    let info = QueryPoolCreateInfo {
        query_type: QueryType::PIPELINE_STATISTICS,
        query_count: 8,
        pipeline_statistics: QueryPipelineStatisticFlags(7),
        ..QueryPoolCreateInfo::zeroed()
    };
    app.call(
        Api::CreateQueryPool,
        &CreateQueryPoolParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_query_pool: Ptr::to(&query_pool(1)),
        },
    );
    app.begin(2);
    app.call(
        Api::CmdCopyQueryPoolResults,
        &CmdCopyQueryPoolResultsParams {
            command_buffer: command_buffer(2),
            query_pool: query_pool(1),
            first_query: 0,
            query_count: 2,
            dst_buffer: buffer(1),
            dst_offset: 16,
            stride: 64,
            flags: QueryResultFlags(QueryResultFlags::_64.0 | QueryResultFlags::WITH_AVAILABILITY.0),
        },
    );
    let info = ConditionalRenderingBeginInfoEXT {
        buffer: buffer(1),
        offset: 32,
        ..ConditionalRenderingBeginInfoEXT::zeroed()
    };
    app.call(
        Api::CmdBeginConditionalRenderingEXT,
        &CmdBeginConditionalRenderingEXTParams {
            command_buffer: command_buffer(2),
            p_conditional_rendering_begin: Ptr::to(&info),
        },
    );
    let offsets = [8];
    let counters = [buffer(1)];
    app.call(
        Api::CmdBeginTransformFeedbackEXT,
        &CmdBeginTransformFeedbackEXTParams {
            command_buffer: command_buffer(2),
            first_counter_buffer: 0,
            counter_buffer_count: 1,
            p_counter_buffers: Ptr::to_slice(&counters),
            p_counter_buffer_offsets: Ptr::to_slice(&offsets),
        },
    );
    let write = (Stage::COPY.0, Bits::TRANSFER_WRITE.0);
    assert_eq!(
        regions(&app, 0),
        [(write.0, write.1, Region::Buffer(16..48)), (write.0, write.1, Region::Buffer(80..112))]
    );
    let condition = (Stage::CONDITIONAL_RENDERING_EXT.0, Bits::CONDITIONAL_RENDERING_READ_EXT.0);
    assert_eq!(regions(&app, 1), [(condition.0, condition.1, Region::Buffer(32..36))]);
    let counter = (Stage::TRANSFORM_FEEDBACK_EXT.0, Bits::TRANSFORM_FEEDBACK_COUNTER_READ_EXT.0);
    assert_eq!(regions(&app, 2), [(counter.0, counter.1, Region::Buffer(8..12))]);
}

#[test]
fn a_build_reads_its_inputs_by_address_and_writes_its_structure() {
    const BASE: u64 = 0x1_0000_0000;
    let mut app = App::collecting();
    for serial in 1..4 {
        app.make_buffer(serial, 4096, serial * 4096);
        let info = BufferDeviceAddressInfo { buffer: buffer(serial), ..BufferDeviceAddressInfo::zeroed() };
        let params = GetBufferDeviceAddressParams { device: device(DEVICE), p_info: Ptr::to(&info) };
        app.call_with(Api::GetBufferDeviceAddress, &params, BASE + serial * 0x10_0000);
    }
    let info = AccelerationStructureCreateInfoKHR {
        buffer: buffer(1),
        offset: 256,
        size: 1024,
        ..AccelerationStructureCreateInfoKHR::zeroed()
    };
    app.call(
        Api::CreateAccelerationStructureKHR,
        &CreateAccelerationStructureKHRParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_acceleration_structure: Ptr::to(&acceleration_structure(1)),
        },
    );
    let boxes = AccelerationStructureGeometryAabbsDataKHR {
        data: DeviceOrHostAddressConstKHR { words: [BASE + 0x20_0000 + 64] },
        stride: 32,
        ..AccelerationStructureGeometryAabbsDataKHR::zeroed()
    };
    let mut geometry =
        AccelerationStructureGeometryKHR { geometry_type: GeometryTypeKHR::AABBS_KHR, ..zeroed_geometry() };
    geometry.geometry.words[0] = boxes.s_type.0 as u64;
    geometry.geometry.words[2..4].copy_from_slice(&[boxes.data.words[0], boxes.stride]);
    let build = AccelerationStructureBuildGeometryInfoKHR {
        dst_acceleration_structure: acceleration_structure(1),
        geometry_count: 1,
        p_geometries: Ptr::to(&geometry),
        scratch_data: DeviceOrHostAddressKHR { words: [BASE + 0x30_0000] },
        ..AccelerationStructureBuildGeometryInfoKHR::zeroed()
    };
    let range = AccelerationStructureBuildRangeInfoKHR {
        primitive_count: 3,
        ..AccelerationStructureBuildRangeInfoKHR::zeroed()
    };
    let ranges = [Ptr::to(&range)];
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    app.call(
        Api::CmdBuildAccelerationStructuresKHR,
        &CmdBuildAccelerationStructuresKHRParams {
            command_buffer: command_buffer(2),
            info_count: 1,
            p_infos: Ptr::to(&build),
            pp_build_range_infos: Ptr::to_slice(&ranges),
        },
    );
    let stage = Stage::ACCELERATION_STRUCTURE_BUILD_KHR.0;
    let write = Bits::ACCELERATION_STRUCTURE_WRITE_KHR.0;
    assert_eq!(
        regions(&app, 0),
        [
            (stage, write, Region::Buffer(256..1280)),
            (stage, write, Region::Buffer(0..256)),
            (stage, Bits::SHADER_READ.0, Region::Buffer(64..64 + 2 * 32 + 24)),
        ]
    );
}

fn zeroed_geometry() -> AccelerationStructureGeometryKHR {
    AccelerationStructureGeometryKHR::zeroed()
}

#[test]
fn the_dead_are_remembered() {
    let mut app = App::collecting();
    app.make_buffer(1, 64, 0);
    let id = |serial| ObjectId::new(HandleType::Buffer, serial).unwrap_or_default();
    assert_eq!(
        (app.tracker.lifetime(id(1)), app.tracker.lifetime(id(2))),
        (ObjectLifetime::Alive, ObjectLifetime::NeverCreated)
    );
    app.call(
        Api::DestroyBuffer,
        &DestroyBufferParams { device: device(DEVICE), buffer: buffer(1), p_allocator: Ptr::NULL },
    );
    assert_eq!(app.tracker.lifetime(id(1)), ObjectLifetime::Destroyed);
}

#[test]
fn commands_that_name_memory_by_its_address_access_the_buffer_there() {
    const BASE: u64 = 0x1_0000_0000;
    let mut app = App::collecting();
    app.make_buffer(1, 4096, 0);
    app.make_image(1, Format::R8G8B8A8_UNORM, [16, 16], 1, 1 << 20);
    let info = BufferDeviceAddressInfo { buffer: buffer(1), ..BufferDeviceAddressInfo::zeroed() };
    let params = GetBufferDeviceAddressParams { device: device(DEVICE), p_info: Ptr::to(&info) };
    app.call_with(Api::GetBufferDeviceAddress, &params, BASE);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    let range = DeviceAddressRangeKHR { address: BASE + 128, size: 64 };
    app.call(
        Api::CmdFillMemoryKHR,
        &CmdFillMemoryKHRParams {
            command_buffer: command_buffer(2),
            p_dst_range: Ptr::to(&range),
            dst_flags: AddressCommandFlagsKHR(0),
            data: 0,
        },
    );
    let region = DeviceMemoryImageCopyKHR {
        address_range: DeviceAddressRangeKHR { address: BASE + 1024, size: 1024 },
        address_row_length: 16,
        image_subresource: one_layer(),
        image_extent: Extent3D { width: 4, height: 2, depth: 1 },
        ..DeviceMemoryImageCopyKHR::zeroed()
    };
    let info = CopyDeviceMemoryImageInfoKHR {
        image: image(1),
        region_count: 1,
        p_regions: Ptr::to(&region),
        ..CopyDeviceMemoryImageInfoKHR::zeroed()
    };
    app.call(
        Api::CmdCopyMemoryToImageKHR,
        &CmdCopyMemoryToImageKHRParams { command_buffer: command_buffer(2), p_copy_memory_info: Ptr::to(&info) },
    );
    let beyond = DeviceAddressRangeKHR { address: BASE + 4096, size: 4 };
    app.call(
        Api::CmdFillMemoryKHR,
        &CmdFillMemoryKHRParams {
            command_buffer: command_buffer(2),
            p_dst_range: Ptr::to(&beyond),
            dst_flags: AddressCommandFlagsKHR(0),
            data: 0,
        },
    );
    let (clear, write) = (Stage::CLEAR.0, Bits::TRANSFER_WRITE.0);
    assert_eq!(regions(&app, 0), [(clear, write, Region::Buffer(128..192))]);
    let read: Vec<Region> = regions(&app, 1).into_iter().filter(|it| it.1 != write).map(|it| it.2).collect();
    assert_eq!(read, [Region::Buffer(1024..1040), Region::Buffer(1088..1104)]);
    assert_eq!(regions(&app, 2), []);
    let missing: Vec<&str> = app.tracker.untracked().map(|it| it.0.reason).collect();
    assert_eq!(missing, ["an address that nobody asked for"]);
}

#[test]
fn the_host_copies_to_images_and_transitions_them() {
    let mut app = App::collecting();
    app.make_image(1, Format::R8G8B8A8_UNORM, [16, 16], 1, 0);
    let transition = HostImageLayoutTransitionInfo {
        image: image(1),
        new_layout: ImageLayout::GENERAL,
        subresource_range: whole_range(ImageAspectFlags::COLOR),
        ..HostImageLayoutTransitionInfo::zeroed()
    };
    app.call(
        Api::TransitionImageLayout,
        &TransitionImageLayoutParams {
            device: device(DEVICE),
            transition_count: 1,
            p_transitions: Ptr::to(&transition),
        },
    );
    let pixels = [0_u8; 64];
    let region = ImageToMemoryCopy {
        p_host_pointer: Ptr::to_slice(&pixels).cast(),
        image_subresource: one_layer(),
        image_extent: Extent3D { width: 4, height: 4, depth: 1 },
        ..ImageToMemoryCopy::zeroed()
    };
    let info = CopyImageToMemoryInfo {
        src_image: image(1),
        region_count: 1,
        p_regions: Ptr::to(&region),
        ..CopyImageToMemoryInfo::zeroed()
    };
    app.call(
        Api::CopyImageToMemory,
        &CopyImageToMemoryParams { device: device(DEVICE), p_copy_image_to_memory_info: Ptr::to(&info) },
    );
    let writes: Vec<bool> = app
        .program()
        .steps
        .iter()
        .map(|step| match step {
            HostStep::HostAccess { is_write, .. } => *is_write,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(writes, [true, false]);
}

#[test]
fn a_decoder_reads_its_stream_and_references_and_writes_pictures() {
    let mut app = App::collecting();
    app.make_buffer(1, 4096, 0);
    app.make_image(1, Format::R8G8B8A8_UNORM, [64, 64], 4, 1 << 20);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    let picture = |layer| VideoPictureResourceInfoKHR {
        coded_extent: Extent2D { width: 32, height: 32 },
        base_array_layer: layer,
        image_view_binding: image_view(1),
        ..VideoPictureResourceInfoKHR::zeroed()
    };
    let pictures = [picture(1), picture(2)];
    let slot = |at: usize| VideoReferenceSlotInfoKHR {
        p_picture_resource: Ptr::to(&pictures[at]),
        ..VideoReferenceSlotInfoKHR::zeroed()
    };
    let (setup, reference) = (slot(0), slot(1));
    let info = VideoDecodeInfoKHR {
        src_buffer: buffer(1),
        src_buffer_range: 256,
        dst_picture_resource: picture(0),
        p_setup_reference_slot: Ptr::to(&setup),
        reference_slot_count: 1,
        p_reference_slots: Ptr::to(&reference),
        ..VideoDecodeInfoKHR::zeroed()
    };
    app.call(
        Api::CmdDecodeVideoKHR,
        &CmdDecodeVideoKHRParams { command_buffer: command_buffer(2), p_decode_info: Ptr::to(&info) },
    );
    let (read, write) = (Bits::VIDEO_DECODE_READ_KHR.0, Bits::VIDEO_DECODE_WRITE_KHR.0);
    let all = accesses(app.program(), 0, 0);
    assert_eq!(all.iter().map(|it| it.access).collect::<Vec<_>>(), [read, write, write, read]);
    let layer = |at: usize| match &all[at].region {
        Region::Image(region) => region.layers.clone(),
        Region::Buffer(_) => panic!("no image"),
    };
    assert_eq!((layer(1), layer(2), layer(3)), (0..1, 1..2, 2..3));
}
