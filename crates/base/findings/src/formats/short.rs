//! One line for each finding, `FILE:LINE:COLUMN: SEVERITY: MESSAGE [CODE]`, for editors and `grep`.

use crate::words::{short_names, visible};
use crate::{Finding, FindingSeverity, FindingsReport};

pub(super) fn render_short(report: &FindingsReport) -> String {
    let mut out: String = report.new_findings().iter().map(|it| line(it)).collect();
    for notice in report.notices.iter().filter(|it| it.severity != FindingSeverity::Info) {
        let text = notice.line();
        out += &format!("lavascope: {}\n", visible(text.lines().next().unwrap_or_default()));
    }
    out
}

fn line(finding: &Finding) -> String {
    let place = match finding.location() {
        Some(source) => {
            let column = source.column.map_or(1, |it| it.max(1));
            format!("{}:{}:{column}", source.file, source.line)
        }
        // Editors pass over lines without a file; people see the command.
        None => match finding.accesses.first() {
            Some(access) if !access.place.starts_with(&access.function) => {
                format!("{}, {}", access.function, access.place)
            }
            Some(access) => access.place.clone(),
            None => finding.function.clone(),
        },
    };
    let place = if place.is_empty() { String::new() } else { format!("{}: ", visible(&place)) };
    let title = short_names(&visible(finding.headline()));
    format!("{place}{}: {title} [{}]\n", severity(finding.severity), visible(&finding.code))
}

/// The words that editors know.
fn severity(severity: FindingSeverity) -> &'static str {
    match severity {
        FindingSeverity::Error => "error",
        FindingSeverity::Warning | FindingSeverity::Performance => "warning",
        FindingSeverity::Info => "info",
    }
}
