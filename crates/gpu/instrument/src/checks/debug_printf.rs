//! Prints of shaders with `debugPrintfEXT`: written as records of their own, and decoded to text.

use lavascope_spirv::{Id, Instruction};
use smallvec::SmallVec;
use spirv::{NonsemanticDebugprintfOp as Printing, Op};

use crate::ShaderInvocation;
use crate::interface::fault_records::HEAD_WORDS;
use crate::rewrite::function::FunctionRewriter;

/// The error word of a record that is something printed.
pub(crate) const PRINTED: u32 = 5;
/// Longer ones are not printed.
const ARGUMENTS_MAX: usize = 64;

/// Something that an invocation printed.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintfRecord {
    pub shader: u32,
    pub instruction: u32,
    pub invocation: ShaderInvocation,
    /// The id of the format in the module: an `OpString`.
    pub format: u32,
    /// Vectors component by component, numbers of 64 bits as two words.
    pub arguments: Vec<u32>,
}

impl PrintfRecord {
    /// The text, by its format.
    pub fn text(&self, format: &str) -> String {
        let mut text = String::new();
        let mut words = self.arguments.iter().copied();
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            text += &rest[..at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                text.push('%');
                rest = after;
                continue;
            }
            let end = rest.find(|it: char| it.is_ascii_alphabetic() && it != 'v' && it != 'l');
            let Some(end) = end else { break };
            let (how, kind) = (&rest[..end], rest.as_bytes()[end]);
            rest = &rest[end + 1..];
            // `%lu` and `%ul` both mean 64 bits.
            let is_wide = how.contains('l') || kind == b'u' && rest.starts_with('l');
            rest = if how.contains('l') { rest } else { rest.strip_prefix('l').filter(|_| is_wide).unwrap_or(rest) };
            let count = how.split_once('v').and_then(|it| it.1.trim_end_matches('l').parse().ok()).unwrap_or(1);
            let precision = how.split('v').next().and_then(|it| it.split_once('.')?.1.parse().ok());
            let one = |_| one_number(&mut words, kind, is_wide, precision);
            text += &(0..count).map(one).collect::<Vec<String>>().join(", ");
        }
        text + rest
    }
}

fn one_number(words: &mut impl Iterator<Item = u32>, kind: u8, is_wide: bool, precision: Option<usize>) -> String {
    let low = words.next().unwrap_or(0);
    let wide = if is_wide { u64::from(low) | u64::from(words.next().unwrap_or(0)) << 32 } else { u64::from(low) };
    match kind {
        b'd' | b'i' if is_wide => (wide as i64).to_string(),
        b'd' | b'i' => (low as i32).to_string(),
        b'x' => format!("{wide:x}"),
        b'X' => format!("{wide:X}"),
        b'o' => format!("{wide:o}"),
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
            let number = if is_wide { f64::from_bits(wide) } else { f64::from(f32::from_bits(low)) };
            match kind {
                b'e' | b'E' => format!("{number:e}"),
                b'g' | b'G' => number.to_string(),
                _ => format!("{number:.0$}", precision.unwrap_or(6)),
            }
        }
        _ => wide.to_string(),
    }
}

impl FunctionRewriter<'_, '_> {
    /// Whether an instruction prints, and printing is asked for.
    pub(crate) fn is_printing(&self, instruction: Instruction<'_>) -> bool {
        let is_set = |id| self.cx.module.definition(id).is_some_and(|it| it.text(2) == "NonSemantic.DebugPrintf");
        self.cx.options.prints && instruction.word(4) == Printing::DebugPrintf as u32 && is_set(instruction.id(3))
    }

    /// Writes a print into the records, if it fits.
    pub(crate) fn print(&mut self, item: Instruction<'_>) {
        self.copy(item);
        let mut words: SmallVec<[u32; 8]> = SmallVec::new();
        item.words_from(6).iter().for_each(|it| self.argument(Id(*it), &mut words));
        if words.len() > ARGUMENTS_MAX || !self.can_split {
            return;
        }
        self.cx.has_prints = true;
        let uint = self.cx.ids.uint;
        let size = self.cx.uint_constant(HEAD_WORDS + 1 + words.len() as u32);
        let (instruction, format) = (self.cx.uint_constant(item.at.0), self.cx.uint_constant(item.word(5)));
        let print = self.cx.ids.print;
        let start = self.cx.call(&mut self.out, uint, print, &[instruction, size, format]);
        let zero = self.cx.uint_constant(0);
        let fits = self.emit_bool(Op::INotEqual, &[start, zero]);
        self.emit_guarded(fits, None, |body, _| {
            let output = body.cx.output(&mut body.out);
            for (place, word) in (0..).zip(words) {
                let place = body.cx.uint_constant(place);
                let place = body.emit_result(Op::IAdd, uint, &[start, place]);
                body.cx.store_word(&mut body.out, output.words, place, word);
            }
        });
    }

    /// The words of an argument.
    fn argument(&mut self, id: Id, words: &mut SmallVec<[u32; 8]>) {
        let (uint, pair) = (self.cx.ids.uint, self.cx.ids.uint_pair);
        let Some(ty) = self.cx.types.of_value(id).and_then(|it| self.cx.module.definition(it)) else { return };
        match (ty.op(), ty.word(2)) {
            (Some(Op::TypeVector), _) => {
                for component in 0..ty.word(3).min(4) {
                    let part = self.emit_result(Op::CompositeExtract, ty.word(2), &[id.0, component]);
                    let number = self.cx.module.definition(ty.id(2));
                    self.scalar(part, number.map_or((None, 0), |it| (it.op(), it.word(2))), words);
                }
            }
            (Some(Op::TypeInt | Op::TypeFloat), 64) => {
                let both = self.emit_result(Op::Bitcast, pair, &[id.0]);
                words.extend([0, 1].map(|half| self.emit_result(Op::CompositeExtract, uint, &[both, half])));
            }
            (Some(Op::TypeInt), bits) if bits != 32 => words.extend(self.as_uint(id)),
            (op, bits) => self.scalar(id.0, (op, bits), words),
        }
    }

    /// The word of a number of 32 bits or less, or of a truth value.
    fn scalar(&mut self, id: u32, (op, bits): (Option<Op>, u32), words: &mut SmallVec<[u32; 8]>) {
        let uint = self.cx.ids.uint;
        let word = match (op, bits) {
            (Some(Op::TypeInt | Op::TypeFloat), 32) => {
                let is_uint = self.cx.types.of_value(Id(id)).is_some_and(|it| it.0 == uint);
                if is_uint { id } else { self.emit_result(Op::Bitcast, uint, &[id]) }
            }
            (Some(Op::TypeFloat), 16) => {
                let float = self.cx.editor.find_or_add_type(Op::TypeFloat, &[32]).0;
                let wide = self.emit_result(Op::FConvert, float, &[id]);
                self.emit_result(Op::Bitcast, uint, &[wide])
            }
            (Some(Op::TypeBool), _) => {
                let [no, yes] = [0, 1].map(|it| self.cx.uint_constant(it));
                self.emit_result(Op::Select, uint, &[id, yes, no])
            }
            _ => self.cx.uint_constant(0),
        };
        words.push(word);
    }
}
