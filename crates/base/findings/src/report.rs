//! All findings of a run or a check, in the order in which people should read them, and as the JSON that is published.

use std::collections::{HashMap, HashSet};

use lavascope_diag::{IgnoreRule, object_text};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::words::count;
use crate::{Finding, FindingSeverity};

/// What the JSON says it is.
pub const FINDINGS_FORMAT: &str = "lavascope-findings";

/// Of the JSON. A change that readers have to know of makes it larger; new fields do not.
pub const FINDINGS_VERSION: u32 = 1;

/// What was found, and by what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingsReport {
    /// [`FINDINGS_FORMAT`].
    pub format: String,
    /// [`FINDINGS_VERSION`].
    pub version: u32,
    /// The version of Lavascope.
    pub lavascope: String,
    /// What was run or checked.
    pub command: Vec<String>,
    pub findings: Vec<Finding>,
    /// Findings that rules of `--ignore` keep away.
    pub ignored: u64,
    /// What is no finding, but a reader has to know: what was not checked, a lost device, a fault of Lavascope.
    pub notices: Vec<ReportNotice>,
    /// What was checked and what was not; none of a check of a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<crate::Coverage>,
    /// What the codes of the findings mean. `lavascope explain` has the same.
    #[serde(skip)]
    pub codes: Vec<CodeDescription>,
    /// What the command adds to its document: processes, statistics, files. Formats other than JSON do not have it.
    #[serde(flatten)]
    pub sections: Map<String, Value>,
}

/// A fact about a run that is no finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportNotice {
    pub severity: FindingSeverity,
    /// The first line says what; further ones have details.
    pub text: String,
}

impl ReportNotice {
    pub fn new(severity: FindingSeverity, text: impl Into<String>) -> ReportNotice {
        ReportNotice { severity, text: text.into() }
    }

    /// `warning: a.lava is damaged`.
    pub(crate) fn line(&self) -> String {
        let word = if self.severity == FindingSeverity::Info { "note" } else { self.severity.word() };
        format!("{word}: {}", self.text)
    }
}

/// What a code means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeDescription {
    /// `SYNC-HAZARD-READ-AFTER-WRITE`.
    pub code: String,
    /// `RAW`.
    pub short: String,
    /// In one sentence.
    pub summary: String,
    /// The whole page, as Markdown.
    pub page: String,
}

impl Default for FindingsReport {
    fn default() -> FindingsReport {
        FindingsReport {
            format: FINDINGS_FORMAT.to_owned(),
            version: FINDINGS_VERSION,
            lavascope: String::new(),
            command: Vec::new(),
            findings: Vec::new(),
            ignored: 0,
            notices: Vec::new(),
            coverage: None,
            codes: Vec::new(),
            sections: Map::new(),
        }
    }
}

/// What the beginning of the JSON says.
#[derive(Deserialize)]
struct Preamble {
    format: String,
    version: u32,
}

