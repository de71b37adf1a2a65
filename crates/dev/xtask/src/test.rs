//! Every test, on a machine that may have nothing but Rust.

use std::path::Path;

use anyhow::Result;

use crate::setup::process;
use crate::setup::process::cargo;
use crate::setup::{chromium, registry_files, system};

/// For the programs on wgpu that run under the layer, with all that they need themselves.
pub(crate) const PYTHON_PACKAGES: [&str; 3] = ["wgpu==0.32.0", "cffi==2.1.1", "pycparser==3.12"];

pub(crate) fn run(root: &Path, no_install: bool) -> Result<()> {
    system::ensure_for_tests(root, no_install)?;
    registry_files::ensure(root)?;
    process::ensure_python_packages(root, &root.join("target/python"), &PYTHON_PACKAGES)?;
    println!("SwiftShader: {}", chromium::swiftshader(root, no_install)?.display());
    println!("the newer Khronos layer: {}", chromium::khronos(root, no_install)?.display());
    let cargo = cargo();
    process::run(root, &cargo, &["fmt", "--all", "--check"])?;
    process::run(root, &cargo, &["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])?;
    process::run(root, &cargo, &["test", "--workspace", "--quiet", "--doc"])?;
    if process::can_run("cargo-nextest", "--version") {
        return process::run(root, &cargo, &["nextest", "run", "--workspace", "--no-fail-fast"]);
    }
    process::run(root, &cargo, &["test", "--workspace", "--quiet", "--no-fail-fast", "--lib", "--bins", "--tests"])
}
