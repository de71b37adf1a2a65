//! Findings that are known, or that nobody wants to hear of: what `run` and `check` have in common.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use lavascope_diag::IgnoreRule;
use lavascope_findings::{
    Baseline, BaselineEntry, Date, Finding, FindingSeverity, FindingsReport, ReportNotice, is_old_baseline,
};
use serde_json::json;

use crate::text;

/// More entries that did not occur are only counted.
const NOT_FOUND_MAX: usize = 20;

#[derive(clap::Args)]
pub(crate) struct BaselineArguments {
    /// Findings in this file are known: they are counted, and do not change the exit code
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the findings of this run into the baseline; entries of findings that do not occur are removed
    #[arg(long, requires = "baseline")]
    update_baseline: bool,
    /// Hide findings by `object=REGEX`, `label=REGEX` or `code=REGEX`; may be given more than once
    #[arg(long, value_name = "WHAT=REGEX")]
    ignore: Vec<String>,
}

impl BaselineArguments {
    /// The baseline as it is now; read before anything else, so that damage is reported first.
    pub(crate) fn baseline(&self) -> Result<Option<BaselineFile>> {
        let Some(path) = &self.baseline else { return Ok(None) };
        BaselineFile::read(path, self.update_baseline).map(Some)
    }

    pub(crate) fn rules(&self) -> Result<Vec<IgnoreRule>> {
        self.ignore.iter().map(|it| IgnoreRule::parse(it).map_err(|why| anyhow!("--ignore: {why}"))).collect()
    }

    /// The rules as the layer reads them, behind those that are set already.
    pub(crate) fn rules_for_layer(&self) -> Result<Option<String>> {
        self.rules()?;
        let set = std::env::var("LAVASCOPE_IGNORE").ok().filter(|it| !it.is_empty());
        let all: Vec<&str> = set.iter().chain(&self.ignore).map(String::as_str).collect();
        Ok((!self.ignore.is_empty()).then(|| all.join(",")))
    }
}

/// Removes the findings that rules fit, and counts them.
pub(crate) fn remove_ignored(report: &mut FindingsReport, rules: &[IgnoreRule]) {
    let before = report.findings.len();
    report.findings.retain(|it| !rules.iter().any(|rule| it.is_ignored_by(rule)));
    report.ignored += (before - report.findings.len()) as u64;
}

/// A baseline and the file it is in.
pub(crate) struct BaselineFile {
    path: PathBuf,
    baseline: Baseline,
    is_missing: bool,
    is_updated: bool,
    today: Date,
}

impl BaselineFile {
    fn read(path: &Path, is_updated: bool) -> Result<BaselineFile> {
        let shown = path.display();
        let (bytes, is_missing) = match fs::read(path) {
            Ok(bytes) => (bytes, false),
            Err(error) if error.kind() == ErrorKind::NotFound => (Vec::new(), true),
            Err(error) => return Err(error).with_context(|| format!("{shown} cannot be read")),
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|it| **it == b'\n').count() + 1;
            anyhow!("{shown}:{line}: this is no text in UTF-8")
        })?;
        let is_empty = is_missing || is_updated && is_old_baseline(&text);
        let baseline = if is_empty { Ok(Baseline::default()) } else { Baseline::parse(&text) };
        let baseline = baseline.map_err(|error| anyhow!("{shown}:{}: {}", error.line, error.message))?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |it| it.as_secs());
        let today = Date::of_unix_seconds(now);
        Ok(BaselineFile { path: path.to_owned(), baseline, is_missing, is_updated, today })
    }

    /// Marks the known findings, and adds what a reader has to know of the baseline. Findings of a run that failed are
    /// not all there are: they are marked, and nothing more is concluded.
    pub(crate) fn compare(&self, report: &mut FindingsReport, is_complete: bool) {
        let shown = self.path.display();
        for finding in &mut report.findings {
            finding.is_known = self.is_updated && is_complete || self.baseline.contains(finding, self.today);
        }
        let mut notice = |severity, text: String| report.notices.push(ReportNotice::new(severity, text));
        if self.is_missing && !self.is_updated {
            let text = format!("{shown} does not exist: no finding is known (--update-baseline writes the file)");
            notice(FindingSeverity::Info, text);
        }
        if !is_complete {
            return notice(FindingSeverity::Info, format!("{shown} stays as it is, and is not compared"));
        }
        for entry in self.baseline.expired_in(&report.findings, self.today).iter().filter(|_| !self.is_updated) {
            let until = entry.until.as_deref().unwrap_or_default();
            notice(FindingSeverity::Info, format!("{shown}: counts again since {until}: {}", entry_text(entry)));
        }
        if self.is_updated {
            return;
        }
        let gone = self.baseline.not_found_in(&report.findings);
        if !gone.is_empty() {
            notice(FindingSeverity::Info, not_found_text(&self.path, &gone));
        }
        report.sections.insert("gone".to_owned(), json!(gone));
    }

    /// Writes the file if that is asked for; returns what changed.
    pub(crate) fn update(&self, found: &[Finding]) -> Result<()> {
        if !self.is_updated {
            return Ok(());
        }
        let (new, shown) = (self.baseline.updated(found, self.today), self.path.display());
        // In one step, so that nobody finds half a file.
        let beside = self.path.with_added_extension("new");
        fs::write(&beside, new.to_string())
            .and_then(|()| fs::rename(&beside, &self.path))
            .with_context(|| format!("{shown} cannot be written"))?;
        let change = self.baseline.change_to(&new);
        let (added, removed) = (change.added, change.removed);
        text::emit_stderr(&format!("lavascope: {shown} is written: {added} added, {removed} removed\n"));
        Ok(())
    }
}

fn entry_text(entry: &BaselineEntry) -> String {
    let comment = if entry.comment.is_empty() { String::new() } else { format!(": {}", entry.comment) };
    format!("{} {}{comment}", entry.code, entry.fingerprint)
}

fn not_found_text(file: &Path, gone: &[BaselineEntry]) -> String {
    let count = if gone.len() == 1 { "1 finding".to_owned() } else { format!("{} findings", gone.len()) };
    let mut lines = vec![format!("{count} of {} did not occur; --update-baseline removes them", file.display())];
    lines.extend(gone.iter().take(NOT_FOUND_MAX).map(entry_text));
    if gone.len() > NOT_FOUND_MAX {
        lines.push(format!("and {} more", gone.len() - NOT_FOUND_MAX));
    }
    lines.join("\n")
}