impl FindingsReport {
    /// Reads the JSON; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<FindingsReport, String> {
        let preamble: Preamble = match serde_json::from_str(text) {
            Ok(preamble) => preamble,
            Err(error) if error.is_data() => {
                return Err(format!("not a report: `\"format\": \"{FINDINGS_FORMAT}\"` is missing"));
            }
            Err(error) => return Err(format!("not JSON: {error}")),
        };
        if preamble.format != FINDINGS_FORMAT {
            return Err(format!("not a report: its format is `{}`, not `{FINDINGS_FORMAT}`", preamble.format));
        }
        if preamble.version > FINDINGS_VERSION {
            let version = preamble.version;
            return Err(format!(
                "version {version} of reports is not supported; this Lavascope reads {FINDINGS_VERSION}"
            ));
        }
        serde_json::from_str(text).map_err(|error| format!("a damaged report: {error}"))
    }

    /// What a code means; none for codes of newer versions.
    pub fn description(&self, code: &str) -> Option<&CodeDescription> {
        self.codes.iter().find(|it| it.code == code)
    }

    /// `RAW`, or the whole code.
    pub(crate) fn short_code<'a>(&'a self, finding: &'a Finding) -> &'a str {
        self.description(&finding.code).map_or(&finding.code, |it| &it.short)
    }

    /// Those that are not in the baseline, in the order in which people should read them.
    pub(crate) fn new_findings(&self) -> Vec<&Finding> {
        self.in_reading_order(|it| !it.is_known)
    }

    /// All of them, those that are in the baseline last.
    pub(crate) fn all_findings(&self) -> Vec<&Finding> {
        let mut all = self.new_findings();
        all.extend(self.in_reading_order(|it| it.is_known));
        all
    }

    /// Those of the program itself first, then those of each library. Severe ones come first, and of those one of each
    /// kind before the second of any.
    fn in_reading_order(&self, is_wanted: impl Fn(&Finding) -> bool) -> Vec<&Finding> {
        let mut seen: HashMap<FindingKind<'_>, usize> = HashMap::new();
        let mut ranked: Vec<(usize, &Finding)> = Vec::new();
        for finding in self.findings.iter().filter(|it| is_wanted(it)) {
            let rank = seen.entry(kind(finding)).or_default();
            ranked.push((*rank, finding));
            *rank += 1;
        }
        // Stable: else they stay as they are.
        ranked.sort_by_key(|it| (&it.1.library, it.1.severity, it.0));
        ranked.into_iter().map(|it| it.1).collect()
    }

    /// Whether a user has something to look at: a finding, a lost device, or a fault of Lavascope.
    pub fn has_problems(&self) -> bool {
        let has_errors = self.notices.iter().any(|it| it.severity == FindingSeverity::Error);
        has_errors || self.findings.iter().any(|it| !it.is_known)
    }

    /// What was checked, how much, and what was not: `20 submits, 546 calls … checked: no problems found. Not checked:
    /// …`. None of a check of a trace.
    pub fn coverage_text(&self) -> Option<String> {
        let has_suppressed = self.ignored > 0 || self.findings.iter().any(|it| it.is_known);
        Some(crate::words::visible(&self.coverage.as_ref()?.summary(self.has_problems(), has_suppressed)))
    }

    /// `3 errors, 1 warning; known: 2`. Each cause counts once.
    pub(crate) fn totals(&self) -> String {
        let number = |severity: FindingSeverity| {
            let of_it = self.findings.iter().filter(|it| it.severity == severity && !it.is_known);
            of_it.count() as u64
        };
        let words = [
            (FindingSeverity::Error, "error"),
            (FindingSeverity::Warning, "warning"),
            (FindingSeverity::Performance, "performance warning"),
            (FindingSeverity::Info, "note"),
        ];
        let parts: Vec<String> =
            words.iter().map(|it| (number(it.0), it.1)).filter(|it| it.0 > 0).map(|it| count(it.0, it.1)).collect();
        let has_none = self.findings.is_empty() && self.ignored == 0;
        let mut text = match parts.is_empty() {
            true if has_none => "no problems found".to_owned(),
            true => "no new findings".to_owned(),
            false => parts.join(", "),
        };
        // An entry of a baseline is a fingerprint.
        let known: HashSet<&str> =
            self.findings.iter().filter(|it| it.is_known).map(|it| it.fingerprint.as_str()).collect();
        let known = known.len() as u64;
        for (word, number) in [("known", known), ("ignored", self.ignored)] {
            if number > 0 {
                text += &format!("; {word}: {number}");
            }
        }
        text
    }
}

/// What findings have in common that look alike to a reader: the code and the functions.
type FindingKind<'a> = (&'a str, Vec<&'a str>);

fn kind(finding: &Finding) -> FindingKind<'_> {
    (&finding.code, finding.accesses.iter().map(|it| it.function.as_str()).collect())
}

impl FindingSeverity {
    /// As compilers say it.
    pub fn word(self) -> &'static str {
        match self {
            FindingSeverity::Error => "error",
            FindingSeverity::Warning => "warning",
            FindingSeverity::Performance => "performance",
            FindingSeverity::Info => "info",
        }
    }
}

