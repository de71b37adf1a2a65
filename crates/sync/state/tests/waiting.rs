//! Waits and queries of the host, and external semaphores and fences.

mod common;

use common::*;
use lavascope_abi::*;
use lavascope_engine::check;
use lavascope_state::Collector;
use lavascope_sync_ir::{Certainty, FenceId, HazardKind, HostStep, SemaphoreId, SemaphorePoint};

/// Two buffers, and a command buffer that copies one to the other.
fn app() -> App<Collector> {
    let mut app = App::collecting();
    app.make_buffer(1, 256, 0);
    app.make_buffer(2, 256, 256);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    app.copy_buffer(2, 1, 2, 256);
    app.end(2);
    for serial in 1..4 {
        create!(app, CreateFence, CreateFenceParams, FenceCreateInfo::zeroed(), p_fence: fence(serial));
        let info = SemaphoreCreateInfo::zeroed();
        create!(app, CreateSemaphore, CreateSemaphoreParams, info, p_semaphore: semaphore(serial));
    }
    let ty = SemaphoreTypeCreateInfo { semaphore_type: SemaphoreType::TIMELINE, ..SemaphoreTypeCreateInfo::zeroed() };
    let info = SemaphoreCreateInfo { p_next: Ptr::to(&ty).cast(), ..SemaphoreCreateInfo::zeroed() };
    create!(app, CreateSemaphore, CreateSemaphoreParams, info, p_semaphore: semaphore(4));
    app
}

fn submit(app: &mut App<Collector>, waits: &[(u64, u64)], signals: &[(u64, u64)], signaled: Fence) {
    submit_of(app, 2, waits, signals, signaled);
}

/// Submits a command buffer with semaphores and their values.
fn submit_of(app: &mut App<Collector>, serial: u64, waits: &[(u64, u64)], signals: &[(u64, u64)], signaled: Fence) {
    let info = |pair: &(u64, u64)| SemaphoreSubmitInfo {
        semaphore: semaphore(pair.0),
        value: pair.1,
        stage_mask: PipelineStageFlags2::ALL_COMMANDS,
        ..SemaphoreSubmitInfo::zeroed()
    };
    let (waits, signals): (Vec<_>, Vec<_>) = (waits.iter().map(info).collect(), signals.iter().map(info).collect());
    let buffer =
        CommandBufferSubmitInfo { command_buffer: command_buffer(serial), ..CommandBufferSubmitInfo::zeroed() };
    let info = SubmitInfo2 {
        wait_semaphore_info_count: waits.len() as u32,
        p_wait_semaphore_infos: Ptr::to_slice(&waits),
        command_buffer_info_count: 1,
        p_command_buffer_infos: Ptr::to(&buffer),
        signal_semaphore_info_count: signals.len() as u32,
        p_signal_semaphore_infos: Ptr::to_slice(&signals),
        ..SubmitInfo2::zeroed()
    };
    let params = QueueSubmit2Params { queue: queue(0), submit_count: 1, p_submits: Ptr::to(&info), fence: signaled };
    app.call(Command::QueueSubmit2, &params);
}

/// The host writes to the source of the copy.
fn host_writes(app: &mut App<Collector>) {
    let range = MappedMemoryRange { memory: memory(MEMORY), offset: 0, size: 256, ..MappedMemoryRange::zeroed() };
    call!(
        app,
        FlushMappedMemoryRanges,
        FlushMappedMemoryRangesParams { memory_range_count: 1, p_memory_ranges: Ptr::to(&range) }
    );
}

fn kinds(app: &App<Collector>) -> Vec<HazardKind> {
    check(app.program()).iter().map(|it| it.kind).collect()
}

fn missing(app: &App<Collector>) -> Vec<&'static str> {
    app.tracker.untracked().map(|it| it.0.reason).collect()
}

fn wait_fences(app: &mut App<Collector>, fences: &[Fence], wait_all: bool) {
    call!(
        app,
        WaitForFences,
        WaitForFencesParams {
            fence_count: fences.len() as u32,
            p_fences: Ptr::to_slice(fences),
            wait_all: Bool32(u32::from(wait_all)),
            timeout: u64::MAX,
        }
    );
}

#[test]
fn a_wait_for_any_fence_tells_nothing_until_its_status_is_asked() {
    let mut app = app();
    submit(&mut app, &[], &[], fence(1));
    wait_fences(&mut app, &[fence(1), fence(2)], false);
    assert_eq!(app.program().steps.len(), 1);
    assert_eq!(missing(&app), ["which of several fences is signaled is not reported"]);
    let asked = |fence| GetFenceStatusParams { device: device(DEVICE), fence };
    app.call_with(Command::GetFenceStatus, &asked(fence(2)), Result::NOT_READY.0 as u64);
    app.call(Command::GetFenceStatus, &asked(fence(1)));
    assert_eq!(app.program().steps[1..], [HostStep::WaitFences(vec![FenceId(0)])]);
    host_writes(&mut app);
    assert_eq!(kinds(&app), []);
}

