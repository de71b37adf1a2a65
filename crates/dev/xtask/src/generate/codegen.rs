//! Writing the generated files, or saying which are stale.

use std::path::Path;

use anyhow::{Context, Result, bail};
use lavascope_codegen::Files;

use crate::generate::freshness::{orphans, stale};
use crate::setup::{process, registry_files};

pub(crate) fn run(root: &Path, is_check: bool) -> Result<()> {
    registry_files::ensure(root)?;
    let files = files(root)?;
    let stale = stale(root, &files)?;
    if is_check {
        if !stale.is_empty() {
            bail!("run `cargo xtask codegen`:\n{}", stale.join("\n"));
        }
        return Ok(());
    }
    write(root, &files)?;
    for line in &stale {
        println!("{line}");
    }
    println!("{} generated files, {} changed", files.len(), stale.len());
    Ok(())
}

/// What the generator makes of the registry that was fetched.
fn files(root: &Path) -> Result<Files> {
    let (vk, video) = registry_files::read(root)?;
    let registry = lavascope_registry::parse(&vk, &video).map_err(list)?;
    lavascope_codegen::emit(&registry, &vulkanalia_sources(root)?).map_err(list)
}

/// The structures of vulkanalia-sys, which cargo has because a test depends on it.
fn vulkanalia_sources(root: &Path) -> Result<String> {
    let output = process::output(root, &process::cargo(), &["metadata", "--format-version", "1"])?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let package = packages.iter().find(|it| it["name"] == "vulkanalia-sys");
    let manifest = package.and_then(|it| it["manifest_path"].as_str()).context("vulkanalia-sys is not there")?;
    let folder = Path::new(manifest).with_file_name("src");
    let read = |name| std::fs::read_to_string(folder.join(name)).with_context(|| format!("{name} of vulkanalia-sys"));
    Ok([read("structs.rs")?, read("unions.rs")?, read("video.rs")?].join("\n"))
}

fn list<E: std::fmt::Display>(errors: Vec<E>) -> anyhow::Error {
    let lines: Vec<String> = errors.iter().map(E::to_string).collect();
    anyhow::anyhow!("{}", lines.join("\n"))
}

fn write(root: &Path, files: &Files) -> Result<()> {
    for orphan in orphans(root, files)? {
        std::fs::remove_file(&orphan).with_context(|| format!("{} cannot be removed", orphan.display()))?;
    }
    for (path, text) in files {
        let path = root.join(path);
        let is_same = std::fs::read_to_string(&path).is_ok_and(|it| it == *text);
        if is_same {
            continue;
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{files, stale};

    #[test]
    fn generated_files_are_fresh() {
        let root = crate::root();
        match files(&root).and_then(|it| Ok(stale(&root, &it)?)) {
            Ok(stale) => assert!(stale.is_empty(), "run `cargo xtask codegen`\n{}", stale.join("\n")),
            Err(error) => panic!("{error:#}"),
        }
    }
}
