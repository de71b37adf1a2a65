//! The ledger of the seed documents: its ids, its verdicts, and the tests, scenarios and files that it names.

use std::collections::{BTreeMap, BTreeSet};

use super::table;
use crate::tidy::rust::source::{RustSource, leading_word};
use crate::tidy::{File, Rule, TidyFinding};

const PATH: &str = "docs/seed-coverage.md";
const SCENARIOS: &str = "crates/sync/engine/tests/scenarios";
const PREFIXES: [&str; 3] = ["S", "G", "T"];
/// Fewer words than this are no reason.
const REASON_WORDS_MIN: usize = 3;

pub(crate) fn check(files: &[File]) -> Vec<TidyFinding> {
    match File::text_of(files, PATH) {
        Some(text) => {
            let mut findings = check_text(text, &tests_by_crate(files));
            findings.extend(check_paths(text, files));
            findings
        }
        None => vec![finding(1, "the ledger is missing: write it")],
    }
}

/// The names of all tests, with an entry for every crate.
type TestNames = BTreeMap<String, BTreeSet<String>>;

struct LedgerRow {
    line: usize,
    prefix: String,
    number: usize,
    verdict: String,
    note: String,
}

fn finding(line: usize, text: impl Into<String>) -> TidyFinding {
    TidyFinding::new(Rule::Ledger, PATH, line, text)
}

fn tests_by_crate(files: &[File]) -> TestNames {
    let mut tests = TestNames::new();
    for file in files {
        let (Some((name, path)), Some(text)) = (file.inside_crate(), &file.text) else { continue };
        let of_crate = tests.entry(name.to_owned()).or_default();
        if path.ends_with(".rs") && (path.starts_with("src/") || path.starts_with("tests/")) && text.contains("#[test]")
        {
            of_crate.extend(test_names(&RustSource::new(text)));
        }
    }
    tests
}

/// The functions that a test attribute stands before, other attributes in between or not.
fn test_names(source: &RustSource) -> Vec<String> {
    let attributes = source.code.match_indices("#[test]").map(|(at, it)| at + it.len());
    attributes.filter_map(|end| test_name(source, end)).collect()
}

fn test_name(source: &RustSource, end: usize) -> Option<String> {
    let mut at = end;
    loop {
        let rest = source.after(at);
        at = source.code.len() - rest.len();
        if rest.starts_with("#[") {
            at = source.closing(at + 1)? + 1;
            continue;
        }
        match leading_word(rest) {
            "fn" => return Some(leading_word(source.after(at + 2)).to_owned()),
            word @ ("pub" | "async" | "unsafe") => at += word.len(),
            _ => return None,
        }
    }
}

fn check_text(text: &str, tests: &TestNames) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut rows = Vec::new();
    for (line, cells) in text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, table::cells(line)?))) {
        if table::is_delimiter_row(&cells) || cells[0] == "id" {
            continue;
        }
        match parse(line, &cells) {
            Ok(row) => rows.push(row),
            Err(fault) => findings.push(fault),
        }
    }
    findings.extend(PREFIXES.iter().flat_map(|prefix| check_ids(prefix, &rows)));
    findings.extend(rows.iter().flat_map(|row| check_verdict(row, tests)));
    findings
}

fn parse(line: usize, cells: &[String]) -> Result<LedgerRow, TidyFinding> {
    let [id, text, verdict, note] = cells else {
        let wanted = "write `| id | text | verdict | note |` (and `\\|` for a bar inside a cell)";
        return Err(finding(line, format!("a row of {} cells: {wanted}", cells.len())));
    };
    if text.is_empty() {
        return Err(finding(line, format!("{id} says nothing: put into words what is asked for")));
    }
    let parts = id.split_once('-').filter(|(prefix, _)| PREFIXES.contains(prefix));
    let number = parts.and_then(|(_, digits)| digits.parse::<usize>().ok());
    match (parts, number) {
        (Some((prefix, digits)), Some(number)) if digits == format!("{number:03}") => {
            Ok(LedgerRow { line, prefix: prefix.to_owned(), number, verdict: verdict.clone(), note: note.clone() })
        }
        _ => Err(finding(line, format!("`{id}` is no id: write S, G or T, a hyphen and three digits, like S-001"))),
    }
}

