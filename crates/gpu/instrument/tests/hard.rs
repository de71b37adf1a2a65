//! Shaders that are hard to get right, on a device.

mod common;

use ash::vk;
use common::{
    assemble, compile, instrumented, optimize, validation_errors,
    vulkan::{BoundBinding, Dispatch, DispatchOutcome, Gpu},
};
use lavascope_instrument::{
    Guard, InstrumentOptions, InstrumentedModule, RecordedFault, RootLocation, ShaderInvocation,
};
use lavascope_spirv::{InstructionIndex, Module};
use spirv::Op;

const DESCRIPTOR: RootLocation = RootLocation::Descriptor { set: 7 };

const CELL: usize = lavascope_instrument::CELL_WORDS as usize;

/// Selecting and branching, as it was compiled and optimized.
fn option_variants(words: &[u32]) -> Vec<(Vec<u32>, InstrumentOptions)> {
    let optimized = optimize(words, "vulkan1.3");
    let mut all = Vec::new();
    for words in [words.to_vec(), optimized] {
        for guard in [Guard::Select, Guard::Branch] {
            all.push((words.clone(), InstrumentOptions { guard, ..InstrumentOptions::new(DESCRIPTOR) }));
        }
    }
    all
}

fn run(
    gpu: &Gpu,
    words: &[u32],
    options: &InstrumentOptions,
    dispatch: &Dispatch,
) -> (InstrumentedModule, DispatchOutcome) {
    let made = instrumented(words, options);
    assert_eq!(validation_errors(&made.words, "vulkan1.3"), None);
    let outcome = gpu.run_checked(&made, options.root, dispatch);
    (made, outcome)
}

/// The texts of the lines of all sites that were seen, each once.
fn seen(words: &[u32], made: &InstrumentedModule, outcome: &DispatchOutcome) -> Vec<String> {
    let module = Module::parse(words).expect("a module");
    let masks = &outcome.cells[made.numbered_sites as usize * CELL..];
    let is_seen = |it: &u32| masks[*it as usize / 32] >> (it % 32) & 1 == 1;
    let at = |it| made.site(it).expect("a site").at;
    let line = |it: InstructionIndex| module.source(it).and_then(|it| it.text).unwrap_or_default().trim().to_owned();
    let mut all: Vec<String> = (0..made.numbered_sites).filter(is_seen).map(|it| line(at(it))).collect();
    all.dedup();
    all
}

fn kernel(body: &str) -> Vec<u32> {
    let head = "#version 460\n#extension GL_EXT_nonuniform_qualifier : require\nlayout(local_size_x = 64) in;\n";
    compile(&format!("{head}{body}"), "comp", "vulkan1.3")
}

fn storage(buffers: &[Vec<u32>]) -> Vec<BoundBinding> {
    (0..).zip(buffers).map(|(binding, words)| BoundBinding::storage(binding, words.clone())).collect()
}

#[test]
fn three_faults_of_one_invocation_are_all_seen() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) buffer A { uint a[]; };
         layout(set = 0, binding = 1) buffer B { uint b[]; } all[2];
         layout(set = 0, binding = 2) uniform C { uvec4 c[4]; };
         void main() {
             uint i = gl_GlobalInvocationID.x;
             uint x = a[i * 100];
             uint y = all[i + 2].b[0];
             uint z = c[i + 4].x;
             a[1] = x + y + z + 1;
         }",
    );
    let pair = BoundBinding {
        binding: 1,
        kind: vk::DescriptorType::STORAGE_BUFFER,
        elements: vec![Some((vec![0; 4], 16)); 2],
    };
    let block =
        BoundBinding { binding: 2, kind: vk::DescriptorType::UNIFORM_BUFFER, elements: vec![Some((vec![0; 16], 64))] };
    let bound = vec![BoundBinding::storage(0, vec![0; 4]), pair, block];
    let dispatch = Dispatch { bound, groups: 1, ..Dispatch::default() };
    for (words, options) in option_variants(&words) {
        let (made, outcome) = run(&gpu, &words, &options, &dispatch);
        let expected = ["uint x = a[i * 100];", "uint y = all[i + 2].b[0];", "uint z = c[i + 4].x;"];
        assert_eq!(seen(&words, &made, &outcome), expected, "{options:?}");
        assert_eq!(outcome.buffers[0], [0, 1, 0, 0]);
        // Recorded where they happen, they are three records with exact counts.
        let options = InstrumentOptions { immediate: (0..made.numbered_sites).collect(), ..options };
        let (made, outcome) = run(&gpu, &words, &options, &dispatch);
        let mut counts = Vec::new();
        for record in &outcome.records {
            let number = made.site_of(record).and_then(|it| it.decision.number()).expect("a site") as usize;
            counts.push((record.fault.code(), outcome.cells[number * CELL]));
        }
        counts.sort_unstable();
        assert_eq!(counts, [(0, 64), (3, 63), (3, 64)], "{:?}", outcome.records);
    }
}

