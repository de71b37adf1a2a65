//! Findings that are known, as a text that people review and that lies beside their code.
//!
//! ```text
//! lavascope-baseline 1
//!
//! # The upload is rewritten next week.
//! SYNC-HAZARD-WRITE-AFTER-WRITE
//!   access: vkCmdCopyBuffer in "Frame::Upload"
//!   prior access: vkCmdFillBuffer in "Frame::Upload"
//!   object: VkBuffer "vertices"
//! ```
//!
//! A code, and indented under it the lines of its [`DiagnosticIdentity`]. `#` begins a comment line; those directly in front of a
//! finding belong to it.

use std::collections::BTreeMap;
use std::fmt;

use crate::DiagnosticIdentity;

const MAGIC: &str = "lavascope-baseline";
const VERSION: u32 = 1;
const PREFACE: &str = "
# Findings that are known: they are counted, and do not change the exit code.
# `--update-baseline` writes this file; a comment right above a finding stays with it.
";

/// The findings that are known, each with the comments in front of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    known: BTreeMap<DiagnosticIdentity, Vec<String>>,
}

/// Why a text is no baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineError {
    /// From one.
    pub line: usize,
    pub message: String,
}

impl Baseline {
    pub fn parse(text: &str) -> Result<Baseline, BaselineError> {
        let mut lines = text.lines().enumerate().map(|(at, it)| (at + 1, it.trim_end()));
        check_header(lines.next().map_or("", |it| it.1))?;
        let mut reader = BaselineReader::default();
        for (number, line) in lines {
            reader.read_line(number, line)?;
        }
        reader.end()?;
        Ok(reader.baseline)
    }

    pub fn contains(&self, diagnostic_identity: &DiagnosticIdentity) -> bool {
        self.known.contains_key(diagnostic_identity)
    }

    /// What is known and not among those that were found.
    pub fn not_found_in<'a>(&'a self, found: &[DiagnosticIdentity]) -> Vec<&'a DiagnosticIdentity> {
        self.known.keys().filter(|it| !found.contains(it)).collect()
    }

    /// Those that were found, with the comments that they had.
    pub fn updated(&self, found: &[DiagnosticIdentity]) -> Baseline {
        let comments = |it: &DiagnosticIdentity| self.known.get(it).cloned().unwrap_or_default();
        Baseline { known: found.iter().map(|it| (it.clone(), comments(it))).collect() }
    }
}

fn check_header(line: &str) -> Result<(), BaselineError> {
    let message = match line.split_once(' ') {
        Some((MAGIC, version)) if version.parse() == Ok(VERSION) => return Ok(()),
        Some((MAGIC, version)) => {
            format!("version {version} of baselines is not known here; this is version {VERSION}")
        }
        _ => format!("not a baseline: it would begin with `{MAGIC} {VERSION}`"),
    };
    Err(BaselineError { line: 1, message })
}

/// What was read so far.
#[derive(Default)]
struct BaselineReader {
    baseline: Baseline,
    /// With the line of its code.
    current: Option<(usize, DiagnosticIdentity, Vec<String>)>,
    comments: Vec<String>,
    /// Where each finding is.
    lines: BTreeMap<DiagnosticIdentity, usize>,
}

impl BaselineReader {
    fn read_line(&mut self, number: usize, line: &str) -> Result<(), BaselineError> {
        let error = |message| Err(BaselineError { line: number, message });
        let content = line.trim_start();
        if content.is_empty() {
            self.end()?;
            self.comments.clear();
        } else if content.starts_with('#') {
            self.end()?;
            self.comments.push(content.to_owned());
        } else if content.len() < line.len() {
            let Some((_, identity, _)) = &mut self.current else {
                return error("an indented line without a code above it".to_owned());
            };
            if !content.contains(": ") {
                return error(format!("`{content}` says nothing: a line is like `access: vkCmdDraw`"));
            }
            identity.lines.push(content.to_owned());
        } else {
            self.end()?;
            // What has no rule of its own is called by words.
            let has_words = content.starts_with("UNASSIGNED-");
            let is_part = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_' || has_words && it == ' ';
            let is_code = content.chars().all(is_part);
            if !is_code {
                return error(format!("`{content}` is no code of a finding, no comment and not indented"));
            }
            let identity = DiagnosticIdentity { code: content.to_owned(), lines: Vec::new() };
            self.current = Some((number, identity, std::mem::take(&mut self.comments)));
        }
        Ok(())
    }

