//! Hazards that share one fix are one finding, and different bugs are not.

use super::*;
use lavascope_diag::DiagnosticIdentity;

/// Part of a buffer is read by a dispatch.
fn read_part(resource: u32, bytes: Range<u64>) -> Command {
    let (stage, access) = (S::COMPUTE_SHADER.0, A::SHADER_STORAGE_READ.0);
    Command::Action(vec![Access::new(ResourceId(resource), Region::Buffer(bytes), stage, access)])
}

fn write_part(resource: u32, bytes: Range<u64>) -> Command {
    Command::Action(vec![Access::new(ResourceId(resource), Region::Buffer(bytes), S::COPY.0, A::TRANSFER_WRITE.0)])
}

/// Orders everything.
fn full_barrier() -> Command {
    let all = A::MEMORY_READ.0 | A::MEMORY_WRITE.0;
    let scope = SyncScope { src_stages: ALL, src_access: all, dst_stages: ALL, dst_access: all };
    Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target: DependencyTarget::Global }] })
}

/// The host writes a buffer while all draws of the last frame may still read it.
fn host_write(app: &mut App, resource: u32) {
    let (resource, region, certainty) = (ResourceId(resource), Region::Buffer(0..64), Certainty::Certain);
    app.step(Api::UnmapMemory, HostStep::HostAccess { resource, region, is_write: true, certainty });
}

fn summary(app: &App) -> Vec<(u64, usize, u64)> {
    app.diagnostics().iter().map(|it| (it.sites, it.more_sites.len(), it.count)).collect()
}

#[test]
fn one_write_that_races_all_reads_of_a_frame_is_one_finding() {
    let mut app = App::new();
    app.buffer(0);
    for frame in 0..10 {
        app.record(1, (0..16).map(|it| read_part(0, 4 * it..4 * it + 4)));
        let command_buffers = vec![CommandBufferId(1)];
        app.submit(SubmitBatch { command_buffers, ..SubmitBatch::default() }, None);
        host_write(&mut app, 0);
        app.step(Api::QueueWaitIdle, HostStep::QueueIdle(QueueId(0)));
        assert_eq!(summary(&app), [(16, 4, 16 * (frame + 1))]);
    }
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    assert_eq!(&*diagnostic.code.0, "SYNC-HAZARD-WRITE-RACING-READ");
    assert!(diagnostic.fixes.first().is_some_and(|it| it.is_verified), "{diagnostic:#?}");
    let places: Vec<&str> = diagnostic.more_sites.iter().map(|it| &*it.place).collect();
    assert!(places.iter().all(|it| it.contains("of VkCommandBuffer#1")), "the reads differ: {places:?}");
    assert_eq!(diagnostic.more_sites[0].resource, "VkBuffer#0[4..8]");
    // Messengers still hear of each pair, with its own text.
    assert_eq!(app.devices.causes.site_diagnostics.len(), 15);
    assert!(app.devices.causes.site_diagnostics.iter().all(|it| it.fixes.len() == 1), "the fix that was verified");
}

/// Found while the command buffer is recorded, one after the other.
#[test]
fn one_missing_barrier_before_many_reads_is_one_finding() {
    let mut app = App::new();
    app.buffer(0);
    for frame in 1..4 {
        let reads = (0..8).map(|_| read_part(0, 0..16));
        app.record(1, std::iter::once(write_part(0, 0..16)).chain(reads));
        app.submit_one(1);
        app.step(Api::QueueWaitIdle, HostStep::QueueIdle(QueueId(0)));
        assert_eq!(summary(&app), [(8, 4, 8 * frame)], "{:#?}", app.diagnostics());
    }
}

