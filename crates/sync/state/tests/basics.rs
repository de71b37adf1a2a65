//! Objects, copies, barriers and submissions: the collected program has the recorded calls, and its hazards are found.

mod common;

use common::*;
use lavascope_abi::{Command as Api, *};
use lavascope_engine::check;
use lavascope_state::Collector;
use lavascope_sync_ir::{
    Access, Area, Barrier, Command, CommandBufferId, Dependency, DependencyTarget, FenceId, HazardKind, HostStep,
    MemoryBinding, MemoryId, Origin, QueueFamilyTransfer, QueueId, Region, Resource, ResourceId, ResourceKind,
    SubmitBatch, SyncScope, Tiling,
};

const COPY: u64 = PipelineStageFlags2::COPY.0;
const READ: u64 = AccessFlags2::TRANSFER_READ.0;
const WRITE: u64 = AccessFlags2::TRANSFER_WRITE.0;

fn access(resource: u32, region: Region, access: u64) -> Access {
    Access::new(ResourceId(resource), region, COPY, access)
}

fn copy_barrier() -> MemoryBarrier2 {
    MemoryBarrier2 {
        src_stage_mask: PipelineStageFlags2::COPY,
        src_access_mask: AccessFlags2::TRANSFER_WRITE,
        dst_stage_mask: PipelineStageFlags2::COPY,
        dst_access_mask: AccessFlags2(READ | WRITE),
        ..MemoryBarrier2::zeroed()
    }
}

/// Copies a to b, then b to c, with other commands between.
fn chain_of_copies(between: impl Fn(&mut App<lavascope_state::Collector>)) -> App<lavascope_state::Collector> {
    let mut app = App::collecting();
    for (serial, offset) in [(1, 0), (2, 1024), (3, 2048)] {
        app.make_buffer(serial, 1024, offset);
    }
    app.make_command_buffer(1, CommandBufferLevel::PRIMARY);
    app.begin(1);
    app.copy_buffer(1, 1, 2, 256);
    between(&mut app);
    app.copy_buffer(1, 2, 3, 256);
    app.end(1);
    app.submit(0, 1, Fence(0));
    app
}

#[test]
fn a_copy_becomes_a_read_and_a_write() {
    let app = chain_of_copies(|_| ());
    let program = app.program();
    assert_eq!(program.queues.len(), 2);
    let bound = |offset| Resource {
        kind: ResourceKind::Buffer { size: 1024 },
        binding: Some(MemoryBinding { memory: MemoryId(0), offset, size: 1024 }),
        is_exclusive: true,
        is_sparse: false,
    };
    assert_eq!(program.resources, [bound(0), bound(1024), bound(2048)]);
    let copy = |from, to| {
        let both = [access(from, Region::Buffer(0..256), READ), access(to, Region::Buffer(0..256), WRITE)];
        Command::Action(both.map(|it| it.with_origin(Origin::region(0))).to_vec())
    };
    assert_eq!(program.command_buffers[0].commands, [copy(0, 1), copy(1, 2)]);
    let batch = SubmitBatch { command_buffers: vec![CommandBufferId(0)], ..SubmitBatch::default() };
    assert_eq!(program.steps, [HostStep::Submit { queue: QueueId(0), batches: vec![batch], fence: None }]);
}

#[test]
fn a_missing_barrier_between_copies_is_found() {
    let found = check(chain_of_copies(|_| ()).program());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind, found[0].resource), (HazardKind::ReadAfterWrite, ResourceId(1)));
    assert_eq!(found[0].region, Region::Buffer(0..256));
    let with = chain_of_copies(|app| app.memory_barrier2(1, copy_barrier()));
    assert_eq!(check(with.program()), []);
}

