//! Every sentence about a hazard makes sense to somebody who does not know this project: over all scenarios and over
//! random programs.
//!
//! `LAVASCOPE_SAMPLE_PROGRAMS` and `LAVASCOPE_SAMPLE_SEED` make it more, and others. `LAVASCOPE_SENTENCES` names a file
//! that gets each kind of sentence once, to be read.

use std::collections::BTreeMap;

use lavascope_diag::{Diagnostic, FixEdit};
use lavascope_explain::{NumberedNames, report};
use lavascope_sim::programs::{ProgramFeatures, make_sparse, print, random_program, share_memory, shrink};
use lavascope_sync_ir::Program;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

/// What people read of a finding, line by line, without the masks that the application wrote.
fn lines(diagnostic: &Diagnostic) -> Vec<String> {
    let message = diagnostic.message.lines().filter(|it| !it.starts_with("pImageMemoryBarriers"));
    let explanation = diagnostic.explanation.iter().map(|it| without_masks(it));
    let fixes = diagnostic.fixes.iter().map(|it| format!("Fix: {}", it.text));
    let no_fix = diagnostic.no_fix.iter().map(|it| format!("No fix: {it}"));
    let kind = if diagnostic.code.0.starts_with("SYNC-HAZARD") { "Title" } else { "Title of a fault" };
    let title = std::iter::once(format!("{kind}: {}", diagnostic.title()));
    let operations = diagnostic.operations.iter().map(|it| format!("Listed: {}: {}", it.kind, it.gap));
    let accesses = diagnostic.locations.iter().map(|it| format!("Access: {}", it.access.action));
    let changes = diagnostic.fixes.iter().flat_map(|it| &it.changes);
    let given =
        |edit: &FixEdit| edit.before.as_ref().map_or(edit.after.clone(), |it| edit.after.replacen(it, "given", 1));
    let edits = changes.flat_map(|it| it.edits.iter().map(move |edit| format!("In {}: {}", it.target, given(edit))));
    let reported = message.map(str::to_owned).chain(explanation).chain(fixes).chain(no_fix);
    reported.chain(title).chain(operations).chain(accesses).chain(edits).collect()
}

fn without_masks(line: &str) -> String {
    match (line.find(" ["), line.find("]: "), line.find("] on ")) {
        (Some(from), Some(to), _) | (Some(from), None, Some(to)) if from < to => {
            format!("{}{}", &line[..from], &line[to + 1..])
        }
        _ => line.to_owned(),
    }
}

/// What is wrong with a line, if anything.
fn fault_of(line: &str, program: &Program) -> Option<&'static str> {
    let queues = program.queues.len();
    let words: Vec<&str> = line.split(' ').collect();
    let is_doubled = |it: &[&str]| it[0] == it[1] && it[0].len() > 1;
    let is_of_itself = |it: &[&str]| it[1] == "of" && it[0] == it[2].trim_end_matches([',', '.', ';']);
    let ends_with = |it: &str| line.trim_end_matches('.').ends_with(it);
    let is_unfinished = |it: &str| ends_with(&format!(" {it}")) || line.contains(&format!(" {it};"));
    let is_cut = ["lack", "but", "to", "and", "allows", "lets", "makes", "of", ":", ","].into_iter().any(is_unfinished);
    let nameless = ["a command", "a resource", "a submission"];
    let title = line.strip_prefix("Title: ");
    let is_long = title.is_some_and(|it| it.chars().count() > lavascope_diag::TITLE_MAX);
    let names_both = title.is_none_or(|it| it.contains(" before ") || it.contains(" while "));
    let cases = [
        (is_long, "a title that is too long"),
        (!names_both, "a title with one access"),
        (line.contains("TOP_OF_PIPE") || line.contains("BOTTOM_OF_PIPE"), "a stage in which nothing happens"),
        (line.contains("STAGE_2_NONE") || line.contains("ACCESS_2_NONE"), "no stage or access"),
        (line.contains("nothing, but") || line.contains("before nothing"), "nothing as something"),
        (queues < 2 && line.contains("other queue"), "another queue where there is one"),
        (words.windows(2).any(is_doubled), "a word twice"),
        (words.windows(3).any(is_of_itself), "something of itself"),
        (line.contains(", ,") || line.contains("; ;") || line.contains("  ") || line.contains("()("), "an empty list"),
        (is_cut, "a sentence without its end"),
        (nameless.iter().any(|it| words.windows(2).any(|two| two.join(" ") == **it)), "something without a name"),
        (line.contains("nothing waits for it") && !line.contains("semaphore"), "a wait that nobody could make"),
        (contradicts_itself(line), "something that is and is not"),
        (line.contains("1 changes") || line.contains("(1 times)"), "one thing as many"),
    ];
    cases.into_iter().find(|it| it.0).map(|it| it.1)
}

