//! Loads behind the end of a buffer on a device that promises zeros for them.

mod common;

use ash::vk;
use common::{
    assemble, compile, instrumented, validation_errors,
    vulkan::{BoundBinding, Dispatch, Gpu},
};
use lavascope_instrument::{Guard, InstrumentOptions, RootLocation};

/// Loads of every kind: of numbers, vectors, matrices, structures and arrays, and texels. None of them is in a loop.
const LOADS: &str = "#version 460
    layout(local_size_x = 8) in;
    struct Pair { uint one; float two; };
    layout(set = 0, binding = 0, std430) readonly buffer Words { uint words[]; };
    layout(set = 0, binding = 1, std430) readonly buffer Threes { uvec3 threes[]; };
    layout(set = 0, binding = 2, std430) readonly buffer Pairs { Pair pairs[]; };
    layout(set = 0, binding = 3, std430) readonly buffer Squares { mat2 squares[]; };
    layout(set = 0, binding = 4) uniform usamplerBuffer texels;
    layout(set = 0, binding = 5) buffer To { uint to[]; };
    void main() {
        uint i = gl_GlobalInvocationID.x;
        uint word = words[i];
        uvec3 three = threes[i];
        Pair pair = pairs[i];
        mat2 square = squares[i];
        uint texel = texelFetch(texels, int(i)).x;
        to[i] = word + three.x + three.z + pair.one + uint(pair.two) + uint(square[0][0] + square[1][1]) + texel;
    }";

/// Copies a word of one buffer into another.
const COPY: &str = r#"
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main" %id %from %to
    OpExecutionMode %main LocalSize 8 1 1
    OpDecorate %id BuiltIn GlobalInvocationId
    OpDecorate %from DescriptorSet 0
    OpDecorate %from Binding 0
    OpDecorate %to DescriptorSet 0
    OpDecorate %to Binding 1
    OpDecorate %words ArrayStride 4
    OpDecorate %block Block
    OpMemberDecorate %block 0 Offset 0
    %void = OpTypeVoid
    %plain = OpTypeFunction %void
    %uint = OpTypeInt 32 0
    %triple = OpTypeVector %uint 3
    %input = OpTypePointer Input %triple
    %id = OpVariable %input Input
    %words = OpTypeRuntimeArray %uint
    %block = OpTypeStruct %words
    %pointer = OpTypePointer StorageBuffer %block
    %word = OpTypePointer StorageBuffer %uint
    %from = OpVariable %pointer StorageBuffer
    %to = OpVariable %pointer StorageBuffer
    %zero = OpConstant %uint 0
    %main = OpFunction %void None %plain
    %m0 = OpLabel
    %all = OpLoad %triple %id
    %x = OpCompositeExtract %uint %all 0
    %source = OpAccessChain %word %from %zero %x
    %target = OpAccessChain %word %to %zero %x
    OpCopyMemory %target %source Aligned 4
    OpReturn
    OpFunctionEnd
"#;

fn run(gpu: &Gpu, words: &[u32], options: &InstrumentOptions, dispatch: &Dispatch) -> Vec<u32> {
    let made = instrumented(words, options);
    assert_eq!(validation_errors(&made.words, "vulkan1.3"), None);
    gpu.run_checked(&made, options.root, dispatch).buffers.pop().expect("the last buffer")
}

/// Selecting, with zeros and without, and branching.
fn option_variants() -> [InstrumentOptions; 3] {
    let plain = InstrumentOptions::new(RootLocation::Descriptor { set: 7 });
    let zeros = InstrumentOptions { zero_faulty_loads: true, ..plain.clone() };
    [zeros.clone(), InstrumentOptions { guard: Guard::Branch, ..zeros }, plain]
}

/// Each binding has four bound elements, and eight invocations read one each.
#[test]
fn what_is_read_behind_the_end_is_zero_where_that_is_promised() {
    let gpu = Gpu::new();
    let one = 1.0_f32.to_bits();
    let of = |binding, words: Vec<u32>| BoundBinding::storage(binding, words);
    let texels = vk::DescriptorType::UNIFORM_TEXEL_BUFFER;
    let dispatch = || Dispatch {
        bound: vec![
            of(0, vec![1; 4]),
            of(1, [10, 0, 20, 0].repeat(4)),
            of(2, [100, 200.0_f32.to_bits()].repeat(4)),
            of(3, [one, 0, 0, one].repeat(4)),
            BoundBinding { binding: 4, kind: texels, elements: vec![Some((vec![1000; 4], 16))] },
            of(5, vec![7; 8]),
        ],
        groups: 1,
        ..Dispatch::default()
    };
    let whole = 1 + 10 + 20 + 100 + 200 + 2 + 1000;
    // SPIR-V selects among vectors by one condition from version 1.4 on.
    for target in ["vulkan1.1", "vulkan1.3"] {
        let words = compile(LOADS, "comp", target);
        let [zeros, branching, plain] = option_variants().map(|it| run(&gpu, &words, &it, &dispatch()));
        assert_eq!(zeros, [whole, whole, whole, whole, 0, 0, 0, 0], "{target}");
        assert_eq!(branching, zeros, "{target}");
        assert_eq!(plain[..4], zeros[..4], "{target}");
        assert_ne!(plain[4..], zeros[4..], "{target}: else some elements are read once more");
    }
}

#[test]
fn a_copy_from_behind_the_end_clears_its_target() {
    let gpu = Gpu::new();
    let words = assemble(COPY);
    let dispatch = Dispatch {
        bound: vec![BoundBinding::storage(0, vec![5; 4]), BoundBinding::storage(1, vec![9; 6])],
        groups: 1,
        ..Dispatch::default()
    };
    let [zeros, branching, plain] = option_variants().map(|it| run(&gpu, &words, &it, &dispatch));
    assert_eq!(zeros, [5, 5, 5, 5, 0, 0]);
    assert_eq!(branching, zeros);
    assert_eq!(plain, [5; 6], "else the last element is copied");
}