/// Whichever fence is signaled, the first submission of its queue is complete.
#[test]
fn a_wait_for_any_fence_of_one_queue_is_one_for_the_first() {
    let mut app = app();
    submit(&mut app, &[], &[], fence(3));
    submit(&mut app, &[], &[], fence(1));
    submit(&mut app, &[], &[], fence(2));
    wait_fences(&mut app, &[fence(1), fence(2)], false);
    assert_eq!(app.program().steps[3..], [HostStep::WaitFences(vec![FenceId(0)])]);
    assert!(missing(&app).is_empty(), "{:?}", missing(&app));
    // A fence that was reset may be signaled externally.
    let fences = [fence(1)];
    call!(app, ResetFences, ResetFencesParams { fence_count: 1, p_fences: Ptr::to_slice(&fences) });
    wait_fences(&mut app, &[fence(1), fence(2)], false);
    assert_eq!(missing(&app), ["which of several fences is signaled is not reported"]);
}

#[test]
fn the_host_knows_what_a_counter_has_reached() {
    for (reached, is_known) in [(7, true), (0, false)] {
        let mut app = app();
        submit(&mut app, &[], &[(4, 7)], Fence(0));
        call!(
            app,
            GetSemaphoreCounterValue,
            GetSemaphoreCounterValueParams { semaphore: semaphore(4), p_value: Ptr::to(&reached) }
        );
        host_writes(&mut app);
        assert_eq!(kinds(&app), if is_known { vec![] } else { vec![HazardKind::WriteRacingRead] });
    }
}

#[test]
fn waits_for_one_fence_all_fences_and_semaphores_are_reported() {
    let mut app = app();
    let (semaphores, values) = ([semaphore(4)], [3]);
    let info = SemaphoreWaitInfo {
        semaphore_count: 1,
        p_semaphores: Ptr::to_slice(&semaphores),
        p_values: Ptr::to_slice(&values),
        ..SemaphoreWaitInfo::zeroed()
    };
    wait_fences(&mut app, &[fence(1), fence(3)], true);
    wait_fences(&mut app, &[fence(2)], false);
    call!(app, WaitSemaphores, WaitSemaphoresParams { p_wait_info: Ptr::to(&info), timeout: 1 });
    call!(app, DeviceWaitIdle, DeviceWaitIdleParams {});
    let timed_out = WaitSemaphoresParams { device: device(DEVICE), p_wait_info: Ptr::to(&info), timeout: 1 };
    app.call_with(Command::WaitSemaphores, &timed_out, Result::TIMEOUT.0 as u64);
    let point = SemaphorePoint { semaphore: SemaphoreId(3), value: Some(3) };
    let wanted = [
        HostStep::WaitFences(vec![FenceId(0), FenceId(2)]),
        HostStep::WaitFences(vec![FenceId(1)]),
        HostStep::WaitSemaphores(vec![point]),
        HostStep::DeviceIdle,
    ];
    assert_eq!(app.program().steps, wanted);
}

fn make_swapchain(app: &mut App<Collector>) {
    let info = SwapchainCreateInfoKHR {
        image_format: Format::B8G8R8A8_UNORM,
        image_extent: Extent2D { width: 64, height: 32 },
        image_array_layers: 1,
        ..SwapchainCreateInfoKHR::zeroed()
    };
    create!(app, CreateSwapchainKHR, CreateSwapchainKHRParams, info, p_swapchain: swapchain(1));
    let images = [image(7), image(8)];
    call!(
        app,
        GetSwapchainImagesKHR,
        GetSwapchainImagesKHRParams {
            swapchain: swapchain(1),
            p_swapchain_image_count: Ptr::to(&2),
            p_swapchain_images: Ptr::to_slice(&images),
        }
    );
    call!(
        app,
        AcquireNextImageKHR,
        AcquireNextImageKHRParams {
            swapchain: swapchain(1),
            timeout: 0,
            semaphore: semaphore(1),
            fence: Fence(0),
            p_image_index: Ptr::to(&1),
        }
    );
}

/// Presents the acquired image, with this structure in the chain.
fn present(app: &mut App<Collector>, next: Ptr<Opaque>) {
    let (waits, swapchains, indices) = ([semaphore(2)], [swapchain(1)], [1]);
    let info = PresentInfoKHR {
        p_next: next,
        wait_semaphore_count: 1,
        p_wait_semaphores: Ptr::to_slice(&waits),
        swapchain_count: 1,
        p_swapchains: Ptr::to_slice(&swapchains),
        p_image_indices: Ptr::to_slice(&indices),
        ..PresentInfoKHR::zeroed()
    };
    app.call(Command::QueuePresentKHR, &QueuePresentKHRParams { queue: queue(0), p_present_info: Ptr::to(&info) });
}

