//! The names and the manifest of the layer, and the variables with which the loader enables it for
//! every instance.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lavascope_loader::manifests::{self, Manifest, ManifestKind};
use serde_json::{Value, json};

use crate::commands::api::catalog::registry_version;
use crate::launch::libraries::{LAYER, private_folder, utf8};

/// The names under which the loader can load the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerName {
    Own,
    /// For programs that enable the Khronos layer by its name.
    Khronos,
    /// Our own name, with headless surfaces: for a replay, and for `--headless`.
    Headless,
}

impl LayerName {
    pub(crate) fn layer(self) -> &'static str {
        match self {
            LayerName::Own | LayerName::Headless => "VK_LAYER_LAVASCOPE_inspect",
            LayerName::Khronos => "VK_LAYER_KHRONOS_validation",
        }
    }

    pub(crate) fn manifest_file(self) -> &'static str {
        match self {
            LayerName::Own | LayerName::Headless => "VkLayer_lavascope.json",
            LayerName::Khronos => "VkLayer_khronos_validation.json",
        }
    }

    /// Each name has its own folder, because the loader reads every manifest in a folder. The
    /// manifest with the Khronos name must not hide the real Khronos layer from other programs.
    fn folder(self) -> &'static str {
        match self {
            LayerName::Own => "layer",
            LayerName::Khronos => "layer-as-khronos",
            LayerName::Headless => "layer-headless",
        }
    }
}

/// Writes the manifest for all programs of this user. Creates the folder if it does not exist.
pub(crate) fn install_manifest(folder: &Path, name: LayerName) -> Result<PathBuf> {
    LAYER.write_manifest(folder, name.manifest_file(), &installed_manifest(name, &LAYER.find()?))
}

/// The manifest with all settings, which Vulkan Configurator shows. `library` is written without
/// changes.
pub(crate) fn installed_manifest(name: LayerName, library: &str) -> String {
    let mut manifest = manifest(name, library);
    manifest["layer"]["introduction"] = INTRODUCTION.into();
    manifest["layer"]["platforms"] = json!(["LINUX"]);
    manifest["layer"]["status"] = "STABLE".into();
    manifest["layer"]["features"] = lavascope_settings::manifest_features();
    format!("{manifest:#}\n")
}

/// The instance extensions of the layer. The loader reads them from the manifest, not from the
/// library.
const INSTANCE_EXTENSIONS: [(&str, u32); 5] = [
    ("VK_EXT_debug_report", 10),
    ("VK_EXT_debug_utils", 2),
    ("VK_EXT_layer_settings", 2),
    ("VK_EXT_validation_features", 6),
    ("VK_EXT_validation_flags", 3),
];

/// The extension that the layer provides if the setting `unseen_surfaces` is on.
const SURFACES: (&str, u32) = ("VK_EXT_headless_surface", 1);

/// The description of the layer in Vulkan Configurator.
const INTRODUCTION: &str = "Finds synchronization hazards and out-of-bounds accesses of shaders, and records what a program calls. It can be \
                            used beside the Khronos layer, whose core checks it does not have.";

/// The manifest without settings. The loader reads the whole manifest at each instance creation, so
/// the settings would only cost time.
fn manifest(name: LayerName, library: &str) -> Value {
    let extension = |(name, version): (&str, u32)| json!({ "name": name, "spec_version": version.to_string() });
    let more = (name == LayerName::Headless).then_some(SURFACES);
    let extensions: Vec<_> = INSTANCE_EXTENSIONS.into_iter().chain(more).map(extension).collect();
    json!({
        "file_format_version": "1.2.0",
        "layer": {
            "name": name.layer(),
            "type": "GLOBAL",
            "library_path": library,
            "api_version": registry_version(),
            "implementation_version": "1",
            "description": "Lavascope: what a Vulkan program does and where it is wrong",
            "instance_extensions": extensions,
        }
    })
}

/// The folder in which the loader searches for layers of this user.
pub(crate) fn user_folder() -> Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|it| Path::new(&it).join(".local/share"));
    let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
    Ok(base.context("neither XDG_DATA_HOME nor HOME is set")?.join("vulkan/explicit_layer.d"))
}

/// The variables that make the loader put the layer into every chain, with what they had before.
///
/// A program may enable the Khronos layer itself. If that is not installed, the layer answers to its name as well, so
/// that `vkCreateInstance` succeeds; the second copy in a chain passes all calls on.
pub(crate) fn variables(name: LayerName) -> Result<Vec<(&'static str, String)>> {
    let mut folders = vec![write_private_manifest(name)?];
    let others = other_layers(&folders);
    let is_khronos = |it: &&Manifest| it.name == LayerName::Khronos.layer();
    let is_installed = others.iter().any(|it| is_khronos(&it));
    let path = match name {
        LayerName::Khronos if is_installed => {
            // Loaders differ in which of two layers of one name they load, so they see only ours.
            let visible = others.iter().filter(|it| !is_khronos(it)).filter_map(|it| it.path.to_str());
            let visible = visible.filter(|it| !it.contains(':')).map(str::to_owned);
            let all: Vec<String> = [utf8(&folders[0])?.to_owned()].into_iter().chain(visible).collect();
            ("VK_LAYER_PATH", all.join(":"))
        }
        LayerName::Own | LayerName::Headless if !is_installed => {
            folders.push(write_private_manifest(LayerName::Khronos)?);
            path_variable(&folders)?
        }
        LayerName::Own | LayerName::Khronos | LayerName::Headless => path_variable(&folders)?,
    };
    let mut variables = vec![path, ("VK_INSTANCE_LAYERS", with_first("VK_INSTANCE_LAYERS", &[name.layer()]))];
    if name == LayerName::Headless {
        variables.push(implicit_variable(&folders[0])?);
    }
    Ok(variables)
}

