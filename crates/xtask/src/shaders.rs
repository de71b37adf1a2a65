//! Compiling the shaders of the samples into the files that their crate includes.
//!
//! Absent on purpose: a check for freshness. The samples have a test that needs no compiler.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::process;

const FOLDER: &str = "crates/samples/shaders";
const COMPILER: &str = "glslangValidator";

pub(crate) fn run(root: &Path) -> Result<()> {
    ensure!(
        process::exists(COMPILER, "--version"),
        "`{COMPILER}` is not there: on Debian and Ubuntu `apt-get install glslang-tools` brings it"
    );
    let folder = root.join(FOLDER);
    let (compiled, sources): (Vec<PathBuf>, Vec<PathBuf>) = list(&folder)?.into_iter().partition(|it| is_compiled(it));
    for source in &sources {
        compile(&folder, &file_name(source))?;
    }
    for orphan in compiled.iter().filter(|it| !sources.contains(&it.with_extension(""))) {
        std::fs::remove_file(orphan).with_context(|| format!("{} cannot be removed", orphan.display()))?;
    }
    println!("{} shaders", sources.len());
    Ok(())
}

/// With the source text inside (`-g`), and by its bare name, so that no path of this machine gets in.
fn compile(folder: &Path, source: &str) -> Result<()> {
    let target = format!("{source}.spv");
    process::run(folder, COMPILER, &["-V", "--quiet", "--target-env", "vulkan1.2", "-g", "-o", &target, source])
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths = entries.map(|it| Ok(it?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn is_compiled(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "spv")
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
}
