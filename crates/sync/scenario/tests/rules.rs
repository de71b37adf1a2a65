//! The rules that keep scenarios honest, each with what breaks it.

use lavascope_scenario::{
    ScenarioFailure, ScenarioSource, annotate, compare_hazards, interleavings, parse, print, run_files, variations,
};
use lavascope_sync_ir::{CommandLocation, Hazard, HazardKind, ProgramLocation, Region, ResourceId};

const WAR: &str = "\
# A copy reads `a`; the next copy overwrites it.
# spec: synchronization-dependencies-execution

buffer a b c 256

cmd main
  load:  copy a -> b
  store: copy c -> a
         #         ^ WAR a[0..256] after load
";

fn at(index: u32) -> ProgramLocation {
    ProgramLocation::Command(CommandLocation { step: 0, batch: 0, primary: 0, path: vec![index] })
}

fn war(bytes: std::ops::Range<u64>) -> Hazard {
    let region = Region::Buffer(bytes);
    Hazard { kind: HazardKind::WriteAfterRead, at: at(1), prior: at(0), resource: ResourceId(0), region }
}

fn error(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn the_found_set_must_be_exact() {
    let scenario = parse(WAR).unwrap();
    compare_hazards(&scenario, &[war(0..256)]).unwrap();
    // Hazards that a check reports in pieces are one hazard.
    compare_hazards(&scenario, &[war(128..256), war(0..128)]).unwrap();

    let missing = compare_hazards(&scenario, &[]).unwrap_err();
    assert!(missing.faults[0].contains("expected and not found: WAR a[0..256] after load"), "{missing}");
    assert!(missing.actual.contains("# expect: clean"), "{missing}");
    let smaller = compare_hazards(&scenario, &[war(0..128)]).unwrap_err();
    assert_eq!(smaller.faults.len(), 2, "{smaller}");
    let extra = Hazard { kind: HazardKind::ReadAfterWrite, resource: ResourceId(2), ..war(0..256) };
    let extra = compare_hazards(&scenario, &[war(0..256), extra]).unwrap_err();
    assert!(extra.faults[0].contains("found and not expected: RAW c[0..256]"), "{extra}");
    let kind = Hazard { kind: HazardKind::WriteAfterWrite, ..war(0..256) };
    assert!(compare_hazards(&scenario, &[kind]).is_err());
    let prior = Hazard { prior: at(1), ..war(0..256) };
    assert!(compare_hazards(&scenario, &[prior]).is_err());
    let nowhere = Hazard { at: at(9), ..war(0..256) };
    assert!(compare_hazards(&scenario, &[war(0..256), nowhere]).is_err());
}

#[test]
fn what_happened_is_printed_as_a_scenario() {
    let scenario = parse(WAR).unwrap();
    let actual = compare_hazards(&scenario, &[war(64..128)]).unwrap_err().actual;
    assert_eq!(actual, WAR.replace("a[0..256] after", "a[64..128] after"));
    let unlabeled = parse(&WAR.replace("load:  ", "       ").replace("after load", "after store")).unwrap();
    let annotated = print(&annotate(&unlabeled, &vec![war(0..256)].into()));
    assert!(annotated.contains("op0:") && annotated.contains("after op0"), "{annotated}");
    parse(&annotated).unwrap();
}

#[test]
fn the_column_is_part_of_the_expectation() {
    let moved = WAR.replace("#         ^", "#    ^");
    assert!(error(&moved).contains("no part of the operand"), "{}", error(&moved));
    let between = WAR.replace("#         ^", "#        ^");
    assert!(error(&between).contains("no operand begins in this column"), "{}", error(&between));
}

#[test]
fn silence_must_be_claimed() {
    let lost: String = WAR.lines().filter(|it| !it.contains('^')).map(|it| format!("{it}\n")).collect();
    assert!(error(&lost).contains("nothing is expected"), "{}", error(&lost));
    let both = WAR.replace("\n\nbuffer", "\n# expect: clean\n\nbuffer");
    assert!(error(&both).contains("contradict each other"), "{}", error(&both));
    let clean = lost.replace("\n\nbuffer", "\n# expect: clean\n\nbuffer");
    assert!(parse(&clean).unwrap().header.is_clean);
}

#[test]
fn the_unknown_is_an_error_with_the_nearest_word() {
    for (from, to, wanted) in [
        ("copy c", "cpoy c", "`cpoy` is no command: do you mean `copy`?"),
        ("# spec:", "# specs:", "do you mean `spec`?"),
        ("after load", "after laod", "`laod` is no label here: do you mean `load`?"),
        ("copy c -> a", "barrier cpy => copy", "`cpy` is no stage: do you mean `copy`?"),
        (
            "copy c -> a",
            "barrier copy:transfer_wirte => copy",
            "`transfer_wirte` is no access: do you mean `transfer_write`?",
        ),
        ("copy c -> a", "copy d -> a", "`d` is no buffer or image"),
        ("WAR a", "WARS a", "`WARS` is no kind of hazard: do you mean `WAR`?"),
        ("buffer a b c 256", "bufer a b c 256", "do you mean `buffer`?"),
        ("         #         ^ WAR", "         # WAR", "a comment here is an annotation"),
        ("store:", "load: ", "the label `load` is used twice"),
        ("copy c -> a", "copy c[0..512] -> a", "0..512 is no part of 256 bytes"),
        ("copy c -> a", "dispatch reads a b", "the end of the line is wanted here, found `b`"),
        ("copy c -> a", "barrier compute:read => copy", "`read` can mean several accesses"),
    ] {
        let text = WAR.replace(from, to);
        assert!(error(&text).contains(wanted), "{from} -> {to}: {}", error(&text));
    }
}

#[test]
fn prose_and_anchor_are_required() {
    assert!(
        error(&WAR.replace("# A copy reads `a`; the next copy overwrites it.\n", "")).contains("paragraph of prose")
    );
    assert!(
        error(&WAR.replace("# spec: synchronization-dependencies-execution\n", ""))
            .contains("`# spec: anchor` is missing")
    );
    assert!(error("buffer a 4\n").contains("paragraph of prose"));
    assert!(error("").contains("paragraph of prose"));
}

#[test]
fn known_gaps_are_asserted() {
    let gap = parse(&WAR.replace("         #         ^", "         #?        ^")).unwrap();
    assert!(gap.expectations[0].is_known_gap);
    compare_hazards(&gap, &[]).unwrap();
    let closed = compare_hazards(&gap, &[war(0..256)]).unwrap_err();
    assert!(closed.faults[0].contains("remove the `?`"), "{closed}");
    assert!(print(&gap).contains("#?        ^ WAR"));
}

#[test]
fn have_and_need_stand_under_an_annotation() {
    let line = "         #           need: copy => copy\n";
    let scenario = parse(&format!("{WAR}{line}")).unwrap();
    assert_eq!(scenario.expectations[0].extra, ["need: copy => copy"]);
    assert_eq!(print(&scenario), format!("{WAR}{line}"));
    let lone = WAR.replace("         #         ^ WAR a[0..256] after load\n", line);
    assert!(error(&lone).contains("stand under an annotation"));
}

#[test]
fn each_file_has_its_own_result() {
    let files = [
        ("good".to_owned(), WAR.to_owned()),
        ("bad".to_owned(), "x".to_owned()),
        ("loose".to_owned(), WAR.replace("  load:  ", "  load: ")),
    ];
    let outcomes = run_files(&files, |_| vec![war(0..256)]);
    let names: Vec<&str> = outcomes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["good", "bad", "loose"]);
    assert!(outcomes[0].result.is_ok());
    assert!(matches!(outcomes[1].result, Err(ScenarioFailure::Text(_))));
    assert!(matches!(&outcomes[2].result, Err(ScenarioFailure::NotCanonical(text)) if text == WAR));
}

