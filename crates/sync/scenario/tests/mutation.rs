//! Damaged texts: the parser answers with a place, and never panics.

use lavascope_scenario::{parse, print};
use lavascope_test_support::TestRng;

const TEXTS: [&str; 3] = [
    include_str!("../../engine/tests/scenarios/render_pass/transition_between_subpasses.vks"),
    include_str!("../../engine/tests/scenarios/submit/signals_are_ordered.vks"),
    include_str!("../../engine/tests/scenarios/event/overlay_of_the_set.vks"),
];

/// The words that mutations insert: words of the grammar, signs, and others.
const PIECES: [&str; 40] = [
    "barrier ",
    "=>",
    "->",
    ":",
    "|",
    "[",
    "]",
    "..",
    ".",
    "# ",
    "^",
    "\n",
    "  ",
    "cmd ",
    "{",
    "}",
    ";",
    "0x",
    "999999999999999999999",
    "copy ",
    "color",
    "none",
    "at ",
    "wait ",
    "signal ",
    "thread ",
    "pass ",
    "subpass ",
    "dependency ",
    "mips=",
    "layer",
    "\t",
    "é",
    "a",
    "b",
    "after ",
    "RAW ",
    "#?",
    "secondary ",
    "queue ",
];

fn mutate(text: &str, random: &mut TestRng) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(letters.len() + 1);
        match random.below(4) {
            0 => {
                let end = (at + 1 + random.below(6)).min(letters.len());
                letters.drain(at.min(end)..end);
            }
            1 => {
                let lines: Vec<&str> = text.lines().collect();
                let line: Vec<char> = format!("\n{}\n", lines[random.below(lines.len())]).chars().collect();
                letters.splice(at..at, line);
            }
            _ => {
                letters.splice(at..at, PIECES[random.below(PIECES.len())].chars());
            }
        }
    }
    letters.into_iter().collect()
}

#[test]
fn damaged_texts_give_errors_with_places() {
    let mut random = TestRng::new(0x9e37_79b9_7f4a_7c15);
    let (mut errors, mut fine) = (0, 0);
    for round in 0..6000 {
        let text = mutate(TEXTS[round % TEXTS.len()], &mut random);
        match parse(&text) {
            Ok(scenario) => {
                fine += 1;
                let printed = print(&scenario);
                let again = parse(&printed).unwrap_or_else(|error| panic!("{error}\n{text}\n{printed}"));
                assert_eq!(print(&again), printed);
            }
            Err(error) => {
                errors += 1;
                let lines = text.lines().count().max(1) as u32;
                assert!((1..=lines).contains(&error.line), "{error}\n{text}");
                let width = text.lines().nth(error.line as usize - 1).map_or(0, |it| it.chars().count()) as u32;
                assert!(error.column >= 1 && error.column <= width.max(3) + 1, "{error}\n{text}");
                assert!(!error.message.is_empty() && !error.message.ends_with('.'), "{error}");
            }
        }
    }
    assert!(errors > 1000 && fine > 100, "{errors} errors, {fine} fine");
}

#[test]
fn any_bytes_are_read_without_panic() {
    let mut random = TestRng::new(7);
    for _ in 0..3000 {
        let mut text = String::from("# A rule.\n# spec: synchronization\n# expect: clean\n\n");
        for _ in 0..random.below(30) {
            text.push_str(PIECES[random.below(PIECES.len())]);
        }
        let _ = parse(&text);
    }
}
