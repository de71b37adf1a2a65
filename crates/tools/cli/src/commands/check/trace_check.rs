//! `lavascope check` of a trace: the hazards of a program that ran, without the program and without a GPU.

use std::path::Path;

use lavascope_diag::{Diagnostic, Severity};
use lavascope_findings::{Finding, FindingSeverity, ReportNotice, Stack};
use lavascope_record::{HostWrite, RecordPhase};
use lavascope_trace::PartNumbers;
use lavascope_validate::Validator;

use crate::commands::check::{FileFindings, InputKind};
use crate::text::progress::TerminalProgress;
use crate::trace::record_reader::each_record;
use crate::trace::trace_file::TraceFile;

/// What was found in one trace.
struct TraceCheckResult {
    diagnostics: Vec<Diagnostic>,
    /// What was not followed, and how often.
    not_followed: Vec<(String, u64)>,
    damage: Vec<String>,
    calls: u64,
    /// Explanations and fixes that were skipped because there are too many, one line for each reason.
    cut_explanations: Vec<String>,
}

/// The findings of a trace, and what of it was not checked.
pub(crate) fn check_trace(
    file: &TraceFile,
    wants_possible: bool,
    progress: &TerminalProgress,
) -> anyhow::Result<FileFindings> {
    let checked = check_quickly(file, wants_possible, progress)?;
    // Traces have no call stacks.
    let findings = checked.diagnostics.iter().map(|it| Finding::of(it, &|_| Stack::default())).collect();
    let notices = checked.notices(&file.path);
    let calls = Some(checked.calls);
    Ok(FileFindings { findings, needless: Vec::new(), notices, kind: InputKind::Trace, calls })
}

/// Most traces have no hazards: whether there are any is found out faster than what they are.
fn check_quickly(
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
    let mut trace = file.open()?;
    trace.skip_results();
    validator.check_submissions();
    validator.check_host_writes();
    validator.expect_all_host_writes();
    let mut calls = 0;
    let outcome = each_record(file, &trace, progress, |trace_record| {
        calls += u64::from(trace_record.record.as_ref().is_ok_and(|it| it.phase() == RecordPhase::Enter));
        match trace_record.record {
            Ok(record) => validator.process_record(trace_record.stream, record),
            Err(_) => {
                let written = HostWrite::parse(trace_record.words);
                written.into_iter().for_each(|it| validator.host_wrote(trace_record.stream, it));
            }
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
        diagnostics: with_frames(validator.diagnostics(), &PartNumbers::of_frames(&trace)),
        not_followed: missing,
        damage,
        calls,
        cut_explanations: validator.cut_explanations().lines(),
    };
    Ok((checked, validator))
}

/// Diagnostics with the frames of the trace that was captured, if this is a part of it.
fn with_frames(diagnostics: &[Diagnostic], frames: &PartNumbers) -> Vec<Diagnostic> {
    let mut all = diagnostics.to_vec();
    for range in all.iter_mut().filter_map(|it| it.frames.as_mut()) {
        (range.first, range.last) = (frames.original(range.first), frames.original(range.last));
    }
    all
}

impl TraceCheckResult {
    fn notices(&self, path: &Path) -> Vec<ReportNotice> {
        let path = path.display();
        let mut notices = Vec::new();
        let mut warn = |text: String| notices.push(ReportNotice::new(FindingSeverity::Warning, text));
        for (what, count) in &self.not_followed {
            warn(format!("{path}: not checked, {count} times: {what}"));
        }
        for text in &self.damage {
            warn(format!("{path}: damaged: {text}"));
        }
        for text in &self.cut_explanations {
            warn(format!("{path}: {text}"));
        }
        notices
    }
}
