//! Shaders that are changed at random into other valid ones stay valid when they are instrumented.
//!
//! `LAVASCOPE_SHADERS` is the number, `LAVASCOPE_SEED` the seed; `cargo xtask fuzz --shaders` sets both.

mod common;

use common::{
    all_options, compile_hlsl, compiled_shaders, corpus, hlsl, mutate::ModuleDraft, optimize, validation_errors,
    wgsl_and_slang_shaders,
};
use lavascope_instrument::{InstrumentError, instrument};
use lavascope_spirv::Module;
use lavascope_test_support::TestRng;

const ENVIRONMENT: &str = "vulkan1.3";

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}

/// The modules that are mutated: shaders of all languages, some of them optimized.
fn sources(is_long: bool) -> Vec<(String, Vec<u32>)> {
    let mut all = compiled_shaders();
    all.extend(wgsl_and_slang_shaders());
    let step = if is_long { 1 } else { 17 };
    let glsl = corpus::memory().into_iter().chain(corpus::images()).chain(corpus::others()).chain(corpus::stages());
    all.extend(glsl.step_by(step).map(|it| (it.name, common::compile(&it.source, it.stage, ENVIRONMENT))));
    all.extend(hlsl::all().into_iter().step_by(step).map(|it| (it.name, compile_hlsl(&it.source, "vulkan1.1"))));
    let optimized =
        all.iter().step_by(2).map(|(name, words)| (format!("{name}, optimized"), optimize(words, ENVIRONMENT)));
    let optimized: Vec<(String, Vec<u32>)> = optimized.collect();
    all.extend(optimized);
    all
}

#[test]
fn changed_shaders_stay_valid_with_checks() {
    let (count, seed) = (number("LAVASCOPE_SHADERS", 300), number("LAVASCOPE_SEED", 1));
    let all = sources(count > 1000);
    let options = all_options();
    let mut numbers = TestRng::new(seed);
    let (mut valid, mut changed, mut kinds) = (0, 0, [0; 12]);
    for round in 0..count {
        let (name, words) = &all[numbers.below(all.len())];
        let mut draft = ModuleDraft::new(words);
        let changes: Vec<usize> = (0..1 + numbers.below(10)).map(|_| draft.change(&mut numbers)).collect();
        let words = draft.words();
        if validation_errors(&words, ENVIRONMENT).is_some() {
            continue;
        }
        valid += 1;
        changes.iter().for_each(|it| kinds[*it] += 1);
        let options = &options[numbers.below(options.len())];
        let module = Module::parse(&words).unwrap_or_else(|error| panic!("{name}: {error}"));
        let made = match instrument(&module, options) {
            Ok(made) => made,
            Err(InstrumentError::PushConstants) => continue,
            Err(error) => panic!("{name}: {error}"),
        };
        changed += u64::from(!made.is_unchanged());
        if let Some(complaint) = validation_errors(&made.words, ENVIRONMENT) {
            let path = std::env::temp_dir().join(format!("lavascope-changed-{seed}-{round}.spv"));
            let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
            std::fs::write(&path, bytes).expect("a file that is written");
            panic!(
                "{name} of round {round}, seed {seed}, {changes:?}, {options:?}: {complaint}\nit is {}",
                path.display()
            );
        }
    }
    println!("{valid} of {count} changed shaders were valid, {changed} got checks; changes by kind: {kinds:?}");
    assert!(valid * 3 > count && changed * 2 > valid, "{valid} {changed}");
    assert!(count < 300 || kinds.iter().all(|it| *it > 0), "{kinds:?}");
}
