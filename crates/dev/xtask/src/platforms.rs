//! Builds the workspace for another processor: aarch64 Linux, with the compiler that Debian has for it.
//!
//! The standard library of the target comes as a Debian package of that architecture and is only unpacked, into
//! `target/platforms`. It must have the version of the compiler, so both are Debian's. Nothing is run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::setup::{process, system};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const ARCHITECTURE: &str = "arm64";
/// The standard library, compiled for the target.
const LIBRARY: &str = "libstd-rust-web-dev";
const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";
const TOOLS: &str = "aarch64-linux-gnu";

/// What is to be done with the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlatformBuild {
    /// Find the errors of the compiler only.
    Check,
    /// Link as well.
    Build,
}

pub(crate) fn run(root: &Path, wanted: PlatformBuild, no_install: bool) -> Result<()> {
    system::ensure_for_platforms(root, no_install)?;
    let folder = root.join("target/platforms");
    let sysroot = sysroot(root, &folder, no_install)?;
    let what = if wanted == PlatformBuild::Check { "check" } else { "build" };
    let arguments = [what, "--workspace", "--locked", "--target", TARGET];
    println!("$ {CARGO} {}", arguments.join(" "));
    let status = cargo(root, &folder, &sysroot).args(arguments).status();
    let status = status.with_context(|| format!("`{CARGO}` cannot be started"))?;
    ensure!(status.success(), "`cargo {}` failed: {status}", arguments.join(" "));
    Ok(())
}

/// Debian's cargo, set up for the target, with a folder of its own for what it makes.
fn cargo(root: &Path, folder: &Path, sysroot: &Path) -> Command {
    let mut command = Command::new(CARGO);
    let variable = |name: &str| format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_{name}");
    let cc = |name: &str| format!("{name}_aarch64_unknown_linux_gnu");
    let mut flags = OsString::from("--sysroot=");
    flags.push(sysroot.join("usr"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(PathBuf::from("/usr/bin")).chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(paths) {
        command.env("PATH", path);
    }
    command
        .current_dir(root)
        .env("RUSTC", RUSTC)
        .env("CARGO_TARGET_DIR", folder.join("build"))
        .env(variable("LINKER"), format!("{TOOLS}-gcc"))
        .env(variable("RUSTFLAGS"), flags)
        .env(cc("CC"), format!("{TOOLS}-gcc"))
        .env(cc("CXX"), format!("{TOOLS}-g++"))
        .env(cc("AR"), format!("{TOOLS}-ar"));
    // Those of the cargo that runs us, which belong to another compiler.
    for name in ["CARGO", "RUSTC_WRAPPER", "RUSTDOC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(name);
    }
    command
}

/// Unpacks the standard library of the target, unless the right one is there.
fn sysroot(root: &Path, folder: &Path, no_install: bool) -> Result<PathBuf> {
    let version = version(root)?;
    let sysroot = folder.join("sysroot");
    let stamp = sysroot.join("version.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|it| it == version) {
        return Ok(sysroot);
    }
    system::add_architecture(root, ARCHITECTURE, no_install)?;
    if sysroot.exists() {
        std::fs::remove_dir_all(&sysroot).with_context(|| format!("{} cannot be removed", sysroot.display()))?;
    }
    let packages = folder.join("packages");
    for path in [&sysroot, &packages] {
        std::fs::create_dir_all(path).with_context(|| format!("{} cannot be made", path.display()))?;
    }
    // Downloaded and unpacked only: it is for this folder, and asks for packages that are not needed.
    process::run(&packages, "apt-get", &["download", &format!("{LIBRARY}:{ARCHITECTURE}={version}")])?;
    let file = newest(&packages)?.display().to_string();
    process::run(root, "dpkg", &["-x", &file, &sysroot.display().to_string()])?;
    std::fs::write(&stamp, version).with_context(|| format!("{} cannot be written", stamp.display()))?;
    Ok(sysroot)
}

/// The version of the package that the compiler is in.
fn version(root: &Path) -> Result<String> {
    let output = process::output(root, "dpkg-query", &["--show", "--showformat=${Version}", "rustc-web"])?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || version.is_empty() {
        bail!("the package rustc-web is not installed: only Debian has a standard library that fits it");
    }
    Ok(version)
}

/// The package that was downloaded last.
fn newest(folder: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let all = entries.flatten().map(|it| it.path()).filter(|it| it.extension().is_some_and(|it| it == "deb"));
    let newest = all.max_by_key(|it| it.metadata().and_then(|it| it.modified()).ok());
    newest.with_context(|| format!("apt-get has left no package in {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_told_of_the_target_and_of_no_other_compiler() {
        let command = cargo(Path::new("/w"), Path::new("/w/target/platforms"), Path::new("/s"));
        let value = |name: &str| command.get_envs().find(|it| it.0 == name).map(|it| it.1.map(OsString::from));
        assert_eq!(value("RUSTC"), Some(Some(RUSTC.into())));
        assert_eq!(value("RUSTUP_TOOLCHAIN"), Some(None));
        assert_eq!(value("CARGO_TARGET_DIR"), Some(Some("/w/target/platforms/build".into())));
        let flags = value("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS");
        assert_eq!(flags, Some(Some("--sysroot=/s/usr".into())));
    }
}
