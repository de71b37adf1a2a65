//! Text of others made safe to show, short names of stages and accesses, and lines broken at words.

use unicode_width::UnicodeWidthChar;

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|it| it.width().unwrap_or(0)).sum()
}

/// The text without anything that a terminal obeys: names of objects and lines of files may contain it.
///
/// Control characters, marks that change the direction of text, and characters that nobody sees become `\u{…}`.
pub(crate) fn visible(text: &str) -> String {
    if !text.chars().any(is_unsafe) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\t' => out.push_str("    "),
            '\n' | '\r' => out.push(' '),
            other if is_unsafe(other) => out.extend(other.escape_unicode()),
            other => out.push(other),
        }
    }
    out
}

fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// What stands in front of the names of stages and accesses.
const PREFIXES: [&str; 4] = ["VK_PIPELINE_STAGE_2_", "VK_PIPELINE_STAGE_", "VK_ACCESS_2_", "VK_ACCESS_"];
/// What stands in front of other flags.
const FLAG_PREFIXES: [&str; 2] = ["VK_DEPENDENCY_", "VK_IMAGE_ASPECT_"];

/// The text with short names of stages and accesses: `COPY` for `VK_PIPELINE_STAGE_2_COPY_BIT`.
pub(crate) fn short_names(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("VK_") {
        let (before, name) = rest.split_at(at);
        let end = name.find(|it: char| !it.is_ascii_alphanumeric() && it != '_').unwrap_or(name.len());
        let is_inside = before.ends_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
        out.push_str(before);
        out.push_str(&if is_inside { name[..end].to_owned() } else { short_name(&name[..end]) });
        rest = &name[end..];
    }
    out + rest
}

fn short_name(name: &str) -> String {
    let flag = FLAG_PREFIXES.iter().find_map(|it| name.strip_prefix(it)).filter(|it| it.contains("_BIT"));
    let Some(rest) = PREFIXES.iter().find_map(|it| name.strip_prefix(it)).or(flag) else { return name.to_owned() };
    match rest.split_once("_BIT") {
        Some((word, "")) => word.to_owned(),
        // The author of an extension stays: `RAY_TRACING_SHADER_KHR`.
        Some((word, author)) if author.starts_with('_') => format!("{word}{author}"),
        _ => rest.to_owned(),
    }
}

/// The text in lines of at most so many columns, the first of which may be shorter. A word that is longer gets a line
/// for itself.
pub(crate) fn wrap(text: &str, first: usize, others: usize) -> Vec<String> {
    if width(text) <= first {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|it| !it.is_empty()) {
        let columns = if lines.len() == 1 { first } else { others };
        let wide = width(word);
        let line = lines.last_mut().expect("there is one from the beginning");
        if line.is_empty() {
            // The first line may be too short for the word where another is not.
            if lines.len() == 1 && wide > first && first < others {
                lines.push(String::new());
            }
            *lines.last_mut().expect("as above") += word;
            used = wide;
        } else if used + 1 + wide <= columns {
            line.push(' ');
            line.push_str(word);
            used += 1 + wide;
        } else {
            lines.push(word.to_owned());
            used = wide;
        }
    }
    lines
}

/// A line for a terminal: in several lines where it does not fit, all but the first with an indent.
pub fn wrapped_line(text: &str, columns: usize) -> String {
    let rows = wrap(text, columns, columns.saturating_sub(2));
    rows.join("\n  ") + "\n"
}

/// As much of a text as fits, with `…` where something is missing.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > columns {
            break;
        }
        out.push(letter);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// As many words of a text as fit, with `…` behind them; a part of the first word if it is too long.
pub(crate) fn cut_words(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let ends: Vec<usize> = text.match_indices(' ').map(|it| it.0).collect();
    let with_sign = |end: &usize| format!("{} …", text[..*end].trim_end_matches([',', ';', ' ']));
    let fitting = ends.iter().rev().map(with_sign).find(|it| width(it) <= columns);
    fitting.filter(|it| it.len() > " …".len()).unwrap_or_else(|| cut(text, columns))
}

/// A text that begins with a path, without as many of the first folders as are too much: `…/faults/several.rs:95`.
pub(crate) fn cut_path(text: &str, columns: usize) -> String {
    let mut shown = text.to_owned();
    let mut rest = text;
    while width(&shown) > columns {
        let Some((_, end)) = rest.split_once('/').filter(|it| !it.0.contains([' ', ':'])) else { break };
        (rest, shown) = (end, format!("…/{end}"));
    }
    shown
}

