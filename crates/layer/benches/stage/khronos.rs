//! The Khronos layer beside ours, for benchmarks that compare.

use std::path::Path;

use crate::stage::written;

/// A library of the layer that is newer than 1.4, in place of the one that is installed.
const KHRONOS_LIBRARY: &str = "LAVASCOPE_BENCH_KHRONOS_LIBRARY";

/// Whether there is a newer Khronos layer; then its manifest is in the folder.
pub(crate) fn newer_khronos(folder: &Path) -> bool {
    let Some(library) = std::env::var_os(KHRONOS_LIBRARY) else {
        std::fs::remove_file(folder.join("khronos.json")).ok();
        return false;
    };
    let text = format!(
        r#"{{"file_format_version":"1.2.0","layer":{{"name":"VK_LAYER_KHRONOS_validation","type":"GLOBAL",
        "library_path":{:?},"api_version":"1.4.0","implementation_version":"1","description":"",
        "instance_extensions":[{{"name":"VK_EXT_layer_settings","spec_version":"2"}}]}}}}"#,
        library.to_string_lossy()
    );
    written(folder, "khronos.json", &text);
    true
}
