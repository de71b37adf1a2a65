//! Every kind of descriptor and access that a device without extensions can run.

mod common;

use ash::vk;
use common::{
    compile, instrumented, validation_errors,
    vulkan::{BoundBinding, Dispatch, DispatchOutcome, Gpu},
};
use lavascope_instrument::{CELL_WORDS, Guard, InstrumentOptions, RecordedFault, RootLocation, ShaderInvocation};

const UNIFORM: vk::DescriptorType = vk::DescriptorType::UNIFORM_BUFFER;
const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;

/// By selecting and by branching, each recorded where it happens, so that every site has its count.
fn run(gpu: &Gpu, words: &[u32], dispatch: &Dispatch) -> Vec<(DispatchOutcome, Vec<(RecordedFault, u32)>)> {
    let mut all = Vec::new();
    for guard in [Guard::Select, Guard::Branch] {
        let options = InstrumentOptions {
            guard,
            immediate: (0..100).collect(),
            ..InstrumentOptions::new(RootLocation::Descriptor { set: 7 })
        };
        let made = instrumented(words, &options);
        assert_eq!(validation_errors(&made.words, "vulkan1.3"), None);
        let outcome = gpu.run_checked(&made, options.root, dispatch);
        let mut counts = Vec::new();
        for record in &outcome.records {
            let number = made.site_of(record).and_then(|it| it.decision.number()).expect("a site") as usize;
            counts.push((record.fault, outcome.cells[number * CELL_WORDS as usize]));
        }
        counts.sort_by_key(|it| it.0.code());
        all.push((outcome, counts));
    }
    all
}

fn kernel(body: &str) -> Vec<u32> {
    let head = "#version 460\n#extension GL_EXT_buffer_reference : require\n#extension GL_EXT_scalar_block_layout : require\nlayout(local_size_x = 1) in;\n";
    compile(&format!("{head}{body}"), "comp", "vulkan1.3")
}

fn dispatch(bound: Vec<BoundBinding>, push: &[u32]) -> Dispatch {
    Dispatch { bound, push: push.to_vec(), groups: 1, ..Dispatch::default() }
}

fn buffer_error(index: u32, range: u32) -> RecordedFault {
    RecordedFault::BufferOutOfBounds { descriptor: 0, index, range }
}

#[test]
fn texels_past_the_end_are_read_from_the_first_and_not_written() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) uniform usamplerBuffer from;
         layout(set = 0, binding = 1, r32ui) uniform uimageBuffer to;
         layout(push_constant) uniform P { int i; };
         void main() {
             uint x = texelFetch(from, i).x + imageLoad(to, i).x;
             imageStore(to, i, uvec4(7));
             imageAtomicAdd(to, i + 1, 3);
             imageStore(to, 1, uvec4(x));
         }",
    );
    for (i, expected, faults) in [(2, [9, 40, 7, 13], 0), (4, [9, 20, 10, 10], 4), (-1, [12, 20, 10, 10], 3)] {
        let texels = |binding, kind, words: Vec<u32>| BoundBinding { binding, kind, elements: vec![Some((words, 16))] };
        let from = texels(0, vk::DescriptorType::UNIFORM_TEXEL_BUFFER, vec![11, 12, 30, 14]);
        let to = texels(1, vk::DescriptorType::STORAGE_TEXEL_BUFFER, vec![9, 10, 10, 10]);
        for (outcome, counts) in run(&gpu, &words, &dispatch(vec![from, to], &[i as u32])) {
            let mut wanted = expected;
            // Branched around, a read gives zero.
            if faults > 0 && outcome.buffers[1][1] != 20 {
                wanted[1] = 0;
            }
            assert_eq!(outcome.buffers[1], wanted, "{i}");
            assert_eq!(counts.len(), faults, "{i} {counts:?}");
            let is_texel =
                |it: &(RecordedFault, u32)| matches!(it.0, RecordedFault::TexelOutOfBounds { length: 4, .. });
            assert!(counts.iter().all(is_texel), "{counts:?}");
        }
    }
}

