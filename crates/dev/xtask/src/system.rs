//! System packages that the tests and the demo need, and how to get them.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process;

/// A thing that must be there, and the Debian package that brings it.
struct Need {
    what: &'static str,
    package: &'static str,
    is_there: fn() -> bool,
}

/// For building and running anything.
const DEMO: &[Need] = &[
    Need { what: "a C compiler", package: "gcc", is_there: || process::exists("cc", "--version") },
    Need {
        what: "the C library's headers",
        package: "libc6-dev",
        is_there: || Path::new("/usr/include/stdint.h").exists(),
    },
    Need { what: "the Vulkan loader", package: "libvulkan1", is_there: has_loader },
    Need { what: "a Vulkan driver for the CPU", package: "mesa-vulkan-drivers", is_there: || lavapipe().is_some() },
];

/// For the tests, besides those.
const TESTS: &[Need] = &[
    Need {
        what: "the Vulkan headers",
        package: "libvulkan-dev",
        is_there: || Path::new("/usr/include/vulkan/vulkan.h").exists(),
    },
    Need { what: "Python 3", package: "python3", is_there: || process::exists("python3", "--version") },
    Need { what: "pip", package: "python3-pip", is_there: has_pip },
    Need {
        what: "vulkaninfo and vkcube",
        package: "vulkan-tools",
        is_there: || is_on_path("vulkaninfo") && is_on_path("vkcube"),
    },
    Need { what: "an X server without a screen", package: "xvfb", is_there: || is_on_path("Xvfb") },
    Need { what: "a Wayland compositor without a screen", package: "weston", is_there: || is_on_path("weston") },
    Need { what: "the validator of SPIR-V", package: "spirv-tools", is_there: || is_on_path("spirv-val") },
    Need { what: "the compiler of GLSL", package: "glslang-tools", is_there: || is_on_path("glslangValidator") },
    Need { what: "valgrind", package: "valgrind", is_there: || is_on_path("valgrind") },
    Need {
        what: "the Khronos layer",
        package: "vulkan-validationlayers",
        is_there: || file(LAYERS, "VkLayer_khronos_validation").is_some(),
    },
    Need {
        what: "GFXReconstruct",
        package: "gfxreconstruct",
        is_there: || file(LAYERS, "VkLayer_gfxreconstruct").is_some(),
    },
];

/// For the programs of others that are compared, besides those.
const COMPARISON: &[Need] = &[
    Need { what: "ffmpeg", package: "ffmpeg", is_there: || is_on_path("ffmpeg") },
    Need { what: "glmark2", package: "glmark2-es2-x11", is_there: || is_on_path("glmark2-es2") },
    Need { what: "glxgears", package: "mesa-utils", is_there: || is_on_path("glxgears") },
    Need { what: "dpkg", package: "dpkg", is_there: || is_on_path("dpkg") },
    Need { what: "a library of Qt", package: "libxcb-cursor0", is_there: || has_library("libxcb-cursor.so.0") },
    Need { what: "a library of Qt", package: "libxcb-icccm4", is_there: || has_library("libxcb-icccm.so.4") },
    Need { what: "a library of Qt", package: "libxcb-keysyms1", is_there: || has_library("libxcb-keysyms.so.1") },
    Need { what: "a library of Qt", package: "libxkbcommon-x11-0", is_there: || has_library("libxkbcommon-x11.so.0") },
];

/// For building for another processor.
const PLATFORMS: &[Need] = &[
    Need { what: "Debian's Rust compiler", package: "rustc-web", is_there: || Path::new("/usr/bin/rustc").exists() },
    Need { what: "Debian's cargo", package: "cargo-web", is_there: || Path::new("/usr/bin/cargo").exists() },
    Need {
        what: "a C compiler for aarch64",
        package: "gcc-aarch64-linux-gnu",
        is_there: || is_on_path("aarch64-linux-gnu-gcc"),
    },
    Need {
        what: "a C++ compiler for aarch64",
        package: "g++-aarch64-linux-gnu",
        is_there: || is_on_path("aarch64-linux-gnu-g++"),
    },
    Need {
        what: "the C library for aarch64",
        package: "libc6-dev-arm64-cross",
        is_there: || Path::new("/usr/aarch64-linux-gnu/include/stdint.h").exists(),
    },
];

/// Where packages put the manifests of layers.
const LAYERS: &str = "/usr/share/vulkan/explicit_layer.d";

fn has_loader() -> bool {
    has_library("libvulkan.so.1")
}

fn has_library(name: &str) -> bool {
    file("/usr/lib", name).is_some()
}

/// The manifest of Mesa's driver for the CPU, which it names by architecture, and newer ones do not.
pub(crate) fn lavapipe() -> Option<String> {
    file("/usr/share/vulkan/icd.d", "lvp_icd")
}

/// A file whose name begins so, in a folder or one below it.
fn file(folder: &str, beginning: &str) -> Option<String> {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    let is_it = |path: &Path| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(beginning));
    let below = entries(Path::new(folder)).filter(|it| it.is_dir()).flat_map(|it| entries(&it));
    let mut found: Vec<_> = entries(Path::new(folder)).chain(below).filter(|it| is_it(it)).collect();
    found.sort();
    found.first().map(|it| it.display().to_string())
}

pub(crate) fn is_on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|it| std::env::split_paths(&it).any(|it| it.join(program).is_file()))
}