#[test]
fn version_one_keeps_its_stages_with_the_command() {
    let app = chain_of_copies(|app| {
        let barrier = BufferMemoryBarrier {
            src_access_mask: AccessFlags::TRANSFER_WRITE,
            dst_access_mask: AccessFlags::TRANSFER_READ,
            src_queue_family_index: 3,
            dst_queue_family_index: 5,
            buffer: buffer(2),
            offset: 16,
            size: WHOLE_SIZE,
            ..BufferMemoryBarrier::zeroed()
        };
        app.call(
            Api::CmdPipelineBarrier,
            &CmdPipelineBarrierParams {
                command_buffer: command_buffer(1),
                src_stage_mask: PipelineStageFlags::TRANSFER,
                dst_stage_mask: PipelineStageFlags::TRANSFER,
                dependency_flags: DependencyFlags(0),
                memory_barrier_count: 0,
                p_memory_barriers: Ptr::NULL,
                buffer_memory_barrier_count: 1,
                p_buffer_memory_barriers: Ptr::to(&barrier),
                image_memory_barrier_count: 0,
                p_image_memory_barriers: Ptr::NULL,
            },
        );
    });
    let transfer = PipelineStageFlags2::ALL_TRANSFER.0;
    let ownership = QueueFamilyTransfer { src_family: 3, dst_family: 5, is_transition: false };
    let dependency = Dependency {
        scope: SyncScope { src_access: WRITE, dst_access: READ, ..SyncScope::default() },
        target: DependencyTarget::QueueFamilyTransfer {
            resource: ResourceId(1),
            region: Region::Buffer(16..1024),
            transfer: ownership,
        },
    };
    let barrier = Barrier::Sync1 { src_stages: transfer, dst_stages: transfer, dependencies: vec![dependency] };
    assert_eq!(app.program().command_buffers[0].commands[1], Command::Barrier(barrier));
}

