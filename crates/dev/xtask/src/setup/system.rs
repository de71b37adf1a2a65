//! System packages that the tests and the demo need, and how to get them.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::setup::process;

/// A thing that must be there, and the Debian package that brings it.
struct SystemPackage {
    what: &'static str,
    package: &'static str,
    is_installed: fn() -> bool,
}

/// For building and running anything.
const DEMO: &[SystemPackage] = &[
    SystemPackage { what: "a C compiler", package: "gcc", is_installed: || process::can_run("cc", "--version") },
    SystemPackage {
        what: "the C library's headers",
        package: "libc6-dev",
        is_installed: || Path::new("/usr/include/stdint.h").exists(),
    },
    SystemPackage { what: "the Vulkan loader", package: "libvulkan1", is_installed: has_loader },
    SystemPackage {
        what: "a Vulkan driver for the CPU",
        package: "mesa-vulkan-drivers",
        is_installed: || lavapipe().is_some(),
    },
];

/// For the tests, besides those.
const TESTS: &[SystemPackage] = &[
    SystemPackage {
        what: "the Vulkan headers",
        package: "libvulkan-dev",
        is_installed: || Path::new("/usr/include/vulkan/vulkan.h").exists(),
    },
    SystemPackage { what: "Python 3", package: "python3", is_installed: || process::can_run("python3", "--version") },
    SystemPackage { what: "pip", package: "python3-pip", is_installed: has_pip },
    SystemPackage {
        what: "vulkaninfo and vkcube",
        package: "vulkan-tools",
        is_installed: || is_on_path("vulkaninfo") && is_on_path("vkcube"),
    },
    SystemPackage { what: "an X server without a screen", package: "xvfb", is_installed: || is_on_path("Xvfb") },
    SystemPackage {
        what: "a Wayland compositor without a screen",
        package: "weston",
        is_installed: || is_on_path("weston"),
    },
    SystemPackage { what: "the validator of SPIR-V", package: "spirv-tools", is_installed: || is_on_path("spirv-val") },
    SystemPackage {
        what: "the compiler of GLSL",
        package: "glslang-tools",
        is_installed: || is_on_path("glslangValidator"),
    },
    SystemPackage { what: "valgrind", package: "valgrind", is_installed: || is_on_path("valgrind") },
    SystemPackage { what: "gdb", package: "gdb", is_installed: || is_on_path("gdb") },
    SystemPackage { what: "ffmpeg", package: "ffmpeg", is_installed: || is_on_path("ffmpeg") },
    SystemPackage {
        what: "the Khronos layer",
        package: "vulkan-validationlayers",
        is_installed: || khronos_manifest().is_some(),
    },
    SystemPackage {
        what: "GFXReconstruct",
        package: "gfxreconstruct",
        is_installed: || find_file(LAYERS, "VkLayer_gfxreconstruct").is_some(),
    },
];

/// For the programs of others that are compared, besides those.
const COMPARISON: &[SystemPackage] = &[
    SystemPackage { what: "glmark2", package: "glmark2-es2-x11", is_installed: || is_on_path("glmark2-es2") },
    SystemPackage { what: "glxgears", package: "mesa-utils", is_installed: || is_on_path("glxgears") },
    SystemPackage { what: "dpkg", package: "dpkg", is_installed: || is_on_path("dpkg") },
    SystemPackage {
        what: "a library of Qt",
        package: "libxcb-cursor0",
        is_installed: || has_library("libxcb-cursor.so.0"),
    },
    SystemPackage {
        what: "a library of Qt",
        package: "libxcb-icccm4",
        is_installed: || has_library("libxcb-icccm.so.4"),
    },
    SystemPackage {
        what: "a library of Qt",
        package: "libxcb-keysyms1",
        is_installed: || has_library("libxcb-keysyms.so.1"),
    },
    SystemPackage {
        what: "a library of Qt",
        package: "libxkbcommon-x11-0",
        is_installed: || has_library("libxkbcommon-x11.so.0"),
    },
];

