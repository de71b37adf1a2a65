//! The plain text of a diagnostic.

use crate::{Diagnostic, Severity};

/// Lines of text: the message, how it came about, the smallest change that helps, and the properties that tools look
/// for.
pub fn render_text(diagnostic: &Diagnostic) -> String {
    let mut text = String::new();
    let mut line = |args: std::fmt::Arguments<'_>| {
        text += &args.to_string();
        text.push('\n');
    };
    line(format_args!(
        "{}: [ {} | MessageID = {:#010x} ]",
        severity(diagnostic.severity),
        diagnostic.code,
        diagnostic.code.message_id()
    ));
    line(format_args!("{}", diagnostic.message));
    if diagnostic.count > 1 {
        line(format_args!("Found {} times; this is the first.", diagnostic.count));
    }
    for place in &diagnostic.locations {
        line(format_args!("  {}: {}", place.role, place.text));
    }
    diagnostic.explanation.iter().for_each(|it| line(format_args!("  {it}")));
    if let Some((fix, others)) = diagnostic.fixes.split_first() {
        let verified = if fix.is_verified { "verified" } else { "not verified" };
        line(format_args!("Fix ({verified}): {}", fix.text));
        match others.len() {
            0 => {}
            1 => line(format_args!("1 other fix is known, larger than this one.")),
            count => line(format_args!("{count} other fixes are known, larger than this one.")),
        }
    }
    if let Some(why) = &diagnostic.no_fix {
        line(format_args!("No fix: {why}"));
    }
    if !diagnostic.properties.is_empty() {
        line(format_args!("[Extra properties]"));
        diagnostic.properties.iter().for_each(|it| line(format_args!("{} = {}", it.key, it.value)));
    }
    text
}

/// The names of stages or accesses in a mask, without the prefix and the suffix that all of them have:
/// `COPY|VERTEX_SHADER`.
pub fn short_names(names: &str) -> String {
    let short = |name: &str| {
        let prefixes = ["VK_PIPELINE_STAGE_2_", "VK_PIPELINE_STAGE_", "VK_ACCESS_2_", "VK_ACCESS_"];
        let name = prefixes.iter().find_map(|it| name.strip_prefix(it)).unwrap_or(name);
        name.strip_suffix("_BIT").unwrap_or(name).replace("_BIT_", "_")
    };
    names.split('|').map(short).collect::<Vec<_>>().join("|")
}

/// `1st`, `2nd`, `11th`, from zero.
pub fn ordinal_word(index: u64) -> String {
    let number = index + 1;
    let ending = match (number % 10, number % 100) {
        (1, last) if last != 11 => "st",
        (2, last) if last != 12 => "nd",
        (3, last) if last != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

fn severity(item: Severity) -> &'static str {
    match item {
        Severity::Information => "Information",
        Severity::Performance => "Performance",
        Severity::Warning => "Warning",
        Severity::Error => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DiagnosticLocation, Fix, Property};

    #[test]
    fn names_and_numbers_are_short() {
        assert_eq!(short_names("VK_PIPELINE_STAGE_2_COPY_BIT|VK_ACCESS_2_NONE"), "COPY|NONE");
        assert_eq!(short_names("VK_PIPELINE_STAGE_2_RAY_TRACING_SHADER_BIT_KHR"), "RAY_TRACING_SHADER_KHR");
        let words: Vec<String> = [0, 1, 2, 3, 10, 11, 12, 20, 110].into_iter().map(ordinal_word).collect();
        assert_eq!(words, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "111th"]);
    }

    #[test]
    fn everything_is_in_the_text_in_order() {
        let diagnostic = Diagnostic {
            locations: vec![DiagnosticLocation::new("access", "here".to_owned(), String::new())],
            properties: vec![Property { key: "hazard_type", value: "WRITE_AFTER_READ".to_owned() }],
            explanation: vec!["because".to_owned()],
            fixes: vec![Fix { is_verified: true, ..Fix::advice("do this") }],
            count: 3,
            ..Diagnostic::new("SYNC-HAZARD-WRITE-AFTER-READ", Severity::Error, "something is wrong.".to_owned())
        };
        let expected = "Error: [ SYNC-HAZARD-WRITE-AFTER-READ | MessageID = 0x376bc9df ]\nsomething is wrong.\n\
                        Found 3 times; this is the first.\n  access: here\n  because\nFix (verified): do this\n\
                        [Extra properties]\nhazard_type = WRITE_AFTER_READ\n";
        assert_eq!(render_text(&diagnostic), expected);
        let fix = |text: &str| Fix::advice(text);
        let several = Diagnostic { fixes: vec![fix("one"), fix("two"), fix("three")], ..diagnostic.clone() };
        assert!(render_text(&several).contains("Fix (not verified): one\n2 other fixes are known"));
        let without =
            Diagnostic { fixes: Vec::new(), no_fix: Some("nothing helps".to_owned()), count: 1, ..diagnostic };
        let text = render_text(&without);
        assert!(text.contains("No fix: nothing helps\n") && !text.contains("Found"));
    }
}
