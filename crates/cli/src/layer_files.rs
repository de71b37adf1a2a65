//! Where the layer's library is, and the manifest that tells the loader about it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::catalog::registry_version;

const LIBRARY: &str = "libVkLayer_lavascope.so";

/// The names that the layer answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Own,
    /// For programs that ask for the Khronos layer by name.
    Khronos,
}

impl Name {
    pub(crate) fn layer(self) -> &'static str {
        match self {
            Name::Own => "VK_LAYER_LAVASCOPE_inspect",
            Name::Khronos => "VK_LAYER_KHRONOS_validation",
        }
    }

    pub(crate) fn manifest_file(self) -> &'static str {
        match self {
            Name::Own => "VkLayer_lavascope.json",
            Name::Khronos => "VkLayer_khronos_validation.json",
        }
    }
}

/// The layer's library: named by the environment, or near this program.
pub(crate) fn library() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("LAVASCOPE_LAYER_LIBRARY").map(PathBuf::from) {
        if path.is_file() {
            return Ok(path);
        }
        bail!("LAVASCOPE_LAYER_LIBRARY is {}, which is no file", path.display());
    }
    let program = std::env::current_exe().context("the place of this program is not known")?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let places = [folder.join(LIBRARY), folder.join("deps").join(LIBRARY), folder.join("../lib").join(LIBRARY)];
    match places.iter().find(|it| it.is_file()) {
        Some(found) => Ok(found.clone()),
        None => bail!(
            "{LIBRARY} is not beside this program in {}; build it with `cargo build --release --package lavascope-layer`",
            folder.display()
        ),
    }
}

/// The text of a manifest for the library.
pub(crate) fn manifest(name: Name, library: &Path) -> String {
    let manifest = json!({
        "file_format_version": "1.2.0",
        "layer": {
            "name": name.layer(),
            "type": "GLOBAL",
            "library_path": library,
            "api_version": registry_version(),
            "implementation_version": "1",
            "description": "Lavascope: what a Vulkan program does and where it is wrong",
        }
    });
    format!("{manifest:#}\n")
}

/// Writes the manifest into a folder, which is made if need be.
pub(crate) fn write_manifest(folder: &Path, name: Name) -> Result<PathBuf> {
    let text = manifest(name, &library()?);
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let path = folder.join(name.manifest_file());
    fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

/// A folder of this user's for manifests that are only needed while programs run.
pub(crate) fn private_folder() -> Result<PathBuf> {
    let base = ["XDG_RUNTIME_DIR", "XDG_CACHE_HOME"].iter().find_map(std::env::var_os).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|it| Path::new(&it).join(".cache"));
    let base = base.or_else(home).context("neither XDG_RUNTIME_DIR, XDG_CACHE_HOME nor HOME is set")?;
    Ok(base.join("lavascope/layers"))
}

/// The loader's folder for layers of this user.
pub(crate) fn user_folder() -> Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|it| Path::new(&it).join(".local/share"));
    let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
    Ok(base.context("neither XDG_DATA_HOME nor HOME is set")?.join("vulkan/explicit_layer.d"))
}

/// The variables that make the loader put the layer into every chain, with what they had before.
pub(crate) fn variables(name: Name) -> Result<Vec<(&'static str, String)>> {
    let folder = private_folder()?;
    write_manifest(&folder, name)?;
    // A set VK_LAYER_PATH replaces every other place, also the added ones.
    let path = if std::env::var_os("VK_LAYER_PATH").is_some() { "VK_LAYER_PATH" } else { "VK_ADD_LAYER_PATH" };
    let with = |variable: &str, first: &str| match std::env::var(variable) {
        Ok(rest) if !rest.is_empty() && rest.split(':').all(|it| it != first) => format!("{first}:{rest}"),
        Ok(rest) if !rest.is_empty() => rest,
        _ => first.to_owned(),
    };
    let folder = folder.display().to_string();
    Ok(vec![(path, with(path, &folder)), ("VK_INSTANCE_LAYERS", with("VK_INSTANCE_LAYERS", name.layer()))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_layer_and_library() {
        let text = manifest(Name::Khronos, Path::new("/opt/a \"b\"/lib.so"));
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["layer"]["name"], "VK_LAYER_KHRONOS_validation");
        assert_eq!(value["layer"]["library_path"], "/opt/a \"b\"/lib.so");
    }
}
