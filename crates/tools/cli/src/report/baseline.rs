//! Findings that are known, or that nobody wants to hear of: what `run`, `check` and `replay` have in common.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use lavascope_diag::IgnoreRule;
use lavascope_findings::{
    Baseline, BaselineEntry, Date, Finding, FindingSeverity, FindingsReport, ReportNotice, is_old_baseline,
};
use lavascope_settings::{ApplicationSettings, MessageId, Problem, SettingSource};
use serde_json::json;

use crate::report::LayerReport;
use crate::text;

/// More entries that did not occur are only counted.
const NOT_FOUND_MAX: usize = 20;

#[derive(clap::Args, Clone, Debug, Default)]
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

    /// Whether an option is used.
    pub(crate) fn is_used(&self) -> bool {
        self.baseline.is_some() || !self.ignore.is_empty()
    }

    /// The rules of the options, for findings of the layer: it knows the settings.
    pub(crate) fn rules(&self) -> Result<HidingRules> {
        let rule = |it: &String| IgnoreRule::parse(it).map_err(|why| anyhow!("--ignore: {why}"));
        let options = self.ignore.iter().map(rule).collect::<Result<_>>()?;
        Ok(HidingRules { options, ..HidingRules::default() })
    }

    /// The rules of the options and of the settings that the layer would have here, and what is wrong with those.
    pub(crate) fn rules_and_settings(&self) -> Result<(HidingRules, Vec<ReportNotice>)> {
        let (settings, problems) = lavascope_settings::sources::read(ApplicationSettings::default());
        let rules = HidingRules {
            settings: settings.ignore.iter().filter_map(|it| IgnoreRule::parse(it).ok()).collect(),
            filter: settings.message_id_filter,
            ..self.rules()?
        };
        let notice = |it: &Problem| ReportNotice::new(FindingSeverity::Error, format!("{}: {}", it.source, it.text()));
        let is_about_rules = |problem: &&Problem| match &problem.source {
            SettingSource::Variable(name) => ["_IGNORE", "_MESSAGE_ID_FILTER"].iter().any(|end| name.ends_with(end)),
            _ => false,
        };
        Ok((rules, problems.iter().filter(is_about_rules).map(notice).collect()))
    }

    /// The rules as the layer reads them, behind those that are set already.
    pub(crate) fn rules_for_layer(&self) -> Result<Option<String>> {
        self.rules()?;
        let set = std::env::var("LAVASCOPE_IGNORE").ok().filter(|it| !it.is_empty());
        let all: Vec<&str> = set.iter().chain(&self.ignore).map(String::as_str).collect();
        Ok((!self.ignore.is_empty()).then(|| all.join(",")))
    }
}

/// Which findings nobody wants to see.
#[derive(Clone, Debug, Default)]
pub(crate) struct HidingRules {
    /// Of `--ignore`.
    options: Vec<IgnoreRule>,
    /// Of the settings `ignore` and `message_id_filter`.
    settings: Vec<IgnoreRule>,
    filter: Vec<MessageId>,
}

impl HidingRules {
    /// Removes the findings that rules match.
    pub(crate) fn apply<const N: usize>(&self, lists: [&mut Vec<Finding>; N]) -> HiddenFindings {
        let mut unused: Vec<&IgnoreRule> = self.options.iter().collect();
        let mut count = 0;
        for list in lists {
            let before = list.len();
            list.retain(|finding| {
                unused.retain(|rule| !finding.is_ignored_by(rule));
                !self.hides(finding)
            });
            count += (before - list.len()) as u64;
        }
        HiddenFindings { count, unused: unused.into_iter().map(IgnoreRule::to_string).collect() }
    }

    fn hides(&self, finding: &Finding) -> bool {
        let mut rules = self.options.iter().chain(&self.settings);
        rules.any(|it| finding.is_ignored_by(it)) || self.filter.iter().any(|it| it.matches(&finding.code))
    }
}

/// What rules did.
pub(crate) struct HiddenFindings {
    count: u64,
    /// Rules of `--ignore` that match nothing.
    unused: Vec<String>,
}

impl HiddenFindings {
    /// Without the rules that matched findings in the layer, which reports only how many those were.
    pub(crate) fn with_those_of_layer(mut self, layer: &LayerReport) -> HiddenFindings {
        let ignored = layer.processes.iter().flat_map(|it| &it.ignored);
        let used: HashSet<&str> = ignored.map(|it| it.rule.as_str()).collect();
        self.unused.retain(|rule| !used.contains(rule.as_str()));
        self
    }

    /// Counts the findings. If the report has all findings that there are, it also names the rules that match none: one
    /// with a slip of the pen hides nothing, and looks like one that does.
    pub(crate) fn report(&self, report: &mut FindingsReport, is_complete: bool) {
        report.ignored += self.count;
        let notice =
            |rule: &String| ReportNotice::new(FindingSeverity::Info, format!("`--ignore {rule}` matched nothing"));
        report.notices.extend(self.unused.iter().filter(|_| is_complete).map(notice));
    }
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
            anyhow!("{shown}:{line}: not UTF-8 text")
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
            notice(FindingSeverity::Info, format!("{shown}: known until {until}, counts again: {}", entry_text(entry)));
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
    let (count, them) = match gone.len() {
        1 => ("1 finding".to_owned(), "it"),
        number => (format!("{number} findings"), "them"),
    };
    let mut lines = vec![format!("{count} of {} did not occur; --update-baseline removes {them}", file.display())];
    lines.extend(gone.iter().take(NOT_FOUND_MAX).map(entry_text));
    if gone.len() > NOT_FOUND_MAX {
        lines.push(format!("and {} more", gone.len() - NOT_FOUND_MAX));
    }
    lines.join("\n")
}
