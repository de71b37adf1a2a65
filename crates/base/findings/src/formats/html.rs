//! One page that needs no other file and no script. Everything that comes from elsewhere is escaped.

use crate::words::{short_names, visible};
use crate::{Finding, FindingFix, FindingsReport, ReportNotice, Stack};

use super::junit::xml;
use super::quoted_text;
use super::text::{added, assignment, change_head, object_line, stack_lines, visible_lines};

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --error: #c62828; --warning: #b26a00; --note: #2e7d32; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 0; overflow-wrap: anywhere; }
article { border: 1px solid var(--line); border-radius: 6px; margin: 1.2rem 0; padding: 1rem; }
article.known { opacity: .6; }
.kind { border-radius: 4px; color: #fff; font-size: .85rem; padding: .1rem .4rem; white-space: nowrap; }
.error { background: var(--error); } .warning, .performance { background: var(--warning); } .info { background: var(--note); }
pre { background: var(--soft); font: 13px/1.45 ui-monospace, monospace; overflow-x: auto; padding: .8rem; }
ins { color: var(--note); text-decoration: none; } del { color: var(--error); text-decoration: none; }
summary { cursor: pointer; } dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0; overflow-wrap: anywhere; }
nav li { overflow-wrap: anywhere; } .place { color: #888; }
";

pub(super) fn render_html(report: &FindingsReport) -> String {
    let all = report.all_findings();
    let command = xml(&report.command.join(" "));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Lavascope: {totals}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>Lavascope: {totals}</h1>\n",
        totals = xml(&report.totals())
    );
    if !command.is_empty() {
        out += &format!("<p>Command: <code>{command}</code></p>\n");
    }
    if let Some(text) = report.coverage_text() {
        out += &format!("<p>Coverage: {}</p>\n", xml(&text));
    }
    if all.len() > 1 {
        out += "<nav>\n<ol>\n";
        for (at, finding) in all.iter().enumerate() {
            let (kind, title) = (kind(report, finding), show(finding.headline()));
            out += &format!("<li>{kind} <a href=\"#f{at}\">{title}</a> {}</li>\n", place(finding));
        }
        out += "</ol>\n</nav>\n";
    }
    for (at, finding) in all.iter().enumerate() {
        out += &article(report, finding, at);
    }
    if !report.notices.is_empty() {
        out += "<section>\n<h2>Notices</h2>\n<ul>\n";
        report.notices.iter().for_each(|it| out += &format!("<li>{}</li>\n", notice(it)));
        out += "</ul>\n</section>\n";
    }
    out + &format!("<footer>Made by Lavascope {}.</footer>\n</body>\n</html>\n", xml(&report.lavascope))
}

fn notice(notice: &ReportNotice) -> String {
    visible_lines(&notice.line()).iter().map(|it| xml(it)).collect::<Vec<_>>().join("<br>\n")
}

fn show(text: &str) -> String {
    xml(&short_names(&visible(text)))
}

fn kind(report: &FindingsReport, finding: &Finding) -> String {
    let word = finding.severity.word();
    format!("<span class=\"kind {word}\">{word} {}</span>", xml(report.short_code(finding)))
}

fn place(finding: &Finding) -> String {
    let source = finding.location().map(|it| format!("{}:{}", it.file, it.line));
    source.map_or(String::new(), |it| format!("<span class=\"place\">{}</span>", xml(&it)))
}

fn article(report: &FindingsReport, finding: &Finding, at: usize) -> String {
    let class = if finding.is_known { " class=\"known\"" } else { "" };
    let (kind, title) = (kind(report, finding), show(finding.headline()));
    let mut out = format!("<article id=\"f{at}\"{class}>\n<h2>{kind} {title}</h2>\n");
    if finding.is_known {
        out += "<p>This finding is in the baseline.</p>\n";
    }
    out += &format!("<pre>{}</pre>\n", xml(&quoted_text(report, finding)));
    out += "<details>\n<summary>Details</summary>\n<dl>\n";
    let mut entry = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out += &format!("<dt>{}</dt>\n<dd>{}</dd>\n", xml(title), lines.join("<br>\n"));
        }
    };
    let escaped = |lines: &[String]| -> Vec<String> { lines.iter().map(|it| xml(it)).collect() };
    entry("Code", escaped(std::slice::from_ref(&finding.code)));
    if let Some(description) = report.description(&finding.code) {
        entry("What it means", escaped(std::slice::from_ref(&description.summary)));
    }
    entry("Message", finding.message.lines().map(xml).collect());
    entry("How it came about", escaped(&finding.explanation));
    for fix in &finding.fixes {
        entry(if fix.is_verified { "Fix (verified)" } else { "Fix (not verified)" }, fix_lines(finding, fix));
    }
    entry("No fix", finding.no_fix.iter().map(|it| xml(it)).collect());
    for access in &finding.accesses {
        entry(&format!("Call stack of the {}", access.role), frames(&access.stack));
    }
    for operation in &finding.operations {
        entry(&format!("Call stack of the {}", operation.kind), frames(&operation.stack));
    }
    entry("Objects", finding.objects.iter().map(|it| xml(&object_line(it))).collect());
    entry("Properties", finding.properties.iter().map(|it| xml(&format!("{} = {}", it.key, it.value))).collect());
    entry("Fingerprint", escaped(std::slice::from_ref(&finding.fingerprint)));
    out + "</dl>\n</details>\n</article>\n"
}

fn frames(stack: &Stack) -> Vec<String> {
    stack_lines(stack).iter().map(|it| xml(it)).collect()
}

fn fix_lines(finding: &Finding, fix: &FindingFix) -> Vec<String> {
    let mut lines = vec![xml(&fix.text)];
    for change in &fix.changes {
        lines.push(xml(&change_head(change, finding)));
        for edit in &change.edits {
            let before = edit.before.as_ref().map(|it| xml(&assignment(&edit.field, it)));
            lines.extend(before.map(|it| format!("<del>- {it}</del>")));
            lines.push(format!("<ins>+ {}</ins>", xml(&added(edit))));
        }
    }
    lines
}
