//! Handwritten Rust files: their length, their first line, and what may not stand in them.

use super::generated;
use super::source::{RustSource, is_word, leading_word, words};
use crate::tidy::{File, Rule, TidyFinding};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
/// How far above unsafe code its justification may begin.
const SAFETY_LINES_MAX: usize = 6;
const SAFETY: &str = "// SAFETY:";
/// What a justification says that names nothing. Each part of one, between punctuation, is compared.
const EMPTY_PHRASES: [&str; 14] = [
    "as before",
    "as in the caller",
    "as there",
    "by this function as a whole",
    "see above",
    "see there",
    "the application's own parameters",
    "the application's parameters",
    "the contract",
    "the contract of this function",
    "the parameters are valid",
    "the same",
    "this function as a whole",
    "valid usage",
];
/// The same of what such a part begins with.
const EMPTY_STARTS: [&str; 8] = [
    "as above",
    "the caller keeps",
    "the caller promises",
    "the caller says",
    "the caller's promise",
    "the caller's word",
    "valid usage of all",
    "valid usage of everything",
];
const BANNED_MACROS: [(&str, &str); 3] = [
    ("todo", "write the code or open an issue"),
    ("unimplemented", "write the code, or return an error that says so"),
    ("dbg", "remove it"),
];
const MARKS: [&str; 2] = ["TODO", "FIXME"];

pub(crate) fn check(files: &[File]) -> Vec<TidyFinding> {
    let by_hand = files.iter().filter(|it| it.path.ends_with(".rs") && !generated::is_generated_path(&it.path));
    by_hand.filter_map(|it| Some(check_text(&it.path, it.text.as_deref()?))).flatten().collect()
}

fn check_text(path: &str, text: &str) -> Vec<TidyFinding> {
    let source = RustSource::new(text);
    let mut findings = head_and_length(path, text);
    findings.extend(long_functions(path, &source));
    findings.extend(banned_macros(path, &source));
    findings.extend(attributes(path, &source));
    findings.extend(unsafe_code(path, &source));
    findings.extend(empty_justifications(path, &source));
    findings.extend(marks(path, &source));
    findings
}

fn head_and_length(path: &str, text: &str) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        let text = "the first line is not a `//!` comment: state the file's job";
        findings.push(TidyFinding::new(Rule::ModuleDoc, path, 1, text));
    }
    let lines = text.lines().count();
    if lines > FILE_LINES_MAX {
        let text = format!("{lines} lines, over {FILE_LINES_MAX}: split the file");
        findings.push(TidyFinding::new(Rule::FileLength, path, 1, text));
    }
    findings
}

fn long_functions(path: &str, source: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for at in source.words("fn") {
        let name = leading_word(source.after(at + 2).trim_start_matches('$'));
        let Some(end) = function_end(source, at).filter(|_| !name.is_empty()) else { continue };
        let (first, last) = (source.line_of(at), source.line_of(end));
        let lines = last - first + 1;
        if lines > FUNCTION_LINES_MAX {
            let text = format!("`{name}` has {lines} lines, over {FUNCTION_LINES_MAX}: split it");
            findings.push(TidyFinding::new(Rule::FunctionLength, path, first, text).about(name));
        }
    }
    findings
}

/// The offset of the brace that closes the function's body, if it has one.
fn function_end(source: &RustSource, function: usize) -> Option<usize> {
    let mut at = function;
    loop {
        at += source.code[at..].find(['(', '[', '{', ';'])?;
        match source.code.as_bytes()[at] {
            b';' => return None,
            b'{' => return source.closing(at),
            _ => at = source.closing(at)?,
        }
    }
}

fn banned_macros(path: &str, source: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (name, instead) in BANNED_MACROS {
        let calls = source.words(name).filter(|at| source.after(at + name.len()).starts_with('!'));
        let text = format!("{name}! has no place here: {instead}");
        findings.extend(calls.map(|at| TidyFinding::new(Rule::BannedMacro, path, source.line_of(at), text.clone())));
    }
    findings
}

/// Attributes that switch a test off, or a lint without a reason.
fn attributes(path: &str, source: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (at, _) in source.code.match_indices('#') {
        let open = at + 1 + usize::from(source.code[at + 1..].starts_with('!'));
        if !source.code[open..].starts_with('[') {
            continue;
        }
        let Some(close) = source.closing(open) else { continue };
        let text = match attribute_fault(&source.code[open + 1..close]) {
            Some(text) => text,
            None => continue,
        };
        findings.push(TidyFinding::new(Rule::Attribute, path, source.line_of(at), text));
    }
    findings
}

