//! On a device, shaders record exactly what they touch.

mod common;

use std::ops::Range;

use ash::vk;
use common::{
    compile, instrumented, validation_errors,
    vulkan::{BoundBinding, Dispatch, DispatchOutcome, Gpu},
};
use lavascope_instrument::{Checks, Guard, InstrumentOptions, InstrumentedModule, RootLocation, TouchSite, Touched};

const ROOT: RootLocation = RootLocation::PushConstant { offset: 120 };
const GUARDS: [Guard; 2] = [Guard::Select, Guard::Branch];

fn kernel(body: &str) -> Vec<u32> {
    compile(&format!("#version 460\nlayout(local_size_x = 64) in;\n{body}"), "comp", "vulkan1.3")
}

struct Run {
    made: InstrumentedModule,
    outcome: DispatchOutcome,
}

fn run(gpu: &Gpu, words: &[u32], guard: Guard, dispatch: &Dispatch) -> Run {
    let made = instrumented(words, &InstrumentOptions { guard, touches: true, ..InstrumentOptions::new(ROOT) });
    assert_eq!(validation_errors(&made.words, "vulkan1.3"), None);
    let outcome = gpu.run_checked(&made, ROOT, dispatch);
    assert_eq!(outcome.buffers, gpu.run(words, dispatch));
    Run { made, outcome }
}

impl Run {
    /// All that was touched through a binding by reads, writes or atomic operations.
    fn touched(&self, binding: u32, reads: bool, writes: bool, is_atomic: bool) -> Touched {
        let touches = &self.made.touches;
        assert!(touches.tracks_binding(0, binding), "{touches:?}");
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
        let bound = vec![BoundBinding::storage(0, vec![3; 1000]), BoundBinding::storage(1, vec![100, 400, wish, 0])];
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
            let array = BoundBinding { binding: 0, kind: vk::DescriptorType::STORAGE_BUFFER, elements: elements() };
            let bound = vec![array, BoundBinding::storage(1, which.to_vec())];
            let run = run(&gpu, &words, guard, &Dispatch { bound, groups: 1, ..Dispatch::default() });
            let touched = run.touched(0, false, true, false);
            assert_eq!((touched.elements, touched.is_incomplete), (expected, false));
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
            let bound = vec![BoundBinding::storage(0, vec![0; 40]), BoundBinding::storage(1, vec![wish])];
            let dispatch = Dispatch { bound, groups: 1, ..Dispatch::default() };
            let made =
                instrumented(&words, &InstrumentOptions { guard, touches: true, ..InstrumentOptions::new(ROOT) });
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
    let bound = vec![BoundBinding::storage(0, vec![0; 1 << 16]), BoundBinding::storage(1, vec![1000])];
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
        instrumented(&words, &InstrumentOptions { touches: true, ..InstrumentOptions::new(ROOT) }).touches
    };
    let uniform = blind(
        "layout(set = 0, binding = 0) uniform Numbers { uint numbers[4]; };
        layout(set = 0, binding = 1) buffer Words { uint words[]; };
        void main() { words[numbers[1]] = 1u; }",
    );
    assert!(!uniform.tracks_binding(0, 0) && uniform.tracks_binding(0, 1), "{uniform:?}");
    let addresses = |checks: Checks| {
        let words = kernel(
            "#extension GL_EXT_buffer_reference : require
            layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint words[]; };
            layout(push_constant) uniform Push { Words all; };
            layout(set = 0, binding = 0) buffer First { uint first; };
            void main() { all.words[first] = 1u; }",
        );
        let touches =
            instrumented(&words, &InstrumentOptions { checks, touches: true, ..InstrumentOptions::new(ROOT) }).touches;
        assert!(touches.tracks_binding(0, 0));
        touches.tracks_addresses()
    };
    let all = InstrumentOptions::new(ROOT).checks;
    assert!(addresses(all) && !addresses(Checks { addresses: false, ..all }));
    let none = blind("void main() {}");
    assert_eq!(none, lavascope_instrument::ModuleTouches::default());
    // Halves of words are not sure.
    let small = blind(
        "#extension GL_EXT_shader_16bit_storage : require
        layout(set = 0, binding = 1) buffer Words { uint16_t words[]; };
        void main() { words[gl_GlobalInvocationID.x] = words[0]; }",
    );
    assert!(small.tracks_binding(0, 1));
    let kinds: Vec<_> = small.sites.iter().map(|it| it.kind).collect();
    assert!(kinds.iter().all(|it| *it == lavascope_instrument::TouchKind::Bits { is_exact: false }), "{kinds:?}");
}

