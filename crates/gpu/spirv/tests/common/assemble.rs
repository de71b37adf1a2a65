//! A small assembler for modules that no compiler writes.

use std::{collections::HashMap, str::FromStr};

use lavascope_spirv::{instruction, string_words};
use rspirv::grammar::{INSTRUCTION_TABLE, OperandKind};
use spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, Dim, ExecutionMode, ExecutionModel, ImageFormat, MemoryModel, Op,
    StorageClass,
};

/// The words of lines like `%3 = OpTypeInt 32 0`, without the words `Op`. Ids are names; `None` is a zero.
pub(crate) fn assemble(text: &str) -> Vec<u32> {
    let mut ids = HashMap::new();
    let mut words = vec![spirv::MAGIC_NUMBER, 0x1_0600, 0, 0, 0];
    for line in text.lines().map(str::trim).filter(|it| !it.is_empty()) {
        words.extend(assemble_line(line, &mut ids));
    }
    words[3] = ids.len() as u32 + 1;
    words
}

fn assemble_line<'a>(line: &'a str, ids: &mut HashMap<&'a str, u32>) -> Vec<u32> {
    let mut id = |name: &'a str| {
        let next = ids.len() as u32 + 1;
        *ids.entry(name).or_insert(next)
    };
    let (result, rest) = match line.split_once(" = ") {
        Some((result, rest)) => (Some(result), rest),
        None => (None, line),
    };
    let mut parts = rest.split_whitespace();
    let name = parts.next().expect("an opcode");
    let entry = INSTRUCTION_TABLE.iter().find(|it| it.opname == name).unwrap_or_else(|| panic!("no opcode {name}"));
    let mut operands = Vec::new();
    let is_typed = entry.operands.first().is_some_and(|it| it.kind == OperandKind::IdResultType);
    if let Some(result) = result.filter(|_| !is_typed) {
        operands.push(id(result));
    }
    for (at, part) in parts.enumerate() {
        if part.starts_with('%') {
            operands.push(id(part));
        } else if let Some(text) = part.strip_prefix('"') {
            operands.extend(string_words(text.trim_end_matches('"')));
        } else {
            operands.push(part.parse().unwrap_or_else(|_| word(entry.opcode, part)));
        }
        if let (0, Some(result), true) = (at, result, is_typed) {
            operands.push(id(result));
        }
    }
    instruction(entry.opcode, &operands)
}

/// The number of a name, which may mean different things in different instructions.
fn word(op: Op, name: &str) -> u32 {
    fn of<T: FromStr>(name: &str, number: fn(T) -> u32) -> Option<u32> {
        name.parse().ok().map(number)
    }
    let decoration = || of::<Decoration>(name, |it| it as u32).or_else(|| of::<BuiltIn>(name, |it| it as u32));
    let found = match op {
        _ if name == "None" => Some(0),
        Op::Decorate | Op::MemberDecorate | Op::DecorateId => decoration(),
        Op::Capability => of::<Capability>(name, |it| it as u32),
        Op::MemoryModel => {
            of::<AddressingModel>(name, |it| it as u32).or_else(|| of::<MemoryModel>(name, |it| it as u32))
        }
        Op::EntryPoint => of::<ExecutionModel>(name, |it| it as u32),
        Op::ExecutionMode | Op::ExecutionModeId => of::<ExecutionMode>(name, |it| it as u32),
        Op::TypeImage => of::<Dim>(name, |it| it as u32).or_else(|| of::<ImageFormat>(name, |it| it as u32)),
        Op::SpecConstantOp => INSTRUCTION_TABLE.iter().find(|it| it.opname == name).map(|it| u32::from(it.opcode)),
        _ => of::<StorageClass>(name, |it| it as u32),
    };
    found.unwrap_or_else(|| panic!("no {name} in Op{op:?}"))
}
