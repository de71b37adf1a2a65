//! What shaders touch on a device is what they keep of it.

mod common;

use std::ops::Range;

use ash::vk;
use common::{
    compile, complaints, instrumented,
    vulkan::{Bound, Dispatch, Gpu, Outcome},
};
use lavascope_instrument::{Guard, Instrumented, Options, Root, Touched};

const ROOT: Root = Root::PushConstant { offset: 120 };
const GUARDS: [Guard; 2] = [Guard::Select, Guard::Branch];

fn kernel(body: &str) -> Vec<u32> {
    compile(&format!("#version 460\nlayout(local_size_x = 64) in;\n{body}"), "comp", "vulkan1.3")
}

struct Run {
    made: Instrumented,
    outcome: Outcome,
}

fn run(gpu: &Gpu, words: &[u32], guard: Guard, dispatch: &Dispatch) -> Run {
    let made = instrumented(words, &Options { guard, touches: true, ..Options::new(ROOT) });
    assert_eq!(complaints(&made.words, "vulkan1.3"), None);
    let outcome = gpu.run_checked(&made, ROOT, dispatch);
    assert_eq!(outcome.buffers, gpu.run(words, dispatch));
    Run { made, outcome }
}

impl Run {
    /// All that was touched through a binding by reads, writes or atomic operations.
    fn touched(&self, binding: u32, reads: bool, writes: bool, is_atomic: bool) -> Touched {
        let touches = &self.made.touches;
        assert!(touches.covers(0, binding), "{touches:?}");
        let mut sites = touches
            .sites
            .iter()
            .filter(|it| (it.binding, it.reads, it.writes, it.is_atomic) == (binding, reads, writes, is_atomic));
        let site = sites.next().expect("a site");
        assert_eq!(sites.next(), None);
        site.read(&self.outcome.touches)
    }
}

/// Words by their numbers.
fn words_of(all: impl IntoIterator<Item = u64>) -> Vec<Range<u64>> {
    let mut made: Vec<Range<u64>> = Vec::new();
    for word in all {
        match made.last_mut() {
            Some(last) if last.end == word * 4 => last.end += 4,
            _ => made.push(word * 4..word * 4 + 4),
        }
    }
    made
}

#[test]
fn words_at_places_that_memory_says_are_kept() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) buffer Words { uint count; uint words[]; };
        layout(set = 0, binding = 1) readonly buffer First { uint first[4]; };
        void main() {
            uint at = gl_GlobalInvocationID.x;
            words[first[0] + at * 2u] = words[first[1] + at];
            if (first[2] != 0u) words[0] = 7u;
            atomicAdd(count, 1u);
        }",
    );
    for (guard, wish) in GUARDS.into_iter().zip([0, 1]) {
        let bound = vec![Bound::storage(0, vec![3; 1000]), Bound::storage(1, vec![100, 400, wish, 0])];
        let run = run(&gpu, &words, guard, &Dispatch { bound, groups: 1, ..Dispatch::default() });
        let written = (0..64).map(|it| 101 + it * 2);
        let written = words_of((wish != 0).then_some(1).into_iter().chain(written));
        let write = run.touched(0, false, true, false);
        assert_eq!((write.may, write.must, write.elements), (written.clone(), written, vec![0]));
        let read = run.touched(0, true, false, false);
        assert_eq!((read.may, read.must), (words_of(401..465), words_of(401..465)));
        let atomic = run.touched(0, true, true, true);
        assert_eq!(atomic.must, words_of(0..1));
        assert_eq!(run.touched(1, true, false, false).must, words_of(0..3));
    }
}

