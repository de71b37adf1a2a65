//! Each format of a report that has every part of a finding, as `golden/*` has it.
//!
//! With `LAVASCOPE_BLESS=1` the files are written anew instead of compared.

mod examples;

use std::fs;
use std::path::Path;

use lavascope_findings::{Coloring, Detail, FindingsReport, ReportFormat, TextOptions, render};

/// Compares a text with its file.
fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("LAVASCOPE_BLESS").is_some() {
        return fs::write(&path, text).expect("a writable file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} is another one; if that is better, `cargo xtask bless`\n{text}");
}

#[test]
fn each_format_is_as_its_file() {
    let report = examples::report();
    for format in ReportFormat::ALL {
        compare(&format!("report.{}", format.name()), &render(&report, format, &TextOptions::FILE));
    }
}

#[test]
fn text_is_laid_out_for_its_terminal() {
    let report = examples::report();
    compare("wide.text", &render(&report, ReportFormat::Text, &TextOptions { width: 140, ..TextOptions::FILE }));
    compare("narrow.text", &render(&report, ReportFormat::Text, &TextOptions { width: 50, ..TextOptions::FILE }));
    let colored = TextOptions { coloring: Coloring::On, ..TextOptions::FILE };
    compare("colored.text", &render(&report, ReportFormat::Text, &colored));
    let verbose = TextOptions { detail: Detail::Verbose, ..TextOptions::FILE };
    compare("verbose.text", &render(&report, ReportFormat::Text, &verbose));
}

#[test]
fn a_finding_takes_fifteen_lines_and_five_take_two_screens() {
    let report = examples::report();
    let text = render(&report, ReportFormat::Text, &TextOptions::FILE);
    let findings: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(findings.len(), 6, "five findings and the total: {text}");
    for finding in &findings {
        assert!(finding.lines().count() <= 15, "{finding}");
        assert!(finding.lines().all(|it| it.chars().count() <= 80), "{finding}");
    }
    assert!(text.lines().count() <= 80, "{text}");
}

#[test]
fn json_is_read_again() {
    let report = examples::report();
    let json = render(&report, ReportFormat::Json, &TextOptions::FILE);
    let again = FindingsReport::parse(&json).expect("our own JSON");
    assert_eq!(again, FindingsReport { codes: Vec::new(), ..report });
}