#[test]
fn words_are_found_by_a_slot() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) buffer Words { uint words[]; };
        layout(set = 0, binding = 1) readonly buffer First { uint first; };
        void main() { words[first + gl_GlobalInvocationID.x] = 1u; }",
    );
    for touch_slot in [None, Some(0), Some(7)] {
        let bound = vec![BoundBinding::storage(0, vec![0; 1000]), BoundBinding::storage(1, vec![100])];
        let dispatch = Dispatch { bound, groups: 1, touch_slot, ..Dispatch::default() };
        let run = run(&gpu, &words, Guard::Select, &dispatch);
        assert_eq!(run.touched(0, false, true, false).must, words_of(100..164), "{touch_slot:?}");
    }
}

#[test]
fn texels_of_texel_buffers_are_kept_by_their_numbers() {
    let gpu = Gpu::new();
    let words = kernel(
        "layout(set = 0, binding = 0) uniform utextureBuffer source;
        layout(set = 0, binding = 1, r32ui) uniform uimageBuffer target;
        layout(set = 0, binding = 2) readonly buffer First { uint first[2]; };
        void main() {
            int at = int(gl_GlobalInvocationID.x);
            uint found = texelFetch(source, int(first[0]) + at * 3).x;
            imageStore(target, int(first[1]) + at, uvec4(found));
            imageAtomicAdd(target, 7, 1u);
        }",
    );
    let texels = |binding, kind| BoundBinding { binding, kind, elements: vec![Some((vec![5; 300], 1200))] };
    for guard in GUARDS {
        let source = texels(0, vk::DescriptorType::UNIFORM_TEXEL_BUFFER);
        let target = texels(1, vk::DescriptorType::STORAGE_TEXEL_BUFFER);
        let bound = vec![source, target, BoundBinding::storage(2, vec![20, 250])];
        let dispatch = Dispatch { bound, groups: 1, ..Dispatch::default() };
        let made = instrumented(&words, &InstrumentOptions { guard, touches: true, ..InstrumentOptions::new(ROOT) });
        let outcome = gpu.run_checked(&made, ROOT, &dispatch);
        let run = Run { made, outcome };
        let read = run.touched(0, true, false, false);
        assert_eq!(
            (read.may, read.must),
            (words_of((0..64).map(|it| 20 + it * 3)), words_of((0..64).map(|it| 20 + it * 3)))
        );
        // Memory behind the end is not written.
        assert_eq!(run.touched(1, false, true, false).must, words_of(250..300));
        assert_eq!(run.touched(1, true, true, true).must, words_of(7..8));
    }
}

/// The touches by addresses, by reads, writes or atomic operations: the spans of all sites together.
fn addressed(run: &Run, reads: bool, writes: bool, is_atomic: bool) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let touches = &run.made.touches;
    assert!(touches.tracks_addresses(), "{touches:?}");
    let is_it = |it: &&TouchSite| (it.reads, it.writes, it.is_atomic) == (reads, writes, is_atomic);
    let sites = touches.sites.iter().filter(|it| it.set == TouchSite::ADDRESSES).filter(is_it);
    let all: Vec<Touched> = sites.map(|it| it.read_addresses(&run.outcome.touches, || None)).collect();
    assert!(all.iter().all(|it| !it.is_incomplete));
    let flat = |of: fn(&Touched) -> &Vec<Range<u64>>| all.iter().flat_map(|it| of(it).clone()).collect();
    (flat(|it| &it.may), flat(|it| &it.must))
}

#[test]
fn words_at_device_addresses_are_kept() {
    let gpu = Gpu::new();
    let words = kernel(
        "#extension GL_EXT_buffer_reference_uvec2 : require
        layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint words[]; };
        layout(push_constant) uniform Push { Words source; Words target; };
        layout(set = 0, binding = 0) buffer Where { uvec2 places[2]; uint first[2]; };
        void main() {
            uint at = gl_GlobalInvocationID.x;
            places[0] = uvec2(source);
            places[1] = uvec2(target);
            target.words[first[0] + at] = source.words[first[1] + at * 2u];
            if (at == 3u) atomicAdd(target.words[9], 1u);
        }",
    );
    for guard in GUARDS {
        let bound = vec![BoundBinding::storage(0, vec![0, 0, 0, 0, 100, 200])];
        let addressed_words = vec![vec![4; 400], vec![4; 150]];
        let dispatch = Dispatch { bound, addressed: addressed_words, groups: 1, ..Dispatch::default() };
        let made = instrumented(&words, &InstrumentOptions { guard, touches: true, ..InstrumentOptions::new(ROOT) });
        assert_eq!(validation_errors(&made.words, "vulkan1.3"), None);
        let outcome = gpu.run_checked(&made, ROOT, &dispatch);
        let places = &outcome.buffers[0];
        let [source, target] = [0, 2].map(|at| u64::from(places[at]) | u64::from(places[at + 1]) << 32);
        let run = Run { made, outcome };
        let at = |base: u64, all: Vec<Range<u64>>| -> Vec<Range<u64>> {
            all.into_iter().map(|it| base + it.start..base + it.end).collect()
        };
        let read = at(source, words_of((0..64).map(|it| 200 + it * 2)));
        assert_eq!(addressed(&run, true, false, false), (read.clone(), read));
        // Memory behind the end is not written.
        let written = at(target, words_of(100..150));
        assert_eq!(addressed(&run, false, true, false), (written.clone(), written));
        let atomic = at(target, words_of(9..10));
        assert_eq!(addressed(&run, true, true, true), (atomic.clone(), atomic));
    }
}

