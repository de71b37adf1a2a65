//! Events of both versions, set by the device or by the host.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage, *};
use lavascope_engine::check;
use lavascope_state::Collector;
use lavascope_sync_ir::{EventId, HazardKind, HostStep};

/// Copies from buffer 1 to 2 and from 2 to 3, with other commands between.
fn chain(between: impl Fn(&mut App<Collector>)) -> App<Collector> {
    let mut app = App::collecting();
    (1..4).for_each(|it| app.make_buffer(it, 256, it * 256));
    create!(app, CreateEvent, CreateEventParams, EventCreateInfo::zeroed(), p_event: event(1));
    app.make_command_buffer(2, CommandBufferLevel::PRIMARY);
    app.begin(2);
    app.copy_buffer(2, 1, 2, 256);
    between(&mut app);
    app.copy_buffer(2, 2, 3, 256);
    app.end(2);
    app.submit(0, 2, Fence(0));
    app
}

fn kinds(app: &App<Collector>) -> Vec<HazardKind> {
    check(app.program()).iter().map(|it| it.kind).collect()
}

fn wait_1(app: &mut App<Collector>) {
    let barrier = MemoryBarrier {
        src_access_mask: AccessFlags::TRANSFER_WRITE,
        dst_access_mask: AccessFlags::TRANSFER_READ,
        ..MemoryBarrier::zeroed()
    };
    record!(
        app,
        CmdWaitEvents,
        CmdWaitEventsParams {
            event_count: 1,
            p_events: Ptr::to(&event(1)),
            src_stage_mask: PipelineStageFlags::TRANSFER,
            dst_stage_mask: PipelineStageFlags::TRANSFER,
            memory_barrier_count: 1,
            p_memory_barriers: Ptr::to(&barrier),
            buffer_memory_barrier_count: 0,
            p_buffer_memory_barriers: Ptr::NULL,
            image_memory_barrier_count: 0,
            p_image_memory_barriers: Ptr::NULL,
        }
    );
}

fn set_1(app: &mut App<Collector>) {
    let stage_mask = PipelineStageFlags::TRANSFER;
    record!(app, CmdSetEvent, CmdSetEventParams { event: event(1), stage_mask: stage_mask });
}

#[test]
fn version_1_orders_what_was_before_the_set() {
    let set_and_wait = chain(|app| {
        set_1(app);
        wait_1(app);
    });
    assert_eq!(kinds(&set_and_wait), []);
    assert_eq!(kinds(&chain(set_1)), [HazardKind::ReadAfterWrite]);
    assert_eq!(kinds(&chain(wait_1)), [HazardKind::ReadAfterWrite], "nobody has set it");
    let reset = chain(|app| {
        set_1(app);
        let stage_mask = PipelineStageFlags::TRANSFER;
        record!(app, CmdResetEvent, CmdResetEventParams { event: event(1), stage_mask: stage_mask });
        wait_1(app);
    });
    assert_eq!(kinds(&reset), [HazardKind::ReadAfterWrite]);
}

#[test]
fn version_2_has_its_dependency_at_the_set_and_at_the_wait() {
    let barrier = MemoryBarrier2 {
        src_stage_mask: Stage::COPY,
        src_access_mask: Bits::TRANSFER_WRITE,
        dst_stage_mask: Stage::COPY,
        dst_access_mask: Bits::TRANSFER_READ,
        ..MemoryBarrier2::zeroed()
    };
    let info =
        DependencyInfo { memory_barrier_count: 1, p_memory_barriers: Ptr::to(&barrier), ..DependencyInfo::zeroed() };
    let app = chain(|app| {
        record!(app, CmdSetEvent2, CmdSetEvent2Params { event: event(1), p_dependency_info: Ptr::to(&info) });
        record!(
            app,
            CmdWaitEvents2,
            CmdWaitEvents2Params { event_count: 1, p_events: Ptr::to(&event(1)), p_dependency_infos: Ptr::to(&info) }
        );
    });
    assert_eq!((kinds(&app), app.tracker.untracked().count()), (vec![], 0));
}

#[test]
fn the_host_sets_and_resets_events() {
    let mut app = App::collecting();
    create!(app, CreateEvent, CreateEventParams, EventCreateInfo::zeroed(), p_event: event(1));
    call!(app, SetEvent, SetEventParams { event: event(1) });
    call!(app, ResetEvent, ResetEventParams { event: event(1) });
    let asked = GetEventStatusParams { device: device(DEVICE), event: event(1) };
    app.call_with(Command::GetEventStatus, &asked, Result::EVENT_SET.0 as u64);
    // A query of the event status orders nothing.
    assert_eq!(app.program().steps, [HostStep::SetEvent(EventId(0)), HostStep::ResetEvent(EventId(0))]);
}