#[test]
fn faults_in_the_heads_of_loops_are_found_and_the_loops_go_on() {
    let gpu = Gpu::new();
    let loops = [
        "for (uint j = 0; j < 20 && a[j + 48] == 0; j++) { b[i] += 1; }",
        "uint j = 0; do { b[i] += 1; j++; a[j + 48] = 0; } while (j < 20);",
        "for (uint j = 0; j < 20; j++) { switch (j & 3) { case 0: if (a[j + 48] == 7) continue; case 1: b[i]++; break; default: b[i]++; } }",
        "uint j = 0; while (true) { if (a[j + 48] == 9) break; b[i]++; if (++j == 20) return; }",
    ];
    for body in loops {
        let words = kernel(&format!(
            "layout(set = 0, binding = 0) buffer A {{ uint a[]; }};
             layout(set = 0, binding = 1) buffer B {{ uint b[]; }};
             void main() {{ uint i = gl_GlobalInvocationID.x; {body} }}"
        ));
        let large = Dispatch { bound: storage(&[vec![0; 80], vec![0; 64]]), groups: 1, ..Dispatch::default() };
        let small = Dispatch { bound: storage(&[vec![0; 64], vec![0; 64]]), groups: 1, ..Dispatch::default() };
        let bare = gpu.run(&words, &large);
        for (words, options) in option_variants(&words) {
            let (_, outcome) = run(&gpu, &words, &options, &large);
            assert_eq!((&outcome.buffers, &outcome.records[..]), (&bare, &[][..]), "{body} {options:?}");
            let (made, outcome) = run(&gpu, &words, &options, &small);
            assert_eq!(outcome.buffers[1], bare[1], "{body} {options:?}");
            let [record] = outcome.records[..] else { panic!("{body} {options:?}: {:?}", outcome.records) };
            let expected = RecordedFault::BufferOutOfBounds { descriptor: 0, index: 64, range: 256 };
            assert_eq!(record.fault, expected);
            let number = made.site_of(&record).and_then(|it| it.decision.number()).expect("a site") as usize;
            assert_eq!(outcome.cells[number * CELL], 64, "once for each invocation");
        }
    }
}

#[test]
fn a_function_of_two_entry_points_tells_whose_fault_it_was() {
    let gpu = Gpu::new();
    let words = assemble(TWO_ENTRIES);
    for (entry, invocation) in [(c"main", 4), (c"other", 8)] {
        let bound = storage(&[vec![0; 4]]);
        let dispatch = Dispatch { bound, groups: 1, entry: Some(entry), ..Dispatch::default() };
        for guard in [Guard::Select, Guard::Branch] {
            for root in [DESCRIPTOR, RootLocation::PushConstant { offset: 120 }, RootLocation::Specialization] {
                let (_, outcome) =
                    run(&gpu, &words, &InstrumentOptions { guard, ..InstrumentOptions::new(root) }, &dispatch);
                let [record] = outcome.records[..] else { panic!("{:?}", outcome.records) };
                let ShaderInvocation::Compute { invocation: [x, 0, 0] } = record.invocation else {
                    panic!("{record:?}")
                };
                assert!(x >= 4 && x < invocation * 2, "{entry:?} {record:?}");
                let sum: u32 = outcome.cells.iter().take(1).sum();
                assert_eq!(sum, invocation * 2 - 4, "{entry:?}");
            }
        }
    }
}