/// The name of a function without its path, parameters and type parameters: `fill` for `gpu::<impl Gpu>::fill`. The
/// name of a closure is that of its function; one whose function is not known has its own, `{closure#1}`.
pub fn simple_function_name(function: &str) -> String {
    let mut depth = 0_usize;
    let mut path = String::new();
    for letter in function.chars() {
        match letter {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => path.push(letter),
            _ => {}
        }
    }
    // What C++ writes behind a method, and its names of closures.
    let part = |it: &'_ str| it.trim().trim_end_matches(" const").to_owned();
    let is_closure = |it: &String| it.starts_with(['{', '$', '\'']) || it == "operator";
    let name = path.rsplit("::").map(part).find(|it| !it.is_empty() && !is_closure(it));
    name.unwrap_or_else(|| function.to_owned())
}

/// `1 frame`, `20 frames`.
pub(crate) fn count(number: u64, word: &str) -> String {
    match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_it_obeys() {
        assert_eq!(visible("plain \"ü\""), "plain \"ü\"");
        assert_eq!(visible("a\x1b[31mb\u{9b}c"), "a\\u{1b}[31mb\\u{9b}c");
        assert_eq!(visible("a\r\nb\tc\u{202e}d"), "a  b    c\\u{202e}d");
    }

    #[test]
    fn stages_and_accesses_have_short_names() {
        let text = "waits for VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT), VK_ACCESS_NONE.";
        assert_eq!(short_names(text), "waits for COPY(TRANSFER_WRITE), NONE.");
        assert_eq!(short_names("VK_PIPELINE_STAGE_2_RAY_TRACING_SHADER_BIT_KHR|x"), "RAY_TRACING_SHADER_KHR|x");
        assert_eq!(
            short_names("VK_IMAGE_LAYOUT_GENERAL MY_VK_ACCESS_A_BIT"),
            "VK_IMAGE_LAYOUT_GENERAL MY_VK_ACCESS_A_BIT"
        );
    }

    #[test]
    fn functions_have_short_names() {
        for (function, name) in [
            ("record", "record"),
            ("samples::commands::<impl samples::gpu::Gpu>::fill_buffer", "fill_buffer"),
            ("samples::war_copy::{{closure}}::{closure#1}", "war_copy"),
            ("<app::Renderer as app::Draw>::draw_frame<u32>", "draw_frame"),
            ("(anonymous namespace)::Renderer::draw(VkCommandBuffer_T*, std::vector<int>)", "draw"),
            ("Renderer::draw(VkCommandBuffer_T*) const", "draw"),
            ("Renderer::draw(int)::{lambda(int)#1}::operator()(int) const", "draw"),
            ("Renderer::draw(int)::$_0::operator()(int) const", "draw"),
            ("{closure#1}", "{closure#1}"),
            ("", ""),
        ] {
            assert_eq!(simple_function_name(function), name, "{function}");
        }
    }

    #[test]
    fn lines_break_at_words() {
        assert_eq!(wrap("one two three", 7, 5), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible two", 4, 8), ["", "incomprehensible", "two"]);
        assert_eq!(wrap("", 4, 8), [""]);
        assert_eq!((cut("abcdef", 4), cut("abc", 4)), ("abc…".to_owned(), "abc".to_owned()));
        assert_eq!(wrapped_line("one two three", 7), "one two\n  three\n");
    }

    #[test]
    fn texts_are_cut_at_words_and_paths_at_folders() {
        for (columns, cut) in [(20, "one, two three"), (13, "one, two …"), (8, "one …"), (5, "one …"), (3, "on…")]
        {
            assert_eq!(cut_words("one, two three", columns), cut);
        }
        for (columns, cut) in [(20, "a/bc/def/g.rs:5  f()"), (19, "…/def/g.rs:5  f()"), (3, "…/g.rs:5  f()")] {
            assert_eq!(cut_path("a/bc/def/g.rs:5  f()", columns), cut);
        }
        assert_eq!(cut_path("vkCmdDraw, command 1 of \"a/b\"", 5), "vkCmdDraw, command 1 of \"a/b\"");
    }
}
