//! ARCHITECTURE.md as a page for readers: short, and with names that exist.
//!
//! A walk is a section whose heading begins with "Walk "; its hops are its numbered lines. A hop names a file and, behind
//! it, functions of that file: `` `crates/g/c/src/file.rs` `function` ``. The table of crates is checked elsewhere.

use std::collections::BTreeSet;

use crate::tidy::docs::table;
use crate::tidy::rust::source::RustSource;
use crate::tidy::{File, Rule, TidyFinding};

const PATH: &str = "ARCHITECTURE.md";
/// Readers read a page of this length to its end.
const WORDS_MAX: usize = 2_500;
const HOPS_MAX: usize = 20;

pub(crate) fn check(files: &[File]) -> Vec<TidyFinding> {
    // A page that is missing is a finding of the rule for the table of crates.
    let Some(text) = File::text_of(files, PATH) else { return Vec::new() };
    let mut findings = check_length(text);
    findings.extend(check_paths(text, files));
    findings.extend(check_walks(text, files));
    findings
}

fn finding(line: usize, text: impl Into<String>) -> TidyFinding {
    TidyFinding::new(Rule::Architecture, PATH, line, text)
}

fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

/// Counts what has a letter or a digit, so that the bars of tables and the lines of the diagram are free.
fn check_length(text: &str) -> Vec<TidyFinding> {
    let words = text.split_whitespace().filter(|it| it.contains(char::is_alphanumeric)).count();
    let is_long = words > WORDS_MAX;
    let advice = "move what is about one module into the documentation of that module";
    is_long
        .then(|| finding(1, format!("the page has {words} words, at most {WORDS_MAX}: {advice}")))
        .into_iter()
        .collect()
}

fn check_paths(text: &str, files: &[File]) -> Vec<TidyFinding> {
    let known: BTreeSet<&str> = files.iter().flat_map(|it| with_folders(&it.path)).collect();
    let mut findings = Vec::new();
    for (line, text) in numbered_lines(text) {
        for path in table::code_spans(text).filter(|it| is_path(it)) {
            if !known.contains(path.trim_end_matches('/')) {
                findings
                    .push(finding(line, format!("there is no `{path}`: write the path from the root of the project")));
            }
        }
    }
    findings
}

/// A file, and the folders that hold it.
fn with_folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).chain([path])
}

fn is_path(span: &str) -> bool {
    let is_plain = span.chars().all(|it| it.is_alphanumeric() || "/._-*".contains(it));
    is_plain && (span.contains('/') || [".rs", ".md", ".toml"].iter().any(|it| span.ends_with(it)))
}

/// The numbered lines below one heading.
struct Walk<'a> {
    line: usize,
    title: &'a str,
    hops: Vec<(usize, &'a str)>,
}

fn check_walks(text: &str, files: &[File]) -> Vec<TidyFinding> {
    let walks = walks(text);
    if walks.is_empty() {
        return vec![finding(1, "there is no walk: write a section whose heading begins with \"Walk\"")];
    }
    let mut findings = Vec::new();
    for walk in walks {
        let hops = walk.hops.len();
        if hops == 0 {
            findings.push(finding(walk.line, format!("\"{}\" has no hops: number its lines", walk.title)));
        }
        if hops > HOPS_MAX {
            let advice = "leave out files that a reader need not open";
            findings
                .push(finding(walk.line, format!("\"{}\" has {hops} hops, at most {HOPS_MAX}: {advice}", walk.title)));
        }
        findings.extend(walk.hops.iter().flat_map(|(line, hop)| check_hop(*line, hop, files)));
    }
    findings
}

fn walks(text: &str) -> Vec<Walk<'_>> {
    let mut walks: Vec<Walk> = Vec::new();
    let mut is_inside = false;
    for (line, text) in numbered_lines(text) {
        if text.starts_with('#') {
            let title = text.trim_start_matches('#').trim();
            is_inside = title.starts_with("Walk ");
            walks.extend(is_inside.then_some(Walk { line, title, hops: Vec::new() }));
        } else if let Some(walk) = walks.last_mut().filter(|_| is_inside && is_numbered(text)) {
            walk.hops.push((line, text));
        }
    }
    walks
}

