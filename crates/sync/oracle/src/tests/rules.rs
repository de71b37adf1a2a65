//! Single rules of dependencies within a queue, each with and without a hazard.

use crate::OracleRules;
use crate::notation::hazard_summary;

/// Checks that both sets of rules give the same hazards.
fn both(commands: &str) -> String {
    let text = format!("cb0:\n{}\nsubmit q0 cbs[0]", commands.replace("; ", "\n"));
    let specification = hazard_summary(&text, OracleRules::SPECIFICATION);
    assert_eq!(specification, hazard_summary(&text, OracleRules::CONTRACT), "{commands}");
    specification.replace("0.0.0:", "")
}

/// Programs for one queue, with their hazards.
fn table(rows: &[(&str, &str)]) {
    for (commands, expected) in rows {
        assert_eq!(both(commands), *expected, "{commands}");
    }
}

#[test]
fn pairs_without_dependency() {
    table(&[
        ("TR.W [0,1); TR.r [0,1)", "1 RAW 0"),
        ("TR.r [0,1); TR.W [0,1)", "1 WAR 0"),
        ("TR.W [0,1); TR.W [0,1)", "1 WAW 0"),
        ("TR.r [0,1); TR.r [0,1)", "clean"),
        ("TR.W [0,1); TR.W [1,2)", "clean"),
        ("TR.W r1 [0,4); TR.r r1 [3,5)", "1 RAW 0"),
        ("TR.W r1 [0,4); TR.r r1 [4,5)", "clean"),
        ("TR.W [0,4); TR.W r1 [0,4)", "clean"),
        ("TR.r [0,1) + TR.W [0,1)", "clean"),
    ]);
}

#[test]
fn global_barriers() {
    table(&[
        ("TR.W [0,1); barrier Global[S=TR SA=W -> D=FS DA=smp]; FS.smp [0,1)", "clean"),
        ("TR.W [0,1); barrier Global[S=TR SA=W -> D=FS DA=sr]; FS.smp [0,1)", "2 RAW 0"),
        ("TR.W [0,1); barrier Global[S=TR SA=r -> D=FS DA=smp]; FS.smp [0,1)", "2 RAW 0"),
        ("TR.W [0,1); barrier Global[S=CS SA=W -> D=FS DA=smp]; FS.smp [0,1)", "2 RAW 0"),
        ("TR.W [0,1); barrier Global[S=TR SA=W -> D=VS DA=smp]; FS.smp [0,1)", "2 RAW 0"),
        ("TR.W [0,1); barrier Global[S=ALL SA=MW -> D=ALL DA=mr]; FS.smp [0,1)", "clean"),
        ("TR.W [0,1); barrier Global[S=ALL SA=mr -> D=ALL DA=mr]; FS.smp [0,1)", "2 RAW 0"),
        ("CS.SW [0,1); barrier Global[S=CS SA=SHW -> D=VS DA=shr]; VS.smp [0,1)", "clean"),
        ("CL.W [0,1); barrier Global[S=TRANSFER SA=W -> D=TRANSFER DA=r]; TR.r [0,1)", "clean"),
        ("CL.W [0,1); barrier Global[S=TR SA=W -> D=TR DA=r]; TR.r [0,1)", "2 RAW 0"),
    ]);
}

#[test]
fn writes_after_reads_need_execution_only() {
    table(&[
        ("FS.smp [0,1); barrier Global[S=FS SA= -> D=TR DA=]; TR.W [0,1)", "clean"),
        ("FS.smp [0,1); barrier Global[S=LF SA= -> D=TR DA=]; TR.W [0,1)", "clean"),
        ("FS.smp [0,1); barrier Global[S=VS SA= -> D=TR DA=]; TR.W [0,1)", "2 WAR 0"),
        ("CS.sr [0,1); barrier Global[S=GRAPHICS SA= -> D=TR DA=]; TR.W [0,1)", "2 WAR 0"),
        ("VS.sr [0,1); barrier Global[S=VS SA= -> D=EF DA=]; CO.CW [0,1)", "clean"),
        ("VS.sr [0,1); barrier Global[S=VS SA= -> D=CO DA=]; EF.DW [0,1)", "2 WAR 0"),
        ("DI.ir r1 [0,1); barrier Global[S=CS SA= -> D=CS DA=]; CS.SW r1 [0,1)", "clean"),
        ("CS.sr r1 [0,1); barrier Global[S=DI SA= -> D=CS DA=]; CS.SW r1 [0,1)", "2 WAR 0"),
    ]);
}

