//! What `run` says at its end about what was checked.

use lavascope_findings::{Coverage, FindingsReport, wrapped_line};

use crate::report::Process;
use crate::text::terminal::Terminal;

/// What the processes of a report did together.
pub(crate) fn of_processes(processes: &[Process]) -> Option<Coverage> {
    let mut all: Option<Coverage> = None;
    for coverage in processes.iter().filter_map(|it| it.coverage.as_ref()) {
        all.get_or_insert_default().add(coverage);
    }
    all
}

/// The last line of a run, if something ran: what was checked, how much, and what was not.
pub(crate) fn summary_line(report: &FindingsReport) -> Option<String> {
    let line = format!("lavascope: {}", report.coverage_text()?);
    Some(wrapped_line(&line, Terminal::stderr().width))
}

/// The same for commands that check only if they are asked to: none if nothing was checked.
pub(crate) fn checked_line(report: &FindingsReport) -> Option<String> {
    let has_checks = report.coverage.as_ref().is_some_and(Coverage::has_checks);
    summary_line(report).filter(|_| has_checks)
}

/// Why the coverage is smaller than wanted, in one line; none if it is large enough.
pub(crate) fn shortfall_line(report: &FindingsReport, wanted: f64) -> Option<String> {
    let coverage = report.coverage.clone().unwrap_or_default();
    let shortfall = coverage.shortfall(wanted)?;
    // Never rounded up to what is wanted.
    let percent = (shortfall.percent * 100.0).floor() / 100.0;
    let line = format!("lavascope: coverage {percent} % is below --min-coverage {wanted}: {}", shortfall.why);
    Some(wrapped_line(&line, Terminal::stderr().width))
}

/// The requested check that no device could make, in one line.
pub(crate) fn impossible_line(report: &FindingsReport) -> Option<String> {
    let (name, why) = report.coverage.as_ref()?.impossible_check()?;
    let line = format!("lavascope: no device of this run can make the checks of --{name}: {why}");
    Some(wrapped_line(&line, Terminal::stderr().width))
}
