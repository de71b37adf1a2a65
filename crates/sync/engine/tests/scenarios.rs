//! Every scenario of the folder: the engine finds exactly what is written under its lines, and so does the oracle.

use std::path::Path;

use lavascope_oracle::{OracleRules, compare, compare_faults, find_hazards};
use lavascope_scenario::{parse, run_files};
use lavascope_sync_ir::{Findings, Program};

/// The scenarios of a folder, by name.
fn scenarios(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(folder);
    let mut files: Vec<(String, String)> = std::fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|it| it.expect("an entry").path())
        .filter(|it| it.extension().is_some_and(|it| it == "vks"))
        .map(|it| (it.to_string_lossy().into_owned(), std::fs::read_to_string(&it).expect("a text")))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there are scenarios in {}", folder.display());
    files
}

fn assert_expected(folder: &str, check: impl Fn(&Program) -> Findings) {
    let wrong: Vec<String> = run_files(&scenarios(folder), check)
        .into_iter()
        .filter_map(|it| it.result.err().map(|error| format!("{}:\n{error}", it.name)))
        .collect();
    assert!(wrong.is_empty(), "{} scenarios are judged otherwise\n{}", wrong.len(), wrong.join("\n\n"));
}

/// What the oracle says otherwise than the engine.
fn disagreements(folder: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, text) in scenarios(folder) {
        let program = parse(&text).expect("a scenario").program;
        let verdicts = find_hazards(&program, OracleRules::CONTRACT).hazards;
        let found = compare(&program, &verdicts, &lavascope_engine::check);
        wrong.extend(found.map(|it| format!("{name}: {it}")));
    }
    wrong
}

/// A test for each folder, spelled out so that the ledger of the seed documents can name it.
macro_rules! folders {
    ($(#[test] fn $name:ident();)*) => {
        $(#[test]
        fn $name() {
            assert_expected(stringify!($name), lavascope_engine::check_all);
        })*

        const FOLDERS: &[&str] = &[$(stringify!($name)),*];

        #[test]
        fn the_oracle_agrees() {
            let wrong: Vec<String> = [$(stringify!($name)),*].into_iter().flat_map(disagreements).collect();
            assert!(wrong.is_empty(), "{} scenarios\n{}", wrong.len(), wrong.join("\n"));
        }

        #[test]
        fn every_folder_is_here() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
            let entries = std::fs::read_dir(folder).expect("the folder is there");
            let mut found: Vec<String> =
                entries.map(|it| it.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
            found.sort();
            assert_eq!(found, FOLDERS);
        }
    };
}

folders! {
    #[test] fn aliasing();
    #[test] fn barrier();
    #[test] fn buffer();
    #[test] fn event();
    #[test] fn host();
    #[test] fn image();
    #[test] fn present();
    #[test] fn queue_family();
    #[test] fn raster_order();
    #[test] fn render_pass();
    #[test] fn secondary();
    #[test] fn sparse();
    #[test] fn submit();
}

#[test]
fn the_oracle_agrees_on_contents() {
    let mut faulty = 0;
    for (name, text) in ["queue_family", "render_pass"].into_iter().flat_map(scenarios) {
        let program = parse(&text).expect("a scenario").program;
        let faults = lavascope_engine::check_all(&program).faults;
        faulty += usize::from(!faults.is_empty());
        if let Some(why) = compare_faults(&program, &faults) {
            panic!("{name}: {why}");
        }
    }
    assert!(faulty >= 10, "{faulty} scenarios have faults");
}
