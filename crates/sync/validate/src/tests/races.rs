//! Races of events: inside of one command buffer while it is recorded, between command buffers when they are submitted.

use lavascope_sync_ir::{Barrier, Dependency, DependencyTarget, EventId, SetEvent, SyncScope, WaitEvents};

use super::*;

const EVENT: EventId = EventId(4);

fn set(stages: S) -> Command {
    Command::SetEvent(SetEvent::Sync1 { event: EVENT, stages: stages.0 })
}

fn reset(stages: S) -> Command {
    Command::ResetEvent { event: EVENT, stages: stages.0 }
}

fn wait() -> Command {
    let (src_stages, dst_stages) = (S::COPY.0, S::VERTEX_SHADER.0);
    Command::WaitEvents(WaitEvents::Sync1 { events: vec![EVENT], src_stages, dst_stages, dependencies: Vec::new() })
}

fn barrier(src: S, dst: S) -> Command {
    let scope = SyncScope { src_stages: src.0, dst_stages: dst.0, ..SyncScope::default() };
    Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target: DependencyTarget::Global }] })
}

fn app() -> App {
    let mut app = App::new();
    let at = app.at(Api::CreateEvent);
    app.devices.event(at, EVENT, object(HandleType::Event, 4));
    app
}

/// The codes of what was found since the last time, each with whether that was while recording.
fn take_found(app: &mut App) -> Vec<(String, bool)> {
    let new = std::mem::take(&mut app.devices.causes.new);
    let code = |cause: usize| app.devices.causes.diagnostics[cause].code.0.to_string();
    new.iter().map(|it| (code(it.cause), it.is_recorded)).collect()
}

fn recorded(code: &str) -> (String, bool) {
    (code.to_owned(), true)
}

const SET_RACE: &str = "SYNC-vkCmdCopyBuffer-set-race";

#[test]
fn races_in_a_command_buffer_are_found_while_it_is_recorded() {
    let mut app = app();
    app.record(1, [set(S::COPY), set(S::COMPUTE_SHADER)]);
    assert_eq!(take_found(&mut app), [recorded(SET_RACE)]);
    assert!(app.diagnostics()[0].locations[0].text.contains("VkCommandBuffer#1"), "{:?}", app.diagnostics());
    // Not again when it is executed.
    app.submit_one(1);
    app.step(Api::QueueWaitIdle, HostStep::QueueIdle(QueueId(0)));
    assert_eq!(take_found(&mut app), []);
    // In order, nothing is wrong.
    app.record(2, [set(S::COPY), barrier(S::COPY, S::COMPUTE_SHADER), set(S::COMPUTE_SHADER)]);
    app.submit_one(2);
    assert_eq!(take_found(&mut app), []);
}

#[test]
fn races_between_command_buffers_are_found_when_they_are_submitted() {
    let mut app = app();
    app.record(1, [set(S::COPY)]);
    app.record(2, [set(S::COMPUTE_SHADER)]);
    app.submit_one(1);
    app.submit_one(2);
    assert_eq!(take_found(&mut app), [(SET_RACE.to_owned(), false)]);
}

/// Alone, a command buffer that waits first waits for nothing: what it does later races only where the event was set.
#[test]
fn a_race_that_needs_an_earlier_command_buffer_is_found_when_it_is_submitted() {
    let mut app = app();
    app.record(1, [set(S::COPY)]);
    app.record(2, [wait(), set(S::COPY)]);
    assert_eq!(take_found(&mut app), []);
    app.submit_one(1);
    app.submit_one(2);
    assert_eq!(take_found(&mut app), [("SYNC-vkCmdCopyBuffer-wait".to_owned(), false)]);
}

/// A secondary command buffer is looked at where it is executed.
#[test]
fn races_with_executed_command_buffers_are_found_while_recording() {
    let mut app = app();
    let (at, part) = (app.at(Api::BeginCommandBuffer), CommandBufferId(3));
    app.devices.command_buffer(at, part, object(HandleType::CommandBuffer, 3), GRAPHICS);
    app.devices.begin(at, part, object(HandleType::CommandBuffer, 3), true);
    for command in [set(S::COPY), set(S::COMPUTE_SHADER)] {
        let at = app.at(Api::CmdCopyBuffer);
        app.devices.command_recorded(at, part, command);
    }
    let at = app.at(Api::EndCommandBuffer);
    app.devices.end(at, part);
    assert_eq!(take_found(&mut app), []);
    app.record(1, [Command::Execute(vec![part]), reset(S::FRAGMENT_SHADER)]);
    let found = take_found(&mut app);
    assert_eq!(found.iter().map(|it| it.1).collect::<Vec<_>>(), [true, true], "{found:?}");
    app.submit_one(1);
    assert_eq!(take_found(&mut app), []);
}

/// A command that a callback cancelled was not recorded: what comes after it is compared with what was.
#[test]
fn a_cancelled_command_is_in_no_race() {
    let mut app = app();
    let (at, id) = (app.at(Api::BeginCommandBuffer), CommandBufferId(1));
    app.devices.command_buffer(at, id, object(HandleType::CommandBuffer, 1), GRAPHICS);
    app.devices.begin(at, id, object(HandleType::CommandBuffer, 1), false);
    let at = app.at(Api::CmdCopyBuffer);
    app.devices.command_recorded(at, id, set(S::COPY));
    app.devices.cancel_command(at, id);
    let at = app.at(Api::CmdCopyBuffer);
    app.devices.command_recorded(at, id, set(S::COMPUTE_SHADER));
    assert_eq!(take_found(&mut app), []);
    let at = app.at(Api::CmdCopyBuffer);
    app.devices.command_recorded(at, id, reset(S::COPY));
    assert_eq!(take_found(&mut app).len(), 1);
}

/// Whoever only asks whether there is something gets an answer for what is never submitted, too.
#[test]
fn a_quick_look_sees_races_of_what_is_never_executed() {
    for (second, is_wrong) in [(S::COMPUTE_SHADER, true), (S::COPY, true), (S::ALL_COMMANDS, false)] {
        let mut devices = ValidatedDevices::default();
        (devices.checks_submissions, devices.checks_when_executed) = (true, true);
        let mut app = App { devices, calls: 0 };
        let at = app.at(Api::CreateDevice);
        app.devices.device(at, &[GRAPHICS]);
        app.devices.event(at, EVENT, object(HandleType::Event, 4));
        app.record(1, [set(S::COPY), set(second)]);
        assert_eq!(app.devices.needs_recheck, is_wrong, "{second:?}");
    }
}
