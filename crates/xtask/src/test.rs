//! Every test, on a machine that may have nothing but Rust.

use std::path::Path;

use anyhow::{Context, Result};

use crate::process::{self, cargo};
use crate::{registry_files, system};

/// For the program on wgpu that runs under the layer, with all that they need themselves.
const PYTHON_PACKAGES: [&str; 3] = ["wgpu==0.32.0", "cffi==2.1.1", "pycparser==3.12"];

pub(crate) fn run(root: &Path, no_install: bool) -> Result<()> {
    system::provide(root, no_install)?;
    registry_files::provide(root)?;
    provide_python(root)?;
    let cargo = cargo();
    process::run(root, &cargo, &["fmt", "--all", "--check"])?;
    process::run(root, &cargo, &["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])?;
    process::run(root, &cargo, &["test", "--workspace", "--quiet", "--doc"])?;
    if process::exists("cargo-nextest", "--version") {
        return process::run(root, &cargo, &["nextest", "run", "--workspace", "--no-fail-fast"]);
    }
    process::run(root, &cargo, &["test", "--workspace", "--quiet", "--no-fail-fast", "--lib", "--bins", "--tests"])
}

/// Gets the Python packages into the build folder, if the right ones are not there.
///
/// Not as a virtual environment: Debian has a package of its own for those.
fn provide_python(root: &Path) -> Result<()> {
    let folder = root.join("target/python");
    let version = process::output(root, "python3", &["-c", "import sys; print(sys.implementation.cache_tag)"])?;
    let wanted = format!("{}{}\n", String::from_utf8_lossy(&version.stdout), PYTHON_PACKAGES.join("\n"));
    let list = folder.join("packages.txt");
    if std::fs::read_to_string(&list).is_ok_and(|it| it == wanted) {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    println!("fetching {}", PYTHON_PACKAGES.join(", "));
    let place = folder.display().to_string();
    let arguments = [&["-m", "pip", "install", "--quiet", "--no-deps", "--target", &place], &PYTHON_PACKAGES[..]];
    process::run(root, "python3", &arguments.concat())?;
    std::fs::write(&list, wanted).with_context(|| format!("{} cannot be written", list.display()))
}
