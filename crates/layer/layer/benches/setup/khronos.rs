//! The Khronos layer beside ours, for benchmarks that compare.

use std::path::Path;

use crate::setup::write_file;

/// A library of the layer that is newer than 1.4, in place of the one that is installed.
const KHRONOS_LIBRARY: &str = "LAVASCOPE_BENCH_KHRONOS_LIBRARY";

/// What neither benchmark wants of the layer since 1.4.
const NEWER_OFF: &str = "\
khronos_validation.validate_core = false
khronos_validation.check_image_layout = false
khronos_validation.check_object_in_use = false
khronos_validation.check_query = false
khronos_validation.check_shaders = false
khronos_validation.unique_handles = false
khronos_validation.object_lifetime = false
khronos_validation.stateless_param = false
khronos_validation.thread_safety = false
khronos_validation.report_flags = error
";

/// Writes the settings: what is wanted of the layer since 1.4 alone, if there is one, or all that Debian's gets.
pub(crate) fn write_settings(folder: &Path, newer: &str, older: &str) {
    let settings = if newer_khronos(folder) { format!("{newer}{NEWER_OFF}") } else { older.to_owned() };
    write_file(folder, "vk_layer_settings.txt", &settings);
}

/// Whether there is a newer Khronos layer; then its manifest is in the folder.
fn newer_khronos(folder: &Path) -> bool {
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
    write_file(folder, "khronos.json", &text);
    true
}