#[test]
fn the_fence_of_a_presentation_tells_that_it_waited() {
    for is_waited in [true, false] {
        let mut app = app();
        make_swapchain(&mut app);
        submit(&mut app, &[(1, 0)], &[(2, 0)], Fence(0));
        let fences = [fence(1)];
        let chained = SwapchainPresentFenceInfoKHR {
            swapchain_count: 1,
            p_fences: Ptr::to_slice(&fences),
            ..SwapchainPresentFenceInfoKHR::zeroed()
        };
        present(&mut app, Ptr::to(&chained).cast());
        if is_waited {
            wait_fences(&mut app, &fences, true);
        }
        host_writes(&mut app);
        assert_eq!(kinds(&app), if is_waited { vec![] } else { vec![HazardKind::WriteRacingRead] });
        assert_eq!(missing(&app), [""; 0]);
    }
}

#[test]
fn the_host_waits_for_presentations_by_their_numbers() {
    for (number, is_known) in [(5, true), (4, false)] {
        let mut app = app();
        make_swapchain(&mut app);
        submit(&mut app, &[(1, 0)], &[(2, 0)], Fence(0));
        let chained = PresentIdKHR { swapchain_count: 1, p_present_ids: Ptr::to(&5), ..PresentIdKHR::zeroed() };
        present(&mut app, Ptr::to(&chained).cast());
        call!(
            app,
            WaitForPresentKHR,
            WaitForPresentKHRParams { swapchain: swapchain(1), present_id: number, timeout: 1 }
        );
        host_writes(&mut app);
        assert_eq!(kinds(&app), if is_known { vec![] } else { vec![HazardKind::WriteRacingRead] });
    }
}

#[test]
fn an_image_is_released_when_all_uses_of_it_are_over() {
    for is_waited in [true, false] {
        let mut app = app();
        make_swapchain(&mut app);
        app.make_command_buffer(3, CommandBufferLevel::PRIMARY);
        app.begin(3);
        app.call(
            Command::CmdClearColorImage,
            &CmdClearColorImageParams {
                command_buffer: command_buffer(3),
                image: image(8),
                image_layout: ImageLayout::GENERAL,
                p_color: Ptr::to(&ClearColorValue::zeroed()),
                range_count: 1,
                p_ranges: Ptr::to(&whole_range(ImageAspectFlags::COLOR)),
            },
        );
        app.end(3);
        submit_of(&mut app, 3, &[(1, 0)], &[], fence(1));
        if is_waited {
            wait_fences(&mut app, &[fence(1)], true);
        }
        let info = ReleaseSwapchainImagesInfoKHR {
            swapchain: swapchain(1),
            image_index_count: 1,
            p_image_indices: Ptr::to(&1),
            ..ReleaseSwapchainImagesInfoKHR::zeroed()
        };
        call!(app, ReleaseSwapchainImagesKHR, ReleaseSwapchainImagesKHRParams { p_release_info: Ptr::to(&info) });
        assert_eq!(kinds(&app), if is_waited { vec![] } else { vec![HazardKind::PresentAfterWrite] });
    }
}

fn import(app: &mut App<Collector>, serial: u64, flags: SemaphoreImportFlags) {
    let info = ImportSemaphoreFdInfoKHR { semaphore: semaphore(serial), flags, ..ImportSemaphoreFdInfoKHR::zeroed() };
    call!(app, ImportSemaphoreFdKHR, ImportSemaphoreFdKHRParams { p_import_semaphore_fd_info: Ptr::to(&info) });
}

const FOREIGN: &str = "a semaphore that others signal is taken to wait for all that came before";

#[test]
fn a_semaphore_that_others_signal_is_taken_to_order_everything() {
    for (serial, value, flags) in [(1, 0, SemaphoreImportFlags::TEMPORARY), (4, 9, SemaphoreImportFlags(0))] {
        let mut app = app();
        import(&mut app, serial, flags);
        submit(&mut app, &[], &[], Fence(0));
        submit(&mut app, &[(serial, value)], &[], Fence(0));
        assert_eq!((kinds(&app), missing(&app)), (vec![], vec![FOREIGN]));
        // A wait that orders nothing still is a wait.
        submit(&mut app, &[], &[], Fence(0));
        assert_eq!(kinds(&app), [HazardKind::WriteAfterWrite]);
    }
}

