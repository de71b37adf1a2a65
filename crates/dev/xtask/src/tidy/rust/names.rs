//! Names that a reader meets once: types with one meaning, predicates that change nothing, values with a name.
//!
//! What is only found with types at hand (a predicate that stores through a shared reference, a private word) is left
//! to people.

use std::collections::BTreeMap;

use super::generated;
use super::source::{RustSource, is_word, leading_word, words};
use crate::tidy::{File, Rule, TidyFinding};

/// In how many places one name may be defined as a type.
const DEFINITIONS_MAX: usize = 3;
const TYPE_WORDS: [&str; 5] = ["struct", "enum", "union", "trait", "type"];
/// What a method begins with that only answers.
const PREDICATES: [&str; 3] = ["is_", "has_", "can_"];
/// How many members a tuple may have that other modules see.
const TUPLE_MEMBERS_MAX: usize = 2;

pub(crate) fn check(files: &[File]) -> Vec<TidyFinding> {
    let by_hand = files.iter().filter(|it| it.path.ends_with(".rs") && !generated::is_generated_path(&it.path));
    let mut definitions = BTreeMap::<String, Vec<(String, usize)>>::new();
    let mut findings = Vec::new();
    for file in by_hand {
        let Some(text) = file.text.as_deref() else { continue };
        let source = RustSource::new(text);
        findings.extend(long_lived_it(&file.path, &source));
        findings.extend(mutating_predicates(&file.path, &source));
        if !is_test(&file.path) {
            findings.extend(wide_tuples(&file.path, &source));
            for (name, line) in types(&source) {
                definitions.entry(name.to_owned()).or_default().push((file.path.clone(), line));
            }
        }
    }
    findings.extend(definitions.iter().filter_map(|(name, all)| too_many(name, all)));
    findings
}

/// Whether a file is only compiled for tests, benchmarks or examples.
fn is_test(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    parts.iter().any(|it| ["tests", "benches", "examples", "tests.rs"].contains(it)) || path.ends_with("_tests.rs")
}

/// Types that a file defines outside of functions, implementations and modules for tests, with their lines.
fn types(source: &RustSource) -> Vec<(&str, usize)> {
    let defined = TYPE_WORDS.iter().flat_map(|word| source.words(word).map(move |at| (at, at + word.len())));
    let outer = defined.filter(|(at, _)| depth(&source.code, *at) == 0);
    outer.map(|(at, end)| (leading_word(source.after(end)), source.line_of(at))).filter(|it| !it.0.is_empty()).collect()
}

/// How many braces are open at an offset.
fn depth(code: &str, offset: usize) -> i64 {
    code[..offset].bytes().fold(0, |depth, byte| match byte {
        b'{' => depth + 1,
        b'}' => depth - 1,
        _ => depth,
    })
}

fn too_many(name: &str, definitions: &[(String, usize)]) -> Option<TidyFinding> {
    let (path, line) = definitions.get(DEFINITIONS_MAX)?;
    let others: Vec<String> = definitions[..DEFINITIONS_MAX].iter().map(|(path, _)| path.clone()).collect();
    let text = format!(
        "the type name `{name}` is defined {} times, over {DEFINITIONS_MAX}: put its domain in front, as in \
         `Trace{name}` or `Queue{name}` (the others: {})",
        definitions.len(),
        others.join(", ")
    );
    Some(TidyFinding::new(Rule::Names, path, *line, text).about(name))
}

fn mutating_predicates(path: &str, source: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for at in source.words("fn") {
        let name = leading_word(source.after(at + 2));
        let Some(prefix) = PREDICATES.iter().find(|it| name.starts_with(**it)) else { continue };
        let Some(open) = source.code[at..].find('(').map(|it| it + at) else { continue };
        let first = source.code[open + 1..].split([',', ')']).next().unwrap_or_default();
        if first.contains("mut self") && first.trim_start().starts_with('&') {
            let noun = &name[prefix.len()..];
            let text = format!(
                "`{name}` takes `&mut self`: call it `take_{noun}`, `advance_{noun}` or `insert_{noun}`, or take `&self`"
            );
            findings.push(TidyFinding::new(Rule::Names, path, source.line_of(at), text).about(name));
        }
    }
    findings
}