#[test]
fn the_buffers_of_an_array_that_are_used_are_kept() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) buffer Words { uint words[]; } buffers[4];
        layout(set = 0, binding = 1) readonly buffer Which { uint which[]; };
        void main() {
            buffers[which[gl_LocalInvocationID.x / 32u]].words[gl_LocalInvocationID.x % 32u] = 1u;
        }",
    );
    let elements = || (0..4).map(|_| Some((vec![0; 64], 256))).collect();
    for guard in GUARDS {
        for (which, expected) in [([2, 2], vec![2]), ([3, 1], vec![1, 3])] {
            let array = Bound { binding: 0, kind: vk::DescriptorType::STORAGE_BUFFER, elements: elements() };
            let bound = vec![array, Bound::storage(1, which.to_vec())];
            let run = run(&gpu, &words, guard, &Dispatch { bound, groups: 1, ..Dispatch::default() });
            let touched = run.touched(0, false, true, false);
            assert_eq!((touched.elements, touched.is_lost), (expected, false));
            assert_eq!(touched.may, words_of(0..32));
        }
    }
}

#[test]
fn accesses_that_do_not_happen_are_not_kept() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) buffer Words { uint words[]; };
        layout(set = 0, binding = 1) readonly buffer Wish { uint wish; };
        void main() {
            // The last ones are behind the end.
            if (wish != 0u) words[gl_GlobalInvocationID.x] = 1u;
        }",
    );
    for guard in GUARDS {
        for (wish, expected) in [(0, 0), (1, 40)] {
            let bound = vec![Bound::storage(0, vec![0; 40]), Bound::storage(1, vec![wish])];
            let dispatch = Dispatch { bound, groups: 1, ..Dispatch::default() };
            let made = instrumented(&words, &Options { guard, touches: true, ..Options::new(ROOT) });
            let outcome = gpu.run_checked(&made, ROOT, &dispatch);
            let run = Run { made, outcome };
            let touched = run.touched(0, false, true, false);
            assert_eq!(touched.must, words_of(0..expected));
            assert_eq!(touched.elements.len(), usize::from(wish != 0));
        }
    }
}

#[test]
fn large_spans_are_kept_by_blocks() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) buffer Words { vec4 words[]; };
        layout(set = 0, binding = 1) readonly buffer First { uint first; };
        void main() { words[first + gl_GlobalInvocationID.x] = vec4(1.0); }",
    );
    let bound = vec![Bound::storage(0, vec![0; 1 << 16]), Bound::storage(1, vec![1000])];
    let run = run(&gpu, &words, Guard::Select, &Dispatch { bound, groups: 100, ..Dispatch::default() });
    let touched = run.touched(0, false, true, false);
    assert_eq!(touched.may, words_of(4000..4000 + 6400 * 4));
    let sure: u64 = touched.must.iter().map(|it| (it.end - it.start) / 4).sum();
    assert!((25..30).contains(&sure), "one of each block, and the ends: {sure}");
    assert!(touched.must.iter().all(|it| 16_000 <= it.start && it.end <= 16_000 + 102_400));
}

#[test]
fn what_is_not_followed_is_said() {
    let blind = |body: &str| {
        let words = kernel(body);
        instrumented(&words, &Options { touches: true, ..Options::new(ROOT) }).touches
    };
    let uniform = blind(
        "layout(set = 0, binding = 0) uniform Numbers { uint numbers[4]; };
        layout(set = 0, binding = 1) buffer Words { uint words[]; };
        void main() { words[numbers[1]] = 1u; }",
    );
    assert!(!uniform.covers(0, 0) && uniform.covers(0, 1), "{uniform:?}");
    let none = blind("void main() {}");
    assert_eq!(none, lavascope_instrument::Touches::default());
    // Halves of words are not sure.
    let small = blind(
        "#extension GL_EXT_shader_16bit_storage : require
        layout(set = 0, binding = 1) buffer Words { uint16_t words[]; };
        void main() { words[gl_GlobalInvocationID.x] = words[0]; }",
    );
    assert!(small.covers(0, 1));
    let kinds: Vec<_> = small.sites.iter().map(|it| it.kind).collect();
    assert!(kinds.iter().all(|it| *it == lavascope_instrument::TouchKind::Bits { is_exact: false }), "{kinds:?}");
}
