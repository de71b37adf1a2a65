//! Tests that would pass because something is missing: a driver, a tool, a file.
//!
//! Two signs are looked for in tests. One is an early `return` behind a question whether something is there. The other
//! is a message that the rest was left out. A test that runs itself again in a process of its own returns there, too:
//! its parent judges what became of it.

use super::generated;
use super::source::RustSource;
use crate::tidy::{File, Rule, TidyFinding};

/// What a condition asks when it looks for something.
const QUESTIONS: [&str; 7] =
    [".exists()", ".is_file()", ".is_dir()", ".is_none()", ".is_some()", ".is_err()", ".is_ok()"];
/// What a test calls to run itself again; in that process it has nothing more to do.
const CHILDREN: [&str; 5] = ["child", "dying_child", "outcome", "outcome_of", "captured"];
/// What a test prints that goes on without something.
const EXCUSES: [&str; 5] = ["left out", "skipped", "skipping", "is not here", "not available"];
const PRINTS: [&str; 2] = ["println", "eprintln"];
const FAIL: &str = "fail, and name the package or the command that brings it";

pub(crate) fn check(files: &[File]) -> Vec<TidyFinding> {
    let by_hand = files.iter().filter(|it| it.path.ends_with(".rs") && !generated::is_generated_path(&it.path));
    by_hand.filter_map(|it| Some(check_text(&it.path, it.text.as_deref()?))).flatten().collect()
}

fn check_text(path: &str, text: &str) -> Vec<TidyFinding> {
    let source = RustSource::new(text);
    let mut findings = excuses(path, text, &source);
    for (name, start, end) in tests(&source) {
        let offsets = returns(&source.code[start..end]).into_iter();
        findings.extend(offsets.map(|offset| {
            let line = source.line_of(start + offset);
            let text = format!("the test `{name}` passes where something is missing: {FAIL}");
            TidyFinding::new(Rule::MissingThing, path, line, text).about(name)
        }));
    }
    findings
}

/// Functions that are tests: names, and where their bodies begin and end.
fn tests(source: &RustSource) -> Vec<(&str, usize, usize)> {
    let mut found = Vec::new();
    for (at, mark) in source.code.match_indices("#[test]") {
        let rest = &source.code[at + mark.len()..];
        let Some(name) = super::source::words(rest, "fn").next() else { continue };
        let name = at + mark.len() + name + "fn".len();
        let Some(open) = source.code[name..].find('{').map(|it| it + name) else { continue };
        let Some(close) = source.closing(open) else { continue };
        found.push((super::source::leading_word(source.after(name)), open + 1, close));
    }
    found
}

/// Offsets of early returns of a body where something is not there.
fn returns(body: &str) -> Vec<usize> {
    super::source::words(body, "return")
        .filter(|it| is_bare(body, *it) && asks_for_presence(enclosing_condition(body, *it)))
        .collect()
}

/// Whether nothing is returned.
fn is_bare(body: &str, at: usize) -> bool {
    let rest = body[at + "return".len()..].trim_start();
    rest.starts_with([';', '}']) || rest.starts_with("Ok(())")
}

/// The statement in whose block the offset lies, up to that block.
fn enclosing_condition(body: &str, at: usize) -> &str {
    let open = enclosing(body, at);
    let begin = statement_begin(&body[..open]);
    &body[begin..open]
}

/// The offset of the brace that opens the block around an offset; 0 where there is none.
fn enclosing(body: &str, at: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in body[..at].bytes().enumerate().rev() {
        match byte {
            b'}' => depth += 1,
            b'{' if depth == 0 => return at,
            b'{' => depth -= 1,
            _ => {}
        }
    }
    0
}

/// Where the statement begins that a text ends with; blocks inside of it are a part of it.
fn statement_begin(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' | b']' | b'}' if depth == 0 && byte == b'}' && ends_statement(&text[at + 1..]) => return at + 1,
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' | b'{' if depth == 0 => return at + 1,
            b'(' | b'[' | b'{' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    0
}