fn is_numbered(line: &str) -> bool {
    let rest = line.trim_start_matches(|it: char| it.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(". ")
}

fn check_hop(line: usize, hop: &str, files: &[File]) -> Vec<TidyFinding> {
    let named = named_functions(hop);
    if named.is_empty() {
        return vec![finding(line, "the hop names no function: write `path/file.rs` `function`")];
    }
    let mut findings = Vec::new();
    for (path, function) in named {
        // A path that does not exist is a finding of its own.
        let Some(text) = File::text_of(files, path) else { continue };
        if !defines(&RustSource::new(text).code, function) {
            findings
                .push(finding(line, format!("{path} defines no `{function}`: name the function that is there now")));
        }
    }
    findings
}

/// Files with the functions that stand directly behind them, or behind such a function.
fn named_functions(hop: &str) -> Vec<(&str, &str)> {
    let mut named = Vec::new();
    let mut file = None;
    for (at, piece) in hop.split('`').enumerate() {
        match (at % 2, file) {
            (1, _) if is_path(piece) => file = piece.ends_with(".rs").then_some(piece),
            (1, Some(path)) => named.push((path, piece)),
            (0, Some(_)) if !matches!(piece.trim(), "" | "," | "and") => file = None,
            _ => {}
        }
    }
    named
}

/// A function, a macro, or a line of a macro that defines functions (`name = fn(`).
fn defines(code: &str, name: &str) -> bool {
    let begins_after = |pattern: &str, ends: &[char]| {
        code.match_indices(pattern).any(|(at, _)| code[at + pattern.len()..].trim_start().starts_with(ends))
    };
    begins_after(&format!("fn {name}"), &['(', '<'])
        || begins_after(&format!("macro_rules! {name}"), &['{'])
        || code.lines().any(|it| it.trim_start().strip_prefix(name).is_some_and(|it| it.starts_with(" = fn(")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
# Architecture

The engine is in `crates/sync/engine/src/`, its pages in `docs/`. `a::b` and `I` are no paths.

## Walk 1: a draw

1. `crates/a/b/src/one.rs` `first`, `second` and `list`: calls `nothing` of the next.
2. Inline: `crates/a/b/src/two.rs` `hook`.

## After it

1. No hop.
";
    const ONE: &str = "//! fn absent() {}\npub(crate) fn first(a: u8) {}\nfn second<T>() {}\nmacro_rules! list {\n}\n";
    const TWO: &str = "hooks! {\n    hook = fn(device: Device) -> Result, |next| {}\n}\n";

    fn faults(text: &str) -> Vec<String> {
        let sources = [("crates/a/b/src/one.rs", ONE), ("crates/a/b/src/two.rs", TWO)];
        let others = [("crates/sync/engine/src/lib.rs", ""), ("docs/page.md", "")];
        let files: Vec<File> =
            [(PATH, text)].into_iter().chain(sources).chain(others).map(|it| File::in_memory(it.0, it.1)).collect();
        check(&files).into_iter().map(|it| format!("{}: {}", it.line, it.text)).collect()
    }

    fn check_one_fault(text: &str, fault: &str) {
        let faults = faults(text);
        assert!(faults.len() == 1 && faults[0].contains(fault), "{faults:#?}");
    }

    #[test]
    fn a_page_whose_names_exist_has_no_fault() {
        assert_eq!(faults(GOOD), Vec::<String>::new());
    }

    #[test]
    fn a_page_has_a_limit_and_bars_do_not_count() {
        let own = GOOD.split_whitespace().filter(|it| it.contains(char::is_alphanumeric)).count();
        let full = GOOD.to_owned() + &"word | ".repeat(WORDS_MAX - own);
        assert_eq!(faults(&full), Vec::<String>::new());
        check_one_fault(&(full + "word"), "the page has 2501 words, at most 2500");
    }

    #[test]
    fn paths_in_backticks_exist() {
        check_one_fault(&GOOD.replace("`docs/`", "`doc/`"), "3: there is no `doc/`");
        check_one_fault(&GOOD.replace("`docs/`", "`page.md`"), "3: there is no `page.md`");
        check_one_fault(&GOOD.replace("`docs/`", "`crates/*/src`"), "3: there is no `crates/*/src`");
        check_one_fault(&GOOD.replace("src/two.rs", "src/gone.rs"), "8: there is no `crates/a/b/src/gone.rs`");
    }

    #[test]
    fn functions_of_a_hop_are_defined_in_its_file() {
        check_one_fault(&GOOD.replace("`first`", "`absent`"), "7: crates/a/b/src/one.rs defines no `absent`");
        check_one_fault(&GOOD.replace("`second`", "`sec`"), "7: crates/a/b/src/one.rs defines no `sec`");
        check_one_fault(&GOOD.replace("`list`", "`lis`"), "defines no `lis`");
        check_one_fault(&GOOD.replace("`hook`.", "`hoo`."), "8: crates/a/b/src/two.rs defines no `hoo`");
        check_one_fault(&GOOD.replace(" `hook`.", ": it hooks."), "8: the hop names no function");
    }

    #[test]
    fn a_walk_has_one_to_twenty_hops() {
        let hop = "2. Inline: `crates/a/b/src/two.rs` `hook`.\n";
        assert_eq!(faults(&GOOD.replace(hop, &hop.repeat(19))), Vec::<String>::new());
        check_one_fault(&GOOD.replace(hop, &hop.repeat(20)), "5: \"Walk 1: a draw\" has 21 hops, at most 20");
        check_one_fault(&GOOD.replace("## After it", "## Walk 2\n\n## After it"), "has no hops");
        check_one_fault("# Architecture", "there is no walk");
    }
}
