//! Gathers what the judges look at: the files git knows or would add, and the workspace's packages.
//!
//! The only module of tidy that touches the disk or starts a process.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::tidy::File;

/// A package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkspaceMember {
    pub(crate) package: String,
    /// Its folder relative to the root.
    pub(crate) folder: String,
    pub(crate) description: String,
    pub(crate) dependencies: Vec<CrateDependency>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CrateDependency {
    pub(crate) package: String,
    pub(crate) kind: DependencyKind,
}

/// Build dependencies count as normal ones: both decide what a user of the crate has to compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Dev,
}

pub(crate) fn files(root: &Path) -> Result<Vec<File>> {
    let listing = output(Command::new("git").args(["ls-files", "-co", "--exclude-standard", "-z"]), root)?;
    let paths: BTreeSet<&str> = listing.split('\0').filter(|it| !it.is_empty()).collect();
    let mut files = Vec::new();
    for path in paths {
        files.extend(file(root, path)?);
    }
    Ok(files)
}

pub(crate) fn members(root: &Path) -> Result<Vec<WorkspaceMember>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    let json = output(Command::new(cargo).args(arguments), root)?;
    parse_members(&json).context("cannot understand what cargo metadata printed")
}

/// Nothing for a path that is gone from the disk but not yet from git's index, and for what is not a plain file.
fn file(root: &Path, path: &str) -> Result<Option<File>> {
    let place = root.join(path);
    let Ok(metadata) = place.symlink_metadata() else { return Ok(None) };
    if !metadata.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(&place).with_context(|| format!("cannot read {}", place.display()))?;
    let size_bytes = bytes.len() as u64;
    let text = String::from_utf8(bytes).ok().filter(|it| !it.contains('\0'));
    Ok(Some(File { path: path.to_owned(), size_bytes, text }))
}

fn output(command: &mut Command, root: &Path) -> Result<String> {
    let output = command.current_dir(root).output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} printed something that is not UTF-8"))
}

fn parse_members(json: &str) -> Result<Vec<WorkspaceMember>> {
    let metadata: Value = serde_json::from_str(json)?;
    let root = Path::new(string(&metadata, "workspace_root")?);
    let mut members = list(&metadata, "packages")?.iter().map(|it| member(it, root)).collect::<Result<Vec<_>>>()?;
    members.sort_by(|a, b| a.package.cmp(&b.package));
    Ok(members)
}

fn member(package: &Value, root: &Path) -> Result<WorkspaceMember> {
    let manifest = Path::new(string(package, "manifest_path")?);
    let folder = manifest.parent().and_then(|it| it.strip_prefix(root).ok());
    let folder = folder.with_context(|| format!("{} is outside of the workspace", manifest.display()))?;
    Ok(WorkspaceMember {
        package: string(package, "name")?.to_owned(),
        folder: folder.components().map(|it| it.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/"),
        description: package["description"].as_str().unwrap_or_default().to_owned(),
        dependencies: list(package, "dependencies")?.iter().map(dependency).collect::<Result<_>>()?,
    })
}

fn dependency(dependency: &Value) -> Result<CrateDependency> {
    let kind = if dependency["kind"] == "dev" { DependencyKind::Dev } else { DependencyKind::Normal };
    Ok(CrateDependency { package: string(dependency, "name")?.to_owned(), kind })
}

fn string<'a>(object: &'a Value, key: &str) -> Result<&'a str> {
    object[key].as_str().with_context(|| format!("`{key}` is not a string"))
}

fn list<'a>(object: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    object[key].as_array().with_context(|| format!("`{key}` is not a list"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_what_cargo_prints() {
        let json = r#"{"workspace_root": "/w", "packages": [
            {"name": "xtask", "manifest_path": "/w/crates/dev/xtask/Cargo.toml", "description": null, "dependencies": []},
            {"name": "lavascope-abi", "manifest_path": "/w/crates/api/abi/Cargo.toml", "description": "Types.",
             "dependencies": [
                {"name": "a", "kind": null}, {"name": "b", "kind": "dev"}, {"name": "c", "kind": "build"}]}
        ]}"#;
        let members = parse_members(json).unwrap();
        let kinds: Vec<_> = members[0].dependencies.iter().map(|it| (it.package.as_str(), it.kind)).collect();
        assert_eq!((members[0].package.as_str(), members[0].folder.as_str()), ("lavascope-abi", "crates/api/abi"));
        assert_eq!(members[0].description, "Types.");
        assert_eq!(kinds, [("a", DependencyKind::Normal), ("b", DependencyKind::Dev), ("c", DependencyKind::Normal)]);
        assert_eq!((members[1].package.as_str(), members[1].description.as_str()), ("xtask", ""));
    }

    #[test]
    fn metadata_without_packages_is_an_error() {
        assert!(parse_members(r#"{"workspace_root": "/w"}"#).is_err());
    }
}
