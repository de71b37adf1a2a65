//! What `run` says at its end about what was checked.

use lavascope_findings::{Coverage, FindingsReport};

use crate::report::{LayerReport, Process};

/// What the processes of a report did together.
pub(crate) fn of_processes(processes: &[Process]) -> Option<Coverage> {
    let mut all: Option<Coverage> = None;
    for coverage in processes.iter().filter_map(|it| it.coverage.as_ref()) {
        all.get_or_insert_default().add(coverage);
    }
    all
}

/// The last line of a run, if something ran: what was checked, how much, and what was not.
pub(crate) fn summary_line(document: &FindingsReport, has_problems: bool) -> Option<String> {
    let coverage = document.coverage.as_ref()?;
    let has_suppressed = document.ignored > 0 || document.findings.iter().any(|it| it.is_known);
    let verdict = match has_problems || !coverage.has_checks() {
        true => "",
        false if has_suppressed => ": no other problems found",
        false => ": no problems found",
    };
    let unchecked = Some(coverage.unchecked_text()).filter(|it| !it.is_empty());
    let unchecked = unchecked.map_or_else(String::new, |it| format!(". Not checked: {it}"));
    Some(format!("lavascope: {}{verdict}{unchecked}\n", coverage.counts_text()))
}

/// The same for commands that check only if they are asked to: none if nothing was checked.
pub(crate) fn checked_line(report: &LayerReport, document: &FindingsReport) -> Option<String> {
    let has_checks = document.coverage.as_ref().is_some_and(Coverage::has_checks);
    summary_line(document, has_problems(report, document)).filter(|_| has_checks)
}

/// Whether a user has something to look at.
pub(crate) fn has_problems(report: &LayerReport, document: &FindingsReport) -> bool {
    document.findings.iter().any(|it| !it.is_known)
        || report.processes.iter().any(|it| !it.lost_devices.is_empty() || !it.bugs.is_empty())
}

/// Why the coverage is smaller than wanted, in one line; none if it is large enough.
pub(crate) fn shortfall_line(document: &FindingsReport, wanted: f64) -> Option<String> {
    let coverage = document.coverage.clone().unwrap_or_default();
    let shortfall = coverage.shortfall(wanted)?;
    // Never rounded up to what is wanted.
    let percent = (shortfall.percent * 100.0).floor() / 100.0;
    Some(format!("lavascope: coverage {percent} % is below --min-coverage {wanted}: {}\n", shortfall.why))
}
