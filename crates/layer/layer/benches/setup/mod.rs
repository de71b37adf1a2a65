//! What a process that measures needs in the build folder: our layer's manifest, and settings beside it.

use std::path::{Path, PathBuf};

/// A folder of this name with the manifest of the layer that was built.
pub(crate) fn layer_folder(folder: &Path, name: &str) -> PathBuf {
    let library = folder.join("libVkLayer_lavascope.so");
    let text = format!(
        r#"{{"file_format_version":"1.2.0","layer":{{"name":"VK_LAYER_LAVASCOPE_inspect","type":"GLOBAL",
        "library_path":{:?},"api_version":"1.4.0","implementation_version":"1","description":"",
        "functions":{{"vkNegotiateLoaderLayerInterfaceVersion":"vkNegotiateLoaderLayerInterfaceVersion"}},
        "instance_extensions":[{{"name":"VK_EXT_layer_settings","spec_version":"2"}}]}}}}"#,
        library.to_string_lossy()
    );
    let own = folder.join(name);
    std::fs::create_dir_all(&own).expect("the build folder can be written");
    write_file(&own, "layer.json", &text);
    own
}

/// Validation is on by default. A case that measures it switches it on through `VK_EXT_layer_settings`, which is
/// stronger than this variable.
pub(crate) fn switch_validation_off(command: &mut std::process::Command) {
    command.env("VK_LAYER_LAVASCOPE_INSPECT_SYNC", "off");
}

pub(crate) fn write_file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("the build folder can be written");
    path
}