#[test]
fn access_scopes_do_not_grow() {
    table(&[
        ("VS.SW [0,1); barrier Global[S=FS SA=SW -> D=CS DA=sr]; CS.sr [0,1)", "2 RAW 0"),
        ("VS.SW [0,1); barrier Global[S=VS|FS SA=SW -> D=CS DA=sr]; CS.sr [0,1)", "clean"),
        ("CS.SW [0,1); barrier Global[S=CS SA=SW -> D=VS DA=sr]; FS.sr [0,1)", "2 RAW 0"),
        ("CS.SW [0,1); barrier Global[S=CS SA=SW -> D=TOP DA=mr]; FS.sr [0,1)", "2 RAW 0"),
        ("CS.SW [0,1); barrier Global[S=BOTTOM SA=MW -> D=ALL DA=mr]; FS.sr [0,1)", "2 RAW 0"),
    ]);
}

#[test]
fn ends_of_the_pipe() {
    table(&[
        ("FS.smp [0,1); barrier Global[S=BOTTOM SA= -> D=TOP DA=]; TR.W [0,1)", "clean"),
        ("FS.smp [0,1); barrier Global[S=TOP SA= -> D=ALL DA=]; TR.W [0,1)", "2 WAR 0"),
        ("FS.smp [0,1); barrier Global[S=ALL SA= -> D=BOTTOM DA=]; TR.W [0,1)", "2 WAR 0"),
        ("FS.smp [0,1); barrier Global[S= SA= -> D=ALL DA=]; TR.W [0,1)", "2 WAR 0"),
    ]);
}

#[test]
fn chains() {
    let first = "CS.SW [0,1); barrier Global[S=CS SA=SW -> D=VS DA=]";
    table(&[
        (&format!("{first}; barrier Global[S=VS SA= -> D=TR DA=r]; TR.r [0,1)"), "clean"),
        (&format!("{first}; barrier Global[S=FS SA= -> D=TR DA=r]; TR.r [0,1)"), "clean"),
        (&format!("{first}; barrier Global[S=CS SA= -> D=TR DA=r]; TR.r [0,1)"), "3 RAW 0"),
        (&format!("{first}; barrier Global[S=DI SA= -> D=TR DA=r]; TR.r [0,1)"), "3 RAW 0"),
        (&format!("{first}; barrier Global[S=VS SA= -> D=TR DA=]; TR.r [0,1)"), "3 RAW 0"),
        // The first barrier does not make the write available. The first scope of the second does not contain the write
        // itself.
        (
            "CS.SW [0,1); barrier Global[S=CS SA= -> D=VS DA=]; barrier Global[S=VS SA=SW -> D=TR DA=r]; TR.r [0,1)",
            "3 RAW 0",
        ),
        (
            "CS.SW [0,1); barrier Global[S=CS SA= -> D=VS DA=]; barrier Global[S=VS|CS SA=SW -> D=TR DA=r]; TR.r [0,1)",
            "clean",
        ),
        // The same barriers in the wrong order.
        (
            "CS.SW [0,1); barrier Global[S=VS SA= -> D=TR DA=r]; barrier Global[S=CS SA=SW -> D=VS DA=]; TR.r [0,1)",
            "3 RAW 0",
        ),
    ]);
}