#[test]
fn braces_and_long_words_mean_the_same() {
    let short = parse("# A rule.\n# spec: x\n# expect: clean\n\nbuffer a b 4\n\ncmd main\n  one: copy a -> b\n       barrier copy:write => compute:storage_read\n").unwrap();
    let long = parse("# A rule.\n# spec: x\n# expect: clean\nbuffer a b 4\ncmd main { one: access copy:transfer_read a, copy:transfer_write b; barrier copy:transfer_write => compute_shader:shader_storage_read }\n").unwrap();
    assert_eq!(short.program, long.program);
    assert_eq!(print(&short), print(&long));
}

const THREADS: &str = "\
# Two threads and what comes behind them.
# spec: synchronization-submission-order
# expect: clean

buffer a b 4
queue one: compute two: compute

cmd left
  dispatch reads a

cmd right
  dispatch reads b

thread first
  one submit left
  one idle

thread second
  two submit right

device idle
";

#[test]
fn threads_are_interleaved_in_every_order() {
    let scenario = parse(THREADS).unwrap();
    assert_eq!(print(&scenario), THREADS);
    let mut orders: Vec<Vec<u32>> = interleavings(&scenario, 100).into_iter().map(|it| it.steps).collect();
    orders.sort();
    assert_eq!(orders, [[0, 1, 2, 3], [0, 2, 1, 3], [2, 0, 1, 3]]);
    assert_eq!(interleavings(&scenario, 2).len(), 2);
}

