//! Compiling the shaders of the samples, and those that tests look at, into the files beside them.
//!
//! Absent on purpose: a check for freshness. Those who use them need no compiler.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::setup::process;

/// Folders, and the environment that their shaders are for.
const FOLDERS: &[(&str, &str)] = &[
    ("crates/gpu/instrument/shaders", "vulkan1.2"),
    ("crates/dev/samples/shaders", "vulkan1.2"),
    ("crates/gpu/spirv/tests/shaders", "vulkan1.3"),
];
const COMPILER: &str = "glslangValidator";
/// Shaders in other languages, in the folder of the tests that instrument them.
const FOREIGN: &str = "crates/gpu/instrument/tests/shaders";
const NAGA: &str = "naga";
const SLANG: &str = "slangpy==0.43.1";
/// For what no source language can say.
const ASSEMBLER: &str = "spirv-as";

pub(crate) fn run(root: &Path) -> Result<()> {
    ensure!(
        process::can_run(COMPILER, "--version"),
        "`{COMPILER}` is not there: on Debian and Ubuntu `apt-get install glslang-tools` brings it"
    );
    for (folder, environment) in FOLDERS {
        compile_all(&root.join(folder), environment)?;
    }
    compile_foreign(root)
}

/// WGSL by naga, Slang by the library that slangpy brings.
fn compile_foreign(root: &Path) -> Result<()> {
    ensure!(process::can_run(NAGA, "--version"), "`{NAGA}` is not there: `cargo install naga-cli` brings it");
    let packages = root.join("target/slang");
    process::ensure_python_packages(root, &packages, &[SLANG])?;
    let library = list(&packages.join("slangpy"))?
        .into_iter()
        .find(|it| file_name(it).starts_with("libslang-compiler.so"))
        .context("slangpy has no libslang-compiler.so any more")?;
    let folder = root.join(FOREIGN);
    let script = root.join("crates/dev/xtask/src/slang.py").display().to_string();
    let sources: Vec<PathBuf> = list(&folder)?.into_iter().filter(|it| !is_compiled(it)).collect();
    for source in sources.iter().map(|it| file_name(it)) {
        let target = format!("{source}.spv");
        match source.ends_with(".wgsl") {
            true => process::run(&folder, NAGA, &["-g", "--spirv-version", "1.4", &source, &target])?,
            false => {
                process::run(&folder, "python3", &[&script, &library.display().to_string(), &source, &target])?;
            }
        }
    }
    println!("{} shaders in {}", sources.len(), folder.display());
    Ok(())
}

fn compile_all(folder: &Path, environment: &str) -> Result<()> {
    let (compiled, sources): (Vec<PathBuf>, Vec<PathBuf>) = list(folder)?.into_iter().partition(|it| is_compiled(it));
    for source in &sources {
        compile(folder, &file_name(source), environment)?;
    }
    for orphan in compiled.iter().filter(|it| !sources.contains(&it.with_extension(""))) {
        std::fs::remove_file(orphan).with_context(|| format!("{} cannot be removed", orphan.display()))?;
    }
    println!("{} shaders in {}", sources.len(), folder.display());
    Ok(())
}

/// With the source text inside, and by its bare name, so that no path of this machine gets in.
fn compile(folder: &Path, source: &str, environment: &str) -> Result<()> {
    let target = format!("{source}.spv");
    if source.ends_with(".spvasm") {
        return process::run(folder, ASSEMBLER, &["--target-env", "spv1.3", "-o", &target, source]);
    }
    // Lines are told by `OpLine`, or by `NonSemantic.Shader.DebugInfo.100` where the name asks for it.
    let debug = if source.contains("_debuginfo.") { "-gVS" } else { "-g" };
    // What needs no addresses runs on older devices, too.
    let environment = if source.contains("_bound.") { "vulkan1.1" } else { environment };
    process::run(folder, COMPILER, &["-V", "--quiet", "--target-env", environment, debug, "-o", &target, source])
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
