//! Shaders in four languages, as compiled and optimized, run on two drivers: with data in range, checks change nothing.

mod common;

use common::{
    compile, compile_hlsl, corpus, corpus_dispatch, hlsl, optimize, validation_errors,
    vulkan::{Dispatch, Gpu},
    wgsl_and_slang_shaders,
};
use lavascope_instrument::{Guard, InstrumentOptions, RootLocation, instrument};
use lavascope_spirv::Module;

const ENVIRONMENT: &str = "vulkan1.3";

/// Ways to instrument that take turns.
fn option_variants(gpu: &Gpu) -> Vec<InstrumentOptions> {
    let roots = [
        RootLocation::Descriptor { set: gpu.last_set },
        RootLocation::PushConstant { offset: 120 },
        RootLocation::Specialization,
    ];
    let touches = |root| matches!(root, RootLocation::PushConstant { .. });
    let zeros = |root| root == RootLocation::Specialization;
    let with = |root, guard| InstrumentOptions {
        guard,
        touches: touches(root),
        zero_faulty_loads: zeros(root),
        ..InstrumentOptions::new(root)
    };
    roots.iter().flat_map(|root| [with(*root, Guard::Select), with(*root, Guard::Branch)]).collect()
}

/// How often shaders were run, and how many sites they had that were checked or proven.
#[derive(Debug, Default)]
struct Count {
    modules: usize,
    left_out: usize,
    sites: usize,
}

/// Runs a module unchanged and with checks, and compares all memory.
fn compare(gpu: &Gpu, name: &str, words: &[u32], options: &InstrumentOptions, count: &mut Count) {
    let module = Module::parse(words).expect("a module");
    if corpus_dispatch::missing(gpu, &module).is_some() {
        count.left_out += 1;
        return;
    }
    let dispatch = addressed(name, corpus_dispatch::dispatch(&module));
    let made = instrument(&module, options).expect("a module that can be instrumented");
    assert_eq!(validation_errors(&made.words, ENVIRONMENT), None, "{name} with {options:?}");
    let mut bare = gpu.run(words, &dispatch);
    let mut outcome = gpu.run_checked(&made, options.root, &dispatch);
    if dispatch.is_linked {
        // It holds its own address, which is another one each time.
        for buffer in [bare.last_mut(), outcome.buffers.last_mut()].into_iter().flatten() {
            buffer.drain(..2);
        }
    }
    assert_eq!(outcome.records, [], "{name} with {options:?}");
    assert!(outcome.buffers == bare, "{name} with {options:?} computes something else");
    count.modules += 1;
    count.sites += made.sites.len();
}

/// Shaders with addresses find one at the beginning of their push constants.
fn addressed(name: &str, dispatch: Dispatch) -> Dispatch {
    if !name.contains("address") {
        return dispatch;
    }
    let words = (0..24_000).map(|it| it % 7).collect();
    Dispatch { addressed: vec![words], is_linked: name.contains("address_list"), ..dispatch }
}

/// Each module unchanged and optimized, each in another way.
fn compare_all(gpu: &Gpu, modules: impl Iterator<Item = (String, Vec<u32>)>) -> Count {
    let ways = option_variants(gpu);
    let mut count = Count::default();
    for (number, (name, words)) in modules.enumerate() {
        assert_eq!(validation_errors(&words, ENVIRONMENT), None, "{name} as it was");
        let optimized = optimize(&words, ENVIRONMENT);
        compare(gpu, &name, &words, &ways[number % ways.len()], &mut count);
        compare(gpu, &name, &optimized, &ways[(number + 1) % ways.len()], &mut count);
    }
    println!("{count:?}");
    count
}

/// Every second one: their kinds of memory and their flows come together often enough.
fn glsl() -> impl Iterator<Item = (String, Vec<u32>)> {
    corpus::memory().into_iter().step_by(2).map(|it| (it.name, compile(&it.source, it.stage, ENVIRONMENT)))
}

/// Every second one; this compiler makes storage buffers as older versions have them.
fn hlsl() -> impl Iterator<Item = (String, Vec<u32>)> {
    hlsl::all().into_iter().step_by(2).map(|it| (it.name, compile_hlsl(&it.source, "vulkan1.1")))
}

#[test]
fn glsl_in_range_computes_the_same_on_lavapipe() {
    let count = compare_all(&Gpu::new(), glsl());
    assert!(count.modules >= 150, "{count:?}");
}

#[test]
fn hlsl_in_range_computes_the_same_on_lavapipe() {
    let count = compare_all(&Gpu::new(), hlsl());
    assert!(count.modules >= 80, "{count:?}");
}

#[test]
fn wgsl_and_slang_in_range_compute_the_same_on_lavapipe() {
    let count = compare_all(&Gpu::new(), wgsl_and_slang_shaders().into_iter());
    assert!(count.modules >= 44, "{count:?}");
}

#[test]
fn all_languages_in_range_compute_the_same_on_swiftshader() {
    let gpu = Gpu::swiftshader();
    let count = compare_all(&gpu, glsl().chain(hlsl()).chain(wgsl_and_slang_shaders()));
    assert!(count.modules >= 200, "{count:?}");
}
