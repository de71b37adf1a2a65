//! Single rules between queues and between queues and the host, each with and without a hazard.

use crate::notation::{hazard_summary, parse};
use crate::{OracleRules, find_hazards};

const WRITE_AND_READ: &str = "
    cb0:
      TR.W [0,1)
    cb1:
      FS.smp [0,1)
";

/// Checks that both sets of rules give the same hazards.
fn both(steps: &str) -> String {
    let text = format!("{WRITE_AND_READ}{}", steps.replace(" / ", "\n"));
    let specification = hazard_summary(&text, OracleRules::SPECIFICATION);
    assert_eq!(specification, hazard_summary(&text, OracleRules::CONTRACT), "{steps}");
    specification
}

fn table(rows: &[(&str, &str)]) {
    for (steps, expected) in rows {
        assert_eq!(both(steps), *expected, "{steps}");
    }
}

#[test]
fn binary_semaphores() {
    table(&[
        ("submit q0 cbs[0] sig[(0, TR)] / submit q1 wait[(0, FS)] cbs[1]", "clean"),
        ("submit q0 cbs[0] sig[(0, ALL)] / submit q1 wait[(0, ALL)] cbs[1]", "clean"),
        ("submit q0 cbs[0] sig[(0, CS)] / submit q1 wait[(0, FS)] cbs[1]", "1.0.0:0 RAW 0.0.0:0"),
        ("submit q0 cbs[0] sig[(0, TR)] / submit q1 wait[(0, CS)] cbs[1]", "1.0.0:0 RAW 0.0.0:0"),
        ("submit q0 cbs[0] sig[(0, TR)] / submit q1 wait[(0, VS)] cbs[1]", "clean"),
        ("submit q0 cbs[0] / submit q1 cbs[1]", "1.0.0:0 RRW 0.0.0:0"),
        ("submit q0 cbs[1] / submit q1 cbs[0]", "1.0.0:0 WRR 0.0.0:0"),
        ("submit q0 cbs[0] / submit q1 cbs[0]", "1.0.0:0 WRW 0.0.0:0"),
        ("submit q0 cbs[0] / submit q0 cbs[1]", "1.0.0:0 RAW 0.0.0:0"),
        // A signal of an earlier batch does not include a later batch.
        ("submit q0 cbs[] sig[(0, ALL)] / submit q0 cbs[0] / submit q1 wait[(0, ALL)] cbs[1]", "2.0.0:0 RRW 1.0.0:0"),
        ("submit q0 cbs[0] / submit q0 cbs[] sig[(0, ALL)] / submit q1 wait[(0, ALL)] cbs[1]", "clean"),
        // A wait holds for all later batches, too.
        ("submit q0 cbs[0] sig[(0, ALL)] / submit q1 wait[(0, ALL)] cbs[] / submit q1 cbs[1]", "clean"),
        ("submit q0 cbs[0] sig[(0, ALL)] / submit q1 cbs[1] / submit q1 wait[(0, ALL)] cbs[]", "1.0.0:0 RRW 0.0.0:0"),
        // A chain through a third queue needs matching stages.
        (
            "submit q0 cbs[0] sig[(0, ALL)] / submit q2 wait[(0, TR)] cbs[] sig[(1, TR)] / submit q1 wait[(1, FS)] cbs[1]",
            "clean",
        ),
        (
            "submit q0 cbs[0] sig[(0, ALL)] / submit q2 wait[(0, TR)] cbs[] sig[(1, CS)] / submit q1 wait[(1, FS)] cbs[1]",
            "2.0.0:0 RAW 0.0.0:0",
        ),
        // The same on a single queue.
        ("submit q0 cbs[0] sig[(0, TR)] / submit q0 wait[(0, FS)] cbs[1]", "clean"),
        ("submit q0 cbs[0] sig[(0, ALL)] ; wait[(0, ALL)] cbs[1]", "clean"),
    ]);
}