fn attribute_fault(attribute: &str) -> Option<&'static str> {
    let called =
        |name: &str| words(attribute, name).any(|at| attribute[at + name.len()..].trim_start().starts_with('('));
    let given = words(attribute, "reason").any(|at| attribute[at + "reason".len()..].trim_start().starts_with('='));
    if leading_word(attribute.trim_start()) == "ignore" {
        Some("an ignored test proves nothing: fix it, remove it, or assert what happens today")
    } else if (called("allow") || called("expect")) && !given {
        Some("a lint is switched off without a reason: add `reason = \"…\"`")
    } else {
        None
    }
}

fn unsafe_code(path: &str, source: &RustSource) -> Vec<TidyFinding> {
    let comments: Vec<&str> = source.comments.lines().collect();
    let justified = |line: usize| {
        let first = line.saturating_sub(SAFETY_LINES_MAX + 1);
        comments[first..line.min(comments.len())].iter().any(|it| it.contains(SAFETY))
    };
    let needs_comment = |at: usize| {
        let rest = source.after(at + "unsafe".len());
        rest.starts_with('{') || leading_word(rest) == "impl"
    };
    let lines = source.words("unsafe").filter(|at| needs_comment(*at)).map(|at| source.line_of(at));
    let text = format!("unsafe code without `{SAFETY}` within {SAFETY_LINES_MAX} lines above: say who upholds what");
    lines.filter(|it| !justified(*it)).map(|it| TidyFinding::new(Rule::SafetyComment, path, it, text.clone())).collect()
}

/// Justifications that name no valid usage, no rule and no invariant.
fn empty_justifications(path: &str, source: &RustSource) -> Vec<TidyFinding> {
    let (comments, code): (Vec<&str>, Vec<&str>) = (source.comments.lines().collect(), source.code.lines().collect());
    let begins = |it: &str| it.split_once(SAFETY).map(|(_, text)| text.to_owned());
    let goes_on = |line: usize| {
        let comment = comments.get(line).map(|it| it.trim()).filter(|it| !it.contains(SAFETY))?;
        comment.strip_prefix("//").filter(|_| code.get(line).is_none_or(|it| it.trim().is_empty()))
    };
    let mut findings = Vec::new();
    for (first, line) in comments.iter().enumerate() {
        let Some(mut text) = begins(line) else { continue };
        (first + 1..).map_while(goes_on).for_each(|it| text.extend([" ", it.trim()]));
        if is_empty_justification(&text) {
            let text = format!(
                "`{SAFETY}` without a reason: name the valid usage, the rule or the invariant that makes it sound"
            );
            findings.push(TidyFinding::new(Rule::SafetyComment, path, first + 1, text));
        }
    }
    findings
}

fn is_empty_justification(text: &str) -> bool {
    let parts = text.split(['.', ',', ';', ':']).map(|it| it.trim().to_lowercase());
    parts.filter(|it| !it.is_empty()).all(|part| {
        let value = part.strip_prefix("by ").unwrap_or(&part);
        EMPTY_PHRASES.contains(&value) || EMPTY_STARTS.iter().any(|start| value.starts_with(start))
    })
}

/// Notes to come back to something, which need the number of an issue.
fn marks(path: &str, source: &RustSource) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (at, line) in source.comments.lines().enumerate() {
        for mark in MARKS {
            if words(line, mark).any(|it| !has_issue_number(&line[it + mark.len()..])) {
                let text = format!("{mark} without an issue: write {mark}(#12), or do it");
                findings.push(TidyFinding::new(Rule::IssueNumber, path, at + 1, text));
            }
        }
    }
    findings
}

