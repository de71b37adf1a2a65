//! Parts of Debian's package of Chromium, which has newer drivers and layers than Debian itself.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::process;

/// Gets files out of the package, without installing that. They lie in the folder under the names of the package.
pub(crate) fn provide(folder: &Path, names: &[&str]) -> Result<()> {
    let path = |name: &str| folder.join(PLACE).join(name);
    if names.iter().all(|it| path(it).exists()) {
        return Ok(());
    }
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    process::run(folder, "apt-get", &["download", "chromium-common"])
        .with_context(|| format!("{} comes with Debian's package chromium-common", names.join(" and ")))?;
    let files: Vec<String> = names.iter().map(|it| format!("./{PLACE}/{it}")).collect();
    let unpack = format!(
        "for it in chromium-common_*.deb; do dpkg --fsys-tarfile \"$it\" | tar --extract {}; done; \
         rm chromium-common_*.deb",
        files.join(" ")
    );
    process::run(folder, "sh", &["-c", &unpack])?;
    let missing = names.iter().find(|it| !path(it).exists());
    ensure!(missing.is_none(), "the package chromium-common has no {} any more", missing.unwrap_or(&""));
    Ok(())
}

/// Where the package has its files.
pub(crate) const PLACE: &str = "usr/lib/chromium";

/// The manifest of SwiftShader, a driver for the CPU, fetched into the build folder if need be.
pub(crate) fn swiftshader(root: &Path) -> Result<PathBuf> {
    let (library, manifest) = ("libvk_swiftshader.so", "vk_swiftshader_icd.json");
    let target = root.join("target/swiftshader");
    fetch(&target, &[library, manifest])?;
    Ok(target.join(manifest))
}

/// The Khronos layer, newer than the one that Debian has by itself.
pub(crate) fn khronos(root: &Path) -> Result<PathBuf> {
    let (library, target) = ("libVkLayer_khronos_validation.so", root.join("target/khronos"));
    fetch(&target, &[library])?;
    Ok(target.join(library))
}

/// Puts files of the package into a folder where they are not there yet.
fn fetch(target: &Path, names: &[&str]) -> Result<()> {
    if names.iter().all(|it| target.join(it).exists()) {
        return Ok(());
    }
    let folder = target.join("package");
    provide(&folder, names)?;
    for name in names {
        let to = target.join(name);
        std::fs::rename(folder.join(PLACE).join(name), &to)
            .with_context(|| format!("{} cannot be written", to.display()))?;
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))
}
