//! SARIF 2.1.0: results with rules, fingerprints, the way from the first access to the second, and fixes.

use serde_json::{Map, Value, json};

use crate::words::{short_names, visible};
use crate::{
    Finding, FindingAccess, FindingFix, FindingSeverity, FindingsReport, FixChange, ReportNotice, SourceLocation, Stack,
};

use super::text::stack_lines;
use super::{prose, quoted_text};

/// Services tell by its last part that fingerprints of another version are other ones.
const FINGERPRINT: &str = "lavascopeIdentity/v1";
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub(super) fn render_sarif(report: &FindingsReport) -> String {
    let all = report.all_findings();
    let mut codes: Vec<&str> = all.iter().map(|it| it.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<Value> = codes.iter().map(|it| rule(report, it)).collect();
    let results: Vec<Value> = all.iter().map(|it| result(report, it, &codes)).collect();
    let driver = json!({
        "name": "Lavascope",
        "semanticVersion": if report.lavascope.is_empty() { "0.0.0" } else { &report.lavascope },
        "rules": rules,
    });
    let run = json!({
        "tool": { "driver": driver },
        "invocations": [invocation(report)],
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": { "command": report.command, "coverage": report.coverage },
    });
    let log = json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] });
    serde_json::to_string_pretty(&without_controls(log)).expect("it has only text and numbers") + "\n"
}

/// How the run went: what was not checked, and what failed.
fn invocation(report: &FindingsReport) -> Value {
    let notification = |it: &ReportNotice| json!({ "level": level(it.severity), "message": { "text": it.text } });
    let has_failed = report.notices.iter().any(|it| it.severity == FindingSeverity::Error);
    let coverage = report.coverage_text().map(|it| ReportNotice::new(FindingSeverity::Info, it));
    let notifications: Vec<Value> = report.notices.iter().chain(&coverage).map(notification).collect();
    json!({ "executionSuccessful": !has_failed, "toolExecutionNotifications": notifications })
}

/// The same, with nothing in a text that a terminal obeys.
fn without_controls(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.split('\n').map(visible).collect::<Vec<_>>().join("\n")),
        Value::Array(all) => all.into_iter().map(without_controls).collect(),
        Value::Object(all) => all.into_iter().map(|(key, value)| (key, without_controls(value))).collect(),
        other => other,
    }
}

fn rule(report: &FindingsReport, code: &str) -> Value {
    let mut rule = Map::new();
    rule.insert("id".to_owned(), json!(code));
    if let Some(description) = report.description(code) {
        rule.insert("name".to_owned(), json!(pascal_case(code)));
        rule.insert("shortDescription".to_owned(), json!({ "text": description.summary }));
        let text = format!("{}\n\n`lavascope explain {}` has this page.", description.summary, description.short);
        rule.insert("help".to_owned(), json!({ "text": text, "markdown": description.page }));
    }
    let kind = if code.starts_with("SYNC-") { "synchronization" } else { "shader" };
    rule.insert("properties".to_owned(), json!({ "tags": ["vulkan", kind] }));
    Value::Object(rule)
}

fn pascal_case(code: &str) -> String {
    let words = code.split(|it: char| !it.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
    let word = |part: &str| {
        let (first, rest) = part.split_at(1);
        let is_shouted = rest.chars().all(|it| !it.is_ascii_lowercase());
        first.to_ascii_uppercase() + &if is_shouted { rest.to_ascii_lowercase() } else { rest.to_owned() }
    };
    words.map(word).collect()
}

fn result(report: &FindingsReport, finding: &Finding, codes: &[&str]) -> Value {
    let mut result = Map::new();
    let mut set = |key: &str, value: Value| drop(result.insert(key.to_owned(), value));
    set("ruleId", json!(finding.code));
    set("ruleIndex", json!(codes.iter().position(|it| *it == finding.code)));
    set("level", json!(level(finding.severity)));
    set("message", message(report, finding));
    set("locations", json!([result_location(report, finding)]));
    if !finding.fingerprint.is_empty() {
        set("partialFingerprints", json!({ FINGERPRINT: finding.fingerprint }));
    }
    set("occurrenceCount", json!(finding.occurrences.max(1)));
    let steps = steps(finding);
    if !steps.is_empty() {
        set("codeFlows", json!([{ "threadFlows": [{ "locations": steps }] }]));
    }
    let stacks: Vec<Value> = finding.accesses.iter().filter_map(|it| stack(&it.role, &it.stack)).collect();
    if !stacks.is_empty() {
        set("stacks", json!(stacks));
    }
    let fixes: Vec<Value> = finding.fixes.iter().filter_map(fix).collect();
    if !fixes.is_empty() {
        set("fixes", json!(fixes));
    }
    if finding.is_known {
        set("baselineState", json!("unchanged"));
        set("suppressions", json!([{ "kind": "external", "justification": "in the baseline" }]));
    }
    let frames = finding.frames.map(|it| json!({ "first": it.first, "last": it.last, "count": it.count }));
    set("properties", json!({ "frames": frames, "identity": finding.identity }));
    Value::Object(result)
}

fn level(severity: FindingSeverity) -> &'static str {
    match severity {
        FindingSeverity::Error => "error",
        FindingSeverity::Warning => "warning",
        FindingSeverity::Performance | FindingSeverity::Info => "note",
    }
}

