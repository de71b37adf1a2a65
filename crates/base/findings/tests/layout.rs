//! What a finding takes in a terminal of 80 columns, whatever its names are, and that its places can be told apart.

mod examples;

use lavascope_findings::{
    Finding, FindingsReport, FixChange, FixEdit, ReportFormat, Stack, StackFrame, TextOptions, render,
};

const COLUMNS: usize = 80;
const LINES_MAX: usize = 15;
const SCREENS: usize = 80;

fn text_of(findings: Vec<Finding>) -> String {
    let report = FindingsReport { findings, codes: examples::report().codes, ..FindingsReport::default() };
    render(&report, ReportFormat::Text, &TextOptions::FILE)
}

/// The rows that a text takes in a terminal, which breaks lines that are too wide.
fn rows(text: &str) -> usize {
    text.lines().map(|it| it.chars().count().div_ceil(COLUMNS).max(1)).sum()
}

/// The example with everything long: folders, functions, names of objects and labels.
fn with_long_names(mut finding: Finding) -> Finding {
    let long = |text: &mut String| *text = text.replace("emitters", &"emitters of the particle system ".repeat(4));
    long(&mut finding.title);
    for access in &mut finding.accesses {
        long(&mut access.action);
        access.place = access.place.replace("frame", "the whole frame with shadows, lights and all of the rest");
        access.labels = access.labels.as_ref().map(|it| format!("{it}::{}", "Pass of a long name::".repeat(8)));
    }
    for operation in &mut finding.operations {
        long(&mut operation.scope);
        operation.gap = format!("{} and to no other stage of the pipeline that reads the buffer", operation.gap);
    }
    finding.notes.push("a note that takes more than one line of a terminal, as long notes of semaphores do".to_owned());
    let sources = finding.stacks_mut().flat_map(|it| &mut it.frames).filter_map(|it| it.source.as_mut());
    for source in sources {
        source.file =
            format!("projects/of/a/studio/with/many/teams/engine/source/renderer/backends/vulkan/{}", source.file);
        source.function = source.function.as_ref().map(|it| format!("{it}_of_the_particle_system_with_a_long_name"));
    }
    finding
}

/// As from an engine that calls everything by wrappers: many callers, and a fix at three places.
fn with_many_changes(mut finding: Finding) -> Finding {
    let edit =
        |field: &str| FixEdit { field: field.to_owned(), before: Some("NONE".to_owned()), after: "ALL".to_owned() };
    let change = finding.fixes[0].changes[0].clone();
    let edits: Vec<FixEdit> = ["srcStageMask", "srcAccessMask", "dstStageMask", "dstAccessMask"].map(edit).into();
    finding.fixes[0].changes = vec![FixChange { edits, ..change }; 3];
    finding
}

#[test]
fn a_finding_takes_fifteen_lines_whatever_its_names_are() {
    let with_sources = examples::report().findings;
    let without_sources = with_sources.iter().cloned().map(|mut finding| {
        finding.stacks_mut().for_each(|stack| stack.frames.clear());
        finding
    });
    let without_sources: Vec<Finding> = without_sources.collect();
    for finding in with_sources.into_iter().chain(without_sources).filter(|it| !it.is_known) {
        let changed = if finding.fixes.is_empty() { finding.clone() } else { with_many_changes(finding.clone()) };
        for finding in [with_long_names(finding.clone()), with_long_names(changed.clone()), changed, finding] {
            let text = text_of(vec![finding]);
            let (block, _) = text.split_once("\n\n").expect("a finding, and how many there are");
            assert!(rows(block) <= LINES_MAX, "{} rows:\n{block}", rows(block));
            if text.contains("in the barrier") {
                assert_has_old_values(block);
            }
        }
    }
}

/// A new value never stands without the one that it replaces: in one line, or below it.
fn assert_has_old_values(block: &str) {
    let lines: Vec<&str> = block.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let is_new = line.starts_with("     + ");
        let field = |it: &str| it[7..].split_once(" = ").map(|it| it.0.to_owned());
        let removed = || lines[..at].iter().rev().find(|it| it.starts_with("     - ")).and_then(|it| field(it));
        assert!(!is_new || removed() == field(line), "{line}\n{block}");
        let is_whole = !line.starts_with("     ~ ") || line.contains(" -> ") || lines[at + 1].contains(" -> ");
        assert!(is_whole, "{line}\n{block}");
    }
}

#[test]
fn five_findings_take_two_screens() {
    for has_sources in [true, false] {
        let all = examples::report().findings.into_iter().filter(|it| it.fixes.len() == 1 && !it.is_known).cycle();
        let mut findings: Vec<Finding> = all.take(5).map(with_long_names).collect();
        for (at, finding) in findings.iter_mut().enumerate() {
            finding.fingerprint = format!("{at:016x}");
            if !has_sources {
                finding.stacks_mut().for_each(|it| it.frames.clear());
            }
        }
        let text = text_of(findings);
        // Below them is the line of the coverage, which may take a few rows.
        assert!(rows(&text) <= SCREENS - 4, "{}:\n{text}", rows(&text));
    }
}

/// The first example, with both accesses in line 204.
fn of_one_line() -> Finding {
    let mut finding = examples::report().findings.swap_remove(0);
    let [last, prior, ..] = &mut finding.accesses[..] else { panic!("two accesses") };
    prior.stack = last.stack.clone();
    finding
}

#[test]
fn two_accesses_in_one_line_have_their_commands() {
    let text = text_of(vec![of_one_line()]);
    assert!(text.contains("|  command 9 writes \"emitters\"[0..512]"), "{text}");
    assert!(text.contains("|  command 14 reads it"), "{text}");
    let mut finding = of_one_line();
    finding.accesses[1].place = finding.accesses[0].place.clone();
    let text = text_of(vec![finding]);
    assert!(text.contains("|  earlier: writes \"emitters\"[0..512]"), "{text}");
}

#[test]
fn one_call_of_a_library_is_shown_by_what_the_library_does() {
    let frame = |symbol: &str| StackFrame {
        module: Some("/usr/lib/libengine.so.1".to_owned()),
        symbol: Some(symbol.to_owned()),
        library: Some("libengine".to_owned()),
        ..StackFrame::default()
    };
    let mut finding = of_one_line();
    let (upload, draw) = (frame("engine_upload"), frame("engine_draw"));
    let with =
        |frame: &StackFrame, stack: &Stack| Stack { frames: [std::slice::from_ref(frame), &stack.frames].concat() };
    let own = finding.accesses[0].stack.clone();
    finding.accesses[0].stack = with(&draw, &own);
    finding.accesses[1].stack = with(&upload, &own);
    finding.operations[0].stack = with(&upload, &own);
    finding.fixes[0].changes[0].stack = with(&upload, &own);
    finding.library = Some("libengine".to_owned());
    let text = text_of(vec![finding]);
    assert!(text.contains("  --> plasma.c:204"), "{text}");
    for line in ["  #9 |  vkCmdCopyBuffer in engine_upload()\n", " #14 |  vkCmdDispatch in engine_draw()\n"] {
        assert!(text.contains(line), "{line}{text}");
    }
    assert_eq!(text.matches("vkCmdDispatch(cmd, 32, 32, 1);").count(), 0, "{text}");
    assert!(text.contains("help (verified): in the barrier in engine_upload() of libengine\n"), "{text}");
}