#[test]
fn what_the_device_signals_itself_is_known_although_others_may() {
    let mut app = app();
    import(&mut app, 4, SemaphoreImportFlags(0));
    submit(&mut app, &[], &[(4, 5)], Fence(0));
    submit(&mut app, &[(4, 5)], &[], Fence(0));
    assert_eq!((kinds(&app), missing(&app)), (vec![], vec![]));
    assert!(!app.program().steps.contains(&HostStep::DeviceIdle));
}

#[test]
fn the_host_may_wait_for_what_was_exported() {
    for is_semaphore in [true, false] {
        let mut app = app();
        submit(&mut app, &[], &[(1, 0)], fence(1));
        let handle_type = ExternalSemaphoreHandleTypeFlagBits::SYNC_FD;
        let info = SemaphoreGetFdInfoKHR { semaphore: semaphore(1), handle_type, ..SemaphoreGetFdInfoKHR::zeroed() };
        let of_fence = FenceGetFdInfoKHR { fence: fence(1), ..FenceGetFdInfoKHR::zeroed() };
        if is_semaphore {
            call!(app, GetSemaphoreFdKHR, GetSemaphoreFdKHRParams { p_get_fd_info: Ptr::to(&info), p_fd: Ptr::to(&3) });
        } else {
            call!(app, GetFenceFdKHR, GetFenceFdKHRParams { p_get_fd_info: Ptr::to(&of_fence), p_fd: Ptr::to(&3) });
        }
        host_writes(&mut app);
        assert_eq!(kinds(&app), []);
        assert_eq!(missing(&app), ["whoever gets an exported payload is taken to wait for it at once"]);
    }
}

/// A buffer with some usage. The command buffer copies from or to it, and it is mapped and unmapped afterwards.
fn mapped(
    usage: BufferUsageFlags,
    is_source: bool,
    between: impl Fn(&mut App<Collector>),
) -> (Vec<HazardKind>, HostStep) {
    let mut app = App::collecting();
    let info = BufferCreateInfo { size: 256, usage, ..BufferCreateInfo::zeroed() };
    create!(app, CreateBuffer, CreateBufferParams, info, p_buffer: buffer(1));
    call!(
        app,
        BindBufferMemory,
        BindBufferMemoryParams { buffer: buffer(1), memory: memory(MEMORY), memory_offset: 0 }
    );
    app.make_buffer(2, 256, 256);
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    if is_source {
        app.copy_buffer(2, 1, 2, 256);
    } else {
        app.copy_buffer(2, 2, 1, 256);
    }
    app.end(2);
    create!(app, CreateFence, CreateFenceParams, FenceCreateInfo::zeroed(), p_fence: fence(1));
    app.submit(0, 2, fence(1));
    let address = 0_u64;
    call!(
        app,
        MapMemory,
        MapMemoryParams {
            memory: memory(MEMORY),
            offset: 0,
            size: 256,
            flags: MemoryMapFlags(0),
            pp_data: Ptr::to(&address).cast(),
        }
    );
    between(&mut app);
    call!(app, UnmapMemory, UnmapMemoryParams { memory: memory(MEMORY) });
    let last = app.program().steps.last().cloned().unwrap_or(HostStep::DeviceIdle);
    (kinds(&app), last)
}

#[test]
fn a_map_that_is_undone_at_once_is_an_access_of_the_host_most_likely() {
    let nothing = |_: &mut App<Collector>| {};
    let wait = |app: &mut App<Collector>| wait_fences(app, &[fence(1)], true);
    let access = |is_write| HostStep::HostAccess {
        resource: lavascope_sync_ir::ResourceId(0),
        region: lavascope_sync_ir::Region::Buffer(0..256),
        is_write,
        certainty: Certainty::Maybe,
    };
    let uniform = BufferUsageFlags(BufferUsageFlags::UNIFORM_BUFFER.0 | BufferUsageFlags::TRANSFER_SRC.0);
    assert_eq!(mapped(uniform, true, nothing), (vec![HazardKind::WriteRacingRead], access(true)));
    assert_eq!(mapped(uniform, true, wait), (vec![], access(true)));
    // It may be mapped for reading, so only device writes conflict.
    let both = BufferUsageFlags(BufferUsageFlags::TRANSFER_DST.0 | BufferUsageFlags::TRANSFER_SRC.0);
    assert_eq!(mapped(both, true, nothing), (vec![], access(false)));
    assert_eq!(mapped(both, false, nothing), (vec![HazardKind::ReadRacingWrite], access(false)));
    // Memory that stays mapped across a submission gives no access.
    let submit = |app: &mut App<Collector>| app.submit(1, 2, Fence(0));
    assert!(!matches!(mapped(both, true, submit).1, HostStep::HostAccess { .. }));
}
