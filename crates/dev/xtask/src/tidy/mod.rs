//! What the files of the repository keep to, beyond what the compiler checks.
//!
//! `check` collects the files once and hands them to the judges, one module each. A judge is a pure function
//! from text to findings, so its tests need no disk. Exceptions are the table below and nothing else.
//! Absent on purpose: formatting (rustfmt), lints that clippy has, freshness of generated files (`codegen`).

pub(crate) mod docs;
pub(crate) mod rust;
pub(crate) mod workspace;

use std::path::Path;

use anyhow::Result;

/// What is let through, and why. An entry that lets nothing through is itself a fault.
const EXCEPTIONS: &[Exception] = &[Exception {
    rule: Rule::GeneratedLength,
    subject: "crates/api/abi/src/generated/core_1_0_commands.rs",
    reason: "a registry block",
}];

/// All faults of the tree at `root`, sorted, each as `path:line: what is wrong and how to fix it`.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let files = workspace::collect::files(root)?;
    let members = workspace::collect::members(root)?;
    let mut findings = docs::ledger::check(&files);
    findings.extend(workspace::architecture::check(&files, &members));
    findings.extend(docs::architecture_page::check(&files));
    findings.extend(rust::style::check(&files));
    findings.extend(rust::generated::check(&files));
    findings.extend(docs::links::check(&files));
    findings.extend(workspace::machine_paths::check(&files));
    findings.extend(rust::platform::check(&files, &members));
    findings.extend(rust::skipped_tests::check(&files));
    findings.extend(rust::names::check(&files));
    Ok(apply_exceptions(findings, EXCEPTIONS))
}

/// One fault before the exceptions are applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyFinding {
    path: String,
    line: usize,
    text: String,
    rule: Rule,
    /// What an exception names: the path, or `path::function`.
    subject: String,
}

/// Which law a finding breaks, so that an exception covers one law only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    AbsolutePath,
    Architecture,
    Attribute,
    BannedMacro,
    Crates,
    FileLength,
    FileSize,
    FunctionLength,
    Generated,
    GeneratedLength,
    IssueNumber,
    Ledger,
    Markdown,
    MissingThing,
    ModuleDoc,
    Names,
    Platform,
    SafetyComment,
}

struct Exception {
    rule: Rule,
    subject: &'static str,
    reason: &'static str,
}

/// A file as the judges see it.
pub(crate) struct File {
    /// Relative to the root, with `/` on every system.
    path: String,
    size_bytes: u64,
    /// Absent for what is not UTF-8 text.
    text: Option<String>,
}

impl TidyFinding {
    fn new(rule: Rule, path: &str, line: usize, text: impl Into<String>) -> TidyFinding {
        TidyFinding { path: path.to_owned(), line, text: text.into(), rule, subject: path.to_owned() }
    }

    /// The same finding about one item of the file.
    fn about(mut self, item: &str) -> TidyFinding {
        self.subject = format!("{}::{item}", self.path);
        self
    }
}

impl File {
    fn text_of<'a>(files: &'a [File], path: &str) -> Option<&'a str> {
        files.iter().find(|it| it.path == path)?.text.as_deref()
    }

    /// The crate folder's name, for files of a crate.
    fn crate_name(&self) -> Option<&str> {
        Some(self.inside_crate()?.0)
    }

    /// The name of the crate and the path inside its folder, for `crates/GROUP/NAME/PATH`.
    fn inside_crate(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("crates/")?.split_once('/')?.1.split_once('/')
    }

    #[cfg(test)]
    fn in_memory(path: &str, text: &str) -> File {
        File { path: path.to_owned(), size_bytes: text.len() as u64, text: Some(text.to_owned()) }
    }
}

fn apply_exceptions(mut findings: Vec<TidyFinding>, exceptions: &[Exception]) -> Vec<String> {
    let excused = |it: &TidyFinding, by: &Exception| it.rule == by.rule && it.subject == by.subject;
    let table = "crates/dev/xtask/src/tidy.rs";
    let mut of_table = Vec::new();
    for exception in exceptions {
        let about = format!("the exception {:?} for {}", exception.rule, exception.subject);
        if !findings.iter().any(|it| excused(it, exception)) {
            let text = format!("{about} is not needed any more: remove it");
            of_table.push(TidyFinding::new(exception.rule, table, 1, text));
        }
        if exception.reason.is_empty() {
            of_table.push(TidyFinding::new(exception.rule, table, 1, format!("{about} has no reason: give one")));
        }
    }
    findings.retain(|it| !exceptions.iter().any(|by| excused(it, by)));
    findings.extend(of_table);
    findings.sort();
    findings.dedup();
    findings.into_iter().map(|it| format!("{}:{}: {}", it.path, it.line, it.text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_sorted_and_printed_with_their_place() {
        let findings = vec![
            TidyFinding::new(Rule::Ledger, "b.md", 2, "wrong"),
            TidyFinding::new(Rule::Markdown, "a.md", 7, "also wrong"),
        ];
        assert_eq!(apply_exceptions(findings, &[]), ["a.md:7: also wrong", "b.md:2: wrong"]);
    }

    #[test]
    fn an_exception_covers_one_rule_of_one_subject() {
        let exceptions = [Exception { rule: Rule::FunctionLength, subject: "a.rs::long", reason: "a table" }];
        let findings = vec![
            TidyFinding::new(Rule::FunctionLength, "a.rs", 1, "long").about("long"),
            TidyFinding::new(Rule::FunctionLength, "a.rs", 90, "longer").about("longer"),
            TidyFinding::new(Rule::FileLength, "a.rs", 1, "file"),
        ];
        assert_eq!(apply_exceptions(findings, &exceptions), ["a.rs:1: file", "a.rs:90: longer"]);
    }

    #[test]
    fn an_exception_that_lets_nothing_through_is_a_fault() {
        let exceptions = [Exception { rule: Rule::FileLength, subject: "a.rs", reason: "" }];
        let faults = apply_exceptions(Vec::new(), &exceptions);
        assert_eq!(faults.len(), 2);
        assert!(faults[0].contains("has no reason"), "{faults:?}");
        assert!(faults[1].contains("not needed any more"), "{faults:?}");
    }
}
