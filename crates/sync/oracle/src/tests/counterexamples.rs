//! Programs that once exposed a wrong rule in an engine; here they test the oracle.

use crate::OracleRules;
use crate::notation::hazard_summary;

const SPECIFICATION: OracleRules = OracleRules::SPECIFICATION;
const CONTRACT: OracleRules = OracleRules::CONTRACT;

#[test]
fn most_recent_access_for_reads() {
    let text = "
        cb0:
          barrier Trans(1, 3)[S= SA= -> D=VS DA=]
          barrier Global[S=VS SA= -> D=VS DA=VS.sr]
        cb3:
          VS.sr [1,2)
          barrier Global[S=VS SA= -> D=FS DA=]
          FS.smp [1,2)
        submit q0 wait[] cbs[0, 3] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "0.0.1:2 RAW 0.0.0:0");
    assert_eq!(hazard_summary(text, CONTRACT), "clean");
}

#[test]
fn visibility_for_write_after_write() {
    let text = "
        cb0:
          barrier Trans(2, 3)[S= SA= -> D=FS DA=]
          FS.SW [2,3)
        submit q0 wait[] cbs[0, 0] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "0.0.1:0 WAW 0.0.0:1");
    assert_eq!(hazard_summary(text, CONTRACT), "0.0.0:1 WAW 0.0.0:0");
}

/// The transitions have no hazard with each other, because the specification orders transitions of barriers.
/// `all_transitions_ordered` extends that to other transitions.
#[test]
fn transitions_of_one_queue_are_ordered() {
    let text = "
        cb2:
          barrier Trans(0, 3)[S= SA= -> D= DA=]
          barrier Trans(0, 3)[S= SA= -> D=CS DA=]
          CS.SW [0,1)
        submit q0 wait[] cbs[2] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "clean");
    assert_eq!(hazard_summary(text, CONTRACT), "0.0.0:2 WAW 0.0.0:0, 0.0.0:2 WAW 0.0.0:1");
}

#[test]
fn waiting_for_another_queue_is_no_order() {
    let text = "
        cb1:
          CS.SW [1,2)
        submit q0 wait[] cbs[1] sig[]
        idle q2
        submit q2 wait[] cbs[1] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "2.0.0:0 WRW 0.0.0:0");
    assert_eq!(hazard_summary(text, CONTRACT), "2.0.0:0 WRW 0.0.0:0");
}

#[test]
fn a_resource_barrier_chains_for_everything() {
    let text = "
        cb0:
          barrier Res(2, 3)[S=VS SA= -> D=TR DA=]
          TR.W [1,2)
          barrier Global[S=TR SA=TR.W -> D=VS DA=]
        submit q0 wait[] cbs[0, 0] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "clean");
    assert_eq!(hazard_summary(text, CONTRACT), "0.0.1:1 WAW 0.0.0:1");
}

#[test]
fn all_barriers_chain() {
    let text = "
        cb2:
          barrier Trans(1, 3)[S=TR SA= -> D=CS DA=]
          barrier Trans(0, 2)[S=CS SA= -> D=TR DA=]
        submit q0 wait[] cbs[2, 2] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "clean");
    assert_eq!(hazard_summary(text, CONTRACT), "clean");
}

#[test]
fn an_event_waits_for_what_was_there_at_the_set() {
    let text = "
        cb0:
          barrier Res(0, 3)[S=TR SA=TR.W -> D=CO DA=]
          wait e0 Res(2, 3)[S=DI|VS|EF|FS|LF|CO|CS|TR SA= -> D=CO|TR DA=]
        cb1:
          set e0 Res(2, 3)[S=DI|VS|EF|FS|LF|CO|CS|TR SA= -> D=CO|TR DA=]
          exec cb0
          TR.W [2,3)
        submit q0 wait[] cbs[1, 1] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "0.0.1:2 WAW 0.0.0:2");
    // Without the reset, the second set has no effect, because the event is already signaled.
    let reset = text.replace("exec cb0", "exec cb0\n reset e0");
    assert_eq!(hazard_summary(&reset, SPECIFICATION), "0.0.1:3 WAW 0.0.0:3");
}

#[test]
fn a_point_is_never_renormalized() {
    let text = "
        cb1:
          barrier Res(1, 3)[S=FS SA= -> D= DA=] + Trans(2, 3)[S=FS SA= -> D=CS DA=]
          barrier Res(0, 1)[S=CS SA= -> D=FS DA=]
        submit q0 wait[] cbs[1] sig[]
        submit q0 wait[] cbs[1] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "clean");
}

