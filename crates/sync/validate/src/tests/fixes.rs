//! Fixes are written in the version of the commands that the application uses, and a finding names the command after the
//! access once that is recorded.

use super::*;

fn sync_1(scope: SyncScope) -> Command {
    let SyncScope { src_stages, dst_stages, .. } = scope;
    let dependencies = vec![Dependency { scope, target: DependencyTarget::Global }];
    Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
}

fn sync_2(scope: SyncScope) -> Command {
    Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target: DependencyTarget::Global }] })
}

/// The text of the fix of a hazard that no barrier is near of.
fn fix_after(has_feature: bool, barriers: Vec<Command>) -> String {
    let mut app = App::new();
    if has_feature {
        let at = app.at(Api::CreateDevice);
        app.devices.synchronization2(at);
    }
    app.buffer(0);
    app.record(0, barriers);
    app.record(1, [write(0), read(0)]);
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    diagnostic.fixes[0].text.clone()
}

#[test]
fn fixes_have_the_version_that_the_application_uses() {
    let scope = SyncScope { src_stages: ALL, dst_stages: ALL, ..SyncScope::default() };
    let (old, new) = ("insert vkCmdPipelineBarrier with", "insert vkCmdPipelineBarrier2 with");
    let cases = [
        (false, vec![], old),
        (false, vec![sync_1(scope)], old),
        (true, vec![], new),
        (true, vec![sync_1(scope)], old),
        (true, vec![sync_1(scope), sync_2(scope)], new),
    ];
    for (has_feature, barriers, expected) in cases {
        let text = fix_after(has_feature, barriers.clone());
        assert!(text.starts_with(expected), "{has_feature}, {barriers:?}: {text}");
        assert_eq!(text.contains("VK_PIPELINE_STAGE_2_COPY_BIT"), expected == new, "{text}");
        assert_eq!(text.contains("VK_PIPELINE_STAGE_TRANSFER_BIT"), expected == old, "{text}");
    }
}

/// `vkQueueSubmit` has other names for its masks than `vkQueueSubmit2`.
#[test]
fn a_semaphore_has_the_version_of_its_submission() {
    for (command, mask) in [(Api::QueueSubmit, "pWaitDstStageMask"), (Api::QueueSubmit2, "stageMask")] {
        let mut app = App::new();
        let at = app.at(Api::CreateDevice);
        app.devices.device(at, &[GRAPHICS, GRAPHICS]);
        (0..2).for_each(|it| app.devices.queue(at, QueueId(it), object(HandleType::Queue, it)));
        app.buffer(0);
        app.record(0, [write(0)]);
        app.record(1, [read(0)]);
        for id in 0..2 {
            let batch = SubmitBatch { command_buffers: vec![CommandBufferId(id)], ..SubmitBatch::default() };
            app.step(command, HostStep::Submit { queue: QueueId(id), batches: vec![batch], fence: None });
        }
        let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
        let changes = &diagnostic.fixes[0].changes;
        let targets: Vec<&str> = changes.iter().map(|it| it.target.as_str()).collect();
        assert_eq!(targets, ["the submission", "the submission"]);
        let fields: Vec<&str> = changes.iter().flat_map(|it| &it.edits).map(|it| it.field.as_str()).collect();
        let signal_mask = (command == Api::QueueSubmit2).then_some("stageMask");
        let [signal, wait] = match command {
            Api::QueueSubmit => ["pSignalSemaphores", "pWaitSemaphores"],
            _ => ["pSignalSemaphoreInfos", "pWaitSemaphoreInfos"],
        };
        let expected: Vec<&str> = [signal].into_iter().chain(signal_mask).chain([wait, mask]).collect();
        assert_eq!(fields, expected, "{changes:?}");
    }
}

#[test]
fn the_command_after_an_access_is_named_when_it_is_recorded() {
    let mut app = App::new();
    app.buffer(0);
    app.buffer(1);
    let after = |app: &App| app.diagnostics().iter().map(|it| it.locations[0].neighbors.clone()).collect::<Vec<_>>();
    // Nothing comes after the access.
    app.record(0, [write(0), read(0)]);
    let none = after(&app);
    assert_eq!(none[0].as_ref().map(|it| it.after.as_deref()), Some(None));
    app.record(1, [write(1), write(1), read(0)]);
    let some = after(&app);
    let last = some.last().cloned().flatten().expect("the neighbors");
    assert_eq!([last.before.as_deref(), last.after.as_deref()], [Some("vkCmdCopyBuffer"); 2]);
}

/// A recording that did not end says nothing about the next one.
#[test]
fn a_recording_that_did_not_end_has_no_next_command() {
    let mut app = App::new();
    app.buffer(0);
    let (at, object) = (app.at(Api::BeginCommandBuffer), object(HandleType::CommandBuffer, 0));
    app.devices.command_buffer(at, CommandBufferId(0), object, GRAPHICS);
    app.devices.begin(at, CommandBufferId(0), object, false);
    for item in [write(0), write(0)] {
        let at = app.at(Api::CmdCopyBuffer);
        let Command::Action(accesses) = item else { panic!("an action") };
        app.devices.action_recorded(&at, CommandBufferId(0), &accesses);
    }
    app.buffer(1);
    app.record(0, [read(1), read(1), read(1)]);
    let neighbors = app.diagnostics()[0].locations[0].neighbors.clone().expect("the neighbors");
    assert_eq!(neighbors.after, None);
}
