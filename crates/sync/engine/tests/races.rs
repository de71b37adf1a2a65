//! Events that are set, reset and waited for without order.

use lavascope_engine::event_races;
use lavascope_engine::{EventRaceKind, EventRaces, uses_events};
use lavascope_scenario::parse;
use lavascope_sync_ir::{Command, CommandBufferId, EventId, SetEvent, WaitEvents};

/// The races of a program, each by its kind and the two commands.
fn races(text: &str) -> Vec<(EventRaceKind, u32, u32)> {
    let text = format!("# Events.\n# spec: vkCmdSetEvent\n# expect: clean\n\nevent e f\n{text}");
    let program = parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}")).program;
    let index = |place: &lavascope_sync_ir::ProgramLocation| match place {
        lavascope_sync_ir::ProgramLocation::Command(at) => *at.path.last().expect("a command"),
        lavascope_sync_ir::ProgramLocation::Step(_) => panic!("{place:?}"),
    };
    event_races(&program).iter().map(|it| (it.kind, index(&it.at), index(&it.prior))).collect()
}

fn in_one(commands: &[&str]) -> Vec<(EventRaceKind, u32, u32)> {
    races(&format!("cmd main\n  {}", commands.join("\n  ")))
}

use EventRaceKind::{ResetAfterSet, SetAfterReset, SetAfterSet, SetAfterWait, WaitAfterRace};

#[test]
fn an_event_that_is_used_once_has_no_races() {
    let wait = "wait1 e copy => compute";
    assert_eq!(in_one(&["set1 e copy", wait, "reset e compute"]), []);
    assert_eq!(in_one(&["set1 e copy", "set1 f copy", wait]), []);
    assert_eq!(in_one(&["reset e copy", "reset e copy"]), []);
}

#[test]
fn a_barrier_between_two_uses_decides() {
    for (first, second, kind) in [
        ("set1 e copy", "set1 e compute", SetAfterSet),
        ("reset e copy", "set1 e compute", SetAfterReset),
        ("set1 e copy", "reset e compute", ResetAfterSet),
    ] {
        assert_eq!(in_one(&[first, second]), [(kind, 1, 0)], "{first}, {second}");
        // From its stage, by a chain, from all commands, or because the second waits for all commands itself.
        for between in ["barrier copy => compute", "barrier all => compute", "barrier copy => all"] {
            assert_eq!(in_one(&[first, between, second]), [], "{first}, {between}, {second}");
        }
        assert_eq!(in_one(&[first, "barrier copy => vertex", "barrier vertex => compute", second]), []);
        // Also where the first one leads back to its own stage, before which there is no other.
        let early = first.replace("copy", "indirect");
        let (chain, late) =
            (["barrier indirect => indirect", "barrier indirect => copy"], second.replace("compute", "copy"));
        assert_eq!(in_one(&[&early, chain[0], chain[1], &late]), []);
        assert_eq!(in_one(&[first, &second.replace("compute", "all")]), []);
        // Not from or to somewhere else.
        for between in ["barrier vertex => compute", "barrier copy => transfer"] {
            assert_eq!(in_one(&[first, between, second]), [(kind, 2, 0)], "{first}, {between}, {second}");
        }
    }
}

#[test]
fn a_wait_orders_what_its_second_scope_has() {
    let wait = "wait1 e copy => compute";
    assert_eq!(in_one(&["set1 e copy", wait, "set1 e copy"]), [(SetAfterWait, 2, 1)]);
    assert_eq!(in_one(&["set1 e copy", wait, "set1 e compute"]), []);
    assert_eq!(in_one(&["set1 e copy", wait, "reset e compute", "barrier compute => copy", "set1 e copy"]), []);
}

#[test]
fn a_wait_after_a_race_is_reported_once() {
    let wait = "wait1 e compute|copy => fragment";
    let races = in_one(&["set1 e copy", "set1 e compute", wait, wait]);
    assert_eq!(races, [(SetAfterSet, 1, 0), (WaitAfterRace, 2, 0)]);
    // A reset in order ends it.
    let fixed = [
        "set1 e copy",
        "set1 e compute",
        "barrier all => all",
        "reset e copy",
        "barrier all => all",
        "set1 e copy",
        wait,
    ];
    assert_eq!(in_one(&fixed), [(SetAfterSet, 1, 0)]);
}

