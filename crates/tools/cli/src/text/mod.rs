//! Text for the terminal: colours, columns, and writing it out.

pub(crate) mod code_pages;
pub(crate) mod progress;
pub(crate) mod terminal;

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use terminal::Terminal;

/// Colours, or nothing where they would be noise.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    is_on: bool,
}

impl Paint {
    pub(crate) fn for_stdout() -> Paint {
        Paint { is_on: Terminal::stdout().has_colors }
    }

    pub(crate) fn for_stderr() -> Paint {
        Paint { is_on: Terminal::stderr().has_colors }
    }

    pub(crate) fn bold(self, text: impl Display) -> String {
        self.with("1", text)
    }

    pub(crate) fn good(self, text: impl Display) -> String {
        self.with("32", text)
    }

    pub(crate) fn bad(self, text: impl Display) -> String {
        self.with("31", text)
    }

    pub(crate) fn note(self, text: impl Display) -> String {
        self.with("33", text)
    }

    fn with(self, code: &str, text: impl Display) -> String {
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Rows as aligned columns, two spaces apart, each line indented by two.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| rows.iter().filter_map(|it| it.get(at)).map(|it| it.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        out.push_str(format!("  {}", cells.join("  ")).trim_end());
        out.push('\n');
    }
    out
}

/// Writes to stdout. A reader that went away (`lavascope … | head`) has seen enough, which is no failure.
pub(crate) fn emit(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes to stderr. An error is ignored: there is no other place to report it.
pub(crate) fn emit_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Writes `value` as JSON.
pub(crate) fn emit_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    emit(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_tail() {
        let rows = [vec!["a".to_owned(), "bb".to_owned(), String::new()], vec!["cccc".to_owned(), "d".to_owned()]];
        assert_eq!(columns(&rows), "  a     bb\n  cccc  d\n");
        assert_eq!(columns(&[]), "");
    }

    #[test]
    fn without_colours_text_is_left_alone() {
        assert_eq!(Paint { is_on: false }.bad("x"), "x");
        assert_eq!(Paint { is_on: true }.bad("x"), "\x1b[31mx\x1b[0m");
    }
}
