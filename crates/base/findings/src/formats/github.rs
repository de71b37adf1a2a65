//! Workflow commands of GitHub Actions, which become annotations at the lines of a change.

use crate::words::{short_names, visible};
use crate::{Finding, FindingSeverity, FindingsReport, ReportNotice};

use super::prose;
use super::text::visible_lines;

pub(super) fn render_annotations(report: &FindingsReport) -> String {
    let findings = report.new_findings().into_iter().map(|it| annotation(report, it));
    let coverage = report.coverage_text().map(|it| notice(&ReportNotice::new(FindingSeverity::Info, it)));
    findings.chain(report.notices.iter().map(notice)).chain(coverage).collect()
}

fn command(severity: FindingSeverity) -> &'static str {
    match severity {
        FindingSeverity::Error => "error",
        FindingSeverity::Warning | FindingSeverity::Performance => "warning",
        FindingSeverity::Info => "notice",
    }
}

fn notice(notice: &ReportNotice) -> String {
    format!("::{} title=Lavascope::{}\n", command(notice.severity), data(&visible_lines(&notice.text).join("\n")))
}

fn annotation(report: &FindingsReport, finding: &Finding) -> String {
    let command = command(finding.severity);
    let mut properties = Vec::new();
    if let Some(source) = finding.location() {
        properties.push(format!("file={}", property(&visible(&source.file))));
        properties.push(format!("line={}", source.line));
        if let Some(column) = source.column.filter(|it| *it > 0) {
            properties.push(format!("col={column}"));
        }
    }
    let title = format!("{}: {}", report.short_code(finding), short_names(finding.headline()));
    properties.push(format!("title={}", property(&visible(&title))));
    let mut lines = prose(finding);
    lines.push(format!("`lavascope explain {}` has more.", visible(report.short_code(finding))));
    format!("::{command} {}::{}\n", properties.join(","), data(&lines.join("\n")))
}

/// As the runner reads the text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// As the runner reads a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_ends_a_command() {
        assert_eq!(property("a:b,c%\n"), "a%3Ab%2Cc%25%0A");
        assert_eq!(data("50%\r\n::error::x"), "50%25%0D%0A::error::x");
    }
}