const TWO_ENTRIES: &str = r#"
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %first "main" %id %buffer
    OpEntryPoint GLCompute %second "other" %id %buffer
    OpExecutionMode %first LocalSize 8 1 1
    OpExecutionMode %second LocalSize 16 1 1
    OpDecorate %id BuiltIn GlobalInvocationId
    OpDecorate %buffer DescriptorSet 0
    OpDecorate %buffer Binding 0
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
    %buffer = OpVariable %pointer StorageBuffer
    %zero = OpConstant %uint 0
    %one = OpConstant %uint 1
    %touch = OpFunction %void None %plain
    %t0 = OpLabel
    %all = OpLoad %triple %id
    %x = OpCompositeExtract %uint %all 0
    %at = OpAccessChain %word %buffer %zero %x
    OpStore %at %one
    OpReturn
    OpFunctionEnd
    %first = OpFunction %void None %plain
    %f0 = OpLabel
    %f1 = OpFunctionCall %void %touch
    OpReturn
    OpFunctionEnd
    %second = OpFunction %void None %plain
    %s0 = OpLabel
    %s1 = OpFunctionCall %void %touch
    OpReturn
    OpFunctionEnd
"#;

const TRIANGLE: &str = "#version 460\nvoid main() {
    vec2 at = vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1) * 4.0 - 1.0;
    gl_Position = vec4(at, 0.5, 1.0);
}";

fn fragment(body: &str) -> Vec<u32> {
    fragment_for(body, "vulkan1.3")
}

fn fragment_for(body: &str, environment: &str) -> Vec<u32> {
    let head = "#version 460\n#extension GL_EXT_demote_to_helper_invocation : require
        layout(set = 0, binding = 0) buffer A { uint a[]; };\n";
    compile(&format!("{head}void main() {{ {body} }}"), "frag", environment)
}

#[test]
fn a_fault_before_a_fragment_ends_early_is_not_lost() {
    let gpu = Gpu::new();
    let vertex = compile(TRIANGLE, "vert", "vulkan1.3");
    // Older versions end by another instruction.
    let ends = [
        ("if (x == 0) discard;", "vulkan1.1", Op::Kill),
        ("if (x == 0) discard;", "vulkan1.3", Op::TerminateInvocation),
        ("if (x == 0) demote;", "vulkan1.3", Op::DemoteToHelperInvocation),
        ("if (x == 0) return;", "vulkan1.3", Op::Return),
        ("", "vulkan1.3", Op::Return),
    ];
    for (end, environment, op) in ends {
        let body = format!("uint x = a[uint(gl_FragCoord.x) + 60]; {end} atomicAdd(a[1], x + 1);");
        let words = fragment_for(&body, environment);
        let module = Module::parse(&words).expect("a module");
        assert!(module.all().any(|it| it.is(op)), "{end} for {environment} has no {op:?}");
        for (words, options) in option_variants(&words) {
            let draw = Some((vk::ShaderStageFlags::FRAGMENT, vec![(vk::ShaderStageFlags::VERTEX, vertex.clone())]));
            let dispatch = Dispatch { bound: storage(&[vec![0; 64]]), groups: 1, draw, ..Dispatch::default() };
            let (made, outcome) = run(&gpu, &words, &options, &dispatch);
            let [record] = outcome.records[..] else { panic!("{end} {options:?}: {:?}", outcome.records) };
            let ShaderInvocation::Fragment { coordinates: [x, y] } = record.invocation else { panic!("{record:?}") };
            assert!((4.0..8.0).contains(&x) && (0.0..8.0).contains(&y), "{record:?}");
            let RecordedFault::BufferOutOfBounds { index: 64..68, range: 256, .. } = record.fault else {
                panic!("{record:?}")
            };
            let number = made.site_of(&record).and_then(|it| it.decision.number()).expect("a site") as usize;
            assert_eq!(outcome.cells[number * CELL], 32, "{end} {options:?}");
            assert_eq!(outcome.buffers[0][1], if end.is_empty() { 64 } else { 0 });
        }
    }
}

#[test]
fn a_vertex_shader_tells_vertex_and_instance() {
    let gpu = Gpu::new();
    let body = "layout(set = 0, binding = 0) buffer A { uint a[]; };
        void main() { a[gl_VertexIndex + gl_InstanceIndex * 3] = 5; gl_Position = vec4(0, 0, 0, 1); }";
    let words = compile(&format!("#version 460\n{body}"), "vert", "vulkan1.3");
    let draw = Some((vk::ShaderStageFlags::VERTEX, vec![(vk::ShaderStageFlags::FRAGMENT, fragment(""))]));
    let dispatch = Dispatch { bound: storage(&[vec![0; 5]]), groups: 2, draw, ..Dispatch::default() };
    for (words, options) in option_variants(&words) {
        let (_, outcome) = run(&gpu, &words, &options, &dispatch);
        assert_eq!(outcome.buffers[0], [5; 5]);
        let [record] = outcome.records[..] else { panic!("{:?}", outcome.records) };
        assert_eq!(record.invocation, ShaderInvocation::Vertex { vertex: 2, instance: 1 });
    }
}