#[test]
fn resource_barriers() {
    table(&[
        ("TR.W [0,2); barrier Res(0,2)[S=TR SA=W -> D=FS DA=smp]; FS.smp [0,2)", "clean"),
        ("TR.W [0,2); barrier Res(0,1)[S=TR SA=W -> D=FS DA=smp]; FS.smp [0,2)", "2 RAW 0"),
        ("TR.W [0,1); barrier Res(1,2)[S=TR SA=W -> D=FS DA=smp]; FS.smp [0,1)", "2 RAW 0"),
        ("TR.r [0,1); barrier Res(1,2)[S=TR SA= -> D=FS DA=]; FS.SW [0,1)", "clean"),
        ("TR.W r1 [0,4); barrier Res(r1 0,4)[S=TR SA=W -> D=FS DA=sr]; FS.sr r1 [2,3)", "clean"),
        ("TR.W r1 [0,4); barrier Res(0,4)[S=TR SA=W -> D=FS DA=sr]; FS.sr r1 [2,3)", "2 RAW 0"),
        // A resource barrier makes the write available, a global one makes it visible.
        (
            "TR.W [0,1); barrier Res(0,1)[S=TR SA=W -> D=CS DA=]; barrier Global[S=CS SA= -> D=FS DA=smp]; FS.smp [0,1)",
            "clean",
        ),
        (
            "TR.W [0,1); barrier Res(0,1)[S=TR SA=W -> D=CS DA=]; barrier Res(1,2)[S=CS SA= -> D=FS DA=smp]; FS.smp [0,1)",
            "3 RAW 0",
        ),
    ]);
}

#[test]
fn version_one_is_one_dependency() {
    table(&[
        ("FS.smp [0,1); barrier1 FS -> TR : ; TR.W [0,1)", "clean"),
        ("FS.smp [0,1); barrier1 TR -> FS : ; TR.W [0,1)", "2 WAR 0"),
        ("TR.W [0,1); barrier1 TR -> FS : Global[SA=W DA=smp]; FS.smp [0,1)", "clean"),
        ("TR.W [0,1); barrier1 TR -> FS : ; FS.smp [0,1)", "2 RAW 0"),
        // In version 1 one element makes the write available and another makes it visible. In version 2 they do not
        // combine.
        ("TR.W [0,1); barrier1 TR -> FS : Global[SA=W DA=] + Global[SA= DA=smp]; FS.smp [0,1)", "clean"),
        (
            "TR.W [0,1); barrier Global[S=TR SA=W -> D=FS DA=] + Global[S=TR SA= -> D=FS DA=smp]; FS.smp [0,1)",
            "2 RAW 0",
        ),
        ("TR.W [0,1); barrier1 TR -> FS : Trans(0,1)[SA=W DA=smp]; FS.smp [0,1)", "clean"),
        ("TR.W [0,1); barrier1 TOP -> FS : Trans(0,1)[SA= DA=smp]; FS.smp [0,1)", "1 WAW 0"),
    ]);
}

#[test]
fn transitions() {
    table(&[
        ("TR.W [0,1); barrier Trans(0,1)[S=TR SA=W -> D=FS DA=smp]; FS.smp [0,1)", "clean"),
        ("TR.W [0,1); barrier Trans(0,1)[S=TR SA= -> D=FS DA=smp]; FS.smp [0,1)", "1 WAW 0"),
        ("TR.W [0,1); barrier Trans(0,1)[S=CS SA=W -> D=FS DA=smp]; FS.smp [0,1)", "1 WAW 0"),
        ("TR.W [0,1); barrier Trans(1,2)[S=CS SA=W -> D=FS DA=smp]", "clean"),
        ("TR.r [0,1); barrier Trans(0,1)[S=TR SA= -> D=FS DA=smp]; FS.smp [0,1)", "clean"),
        ("TR.r [0,1); barrier Trans(0,1)[S=CS SA= -> D=FS DA=smp]; FS.smp [0,1)", "1 WAR 0"),
        ("barrier Trans(0,1)[S= SA= -> D=FS DA=sr]; FS.smp [0,1)", "1 RAW 0"),
        ("barrier Trans(0,1)[S= SA= -> D=VS DA=smp]; FS.smp [0,1)", "1 RAW 0"),
        ("barrier Trans(0,1)[S= SA= -> D=FS DA=]; barrier Global[S=FS SA= -> D=FS DA=smp]; FS.smp [0,1)", "clean"),
        ("barrier Trans(0,1)[S= SA= -> D=FS DA=]; barrier Global[S=TR SA= -> D=FS DA=smp]; FS.smp [0,1)", "2 RAW 0"),
        ("barrier Trans(0,1)[S= SA= -> D=TR DA=W]; TR.W [0,1)", "clean"),
        ("TR.W [0,1); barrier Global[S=TR SA=W -> D=CS DA=]; barrier Trans(0,1)[S=CS SA= -> D= DA=]", "clean"),
        ("TR.W [0,1); barrier Global[S=TR SA= -> D=CS DA=]; barrier Trans(0,1)[S=CS SA= -> D= DA=]", "2 WAW 0"),
        ("barrier Trans(0,1)[S= SA= -> D=CS DA=]; barrier Trans(0,1)[S=CS SA= -> D=FS DA=smp]; FS.smp [0,1)", "clean"),
        // All-commands includes layout transitions.
        ("barrier Trans(0,1)[S= SA= -> D= DA=]; barrier Global[S=ALL SA= -> D=FS DA=smp]; FS.smp [0,1)", "clean"),
        (
            "barrier Trans(0,1)[S= SA= -> D= DA=]; barrier Global[S=GRAPHICS SA= -> D=FS DA=smp]; FS.smp [0,1)",
            "2 RAW 0",
        ),
    ]);
}

