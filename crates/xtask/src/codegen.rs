//! Writing the generated files, or saying which are stale.

use std::path::Path;

use anyhow::{Context, Result, bail};
use lavascope_codegen::{Files, stale};

use crate::registry_files;

pub(crate) fn run(root: &Path, is_check: bool) -> Result<()> {
    let (vk, video) = registry_files::read(root)?;
    let registry = lavascope_registry::parse(&vk, &video).map_err(list)?;
    let files = lavascope_codegen::emit(&registry).map_err(list)?;
    let stale = stale(root, &files)?;
    if is_check {
        if !stale.is_empty() {
            bail!("run `cargo xtask codegen`:\n{}", stale.join("\n"));
        }
        return Ok(());
    }
    write(root, &files)?;
    for line in &stale {
        println!("{line}");
    }
    println!("{} generated files, {} changed", files.len(), stale.len());
    Ok(())
}

fn list<E: std::fmt::Display>(errors: Vec<E>) -> anyhow::Error {
    let lines: Vec<String> = errors.iter().map(E::to_string).collect();
    anyhow::anyhow!("{}", lines.join("\n"))
}

fn write(root: &Path, files: &Files) -> Result<()> {
    for orphan in lavascope_codegen::orphans(root, files)? {
        std::fs::remove_file(&orphan).with_context(|| format!("{} cannot be removed", orphan.display()))?;
    }
    for (path, text) in files {
        let path = root.join(path);
        let is_same = std::fs::read_to_string(&path).is_ok_and(|it| it == *text);
        if is_same {
            continue;
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}
