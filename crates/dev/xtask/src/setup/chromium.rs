//! Parts of Debian's package of Chromium, which has newer drivers and layers than Debian itself.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::setup::process;

/// Gets files out of the package, without installing that. They lie in the folder under the names of the package.
pub(crate) fn ensure_files(folder: &Path, names: &[&str]) -> Result<()> {
    let path = |name: &str| folder.join(PACKAGE_FOLDER).join(name);
    if names.iter().all(|it| path(it).exists()) {
        return Ok(());
    }
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    process::run(folder, "apt-get", &["download", "chromium-common"])
        .with_context(|| format!("{} comes with Debian's package chromium-common", names.join(" and ")))?;
    let files: Vec<String> = names.iter().map(|it| format!("./{PACKAGE_FOLDER}/{it}")).collect();
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
pub(crate) const PACKAGE_FOLDER: &str = "usr/lib/chromium";

/// A file of the package that tests need.
struct ChromiumFile {
    what: &'static str,
    /// Its folder in the build folder.
    folder: &'static str,
    /// The file that tests open.
    file: &'static str,
    /// What that file needs beside it.
    beside: &'static [&'static str],
    /// The variable by which tests look for it first.
    variable: &'static str,
}

const SWIFTSHADER: ChromiumFile = ChromiumFile {
    what: "SwiftShader",
    folder: "target/swiftshader",
    file: "vk_swiftshader_icd.json",
    beside: &["libvk_swiftshader.so"],
    variable: "SWIFTSHADER_ICD",
};

const KHRONOS: ChromiumFile = ChromiumFile {
    what: "the newer Khronos layer",
    folder: "target/khronos",
    file: "libVkLayer_khronos_validation.so",
    beside: &[],
    variable: "LAVASCOPE_KHRONOS_LIBRARY",
};

/// The manifest of SwiftShader, a driver for the CPU, fetched into the build folder if need be.
pub(crate) fn swiftshader(root: &Path, no_install: bool) -> Result<PathBuf> {
    SWIFTSHADER.ensure(root, no_install, std::env::var_os(SWIFTSHADER.variable).map(PathBuf::from))
}

/// The Khronos layer, newer than the one that Debian has by itself.
pub(crate) fn khronos(root: &Path, no_install: bool) -> Result<PathBuf> {
    KHRONOS.ensure(root, no_install, std::env::var_os(KHRONOS.variable).map(PathBuf::from))
}

impl ChromiumFile {
    /// Where tests find it. If it is missing, it is fetched, or the error names what brings it.
    fn ensure(&self, root: &Path, no_install: bool, named: Option<PathBuf>) -> Result<PathBuf> {
        let target = root.join(self.folder);
        let names: Vec<&str> = self.beside.iter().copied().chain([self.file]).collect();
        if let Some(path) = named {
            ensure!(path.is_file(), "{} is missing: {} names {}", self.what, self.variable, path.display());
            return Ok(path);
        }
        let installed = Path::new("/").join(PACKAGE_FOLDER);
        let has_all = |folder: &Path| names.iter().all(|it| folder.join(it).is_file());
        if let Some(folder) = [&target, &installed].into_iter().find(|it| has_all(it)) {
            return Ok(folder.join(self.file));
        }
        let ChromiumFile { what, variable, .. } = self;
        let help = format!("install chromium-common (Debian), or let {variable} name {}", self.file);
        ensure!(!no_install, "{what} is missing: {help}");
        fetch(&target, &names).with_context(|| format!("{what} is missing, and cannot be fetched: {help}"))?;
        Ok(target.join(self.file))
    }
}

/// Puts files of the package into a folder.
fn fetch(target: &Path, names: &[&str]) -> Result<()> {
    let folder = target.join("package");
    ensure_files(&folder, names)?;
    for name in names {
        let to = target.join(name);
        std::fs::rename(folder.join(PACKAGE_FOLDER).join(name), &to)
            .with_context(|| format!("{} cannot be written", to.display()))?;
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing on any system has it.
    const NOWHERE: ChromiumFile = ChromiumFile {
        what: "the driver",
        folder: "target/nowhere",
        file: "no.json",
        beside: &["libno.so"],
        variable: "NO_ICD",
    };

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let message = |named: Option<PathBuf>| {
            NOWHERE.ensure(Path::new("/nowhere"), true, named).expect_err("nothing is there").to_string()
        };
        assert_eq!(
            message(None),
            "the driver is missing: install chromium-common (Debian), or let NO_ICD name no.json"
        );
        assert_eq!(message(Some("/nowhere/x".into())), "the driver is missing: NO_ICD names /nowhere/x");
    }

    #[test]
    fn what_is_named_is_taken() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(NOWHERE.ensure(Path::new("/nowhere"), true, Some(here.clone())).ok(), Some(here));
    }
}