#[test]
fn places_of_variations_lead_back_to_the_text() {
    let text =
        WAR.replace("execution\n", "execution\n# vary: submit = one | many\n") + "\nq submit main\nq submit main\n";
    let scenario = parse(&text).unwrap();
    let names: Vec<String> = variations(&scenario).into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["submit = one", "submit = many"]);
    // In the variation with one submit the second execution is in its second batch.
    let files = [("twice".to_owned(), text)];
    let outcomes = run_files(&files, |program| {
        let (step, batch) = if program.steps.len() == 1 { (0, 1) } else { (1, 0) };
        let at = |index| ProgramLocation::Command(CommandLocation { step, batch, primary: 0, path: vec![index] });
        vec![Hazard { at: at(1), prior: at(0), ..war(0..256) }]
    });
    assert!(outcomes[0].result.is_ok(), "{}", outcomes[0].result.as_ref().unwrap_err());
}

#[test]
fn what_cannot_vary_is_refused() {
    let text = "# A rule.\n# spec: x\n# expect: clean\n# vary: barrier-api = v1 | v2\n\nbuffer a b 4\n\ncmd main\n  barrier copy => copy, copy => compute\n";
    assert!(error(text).starts_with("line 9, column 3: `vary: barrier-api"), "{}", error(text));
    let pass = "# A rule.\n# spec: x\n# expect: clean\n# vary: rendering = pass | dynamic\n\nimage att 4x4\n\npass rp\n  attachment color initial=undefined\n  subpass color 0\n\ncmd main\n  begin rp with att\n  end pass\n";
    assert!(error(pass).starts_with("line 13, column 3: `vary: rendering"), "{}", error(pass));
}

fn misuse(text: &str) -> String {
    ScenarioSource::new(text).map(|_| ()).expect_err(text).to_string()
}

#[test]
fn programs_without_sense_are_refused_with_their_place() {
    for (text, wanted) in [
        (
            "buffer a b 4\n\ncmd main\n  copy a -> b\n\ndestroy b\nq submit main\n",
            "line 7, column 1: `b` is used by line 4 of `main` after line 6 destroyed it",
        ),
        ("buffer a 4\ndestroy a\nhost reads a\n", "line 3, column 1: `a` is used after line 2 destroyed it"),
        ("buffer a 4\ndestroy a\ndestroy a\n", "line 3, column 1: `a` is used after"),
        ("image i 4x4\ndestroy i\nacquire i\n", "line 3, column 1: `i` is used after"),
        ("image i 4x4\ndestroy i\nq present i\n", "line 3, column 1: `i` is used after"),
        (
            "image i 4x4\n\ncmd main\n  barrier1 none => copy: none => none layout i\n\ndestroy i\nq submit main\n",
            "line 7, column 1: `i` is used by line 4",
        ),
        (
            "buffer a 4\nevent e\n\ncmd main\n  set e copy => copy a\n\ndestroy a\nq submit main\n",
            "line 8, column 1: `a` is used by line 5",
        ),
        (
            "image i 4x4\n\ncmd main\n  begin rendering color i\n  end rendering\n\ndestroy i\nq submit main\n",
            "line 8, column 1: `i` is used by line 4",
        ),
        ("image i 4x4\n\ncmd main\n  begin rendering color i\n", "line 4, column 3: `main` never ends"),
        ("cmd main\n  end pass\n", "line 2, column 3: nothing has begun"),
        ("cmd main\n  next subpass\n", "line 2, column 3: no pass has begun"),
        ("secondary part\n\nq submit part\n", "line 3, column 1: `part` is `secondary`"),
    ] {
        assert!(misuse(text).starts_with(wanted), "{text}: {}", misuse(text));
    }
    // Expectations, and comments about a program, do not count.
    let source = ScenarioSource::new("# x: y\nbuffer a b 4\n\ncmd main { copy a -> b; one: fill a }\n").unwrap();
    let spot = source.location(lavascope_scenario::StatementId::Command { command_buffer: 0, index: 1 }).unwrap();
    assert_eq!((spot.line, spot.column, spot.statement), (4, 30, "fill a"));
    assert!(source.location(lavascope_scenario::StatementId::Step(0)).is_none(), "nobody wrote the submission");
}
