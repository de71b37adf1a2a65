//! The code of checks, as the disassembler prints it.
//!
//! With `LAVASCOPE_BLESS=1` the files are written instead of compared.

mod common;

use std::path::Path;

use common::{assemble, disassemble, instrumented};
use lavascope_instrument::{Guard, InstrumentOptions, RootLocation};

/// A load and a store by the same index, in the head of a loop of one block.
const LOOP: &str = r#"
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main" %id %a
    OpExecutionMode %main LocalSize 8 1 1
    OpDecorate %id BuiltIn GlobalInvocationId
    OpDecorate %a DescriptorSet 0
    OpDecorate %a Binding 0
    OpDecorate %words ArrayStride 4
    OpDecorate %block Block
    OpMemberDecorate %block 0 Offset 0
    %void = OpTypeVoid
    %plain = OpTypeFunction %void
    %bool = OpTypeBool
    %uint = OpTypeInt 32 0
    %triple = OpTypeVector %uint 3
    %input = OpTypePointer Input %triple
    %id = OpVariable %input Input
    %words = OpTypeRuntimeArray %uint
    %block = OpTypeStruct %words
    %pointer = OpTypePointer StorageBuffer %block
    %word = OpTypePointer StorageBuffer %uint
    %a = OpVariable %pointer StorageBuffer
    %zero = OpConstant %uint 0
    %one = OpConstant %uint 1
    %ten = OpConstant %uint 10
    %main = OpFunction %void None %plain
    %start = OpLabel
    OpBranch %loop
    %loop = OpLabel
    %i = OpPhi %uint %zero %start %next %loop
    %at = OpAccessChain %word %a %zero %i
    %old = OpLoad %uint %at
    %new = OpIAdd %uint %old %one
    OpStore %at %new
    %next = OpIAdd %uint %i %one
    %more = OpULessThan %bool %next %ten
    OpLoopMerge %end %loop None
    OpBranchConditional %more %loop %end
    %end = OpLabel
    OpReturn
    OpFunctionEnd
"#;

fn compare(name: &str, words: &[u32], options: &InstrumentOptions) {
    let made = instrumented(words, options);
    assert_eq!(common::validation_errors(&made.words, "vulkan1.3"), None);
    let text = disassemble(&made.words);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shapes").join(format!("{name}.txt"));
    if std::env::var_os("LAVASCOPE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, &text).expect("a file that is written");
    }
    let expected = std::fs::read_to_string(&path).expect("a file of the tests");
    assert_eq!(text, expected, "{name}");
}

#[test]
fn a_loop_of_one_block_gets_a_second_one_to_continue_in() {
    let words = assemble(LOOP);
    let set = InstrumentOptions::new(RootLocation::Descriptor { set: 7 });
    compare("loop_selected", &words, &set);
    compare("loop_branched", &words, &InstrumentOptions { guard: Guard::Branch, ..set.clone() });
    compare("loop_immediate", &words, &InstrumentOptions { immediate: [0].into(), ..set });
    compare("loop_push_constants", &words, &InstrumentOptions::new(RootLocation::PushConstant { offset: 64 }));
}
