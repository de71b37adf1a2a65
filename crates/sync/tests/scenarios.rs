//! Every scenario of the folder: the engine finds exactly what is written under its lines, and so does the oracle.

use std::path::Path;

use lavascope_program::{Findings, Program, Resource, ResourceKind};
use lavascope_scenario::run;
use lavascope_sim::hazard::{OracleRules, compare_faults, describe, find_disagreement};

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

fn judge(folder: &str, check: impl Fn(&Program) -> Findings) {
    let wrong: Vec<String> = run(&scenarios(folder), check)
        .into_iter()
        .filter_map(|it| it.result.err().map(|error| format!("{}:\n{error}", it.name)))
        .collect();
    assert!(wrong.is_empty(), "{} scenarios are judged otherwise\n{}", wrong.len(), wrong.join("\n\n"));
}

/// A test for each folder, spelled out so that the ledger of the seed documents can name it.
macro_rules! folders {
    ($(#[test] fn $name:ident();)*) => {
        $(#[test]
        fn $name() {
            judge(stringify!($name), lavascope_sync::check_all);
        })*

        #[test]
        fn every_folder_is_here() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
            let entries = std::fs::read_dir(folder).expect("the folder is there");
            let mut found: Vec<String> =
                entries.map(|it| it.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
            found.sort();
            assert_eq!(found, [$(stringify!($name)),*]);
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

/// The oracle looks at every texel and every byte, so this is for those that are small.
#[test]
fn the_oracle_agrees_on_where_things_lie() {
    const CELLS_MAX: u64 = 2000;
    let mut agreed = 0;
    for (name, text) in ["aliasing", "buffer", "image", "sparse"].into_iter().flat_map(scenarios) {
        let program = lavascope_scenario::parse(&text).expect("a scenario").program;
        let size = |it: &Resource| match &it.kind {
            ResourceKind::Buffer { size } => *size,
            ResourceKind::Image(it) => it.extent.iter().map(|it| u64::from(*it)).product::<u64>() * 4,
        };
        if program.resources.iter().map(size).sum::<u64>() > CELLS_MAX {
            continue;
        }
        if let Some((small, why)) = find_disagreement(&program, OracleRules::CONTRACT, &lavascope_sync::check) {
            panic!("{name}:\n{}", describe(&small, &why));
        }
        agreed += 1;
    }
    assert!(agreed >= 80, "{agreed} scenarios are small");
}

#[test]
fn the_oracle_agrees_on_contents() {
    let mut faulty = 0;
    for (name, text) in ["queue_family", "render_pass"].into_iter().flat_map(scenarios) {
        let program = lavascope_scenario::parse(&text).expect("a scenario").program;
        let faults = lavascope_sync::check_all(&program).faults;
        faulty += usize::from(!faults.is_empty());
        if let Some(why) = compare_faults(&program, &faults) {
            panic!("{name}: {why}");
        }
    }
    assert!(faulty >= 10, "{faulty} scenarios have faults");
}
