//! Builds what is measured, always with the same packages.
//!
//! Cargo resolves the features of dependencies for the packages that it is asked for. If these differed from source to
//! source, each would build the layer again, because the library of the layer has one place in the build folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::setup::process;
use crate::setup::process::cargo;

/// The packages with bench binaries, and those that bring the programs and drivers.
const PACKAGES: [&str; 11] = [
    "lavascope-cli",
    "lavascope-engine",
    "lavascope-instrument",
    "lavascope-layer",
    "lavascope-marshal",
    "lavascope-null-driver",
    "lavascope-replay",
    "lavascope-samples",
    "lavascope-spirv",
    "lavascope-trace",
    "lavascope-validate",
];

/// The arguments for cargo: a command with its options, and all packages.
pub(super) fn with_packages<'a>(command: &[&'a str]) -> Vec<&'a str> {
    command.iter().copied().chain(PACKAGES.iter().flat_map(|it| ["--package", it])).collect()
}

/// Builds the programs, the layer and the null driver. Returns the build folder, which has them in `release`.
pub(super) fn build_release(root: &Path) -> Result<PathBuf> {
    // With one of the bench binaries, so that cargo also resolves the features of what only benches depend on.
    let arguments = with_packages(&["build", "--release", "--quiet", "--lib", "--bins", "--bench", "pack"]);
    process::run(root, &cargo(), &arguments)?;
    let program = std::env::current_exe().context("the place of this program is not known")?;
    // `target/debug/xtask`
    let target = program.ancestors().nth(2).context("this program is not in a build folder")?;
    Ok(target.to_owned())
}
