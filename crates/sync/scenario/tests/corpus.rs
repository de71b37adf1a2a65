//! Every scenario of the engine's corpus reads, is canonical, and survives being a bare program.

use std::fs;
use std::path::{Path, PathBuf};

use lavascope_scenario::{Scenario, interleavings, parse, print, run_files, variations};
use lavascope_sync_ir::{Barrier, Command, Program, WaitEvents};

/// Names and texts of all files, sorted.
fn corpus() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/scenarios");
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in fs::read_dir(&root).expect("the corpus is there") {
        let folder = folder.expect("a folder can be read").path();
        paths.extend(fs::read_dir(folder).expect("a folder").map(|it| it.expect("a file can be read").path()));
    }
    paths.retain(|it| it.extension().is_some_and(|it| it == "vks"));
    paths.sort();
    let name = |it: &Path| it.strip_prefix(&root).expect("under the root").display().to_string();
    paths.iter().map(|it| (name(it), fs::read_to_string(it).expect("a scenario is text"))).collect()
}

fn scenario(name: &str, text: &str) -> Scenario {
    parse(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// In version 1 the stages of single dependencies mean nothing and are not printed.
fn without_idle_stages(mut program: Program) -> Program {
    for command in program.command_buffers.iter_mut().flat_map(|it| &mut it.commands) {
        let (src, dst, all) = match command {
            Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies }) => {
                (src_stages, dst_stages, dependencies)
            }
            Command::WaitEvents(WaitEvents::Sync1 { src_stages, dst_stages, dependencies, .. }) => {
                (src_stages, dst_stages, dependencies)
            }
            _ => continue,
        };
        for dependency in all {
            dependency.scope.src_stages = *src;
            dependency.scope.dst_stages = *dst;
        }
    }
    program
}

#[test]
fn every_file_is_canonical() {
    let files = corpus();
    assert!(files.len() >= 300, "{}", files.len());
    for (name, text) in files {
        assert_eq!(print(&scenario(&name, &text)), text, "{name}");
    }
}

#[test]
fn every_folder_has_both_verdicts() {
    let mut folders: Vec<(String, bool)> = Vec::new();
    for (name, text) in corpus() {
        let folder = name.split('/').next().unwrap_or("").to_owned();
        folders.push((folder, scenario(&name, &text).header.is_clean));
    }
    folders.sort();
    folders.dedup();
    for folder in
        "aliasing barrier buffer event host image present queue_family raster_order render_pass secondary sparse submit"
            .split(' ')
    {
        for is_clean in [false, true] {
            assert!(folders.contains(&(folder.to_owned(), is_clean)), "{folder} has none with clean = {is_clean}");
        }
    }
}

#[test]
fn a_bare_program_is_printed_and_read_back() {
    for (name, text) in corpus() {
        let first = scenario(&name, &text);
        let mut programs = vec![first.program.clone()];
        programs.extend(variations(&first).into_iter().map(|it| it.program));
        programs.extend(interleavings(&first, 8).into_iter().map(|it| it.program));
        for program in programs {
            let bare = Scenario::of(without_idle_stages(program));
            let printed = print(&bare);
            let again = parse(&printed).unwrap_or_else(|error| panic!("{name}: {error}\n{printed}"));
            assert_eq!(again.program, bare.program, "{name}:\n{printed}");
            assert_eq!(print(&again), printed, "{name}");
        }
    }
}

#[test]
fn who_finds_nothing_fails_exactly_where_something_is_expected() {
    let files = corpus();
    let outcomes = run_files(&files, |_| Vec::new());
    assert_eq!(outcomes.len(), files.len());
    for (outcome, (name, text)) in outcomes.iter().zip(&files) {
        assert_eq!(&outcome.name, name);
        let expects = scenario(name, text).expectations.iter().any(|it| !it.is_known_gap);
        assert_eq!(outcome.result.is_err(), expects, "{name}");
    }
}