/// The barrier that is missing first would not help the second read, which comes after another write.
#[test]
fn two_missing_barriers_are_two_findings_in_every_frame() {
    let mut app = App::new();
    (0..2).for_each(|it| app.buffer(it));
    for frame in 1..4 {
        // What stands before differs from frame to frame.
        let before = (0..frame).map(|_| read(1));
        let pair = [write_part(0, 0..16), read_part(0, 0..16)];
        let commands = before.chain(pair.clone()).chain([full_barrier()]).chain(pair);
        app.record(1, commands);
        app.submit_one(1);
        app.step(Api::QueueWaitIdle, HostStep::QueueIdle(QueueId(0)));
        assert_eq!(summary(&app), [(1, 0, frame), (1, 0, frame)], "{:#?}", app.diagnostics());
    }
    let [one, other] = app.diagnostics() else { panic!("two findings") };
    let identities = [one, other].map(DiagnosticIdentity::of);
    assert_ne!(identities[0].fingerprint(), identities[1].fingerprint());
    assert_eq!(identities[1].lines.last().map(String::as_str), Some("order: 2nd like this"));
}

#[test]
fn reads_of_two_resources_between_other_commands_are_two_findings() {
    let mut app = App::new();
    (0..2).for_each(|it| app.buffer(it));
    let commands =
        [write_part(0, 0..16), read_part(0, 0..16), full_barrier(), write_part(1, 0..16), read_part(1, 0..16)];
    app.record(1, commands);
    assert_eq!(summary(&app), [(1, 0, 1), (1, 0, 1)]);
    // Between the same two commands, one barrier is missing for both.
    let mut app = App::new();
    (0..2).for_each(|it| app.buffer(it));
    let both = |stage: S, access: A| {
        let own = |it| Access::new(ResourceId(it), Region::Buffer(0..16), stage.0, access.0);
        Command::Action(vec![own(0), own(1)])
    };
    app.record(1, [both(S::COPY, A::TRANSFER_WRITE), both(S::COMPUTE_SHADER, A::SHADER_STORAGE_READ)]);
    assert_eq!(summary(&app), [(2, 1, 2)]);
    assert_eq!(app.diagnostics()[0].more_sites[0].resource, "VkBuffer#1[0..16]");
}

/// A program that records something else each time, for as long as it runs.
#[test]
fn a_cause_stays_one_where_frames_differ() {
    let mut app = App::new();
    (0..2).for_each(|it| app.buffer(it));
    for frame in 0..40 {
        let (before, reads) = ((0..1 + frame % 7).map(|_| read(1)), (0..3 + frame % 5).map(|_| read_part(0, 0..16)));
        app.record(1, before.chain([write_part(0, 0..16)]).chain(reads));
        app.submit_one(1);
        app.step(Api::QueueWaitIdle, HostStep::QueueIdle(QueueId(0)));
        let [diagnostic] = app.diagnostics() else { panic!("frame {frame}: {:#?}", app.diagnostics()) };
        assert_eq!((diagnostic.sites, diagnostic.frames), (3, None));
    }
}

/// A buffer without a name that each frame makes anew.
#[test]
fn a_resource_of_each_frame_is_one_cause() {
    let mut app = App::new();
    for frame in 0..20 {
        app.buffer(frame);
        app.record(1, [write_part(frame, 0..16), read_part(frame, 0..16)]);
        app.submit_one(1);
        app.step(Api::QueueWaitIdle, HostStep::QueueIdle(QueueId(0)));
        app.step(Api::DestroyBuffer, HostStep::Destroy(ResourceId(frame)));
    }
    assert_eq!(summary(&app), [(1, 0, 20)]);
    // Two that live at once are two.
    (30..32).for_each(|it| app.buffer(it));
    for id in [30, 31] {
        app.record(id, [write_part(id, 0..16), read_part(id, 0..16)]);
    }
    assert_eq!(app.diagnostics().len(), 2);
}

#[test]
fn frames_are_counted_by_presentations() {
    let mut app = App::new();
    (0..2).for_each(|it| app.buffer(it));
    for frame in 0..9 {
        app.record(1, [write_part(0, 0..16), read_part(0, 0..16)].into_iter().take(1 + usize::from(frame % 2 == 0)));
        let images = vec![ResourceId(1)];
        app.step(Api::QueuePresentKHR, HostStep::Present { queue: QueueId(0), waits: Vec::new(), images });
    }
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    assert_eq!(diagnostic.frames, Some(lavascope_diag::FrameRange { first: 0, last: 8, count: 5 }));
}
