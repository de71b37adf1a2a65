//! Edited modules: added and old instructions are there, and the validator of SPIR-V finds no error.

mod common;

use std::{
    io::Write,
    process::{Command, Stdio},
};

use common::{lines_of, shader};
use lavascope_spirv::{
    Editor, Id, Instruction, InstructionIndex, Module, Section, Specialization, instruction, reflect, string_words,
};
use spirv::{Capability, Decoration, Op, StorageClass};

/// The errors that the validator finds; empty if the words are valid.
fn complaints(words: &[u32]) -> String {
    let mut validator = Command::new("spirv-val")
        .args(["--target-env", "vulkan1.3", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("spirv-val: on Debian and Ubuntu `apt-get install spirv-tools` brings it");
    let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
    validator.stdin.take().expect("a pipe").write_all(&bytes).expect("the validator reads");
    let output = validator.wait_with_output().expect("the validator ends");
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.success(), text.is_empty(), "{text}");
    text
}

/// A storage buffer of words at a set and binding: its variable, and the type of a pointer to a word.
fn add_buffer(module: &Module, editor: &mut Editor<'_>, set: u32, binding: u32) -> (Id, Id) {
    let uint = editor.find_or_add_type(Op::TypeInt, &[32, 0]);
    let words = editor.new_type(Op::TypeRuntimeArray, &[uint.0]);
    editor.decorate(words, Decoration::ArrayStride, &[4]);
    let block = editor.new_type(Op::TypeStruct, &[words.0]);
    editor.decorate(block, Decoration::Block, &[]);
    editor.decorate_member(block, 0, Decoration::Offset, &[0]);
    let class = StorageClass::StorageBuffer as u32;
    let pointer = editor.find_or_add_type(Op::TypePointer, &[class, block.0]);
    let to_word = editor.find_or_add_type(Op::TypePointer, &[class, uint.0]);
    let variable = editor.new_variable(pointer, StorageClass::StorageBuffer);
    editor.decorate(variable, Decoration::DescriptorSet, &[set]);
    editor.decorate(variable, Decoration::Binding, &[binding]);
    editor.name(variable, "added");
    // Older versions list only what goes in and out.
    if module.version() >= (1, 4) {
        editor.extend_interface(0, variable);
    }
    (variable, to_word)
}

/// Every store, load and exit of the entry point counts in a buffer of its own.
fn count_everything(module: &Module) -> Vec<u32> {
    let mut editor = Editor::new(module);
    let (variable, to_word) = add_buffer(module, &mut editor, 7, 3);
    let uint = editor.find_or_add_type(Op::TypeInt, &[32, 0]);
    let [zero, one] = [0, 1].map(|it| editor.constant(uint, &[it]).0);
    let function = module.function_of(module.entries()[0].function).expect("a function");
    for item in module.instructions(module.functions()[function].instructions.clone()) {
        let counts = matches!(item.op(), Some(Op::Load | Op::Store | Op::Return | Op::Branch | Op::BranchConditional));
        let is_first = module
            .block_containing(item.at)
            .is_some_and(|block| item.at.0 == module.blocks()[block].instructions.start + 1);
        if counts && !is_first {
            let (place, old) = (editor.fresh().0, editor.fresh().0);
            let chain = instruction(Op::AccessChain, &[to_word.0, place, variable.0, zero, one]);
            let atomic = instruction(Op::AtomicIAdd, &[uint.0, old, place, one, zero, one]);
            editor.insert_before(item.at, [chain, atomic].concat());
        }
    }
    editor.finish()
}

#[test]
fn counters_everywhere_are_valid_and_change_nothing_else() {
    for name in
        ["flow.comp", "functions.comp", "addresses.comp", "layout.comp", "kinds.frag", "inputs.vert", "limits.mesh"]
    {
        let module = shader(name);
        let words = count_everything(&module);
        assert_eq!(complaints(&words), "", "{name}");
        let edited = Module::parse(&words).expect("a module");
        let before = reflect(&module, 0, &Specialization::default()).expect("an entry point");
        let after = reflect(&edited, 0, &Specialization::default()).expect("an entry point");
        assert!(!lines_of(&after, "7.3").is_empty(), "{name}");
        let kept: Vec<String> = common::lines(&after).into_iter().filter(|it| !it.starts_with("7.3")).collect();
        assert_eq!(kept, common::lines(&before), "{name}");
    }
}

#[test]
fn the_validator_is_really_asked() {
    let module = shader("flow.comp");
    let mut editor = Editor::new(&module);
    let nothing = editor.fresh();
    let last = module.blocks().last().expect("a block").terminator();
    editor.insert_before(last, instruction(Op::Store, &[nothing.0, nothing.0]));
    assert!(complaints(&editor.finish()).contains("has not been defined"));
}

#[test]
fn types_and_constants_are_found_again() {
    let module = shader("flow.comp");
    let mut editor = Editor::new(&module);
    let uint = editor.find_or_add_type(Op::TypeInt, &[32, 0]);
    assert!(module.definition(uint).is_some_and(|it| it.is(Op::TypeInt)), "it was there");
    let one = editor.constant(uint, &[1]);
    assert!(module.definition(one).is_some(), "it was there");
    let odd = editor.constant(uint, &[0x0dd]);
    assert_eq!(editor.constant(uint, &[0x0dd]), odd);
    assert!(odd.0 >= module.bound());
    let array = editor.new_type(Op::TypeArray, &[uint.0, odd.0]);
    assert_ne!(editor.new_type(Op::TypeArray, &[uint.0, odd.0]), array);
    assert_eq!(complaints(&editor.finish()), "");
}

/// Otherwise the line would apply to the added instruction.
#[test]
fn the_line_of_the_first_function_stays_with_it() {
    let module = shader("flow.comp");
    let is_function = |it: &Instruction<'_>| it.is(Op::Function);
    let before = |module: &Module| {
        let function = module.all().find(is_function).expect("a function").at;
        module.instruction(InstructionIndex(function.0 - 1)).words().to_vec()
    };
    let line = before(&module);
    assert_eq!(line[0] & 0xffff, Op::Line as u32, "the module has lines");
    let mut editor = Editor::new(&module);
    let uint = editor.find_or_add_type(Op::TypeInt, &[32, 0]);
    editor.constant(uint, &[0x0dd]);
    let words = editor.finish();
    assert_eq!(complaints(&words), "");
    assert_eq!(before(&Module::parse(&words).expect("a module")), line);
}

#[test]
fn capabilities_extensions_and_imports_are_added_once() {
    let module = shader("flow.comp");
    let mut editor = Editor::new(&module);
    for _ in 0..2 {
        editor.add_capability(Capability::Shader);
        editor.add_capability(Capability::PhysicalStorageBufferAddresses);
        editor.add_extension("SPV_KHR_physical_storage_buffer");
    }
    let set = editor.import("GLSL.std.450");
    assert!(module.definition(set).is_some(), "it was there");
    let printf = editor.import("NonSemantic.DebugPrintf");
    assert_eq!(editor.import("NonSemantic.DebugPrintf"), printf);
    editor.add_extension("SPV_KHR_non_semantic_info");
    let words = editor.finish();
    assert_eq!(complaints(&words), "");
    let edited = Module::parse(&words).expect("a module");
    let count = |op| edited.all().filter(|it| it.is(op)).count() - module.all().filter(|it| it.is(op)).count();
    assert_eq!((count(Op::Capability), count(Op::Extension), count(Op::ExtInstImport)), (1, 2, 1));
}

#[test]
fn functions_locals_and_replacements_are_valid() {
    let module = shader("functions.comp");
    let mut editor = Editor::new(&module);
    let (void, uint) = (editor.find_or_add_type(Op::TypeVoid, &[]), editor.find_or_add_type(Op::TypeInt, &[32, 0]));
    let ty = editor.find_or_add_type(Op::TypeFunction, &[void.0, uint.0]);
    let [function, parameter, label, call] = [(); 4].map(|()| editor.fresh());
    let body = [
        instruction(Op::Function, &[void.0, function.0, 0, ty.0]),
        instruction(Op::FunctionParameter, &[uint.0, parameter.0]),
        instruction(Op::Label, &[label.0]),
        instruction(Op::Return, &[]),
        instruction(Op::FunctionEnd, &[]),
    ];
    editor.add(Section::Functions, body.concat());
    let main = module.function_of(module.entries()[0].function).expect("a function");
    let pointer = editor.find_or_add_type(Op::TypePointer, &[StorageClass::Function as u32, uint.0]);
    let local = editor.new_local(main, pointer).expect("a first block");
    let one = editor.constant(uint, &[1]);
    let exit = module
        .instructions(module.functions()[main].instructions.clone())
        .find(|it| it.is(Op::Return))
        .expect("an exit");
    let store = instruction(Op::Store, &[local.0, one.0]);
    let calling = instruction(Op::FunctionCall, &[void.0, call.0, function.0, one.0]);
    editor.replace(exit.at, [store, calling, instruction(Op::Return, &[])].concat());
    let names: Vec<InstructionIndex> = module.all().filter(|it| it.is(Op::Name)).map(|it| it.at).collect();
    editor.remove(names[0]);
    let words = editor.finish();
    assert_eq!(complaints(&words), "");
    let edited = Module::parse(&words).expect("a module");
    assert_eq!(edited.functions().len(), module.functions().len() + 1);
    assert_eq!(edited.all().filter(|it| it.is(Op::Name)).count(), names.len() - 1);
}

#[test]
fn every_compiled_shader_is_valid_and_stays_so_with_a_buffer_added() {
    for path in common::compiled() {
        let module = Module::parse(&common::words(&path)).expect("a module");
        let mut editor = Editor::new(&module);
        add_buffer(&module, &mut editor, 7, 0);
        assert_eq!(complaints(&editor.finish()), "", "{}", path.display());
    }
}

#[test]
fn strings_end_in_zeros() {
    assert_eq!(string_words("main"), [u32::from_le_bytes(*b"main"), 0]);
    assert_eq!(string_words("abc"), [u32::from_le_bytes(*b"abc\0")]);
    assert_eq!(lavascope_spirv::decode_string(&string_words("abcde")), ("abcde".into(), 2));
}
