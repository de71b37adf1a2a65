//! Counting loops: their accesses are checked before they begin, and reported as if they were checked inside.

mod common;

use common::{
    compile, instrumented, optimize, validation_errors,
    vulkan::{BoundBinding, Dispatch, Gpu},
};
use lavascope_instrument::{
    CELL_WORDS, CheckDecision, CheckSite, Guard, InstrumentOptions, RecordedFault, RootLocation,
};

const HEAD: &str = "#version 460
    layout(local_size_x = 8) in;
    layout(set = 0, binding = 0) buffer A { uint a[]; };
    layout(set = 0, binding = 1) buffer B { uint b[]; };
    layout(push_constant) uniform P { uint n; uint m; } p;
    void main() { uint i = gl_GlobalInvocationID.x; uint sum = 0;\n";

fn kernel(body: &str) -> [Vec<u32>; 2] {
    let words = compile(&format!("{HEAD}{body}\nb[i] = sum; }}"), "comp", "vulkan1.3");
    let optimized = optimize(&words, "vulkan1.3");
    [words, optimized]
}

fn dispatch(push: [u32; 2]) -> Dispatch {
    let bound = vec![BoundBinding::storage(0, (0..32).collect()), BoundBinding::storage(1, vec![0; 8])];
    Dispatch { bound, push: push.to_vec(), groups: 1, ..Dispatch::default() }
}

/// Sites of the first binding that are checked once.
fn is_hoisted(site: &CheckSite) -> bool {
    site.binding == Some((0, 0)) && matches!(site.decision, CheckDecision::Hoisted { .. })
}

/// Loops, push constants, and the first index that is wrong: with 32 words behind the first binding.
const LOOPS: &[(&str, [u32; 2], Option<u32>)] = &[
    ("for (uint j = 0; j < p.n; j++) sum += a[j];", [32, 0], None),
    ("for (uint j = 0; j < p.n; j++) sum += a[j];", [33, 0], Some(32)),
    ("for (uint j = 0; j < p.n; j++) sum += a[j];", [0, 0], None),
    ("for (uint j = 0; j <= p.n; j++) sum += a[j];", [31, 0], None),
    ("for (uint j = 0; j <= p.n; j++) sum += a[j];", [32, 0], Some(32)),
    ("for (uint j = p.m; j < p.n; j++) sum += a[j];", [41, 40], Some(40)),
    ("for (uint j = p.m; j < p.n; j++) sum += a[j];", [30, 40], None),
    ("for (int j = 0; j < int(p.n); j++) sum += a[j];", [40, 0], Some(32)),
    ("for (int j = -1; j < int(p.n); j++) sum += a[j];", [4, 0], Some(u32::MAX)),
    ("for (uint j = 0; j < 20; j++) sum += a[p.m + j];", [0, 12], None),
    ("for (uint j = 0; j < 20; j++) sum += a[p.m + j];", [0, 13], Some(32)),
    ("for (uint j = 0; j < 20; j++) sum += a[p.m + j];", [0, 0xffff_fff8], Some(0xffff_fff8)),
    ("for (uint j = 0; j < 20; j++) a[j + p.m] = 7;", [0, 24], Some(32)),
    ("for (uint j = 0; j < p.n; j++) { sum += a[j]; if (sum > 4) sum += a[j + 1]; }", [8, 0], None),
    ("for (uint k = 0; k < 3; k++) for (uint j = 0; j < p.n; j++) sum += a[j];", [33, 0], Some(32)),
    ("for (uint j = 0; j < uint(a.length()); j++) sum += a[j];", [0, 0], None),
];

#[test]
fn accesses_by_a_counter_are_checked_before_the_loop() {
    let gpu = Gpu::new();
    for (body, push, first) in LOOPS {
        for (turn, words) in kernel(body).iter().enumerate() {
            let bare = gpu.run(words, &dispatch(*push));
            for guard in [Guard::Select, Guard::Branch] {
                let options = InstrumentOptions {
                    guard,
                    ..InstrumentOptions::new(RootLocation::Descriptor { set: gpu.last_set })
                };
                let made = instrumented(words, &options);
                assert_eq!(validation_errors(&made.words, "vulkan1.3"), None, "{body} {turn}");
                assert!(made.sites.iter().any(is_hoisted), "{body} {turn}: {:?}", made.sites);
                let outcome = gpu.run_checked(&made, options.root, &dispatch(*push));
                let errors: Vec<RecordedFault> = outcome.records.iter().map(|it| it.fault).collect();
                let expected = first.map(|index| RecordedFault::BufferOutOfBounds { descriptor: 0, index, range: 128 });
                assert_eq!(errors, Vec::from_iter(expected), "{body} {push:?} {turn} {guard:?}");
                match outcome.records.first() {
                    None => assert_eq!(outcome.buffers, bare, "{body} {turn} {guard:?}"),
                    Some(record) => {
                        let number = made.site_of(record).and_then(|it| it.decision.number()).expect("a site");
                        assert_eq!(outcome.cells[(number * CELL_WORDS) as usize], 8, "once for each invocation");
                    }
                }
            }
        }
    }
}

#[test]
fn loops_that_may_end_early_are_checked_inside() {
    let gpu = Gpu::new();
    let loops = [
        "for (uint j = 0; j < p.n; j++) { if (a[j] == 9) break; sum += a[j]; }",
        "for (uint j = 0; j < p.n; j++) { if (a[j] == 9) return; sum += 1; }",
        "for (uint j = 0; j < p.n; j++) { if (j < 20) sum += a[j]; }",
        "uint j = 0; while (j < p.n && a[j] < 20) { j++; } sum = j;",
        "for (uint j = 0; j < p.n; j += 2) { sum += a[j]; if (j > 8) j = p.n; }",
    ];
    for body in loops {
        for words in kernel(body) {
            let options = InstrumentOptions::new(RootLocation::Descriptor { set: gpu.last_set });
            let made = instrumented(&words, &options);
            let outcome = gpu.run_checked(&made, options.root, &dispatch([1000, 0]));
            assert_eq!(outcome.records, [], "{body}: {:?}", made.sites);
            assert_eq!(outcome.buffers, gpu.run(&words, &dispatch([1000, 0])), "{body}");
        }
    }
}

#[test]
fn sites_that_are_asked_for_are_not_moved_and_keep_their_numbers() {
    for words in kernel("for (uint j = 0; j < p.n; j++) { sum += a[j]; a[j] = 1; } a[p.m] = 4;") {
        let options = InstrumentOptions::new(RootLocation::Descriptor { set: 7 });
        let (moved, here) = (
            instrumented(&words, &options),
            instrumented(&words, &InstrumentOptions { immediate: (0..20).collect(), ..options.clone() }),
        );
        let numbers = |sites: &[CheckSite]| -> Vec<_> {
            sites.iter().map(|it| (it.at, it.check, it.decision.number())).collect()
        };
        assert_eq!(numbers(&moved.sites), numbers(&here.sites));
        assert!(moved.sites.iter().any(is_hoisted) && !here.sites.iter().any(is_hoisted));
    }
}
