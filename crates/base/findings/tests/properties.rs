//! Random findings with odd names, in every format and width: no panic, nothing that a terminal obeys, no line that is
//! wider than it has to be.

use lavascope_findings::{
    CodeDescription, Coloring, Detail, Finding, FindingAccess, FindingFix, FindingObject, FindingOperation,
    FindingProperty, FindingSeverity, FindingSite, FindingsReport, FixChange, FixEdit, FrameSpan, NeighborCommands,
    ReportFormat, ReportNotice, SourceLocation, Stack, StackFrame, TextOptions, render,
};
use lavascope_test_support::TestRng;
use unicode_width::UnicodeWidthStr;

const SEVERITIES: [FindingSeverity; 4] =
    [FindingSeverity::Error, FindingSeverity::Warning, FindingSeverity::Performance, FindingSeverity::Info];

const WORDS: [&str; 28] = [
    "",
    " ",
    "a",
    "vkCmdDispatch",
    "\"emitters\"[0..512]",
    "VK_PIPELINE_STAGE_2_COPY_BIT",
    "VK_",
    "VK_ACCESS_2__BIT",
    "\u{1b}[31mred\u{1b}[0m",
    "\r\n",
    "\n",
    "\t",
    "\u{0}",
    "\u{9b}2J",
    "\u{202e}olleh",
    "\u{200b}",
    "名前",
    "é",
    "e\u{301}",
    "👩‍👩‍👧",
    "<script>alert(1)</script>",
    "]]>",
    "```",
    "::error::x",
    "%0A",
    "|",
    "command 3 of \"x\"",
    "before vkCmdDraw",
];

fn text(rng: &mut TestRng) -> String {
    let length = if rng.one_in(20) { 60 } else { rng.below(8u64) };
    let mut out = String::new();
    for _ in 0..length {
        out += rng.pick(&WORDS);
        if !rng.one_in(3) {
            out.push(' ');
        }
    }
    out
}

fn maybe<T>(rng: &mut TestRng, make: impl FnOnce(&mut TestRng) -> T) -> Option<T> {
    (!rng.one_in(2)).then(|| make(rng))
}

fn some<T>(rng: &mut TestRng, most: u64, mut make: impl FnMut(&mut TestRng) -> T) -> Vec<T> {
    (0..rng.below(most + 1)).map(|_| make(rng)).collect()
}

fn source(rng: &mut TestRng) -> SourceLocation {
    SourceLocation {
        file: text(rng),
        line: rng.below(3u32) * 1000,
        column: maybe(rng, |rng| rng.below(200u32)),
        function: maybe(rng, text),
        text: maybe(rng, text),
    }
}

fn stack(rng: &mut TestRng) -> Stack {
    let frame = |rng: &mut TestRng| StackFrame {
        module: maybe(rng, text),
        offset: rng.next_u64(),
        symbol: maybe(rng, text),
        source: maybe(rng, source),
        library: maybe(rng, text),
        is_wrapper: rng.one_in(4),
    };
    Stack { frames: some(rng, 8, frame) }
}

fn access(rng: &mut TestRng) -> FindingAccess {
    let neighbors = |rng: &mut TestRng| NeighborCommands {
        index: rng.below(5000u32),
        before: maybe(rng, text),
        after: maybe(rng, text),
    };
    FindingAccess {
        role: text(rng),
        function: text(rng),
        action: text(rng),
        stage: text(rng),
        access: text(rng),
        is_write: rng.one_in(2),
        place: text(rng),
        path: some(rng, 2, text),
        labels: maybe(rng, text),
        neighbors: maybe(rng, neighbors),
        stack: stack(rng),
    }
}

fn operation(rng: &mut TestRng) -> FindingOperation {
    FindingOperation {
        kind: text(rng),
        function: text(rng),
        scope: text(rng),
        gap: text(rng),
        is_near_miss: rng.one_in(2),
        src_stages: some(rng, 2, text),
        src_access: some(rng, 2, text),
        dst_stages: some(rng, 2, text),
        dst_access: some(rng, 2, text),
        place: text(rng),
        labels: maybe(rng, text),
        stack: stack(rng),
    }
}

fn fix(rng: &mut TestRng) -> FindingFix {
    let edit = |rng: &mut TestRng| FixEdit { field: text(rng), before: maybe(rng, text), after: text(rng) };
    let change = |rng: &mut TestRng| FixChange {
        target: text(rng),
        place: text(rng),
        stack: stack(rng),
        edits: some(rng, 5, edit),
    };
    FindingFix { text: text(rng), is_verified: rng.one_in(2), changes: some(rng, 2, change) }
}

