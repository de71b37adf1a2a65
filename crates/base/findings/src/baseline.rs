//! Findings that are known, as a text that people review and that lies beside their code.
//!
//! ```text
//! lavascope-baseline 2
//!
//! # copy writes "vertices" before the earlier copy is done
//! SYNC-HAZARD-WRITE-AFTER-WRITE 0123456789abcdef
//!   reason: the upload is rewritten next week
//!   until: 2027-01-31
//! ```
//!
//! An entry is a code and a fingerprint. `#` begins a comment line; those directly in front of an entry belong to it.
//! `reason` and `until` are optional. After the day of `until` the finding counts again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::Finding;
use crate::words::{short_names, visible};

const MAGIC: &str = "lavascope-baseline";
const VERSION: u32 = 2;
const PREFACE: &str = "
# Known findings: they are counted, and do not change the exit code. `--update-baseline` writes this file.
# Comments right above an entry stay with it. Below an entry there may be `reason: TEXT` and `until: YYYY-MM-DD`:
# after that day the finding counts again.
";

/// The known findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: BTreeMap<BaselineKey, BaselineNotes>,
}

/// What a finding is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BaselineKey {
    code: String,
    fingerprint: String,
}

/// What people write beside an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct BaselineNotes {
    comments: Vec<String>,
    reason: Option<String>,
    until: Option<Date>,
}

/// An entry of a baseline.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BaselineEntry {
    pub code: String,
    pub fingerprint: String,
    /// The comment lines in front of it, without `#`.
    pub comment: String,
    pub reason: Option<String>,
    /// The last day on which it is known.
    pub until: Option<String>,
}

/// How many entries an update adds and removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaselineChange {
    pub added: usize,
    pub removed: usize,
}

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: u64,
    month: u64,
    day: u64,
}

/// Why a text is no baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineError {
    /// From one.
    pub line: usize,
    pub message: String,
}

impl Date {
    /// The day that has so many seconds behind the beginning of 1970, in UTC.
    pub fn of_unix_seconds(seconds: u64) -> Date {
        let mut days = seconds / 86_400;
        let mut year = 1970;
        while days >= days_of_year(year) {
            days -= days_of_year(year);
            year += 1;
        }
        let mut month = 1;
        while days >= days_of_month(year, month) {
            days -= days_of_month(year, month);
            month += 1;
        }
        Date { year, month, day: days + 1 }
    }

