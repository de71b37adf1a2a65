//! The renderings of a report, one file each.

mod github;
mod html;
mod junit;
mod markdown;
mod sarif;
mod short;
mod snippet;
pub(crate) mod text;

use crate::words::{short_names, visible};
use crate::{Finding, FindingsReport, Stack};

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReportFormat {
    /// For people in a terminal.
    Text,
    /// One line for each finding.
    Short,
    Json,
    /// SARIF 2.1.0, for code scanning services and editors.
    Sarif,
    /// JUnit XML, for test reports.
    Junit,
    /// Annotations of GitHub Actions.
    Github,
    Markdown,
    /// One page that needs no other file.
    Html,
}

impl ReportFormat {
    pub const ALL: [ReportFormat; 8] = [
        ReportFormat::Text,
        ReportFormat::Short,
        ReportFormat::Json,
        ReportFormat::Sarif,
        ReportFormat::Junit,
        ReportFormat::Github,
        ReportFormat::Markdown,
        ReportFormat::Html,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ReportFormat::Text => "text",
            ReportFormat::Short => "short",
            ReportFormat::Json => "json",
            ReportFormat::Sarif => "sarif",
            ReportFormat::Junit => "junit",
            ReportFormat::Github => "github",
            ReportFormat::Markdown => "markdown",
            ReportFormat::Html => "html",
        }
    }

    pub fn find(name: &str) -> Option<ReportFormat> {
        ReportFormat::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// In columns.
    pub width: usize,
    pub coloring: Coloring,
    pub detail: Detail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coloring {
    Off,
    On,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What is needed to fix it.
    Brief,
    /// Everything that is known, with full names.
    Verbose,
}

impl TextOptions {
    /// For files.
    pub const FILE: TextOptions = TextOptions { width: 80, coloring: Coloring::Off, detail: Detail::Brief };
}

/// The whole report. Only text and short lines depend on the options.
pub fn render(report: &FindingsReport, format: ReportFormat, options: &TextOptions) -> String {
    match format {
        ReportFormat::Text => text::render_text_report(report, options),
        ReportFormat::Short => short::render_short(report),
        ReportFormat::Json => serde_json::to_string_pretty(report).expect("it has only text and numbers") + "\n",
        ReportFormat::Sarif => sarif::render_sarif(report),
        ReportFormat::Junit => junit::render_junit(report),
        ReportFormat::Github => github::render_annotations(report),
        ReportFormat::Markdown => markdown::render_markdown(report),
        ReportFormat::Html => html::render_html(report),
    }
}

/// A finding in sentences, for places where columns do not line up.
fn prose(finding: &Finding) -> Vec<String> {
    let show = |text: &str| short_names(&visible(text));
    let place = |stack: &Stack, place: &str| match stack.source() {
        Some(source) => format!(" at {}:{}", source.file, source.line),
        None if place.is_empty() => String::new(),
        None => format!(" ({place})"),
    };
    let mut lines = Vec::new();
    for access in finding.shown_accesses().iter().rev() {
        let action = if access.action.is_empty() { &access.role } else { &access.action };
        let used: Vec<&str> =
            [&access.stage, &access.access].map(String::as_str).into_iter().filter(|it| !it.is_empty()).collect();
        let used = if used.is_empty() { String::new() } else { format!(", {}", used.join(" / ")) };
        lines.push(format!("{} {action}{used}{}", access.function, place(&access.stack, &access.place)));
    }
    for operation in &finding.operations {
        let gap = if operation.gap.is_empty() { String::new() } else { format!(": {}", operation.gap) };
        let where_it_is = place(&operation.stack, &operation.place);
        lines.push(format!("{} {}{gap}{where_it_is}", operation.function, operation.scope));
    }
    if let Some(fix) = finding.fixes.first() {
        let verified = if fix.is_verified { "verified" } else { "not verified" };
        lines.push(format!("Fix ({verified}): {}", fix.text));
    }
    lines.extend(finding.no_fix.iter().map(|it| format!("No fix: {it}")));
    lines.extend(finding.notes.iter().cloned());
    lines.iter().map(|it| show(it).trim().to_owned()).collect()
}

/// The text of one finding without colors, for formats that quote it.
fn quoted_text(report: &FindingsReport, finding: &Finding) -> String {
    text::render_finding(report, finding, &TextOptions::FILE)
}