/// The headline, and what is to be done; in Markdown all of it.
fn message(report: &FindingsReport, finding: &Finding) -> Value {
    let text = [vec![show(finding.headline())], prose(finding)].concat().join("\n");
    let quoted = quoted_text(report, finding);
    let fence = "`".repeat(quoted.split(|it| it != '`').map(str::len).max().unwrap_or(0).max(2) + 1);
    json!({ "text": text, "markdown": format!("{fence}text\n{quoted}{fence}") })
}

/// Where a viewer takes the reader; for findings without source the command.
fn result_location(report: &FindingsReport, finding: &Finding) -> Value {
    let access = finding.accesses.first();
    let place = access.map_or_else(String::new, |it| format!("{}, {}", it.function, it.place));
    let mut made = location(finding.location(), &place, None);
    if finding.location().is_none()
        && let Some(file) = finding.file.as_ref().or(report.command.first())
    {
        // Services refuse results that are in no file: the trace, or the program.
        made["physicalLocation"] = json!({ "artifactLocation": { "uri": uri(file) } });
    }
    made
}

fn location(source: Option<&SourceLocation>, place: &str, message: Option<&str>) -> Value {
    let mut made = Map::new();
    if let Some(source) = source {
        made.insert("physicalLocation".to_owned(), physical_location(source));
    }
    let function = source.and_then(|it| it.function.as_deref());
    let name = function.map_or_else(|| show(place), visible);
    if !name.is_empty() {
        let kind = if function.is_some() { "function" } else { "object" };
        made.insert("logicalLocations".to_owned(), json!([{ "fullyQualifiedName": name, "kind": kind }]));
    }
    if let Some(message) = message {
        made.insert("message".to_owned(), json!({ "text": show(message) }));
    }
    Value::Object(made)
}

fn physical_location(source: &SourceLocation) -> Value {
    let mut region = Map::new();
    region.insert("startLine".to_owned(), json!(source.line));
    if let Some(column) = source.column.filter(|it| *it > 0) {
        region.insert("startColumn".to_owned(), json!(column));
    }
    if let Some(text) = &source.text {
        region.insert("snippet".to_owned(), json!({ "text": visible(text) }));
    }
    json!({ "artifactLocation": { "uri": uri(&source.file) }, "region": region })
}

