//! Whether the generated files in a checkout are those that the generator would write.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use lavascope_codegen::Files;

/// One line per file that differs, is missing, or that no generator produces. Empty when everything is fresh.
pub(crate) fn stale(root: &Path, files: &Files) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    for (path, text) in files {
        match std::fs::read_to_string(root.join(path)) {
            Ok(have) if have == *text => {}
            Ok(_) => lines.push(format!("differs: {}", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => lines.push(format!("missing: {}", path.display())),
            Err(error) => return Err(error),
        }
    }
    for orphan in orphans(root, files)? {
        lines.push(format!("no generator produces it: {}", orphan.strip_prefix(root).unwrap_or(&orphan).display()));
    }
    Ok(lines)
}

/// Files in `generated` folders that are not generated.
pub(crate) fn orphans(root: &Path, files: &Files) -> io::Result<Vec<PathBuf>> {
    let wanted: BTreeSet<PathBuf> = files.keys().map(|it| root.join(it)).collect();
    let mut found = Vec::new();
    for krate in std::fs::read_dir(root.join("crates"))? {
        let krate = krate?.path();
        for folder in ["src/generated", "tests/generated"] {
            collect(&krate.join(folder), &mut found)?;
        }
    }
    found.retain(|it| !wanted.contains(it));
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() { collect(&path, found)? } else { found.push(path) }
    }
    Ok(())
}
