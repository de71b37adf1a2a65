//! What tidy knows of a page: its titles, its anchors, its links. Code blocks, code spans and comments have none.

use std::collections::BTreeSet;

use crate::tidy::docs::slug;

pub(crate) struct MarkdownPage {
    /// The lines of all headings of the first level.
    pub(crate) titles: Vec<usize>,
    pub(crate) anchors: BTreeSet<String>,
    pub(crate) links: Vec<MarkdownLink>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkdownLink {
    pub(crate) line: usize,
    pub(crate) target: String,
}

struct Heading<'a> {
    line: usize,
    level: usize,
    text: &'a str,
}

impl MarkdownPage {
    pub(crate) fn new(text: &str) -> MarkdownPage {
        let prose = prose(text);
        let headings = headings(&prose);
        let blocks = blocks(&prose);
        let html_titles = prose.iter().zip(1..).filter(|(line, _)| line.contains("<h1")).map(|(_, number)| number);
        let titles = headings.iter().filter(|it| it.level == 1).map(|it| it.line).chain(html_titles);
        let by_hand = blocks.iter().flat_map(|(_, text)| values(text, "id").chain(values(text, "name")));
        let by_hand = by_hand.map(|(_, it)| it.to_owned());
        let mut titles: Vec<_> = titles.collect();
        titles.sort();
        MarkdownPage {
            titles,
            anchors: slug::anchors(headings.iter().map(|it| it.text)).into_iter().chain(by_hand).collect(),
            links: blocks.iter().flat_map(|(line, text)| links(*line, text)).collect(),
        }
    }
}

/// The lines of a page, with those of code blocks and comments emptied.
fn prose(text: &str) -> Vec<&str> {
    let mut reader = ProseReader { block: MarkdownBlock::Text, in_list: false };
    text.lines().map(|line| if reader.advance_line(line) { line } else { "" }).collect()
}

struct ProseReader {
    block: MarkdownBlock,
    /// Deep indentation continues a list's item instead of beginning code.
    in_list: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkdownBlock {
    Text,
    /// After an empty line, or within indented code.
    Gap,
    Fence(char, usize),
    Comment,
}

impl ProseReader {
    fn advance_line(&mut self, line: &str) -> bool {
        let trimmed = line.trim();
        match self.block {
            MarkdownBlock::Fence(char, length) => {
                let closes = trimmed.len() >= length && trimmed.chars().all(|it| it == char);
                self.block = if closes { MarkdownBlock::Gap } else { self.block };
                false
            }
            MarkdownBlock::Comment => {
                self.block = if line.contains("-->") { MarkdownBlock::Gap } else { MarkdownBlock::Comment };
                false
            }
            MarkdownBlock::Text | MarkdownBlock::Gap => self.advance_text_line(line, trimmed),
        }
    }

    fn advance_text_line(&mut self, line: &str, trimmed: &str) -> bool {
        if let Some((char, length)) = fence(trimmed) {
            self.block = MarkdownBlock::Fence(char, length);
            return false;
        }
        if trimmed.starts_with("<!--") {
            self.block = if trimmed.contains("-->") { MarkdownBlock::Gap } else { MarkdownBlock::Comment };
            return false;
        }
        let indented = line.starts_with("    ") || line.starts_with('\t');
        if trimmed.is_empty() || (indented && self.block == MarkdownBlock::Gap && !self.in_list) {
            self.block = MarkdownBlock::Gap;
            return false;
        }
        self.in_list =
            is_list_item(trimmed) || (self.in_list && (line.starts_with(' ') || self.block == MarkdownBlock::Text));
        self.block = MarkdownBlock::Text;
        true
    }
}

fn fence(trimmed: &str) -> Option<(char, usize)> {
    let char = trimmed.chars().next().filter(|it| matches!(it, '`' | '~'))?;
    let length = trimmed.chars().take_while(|it| *it == char).count();
    (length >= 3 && !trimmed[length..].contains('`')).then_some((char, length))
}

fn is_list_item(trimmed: &str) -> bool {
    let rest = trimmed.trim_start_matches(|it: char| it.is_ascii_digit());
    let marker = if rest.len() == trimmed.len() { ["- ", "* ", "+ "].as_slice() } else { &[". ", ") "] };
    marker.iter().any(|it| rest.starts_with(it))
}

fn headings<'a>(prose: &[&'a str]) -> Vec<Heading<'a>> {
    let mut headings = Vec::new();
    for (at, line) in prose.iter().enumerate() {
        let level = line.trim_start().chars().take_while(|it| *it == '#').count();
        let text = line.trim_start()[level..].trim_end();
        if (1..=6).contains(&level) && (text.is_empty() || text.starts_with([' ', '\t'])) {
            let bare = text.trim_end_matches('#');
            let text = if bare.ends_with(' ') { bare } else { text };
            headings.push(Heading { line: at + 1, level, text: text.trim() });
        } else if let Some((level, above)) = underlined(prose, at) {
            headings.push(Heading { line: at, level, text: above.trim() });
        }
    }
    headings
}

