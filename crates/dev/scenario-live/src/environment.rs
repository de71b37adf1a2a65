//! The environment of a process that performs scenarios: the null driver, one layer, and nothing else of the machine.

use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::objects::features::FEATURE_NAMES;
use crate::objects::gpu::{DEVICE_EXTENSIONS, INSTANCE_EXTENSIONS};

/// Queues of each family of the null driver.
const QUEUES_PER_FAMILY: u32 = 8;

/// Where descriptors of buffers may begin.
const OFFSET_ALIGNMENT: u64 = 16;

/// The layer that a process has.
#[derive(Clone, Copy, Debug)]
pub struct LayerLibrary<'a> {
    pub name: &'a CStr,
    pub library: &'a Path,
}

/// A folder with the manifests that the loader reads.
#[derive(Clone, Debug)]
pub struct LiveEnvironment {
    folder: PathBuf,
}

impl LiveEnvironment {
    /// Writes the manifests. The null driver gets two queue families for each set of capabilities.
    pub fn write(
        folder: &Path,
        layer: LayerLibrary<'_>,
        driver: &Path,
        queue_flags: &[u32],
    ) -> io::Result<LiveEnvironment> {
        let write = |name: &str, text: String| std::fs::write(folder.join(name), text);
        write("driver.json", lavascope_loader::manifests::driver_manifest(&driver.to_string_lossy()))?;
        write("layer.json", layer_manifest(layer).to_string())?;
        write("profile.json", profile(queue_flags).to_string())?;
        Ok(LiveEnvironment { folder: folder.to_owned() })
    }

    /// Sets the environment of a process to the folder, without the variables of this process.
    pub fn apply(&self, command: &mut Command) {
        for (key, _) in std::env::vars_os() {
            if key.to_str().is_some_and(|it| ["VK_", "LAVASCOPE_", "XDG_"].iter().any(|prefix| it.starts_with(prefix)))
            {
                command.env_remove(key);
            }
        }
        let driver = self.folder.join("driver.json");
        command.current_dir(&self.folder);
        // Another layer that some systems add to everything.
        command.env("NODEVICE_SELECT", "1");
        command.env("HOME", &self.folder).env("VK_LAYER_PATH", &self.folder);
        command.env("VK_DRIVER_FILES", &driver).env("VK_ICD_FILENAMES", &driver);
        command.env("LAVASCOPE_NULL_PROFILE", self.folder.join("profile.json"));
    }
}

fn layer_manifest(layer: LayerLibrary<'_>) -> Value {
    let function = "vkNegotiateLoaderLayerInterfaceVersion";
    json!({ "file_format_version": "1.2.0", "layer": {
        "name": layer.name.to_string_lossy(),
        "type": "GLOBAL",
        "library_path": layer.library,
        "api_version": "1.4.0",
        "implementation_version": "1",
        "description": "",
        "functions": { function: function },
        "instance_extensions": [{ "name": "VK_EXT_debug_utils", "spec_version": "2" }],
    }})
}

fn profile(queue_flags: &[u32]) -> Value {
    let extensions: Map<String, Value> = INSTANCE_EXTENSIONS
        .iter()
        .chain(&DEVICE_EXTENSIONS)
        .map(|it| (it.to_string_lossy().into_owned(), json!(1)))
        .collect();
    let family = |flags: &u32| {
        let texel = json!({ "width": 1, "height": 1, "depth": 1 });
        json!({ "VkQueueFamilyProperties": {
            "queueFlags": flags, "queueCount": QUEUES_PER_FAMILY, "minImageTransferGranularity": texel,
        } })
    };
    let families: Vec<Value> = queue_flags.iter().flat_map(|it| [family(it), family(it)]).collect();
    let on = |members: &[&str]| -> Map<String, Value> {
        members.iter().map(|it| (String::from(*it), json!(true))).collect()
    };
    let features: Map<String, Value> =
        FEATURE_NAMES.iter().map(|(name, members)| (String::from(*name), json!(on(members)))).collect();
    let limits = json!({
        "minUniformBufferOffsetAlignment": OFFSET_ALIGNMENT,
        "minStorageBufferOffsetAlignment": OFFSET_ALIGNMENT,
        "minTexelBufferOffsetAlignment": OFFSET_ALIGNMENT,
    });
    json!({ "capabilities": { "route": {
        "extensions": extensions,
        "features": features,
        "properties": { "VkPhysicalDeviceProperties": { "limits": limits } },
        "queueFamiliesProperties": families,
    } } })
}
