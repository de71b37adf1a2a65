//! Findings that are known, or that nobody wants to hear of: what `run` and `check` have in common.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use lavascope_diag::{Baseline, Diagnostic, DiagnosticIdentity, IgnoreRule};

/// More than these that did not occur are only counted.
const NOT_FOUND_MAX: usize = 20;

#[derive(clap::Args)]
pub(crate) struct BaselineArguments {
    /// Findings in this file are known: they are counted, and do not change the exit code
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write what is found into the baseline, sorted; what does not occur any more goes
    #[arg(long, requires = "baseline")]
    update_baseline: bool,
    /// Leave out findings, and count them: by `object=REGEX`, `label=REGEX` or `code=REGEX`; may be given more than once
    #[arg(long, value_name = "WHAT=REGEX")]
    ignore: Vec<String>,
}

impl BaselineArguments {
    /// The baseline as it is now; read before anything else, so that damage is told first.
    pub(crate) fn baseline(&self) -> Result<Option<BaselineFile>> {
        let Some(path) = &self.baseline else { return Ok(None) };
        let mut file = BaselineFile::read(path, self.update_baseline)?;
        file.is_updated = self.update_baseline;
        Ok(Some(file))
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

/// A baseline and the file it is in.
pub(crate) struct BaselineFile {
    path: PathBuf,
    baseline: Baseline,
    is_updated: bool,
}

impl BaselineFile {
    fn read(path: &Path, may_be_missing: bool) -> Result<BaselineFile> {
        let shown = path.display();
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound && may_be_missing => {
                return Ok(BaselineFile { path: path.to_owned(), baseline: Baseline::default(), is_updated: false });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("{shown} cannot be read; --update-baseline writes it"));
            }
            Err(error) => return Err(error).with_context(|| format!("{shown} cannot be read")),
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|it| **it == b'\n').count() + 1;
            anyhow!("{shown}:{line}: this is no text in UTF-8")
        })?;
        let baseline = Baseline::parse(&text).map_err(|error| anyhow!("{shown}:{}: {}", error.line, error.message))?;
        Ok(BaselineFile { path: path.to_owned(), baseline, is_updated: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a finding is known, or will be.
    pub(crate) fn contains(&self, diagnostic_identity: &DiagnosticIdentity) -> bool {
        self.is_updated || self.baseline.contains(diagnostic_identity)
    }

    /// What is known and did not occur; nothing where the file is written anew.
    pub(crate) fn not_found(&self, found: &[DiagnosticIdentity]) -> Vec<DiagnosticIdentity> {
        if self.is_updated { Vec::new() } else { self.baseline.not_found_in(found).into_iter().cloned().collect() }
    }

    /// Writes the file if that is asked for, and says so.
    pub(crate) fn update(&self, found: &[DiagnosticIdentity]) -> Result<Option<String>> {
        if !self.is_updated {
            return Ok(None);
        }
        let (new, shown) = (self.baseline.updated(found), self.path.display());
        // In one step, so that nobody finds half a file.
        let beside = self.path.with_added_extension("new");
        fs::write(&beside, new.to_string())
            .and_then(|()| fs::rename(&beside, &self.path))
            .with_context(|| format!("{shown} cannot be written"))?;
        let added = found.iter().filter(|it| !self.baseline.contains(it)).count();
        let removed = self.baseline.not_found_in(found).len();
        Ok(Some(format!("lavascope: {shown} is written: {added} added, {removed} removed\n")))
    }
}

/// How what did not occur is told.
pub(crate) fn not_found_text(file: &Path, gone: &[DiagnosticIdentity]) -> String {
    let count = match gone.len() {
        0 => return String::new(),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
    let mut text = format!("lavascope: {count} of {} did not occur; --update-baseline removes them\n", file.display());
    for diagnostic_identity in gone.iter().take(NOT_FOUND_MAX) {
        text += &format!("  {}: {}\n", diagnostic_identity.code, diagnostic_identity.lines.join("; "));
    }
    if gone.len() > NOT_FOUND_MAX {
        text += &format!("  and {} more\n", gone.len() - NOT_FOUND_MAX);
    }
    text
}

/// What a command found, without what is ignored; and of each whether it is known.
pub(crate) struct ComparedFindings<T> {
    pub(crate) findings: Vec<(T, bool)>,
    pub(crate) ignored: u64,
}

impl<T> ComparedFindings<T> {
    pub(crate) fn new(
        found: Vec<T>,
        diagnostic: impl Fn(&T) -> &Diagnostic,
        rules: &[IgnoreRule],
        known: Option<&BaselineFile>,
    ) -> ComparedFindings<T> {
        let mut judged = ComparedFindings { findings: Vec::new(), ignored: 0 };
        for value in found {
            let own = diagnostic(&value);
            if rules.iter().any(|rule| rule.matches(own)) {
                judged.ignored += own.count;
                continue;
            }
            let is_known = known.is_some_and(|known| known.contains(&DiagnosticIdentity::of(own)));
            judged.findings.push((value, is_known));
        }
        judged
    }

    pub(crate) fn new_count(&self) -> usize {
        self.findings.iter().filter(|it| !it.1).count()
    }

    pub(crate) fn known_count(&self) -> usize {
        self.findings.len() - self.new_count()
    }
}