#[test]
fn rows_of_a_buffer_are_ranges_and_joined_where_they_touch() {
    let mut app = App::collecting();
    app.make_buffer(1, 1 << 16, 0);
    app.make_image(1, Format::R8G8B8A8_UNORM, [16, 16], 1, 1 << 16);
    app.make_command_buffer(1, CommandBufferLevel::PRIMARY);
    app.begin(1);
    for row_length in [0, 32] {
        let region = BufferImageCopy {
            buffer_offset: 64,
            buffer_row_length: row_length,
            buffer_image_height: 0,
            image_subresource: one_layer(),
            image_offset: Offset3D { x: 4, y: 2, z: 0 },
            image_extent: Extent3D { width: 8, height: 3, depth: 1 },
        };
        app.call(
            Api::CmdCopyBufferToImage,
            &CmdCopyBufferToImageParams {
                command_buffer: command_buffer(1),
                src_buffer: buffer(1),
                dst_image: image(1),
                dst_image_layout: ImageLayout::TRANSFER_DST_OPTIMAL,
                region_count: 1,
                p_regions: Ptr::to(&region),
            },
        );
    }
    let commands = &app.program().command_buffers[0].commands;
    let ranges = |at: usize| match &commands[at] {
        Command::Action(all) => {
            all.iter().filter(|it| it.access == READ).map(|it| it.region.clone()).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(ranges(0), [Region::Buffer(64..64 + 96)]);
    assert_eq!(
        ranges(1),
        [Region::Buffer(64..96), Region::Buffer(64 + 128..96 + 128), Region::Buffer(64 + 256..96 + 256)]
    );
    let Command::Action(all) = &commands[0] else { panic!("no action") };
    let Region::Image(region) = &all[1].region else { panic!("no image") };
    assert_eq!(region.area, Some(Area { offset: [4, 2, 0], extent: [8, 3, 1] }));
    assert_eq!(
        app.program().resources[1].kind,
        ResourceKind::Image(lavascope_sync_ir::ImageDesc {
            format: Format::R8G8B8A8_UNORM,
            extent: [16, 16, 1],
            mips: 1,
            layers: 1,
            tiling: Tiling::Optimal,
            alias: false,
        })
    );
}

#[test]
fn fences_tell_the_host_and_recording_anew_keeps_what_was_submitted() {
    let mut app = chain_of_copies(|app| app.memory_barrier2(1, copy_barrier()));
    app.call(
        Api::CreateFence,
        &CreateFenceParams {
            device: device(DEVICE),
            p_create_info: Ptr::to(&FenceCreateInfo::zeroed()),
            p_allocator: Ptr::NULL,
            p_fence: Ptr::to(&fence(7)),
        },
    );
    app.call(Api::DeviceWaitIdle, &DeviceWaitIdleParams { device: device(DEVICE) });
    app.submit(0, 1, fence(7));
    let fences = [fence(7)];
    let wait = |wait_all| WaitForFencesParams {
        device: device(DEVICE),
        fence_count: 1,
        p_fences: Ptr::to_slice(&fences),
        wait_all,
        timeout: 1,
    };
    const TIMEOUT: u64 = 2;
    app.call_with(Api::WaitForFences, &wait(Bool32::TRUE), TIMEOUT);
    app.call(Api::WaitForFences, &wait(Bool32::TRUE));
    app.begin(1);
    app.copy_buffer(1, 3, 1, 16);
    app.end(1);
    app.submit(0, 1, Fence(0));
    let program = app.program();
    assert_eq!(program.command_buffers.len(), 2);
    assert_eq!(program.command_buffers[0].commands.len(), 3);
    let waits = program.steps.iter().filter(|it| matches!(it, HostStep::WaitFences(_))).count();
    assert_eq!(waits, 1, "a wait that timed out tells nothing");
    assert!(program.steps.contains(&HostStep::WaitFences(vec![FenceId(0)])));
    assert_eq!(check(program), []);
}

#[test]
fn what_dies_is_reported_and_what_is_unknown_is_named() {
    let mut app = chain_of_copies(|app| {
        // Unsupported items count even if the call is cancelled.
        app.cancels_commands = false;
        app.copy_buffer(1, 99, 1, 4);
    });
    app.call(
        Api::DestroyBuffer,
        &DestroyBufferParams { device: device(DEVICE), buffer: buffer(2), p_allocator: Ptr::NULL },
    );
    assert_eq!(app.program().steps.last(), Some(&HostStep::Destroy(ResourceId(1))));
    let missing: Vec<_> = app.tracker.untracked().map(|(it, count)| (it.command, it.reason, count)).collect();
    assert_eq!(missing, [(Api::CmdCopyBuffer, "a buffer whose memory is not known", 1)]);
}

#[test]
fn a_race_between_queues_is_found_unless_a_semaphore_orders_them() {
    for is_ordered in [false, true] {
        let mut app = App::collecting();
        app.make_buffer(1, 64, 0);
        app.make_buffer(2, 64, 64);
        app.call(
            Api::CreateSemaphore,
            &CreateSemaphoreParams {
                device: device(DEVICE),
                p_create_info: Ptr::to(&SemaphoreCreateInfo::zeroed()),
                p_allocator: Ptr::NULL,
                p_semaphore: Ptr::to(&semaphore(1)),
            },
        );
        app.make_command_buffer(1, CommandBufferLevel::PRIMARY);
        app.begin(1);
        app.copy_buffer(1, 1, 2, 64);
        app.end(1);
        let buffers = [command_buffer(1)];
        let semaphores = [semaphore(1)];
        let mut info =
            SubmitInfo { command_buffer_count: 1, p_command_buffers: Ptr::to_slice(&buffers), ..SubmitInfo::zeroed() };
        (info.signal_semaphore_count, info.p_signal_semaphores) = (1, Ptr::to_slice(&semaphores));
        submit(&mut app, 0, &info);
        let stages = [PipelineStageFlags::TRANSFER];
        (info.signal_semaphore_count, info.wait_semaphore_count) = (0, u32::from(is_ordered));
        (info.p_wait_semaphores, info.p_wait_dst_stage_mask) = (Ptr::to_slice(&semaphores), Ptr::to_slice(&stages));
        submit(&mut app, 1, &info);
        let kinds: Vec<HazardKind> = check(app.program()).iter().map(|it| it.kind).collect();
        assert_eq!(kinds, if is_ordered { vec![] } else { vec![HazardKind::WriteRacingWrite] });
    }
}

fn submit(app: &mut App<lavascope_state::Collector>, index: u64, info: &SubmitInfo) {
    app.call(
        Api::QueueSubmit,
        &QueueSubmitParams { queue: queue(index), submit_count: 1, p_submits: Ptr::to(info), fence: Fence(0) },
    );
}

/// Calls with objects of a destroyed device, or with null objects, are reported, even if the call before had the same.
#[test]
fn objects_of_no_device_are_reported() {
    let reason = "an object of a device that nobody created";
    let counts =
        |app: &App<Collector>| app.tracker.untracked().map(|(it, count)| (it.reason, count)).collect::<Vec<_>>();
    let end = |app: &mut App<Collector>, command_buffer: CommandBuffer| {
        app.call(Api::EndCommandBuffer, &EndCommandBufferParams { command_buffer });
    };
    let mut app = App::collecting();
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    end(&mut app, command_buffer(2));
    assert_eq!(counts(&app), []);
    app.call(Api::DestroyDevice, &DestroyDeviceParams { device: device(DEVICE), p_allocator: Ptr::NULL });
    end(&mut app, command_buffer(2));
    assert_eq!(counts(&app), [(reason, 1)]);
    end(&mut app, CommandBuffer(0));
    assert_eq!(counts(&app), [(reason, 2)]);
    app.call(Api::QueueWaitIdle, &QueueWaitIdleParams { queue: queue(0) });
    assert_eq!(counts(&app), [(reason, 2), (reason, 1)]);
}
