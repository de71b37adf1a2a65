//! The Khronos layer below ours: what it has to say about the calls that checks in shaders make.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{output, text};
use crate::faults::is_only_for_null;
use crate::screen::Screen;
use crate::stage::{Stage, names, samples, succeed};

/// What a sample and all below it say to the Khronos layer: codes, and all the words.
struct Said(BTreeSet<String>, String);

/// Performs a mended sample over the Khronos layer, with ours between the two or without. None where it is not there.
fn said_below(stage: &Stage, screen: &Screen, name: &str, is_checked: bool) -> Option<Said> {
    const KHRONOS: &str = "VK_LAYER_KHRONOS_validation";
    let system = Path::new("/usr/share/vulkan/explicit_layer.d");
    if !system.join("VkLayer_khronos_validation.json").is_file() {
        eprintln!("left out: there is no Khronos layer");
        return None;
    }
    let ours = stage.folder.join("cache/lavascope/layer");
    if !ours.is_dir() {
        // Writes our manifest.
        succeed(stage.bare(env!("CARGO_BIN_EXE_lavascope")).arg("env"));
    }
    let mut command = stage.bare(samples());
    command.arg(name).env("DISPLAY", &screen.display);
    if name.starts_with("fault-") {
        command.arg("--mended");
    }
    let both = format!("VK_LAYER_LAVASCOPE_inspect:{KHRONOS}");
    command.env("VK_INSTANCE_LAYERS", if is_checked { &both } else { KHRONOS }).env("LAVASCOPE_GPU", "1");
    let paths = [ours.as_path(), system];
    command.env("VK_LAYER_PATH", std::env::join_paths(paths).expect("paths without colons"));
    if is_only_for_null(name) && !is_pushed(name) {
        let driver = stage.null_driver();
        command.arg("--no-check").env("VK_ICD_FILENAMES", &driver).env("VK_DRIVER_FILES", &driver);
    }
    let run = output(&mut command);
    assert_eq!(run.status.code(), Some(0), "{name}: {}", text(&run.stderr));
    let all = text(&[run.stdout, run.stderr].concat());
    let words = all.split(|it: char| !(it.is_ascii_alphanumeric() || it == '-' || it == '_'));
    let is_code = |it: &&str| it.starts_with("VUID-") || it.starts_with("UNASSIGNED-");
    Some(Said(words.filter(is_code).map(str::to_owned).collect(), all))
}

fn expect_valid(stage: &Stage, screen: &Screen, name: &str) {
    let said = |is_checked| said_below(stage, screen, name, is_checked);
    let (Some(alone), Some(below)) = (said(false), said(true)) else { return };
    let more: Vec<_> = below.0.difference(&alone.0).collect();
    assert!(more.is_empty(), "{name}: {more:?}: {}", below.1);
}

/// What the driver is asked for in the place of the application's calls is as the specification wants it: the Khronos
/// layer below us has nothing to say that it does not say without us.
#[test]
fn calls_of_ours_are_valid() {
    let (stage, screen) = (Stage::new("gpu-valid"), Screen::start());
    for name in names().into_iter().filter(|it| !is_only_for_null(it) || is_pushed(it)) {
        expect_valid(&stage, &screen, &name);
    }
}

/// Newer drivers have a command of the core for them that an older Khronos layer does not see. Mended they are harmless
/// on any driver.
fn is_pushed(name: &str) -> bool {
    name.starts_with("fault-bounds-pushed")
}

/// The same for what only the null driver has; shader objects are newer than Khronos layers that may be here, and end
/// them.
#[test]
fn calls_of_ours_are_valid_for_rare_extensions() {
    let (stage, screen) = (Stage::new("gpu-rare-valid"), Screen::start());
    let is_object = |it: &str| it.starts_with("fault-bounds-object") || it.starts_with("fault-observed-object");
    let is_left = |it: &str| is_pushed(it) || is_object(it);
    for name in names().into_iter().filter(|it| is_only_for_null(it) && !is_left(it)) {
        expect_valid(&stage, &screen, &name);
    }
}
