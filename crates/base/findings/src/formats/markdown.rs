//! Markdown, as issues, merge requests and summaries of workflows show it.

use crate::words::{short_names, visible};
use crate::{Finding, FindingsReport};

use super::quoted_text;
use super::text::visible_lines;

pub(super) fn render_markdown(report: &FindingsReport) -> String {
    let mut out = format!("# Lavascope: {}\n", escaped(&report.totals()));
    if let Some(text) = report.coverage_text() {
        out += &format!("\n{}\n", escaped(&text));
    }
    let all = report.new_findings();
    if !all.is_empty() {
        out += "\n| | place | problem | how often |\n| --- | --- | --- | --- |\n";
        all.iter().for_each(|it| out += &row(report, it));
    }
    for finding in all {
        let title = escaped(&show(finding.headline()));
        let kind = format!("{}\\[{}\\]", finding.severity.word(), escaped(report.short_code(finding)));
        let text = quoted_text(report, finding);
        // The headline stands above.
        let fence = fence(&text);
        out += &format!("\n## {kind}: {title}\n\n{fence}text\n{text}{fence}\n");
    }
    if !report.notices.is_empty() {
        out += "\n## Notices\n\n";
        for notice in &report.notices {
            let lines: Vec<String> = visible_lines(&notice.line()).iter().map(|it| escaped(it)).collect();
            out += &format!("- {}\n", lines.join("\n  "));
        }
    }
    out
}

fn row(report: &FindingsReport, finding: &Finding) -> String {
    let place = match finding.location() {
        Some(source) => format!("{}:{}", source.file, source.line),
        None => finding.accesses.first().map_or(String::new(), |it| it.function.clone()),
    };
    let often = finding.frames.map_or(finding.occurrences, |it| it.count);
    let word = if finding.frames.is_some() { "frame" } else { "time" };
    let often = crate::words::count(often, word);
    let title = escaped(&show(finding.headline()));
    format!("| {} | {} | {title} | {often} |\n", escaped(report.short_code(finding)), escaped(&show(&place)))
}

fn show(text: &str) -> String {
    short_names(&visible(text))
}

/// Text in which nothing is markup, of Markdown or of HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in visible(text).chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // Nobody is called by a name in a report.
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}

/// A line of backticks that is longer than any in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escaped("a|b <img> @me *x* [y](z)"), "a\\|b &lt;img&gt; &#64;me \\*x\\* \\[y\\](z)");
        assert_eq!((fence("a ``` b"), fence("a")), ("````".to_owned(), "```".to_owned()));
    }
}
