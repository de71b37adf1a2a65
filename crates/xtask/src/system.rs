//! System packages that the tests need, and how to get them.

use std::path::Path;

use anyhow::{Result, bail};

use crate::process;

/// A thing that must be there, and the Debian package that brings it.
struct Need {
    what: &'static str,
    package: &'static str,
    is_there: fn() -> bool,
}

const NEEDS: &[Need] = &[
    Need { what: "a C compiler", package: "gcc", is_there: || process::exists("cc", "--version") },
    Need {
        what: "the C library's headers",
        package: "libc6-dev",
        is_there: || Path::new("/usr/include/stdint.h").exists(),
    },
    Need {
        what: "the Vulkan headers",
        package: "libvulkan-dev",
        is_there: || Path::new("/usr/include/vulkan/vulkan.h").exists(),
    },
    Need { what: "the Vulkan loader", package: "libvulkan1", is_there: has_loader },
    Need { what: "a Vulkan driver for the CPU", package: "mesa-vulkan-drivers", is_there: has_lavapipe },
    Need { what: "Python 3", package: "python3", is_there: || process::exists("python3", "--version") },
    Need { what: "pip", package: "python3-pip", is_there: has_pip },
];

fn has_loader() -> bool {
    has_file("/usr/lib", "libvulkan.so.1")
}

/// Mesa names its manifest by architecture, and newer ones do not.
fn has_lavapipe() -> bool {
    has_file("/usr/share/vulkan/icd.d", "lvp_icd")
}

/// Whether a file whose name begins so lies in a folder or one below it.
fn has_file(folder: &str, beginning: &str) -> bool {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    let is_it = |path: &Path| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(beginning));
    entries(Path::new(folder)).any(|it| is_it(&it) || it.is_dir() && entries(&it).any(|it| is_it(&it)))
}

fn has_pip() -> bool {
    std::process::Command::new("python3").args(["-m", "pip", "--version"]).output().is_ok_and(|it| it.status.success())
}

/// Installs what is missing, or says how to.
pub(crate) fn provide(root: &Path, no_install: bool) -> Result<()> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|it| !(it.is_there)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for it in &missing {
        println!("missing: {} (Debian and Ubuntu: {})", it.what, it.package);
    }
    let packages: Vec<&str> = missing.iter().map(|it| it.package).collect();
    let by_hand = format!("apt-get install {}", packages.join(" "));
    if no_install || !process::exists("apt-get", "--version") {
        bail!("install by hand, on Debian and Ubuntu with `{by_hand}`");
    }
    if process::run(root, "apt-get", &["update"]).is_ok() {
        return install(root, &[], &packages, &by_hand);
    }
    process::run(root, "sudo", &["-n", "apt-get", "update"])
        .or_else(|error| bail!("{error}; install by hand with `{by_hand}`"))?;
    install(root, &["-n", "apt-get"], &packages, &by_hand)
}

fn install(root: &Path, sudo: &[&str], packages: &[&str], by_hand: &str) -> Result<()> {
    let program = if sudo.is_empty() { "apt-get" } else { "sudo" };
    let mut arguments: Vec<&str> = sudo.to_vec();
    arguments.extend(["install", "--yes", "--no-install-recommends"]);
    arguments.extend(packages);
    process::run(root, program, &arguments).or_else(|error| bail!("{error}; install by hand with `{by_hand}`"))
}