/// For an empty Debian in which an installation is tried out.
const TRY_OUT: &[SystemPackage] =
    &[SystemPackage { what: "debootstrap", package: "debootstrap", is_installed: || is_on_path("debootstrap") }];

/// For building for another processor.
const PLATFORMS: &[SystemPackage] = &[
    SystemPackage {
        what: "Debian's Rust compiler",
        package: "rustc-web",
        is_installed: || Path::new("/usr/bin/rustc").exists(),
    },
    SystemPackage {
        what: "Debian's cargo",
        package: "cargo-web",
        is_installed: || Path::new("/usr/bin/cargo").exists(),
    },
    SystemPackage {
        what: "a C compiler for aarch64",
        package: "gcc-aarch64-linux-gnu",
        is_installed: || is_on_path("aarch64-linux-gnu-gcc"),
    },
    SystemPackage {
        what: "a C++ compiler for aarch64",
        package: "g++-aarch64-linux-gnu",
        is_installed: || is_on_path("aarch64-linux-gnu-g++"),
    },
    SystemPackage {
        what: "the C library for aarch64",
        package: "libc6-dev-arm64-cross",
        is_installed: || Path::new("/usr/aarch64-linux-gnu/include/stdint.h").exists(),
    },
];

/// Where packages put the manifests of layers.
const LAYERS: &str = "/usr/share/vulkan/explicit_layer.d";
/// What the manifest of the Khronos layer begins with.
const KHRONOS: &str = "VkLayer_khronos_validation";

fn has_loader() -> bool {
    has_library("libvulkan.so.1")
}

fn has_library(name: &str) -> bool {
    find_file("/usr/lib", name).is_some()
}

/// The manifest of Mesa's driver for the CPU, which it names by architecture, and newer ones do not.
pub(crate) fn lavapipe() -> Option<String> {
    find_file("/usr/share/vulkan/icd.d", "lvp_icd")
}

/// The same in another root folder, as a program in it names the file.
pub(crate) fn lavapipe_in(root: &Path) -> Option<String> {
    let found = find_file(&root.join("usr/share/vulkan/icd.d").display().to_string(), "lvp_icd")?;
    Path::new(&found).strip_prefix(root).ok().map(|it| format!("/{}", it.display()))
}

/// The manifest of the Khronos layer that is installed.
pub(crate) fn khronos_manifest() -> Option<String> {
    find_file(LAYERS, KHRONOS)
}

