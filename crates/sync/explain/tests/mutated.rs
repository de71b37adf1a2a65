//! Scenarios with a line too few, too many or in the wrong place: what can be read is judged and reported, or refused with
//! its place, and never brings the engine down.

use std::path::Path;

use lavascope_diag::render_text;
use lavascope_engine::check;
use lavascope_explain::{NumberedNames, diagnose_hazards};
use lavascope_scenario::ScenarioSource;

fn corpus() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/scenarios");
    let mut found = Vec::new();
    for folder in std::fs::read_dir(root).expect("the corpus").flatten() {
        for file in std::fs::read_dir(folder.path()).expect("a folder").flatten() {
            if file.path().extension().is_some_and(|it| it == "vks") {
                let text = std::fs::read_to_string(file.path()).expect("a scenario");
                found.push((file.path().display().to_string(), text));
            }
        }
    }
    found.sort();
    found
}

/// The text without a line, with it twice, and with it behind the next one, for each of its lines.
fn mutations(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|it| !it.starts_with('#')).collect();
    let mut found = Vec::new();
    for at in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(at);
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        found.extend([without.join("\n"), twice.join("\n")]);
        if at + 1 < lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            found.push(swapped.join("\n"));
        }
    }
    found
}

#[test]
fn damaged_scenarios_are_refused_with_their_place_or_judged() {
    let (mut judged, mut refused, mut hazards) = (0, 0, 0);
    for (name, text) in corpus() {
        for mutation in mutations(&text) {
            let source = match ScenarioSource::new(&mutation) {
                Ok(source) => source,
                Err(error) => {
                    let lines = mutation.lines().count() as u32;
                    assert!((1..=lines).contains(&error.line) && error.column > 0, "{name}: {error}\n{mutation}");
                    refused += 1;
                    continue;
                }
            };
            let program = &source.scenario.program;
            let found = check(program);
            for diagnose_hazard in diagnose_hazards(program, &found, &NumberedNames(program)) {
                assert!(
                    !diagnose_hazard.fixes.is_empty() || diagnose_hazard.no_fix.is_some(),
                    "{name}: {}\n{mutation}",
                    render_text(&diagnose_hazard)
                );
                hazards += 1;
            }
            judged += 1;
        }
    }
    println!("{judged} judged with {hazards} hazards, {refused} refused");
    assert!(judged > 1000 && refused > 100 && hazards > 1000, "{judged}, {refused}, {hazards}");
}
