//! Parsing: a module has the words that were parsed, errors have their positions, and nothing panics.

mod common;

use lavascope_spirv::{
    Editor, InstructionIndex, Module, ParseError, ParseErrorKind, Specialization,
    grammar::{self, InstructionForm},
    instruction, reflect,
};
use lavascope_test_support::TestRng;
use rspirv::grammar::{INSTRUCTION_TABLE, OperandKind, OperandQuantifier};
use spirv::Op;

#[test]
fn every_compiled_shader_goes_through_unchanged() {
    let all = common::compiled();
    assert!(all.len() > 20, "{} shaders", all.len());
    for path in all {
        let words = common::words(&path);
        let module = Module::parse(&words).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
        assert_eq!(module.words(), words);
        assert_eq!(Editor::new(&module).finish(), words, "{}", path.display());
        let again: Vec<u32> = module.all().flat_map(|it| it.words().to_vec()).collect();
        assert_eq!(again, words[5..]);
        for entry in 0..module.entries().len() {
            let found = reflect(&module, entry, &Specialization::default()).expect("an entry point");
            assert!(found.is_complete, "{}", path.display());
        }
    }
}

#[test]
fn compiled_shaders_are_those_of_the_sources_beside_them() {
    let entries = std::fs::read_dir(common::folder()).expect("the folder of the shaders");
    let mut sources = 0;
    for path in entries.map(|it| it.expect("a file").path()).filter(|it| it.extension().is_some_and(|it| it != "spv")) {
        let name = path.file_name().and_then(|it| it.to_str()).expect("a name");
        let source = std::fs::read_to_string(&path).expect("a source");
        let texts = common::shader(name).sources();
        let has = texts.iter().any(|(file, text)| file == name && text.ends_with(&source));
        assert!(has, "{name} is not what was compiled: run `cargo xtask shaders`");
        sources += 1;
    }
    assert!(sources > 10);
}

#[test]
fn forms_are_those_of_the_grammar() {
    for base_instruction in INSTRUCTION_TABLE.iter() {
        let has = |kind| base_instruction.operands.iter().any(|logical_operand| logical_operand.kind == kind);
        let form = match (has(OperandKind::IdResultType), has(OperandKind::IdResult)) {
            (true, true) => InstructionForm::Typed,
            (false, true) => InstructionForm::Result,
            _ => InstructionForm::Plain,
        };
        let words = |kind: &OperandKind| match kind {
            OperandKind::PairIdRefIdRef
            | OperandKind::PairIdRefLiteralInteger
            | OperandKind::PairLiteralIntegerIdRef => 2,
            _ => 1,
        };
        let needed = base_instruction.operands.iter().filter(|it| it.quantifier == OperandQuantifier::One);
        let least = 1 + needed.map(|it| words(&it.kind)).sum::<usize>();
        let opcode = u16::try_from(u32::from(base_instruction.opcode)).expect("an opcode");
        assert_eq!(grammar::instruction_form(opcode), Some((form, least)), "Op{}", base_instruction.opname);
    }
    let known = (0..=u16::MAX).filter(|it| grammar::instruction_form(*it).is_some());
    assert!(known.into_iter().all(|it| Op::from_u32(u32::from(it)).is_some()));
}

const HEADER: [u32; 5] = [spirv::MAGIC_NUMBER, 0x1_0500, 0, 8, 0];

fn fault(parts: &[Vec<u32>]) -> ParseError {
    let words = [&HEADER[..], &parts.concat()].concat();
    Module::parse(&words).expect_err("a fault")
}

#[test]
fn faults_are_named_with_their_place() {
    let void = || instruction(Op::TypeVoid, &[1]);
    let function = || instruction(Op::Function, &[1, 2, 0, 3]);
    let at = |word, instruction, fault| ParseError { word, instruction, kind: fault };
    assert_eq!(fault(&[void(), void()]), at(7, 1, ParseErrorKind::DefinedTwice(1)));
    assert_eq!(fault(&[instruction(Op::TypeVoid, &[8])]), at(5, 0, ParseErrorKind::Bound { id: 8, bound: 8 }));
    assert_eq!(fault(&[instruction(Op::TypeVoid, &[0])]), at(5, 0, ParseErrorKind::Bound { id: 0, bound: 8 }));
    assert_eq!(fault(&[void(), vec![0]]), at(7, 1, ParseErrorKind::Empty));
    assert_eq!(fault(&[vec![9 << 16 | 19, 1]]), at(5, 0, ParseErrorKind::PastEnd { words: 9, left: 2 }));
    assert_eq!(fault(&[vec![1 << 16 | 19]]), at(5, 0, ParseErrorKind::Short { opcode: 19, words: 1, least: 2 }));
    assert_eq!(fault(&[void(), function()]), at(12, 2, ParseErrorKind::Unfinished));
    assert_eq!(
        fault(&[void(), function(), instruction(Op::Function, &[1, 3, 0, 3])]),
        at(12, 2, ParseErrorKind::Nested)
    );
    assert_eq!(fault(&[instruction(Op::Label, &[1])]), at(5, 0, ParseErrorKind::OutsideFunction));
    assert_eq!(fault(&[void(), function(), instruction(Op::Nop, &[])]), at(12, 2, ParseErrorKind::NoBlock));
    assert_eq!(Module::parse(&[]).expect_err("a fault"), at(0, 0, ParseErrorKind::Header));
    assert_eq!(Module::parse(&[7]).expect_err("a fault"), at(0, 0, ParseErrorKind::Magic(7)));
    assert_eq!(Module::parse(&[0x0302_2307; 5]).expect_err("a fault"), at(0, 0, ParseErrorKind::ByteOrder));
    assert_eq!(Module::parse(&[spirv::MAGIC_NUMBER, 0, 0, 1 << 30, 0]).expect_err("a fault").word, 3);
}

