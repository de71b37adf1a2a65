//! The writes of a shader do not change when an optimizer has inlined, folded and reordered it.

mod common;

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, Stdio},
};

use common::lines;
use lavascope_spirv::{Module, Specialization, reflect};

fn optimized(words: &[u32]) -> Vec<u32> {
    let mut optimizer = Command::new("spirv-opt")
        .args(["--target-env=vulkan1.3", "-O", "-", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("spirv-opt: on Debian and Ubuntu `apt-get install spirv-tools` brings it");
    let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
    optimizer.stdin.take().expect("a pipe").write_all(&bytes).expect("the optimizer reads");
    let output = optimizer.wait_with_output().expect("the optimizer ends");
    assert!(output.status.success());
    output.stdout.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect()
}

/// The lines of all writes, each once.
fn writes(words: &[u32]) -> BTreeSet<String> {
    let module = Module::parse(words).expect("a module");
    let found = reflect(&module, 0, &Specialization::default()).expect("an entry point");
    lines(&found).into_iter().filter(|it| it.contains("writes")).collect()
}

#[test]
fn writes_are_the_same_before_and_after_optimization() {
    let (mut all, mut changed) = (0, 0);
    for path in common::compiled() {
        let words = common::words(&path);
        let before = writes(&words);
        let after = optimized(&words);
        changed += usize::from(after != words);
        assert_eq!(writes(&after), before, "{}", path.display());
        all += before.len();
    }
    assert!(all > 50 && changed > 15, "{all} writes, {changed} shaders");
}
