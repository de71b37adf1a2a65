//! `lavascope check` of a trace: the hazards of a program that ran, without the program and without a GPU.

use std::path::Path;

use lavascope_diag::{Diagnostic, Severity};
use lavascope_record::HostWrite;
use lavascope_validate::Validator;

use crate::text::progress::TerminalProgress;
use crate::trace::record_reader::each_record;
use crate::trace::trace_file::TraceFile;

/// What was found in one trace.
pub(crate) struct TraceCheckResult {
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// What was not followed, and how often.
    not_followed: Vec<(String, u64)>,
    damage: Vec<String>,
    records: u64,
    /// What explanations and fixes were left out for their number, one line for each reason.
    cut_explanations: Vec<String>,
}

/// Most traces have no hazards: whether there are any is found out faster than what they are.
pub(crate) fn check_file(
    file: &TraceFile,
    wants_possible: bool,
    progress: &TerminalProgress,
) -> anyhow::Result<TraceCheckResult> {
    let validator = || {
        let mut validator = Validator::default();
        if wants_possible {
            validator.report_possible();
        }
        validator
    };
    let mut scout = validator();
    scout.check_when_executed();
    let (checked, mut scout) = check_with(scout, file, progress, |scout| !scout.has_found())?;
    if !scout.finish_quick_check() {
        return Ok(checked);
    }
    let (mut checked, _) = check_with(validator(), file, progress, |_| true)?;
    checked.diagnostics.retain(|it| wants_possible || it.severity != Severity::Information);
    Ok(checked)
}

/// As far as one wants to go on.
fn check_with(
    mut validator: Validator,
    file: &TraceFile,
    progress: &TerminalProgress,
    goes_on: impl Fn(&Validator) -> bool,
) -> anyhow::Result<(TraceCheckResult, Validator)> {
    let trace = file.open()?;
    validator.check_submissions();
    validator.expect_all_host_writes();
    let mut records = 0;
    let outcome = each_record(file, &trace, progress, |trace_record| {
        records += 1;
        match trace_record.record {
            Ok(record) => validator.record(trace_record.stream, record),
            Err(_) => HostWrite::parse(trace_record.words).into_iter().for_each(|it| validator.host_wrote(it)),
        }
        let goes_on = goes_on(&validator);
        if validator.has_found() {
            // They are counted with their causes.
            validator.take_findings();
        }
        goes_on
    });
    let mut damage = outcome.damage;
    if !outcome.is_ordered {
        damage.push("calls wait for each other, or what they wait for is missing: the order is a guess".to_owned());
    }
    let missing = validator
        .unsupported()
        .map(|(it, count)| (format!("{}: {}", it.command.desc().name, it.reason), count))
        .collect();
    let checked = TraceCheckResult {
        diagnostics: validator.diagnostics().to_vec(),
        not_followed: missing,
        damage,
        records,
        cut_explanations: validator.cut_explanations().lines(),
    };
    Ok((checked, validator))
}

impl TraceCheckResult {
    /// What is to be said beside the findings.
    pub(crate) fn footer(&self, path: &Path) -> String {
        let path = path.display();
        let mut out = String::new();
        for (what, count) in &self.not_followed {
            out += &format!("{path}: not followed, {count} times: {what}\n");
        }
        for text in &self.damage {
            out += &format!("{path}: damaged: {text}\n");
        }
        for text in &self.cut_explanations {
            out += &format!("{path}: {text}\n");
        }
        out
    }

    /// What is said where there are no findings.
    pub(crate) fn no_findings_text(&self, path: &Path) -> String {
        format!("{}: no hazards in {} records", path.display(), self.records)
    }
}
