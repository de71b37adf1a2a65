//! The Khronos layer below ours: what it has to say about the calls that checks in shaders make.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{output, text};
use crate::displays::XServer;
use crate::faults::is_only_for_null;
use crate::test_environment::{TestEnvironment, names, samples, succeed};

use lavascope_test_support::{newer_khronos_layer, set_driver};

/// What a sample and all below it say to the Khronos layer: codes, and all the words.
struct KhronosMessages(BTreeSet<String>, String);

const KHRONOS: &str = "VK_LAYER_KHRONOS_validation";

const MANIFEST: &str = "VkLayer_khronos_validation.json";

/// The folder with the manifest of the system's Khronos layer.
pub(crate) fn system_khronos() -> &'static Path {
    let folder = Path::new("/usr/share/vulkan/explicit_layer.d");
    let is_there = folder.join(MANIFEST).is_file();
    assert!(is_there, "the Khronos layer is missing: install vulkan-validationlayers, as `cargo xtask test` does");
    folder
}

/// Performs a fixed sample over the Khronos layer of a folder, with ours between the two or without.
fn khronos_messages(
    stage: &TestEnvironment,
    screen: &XServer,
    name: &str,
    layers: &Path,
    is_checked: bool,
) -> KhronosMessages {
    let ours = stage.folder.join("cache/lavascope/layer");
    if !ours.is_dir() {
        // Writes our manifest.
        succeed(stage.bare(env!("CARGO_BIN_EXE_lavascope")).arg("env"));
    }
    let mut command = stage.bare(samples());
    command.arg(name).env("DISPLAY", &screen.display);
    if name.starts_with("fault-") {
        command.arg("--fixed");
    }
    let both = format!("VK_LAYER_LAVASCOPE_inspect:{KHRONOS}");
    command.env("VK_INSTANCE_LAYERS", if is_checked { &both } else { KHRONOS }).env("LAVASCOPE_GPU", "1");
    command.env("LAVASCOPE_SYNC", "0");
    command.env("VK_LOADER_DEBUG", "layer");
    let paths = [ours.as_path(), layers];
    command.env("VK_LAYER_PATH", std::env::join_paths(paths).expect("paths without colons"));
    if is_only_for_null(name) && !is_pushed(name) {
        set_driver(command.arg("--no-check"), stage.null_driver());
    }
    let run = output(&mut command);
    assert_eq!(run.status.code(), Some(0), "{name}: {}", text(&run.stderr));
    let all = text(&[run.stdout, run.stderr].concat());
    // Whoever is not there has nothing to say.
    assert!(all.contains(&format!("Insert instance layer \"{KHRONOS}\"")), "{name}: {all}");
    let words = all.split(|it: char| !(it.is_ascii_alphanumeric() || it == '-' || it == '_'));
    let is_code = |it: &&str| it.starts_with("VUID-") || it.starts_with("UNASSIGNED-");
    KhronosMessages(words.filter(is_code).map(str::to_owned).collect(), all)
}

fn expect_valid(stage: &TestEnvironment, screen: &XServer, name: &str) {
    expect_valid_by(stage, screen, name, system_khronos());
}

fn expect_valid_by(stage: &TestEnvironment, screen: &XServer, name: &str, layers: &Path) {
    let said = |is_checked| khronos_messages(stage, screen, name, layers, is_checked);
    let (alone, below) = (said(false), said(true));
    let more: Vec<_> = below.0.difference(&alone.0).collect();
    assert!(more.is_empty(), "{name}: {more:?}: {}", below.1);
}

/// What the driver is asked for in the place of the application's calls is as the specification wants it: the Khronos
/// layer below us has nothing to say that it does not say without us.
#[test]
fn calls_of_ours_are_valid() {
    let (stage, screen) = (TestEnvironment::new("gpu-valid"), XServer::start());
    for name in names().into_iter().filter(|it| !is_only_for_null(it) || is_pushed(it)) {
        expect_valid(&stage, &screen, &name);
    }
}

/// Newer drivers have a command of the core for them that an older Khronos layer does not see. Fixed they are harmless
/// on any driver.
fn is_pushed(name: &str) -> bool {
    name.starts_with("fault-bounds-pushed")
}

/// The same for what only the null driver has; shader objects are newer than Khronos layers that may be here, and end
/// them.
#[test]
fn calls_of_ours_are_valid_for_rare_extensions() {
    let (stage, screen) = (TestEnvironment::new("gpu-rare-valid"), XServer::start());
    let is_left = |it: &str| is_pushed(it) || is_object(it);
    for name in names().into_iter().filter(|it| is_only_for_null(it) && !is_left(it)) {
        expect_valid(&stage, &screen, &name);
    }
}

fn is_object(name: &str) -> bool {
    name.starts_with("fault-bounds-object") || name.starts_with("fault-observed-object")
}

/// A folder with a manifest of the Khronos layer of Chromium, for `VK_LAYER_PATH`.
pub(crate) fn newer_khronos_folder(stage: &TestEnvironment) -> PathBuf {
    let folder = stage.folder.join("khronos");
    std::fs::create_dir_all(&folder).expect("the folder is ours");
    let layer = serde_json::json!({
        "name": KHRONOS, "type": "GLOBAL", "library_path": newer_khronos_layer(), "api_version": "1.4.0",
        "implementation_version": "1", "description": "",
    });
    let manifest = serde_json::json!({ "file_format_version": "1.2.0", "layer": layer });
    std::fs::write(folder.join(MANIFEST), manifest.to_string()).expect("the folder is ours");
    folder
}

#[test]
fn calls_of_ours_are_valid_for_shader_objects() {
    let (stage, screen) = (TestEnvironment::new("gpu-objects-valid"), XServer::start());
    let layers = newer_khronos_folder(&stage);
    let objects: Vec<String> = names().into_iter().filter(|it| is_object(it)).collect();
    assert!(!objects.is_empty());
    for name in objects {
        expect_valid_by(&stage, &screen, &name, &layers);
    }
}