/// Tuples in what other modules see: signatures of functions, fields and aliases that are not private.
fn wide_tuples(path: &str, source: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for at in source.words("pub") {
        let after = skip_visibility(&source.code, at + "pub".len());
        let Some(item) = visible_types(source, after) else { continue };
        if item.types.iter().any(|it| has_wide_tuple(it)) {
            let name = item.name;
            let text = format!(
                "`{name}` shows a tuple with more than {TUPLE_MEMBERS_MAX} members to other modules: make it a struct \
                 with named fields"
            );
            findings.push(TidyFinding::new(Rule::Names, path, source.line_of(at), text).about(name));
        }
    }
    findings
}

/// An item that is not private, and the types that it shows.
struct VisibleItem<'a> {
    name: &'a str,
    types: Vec<&'a str>,
}

fn visible_types(source: &RustSource, at: usize) -> Option<VisibleItem<'_>> {
    let code = &source.code;
    let head = leading_word(code[at..].trim_start());
    let start = at + code[at..].find(head)?;
    match head {
        "fn" | "const" | "unsafe" | "async" | "extern" => {
            let function = start + words(&code[start..], "fn").next()?;
            // A constant, or an item that follows a constant.
            if code[start..function].contains([';', '=', '{']) {
                return None;
            }
            let name = leading_word(source.after(function + 2));
            let open = function + code[function..].find('(')?;
            let close = source.closing(open)?;
            let end = close + code[close..].find(['{', ';'])?;
            Some(VisibleItem { name, types: vec![&code[open + 1..close], &code[close + 1..end]] })
        }
        "type" => {
            let name = leading_word(source.after(start + head.len()));
            let end = start + code[start..].find(';')?;
            let begin = start + code[start..end].find('=')?;
            Some(VisibleItem { name, types: vec![&code[begin + 1..end]] })
        }
        "struct" | "enum" | "union" | "trait" | "mod" | "use" | "static" | "crate" | "" => None,
        // A field: up to the comma that ends it, or the brace that ends the structure.
        name => {
            let begin = start + name.len();
            let rest = code[begin..].strip_prefix(':')?;
            let line = rest.split('\n').next().unwrap_or_default();
            Some(VisibleItem { name, types: vec![line] })
        }
    }
}

/// The offset behind `(crate)` and the like.
fn skip_visibility(code: &str, at: usize) -> usize {
    match code[at..].strip_prefix('(').and_then(|it| it.find(')')) {
        Some(close) => at + close + 2,
        None => at,
    }
}

/// Whether a text of types has a tuple with too many members. Parameters of closures are no tuple.
fn has_wide_tuple(types: &str) -> bool {
    types.match_indices('(').any(|(at, _)| {
        let before = types[..at].trim_end();
        let is_call = before.chars().next_back().is_some_and(is_word) && !before.ends_with("mut");
        !is_call && members(&types[at..]) > TUPLE_MEMBERS_MAX
    })
}