/// A file whose name begins so, in a folder or one below it.
fn find_file(folder: &str, beginning: &str) -> Option<String> {
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
pub(crate) fn ensure_for_tests(root: &Path, no_install: bool) -> Result<()> {
    ensure_packages(root, DEMO.iter().chain(TESTS), no_install)
}

/// Installs what is missing for the demo, or says how to.
pub(crate) fn ensure_for_demo(root: &Path, no_install: bool) -> Result<()> {
    ensure_packages(root, DEMO.iter(), no_install)
}

/// Installs what is missing for trying out an installation, or says how to.
pub(crate) fn ensure_for_try_out(root: &Path, no_install: bool) -> Result<()> {
    ensure_packages(root, DEMO.iter().chain(TRY_OUT), no_install)
}

/// Installs what is missing for the differential run, or says how to.
pub(crate) fn ensure_for_comparison(root: &Path, no_install: bool) -> Result<()> {
    ensure_packages(root, DEMO.iter().chain(TESTS).chain(COMPARISON), no_install)
}

/// Installs what is missing for builds for other processors, or says how to.
pub(crate) fn ensure_for_platforms(root: &Path, no_install: bool) -> Result<()> {
    ensure_packages(root, PLATFORMS.iter(), no_install)
}

/// Lets `apt-get` find packages of another architecture. Nothing of it is installed.
pub(crate) fn add_architecture(root: &Path, name: &str, no_install: bool) -> Result<()> {
    let known = process::output(root, "dpkg", &["--print-foreign-architectures"])?;
    if String::from_utf8_lossy(&known.stdout).lines().any(|it| it == name) {
        return Ok(());
    }
    let steps: [&[&str]; 2] = [&["dpkg", "--add-architecture", name], &["apt-get", "update"]];
    let Some(prefix) = InstallRights::current().prefix().filter(|_| !no_install) else {
        bail!("add the architecture by hand: `{}`", steps.map(|it| it.join(" ")).join(" && "));
    };
    for step in steps {
        let words = [prefix, step].concat();
        process::run(root, words[0], &words[1..])?;
    }
    Ok(())
}

fn ensure_packages<'a>(root: &Path, needs: impl Iterator<Item = &'a SystemPackage>, no_install: bool) -> Result<()> {
    let missing: Vec<&SystemPackage> = needs.filter(|it| !(it.is_installed)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for system_package in &missing {
        println!("missing: {} (Debian and Ubuntu: {})", system_package.what, system_package.package);
    }
    let packages: Vec<&str> = missing.iter().map(|it| it.package).collect();
    let rights = InstallRights::current();
    let by_hand = manual_command(rights, &packages);
    match rights.prefix().filter(|_| !no_install) {
        Some(prefix) => install(root, prefix, &packages).with_context(|| format!("install by hand with `{by_hand}`")),
        None => bail!("install by hand, on Debian and Ubuntu with `{by_hand}`"),
    }
}

/// What we may do to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstallRights {
    Root,
    /// `sudo` asks for no password.
    Sudo,
    /// Nothing without somebody typing a password.
    User,
    /// Nothing: there is no `apt-get`.
    NoApt,
}

impl InstallRights {
    fn current() -> InstallRights {
        let succeeds = |program: &str, arguments: &[&str]| {
            let output = std::process::Command::new(program).args(arguments).output();
            output.ok().filter(|it| it.status.success()).map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
        };
        match () {
            () if !process::can_run("apt-get", "--version") => InstallRights::NoApt,
            () if succeeds("id", &["-u"]).is_some_and(|it| it == "0") => InstallRights::Root,
            () if succeeds("sudo", &["-n", "true"]).is_some() => InstallRights::Sudo,
            () => InstallRights::User,
        }
    }

    /// What stands before `apt-get`, where we may run it.
    fn prefix(self) -> Option<&'static [&'static str]> {
        match self {
            InstallRights::Root => Some(&[]),
            InstallRights::Sudo => Some(&["sudo", "-n"]),
            InstallRights::User | InstallRights::NoApt => None,
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
fn manual_command(rights: InstallRights, packages: &[&str]) -> String {
    let sudo = if rights == InstallRights::Root { "" } else { "sudo " };
    format!("{sudo}apt-get update && {sudo}apt-get install --no-install-recommends {}", packages.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_install_is_told_the_command() {
        let want = "sudo apt-get update && sudo apt-get install --no-install-recommends libvulkan1 gcc";
        for rights in [InstallRights::User, InstallRights::NoApt] {
            assert_eq!(rights.prefix(), None);
            assert_eq!(manual_command(rights, &["libvulkan1", "gcc"]), want);
        }
        assert!(manual_command(InstallRights::Root, &["gcc"]).starts_with("apt-get update && apt-get install "));
    }

    #[test]
    fn a_failed_install_is_reported() {
        let error = install(Path::new("/"), &["false"], &["gcc"]).expect_err("it fails");
        assert!(error.to_string().contains("`false apt-get update` failed"), "{error}");
    }

    #[test]
    fn packages_are_named_once() {
        let mut packages: Vec<_> =
            DEMO.iter().chain(TESTS).chain(COMPARISON).chain(TRY_OUT).chain(PLATFORMS).map(|it| it.package).collect();
        packages.sort_unstable();
        let count = packages.len();
        packages.dedup();
        assert_eq!(packages.len(), count);
    }
}
