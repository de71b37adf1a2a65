//! Which line of its source an instruction came from.
//!
//! Two kinds of line information are supported: `OpLine` with `OpSource`, and the extended instructions of
//! `NonSemantic.Shader.DebugInfo.100`. In both the text may have `#line` directives of its own, which count.

use spirv::{NonsemanticShaderDebuginfo100Op as Debug, Op};

use crate::{Id, Instruction, InstructionIndex, Module};

/// A place in the source of a shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The name that the compiler was given; it may be empty.
    pub file: String,
    /// Counted from one.
    pub line: u32,
    /// Zero if it is unknown.
    pub column: u32,
    /// The line itself, where the module has its source.
    pub text: Option<String>,
}

/// A line, and what names its file: the string of `OpLine` or the `DebugSource`.
struct LineReference {
    file: Id,
    line: u32,
    column: u32,
}

impl Module {
    /// The source line of an instruction, if the module has it.
    pub fn source(&self, at: InstructionIndex) -> Option<SourceLine> {
        let block = &self.blocks()[self.block_containing(at)?];
        let mut before = self.instructions(block.instructions.start..at.0 + 1).rev();
        before.find_map(|it| self.line_of(it))?.map(|it| self.describe(&it))
    }

    /// The texts that the module carries, each with the name of its file.
    pub fn sources(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for instruction in self.instructions(self.globals()) {
            let is_debug = instruction.is(Op::ExtInst)
                && instruction.word(4) == Debug::DebugSource as u32
                && self.is_debug_info(instruction);
            if instruction.is(Op::Source) {
                all.extend(self.plain_text(instruction.id(3)).map(|text| (self.string(instruction.id(3)), text)));
            } else if is_debug {
                all.extend(self.debug_text(instruction).map(|text| (self.string(instruction.id(5)), text)));
            }
        }
        all
    }

    /// None if an instruction has no line information, and `Some(None)` if it ends the current line.
    fn line_of(&self, instruction: Instruction<'_>) -> Option<Option<LineReference>> {
        match instruction.op()? {
            Op::Line => Some(Some(LineReference {
                file: instruction.id(1),
                line: instruction.word(2),
                column: instruction.word(3),
            })),
            Op::NoLine => Some(None),
            Op::ExtInst if instruction.word(4) == Debug::DebugLine as u32 && self.is_debug_info(instruction) => {
                let number = |place| {
                    self.definition(instruction.id(place)).filter(|item| item.is(Op::Constant)).map(|item| item.word(3))
                };
                Some(Some(LineReference { file: instruction.id(5), line: number(6)?, column: number(8).unwrap_or(0) }))
            }
            Op::ExtInst if instruction.word(4) == Debug::DebugNoLine as u32 && self.is_debug_info(instruction) => {
                Some(None)
            }
            _ => None,
        }
    }

    fn is_debug_info(&self, instruction: Instruction<'_>) -> bool {
        let set = self.definition(instruction.id(3)).filter(|it| it.is(Op::ExtInstImport));
        set.is_some_and(|it| it.text(2).starts_with("NonSemantic.Shader.DebugInfo"))
    }

    fn describe(&self, found: &LineReference) -> SourceLine {
        let (file, text) = match self.definition(found.file) {
            Some(instruction) if instruction.is(Op::ExtInst) => {
                (self.string(instruction.id(5)), self.debug_text(instruction))
            }
            _ => (self.string(found.file), self.plain_text(found.file)),
        };
        let text = text.and_then(|it| line_in(&it, &file, found.line, DefaultFile::Own));
        // A `#line` directive may name another file.
        let elsewhere = || self.sources().iter().find_map(|it| line_in(&it.1, &file, found.line, DefaultFile::Other));
        let text = text.or_else(elsewhere);
        SourceLine { file, line: found.line, column: found.column, text }
    }

    fn string(&self, id: Id) -> String {
        self.definition(id).filter(|it| it.is(Op::String)).map(|it| it.text(2).into_owned()).unwrap_or_default()
    }

    /// The text of `OpSource` and its continuations.
    fn plain_text(&self, file: Id) -> Option<String> {
        let sources = self.instructions(self.globals()).skip_while(|it| !(it.is(Op::Source) && it.id(3) == file));
        let mut parts = sources.enumerate().take_while(|(at, it)| *at == 0 || it.is(Op::SourceContinued));
        let first = parts.next().filter(|it| it.1.words().len() > 4)?.1.text(4).into_owned();
        Some(parts.fold(first, |all, (_, it)| all + &it.text(1)))
    }

    /// The text of `DebugSource` and its continuations.
    fn debug_text(&self, source: Instruction<'_>) -> Option<String> {
        let first = Some(self.string(source.id(6))).filter(|it| !it.is_empty())?;
        let more = self.instructions(source.at.0 + 1..self.globals().end.max(source.at.0 + 1));
        let is_more = |it: &Instruction<'_>| it.is(Op::ExtInst) && it.word(4) == Debug::DebugSourceContinued as u32;
        Some(more.take_while(is_more).fold(first, |all, it| all + &self.string(it.id(5))))
    }
}

/// The file of the lines of a source without a file name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefaultFile {
    Own,
    Other,
}

/// The text of a line number, counted from the nearest `#line` directive before it.
fn line_in(source: &str, file: &str, line: u32, whose: DefaultFile) -> Option<String> {
    let mut best: Option<(u32, &str)> = None;
    let (mut first, mut number, mut is_ours) = (1, 1u32, whose == DefaultFile::Own);
    for text in source.lines() {
        if let Some((next, name)) = directive(text) {
            (first, number) = (next, next);
            is_ours = name.map_or(whose == DefaultFile::Own, |it| it == file);
            continue;
        }
        if number == line && is_ours && best.is_none_or(|it| it.0 <= first) {
            best = Some((first, text));
        }
        number = number.saturating_add(1);
    }
    best.map(|it| it.1.to_owned())
}

/// The number and the file of a `#line` directive: the line behind it has that number.
fn directive(text: &str) -> Option<(u32, Option<&str>)> {
    let rest = text.trim_start().strip_prefix('#')?.trim_start().strip_prefix("line")?;
    let mut words = rest.split_whitespace();
    let number = words.next()?.parse().ok()?;
    Some((number, rest.split('"').nth(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_of_the_source_count() {
        let source = "// made\n#line 1\nfirst\nsecond\n#line 10\nten\neleven\n#line 2 \"other\"\nelsewhere";
        let line_of = |source: &str, file, line| line_in(source, file, line, DefaultFile::Own);
        assert_eq!(line_of(source, "", 2).as_deref(), Some("second"));
        assert_eq!(line_of(source, "", 11).as_deref(), Some("eleven"));
        assert_eq!(line_of(source, "other", 2).as_deref(), Some("elsewhere"));
        assert_eq!(line_of(source, "", 12), None);
        assert_eq!(line_in(source, "other", 2, DefaultFile::Other).as_deref(), Some("elsewhere"));
        assert_eq!(line_in(source, "third", 2, DefaultFile::Other), None);
        // Line 40 is a directive: the next line is line 10.
        let lines: Vec<String> =
            (1..=50).map(|it| if it == 40 { "#line 10".into() } else { format!("{it}") }).collect();
        assert_eq!(line_of(&lines.join("\n"), "", 15).as_deref(), Some("46"));
    }
}