fn finding(rng: &mut TestRng) -> Finding {
    let site = |rng: &mut TestRng| FindingSite {
        resource: text(rng),
        function: text(rng),
        place: text(rng),
        labels: maybe(rng, text),
        stack: stack(rng),
    };
    let object = |rng: &mut TestRng| FindingObject {
        kind: text(rng),
        id: rng.next_u64(),
        name: maybe(rng, text),
        description: maybe(rng, text),
    };
    let frames = |rng: &mut TestRng| FrameSpan { first: rng.next_u64(), last: rng.next_u64(), count: rng.below(3u64) };
    Finding {
        code: text(rng),
        severity: rng.pick(&SEVERITIES),
        title: text(rng),
        message: text(rng),
        function: text(rng),
        accesses: some(rng, 3, access),
        operations: some(rng, 3, operation),
        unrelated_operations: rng.below(3u64),
        fixes: some(rng, 2, fix),
        no_fix: maybe(rng, text),
        objects: some(rng, 2, object),
        notes: some(rng, 3, text),
        explanation: some(rng, 3, text),
        properties: some(rng, 2, |rng| FindingProperty { key: text(rng), value: text(rng) }),
        identity: some(rng, 3, text),
        fingerprint: text(rng),
        first_access: text(rng),
        occurrences: rng.below(3u64),
        invocations: rng.below(3u64),
        sites: rng.below(3u64),
        more_sites: some(rng, 2, site),
        frames: maybe(rng, frames),
        source: maybe(rng, source),
        file: maybe(rng, text),
        library: maybe(rng, text),
        is_known: rng.one_in(5),
    }
}

fn report(rng: &mut TestRng) -> FindingsReport {
    let code =
        |rng: &mut TestRng| CodeDescription { code: text(rng), short: text(rng), summary: text(rng), page: text(rng) };
    FindingsReport {
        lavascope: text(rng),
        command: some(rng, 3, text),
        findings: some(rng, 4, finding),
        ignored: rng.below(2u64),
        notices: some(rng, 2, |rng| ReportNotice { severity: rng.pick(&SEVERITIES), text: text(rng) }),
        codes: some(rng, 2, code),
        ..FindingsReport::default()
    }
}

/// What does something to a terminal, or hides something from a reader.
fn is_unsafe(letter: char) -> bool {
    letter != '\n' && letter.is_control() || matches!(letter, '\u{200b}' | '\u{202e}')
}

#[test]
fn nothing_of_a_name_reaches_a_terminal() {
    let mut rng = TestRng::new(1);
    for _ in 0..250 {
        let report = report(&mut rng);
        let width = 20 + rng.below(181usize);
        for detail in [Detail::Brief, Detail::Verbose] {
            for format in ReportFormat::ALL.into_iter().filter(|it| *it != ReportFormat::Json) {
                let options = TextOptions { width, coloring: Coloring::Off, detail };
                let shown = render(&report, format, &options);
                let bad = shown.chars().find(|it| is_unsafe(*it));
                assert_eq!(bad, None, "{} of {report:?}", format.name());
            }
        }
    }
}

#[test]
fn no_line_is_wider_than_its_words_make_it() {
    let mut rng = TestRng::new(2);
    for _ in 0..600 {
        let report = report(&mut rng);
        let width = 20 + rng.below(181usize);
        let detail = rng.pick(&[Detail::Brief, Detail::Verbose]);
        let shown = render(&report, ReportFormat::Text, &TextOptions { width, coloring: Coloring::Off, detail });
        for line in shown.lines().filter(|it| it.width() > width) {
            // Behind a mark and an indentation there may be one word that is too long for the rest of the line.
            let longest = line.split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0);
            let is_marked = line.contains("|  ");
            let most = if is_marked { width.max(longest + width) } else { longest + 27 };
            assert!(line.width() <= most, "{} columns in {width}: {line}", line.width());
        }
    }
}

#[test]
fn colors_change_nothing_but_colors() {
    let mut rng = TestRng::new(3);
    for _ in 0..150 {
        let report = report(&mut rng);
        let options = TextOptions { width: 80, coloring: Coloring::Off, detail: Detail::Brief };
        let plain = render(&report, ReportFormat::Text, &options);
        let colored = render(&report, ReportFormat::Text, &TextOptions { coloring: Coloring::On, ..options });
        assert_eq!(without_colors(&colored), plain);
    }
}

/// The text without our own sequences, which end with `m`; there are no others.
fn without_colors(text: &str) -> String {
    let mut out = String::new();
    let mut parts = text.split('\u{1b}');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push_str(part.split_once('m').map_or("", |it| it.1));
    }
    out
}

#[test]
fn json_is_the_same_again() {
    let mut rng = TestRng::new(4);
    for _ in 0..150 {
        let report = FindingsReport { codes: Vec::new(), ..report(&mut rng) };
        let json = render(&report, ReportFormat::Json, &TextOptions::FILE);
        assert_eq!(FindingsReport::parse(&json), Ok(report));
    }
}