#[test]
fn submissions_follow_each_other_until_the_host_waits() {
    let commands = "fence done\ncmd main\n  set1 e copy\n";
    assert_eq!(races(&format!("{commands}q submit main\nq submit main")), [(SetAfterSet, 0, 0)]);
    assert_eq!(races(&format!("{commands}q submit main fence done\nwait fence done\nq submit main")), []);
    assert_eq!(races(&format!("{commands}q submit main\nq idle\nhost reset e\nq submit main")), []);
    let secondary = "secondary part\n  set1 e copy\ncmd main\n  execute part\n  reset e compute";
    assert_eq!(races(secondary), [(ResetAfterSet, 1, 0)]);
}

#[test]
fn version_two_is_the_same() {
    let set = "set e copy:write => compute:storage_read";
    assert_eq!(in_one(&[set, set]), [(SetAfterSet, 1, 0)]);
    assert_eq!(in_one(&[set, "wait e copy:write => compute:storage_read", "reset e compute"]), []);
}

/// All stages of a set count, whichever of its dependencies names them.
#[test]
fn a_set_of_version_two_comes_after_all_of_its_dependencies() {
    for (set, between) in [
        ("set e copy:write => compute:storage_read, copy:write => fragment:storage_read", "barrier copy => compute"),
        ("set e copy:write => compute:storage_read, blit:write => compute:storage_read", "barrier copy => compute"),
        ("set e copy:write => compute:storage_read, blit:write => compute:storage_read", "barrier blit => compute"),
    ] {
        assert_eq!(in_one(&[set, between, "reset e compute"]), [], "{set}, {between}");
    }
}

#[test]
fn barriers_of_version_one_order_too_and_chain() {
    assert_eq!(in_one(&["set1 e copy", "barrier1 copy => compute", "reset e compute"]), []);
    assert_eq!(in_one(&["set1 e copy", "barrier1 vertex => compute", "reset e compute"]), [(ResetAfterSet, 2, 0)]);
    // The stage of the set itself is behind the first barrier, and in front of the second.
    assert_eq!(in_one(&["set1 e copy", "barrier copy => copy", "barrier copy => compute", "reset e compute"]), []);
}

/// What the host sets or resets it has to order itself.
#[test]
fn the_host_decides_about_its_events() {
    let commands = "cmd main\n  set1 e copy\n";
    assert_eq!(races(&format!("{commands}q submit main\nhost reset e\nq submit main")), []);
    assert_eq!(races(&format!("{commands}q submit main\nhost set e\nq submit main")), []);
    assert_eq!(races(&format!("{commands}q submit main\nhost reset f\nq submit main")), [(SetAfterSet, 0, 0)]);
}

#[test]
fn whoever_uses_no_events_need_not_ask() {
    let event = EventId(0);
    let set = Command::SetEvent(SetEvent::Sync1 { event, stages: 1 });
    let wait = Command::WaitEvents(WaitEvents::Sync2 { events: Vec::new() });
    assert!(uses_events(&set) && uses_events(&wait) && uses_events(&Command::ResetEvent { event, stages: 1 }));
    assert!(!uses_events(&Command::NextSubpass) && !uses_events(&Command::Action(Vec::new())));
    let (mut races, buffer) = (EventRaces::default(), [set]);
    assert!(races.is_idle());
    let batch = lavascope_sync_ir::SubmitBatch { command_buffers: vec![CommandBufferId(0)], ..Default::default() };
    let step =
        lavascope_sync_ir::HostStep::Submit { queue: lavascope_sync_ir::QueueId(0), batches: vec![batch], fence: None };
    races.step(0, &step, &[lavascope_sync_ir::Queue { family: 0, flags: 7 }], &|_| Some(Box::new((0..).zip(&buffer))));
    assert!(!races.is_idle());
    races.forget(event);
    assert!(races.is_idle());
}
