//! Starts the comparison of programs that are performed as Vulkan calls: random ones, and written scenarios.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::setup::process::cargo;
use crate::setup::{chromium, process};

const PACKAGES: [&str; 3] = ["lavascope-differential", "lavascope-layer", "lavascope-null-driver"];
const SCENARIOS: &str = "crates/sync/engine/tests/scenarios";

/// Random programs; a disagreement that no predicate covers is an error.
pub(crate) fn run_random(root: &Path, programs: u64, seed: u64, no_install: bool) -> Result<()> {
    run(root, &["random", "--programs", &programs.to_string(), "--seed", &seed.to_string()], no_install)
}

/// Random programs under core validation; a program that is not valid is an error.
pub(crate) fn run_core(root: &Path, programs: u64, seed: u64, no_install: bool) -> Result<()> {
    run(root, &["random", "--core", "--programs", &programs.to_string(), "--seed", &seed.to_string()], no_install)
}

/// The scenarios with this in their names.
pub(crate) fn run_corpus(root: &Path, filter: &str, no_install: bool) -> Result<()> {
    let folder = root.join(SCENARIOS).display().to_string();
    run(root, &["corpus", &folder, filter], no_install)
}

fn run(root: &Path, arguments: &[&str], no_install: bool) -> Result<()> {
    let khronos = chromium::khronos(root, no_install)?;
    let packages = PACKAGES.iter().flat_map(|it| ["--package", it]);
    let build: Vec<&str> = ["build", "--release"].into_iter().chain(packages).collect();
    process::run(root, &cargo(), &build)?;
    let this = std::env::current_exe().context("the place of this program is not known")?;
    // `target/debug/xtask`
    let built = this.ancestors().nth(2).context("this program is not in a build folder")?.join("release");
    let mut command = Command::new(built.join("lavascope-differential"));
    let status = command.args(arguments).env("LAVASCOPE_KHRONOS_LIBRARY", khronos).status();
    let status = status.with_context(|| format!("{command:?} cannot be started"))?;
    ensure!(status.success(), "the comparison failed: see above");
    Ok(())
}