/// A function that gets a pointer, called with two buffers; and a pointer that is selected, and one that is a phi.
const POINTERS: &str = r#"
    OpCapability Shader
    OpCapability VariablePointersStorageBuffer
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main" %id %a %b
    OpExecutionMode %main LocalSize 8 1 1
    OpDecorate %id BuiltIn GlobalInvocationId
    OpDecorate %a DescriptorSet 0
    OpDecorate %a Binding 0
    OpDecorate %b DescriptorSet 0
    OpDecorate %b Binding 1
    OpDecorate %words ArrayStride 4
    OpDecorate %word ArrayStride 4
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
    %taker = OpTypeFunction %void %word %uint
    %a = OpVariable %pointer StorageBuffer
    %b = OpVariable %pointer StorageBuffer
    %zero = OpConstant %uint 0
    %one = OpConstant %uint 1
    %two = OpConstant %uint 2
    %three = OpConstant %uint 3
    %five = OpConstant %uint 5
    %put = OpFunction %void None %taker
    %to = OpFunctionParameter %word
    %value = OpFunctionParameter %uint
    %p0 = OpLabel
    %old = OpLoad %uint %to
    %new = OpIAdd %uint %old %value
    OpStore %to %new
    OpReturn
    OpFunctionEnd
    %main = OpFunction %void None %plain
    %m0 = OpLabel
    %all = OpLoad %triple %id
    %x = OpCompositeExtract %uint %all 0
    %in_a = OpAccessChain %word %a %zero %x
    %in_b = OpAccessChain %word %b %zero %x
    %c0 = OpFunctionCall %void %put %in_a %one
    %c1 = OpFunctionCall %void %put %in_b %two
    %is_low = OpULessThan %bool %x %three
    %either = OpSelect %word %is_low %in_a %in_b
    OpStore %either %five
    OpSelectionMerge %m3 None
    OpBranchConditional %is_low %m1 %m2
    %m1 = OpLabel
    %next_a = OpPtrAccessChain %word %in_a %one
    OpBranch %m3
    %m2 = OpLabel
    OpBranch %m3
    %m3 = OpLabel
    %joined = OpPhi %word %next_a %m1 %in_b %m2
    %seen = OpLoad %uint %joined
    %sum = OpIAdd %uint %seen %three
    OpStore %joined %sum
    OpReturn
    OpFunctionEnd
"#;

#[test]
fn pointers_out_of_parameters_selections_and_phis_are_checked() {
    let gpu = Gpu::new();
    let words = assemble(POINTERS);
    let run_with = |a: usize, b: usize, guard| {
        let dispatch = Dispatch { bound: storage(&[vec![0; a], vec![0; b]]), groups: 1, ..Dispatch::default() };
        let options = InstrumentOptions { guard, immediate: (0..20).collect(), ..InstrumentOptions::new(DESCRIPTOR) };
        (gpu.run(&words, &dispatch), run(&gpu, &words, &options, &dispatch))
    };
    for guard in [Guard::Select, Guard::Branch] {
        let (bare, (made, outcome)) = run_with(8, 8, guard);
        assert_eq!((&outcome.buffers, &outcome.records[..]), (&bare, &[][..]));
        let is_unchecked = |it: &&lavascope_instrument::CheckSite| it.decision.number().is_none();
        assert_eq!(made.sites.iter().filter(is_unchecked).count(), 0, "{:?}", made.sites);
        // Six words of one and five of the other: eight invocations go past both.
        let (_, (made, outcome)) = run_with(6, 5, guard);
        let mut counts: Vec<u32> = Vec::new();
        for record in &outcome.records {
            let RecordedFault::BufferOutOfBounds { range: 0, .. } = record.fault else { panic!("{record:?}") };
            let number = made.site_of(record).and_then(|it| it.decision.number()).expect("a site") as usize;
            counts.push(outcome.cells[number * CELL]);
        }
        counts.sort_unstable();
        // Load and store of the function: two and three times. The selected store, and load and store of the phi.
        assert_eq!(counts, [3, 3, 3, 5, 5], "{:?}", outcome.records);
    }
}
