//! Finds the drivers and libraries to test with. What is missing makes a test fail with the name of its package.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where systems install the manifests of their drivers.
const MANIFEST_FOLDERS: [&str; 2] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

/// Limits a program to one driver. Older loaders read only the first variable.
pub fn set_driver(command: &mut Command, manifest: impl AsRef<Path>) -> &mut Command {
    let manifest = manifest.as_ref();
    command.env("VK_ICD_FILENAMES", manifest).env("VK_DRIVER_FILES", manifest)
}

/// The manifest of lavapipe, Mesa's driver for the CPU.
pub fn lavapipe() -> PathBuf {
    find_lavapipe().expect("lavapipe: install mesa-vulkan-drivers")
}

/// The manifest of lavapipe, if it is installed. Its name has the architecture or not, depending on Mesa's version.
pub fn find_lavapipe() -> Option<PathBuf> {
    let files = MANIFEST_FOLDERS.iter().filter_map(|it| std::fs::read_dir(it).ok()).flatten().flatten();
    let mut paths = files.map(|it| it.path());
    paths.find(|path| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("lvp_icd")))
}

/// The manifest of SwiftShader, a CPU driver that can index arrays of all descriptors.
pub fn swiftshader() -> PathBuf {
    let places = ["target/swiftshader/vk_swiftshader_icd.json", "/usr/lib/chromium/vk_swiftshader_icd.json"];
    first_file("SWIFTSHADER_ICD", places)
        .expect("SwiftShader is missing: `cargo xtask test` fetches it, or SWIFTSHADER_ICD names its manifest")
}

/// The library of a Khronos validation layer that supports shader objects.
pub fn newer_khronos_layer() -> PathBuf {
    find_newer_khronos_layer().expect(KHRONOS_LAYER_MISSING)
}

/// What to do if there is no such layer.
pub const KHRONOS_LAYER_MISSING: &str =
    "the newer Khronos layer is missing: `cargo xtask test` fetches it, or LAVASCOPE_KHRONOS_LIBRARY names it";

/// That library, fetched by `cargo xtask test` or installed with Chromium.
pub fn find_newer_khronos_layer() -> Option<PathBuf> {
    let name = "libVkLayer_khronos_validation.so";
    let places = [format!("target/khronos/{name}"), format!("/usr/lib/chromium/{name}")];
    first_file("LAVASCOPE_KHRONOS_LIBRARY", places.each_ref().map(String::as_str))
}

/// The first file that exists: the one that a variable names, or one of some places relative to the repository.
fn first_file(variable: &str, places: [&str; 2]) -> Option<PathBuf> {
    first_existing(std::env::var_os(variable).map(PathBuf::from), places)
}

fn first_existing(named: Option<PathBuf>, places: [&str; 2]) -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    named.into_iter().chain(places.map(|it| repository.join(it))).find(|it| it.is_file())
}

/// The library of the null driver, from the same build as the test.
pub fn null_driver_library() -> PathBuf {
    library_of_this_build("liblavascope_null_driver.so")
}

/// The library of the layer, from the same build as the test.
pub fn layer_library() -> PathBuf {
    library_of_this_build("libVkLayer_lavascope.so")
}

/// The library of the layer that hashes memory, from the same build as the test.
pub fn memory_check_library() -> PathBuf {
    library_of_this_build("liblavascope_memory_check.so")
}

/// Cargo builds libraries that a test depends on into the folder of the test program.
fn library_of_this_build(name: &str) -> PathBuf {
    let path = std::env::current_exe().expect("a program knows where it is").with_file_name(name);
    assert!(path.is_file(), "{} is not built", path.display());
    path
}

/// Writes a manifest of the null driver into a folder.
pub fn write_null_driver_manifest(folder: &Path) -> PathBuf {
    let library = null_driver_library();
    let library = library.to_str().expect("the path of a build is text");
    let text = format!(
        r#"{{"file_format_version": "1.0.1", "ICD": {{"library_path": {library:?}, "api_version": "1.4.300"}}}}"#
    );
    let path = folder.join("null-driver.json");
    std::fs::write(&path, text).expect("the folder of a test can be written");
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_comes_before_other_places() {
        let own = std::env::current_exe().expect("a test knows where it is");
        let found = first_existing(Some(own.clone()), ["README.md", "LICENSE-MIT"]);
        assert_eq!(found, Some(own));
        let readme = first_file("LAVASCOPE_NO_SUCH_VARIABLE", ["no such file", "README.md"]);
        assert!(readme.is_some_and(|it| it.ends_with("README.md")));
        assert_eq!(first_file("LAVASCOPE_NO_SUCH_VARIABLE", ["no such file", "crates"]), None);
    }

    #[test]
    fn both_variables_name_the_driver() {
        let mut command = Command::new("program");
        set_driver(&mut command, "driver.json");
        let named: Vec<_> = command.get_envs().filter(|it| it.1 == Some("driver.json".as_ref())).collect();
        assert_eq!(named.len(), 2);
    }
}