/// A path as a URI: relative ones stay so, and are resolved against the root of the sources.
fn uri(path: &str) -> String {
    let mut out = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'~' => out.push(byte as char),
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

fn show(text: &str) -> String {
    text.lines().map(|it| short_names(&visible(it))).collect::<Vec<_>>().join("\n")
}

/// From the earlier access over what lies between to the later one.
fn steps(finding: &Finding) -> Vec<Value> {
    let accesses = finding.shown_accesses();
    let Some((last, before)) = accesses.split_first() else { return Vec::new() };
    let mut steps = Vec::new();
    let step_of = |access: &FindingAccess| {
        let text = if access.action.is_empty() {
            access.role.clone()
        } else {
            format!("{} {}", access.function, access.action)
        };
        let used: Vec<&str> =
            [access.stage.as_str(), access.access.as_str()].into_iter().filter(|it| !it.is_empty()).collect();
        let used = if used.is_empty() { String::new() } else { format!(" ({})", used.join(" / ")) };
        location(access.stack.source(), &format!("{}, {}", access.function, access.place), Some(&(text + &used)))
    };
    for prior in before.iter().rev() {
        steps.push(("essential", step_of(prior)));
    }
    for operation in &finding.operations {
        let gap = if operation.gap.is_empty() { String::new() } else { format!(": {}", operation.gap) };
        let text = format!("{} {}{gap}", operation.function, operation.scope);
        let place = format!("{}, {}", operation.function, operation.place);
        steps.push(("important", location(operation.stack.source(), &place, Some(&text))));
    }
    steps.push(("essential", step_of(last)));
    let step = |(at, (importance, location)): (usize, (&str, Value))| json!({ "executionOrder": at + 1, "importance": importance, "location": location });
    steps.into_iter().enumerate().map(step).collect()
}

fn stack(role: &str, stack: &Stack) -> Option<Value> {
    if stack.frames.is_empty() {
        return None;
    }
    let texts = stack_lines(stack);
    let frames = stack.frames.iter().zip(texts).map(|(frame, text)| {
        let source = frame.source.as_ref().filter(|it| it.line > 0);
        let mut made = Map::new();
        made.insert("location".to_owned(), location(source, &text, None));
        if let Some(module) = &frame.module {
            made.insert("module".to_owned(), json!(visible(module)));
        }
        Value::Object(made)
    });
    Some(json!({ "message": { "text": format!("call stack of the {role}") }, "frames": frames.collect::<Vec<_>>() }))
}

/// A fix, if all of its changes can be made in the source lines that are known.
fn fix(fix: &FindingFix) -> Option<Value> {
    let mut changes = Vec::new();
    for change in &fix.changes {
        let source = change.stack.source()?;
        let replacements = replacements(change, source)?;
        changes.push(json!({ "artifactLocation": { "uri": uri(&source.file) }, "replacements": replacements }));
    }
    let description = json!({ "text": show(&fix.text) });
    (!changes.is_empty()).then(|| json!({ "description": description, "artifactChanges": changes }))
}

/// What of a line is replaced. None where the line does not have what the fix changes: it may be in a variable.
fn replacements(change: &FixChange, source: &SourceLocation) -> Option<Vec<Value>> {
    let text = source.text.as_deref()?;
    if change.target.starts_with("before ") {
        return Some(vec![insertion(change, source, text)?]);
    }
    let mut made = Vec::new();
    for edit in &change.edits {
        // A number may be that of another argument.
        let before = edit.before.as_deref().filter(|it| it.starts_with("VK_"))?;
        let at = only_place(text, before)?;
        let start = text[..at].chars().count() + 1;
        let region = json!({
            "startLine": source.line,
            "startColumn": start,
            "endLine": source.line,
            "endColumn": start + before.chars().count(),
        });
        made.push(json!({ "deletedRegion": region, "insertedContent": { "text": edit.after } }));
    }
    (!made.is_empty()).then_some(made)
}

/// Where a text stands that is there once, as a whole word.
fn only_place(text: &str, wanted: &str) -> Option<usize> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '|';
    let is_whole = |at: usize| {
        let (before, after) = (text[..at].trim_end(), text[at + wanted.len()..].trim_start());
        !wanted.is_empty() && !before.ends_with(is_part) && !after.starts_with(is_part)
    };
    let mut found = text.match_indices(wanted).map(|it| it.0).filter(|at| is_whole(*at));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// A barrier in C in front of a call in C, whose first argument is the command buffer.
fn insertion(change: &FixChange, source: &SourceLocation, text: &str) -> Option<Value> {
    let function = change.target.strip_prefix("before ")?;
    let call = text.trim_start().strip_prefix(function)?.trim_start().strip_prefix('(')?;
    let (command_buffer, _) = call.split_once(',')?;
    let is_plain = |it: char| it.is_alphanumeric() || matches!(it, '_' | '.' | '-' | '>' | '[' | ']');
    if !source.file.ends_with(".c") || !function.starts_with("vkCmd") || !command_buffer.trim().chars().all(is_plain) {
        return None;
    }
    let barrier = NewBarrier::of(change)?;
    let indent = &text[..text.len() - text.trim_start().len()];
    let code = barrier.code(indent, command_buffer.trim());
    let region = json!({ "startLine": source.line, "startColumn": 1, "endLine": source.line, "endColumn": 1 });
    Some(json!({ "deletedRegion": region, "insertedContent": { "text": code } }))
}

/// A barrier for all memory that a fix inserts.
struct NewBarrier {
    is_version_1: bool,
    /// The source stages and accesses, and those of the destination.
    masks: [Option<String>; 4],
    flags: Option<String>,
}

impl NewBarrier {
    /// None for barriers that need more than masks.
    fn of(change: &FixChange) -> Option<NewBarrier> {
        let mut found = NewBarrier { is_version_1: false, masks: Default::default(), flags: None };
        let mut has_kind = false;
        for edit in &change.edits {
            let mask = MASKS.iter().position(|it| *it == edit.field);
            match (edit.field.as_str(), edit.after.as_str(), mask) {
                (_, _, Some(mask)) => found.masks[mask] = Some(edit.after.clone()),
                ("dependencyFlags", flags, _) => found.flags = Some(flags.to_owned()),
                ("vkCmdPipelineBarrier", "VkMemoryBarrier", _) => (has_kind, found.is_version_1) = (true, true),
                ("vkCmdPipelineBarrier2", "VkMemoryBarrier2", _) => has_kind = true,
                _ => return None,
            }
        }
        (has_kind && found.masks.iter().any(Option::is_some)).then_some(found)
    }

    /// The call in C, at an indentation.
    fn code(&self, indent: &str, command_buffer: &str) -> String {
        let flags = self.flags.as_deref().unwrap_or("0");
        let field = |at: usize| self.masks[at].as_ref().map(|it| format!("        .{} = {it},", MASKS[at]));
        let stages = |at: usize| self.masks[at].as_deref().unwrap_or("0");
        let mut lines = Vec::new();
        if self.is_version_1 {
            let (from, to) = (stages(0), stages(2));
            lines
                .push(format!("vkCmdPipelineBarrier({command_buffer}, {from}, {to}, {flags}, 1, &(VkMemoryBarrier){{"));
            lines.push("    .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,".to_owned());
            lines.extend([1, 3].into_iter().filter_map(field).map(|it| it[4..].to_owned()));
            lines.push("}, 0, NULL, 0, NULL);".to_owned());
        } else {
            lines.push(format!("vkCmdPipelineBarrier2({command_buffer}, &(VkDependencyInfo){{"));
            lines.push("    .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,".to_owned());
            lines.extend(self.flags.iter().map(|it| format!("    .dependencyFlags = {it},")));
            lines.push("    .memoryBarrierCount = 1,".to_owned());
            lines.push("    .pMemoryBarriers = &(VkMemoryBarrier2){".to_owned());
            lines.push("        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,".to_owned());
            lines.extend((0..4).filter_map(field));
            lines.push("    },".to_owned());
            lines.push("});".to_owned());
        }
        lines.iter().map(|it| format!("{indent}{it}\n")).collect()
    }
}

const MASKS: [&str; 4] = ["srcStageMask", "srcAccessMask", "dstStageMask", "dstAccessMask"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_as_viewers_want_them() {
        assert_eq!(pascal_case("SYNC-HAZARD-READ-AFTER-WRITE"), "SyncHazardReadAfterWrite");
        assert_eq!(pascal_case("VUID-vkCmdDraw-None-08114"), "VuidVkCmdDrawNone08114");
        assert_eq!(uri("/a b/ü.c"), "file:///a%20b/%C3%BC.c");
        assert_eq!(uri("src/a.c"), "src/a.c");
    }

    fn change(target: &str, edits: &[(&str, Option<&str>, &str)]) -> FixChange {
        let edit = |(field, before, after): &(&str, Option<&str>, &str)| crate::FixEdit {
            field: (*field).to_owned(),
            before: before.map(str::to_owned),
            after: (*after).to_owned(),
        };
        FixChange { target: target.to_owned(), edits: edits.iter().map(edit).collect(), ..FixChange::default() }
    }

    fn replaced(change: &FixChange, text: &str) -> Option<String> {
        let source = SourceLocation { file: "a.c".to_owned(), line: 1, ..SourceLocation::default() };
        let made = replacements(change, &SourceLocation { text: Some(text.to_owned()), ..source })?;
        made[0]["insertedContent"]["text"].as_str().map(str::to_owned)
    }

    #[test]
    fn a_barrier_of_version_1_is_inserted_as_such() {
        let masks = [
            ("vkCmdPipelineBarrier", None, "VkMemoryBarrier"),
            ("srcStageMask", None, "VK_PIPELINE_STAGE_TRANSFER_BIT"),
            ("srcAccessMask", None, "VK_ACCESS_TRANSFER_WRITE_BIT"),
            ("dstStageMask", None, "VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT"),
            ("dstAccessMask", None, "VK_ACCESS_SHADER_READ_BIT"),
            ("dependencyFlags", None, "VK_DEPENDENCY_BY_REGION_BIT"),
        ];
        let code = replaced(&change("before vkCmdDraw", &masks), "    vkCmdDraw(cmd, 3, 1, 0, 0);");
        let expected = "    vkCmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_TRANSFER_BIT, \
                        VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT, VK_DEPENDENCY_BY_REGION_BIT, 1, &(VkMemoryBarrier){\n        \
                        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,\n        \
                        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,\n        \
                        .dstAccessMask = VK_ACCESS_SHADER_READ_BIT,\n    }, 0, NULL, 0, NULL);\n";
        assert_eq!(code.as_deref(), Some(expected));
    }

    #[test]
    fn numbers_are_not_replaced() {
        let size = change("the barrier", &[("levelCount", Some("1"), "2")]);
        assert_eq!(replaced(&size, "vkCmdPipelineBarrier(cmd, a, b, 0, 0, NULL, 0, NULL, 1, &barrier);"), None);
    }

    #[test]
    fn only_what_stands_there_once_is_replaced() {
        assert_eq!(only_place("f(A_BIT, B_BIT)", "A_BIT"), Some(2));
        for text in ["f(A_BIT, A_BIT)", "f(MY_A_BIT)", "f(A_BIT | B_BIT)", "f(mask)"] {
            assert_eq!(only_place(text, "A_BIT"), None, "{text}");
        }
    }
}