    /// From `2027-01-31`.
    fn parse(text: &str) -> Option<Date> {
        let parts: Vec<&str> = text.split('-').collect();
        let [year, month, day] = parts[..] else { return None };
        let number = |text: &str, digits: usize| {
            let is_number = text.len() == digits && text.bytes().all(|it| it.is_ascii_digit());
            text.parse().ok().filter(|_| is_number)
        };
        let date = Date { year: number(year, 4)?, month: number(month, 2)?, day: number(day, 2)? };
        let is_month = (1..=12).contains(&date.month);
        (is_month && (1..=days_of_month(date.year, date.month)).contains(&date.day)).then_some(date)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn days_of_year(year: u64) -> u64 {
    if days_of_month(year, 2) == 29 { 366 } else { 365 }
}

fn days_of_month(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl BaselineKey {
    fn of(finding: &Finding) -> BaselineKey {
        BaselineKey { code: finding.code.clone(), fingerprint: finding.fingerprint.clone() }
    }
}

impl Baseline {
    pub fn parse(text: &str) -> Result<Baseline, BaselineError> {
        let mut lines = text.lines().enumerate().map(|(at, it)| (at + 1, it.trim_end()));
        check_header(lines.next().map_or("", |it| it.1))?;
        let mut reader = BaselineReader::default();
        for (number, line) in lines {
            reader.read_line(number, line)?;
        }
        Ok(reader.baseline)
    }

    /// Whether a finding is known on a day.
    pub fn contains(&self, finding: &Finding, today: Date) -> bool {
        self.entries.get(&BaselineKey::of(finding)).is_some_and(|it| it.until.is_none_or(|until| today <= until))
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries of findings that did not occur.
    pub fn not_found_in(&self, found: &[Finding]) -> Vec<BaselineEntry> {
        let found: BTreeSet<BaselineKey> = found.iter().map(BaselineKey::of).collect();
        self.entries.iter().filter(|it| !found.contains(it.0)).map(|(key, notes)| entry(key, notes)).collect()
    }

    /// The entries of findings that occurred, but are known no longer.
    pub fn expired_in(&self, found: &[Finding], today: Date) -> Vec<BaselineEntry> {
        let found: BTreeSet<BaselineKey> = found.iter().map(BaselineKey::of).collect();
        let is_expired = |it: &BaselineNotes| it.until.is_some_and(|until| until < today);
        let expired = self.entries.iter().filter(|it| is_expired(it.1) && found.contains(it.0));
        expired.map(|(key, notes)| entry(key, notes)).collect()
    }

    /// Exactly the findings that occurred. Entries keep their comments, reasons and dates; past dates go.
    pub fn updated(&self, found: &[Finding], today: Date) -> Baseline {
        let notes = |finding: &Finding| {
            let mut notes = self.entries.get(&BaselineKey::of(finding)).cloned().unwrap_or_default();
            notes.until = notes.until.filter(|it| today <= *it);
            if notes.comments.is_empty() {
                notes.comments = vec![format!("# {}", short_names(&visible(finding.headline())))];
            }
            notes
        };
        let mut entries = BTreeMap::new();
        for finding in found {
            entries.entry(BaselineKey::of(finding)).or_insert_with(|| notes(finding));
        }
        Baseline { entries }
    }

    /// What makes this baseline another one.
    pub fn change_to(&self, other: &Baseline) -> BaselineChange {
        let missing =
            |own: &Baseline, other: &Baseline| own.entries.keys().filter(|it| !other.entries.contains_key(it)).count();
        BaselineChange { added: missing(other, self), removed: missing(self, other) }
    }
}

fn entry(key: &BaselineKey, notes: &BaselineNotes) -> BaselineEntry {
    let comments: Vec<&str> = notes.comments.iter().map(|it| it.trim_start_matches(['#', ' '])).collect();
    BaselineEntry {
        code: key.code.clone(),
        fingerprint: key.fingerprint.clone(),
        comment: comments.join(" "),
        reason: notes.reason.clone(),
        until: notes.until.map(|it| it.to_string()),
    }
}

fn check_header(line: &str) -> Result<(), BaselineError> {
    let message = match line.split_once(' ') {
        Some((MAGIC, version)) if version.parse() == Ok(VERSION) => return Ok(()),
        Some((MAGIC, "1")) => "version 1 of baselines has no fingerprints; --update-baseline writes it anew".to_owned(),
        Some((MAGIC, version)) => {
            format!("version {version} of baselines is not supported; this Lavascope reads version {VERSION}")
        }
        _ => format!("not a baseline: it would begin with `{MAGIC} {VERSION}`"),
    };
    Err(BaselineError { line: 1, message })
}

/// Whether a text is a baseline of an older version, which an update replaces.
pub fn is_old_baseline(text: &str) -> bool {
    text.lines().next().is_some_and(|it| it.trim_end() == format!("{MAGIC} 1"))
}

/// What was read so far.
#[derive(Default)]
struct BaselineReader {
    baseline: Baseline,
    /// The entry that further lines belong to.
    current: Option<BaselineKey>,
    comments: Vec<String>,
    /// Where each entry is.
    lines: BTreeMap<BaselineKey, usize>,
}

impl BaselineReader {
    fn read_line(&mut self, number: usize, line: &str) -> Result<(), BaselineError> {
        let content = line.trim_start();
        let result = if content.is_empty() {
            self.current = None;
            self.comments.clear();
            Ok(())
        } else if content.starts_with('#') {
            self.current = None;
            self.comments.push(content.to_owned());
            Ok(())
        } else if content.len() < line.len() {
            self.read_note(content)
        } else {
            self.read_entry(number, content)
        };
        result.map_err(|message| BaselineError { line: number, message })
    }

    fn read_note(&mut self, content: &str) -> Result<(), String> {
        let notes = self.current.as_ref().and_then(|it| self.baseline.entries.get_mut(it));
        let Some(notes) = notes else { return Err("an indented line without an entry above it".to_owned()) };
        match content.split_once(": ") {
            Some(("reason", reason)) => notes.reason = Some(reason.trim().to_owned()),
            Some(("until", date)) => {
                let parsed = Date::parse(date.trim());
                notes.until = Some(parsed.ok_or_else(|| format!("`{}` is not a date like 2027-01-31", date.trim()))?);
            }
            _ => return Err(format!("`{content}` is neither `reason: TEXT` nor `until: YYYY-MM-DD`")),
        }
        Ok(())
    }

    fn read_entry(&mut self, number: usize, content: &str) -> Result<(), String> {
        let is_hex = |it: &str| it.len() == 16 && it.bytes().all(|it| it.is_ascii_hexdigit());
        // Codes of what has no rule of its own are words.
        let parts = content.rsplit_once(' ').filter(|it| is_hex(it.1) && !it.0.trim().is_empty());
        let Some((code, fingerprint)) = parts else {
            return Err(format!("`{content}` is not an entry: a code and a fingerprint of 16 digits"));
        };
        let key = BaselineKey { code: code.trim().to_owned(), fingerprint: fingerprint.to_ascii_lowercase() };
        if let Some(earlier) = self.lines.insert(key.clone(), number) {
            return Err(format!("the same finding is in line {earlier} already"));
        }
        let notes = BaselineNotes { comments: std::mem::take(&mut self.comments), ..BaselineNotes::default() };
        self.baseline.entries.insert(key.clone(), notes);
        self.current = Some(key);
        Ok(())
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MAGIC} {VERSION}\n{PREFACE}")?;
        for (key, notes) in &self.entries {
            writeln!(f)?;
            notes.comments.iter().try_for_each(|it| writeln!(f, "{it}"))?;
            writeln!(f, "{} {}", key.code, key.fingerprint)?;
            notes.reason.iter().try_for_each(|it| writeln!(f, "  reason: {it}"))?;
            notes.until.iter().try_for_each(|it| writeln!(f, "  until: {it}"))?;
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

    const TODAY: Date = Date { year: 2026, month: 11, day: 19 };

    fn finding(code: &str, fingerprint: &str) -> Finding {
        Finding {
            code: code.to_owned(),
            fingerprint: fingerprint.to_owned(),
            title: format!("title of {code} at VK_PIPELINE_STAGE_2_COPY_BIT"),
            ..Finding::default()
        }
    }

    fn two() -> [Finding; 2] {
        [finding("B", "bbbbbbbbbbbbbbbb"), finding("UNASSIGNED-A b", "0123456789abcdef")]
    }

    #[test]
    fn what_is_written_is_read_and_sorted() {
        let baseline = Baseline::default().updated(&two(), TODAY);
        let text = baseline.to_string();
        let entries = "\n# title of B at COPY\nB bbbbbbbbbbbbbbbb\n\n# title of UNASSIGNED-A b at COPY\nUNASSIGNED-A b 0123456789abcdef\n";
        assert!(text.starts_with("lavascope-baseline 2\n\n#") && text.ends_with(entries), "{text}");
        assert_eq!(Baseline::parse(&text), Ok(baseline.clone()));
        assert!(baseline.contains(&two()[0], TODAY));
        assert!(!baseline.contains(&finding("B", "bbbbbbbbbbbbbbbc"), TODAY));
        let [one, _] = two();
        let gone = baseline.not_found_in(&[one]);
        assert_eq!((gone.len(), gone[0].comment.as_str()), (1, "title of UNASSIGNED-A b at COPY"));
        let empty = Baseline::default();
        assert_eq!(Baseline::parse(&empty.to_string()), Ok(empty));
    }

    #[test]
    fn notes_stay_with_their_entry_as_long_as_it_does() {
        let text = "lavascope-baseline 2\n\n# lost\n\n# about B\n#  and more\nB BBBBBBBBBBBBBBBB\n  reason: a: b\n  \
                    until: 2026-11-19\nC cccccccccccccccc\n";
        let once = Baseline::parse(text).expect("a baseline");
        assert_eq!(once.change_to(&once.updated(&two(), TODAY)), BaselineChange { added: 1, removed: 1 });
        let text = once.updated(&two(), TODAY).to_string();
        let entry = "\n\n# about B\n#  and more\nB bbbbbbbbbbbbbbbb\n  reason: a: b\n  until: 2026-11-19\n";
        assert!(text.contains(entry) && !text.contains("lost") && !text.contains("\nC "), "{text}");
        // Two findings that are known by the same count once.
        let twice = [two(), two()].concat();
        assert_eq!(once.updated(&twice, TODAY).entries.len(), 2);
    }

    #[test]
    fn after_its_day_a_finding_counts_again() {
        let text = "lavascope-baseline 2\nB bbbbbbbbbbbbbbbb\n  until: 2026-11-18\n";
        let baseline = Baseline::parse(text).expect("a baseline");
        assert!(!baseline.contains(&two()[0], TODAY));
        assert!(baseline.contains(&two()[0], Date { day: 18, ..TODAY }));
        assert_eq!(baseline.expired_in(&two(), TODAY).len(), 1);
        assert_eq!(baseline.expired_in(&[], TODAY), []);
        assert!(baseline.updated(&two(), TODAY).contains(&two()[0], Date { year: 2040, ..TODAY }));
    }

    #[test]
    fn days_are_counted_as_calendars_do() {
        for (seconds, text) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_798_761_599, "2026-12-31"),
            (1_798_761_600, "2027-01-01"),
            (4_107_542_400, "2100-03-01"),
        ] {
            let date = Date::of_unix_seconds(seconds);
            assert_eq!((date.to_string().as_str(), Date::parse(text)), (text, Some(date)));
        }
        for text in ["2026-02-29", "2026-13-01", "2026-00-01", "2026-1-1", "26-01-01", "2026-01-32", "x", "+026-01-01"]
        {
            assert_eq!(Date::parse(text), None, "{text}");
        }
    }

    #[test]
    fn damage_is_reported_with_its_line() {
        let error = |rest: &str| Baseline::parse(&format!("lavascope-baseline 2\n{rest}")).expect_err(rest).to_string();
        assert_eq!(error("\n  reason: x\n"), "line 3: an indented line without an entry above it");
        let note = "line 3: `access: x` is neither `reason: TEXT` nor `until: YYYY-MM-DD`";
        assert_eq!(error("A 0123456789abcdef\n  access: x\n"), note);
        assert_eq!(error("A 0123456789abcdef\n  until: soon\n"), "line 3: `soon` is not a date like 2027-01-31");
        assert_eq!(error("A\n"), "line 2: `A` is not an entry: a code and a fingerprint of 16 digits");
        let twice = "A 0123456789abcdef\n\nA 0123456789ABCDEF\n";
        assert_eq!(error(twice), "line 4: the same finding is in line 2 already");
        let conflict = "line 2: `<<<<<<< HEAD` is not an entry: a code and a fingerprint of 16 digits";
        assert_eq!(error("<<<<<<< HEAD\n"), conflict);
        let whole = |text: &str| Baseline::parse(text).expect_err(text).to_string();
        assert_eq!(whole(""), "line 1: not a baseline: it would begin with `lavascope-baseline 2`");
        let old = "line 1: version 1 of baselines has no fingerprints; --update-baseline writes it anew";
        assert_eq!(whole("lavascope-baseline 1\n"), old);
        assert!(is_old_baseline("lavascope-baseline 1\nA\n") && !is_old_baseline("lavascope-baseline 2\n"));
        let newer = "line 1: version 3 of baselines is not supported; this Lavascope reads version 2";
        assert_eq!(whole("lavascope-baseline 3\n"), newer);
    }
}
