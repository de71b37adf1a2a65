//! The cost of instrumentation, by the size of the module.

use lavascope_bench::{Bench, Suite};
use lavascope_instrument::{InstrumentOptions, RootLocation, instrument};
use lavascope_spirv::{Module, instruction, string_words};
use spirv::{
    AddressingModel, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl, MemoryModel, Op,
    StorageClass,
};

/// Nanoseconds for a byte: 100 megabytes in a second.
const BYTE: f64 = 10.0;

fn main() {
    let mut suite = Suite::default();
    for (name, share) in [("a load", 16), ("four loads", 4)] {
        for statements in [1_000, 20_000] {
            let words = shader(statements, share);
            let size = words.len() * 4;
            suite.add(Bench {
                name: format!("instrument a module of {size} bytes with {name} in 16 instructions"),
                limit: Some(BYTE * size as f64),
                run: Box::new(move |times| {
                    for _ in 0..times {
                        let module = Module::parse(&words).expect("a module");
                        let made = instrument(&module, &InstrumentOptions::new(RootLocation::Descriptor { set: 7 }));
                        std::hint::black_box(made.expect("a module that can be instrumented"));
                    }
                }),
                bare: None,
            });
        }
    }
    suite.main();
}

const ENTRY: u32 = 1;
const BUFFER: u32 = 2;
const VOID: u32 = 3;
const UINT: u32 = 4;
const WORDS: u32 = 5;
const BLOCK: u32 = 6;
const BLOCK_POINTER: u32 = 7;
const WORD_POINTER: u32 = 8;
const FUNCTION: u32 = 9;
const ZERO: u32 = 10;
const LABEL: u32 = 11;
const FIRST: u32 = 12;

/// A shader with this many statements, all additions; one in `share` instructions loads from a buffer at the sum so
/// far.
fn shader(statements: u32, share: u32) -> Vec<u32> {
    let mut words = vec![spirv::MAGIC_NUMBER, 0x1_0500, 0, 0, 0];
    let mut add = |op, operands: &[u32]| words.extend(instruction(op, operands));
    add(Op::Capability, &[Capability::Shader as u32]);
    add(Op::MemoryModel, &[AddressingModel::Logical as u32, MemoryModel::GLSL450 as u32]);
    let model = [ExecutionModel::GLCompute as u32, ENTRY];
    add(Op::EntryPoint, &[&model[..], &string_words("main"), &[BUFFER]].concat());
    add(Op::ExecutionMode, &[ENTRY, ExecutionMode::LocalSize as u32, 1, 1, 1]);
    add(Op::Decorate, &[BUFFER, Decoration::DescriptorSet as u32, 0]);
    add(Op::Decorate, &[BUFFER, Decoration::Binding as u32, 0]);
    add(Op::Decorate, &[WORDS, Decoration::ArrayStride as u32, 4]);
    add(Op::Decorate, &[BLOCK, Decoration::Block as u32]);
    add(Op::MemberDecorate, &[BLOCK, 0, Decoration::Offset as u32, 0]);
    add(Op::TypeVoid, &[VOID]);
    add(Op::TypeInt, &[UINT, 32, 0]);
    add(Op::TypeRuntimeArray, &[WORDS, UINT]);
    add(Op::TypeStruct, &[BLOCK, WORDS]);
    add(Op::TypePointer, &[BLOCK_POINTER, StorageClass::StorageBuffer as u32, BLOCK]);
    add(Op::TypePointer, &[WORD_POINTER, StorageClass::StorageBuffer as u32, UINT]);
    add(Op::TypeFunction, &[FUNCTION, VOID]);
    add(Op::Constant, &[UINT, ZERO, 0]);
    add(Op::Variable, &[BLOCK_POINTER, BUFFER, StorageClass::StorageBuffer as u32]);
    add(Op::Function, &[VOID, ENTRY, FunctionControl::NONE.bits(), FUNCTION]);
    add(Op::Label, &[LABEL]);
    let mut next = FIRST;
    let mut sum = ZERO;
    for number in 0..statements {
        if number % share == 0 {
            add(Op::AccessChain, &[WORD_POINTER, next, BUFFER, ZERO, sum]);
            add(Op::Load, &[UINT, next + 1, next]);
            sum = next + 1;
            next += 2;
        } else {
            let op = if number % 3 == 0 { Op::IMul } else { Op::BitwiseXor };
            add(op, &[UINT, next, sum, next.saturating_sub(1).max(ZERO)]);
            sum = next;
            next += 1;
        }
    }
    add(Op::Return, &[]);
    add(Op::FunctionEnd, &[]);
    words[3] = next;
    words
}
