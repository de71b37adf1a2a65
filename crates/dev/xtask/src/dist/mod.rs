//! An installation as files: a folder with all that users need, which becomes a tarball, a Debian package, or a part of
//! the user's own folders.

mod archive;
mod binaries;
mod debian;
mod licenses;
mod release;
mod user_folders;

pub(crate) mod try_out;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::setup::process;

pub(crate) use user_folders::{install, uninstall};

/// The version of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is built for an installation.
const PACKAGES: [&str; 4] = ["lavascope-cli", "lavascope-layer", "lavascope-null-driver", "lavascope-samples"];

const SAMPLES: &str = "lavascope-samples";

/// Built files, and where they lie below the prefix.
const BINARIES: [(&str, &str); 4] = [
    ("lavascope", "bin/lavascope"),
    (SAMPLES, "bin/lavascope-samples"),
    ("libVkLayer_lavascope.so", "lib/libVkLayer_lavascope.so"),
    ("liblavascope_null_driver.so", "lib/liblavascope_null_driver.so"),
];

/// Pages of the repository that belong to an installation.
const PAGES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// What `cargo xtask dist` made.
pub(crate) struct DistFiles {
    pub(crate) tarball: PathBuf,
    pub(crate) package: PathBuf,
}

/// Builds, and packs everything into a tarball and a Debian package in `target/dist`.
pub(crate) fn run(root: &Path) -> Result<DistFiles> {
    let release = release::build_for_others(root)?;
    let folder = dist_folder()?;
    let name = format!("lavascope-{VERSION}-{}-linux", std::env::consts::ARCH);
    let prefix = folder.join(&name);
    stage(root, &release, &prefix)?;
    release::ensure_no_build_paths(root, &prefix)?;
    let tarball = folder.join(format!("{name}.tar.gz"));
    archive::pack(&folder, &name, &tarball)?;
    let package = debian::pack(&folder, &prefix)?;
    for path in [&tarball, &package] {
        let bytes = fs::metadata(path).with_context(|| format!("{} is missing", path.display()))?.len();
        println!("{} ({:.1} MB)", shown(root, path), bytes as f64 / 1e6);
    }
    Ok(DistFiles { tarball, package })
}

/// Puts the files of an installation below a prefix that is made anew. `release` has the built files.
fn stage(root: &Path, release: &Path, prefix: &Path) -> Result<()> {
    if prefix.exists() {
        fs::remove_dir_all(prefix).with_context(|| format!("{} cannot be removed", prefix.display()))?;
    }
    for (file, place) in BINARIES {
        let (from, to) = (release.join(file), prefix.join(place));
        // Reports about the samples show source lines, as those of the guide do.
        if file == SAMPLES { binaries::copy_with_lines(&from, &to)? } else { binaries::copy_stripped(&from, &to)? }
    }
    let program = release.join("lavascope").display().to_string();
    process::run(root, &program, &["package-files", &prefix.display().to_string()])?;
    let pages = prefix.join("share/doc/lavascope");
    for page in PAGES {
        copy(&root.join(page), &pages.join(page))?;
    }
    copy_folder(&root.join("docs"), &pages.join("docs"))?;
    let licenses = licenses::third_party(root, &PACKAGES)?;
    fs::write(pages.join("THIRD-PARTY.txt"), licenses).context("the licenses cannot be written")
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("{} cannot be read", from.display()))? {
        let (path, name) = entry.map(|it| (it.path(), it.file_name()))?;
        if path.is_dir() { copy_folder(&path, &to.join(name))? } else { copy(&path, &to.join(name))? }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().with_context(|| format!("{} has no folder", to.display()))?;
    fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    fs::copy(from, to).with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))?;
    Ok(())
}

/// All files below a folder, by their paths in it, in order.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("{} cannot be read", next.display()))? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { found.push(path.strip_prefix(folder)?.to_path_buf()) }
        }
    }
    found.sort();
    Ok(found)
}

fn dist_folder() -> Result<PathBuf> {
    let folder = target_folder()?.join("dist");
    fs::create_dir_all(&folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    Ok(folder)
}

/// This program is `target/debug/xtask`.
fn target_folder() -> Result<PathBuf> {
    let program = std::env::current_exe().context("the place of this program is not known")?;
    program.ancestors().nth(2).map(Path::to_path_buf).context("this program lies in no target folder")
}

/// As a user in `root` would type it.
fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// Runs a tool of the system; its failure is ours, with what it printed.
fn run_tool(folder: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let output = process::output(folder, program, arguments)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{program} {}` failed: {}", arguments.join(" "), errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