    /// A finding is complete.
    fn end(&mut self) -> Result<(), BaselineError> {
        let Some((line, identity, comments)) = self.current.take() else { return Ok(()) };
        if identity.lines.is_empty() {
            return Err(BaselineError { line, message: "no indented lines say which finding this is".to_owned() });
        }
        if let Some(earlier) = self.lines.insert(identity.clone(), line) {
            return Err(BaselineError { line, message: format!("the same finding is in line {earlier} already") });
        }
        self.baseline.known.insert(identity, comments);
        Ok(())
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MAGIC} {VERSION}\n{PREFACE}")?;
        for (identity, comments) in &self.known {
            writeln!(f)?;
            comments.iter().try_for_each(|it| writeln!(f, "{it}"))?;
            writeln!(f, "{}", identity.code)?;
            identity.lines.iter().try_for_each(|it| writeln!(f, "  {it}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for BaselineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for BaselineError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(code: &str, lines: &[&str]) -> DiagnosticIdentity {
        DiagnosticIdentity { code: code.to_owned(), lines: lines.iter().map(|it| (*it).to_owned()).collect() }
    }

    fn two() -> [DiagnosticIdentity; 2] {
        [identity("B", &["access: vkCmdDraw", "object: VkBuffer \"a # b\""]), identity("A", &["access: vkCmdDispatch"])]
    }

    #[test]
    fn what_is_written_is_read_and_sorted() {
        let baseline = Baseline::default().updated(&two());
        let text = baseline.to_string();
        assert!(
            text.ends_with("\nA\n  access: vkCmdDispatch\n\nB\n  access: vkCmdDraw\n  object: VkBuffer \"a # b\"\n")
        );
        assert_eq!(Baseline::parse(&text), Ok(baseline.clone()));
        assert!(baseline.contains(&two()[0]) && !baseline.contains(&identity("A", &["access: vkCmdDraw"])));
        let [one, other] = two();
        assert_eq!(baseline.not_found_in(&[one]), [&other]);
        let empty = Baseline::default();
        assert_eq!(Baseline::parse(&empty.to_string()), Ok(empty));
    }

    #[test]
    fn comments_stay_with_their_finding_as_long_as_it_does() {
        let text = "lavascope-baseline 1\n\n# lost\n\n# about A\n#  and more\nA\n  access: vkCmdDispatch\nB\n  x: y\n";
        let [_, a] = two();
        let once = Baseline::parse(text).expect("a baseline");
        let text = once.updated(std::slice::from_ref(&a)).to_string();
        assert!(text.contains("\n\n# about A\n#  and more\nA\n  access") && !text.contains("lost"), "{text}");
        assert!(!text.contains("\nB\n"), "{text}");
    }

    #[test]
    fn damage_is_told_with_its_line() {
        let error = |rest: &str| Baseline::parse(&format!("lavascope-baseline 1\n{rest}")).expect_err(rest).to_string();
        assert_eq!(error("\n  access: x\n"), "line 3: an indented line without a code above it");
        assert_eq!(error("A\n  access\n"), "line 3: `access` says nothing: a line is like `access: vkCmdDraw`");
        assert_eq!(error("A\n"), "line 2: no indented lines say which finding this is");
        assert_eq!(error("A\n  a: b\n\nA\n  a: b\n"), "line 5: the same finding is in line 2 already");
        let conflict = "line 4: `<<<<<<< HEAD` is no code of a finding, no comment and not indented";
        assert_eq!(error("A\n  a: b\n<<<<<<< HEAD\n"), conflict);
        let whole = |text: &str| Baseline::parse(text).expect_err(text).to_string();
        assert_eq!(whole(""), "line 1: not a baseline: it would begin with `lavascope-baseline 1`");
        let newer = "line 1: version 2 of baselines is not known here; this is version 1";
        assert_eq!(whole("lavascope-baseline 2\n"), newer);
    }
}