/// Whether a sentence asks for what it says is there already: `orders it before A, but A does not wait`, `allows A, but
/// it must allow A`.
fn contradicts_itself(line: &str) -> bool {
    let between = |from: &str, to: &str| Some(line.split_once(from)?.1.split_once(to)?.0);
    let ordered = between("orders it before ", ", but ");
    let waiting = between(", but ", " does not wait for it");
    let lacking =
        between("its destination stages lack ", ";").or(line.split_once("destination stages lack ").map(|it| it.1));
    let allowed = between(" allows ", ", but it must allow ");
    let wanted = line.split_once(", but it must allow ").map(|it| it.1.trim_end_matches('.'));
    let has = |all: Option<&str>, one: Option<&str>| match (all, one) {
        (Some(all), Some(one)) => all.split(", ").any(|it| it == one),
        _ => false,
    };
    let has_access = line.contains("has the earlier access");
    let has_not = ["its source ", "the earlier access went through"].iter().any(|it| line.contains(it));
    let mut reasons: Vec<&str> = line.split("; ").filter(|it| !it.starts_with("it is about ")).collect();
    let count = reasons.len();
    reasons.sort_unstable();
    reasons.dedup();
    has_access && has_not
        || reasons.len() < count
        || has(ordered, waiting)
        || has(ordered, lacking)
        || has(allowed, wanted)
}

/// The first line of a program that makes no sense, and why.
fn first_fault(program: &Program) -> Option<(String, &'static str)> {
    let all = report(program, &NumberedNames(program));
    all.iter().flat_map(lines).find_map(|line| Some((fault_of(&line, program)?, line))).map(|(why, line)| (line, why))
}

/// A sentence without what is different in each program.
fn shape(line: &str) -> String {
    let is_mask = |it: &str| it.contains("VK_PIPELINE_STAGE") || it.contains("VK_ACCESS");
    let numbers = |it: &str| it.chars().map(|it| if it.is_ascii_digit() { '#' } else { it }).collect();
    let word = |it: &str| if is_mask(it) { "MASK".to_owned() } else { numbers(it) };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[derive(Default)]
struct Sentences {
    shapes: BTreeMap<String, (u64, String)>,
    wrong: BTreeMap<&'static str, (u64, String)>,
    lines: u64,
}

impl Sentences {
    fn read(&mut self, name: &str, program: &Program) {
        for line in report(program, &NumberedNames(program)).iter().flat_map(lines) {
            self.lines += 1;
            let known = self.shapes.entry(shape(&line)).or_insert_with(|| (0, format!("{name}: {line}")));
            known.0 += 1;
            if let Some(why) = fault_of(&line, program) {
                let known = self.wrong.entry(why).or_insert_with(|| {
                    let small = shrink(program, &|it| first_fault(it).is_some_and(|it| it.1 == why));
                    let line = first_fault(&small).map_or(line, |it| it.0);
                    (0, format!("{name}: {line}\n{}", print(&small)))
                });
                known.0 += 1;
            }
        }
    }

    fn finish(self, lines_min: u64) {
        if let Some(file) = std::env::var_os("LAVASCOPE_SENTENCES") {
            let text: Vec<String> = self.shapes.values().map(|(count, line)| format!("{count:6} {line}")).collect();
            std::fs::write(file, text.join("\n")).expect("a writable file");
        }
        println!("{} lines, {} kinds", self.lines, self.shapes.len());
        let wrong: Vec<String> =
            self.wrong.iter().map(|(why, (count, text))| format!("{why}, {count} times; {text}")).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(self.lines > lines_min, "{} lines", self.lines);
    }
}

#[test]
fn sentences_about_random_programs_make_sense() {
    let (first, count) = (number("LAVASCOPE_SAMPLE_SEED", 1), number("LAVASCOPE_SAMPLE_PROGRAMS", 120));
    let mut all = Sentences::default();
    let kinds =
        [ProgramFeatures::BARRIERS, ProgramFeatures::WITHOUT_RENDERING, ProgramFeatures::ALL, ProgramFeatures::ALIASES];
    for (index, kind) in kinds.iter().enumerate() {
        for seed in first..first + count {
            all.read(&format!("kind {index}, seed {seed}"), &random_program(seed, kind));
        }
    }
    for seed in first..first + count / 2 {
        let mut sparse = random_program(seed, &ProgramFeatures::ALL);
        make_sparse(&mut sparse, seed);
        all.read(&format!("sparse, seed {seed}"), &sparse);
        let mut shared = random_program(seed, &ProgramFeatures::ALL);
        share_memory(&mut shared);
        all.read(&format!("shared, seed {seed}"), &shared);
    }
    all.finish(count * 10);
}

#[test]
fn sentences_about_scenarios_make_sense() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/scenarios");
    let folders = std::fs::read_dir(root).expect("the corpus").flatten().map(|it| it.path());
    let files = folders.flat_map(|it| std::fs::read_dir(it).expect("a folder").flatten().map(|it| it.path()));
    let mut files: Vec<std::path::PathBuf> = files.filter(|it| it.extension().is_some_and(|it| it == "vks")).collect();
    files.sort();
    let mut all = Sentences::default();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a scenario");
        let program = lavascope_scenario::parse(&text).expect("a scenario that parses").program;
        all.read(&path.file_stem().unwrap_or_default().to_string_lossy(), &program);
    }
    all.finish(1000);
}
