//! Rust text with its strings and comments told apart from its code.
//!
//! A lexer of just this one distinction, so that a pattern inside a string or a comment is never taken for code.
//! It trusts the text to compile and does not report errors.

/// A source text twice, each time with everything else blanked out; lines keep their numbers.
pub(crate) struct RustSource {
    /// ASCII only, so that offsets are bytes and characters alike. Strings keep their quotes.
    pub(crate) code: String,
    pub(crate) comments: String,
    line_starts: Vec<usize>,
}

impl RustSource {
    pub(crate) fn new(text: &str) -> RustSource {
        let mut lexer = Lexer { chars: text.chars().collect(), at: 0, code: String::new(), comments: String::new() };
        lexer.run();
        let breaks = lexer.code.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(breaks).collect();
        RustSource { code: lexer.code, comments: lexer.comments, line_starts }
    }

    /// The number, from 1, of the line that holds this offset into `code`.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// Offsets of a word in the code.
    pub(crate) fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        words(&self.code, word)
    }

    /// The code after an offset, without leading white space.
    pub(crate) fn after(&self, offset: usize) -> &str {
        self.code[offset..].trim_start()
    }

    /// The offset of the bracket that closes the one at `open`.
    pub(crate) fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (at, byte) in self.code.bytes().enumerate().skip(open) {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(at);
            }
        }
        None
    }
}

/// Offsets of a word that is not a part of a longer one.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

pub(crate) fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// The identifier that a text begins with, which is empty when it begins with none.
pub(crate) fn leading_word(text: &str) -> &str {
    &text[..text.find(|char| !is_word(char)).unwrap_or(text.len())]
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    code: String,
    comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenClass {
    Code,
    Comment,
    Literal,
}

impl Lexer {
    fn run(&mut self) {
        while let Some(char) = self.peek(0) {
            match (char, self.peek(1)) {
                ('/', Some('/')) => self.line_comment(),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('r', Some('"' | '#')) => self.raw_string_or_word(),
                ('\'', _) => self.char_or_lifetime(),
                _ => self.emit(TokenClass::Code),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn emit(&mut self, part: TokenClass) {
        let Some(char) = self.peek(0) else { return };
        self.at += 1;
        let keep = |wanted: bool| if wanted || char == '\n' { char } else { ' ' };
        let code = keep(part == TokenClass::Code);
        self.code.push(if code.is_ascii() { code } else { 'x' });
        self.comments.push(keep(part == TokenClass::Comment));
    }

    fn emit_many(&mut self, part: TokenClass, count: usize) {
        for _ in 0..count {
            self.emit(part);
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|it| it != '\n') {
            self.emit(TokenClass::Comment);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.peek(0).is_some() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                _ => {
                    self.emit(TokenClass::Comment);
                    continue;
                }
            }
            self.emit_many(TokenClass::Comment, 2);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.emit(TokenClass::Code);
        while let Some(char) = self.peek(0) {
            match char {
                '"' => return self.emit(TokenClass::Code),
                '\\' => self.emit_many(TokenClass::Literal, 2),
                _ => self.emit(TokenClass::Literal),
            }
        }
    }

    fn raw_string_or_word(&mut self) {
        let hashes = self.chars[self.at + 1..].iter().take_while(|it| **it == '#').count();
        let opens = self.peek(1 + hashes) == Some('"') && self.begins_literal();
        if !opens {
            return self.emit(TokenClass::Code);
        }
        self.emit_many(TokenClass::Code, 2 + hashes);
        let closes = |it: &Self| it.peek(0) == Some('"') && (1..=hashes).all(|ahead| it.peek(ahead) == Some('#'));
        while self.peek(0).is_some() && !closes(self) {
            self.emit(TokenClass::Literal);
        }
        self.emit_many(TokenClass::Code, 1 + hashes);
    }

    /// Whether the `r` here is a literal's prefix (`r`, `br`, `cr`) and not the end of a word.
    fn begins_literal(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map(|at| self.chars[at]);
        match before(1) {
            Some('b' | 'c') => !before(2).is_some_and(is_word),
            other => !other.is_some_and(is_word),
        }
    }

    fn char_or_lifetime(&mut self) {
        let escaped = self.peek(1) == Some('\\');
        if !escaped && self.peek(2) != Some('\'') {
            return self.emit(TokenClass::Code);
        }
        self.emit(TokenClass::Code);
        self.emit_many(TokenClass::Literal, if escaped { 2 } else { 1 });
        while self.peek(0).is_some_and(|it| it != '\'') {
            self.emit(TokenClass::Literal);
        }
        self.emit(TokenClass::Code);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        RustSource::new(text).code
    }

    #[test]
    fn strings_are_blanked_and_keep_their_lines() {
        assert_eq!(code("f(\"a\\\"{\", 1)"), "f(\"    \", 1)");
        assert_eq!(code("r#\"a\"\n}\"# + br\"}\" + r#type"), "r#\"  \n \"# + br\" \" + r#type");
        assert_eq!(code("number\"x\""), "number\" \"");
    }

    #[test]
    fn chars_are_blanked_and_lifetimes_are_not() {
        assert_eq!(code(r"'{' '\'' '\u{7d}' b'}' &'a str"), r"' ' '  ' '      ' b' ' &'a str");
    }

    #[test]
    fn comments_nest_and_are_kept_apart() {
        let source = RustSource::new("a /* b /* c */ d */ e // f\ng");
        assert_eq!(source.code, format!("a {} e {}\ng", " ".repeat(17), " ".repeat(4)));
        assert_eq!(source.comments, "  /* b /* c */ d */   // f\n ");
    }

    #[test]
    fn offsets_have_lines_and_brackets_have_partners() {
        let source = RustSource::new("fn é() {\n  [\"]\"]\n}\n");
        let open = source.code.find('{').unwrap();
        assert_eq!(source.closing(open).map(|it| source.line_of(it)), Some(3));
        assert_eq!(source.line_of(0), 1);
        assert_eq!(source.words("fn").collect::<Vec<_>>(), [0]);
        assert_eq!(words("fnx xfn fn", "fn").collect::<Vec<_>>(), [8]);
        assert_eq!(leading_word("name(x)"), "name");
    }
}