#[test]
fn barriers_go_on_from_semaphores() {
    let text = |masks: &str| {
        let barrier = format!("cb2:\nbarrier Global[{masks}]");
        let steps = "submit q0 cbs[0] sig[(0, TR)]\nsubmit q1 wait[(0, CS)] cbs[2, 1]";
        hazard_summary(&format!("{WRITE_AND_READ}{barrier}\n{steps}"), OracleRules::SPECIFICATION)
    };
    assert_eq!(text("S=CS SA= -> D=FS DA=smp"), "clean");
    assert_eq!(text("S=CS SA= -> D=FS DA="), "1.0.1:0 RAW 0.0.0:0");
    assert_eq!(text("S=TR SA=W -> D=FS DA=smp"), "1.0.1:0 RAW 0.0.0:0");
}

#[test]
fn a_barrier_does_not_reach_other_queues() {
    let text = "
        cb0:
          TR.W [0,1)
        cb1:
          barrier Global[S=ALL SA=MW -> D=ALL DA=mr]
          FS.smp [0,1)
        submit q0 cbs[0]
        submit q1 cbs[1]";
    assert_eq!(hazard_summary(text, OracleRules::CONTRACT), "1.0.0:1 RRW 0.0.0:0");
}

#[test]
fn timelines() {
    table(&[
        ("submit q0 cbs[0] sig[(0=1, ALL)] / submit q1 wait[(0=1, ALL)] cbs[1]", "clean"),
        ("submit q0 cbs[0] sig[(0=5, ALL)] / submit q1 wait[(0=3, ALL)] cbs[1]", "clean"),
        (
            "submit q0 cbs[0] sig[(0=1, ALL)] / submit q1 wait[(0=1, ALL)] cbs[] / submit q2 wait[(0=1, ALL)] cbs[1]",
            "clean",
        ),
        // The wait is submitted before the signal.
        ("submit q1 wait[(0=1, ALL)] cbs[1] / submit q0 cbs[0] sig[(0=1, ALL)]", "clean"),
        (
            "submit q0 cbs[] sig[(0=1, ALL)] / submit q0 cbs[0] sig[(0=2, ALL)] / submit q1 wait[(0=1, ALL)] cbs[1]",
            "2.0.0:0 RRW 1.0.0:0",
        ),
        ("submit q0 cbs[0] / submit q1 wait[(0=0, ALL)] cbs[1]", "1.0.0:0 RRW 0.0.0:0"),
        // Of several signals, only one satisfies the wait.
        (
            "submit q0 cbs[0] sig[(0=1, ALL)] / submit q2 cbs[] sig[(0=2, ALL)] / submit q1 wait[(0=2, ALL)] cbs[1]",
            "2.0.0:0 RRW 0.0.0:0",
        ),
        // Waits and signals of the host.
        ("submit q0 cbs[0] sig[(0=1, TR)] / host wait 0=1 / submit q1 cbs[1]", "clean"),
        ("submit q0 cbs[0] sig[(0=1, CS)] / host wait 0=1 / submit q1 cbs[1]", "2.0.0:0 RAW 0.0.0:0"),
        ("submit q1 wait[(0=1, ALL)] cbs[1] / submit q0 cbs[0] / idle q0 / host signal 0=1", "clean"),
        ("submit q1 wait[(0=1, ALL)] cbs[1] / submit q0 cbs[0] / host signal 0=1", "0.0.0:0 RRW 1.0.0:0"),
    ]);
}

#[test]
fn what_never_runs_is_reported() {
    let text = format!("{WRITE_AND_READ}submit q0 wait[(0, ALL)] cbs[0] ; cbs[1]\nsubmit q1 cbs[1]");
    let outcome = find_hazards(&parse(&text), OracleRules::CONTRACT);
    assert_eq!(outcome.blocked, [(0, 0), (0, 1)]);
    assert!(outcome.hazards.is_empty());
}