#[test]
fn atomics_past_the_end_do_not_happen() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) buffer A { uint a[]; };
         layout(push_constant) uniform P { uint i; };
         void main() {
             a[0] = atomicAdd(a[i], 5) + atomicCompSwap(a[i + 1], 2, 9) + 1;
         }",
    );
    for (i, expected, faults) in [(1, [4, 6, 9, 3], 0), (3, [4, 1, 2, 8], 1), (9, [1, 1, 2, 3], 2)] {
        for (outcome, counts) in run(&gpu, &words, &dispatch(vec![BoundBinding::storage(0, vec![0, 1, 2, 3])], &[i])) {
            assert_eq!(outcome.buffers[0], expected, "{i}");
            assert_eq!(counts.len(), faults, "{counts:?}");
        }
    }
}

#[test]
fn descriptors_that_were_never_written_are_named() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) buffer A { uint a[]; } all[4];
         layout(set = 0, binding = 1) buffer B { uint b[]; };
         layout(push_constant) uniform P { uint i; };
         void main() { b[0] = all[i].a[1]; all[i].a[0] = 8; }",
    );
    let some = |it| Some((vec![it; 4], 16));
    for (i, error, expected) in [
        (1, None, 21),
        (2, Some(RecordedFault::Uninitialized { index: 2 }), 0),
        (4, Some(RecordedFault::IndexOutOfBounds { index: 4, length: 4 }), 0),
    ] {
        let elements = vec![None, some(21), None, some(23)];
        let bound = vec![BoundBinding { binding: 0, kind: STORAGE, elements }, BoundBinding::storage(1, vec![5])];
        for (turn, (outcome, counts)) in run(&gpu, &words, &dispatch(bound, &[i])).into_iter().enumerate() {
            assert_eq!(counts, Vec::from_iter(error.map(|it| (it, 1))).repeat(2), "{i}");
            // Selected, it is read from the element that has the most bound to it.
            let expected = if error.is_some() && turn == 0 { 21 } else { expected };
            assert_eq!(outcome.buffers[2], [expected], "{i}");
            let stored = if error.is_none() { 8 } else { 21 };
            assert_eq!(outcome.buffers[0][0], stored);
        }
    }
}

#[test]
fn uniform_blocks_are_checked_by_bytes() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) uniform U { uint n; uvec4 v[8]; layout(row_major) mat3 m; };
         layout(set = 0, binding = 1) buffer B { uint b[]; };
         layout(push_constant) uniform P { uint i; uint j; };
         void main() { b[0] = v[i].y + v[i][j] + uint(m[j][2]); }",
    );
    // 16 bytes, then eight vectors, then three rows of 16 bytes, the last one of 12.
    let block: Vec<u32> = (0..47).map(|it| if it < 36 { it } else { (it as f32).to_bits() }).collect();
    let bound = |bytes| {
        let elements = vec![Some((block.clone(), bytes))];
        vec![BoundBinding { binding: 0, kind: UNIFORM, elements }, BoundBinding::storage(1, vec![5])]
    };
    for (outcome, counts) in run(&gpu, &words, &dispatch(bound(188), &[2, 1])) {
        assert_eq!((outcome.buffers[1][0], counts.len()), (13 + 13 + 45, 0));
    }
    let at = |i: u32, j: u32, bytes: u64| run(&gpu, &words, &dispatch(bound(bytes), &[i, j]));
    for (_, counts) in at(12, 3, 188) {
        // The vector and its component are past the end, and so is the third number of the last row.
        let codes: Vec<u32> = counts.iter().map(|it| it.0.code()).collect();
        assert_eq!(codes, [3, 3, 3], "{counts:?}");
        assert!(counts.iter().any(|it| it.0 == buffer_error(12, 188)), "{counts:?}");
    }
}

