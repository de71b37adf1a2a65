//! What a stream that people read can show.

use std::io::{IsTerminal, stderr, stdout};

use console::Term;

/// Of files, pipes, and terminals that do not know their width.
const WIDTH_DEFAULT: usize = 80;
/// Narrower ones get lines that they break themselves.
const WIDTH_MIN: usize = 40;

pub(crate) struct Terminal {
    /// In columns.
    pub(crate) width: usize,
    pub(crate) has_colors: bool,
}

impl Terminal {
    pub(crate) fn stdout() -> Terminal {
        Terminal::new(stdout().is_terminal(), &Term::stdout())
    }

    pub(crate) fn stderr() -> Terminal {
        Terminal::new(stderr().is_terminal(), &Term::stderr())
    }

    fn new(is_terminal: bool, term: &Term) -> Terminal {
        let columns = term.size_checked().filter(|_| is_terminal).map_or(WIDTH_DEFAULT, |it| it.1.into());
        let width = if columns == 0 { WIDTH_DEFAULT } else { columns.max(WIDTH_MIN) };
        Terminal { width, has_colors: wants_colors(is_terminal, |name| std::env::var(name).ok()) }
    }
}

/// By the conventions of `NO_COLOR`, `CLICOLOR_FORCE` and `CLICOLOR`; the first of them wins.
fn wants_colors(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let value = |name: &str| variable(name).filter(|it| !it.is_empty());
    if value("NO_COLOR").is_some() {
        return false;
    }
    if value("CLICOLOR_FORCE").is_some_and(|it| it != "0") {
        return true;
    }
    let is_off = value("CLICOLOR").is_some_and(|it| it == "0") || value("TERM").is_some_and(|it| it == "dumb");
    is_terminal && !is_off
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_follow_the_conventions() {
        for (is_terminal, variables, expected) in [
            (false, &[][..], false),
            (true, &[], true),
            (true, &[("NO_COLOR", "1")], false),
            (true, &[("NO_COLOR", "")], true),
            (false, &[("CLICOLOR_FORCE", "1")], true),
            (false, &[("CLICOLOR_FORCE", "0")], false),
            (true, &[("CLICOLOR", "0")], false),
            (true, &[("TERM", "dumb")], false),
            (true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        ] {
            let variable = |name: &str| variables.iter().find(|it| it.0 == name).map(|it| it.1.to_owned());
            assert_eq!(wants_colors(is_terminal, variable), expected, "{is_terminal} {variables:?}");
        }
    }
}