#[test]
fn the_switches() {
    let verdict = |commands: &str, rules| {
        hazard_summary(&format!("cb0:\n{}\nsubmit q0 cbs[0]", commands.replace("; ", "\n")), rules)
    };
    let specification = OracleRules::SPECIFICATION;
    let reads = OracleRules { most_recent_reads: true, ..specification };
    let writes = OracleRules { visible_writes: true, ..specification };
    let transfers = OracleRules { all_transitions_ordered: true, ..specification };
    // A read after another read that sees the write.
    let chain = "TR.W [0,1); barrier Global[S=TR SA=W -> D=VS DA=sr]; VS.sr [0,1); barrier Global[S=VS SA= -> D=CS DA=]; CS.sr [0,1)";
    assert_eq!(verdict(chain, specification), "0.0.0:4 RAW 0.0.0:0");
    assert_eq!(verdict(chain, reads), "clean");
    let loose = chain.replace("S=VS SA= -> D=CS DA=", "S=VS SA= -> D=FS DA=");
    assert_eq!(verdict(&loose, reads), "0.0.0:4 RAW 0.0.0:0");
    // Two writes, without and with a read between.
    let plain = "TR.W [0,1); barrier Global[S=TR SA=W -> D=TR DA=]; TR.W [0,1)";
    assert_eq!(verdict(plain, specification), "clean");
    assert_eq!(verdict(plain, writes), "0.0.0:2 WAW 0.0.0:0");
    assert_eq!(verdict(&plain.replace("D=TR DA=", "D=TR DA=W"), writes), "clean");
    let read = "TR.W [0,1); barrier Global[S=TR SA=W -> D=VS DA=sr]; VS.sr [0,1); barrier Global[S=VS SA= -> D=TR DA=]; TR.W [0,1)";
    assert_eq!(verdict(read, specification), "clean");
    assert_eq!(verdict(read, writes), "clean");
    // Barriers' transitions are ordered by the specification, too. Releases without a layout change are not.
    let two = "barrier Trans(0,2)[S= SA= -> D= DA=]; barrier Trans(1,3)[S= SA= -> D=CS DA=sr]; CS.sr [1,2)";
    assert_eq!(verdict(two, specification), "clean");
    assert_eq!(verdict(&two.replace("CS.sr [1,2)", "CS.sr [0,1)"), specification), "0.0.0:2 RAW 0.0.0:0");
    for (one, other, by_letter) in [
        ("Own", "Own", "0.0.0:1 WAW 0.0.0:0"),
        ("Own", "Trans", "0.0.0:1 WAW 0.0.0:0"),
        ("OwnTrans", "Trans", "clean"),
        ("Trans", "OwnTrans", "clean"),
    ] {
        let two = format!("barrier {one}(0,2)[S= SA= -> D= DA=]; barrier {other}(1,3)[S= SA= -> D= DA=]");
        assert_eq!(verdict(&two, specification), by_letter, "{two}");
        assert_eq!(verdict(&two, transfers), "clean", "{two}");
    }
}