fn check_ids(prefix: &str, rows: &[LedgerRow]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut seen = BTreeMap::new();
    let mut before = 0;
    for row in rows.iter().filter(|it| it.prefix == prefix) {
        let id = format!("{prefix}-{:03}", row.number);
        if let Some(first) = seen.insert(row.number, row.line) {
            findings.push(finding(row.line, format!("{id} is taken by line {first}: give this row an id of its own")));
        } else if row.number != before + 1 {
            findings.push(finding(row.line, format!("{id} where {prefix}-{:03} comes next: renumber", before + 1)));
        }
        before = row.number;
    }
    if seen.is_empty() {
        findings.push(finding(1, format!("no row begins with {prefix}-: all of S, G and T belong here")));
    }
    findings
}

fn check_verdict(row: &LedgerRow, tests: &TestNames) -> Vec<TidyFinding> {
    let id = format!("{}-{:03}", row.prefix, row.number);
    let (needs_test, needs_reason) = match row.verdict.as_str() {
        "works" => (true, false),
        "differs" => (true, true),
        "not planned" => (false, true),
        "not yet" => (false, false),
        other => {
            let wanted = "write works, differs, not yet or not planned";
            return vec![finding(row.line, format!("{id}: `{other}` is no verdict: {wanted}"))];
        }
    };
    let mut faults = if needs_test { test_faults(&row.note, tests) } else { Vec::new() };
    if needs_reason && reason_words(&row.note) < REASON_WORDS_MIN {
        faults.push("gives no reason: say why in words in the last column".to_owned());
    }
    faults.into_iter().map(|it| finding(row.line, format!("{id} is `{}` but {it}", row.verdict))).collect()
}

fn test_faults(note: &str, tests: &TestNames) -> Vec<String> {
    let named: Vec<(&str, &str)> = table::code_spans(note).filter_map(|it| it.split_once("::")).collect();
    let (known, unknown): (Vec<_>, Vec<_>) = named.into_iter().partition(|(name, _)| tests.contains_key(*name));
    let missing = known.iter().filter(|(name, test)| !tests[*name].contains(*test));
    let faults: Vec<_> = missing
        .map(|(name, test)| format!("there is no #[test] fn {test} in the crate {name}: correct the name"))
        .collect();
    match (known.first(), unknown.first()) {
        (Some(_), _) => faults,
        (None, Some((name, _))) => vec![format!("there is no crate `{name}`: correct the name")],
        (None, None) => vec!["names no test: write `crate::test_name` in backticks in the last column".to_owned()],
    }
}

/// Names of scenarios, and paths of files, must exist.
fn check_paths(text: &str, files: &[File]) -> Vec<TidyFinding> {
    let known: BTreeSet<&str> = files.iter().map(|it| it.path.as_str()).collect();
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for span in table::code_spans(line) {
            if is_scenario_name(span) && !known.contains(format!("{SCENARIOS}/{span}.vks").as_str()) {
                findings.push(finding(at + 1, format!("there is no scenario {span}: correct the name")));
            }
            let is_path = ["crates/", "docs/"].iter().any(|it| span.starts_with(it));
            if is_path && !known.iter().any(|it| it.starts_with(span.trim_end_matches('/'))) {
                findings.push(finding(at + 1, format!("there is no {span}: correct the path")));
            }
        }
    }
    findings
}

/// A folder and a file without its extension, as in `buffer/war_copy`.
fn is_scenario_name(span: &str) -> bool {
    let is_word =
        |it: &str| !it.is_empty() && it.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
    span.split_once('/').is_some_and(|(folder, name)| is_word(folder) && is_word(name) && folder != "docs")
}