#[test]
fn buffers_with_dynamic_offsets_are_checked_as_others_are() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) uniform U { uvec4 v[8]; } u[2];
         layout(set = 0, binding = 1) buffer B { uint b[]; };
         layout(push_constant) uniform P { uint i; uint j; };
         void main() { b[j] = u[1].v[i].y; }",
    );
    let bound = |bytes| {
        let elements = vec![Some(((0..32).collect(), 128)), Some(((0..32).collect(), bytes))];
        let kinds = [vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC, vk::DescriptorType::STORAGE_BUFFER_DYNAMIC];
        let storage = BoundBinding { binding: 1, kind: kinds[1], elements: vec![Some((vec![5; 4], 16))] };
        vec![BoundBinding { binding: 0, kind: kinds[0], elements }, storage]
    };
    for (outcome, counts) in run(&gpu, &words, &dispatch(bound(128), &[7, 3])) {
        assert_eq!((&outcome.buffers[2], counts), (&vec![5, 5, 5, 29], vec![]));
    }
    for (outcome, mut counts) in run(&gpu, &words, &dispatch(bound(96), &[7, 4])) {
        counts.sort_by_key(|it| format!("{it:?}"));
        let load = RecordedFault::BufferOutOfBounds { descriptor: 1, index: 7, range: 96 };
        assert_eq!(counts, [(buffer_error(4, 16), 1), (load, 1)]);
        assert_eq!(outcome.buffers[2], [5; 4]);
    }
}

#[test]
fn a_matrix_by_rows_is_measured_from_its_first_row_to_its_last() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0, std430) buffer A { layout(row_major) mat2x3 m[]; };
         layout(set = 0, binding = 1) buffer B { uint b[]; };
         layout(push_constant) uniform P { uint i; };
         void main() { b[0] = uint(m[i][1].z); mat2x3 x = m[i]; b[1] = uint(x[0].x); }",
    );
    // Three rows of two numbers, each 8 bytes: 24 bytes.
    let values: Vec<u32> = (0..12).map(|it| (it as f32).to_bits()).collect();
    for (bytes, faults) in [(48, 0), (44, 2), (24, 2)] {
        let elements = vec![Some((values.clone(), bytes))];
        let bound = vec![BoundBinding { binding: 0, kind: STORAGE, elements }, BoundBinding::storage(1, vec![0; 2])];
        for (outcome, counts) in run(&gpu, &words, &dispatch(bound, &[1])) {
            assert_eq!(counts.len(), faults, "{bytes}: {counts:?}");
            if faults == 0 {
                assert_eq!(outcome.buffers[1], [11, 6]);
            }
            for (error, count) in counts {
                assert_eq!((error, count), (buffer_error(1, bytes as u32), 1));
            }
        }
    }
}

#[test]
fn nested_arrays_with_several_indices_are_added_up() {
    let gpu = Gpu::new();
    let words = kernel(
        "struct S { uint x[3]; uint y[2][2]; };
         layout(set = 0, binding = 0, std430) buffer A { uint n; S s[]; };
         layout(push_constant) uniform P { uint i; uint j; uint k; };
         void main() { s[i].y[j][k] = 99; n = s[i].y[j][k]; }",
    );
    // A structure has 28 bytes, the first one begins at 4; y begins at 12.
    for (indices, offset, bytes) in [([1, 1, 1], 56, 60), ([1, 1, 1], 56, 56), ([0, 5, 0x8000_0000], 56, 64)] {
        let elements = vec![Some((vec![1; 16], bytes))];
        let bound = vec![BoundBinding { binding: 0, kind: STORAGE, elements }];
        for (outcome, counts) in run(&gpu, &words, &dispatch(bound, &indices)) {
            if bytes == 60 {
                assert_eq!((outcome.buffers[0][14], outcome.buffers[0][0], counts.len()), (99, 99, 0));
                continue;
            }
            assert_eq!(counts, [(buffer_error(offset, bytes as u32), 1)], "{indices:?}");
            assert!(!outcome.buffers[0][1..].contains(&99));
        }
    }
}

