//! Whatever is instrumented stays valid SPIR-V.

mod common;

use common::{all_options, compiled, complaints};
use lavascope_instrument::{InstrumentError, instrument};
use lavascope_spirv::Module;

#[test]
fn instrumented_shaders_of_the_repository_are_valid() {
    let mut changed = 0;
    for (name, words) in compiled() {
        let before = complaints(&words, "vulkan1.3");
        assert_eq!(before, None, "{name} as it was");
        for options in all_options() {
            let module = Module::parse(&words).expect("a module");
            let made = match instrument(&module, &options) {
                Ok(made) => made,
                Err(InstrumentError::PushConstants) => continue,
                Err(error) => panic!("{name}: {error}"),
            };
            changed += u32::from(made.words != words);
            let after = complaints(&made.words, "vulkan1.3");
            assert_eq!(after, None, "{name} with {options:?}");
        }
    }
    assert!(changed > 100, "{changed}");
}