/// Spec: `vkCmdWriteBufferMarker2AMD`.
#[test]
fn markers() {
    let mark = |stage: &str| format!("TR.W r1 [0,4)@{stage}");
    let two = |one: &str, other: &str| format!("{}; {}", mark(one), mark(other));
    table(&[
        (&two("FS", "FS"), "clean"),
        (&two("VS", "CO"), "clean"),
        (&two("CO", "VS"), "1 WAW 0"),
        (&two("CS", "FS"), "1 WAW 0"),
        (&two("ALL", "CS"), "1 WAW 0"),
        (&two("CS", "ALL"), "clean"),
        // A marker comes after earlier commands in its stage or a logically earlier one. That does not make their
        // writes available.
        (&format!("CS.sr r1 [0,4); {}", mark("CS")), "clean"),
        (&format!("VS.sr r1 [0,4); {}", mark("FS")), "clean"),
        (&format!("FS.sr r1 [0,4); {}", mark("VS")), "1 WAR 0"),
        (&format!("CS.SW r1 [0,4); {}", mark("CS")), "1 WAW 0"),
        (&format!("CS.SW r1 [0,4); barrier Global[S=CS SA=SW -> D=VS DA=]; {}", mark("CS")), "2 WAW 0"),
        (&format!("CS.sr r1 [0,4); barrier Global[S=CS SA= -> D=VS DA=]; {}", mark("FS")), "clean"),
        // Later commands see the marker as a transfer write.
        (&format!("{}; CS.sr r1 [0,4)", mark("CS")), "1 RAW 0"),
        (&format!("{}; barrier Global[S=TR SA=W -> D=CS DA=sr]; CS.sr r1 [0,4)", mark("CS")), "clean"),
    ]);
    // A barrier behind a marker continues chains that lead to the marker.
    let chain = |first: &str, stage: &str, masks: &str, last: &str| {
        format!("{first}; {}; barrier Global[{masks}]; {last}", mark(stage))
    };
    let available = "CS.SW [0,1); barrier Global[S=CS SA=SW -> D=CS DA=]";
    table(&[
        (&chain("CS.sr [0,1)", "CS", "S=TR SA= -> D=FS DA=", "FS.SW [0,1)"), "clean"),
        (&chain("CS.sr [0,1)", "FS", "S=TR SA= -> D=FS DA=", "FS.SW [0,1)"), "3 WAR 0"),
        (&chain("CS.sr [0,1)", "CS", "S=CL SA= -> D=FS DA=", "FS.SW [0,1)"), "3 WAR 0"),
        (&format!("CS.sr [0,1); {}; TR.W [0,1)", mark("CS")), "2 WAR 0"),
        (&chain(available, "CS", "S=TR SA= -> D=FS DA=sr", "FS.sr [0,1)"), "clean"),
        (&chain(available, "FS", "S=TR SA= -> D=FS DA=sr", "FS.sr [0,1)"), "4 RAW 0"),
        (&chain("CS.SW [0,1)", "CS", "S=TR SA= -> D=FS DA=sr", "FS.sr [0,1)"), "3 RAW 0"),
        // A later marker makes an earlier one available.
        (&chain("TR.W [0,4)@CS", "CS", "S=TR SA= -> D=FS DA=sr", "FS.sr [0,4)"), "clean"),
        (&chain("TR.W [0,4)@FS", "VS", "S=TR SA= -> D=FS DA=sr", "FS.sr [0,4)"), "3 RAW 0"),
        (&chain("TR.W [0,4)", "CS", "S=TR SA= -> D=FS DA=sr", "FS.sr [0,4)"), "3 RAW 0"),
    ]);
    // A barrier may lead to the stage of the marker instead of transfers. By the specification that is enough after a
    // write.
    let text =
        format!("cb0:\nCS.SW r1 [0,4)\nbarrier Global[S=CS SA=SW -> D=VS DA=]\n{}\nsubmit q0 cbs[0]", mark("FS"));
    assert_eq!(hazard_summary(&text, OracleRules::SPECIFICATION), "clean");
    assert_eq!(hazard_summary(&text, OracleRules::CONTRACT), "0.0.0:2 WAW 0.0.0:0");
}