#[test]
fn unknown_instructions_are_kept() {
    let unknown = vec![3 << 16 | 0x7777, 1, 2];
    let words = [&HEADER[..], &instruction(Op::TypeVoid, &[1]), &unknown].concat();
    let module = Module::parse(&words).expect("a module");
    assert_eq!(module.instruction(InstructionIndex(1)).words(), unknown);
    assert_eq!(
        (module.instruction(InstructionIndex(1)).op(), module.instruction(InstructionIndex(1)).result()),
        (None, None)
    );
    assert_eq!(module.words(), words);
}

/// Changes a module as a disk, a bug or an enemy would.
fn damage(random: &mut TestRng, words: &mut Vec<u32>) {
    for _ in 0..=random.below(6) {
        let (at, other) = (random.below(words.len()), random.below(words.len()));
        match random.below(8) {
            0 => words[at] = random.next_u32(),
            1 => words[at] ^= 1 << random.below(32),
            2 => words[at] = words[other],
            // An id that replaces another one.
            3 | 4 => words[at] = random.below(200) as u32,
            // Another opcode of the same length.
            5 => words[at] = words[at] & 0xffff_0000 | random.below(450) as u32,
            6 => words.truncate(words.len() - random.below(words.len() / 16)),
            _ => {
                let part: Vec<u32> = words[at..(at + random.below(12)).min(words.len())].to_vec();
                words.splice(other..other, part);
            }
        }
    }
}

/// Changes operands and opcodes but no lengths, so that most of it still parses.
fn twist(random: &mut TestRng, words: &mut [u32]) {
    let bound = words[3] as usize;
    let mut starts = vec![5];
    while let Some(last) = starts.last().filter(|it| **it < words.len()) {
        starts.push(last + (words[*last] >> 16) as usize);
    }
    for _ in 0..=random.below(8) {
        let at = random.below(starts.len() - 1);
        let operand = starts[at] + 1 + random.below(starts[at + 1] - starts[at] - 1);
        match random.below(6) {
            0 => words[starts[at]] = words[starts[at]] & 0xffff_0000 | random.below(450) as u32,
            1 => words[operand.min(starts[at + 1] - 1)] = u32::MAX - random.below(3) as u32,
            _ if operand < starts[at + 1] => words[operand] = random.below(bound) as u32,
            _ => {}
        }
    }
}

#[test]
fn damaged_modules_never_panic() {
    let all: Vec<Vec<u32>> = common::compiled().iter().map(|it| common::words(it)).collect();
    let mut random = TestRng::new(0x5eed_cafe);
    let (mut parsed, mut reflected) = (0, 0);
    for round in 0..20_000 {
        let mut words = all[random.below(all.len())].clone();
        if round % 2 == 0 {
            damage(&mut random, &mut words);
        } else {
            twist(&mut random, &mut words);
        }
        // The header is not interesting more than once.
        words[..5].copy_from_slice(&[spirv::MAGIC_NUMBER, 0x1_0500, 0, 4096, 0]);
        let Ok(module) = Module::parse(&words) else { continue };
        parsed += 1;
        assert_eq!(module.words(), words);
        assert_eq!(Editor::new(&module).finish(), words);
        for entry in 0..module.entries().len().min(2) {
            if let Ok(found) = reflect(&module, entry, &Specialization::default()) {
                found.accesses.iter().for_each(|it| drop(module.source(it.at)));
                reflected += 1;
            }
        }
    }
    assert!(parsed > 5_000 && reflected > 4_000, "{parsed} parsed, {reflected} reflected");
}
