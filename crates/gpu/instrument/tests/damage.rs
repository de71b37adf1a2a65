//! Malformed modules never cause a panic.

mod common;

use common::{all_options, compiled_shaders};
use lavascope_instrument::{InstrumentedModule, instrument};
use lavascope_spirv::Module;
use lavascope_test_support::TestRng;

/// Changes a few words, most often into others of the module.
fn damage(words: &mut [u32], numbers: &mut TestRng) {
    for _ in 0..1 + numbers.below(4) {
        let at = 5 + numbers.below(words.len() - 5);
        words[at] = match numbers.below(6) {
            0 => words[at] ^ 1 << numbers.below(32),
            1 => numbers.next_u32() % 64,
            2 => numbers.next_u32() % words[3].max(1),
            3 => u32::MAX - numbers.next_u32() % 4,
            4 => (words[at] & 0xffff_0000) | (numbers.next_u32() % 400),
            _ => words[5 + numbers.below(words.len() - 5)],
        };
    }
}

#[test]
fn damaged_modules_are_instrumented_or_refused() {
    let all = compiled_shaders();
    let options = all_options();
    let mut numbers = TestRng::new(4);
    let (mut parsed, mut made) = (0, 0);
    for round in 0..44_000 {
        let mut words = all[round % all.len()].1.clone();
        damage(&mut words, &mut numbers);
        let Ok(module) = Module::parse(&words) else { continue };
        parsed += 1;
        let result = instrument(&module, &options[numbers.below(options.len())]);
        made += u32::from(result.is_ok());
    }
    assert!(parsed > 20_000 && made > 15_000, "{parsed} {made}");
}

/// A stored module is read back; a damaged one is rejected or valid.
#[test]
fn what_is_kept_comes_back_and_damage_does_no_harm() {
    let (options, mut numbers) = (all_options(), TestRng::new(5));
    let mut sound = 0;
    for (name, shader_words) in compiled_shaders().into_iter().step_by(7) {
        let module = Module::parse(&shader_words).expect("a module");
        let Ok(made) = instrument(&module, &options[numbers.below(options.len())]) else { continue };
        let kept = made.to_words();
        assert_eq!(InstrumentedModule::from_words(&kept).as_ref(), Some(&made), "{name}");
        for _ in 0..40 {
            let mut bad = kept.clone();
            let at = numbers.below(bad.len());
            match numbers.below(3) {
                0 => bad[at] ^= 1 << numbers.below(32),
                1 => bad.truncate(at),
                _ => bad[at] = numbers.next_u32(),
            }
            if let Some(instrumented_module) = InstrumentedModule::from_words(&bad) {
                assert_eq!(instrumented_module.cells().len(), instrumented_module.cell_words() as usize, "{name}");
                sound += 1;
            }
        }
    }
    assert!(sound > 0, "some damage hits only words of the module");
}