/// Whether a block before this text was a statement of its own.
fn ends_statement(rest: &str) -> bool {
    let word = super::source::leading_word(rest.trim_start());
    matches!(word, "let" | "if" | "match" | "for" | "while" | "loop")
}

/// Whether a statement asks if something is there, and no process of the test's own is meant.
fn asks_for_presence(statement: &str) -> bool {
    let statement = statement.trim();
    let is_child = CHILDREN.iter().any(|it| super::source::words(statement, it).next().is_some());
    let takes = statement.starts_with("let ") && statement.ends_with("else");
    let asks = statement.starts_with("if ") && QUESTIONS.iter().any(|it| statement.contains(it));
    !is_child && (takes || asks)
}

/// Prints of tests that say that the rest was left out.
fn excuses(path: &str, text: &str, source: &RustSource) -> Vec<TidyFinding> {
    let is_test = |at: usize| {
        let is_file = path.contains("/tests/") || path.ends_with("/tests.rs");
        is_file || source.code[..at].contains("#[cfg(test)]")
    };
    let mut findings = Vec::new();
    for name in PRINTS {
        for at in source.words(name).filter(|it| is_test(*it)) {
            let Some(end) = source.code[at..].find('(').and_then(|it| source.closing(at + it)) else { continue };
            // Offsets into the code are numbers of characters.
            let printed: String = text.chars().skip(at).take(end - at).collect();
            if let Some(word) = EXCUSES.iter().find(|it| printed.contains(*it)) {
                let text = format!("a test prints \"{word}\" and goes on: {FAIL}");
                findings.push(TidyFinding::new(Rule::MissingThing, path, source.line_of(at), text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/g/a/tests/b.rs";

    fn lines(body: &str) -> Vec<usize> {
        let text = format!("#[test]\nfn a_test() {{\n{body}\n}}\n");
        check_text(PATH, &text).iter().map(|it| it.line).collect()
    }

    #[test]
    fn a_return_where_something_is_missing_is_a_fault() {
        assert_eq!(lines("let Some(gpu) = Gpu::other() else { return };"), [3]);
        assert_eq!(lines("work();\nif !path.join(\"a;{\").is_file() {\n    note();\n    return;\n}"), [6]);
        assert_eq!(lines("if tool().is_none() { return Ok(()) }"), [3]);
        assert_eq!(lines("if a { b() }\nlet Ok(it) = open(|| { 1 }) else {\n    return;\n};"), [5]);
    }

    #[test]
    fn other_returns_are_none() {
        assert!(lines("let Some(it) = child(NAME, &[], || { work(); }) else { return };").is_empty());
        assert!(lines("let outcome = of();\nlet Some(outcome) = outcome else { return };").is_empty());
        assert!(lines("if code == Some(0) { assert!(true); return; }").is_empty());
        assert!(lines("for it in all { if it.is_it { return; } }\npanic!();").is_empty());
        assert!(lines("let make = || { if a { return 1; } 2 };").is_empty());
        assert!(lines("// if path.exists() { return; }\nlet text = \"if a.exists() { return; }\";").is_empty());
        let helper = "fn helper() { let Some(it) = find() else { return }; }";
        assert_eq!(check_text(PATH, helper), []);
    }

    #[test]
    fn a_test_that_says_what_it_leaves_out_is_a_fault() {
        let text = format!("fn helper() {{ {}!(\"é: left out\") }}", PRINTS[1]);
        assert_eq!(check_text(PATH, &text).len(), 1);
        assert_eq!(check_text("crates/g/a/src/b.rs", &text), []);
        assert_eq!(check_text("crates/g/a/src/b.rs", &format!("#[cfg(test)]\nmod tests {{ {text} }}")).len(), 1);
        assert_eq!(check_text(PATH, "fn helper() { println!(\"two\"); let a = \"left out\"; }"), []);
    }
}
