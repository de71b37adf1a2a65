//! What a terminal shows of colored text, as a picture (SVG).

use std::fmt::Write;

/// Longer lines go on in the next row.
const COLUMNS: usize = 100;
const LINE_HEIGHT: usize = 20;
const LETTER_WIDTH: f64 = 8.43;
const MARGIN: usize = 16;

const BACKGROUND: &str = "#1e1e2e";
const FOREGROUND: &str = "#cdd6f4";
/// The colors 30 to 37: black, red, green, yellow, blue, magenta, cyan, white.
const COLORS: [&str; 8] = ["#6c7086", "#f38ba8", "#a6e3a1", "#f9e2af", "#89b4fa", "#f5c2e7", "#94e2d5", "#cdd6f4"];

/// How letters look, by escape sequences (SGR).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LetterStyle {
    is_bold: bool,
    color: Option<usize>,
}

impl LetterStyle {
    /// After the numbers of a sequence, like `1;31`.
    fn changed_by(mut self, numbers: &str) -> LetterStyle {
        for number in numbers.split(';') {
            match number.parse::<usize>() {
                Ok(1) => self.is_bold = true,
                Ok(22) => self.is_bold = false,
                Ok(code @ 30..=37) => self.color = Some(code - 30),
                Ok(code @ 90..=97) => self.color = Some(code - 90),
                Ok(39) => self.color = None,
                Ok(0) | Err(_) => self = LetterStyle::default(),
                Ok(_) => {}
            }
        }
        self
    }

    fn attributes(self) -> String {
        let color = self.color.map_or(String::new(), |it| format!(" fill=\"{}\"", COLORS[it]));
        let weight = if self.is_bold { " font-weight=\"bold\"" } else { "" };
        format!("{color}{weight}")
    }
}

/// The picture of a terminal in which a command was typed.
pub(crate) fn render(command: &str, output: &str) -> String {
    let rows = rows(&format!("\x1b[1m$ {command}\x1b[0m\n{output}"));
    let (width, height) =
        ((COLUMNS as f64 * LETTER_WIDTH) as usize + 2 * MARGIN, rows.len() * LINE_HEIGHT + 2 * MARGIN);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace\" font-size=\"14\" fill=\"{FOREGROUND}\" xml:space=\"preserve\">\n"
    );
    for (at, row) in rows.iter().enumerate() {
        let _ = write!(picture, "<text x=\"{MARGIN}\" y=\"{}\">", MARGIN + at * LINE_HEIGHT + 15);
        for (style, text) in row {
            let _ = write!(picture, "<tspan{}>{}</tspan>", style.attributes(), escaped(text));
        }
        picture.push_str("</text>\n");
    }
    picture + "</g>\n</svg>\n"
}

/// Rows of pieces of one style each.
fn rows(text: &str) -> Vec<Vec<(LetterStyle, String)>> {
    let mut rows = Vec::new();
    let mut style = LetterStyle::default();
    for line in text.lines() {
        let mut row: Vec<(LetterStyle, String)> = Vec::new();
        let mut column = 0;
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            if letter == '\x1b' {
                let sequence: String = letters.by_ref().skip(1).take_while(|it| *it != 'm').collect();
                style = style.changed_by(&sequence);
                continue;
            }
            if column == COLUMNS {
                rows.push(std::mem::take(&mut row));
                column = 0;
            }
            column += 1;
            match row.last_mut() {
                Some((last, text)) if *last == style => text.push(letter),
                _ => row.push((style, letter.to_string())),
            }
        }
        rows.push(row);
    }
    rows
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[test]
fn colored_text_becomes_pieces_of_one_style() {
    let picture = render("a < b", "\x1b[1;31merror\x1b[0m: x\x1b[32m\ny\x1b[39m");
    assert!(picture.contains("<tspan font-weight=\"bold\">$ a &lt; b</tspan>"), "{picture}");
    assert!(
        picture.contains("<tspan fill=\"#f38ba8\" font-weight=\"bold\">error</tspan><tspan>: x</tspan>"),
        "{picture}"
    );
    assert!(picture.contains("<tspan fill=\"#a6e3a1\">y</tspan>"), "{picture}");
    assert_eq!(rows(&"z".repeat(COLUMNS + 1)).len(), 2);
}