#[test]
fn events() {
    let masks = "Global[S=TR SA=W -> D=FS DA=smp]";
    table(&[
        (&format!("TR.W [0,1); set e0 {masks}; wait e0 {masks}; FS.smp [0,1)"), "clean"),
        (&format!("set e0 {masks}; TR.W [0,1); wait e0 {masks}; FS.smp [0,1)"), "3 RAW 1"),
        (&format!("TR.W [0,1); set e0 {masks}; FS.smp [0,1); wait e0 {masks}"), "2 RAW 0"),
        (&format!("TR.W [0,1); set e0 {masks}; reset e0; wait e0 {masks}; FS.smp [0,1)"), "4 RAW 0"),
        (&format!("TR.W [0,1); set e0 {masks}; wait e1 {masks}; FS.smp [0,1)"), "3 RAW 0"),
        (&format!("set e0 {masks}; TR.W [0,1); set e0 {masks}; wait e0 {masks}; FS.smp [0,1)"), "4 RAW 1"),
        (&format!("set e0 {masks}; TR.W [0,1); reset e0; set e0 {masks}; wait e0 {masks}; FS.smp [0,1)"), "clean"),
        ("TR.W [0,1); set1 e0 TR; wait1 e0 TR -> FS : Global[SA=W DA=smp]; FS.smp [0,1)", "clean"),
        ("TR.W [0,1); set1 e0 CS; wait1 e0 CS -> FS : Global[SA=W DA=smp]; FS.smp [0,1)", "3 RAW 0"),
        ("TR.W [0,1); set1 e0 TR; wait1 e0 TR -> FS : Global[SA= DA=smp]; FS.smp [0,1)", "3 RAW 0"),
        ("TR.r [0,1); set1 e0 TR; wait1 e0 TR -> FS : ; FS.SW [0,1)", "clean"),
        ("TR.r [0,1); CS.sr [0,1); set1 e0 TR; set1 e1 CS; wait1 e0,e1 TR|CS -> FS : ; FS.SW [0,1)", "clean"),
        ("TR.r [0,1); CS.sr [0,1); set1 e0 TR; set1 e1 CS; wait1 e0 TR -> FS : ; FS.SW [0,1)", "5 WAR 1"),
        ("TR.W [0,1); set1 e0 TR; wait1 e0 TR -> FS : Trans(0,1)[SA=W DA=smp]; FS.smp [0,1)", "clean"),
        ("set1 e0 TR; TR.W [0,1); wait1 e0 TR -> FS : Trans(0,1)[SA=W DA=smp]; FS.smp [0,1)", "2 WAW 1"),
        // A barrier before the set chains into the event, one after it does not.
        ("CS.sr [0,1); barrier Global[S=CS SA= -> D=TR DA=]; set1 e0 TR; wait1 e0 TR -> FS : ; FS.SW [0,1)", "clean"),
        ("CS.sr [0,1); set1 e0 TR; barrier Global[S=CS SA= -> D=TR DA=]; wait1 e0 TR -> FS : ; FS.SW [0,1)", "4 WAR 0"),
    ]);
}

#[test]
fn resources_that_are_gone_do_not_matter() {
    let text = "cb0:\nTR.W [0,1)\nsubmit q0 cbs[0]\ndestroy 0\nsubmit q0 cbs[0]";
    assert_eq!(hazard_summary(text, OracleRules::CONTRACT), "clean");
    assert_eq!(hazard_summary(&text.replace("destroy 0", "destroy 1"), OracleRules::CONTRACT), "2.0.0:0 WAW 0.0.0:0");
}
