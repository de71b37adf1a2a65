//! What parsing and reflection cost, for a small module and for large ones.

use lavascope_bench::{Bench, Suite};
use lavascope_spirv::{Module, Specialization, instruction, reflect, string_words};
use spirv::{
    AddressingModel, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl, MemoryModel, Op,
    SelectionControl, StorageClass,
};

fn main() {
    let mut suite = Suite::default();
    for functions in [1, 40, 400] {
        let words = shader(functions);
        let size = words.len();
        let module = Module::parse(&words).expect("a module");
        suite.add(Bench {
            name: format!("parse a module of {size} words"),
            limit: Some(PARSE * size as f64),
            run: Box::new(move |times| {
                for _ in 0..times {
                    std::hint::black_box(Module::parse(&words).expect("a module"));
                }
            }),
            bare: None,
        });
        suite.add(Bench {
            name: format!("reflect on a module of {size} words"),
            limit: Some(REFLECT * size as f64),
            run: Box::new(move |times| {
                for _ in 0..times {
                    let found = reflect(&module, 0, &Specialization::default()).expect("an entry point");
                    assert!(found.is_complete);
                    std::hint::black_box(found);
                }
            }),
            bare: None,
        });
    }
    suite.main();
}

/// Nanoseconds for a word, whatever the size: both must stay linear.
const PARSE: f64 = 20.0;
const REFLECT: f64 = 250.0;

const ENTRY: u32 = 1;
const BUFFER: u32 = 2;
const VOID: u32 = 3;
const UINT: u32 = 4;
const BOOL: u32 = 5;
const ZERO: u32 = 6;
const ONE: u32 = 7;
const WORDS: u32 = 8;
const BLOCK: u32 = 9;
const POINTER_BLOCK: u32 = 10;
const POINTER_UINT: u32 = 11;
const POINTER_LOCAL: u32 = 12;
const PLAIN: u32 = 13;
const TAKER: u32 = 14;
const FIRST: u32 = 15;

/// A shader of so many functions, each with eight branches, and a main function that calls them all.
fn shader(functions: u32) -> Vec<u32> {
    let mut words = vec![spirv::MAGIC_NUMBER, 0x1_0500, 0, 0, 0];
    let mut next = FIRST;
    let mut bodies = Vec::new();
    let mut calls = Vec::new();
    for number in 0..functions {
        let function = next;
        next += 1;
        bodies.extend(body(function, &mut next));
        let argument = if number % 2 == 0 { ZERO } else { ONE };
        calls.extend(instruction(Op::FunctionCall, &[VOID, next, function, argument]));
        next += 1;
    }
    let label = next;
    words[3] = label + 1;
    words.extend(head());
    words.extend(instruction(Op::Function, &[VOID, ENTRY, FunctionControl::NONE.bits(), PLAIN]));
    words.extend(instruction(Op::Label, &[label]));
    words.extend(calls);
    words.extend([instruction(Op::Return, &[]), instruction(Op::FunctionEnd, &[])].concat());
    words.extend(bodies);
    words
}

fn head() -> Vec<u32> {
    let class = StorageClass::StorageBuffer as u32;
    let model = [AddressingModel::Logical as u32, MemoryModel::GLSL450 as u32];
    let entry = [&[ExecutionModel::GLCompute as u32, ENTRY][..], &string_words("main"), &[BUFFER]].concat();
    [
        instruction(Op::Capability, &[Capability::Shader as u32]),
        instruction(Op::MemoryModel, &model),
        instruction(Op::EntryPoint, &entry),
        instruction(Op::ExecutionMode, &[ENTRY, ExecutionMode::LocalSize as u32, 1, 1, 1]),
        instruction(Op::Decorate, &[WORDS, Decoration::ArrayStride as u32, 4]),
        instruction(Op::Decorate, &[BLOCK, Decoration::Block as u32]),
        instruction(Op::MemberDecorate, &[BLOCK, 0, Decoration::Offset as u32, 0]),
        instruction(Op::Decorate, &[BUFFER, Decoration::DescriptorSet as u32, 0]),
        instruction(Op::Decorate, &[BUFFER, Decoration::Binding as u32, 0]),
        instruction(Op::TypeVoid, &[VOID]),
        instruction(Op::TypeInt, &[UINT, 32, 0]),
        instruction(Op::TypeBool, &[BOOL]),
        instruction(Op::Constant, &[UINT, ZERO, 0]),
        instruction(Op::Constant, &[UINT, ONE, 1]),
        instruction(Op::TypeRuntimeArray, &[WORDS, UINT]),
        instruction(Op::TypeStruct, &[BLOCK, WORDS]),
        instruction(Op::TypePointer, &[POINTER_BLOCK, class, BLOCK]),
        instruction(Op::TypePointer, &[POINTER_UINT, class, UINT]),
        instruction(Op::TypePointer, &[POINTER_LOCAL, StorageClass::Function as u32, UINT]),
        instruction(Op::TypeFunction, &[PLAIN, VOID]),
        instruction(Op::TypeFunction, &[TAKER, VOID, UINT]),
        instruction(Op::Variable, &[POINTER_BLOCK, BUFFER, class]),
    ]
    .concat()
}

/// A function that counts in a variable under branches, and writes what it counted.
fn body(function: u32, next: &mut u32) -> Vec<u32> {
    let mut fresh = || {
        *next += 1;
        *next - 1
    };
    let (parameter, label, local) = (fresh(), fresh(), fresh());
    let mut words = [
        instruction(Op::Function, &[VOID, function, FunctionControl::NONE.bits(), TAKER]),
        instruction(Op::FunctionParameter, &[UINT, parameter]),
        instruction(Op::Label, &[label]),
        instruction(Op::Variable, &[POINTER_LOCAL, local, StorageClass::Function as u32]),
        instruction(Op::Store, &[local, parameter]),
    ]
    .concat();
    for _ in 0..8 {
        let (from, value, test, inside, merge) = (fresh(), fresh(), fresh(), fresh(), fresh());
        let (held, sum, to) = (fresh(), fresh(), fresh());
        let one_branch = [
            instruction(Op::AccessChain, &[POINTER_UINT, from, BUFFER, ZERO, parameter]),
            instruction(Op::Load, &[UINT, value, from]),
            instruction(Op::IEqual, &[BOOL, test, value, ONE]),
            instruction(Op::SelectionMerge, &[merge, SelectionControl::NONE.bits()]),
            instruction(Op::BranchConditional, &[test, inside, merge]),
            instruction(Op::Label, &[inside]),
            instruction(Op::Load, &[UINT, held, local]),
            instruction(Op::IAdd, &[UINT, sum, held, ONE]),
            instruction(Op::Store, &[local, sum]),
            instruction(Op::AccessChain, &[POINTER_UINT, to, BUFFER, ZERO, sum]),
            instruction(Op::Store, &[to, held]),
            instruction(Op::Branch, &[merge]),
            instruction(Op::Label, &[merge]),
        ];
        words.extend(one_branch.concat());
    }
    words.extend([instruction(Op::Return, &[]), instruction(Op::FunctionEnd, &[])].concat());
    words
}