fn reason_words(note: &str) -> usize {
    let prose = note.split('`').step_by(2);
    prose.flat_map(str::split_whitespace).filter(|it| it.chars().any(char::is_alphabetic)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
# Ledger

| id | what | verdict | note |
| --- | --- | --- | --- |
| S-001 | One thing. | works | `sync::finds_it` |
| S-002 | Another thing. | differs | Better in this way, see `std::thread` and `sync::differs`. |
| G-001 | A third. | not yet | |
| T-001 | A fourth. | not planned | Nobody has such hardware. |
";

    fn faults(text: &str) -> Vec<String> {
        let tests = ["finds_it", "differs"].map(str::to_owned).into_iter().collect();
        let tests = TestNames::from([("sync".to_owned(), tests), ("abi".to_owned(), BTreeSet::new())]);
        check_text(text, &tests).into_iter().map(|it| format!("{}: {}", it.line, it.text)).collect()
    }

    fn check_one_fault(from: &str, to: &str, fault: &str) {
        let faults = faults(&GOOD.replace(from, to));
        assert!(faults.len() == 1 && faults[0].contains(fault), "{faults:#?}");
    }

    #[test]
    fn a_good_ledger_has_no_fault() {
        assert_eq!(faults(GOOD), Vec::<String>::new());
    }

    #[test]
    fn rows_have_four_cells_and_a_good_id() {
        check_one_fault("`sync::differs`. |", "`sync::differs`. | |", "6: a row of 5 cells");
        check_one_fault("S-002", "S-2", "6: `S-2` is no id");
        check_one_fault("S-002", "X-001", "6: `X-001` is no id");
        check_one_fault("Another thing.", "", "S-002 says nothing");
    }

    #[test]
    fn ids_are_consecutive_and_unique() {
        check_one_fault("S-002", "S-003", "6: S-003 where S-002 comes next");
        check_one_fault("S-002", "S-001", "6: S-001 is taken by line 5");
        check_one_fault("| T-001", "| G-002", "1: no row begins with T-");
    }

    #[test]
    fn claims_need_a_test_that_exists() {
        check_one_fault("`sync::finds_it`", "", "names no test");
        check_one_fault("`sync::finds_it`", "sync::finds_it", "names no test");
        check_one_fault("`sync::finds_it`", "`abi::finds_it`", "no #[test] fn finds_it in the crate abi");
        check_one_fault("`sync::finds_it`", "`synk::finds_it`", "no crate `synk`");
        check_one_fault("| works |", "| work |", "`work` is no verdict");
    }

    #[test]
    fn deviations_need_a_reason() {
        check_one_fault("Better in this way, see `std::thread` and ", "", "gives no reason");
        check_one_fault("Nobody has such hardware.", "No `use of it`.", "gives no reason");
    }

    #[test]
    fn tests_are_found_in_the_sources_of_their_crate() {
        let tests = "#[test]\n#[cfg(unix)]\npub fn found() {}\nfn helper() {}\n/// #[test]\nfn also_not() {}";
        let files = [
            File::in_memory("crates/sync/sync/src/lib.rs", tests),
            File::in_memory("crates/sync/sync/tests/deep/more.rs", "#[test] fn deep() {}"),
            File::in_memory("crates/sync/sync/examples/x.rs", "#[test] fn elsewhere() {}"),
            File::in_memory("crates/api/abi/Cargo.toml", ""),
        ];
        let tests = tests_by_crate(&files);
        assert_eq!(tests["sync"].iter().collect::<Vec<_>>(), ["deep", "found"]);
        assert!(tests["abi"].is_empty());
    }

    #[test]
    fn scenarios_and_paths_exist() {
        let files = [File::in_memory("crates/sync/engine/tests/scenarios/buffer/war_copy.vks", "")];
        let faults = |text: &str| -> Vec<String> { check_paths(text, &files).into_iter().map(|it| it.text).collect() };
        assert_eq!(faults("`buffer/war_copy` and `crates/sync/engine/tests`, `a/B`, `x::y`"), Vec::<String>::new());
        assert_eq!(faults("a\n`buffer/war`"), ["there is no scenario buffer/war: correct the name"]);
        assert_eq!(faults("`crates/sync/gone.rs`"), ["there is no crates/sync/gone.rs: correct the path"]);
    }

    #[test]
    fn a_missing_ledger_is_a_fault() {
        assert_eq!(check(&[]).len(), 1);
    }
}
