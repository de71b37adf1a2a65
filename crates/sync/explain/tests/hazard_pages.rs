//! The pages of `docs/hazards`: one for each code, whose wrong program has that hazard and whose fixed one has none.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use lavascope_diag::Code;
use lavascope_engine::EventRaceKind;
use lavascope_engine::event_races;
use lavascope_explain::{
    CheckBudget, NEVER_EXECUTED, NumberedNames, OVER_SYNCHRONIZATION, blocked_submissions, diagnose_never_executed,
    diagnose_races, fault_code, find_over_synchronization, race_code, report,
};
use lavascope_scenario::{ExpectedKind, Scenario, parse, run_files};
use lavascope_sync_ir::{HazardKind, UndefinedContentsKind};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/hazards")
}

fn code(kind: HazardKind) -> Code {
    Code(Cow::Owned(format!("SYNC-HAZARD-{kind}")))
}

fn page(kind: HazardKind) -> String {
    page_of(&code(kind))
}

fn page_of(code: &Code) -> String {
    let path = folder().join(format!("{code}.md"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The scenario under a heading.
fn scenario_text(page: &str, heading: &str) -> String {
    let section = page.split("\n## ").find_map(|it| it.strip_prefix(heading)).unwrap_or_else(|| panic!("{heading}"));
    let (_, rest) = section.split_once("```text\n").expect("a block of text");
    rest.split_once("```").expect("an end of the block").0.to_owned()
}

/// A scenario that the engine judges as it says itself.
fn judged(kind: HazardKind, heading: &str) -> Scenario {
    judged_of(&code(kind), heading)
}

fn judged_of(code: &Code, heading: &str) -> Scenario {
    let text = scenario_text(&page_of(code), heading);
    let outcomes = run_files(&[(format!("{code}, {heading}"), text.clone())], lavascope_engine::check_all);
    for outcome in outcomes {
        outcome.result.unwrap_or_else(|error| panic!("{}:\n{error}", outcome.name));
    }
    parse(&text).expect("a scenario")
}

#[test]
fn the_wrong_programs_have_the_hazard_of_their_page_and_the_fixed_ones_none() {
    for kind in HazardKind::ALL {
        let wrong = judged(kind, "Wrong");
        assert!(!wrong.expectations.is_empty(), "{kind}");
        for expectation in &wrong.expectations {
            assert!(
                expectation.kind == ExpectedKind::Hazard(kind) && !expectation.is_known_gap,
                "{kind}: {expectation:?}"
            );
        }
        assert!(judged(kind, "Fixed").header.is_clean, "{kind}");
    }
}

/// Those of buffers and those of images.
fn fault_codes() -> Vec<(UndefinedContentsKind, Code)> {
    let both = |kind| [false, true].map(|is_image| (kind, Code(Cow::Borrowed(fault_code(kind, is_image)))));
    let mut all: Vec<(UndefinedContentsKind, Code)> = UndefinedContentsKind::ALL.into_iter().flat_map(both).collect();
    all.dedup();
    all
}

#[test]
fn the_programs_of_faults_have_the_fault_of_their_page_and_then_none() {
    for (kind, code) in fault_codes() {
        let wrong = judged_of(&code, "Wrong");
        assert!(!wrong.expectations.is_empty(), "{code}");
        for expectation in &wrong.expectations {
            assert!(
                expectation.kind == ExpectedKind::Fault(kind) && !expectation.is_known_gap,
                "{code}: {expectation:?}"
            );
        }
        let reported = report(&wrong.program, &NumberedNames(&wrong.program));
        assert!(reported.iter().all(|it| it.code == code), "{reported:?}");
        assert!(judged_of(&code, "Fixed").header.is_clean, "{code}");
        assert_named(&code);
        let page = page_of(&code);
        assert!(page.contains(&format!("\nIts short form is `{}`; ", kind.short())), "{code}");
        assert!(page.contains(&format!("LAVASCOPE_MESSAGE_ID_FILTER={code}\n")), "{code}");
        // What `lavascope explain` lists: one line.
        let sentence = page.lines().nth(2).expect("a sentence");
        assert!(sentence.ends_with('.') && page.lines().nth(3) == Some(""), "{code}: {sentence}");
    }
}

#[test]
fn pages_say_their_names_and_there_are_no_others() {
    let codes = HazardKind::ALL
        .map(|it| code(it).to_string())
        .into_iter()
        .chain([OVER_SYNCHRONIZATION, NEVER_EXECUTED].map(str::to_owned))
        .chain(EventRaceKind::ALL.map(|it| race_code(it, "vkCmdSetEvent")))
        .chain(fault_codes().into_iter().map(|it| it.1.to_string()));
    let mut expected: Vec<String> = codes.map(|it| format!("{it}.md")).collect();
    let entries = std::fs::read_dir(folder()).expect("the folder of the pages");
    let mut found: Vec<String> =
        entries.map(|it| it.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    for kind in HazardKind::ALL {
        let (page, id) = (page(kind), code(kind).message_id());
        assert!(page.starts_with(&format!("# {}\n\n", code(kind))), "{kind}");
        let names = format!("\nIts short form is `{}`; its message id is {id:#010x} ({id}).\n", kind.short());
        assert!(page.contains(&names), "{kind} lacks {names}");
        assert!(page.contains(&format!("LAVASCOPE_MESSAGE_ID_FILTER={}\n", code(kind))), "{kind}");
        // What `lavascope explain` lists: one line.
        let sentence = page.lines().nth(2).expect("a sentence");
        assert!(sentence.ends_with('.') && page.lines().nth(3) == Some(""), "{kind}: {sentence}");
    }
}

#[test]
fn the_page_of_needless_synchronization_has_some_and_then_none() {
    let code = Code(Cow::Borrowed(OVER_SYNCHRONIZATION));
    let needless = |heading: &str| {
        let scenario = judged_of(&code, heading);
        assert!(scenario.header.is_clean, "{heading}");
        find_over_synchronization(&scenario.program, CheckBudget { checks_max: 1000 }).redundant.len()
    };
    assert!(needless("Wrong") > 0);
    assert_eq!(needless("Fixed"), 0);
    assert_named(&code);
}

/// The title and the number.
fn assert_named(code: &Code) {
    let (page, id) = (page_of(code), code.message_id());
    assert!(page.starts_with(&format!("# {code}\n\n")));
    assert!(page.contains(&format!("its message id is {id:#010x} ({id}).\n")), "{id:#010x} ({id})");
}

#[test]
fn the_page_of_work_that_waits_forever_has_some_and_then_none() {
    let code = Code(Cow::Borrowed(NEVER_EXECUTED));
    let reported = |heading: &str| {
        let program = judged_of(&code, heading).program;
        let found = diagnose_never_executed(&program, &blocked_submissions(&program), &NumberedNames(&program));
        found.into_iter().map(|it| it.message).collect::<Vec<_>>()
    };
    let expected = "Work of step 0 on queue 0 was never executed, and not checked: \
                    nobody signals semaphore 0 with the value 2 for it.";
    assert_eq!(reported("Wrong"), [expected]);
    assert_eq!(reported("Fixed"), Vec::<String>::new());
    assert_named(&code);
}

#[test]
fn the_pages_of_event_races_have_some_and_then_none() {
    for kind in EventRaceKind::ALL {
        let code = Code(Cow::Owned(race_code(kind, "vkCmdSetEvent")));
        let reported = |heading: &str| {
            let scenario = judged_of(&code, heading);
            assert!(scenario.header.is_clean, "{code}: {heading}");
            let found = event_races(&scenario.program);
            diagnose_races(&scenario.program, &found, &NumberedNames(&scenario.program))
        };
        let wrong = reported("Wrong");
        assert!(wrong.iter().any(|it| it.code == code), "{code}: {wrong:#?}");
        assert_eq!(reported("Fixed"), [], "{code}");
        assert_named(&code);
        let page = page_of(&code);
        assert!(page.contains(&format!("LAVASCOPE_MESSAGE_ID_FILTER={code}\n")), "{code}");
        let sentence = page.lines().nth(2).expect("a sentence");
        assert!(sentence.ends_with('.') && page.lines().nth(3) == Some(""), "{code}: {sentence}");
    }
}
