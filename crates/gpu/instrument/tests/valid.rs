//! Every instrumented module is valid SPIR-V, and the same input gives the same words.

mod common;

use common::{all_options, compile, compiled_shaders, corpus, corpus::Shader, optimize, validation_errors};
use lavascope_instrument::{InstrumentError, InstrumentOptions, RootLocation, instrument};
use lavascope_spirv::Module;

const ENVIRONMENT: &str = "vulkan1.3";

/// Instruments in one way and asks the validator. Whether anything changed.
fn check(name: &str, words: &[u32], options: &InstrumentOptions, environment: &str) -> bool {
    let module = Module::parse(words).expect("a module");
    let made = match instrument(&module, options) {
        Ok(made) => made,
        Err(InstrumentError::PushConstants) => return false,
        Err(error) => panic!("{name}: {error}"),
    };
    let after = validation_errors(&made.words, environment);
    assert_eq!(after, None, "{name} with {options:?} for {environment}");
    made.words != words
}

/// Every shader as it was compiled and optimized, each in two ways that differ from shader to shader.
fn check_all(shaders: &[Shader]) -> usize {
    let all = all_options();
    let mut changed = 0;
    for (number, shader) in shaders.iter().enumerate() {
        let compiled = compile(&shader.source, shader.stage, ENVIRONMENT);
        assert_eq!(validation_errors(&compiled, ENVIRONMENT), None, "{} as it was", shader.name);
        let optimized = optimize(&compiled, ENVIRONMENT);
        for (turn, words) in [compiled, optimized].iter().enumerate() {
            for choice in [number * 5 + turn, number * 5 + turn + 6] {
                let name = format!("{} ({turn})", shader.name);
                changed += usize::from(check(&name, words, &all[choice % all.len()], ENVIRONMENT));
            }
        }
    }
    println!("{} shaders, changed {changed} times", shaders.len());
    changed
}

#[test]
fn instrumented_shaders_of_the_repository_are_valid() {
    let mut changed = 0;
    for (name, shader_words) in compiled_shaders() {
        for options in all_options() {
            changed += usize::from(check(&name, &shader_words, &options, ENVIRONMENT));
        }
    }
    assert!(changed > 100, "{changed}");
}

#[test]
fn instrumented_accesses_to_memory_are_valid() {
    assert!(check_all(&corpus::memory()) > 400);
}

#[test]
fn instrumented_uses_of_images_are_valid() {
    assert!(check_all(&corpus::images()) > 100);
}

#[test]
fn instrumented_atomics_and_constants_are_valid() {
    assert!(check_all(&corpus::others()) > 40);
}

#[test]
fn instrumented_shaders_of_all_stages_are_valid() {
    assert!(check_all(&corpus::stages()) > 50);
}

#[test]
fn instrumented_shaders_of_older_versions_are_valid() {
    let newer = ["mesh", "task", "rgen", "rint", "rahit", "rchit", "rmiss", "rcall"];
    let mut shaders = corpus::others();
    shaders.extend(corpus::stages().into_iter().filter(|it| !newer.contains(&it.stage) && !it.name.contains("query")));
    shaders.extend(corpus::images().into_iter().step_by(4));
    shaders.extend(corpus::memory().into_iter().step_by(9));
    let all = all_options();
    let mut changed = 0;
    for (number, shader) in shaders.iter().enumerate() {
        for (turn, environment) in ["vulkan1.0", "vulkan1.1", "vulkan1.2"].into_iter().enumerate() {
            let words = compile(&shader.source, shader.stage, environment);
            // Some of these shaders use features that the oldest version lacks, even without instrumentation.
            if validation_errors(&words, environment).is_some() {
                continue;
            }
            for choice in [number * 5 + turn, number * 5 + turn + 6] {
                let choice = &all[choice % all.len()];
                if environment == "vulkan1.0" && !matches!(choice.root, RootLocation::Descriptor { .. }) {
                    continue;
                }
                changed += usize::from(check(&shader.name, &words, choice, environment));
            }
        }
    }
    assert!(changed > 200, "{changed}");
}

#[test]
fn the_same_module_gives_the_same_words() {
    for (name, shader_words) in compiled_shaders() {
        for options in all_options().iter().step_by(5) {
            let make = || {
                let module = Module::parse(&shader_words).expect("a module");
                instrument(&module, options)
            };
            let first = make();
            (0..9).for_each(|_| assert_eq!(make(), first, "{name}"));
        }
    }
}

/// Modules of the older extension for addresses, which does not let pointers be made of two words.
#[test]
fn modules_of_the_older_extension_for_addresses_are_valid() {
    const NEWER: &str = "SPV_KHR_physical_storage_buffer";
    const OLDER: &str = "SPV_EXT_physical_storage_buffer";
    let source = "#version 460
        #extension GL_EXT_buffer_reference : require
        layout(buffer_reference) buffer Words { uint words[]; };
        layout(push_constant) uniform Push { Words all; };
        void main() { all.words[gl_WorkGroupID.x] = 1; }";
    let words = compile(source, "comp", "vulkan1.1");
    let mut bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
    let at = bytes.windows(NEWER.len()).position(|it| it == NEWER.as_bytes()).expect("it has addresses");
    bytes[at..at + OLDER.len()].copy_from_slice(OLDER.as_bytes());
    let words = common::words(&bytes);
    assert_eq!(validation_errors(&words, "vulkan1.1"), None);
    for options in all_options() {
        assert!(check("older addresses", &words, &options, "vulkan1.1"), "{options:?}");
    }
}