#[test]
fn elements_of_one_command_do_not_chain() {
    let text = "
        cb0:
          EF.dr [1,2)
          barrier Res(2, 3)[S=EF SA= -> D=CS DA=] + Trans(1, 3)[S=CS SA= -> D= DA=]
        submit q0 wait[] cbs[0] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "0.0.0:1 WAR 0.0.0:0");
    assert_eq!(hazard_summary(text, CONTRACT), "0.0.0:1 WAR 0.0.0:0");
    let twice = text.replace("cbs[0]", "cbs[0, 0]");
    assert!(hazard_summary(&twice, SPECIFICATION).contains("0.0.0:1 WAR 0.0.0:0"));
}

/// A chain leads to the batch, so this is not a racing hazard.
#[test]
fn a_signal_includes_the_earlier_signals() {
    let text = "
        cb0:
          CS.SW [1,2)
        cb1:
          TR.W [1,2)
          exec cb0
        submit q2 wait[] cbs[0] sig[(0, \"CS|TR\")]
        submit q2 wait[] cbs[] sig[(1, \"CO\")]
        submit q0 wait[(1, \"TR\")] cbs[1] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "2.0.0:1.0.0 WAW 0.0.0:0, 2.0.0:1.0.0 WAW 2.0.0:0");
}

#[test]
fn reads_of_all_queues_count() {
    let text = "
        cb0:
          VS.sr [1,2)
          barrier Global[S=VS SA= -> D=CS DA=]
        cb1:
          CS.SW [1,2)
        submit q2 wait[] cbs[0] sig[]
        submit q1 wait[] cbs[0, 1] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "1.0.1:0 WRR 0.0.0:0");
    assert_eq!(hazard_summary(text, CONTRACT), "1.0.1:0 WRR 0.0.0:0");
}

#[test]
fn the_first_of_two_reads_is_enough() {
    let text = "
        cb1:
          barrier Global[S=CO SA=CO.CW -> D=VS DA=VS.uni|VS.sr]
          VS.uni [1,2)
          barrier Res(2, 3)[S=VS SA= -> D=CS DA=]
          VS.sr [1,2)
        cb2:
          CO.CW [1,2)
          exec cb1
          CS.sr [1,2)
        submit q0 wait[] cbs[2] sig[]";
    assert_eq!(hazard_summary(text, CONTRACT), "clean");
    assert_eq!(hazard_summary(text, SPECIFICATION), "0.0.0:2 RAW 0.0.0:0");
}

#[test]
fn what_the_host_knows_goes_through_semaphores() {
    let text = "
        cb1:
          FS.smp [2,3)
        cb2:
          CS.SW [2,3)
        submit q0 wait[] cbs[2] sig[(0, \"CS\")]
        submit q2 wait[(0, \"TR\")] cbs[] sig[]
        idle q2
        submit q2 wait[] cbs[1] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "clean");
    assert_eq!(hazard_summary(text, CONTRACT), "clean");
    assert_eq!(hazard_summary(&text.replace("idle q2", "idle q1"), CONTRACT), "3.0.0:0 RAW 0.0.0:0");
}

#[test]
fn available_and_ordered_is_enough_for_the_specification() {
    let text = "
        cb1:
          barrier Res(0, 1)[S=TR SA=TR.W -> D=TR DA=]
          TR.W [0,1)
        submit q0 wait[] cbs[1, 1] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "clean");
    assert_eq!(hazard_summary(text, CONTRACT), "0.0.1:1 WAW 0.0.0:1");
}

#[test]
fn events_make_available_for_chains() {
    let text = "
        cb1:
          wait e1 Global[S=DI|VS|EF|FS|LF|CO|CS|TR SA=* -> D=TR DA=]
          barrier Res(0, 1)[S=TR SA= -> D=FS DA=]
          FS.SW [1,2)
          set e1 Global[S=DI|VS|EF|FS|LF|CO|CS|TR SA=* -> D=TR DA=]
        submit q0 wait[] cbs[1, 1] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "clean");
}

#[test]
fn other_elements_do_not_order_a_transition() {
    let text = "
        cb2:
          barrier Global[S=FS SA= -> D=EF DA=] + Trans(1, 2)[S= SA= -> D=FS DA=]
          EF.DW [1,2)
          EF.dr [1,2)
        submit q0 wait[] cbs[2] sig[]";
    assert_eq!(hazard_summary(text, SPECIFICATION), "0.0.0:1 WAW 0.0.0:0");
    assert_eq!(hazard_summary(text, CONTRACT), "0.0.0:1 WAW 0.0.0:0");
}