#[test]
fn addresses_far_apart_are_looked_for_where_buffers_are() {
    const COUNT: u64 = 4 << 20;
    let gpu = Gpu::new();
    let words = kernel(
        "#extension GL_EXT_buffer_reference_uvec2 : require
        layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint words[]; };
        layout(push_constant) uniform Push { Words all; };
        layout(set = 0, binding = 0) buffer Where { uvec2 place; uint first[2]; };
        void main() {
            uint at = gl_GlobalInvocationID.x;
            place = uvec2(all);
            all.words[first[at / 32u] + at] = 1u;
        }",
    );
    let bound = vec![BoundBinding::storage(0, vec![0, 0, 100, COUNT as u32 - 64])];
    let addressed = vec![vec![0; COUNT as usize]];
    let made = instrumented(&words, &InstrumentOptions { touches: true, ..InstrumentOptions::new(ROOT) });
    let outcome = gpu.run_checked(&made, ROOT, &Dispatch { bound, addressed, groups: 1, ..Dispatch::default() });
    let run = Run { made, outcome };
    let [site] = run.made.touches.sites.iter().filter(|it| it.set == TouchSite::ADDRESSES).collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", run.made.touches.sites)
    };
    let place = &run.outcome.buffers[0];
    let base = u64::from(place[0]) | u64::from(place[1]) << 32;
    let read = |range: Option<Range<u64>>| {
        site.read_addresses(&run.outcome.touches, || {
            Some(range.into_iter().collect()).filter(|it: &Vec<_>| !it.is_empty())
        })
    };
    let parts = [base + 400..base + 528, base + COUNT * 4 - 128..base + COUNT * 4];
    let is_in = |all: &[Range<u64>], it: &Range<u64>| all.iter().any(|own| own.start <= it.start && it.end <= own.end);
    let found = read(Some(base..base + COUNT * 4));
    assert!(
        found.is_recorded && !found.is_incomplete && parts.iter().all(|it| is_in(&found.may, it)),
        "{:?}",
        found.may
    );
    assert!(found.may.iter().map(|it| it.end - it.start).sum::<u64>() <= 4 * 4096, "two blocks: {:?}", found.may);
    assert!(found.must.iter().all(|it| is_in(&parts, it)), "{:?}", found.must);
    assert!(is_in(&found.must, &(base + 400..base + 404)), "the first one is known");
    // Touches outside of the searched range are not reported.
    assert!(read(Some(base..base + 4096)).may.iter().all(|it| it.end <= base + 4096));
    assert!(read(None).is_incomplete);
}

/// The same module with one more entry point.
fn with_two_entries(words: &[u32]) -> Vec<u32> {
    const ENTRY_POINT: u32 = 15;
    let mut at = 5;
    while words[at] & 0xffff != ENTRY_POINT {
        at += (words[at] >> 16) as usize;
    }
    let end = at + (words[at] >> 16) as usize;
    let mut other = words[at..end].to_vec();
    assert_eq!(other[3], u32::from_le_bytes(*b"main"));
    other[3] = u32::from_le_bytes(*b"none");
    [&words[..end], &other, &words[end..]].concat()
}

#[test]
fn of_several_entry_points_none_is_taken_to_run() {
    let words = kernel(
        "layout(set = 0, binding = 0) buffer Words { uint words[8]; };
        void main() { words[3] = 1u; }",
    );
    let touches = |words: &[u32]| {
        instrumented(words, &InstrumentOptions { touches: true, ..InstrumentOptions::new(ROOT) }).touches
    };
    let (one, two) = (touches(&words), touches(&with_two_entries(&words)));
    assert_eq!((one.sites[0].fixed_ranges.clone(), one.words), (vec![(12, 4)], 0), "it needs no code");
    assert!(two.sites[0].fixed_ranges.is_empty() && two.words > 0, "{two:?}");
}
