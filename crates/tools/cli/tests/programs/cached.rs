//! A program with a pipeline cache of its own, with checks in its shaders and without.

use crate::bad_input::compiled;
use crate::test_environment::{TestEnvironment, succeed};

const SHADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dev/samples/shaders/double.comp.spv");

/// What a cache has is the driver's and the application's: with checks it has nothing of ours, bytes of a run without
/// checks are good for one with them, and the other way round. (lavapipe keeps no shaders in a cache; what a driver does
/// that keeps them is in `docs/gpu-results.md`.)
#[test]
fn pipeline_caches_go_from_runs_with_checks_to_those_without_and_back() {
    let stage = TestEnvironment::new("gpu-cached");
    let program = compiled(&stage, "cached.c");
    let bare = |from: &str, to: &str| {
        succeed(stage.bare(&program).args([SHADER, from, to]));
        std::fs::read(stage.folder.join(to)).expect("the program wrote it")
    };
    let checked = |from: &str, to: &str| {
        let mut command = stage.lavascope();
        succeed(command.args(["run", "--gpu", "--"]).arg(&program).args([SHADER, from, to]));
        std::fs::read(stage.folder.join(to)).expect("the program wrote it")
    };
    let without = bare("none", "without.bin");
    assert!(without.len() >= 32, "a cache has a header");
    // Two that begin with nothing, and one each that begins with what another run left.
    assert_eq!(checked("none", "with.bin")[..32], without[..32]);
    assert_eq!(checked("without.bin", "with-again.bin"), without, "nothing came and nothing went");
    assert_eq!(bare("with.bin", "without-again.bin"), without);
}