fn has_issue_number(rest: &str) -> bool {
    let Some(number) = rest.strip_prefix("(#").and_then(|it| it.split_once(')')).map(|(number, _)| number) else {
        return false;
    };
    !number.is_empty() && number.chars().all(|it| is_word(it) && it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        check_text("a.rs", text).into_iter().map(|it| format!("{}: {}", it.line, it.text)).collect()
    }

    fn check_clean(body: &str) {
        assert_eq!(faults(&format!("//! Doc.\n{body}")), Vec::<String>::new());
    }

    fn check_one_fault(body: &str, fault: &str) {
        let faults = faults(&format!("//! Doc.\n{body}"));
        assert!(faults.len() == 1 && faults[0].contains(fault), "{faults:#?}");
    }

    #[test]
    fn a_file_begins_with_its_job_and_is_short() {
        assert!(faults("// Doc.\n")[0].starts_with("1: the first line"));
        check_one_fault(&"\n".repeat(800), "1: 801 lines, over 800");
        check_clean(&"\n".repeat(799));
    }

    #[test]
    fn functions_are_short() {
        let function =
            |lines: usize| format!("const X: fn() = f;\nfn long(a: [u8; 4]) {{\n{}}}\n", "x(\"}\");\n".repeat(lines));
        check_clean(&function(68));
        check_one_fault(&function(69), "3: `long` has 71 lines, over 70");
        check_clean(&format!("trait A {{\n fn short(a: [u8; 4]);\n{}}}", "\n".repeat(90)));
        check_one_fault(&format!("fn $name() {{{}}}", "\n".repeat(90)), "`name` has 91 lines");
    }

    #[test]
    fn only_handwritten_files_are_judged() {
        let paths = ["crates/g/a/src/generated/x.rs", "crates/g/a/build.rs", "crates/g/a/tests/t.rs", "a.txt"];
        let found: Vec<_> = check(&paths.map(|it| File::in_memory(it, "x"))).into_iter().map(|it| it.path).collect();
        assert_eq!(found, ["crates/g/a/build.rs", "crates/g/a/tests/t.rs"]);
    }

    #[test]
    fn placeholders_are_banned_in_code_only() {
        check_one_fault("fn f() { todo!() }", "2: todo! has no place here");
        check_one_fault("fn f() {\n    unimplemented ! (\"x\") }", "3: unimplemented!");
        check_one_fault("fn f() { dbg!(1); }", "dbg!");
        check_clean("// dbg!(1)\nfn todo() { not_todo!(\"todo!()\") }");
    }

    #[test]
    fn tests_are_not_ignored_and_lints_need_a_reason() {
        check_one_fault("#[ignore = \"slow\"]\nfn f() {}", "2: an ignored test");
        check_one_fault("#![allow(dead_code)]", "without a reason");
        check_one_fault("#[cfg_attr(test, expect(\n  unused))]", "2: a lint is switched off");
        check_clean(
            "#[allow(\n    dead_code,\n    reason = \"why\"\n)]\n#[doc = \"allow(x)\"]\nfn f() { a.expect(\"x\") }",
        );
    }

    #[test]
    fn unsafe_code_is_justified() {
        check_one_fault("fn f() { unsafe { g() } }", "2: unsafe code without");
        check_one_fault("/// Fine.\nunsafe impl Send for A {}", "3: unsafe code without");
        check_clean("// SAFETY: why\n\n\n\n\n\nunsafe impl Send for A {}");
        check_one_fault("// SAFETY: why\n\n\n\n\n\n\nunsafe impl Send for A {}", "9: unsafe code");
        check_clean("unsafe fn f();\n#[unsafe(no_mangle)]\nfn g() { unsafe { h() } } // SAFETY: why");
    }

    #[test]
    fn a_justification_names_something() {
        let empty = [
            "",
            "as above.",
            "As above; the caller's word.",
            "the caller says that the parameters are valid.",
            "the caller's\n// promise.",
            "valid usage, by this function as a whole.",
            "valid usage of everything that the call was given.",
            "by valid usage.",
            "the application's own parameters.",
        ];
        for text in empty {
            check_one_fault(
                &format!("// SAFETY: {text}\nunsafe impl Send for A {{}}"),
                "2: `// SAFETY:` without a reason",
            );
        }
        let named = [
            "VUID-vkCmdCopyBuffer-pRegions-parameter.",
            "the caller's word; the spaces are apart.",
            "valid usage makes `p` valid for `n` elements.",
            "as above.\n// The list outlives the messenger.",
            "`first` leads to `count` elements, by the contract.",
        ];
        for text in named {
            check_clean(&format!("// SAFETY: {text}\nunsafe impl Send for A {{}}"));
        }
        check_one_fault("// SAFETY: as above.\nf(); // The list outlives the messenger.", "2: `// SAFETY:` without");
        check_clean("const A: &str = \"// SAFETY: as above.\";");
    }

    #[test]
    fn marks_carry_an_issue_number() {
        check_one_fault(&format!("// {}: later", MARKS[0]), "2: TODO without an issue");
        check_one_fault(&format!("/* {}(#x) */", MARKS[1]), "FIXME without an issue");
        check_clean(&format!("// {}(#12): later\nconst {}S: u8 = 1;", MARKS[0], MARKS[0]));
    }
}
