//! `lavascope check` of a trace: the hazards of a program that ran, without the program and without a GPU.

use std::path::Path;

use lavascope_diag::{Diagnostic, render_text};
use lavascope_event::check;
use lavascope_validate::Validator;

use super::Outcome;
use crate::text;
use crate::trace_file::TraceFile;

/// What was found in one trace.
pub(crate) struct Checked {
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// What was not followed, and how often.
    missing: Vec<(String, u64)>,
    damage: Vec<String>,
    records: u64,
    beyond: u64,
}

pub(crate) fn check_file(path: &Path) -> anyhow::Result<Checked> {
    let file = TraceFile::read(path)?;
    let trace = file.open()?;
    let mut merged = file.merged(&trace);
    let mut validator = Validator::default();
    validator.want_submissions();
    let (mut damage, mut records) = (Vec::new(), 0);
    loop {
        match merged.take_next() {
            Ok(Some(it)) => {
                records += 1;
                if let Ok(record) = check(it.record) {
                    validator.record(it.stream, record);
                    // They are counted with their causes.
                    validator.take();
                }
            }
            Ok(None) => break,
            Err(error) => damage.push(error.to_string()),
        }
    }
    let all = trace.damages().iter().chain(merged.damages());
    damage.extend(all.map(|it| format!("byte {}: {}", it.at, it.what)));
    if merged.forced() > 0 {
        damage.push("calls wait for each other, or what they wait for is missing: the order is a guess".to_owned());
    }
    let missing =
        validator.missing().map(|(it, count)| (format!("{}: {}", it.command.desc().name, it.reason), count)).collect();
    let beyond = validator.beyond();
    Ok(Checked { diagnostics: validator.diagnostics().to_vec(), missing, damage, records, beyond })
}

/// As text, the way that `check` tells of scenarios.
pub(crate) fn tell(path: &Path, checked: &Checked) -> anyhow::Result<Outcome> {
    let mut out = String::new();
    for it in &checked.diagnostics {
        out += &format!("{}: {}\n", path.display(), render_text(&Diagnostic { facts: Vec::new(), ..it.clone() }));
    }
    for (what, count) in &checked.missing {
        out += &format!("{}: not followed, {count} times: {what}\n", path.display());
    }
    for it in &checked.damage {
        out += &format!("{}: damaged: {it}\n", path.display());
    }
    if checked.beyond > 0 {
        out += &format!("{}: {} findings more that are not told one by one\n", path.display(), checked.beyond);
    }
    out += &match checked.diagnostics.len() {
        0 => format!("{}: no hazards in {} records\n", path.display(), checked.records),
        1 => "1 finding; `lavascope explain CODE` tells more about its kind\n".to_owned(),
        count => format!("{count} findings; `lavascope explain CODE` tells more about a kind\n"),
    };
    text::emit(&out)?;
    Ok(checked.outcome())
}

impl Checked {
    pub(crate) fn outcome(&self) -> Outcome {
        if self.diagnostics.is_empty() { Outcome::Fine } else { Outcome::Found }
    }
}
