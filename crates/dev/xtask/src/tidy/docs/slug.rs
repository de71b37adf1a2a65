//! The anchors that GitHub gives to the headings of a page.

use std::collections::BTreeMap;

use crate::tidy::rust::source::is_word;

/// The anchors of a page's headings, in order; a heading that occurs again gets a number.
pub(crate) fn anchors<'a>(headings: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut occurrences: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    for heading in headings {
        let plain = slug(heading);
        let mut anchor = plain.clone();
        while occurrences.contains_key(&anchor) {
            let count = occurrences.entry(plain.clone()).or_default();
            *count += 1;
            anchor = format!("{plain}-{count}");
        }
        occurrences.insert(anchor.clone(), 0);
        anchors.push(anchor);
    }
    anchors
}

fn slug(heading: &str) -> String {
    let text = rendered(heading);
    let kept = text.trim().chars().filter(|it| is_word(*it) || matches!(it, '-' | ' '));
    kept.flat_map(char::to_lowercase).map(|it| if it == ' ' { '-' } else { it }).collect()
}

/// The heading as a reader sees it: without the targets of links and the marks of emphasis.
fn rendered(heading: &str) -> String {
    let mut text = String::new();
    for (at, part) in heading.split('`').enumerate() {
        let is_code = at % 2 == 1;
        text.push_str(&if is_code { part.to_owned() } else { without_emphasis(&without_targets(part)) });
    }
    text
}

fn without_targets(text: &str) -> String {
    let Some((before, rest)) = text.split_once("](") else { return text.to_owned() };
    let after = rest.split_once(')').map_or("", |(_, after)| after);
    format!("{before}{}", without_targets(after))
}

/// Drops the underscores that do not stand inside of a word.
fn without_emphasis(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_letter = |it: Option<&char>| it.is_some_and(|it| it.is_alphanumeric());
    let inner = |at: usize| {
        let before = chars[..at].iter().rev().find(|it| **it != '_');
        let after = chars[at..].iter().find(|it| **it != '_');
        is_letter(before) && is_letter(after)
    };
    let kept = chars.iter().enumerate().filter(|(at, char)| **char != '_' || inner(*at));
    kept.map(|(_, char)| *char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_follow_github() {
        let cases = [
            ("The crates (`crates/NAME`, package `lavascope-NAME`)", "the-crates-cratesname-package-lavascope-name"),
            ("  Events: a call is its own bytes  ", "events-a-call-is-its-own-bytes"),
            ("Read & write", "read--write"),
            ("*Two* __words__ with snake_case", "two-words-with-snake_case"),
            ("`_private_` [link](../a.md#b) end", "_private_-link-end"),
            ("Ärger 1.2", "ärger-12"),
        ];
        for (heading, want) in cases {
            assert_eq!(slug(heading), want);
        }
    }

    #[test]
    fn headings_that_occur_again_are_numbered() {
        let headings = ["a", "A", "a 1", "a"];
        assert_eq!(anchors(headings.into_iter()), ["a", "a-1", "a-1-1", "a-2"]);
    }
}
