//! JUnit XML: each finding is a test case that failed, so that services show it where they show tests.

use std::fmt::Write;

use crate::words::{short_names, visible};
use crate::{Finding, FindingSeverity, FindingsReport, ReportNotice};

use super::quoted_text;

pub(super) fn render_junit(report: &FindingsReport) -> String {
    let all = report.all_findings();
    let failures = all.iter().filter(|it| is_failure(it)).count();
    let skipped = all.iter().filter(|it| it.is_known).count();
    let errors: Vec<&ReportNotice> = report.notices.iter().filter(|it| it.severity == FindingSeverity::Error).collect();
    // A suite without test cases counts as one that did not run.
    let tests = (all.len() + errors.len()).max(1);
    let totals = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{}\"", errors.len());
    let counts = format!("{totals} skipped=\"{skipped}\"");
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let _ = writeln!(out, "<testsuites name=\"lavascope\" {totals}>");
    let _ = writeln!(out, "  <testsuite name=\"lavascope\" {counts}>");
    if all.is_empty() && errors.is_empty() {
        out += "    <testcase classname=\"lavascope\" name=\"no problems found\"/>\n";
    }
    all.into_iter().for_each(|it| out += &test_case(report, it));
    for notice in errors {
        let (first, text) = (xml(notice.text.lines().next().unwrap_or_default()), xml(&notice.text));
        let inside = format!("<error message=\"{first}\" type=\"lavascope\">{text}</error>");
        out += &format!("    <testcase classname=\"lavascope\" name=\"{first}\">\n      {inside}\n    </testcase>\n");
    }
    let others = report.notices.iter().filter(|it| it.severity != FindingSeverity::Error).map(|it| xml(&it.line()));
    let others: Vec<String> = report.coverage_text().iter().map(|it| xml(it)).chain(others).collect();
    if !others.is_empty() {
        out += &format!("    <system-out>{}</system-out>\n", others.join("\n"));
    }
    out + "  </testsuite>\n</testsuites>\n"
}

fn is_failure(finding: &Finding) -> bool {
    !finding.is_known && matches!(finding.severity, FindingSeverity::Error | FindingSeverity::Warning)
}

fn test_case(report: &FindingsReport, finding: &Finding) -> String {
    let title = xml(&short_names(&visible(finding.headline())));
    let code = xml(&finding.code);
    let place =
        finding.location().map_or(String::new(), |it| format!(" file=\"{}\" line=\"{}\"", xml(&it.file), it.line));
    let text = xml(quoted_text(report, finding).trim_end());
    let inside = if finding.is_known {
        "<skipped message=\"in the baseline\"/>".to_owned()
    } else if is_failure(finding) {
        format!("<failure message=\"{title}\" type=\"{code}\">{text}</failure>")
    } else {
        format!("<system-out>{text}</system-out>")
    };
    format!("    <testcase classname=\"{code}\" name=\"{title}\"{place}>\n      {inside}\n    </testcase>\n")
}

/// Text in XML, which allows no control characters, not even escaped.
pub(super) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |it| (it, "\n"));
        for letter in visible(line).chars() {
            match letter {
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '&' => out.push_str("&amp;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                // No characters, though Rust has them.
                '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
                _ => out.push(letter),
            }
        }
        out.push_str(end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(xml("<a b='\"&\x1b\u{ffff}'>\n"), "&lt;a b=&#39;&quot;&amp;\\u{1b}\u{fffd}&#39;&gt;\n");
    }

    #[test]
    fn a_report_without_findings_is_a_test_that_passed() {
        let text = render_junit(&FindingsReport::default());
        assert!(text.contains("tests=\"1\" failures=\"0\"") && text.contains("name=\"no problems found\"/>"), "{text}");
    }
}