#[test]
fn stores_and_atomics_at_addresses_go_to_scratch_memory() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(buffer_reference, scalar, buffer_reference_align = 4) buffer W { uvec3 at[]; };
         layout(push_constant, scalar) uniform P { W a; W b; uint i; };
         void main() { a.at[i] = uvec3(7); b.at[0].x = atomicAdd(a.at[i].y, 1); }",
    );
    for (i, faults) in [(1, 0), (3, 2), (0xffff_ffff, 2)] {
        let addressed = vec![vec![0; 8], vec![5; 8]];
        let dispatch = Dispatch { addressed, push: vec![i], groups: 1, ..Dispatch::default() };
        for (outcome, counts) in run(&gpu, &words, &dispatch) {
            assert_eq!(counts.len(), faults, "{i} {counts:?}");
            let expected = if faults == 0 { vec![0, 0, 0, 7, 8, 7, 0, 0] } else { vec![0; 8] };
            assert_eq!(outcome.buffers[0], expected, "{i}");
            for (error, count) in counts {
                assert!(matches!(error, RecordedFault::AddressOutOfBounds { .. }) && count == 1);
            }
        }
    }
}

#[test]
fn every_stage_of_a_draw_tells_which_invocation_it_was() {
    let gpu = Gpu::new();
    let head = "#version 460\nlayout(set = 0, binding = 0) buffer A { uint a[]; };\n";
    let shader = |stage: &str, body: &str| compile(&format!("{head}{body}"), stage, "vulkan1.3");
    let triangle = "vec4(vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1) * 4.0 - 1.0, 0.5, 1.0)";
    let vertex = shader("vert", &format!("void main() {{ gl_Position = {triangle}; }}"));
    let fragment = shader("frag", "void main() {}");
    let control = |touch: &str| {
        let body = "layout(vertices = 3) out; void main() { TOUCH
            gl_TessLevelOuter[0] = gl_TessLevelOuter[1] = gl_TessLevelOuter[2] = gl_TessLevelInner[0] = 1.0;
            gl_out[gl_InvocationID].gl_Position = gl_in[gl_InvocationID].gl_Position; }";
        shader("tesc", &body.replace("TOUCH", touch))
    };
    let evaluation = |touch: &str| {
        let body = "layout(triangles) in; void main() { TOUCH
            gl_Position = gl_in[0].gl_Position * gl_TessCoord.x + gl_in[1].gl_Position * gl_TessCoord.y; }";
        shader("tese", &body.replace("TOUCH", touch))
    };
    let geometry = "layout(triangles, invocations = 2) in; layout(triangle_strip, max_vertices = 3) out;
        void main() { if (gl_InvocationID == 1) a[gl_PrimitiveIDIn + 4] = 1; EmitVertex(); }";
    use vk::ShaderStageFlags as Flags;
    let (v, f) = ((Flags::VERTEX, vertex), (Flags::FRAGMENT, fragment));
    let (tc, te) = (Flags::TESSELLATION_CONTROL, Flags::TESSELLATION_EVALUATION);
    let cases = [
        (
            (tc, control("if (gl_InvocationID == 2) a[4] = 1;")),
            vec![v.clone(), (te, evaluation("")), f.clone()],
            ShaderInvocation::TessellationControl { invocation: 2, primitive: 0 },
        ),
        (
            (te, evaluation("if (gl_TessCoord.y == 1.0) a[gl_PrimitiveID + 4] = 1;")),
            vec![v.clone(), (tc, control("")), f.clone()],
            ShaderInvocation::TessellationEvaluation { primitive: 0, coordinates: [0.0, 1.0] },
        ),
        (
            (Flags::GEOMETRY, shader("geom", geometry)),
            vec![v, f],
            ShaderInvocation::Geometry { primitive: 0, invocation: 1 },
        ),
    ];
    for ((stage, words), others, expected) in cases {
        let bound = vec![BoundBinding::storage(0, vec![0; 4])];
        let dispatch = Dispatch { bound, groups: 1, draw: Some((stage, others)), ..Dispatch::default() };
        for (outcome, counts) in run(&gpu, &words, &dispatch) {
            assert_eq!(counts.len(), 1, "{stage:?} {counts:?}");
            assert_eq!(outcome.records[0].invocation, expected, "{stage:?}");
        }
    }
}