#[test]
fn host_waits() {
    table(&[
        ("submit q0 cbs[0] / idle q0 / submit q1 cbs[1]", "clean"),
        ("submit q0 cbs[0] / idle q0 / submit q0 cbs[1]", "clean"),
        ("submit q0 cbs[0] / idle q1 / submit q1 cbs[1]", "2.0.0:0 RRW 0.0.0:0"),
        ("submit q0 cbs[0] / device idle / submit q1 cbs[1]", "clean"),
        ("submit q0 cbs[0] fence 0 / fence wait 0 / submit q1 cbs[1]", "clean"),
        ("submit q0 cbs[0] fence 0 / submit q1 cbs[1] / fence wait 0", "1.0.0:0 RRW 0.0.0:0"),
        ("submit q0 cbs[] fence 0 / submit q0 cbs[0] / fence wait 0 / submit q1 cbs[1]", "3.0.0:0 RRW 1.0.0:0"),
        ("submit q0 cbs[0] fence 0 / fence reset 0 / fence wait 0 / submit q1 cbs[1]", "3.0.0:0 RRW 0.0.0:0"),
        // A signal includes earlier fence signals, whatever its stages.
        ("submit q0 cbs[0] fence 0 / submit q0 cbs[] sig[(0, CS)] / submit q1 wait[(0, FS)] cbs[1]", "clean"),
    ]);
}

#[test]
fn host_accesses() {
    table(&[
        ("host write [0,1) / submit q0 cbs[1]", "clean"),
        ("host write [0,1) / host read [0,1)", "clean"),
        ("submit q0 cbs[1] / host write [0,1)", "1 WRR 0.0.0:0"),
        ("submit q0 cbs[1] / idle q0 / host write [0,1)", "clean"),
        ("submit q0 cbs[1] / host read [0,1)", "clean"),
        ("submit q0 cbs[0] / host read [0,1)", "1 RRW 0.0.0:0"),
        ("submit q0 cbs[0] / idle q0 / host read [0,1)", "2 RAW 0.0.0:0"),
        ("host read [0,1) / submit q0 cbs[0]", "clean"),
        // A semaphore makes memory visible to devices only.
        (
            "submit q0 cbs[0] sig[(0, ALL)] / submit q1 wait[(0, ALL)] cbs[] / idle q1 / host read [0,1)",
            "3 RAW 0.0.0:0",
        ),
        // A signal comes after its submission, even with an empty stage mask.
        ("submit q1 wait[(0=1, ALL)] cbs[1] / host write [0,1) / submit q0 cbs[] sig[(0=1, )]", "clean"),
        ("submit q1 wait[(0=1, ALL)] cbs[1] / submit q0 cbs[] sig[(0=1, )] / host write [0,1)", "2 WRR 0.0.0:0"),
    ]);
    let text = |masks: &str, steps: &str| {
        let all = format!("cb0:\nTR.W [0,1)\nbarrier Global[{masks}]\n{}", steps.replace(" / ", "\n"));
        hazard_summary(&all, OracleRules::CONTRACT)
    };
    let good = "S=TR SA=W -> D=HO DA=hr";
    assert_eq!(text(good, "submit q0 cbs[0] / idle q0 / host read [0,1)"), "clean");
    assert_eq!(text(good, "submit q0 cbs[0] / host read [0,1)"), "1 RRW 0.0.0:0");
    assert_eq!(text("S=TR SA= -> D=HO DA=hr", "submit q0 cbs[0] / idle q0 / host read [0,1)"), "2 RAW 0.0.0:0");
    assert_eq!(text("S=TR SA=W -> D=FS DA=mr", "submit q0 cbs[0] / idle q0 / host read [0,1)"), "2 RAW 0.0.0:0");
}

#[test]
fn host_events() {
    let text = |masks: &str| {
        let wait = format!("cb0:\nwait1 e0 {masks}\nTR.W [0,1)");
        hazard_summary(&format!("{wait}\nhost read [0,1)\nhost set e0\nsubmit q0 cbs[0]"), OracleRules::CONTRACT)
    };
    // The submission itself orders the accesses of the host.
    assert_eq!(text("HO -> TR :"), "clean");
    assert_eq!(text("CS -> TR :"), "clean");
}

#[test]
fn one_buffer_many_times() {
    let text = "
        cb0:
          TR.W [0,1)
          barrier Global[S=TR SA=W -> D=TR DA=W]
        submit q0 cbs[0, 0] ; cbs[0]
        submit q0 cbs[0]";
    assert_eq!(hazard_summary(text, OracleRules::CONTRACT), "clean");
    let loose = text.replace("DA=W", "DA=r");
    assert_eq!(hazard_summary(&loose, OracleRules::CONTRACT), "0.0.1:0 WAW 0.0.0:0");
    assert_eq!(hazard_summary(&loose, OracleRules::SPECIFICATION), "clean");
}