/// How many members a tuple has that begins here.
fn members(tuple: &str) -> usize {
    let (mut depth, mut count, mut is_empty) = (0_usize, 0, true);
    let mut last = ' ';
    for char in tuple.chars() {
        match char {
            '(' | '[' | '<' | '{' => depth += 1,
            '>' if last == '-' || last == '=' => {}
            ')' | ']' | '>' | '}' => depth -= 1,
            ',' if depth == 1 => {
                count += 1;
                is_empty = true;
                last = char;
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        is_empty &= char.is_whitespace() || depth == 1 && char == '(';
        last = char;
    }
    count + usize::from(!is_empty)
}

/// Uses of `it` outside of closures that fit on one line.
fn long_lived_it(path: &str, source: &RustSource) -> Vec<TidyFinding> {
    let closures = short_closures(&source.code);
    let mut lines = Vec::new();
    for at in source.words("it") {
        let is_short = closures.iter().any(|(start, end)| (*start..*end).contains(&at));
        if !is_short && !lines.contains(&source.line_of(at)) {
            lines.push(source.line_of(at));
        }
    }
    let text = "`it` is for closures that fit on one line: give the value a name";
    lines.into_iter().map(|line| TidyFinding::new(Rule::Names, path, line, text)).collect()
}

/// Where closures with a parameter `it` begin and end that fit on one line.
fn short_closures(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = code[from..].find('|').map(|it| it + from) {
        from = open + 1;
        let Some(close) = code[from..].find(['|', '\n']).map(|it| it + from) else { break };
        let parameters = &code[from..close];
        if code.as_bytes()[close] != b'|' || words(parameters, "it").next().is_none() || !begins_closure(code, open) {
            continue;
        }
        let end = closure_end(code, close + 1);
        if !code[open..end].contains('\n') {
            found.push((open, end));
        }
        from = close + 1;
    }
    found
}

/// Whether a bar begins the parameters of a closure, and is no operator and no pattern.
fn begins_closure(code: &str, bar: usize) -> bool {
    let before = code[..bar].trim_end();
    let ends = ["move", "return", "=>"];
    before.ends_with(['(', ',', '=', '{', ';', ':', '&', '[']) || ends.iter().any(|it| before.ends_with(it))
}

/// Where the body of a closure ends.
fn closure_end(code: &str, body: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(body) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return at,
            b')' | b']' | b'}' => depth -= 1,
            b',' | b';' if depth == 0 => return at,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| File::in_memory(path, text)).collect();
        check(&files).into_iter().map(|found| format!("{}:{}: {}", found.path, found.line, found.text)).collect()
    }

    fn lines(text: &str) -> Vec<usize> {
        check(&[File::in_memory("crates/g/a/src/b.rs", text)]).into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn a_type_name_is_defined_three_times_at_most() {
        let paths: Vec<String> = (0..4).map(|number| format!("crates/g/a/src/{number}.rs")).collect();
        let of = |count: usize| -> Vec<String> {
            let files: Vec<(&str, &str)> = paths[..count].iter().map(|path| (&**path, "pub struct Part;")).collect();
            findings(&files)
        };
        assert_eq!(of(3), Vec::<String>::new());
        let found = of(4);
        assert!(found.len() == 1 && found[0].contains("`Part` is defined 4 times"), "{found:?}");
        assert!(found[0].contains("`TracePart`"), "{found:?}");
    }

    #[test]
    fn types_of_tests_and_associated_types_do_not_count() {
        let text = "struct A; impl B for A { type Part = u8; } mod tests { struct Part; }";
        let files = [
            ("crates/g/a/src/a.rs", text),
            ("crates/g/a/src/b.rs", text),
            ("crates/g/a/tests/c.rs", "struct Part;"),
            ("crates/g/a/src/tests.rs", "struct Part;"),
        ];
        assert_eq!(findings(&files), Vec::<String>::new());
    }

    #[test]
    fn predicates_change_nothing() {
        assert_eq!(lines("impl A {\n fn is_new(&mut self) -> bool { true }\n}"), [2]);
        assert_eq!(lines("impl A {\n fn has_room<'a>(&'a mut self) -> bool { true }\n}"), [2]);
        assert_eq!(
            lines("impl A {\n fn is_new(&self, to: &mut u8) -> bool { true }\n fn take_new(&mut self) {}\n}"),
            [0_usize; 0]
        );
    }

    #[test]
    fn wide_tuples_stay_in_their_module() {
        let wide = "pub(crate) fn a() -> Vec<(u8, u16, u32)> { b() }\npub(super) fn c((a, b, c): (u8, u8, u8)) {}\n\
                    pub type D = (u8, u8, u8);\nstruct E {\n    pub f: Option<(u8, u8, u8)>,\n}\n";
        assert_eq!(lines(wide), [1, 2, 3, 5]);
        let fine = "fn a() -> (u8, u16, u32) { b() }\npub fn c(a: (u8, u8), b: impl Fn(u8, u8, u8) -> u8) {}\n\
                    pub struct D(pub u8, pub u8, pub u8);\npub const E: &[(u8, u8)] = &[];\npub fn f<A, B, C>(a: M<A, B, C>) {}\n";
        assert_eq!(lines(fine), [0_usize; 0]);
    }

    #[test]
    fn it_lives_on_one_line() {
        let fine =
            "a.map(|it| it + 1);\nb.filter(|it| c(|it| it.d, it)).e(|(at, it)| at == it);\nlet f = |it: &G| it.h;\n";
        assert_eq!(lines(fine), [0_usize; 0]);
        let long = "for it in a {\n}\nlet it = b;\nc.map(|it| {\n    it\n});\nmatch d { Some(it) => e, None => f }\n";
        assert_eq!(lines(long), [1, 3, 4, 5, 7]);
        assert_eq!(lines("// it is fine here\nlet a = \"it\";\n"), [0_usize; 0]);
    }
}
