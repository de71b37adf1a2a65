//! Limits cut explanations, and nothing else: code, severity, properties and the first line stay what they are.

use lavascope_sync_ir::Certainty;

use super::*;
use crate::findings::causes::{CAUSES_MAX, COMMANDS_MAX, EXPLAINED_MAX, FOLLOWED_MAX};
use lavascope_diag::Severity;

/// Writes one part of a buffer for certain, and perhaps another one.
fn write_and_perhaps_more(resource: u32) -> Command {
    let access = |bytes, certainty| Access {
        certainty,
        ..Access::new(ResourceId(resource), Region::Buffer(bytes), S::COPY.0, A::TRANSFER_WRITE.0)
    };
    Command::Action(vec![access(0..16, Certainty::Certain), access(32..48, Certainty::Maybe)])
}

/// What is never cut, without the numbers of objects and submissions.
fn kept_parts(diagnostic: &Diagnostic) -> (String, Severity, String, Vec<String>) {
    let without_numbers = |text: &str| text.chars().filter(|it| !it.is_ascii_digit()).collect::<String>();
    let properties = diagnostic.properties.iter().map(|it| format!("{} = {}", it.key, without_numbers(&it.value)));
    let first_line = without_numbers(diagnostic.message.lines().next().unwrap_or_default());
    (diagnostic.code.to_string(), diagnostic.severity, first_line, properties.collect())
}

/// A barrier that has the write in its first scope, and nothing in its second that helps.
fn barrier() -> Command {
    let scope = SyncScope {
        src_stages: S::COPY.0,
        src_access: A::TRANSFER_WRITE.0,
        dst_stages: S::VERTEX_SHADER.0,
        dst_access: A::SHADER_STORAGE_READ.0,
    };
    Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target: DependencyTarget::Global }] })
}

#[test]
fn many_causes_cut_the_fix_alone() {
    let mut app = App::new();
    for id in 0..EXPLAINED_MAX as u32 + 3 {
        app.buffer(id);
        app.record(2 * id, [write_and_perhaps_more(id), barrier()]);
        app.record(2 * id + 1, [read(id)]);
        app.submit_one(2 * id);
        app.submit_one(2 * id + 1);
    }
    let all = app.diagnostics();
    assert_eq!(all.len(), EXPLAINED_MAX + 3);
    let (first, last) = (&all[0], &all[EXPLAINED_MAX + 2]);
    assert_eq!(first.severity, Severity::Error);
    assert_eq!(kept_parts(first), kept_parts(last));
    assert!(last.message.starts_with("vkQueueSubmit(): READ_AFTER_WRITE hazard detected."), "{}", last.message);
    assert_eq!(last.property("write_barriers").map(str::len), first.property("write_barriers").map(str::len));
    assert_eq!((first.fixes.is_empty(), last.fixes.is_empty()), (false, true));
    assert_eq!((&last.no_fix, first.explanation.len()), (&None, last.explanation.len()));
    let lines = app.devices.causes.cut_explanations().lines();
    assert_eq!(lines, ["3 findings without a proposed fix: 200 findings before have been given one"]);
}

/// One write and one read with so many commands between them.
fn far_apart(commands: usize, followed: usize) -> App {
    let mut app = App::new();
    app.buffer(0);
    app.buffer(1);
    app.devices.causes.effort.commands = followed;
    app.record(0, [write_and_perhaps_more(0), barrier()]);
    app.record(1, (0..commands).map(|_| read(1)));
    app.record(2, [read(0)]);
    (0..3).for_each(|it| app.submit_one(it));
    app
}

#[test]
fn commands_between_the_two_cut_the_fix_alone() {
    let (near, far) = (far_apart(1, 0), far_apart(COMMANDS_MAX, 0));
    let ([near_finding], [far_finding]) = (near.diagnostics(), far.diagnostics()) else { panic!("one finding each") };
    assert_eq!(near_finding.severity, Severity::Error);
    assert_eq!(kept_parts(near_finding), kept_parts(far_finding));
    assert_eq!((near_finding.fixes.is_empty(), far_finding.fixes.is_empty()), (false, true));
    assert_eq!(near_finding.explanation, far_finding.explanation);
    assert_eq!(near.devices.causes.cut_explanations().lines(), [""; 0]);
    let text = "1 finding without a proposed fix: more than 20000 commands lie between the two accesses";
    assert_eq!(far.devices.causes.cut_explanations().lines(), [text]);
}