impl Finding {
    /// The headline; findings of an older layer have only their message.
    pub fn headline(&self) -> &str {
        match self.title.as_str() {
            "" => self.message.lines().find(|it| !it.trim().is_empty()).unwrap_or("no description"),
            title => title,
        }
    }

    /// Whether a rule of `--ignore` fits.
    pub fn is_ignored_by(&self, rule: &IgnoreRule) -> bool {
        let labels = self.accesses.iter().filter_map(|it| it.labels.clone());
        let objects = self.objects.iter();
        let objects = objects.filter_map(|it| object_text(&it.kind, it.name.as_deref(), it.description.as_deref()));
        rule.matches_texts(&self.code, &labels.collect::<Vec<_>>(), &objects.collect::<Vec<_>>())
    }

    /// Where a person should look first.
    pub fn location(&self) -> Option<&crate::SourceLocation> {
        let of_accesses = || self.accesses.iter().find_map(|it| it.stack.source());
        self.source.as_ref().filter(|it| it.line > 0).or_else(of_accesses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(code: &str, severity: FindingSeverity, title: &str) -> Finding {
        Finding { code: code.to_owned(), severity, title: title.to_owned(), ..Finding::default() }
    }

    #[test]
    fn one_of_each_kind_comes_before_repeats() {
        let mut findings = vec![finding("P", FindingSeverity::Performance, "slow")];
        findings.extend((0..3).map(|it| finding("A", FindingSeverity::Error, &format!("a{it}"))));
        findings.push(finding("B", FindingSeverity::Error, "b"));
        findings.push(Finding { is_known: true, ..finding("C", FindingSeverity::Error, "c") });
        let report = FindingsReport { findings, ..FindingsReport::default() };
        let titles = |all: Vec<&Finding>| -> Vec<String> { all.into_iter().map(|it| it.title.clone()).collect() };
        assert_eq!(titles(report.new_findings()), ["a0", "b", "a1", "a2", "slow"]);
        assert_eq!(titles(report.all_findings()).last().map(String::as_str), Some("c"));
        assert_eq!(report.totals(), "4 errors, 1 performance warning; known: 1");
    }

    #[test]
    fn findings_in_libraries_come_behind_those_of_the_program() {
        let of_library = |name: &str, severity, title: &str| Finding {
            library: Some(name.to_owned()),
            ..finding("A", severity, title)
        };
        let findings = vec![
            of_library("wgpu-hal", FindingSeverity::Error, "w1"),
            of_library("libgtk-4", FindingSeverity::Warning, "g"),
            finding("A", FindingSeverity::Warning, "own"),
            of_library("wgpu-hal", FindingSeverity::Error, "w2"),
        ];
        let report = FindingsReport { findings, ..FindingsReport::default() };
        let titles: Vec<&str> = report.new_findings().iter().map(|it| it.title.as_str()).collect();
        assert_eq!(titles, ["own", "g", "w1", "w2"]);
    }

    #[test]
    fn what_is_no_report_is_said() {
        let error = |text: &str| FindingsReport::parse(text).expect_err(text);
        assert!(error("{").starts_with("not JSON: EOF"), "{}", error("{"));
        assert_eq!(error("[]"), "not a report: `\"format\": \"lavascope-findings\"` is missing");
        let of_others = "not a report: its format is `x`, not `lavascope-findings`";
        assert_eq!(error(r#"{"format":"x","version":1}"#), of_others);
        let newer = "version 2 of reports is not supported; this Lavascope reads 1";
        assert_eq!(error(r#"{"format":"lavascope-findings","version":2}"#), newer);
        let damaged = error(r#"{"format":"lavascope-findings","version":1,"findings":3}"#);
        assert!(damaged.starts_with("a damaged report: invalid type: integer `3`"), "{damaged}");
        let report = FindingsReport::parse(r#"{"format":"lavascope-findings","version":1,"new":3}"#);
        assert_eq!(report.as_ref().map(|it| it.sections["new"].as_u64()), Ok(Some(3)));
        assert_eq!(
            report,
            Ok(FindingsReport { sections: report.clone().unwrap_or_default().sections, ..FindingsReport::default() })
        );
    }
}