#[test]
fn secondaries_are_inline() {
    let text = "
        cb0:
          TR.W [0,1)
        cb1:
          barrier Global[S=TR SA=W -> D=FS DA=smp]
        cb2:
          exec cb0, cb1
          FS.smp [0,1)
        cb3:
          exec cb0
          exec cb2
        submit q0 cbs[2]";
    assert_eq!(hazard_summary(text, OracleRules::CONTRACT), "clean");
    assert_eq!(
        hazard_summary(&text.replace("cbs[2]", "cbs[3]"), OracleRules::CONTRACT),
        "0.0.0:1.0.0.0.0 WAW 0.0.0:0.0.0"
    );
}

#[test]
fn ownership() {
    let text = |release: &str, acquire: &str, wait: &str| {
        let commands =
            format!("cb0:\nTR.W [0,1)\nbarrier Own(0,1)[{release}]\ncb1:\nbarrier Own(0,1)[{acquire}]\nFS.smp [0,1)");
        let steps = format!("submit q0 cbs[0] sig[(0, ALL)]\nsubmit q2 wait[(0, {wait})] cbs[1]");
        hazard_summary(&format!("{commands}\n{steps}"), OracleRules::CONTRACT)
    };
    let (release, acquire) = ("S=TR SA=W -> D= DA=", "S=FS SA= -> D=FS DA=smp");
    assert_eq!(text(release, acquire, "ALL"), "clean");
    assert_eq!(text("S=TR SA= -> D= DA=", acquire, "ALL"), "0.0.0:1 WAW 0.0.0:0");
    // The semaphore wait makes everything visible except what the acquire itself writes.
    assert_eq!(text(release, "S=FS SA= -> D=FS DA=", "ALL"), "1.0.0:1 RAW 1.0.0:0");
    // The two halves of the transfer execute in no stage that a semaphore wait could name.
    assert_eq!(text(release, acquire, "FS"), "1.0.0:0 WAW 0.0.0:0, 1.0.0:0 WAW 0.0.0:1");
    assert_eq!(text(release, acquire, "CS"), "1.0.0:0 WAW 0.0.0:0, 1.0.0:0 WAW 0.0.0:1");
    let write = "cb0:\nTR.r [0,1)\nbarrier Own(0,1)[S=TR SA= -> D=FS DA=]\nFS.SW [0,1)\nsubmit q0 cbs[0]";
    assert_eq!(hazard_summary(write, OracleRules::CONTRACT), "0.0.0:2 WAR 0.0.0:0, 0.0.0:2 WAW 0.0.0:1");
    // A release has an empty second scope on its own queue.
    let own = "cb0:\nTR.W [0,1)\nbarrier Own(0,1)[S=TR SA=W -> D=FS DA=smp]\nFS.smp [0,1)\nsubmit q0 cbs[0]";
    assert_eq!(hazard_summary(own, OracleRules::CONTRACT), "0.0.0:2 RAW 0.0.0:0, 0.0.0:2 RAW 0.0.0:1");
}

#[test]
fn presentation() {
    let text = |steps: &str| {
        let commands =
            "cb0:\nbarrier Trans(0,8)[S=CO SA= -> D=CO DA=CW]\nCO.CW [0,8)\nbarrier Trans(0,8)[S=CO SA=CW -> D= DA=]";
        hazard_summary(&format!("{commands}\n{}", steps.replace(" / ", "\n")), OracleRules::CONTRACT)
    };
    let frame = "acquire 0 0 / submit q0 wait[(0, CO)] cbs[0] sig[(1, ALL)] / present q0 0 1";
    assert_eq!(text(frame), "clean");
    assert_eq!(text(&format!("{frame} / {frame}")), "clean");
    assert_eq!(text(&frame.replace("(0, CO)", "(0, TR)")), "1.0.0:0 WAR 0");
    assert_eq!(text("acquire 0 0 / submit q0 cbs[0] sig[(1, ALL)] / present q0 0 1"), "1.0.0:0 WAP 0");
    let early = "acquire 0 0 / submit q0 wait[(0, CO)] cbs[0] / present q0 0";
    assert_eq!(text(early), "2 PAW 1.0.0:0, 2 PAW 1.0.0:1, 2 PAW 1.0.0:2");
}