/// Programs ask which extensions there are before they enable one. The loader names those of drivers and of implicit
/// layers, and not those of layers that a variable enables. So the layer is an implicit one as well, for this program.
///
/// All versions of the loader read this variable for implicit layers.
fn implicit_variable(folder: &Path) -> Result<(&'static str, String)> {
    const VARIABLE: &str = "XDG_CONFIG_DIRS";
    /// What counts if the variable is not set.
    const DEFAULT: &str = "/etc/xdg";
    let place = folder.join("vulkan/implicit_layer.d");
    let mut manifest = manifest(LayerName::Headless, &LAYER.find()?);
    manifest["layer"]["enable_environment"] = json!({ "LAVASCOPE_UNSEEN_SURFACES": "1" });
    manifest["layer"]["disable_environment"] = json!({ "LAVASCOPE_DISABLE": "1" });
    LAYER.write_manifest(&place, LayerName::Headless.manifest_file(), &format!("{manifest:#}\n"))?;
    let own = std::env::var(VARIABLE).ok().filter(|it| !it.is_empty()).unwrap_or_else(|| DEFAULT.to_owned());
    Ok((VARIABLE, format!("{}:{own}", utf8(folder)?)))
}

fn write_private_manifest(name: LayerName) -> Result<PathBuf> {
    let folder = private_folder(name.folder())?;
    LAYER.write_manifest(&folder, name.manifest_file(), &format!("{:#}\n", manifest(name, &LAYER.find()?)))?;
    Ok(folder)
}

/// The explicit layers that a program sees without ours.
fn other_layers(own: &[PathBuf]) -> Vec<Manifest> {
    let cache = own.iter().filter_map(|it| it.parent()).next();
    let is_own = |it: &Manifest| cache.is_some_and(|folder| it.path.starts_with(folder));
    let mut all = manifests::layers(&manifests::process_variables);
    all.retain(|it| it.kind == ManifestKind::ExplicitLayer && !is_own(it));
    all
}

/// The variable that adds folders with manifests. A set `VK_LAYER_PATH` replaces every other place, also the added ones.
fn path_variable(folders: &[PathBuf]) -> Result<(&'static str, String)> {
    let path = if std::env::var_os("VK_LAYER_PATH").is_some() { "VK_LAYER_PATH" } else { "VK_ADD_LAYER_PATH" };
    let folders: Vec<&str> = folders.iter().map(|it| utf8(it)).collect::<Result<_>>()?;
    Ok((path, with_first(path, &folders)))
}

/// The list in a variable, with some words in front of it. Those that the user has in the list stay where they are, since
/// loaders go by the order.
fn with_first(variable: &str, words: &[&str]) -> String {
    let own = std::env::var(variable).unwrap_or_default();
    let own: Vec<&str> = own.split(':').filter(|it| !it.is_empty()).collect();
    let new = words.iter().filter(|it| !own.contains(it));
    new.chain(&own).copied().collect::<Vec<_>>().join(":")
}

/// Another manifest that makes a layer of this name visible to programs.
pub(crate) fn rival_manifest(name: LayerName, own: &Path) -> Option<PathBuf> {
    let mut all = manifests::layers(&manifests::process_variables).into_iter();
    all.find(|it| it.kind == ManifestKind::ExplicitLayer && it.name == name.layer() && it.path != own).map(|it| it.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_layer_and_library() {
        let value = manifest(LayerName::Khronos, "/opt/a \"b\"/lib.so");
        assert_eq!(value["layer"]["name"], "VK_LAYER_KHRONOS_validation");
        assert_eq!(value["layer"]["library_path"], "/opt/a \"b\"/lib.so");
        // A loader would offer the extension of this manifest to every program.
        let has = |name| manifest(name, "lib.so").to_string().contains("VK_EXT_headless_surface");
        assert!(has(LayerName::Headless) && !has(LayerName::Own) && !has(LayerName::Khronos));
    }

    #[test]
    fn only_the_installed_manifest_has_the_settings() {
        let installed: Value = serde_json::from_str(&installed_manifest(LayerName::Own, "lib.so")).expect("JSON");
        assert_eq!(installed["layer"]["features"], lavascope_settings::manifest_features());
        assert_eq!(installed["layer"]["library_path"], "lib.so");
        assert_eq!(manifest(LayerName::Own, "lib.so")["layer"].get("features"), None);
    }

    #[test]
    fn the_manifest_has_the_extensions_of_the_library() {
        let library = VkLayer_lavascope::INSTANCE_EXTENSIONS.map(|(name, version)| (name.to_str(), version));
        assert_eq!(library, INSTANCE_EXTENSIONS.map(|(name, version)| (Ok(name), version)));
    }
}
