//! Pointers that take detours, copies of memory, and heads of loops that stay in their loop.

mod common;

use common::{
    assemble, instrumented, validation_errors,
    vulkan::{BoundBinding, Dispatch, Gpu},
};
use lavascope_instrument::{CELL_WORDS, CheckDecision, Guard, InstrumentOptions, RecordedFault, RootLocation};

const HEAD: &str = r#"
    OpCapability Shader
    OpCapability VariablePointers
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main" %id %a %b %kept
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
    %giver = OpTypeFunction %word %uint
    %local = OpTypePointer Function %word
    %private = OpTypePointer Private %word
    %zero = OpConstant %uint 0
    %one = OpConstant %uint 1
    %three = OpConstant %uint 3
    %four = OpConstant %uint 4
    %a = OpVariable %pointer StorageBuffer
    %b = OpVariable %pointer StorageBuffer
    %kept = OpVariable %private Private
    %give = OpFunction %word None %giver
    %i = OpFunctionParameter %uint
    %g0 = OpLabel
    %in_b = OpAccessChain %word %b %zero %i
    OpReturnValue %in_b
    OpFunctionEnd
    %main = OpFunction %void None %plain
    %m0 = OpLabel
    %held = OpVariable %local Function
    %all = OpLoad %triple %id
    %x = OpCompositeExtract %uint %all 0
    %in_a = OpAccessChain %word %a %zero %x
"#;

/// The source after the header, and how often each fault happens with five words in each buffer and eight invocations.
const BODIES: &[(&str, &str, &[u32])] = &[
    ("kept in a local variable", "OpStore %held %in_a\n %back = OpLoad %word %held\n OpStore %back %four", &[3]),
    ("kept in a private variable", "OpStore %kept %in_a\n %back = OpLoad %word %kept\n OpStore %back %four", &[3]),
    ("returned", "%back = OpFunctionCall %word %give %x\n %old = OpLoad %uint %back\n OpStore %back %one", &[3, 3]),
    (
        "kept, moved on and read",
        "OpStore %held %in_a\n %back = OpLoad %word %held\n %next = OpPtrAccessChain %word %back %one\n
         %old = OpLoad %uint %next\n %in = OpAccessChain %word %b %zero %zero\n OpStore %in %four",
        &[4],
    ),
    ("copied", "%to = OpAccessChain %word %b %zero %x\n OpCopyMemory %to %in_a", &[3, 3]),
];

const STAYING: (&str, &str, &[u32]) = (
        "in the head of a loop that stays",
        "OpBranch %head\n %head = OpLabel\n %k = OpPhi %uint %zero %m0 %more %next\n OpStore %in_a %k\n
         %is_low = OpULessThan %bool %x %three\n OpLoopMerge %end %next None\n OpBranchConditional %is_low %left %right\n
         %left = OpLabel\n OpBranch %test\n %right = OpLabel\n OpBranch %test\n %test = OpLabel\n
         %is_done = OpUGreaterThanEqual %bool %k %three\n OpBranchConditional %is_done %end %next\n
         %next = OpLabel\n %more = OpIAdd %uint %k %one\n OpBranch %head\n %end = OpLabel",
        &[12],
    );

/// A body behind the head; what only variable pointers need goes where they are not used.
fn words_of(body: &str) -> Vec<u32> {
    let has_pointers = body.contains("%held") || body.contains("%kept") || body.contains("%give");
    let is_needed = |text: &&str| {
        let names = ["VariablePointers", "%kept", "%held", "%giver", "%local", "%private", "%word ArrayStride"];
        has_pointers || text.contains("OpEntryPoint") || !names.iter().any(|name| text.contains(name))
    };
    let mut head: String = HEAD.lines().filter(is_needed).map(|it| format!("{it}\n")).collect();
    if !has_pointers {
        head = head.replace(" %kept", "");
        let (from, to) = (head.find("%i = OpFunctionParameter"), head.find("%main = OpFunction"));
        head.replace_range(from.expect("a parameter")..to.expect("a function"), "");
    }
    assemble(&format!("{head}{body}\n OpReturn\n OpFunctionEnd\n"))
}

/// Faults and how often each happened, and all memory.
type GuardedRun = (Guard, Vec<(RecordedFault, u32)>, Vec<Vec<u32>>);

fn run(words: &[u32], dispatch: &Dispatch, gpu: &Gpu) -> Vec<GuardedRun> {
    let mut all = Vec::new();
    for guard in [Guard::Select, Guard::Branch] {
        let options = InstrumentOptions {
            guard,
            immediate: (0..20).collect(),
            ..InstrumentOptions::new(RootLocation::Descriptor { set: gpu.last_set })
        };
        let made = instrumented(words, &options);
        assert_eq!(validation_errors(&made.words, "vulkan1.3"), None);
        let is_left = |it: &&lavascope_instrument::CheckSite| matches!(it.decision, CheckDecision::Unchecked(_));
        assert_eq!(made.sites.iter().filter(is_left).count(), 0, "{:?}", made.sites);
        let outcome = gpu.run_checked(&made, options.root, dispatch);
        // The sites of one instruction come in the order of their numbers, and so do their counts.
        let counts = (0..made.numbered_sites).map(|it| outcome.cells[(it * CELL_WORDS) as usize]).filter(|it| *it > 0);
        let counts: Vec<u32> = counts.collect();
        assert_eq!(counts.len(), outcome.records.len());
        let mut errors: Vec<RecordedFault> = outcome.records.iter().map(|it| it.fault).collect();
        errors.sort_by_key(|it| format!("{it:?}"));
        all.push((guard, errors.into_iter().zip(counts).collect(), outcome.buffers));
    }
    all
}

fn storage(words: usize) -> Dispatch {
    let bound = vec![BoundBinding::storage(0, vec![0; words]), BoundBinding::storage(1, vec![0; words])];
    Dispatch { bound, groups: 1, ..Dispatch::default() }
}

#[test]
fn pointers_that_are_kept_returned_and_copied_are_checked() {
    let gpu = Gpu::new();
    BODIES.iter().for_each(|it| compare(&gpu, it));
}

#[test]
fn a_store_in_the_head_of_a_loop_that_stays_in_it_is_checked() {
    // The compiler of lavapipe refuses such a loop, with checks and without.
    let words = words_of(STAYING.1);
    let made = instrumented(&words, &InstrumentOptions::new(RootLocation::Descriptor { set: 7 }));
    assert_eq!(validation_errors(&made.words, "vulkan1.3"), None);
    compare(&Gpu::swiftshader(), &STAYING);
}

/// With enough memory nothing changes; with less, each fault is counted.
fn compare(gpu: &Gpu, (name, body, expected): &(&str, &str, &[u32])) {
    let words = words_of(body);
    assert_eq!(validation_errors(&words, "vulkan1.3"), None, "{name} as it was");
    let bare = gpu.run(&words, &storage(9));
    for (guard, faults, buffers) in run(&words, &storage(9), gpu) {
        assert_eq!((faults, buffers), (vec![], bare.clone()), "{name} {guard:?}");
    }
    for (guard, faults, _) in run(&words, &storage(5), gpu) {
        let counts: Vec<u32> = faults.iter().map(|it| it.1).collect();
        assert_eq!(counts, *expected, "{name} {guard:?} {faults:?}");
        let is_buffer = |it: &(RecordedFault, u32)| matches!(it.0, RecordedFault::BufferOutOfBounds { .. });
        assert!(faults.iter().all(is_buffer), "{name} {guard:?} {faults:?}");
    }
}
