//! A line as tokens, and a cursor over them that knows where it is.

use crate::error::{Result, ScenarioError};
use crate::parse::words::nearest_word;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A letter or underscore, then letters, digits, underscores.
    Word,
    /// Begins with a digit: numbers, and extents such as `64x64`.
    Number,
    Symbol,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) column: u32,
}

const SYMBOLS: [&str; 18] =
    ["=>", "->", ">=", "..", ".", ":", ",", "|", "[", "]", "{", "}", "=", "+", "-", ";", "(", ")"];

/// The tokens of a line without comment.
pub(crate) fn tokens(line: u32, text: &str) -> Result<Vec<Token<'_>>> {
    let mut found = Vec::new();
    let mut at = 0;
    // Columns count characters, and a text may hold any.
    let mut column = 1;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, length) = if first == ' ' {
            at += 1;
            column += 1;
            continue;
        } else if first.is_ascii_alphabetic() || first == '_' {
            (TokenKind::Word, word_length(rest))
        } else if first.is_ascii_digit() {
            (TokenKind::Number, word_length(rest))
        } else if let Some(symbol) = SYMBOLS.iter().find(|it| rest.starts_with(**it)) {
            (TokenKind::Symbol, symbol.len())
        } else {
            let what = if first == '\t' { "a tab; indent with spaces".to_owned() } else { format!("`{first}`") };
            return Err(ScenarioError { line, column, message: format!("unexpected {what}") });
        };
        found.push(Token { kind, text: &rest[..length], column });
        at += length;
        column += length as u32;
    }
    Ok(found)
}

fn word_length(text: &str) -> usize {
    text.bytes().take_while(|it| it.is_ascii_alphanumeric() || *it == b'_').count()
}

/// Reads the tokens of one statement.
pub(crate) struct TokenCursor<'a> {
    pub(crate) line: u32,
    tokens: &'a [Token<'a>],
    at: usize,
}

impl<'a> TokenCursor<'a> {
    pub(crate) fn new(line: u32, tokens: &'a [Token<'a>]) -> TokenCursor<'a> {
        TokenCursor { line, tokens, at: 0 }
    }

    /// The column of the next token, or the one behind the last.
    pub(crate) fn column(&self) -> u32 {
        match (self.tokens.get(self.at), self.tokens.last()) {
            (Some(next), _) => next.column,
            (None, Some(last)) => last.column + last.text.len() as u32,
            (None, None) => 1,
        }
    }

    pub(crate) fn peek(&self) -> Option<Token<'a>> {
        self.peek_at(0)
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).copied()
    }

    pub(crate) fn is_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.peek().is_some_and(|it| it.text == text)
    }

    /// Takes the next token if it is this one.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let found = self.is(text);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, text: &str) -> Result<()> {
        if self.take(text) { Ok(()) } else { Err(self.unexpected(&format!("`{text}`"))) }
    }

    pub(crate) fn word(&mut self, what: &str) -> Result<Token<'a>> {
        match self.peek() {
            Some(token) if token.kind == TokenKind::Word => {
                self.at += 1;
                Ok(token)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    pub(crate) fn next_is_word(&self) -> bool {
        self.peek().is_some_and(|it| it.kind == TokenKind::Word)
    }

    pub(crate) fn raw_number(&mut self, what: &str) -> Result<Token<'a>> {
        match self.peek() {
            Some(token) if token.kind == TokenKind::Number => {
                self.at += 1;
                Ok(token)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    pub(crate) fn number(&mut self, what: &str) -> Result<u64> {
        let token = self.raw_number(what)?;
        parse_number(token.text)
            .ok_or_else(|| self.error_at(token.column, format!("`{}` is no number: {what} is wanted", token.text)))
    }

    pub(crate) fn number32(&mut self, what: &str) -> Result<u32> {
        let column = self.column();
        u32::try_from(self.number(what)?).map_err(|_| self.error_at(column, format!("{what} is too large")))
    }

    pub(crate) fn end(&self) -> Result<()> {
        if self.is_end() { Ok(()) } else { Err(self.unexpected("the end of the line")) }
    }

    pub(crate) fn unexpected(&self, wanted: &str) -> ScenarioError {
        let found = self.peek().map_or("the line ends".to_owned(), |it| format!("found `{}`", it.text));
        self.error_at(self.column(), format!("{wanted} is wanted here, {found}"))
    }

    pub(crate) fn error_at(&self, column: u32, message: String) -> ScenarioError {
        ScenarioError { line: self.line, column, message }
    }

    /// An error about a word that is none of `allowed`.
    pub(crate) fn unknown<'w>(
        &self,
        token: Token<'_>,
        what: &str,
        allowed: impl Iterator<Item = &'w str> + Clone,
    ) -> ScenarioError {
        let message = match nearest_word(token.text, allowed.clone()) {
            Some(nearest) => format!("`{}` is no {what}: do you mean `{nearest}`?", token.text),
            None => {
                let list: Vec<&str> = allowed.take(24).collect();
                let list = if list.is_empty() { "none is declared".to_owned() } else { list.join(", ") };
                format!("`{}` is no {what}; allowed: {list}", token.text)
            }
        };
        self.error_at(token.column, message)
    }
}

/// Decimal, or hexadecimal behind `0x`.
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.bytes().all(|it| it.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}
