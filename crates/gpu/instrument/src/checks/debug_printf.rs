//! Prints of shaders with `debugPrintfEXT`: written as records of their own, and decoded to text.

use lavascope_spirv::{Id, Instruction, InstructionIndex, Module};
use smallvec::SmallVec;
use spirv::{NonsemanticDebugprintfOp as Printing, Op};

use crate::ShaderInvocation;
use crate::interface::fault_records::HEAD_WORDS;
use crate::interface::print_format::{PrintArgument, PrintProblem, PrintScalar, check_print, format_print};
use crate::rewrite::function::FunctionRewriter;

/// The error word of a record that is something printed.
pub(crate) const PRINTED: u32 = 5;

/// Something that an invocation printed.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintfRecord {
    pub shader: u32,
    pub instruction: u32,
    pub invocation: ShaderInvocation,
    /// The id of the format in the module: an `OpString`.
    pub format: u32,
    /// Vectors component by component; numbers of 64 bits and pointers as two words.
    pub arguments: Vec<u32>,
}

impl PrintfRecord {
    /// The text, by the format in the module. None if the module has no such print, or a print with an error.
    pub fn text(&self, module: &Module) -> Option<String> {
        let is_inside = self.instruction < module.len();
        let print = is_inside.then(|| module.instruction(InstructionIndex(self.instruction)))?;
        let format = module.definition(Id(self.format)).filter(|it| it.is(Op::String) && is_print(module, print))?;
        let arguments = PrintArgument::all(module, print);
        let is_whole = arguments.iter().map(PrintArgument::words).sum::<usize>() == self.arguments.len();
        format_print(&format.text(2), &arguments, &self.arguments).ok().filter(|_| is_whole)
    }
}

/// What is wrong with the formats of a module, by instruction.
pub fn print_problems(module: &Module) -> Vec<(InstructionIndex, PrintProblem)> {
    let prints = module.all().filter(|it| is_print(module, *it));
    prints.flat_map(|print| check_print(module, print).into_iter().map(move |it| (print.at, it))).collect()
}

fn is_print(module: &Module, instruction: Instruction<'_>) -> bool {
    let is_set = |id| module.definition(id).is_some_and(|it| it.text(2) == "NonSemantic.DebugPrintf");
    instruction.is(Op::ExtInst) && instruction.word(4) == Printing::DebugPrintf as u32 && is_set(instruction.id(3))
}

impl FunctionRewriter<'_, '_> {
    /// Whether an instruction prints, and printing is asked for.
    pub(crate) fn is_printing(&self, instruction: Instruction<'_>) -> bool {
        self.cx.options.prints && is_print(self.cx.module, instruction)
    }

    /// Writes a print into the records, if it fits.
    pub(crate) fn print(&mut self, item: Instruction<'_>) {
        self.copy(item);
        let arguments = PrintArgument::all(self.cx.module, item);
        if !self.can_split || check_print(self.cx.module, item).iter().any(|it| it.is_error) {
            return;
        }
        let mut words: SmallVec<[u32; 8]> = SmallVec::new();
        for (id, argument) in item.words_from(6).iter().zip(&arguments) {
            self.argument(Id(*id), argument, &mut words);
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

    /// The words of an argument: vectors component by component.
    fn argument(&mut self, id: Id, argument: &PrintArgument, words: &mut SmallVec<[u32; 8]>) {
        match *argument {
            PrintArgument::Scalar(scalar) => self.scalar(id.0, scalar, words),
            PrintArgument::Vector(scalar, count) => {
                let component = self.cx.types.of_value(id).and_then(|it| self.cx.module.definition(it));
                let Some(component) = component.map(|it| it.word(2)) else { return };
                for at in 0..count {
                    let part = self.emit_result(Op::CompositeExtract, component, &[id.0, at]);
                    self.scalar(part, scalar, words);
                }
            }
            PrintArgument::Text(_) | PrintArgument::Other => {}
        }
    }

    /// The words of a number, a truth value or a pointer. Fewer bits than 32 are extended.
    fn scalar(&mut self, id: u32, scalar: PrintScalar, words: &mut SmallVec<[u32; 8]>) {
        let (uint, pair) = (self.cx.ids.uint, self.cx.ids.uint_pair);
        let word = match scalar {
            PrintScalar::Int { bits: 64, .. } | PrintScalar::Float { bits: 64 } | PrintScalar::Pointer => {
                let both = self.emit_result(Op::Bitcast, pair, &[id]);
                words.extend([0, 1].map(|half| self.emit_result(Op::CompositeExtract, uint, &[both, half])));
                return;
            }
            PrintScalar::Int { bits: 32, is_signed: false } => id,
            PrintScalar::Int { bits: 32, is_signed: true } | PrintScalar::Float { bits: 32 } => {
                self.emit_result(Op::Bitcast, uint, &[id])
            }
            PrintScalar::Int { is_signed: false, .. } => self.emit_result(Op::UConvert, uint, &[id]),
            PrintScalar::Int { is_signed: true, .. } => {
                let signed = self.cx.editor.find_or_add_type(Op::TypeInt, &[32, 1]).0;
                let wide = self.emit_result(Op::SConvert, signed, &[id]);
                self.emit_result(Op::Bitcast, uint, &[wide])
            }
            PrintScalar::Float { .. } => {
                let float = self.cx.editor.find_or_add_type(Op::TypeFloat, &[32]).0;
                let wide = self.emit_result(Op::FConvert, float, &[id]);
                self.emit_result(Op::Bitcast, uint, &[wide])
            }
            PrintScalar::Bool => {
                let [no, yes] = [0, 1].map(|it| self.cx.uint_constant(it));
                self.emit_result(Op::Select, uint, &[id, yes, no])
            }
        };
        words.push(word);
    }
}