/// A program with findings all over the place does not stand still for their explanations.
#[test]
fn what_is_not_followed_is_still_reported_whole() {
    let (near, far) = (far_apart(1, 0), far_apart(1, FOLLOWED_MAX));
    let ([near_finding], [far_finding]) = (near.diagnostics(), far.diagnostics()) else { panic!("one finding each") };
    let (mut near_parts, far_parts) = (kept_parts(near_finding), kept_parts(far_finding));
    // What lies between was not looked at.
    near_parts.3.retain(|it| !it.starts_with("write_barriers"));
    assert_eq!(near_parts, far_parts);
    assert!(far_finding.explanation.is_empty() && far_finding.fixes.is_empty(), "{far_finding:#?}");
    assert_eq!(far.devices.causes.cut_explanations().not_followed, 1);
}

/// The earlier access is older than what is kept.
fn long_ago(first: Command) -> Diagnostic {
    let mut app = App::new();
    app.buffer(0);
    app.record(0, [first]);
    app.submit_one(0);
    app.record(1, []);
    (0..STEPS_MAX).for_each(|_| app.submit_one(1));
    app.record(1, [read(0)]);
    app.submit_one(1);
    assert_eq!(app.devices.causes.cut_explanations().prior_forgotten, 1);
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    diagnostic.clone()
}

#[test]
fn what_is_too_old_has_no_name_and_everything_else() {
    let old = long_ago(write(0));
    let text = "vkQueueSubmit(): READ_AFTER_WRITE hazard detected. vkCmdCopyBuffer (from VkCommandBuffer#1 submitted on the \
                current VkQueue#0) reads VkBuffer#0[0..16], which was previously written by work that was submitted long \
                before.";
    assert_eq!((&*old.message, &*old.code.0, old.severity), (text, "SYNC-HAZARD-READ-AFTER-WRITE", Severity::Error));
    let keys: Vec<&str> = old.properties.iter().map(|it| it.key).collect();
    assert_eq!(keys, ["message_type", "hazard_type", "access", "command", "command_buffer_index"]);
    assert_eq!(old.locations[1].text, "not known any more");
    assert!(old.explanation.is_empty() && old.no_fix.is_none(), "{old:#?}");
    // Whether it was certain is remembered.
    let Command::Action(mut accesses) = write(0) else { panic!("an action") };
    accesses[0].certainty = Certainty::Maybe;
    let unsure = long_ago(Command::Action(accesses));
    assert_eq!((unsure.severity, unsure.message), (Severity::Warning, old.message));
}

#[test]
fn beyond_all_causes_each_kind_of_finding_is_still_reported() {
    let mut app = App::new();
    let count = CAUSES_MAX as u32 + 5;
    for id in 0..count {
        app.buffer(id);
        app.record(id, [write(id), write(id)]);
    }
    let diagnostics = app.diagnostics();
    assert_eq!(diagnostics.len(), CAUSES_MAX + 1);
    assert_eq!(diagnostics.iter().map(|it| it.count).sum::<u64>(), u64::from(count));
    assert_eq!(app.devices.causes.cut_explanations().merged, 4);
    // Another kind is reported, and so is another severity.
    app.record(count, [read(0), write(0)]);
    app.record(count + 1, [read(1), write_maybe(1)]);
    let last: Vec<(String, Severity)> =
        app.diagnostics()[CAUSES_MAX + 1..].iter().map(|it| (it.code.to_string(), it.severity)).collect();
    let code = "SYNC-HAZARD-WRITE-AFTER-READ".to_owned();
    assert_eq!(last, [(code.clone(), Severity::Error), (code, Severity::Warning)]);
    assert_eq!(app.devices.causes.cut_explanations().merged, 4);
    assert!(app.diagnostics().iter().all(|it| it.message.starts_with("vkCmdCopyBuffer(): WRITE_AFTER_")));
}

fn write_maybe(resource: u32) -> Command {
    let Command::Action(mut accesses) = write(resource) else { panic!("an action") };
    accesses[0].certainty = Certainty::Maybe;
    Command::Action(accesses)
}