fn has_pip() -> bool {
    std::process::Command::new("python3").args(["-m", "pip", "--version"]).output().is_ok_and(|it| it.status.success())
}

/// Installs what is missing for the tests, or says how to.
pub(crate) fn provide(root: &Path, no_install: bool) -> Result<()> {
    provide_all(root, DEMO.iter().chain(TESTS), no_install)
}

/// Installs what is missing for the demo, or says how to.
pub(crate) fn provide_for_demo(root: &Path, no_install: bool) -> Result<()> {
    provide_all(root, DEMO.iter(), no_install)
}

/// Installs what is missing for the differential run, or says how to.
pub(crate) fn provide_for_comparison(root: &Path, no_install: bool) -> Result<()> {
    provide_all(root, DEMO.iter().chain(TESTS).chain(COMPARISON), no_install)
}

/// Installs what is missing for builds for other processors, or says how to.
pub(crate) fn provide_for_platforms(root: &Path, no_install: bool) -> Result<()> {
    provide_all(root, PLATFORMS.iter(), no_install)
}

/// Lets `apt-get` find packages of another architecture. Nothing of it is installed.
pub(crate) fn add_architecture(root: &Path, name: &str, no_install: bool) -> Result<()> {
    let known = process::output(root, "dpkg", &["--print-foreign-architectures"])?;
    if String::from_utf8_lossy(&known.stdout).lines().any(|it| it == name) {
        return Ok(());
    }
    let steps: [&[&str]; 2] = [&["dpkg", "--add-architecture", name], &["apt-get", "update"]];
    let Some(prefix) = Rights::ours().prefix().filter(|_| !no_install) else {
        bail!("add the architecture by hand: `{}`", steps.map(|it| it.join(" ")).join(" && "));
    };
    for step in steps {
        let words = [prefix, step].concat();
        process::run(root, words[0], &words[1..])?;
    }
    Ok(())
}

fn provide_all<'a>(root: &Path, needs: impl Iterator<Item = &'a Need>, no_install: bool) -> Result<()> {
    let missing: Vec<&Need> = needs.filter(|it| !(it.is_there)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for it in &missing {
        println!("missing: {} (Debian and Ubuntu: {})", it.what, it.package);
    }
    let packages: Vec<&str> = missing.iter().map(|it| it.package).collect();
    let rights = Rights::ours();
    let by_hand = by_hand(rights, &packages);
    match rights.prefix().filter(|_| !no_install) {
        Some(prefix) => install(root, prefix, &packages).with_context(|| format!("install by hand with `{by_hand}`")),
        None => bail!("install by hand, on Debian and Ubuntu with `{by_hand}`"),
    }
}

/// What we may do to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    Root,
    /// `sudo` asks for no password.
    Sudo,
    /// Nothing without somebody typing a password.
    User,
    /// Nothing: there is no `apt-get`.
    Foreign,
}

impl Rights {
    fn ours() -> Rights {
        let succeeds = |program: &str, arguments: &[&str]| {
            let output = std::process::Command::new(program).args(arguments).output();
            output.ok().filter(|it| it.status.success()).map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
        };
        match () {
            () if !process::exists("apt-get", "--version") => Rights::Foreign,
            () if succeeds("id", &["-u"]).is_some_and(|it| it == "0") => Rights::Root,
            () if succeeds("sudo", &["-n", "true"]).is_some() => Rights::Sudo,
            () => Rights::User,
        }
    }

    /// What stands before `apt-get`, where we may run it.
    fn prefix(self) -> Option<&'static [&'static str]> {
        match self {
            Rights::Root => Some(&[]),
            Rights::Sudo => Some(&["sudo", "-n"]),
            Rights::User | Rights::Foreign => None,
        }
    }
}

fn install(root: &Path, prefix: &[&str], packages: &[&str]) -> Result<()> {
    for arguments in [&["update"][..], &[&["install", "--yes", "--no-install-recommends"], packages].concat()] {
        let words = [prefix, &["apt-get"], arguments].concat();
        process::run(root, words[0], &words[1..])?;
    }
    Ok(())
}

/// What to type.
fn by_hand(rights: Rights, packages: &[&str]) -> String {
    let sudo = if rights == Rights::Root { "" } else { "sudo " };
    format!("{sudo}apt-get update && {sudo}apt-get install --no-install-recommends {}", packages.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_install_is_told_the_command() {
        let want = "sudo apt-get update && sudo apt-get install --no-install-recommends libvulkan1 gcc";
        for rights in [Rights::User, Rights::Foreign] {
            assert_eq!(rights.prefix(), None);
            assert_eq!(by_hand(rights, &["libvulkan1", "gcc"]), want);
        }
        assert!(by_hand(Rights::Root, &["gcc"]).starts_with("apt-get update && apt-get install "));
    }

    #[test]
    fn a_failed_install_is_told() {
        let error = install(Path::new("/"), &["false"], &["gcc"]).expect_err("it fails");
        assert!(error.to_string().contains("`false apt-get update` failed"), "{error}");
    }

    #[test]
    fn packages_are_named_once() {
        let mut packages: Vec<_> =
            DEMO.iter().chain(TESTS).chain(COMPARISON).chain(PLATFORMS).map(|it| it.package).collect();
        packages.sort_unstable();
        let count = packages.len();
        packages.dedup();
        assert_eq!(packages.len(), count);
    }
}
