//! Release builds, and which paths of the machine they have in them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::{PACKAGES, dist_folder, files_below, run_tool, target_folder};
use crate::setup::process;
use crate::setup::process::cargo;

/// Builds for the machine that builds: reports about the samples find the sources where they are. Returns the folder of
/// the built files.
pub(super) fn build_here(root: &Path) -> Result<PathBuf> {
    process::run(root, &cargo(), &build_arguments())?;
    Ok(target_folder()?.join("release"))
}

/// Builds for other machines, apart from other builds: debug information and messages have no path of this machine.
/// Returns the folder of the built files.
pub(super) fn build_for_others(root: &Path) -> Result<PathBuf> {
    let folder = dist_folder()?.join("build");
    let (place, flags) = (folder.display().to_string(), remap_flags(&BuildPaths::of(root)?));
    let own = ["--target-dir", &place, "--config", &flags];
    process::run(root, &cargo(), &[&build_arguments()[..], &own].concat())?;
    Ok(folder.join("release"))
}

fn build_arguments() -> Vec<&'static str> {
    let packages = PACKAGES.iter().flat_map(|it| ["--package", it]);
    ["build", "--release"].into_iter().chain(packages).collect()
}

/// Folders of this machine that the compiler reads sources from.
struct BuildPaths {
    repository: String,
    cargo_home: String,
}

impl BuildPaths {
    fn of(root: &Path) -> Result<BuildPaths> {
        let in_home = || std::env::var_os("HOME").map(|it| Path::new(&it).join(".cargo"));
        let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(in_home);
        let cargo_home = cargo_home.context("neither CARGO_HOME nor HOME is set")?;
        Ok(BuildPaths { repository: root.display().to_string(), cargo_home: cargo_home.display().to_string() })
    }
}

/// Sources of the workspace get paths from its root, and those of other crates begin with `cargo/registry/src`.
fn remap_flags(paths: &BuildPaths) -> String {
    let BuildPaths { repository, cargo_home } = paths;
    let flag = |from: &str, to: &str| format!("'--remap-path-prefix={from}={to}'");
    format!("build.rustflags=[{},{}]", flag(repository, ""), flag(cargo_home, "cargo"))
}

/// Fails if a program or library below a prefix names a folder of this machine, also in its debug information.
pub(super) fn ensure_no_build_paths(root: &Path, prefix: &Path) -> Result<()> {
    let found = build_paths_below(prefix, &BuildPaths::of(root)?)?;
    ensure!(found.is_empty(), "packaged files name folders of this machine: {}", found.join(", "));
    Ok(())
}

fn build_paths_below(prefix: &Path, paths: &BuildPaths) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in files_below(prefix)?.into_iter().filter(|it| it.starts_with("bin") || it.starts_with("lib")) {
        let content = uncompressed(&prefix.join(&file))?;
        let named = [&paths.repository, &paths.cargo_home].into_iter().filter(|it| content.contains(it.as_str()));
        found.extend(named.map(|it| format!("{} ({it})", file.display())));
    }
    Ok(found)
}

/// The bytes of a program or library as text, with debug information that is not compressed.
fn uncompressed(file: &Path) -> Result<String> {
    let copy = dist_folder()?.join(format!("uncompressed-{}", std::process::id()));
    let words = [&file.display().to_string(), &copy.display().to_string()];
    run_tool(Path::new("."), "objcopy", &["--decompress-debug-sections", words[0], words[1]])
        .context("`objcopy` is in the package binutils")?;
    let bytes = fs::read(&copy).with_context(|| format!("{} cannot be read", copy.display()))?;
    fs::remove_file(&copy).with_context(|| format!("{} cannot be removed", copy.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::binaries::copy_with_lines;
    use super::*;

    /// Debug information names a unit of compilation so. The words are joined here, so that nothing else has the text.
    #[test]
    fn paths_are_found_in_compressed_debug_information() {
        let prefix = std::env::temp_dir().join(format!("lavascope-build-paths-{}", std::process::id()));
        let program = std::env::current_exe().expect("this program");
        copy_with_lines(&program, &prefix.join("bin/lines")).expect("it can be stripped");
        let (unit, absent) = (["src/main.rs", "@", ""].join("/"), ["", "no", "such", "cargo"].join("/"));
        let paths = BuildPaths { repository: unit.clone(), cargo_home: absent };
        let compressed = fs::read(prefix.join("bin/lines")).expect("a file");
        assert!(!String::from_utf8_lossy(&compressed).contains(&unit), "it is compressed");
        assert_eq!(build_paths_below(&prefix, &paths).expect("files"), [format!("bin/lines ({unit})")]);
        fs::remove_dir_all(prefix).expect("a folder that can be removed");
    }

    #[test]
    fn paths_of_the_workspace_become_relative() {
        let paths = BuildPaths { repository: "/a b".to_owned(), cargo_home: "/c".to_owned() };
        let flags = "['--remap-path-prefix=/a b=','--remap-path-prefix=/c=cargo']";
        assert_eq!(remap_flags(&paths), format!("build.rustflags={flags}"));
    }
}