/// The heading above a line of `=` or `-`.
fn underlined<'a>(prose: &[&'a str], at: usize) -> Option<(usize, &'a str)> {
    let above = prose.get(at.checked_sub(1)?)?;
    let ruler = prose[at].trim();
    let level = match ruler.chars().next()? {
        '=' => 1,
        '-' => 2,
        _ => return None,
    };
    let is_ruler = ruler.chars().all(|it| ruler.starts_with(it));
    let is_text = !above.trim().is_empty() && !above.trim().starts_with(['#', '|', '>']) && !is_list_item(above.trim());
    (is_ruler && is_text).then_some((level, *above))
}

/// Paragraphs, table rows, list items and headings, each with its first line's number and its code spans blanked.
fn blocks(prose: &[&str]) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (line, number) in prose.iter().zip(1..) {
        let trimmed = line.trim();
        let begins = trimmed.starts_with(['#', '|']) || is_list_item(trimmed);
        match blocks.last_mut().filter(|_| open && !begins) {
            Some((_, text)) => text.extend(["\n", line]),
            None => blocks.push((number, (*line).to_owned())),
        }
        open = !trimmed.is_empty() && !trimmed.starts_with('#');
    }
    blocks.into_iter().map(|(number, text)| (number, without_code(&text))).collect()
}

/// Blanks what runs of equally many backticks enclose. Lines and offsets stay.
fn without_code(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let length = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        let (before, after) = (&rest[..at], &rest[at + length..]);
        plain.push_str(before);
        let end = run_of(after, length).unwrap_or(0);
        let blank = |it: u8| if it == b'\n' { '\n' } else { ' ' };
        plain.extend(rest[at..at + length + end].bytes().map(blank));
        rest = &after[end..];
    }
    plain.push_str(rest);
    plain
}

/// The offset behind the first run of exactly so many backticks.
fn run_of(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text[at..].find('`')?;
        let found = text[at..].len() - text[at..].trim_start_matches('`').len();
        at += found;
        if found == length {
            return Some(at);
        }
    }
}

fn links(first_line: usize, text: &str) -> Vec<MarkdownLink> {
    let inline = text.match_indices("](").map(|(at, _)| (at, &text[at + 2..]));
    let inline = inline.filter(|(at, _)| text[..*at].contains('[') && !text[..*at].ends_with('\\'));
    let inline = inline.filter_map(|(at, rest)| Some((at, destination(rest)?)));
    let html = values(text, "href").chain(values(text, "src"));
    let found = inline.chain(html).chain(definition(text));
    let line = |at: usize| first_line + text[..at].matches('\n').count();
    let mut links: Vec<_> =
        found.map(|(at, target)| MarkdownLink { line: line(at), target: target.to_owned() }).collect();
    links.sort_by_key(|it| it.line);
    links
}

/// What stands before the closing parenthesis or the title.
fn destination(text: &str) -> Option<&str> {
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix('<') {
        return rest.split_once('>').map(|(target, _)| target);
    }
    let mut depth = 0;
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(&text[..at]),
            ')' => depth -= 1,
            character if character.is_whitespace() => return Some(&text[..at]),
            _ => {}
        }
    }
    None
}

/// The target of `[label]: target` at the beginning of any line.
fn definition(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.split('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len() + 1;
        Some((start, line))
    });
    lines.filter_map(|(at, line)| {
        let (label, rest) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
        let target = rest.split_whitespace().next()?.trim_start_matches('<').trim_end_matches('>');
        (!label.starts_with('^') && !label.contains(']')).then_some((at, target))
    })
}

/// The values of an HTML attribute.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = (usize, &'a str)> {
    let opening = format!(" {attribute}=\"");
    let starts: Vec<_> = text.match_indices(&opening).map(|(at, it)| at + it.len()).collect();
    starts.into_iter().filter_map(|at| Some((at, text[at..].split_once('"')?.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<(usize, String)> {
        MarkdownPage::new(text).links.into_iter().map(|it| (it.line, it.target)).collect()
    }

    #[test]
    fn links_of_every_form_are_found() {
        let text = "\
[a](one.md \"title\") and [b](two(2).md)
- [![image](three.png)](four.md)

[label]: five.md
[^note]: not a link
<a href=\"six.md\">x</a>
";
        let want = [(1, "one.md"), (1, "two(2).md"), (2, "three.png"), (2, "four.md"), (4, "five.md"), (6, "six.md")];
        assert_eq!(targets(text), want.map(|(line, target)| (line, target.to_owned())));
    }

    #[test]
    fn code_and_comments_have_no_links() {
        let text = "\
`[a](b)` and ``c ` [d](e)`` and `f
[g](h)`

```md
[i](j)
# No title
```

    [k](l)

<!-- [m](n)
[o](p) -->
1. Item

    [q](r)
";
        assert_eq!(targets(text), [(15, "r".to_owned())]);
        assert!(MarkdownPage::new(text).titles.is_empty());
    }

    #[test]
    fn headings_are_found_in_both_forms() {
        let page = MarkdownPage::new(
            "# One #\n\nTwo\n===\n\nThree `x`\n---\n\n- item\n---\n\n#hash\n<h1 id=\"four\">Four</h1>\n",
        );
        assert_eq!(page.titles, [1, 3, 13]);
        assert_eq!(page.anchors.into_iter().collect::<Vec<_>>(), ["four", "one", "three-x", "two"]);
    }
}
