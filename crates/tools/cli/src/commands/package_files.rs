//! `lavascope package-files`, for `cargo xtask dist`: the files of an installation that this program knows best.
//!
//! Manual pages and completions come from the definitions of the command line itself. The manifests name their
//! libraries by relative paths, so that the folder can be anywhere.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap_complete::Shell;
use lavascope_loader::manifests::driver_manifest;

use super::CommandOutcome;
use crate::launch::layer_manifest::{LayerName, installed_manifest};
use crate::launch::libraries::{LAYER, NULL_DRIVER};

/// Where shells look for completions below a prefix.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions/lavascope"),
    (Shell::Zsh, "share/zsh/site-functions/_lavascope"),
    (Shell::Fish, "share/fish/vendor_completions.d/lavascope.fish"),
];

/// Write manual pages, completions and manifests for an installation
#[derive(clap::Args)]
pub(crate) struct PackageFilesArguments {
    /// The folder that has `bin`, `lib` and `share`
    prefix: PathBuf,
}

pub(crate) fn run(arguments: &PackageFilesArguments, definitions: clap::Command) -> Result<CommandOutcome> {
    let prefix = &arguments.prefix;
    let manual = prefix.join("share/man/man1");
    fs::create_dir_all(&manual).with_context(|| format!("the folder {} cannot be made", manual.display()))?;
    clap_mangen::generate_to(definitions.clone(), &manual).context("the manual pages cannot be written")?;
    for (shell, path) in COMPLETIONS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut definitions.clone(), "lavascope", &mut text);
        write(&prefix.join(path), &text)?;
    }
    let layer = installed_manifest(LayerName::Own, &format!("../../../lib/{}", LAYER.file()));
    let folder = prefix.join("share/vulkan/explicit_layer.d");
    write(&folder.join(LayerName::Own.manifest_file()), layer.as_bytes())?;
    // Not among the drivers of the system: a program gets it if it asks for it, and never by chance.
    let driver = driver_manifest(&format!("../../lib/{}", NULL_DRIVER.file()));
    write(&prefix.join("share/lavascope/lavascope_null_driver.json"), driver.as_bytes())?;
    Ok(CommandOutcome::Success)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    fs::write(path, bytes).with_context(|| format!("{} cannot be written", path.display()))
}
